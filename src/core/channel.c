/* SPDX-License-Identifier: MIT */
/* Event channels; see channel.h. */
#include "core/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "core/context_impl.h"
#include "core/event_queue.h"
#include "core/shared_cq_impl.h"

int xtal_channel_create(struct xtal_context *ctx, struct xtal_channel **out)
{
	struct xtal_channel *ch;
	int err;

	if (ctx->foreign)
		return -ECHILD;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ch->ctx = ctx;
	err = xtal_event_queue_open(&ch->fired);
	if (err) {
		free(ch);
		return err;
	}
	atomic_fetch_add(&ctx->channel_count, 1);
	*out = ch;
	return 0;
}

int xtal_channel_destroy(struct xtal_channel **chp)
{
	struct xtal_channel *ch = *chp;

	if (atomic_load(&ch->users) && !ch->ctx->foreign)
		return -EBUSY;
	*chp = NULL;
	if (!ch->ctx->foreign)
		atomic_fetch_sub(&ch->ctx->channel_count, 1);
	xtal_event_queue_close(ch->fired);
	free(ch);
	return 0;
}

int xtal_channel_fd(const struct xtal_channel *ch)
{
	return ch->fired->fd;
}

void xtal_channel_fire(struct xtal_shared_cq *cq)
{
	struct xtal_event_queue *eq = cq->channel->fired;

	xtal_lock(&eq->lock);
	if (!cq->events++)
		xtal_list_append(&eq->events, &cq->node);
	xtal_event_queue_signal(eq);
	xtal_unlock(&eq->lock);
}

void xtal_channel_forget(struct xtal_shared_cq *cq)
{
	struct xtal_event_queue *eq = cq->channel->fired;

	xtal_lock(&eq->lock);
	cq->events = 0;
	xtal_list_remove(&cq->node);
	xtal_event_queue_settle(eq);
	xtal_unlock(&eq->lock);
}

static uint32_t take(struct xtal_event_queue *eq, uint32_t count, void **owners)
{
	uint32_t n = 0;

	xtal_lock(&eq->lock);
	while (n < count && !xtal_list_empty(&eq->events)) {
		struct xtal_shared_cq *cq =
			xtal_container_of(eq->events.next, struct xtal_shared_cq, node);

		atomic_fetch_add_explicit(&cq->taken, 1, memory_order_relaxed);
		owners[n++] = cq->owner;
		xtal_list_remove(&cq->node);
		if (--cq->events)
			xtal_list_append(&eq->events, &cq->node);
	}
	xtal_event_queue_settle(eq);
	xtal_unlock(&eq->lock);
	return n;
}

int xtal_channel_wait(struct xtal_channel *ch, uint32_t count, int timeout_ms, void **owners,
		      void (*cancelled)(void *arg), void *arg)
{
	uint64_t deadline;
	int ready;

	if (ch->ctx->foreign)
		return -ECHILD;
	deadline = xtal_event_queue_deadline(timeout_ms);
	do {
		uint32_t n = take(ch->fired, count, owners);

		if (n || !timeout_ms || !count)
			return (int)n;
		ready = xtal_event_queue_sleep(ch->fired, deadline, cancelled, arg);
	} while (ready > 0);
	return ready;
}

void xtal_channel_end_waits(struct xtal_channel *ch, bool end)
{
	if (!ch->ctx->foreign)
		xtal_event_queue_end_waits(ch->fired, end);
}
