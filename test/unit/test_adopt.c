/* SPDX-License-Identifier: MIT */
/* Adoption of private memory, and undoing it, under the feet of threads that use it. */
/* ctest: timeout=60 label=soak */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "lib/proc.h"
#include "os/adopt.h"
#include "os/proc.h"
#include "os/vm.h"

#define KIB ((size_t)1 << 10)
#define LEN (256 * KIB)

static enum xtal_os_adopt_level level;
static size_t page;
static _Atomic uint32_t befores, changes, afters;
static _Atomic uint64_t last_from;

static bool before(void)
{
	atomic_fetch_add(&befores, 1);
	return false;
}

static void changed(const struct xtal_os_uffd_event *e)
{
	atomic_store(&last_from, e->from);
	atomic_fetch_add(&changes, 1);
}

static void after(void)
{
	atomic_fetch_add(&afters, 1);
}

static int set_up(void **state)
{
	static const struct xtal_os_adopt_hooks hooks = { before, changed, after };
	char why[160] = "";

	(void)state;
	page = xtal_os_page_size();
	level = xtal_os_adopt_probe(why, sizeof(why));
	print_message("adoption: level %d, %s\n", level, why);
	assert_true(why[0]);
	if (level == XTAL_OS_ADOPT_NONE)
		return 0;
	assert_int_equal(xtal_os_adopt_start(&hooks, why, sizeof(why)), 0);
	return 0;
}

static void need(enum xtal_os_adopt_level least)
{
	if (level >= least)
		return;
	print_message("SKIP: userfaultfd is not allowed so much here\n");
	skip();
}

/* What the mover does: on a thread of its own, without signals. */
struct job {
	uint64_t lo, hi;
	struct xtal_os_run run;
	int err;
	bool undo;
	char why[160];
};

static void *work(void *arg)
{
	struct job *j = arg;

	if (j->undo)
		j->err = xtal_os_adopt_undo(&j->run);
	else
		j->err = xtal_os_adopt_eligible(j->lo, j->hi, j->why, sizeof(j->why));
	if (!j->undo && !j->err)
		j->err = xtal_os_adopt(j->lo, j->hi, &j->run, j->why, sizeof(j->why));
	return NULL;
}

