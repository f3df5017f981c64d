/* SPDX-License-Identifier: MIT */
/* One small read over a link's carrier, beside the queue's own operations; see probe.h. */
#include "core/probe.h"

#include <errno.h>
#include <stdio.h>

#include "core/carrier.h"
#include "core/link.h"
#include "core/messages.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "xtal.h"

/* How long an owner that lives may take at most: its agent answers in microseconds. */
#define LIMIT_NS 1000000000u

/* 0, -EAGAIN while the window is full, or the status that the link ended with. */
static int submit(struct xtal_link *link, struct xtal_pending *p)
{
	struct xtal_request r = {
		.cookie = (uintptr_t)p,
		.type = XTAL_MSG_READ,
		.addr = p->op.remote.addr,
		.len = p->op.len,
		.token = p->op.remote.token,
		.tid = p->op.remote.tid,
		.key = p->op.remote.index,
		.flags = p->op.remote.token_valid ? XTAL_MSG_TOKEN : 0,
		.rights = XTAL_MSG_RIGHT_READ,
		/* Nobody's link ends because our question takes long. */
		.deadline = XTAL_NO_DEADLINE,
	};
	int err;

	xtal_lock(&link->lock);
	if (atomic_load(&link->state) != XTAL_LINK_UP)
		err = (int)link->status;
	else
		err = xtal_requester_submit(&link->requester, &r);
	xtal_unlock(&link->lock);
	return err == 0 || err == -EAGAIN || err > 0 ? err : XTAL_LOCAL_OPERATION;
}

/* Sends what is to be sent and takes what has come, for the queue's operations too. */
static void drive(struct xtal_link *link, struct xtal_queue *q)
{
	xtal_bias_lock(&q->lock);
	xtal_messages_poll(link, q, true);
	xtal_queue_progress(q);
	xtal_bias_unlock(&q->lock);
}

/* p is on the caller's stack: afterwards nobody knows of it. */
static void forget(struct xtal_link *link, struct xtal_pending *p)
{
	xtal_lock(&link->lock);
	if (!atomic_load(&p->done))
		xtal_requester_abandon(&link->requester, (uintptr_t)p, false);
	xtal_unlock(&link->lock);
}

bool xtal_probe_messages(struct xtal_link *link, struct xtal_queue *q,
			 const struct xtal_remote *remote, uint64_t len, uint64_t deadline,
			 char *text, size_t size)
{
	const char *name = xtal_path_name(link->carrier->path);
	uint64_t word = 0, began = xtal_os_now(), now = began;
	struct xtal_pending p = {
		.op = { .local = (uintptr_t)&word,
			.len = len < sizeof(word) ? len : sizeof(word),
			.remote = *remote,
			.opcode = XTAL_OP_READ,
			.flags = XTAL_OP_OWN_PAYLOAD },
		.queue = q,
		.state = XTAL_PENDING_MESSAGE,
	};
	int status = -EAGAIN;

	if (deadline > began + LIMIT_NS)
		deadline = began + LIMIT_NS;
	for (unsigned rounds = 0; !atomic_load(&p.done) && now < deadline; rounds++) {
		if (status == -EAGAIN)
			status = submit(link, &p);
		if (status > 0)
			break;
		drive(link, q);
		if (rounds > 100)
			xtal_os_sleep_ns(20000);
		now = xtal_os_now();
	}
	if (!status) {
		forget(link, &p);
		if (atomic_load(&p.done))
			status = (int)atomic_load(&p.status);
		else
			status = -ETIMEDOUT;
	}
	if (!status)
		snprintf(text, size, "%llu bytes read by a message to the owner's agent",
			 (unsigned long long)p.op.len);
	else if (status < 0)
		snprintf(text, size, "the owner's agent did not answer a message within %llu ms",
			 (unsigned long long)(now - began) / 1000000);
	else
		snprintf(text, size, "a read over %s ended with status %d (%s)", name, status,
			 xtal_status_name(status));
	return status == 0;
}
