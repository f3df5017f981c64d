/* SPDX-License-Identifier: MIT */
/* Jetties: made at once or in two steps, changed, described, deleted. */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"
#include "check.h"
#include "group.h"
#include "option.h"
#include "queue.h"

static struct ub_jetty *check(const char *function, const urma_jetty_t *jetty, bool active)
{
	if (!ub_check(function, jetty, UB_JETTY))
		return NULL;
	if (jetty->urma_jetty_opt.is_actived == active)
		return ub_jetty_of(jetty);
	ub_refuse("%s: jetty 0x%x is %s", function, jetty->jetty_id.id,
		  active ? "not active" : "active");
	return NULL;
}

urma_jfc_t *ub_jetty_receive_jfc(const urma_jetty_cfg_t *cfg)
{
	return cfg->shared.jfc ? cfg->shared.jfc : cfg->shared.jfr->jfr_cfg.jfc;
}

int ub_queue_id(struct ub_ids *ids, uint32_t wanted, uint32_t *out)
{
	if (wanted >= UB_MAX_JETTY)
		return -EEXIST; /* the ids of no context */
	return ub_ids_take(ids, wanted, out);
}

bool ub_jetty_cfg_ok(const char *function, const struct ub_context *c, urma_jetty_cfg_t *cfg)
{
	const urma_jfr_cfg_t *jfr;

	if (!ub_jfs_cfg_ok(function, c, &cfg->jfs_cfg, true))
		return false;
	if (!cfg->flag.bs.share_jfr || !cfg->shared.jfr) {
		ub_refuse("%s: %s; a jetty receives through a jfr of its own context", function,
			  cfg->flag.bs.share_jfr ? "shared.jfr is NULL" : "flag share_jfr is 0");
		return false;
	}
	if (!ub_check(function, cfg->shared.jfr, UB_JFR))
		return false;
	if (ub_jfr_of(cfg->shared.jfr)->ctx != c) {
		ub_refuse("%s: shared.jfr is of another context", function);
		return false;
	}
	if (cfg->shared.jfc && !ub_jfc_usable(function, c, cfg->shared.jfc, "shared.jfc"))
		return false;
	jfr = &cfg->shared.jfr->jfr_cfg;
	if (jfr->trans_mode != cfg->jfs_cfg.trans_mode ||
	    jfr->flag.bs.order_type != cfg->jfs_cfg.flag.bs.order_type) {
		ub_refuse("%s: mode %d with order %u; the jfr has mode %d with order %u", function,
			  (int)cfg->jfs_cfg.trans_mode, cfg->jfs_cfg.flag.bs.order_type,
			  (int)jfr->trans_mode, jfr->flag.bs.order_type);
		return false;
	}
	return !cfg->jetty_grp || ub_group_cfg_ok(function, c, cfg);
}

