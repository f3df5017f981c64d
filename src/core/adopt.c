/* SPDX-License-Identifier: MIT */
/*
 * Adoption: the mover, the thread that changes what is adopted, and those who ask for it. What the
 * program does to adopted memory is heard of on another thread (the reader, adopt_runs.c), which sets
 * the segments to moving, so that nobody is given what may be no more, and leaves the rest to the
 * mover.
 */
#include "core/adopt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "core/adopt_runs.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/object.h"
#include "core/registry.h"
#include "core/revoke.h"
#include "os/adopt.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"
#include "os/vm.h"
#include "xtal.h"

#define MAX_WISHES    64u
#define LOOK_AFTER_NS 20000000u /* a chunk takes a hundredth of that, if the mover runs at all */

enum job_kind {
	JOB_ADOPT,
	JOB_ATTACH, /* segments of a range of which some is adopted */
	JOB_UNDO,
};

/* Something that the mover is to do while somebody waits. */
struct job {
	struct job *next;
	enum job_kind kind;
	uint64_t lo, hi;
	enum xtal_adopt_cause cause;
	int err;
	char *why;
	size_t why_size;
	atomic_uint done;
};

struct wish {
	uint64_t lo, hi;
};

static struct {
	struct xtal_lock life; /* starting */
	bool running;
	atomic_uint forking;
	atomic_uint work;      /* futex word: bumped by whoever brings some */
	atomic_bool disturbed; /* set by the reader: segments were set to moving */
	struct xtal_lock lock; /* below */
	struct job *jobs, **jobs_end;
	struct wish wishes[MAX_WISHES];
	unsigned wish_count;
} mover;

static void wake_mover(void)
{
	atomic_fetch_add(&mover.work, 1);
	xtal_os_futex_wake(&mover.work, 1);
}

static void after_change(void)
{
	atomic_store(&mover.disturbed, true);
	wake_mover();
}

struct call {
	struct xtal_adopted *a;
	char *why;
	size_t size;
};

static int move_in(void *arg)
{
	struct call *c = arg;
	struct xtal_adopted *a = c->a;
	uint64_t begun = xtal_os_now();
	struct xtal_os_run run;
	int err = xtal_os_adopt(a->run.lo, a->run.hi, &run, c->why, c->size);

	if (!err || err == -ENOTRECOVERABLE) {
		xtal_os_adopt_lock();
		a->run = run;
		a->state = err ? XTAL_RUN_STUCK : XTAL_RUN_ADOPTED;
		xtal_os_adopt_unlock();
	}
	if (!err) {
		xtal_count(&xtal_totals.adopted, 1);
		xtal_count(&xtal_totals.adopted_bytes, a->run.hi - a->run.lo);
		xtal_count(&xtal_totals.adopt_ns, xtal_os_now() - begun);
	}
	return err;
}

/* Nothing moves: segments that came later are let in. */
static int no_move(void *arg)
{
	(void)arg;
	return 0;
}

