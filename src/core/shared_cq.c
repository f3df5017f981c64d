/* SPDX-License-Identifier: MIT */
/*
 * Shared completion queues: which sources have something, arming, events. Sources enter a stack
 * without a lock; the consumer moves them to its list. Who arms looks at each source under its
 * producers' lock afterwards, and a source that is not in the list enters it before it looks
 * whether the queue is armed: one of the two sees the other (model: test/model/shared_arm.pml).
 */
#include "core/shared_cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/context_impl.h"
#include "core/cq.h"
#include "core/log.h"
#include "core/serving.h"
#include "core/shared_cq_impl.h"
#include "os/proc.h"
#include "os/thread.h"
#include "xtal.h"

/* So many sources are looked at with each poll, also when they were empty before: entering and
 * leaving the list costs more. */
#define KEEP_LISTED 4u

#define COMPLAIN_NS 1000000000u

void xtal_feed_attach(struct xtal_feed *s, struct xtal_shared_cq *cq,
		      const struct xtal_feed_ops *ops)
{
	*s = (struct xtal_feed){ .cq = cq, .ops = ops };
	xtal_list_init(&s->node);
	atomic_fetch_add(&cq->users, 1);
}

void xtal_feed_enter(struct xtal_feed *s)
{
	struct xtal_shared_cq *cq = s->cq;

	if (s->listed)
		return;
	s->listed = true;
	s->incoming = atomic_load_explicit(&cq->incoming, memory_order_relaxed);
	/* Partner: collect(). Before the look at armed, in pushed(). */
	while (!atomic_compare_exchange_weak(&cq->incoming, &s->incoming, s))
		;
}

static void fire(struct xtal_shared_cq *cq)
{
	if (atomic_exchange(&cq->armed, 0))
		xtal_channel_fire(cq);
}

/* One record more waits. */
static void count(struct xtal_feed *s)
{
	struct xtal_shared_cq *cq = s->cq;

	atomic_fetch_add(&s->waiting, 1);
	if (atomic_fetch_add(&cq->waiting, 1) == cq->depth)
		xtal_context_raise(cq->ctx, cq->overrun, XTAL_ASYNC_CQ_ERROR, cq->id);
}

/* They do not wait any more. */
static void uncount(struct xtal_feed *s, uint32_t records)
{
	if (!records || !s->cq->depth)
		return;
	atomic_fetch_sub(&s->waiting, records);
	atomic_fetch_sub(&s->cq->waiting, records);
}

void xtal_feed_dropped(struct xtal_feed *s)
{
	uncount(s, atomic_load(&s->waiting));
}

bool xtal_feed_pushed(struct xtal_feed *s, enum xtal_weight weight)
{
	struct xtal_shared_cq *cq = s->cq;
	const bool counted = cq->depth != 0;
	uint32_t armed;

	if (counted && weight)
		count(s);
	xtal_feed_enter(s);
	/* Partner: arm stores it, then collects and looks at each source. */
	armed = atomic_load(&cq->armed);
	if (!armed)
		return counted;
	if (weight < armed)
		return true;
	fire(cq);
	return counted;
}

void xtal_feed_lock(struct xtal_feed *s)
{
	xtal_bias_lock_own(&s->cq->consumer);
}

void xtal_feed_unlock(struct xtal_feed *s)
{
	xtal_bias_unlock(&s->cq->consumer);
}

/* Those that have entered. Under the consumer's lock. */
static void collect(struct xtal_shared_cq *cq)
{
	struct xtal_feed *s = atomic_exchange(&cq->incoming, NULL);

	while (s) {
		struct xtal_feed *next = s->incoming;

		xtal_list_append(&cq->listed, &s->node);
		cq->listed_count++;
		s = next;
	}
}

static inline void look(struct xtal_shared_cq *cq)
{
	if (xtal_unlikely(atomic_load_explicit(&cq->incoming, memory_order_relaxed) != NULL))
		collect(cq);
}

void xtal_feed_detach(struct xtal_feed *s)
{
	struct xtal_shared_cq *cq = s->cq;

	xtal_bias_lock(&cq->consumer);
	collect(cq);
	if (!xtal_list_empty(&s->node)) {
		xtal_list_remove(&s->node);
		cq->listed_count--;
	}
	xtal_feed_dropped(s);
	xtal_bias_unlock(&cq->consumer);
	atomic_fetch_sub(&cq->users, 1);
}

int xtal_shared_cq_create(struct xtal_context *ctx, const struct xtal_shared_cq_attr *attr,
			  struct xtal_shared_cq **out)
{
	struct xtal_shared_cq *cq;

