/* SPDX-License-Identifier: MIT */
/*
 * Executes what peers' messages ask for, on the agent. The target decides: every request is
 * resolved anew, the segment is announced in the agent's lane meanwhile, and the program's
 * memory is touched through the kernel, since it may have been unmapped.
 */
#include "core/executor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/copy.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/lane.h"
#include "os/proc.h"
#include "os/vm.h"
#include "path/path.h"

void xtal_execute_leave(void)
{
	struct xtal_lane *lane = xtal_agent_lane();

	/* Release: the memory was touched before. Partner: xtal_lanes_busy(). */
	atomic_store_explicit(&lane->local, 0, memory_order_release);
	atomic_store_explicit(&lane->notify, 0, memory_order_release);
}

/*
 * Enters the segment of the data and, if there is one, that of the notify word; a status. While
 * pages are being exchanged a system call into them might get EFAULT, so we wait; in neither
 * segment, since the exchange waits for us to leave.
 */
static uint32_t enter(struct xtal_context *ctx, const struct xtal_access *data,
		      const struct xtal_access *word, struct xtal_found *found)
{
	struct xtal_registry *r = &ctx->registry;
	struct xtal_lane *lane = xtal_agent_lane();
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
		xtal_execute_leave();
		xtal_os_sleep_ns(50000);
	}
	if (status) {
		xtal_execute_leave();
		xtal_count(&xtal_totals.denied, 1);
	}
	return (uint32_t)status;
}

uint32_t xtal_execute_enter_range(struct xtal_context *ctx, const struct xtal_access *access,
				  struct xtal_found *found)
{
	return enter(ctx, access, NULL, found);
}

static struct xtal_access whole(const struct xtal_responder_effect *e, uint32_t rights)
{
	return (struct xtal_access){ .addr = e->addr,
				     .len = e->total,
				     .token = e->token,
				     .token_valid = e->token_valid,
				     .rights = rights };
}

uint32_t xtal_execute_enter(struct xtal_context *ctx, const struct xtal_responder_effect *e)
{
	bool read = e->kind == XTAL_RESPONDER_READ;
	struct xtal_access data = whole(e, read ? XTAL_RIGHT_READ : XTAL_RIGHT_WRITE);
	struct xtal_access word = { .addr = e->notify.addr,
				    .len = 8,
				    .token = e->notify.token,
				    .token_valid = e->notify_token_valid,
				    .rights = XTAL_RIGHT_WRITE };
	struct xtal_found found;

	return enter(ctx, &data, e->notify_valid ? &word : NULL, &found);
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

uint32_t xtal_execute_write(struct xtal_context *ctx, const struct xtal_responder_effect *e,
			    const uint8_t *payload)
{
	uint32_t status = xtal_execute_enter(ctx, e);
	int err = 0;

	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	if (status)
		return status;
	if (e->len)
		err = xtal_execute_put(e->addr + e->offset, payload, e->len);
	if (!err)
		err = xtal_execute_notify(e);
	xtal_execute_leave();
	return err ? XTAL_REMOTE_ACCESS : XTAL_OK;
}

_Static_assert((int)XTAL_ATOMIC_XOR == (int)XTAL_MSG_XOR - (int)XTAL_MSG_CAS, "the same order");

uint32_t xtal_execute_atomic(struct xtal_context *ctx, const struct xtal_responder_effect *e,
			     uint64_t old[2])
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
	status = enter(ctx, &access, NULL, &found);
	if (status)
		return status;
	/* The page is looked at first: a pointer gone bad is an error, not a signal. */
	if (xtal_os_probe_write((void *)(uintptr_t)addr)) {
		status = XTAL_REMOTE_ACCESS;
	} else {
		xtal_atomic_execute((void *)(uintptr_t)addr, &a);
		old[0] = a.old[0];
		old[1] = a.old[1];
	}
	xtal_execute_leave();
	return status;
}

uint32_t xtal_execute_read(struct xtal_context *ctx, const struct xtal_responder_effect *e,
			   uint8_t *out)
{
	uint32_t status = xtal_execute_enter(ctx, e);

	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	if (status)
		return status;
	if (e->len &&
	    xtal_os_guarded_get(out, (const void *)(uintptr_t)(e->addr + e->offset), e->len))
		status = XTAL_REMOTE_ACCESS;
	xtal_execute_leave();
	return status;
}
