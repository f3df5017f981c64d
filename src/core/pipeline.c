/* SPDX-License-Identifier: MIT */
/* Pipeline workers; see pipeline.h. Sleep and wake: test/model/wake.pml. */
#include "core/pipeline.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "core/agent.h"
#include "core/bulk.h"
#include "core/config.h"
#include "core/log.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/thread.h"

#define MAX_PIPELINES 8
#define LOOK_NS       20000 /* a worker looks so long for more work before it sleeps */

struct pipeline {
	struct xtal_lock lock;
	struct xtal_queue *head, **tail;
	bool started, stop;
	bool lent; /* no thread could be started: the agent does the work, see lend() */
	struct xtal_task task;
	struct xtal_timer step;
	bool sleeping;      /* the worker is about to sleep: who clears this wakes it */
	atomic_uint signal; /* futex word: bumped under the lock by whoever brings work */
	atomic_uint alive;
};

static struct pipeline pipelines[MAX_PIPELINES];

static uint32_t number_of(const struct pipeline *p)
{
	return (uint32_t)(p - pipelines);
}

/* Under the lock. */
static struct xtal_queue *next_queue(struct pipeline *p)
{
	struct xtal_queue *q = p->head;

	if (q) {
		p->head = q->run_next;
		if (!p->head)
			p->tail = &p->head;
		q->kick = XTAL_KICK_RUNNING;
	}
	return q;
}

/* Under the lock. */
static void append(struct pipeline *p, struct xtal_queue *q)
{
	q->kick = XTAL_KICK_QUEUED;
	q->run_next = NULL;
	*p->tail = q;
	p->tail = &q->run_next;
}

static void run_queue(struct pipeline *p, struct xtal_queue *q)
{
	xtal_bias_lock(&q->lock);
	xtal_queue_progress(q);
	xtal_bias_unlock(&q->lock);
	xtal_lock(&p->lock);
	if (q->kick == XTAL_KICK_AGAIN)
		append(p, q);
	else
		q->kick = XTAL_KICK_IDLE; /* xtal_pipeline_forget() may go on: not ours any more */
	xtal_unlock(&p->lock);
}

/* Long copies come one after another: a look now and then for a while is cheaper than being woken,
 * and much cheaper for whoever would have to wake us. */
static bool something_came(struct pipeline *p, unsigned seen)
{
	uint64_t until = xtal_os_now() + LOOK_NS;

	do {
		for (unsigned i = 0; i < 50; i++) {
			if (atomic_load_explicit(&p->signal, memory_order_relaxed) != seen)
				return true;
			xtal_cpu_relax();
		}
	} while (xtal_os_now() < until);
	return false;
}

/* Until the signal is no longer the one seen. */
static void sleep_worker(struct pipeline *p, unsigned seen)
{
	xtal_lock(&p->lock);
	p->sleeping = atomic_load_explicit(&p->signal, memory_order_relaxed) == seen;
	xtal_unlock(&p->lock);
	xtal_os_futex_wait(&p->signal, seen, UINT64_MAX);
}

/* Under the lock: there is work. True: after it, call xtal_os_futex_wake(). */
static bool must_wake(struct pipeline *p)
{
	bool sleeping = p->sleeping;

	atomic_fetch_add_explicit(&p->signal, 1, memory_order_relaxed);
	p->sleeping = false;
	return sleeping;
}

static void worker(void *arg)
{
	struct pipeline *p = arg;
	bool worked = false;

	/* A post that needs us shall return first. */
	xtal_os_thread_yields_to_waker();
	for (;;) {
		struct xtal_queue *q;
		struct xtal_bulk *b;
		unsigned seen;
		bool stop;

		xtal_lock(&p->lock);
		q = next_queue(p);
		stop = p->stop;
		seen = atomic_load_explicit(&p->signal, memory_order_relaxed);
		xtal_unlock(&p->lock);
		if (q) {
			run_queue(p, q);
			worked = true;
			continue;
		}
		if (stop)
			break;
		b = xtal_bulk_next(number_of(p));
		if (b) {
			xtal_bulk_help(b, false);
			xtal_bulk_put(b);
			worked = true;
			continue;
		}
		if (!worked || !something_came(p, seen))
			sleep_worker(p, seen);
		worked = false;
	}
	atomic_store(&p->alive, 0);
	xtal_os_futex_wake(&p->alive, INT32_MAX);
}

#define STEP_PAUSE_NS 100000 /* while a bulk's executor finds no seat */