	if (ctx->foreign)
		return -ECHILD;
	cq = aligned_alloc(XTAL_CACHE_LINE, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ctx = ctx;
	cq->owner = attr->owner;
	cq->channel = attr->channel;
	cq->depth = attr->depth;
	cq->id = attr->id;
	xtal_async_source_init(&cq->own);
	cq->overrun = attr->source ? attr->source : &cq->own;
	xtal_list_init(&cq->listed);
	xtal_list_init(&cq->node);
	if (cq->channel)
		atomic_fetch_add(&cq->channel->users, 1);
	atomic_fetch_add(&ctx->cq_count, 1);
	*out = cq;
	return 0;
}

/* Until all events that were taken are acknowledged. */
static void wait_for_acks(struct xtal_shared_cq *cq)
{
	uint64_t complain = xtal_os_now() + COMPLAIN_NS;

	for (;;) {
		unsigned acked = atomic_load(&cq->acked), taken = atomic_load(&cq->taken);

		if (acked == taken)
			return;
		if (xtal_os_futex_wait(&cq->acked, acked, complain) != -ETIMEDOUT)
			continue;
		if (complain != UINT64_MAX)
			xtal_log(XTAL_LOG_WARNING, "xtal",
				 "destroying a completion queue waits until %u of its events are "
				 "acknowledged",
				 taken - acked);
		complain = UINT64_MAX;
	}
}

int xtal_shared_cq_destroy(struct xtal_shared_cq **cqp, bool wait)
{
	struct xtal_shared_cq *cq = *cqp;

	if (!cq->ctx->foreign) {
		if (atomic_load(&cq->users))
			return -EBUSY;
		if (!wait && atomic_load(&cq->acked) != atomic_load(&cq->taken))
			return -EAGAIN;
		if (cq->channel)
			xtal_channel_forget(cq);
		wait_for_acks(cq);
		xtal_context_forget(cq->ctx, &cq->own);
		atomic_fetch_sub(&cq->ctx->cq_count, 1);
	}
	*cqp = NULL;
	if (cq->channel)
		atomic_fetch_sub(&cq->channel->users, 1);
	free(cq);
	return 0;
}

/* Whoever is served now is the last one next time. */
static void rotate(struct xtal_shared_cq *cq, struct xtal_feed *s)
{
	struct xtal_list *next = s->node.next;

	if (next == &cq->listed)
		return;
	xtal_list_remove(&cq->listed);
	xtal_list_append(next, &cq->listed); /* before the next one */
}

/* Under the consumer's lock. */
static uint32_t take(struct xtal_shared_cq *cq, uint32_t count, struct xtal_record *out)
{
	struct xtal_list *n, *next;
	uint32_t got = 0;

	look(cq);
	for (n = cq->listed.next; n != &cq->listed; n = next) {
		struct xtal_feed *s = xtal_container_of(n, struct xtal_feed, node);
		uint32_t here = s->ops->take(s, count - got, out + got);

		next = n->next;
		uncount(s, here);
		got += here;
		if (got == count) {
			rotate(cq, s);
			break;
		}
		if (!here && cq->listed_count > KEEP_LISTED && s->ops->leave(s)) {
			xtal_list_remove(n);
			cq->listed_count--;
		}
	}
	return got;
}

static inline struct xtal_feed *first_feed(const struct xtal_shared_cq *cq)
{
	return xtal_container_of(cq->listed.next, struct xtal_feed, node);
}

/* Under the consumer's lock, of which it lets go when there is nothing. */
static inline struct xtal_run peek(struct xtal_shared_cq *cq, uint32_t count,
				   const struct xtal_signature **signature)
{
	struct xtal_run run = { NULL, 0 };
	const struct xtal_cq *places;
	uint64_t head, at, rest;

	/* Only the first one's: whoever is served is the last one next time. */
	places = cq->listed.next != &cq->listed ? first_feed(cq)->places : NULL;
	if (xtal_likely(places != NULL)) {
		head = atomic_load_explicit(&places->head, memory_order_relaxed);
		at = head & places->mask;
		rest = places->mask + 1 - at; /* places up to the ring's end */
		run.first = &places->ring[at];
		/* Partner: the release store in push. */
		run.count = atomic_load_explicit(&places->tail, memory_order_acquire) - head;
		run.count = run.count < rest ? run.count : rest;
		run.count = run.count < count ? run.count : count;
		*signature = first_feed(cq)->signature;
	}
	return run;
}

/* By another thread than the lock's owner, or when sources have entered. */
static __attribute__((noinline)) struct xtal_run peek_slowly(
	struct xtal_shared_cq *cq, uint32_t count, const struct xtal_signature **signature)
{
	struct xtal_run run = { NULL, 0 };

