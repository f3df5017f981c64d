/* SPDX-License-Identifier: MIT */
/* Long copies in fragments; see bulk.h. */
#include "core/bulk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/copy.h"
#include "base/interval.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/lane.h"
#include "core/link.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"

struct xtal_bulk {
	_Atomic uint32_t refs;
	struct xtal_list node; /* in the list below while fragments are left to claim */
	bool listed;
	struct xtal_pending *pending; /* until done is set */
	struct xtal_queue *queue;
	struct xtal_grant *grant; /* a reference */
	bool put, full_fence;
	bool overlaps; /* itself: one fragment, moved in the order which that takes */
	uint32_t pipeline, mask, context_number;
	uint64_t remote, local, len, step, count; /* fragments of step bytes, count of them */
	const _Atomic uint64_t *slot_word, *local_word;
	uint64_t word, local_was, announce, local_announce;
	_Atomic uint64_t next, done; /* fragments claimed, finished */
	_Atomic uint32_t status, helpers;
};

/* No status: the word of one of the segments has changed. Either pages were exchanged, and all is
 * to be done again, or the segment is gone, which starting again finds out. */
#define MOVED UINT32_MAX

static struct xtal_lock bulks_lock;
static struct xtal_list bulks = { &bulks, &bulks };

struct xtal_link *xtal_bulk_link(const struct xtal_bulk *b)
{
	return b->grant->link;
}