static int adopt_now(struct job *j)
{
	struct call c = { .why = j->why, .size = j->why_size };
	struct xtal_moving m = { .lo = j->lo, .hi = j->hi };
	struct xtal_adopted *a = xtal_runs_at(j->lo, j->hi);
	bool fresh = !a;
	int err;

	if (atomic_load(&mover.forking)) {
		snprintf(j->why, j->why_size, "the program forks");
		return -EAGAIN;
	}
	if (a && (a->state != XTAL_RUN_ADOPTED || xtal_run_is_gone(a) || a->run.lo > j->lo ||
		  a->run.hi < j->hi)) {
		snprintf(j->why, j->why_size, "a part of it is adopted already");
		return -EEXIST;
	}
	if (fresh) {
		err = xtal_os_adopt_eligible(j->lo, j->hi, j->why, j->why_size);
		if (err)
			return err;
		a = xtal_runs_free();
		if (!a) {
			snprintf(j->why, j->why_size,
				 "%u ranges are adopted, the most there can be", XTAL_MAX_RUNS);
			return -ENOSPC;
		}
		xtal_os_adopt_lock();
		*a = (struct xtal_adopted){ .state = XTAL_RUN_MAKING,
					    .run = { .lo = j->lo, .hi = j->hi, .fd = -1 },
					    .object = xtal_object_number(),
					    .cause = j->cause };
		xtal_os_adopt_unlock();
	}
	c.a = a;
	j->why[0] = 0;
	xtal_run_moves(a, j->why);
	err = xtal_revoke_move(&m, fresh ? move_in : no_move, &c, xtal_run_attach);
	if (err == -EBUSY && !j->why[0])
		snprintf(j->why, j->why_size, "a peer does not leave it");
	if (fresh && err)
		xtal_count(&xtal_totals.adopt_refused, 1);
	if (fresh && err && a->state != XTAL_RUN_STUCK)
		xtal_run_set_state(a, XTAL_RUN_FREE);
	else if (fresh)
		xtal_engine_track_fd(a->run.fd);
	xtal_log(XTAL_LOG_INFO, "xtal", "%llu bytes of private memory at 0x%llx: %s%s",
		 (unsigned long long)(j->hi - j->lo), (unsigned long long)j->lo,
		 err ? "not adopted: " : "adopted ",
		 err ? j->why : xtal_adopt_cause_text(j->cause));
	return err;
}

static void attach_now(const struct job *j)
{
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++) {
		struct xtal_adopted *a = &xtal_runs[i];
		struct xtal_moving m = { .lo = a->run.lo, .hi = a->run.hi };

		if (a->state != XTAL_RUN_ADOPTED || j->lo >= a->run.hi || j->hi <= a->run.lo)
			continue;
		xtal_run_moves(a, "");
		xtal_revoke_move(&m, no_move, NULL, xtal_run_attach);
	}
}

static int move_out(void *arg)
{
	struct xtal_adopted *a = arg;

	return xtal_os_adopt_undo(&a->run);
}

/* A device may be writing to its pages: private ones would not get that. */
static int refuse_pinned(void *arg)
{
	(void)arg;
	return -EBUSY;
}

static int undo_run(struct xtal_adopted *a, bool pinned)
{
	struct xtal_moving m = { .lo = a->run.lo, .hi = a->run.hi };
	int err;

	xtal_run_moves(a, "");
	err = xtal_revoke_move(&m, pinned ? refuse_pinned : move_out, a, xtal_run_detach);
	if (err) {
		xtal_run_set_state(a, XTAL_RUN_STUCK);
		return err;
	}
	xtal_run_set_state(a, XTAL_RUN_FREE);
	xtal_engine_close_fd(a->run.fd);
	xtal_count(&xtal_totals.adopt_undone, 1);
	return 0;
}

static int undo_now(struct job *j)
{
	struct xtal_adopted *a;
	int err = 0, one;

	if (!xtal_runs_at(j->lo, j->hi)) {
		snprintf(j->why, j->why_size, "nothing of it is adopted");
		return -ENOENT;
	}
	if (xtal_os_pages_pinned()) {
		snprintf(j->why, j->why_size,
			 "the program has pinned pages (VmPin): the device would write to "
			 "the old ones");
		return -EBUSY;
	}
	/* What can be becomes private, whatever cannot. */
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++) {
		a = &xtal_runs[i];
		if (a->state == XTAL_RUN_FREE || j->lo >= a->run.hi || j->hi <= a->run.lo)
			continue;
		one = undo_run(a, false);
		if (!one)
			continue;
		err = one;
		snprintf(j->why, j->why_size, "%s%s", strerror(-err),
			 err == -ENOMEM ? " (see RLIMIT_AS and vm.max_map_count)" : "");
	}
	return err;
}

