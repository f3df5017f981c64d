/* SPDX-License-Identifier: MIT */
/*
 * Operations that could not be executed at once: they wait for a link, a grant or their turn,
 * travel as messages, or are moved in fragments. Started in order, retired in order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interval.h"
#include "core/bulk.h"
#include "core/carrier.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/messages.h"
#include "core/queue_impl.h"
#include "core/tell.h"
#include "os/proc.h"
#include "xtal.h"

static void end(struct xtal_pending *p, uint32_t status)
{
	atomic_store_explicit(&p->status, status, memory_order_relaxed);
	atomic_store_explicit(&p->done, true, memory_order_release);
}

/* The same, where the sentence was said. */
static void end_told(struct xtal_pending *p, uint32_t status)
{
	p->told = status != XTAL_LOCAL_OPERATION;
	end(p, status);
}

/*
 * A translation for the range. 0; -EINPROGRESS: the queue waits in a link's list; or a
 * status.
 */
static int translate(struct xtal_queue *q, const struct xtal_remote *r, uint64_t len,
		     uint32_t rights, uint64_t *ask, struct xtal_xlat **out)
{
	struct xtal_xlat *t = xtal_xlat_find(&q->xlats, r, len);
	struct xtal_grant *grant;
	struct xtal_link *link;
	char text[160] = "";
	int result;

	if (t && (t->rights & rights) == rights &&
	    atomic_load_explicit(t->slot_word, memory_order_relaxed) == t->word) {
		*out = t;
		return 0;
	}
	if (t)
		xtal_xlat_stale(&q->xlats, t);
	link = xtal_link_get(q->ctx, r->eid, r->tid, q->pipeline);
	if (!link)
		return XTAL_LOCAL_OPERATION;
	result = xtal_link_resolve(link, r, len, rights, q, ask, &grant, text, sizeof(text));
	if (result > 0)
		xtal_tell(q, r, len, (uint32_t)result, text);
	if (result == XTAL_UNREACHABLE)
		xtal_xlats_purge(&q->xlats, link);
	if (!result) {
		if (grant->path == XTAL_PATH_NONE) {
			xtal_tell(q, r, len, XTAL_UNREACHABLE, "XTAL_PATHS leaves no path to it");
			xtal_grant_put(grant);
			result = XTAL_UNREACHABLE;
		} else {
			result = xtal_xlat_add(q, r, grant, out) ? XTAL_LOCAL_OPERATION : 0;
		}
	}
	xtal_link_put(link);
	return result;
}

static bool by_message(const struct xtal_op *op, const struct xtal_xlat *t)
{
	return t->reach.kind == XTAL_REACH_MESSAGE ||
	       (xtal_op_is_atomic(op->opcode) && t->reach.kind == XTAL_REACH_CMA);
}

/* Messages follow each other on one link; everything else waits until it is alone. */
static bool my_turn(const struct xtal_queue *q, const struct xtal_link *message_link)
{
	return !q->inflight || (message_link && q->flight_link == message_link);
}

/* p is under way. */
static void count_landing(struct xtal_queue *q, struct xtal_pending *p)
{
	p->lands = p->op.opcode == XTAL_OP_READ || xtal_op_is_atomic(p->op.opcode);
	q->landing += p->lands;
}

bool xtal_queue_awaits(const struct xtal_queue *q, uint64_t addr, uint64_t len)
{
	uint32_t left = q->landing;

	for (const struct xtal_pending *p = q->first; left; p = p->next) {
		if (!p->lands)
			continue;
		left--;
		if (p->payload ? xtal_payload_meets(p->payload, addr, len)
			       : xtal_ranges_meet(addr, len, p->op.local, p->op.len))
			return true;
	}
	return false;
}

/* Messages follow each other before they are answered; but what a write takes its data from may be
 * where the answer to an earlier read or atomic is to go. */
