/* SPDX-License-Identifier: MIT */
/*
 * The oracles of the simulation. Each operation ends exactly once, within its time; nothing of
 * it lands after it ended; its last piece is executed once at most, and once when it ended
 * well; operations of one link execute in order; memory is what the operations, as they were
 * posted, must have made of it; counters are exact. Messages are received whole and in the order
 * of their queue, none while nobody sends it, and none behind one that was not received for want
 * of a buffer.
 */
#include <string.h>

#include "sim.h"

uint8_t sim_pattern(const struct sim *w, uint32_t op, uint64_t offset)
{
	return (uint8_t)(op * 131 + offset * 7 + (offset >> 8) * 13 + w->seed + 1);
}

static void draw_send(struct sim *w, uint32_t op, struct xtal_request *q)
{
	/* Most are alike but for what each brings, as those of one sender to one receiver. */
	const uint32_t who = op % 5 ? 0 : op;

	q->type = XTAL_MSG_SEND;
	q->rights = 0;
	q->operand_size = (uint8_t)(XTAL_MSG_SEND_PLAIN + rng_below(&w->rng, 4));
	q->len = rng_below(&w->rng, sim_chance(w, 600) ? 40 : SIM_LEN);
	if (q->len < 40)
		q->len /= 2;
	q->flags = XTAL_MSG_TOKEN | (sim_chance(w, 300) ? XTAL_MSG_SOLICITED : 0);
	q->token = who * 7;
	q->key = 1 + (uint32_t)rng_below(&w->rng, SIM_POINTS);
	q->notify.tid = who + 1;
	q->compare[0] = who;
	q->compare[1] = w->seed;
	if (q->operand_size != XTAL_MSG_SEND_PLAIN)
		q->operand[0] = op * 5 + 1;
	q->operand[1] = who & 0xff;
	if (q->operand_size == XTAL_MSG_SEND_WRITTEN) {
		q->notify.data = q->len;
		q->len = 0;
	}
}

static struct xtal_request draw(struct sim *w, uint32_t op, bool *refuse)
{
	struct xtal_request q = { .cookie = op + 1, .limit = w->limit };
	uint64_t kind = rng_below(&w->rng, w->messages ? 200 : 100);

	*refuse = false;
	q.rights = XTAL_MSG_RIGHT_READ | XTAL_MSG_RIGHT_WRITE;
	if (kind >= 100) {
		draw_send(w, op, &q);
	} else if (kind < 40) {
		q.type = XTAL_MSG_ATOMIC;
		q.operand_size = 8;
		q.addr = 8 * rng_below(&w->rng, SIM_COUNTERS);
		q.atomic = kind < 32 ? XTAL_MSG_FAA : XTAL_MSG_CAS;
		q.operand[0] = 1 + rng_below(&w->rng, 3);
		if (q.atomic == XTAL_MSG_CAS)
			q.compare[0] = rng_below(&w->rng, 6);
		q.len = 8;
	} else {
		q.type = kind < 75 ? XTAL_MSG_WRITE : XTAL_MSG_READ;
		q.len = rng_below(&w->rng, sim_chance(w, 600) ? 40 : SIM_LEN);
		q.addr = SIM_DATA + rng_below(&w->rng, SIM_MEMORY - SIM_DATA - q.len + 1);
		if (q.type == XTAL_MSG_WRITE && sim_chance(w, 300)) {
			q.flags = XTAL_MSG_NOTIFY;
			q.notify.addr = 8 * SIM_COUNTERS + 8 * rng_below(&w->rng, 8);
			q.notify.data = op + 1;
		}
	}
	*refuse = sim_chance(w, 50);
	return q;
}

