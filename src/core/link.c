/* SPDX-License-Identifier: MIT */
/* Links from the initiator's side: making, resolving, ending; see link.h. */
#include "core/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/carrier.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/messages.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "xtal.h"

/* Between two attempts to connect. */
#define RETRY_NS 5000000u

static void fail_if_broken(struct xtal_link *link)
{
	char eid[XTAL_EID_TEXT];
	const char *text;
	uint32_t status;

	xtal_lock(&link->lock);
	text = link->broken;
	status = link->broken_status;
	xtal_unlock(&link->lock);
	if (text && link->tcp)
		xtal_link_fail(link, status, "TCP port %u of %s: %s", link->tid & 0xffff,
			       xtal_text_eid(link->eid, eid, sizeof(eid)), text);
	else if (text)
		xtal_link_fail(link, status, "%s", text);
}

void xtal_link_fail_later(struct xtal_link *link, uint32_t status, const char *text)
{
	link->broken = text;
	link->broken_status = status;
	xtal_link_post(link);
}

static void link_late(struct xtal_timer *t)
{
	struct xtal_link *link = xtal_container_of(t, struct xtal_link, connecting);

	if (atomic_load(&link->state) != XTAL_LINK_CONNECTING)
		return;
	if (xtal_os_now() < link->connect_deadline)
		xtal_link_post(link);
	else if (link->attempt[0])
		xtal_link_fail(link, XTAL_UNREACHABLE, "no connection within %u ms: %s",
			       xtal_config()->timeout_ms, link->attempt);
	else
		xtal_link_fail(link, XTAL_UNREACHABLE,
			       "the owner holds port %u but did not answer within %u ms",
			       link->tid & 0xffff, xtal_config()->timeout_ms);
}

/* On the agent: the owner has its time, but one whose backlog is full is tried again soon, and tcp
 * is looked after. */
static void await(struct xtal_link *link)
{
	uint64_t at = link->connect_deadline, again = xtal_os_now() + RETRY_NS;

	if (atomic_load(&link->state) != XTAL_LINK_CONNECTING)
		return;
	if ((link->sock.fd < 0 || link->tcp) && again < at)
		at = again;
	/* Stopped before the list gives up the link, below. */
	xtal_agent_set_timer(&link->connecting, at, link_late);
}

void xtal_link_again(struct xtal_link *link)
{
	await(link);
}

static void link_task(struct xtal_task *task)
{
	struct xtal_link *link = xtal_container_of(task, struct xtal_link, task);

	fail_if_broken(link);
	switch ((enum xtal_link_state)atomic_load(&link->state)) {
	case XTAL_LINK_CONNECTING:
		link->carrier->connect(link);
		await(link);
		break;
	case XTAL_LINK_UP:
		link->carrier->ask(link);
		break;
	case XTAL_LINK_DEAD:
		if (!link->stopped) {
			link->stopped = true;
			xtal_agent_stop_timer(&link->connecting);
			xtal_messages_close(link);
			link->carrier->stop(link);
			xtal_link_put(link); /* the list's reference */
		}
		break;
	}
	xtal_link_put(link); /* post's reference */
}

void xtal_link_post(struct xtal_link *link)
{
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	if (!xtal_agent_post(&link->task))
		xtal_link_put(link);
}

/* A new link to a context of this process is up at once. */
static void find_self(struct xtal_link *link)
{
	struct xtal_context *self;

	if (!(xtal_config()->paths & 1u << XTAL_PATH_SELF))
		return;
	self = xtal_engine_find(link->eid, (uint16_t)link->tid);
	if (!self)
		return;
	if (!xtal_incarnation_fits(self->incarnation, link->tid >> 16)) {
		atomic_fetch_sub_explicit(&self->users, 1, memory_order_release);
		return; /* the handshake will say so */
	}
	link->self = self;
	link->full_fence = xtal_lane_full_fence();
	atomic_store(&link->state, XTAL_LINK_UP);
}

