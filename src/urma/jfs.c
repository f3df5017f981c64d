/* SPDX-License-Identifier: MIT */
/* Send queues: made at once or in two steps, changed, deleted. */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"
#include "check.h"
#include "option.h"
#include "queue.h"

/* A live send queue, active or not as wanted; else a refusal. */
static struct ub_jfs *check(const char *function, const urma_jfs_t *jfs, bool active)
{
	struct ub_jfs *j = ub_jfs_of(jfs);

	if (!ub_check(function, jfs, UB_JFS))
		return NULL;
	if (jfs->urma_jfs_opt.is_actived == active)
		return j;
	ub_refuse("%s: send queue 0x%x is %s", function, jfs->jfs_id.id,
		  active ? "not active" : "active");
	return NULL;
}

/* An inactive queue with these settings. URMA_SUCCESS or what to return. */
static urma_status_t make(const char *function, urma_context_t *ctx, urma_jfs_cfg_t *cfg,
			  struct ub_jfs **out)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_jfs *j;
	int error;

	if (!ub_check(function, ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (!cfg) {
		ub_refuse("%s: the cfg is NULL", function);
		return URMA_EINVAL;
	}
	if (!ub_jfs_cfg_ok(function, c, cfg, false))
		return URMA_EINVAL;
	j = calloc(1, sizeof(*j));
	error = j ? ub_ids_take(&c->jetty_ids, 0, &j->send.id) : -ENOMEM;
	if (error) {
		free(j);
		ub_refuse("%s: no send queue: %s", function, ub_reason(error));
		return URMA_ENOMEM;
	}
	j->pub.urma_ctx = ctx;
	j->pub.jfs_id = (urma_jfs_id_t){ .eid = ctx->eid, .uasid = ctx->uasid, .id = j->send.id };
	j->pub.jfs_cfg = *cfg;
	j->send.ctx = c;
	j->send.cfg = &j->pub.jfs_cfg;
	j->send.pub = &j->pub;
	ub_acks_init(&j->acks);
	ub_context_hold(c);
	ub_enlist(&j->node, &j->pub, UB_JFS);
	*out = j;
	return URMA_SUCCESS;
}

static urma_status_t activate(const char *function, struct ub_jfs *j)
{
	int error;

	if (!ub_jfc_active(function, j->pub.jfs_cfg.jfc))
		return URMA_EINVAL;
	error = ub_sender_open(&j->send, NULL, &j->acks);
	if (error) {
		ub_refuse("%s: no send queue of depth %u: %s", function, j->pub.jfs_cfg.depth,
			  ub_reason(error));
		return error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
	}
	j->pub.urma_jfs_opt.is_actived = true;
	return URMA_SUCCESS;
}

static void deactivate(struct ub_jfs *j)
{
	j->pub.urma_jfs_opt.is_actived = false;
	ub_sender_close(&j->send);
}

/* Nobody takes an event of it any more; of those that were taken, all are acknowledged first. */
static void release(const char *function, struct ub_jfs *j)
{
	struct ub_context *c = j->send.ctx;

	xtal_context_forget(c->core, &j->acks.source);
	ub_acks_wait(&j->acks, function);
	ub_check_gone();
	ub_ids_give_back(&c->jetty_ids, j->send.id);
	free(j);
	ub_context_release(c);
}

urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *jfs_cfg)
{
	struct ub_jfs *j;
	urma_status_t status = make("urma_create_jfs", ctx, jfs_cfg, &j);

	if (status)
		return ub_null(status);
	status = activate("urma_create_jfs", j);
	if (!status)
		return &j->pub;
	if (ub_delist(&j->node))
		release("urma_create_jfs", j);
	return ub_null(status);
}

urma_status_t urma_alloc_jfs(urma_context_t *urma_ctx, urma_jfs_cfg_t *cfg, urma_jfs_t **jfs)
{
	struct ub_jfs *j;
	urma_status_t status;

	if (!jfs) {
		ub_refuse("urma_alloc_jfs: jfs is NULL");
		return URMA_EINVAL;
	}
	status = make("urma_alloc_jfs", urma_ctx, cfg, &j);
	if (!status)
		*jfs = &j->pub;
	return status;
}

urma_status_t urma_active_jfs(urma_jfs_t *jfs)
{
	struct ub_jfs *j = check("urma_active_jfs", jfs, false);

	if (!j || !ub_jfs_cfg_ok("urma_active_jfs", j->send.ctx, &jfs->jfs_cfg, false))
		return URMA_EINVAL;
	return activate("urma_active_jfs", j);
}

