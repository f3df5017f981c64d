/* SPDX-License-Identifier: MIT */
/* Binding RC jetties to their peers, and advice about targets, which makes no difference. */
#include <errno.h>

#include "queue.h"

/* Both alive, or a refusal. */
static bool pair_is_bad(const char *function, const urma_jetty_t *jetty,
			const urma_target_jetty_t *tjetty)
{
	return !ub_check(function, jetty, UB_JETTY) || !ub_check(function, tjetty, UB_TARGET);
}

/* Under ub_lock(). URMA_SUCCESS: bound, now or before. */
static urma_status_t bind_pair(struct ub_jetty *j, struct ub_target *t)
{
	if (j->pub.remote_jetty == &t->pub)
		return URMA_SUCCESS;
	if (j->pub.remote_jetty)
		return URMA_EEXIST;
	if (t->bound)
		return URMA_EINVAL;
	j->pub.remote_jetty = &t->pub;
	j->send.bound = t;
	t->bound = &j->pub;
	t->pub.tp.tpn = 1;
	return URMA_SUCCESS;
}

urma_status_t ub_bind(const char *function, urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
	const urma_jfs_cfg_t *cfg;
	urma_status_t status;

	if (pair_is_bad(function, jetty, tjetty))
		return URMA_EINVAL;
	/* Else it could be freed, or get another mode, with its peer still pointing at it. */
	if (!jetty->urma_jetty_opt.is_actived) {
		ub_refuse("%s: jetty 0x%x is not active", function, jetty->jetty_id.id);
		return URMA_EINVAL;
	}
	cfg = &jetty->jetty_cfg.jfs_cfg;
	if (cfg->trans_mode != URMA_TM_RC || tjetty->trans_mode != URMA_TM_RC) {
		ub_refuse("%s: the jetty has mode %d and its peer %d; both must be RC (2)",
			  function, (int)cfg->trans_mode, (int)tjetty->trans_mode);
		return URMA_ENOPERM;
	}
	if (cfg->flag.bs.order_type != tjetty->flag.bs.order_type) {
		ub_refuse("%s: the jetty has order %u and its peer %u; both must have the same",
			  function, cfg->flag.bs.order_type, tjetty->flag.bs.order_type);
		return URMA_ENOPERM;
	}
	ub_lock();
	status = bind_pair(ub_jetty_of(jetty), ub_target_of(tjetty));
	ub_unlock();
	if (status == URMA_EEXIST)
		ub_refuse("%s: jetty 0x%x is bound to another peer", function, jetty->jetty_id.id);
	else if (status)
		ub_refuse("%s: another jetty is bound to the imported jetty 0x%x", function,
			  tjetty->id.id);
	return status;
}

urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
	return ub_bind("urma_bind_jetty", jetty, tjetty);
}

urma_status_t urma_bind_jetty_ex(urma_jetty_t *jetty, urma_target_jetty_t *tjetty,
				 urma_bind_jetty_ex_cfg_t *cfg)
{
	if (!cfg) {
		ub_refuse("urma_bind_jetty_ex: cfg is NULL");
		return URMA_EINVAL;
	}
	return ub_bind("urma_bind_jetty_ex", jetty, tjetty);
}

urma_status_t ub_unbind(const char *function, urma_jetty_t *jetty)
{
	struct ub_jetty *j = ub_jetty_of(jetty);
	struct ub_target *t;

	if (!ub_check(function, jetty, UB_JETTY))
		return URMA_EINVAL;
	if (jetty->jetty_cfg.jfs_cfg.trans_mode != URMA_TM_RC) {
		ub_refuse("%s: jetty 0x%x has mode %d; only RC (2) is bound", function, j->send.id,
			  (int)jetty->jetty_cfg.jfs_cfg.trans_mode);
		return URMA_ENOPERM;
	}
	ub_lock();
	t = j->send.bound;
	if (t) {
		t->bound = NULL;
		t->pub.tp.tpn = UINT32_MAX;
	}
	j->send.bound = NULL;
	j->pub.remote_jetty = NULL;
	ub_unlock();
	if (t)
		return URMA_SUCCESS;
	ub_refuse("%s: jetty 0x%x is not bound", function, j->send.id);
	return URMA_EINVAL;
}

urma_status_t urma_unbind_jetty(urma_jetty_t *jetty)
{
	return ub_unbind("urma_unbind_jetty", jetty);
}

/* Advice is for reliable messages on both sides. */
static urma_status_t advise(const char *function, urma_transport_mode_t mode,
			    const urma_target_jetty_t *target)
{
	if (!ub_check(function, target, UB_TARGET))
		return URMA_EINVAL;
	if (mode == URMA_TM_RM && target->trans_mode == URMA_TM_RM)
		return URMA_SUCCESS;
	ub_refuse("%s: modes %d and %d; both must be RM (1)", function, (int)mode,
		  (int)target->trans_mode);
	return URMA_EINVAL;
}

static urma_status_t advise_jfs(const char *function, const urma_jfs_t *jfs,
				const urma_target_jetty_t *tjfr)
{
	if (!ub_check(function, jfs, UB_JFS))
		return URMA_EINVAL;
	return advise(function, jfs->jfs_cfg.trans_mode, tjfr);
}

static urma_status_t advise_jetty(const char *function, const urma_jetty_t *jetty,
				  const urma_target_jetty_t *tjetty)
{
	if (!ub_check(function, jetty, UB_JETTY))
		return URMA_EINVAL;
	return advise(function, jetty->jetty_cfg.jfs_cfg.trans_mode, tjetty);
}

urma_status_t urma_advise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr)
{
	return advise_jfs("urma_advise_jfr", jfs, tjfr);
}

urma_status_t urma_unadvise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr)
{
	return advise_jfs("urma_unadvise_jfr", jfs, tjfr);
}

urma_status_t urma_advise_jfr_async(urma_jfs_t *jfs, urma_target_jetty_t *tjfr,
				    urma_advise_async_cb_func cb_fun, void *cb_arg)
{
	(void)cb_arg;
	if (!cb_fun) {
		ub_refuse("urma_advise_jfr_async: cb_fun is NULL");
		return URMA_EINVAL;
	}
	return advise_jfs("urma_advise_jfr_async", jfs, tjfr);
}

urma_status_t urma_advise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
	return advise_jetty("urma_advise_jetty", jetty, tjetty);
}

urma_status_t urma_unadvise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
	return advise_jetty("urma_unadvise_jetty", jetty, tjetty);
}
