/* SPDX-License-Identifier: MIT */
/*
 * Completion, send and receive queues of URMA: how they are made, at once and in two steps, changed
 * and deleted, and each way in which that is refused. ctest: timeout=60
 */
#include <stdlib.h>
#include <string.h>

#include "lib/urma_fixture.h"

/* ---- Completion queues and event channels ---- */

static void a_completion_queue_is_made_and_deleted(void **state)
{
	urma_jfce_t *jfce = urma_create_jfce(ctx), *foreign = urma_create_jfce(other);
	urma_jfc_cfg_t cfg = { .depth = 65536, .jfce = jfce, .user_ctx = 77 };
	urma_jfc_attr_t attr = { .mask = JFC_MODERATE_COUNT, .moderate_count = 4 };
	urma_jfc_t *made;

	(void)state;
	assert_true(jfce && jfce->fd >= 0 && foreign);
	assert_ptr_equal(jfce->urma_ctx, ctx);
	made = urma_create_jfc(ctx, &cfg);
	assert_non_null(made);
	assert_int_equal(made->jfc_cfg.depth, 65536);
	assert_int_equal(made->jfc_cfg.user_ctx, 77);
	assert_int_equal(made->jfc_id.uasid, ctx->uasid);
	assert_int_not_equal(made->jfc_id.id, jfc->jfc_id.id);
	assert_int_equal(urma_modify_jfc(made, &attr), URMA_SUCCESS);
	attr.mask = 4;
	assert_int_equal(urma_modify_jfc(made, &attr), URMA_EINVAL);
	assert_int_equal(urma_modify_jfc(made, NULL), URMA_EINVAL);
	assert_int_equal(urma_modify_jfc(NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_delete_jfce(jfce), URMA_FAIL);
	assert_refused("1 completion queues use it");
	assert_int_equal(urma_delete_jfc(made), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(made), URMA_EINVAL);
	assert_int_equal(urma_delete_jfc(NULL), URMA_EINVAL);
	cfg.jfce = foreign;
	assert_null_with(urma_create_jfc(ctx, &cfg), EINVAL, "another context");
	assert_int_equal(urma_delete_jfce(jfce), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfce(foreign), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfce(foreign), URMA_EINVAL);
	assert_int_equal(urma_delete_jfce(NULL), URMA_EINVAL);
	assert_null_with(urma_create_jfce(NULL), EINVAL, "the context is NULL");
	cfg.jfce = NULL;
	cfg.depth = 0;
	assert_null_with(urma_create_jfc(ctx, &cfg), EINVAL, "depth is 0");
	cfg.depth = 65537;
	assert_null_with(urma_create_jfc(ctx, &cfg), EINVAL, "depth is 65537");
	assert_null_with(urma_create_jfc(ctx, NULL), EINVAL, "cfg is NULL");
	assert_null_with(urma_create_jfc(NULL, &cfg), EINVAL, "context is NULL");
}

static void polling_and_waiting_check_their_arguments(void **state)
{
	urma_jfce_t *jfce = urma_create_jfce(ctx);
	urma_jfc_t *out[2];
	urma_cr_t cr;

	(void)state;
	assert_int_equal(urma_poll_jfc(jfc, 1, &cr), 0);
	assert_int_equal(urma_poll_jfc(jfc, 0, &cr), 0);
	assert_int_equal(urma_poll_jfc(jfc, -1, &cr), -1);
	assert_int_equal(urma_poll_jfc(jfc, 1, NULL), -1);
	assert_int_equal(urma_poll_jfc(NULL, 1, &cr), -1);
	assert_int_equal(urma_rearm_jfc(NULL, false), URMA_EINVAL);
	assert_int_equal(urma_rearm_jfc(jfc, false), URMA_EINVAL);
	assert_refused("without an event channel");
	assert_int_equal(urma_wait_jfc(jfce, 2, 0, out), 0);
	assert_int_equal(urma_wait_jfc(jfce, 2, 20, out), 0);
	assert_int_equal(urma_wait_jfc(jfce, 0, 0, out), -1);
	assert_int_equal(urma_wait_jfc(jfce, 1, 0, NULL), -1);
	assert_int_equal(urma_wait_jfc(NULL, 1, 0, out), -1);
	urma_ack_jfc(NULL, NULL, 1);
	urma_ack_jfc(out, NULL, 1);
	assert_int_equal(urma_delete_jfce(jfce), URMA_SUCCESS);
}

static void a_completion_queue_in_use_stays(void **state)
{
	urma_jfc_t *mine = make_jfc(ctx);
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_t *jfs;

	(void)state;
	cfg.jfc = mine;
	jfs = urma_create_jfs(ctx, &cfg);
	assert_non_null(jfs);
	assert_int_equal(urma_delete_jfc(mine), URMA_EINVAL);
	assert_refused("1 queues complete on");
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(mine), URMA_SUCCESS);
}

