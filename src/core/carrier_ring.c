/* SPDX-License-Identifier: MIT */
/*
 * The carrier of one host, the initiator's half: messages in the rings that the owner shares.
 * The handshake is connect.c's.
 */
#include "core/carrier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/connect.h"
#include "core/link.h"
#include "core/log.h"
#include "core/messages.h"
#include "core/queue_impl.h"
#include "os/sock.h"
#include "os/thread.h"
#include "wire/short.h"
#include "xtal.h"

/* How long what the owner has begun may take once its operation is overdue. */
#define PATIENCE_NS 100000000u

static void ring_doorbell(struct xtal_link *link)
{
	xtal_os_nudge(link->sock.fd);
}

/* A long write is answered at its end only; until then the frames that the
 * owner takes from the ring are the sign that it moves. */
static void look_at_ring(struct xtal_link *link, uint64_t now)
{
	uint64_t at;

	if (xtal_ring_consumed(&link->ring, &at) || at == link->consumed)
		return;
	link->consumed = at;
	/* At least one more than was known. */
	xtal_requester_progress(&link->requester, link->requester.acked + 1, now);
}

/* Without memory for them all SENDs go the long way. */
static void need_models(struct xtal_link *link)
{
	if (xtal_unlikely(!link->models))
		link->models = calloc(1, sizeof(*link->models));
}

/* Puts the next frame into the ring, but does not publish it. 0, -EAGAIN (no room) or a status. */
static int put_frame(struct xtal_link *link, struct xtal_pending *p,
		     const struct xtal_requester_frame *frame)
{
	const struct xtal_msg *m = &frame->msg;
	uint8_t data[XTAL_SHORT_PAYLOAD];
	struct xtal_ring_slot slot;
	uint32_t status;

	if (m->type == XTAL_MSG_SEND && m->total <= sizeof(data)) {
		need_models(link);
		if (xtal_ring_reserve_short(&link->ring, &slot))
			return -EAGAIN;
		status = xtal_messages_copy(link, p, 0, data, m->payload, false);
		if (status || xtal_short_encode(link->models, m, data, slot.header))
			return (int)status;
	}
	if (xtal_ring_reserve(&link->ring, m->payload, &slot))
		return -EAGAIN;
	status = xtal_messages_copy(link, p, frame->local_offset, slot.payload, m->payload, false);
	if (status)
		return (int)status;
	xtal_msg_encode(m, slot.header);
	xtal_short_note(link->models, m);
	return 0;
}

static void ring_send(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	struct xtal_requester_frame frame;
	struct xtal_ring_slot slot;
	bool wake = false;

	while (xtal_requester_next_frame(&link->requester, now, &frame)) {
		struct xtal_pending *p = (struct xtal_pending *)(uintptr_t)frame.cookie;
		int status = put_frame(link, p, &frame);

		if (status == -EAGAIN)
			break;
		if (status) {
			bool silent = frame.local_offset == 0;

			/* No answer comes to a write that ends in the middle: the one to a ping
			 * gives its place in the window back. */
			link->ping |= !silent;
			xtal_requester_abandon(&link->requester, frame.cookie, silent);
			xtal_messages_finish(p, (uint32_t)status, mine);
			xtal_messages_end_orphans(link, mine);
			continue;
		}
		xtal_requester_sent(&link->requester);
		wake |= xtal_ring_publish(&link->ring);
	}
	if (link->ping && !xtal_ring_reserve(&link->ring, 0, &slot)) {
		xtal_requester_ping(&link->requester, now, &frame.msg);
		xtal_msg_encode(&frame.msg, slot.header);
		wake |= xtal_ring_publish(&link->ring);
		link->ping = false;
	}
	if (wake)
		ring_doorbell(link);
	look_at_ring(link, now); /* last: the owner's word comes from its core */
}

static bool ring_send_short(struct xtal_link *link, const struct xtal_request *request,
			    const uint8_t *data, uint64_t now)
{
	struct xtal_ring_slot slot;
	struct xtal_msg m;

	need_models(link);
	/* There is room for either form. */
	if (link->ping || !xtal_ring_has_room(&link->ring, request->len) ||
	    !xtal_requester_submit_sent(&link->requester, request, now, &m))
		return false;
	if (xtal_ring_reserve_short(&link->ring, &slot) ||
	    !xtal_short_encode(link->models, &m, data, slot.header)) {
		xtal_ring_reserve(&link->ring, request->len, &slot);
		memcpy(slot.payload, data, request->len);
		xtal_msg_encode(&m, slot.header);
		xtal_short_note(link->models, &m);
	}
	if (xtal_ring_publish(&link->ring))
		ring_doorbell(link);
	return true;
}

