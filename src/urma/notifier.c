/* SPDX-License-Identifier: MIT */
/* Notifiers: imports and binds are local and done at once; the notices of them wait here. */
#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "core/event.h"
#include "queue.h"

struct notice {
	struct notice *next;
	urma_notify_t told;
};

struct ub_notifier {
	urma_notifier_t pub;
	struct ub_node node;
	struct ub_context *ctx;
	struct xtal_lock lock;
	struct notice *first, **last;
	bool ended; /* who waits shall not */
};

static struct ub_notifier *notifier_of(const urma_notifier_t *notifier)
{
	return (struct ub_notifier *)(uintptr_t)notifier; /* pub comes first */
}

urma_notifier_t *urma_create_notifier(urma_context_t *ctx)
{
	struct ub_notifier *n;
	int error;

	if (!ub_check("urma_create_notifier", ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	n = calloc(1, sizeof(*n));
	error = n ? xtal_event_open(&n->pub.fd) : -ENOMEM;
	if (error) {
		free(n);
		ub_refuse("urma_create_notifier: %s", ub_reason(error));
		return ub_null(EIO);
	}
	n->pub.urma_ctx = ctx;
	n->last = &n->first;
	n->ctx = ub_context_of(ctx);
	ub_context_hold(n->ctx);
	ub_enlist(&n->node, &n->pub, UB_NOTIFIER);
	return &n->pub;
}

urma_status_t urma_delete_notifier(urma_notifier_t *notifier)
{
	struct ub_notifier *n = notifier_of(notifier);
	struct ub_context *c;

	if (!ub_check("urma_delete_notifier", notifier, UB_NOTIFIER) || !ub_delist(&n->node))
		return URMA_EINVAL;
	xtal_lock(&n->lock);
	n->ended = true;
	xtal_event_set(n->pub.fd, true);
	xtal_unlock(&n->lock);
	ub_drain(&n->node);
	c = n->ctx;
	while (n->first) {
		struct notice *next = n->first->next;

		free(n->first);
		n->first = next;
	}
	xtal_event_close(n->pub.fd);
	free(n);
	ub_context_release(c);
	return URMA_SUCCESS;
}

static void put(struct ub_notifier *n, struct notice *notice)
{
	notice->next = NULL;
	xtal_lock(&n->lock);
	*n->last = notice;
	n->last = &notice->next;
	xtal_event_set(n->pub.fd, true);
	xtal_unlock(&n->lock);
}

/* Or -1: it is being deleted. */
static int take(struct ub_notifier *n, uint32_t cnt, urma_notify_t *notify)
{
	uint32_t taken = 0;

	xtal_lock(&n->lock);
	if (n->ended) {
		xtal_unlock(&n->lock);
		ub_refuse("urma_wait_notify: the notifier was deleted");
		return -1;
	}
	while (taken < cnt && n->first) {
		struct notice *first = n->first;

		notify[taken++] = first->told;
		n->first = first->next;
		free(first);
	}
	if (!n->first) {
		n->last = &n->first;
		xtal_event_set(n->pub.fd, false);
	}
	xtal_unlock(&n->lock);
	return (int)taken;
}

static int wait_notify(struct ub_notifier *n, uint32_t cnt, urma_notify_t *notify, int timeout)
{
	uint64_t end = xtal_clock() + (timeout > 0 ? (uint64_t)timeout * 1000000 : 0);
	int left = timeout;

	if (cnt > INT32_MAX)
		cnt = INT32_MAX;
	while (cnt) {
		int taken = take(n, cnt, notify);
		uint64_t now;

		if (taken || !left)
			return taken;
		if (xtal_event_wait(n->pub.fd, left, ub_leave_cancelled, &n->node) < 0)
			return -1;
		now = xtal_clock();
		if (timeout > 0) /* another thread may have been faster */
			left = now < end ? (int)((end - now) / 1000000) + 1 : 0;
	}
	return 0;
}

int urma_wait_notify(urma_notifier_t *notifier, uint32_t cnt, urma_notify_t *notify, int timeout)
{
	struct ub_node *inside;
	int taken;

	if (!notify) {
		ub_refuse("urma_wait_notify: notify is NULL");
		return -1;
	}
	inside = ub_enter("urma_wait_notify", notifier, UB_NOTIFIER);
	if (!inside)
		return -1;
	taken = wait_notify(notifier_of(notifier), cnt, notify, timeout);
	ub_leave(inside);
	return taken;
}

urma_status_t urma_ack_notify(urma_context_t *ctx, uint32_t cnt, urma_notify_t *notify)
{
	(void)cnt;
	if (!ub_check("urma_ack_notify", ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (notify)
		return URMA_SUCCESS;
	ub_refuse("urma_ack_notify: notify is NULL");
	return URMA_EINVAL;
}

urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
					     const urma_token_t *token_value, uint64_t user_ctx,
					     int timeout)
{
	struct ub_notifier *n = notifier_of(notifier);
	urma_target_jetty_t *target;
	struct notice *notice;
	urma_rjetty_t copy;

	(void)timeout;
	if (!ub_check("urma_import_jetty_async", notifier, UB_NOTIFIER))
		return ub_null(EINVAL);
	if (!rjetty) {
		ub_refuse("urma_import_jetty_async: rjetty is NULL");
		return ub_null(EINVAL);
	}
	notice = malloc(sizeof(*notice));
	if (!notice) {
		ub_refuse("urma_import_jetty_async: no memory");
		return ub_null(ENOMEM);
	}
	copy = *rjetty;
	target = ub_import_rjetty("urma_import_jetty_async", &n->ctx->pub, &copy, token_value);
	if (!target) {
		free(notice);
		return NULL;
	}
	notice->told = (urma_notify_t){ .type = URMA_IMPORT_JETTY_NOTIFY,
					.status = URMA_SUCCESS,
					.user_ctx = user_ctx,
					.tjetty = target };
	put(n, notice);
	return target;
}

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty)
{
	return ub_unimport("urma_unimport_jetty_async", tjetty);
}

urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
				    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout)
{
	struct notice *notice;

	(void)timeout;
	if (!ub_check("urma_bind_jetty_async", notifier, UB_NOTIFIER) ||
	    !ub_check("urma_bind_jetty_async", jetty, UB_JETTY) ||
	    !ub_check("urma_bind_jetty_async", tjetty, UB_TARGET))
		return URMA_EINVAL;
	notice = malloc(sizeof(*notice));
	if (!notice) {
		ub_refuse("urma_bind_jetty_async: no memory");
		return URMA_ENOMEM;
	}
	notice->told = (urma_notify_t){ .type = URMA_BIND_JETTY_NOTIFY,
					.status = ub_bind("urma_bind_jetty_async", jetty, tjetty),
					.user_ctx = user_ctx,
					.jetty = jetty };
	put(notifier_of(notifier), notice);
	return URMA_SUCCESS;
}

urma_status_t urma_unbind_jetty_async(urma_jetty_t *jetty)
{
	return ub_unbind("urma_unbind_jetty_async", jetty);
}
