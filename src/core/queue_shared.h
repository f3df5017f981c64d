/* SPDX-License-Identifier: MIT */
/* What a queue has beside its body when it shares a completion queue. */
#ifndef XTAL_CORE_QUEUE_SHARED_H
#define XTAL_CORE_QUEUE_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/context.h"
#include "core/feed.h"
#include "core/queue_impl.h"

#define XTAL_STALLS 16u

/* A peer that is not ready before then: what the queue has for it is parked. */
struct xtal_stall {
	struct xtal_eid eid;
	uint32_t port;     /* whatever else of its tid a program knows */
	uint64_t again_at; /* ns */
};

/* Under the queue's lock, but for what never changes. */
struct xtal_sharing {
	struct xtal_feed feed;
	struct xtal_signature signature;
	struct xtal_queue *queue;
	struct xtal_async_source own, *broken; /* own, or the front-end's */
	void *owner;
	uint32_t public_id;
	bool jetty, error_suspend, datagram;
	struct xtal_endpoint *endpoint; /* its receiving half, or NULL */
	uint8_t rnr_retry;
	uint64_t pause_ns;                      /* between two tries of a message */
	bool flush_marked, suspend_marked;      /* FLUSH_DONE, SUSPEND_DONE were pushed */
	_Atomic bool flush_taken;               /* ... and polled */
	struct xtal_pending *kept, **kept_last; /* posted in ERROR, for flush */
	uint32_t kept_count;
	bool sending;                   /* messages are under way: nothing else follows them */
	struct xtal_pending *last_send; /* of those, or NULL */
	uint64_t again_at;              /* ns: not before, a message is tried again */
	struct xtal_stall stalls[XTAL_STALLS];
	uint32_t stalled;
	struct xtal_pending *parked_last; /* while any is parked */
};

/* The message that the next one would follow has ended, and was not received. (One that was, and is
 * another operation by now, has not ended.) */
static inline bool xtal_send_follows_failed(const struct xtal_sharing *share)
{
	struct xtal_pending *last = share->last_send;

	return last && !share->datagram &&
	       atomic_load_explicit(&last->done, memory_order_acquire) &&
	       atomic_load_explicit(&last->status, memory_order_relaxed) != XTAL_OK;
}

/* All under the lock. Posted in ERROR: it is kept. Errors: -EAGAIN (depth are), -ENOMEM. */
int xtal_queue_keep(struct xtal_queue *q, const struct xtal_op *op);

/* The peer of p is not ready before again_at. False: too many are not, the queue as a whole waits. */
bool xtal_stall_begin(struct xtal_queue *q, const struct xtal_pending *p, uint64_t again_at);

#endif