/* ---- Send and receive queues ---- */

static void the_order_of_the_mode_is_written_back(void **state)
{
	urma_jfs_cfg_t rm = jfs_cfg(URMA_TM_RM), um = jfs_cfg(URMA_TM_UM);
	urma_jfs_t *a = urma_create_jfs(ctx, &rm), *b = urma_create_jfs(ctx, &um);
	urma_jfr_cfg_t rc = jfr_cfg(URMA_TM_RC);
	urma_jfr_t *c = urma_create_jfr(ctx, &rc);

	(void)state;
	assert_true(a && b && c);
	assert_int_equal(rm.flag.bs.order_type, URMA_OI);
	assert_int_equal(a->jfs_cfg.flag.bs.order_type, URMA_OI);
	assert_int_equal(um.flag.bs.order_type, URMA_NO);
	assert_int_equal(rc.flag.bs.order_type, URMA_OL);
	assert_int_equal(a->jfs_id.uasid, ctx->uasid);
	assert_int_equal(a->jfs_id.id >> 16, ctx->uasid & 0xffff);
	assert_int_equal(urma_delete_jfs(a), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfs(b), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(c), URMA_SUCCESS);
}

static void refuse_jfs(urma_jfs_cfg_t cfg, const char *words)
{
	assert_null_with(urma_create_jfs(ctx, &cfg), EINVAL, words);
}

static void a_bad_send_queue_is_refused_in_words(void **state)
{
	const urma_jfs_cfg_t good = jfs_cfg(URMA_TM_RM);
	urma_jfs_cfg_t cfg = good;

	(void)state;
	assert_null_with(urma_create_jfs(NULL, &cfg), EINVAL, "context is NULL");
	assert_null_with(urma_create_jfs(ctx, NULL), EINVAL, "cfg is NULL");
	cfg.jfc = NULL;
	refuse_jfs(cfg, "jfc is NULL");
	cfg.jfc = other_jfc;
	refuse_jfs(cfg, "another context");
	cfg.jfc = (urma_jfc_t *)junk;
	refuse_jfs(cfg, "is no live completion queue");
	cfg = good;
	cfg.trans_mode = URMA_TM_RC;
	refuse_jfs(cfg, "RC needs a jetty");
	cfg.trans_mode = (urma_transport_mode_t)3;
	refuse_jfs(cfg, "the mode is none of");
	cfg = good;
	cfg.flag.bs.order_type = URMA_NO;
	refuse_jfs(cfg, "RM has order");
	cfg.flag.bs.order_type = 5;
	refuse_jfs(cfg, "RM has order");
	cfg = jfs_cfg(URMA_TM_UM);
	cfg.flag.bs.order_type = URMA_OI;
	refuse_jfs(cfg, "UM has order NO");
	cfg = good;
	cfg.depth = 0;
	refuse_jfs(cfg, "depth is 0");
	cfg.depth = 65537;
	refuse_jfs(cfg, "depth is 65537");
	cfg = good;
	cfg.max_sge = 17;
	refuse_jfs(cfg, "max_sge is 17");
	cfg = good;
	cfg.max_rsge = 3;
	refuse_jfs(cfg, "max_rsge 3");
	cfg = good;
	cfg.max_inline_data = 257;
	refuse_jfs(cfg, "max_inline_data is 257");
	cfg = good;
	cfg.priority = 16;
	refuse_jfs(cfg, "priority is 16");
	cfg = good;
	cfg.rnr_retry = 8;
	refuse_jfs(cfg, "rnr_retry is 8");
}

static void refuse_jfr(urma_jfr_cfg_t cfg, const char *words)
{
	assert_null_with(urma_create_jfr(ctx, &cfg), EINVAL, words);
}

