/* SPDX-License-Identifier: MIT */
/* Threads, and waits whose deadlines hold under a storm of signals. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/proc.h"
#include "os/thread.h"

#define MS   UINT64_C(1000000)
#define LATE (1500 * MS) /* what a busy machine may add */

struct started {
	atomic_uint done;
	sigset_t mask;
	char name[32];
	size_t stack;
	int detach;
	int policy;
};

static void look_around(void *arg)
{
	struct started *s = arg;
	pthread_attr_t attr;
	volatile char frame[64 << 10];

	memset((char *)(uintptr_t)frame, 1, sizeof(frame));
	pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
	pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstacksize(&attr, &s->stack);
	pthread_attr_getdetachstate(&attr, &s->detach);
	pthread_attr_destroy(&attr);
	/* Release: partner is the acquire in xtal_os_futex_wait. */
	atomic_store_explicit(&s->done, 1, memory_order_release);
	xtal_os_futex_wake(&s->done, 1);
}

static void wait_done(atomic_uint *done)
{
	while (atomic_load(done) == 0)
		assert_int_equal(xtal_os_futex_wait(done, 0, xtal_os_now() + 10000 * MS), 0);
}

static void start(void **state)
{
	static struct started s;

	(void)state;
	mask_remember();
	assert_int_equal(xtal_os_thread_start("xtal-name-longer-than-15", look_around, &s), 0);
	assert_true(mask_unchanged());
	wait_done(&s.done);
	for (int i = 1; i < SIGRTMAX - 1; i++) /* qemu-user keeps the last ones */
		if (i != SIGKILL && i != SIGSTOP && (i < 32 || i >= SIGRTMIN))
			assert_int_equal(sigismember(&s.mask, i), 1);
	assert_string_equal(s.name, "xtal-name-longe");
	assert_in_range(s.stack, 128 << 10, 2 << 20);
	assert_int_equal(s.detach, PTHREAD_CREATE_DETACHED);
}

static void refuse_threads(void *arg)
{
	static struct started s;

	(void)arg;
	if (!child_deny(SYS_clone, EAGAIN, -1, 0))
		return;
	child_deny(SYS_clone3, EAGAIN, -1, 0);
	EXPECT(xtal_os_thread_start("none", look_around, &s) == -EAGAIN);
}

static void yield(void *arg)
{
	struct started *s = arg;

	xtal_os_thread_yields_to_waker();
	s->policy = sched_getscheduler(0);
	atomic_store_explicit(&s->done, 1, memory_order_release);
	xtal_os_futex_wake(&s->done, 1);
}

