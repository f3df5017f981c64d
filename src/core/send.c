/* SPDX-License-Identifier: MIT */
/*
 * Two-sided operations at their sender. They need no segment of the target's, only its link. A
 * message that cannot be received comes back as NOT_READY, with all of its queue that followed it
 * on the link; then they are begun again, after a pause, as often as the queue allows. What is not
 * a message waits behind one until it has been answered, and a message behind what is none.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/carrier.h"
#include "core/context_impl.h"
#include "core/inbound.h"
#include "core/link.h"
#include "core/messages.h"
#include "core/queue_shared.h"
#include "os/proc.h"
#include "os/vm.h"
#include "xtal.h"

/* A receiver that is not ready for long is asked less often, if it may take for ever. */
#define SLOWER_TIMES 5u
#define SLOW_NS      20000000u

static void make_envelope(const struct xtal_queue *q, const struct xtal_pending *p,
			  struct xtal_envelope *out)
{
	const struct xtal_op *op = &p->op;

	*out = (struct xtal_envelope){
		.to = op->notify.addr,
		.token = op->notify.token,
		.token_valid = op->notify.token_valid,
		.solicited = op->flags & XTAL_OP_SOLICITED,
		.opcode = op->opcode,
		.from_jetty = q->share->jetty,
		.tid = xtal_context_tid(q->ctx),
		.id = q->share->public_id,
		.eid = q->ctx->dev->eid,
		.imm = op->opcode == XTAL_OP_SEND ? 0 : op->notify_data,
		.hint = op->hint,
		.len = p->len,
	};
}

void xtal_send_request(const struct xtal_pending *p, struct xtal_request *r)
{
	const struct xtal_sharing *share = p->queue->share;
	struct xtal_envelope m;

	make_envelope(p->queue, p, &m);
	r->type = XTAL_MSG_SEND;
	r->operand_size = (uint8_t)(m.opcode - XTAL_OP_SEND + XTAL_MSG_SEND_PLAIN);
	r->addr = 0;
	r->len = m.opcode == XTAL_OP_WRITE_IMM ? 0 : m.len;
	r->key = (uint32_t)m.to;
	r->token = m.token_valid ? m.token : 0;
	r->flags = (uint16_t)((m.token_valid ? XTAL_MSG_TOKEN : 0) |
			      (m.solicited ? XTAL_MSG_SOLICITED : 0) |
			      (m.to >> 32 ? XTAL_MSG_TO_JETTY : 0) |
			      (m.from_jetty ? XTAL_MSG_FROM_JETTY : 0));
	r->operand[0] = m.imm;
	r->operand[1] = m.hint;
	r->compare[0] = m.eid.hi;
	r->compare[1] = m.eid.lo;
	/* Datagrams follow none: one that is dropped does not come again. */
	r->notify.addr = share->datagram || share->last_send == p ? 0 : (uintptr_t)share->last_send;
	r->notify.data = m.opcode == XTAL_OP_WRITE_IMM ? m.len : 0;
	r->notify.tid = m.tid;
	r->notify.token = m.id;
}

/* A part of the program's memory, announced and guarded. A status. */
static uint32_t fetch(struct xtal_queue *q, uint64_t addr, uint8_t *out, uint64_t len)
{
	int err;

	if (xtal_registry_enter_local(&q->ctx->registry, q->ctx->number, addr, len, &q->lane.local))
		return XTAL_LOCAL_ACCESS;
	err = xtal_os_checked_get(out, (const void *)(uintptr_t)addr, len);
	/* Release: the copy is over. Partner: xtal_lanes_busy(). */
	atomic_store_explicit(&q->lane.local, 0, memory_order_release);
	return err ? XTAL_LOCAL_ACCESS : XTAL_OK;
}

/* Data where the program has it: piece by piece over memory of our own, since whoever announces one
 * segment must not wait for another. A status. */
