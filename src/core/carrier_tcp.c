/* SPDX-License-Identifier: MIT */
/*
 * The carrier between hosts, the initiator's half: a session whose connections are made by the
 * agent, and whose bytes are moved by whoever posts or polls, or by the agent when nobody does.
 * While operations are open a lost connection is replaced; while none are, the link lies idle
 * without one. Payload goes from and to user memory directly, under the announcement of the
 * link's lane.
 */
#include "core/carrier_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/context_impl.h"
#include "core/link.h"
#include "core/messages.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "xtal.h"

#define LOOK         (4u * 1024) /* bytes received at once while headers are expected */
#define DIRECT_LEAST 2048u       /* payload that is received straight into user memory */
#define FULL_NS      20000u /* a full socket is left alone so long: it takes more at once then */
#define ROUNDS       64u    /* receives in one go */
#define LOOKS        3u     /* of a poller that waits for one answer only */
#define SENDS        4u     /* sends in one go: answers, and others, have their turn in between */

_Static_assert(XTAL_MSG_PIECE <= XTAL_TCP_VOID, "any frame may lose its operation");

/*
 * Ends an operation without an answer. The header of a frame whose payload waits may be out: the
 * owner must not take other bytes for it, so that the connection ends too. False: it did.
 */
static bool give_up(struct xtal_tcp_link *t, uint64_t cookie, uint32_t status, uint64_t now,
		    const struct xtal_queue *mine)
{
	if (!xtal_requester_abandon(&t->link->requester, cookie, false))
		xtal_messages_finish((struct xtal_pending *)(uintptr_t)cookie, status, mine);
	xtal_messages_end_orphans(t->link, mine);
	if (!xtal_tcp_holds(&t->stream, cookie))
		return true;
	xtal_tcp_link_hang_up(t, "an operation ended while it was being sent", now);
	return false;
}

/*
 * The operation cannot be sent to its end. What went out of it lies in the connection yet: it has failed
 * once that has been replaced, when the owner has dropped all it had not read of it.
 */
static void doom(struct xtal_tcp_link *t, uint64_t cookie, uint32_t status, uint64_t now)
{
	((struct xtal_pending *)(uintptr_t)cookie)->doomed = status;
	t->doomed = true;
	xtal_tcp_link_hang_up(t, "an operation ended while it was being sent", now);
}

/* The connection has been replaced. Before anything is sent. */
static void end_doomed(struct xtal_tcp_link *t, const struct xtal_queue *mine)
{
	const struct xtal_requester *r = &t->link->requester;

	for (uint64_t i = r->head; t->doomed && i != r->tail; i++) {
		const struct xtal_requester_slot *s = &t->link->slots[i % XTAL_LINK_WINDOW];
		struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)s->request.cookie;

		if (s->state != XTAL_SLOT_OPEN || !p->doomed)
			continue;
		xtal_requester_abandon(&t->link->requester, s->request.cookie, false);
		xtal_messages_finish(p, p->doomed, mine);
	}
	t->doomed = false;
}

/* Names the operation's local memory in the link's lane, until leave(). Errors: -EFAULT. */
static int enter(struct xtal_link *link, const struct xtal_pending *p)
{
	if (p->op.flags & XTAL_OP_OWN_PAYLOAD)
		return 0;
	return xtal_registry_enter_local(&link->ctx->registry, link->ctx->number, p->op.local,
					 p->op.len, &link->lane.local)
		       ? -EFAULT
		       : 0;
}

/* Release: the memory was touched before. Partner: xtal_lanes_busy(). */
static void leave(struct xtal_link *link)
{
	atomic_store_explicit(&link->lane.local, 0, memory_order_release);
}

/* ---- Sending ---- */

/* The operation whose bytes are being sent. */
struct pinned {
	struct xtal_link *link;
	const struct xtal_pending *p;
};

