/* SPDX-License-Identifier: MIT */
/*
 * Posting to queues with a shared completion queue: data in many pieces, inline, or anywhere in
 * memory; messages; queues that are stopped. What lies in one piece of registered memory goes the
 * way of post.c. All else is gathered into memory of our own (a payload) at the post, or
 * delivered from there at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/fault.h"
#include "core/queue_shared.h"
#include "os/vm.h"

/* Data up to so many bytes is gathered on the stack when it can be moved at once. */
#define STACK_BYTES 2048u

/* Messages up to so many bytes are copied at the post, by the program's thread: later it takes a
 * system call. */
#define SEND_COPIED 8192u

struct xtal_payload {
	uint64_t len;
	uint32_t pieces; /* where the bytes go at the end; 0: nowhere */
	bool late;       /* where they are to come from, before it begins */
	uint8_t flags;   /* late: of the operation */
	struct xtal_sge piece[];
};

/* The pieces of an operation's local memory. */
struct local {
	const struct xtal_sge *sge;
	uint32_t count;
	struct xtal_sge one;
};

static void local_of(const struct xtal_op *op, struct local *l)
{
	l->one = (struct xtal_sge){ .addr = op->local, .len = op->len };
	l->sge = &l->one;
	l->count = 1;
	if (!(op->flags & XTAL_OP_SGES))
		return;
	l->sge = (const struct xtal_sge *)(uintptr_t)op->local;
	l->count = op->sges;
	/* Empty pieces at either end are none. */
	while (l->count && !l->sge->len) {
		l->sge++;
		l->count--;
	}
	while (l->count && !l->sge[l->count - 1].len)
		l->count--;
}

static bool reads_local(const struct xtal_op *op)
{
	return op->opcode == XTAL_OP_WRITE || op->opcode == XTAL_OP_WRITE_IMM ||
	       xtal_op_is_send(op->opcode);
}

/*
 * Between one piece and memory of our own. Registered memory is announced meanwhile. at_post: on
 * the program's thread, where its pointers may be used as it would use them itself. Under the
 * queue's lock. A status.
 */
static uint32_t copy_piece(struct xtal_queue *q, const struct xtal_sge *sge, uint8_t *own, bool out,
			   bool at_post, uint8_t flags)
{
	void *piece = (void *)(uintptr_t)sge->addr;
	void *dst = out ? piece : own, *src = out ? own : piece;
	struct xtal_local *l;
	int err = 0;

	if (!sge->len)
		return XTAL_OK;
	if (flags & XTAL_OP_INLINE) {
		memcpy(dst, src, sge->len);
		return XTAL_OK;
	}
	l = xtal_local_find(q, &q->xlats, sge->addr, sge->len);
	if (l) {
		atomic_store_explicit(&q->lane.local, l->announce, memory_order_relaxed);
		xtal_lane_fence(xtal_lane_full_fence());
		/* Partner: unregister bumps, then fences. */
		if (atomic_load_explicit(l->slot_word, memory_order_acquire) != l->word)
			err = -EFAULT;
		else if (at_post)
			memcpy(dst, src, sge->len);
		else
			err = xtal_os_guarded_copy(dst, src, sge->len);
		atomic_store_explicit(&q->lane.local, 0, memory_order_release);
	} else if (flags & XTAL_OP_ANY_LOCAL) {
		err = xtal_os_guarded_copy(dst, src, sge->len);
	} else {
		err = -EFAULT;
	}
	return err ? XTAL_LOCAL_ACCESS : XTAL_OK;
}

static uint32_t gather(struct xtal_queue *q, const struct xtal_sge *sge, uint32_t count,
		       uint8_t *own, bool at_post, uint8_t flags)
{
	uint32_t status = XTAL_OK;

	for (uint32_t i = 0; i < count && !status; own += sge[i++].len)
		status = copy_piece(q, &sge[i], own, false, at_post, flags);
	return status;
}

static uint32_t scatter(struct xtal_queue *q, const struct xtal_sge *sge, uint32_t count,
			uint8_t *own, bool at_post)
{
	uint32_t status = XTAL_OK;

	for (uint32_t i = 0; i < count && !status; own += sge[i++].len)
		status = copy_piece(q, &sge[i], own, true, at_post, XTAL_OP_ANY_LOCAL);
	return status;
}