static uint32_t deliver_registered(struct xtal_queue *q, const struct xtal_op *op,
				   struct xtal_inbound *in)
{
	uint64_t most = op->len < XTAL_MSG_PIECE ? op->len : XTAL_MSG_PIECE;
	uint8_t *bytes = malloc(most);
	uint32_t status = bytes ? XTAL_OK : XTAL_LOCAL_OPERATION;

	for (uint64_t at = 0, n; at < op->len && !status; at += n) {
		n = op->len - at < most ? op->len - at : most;
		status = fetch(q, op->local + at, bytes, n);
		if (!status)
			status = xtal_inbound_put(in, &q->lane.notify, at, bytes, n);
	}
	free(bytes);
	return status;
}

/* The receiver is in this process, and everything happens here. A status. */
static uint32_t deliver(struct xtal_queue *q, struct xtal_pending *p, struct xtal_context *to)
{
	struct xtal_inbound in;
	struct xtal_envelope envelope;
	uint32_t status;

	in.endpoint = NULL;
	make_envelope(q, p, &envelope);
	status = xtal_inbound_begin(&in, to, &envelope);
	p->pause_ns = in.pause_ns;
	if (!status && p->op.opcode != XTAL_OP_WRITE_IMM && p->op.len) {
		if (p->op.flags & XTAL_OP_OWN_PAYLOAD)
			status = xtal_inbound_put(&in, &q->lane.notify, 0,
						  (const uint8_t *)(uintptr_t)p->op.local,
						  p->op.len);
		else
			status = deliver_registered(q, &p->op, &in);
	}
	if (!status)
		return xtal_inbound_end(&in);
	xtal_inbound_abandon(&in);
	return status;
}

/* Local data that is not our own must be registered while it is sent. */
static bool local_is_good(struct xtal_queue *q, const struct xtal_op *op)
{
	return !op->len || op->opcode == XTAL_OP_WRITE_IMM || op->flags & XTAL_OP_OWN_PAYLOAD ||
	       xtal_local_find(q, &q->xlats, op->local, op->len);
}

static void end(struct xtal_pending *p, uint32_t status)
{
	atomic_store_explicit(&p->status, status, memory_order_relaxed);
	atomic_store_explicit(&p->done, true, memory_order_release);
}

/* A status that does not come from the target is told in its turn, when p is the only one. */
static bool end_alone(struct xtal_queue *q, struct xtal_pending *p, uint32_t status)
{
	if (q->inflight)
		return false;
	end(p, status);
	return true;
}

bool xtal_send_start(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_sharing *share = q->share;
	struct xtal_link *link;
	bool begun = true;
	int result;

	if ((p->tries && xtal_os_now() < share->again_at) || xtal_send_follows_failed(share))
		return false;
	if (!local_is_good(q, &p->op))
		return end_alone(q, p, XTAL_LOCAL_ACCESS);
	link = xtal_link_get(q->ctx, p->op.notify.eid, p->op.notify.tid, q->pipeline);
	if (!link)
		return end_alone(q, p, XTAL_LOCAL_OPERATION);
	result = xtal_link_ready(link, q);
	if (result == -EINPROGRESS) {
		begun = false;
	} else if (result > 0) {
		begun = end_alone(q, p, (uint32_t)result);
	} else if (q->inflight && (link->self || q->flight_link != link || !share->sending)) {
		/* Behind what is no message, too: that may fail, and the receiver would think that it
		 * had been done. */
		begun = false;
	} else if (link->self) {
		p->peer = (struct xtal_peer){ .port = link->tid & 0xffff, .link_id = link->id };
		end(p, deliver(q, p, link->self));
		xtal_queue_moved(q, XTAL_PATH_SELF, p->op.len);
	} else {
		p->peer = (struct xtal_peer){ .port = link->tid & 0xffff, .link_id = link->id };
		result = xtal_messages_submit(link, p);
		if (result == -EAGAIN) {
			begun = false;
		} else {
			if (result > 0)
				end(p, (uint32_t)result);
			share->last_send = p;
			share->sending = true;
			q->flight_link = link;
			xtal_queue_moved(q, link->carrier->path, p->op.len);
		}
	}
	xtal_link_put(link);
	return begun;
}

