/* SPDX-License-Identifier: MIT */
/* The initiator's machine of one link. See requester.h. */
#include "wire/requester.h"

#include <errno.h>
#include <string.h>

#include "wire/requester_impl.h"

/* The deadline less the margin, in the target's clock. It is safe because the target's clock
 * showed peer_stamp no later than ours showed peer_stamp_at. */
static uint64_t lease_of(const struct xtal_requester *r, const struct xtal_requester_slot *s)
{
	const struct xtal_requester_config *c = &r->config;
	uint64_t deadline = xtal_requester_deadline(r, s);
	uint64_t spent = xtal_add_saturated(c->peer_stamp_at, c->margin);

	if (deadline == XTAL_NO_DEADLINE || c->peer_stamp == 0)
		return 0;
	if (deadline <= spent)
		return c->peer_stamp;
	return xtal_add_saturated(c->peer_stamp, deadline - spent);
}

static uint64_t next_piece(const struct xtal_requester *r, const struct xtal_requester_slot *s)
{
	uint64_t piece = s->frames == s->base_frames ? r->piece : s->piece;
	uint64_t left = s->request.len - s->framed;

	/* an atomic is never cut, it has no payload */
	return s->request.type == XTAL_MSG_ATOMIC || left <= piece ? left : piece;
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
		.piece = config->piece,
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
		.payload = q->type == XTAL_MSG_WRITE || q->type == XTAL_MSG_SEND ? piece : 0,
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

/* A WRITE or READ of which xtal_msg_check() could only say that it is good: most are. */
static bool is_plain(const struct xtal_request *q)
{
	const struct xtal_msg_notify *n = &q->notify;

	return (q->type == XTAL_MSG_WRITE || q->type == XTAL_MSG_READ) &&
	       (q->flags == XTAL_MSG_TOKEN || (q->flags == 0 && q->token == 0)) &&
	       q->addr <= UINT64_MAX - q->len &&
	       (q->rights == XTAL_MSG_RIGHT_WRITE || q->rights == XTAL_MSG_RIGHT_READ) &&
	       q->atomic == XTAL_MSG_NO_ATOMIC && q->operand_size == 0 &&
	       (q->operand[0] | q->operand[1] | q->compare[0] | q->compare[1] | n->addr | n->data |
		n->tid | n->token) == 0;
}

int xtal_requester_submit(struct xtal_requester *r, const struct xtal_request *request)
{
	struct xtal_requester_slot *s = xtal_requester_slot_at(r, r->tail);
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
	s->frames = s->framed = s->received = s->base = s->base_frames = 0;
	s->all_framed = s->orphan = false;
	if (!is_plain(&s->request)) {
		make_frame(r, s, 0, &first);
		if (xtal_msg_check(&first))
			return -EINVAL;
	}
	s->state = XTAL_SLOT_OPEN;
	r->tail++;
	return 0;
}

bool xtal_requester_submit_sent(struct xtal_requester *r, const struct xtal_request *request,
				uint64_t now, struct xtal_msg *out)
{
	struct xtal_requester_slot *s = xtal_requester_slot_at(r, r->tail);

	if (!xtal_requester_can_submit(r) || r->next != r->tail || r->config.resumable ||
	    request->type != XTAL_MSG_SEND || request->len > r->piece)
		return false;
	s->request = *request;
	s->framed = s->received = s->base = s->base_frames = s->frames = 0;
	make_frame(r, s, now, out);
	if (xtal_msg_check(out))
		return false;
	s->state = XTAL_SLOT_OPEN;
	s->first_seq = r->seq++;
	s->frames = 1;
	s->piece = r->piece;
	s->framed = request->len;
	s->all_framed = true;
	s->orphan = false;
	r->next = ++r->tail;
	return true;
}

/* The slot whose frame is the next to send, or NULL. */
static struct xtal_requester_slot *slot_to_frame(const struct xtal_requester *r)
{
	uint64_t i = r->next - r->head > r->tail - r->head ? r->head : r->next;

	for (; i != r->tail; i++) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (xtal_requester_wants_frame(s))
			return s;
	}
	return NULL;
}

/* How much READs may ask for. The shorter frames are, the fewer requests: not they shall fill the
 * connection that carries so little. */
static uint64_t ahead(const struct xtal_requester *r)
{
	uint64_t shrink = r->config.piece / r->piece;

	return XTAL_REQUESTER_AHEAD / (shrink * shrink);
}

/* A READ is executed again when its answer is lost, and must not see then what comes after it;
 * and the target of a resumable link does not take what comes too late. */
static bool may_send(const struct xtal_requester *r, const struct xtal_requester_slot *s,
		     uint64_t now)
{
	uint64_t deadline = xtal_requester_deadline(r, s);

	if (!r->config.resumable)
		return true;
	if (s->request.type != XTAL_MSG_READ && r->reads != 0)
		return false;
	if (s->request.type == XTAL_MSG_READ && r->reading >= ahead(r))
		return false;
	return deadline == XTAL_NO_DEADLINE || xtal_add_saturated(now, r->config.margin) < deadline;
}

bool xtal_requester_next_frame(const struct xtal_requester *r, uint64_t now,
			       struct xtal_requester_frame *out)
{
	const struct xtal_requester_slot *s = slot_to_frame(r);

	if (!s || r->closed || !may_send(r, s, now))
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
	uint64_t piece;

	if (!s)
		return;
	piece = next_piece(r, s);
	if (s->frames == 0) {
		s->first_seq = r->seq;
		s->base = s->framed;
		r->reads += s->request.type == XTAL_MSG_READ;
	}
	if (s->frames == s->base_frames)
		s->piece = r->piece;
	if (s->request.type == XTAL_MSG_READ)
		r->reading += piece;
	s->framed += piece;
	s->all_framed = s->framed == s->request.len;
	s->frames++;
	r->seq++;
	if (r->next - r->head > r->tail - r->head)
		r->next = r->head;
	while (r->next != r->tail) {
		if (xtal_requester_wants_frame(xtal_requester_slot_at(r, r->next)))
			break;
		r->next++;
	}
}

