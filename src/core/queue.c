/* SPDX-License-Identifier: MIT */
/* Queues: creating, posting, polling, waiting, freeing; the agent's look at busy ones. */
#include "core/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/agent.h"
#include "core/bulk.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/domain.h"
#include "core/engine.h"
#include "core/link.h"
#include "core/log.h"
#include "core/messages.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "os/proc.h"

static struct xtal_lock tick_lock;
static struct xtal_list tick_queues = { &tick_queues, &tick_queues };

int xtal_queue_create(struct xtal_context *ctx, const struct xtal_queue_attr *attr,
		      struct xtal_queue **out)
{
	uint32_t timeout = attr->timeout_ms ? attr->timeout_ms : xtal_config()->timeout_ms;
	struct xtal_queue *q;
	int err;

	if (ctx->foreign)
		return -ECHILD;
	if (!attr->depth || attr->depth > XTAL_MAX_QUEUE_DEPTH) {
		xtal_explain("queue of depth %u: the depth must be 1 to %u", attr->depth,
			     XTAL_MAX_QUEUE_DEPTH);
		return -EINVAL;
	}
	q = aligned_alloc(XTAL_CACHE_LINE, (sizeof(*q) + 63) & ~(size_t)63);
	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->ctx = ctx;
	q->owner = attr->owner;
	q->long_way = attr->long_way;
	q->depth = attr->depth;
	q->mask = attr->domain ? xtal_domain_mask(attr->domain) : xtal_domain_all();
	q->timeout_ns = (uint64_t)timeout * 1000000;
	q->last = &q->first;
	q->state = XTAL_QUEUE_READY;
	xtal_list_init(&q->node);
	xtal_list_init(&q->tick_node);
	xtal_list_init(&q->wait_node);
	err = xtal_domain_choose(ctx, q->mask, &q->pipeline);
	if (err)
		goto free_queue;
	err = xtal_xlats_init(&q->xlats);
	if (err)
		goto free_queue;
	/* Beside the operations': SUSPEND_DONE and FLUSH_DONE. */
	err = xtal_cq_init(&q->cq, attr->cq ? q->depth + 2 : q->depth, &q->lock);
	if (err)
		goto fini_xlats;
	err = attr->cq ? xtal_queue_share(q, attr) : 0;
	if (err)
		goto fini_cq;
	err = xtal_fault_of_queue(&q->fault);
	if (err)
		goto unshare;
	xtal_lock(&ctx->queues_lock);
	if (ctx->queue_count == XTAL_MAX_QUEUES) {
		xtal_unlock(&ctx->queues_lock);
		xtal_explain("the context has %u queues, the most there can be", XTAL_MAX_QUEUES);
		err = -ENOSPC;
		goto unshare;
	}
	ctx->queue_count++;
	q->id = ctx->next_queue_id++ & 0xfffff;
	q->told_id = attr->cq ? attr->id : q->id;
	xtal_lane_init(&q->lane);
	xtal_list_append(&ctx->queues, &q->node);
	xtal_unlock(&ctx->queues_lock);
	xtal_count(&xtal_totals.queues, 1);
	*out = q;
	return 0;
unshare:
	free(q->fault);
	if (q->share)
		xtal_queue_unshare(q);
fini_cq:
	xtal_cq_fini(&q->cq);
fini_xlats:
	xtal_xlats_fini(&q->xlats);
free_queue:
	free(q);
	return err;
}

static void untick(void *arg)
{
	xtal_queue_untick(arg);
}

static void keep_counts(struct xtal_queue *q)
{
	xtal_count(&xtal_totals.posted, atomic_load(&q->accepted));
	xtal_count(&xtal_totals.completed, atomic_load(&q->cq.tail));
	xtal_count(&xtal_totals.failed, atomic_load(&q->failed));
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(q->moved); i++) {
		xtal_count(&xtal_totals.ops[i], xtal_moved_ops(&q->moved[i]));
		xtal_count(&xtal_totals.bytes[i], xtal_moved_bytes(&q->moved[i]));
	}
}

