/* SPDX-License-Identifier: MIT */
/* Asynchronous events: the core tells numbers, programs get objects. */
#include <errno.h>
#include <string.h>

#include "core/event.h"
#include "queue.h"

/* Which object of a context an event of the core is about. */
struct wanted {
	const urma_context_t *ctx;
	const struct xtal_async_event *event;
	urma_async_event_t *out;
};

static bool matches(struct ub_node *node, void *arg)
{
	const struct wanted *w = arg;
	const uint32_t id = w->event->object_id;
	urma_async_event_t *out = w->out;
	struct ub_acks *acks = NULL;

	switch (w->event->type) {
	case XTAL_ASYNC_QUEUE_ERROR:
		if (node->kind == UB_JETTY && ub_jetty_of(node->pub)->send.id == id &&
		    ub_jetty_of(node->pub)->pub.urma_ctx == w->ctx) {
			out->event_type = URMA_EVENT_JETTY_ERR;
			out->element.jetty = &ub_jetty_of(node->pub)->pub;
			acks = &ub_jetty_of(node->pub)->acks;
		} else if (node->kind == UB_JFS && ub_jfs_of(node->pub)->send.id == id &&
			   ub_jfs_of(node->pub)->pub.urma_ctx == w->ctx) {
			out->event_type = URMA_EVENT_JFS_ERR;
			out->element.jfs = &ub_jfs_of(node->pub)->pub;
			acks = &ub_jfs_of(node->pub)->acks;
		}
		break;
	case XTAL_ASYNC_RECEIVE_LIMIT:
		if (node->kind == UB_JFR && ub_jfr_of(node->pub)->pub.jfr_id.id == id &&
		    ub_jfr_of(node->pub)->pub.urma_ctx == w->ctx) {
			out->event_type = URMA_EVENT_JFR_LIMIT;
			out->element.jfr = &ub_jfr_of(node->pub)->pub;
			acks = &ub_jfr_of(node->pub)->acks;
		}
		break;
	case XTAL_ASYNC_CQ_ERROR:
		if (node->kind == UB_JFC && ub_jfc_of(node->pub)->pub.jfc_id.id == id &&
		    ub_jfc_of(node->pub)->pub.urma_ctx == w->ctx) {
			out->event_type = URMA_EVENT_JFC_ERR;
			out->element.jfc = &ub_jfc_of(node->pub)->pub;
			acks = &ub_jfc_of(node->pub)->acks;
		}
		break;
	case XTAL_ASYNC_DEVICE_GONE:
		break;
	}
	if (acks)
		atomic_fetch_add(&acks->taken, 1); /* under the lock: it cannot be deleted now */
	return acks != NULL;
}

/* False: what it was about is gone. */
static bool translate(urma_context_t *ctx, const struct xtal_async_event *event,
		      urma_async_event_t *out)
{
	struct wanted w = { .ctx = ctx, .event = event, .out = out };

	memset(out, 0, sizeof(*out));
	out->urma_ctx = ctx;
	if (event->type == XTAL_ASYNC_DEVICE_GONE) {
		out->event_type = URMA_EVENT_DEV_FATAL;
		return true;
	}
	return ub_each(matches, &w);
}

static urma_status_t get_event(urma_context_t *ctx, urma_async_event_t *event,
			       struct ub_node *inside)
{
	struct xtal_async_event got;

	for (;;) {
		bool waits = xtal_event_blocks(ctx->async_fd);
		int n = xtal_context_wait_async(ub_context_of(ctx)->core, waits ? -1 : 0, &got,
						ub_leave_cancelled, inside);

		if (n > 0 && translate(ctx, &got, event))
			return URMA_SUCCESS;
		if (n == -ESHUTDOWN)
			ub_refuse("urma_get_async_event: the context was deleted");
		if (n < 0 || (n == 0 && !waits))
			return URMA_FAIL;
	}
}

urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event)
{
	struct ub_node *inside;
	urma_status_t status;

	if (!event) {
		ub_refuse("urma_get_async_event: event is NULL");
		return URMA_EINVAL;
	}
	inside = ub_enter("urma_get_async_event", ctx, UB_CONTEXT);
	if (!inside)
		return URMA_EINVAL;
	status = get_event(ctx, event, inside);
	ub_leave(inside);
	return status;
}

void urma_ack_async_event(urma_async_event_t *event)
{
	if (!event)
		return;
	switch ((int)event->event_type) {
	case URMA_EVENT_JETTY_ERR:
		__atomic_fetch_add(&event->element.jetty->async_events_acked, 1, __ATOMIC_RELAXED);
		ub_acks_ack(&ub_jetty_of(event->element.jetty)->acks);
		break;
	case URMA_EVENT_JFS_ERR:
		__atomic_fetch_add(&event->element.jfs->async_events_acked, 1, __ATOMIC_RELAXED);
		ub_acks_ack(&ub_jfs_of(event->element.jfs)->acks);
		break;
	case URMA_EVENT_JFC_ERR:
		__atomic_fetch_add(&event->element.jfc->async_events_acked, 1, __ATOMIC_RELAXED);
		ub_acks_ack(&ub_jfc_of(event->element.jfc)->acks);
		break;
	case URMA_EVENT_JFR_LIMIT:
		__atomic_fetch_add(&event->element.jfr->async_events_acked, 1, __ATOMIC_RELAXED);
		ub_acks_ack(&ub_jfr_of(event->element.jfr)->acks);
		break;
	}
}