urma_status_t urma_deactive_jfs(urma_jfs_t *jfs)
{
	struct ub_jfs *j = check("urma_deactive_jfs", jfs, true);

	if (!j)
		return URMA_EINVAL;
	deactivate(j);
	return URMA_SUCCESS;
}

urma_status_t urma_free_jfs(urma_jfs_t *jfs)
{
	struct ub_jfs *j = check("urma_free_jfs", jfs, false);

	if (!j || !ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_free_jfs", j);
	return URMA_SUCCESS;
}

urma_status_t urma_delete_jfs(urma_jfs_t *jfs)
{
	struct ub_jfs *j = check("urma_delete_jfs", jfs, true);

	if (!j || !ub_delist(&j->node))
		return URMA_EINVAL;
	ub_acks_wait(&j->acks, "urma_delete_jfs");
	deactivate(j);
	release("urma_delete_jfs", j);
	return URMA_SUCCESS;
}

static urma_status_t delete_one(void *jfs)
{
	return urma_delete_jfs(jfs);
}

static const urma_context_t *context_of(const void *jfs)
{
	return ((const urma_jfs_t *)jfs)->urma_ctx;
}

urma_status_t urma_delete_jfs_batch(urma_jfs_t **jfs_arr, int jfs_num, urma_jfs_t **bad_jfs)
{
	static const struct ub_batch batch = { "urma_delete_jfs_batch", UB_JFS, delete_one,
					       context_of };

	return ub_delete_batch(&batch, (void **)jfs_arr, jfs_num, (void **)bad_jfs);
}

urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr)
{
	struct ub_jfs *j = check("urma_modify_jfs", jfs, true);

	if (!j)
		return URMA_EINVAL;
	if (!attr || attr->mask != JFS_STATE) {
		ub_refuse("urma_modify_jfs: %s",
			  attr ? "the mask must be JFS_STATE" : "attr is NULL");
		return URMA_EINVAL;
	}
	return ub_sender_modify("urma_modify_jfs", &j->send, attr->state);
}

urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr)
{
	if (!ub_check("urma_query_jfs", jfs, UB_JFS))
		return URMA_EINVAL;
	if (!cfg || !attr) {
		ub_refuse("urma_query_jfs: %s is NULL", cfg ? "attr" : "cfg");
		return URMA_EINVAL;
	}
	*cfg = jfs->jfs_cfg;
	attr->mask = JFS_STATE;
	attr->state = ub_sender_state(&ub_jfs_of(jfs)->send);
	return URMA_SUCCESS;
}

int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr)
{
	struct ub_jfs *j = check("urma_flush_jfs", jfs, true);

	return j ? ub_sender_flush("urma_flush_jfs", &j->send, cr_cnt, cr) : -EINVAL;
}

urma_status_t urma_set_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len)
{
	struct ub_jfs *j = check("urma_set_jfs_opt", jfs, false);
	urma_jfs_cfg_t cfg;
	urma_status_t status;

	if (!j)
		return URMA_EINVAL;
	if (opt == URMA_JFS_ID)
		return ub_option_id("urma_set_jfs_opt", &j->send.ctx->jetty_ids, buf, len,
				    &j->send.id, &jfs->jfs_id.id);
	cfg = jfs->jfs_cfg;
	status = ub_option_set("urma_set_jfs_opt", &ub_jfs_options, &cfg, opt, buf, len);
	if (status)
		return status;
	if (opt == URMA_JFS_TRANS_MODE)
		cfg.flag.bs.order_type = URMA_DEF_ORDER; /* that of the new mode */
	if (!ub_jfs_cfg_ok("urma_set_jfs_opt", j->send.ctx, &cfg, false))
		return URMA_EINVAL;
	jfs->jfs_cfg = cfg;
	return URMA_SUCCESS;
}

urma_status_t urma_get_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len)
{
	if (!ub_check("urma_get_jfs_opt", jfs, UB_JFS))
		return URMA_EINVAL;
	if (opt == URMA_JFS_ID)
		return ub_option_copy("urma_get_jfs_opt", &jfs->jfs_id.id, sizeof(uint32_t), buf,
				      len);
	return ub_option_get("urma_get_jfs_opt", &ub_jfs_options, &jfs->jfs_cfg, opt, buf, len);
}