/* Helps with, and waits for, everything in flight; every operation ends by its time limit. */
static void drain(struct xtal_queue *q)
{
	struct xtal_ready trash;
	unsigned rounds = 0;
	int n;

	for (;;) {
		bool idle;

		while ((n = xtal_queue_poll(q, UINT32_MAX, &trash)) > 0)
			xtal_queue_polled(q, (uint32_t)n);
		xtal_bias_lock(&q->lock);
		idle = !q->first;
		xtal_bias_unlock(&q->lock);
		if (idle)
			return;
		if (++rounds % 100 == 0)
			xtal_os_sleep_ns(20000);
	}
}

void xtal_queue_destroy(struct xtal_queue **qp)
{
	struct xtal_queue *q = *qp;
	struct xtal_context *ctx = q->ctx;

	*qp = NULL;
	if (q->foreign)
		return; /* the parent's threads may have been inside: its copy stays */
	if (q->share)
		xtal_queue_stop_sharing(q);
	else
		drain(q);
	xtal_lock(&ctx->queues_lock);
	xtal_list_remove(&q->node);
	ctx->queue_count--;
	xtal_unlock(&ctx->queues_lock);
	xtal_agent_call(untick, q);
	xtal_bias_lock(&q->lock);
	if (q->wait_link)
		xtal_link_unwait(q->wait_link, q);
	xtal_xlats_fini(&q->xlats);
	xtal_bias_unlock(&q->lock);
	xtal_pipeline_forget(q);
	if (q->share)
		xtal_queue_unshare(q);
	xtal_lane_fini(&q->lane);
	keep_counts(q);
	xtal_cq_fini(&q->cq);
	while (q->spare) {
		struct xtal_pending *p = q->spare;

		q->spare = p->next;
		free(p);
	}
	atomic_fetch_sub_explicit(&xtal_totals.queues, 1, memory_order_relaxed);
	free(q->fault);
	free(q);
}

uint32_t xtal_queue_id(const struct xtal_queue *q)
{
	return q->id;
}

void xtal_queue_tick_me(struct xtal_queue *q)
{
	/* Partner: xtal_queues_tick() clears ticking, then looks at busy. */
	atomic_store(&q->busy, true);
	if (atomic_load(&q->ticking))
		return;
	xtal_lock(&tick_lock);
	if (!atomic_exchange(&q->ticking, true))
		xtal_list_append(&tick_queues, &q->tick_node);
	xtal_unlock(&tick_lock);
	xtal_agent_need_ticks();
}

/* Under the lock: the oldest operation is over. */
static void retire(struct xtal_queue *q)
{
	struct xtal_pending *p = q->first;
	uint32_t status = atomic_load_explicit(&p->status, memory_order_relaxed);
	bool flushed = q->state == XTAL_QUEUE_ERROR;
	struct xtal_completion *c = xtal_cq_place(&q->cq);

	if (p->payload) {
		if (!status && !flushed)
			status = xtal_payload_deliver(q, p->payload);
		free(p->payload);
	}
	if (xtal_unlikely(status) && !flushed)
		xtal_tell_pending(q, p, status);
	*c = (struct xtal_completion){ .user = p->op.user,
				       .opcode = p->opcode,
				       .flags = p->op.flags,
				       .target = p->op.target,
				       .status = (uint16_t)(flushed ? XTAL_FLUSHED : status),
				       .report = { .len = status || flushed ? 0 : p->len,
						   .queue_id = q->told_id,
						   .peer = p->peer } };
	q->first = p->next;
	if (q->last == &p->next)
		q->last = &q->first;
	if (q->first) /* its time begins now */
		atomic_store_explicit(&q->first->progress, xtal_os_now(), memory_order_relaxed);
	q->inflight--;
	q->landing -= p->lands;
	/* Nothing succeeds behind it over the same link, also before the agent has purged it. */
	if (xtal_unlikely(status == XTAL_UNREACHABLE) && (p->link || p->bulk))
		xtal_xlats_purge(&q->xlats, p->link ? p->link : xtal_bulk_link(p->bulk));
	/* Its link goes on, but has been waited for long enough. Other queues stop at an error, or are told. */
	if (xtal_unlikely(status == XTAL_UNREACHABLE) && !q->share && p->link &&
	    xtal_messages_lasts(p->link))
		xtal_pending_lose(q, p->link, status);
	if (p->link) {
		xtal_messages_retire(p->link);
		xtal_link_put(p->link);
	}
	if (p->bulk)
		xtal_bulk_put(p->bulk);
	p->next = q->spare;
	q->spare = p;
	xtal_queue_complete(q, c);
}

