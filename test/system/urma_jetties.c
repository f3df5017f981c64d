/* SPDX-License-Identifier: MIT */
/*
 * Jetties, groups, batches, imports, binds and notifiers of URMA: how they are made, changed and
 * deleted, and each way in which that is refused. ctest: timeout=60
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/urma_fixture.h"

/* ---- Jetties and groups ---- */

static void a_jetty_is_made_of_both_sides(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_t *jetty = make_jetty(jfr);
	urma_jetty_attr_t attr;
	urma_jetty_cfg_t cfg;
	urma_rjetty_t *told;
	uint32_t len;
	urma_cr_t cr;

	(void)state;
	assert_non_null(jetty);
	assert_null(jetty->remote_jetty);
	assert_int_equal(jetty->jetty_id.uasid, ctx->uasid);
	assert_int_equal(jetty->jetty_id.id >> 16, ctx->uasid & 0xffff);
	assert_true(jetty->jetty_id.id < 0xffff0000);
	assert_int_equal(urma_query_jetty(jetty, &cfg, &attr), URMA_SUCCESS);
	assert_ptr_equal(cfg.shared.jfr, jfr);
	assert_int_equal(attr.state, URMA_JETTY_STATE_READY);
	assert_int_equal(urma_query_jetty(NULL, &cfg, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jetty(jetty, NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_get_rjetty(jetty, &told, &len), URMA_SUCCESS);
	assert_int_equal(len, sizeof(*told));
	assert_memory_equal(&told->jetty_id, &jetty->jetty_id, sizeof(told->jetty_id));
	assert_int_equal(told->type, URMA_JETTY);
	assert_int_equal(told->trans_mode, URMA_TM_RM);
	assert_int_equal(told->flag.bs.order_type, URMA_OI);
	assert_int_equal(told->tp_type, URMA_RTP);
	urma_put_rjetty(told);
	urma_put_rjetty(NULL);
	urma_put_rjetty(calloc(1, sizeof(*told))); /* programs hand in their own */
	assert_int_equal(urma_get_rjetty(NULL, &told, &len), URMA_EINVAL);
	assert_int_equal(urma_get_rjetty(jetty, NULL, &len), URMA_EINVAL);
	assert_int_equal(urma_get_rjetty(jetty, &told, NULL), URMA_EINVAL);
	attr.mask = JETTY_RX_THRESHOLD;
	assert_int_equal(urma_modify_jetty(jetty, &attr), URMA_EINVAL);
	assert_int_equal(urma_modify_jetty(jetty, NULL), URMA_EINVAL);
	assert_int_equal(urma_modify_jetty(NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_flush_jetty(jetty, 0, &cr), -EINVAL);
	assert_int_equal(urma_flush_jetty(jetty, 1, &cr), 0);
	assert_int_equal(urma_delete_jfr(jfr), URMA_EINVAL);
	assert_refused("1 jetties share");
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(jetty), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* One that is not active does not keep it. */
static void a_jetty_without_its_receive_queue_is_not_described(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_rjetty_t *told = NULL;
	urma_jetty_t *jetty;
	uint32_t len;

	(void)state;
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, &jetty), URMA_SUCCESS);
	assert_int_equal(urma_get_rjetty(jetty, &told, &len), URMA_SUCCESS);
	urma_put_rjetty(told);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_get_rjetty(jetty, &told, &len), URMA_EINVAL);
	assert_refused("urma_get_rjetty");
	assert_refused("no live receive queue");
	assert_int_equal(urma_free_jetty(jetty), URMA_SUCCESS);
}

static void refuse_jetty(urma_jetty_cfg_t cfg, const char *words)
{
	assert_null_with(urma_create_jetty(ctx, &cfg), EINVAL, words);
}

static void a_bad_jetty_is_refused_in_words(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM), *rc = make_jfr(URMA_TM_RC);
	const urma_jetty_cfg_t good = jetty_cfg(jfr);
	urma_jetty_cfg_t cfg = good;

	(void)state;
	assert_null_with(urma_create_jetty(NULL, &cfg), EINVAL, "context is NULL");
	assert_null_with(urma_create_jetty(ctx, NULL), EINVAL, "cfg is NULL");
	cfg.jfs_cfg.jfc = NULL;
	refuse_jetty(cfg, "jfc is NULL");
	cfg = good;
	cfg.flag.bs.share_jfr = 0;
	refuse_jetty(cfg, "share_jfr is 0");
	cfg = good;
	cfg.shared.jfr = NULL;
	refuse_jetty(cfg, "shared.jfr is NULL");
	cfg.shared.jfr = (urma_jfr_t *)junk;
	refuse_jetty(cfg, "is no live receive queue");
	cfg.shared.jfr = rc;
	refuse_jetty(cfg, "the jfr has mode 2");
	cfg = good;
	cfg.shared.jfc = other_jfc;
	refuse_jetty(cfg, "shared.jfc");
	cfg = good;
	cfg.jfs_cfg.flag.bs.order_type = URMA_OT;
	refuse_jetty(cfg, "the jfr has mode 1 with order 2");
	cfg = good;
	cfg.id = 0xffffffff;
	refuse_jetty(cfg, "id 0xffffffff");
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(rc), URMA_SUCCESS);
}

