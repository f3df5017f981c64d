/* SPDX-License-Identifier: MIT */
/* Queues: made, named to the core for xtal.h, drained and freed. */
#include "cdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "core/config.h"
#include "core/device.h"
#include "core/handle.h"
#include "core/queue.h"

/* Where the queue points now: xtal_path_query() asks. */
static struct xtal_eid target(const void *foreign)
{
	const struct cdma_queue *q = foreign; /* pub comes first */

	return xtal_device_resolve_eid(xtal_context_device(q->ctx->core),
				       xtal_eid_from_ipv4(q->pub.cfg.rmt_eid.dw0));
}

/* Makes the core's queue and the names it goes by. 0, or -errno and nothing made. */
static int open_queue(struct cdma_queue *q)
{
	struct xtal_queue_attr attr = { .depth = q->pub.cfg.queue_depth,
					.owner = q,
					.long_way = cdma_post_long };
	struct xtal_queue_handle handle = { .target = target };
	int error;

	error = xtal_queue_create(q->ctx->core, &attr, &q->core);
	if (error)
		return error;
	handle.queue = q->core;
	error = xtal_handle_bind_queue(&q->pub, &handle);
	if (error)
		xtal_queue_destroy(&q->core);
	return error;
}

struct dma_queue *dma_alloc_queue(struct dma_context *ctx, struct queue_cfg *cfg)
{
	struct cdma_context *c;
	struct cdma_queue *q;
	int error;

	if (!cfg) {
		cdma_refuse("dma_alloc_queue: cfg is NULL");
		return NULL;
	}
	if (cfg->queue_depth == 0 || cfg->queue_depth > XTAL_MAX_QUEUE_DEPTH) {
		cdma_refuse("dma_alloc_queue: queue_depth is %u, 1 to %u are possible",
			    cfg->queue_depth, XTAL_MAX_QUEUE_DEPTH);
		return NULL;
	}
	cdma_check_reserved("dma_alloc_queue", "queue_cfg", cfg->rsv_bitmap, cfg->rsvd);
	c = cdma_context_get(ctx, CDMA_BY_QUEUE, "dma_alloc_queue");
	if (!c)
		return NULL;
	q = aligned_alloc(XTAL_CACHE_LINE,
			  (sizeof(*q) + XTAL_CACHE_LINE - 1) & ~(size_t)(XTAL_CACHE_LINE - 1));
	if (!q) {
		error = -ENOMEM;
		goto put_context;
	}
	memset(q, 0, sizeof(*q));
	q->pub.ctx = ctx;
	q->pub.cfg = *cfg;
	q->ctx = c;
	q->own_tid = xtal_context_tid(c->core);
	q->own_eid = xtal_context_device(c->core)->eid;
	q->made_dw0 = cfg->rmt_eid.dw0;
	q->made_eid = xtal_device_resolve_eid(xtal_context_device(c->core),
					      xtal_eid_from_ipv4(q->made_dw0));
	q->strict = xtal_config()->strict;
	error = open_queue(q);
	if (error)
		goto free_struct;
	q->pub.queue_id = xtal_queue_id(q->core);
	cdma_check_opened(q);
	q->magic = xtal_checks() || q->strict ? CDMA_QUEUE_CHECKED : CDMA_QUEUE_MAGIC;
	return &q->pub;

free_struct:
	free(q);
put_context:
	cdma_context_put(c, CDMA_BY_QUEUE);
	cdma_refuse("dma_alloc_queue: no queue of depth %u: %s", cfg->queue_depth,
		    cdma_reason(error));
	return NULL;
}

void dma_free_queue(struct dma_queue *queue)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct cdma_context *c;

	if (!queue)
		return;
	if (!cdma_queue_lives(q)) {
		cdma_refuse("dma_free_queue: %p is no live queue: freed before, a copy, or not "
			    "from this library",
			    (void *)queue);
		return;
	}
	c = q->ctx;
	if (xtal_context_is_foreign(c->core)) {
		cdma_refuse("dma_free_queue: queue %u belongs to the process that this one was "
			    "forked from; nothing is freed",
			    queue->queue_id);
		return;
	}
	q->magic = 0;
	cdma_check_closes(q);
	xtal_handle_unbind(&q->pub);
	xtal_queue_destroy(&q->core);
	free(q);
	cdma_context_put(c, CDMA_BY_QUEUE);
}
