/* SPDX-License-Identifier: MIT */
/*
 * Operations that must not be: wrong token, wrong context, outside of the segment. Each ends
 * with its status, writes nothing, and leaves the queue usable. ctest: timeout=120 hosts
 */
#include "lib/log.h"
#include "lib/pair.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN 8192ul

/* Every operation towards remote ends with status; the owner's memory stays zero. */
static void assert_denied(struct pair *p, const struct dma_seg *remote, int status)
{
	struct dma_seg local = part(p->local, 0, 16), good = part(&p->remote, 0, 8);
	struct dma_seg target = *remote, bulk = part(p->local, 0, 4 * LEN);
	uint64_t two[2] = { 0, 0 }, ones[2] = { ~0ull, ~0ull };

	pattern_fill(p->mem.data, 4 * LEN, 1, 0);
	assert_int_equal(dma_write(p->queue, &target, &local), DMA_STATUS_OK);
	assert_status(p->queue, status);
	assert_int_equal(dma_write(p->queue, &target, &bulk), DMA_STATUS_OK);
	assert_status(p->queue, status);
	assert_int_equal(dma_write_with_notify(p->queue, &target, &local, &good, ~0ull), 0);
	assert_status(p->queue, status);
	assert_int_equal(dma_read(p->queue, &target, &local), DMA_STATUS_OK);
	assert_status(p->queue, status);
	assert_int_equal(pattern_check(p->mem.data, 4 * LEN, 1, 0), -1);
	assert_int_equal(dma_cas(p->queue, &target, &local, (uintptr_t)two, (uintptr_t)ones), 0);
	assert_status(p->queue, status);
	local.len = 8;
	assert_int_equal(dma_faa(p->queue, &target, &local, 5), DMA_STATUS_OK);
	assert_status(p->queue, status);
	/* A good one in between, and behind. */
	local = part(p->local, LEN, 8);
	memset(p->mem.data + LEN, 0, 8);
	assert_int_equal(dma_write(p->queue, &good, &local), DMA_STATUS_OK);
	assert_ok(p->queue, 8);
}

static int64_t owner_is_zero(void *args)
{
	struct ask *a = args;

	return pattern_check_all(a->owner->mem.data, a->owner->mem.len, 0);
}

static void assert_untouched(struct pair *p)
{
	struct ask a = { 0 };

	assert_int_equal(pair_ask(p, owner_is_zero, &a), -1);
	pair_assert_guards(p);
}

static void open_all(struct pair *p)
{
	pair_open(p, 5 * LEN);
	p->remote.len = LEN; /* what operations name; the owner registered more */
}

static void a_wrong_token_is_refused(void **state)
{
	struct dma_seg bad;
	struct pair p;

	(void)state;
	open_all(&p);
	for (unsigned bit = 0; bit < 32; bit++) {
		bad = p.remote;
		bad.token_value ^= 1u << bit;
		assert_denied(&p, &bad, 8);
	}
	assert_untouched(&p);
	pair_close(&p);
}

static void an_absent_token_is_refused(void **state)
{
	struct dma_seg bad;
	struct pair p;

	(void)state;
	open_all(&p);
	bad = p.remote;
	bad.token_value_valid = false;
	assert_denied(&p, &bad, 8);
	bad.token_value = 0;
	assert_denied(&p, &bad, 8);
	bad.token_value_valid = true;
	assert_denied(&p, &bad, 8);
	assert_untouched(&p);
	pair_close(&p);
}