static void a_group_has_at_most_32_members(void **state)
{
	urma_jetty_grp_cfg_t cfg = { .name = "group", .policy = URMA_JETTY_GRP_POLICY_HASH_HINT };
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM), *rc = make_jfr(URMA_TM_RC);
	urma_jetty_grp_t *group = urma_create_jetty_grp(ctx, &cfg);
	urma_jetty_cfg_t member = jetty_cfg(jfr), odd = jetty_cfg(rc);
	urma_jetty_t *members[32];

	(void)state;
	assert_non_null(group);
	assert_int_equal(group->jetty_cnt, 0);
	member.jetty_grp = group;
	for (unsigned i = 0; i < 32; i++) {
		members[i] = urma_create_jetty(ctx, &member);
		assert_non_null(members[i]);
		assert_ptr_equal(group->jetty_list[i], members[i]);
	}
	assert_int_equal(group->jetty_cnt, 32);
	assert_null_with(urma_create_jetty(ctx, &member), EPERM, "the most there can be");
	odd.jetty_grp = group;
	refuse_jetty(odd, "jetties of a group are RM");
	assert_int_equal(urma_delete_jetty_grp(group), URMA_ENOPERM);
	assert_refused("has 32 members");
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(urma_delete_jetty(members[i]), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty_grp(group), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty_grp(group), URMA_EINVAL);
	assert_int_equal(urma_delete_jetty_grp(NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(rc), URMA_SUCCESS);
}