static struct xtal_link *link_new(struct xtal_context *ctx, struct xtal_eid eid, uint32_t tid,
				  uint32_t pipeline)
{
	struct xtal_link *link = aligned_alloc(XTAL_CACHE_LINE, sizeof(*link));

	if (!link)
		return NULL;
	memset(link, 0, sizeof(*link));
	link->ctx = ctx;
	link->eid = eid;
	link->tid = tid;
	link->pipeline = pipeline;
	link->id = atomic_fetch_add(&ctx->next_link_id, 1) + 1;
	/* No other link has these: an operation may bring the number of a question to the last. */
	link->next_id = (uint64_t)link->id << 32;
	link->carrier = &xtal_carrier_ring;
	atomic_store(&link->refs, 2); /* the list's and the caller's */
	link->sock.fd = link->death.fd = -1;
	link->task.run = link_task;
	link->connect_deadline = xtal_os_now() + (uint64_t)xtal_config()->timeout_ms * 1000000;
	xtal_intervals_init(&link->grants);
	xtal_list_init(&link->windows);
	xtal_list_init(&link->resolves);
	xtal_list_init(&link->waiters);
	xtal_list_init(&link->drain.node);
	xtal_lane_init(&link->lane);
	xtal_count(&xtal_totals.links, 1);
	return link;
}

struct xtal_link *xtal_link_get(struct xtal_context *ctx, struct xtal_eid eid, uint32_t tid,
				uint32_t pipeline)
{
	struct xtal_link *link = NULL;
	bool made = false;

	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links; n = n->next) {
		struct xtal_link *l = xtal_container_of(n, struct xtal_link, node);

		if (l->tid == tid && l->pipeline == pipeline && xtal_eid_equal(l->eid, eid)) {
			link = l;
			atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
			break;
		}
	}
	if (!link) {
		link = link_new(ctx, eid, tid, pipeline);
		if (link) {
			made = true;
			xtal_list_append(&ctx->links, &link->node);
			if (xtal_unlikely(xtal_fault_lost(eid, tid)))
				xtal_fault_cut(link);
			else
				find_self(link);
		}
	}
	xtal_unlock(&ctx->links_lock);
	if (made && !link->self)
		xtal_link_post(link);
	return link;
}

void xtal_link_put(struct xtal_link *link)
{
	if (atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) != 1)
		return;
	xtal_lane_fini(&link->lane);
	xtal_grants_free(link);
	link->carrier->close(link);
	atomic_fetch_sub_explicit(&xtal_totals.links, 1, memory_order_relaxed);
	/* Not before: fragments of a long copy look at its slot table until they are done. */
	if (link->self)
		atomic_fetch_sub_explicit(&link->self->users, 1, memory_order_release);
	free(link);
}

void xtal_link_wait(struct xtal_link *link, struct xtal_queue *q, uint64_t what)
{
	atomic_store_explicit(&q->wait_for, what, memory_order_relaxed);
	if (q->wait_link == link)
		return;
	/* One place at a time: the caller has left the other list (xtal_link_unwait). */
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	q->wait_link = link;
	xtal_list_append(&link->waiters, &q->wait_node);
}

int xtal_link_ready(struct xtal_link *link, struct xtal_queue *q)
{
	int result = 0;

	xtal_lock(&link->lock);
	switch ((enum xtal_link_state)atomic_load(&link->state)) {
	case XTAL_LINK_CONNECTING:
		xtal_link_wait(link, q, XTAL_WAIT_UP);
		result = -EINPROGRESS;
		break;
	case XTAL_LINK_DEAD:
		result = (int)link->status;
		break;
	case XTAL_LINK_UP:
		break;
	}
	xtal_unlock(&link->lock);
	return result;
}

void xtal_link_unwait(struct xtal_link *link, struct xtal_queue *q)
{
	xtal_lock(&link->lock);
	xtal_list_remove(&q->wait_node);
	xtal_unlock(&link->lock);
	q->wait_link = NULL;
	xtal_link_put(link);
}

