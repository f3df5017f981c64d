/* SPDX-License-Identifier: MIT */
/*
 * The slow ways of a biased lock; see bias.h and test/model/bias.pml. The argument: once wanted
 * is set and all threads have passed a fence, the owner has either announced itself in busy,
 * where we wait for it, or will see wanted and leave.
 */
#include "core/bias.h"

#include "core/lane.h"
#include "core/revoke.h"
#include "os/proc.h"

static bool owned_by_another(const struct xtal_bias *b)
{
	uintptr_t owner = atomic_load_explicit(&b->owner, memory_order_relaxed);

	return owner != 0 && owner != XTAL_BIAS_NOBODY && owner != xtal_bias_self();
}

/* Too many come too often: all take the lock from now on. The owner is out. wanted stays set: a
 * thread that has just read its name in owner must not get in. */
static void count_disturbance(struct xtal_bias *b)
{
	uint64_t now = xtal_os_now();

	if (now - b->disturbed_at > XTAL_BIAS_DISTURBED_NS)
		b->disturbed = 0;
	b->disturbed_at = now;
	if (++b->disturbed >= XTAL_BIAS_DISTURBED)
		atomic_store_explicit(&b->owner, XTAL_BIAS_NOBODY, memory_order_relaxed);
}

static void call_back(struct xtal_bias *b)
{
	if (atomic_load_explicit(&b->owner, memory_order_relaxed) != XTAL_BIAS_NOBODY)
		/* Release: partner is the owner's look at wanted. */
		atomic_store_explicit(&b->wanted, false, memory_order_release);
}

/* Keeps the owner out. False: it was inside for longer than so many looks. With the lock. */
static bool shut_out(struct xtal_bias *b, unsigned looks)
{
	atomic_store_explicit(&b->wanted, true, memory_order_relaxed);
	xtal_revoke_fence();
	/* Acquire: all that the owner did inside. */
	while (atomic_load_explicit(&b->busy, memory_order_acquire)) {
		if (!looks--) {
			call_back(b);
			return false;
		}
		xtal_cpu_relax();
		if (looks % 256 == 0)
			sched_yield();
	}
	count_disturbance(b);
	return true;
}

/* The same thread again and again: it need not lock any more. With the lock. */
static void consider(struct xtal_bias *b)
{
	uintptr_t self = xtal_bias_self();

	if (atomic_load_explicit(&b->owner, memory_order_relaxed) || xtal_lane_full_fence())
		return;
	b->streak = b->last == self ? b->streak + 1 : 1;
	b->last = self;
	if (b->streak >= XTAL_BIAS_STREAK)
		atomic_store_explicit(&b->owner, self, memory_order_relaxed);
}

void xtal_bias_lock_slowly(struct xtal_bias *b, bool adopt)
{
	xtal_lock(&b->lock);
	if (owned_by_another(b))
		while (!shut_out(b, 1u << 20))
			;
	if (adopt)
		consider(b);
	b->locked = true;
}

bool xtal_bias_trylock(struct xtal_bias *b, unsigned looks)
{
	if (xtal_bias_enter(b))
		return true;
	for (unsigned i = 0; !xtal_trylock(&b->lock); i++) {
		if (i >= looks)
			return false;
		xtal_cpu_relax();
	}
	if (owned_by_another(b) && !shut_out(b, looks)) {
		xtal_unlock(&b->lock);
		return false;
	}
	b->locked = true;
	return true;
}

void xtal_bias_unlock_slowly(struct xtal_bias *b, bool fair)
{
	b->locked = false;
	call_back(b);
	if (fair)
		xtal_unlock_fair(&b->lock);
	else
		xtal_unlock(&b->lock);
}
