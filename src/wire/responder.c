/* SPDX-License-Identifier: MIT */
/* The target's machine of one link. See responder.h. */
#include "wire/responder.h"

#include <errno.h>
#include <string.h>

int xtal_responder_init(struct xtal_responder *r, const struct xtal_responder_config *config)
{
	if ((config->cache_size & (config->cache_size - 1)) != 0)
		return -EINVAL;
	if (config->cache_size != 0 && !config->cache)
		return -EINVAL;
	if (config->piece == 0 || config->piece > XTAL_MSG_PIECE)
		return -EINVAL;
	*r = (struct xtal_responder){
		.config = *config,
		.seq = config->first_seq,
		.reply_seq = config->first_seq,
		.acked = config->first_seq - 1,
		.lost = config->first_seq - 1,
	};
	return 0;
}

uint64_t xtal_responder_consumed(const struct xtal_responder *r)
{
	return r->seq - 1;
}

static bool same_operation(const struct xtal_msg *a, const struct xtal_msg *b)
{
	return a->type == b->type && a->flags == b->flags && a->id == b->id &&
	       a->incarnation == b->incarnation && a->addr == b->addr && a->total == b->total &&
	       a->token == b->token && a->tid == b->tid && a->key == b->key &&
	       a->rights == b->rights && a->notify.addr == b->notify.addr &&
	       a->notify.data == b->notify.data && a->notify.tid == b->notify.tid &&
	       a->notify.token == b->notify.token;
}

/* Places the frame in its operation. Returns why it does not belong there, or NULL. *first: it
 * begins the operation, for all that we know. */
static const char *enter(struct xtal_responder *r, const struct xtal_msg *m, bool *first)
{
	bool jumped = m->seq != r->seq;
	/* An initiator that has received part of a READ asks for the rest of it. */
	bool begins = m->offset == 0 || (r->resumed && m->type == XTAL_MSG_READ);

	if (jumped && !(r->config.gaps && xtal_seq_after(m->seq, r->seq)))
		return "request is out of order";
	if (xtal_seq_after(m->ack, r->reply_seq - 1))
		return "request acknowledges a response that was never sent";
	if (m->piece > r->config.piece)
		return "piece is longer than agreed";
	if (begins) {
		r->is_ended = false;
	} else if (jumped) {
		/* earlier pieces were cancelled, so its initiator has given it up */
		r->is_ended = true;
	} else if (!r->is_open) {
		return "piece of an operation that has not begun";
	} else if (!same_operation(&r->open, m)) {
		return "piece differs from the first of its operation";
	} else if (m->offset != r->open_next) {
		return "piece does not follow the one before";
	}
	r->open_next = m->offset + m->piece;
	r->is_open = r->open_next < m->total;
	if (r->is_open && (begins || jumped))
		r->open = *m;
	r->seq = m->seq + 1;
	if (xtal_seq_after(m->ack, r->acked))
		r->acked = m->ack;
	r->resumed = false;
	*first = begins;
	return NULL;
}

static void make_reply(struct xtal_responder *r, uint64_t seq, uint64_t id, uint64_t total,
		       uint64_t now, struct xtal_msg *reply)
{
	*reply = (struct xtal_msg){
		.type = XTAL_MSG_RESPONSE,
		.seq = r->reply_seq++,
		.ack = seq,
		.id = id,
		.total = total,
		.stamp = now,
	};
}

static void remember(struct xtal_responder *r, const struct xtal_msg *reply)
{
	const struct xtal_responder_config *c = &r->config;
	struct xtal_responder_result *result;

	if (c->cache_size == 0) {
		r->lost = reply->seq;
		return;
	}
	result = &c->cache[r->cached & (c->cache_size - 1)];
	if (r->cached++ >= c->cache_size)
		r->lost = result->number;
	r->replayed = r->cached;
	*result = (struct xtal_responder_result){
		.seq = reply->ack,
		.number = reply->seq,
		.id = reply->id,
		.total = reply->total,
		.status = reply->status,
		.atomic = reply->atomic,
		.operand_size = reply->operand_size,
		.old = { reply->operand[0], reply->operand[1] },
	};
}

static void make_failure(struct xtal_responder *r, const struct xtal_responder_effect *e,
			 bool is_read, enum xtal_status status, uint64_t pause, uint64_t now,
			 struct xtal_msg *reply)
{
	make_reply(r, e->seq, e->id, e->total, now, reply);
	reply->flags = XTAL_MSG_LAST;
	reply->status = status;
	reply->operand[0] = pause;
	r->is_ended = true;
	if (!is_read)
		remember(r, reply);
}

