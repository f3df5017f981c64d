/* SPDX-License-Identifier: MIT */
/*
 * What programs do wrong, on the whole library: bad addresses, wrong secrets, objects freed in
 * the wrong order or used in a child. Each gets the status or the refusal that is promised,
 * nothing is written at the target, and the queue works afterwards; over every path.
 *
 * ctest: timeout=300
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cdma_u_lib.h"
#include "lib/proc.h"
#include "xtal.h"

#define LOOPBACK 0x7f000001u
#define NOBODY   0xcb007101u /* 203.0.113.1: an address that no host has */
#define SITE_EID 2u          /* stands for LOOPBACK: main() sets so */
#define SIZE     ((size_t)65536)
#define SECRET   0x1234u
#define SOON_MS  20000

static struct {
	struct dma_device *list;
	uint32_t count;
	struct dma_context *ctx, *owner;
	struct dma_queue *queue;
	struct dma_seg *local, *remote;
	unsigned char *source, *destination;
} p;

static struct dma_seg *segment(struct dma_context *ctx, void *addr, size_t len, uint32_t token)
{
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)addr,
				   .len = len,
				   .token_value = token,
				   .token_value_valid = token != 0 };

	return dma_register_seg(ctx, &cfg);
}

static const char *path; /* all operations take this one */

static void *pages(size_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static unsigned char *target_pages(size_t len)
{
	return strcmp(path, "map") == 0 ? xtal_alloc(len) : pages(len);
}

static void free_target(void *memory, size_t len)
{
	if (strcmp(path, "map") == 0)
		xtal_free(memory);
	else
		munmap(memory, len);
}

static int set_up(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 8, .rmt_eid.dw0 = LOOPBACK, .event_mode = true };

	(void)state;
	p.list = dma_get_device_list(&p.count);
	p.ctx = dma_create_context(p.list);
	p.owner = dma_create_context(p.list);
	p.queue = dma_alloc_queue(p.ctx, &cfg);
	p.source = pages(SIZE);
	p.destination = target_pages(SIZE);
	memset(p.source, 1, SIZE);
	p.local = segment(p.ctx, p.source, SIZE, 0);
	p.remote = segment(p.owner, p.destination, SIZE, SECRET);
	return p.queue && p.local && p.remote ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	dma_free_queue(p.queue);
	dma_unregister_seg(p.ctx, p.local);
	dma_unregister_seg(p.owner, p.remote);
	dma_delete_context(p.ctx);
	dma_delete_context(p.owner);
	dma_free_device_list(p.list, p.count);
	munmap(p.source, SIZE);
	free_target(p.destination, SIZE);
	return 0;
}

/* The status of the operation just posted. */
static int ending(dma_status posted)
{
	struct dma_cr cr = { .status = DMA_CR_WR_UNHANDLED };

	assert_int_equal(posted, DMA_STATUS_OK);
	assert_int_equal(dma_wait_queue(p.queue, 1, SOON_MS, &cr), 1);
	if (cr.status != DMA_CR_SUCCESS)
		assert_int_equal(cr.completion_len, 0);
	return (int)cr.status;
}

/* Nothing arrived, and a good write does. */
static void assert_unharmed(void)
{
	struct dma_seg one = *p.local;

	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(p.destination[i], 0);
	one.len = 1;
	assert_int_equal(ending(dma_write(p.queue, p.remote, &one)), DMA_CR_SUCCESS);
	assert_int_equal(p.destination[0], 1);
	p.destination[0] = 0;
}

