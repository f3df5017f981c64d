/* SPDX-License-Identifier: MIT */
/* ctest: timeout=120 */
/*
 * Threads that share a completion queue: some poll it while another makes and deletes queues that
 * complete there. A record may outlive its queue in the hands of the thread that polled it, and is
 * whole even so.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/suite.h"
#include "lib/urma_fixture.h"

#define POLLERS  3
#define MESSAGES 8

static atomic_bool enough;
static _Atomic uint64_t received, wrong;

static void *poll_on(void *arg)
{
	urma_cr_t cr[16];

	(void)arg;
	while (!atomic_load(&enough)) {
		int n = urma_poll_jfc(jfc, 16, cr);

		for (int i = 0; i < n; i++) {
			if (cr[i].status || !cr[i].flag.bs.s_r)
				continue;
			atomic_fetch_add(&received, 1);
			if (cr[i].imm_data != cr[i].local_id)
				atomic_fetch_add(&wrong, 1);
		}
	}
	return NULL;
}

/* Messages that say whom they are for. */
static void send_to(urma_jetty_t *from, const urma_jetty_t *to)
{
	urma_rjetty_t r = { .jetty_id = to->jetty_id,
			    .trans_mode = URMA_TM_RM,
			    .type = URMA_JETTY };
	urma_target_jetty_t *target = urma_import_jetty(ctx, &r, NULL);
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_SEND_IMM,
			     .tjetty = target,
			     .flag.bs.complete_enable = 1,
			     .send.imm_data = to->jetty_id.id },
		      *bad;
	urma_jfr_wr_t receive = { .user_ctx = 1 }, *bad_receive;

	assert_non_null(target);
	for (unsigned i = 0; i < MESSAGES; i++) {
		/* Either may be full: the others are not served in step. */
		urma_post_jetty_recv_wr(from, &receive, &bad_receive);
		urma_post_jetty_send_wr(from, &wr, &bad);
	}
	assert_int_equal(urma_unimport_jetty(target), URMA_SUCCESS);
}

static void records_are_whole_when_their_queue_is_deleted(void **state)
{
	urma_jfr_t *jfr = make_jfr(URMA_TM_RM);
	pthread_t pollers[POLLERS];

	(void)state;
	for (unsigned i = 0; i < POLLERS; i++)
		assert_int_equal(pthread_create(&pollers[i], NULL, poll_on, NULL), 0);
	for (uint64_t i = 0; i < suite_scale(100000); i++) {
		urma_jetty_t *jetty = make_jetty(jfr);

		assert_non_null(jetty);
		send_to(jetty, jetty);
		assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	}
	atomic_store(&enough, true);
	for (unsigned i = 0; i < POLLERS; i++)
		pthread_join(pollers[i], NULL);
	assert_true(atomic_load(&received) > 0);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void *begin_again(void *arg)
{
	(void)arg;
	while (!atomic_load(&enough)) {
		urma_token_id_t *id = urma_alloc_token_id(ctx);

		if (urma_init(NULL) != URMA_EEXIST || urma_free_token_id(id))
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

/* Whatever the threads that it lost were doing, the child of a fork finds no lock of theirs. */
static void a_child_finds_no_lock(void **state)
{
	pthread_t threads[2];

	(void)state;
	if (proc_emulated())
		proc_skip("the emulator's own threads do not survive a fork");
	if (proc_sanitized(NULL))
		proc_skip("the sanitizers' allocators do not survive a fork beside other threads");
	atomic_store(&enough, false);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, begin_again, NULL), 0);
	for (uint64_t i = 0; i < suite_scale(150); i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			urma_device_t **list;
			int count;

			alarm(20);
			list = urma_get_device_list(&count);
			if (!list || urma_alloc_token_id(urma_create_context(list[0], 0)) == NULL)
				_exit(1);
			_exit(urma_alloc_token_id(ctx) ? 0 : 2);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&enough, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_whole_when_their_queue_is_deleted),
		cmocka_unit_test(a_child_finds_no_lock),
	};
	int failed;

	(void)argc;
	setenv("XTAL_LOG", "/dev/null", 0);
	failed = cmocka_run_group_tests(tests, fixture_open, fixture_close);
	if (failed || getenv("XTAL_CHECK") || proc_emulated())
		return failed;
	/* Once more, where pollers look at the queue of each record. */
	setenv("XTAL_CHECK", "1", 1);
	execv("/proc/self/exe", argv);
	return 1;
}