static bool awaits_its_data(const struct xtal_queue *q, const struct xtal_op *op)
{
	return op->opcode == XTAL_OP_WRITE && !(op->flags & XTAL_OP_OWN_PAYLOAD) &&
	       xtal_queue_awaits(q, op->local, op->len);
}

void xtal_pending_lose(struct xtal_queue *q, const struct xtal_link *link, uint32_t status)
{
	for (struct xtal_pending *p = q->start; p; p = p->next)
		if (p->op.remote.tid == link->tid && xtal_eid_equal(p->op.remote.eid, link->eid))
			p->lost = status;
}

static bool waits_in_vain(const struct xtal_queue *q)
{
	return q->wait_link && atomic_load(&q->wait_link->state) == XTAL_LINK_DEAD;
}

/*
 * Leaves the list of waiters. When the link has ended its status is the operation's: a new link
 * might end just so, and the operation never. 0: the link lives, or none was waited for.
 */
static uint32_t stop_waiting(struct xtal_queue *q, const struct xtal_remote *r, uint64_t len)
{
	struct xtal_link *link = q->wait_link;
	uint32_t status = 0;

	if (!link)
		return 0;
	if (waits_in_vain(q)) {
		status = link->status;
		xtal_tell(q, r, len, status, link->text);
		xtal_pending_lose(q, link, status);
	}
	xtal_link_unwait(link, q);
	return status;
}

void xtal_pending_give_up(struct xtal_queue *q, uint32_t status)
{
	const struct xtal_link *link = q->wait_link;

	xtal_pending_lose(q, link, status);
	xtal_link_unwait(q->wait_link, q);
	xtal_queue_progress(q);
}

/* Ends p by executing op here. False: not now. */
static bool run_short(struct xtal_queue *q, struct xtal_pending *p, const struct xtal_op *op)
{
	struct xtal_completion c;

	if (!xtal_exec_now(q, op, &c))
		return false;
	p->peer = c.report.peer;
	end_told(p, c.status);
	return true;
}

/* True while what the queue waits for has not come: whoever brings it kicks, and a poll costs
 * nothing until then. Waiters for room are also helped by the tick. */
static bool asleep(struct xtal_queue *q)
{
	uint64_t what = atomic_load_explicit(&q->wait_for, memory_order_relaxed);

	return q->wait_link && what != XTAL_WAIT_OVER && what != XTAL_WAIT_ROOM;
}

static struct xtal_local *local_of(struct xtal_queue *q, const struct xtal_op *op)
{
	if (op->flags & XTAL_OP_OWN_PAYLOAD)
		return &xtal_local_own;
	return xtal_local_find(q, &q->xlats, op->local, op->len);
}

