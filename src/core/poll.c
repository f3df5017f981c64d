/* SPDX-License-Identifier: MIT */
/* How a program takes completions: by polling, or asleep. */
#include <errno.h>

#include "core/config.h"
#include "core/messages.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/thread.h"

#define WAIT_SPIN 50000u /* ns: how long a waiting caller polls before it sleeps, at most */

/* Nothing waits: works for the queue, if there is something to do. */
static __attribute__((noinline)) int poll_other(struct xtal_queue *q, uint32_t count,
						struct xtal_ready *out)
{
	uint32_t n;

	do {
		if (atomic_load_explicit(&q->busy, memory_order_relaxed))
			xtal_queue_help(q);
		n = xtal_cq_peek(&q->cq, count, out);
		if (!n && atomic_load_explicit(&q->busy, memory_order_relaxed))
			xtal_os_polled_in_vain();
		/* Edge-triggered users take 0 for "empty, and the fd will tell": it must hold. */
	} while (!n && !xtal_cq_rearm(&q->cq));
	return (int)n;
}

int xtal_queue_poll(struct xtal_queue *q, uint32_t count, struct xtal_ready *out)
{
	uint32_t n;

	if (xtal_unlikely(q->foreign))
		return -ECHILD;
	n = xtal_cq_peek(&q->cq, count, out);
	return xtal_likely(n) ? (int)n : poll_other(q, count, out);
}

void xtal_queue_polled(struct xtal_queue *q, uint32_t taken)
{
	xtal_cq_release(&q->cq, taken);
}

void xtal_queue_hand_over(struct xtal_queue *q)
{
	xtal_bias_lock(&q->lock);
	for (struct xtal_pending *p = q->first; p && p != q->start; p = p->next) {
		if (p->state == XTAL_PENDING_MESSAGE) {
			xtal_messages_sleep(p->link);
			break;
		}
	}
	xtal_bias_unlock(&q->lock);
}

/* An answer is often here sooner than a sleep and two wake-ups would take. */
static int poll_on(struct xtal_queue *q, uint32_t count, uint64_t deadline, struct xtal_ready *out)
{
	uint64_t spin = (uint64_t)xtal_config()->spin_us * 1000;
	uint64_t now = xtal_os_now(), until = now + (spin < WAIT_SPIN ? spin : WAIT_SPIN);
	uint64_t offer = now + xtal_os_yield_after();
	int n = 0;

	if (until > deadline)
		until = deadline;
	for (; !n && atomic_load_explicit(&q->busy, memory_order_relaxed) && now < until;
	     now = xtal_os_now()) {
		if (now >= offer) {
			offer = now + XTAL_OS_YIELD_NS;
			if (xtal_os_yield()) /* who answers may have needed this processor */
				until = now;
		}
		n = xtal_queue_poll(q, count, out);
	}
	return n;
}

int xtal_queue_wait(struct xtal_queue *q, uint32_t count, int timeout_ms, struct xtal_ready *out)
{
	uint64_t deadline =
		timeout_ms < 0 ? UINT64_MAX : xtal_os_now() + (uint64_t)timeout_ms * 1000000;

	for (;;) {
		int n = xtal_queue_poll(q, count, out);

		if (n || !timeout_ms)
			return n;
		if (xtal_os_now() >= deadline)
			return 0;
		if (atomic_load_explicit(&q->busy, memory_order_relaxed)) {
			n = poll_on(q, count, deadline, out);
			if (n)
				return n;
			xtal_queue_hand_over(q);
		}
		xtal_cq_sleep(&q->cq, deadline);
	}
}
