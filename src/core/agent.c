/* SPDX-License-Identifier: MIT */
/* The agent's thread: tasks, descriptors, message rings, timers, ticks; see agent.h. */
#include "core/agent.h"

#include <errno.h>
#include <stdlib.h>

#include "base/export.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/engine.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/queue_impl.h"
#include "os/life.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"
#include "os/vm.h"

#define TICK_NS   5000000u
#define PATIENCE  20000u /* ns: how long it looks for more work at least, if it may */
#define HASH_SIZE 256u
#define DOORBELL  1u /* tag of our own eventfd; sources begin behind it */

static struct {
	int epoll, doorbell, bounce;
	atomic_uint state; /* 0: no thread, 1: running, 2: asked to stop */
	atomic_bool ticks;
	struct xtal_lock lock; /* tasks */
	struct xtal_task *tasks, **tasks_end;
	_Atomic(struct xtal_drain *) joined; /* the last one; not in drains yet */
	/* the rest belongs to the thread */
	uint64_t next_id;
	struct xtal_source *hash[HASH_SIZE];
	struct xtal_list drains, timers;
	bool removed;         /* a drain was, meanwhile */
	uint64_t next_timer;  /* not after the earliest of them */
	bool timer_gone;      /* the earliest was stopped */
	bool worked, sources; /* xtal_agent_stay() */
	uint64_t patience;    /* ns: how long it looks for more before it sleeps */
	struct xtal_lane lane;
} agent = { .epoll = -1, .doorbell = -1, .bounce = -1 };

static _Thread_local bool on_agent;

bool xtal_agent_is_me(void)
{
	return on_agent;
}

struct xtal_lane *xtal_agent_lane(void)
{
	return &agent.lane;
}

int xtal_agent_doorbell(void)
{
	return agent.doorbell;
}

static void run_tasks(void)
{
	for (;;) {
		struct xtal_task *task;

		xtal_lock(&agent.lock);
		task = agent.tasks;
		if (task) {
			agent.tasks = task->next;
			if (!agent.tasks)
				agent.tasks_end = &agent.tasks;
			task->queued = false;
		}
		xtal_unlock(&agent.lock);
		if (!task)
			return;
		task->run(task); /* may free the task */
	}
}

static void take_joined(void)
{
	struct xtal_drain *d;

	if (!atomic_load_explicit(&agent.joined, memory_order_relaxed))
		return;
	/* Acquire. Partner: xtal_agent_join_drain(). */
	d = atomic_exchange_explicit(&agent.joined, NULL, memory_order_acquire);
	for (; d; d = d->joined)
		xtal_list_append(&agent.drains, &d->node);
}

static bool run_drains(void)
{
	bool did = false;

	take_joined();
	for (struct xtal_list *n = agent.drains.next, *next; n != &agent.drains; n = next) {
		struct xtal_drain *d = xtal_container_of(n, struct xtal_drain, node);

		next = n->next;
		agent.removed = false;
		did |= d->drain(d);
		if (agent.removed) /* maybe the next one: all again soon */
			return true;
	}
	return did;
}

static void drains_after_sleep(struct xtal_list *stop)
{
	for (struct xtal_list *n = agent.drains.next; n != stop; n = n->next) {
		struct xtal_drain *d = xtal_container_of(n, struct xtal_drain, node);

		d->after_sleep(d);
	}
}

/* Runs those that are due, and finds out when the next one is. */
static void run_timers(uint64_t now)
{
	struct xtal_list due, *n, *next;

	if (now < agent.next_timer)
		return;
	xtal_list_init(&due);
	agent.next_timer = UINT64_MAX;
	for (n = agent.timers.next; n != &agent.timers; n = next) {
		struct xtal_timer *t = xtal_container_of(n, struct xtal_timer, node);

		next = n->next;
		if (t->at <= now) {
			xtal_list_remove(n);
			xtal_list_append(&due, n);
		} else if (t->at < agent.next_timer) {
			agent.next_timer = t->at;
		}
	}
	while (!xtal_list_empty(&due)) {
		struct xtal_timer *t = xtal_container_of(due.next, struct xtal_timer, node);

		xtal_list_remove(&t->node); /* others that are due may be freed or moved, too */
		t->run(t);
	}
}