/* Only the calling thread, and only one that has no class of its own choice. */
static void yields_to_waker(void **state)
{
	static struct started s;

	(void)state;
	assert_int_equal(xtal_os_thread_start("batch", yield, &s), 0);
	wait_done(&s.done);
	assert_int_equal(s.policy, SCHED_BATCH);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void start_refused(void **state)
{
	(void)state;
	assert_int_equal(child_run(refuse_threads, NULL), 0);
}

static void in_time(uint64_t begin, uint64_t wait)
{
	uint64_t now = xtal_os_now();

	assert_true(now >= begin + wait);
	assert_true(now < begin + wait + LATE);
}

static void futex(void **state)
{
	atomic_uint word = 1;
	uint64_t begin = xtal_os_now();

	(void)state;
	assert_int_equal(xtal_os_futex_wait(&word, 2, UINT64_MAX), 0);
	assert_int_equal(xtal_os_futex_wait(&word, 2, 0), 0);
	assert_int_equal(xtal_os_futex_wait(&word, 1, 0), -ETIMEDOUT);
	assert_int_equal(xtal_os_futex_wait(&word, 1, begin), -ETIMEDOUT);
	assert_int_equal(xtal_os_futex_wait(&word, 1, begin + 30 * MS), -ETIMEDOUT);
	in_time(begin, 30 * MS);
}

static void wake_later(void *arg)
{
	atomic_uint *word = arg;

	xtal_os_sleep_ns(50 * MS);
	atomic_store_explicit(word, 1, memory_order_release);
	xtal_os_futex_wake(word, INT32_MAX);
}

static void futex_woken(void **state)
{
	static atomic_uint word;

	(void)state;
	assert_int_equal(xtal_os_thread_start("waker", wake_later, &word), 0);
	storm_start();
	while (atomic_load(&word) == 0)
		assert_int_equal(xtal_os_futex_wait(&word, 0, UINT64_MAX), 0);
	storm_stop();
}

static void futex_storm(void **state)
{
	atomic_uint word = 1;
	uint64_t begin;

	(void)state;
	storm_start();
	begin = xtal_os_now();
	assert_int_equal(xtal_os_futex_wait(&word, 1, begin + 150 * MS), -ETIMEDOUT);
	in_time(begin, 150 * MS);
	assert_true(storm_stop() > 0);
}

static void events(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(xtal_os_event_create(&fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_false(xtal_os_event_clear(fd));
	assert_int_equal(xtal_os_wait_readable(fd, 0), 0);
	xtal_os_event_signal(fd);
	xtal_os_event_signal(fd);
	assert_int_equal(xtal_os_wait_readable(fd, 0), 1);
	assert_true(xtal_os_event_clear(fd));
	assert_false(xtal_os_event_clear(fd));
	/* A full counter is a signalled one. */
	assert_int_equal(write(fd, &(uint64_t){ UINT64_MAX - 1 }, 8), 8);
	xtal_os_event_signal(fd);
	assert_true(xtal_os_event_clear(fd));
	close(fd);
}

static void epoll(void **state)
{
	int epfd, a, b, pair[2];
	uint64_t tags[4] = { 0 }, begin;

	(void)state;
	assert_int_equal(xtal_os_epoll_create(&epfd), 0);
	assert_true(fcntl(epfd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(xtal_os_event_create(&a), 0);
	assert_int_equal(xtal_os_event_create(&b), 0);
	assert_int_equal(xtal_os_epoll_add(epfd, a, UINT64_MAX), 0);
	assert_int_equal(xtal_os_epoll_add(epfd, a, 5), -EEXIST);
	assert_int_equal(xtal_os_epoll_add(epfd, b, 7), 0);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, 0), 0);
	begin = xtal_os_now();
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, begin + 20 * MS), 0);
	in_time(begin, 20 * MS);
	xtal_os_event_signal(b);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, UINT64_MAX), 1);
	assert_true(tags[0] == 7);
	xtal_os_event_signal(a);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, 0), 2); /* level triggered */
	assert_true(tags[0] + tags[1] == 6);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 1, 0), 1);
	xtal_os_epoll_remove(epfd, b);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, 0), 1);
	assert_true(tags[0] == UINT64_MAX);
	xtal_os_event_clear(a);
	/* A peer that hangs up is news too. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(xtal_os_epoll_add(epfd, pair[0], 9), 0);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, 0), 0);
	close(pair[1]);
	assert_int_equal(xtal_os_epoll_wait(epfd, tags, 4, 0), 1);
	assert_true(tags[0] == 9);
	assert_int_equal(xtal_os_epoll_wait(a, tags, 4, 0), -EINVAL);
	close(epfd);
	close(a);
	close(b);
	close(pair[0]);
	assert_int_equal(xtal_os_epoll_wait(-1, tags, 4, UINT64_MAX), -EBADF);
	assert_int_equal(xtal_os_epoll_add(-1, 0, 1), -EBADF);
}

static void epoll_many(void **state)
{
	int epfd, fds[100];
	uint64_t tags[100];

	(void)state;
	assert_int_equal(xtal_os_epoll_create(&epfd), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(xtal_os_event_create(&fds[i]), 0);
		assert_int_equal(xtal_os_epoll_add(epfd, fds[i], (uint64_t)i), 0);
		xtal_os_event_signal(fds[i]);
	}
	assert_in_range(xtal_os_epoll_wait(epfd, tags, 100, 0), 1, 100);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	close(epfd);
}

static void wait_in_storm(void)
{
	int epfd, fd;
	uint64_t tags[4], begin;

	EXPECT(xtal_os_epoll_create(&epfd) == 0);
	EXPECT(xtal_os_event_create(&fd) == 0);
	EXPECT(xtal_os_epoll_add(epfd, fd, 1) == 0);
	storm_start();
	begin = xtal_os_now();
	EXPECT(xtal_os_epoll_wait(epfd, tags, 4, begin + 150 * MS) == 0);
	EXPECT(xtal_os_now() >= begin + 150 * MS);
	EXPECT(xtal_os_now() < begin + 150 * MS + LATE);
	begin = xtal_os_now();
	EXPECT(xtal_os_wait_readable(fd, begin + 150 * MS) == 0);
	EXPECT(xtal_os_now() >= begin + 150 * MS);
	EXPECT(xtal_os_now() < begin + 150 * MS + LATE);
	EXPECT(storm_stop() > 0);
	close(fd);
	close(epfd);
}

/* With an argument: as on kernels without epoll_pwait2, or under a filter that does not know it. */
static void storm_in_child(void *arg)
{
#ifdef SYS_epoll_pwait2
	if (arg && !child_deny(SYS_epoll_pwait2, *(int *)arg, -1, 0))
		return;
#else
	(void)arg;
#endif
	wait_in_storm();
}