static int pin(void *arg, const struct xtal_tcp_frame *f, const void **base)
{
	struct pinned *pinned = arg;
	/* It is open: none ends while a frame waits that needs it (give_up, answer). */
	const struct xtal_pending *p = (const struct xtal_pending *)(uintptr_t)f->tag[0];
	int err = 0;

	if (!pinned->p)
		err = enter(pinned->link, p);
	else if (pinned->p != p) /* one at a time: it may not be waited for a second one */
		err = -EAGAIN;
	if (err)
		return err;
	pinned->p = p;
	*base = (const void *)(uintptr_t)(p->op.local + f->tag[1]);
	return 0;
}

static void unpin(void *arg)
{
	struct pinned *pinned = arg;

	leave(pinned->link);
	pinned->p = NULL;
}

/* Takes the requester's frames into the connection as long as there is room. */
static void push(struct xtal_tcp_link *t, uint64_t now)
{
	struct xtal_session_frame f;

	while (xtal_tcp_room(&t->stream) && xtal_initiator_next_frame(&t->session, now, &f)) {
		bool alone = xtal_tcp_idle(&t->stream);
		struct xtal_tcp_frame *out = xtal_tcp_reserve(&t->stream);
		struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)f.cookie;

		if (!out)
			return;
		memcpy(out->header, f.header, sizeof(out->header));
		out->payload = f.payload;
		/* Short ones behind others are copied, so that many go in one system call; our own
		 * in any case, as one piece costs less than two. */
		if (p && p->op.flags & XTAL_OP_OWN_PAYLOAD)
			alone = false;
		out->copied = !alone && f.payload && f.payload <= XTAL_TCP_SMALL &&
			      !xtal_messages_copy(t->link, p, f.local_offset, out->small, f.payload,
						  false);
		out->tag[0] = f.cookie;
		out->tag[1] = f.local_offset;
		xtal_tcp_commit(&t->stream);
		xtal_initiator_sent(&t->session, now);
	}
}

static void tcp_send(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	struct xtal_tcp_link *t = link->tcp;
	struct pinned pinned = { .link = link };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_checked_get, .unpin = unpin, .arg = &pinned
	};
	int err = 0;

	(void)mine; /* nothing ends here: see doom() */
	if (t->hung || t->connecting)
		return;
	if (t->stream.fd < 0) {
		if (xtal_initiator_wants_connection(&t->session, now))
			xtal_link_post(link);
		return;
	}
	if (now < t->full_until)
		return;
	t->unsent = false;
	for (unsigned i = 0; i < SENDS; i++) {
		push(t, now);
		if (xtal_tcp_idle(&t->stream))
			return;
		err = xtal_tcp_flush(&t->stream, &pins);
		if (err)
			break;
	}
	t->unsent = !err;
	if (!err)
		return;
	if (err == -EFAULT)
		doom(t, xtal_tcp_oldest(&t->stream)->tag[0], XTAL_LOCAL_ACCESS, now);
	else if (err == -EAGAIN)
		t->full_until = now + FULL_NS;
	else
		xtal_tcp_link_hang_up(t, xtal_tcp_reason(&t->stream, err), now);
}

/* ---- Receiving ---- */

static void answer(struct xtal_tcp_link *t, const struct xtal_requester_effect *e, uint64_t now,
		   const struct xtal_queue *mine)
{
	struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)e->cookie;
	uint32_t status = e->status;
	uint64_t old[2] = { e->old[0], e->old[1] };

	if (e->ignored)
		return;
	atomic_store_explicit(&p->progress, now, memory_order_relaxed);
	if (!e->finished)
		return;
	/* Refused, it is answered before all of it is sent. Its owner skips the rest, which must come all
	 * the same; but p, and the memory it names, may be another operation's by then. */
	xtal_tcp_disown(&t->stream, e->cookie);
	if (!status && xtal_op_is_atomic(p->op.opcode))
		status = xtal_messages_copy(t->link, p, 0, old, p->op.len, true);
	if (status == XTAL_NOT_READY)
		p->pause_ns = old[0];
	xtal_messages_finish(p, status, mine);
}

