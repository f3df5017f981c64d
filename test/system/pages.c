/* SPDX-License-Identifier: MIT */
/*
 * Huge pages of the program work like all memory, the library takes none for itself, and a
 * registration touches no page.
 */
/* ctest: timeout=120 serial */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define POOL     "/proc/sys/vm/nr_hugepages"
#define HUGE     ((size_t)2 << 20)
#define SEGMENT  (4 * HUGE)
#define BIG      ((size_t)64 << 20)
#define PATIENCE 60000u

struct scene {
	enum peer_path path;
	size_t len;
	bool huge;
	struct peer_export export;
	_Atomic uint32_t ready, quit;
};

static long pool_before = -1; /* pages in the system's pool when the test began */

static long number_in(const char *path, const char *format)
{
	char line[128];
	long n = -1;
	FILE *f = fopen(path, "re");

	while (f && n < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, format, &n) != 1)
			n = -1;
	if (f)
		fclose(f);
	return n;
}

static long free_pages(void)
{
	return number_in("/proc/meminfo", "HugePages_Free: %ld");
}

static bool set_pool(long pages)
{
	FILE *f = fopen(POOL, "we");
	bool ok = f && fprintf(f, "%ld", pages) > 0;

	return f && fclose(f) == 0 && ok;
}

/* That many are free, and no more; skips where that cannot be had. */
static void want_free(long pages)
{
	long used;

	if (proc_emulated())
		proc_skip("huge pages are not emulated");
	if (pool_before < 0)
		pool_before = number_in(POOL, "%ld");
	used = number_in(POOL, "%ld") - free_pages();
	if (number_in("/proc/meminfo", "Hugepagesize: %ld kB") != (long)(HUGE >> 10))
		proc_skip("huge pages of another size than 2 MiB");
	if (!set_pool(used + pages))
		proc_skip("the pool of huge pages may not be changed here");
	if (free_pages() != pages)
		proc_skip("%ld huge pages wanted, %ld to be had", pages, free_pages());
}

static int end_pool(void **state)
{
	int left = proc_end_all(state);

	if (pool_before >= 0)
		set_pool(pool_before);
	pool_before = -1;
	return left;
}

static void *memory_of(const struct scene *s)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, fd = -1;
	void *p;

	if (!s->huge)
		return peer_memory(s->path, s->len);
	if (s->path == PEER_USER) {
		flags = MAP_SHARED;
		fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
		if (fd < 0 || ftruncate(fd, (off_t)s->len))
			proc_die("huge memfd: %m");
	}
	p = mmap(NULL, s->len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		proc_die("huge pages: %m");
	return p;
}

/* The child has a copy of private memory from before the traffic, and looks at it afterwards. */
static pid_t child_with_copy(struct scene *s, const uint8_t *memory)
{
	pid_t pid;

	pid = fork();
	if (pid)
		return pid;
	atomic_store(&s->ready, 1);
	if (!proc_await(&s->quit, 1, PATIENCE))
		_exit(1);
	_exit(s->path <= PEER_USER || peer_holds(memory, s->len, 7) ? 0 : 2);
}

static int owner(void *arg)
{
	struct scene *s = arg;
	uint8_t *memory;
	struct peer p;
	int status;
	pid_t pid;

	peer_owner_for(s->path);
	peer_open(&p);
	memory = memory_of(s);
	peer_fill(memory, s->len, 7);
	peer_register(&p, memory, s->len, &s->export);
	pid = child_with_copy(s, memory);
	if (waitpid(pid, &status, 0) != pid || status)
		proc_die("the child's copy changed: status 0x%x", status);
	if (!peer_holds(memory + 8, s->len - 8, 10)) /* word 0 was added to */
		proc_die("not what the peer wrote");
	return 0;
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	const size_t lens[] = { 8, 65537, s->len };
	struct dma_queue *q;
	struct dma_seg *local;
	uint8_t *memory;
	uint64_t old;
	struct peer p;

	peer_only(s->path == PEER_USER ? PEER_MAP : s->path);
	peer_open(&p);
	memory = memory_of(s);
	q = peer_queue(&p, 8);
	local = peer_register(&p, memory, s->len, NULL);
	for (unsigned i = 0; i < 3; i++) {
		size_t at = (s->len - lens[i]) / 2 / 8 * 8, len = lens[i];

		peer_fill(memory + at, len, i + 7);
		peer_expect(
			peer_write(q, peer_remote(&s->export, at, len), peer_part(local, at, len)),
			"write");
		memset(memory + at, 0, len);
		peer_expect(
			peer_read(q, peer_remote(&s->export, at, len), peer_part(local, at, len)),
			"read");
		if (!peer_holds(memory + at, len, i + 7))
			proc_die("%zu bytes came back changed", len);
	}
	memcpy(&old, memory, sizeof(old));
	peer_expect(peer_faa(q, peer_remote(&s->export, 0, 8), peer_part(local, 8, 8), 5), "FAA");
	peer_expect(peer_read(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8)), "read");
	if (memcmp(memory, &(uint64_t){ old + 5 }, 8))
		proc_die("the addition is not there");
	return 0;
}

