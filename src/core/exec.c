/* SPDX-License-Identifier: MIT */
/*
 * Executing one operation on the caller's thread, over the direct paths (writes and additions of
 * 8 bytes have code of their own in post.c). The order of steps is the initiator's half of
 * revocation: announce, fence, look at the slots' words, touch memory, withdraw the announcement
 * (model: test/model/revoke.pml).
 */
#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/grant.h"
#include "core/queue_impl.h"
#include "core/tell.h"
#include "os/vm.h"
#include "path/path.h"

static inline void announce(struct xtal_queue *q, const struct xtal_op *op,
			    const struct xtal_xlat *t, const struct xtal_local *l)
{
	if (t->reach.kind == XTAL_REACH_CMA)
		t->ops->prepare(t->activity->iov, op->remote.addr, op->len, false);
	atomic_store_explicit(&q->lane.local, l->announce, memory_order_relaxed);
	/* Release: the vector stands before the word. */
	atomic_store_explicit(&t->activity->word, t->announce, memory_order_release);
	xtal_lane_fence(t->full_fence);
}

/* Acquire: the memory is touched after the look. Partner: unregister bumps, then fences. */
static inline bool still(const _Atomic uint64_t *slot_word, uint64_t word)
{
	return atomic_load_explicit(slot_word, memory_order_acquire) == word;
}

/* Release: the memory was touched before. Partner: the owner's look at the words. */
static inline void withdraw(struct xtal_queue *q, const struct xtal_xlat *t)
{
	atomic_store_explicit(&t->activity->word, 0, memory_order_release);
	atomic_store_explicit(&q->lane.local, 0, memory_order_release);
}

/* Which side a failed copy failed on. */
static uint32_t status_of(int err, const struct xtal_op *op)
{
	bool into_local = op->opcode != XTAL_OP_WRITE;

	if (err == -EFAULT &&
	    xtal_os_probe_access((void *)(uintptr_t)op->local, op->len, into_local))
		return XTAL_LOCAL_ACCESS;
	return XTAL_REMOTE_ACCESS;
}

_Static_assert((int)XTAL_ATOMIC_XOR == (int)XTAL_OP_XOR - (int)XTAL_OP_CAS, "the same order");

static int do_atomic(const struct xtal_op *op, const struct xtal_xlat *t, uint32_t *status)
{
	struct xtal_atomic a = { .op = (enum xtal_atomic_op)(op->opcode - XTAL_OP_CAS),
				 .size = (unsigned)op->len,
				 .operand = { op->operand[0], op->operand[1] },
				 .compare = { op->compare[0], op->compare[1] } };
	int err;

	if (op->remote.addr & (op->len - 1)) { /* 4, 8 or 16 */
		*status = XTAL_REMOTE_UNSUPPORTED;
		return 0;
	}
	err = t->ops->atomic(&t->reach, op->remote.addr, &a);
	if (!err)
		xtal_copy((void *)(uintptr_t)op->local, a.old, op->len);
	return err;
}

static inline bool done_with(const struct xtal_queue *q, struct xtal_completion *c,
			     const struct xtal_op *op, uint32_t status, const struct xtal_xlat *t)
{
	c->user = op->user;
	c->opcode = op->opcode;
	c->flags = op->flags;
	c->status = (uint16_t)status;
	c->report.len = status ? 0 : (uint32_t)op->len;
	c->report.queue_id = q->told_id;
	c->report.peer = t ? t->of8.peer : (struct xtal_peer){ 0 };
	return true;
}

static __attribute__((cold, noinline)) bool failed(struct xtal_queue *q, struct xtal_completion *c,
						   const struct xtal_op *op, uint32_t status,
						   const struct xtal_xlat *t)
{
	xtal_tell_op(q, op, status);
	return done_with(q, c, op, status, t);
}

/* A notify word in the same segment is stored under the same announcement; one elsewhere
 * makes the operation wait, and follows as a second step (pending.c). */
static bool notify_simple(const struct xtal_op *op, const struct xtal_xlat *t)
{
	return t->reach.kind != XTAL_REACH_CMA && op->notify.addr >= t->lo &&
	       op->notify.addr < t->hi && 8 <= t->hi - op->notify.addr &&
	       op->notify.tid == t->tid && xtal_eid_equal(op->notify.eid, t->eid) &&
	       op->notify.token == t->token && op->notify.index == t->index &&
	       op->notify.token_valid == t->token_valid;
}

