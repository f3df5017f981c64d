/* SPDX-License-Identifier: MIT */
/*
 * The target's end of a session (session.h): takes frames, says what to execute, answers, and
 * remembers answers for a connection that resumes. The owner accepts connections, reads the
 * HELLO, finds the session by its id or makes one, moves the bytes and executes.
 */
#ifndef XTAL_WIRE_TARGET_H
#define XTAL_WIRE_TARGET_H

#include "wire/responder.h"
#include "wire/session.h"

struct xtal_target_config {
	uint64_t incarnation;                /* of this context */
	struct xtal_responder *responder;    /* storage; the machine initialises it */
	struct xtal_responder_result *cache; /* storage */
	uint32_t cache_size; /* power of two; an initiator that wants a larger window is refused */
	uint64_t linger;     /* ns that a session without connection is kept, and that it is kept
			      * after the last of its requests has expired */
};

/* A peer that asks for more than this many times the usual is not believed. */
#define XTAL_TARGET_LINGERS 60u

enum xtal_target_kind {
	XTAL_TARGET_MORE,    /* all bytes were taken */
	XTAL_TARGET_EXECUTE, /* effect is to be executed, then xtal_target_result(). WRITE, SEND:
			      * effect.len bytes follow, see xtal_target_payload() */
	XTAL_TARGET_SEND,    /* a frame waits: nothing is taken before it has been sent */
	XTAL_TARGET_HANG_UP, /* close the connection, then xtal_target_disconnected() */
	XTAL_TARGET_ENDED,   /* send what next_frame() has, close the connection, forget all */
};

struct xtal_target_event {
	enum xtal_target_kind kind;
	struct xtal_responder_effect effect;
	const char *why; /* HANG_UP, ENDED: in words; valid as long as the machine */
};

struct xtal_target {
	struct xtal_target_config config;
	enum xtal_session_state state;
	struct xtal_session_id id;
	uint64_t peer_incarnation;
	uint32_t pipeline, window;
	uint64_t attempt;
	struct xtal_stream in;
	struct xtal_responder_effect effect; /* being executed */
	uint64_t expiry;                     /* of its frame; 0: none */
	uint64_t last_expiry;                /* of all frames so far, the latest */
	bool executing;
	struct xtal_msg reply; /* waits to be sent */
	uint64_t reply_addr;
	bool replying;
	struct xtal_handshake greeting; /* WELCOME or BYE, waits to be sent */
	bool greeting_due;
	bool replaying;
	uint64_t spoke_at; /* when a frame was last sent */
	uint64_t gone_at;  /* when the connection went */
	char why[XTAL_HANDSHAKE_TEXT];
};

/*
 * Whether a HELLO is for this context: the wanted port and incarnation. Returns XTAL_OK, or the
 * status to refuse it with and in *why the text. The eid is the owner's to check.
 */
enum xtal_status xtal_target_check_hello(const struct xtal_handshake *hello, uint16_t port,
					 uint64_t incarnation, const char **why);

/* A REFUSE. status NOT_READY asks the initiator to try again later; any other one ends the
 * session on its side. */
void xtal_target_refuse(enum xtal_status status, const char *why, struct xtal_handshake *out);

/*
 * A new session for a HELLO that does not resume, on a new connection; WELCOME waits to be sent.
 * Errors: -EINVAL (the configuration), -EPROTO (wants to resume), -ENOBUFS (window too large):
 * refuse it.
 */
int xtal_target_init(struct xtal_target *t, const struct xtal_target_config *config,
		     const struct xtal_handshake *hello, uint64_t now);

/*
 * The session goes on over a new connection, whose HELLO this is (found by its id, resume set or
 * not). Before: close the old connection and forget its bytes. An effect that was being
 * executed is void: no result is given for it. WELCOME waits to be sent.
 * Errors, and *why: -EALREADY: an old attempt that arrived late, drop the new connection and
 * keep the present one (ask xtal_target_is_stale() before closing it); -EPROTO: the initiator
 * lies or has lost its memory, refuse it and end the session.
 */
int xtal_target_resume(struct xtal_target *t, const struct xtal_handshake *hello, uint64_t now,
		       const char **why);
bool xtal_target_is_stale(const struct xtal_target *t, const struct xtal_handshake *hello);

/* The connection is gone. An effect that was being executed is void. */
void xtal_target_disconnected(struct xtal_target *t, uint64_t now);

/* When the session is to be forgotten unless a connection comes; XTAL_NEVER while there is one. */
uint64_t xtal_target_next_time(const struct xtal_target *t);

/* The context closes: BYE with status waits to be sent, nothing more is executed; ENDED. */
void xtal_target_close(struct xtal_target *t, enum xtal_status status, const char *why);

/* Takes bytes that arrived, up to the next event. Returns how many; call it again with the
 * rest until it says MORE. Not while an effect is executed, nor with bytes that
 * xtal_target_payload() wants. now: read the clock for each call, leases are compared with it. */
size_t xtal_target_take(struct xtal_target *t, const uint8_t *in, size_t len, uint64_t now,
			struct xtal_target_event *out);

/* How many bytes of payload the owner is to put in place next, at *addr (SEND: of the message);
 * 0: none. */
uint64_t xtal_target_payload(const struct xtal_target *t, uint64_t *addr);
/* Ask before each part of a payload is stored: false when its lease is over; then hang up. */
bool xtal_target_may_land(const struct xtal_target *t, uint64_t now);
/* n bytes of payload are in place. */
void xtal_target_landed(struct xtal_target *t, uint64_t n);

/*
 * The effect was executed (WRITE: all of its payload is in place), or failed at any point:
 * what is left of a payload is then eaten by take(). old: of an atomic, else NULL.
 */
void xtal_target_result(struct xtal_target *t, enum xtal_status status, const uint64_t old[2],
			uint64_t now);

/* The next frame to send, without taking it; false when there is none. */
bool xtal_target_next_frame(struct xtal_target *t, uint64_t now, struct xtal_session_frame *out);
void xtal_target_sent(struct xtal_target *t, uint64_t now);

#endif
