/* SPDX-License-Identifier: MIT */
/*
 * A small lock for sections of well under a microsecond. One exchange to take, one store
 * to release; a waiter spins briefly, then yields the core (a holder may be descheduled).
 */
#ifndef XTAL_BASE_LOCK_H
#define XTAL_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct xtal_lock {
	atomic_uint held;
};

static inline void xtal_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static inline bool xtal_trylock(struct xtal_lock *l)
{
	return atomic_load_explicit(&l->held, memory_order_relaxed) == 0 &&
	       atomic_exchange_explicit(&l->held, 1, memory_order_acquire) == 0;
}

static inline void xtal_lock_slow(struct xtal_lock *l)
{
	unsigned spins = 0;

	while (!xtal_trylock(l)) {
		xtal_cpu_relax();
		if (++spins >= 200) {
			sched_yield();
			spins = 0;
		}
	}
}

static inline void xtal_lock(struct xtal_lock *l)
{
	if (__builtin_expect(atomic_exchange_explicit(&l->held, 1, memory_order_acquire) != 0, 0))
		xtal_lock_slow(l);
}

static inline void xtal_unlock(struct xtal_lock *l)
{
	atomic_store_explicit(&l->held, 0, memory_order_release);
}

#endif