static void exchange(struct scene *s)
{
	pid_t own;

	atomic_store(&s->ready, 0);
	atomic_store(&s->quit, 0);
	own = proc_start(owner, s);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	assert_int_equal(proc_run(initiator, s, PATIENCE), 0);
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
}

/* Both sides' memory is of huge pages; the owner forks, which keeps its child's copy apart. */
static void huge_pages_are_memory_like_any(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));

	(void)state;
	s->len = SEGMENT;
	s->huge = true;
	for (s->path = PEER_USER; s->path < PEER_PATHS; s->path++) {
		/* the owner's, its child's, the initiator's and that one's fork reserve */
		want_free(4 * (long)(SEGMENT / HUGE));
		if (s->path == PEER_CMA && proc_emulated())
			continue;
		exchange(s);
	}
	munmap(s, sizeof(*s));
}

/* With none, and with one to take: large transfers of ordinary memory work and leave it. */
static void the_library_takes_no_huge_page(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));

	(void)state;
	s->len = proc_emulated() ? BIG / 8 : BIG;
	for (long pages = 0; pages < 2; pages++) {
		want_free(pages);
		for (s->path = PEER_MAP; s->path < PEER_PATHS; s->path++) {
			if (s->path == PEER_CMA && proc_emulated())
				continue;
			exchange(s);
			assert_int_equal(free_pages(), pages);
		}
	}
	munmap(s, sizeof(*s));
}

static int shares_huge_pages(void *arg)
{
	struct scene *s = arg;
	struct peer p;
	void *memory;
	int ret;

	setenv("XTAL_ADOPT", "auto", 1);
	peer_open(&p);
	memory = memory_of(s);
	peer_fill(memory, s->len, 3);
	peer_register(&p, memory, s->len, NULL);
	ret = xtal_share(memory, s->len);
	if (!ret)
		proc_die("huge pages were adopted");
	if (!strstr(xtal_last_error(), "huge"))
		proc_die("xtal_share says only: %s", xtal_last_error());
	return peer_holds(memory, s->len, 3) ? 0 : 1;
}

static void huge_pages_are_not_adopted(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	char text[200];

	(void)state;
	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	s->len = HUGE;
	s->huge = true;
	s->path = PEER_CMA;
	want_free(1);
	assert_int_equal(proc_run(shares_huge_pages, s, PATIENCE), 0);
	munmap(s, sizeof(*s));
}

static long resident_pages(void)
{
	return number_in("/proc/self/statm", "%*d %ld");
}

/* Nothing is faulted in or pinned, so a page comes to be where its first user runs (F137). */
static int registers_untouched_memory(void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = BIG;
	struct dma_seg *seg;
	long before;
	uint8_t *p;
	struct peer me;

	(void)arg;
	peer_open(&me);
	seg = peer_register(&me, peer_memory(PEER_CMA, page), page, NULL); /* warm */
	dma_unregister_seg(me.ctx, seg);
	p = peer_memory(PEER_CMA, len);
	before = resident_pages();
	seg = peer_register(&me, p, len, NULL);
	if (resident_pages() - before > 64)
		proc_die("%ld pages came to be", resident_pages() - before);
	dma_unregister_seg(me.ctx, seg);
	if (resident_pages() - before > 64)
		proc_die("%ld pages came to be, at unregister", resident_pages() - before);
	return 0;
}

static void registering_touches_nothing(void **state)
{
	(void)state;
	assert_int_equal(proc_run(registers_untouched_memory, NULL, PATIENCE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(huge_pages_are_memory_like_any, end_pool),
		cmocka_unit_test_teardown(the_library_takes_no_huge_page, end_pool),
		cmocka_unit_test_teardown(huge_pages_are_not_adopted, end_pool),
		cmocka_unit_test_teardown(registering_touches_nothing, end_pool),
	};

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