/* False: the connection is over. */
static bool handle(struct xtal_tcp_link *t, const struct xtal_initiator_event *ev, uint64_t now,
		   const struct xtal_queue *mine)
{
	struct xtal_link *link = t->link;

	switch (ev->kind) {
	case XTAL_INITIATOR_MORE:
	case XTAL_INITIATOR_PAYLOAD:
		return true;
	case XTAL_INITIATOR_UP:
		end_doomed(t, mine);
		xtal_messages_end_orphans(link, mine);
		return xtal_tcp_link_up(t, now);
	case XTAL_INITIATOR_ANSWER:
		answer(t, &ev->effect, now, mine);
		return true;
	case XTAL_INITIATOR_HANG_UP:
		xtal_tcp_link_hang_up(t, ev->why, now);
		return false;
	case XTAL_INITIATOR_ENDED:
		xtal_link_fail_later(link, ev->status, ev->why);
		xtal_tcp_link_hang_up(t, ev->why, now);
		return false;
	}
	return false;
}

/* Bytes that were received. False: the connection is over. */
static bool take(struct xtal_tcp_link *t, const uint8_t *in, size_t len, uint64_t now,
		 const struct xtal_queue *mine)
{
	size_t at = 0;
	bool more = true;

	while (at < len || more) {
		struct xtal_initiator_event ev = { .kind = XTAL_INITIATOR_MORE };
		uint64_t cookie, offset;
		uint64_t want = xtal_initiator_payload(&t->session, &cookie, &offset);

		if (want && at < len) {
			struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)cookie;
			size_t n = want < len - at ? (size_t)want : len - at;

			if (xtal_messages_copy(t->link, p, offset, (void *)(uintptr_t)(in + at), n,
					       true)) {
				/* What is left of it is nobody's. */
				if (!give_up(t, cookie, XTAL_LOCAL_ACCESS, now, mine))
					return false;
				continue;
			}
			at += n;
			xtal_initiator_placed(&t->session, n, now, &ev);
		} else if (want) {
			return true;
		} else {
			at += xtal_initiator_take(&t->session, in + at, len - at, now, &ev);
		}
		more = ev.kind != XTAL_INITIATOR_MORE;
		if (!handle(t, &ev, now, mine))
			return false;
	}
	return true;
}

/* Receives payload into user memory, and what comes behind it to spill. */
static int64_t receive_direct(struct xtal_tcp_link *t, uint64_t want, uint64_t cookie,
			      uint64_t offset, uint8_t *spill)
{
	struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)cookie;
	struct xtal_os_iov iov[2] = { { (void *)(uintptr_t)(p->op.local + offset), want },
				      { spill, XTAL_MSG_HEADER } };
	int64_t n = enter(t->link, p);

	if (!n)
		n = xtal_tcp_receive(&t->stream, iov, 2);
	leave(t->link);
	return n;
}

/* One receive. False: nothing more now. */
static bool receive_some(struct xtal_tcp_link *t, uint64_t now, const struct xtal_queue *mine)
{
	uint8_t look[LOOK], *in = look;
	struct xtal_initiator_event ev;
	uint64_t cookie, offset, want = xtal_initiator_payload(&t->session, &cookie, &offset);
	bool direct = xtal_tcp_direct(&t->stream), full;
	int64_t n;

	if (want >= DIRECT_LEAST && direct) {
		n = receive_direct(t, want, cookie, offset, look);
		if (n == -EFAULT)
			return give_up(t, cookie, XTAL_LOCAL_ACCESS, now, mine);
		full = n == (int64_t)(want + XTAL_MSG_HEADER);
	} else {
		uint8_t *inbox = xtal_tcp_inbox(&t->stream, want >= DIRECT_LEAST);
		struct xtal_os_iov iov = { inbox ? inbox : look, inbox ? XTAL_TCP_INBOX : LOOK };

		in = iov.base;
		want = 0;
		n = xtal_tcp_receive(&t->stream, &iov, 1);
		full = n == (int64_t)iov.len || (n > 0 && xtal_tcp_buffered(&t->stream));
	}
	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		if (t->session.state == XTAL_SESSION_UP)
			t->doubt = XTAL_TCP_DOUBT;
		xtal_tcp_link_hang_up(
			t, n ? xtal_tcp_reason(&t->stream, (int)n) : "the owner closed it", now);
		return false;
	}
	/* Leases count from when a stamp came. We may have been stopped since the caller looked at the
	 * clock: they would outlast their operations by that. */
	now = xtal_os_now();
	if (want) {
		uint64_t got = (uint64_t)n < want ? (uint64_t)n : want;

		xtal_initiator_placed(&t->session, got, now, &ev);
		if (!handle(t, &ev, now, mine))
			return false;
		n -= (int64_t)got;
	}
	return take(t, in, (size_t)n, now, mine) && full;
}

