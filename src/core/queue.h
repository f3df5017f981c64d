/* SPDX-License-Identifier: MIT */
/*
 * Queues: operations go in through post, in order; one completion each comes out of the
 * queue's completion queue, in the same order.
 */
#ifndef XTAL_CORE_QUEUE_H
#define XTAL_CORE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/context.h"
#include "core/op.h"

struct xtal_domain;
struct xtal_async_source;
struct xtal_endpoint;
struct xtal_queue;
struct xtal_shared_cq;

/* After an error a queue with a shared completion queue stops; without one it goes on. */
enum xtal_queue_state {
	XTAL_QUEUE_RESET = 0,
	XTAL_QUEUE_READY = 1,
	XTAL_QUEUE_SUSPENDED = 2,
	XTAL_QUEUE_ERROR = 3,
};

#define XTAL_RNR_FOREVER 7u

struct xtal_queue_attr {
	uint32_t depth;      /* operations accepted and not yet polled, 1..XTAL_MAX_QUEUE_DEPTH */
	uint32_t timeout_ms; /* without progress; 0: the configured default */
	const struct xtal_domain *domain; /* whose pipelines to use; NULL: all */
	void *owner;                      /* the front-end's */
	/* What xtal_queue_put8() and get8() do, and return, when their way is not open. */
	int (*long_way)(void *owner, enum xtal_opcode opcode, uint64_t *addr, uint64_t *local);
	/* The rest is for queues with a shared completion queue. */
	struct xtal_shared_cq *cq; /* outlives the queue; NULL: one of its own, and no states */
	uint32_t id;               /* as records and peers are told; of a jetty: its own */
	uint64_t stamp;            /* in the signature of its completions */
	bool jetty;                /* its messages come from a jetty: receivers are told */
	bool error_suspend;        /* an error suspends instead of ending in ERROR */
	bool datagram;             /* a message that cannot be delivered is dropped, and succeeds */
	uint8_t rnr_retry;         /* 0..6 times, or XTAL_RNR_FOREVER */
	uint32_t rnr_us;           /* between two tries, if the receiver asks for nothing; 0: 100 */
	struct xtal_endpoint *endpoint;   /* its receiving half: FLUSH_DONE follows what that has
					 * received; NULL: none. Outlives the queue */
	struct xtal_async_source *source; /* of its XTAL_ASYNC_QUEUE_ERROR; NULL: that event goes
					   * with the queue */
};

/* Errors: -EINVAL (depth, a domain without pipelines), -ENOSPC (XTAL_MAX_QUEUES), -ENOMEM. */
XTAL_INTERNAL_API int xtal_queue_create(struct xtal_context *ctx,
					const struct xtal_queue_attr *attr,
					struct xtal_queue **out);
/* Waits until what is in flight has ended (bounded by the time limit), discards unpolled
 * completions, frees. NULLs *queue. */
XTAL_INTERNAL_API void xtal_queue_destroy(struct xtal_queue **queue);

XTAL_INTERNAL_API uint32_t xtal_queue_id(const struct xtal_queue *queue);

/*
 * Accepts one operation; never blocks. Short ones are executed before it returns.
 * Assumes: opcode, len and operand sizes are valid (the front-end checked).
 * Errors: -EAGAIN (depth operations are accepted and not polled), -ECHILD (forked child).
 */
XTAL_INTERNAL_API int xtal_queue_post(struct xtal_queue *queue, const struct xtal_op *op);

/*
 * Queues with a shared completion queue only. READY: executes. SUSPENDED: accepts and keeps; a
 * record with status SUSPEND_DONE tells when nothing is under way any more. ERROR: what was
 * accepted comes back as FLUSHED, in order, then one record FLUSH_DONE; what is posted from then on
 * is kept for flush. RESET: what is kept and what was not polled is forgotten; posts are refused
 * with -ENOTCONN. Errors: -EPERM, and the state stays, for all but RESET to READY, READY
 * to SUSPENDED, READY or SUSPENDED to ERROR, ERROR to RESET, and the same again.
 */
