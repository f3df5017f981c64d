/* SPDX-License-Identifier: MIT */
/*
 * Groups of jetties: made, joined, left, deleted. A message to a group goes to one of its jetties: the
 * request's target_hint says which, the jetties being counted in the order in which they joined,
 * or one after another gets one.
 */
#include "group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool ub_group_cfg_ok(const char *function, const struct ub_context *c, const urma_jetty_cfg_t *cfg)
{
	const urma_jetty_grp_t *group = cfg->jetty_grp;
	const urma_jfr_cfg_t *jfr = &cfg->shared.jfr->jfr_cfg;

	if (!ub_check(function, group, UB_GROUP))
		return false;
	if (ub_group_of(group)->ctx != c)
		ub_refuse("%s: jetty_grp is of another context", function);
	else if (cfg->jfs_cfg.trans_mode != URMA_TM_RM)
		ub_refuse("%s: mode %d; jetties of a group are RM (1)", function,
			  (int)cfg->jfs_cfg.trans_mode);
	else if (group->cfg.flag.bs.token_policy != jfr->flag.bs.token_policy ||
		 group->cfg.token_value.token != jfr->token_value.token)
		ub_refuse("%s: token or token policy of the jfr differ from those of the group",
			  function);
	else
		return true;
	return false;
}

/* Messages to the group may come to j. */
static int open_endpoint(struct ub_group *g, const struct ub_jetty *j, struct xtal_endpoint **out)
{
	struct ub_jfr *jfr = ub_jfr_of(j->pub.jetty_cfg.shared.jfr);
	struct xtal_endpoint_attr attr = {
		.id = g->pub.jetty_grp_id.id,
		.record_id = j->send.id,
		.jetty = true,
		.token = g->pub.cfg.token_value.token,
		.token_valid = g->pub.cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT,
		.sharing = g->pub.cfg.policy == URMA_JETTY_GRP_POLICY_HASH_HINT
				   ? XTAL_ENDPOINT_BY_HINT
				   : XTAL_ENDPOINT_IN_TURN,
		.twin_of = j->endpoint,
		.rnr_us = ub_rnr_us(&jfr->pub),
		.rq = jfr->core,
		.cq = ub_jfc_of(ub_jetty_receive_jfc(&j->pub.jetty_cfg))->core,
		.owner = (void *)(uintptr_t)&j->pub,
	};

	return xtal_endpoint_create(g->ctx->core, &attr, out);
}

int ub_group_join(struct ub_group *g, struct ub_jetty *j)
{
	uint32_t at;
	int error = 0;

	xtal_lock(&g->lock);
	at = g->pub.jetty_cnt;
	if (at == UB_MAX_GROUP_SIZE) {
		error = -EPERM;
	} else {
		error = open_endpoint(g, j, &g->endpoints[at]);
		if (!error) {
			g->members[at] = j;
			g->shown[at] = &j->pub;
			g->pub.jetty_cnt++;
		}
	}
	xtal_unlock(&g->lock);
	return error;
}

void ub_group_leave(struct ub_group *g, struct ub_jetty *j)
{
	uint32_t at = 0, count;

	xtal_lock(&g->lock);
	count = g->pub.jetty_cnt;
	while (at < count && g->members[at] != j)
		at++;
	if (at < count) {
		xtal_endpoint_destroy(&g->endpoints[at]);
		for (uint32_t i = at; i + 1 < count; i++) {
			g->members[i] = g->members[i + 1];
			g->shown[i] = g->shown[i + 1];
			g->endpoints[i] = g->endpoints[i + 1];
		}
		g->members[count - 1] = NULL;
		g->shown[count - 1] = NULL;
		g->endpoints[count - 1] = NULL;
		g->pub.jetty_cnt--;
	}
	xtal_unlock(&g->lock);
}

static bool cfg_is_bad(const urma_jetty_grp_cfg_t *cfg)
{
	if (!*cfg->name || strnlen(cfg->name, sizeof(cfg->name)) == sizeof(cfg->name))
		ub_refuse("urma_create_jetty_grp: the name is %s",
			  *cfg->name ? "longer than 63 characters" : "empty");
	else if ((unsigned)cfg->policy > URMA_JETTY_GRP_POLICY_HASH_HINT)
		ub_refuse("urma_create_jetty_grp: policy %d; RR (0) and HASH_HINT (1) are possible",
			  (int)cfg->policy);
	else if (cfg->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
		ub_refuse("urma_create_jetty_grp: token policy %u; NONE (0) and PLAIN_TEXT (1) are "
			  "supported",
			  cfg->flag.bs.token_policy);
	else
		return false;
	return true;
}

urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_group *g;
	int error;

	if (!ub_check("urma_create_jetty_grp", ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	if (!cfg) {
		ub_refuse("urma_create_jetty_grp: cfg is NULL");
		return ub_null(EINVAL);
	}
	if (cfg_is_bad(cfg))
		return ub_null(EINVAL);
	g = calloc(1, sizeof(*g));
	error = g ? ub_queue_id(&c->jetty_ids, cfg->id, &g->pub.jetty_grp_id.id) : -ENOMEM;
	if (error) {
		free(g);
		ub_refuse("urma_create_jetty_grp: no group with id 0x%x: %s", cfg->id,
			  ub_reason(error));
		return ub_null(error == -EEXIST ? EINVAL : ENOMEM);
	}
	g->pub.urma_ctx = ctx;
	g->pub.jetty_grp_id.eid = ctx->eid;
	g->pub.jetty_grp_id.uasid = ctx->uasid;
	g->pub.cfg = *cfg;
	g->pub.jetty_list = g->shown;
	g->ctx = c;
	ub_context_hold(c);
	ub_enlist(&g->node, &g->pub, UB_GROUP);
	return &g->pub;
}

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp)
{
	struct ub_group *g = ub_group_of(jetty_grp);
	struct ub_context *c;

	if (!ub_check("urma_delete_jetty_grp", jetty_grp, UB_GROUP))
		return URMA_EINVAL;
	if (jetty_grp->jetty_cnt) {
		ub_refuse("urma_delete_jetty_grp: group 0x%x has %u members; delete them first",
			  jetty_grp->jetty_grp_id.id, jetty_grp->jetty_cnt);
		return URMA_ENOPERM;
	}
	if (!ub_delist(&g->node))
		return URMA_EINVAL;
	c = g->ctx;
	ub_ids_give_back(&c->jetty_ids, jetty_grp->jetty_grp_id.id);
	free(g);
	ub_context_release(c);
	return URMA_SUCCESS;
}