static void drop(struct xtal_responder *r, const char *why, struct xtal_responder_effect *out)
{
	r->dropped = true;
	*out = (struct xtal_responder_effect){ .kind = XTAL_RESPONDER_DROP, .why = why };
}

static enum xtal_responder_kind kind_of(enum xtal_msg_type type)
{
	switch (type) {
	case XTAL_MSG_WRITE:
		return XTAL_RESPONDER_WRITE;
	case XTAL_MSG_READ:
		return XTAL_RESPONDER_READ;
	case XTAL_MSG_ATOMIC:
		return XTAL_RESPONDER_ATOMIC;
	case XTAL_MSG_SEND:
		return XTAL_RESPONDER_SEND;
	case XTAL_MSG_PING:
		return XTAL_RESPONDER_REPLY;
	case XTAL_MSG_RESPONSE:
	case XTAL_MSG_PONG:
		break;
	}
	return XTAL_RESPONDER_DROP;
}

/* The sender's queue of a SEND; never 0. */
static uint64_t queue_of(uint16_t flags, const struct xtal_msg_notify *notify)
{
	return UINT64_C(1) << 63 | (uint64_t)(flags & XTAL_MSG_FROM_JETTY) << 32 | notify->token;
}

/* The place of a queue among those of which a SEND was refused, or NULL. */
static uint64_t *refused(struct xtal_responder *r, uint64_t queue)
{
	for (unsigned i = 0; r->refusing != 0 && i < XTAL_RESPONDER_REFUSED; i++)
		if (r->refused[i] == queue)
			return &r->refused[i];
	return NULL;
}

static void refuse(struct xtal_responder *r, uint64_t queue)
{
	uint64_t *place = &r->refused[r->refused_at % XTAL_RESPONDER_REFUSED];

	if (refused(r, queue))
		return;
	r->refused_at++;
	r->refusing += *place == 0;
	*place = queue;
}

/*
 * A SEND begins. True: one in front of it was not received, and has not come again. Its queue is
 * what is remembered, not the SEND that it names: that one may have been given up before it came,
 * and would not be known here.
 */
static bool must_wait(struct xtal_responder *r, const struct xtal_msg *m)
{
	uint64_t *place = refused(r, queue_of(m->flags, &m->notify));

	if (!place)
		return false;
	if (m->notify.addr != 0)
		return true;
	*place = 0;
	r->refusing--;
	return false;
}

static void feed_request(struct xtal_responder *r, const struct xtal_msg *m, bool first,
			 uint64_t now, struct xtal_responder_effect *out)
{
	/* field by field, because most effects leave the reply alone */
	out->kind = kind_of(m->type);
	out->seq = m->seq;
	out->id = m->id;
	out->addr = m->addr;
	out->total = m->total;
	out->offset = m->offset;
	out->len = m->piece;
	out->first = first;
	out->last = m->offset + m->piece == m->total;
	out->token_valid = m->flags & XTAL_MSG_TOKEN;
	out->flags = m->flags;
	out->token = m->token;
	out->tid = m->tid;
	out->key = m->key;
	out->notify_valid = m->flags & XTAL_MSG_NOTIFY;
	out->notify_token_valid = m->flags & XTAL_MSG_NOTIFY_TOKEN;
	out->notify = m->notify;
	out->atomic = m->atomic;
	out->operand_size = m->operand_size;
	out->operand[0] = m->operand[0];
	out->operand[1] = m->operand[1];
	out->compare[0] = m->compare[0];
	out->compare[1] = m->compare[1];
	out->why = NULL;
	if (r->is_ended) {
		out->kind = XTAL_RESPONDER_NONE;
	} else if (m->incarnation != r->config.incarnation) {
		out->kind = XTAL_RESPONDER_REPLY;
		out->why = "request for another incarnation of this context";
		make_failure(r, out, m->type == XTAL_MSG_READ, XTAL_REMOTE_ACCESS, 0, now,
			     &out->reply);
	} else if (m->expiry != 0 && now > m->expiry) {
		out->kind = XTAL_RESPONDER_REPLY;
		out->why = "request has expired";
		if (m->type == XTAL_MSG_SEND)
			refuse(r, queue_of(m->flags, &m->notify));
		make_failure(r, out, m->type == XTAL_MSG_READ, XTAL_UNREACHABLE, 0, now,
			     &out->reply);
	} else if (m->type == XTAL_MSG_SEND && first && must_wait(r, m)) {
		out->kind = XTAL_RESPONDER_REPLY;
		out->why = "an earlier message of the queue was not received";
		make_failure(r, out, false, XTAL_NOT_READY, 0, now, &out->reply);
	} else {
		r->waiting = true;
		r->waiting_at = m->offset;
	}
}

