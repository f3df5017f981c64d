/* SPDX-License-Identifier: MIT */
/*
 * Event channels: one pollable descriptor tells of many completion queues. A queue that is armed
 * and gets a completion leaves one event here; taking the event disarmed it already.
 */
#ifndef XTAL_CORE_CHANNEL_H
#define XTAL_CORE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"

struct xtal_channel;
struct xtal_context;

/* Errors: -ENOMEM, -errno (no descriptor), -ECHILD. */
XTAL_INTERNAL_API int xtal_channel_create(struct xtal_context *ctx, struct xtal_channel **out);
/* Errors: -EBUSY while a completion queue refers to it. NULLs *channel on success. */
XTAL_INTERNAL_API int xtal_channel_destroy(struct xtal_channel **channel);

/* Readable while events wait; each event is an edge. The channel's own: not to be read or closed. */
XTAL_INTERNAL_API int xtal_channel_fd(const struct xtal_channel *channel);

/*
 * Takes up to count events, oldest first: owners[i] is what the completion queue was created with.
 * The same one comes twice when it was armed and fired twice. timeout_ms 0: just looks;
 * negative: no limit. Signals do not end it. Returns how many, 0 when the time ran out, -ECHILD,
 * -ESHUTDOWN. When the thread is cancelled while it waits, cancelled(arg) is called, unless it is NULL.
 * Any threads.
 */
XTAL_INTERNAL_API int xtal_channel_wait(struct xtal_channel *channel, uint32_t count,
					int timeout_ms, void **owners, void (*cancelled)(void *arg),
					void *arg);
/* Before it is destroyed. end: whoever waits, now or later, gets -ESHUTDOWN; false: not any more. */
XTAL_INTERNAL_API void xtal_channel_end_waits(struct xtal_channel *channel, bool end);

#endif