static void a_bad_group_is_refused_in_words(void **state)
{
	urma_jetty_grp_cfg_t cfg = { .name = "" };
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_cfg_t member = jetty_cfg(jfr);
	urma_jetty_grp_t *group;

	(void)state;
	assert_null_with(urma_create_jetty_grp(NULL, &cfg), EINVAL, "context is NULL");
	assert_null_with(urma_create_jetty_grp(ctx, NULL), EINVAL, "cfg is NULL");
	assert_null_with(urma_create_jetty_grp(ctx, &cfg), EINVAL, "the name is empty");
	memset(cfg.name, 'x', sizeof(cfg.name));
	assert_null_with(urma_create_jetty_grp(ctx, &cfg), EINVAL, "longer than 63");
	strcpy(cfg.name, "g");
	cfg.policy = (urma_jetty_grp_policy_t)2;
	assert_null_with(urma_create_jetty_grp(ctx, &cfg), EINVAL, "policy 2");
	cfg.policy = URMA_JETTY_GRP_POLICY_RR;
	cfg.flag.bs.token_policy = 2;
	assert_null_with(urma_create_jetty_grp(ctx, &cfg), EINVAL, "token policy 2");
	cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	cfg.id = 0xffff0000;
	assert_null_with(urma_create_jetty_grp(ctx, &cfg), EINVAL, "the id is in use");
	cfg.id = 0;
	group = urma_create_jetty_grp(ctx, &cfg);
	member.jetty_grp = group;
	refuse_jetty(member, "differ from those of the group");
	assert_int_equal(urma_delete_jetty_grp(group), URMA_SUCCESS);
	member.jetty_grp = group;
	refuse_jetty(member, "is no live jetty group");
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* ---- Many at once ---- */

static void batches_are_checked_first_and_then_deleted(void **state)
{
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_t *jfs[3] = { urma_create_jfs(ctx, &cfg), urma_create_jfs(ctx, &cfg),
			       (urma_jfs_t *)junk },
		   *bad_jfs = NULL;
	urma_jfr_t *jfr[2] = { make_jfr(URMA_TM_RM), make_jfr(URMA_TM_RM) }, *bad_jfr = jfr[1];
	urma_jetty_t *jetty[2] = { make_jetty(jfr[0]), make_jetty(jfr[0]) }, *bad_jetty = jetty[0];
	urma_jfc_t *jfcs[2] = { make_jfc(ctx), make_jfc(ctx) }, *bad_jfc = jfcs[0];

	(void)state;
	assert_int_equal(urma_delete_jfs_batch(jfs, 3, &bad_jfs), URMA_EINVAL);
	assert_ptr_equal(bad_jfs, jfs[0]); /* nothing was deleted */
	assert_int_equal(urma_delete_jfs_batch(NULL, 3, &bad_jfs), URMA_EINVAL);
	assert_int_equal(urma_delete_jfs_batch(jfs, 0, &bad_jfs), URMA_EINVAL);
	assert_int_equal(urma_delete_jfs_batch(jfs, 2, NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_jfs_batch(jfs, 2, &bad_jfs), URMA_SUCCESS);
	assert_null(bad_jfs);
	assert_int_equal(urma_delete_jfr_batch(jfr, 2, &bad_jfr), URMA_EINVAL);
	assert_ptr_equal(bad_jfr, jfr[0]); /* jetties share it */
	assert_int_equal(urma_delete_jetty_batch(jetty, 2, &bad_jetty), URMA_SUCCESS);
	assert_null(bad_jetty);
	assert_int_equal(urma_delete_jfr_batch(jfr, 2, &bad_jfr), URMA_SUCCESS);
	assert_null(bad_jfr);
	assert_int_equal(urma_delete_jfc_batch(jfcs, 2, &bad_jfc), URMA_SUCCESS);
	assert_null(bad_jfc);
	assert_int_equal(urma_delete_jfc_batch(jfcs, 2, &bad_jfc), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr_batch(NULL, 1, &bad_jfr), URMA_EINVAL);
	assert_int_equal(urma_delete_jetty_batch(jetty, -1, &bad_jetty), URMA_EINVAL);
}

/* ---- Import and bind ---- */

static urma_rjetty_t remote(urma_transport_mode_t mode)
{
	return (urma_rjetty_t){ .jetty_id = { .uasid = 0x10001, .id = 0x10007, .eid = ctx->eid },
				.trans_mode = mode,
				.type = URMA_JETTY,
				.tp_type = mode == URMA_TM_UM ? URMA_UTP : URMA_CTP };
}

static void importing_asks_nobody(void **state)
{
	urma_rjetty_t r = remote(URMA_TM_RC);
	urma_rjfr_t j = { .jfr_id = r.jetty_id, .trans_mode = URMA_TM_RM, .tp_type = URMA_CTP };
	urma_active_tp_cfg_t tp = { 0 };
	urma_token_t token = { 3 };
	urma_target_jetty_t *t;

	(void)state;
	t = urma_import_jetty(ctx, &r, NULL);
	assert_non_null(t);
	assert_int_equal(r.flag.bs.order_type, URMA_OL); /* written back */
	assert_memory_equal(&t->id, &r.jetty_id, sizeof(t->id));
	assert_int_equal(t->trans_mode, URMA_TM_RC);
	assert_int_equal(t->flag.bs.order_type, URMA_OL);
	assert_int_equal(t->type, URMA_JETTY);
	assert_int_equal(t->tp_type, URMA_CTP);
	assert_int_equal(t->tp.tpn, 0xffffffff);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t), URMA_EINVAL);
	assert_int_equal(urma_unimport_jetty(NULL), URMA_EINVAL);
	t = urma_import_jfr(ctx, &j, NULL);
	assert_non_null(t);
	assert_int_equal(t->type, URMA_JFR);
	assert_int_equal(j.flag.bs.order_type, URMA_OI);
	assert_int_equal(urma_unimport_jfr(t), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jfr(NULL), URMA_EINVAL);
	t = urma_import_jetty_ex(ctx, &r, &token, &tp);
	assert_non_null(t);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	t = urma_import_jfr_ex(ctx, &j, &token, &tp);
	assert_non_null(t);
	assert_int_equal(urma_unimport_jfr(t), URMA_SUCCESS);
	assert_null_with(urma_import_jetty_ex(ctx, &r, NULL, &tp), EINVAL, "token_value is NULL");
	assert_null_with(urma_import_jetty_ex(ctx, &r, &token, NULL), EINVAL, "cfg is NULL");
	assert_null_with(urma_import_jfr_ex(ctx, &j, NULL, &tp), EINVAL, "token_value is NULL");
	assert_null_with(urma_import_jfr_ex(ctx, &j, &token, NULL), EINVAL, "cfg is NULL");
	assert_null_with(urma_import_jfr(NULL, &j, NULL), EINVAL, "context is NULL");
	assert_null_with(urma_import_jfr(ctx, NULL, NULL), EINVAL, "is NULL");
}