/* When to wake: nobody wakes for a timer that was stopped. */
static uint64_t next_timer(void)
{
	if (agent.timer_gone) {
		agent.timer_gone = false;
		agent.next_timer = UINT64_MAX;
		for (struct xtal_list *n = agent.timers.next; n != &agent.timers; n = n->next) {
			struct xtal_timer *t = xtal_container_of(n, struct xtal_timer, node);

			if (t->at < agent.next_timer)
				agent.next_timer = t->at;
		}
	}
	return agent.next_timer;
}

/* False when a ring has frames: then nothing is armed. */
static bool drains_before_sleep(void)
{
	take_joined();
	for (struct xtal_list *n = agent.drains.next, *next; n != &agent.drains; n = next) {
		struct xtal_drain *d = xtal_container_of(n, struct xtal_drain, node);

		next = n->next;
		if (!d->before_sleep(d)) {
			drains_after_sleep(n);
			return false;
		}
	}
	return true;
}

static struct xtal_source *source_by_id(uint64_t id)
{
	struct xtal_source *s = agent.hash[id % HASH_SIZE];

	while (s && s->id != id)
		s = s->hash_next;
	return s;
}

/* Handles what epoll reports by the deadline. An id is looked up at its turn, since handling
 * one source may remove others. Returns whether there was any event. */
static bool run_sources(uint64_t deadline)
{
	uint64_t tags[64];
	int n = xtal_os_epoll_wait(agent.epoll, tags, 64, deadline);

	/* The program has closed it: there is nothing to sleep in any more. */
	if (n < 0 && deadline)
		xtal_os_sleep_ns(TICK_NS);
	for (int i = 0; i < n; i++) {
		struct xtal_source *s;

		if (tags[i] == DOORBELL) {
			xtal_os_event_clear(agent.doorbell);
			continue;
		}
		s = source_by_id(tags[i]);
		if (s)
			s->ready(s);
	}
	return n > 0;
}

void xtal_agent_stay(bool sources)
{
	agent.worked = true;
	agent.sources |= sources;
}

/*
 * Work has come after a sleep. One that was shorter than we may look around costs more than it
 * saves, to whoever waits for us too: next time we look for longer.
 */
static void adapt(uint64_t slept, uint64_t most)
{
	uint64_t least = most < PATIENCE ? most : PATIENCE;

	if (slept >= most)
		agent.patience = least;
	else
		agent.patience = 2 * agent.patience < most ? 2 * agent.patience : most;
}

