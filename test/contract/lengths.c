/* SPDX-License-Identifier: MIT */
/*
 * Lengths at which 32 bits, INT_MAX or the kernel's limit of 0x7ffff000 bytes per call go
 * wrong (F25, F27, F29). The memory is sparse: only what is looked at is ever filled.
 * ctest: timeout=240 label=soak serial hosts
 */
#include "lib/pair.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GIB  (1ull << 30)
#define SIZE (4 * GIB + 4096)
#define CAP  0x7ffff000ull

/* One page of memory, many times over: what is written is what can be read at any multiple. */
#define WINDOW (64ull << 20)

struct big {
	uint64_t addr;
	struct owner *owner;
	struct dma_seg *seg;
	struct dma_seg value;
	int fd;
};

/* A range of SIZE bytes that shows one object of WINDOW bytes again and again. */
static void *map_window(int *fd)
{
	uint8_t *all =
		mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*fd = memfd_create("big", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (all == MAP_FAILED || *fd < 0 || ftruncate(*fd, (off_t)WINDOW))
		return NULL;
	for (uint64_t at = 0; at < SIZE; at += WINDOW) {
		size_t n = SIZE - at < WINDOW ? SIZE - at : WINDOW;

		if (mmap(all + at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0) ==
		    MAP_FAILED)
			return NULL;
	}
	return all;
}

/* Over map the owner's range must be one object: a sparse file that is really SIZE long. */
static void *map_sparse(int *fd)
{
	void *all;

	*fd = memfd_create("big", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)SIZE))
		return NULL;
	fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK);
	all = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return all == MAP_FAILED ? NULL : all;
}

static int64_t open_big(void *args)
{
	struct big *b = args;
	void *all = suite_path == XTAL_PATH_MAP ? map_sparse(&b->fd) : map_window(&b->fd);

	b->addr = (uintptr_t)all;
	b->seg = all ? dma_register_seg(b->owner->ctx,
					&(struct dma_seg_cfg){ .addr = b->addr, .len = SIZE })
		     : NULL;
	if (!b->seg)
		return -1;
	b->value = *b->seg;
	return 0;
}

static int64_t close_big(void *args)
{
	struct big *b = args;

	dma_unregister_seg(b->owner->ctx, b->seg);
	munmap((void *)(uintptr_t)b->addr, SIZE);
	close(b->fd);
	return 0;
}

/* Over map, give back what a transfer made real. */
static int64_t drop_pages(void *args)
{
	struct big *b = args;

	return suite_path == XTAL_PATH_MAP
		       ? fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)SIZE)
		       : 0;
}

static void open_both(struct pair *p, struct big *b, uint8_t **mine, struct dma_seg **local)
{
	int fd;

	pair_open(p, 4096);
	b->owner = p->owner;
	assert_int_equal(actor_call(p->actor, open_big, b, sizeof(*b)), 0);
	*mine = map_window(&fd);
	assert_non_null(*mine);
	close(fd);
	*local = dma_register_seg(p->ctx,
				  &(struct dma_seg_cfg){ .addr = (uintptr_t)*mine, .len = SIZE });
	assert_non_null(*local);
}

static void close_both(struct pair *p, struct big *b, uint8_t *mine, struct dma_seg *local)
{
	dma_unregister_seg(p->ctx, local);
	munmap(mine, SIZE);
	assert_int_equal(actor_call(p->actor, close_big, b, sizeof(*b)), 0);
	pair_close(p);
}

/* Reads of holes need no memory at the target; writes of a whole window make it repeat. */
static void lengths_around_the_limits_are_moved_whole(void **state)
{
	static const uint64_t lengths[] = { CAP + 1, 4 * GIB - 1, 2 * GIB + 1, CAP - 1,
					    CAP,     2 * GIB - 1, 2 * GIB };
	bool soak = getenv("XTAL_TEST_SOAK");
	unsigned count = soak ? 7 : suite_path == XTAL_PATH_TCP ? 1 : 2;
	struct dma_seg *local, l, r;
	struct big b = { 0 };
	struct pair p;
	uint8_t *mine;

	(void)state;
	if (suite_sanitized() || getenv("XTAL_TEST_EMULATOR"))
		suite_skip("gigabytes take too long in this build");
	if (sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1 << 20) < 3000)
		suite_skip("less than 3 GB of memory");
	open_both(&p, &b, &mine, &local);
	for (unsigned i = 0; i < count; i++) {
		/* Between hosts gigabytes take too long; this is more than what lies in sockets. */
		uint64_t len = !soak && suite_between_hosts() ? GIB / 4 + 1 : lengths[i];
		uint64_t tail = len % WINDOW ? len % WINDOW : WINDOW;
		uint64_t last = tail < 64 ? tail : 64;
		uint8_t edge[64];

		/* Our window shows a pattern; the target must show it at its end. */
		pattern_fill(mine, WINDOW, i + 1, 0);
		l = part(local, 0, len);
		r = part(&b.value, 0, len);
		if (suite_path != XTAL_PATH_MAP) {
			assert_int_equal(dma_write(p.queue, &r, &l), DMA_STATUS_OK);
			assert_ok(p.queue, len);
			pair_peek(&p, b.addr + len - last, edge, last);
			assert_int_equal(pattern_check(edge, last, i + 1, tail - last), -1);
			if (len > CAP + 32) {
				pair_peek(&p, b.addr + CAP - 32, edge, 64);
				assert_int_equal(
					pattern_check(edge, 64, i + 1, (CAP - 32) % WINDOW), -1);
			}
			pair_assert_pattern(&p, b.addr, tail, i + 1);
		} else {
			memset(mine, 0xff, WINDOW);
			pair_poke(&p, b.addr + len - 8, "last one", 8);
		}
		memset(mine, 0xff, WINDOW);
		assert_int_equal(dma_read(p.queue, &r, &l), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		if (suite_path == XTAL_PATH_MAP)
			assert_memory_equal(mine + len - 8, "last one", 8);
		else
			assert_int_equal(pattern_check(mine, tail, i + 1, 0), -1);
		assert_int_equal(actor_call(p.actor, drop_pages, &b, sizeof(b)), 0);
	}
	close_both(&p, &b, mine, local);
}

static void four_gib_are_refused_with_the_limit(void **state)
{
	static const uint64_t lengths[] = { 4 * GIB, 4 * GIB + 5, 4 * GIB + 4096, UINT64_MAX };
	struct dma_seg *local, l, word;
	struct big b = { 0 };
	uint64_t see = 1;
	struct pair p;
	uint8_t *mine;

	(void)state;
	open_both(&p, &b, &mine, &local);
	word = part(&p.remote, 0, 8);
	for (unsigned i = 0; i < 4; i++) {
		l = part(local, 0, lengths[i]);
		assert_int_equal(dma_write(p.queue, &b.value, &l), DMA_STATUS_INVAL);
		assert_refused_because("4294967295");
		assert_int_equal(dma_read(p.queue, &b.value, &l), DMA_STATUS_INVAL);
		assert_refused_because("4294967295");
		assert_int_equal(dma_write_with_notify(p.queue, &b.value, &l, &word, 1), 1);
		assert_refused_because("4294967295");
	}
	assert_int_equal(dma_poll_queue(p.queue, 1, &(struct dma_cr){ 0 }), 0);
	pair_peek(&p, word.sva, &see, 8);
	assert_int_equal(see, 0);
	close_both(&p, &b, mine, local);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_around_the_limits_are_moved_whole),
		cmocka_unit_test(four_gib_are_refused_with_the_limit),
	};

	return suite_run(argc, argv, "lengths", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
