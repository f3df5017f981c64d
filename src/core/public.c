/* SPDX-License-Identifier: MIT */
/* The functions of xtal.h that read the engine: names, descriptors, paths, counters. */
#include "xtal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/handle_impl.h"
#include "core/link.h"
#include "core/log.h"
#include "core/probe.h"
#include "core/queue_impl.h"
#include "os/proc.h"

const char *xtal_version(void)
{
	return XTAL_VERSION;
}

const char *xtal_status_name(int status)
{
	static const char *const names[XTAL_STATUS_COUNT] = {
		"SUCCESS",       "UNSUPPORTED_OPCODE", "LOCAL_LENGTH",       "LOCAL_OPERATION",
		"LOCAL_ACCESS",  "REMOTE_LENGTH",      "REMOTE_UNSUPPORTED", "REMOTE_OPERATION",
		"REMOTE_ACCESS", "UNREACHABLE",        "NOT_READY",          "FLUSHED",
		"SUSPEND_DONE",  "FLUSH_DONE",         "UNHANDLED",          "LOCAL_POISON",
		"REMOTE_POISON",
	};

	return status >= 0 && status < XTAL_STATUS_COUNT ? names[status] : "UNKNOWN";
}

const char *xtal_status_text(int status)
{
	return xtal_status_sentence((enum xtal_status)status);
}

const char *xtal_path_name(unsigned kind)
{
	static const char *const names[XTAL_PATH_COUNT] = { "none", "self", "map",
							    "cma",  "ring", "tcp" };

	return kind < XTAL_PATH_COUNT ? names[kind] : "unknown";
}

static void eid_bytes(struct xtal_eid eid, uint8_t out[16])
{
	eid = xtal_eid_scoped(eid, 0); /* our interface numbers mean nothing elsewhere */
	for (int i = 0; i < 8; i++) {
		out[i] = (uint8_t)(eid.hi >> (56 - 8 * i));
		out[8 + i] = (uint8_t)(eid.lo >> (56 - 8 * i));
	}
}

static struct xtal_eid eid_of(const uint8_t in[16])
{
	struct xtal_eid eid = { 0, 0 };

	for (int i = 0; i < 8; i++) {
		eid.hi = eid.hi << 8 | in[i];
		eid.lo = eid.lo << 8 | in[8 + i];
	}
	return xtal_eid_scoped(eid, 0);
}

int xtal_describe(const void *segment, struct xtal_descriptor *out)
{
	struct xtal_handle h;
	const struct xtal_segment *seg;

	if (!segment || !out || !xtal_handle_find(segment, &h) || !h.segment) {
		xtal_refuse("xtal", "xtal_describe(%p): not a segment that this process registered",
			    segment);
		return -EINVAL;
	}
	seg = h.segment;
	memset(out, 0, sizeof(*out));
	eid_bytes(seg->ctx->dev->eid, out->eid);
	out->tid = out->uasid = xtal_context_tid(seg->ctx);
	out->token_id = seg->index ? seg->index : seg->slot + 1;
	out->token = seg->token;
	out->token_valid = seg->token_valid;
	out->va = seg->addr;
	out->len = seg->len;
	return 0;
}

/* The question of xtal_path_query(). */
struct asked {
	struct xtal_queue *queue;
	const struct xtal_remote *remote;
	uint64_t len, deadline;
};

static void verdict(struct xtal_path_info *info, uint32_t kind, bool usable, const char *reason)
{
	struct xtal_path_verdict *v = &info->candidate[info->candidates++];

	v->kind = kind;
	v->usable = usable;
	snprintf(v->reason, sizeof(v->reason), "%s", reason);
}

/* The link goes to another host (or was told to): whether the range can be read is tried. */
static void judge_tcp(const struct asked *a, struct xtal_link *link, struct xtal_path_info *info)
{
	char text[sizeof(info->reason)];
	bool works = xtal_probe_messages(link, a->queue, a->remote, a->len, a->deadline, text,
					 sizeof(text));

	for (uint32_t kind = XTAL_PATH_MAP; kind <= XTAL_PATH_RING; kind++)
		verdict(info, kind, false, link->cma_text);
	verdict(info, XTAL_PATH_TCP, works, text);
	if (works)
		return;
	info->kind = XTAL_PATH_NONE;
	snprintf(info->name, sizeof(info->name), "%s", xtal_path_name(info->kind));
}

