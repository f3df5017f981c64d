/* SPDX-License-Identifier: MIT */
/*
 * Adoption where something is short or in its way: address space, mappings, memory of a cgroup, calls
 * that fail, pages of a special kind. It is refused with the reason, or undone all the same; the
 * memory is as it was, in content, protection and number of mappings.
 */
/* ctest: timeout=120 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define PAGE     ((size_t)sysconf(_SC_PAGESIZE))
#define LEN      ((size_t)1 << 20)
#define CHUNK    ((size_t)64 << 10) /* what is moved at a time */
#define PATIENCE 60000u

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

static uint8_t *memory(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		proc_die("mmap: %m");
	peer_fill(p, len, 1);
	return p;
}

static void settings(void)
{
	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
}

/* The library's threads and areas are there. */
static void warm_up(void)
{
	uint8_t *p;

	settings();
	p = memory(LEN);
	if (xtal_share(p, LEN) || xtal_unshare(p, LEN))
		proc_die("adoption: %s", xtal_last_error());
	munmap(p, LEN);
}

static void expect_refused(int got, int want, const char *word)
{
	if (got != want || !strstr(xtal_last_error(), word))
		proc_die("%d, not %d with '%s': %s", got, want, word, xtal_last_error());
}

static void expect_done(int got, const char *what)
{
	if (got)
		proc_die("%s: %s", what, xtal_last_error());
}

static void expect_content(const uint8_t *p, size_t len)
{
	if (!peer_holds(p, len, 1))
		proc_die("the content has changed");
}

/* Mappings of this process; rights: of the one that holds at, if any. */
static unsigned mappings(const void *at, char rights[5])
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	unsigned n = 0;
	char line[512], r[5];

	for (; f && fgets(line, sizeof(line), f); n++)
		if (sscanf(line, "%llx-%llx %4s", &start, &end, r) == 3 && rights &&
		    (uintptr_t)at >= start && (uintptr_t)at < end)
			memcpy(rights, r, 5);
	if (f)
		fclose(f);
	return n;
}

/* ---- what must survive ---- */

static int protections(void *arg)
{
	static const struct {
		size_t at;
		int prot;
		const char *rights;
	} parts[] = { { 3, PROT_READ, "r--p" },
		      { 40, PROT_NONE, "---p" },
		      { 80, PROT_READ | PROT_WRITE, "rw-p" } };
	char rights[5] = "";
	uint8_t *p;

	(void)arg;
	warm_up();
	p = memory(LEN);
	expect_done(xtal_share(p, LEN), "share");
	for (unsigned i = 0; i < 3; i++)
		mprotect(p + parts[i].at * PAGE, 2 * PAGE, parts[i].prot);
	expect_done(xtal_unshare(p, LEN), "unshare");
	for (unsigned i = 0; i < 3; i++) {
		mappings(p + parts[i].at * PAGE, rights);
		if (strcmp(rights, parts[i].rights) != 0)
			proc_die("page %zu is %s, not %s", parts[i].at, rights, parts[i].rights);
	}
	mprotect(p, LEN, PROT_READ | PROT_WRITE);
	expect_content(p, LEN);
	return 0;
}

static int pieces(void *arg)
{
	/* Of 64 chunks. The thread sanitizer's shadow of what is unmapped as a whole counts, too. */
	unsigned before, more = proc_sanitized("thread") ? 8 : 3;
	uint8_t *p;

	(void)arg;
	warm_up();
	p = memory(4 * LEN);
	before = mappings(NULL, NULL);
	for (unsigned i = 0; i < 3; i++) {
		expect_done(xtal_share(p, 4 * LEN), "share");
		expect_done(xtal_unshare(p, 4 * LEN), "unshare");
	}
	if (mappings(NULL, NULL) > before + more)
		proc_die("%u mappings have become %u", before, mappings(NULL, NULL));
	expect_content(p, 4 * LEN);
	return 0;
}

/* ---- limits ---- */