static void a_bad_receive_queue_is_refused_in_words(void **state)
{
	const urma_jfr_cfg_t good = jfr_cfg(URMA_TM_RM);
	urma_jfr_cfg_t cfg = good;

	(void)state;
	assert_null_with(urma_create_jfr(NULL, &cfg), EINVAL, "context is NULL");
	assert_null_with(urma_create_jfr(ctx, NULL), EINVAL, "cfg is NULL");
	cfg.jfc = NULL;
	refuse_jfr(cfg, "jfc is NULL");
	cfg = good;
	cfg.depth = 0;
	refuse_jfr(cfg, "depth is 0");
	cfg.depth = 65537;
	refuse_jfr(cfg, "depth is 65537");
	cfg = good;
	cfg.max_sge = 0;
	refuse_jfr(cfg, "max_sge is 0");
	cfg.max_sge = 17;
	refuse_jfr(cfg, "max_sge is 17");
	cfg = good;
	cfg.flag.bs.token_policy = URMA_TOKEN_SIGNED;
	refuse_jfr(cfg, "token policy 2");
	cfg = good;
	cfg.flag.bs.tag_matching = 1;
	refuse_jfr(cfg, "tag matching");
	cfg = good;
	cfg.trans_mode = (urma_transport_mode_t)0;
	refuse_jfr(cfg, "the mode is none of");
	cfg = good;
	cfg.id = 0xffff0000;
	refuse_jfr(cfg, "id 0xffff0000");
}

static void a_requested_id_is_granted_exactly_or_not_at_all(void **state)
{
	urma_jfr_cfg_t cfg = jfr_cfg(URMA_TM_RM);
	urma_jfr_t *a, *b;

	(void)state;
	cfg.id = 4711; /* of no port */
	a = urma_create_jfr(ctx, &cfg);
	assert_non_null(a);
	assert_int_equal(a->jfr_id.id, 4711);
	assert_null_with(urma_create_jfr(ctx, &cfg), EINVAL, "the id is in use");
	cfg.id = (ctx->uasid << 16) | 0x1234;
	b = urma_create_jfr(ctx, &cfg);
	assert_non_null(b);
	assert_int_equal(b->jfr_id.id, cfg.id);
	assert_null_with(urma_create_jfr(ctx, &cfg), EINVAL, "the id is in use");
	assert_int_equal(urma_delete_jfr(b), URMA_SUCCESS);
	b = urma_create_jfr(ctx, &cfg);
	assert_non_null(b);
	assert_int_equal(urma_delete_jfr(a), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(b), URMA_SUCCESS);
}

