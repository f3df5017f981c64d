/* SPDX-License-Identifier: MIT */
/* Settings from environment and files, and lines of the log. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/env.h"

static char dir[64], path[128];

static void variables(void **state)
{
	(void)state;
	assert_int_equal(setenv("XTAL_UNIT_A", "1", 1), 0);
	assert_string_equal(xtal_os_getenv("XTAL_UNIT_A"), "1");
	assert_int_equal(unsetenv("XTAL_UNIT_A"), 0);
	assert_null(xtal_os_getenv("XTAL_UNIT_A"));
}

static void collect(const char *name, const char *value, void *arg)
{
	strcat(arg, name);
	strcat(arg, "=");
	strcat(arg, value);
	strcat(arg, ";");
}

static void each_variable(void **state)
{
	static char *no_equals[] = { "XTAL_UNIT_B", "XTAL_UNIT_C=ok", NULL }, **old;
	char got[1024] = "", name[300];

	(void)state;
	setenv("XTAL_UNIT_A", "1=2", 1);
	setenv("XTAL_UNIT_B", "", 1);
	setenv("YTAL_UNIT_C", "no", 1);
	memset(name, 'N', sizeof(name));
	memcpy(name, "XTAL_UNIT_", 10);
	name[sizeof(name) - 1] = '\0';
	setenv(name, "absurd", 1);
	xtal_os_each_env("XTAL_UNIT_", collect, got);
	assert_non_null(strstr(got, "XTAL_UNIT_A=1=2;"));
	assert_non_null(strstr(got, "XTAL_UNIT_B=;"));
	assert_null(strstr(got, "YTAL"));
	assert_null(strstr(got, "absurd"));
	unsetenv(name);
	unsetenv("XTAL_UNIT_A");
	unsetenv("XTAL_UNIT_B");
	got[0] = '\0';
	xtal_os_each_env("XTAL_UNIT_", collect, got);
	assert_string_equal(got, "");
	old = environ;
	environ = no_equals;
	xtal_os_each_env("XTAL_UNIT_", collect, got);
	environ = NULL;
	xtal_os_each_env("XTAL_UNIT_", collect, got);
	environ = old;
	assert_string_equal(got, "XTAL_UNIT_C=ok;");
}

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static void note(const char *section, const char *key, const char *value, int line, void *arg)
{
	char *out = arg;

	sprintf(out + strlen(out), "%d:%s.%s=%s;", line, section, key, value);
}

static void ini(const char *text, int ret, const char *want)
{
	char got[4096] = "";

	write_file(text);
	assert_int_equal(xtal_os_read_ini(path, note, got), ret);
	if (want)
		assert_string_equal(got, want);
}

static void ini_files(void **state)
{
	(void)state;
	ini("", 0, "");
	ini("a = 1\n", 0, "1:.a=1;");
	ini("a = 1", 0, "1:.a=1;"); /* no newline at the end */
	ini("# comment\n\n[device lo]\n; other\r\nmtu = 5 ; remark\nkey:x\n", 0,
	    "5:device lo.mtu=5;6:device lo.key=x;");
	ini("a=1\nnonsense\nb=2\n", 2, "1:.a=1;3:.b=2;");
	ini("[open\na=1\n", 1, NULL);
	ini("a=\n", 0, "1:.a=;");
}

static void ini_long_lines(void **state)
{
	char text[2000], value[500];

	(void)state;
	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	snprintf(text, sizeof(text), "a=1\nlong=%s\nb=2\n", value);
	ini(text, 2, "1:.a=1;3:.b=2;"); /* reported, not cut up into lies */
	snprintf(text, sizeof(text), "a=1\nlong=%s", value);
	ini(text, 2, "1:.a=1;");
	snprintf(text, sizeof(text), "bad\nlong=%s\n", value);
	ini(text, 1, "");
	value[190] = '\0';
	snprintf(text, sizeof(text), "long=%s\nb=2\n", value);
	ini(text, 0, NULL);
}

static void ini_errors(void **state)
{
	char got[64] = "", other[160];

	(void)state;
	unlink(path);
	assert_int_equal(xtal_os_read_ini(path, note, got), -ENOENT);
	assert_int_equal(xtal_os_read_ini(dir, note, got), -EISDIR);
	assert_int_equal(xtal_os_read_ini("/dev/null", note, got), 0);
	snprintf(other, sizeof(other), "%s/x", path);
	write_file("");
	assert_int_equal(xtal_os_read_ini(other, note, got), -ENOTDIR);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(xtal_os_read_ini(path, note, got), 0); /* does not wait for a writer */
	unlink(path);
	assert_string_equal(got, "");
}

