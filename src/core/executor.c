/* SPDX-License-Identifier: MIT */
/*
 * Executes what peers' messages ask for, for the agent or a polling thread. The target decides: every request is
 * resolved anew, the segment is announced in the caller's lane meanwhile, and the program's
 * memory is touched through the kernel, since it may have been unmapped.
 */
#include "core/executor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/copy.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/inbound.h"
#include "core/lane.h"
#include "core/op.h"
#include "os/proc.h"
#include "os/vm.h"
#include "path/path.h"

void xtal_execute_leave(struct xtal_lane *lane)
{
	/* Release: the memory was touched before. Partner: xtal_lanes_busy(). */
	atomic_store_explicit(&lane->local, 0, memory_order_release);
	atomic_store_explicit(&lane->notify, 0, memory_order_release);
}

/*
 * Enters the segment of the data and, if there is one, that of the notify word; a status. While
 * pages are being exchanged a system call into them might get EFAULT, so we wait; in neither
 * segment, since the exchange waits for us to leave.
 */
static uint32_t enter(struct xtal_context *ctx, struct xtal_lane *lane,
		      const struct xtal_access *data, const struct xtal_access *word,
		      struct xtal_found *found)
{
	struct xtal_registry *r = &ctx->registry;
	struct xtal_found word_found;
	int status;

	for (;;) {
		status = 0;
		if (data->len)
			status = xtal_registry_enter(r, ctx->number, data, &lane->local, found);
		if (!status && word)
			status = xtal_registry_enter(r, ctx->number, word, &lane->notify,
						     &word_found);
		if (status != -EAGAIN)
			break;
		xtal_execute_leave(lane);
		xtal_os_sleep_ns(50000);
	}
	if (status) {
		xtal_execute_leave(lane);
		xtal_count(&xtal_totals.denied, 1);
	}
	return (uint32_t)status;
}

uint32_t xtal_execute_enter_range(struct xtal_context *ctx, struct xtal_lane *lane,
				  const struct xtal_access *access, struct xtal_found *found)
{
	return enter(ctx, lane, access, NULL, found);
}

static struct xtal_access whole(const struct xtal_responder_effect *e, uint32_t rights)
{
	return (struct xtal_access){ .addr = e->addr,
				     .len = e->total,
				     .token = e->token,
				     .index = e->key,
				     .token_valid = e->token_valid,
				     .rights = rights };
}

uint32_t xtal_execute_enter(struct xtal_context *ctx, struct xtal_lane *lane,
			    const struct xtal_responder_effect *e)
{
	bool read = e->kind == XTAL_RESPONDER_READ;
	struct xtal_access data = whole(e, read ? XTAL_RIGHT_READ : XTAL_RIGHT_WRITE);
	struct xtal_access word = { .addr = e->notify.addr,
				    .len = 8,
				    .token = e->notify.token,
				    .index = e->key,
				    .token_valid = e->notify_token_valid,
				    .rights = XTAL_RIGHT_WRITE };
	struct xtal_found found;

	return enter(ctx, lane, &data, e->notify_valid ? &word : NULL, &found);
}

int xtal_execute_put(uint64_t addr, const uint8_t *src, uint64_t len)
{
	uint8_t *dst = (uint8_t *)(uintptr_t)addr;
	size_t tail = xtal_copy_tail_len(dst, len);
	int err = len > tail ? xtal_os_guarded_put(dst, src, len - tail) : 0;

	atomic_thread_fence(memory_order_seq_cst);
	return err ? err : xtal_os_guarded_put(dst + len - tail, src + len - tail, tail);
}

int xtal_execute_notify(const struct xtal_responder_effect *e)
{
	if (!e->last || !e->notify_valid)
		return 0;
	atomic_thread_fence(memory_order_seq_cst);
	return xtal_execute_put(e->notify.addr, (const uint8_t *)&e->notify.data, 8);
}

uint32_t xtal_execute_write(struct xtal_context *ctx, struct xtal_lane *lane,
			    const struct xtal_responder_effect *e, const uint8_t *payload)
{
	uint32_t status = xtal_execute_enter(ctx, lane, e);
	int err = 0;

	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	if (status)
		return status;
	if (e->len)
		err = xtal_execute_put(e->addr + e->offset, payload, e->len);
	if (!err)
		err = xtal_execute_notify(e);
	xtal_execute_leave(lane);
	return err ? XTAL_REMOTE_ACCESS : XTAL_OK;
}