static bool start(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_op plain;
	struct xtal_local *l;
	struct xtal_xlat *t, *unused;
	uint32_t status;
	int result;

	if (waits_in_vain(q) && !my_turn(q, NULL))
		return false;
	if (p->op.opcode == XTAL_OP_NOP) {
		if (!my_turn(q, NULL))
			return false;
		end(p, XTAL_OK);
		return true;
	}
	/* Nothing but a message follows a message. */
	if (q->share && q->inflight && p->op.opcode < XTAL_OP_SEND && xtal_send_is_under_way(q))
		return false;
	status = stop_waiting(q, &p->op.remote, p->op.len);
	if (!status && p->lost) {
		if (!my_turn(q, NULL))
			return false;
		status = p->lost;
	}
	if (status) {
		end_told(p, status);
		return true;
	}
	if (p->payload && !xtal_payload_is_there(q, p))
		return false;
	if (p->op.opcode >= XTAL_OP_SEND)
		return xtal_send_start(q, p);
	result = translate(q, &p->op.remote, p->op.len, xtal_op_rights(p->op.opcode), &p->ask[0],
			   &t);
	if (result == -EINPROGRESS)
		return false;
	if (!result && p->op.flags & XTAL_OP_NOTIFY) {
		/* The word's segment is looked at before any data moves. */
		result = translate(q, &p->op.notify, 8, XTAL_RIGHT_WRITE, &p->ask[1], &unused);
		if (result == -EINPROGRESS)
			return false;
		if (!result) /* the second may have taken the first one's place */
			result = translate(q, &p->op.remote, p->op.len,
					   xtal_op_rights(p->op.opcode), &p->ask[0], &t);
		if (result == -EINPROGRESS)
			return false;
	}
	if (result) {
		if (!my_turn(q, NULL))
			return false;
		end_told(p, (uint32_t)result);
		return true;
	}
	p->peer = t->of8.peer;
	if (by_message(&p->op, t)) {
		uint32_t path = t->seat->link->carrier->path;

		if (!my_turn(q, t->seat->link))
			return false;
		if (!local_of(q, &p->op)) {
			if (!my_turn(q, NULL))
				return false;
			end(p, XTAL_LOCAL_ACCESS);
			return true;
		}
		if (awaits_its_data(q, &p->op))
			return false;
		result = xtal_messages_submit(t->seat->link, p);
		if (result == -EAGAIN)
			return false;
		if (result > 0)
			end(p, (uint32_t)result);
		else
			count_landing(q, p);
		/* A notify word that follows by itself must not be overtaken. */
		q->flight_link = (!(p->op.flags & XTAL_OP_NOTIFY) || p->notify_sent) &&
						 p->opcode != XTAL_OP_WRITE_IMM
					 ? t->seat->link
					 : NULL;
		xtal_queue_moved(q, path, p->op.len);
		if (path == XTAL_PATH_RING && p->op.len <= XTAL_GRANT_SMALL)
			xtal_grant_used(t->grant);
		return true;
	}
	if (!my_turn(q, NULL))
		return false;
	plain = p->op;
	plain.flags &= (uint8_t)~XTAL_OP_NOTIFY;
	if (p->op.len <= xtal_config()->inline_bytes || xtal_op_is_atomic(p->op.opcode))
		return run_short(q, p, &plain);
	l = local_of(q, &p->op);
	if (!l) {
		end(p, XTAL_LOCAL_ACCESS);
		return true;
	}
	if (xtal_bulk_start(p, t, l)) {
		end(p, XTAL_LOCAL_OPERATION);
		return true;
	}
	p->state = XTAL_PENDING_BULK;
	count_landing(q, p);
	if (!p->counted) /* not begun before, see xtal_pending_again() */
		xtal_queue_moved(q, t->path, p->op.len);
	p->counted = true;
	return true;
}

/* The queue is stopped, and waits for no link: none is late for it. True: p ends as flushed; false:
 * it stays. */
static bool start_stopped(struct xtal_queue *q, struct xtal_pending *p)
{
	if (q->wait_link)
		xtal_link_unwait(q->wait_link, q);
	if (q->state != XTAL_QUEUE_ERROR)
		return false;
	end(p, XTAL_FLUSHED);
	q->inflight++;
	return true;
}

bool xtal_pending_start(struct xtal_queue *q, struct xtal_pending *p)
{
	if (xtal_unlikely(q->state != XTAL_QUEUE_READY))
		return start_stopped(q, p);
	if (asleep(q))
		return false;
	/* Not begun and not waiting: a grant went stale meanwhile, so look again. */
	for (unsigned tries = 0; tries < 4; tries++) {
		if (!q->inflight) {
			q->flight_link = NULL;
			if (q->share)
				xtal_send_none_under_way(q);
		}
		if (start(q, p)) {
			q->inflight++;
			return true;
		}
		if (q->wait_link || q->inflight)
			break;
	}
	return false;
}

struct xtal_bulk *xtal_pending_again(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_bulk *bulk = p->bulk;

	p->bulk = NULL;
	p->state = XTAL_PENDING_NEW;
	q->start = p;
	q->inflight--;
	q->landing -= p->lands;
	p->lands = false;
	atomic_store_explicit(&p->progress, xtal_os_now(), memory_order_relaxed);
	return bulk;
}