/* The owner's token is 0, or was not marked valid: none need be sent. */
static void tokens_that_do_not_matter(void **state)
{
	struct dma_seg local, s;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 3; i++) { /* token 0 and valid, 0, 9 and not valid */
		struct dma_seg reg = pair_register(&p, p.remote.sva + 1024 * (i + 1), 64,
						   i == 2 ? 9 : 0, i == 0);

		s = reg;
		s.token_value_valid = false;
		s.token_value = 1; /* not looked at */
		assert_int_equal(dma_write(p.queue, &s, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		s.token_value_valid = true;
		s.token_value = i == 2 ? 9 : 0; /* the right one is right */
		assert_int_equal(dma_write(p.queue, &s, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		s.token_value = 8; /* a wrong one that is sent is wrong */
		assert_int_equal(dma_write(p.queue, &s, &local), DMA_STATUS_OK);
		assert_status(p.queue, 8);
	}
	pair_close(&p);
}

static void another_incarnation_is_refused(void **state)
{
	struct pair p;

	(void)state;
	open_all(&p);
	for (uint32_t bits = 1; bits < 16; bits++) {
		struct dma_seg bad = p.remote;

		bad.tid ^= bits << 16;
		assert_denied(&p, &bad, 8); /* 0 too: no incarnation has it */
	}
	assert_untouched(&p);
	pair_close(&p);
}

static void nobody_at_the_port_is_status_9(void **state)
{
	struct dma_seg bad;
	struct pair p;

	(void)state;
	open_all(&p);
	bad = p.remote;
	bad.tid ^= 1; /* another port; one in 60000 tests meets a real one */
	assert_denied(&p, &bad, 9);
	p.queue->cfg.rmt_eid.dw0 = 0x0a0b0c0d;
	bad = part(p.local, 0, 8);
	assert_int_equal(dma_write(p.queue, &p.remote, &bad), DMA_STATUS_OK);
	assert_status(p.queue, 9);
	p.queue->cfg.rmt_eid.dw0 = 0;
	assert_int_equal(dma_write(p.queue, &p.remote, &bad), DMA_STATUS_OK);
	assert_status(p.queue, 9);
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK;
	assert_untouched(&p);
	pair_close(&p);
}

/* The manual's example: no tid and no token mean the caller's own context. */
static void tid_0_without_token_is_our_own(void **state)
{
	struct dma_seg own, local;
	struct pair p;

	(void)state;
	if (suite_path != XTAL_PATH_SELF)
		suite_skip("only over self: the caller's own context");
	pair_open(&p, LEN);
	pattern_fill(p.mem.data, 64, 3, 0);
	own = (struct dma_seg){ .sva = p.local->sva + 4096, .len = 64 };
	local = part(p.local, 0, 64);
	assert_int_equal(dma_write(p.queue, &own, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 64); /* the local segment's token was not marked valid */
	assert_int_equal(pattern_check(p.mem.data + 4096, 64, 3, 0), -1);
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK + 1; /* not our device */
	assert_int_equal(dma_write(p.queue, &own, &local), DMA_STATUS_OK);
	assert_status(p.queue, 8);
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK;
	pair_close(&p);
}

static void tid_0_with_a_token_is_refused(void **state)
{
	struct dma_seg bad;
	struct pair p;

	(void)state;
	open_all(&p);
	bad = p.remote;
	bad.tid = 0;
	assert_denied(&p, &bad, 8);
	assert_untouched(&p);
	pair_close(&p);
}

/* Of everything, the range is looked at as a whole before a byte moves. */
static void one_byte_outside_is_refused(void **state)
{
	static const size_t lengths[] = { 1, 2, 8, 16, 100, 4096 };
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	for (unsigned i = 0; i < 6; i++) {
		size_t len = lengths[i];
		struct dma_seg local = part(p.local, 0, len);
		struct dma_seg places[] = {
			part(&p.remote, LEN - len + 1, len), /* one past the end */
			part(&p.remote, (size_t)-1, len),    /* one before the beginning */
			part(&p.remote, LEN, len),
			part(&p.remote, -len, len),
			part(&p.remote, LEN + 4096, len),
			{ .sva = UINT64_MAX - len / 2, .len = len }, /* wraps */
			{ .sva = UINT64_MAX, .len = len },
			{ .sva = 1, .len = len },
		};

		memset(p.mem.data, 0xff, len);
		for (unsigned k = 0; k < 8; k++) {
			places[k].tid = p.remote.tid;
			places[k].token_value = PAIR_TOKEN;
			places[k].token_value_valid = true;
			assert_int_equal(dma_write(p.queue, &places[k], &local), DMA_STATUS_OK);
			assert_status(p.queue, 8);
			assert_int_equal(dma_read(p.queue, &places[k], &local), DMA_STATUS_OK);
			assert_status(p.queue, 8);
			assert_int_equal(pattern_check_all(p.mem.data, len, 0xff), -1);
		}
	}
	assert_untouched(&p);
	pair_close(&p);
}

static void two_adjacent_segments_are_not_one(void **state)
{
	struct dma_seg first, local, both;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	first = pair_register(&p, p.remote.sva + 1000, 100, 41, true);
	pair_register(&p, p.remote.sva + 1100, 100, 41, true);
	local = part(p.local, 0, 100);
	memset(p.mem.data, 0, 100);
	assert_int_equal(dma_write(p.queue, &first, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 100);
	both = part(&first, 50, 100);
	assert_int_equal(dma_write(p.queue, &both, &local), DMA_STATUS_OK);
	assert_status(p.queue, 8);
	pair_close(&p);
}

static void overlapping_segments_have_their_own_tokens(void **state)
{
	struct dma_seg one, two, mixed, local;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	local = part(p.local, 0, 64);
	one = pair_register(&p, p.remote.sva + 512, 256, 51, true);
	two = pair_register(&p, p.remote.sva + 640, 256, 52, true); /* overlaps by half */
	for (unsigned round = 0; round < 2; round++) {
		mixed = part(&one, 160, 64);
		assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 64); /* in both: one's token is good */
		mixed.token_value = 52;
		assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 64); /* ... and two's */
		mixed.token_value = 53;
		assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
		assert_status(p.queue, 8);
		mixed = part(&one, 0, 64);
		mixed.token_value = 52; /* only in one */
		assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
		assert_status(p.queue, 8);
	}
	pair_unregister(&p, &two);
	mixed = part(&two, 0, 64);
	assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
	assert_status(p.queue, 8);
	mixed = part(&one, 160, 64);
	assert_int_equal(dma_write(p.queue, &mixed, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 64); /* one is not touched by that */
	pair_close(&p);
}

static void a_local_range_must_be_registered(void **state)
{
	struct dma_seg remote, local;
	uint8_t stray[64] = { 0 };
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	remote = part(&p.remote, 0, 8);
	local = (struct dma_seg){ .sva = (uintptr_t)stray, .len = 8 };
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_read(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_faa(p.queue, &remote, &local, 1), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_cas(p.queue, &remote, &local, 0, 1), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_write_with_notify(p.queue, &remote, &local, &remote, 1), 0);
		assert_status(p.queue, 4);
		/* Half of it, then the last byte, then the wrap. */
		local = part(p.local, LEN - 4, 8);
		if (i == 1)
			local = part(p.local, LEN - 7, 8);
	}
	local = (struct dma_seg){ .sva = UINT64_MAX - 3, .len = 8 };
	assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	assert_status(p.queue, 4);
	assert_int_equal(pattern_check_all(stray, 64, 0), -1);
	assert_untouched(&p);
	pair_close(&p);
}

/* The initiator's registration counts when the operation is posted. */
static void an_unregistered_local_range_ends_with_4(void **state)
{
	struct dma_seg remote, local;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		dma_unregister_seg(p.ctx, p.local);
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		p.local = dma_register_seg(
			p.ctx, &(struct dma_seg_cfg){ .addr = (uintptr_t)p.mem.data, .len = LEN });
		assert_non_null(p.local);
	}
	pair_close(&p);
}

/* What the caller's thread knows, where the call itself found out. */
static void assert_told(const char *one, const char *two)
{
	assert_logged(one, two);
	if (suite_path == XTAL_PATH_RING || suite_path == XTAL_PATH_TCP || suite_adopted)
		return;
	assert_refused_because(one);
	assert_refused_because(two);
}

static void post(struct pair *p, int posted, int status)
{
	assert_int_equal(posted, DMA_STATUS_OK);
	assert_status(p->queue, status);
}

/* Object, value and limit, in the log and in the thread. First of all: nothing was said before. */
static void each_failure_leaves_a_sentence(void **state)
{
	struct dma_seg remote, local, bad;
	char words[64];
	uint64_t stray[2] = { 0 };
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	remote = part(&p.remote, 0, 8);
	local = (struct dma_seg){ .sva = (uintptr_t)stray, .len = 8 };
	post(&p, dma_write(p.queue, &remote, &local), 4);
	snprintf(words, sizeof(words), "local 0x%llx", (unsigned long long)local.sva);
	assert_told("status 4: no segment of this context covers the local range", words);
	local = part(p.local, LEN - 4, 8);
	post(&p, dma_read(p.queue, &remote, &local), 4);
	snprintf(words, sizeof(words), "to 0x%llx)", (unsigned long long)(p.local->sva + LEN));
	assert_told("status 4: the local range leaves its segment", words);
	local = part(p.local, 0, 8);
	bad = part(&p.remote, 4, 8);
	snprintf(words, sizeof(words), "8 bytes at 0x%llx of", (unsigned long long)bad.sva);
	post(&p, dma_faa(p.queue, &bad, &local, 1), 6);
	assert_logged("status 6: the address of an atomic must be a multiple of its length, 8",
		      words);
	bad = remote;
	bad.token_value++;
	post(&p, dma_write(p.queue, &bad, &local), 8);
	assert_logged("status 8: ", "token");
	bad = part(&p.remote, LEN, 8);
	if (suite_path ==
	    XTAL_PATH_TCP) /* whose owner tells the status only: all are of one kind */
		suite_sleep_us(1010000);
	post(&p, dma_write(p.queue, &bad, &local), 8);
	snprintf(words, sizeof(words), "8 bytes at 0x%llx of", (unsigned long long)bad.sva);
	assert_logged("status 8: ", words);
	pair_close(&p);
}

/* One line a second, that tells how many there were. */
static void a_flood_of_failures_is_told_once_a_second(void **state)
{
	struct dma_seg local, bad;
	uint64_t begin, took;
	struct pair p;
	unsigned lines;

	(void)state;
	pair_open(&p, LEN);
	local = part(p.local, 0, 8);
	bad = part(&p.remote, 4, 8);
	log_empty();
	begin = suite_now_ms();
	for (unsigned i = 0; i < 200; i++)
		post(&p, dma_faa(p.queue, &bad, &local, 1), 6);
	took = suite_now_ms() - begin;
	lines = log_lines("status 6", NULL);
	assert_true(lines <= took / 1000 + 1);
	suite_sleep_us(1010000);
	post(&p, dma_faa(p.queue, &bad, &local, 1), 6);
	assert_int_equal(log_lines("status 6", NULL), lines + 1);
	assert_logged("status 6", "more of the kind before");
	pair_close(&p);
}

/* Of each kind once per process; the sentence names the segment. */
static void what_hardware_refuses_is_said_once(void **state)
{
	uint8_t *mem =
		mmap(NULL, 5 * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		uint64_t addr, len;
		const char *words;
	} kinds[] = {
		{ (uintptr_t)mem + 8, 16, "begins at no multiple of 4096" },
		{ (1ull << 48) - 4096, 8192, "ends above 2^48" },
		{ (uintptr_t)mem + 2 * LEN, 2 * LEN, "is not wholly mapped and writable" },
		{ (uintptr_t)mem + 2 * LEN + 4096, 4096, "overlaps another one" },
	};
	struct dma_seg *segs[2 * 4 + 1];
	char words[64];
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	log_empty();
	/* The identical range, twice, and an end within a page are good. */
	segs[0] = dma_register_seg(
		p.ctx, &(struct dma_seg_cfg){ .addr = (uintptr_t)p.mem.data, .len = LEN });
	assert_non_null(segs[0]);
	assert_int_equal(log_lines("hardware refuses", NULL), 0);
	mprotect(mem + 3 * LEN, LEN, PROT_READ);
	for (unsigned i = 0; i < 8; i++) {
		segs[i + 1] =
			dma_register_seg(p.ctx, &(struct dma_seg_cfg){ .addr = kinds[i / 2].addr,
								       .len = kinds[i / 2].len });
		assert_non_null(segs[i + 1]);
		snprintf(words, sizeof(words), "0x%llx", (unsigned long long)kinds[i / 2].addr);
		assert_int_equal(log_lines(kinds[i / 2].words, words), 1);
	}
	assert_int_equal(log_lines("hardware refuses", NULL), 4);
	for (unsigned i = 0; i < 9; i++)
		dma_unregister_seg(p.ctx, segs[i]);
	munmap(mem, 5 * LEN);
	pair_close(&p);
}

#define PAGES 4ul

/* Shared memory that the owner itself can only read, or only the second half of which. */
enum read_only {
	FILE_OPENED_FOR_READING,
	MEMFD_MAPPED_FOR_READING,
	HALF_OF_A_MEMFD,
	READ_ONLY_KINDS
};

static int64_t owner_maps_read_only(void *args)
{
	struct ask *a = args;
	char path[] = "read-only-XXXXXX";
	size_t len = a->len;
	int made = a->kind == FILE_OPENED_FOR_READING ? mkstemp(path) : memfd_create("test", 0);
	int fd = made;
	uint8_t *at;

	if (made < 0 || ftruncate(made, (off_t)len))
		return -1;
	if (a->kind == FILE_OPENED_FOR_READING) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		close(made);
		unlink(path);
	}
	at = mmap(NULL, len, PROT_READ | (a->kind == HALF_OF_A_MEMFD ? PROT_WRITE : 0), MAP_SHARED,
		  fd, 0);
	if (at == MAP_FAILED ||
	    (a->kind == HALF_OF_A_MEMFD && mprotect(at + len / 2, len / 2, PROT_READ)))
		return -2;
	a->addr = (uintptr_t)at;
	a->value = (uint64_t)fd;
	return 0;
}

static int64_t owner_unmaps(void *args)
{
	struct ask *a = args;
	int64_t bad =
		pattern_check_all((uint8_t *)(uintptr_t)a->addr + a->count, a->len - a->count, 0);

	munmap((void *)(uintptr_t)a->addr, a->len);
	close((int)a->value);
	return bad;
}

static void assert_read(struct pair *p, struct dma_seg *remote, size_t len)
{
	struct dma_seg local = part(p->local, 0, len);

	memset(p->mem.data, 0xa5, len);
	assert_int_equal(dma_read(p->queue, remote, &local), DMA_STATUS_OK);
	assert_ok(p->queue, len);
	assert_int_equal(pattern_check_all(p->mem.data, len, 0), -1);
}

static void assert_not_written(struct pair *p, struct dma_seg *remote, size_t len)
{
	struct dma_seg local = part(p->local, 0, len);

	memset(p->mem.data, 0xa5, len);
	assert_int_equal(dma_write(p->queue, remote, &local), DMA_STATUS_OK);
	assert_status(p->queue, 8);
	local.len = 8;
	assert_int_equal(dma_faa(p->queue, remote, &local, 1), DMA_STATUS_OK);
	assert_status(p->queue, 8);
	assert_int_equal(dma_cas(p->queue, remote, &local, 0, 1), DMA_STATUS_OK);
	assert_status(p->queue, 8);
}

/* F13: what the owner has mapped for reading is not written by others either, also where the
 * object could be opened for writing. Reading goes on, over the same path. */
static void memory_mapped_for_reading_is_not_written(void **state)
{
	size_t len = PAGES * (size_t)sysconf(_SC_PAGESIZE);
	struct pair p;

	(void)state;
	if (suite_path == XTAL_PATH_SELF)
		suite_skip("over self these are plain stores by the program itself");
	pair_open(&p, len);
	for (uint32_t kind = 0; kind < READ_ONLY_KINDS; kind++) {
		struct ask a = { .kind = kind, .len = len };
		struct dma_seg seg, half, local = part(p.local, 0, len / 2);

		assert_int_equal(pair_ask(&p, owner_maps_read_only, &a), 0);
		seg = pair_register(&p, a.addr, len, 3, true);
		half = part(&seg, len / 2, len / 2);
		assert_not_written(&p, &half, len / 2);
		assert_read(&p, &seg, len);
		assert_int_equal(pair_path(&p, &seg), suite_path);
		assert_not_written(&p, &half, 8);
		assert_read(&p, &half, len / 2);
		if (kind == HALF_OF_A_MEMFD) { /* the other half is as any memory */
			memset(p.mem.data, 0x5a, len / 2);
			assert_int_equal(dma_write(p.queue, &seg, &local), DMA_STATUS_OK);
			assert_ok(p.queue, len / 2);
			assert_read(&p, &half, len / 2);
			a.count = len / 2;
		} else {
			assert_not_written(&p, &seg, len);
		}
		pair_unregister(&p, &seg);
		assert_int_equal(pair_ask(&p, owner_unmaps, &a), -1);
	}
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const char *const env[] = { log_setting(), NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_leaves_a_sentence),
		cmocka_unit_test(a_flood_of_failures_is_told_once_a_second),
		cmocka_unit_test(what_hardware_refuses_is_said_once),
		cmocka_unit_test(a_wrong_token_is_refused),
		cmocka_unit_test(an_absent_token_is_refused),
		cmocka_unit_test(tokens_that_do_not_matter),
		cmocka_unit_test(another_incarnation_is_refused),
		cmocka_unit_test(nobody_at_the_port_is_status_9),
		cmocka_unit_test(tid_0_without_token_is_our_own),
		cmocka_unit_test(tid_0_with_a_token_is_refused),
		cmocka_unit_test(one_byte_outside_is_refused),
		cmocka_unit_test(two_adjacent_segments_are_not_one),
		cmocka_unit_test(overlapping_segments_have_their_own_tokens),
		cmocka_unit_test(a_local_range_must_be_registered),
		cmocka_unit_test(an_unregistered_local_range_ends_with_4),
		cmocka_unit_test(memory_mapped_for_reading_is_not_written),
	};

	return suite_run(argc, argv, "refused", tests, sizeof(tests) / sizeof(tests[0]), env);
}
