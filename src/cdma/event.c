/* SPDX-License-Identifier: MIT */
/* Completions and asynchronous events: taken from the core, turned into foreign records. */
#include "cdma.h"

#include <errno.h>

#include "base/export.h"
#include "core/device.h"
#include "core/op.h"
#include "core/queue.h"

#define BATCH          16u /* records turned over at a time */
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
	else if (q->magic != CDMA_QUEUE_MAGIC)
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
	return xtal_unlikely(!q || !cr || cr_cnt == 0 || q->magic != CDMA_QUEUE_MAGIC);
}

/* Writes what the hardware's library writes, and zeros elsewhere unless strict. */
static inline void fill(const struct cdma_queue *q, struct dma_cr *cr,
			const struct xtal_completion *done, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (xtal_likely(!q->strict)) {
			cr[i] = (struct dma_cr){ .status = (enum dma_cr_status)done[i].status };
		} else {
			cr[i].status = (enum dma_cr_status)done[i].status;
			cr[i].flag.bs.s_r = 0;
			cr[i].flag.bs.jetty = 0;
		}
		cr[i].user_ctx = done[i].user;
		cr[i].completion_len = done[i].len;
		cr[i].local_id = done[i].queue_id;
		cr[i].remote_id = done[i].peer_port;
		cr[i].tpn = done[i].link_id;
	}
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Takes what is ready. Returns how many, or -ECHILD when that is all there is to say. */
static int take(struct cdma_queue *q, uint32_t cr_cnt, struct dma_cr *cr)
{
	struct xtal_completion done[BATCH];
	uint32_t taken = 0;

	cr_cnt = smaller(cr_cnt, XTAL_MAX_QUEUE_DEPTH); /* posters must not keep us for ever */
	while (taken < cr_cnt) {
		uint32_t want = smaller(cr_cnt - taken, BATCH);
		int got = xtal_queue_poll(q->core, want, done);

		if (got <= 0)
			return taken > 0 ? (int)taken : got;
		fill(q, cr + taken, done, (unsigned)got);
		taken += (uint32_t)got;
		if ((uint32_t)got < want)
			break;
	}
	return (int)taken;
}

int dma_poll_queue(struct dma_queue *queue, uint32_t cr_cnt, struct dma_cr *cr)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	int got;

	if (take_is_bad(q, cr_cnt, cr))
		return refuse_take("dma_poll_queue", q, cr_cnt, cr);
	got = take(q, cr_cnt, cr);
	return xtal_likely(got >= 0) ? got : refuse_take("dma_poll_queue", q, cr_cnt, cr);
}

int dma_wait_queue(struct dma_queue *queue, uint32_t cr_cnt, int timeout, struct dma_cr *cr)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct xtal_completion done[BATCH];
	int got, more = 0;

	if (take_is_bad(q, cr_cnt, cr) || !queue->cfg.event_mode)
		return refuse_take("dma_wait_queue", q, cr_cnt, cr);
	got = xtal_queue_wait(q->core, smaller(cr_cnt, BATCH), timeout, done);
	if (got == 0)
		return -EFAULT; /* the original's word for "nothing came" */
	if (got < 0)
		return refuse_take("dma_wait_queue", q, cr_cnt, cr);
	fill(q, cr, done, (unsigned)got);
	if ((uint32_t)got == BATCH && cr_cnt > BATCH)
		more = take(q, cr_cnt - BATCH, cr + BATCH);
	return more > 0 ? got + more : got;
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
	got = xtal_context_wait_async(c->core, aeqe->duration, &event);
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