/* Its data cannot be had: found out in its turn. */
static void lies_nowhere(struct xtal_op *op)
{
	op->local = 0;
	op->flags &= (uint8_t)~XTAL_OP_OWN_PAYLOAD;
}

uint32_t xtal_payload_deliver(struct xtal_queue *q, const struct xtal_payload *payload)
{
	uint8_t *own = (uint8_t *)(uintptr_t)&payload->piece[payload->pieces];

	return scatter(q, payload->piece, payload->pieces, own, false);
}

bool xtal_payload_meets(const struct xtal_payload *payload, uint64_t addr, uint64_t len)
{
	for (uint32_t i = 0; i < payload->pieces; i++) {
		const struct xtal_sge *piece = &payload->piece[i];

		if (xtal_ranges_meet(addr, len, piece->addr, piece->len))
			return true;
	}
	return false;
}

bool xtal_payload_is_there(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_payload *payload = p->payload;
	uint32_t status;

	if (!payload->late)
		return true;
	for (uint32_t i = 0; i < payload->pieces; i++)
		if (xtal_queue_awaits(q, payload->piece[i].addr, payload->piece[i].len))
			return false;
	status = gather(q, payload->piece, payload->pieces, (uint8_t *)(uintptr_t)p->op.local,
			false, payload->flags);
	payload->late = false;
	payload->pieces = 0;
	if (status)
		lies_nowhere(&p->op);
	return true;
}

/* One piece of registered memory that is read, or written, where it lies. */
static bool lies_well(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	if (l->count != 1 || op->flags & XTAL_OP_INLINE)
		return false;
	return !(op->flags & XTAL_OP_ANY_LOCAL) ||
	       xtal_local_find(q, &q->xlats, l->sge->addr, l->sge->len);
}

/* The operation with all of its local memory at one place. */
static struct xtal_op flattened(const struct xtal_op *op, uint64_t local, bool own)
{
	struct xtal_op flat = *op;

	flat.flags &= (uint8_t) ~(XTAL_OP_SGES | XTAL_OP_INLINE | XTAL_OP_ANY_LOCAL);
	if (own)
		flat.flags |= XTAL_OP_OWN_PAYLOAD;
	flat.local = local;
	if (flat.opcode >= XTAL_OP_SEND && (flat.opcode != XTAL_OP_WRITE_IMM || !flat.len))
		flat.remote = flat.notify; /* it goes nowhere else */
	return flat;
}

static void complete_now(struct xtal_queue *q, const struct xtal_op *op, struct xtal_completion *c)
{
	c->flags = op->flags;
	c->opcode = op->opcode;
	c->target = op->target;
	xtal_bump(&q->accepted, 1);
	xtal_queue_complete(q, c);
}

/* Ends at once with status. */
static bool end_now(struct xtal_queue *q, const struct xtal_op *op, uint32_t status)
{
	struct xtal_completion *c = xtal_cq_place(&q->cq);

	*c = (struct xtal_completion){ .user = op->user,
				       .status = (uint16_t)status,
				       .report.queue_id = q->told_id };
	complete_now(q, op, c);
	return true;
}

/* Data that lies somehow, moved over the stack. */
static bool exec_gathered(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	uint8_t bytes[STACK_BYTES];
	struct xtal_op flat = flattened(op, (uintptr_t)bytes, true);
	struct xtal_completion *c = xtal_cq_place(&q->cq);
	uint32_t status;

	if (op->len > sizeof(bytes))
		return false;
	if (reads_local(op)) {
		status = gather(q, l->sge, l->count, bytes, true, op->flags);
		if (status)
			return end_now(q, op, status);
	}
	if (!xtal_exec_now(q, &flat, c))
		return false;
	if (!reads_local(op) && !c->status) {
		status = scatter(q, l->sge, l->count, bytes, true);
		if (status) {
			c->status = (uint16_t)status;
			c->report.len = 0;
		}
	}
	complete_now(q, op, c);
	return true;
}

/* Under the lock. False: it must wait; nothing happened. */
static bool exec_at_once(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	if (q->first)
		return false;
	if (op->opcode == XTAL_OP_NOP)
		return end_now(q, op, XTAL_OK);
	if (op->opcode >= XTAL_OP_SEND)
		return false;
	if (!lies_well(q, op, l))
		return exec_gathered(q, op, l);
	if (op->flags & XTAL_OP_SGES) {
		struct xtal_op flat = flattened(op, l->sge->addr, false);
		struct xtal_completion *c = xtal_cq_place(&q->cq);

		if (!xtal_exec_now(q, &flat, c))
			return false;
		complete_now(q, op, c);
		return true;
	} else {
		struct xtal_completion *c = xtal_cq_place(&q->cq);

		if (!xtal_exec_now(q, op, c))
			return false;
		complete_now(q, op, c);
		return true;
	}
}

