/* SPDX-License-Identifier: MIT */
/*
 * A small lock for sections of well under a microsecond. One exchange to take, one store
 * to release; a waiter spins briefly, then yields the core (a holder may be descheduled).
 * Whoever takes it again and again releases it with xtal_unlock_fair(): others get a chance.
 */
#ifndef XTAL_BASE_LOCK_H
#define XTAL_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct xtal_lock {
	atomic_uint held;
	atomic_uint waiters; /* those who had to wait longer */
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
		if (++spins < 200)
			continue;
		if (spins == 200)
			atomic_fetch_add_explicit(&l->waiters, 1, memory_order_relaxed);
		if (spins % 200 == 0)
			sched_yield();
	}
	if (spins >= 200)
		atomic_fetch_sub_explicit(&l->waiters, 1, memory_order_relaxed);
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

/* Just released, and somebody waits: lets him have it, at most for a microsecond or two. */
static inline void xtal_lock_give_way(struct xtal_lock *l)
{
	for (unsigned i = 0; i < 100; i++) {
		if (atomic_load_explicit(&l->held, memory_order_relaxed) ||
		    !atomic_load_explicit(&l->waiters, memory_order_relaxed))
			return;
		xtal_cpu_relax();
	}
	sched_yield(); /* he may be waiting for this core */
}

/* The lock must outlive the call: it is looked at once more after its release. */
static inline void xtal_unlock_fair(struct xtal_lock *l)
{
	xtal_unlock(l);
	if (__builtin_expect(atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0, 0))
		xtal_lock_give_way(l);
}

#endif
