/* SPDX-License-Identifier: MIT */
/*
 * The five operations. Each builds the core's form of itself on the stack, setting only what
 * the core reads for it, and posts: no lock, no allocation, no copy of a segment.
 */
#include "cdma.h"

#include <errno.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "core/device.h"
#include "core/op.h"
#include "core/queue.h"

/* Says why the arguments that all operations share are refused. */
static __attribute__((cold, noinline)) void refuse_arguments(const char *function,
							     const struct cdma_queue *q,
							     const struct dma_seg *rmt,
							     const struct dma_seg *local)
{
	if (!q || !rmt || !local)
		cdma_refuse("%s: %s is NULL", function,
			    !q     ? "queue"
			    : !rmt ? "rmt_seg"
				   : "local_seg");
	else if (!cdma_queue_lives(q))
		cdma_refuse("%s: %p is no live queue: freed before, a copy, or not from this "
			    "library",
			    function, (const void *)q);
	else if (rmt->sva == 0 || rmt->len == 0)
		cdma_refuse("%s: remote address 0x%llx with %llu bytes; neither may be 0", function,
			    (unsigned long long)rmt->sva, (unsigned long long)rmt->len);
	else if (local->sva == 0 || local->len == 0)
		cdma_refuse("%s: local address 0x%llx with %llu bytes; neither may be 0", function,
			    (unsigned long long)local->sva, (unsigned long long)local->len);
	else
		cdma_refuse(
			"%s: local length %llu is above the limit of %u bytes (4 GiB - 1); post "
			"it in parts",
			function, (unsigned long long)local->len, XTAL_MAX_MESSAGE);
}

static inline bool are_good(const struct cdma_queue *q, const struct dma_seg *rmt,
			    const struct dma_seg *local)
{
	return q && rmt && local && q->magic == CDMA_QUEUE_MAGIC && rmt->sva && rmt->len &&
	       local->sva && local->len - 1 < XTAL_MAX_MESSAGE;
}

static inline bool arguments_are_bad(const char *function, const struct cdma_queue *q,
				     const struct dma_seg *rmt, const struct dma_seg *local)
{
	if (xtal_likely(are_good(q, rmt, local) || cdma_check_takes(q, rmt, local)))
		return false;
	refuse_arguments(function, q, rmt, local);
	return true;
}

static __attribute__((cold, noinline)) dma_status refuse_post(const char *function,
							      struct cdma_queue *q, int error)
{
	enum xtal_log_level level = XTAL_LOG_DEBUG;

	cdma_log_start();
	if (error != -EAGAIN) {
		cdma_refuse("%s: queue %u: %s", function, q->pub.queue_id, cdma_reason(error));
		return DMA_STATUS_INVAL;
	}
	/* Programs fill a queue to the brim on purpose: in the log once, at the usual level. */
	if (!atomic_exchange_explicit(&q->was_full, true, memory_order_relaxed))
		level = XTAL_LOG_INFO;
	xtal_refuse_at(level, CDMA_TAG,
		       "%s: queue %u is full, %u operations are accepted and not yet polled",
		       function, q->pub.queue_id, q->pub.cfg.queue_depth);
	return DMA_STATUS_INVAL;
}

static inline dma_status post(const char *function, struct cdma_queue *q, const struct xtal_op *op,
			      uint32_t local_tid)
{
	int error;

	if (xtal_unlikely(q->magic == CDMA_QUEUE_CHECKED))
		error = cdma_check_post(function, q, op, local_tid);
	else
		error = xtal_queue_post(q->core, op);
	if (xtal_likely(error == 0))
		return DMA_STATUS_OK;
	return refuse_post(function, q, error);
}

static inline struct xtal_eid remote_eid(const struct cdma_queue *q)
{
	uint32_t dw0 = q->pub.cfg.rmt_eid.dw0;

	if (xtal_likely(dw0 == q->made_dw0)) /* 42 instructions less */
		return q->made_eid;
	return xtal_device_resolve_eid(xtal_context_device(q->ctx->core), xtal_eid_from_ipv4(dw0));
}

static inline void set_remote(struct xtal_remote *out, const struct cdma_queue *q,
			      struct xtal_eid eid, const struct dma_seg *seg, bool token_valid)
{
	uint32_t tid = seg->tid & CDMA_TID_MASK;

