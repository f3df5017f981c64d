/* SPDX-License-Identifier: MIT */
/*
 * Few descriptors, little memory: each attempt works or is refused with a reason; nothing hangs,
 * crashes, or burns the processor.
 */
/* ctest: timeout=240 serial */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)256 << 10)
#define PATIENCE 30000u

struct scene {
	struct peer_owner owner;
	unsigned fds;
	size_t space; /* RLIMIT_AS beyond what is mapped; 0: none */
	_Atomic uint32_t worked, refused;
};

static void limit(int which, rlim_t value)
{
	struct rlimit r = { .rlim_cur = value, .rlim_max = value };

	if (setrlimit(which, &r))
		proc_die("setrlimit: %m");
}

/* Ends the process as refused; the reason must be there. */
static int refused(struct scene *s, const char *what)
{
	if (!*xtal_last_error())
		proc_die("%s was refused without a reason", what);
	atomic_fetch_add(&s->refused, 1);
	return 0;
}

/* Does everything once; stops at the first refusal. */
static int try_all(struct scene *s, enum peer_path path)
{
	struct dma_seg_cfg sc = { .len = SEGMENT };
	struct queue_cfg qc = { .queue_depth = 8,
				.rmt_eid.dw0 = PEER_LOOPBACK,
				.event_mode = true };
	struct dma_seg *local, remote = peer_remote(&s->owner.export, 0, SEGMENT);
	struct dma_device *list;
	struct dma_context *ctx;
	struct dma_queue *q;
	struct dma_cr cr;
	void *memory;
	uint32_t n;

	list = dma_get_device_list(&n);
	if (!list || !n)
		return refused(s, "the device list");
	ctx = dma_create_context(&list[0]);
	if (!ctx)
		return refused(s, "the context");
	memory = path == PEER_MAP ? xtal_alloc(SEGMENT) : malloc(SEGMENT);
	if (!memory)
		return path == PEER_MAP ? refused(s, "xtal_alloc") : 0;
	sc.addr = (uintptr_t)memory;
	local = dma_register_seg(ctx, &sc);
	if (!local)
		return refused(s, "the segment");
	q = dma_alloc_queue(ctx, &qc);
	if (!q)
		return refused(s, "the queue");
	if (dma_write(q, &remote, local) != DMA_STATUS_OK)
		return refused(s, "the post");
	cr = peer_complete(q, 15000);
	if (cr.status && cr.status != DMA_CR_ACK_TIMEOUT_ERR &&
	    cr.status != DMA_CR_LOC_OPERATION_ERR)
		proc_die("status %d", cr.status);
	if (cr.status && strstr(xtal_last_error(), "nobody"))
		proc_die("the owner is there: %s", xtal_last_error());
	if (cr.status)
		atomic_fetch_add(&s->refused, 1);
	else
		atomic_fetch_add(&s->worked, 1);
	dma_wait_queue(q, 1, 1, &cr);
	dma_free_queue(q);
	dma_unregister_seg(ctx, local);
	dma_delete_context(ctx);
	dma_free_device_list(list, n);
	return 0;
}

static int with_few_fds(void *arg)
{
	struct scene *s = arg;

	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_TIMEOUT_MS", "500", 1);
	limit(RLIMIT_NOFILE, s->fds);
	return try_all(s, s->owner.path);
}

static int with_little_space(void *arg)
{
	struct scene *s = arg;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_TIMEOUT_MS", "500", 1);
	if (!f || fscanf(f, "%lu", &pages) != 1)
		proc_die("statm");
	fclose(f);
	limit(RLIMIT_AS, pages * (size_t)sysconf(_SC_PAGESIZE) + s->space);
	return try_all(s, s->owner.path);
}

static pid_t start_owner(struct scene *s, enum peer_path path)
{
	pid_t pid;

	s->owner.path = path;
	s->owner.len = SEGMENT;
	pid = proc_start(peer_owner_run, &s->owner);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	return pid;
}

static void end_owner(struct scene *s, pid_t pid)
{
	atomic_store(&s->owner.quit, 1);
	assert_int_equal(proc_join(pid, PATIENCE), 0);
}

