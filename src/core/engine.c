/* SPDX-License-Identifier: MIT */
/* What all contexts of the process share: their list, the threads' life, fork, descriptors. */
#include "core/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/adopt.h"
#include "core/agent.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/handle_impl.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/object.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "core/revoke.h"
#include "core/security.h"
#include "os/env.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"

struct xtal_engine_totals xtal_totals;

static struct {
	struct xtal_lock life; /* one start or stop at a time; held across thread starts */
	struct xtal_lock lock; /* the list below */
	struct xtal_list contexts;
	uint32_t count; /* entered and not left */
	bool atfork_done, fences_chosen;
	struct xtal_lock fds_lock;
	bool *fds; /* by number: a child closes it */
	unsigned fds_size;
} engine = { .contexts = { &engine.contexts, &engine.contexts } };

/* Everything that the child walks, or uses again, is whole at the fork. In the order of all locks:
 * engine.lock is taken by those who hold a queues_lock. */
static void before_fork(void)
{
	xtal_adopt_before_fork();
	xtal_lock(&engine.life);
	for (struct xtal_list *n = engine.contexts.next; n != &engine.contexts; n = n->next)
		xtal_lock(&xtal_container_of(n, struct xtal_context, node)->queues_lock);
	xtal_lock(&engine.lock);
	xtal_lock(&engine.fds_lock);
	xtal_object_fork_lock();
	xtal_handles_fork_lock();
	xtal_security_fork_lock();
	xtal_os_syslog_hold();
}

static void release_after_fork(void)
{
	xtal_os_syslog_release();
	xtal_security_fork_unlock();
	xtal_handles_fork_unlock();
	xtal_object_fork_unlock();
	xtal_unlock(&engine.fds_lock);
	xtal_unlock(&engine.lock);
	for (struct xtal_list *n = engine.contexts.next; n != &engine.contexts; n = n->next)
		xtal_unlock(&xtal_container_of(n, struct xtal_context, node)->queues_lock);
	xtal_unlock(&engine.life);
}

static void after_fork_parent(void)
{
	release_after_fork();
	xtal_adopt_after_fork();
}

/*
 * The child has no agent and no workers, and nothing in it may speak for the parent: its
 * contexts become foreign, the inherited descriptors are closed, the engine is as new. The
 * parent's objects stay allocated (another thread may have been inside them).
 */
static void after_fork_child(void)
{
	for (struct xtal_list *n = engine.contexts.next; n != &engine.contexts; n = n->next) {
		struct xtal_context *ctx = xtal_container_of(n, struct xtal_context, node);

		ctx->foreign = true;
		xtal_queues_fork_child(ctx);
		xtal_unlock(&ctx->queues_lock);
	}
	for (unsigned i = 0; i < engine.fds_size; i++)
		if (engine.fds[i])
			xtal_os_close((int)i);
	engine.fds = NULL;
	engine.fds_size = 0;
	xtal_list_init(&engine.contexts);
	engine.count = 0;
	engine.fences_chosen = false;
	memset(&xtal_totals, 0, sizeof(xtal_totals));
	xtal_lanes_fork_child();
	xtal_agent_fork_child();
	xtal_pipelines_fork_child();
	xtal_revoke_fork_child();
	xtal_security_fork_child();
	xtal_adopt_fork_child();
	xtal_object_fork_child();
	xtal_fault_fork_child();
	release_after_fork();
}

/* Under engine.life. */
static int setup_fork(void)
{
	int err = 0;

	/* Read now, so that no fork meets a thread that is reading them. */
	xtal_config();
	xtal_device_count();
	if (!engine.atfork_done) {
		err = xtal_os_atfork(before_fork, after_fork_parent, after_fork_child);
		engine.atfork_done = !err;
	}
	/* Also in a child: whether it inherits the registration is the kernel's business. */
	if (!engine.fences_chosen)
		xtal_revoke_setup();
	engine.fences_chosen = true;
	return err;
}

