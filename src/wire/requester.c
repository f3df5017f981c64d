/* SPDX-License-Identifier: MIT */
/* The initiator's machine of one link. See requester.h. */
#include "wire/requester.h"

#include <errno.h>
#include <string.h>

static struct xtal_requester_slot *slot_at(const struct xtal_requester *r, uint64_t index)
{
	return &r->config.slots[index & (r->config.window - 1)];
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t deadline_of(const struct xtal_requester *r, const struct xtal_requester_slot *s)
{
	uint64_t moved;

	if (s->request.limit == 0 || r->progress_at == 0)
		return s->request.deadline;
	moved = add_saturated(r->progress_at, s->request.limit);
	return moved > s->request.deadline ? moved : s->request.deadline;
}

/* The deadline less the margin, in the target's clock. It is safe because the target's clock
 * showed peer_stamp no later than ours showed peer_stamp_at. */
static uint64_t lease_of(const struct xtal_requester *r, const struct xtal_requester_slot *s)
{
	const struct xtal_requester_config *c = &r->config;
	uint64_t deadline = deadline_of(r, s);
	uint64_t spent = add_saturated(c->peer_stamp_at, c->margin);

	if (deadline == XTAL_NO_DEADLINE || c->peer_stamp == 0)
		return 0;
	if (deadline <= spent)
		return c->peer_stamp;
	return add_saturated(c->peer_stamp, deadline - spent);
}

static uint64_t next_piece(const struct xtal_requester *r, const struct xtal_requester_slot *s)
{
	uint64_t left = s->request.len - s->framed;

	/* an atomic is never cut, it has no payload */
	if (s->request.type == XTAL_MSG_ATOMIC || left <= r->config.piece)
		return left;
	return r->config.piece;
}

static void free_slot(struct xtal_requester *r, struct xtal_requester_slot *s)
{
	s->state = XTAL_SLOT_FREE;
	while (r->head != r->tail && slot_at(r, r->head)->state == XTAL_SLOT_FREE)
		r->head++;
}

int xtal_requester_init(struct xtal_requester *r, const struct xtal_requester_config *config)
{
	if (config->window == 0 || (config->window & (config->window - 1)) != 0)
		return -EINVAL;
	if (config->piece == 0 || config->piece > XTAL_MSG_PIECE || !config->slots)
		return -EINVAL;
	*r = (struct xtal_requester){
		.config = *config,
		.seq = config->first_seq,
		.response_seq = config->first_seq,
		.acked = config->first_seq - 1,
	};
	memset(config->slots, 0, config->window * sizeof(config->slots[0]));
	return 0;
}

bool xtal_requester_can_submit(const struct xtal_requester *r)
{
	return !r->closed && r->tail - r->head < r->config.window;
}

static void narrow(uint64_t v[2], unsigned size)
{
	if (size < 16)
		v[1] = 0;
	if (size < 8)
		v[0] &= (UINT64_C(1) << (8 * size)) - 1;
}

static void make_frame(const struct xtal_requester *r, const struct xtal_requester_slot *s,
		       uint64_t now, struct xtal_msg *out)
{
	const struct xtal_request *q = &s->request;
	uint64_t piece = next_piece(r, s);

	*out = (struct xtal_msg){
		.type = q->type,
		.flags = q->flags,
		.atomic = q->atomic,
		.operand_size = q->operand_size,
		.seq = r->seq,
		.ack = r->response_seq - 1,
		.id = q->cookie,
		.incarnation = r->config.incarnation,
		.addr = q->addr,
		.total = q->len,
		.offset = s->framed,
		.piece = piece,
		.payload = q->type == XTAL_MSG_WRITE ? piece : 0,
		.token = q->token,
		.tid = q->tid,
		.key = q->key,
		.rights = q->rights,
		.operand = { q->operand[0], q->operand[1] },
		.compare = { q->compare[0], q->compare[1] },
		.notify = q->notify,
		.expiry = lease_of(r, s),
		.stamp = now,
	};
}

int xtal_requester_submit(struct xtal_requester *r, const struct xtal_request *request)
{
	struct xtal_requester_slot *s = slot_at(r, r->tail);
	struct xtal_msg first;

	if (r->closed)
		return -EPIPE;
	if (!xtal_requester_can_submit(r))
		return -EAGAIN;
	if (request->type == XTAL_MSG_RESPONSE || request->type == XTAL_MSG_PING ||
	    request->type == XTAL_MSG_PONG)
		return -EINVAL;
	s->request = *request;
	if (request->type == XTAL_MSG_ATOMIC) {
		s->request.len = request->operand_size;
		narrow(s->request.operand, request->operand_size);
		narrow(s->request.compare, request->operand_size);
	}
	s->frames = s->framed = s->received = 0;
	s->all_framed = false;
	make_frame(r, s, 0, &first);
	if (xtal_msg_check(&first))
		return -EINVAL;
	s->state = XTAL_SLOT_OPEN;
	r->tail++;
	return 0;
}

/* The slot whose frame is the next to send, or NULL. */
static struct xtal_requester_slot *slot_to_frame(const struct xtal_requester *r)
{
	uint64_t i = r->next - r->head > r->tail - r->head ? r->head : r->next;

