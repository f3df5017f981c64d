/* SPDX-License-Identifier: MIT */
/* The short form of SENDs and answers. See short.h. */
#include "wire/short.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

enum kind {
	KIND_SEND = 1,
	KIND_SEND_IMM = 2,
	KIND_ANSWER = 3,
};

/* In the second byte of a SEND. */
enum mark {
	MARK_SOLICITED = 1,
	MARK_FOLLOWS = 2, /* notify.addr is the model's id; else 0 */
};

/* Where each field begins. */
enum offset {
	AT_KIND = 0,
	/* SEND: */
	AT_MARKS = 1,
	AT_LENGTH = 2,
	AT_PLACE = 3,
	AT_SEQ_LOW = 4,
	AT_ACK_LOW = 8,
	AT_MODEL = 12, /* low half of its number */
	AT_ID = 16,
	AT_EXPIRY = 24,
	AT_DATA = 32, /* an immediate value comes first */
	/* ANSWER: its id is where a SEND's is */
	AT_RESERVED = 1,
	AT_TOTAL = 8,
	AT_STAMP = 24,
	AT_SEQ = 32,
	AT_ACK = 40,
};

static unsigned place_of(const struct xtal_msg *m)
{
	return (m->notify.token ^ m->key ^ m->key >> 16) % XTAL_SHORT_MODELS;
}

void xtal_short_note(struct xtal_short_models *models, const struct xtal_msg *m)
{
	if (models && m->type == XTAL_MSG_SEND && m->piece == m->total)
		models->model[place_of(m)] = *m;
}

/* A number as the 32 bits of it that are told, and one that is near. */
static bool is_near(uint64_t v, uint64_t known)
{
	return v - known + (UINT64_C(1) << 31) <= UINT32_MAX;
}

static uint64_t restore(uint32_t low, uint64_t known)
{
	return known + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)known);
}

static bool is_like(const struct xtal_msg *model, const struct xtal_msg *m)
{
	return model->type == XTAL_MSG_SEND &&
	       ((model->flags ^ m->flags) & ~XTAL_MSG_SOLICITED) == 0 &&
	       model->incarnation == m->incarnation && model->token == m->token &&
	       model->tid == m->tid && model->key == m->key && model->operand[1] == m->operand[1] &&
	       model->compare[0] == m->compare[0] && model->compare[1] == m->compare[1] &&
	       model->notify.tid == m->notify.tid && model->notify.token == m->notify.token &&
	       is_near(m->seq, model->seq) && is_near(m->ack, model->ack) &&
	       (m->notify.addr == 0 || m->notify.addr == model->id);
}

/* What every further SEND may change of its model. */
static void renew(struct xtal_msg *model, const struct xtal_msg *m)
{
	model->seq = m->seq;
	model->ack = m->ack;
	model->id = m->id;
}

static bool encode_send(struct xtal_short_models *models, const struct xtal_msg *m,
			const uint8_t *payload, uint8_t *out)
{
	const unsigned place = place_of(m);
	struct xtal_msg *model = models ? &models->model[place] : NULL;
	const bool imm = m->operand_size == XTAL_MSG_SEND_IMM;
	const unsigned head = imm ? 8 : 0;

	if (!model || m->total > XTAL_SHORT_PAYLOAD - head || m->piece != m->total ||
	    (!imm && m->operand_size != XTAL_MSG_SEND_PLAIN) || !is_like(model, m))
		return false;
	out[AT_KIND] = imm ? KIND_SEND_IMM : KIND_SEND;
	out[AT_MARKS] = (uint8_t)((m->flags & XTAL_MSG_SOLICITED ? MARK_SOLICITED : 0) |
				  (m->notify.addr != 0 ? MARK_FOLLOWS : 0));
	out[AT_LENGTH] = (uint8_t)m->total;
	out[AT_PLACE] = (uint8_t)place;
	xtal_put32(out + AT_SEQ_LOW, (uint32_t)m->seq);
	xtal_put32(out + AT_ACK_LOW, (uint32_t)m->ack);
	xtal_put32(out + AT_MODEL, (uint32_t)model->seq);
	xtal_put64(out + AT_ID, m->id);
	xtal_put64(out + AT_EXPIRY, m->expiry);
	if (imm)
		xtal_put64(out + AT_DATA, m->operand[0]);
	memcpy(out + AT_DATA + head, payload, m->total);
	renew(model, m);
	return true;
}

