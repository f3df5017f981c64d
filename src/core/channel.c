/* SPDX-License-Identifier: MIT */
/* Event channels; see channel.h. */
#include "core/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "core/context_impl.h"
#include "core/shared_cq_impl.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"

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
	xtal_list_init(&ch->fired);
	err = xtal_os_event_create(&ch->fd);
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
	xtal_os_close(ch->fd);
	free(ch);
	return 0;
}

int xtal_channel_fd(const struct xtal_channel *ch)
{
	return ch->fd;
}

void xtal_channel_fire(struct xtal_shared_cq *cq)
{
	struct xtal_channel *ch = cq->channel;

	xtal_lock(&ch->lock);
	if (!cq->events++)
		xtal_list_append(&ch->fired, &cq->node);
	/* Inside: a taker that finds the list empty clears what we have written. */
	xtal_os_event_signal(ch->fd);
	xtal_unlock(&ch->lock);
}

/* Under the lock: the fd is readable while events wait. */
static void settle(struct xtal_channel *ch)
{
	if (xtal_list_empty(&ch->fired) && !atomic_load(&ch->ended))
		xtal_os_event_clear(ch->fd);
}

void xtal_channel_forget(struct xtal_shared_cq *cq)
{
	struct xtal_channel *ch = cq->channel;

	xtal_lock(&ch->lock);
	cq->events = 0;
	xtal_list_remove(&cq->node);
	settle(ch);
	xtal_unlock(&ch->lock);
}

static uint32_t take(struct xtal_channel *ch, uint32_t count, void **owners)
{
	uint32_t n = 0;

	xtal_lock(&ch->lock);
	while (n < count && !xtal_list_empty(&ch->fired)) {
		struct xtal_shared_cq *cq =
			xtal_container_of(ch->fired.next, struct xtal_shared_cq, node);

		atomic_fetch_add_explicit(&cq->taken, 1, memory_order_relaxed);
		owners[n++] = cq->owner;
		xtal_list_remove(&cq->node);
		if (--cq->events)
			xtal_list_append(&ch->fired, &cq->node);
	}
	settle(ch);
	xtal_unlock(&ch->lock);
	return n;
}

int xtal_channel_wait(struct xtal_channel *ch, uint32_t count, int timeout_ms, void **owners,
		      void (*cancelled)(void *arg), void *arg)
{
	uint64_t deadline = 0;

	if (ch->ctx->foreign)
		return -ECHILD;
	if (timeout_ms)
		deadline = timeout_ms < 0 ? UINT64_MAX
					  : xtal_os_now() + (uint64_t)timeout_ms * 1000000;
	for (;;) {
		uint32_t n = take(ch, count, owners);
		int ready;

		if (n || !timeout_ms || !count)
			return (int)n;
		if (atomic_load(&ch->ended))
			return -ESHUTDOWN;
		ready = xtal_os_wait_readable_or(ch->fd, deadline, cancelled, arg);
		if (ready <= 0)
			return ready;
	}
}

void xtal_channel_end_waits(struct xtal_channel *ch, bool end)
{
	if (ch->ctx->foreign)
		return;
	xtal_lock(&ch->lock);
	atomic_store(&ch->ended, end);
	if (end)
		xtal_os_event_signal(ch->fd);
	else
		settle(ch);
	xtal_unlock(&ch->lock);
}