static urma_status_t make(const char *function, urma_context_t *ctx, urma_jetty_cfg_t *cfg,
			  struct ub_jetty **out)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_jetty *j;
	int error;

	if (!ub_check(function, ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (!cfg) {
		ub_refuse("%s: the cfg is NULL", function);
		return URMA_EINVAL;
	}
	if (!ub_jetty_cfg_ok(function, c, cfg))
		return URMA_EINVAL;
	j = calloc(1, sizeof(*j));
	error = j ? ub_queue_id(&c->jetty_ids, cfg->id, &j->send.id) : -ENOMEM;
	if (error) {
		free(j);
		ub_refuse("%s: no jetty with id 0x%x: %s", function, cfg->id, ub_reason(error));
		return error == -EEXIST ? URMA_EINVAL : URMA_ENOMEM;
	}
	j->pub.urma_ctx = ctx;
	j->pub.jetty_id =
		(urma_jetty_id_t){ .eid = ctx->eid, .uasid = ctx->uasid, .id = j->send.id };
	j->pub.jetty_cfg = *cfg;
	j->send.ctx = c;
	j->send.jetty = true;
	j->send.cfg = &j->pub.jetty_cfg.jfs_cfg;
	j->send.pub = &j->pub;
	ub_acks_init(&j->acks);
	ub_context_hold(c);
	ub_enlist(&j->node, &j->pub, UB_JETTY);
	*out = j;
	return URMA_SUCCESS;
}

/* Both sides. 0 or -errno; -EPERM: the group is full. */
static int open_core(struct ub_jetty *j)
{
	const urma_jetty_cfg_t *cfg = &j->pub.jetty_cfg;
	struct ub_jfr *jfr = ub_jfr_of(cfg->shared.jfr);
	struct xtal_endpoint_attr attr = {
		.id = j->send.id,
		.jetty = true,
		.token = jfr->pub.jfr_cfg.token_value.token,
		.token_valid = jfr->pub.jfr_cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT,
		.rnr_us = ub_rnr_us(&jfr->pub),
		.rq = jfr->core,
		.cq = ub_jfc_use(ub_jetty_receive_jfc(cfg)),
		.owner = &j->pub,
	};
	int error;

	atomic_fetch_add(&jfr->users, 1);
	error = xtal_endpoint_create(j->send.ctx->core, &attr, &j->endpoint);
	if (error)
		goto unuse;
	error = ub_sender_open(&j->send, j->endpoint, &j->acks);
	if (error)
		goto destroy;
	if (!cfg->jetty_grp)
		return 0;
	error = ub_group_join(ub_group_of(cfg->jetty_grp), j);
	if (!error) {
		j->group = ub_group_of(cfg->jetty_grp);
		return 0;
	}
	ub_sender_close(&j->send);
destroy:
	xtal_endpoint_destroy(&j->endpoint);
unuse:
	atomic_fetch_sub(&jfr->users, 1);
	ub_jfc_unuse(ub_jetty_receive_jfc(cfg));
	return error;
}

static urma_status_t activate(const char *function, struct ub_jetty *j)
{
	const urma_jetty_cfg_t *cfg = &j->pub.jetty_cfg;
	int error;

	if (!ub_jfc_active(function, cfg->jfs_cfg.jfc) ||
	    !ub_jfc_active(function, ub_jetty_receive_jfc(cfg)))
		return URMA_EINVAL;
	if (!cfg->shared.jfr->urma_jfr_opt.is_actived) {
		ub_refuse("%s: receive queue 0x%x is not active", function,
			  cfg->shared.jfr->jfr_id.id);
		return URMA_EINVAL;
	}
	error = open_core(j);
	if (error == -EPERM && cfg->jetty_grp) {
		ub_refuse("%s: group 0x%x has %u members, the most there can be", function,
			  cfg->jetty_grp->jetty_grp_id.id, UB_MAX_GROUP_SIZE);
		return URMA_ENOPERM;
	}
	if (error) {
		ub_refuse("%s: no jetty of depth %u: %s", function, cfg->jfs_cfg.depth,
			  ub_reason(error));
		return error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
	}
	j->pub.urma_jetty_opt.is_actived = true;
	return URMA_SUCCESS;
}

static urma_status_t deactivate(const char *function, struct ub_jetty *j)
{
	const urma_jetty_cfg_t *cfg = &j->pub.jetty_cfg;

	if (j->pub.remote_jetty) {
		ub_refuse("%s: jetty 0x%x is bound to 0x%x; unbind it first", function, j->send.id,
			  j->pub.remote_jetty->id.id);
		return URMA_ENOPERM;
	}
	ub_acks_wait(&j->acks, function);
	j->pub.urma_jetty_opt.is_actived = false;
	if (j->group)
		ub_group_leave(j->group, j);
	j->group = NULL;
	ub_sender_close(&j->send);
	xtal_endpoint_destroy(&j->endpoint);
	atomic_fetch_sub(&ub_jfr_of(cfg->shared.jfr)->users, 1);
	ub_jfc_unuse(ub_jetty_receive_jfc(cfg));
	return URMA_SUCCESS;
}

/* Nobody takes an event of it any more; of those that were taken, all are acknowledged first. */
static void release(const char *function, struct ub_jetty *j)
{
	struct ub_context *c = j->send.ctx;

	xtal_context_forget(c->core, &j->acks.source);
	ub_acks_wait(&j->acks, function);
	ub_check_gone();
	ub_ids_give_back(&c->jetty_ids, j->send.id);
	free(j);
	ub_context_release(c);
}

urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *jetty_cfg)
{
	struct ub_jetty *j;
	urma_status_t status = make("urma_create_jetty", ctx, jetty_cfg, &j);

	if (status)
		return ub_null(status);
	status = activate("urma_create_jetty", j);
	if (!status)
		return &j->pub;
	if (ub_delist(&j->node))
		release("urma_create_jetty", j);
	return ub_null(status);
}