bool sim_model_post(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	struct sim_op *op = &w->op[w->ops];
	uint64_t now = sim_clock(w, l->from);
	bool refuse;

	if (w->ops == SIM_OPS || !xtal_requester_can_submit(&l->requester))
		return false;
	memset(op, 0, sizeof(*op));
	op->link = link;
	op->posted_at = w->now;
	op->request = draw(w, w->ops, &refuse);
	if (!w->gentle && sim_chance(w, 300)) /* shorter than a silence */
		op->request.limit = w->limit / 8;
	op->request.deadline = now + op->request.limit;
	op->refuse_at = UINT64_MAX;
	if (refuse)
		op->refuse_at = op->request.len == 0 ? 0 : rng_below(&w->rng, op->request.len);
	if (op->request.type == XTAL_MSG_SEND) {
		if (!sim_queue_post(w, link, w->ops))
			return false;
	} else {
		op->order = l->ops++;
		if (xtal_requester_submit(&l->requester, &op->request)) {
			sim_fail(w, "operation %u is not accepted", w->ops);
			return false;
		}
	}
	sim_note(w, "post", w->ops, link, op->request.type);
	w->ops++;
	return true;
}

static bool same_message(const struct xtal_responder_effect *e, const struct xtal_request *q)
{
	return e->key == q->key && e->token == q->token && e->token_valid && e->flags == q->flags &&
	       e->operand_size == q->operand_size && e->operand[1] == q->operand[1] &&
	       e->compare[1] == q->compare[1] && e->notify.tid == q->notify.tid &&
	       e->notify.token == q->notify.token;
}

struct sim_op *sim_model_find(struct sim *w, struct sim_session *s,
			      const struct xtal_responder_effect *e)
{
	static const enum xtal_responder_kind kinds[] = {
		[XTAL_MSG_WRITE] = XTAL_RESPONDER_WRITE,
		[XTAL_MSG_READ] = XTAL_RESPONDER_READ,
		[XTAL_MSG_ATOMIC] = XTAL_RESPONDER_ATOMIC,
		[XTAL_MSG_SEND] = XTAL_RESPONDER_SEND,
	};
	uint32_t index = (uint32_t)e->id - 1;
	struct sim_op *op = &w->op[index < w->ops ? index : 0];
	const struct xtal_request *q = &op->request;

	if (index >= w->ops || op->link + 1 != s->id.word[1])
		sim_fail(w, "operation %u executed by a session that it is not of", index);
	else if (e->kind != kinds[q->type] || e->addr != q->addr || e->total != q->len ||
		 e->offset > q->len || e->len > q->len - e->offset || e->tid != q->tid ||
		 e->atomic != q->atomic || e->operand[0] != q->operand[0] ||
		 e->compare[0] != q->compare[0] || e->notify.addr != q->notify.addr ||
		 e->notify.data != q->notify.data ||
		 (q->type == XTAL_MSG_SEND && !same_message(e, q)))
		sim_fail(w, "operation %u is executed as it was not posted", index);
	return op;
}

/* Before anything of the effect is done. */
enum xtal_status sim_model_begin(struct sim *w, struct sim_session *s,
				 const struct xtal_responder_effect *e)
{
	struct sim_op *op = sim_model_find(w, s, e);
	struct sim_link *l = &w->link[op->link];
	uint32_t index = (uint32_t)(op - w->op);
	bool lives = w->node[l->from].life == l->life; /* its own process */

	l->executed_at = w->now;
	if (s->life != w->node[s->node].life || l->to_life != s->life)
		sim_fail(w, "operation %u executed by another incarnation", index);
	/* READs may run again behind one another */
	if (op->order + 1 < (e->kind == XTAL_RESPONDER_READ ? l->changed : l->begun))
		sim_fail(w, "operation %u executed after a later one of its link", index);
	if (op->order + 1 > l->begun)
		l->begun = op->order + 1;
	if (e->kind != XTAL_RESPONDER_READ)
		l->changed = op->order + 1;
	if (e->kind != XTAL_RESPONDER_READ) {
		if (op->ended && lives)
			sim_fail(w, "operation %u lands after it has ended", index);
		if (op->executed != 0)
			sim_fail(w, "operation %u is executed twice", index);
		if (e->kind == XTAL_RESPONDER_SEND && !op->under_way && lives)
			sim_fail(w, "message %u is received while nobody sends it", index);
		if (e->kind != XTAL_RESPONDER_ATOMIC && e->offset > op->landed)
			sim_fail(w, "operation %u: a piece is missing", index);
		if (op->refused)
			sim_fail(w, "operation %u goes on after it was refused", index);
	}
	if (op->refuse_at < e->offset + e->len || (op->refuse_at == 0 && e->len == 0)) {
		op->refused = true;
		return XTAL_REMOTE_ACCESS;
	}
	return XTAL_OK;
}

