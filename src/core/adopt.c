/* SPDX-License-Identifier: MIT */
/*
 * Adoption: what is adopted, which segments lie in it, and the mover, the thread that changes
 * that. What the program does to adopted memory is heard of on another thread (reader, below) that
 * must not lock, allocate or log: it sets the segments to moving, so that nobody is given what may
 * be no more, and leaves the rest to the mover.
 */
#include "core/adopt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
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

#define MAX_RUNS   512u
#define MAX_WORDS  16u /* segments of one run that can be reached by mapping */
#define MAX_WISHES 64u

enum run_state {
	RUN_FREE,
	RUN_MAKING, /* the mover is at it; it may be gone before it is done */
	RUN_ADOPTED,
	RUN_STUCK, /* could not be undone, but for fork nobody uses it any more */
};

/* The mover's, but for what is said. In static memory, which is never adopted: the reader looks at
 * it at any time. Gate: xtal_os_adopt_lock(). */
struct xtal_adopted {
	enum run_state state; /* changes under the gate */
	bool gone;            /* under the gate: the program unmapped or moved some */
	struct xtal_os_run run;
	uint64_t object;
	enum xtal_adopt_cause cause;
	_Atomic uint64_t *words[MAX_WORDS]; /* of the slots, under the gate */
};

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

static struct xtal_adopted runs[MAX_RUNS];

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

/* The reader: before it reads. What is being done may concern any run. */
static void before_change(void)
{
	for (unsigned i = 0; i < MAX_RUNS; i++) {
		for (unsigned k = 0; runs[i].state != RUN_FREE && k < MAX_WORDS; k++) {
			_Atomic uint64_t *word = runs[i].words[k];
			uint64_t now = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

			/* seq_cst: whoever caused it goes on only after this. Partner: the look
			 * at the word by executors. */
			while ((now & 3) == XTAL_SEG_LIVE &&
			       !atomic_compare_exchange_weak(word, &now,
							     xtal_slot_next(now, XTAL_SEG_MOVING)))
				;
		}
	}
}

static void change(const struct xtal_os_uffd_event *e)
{
	if (e->kind != XTAL_OS_UFFD_UNMAP && e->kind != XTAL_OS_UFFD_REMAP)
		return;
	for (unsigned i = 0; i < MAX_RUNS; i++)
		if (runs[i].state != RUN_FREE && e->from < runs[i].run.hi &&
		    e->from + e->len > runs[i].run.lo)
			runs[i].gone = true;
}

static void after_change(void)
{
	atomic_store(&mover.disturbed, true);
	wake_mover();
}

static struct xtal_adopted *free_run(void)
{
	for (unsigned i = 0; i < MAX_RUNS; i++)
		if (runs[i].state == RUN_FREE)
			return &runs[i];
	return NULL;
}

/* A run that has a page of [lo, hi). */
static struct xtal_adopted *run_at(uint64_t lo, uint64_t hi)
{
	for (unsigned i = 0; i < MAX_RUNS; i++)
		if (runs[i].state != RUN_FREE && lo < runs[i].run.hi && hi > runs[i].run.lo)
			return &runs[i];
	return NULL;
}

static void set_state(struct xtal_adopted *a, enum run_state state)
{
	xtal_os_adopt_lock();
	a->state = state;
	xtal_os_adopt_unlock();
}

static bool is_gone(const struct xtal_adopted *a)
{
	bool gone;

	xtal_os_adopt_lock();
	gone = a->gone;
	xtal_os_adopt_unlock();
	return gone;
}

static const char *cause_text(enum xtal_adopt_cause cause)
{
	switch (cause) {
	case XTAL_ADOPT_HOT:
		return "since peers use it much";
	case XTAL_ADOPT_REQUEST:
		return "by xtal_share()";
	case XTAL_ADOPT_EVERYTHING:
		return "by XTAL_ADOPT=always";
	}
	return "";
}

/* Under the gate. */
static bool take_word(struct xtal_adopted *a, _Atomic uint64_t *word)
{
	for (unsigned k = 0; k < MAX_WORDS; k++)
		if (!a->words[k] || a->words[k] == word) {
			a->words[k] = word;
			return true;
		}
	return false;
}

/* What each segment in the run that is being moved becomes; the mover's. */
static struct xtal_adopted *attaching;
static const char *refusal;

