/* SPDX-License-Identifier: MIT */
/* Completion queues: made at once or in two steps, changed, deleted. */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"
#include "check.h"
#include "core/config.h"
#include "option.h"
#include "queue.h"

static struct ub_jfc *check(const char *function, const urma_jfc_t *jfc, bool active)
{
	if (!ub_check(function, jfc, UB_JFC))
		return NULL;
	if (jfc->urma_jfc_opt.is_actived == active)
		return ub_jfc_of(jfc);
	ub_refuse("%s: completion queue %u is %s", function, jfc->jfc_id.id,
		  active ? "not active" : "active");
	return NULL;
}

bool ub_jfc_cfg_ok(const char *function, const struct ub_context *c, const urma_jfc_cfg_t *cfg)
{
	if (!cfg->depth || cfg->depth > UB_MAX_DEPTH) {
		ub_refuse("%s: depth is %u, 1 to %u are possible", function, cfg->depth,
			  UB_MAX_DEPTH);
		return false;
	}
	if (!cfg->jfce)
		return true;
	if (!ub_check(function, cfg->jfce, UB_JFCE))
		return false;
	if (ub_jfce_of(cfg->jfce)->ctx == c)
		return true;
	ub_refuse("%s: the jfce is of another context", function);
	return false;
}

bool ub_jfc_usable(const char *function, const struct ub_context *c, const urma_jfc_t *jfc,
		   const char *role)
{
	if (!jfc) {
		ub_refuse("%s: %s is NULL", function, role);
		return false;
	}
	if (!ub_check(function, jfc, UB_JFC))
		return false;
	if (ub_jfc_of(jfc)->ctx == c)
		return true;
	ub_refuse("%s: %s, completion queue %u, is of another context", function, role,
		  jfc->jfc_id.id);
	return false;
}

bool ub_jfc_active(const char *function, const urma_jfc_t *jfc)
{
	return check(function, jfc, true) != NULL;
}

struct xtal_shared_cq *ub_jfc_use(const urma_jfc_t *jfc)
{
	atomic_fetch_add(&ub_jfc_of(jfc)->users, 1);
	return ub_jfc_of(jfc)->core;
}

void ub_jfc_unuse(const urma_jfc_t *jfc)
{
	atomic_fetch_sub(&ub_jfc_of(jfc)->users, 1);
}

static urma_status_t make(const char *function, urma_context_t *ctx, const urma_jfc_cfg_t *cfg,
			  struct ub_jfc **out)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_jfc *j;
	int error;

	if (!ub_check(function, ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (!cfg) {
		ub_refuse("%s: the cfg is NULL", function);
		return URMA_EINVAL;
	}
	if (!ub_jfc_cfg_ok(function, c, cfg))
		return URMA_EINVAL;
	j = calloc(1, sizeof(*j));
	error = j ? ub_ids_take(&c->jfc_ids, 0, &j->pub.jfc_id.id) : -ENOMEM;
	if (error) {
		free(j);
		ub_refuse("%s: no completion queue: %s", function, ub_reason(error));
		return URMA_ENOMEM;
	}
	j->pub.urma_ctx = ctx;
	j->pub.jfc_id.eid = ctx->eid;
	j->pub.jfc_id.uasid = ctx->uasid;
	j->pub.jfc_cfg = *cfg;
	j->ctx = c;
	ub_acks_init(&j->acks);
	ub_context_hold(c);
	ub_enlist(&j->node, &j->pub, UB_JFC);
	*out = j;
	return URMA_SUCCESS;
}

static urma_status_t activate(const char *function, struct ub_jfc *j)
{
	urma_jfce_t *jfce = j->pub.jfc_cfg.jfce;
	struct xtal_shared_cq_attr attr = { .channel = jfce ? ub_jfce_of(jfce)->core : NULL,
					    .owner = j,
					    .id = j->pub.jfc_id.id,
					    .source = &j->acks.source,
					    .depth = xtal_config()->strict ? j->pub.jfc_cfg.depth
									   : 0 };
	int error = xtal_shared_cq_create(j->ctx->core, &attr, &j->core);

	if (error) {
		ub_refuse("%s: no completion queue: %s", function, ub_reason(error));
		return error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
	}
	if (jfce)
		atomic_fetch_add(&jfce->ref.atomic_cnt, 1);
	j->pub.urma_jfc_opt.is_actived = true;
	j->magic = xtal_checks() ? UB_JFC_CHECKED : UB_JFC_MAGIC;
	return URMA_SUCCESS;
}

static urma_status_t deactivate(const char *function, struct ub_jfc *j)
{
	urma_jfce_t *jfce = j->pub.jfc_cfg.jfce;
	unsigned users = atomic_load(&j->users);
	int error;

	if (users) {
		ub_refuse("%s: %u queues complete on completion queue %u; delete them first",
			  function, users, j->pub.jfc_id.id);
		return URMA_EINVAL;
	}
	/* It stays usable meanwhile: the acknowledgements may yet come. */
	error = xtal_shared_cq_destroy(&j->core, !j->pub.jfc_cfg.flag.bs.non_blocking);
	if (error) {
		ub_refuse("%s: completion queue %u: %s", function, j->pub.jfc_id.id,
			  error == -EAGAIN ? "events of it are not acknowledged"
					   : ub_reason(error));
		return error == -EAGAIN ? URMA_EAGAIN : URMA_EINVAL;
	}
	j->magic = 0;
	ub_acks_wait(&j->acks, function);
	if (jfce)
		atomic_fetch_sub(&jfce->ref.atomic_cnt, 1);
	j->pub.urma_jfc_opt.is_actived = false;
	return URMA_SUCCESS;
}

/* Nobody takes an event of it any more; of those that were taken, all are acknowledged first. */
static void release(const char *function, struct ub_jfc *j)
{
	struct ub_context *c = j->ctx;

	xtal_context_forget(c->core, &j->acks.source);
	ub_acks_wait(&j->acks, function);
	ub_ids_give_back(&c->jfc_ids, j->pub.jfc_id.id);
	free(j);
	ub_context_release(c);
}

urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *jfc_cfg)
{
	struct ub_jfc *j;
	urma_status_t status = make("urma_create_jfc", ctx, jfc_cfg, &j);

	if (status)
		return ub_null(status);
	status = activate("urma_create_jfc", j);
	if (!status)
		return &j->pub;
	if (ub_delist(&j->node))
		release("urma_create_jfc", j);
	return ub_null(status);
}

