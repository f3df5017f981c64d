/* SPDX-License-Identifier: MIT */
/*
 * How things end in URMA: what breaks is told of, however much it is; what is deleted is told of no
 * more, and nobody waits for it; a jetty that has broken takes nothing more from its group; and a
 * completion queue that is too small is told of where that is asked for. ctest: timeout=120
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/suite.h"
#include "lib/urma_fixture.h"

#define JETTIES 300u

static urma_target_jetty_t *import(const urma_jetty_id_t *id, urma_target_type_t type)
{
	urma_rjetty_t r = { .jetty_id = *id, .trans_mode = URMA_TM_RM, .type = type };

	return urma_import_jetty(ctx, &r, NULL);
}

/* Its records are polled. */
static void break_it(urma_jetty_t *jetty)
{
	static uint64_t word;
	urma_target_jetty_t *target = import(&jetty->jetty_id, URMA_JETTY);
	urma_seg_t nowhere = { .ubva = { .eid = ctx->eid, .uasid = ctx->uasid, .va = 4096 },
			       .len = 4096,
			       .token_id = 0xfffff };
	urma_import_seg_flag_t flag = { 0 };
	urma_target_seg_t *seg = urma_import_seg(ctx, &nowhere, NULL, 0, flag);
	urma_sge_t here = { .addr = (uintptr_t)&word, .len = 8 };
	urma_sge_t there = { .addr = 4096, .len = 8, .tseg = seg };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_WRITE,
			     .flag.bs.inline_flag = 1,
			     .tjetty = target,
			     .rw = { .src = { &here, 1 }, .dst = { &there, 1 } } },
		      *bad;
	urma_cr_t cr;

	assert_true(target && seg);
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
	while (urma_poll_jfc(jfc, 1, &cr) == 0)
		;
	assert_int_equal(cr.status, URMA_CR_REM_ACCESS_ABORT_ERR);
	while (urma_poll_jfc(jfc, 1, &cr) == 0)
		;
	assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
	assert_int_equal(urma_unimport_jetty(target), URMA_SUCCESS);
	assert_int_equal(urma_unimport_seg(seg), URMA_SUCCESS);
}

static void do_not_wait(urma_context_t *c, bool not )
{
	int flags = fcntl(c->async_fd, F_GETFL) & ~O_NONBLOCK;

	assert_int_equal(fcntl(c->async_fd, F_SETFL, flags | (not ? O_NONBLOCK : 0)), 0);
}

