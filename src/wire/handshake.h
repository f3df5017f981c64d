/* SPDX-License-Identifier: MIT */
/*
 * The codec of the frames that open, resume and close a session (session.h). Each is a header of
 * XTAL_MSG_HEADER bytes that begins like every message header (magic, version, type), so one
 * stream carries both; none has a payload. Pure.
 */
#ifndef XTAL_WIRE_HANDSHAKE_H
#define XTAL_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/status.h"
#include "wire/message.h"

enum xtal_handshake_type {   /* 0x40..0x4f of the message types */
	XTAL_HELLO = 0x40,   /* initiator, first on each connection: open or resume */
	XTAL_WELCOME = 0x41, /* target: the session is open on this connection */
	XTAL_REFUSE = 0x42,  /* target: no; status and text say why */
	XTAL_BYE = 0x43,     /* either: the session is over; the target answers it with its own */
};

struct xtal_session_id {
	uint64_t word[2]; /* random and secret: who knows it can take the session over */
};

#define XTAL_HANDSHAKE_TEXT 80

struct xtal_handshake {
	enum xtal_handshake_type type;
	bool resume;               /* HELLO: the session has been welcomed before */
	enum xtal_status status;   /* REFUSE: not OK. BYE: how the other's operations end */
	struct xtal_session_id id; /* all but REFUSE; not 0 */
	uint64_t incarnation;      /* HELLO, WELCOME: of the sender's context; not 0 */
	uint64_t peer_incarnation; /* HELLO: of the target, to resume all 64 bits, to open those
				    * that are known (1..15, or any); WELCOME: the initiator's, echoed */
	struct xtal_eid eid;       /* HELLO: the device that is wanted */
	uint32_t port;             /* HELLO: the context that is wanted, 1..0xfffe */
	uint32_t pipeline;         /* HELLO */
	uint32_t window;           /* HELLO: operations that may be open; a power of two */
	uint32_t piece;            /* HELLO: most payload per frame, 1..XTAL_MSG_PIECE */
	uint64_t first_seq;        /* HELLO: number of the first frame of either direction */
	uint64_t attempt;          /* HELLO: counts the session's connections, from 1; WELCOME:
				    * echoed. An older one that arrives late is refused */
	uint64_t seq;              /* HELLO: last RESPONSE received. WELCOME: last request frame
				    * executed. first_seq - 1: none */
	uint64_t stamp;            /* HELLO, WELCOME: sender's clock, ns */
	char text[XTAL_HANDSHAKE_TEXT]; /* REFUSE, BYE: why, for people; terminated */
};

static inline bool xtal_session_id_equal(struct xtal_session_id a, struct xtal_session_id b)
{
	return ((a.word[0] ^ b.word[0]) | (a.word[1] ^ b.word[1])) == 0;
}

/* True when a message header that begins with these bytes is a handshake frame. */
bool xtal_handshake_is(const uint8_t header[XTAL_MSG_HEADER]);

/* Writes the header of h. Assumes that h is valid; text is cut to what fits. */
void xtal_handshake_encode(const struct xtal_handshake *h, uint8_t out[XTAL_MSG_HEADER]);

/*
 * Reads and validates one. Errors: -EPROTO; *why (when why is not NULL) is then a static
 * sentence naming the field. Bytes of the text that do not print are replaced.
 */
int xtal_handshake_decode(const uint8_t in[XTAL_MSG_HEADER], struct xtal_handshake *out,
			  const char **why);

#endif
