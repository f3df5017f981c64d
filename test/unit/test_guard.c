/* SPDX-License-Identifier: MIT */
/* Copies and probes that survive bad addresses; copies to and from another process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"

static size_t page;

static int set_up(void **state)
{
	(void)state;
	page = xtal_os_page_size();
	xtal_os_pid(); /* maps a page when first called, maybe where a test wants a hole */
	return page >= 4096 && (page & (page - 1)) == 0 ? 0 : -1;
}

/* An area of 40 pages, page 20 missing, page 30 read-only, page 35 PROT_NONE. */
#define PAGES     40
#define HOLE      20
#define READ_ONLY 30
#define NO_ACCESS 35

static char *make_area(void)
{
	void *map = NULL;
	char *area;

	EXPECT(xtal_os_map_private(PAGES * page, &map) == 0);
	area = map;
	memset(area, 'i', PAGES * page);
	munmap(area + HOLE * page, page);
	mprotect(area + READ_ONLY * page, page, PROT_READ);
	mprotect(area + NO_ACCESS * page, page, PROT_NONE);
	return area;
}

/* Somebody else's mapping may be in the hole by now. */
static void drop_area(char *area)
{
	munmap(area, HOLE * page);
	munmap(area + (HOLE + 1) * page, (PAGES - HOLE - 1) * page);
}

/* The functions under test: from memory of ours to memory that may not be there, and back. */
static int (*put)(void *dst, const void *src, size_t len) = xtal_os_guarded_copy;
static int (*get)(void *dst, const void *src, size_t len) = xtal_os_guarded_copy;

static void good_copies(char *area, char *mine)
{
	static const size_t lengths[] = { 1, 7, 8, 4095, 4096, 4097, 65535, 65536 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = lengths[i];

		for (size_t k = 0; k < len; k++)
			mine[k] = (char)(k * 7 + len);
		EXPECT(put(area + 3, mine, len) == 0);
		EXPECT(memcmp(area + 3, mine, len) == 0);
		EXPECT(area[3 + len] == 'i');
		memset(mine, 0, len);
		EXPECT(get(mine, area + 3, len) == 0);
		EXPECT(mine[len - 1] == (char)((len - 1) * 7 + len));
		memset(area, 'i', len + 8);
	}
	EXPECT(put(NULL, NULL, 0) == 0);
	EXPECT(get(mine, area + READ_ONLY * page, page) == 0);
}

/* Exactly up to a bad page works, one byte more does not; on either side. */
static void bad_copies(char *area, char *mine)
{
	char *hole = area + HOLE * page;

	EXPECT(put(hole - 10, mine, 10) == 0);
	EXPECT(put(hole - 10, mine, 11) == -EFAULT);
	EXPECT(put(hole + page - 1, mine, 1) == -EFAULT);
	EXPECT(put(hole + page - 1, mine, 10) == -EFAULT);
	EXPECT(put(hole + page, mine, 10) == 0);
	EXPECT(get(mine, hole - 10, 10) == 0);
	EXPECT(get(mine, hole - 10, 11) == -EFAULT);
	EXPECT(get(mine, hole, 1) == -EFAULT);
	EXPECT(put(area, mine, HOLE * page) == 0);
	EXPECT(put(area, mine, HOLE * page + 1) == -EFAULT);
	EXPECT(get(mine, area, HOLE * page + 1) == -EFAULT);
	EXPECT(put(area + READ_ONLY * page, mine, 1) == -EFAULT);
	EXPECT(put(area + READ_ONLY * page - 1, mine, 2) == -EFAULT);
	EXPECT(area[READ_ONLY * page] == 'i');
	EXPECT(put(area + NO_ACCESS * page, mine, 1) == -EFAULT);
	EXPECT(get(mine, area + NO_ACCESS * page, 1) == -EFAULT);
	EXPECT(put(NULL, mine, 8) == -EFAULT);
	EXPECT(get(mine, NULL, 8) == -EFAULT);
	EXPECT(put((char *)UINTPTR_MAX - 3, mine, 8) == -EFAULT);
	EXPECT(get(mine, (char *)UINTPTR_MAX - 3, 8) == -EFAULT);
	EXPECT(get(mine, area, SIZE_MAX) == -EFAULT);
}

/* With an argument: the error by which the kernel refuses process_vm_writev. */
static void guarded_copies(void *arg)
{
	unsigned before;
	char *area, *mine = malloc(PAGES * page);

	if (arg && !child_deny(SYS_process_vm_writev, *(int *)arg, -1, 0))
		return;
	area = make_area();
	before = open_fds();
	memset(mine, 'm', PAGES * page);
	good_copies(area, mine);
	bad_copies(area, mine);
	EXPECT(open_fds() == before);
	free(mine);
}