/* The program has changed some: what is gone is given up, all else goes on. */
static void tidy(void)
{
	if (!atomic_exchange(&mover.disturbed, false))
		return;
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++)
		if (xtal_runs[i].state == XTAL_RUN_ADOPTED && xtal_run_is_gone(&xtal_runs[i]))
			undo_run(&xtal_runs[i], xtal_os_pages_pinned());
	xtal_runs_let_in();
}

static void end_job(struct job *j)
{
	atomic_uint *done = &j->done;

	/* The waiter's stack may be gone right after the store; see agent.c. */
	atomic_store(done, 1);
	xtal_os_futex_wake(done, 1);
}

static struct job *next_job(struct wish *wish, bool *wished)
{
	struct job *j;

	xtal_lock(&mover.lock);
	j = mover.jobs;
	if (j) {
		mover.jobs = j->next;
		if (!mover.jobs)
			mover.jobs_end = &mover.jobs;
	}
	*wished = !j && mover.wish_count;
	if (*wished)
		*wish = mover.wishes[--mover.wish_count];
	xtal_unlock(&mover.lock);
	return j;
}

static bool work(void)
{
	char why[160] = "";
	struct wish wish;
	bool wished;
	struct job *j;

	tidy();
	j = next_job(&wish, &wished);
	if (wished)
		adopt_now(&(struct job){ .lo = wish.lo,
					 .hi = wish.hi,
					 .cause = XTAL_ADOPT_HOT,
					 .why = why,
					 .why_size = sizeof(why) });
	if (!j)
		return wished;
	switch (j->kind) {
	case JOB_ADOPT:
		j->err = adopt_now(j);
		break;
	case JOB_ATTACH:
		attach_now(j);
		break;
	case JOB_UNDO:
		j->err = undo_now(j);
		break;
	}
	end_job(j);
	return true;
}

static void mover_run(void *arg)
{
	(void)arg;
	for (;;) {
		unsigned seen = atomic_load(&mover.work);

		while (work())
			;
		xtal_os_futex_wait(&mover.work, seen, UINT64_MAX);
	}
}

/* Reader and mover run. Errors: -ENOSYS, -errno. */
static int start(char *why, size_t size)
{
	static const struct xtal_os_adopt_hooks hooks = { xtal_runs_before_change, xtal_runs_change,
							  after_change };
	int fds[XTAL_OS_ADOPT_FDS], err = 0;

	xtal_lock(&mover.life);
	if (!mover.running) {
		err = xtal_os_adopt_start(&hooks, why, size);
		if (!err) {
			mover.jobs_end = &mover.jobs;
			err = xtal_os_thread_start("xtal-mover", mover_run, NULL);
		}
		if (!err) {
			mover.running = true;
			xtal_os_adopt_fds(fds);
			for (unsigned i = 0; i < XTAL_OS_ADOPT_FDS; i++)
				xtal_engine_track_fd(fds[i]);
		}
	}
	xtal_unlock(&mover.life);
	return err;
}

void xtal_adopt_look_after(void)
{
	static _Atomic uint64_t last;
	uint64_t now = xtal_os_now(), then = atomic_load(&last);

	if (now - then >= LOOK_AFTER_NS && atomic_compare_exchange_strong(&last, &then, now))
		xtal_os_adopt_look_after();
}

static int run_job(struct job *j)
{
	xtal_lock(&mover.lock);
	j->next = NULL;
	*mover.jobs_end = j;
	mover.jobs_end = &j->next;
	xtal_unlock(&mover.lock);
	wake_mover();
	while (!atomic_load(&j->done))
		if (xtal_os_futex_wait(&j->done, 0, xtal_os_now() + LOOK_AFTER_NS) == -ETIMEDOUT)
			xtal_adopt_look_after();
	return j->err;
}

/* The whole pages. */
static void whole_pages(uint64_t addr, uint64_t len, uint64_t *lo, uint64_t *hi)
{
	uint64_t page = xtal_os_page_size();

	*lo = (addr + page - 1) / page * page;
	*hi = (addr + len) / page * page;
}

