/* SPDX-License-Identifier: MIT */
/*
 * The receivers of messages in the simulation: a node has endpoints, each with buffers that come
 * when they are missed, may be withdrawn, or go with the endpoint. A session holds the buffer of
 * the message that is coming in. See sim.h.
 */
#include <string.h>

#include "sim.h"

static struct sim_point *point_of(struct sim *w, const struct sim_session *s)
{
	return &w->node[s->node].point[s->inbound_key - 1];
}

void sim_receive_start(struct sim *w, uint32_t node)
{
	for (unsigned k = 0; k < SIM_POINTS; k++) {
		struct sim_point *p = &w->node[node].point[k];

		p->buffers = (uint32_t)rng_below(&w->rng, sim_chance(w, 500) ? 4 : 30);
		p->era++;
		p->gone = false;
	}
}

/* The process looks at its receive queue, and finds it empty. */
static void miss(struct sim *w, uint32_t node, uint32_t point)
{
	struct sim_point *p = &w->node[node].point[point];

	if (p->coming || (!w->gentle && sim_chance(w, 100)))
		return;
	p->coming = true;
	sim_schedule(w, w->now + rng_below(&w->rng, sim_chance(w, 700) ? 5 * SIM_MS : w->limit / 8),
		     SIM_RECEIVE, node, point);
}

void sim_receive_more(struct sim *w, uint32_t node, uint32_t point)
{
	struct sim_point *p = &w->node[node].point[point];

	p->coming = false;
	if (w->node[node].dead)
		return;
	p->gone = false;
	p->buffers += 1 + (uint32_t)rng_below(&w->rng, 4);
	sim_note(w, "buffers", node, point, p->buffers);
}

/* The program takes its buffers back, or the endpoint with them. */
void sim_receive_withdraw(struct sim *w, uint32_t node)
{
	uint32_t point = (uint32_t)rng_below(&w->rng, SIM_POINTS);
	struct sim_point *p = &w->node[node].point[point];

	p->era++;
	p->buffers = 0;
	p->gone = sim_chance(w, 300);
	sim_note(w, "withdraw", node, point, p->gone);
	if (p->coming)
		return;
	p->coming = true;
	sim_schedule(w, w->now + rng_below(&w->rng, w->limit), SIM_RECEIVE, node, point);
}

void sim_receive_abandon(struct sim *w, struct sim_session *s)
{
	struct sim_point *p;

	if (s->inbound == 0)
		return;
	p = point_of(w, s);
	if (p->era == s->inbound_era)
		p->buffers++;
	s->inbound = 0;
}

enum xtal_status sim_receive_begin(struct sim *w, struct sim_session *s,
				   const struct xtal_responder_effect *e, uint64_t pause[2])
{
	struct sim_op *op = sim_model_find(w, s, e);
	struct sim_point *p;

	sim_receive_abandon(w, s);
	s->inbound_key = e->key;
	p = point_of(w, s);
	if (p->gone)
		return XTAL_REMOTE_ACCESS;
	if (p->buffers == 0) {
		miss(w, s->node, e->key - 1);
		pause[0] = sim_chance(w, 500) ? 0 : rng_below(&w->rng, 20 * SIM_MS);
		return XTAL_NOT_READY;
	}
	p->buffers--;
	s->inbound = (uint32_t)e->id;
	s->inbound_era = p->era;
	op->landed = 0;
	memset(op->local, 0, sizeof(op->local));
	sim_note(w, "begin", e->id - 1, s->node, e->key);
	return XTAL_OK;
}

/* Whether the buffer is still there for the message. */
static enum xtal_status look(struct sim *w, struct sim_session *s,
			     const struct xtal_responder_effect *e)
{
	const struct sim_point *p = point_of(w, s);

	if (s->inbound != e->id)
		sim_fail(w, "message %u goes on without a buffer", (uint32_t)e->id - 1);
	if (s->inbound == e->id && p->era == s->inbound_era)
		return XTAL_OK;
	s->inbound = 0;
	return p->gone ? XTAL_REMOTE_ACCESS : XTAL_REMOTE_OPERATION;
}

enum xtal_status sim_receive_land(struct sim *w, struct sim_session *s,
				  const struct xtal_responder_effect *e, uint64_t offset,
				  const uint8_t *bytes, uint32_t n)
{
	struct sim_op *op = sim_model_find(w, s, e);
	enum xtal_status status = look(w, s, e);
	uint64_t at = e->offset + offset;

	if (status != XTAL_OK)
		return status;
	if (at + n > op->request.len) {
		sim_fail(w, "message %u: bytes beyond its end", (uint32_t)e->id - 1);
		return XTAL_OK;
	}
	memcpy(op->local + at, bytes, n);
	if (at <= op->landed && at + n > op->landed)
		op->landed = at + n;
	return XTAL_OK;
}

/* The last byte of it is there. */
enum xtal_status sim_receive_end(struct sim *w, struct sim_session *s,
				 const struct xtal_responder_effect *e)
{
	struct sim_op *op = sim_model_find(w, s, e);
	struct sim_queue *q = &w->queue[op->queue];
	enum xtal_status status = look(w, s, e);
	uint32_t index = (uint32_t)e->id - 1;

	if (status != XTAL_OK)
		return status;
	s->inbound = 0;
	sim_note(w, "receive", index, s->node, op->landed);
	if (op->landed != op->request.len)
		sim_fail(w, "message %u is received with %u of %u bytes", index,
			 (uint32_t)op->landed, (uint32_t)op->request.len);
	for (uint32_t k = 0; k < op->landed; k++)
		if (op->local[k] != sim_pattern(w, index, k))
			sim_fail(w, "message %u arrives changed", index);
	if (e->notify.addr != 0 && w->op[e->notify.addr - 1].executed == 0)
		sim_fail(w, "message %u is received, but not %u, which it follows", index,
			 (uint32_t)e->notify.addr - 1);
	if (q->received > op->number)
		sim_fail(w, "message %u is received after a later one of its queue", index);
	q->received = op->number + 1;
	op->executed++;
	return XTAL_OK;
}