/* One answer; brief: in its short form. Errors: -EPROTO. */
static int take_answer(struct xtal_link *link, bool brief, const uint8_t *header,
		       const uint8_t *payload, size_t len, uint64_t now,
		       const struct xtal_queue *mine)
{
	struct xtal_requester_effect e;
	struct xtal_pending *p;
	struct xtal_msg m;
	uint32_t status = XTAL_OK;
	uint64_t old[2];
	const char *why = "";
	int err = brief ? xtal_short_decode(link->models, header, &m, &payload, &why)
			: xtal_msg_decode_frame(header, len, &m, &why);

	if (!err)
		err = xtal_requester_receive(&link->requester, &m, now, &e, &why);
	if (err) {
		xtal_log(XTAL_LOG_WARNING, "xtal", "link %u: bad answer: %s", link->id, why);
		return err;
	}
	if (e.ignored)
		return 0;
	p = (struct xtal_pending *)(uintptr_t)e.cookie;
	atomic_store_explicit(&p->progress, now, memory_order_relaxed);
	if (e.len)
		status = xtal_messages_copy(link, p, e.offset, (void *)(uintptr_t)payload, e.len,
					    true);
	if (status) {
		if (!e.finished)
			xtal_requester_abandon(&link->requester, e.cookie, false);
		xtal_messages_finish(p, status, mine);
		return 0;
	}
	if (!e.finished)
		return 0;
	if (m.atomic && !e.status) {
		old[0] = e.old[0];
		old[1] = e.old[1];
		e.status = xtal_messages_copy(link, p, 0, old, p->op.len, true);
	}
	if (e.status == XTAL_NOT_READY)
		p->pause_ns = e.old[0];
	xtal_messages_finish(p, e.status, mine);
	return 0;
}

static bool ring_receive(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine)
{
	const uint8_t *header, *payload;
	size_t len;
	bool any = false;
	int n;

	while ((n = xtal_ring_peek(&link->ring, &header, &payload, &len)) > 0) {
		int err = take_answer(link, n == 2, header, payload, len, now, mine);

		if (xtal_ring_release(&link->ring))
			ring_doorbell(link);
		any = true;
		if (err) {
			n = err;
			break;
		}
	}
	if (n < 0)
		xtal_link_fail_later(link, XTAL_UNREACHABLE,
				     "the owner broke the message protocol");
	return any;
}

static bool ring_before_sleep(struct xtal_link *link)
{
	struct xtal_requester_frame frame;
	bool more = xtal_requester_next_frame(&link->requester, 0, &frame);

	/* Frames to send: hear of room too; the owner's release rings our doorbell. */
	link->armed = true;
	return xtal_ring_prepare_sleep(&link->ring) &&
	       ((!more && !link->ping) ||
		xtal_ring_prepare_room(&link->ring, more ? frame.msg.payload : 0));
}

static void ring_after_sleep(struct xtal_link *link)
{
	link->armed = false;
	xtal_ring_cancel_sleep(&link->ring);
}

static void ring_hand_over(struct xtal_link *link)
{
	(void)link;
	/* It looks at the rings, and arms them before it sleeps. */
	xtal_os_event_signal(xtal_agent_doorbell());
}

static bool ring_overdue(struct xtal_link *link, uint64_t now)
{
	struct xtal_requester_expired late;

	if (link->patience)
		return now > link->patience;
	if (!xtal_requester_next_expired(&link->requester, now, &late))
		return false;
	/* What the owner has begun may still be writing: wait a little more. The link ends in any
	 * case: others' frames are taken back too. */
	link->patience = now + PATIENCE_NS;
	return !xtal_ring_cancel_all(&link->ring);
}

static void ring_cancel(struct xtal_link *link)
{
	xtal_ring_cancel_all(&link->ring);
}

const struct xtal_carrier xtal_carrier_ring = {
	.path = XTAL_PATH_RING,
	.connect = xtal_connect_run,
	.ask = xtal_connect_ask,
	.stop = xtal_connect_stop,
	.close = xtal_connect_close,
	.send = ring_send,
	.send_short = ring_send_short,
	.receive = ring_receive,
	.before_sleep = ring_before_sleep,
	.after_sleep = ring_after_sleep,
	.hand_over = ring_hand_over,
	.overdue = ring_overdue,
	.cancel = ring_cancel,
};