	if (cq->ctx->foreign)
		return run;
	xtal_bias_lock_own(&cq->consumer);
	look(cq);
	run = peek(cq, count, signature);
	if (!run.count)
		xtal_bias_unlock(&cq->consumer);
	return run;
}

/* Calls nothing, unless at its end: a call costs what has to be saved before. */
struct xtal_run xtal_shared_cq_peek(struct xtal_shared_cq *cq, uint32_t count,
				    const struct xtal_signature **signature)
{
	struct xtal_run run;

	if (xtal_unlikely(atomic_load_explicit(&cq->incoming, memory_order_relaxed) != NULL ||
			  cq->ctx->foreign || !xtal_bias_enter(&cq->consumer)))
		return peek_slowly(cq, count, signature);
	run = peek(cq, count, signature);
	if (!run.count)
		xtal_bias_leave(&cq->consumer);
	return run;
}

void xtal_shared_cq_polled(struct xtal_shared_cq *cq, uint32_t count, uint32_t taken)
{
	struct xtal_feed *s = first_feed(cq);

	if (xtal_likely(taken)) {
		uint64_t head = atomic_load_explicit(&s->places->head, memory_order_relaxed);

		/* Partner: xtal_cq_taken() of the producer that will overwrite the places. */
		atomic_store_explicit(&s->places->head, head + taken, memory_order_release);
		if (xtal_unlikely(cq->depth != 0))
			uncount(s, taken);
		if (xtal_unlikely(taken == count && s->node.next != &cq->listed))
			rotate(cq, s);
	}
	xtal_bias_unlock(&cq->consumer);
}

/* Under the consumer's lock. */
static __attribute__((noinline)) void help(struct xtal_shared_cq *cq)
{
	for (struct xtal_list *n = cq->listed.next; n != &cq->listed; n = n->next) {
		struct xtal_feed *s = xtal_container_of(n, struct xtal_feed, node);

		s->ops->help(s);
	}
	if (atomic_load_explicit(&cq->receivers, memory_order_relaxed))
		xtal_server_poll(cq->ctx);
}

int xtal_shared_cq_poll(struct xtal_shared_cq *cq, uint32_t count, struct xtal_record *out)
{
	uint32_t n;

	if (xtal_unlikely(cq->ctx->foreign))
		return -ECHILD;
	if (!count)
		return 0;
	xtal_bias_lock_own(&cq->consumer);
	n = take(cq, count, out);
	if (xtal_unlikely(!n)) {
		help(cq);
		n = take(cq, count, out);
	}
	xtal_bias_unlock_own(&cq->consumer);
	if (!n)
		xtal_os_polled_in_vain();
	return (int)n;
}

int xtal_shared_cq_arm(struct xtal_shared_cq *cq, bool solicited_only)
{
	uint32_t want = solicited_only ? XTAL_WEIGHT_HEAVY : XTAL_WEIGHT_PLAIN;
	enum xtal_weight most = XTAL_WEIGHT_NONE;

	if (cq->ctx->foreign)
		return -ECHILD;
	if (!cq->channel)
		return -EINVAL;
	xtal_bias_lock_own(&cq->consumer);
	if (atomic_load_explicit(&cq->armed, memory_order_relaxed) == XTAL_WEIGHT_PLAIN)
		want = XTAL_WEIGHT_PLAIN;
	/* Partner: pushed() enters, then looks at armed. */
	atomic_store(&cq->armed, want);
	collect(cq);
	for (struct xtal_list *n = cq->listed.next; n != &cq->listed; n = n->next) {
		struct xtal_feed *s = xtal_container_of(n, struct xtal_feed, node);
		enum xtal_weight weight = s->ops->watch(s);

		if (weight > most)
			most = weight;
		s->ops->hand_over(s);
	}
	if (atomic_load_explicit(&cq->receivers, memory_order_relaxed))
		xtal_server_hand_over(cq->ctx);
	if (most >= want)
		fire(cq);
	xtal_bias_unlock_own(&cq->consumer);
	return 0;
}

void xtal_shared_cq_look(struct xtal_shared_cq *cq, bool *armed, bool *waiting)
{
	xtal_bias_lock_own(&cq->consumer);
	*armed = atomic_load(&cq->armed) != 0;
	*waiting = false;
	collect(cq);
	for (struct xtal_list *n = cq->listed.next; n != &cq->listed; n = n->next) {
		struct xtal_feed *s = xtal_container_of(n, struct xtal_feed, node);

		*waiting |= s->ops->watch(s) != XTAL_WEIGHT_NONE;
	}
	xtal_bias_unlock_own(&cq->consumer);
}

uint32_t xtal_shared_cq_ack(struct xtal_shared_cq *cq, uint32_t count)
{
	unsigned acked = atomic_load(&cq->acked);
	uint32_t n;

	do {
		uint32_t open = atomic_load(&cq->taken) - acked;

		n = count < open ? count : open;
	} while (!atomic_compare_exchange_weak(&cq->acked, &acked, acked + n));
	xtal_os_futex_wake(&cq->acked, INT32_MAX);
	return n;
}
