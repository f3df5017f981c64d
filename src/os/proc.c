/* SPDX-License-Identifier: MIT */
/* Processes and this machine: who lives, who is stopped, ids, fences, randomness, time. */
#define _GNU_SOURCE
#include "os/proc.h"
#include "os/cancel.h"
#include "os/poll.h"
#include "os/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

static bool hung_up(int sock)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int xtal_os_peer_pidfd(int sock, int pid, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	socklen_t len = sizeof(int);
	int pidfd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0) {
		*fd = xtal_os_aside(pidfd);
		return *fd < 0 ? *fd : 0;
	}
	if (errno == EINVAL || errno == ENODATA) /* what some kernels say of a reaped process */
		return -ESRCH;
	if (errno != ENOPROTOOPT && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (pid <= 0)
		return -ESRCH;
	pidfd = xtal_os_aside((int)syscall(SYS_pidfd_open, (long)pid, 0ul));
	if (pidfd < 0)
		return -errno;
	if (hung_up(sock)) { /* the pid may belong to somebody else by now */
		close(pidfd);
		return -ESRCH;
	}
	*fd = pidfd;
	return 0;
}

bool xtal_os_pidfd_dead(int pidfd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	static const struct timespec at_once;
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n;

	do {
		n = xtal_os_poll(&p, 1, &at_once);
	} while (n < 0 && errno == EINTR);
	return n > 0 && (p.revents & (POLLIN | POLLHUP));
}

/* /proc of another pid namespace would tell us about somebody else. */
static bool proc_is_ours(void)
{
	char text[16];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return atoi(text) == getpid();
}

/* The state letter of /proc/.../stat: behind the last ')', as names may contain anything. */
static char thread_state(int dir, const char *tid)
{
	char path[300], text[512], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/stat", tid);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'X';
	do {
		n = read(fd, text, sizeof(text) - 1);
	} while (n < 0 && errno == EINTR);
	close(fd);
	if (n <= 0) /* ESRCH: gone since the open */
		return 'X';
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 'R';
}

/* The common state of all live threads; the number of those in *live. */
static enum xtal_os_run_state threads_state(DIR *tasks, unsigned *live)
{
	enum xtal_os_run_state state = XTAL_OS_DEAD;
	struct dirent *e;

	*live = 0;
	while ((e = readdir(tasks))) {
		char letter;

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		letter = thread_state(dirfd(tasks), e->d_name);
		if (letter == 'Z' || letter == 'X' || letter == 'x')
			continue;
		if (letter != 'T' && letter != 't')
			return XTAL_OS_RUNNING;
		state = XTAL_OS_STOPPED;
		++*live;
	}
	return state;
}

static enum xtal_os_run_state state_without_proc(int pid)
{
	return kill(pid, 0) && errno == ESRCH ? XTAL_OS_DEAD : XTAL_OS_RUNNING;
}

/*
 * A thread that is created while we list escapes the first pass; when its creator was stopped
 * right after, it may still run. The second pass sees it.
 */
enum xtal_os_run_state xtal_os_process_state(int pid)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	enum xtal_os_run_state state;
	unsigned live, again;
	char path[40];
	DIR *tasks;

	if (pid <= 0)
		return XTAL_OS_RUNNING;
	if (!proc_is_ours())
		return state_without_proc(pid);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks) /* also when /proc hides the processes of other users */
		return state_without_proc(pid);
	state = threads_state(tasks, &live);
	if (state == XTAL_OS_STOPPED) {
		rewinddir(tasks);
		state = threads_state(tasks, &again);
		if (state == XTAL_OS_STOPPED && again != live)
			state = XTAL_OS_RUNNING;
	}
	closedir(tasks);
	return state;
}

/*
 * getpid() is a system call; the answer is kept in a page that every kind of fork hands to
 * the child zeroed. NULL: not tried yet. The page is never unmapped.
 */
static _Atomic(atomic_int *) pid_page;

static atomic_int *make_pid_page(void)
{
	static atomic_int no_page = -1;
	atomic_int *none = NULL, *page;
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page = p == MAP_FAILED ? &no_page : p;
	/* An advice of -1 that is accepted comes from an emulator that ignores them all. */
	if (page != &no_page && (madvise(p, len, -1) == 0 || madvise(p, len, MADV_WIPEONFORK))) {
		munmap(p, len);
		page = &no_page;
	}
	/* Release: the page is there before its address (partner: the acquire in xtal_os_pid). */
	if (atomic_compare_exchange_strong_explicit(&pid_page, &none, page, memory_order_acq_rel,
						    memory_order_acquire))
		return page;
	if (page != &no_page)
		munmap(p, len);
	return none;
}

void xtal_os_kill_self(void)
{
	kill(getpid(), SIGKILL);
}

int xtal_os_pid(void)
{
	/* Acquire: partner is the release in make_pid_page. */
	atomic_int *page = atomic_load_explicit(&pid_page, memory_order_acquire);
	int pid;

	if (!page)
		page = make_pid_page();
	/* Relaxed: the value stands alone. */
	pid = atomic_load_explicit(page, memory_order_relaxed);
	if (pid > 0)
		return pid;
	if (pid == 0) {
		pid = getpid();
		atomic_store_explicit(page, pid, memory_order_relaxed);
		return pid;
	}
	return getpid();
}

uint32_t xtal_os_uid(void)
{
	return getuid();
}

unsigned xtal_os_cpus(void)
{
	cpu_set_t sets[16]; /* 16,384 processors */
	int n;

	if (sched_getaffinity(0, sizeof(sets), sets))
		return 1;
	n = CPU_COUNT_S(sizeof(sets), sets);
	return n > 0 ? (unsigned)n : 1;
}

static int membarrier(int command)
{
	return syscall(SYS_membarrier, (long)command, 0ul, 0l) ? -errno : 0;
}

int xtal_os_membarrier_register(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int xtal_os_membarrier_global(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

int xtal_os_random(void *buf, size_t len)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	char *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

uint64_t xtal_os_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void xtal_os_sleep_ns(uint64_t ns)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	uint64_t now = xtal_os_now(), end = now + ns < now ? UINT64_MAX : now + ns;
	struct timespec t = { .tv_sec = (time_t)(end / 1000000000u),
			      .tv_nsec = (long)(end % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int xtal_os_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	return -pthread_atfork(prepare, parent, child);
}

int xtal_os_allow_cma(void)
{
	return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) ? -errno : 0;
}