static void guarded(void **state)
{
	(void)state;
	assert_int_equal(child_run(guarded_copies, NULL), 0);
}

static void guarded_without_process_vm(void **state)
{
	int refusals[] = { ENOSYS, EPERM, ESRCH };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(child_run(guarded_copies, &refusals[i]), 0);
}

static atomic_int on_our_thread;

static void checked_on_our_thread(void *arg)
{
	char byte = 0, *area = arg;
	bool good = xtal_os_thread_is_ours() && xtal_os_checked_get(&byte, area, 1) == 0 &&
		    byte == 'i' && xtal_os_checked_get(&byte, area + HOLE * page, 1) == -EFAULT;

	atomic_store(&on_our_thread, good ? 1 : 2);
}

/* With an argument: the error by which an emulator or a filter refuses before it looks. */
static void checked_copies(void *arg)
{
	char *area, mine[600];
	sigset_t before, after;

	if (arg && !child_deny(SYS_rt_sigprocmask, *(int *)arg, 0, -1))
		return;
	area = make_area();
	get = xtal_os_checked_get;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < 2 * page; i++)
		area[i] = (char)(i % 251);
	for (size_t len = 0; len < 600; len += len < 20 ? 1 : 29) {
		for (size_t at = page - 300; at < page + 20; at++) {
			memset(mine, 0, sizeof(mine));
			EXPECT(get(mine, area + at, len) == 0);
			EXPECT(memcmp(mine, area + at, len) == 0);
			EXPECT(len == 600 || mine[len] == 0);
		}
		if (!len)
			continue;
		EXPECT(get(mine, area + HOLE * page - len, len) == 0);
		EXPECT(get(mine, area + HOLE * page - len + 1, len) == -EFAULT);
		EXPECT(get(mine, area + HOLE * page, len) == -EFAULT);
		EXPECT(get(mine, area + (HOLE + 1) * page - 1, len) == -EFAULT);
		EXPECT(get(mine, area + READ_ONLY * page, len) == 0);
		EXPECT(get(mine, area + (NO_ACCESS + 1) * page - 1, len) == -EFAULT);
		EXPECT(get(mine, NULL, len) == -EFAULT);
		EXPECT(get(mine, (char *)UINTPTR_MAX - 3, len) == (-EFAULT));
	}
	sigprocmask(SIG_SETMASK, NULL, &after);
	EXPECT(memcmp(&before, &after, sizeof(long)) == 0);
	EXPECT(!xtal_os_thread_is_ours());
	area[0] = 'i';
	EXPECT(xtal_os_thread_start("checks", checked_on_our_thread, area) == 0);
	while (!atomic_load(&on_our_thread))
		usleep(1000);
	EXPECT(atomic_load(&on_our_thread) == 1);
}

static void checked(void **state)
{
	int refusals[] = { EINVAL, EPERM, ENOSYS };

	(void)state;
	assert_int_equal(child_run(checked_copies, NULL), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(child_run(checked_copies, &refusals[i]), 0);
}

/* The child writes into its own memory, not into that of whose pid was known before. */
static void copy_in_child(void *arg)
{
	int *word = arg, two = 2;

	EXPECT(xtal_os_guarded_copy(word, &two, sizeof(two)) == 0);
	EXPECT(*word == 2);
}

/* In a child of the child the page is not there, and everything works without it. */
static void bounce_after_fork(void *arg)
{
	xtal_os_bounce_fork_child();
	guarded_copies(arg);
}

static void bounce_copies(void *arg)
{
	int fd = -1;

	put = xtal_os_guarded_put;
	get = xtal_os_guarded_get;
	guarded_copies(arg); /* not open */
	EXPECT(xtal_os_bounce_open(&fd) == 0);
	EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	guarded_copies(arg);
	EXPECT(child_run(bounce_after_fork, arg) == 0);
	guarded_copies(arg);
	close(fd); /* by somebody: the slow way does it */
	guarded_copies(arg);
	xtal_os_bounce_close();
	guarded_copies(arg);
}

static void bounced(void **state)
{
	(void)state;
	assert_int_equal(child_run(bounce_copies, NULL), 0);
}

/* Wherever in its page either side begins: neither misses a byte nor adds one. */
static void bounced_from_any_place(void **state)
{
	static const size_t lengths[] = { 63, 64, 5000, 16383, 16384, 16385, 40000 };
	static const size_t places[] = { 0, 1, 16, 31, 32, 63, 64, 65, 100, 4080, 4095 };
	const size_t size = 12 * 4096, count = sizeof(places) / sizeof(places[0]);
	char *from = aligned_alloc(4096, size), *to = aligned_alloc(4096, size);
	int fd;

	(void)state;
	assert_int_equal(xtal_os_bounce_open(&fd), 0);
	for (size_t i = 0; i < size; i++)
		from[i] = (char)(i * 13 + i / 255);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) * count * count * 2; i++) {
		size_t len = lengths[i / 2 / count / count];
		char *dst = to + places[i / 2 / count % count], *src = from + places[i / 2 % count];

		memset(to, 0, size);
		assert_int_equal((i % 2 ? xtal_os_guarded_put : xtal_os_guarded_get)(dst, src, len),
				 0);
		assert_memory_equal(dst, src, len);
		assert_true(dst == to || dst[-1] == 0);
		assert_int_equal(dst[len], 0);
	}
	xtal_os_bounce_close();
	close(fd);
	free(from);
	free(to);
}