	/* The manual's example names no context and no token: the caller's own, if it can be. */
	if (xtal_unlikely(tid == 0 && !token_valid) && xtal_eid_equal(eid, q->own_eid))
		tid = q->own_tid;
	/* As a whole: what the core adds to it one day is zero here. */
	*out = (struct xtal_remote){ .addr = seg->sva,
				     .eid = eid,
				     .tid = tid,
				     .token = token_valid ? seg->token_value : 0,
				     .token_valid = token_valid };
}

/* What set_remote() makes of these values depends on nothing else. */
static inline struct xtal_key key_of(const struct cdma_queue *q, const struct dma_seg *seg)
{
	return (struct xtal_key){
		.a = (uint64_t)q->pub.cfg.rmt_eid.dw0 << 32 | seg->token_value,
		/* Never all zeros, which is no name. */
		.b = UINT64_C(1) << 63 | (uint64_t)seg->token_value_valid << 32 | seg->tid,
	};
}

/* Sets all that every operation has. */
static inline void set_common(struct xtal_op *op, enum xtal_opcode opcode,
			      const struct cdma_queue *q, const struct dma_seg *rmt,
			      const struct dma_seg *local)
{
	op->user = q->pub.cfg.user_ctx;
	op->local = local->sva;
	op->len = local->len;
	op->opcode = (uint8_t)opcode;
	op->flags = 0;
	set_remote(&op->remote, q, remote_eid(q), rmt, rmt->token_value_valid);
	op->key = key_of(q, rmt);
}

/* Of the shortest: what is NULL or empty does not get further. An address of 0 is in no segment. Each
 * likely by itself: the compiler would make sums of them. */
static inline bool may_be_short(const struct cdma_queue *q, const struct dma_seg *rmt,
				const struct dma_seg *local)
{
	return xtal_likely(q != NULL) && xtal_likely(rmt != NULL) && xtal_likely(local != NULL) &&
	       xtal_likely(q->magic == CDMA_QUEUE_MAGIC) && xtal_likely(rmt->len != 0) &&
	       xtal_likely(local->len == 8);
}

/* All but the shortest; apart, so that those save no registers for it. */
static __attribute__((noinline)) dma_status write_any(struct cdma_queue *q, struct dma_seg *rmt_seg,
						      struct dma_seg *local_seg)
{
	struct xtal_op op;

	if (arguments_are_bad("dma_write", q, rmt_seg, local_seg))
		return DMA_STATUS_INVAL;
	set_common(&op, XTAL_OP_WRITE, q, rmt_seg, local_seg);
	return post("dma_write", q, &op, local_seg->tid);
}

dma_status dma_write(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg)
{
	struct cdma_queue *q = cdma_queue_of(queue);

	if (xtal_likely(may_be_short(q, rmt_seg, local_seg)))
		return (dma_status)xtal_queue_put8(q->core, q->pub.cfg.user_ctx, &rmt_seg->sva,
						   &local_seg->sva, key_of(q, rmt_seg));
	return write_any(q, rmt_seg, local_seg);
}

static __attribute__((noinline)) dma_status read_any(struct cdma_queue *q, struct dma_seg *rmt_seg,
						     struct dma_seg *local_seg)
{
	struct xtal_op op;

	if (arguments_are_bad("dma_read", q, rmt_seg, local_seg))
		return DMA_STATUS_INVAL;
	set_common(&op, XTAL_OP_READ, q, rmt_seg, local_seg);
	return post("dma_read", q, &op, local_seg->tid);
}

dma_status dma_read(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg)
{
	struct cdma_queue *q = cdma_queue_of(queue);

	if (xtal_likely(may_be_short(q, rmt_seg, local_seg)))
		return (dma_status)xtal_queue_get8(q->core, q->pub.cfg.user_ctx, &rmt_seg->sva,
						   &local_seg->sva, key_of(q, rmt_seg));
	return read_any(q, rmt_seg, local_seg);
}

int cdma_post_long(void *owner, enum xtal_opcode opcode, uint64_t *addr, uint64_t *local)
{
	struct cdma_queue *q = owner;
	struct dma_seg *rmt_seg = xtal_container_of(addr, struct dma_seg, sva);
	struct dma_seg *local_seg = xtal_container_of(local, struct dma_seg, sva);

	if (opcode == XTAL_OP_READ)
		return (int)read_any(q, rmt_seg, local_seg);
	return (int)write_any(q, rmt_seg, local_seg);
}