void xtal_bulk_get(struct xtal_bulk *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void xtal_bulk_put(struct xtal_bulk *b)
{
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	xtal_grant_put(b->grant);
	free(b);
}

int xtal_bulk_start(struct xtal_pending *p, const struct xtal_xlat *t, const struct xtal_local *l)
{
	struct xtal_bulk *b = calloc(1, sizeof(*b));
	uint64_t step = xtal_config()->fragment_bytes;

	if (!b)
		return -ENOMEM;
	b->pending = p;
	b->queue = p->queue;
	b->pipeline = p->queue->pipeline;
	b->mask = p->queue->mask;
	b->context_number = p->queue->ctx->number;
	b->grant = t->grant;
	atomic_fetch_add_explicit(&b->grant->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&b->grant->link->refs, 1, memory_order_relaxed);
	b->put = p->op.opcode == XTAL_OP_WRITE;
	b->full_fence = t->full_fence;
	b->remote = p->op.remote.addr;
	b->local = p->op.local;
	b->len = p->op.len;
	b->overlaps = t->reach.kind == XTAL_REACH_DIRECT &&
		      xtal_ranges_meet((uintptr_t)xtal_reach_place(&t->reach, b->remote), b->len,
				       b->local, b->len);
	b->step = b->overlaps ? b->len : step;
	b->count = (b->len + b->step - 1) / b->step;
	b->slot_word = t->slot_word;
	b->word = t->word;
	b->announce = t->announce;
	b->local_word = l->slot_word;
	b->local_was = l->word;
	b->local_announce = l->announce;
	atomic_store(&b->refs, 2); /* p's and the list's */
	p->bulk = b;
	b->listed = true;
	xtal_lock(&bulks_lock);
	xtal_list_append(&bulks, &b->node);
	xtal_unlock(&bulks_lock);
	xtal_pipeline_wake(b->pipeline);
	return 0;
}

/* Takes b out of the list once nothing is left to claim. */
static void unlist(struct xtal_bulk *b)
{
	bool mine;

	xtal_lock(&bulks_lock);
	mine = b->listed;
	if (mine)
		xtal_list_remove(&b->node);
	b->listed = false;
	xtal_unlock(&bulks_lock);
	if (mine)
		xtal_bulk_put(b);
}

struct xtal_bulk *xtal_bulk_next(uint32_t pipeline)
{
	struct xtal_bulk *found = NULL;

	xtal_lock(&bulks_lock);
	for (struct xtal_list *n = bulks.next; n != &bulks && !found; n = n->next) {
		struct xtal_bulk *b = xtal_container_of(n, struct xtal_bulk, node);

		if (b->mask & 1u << pipeline &&
		    atomic_load_explicit(&b->next, memory_order_relaxed) < b->count) {
			xtal_bulk_get(b);
			found = b;
		}
	}
	xtal_unlock(&bulks_lock);
	return found;
}

/* Which word the executor announces itself in, and what it moves. */
struct executor {
	struct xtal_lane lane;
	struct xtal_activity *activity;
};

static int seat(struct xtal_bulk *b, struct executor *e)
{
	struct xtal_link *link = b->grant->link;

	xtal_lane_init(&e->lane);
	e->activity = link->self ? &e->lane.self : xtal_link_seat(link, true);
	if (e->activity)
		return 0;
	xtal_lane_fini(&e->lane);
	return -EBUSY;
}

static void unseat(struct xtal_bulk *b, struct executor *e)
{
	if (!b->grant->link->self)
		xtal_link_unseat(b->grant->link, e->activity);
	xtal_lane_fini(&e->lane);
}

/* A fragment of something larger than the caches, over a direct path: it cannot fail. */
static void stream(struct xtal_bulk *b, uint64_t offset, uint64_t len)
{
	uint8_t *remote = xtal_reach_place(&b->grant->reach, b->remote + offset);
	uint8_t *local = (uint8_t *)(uintptr_t)(b->local + offset);

	if (!b->put)
		xtal_copy_stream(local, remote, len);
	else if (offset + len == b->len)
		xtal_copy_stream_body(remote, local, len);
	else
		xtal_copy_stream(remote, local, len);
}

static int move(struct xtal_bulk *b, struct executor *e, uint64_t offset, uint64_t len, bool tail)
{
	const struct xtal_reach *reach = &b->grant->reach;
	const struct xtal_path_ops *path = xtal_path_table[reach->kind];
	void *local = (void *)(uintptr_t)(b->local + offset);
	uint64_t remote = b->remote + offset;

	if (b->overlaps && b->put) /* with its tail, whose source may be written by then */
		return tail ? 0 : path->put(reach, e->activity->iov, remote, local, len);
	if (b->len >= XTAL_COPY_STREAM_MIN && !b->overlaps && reach->kind == XTAL_REACH_DIRECT &&
	    !tail) {
		stream(b, offset, len);
		return 0;
	}
	if (!b->put)
		return path->get(reach, e->activity->iov, remote, local, len);
	if (tail)
		return path->put_tail(reach, e->activity->iov, remote, local, len);
	/* The last fragment leaves the last word to whoever finishes last. */
	if (offset + len == b->len)
		return path->put_body(reach, e->activity->iov, remote, local, len);
	return path->put(reach, e->activity->iov, remote, local, len);
}

/* The first failure counts. */
static void fail(struct xtal_bulk *b, uint32_t status)
{
	uint32_t ok = XTAL_OK;

	atomic_compare_exchange_strong(&b->status, &ok, status);
}

/* Moves one piece under announcements; failures end up in the status. */
static void execute(struct xtal_bulk *b, struct executor *e, uint64_t offset, uint64_t len,
		    bool tail)
{
	uint32_t status = XTAL_OK;
	bool fresh = false, local_fresh = false, moved;
	int err = -ESTALE;

	/* The owner may be dead, and its pid soon somebody else's. */
	if (atomic_load(&b->grant->link->state) == XTAL_LINK_DEAD) {
		fail(b, XTAL_UNREACHABLE);
		return;
	}
	for (unsigned tries = 0; err == -ESTALE && tries < 1000; tries++) {
		xtal_path_table[b->grant->reach.kind]->prepare(e->activity->iov, b->remote + offset,
							       len, tail);
		atomic_store_explicit(&e->lane.local, b->local_announce, memory_order_relaxed);
		atomic_store_explicit(&e->activity->word, b->announce, memory_order_release);
		xtal_lane_fence(b->full_fence);
		/* Partner: unregister bumps, then fences. */
		fresh = atomic_load_explicit(b->slot_word, memory_order_acquire) == b->word;
		local_fresh =
			atomic_load_explicit(b->local_word, memory_order_acquire) == b->local_was;
		err = fresh && local_fresh ? move(b, e, offset, len, tail) : 0;
		moved = fresh && local_fresh && !err;
		if (fresh)
			fresh = atomic_load_explicit(b->slot_word, memory_order_acquire) == b->word;
		atomic_store_explicit(&e->activity->word, 0, memory_order_release);
		atomic_store_explicit(&e->lane.local, 0, memory_order_release);
		if (moved && !fresh && !xtal_activity_was_cut(e->activity))
			fresh = true;
		if (!fresh || !local_fresh)
			break;
	}
	if (!local_fresh || !fresh)
		status = MOVED;
	else if (err && xtal_grant_cma_ended(b->grant, err)) {
		xtal_link_forget(b->grant);
		status = MOVED;
	} else if (err == -EFAULT &&
		   xtal_os_probe_access((void *)(uintptr_t)b->local, b->len, !b->put))
		status = XTAL_LOCAL_ACCESS;
	else if (err)
		status = XTAL_REMOTE_ACCESS;
	if (status)
		fail(b, status);
}

/* All fragments are in place: the last word, then the completion. */
static void finish(struct xtal_bulk *b, struct executor *e)
{
	struct xtal_pending *p = b->pending;
	struct xtal_queue *q = b->queue;
	uint64_t last = (b->count - 1) * b->step;
	struct xtal_bulk *again = NULL;
	uint32_t status;

	if (b->put && !atomic_load_explicit(&b->status, memory_order_relaxed)) {
		atomic_thread_fence(memory_order_seq_cst);
		execute(b, e, last, b->len - last, true);
	}
	unseat(b, e);
	/* Under the lock, so that the queue stays until we are out of it. */
	xtal_bias_lock(&q->lock);
	status = atomic_load_explicit(&b->status, memory_order_relaxed);
	if (status == MOVED) {
		xtal_xlats_purge(&q->xlats, b->grant->link);
		again = xtal_pending_again(q, p);
	} else {
		atomic_store_explicit(&p->status, status, memory_order_relaxed);
		atomic_store_explicit(&p->done, true, memory_order_release);
	}
	xtal_queue_progress(q);
	xtal_bias_unlock(&q->lock);
	if (again)
		xtal_bulk_put(again);
}

/* Nobody polls: let the next pipeline of the mask join. */
static void wake_another(const struct xtal_bulk *b)
{
	uint32_t count = xtal_config()->pipelines;

	for (uint32_t i = 1; i < count; i++) {
		uint32_t other = (b->pipeline + i) % count;

		if (b->mask & 1u << other) {
			xtal_pipeline_wake(other);
			return;
		}
	}
}

bool xtal_bulk_help(struct xtal_bulk *b, bool poller)
{
	struct executor e;
	uint64_t i, len;

	if (atomic_load_explicit(&b->next, memory_order_relaxed) >= b->count || seat(b, &e))
		return false;
	if (poller)
		atomic_store_explicit(&b->helpers, 1, memory_order_relaxed);
	i = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
	if (i >= b->count) {
		unseat(b, &e);
		return false;
	}
	if (i + 1 == b->count)
		unlist(b);
	len = i + 1 == b->count ? b->len - i * b->step : b->step;
	if (!atomic_load_explicit(&b->status, memory_order_relaxed))
		execute(b, &e, i * b->step, len, false);
	if (!poller && !atomic_load_explicit(&b->helpers, memory_order_relaxed) && i == 0)
		wake_another(b);
	/* Release: the fragment is in place. Acquire: so are all others, for the last one. */
	if (atomic_fetch_add_explicit(&b->done, 1, memory_order_acq_rel) + 1 == b->count)
		finish(b, &e);
	else
		unseat(b, &e);
	if (poller)
		xtal_os_polled_with_work();
	return true;
}

void xtal_bulks_fork_child(void)
{
	atomic_store(&bulks_lock.held, 0);
	xtal_list_init(&bulks);
}