_Static_assert((int)XTAL_ATOMIC_XOR == (int)XTAL_MSG_XOR - (int)XTAL_MSG_CAS, "the same order");

uint32_t xtal_execute_atomic(struct xtal_context *ctx, struct xtal_lane *lane,
			     const struct xtal_responder_effect *e, uint64_t old[2])
{
	struct xtal_access access = whole(e, XTAL_RIGHT_ATOMIC);
	struct xtal_atomic a = { .size = e->operand_size,
				 .operand = { e->operand[0], e->operand[1] },
				 .compare = { e->compare[0], e->compare[1] } };
	struct xtal_found found;
	uint64_t addr = e->addr;
	uint32_t status;

	xtal_count(&xtal_totals.served, 1);
	a.op = (enum xtal_atomic_op)(e->atomic - XTAL_MSG_CAS);
	if ((a.size != 4 && a.size != 8 && (a.size != 16 || a.op != XTAL_ATOMIC_CAS)) ||
	    addr % a.size)
		return XTAL_REMOTE_UNSUPPORTED;
	status = enter(ctx, lane, &access, NULL, &found);
	if (status)
		return status;
	/* The page is looked at first: a pointer gone bad is an error, not a signal. */
	if (xtal_os_probe_write_now((void *)(uintptr_t)addr)) {
		status = XTAL_REMOTE_ACCESS;
	} else {
		xtal_atomic_execute((void *)(uintptr_t)addr, &a);
		old[0] = a.old[0];
		old[1] = a.old[1];
	}
	xtal_execute_leave(lane);
	return status;
}

uint32_t xtal_execute_read(struct xtal_context *ctx, struct xtal_lane *lane,
			   const struct xtal_responder_effect *e, uint8_t *out)
{
	uint32_t status = xtal_execute_enter(ctx, lane, e);

	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	if (status)
		return status;
	if (e->len &&
	    xtal_os_guarded_get(out, (const void *)(uintptr_t)(e->addr + e->offset), e->len))
		status = XTAL_REMOTE_ACCESS;
	xtal_execute_leave(lane);
	return status;
}

_Static_assert((int)XTAL_OP_SEND_INVALIDATE - (int)XTAL_OP_SEND ==
			       (int)XTAL_MSG_SEND_INVALIDATE - (int)XTAL_MSG_SEND_PLAIN &&
		       (int)XTAL_OP_WRITE_IMM - (int)XTAL_OP_SEND ==
			       (int)XTAL_MSG_SEND_WRITTEN - (int)XTAL_MSG_SEND_PLAIN,
	       "the same order");

uint32_t xtal_execute_send_begin(struct xtal_context *ctx, struct xtal_inbound **in,
				 const struct xtal_responder_effect *e, uint64_t *pause)
{
	bool written = e->operand_size == XTAL_MSG_SEND_WRITTEN;
	struct xtal_envelope m = {
		.to = xtal_endpoint_address(e->key, e->flags & XTAL_MSG_TO_JETTY),
		.token = e->token,
		.token_valid = e->token_valid,
		.solicited = e->flags & XTAL_MSG_SOLICITED,
		.opcode = (uint8_t)(e->operand_size - XTAL_MSG_SEND_PLAIN + XTAL_OP_SEND),
		.from_jetty = e->flags & XTAL_MSG_FROM_JETTY,
		.tid = e->notify.tid,
		.id = e->notify.token,
		.eid = { .hi = e->compare[0], .lo = e->compare[1] },
		.imm = e->operand[0],
		.hint = (uint8_t)e->operand[1],
		.len = written ? e->notify.data : e->total,
	};
	uint32_t status;

	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->total);
	if (!*in) {
		*in = calloc(1, sizeof(**in));
		if (!*in)
			return XTAL_NOT_READY;
	}
	status = xtal_inbound_begin(*in, ctx, &m);
	*pause = (*in)->pause_ns;
	return status;
}

uint32_t xtal_execute_send_piece(struct xtal_lane *lane, struct xtal_inbound *in,
				 const struct xtal_responder_effect *e, const uint8_t *payload)
{
	uint32_t status = xtal_inbound_put(in, &lane->local, e->offset, payload, e->len);

	if (!status && e->last)
		status = xtal_inbound_end(in);
	return status;
}
