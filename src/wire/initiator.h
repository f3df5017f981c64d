/* SPDX-License-Identifier: MIT */
/*
 * The initiator's end of a session (session.h): opens and resumes it, sends what its requester
 * has to send, and sorts what arrives. The owner makes the connections, moves the bytes, and
 * ends overdue operations itself (xtal_requester_next_expired, then abandon, not silent).
 */
#ifndef XTAL_WIRE_INITIATOR_H
#define XTAL_WIRE_INITIATOR_H

#include "wire/requester.h"
#include "wire/session.h"

struct xtal_initiator_config {
	struct xtal_session_id id;   /* random */
	uint64_t incarnation;        /* of this context */
	uint64_t target_incarnation; /* the bits that are known of the target's (1..15, or any) */
	struct xtal_eid eid;         /* wanted */
	uint32_t port, pipeline;     /* wanted */
	struct xtal_requester *requester;  /* storage; the machine initialises it */
	struct xtal_requester_slot *slots; /* storage, `window` of them */
	uint32_t window, piece;            /* see the requester; the target may refuse them */
	uint64_t first_seq;
	uint64_t margin;    /* ns by which leases end before deadlines */
	uint64_t keepalive; /* ns of silence after which a PING is sent while operations are open */
	uint64_t silence;   /* ns of silence after which the connection is taken for dead */
	uint64_t retry_least, retry_most; /* ns between attempts to connect: doubled up to most */
};

enum xtal_initiator_kind {
	XTAL_INITIATOR_MORE,    /* all bytes were taken */
	XTAL_INITIATOR_UP,      /* the session is open (again): frames may be sent */
	XTAL_INITIATOR_PAYLOAD, /* effect.len bytes follow, for effect.offset of effect.cookie's
				 * data: see xtal_initiator_payload() */
	XTAL_INITIATOR_ANSWER,  /* effect is to be carried out; its payload is in place */
	XTAL_INITIATOR_HANG_UP, /* close the connection, then xtal_initiator_disconnected() */
	XTAL_INITIATOR_ENDED,   /* close it; all open operations end with status (fail_next) */
};

enum xtal_initiator_frame {
	XTAL_INITIATOR_NOTHING,
	XTAL_INITIATOR_HELLO,
	XTAL_INITIATOR_PING,
	XTAL_INITIATOR_REQUEST,
	XTAL_INITIATOR_BYE,
};

struct xtal_initiator_event {
	enum xtal_initiator_kind kind;
	struct xtal_requester_effect effect;
	enum xtal_status status; /* ENDED */
	const char *why;         /* HANG_UP, ENDED: in words; valid as long as the machine */
};

struct xtal_initiator {
	struct xtal_initiator_config config;
	enum xtal_session_state state;
	enum xtal_status status; /* ENDED */
	char why[XTAL_HANDSHAKE_TEXT];
	struct xtal_stream in;
	struct xtal_msg answer;    /* whose payload is being read */
	uint64_t at;               /* bytes of it that are in place */
	uint64_t peer_incarnation; /* all bits, once welcomed */
	uint64_t attempt;
	uint64_t heard_at; /* when the last bytes came */
	uint64_t asked_at; /* when the PING became due that nothing has followed; 0: none */
	uint64_t connect_at, pause;      /* the next attempt, and what is waited after it */
	uint64_t moved_at;               /* last progress when a connection was last lost */
	enum xtal_initiator_frame shown; /* by next_frame */
	bool welcomed;                   /* at least once */
	bool hello_due, ping_due, bye_sent, closing;
};

/* Errors: -EINVAL. The requester takes operations from now on; nothing is sent before UP. */
int xtal_initiator_init(struct xtal_initiator *i, const struct xtal_initiator_config *config,
			uint64_t now);

/*
 * When the owner is to act: XTAL_NEVER, or the time for xtal_initiator_tick(). Deadlines of
 * operations are not in it (xtal_requester_next_deadline).
 */
uint64_t xtal_initiator_next_time(const struct xtal_initiator *i);

/* What is due: nothing (MORE), or the connection is dead (HANG_UP). A PING that is due is sent
 * by next_frame(). */
void xtal_initiator_tick(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out);

/* True when the owner should connect now: the session is down, something waits to be done, and
 * the pause since the last attempt is over. */
bool xtal_initiator_wants_connection(const struct xtal_initiator *i, uint64_t now);

/* A new connection is open (call it when connecting succeeds). The old one, if any, is closed. */
void xtal_initiator_connected(struct xtal_initiator *i, uint64_t now);

/* The connection is gone, or an attempt to connect failed and may be repeated. Ends the session
 * (state ENDED) when nothing is open in it. */
void xtal_initiator_disconnected(struct xtal_initiator *i, uint64_t now);

/* The owner knows that the target is gone for good (nobody holds its port): ends the session;
 * all open operations may be failed at once. */
void xtal_initiator_end(struct xtal_initiator *i, enum xtal_status status, const char *why);

/* Closes in order: nothing more is submitted, BYE is sent when nothing is open any
 * more, and the target's BYE ends the session with status FLUSHED. Nothing lands after that. */
void xtal_initiator_close(struct xtal_initiator *i);

/* The next frame to send, without taking it; false when there is none now. The lease in it is
 * of this moment: take it only when the carrier can begin to send it. */
bool xtal_initiator_next_frame(struct xtal_initiator *i, uint64_t now,
			       struct xtal_session_frame *out);
void xtal_initiator_sent(struct xtal_initiator *i, uint64_t now);

/* Takes bytes that arrived, up to the next event. Returns how many; call it again with the
 * rest until it says MORE. Bytes that xtal_initiator_payload() wants are not given to it. */
size_t xtal_initiator_take(struct xtal_initiator *i, const uint8_t *in, size_t len, uint64_t now,
			   struct xtal_initiator_event *out);

/*
 * How many bytes of payload the owner is to put in place next, at *offset of cookie's data; 0:
 * none. Ask before each part: when the operation has been abandoned meanwhile, the rest belongs
 * to take(), who eats it.
 */
uint64_t xtal_initiator_payload(const struct xtal_initiator *i, uint64_t *cookie, uint64_t *offset);
/* n of these bytes are in place. ANSWER when they were the last, else MORE. */
void xtal_initiator_placed(struct xtal_initiator *i, uint64_t n, uint64_t now,
			   struct xtal_initiator_event *out);

#endif