static void a_receive_queue_is_changed_and_asked(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jfr_attr_t attr = { .mask = JFR_RX_THRESHOLD, .rx_threshold = 8 };
	urma_jfr_cfg_t cfg;

	(void)state;
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_SUCCESS);
	attr.rx_threshold = 9;
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_EINVAL);
	assert_refused("rx_threshold is 9");
	attr.mask = 0;
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_EINVAL);
	assert_int_equal(urma_modify_jfr(jfr, NULL), URMA_EINVAL);
	assert_int_equal(urma_modify_jfr(NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jfr(jfr, &cfg, &attr), URMA_SUCCESS);
	assert_int_equal(cfg.depth, 8);
	assert_int_equal(attr.rx_threshold, 8);
	assert_int_equal(attr.state, URMA_JFR_STATE_READY);
	assert_int_equal(urma_query_jfr(NULL, &cfg, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jfr(jfr, NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jfr(jfr, &cfg, NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr(NULL), URMA_EINVAL);
}

/* The states, and which may follow which. */
static void the_states_of_a_receive_queue_follow_the_table(void **state)
{
	static const bool allowed[3][3] = { { 1, 1, 0 }, { 0, 1, 1 }, { 1, 0, 1 } };
	static const urma_jfr_state_t way[3][3] = { { URMA_JFR_STATE_ERROR, URMA_JFR_STATE_RESET,
						      9 },
						    { 9 },
						    { URMA_JFR_STATE_ERROR, 9 } };

	(void)state;
	for (unsigned from = 0; from < 3; from++) {
		for (unsigned to = 0; to < 3; to++) {
			urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
			urma_jfr_attr_t attr = { .mask = JFR_STATE };
			urma_jfr_cfg_t cfg;

			for (unsigned i = 0; way[from][i] != 9; i++) {
				attr.state = way[from][i];
				assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_SUCCESS);
			}
			attr.state = (urma_jfr_state_t)to;
			assert_int_equal(urma_modify_jfr(jfr, &attr),
					 allowed[from][to] ? URMA_SUCCESS : URMA_FAIL);
			assert_int_equal(urma_query_jfr(jfr, &cfg, &attr), URMA_SUCCESS);
			assert_int_equal(attr.state, allowed[from][to] ? to : from);
			attr.mask = JFR_STATE;
			attr.state = (urma_jfr_state_t)7;
			assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_FAIL);
			assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
		}
	}
}

static void the_states_of_a_send_queue_follow_the_table(void **state)
{
	static const bool allowed[4][4] = {
		{ 1, 1, 0, 0 }, { 0, 1, 1, 1 }, { 0, 0, 1, 1 }, { 1, 0, 0, 1 }
	};
	static const urma_jetty_state_t way[4][3] = {
		{ URMA_JETTY_STATE_ERROR, URMA_JETTY_STATE_RESET, 9 },
		{ 9 },
		{ URMA_JETTY_STATE_SUSPENDED, 9 },
		{ URMA_JETTY_STATE_ERROR, 9 },
	};

	(void)state;
	for (unsigned from = 0; from < 4; from++) {
		for (unsigned to = 0; to < 4; to++) {
			urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
			urma_jfs_t *jfs = urma_create_jfs(ctx, &cfg);
			urma_jfs_attr_t attr = { .mask = JFS_STATE };

			for (unsigned i = 0; way[from][i] != 9; i++) {
				attr.state = way[from][i];
				assert_int_equal(urma_modify_jfs(jfs, &attr), URMA_SUCCESS);
			}
			attr.state = (urma_jetty_state_t)to;
			assert_int_equal(urma_modify_jfs(jfs, &attr),
					 allowed[from][to] ? URMA_SUCCESS : URMA_FAIL);
			assert_int_equal(urma_query_jfs(jfs, &cfg, &attr), URMA_SUCCESS);
			assert_int_equal(attr.state, allowed[from][to] ? to : from);
			assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
		}
	}
}

static void a_send_queue_is_changed_and_asked(void **state)
{
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM), got;
	urma_jfs_t *jfs = urma_create_jfs(ctx, &cfg);
	urma_jfs_attr_t attr = { .mask = 0, .state = URMA_JETTY_STATE_ERROR };
	urma_cr_t cr[9];

	(void)state;
	assert_int_equal(urma_modify_jfs(jfs, &attr), URMA_EINVAL);
	assert_int_equal(urma_modify_jfs(jfs, NULL), URMA_EINVAL);
	assert_int_equal(urma_modify_jfs(NULL, &attr), URMA_EINVAL);
	attr.mask = JFS_STATE;
	attr.state = (urma_jetty_state_t)4;
	assert_int_equal(urma_modify_jfs(jfs, &attr), URMA_FAIL);
	assert_refused("4 is no state");
	assert_int_equal(urma_query_jfs(jfs, &got, &attr), URMA_SUCCESS);
	assert_memory_equal(&got, &cfg, sizeof(cfg));
	assert_int_equal(attr.mask, JFS_STATE);
	assert_int_equal(attr.state, URMA_JETTY_STATE_READY);
	assert_int_equal(urma_query_jfs(NULL, &got, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jfs(jfs, NULL, &attr), URMA_EINVAL);
	assert_int_equal(urma_query_jfs(jfs, &got, NULL), URMA_EINVAL);
	assert_int_equal(urma_flush_jfs(jfs, 0, cr), -EINVAL);
	assert_int_equal(urma_flush_jfs(jfs, 9, cr), -EINVAL);
	assert_int_equal(urma_flush_jfs(jfs, 1, NULL), -EINVAL);
	assert_int_equal(urma_flush_jfs(NULL, 1, cr), -EINVAL);
	assert_int_equal(urma_flush_jfs(jfs, 8, cr), 0);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfs(jfs), URMA_EINVAL);
	assert_int_equal(urma_delete_jfs(NULL), URMA_EINVAL);
}

/* ---- Two steps ---- */

static void set32(urma_status_t (*set)(void *, uint64_t, void *, uint32_t), void *queue,
		  uint64_t opt, uint32_t value, urma_status_t wanted)
{
	assert_int_equal(set(queue, opt, &value, sizeof(value)), wanted);
}

static urma_status_t jfc_set(void *q, uint64_t opt, void *buf, uint32_t len)
{
	return urma_set_jfc_opt(q, opt, buf, len);
}

