/* SPDX-License-Identifier: MIT */
/* The sending side that send queues and jetties have in common: limits, states, flush. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "core/config.h"
#include "core/handle.h"
#include "queue.h"

/*
 * How long without progress until a peer counts as gone: what the program says, for all retries
 * together, but never less than the engine's own limit: programs that run over hardware ask for
 * microseconds. A peer that dies is noticed at once anyway.
 */
#define TIMEOUT_TRIES 8u

/* A receiver that is not ready, and says nothing of it, is asked again after so long. */
#define RNR_US 640u

static uint32_t timeout_ms(uint8_t code)
{
	uint64_t ms = ((UINT64_C(4) << 10) << (code < 31 ? code : 31)) * TIMEOUT_TRIES / 1000000;

	return ms > xtal_config()->timeout_ms ? (uint32_t)ms : 0;
}

static const char *mode_refused(const urma_jfs_cfg_t *cfg, bool for_jetty)
{
	if (cfg->trans_mode == URMA_TM_RC && !for_jetty)
		return "RC needs a jetty";
	return ub_order_refused(cfg->trans_mode, cfg->flag.bs.order_type);
}

bool ub_jfs_cfg_ok(const char *function, const struct ub_context *c, urma_jfs_cfg_t *cfg,
		   bool for_jetty)
{
	const char *why;

	if (!ub_jfc_usable(function, c, cfg->jfc, "jfc"))
		return false;
	ub_check_bits(function, "urma_jfs_cfg_t", "flag", cfg->flag.bs.reserved);
	cfg->flag.bs.order_type = ub_order_of(cfg->trans_mode, cfg->flag.bs.order_type) & 0xff;
	why = mode_refused(cfg, for_jetty);
	if (why)
		ub_refuse("%s: mode %d with order %u: %s", function, (int)cfg->trans_mode,
			  cfg->flag.bs.order_type, why);
	else if (!cfg->depth || cfg->depth > UB_MAX_DEPTH)
		ub_refuse("%s: depth is %u, 1 to %u are possible", function, cfg->depth,
			  UB_MAX_DEPTH);
	else if (cfg->max_sge > UB_MAX_SGE || cfg->max_rsge > UB_MAX_RSGE)
		ub_refuse("%s: max_sge is %u and max_rsge %u, the limits are %u and %u", function,
			  cfg->max_sge, cfg->max_rsge, UB_MAX_SGE, UB_MAX_RSGE);
	else if (cfg->max_inline_data > UB_MAX_INLINE)
		ub_refuse("%s: max_inline_data is %u, the limit is %u bytes", function,
			  cfg->max_inline_data, UB_MAX_INLINE);
	else if (cfg->priority > URMA_MAX_PRIORITY)
		ub_refuse("%s: priority is %u, the highest number is %u", function, cfg->priority,
			  URMA_MAX_PRIORITY);
	else if (cfg->rnr_retry > UB_MAX_RETRY)
		ub_refuse("%s: rnr_retry is %u, the highest number is %u", function, cfg->rnr_retry,
			  UB_MAX_RETRY);
	else
		return true;
	return false;
}

/* Where the queue points: xtal_path_query() asks. */
static struct xtal_eid target_of(const void *foreign)
{
	/* Both public structs begin with their context. */
	const urma_jfs_t *pub = foreign;

	return ub_context_of(pub->urma_ctx)->device->eid;
}