void sim_model_land(struct sim *w, struct sim_session *s, const struct xtal_responder_effect *e,
		    uint64_t offset, const uint8_t *bytes, uint32_t n)
{
	struct sim_node *node = &w->node[s->node];
	struct sim_op *op = &w->op[e->id - 1];
	uint64_t at = e->offset + offset;

	if (at + n > op->request.len) {
		sim_fail(w, "operation %u: bytes beyond its end", (uint32_t)e->id - 1);
		return;
	}
	memcpy(node->memory + e->addr + at, bytes, n);
	for (uint32_t k = 0; k < n; k++)
		node->model[op->request.addr + at + k] =
			sim_pattern(w, (uint32_t)e->id - 1, at + k);
	if (memcmp(node->memory, node->model, SIM_MEMORY) != 0)
		sim_fail(w, "operation %u: memory is not what it should be", (uint32_t)e->id - 1);
	if (at <= op->landed && at + n > op->landed)
		op->landed = at + n;
	sim_note(w, "land", e->id - 1, at, n);
}

static void add(uint8_t *word, const struct xtal_request *q, uint64_t old[2])
{
	uint64_t value;

	memcpy(&value, word, 8);
	old[0] = value;
	if (q->atomic == XTAL_MSG_FAA)
		value += q->operand[0];
	else if (value == q->compare[0])
		value = q->operand[0];
	memcpy(word, &value, 8);
}

void sim_model_execute(struct sim *w, struct sim_session *s, const struct xtal_responder_effect *e,
		       uint64_t old[2])
{
	struct sim_node *node = &w->node[s->node];
	struct sim_op *op = &w->op[e->id - 1];
	const struct xtal_request *q = &op->request;

	sim_note(w, "execute", e->id - 1, e->offset, e->len);
	if (e->kind == XTAL_RESPONDER_READ)
		return;
	if (e->kind == XTAL_RESPONDER_ATOMIC) {
		add(node->memory + e->addr, q, old);
		add(node->model + q->addr, q, op->old);
	} else if (e->last && e->notify_valid) {
		memcpy(node->memory + e->notify.addr, &e->notify.data, 8);
		memcpy(node->model + q->notify.addr, &q->notify.data, 8);
	}
	op->executed += e->last;
}

/* The data of a READ are taken when its answer begins to be sent. */
void sim_model_read(struct sim *w, struct sim_session *s, uint64_t addr, uint8_t *out, uint64_t n)
{
	struct sim_node *node = &w->node[s->node];
	const struct xtal_responder_effect *e = &s->target.effect;
	struct sim_op *op = sim_model_find(w, s, e);

	if (e->kind != XTAL_RESPONDER_READ || addr != op->request.addr + e->offset || n != e->len)
		sim_fail(w, "operation %u: data that was not asked for", (uint32_t)e->id - 1);
	memcpy(out, node->memory + addr, n);
	memcpy(op->expect + e->offset, node->model + op->request.addr + e->offset, n);
}

void sim_model_place(struct sim *w, uint64_t cookie, uint64_t offset, const uint8_t *bytes,
		     uint32_t n)
{
	struct sim_op *op = &w->op[cookie - 1];

	if (op->ended)
		sim_fail(w, "operation %u: data arrives after it has ended", (uint32_t)cookie - 1);
	if (op->request.type != XTAL_MSG_READ || offset + n > op->request.len) {
		sim_fail(w, "operation %u: data beyond its end", (uint32_t)cookie - 1);
		return;
	}
	memcpy(op->local + offset, bytes, n);
	op->landed = offset + n;
}

