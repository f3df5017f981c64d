/* SPDX-License-Identifier: MIT */
/*
 * Events in a list, oldest first, behind one descriptor that is readable while any waits. What they
 * are, and how they are taken, is their owner's business.
 */
#ifndef XTAL_CORE_EVENT_QUEUE_H
#define XTAL_CORE_EVENT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"

struct xtal_event_queue {
	int fd;
	struct xtal_lock lock; /* a leaf */
	struct xtal_list events;
	atomic_bool ended; /* who waits shall not */
};

/* Errors: -ENOMEM, -errno (no descriptor). */
int xtal_event_queue_open(struct xtal_event_queue **out);
void xtal_event_queue_close(struct xtal_event_queue *eq);

/* Under the lock: one was added. */
void xtal_event_queue_signal(struct xtal_event_queue *eq);
/* Under the lock: some were taken, or forgotten. */
void xtal_event_queue_settle(struct xtal_event_queue *eq);

/* When timeout_ms is over, for the next one; negative: never. */
uint64_t xtal_event_queue_deadline(int timeout_ms);
/*
 * Sleeps until an event may be there: 1; 0 when the deadline has passed; -ESHUTDOWN, -errno. Signals do not
 * end it. When the thread is cancelled meanwhile, cancelled(arg) is called, unless it is NULL.
 */
int xtal_event_queue_sleep(struct xtal_event_queue *eq, uint64_t deadline,
			   void (*cancelled)(void *arg), void *arg);
/* end: whoever sleeps, now or later, gets -ESHUTDOWN; false: not any more. */
void xtal_event_queue_end_waits(struct xtal_event_queue *eq, bool end);

#endif