static void advance(struct xtal_queue *q)
{
	if (xtal_unlikely(q->parked != NULL))
		xtal_stall_take_back(q);
	for (;;) {
		struct xtal_pending *p = q->first;

		/* Acquire: all of the operation's effects. Partner: whoever set done. */
		while (p && p != q->start && atomic_load_explicit(&p->done, memory_order_acquire)) {
			if (q->share && p->opcode >= XTAL_OP_SEND) {
				enum xtal_send_verdict v = xtal_send_judge(q, p);

				if (v == XTAL_SEND_WAIT)
					return;
				if (v == XTAL_SEND_AGAIN || xtal_send_follows_write(q, p))
					break;
			}
			if (!xtal_pending_finish(q, p))
				return;
			retire(q);
			p = q->first;
		}
		p = q->start;
		if (p == q->parked || (q->inflight && !q->flight_link))
			break;
		if (q->share) {
			enum xtal_stall_verdict v = xtal_stall_look(q, p);

			if (v == XTAL_STALL_PARKED)
				continue;
			if (v == XTAL_STALL_WAIT)
				break;
		}
		if (!xtal_pending_start(q, p))
			break;
		q->start = p->next;
	}
}

void xtal_queue_progress(struct xtal_queue *q)
{
	bool late = false;

	advance(q);
	if (xtal_unlikely(q->state != XTAL_QUEUE_READY))
		late = xtal_queue_settle(q);
	if (xtal_unlikely(late))
		xtal_queue_tick_me(q);
	else if (!q->first || (q->state == XTAL_QUEUE_SUSPENDED && !q->inflight))
		atomic_store_explicit(&q->busy, false, memory_order_relaxed);
	else if (q->first->state != XTAL_PENDING_BULK)
		xtal_queue_tick_me(q); /* fragments end by themselves, all else needs somebody */
}

void xtal_queue_help(struct xtal_queue *q)
{
	struct xtal_link *link = NULL;
	struct xtal_bulk *bulk = NULL;

	if (!xtal_bias_trylock(&q->lock, 0))
		return;
	xtal_queue_progress(q);
	if (q->first && q->first != q->start) {
		bulk = q->first->bulk;
		link = q->first->state == XTAL_PENDING_MESSAGE ? q->first->link : NULL;
		if (bulk)
			xtal_bulk_get(bulk);
		if (link)
			xtal_messages_poll(link, q, true);
		xtal_queue_progress(q);
	}
	/* Whoever polls is back at once: the agent and other pollers must get in between. q outlives
	 * it: it is the caller's, or its completion queue's lock is held (xtal_feed_detach()). */
	xtal_bias_unlock_own(&q->lock);
	if (bulk) {
		xtal_bulk_help(bulk, true);
		xtal_bulk_put(bulk);
	}
}

void xtal_queue_link_lost(struct xtal_queue *q, struct xtal_link *link)
{
	xtal_bias_lock(&q->lock);
	xtal_xlats_purge(&q->xlats, link);
	if (q->wait_link == link)
		atomic_store_explicit(&q->wait_for, XTAL_WAIT_OVER, memory_order_relaxed);
	if (q->first)
		xtal_pipeline_kick(q);
	xtal_bias_unlock(&q->lock);
}

/* More than limit ago? The time may be newer than now, which was read before the lock was had. */
static bool long_ago(uint64_t then, uint64_t limit, uint64_t now)
{
	return now > then && now - then > limit;
}

/* Under the lock: waits for a link whose owner does not answer? */
static struct xtal_link *overdue(struct xtal_queue *q, uint64_t now)
{
	struct xtal_pending *p = q->first;
	struct xtal_link *link = NULL;