/* Two threads at once: each has its own bytes. */
static void *bounce_much(void *arg)
{
	uint64_t from = (uintptr_t)arg, to = 0;

	for (int i = 0; i < 20000; i++) {
		from += 2;
		if (xtal_os_guarded_put(&to, &from, 8) || to != from ||
		    xtal_os_guarded_get(&to, &from, 8) || to != from)
			return (void *)1;
	}
	return NULL;
}

static void bounced_by_two(void **state)
{
	pthread_t other;
	void *result;
	int fd;

	(void)state;
	assert_int_equal(xtal_os_bounce_open(&fd), 0);
	assert_int_equal(pthread_create(&other, NULL, bounce_much, (void *)1), 0);
	assert_null(bounce_much((void *)2));
	assert_int_equal(pthread_join(other, &result), 0);
	assert_null(result);
	xtal_os_bounce_close();
	close(fd);
}

static void guarded_after_fork(void **state)
{
	int word = 0, one = 1;

	(void)state;
	assert_int_equal(xtal_os_guarded_copy(&word, &one, sizeof(one)), 0);
	assert_int_equal(child_run(copy_in_child, &word), 0);
	assert_int_equal(word, 1);
}

static void guarded_in_a_storm(void **state)
{
	char *from = malloc(3u << 20), *to = calloc(1, 3u << 20);

	(void)state;
	memset(from, 's', 3u << 20);
	storm_start();
	for (int i = 0; i < 100; i++)
		assert_int_equal(xtal_os_guarded_copy(to, from, 3u << 20), 0);
	storm_stop();
	assert_memory_equal(from, to, 3u << 20);
	free(from);
	free(to);
}

static void *add_to(void *arg)
{
	for (int i = 0; i < 20000; i++)
		atomic_fetch_add((atomic_uint *)arg, 1);
	return NULL;
}

static void probe_write(void **state)
{
	char *area = make_area();
	atomic_uint *word = (atomic_uint *)(void *)area;
	pthread_t adder;

	(void)state;
	assert_int_equal(xtal_os_probe_write(area), 0);
	assert_int_equal(xtal_os_probe_write_now(area), 0);
	assert_int_equal(xtal_os_probe_write_now(area + HOLE * page), -EFAULT);
	assert_int_equal(area[0], 'i');
	assert_int_equal(xtal_os_probe_write(area + HOLE * page), -EFAULT);
	assert_int_equal(xtal_os_probe_write(area + HOLE * page - 4), 0);
	assert_int_equal(xtal_os_probe_write(area + READ_ONLY * page), -EFAULT);
	assert_int_equal(xtal_os_probe_write(area + READ_ONLY * page + page - 4), -EFAULT);
	assert_int_equal(xtal_os_probe_write(area + NO_ACCESS * page), -EFAULT);
	assert_int_equal(xtal_os_probe_write(NULL), -EFAULT);
	assert_int_equal(xtal_os_probe_write((void *)(UINTPTR_MAX - 7)), -EFAULT);
	/* It is atomic with what the program does to the word. */
	atomic_store(word, 0);
	assert_int_equal(pthread_create(&adder, NULL, add_to, word), 0);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(xtal_os_probe_write(word), 0);
	pthread_join(adder, NULL);
	assert_int_equal(atomic_load(word), 20000);
	drop_area(area);
}

