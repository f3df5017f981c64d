/* SPDX-License-Identifier: MIT */
/*
 * Posting: with polling (poll.c) what every operation pays for. An 8-byte write or addition
 * that hits the translation used last, by the thread that owns the queue's lock, takes a way of
 * its own: no atomic instruction, no call, no operation in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/fault.h"
#include "core/queue_impl.h"
#include "core/tell.h"
#include "os/life.h"
#include "os/proc.h"
#include "os/vm.h"

/* User memory of any effective type. */
typedef uint64_t __attribute__((may_alias)) word8;
typedef uint64_t __attribute__((may_alias, aligned(1))) word8_anywhere;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
		       offsetof(struct xtal_completion, opcode) ==
			       offsetof(struct xtal_completion, status) + 2 &&
		       offsetof(struct xtal_completion, flags) ==
			       offsetof(struct xtal_completion, status) + 3 &&
		       offsetof(struct xtal_completion, target) ==
			       offsetof(struct xtal_completion, status) + 4,
	       "status, opcode, flags and target are a word");

/* What of an operation its completion shows. */
struct tag {
	uint64_t user, mark; /* xtal_mark() */
};

void xtal_queue_complete(struct xtal_queue *q, struct xtal_completion *c)
{
	uint16_t status = c->status; /* the place is the consumer's afterwards */

	if (status)
		xtal_bump(&q->failed, 1);
	xtal_cq_push(&q->cq);
	if (xtal_unlikely(status) && q->share)
		xtal_queue_stop(q);
}

int xtal_queue_enqueue(struct xtal_queue *q, const struct xtal_op *op, struct xtal_payload *payload,
		       uint32_t lost)
{
	struct xtal_pending *p = q->spare;

	if (p)
		q->spare = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	p->op = *op;
	p->payload = payload;
	p->opcode = op->opcode;
	p->lost = lost;
	/* Of WRITE_IMM the message follows; what is lost is nothing else than that. */
	if ((op->opcode == XTAL_OP_WRITE_IMM && op->len) || lost)
		p->op.opcode = XTAL_OP_WRITE;
	p->len = (uint32_t)op->len;
	p->queue = q;
	atomic_store_explicit(&p->progress, xtal_os_now(), memory_order_relaxed);
	p->seq = atomic_load_explicit(&q->accepted, memory_order_relaxed);
	p->next = q->parked;
	*q->last = p;
	q->last = &p->next;
	if (q->start == q->parked)
		q->start = p;
	xtal_bump(&q->accepted, 1);
	atomic_store_explicit(&q->busy, true, memory_order_relaxed);
	if (q->share)
		xtal_queue_enter(q);
	xtal_queue_progress(q);
	return 0;
}

bool xtal_queue_has_room(struct xtal_queue *q)
{
	uint64_t accepted = atomic_load_explicit(&q->accepted, memory_order_relaxed);

	if (accepted == q->limit && q->state == XTAL_QUEUE_READY && !q->fault)
		q->limit = xtal_cq_taken(&q->cq) + q->depth;
	return accepted != q->limit;
}

bool xtal_queue_admits(struct xtal_queue *q)
{
	uint64_t accepted = atomic_load_explicit(&q->accepted, memory_order_relaxed);

	return accepted - xtal_cq_taken(&q->cq) < q->depth;
}

static bool exec_now(struct xtal_queue *q, const struct xtal_op *op)
{
	struct xtal_completion *c = xtal_cq_place(&q->cq);

	if (q->first || !xtal_exec_now(q, op, c))
		return false;
	xtal_bump(&q->accepted, 1);
	xtal_queue_complete(q, c);
	return true;
}

/* Under the lock: no room, or XTAL_FAULT has a word. */
static __attribute__((cold, noinline)) int post_closed(struct xtal_queue *q,
						       const struct xtal_op *op)
{
	uint32_t status;
	int err = 0;

	if (!q->fault || !xtal_queue_admits(q))
		return -EAGAIN;
	status = xtal_fault_posted(q, op);
	if (status || !exec_now(q, op))
		err = xtal_queue_enqueue(q, op, NULL, status);
	xtal_queue_close_post(q);
	return err;
}

/* Under the lock, which it releases. */
static int post_locked(struct xtal_queue *q, const struct xtal_op *op)
{
	int err = 0;

	if (!xtal_queue_has_room(q))
		err = post_closed(q, op);
	else if (!exec_now(q, op))
		err = xtal_queue_enqueue(q, op, NULL, 0);
	xtal_bias_unlock_own(&q->lock);
	return err;
}