static void a_completion_queue_is_made_in_two_steps(void **state)
{
	urma_jfc_cfg_t cfg = { .depth = 8 };
	urma_jfc_t *two = NULL;
	uint64_t user = 5;
	uint32_t value;
	urma_cr_t cr;

	(void)state;
	assert_int_equal(urma_alloc_jfc(ctx, &cfg, NULL), URMA_EINVAL);
	assert_int_equal(urma_alloc_jfc(NULL, &cfg, &two), URMA_EINVAL);
	assert_int_equal(urma_alloc_jfc(ctx, NULL, &two), URMA_EINVAL);
	assert_int_equal(urma_alloc_jfc(ctx, &cfg, &two), URMA_SUCCESS);
	assert_int_equal(urma_poll_jfc(two, 1, &cr), -1); /* not active */
	assert_int_equal(urma_delete_jfc(two), URMA_EINVAL);
	set32(jfc_set, two, URMA_JFC_DEPTH, 32, URMA_SUCCESS);
	set32(jfc_set, two, URMA_JFC_DEPTH, 0, URMA_EINVAL);
	set32(jfc_set, two, URMA_JFC_ID, 777, URMA_SUCCESS);
	set32(jfc_set, two, URMA_JFC_PI, 1, URMA_EINVAL);
	assert_refused("in hardware only");
	set32(jfc_set, two, 12345, 1, URMA_EINVAL);
	assert_int_equal(urma_set_jfc_opt(two, URMA_JFC_USER_CTX, &user, 4), URMA_EINVAL);
	assert_refused("len is 4, the option has 8 bytes");
	assert_int_equal(urma_set_jfc_opt(two, URMA_JFC_USER_CTX, NULL, 8), URMA_EINVAL);
	assert_int_equal(urma_set_jfc_opt(two, URMA_JFC_USER_CTX, &user, 8), URMA_SUCCESS);
	assert_int_equal(urma_active_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_active_jfc(two), URMA_EINVAL);
	set32(jfc_set, two, URMA_JFC_DEPTH, 16, URMA_EINVAL);
	assert_refused("is active");
	assert_int_equal(urma_get_jfc_opt(two, URMA_JFC_DEPTH, &value, 4), URMA_SUCCESS);
	assert_int_equal(value, 32);
	assert_int_equal(urma_get_jfc_opt(two, URMA_JFC_ID, &value, 4), URMA_SUCCESS);
	assert_int_equal(value, 777);
	assert_int_equal(urma_get_jfc_opt(two, URMA_JFC_ID, &value, 8), URMA_EINVAL);
	assert_int_equal(urma_get_jfc_opt(NULL, URMA_JFC_ID, &value, 4), URMA_EINVAL);
	assert_int_equal(urma_poll_jfc(two, 1, &cr), 0);
	assert_int_equal(urma_free_jfc(two), URMA_EINVAL);
	assert_int_equal(urma_deactive_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfc(two), URMA_EINVAL);
	assert_int_equal(urma_active_jfc(two), URMA_SUCCESS); /* and again */
	assert_int_equal(urma_deactive_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_free_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_free_jfc(two), URMA_EINVAL);
}