dma_status dma_write_with_notify(struct dma_queue *queue, struct dma_seg *rmt_seg,
				 struct dma_seg *local_seg, struct dma_seg *notify_seg,
				 uint64_t notify_data)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct xtal_op op;

	if (arguments_are_bad("dma_write_with_notify", q, rmt_seg, local_seg))
		return DMA_STATUS_INVAL;
	if (xtal_unlikely(!notify_seg)) {
		cdma_refuse("dma_write_with_notify: notify_seg is NULL");
		return DMA_STATUS_INVAL;
	}
	set_common(&op, XTAL_OP_WRITE, q, rmt_seg, local_seg);
	op.flags = XTAL_OP_NOTIFY;
	/* One bit of the data segment says whether either token is sent. */
	set_remote(&op.notify, q, op.remote.eid, notify_seg, rmt_seg->token_value_valid);
	op.notify_data = notify_data;
	return post("dma_write_with_notify", q, &op, local_seg->tid);
}

/* The low len bytes of a 64-bit argument. */
static inline uint64_t low_bytes(uint64_t value, uint64_t len)
{
	return len == 4 ? (uint32_t)value : value;
}

dma_status dma_cas(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg,
		   uint64_t cmp, uint64_t swap)
{
	struct cdma_queue *q = cdma_queue_of(queue);
	struct xtal_op op;
	uint64_t len;

	if (arguments_are_bad("dma_cas", q, rmt_seg, local_seg))
		return DMA_STATUS_INVAL;
	len = local_seg->len;
	if (xtal_unlikely(len != 4 && len != 8 && len != 16)) {
		cdma_refuse("dma_cas: local length %llu, only 4, 8 and 16 bytes can be swapped",
			    (unsigned long long)len);
		return DMA_STATUS_INVAL;
	}
	if (xtal_unlikely(len == 16 && (cmp == 0 || swap == 0))) {
		cdma_refuse("dma_cas: %s is NULL; for 16 bytes cmp and swap are addresses",
			    cmp == 0 ? "cmp" : "swap");
		return DMA_STATUS_INVAL;
	}
	set_common(&op, XTAL_OP_CAS, q, rmt_seg, local_seg);
	op.len = len;
	if (len == 16) {
		memcpy(op.compare, (const void *)(uintptr_t)cmp, 16);
		memcpy(op.operand, (const void *)(uintptr_t)swap, 16);
	} else {
		op.compare[0] = low_bytes(cmp, len);
		op.compare[1] = 0;
		op.operand[0] = low_bytes(swap, len);
		op.operand[1] = 0;
	}
	return post("dma_cas", q, &op, local_seg->tid);
}

static __attribute__((noinline)) dma_status faa_any(struct cdma_queue *q, struct dma_seg *rmt_seg,
						    struct dma_seg *local_seg, uint64_t add)
{
	struct xtal_op op;
	uint64_t len;

	if (arguments_are_bad("dma_faa", q, rmt_seg, local_seg))
		return DMA_STATUS_INVAL;
	len = local_seg->len;
	if (xtal_unlikely(len != 4 && len != 8)) {
		cdma_refuse("dma_faa: local length %llu, only 4 and 8 bytes can be added to",
			    (unsigned long long)len);
		return DMA_STATUS_INVAL;
	}
	set_common(&op, XTAL_OP_FAA, q, rmt_seg, local_seg);
	op.len = len;
	op.operand[0] = low_bytes(add, len);
	op.operand[1] = 0;
	return post("dma_faa", q, &op, local_seg->tid);
}

dma_status dma_faa(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg,
		   uint64_t add)
{
	struct cdma_queue *q = cdma_queue_of(queue);

	if (xtal_likely(may_be_short(q, rmt_seg, local_seg) &&
			xtal_queue_add8(q->core, key_of(q, rmt_seg), rmt_seg->sva, local_seg->sva,
					q->pub.cfg.user_ctx, add) == 0))
		return DMA_STATUS_OK;
	return faa_any(q, rmt_seg, local_seg, add);
}