static void wait_storm(void **state)
{
	int errors[] = { ENOSYS, EPERM, EACCES };

	(void)state;
	assert_int_equal(child_run(storm_in_child, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(child_run(storm_in_child, &errors[i]), 0);
}

struct signaller {
	int fd;
	atomic_uint done;
};

static void signal_later(void *arg)
{
	struct signaller *s = arg;

	xtal_os_sleep_ns(50 * MS);
	xtal_os_event_signal(s->fd);
	atomic_store_explicit(&s->done, 1, memory_order_release);
	xtal_os_futex_wake(&s->done, 1);
}

static void wait_readable(void **state)
{
	static struct signaller s;
	int pair[2];

	(void)state;
	assert_int_equal(xtal_os_event_create(&s.fd), 0);
	assert_int_equal(xtal_os_thread_start("signaller", signal_later, &s), 0);
	storm_start();
	assert_int_equal(xtal_os_wait_readable(s.fd, UINT64_MAX), 1);
	storm_stop();
	wait_done(&s.done);
	close(s.fd);
	assert_int_equal(xtal_os_wait_readable(s.fd, UINT64_MAX), -EBADF);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	close(pair[1]);
	assert_int_equal(xtal_os_wait_readable(pair[0], UINT64_MAX), 1);
	close(pair[0]);
}

static void with_no_fds(void *arg)
{
	struct rlimit none = { 0, 0 };
	int fd, had;

	(void)arg;
	EXPECT(xtal_os_event_create(&had) == 0);
	EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
	/* What was opened before goes on working. */
	EXPECT(!xtal_os_event_clear(had));
	EXPECT(xtal_os_wait_readable(had, xtal_os_now() + MS) == 0);
	xtal_os_event_signal(had);
	EXPECT(xtal_os_wait_readable(had, UINT64_MAX) == 1);
	EXPECT(xtal_os_event_clear(had));
	EXPECT(xtal_os_wait_readable(had, 0) == 0);
	close(had);
	EXPECT(xtal_os_wait_readable(had, UINT64_MAX) == -EBADF);
	EXPECT(xtal_os_event_create(&fd) == -EMFILE);
	EXPECT(xtal_os_epoll_create(&fd) == -EMFILE);
}

static void no_fds_left(void **state)
{
	(void)state;
	if (emulated())
		skip(); /* qemu-user does not pass the limit on */
	assert_int_equal(child_run(with_no_fds, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start),           cmocka_unit_test(start_refused),
		cmocka_unit_test(yields_to_waker), cmocka_unit_test(futex),
		cmocka_unit_test(futex_woken),     cmocka_unit_test(futex_storm),
		cmocka_unit_test(events),          cmocka_unit_test(epoll),
		cmocka_unit_test(epoll_many),      cmocka_unit_test(wait_storm),
		cmocka_unit_test(wait_readable),   cmocka_unit_test(no_fds_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