	if (!p)
		return NULL;
	if (p->state == XTAL_PENDING_MESSAGE) {
		link = p->link;
		if (!xtal_messages_overdue(link, now))
			return NULL;
	} else if (q->wait_link && long_ago(atomic_load(&p->progress), q->timeout_ns, now)) {
		bool room =
			atomic_load_explicit(&q->wait_for, memory_order_relaxed) == XTAL_WAIT_ROOM;

		/* Others' operations fill the window: as long as those move, the owner lives. */
		if (room && !long_ago(xtal_messages_moved(q->wait_link), q->timeout_ns, now))
			return NULL;
		if (room && xtal_messages_lasts(q->wait_link))
			xtal_pending_give_up(q, XTAL_UNREACHABLE);
		else
			link = q->wait_link;
	}
	if (link)
		atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	return link;
}

/* What helps a user to find out why. */
static const char *state_of_owner(struct xtal_link *link, char *buf, size_t size)
{
	buf[0] = 0;
	xtal_lock(&link->lock);
	if (link->attempt[0])
		snprintf(buf, size, ": %s", link->attempt);
	xtal_unlock(&link->lock);
	if (link->tcp || !link->pid)
		return buf;
	switch (xtal_os_process_state(link->pid)) {
	case XTAL_OS_STOPPED:
		return " (its process is stopped)";
	case XTAL_OS_DEAD:
		return " (its process is gone)";
	case XTAL_OS_RUNNING:
		break;
	}
	return " (its process lives; does it get processor time?)";
}

static void tick(struct xtal_queue *q, uint64_t now)
{
	struct xtal_link *late = NULL;
	char why[164];

	/* One that moves data inline may hold it for longer: no waiting for that. */
	if (!xtal_bias_trylock(&q->lock, 200))
		return;
	if (q->first && q->first->state == XTAL_PENDING_MESSAGE && q->first->link)
		xtal_messages_poll(q->first->link, q, false);
	xtal_queue_progress(q);
	late = overdue(q, now);
	xtal_bias_unlock(&q->lock);
	if (late) {
		xtal_link_fail(late, XTAL_UNREACHABLE,
			       "the owner of port %u made no progress for %llu ms%s",
			       late->tid & 0xffff, (unsigned long long)(q->timeout_ns / 1000000),
			       state_of_owner(late, why, sizeof(why)));
		xtal_link_put(late);
	}
}

bool xtal_queues_tick(uint64_t now)
{
	struct xtal_list *n, *next;
	bool any;

	/* Only the agent removes, so the walk needs the lock for one step at a time. */
	xtal_lock(&tick_lock);
	for (n = tick_queues.next; n != &tick_queues; n = next) {
		struct xtal_queue *q = xtal_container_of(n, struct xtal_queue, tick_node);

		next = n->next;
		if (!atomic_load(&q->busy)) {
			xtal_list_remove(n);
			/* Partner: xtal_queue_tick_me() sets busy, then looks at ticking. */
			atomic_store(&q->ticking, false);
			if (atomic_load(&q->busy) && !atomic_exchange(&q->ticking, true))
				xtal_list_append(&tick_queues, n);
			continue;
		}
		xtal_unlock(&tick_lock);
		tick(q, now);
		xtal_lock(&tick_lock);
		next = n->next;
	}
	any = !xtal_list_empty(&tick_queues);
	xtal_unlock(&tick_lock);
	return any;
}

void xtal_queue_untick(struct xtal_queue *q)
{
	xtal_lock(&tick_lock);
	if (atomic_exchange(&q->ticking, false))
		xtal_list_remove(&q->tick_node);
	xtal_unlock(&tick_lock);
}

void xtal_queues_fork_child(struct xtal_context *ctx)
{
	for (struct xtal_list *n = ctx->queues.next; n != &ctx->queues; n = n->next) {
		struct xtal_queue *q = xtal_container_of(n, struct xtal_queue, node);

		q->foreign = true;
		/* Whoever forked has the same thread pointer here: so the short ways end too. */
		atomic_store(&q->lock.owner, XTAL_BIAS_NOBODY);
	}
	atomic_store(&tick_lock.held, 0);
	xtal_list_init(&tick_queues);
}