/* On the agent, in the worker's place: one queue or one fragment, then what else it has to do. */
static void step(struct xtal_timer *timer)
{
	struct pipeline *p = xtal_container_of(timer, struct pipeline, step);
	struct xtal_queue *q;
	struct xtal_bulk *b;
	uint64_t at = 0;

	xtal_lock(&p->lock);
	q = next_queue(p);
	xtal_unlock(&p->lock);
	if (q) {
		run_queue(p, q);
	} else {
		b = xtal_bulk_next(number_of(p));
		if (!b)
			return;
		if (!xtal_bulk_help(b, false))
			at = xtal_os_now() + STEP_PAUSE_NS;
		xtal_bulk_put(b);
	}
	xtal_agent_set_timer(&p->step, at, step);
}

static void begin_steps(struct xtal_task *task)
{
	struct pipeline *p = xtal_container_of(task, struct pipeline, task);

	xtal_agent_set_timer(&p->step, 0, step);
}

static void end_steps(void *arg)
{
	struct pipeline *p = arg;

	xtal_agent_stop_timer(&p->step);
}

/* Under the lock: nobody else would do the work for callers that sleep. */
static void lend(struct pipeline *p, int err)
{
	if (!p->lent)
		xtal_log(XTAL_LOG_ERROR, "xtal",
			 "no thread for pipeline %u (%s): the agent moves its bytes, which is "
			 "slower, until one can be started",
			 number_of(p), strerror(-err));
	p->lent = true;
	p->task.run = begin_steps;
	xtal_agent_post(&p->task);
}

/* Under the lock: starts the worker when it has none. */
static void need_worker(struct pipeline *p)
{
	char name[16];
	int err;

	if (p->started)
		return;
	snprintf(name, sizeof(name), "xtal-pipe%u", number_of(p));
	atomic_store(&p->alive, 1);
	p->stop = false;
	err = xtal_os_thread_start(name, worker, p);
	if (err) {
		atomic_store(&p->alive, 0);
		lend(p, err);
		return;
	}
	p->started = true;
}

static struct pipeline *pipeline_at(uint32_t number)
{
	struct pipeline *p = &pipelines[number % xtal_config()->pipelines];

	return p;
}

void xtal_pipeline_kick(struct xtal_queue *q)
{
	struct pipeline *p = pipeline_at(q->pipeline);
	bool wake = false;

	xtal_lock(&p->lock);
	if (!p->tail)
		p->tail = &p->head;
	switch (q->kick) {
	case XTAL_KICK_IDLE:
		append(p, q);
		need_worker(p);
		wake = must_wake(p);
		break;
	case XTAL_KICK_RUNNING:
		q->kick = XTAL_KICK_AGAIN;
		break;
	case XTAL_KICK_QUEUED:
	case XTAL_KICK_AGAIN:
		break;
	}
	xtal_unlock(&p->lock);
	if (wake)
		xtal_os_futex_wake(&p->signal, 1);
}

void xtal_pipeline_forget(struct xtal_queue *q)
{
	struct pipeline *p = pipeline_at(q->pipeline);
	bool busy;

	do {
		struct xtal_queue **at;

		xtal_lock(&p->lock);
		for (at = &p->head; *at; at = &(*at)->run_next) {
			if (*at != q)
				continue;
			*at = q->run_next;
			if (p->tail == &q->run_next)
				p->tail = at;
			q->kick = XTAL_KICK_IDLE;
			break;
		}
		busy = q->kick != XTAL_KICK_IDLE;
		xtal_unlock(&p->lock);
		if (busy)
			xtal_os_sleep_ns(10000);
	} while (busy);
}

void xtal_pipeline_wake(uint32_t number)
{
	struct pipeline *p = pipeline_at(number);
	bool wake;

	xtal_lock(&p->lock);
	if (!p->tail)
		p->tail = &p->head;
	need_worker(p);
	wake = must_wake(p);
	xtal_unlock(&p->lock);
	if (wake)
		xtal_os_futex_wake(&p->signal, 1);
}

void xtal_pipelines_stop(void)
{
	for (unsigned i = 0; i < MAX_PIPELINES; i++) {
		struct pipeline *p = &pipelines[i];

		bool lent;

		xtal_lock(&p->lock);
		lent = p->lent;
		p->lent = false;
		xtal_unlock(&p->lock);
		if (lent)
			xtal_agent_call(end_steps, p);
		xtal_lock(&p->lock);
		p->stop = true;
		p->started = false;
		atomic_fetch_add_explicit(&p->signal, 1, memory_order_relaxed);
		xtal_unlock(&p->lock);
		xtal_os_futex_wake(&p->signal, INT32_MAX);
		while (atomic_load(&p->alive))
			xtal_os_futex_wait(&p->alive, 1, UINT64_MAX);
	}
}

void xtal_pipelines_fork_child(void)
{
	for (unsigned i = 0; i < MAX_PIPELINES; i++)
		pipelines[i] = (struct pipeline){ 0 };
	xtal_bulks_fork_child();
}
