/* SPDX-License-Identifier: MIT */
/*
 * The initiator's half of the message paths, whatever the carrier: hands operations to the
 * requester, lets the carrier send and receive, and ends them. Local memory is entered through
 * the registry and copied by the kernel, since the program may have unmapped it meanwhile.
 */
#include "core/messages.h"

#include <errno.h>
#include <string.h>

#include "core/carrier.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "core/serving.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"
#include "xtal.h"

/* How long after a program's own poll the agent leaves the answers to it. */
#define POLLER_NS 1000000u

#define PATIENT_SPINS 1000u /* 10 to 50 us */

uint32_t xtal_messages_copy(struct xtal_link *link, struct xtal_pending *p, uint64_t offset,
			    void *ring, uint64_t len, bool to_local)
{
	uint64_t addr = p->op.local + offset;
	void *local = (void *)(uintptr_t)addr;
	int err;

	if (!len)
		return XTAL_OK;
	if (p->op.flags & XTAL_OP_OWN_PAYLOAD) {
		memcpy(to_local ? local : ring, to_local ? ring : local, len);
		return XTAL_OK;
	}
	if (xtal_registry_enter_local(&link->ctx->registry, link->ctx->number, addr, len,
				      &link->lane.local))
		return XTAL_LOCAL_ACCESS;
	err = to_local ? xtal_os_guarded_put(local, ring, len)
		       : xtal_os_checked_get(ring, local, len);
	/* Release: the copy is over. Partner: xtal_lanes_busy(). */
	atomic_store_explicit(&link->lane.local, 0, memory_order_release);
	return err ? XTAL_LOCAL_ACCESS : XTAL_OK;
}

bool xtal_messages_in_use(const struct xtal_link *link)
{
	return link->requester.head != link->requester.tail;
}

void xtal_messages_finish(struct xtal_pending *p, uint32_t status, const struct xtal_queue *mine)
{
	struct xtal_queue *q = p->queue;

	atomic_store_explicit(&p->status, status, memory_order_relaxed);
	/* Release: all of the operation's effects. p and q stay until we drop the link's lock:
	 * whoever retires p takes that lock once (xtal_messages_retire). */
	atomic_store_explicit(&p->done, true, memory_order_release);
	if (q != mine)
		xtal_pipeline_kick(q);
}

void xtal_messages_end_orphans(struct xtal_link *link, const struct xtal_queue *mine)
{
	uint64_t cookie;

	while (xtal_requester_next_orphan(&link->requester, &cookie)) {
		struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)cookie;

		xtal_requester_abandon(&link->requester, cookie, true);
		/* As the target answers what follows one that failed: their queue decides, flushes
		 * them, or begins them again, when it is only suspended. */
		p->pause_ns = 0;
		xtal_messages_finish(p, XTAL_NOT_READY, mine);
	}
}

/* Under the link's lock: sends what fits, and lets those go on who wait for room. */
static void send_more(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	uint32_t room;

	link->carrier->send(link, now, mine);
	room = (uint32_t)(XTAL_LINK_WINDOW - (link->requester.tail - link->requester.head));
	if (link->crowded && room)
		link->crowded = xtal_link_wake(link, XTAL_WAIT_ROOM, room) == room;
}

bool xtal_messages_go_on(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	bool any = link->carrier->receive(link, now, mine);

	send_more(link, now, mine);
	return any;
}

bool xtal_messages_polled(const struct xtal_link *link, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&link->polled_at, memory_order_relaxed);

	return now < at || now - at <= POLLER_NS;
}

void xtal_messages_poll(struct xtal_link *link, const struct xtal_queue *mine, bool user)
{
	uint64_t now;

	if (!xtal_trylock(&link->lock))
		return;
	if (atomic_load(&link->state) == XTAL_LINK_UP && xtal_messages_in_use(link)) {
		now = xtal_os_now();
		if (user)
			atomic_store_explicit(&link->polled_at, now, memory_order_relaxed);
		if (link->armed)
			link->carrier->after_sleep(link);
		/* Encrypting what fits into a socket takes longer than the agent waits for the next poll. */
		if (xtal_messages_go_on(link, now, mine) && user && xtal_messages_in_use(link))
			atomic_store_explicit(&link->polled_at, xtal_os_now(),
					      memory_order_relaxed);
	}
	/* A program polls without a pause: the agent, which reads the socket and keeps the time, must
	 * get in between. */
	xtal_unlock_fair(&link->lock);
}