/* How often a socket is looked at in which nothing is. Whoever waits for one answer, and came here last
 * time too, has nothing better to do; what lies between two polls takes half as long as a look. */
static unsigned looks(const struct xtal_link *link, const struct xtal_queue *mine)
{
	static _Thread_local const struct xtal_link *last;
	bool again = mine && last == link;

	last = link;
	return again && link->requester.tail - link->requester.head == 1 ? LOOKS : 1;
}

static bool tcp_receive(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	struct xtal_tcp_link *t = link->tcp;
	struct xtal_initiator_event ev;
	uint64_t heard = t->session.heard_at;
	unsigned left = looks(link, mine);

	if (t->hung || t->connecting)
		return false;
	for (unsigned i = 0; i < ROUNDS && left && t->stream.fd >= 0; i++)
		if (!receive_some(t, now, mine))
			left = t->session.heard_at == heard ? left - 1 : 0;
	if (now >= xtal_initiator_next_time(&t->session)) {
		xtal_initiator_tick(&t->session, now, &ev);
		handle(t, &ev, now, mine);
	}
	if (t->session.heard_at == heard)
		return false;
	if (!xtal_agent_is_me())
		xtal_tcp_link_beaten(t);
	return true;
}

/* Leases make it sound: what has not been executed by now never is. So each operation ends by
 * itself, and the link goes on. */
static bool tcp_overdue(struct xtal_link *link, uint64_t now)
{
	struct xtal_requester_expired late;

	while (xtal_requester_next_expired(&link->requester, now, &late)) {
		struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)late.cookie;

		give_up(link->tcp, late.cookie, p->doomed ? p->doomed : XTAL_UNREACHABLE, now,
			NULL);
	}
	return false;
}

/* The whole address space: the target decides, at each request. */
static int tcp_grant(struct xtal_link *link, const struct xtal_remote *remote, uint64_t len,
		     struct xtal_grant **out)
{
	static const _Atomic uint64_t for_ever = XTAL_SEG_LIVE;
	struct xtal_grant *g;

	if (remote->addr + len < remote->addr)
		return XTAL_REMOTE_ACCESS;
	g = calloc(1, sizeof(*g));
	if (!g)
		return XTAL_LOCAL_OPERATION;
	*g = (struct xtal_grant){ .refs = 1,
				  .link = link,
				  .lo = 0,
				  .hi = UINT64_MAX,
				  .token = remote->token,
				  .index = remote->index,
				  .token_valid = remote->token_valid,
				  .rights = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC,
				  .word = XTAL_SEG_LIVE,
				  .slot_word = &for_ever,
				  .reach = { .kind = XTAL_REACH_MESSAGE },
				  .path = XTAL_PATH_TCP };
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	*out = g;
	return 0;
}

const struct xtal_carrier xtal_carrier_tcp = {
	.path = XTAL_PATH_TCP,
	.lasts = true,
	.connect = xtal_tcp_link_drive,
	.ask = xtal_tcp_link_drive,
	.stop = xtal_tcp_link_stop,
	.close = xtal_tcp_link_close,
	.grant = tcp_grant,
	.send = tcp_send,
	.receive = tcp_receive,
	.before_sleep = xtal_tcp_link_arm,
	.after_sleep = xtal_tcp_link_disarm,
	.hand_over = xtal_tcp_link_hand_over,
	.overdue = tcp_overdue,
	.cancel = xtal_tcp_link_cancel,
};