int xtal_adopt(uint64_t addr, uint64_t len, enum xtal_adopt_cause cause, char *why, size_t size)
{
	struct job j = { .kind = JOB_ADOPT, .cause = cause, .why = why, .why_size = size };
	int err;

	whole_pages(addr, len, &j.lo, &j.hi);
	if (xtal_config()->adopt == XTAL_ADOPT_OFF) {
		snprintf(why, size, "XTAL_ADOPT is off");
		return -EPERM;
	}
	if (j.lo >= j.hi) {
		snprintf(why, size, "no whole page lies in it");
		return -EINVAL;
	}
	err = xtal_engine_setup_fork();
	if (!err)
		err = start(why, size);
	return err ? err : run_job(&j);
}

int xtal_adopt_undo(uint64_t addr, uint64_t len, char *why, size_t size)
{
	struct job j = {
		.kind = JOB_UNDO, .lo = addr, .hi = addr + len, .why = why, .why_size = size
	};
	bool running;

	xtal_lock(&mover.life);
	running = mover.running;
	xtal_unlock(&mover.life);
	if (running)
		return run_job(&j);
	snprintf(why, size, "nothing is adopted");
	return -ENOENT;
}

int xtal_adopted_end(const struct xtal_segment *seg)
{
	char why[160];

	return xtal_adopt_undo(seg->addr, seg->len, why, sizeof(why));
}

void xtal_adopt_registered(const struct xtal_segment *seg)
{
	struct job j = { .kind = JOB_ATTACH, .lo = seg->addr, .hi = seg->addr + seg->len };
	char why[160];

	if (seg->backing.object)
		return;
	if (xtal_os_adopt_any(j.lo, j.hi))
		run_job(&j);
	if (xtal_config()->adopt != XTAL_ADOPT_ALWAYS || xtal_adopted_has(seg))
		return;
	if (xtal_adopt(seg->addr, seg->len, XTAL_ADOPT_EVERYTHING, why, sizeof(why)))
		xtal_log(XTAL_LOG_INFO, "xtal", "segment at 0x%llx: not adopted: %s",
			 (unsigned long long)seg->addr, why);
}

void xtal_adopt_wish(struct xtal_segment *seg)
{
	struct wish w;
	char why[160];

	whole_pages(seg->addr, seg->len, &w.lo, &w.hi);
	if (xtal_config()->adopt == XTAL_ADOPT_OFF || seg->backing.object || w.lo >= w.hi ||
	    xtal_adopted_has(seg) || start(why, sizeof(why)))
		return;
	/* System calls into it must be able to wait: nobody asked for the opposite. */
	if (xtal_config()->adopt == XTAL_ADOPT_AUTO && !xtal_os_adopt_is_full())
		return;
	xtal_lock(&mover.lock);
	for (unsigned i = 0; i < mover.wish_count; i++)
		if (mover.wishes[i].lo == w.lo && mover.wishes[i].hi == w.hi)
			w.hi = 0;
	if (w.hi && mover.wish_count < MAX_WISHES)
		mover.wishes[mover.wish_count++] = w;
	xtal_unlock(&mover.lock);
	wake_mover();
}

void xtal_adopt_before_fork(void)
{
	char why[160] = "";
	int err;

	atomic_fetch_add(&mover.forking, 1);
	err = xtal_adopt_undo(0, UINT64_MAX, why, sizeof(why));
	if (err && err != -ENOENT)
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "fork: adopted memory stays shared with the child: %s", why);
}

void xtal_adopt_after_fork(void)
{
	atomic_fetch_sub(&mover.forking, 1);
}

void xtal_adopt_fork_child(void)
{
	xtal_os_adopt_fork_child();
	memset(xtal_runs, 0, sizeof(xtal_runs));
	memset(&mover, 0, sizeof(mover));
}
