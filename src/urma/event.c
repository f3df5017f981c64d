/* SPDX-License-Identifier: MIT */
/* Event channels: made, deleted; completion queues armed, waited for, acknowledged. */
#include <errno.h>
#include <stdlib.h>

#include "base/export.h"
#include "check.h"
#include "perf.h"
#include "queue.h"

urma_jfce_t *urma_create_jfce(urma_context_t *ctx)
{
	struct ub_jfce *j;
	int error;

	if (!ub_check("urma_create_jfce", ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	j = calloc(1, sizeof(*j));
	error = j ? xtal_channel_create(ub_context_of(ctx)->core, &j->core) : -ENOMEM;
	if (error) {
		free(j);
		ub_refuse("urma_create_jfce: %s", ub_reason(error));
		return ub_null(EIO);
	}
	j->pub.urma_ctx = ctx;
	j->pub.fd = xtal_channel_fd(j->core);
	atomic_init(&j->pub.ref.atomic_cnt, 1);
	j->ctx = ub_context_of(ctx);
	ub_context_hold(j->ctx);
	ub_enlist(&j->node, &j->pub, UB_JFCE);
	return &j->pub;
}

urma_status_t urma_delete_jfce(urma_jfce_t *jfce)
{
	struct ub_jfce *j = ub_jfce_of(jfce);
	struct ub_context *c;

	if (!ub_check("urma_delete_jfce", jfce, UB_JFCE))
		return URMA_EINVAL;
	if (atomic_load(&jfce->ref.atomic_cnt) != 1) {
		ub_refuse("urma_delete_jfce: %lu completion queues use it; delete them first",
			  atomic_load(&jfce->ref.atomic_cnt) - 1);
		return URMA_FAIL;
	}
	if (!ub_delist(&j->node))
		return URMA_EINVAL;
	xtal_channel_end_waits(j->core, true);
	ub_drain(&j->node);
	if (xtal_channel_destroy(&j->core)) {
		xtal_channel_end_waits(j->core, false);
		ub_enlist(&j->node, jfce, UB_JFCE);
		ub_refuse("urma_delete_jfce: a completion queue began to use it");
		return URMA_FAIL;
	}
	c = j->ctx;
	free(j);
	ub_context_release(c);
	return URMA_SUCCESS;
}

urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only)
{
	struct ub_jfc *j = ub_jfc_of(jfc);
	uint64_t begin = ub_perf_begin();
	int error;

	if (!jfc || (j->magic != UB_JFC_MAGIC && j->magic != UB_JFC_CHECKED)) {
		ub_refuse("urma_rearm_jfc: jfc %p is %s", (void *)jfc,
			  jfc ? "no live and active completion queue" : "NULL");
		return URMA_EINVAL;
	}
	error = xtal_shared_cq_arm(j->core, solicited_only);
	ub_perf_end(UB_REARM_JFC, begin);
	if (!error)
		return URMA_SUCCESS;
	ub_refuse("urma_rearm_jfc: completion queue %u: %s", jfc->jfc_id.id,
		  jfc->jfc_cfg.jfce ? ub_reason(error) : "it was made without an event channel");
	return URMA_EINVAL;
}

#define TAKEN_AT_ONCE 32u

int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[])
{
	struct ub_jfce *j = ub_jfce_of(jfce);
	uint64_t begin = ub_perf_begin();
	void *owners[TAKEN_AT_ONCE];
	struct ub_node *inside;
	int got;

	if (!jfc_cnt || !jfc) {
		ub_refuse("urma_wait_jfc: %s", jfc ? "jfc_cnt is 0" : "jfc is NULL");
		return -1;
	}
	inside = ub_enter("urma_wait_jfc", jfce, UB_JFCE);
	if (!inside)
		return -1;
	if (jfc_cnt > TAKEN_AT_ONCE)
		jfc_cnt = TAKEN_AT_ONCE;
	got = xtal_unlikely(xtal_checks()) ? ub_check_wait(j, jfc_cnt, time_out, owners)
					   : xtal_channel_wait(j->core, jfc_cnt, time_out, owners,
							       ub_leave_cancelled, inside);
	ub_leave(inside);
	if (got < 0) {
		ub_refuse("urma_wait_jfc: %s",
			  got == -ESHUTDOWN ? "the event channel was deleted" : ub_reason(got));
		return -1;
	}
	for (int i = 0; i < got; i++)
		jfc[i] = &((struct ub_jfc *)owners[i])->pub;
	ub_perf_end(UB_WAIT_JFC, begin);
	return got;
}

void urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt)
{
	uint64_t begin = ub_perf_begin();

	if (!jfc || !nevents)
		return;
	for (uint32_t i = 0; i < jfc_cnt; i++) {
		struct ub_jfc *j = ub_jfc_of(jfc[i]);
		uint32_t id, counted;

		if (!j || !nevents[i] || (j->magic != UB_JFC_MAGIC && j->magic != UB_JFC_CHECKED))
			continue;
		__atomic_fetch_add(&j->pub.comp_events_acked, nevents[i], __ATOMIC_RELAXED);
		id = j->pub.jfc_id.id; /* who waits for these to delete it goes on now */
		counted = xtal_shared_cq_ack(j->core, nevents[i]);
		if (xtal_unlikely(counted < nevents[i]))
			ub_refuse(
				"urma_ack_jfc: nevents is %u for completion queue %u, of which %u "
				"events were taken and not acknowledged; the rest does not count",
				nevents[i], id, counted);
	}
	ub_perf_end(UB_ACK_JFC, begin);
}