urma_status_t urma_alloc_jetty(urma_context_t *urma_ctx, urma_jetty_cfg_t *cfg,
			       urma_jetty_t **jetty)
{
	struct ub_jetty *j;
	urma_status_t status;

	if (!jetty) {
		ub_refuse("urma_alloc_jetty: jetty is NULL");
		return URMA_EINVAL;
	}
	status = make("urma_alloc_jetty", urma_ctx, cfg, &j);
	if (!status)
		*jetty = &j->pub;
	return status;
}

urma_status_t urma_active_jetty(urma_jetty_t *jetty)
{
	struct ub_jetty *j = check("urma_active_jetty", jetty, false);

	if (!j || !ub_jetty_cfg_ok("urma_active_jetty", j->send.ctx, &jetty->jetty_cfg))
		return URMA_EINVAL;
	return activate("urma_active_jetty", j);
}

urma_status_t urma_deactive_jetty(urma_jetty_t *jetty)
{
	struct ub_jetty *j = check("urma_deactive_jetty", jetty, true);

	return j ? deactivate("urma_deactive_jetty", j) : URMA_EINVAL;
}

urma_status_t urma_free_jetty(urma_jetty_t *jetty)
{
	struct ub_jetty *j = check("urma_free_jetty", jetty, false);

	if (!j || !ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_free_jetty", j);
	return URMA_SUCCESS;
}

urma_status_t urma_delete_jetty(urma_jetty_t *jetty)
{
	struct ub_jetty *j = check("urma_delete_jetty", jetty, true);
	urma_status_t status = j ? deactivate("urma_delete_jetty", j) : URMA_EINVAL;

	if (status)
		return status;
	if (!ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_delete_jetty", j);
	return URMA_SUCCESS;
}

static urma_status_t delete_one(void *jetty)
{
	return urma_delete_jetty(jetty);
}

static const urma_context_t *context_of(const void *jetty)
{
	return ((const urma_jetty_t *)jetty)->urma_ctx;
}

urma_status_t urma_delete_jetty_batch(urma_jetty_t **jetty_arr, int jetty_num,
				      urma_jetty_t **bad_jetty)
{
	static const struct ub_batch batch = { "urma_delete_jetty_batch", UB_JETTY, delete_one,
					       context_of };

	return ub_delete_batch(&batch, (void **)jetty_arr, jetty_num, (void **)bad_jetty);
}

urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr)
{
	struct ub_jetty *j = check("urma_modify_jetty", jetty, true);

	if (!j)
		return URMA_EINVAL;
	if (!attr || attr->mask != JETTY_STATE) {
		ub_refuse("urma_modify_jetty: %s",
			  attr ? "the mask must be JETTY_STATE" : "attr is NULL");
		return URMA_EINVAL;
	}
	return ub_sender_modify("urma_modify_jetty", &j->send, attr->state);
}

urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr)
{
	if (!ub_check("urma_query_jetty", jetty, UB_JETTY))
		return URMA_EINVAL;
	if (!cfg || !attr) {
		ub_refuse("urma_query_jetty: %s is NULL", cfg ? "attr" : "cfg");
		return URMA_EINVAL;
	}
	*cfg = jetty->jetty_cfg;
	*attr = (urma_jetty_attr_t){ .mask = JETTY_STATE,
				     .state = ub_sender_state(&ub_jetty_of(jetty)->send) };
	return URMA_SUCCESS;
}

