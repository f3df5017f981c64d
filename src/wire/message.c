/* SPDX-License-Identifier: MIT */
/* Encoding, decoding and the rules that a single frame must keep. See message.h. */
#include "wire/message.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

/* Where each field begins. */
enum offset {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_TYPE = 5,
	AT_FLAGS = 6,
	AT_HEADER_LENGTH = 8,
	AT_ATOMIC = 10,
	AT_OPERAND_SIZE = 11,
	AT_STATUS = 12,
	AT_SEQ = 16,
	AT_ACK = 24,
	AT_ID = 32,
	AT_INCARNATION = 40,
	AT_ADDR = 48,
	AT_TOTAL = 56,
	AT_OFFSET = 64,
	AT_PIECE = 72,
	AT_PAYLOAD = 80,
	AT_TOKEN = 88,
	AT_TID = 92,
	AT_KEY = 96,
	AT_RIGHTS = 100,
	AT_OPERAND = 104,
	AT_COMPARE = 120,
	AT_NOTIFY_ADDR = 136,
	AT_NOTIFY_DATA = 144,
	AT_NOTIFY_TID = 152,
	AT_NOTIFY_TOKEN = 156,
	AT_EXPIRY = 160,
	AT_STAMP = 168,
	AT_RESERVED = 176,
};

#define RIGHTS (XTAL_MSG_RIGHT_READ | XTAL_MSG_RIGHT_WRITE | XTAL_MSG_RIGHT_ATOMIC)

bool xtal_msg_status_allowed(enum xtal_status status)
{
	switch (status) {
	case XTAL_OK:
	case XTAL_REMOTE_LENGTH:
	case XTAL_REMOTE_UNSUPPORTED:
	case XTAL_REMOTE_OPERATION:
	case XTAL_REMOTE_ACCESS:
	case XTAL_UNREACHABLE:
	case XTAL_NOT_READY:
	case XTAL_REMOTE_POISON:
		return true;
	case XTAL_UNSUPPORTED:
	case XTAL_LOCAL_LENGTH:
	case XTAL_LOCAL_OPERATION:
	case XTAL_LOCAL_ACCESS:
	case XTAL_FLUSHED:
	case XTAL_SUSPEND_DONE:
	case XTAL_FLUSH_DONE:
	case XTAL_UNHANDLED:
	case XTAL_LOCAL_POISON:
		return false;
	}
	return false;
}

static const char *check_operand(const uint64_t v[2], unsigned size)
{
	if (size < 16 && v[1] != 0)
		return "operand is wider than its size";
	if (size < 8 && (v[0] >> (8 * size)) != 0)
		return "operand is wider than its size";
	return NULL;
}

static bool atomic_size_valid(enum xtal_msg_atomic atomic, unsigned size)
{
	switch (atomic) {
	case XTAL_MSG_NO_ATOMIC:
		return size == 0;
	case XTAL_MSG_CAS:
		return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
	case XTAL_MSG_FAA:
	case XTAL_MSG_SWAP:
	case XTAL_MSG_SUB:
	case XTAL_MSG_AND:
	case XTAL_MSG_OR:
	case XTAL_MSG_XOR:
		return size == 1 || size == 2 || size == 4 || size == 8;
	}
	return false;
}

/* The part of its operation that the frame is about. */
static const char *check_piece(const struct xtal_msg *m)
{
	if (m->offset > m->total)
		return "offset is beyond the operation";
	if (m->piece > m->total - m->offset)
		return "piece reaches beyond the operation";
	if (m->piece > XTAL_MSG_PIECE)
		return "piece is too long";
	return NULL;
}

static const char *check_no_atomic(const struct xtal_msg *m)
{
	if (m->atomic != XTAL_MSG_NO_ATOMIC)
		return "atomic kind in a frame that has none";
	if (m->operand_size != 0)
		return "operand size in a frame that has none";
	if ((m->operand[0] | m->operand[1]) != 0)
		return "operand in a frame that has none";
	return NULL;
}

static const char *check_no_compare(const struct xtal_msg *m)
{
	if ((m->compare[0] | m->compare[1]) != 0)
		return "compare value in a frame that has none";
	return NULL;
}

static const char *check_notify(const struct xtal_msg *m)
{
	const struct xtal_msg_notify *n = &m->notify;

	if (!(m->flags & XTAL_MSG_NOTIFY)) {
		if (m->flags & XTAL_MSG_NOTIFY_TOKEN)
			return "notify token without a notify word";
		if (n->addr != 0 || n->data != 0 || n->tid != 0 || n->token != 0)
			return "notify fields without the flag";
		return NULL;
	}
	if (n->addr > UINT64_MAX - 8)
		return "notify address overflows";
	if (!(m->flags & XTAL_MSG_NOTIFY_TOKEN) && n->token != 0)
		return "notify token without the flag";
	return NULL;
}