urma_status_t urma_alloc_jfc(urma_context_t *urma_ctx, urma_jfc_cfg_t *cfg, urma_jfc_t **jfc)
{
	struct ub_jfc *j;
	urma_status_t status;

	if (!jfc) {
		ub_refuse("urma_alloc_jfc: jfc is NULL");
		return URMA_EINVAL;
	}
	status = make("urma_alloc_jfc", urma_ctx, cfg, &j);
	if (!status)
		*jfc = &j->pub;
	return status;
}

urma_status_t urma_active_jfc(urma_jfc_t *jfc)
{
	struct ub_jfc *j = check("urma_active_jfc", jfc, false);

	if (!j || !ub_jfc_cfg_ok("urma_active_jfc", j->ctx, &jfc->jfc_cfg))
		return URMA_EINVAL;
	return activate("urma_active_jfc", j);
}

urma_status_t urma_deactive_jfc(urma_jfc_t *jfc)
{
	struct ub_jfc *j = check("urma_deactive_jfc", jfc, true);

	return j ? deactivate("urma_deactive_jfc", j) : URMA_EINVAL;
}

urma_status_t urma_free_jfc(urma_jfc_t *jfc)
{
	struct ub_jfc *j = check("urma_free_jfc", jfc, false);

	if (!j || !ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_free_jfc", j);
	return URMA_SUCCESS;
}

urma_status_t urma_delete_jfc(urma_jfc_t *jfc)
{
	struct ub_jfc *j = check("urma_delete_jfc", jfc, true);
	urma_status_t status = j ? deactivate("urma_delete_jfc", j) : URMA_EINVAL;

	if (status)
		return status;
	if (!ub_delist(&j->node))
		return URMA_EINVAL;
	release("urma_delete_jfc", j);
	return URMA_SUCCESS;
}

static urma_status_t delete_one(void *jfc)
{
	return urma_delete_jfc(jfc);
}

static const urma_context_t *context_of(const void *jfc)
{
	return ((const urma_jfc_t *)jfc)->urma_ctx;
}

urma_status_t urma_delete_jfc_batch(urma_jfc_t **jfc_arr, int jfc_num, urma_jfc_t **bad_jfc)
{
	static const struct ub_batch batch = { "urma_delete_jfc_batch", UB_JFC, delete_one,
					       context_of };

	return ub_delete_batch(&batch, (void **)jfc_arr, jfc_num, (void **)bad_jfc);
}

urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr)
{
	const uint32_t known = JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD;
	struct ub_jfc *j = check("urma_modify_jfc", jfc, true);

	if (!j)
		return URMA_EINVAL;
	if (!attr || !(attr->mask & known)) {
		ub_refuse("urma_modify_jfc: %s",
			  attr ? "the mask has neither JFC_MODERATE_COUNT nor JFC_MODERATE_PERIOD"
			       : "attr is NULL");
		return URMA_EINVAL;
	}
	if (attr->mask & JFC_MODERATE_COUNT)
		j->moderation.moderate_count = attr->moderate_count;
	if (attr->mask & JFC_MODERATE_PERIOD)
		j->moderation.moderate_period = attr->moderate_period;
	return URMA_SUCCESS;
}

urma_status_t urma_set_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len)
{
	struct ub_jfc *j = check("urma_set_jfc_opt", jfc, false);
	urma_jfc_cfg_t cfg;
	urma_status_t status;

	if (!j)
		return URMA_EINVAL;
	if (opt == URMA_JFC_ID)
		return ub_option_id("urma_set_jfc_opt", &j->ctx->jfc_ids, buf, len, &jfc->jfc_id.id,
				    &jfc->jfc_id.id);
	cfg = jfc->jfc_cfg;
	status = ub_option_set("urma_set_jfc_opt", &ub_jfc_options, &cfg, opt, buf, len);
	if (status)
		return status;
	if (!ub_jfc_cfg_ok("urma_set_jfc_opt", j->ctx, &cfg))
		return URMA_EINVAL;
	jfc->jfc_cfg = cfg;
	return URMA_SUCCESS;
}

urma_status_t urma_get_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len)
{
	if (!ub_check("urma_get_jfc_opt", jfc, UB_JFC))
		return URMA_EINVAL;
	if (opt == URMA_JFC_ID)
		return ub_option_copy("urma_get_jfc_opt", &jfc->jfc_id.id, sizeof(uint32_t), buf,
				      len);
	return ub_option_get("urma_get_jfc_opt", &ub_jfc_options, &jfc->jfc_cfg, opt, buf, len);
}