/* Under the registry's lock; the segment is moving. */
static void attach(struct xtal_segment *seg)
{
	struct xtal_adopted *a = attaching;
	bool in = false, gone;

	if (atomic_load(&seg->adopted))
		return; /* in another run, too */
	xtal_os_adopt_lock();
	gone = a->gone;
	if (a->state == RUN_ADOPTED && !gone)
		in = take_word(a, &seg->ctx->registry.table->word[seg->slot]);
	xtal_os_adopt_unlock();
	if (in)
		atomic_store(&seg->adopted, a);
	snprintf(seg->adopt_reason, sizeof(seg->adopt_reason), "%s%.90s",
		 in ? "private memory, adopted " : "private memory, not adopted: ",
		 in           ? cause_text(a->cause)
		 : gone       ? "the program has changed its mapping"
		 : refusal[0] ? refusal
			      : "too many segments lie in it");
}

void xtal_adopted_detach(struct xtal_segment *seg)
{
	struct xtal_adopted *a = atomic_load(&seg->adopted);
	_Atomic uint64_t *word = &seg->ctx->registry.table->word[seg->slot];

	if (!a)
		return;
	xtal_os_adopt_lock();
	for (unsigned k = 0; k < MAX_WORDS; k++)
		if (a->words[k] == word)
			a->words[k] = NULL;
	xtal_os_adopt_unlock();
	atomic_store(&seg->adopted, NULL);
}

/* Under the registry's lock. */
static void detach_moving(struct xtal_segment *seg)
{
	if (atomic_load(&seg->adopted) != attaching)
		return;
	xtal_adopted_detach(seg);
	snprintf(seg->adopt_reason, sizeof(seg->adopt_reason), "private memory, adopted no more");
}