static int do_job(struct job *j)
{
	sigset_t all, old;
	pthread_t t;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	assert_int_equal(pthread_create(&t, NULL, work, j), 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(pthread_join(t, NULL), 0);
	return j->err;
}

static int adopt(struct job *j, void *at, size_t len)
{
	*j = (struct job){ .lo = (uintptr_t)at, .hi = (uintptr_t)at + len };
	return do_job(j);
}

static int undo(struct job *j)
{
	int err;

	j->undo = true;
	err = do_job(j);
	if (!err)
		close(j->run.fd);
	return err;
}

static uint8_t *fresh(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static bool is_shared(const void *at)
{
	struct xtal_os_backing b;

	assert_int_equal(xtal_os_backing_find(at, &b), 0);
	return b.shared;
}

/* Unmaps the first `end` pages at p but page `hole`, where others may have mapped since. */
static void unmap_but(uint8_t *p, size_t hole, size_t end)
{
	munmap(p, hole * page);
	munmap(p + (hole + 1) * page, (end - hole - 1) * page);
}

static void there_and_back(void **state)
{
	uint8_t *p, *other;
	struct job j;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	p = fresh(LEN);
	for (size_t i = 0; i < LEN; i++)
		p[i] = (uint8_t)(i * 7 + i / page);
	assert_int_equal(adopt(&j, p + page, LEN - 2 * page), 0);
	assert_true(is_shared(p + page) && is_shared(p + LEN - 2 * page));
	assert_true(!is_shared(p) && !is_shared(p + LEN - page));
	other = mmap(NULL, LEN - 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, j.run.fd, 0);
	assert_true(other != MAP_FAILED);
	assert_memory_equal(other, p + page, LEN - 2 * page);
	p[page + 5] = 1;
	other[page + 6] = 2;
	assert_int_equal(other[5], 1);
	assert_int_equal(p[2 * page + 6], 2);
	munmap(other, LEN - 2 * page);
	assert_int_equal(undo(&j), 0);
	assert_false(is_shared(p + page));
	p[page + 5] = (uint8_t)((page + 5) * 7 + 1);
	p[2 * page + 6] = (uint8_t)((2 * page + 6) * 7 + 2);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(p[i], (uint8_t)(i * 7 + i / page));
	munmap(p, LEN);
}

static void holes_stay(void **state)
{
	struct job j;
	uint8_t *p;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	p = fresh(LEN);
	p[20 * page] = 1;
	p[LEN - 1] = 2;
	assert_int_equal(adopt(&j, p, LEN), 0);
	assert_int_equal(lseek(j.run.fd, 0, SEEK_DATA), 20 * page);
	assert_int_equal(lseek(j.run.fd, (off_t)(20 * page), SEEK_HOLE), 21 * page);
	assert_int_equal(p[0], 0);
	if (level == XTAL_OS_ADOPT_FULL) /* a fault that must wait */
		assert_int_equal(xtal_os_probe_write(p + 30 * page), 0);
	assert_int_equal(p[20 * page], 1);
	assert_int_equal(p[LEN - 1], 2);
	assert_int_equal(undo(&j), 0);
	assert_int_equal(p[20 * page] + p[LEN - 1], 3);
	munmap(p, LEN);
}

/* Pages of several mappings side by side: those that the kernel did not merge. */
static void several_mappings(void **state)
{
	struct job j;
	uint8_t *p;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	p = fresh(LEN);
	p[0] = 1; /* mappings with pages of their own stay apart */
	for (size_t at = page; at < LEN; at += 3 * page) {
		assert_true(mmap(p + at, 2 * page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
				 0) == p + at);
		memset(p + at, 2, 2 * page);
	}
	assert_int_equal(adopt(&j, p, LEN), 0);
	assert_int_equal(lseek(j.run.fd, 0, SEEK_END) > (off_t)LEN, 1);
	assert_true(is_shared(p) && is_shared(p + LEN - 1));
	assert_true(p[0] == 1 && p[page] == 2 && p[LEN - 2 * page] == 2);
	assert_int_equal(undo(&j), 0);
	assert_true(p[0] == 1 && p[page] == 2 && p[LEN - 2 * page] == 2);
	munmap(p, LEN);
}

static void refusals(void **state)
{
	struct job j;
	uint8_t *p;
	int fd;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	p = fresh(LEN);
	assert_int_equal(adopt(&j, p, 0), -EINVAL);
	assert_non_null(strstr(j.why, "no whole page"));
	munmap(p + 4 * page, page);
	assert_int_equal(adopt(&j, p, LEN), -EINVAL);
	assert_non_null(strstr(j.why, "not mapped"));
	mprotect(p, page, PROT_READ);
	assert_int_equal(adopt(&j, p, 2 * page), -EINVAL);
	assert_non_null(strstr(j.why, "not plain memory"));
	madvise(p + page, page, MADV_DONTFORK);
	assert_int_equal(adopt(&j, p + page, page), -EINVAL);
	assert_non_null(strstr(j.why, "'dc'"));
	unmap_but(p, 4, LEN / page);
	fd = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)LEN), 0);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(adopt(&j, p, LEN), -EINVAL);
	munmap(p, LEN);
	close(fd);
	/* our own stack, and the page of our control block */
	p = (uint8_t *)((uintptr_t)&j & ~(page - 1));
	assert_int_equal(adopt(&j, p, page), -EINVAL);
	p = (uint8_t *)((uintptr_t)pthread_self() & ~(page - 1));
	assert_int_equal(adopt(&j, p, page), -EINVAL);
}

static int shares_pages(void *arg)
{
	const uint8_t *p = arg;

	while (getppid() != 1 && p[LEN - 1] == 3 && p[0] == 3)
		proc_sleep_us(1000);
	return 1;
}

/* Pages that a forked child shares: it keeps them, we get copies. */
static void forked(void **state)
{
	uint8_t *p;
	struct job j;
	pid_t child;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	p = fresh(LEN);
	memset(p, 3, LEN);
	child = proc_start(shares_pages, p);
	memset(p, 4, LEN / 2);
	assert_int_equal(adopt(&j, p, LEN), 0);
	assert_true(p[0] == 4 && p[LEN - 1] == 3);
	memset(p, 5, LEN);
	proc_sleep_us(5000);
	assert_int_equal(kill(child, 0), 0);
	assert_int_equal(undo(&j), 0);
	assert_true(p[0] == 5 && p[LEN - 1] == 5);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	proc_kill(child);
	munmap(p, LEN);
}

/* A page pinned for a long time: all is as it was, also what came before. */
static void busy(void **state)
{
	struct io_uring_params params = { 0 };
	struct iovec buffer = { .iov_len = page };
	uint8_t *p;
	struct job j;
	int ring;

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring < 0) {
		print_message("SKIP: io_uring: %s\n", strerror(errno));
		skip();
	}
	p = fresh(LEN);
	memset(p, 3, LEN);
	buffer.iov_base = p + LEN - 3 * page;
	assert_false(xtal_os_pages_pinned());
	assert_int_equal(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1),
			 0);
	assert_int_equal(adopt(&j, p, LEN), -EBUSY);
	assert_non_null(strstr(j.why, "pinned"));
	assert_false(is_shared(p));
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(p[i], 3);
	assert_true(xtal_os_pages_pinned());
	close(ring);
	for (unsigned i = 0; adopt(&j, p, LEN); i++) { /* the ring ends a moment later */
		assert_true(j.err == -EBUSY && i < 1000);
		proc_sleep_us(10000);
	}
	assert_int_equal(undo(&j), 0);
	munmap(p, LEN);
}

