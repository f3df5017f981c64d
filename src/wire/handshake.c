/* SPDX-License-Identifier: MIT */
/* Encoding, decoding and checking of the frames of a session. See handshake.h. */
#include "wire/handshake.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

/* Where each field begins; the first five lie as in every message header. */
enum offset {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_FLAGS = 6,
	AT_HEADER_LENGTH = 8,
	AT_RESERVED = 10,
	AT_STATUS = 12,
	AT_ID = 16,
	AT_INCARNATION = 32,
	AT_PEER_INCARNATION = 40,
	AT_EID = 48,
	AT_PORT = 64,
	AT_PIPELINE = 68,
	AT_WINDOW = 72,
	AT_PIECE = 76,
	AT_FIRST_SEQ = 80,
	AT_ATTEMPT = 88,
	AT_SEQ = 96,
	AT_STAMP = 104,
	AT_TEXT = 112,
};

#define FLAG_RESUME 0x0001u

_Static_assert(AT_TEXT + XTAL_HANDSHAKE_TEXT == XTAL_MSG_HEADER, "the text ends the header");

bool xtal_handshake_is(const uint8_t header[XTAL_MSG_HEADER])
{
	return xtal_get32(header + AT_MAGIC) == XTAL_MSG_MAGIC && (header[AT_TYPE] & 0xf0) == 0x40;
}

/* The wire has EIDs as addresses are written: most significant byte first. */
static void put_eid(uint8_t *p, struct xtal_eid eid)
{
	xtal_put64(p, __builtin_bswap64(eid.hi));
	xtal_put64(p + 8, __builtin_bswap64(eid.lo));
}

static struct xtal_eid get_eid(const uint8_t *p)
{
	return (struct xtal_eid){ .hi = __builtin_bswap64(xtal_get64(p)),
				  .lo = __builtin_bswap64(xtal_get64(p + 8)) };
}

void xtal_handshake_encode(const struct xtal_handshake *h, uint8_t out[XTAL_MSG_HEADER])
{
	memset(out, 0, XTAL_MSG_HEADER);
	xtal_put32(out + AT_MAGIC, XTAL_MSG_MAGIC);
	out[AT_VERSION] = XTAL_MSG_VERSION;
	out[AT_TYPE] = (uint8_t)h->type;
	xtal_put16(out + AT_FLAGS, h->resume ? FLAG_RESUME : 0);
	xtal_put16(out + AT_HEADER_LENGTH, XTAL_MSG_HEADER);
	xtal_put32(out + AT_STATUS, (uint32_t)h->status);
	xtal_put64(out + AT_ID, h->id.word[0]);
	xtal_put64(out + AT_ID + 8, h->id.word[1]);
	xtal_put64(out + AT_INCARNATION, h->incarnation);
	xtal_put64(out + AT_PEER_INCARNATION, h->peer_incarnation);
	put_eid(out + AT_EID, h->eid);
	xtal_put32(out + AT_PORT, h->port);
	xtal_put32(out + AT_PIPELINE, h->pipeline);
	xtal_put32(out + AT_WINDOW, h->window);
	xtal_put32(out + AT_PIECE, h->piece);
	xtal_put64(out + AT_FIRST_SEQ, h->first_seq);
	xtal_put64(out + AT_ATTEMPT, h->attempt);
	xtal_put64(out + AT_SEQ, h->seq);
	xtal_put64(out + AT_STAMP, h->stamp);
	memcpy(out + AT_TEXT, h->text, strnlen(h->text, XTAL_HANDSHAKE_TEXT - 1));
}

static void read_text(const uint8_t *in, char *out)
{
	size_t n = 0;

	for (; n < XTAL_HANDSHAKE_TEXT - 1 && in[n]; n++)
		out[n] = in[n] >= 0x20 && in[n] < 0x7f ? (char)in[n] : '?';
	memset(out + n, 0, XTAL_HANDSHAKE_TEXT - n);
}

static void read_fields(const uint8_t *in, struct xtal_handshake *h)
{
	h->type = (enum xtal_handshake_type)in[AT_TYPE];
	h->resume = xtal_get16(in + AT_FLAGS) & FLAG_RESUME;
	h->status = (enum xtal_status)xtal_get32(in + AT_STATUS);
	h->id.word[0] = xtal_get64(in + AT_ID);
	h->id.word[1] = xtal_get64(in + AT_ID + 8);
	h->incarnation = xtal_get64(in + AT_INCARNATION);
	h->peer_incarnation = xtal_get64(in + AT_PEER_INCARNATION);
	h->eid = get_eid(in + AT_EID);
	h->port = xtal_get32(in + AT_PORT);
	h->pipeline = xtal_get32(in + AT_PIPELINE);
	h->window = xtal_get32(in + AT_WINDOW);
	h->piece = xtal_get32(in + AT_PIECE);
	h->first_seq = xtal_get64(in + AT_FIRST_SEQ);
	h->attempt = xtal_get64(in + AT_ATTEMPT);
	h->seq = xtal_get64(in + AT_SEQ);
	h->stamp = xtal_get64(in + AT_STAMP);
	read_text(in + AT_TEXT, h->text);
}