static void refuse_import(urma_rjetty_t r, const char *words)
{
	assert_null_with(urma_import_jetty(ctx, &r, NULL), EINVAL, words);
}

static void a_bad_import_is_refused_in_words(void **state)
{
	urma_rjetty_t r = remote(URMA_TM_RM);

	(void)state;
	assert_null_with(urma_import_jetty(NULL, &r, NULL), EINVAL, "context is NULL");
	assert_null_with(urma_import_jetty(ctx, NULL, NULL), EINVAL, "is NULL");
	r.type = URMA_JFR;
	refuse_import(r, "type is 0");
	r = remote(URMA_TM_RC);
	r.type = URMA_JETTY_GROUP;
	refuse_import(r, "a group is RM");
	r = remote(URMA_TM_RM);
	r.tp_type = URMA_UTP;
	refuse_import(r, "UTP goes with mode UM only");
	r.tp_type = (urma_tp_type_t)3;
	refuse_import(r, "none of RTP");
	r = remote(URMA_TM_UM);
	r.tp_type = URMA_RTP;
	refuse_import(r, "RTP does not go with mode UM");
	r = remote(URMA_TM_RM);
	r.flag.bs.order_type = URMA_NO;
	refuse_import(r, "RM has order");
	r = remote((urma_transport_mode_t)3);
	refuse_import(r, "the mode is none of");
	r = remote(URMA_TM_RM);
	r.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	refuse_import(r, "token_value is NULL");
}