static void note_progress(struct xtal_requester *r, uint64_t now)
{
	r->progress_at = now;
	r->moved = true;
}

/* A frame after acked and up to seq has changed something. */
static bool changes(const struct xtal_requester *r, uint64_t seq)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (s->state != XTAL_SLOT_FREE && s->frames != 0 &&
		    s->request.type != XTAL_MSG_READ && !xtal_seq_after(s->first_seq, seq) &&
		    xtal_seq_after(s->first_seq + s->frames - 1, r->acked))
			return true;
	}
	return false;
}

void xtal_requester_progress(struct xtal_requester *r, uint64_t seq, uint64_t now)
{
	if (!xtal_seq_after(seq, r->acked) || xtal_seq_after(seq, r->seq - 1))
		return;
	if (!r->config.resumable || changes(r, seq))
		note_progress(r, now);
	r->acked = seq;
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
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

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

static const char *check_answer(const struct xtal_requester_slot *s, const struct xtal_msg *m)
{
	const struct xtal_request *q = &s->request;
	uint64_t frame = m->ack - s->first_seq;
	uint64_t want;

	if (m->id != q->cookie)
		return "response with another operation's id";
	if (m->total != q->len)
		return "response with another length";
	if (q->type == XTAL_MSG_READ && s->base + frame * s->piece != s->received)
		return "response to a piece that is not the next";
	if (m->status != XTAL_OK)
		return NULL;
	if (m->atomic != q->atomic ||
	    m->operand_size != (q->type == XTAL_MSG_ATOMIC ? q->operand_size : 0))
		return "response to another kind of operation";
	if (q->type != XTAL_MSG_READ) {
		if (m->payload != 0)
			return "response with data nobody asked for";
		return s->all_framed && frame + 1 == s->frames
			       ? NULL
			       : "success before the operation was sent";
	}
	want = q->len - s->received;
	if (want > s->piece)
		want = s->piece;
	if (m->offset != s->received)
		return "response with data for another place";
	return m->payload == want ? NULL : "response with more or less data than asked";
}

static int check_response(const struct xtal_requester *r, const struct xtal_msg *m, uint64_t *index,
			  struct xtal_requester_effect *out, const char **why)
{
	struct xtal_requester_slot *s;

	if (m->seq != r->response_seq) {
		*why = "response is out of order";
		return -EPROTO;
	}
	if (xtal_seq_after(m->ack, r->seq - 1)) {
		*why = "response to a frame that was never sent";
		return -EPROTO;
	}
	s = slot_answered(r, m, index, why);
	if (!s)
		return -EPROTO;
	*why = check_answer(s, m);
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
	if (out->ignored)
		out->finished = false;
	return 0;
}

static int receive_response(struct xtal_requester *r, const struct xtal_msg *m, uint64_t now,
			    struct xtal_requester_effect *out, const char **why)
{
	struct xtal_requester_slot *s;
	uint64_t index = 0;
	int err = check_response(r, m, &index, out, why);

	if (err)
		return err;
	s = xtal_requester_slot_at(r, index);
	for (uint64_t i = r->head; i != index; i++)
		xtal_requester_slot_at(r, i)->state = XTAL_SLOT_FREE;
	s->received += m->payload;
	if (s->state == XTAL_SLOT_OPEN)
		r->reading -= m->payload;
	if (m->flags & XTAL_MSG_LAST) {
		xtal_requester_free(r, s);
		r->piece = 2 * r->piece < r->config.piece ? 2 * r->piece : r->config.piece;
	}
	r->response_seq++;
	if (xtal_seq_after(m->ack, r->acked))
		r->acked = m->ack;
	note_progress(r, now);
	note_stamp(r, m, now);
	return 0;
}

/* Whatever the target had to say about frames up to seq has arrived: nobody waits for the rest
 * of what was given up. */
static void forget_given_up(struct xtal_requester *r, uint64_t seq)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (s->state == XTAL_SLOT_GIVEN_UP &&
		    !xtal_seq_after(s->first_seq + s->frames - 1, seq))
			xtal_requester_free(r, s);
	}
}

static int check_pong(const struct xtal_requester *r, const struct xtal_msg *m,
		      struct xtal_requester_effect *out, const char **why)
{
	if (xtal_seq_after(m->ack, r->seq - 1)) {
		*why = "pong for a frame that was never sent";
		return -EPROTO;
	}
	*out = (struct xtal_requester_effect){ .cookie = m->id, .ignored = true };
	return 0;
}

int xtal_requester_check(const struct xtal_requester *r, const struct xtal_msg *m,
			 struct xtal_requester_effect *out, const char **why)
{
	const char *reason = "request where an answer was due";
	uint64_t index;
	int err = -EPROTO;

	if (m->type == XTAL_MSG_RESPONSE)
		err = check_response(r, m, &index, out, &reason);
	else if (m->type == XTAL_MSG_PONG)
		err = check_pong(r, m, out, &reason);
	if (err && why)
		*why = reason;
	return err;
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
		err = check_pong(r, m, out, &reason);
		if (err)
			break;
		xtal_requester_progress(r, m->ack, now);
		forget_given_up(r, m->ack);
		note_stamp(r, m, now);
		break;
	case XTAL_MSG_WRITE:
	case XTAL_MSG_READ:
	case XTAL_MSG_ATOMIC:
	case XTAL_MSG_SEND:
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
