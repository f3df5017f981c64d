/* SPDX-License-Identifier: MIT */
/* A process that is stopped comes late by as much, one that sleeps does not. */
#include <stdatomic.h>

#include "lib/late.h"
#include "lib/proc.h"

static _Atomic uint32_t *step;

static int stopped(void *arg)
{
	uint64_t before, after, began, took;
	unsigned tries = 0;

	(void)arg;
	late_watch();
	do { /* a busy machine lets nobody be in time for long */
		before = late_ns();
		proc_sleep_us(30000);
		after = late_ns();
	} while (after - before > 20000000 && ++tries < 100);
	if (tries == 100)
		proc_die("%llu ns late while it slept", (unsigned long long)(after - before));
	began = proc_now();
	atomic_store(step, 1);
	while (atomic_load(step) != 2)
		proc_sleep_us(1000);
	took = proc_now() - began;
	after = late_ns() - after;
	if (after < 250000000 || after > 2 * took)
		proc_die("%llu ns late in %llu", (unsigned long long)after,
			 (unsigned long long)took);
	return 0;
}

static void what_is_stopped_comes_late(void **state)
{
	pid_t pid;

	(void)state;
	step = proc_shared(sizeof(*step));
	pid = proc_start(stopped, NULL);
	assert_true(proc_await(step, 1, 20000));
	proc_stop(pid);
	proc_sleep_us(300000);
	proc_continue(pid);
	atomic_store(step, 2);
	assert_int_equal(proc_join(pid, 20000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_stopped_comes_late, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