/* Under the link's lock: the requester has the operation. */
static void under_way(struct xtal_link *link, struct xtal_pending *p)
{
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	p->link = link;
	p->state = XTAL_PENDING_MESSAGE;
	if (!link->draining)
		xtal_agent_join_drain(&link->drain);
	link->draining = true;
}

bool xtal_messages_submit_short(struct xtal_link *link, struct xtal_pending *p, const uint8_t *data,
				uint64_t now)
{
	struct xtal_request r = {
		.cookie = (uintptr_t)p,
		.tid = p->op.remote.tid,
		.deadline = now + p->queue->timeout_ns,
		.limit = p->queue->timeout_ns,
	};
	bool sent = false;

	xtal_send_request(p, &r);
	xtal_lock(&link->lock);
	if (atomic_load(&link->state) == XTAL_LINK_UP && link->carrier->send_short &&
	    link->carrier->send_short(link, &r, data, now)) {
		under_way(link, p);
		sent = true;
	}
	xtal_unlock(&link->lock);
	return sent;
}

int xtal_messages_submit(struct xtal_link *link, struct xtal_pending *p)
{
	const struct xtal_op *op = &p->op;
	uint64_t now = xtal_os_now();
	struct xtal_request r = {
		.cookie = (uintptr_t)p,
		.addr = op->remote.addr,
		.len = op->len,
		.token = op->remote.token,
		.tid = op->remote.tid,
		.key = op->remote.index,
		.flags = op->remote.token_valid ? XTAL_MSG_TOKEN : 0,
		.deadline = now + p->queue->timeout_ns,
		.limit = p->queue->timeout_ns,
	};
	int err;

	switch ((enum xtal_opcode)op->opcode) {
	case XTAL_OP_WRITE:
		r.type = XTAL_MSG_WRITE;
		r.rights = XTAL_MSG_RIGHT_WRITE;
		break;
	case XTAL_OP_READ:
		r.type = XTAL_MSG_READ;
		r.rights = XTAL_MSG_RIGHT_READ;
		break;
	case XTAL_OP_CAS:
	case XTAL_OP_FAA:
	case XTAL_OP_SWAP:
	case XTAL_OP_SUB:
	case XTAL_OP_AND:
	case XTAL_OP_OR:
	case XTAL_OP_XOR:
		r.type = XTAL_MSG_ATOMIC;
		r.atomic = (enum xtal_msg_atomic)(op->opcode - XTAL_OP_CAS + XTAL_MSG_CAS);
		r.operand_size = (uint8_t)op->len;
		r.rights = XTAL_MSG_RIGHT_ATOMIC;
		memcpy(r.operand, op->operand, sizeof(r.operand));
		if (op->opcode == XTAL_OP_CAS)
			memcpy(r.compare, op->compare, sizeof(r.compare));
		if (op->len < 16)
			r.operand[1] = r.compare[1] = 0;
		break;
	case XTAL_OP_SEND:
	case XTAL_OP_SEND_IMM:
	case XTAL_OP_SEND_INVALIDATE:
	case XTAL_OP_WRITE_IMM:
		xtal_send_request(p, &r);
		break;
	case XTAL_OP_NOP:
		return XTAL_UNSUPPORTED;
	}
	/* There is one index for both. */
	if (op->flags & XTAL_OP_NOTIFY && op->notify.tid == op->remote.tid &&
	    op->notify.index == op->remote.index &&
	    xtal_eid_equal(op->notify.eid, op->remote.eid)) {
		r.flags |= XTAL_MSG_NOTIFY | (op->notify.token_valid ? XTAL_MSG_NOTIFY_TOKEN : 0);
		r.notify = (struct xtal_msg_notify){ .addr = op->notify.addr,
						     .data = op->notify_data,
						     .tid = op->notify.tid,
						     .token = op->notify.token };
	}
	xtal_lock(&link->lock);
	if (atomic_load(&link->state) != XTAL_LINK_UP) {
		err = (int)link->status;
	} else {
		err = xtal_requester_submit(&link->requester, &r);
		if (!err) {
			under_way(link, p);
			p->notify_sent = r.flags & XTAL_MSG_NOTIFY;
			send_more(link, now, p->queue);
		} else if (err == -EAGAIN) {
			link->crowded = true;
			xtal_link_wait(link, p->queue, XTAL_WAIT_ROOM);
		} else {
			err = XTAL_LOCAL_OPERATION;
		}
	}
	xtal_unlock(&link->lock);
	xtal_server_answer(link->ctx, now);
	return err;
}