int xtal_queue_post(struct xtal_queue *q, const struct xtal_op *op)
{
	if (xtal_unlikely(q->foreign))
		return -ECHILD;
	xtal_bias_lock_own(&q->lock);
	return post_locked(q, op);
}

/* The cache line is asked for while the checks still run, and is ours to write when it comes. Any
 * address will do: a wrong one does nothing. */
static inline void fetch_for_store(uint64_t addr)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)(uintptr_t)addr));
#elif defined(__aarch64__)
	__asm__ volatile("prfm pstl1keep, [%0]" : : "r"(addr));
#endif
}

/* The translation used last is for this target. */
static inline bool knows(const struct xtal_queue *q, struct xtal_key key)
{
	const struct xtal_xlat *t = q->xlats.last;

	return xtal_likely(t->key.a == key.a) && xtal_likely(t->key.b == key.b);
}

/* With that one: may the owner, who has entered, do an operation with 8 bytes in a short way? first8: at
 * how many addresses of the segment. */
static inline bool hits(const struct xtal_queue *q, uint64_t addr, uint64_t first8, uint64_t local)
{
	const struct xtal_xlat *t = q->xlats.last;
	const struct xtal_local *l = q->xlats.mine;

	return xtal_likely(addr - t->lo < first8) && xtal_likely(addr % 8 == 0) &&
	       xtal_likely(local - l->lo < l->any8) && xtal_likely(!q->first) &&
	       xtal_likely(atomic_load_explicit(&q->accepted, memory_order_relaxed) != q->limit);
}

/* Announce, fence, look: the first steps of exec.c. False: end() withdraws the announcement. */
static inline bool begin(struct xtal_queue *q, const struct xtal_xlat *t)
{
	const struct xtal_local *l = q->xlats.mine;

	atomic_store_explicit(&q->lane.local, l->announce, memory_order_relaxed);
	atomic_store_explicit(&t->activity->word, t->announce, memory_order_relaxed);
	xtal_lane_fence(false);
	/* Acquire: the memory is touched after the look. Partner: unregister bumps, then fences. */
	return xtal_likely(atomic_load_explicit(t->slot_word, memory_order_acquire) == t->word) &&
	       xtal_likely(atomic_load_explicit(l->slot_word, memory_order_acquire) == l->word);
}

/* False: the owner has exchanged its pages meanwhile, while we were stopped. */
static inline bool end(struct xtal_queue *q, const struct xtal_xlat *t)
{
	uint64_t word = atomic_load_explicit(t->slot_word, memory_order_acquire);

	/* Release: the memory was touched before. Partner: the owner's look at the words. */
	atomic_store_explicit(&t->activity->word, 0, memory_order_release);
	atomic_store_explicit(&q->lane.local, 0, memory_order_release);
	return xtal_likely(word == t->word) || !xtal_activity_was_cut(t->activity);
}

/* How far an operation with 8 bytes came. */
enum went {
	WENT_WELL,  /* done, and not inside any more */
	WENT_TOLD,  /* done, but somebody waits for completions: tell_and_leave() */
	WENT_ASIDE, /* inside, and nothing happened: another way may be open */
	WENT_OUT,   /* not inside, nothing happened */
};

/* Inside; leaves. */
static __attribute__((noinline)) int tell_and_leave(struct xtal_queue *q)
{
	xtal_cq_notify(&q->cq);
	xtal_bias_leave(&q->lock);
	return 0;
}

/* One more is over, nothing is under way beside it: its completion. */
static inline __attribute__((always_inline)) enum went succeed(struct xtal_queue *q,
							       const struct xtal_xlat *t,
							       enum xtal_opcode opcode,
							       struct tag tag, bool shared)
{
	uint64_t accepted = atomic_load_explicit(&q->accepted, memory_order_relaxed);
	struct xtal_completion *c = &q->cq.ring[accepted & q->cq.mask];
	char *status = (char *)c + offsetof(struct xtal_completion, status);

	c->user = tag.user;
	if (shared) {
		uint64_t word = tag.mark | XTAL_OK | (uint64_t)opcode << 16;

		memcpy(status, &word, sizeof(word));
	} else {
		c->status = XTAL_OK;
		c->opcode = (uint8_t)opcode;
		c->flags = 0;
	}
	c->report = t->of8;
	xtal_bump(&t->moved->words, 1);
	atomic_store_explicit(&q->accepted, accepted + 1, memory_order_relaxed);
	/* Partner: the consumer's acquire load. */
	atomic_store_explicit(&q->cq.tail, accepted + 1, memory_order_release);
	if (xtal_unlikely(q->cq.notify))
		return WENT_TOLD;
	xtal_bias_leave(&q->lock);
	return WENT_WELL;
}

