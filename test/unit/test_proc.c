/* SPDX-License-Identifier: MIT */
/* Life and death of processes, ids across every kind of fork, time under storms of signals. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/proc.h"

#define MS UINT64_C(1000000)

/* Waits up to 10 s until the state is as wanted. */
static bool becomes(int pid, enum xtal_os_run_state want)
{
	uint64_t end = xtal_os_now() + 10000 * MS;

	while (xtal_os_process_state(pid) != want) {
		if (xtal_os_now() > end)
			return false;
		xtal_os_sleep_ns(MS);
	}
	return true;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A child with a name made to mislead, and a second thread when threads is true. */
static void *sleep_forever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static pid_t sleeper(const char *comm, int threads, bool leader_leaves)
{
	pid_t pid = fork();
	pthread_t other;

	if (pid != 0)
		return pid;
	prctl(PR_SET_NAME, comm);
	for (int i = 0; i < threads; i++)
		pthread_create(&other, NULL, sleep_forever, NULL);
	if (leader_leaves)
		syscall(SYS_exit, 0); /* only this thread */
	for (;;)
		pause();
}

static void run_states(void **state)
{
	static const char *const comms[] = { "plain", "a) T (b", ") Z 1 1 1", "sp ace )", ")))" };

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
		pid_t pid = sleeper(comms[i], 0, false);

		assert_true(pid > 0);
		assert_int_equal(xtal_os_process_state(pid), XTAL_OS_RUNNING);
		kill(pid, SIGSTOP);
		assert_true(becomes(pid, XTAL_OS_STOPPED));
		kill(pid, SIGCONT);
		assert_true(becomes(pid, XTAL_OS_RUNNING));
		kill(pid, SIGKILL);
		assert_true(becomes(pid, XTAL_OS_DEAD)); /* a zombie */
		reap(pid);
		assert_int_equal(xtal_os_process_state(pid), XTAL_OS_DEAD); /* gone */
	}
	assert_int_equal(xtal_os_process_state(getpid()), XTAL_OS_RUNNING);
	assert_int_equal(xtal_os_process_state(0), XTAL_OS_RUNNING);
	assert_int_equal(xtal_os_process_state(-1), XTAL_OS_RUNNING);
}

static void run_states_of_threads(void **state)
{
	pid_t pid = sleeper("many", 8, false);

	(void)state;
	assert_int_equal(xtal_os_process_state(pid), XTAL_OS_RUNNING);
	kill(pid, SIGSTOP);
	assert_true(becomes(pid, XTAL_OS_STOPPED));
	reap(pid);
	assert_int_equal(xtal_os_process_state(pid), XTAL_OS_DEAD);
}

/* The first thread is a zombie, the others live. */
static void leader_left(void **state)
{
	int sync[2], pidfd = -1;
	pid_t pid;

	(void)state;
	if (emulated())
		skip(); /* qemu-user ends the process with its first thread */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sync), 0);
	pid = sleeper("left", 2, true);
	xtal_os_sleep_ns(100 * MS);
	assert_int_equal(xtal_os_process_state(pid), XTAL_OS_RUNNING);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(pidfd >= 0);
	assert_false(xtal_os_pidfd_dead(pidfd));
	kill(pid, SIGSTOP);
	assert_true(becomes(pid, XTAL_OS_STOPPED));
	kill(pid, SIGKILL);
	assert_true(becomes(pid, XTAL_OS_DEAD));
	/* The kernel says so when the last thread is buried, a little after it has died. */
	for (unsigned i = 0; i < 1000 && !xtal_os_pidfd_dead(pidfd); i++)
		xtal_os_sleep_ns(MS);
	assert_true(xtal_os_pidfd_dead(pidfd));
	reap(pid);
	close(pidfd);
	close(sync[0]);
	close(sync[1]);
}

#ifdef SYS_readlink
/* Without /proc: gone or, for all we know, running. */
static void without_proc(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	if (!child_deny(SYS_readlink, ENOENT, -1, 0) && !emulated())
		EXPECT(false);
	EXPECT(xtal_os_process_state(pid) == XTAL_OS_RUNNING);
	EXPECT(xtal_os_process_state(0x3ffffffe) == XTAL_OS_DEAD);
}

static void states_without_proc(void **state)
{
	pid_t pid = sleeper("np", 0, false);

	(void)state;
	if (!emulated())
		assert_int_equal(child_run(without_proc, &pid), 0);
	reap(pid);
}
#else
static void states_without_proc(void **state)
{
	(void)state;
	skip(); /* its readlink is readlinkat; what we deny is the other one */
}
#endif

/* A child at the other end of a listener's socket, as peers are. */
static pid_t connected_child(int *sock)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

