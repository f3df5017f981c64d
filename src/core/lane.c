/* SPDX-License-Identifier: MIT */
/* The list of all lanes of this process, and the choice between fence and membarrier. */
#include "core/lane.h"

#include "base/lock.h"
#include "core/revoke.h"

static struct xtal_lock lanes_lock;
static struct xtal_list lanes = { &lanes, &lanes };

void xtal_lane_init(struct xtal_lane *lane)
{
	atomic_init(&lane->local, 0);
	atomic_init(&lane->notify, 0);
	atomic_init(&lane->self.word, 0);
	xtal_lock(&lanes_lock);
	xtal_list_append(&lanes, &lane->node);
	xtal_unlock(&lanes_lock);
}

void xtal_lane_fini(struct xtal_lane *lane)
{
	xtal_lock(&lanes_lock);
	xtal_list_remove(&lane->node);
	xtal_unlock(&lanes_lock);
}

/* Acquire: what the executor did before it cleared its word has happened. */
static bool names(const _Atomic uint64_t *word, uint64_t identity)
{
	return atomic_load_explicit(word, memory_order_acquire) == identity;
}

bool xtal_lanes_busy(uint64_t identity, const struct xtal_lane *skip)
{
	bool busy = false;

	xtal_lock(&lanes_lock);
	for (struct xtal_list *n = lanes.next; n != &lanes && !busy; n = n->next) {
		struct xtal_lane *lane = xtal_container_of(n, struct xtal_lane, node);

		if (lane != skip)
			busy = names(&lane->local, identity) || names(&lane->notify, identity) ||
			       names(&lane->self.word, identity);
	}
	xtal_unlock(&lanes_lock);
	return busy;
}

void xtal_lanes_fork_child(void)
{
	/* Threads that held the lock are gone, and so are all lanes but those we forget. */
	atomic_store(&lanes_lock.held, 0);
	xtal_list_init(&lanes);
}