/* Both sides may allow it; whether it works is tried. */
static void judge_ring(const struct asked *a, struct xtal_link *link, struct xtal_path_info *info)
{
	bool allowed = xtal_config()->paths & 1u << XTAL_PATH_RING, works = false;
	char text[sizeof(info->reason)] = "not in the owner's XTAL_PATHS";

	if (!allowed)
		snprintf(text, sizeof(text), "not in XTAL_PATHS here");
	else if (link->peer_ring)
		works = xtal_probe_messages(link, a->queue, a->remote, a->len, a->deadline, text,
					    sizeof(text));
	verdict(info, XTAL_PATH_RING, works, text);
}

/* Why each path is none, as far as there is room. */
static void no_path(struct xtal_path_info *info)
{
	size_t at = (size_t)snprintf(info->reason, sizeof(info->reason), "no path is left");

	for (uint32_t i = 0; i < info->candidates && at < sizeof(info->reason); i++)
		at += (size_t)snprintf(info->reason + at, sizeof(info->reason) - at, "%s %s: %s",
				       i ? ";" : ":", xtal_path_name(info->candidate[i].kind),
				       info->candidate[i].reason);
}

/* It carries no atomic: the kernel adds nothing for us in another process. */
static void judge_cma(const struct xtal_link *link, struct xtal_path_info *info)
{
	char text[sizeof(info->reason)];

	snprintf(text, sizeof(text), "%s%s", link->cma_text,
		 link->cma ? "; atomics go as messages" : "");
	verdict(info, XTAL_PATH_CMA, link->cma, text);
}

/* Says for each path whether and why, now that the grant is known. */
static void explain(const struct asked *a, struct xtal_link *link, const struct xtal_grant *g,
		    struct xtal_path_info *info)
{
	uint32_t allowed = xtal_config()->paths;
	bool map = g->path == XTAL_PATH_MAP;

	info->kind = g->path;
	snprintf(info->name, sizeof(info->name), "%s", xtal_path_name(g->path));
	if (link->self) {
		verdict(info, XTAL_PATH_SELF, true, "the segment lives in this process");
	} else {
		verdict(info, XTAL_PATH_SELF, false,
			allowed & 1u << XTAL_PATH_SELF ? "the owner is another process"
						       : "not in XTAL_PATHS here");
		if (link->tcp) {
			judge_tcp(a, link, info);
		} else {
			verdict(info, XTAL_PATH_MAP, map, g->map_text);
			judge_cma(link, info);
			judge_ring(a, link, info);
			verdict(info, XTAL_PATH_TCP, false,
				allowed & 1u << XTAL_PATH_TCP ? "the owner is on this host"
							      : "not in XTAL_PATHS here");
		}
	}
	for (uint32_t i = 0; i < info->candidates; i++)
		if (info->candidate[i].kind == info->kind)
			snprintf(info->reason, sizeof(info->reason), "%s",
				 info->candidate[i].reason);
	if (info->kind == XTAL_PATH_NONE)
		no_path(info);
}

static int query(const struct asked *a, struct xtal_path_info *out)
{
	const struct xtal_remote *remote = a->remote;
	char text[160] = "";
	uint64_t ask = 0;

	for (;;) {
		struct xtal_link *link =
			xtal_link_get(a->queue->ctx, remote->eid, remote->tid, a->queue->pipeline);
		struct xtal_grant *g = NULL;
		int result;

		if (!link)
			return -ENOMEM;
		result = xtal_link_resolve(link, remote, a->len, XTAL_RIGHT_READ, NULL, &ask, &g,
					   text, sizeof(text));
		if (!result) {
			explain(a, link, g, out);
			xtal_grant_put(g);
		}
		xtal_link_put(link);
		if (!result)
			return 0;
		if (result > 0) {
			snprintf(out->name, sizeof(out->name), "none");
			snprintf(out->reason, sizeof(out->reason), "%s", text);
			return 0;
		}
		if (xtal_os_now() >= a->deadline)
			return -ETIMEDOUT;
		xtal_os_sleep_ns(50000);
	}
}