int ub_sender_open(struct ub_sender *s, struct xtal_endpoint *endpoint, struct ub_acks *acks)
{
	const urma_jfs_cfg_t *cfg = s->cfg;
	struct xtal_queue_attr attr = {
		.depth = cfg->depth,
		.timeout_ms = timeout_ms(cfg->err_timeout),
		.cq = ub_jfc_use(cfg->jfc),
		.owner = (void *)(uintptr_t)s->pub,
		.id = s->id,
		.stamp = ub_stamp(s->jetty),
		.jetty = s->jetty,
		.error_suspend = cfg->flag.bs.error_suspend,
		.rnr_retry = cfg->rnr_retry,
		.rnr_us = RNR_US,
		.datagram = cfg->trans_mode == URMA_TM_UM,
		.endpoint = endpoint,
		.source = &acks->source,
	};
	struct xtal_queue_handle handle = { .target = target_of };
	int error = xtal_queue_create(s->ctx->core, &attr, &s->core);

	if (error)
		goto unuse;
	handle.queue = s->core;
	error = xtal_handle_bind_queue(s->pub, &handle);
	if (error)
		goto destroy;
	s->rc = cfg->trans_mode == URMA_TM_RC;
	s->max_sge = cfg->max_sge ? cfg->max_sge : 1;
	s->max_rsge = cfg->max_rsge ? cfg->max_rsge : 1;
	s->max_inline = cfg->max_inline_data ? cfg->max_inline_data : UB_MAX_INLINE;
	s->depth = cfg->depth;
	s->strict = xtal_config()->strict;
	ub_check_sender_opened(s);
	s->magic = xtal_checks() ? UB_SEND_CHECKED : UB_SEND_MAGIC;
	return 0;
destroy:
	xtal_queue_destroy(&s->core);
unuse:
	ub_jfc_unuse(cfg->jfc);
	return error;
}

void ub_sender_close(struct ub_sender *s)
{
	s->magic = 0;
	ub_check_sender_closes(s);
	xtal_handle_unbind(s->pub);
	xtal_queue_destroy(&s->core);
	ub_jfc_unuse(s->cfg->jfc);
}

_Static_assert((int)XTAL_QUEUE_RESET == (int)URMA_JETTY_STATE_RESET, "states need no table");
_Static_assert((int)XTAL_QUEUE_READY == (int)URMA_JETTY_STATE_READY, "states need no table");
_Static_assert((int)XTAL_QUEUE_SUSPENDED == (int)URMA_JETTY_STATE_SUSPENDED,
	       "states need no table");
_Static_assert((int)XTAL_QUEUE_ERROR == (int)URMA_JETTY_STATE_ERROR, "states need no table");

urma_jetty_state_t ub_sender_state(const struct ub_sender *s)
{
	return s->core ? (urma_jetty_state_t)xtal_queue_get_state(s->core) : URMA_JETTY_STATE_RESET;
}

urma_status_t ub_sender_modify(const char *function, struct ub_sender *s, urma_jetty_state_t state)
{
	static const char *const names[] = { "RESET", "READY", "SUSPENDED", "ERROR" };
	urma_jetty_state_t before = ub_sender_state(s);
	int error;

	if ((unsigned)state > URMA_JETTY_STATE_ERROR) {
		ub_refuse("%s: %u is no state; RESET (0) to ERROR (3) are", function,
			  (unsigned)state);
		return URMA_FAIL;
	}
	error = xtal_queue_set_state(s->core, (enum xtal_queue_state)state);
	if (!error && state == URMA_JETTY_STATE_RESET)
		xtal_check_forget(s->check);
	if (!error)
		return URMA_SUCCESS;
	ub_refuse(
		"%s: %s cannot follow %s for %s 0x%x; RESET > READY > SUSPENDED > ERROR > RESET and "
		"READY > ERROR can",
		function, names[state], names[before], s->jetty ? "jetty" : "send queue", s->id);
	return URMA_FAIL;
}

int ub_sender_flush(const char *function, struct ub_sender *s, int count, urma_cr_t *cr)
{
	uint64_t users[64];
	int done = 0;

	if (!cr || count <= 0 || (uint32_t)count > s->depth) {
		if (!cr)
			ub_refuse("%s: cr is NULL", function);
		else
			ub_refuse("%s: cr_cnt is %d, 1 to the depth of %u are possible", function,
				  count, s->depth);
		return -EINVAL;
	}
	while (done < count) {
		uint32_t want = count - done < 64 ? (uint32_t)(count - done) : 64;
		uint32_t got = xtal_queue_flush(s->core, want, users);

		for (uint32_t i = 0; i < got; i++, done++) {
			memset(&cr[done], 0, sizeof(cr[done]));
			cr[done].status = URMA_CR_WR_UNHANDLED;
			cr[done].user_ctx = users[i];
			cr[done].opcode = (urma_cr_opcode_t)UB_NO_OPCODE;
			cr[done].flag.bs.jetty = s->jetty;
			cr[done].local_id = s->id;
			cr[done].user_data = (uintptr_t)s->pub;
			if (s->check)
				ub_check_flushed(s, users[i]);
		}
		if (got < want)
			break;
	}
	return done;
}