/* What all one-sided requests have in common. */
static const char *check_request(const struct xtal_msg *m, unsigned flags)
{
	const char *why;

	if (m->flags & ~flags)
		return "flag does not belong to this type";
	if (m->status != XTAL_OK)
		return "status in a request";
	if (m->addr > UINT64_MAX - m->total)
		return "address range overflows";
	why = check_piece(m);
	if (why)
		return why;
	if (m->piece == 0 && m->total != 0)
		return "empty piece";
	if (!(m->flags & XTAL_MSG_TOKEN) && m->token != 0)
		return "token without the flag";
	if (m->rights & ~(uint32_t)RIGHTS)
		return "unknown right";
	return check_notify(m);
}

static const char *check_write(const struct xtal_msg *m)
{
	const char *why =
		check_request(m, XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY | XTAL_MSG_NOTIFY_TOKEN);

	if (why)
		return why;
	if (m->payload != m->piece)
		return "payload is not the piece";
	why = check_no_atomic(m);
	return why ? why : check_no_compare(m);
}

static const char *check_read(const struct xtal_msg *m)
{
	const char *why = check_request(m, XTAL_MSG_TOKEN);

	if (why)
		return why;
	if (m->payload != 0)
		return "payload in a read request";
	why = check_no_atomic(m);
	return why ? why : check_no_compare(m);
}

static const char *check_atomic(const struct xtal_msg *m)
{
	const char *why = check_request(m, XTAL_MSG_TOKEN);

	if (why)
		return why;
	if (m->payload != 0)
		return "payload in an atomic";
	if (m->atomic == XTAL_MSG_NO_ATOMIC)
		return "atomic kind missing";
	if (!atomic_size_valid(m->atomic, m->operand_size))
		return "operand size does not fit the atomic kind";
	if (m->total != m->operand_size || m->piece != m->total)
		return "length of an atomic is not its operand size";
	why = check_operand(m->operand, m->operand_size);
	if (why)
		return why;
	if (m->atomic != XTAL_MSG_CAS)
		return check_no_compare(m);
	return check_operand(m->compare, m->operand_size);
}

static const char *check_send(const struct xtal_msg *m)
{
	const unsigned flags =
		XTAL_MSG_TOKEN | XTAL_MSG_SOLICITED | XTAL_MSG_TO_JETTY | XTAL_MSG_FROM_JETTY;
	const char *why;

	if (m->flags & ~flags)
		return "flag does not belong to this type";
	if (m->status != XTAL_OK)
		return "status in a request";
	if (m->addr != 0)
		return "address in a send";
	why = check_piece(m);
	if (why)
		return why;
	if (m->piece == 0 && m->total != 0)
		return "empty piece";
	if (m->payload != m->piece)
		return "payload is not the piece";
	if (!(m->flags & XTAL_MSG_TOKEN) && m->token != 0)
		return "token without the flag";
	if (m->rights != 0)
		return "right in a send";
	if (m->atomic != XTAL_MSG_NO_ATOMIC)
		return "atomic kind in a frame that has none";
	if (m->operand_size < XTAL_MSG_SEND_PLAIN || m->operand_size > XTAL_MSG_SEND_WRITTEN)
		return "unknown kind of send";
	if (m->operand_size == XTAL_MSG_SEND_PLAIN && m->operand[0] != 0)
		return "immediate value in a send that has none";
	if (m->operand[1] > UINT8_MAX)
		return "operand of a send is no hint";
	if (m->operand_size == XTAL_MSG_SEND_WRITTEN ? m->total != 0 : m->notify.data != 0)
		return "length of a write does not belong to this kind of send";
	return NULL;
}

/* Fields that only requests have. */
static const char *check_no_request(const struct xtal_msg *m)
{
	if (m->incarnation != 0)
		return "incarnation in an answer";
	if (m->addr != 0)
		return "address in an answer";
	if (m->token != 0 || m->tid != 0 || m->key != 0)
		return "segment in an answer";
	if (m->rights != 0)
		return "rights in an answer";
	if (m->expiry != 0)
		return "expiry in an answer";
	if (check_no_compare(m))
		return "compare value in an answer";
	return check_notify(m);
}

