/* SPDX-License-Identifier: MIT */
/* The four calls that post one request with one piece of memory on each side. */
#include "queue.h"

static urma_status_t post(urma_jfs_t *jfs, urma_jfs_wr_t *wr)
{
	urma_jfs_wr_t *bad;

	return urma_post_jfs_wr(jfs, wr, &bad);
}

/* One of the pointers that a call needs is NULL. */
static urma_status_t refuse_null(const char *function)
{
	ub_refuse("%s: a queue, target or segment that it needs is NULL", function);
	return URMA_EINVAL;
}

urma_status_t urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			 urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg, uint64_t dst,
			 uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t here = { .addr = src, .len = len, .tseg = src_tseg };
	urma_sge_t there = { .addr = dst, .len = len, .tseg = dst_tseg };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_WRITE,
			     .flag = flag,
			     .tjetty = target_jfr,
			     .user_ctx = user_ctx,
			     .rw = { .src = { &here, 1 }, .dst = { &there, 1 } } };

	if (!jfs || !target_jfr || !dst_tseg || (!src_tseg && !flag.bs.inline_flag))
		return refuse_null("urma_write");
	return post(jfs, &wr);
}

urma_status_t urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg, uint64_t dst,
			uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t here = { .addr = dst, .len = len, .tseg = dst_tseg };
	urma_sge_t there = { .addr = src, .len = len, .tseg = src_tseg };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_READ,
			     .flag = flag,
			     .tjetty = target_jfr,
			     .user_ctx = user_ctx,
			     .rw = { .src = { &there, 1 }, .dst = { &here, 1 } } };

	if (!jfs || !target_jfr || !dst_tseg || !src_tseg)
		return refuse_null("urma_read");
	return post(jfs, &wr);
}

urma_status_t urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			urma_target_seg_t *src_tseg, uint64_t src, uint32_t len,
			urma_jfs_wr_flag_t flag, uint64_t user_ctx)
{
	urma_sge_t here = { .addr = src, .len = len, .tseg = src_tseg };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_SEND,
			     .flag = flag,
			     .tjetty = target_jfr,
			     .user_ctx = user_ctx,
			     .send = { .src = { &here, 1 } } };

	if (!jfs || !target_jfr || (!src_tseg && !flag.bs.inline_flag))
		return refuse_null("urma_send");
	return post(jfs, &wr);
}

urma_status_t urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf, uint32_t len,
			uint64_t user_ctx)
{
	urma_sge_t here = { .addr = buf, .len = len, .tseg = recv_tseg };
	urma_jfr_wr_t wr = { .src = { &here, 1 }, .user_ctx = user_ctx }, *bad;

	if (!jfr || !recv_tseg)
		return refuse_null("urma_recv");
	if (!buf) {
		ub_refuse("urma_recv: buf is 0");
		return URMA_FAIL;
	}
	return urma_post_jfr_wr(jfr, &wr, &bad);
}
