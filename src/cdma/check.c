/* SPDX-License-Identifier: MIT */
/* The sentences of XTAL_CHECK for CDMA. Each names the call, the object and what to do. */
#include "check.h"

#include <stdio.h>

#include "core/op.h"
#include "core/queue.h"

#define PATIENCE_MS 1000

#define ADVICE "a call that returns has posted an operation, its completion says that it is done"

bool cdma_check_takes(const struct cdma_queue *q, const struct dma_seg *rmt,
		      const struct dma_seg *local)
{
	return q && rmt && local && q->magic == CDMA_QUEUE_CHECKED && rmt->sva && rmt->len &&
	       local->sva && local->len - 1 < XTAL_MAX_MESSAGE;
}

struct range {
	const struct cdma_context *ctx; /* NULL: any */
	uint64_t addr, len;
};

static bool covers(struct cdma_context *c, const void *arg)
{
	const struct range *r = arg;

	if (r->ctx && r->ctx != c)
		return false;
	for (uint32_t i = 0; i < c->slot_count; i++) {
		const struct cdma_segment *s = c->slots[i];
		uint64_t offset = s ? r->addr - s->addr : 0;

		if (s && offset < s->len && r->len <= s->len - offset)
			return true;
	}
	return false;
}

static void look(const char *function, const struct cdma_queue *q, const struct xtal_op *op)
{
	const struct range local = { .ctx = q->ctx, .addr = op->local, .len = op->len };

	if (!op->remote.tid)
		xtal_diagnose(CDMA_TAG,
			      "%s: the remote segment at 0x%llx on queue %u has tid 0 and names no "
			      "context: give the owner's address, length, tid and token to "
			      "dma_import_seg and use what that returns",
			      function, (unsigned long long)op->remote.addr, q->pub.queue_id);
	if (!cdma_context_any(covers, &local))
		xtal_diagnose(
			CDMA_TAG,
			"%s: the local range of %llu bytes at 0x%llx on queue %u is in no "
			"segment of its context: register it with dma_register_seg, or correct "
			"sva and len",
			function, (unsigned long long)op->len, (unsigned long long)op->local,
			q->pub.queue_id);
}

/* The remote address when it is one of this process, too, and the owner another; else 0. Between
 * processes that were forked it may well be right: that shows when the owner refuses it. */
static uint64_t pointer_of_ours(const struct cdma_queue *q, const struct xtal_op *op)
{
	const struct range remote = { .addr = op->remote.addr, .len = 1 };
	bool other = (op->remote.tid & 0xffff) != (q->own_tid & 0xffff);

	return other && cdma_context_any(covers, &remote) ? op->remote.addr : 0;
}

/* The program's own loads and stores would end it. */
static bool mapped(const char *function, const struct cdma_queue *q, const struct xtal_op *op)
{
	bool source = op->opcode == XTAL_OP_WRITE;

	if (xtal_check_reach(op->local, op->len, !source))
		return true;
	xtal_diagnose(CDMA_TAG,
		      "%s: the local range of %llu bytes at 0x%llx on queue %u is not all mapped "
		      "and %s: keep local memory mapped until the completion",
		      function, (unsigned long long)op->len, (unsigned long long)op->local,
		      q->pub.queue_id, source ? "readable" : "writable");
	return false;
}

/* Hardware looks local memory up by the segment's tid. */
static int post_foreign(const char *function, struct cdma_queue *q, const struct xtal_op *op,
			uint32_t local_tid)
{
	enum xtal_log_level level = XTAL_LOG_DEBUG;
	struct xtal_op nowhere = *op;
	int error;

	nowhere.local = 0; /* in no segment: ends with status 4 */
	error = xtal_queue_post(q->core, &nowhere);
	if (error)
		return error;
	if (!atomic_exchange_explicit(&q->was_foreign, true, memory_order_relaxed))
		level = XTAL_LOG_WARNING;
	xtal_refuse_at(
		level, CDMA_TAG,
		"%s: queue %u: the local segment at 0x%llx has tid 0x%x, the queue's context "
		"0x%x: status 4 (XTAL_STRICT=1)",
		function, q->pub.queue_id, (unsigned long long)op->local, local_tid & CDMA_TID_MASK,
		q->own_tid);
	return 0;
}