static inline enum went not_now(struct xtal_queue *q)
{
	xtal_bias_leave(&q->lock);
	return WENT_OUT;
}

/* What is left to do after it went; 0, or -ENOENT: nothing happened. */
static inline __attribute__((always_inline)) int settle(struct xtal_queue *q, enum went went)
{
	if (xtal_likely(went == WENT_WELL))
		return 0;
	return went == WENT_TOLD ? tell_and_leave(q) : -ENOENT;
}

/*
 * The same by process_vm_writev. After a system call little of our code is left in the first
 * caches, so this is short, and calls nothing. Inside; leaves.
 */
static inline __attribute__((always_inline)) enum went put8_by_cma(struct xtal_queue *q,
								   uint64_t addr, uint64_t local,
								   struct tag tag, bool shared)
{
	struct xtal_os_iov mine = { .base = (void *)(uintptr_t)local, .len = 8 };
	const struct xtal_xlat *t = q->xlats.last;
	struct xtal_shared_iov *theirs;
	bool moved = false;

	if (!hits(q, addr, t->put8_by_cma, local))
		return not_now(q);
	theirs = &t->activity->iov[1]; /* the last word's, which is all there is */
	atomic_store_explicit(&theirs->base, addr, memory_order_relaxed);
	atomic_store_explicit(&theirs->len, 8, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* the vector stands before the word */
	if (begin(q, t) && !xtal_os_life_ended(t->reach.life))
		moved = xtal_os_peer_write1(t->reach.pid, &mine, theirs) == 8;
	if (!end(q, t) || !moved) /* post tries again, and tells what is wrong */
		return not_now(q);
	return succeed(q, t, XTAL_OP_WRITE, tag, shared);
}

/* By plain instructions. */
static inline __attribute__((always_inline)) enum went put8(struct xtal_queue *q,
							    struct xtal_key key, uint64_t addr,
							    uint64_t local, struct tag tag,
							    bool shared)
{
	const struct xtal_xlat *t;

	if (xtal_unlikely(!xtal_bias_enter(&q->lock))) /* in a forked child nobody enters */
		return WENT_OUT;
	t = q->xlats.last; /* not before: whoever has the lock may free it */
	fetch_for_store(addr + t->shift);
	if (xtal_unlikely(!knows(q, key)))
		return not_now(q);
	if (xtal_unlikely(!hits(q, addr, t->put8, local)))
		return WENT_ASIDE;
	if (!begin(q, t)) {
		end(q, t);
		return not_now(q);
	}
	/* Release: partner is the acquire load of whoever waits for these bytes. */
	__atomic_store_n((word8 *)(uintptr_t)(addr + t->shift),
			 *(const word8_anywhere *)(uintptr_t)local, __ATOMIC_RELEASE);
	if (!end(q, t))
		return not_now(q);
	return succeed(q, t, XTAL_OP_WRITE, tag, shared);
}

/* Inside; leaves. */
static __attribute__((noinline)) int put8_otherwise(struct xtal_queue *q, uint64_t user,
						    uint64_t *addr, uint64_t *local)
{
	enum went went = put8_by_cma(q, *addr, *local, (struct tag){ .user = user }, false);

	if (settle(q, went) == 0)
		return 0;
	return q->long_way(q->owner, XTAL_OP_WRITE, addr, local);
}

int xtal_queue_put8(struct xtal_queue *q, uint64_t user, uint64_t *addr, uint64_t *local,
		    struct xtal_key key)
{
	enum went went = put8(q, key, *addr, *local, (struct tag){ .user = user }, false);

