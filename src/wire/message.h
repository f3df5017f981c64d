/* SPDX-License-Identifier: MIT */
/*
 * The codec of the message protocol: a fixed little-endian header of 192 bytes, followed by
 * `payload` bytes of data. Pure: no system call, clock, thread or memory of its own. It checks
 * everything that one frame alone can tell; order and state are the two machines' business.
 *
 * An operation travels as one or more frames. Each names the whole range of the operation
 * (addr, total) and the part of it that the frame is about (offset, piece). A WRITE piece
 * carries its bytes; a READ piece asks for its bytes and is answered by one RESPONSE that
 * carries them; an ATOMIC is one frame without payload. A notify word belongs to its WRITE
 * (also of length 0): every piece names it, so that the first can be refused for it, and it is
 * stored after the last byte of the last piece.
 *
 * A SEND goes to an endpoint's receive queue (key, token), in pieces like a WRITE. One that cannot be
 * received yet is answered NOT_READY, and so is what follows it in its queue (notify.token and
 * FROM_JETTY), until one comes that follows none: SENDs of one queue are received in order.
 */
#ifndef XTAL_WIRE_MESSAGE_H
#define XTAL_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define XTAL_MSG_MAGIC     0x4d4c5458u /* the bytes "XTLM"; "MLTX" is the other byte order */
#define XTAL_MSG_VERSION   1
#define XTAL_MSG_HEADER    192
#define XTAL_MSG_PIECE     65536       /* most bytes of payload in one frame */
#define XTAL_MSG_MAX_PAUSE 1000000000u /* ns, in a RESPONSE with NOT_READY */
enum xtal_msg_type {
	/* 0x01..0x0f: one-sided requests */
	XTAL_MSG_WRITE = 0x01,
	XTAL_MSG_READ = 0x02,
	XTAL_MSG_ATOMIC = 0x03,
	/* 0x10..0x1f: two-sided requests */
	XTAL_MSG_SEND = 0x10,
	/* 0x20..0x2f: answers */
	XTAL_MSG_RESPONSE = 0x20,
	/* 0x30..0x3f: unnumbered, any time, never replayed; seq is 0 */
	XTAL_MSG_PING = 0x30,
	XTAL_MSG_PONG = 0x31,
	/* 0x40..0x4f: for sessions (HELLO, RESUME, BYE) */
};

enum xtal_msg_atomic {
	XTAL_MSG_NO_ATOMIC = 0,
	XTAL_MSG_CAS = 1, /* 1, 2, 4, 8 or 16 bytes; compare[] against memory, operand[] stored */
	XTAL_MSG_FAA = 2, /* the rest: 1, 2, 4 or 8 bytes */
	XTAL_MSG_SWAP = 3,
	XTAL_MSG_SUB = 4,
	XTAL_MSG_AND = 5,
	XTAL_MSG_OR = 6,
	XTAL_MSG_XOR = 7,
};

/* What a SEND is. Only the first three have data. */
enum xtal_msg_send {
	XTAL_MSG_SEND_PLAIN = 1,
	XTAL_MSG_SEND_IMM = 2,
	XTAL_MSG_SEND_INVALIDATE = 3,
	XTAL_MSG_SEND_WRITTEN = 4, /* a WRITE before it has put the data in place */
};

enum xtal_msg_flag {
	XTAL_MSG_TOKEN = 0x0001,        /* token is valid */
	XTAL_MSG_NOTIFY = 0x0002,       /* WRITE: notify is valid */
	XTAL_MSG_NOTIFY_TOKEN = 0x0004, /* notify.token is valid */
	XTAL_MSG_LAST = 0x0008,         /* RESPONSE: the operation's final one */
	XTAL_MSG_SOLICITED = 0x0010,    /* SEND */
	XTAL_MSG_TO_JETTY = 0x0020,     /* SEND: key is a jetty's id */
	XTAL_MSG_FROM_JETTY = 0x0040,   /* SEND: so is notify.token */
};