int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr)
{
	struct ub_jetty *j = check("urma_flush_jetty", jetty, true);

	return j ? ub_sender_flush("urma_flush_jetty", &j->send, cr_cnt, cr) : -EINVAL;
}

urma_status_t urma_set_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len)
{
	struct ub_jetty *j = check("urma_set_jetty_opt", jetty, false);
	urma_jetty_cfg_t cfg;
	urma_status_t status;

	if (!j)
		return URMA_EINVAL;
	if (opt == URMA_JETTY_ID || opt == URMA_JFS_ID) {
		status = ub_option_id("urma_set_jetty_opt", &j->send.ctx->jetty_ids, buf, len,
				      &j->send.id, &jetty->jetty_id.id);
		if (!status)
			jetty->jetty_cfg.id = j->send.id;
		return status;
	}
	cfg = jetty->jetty_cfg;
	status = ub_option_set("urma_set_jetty_opt", &ub_jetty_options, &cfg, opt, buf, len);
	if (status)
		return status;
	/* Mode and receive queue belong together: what they make is looked at when it is active. */
	if (opt == URMA_JFS_TRANS_MODE)
		cfg.jfs_cfg.flag.bs.order_type = URMA_DEF_ORDER;
	else if (opt != URMA_JETTY_BIND_JFR &&
		 !ub_jetty_cfg_ok("urma_set_jetty_opt", j->send.ctx, &cfg))
		return URMA_EINVAL;
	jetty->jetty_cfg = cfg;
	return URMA_SUCCESS;
}

urma_status_t urma_get_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len)
{
	if (!ub_check("urma_get_jetty_opt", jetty, UB_JETTY))
		return URMA_EINVAL;
	if (opt == URMA_JETTY_ID || opt == URMA_JFS_ID)
		return ub_option_copy("urma_get_jetty_opt", &jetty->jetty_id.id, sizeof(uint32_t),
				      buf, len);
	return ub_option_get("urma_get_jetty_opt", &ub_jetty_options, &jetty->jetty_cfg, opt, buf,
			     len);
}

urma_status_t urma_get_rjetty(urma_jetty_t *jetty, urma_rjetty_t **rjetty, uint32_t *rjetty_len)
{
	const urma_jetty_cfg_t *cfg;
	urma_rjetty_t *r;

	if (!ub_check("urma_get_rjetty", jetty, UB_JETTY))
		return URMA_EINVAL;
	cfg = &jetty->jetty_cfg;
	if (!rjetty || !rjetty_len || !cfg->shared.jfr) {
		ub_refuse("urma_get_rjetty: %s is NULL", !rjetty       ? "rjetty"
							 : !rjetty_len ? "rjetty_len"
								       : "the jetty's shared.jfr");
		return URMA_EINVAL;
	}
	/* An inactive one does not keep it alive. */
	if (!ub_check("urma_get_rjetty", cfg->shared.jfr, UB_JFR))
		return URMA_EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r) {
		ub_refuse("urma_get_rjetty: no memory");
		return URMA_ENOMEM;
	}
	r->jetty_id = jetty->jetty_id;
	r->trans_mode = cfg->jfs_cfg.trans_mode;
	r->policy = URMA_JETTY_GRP_POLICY_RR;
	r->type = URMA_JETTY;
	r->flag.bs.order_type = cfg->jfs_cfg.flag.bs.order_type;
	r->flag.bs.token_policy = cfg->shared.jfr->jfr_cfg.flag.bs.token_policy;
	*rjetty = r;
	*rjetty_len = sizeof(*r);
	return URMA_SUCCESS;
}

void urma_put_rjetty(urma_rjetty_t *rjetty)
{
	free(rjetty);
}
