/* SPDX-License-Identifier: MIT */
/*
 * Acknowledgements gate deletion: what a program was told of stays until it has acknowledged it, on
 * whatever way the object goes; and acknowledging too much does no harm.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
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

/* ---- Asynchronous events ---- */

struct late_ack {
	urma_async_event_t event;
	pthread_t thread;
	atomic_bool acked;
};

static void *acknowledge_later(void *arg)
{
	struct late_ack *l = arg;

	suite_sleep_us(50000);
	atomic_store(&l->acked, true);
	urma_ack_async_event(&l->event);
	return NULL;
}

/* Takes the event that waits; it is acknowledged a little later. */
static void take_event(struct late_ack *l, urma_async_event_type_t type)
{
	memset(l, 0, sizeof(*l));
	assert_int_equal(urma_get_async_event(ctx, &l->event), URMA_SUCCESS);
	assert_int_equal(l->event.event_type, type);
	assert_int_equal(pthread_create(&l->thread, NULL, acknowledge_later, l), 0);
}

static void assert_acknowledged(struct late_ack *l)
{
	assert_true(atomic_load(&l->acked));
	pthread_join(l->thread, NULL);
}

/* A request that fails: there is no segment with that token id. */
static urma_jfs_wr_t bad_write(urma_target_jetty_t *to, urma_sge_t *here, urma_sge_t *there,
			       urma_user_tseg_t *nowhere)
{
	*nowhere = (urma_user_tseg_t){ .token_id = 0xfffff };
	*here = (urma_sge_t){ .addr = (uintptr_t)junk, .len = 8 };
	*there = (urma_sge_t){ .addr = (uintptr_t)junk, .len = 8, .user_tseg = nowhere };
	return (urma_jfs_wr_t){ .opcode = URMA_OPC_WRITE,
				.flag.bs.complete_enable = 1,
				.tjetty = to,
				.rw = { .src = { here, 1 }, .dst = { there, 1 } } };
}

static urma_target_jetty_t *import_jfr(const urma_jfr_t *jfr)
{
	urma_rjfr_t r = { .jfr_id = jfr->jfr_id, .trans_mode = URMA_TM_RM };

	return urma_import_jfr(ctx, &r, NULL);
}

static void await_failure(void)
{
	urma_cr_t cr;

	do {
		while (!urma_poll_jfc(jfc, 1, &cr))
			suite_sleep_us(100);
	} while (cr.status != URMA_CR_WR_FLUSH_ERR_DONE);
}

/* In two steps, so that the event can be taken when the queue is not active any more. */
static void a_send_queue_stays_until_its_event_is_acknowledged(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_target_jetty_t *to = import_jfr(jfr);
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_user_tseg_t nowhere;
	urma_sge_t here, there;
	urma_jfs_wr_t wr = bad_write(to, &here, &there, &nowhere), *bad;
	struct late_ack late;
	urma_jfs_t *jfs;

	(void)state;
	assert_int_equal(urma_alloc_jfs(ctx, &cfg, &jfs), URMA_SUCCESS);
	assert_int_equal(urma_active_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_post_jfs_wr(jfs, &wr, &bad), URMA_SUCCESS);
	await_failure();
	assert_int_equal(urma_deactive_jfs(jfs), URMA_SUCCESS);
	take_event(&late, URMA_EVENT_JFS_ERR);
	assert_int_equal(urma_free_jfs(jfs), URMA_SUCCESS);
	assert_acknowledged(&late);
	assert_int_equal(urma_unimport_jfr(to), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void a_jetty_stays_until_its_event_is_acknowledged(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_target_jetty_t *to = import_jfr(jfr);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_user_tseg_t nowhere;
	urma_sge_t here, there;
	urma_jfs_wr_t wr = bad_write(to, &here, &there, &nowhere), *bad;
	struct late_ack late;
	urma_jetty_t *jetty;

	(void)state;
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, &jetty), URMA_SUCCESS);
	assert_int_equal(urma_active_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
	await_failure();
	assert_int_equal(urma_deactive_jetty(jetty), URMA_SUCCESS);
	take_event(&late, URMA_EVENT_JETTY_ERR);
	assert_int_equal(urma_free_jetty(jetty), URMA_SUCCESS);
	assert_acknowledged(&late);
	assert_int_equal(urma_unimport_jfr(to), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void a_receive_queue_stays_until_its_event_is_acknowledged(void **state)
{
	urma_jfr_attr_t attr = { .mask = JFR_RX_THRESHOLD, .rx_threshold = 1 };
	urma_jfr_cfg_t cfg = jfr_cfg(URMA_TM_RM);
	struct late_ack late;
	urma_jfr_t *jfr;

	(void)state;
	assert_int_equal(urma_alloc_jfr(ctx, &cfg, &jfr), URMA_SUCCESS);
	assert_int_equal(urma_active_jfr(jfr), URMA_SUCCESS);
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_SUCCESS); /* none is posted */
	assert_int_equal(urma_deactive_jfr(jfr), URMA_SUCCESS);
	take_event(&late, URMA_EVENT_JFR_LIMIT);
	assert_int_equal(urma_free_jfr(jfr), URMA_SUCCESS);
	assert_acknowledged(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_acknowledgements_do_not_count),
		cmocka_unit_test(a_send_queue_stays_until_its_event_is_acknowledged),
		cmocka_unit_test(a_jetty_stays_until_its_event_is_acknowledged),
		cmocka_unit_test(a_receive_queue_stays_until_its_event_is_acknowledged),
	};

	setenv("XTAL_LOG", "/dev/null", 0);
	return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
