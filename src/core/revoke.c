/* SPDX-License-Identifier: MIT */
/*
 * Revocation, the owner's side; see revoke.h and test/model/revoke.pml. The argument: the
 * slot's word has changed; after the global fence, an executor has either announced itself
 * where we look, or will see the changed word and leave the memory alone.
 */
#include "core/revoke.h"

#include <errno.h>

#include "core/adopt.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/object.h"
#include "core/server.h"
#include "os/proc.h"
#include "xtal.h"

/* How long peers get to leave memory whose pages are to be exchanged. */
#define SETTLE_NS 1000000000u

/* In place of a fence on all processors. */
#define DRAIN_NS 1000000u

static bool full_fence;

void xtal_revoke_setup(void)
{
	/* Both halves are needed: being interrupted, and interrupting. */
	full_fence = xtal_os_membarrier_register() || xtal_os_membarrier_global();
	if (full_fence)
		xtal_log(XTAL_LOG_INFO, "xtal",
			 "no global membarrier here: every operation "
			 "carries a full fence");
}

bool xtal_lane_full_fence(void)
{
	return full_fence;
}

void xtal_revoke_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	/* A filter that came later may refuse what was there when executors left out their fence. What a
	 * processor has stored is out, and what it looked at was looked at, long before this is over. */
	if (!full_fence && xtal_os_membarrier_global())
		xtal_os_sleep_ns(DRAIN_NS);
}

/* What one look at the peers finds. */
struct look {
	unsigned running; /* executors that name the slot in peers that may go on */
	unsigned stuck;   /* in peers that are stopped */
	int pid;          /* one of the stopped */
	int running_pid;  /* one of those that may go on */
};

/* A peer's executor that names the slot: shorten its remote vector, so that a system call not
 * yet begun moves nothing. Partner: the kernel's read of the vector in transfer(), cma.c. */
static void shorten(struct xtal_activity *a)
{
	atomic_store_explicit(&a->iov[0].len, 0, memory_order_seq_cst);
	atomic_store_explicit(&a->iov[1].len, 0, memory_order_seq_cst);
}

/* They are not waited for any more, and shall not believe in what they do. Partner:
 * xtal_activity_was_cut(). */
static void cut_off(struct xtal_session *s, uint64_t want, uint32_t used)
{
	for (uint32_t i = 0; i < used; i++) {
		struct xtal_activity *a = &s->board->activity[i];

		if (atomic_load_explicit(&a->word, memory_order_acquire) == want)
			atomic_store_explicit(&a->cut, 1, memory_order_seq_cst);
	}
}

static void look_at(struct xtal_session *s, uint64_t want, bool patient, struct look *l)
{
	uint32_t used = atomic_load_explicit(&s->board->used, memory_order_seq_cst);
	bool named = false;

	if (used > XTAL_BOARD_WORDS)
		used = XTAL_BOARD_WORDS;
	for (uint32_t i = 0; i < used; i++) {
		struct xtal_activity *a = &s->board->activity[i];

		if (atomic_load_explicit(&a->word, memory_order_acquire) != want)
			continue;
		named = true;
		shorten(a);
	}
	if (!named)
		return;
	if (!patient && s->cred.pid && xtal_os_process_state(s->cred.pid) == XTAL_OS_STOPPED) {
		cut_off(s, want, used);
		l->stuck++;
		l->pid = s->cred.pid;
	} else if (!patient && s->death.fd >= 0 && xtal_os_pidfd_dead(s->death.fd)) {
		/* Gone: it announces for ever and does nothing. */
	} else {
		l->running++;
		l->running_pid = s->cred.pid;
	}
}

static struct look look(struct xtal_context *ctx, uint32_t slot, bool patient)
{
	struct look l = { 0 };

	xtal_lock(&ctx->sessions_lock);
	for (struct xtal_list *n = ctx->sessions.next; n != &ctx->sessions; n = n->next) {
		struct xtal_session *s = xtal_container_of(n, struct xtal_session, node);

		if (s->board && s->same_uid) /* others are granted messages only */
			look_at(s, (uint64_t)slot + 1, patient, &l);
	}
	xtal_unlock(&ctx->sessions_lock);
	return l;
}

/* The pages of several segments are moved at once; their peers must look again. */
struct move {
	struct xtal_moving what;
	void (*each)(struct xtal_segment *seg);
	bool moving;
	uint64_t deadline;
	bool late; /* somebody was still in it then */
};

static struct xtal_lock move_lock; /* one at a time; held for long */
/* What is being moved; written by the holder of the lock. Partner: insert(), under the registry's
 * lock, which the first walk takes too. */
static struct {
	_Atomic bool on;
	const struct xtal_object *_Atomic object;
	_Atomic uint64_t lo, hi;
} moved;

bool xtal_revoke_moves(const struct xtal_segment *seg)
{
	struct xtal_moving m;

	if (!atomic_load(&moved.on))
		return false;
	m = (struct xtal_moving){ .object = atomic_load(&moved.object),
				  .lo = atomic_load(&moved.lo),
				  .hi = atomic_load(&moved.hi) };
	return xtal_moving_concerns(&m, seg);
}

void xtal_revoke_fork_child(void)
{
	atomic_store(&move_lock.held, 0);
	atomic_store(&moved.on, false);
}

static void move_one(struct xtal_context *ctx, void *arg)
{
	const struct move *m = arg;

	xtal_registry_move(&ctx->registry, &m->what, m->moving, m->moving ? NULL : m->each);
}

