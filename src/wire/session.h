/* SPDX-License-Identifier: MIT */
/*
 * Sessions: what makes a link out of byte streams that may break. A session has an initiator
 * (initiator.h, on top of a requester) and a target (target.h, on top of a responder). Its
 * connections follow one another; one carries requests one way and answers the other way. Both
 * machines are pure: bytes and time go in, frames and effects come out. Not thread safe.
 *
 * A connection begins with HELLO and WELCOME. A HELLO that finds its session takes it over: the
 * owner first closes the old connection and forgets what it has read from it, then the machine
 * answers. The sides exchange the last request executed and the last answer received, and
 *
 * - frames that were not executed are framed again, with leases of now, unless their operation
 *   has ended meanwhile; a piece that had arrived in part was not executed;
 * - the answers to WRITEs and ATOMICs (and their refusals) that were lost come once more from
 *   the responder's cache, whose size is the window: nothing is executed twice;
 * - READs whose answer was lost are executed again. So that they cannot see what came after
 *   them, a WRITE or an ATOMIC is not sent before all READs in front of it are answered.
 *
 * Leases: a request carries the time, in the target's clock, after which it must not be
 * executed. The target looks at it before it executes and before each part of a payload that it
 * stores. One that is too late ends the connection, not the operation: an initiator that still
 * waits for it (its deadline has moved since) resumes and sends it with a new lease. So an
 * operation that was reported failed lands no more. Residual: a target stopped between the look
 * and the store may apply one part, at most 64 KiB.
 *
 * Progress: while it executes, the target says how far it is every XTAL_SESSION_NEWS, so that a
 * long operation over a slow connection is not taken for a dead one. An initiator with open
 * operations sends PINGs, and takes a connection on which nothing arrives for dead.
 *
 * How frames are read: bytes go to take() until it reports a header with payload; those bytes
 * are then the carrier's, who puts them where they belong (from its buffer, or straight from
 * the socket) and says how many it has put. What nobody wants, take() eats.
 */
#ifndef XTAL_WIRE_SESSION_H
#define XTAL_WIRE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/handshake.h"
#include "wire/message.h"

#define XTAL_NEVER        UINT64_MAX
#define XTAL_SESSION_NEWS 50000000u /* ns between signs of progress */

enum xtal_session_state {
	XTAL_SESSION_DOWN,     /* no connection */
	XTAL_SESSION_GREETING, /* a connection, but no WELCOME yet */
	XTAL_SESSION_UP,
	XTAL_SESSION_ENDED, /* for good */
};

/*
 * A frame to send: header, then `payload` bytes. Once the first byte of a frame is on the
 * connection, either all of it follows or the connection ends.
 */
struct xtal_session_frame {
	uint8_t header[XTAL_MSG_HEADER];
	uint64_t payload;
	uint64_t cookie; /* initiator: the operation's; the payload is at local_offset of it */
	uint64_t local_offset;
	uint64_t addr; /* target: the payload of a READ is here */
};

/* Cuts a byte stream into headers and payloads. */
struct xtal_stream {
	uint8_t header[XTAL_MSG_HEADER];
	uint32_t have; /* bytes of the header; XTAL_MSG_HEADER while its payload is read */
	uint64_t left; /* bytes of the payload still to come */
};

void xtal_stream_reset(struct xtal_stream *s);

/* Takes bytes of a header from in. Returns how many; afterwards have == XTAL_MSG_HEADER means
 * that the header is complete. 0 when it was before. */
size_t xtal_stream_header(struct xtal_stream *s, const uint8_t *in, size_t len);

/* The header that has begun is none of ours, however it goes on (and it may go no further). */
bool xtal_stream_is_strange(const struct xtal_stream *s);

/* The header was understood: `payload` bytes follow. */
void xtal_stream_expect(struct xtal_stream *s, uint64_t payload);

/* n <= left bytes of the payload have been taken. With the last the next header begins. */
void xtal_stream_taken(struct xtal_stream *s, uint64_t n);

#endif