static void agent_run(void *arg)
{
	uint64_t most = (uint64_t)xtal_config()->spin_us * 1000, active = 0, ticked = 0, slept = 0;
	uint64_t yielded = 0;
	unsigned rounds = 0;
	bool wanted = false; /* the processor, by others */

	(void)arg;
	on_agent = true;
	xtal_os_life_keep();
	adapt(most, most);
	for (;;) {
		uint64_t now, deadline;
		bool did;

		run_tasks();
		if (atomic_load(&agent.state) == 2)
			break;
		did = run_drains() | agent.worked;
		agent.worked = false;
		now = xtal_os_now();
		if (did) {
			active = now;
			if (slept)
				adapt(slept, most);
			slept = 0;
		}
		if (atomic_load_explicit(&agent.ticks, memory_order_relaxed) &&
		    now - ticked >= TICK_NS) {
			ticked = now;
			/* Partner: need_ticks sets it after the queue has entered the list. */
			atomic_store(&agent.ticks, false);
			if (xtal_queues_tick(now))
				atomic_store(&agent.ticks, true);
		}
		run_timers(now);
		wanted &= !did;
		if (did || (!wanted && now - active < agent.patience)) {
			if (agent.sources || ++rounds % 64 == 0)
				run_sources(0);
			else if (!did)
				xtal_cpu_relax();
			if (did || now - active < xtal_os_yield_after() ||
			    now - yielded < XTAL_OS_YIELD_NS)
				continue;
			yielded = now;
			/* Whom we wait for may be waiting for this processor: then sleep, after a
			 * last round in which nothing was found. */
			wanted = xtal_os_yield();
			continue;
		}
		if (!drains_before_sleep())
			continue;
		deadline = next_timer();
		if (atomic_load(&agent.ticks) && deadline > now + TICK_NS)
			deadline = now + TICK_NS;
		agent.sources = false;
		run_sources(deadline);
		slept += xtal_os_now() - now;
		xtal_count(&xtal_totals.agent_wakeups, 1);
		drains_after_sleep(&agent.drains);
	}
	run_tasks(); /* those that came before the stop, after our last look */
	xtal_lane_fini(&agent.lane);
	atomic_store(&agent.state, 0);
	xtal_os_futex_wake(&agent.state, INT32_MAX);
}

/* The agent executes and answers by guarded copies of short pieces. */
static void close_bounce(void)
{
	xtal_os_bounce_close();
	xtal_engine_close_fd(agent.bounce);
	agent.bounce = -1;
}

int xtal_agent_start(void)
{
	int err = xtal_os_epoll_create(&agent.epoll);

	if (err)
		return err;
	err = xtal_os_event_create(&agent.doorbell);
	if (err)
		goto close_epoll;
	agent.epoll = xtal_os_aside(agent.epoll);
	agent.doorbell = xtal_os_aside(agent.doorbell);
	err = xtal_os_epoll_add(agent.epoll, agent.doorbell, DOORBELL);
	if (err)
		goto close_doorbell;
	if (!xtal_os_bounce_open(&agent.bounce))
		xtal_engine_track_fd(agent.bounce);
	xtal_engine_track_fd(agent.epoll);
	xtal_engine_track_fd(agent.doorbell);
	xtal_list_init(&agent.drains);
	xtal_list_init(&agent.timers);
	agent.next_timer = UINT64_MAX;
	xtal_lane_init(&agent.lane);
	agent.tasks = NULL;
	atomic_store(&agent.joined, NULL);
	agent.tasks_end = &agent.tasks;
	if (!agent.next_id)
		agent.next_id = DOORBELL;
	atomic_store(&agent.ticks, false);
	atomic_store(&agent.state, 1);
	err = xtal_os_thread_start("xtal-agent", agent_run, NULL);
	if (!err)
		return 0;
	atomic_store(&agent.state, 0);
	xtal_lane_fini(&agent.lane);
	close_bounce();
	xtal_engine_close_fd(agent.doorbell);
	xtal_engine_close_fd(agent.epoll);
	return err;
close_doorbell:
	xtal_os_close(agent.doorbell);
close_epoll:
	xtal_os_close(agent.epoll);
	return err;
}

void xtal_agent_stop(void)
{
	atomic_store(&agent.state, 2);
	xtal_os_event_signal(agent.doorbell);
	while (atomic_load(&agent.state) == 2)
		xtal_os_futex_wait(&agent.state, 2, UINT64_MAX);
	close_bounce();
	xtal_engine_close_fd(agent.doorbell);
	xtal_engine_close_fd(agent.epoll);
	agent.doorbell = agent.epoll = -1;
}

void xtal_agent_fork_child(void)
{
	xtal_os_life_fork_child();
	agent.epoll = agent.doorbell = agent.bounce = -1;
	xtal_os_bounce_fork_child();
	atomic_store(&agent.state, 0);
	atomic_store(&agent.lock.held, 0);
	for (unsigned i = 0; i < HASH_SIZE; i++)
		agent.hash[i] = NULL;
	on_agent = false;
}