/* It could be freed with its peer pointing at it, or get a mode in which nothing is bound. */
static void what_is_not_active_is_not_bound(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RC);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_rjetty_t r = remote(URMA_TM_RC);
	urma_target_jetty_t *t = urma_import_jetty(ctx, &r, NULL);
	urma_jetty_t *jetty;

	(void)state;
	assert_non_null(t);
	cfg.jfs_cfg.trans_mode = URMA_TM_RC;
	cfg.jfs_cfg.flag.bs.order_type = URMA_DEF_ORDER;
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, &jetty), URMA_SUCCESS);
	assert_int_equal(urma_bind_jetty(jetty, t), URMA_EINVAL);
	assert_refused("is not active");
	assert_null(jetty->remote_jetty);
	assert_int_equal(urma_active_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_bind_jetty(jetty, t), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jetty(jetty), URMA_ENOPERM);
	assert_int_equal(urma_unbind_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_free_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void a_connection_is_bound_to_one_peer(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RC), *rm_jfr = make_jfr(URMA_TM_RM);
	urma_jetty_t *a = make_jetty(jfr), *b = make_jetty(jfr), *rm = make_jetty(rm_jfr), *bad;
	urma_rjetty_t r = remote(URMA_TM_RC), r_rm = remote(URMA_TM_RM), r_ot = remote(URMA_TM_RC);
	urma_target_jetty_t *t, *u, *t_rm, *t_ot;
	urma_active_tp_cfg_t tp = { 0 };

	(void)state;
	r_ot.flag.bs.order_type = URMA_OT;
	t = urma_import_jetty(ctx, &r, NULL);
	u = urma_import_jetty(ctx, &r, NULL);
	t_rm = urma_import_jetty(ctx, &r_rm, NULL);
	t_ot = urma_import_jetty(ctx, &r_ot, NULL);
	assert_true(a && b && rm && t && u && t_rm && t_ot);
	assert_int_equal(urma_get_tpn(a), 0);
	assert_int_equal(urma_get_tpn(NULL), -EINVAL);
	assert_int_equal(urma_bind_jetty(NULL, t), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty(a, NULL), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty(rm, t), URMA_ENOPERM);
	assert_int_equal(urma_bind_jetty(a, t_rm), URMA_ENOPERM);
	assert_int_equal(urma_bind_jetty(a, t_ot), URMA_ENOPERM);
	assert_refused("both must have the same");
	assert_int_equal(urma_unbind_jetty(a), URMA_EINVAL);
	assert_int_equal(urma_unbind_jetty(rm), URMA_ENOPERM);
	assert_int_equal(urma_unbind_jetty(NULL), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty(a, t), URMA_SUCCESS);
	assert_ptr_equal(a->remote_jetty, t);
	assert_true(urma_get_tpn(a) > 0);
	assert_int_equal(urma_bind_jetty(a, t), URMA_SUCCESS); /* the same pair */
	assert_int_equal(urma_bind_jetty(a, u), URMA_EEXIST);
	assert_int_equal(urma_bind_jetty(b, t), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty_ex(b, u, NULL), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty_ex(b, u, &tp), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t), URMA_FAIL);
	assert_refused("unbind that first");
	assert_int_equal(urma_delete_jetty(a), URMA_ENOPERM);
	assert_int_equal(urma_delete_jetty_batch(&a, 1, &bad), URMA_ENOPERM);
	assert_ptr_equal(bad, a);
	assert_int_equal(urma_unbind_jetty(a), URMA_SUCCESS);
	assert_null(a->remote_jetty);
	assert_int_equal(urma_unbind_jetty(b), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(u), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t_rm), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(t_ot), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(a), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(b), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(rm), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(rm_jfr), URMA_SUCCESS);
}

static void never_called(urma_status_t status, void *arg)
{
	(void)status;
	*(bool *)arg = true;
}