static void probe_access(void **state)
{
	char *area = make_area(), *hole = area + HOLE * page;
	void *big;

	(void)state;
	assert_int_equal(xtal_os_probe_access(area, HOLE * page, false), 0);
	assert_int_equal(xtal_os_probe_access(area + 1, HOLE * page, false), -EFAULT);
	assert_int_equal(xtal_os_probe_access(hole - 1, 1, false), 0);
	assert_int_equal(xtal_os_probe_access(hole - 1, 2, false), -EFAULT);
	if (!emulated()) /* qemu-user denies mincore on what cannot be written */
		assert_int_equal(xtal_os_probe_access(area + READ_ONLY * page, page, false), 0);
	assert_int_equal(xtal_os_probe_access(area + READ_ONLY * page, page, true), -EFAULT);
	assert_int_equal(xtal_os_probe_access(area + NO_ACCESS * page, page, false), -EFAULT);
	assert_int_equal(xtal_os_probe_access(area + 3, HOLE * page - 3, true), 0);
	assert_int_equal(xtal_os_probe_access(hole, 0, false), 0);
	assert_int_equal(xtal_os_probe_access(NULL, 1, false), -EFAULT);
	assert_int_equal(xtal_os_probe_access((void *)(UINTPTR_MAX - 1), 1, false), -EFAULT);
	assert_int_equal(xtal_os_probe_access(area, SIZE_MAX, false), -EFAULT);
	assert_int_equal(xtal_os_map_private(3000 * page, &big), 0); /* more than one call */
	assert_int_equal(xtal_os_probe_access(big, 3000 * page, false), 0);
	munmap((char *)big + 2999 * page, page);
	assert_int_equal(xtal_os_probe_access(big, 3000 * page, false), -EFAULT);
	assert_int_equal(xtal_os_probe_access(big, 2999 * page, false), 0);
	munmap(big, 2999 * page);
	drop_area(area);
}

/* A child that sleeps until it is killed, with the same addresses as we have. */
static pid_t sleeping_twin(void)
{
	pid_t pid = fork();

	while (pid == 0)
		pause();
	return pid;
}

static bool no_process_vm(void)
{
	struct xtal_os_iov none = { 0 };

	return xtal_os_peer_write(getpid(), &none, 1, &none, 1) == -ENOSYS;
}

static void peer_copies(pid_t pid, char *area)
{
	struct xtal_os_iov mine[2], theirs[2];
	char out[12] = "hello world", in[12] = "";

	mine[0] = (struct xtal_os_iov){ out, 5 };
	mine[1] = (struct xtal_os_iov){ out + 5, 6 };
	theirs[0] = (struct xtal_os_iov){ area + 100, 8 };
	theirs[1] = (struct xtal_os_iov){ area + 200, 3 };
	assert_int_equal(xtal_os_peer_write(pid, mine, 2, theirs, 2), 11);
	mine[0] = (struct xtal_os_iov){ in, 11 };
	assert_int_equal(xtal_os_peer_read(pid, mine, 1, theirs, 2), 11);
	assert_string_equal(in, "hello world");
	assert_int_equal(area[100], 'i'); /* it was not our own copy of the page */

	theirs[1].len = 0; /* revoked */
	assert_int_equal(xtal_os_peer_read(pid, mine, 1, theirs, 2), 8);
	theirs[0] = (struct xtal_os_iov){ area + HOLE * page, 8 };
	assert_int_equal(xtal_os_peer_write(pid, mine, 1, theirs, 1), -EFAULT);
	assert_int_equal(xtal_os_peer_read(pid, mine, 1, theirs, 1), -EFAULT);
	theirs[0].base = area + READ_ONLY * page;
	assert_int_equal(xtal_os_peer_write(pid, mine, 1, theirs, 1), -EFAULT);
	theirs[0].base = area;
	mine[0].base = area + HOLE * page;
	assert_int_equal(xtal_os_peer_write(pid, mine, 1, theirs, 1), -EFAULT);
	assert_int_equal(xtal_os_peer_write(pid, mine, 9, theirs, 1), -EINVAL);
	assert_int_equal(xtal_os_peer_read(pid, mine, 1, theirs, 9), -EINVAL);
}

static void peer(void **state)
{
	struct xtal_os_iov any[1] = { { &page, 8 } };
	void *map;
	pid_t pid;
	char *area;

	(void)state;
	if (no_process_vm())
		skip(); /* qemu-user has no process_vm_* */
	/* Not xtal_os_map_private: the twin needs it too. */
	map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area = map;
	memset(area, 'i', PAGES * page);
	munmap(area + HOLE * page, page);
	mprotect(area + READ_ONLY * page, page, PROT_READ);
	pid = sleeping_twin();
	assert_true(pid > 0);
	peer_copies(pid, area);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(xtal_os_peer_write(pid, any, 1, any, 1), -ESRCH);
	drop_area(area);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guarded),
		cmocka_unit_test(guarded_without_process_vm),
		cmocka_unit_test(checked),
		cmocka_unit_test(bounced),
		cmocka_unit_test(bounced_from_any_place),
		cmocka_unit_test(bounced_by_two),
		cmocka_unit_test(guarded_after_fork),
		cmocka_unit_test(guarded_in_a_storm),
		cmocka_unit_test(probe_write),
		cmocka_unit_test(probe_access),
		cmocka_unit_test(peer),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
