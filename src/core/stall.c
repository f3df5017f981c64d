/* SPDX-License-Identifier: MIT */
/*
 * Parking operations of peers that are not ready. A queue's list has three parts, each in the order
 * of posting: what has begun, what has not (from q->start on), what is parked (from q->parked on,
 * to the end).
 */
#include "core/queue_shared.h"
#include "os/proc.h"

/* Whom an operation goes to; for both halves of a WRITE_IMM that is whom the message is for. */
static const struct xtal_remote *peer_of(const struct xtal_pending *p)
{
	return p->opcode >= XTAL_OP_SEND ? &p->op.notify : &p->op.remote;
}

/* A NOP that was told no peer: it ends when all that was posted earlier has ended. */
static bool is_for_all(const struct xtal_pending *p)
{
	return p->opcode == XTAL_OP_NOP && !p->op.remote.tid;
}

static struct xtal_stall *stall_of(struct xtal_queue *q, const struct xtal_pending *p)
{
	struct xtal_sharing *share = q->share;
	const struct xtal_remote *r = peer_of(p);

	for (uint32_t i = 0; i < share->stalled; i++)
		if (share->stalls[i].port == (r->tid & 0xffff) &&
		    xtal_eid_equal(share->stalls[i].eid, r->eid))
			return &share->stalls[i];
	return NULL;
}

bool xtal_stall_begin(struct xtal_queue *q, const struct xtal_pending *p, uint64_t again_at)
{
	struct xtal_sharing *share = q->share;
	const struct xtal_remote *r = peer_of(p);

	if (share->stalled == XTAL_STALLS)
		return false;
	share->stalls[share->stalled++] =
		(struct xtal_stall){ .eid = r->eid, .port = r->tid & 0xffff, .again_at = again_at };
	return true;
}

/* What points to the first that has not begun. */
static struct xtal_pending **link_to_start(struct xtal_queue *q)
{
	struct xtal_pending **at = &q->first;

	while (*at != q->start)
		at = &(*at)->next;
	return at;
}

/* False: its peer is not stalled. */
static bool park(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_sharing *share = q->share;
	struct xtal_pending **from, **to;

	if (!stall_of(q, p))
		return false;
	from = link_to_start(q);
	*from = p->next;
	if (q->last == &p->next)
		q->last = from;
	/* Nearly always it was posted after all others that are parked. */
	to = q->parked && share->parked_last->seq < p->seq ? &share->parked_last->next : q->last;
	while (*to && (*to)->seq < p->seq)
		to = &(*to)->next;
	p->next = *to;
	*to = p;
	if (!p->next)
		share->parked_last = p;
	q->parked = *q->last;
	q->start = *from;
	return true;
}

enum xtal_stall_verdict xtal_stall_look(struct xtal_queue *q, struct xtal_pending *p)
{
	if (q->state != XTAL_QUEUE_READY || !q->share || !q->share->stalled)
		return XTAL_STALL_NONE;
	if (park(q, p))
		return XTAL_STALL_PARKED;
	return (p->op.flags & XTAL_OP_FENCE || is_for_all(p)) && q->parked &&
			       q->parked->seq < p->seq
		       ? XTAL_STALL_WAIT
		       : XTAL_STALL_NONE;
}

static bool is_due(struct xtal_queue *q, const struct xtal_pending *p, bool all, uint64_t now)
{
	const struct xtal_stall *stall = all ? NULL : stall_of(q, p);

	return !stall || stall->again_at <= now;
}

void xtal_stall_take_back(struct xtal_queue *q)
{
	const bool all = q->state == XTAL_QUEUE_ERROR;
	struct xtal_sharing *share = q->share;
	struct xtal_pending *p = q->parked, *next, *rest = NULL, **rest_end = &rest, **at, **begin;
	uint64_t now = xtal_os_now();
	uint32_t left = 0;

	*q->last = NULL;
	if (q->start == p)
		q->start = NULL;
	begin = at = link_to_start(q);
	for (; p; p = next) {
		next = p->next;
		if (is_due(q, p, all, now)) {
			while (*at && (*at)->seq < p->seq)
				at = &(*at)->next;
			p->next = *at;
			*at = p;
		} else {
			p->next = NULL;
			*rest_end = p;
			rest_end = &p->next;
			share->parked_last = p;
		}
	}
	while (*at)
		at = &(*at)->next;
	q->last = at;
	q->start = *begin;
	*at = q->parked = rest;
	if (!q->start)
		q->start = rest;
	for (uint32_t i = 0; i < share->stalled; i++)
		if (!all && share->stalls[i].again_at > now)
			share->stalls[left++] = share->stalls[i];
	share->stalled = left;
}