int xtal_engine_setup_fork(void)
{
	int err;

	xtal_lock(&engine.life);
	err = setup_fork();
	xtal_unlock(&engine.life);
	return err;
}

int xtal_engine_enter(struct xtal_context *ctx)
{
	static _Atomic uint32_t numbers;
	int err;

	xtal_lock(&engine.life);
	err = setup_fork();
	if (!err && !engine.count)
		err = xtal_agent_start();
	if (!err) {
		ctx->number = atomic_fetch_add(&numbers, 1) + 1;
		xtal_lock(&engine.lock);
		engine.count++;
		xtal_list_append(&engine.contexts, &ctx->node);
		xtal_unlock(&engine.lock);
		xtal_count(&xtal_totals.contexts, 1);
	}
	xtal_unlock(&engine.life);
	return err;
}

void xtal_engine_hide(struct xtal_context *ctx)
{
	xtal_lock(&engine.life);
	xtal_lock(&engine.lock);
	xtal_list_remove(&ctx->node);
	xtal_unlock(&engine.lock);
	xtal_unlock(&engine.life);
}

void xtal_engine_leave(struct xtal_context *ctx)
{
	xtal_lock(&engine.life);
	engine.count--;
	/* Partner: xtal_engine_find() raises users under the lock. */
	while (atomic_load_explicit(&ctx->users, memory_order_acquire))
		xtal_os_sleep_ns(20000);
	if (!engine.count) {
		xtal_pipelines_stop();
		xtal_agent_stop();
	}
	atomic_fetch_sub_explicit(&xtal_totals.contexts, 1, memory_order_relaxed);
	xtal_unlock(&engine.life);
}

struct xtal_context *xtal_engine_find(struct xtal_eid eid, uint16_t port)
{
	struct xtal_context *found = NULL;

	xtal_lock(&engine.lock);
	for (struct xtal_list *n = engine.contexts.next; n != &engine.contexts; n = n->next) {
		struct xtal_context *ctx = xtal_container_of(n, struct xtal_context, node);

		if (ctx->port == port && xtal_eid_equal(ctx->dev->eid, eid)) {
			found = ctx;
			atomic_fetch_add_explicit(&ctx->users, 1, memory_order_relaxed);
			break;
		}
	}
	xtal_unlock(&engine.lock);
	return found;
}

void xtal_engine_hold(void)
{
	xtal_lock(&engine.life);
}

void xtal_engine_release(void)
{
	xtal_unlock(&engine.life);
}

void xtal_engine_each_held(void (*each)(struct xtal_context *ctx, void *arg), void *arg)
{
	for (struct xtal_list *n = engine.contexts.next; n != &engine.contexts; n = n->next)
		each(xtal_container_of(n, struct xtal_context, node), arg);
}

void xtal_engine_each(void (*each)(struct xtal_context *ctx, void *arg), void *arg)
{
	xtal_engine_hold();
	xtal_engine_each_held(each, arg);
	xtal_engine_release();
}

void xtal_engine_track_fd(int fd)
{
	if (fd < 0)
		return;
	xtal_lock(&engine.fds_lock);
	if ((unsigned)fd >= engine.fds_size) {
		unsigned size = ((unsigned)fd / 64 + 1) * 64;
		bool *grown = realloc(engine.fds, size * sizeof(*grown));

		if (grown) {
			for (unsigned k = engine.fds_size; k < size; k++)
				grown[k] = false;
			engine.fds = grown;
			engine.fds_size = size;
		}
	}
	/* Without memory a child keeps it open: death is then seen by the pidfd alone. */
	if ((unsigned)fd < engine.fds_size)
		engine.fds[fd] = true;
	xtal_unlock(&engine.fds_lock);
}

void xtal_engine_close_fd(int fd)
{
	if (fd < 0)
		return;
	xtal_lock(&engine.fds_lock);
	if ((unsigned)fd < engine.fds_size)
		engine.fds[fd] = false;
	xtal_os_close(fd);
	xtal_unlock(&engine.fds_lock);
}