static void every_jetty_that_breaks_is_told_of(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_t *jetty[JETTIES];
	urma_async_event_t event;

	(void)state;
	do_not_wait(ctx, true);
	for (unsigned i = 0; i < JETTIES; i++) {
		jetty[i] = make_jetty(jfr);
		assert_non_null(jetty[i]);
		break_it(jetty[i]);
	}
	for (unsigned i = 0; i < JETTIES; i++) {
		assert_int_equal(urma_get_async_event(ctx, &event), URMA_SUCCESS);
		assert_int_equal(event.event_type, URMA_EVENT_JETTY_ERR);
		assert_ptr_equal(event.element.jetty, jetty[i]);
		urma_ack_async_event(&event);
	}
	assert_int_equal(urma_get_async_event(ctx, &event), URMA_FAIL);
	for (unsigned i = 0; i < JETTIES; i++)
		assert_int_equal(urma_delete_jetty(jetty[i]), URMA_SUCCESS);
	do_not_wait(ctx, false);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* Not even when another has its number by then. */
static void what_is_deleted_is_not_told_of(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	urma_jetty_t *jetty;
	urma_async_event_t event;

	(void)state;
	do_not_wait(ctx, true);
	cfg.id = 4711;
	jetty = urma_create_jetty(ctx, &cfg);
	assert_non_null(jetty);
	break_it(jetty);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(poll(&fd, 1, 0), 0);
	jetty = urma_create_jetty(ctx, &cfg);
	assert_non_null(jetty);
	assert_int_equal(urma_get_async_event(ctx, &event), URMA_FAIL);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	do_not_wait(ctx, false);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* ---- Who waits for what is deleted ---- */

static urma_context_t *context;
static urma_jfce_t *channel;
static urma_notifier_t *notifier;
static atomic_int begun;

static void *wait_for_event(void *arg)
{
	urma_async_event_t event;

	(void)arg;
	atomic_fetch_add(&begun, 1);
	return (void *)(intptr_t)(urma_get_async_event(context, &event) == URMA_FAIL);
}

static void *wait_for_jfc(void *arg)
{
	urma_jfc_t *fired;

	(void)arg;
	atomic_fetch_add(&begun, 1);
	return (void *)(intptr_t)(urma_wait_jfc(channel, 1, -1, &fired) == -1);
}

static void *wait_for_notice(void *arg)
{
	urma_notify_t told;

	(void)arg;
	atomic_fetch_add(&begun, 1);
	return (void *)(intptr_t)(urma_wait_notify(notifier, 1, &told, -1) == -1);
}

/* So long before it hangs. */
static void join(pthread_t thread)
{
	struct timespec end;
	void *good;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 30;
	assert_int_equal(pthread_timedjoin_np(thread, &good, &end), 0);
	assert_non_null(good);
}

static void deleting_ends_waits(void **state)
{
	pthread_t threads[6];

	(void)state;
	atomic_store(&begun, 0);
	context = urma_create_context(ctx->dev, 0);
	channel = urma_create_jfce(context);
	notifier = urma_create_notifier(context);
	assert_true(context && channel && notifier);
	for (unsigned i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, wait_for_event, NULL);
		pthread_create(&threads[2 + i], NULL, wait_for_jfc, NULL);
		pthread_create(&threads[4 + i], NULL, wait_for_notice, NULL);
	}
	while (atomic_load(&begun) < 6)
		suite_sleep_us(1000);
	suite_sleep_us(50000);
	assert_int_equal(urma_delete_context(context), URMA_EAGAIN); /* and nothing has ended */
	assert_int_equal(urma_delete_jfce(channel), URMA_SUCCESS);
	join(threads[2]);
	join(threads[3]);
	assert_int_equal(urma_delete_notifier(notifier), URMA_SUCCESS);
	join(threads[4]);
	join(threads[5]);
	assert_int_equal(urma_delete_context(context), URMA_SUCCESS);
	join(threads[0]);
	join(threads[1]);
}

/* What nobody waits for any more goes, too. */
static void cancelled_threads_keep_nothing(void **state)
{
	pthread_t threads[3];
	void *result;

	(void)state;
	if (proc_sanitized("address")) {
		puts("SKIP: AddressSanitizer reports false errors on the stack of a cancelled thread");
		skip();
	}
	atomic_store(&begun, 0);
	context = urma_create_context(ctx->dev, 0);
	channel = urma_create_jfce(context);
	notifier = urma_create_notifier(context);
	assert_true(context && channel && notifier);
	pthread_create(&threads[0], NULL, wait_for_event, NULL);
	pthread_create(&threads[1], NULL, wait_for_jfc, NULL);
	pthread_create(&threads[2], NULL, wait_for_notice, NULL);
	while (atomic_load(&begun) < 3)
		suite_sleep_us(1000);
	suite_sleep_us(50000);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_cancel(threads[i]), 0);
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	alarm(60); /* instead of hanging */
	assert_int_equal(urma_delete_jfce(channel), URMA_SUCCESS);
	assert_int_equal(urma_delete_notifier(notifier), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(context), URMA_SUCCESS);
	alarm(0);
}

/* ---- Groups ---- */

static void set_state(urma_jetty_t *jetty, urma_jetty_state_t to)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = to };

	assert_int_equal(urma_modify_jetty(jetty, &attr), URMA_SUCCESS);
}

/* Whoever received it; NULL: nobody has within 20 ms. */
static const void *send_to(urma_jetty_t *from, urma_target_jetty_t *to, uint8_t hint)
{
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_SEND,
			     .tjetty = to,
			     .user_ctx = 1,
			     .send.target_hint = hint },
		      *bad;
	urma_cr_t cr;

	assert_int_equal(urma_post_jetty_send_wr(from, &wr, &bad), URMA_SUCCESS);
	for (uint64_t end = suite_now_ms() + 20; suite_now_ms() < end;)
		if (urma_poll_jfc(jfc, 1, &cr) == 1 && cr.flag.bs.s_r)
			return (const void *)(uintptr_t)cr.user_data;
	return NULL;
}

