/* SPDX-License-Identifier: MIT */
/* Threads of the engine and the ways in which they sleep. */
#define _GNU_SOURCE
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/cancel.h"
#include "os/poll.h"
#include "os/proc.h"
#include "os/sock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
#define STACK_SIZE ((size_t)1 << 20) /* their frames are large */
#else
#define STACK_SIZE ((size_t)256 << 10)
#endif

#define NS_PER_S   1000000000u
#define NS_PER_MS  1000000u
#define MAX_EVENTS 64
#define NAME_SIZE  16 /* with the terminating zero: the kernel's limit */

struct start {
	char name[NAME_SIZE];
	void (*run)(void *arg);
	void *arg;
};

static _Thread_local bool ours;

bool xtal_os_thread_is_ours(void)
{
	return ours;
}

static void *thread_main(void *arg)
{
	struct start s = *(struct start *)arg;

	ours = true;
	free(arg);
	pthread_setname_np(pthread_self(), s.name);
	s.run(s.arg);
	return NULL;
}

/* A program with much thread-local storage leaves no room in a small stack: EINVAL. */
static int create_detached(struct start *s)
{
	long least = sysconf(_SC_THREAD_STACK_MIN);
	size_t size = least > (long)STACK_SIZE ? (size_t)least : STACK_SIZE;
	pthread_attr_t attr;
	pthread_t thread;
	int ret = pthread_attr_init(&attr);

	if (ret)
		return ret;
	ret = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (ret == 0)
		ret = pthread_attr_setstacksize(&attr, size);
	if (ret == 0)
		ret = pthread_create(&thread, &attr, thread_main, s);
	pthread_attr_destroy(&attr);
	if (ret != EINVAL)
		return ret;
	ret = pthread_create(&thread, NULL, thread_main, s);
	if (ret == 0)
		pthread_detach(thread);
	return ret;
}