static void peer_pidfd_of_dead(void *arg)
{
	int sock, fd = -1;
	pid_t pid;

	if (arg && !child_deny(SYS_getsockopt, ENOPROTOOPT, 2, 77))
		return;
	pid = connected_child(&sock);
	/* A socketpair's credentials are ours: only the fallback looks at the pid. */
	EXPECT(xtal_os_peer_pidfd(sock, pid, &fd) == 0);
	EXPECT(fd >= 0 && !xtal_os_pidfd_dead(fd));
	if (arg) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		EXPECT(xtal_os_pidfd_dead(fd));
		close(fd);
		EXPECT(xtal_os_peer_pidfd(sock, pid, &fd) == -ESRCH);
		/* The number is somebody's (ours), but nobody holds the other end. */
		EXPECT(xtal_os_peer_pidfd(sock, getpid(), &fd) == -ESRCH);
		EXPECT(xtal_os_peer_pidfd(sock, 0, &fd) == -ESRCH);
	} else {
		close(fd);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void peer_pidfd(void **state)
{
	int yes = 1;

	(void)state;
	assert_int_equal(child_run(peer_pidfd_of_dead, NULL), 0);
	if (!emulated())
		assert_int_equal(child_run(peer_pidfd_of_dead, &yes), 0);
}

static void pidfd_of_bad_socket(void **state)
{
	int fd = -7;

	(void)state;
	assert_true(xtal_os_peer_pidfd(-1, 1, &fd) < 0);
	assert_int_equal(fd, -7);
	assert_false(xtal_os_pidfd_dead(-1));
}

static void pid_is_mine(void *arg)
{
	EXPECT(xtal_os_pid() == getpid());
	EXPECT(arg == NULL || child_run(pid_is_mine, NULL) == 0);
	EXPECT(xtal_os_pid() == getpid());
}

static void pids(void **state)
{
	int again = 1, status;
	pid_t pid;

	(void)state;
	assert_int_equal(xtal_os_pid(), getpid());
	assert_int_equal(child_run(pid_is_mine, &again), 0);
	pid = _Fork(); /* runs no handlers */
	if (pid == 0)
		_exit(xtal_os_pid() == getpid() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(xtal_os_pid() == (int)syscall(SYS_getpid) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(xtal_os_pid(), getpid());
	assert_int_equal(xtal_os_uid(), getuid());
}

static void cpus(void **state)
{
	cpu_set_t old, one;

	(void)state;
	assert_true(xtal_os_cpus() >= 1);
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	assert_int_equal(xtal_os_cpus(), CPU_COUNT(&old));
	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &old))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(xtal_os_cpus(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static void refused_membarrier(void *arg)
{
	(void)arg;
	if (!child_deny(SYS_membarrier, EPERM, -1, 0))
		return;
	EXPECT(xtal_os_membarrier_register() == -EPERM);
	EXPECT(xtal_os_membarrier_global() == -EPERM);
}

static void membarriers(void **state)
{
	(void)state;
	if (xtal_os_membarrier_register() == -ENOSYS)
		skip();
	assert_int_equal(xtal_os_membarrier_register(), 0);
	assert_int_equal(xtal_os_membarrier_global(), 0);
	assert_int_equal(child_run(refused_membarrier, NULL), 0);
}

static void randomness(void **state)
{
	static unsigned char a[4 << 20], b[256];
	unsigned seen[256] = { 0 };

	(void)state;
	storm_start();
	assert_int_equal(xtal_os_random(a, sizeof(a)), 0);
	storm_stop();
	for (size_t i = sizeof(a) - 65536; i < sizeof(a); i++)
		seen[a[i]]++;
	for (int i = 0; i < 256; i++)
		assert_in_range(seen[i], 100, 450); /* 256 expected, 16 is one sigma */
	assert_int_equal(xtal_os_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(b));
	assert_int_equal(xtal_os_random(b, 0), 0);
	if (!emulated()) /* it would crash instead */
		assert_int_equal(xtal_os_random((void *)8, 16), -EFAULT);
}

static void sleeping(void **state)
{
	uint64_t begin = xtal_os_now(), end;

	(void)state;
	xtal_os_sleep_ns(0);
	storm_start();
	begin = xtal_os_now();
	xtal_os_sleep_ns(150 * MS);
	end = xtal_os_now();
	assert_true(storm_stop() > 0);
	assert_true(end >= begin + 150 * MS);
	assert_true(end < begin + 1500 * MS);
}

static int fork_steps[3];

static void count_prepare(void)
{
	fork_steps[0]++;
}

static void count_parent(void)
{
	fork_steps[1]++;
}

static void count_child(void)
{
	fork_steps[2]++;
}

static void check_steps(void *arg)
{
	(void)arg;
	EXPECT(fork_steps[0] == 1 && fork_steps[1] == 0 && fork_steps[2] == 1);
}

static void atfork(void **state)
{
	(void)state;
	assert_int_equal(xtal_os_atfork(count_prepare, count_parent, count_child), 0);
	assert_int_equal(child_run(check_steps, NULL), 0);
	assert_true(fork_steps[0] == 1 && fork_steps[1] == 1 && fork_steps[2] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_states),  cmocka_unit_test(run_states_of_threads),
		cmocka_unit_test(leader_left), cmocka_unit_test(states_without_proc),
		cmocka_unit_test(peer_pidfd),  cmocka_unit_test(pidfd_of_bad_socket),
		cmocka_unit_test(pids),        cmocka_unit_test(cpus),
		cmocka_unit_test(membarriers), cmocka_unit_test(randomness),
		cmocka_unit_test(sleeping),    cmocka_unit_test(atfork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