static const char *check_session(const struct xtal_handshake *h)
{
	if ((h->id.word[0] | h->id.word[1]) == 0)
		return "session without an id";
	return NULL;
}

static const char *check_no_wish(const struct xtal_handshake *h)
{
	if (h->resume)
		return "flag does not belong to this type";
	if ((h->eid.hi | h->eid.lo) != 0 || h->port != 0 || h->pipeline != 0)
		return "wanted context in an answer";
	if (h->window != 0 || h->piece != 0 || h->first_seq != 0)
		return "terms of a session in an answer";
	return NULL;
}

static const char *check_no_greeting(const struct xtal_handshake *h)
{
	const char *why = check_no_wish(h);

	if (!why && ((h->incarnation | h->peer_incarnation) != 0 || h->attempt != 0))
		why = "greeting in a farewell";
	if (!why && (h->seq != 0 || h->stamp != 0))
		why = "number or time in a farewell";
	return why;
}

static const char *check_hello(const struct xtal_handshake *h)
{
	if (h->status != XTAL_OK || h->text[0])
		return "status or text in a greeting";
	if (h->incarnation == 0 || h->peer_incarnation == 0)
		return "greeting without an incarnation";
	if (!h->resume && h->peer_incarnation > XTAL_INCARNATION_ANY)
		return "unknown incarnation bits";
	if (h->port == 0 || h->port > 0xfffe)
		return "port is out of range";
	if (h->window == 0 || (h->window & (h->window - 1)) != 0)
		return "window is no power of two";
	if (h->piece == 0 || h->piece > XTAL_MSG_PIECE)
		return "piece is out of range";
	if (h->attempt == 0)
		return "greeting without a number";
	if (!h->resume && h->seq != h->first_seq - 1)
		return "new session that has received something";
	return check_session(h);
}

static const char *check_welcome(const struct xtal_handshake *h)
{
	const char *why = check_no_wish(h);

	if (why)
		return why;
	if (h->status != XTAL_OK || h->text[0])
		return "status or text in a greeting";
	if (h->incarnation == 0 || h->peer_incarnation == 0)
		return "greeting without an incarnation";
	if (h->attempt == 0)
		return "greeting without a number";
	return check_session(h);
}

static const char *check_refuse(const struct xtal_handshake *h)
{
	if (!xtal_msg_status_allowed(h->status) || h->status == XTAL_OK)
		return "refusal without a reason";
	if ((h->id.word[0] | h->id.word[1]) != 0)
		return "session in a refusal";
	return check_no_greeting(h);
}

static const char *check_bye(const struct xtal_handshake *h)
{
	const char *why = check_no_greeting(h);

	if (!why && !xtal_msg_status_allowed(h->status))
		why = "status that a target may not answer";
	return why ? why : check_session(h);
}

static const char *check(const uint8_t *in, const struct xtal_handshake *h)
{
	if (!xtal_handshake_is(in))
		return "not a frame of a session";
	if (in[AT_VERSION] != XTAL_MSG_VERSION)
		return "protocol version is not ours";
	if (xtal_get16(in + AT_HEADER_LENGTH) != XTAL_MSG_HEADER)
		return "header length is wrong";
	if (xtal_get16(in + AT_RESERVED) != 0 || (xtal_get16(in + AT_FLAGS) & ~FLAG_RESUME) != 0)
		return "reserved bytes are not zero";
	if ((uint32_t)h->status >= XTAL_STATUS_COUNT)
		return "unknown status";
	switch (h->type) {
	case XTAL_HELLO:
		return check_hello(h);
	case XTAL_WELCOME:
		return check_welcome(h);
	case XTAL_REFUSE:
		return check_refuse(h);
	case XTAL_BYE:
		return check_bye(h);
	}
	return "unknown type";
}

int xtal_handshake_decode(const uint8_t in[XTAL_MSG_HEADER], struct xtal_handshake *out,
			  const char **why)
{
	struct xtal_handshake h;
	const char *reason;

	read_fields(in, &h);
	reason = check(in, &h);
	if (reason) {
		if (why)
			*why = reason;
		return -EPROTO;
	}
	*out = h;
	return 0;
}
