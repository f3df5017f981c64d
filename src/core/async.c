/* SPDX-License-Identifier: MIT */
/* Asynchronous events: raised, taken, waited for. */
#include <errno.h>

#include "core/context_impl.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"

int xtal_async_open(struct xtal_async *async)
{
	xtal_list_init(&async->raised);
	return xtal_os_event_create(&async->fd);
}

void xtal_async_close(struct xtal_async *async)
{
	xtal_os_close(async->fd);
}

void xtal_context_raise(struct xtal_context *ctx, struct xtal_async_source *s,
			enum xtal_async_type type, uint32_t object_id)
{
	struct xtal_async *async = &ctx->async;

	xtal_lock(&async->lock);
	if (xtal_list_empty(&s->node)) {
		s->event = (struct xtal_async_event){ type, object_id };
		xtal_list_append(&async->raised, &s->node);
	}
	/* Inside: a taker that finds the list empty clears what we have written. */
	xtal_os_event_signal(async->fd);
	xtal_unlock(&async->lock);
}

/* Under the lock: the fd is readable while events wait. */
static void settle(struct xtal_async *async)
{
	if (xtal_list_empty(&async->raised) && !atomic_load(&async->ended))
		xtal_os_event_clear(async->fd);
}

void xtal_context_forget(struct xtal_context *ctx, struct xtal_async_source *s)
{
	struct xtal_async *async = &ctx->async;

	if (ctx->foreign)
		return;
	xtal_lock(&async->lock);
	if (!xtal_list_empty(&s->node)) {
		xtal_list_remove(&s->node);
		settle(async);
	}
	xtal_unlock(&async->lock);
}

static bool take(struct xtal_async *async, struct xtal_async_event *out)
{
	bool got;

	xtal_lock(&async->lock);
	got = !xtal_list_empty(&async->raised);
	if (got) {
		struct xtal_async_source *s =
			xtal_container_of(async->raised.next, struct xtal_async_source, node);

		*out = s->event;
		xtal_list_remove(&s->node);
	}
	settle(async);
	xtal_unlock(&async->lock);
	return got;
}

int xtal_context_async_fd(const struct xtal_context *ctx)
{
	return ctx->async.fd;
}

int xtal_context_wait_async(struct xtal_context *ctx, int timeout_ms, struct xtal_async_event *out,
			    void (*cancelled)(void *arg), void *arg)
{
	uint64_t deadline = 0;
	int n;

	if (ctx->foreign)
		return -ECHILD;
	if (timeout_ms)
		deadline = timeout_ms < 0 ? UINT64_MAX
					  : xtal_os_now() + (uint64_t)timeout_ms * 1000000;
	for (;;) {
		if (take(&ctx->async, out))
			return 1;
		if (atomic_load(&ctx->async.ended))
			return -ESHUTDOWN;
		n = xtal_os_wait_readable_or(ctx->async.fd, deadline, cancelled, arg);
		if (n <= 0)
			return n;
	}
}

void xtal_context_end_waits(struct xtal_context *ctx, bool end)
{
	if (ctx->foreign)
		return;
	xtal_lock(&ctx->async.lock);
	atomic_store(&ctx->async.ended, end);
	if (end)
		xtal_os_event_signal(ctx->async.fd);
	else
		settle(&ctx->async);
	xtal_unlock(&ctx->async.lock);
}
