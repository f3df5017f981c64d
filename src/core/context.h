/* SPDX-License-Identifier: MIT */
/* A context: one user of a device, with a port, an incarnation, segments, queues, peers. */
#ifndef XTAL_CORE_CONTEXT_H
#define XTAL_CORE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/list.h"
#include "core/device.h"

struct xtal_context;

/* Errors: -EMFILE, -ENOMEM, -EADDRINUSE (no port could be had), -EAGAIN (no thread), -ENOKEY
 * (the device needs a key and there is none that may be used; xtal_last_error() has the words,
 * which the front-end shall not replace). */
XTAL_INTERNAL_API int xtal_context_open(const struct xtal_device *dev, struct xtal_context **out);
/* Errors: -EBUSY while queues or segments exist (they stay usable). NULLs *ctx on success. */
XTAL_INTERNAL_API int xtal_context_close(struct xtal_context **ctx);

XTAL_INTERNAL_API const struct xtal_device *xtal_context_device(const struct xtal_context *ctx);
/* Incarnation bits (1..15) << 16 | port. Never 0. */
XTAL_INTERNAL_API uint32_t xtal_context_tid(const struct xtal_context *ctx);
/* True in a process that was forked after the context was opened: nothing works there. */
XTAL_INTERNAL_API bool xtal_context_is_foreign(const struct xtal_context *ctx);
/* pthread_atfork for a front-end, so that its own lock is whole in the child. Runs before the
 * core's own preparation and after its own recovery. 0 or -errno. */
XTAL_INTERNAL_API int xtal_context_at_fork(void (*prepare)(void), void (*parent)(void),
					   void (*child)(void));

/* Asynchronous events of a context. */
enum xtal_async_type {
	XTAL_ASYNC_CQ_ERROR = 0,
	XTAL_ASYNC_QUEUE_ERROR = 1,
	XTAL_ASYNC_DEVICE_GONE = 2,
	XTAL_ASYNC_RECEIVE_LIMIT = 3, /* of a receive queue */
};
struct xtal_async_event {
	enum xtal_async_type type;
	uint32_t object_id;
};
/*
 * Part of what raises an event: so there is room for each, however many there are. A front-end gives its
 * own where an event shall outlive what raised it.
 */
struct xtal_async_source {
	struct xtal_list node;         /* in its context's list while an event of it waits */
	struct xtal_async_event event; /* the last one */
};
static inline void xtal_async_source_init(struct xtal_async_source *s)
{
	xtal_list_init(&s->node);
}
/* No event of s waits: s goes. */
XTAL_INTERNAL_API void xtal_context_forget(struct xtal_context *ctx, struct xtal_async_source *s);
/* A pollable, CLOEXEC fd, readable while events wait; the context's own. */
XTAL_INTERNAL_API int xtal_context_async_fd(const struct xtal_context *ctx);
/* Takes the oldest event. 1: taken; 0: none within timeout_ms (0: just look). Restarts after
 * signals with the exact deadline. Negative: no limit. When the thread is cancelled while it waits,
 * cancelled(arg) is called, unless it is NULL. Errors: -ECHILD, -ESHUTDOWN. */
XTAL_INTERNAL_API int xtal_context_wait_async(struct xtal_context *ctx, int timeout_ms,
					      struct xtal_async_event *out,
					      void (*cancelled)(void *arg), void *arg);
/* Before it is closed. end: whoever waits for an event, now or later, gets -ESHUTDOWN; false: not any
 * more. */
XTAL_INTERNAL_API void xtal_context_end_waits(struct xtal_context *ctx, bool end);

#endif