/* The reader tells of it a moment after whoever did it goes on. */
static void assert_noticed(const uint8_t *from)
{
	for (unsigned i = 0; atomic_load(&last_from) != (uintptr_t)from; i++) {
		assert_true(i < 10000);
		proc_sleep_us(100);
	}
}

/* Dropped pages read as zeros, at once; who unmaps or moves some is heard of. */
static void changes_are_noticed(void **state)
{
	uint32_t seen;
	uint8_t *p, *q;
	struct job j;

	(void)state;
	need(XTAL_OS_ADOPT_FULL);
	for (unsigned round = 0; round < 50; round++) {
		p = fresh(LEN);
		memset(p, 5, LEN);
		assert_int_equal(adopt(&j, p, LEN), 0);
		seen = atomic_load(&befores);
		assert_int_equal(madvise(p + page, 2 * page, MADV_DONTNEED), 0);
		assert_int_equal(p[page] | p[3 * page - 1], 0);
		assert_int_equal(p[0] + p[3 * page], 10);
		assert_true(atomic_load(&befores) > seen);
		assert_noticed(p + page);
		assert_int_equal(munmap(p + 4 * page, page), 0);
		assert_noticed(p + 4 * page);
		/* the grown part is zero */
		q = mremap(p + LEN - 4 * page, 4 * page, 8 * page, MREMAP_MAYMOVE);
		assert_true(q != MAP_FAILED);
		assert_noticed(p + LEN - 4 * page);
		assert_int_equal(q[0] + q[4 * page - 1], 10);
		assert_int_equal(q[4 * page] + q[8 * page - 1], 0);
		q[8 * page - 1] = 9;
		assert_int_equal(undo(&j), 0);
		assert_false(is_shared(p) || is_shared(q) || is_shared(q + 7 * page));
		assert_int_equal(q[0] + q[4 * page - 1], 10);
		assert_int_equal(q[8 * page - 1], 9);
		assert_int_equal(p[0] + p[3 * page], 10);
		assert_int_equal(p[page], 0);
		munmap(q, 8 * page);
		unmap_but(p, 4, LEN / page - 4);
	}
}

/* Threads that use memory while it is adopted and given back, again and again. */
struct storm {
	uint8_t *p;
	atomic_bool stop;
	_Atomic uint64_t *counter;
	uint64_t added;
	bool ok;
};

static void *adds(void *arg)
{
	struct storm *s = arg;
	uint64_t n = 0;

	for (; !atomic_load_explicit(&s->stop, memory_order_relaxed); n++)
		for (size_t at = 0; at < LEN; at += 3 * page)
			atomic_fetch_add((_Atomic uint64_t *)(s->p + at), 1);
	s->added = n;
	return NULL;
}

/* Plain memory of one thread: what was stored is read back. */
static void *stores(void *arg)
{
	struct storm *s = arg;
	uint32_t n = 1;

	s->ok = true;
	for (; s->ok && !atomic_load_explicit(&s->stop, memory_order_relaxed); n++) {
		for (size_t at = 1024; at < LEN; at += page)
			*(volatile uint32_t *)(s->p + at) = n + (uint32_t)at;
		for (size_t at = 1024; at < LEN; at += page)
			s->ok &= *(volatile uint32_t *)(s->p + at) == n + (uint32_t)at;
	}
	return NULL;
}

/* Dropping pages, and at once zeros. */
static void *drops(void *arg)
{
	struct storm *s = arg;

	s->ok = true;
	while (s->ok && !atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		for (size_t at = 0; at < LEN; at += 2 * page) {
			*(volatile uint64_t *)(s->p + at) = 0x1111;
			madvise(s->p + at, page, MADV_DONTNEED);
			s->ok &= *(volatile uint64_t *)(s->p + at) == 0;
			*(volatile uint64_t *)(s->p + at) = 0x2222;
			s->ok &= *(volatile uint64_t *)(s->p + at) == 0x2222;
		}
	}
	return NULL;
}

/* System calls into the range wait. */
static void *reads(void *arg)
{
	struct storm *s = arg;
	int pipes[2];
	uint64_t n = 1, got;

	assert_int_equal(pipe(pipes), 0);
	s->ok = true;
	for (; s->ok && !atomic_load_explicit(&s->stop, memory_order_relaxed); n++) {
		uint64_t *at = (uint64_t *)(s->p + n * 37 % (LEN / page) * page + 2048);

		s->ok &= write(pipes[1], &n, 8) == 8 && read(pipes[0], at, 8) == 8 && *at == n;
		*at = n + 1;
		s->ok &=
			write(pipes[1], at, 8) == 8 && read(pipes[0], &got, 8) == 8 && got == n + 1;
	}
	close(pipes[0]);
	close(pipes[1]);
	return NULL;
}