/* Every number from none to plenty, for an initiator. */
static void few_descriptors(void **state)
{
	(void)state;
	if (proc_emulated())
		proc_skip("the emulator needs descriptors itself");
	for (unsigned path = 0; path <= PEER_CMA; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner = start_owner(s, (enum peer_path)path);

		for (s->fds = 3; s->fds < 36; s->fds++) {
			int status = proc_run(with_few_fds, s, PATIENCE);

			if (status)
				print_error("%u descriptors: wait status 0x%x\n", s->fds, status);
			assert_int_equal(status, 0);
		}
		print_message("%s: %u times refused, %u times it worked\n",
			      peer_path_name(s->owner.path), s->refused, s->worked);
		assert_true(s->refused > 0 && s->worked > 0);
		end_owner(s, owner);
	}
}

static void little_address_space(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner;

	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("sanitizers need all of the address space");
	owner = start_owner(s, PEER_MAP);
	for (s->space = 0; s->space < (size_t)24 << 20;
	     s->space += s->space < 4096 * 256 ? 65536 : (size_t)1 << 20) {
		int status = proc_run(with_little_space, s, PATIENCE);

		if (status)
			print_error("%zu bytes: wait status 0x%x\n", s->space, status);
		assert_int_equal(status, 0);
	}
	print_message("%u times refused, %u times it worked\n", s->refused, s->worked);
	end_owner(s, owner);
}

/* Programs that have opened all they need may forbid themselves more, some or all: nothing that is
 * there stops working. */
static int forbids_itself_more(void *arg)
{
	struct scene *s = arg;
	struct dma_seg *local, remote = peer_remote(&s->owner.export, 0, SEGMENT);
	struct dma_queue *first, *second;
	char *memory, *moved;
	struct dma_cr cr;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_ADOPT", "always", 1);
	setenv("XTAL_PIPELINES", "1", 1); /* another one needs a link of its own */
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	first = peer_queue(&p, 8);
	peer_expect(peer_write(first, remote, *local), "before");
	limit(RLIMIT_NOFILE, s->fds);
	second = peer_queue(&p, 8);
	peer_expect(peer_write(second, remote, *local), "a queue's first operation");
	peer_expect(
		peer_faa(second, peer_remote(&s->owner.export, 0, 8), peer_part(local, 0, 8), 1),
		"a message");
	if (dma_write(second, &remote, local) != DMA_STATUS_OK)
		proc_die("post: %s", xtal_last_error());
	if (dma_wait_queue(second, 1, 10000, &cr) != 1 || cr.status)
		proc_die("waiting");
	if (dma_wait_queue(second, 1, 20, &cr) != -14)
		proc_die("waiting in vain");
	dma_unregister_seg(p.ctx, local);
	/* Whoever is told of what the program does to adopted memory still listens. */
	moved = mremap(memory, SEGMENT, SEGMENT * 2, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED || munmap(moved, SEGMENT * 2))
		proc_die("mremap: %m");
	dma_free_queue(first);
	dma_free_queue(second);
	peer_close(&p);
	return 0;
}

static void no_more_descriptors(void **state)
{
	(void)state;
	if (proc_emulated())
		proc_skip("the emulator needs descriptors itself");
	for (unsigned path = 0; path <= PEER_CMA; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner = start_owner(s, (enum peer_path)path);

		for (s->fds = 0; s->fds < 4; s->fds++)
			assert_int_equal(proc_run(forbids_itself_more, s, PATIENCE), 0);
		end_owner(s, owner);
	}
}

/* An owner whose table is full when peers come: it must not spin, and serve when it can again. */
struct full {
	struct peer_export export;
	_Atomic uint32_t ready, fill, filled, quit;
};

static int full_owner(void *arg)
{
	struct full *f = arg;
	int last = -1, fd;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	limit(RLIMIT_NOFILE, 64);
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, &f->export);
	atomic_store(&f->ready, 1);
	if (!proc_await(&f->fill, 1, PATIENCE))
		return 1;
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	atomic_store(&f->filled, 1);
	while (atomic_load(&f->fill) < 2)
		proc_sleep_us(50000); /* almost idle: what is used is the library's */
	for (fd = last; fd > last - 20; fd--)
		close(fd);
	while (!atomic_load(&f->quit))
		proc_sleep_us(1000);
	return 0;
}