static void a_broken_member_takes_nothing(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jfr_wr_t receive = { .user_ctx = 9 }, *bad;
	urma_jetty_t *sender = make_jetty(jfr), *member[2];

	(void)state;
	for (unsigned policy = 0; policy < 2; policy++) {
		urma_jetty_grp_cfg_t cfg = { .name = "group",
					     .policy = (urma_jetty_grp_policy_t)policy };
		urma_jetty_cfg_t settings = jetty_cfg(jfr);
		urma_target_jetty_t *target;
		urma_cr_t cr;

		settings.jetty_grp = urma_create_jetty_grp(ctx, &cfg);
		assert_non_null(settings.jetty_grp);
		for (unsigned i = 0; i < 2; i++)
			member[i] = urma_create_jetty(ctx, &settings);
		assert_true(sender && member[0] && member[1]);
		while (urma_post_jfr_wr(jfr, &receive, &bad) == URMA_SUCCESS)
			; /* until it is full */
		target = import(&settings.jetty_grp->jetty_grp_id, URMA_JETTY_GROUP);
		assert_non_null(target);
		set_state(member[0], URMA_JETTY_STATE_ERROR);
		while (urma_poll_jfc(jfc, 1, &cr) == 0)
			;
		assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
		assert_int_equal(cr.local_id, member[0]->jetty_id.id);
		for (uint8_t i = 0; i < 4; i++)
			assert_ptr_equal(send_to(sender, target, 1), member[1]);
		if (policy == URMA_JETTY_GRP_POLICY_HASH_HINT) {
			/* That one, and no other: it waits. */
			assert_null(send_to(sender, target, 0));
			set_state(member[0], URMA_JETTY_STATE_RESET);
			set_state(member[0], URMA_JETTY_STATE_READY);
			while (urma_poll_jfc(jfc, 1, &cr) == 0 || !cr.flag.bs.s_r)
				;
			assert_int_equal(cr.local_id, member[0]->jetty_id.id);
		}
		assert_int_equal(urma_unimport_jetty(target), URMA_SUCCESS);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(urma_delete_jetty(member[i]), URMA_SUCCESS);
		assert_int_equal(urma_delete_jetty_grp(settings.jetty_grp), URMA_SUCCESS);
	}
	assert_int_equal(urma_delete_jetty(sender), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

/* ---- Completion queues that are too small ---- */

/* Nothing is lost. In strict mode it is told of, once each time. */
static void a_small_completion_queue_is_told_of(void **state)
{
	const bool strict = getenv("XTAL_STRICT") != NULL;
	urma_jfc_cfg_t small = { .depth = 4 };
	urma_jfc_t *queue = urma_create_jfc(ctx, &small);
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_async_event_t event;
	urma_jetty_t *jetty;
	urma_cr_t cr[8];

	(void)state;
	assert_true(queue && jfr);
	do_not_wait(ctx, true);
	cfg.jfs_cfg.jfc = queue;
	cfg.jfs_cfg.depth = 16;
	jetty = urma_create_jetty(ctx, &cfg);
	assert_non_null(jetty);
	for (unsigned round = 0; round < 3; round++) {
		urma_target_jetty_t *self = import(&jetty->jetty_id, URMA_JETTY);
		urma_jfs_wr_t wr = { .opcode = URMA_OPC_NOP,
				     .tjetty = self,
				     .flag.bs.complete_enable = 1 },
			      *bad;

		for (unsigned i = 0; i < 6; i++) {
			wr.flag.bs.complete_enable = 0; /* does not count */
			assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
			wr.flag.bs.complete_enable = 1;
			if (i == 4)
				assert_int_equal(urma_get_async_event(ctx, &event), URMA_FAIL);
			assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, &bad), URMA_SUCCESS);
		}
		if (strict) {
			assert_int_equal(urma_get_async_event(ctx, &event), URMA_SUCCESS);
			assert_int_equal(event.event_type, URMA_EVENT_JFC_ERR);
			assert_ptr_equal(event.element.jfc, queue);
			urma_ack_async_event(&event);
		}
		assert_int_equal(urma_get_async_event(ctx, &event), URMA_FAIL);
		/* One by one, or all at once. */
		for (unsigned i = 0; round == 1 && i < 5; i++)
			assert_int_equal(urma_poll_jfc(queue, 1, cr), 1);
		assert_int_equal(urma_poll_jfc(queue, 8, cr), round == 1 ? 1 : 6);
		assert_int_equal(urma_unimport_jetty(self), URMA_SUCCESS);
	}
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(queue), URMA_SUCCESS);
	do_not_wait(ctx, false);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_jetty_that_breaks_is_told_of),
		cmocka_unit_test(what_is_deleted_is_not_told_of),
		cmocka_unit_test(deleting_ends_waits),
		cmocka_unit_test(cancelled_threads_keep_nothing),
		cmocka_unit_test(a_broken_member_takes_nothing),
		cmocka_unit_test(a_small_completion_queue_is_told_of),
	};
	int failed;

	(void)argc;
	setenv("XTAL_LOG", "/dev/null", 0);
	failed = cmocka_run_group_tests(tests, fixture_open, fixture_close);
	if (failed || getenv("XTAL_STRICT") || proc_emulated())
		return failed;
	/* Once more as hardware is. */
	setenv("XTAL_STRICT", "1", 1);
	execv("/proc/self/exe", argv);
	return 1;
}