static void a_jetty_is_made_in_two_steps(void **state)
{
	urma_jfs_cfg_t s_cfg = jfs_cfg(URMA_TM_RM);
	urma_jfr_cfg_t r_cfg = jfr_cfg(URMA_TM_RM);
	urma_jetty_cfg_t cfg;
	urma_jfs_t *jfs;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	uint8_t retry = 3, got = 0;
	uint32_t id = 4242, value;

	(void)state;
	assert_int_equal(urma_alloc_jfs(ctx, &s_cfg, &jfs), URMA_SUCCESS);
	assert_int_equal(urma_alloc_jfr(ctx, &r_cfg, &jfr), URMA_SUCCESS);
	cfg = jetty_cfg(jfr);
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, &jetty), URMA_SUCCESS);
	assert_int_equal(urma_alloc_jfs(ctx, &s_cfg, NULL), URMA_EINVAL);
	assert_int_equal(urma_alloc_jfr(ctx, &r_cfg, NULL), URMA_EINVAL);
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, NULL), URMA_EINVAL);
	assert_int_equal(urma_set_jfs_opt(jfs, URMA_JFS_RNR_RETRY, &retry, 1), URMA_SUCCESS);
	assert_int_equal(urma_get_jfs_opt(jfs, URMA_JFS_RNR_RETRY, &got, 1), URMA_SUCCESS);
	assert_int_equal(got, 3);
	retry = 8;
	assert_int_equal(urma_set_jfs_opt(jfs, URMA_JFS_RNR_RETRY, &retry, 1), URMA_EINVAL);
	assert_int_equal(urma_set_jfr_opt(jfr, URMA_JFR_ID, &id, 4), URMA_SUCCESS);
	assert_int_equal(jfr->jfr_id.id, 4242);
	assert_int_equal(urma_get_jfr_opt(jfr, URMA_JFR_ID, &value, 4), URMA_SUCCESS);
	assert_int_equal(value, 4242);
	id = 0xffff0000; /* as when it is asked for at once */
	assert_int_equal(urma_set_jfs_opt(jfs, URMA_JFS_ID, &id, 4), URMA_EINVAL);
	assert_int_equal(urma_set_jfr_opt(jfr, URMA_JFR_ID, &id, 4), URMA_EINVAL);
	assert_int_equal(urma_set_jetty_opt(jetty, URMA_JETTY_ID, &id, 4), URMA_EINVAL);
	assert_refused("id 0xffff0000 cannot be had");
	id = 4243;
	assert_int_equal(urma_set_jetty_opt(jetty, URMA_JETTY_ID, &id, 4), URMA_SUCCESS);
	assert_int_equal(jetty->jetty_id.id, 4243);
	assert_int_equal(urma_active_jetty(jetty), URMA_EINVAL);
	assert_refused("receive queue 0x1092 is not active");
	assert_int_equal(urma_active_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_active_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_active_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_active_jfs(jfs), URMA_EINVAL);
	assert_int_equal(urma_active_jfr(jfr), URMA_EINVAL);
	assert_int_equal(urma_active_jetty(jetty), URMA_EINVAL);
	assert_int_equal(urma_get_jetty_opt(jetty, URMA_JFS_DEPTH, &value, 4), URMA_SUCCESS);
	assert_int_equal(value, 8);
	assert_int_equal(urma_set_jetty_opt(jetty, URMA_JFS_DEPTH, &value, 4), URMA_EINVAL);
	assert_int_equal(urma_set_jfr_opt(jfr, URMA_JFR_DEPTH, &value, 4), URMA_EINVAL);
	assert_int_equal(urma_set_jfs_opt(jfs, URMA_JFS_DEPTH, &value, 4), URMA_EINVAL);
	assert_int_equal(urma_free_jetty(jetty), URMA_EINVAL);
	assert_int_equal(urma_deactive_jfr(jfr), URMA_EINVAL);
	assert_refused("1 jetties share");
	assert_int_equal(urma_deactive_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jetty(jetty), URMA_EINVAL);
	assert_int_equal(urma_free_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_free_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfs(jfs), URMA_EINVAL);
	assert_int_equal(urma_free_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_free_jfs(jfs), URMA_EINVAL);
}

static void a_queue_becomes_active_after_its_completion_queue(void **state)
{
	urma_jfc_cfg_t c_cfg = { .depth = 8 };
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_jfc_t *two;
	urma_jfs_t *jfs;

	(void)state;
	assert_int_equal(urma_alloc_jfc(ctx, &c_cfg, &two), URMA_SUCCESS);
	cfg.jfc = two;
	assert_int_equal(urma_alloc_jfs(ctx, &cfg, &jfs), URMA_SUCCESS);
	assert_int_equal(urma_active_jfs(jfs), URMA_EINVAL);
	assert_refused("is not active");
	assert_int_equal(urma_active_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_active_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfc(two), URMA_EINVAL);
	assert_int_equal(urma_deactive_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_free_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_free_jfc(two), URMA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_completion_queue_is_made_and_deleted),
		cmocka_unit_test(polling_and_waiting_check_their_arguments),
		cmocka_unit_test(a_completion_queue_in_use_stays),
		cmocka_unit_test(the_order_of_the_mode_is_written_back),
		cmocka_unit_test(a_bad_send_queue_is_refused_in_words),
		cmocka_unit_test(a_bad_receive_queue_is_refused_in_words),
		cmocka_unit_test(a_requested_id_is_granted_exactly_or_not_at_all),
		cmocka_unit_test(a_receive_queue_is_changed_and_asked),
		cmocka_unit_test(the_states_of_a_receive_queue_follow_the_table),
		cmocka_unit_test(the_states_of_a_send_queue_follow_the_table),
		cmocka_unit_test(a_send_queue_is_changed_and_asked),
		cmocka_unit_test(a_completion_queue_is_made_in_two_steps),
		cmocka_unit_test(a_jetty_is_made_in_two_steps),
		cmocka_unit_test(a_queue_becomes_active_after_its_completion_queue),
	};

	setenv("XTAL_LOG", "/dev/null", 0);
	return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