static void rounds_under(void *(*const *bodies)(void *), unsigned n, unsigned few)
{
	struct storm s[4] = { 0 };
	unsigned round, rounds = proc_rounds(few, 20000), refused = 0;
	pthread_t t[4];
	uint8_t *p = fresh(LEN);
	struct job j;

	memset(p, 0, LEN);
	for (unsigned i = 0; i < n; i++) {
		s[i].p = p;
		s[i].ok = true;
		assert_int_equal(pthread_create(&t[i], NULL, bodies[i], &s[i]), 0);
	}
	for (round = 0; round < rounds; round++) {
		int err = adopt(&j, p, LEN);

		/* Dropping pages in the window makes the mover give up. */
		refused += err == -EAGAIN;
		if (err && err != -EAGAIN)
			fail_msg("round %u: %d, %s", round, err, j.why);
		if (!err)
			assert_int_equal(undo(&j), 0);
	}
	for (unsigned i = 0; i < n; i++)
		atomic_store(&s[i].stop, true);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_true(s[i].ok);
	}
	if (bodies[0] == adds)
		for (size_t at = 0; at < LEN; at += 3 * page)
			assert_int_equal(*(uint64_t *)(p + at), s[0].added + s[1].added);
	print_message("%u rounds, %u given up\n", rounds, refused);
	assert_true(refused < rounds || rounds < 10);
	munmap(p, LEN);
}

static void two_threads_of_atomics(void **state)
{
	void *(*const bodies[])(void *) = { adds, adds, stores };

	(void)state;
	need(XTAL_OS_ADOPT_USER);
	rounds_under(bodies, 3, 40);
}

static void dropping(void **state)
{
	void *(*const bodies[])(void *) = { drops };

	(void)state;
	need(XTAL_OS_ADOPT_FULL);
	rounds_under(bodies, 1, 40);
}

static void system_calls(void **state)
{
	void *(*const bodies[])(void *) = { reads, stores };

	(void)state;
	need(XTAL_OS_ADOPT_FULL);
	rounds_under(bodies, 2, 40);
}

/* What the kernel refuses, and what is said of it. */
enum refused {
	EVERYTHING,  /* userfaultfd at all */
	KERNEL_MODE, /* what handles faults of kernel mode */
	MOVING,      /* UFFDIO_MOVE: an older kernel */
	REFUSED_COUNT
};

#define IOC_NEW  0x0000aa00u /* USERFAULTFD_IOC_NEW */
#define IOC_MOVE 0xc028aa05u /* UFFDIO_MOVE */

static int probes(void *arg)
{
	static const enum xtal_os_adopt_level want[REFUSED_COUNT] = { XTAL_OS_ADOPT_NONE,
								      XTAL_OS_ADOPT_USER,
								      XTAL_OS_ADOPT_NONE };
	static const char *const words[REFUSED_COUNT] = { "userfaultfd: Operation not permitted",
							  "user mode only", "UFFDIO_MOVE" };
	enum refused which = *(const enum refused *)arg;
	enum xtal_os_adopt_level got;
	char why[160];
	bool denied;

	if (which == MOVING)
		denied = child_deny(SYS_ioctl, EINVAL, 1, IOC_MOVE);
	else
		denied = child_deny(SYS_ioctl, EPERM, 1, IOC_NEW) &&
			 child_deny(SYS_userfaultfd, EPERM, which == EVERYTHING ? -1 : 0,
				    O_CLOEXEC | O_NONBLOCK);
	if (!denied)
		return 77;
	got = xtal_os_adopt_probe(why, sizeof(why));
	if (got == want[which] && strstr(why, words[which]))
		return 0;
	fprintf(stderr, "refused %d: level %d, %s\n", which, got, why);
	return 1;
}

static void probe_names_what_is_missing(void **state)
{
	(void)state;
	need(XTAL_OS_ADOPT_FULL);
	for (enum refused which = EVERYTHING; which < REFUSED_COUNT; which++) {
		int status = proc_run(probes, &which, 10000);

		if (status == 77 << 8)
			proc_skip("seccomp filters are not allowed");
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(holes_stay),
		cmocka_unit_test(several_mappings),
		cmocka_unit_test(refusals),
		cmocka_unit_test_teardown(forked, proc_end_all),
		cmocka_unit_test(busy),
		cmocka_unit_test(changes_are_noticed),
		cmocka_unit_test(two_threads_of_atomics),
		cmocka_unit_test(dropping),
		cmocka_unit_test(system_calls),
		cmocka_unit_test(probe_names_what_is_missing),
	};

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, set_up, NULL);
}
