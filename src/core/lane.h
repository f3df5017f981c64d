/* SPDX-License-Identifier: MIT */
/*
 * A lane: one executor of this process (a queue under its lock, a pipeline worker, a polling
 * caller that helps, the agent) announces here which segment of this process it is using, so
 * that unregister can wait for it. Lanes of all contexts stand in one list.
 */
#ifndef XTAL_CORE_LANE_H
#define XTAL_CORE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "base/list.h"
#include "core/shared.h"

struct xtal_lane {
	_Alignas(XTAL_CACHE_LINE) _Atomic uint64_t local; /* (context number, slot) of our side */
	_Atomic uint64_t notify;                          /* a second segment used at once */
	struct xtal_activity self; /* the target, when it is in this process: word as local */
	struct xtal_list node;
};

/* What it moved over one path: one writer, read by anybody. */
struct xtal_moved {
	_Atomic uint64_t ops, bytes; /* without the words */
	_Atomic uint64_t words;      /* operations of 8 bytes that went the short way */
};

static inline uint64_t xtal_moved_ops(const struct xtal_moved *m)
{
	return atomic_load_explicit(&m->ops, memory_order_relaxed) +
	       atomic_load_explicit(&m->words, memory_order_relaxed);
}

static inline uint64_t xtal_moved_bytes(const struct xtal_moved *m)
{
	return atomic_load_explicit(&m->bytes, memory_order_relaxed) +
	       8 * atomic_load_explicit(&m->words, memory_order_relaxed);
}

/* Identity of a slot within the process: never 0. */
static inline uint64_t xtal_lane_id(uint32_t context_number, uint32_t slot)
{
	return (uint64_t)context_number << 32 | (slot + 1);
}

void xtal_lane_init(struct xtal_lane *lane);
void xtal_lane_fini(struct xtal_lane *lane);

/* True when fences of executors must be real ones (no membarrier for this process). */
bool xtal_lane_full_fence(void);

/*
 * Makes the executor's announcement visible before its look at the slot word. Partner: the
 * owner's xtal_revoke_fence() between bumping the word and reading the announcements.
 */
static inline void xtal_lane_fence(bool full)
{
	if (xtal_unlikely(full))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

/* In a forked child: the lanes of the parent's threads are not ours. */
void xtal_lanes_fork_child(void);

/* True when some lane but skip names the identity. */
bool xtal_lanes_busy(uint64_t identity, const struct xtal_lane *skip);

#endif
