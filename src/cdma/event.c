/* SPDX-License-Identifier: MIT */
/* Completions and asynchronous events: taken from the core, turned into foreign records. */
#include "cdma.h"

#include <errno.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "core/device.h"
#include "core/op.h"
#include "core/queue.h"

#define WAIT_AE_MAX_MS 10000

_Static_assert(XTAL_OK == (int)DMA_CR_SUCCESS, "statuses need no table");
_Static_assert(XTAL_LOCAL_LENGTH == (int)DMA_CR_LOC_LEN_ERR, "statuses need no table");
_Static_assert(XTAL_LOCAL_ACCESS == (int)DMA_CR_LOC_ACCESS_ERR, "statuses need no table");
_Static_assert(XTAL_REMOTE_UNSUPPORTED == (int)DMA_CR_REM_UNSUPPORTED_REQ_ERR,
	       "statuses need no table");
_Static_assert(XTAL_REMOTE_ACCESS == (int)DMA_CR_REM_ACCESS_ABORT_ERR, "statuses need no table");
_Static_assert(XTAL_UNREACHABLE == (int)DMA_CR_ACK_TIMEOUT_ERR, "statuses need no table");
_Static_assert(XTAL_FLUSHED == (int)DMA_CR_WR_FLUSH_ERR, "statuses need no table");
_Static_assert(XTAL_REMOTE_POISON == (int)DMA_CR_REM_DATA_POISON, "statuses need no table");

static __attribute__((cold, noinline)) int refuse_take(const char *function,
						       const struct cdma_queue *q, uint32_t cr_cnt,
						       const struct dma_cr *cr)
{
	if (!q || !cr)
		cdma_refuse("%s: %s is NULL", function, !q ? "queue" : "cr");
	else if (cr_cnt == 0)
		cdma_refuse("%s: cr_cnt is 0", function);
	else if (!cdma_queue_lives(q))
		cdma_refuse("%s: %p is no live queue: freed before, a copy, or not from this "
			    "library",
			    function, (const void *)q);
	else if (xtal_context_is_foreign(q->ctx->core))
		cdma_refuse("%s: queue %u belongs to the process that this one was forked from",
			    function, q->pub.queue_id);
	else
		cdma_refuse("%s: queue %u was made with event_mode false", function,
			    q->pub.queue_id);
	return -EINVAL;
}

static inline bool take_is_bad(const struct cdma_queue *q, uint32_t cr_cnt, const struct dma_cr *cr)
{
	return xtal_unlikely(!q || !cr || cr_cnt == 0 || !cdma_queue_lives(q));
}

_Static_assert(offsetof(struct dma_cr, local_id) - offsetof(struct dma_cr, completion_len) ==
			       offsetof(struct xtal_report, queue_id) &&
		       offsetof(struct dma_cr, remote_id) -
				       offsetof(struct dma_cr, completion_len) ==
			       offsetof(struct xtal_report, peer.port) &&
		       offsetof(struct dma_cr, tpn) - offsetof(struct dma_cr, completion_len) ==
			       offsetof(struct xtal_report, peer.link_id),
	       "a report is four fields of the record");

/* Writes what the hardware's library writes, and zeros elsewhere unless strict. */
static inline void fill(const struct cdma_queue *q, struct dma_cr *cr,
			const struct xtal_ready *ready, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, cr++) {
		const struct xtal_completion *done = xtal_ready_at(ready, i);
		char *from_opcode = (char *)cr + offsetof(struct dma_cr, opcode);
		char *report = (char *)cr + offsetof(struct dma_cr, completion_len);

		cr->status = (enum dma_cr_status)done->status;
		cr->user_ctx = done->user;
		if (xtal_likely(!q->strict)) {
			memset(from_opcode, 0, sizeof(*cr) - offsetof(struct dma_cr, opcode));
		} else {
			cr->flag.bs.s_r = 0;
			cr->flag.bs.jetty = 0;
		}
		memcpy(report, &done->report, sizeof(done->report));
	}
}

int dma_poll_queue(struct dma_queue *queue, uint32_t cr_cnt, struct dma_cr *cr)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct xtal_ready ready;
	int got;

	if (take_is_bad(q, cr_cnt, cr))
		return refuse_take("dma_poll_queue", q, cr_cnt, cr);
	got = xtal_queue_poll(q->core, cr_cnt, &ready);
	if (xtal_unlikely(got <= 0))
		return got ? refuse_take("dma_poll_queue", q, cr_cnt, cr) : 0;
	fill(q, cr, &ready, (uint32_t)got);
	xtal_queue_polled(q->core, (uint32_t)got);
	if (xtal_unlikely(q->magic == CDMA_QUEUE_CHECKED))
		cdma_check_taken("dma_poll_queue", q, cr, (uint32_t)got);
	return got;
}

int dma_wait_queue(struct dma_queue *queue, uint32_t cr_cnt, int timeout, struct dma_cr *cr)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct xtal_ready ready;
	int got;

	if (take_is_bad(q, cr_cnt, cr) || !queue->cfg.event_mode)
		return refuse_take("dma_wait_queue", q, cr_cnt, cr);
	if (xtal_unlikely(q->magic == CDMA_QUEUE_CHECKED))
		got = cdma_check_wait(q, cr_cnt, timeout, &ready);
	else
		got = xtal_queue_wait(q->core, cr_cnt, timeout, &ready);
	if (got == 0)
		return -EFAULT; /* the original's word for "nothing came" */
	if (got < 0)
		return refuse_take("dma_wait_queue", q, cr_cnt, cr);
	fill(q, cr, &ready, (uint32_t)got);
	xtal_queue_polled(q->core, (uint32_t)got);
	if (xtal_unlikely(q->magic == CDMA_QUEUE_CHECKED))
		cdma_check_taken("dma_wait_queue", q, cr, (uint32_t)got);
	return got;
}

/* A thread that waits was cancelled. */
static void let_go(void *arg)
{
	cdma_context_put(arg, CDMA_BY_CALL);
}

int dma_wait_ae(struct dma_context *ctx, struct dma_aeqe *aeqe)
{
	struct xtal_async_event event;
	struct cdma_context *c;
	int got;

	if (!aeqe) {
		cdma_refuse("dma_wait_ae: aeqe is NULL");
		return -EINVAL;
	}
	if (aeqe->duration < 0 || aeqe->duration > WAIT_AE_MAX_MS) {
		cdma_refuse("dma_wait_ae: duration is %d, 0 to %d milliseconds are possible",
			    aeqe->duration, WAIT_AE_MAX_MS);
		return -EINVAL;
	}
	c = cdma_context_get(ctx, CDMA_BY_CALL, "dma_wait_ae");
	if (!c)
		return -EINVAL;
	got = xtal_context_wait_async(c->core, aeqe->duration, &event, let_go, c);
	cdma_context_put(c, CDMA_BY_CALL);
	if (got <= 0)
		return got;
	aeqe->ctx = ctx;
	aeqe->event_type = (uint32_t)event.type;
	aeqe->queue_id = event.type == XTAL_ASYNC_DEVICE_GONE ? 0 : event.object_id;
	return 1;
}

_Static_assert(XTAL_ASYNC_CQ_ERROR == (int)DMA_AEQE_TYPE_JFC, "event types need no table");
_Static_assert(XTAL_ASYNC_QUEUE_ERROR == (int)DMA_AEQE_TYPE_JFS, "event types need no table");
_Static_assert(XTAL_ASYNC_DEVICE_GONE == (int)DMA_AEQE_TYPE_INVALID, "event types need no table");