	for (; i != r->tail; i++) {
		struct xtal_requester_slot *s = slot_at(r, i);

		if (s->state == XTAL_SLOT_OPEN && !s->all_framed)
			return s;
	}
	return NULL;
}

bool xtal_requester_next_frame(const struct xtal_requester *r, uint64_t now,
			       struct xtal_requester_frame *out)
{
	const struct xtal_requester_slot *s = slot_to_frame(r);

	if (!s || r->closed)
		return false;
	make_frame(r, s, now, &out->msg);
	out->cookie = s->request.cookie;
	out->local_offset = s->framed;
	out->last = s->framed + out->msg.piece == s->request.len;
	return true;
}

void xtal_requester_sent(struct xtal_requester *r)
{
	struct xtal_requester_slot *s = slot_to_frame(r);

	if (!s)
		return;
	if (s->frames == 0)
		s->first_seq = r->seq;
	s->framed += next_piece(r, s);
	s->all_framed = s->framed == s->request.len;
	s->frames++;
	r->seq++;
	if (r->next - r->head > r->tail - r->head)
		r->next = r->head;
	while (r->next != r->tail) {
		const struct xtal_requester_slot *n = slot_at(r, r->next);

		if (n->state == XTAL_SLOT_OPEN && !n->all_framed)
			break;
		r->next++;
	}
}

void xtal_requester_progress(struct xtal_requester *r, uint64_t seq, uint64_t now)
{
	if (!xtal_seq_after(seq, r->acked) || xtal_seq_after(seq, r->seq - 1))
		return;
	r->acked = seq;
	r->progress_at = now;
}

static void note_stamp(struct xtal_requester *r, const struct xtal_msg *m, uint64_t now)
{
	if (m->stamp == 0)
		return;
	r->config.peer_stamp = m->stamp;
	r->config.peer_stamp_at = now;
}

/*
 * The slot whose frame m answers; those before it, which have been given up, have been passed
 * over. NULL: there is none, or an open one would be passed over.
 */
static struct xtal_requester_slot *slot_answered(const struct xtal_requester *r,
						 const struct xtal_msg *m, uint64_t *index,
						 const char **why)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = slot_at(r, i);

		if (s->state == XTAL_SLOT_FREE)
			continue;
		if (s->frames == 0 || xtal_seq_after(s->first_seq, m->ack))
			break;
		if (m->ack - s->first_seq < s->frames) {
			*index = i;
			return s;
		}
		if (s->state == XTAL_SLOT_OPEN) {
			*why = "response passes over an operation";
			return NULL;
		}
	}
	*why = "response to a frame that awaits none";
	return NULL;
}

static const char *check_answer(const struct xtal_requester *r, const struct xtal_requester_slot *s,
				const struct xtal_msg *m)
{
	const struct xtal_request *q = &s->request;
	uint64_t frame = m->ack - s->first_seq;
	uint64_t want;

	if (m->id != q->cookie)
		return "response with another operation's id";
	if (m->total != q->len)
		return "response with another length";
	if (q->type == XTAL_MSG_READ && frame * r->config.piece != s->received)
		return "response to a piece that is not the next";
	if (m->status != XTAL_OK)
		return NULL;
	if (m->atomic != q->atomic || m->operand_size != q->operand_size)
		return "response to another kind of operation";
	if (q->type != XTAL_MSG_READ) {
		if (m->payload != 0)
			return "response with data nobody asked for";
		return s->all_framed && frame + 1 == s->frames
			       ? NULL
			       : "success before the operation was sent";
	}
	want = q->len - s->received;
	if (want > r->config.piece)
		want = r->config.piece;
	if (m->offset != s->received)
		return "response with data for another place";
	return m->payload == want ? NULL : "response with more or less data than asked";
}

static int receive_response(struct xtal_requester *r, const struct xtal_msg *m, uint64_t now,
			    struct xtal_requester_effect *out, const char **why)
{
	struct xtal_requester_slot *s;
	uint64_t index = 0;