static int knock(void *arg)
{
	struct full *f = arg;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;
	int status;

	setenv("XTAL_TIMEOUT_MS", "700", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, 4096), 4096, NULL);
	q = peer_queue(&p, 4);
	status = peer_write(q, peer_remote(&f->export, 0, 4096), *local);
	return status;
}

static void an_owner_without_descriptors(void **state)
{
	struct full *f = proc_shared(sizeof(*f));
	pid_t own = proc_start(full_owner, f);
	uint64_t cpu;

	(void)state;
	assert_true(proc_await(&f->ready, 1, PATIENCE));
	atomic_store(&f->fill, 1);
	assert_true(proc_await(&f->filled, 1, PATIENCE));
	cpu = proc_cpu_ns(own);
	assert_int_equal(proc_run(knock, f, PATIENCE), DMA_CR_ACK_TIMEOUT_ERR << 8);
	cpu = proc_cpu_ns(own) - cpu;
	print_message("the owner used %.1f ms of its processor meanwhile\n", (double)cpu / 1e6);
	assert_true(cpu < 20000000);
	atomic_store(&f->fill, 2);
	proc_sleep_us(100000);
	assert_int_equal(proc_run(knock, f, PATIENCE), 0);
	atomic_store(&f->quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
}

/* F17: nothing is pinned, so 64 KiB of lockable memory are enough for a segment of 1 GiB. */
static int registers_a_gibibyte(void *arg)
{
	struct scene *s = arg;
	size_t len = (size_t)1 << 30;
	struct dma_queue *q;
	struct dma_seg *local;
	uint8_t *memory;
	struct peer p;

	limit(RLIMIT_MEMLOCK, 65536);
	peer_open(&p);
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return 77;
	local = peer_register(&p, memory, len, NULL);
	q = peer_queue(&p, 4);
	peer_fill(memory + len - SEGMENT, SEGMENT, 6);
	peer_expect(peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT),
			       peer_part(local, len - SEGMENT, SEGMENT)),
		    "write");
	return 0;
}

static void little_lockable_memory(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner = start_owner(s, PEER_CMA);

	(void)state;
	assert_int_equal(proc_run(registers_a_gibibyte, s, PATIENCE), 0);
	end_owner(s, owner);
}

/* Which of the numbers 0 to 2 the process has in use; 0: none. */
static int streams_of(pid_t pid)
{
	char name[64];

	for (int fd = 0; fd < 3; fd++) {
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", pid, fd);
		if (faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return 10 + fd;
	}
	return 0;
}

/* A program without standard streams, and an owner without any: what is written to them by mistake
 * must not get into our objects. */
static int without_streams(void *arg)
{
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local;
	pid_t owner;
	struct peer p;
	int taken;

	for (int fd = 0; fd < 3; fd++)
		close(fd);
	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_LOG_LEVEL", "fatal", 1); /* a line opens a file for a moment */
	setenv("CDMA_LOG_LEVEL", "fatal", 1);
	s->owner.len = SEGMENT;
	owner = proc_start(peer_owner_run, &s->owner);
	if (!proc_await(&s->owner.ready, 1, PATIENCE))
		return 1;
	peer_open(&p);
	local = peer_register(&p, peer_memory(s->owner.path, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 4);
	if (peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT), *local))
		return 2;
	taken = streams_of(getpid());
	if (!taken && streams_of(owner))
		taken = 10 + streams_of(owner);
	atomic_store(&s->owner.quit, 1);
	return proc_join(owner, PATIENCE) ? 3 : taken;
}

static void no_standard_streams(void **state)
{
	(void)state;
	if (proc_emulated())
		proc_skip("the emulator needs descriptors itself");
	/* Not PEER_USER: its memfd takes such a number itself. */
	for (unsigned path = PEER_MAP; path <= PEER_CMA; path += PEER_CMA - PEER_MAP) {
		struct scene *s = proc_shared(sizeof(*s));

		s->owner.path = (enum peer_path)path;
		assert_int_equal(proc_run(without_streams, s, PATIENCE), 0);
	}
}

