/* SPDX-License-Identifier: MIT */
/* Completion queues: popping, sleeping, the event fd. */
#include "core/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "os/sock.h"
#include "os/thread.h"

int xtal_cq_init(struct xtal_cq *cq, uint32_t depth, struct xtal_lock *lock)
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

/* The queue was found empty: the fd must say so, and tell of the next completion. False: it
 * is not empty any more, so the caller must look again. */
static bool rearm(struct xtal_cq *cq)
{
	bool empty;

	xtal_lock(cq->lock);
	empty = xtal_cq_empty(cq);
	if (!cq->armed && empty) {
		xtal_os_event_clear(atomic_load_explicit(&cq->fd, memory_order_relaxed));
		cq->armed = cq->notify = true;
	}
	xtal_unlock(cq->lock);
	return empty;
}

static uint32_t take(struct xtal_cq *cq, uint32_t count, struct xtal_completion *out)
{
	uint64_t head, ready;
	uint32_t n = 0;

	xtal_lock(&cq->consumer);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* Partner: the release store in push. */
	ready = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;
	while (n < count && n < ready) {
		out[n] = cq->ring[(head + n) & cq->mask];
		n++;
	}
	/* Partner: xtal_cq_taken() of a producer that will overwrite the places. */
	atomic_store_explicit(&cq->head, head + n, memory_order_release);
	xtal_unlock(&cq->consumer);
	return n;
}

uint32_t xtal_cq_pop(struct xtal_cq *cq, uint32_t count, struct xtal_completion *out)
{
	uint32_t n = 0;

	do {
		if (!xtal_cq_empty(cq))
			n = take(cq, count, out);
		/* Edge-triggered users take 0 for "empty, and the fd will tell": it must hold. */
	} while (!n && atomic_load_explicit(&cq->fd, memory_order_relaxed) >= 0 && !rearm(cq));
	return n;
}

bool xtal_cq_sleep(struct xtal_cq *cq, uint64_t deadline)
{
	bool waiting;
	unsigned seen;

	xtal_lock(cq->lock);
	waiting = !xtal_cq_empty(cq);
	seen = atomic_load_explicit(&cq->signal, memory_order_relaxed);
	if (!waiting) {
		cq->sleepers++;
		cq->notify = true;
	}
	xtal_unlock(cq->lock);
	if (waiting)
		return true;
	waiting = xtal_os_futex_wait(&cq->signal, seen, deadline) == 0;
	xtal_lock(cq->lock);
	cq->sleepers--;
	cq->notify = cq->armed || cq->sleepers;
	xtal_unlock(cq->lock);
	return waiting;
}

int xtal_cq_event_fd(struct xtal_cq *cq)
{
	int fd, err = 0;

	xtal_lock(cq->lock);
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
	xtal_unlock(cq->lock);
	return err ? err : fd;
}
