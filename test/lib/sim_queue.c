/* SPDX-License-Identifier: MIT */
/*
 * The sender of messages in the simulation, as src/core/send.c is it: several of a queue are
 * under way; when one comes back because the receiver was not ready, all that followed it must have
 * come back too, and then all of them begin again. After any other error the queue begins no
 * more. See sim.h.
 */
#include "sim.h"

static struct sim_op *at(struct sim *w, const struct sim_queue *q, uint32_t number)
{
	return &w->op[q->list[number % SIM_DEPTH]];
}

static bool is_of(const struct sim *w, uint32_t queue, uint32_t link)
{
	return w->queue[queue].link == link;
}

bool sim_queue_post(struct sim *w, uint32_t link, uint32_t op)
{
	struct sim_op *o = &w->op[op];
	struct sim_queue *q;
	uint32_t k = 0;

	while (k < w->queues && !(is_of(w, k, link) && w->queue[k].key == o->request.key))
		k++;
	if (k == SIM_QUEUES)
		return false;
	q = &w->queue[k];
	if (k == w->queues) {
		w->queues++;
		*q = (struct sim_queue){ .link = link, .key = o->request.key };
		q->retries = w->gentle || sim_chance(w, 300) ? UINT32_MAX
							     : (uint32_t)rng_below(&w->rng, 8);
	}
	if (q->failed || q->tail - q->head == SIM_DEPTH)
		return false;
	o->queue = k;
	o->request.notify.token = k;
	o->number = q->tail;
	q->list[q->tail++ % SIM_DEPTH] = op;
	return true;
}

void sim_queue_answer(struct sim *w, uint64_t cookie, enum xtal_status status, uint64_t pause)
{
	struct sim_op *op = &w->op[cookie - 1];

	sim_note(w, "answer", cookie - 1, status, pause);
	if (!op->under_way)
		sim_fail(w, "message %u is answered twice", (uint32_t)cookie - 1);
	op->under_way = false;
	op->status = status;
	op->pause = pause;
	sim_model_answered(w, op, status);
}

/* The oldest is over. */
static void retire(struct sim *w, struct sim_queue *q, enum xtal_status status)
{
	struct sim_op *op = at(w, q, q->head++);

	if (status != XTAL_OK && q->failed)
		status = XTAL_FLUSHED;
	w->sent += status == XTAL_OK;
	sim_model_complete(w, op->request.cookie, status, (const uint64_t[2]){ 0, 0 });
	q->failed |= status != XTAL_OK;
}

/* All that began are back, and none was received. False: wait. */
static bool all_came_back(struct sim *w, const struct sim_queue *q)
{
	for (uint32_t n = q->head; n != q->start; n++)
		if (at(w, q, n)->under_way)
			return false;
	for (uint32_t n = q->head; n != q->start; n++)
		if (at(w, q, n)->status == XTAL_OK)
			sim_fail(w, "message %u was not received, but %u behind it",
				 q->list[q->head % SIM_DEPTH], q->list[n % SIM_DEPTH]);
	return true;
}

/* Ends those that are over, in order, or has all begin again. */
static void judge(struct sim *w, struct sim_queue *q)
{
	while (q->head != q->start && !at(w, q, q->head)->under_way) {
		struct sim_op *op = at(w, q, q->head);

		if (op->status != XTAL_NOT_READY || q->failed || op->tries >= q->retries) {
			retire(w, q, op->status);
			continue;
		}
		if (!all_came_back(w, q))
			return;
		op->tries++;
		w->again++;
		q->start = q->head;
		q->again_at = w->now + (op->pause ? op->pause : 5 * SIM_MS);
		sim_note(w, "again", q->list[q->head % SIM_DEPTH], op->tries, q->again_at);
		sim_schedule(w, q->again_at, SIM_AGAIN, (uint32_t)(q - w->queue), 0);
	}
}

/* False: not now. */
static bool begin(struct sim *w, struct sim_queue *q)
{
	struct sim_link *l = &w->link[q->link];
	struct sim_op *op = at(w, q, q->start), *before = at(w, q, q->start - 1);

	if (q->head != q->start && !before->under_way && before->status != XTAL_OK)
		return false;
	if (w->now < q->again_at || l->over || l->initiator.closing ||
	    l->initiator.state == XTAL_SESSION_ENDED || !xtal_requester_can_submit(&l->requester))
		return false;
	if (q->head == q->start)
		q->last = 0;
	op->request.notify.addr = q->last == op->request.cookie ? 0 : q->last;
	op->request.deadline = sim_clock(w, l->from) + op->request.limit;
	op->posted_at = w->now;
	op->order = l->ops++;
	op->under_way = true;
	if (xtal_requester_submit(&l->requester, &op->request))
		sim_fail(w, "message %u is not accepted", q->list[q->start % SIM_DEPTH]);
	q->last = op->request.cookie;
	q->start++;
	return true;
}

static void flush(struct sim *w, struct sim_queue *q)
{
	while (q->head == q->start && q->start != q->tail) {
		q->start++;
		retire(w, q, XTAL_FLUSHED);
	}
	if (q->head == q->tail)
		q->failed = false;
}

static void run(struct sim *w, struct sim_queue *q)
{
	judge(w, q);
	if (q->failed)
		flush(w, q);
	while (!q->failed && q->start != q->tail && begin(w, q))
		;
}

void sim_queues_run(struct sim *w, uint32_t link)
{
	for (uint32_t k = 0; k < w->queues; k++)
		if (is_of(w, k, link))
			run(w, &w->queue[k]);
}

void sim_queue_again(struct sim *w, uint32_t queue)
{
	sim_link_run(w, w->queue[queue].link);
}

bool sim_queues_empty(const struct sim *w, uint32_t link)
{
	for (uint32_t k = 0; k < w->queues; k++)
		if (is_of(w, k, link) && w->queue[k].head != w->queue[k].tail)
			return false;
	return true;
}

/* What has not begun goes on over another session with the same peer: the program posts on. */
static void move(struct sim *w, struct sim_queue *q, uint32_t link)
{
	q->link = link;
	for (uint32_t n = q->head; n != q->tail; n++)
		at(w, q, n)->link = link;
}

void sim_queues_leave(struct sim *w, uint32_t link, enum xtal_status status, bool stay)
{
	struct sim_link *l = &w->link[link];
	const struct sim_node *to = &w->node[l->to];
	bool there = to->life == l->to_life && !to->dead && w->links < SIM_LINKS - 4;
	uint32_t other = link;

	if (!stay && (!there || sim_chance(w, 500)))
		there = false;
	for (uint32_t k = 0; k < w->queues; k++) {
		struct sim_queue *q = &w->queue[k];

		if (!is_of(w, k, link))
			continue;
		judge(w, q);
		if (q->head != q->start)
			sim_fail(w, "a message is under way on a link that has ended");
		if (!q->failed && !there && q->head != q->tail) {
			q->start++;
			retire(w, q, status);
		}
		if (q->failed)
			flush(w, q);
		if (q->head == q->tail)
			continue;
		if (other == link)
			other = sim_link_new(w, l->from, l->to);
		move(w, q, other);
		sim_schedule(w, w->now, SIM_AGAIN, k, 0);
	}
}