/* The notify word as an operation of its own. */
static struct xtal_op notify_op(const struct xtal_pending *p)
{
	return (struct xtal_op){
		.user = p->op.user, .len = 8, .remote = p->op.notify, .opcode = XTAL_OP_WRITE
	};
}

/* Stores the word over a direct path, from the operation itself: no local segment. */
static bool store_word(struct xtal_queue *q, struct xtal_pending *p, struct xtal_xlat *t)
{
	const struct xtal_path_ops *path = xtal_path_table[t->reach.kind];
	bool fresh, stored;
	int err = 0;

	path->prepare(t->activity->iov, p->op.notify.addr, 8, false);
	atomic_store_explicit(&t->activity->word, t->announce, memory_order_release);
	xtal_lane_fence(t->full_fence);
	/* Partner: unregister bumps, then fences. */
	fresh = atomic_load_explicit(t->slot_word, memory_order_acquire) == t->word;
	if (fresh)
		err = path->put(&t->reach, t->activity->iov, p->op.notify.addr, &p->op.notify_data,
				8);
	stored = fresh && !err;
	if (fresh)
		fresh = atomic_load_explicit(t->slot_word, memory_order_acquire) == t->word;
	atomic_store_explicit(&t->activity->word, 0, memory_order_release);
	if (stored && !fresh && !xtal_activity_was_cut(t->activity))
		fresh = true;
	if (!fresh || err == -ESTALE || (err && xtal_grant_cma_ended(t->grant, err))) {
		xtal_xlat_stale(&q->xlats, t);
		return false;
	}
	if (err)
		atomic_store_explicit(&p->status, XTAL_REMOTE_ACCESS, memory_order_relaxed);
	return true;
}

/* Another context's memory that only messages reach: the word follows as a message. */
static bool send_word(struct xtal_pending *p, struct xtal_link *link)
{
	struct xtal_op was = p->op;
	int result;

	if (p->link)
		xtal_link_put(p->link);
	p->link = NULL;
	p->op.remote = was.notify;
	p->op.local = (uintptr_t)&p->op.notify_data;
	p->op.len = 8;
	p->op.flags = (uint8_t)((was.flags & XTAL_OP_UNSIGNALLED) | XTAL_OP_OWN_PAYLOAD);
	atomic_store_explicit(&p->done, false, memory_order_relaxed);
	result = xtal_messages_submit(link, p);
	if (result == -EAGAIN) {
		p->op = was;
		atomic_store_explicit(&p->done, true, memory_order_relaxed);
	} else if (result > 0) {
		end(p, (uint32_t)result);
	}
	return result > 0;
}

bool xtal_pending_finish(struct xtal_queue *q, struct xtal_pending *p)
{
	struct xtal_op op = notify_op(p);
	struct xtal_xlat *t;
	uint32_t status;
	int result;

	if (!(p->op.flags & XTAL_OP_NOTIFY) || p->notify_sent ||
	    atomic_load_explicit(&p->status, memory_order_relaxed))
		return true;
	if (p->state == XTAL_PENDING_NOTIFY && asleep(q))
		return false;
	p->state = XTAL_PENDING_NOTIFY;
	status = stop_waiting(q, &op.remote, 8);
	if (status) {
		p->told = true;
		atomic_store_explicit(&p->status, status, memory_order_relaxed);
		return true;
	}
	result = translate(q, &op.remote, 8, XTAL_RIGHT_WRITE, &p->ask[1], &t);
	if (result == -EINPROGRESS)
		return false;
	if (result > 0) {
		p->told = result != XTAL_LOCAL_OPERATION;
		atomic_store_explicit(&p->status, (uint32_t)result, memory_order_relaxed);
		return true;
	}
	if (xtal_path_table[t->reach.kind])
		return store_word(q, p, t);
	return send_word(p, t->seat->link);
}
