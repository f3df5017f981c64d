/* SPDX-License-Identifier: MIT */
/* Receive queues: made at once or in two steps, changed, deleted. */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"
#include "check.h"
#include "option.h"
#include "queue.h"

static struct ub_jfr *check(const char *function, const urma_jfr_t *jfr, bool active)
{
	if (!ub_check(function, jfr, UB_JFR))
		return NULL;
	if (jfr->urma_jfr_opt.is_actived == active)
		return ub_jfr_of(jfr);
	ub_refuse("%s: receive queue 0x%x is %s", function, jfr->jfr_id.id,
		  active ? "not active" : "active");
	return NULL;
}

bool ub_jfr_cfg_ok(const char *function, const struct ub_context *c, urma_jfr_cfg_t *cfg)
{
	const char *why;

	if (!ub_jfc_usable(function, c, cfg->jfc, "jfc"))
		return false;
	ub_check_bits(function, "urma_jfr_cfg_t", "flag", cfg->flag.bs.reserved);
	cfg->flag.bs.order_type = ub_order_of(cfg->trans_mode, cfg->flag.bs.order_type) & 0xff;
	why = ub_order_refused(cfg->trans_mode, cfg->flag.bs.order_type);
	if (why)
		ub_refuse("%s: mode %d with order %u: %s", function, (int)cfg->trans_mode,
			  cfg->flag.bs.order_type, why);
	else if (!cfg->depth || cfg->depth > UB_MAX_DEPTH)
		ub_refuse("%s: depth is %u, 1 to %u are possible", function, cfg->depth,
			  UB_MAX_DEPTH);
	else if (!cfg->max_sge || cfg->max_sge > UB_MAX_RECV_SGE)
		ub_refuse("%s: max_sge is %u, 1 to %u are possible", function, cfg->max_sge,
			  UB_MAX_RECV_SGE);
	else if (cfg->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
		ub_refuse("%s: token policy %u; NONE (0) and PLAIN_TEXT (1) are supported",
			  function, cfg->flag.bs.token_policy);
	else if (cfg->flag.bs.tag_matching)
		ub_refuse("%s: tag matching is not supported; flag.bs.tag_matching must be 0",
			  function);
	else
		return true;
	return false;
}

static urma_status_t make(const char *function, urma_context_t *ctx, urma_jfr_cfg_t *cfg,
			  struct ub_jfr **out)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_jfr *j;
	int error;

	if (!ub_check(function, ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (!cfg) {
		ub_refuse("%s: the cfg is NULL", function);
		return URMA_EINVAL;
	}
	if (!ub_jfr_cfg_ok(function, c, cfg))
		return URMA_EINVAL;
	j = calloc(1, sizeof(*j));
	error = j ? ub_queue_id(&c->jfr_ids, cfg->id, &j->pub.jfr_id.id) : -ENOMEM;
	if (error) {
		free(j);
		ub_refuse("%s: no receive queue with id 0x%x: %s", function, cfg->id,
			  ub_reason(error));
		return error == -EEXIST ? URMA_EINVAL : URMA_ENOMEM;
	}
	j->pub.urma_ctx = ctx;
	j->pub.jfr_id.eid = ctx->eid;
	j->pub.jfr_id.uasid = ctx->uasid;
	j->pub.jfr_cfg = *cfg;
	j->state = URMA_JFR_STATE_RESET;
	j->ctx = c;
	ub_acks_init(&j->acks);
	ub_context_hold(c);
	ub_enlist(&j->node, &j->pub, UB_JFR);
	*out = j;
	return URMA_SUCCESS;
}

uint32_t ub_rnr_us(const urma_jfr_t *jfr)
{
	/* As in InfiniBand, where 12 is 0.64 ms too. There 0 is the longest, 655 ms; here it is what
	 * programs leave that set nothing. */
	static const uint32_t table[] = { 640,    10,     20,     30,    40,    60,    80,
					  120,    160,    240,    320,   480,   640,   960,
					  1280,   1920,   2560,   3840,  5120,  7680,  10240,
					  15360,  20480,  30720,  40960, 61440, 81920, 122880,
					  163840, 245760, 327680, 491520 };
	uint8_t code = jfr->jfr_cfg.min_rnr_timer;

	return table[code < 32 ? code : 31];
}

/* Receive queue, and the endpoint that messages to the queue itself are addressed to. 0, -errno. */
static int open_core(struct ub_jfr *j)
{
	const urma_jfr_cfg_t *cfg = &j->pub.jfr_cfg;
	struct xtal_receive_queue_attr attr = { .depth = cfg->depth,
						.max_sges = cfg->max_sge,
						.id = j->pub.jfr_id.id,
						.source = &j->acks.source };
	struct xtal_endpoint_attr endpoint = {
		.id = j->pub.jfr_id.id,
		.token = cfg->token_value.token,
		.token_valid = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT,
		.rnr_us = ub_rnr_us(&j->pub),
		.cq = ub_jfc_use(cfg->jfc),
		.owner = &j->pub,
	};
	int error = xtal_receive_queue_create(j->ctx->core, &attr, &j->core);

	if (error)
		goto unuse;
	endpoint.rq = j->core;
	error = xtal_endpoint_create(j->ctx->core, &endpoint, &j->endpoint);
	if (!error)
		return 0;
	xtal_receive_queue_destroy(&j->core);
unuse:
	ub_jfc_unuse(cfg->jfc);
	return error;
}

static urma_status_t activate(const char *function, struct ub_jfr *j)
{
	int error;

	if (!ub_jfc_active(function, j->pub.jfr_cfg.jfc))
		return URMA_EINVAL;
	error = open_core(j);
	if (error) {
		ub_refuse("%s: no receive queue of depth %u: %s", function, j->pub.jfr_cfg.depth,
			  ub_reason(error));
		return error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
	}
	j->state = URMA_JFR_STATE_READY;
	j->pub.urma_jfr_opt.is_actived = true;
	j->magic = xtal_checks() ? UB_JFR_CHECKED : UB_JFR_MAGIC;
	return URMA_SUCCESS;
}

static urma_status_t deactivate(const char *function, struct ub_jfr *j)
{
	unsigned users = atomic_load(&j->users);

	if (users) {
		ub_refuse("%s: %u jetties share receive queue 0x%x; delete them first", function,
			  users, j->pub.jfr_id.id);
		return URMA_EINVAL;
	}
	ub_acks_wait(&j->acks, function);
	j->magic = 0;
	j->state = URMA_JFR_STATE_RESET;
	j->pub.urma_jfr_opt.is_actived = false;
	xtal_endpoint_destroy(&j->endpoint);
	xtal_receive_queue_destroy(&j->core);
	ub_jfc_unuse(j->pub.jfr_cfg.jfc);
	return URMA_SUCCESS;
}

/* Nobody takes an event of it any more; of those that were taken, all are acknowledged first. */
static void release(const char *function, struct ub_jfr *j)
{
	struct ub_context *c = j->ctx;

	xtal_context_forget(c->core, &j->acks.source);
	ub_acks_wait(&j->acks, function);
	ub_ids_give_back(&c->jfr_ids, j->pub.jfr_id.id);
	free(j);
	ub_context_release(c);
}

urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *jfr_cfg)
{
	struct ub_jfr *j;
	urma_status_t status = make("urma_create_jfr", ctx, jfr_cfg, &j);

	if (status)
		return ub_null(status);
	status = activate("urma_create_jfr", j);
	if (!status)
		return &j->pub;
	if (ub_delist(&j->node))
		release("urma_create_jfr", j);
	return ub_null(status);
}

urma_status_t urma_alloc_jfr(urma_context_t *urma_ctx, urma_jfr_cfg_t *cfg, urma_jfr_t **jfr)
{
	struct ub_jfr *j;
	urma_status_t status;

	if (!jfr) {
		ub_refuse("urma_alloc_jfr: jfr is NULL");
		return URMA_EINVAL;
	}
	status = make("urma_alloc_jfr", urma_ctx, cfg, &j);
	if (!status)
		*jfr = &j->pub;
	return status;
}

urma_status_t urma_active_jfr(urma_jfr_t *jfr)
{
	struct ub_jfr *j = check("urma_active_jfr", jfr, false);

	if (!j || !ub_jfr_cfg_ok("urma_active_jfr", j->ctx, &jfr->jfr_cfg))
		return URMA_EINVAL;
	return activate("urma_active_jfr", j);
}

urma_status_t urma_deactive_jfr(urma_jfr_t *jfr)
{
	struct ub_jfr *j = check("urma_deactive_jfr", jfr, true);

	return j ? deactivate("urma_deactive_jfr", j) : URMA_EINVAL;
}

urma_status_t urma_free_jfr(urma_jfr_t *jfr)
{
	struct ub_jfr *j = check("urma_free_jfr", jfr, false);

	if (!j || !ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_free_jfr", j);
	return URMA_SUCCESS;
}

urma_status_t urma_delete_jfr(urma_jfr_t *jfr)
{
	struct ub_jfr *j = check("urma_delete_jfr", jfr, true);
	urma_status_t status = j ? deactivate("urma_delete_jfr", j) : URMA_EINVAL;

	if (status)
		return status;
	if (!ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_delete_jfr", j);
	return URMA_SUCCESS;
}

static urma_status_t delete_one(void *jfr)
{
	return urma_delete_jfr(jfr);
}

static const urma_context_t *context_of(const void *jfr)
{
	return ((const urma_jfr_t *)jfr)->urma_ctx;
}

urma_status_t urma_delete_jfr_batch(urma_jfr_t **jfr_arr, int jfr_num, urma_jfr_t **bad_jfr)
{
	static const struct ub_batch batch = { "urma_delete_jfr_batch", UB_JFR, delete_one,
					       context_of };

	return ub_delete_batch(&batch, (void **)jfr_arr, jfr_num, (void **)bad_jfr);
}

_Static_assert((int)XTAL_RECEIVE_RESET == (int)URMA_JFR_STATE_RESET, "states need no table");
_Static_assert((int)XTAL_RECEIVE_READY == (int)URMA_JFR_STATE_READY, "states need no table");
_Static_assert((int)XTAL_RECEIVE_ERROR == (int)URMA_JFR_STATE_ERROR, "states need no table");

static urma_status_t modify_state(struct ub_jfr *j, urma_jfr_state_t state)
{
	static const char *const names[] = { "RESET", "READY", "ERROR" };

	if ((unsigned)state > URMA_JFR_STATE_ERROR) {
		ub_refuse("urma_modify_jfr: %u is no state; RESET (0) to ERROR (2) are",
			  (unsigned)state);
		return URMA_FAIL;
	}
	if (xtal_receive_queue_set_state(j->core, (enum xtal_receive_state)state, j->endpoint)) {
		ub_refuse(
			"urma_modify_jfr: %s cannot follow %s for receive queue 0x%x; RESET > READY "
			"> ERROR > RESET can",
			names[state], names[j->state], j->pub.jfr_id.id);
		return URMA_FAIL;
	}
	j->state = state;
	return URMA_SUCCESS;
}

urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr)
{
	const uint32_t known = JFR_RX_THRESHOLD | JFR_STATE;
	struct ub_jfr *j = check("urma_modify_jfr", jfr, true);

	if (!j)
		return URMA_EINVAL;
	if (!attr || !(attr->mask & known)) {
		ub_refuse("urma_modify_jfr: %s",
			  attr ? "the mask has neither JFR_RX_THRESHOLD nor JFR_STATE"
			       : "attr is NULL");
		return URMA_EINVAL;
	}
	if (attr->mask & JFR_RX_THRESHOLD) {
		if (attr->rx_threshold > jfr->jfr_cfg.depth) {
			ub_refuse("urma_modify_jfr: rx_threshold is %u, the depth is %u",
				  attr->rx_threshold, jfr->jfr_cfg.depth);
			return URMA_EINVAL;
		}
		j->threshold = attr->rx_threshold;
		xtal_receive_queue_set_limit(j->core, attr->rx_threshold);
	}
	return attr->mask & JFR_STATE ? modify_state(j, attr->state) : URMA_SUCCESS;
}

urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr)
{
	if (!ub_check("urma_query_jfr", jfr, UB_JFR))
		return URMA_EINVAL;
	if (!cfg || !attr) {
		ub_refuse("urma_query_jfr: %s is NULL", cfg ? "attr" : "cfg");
		return URMA_EINVAL;
	}
	*cfg = jfr->jfr_cfg;
	attr->mask = JFR_RX_THRESHOLD | JFR_STATE;
	attr->rx_threshold = ub_jfr_of(jfr)->threshold;
	attr->state = ub_jfr_of(jfr)->state;
	return URMA_SUCCESS;
}

urma_status_t urma_set_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len)
{
	struct ub_jfr *j = check("urma_set_jfr_opt", jfr, false);
	urma_jfr_cfg_t cfg;
	urma_status_t status;

	if (!j)
		return URMA_EINVAL;
	if (opt == URMA_JFR_ID)
		return ub_option_id("urma_set_jfr_opt", &j->ctx->jfr_ids, buf, len, &jfr->jfr_id.id,
				    &jfr->jfr_cfg.id);
	cfg = jfr->jfr_cfg;
	status = ub_option_set("urma_set_jfr_opt", &ub_jfr_options, &cfg, opt, buf, len);
	if (status)
		return status;
	if (opt == URMA_JFR_TRANS_MODE)
		cfg.flag.bs.order_type = URMA_DEF_ORDER; /* that of the new mode */
	if (!ub_jfr_cfg_ok("urma_set_jfr_opt", j->ctx, &cfg))
		return URMA_EINVAL;
	jfr->jfr_cfg = cfg;
	return URMA_SUCCESS;
}

urma_status_t urma_get_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len)
{
	if (!ub_check("urma_get_jfr_opt", jfr, UB_JFR))
		return URMA_EINVAL;
	if (opt == URMA_JFR_ID)
		return ub_option_copy("urma_get_jfr_opt", &jfr->jfr_id.id, sizeof(uint32_t), buf,
				      len);
	return ub_option_get("urma_get_jfr_opt", &ub_jfr_options, &jfr->jfr_cfg, opt, buf, len);
}