/* F107: a /dev/shm of 1 MiB is of no concern: our objects have no place there. */
static int tiny_shm(void *arg)
{
	static char before[4096], after[4096];
	struct scene *s = arg;
	size_t len = (size_t)64 << 20;
	struct dma_queue *q;
	struct dma_seg *local;
	pid_t owner;
	struct peer p;

	if (proc_private() || mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m"))
		return 77;
	proc_leftovers(before, sizeof(before));
	s->owner.path = PEER_MAP;
	s->owner.len = len;
	owner = proc_start(peer_owner_run, &s->owner);
	if (!proc_await(&s->owner.ready, 1, PATIENCE))
		return 1;
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_MAP, len), len, NULL);
	q = peer_queue(&p, 4);
	peer_expect(peer_write(q, peer_remote(&s->owner.export, 0, len), *local), "write");
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	atomic_store(&s->owner.quit, 1);
	if (proc_join(owner, PATIENCE))
		return 1;
	proc_sleep_us(10000);
	proc_leftovers(after, sizeof(after));
	return strcmp(before, after) != 0;
}

static void a_tiny_dev_shm(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	int status = proc_run(tiny_shm, s, PATIENCE);

	(void)state;
	if (status == 77 << 8)
		proc_skip("no mount namespace");
	assert_int_equal(status, 0);
}

/* A memory cgroup of our own below ours, with a limit; false, with the reason, when we may not. */
static bool make_memory_group(char *dir, size_t size, const char *limit, const char **why)
{
	static const struct {
		const char *root, *file;
	} kinds[] = { { "/sys/fs/cgroup", "memory.max" },
		      { "/sys/fs/cgroup/memory", "memory.limit_in_bytes" } };
	char path[256];

	*why = "no memory cgroup can be made here";
	for (unsigned i = 0; i < 2; i++) {
		int fd;

		snprintf(dir, size, "%s/xtal-test-%d", kinds[i].root, (int)getpid());
		if (mkdir(dir, 0700))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, kinds[i].file);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, limit, strlen(limit)) > 0) {
			close(fd);
			return true;
		}
		if (fd >= 0)
			close(fd);
		rmdir(dir);
	}
	return false;
}

struct grouped {
	struct peer_owner owner;
	char dir[128];
	size_t first; /* bytes that are moved before the limit is met */
	_Atomic uint32_t moved;
};

/* Pages that it is the first to touch count as its own, wherever they are mapped. */
static int reads_a_segment(void *arg)
{
	struct scene *s = arg;
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;

	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 4);
	peer_expect(peer_read(q, peer_remote(&s->owner.export, 0, SEGMENT), *local), "read");
	return 0;
}

static int fills_a_peers_memory(void *arg)
{
	struct grouped *g = arg;
	char path[160];
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", g->dir);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f))
		return 77;
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, (size_t)1 << 20), (size_t)1 << 20, NULL);
	q = peer_queue(&p, 4);
	for (size_t at = 0; at < g->owner.len; at += local->len) {
		peer_expect(peer_write(q, peer_remote(&g->owner.export, at, local->len), *local),
			    "write");
		if (at == g->first)
			atomic_store(&g->moved, 1);
	}
	return 0;
}

