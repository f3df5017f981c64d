/* SPDX-License-Identifier: MIT */
/*
 * Messages of a few bytes that are begun by their post. It does at once what xtal_queue_enqueue() and
 * xtal_send_start() do for all others, and only when nothing hinders it; whatever comes later
 * is theirs.
 */
#include <stdlib.h>
#include <string.h>

#include "core/carrier.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/messages.h"
#include "core/queue_shared.h"
#include "core/serving.h"
#include "os/proc.h"

/* Nothing that waits is in front of it, and what is under way are messages on the link. */
static bool may_go_at_once(const struct xtal_queue *q, const struct xtal_link *link)
{
	const struct xtal_sharing *share = q->share;

	if (q->start || q->parked || q->state != XTAL_QUEUE_READY || share->stalled || link->self ||
	    atomic_load(&link->state) != XTAL_LINK_UP)
		return false;
	return !q->first || (q->inflight && q->flight_link == link && share->sending &&
			     !xtal_send_follows_failed(share));
}

/* Its own half of xtal_queue_enqueue(). NULL: no memory. */
static struct xtal_pending *make_short(struct xtal_queue *q, const struct xtal_op *op,
				       const uint8_t *data, uint64_t now)
{
	struct xtal_pending *p = q->spare;

	if (p)
		q->spare = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->op = *op;
	p->op.flags &= XTAL_OP_UNSIGNALLED | XTAL_OP_SOLICITED;
	p->op.flags |= XTAL_OP_OWN_PAYLOAD;
	p->op.local = (uintptr_t)p->bytes;
	p->op.remote = op->notify;
	memcpy(p->bytes, data, op->len);
	p->opcode = op->opcode;
	p->len = (uint32_t)op->len;
	p->queue = q;
	atomic_store_explicit(&p->progress, now, memory_order_relaxed);
	p->seq = atomic_load_explicit(&q->accepted, memory_order_relaxed);
	return p;
}

bool xtal_send_post_short(struct xtal_queue *q, const struct xtal_op *op, const uint8_t *data)
{
	struct xtal_sharing *share = q->share;
	uint64_t now = xtal_os_now();
	struct xtal_link *link = xtal_link_get(q->ctx, op->notify.eid, op->notify.tid, q->pipeline);
	struct xtal_pending *p = NULL;
	bool sent;

	if (!link)
		return false;
	if (may_go_at_once(q, link))
		p = make_short(q, op, data, now);
	if (p && !q->inflight)
		xtal_send_none_under_way(q);
	sent = p && xtal_messages_submit_short(link, p, data, now);
	if (sent) {
		p->peer = (struct xtal_peer){ .port = link->tid & 0xffff, .link_id = link->id };
		*q->last = p;
		q->last = &p->next;
		q->inflight++;
		q->flight_link = link;
		share->last_send = p;
		share->sending = true;
		xtal_bump(&q->accepted, 1);
		xtal_queue_moved(q, link->carrier->path, op->len);
		xtal_queue_enter(q);
		xtal_queue_tick_me(q);
	} else if (p) {
		p->next = q->spare;
		q->spare = p;
	}
	xtal_link_put(link);
	if (sent)
		xtal_server_answer(q->ctx, now);
	return sent;
}