void xtal_responder_feed(struct xtal_responder *r, const struct xtal_msg *m, uint64_t now,
			 struct xtal_responder_effect *out)
{
	const char *why;
	bool first = false;

	if (r->dropped) {
		drop(r, "link was dropped", out);
		return;
	}
	switch (kind_of(m->type)) {
	case XTAL_RESPONDER_WRITE:
	case XTAL_RESPONDER_READ:
	case XTAL_RESPONDER_ATOMIC:
	case XTAL_RESPONDER_SEND:
		why = r->waiting ? "request before the one in front was executed"
				 : enter(r, m, &first);
		if (why)
			drop(r, why, out);
		else
			feed_request(r, m, first, now, out);
		return;
	case XTAL_RESPONDER_REPLY:
		*out = (struct xtal_responder_effect){
			.kind = XTAL_RESPONDER_REPLY,
			.id = m->id,
			.reply = {
				.type = XTAL_MSG_PONG,
				.ack = r->seq - 1,
				.id = m->id,
				.stamp = now,
			},
		};
		return;
	case XTAL_RESPONDER_NONE:
	case XTAL_RESPONDER_DROP:
		break;
	}
	drop(r, "answer where a request was due", out);
}

bool xtal_responder_result(struct xtal_responder *r, const struct xtal_responder_effect *effect,
			   enum xtal_status status, const uint64_t old[2], uint64_t now,
			   struct xtal_msg *reply)
{
	const struct xtal_responder_effect *e = effect;

	if (!r->waiting || r->dropped)
		return false;
	r->waiting = false;
	if (!xtal_msg_status_allowed(status))
		status = XTAL_REMOTE_OPERATION;
	if (status != XTAL_OK) {
		uint64_t pause = 0;

		if (e->kind == XTAL_RESPONDER_SEND)
			refuse(r, queue_of(e->flags, &e->notify));
		if (e->kind == XTAL_RESPONDER_SEND && status == XTAL_NOT_READY) {
			pause = !old                          ? 0
				: old[0] < XTAL_MSG_MAX_PAUSE ? old[0]
							      : XTAL_MSG_MAX_PAUSE;
		}
		make_failure(r, e, e->kind == XTAL_RESPONDER_READ, status, pause, now, reply);
		return true;
	}
	if ((e->kind == XTAL_RESPONDER_WRITE || e->kind == XTAL_RESPONDER_SEND) && !e->last)
		return false;
	make_reply(r, e->seq, e->id, e->total, now, reply);
	if (e->last)
		reply->flags = XTAL_MSG_LAST;
	if (e->kind == XTAL_RESPONDER_READ) {
		reply->offset = e->offset;
		reply->piece = reply->payload = e->len;
		return true;
	}
	if (e->kind == XTAL_RESPONDER_ATOMIC) {
		reply->atomic = e->atomic;
		reply->operand_size = e->operand_size;
		reply->operand[0] = old[0];
		reply->operand[1] = e->operand_size == 16 ? old[1] : 0;
		if (e->operand_size < 8)
			reply->operand[0] &= (UINT64_C(1) << (8 * e->operand_size)) - 1;
	}
	remember(r, reply);
	return true;
}

int xtal_responder_resume(struct xtal_responder *r, uint64_t received)
{
	uint64_t kept = r->cached < r->config.cache_size ? r->cached : r->config.cache_size;

	if (r->dropped || xtal_seq_after(received, r->reply_seq - 1) ||
	    xtal_seq_after(r->acked, received) || xtal_seq_after(r->lost, received))
		return -EPROTO;
	if (r->waiting) {
		r->waiting = false;
		r->seq--;
		r->open_next = r->waiting_at;
		r->is_open = r->waiting_at != 0;
	}
	r->acked = received;
	r->reply_seq = received + 1;
	r->resumed = true;
	r->replayed = r->cached - kept;
	while (r->replayed != r->cached &&
	       !xtal_seq_after(r->config.cache[r->replayed & (r->config.cache_size - 1)].number,
			       received))
		r->replayed++;
	return 0;
}

bool xtal_responder_replay(struct xtal_responder *r, uint64_t now, struct xtal_msg *reply)
{
	struct xtal_responder_result *c;

	if (r->replayed == r->cached)
		return false;
	c = &r->config.cache[r->replayed++ & (r->config.cache_size - 1)];
	make_reply(r, c->seq, c->id, c->total, now, reply);
	reply->flags = XTAL_MSG_LAST;
	reply->status = c->status;
	reply->atomic = c->atomic;
	reply->operand_size = c->operand_size;
	reply->operand[0] = c->old[0];
	reply->operand[1] = c->old[1];
	c->number = reply->seq;
	return true;
}
