/* SPDX-License-Identifier: MIT */
/* Asynchronous events: raised, taken, waited for. */
#include <errno.h>

#include "core/context_impl.h"
#include "core/event_queue.h"

void xtal_context_raise(struct xtal_context *ctx, struct xtal_async_source *s,
			enum xtal_async_type type, uint32_t object_id)
{
	struct xtal_event_queue *eq = ctx->async;

	xtal_lock(&eq->lock);
	if (xtal_list_empty(&s->node)) {
		s->event = (struct xtal_async_event){ type, object_id };
		xtal_list_append(&eq->events, &s->node);
	}
	xtal_event_queue_signal(eq);
	xtal_unlock(&eq->lock);
}

void xtal_context_forget(struct xtal_context *ctx, struct xtal_async_source *s)
{
	struct xtal_event_queue *eq = ctx->async;

	if (ctx->foreign)
		return;
	xtal_lock(&eq->lock);
	if (!xtal_list_empty(&s->node)) {
		xtal_list_remove(&s->node);
		xtal_event_queue_settle(eq);
	}
	xtal_unlock(&eq->lock);
}

static bool take(struct xtal_event_queue *eq, struct xtal_async_event *out)
{
	bool got;

	xtal_lock(&eq->lock);
	got = !xtal_list_empty(&eq->events);
	if (got) {
		struct xtal_async_source *s =
			xtal_container_of(eq->events.next, struct xtal_async_source, node);

		*out = s->event;
		xtal_list_remove(&s->node);
	}
	xtal_event_queue_settle(eq);
	xtal_unlock(&eq->lock);
	return got;
}

int xtal_context_async_fd(const struct xtal_context *ctx)
{
	return ctx->async->fd;
}

int xtal_context_wait_async(struct xtal_context *ctx, int timeout_ms, struct xtal_async_event *out,
			    void (*cancelled)(void *arg), void *arg)
{
	uint64_t deadline;
	int n;

	if (ctx->foreign)
		return -ECHILD;
	deadline = xtal_event_queue_deadline(timeout_ms);
	do {
		if (take(ctx->async, out))
			return 1;
		n = xtal_event_queue_sleep(ctx->async, deadline, cancelled, arg);
	} while (n > 0);
	return n;
}

void xtal_context_end_waits(struct xtal_context *ctx, bool end)
{
	if (!ctx->foreign)
		xtal_event_queue_end_waits(ctx->async, end);
}
