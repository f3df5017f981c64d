/* SPDX-License-Identifier: MIT */
/* Events behind one descriptor; see event_queue.h. */
#include "core/event_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"

int xtal_event_queue_open(struct xtal_event_queue **out)
{
	struct xtal_event_queue *eq = calloc(1, sizeof(*eq));
	int err;

	if (!eq)
		return -ENOMEM;
	xtal_list_init(&eq->events);
	err = xtal_os_event_create(&eq->fd);
	if (err)
		free(eq);
	else
		*out = eq;
	return err;
}

void xtal_event_queue_close(struct xtal_event_queue *eq)
{
	xtal_os_close(eq->fd);
	free(eq);
}

void xtal_event_queue_signal(struct xtal_event_queue *eq)
{
	/* Inside: a taker that finds the list empty clears what we have written. */
	xtal_os_event_signal(eq->fd);
}

void xtal_event_queue_settle(struct xtal_event_queue *eq)
{
	if (xtal_list_empty(&eq->events) && !atomic_load(&eq->ended))
		xtal_os_event_clear(eq->fd);
}

uint64_t xtal_event_queue_deadline(int timeout_ms)
{
	if (!timeout_ms)
		return 0;
	return timeout_ms < 0 ? UINT64_MAX : xtal_os_now() + (uint64_t)timeout_ms * 1000000;
}

int xtal_event_queue_sleep(struct xtal_event_queue *eq, uint64_t deadline,
			   void (*cancelled)(void *arg), void *arg)
{
	if (atomic_load(&eq->ended))
		return -ESHUTDOWN;
	return xtal_os_wait_readable_or(eq->fd, deadline, cancelled, arg);
}

void xtal_event_queue_end_waits(struct xtal_event_queue *eq, bool end)
{
	xtal_lock(&eq->lock);
	atomic_store(&eq->ended, end);
	if (end)
		xtal_event_queue_signal(eq);
	else
		xtal_event_queue_settle(eq);
	xtal_unlock(&eq->lock);
}