static void log_file(void **state)
{
	char got[64] = "";
	struct stat st;
	int fd;

	(void)state;
	unlink(path);
	assert_int_equal(xtal_os_log_file(path, "first"), 0);
	assert_int_equal(xtal_os_log_file(path, "second"), 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, got, sizeof(got)), 13);
	assert_string_equal(got, "first\nsecond\n");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	assert_int_equal(xtal_os_log_file("/nonexistent/file", "lost"), -ENOENT);
	assert_int_equal(xtal_os_log_file(dir, "lost"), -EISDIR);
	assert_int_equal(xtal_os_log_file("/dev/full", "lost"), -ENOSPC);
	unlink(path);
}

static void log_stderr(void **state)
{
	int saved = dup(2), fds[2];
	char got[16] = "";

	(void)state;
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], 2);
	xtal_os_log_file("stderr", "said");
	dup2(saved, 2);
	assert_int_equal(read(fds[0], got, sizeof(got)), 5);
	assert_string_equal(got, "said\n");
	close(fds[0]);
	close(fds[1]);
	close(saved);
}

/* Nobody reads our words any more: that must not kill the program. */
static void broken_pipe(void *arg)
{
	sigset_t pipe_set, pending;
	int fds[2], saved = dup(2);

	(void)arg;
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	EXPECT(pipe(fds) == 0);
	close(fds[0]);
	dup2(fds[1], 2);
	mask_remember();
	xtal_os_log_file("stderr", "lost");
	dup2(saved, 2);
	EXPECT(mask_unchanged());
	EXPECT(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
	/* A SIGPIPE of the program's own stays. */
	pthread_sigmask(SIG_BLOCK, &pipe_set, NULL);
	raise(SIGPIPE);
	dup2(fds[1], 2);
	xtal_os_log_file("stderr", "lost");
	dup2(saved, 2);
	EXPECT(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE));
}

static void log_broken_pipe(void **state)
{
	(void)state;
	assert_int_equal(child_run(broken_pipe, NULL), 0);
}

/* Nothing to read back from; it must not write here, nor change the program's own tag. */
static void system_log(void **state)
{
	int saved = dup(2), fds[2];
	char got[16];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], 2);
	xtal_os_syslog(LOG_DEBUG, "xtal", "a test with %s in it");
	xtal_os_syslog(1 << 20, "xtal", "priorities are masked");
	dup2(saved, 2);
	assert_int_equal(read(fds[0], got, sizeof(got)), -1);
	close(fds[0]);
	close(fds[1]);
	close(saved);
}

static void *says_a_word(void *arg)
{
	atomic_uint *said = arg;

	xtal_os_syslog(LOG_DEBUG, "xtal", "a test of forking");
	atomic_store(said, 1);
	return NULL;
}

/* Nobody is inside the C library's log while it is held. */
static void system_log_held(void **state)
{
	atomic_uint said = 0;
	pthread_t thread;

	(void)state;
	xtal_os_syslog_hold();
	assert_int_equal(pthread_create(&thread, NULL, says_a_word, &said), 0);
	usleep(20000);
	assert_int_equal(atomic_load(&said), 0);
	xtal_os_syslog_release();
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&said), 1);
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/xtal-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* Every day of 150 years, against the C library. */
static void times(void **state)
{
	char got[40], want[40], now[40];
	struct timespec at = { .tv_nsec = 123456789 };
	struct tm tm;

	(void)state;
	for (unsigned day = 0; day < 55000; day++) {
		at.tv_sec = (time_t)day * 86400 + day % 86400;
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.123456Z",
			 gmtime_r(&at.tv_sec, &tm));
		xtal_os_time_text(&at, got, sizeof(got));
		assert_string_equal(got, want);
	}
	xtal_os_time_text(NULL, now, sizeof(now));
	assert_int_equal(strlen(now), strlen(want));
	assert_true(strcmp(now, "2026") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables),       cmocka_unit_test(each_variable),
		cmocka_unit_test(ini_files),       cmocka_unit_test(ini_long_lines),
		cmocka_unit_test(ini_errors),      cmocka_unit_test(log_file),
		cmocka_unit_test(log_stderr),      cmocka_unit_test(log_broken_pipe),
		cmocka_unit_test(times),           cmocka_unit_test(system_log),
		cmocka_unit_test(system_log_held),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