static void advice_is_taken_and_forgotten(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_t *jetty = make_jetty(jfr);
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_t *jfs = urma_create_jfs(ctx, &cfg);
	urma_rjetty_t r = remote(URMA_TM_RM), r_um = remote(URMA_TM_UM);
	urma_target_jetty_t *t = urma_import_jetty(ctx, &r, NULL);
	urma_target_jetty_t *um = urma_import_jetty(ctx, &r_um, NULL);
	bool called = false;

	(void)state;
	assert_int_equal(urma_advise_jfr(jfs, t), URMA_SUCCESS);
	assert_int_equal(urma_unadvise_jfr(jfs, t), URMA_SUCCESS);
	assert_int_equal(urma_advise_jfr_async(jfs, t, never_called, &called), URMA_SUCCESS);
	assert_int_equal(urma_advise_jetty(jetty, t), URMA_SUCCESS);
	assert_int_equal(urma_unadvise_jetty(jetty, t), URMA_SUCCESS);
	assert_int_equal(urma_advise_jfr(jfs, um), URMA_EINVAL);
	assert_refused("both must be RM");
	assert_int_equal(urma_unadvise_jfr(NULL, t), URMA_EINVAL);
	assert_int_equal(urma_advise_jfr_async(jfs, t, NULL, &called), URMA_EINVAL);
	assert_int_equal(urma_advise_jetty(jetty, um), URMA_EINVAL);
	assert_int_equal(urma_unadvise_jetty(jetty, NULL), URMA_EINVAL);
	assert_false(called);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(um), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void a_notifier_tells_what_has_ended(void **state)
{
	urma_notifier_t *n = urma_create_notifier(ctx);
	urma_jfr_t *jfr = make_jfr(URMA_TM_RC);
	urma_jetty_t *jetty = make_jetty(jfr);
	urma_rjetty_t r = remote(URMA_TM_RC);
	urma_target_jetty_t *t;
	urma_notify_t told[4];
	struct pollfd p;

	(void)state;
	assert_true(n && n->fd >= 0);
	p = (struct pollfd){ .fd = n->fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(urma_wait_notify(n, 4, told, 0), 0);
	assert_int_equal(urma_wait_notify(n, 4, told, 20), 0);
	t = urma_import_jetty_async(n, &r, NULL, 111, 1000);
	assert_non_null(t);
	assert_int_equal(r.flag.bs.order_type, 0); /* const */
	assert_int_equal(urma_bind_jetty_async(n, jetty, t, 222, 1000), URMA_SUCCESS);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(urma_wait_notify(n, 0, told, -1), 0);
	assert_int_equal(urma_wait_notify(n, 1, told, -1), 1);
	assert_int_equal(told[0].type, URMA_IMPORT_JETTY_NOTIFY);
	assert_int_equal(told[0].status, URMA_SUCCESS);
	assert_int_equal(told[0].user_ctx, 111);
	assert_ptr_equal(told[0].tjetty, t);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(urma_wait_notify(n, 4, told, 1000), 1);
	assert_int_equal(told[0].type, URMA_BIND_JETTY_NOTIFY);
	assert_int_equal(told[0].user_ctx, 222);
	assert_ptr_equal(told[0].jetty, jetty);
	assert_ptr_equal(jetty->remote_jetty, t);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(urma_ack_notify(ctx, 1, told), URMA_SUCCESS);
	assert_int_equal(urma_ack_notify(NULL, 1, told), URMA_EINVAL);
	assert_int_equal(urma_ack_notify(ctx, 1, NULL), URMA_EINVAL);
	assert_int_equal(urma_unbind_jetty_async(jetty), URMA_SUCCESS);
	assert_int_equal(urma_unbind_jetty_async(jetty), URMA_EINVAL);
	assert_int_equal(urma_unimport_jetty_async(t), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty_async(t), URMA_EINVAL);
	assert_null_with(urma_import_jetty_async(NULL, &r, NULL, 0, 0), EINVAL, "notifier is NULL");
	assert_null_with(urma_import_jetty_async(n, NULL, NULL, 0, 0), EINVAL, "rjetty is NULL");
	assert_int_equal(urma_bind_jetty_async(NULL, jetty, t, 0, 0), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty_async(n, NULL, t, 0, 0), URMA_EINVAL);
	assert_int_equal(urma_wait_notify(NULL, 1, told, 0), -1);
	assert_int_equal(urma_wait_notify(n, 1, NULL, 0), -1);
	t = urma_import_jetty_async(n, &r, NULL, 1, 0); /* a notice that nobody takes */
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	assert_int_equal(urma_delete_notifier(n), URMA_SUCCESS);
	assert_int_equal(urma_delete_notifier(n), URMA_EINVAL);
	assert_int_equal(urma_delete_notifier(NULL), URMA_EINVAL);
	assert_null_with(urma_create_notifier(NULL), EINVAL, "context is NULL");
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_jetty_is_made_of_both_sides),
		cmocka_unit_test(a_jetty_without_its_receive_queue_is_not_described),
		cmocka_unit_test(a_bad_jetty_is_refused_in_words),
		cmocka_unit_test(a_group_has_at_most_32_members),
		cmocka_unit_test(a_bad_group_is_refused_in_words),
		cmocka_unit_test(batches_are_checked_first_and_then_deleted),
		cmocka_unit_test(importing_asks_nobody),
		cmocka_unit_test(a_bad_import_is_refused_in_words),
		cmocka_unit_test(what_is_not_active_is_not_bound),
		cmocka_unit_test(a_connection_is_bound_to_one_peer),
		cmocka_unit_test(advice_is_taken_and_forgotten),
		cmocka_unit_test(a_notifier_tells_what_has_ended),
	};

	setenv("XTAL_LOG", "/dev/null", 0);
	return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