/* The segment in the slot is moving. */
static bool in_motion(struct xtal_registry *r, uint32_t slot, const struct move *m)
{
	struct xtal_segment *seg;
	bool yes;

	xtal_lock(&r->lock);
	seg = slot < r->slots ? r->by_slot[slot] : NULL;
	yes = seg && xtal_moving_concerns(&m->what, seg) &&
	      (atomic_load_explicit(&r->table->word[slot], memory_order_relaxed) & 3) ==
		      XTAL_SEG_MOVING;
	xtal_unlock(&r->lock);
	return yes;
}

/* No running peer, and none of us, is in a segment that is moving. */
static void settle_one(struct xtal_context *ctx, void *arg)
{
	struct move *m = arg;
	struct xtal_registry *r = &ctx->registry;

	for (uint32_t i = 0; i < XTAL_MAX_SEGMENTS; i++) {
		bool ours = in_motion(r, i, m);

		if (i >= r->slots)
			break;
		while (ours && !m->late &&
		       (look(ctx, i, false).running ||
			xtal_lanes_busy(xtal_lane_id(ctx->number, i), NULL))) {
			xtal_os_sleep_ns(50000);
			m->late = xtal_os_now() > m->deadline;
		}
	}
}

int xtal_revoke_move(const struct xtal_moving *what, int (*move)(void *arg), void *arg,
		     void (*each)(struct xtal_segment *seg))
{
	struct move m = { .what = *what, .each = each, .moving = true };
	int err;

	xtal_lock(&move_lock);
	/* Those who wait for a segment that is moving may hold any lock but those taken here. So
	 * this one is had before the first segment moves: others hold it while they wait for
	 * locks of queues and links. */
	xtal_engine_hold();
	m.deadline = xtal_os_now() + SETTLE_NS;
	atomic_store(&moved.object, what->object);
	atomic_store(&moved.lo, what->lo);
	atomic_store(&moved.hi, what->hi);
	atomic_store(&moved.on, true); /* from here on new segments begin as moving */
	xtal_engine_each_held(move_one, &m);
	xtal_revoke_fence();
	xtal_engine_each_held(settle_one, &m);
	xtal_revoke_fence(); /* between cutting off and moving */
	err = m.late ? -EBUSY : move(arg);
	m.moving = false;
	atomic_store(&moved.on, false);
	xtal_engine_each_held(move_one, &m);
	xtal_engine_release();
	xtal_unlock(&move_lock);
	return err;
}

static int replace_object(void *arg)
{
	return xtal_object_replace(arg);
}

/* Errors: -EBUSY (a peer does not leave), -errno; nothing changed then. */
static int exchange(struct xtal_object *o, const struct xtal_segment *skip)
{
	struct xtal_moving m = { .object = o, .skip = skip };

	return xtal_revoke_move(&m, replace_object, o, NULL);
}

/*
 * Stopped peers name the slot. By cma they can do nothing any more: they were stopped outside
 * the system call, and it will move nothing. By plain stores they can, unless the pages are
 * ours to exchange. True: they are harmless now.
 */
static bool fence_off(struct xtal_segment *seg, int pid, bool *told)
{
	struct xtal_object *o = seg->backing.object;
	bool adopted = xtal_adopted_has(seg);
	int err;

	if ((!o && !adopted) || !(xtal_config()->paths & 1u << XTAL_PATH_MAP))
		return true;
	err = adopted ? xtal_adopted_end(seg) : o->ours ? exchange(o, seg) : -EOPNOTSUPP;
	if (!err) {
		xtal_count(&xtal_totals.fenced, 1);
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "process %d is stopped in the middle of a copy "
			 "to the segment at 0x%llx; its mapping was cut off",
			 pid, (unsigned long long)seg->addr);
		return true;
	}
	if (!*told)
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "unregistering the segment at 0x%llx waits for "
			 "process %d, which is stopped in the middle of a copy to memory that it "
			 "shares: continue or kill it",
			 (unsigned long long)seg->addr, pid);
	*told = true;
	return false;
}

/* A copy takes micro- to milliseconds; whoever is in it for a second is frozen, or starved. */
static void tell_slow(const struct xtal_segment *seg, int pid, uint64_t waited, bool *told)
{
	if (*told || waited < 1000000000)
		return;
	*told = true;
	xtal_log(
		XTAL_LOG_WARNING, "xtal",
		"unregistering the segment at 0x%llx waits for process "
		"%d, which is in the middle of a copy and does not go on (frozen, or its pid is not "
		"visible here)",
		(unsigned long long)seg->addr, pid);
}

void xtal_revoke_wait(struct xtal_segment *seg)
{
	uint64_t identity = xtal_lane_id(seg->ctx->number, seg->slot);
	uint64_t begun = xtal_os_now(), patience = (uint64_t)xtal_config()->revoke_ms * 1000000;
	bool told = false, slow_told = false;
	unsigned rounds = 0;

	xtal_revoke_fence();
	xtal_count(&xtal_totals.revocations, 1);
	while (xtal_lanes_busy(identity, NULL)) {
		if (++rounds % 64)
			xtal_cpu_relax();
		else
			xtal_os_sleep_ns(20000);
	}
	for (rounds = 0;; rounds++) {
		bool patient = xtal_os_now() - begun < patience;
		struct look l = look(seg->ctx, seg->slot, patient);

		if (!l.running && (!l.stuck || fence_off(seg, l.pid, &told)))
			break;
		if (l.running)
			tell_slow(seg, l.running_pid, xtal_os_now() - begun, &slow_told);
		if (rounds < 1000 && patient)
			xtal_cpu_relax();
		else
			xtal_os_sleep_ns(rounds < 2000 ? 50000 : 2000000);
	}
}