/* A limit on memory ends the process that meets it, and nobody else. */
static void a_memory_cgroup(void **state)
{
	struct grouped *g = proc_shared(sizeof(*g));
	struct scene *s = proc_shared(sizeof(*s));
	const char *why;
	pid_t owner;
	int status;

	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("sanitizers need more memory than the limit");
	if (!make_memory_group(g->dir, sizeof(g->dir), "67108864", &why))
		proc_skip("%s", why);
	g->owner.path = PEER_MAP;
	g->owner.len = (size_t)256 << 20;
	g->first = (size_t)16 << 20;
	owner = proc_start(peer_owner_run, &g->owner);
	assert_true(proc_await(&g->owner.ready, 1, PATIENCE));
	status = proc_run(fills_a_peers_memory, g, PATIENCE);
	for (unsigned i = 0; i < 100 && rmdir(g->dir); i++)
		proc_sleep_us(10000);
	if (status == 77 << 8)
		proc_skip("the memory cgroup takes no process");
	assert_int_equal(atomic_load(&g->moved), 1); /* within the limit all is well */
	print_message("%s\n", status ? "the limit ended it" : "it was swapped out instead");
	assert_true(status == SIGKILL || status == 0);
	/* The owner lives, and serves the next one. */
	s->owner.export = g->owner.export;
	s->owner.export.len = SEGMENT;
	assert_int_equal(proc_run(reads_a_segment, s, PATIENCE), 0);
	atomic_store(&g->owner.quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

static int with_small_files(void *arg)
{
	struct scene *s = arg;

	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_TIMEOUT_MS", "500", 1);
	limit(RLIMIT_FSIZE, s->space);
	if (!xtal_alloc(64 << 20) && !strstr(xtal_last_error(), "RLIMIT_FSIZE"))
		proc_die("xtal_alloc is refused with %s", xtal_last_error());
	return try_all(s, s->owner.path);
}

/* RLIMIT_FSIZE counts for memory objects, too: it refuses with a reason, and no SIGXFSZ comes. */
static void small_files(void **state)
{
	(void)state;
	for (unsigned path = 0; path <= PEER_CMA; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner = start_owner(s, (enum peer_path)path);

		for (s->space = 0; s->space <= 4u << 20; s->space = s->space * 4 + 8192)
			assert_int_equal(proc_run(with_small_files, s, PATIENCE), 0);
		assert_true(s->refused > 0 && s->worked > 0);
		end_owner(s, owner);
	}
}

/* The threads of this process whose names begin so. */
static unsigned threads_named(const char *begin)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	while (dir && (e = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f))
			n += !strncmp(name, begin, strlen(begin));
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Long operations when no thread more can be had: whoever sleeps for them is served. */
static int no_threads(void *arg)
{
	const size_t len = (size_t)16 << 20;
	const char *path = arg;
	struct dma_seg *local, *remote;
	struct dma_queue *q;
	struct dma_cr cr, none;
	struct pollfd fd = { .events = POLLIN };
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_PATHS", path, 1);
	if (geteuid() == 0 && (setgid(65534) || setuid(65534))) /* root has no limit */
		return 77;
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, len), len, NULL);
	remote = peer_register(&p, peer_memory(PEER_CMA, len), len, NULL);
	q = peer_queue(&p, 4);
	limit(RLIMIT_NPROC, 1);
	for (unsigned i = 0; i < 4; i++) {
		memset((void *)(uintptr_t)local->sva, (int)i + 1, len);
		if (dma_write(q, remote, local) != DMA_STATUS_OK)
			proc_die("the post");
		if (i % 2) {
			fd.fd = xtal_queue_fd(q);
			if (poll(&fd, 1, 20000) != 1)
				proc_die("the descriptor does not tell: %s", xtal_last_error());
			if (dma_poll_queue(q, 1, &cr) != 1)
				proc_die("the descriptor tells too early");
		} else if (dma_wait_queue(q, 1, 10000, &cr) != 1) {
			proc_die("the waiter was not woken");
		}
		if (dma_poll_queue(q, 1, &none)) /* which also resets the descriptor */
			proc_die("more completions than operations");
		if (cr.status ||
		    memcmp((void *)(uintptr_t)local->sva, (void *)(uintptr_t)remote->sva, len))
			proc_die("status %d, or not all was moved", cr.status);
	}
	if (threads_named("xtal-pipe"))
		return 77;
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	dma_unregister_seg(p.ctx, remote);
	peer_close(&p);
	return 0;
}

static void no_thread_for_long_operations(void **state)
{
	int status;

	(void)state;
	if (proc_emulated())
		proc_skip("the emulator needs threads itself");
	status = proc_run(no_threads, "self", PATIENCE);
	if (status == 77 << 8)
		proc_skip("RLIMIT_NPROC has no effect here");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_standard_streams),
		cmocka_unit_test_teardown(few_descriptors, proc_end_all),
		cmocka_unit_test_teardown(no_more_descriptors, proc_end_all),
		cmocka_unit_test_teardown(little_address_space, proc_end_all),
		cmocka_unit_test_teardown(an_owner_without_descriptors, proc_end_all),
		cmocka_unit_test_teardown(little_lockable_memory, proc_end_all),
		cmocka_unit_test_teardown(a_tiny_dev_shm, proc_end_all),
		cmocka_unit_test_teardown(a_memory_cgroup, proc_end_all),
		cmocka_unit_test_teardown(small_files, proc_end_all),
		cmocka_unit_test_teardown(no_thread_for_long_operations, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