uint32_t xtal_link_wake(struct xtal_link *link, uint64_t what, uint32_t most)
{
	uint32_t kicked = 0;

	for (struct xtal_list *n = link->waiters.next; n != &link->waiters && kicked < most;
	     n = n->next) {
		struct xtal_queue *q = xtal_container_of(n, struct xtal_queue, wait_node);

		if (atomic_load_explicit(&q->wait_for, memory_order_relaxed) != what)
			continue;
		atomic_store_explicit(&q->wait_for, XTAL_WAIT_OVER, memory_order_relaxed);
		xtal_pipeline_kick(q);
		kicked++;
	}
	return kicked;
}

/* For those who touch no memory of the peer's themselves. */
static struct xtal_activity nowhere;

struct xtal_activity *xtal_link_seat(struct xtal_link *link, bool brief)
{
	/* The last group is for fragments, which give theirs back: queues cannot starve them. */
	const uint32_t groups = XTAL_BOARD_WORDS / 64 - (brief ? 0 : 1);
	struct xtal_activity *seat = NULL;

	if (!link->board)
		return &nowhere;
	xtal_lock(&link->lock);
	for (uint32_t w = 0; w < groups && !seat; w++) {
		uint32_t i;

		if (link->seats[w] == UINT64_MAX)
			continue;
		i = (uint32_t)__builtin_ctzll(~link->seats[w]);
		link->seats[w] |= 1ull << i;
		i += w * 64;
		seat = &link->board->activity[i];
		if (i >= link->seats_used) {
			link->seats_used = i + 1;
			/* Before any announcement in it. Partner: the owner's scan. */
			atomic_store_explicit(&link->board->used, i + 1, memory_order_seq_cst);
		}
	}
	xtal_unlock(&link->lock);
	return seat;
}

void xtal_link_unseat(struct xtal_link *link, struct xtal_activity *seat)
{
	uint32_t i;

	if (seat == &nowhere)
		return;
	i = (uint32_t)(seat - link->board->activity);
	xtal_lock(&link->lock);
	link->seats[i / 64] &= ~(1ull << i % 64);
	xtal_unlock(&link->lock);
}

void xtal_link_fail(struct xtal_link *link, uint32_t status, const char *format, ...)
{
	struct xtal_context *ctx = link->ctx;
	bool first;
	va_list args;

	xtal_lock(&link->lock);
	first = atomic_load(&link->state) != XTAL_LINK_DEAD;
	if (first) {
		va_start(args, format);
		vsnprintf(link->text, sizeof(link->text), format, args);
		va_end(args);
		link->status = status;
		atomic_store(&link->state, XTAL_LINK_DEAD);
		xtal_messages_fail(link, status);
	}
	xtal_unlock(&link->lock);
	if (!first)
		return;
	xtal_log(XTAL_LOG_INFO, "xtal", "link %u ends: %s", link->id, link->text);
	xtal_count(&xtal_totals.peers_lost, 1);
	xtal_lock(&ctx->links_lock);
	xtal_list_remove(&link->node);
	xtal_unlock(&ctx->links_lock);
	xtal_lock(&ctx->queues_lock);
	for (struct xtal_list *n = ctx->queues.next; n != &ctx->queues; n = n->next)
		xtal_queue_link_lost(xtal_container_of(n, struct xtal_queue, node), link);
	xtal_unlock(&ctx->queues_lock);
	xtal_link_post(link);
}

/* Some link of ctx that fits, with a reference. */
static struct xtal_link *some_link(struct xtal_context *ctx, const struct xtal_context *self)
{
	struct xtal_link *found = NULL;

	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links && !found; n = n->next) {
		struct xtal_link *link = xtal_container_of(n, struct xtal_link, node);

		if (!self || link->self == self)
			found = link;
	}
	if (found)
		atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
	xtal_unlock(&ctx->links_lock);
	return found;
}

void xtal_links_close(struct xtal_context *ctx, const struct xtal_context *self)
{
	struct xtal_link *link;

	while ((link = some_link(ctx, self))) {
		xtal_link_fail(link, XTAL_UNREACHABLE, "the context was closed");
		xtal_link_put(link);
	}
}