bool xtal_send_is_under_way(const struct xtal_queue *q)
{
	return q->share->sending;
}

void xtal_send_none_under_way(struct xtal_queue *q)
{
	q->share->sending = false;
	q->share->last_send = NULL;
}

/* Everything from the first to the last that was begun is over, and none of it was received. */
static bool all_came_back(const struct xtal_queue *q, bool *received)
{
	*received = false;
	for (struct xtal_pending *p = q->first; p && p != q->start; p = p->next) {
		if (!atomic_load_explicit(&p->done, memory_order_acquire))
			return false;
		*received |= !atomic_load_explicit(&p->status, memory_order_relaxed);
	}
	return true;
}

static void begin_again(struct xtal_queue *q)
{
	for (struct xtal_pending *p = q->first; p && p != q->start; p = p->next) {
		if (p->link) {
			xtal_messages_retire(p->link);
			xtal_link_put(p->link);
		}
		p->link = NULL;
		p->state = XTAL_PENDING_NEW;
		atomic_store_explicit(&p->status, XTAL_OK, memory_order_relaxed);
		atomic_store_explicit(&p->done, false, memory_order_relaxed);
	}
	q->start = q->first;
	q->inflight = 0;
}

enum xtal_send_verdict xtal_send_judge(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_sharing *share = q->share;
	uint32_t status = atomic_load_explicit(&p->status, memory_order_relaxed);
	uint64_t pause = p->pause_ns ? p->pause_ns : share->pause_ns;
	bool received;

	if (share->datagram && status != XTAL_OK && status != XTAL_LOCAL_ACCESS) {
		atomic_store_explicit(&p->status, XTAL_OK, memory_order_relaxed);
		return XTAL_SEND_OVER;
	}
	if (status != XTAL_NOT_READY || p->lost || q->state == XTAL_QUEUE_ERROR)
		return XTAL_SEND_OVER;
	if (share->rnr_retry != XTAL_RNR_FOREVER && p->tries >= share->rnr_retry)
		return XTAL_SEND_OVER;
	if (!all_came_back(q, &received))
		return XTAL_SEND_WAIT;
	if (received) /* the target has broken the order: nothing can be repeated */
		return XTAL_SEND_OVER;
	begin_again(q);
	if (share->rnr_retry == XTAL_RNR_FOREVER)
		for (unsigned i = 0; i < p->tries && i < SLOWER_TIMES && pause < SLOW_NS; i++)
			pause *= 2;
	share->again_at = xtal_os_now() + pause;
	/* The others go on meanwhile. */
	if (xtal_stall_begin(q, p, share->again_at))
		share->again_at = 0;
	if (p->tries < UINT8_MAX)
		p->tries++;
	return XTAL_SEND_AGAIN;
}

bool xtal_send_follows_write(struct xtal_queue *q, struct xtal_pending *p)
{
	if (p->opcode != XTAL_OP_WRITE_IMM || p->op.opcode == XTAL_OP_WRITE_IMM ||
	    atomic_load_explicit(&p->status, memory_order_relaxed) || q->state == XTAL_QUEUE_ERROR)
		return false;
	/* It is alone: nothing follows the first half. */
	if (p->link) {
		xtal_messages_retire(p->link);
		xtal_link_put(p->link);
	}
	p->link = NULL;
	p->op.opcode = XTAL_OP_WRITE_IMM;
	p->op.remote = p->op.notify;
	p->op.len = 0;
	p->state = XTAL_PENDING_NEW;
	atomic_store_explicit(&p->done, false, memory_order_relaxed);
	q->start = p;
	q->inflight = 0;
	return true;
}