/* Moves what op asks for: 0 or -errno; *status is set when the operation is at fault. */
static inline int touch(const struct xtal_op *op, const struct xtal_xlat *t, uint32_t *status)
{
	void *local = (void *)(uintptr_t)op->local;
	int err = 0;

	switch ((enum xtal_opcode)op->opcode) {
	case XTAL_OP_WRITE:
		err = t->ops->put(&t->reach, t->activity->iov, op->remote.addr, local, op->len);
		if (op->flags & XTAL_OP_NOTIFY && !err) {
			atomic_thread_fence(memory_order_release);
			err = t->ops->put(&t->reach, t->activity->iov, op->notify.addr,
					  &op->notify_data, 8);
		}
		break;
	case XTAL_OP_READ:
		err = t->ops->get(&t->reach, t->activity->iov, op->remote.addr, local, op->len);
		break;
	default:
		err = do_atomic(op, t, status);
		break;
	}
	return err;
}

static bool run(struct xtal_queue *q, const struct xtal_op *op, struct xtal_completion *c,
		struct xtal_xlat *t, struct xtal_local *l)
{
	uint32_t status = XTAL_OK;
	bool fresh;
	int err = 0;

	announce(q, op, t, l);
	if (xtal_unlikely(!still(t->slot_word, t->word) || !still(l->slot_word, l->word))) {
		withdraw(q, t);
		if (!still(t->slot_word, t->word))
			xtal_xlat_stale(&q->xlats, t);
		return false;
	}
	err = touch(op, t, &status);
	/* Changed under us: the owner waited for us, or has exchanged its pages while we were
	 * stopped. */
	fresh = still(t->slot_word, t->word);
	withdraw(q, t);
	if (xtal_unlikely(!fresh) && !err && !xtal_activity_was_cut(t->activity))
		fresh = true;
	if (xtal_unlikely(err == -EOPNOTSUPP))
		return false;
	if (xtal_unlikely(!fresh)) {
		bool repeat = op->opcode == XTAL_OP_WRITE || op->opcode == XTAL_OP_READ;

		xtal_xlat_stale(&q->xlats, t);
		return repeat ? false : failed(q, c, op, XTAL_REMOTE_ACCESS, NULL);
	}
	if (xtal_unlikely(err == -ESTALE))
		return false;
	if (xtal_unlikely(err) && xtal_grant_cma_ended(t->grant, err)) {
		xtal_xlat_stale(&q->xlats, t);
		return false;
	}
	if (xtal_unlikely(err))
		status = status_of(err, op);
	else if (!status)
		xtal_queue_moved(q, t->path, op->len);
	if (t->reach.kind == XTAL_REACH_CMA && op->len <= XTAL_GRANT_SMALL)
		xtal_grant_used(t->grant);
	if (xtal_unlikely(status))
		return failed(q, c, op, status, t);
	return done_with(q, c, op, XTAL_OK, t);
}

bool xtal_exec_now(struct xtal_queue *q, const struct xtal_op *op, struct xtal_completion *c)
{
	struct xtal_xlat *t = xtal_xlat_find(&q->xlats, &op->remote, op->len);
	struct xtal_local *l = xtal_local_find(q, &q->xlats, op->local, op->len);

	if (xtal_unlikely(!l)) {
		if (!(op->flags & XTAL_OP_OWN_PAYLOAD))
			return failed(q, c, op, XTAL_LOCAL_ACCESS, NULL);
		l = &xtal_local_own;
	}
	if (t && op->len == 8)
		t->key = op->key; /* the next one may use the short way */
	if (!t || !(t->inline_ops >> op->opcode & 1))
		return false;
	/* Atomics are one instruction: there is no other way to execute them. */
	if (op->len > xtal_config_inline() && !xtal_op_is_atomic(op->opcode))
		return false;
	if (op->flags & XTAL_OP_NOTIFY && !notify_simple(op, t))
		return false;
	return run(q, op, c, t, l);
}