bool xtal_adopted_has(const struct xtal_segment *seg)
{
	return atomic_load(&seg->adopted) != NULL;
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

	if (!err) {
		xtal_os_adopt_lock();
		a->run = run;
		a->state = RUN_ADOPTED;
		xtal_os_adopt_unlock();
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
	struct xtal_adopted *a = run_at(j->lo, j->hi);
	bool fresh = !a;
	int err;

	if (atomic_load(&mover.forking)) {
		snprintf(j->why, j->why_size, "the program forks");
		return -EAGAIN;
	}
	if (a &&
	    (a->state != RUN_ADOPTED || is_gone(a) || a->run.lo > j->lo || a->run.hi < j->hi)) {
		snprintf(j->why, j->why_size, "a part of it is adopted already");
		return -EEXIST;
	}
	if (fresh) {
		err = xtal_os_adopt_eligible(j->lo, j->hi, j->why, j->why_size);
		if (err)
			return err;
		a = free_run();
		if (!a) {
			snprintf(j->why, j->why_size,
				 "%u ranges are adopted, the most there can be", MAX_RUNS);
			return -ENOSPC;
		}
		xtal_os_adopt_lock();
		*a = (struct xtal_adopted){ .state = RUN_MAKING,
					    .run = { .lo = j->lo, .hi = j->hi, .fd = -1 },
					    .object = xtal_object_number(),
					    .cause = j->cause };
		xtal_os_adopt_unlock();
	}
	c.a = attaching = a;
	j->why[0] = 0;
	refusal = j->why;
	err = xtal_revoke_move(&m, fresh ? move_in : no_move, &c, attach);
	if (err == -EBUSY && !j->why[0])
		snprintf(j->why, j->why_size, "a peer does not leave it");
	if (fresh && err) {
		set_state(a, RUN_FREE);
		xtal_count(&xtal_totals.adopt_refused, 1);
	} else if (fresh) {
		xtal_engine_track_fd(a->run.fd);
	}
	xtal_log(XTAL_LOG_INFO, "xtal", "%llu bytes of private memory at 0x%llx: %s%s",
		 (unsigned long long)(j->hi - j->lo), (unsigned long long)j->lo,
		 err ? "not adopted: " : "adopted ", err ? j->why : cause_text(j->cause));
	return err;
}

static void attach_now(const struct job *j)
{
	refusal = "";
	for (unsigned i = 0; i < MAX_RUNS; i++) {
		struct xtal_adopted *a = &runs[i];
		struct xtal_moving m = { .lo = a->run.lo, .hi = a->run.hi };

		if (a->state != RUN_ADOPTED || j->lo >= a->run.hi || j->hi <= a->run.lo)
			continue;
		attaching = a;
		xtal_revoke_move(&m, no_move, NULL, attach);
	}
}

static int move_out(void *arg)
{
	struct xtal_adopted *a = arg;

	return xtal_os_adopt_undo(&a->run);
}

static int undo_run(struct xtal_adopted *a)
{
	struct xtal_moving m = { .lo = a->run.lo, .hi = a->run.hi };
	int err;

	attaching = a;
	err = xtal_revoke_move(&m, move_out, a, detach_moving);
	if (err) {
		set_state(a, RUN_STUCK);
		return err;
	}
	set_state(a, RUN_FREE);
	xtal_engine_close_fd(a->run.fd);
	xtal_count(&xtal_totals.adopt_undone, 1);
	return 0;
}

static int undo_now(struct job *j)
{
	struct xtal_adopted *a;
	int err = 0;

	if (!run_at(j->lo, j->hi)) {
		snprintf(j->why, j->why_size, "nothing of it is adopted");
		return -ENOENT;
	}
	if (xtal_os_pages_pinned()) {
		snprintf(j->why, j->why_size,
			 "the program has pinned pages (VmPin): the device would write to "
			 "the old ones");
		return -EBUSY;
	}
	for (unsigned i = 0; i < MAX_RUNS && !err; i++) {
		a = &runs[i];
		if (a->state != RUN_FREE && j->lo < a->run.hi && j->hi > a->run.lo)
			err = undo_run(a);
	}
	if (err)
		snprintf(j->why, j->why_size, "%s", strerror(-err));
	return err;
}

/* The program has changed some: what is gone is given up, all else goes on. */
static void tidy(void)
{
	if (!atomic_exchange(&mover.disturbed, false))
		return;
	for (unsigned i = 0; i < MAX_RUNS; i++)
		if (runs[i].state == RUN_ADOPTED && is_gone(&runs[i]))
			undo_run(&runs[i]);
	xtal_os_adopt_lock();
	/* Not while the reader is between setting them and telling us. */
	for (unsigned i = 0; i < MAX_RUNS; i++) {
		for (unsigned k = 0; runs[i].state == RUN_ADOPTED && k < MAX_WORDS; k++) {
			_Atomic uint64_t *word = runs[i].words[k];
			uint64_t now = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

			while (!runs[i].gone && (now & 3) == XTAL_SEG_MOVING &&
			       !atomic_compare_exchange_weak(word, &now,
							     xtal_slot_next(now, XTAL_SEG_LIVE)))
				;
		}
	}
	xtal_os_adopt_unlock();
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
	static const struct xtal_os_adopt_hooks hooks = { before_change, change, after_change };
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

static int run_job(struct job *j)
{
	xtal_lock(&mover.lock);
	j->next = NULL;
	*mover.jobs_end = j;
	mover.jobs_end = &j->next;
	xtal_unlock(&mover.lock);
	wake_mover();
	while (!atomic_load(&j->done))
		xtal_os_futex_wait(&j->done, 0, UINT64_MAX);
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

bool xtal_adopted_find(struct xtal_segment *seg, uint64_t addr, uint64_t len,
		       struct xtal_adopted_part *out)
{
	const struct xtal_adopted *a = atomic_load(&seg->adopted);
	uint64_t lo = seg->addr, hi = seg->addr + seg->len, end = addr + len;

	if (!a)
		return false;
	*out = (struct xtal_adopted_part){ .lo = lo, .hi = hi, .fd = -1 };
	if (end <= a->run.lo) {
		out->hi = a->run.lo;
	} else if (addr >= a->run.hi) {
		out->lo = a->run.hi;
	} else if (addr >= a->run.lo && end <= a->run.hi) {
		out->lo = lo > a->run.lo ? lo : a->run.lo;
		out->hi = hi < a->run.hi ? hi : a->run.hi;
		out->adopted = true;
		out->fd = a->run.fd;
		out->object = a->object;
		out->offset = out->lo - a->run.lo;
		out->object_len = a->run.hi - a->run.lo;
	} else {
		return false;
	}
	return true;
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
	memset(runs, 0, sizeof(runs));
	memset(&mover, 0, sizeof(mover));
}
