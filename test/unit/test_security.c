/* SPDX-License-Identifier: MIT */
/* The key between hosts and fork: a child that is forked while the key is read can read it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/device.h"
#include "core/engine.h"
#include "core/security.h"
#include "lib/proc.h"

static const struct xtal_device elsewhere = { .eid = { .lo = 0x0000ffff0a4d0001u } };
static atomic_bool stop;
static atomic_uint reads;

/* Fails each time, so that it is read each time. */
static void *reads_the_key(void *arg)
{
	char why[256];

	(void)arg;
	while (!atomic_load(&stop)) {
		assert_int_equal(xtal_security_check(&elsewhere, why, sizeof(why)), -ENOKEY);
		if (atomic_fetch_add(&reads, 1) % 16 == 15)
			proc_sleep_us(50); /* the lock is not fair */
	}
	return NULL;
}

static void test_fork_while_the_key_is_read(void **state)
{
	unsigned rounds = proc_rounds(40, 5000);
	pthread_t thread;

	(void)state;
	assert_int_equal(xtal_engine_setup_fork(), 0);
	assert_int_equal(pthread_create(&thread, NULL, reads_the_key, NULL), 0);
	while (!atomic_load(&reads))
		sched_yield();
	for (unsigned i = 0; i < rounds; i++) {
		char why[256] = "";
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			alarm(20); /* it would wait for ever */
			_exit(xtal_security_check(&elsewhere, why, sizeof(why)) == -ENOKEY &&
					      strstr(why, "group or others")
				      ? 0
				      : 1);
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_while_the_key_is_read),
	};
	char file[] = "/tmp/xtal-key-XXXXXX";
	int fd = mkstemp(file), failed;

	/* A key that others may read is refused, after a look at the file. */
	if (fd < 0 || fchmod(fd, 0644))
		return 1;
	close(fd);
	setenv("XTAL_KEY_FILE", file, 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file);
	return failed;
}
