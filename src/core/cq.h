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
#include "base/lock.h"
#include "core/op.h"

struct xtal_cq {
	/* producers: under *lock */
	struct xtal_lock *lock;
	struct xtal_completion *ring;
	uint64_t mask;
	_Atomic uint64_t tail;
	bool notify; /* armed fd or sleepers: look closer at the next push */
	bool armed;  /* the fd is to be signalled */
	uint32_t sleepers;
	_Atomic int fd; /* -1: none yet */
	/* consumer */
	_Alignas(XTAL_CACHE_LINE) struct xtal_lock consumer;
	_Atomic uint64_t head;
	atomic_uint signal; /* futex word: bumped for sleepers */
};

/* Room for depth completions. Errors: -ENOMEM. */
int xtal_cq_init(struct xtal_cq *cq, uint32_t depth, struct xtal_lock *lock);
void xtal_cq_fini(struct xtal_cq *cq);

/* Wakes sleepers and signals the fd. Under the lock. */
void xtal_cq_notify(struct xtal_cq *cq);

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

/* Takes up to count; holds the consumer lock inside. */
uint32_t xtal_cq_pop(struct xtal_cq *cq, uint32_t count, struct xtal_completion *out);

/* Sleeps until something waits or the deadline (ns) passes. True: something may wait. */
bool xtal_cq_sleep(struct xtal_cq *cq, uint64_t deadline);

/* The event fd, made and armed at the first call. Errors: -errno. */
int xtal_cq_event_fd(struct xtal_cq *cq);

#endif