static void check_success(struct sim *w, struct sim_op *op, const uint64_t old[2])
{
	const struct xtal_request *q = &op->request;
	uint32_t index = (uint32_t)(op - w->op);

	if (op->refused)
		sim_fail(w, "operation %u was refused and ends well", index);
	if (q->type != XTAL_MSG_READ && op->executed != 1)
		sim_fail(w, "operation %u ends well, executed %u times", index, op->executed);
	if (q->type == XTAL_MSG_ATOMIC && old[0] != op->old[0])
		sim_fail(w, "operation %u returns %llu instead of %llu", index,
			 (unsigned long long)old[0], (unsigned long long)op->old[0]);
	if (q->type != XTAL_MSG_ATOMIC && op->landed != q->len)
		sim_fail(w, "operation %u ends well with %llu of %llu bytes", index,
			 (unsigned long long)op->landed, (unsigned long long)q->len);
	if (q->type == XTAL_MSG_READ && memcmp(op->local, op->expect, q->len) != 0)
		sim_fail(w, "operation %u read what was not there", index);
}

void sim_model_answered(struct sim *w, struct sim_op *op, enum xtal_status status)
{
	struct sim_link *l = &w->link[op->link];
	struct sim_node *node = &w->node[l->from];
	uint32_t index = (uint32_t)(op - w->op);
	uint64_t since = sim_when(w, l->from, l->requester.progress_at), bound;

	/* its limit after the last sign of life, or when its own process runs again */
	bound = (since > op->posted_at ? since : op->posted_at) + op->request.limit + w->limit / 50;
	if (w->now > bound && w->now > node->stopped_until + 2 * SIM_MS)
		sim_fail(w, "operation %u ends %llu us late", index,
			 (unsigned long long)((w->now - bound) / 1000));
	if (status != XTAL_OK)
		return;
	if (op->order + 1 <= l->answered)
		sim_fail(w, "operation %u ends well after a later one", index);
	l->answered = op->order + 1;
}

/* A message that does not end well. */
static void check_failure(struct sim *w, const struct sim_op *op, enum xtal_status status)
{
	const struct sim_queue *q = &w->queue[op->queue];
	uint32_t index = (uint32_t)(op - w->op);

	if (status == XTAL_NOT_READY && op->executed != 0)
		sim_fail(w, "message %u was received, and is said not to be", index);
	if (status == XTAL_NOT_READY && q->received > op->number)
		sim_fail(w, "message %u was not received, but one behind it", index);
}

void sim_model_complete(struct sim *w, uint64_t cookie, enum xtal_status status,
			const uint64_t old[2])
{
	struct sim_op *op = &w->op[cookie - 1];
	uint32_t index = (uint32_t)cookie - 1;

	sim_note(w, "complete", index, status, 0);
	if (op->ended) {
		sim_fail(w, "operation %u ends twice", index);
		return;
	}
	op->ended = true;
	op->status = status;
	if (op->request.type != XTAL_MSG_SEND)
		sim_model_answered(w, op, status);
	else
		check_failure(w, op, status);
	if (status == XTAL_OK) {
		w->done_ok++;
		check_success(w, op, old);
		return;
	}
	w->done_error++;
	if (op->refused && status == XTAL_REMOTE_ACCESS)
		return;
	if (op->request.type == XTAL_MSG_SEND && status == XTAL_FLUSHED &&
	    w->queue[op->queue].failed) /* one in front of it was */
		return;
	if (w->gentle)
		sim_fail(w, "operation %u ends with status %u where nothing should fail", index,
			 status);
}

void sim_model_finish(struct sim *w)
{
	for (uint32_t k = 0; k < w->ops; k++) {
		const struct sim_op *op = &w->op[k];
		const struct sim_link *l = &w->link[op->link];

		if (!op->ended && w->node[l->from].life == l->life)
			sim_fail(w, "operation %u never ends", k);
	}
	for (uint32_t n = 0; n < w->nodes; n++)
		if (memcmp(w->node[n].memory, w->node[n].model, SIM_MEMORY) != 0)
			sim_fail(w, "memory of node %u is not what it should be", n);
}