enum xtal_msg_right { /* asked by the initiator; the target derives what it checks from type */
	XTAL_MSG_RIGHT_READ = 0x1,
	XTAL_MSG_RIGHT_WRITE = 0x2,
	XTAL_MSG_RIGHT_ATOMIC = 0x4,
};

/* The word stored after the data of a WRITE: 8 bytes at addr of the segment of {tid, token}. */
struct xtal_msg_notify {
	uint64_t addr;
	uint64_t data;
	uint32_t tid;
	uint32_t token;
};

/* The decoded form. Fields that a type does not use are 0, and are checked to be. */
struct xtal_msg {
	enum xtal_msg_type type;
	uint16_t flags;              /* of enum xtal_msg_flag */
	enum xtal_msg_atomic atomic; /* ATOMIC; echoed in a good RESPONSE */
	uint8_t operand_size;    /* ATOMIC: 1, 2, 4, 8, 16; echoed in a good RESPONSE. SEND: enum
				      * xtal_msg_send */
	enum xtal_status status; /* RESPONSE */
	uint64_t seq;            /* numbers the sender's frames of this link, consecutively */
	uint64_t ack;         /* request, PING: last RESPONSE received. RESPONSE: the request frame
				* it answers. PONG: the last request frame consumed */
	uint64_t id;          /* chosen by the initiator, echoed */
	uint64_t incarnation; /* requests: of the target's context, as the initiator knows it */
	uint64_t addr;        /* of the whole operation */
	uint64_t total;       /* length of the whole operation; RESPONSE: echoed */
	uint64_t offset;      /* where this piece begins within the operation */
	uint64_t piece;       /* length of this piece */
	uint64_t payload;     /* bytes that follow the header: piece or 0 */
	uint32_t token;       /* of the target segment */
	uint32_t tid;         /* the target context's id in the API's form */
	uint32_t key;         /* the segment's index, or 0: any. SEND: the endpoint's id */
	uint32_t rights;      /* of enum xtal_msg_right */
	/* ATOMIC: low word first, no more bits than operand_size; RESPONSE: the old value. SEND: the
	 * immediate value, a hint (one byte). NOT_READY: ns until it may come again, or 0; 0. */
	uint64_t operand[2];
	uint64_t compare[2]; /* CAS. SEND: the sender's EID, high and low */
	/* WRITE. SEND: addr: the id of the one that it follows, or 0 when none is under way; data: how
	 * many bytes SEND_WRITTEN has; tid, token: the sender's tid, and its queue's id. */
	struct xtal_msg_notify notify;
	uint64_t expiry; /* requests: not to be executed after this, target's clock; 0: no limit */
	uint64_t stamp;  /* sender's clock, ns */
};

/* Writes the header of m. Assumes that m is valid (xtal_msg_check()). */
void xtal_msg_encode(const struct xtal_msg *m, uint8_t out[XTAL_MSG_HEADER]);

/*
 * Reads and validates one header from private memory (shared memory may change meanwhile: copy
 * the header first). avail: readable bytes at in, at least XTAL_MSG_HEADER or it is refused.
 * The payload is not looked at and need not have arrived.
 * Errors: -EPROTO; *why (when why is not NULL) is then a static sentence naming the field.
 */
int xtal_msg_decode(const uint8_t *in, size_t avail, struct xtal_msg *out, const char **why);

/* The same for a whole frame whose carrier knows its payload length: they must agree. */
int xtal_msg_decode_frame(const uint8_t *in, uint64_t payload, struct xtal_msg *out,
			  const char **why);

/* What is wrong with m as a frame, or NULL: the rules of decode on the decoded form. */
const char *xtal_msg_check(const struct xtal_msg *m);

/* True for a status that a target may answer (not the local or queue-state ones). */
bool xtal_msg_status_allowed(enum xtal_status status);

/* a is after b in a 64-bit number space that wraps. */
static inline bool xtal_seq_after(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0;
}

#endif
