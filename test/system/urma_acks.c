/* SPDX-License-Identifier: MIT */
/* Acknowledgements gate deletion, and acknowledging too much does no harm. */
#include <stdlib.h>

#include "lib/urma_fixture.h"

/* ---- Completion events ---- */

static void too_many_acknowledgements_do_not_count(void **state)
{
	urma_jfce_t *jfce = urma_create_jfce(ctx);
	urma_jfc_cfg_t cfg = { .depth = 8, .jfce = jfce, .flag.bs.non_blocking = 1 };
	urma_jfc_t *two = urma_create_jfc(ctx, &cfg), *fired = NULL;
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_NOP, .flag.bs.complete_enable = 1 }, *bad;
	urma_jfs_cfg_t s_cfg = jfs_cfg(URMA_TM_RM);
	uint32_t three = 3;
	urma_jfs_t *jfs;

	(void)state;
	s_cfg.jfc = two;
	jfs = urma_create_jfs(ctx, &s_cfg);
	assert_true(jfce && two && jfs);
	urma_ack_jfc(&two, &three, 1); /* none was taken yet */
	assert_refused("nevents is 3");
	assert_refused("of which 0 events were taken");
	assert_int_equal(urma_rearm_jfc(two, false), URMA_SUCCESS);
	assert_int_equal(urma_post_jfs_wr(jfs, &wr, &bad), URMA_SUCCESS);
	assert_int_equal(urma_wait_jfc(jfce, 1, 20000, &fired), 1);
	assert_ptr_equal(fired, two);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(two), URMA_EAGAIN);
	urma_ack_jfc(&two, &three, 1); /* one was */
	assert_int_equal(urma_delete_jfc(two), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfce(jfce), URMA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_acknowledgements_do_not_count),
	};

	setenv("XTAL_LOG", "/dev/null", 0);
	return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