static const char *check_response(const struct xtal_msg *m)
{
	const char *why;
	bool last = m->flags & XTAL_MSG_LAST;

	if (m->flags & ~XTAL_MSG_LAST)
		return "flag does not belong to this type";
	if (!xtal_msg_status_allowed(m->status))
		return "status that a target may not answer";
	why = check_no_request(m);
	if (!why)
		why = check_piece(m);
	if (why)
		return why;
	if (m->payload != m->piece)
		return "payload is not the piece";
	if (m->piece == 0 && m->offset != 0)
		return "offset without a piece";
	if (!last && (m->piece == 0 || m->piece == m->total - m->offset))
		return "final response without its flag";
	if (last && m->piece != 0 && m->piece != m->total - m->offset)
		return "last response does not end the operation";
	if (m->status != XTAL_OK && (!last || m->piece != 0))
		return "failed response with data";
	if (m->status == XTAL_NOT_READY && m->atomic == XTAL_MSG_NO_ATOMIC && !m->operand_size)
		return m->operand[1] != 0 || m->operand[0] > XTAL_MSG_MAX_PAUSE
			       ? "operand of a receiver that is not ready is no pause"
			       : NULL;
	if (m->atomic == XTAL_MSG_NO_ATOMIC)
		return check_no_atomic(m);
	if (m->status != XTAL_OK)
		return "failed response with a value";
	if (!atomic_size_valid(m->atomic, m->operand_size))
		return "operand size does not fit the atomic kind";
	if (m->total != m->operand_size || m->piece != 0)
		return "length of an atomic is not its operand size";
	return check_operand(m->operand, m->operand_size);
}

static const char *check_ping(const struct xtal_msg *m)
{
	const char *why;

	if (m->flags != 0)
		return "flag does not belong to this type";
	if (m->status != XTAL_OK)
		return "status in a ping";
	if (m->seq != 0)
		return "ping with a number";
	why = check_no_request(m);
	if (why)
		return why;
	if ((m->total | m->offset | m->piece | m->payload) != 0)
		return "length in a ping";
	return check_no_atomic(m);
}

const char *xtal_msg_check(const struct xtal_msg *m)
{
	switch (m->type) {
	case XTAL_MSG_WRITE:
		return check_write(m);
	case XTAL_MSG_READ:
		return check_read(m);
	case XTAL_MSG_ATOMIC:
		return check_atomic(m);
	case XTAL_MSG_SEND:
		return check_send(m);
	case XTAL_MSG_RESPONSE:
		return check_response(m);
	case XTAL_MSG_PING:
	case XTAL_MSG_PONG:
		return check_ping(m);
	}
	return "unknown type";
}

void xtal_msg_encode(const struct xtal_msg *m, uint8_t out[XTAL_MSG_HEADER])
{
	xtal_put32(out + AT_MAGIC, XTAL_MSG_MAGIC);
	out[AT_VERSION] = XTAL_MSG_VERSION;
	out[AT_TYPE] = (uint8_t)m->type;
	xtal_put16(out + AT_FLAGS, m->flags);
	xtal_put16(out + AT_HEADER_LENGTH, XTAL_MSG_HEADER);
	out[AT_ATOMIC] = (uint8_t)m->atomic;
	out[AT_OPERAND_SIZE] = m->operand_size;
	xtal_put32(out + AT_STATUS, (uint32_t)m->status);
	xtal_put64(out + AT_SEQ, m->seq);
	xtal_put64(out + AT_ACK, m->ack);
	xtal_put64(out + AT_ID, m->id);
	xtal_put64(out + AT_INCARNATION, m->incarnation);
	xtal_put64(out + AT_ADDR, m->addr);
	xtal_put64(out + AT_TOTAL, m->total);
	xtal_put64(out + AT_OFFSET, m->offset);
	xtal_put64(out + AT_PIECE, m->piece);
	xtal_put64(out + AT_PAYLOAD, m->payload);
	xtal_put32(out + AT_TOKEN, m->token);
	xtal_put32(out + AT_TID, m->tid);
	xtal_put32(out + AT_KEY, m->key);
	xtal_put32(out + AT_RIGHTS, m->rights);
	xtal_put64(out + AT_OPERAND, m->operand[0]);
	xtal_put64(out + AT_OPERAND + 8, m->operand[1]);
	xtal_put64(out + AT_COMPARE, m->compare[0]);
	xtal_put64(out + AT_COMPARE + 8, m->compare[1]);
	xtal_put64(out + AT_NOTIFY_ADDR, m->notify.addr);
	xtal_put64(out + AT_NOTIFY_DATA, m->notify.data);
	xtal_put32(out + AT_NOTIFY_TID, m->notify.tid);
	xtal_put32(out + AT_NOTIFY_TOKEN, m->notify.token);
	xtal_put64(out + AT_EXPIRY, m->expiry);
	xtal_put64(out + AT_STAMP, m->stamp);
	memset(out + AT_RESERVED, 0, XTAL_MSG_HEADER - AT_RESERVED);
}