	if (xtal_likely(went == WENT_WELL))
		return 0;
	if (went == WENT_TOLD)
		return tell_and_leave(q);
	if (went == WENT_ASIDE)
		return put8_otherwise(q, user, addr, local);
	return q->long_way(q->owner, XTAL_OP_WRITE, addr, local);
}

/* Inside; leaves. */
static __attribute__((noinline)) int put8_marked_otherwise(struct xtal_queue *q, uint64_t addr,
							   uint64_t local, uint64_t user,
							   uint64_t mark)
{
	return settle(q, put8_by_cma(q, addr, local, (struct tag){ user, mark }, true));
}

int xtal_queue_put8_marked(struct xtal_queue *q, uint64_t addr, uint64_t local, uint64_t user,
			   uint64_t mark, uint64_t name)
{
	enum went went = put8(q, (struct xtal_key){ name, 0 }, addr, local,
			      (struct tag){ user, mark }, true);

	if (xtal_unlikely(went == WENT_ASIDE))
		return put8_marked_otherwise(q, addr, local, user, mark);
	return settle(q, went);
}

static inline __attribute__((always_inline)) enum went get8(struct xtal_queue *q,
							    struct xtal_key key, uint64_t addr,
							    uint64_t local, struct tag tag,
							    bool shared)
{
	const struct xtal_xlat *t;
	uint64_t value;

	if (xtal_unlikely(!xtal_bias_enter(&q->lock))) /* in a forked child nobody enters */
		return WENT_OUT;
	t = q->xlats.last;
	if (xtal_unlikely(!knows(q, key)))
		return not_now(q);
	if (xtal_unlikely(!hits(q, addr, t->get8, local)))
		return not_now(q);
	if (!begin(q, t)) {
		end(q, t);
		return not_now(q);
	}
	/* Acquire: what is read behind it was written before it; and the look in end() follows. */
	value = __atomic_load_n((const word8 *)(uintptr_t)(addr + t->shift), __ATOMIC_ACQUIRE);
	*(word8_anywhere *)(uintptr_t)local = value;
	if (!end(q, t)) /* it may be of pages that are nobody's any more: read again */
		return not_now(q);
	return succeed(q, t, XTAL_OP_READ, tag, shared);
}

int xtal_queue_get8(struct xtal_queue *q, uint64_t user, uint64_t *addr, uint64_t *local,
		    struct xtal_key key)
{
	enum went went = get8(q, key, *addr, *local, (struct tag){ .user = user }, false);

	if (xtal_likely(went == WENT_WELL))
		return 0;
	if (went == WENT_TOLD)
		return tell_and_leave(q);
	return q->long_way(q->owner, XTAL_OP_READ, addr, local);
}

int xtal_queue_get8_marked(struct xtal_queue *q, uint64_t addr, uint64_t local, uint64_t user,
			   uint64_t mark, uint64_t name)
{
	return settle(q, get8(q, (struct xtal_key){ name, 0 }, addr, local,
			      (struct tag){ user, mark }, true));
}

/* The addition may have gone to pages that are nobody's any more, and must not be repeated. */
static __attribute__((noinline)) enum went add8_failed(struct xtal_queue *q, uint64_t addr,
						       struct tag tag)
{
	const struct xtal_xlat *t = q->xlats.last;
	struct xtal_completion *c = xtal_cq_place(&q->cq);

	*c = (struct xtal_completion){ .user = tag.user,
				       .target = (uint32_t)(tag.mark >> 32),
				       .opcode = XTAL_OP_FAA,
				       .status = XTAL_REMOTE_ACCESS,
				       .report.queue_id = q->told_id };
	xtal_tell_op(q,
		     &(struct xtal_op){ .opcode = XTAL_OP_FAA,
					.len = 8,
					.remote = { .addr = addr, .tid = t->tid } },
		     XTAL_REMOTE_ACCESS);
	xtal_bump(&q->accepted, 1);
	xtal_xlat_stale(&q->xlats, q->xlats.last);
	xtal_queue_complete(q, c);
	xtal_bias_leave(&q->lock);
	return WENT_WELL;
}

static inline __attribute__((always_inline)) enum went add8(struct xtal_queue *q,
							    struct xtal_key key, uint64_t addr,
							    uint64_t local, uint64_t value,
							    struct tag tag, bool shared)
{
	const struct xtal_xlat *t;

	if (xtal_unlikely(!xtal_bias_enter(&q->lock))) /* in a forked child nobody enters */
		return WENT_OUT;
	t = q->xlats.last;
	if (!knows(q, key) || !hits(q, addr, t->add8, local))
		return not_now(q);
	if (!begin(q, t)) {
		end(q, t);
		return not_now(q);
	}
	*(word8_anywhere *)(uintptr_t)local =
		__atomic_fetch_add((word8 *)(uintptr_t)(addr + t->shift), value, __ATOMIC_SEQ_CST);
	if (!end(q, t))
		return add8_failed(q, addr, tag);
	return succeed(q, t, XTAL_OP_FAA, tag, shared);
}

int xtal_queue_add8(struct xtal_queue *q, struct xtal_key key, uint64_t addr, uint64_t local,
		    uint64_t user, uint64_t value)
{
	return settle(q, add8(q, key, addr, local, value, (struct tag){ .user = user }, false));
}

int xtal_queue_add8_marked(struct xtal_queue *q, uint64_t addr, uint64_t local, uint64_t user,
			   uint64_t mark, uint64_t name, uint64_t value)
{
	return settle(q, add8(q, (struct xtal_key){ name, 0 }, addr, local, value,
			      (struct tag){ user, mark }, true));
}