int xtal_os_thread_start(const char *name, void (*run)(void *arg), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	sigset_t all, old;
	int ret;

	if (!s)
		return -ENOMEM;
	*s = (struct start){ .run = run, .arg = arg };
	snprintf(s->name, sizeof(s->name), "%s", name);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the new thread */
	ret = create_detached(s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		free(s);
	return -ret;
}

void xtal_os_thread_yields_to_waker(void)
{
	struct sched_param param = { 0 };

	/* Not for a program that has chosen a scheduling class of its own. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &param);
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Time left until the deadline; 0 when it has passed. */
static uint64_t remaining(uint64_t deadline)
{
	uint64_t now;

	if (deadline == 0)
		return 0;
	now = xtal_os_now();
	return deadline > now ? deadline - now : 0;
}

#define EMPTY_POLLS 64u

static atomic_bool crowded; /* more threads than processors, it seems */

bool xtal_os_yield(void)
{
	uint64_t before = xtal_os_now();
	bool used;

	sched_yield();
	used = xtal_os_now() - before > XTAL_OS_YIELD_NS;
	atomic_store_explicit(&crowded, used, memory_order_relaxed);
	return used;
}

uint64_t xtal_os_yield_after(void)
{
	return atomic_load_explicit(&crowded, memory_order_relaxed) ? 0 : XTAL_OS_YIELD_NS;
}

static _Thread_local unsigned empty; /* polls, since the last yield or work */
static _Thread_local bool worked;

void xtal_os_polled_in_vain(void)
{
	if (worked) {
		worked = false;
		return;
	}
	if (++empty < EMPTY_POLLS && !atomic_load_explicit(&crowded, memory_order_relaxed))
		return;
	empty = 0;
	xtal_os_yield();
}

void xtal_os_polled_with_work(void)
{
	empty = 0;
	worked = true;
}

int xtal_os_futex_wait(atomic_uint *word, unsigned expected, uint64_t deadline)
{
	struct timespec until = to_timespec(deadline);

	/*
	 * Acquire: a waiter that leaves because the word changed sees what was done before
	 * the change (partner: the waker's release store of the word).
	 */
	while (atomic_load_explicit(word, memory_order_acquire) == expected) {
		if (deadline == 0)
			return -ETIMEDOUT;
		if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
			    deadline == UINT64_MAX ? NULL : &until, NULL,
			    FUTEX_BITSET_MATCH_ANY) == 0)
			return 0;
		if (errno == ETIMEDOUT)
			return -ETIMEDOUT;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

int xtal_os_futex_sleep(atomic_uint *word, unsigned expected, uint64_t deadline,
			void (*cancelled)(void *arg), void *arg)
{
	int ret, was;

	pthread_cleanup_push(cancelled, arg);
	/* As the C library does around a call that may end the thread: here, and nowhere else, it ends
	 * at any instruction. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &was);
	ret = xtal_os_futex_wait(word, expected, deadline);
	pthread_setcanceltype(was, &was);
	pthread_cleanup_pop(0);
	return ret;
}

void xtal_os_futex_wake(atomic_uint *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

int xtal_os_event_create(int *fd)
{
	int event = xtal_os_above_stdio(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));

	if (event < 0)
		return -errno;
	*fd = event;
	return 0;
}

/* Whether read (write) would not block. The program, which is given some of these, may have made
 * them blocking. Never shared with another process: between this look and the call it could. */
static bool event_can(int fd, short what)
{
	static const struct timespec at_once;
	struct pollfd p = { .fd = fd, .events = what };

	return xtal_os_poll(&p, 1, &at_once) > 0 && (p.revents & what);
}

/* Not writable: the counter is full, so it is signalled already. */
void xtal_os_event_signal(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	uint64_t one = 1;
	ssize_t n;

	do {
		if (!event_can(fd, POLLOUT))
			return;
		n = write(fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

bool xtal_os_event_clear(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	uint64_t count = 0;
	ssize_t n;

	do {
		if (!event_can(fd, POLLIN))
			return false;
		n = read(fd, &count, sizeof(count));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(count) && count > 0;
}

bool xtal_os_event_blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

void xtal_os_event_let_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

int xtal_os_epoll_create(int *fd)
{
	int epfd = xtal_os_above_stdio(epoll_create1(EPOLL_CLOEXEC));

	if (epfd < 0)
		return -errno;
	*fd = epfd;
	return 0;
}

int xtal_os_epoll_add(int epfd, int fd, uint64_t tag)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int xtal_os_epoll_change(int epfd, int fd, uint64_t tag, unsigned what)
{
	struct epoll_event e = { .data.u64 = tag };

	/* What is reported unasked (errors, hang-ups) comes at most once, too. */
	if (!(what & (XTAL_OS_READABLE | XTAL_OS_WRITABLE)))
		what = 0;
	e.events = what ? (what & XTAL_OS_READABLE ? EPOLLIN : 0u) |
				   (what & XTAL_OS_WRITABLE ? EPOLLOUT : 0u) |
				   (what & XTAL_OS_ONCE ? EPOLLONESHOT : 0u)
			: EPOLLONESHOT;
	return epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &e) ? -errno : 0;
}

void xtal_os_epoll_remove(int epfd, int fd)
{
	struct epoll_event unused = { 0 };

	epoll_ctl(epfd, EPOLL_CTL_DEL, fd, &unused);
}

/* Milliseconds, rounded up, where there is no epoll_pwait2 (before Linux 5.11) or it is not permitted. */
static int wait_ms(int epfd, struct epoll_event *events, int max, uint64_t deadline)
{
	uint64_t ms = remaining(deadline) / NS_PER_MS;

	if (deadline == UINT64_MAX)
		return epoll_wait(epfd, events, max, -1);
	if (ms > INT32_MAX - 1)
		ms = INT32_MAX - 1;
	return epoll_wait(epfd, events, max, remaining(deadline) ? (int)ms + 1 : 0);
}

static int wait_ns(int epfd, struct epoll_event *events, int max, uint64_t deadline)
{
#ifdef SYS_epoll_pwait2
	struct timespec left = to_timespec(remaining(deadline));
	int n = (int)syscall(SYS_epoll_pwait2, epfd, events, max,
			     deadline == UINT64_MAX ? NULL : &left, NULL, 0ul);

	/* Filters of system calls that are older than this one answer EPERM, or what they like. */
	if (n >= 0 || errno == EINTR)
		return n;
#endif
	return wait_ms(epfd, events, max, deadline);
}

int xtal_os_epoll_wait(int epfd, uint64_t *tags, int max, uint64_t deadline)
{
	struct epoll_event events[MAX_EVENTS];
	int n;

	if (max > MAX_EVENTS)
		max = MAX_EVENTS;
	do {
		n = wait_ns(epfd, events, max, deadline);
	} while ((n < 0 && errno == EINTR) || (n == 0 && remaining(deadline) > 0));
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++)
		tags[i] = events[i].data.u64;
	return n;
}

int xtal_os_wait_readable(int fd, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do {
		struct timespec left = to_timespec(remaining(deadline));

		n = ppoll(&p, 1, deadline == UINT64_MAX ? NULL : &left, NULL);
		if (n < 0 && errno == EINVAL)
			n = xtal_os_poll_without(&p, 1, deadline == UINT64_MAX ? NULL : &left);
	} while ((n < 0 && errno == EINTR) || (n == 0 && remaining(deadline) > 0));
	if (n < 0)
		return -errno;
	if (n > 0 && (p.revents & POLLNVAL))
		return -EBADF;
	return n;
}

int xtal_os_wait_readable_or(int fd, uint64_t deadline, void (*cancelled)(void *arg), void *arg)
{
	int ret;

	if (!cancelled)
		return xtal_os_wait_readable(fd, deadline);
	pthread_cleanup_push(cancelled, arg);
	ret = xtal_os_wait_readable(fd, deadline);
	pthread_cleanup_pop(0);
	return ret;
}