	if (m->seq != r->response_seq) {
		*why = "response is out of order";
		return -EPROTO;
	}
	if (xtal_seq_after(m->ack, r->seq - 1)) {
		*why = "response to a frame that was never sent";
		return -EPROTO;
	}
	s = slot_answered(r, m, &index, why);
	if (!s)
		return -EPROTO;
	*why = check_answer(r, s, m);
	if (*why)
		return -EPROTO;

	*out = (struct xtal_requester_effect){
		.cookie = s->request.cookie,
		.offset = m->offset,
		.len = m->payload,
		.old = { m->operand[0], m->operand[1] },
		.status = m->status,
		.finished = m->flags & XTAL_MSG_LAST,
		.ignored = s->state == XTAL_SLOT_GIVEN_UP,
	};
	for (uint64_t i = r->head; i != index; i++)
		slot_at(r, i)->state = XTAL_SLOT_FREE;
	s->received += m->payload;
	if (out->finished)
		free_slot(r, s);
	if (out->ignored)
		out->finished = false;
	r->response_seq++;
	xtal_requester_progress(r, m->ack, now);
	r->progress_at = now;
	note_stamp(r, m, now);
	return 0;
}

/* Whatever the target had to say about frames up to seq has arrived: nobody waits for the rest
 * of what was given up. */
static void forget_given_up(struct xtal_requester *r, uint64_t seq)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = slot_at(r, i);

		if (s->state == XTAL_SLOT_GIVEN_UP &&
		    !xtal_seq_after(s->first_seq + s->frames - 1, seq))
			free_slot(r, s);
	}
}

int xtal_requester_receive(struct xtal_requester *r, const struct xtal_msg *m, uint64_t now,
			   struct xtal_requester_effect *out, const char **why)
{
	const char *reason = NULL;
	int err = -EPROTO;

	switch (m->type) {
	case XTAL_MSG_RESPONSE:
		err = receive_response(r, m, now, out, &reason);
		break;
	case XTAL_MSG_PONG:
		if (xtal_seq_after(m->ack, r->seq - 1)) {
			reason = "pong for a frame that was never sent";
			break;
		}
		*out = (struct xtal_requester_effect){ .cookie = m->id, .ignored = true };
		xtal_requester_progress(r, m->ack, now);
		forget_given_up(r, m->ack);
		note_stamp(r, m, now);
		err = 0;
		break;
	case XTAL_MSG_WRITE:
	case XTAL_MSG_READ:
	case XTAL_MSG_ATOMIC:
	case XTAL_MSG_PING:
		reason = "request where an answer was due";
		break;
	}
	if (err && why)
		*why = reason ? reason : "unknown type";
	return err;
}

void xtal_requester_ping(const struct xtal_requester *r, uint64_t now, struct xtal_msg *out)
{
	*out = (struct xtal_msg){
		.type = XTAL_MSG_PING,
		.ack = r->response_seq - 1,
		.stamp = now,
	};
}

uint64_t xtal_requester_next_deadline(const struct xtal_requester *r)
{
	uint64_t least = XTAL_NO_DEADLINE;

	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = slot_at(r, i);
		uint64_t deadline = deadline_of(r, s);

		if (s->state == XTAL_SLOT_OPEN && deadline < least)
			least = deadline;
	}
	return least;
}

bool xtal_requester_next_expired(const struct xtal_requester *r, uint64_t now,
				 struct xtal_requester_expired *out)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = slot_at(r, i);
		uint64_t deadline = deadline_of(r, s);

		if (s->state != XTAL_SLOT_OPEN || deadline == XTAL_NO_DEADLINE || now < deadline)
			continue;
		*out = (struct xtal_requester_expired){
			.cookie = s->request.cookie,
			.first_seq = s->first_seq,
			.frames = s->frames,
		};
		return true;
	}
	return false;
}

int xtal_requester_abandon(struct xtal_requester *r, uint64_t cookie, bool silent)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = slot_at(r, i);

		if (s->state != XTAL_SLOT_OPEN || s->request.cookie != cookie)
			continue;
		if (silent || s->frames == 0)
			free_slot(r, s);
		else
			s->state = XTAL_SLOT_GIVEN_UP;
		return 0;
	}
	return -ENOENT;
}

bool xtal_requester_fail_next(struct xtal_requester *r, enum xtal_status status,
			      struct xtal_requester_effect *out)
{
	r->closed = true;
	while (r->head != r->tail) {
		struct xtal_requester_slot *s = slot_at(r, r->head++);
		bool open = s->state == XTAL_SLOT_OPEN;

		s->state = XTAL_SLOT_FREE;
		if (!open)
			continue;
		*out = (struct xtal_requester_effect){
			.cookie = s->request.cookie,
			.status = status,
			.finished = true,
		};
		return true;
	}
	return false;
}
