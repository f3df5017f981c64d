/* SPDX-License-Identifier: MIT */
/* Receives: posted one by one to the core's receive queue. */
#include <errno.h>

#include "base/export.h"
#include "check.h"
#include "perf.h"
#include "queue.h"

static __attribute__((cold, noinline)) urma_status_t refuse_receive(const struct ub_jfr *j,
								    const urma_jfr_wr_t *wr,
								    int error)
{
	uint32_t id = j->pub.jfr_id.id;

	if (wr->src.num_sge > j->pub.jfr_cfg.max_sge)
		ub_refuse("receive queue 0x%x: num_sge is %u, max_sge of the queue %u", id,
			  wr->src.num_sge, j->pub.jfr_cfg.max_sge);
	else if (error == -EAGAIN)
		xtal_refuse_at(XTAL_LOG_DEBUG, UB_TAG,
			       "receive queue 0x%x is full, %u receives are posted and not used",
			       id, j->pub.jfr_cfg.depth);
	else
		ub_refuse("receive queue 0x%x: %s", id,
			  error == -ENOTCONN ? "its state is RESET"
			  : error == -EFAULT ? "num_sge is not 0, and sge is NULL"
					     : ub_reason(error));
	return error == -EAGAIN || error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
}

static urma_status_t post_one(struct ub_jfr *j, const urma_jfr_wr_t *wr)
{
	struct xtal_sge sges[UB_MAX_RECV_SGE];
	uint32_t used = 0;
	int error;

	if (xtal_unlikely(wr->src.num_sge > j->pub.jfr_cfg.max_sge))
		return refuse_receive(j, wr, -EINVAL);
	if (xtal_unlikely(wr->src.num_sge && !wr->src.sge))
		return refuse_receive(j, wr, -EFAULT);
	for (uint32_t i = 0; i < wr->src.num_sge; i++)
		if (wr->src.sge[i].len)
			sges[used++] = (struct xtal_sge){ wr->src.sge[i].addr, wr->src.sge[i].len };
	error = xtal_receive_queue_post(j->core, sges, used, wr->user_ctx);
	return xtal_likely(!error) ? URMA_SUCCESS : refuse_receive(j, wr, error);
}

static urma_status_t post_chain(const char *function, const urma_jfr_t *jfr, urma_jfr_wr_t *wr,
				urma_jfr_wr_t **bad_wr)
{
	struct ub_jfr *j = ub_jfr_of(jfr);

	if (xtal_unlikely(!jfr || !wr || !bad_wr ||
			  (j->magic != UB_JFR_MAGIC && !ub_check_receives(j)))) {
		if (jfr && wr && bad_wr)
			ub_refuse("%s: %p is no live and active receive queue", function,
				  (const void *)jfr);
		else
			ub_refuse("%s: %s is NULL", function,
				  !jfr ? "the receive queue"
				  : wr ? "bad_wr"
				       : "wr");
		return URMA_EINVAL;
	}
	for (; wr; wr = wr->next) {
		urma_status_t status = post_one(j, wr);

		if (xtal_likely(!status))
			continue;
		*bad_wr = wr;
		return status;
	}
	return URMA_SUCCESS;
}

urma_status_t urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr)
{
	uint64_t begin = ub_perf_begin();
	urma_status_t status = post_chain("urma_post_jfr_wr", jfr, wr, bad_wr);

	ub_perf_end(UB_POST_JFR_RECV, begin);
	return status;
}

urma_status_t urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr,
				      urma_jfr_wr_t **bad_wr)
{
	uint64_t begin = ub_perf_begin();
	urma_status_t status;

	if (xtal_unlikely(!jetty || (ub_jetty_of(jetty)->send.magic != UB_SEND_MAGIC &&
				     ub_jetty_of(jetty)->send.magic != UB_SEND_CHECKED))) {
		ub_refuse("urma_post_jetty_recv_wr: %s",
			  jetty ? "no live and active jetty" : "jetty is NULL");
		return URMA_EINVAL;
	}
	status = post_chain("urma_post_jetty_recv_wr", jetty->jetty_cfg.shared.jfr, wr, bad_wr);
	ub_perf_end(UB_JETTY_POST_RECV, begin);
	return status;
}