/* Under the lock: a short message that is sent at once. False: nothing happened. */
static bool send_at_once(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	uint8_t bytes[XTAL_SEND_SHORT];

	return (op->opcode == XTAL_OP_SEND || op->opcode == XTAL_OP_SEND_IMM) &&
	       op->len <= sizeof(bytes) && !(op->flags & XTAL_OP_FENCE) &&
	       !gather(q, l->sge, l->count, bytes, true, op->flags) &&
	       xtal_send_post_short(q, op, bytes);
}

/* Under the lock: the operation waits in the queue. */
static int accept(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	bool source = reads_local(op);
	/* What it follows may still have to leave its data where it is to be found. */
	bool late =
		source && op->flags & XTAL_OP_FENCE && !(op->flags & XTAL_OP_INLINE) && q->first;
	uint32_t pieces = source && !late ? 0 : l->count, status = XTAL_OK;
	struct xtal_payload *payload;
	struct xtal_op flat;
	uint8_t *own;
	int err;

	if (op->opcode == XTAL_OP_NOP ||
	    (lies_well(q, op, l) && (!xtal_op_is_send(op->opcode) || op->len > SEND_COPIED))) {
		flat = flattened(op, l->count ? l->sge->addr : 0, false);
		return xtal_queue_enqueue(q, &flat, NULL, 0);
	}
	payload = malloc(sizeof(*payload) + pieces * sizeof(payload->piece[0]) + op->len);
	if (!payload)
		return -ENOMEM;
	payload->len = op->len;
	payload->pieces = pieces;
	payload->late = late;
	payload->flags = op->flags;
	if (pieces)
		memcpy(payload->piece, l->sge, pieces * sizeof(payload->piece[0]));
	own = (uint8_t *)&payload->piece[pieces];
	if (source && !late)
		status = gather(q, l->sge, l->count, own, true, op->flags);
	flat = flattened(op, (uintptr_t)own, true);
	if (status)
		lies_nowhere(&flat);
	err = xtal_queue_enqueue(q, &flat, payload, 0);
	if (err)
		free(payload);
	return err;
}

/* Under the lock: no room, or XTAL_FAULT has a word. */
static int accept_watched(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	uint32_t status;
	int err = 0;

	if (!q->fault || !xtal_queue_admits(q))
		return -EAGAIN;
	status = xtal_fault_posted(q, op);
	if (status)
		err = xtal_queue_enqueue(q, op, NULL, status);
	else if (!exec_at_once(q, op, l))
		err = accept(q, op, l);
	xtal_queue_close_post(q);
	return err;
}

/* Under the lock: the queue has no room, or is stopped. */
static int accept_stopped(struct xtal_queue *q, const struct xtal_op *op, const struct local *l)
{
	uint64_t accepted = atomic_load_explicit(&q->accepted, memory_order_relaxed);
	int err;

	switch (q->state) {
	case XTAL_QUEUE_READY:
		return accept_watched(q, op, l);
	case XTAL_QUEUE_RESET:
		return -ENOTCONN;
	case XTAL_QUEUE_ERROR:
		return xtal_queue_keep(q, op);
	case XTAL_QUEUE_SUSPENDED:
		break;
	}
	if (accepted - xtal_cq_taken(&q->cq) >= q->depth)
		return -EAGAIN;
	err = accept(q, op, l);
	xtal_queue_close_post(q);
	return err;
}

int xtal_queue_submit(struct xtal_queue *q, const struct xtal_op *op)
{
	struct local l;
	int err = 0;

	if (xtal_unlikely(q->foreign))
		return -ECHILD;
	local_of(op, &l);
	xtal_bias_lock_own(&q->lock);
	if (!xtal_queue_has_room(q))
		err = accept_stopped(q, op, &l);
	else if (!exec_at_once(q, op, &l) && !send_at_once(q, op, &l))
		err = accept(q, op, &l);
	xtal_bias_unlock_own(&q->lock);
	return err;
}