void xtal_messages_retire(struct xtal_link *link)
{
	xtal_lock(&link->lock);
	xtal_unlock(&link->lock);
}

void xtal_messages_sleep(struct xtal_link *link)
{
	xtal_lock(&link->lock);
	atomic_store_explicit(&link->polled_at, 0, memory_order_relaxed);
	if (atomic_load(&link->state) == XTAL_LINK_UP)
		link->carrier->hand_over(link);
	xtal_unlock(&link->lock);
}

static bool drain(struct xtal_drain *d)
{
	struct xtal_link *link = xtal_container_of(d, struct xtal_link, drain);
	uint64_t now;
	bool did = false;

	now = xtal_os_now();
	if (xtal_messages_polled(link, now) || !xtal_trylock(&link->lock))
		return false;
	if (atomic_load(&link->state) == XTAL_LINK_UP && xtal_messages_in_use(link))
		did = xtal_messages_go_on(link, now, NULL);
	xtal_unlock(&link->lock);
	return did;
}

/* Under the link's lock: nothing is open, so that the agent need not look here. It has as much to do
 * for a few busy links among a thousand as for the busy ones alone. */
static void leave_agent(struct xtal_link *link)
{
	if (link->armed)
		link->carrier->after_sleep(link);
	if (link->draining)
		xtal_agent_remove_drain(&link->drain);
	link->draining = false;
}

/* Takes the lock from whoever posts. False: its holder moves many bytes, for milliseconds maybe, and
 * needs no processor of ours spent on waiting; the next tick looks again. */
static bool lock_soon(struct xtal_link *link)
{
	for (unsigned i = 0; i < PATIENT_SPINS; i++) {
		if (xtal_trylock(&link->lock))
			return true;
		xtal_cpu_relax();
	}
	return false;
}

static bool before_sleep(struct xtal_drain *d)
{
	struct xtal_link *link = xtal_container_of(d, struct xtal_link, drain);
	bool may = true;

	if (xtal_messages_polled(link, xtal_os_now()) || !lock_soon(link))
		return true;
	if (!xtal_messages_in_use(link))
		leave_agent(link);
	else if (atomic_load(&link->state) == XTAL_LINK_UP &&
		 !xtal_messages_polled(link, xtal_os_now()))
		may = link->carrier->before_sleep(link);
	xtal_unlock(&link->lock);
	return may;
}

static void after_sleep(struct xtal_drain *d)
{
	struct xtal_link *link = xtal_container_of(d, struct xtal_link, drain);

	if (xtal_messages_polled(link, xtal_os_now()))
		return; /* whoever polls does it himself */
	/* Somebody is at it, and perhaps waits for this processor: it may stay armed. */
	if (!xtal_trylock(&link->lock))
		return;
	if (link->armed)
		link->carrier->after_sleep(link);
	xtal_unlock(&link->lock);
}

void xtal_messages_open(struct xtal_link *link)
{
	link->drain.drain = drain;
	link->drain.before_sleep = before_sleep;
	link->drain.after_sleep = after_sleep;
}

void xtal_messages_close(struct xtal_link *link)
{
	if (link->draining)
		xtal_agent_remove_drain(&link->drain);
	link->draining = false;
}

void xtal_messages_fail(struct xtal_link *link, uint32_t status)
{
	struct xtal_requester_effect e;

	if (!link->requester.config.slots)
		return; /* it never came up */
	link->carrier->cancel(link);
	while (xtal_requester_fail_next(&link->requester, (enum xtal_status)status, &e)) {
		if (e.finished)
			xtal_messages_finish((struct xtal_pending *)(uintptr_t)e.cookie, e.status,
					     NULL);
	}
}

uint64_t xtal_messages_moved(struct xtal_link *link)
{
	uint64_t at;

	xtal_lock(&link->lock);
	at = link->requester.progress_at;
	xtal_unlock(&link->lock);
	return at;
}

bool xtal_messages_lasts(const struct xtal_link *link)
{
	return link->carrier->lasts;
}

bool xtal_messages_overdue(struct xtal_link *link, uint64_t now)
{
	bool end = false;

	xtal_lock(&link->lock);
	if (atomic_load(&link->state) == XTAL_LINK_UP && xtal_messages_in_use(link))
		end = link->carrier->overdue(link, now);
	xtal_unlock(&link->lock);
	return end;
}