/* What makes it a header of ours at all. */
static const char *check_frame(const uint8_t *in, size_t avail)
{
	if (avail < XTAL_MSG_HEADER)
		return "frame is shorter than a header";
	if (xtal_get32(in + AT_MAGIC) == __builtin_bswap32(XTAL_MSG_MAGIC))
		return "peer writes in the other byte order";
	if (xtal_get32(in + AT_MAGIC) != XTAL_MSG_MAGIC)
		return "magic number is wrong";
	if (in[AT_VERSION] != XTAL_MSG_VERSION)
		return "protocol version is not ours";
	if (xtal_get16(in + AT_HEADER_LENGTH) != XTAL_MSG_HEADER)
		return "header length is wrong";
	if (xtal_get32(in + AT_STATUS) >= XTAL_STATUS_COUNT)
		return "unknown status";
	if ((xtal_get64(in + AT_RESERVED) | xtal_get64(in + AT_RESERVED + 8)) != 0)
		return "reserved bytes are not zero";
	return NULL;
}

/* Reads all fields; what they mean is checked afterwards. */
static void read_fields(const uint8_t *in, struct xtal_msg *m)
{
	m->type = (enum xtal_msg_type)in[AT_TYPE];
	m->flags = xtal_get16(in + AT_FLAGS);
	m->atomic = (enum xtal_msg_atomic)in[AT_ATOMIC];
	m->operand_size = in[AT_OPERAND_SIZE];
	m->status = (enum xtal_status)xtal_get32(in + AT_STATUS);
	m->seq = xtal_get64(in + AT_SEQ);
	m->ack = xtal_get64(in + AT_ACK);
	m->id = xtal_get64(in + AT_ID);
	m->incarnation = xtal_get64(in + AT_INCARNATION);
	m->addr = xtal_get64(in + AT_ADDR);
	m->total = xtal_get64(in + AT_TOTAL);
	m->offset = xtal_get64(in + AT_OFFSET);
	m->piece = xtal_get64(in + AT_PIECE);
	m->payload = xtal_get64(in + AT_PAYLOAD);
	m->token = xtal_get32(in + AT_TOKEN);
	m->tid = xtal_get32(in + AT_TID);
	m->key = xtal_get32(in + AT_KEY);
	m->rights = xtal_get32(in + AT_RIGHTS);
	m->operand[0] = xtal_get64(in + AT_OPERAND);
	m->operand[1] = xtal_get64(in + AT_OPERAND + 8);
	m->compare[0] = xtal_get64(in + AT_COMPARE);
	m->compare[1] = xtal_get64(in + AT_COMPARE + 8);
	m->notify.addr = xtal_get64(in + AT_NOTIFY_ADDR);
	m->notify.data = xtal_get64(in + AT_NOTIFY_DATA);
	m->notify.tid = xtal_get32(in + AT_NOTIFY_TID);
	m->notify.token = xtal_get32(in + AT_NOTIFY_TOKEN);
	m->expiry = xtal_get64(in + AT_EXPIRY);
	m->stamp = xtal_get64(in + AT_STAMP);
}

/* *payload: what the carrier knows, or NULL. */
static int decode(const uint8_t *in, size_t avail, const uint64_t *payload, struct xtal_msg *out,
		  const char **why)
{
	const char *reason = check_frame(in, avail);
	struct xtal_msg m;

	if (!reason) {
		read_fields(in, &m);
		reason = xtal_msg_check(&m);
		if (!reason && payload && m.payload != *payload)
			reason = "payload length is not the carrier's";
	}
	if (reason) {
		if (why)
			*why = reason;
		return -EPROTO;
	}
	*out = m;
	return 0;
}

int xtal_msg_decode(const uint8_t *in, size_t avail, struct xtal_msg *out, const char **why)
{
	return decode(in, avail, NULL, out, why);
}

int xtal_msg_decode_frame(const uint8_t *in, uint64_t payload, struct xtal_msg *out,
			  const char **why)
{
	return decode(in, XTAL_MSG_HEADER, &payload, out, why);
}
