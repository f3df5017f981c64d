/* SPDX-License-Identifier: MIT */
/*
 * A completion queue: producers push under their lock, one consumer at a time pops. Sized so
 * that everything accepted fits: completions are never lost. Arming is done under the
 * producers' lock (model: test/model/arm.pml).
 */
#ifndef XTAL_CORE_CQ_H
#define XTAL_CORE_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/bias.h"
#include "core/op.h"

struct xtal_cq {
	/* producers: under *lock */
	struct xtal_bias *lock;
	struct xtal_completion *ring;
	uint64_t mask;
	_Atomic uint64_t tail;
	bool notify; /* armed fd or sleepers: look closer at the next push */
	bool armed;  /* the fd is to be signalled */
	uint32_t sleepers;
	_Atomic int fd; /* -1: none yet */
	bool shared;    /* a shared completion queue takes from here (feed.h) */
	/* consumer */
	_Alignas(XTAL_CACHE_LINE) struct xtal_bias consumer;
	_Atomic uint64_t head;
	atomic_uint signal; /* futex word: bumped for sleepers */
};

/* Room for depth completions. Errors: -ENOMEM. */
int xtal_cq_init(struct xtal_cq *cq, uint32_t depth, struct xtal_bias *lock);
void xtal_cq_fini(struct xtal_cq *cq);

/* Wakes sleepers and signals the fd. Under the lock. */
void xtal_cq_notify(struct xtal_cq *cq);
/* The same for a queue's that is shared (queue_shared.c). */
void xtal_cq_tell(struct xtal_cq *cq);

/* Under the lock. There is room: the place of the next completion, seen by nobody until the
 * push that follows. */
static inline struct xtal_completion *xtal_cq_place(struct xtal_cq *cq)
{
	return &cq->ring[atomic_load_explicit(&cq->tail, memory_order_relaxed) & cq->mask];
}

/* Under the lock. The place is filled. */
static inline void xtal_cq_push(struct xtal_cq *cq)
{
	uint64_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* Partner: the consumer's acquire load. */
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	if (xtal_unlikely(cq->notify))
		xtal_cq_notify(cq);
}

static inline bool xtal_cq_empty(struct xtal_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire) ==
	       atomic_load_explicit(&cq->head, memory_order_relaxed);
}

/* Completions taken so far: what the producers count room by. */
static inline uint64_t xtal_cq_taken(struct xtal_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire);
}

/*
 * Up to count completions in their places. Not 0: the consumer lock is held, and
 * xtal_cq_release() follows.
 */
static inline uint32_t xtal_cq_peek(struct xtal_cq *cq, uint32_t count, struct xtal_ready *out)
{
	uint64_t head, ready;

	if (xtal_unlikely(xtal_cq_empty(cq)))
		return 0;
	xtal_bias_lock_own(&cq->consumer);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* Partner: the release store in push. */
	ready = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;
	if (xtal_unlikely(!ready)) {
		xtal_bias_unlock(&cq->consumer);
		return 0;
	}
	*out = (struct xtal_ready){ .ring = cq->ring, .first = head, .mask = cq->mask };
	return ready < count ? (uint32_t)ready : count;
}

/* The first n of them are taken. */
static inline void xtal_cq_release(struct xtal_cq *cq, uint32_t n)
{
	uint64_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	/* Partner: xtal_cq_taken() of a producer that will overwrite the places. */
	atomic_store_explicit(&cq->head, head + n, memory_order_release);
	xtal_bias_unlock(&cq->consumer);
}

/* The queue was found empty. True: the event fd, if there is one, tells of the next completion;
 * false: look again, something came. */
bool xtal_cq_rearm(struct xtal_cq *cq);

/* Sleeps until something waits or the deadline (ns) passes. True: something may wait. */
bool xtal_cq_sleep(struct xtal_cq *cq, uint64_t deadline);

/* The event fd, made and armed at the first call. Errors: -errno. */
int xtal_cq_event_fd(struct xtal_cq *cq);

#endif
