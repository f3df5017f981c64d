/* SPDX-License-Identifier: MIT */
/*
 * Queues with a shared completion queue: they are one of its sources, and they have states. An
 * operation that succeeds unsignalled has a completion like all others, which is passed over.
 */
#include "core/queue_shared.h"

#include <errno.h>
#include <stdlib.h>

#include "core/context_impl.h"
#include "core/engine.h"
#include "core/fault.h"
#include "core/receive_impl.h"
#include "core/shared_cq.h"
#include "os/proc.h"

#define DEFAULT_RNR_US 100u

static inline struct xtal_queue *queue_of(struct xtal_feed *s)
{
	return xtal_container_of(s, struct xtal_sharing, feed)->queue;
}

static inline bool is_silent(const struct xtal_completion *c)
{
	return c->status == XTAL_OK && c->flags & XTAL_OP_UNSIGNALLED;
}

static enum xtal_weight weight(const struct xtal_completion *c)
{
	if (is_silent(c))
		return XTAL_WEIGHT_NONE;
	return c->status ? XTAL_WEIGHT_HEAVY : XTAL_WEIGHT_PLAIN;
}

void xtal_cq_tell(struct xtal_cq *cq)
{
	struct xtal_queue *q = xtal_container_of(cq, struct xtal_queue, cq);
	uint64_t last = atomic_load_explicit(&cq->tail, memory_order_relaxed) - 1;

	cq->notify = xtal_feed_pushed(&q->share->feed, weight(&cq->ring[last & cq->mask]));
}

/* What the receiving half has reported before FLUSH_DONE was polled. */
static bool is_last(const struct xtal_queue *q)
{
	struct xtal_endpoint *ep = q->share->endpoint;

	return !ep || xtal_endpoint_polled(ep, q->share->feed.cq);
}

static uint32_t take(struct xtal_feed *s, uint32_t count, struct xtal_record *out)
{
	struct xtal_queue *q = queue_of(s);
	struct xtal_cq *cq = &q->cq;
	const uint64_t first = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* Partner: the release store in push. */
	const uint64_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
	const uint8_t flags = q->share->jetty ? XTAL_RECORD_JETTY : 0;
	uint64_t head = first;
	uint32_t n = 0;

	for (; head != tail && n < count; head++) {
		const struct xtal_completion *c = &cq->ring[head & cq->mask];
		struct xtal_record *r = &out[n];

		if (is_silent(c))
			continue;
		if (xtal_unlikely(c->status == XTAL_FLUSH_DONE)) {
			if (!is_last(q))
				break;
			atomic_store_explicit(&q->share->flush_taken, true, memory_order_relaxed);
		}
		r->user = c->user;
		r->owner = q->share->owner;
		r->local_id = q->share->public_id;
		r->len = c->report.len;
		r->status = c->status;
		r->opcode = c->opcode;
		r->flags = flags;
		r->peer = c->report.peer;
		r->target = c->target;
		n++;
	}
	/* Partner: xtal_cq_taken() of the producer that will overwrite the places. */
	if (head != first)
		atomic_store_explicit(&cq->head, head, memory_order_release);
	return n;
}

static void help(struct xtal_feed *s)
{
	struct xtal_queue *q = queue_of(s);

	if (atomic_load_explicit(&q->busy, memory_order_relaxed))
		xtal_queue_help(q);
}

static enum xtal_weight watch(struct xtal_feed *s)
{
	struct xtal_queue *q = queue_of(s);
	struct xtal_cq *cq = &q->cq;
	enum xtal_weight most = XTAL_WEIGHT_NONE;
	uint64_t tail;