static unsigned long long status_kib(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoull(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

static int address_space(void *arg)
{
	struct rlimit limit;
	uint8_t *p, *q;

	(void)arg;
	warm_up();
	p = memory(LEN);
	q = memory(4 * LEN);
	expect_done(xtal_share(p, LEN), "share");
	xtal_share(NULL, 0); /* the sentence has its memory */
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = status_kib("VmSize:") << 10;
	if (setrlimit(RLIMIT_AS, &limit))
		proc_die("setrlimit: %m");
	expect_refused(xtal_share(q, 4 * LEN), -ENOMEM, "RLIMIT_AS");
	expect_content(q, 4 * LEN);
	expect_done(xtal_unshare(p, LEN), "unshare");
	expect_content(p, LEN);
	return 0;
}

static int mapping_count(void *arg)
{
	uint8_t *p, *q, *many;
	size_t n = 0;
	int status = 0;
	pid_t child;

	(void)arg;
	warm_up();
	p = memory(LEN);
	q = memory(LEN);
	expect_done(xtal_share(p, LEN), "share");
	many = mmap(NULL, 140000 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	while (n < 70000 && !mprotect(many + 2 * n * PAGE, PAGE, PROT_READ))
		n++;
	if (n == 70000)
		return 77;
	expect_refused(xtal_share(q, LEN), -ENOMEM, "vm.max_map_count");
	expect_content(q, LEN);
	child = fork();
	if (!child) {
		proc_sleep_us(20000);
		_exit(!peer_holds(p, LEN, 1));
	}
	memset(p, 0, LEN);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		proc_die("the child sees what the parent did since: %x", status);
	return 0;
}

/* ---- a memory cgroup ---- */

struct group {
	char folder[200];
	bool v2;
};

static bool put(const struct group *g, const char *file, const char *format, unsigned long long n)
{
	char path[300];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", g->folder, file);
	f = fopen(path, "we");
	ok = f && fprintf(f, format, n) > 0;
	return (!f || fclose(f) == 0) && ok;
}

static unsigned long long get(const struct group *g, const char *file)
{
	unsigned long long n = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", g->folder, file);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* False: this machine does not let us have one. */
static bool make_group(struct group *g)
{
	static const char *const bases[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };

	for (unsigned i = 0; i < 2; i++) {
		g->v2 = i == 1;
		snprintf(g->folder, sizeof(g->folder), "%s/xtal-test-%d", bases[i], getpid());
		if (mkdir(g->folder, 0755))
			continue;
		if (put(g, g->v2 ? "memory.max" : "memory.limit_in_bytes", "%llu",
			(unsigned long long)1 << 30))
			return true;
		rmdir(g->folder);
	}
	return false;
}

/* Sixteen MiB move while the group may grow by half a one: never is more than a chunk there twice. */
static int in_group(void *arg)
{
	const struct group *g = arg;
	size_t len = 16 * LEN;
	unsigned long long now;
	uint8_t *p;

	if (!put(g, "cgroup.procs", "%llu", (unsigned long long)getpid()))
		return 77;
	warm_up();
	p = memory(len);
	now = get(g, g->v2 ? "memory.current" : "memory.usage_in_bytes");
	if (!put(g, g->v2 ? "memory.max" : "memory.limit_in_bytes", "%llu", now + LEN / 2))
		return 77;
	for (unsigned i = 0; i < 3; i++) {
		expect_done(xtal_share(p, len), "share");
		expect_content(p, len);
		expect_done(xtal_unshare(p, len), "unshare");
		expect_content(p, len);
	}
	return 0;
}

/* ---- what cannot be moved ---- */

static int guard_pages(void *arg)
{
	uint8_t *p;

	(void)arg;
	warm_up();
	p = memory(LEN);
	if (madvise(p + 20 * PAGE, PAGE, MADV_GUARD_INSTALL))
		return 77;
	/* The kernel tells of them in VmFlags, or moves all but them. */
	if (!xtal_share(p, LEN) ||
	    !(strstr(xtal_last_error(), "'gu'") || strstr(xtal_last_error(), "guard pages")))
		proc_die("guard pages: %s", xtal_last_error());
	expect_content(p, 20 * PAGE);
	return 0;
}

static int no_mremap(void *arg)
{
	uint8_t *p;

	(void)arg;
	settings();
	p = memory(LEN);
	if (!child_deny(SYS_mremap, ENOMEM, -1, 0))
		return 77;
	expect_refused(xtal_share(p, LEN), -ENOMEM, "vm.max_map_count");
	expect_content(p, LEN);
	memset(p, 2, LEN);
	return 0;
}

/* A kernel without UFFDIO_MOVE (it says so itself), and one that permits no userfaultfd: not even on
 * request, and in words. */
static int lacking(void *arg)
{
	const char *what = arg;
	bool move = strcmp(what, "UFFDIO_MOVE") == 0;
	char text[200];
	uint8_t *p;

	settings();
	p = memory(LEN);
	if (move ? !child_deny(SYS_ioctl, EINVAL, 1, 0xc028aa05)
		 : !(child_deny(SYS_ioctl, EPERM, 1, 0xaa00) &&
		     child_deny(SYS_userfaultfd, EPERM, -1, 0)))
		return 77;
	if (xtal_adoption_query(text, sizeof(text)) != XTAL_ADOPTION_NONE || !strstr(text, what))
		proc_die("the machine: %s", text);
	expect_refused(xtal_share(p, LEN), -ENOSYS, what);
	expect_content(p, LEN);
	return 0;
}

static bool pin(void *at, size_t len)
{
	struct io_uring_params params = { 0 };
	struct iovec buffer = { .iov_base = at, .iov_len = len };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);

	return ring >= 0 &&
	       !syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1);
}

/* The last page is pinned, and there is no way back for those before: they stay shared, all goes
 * on, and none of the program's own files is taken for the object. */
static int no_way_back(void *arg)
{
	char name[] = "adopt-XXXXXX";
	uint8_t *p;
	int fds[8];
	struct stat st;

	(void)arg;
	settings();
	p = memory(LEN);
	/* Mappings of four chunks, or of one, are for the way back only. */
	if (!pin(p + LEN - PAGE, PAGE) || !child_deny(SYS_mmap, ENOMEM, 1, 4 * CHUNK) ||
	    !child_deny(SYS_mmap, ENOMEM, 1, CHUNK))
		return 77;
	expect_refused(xtal_share(p, LEN), -ENOTRECOVERABLE, "cannot be made private");
	for (unsigned i = 0; i < 8; i++) { /* numbers that were closed are used again */
		strcpy(name, "adopt-XXXXXX");
		fds[i] = mkstemp(name);
		unlink(name);
		if (fds[i] < 0 || write(fds[i], p, 4 * PAGE) != (ssize_t)(4 * PAGE))
			proc_die("a file: %m");
	}
	expect_content(p, LEN);
	madvise(p, 2 * PAGE, MADV_DONTNEED);
	if (p[0] || p[2 * PAGE - 1])
		proc_die("what was dropped is still there");
	for (unsigned i = 0; i < 8; i++)
		if (fstat(fds[i], &st) || st.st_blocks * 512 < (long)(4 * PAGE))
			proc_die("a file of the program has lost its content");
	return 0;
}

/* Pinned after it was adopted: it stays as it is even when the program unmaps another part. */
static int pinned_later(void *arg)
{
	char rights[5] = "";
	uint8_t *p;

	(void)arg;
	warm_up();
	p = memory(LEN);
	expect_done(xtal_share(p, LEN), "share");
	if (!pin(p, PAGE))
		return 77;
	expect_refused(xtal_unshare(p, LEN), -EBUSY, "VmPin");
	munmap(p + LEN - PAGE, PAGE);
	for (unsigned i = 0; i < 100; i++) /* the mover hears of it, and leaves it */
		proc_sleep_us(1000);
	mappings(p, rights);
	if (strcmp(rights, "rw-s") != 0)
		proc_die("pinned pages were exchanged: %s", rights);
	expect_content(p, LEN - PAGE);
	return 0;
}

static void run(int (*body)(void *), void *arg, const char *needs)
{
	char text[200];
	int status;

	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	status = proc_run(body, arg, PATIENCE);
	if (status == 77 << 8)
		proc_skip("%s cannot be had here", needs);
	assert_int_equal(status, 0);
}

static void protections_survive(void **state)
{
	(void)state;
	run(protections, NULL, "");
}

static void one_mapping_stays_one(void **state)
{
	(void)state;
	run(pieces, NULL, "");
}

static void at_the_limit_of_address_space(void **state)
{
	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer needs its address space");
	run(address_space, NULL, "");
}

static void at_the_limit_of_mappings(void **state)
{
	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer maps memory of its own");
	run(mapping_count, NULL, "a limit of less than 70000 mappings");
}

static void in_a_memory_cgroup(void **state)
{
	struct group g;

	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer takes memory of its own");
	if (!make_group(&g))
		proc_skip("no memory cgroup can be had here");
	run(in_group, &g, "a memory cgroup");
	rmdir(g.folder);
}

static void guard_pages_are_refused(void **state)
{
	(void)state;
	run(guard_pages, NULL, "MADV_GUARD_INSTALL");
}

static void a_mapping_that_cannot_be_moved(void **state)
{
	(void)state;
	run(no_mremap, NULL, "a seccomp filter");
}

static void what_the_kernel_lacks(void **state)
{
	(void)state;
	run(lacking, "UFFDIO_MOVE", "a seccomp filter");
	run(lacking, "userfaultfd", "a seccomp filter");
}

static void no_way_back_for_a_part(void **state)
{
	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer maps memory of its own");
	run(no_way_back, NULL, "io_uring with seccomp");
}

static void pinned_when_a_part_goes(void **state)
{
	(void)state;
	run(pinned_later, NULL, "io_uring");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(protections_survive, proc_end_all),
		cmocka_unit_test_teardown(one_mapping_stays_one, proc_end_all),
		cmocka_unit_test_teardown(at_the_limit_of_address_space, proc_end_all),
		cmocka_unit_test_teardown(at_the_limit_of_mappings, proc_end_all),
		cmocka_unit_test_teardown(in_a_memory_cgroup, proc_end_all),
		cmocka_unit_test_teardown(guard_pages_are_refused, proc_end_all),
		cmocka_unit_test_teardown(a_mapping_that_cannot_be_moved, proc_end_all),
		cmocka_unit_test_teardown(what_the_kernel_lacks, proc_end_all),
		cmocka_unit_test_teardown(no_way_back_for_a_part, proc_end_all),
		cmocka_unit_test_teardown(pinned_when_a_part_goes, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("an emulator has no userfaultfd");
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