static void a_wrong_secret_is_an_access_error(void **state)
{
	struct dma_seg wrong = *p.remote;

	(void)state;
	wrong.token_value++;
	assert_int_equal(ending(dma_write(p.queue, &wrong, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	wrong.token_value_valid = false;
	assert_int_equal(ending(dma_write(p.queue, &wrong, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_unharmed();
}

static void a_range_must_lie_in_the_segment(void **state)
{
	const uint64_t end = p.remote->sva + SIZE;
	const struct {
		uint64_t sva, len;
	} rows[] = {
		{ p.remote->sva, SIZE + 1 },
		{ p.remote->sva + 1, SIZE },
		{ end - 7, 8 },
		{ p.remote->sva - 1, 8 },
		{ end, 1 },
		{ UINT64_MAX - 3, 8 },
		{ 1, 1 },
	};
	struct dma_seg *wide = segment(p.ctx, p.source, SIZE + 1, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dma_seg remote = *p.remote, local = *p.local;

		remote.sva = rows[i].sva;
		local.len = rows[i].len;
		assert_int_equal(ending(dma_write(p.queue, &remote, &local)),
				 DMA_CR_REM_ACCESS_ABORT_ERR);
	}
	dma_unregister_seg(p.ctx, wide);
	assert_unharmed();
}

static void a_stale_tid_is_told_from_an_absent_one(void **state)
{
	struct dma_seg remote = *p.remote;

	(void)state;
	/* The port is held, by another incarnation; those are 1 to 15. */
	remote.tid = (remote.tid & 0xffff) | ((remote.tid >> 16) % 15 + 1) << 16;
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	do /* a port that neither context has; others' may exist on this host */
		remote.tid = (remote.tid & ~0xffffu) | (((remote.tid & 0xffffu) + 7919) & 0xffffu);
	while ((remote.tid & 0xffff) == (p.ctx->tid & 0xffff) || (remote.tid & 0xffff) == 0);
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_ACK_TIMEOUT_ERR);
	remote.tid = 0; /* with a token: nobody's */
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_unharmed();
}

/* As programs do that follow the manual's example to the letter. */
static void without_tid_and_token_the_own_memory_is_meant(void **state)
{
	struct dma_seg *own = segment(p.ctx, p.destination, SIZE, 0);
	struct dma_seg remote = { .sva = own->sva, .len = SIZE };

	(void)state;
	p.queue->cfg.rmt_eid.dw0 = SITE_EID;
	assert_int_equal(ending(dma_write(p.queue, p.remote, p.local)), DMA_CR_SUCCESS);
	memset(p.destination, 0, SIZE);
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_SUCCESS);
	assert_memory_equal(p.destination, p.source, SIZE);
	memset(p.destination, 0, SIZE);
	dma_unregister_seg(p.ctx, own);
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK;
	assert_unharmed();
}

static void an_unknown_eid_is_unreachable(void **state)
{
	(void)state;
	p.queue->cfg.rmt_eid.dw0 = NOBODY;
	assert_int_equal(ending(dma_write(p.queue, p.remote, p.local)), DMA_CR_ACK_TIMEOUT_ERR);
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK;
	assert_unharmed();
}

static void local_memory_must_be_registered(void **state)
{
	struct dma_seg local = { .sva = (uintptr_t)&local, .len = 8 };
	struct dma_seg theirs = *p.remote; /* registered, but with another context */

	(void)state;
	assert_int_equal(ending(dma_write(p.queue, p.remote, &local)), DMA_CR_LOC_ACCESS_ERR);
	assert_int_equal(ending(dma_read(p.queue, p.remote, &local)), DMA_CR_LOC_ACCESS_ERR);
	assert_int_equal(ending(dma_write(p.queue, p.remote, &theirs)), DMA_CR_LOC_ACCESS_ERR);
	local.sva = p.local->sva + SIZE - 4;
	assert_int_equal(ending(dma_write(p.queue, p.remote, &local)), DMA_CR_LOC_ACCESS_ERR);
	local.sva = UINT64_MAX - 3;
	assert_int_equal(ending(dma_write(p.queue, p.remote, &local)), DMA_CR_LOC_ACCESS_ERR);
	assert_unharmed();
}

static void atomics_must_be_aligned(void **state)
{
	uint64_t value[2] = { 0, 0 };

	(void)state;
	for (unsigned len = 4; len <= 16; len *= 2) {
		struct dma_seg remote = *p.remote, local = *p.local;

		remote.sva += len / 2;
		local.len = len;
		assert_int_equal(
			ending(dma_cas(p.queue, &remote, &local, len == 16 ? (uintptr_t)value : 0,
				       len == 16 ? (uintptr_t)value : 1)),
			DMA_CR_REM_UNSUPPORTED_REQ_ERR);
		if (len == 16)
			continue;
		assert_int_equal(ending(dma_faa(p.queue, &remote, &local, 1)),
				 DMA_CR_REM_UNSUPPORTED_REQ_ERR);
	}
	assert_unharmed();
}

static void a_bad_notify_place_spoils_the_data_too(void **state)
{
	struct dma_seg bad = *p.remote, good = *p.remote;

	(void)state;
	good.sva += 8;
	bad.sva += SIZE - 7;
	assert_int_equal(ending(dma_write_with_notify(p.queue, p.remote, p.local, &bad, 1)),
			 DMA_CR_REM_ACCESS_ABORT_ERR);
	bad = *p.remote;
	bad.token_value++;
	assert_int_equal(ending(dma_write_with_notify(p.queue, p.remote, p.local, &bad, 1)),
			 DMA_CR_REM_ACCESS_ABORT_ERR);
	bad.sva = 0;
	assert_int_equal(ending(dma_write_with_notify(p.queue, p.remote, p.local, &bad, 1)),
			 DMA_CR_REM_ACCESS_ABORT_ERR);
	bad = *p.remote;
	bad.sva += SIZE;
	assert_int_equal(ending(dma_write_with_notify(p.queue, &bad, p.local, &good, 1)),
			 DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_unharmed();
}

static void capacity_is_the_depth(void **state)
{
	struct dma_seg one = *p.local;
	struct dma_cr cr[8];

	(void)state;
	one.len = 8;
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(i % 2 ? dma_write(p.queue, p.remote, &one)
					       : dma_faa(p.queue, p.remote, &one, 0),
					 DMA_STATUS_OK);
		assert_int_equal(dma_write(p.queue, p.remote, &one), DMA_STATUS_INVAL);
		assert_non_null(strstr(xtal_last_error(), "full, 8 operations"));
		for (int taken = 0; taken < 8;) {
			int got = dma_wait_queue(p.queue, 8, SOON_MS, cr);

			assert_true(got > 0);
			taken += got;
		}
		assert_int_equal(dma_poll_queue(p.queue, 1, cr), 0);
	}
}

static bool mapped(void *addr)
{
	unsigned char resident;

	return mincore(addr, 1, &resident) == 0;
}

/* Where the kernel moves the bytes, or the agent does; elsewhere it is like a bad memcpy. */
static void unmapped_memory_is_an_error(void **state)
{
	void *gone = pages(SIZE);
	struct dma_seg *local = segment(p.ctx, gone, SIZE, 0), part;
	struct dma_seg *remote = segment(p.owner, gone, SIZE, 0);

	(void)state;
	if (strcmp(path, "self") == 0 || strcmp(path, "map") == 0) {
		dma_unregister_seg(p.ctx, local);
		dma_unregister_seg(p.owner, remote);
		munmap(gone, SIZE);
		printf("SKIP: over %s the program's own loads and stores touch the memory\n", path);
		skip();
	}
	/* Links are made first, so that none of their mappings lands where the memory was. */
	assert_int_equal(ending(dma_write(p.queue, p.remote, local)), DMA_CR_SUCCESS);
	assert_int_equal(ending(dma_write(p.queue, remote, p.local)), DMA_CR_SUCCESS);
	munmap(gone, SIZE);
	for (size_t len = 8; len <= SIZE && !mapped(gone); len *= 8) {
		part = *local;
		part.len = len;
		assert_int_equal(ending(dma_write(p.queue, p.remote, &part)),
				 DMA_CR_LOC_ACCESS_ERR);
		assert_int_equal(ending(dma_read(p.queue, p.remote, &part)), DMA_CR_LOC_ACCESS_ERR);
		part = *p.local;
		part.len = len;
		assert_int_equal(ending(dma_write(p.queue, remote, &part)),
				 DMA_CR_REM_ACCESS_ABORT_ERR);
		assert_int_equal(ending(dma_read(p.queue, remote, &part)),
				 DMA_CR_REM_ACCESS_ABORT_ERR);
		part.len = 8;
		assert_int_equal(ending(dma_faa(p.queue, remote, &part, 1)),
				 DMA_CR_REM_ACCESS_ABORT_ERR);
	}
	dma_unregister_seg(p.ctx, local);
	dma_unregister_seg(p.owner, remote);
}

static void withdrawn_memory_is_an_error(void **state)
{
	struct dma_seg *remote = segment(p.owner, p.destination, SIZE, 0), copy = *remote;
	struct dma_seg *local = segment(p.ctx, p.destination, SIZE, 0), local_copy = *local;

	(void)state;
	assert_int_equal(ending(dma_write(p.queue, &copy, p.local)), DMA_CR_SUCCESS);
	assert_int_equal(ending(dma_read(p.queue, &copy, &local_copy)), DMA_CR_SUCCESS);
	memset(p.destination, 0, SIZE);
	dma_unregister_seg(p.owner, remote);
	dma_unregister_seg(p.ctx, local);
	assert_int_equal(ending(dma_write(p.queue, &copy, p.local)), DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_int_equal(ending(dma_write(p.queue, p.remote, &local_copy)), DMA_CR_LOC_ACCESS_ERR);
	assert_unharmed();
}

static void a_deleted_context_keeps_its_children_alive(void **state)
{
	struct dma_context *ctx = dma_create_context(p.list);
	struct dma_seg *seg = segment(ctx, p.destination, SIZE, 0), remote = *seg;
	struct queue_cfg cfg = { .queue_depth = 8, .rmt_eid.dw0 = LOOPBACK, .event_mode = true };
	struct dma_queue *queue = dma_alloc_queue(ctx, &cfg), *mine = p.queue;
	struct dma_seg local = *seg;

	(void)state;
	local.sva += SIZE / 2;
	local.len = 8;
	dma_delete_context(ctx);
	assert_non_null(strstr(xtal_last_error(), "1 queues and 1 segments"));
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_SUCCESS);
	p.queue = queue;
	assert_int_equal(ending(dma_write(p.queue, p.remote, &local)), DMA_CR_SUCCESS);
	p.queue = mine;
	memset(p.destination, 0, SIZE);
	dma_unregister_seg(ctx, seg);
	dma_free_queue(queue); /* and with it the context */
	assert_int_equal(ending(dma_write(p.queue, &remote, p.local)), DMA_CR_ACK_TIMEOUT_ERR);
	assert_unharmed();
}

/* What the child of a fork does. Returns its exit status: the number of the first failure. */
static int child(void)
{
	struct queue_cfg cfg = { .queue_depth = 8, .rmt_eid.dw0 = LOOPBACK, .event_mode = true };
	struct dma_device *list;
	struct dma_cr cr;
	uint32_t count;

	if (dma_write(p.queue, p.remote, p.local) != DMA_STATUS_INVAL ||
	    dma_poll_queue(p.queue, 1, &cr) != -22 || dma_wait_queue(p.queue, 1, 0, &cr) != -22)
		return 1;
	if (segment(p.ctx, p.source, SIZE, 0) || dma_alloc_queue(p.ctx, &cfg))
		return 2;
	dma_free_queue(p.queue);
	dma_unregister_seg(p.ctx, p.local);
	dma_delete_context(p.ctx);
	dma_free_device_list(p.list, p.count);
	/* A new start, towards the parent's memory. */
	list = dma_get_device_list(&count);
	p.ctx = list && count ? dma_create_context(list) : NULL;
	if (!p.ctx)
		return 3;
	p.queue = dma_alloc_queue(p.ctx, &cfg);
	p.local = segment(p.ctx, p.source, SIZE, 0);
	if (!p.queue || !p.local)
		return 4;
	if (dma_write(p.queue, p.remote, p.local) != DMA_STATUS_OK ||
	    dma_wait_queue(p.queue, 1, SOON_MS, &cr) != 1 || cr.status != DMA_CR_SUCCESS)
		return 5;
	dma_free_queue(p.queue);
	dma_unregister_seg(p.ctx, p.local);
	dma_delete_context(p.ctx);
	dma_free_device_list(list, count);
	return 0;
}

static void a_child_leaves_its_parent_alone(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (proc_emulated())
		proc_skip("the emulator's own threads do not survive a fork");
	for (int round = 0; round < 5; round++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(child());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(p.destination[SIZE - 1], 1);
		memset(p.destination, 0, SIZE);
		assert_unharmed();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* All of it over one path; the settings are read once per process, so in a child. */
static int run(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrong_secret_is_an_access_error),
		TEST(a_range_must_lie_in_the_segment),
		TEST(a_stale_tid_is_told_from_an_absent_one),
		TEST(without_tid_and_token_the_own_memory_is_meant),
		TEST(an_unknown_eid_is_unreachable),
		TEST(local_memory_must_be_registered),
		TEST(atomics_must_be_aligned),
		TEST(a_bad_notify_place_spoils_the_data_too),
		TEST(capacity_is_the_depth),
		TEST(unmapped_memory_is_an_error),
		TEST(withdrawn_memory_is_an_error),
		TEST(a_deleted_context_keeps_its_children_alive),
		TEST(a_child_leaves_its_parent_alone),
	};

	return cmocka_run_group_tests_name(path, tests, NULL, NULL);
}

/* Whether the path works here at all (cma needs the kernel's permission). */
static bool usable(void)
{
	void *none = NULL;
	bool good;

	if (set_up(&none))
		return false;
	good = dma_write(p.queue, p.remote, p.local) == DMA_STATUS_OK &&
	       ending(DMA_STATUS_OK) == DMA_CR_SUCCESS;
	tear_down(&none);
	return good;
}

/* Settings from a file that nobody has to remove. */
static void set_site_eid(void)
{
	static const char text[] = "[eids]\n2 = 127.0.0.1\n";
	int fd = memfd_create("settings", 0);
	char name[64];

	if (fd < 0 || write(fd, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1)
		exit(1);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	setenv("XTAL_CONFIG", name, 1);
}

int main(void)
{
	static const char *const paths[] = { "self", "map", "cma", "ring" };
	int status, failures = 0;

	set_site_eid();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		fflush(stdout);
		path = paths[i];
		if (fork() == 0) {
			/* A child of the test is another process: never self. */
			setenv("XTAL_PATHS", strcmp(path, "self") == 0 ? "self,cma,ring" : path, 1);
			if (usable())
				exit(run());
			printf("SKIP: no path %s here\n", path);
			exit(strcmp(path, "cma") != 0); /* the others need no permission */
		}
		failures += wait(&status) < 0 || status != 0;
	}
	return failures != 0;
}
