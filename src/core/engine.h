/* SPDX-License-Identifier: MIT */
/*
 * The engine: what all contexts of this process share. Starts with the first context, ends
 * with the last; a forked child starts with a new one.
 */
#ifndef XTAL_CORE_ENGINE_H
#define XTAL_CORE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/list.h"
#include "base/lock.h"

struct xtal_context;

/* Adds a context (starts agent and workers with the first). Errors: -EAGAIN, -errno. */
int xtal_engine_enter(struct xtal_context *ctx);
/* Registers the fork handlers, once. Errors: -ENOMEM. */
int xtal_engine_setup_fork(void);
/* xtal_engine_find() no longer finds it. */
void xtal_engine_hide(struct xtal_context *ctx);
/* Removes it (hidden before, and no link leads to it); with the last one stops all threads. Not on the agent thread. */
void xtal_engine_leave(struct xtal_context *ctx);

/* The context of this process that holds (eid, port), with its use count raised, or NULL. */
struct xtal_context *xtal_engine_find(struct xtal_eid eid, uint16_t port);

/* Calls each for every context, under a lock that posting never takes. */
void xtal_engine_each(void (*each)(struct xtal_context *ctx, void *arg), void *arg);
/* The same in several walks, between which no context comes or goes and nobody forks. */
void xtal_engine_hold(void);
void xtal_engine_each_held(void (*each)(struct xtal_context *ctx, void *arg), void *arg);
void xtal_engine_release(void);

/* Descriptors that a forked child must close, so that peers see our death. */
void xtal_engine_track_fd(int fd);
/* Forgets and closes. -1 is ignored. */
void xtal_engine_close_fd(int fd);

/* Totals kept by the engine's own threads and slow paths (see struct xtal_counters). */
struct xtal_engine_totals {
	_Atomic uint64_t served, served_bytes, denied, revocations, fenced, links_made, peers_lost,
		agent_wakeups, refused;
	_Atomic uint64_t adopted, adopted_bytes, adopt_ns, adopt_refused, adopt_undone;
	_Atomic uint64_t contexts, queues, segments, links;
	/* what destroyed queues had counted */
	_Atomic uint64_t posted, completed, failed, ops[8], bytes[8];
};
extern struct xtal_engine_totals xtal_totals;

static inline void xtal_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