bool xtal_agent_post(struct xtal_task *task)
{
	bool signal = false, mine = false;

	xtal_lock(&agent.lock);
	if (!task->queued) {
		task->queued = mine = true;
		task->next = NULL;
		signal = agent.tasks == NULL;
		*agent.tasks_end = task;
		agent.tasks_end = &task->next;
	}
	xtal_unlock(&agent.lock);
	if (signal)
		xtal_os_event_signal(agent.doorbell);
	return mine;
}

struct call {
	struct xtal_task task;
	void (*fn)(void *arg);
	void *arg;
	atomic_uint done;
};

static void run_call(struct xtal_task *task)
{
	struct call *c = xtal_container_of(task, struct call, task);
	atomic_uint *done = &c->done;

	c->fn(c->arg);
	/* The caller's stack may be gone right after the store; a wake of a dead address is a
	 * harmless spurious wake for whoever sleeps there then. */
	atomic_store(done, 1);
	xtal_os_futex_wake(done, 1);
}

void xtal_agent_call(void (*fn)(void *arg), void *arg)
{
	struct call c = { .task.run = run_call, .fn = fn, .arg = arg };

	if (on_agent) {
		fn(arg);
		return;
	}
	xtal_agent_post(&c.task);
	while (!atomic_load(&c.done))
		xtal_os_futex_wait(&c.done, 0, UINT64_MAX);
}

int xtal_agent_watch(struct xtal_source *src)
{
	int err;

	src->id = ++agent.next_id;
	err = xtal_os_epoll_add(agent.epoll, src->fd, src->id);
	if (err) {
		src->id = 0;
		return err;
	}
	src->hash_next = agent.hash[src->id % HASH_SIZE];
	agent.hash[src->id % HASH_SIZE] = src;
	return 0;
}

void xtal_agent_unwatch(struct xtal_source *src)
{
	struct xtal_source **at;

	if (!src->id)
		return;
	for (at = &agent.hash[src->id % HASH_SIZE]; *at; at = &(*at)->hash_next) {
		if (*at == src) {
			*at = src->hash_next;
			break;
		}
	}
	xtal_os_epoll_remove(agent.epoll, src->fd);
	src->id = 0;
}

void xtal_agent_change(struct xtal_source *src, unsigned what)
{
	xtal_os_epoll_change(agent.epoll, src->fd, src->id, what);
}

void xtal_agent_set_timer(struct xtal_timer *t, uint64_t at, void (*run)(struct xtal_timer *timer))
{
	xtal_agent_stop_timer(t);
	t->at = at;
	t->run = run;
	xtal_list_append(&agent.timers, &t->node);
	if (at < agent.next_timer)
		agent.next_timer = at;
}

void xtal_agent_stop_timer(struct xtal_timer *t)
{
	if (!t->node.next)
		return;
	agent.timer_gone |= t->at <= agent.next_timer;
	xtal_list_remove(&t->node);
}

void xtal_agent_need_ticks(void)
{
	if (!atomic_exchange(&agent.ticks, true))
		xtal_os_event_signal(agent.doorbell);
}

void xtal_agent_add_drain(struct xtal_drain *d)
{
	xtal_list_append(&agent.drains, &d->node);
}

void xtal_agent_join_drain(struct xtal_drain *d)
{
	d->joined = atomic_load_explicit(&agent.joined, memory_order_relaxed);
	/* Release: what d points to. Partner: take_joined(). */
	while (!atomic_compare_exchange_weak_explicit(&agent.joined, &d->joined, d,
						      memory_order_release, memory_order_relaxed))
		;
}

void xtal_agent_remove_drain(struct xtal_drain *d)
{
	take_joined();
	xtal_list_remove(&d->node);
	agent.removed = true;
}