int cdma_check_post(const char *function, struct cdma_queue *q, const struct xtal_op *op,
		    uint32_t local_tid)
{
	const struct xtal_sge sge = { .addr = op->local, .len = op->len };
	struct xtal_checked checked = { .user = q->pub.cfg.user_ctx,
					.signalled = true,
					.source = op->opcode == XTAL_OP_WRITE };
	uint64_t number;
	int error;

	if (q->strict && (local_tid & CDMA_TID_MASK) != q->own_tid)
		return post_foreign(function, q, op, local_tid);
	if (!q->check)
		return xtal_queue_post(q->core, op);
	look(function, q, op);
	if (!mapped(function, q, op)) {
		struct xtal_op nowhere = *op;

		nowhere.local = 0; /* in no segment: ends with status 4 */
		return xtal_queue_post(q->core, &nowhere);
	}
	checked.suspect = pointer_of_ours(q, op);
	number = xtal_check_posted(q->check, &checked, &sge, 1);
	error = xtal_queue_post(q->core, op);
	if (error)
		xtal_check_refused(q->check, number);
	return error;
}

int cdma_check_wait(struct cdma_queue *q, uint32_t count, int timeout_ms, struct xtal_ready *out)
{
	int first = timeout_ms < 0 || timeout_ms > PATIENCE_MS ? PATIENCE_MS : timeout_ms;
	struct xtal_check_open open;
	int got;

	if (!q->check)
		return xtal_queue_wait(q->core, count, timeout_ms, out);
	got = xtal_queue_wait(q->core, count, first, out);
	if (got || !timeout_ms)
		return got;
	xtal_check_look(q->check, &open);
	if (!open.signalled)
		xtal_diagnose(
			CDMA_TAG,
			"dma_wait_queue: %d ms on queue %u in vain, where nothing is under way: "
			"each operation has one completion, and all were taken; post before",
			first, q->pub.queue_id);
	if (first == timeout_ms)
		return 0;
	return xtal_queue_wait(q->core, count, timeout_ms < 0 ? -1 : timeout_ms - first, out);
}

void cdma_check_taken(const char *function, struct cdma_queue *q, const struct dma_cr *cr,
		      uint32_t count)
{
	for (uint32_t i = 0; q->check && i < count; i++) {
		struct xtal_sge where;
		uint64_t suspect = 0;
		bool changed = xtal_check_ended(q->check, cr[i].user_ctx, true, &where, &suspect);

		if (cr[i].status == DMA_CR_REM_ACCESS_ABORT_ERR && suspect)
			xtal_diagnose(
				CDMA_TAG,
				"%s: the owner refused an operation on queue %u: its remote "
				"address 0x%llx is a pointer of this process, which registered "
				"that memory; a remote address is the sva of the owner's segment "
				"plus an offset",
				function, q->pub.queue_id, (unsigned long long)suspect);
		else if (cr[i].status == DMA_CR_REM_ACCESS_ABORT_ERR)
			xtal_diagnose(
				CDMA_TAG,
				"%s: the owner refused an operation on queue %u: its range leaves "
				"the owner's segment, its token or tid is not the owner's, or "
				"the segment was withdrawn; compare with what dma_register_seg "
				"returned there",
				function, q->pub.queue_id);
		else if (changed && cr[i].status == DMA_CR_SUCCESS)
			xtal_diagnose(
				CDMA_TAG,
				"%s: %llu bytes at 0x%llx, data of an operation on queue %u, "
				"changed between its post and its completion: leave them alone "
				"until then; " ADVICE,
				function, (unsigned long long)where.len,
				(unsigned long long)where.addr, q->pub.queue_id);
	}
}

void cdma_check_reserved(const char *function, const char *type, uint32_t bitmap,
			 const uint32_t *rsvd)
{
	if (!xtal_checks() || !(bitmap | rsvd[0] | rsvd[1] | rsvd[2] | rsvd[3]))
		return;
	xtal_diagnose(
		CDMA_TAG,
		"%s: reserved fields of %s are set: the program sets no whole struct, or was "
		"compiled with headers of another version; clear the struct, and compile with "
		"the cdma_u_lib.h of this library",
		function, type);
}

void cdma_check_opened(struct cdma_queue *q)
{
	char name[64];

	snprintf(name, sizeof(name), "queue %u", q->pub.queue_id);
	q->check = xtal_checks() ? xtal_check_new(name) : NULL;
}

void cdma_check_closes(struct cdma_queue *q)
{
	struct xtal_check_open open;

	xtal_check_look(q->check, &open);
	if (open.signalled)
		xtal_diagnose(
			CDMA_TAG,
			"dma_free_queue: queue %u goes while nobody polled the completions of %u "
			"operations: poll them before; " ADVICE,
			q->pub.queue_id, open.signalled);
	xtal_check_free(q->check);
	q->check = NULL;
}

void cdma_check_unregister(const struct cdma_segment *s)
{
	char name[64];
	uint64_t user;

	if (xtal_checks() && xtal_check_uses(s->addr, s->len, &user, name))
		xtal_diagnose(
			CDMA_TAG,
			"dma_unregister_seg: an operation on %s uses memory of the segment at "
			"0x%llx, and its completion was not polled: poll it before; " ADVICE,
			name, (unsigned long long)s->addr);
}