XTAL_INTERNAL_API int xtal_queue_set_state(struct xtal_queue *queue, enum xtal_queue_state state);
XTAL_INTERNAL_API enum xtal_queue_state xtal_queue_get_state(const struct xtal_queue *queue);
/*
 * Hands back up to count operations that were posted in ERROR: their user values, oldest first.
 * Returns how many; 0 before FLUSH_DONE was polled.
 */
XTAL_INTERNAL_API uint32_t xtal_queue_flush(struct xtal_queue *queue, uint32_t count,
					    uint64_t *users);

/*
 * The same for queues with a shared completion queue: all opcodes and flags. op->local and what it
 * names (SGES) are the caller's again when it returns. Errors: also -ENOMEM, -ENOTCONN (RESET).
 */
XTAL_INTERNAL_API int xtal_queue_submit(struct xtal_queue *queue, const struct xtal_op *op);

/*
 * A write or read of 8 bytes, or adding value to 8 bytes (local: where the old ones go), in the cheapest
 * way: 0, as above. It is open to the thread that posts most, to a target whose key came with the
 * operation before. Otherwise nothing has happened, and they end with attr.long_way: given the
 * addresses where they are, the front-end finds its arguments again without having kept them, and
 * the two need no registers saved. add8: -ENOENT, post it.
 */
XTAL_INTERNAL_API int xtal_queue_put8(struct xtal_queue *queue, uint64_t user, uint64_t *addr,
				      uint64_t *local, struct xtal_key key);
XTAL_INTERNAL_API int xtal_queue_get8(struct xtal_queue *queue, uint64_t user, uint64_t *addr,
				      uint64_t *local, struct xtal_key key);
XTAL_INTERNAL_API int xtal_queue_add8(struct xtal_queue *queue, struct xtal_key key, uint64_t addr,
				      uint64_t local, uint64_t user, uint64_t value);

/*
 * The same for queues with a shared completion queue; otherwise all return -ENOENT. name: key.a, key.b
 * is 0. mark: what of an operation its record shows, xtal_mark(). All of it in registers: what is
 * put together in memory from smaller parts has to wait there, 4 ns.
 */
XTAL_INTERNAL_API int xtal_queue_put8_marked(struct xtal_queue *queue, uint64_t addr,
					     uint64_t local, uint64_t user, uint64_t mark,
					     uint64_t name);
XTAL_INTERNAL_API int xtal_queue_get8_marked(struct xtal_queue *queue, uint64_t addr,
					     uint64_t local, uint64_t user, uint64_t mark,
					     uint64_t name);
XTAL_INTERNAL_API int xtal_queue_add8_marked(struct xtal_queue *queue, uint64_t addr,
					     uint64_t local, uint64_t user, uint64_t mark,
					     uint64_t name, uint64_t value);
/* Where a completion has them. flags: XTAL_OP_UNSIGNALLED or 0. */
static inline uint64_t xtal_mark(uint32_t target, uint8_t flags)
{
	return (uint64_t)target << 32 | (uint64_t)flags << 24;
}

/*
 * Queues with a completion queue of their own only, like all that follow. Shows up to count completions in their places, without blocking; also drives the engine's
 * work for this queue on the caller's thread. Returns how many, or -ECHILD in a forked child.
 * When it is more than 0, no other thread takes any until the caller, soon, says with
 * xtal_queue_polled() how many it took.
 */
XTAL_INTERNAL_API int xtal_queue_poll(struct xtal_queue *queue, uint32_t count,
				      struct xtal_ready *out);
XTAL_INTERNAL_API void xtal_queue_polled(struct xtal_queue *queue, uint32_t taken);

/* Like poll, but sleeps until there is at least one, at most timeout_ms (negative: no limit).
 * Returns how many, 0 when the time ran out, -ECHILD. Signals do not end it. */
XTAL_INTERNAL_API int xtal_queue_wait(struct xtal_queue *queue, uint32_t count, int timeout_ms,
				      struct xtal_ready *out);

#endif