	xtal_bias_lock(&q->lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	for (uint64_t i = atomic_load_explicit(&cq->head, memory_order_relaxed); i != tail; i++) {
		enum xtal_weight w = weight(&cq->ring[i & cq->mask]);

		most = w > most ? w : most;
	}
	cq->notify = true;
	xtal_bias_unlock(&q->lock);
	return most;
}

static bool leave(struct xtal_feed *s)
{
	struct xtal_queue *q = queue_of(s);
	bool idle;

	xtal_bias_lock(&q->lock);
	idle = !q->first && xtal_cq_empty(&q->cq);
	if (idle) {
		s->listed = false;
		q->cq.notify = true;
	}
	xtal_bias_unlock(&q->lock);
	return idle;
}

static void hand_over(struct xtal_feed *s)
{
	struct xtal_queue *q = queue_of(s);

	if (atomic_load_explicit(&q->busy, memory_order_relaxed))
		xtal_queue_hand_over(q);
}

static const struct xtal_feed_ops queue_feed = {
	.take = take,
	.help = help,
	.watch = watch,
	.leave = leave,
	.hand_over = hand_over,
};

int xtal_queue_share(struct xtal_queue *q, const struct xtal_queue_attr *attr)
{
	struct xtal_sharing *share = calloc(1, sizeof(*share));

	if (!share)
		return -ENOMEM;
	share->queue = q;
	share->owner = attr->owner;
	share->public_id = attr->id;
	xtal_async_source_init(&share->own);
	share->broken = attr->source ? attr->source : &share->own;
	share->jetty = attr->jetty;
	share->error_suspend = attr->error_suspend;
	share->datagram = attr->datagram;
	share->endpoint = attr->endpoint;
	share->rnr_retry = attr->rnr_retry;
	share->pause_ns = (attr->rnr_us ? attr->rnr_us : DEFAULT_RNR_US) * 1000ull;
	share->kept_last = &share->kept;
	share->signature = (struct xtal_signature){ attr->owner, attr->stamp };
	xtal_feed_attach(&share->feed, attr->cq, &queue_feed);
	share->feed.places = &q->cq;
	share->feed.signature = &share->signature;
	q->share = share;
	q->cq.shared = q->cq.notify = true;
	return 0;
}

void xtal_queue_enter(struct xtal_queue *q)
{
	xtal_feed_enter(&q->share->feed);
}

/* ---- States ---- */

/* A completion that belongs to no operation. Under the lock; nothing is in front of it. */
static void mark(struct xtal_queue *q, enum xtal_status status)
{
	*xtal_cq_place(&q->cq) = (struct xtal_completion){ .status = (uint16_t)status,
							   .opcode = XTAL_OP_NOP,
							   .report.queue_id = q->told_id };
	xtal_bump(&q->accepted, 1);
	xtal_queue_close_post(q);
	xtal_cq_push(&q->cq);
}

bool xtal_queue_settle(struct xtal_queue *q)
{
	if (q->state == XTAL_QUEUE_ERROR && !q->first && !q->share->flush_marked) {
		if (q->fault && xtal_fault_holds_flush(q->fault))
			return true;
		q->share->flush_marked = true;
		/* The last record of both halves: nothing is received from now on. */
		if (q->share->endpoint)
			xtal_endpoint_hold(q->share->endpoint, true);
		mark(q, XTAL_FLUSH_DONE);
	}
	if (q->state == XTAL_QUEUE_SUSPENDED && !q->inflight && !q->share->suspend_marked) {
		q->share->suspend_marked = true;
		mark(q, XTAL_SUSPEND_DONE);
	}
	return false;
}

void xtal_queue_stop(struct xtal_queue *q)
{
	if (q->state != XTAL_QUEUE_READY && q->state != XTAL_QUEUE_SUSPENDED)
		return;
	q->state = q->state == XTAL_QUEUE_READY && q->share->error_suspend ? XTAL_QUEUE_SUSPENDED
									   : XTAL_QUEUE_ERROR;
	xtal_queue_close_post(q);
	xtal_context_raise(q->ctx, q->share->broken, XTAL_ASYNC_QUEUE_ERROR, q->share->public_id);
	if (xtal_queue_settle(q))
		xtal_queue_tick_me(q);
}

int xtal_queue_keep(struct xtal_queue *q, const struct xtal_op *op)
{
	struct xtal_sharing *share = q->share;
	struct xtal_pending *p;

	if (share->kept_count == q->depth)
		return -EAGAIN;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->op.user = op->user;
	*share->kept_last = p;
	share->kept_last = &p->next;
	share->kept_count++;
	return 0;
}

/* Under the lock: the oldest that is kept is given back. */
static uint64_t give_back(struct xtal_queue *q)
{
	struct xtal_pending *p = q->share->kept;
	uint64_t user = p->op.user;

	q->share->kept = p->next;
	if (!q->share->kept)
		q->share->kept_last = &q->share->kept;
	q->share->kept_count--;
	free(p);
	return user;
}

uint32_t xtal_queue_flush(struct xtal_queue *q, uint32_t count, uint64_t *users)
{
	uint32_t n = 0;

	if (q->foreign)
		return 0;
	xtal_bias_lock(&q->lock);
	if (atomic_load_explicit(&q->share->flush_taken, memory_order_relaxed))
		while (n < count && q->share->kept)
			users[n++] = give_back(q);
	xtal_bias_unlock(&q->lock);
	return n;
}

static void forget_kept(struct xtal_queue *q)
{
	while (q->share->kept)
		give_back(q);
}

/* Helps until nothing is under way; everything ends by its time limit. */
static void quiesce(struct xtal_queue *q)
{
	for (unsigned rounds = 1;; rounds++) {
		bool idle;

		xtal_queue_help(q);
		xtal_bias_lock(&q->lock);
		idle = !q->first;
		xtal_bias_unlock(&q->lock);
		if (idle)
			return;
		if (rounds % 100 == 0)
			xtal_os_sleep_ns(20000);
	}
}

/* ERROR to RESET. */
static void reset(struct xtal_queue *q)
{
	quiesce(q);
	xtal_feed_lock(&q->share->feed);
	xtal_bias_lock(&q->lock);
	forget_kept(q);
	atomic_store_explicit(&q->cq.head, atomic_load_explicit(&q->cq.tail, memory_order_relaxed),
			      memory_order_release);
	xtal_feed_dropped(&q->share->feed);
	q->share->flush_marked = q->share->suspend_marked = false;
	if (q->fault)
		xtal_fault_flush_over(q->fault);
	atomic_store_explicit(&q->share->flush_taken, false, memory_order_relaxed);
	q->state = XTAL_QUEUE_RESET;
	xtal_bias_unlock(&q->lock);
	xtal_feed_unlock(&q->share->feed);
}

static bool may_become(enum xtal_queue_state from, enum xtal_queue_state to)
{
	switch (to) {
	case XTAL_QUEUE_READY:
		return from == XTAL_QUEUE_RESET;
	case XTAL_QUEUE_SUSPENDED:
		return from == XTAL_QUEUE_READY;
	case XTAL_QUEUE_ERROR:
		return from == XTAL_QUEUE_READY || from == XTAL_QUEUE_SUSPENDED;
	case XTAL_QUEUE_RESET:
		return from == XTAL_QUEUE_ERROR;
	}
	return false;
}

int xtal_queue_set_state(struct xtal_queue *q, enum xtal_queue_state state)
{
	int err = 0;

	if (q->foreign)
		return -ECHILD;
	if (!q->share)
		return -EPERM;
	xtal_bias_lock(&q->lock);
	if (q->state != state && !may_become(q->state, state))
		err = -EPERM;
	if (err || q->state == state || state == XTAL_QUEUE_RESET) {
		bool go = !err && q->state != state;

		xtal_bias_unlock(&q->lock);
		if (go)
			reset(q);
		return err;
	}
	q->state = state;
	if (state == XTAL_QUEUE_READY && q->share->endpoint)
		xtal_endpoint_hold(q->share->endpoint, false);
	xtal_queue_close_post(q);
	xtal_queue_progress(q);
	xtal_bias_unlock(&q->lock);
	return 0;
}

enum xtal_queue_state xtal_queue_get_state(const struct xtal_queue *q)
{
	enum xtal_queue_state state;
	struct xtal_queue *own = (struct xtal_queue *)(uintptr_t)q;

	if (q->foreign)
		return q->state;
	xtal_bias_lock(&own->lock);
	state = q->state;
	xtal_bias_unlock(&own->lock);
	return state;
}

void xtal_queue_stop_sharing(struct xtal_queue *q)
{
	xtal_bias_lock(&q->lock);
	if (q->state != XTAL_QUEUE_ERROR) { /* what has not begun ends now */
		q->state = XTAL_QUEUE_ERROR;
		q->share->flush_marked = true; /* nobody is told */
		xtal_queue_close_post(q);
		xtal_queue_progress(q);
	}
	xtal_bias_unlock(&q->lock);
	quiesce(q);
}

void xtal_queue_unshare(struct xtal_queue *q)
{
	xtal_feed_detach(&q->share->feed);
	xtal_context_forget(q->ctx, &q->share->own);
	forget_kept(q);
	free(q->share);
}
