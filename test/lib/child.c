/* SPDX-License-Identifier: MIT */
/* Tests in a forked child; refused system calls; storms of signals. */
#define _GNU_SOURCE
#include "lib/child.h"

#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

void child_expect(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not as expected: %s (errno %d)\n", file, line, what, errno);
	if (failures < 100)
		failures++;
}

/* cmocka's handlers would go on with the rest of the suite. */
static void crash_plainly(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
}

int child_run(void (*body)(void *arg), void *arg)
{
	pid_t pid, got;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		crash_plainly();
		body(arg);
		fflush(NULL);
		_exit(failures);
	}
	do {
		got = waitpid(pid, &status, 0);
	} while (got < 0 && errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

#define LOAD(offset)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (n))
#define RETURN(what)          BPF_STMT(BPF_RET | BPF_K, (what))

bool child_deny(int nr, int error, int arg, uint32_t value)
{
	unsigned at = arg < 0 ? 0 : (unsigned)arg;
	struct sock_filter any[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		SKIP_UNLESS(nr, 1),
		RETURN(SECCOMP_RET_ERRNO | (uint32_t)error),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_filter one[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		SKIP_UNLESS(nr, 3),
		LOAD((uint32_t)(offsetof(struct seccomp_data, args) + 8 * at)),
		SKIP_UNLESS(value, 1),
		RETURN(SECCOMP_RET_ERRNO | (uint32_t)error),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = arg < 0 ? 4 : 6, .filter = arg < 0 ? any : one };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static atomic_uint storm_signals;

static void on_storm(int signal_number)
{
	(void)signal_number;
	atomic_fetch_add(&storm_signals, 1);
}

void storm_start(void)
{
	struct sigaction action = { .sa_handler = on_storm }; /* no SA_RESTART */
	struct itimerval often = { .it_interval.tv_usec = 100, .it_value.tv_usec = 100 };

	atomic_store(&storm_signals, 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

unsigned storm_stop(void)
{
	struct itimerval never = { 0 };

	setitimer(ITIMER_REAL, &never, NULL);
	return atomic_load(&storm_signals);
}

static _Thread_local sigset_t remembered;

void mask_remember(void)
{
	pthread_sigmask(SIG_BLOCK, NULL, &remembered);
}

/* One by one: the rest of a sigset_t is whatever it was. */
bool mask_unchanged(void)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	for (int i = 1; i <= SIGRTMAX; i++)
		if (sigismember(&now, i) != sigismember(&remembered, i))
			return false;
	return true;
}

/* It answers "done" to every advice about memory. */
bool emulated(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool all_done = madvise(p, page, -1) == 0;

	munmap(p, page);
	return all_done;
}

unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and the directory */
}
