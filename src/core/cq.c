/* SPDX-License-Identifier: MIT */
/* Completion queues: popping, sleeping, the event fd. */
#include "core/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "os/sock.h"
#include "os/thread.h"

int xtal_cq_init(struct xtal_cq *cq, uint32_t depth, struct xtal_bias *lock)
{
	uint64_t size = 1;

	while (size < depth)
		size *= 2;
	*cq = (struct xtal_cq){ .lock = lock, .mask = size - 1, .fd = -1 };
	cq->ring = calloc(size, sizeof(*cq->ring));
	return cq->ring ? 0 : -ENOMEM;
}

void xtal_cq_fini(struct xtal_cq *cq)
{
	int fd = atomic_load(&cq->fd);

	if (fd >= 0)
		xtal_os_close(fd);
	free(cq->ring);
	cq->ring = NULL;
}

void xtal_cq_notify(struct xtal_cq *cq)
{
	if (cq->shared) {
		xtal_cq_tell(cq);
		return;
	}
	if (cq->armed) {
		cq->armed = false;
		xtal_os_event_signal(atomic_load_explicit(&cq->fd, memory_order_relaxed));
	}
	if (cq->sleepers) {
		atomic_fetch_add_explicit(&cq->signal, 1, memory_order_release);
		xtal_os_futex_wake(&cq->signal, INT32_MAX);
	}
	cq->notify = cq->sleepers != 0;
}

bool xtal_cq_rearm(struct xtal_cq *cq)
{
	bool empty;

	if (atomic_load_explicit(&cq->fd, memory_order_relaxed) < 0)
		return true;
	xtal_bias_lock_own(cq->lock);
	empty = xtal_cq_empty(cq);
	if (!cq->armed && empty) {
		xtal_os_event_clear(atomic_load_explicit(&cq->fd, memory_order_relaxed));
		cq->armed = cq->notify = true;
	}
	xtal_bias_unlock(cq->lock);
	return empty;
}

/* After the sleep; of a thread that is cancelled in it, too. */
static void wake_up(void *arg)
{
	struct xtal_cq *cq = arg;

	xtal_bias_lock_own(cq->lock);
	cq->sleepers--;
	cq->notify = cq->armed || cq->sleepers;
	xtal_bias_unlock(cq->lock);
}

bool xtal_cq_sleep(struct xtal_cq *cq, uint64_t deadline)
{
	bool waiting;
	unsigned seen;

	xtal_bias_lock_own(cq->lock);
	waiting = !xtal_cq_empty(cq);
	seen = atomic_load_explicit(&cq->signal, memory_order_relaxed);
	if (!waiting) {
		cq->sleepers++;
		cq->notify = true;
	}
	xtal_bias_unlock(cq->lock);
	if (waiting)
		return true;
	waiting = xtal_os_futex_sleep(&cq->signal, seen, deadline, wake_up, cq) == 0;
	wake_up(cq);
	return waiting;
}

int xtal_cq_event_fd(struct xtal_cq *cq)
{
	int fd, err = 0;

	xtal_bias_lock_own(cq->lock);
	fd = atomic_load_explicit(&cq->fd, memory_order_relaxed);
	if (fd < 0) {
		err = xtal_os_event_create(&fd);
		if (!err) {
			atomic_store_explicit(&cq->fd, fd, memory_order_relaxed);
			/* Armed with something waiting fires at once. */
			cq->armed = cq->notify = true;
			if (!xtal_cq_empty(cq))
				xtal_cq_notify(cq);
		}
	}
	xtal_bias_unlock(cq->lock);
	return err ? err : fd;
}