int xtal_path_query(const void *queue, const struct xtal_descriptor *remote, int timeout_ms,
		    struct xtal_path_info *out)
{
	struct xtal_remote r;
	struct xtal_handle h;
	uint64_t limit;

	if (!queue || !remote || !out || !remote->len || !xtal_handle_find(queue, &h) ||
	    !h.queue.queue || h.queue.queue->foreign) {
		xtal_refuse("xtal", "xtal_path_query: %s",
			    !remote || !out ? "a pointer is NULL"
			    : !remote->len  ? "the remote segment has no length"
					    : "not a live queue of this process");
		return -EINVAL;
	}
	limit = timeout_ms < 0 ? h.queue.queue->timeout_ns : (uint64_t)timeout_ms * 1000000;
	r = (struct xtal_remote){ .addr = remote->va,
				  .eid = xtal_device_resolve_eid(h.queue.queue->ctx->dev,
								 eid_of(remote->eid)),
				  .tid = remote->tid,
				  .token = remote->token_valid ? remote->token : 0,
				  .token_valid = remote->token_valid };
	if (!r.eid.hi && !r.eid.lo)
		r.eid = h.queue.target(queue);
	memset(out, 0, sizeof(*out));
	return query(&(struct asked){ .queue = h.queue.queue,
				      .remote = &r,
				      .len = remote->len,
				      .deadline = xtal_os_now() + limit },
		     out);
}

int xtal_queue_fd(const void *queue)
{
	struct xtal_handle h;

	if (!queue || !xtal_handle_find(queue, &h) || !h.queue.queue || h.queue.queue->foreign) {
		xtal_refuse("xtal", "xtal_queue_fd(%p): not a live queue of this process", queue);
		return -EINVAL;
	}
	return xtal_cq_event_fd(&h.queue.queue->cq);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_context(struct xtal_context *ctx, void *arg)
{
	struct xtal_counters *c = arg;

	xtal_lock(&ctx->queues_lock);
	for (struct xtal_list *n = ctx->queues.next; n != &ctx->queues; n = n->next) {
		const struct xtal_queue *q = xtal_container_of(n, struct xtal_queue, node);

		c->posted += get(&q->accepted);
		c->completed += get(&q->cq.tail);
		c->failed += get(&q->failed);
		for (unsigned i = 0; i < XTAL_PATH_COUNT; i++) {
			c->ops[i] += xtal_moved_ops(&q->moved[i]);
			c->bytes[i] += xtal_moved_bytes(&q->moved[i]);
		}
	}
	xtal_unlock(&ctx->queues_lock);
}

int xtal_counters_read(struct xtal_counters *out, size_t size)
{
	const struct xtal_engine_totals *t = &xtal_totals;
	struct xtal_counters c = {
		.posted = get(&t->posted),
		.completed = get(&t->completed),
		.failed = get(&t->failed),
		.refused = get(&t->refused),
		.served = get(&t->served),
		.served_bytes = get(&t->served_bytes),
		.denied = get(&t->denied),
		.revocations = get(&t->revocations),
		.fenced = get(&t->fenced),
		.links_made = get(&t->links_made),
		.peers_lost = get(&t->peers_lost),
		.agent_wakeups = get(&t->agent_wakeups),
		.contexts = get(&t->contexts),
		.queues = get(&t->queues),
		.segments = get(&t->segments),
		.links = get(&t->links),
		.adopted = get(&t->adopted),
		.adopted_bytes = get(&t->adopted_bytes),
		.adopt_ns = get(&t->adopt_ns),
		.adopt_refused = get(&t->adopt_refused),
		.adopt_undone = get(&t->adopt_undone),
	};

	if (!out || !size) {
		xtal_refuse("xtal", "xtal_counters_read: %s", out ? "size is 0" : "out is NULL");
		return -EINVAL;
	}
	for (unsigned i = 0; i < XTAL_PATH_COUNT; i++) {
		c.ops[i] = get(&t->ops[i]);
		c.bytes[i] = get(&t->bytes[i]);
	}
	xtal_engine_each(add_context, &c);
	memset(out, 0, size);
	memcpy(out, &c, size < sizeof(c) ? size : sizeof(c));
	return 0;
}
