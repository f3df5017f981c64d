/* SPDX-License-Identifier: MIT */
/*
 * Compare-and-swap and fetch-and-add: results, neighbours, alignment, and that they compose
 * with the owner's own atomics and with those of other initiators.
 * ctest: timeout=180 adopt hosts deferred
 */
#include "lib/pair.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t fill[8] = { 0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
				  0x4444444444444444, 0x5555555555555555, 0x6666666666666666,
				  0x7777777777777777, 0x8888888888888888 };

static dma_status cas(struct pair *p, size_t at, size_t len, const uint64_t *cmp,
		      const uint64_t *swap)
{
	struct dma_seg remote = part(&p->remote, at, len), local = part(p->local, 0, len);

	memset(p->mem.data, 0xa5, 32);
	if (len == 16)
		return dma_cas(p->queue, &remote, &local, (uintptr_t)cmp, (uintptr_t)swap);
	return dma_cas(p->queue, &remote, &local, *cmp, *swap);
}

static void a_matching_cas_swaps(void **state)
{
	static const size_t lengths[] = { 4, 8, 16 };
	uint64_t swap[2] = { 0xabcdef0123456789, 0xfedcba9876543210 };
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	for (unsigned i = 0; i < 3; i++) {
		size_t len = lengths[i];
		uint8_t want[64], see[64];

		pair_poke(&p, p.remote.sva, fill, 64);
		assert_int_equal(cas(&p, 16, len, &fill[2], swap), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		assert_memory_equal(p.mem.data, &fill[2], len); /* the old value */
		assert_int_equal(pattern_check_all(p.mem.data + len, 32 - len, 0xa5), -1);
		memcpy(want, fill, 64);
		memcpy(want + 16, swap, len);
		pair_peek(&p, p.remote.sva, see, 64);
		assert_memory_equal(see, want, 64); /* and nothing beside it */
	}
	pair_close(&p);
}

static void another_cas_only_tells(void **state)
{
	static const size_t lengths[] = { 4, 8, 16 };
	uint64_t swap[2] = { 1, 2 }, cmp[2];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	pair_poke(&p, p.remote.sva, fill, 64);
	for (unsigned i = 0; i < 3; i++) {
		size_t len = lengths[i];

		for (size_t byte = 0; byte < len; byte++) { /* one bit is enough */
			uint8_t see[64];

			memcpy(cmp, &fill[2], 16);
			((uint8_t *)cmp)[byte] ^= 0x40;
			assert_int_equal(cas(&p, 16, len, cmp, swap), DMA_STATUS_OK);
			assert_ok(p.queue, len);
			assert_memory_equal(p.mem.data, &fill[2], len);
			pair_peek(&p, p.remote.sva, see, 64);
			assert_memory_equal(see, fill, 64);
		}
	}
	pair_close(&p);
}

static void the_operands_of_16_bytes_are_read_at_once(void **state)
{
	uint64_t cmp[2] = { fill[2], fill[3] }, swap[2] = { 7, 8 }, see[2];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	pair_poke(&p, p.remote.sva, fill, 64);
	assert_int_equal(cas(&p, 16, 16, cmp, swap), DMA_STATUS_OK);
	memset(cmp, 0, 16);
	memset(swap, 0, 16);
	assert_ok(p.queue, 16);
	pair_peek(&p, p.remote.sva + 16, see, 16);
	assert_int_equal(see[0], 7);
	assert_int_equal(see[1], 8);
	pair_close(&p);
}

static void faa(struct pair *p, size_t at, size_t len, uint64_t add)
{
	struct dma_seg remote = part(&p->remote, at, len), local = part(p->local, 0, len);

	memset(p->mem.data, 0xa5, 32);
	assert_int_equal(dma_faa(p->queue, &remote, &local, add), DMA_STATUS_OK);
}

static void faa_adds_and_wraps(void **state)
{
	uint64_t big = UINT64_MAX - 1, see[3];
	uint32_t small[4] = { 9, UINT32_MAX - 1, 9, 9 }, see4[4];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	pair_poke(&p, p.remote.sva + 8, &big, 8);
	faa(&p, 8, 8, 5);
	assert_ok(p.queue, 8);
	assert_memory_equal(p.mem.data, &big, 8);
	assert_int_equal(pattern_check_all(p.mem.data + 8, 24, 0xa5), -1);
	pair_peek(&p, p.remote.sva, see, 24);
	assert_int_equal(see[0], 0);
	assert_int_equal(see[1], 3);
	assert_int_equal(see[2], 0); /* no carry */
	faa(&p, 8, 8, (uint64_t)-4);
	assert_ok(p.queue, 8);
	pair_peek(&p, p.remote.sva + 8, see, 8);
	assert_int_equal(see[0], UINT64_MAX);

	pair_poke(&p, p.remote.sva, small, 16);
	faa(&p, 4, 4, 0xffffffff00000003); /* only the low half counts */
	assert_ok(p.queue, 4);
	assert_memory_equal(p.mem.data, &small[1], 4);
	assert_int_equal(pattern_check_all(p.mem.data + 4, 28, 0xa5), -1);
	pair_peek(&p, p.remote.sva, see4, 16);
	assert_int_equal(see4[0], 9);
	assert_int_equal(see4[1], 1);
	assert_int_equal(see4[2], 9);
	pair_close(&p);
}

/* F45: across lines and pages too; nothing is written, nobody is harmed. */
static void unaligned_atomics_end_with_6(void **state)
{
	static const size_t lengths[] = { 4, 8, 16 };
	uint64_t operand[2] = { 0, 0 }, new[2] = { ~0ull, ~0ull };
	struct pair p;

	(void)state;
	pair_open(&p, 8192);
	for (unsigned i = 0; i < 3; i++) {
		for (size_t base = 48; base <= 4096; base += 4096 - 64) {
			for (size_t at = base; at < base + 32; at++) {
				bool aligned = (p.remote.sva + at) % lengths[i] == 0;

				if (aligned)
					continue;
				assert_int_equal(cas(&p, at, lengths[i], operand, new), 0);
				assert_status(p.queue, 6);
				if (lengths[i] == 16)
					continue;
				faa(&p, at, lengths[i], 1);
				assert_status(p.queue, 6);
			}
		}
	}
	for (size_t at = 0; at < 8192; at += 64) {
		uint8_t see[64];

		pair_peek(&p, p.remote.sva + at, see, 64);
		assert_int_equal(pattern_check_all(see, 64, 0), -1);
	}
	faa(&p, 64, 8, 1);
	assert_ok(p.queue, 8); /* the queue goes on */
	pair_close(&p);
}

static void the_old_value_may_land_anywhere(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	pair_poke(&p, p.remote.sva, fill, 64);
	for (size_t at = 0; at < 16; at++) {
		struct dma_seg remote = part(&p.remote, 8, 8), local = part(p.local, at, 8);

		assert_int_equal(dma_faa(p.queue, &remote, &local, 0), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		assert_memory_equal(p.mem.data + at, &fill[1], 8);
	}
	pair_close(&p);
}

/* F60: an operation sees the effect of those posted before it. */
static void atomics_do_not_overtake_writes(void **state)
{
	struct dma_seg remote, value, old;
	struct pair p;

	(void)state;
	pair_open(&p, 512 * 1024);
	remote = part(&p.remote, 64, 8);
	value = part(p.local, 0, 8);
	old = part(p.local, 8, 8);
	for (uint64_t i = 1; i <= suite_scale(50000); i++) {
		memcpy(p.mem.data, &i, 8);
		if (i % 1000 == 0) { /* something long before it */
			struct dma_seg far = part(&p.remote, 1024, 300000);
			struct dma_seg near = part(p.local, 1024, 300000);

			assert_int_equal(dma_write(p.queue, &far, &near), DMA_STATUS_OK);
		}
		assert_int_equal(dma_write(p.queue, &remote, &value), DMA_STATUS_OK);
		assert_int_equal(dma_faa(p.queue, &remote, &old, 0), DMA_STATUS_OK);
		if (i % 1000 == 0)
			assert_ok(p.queue, 300000);
		assert_ok(p.queue, 8);
		assert_ok(p.queue, 8);
		assert_memory_equal(p.mem.data + 8, &i, 8);
	}
	pair_close(&p);
}

/* ---- Several at once ---- */

struct rival {
	struct dma_seg remote;
	uint64_t addr, count, ended;
	unsigned len;
};

static int64_t owner_adds(void *args)
{
	struct rival *r = args;

	for (uint64_t i = 0; i < r->count; i++)
		atomic_fetch_add((_Atomic uint64_t *)(uintptr_t)r->addr, 1);
	return 0;
}

struct initiator {
	struct dma_device *list;
	struct dma_context *ctx;
	struct dma_queue *queue;
	struct dma_seg *local;
	uint64_t *buf; /* 16 byte aligned */
	uint32_t devices;
};

static bool initiator_open(struct initiator *x)
{
	struct queue_cfg qc = { .queue_depth = 8, .rmt_eid.dw0 = LOOPBACK };
	struct dma_seg_cfg sc = { .len = 4096 };

	x->ctx = open_context(&x->list, &x->devices);
	x->queue = x->ctx ? dma_alloc_queue(x->ctx, &qc) : NULL;
	x->buf = aligned_alloc(4096, 4096);
	sc.addr = (uintptr_t)x->buf;
	x->local = x->queue && x->buf ? dma_register_seg(x->ctx, &sc) : NULL;
	return x->local;
}

static void initiator_close(struct initiator *x)
{
	dma_free_queue(x->queue);
	dma_unregister_seg(x->ctx, x->local);
	dma_delete_context(x->ctx);
	dma_free_device_list(x->list, x->devices);
	free(x->buf);
}

static int64_t end_of_one(struct dma_queue *q)
{
	struct dma_cr cr;

	while (!dma_poll_queue(q, 1, &cr))
		sched_yield(); /* more of us than processors */
	return cr.status;
}

static int64_t rival_adds(void *args)
{
	struct rival *r = args;
	struct initiator x;
	int64_t bad = 0;

	if (!initiator_open(&x))
		return -1;
	x.local->len = 8;
	for (uint64_t i = 0; i < r->count; i++) {
		bad |= dma_faa(x.queue, &r->remote, x.local, 1);
		bad |= end_of_one(x.queue);
	}
	x.local->len = 4096;
	initiator_close(&x);
	return bad;
}

/* Adds one to {n, ~n} by 16-byte swaps. */
static int64_t rival_swaps(void *args)
{
	struct rival *r = args;
	uint64_t cmp[2] = { 0, ~0ull }, swap[2];
	struct initiator x;
	int64_t bad = 0;

	if (!initiator_open(&x))
		return -1;
	x.local->len = 16;
	while (!bad && r->ended < r->count) {
		swap[0] = cmp[0] + 1;
		swap[1] = ~swap[0];
		bad |= dma_cas(x.queue, &r->remote, x.local, (uintptr_t)cmp, (uintptr_t)swap);
		bad |= end_of_one(x.queue);
		if (x.buf[0] != ~x.buf[1])
			bad = -2; /* half a swap was seen */
		if (x.buf[0] == cmp[0])
			r->ended++;
		memcpy(cmp, x.buf, 16);
	}
	x.local->len = 4096;
	initiator_close(&x);
	return bad;
}

static struct actor *rival_new(void)
{
	return suite_path == XTAL_PATH_SELF ? actor_thread() : actor_process(NULL);
}

/* F49: the owner's processor, we, and two more initiators add to one word. */
static void adds_of_all_sides_compose(void **state)
{
	struct rival r = { .count = suite_scale(100000) };
	struct actor *rivals[2] = { rival_new(), rival_new() };
	uint64_t sum;
	struct pair p;

	(void)state;
	if (suite_path == XTAL_PATH_CMA || suite_path == XTAL_PATH_RING)
		r.count = suite_scale(10000);
	pair_open(&p, 4096);
	r.remote = part(&p.remote, 128, 8);
	r.addr = r.remote.sva;
	for (unsigned i = 0; i < 2; i++)
		actor_start(rivals[i], rival_adds, &r, sizeof(r));
	actor_start(p.actor, owner_adds, &r, sizeof(r));
	for (uint64_t i = 0; i < r.count; i++) {
		faa(&p, 128, 8, 1);
		assert_ok(p.queue, 8);
	}
	assert_int_equal(actor_finish(p.actor, NULL, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(actor_finish(rivals[i], NULL, 0), 0);
		actor_free(rivals[i]);
	}
	pair_peek(&p, r.addr, &sum, 8);
	assert_int_equal(sum, r.count * 4);
	pair_close(&p);
}

/* F47: {n, ~n} never shows a half swap, and no swap is lost. */
static void swaps_of_16_bytes_are_whole(void **state)
{
	struct rival r = { .count = suite_scale(10000) };
	struct actor *rivals[2] = { rival_new(), rival_new() };
	uint64_t first[2] = { 0, ~0ull }, see[2];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	pair_poke(&p, p.remote.sva + 256, first, 16);
	r.remote = part(&p.remote, 256, 16);
	for (unsigned i = 0; i < 2; i++)
		actor_start(rivals[i], rival_swaps, &r, sizeof(r));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(actor_finish(rivals[i], NULL, 0), 0);
		actor_free(rivals[i]);
	}
	pair_peek(&p, r.remote.sva, see, 16);
	assert_int_equal(see[0], 2 * r.count);
	assert_int_equal(see[1], ~see[0]);
	pair_close(&p);
}

/* F50: the owner's program sleeps in a system call. */
static void atomics_do_not_wait_for_the_owner(void **state)
{
	uint64_t best = UINT64_MAX;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t begin = suite_now_ms(), took;

		faa(&p, 0, 8, 1);
		assert_ok(p.queue, 8);
		took = suite_now_ms() - begin;
		best = took < best ? took : best;
	}
	assert_true(best < 1);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_matching_cas_swaps),
		cmocka_unit_test(another_cas_only_tells),
		cmocka_unit_test(the_operands_of_16_bytes_are_read_at_once),
		cmocka_unit_test(faa_adds_and_wraps),
		cmocka_unit_test(unaligned_atomics_end_with_6),
		cmocka_unit_test(the_old_value_may_land_anywhere),
		cmocka_unit_test(atomics_do_not_overtake_writes),
		cmocka_unit_test(adds_of_all_sides_compose),
		cmocka_unit_test(swaps_of_16_bytes_are_whole),
		cmocka_unit_test(atomics_do_not_wait_for_the_owner),
	};

	return suite_run(argc, argv, "atomics", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
