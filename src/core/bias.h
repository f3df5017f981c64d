/* SPDX-License-Identifier: MIT */
/*
 * A biased lock: the thread that takes it nearly always, its owner, does so by plain stores and
 * loads; everybody else pays for that with a membarrier (model: test/model/bias.pml). What one
 * thread uses alone thus costs no atomic instruction, and stays correct when others come. All
 * zeros is a free lock without an owner. Not recursive, not for signal handlers.
 */
#ifndef XTAL_CORE_BIAS_H
#define XTAL_CORE_BIAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/lock.h"

struct xtal_bias {
	_Atomic uintptr_t owner; /* a thread; 0: none yet; XTAL_BIAS_NOBODY: none any more */
	_Atomic bool busy;       /* the owner is inside, or tries to be */
	_Atomic bool wanted;     /* the owner must take the lock like everybody */
	bool locked;             /* held by way of the lock; only the holder looks */
	uint8_t disturbed;       /* below: under the lock */
	uint32_t streak;
	uintptr_t last;
	uint64_t disturbed_at; /* ns */
	struct xtal_lock lock;
};

#define XTAL_BIAS_NOBODY UINTPTR_MAX
/* So often in a row must one thread come to become the owner. */
#define XTAL_BIAS_STREAK 64u
/* So often in a row, each within so many ns, may others come before there is no owner any more. */
#define XTAL_BIAS_DISTURBED    16u
#define XTAL_BIAS_DISTURBED_NS 1000000u

/* What no other living thread has: the address of its control block. */
static inline uintptr_t xtal_bias_self(void)
{
	uintptr_t self;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(self));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(self));
#else
#error "no thread pointer known for this machine"
#endif
	return self;
}

void xtal_bias_lock_slowly(struct xtal_bias *b, bool adopt);
void xtal_bias_unlock_slowly(struct xtal_bias *b, bool fair);

/* True: the owner is inside. False: nothing happened, take it slowly. */
static inline bool xtal_bias_enter(struct xtal_bias *b)
{
	if (atomic_load_explicit(&b->owner, memory_order_relaxed) != xtal_bias_self())
		return false;
	atomic_store_explicit(&b->busy, true, memory_order_relaxed);
	/* Partner: the membarrier between setting wanted and looking at busy. */
	atomic_signal_fence(memory_order_seq_cst);
	if (xtal_likely(!atomic_load_explicit(&b->wanted, memory_order_acquire)))
		return true;
	atomic_store_explicit(&b->busy, false, memory_order_release);
	return false;
}

/* After xtal_bias_enter(). */
static inline void xtal_bias_leave(struct xtal_bias *b)
{
	atomic_store_explicit(&b->busy, false, memory_order_release);
}

/* By a thread that may become the owner. */
static inline void xtal_bias_lock_own(struct xtal_bias *b)
{
	if (xtal_unlikely(!xtal_bias_enter(b)))
		xtal_bias_lock_slowly(b, true);
}

static inline void xtal_bias_lock(struct xtal_bias *b)
{
	if (!xtal_bias_enter(b))
		xtal_bias_lock_slowly(b, false);
}

/* Gives up after about so many looks at each thing that it waits for; 0: at once. */
bool xtal_bias_trylock(struct xtal_bias *b, unsigned looks);

static inline void xtal_bias_unlock(struct xtal_bias *b)
{
	if (xtal_likely(!b->locked))
		atomic_store_explicit(&b->busy, false, memory_order_release);
	else
		xtal_bias_unlock_slowly(b, false);
}

/* After xtal_bias_lock_own(), by whoever will be back at once: lets those who wait go first. The
 * lock must outlive the call, also when one of them ends what it guards. */
static inline void xtal_bias_unlock_own(struct xtal_bias *b)
{
	if (xtal_likely(!b->locked))
		atomic_store_explicit(&b->busy, false, memory_order_release);
	else
		xtal_bias_unlock_slowly(b, true);
}

#endif