static bool encode_answer(const struct xtal_msg *m, uint8_t *out)
{
	if (m->status != XTAL_OK || m->flags != XTAL_MSG_LAST || m->piece != 0 ||
	    m->atomic != XTAL_MSG_NO_ATOMIC)
		return false;
	memset(out, 0, AT_TOTAL);
	out[AT_KIND] = KIND_ANSWER;
	xtal_put64(out + AT_TOTAL, m->total);
	xtal_put64(out + AT_ID, m->id);
	xtal_put64(out + AT_STAMP, m->stamp);
	xtal_put64(out + AT_SEQ, m->seq);
	xtal_put64(out + AT_ACK, m->ack);
	return true;
}

bool xtal_short_encode(struct xtal_short_models *models, const struct xtal_msg *m,
		       const uint8_t *payload, uint8_t out[XTAL_SHORT_BYTES])
{
	if (m->type == XTAL_MSG_SEND)
		return encode_send(models, m, payload, out);
	return m->type == XTAL_MSG_RESPONSE && encode_answer(m, out);
}

static const char *decode_send(struct xtal_short_models *models, const uint8_t *in,
			       struct xtal_msg *out, const uint8_t **payload)
{
	const bool imm = in[AT_KIND] == KIND_SEND_IMM;
	const unsigned head = imm ? 8 : 0, len = in[AT_LENGTH], marks = in[AT_MARKS];
	struct xtal_msg *model;

	if (!models || in[AT_PLACE] >= XTAL_SHORT_MODELS)
		return "model that there is not";
	model = &models->model[in[AT_PLACE]];
	if (model->type != XTAL_MSG_SEND || xtal_get32(in + AT_MODEL) != (uint32_t)model->seq)
		return "model is another one";
	if (marks & ~(unsigned)(MARK_SOLICITED | MARK_FOLLOWS))
		return "unknown mark";
	if (marks & MARK_FOLLOWS && model->id == 0)
		return "follows a message without an id";
	if (len > XTAL_SHORT_PAYLOAD - head)
		return "payload is too long";
	*out = *model;
	out->flags = (uint16_t)((model->flags & ~XTAL_MSG_SOLICITED) |
				(marks & MARK_SOLICITED ? XTAL_MSG_SOLICITED : 0));
	out->operand_size = imm ? XTAL_MSG_SEND_IMM : XTAL_MSG_SEND_PLAIN;
	out->seq = restore(xtal_get32(in + AT_SEQ_LOW), model->seq);
	out->ack = restore(xtal_get32(in + AT_ACK_LOW), model->ack);
	out->id = xtal_get64(in + AT_ID);
	out->total = out->piece = out->payload = len;
	out->operand[0] = imm ? xtal_get64(in + AT_DATA) : 0;
	out->notify.addr = marks & MARK_FOLLOWS ? model->id : 0;
	out->notify.data = 0;
	out->expiry = xtal_get64(in + AT_EXPIRY);
	out->stamp = 0;
	*payload = in + AT_DATA + head;
	renew(model, out);
	return NULL;
}

static const char *decode_answer(const uint8_t *in, struct xtal_msg *out)
{
	for (unsigned i = AT_RESERVED; i < AT_TOTAL; i++)
		if (in[i] != 0)
			return "reserved bytes are not zero";
	*out = (struct xtal_msg){
		.type = XTAL_MSG_RESPONSE,
		.flags = XTAL_MSG_LAST,
		.seq = xtal_get64(in + AT_SEQ),
		.ack = xtal_get64(in + AT_ACK),
		.id = xtal_get64(in + AT_ID),
		.total = xtal_get64(in + AT_TOTAL),
		.stamp = xtal_get64(in + AT_STAMP),
	};
	return NULL;
}

int xtal_short_decode(struct xtal_short_models *models, const uint8_t in[XTAL_SHORT_BYTES],
		      struct xtal_msg *out, const uint8_t **payload, const char **why)
{
	const char *reason = "unknown short form";

	*payload = NULL;
	if (in[AT_KIND] == KIND_SEND || in[AT_KIND] == KIND_SEND_IMM)
		reason = decode_send(models, in, out, payload);
	else if (in[AT_KIND] == KIND_ANSWER)
		reason = decode_answer(in, out);
	if (!reason)
		return 0;
	if (why)
		*why = reason;
	return -EPROTO;
}
