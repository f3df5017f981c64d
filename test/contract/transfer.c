/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads move exactly the bytes they name: every size class, every alignment, every
 * kind of memory, parts of segments.
 * ctest: timeout=120 adopt hosts link-local pages deferred
 */
#include "lib/pair.h"

#include <stdio.h>
#include <string.h>

#include "lib/rng.h"

#define KIB 1024ul
#define MIB (1024 * KIB)

static const size_t sizes[] = { 1,     2,     3,      4,      5,      6,      7,    8,    9,
				10,    11,    12,     13,     14,     15,     16,   17,   63,
				64,    65,    199,    200,    201,    4095,   4096, 4097, 65535,
				65536, 65537, 131071, 131072, 131073, MIB + 3 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define BIG   (MIB + 8 * KIB)

struct spot {
	size_t size, at, from; /* offsets in the owner's memory and in ours */
};

/* Writes, and lets the owner look: the bytes are there, those around them are not touched. */
static void write_one(struct pair *p, const struct spot *s, uint64_t seed)
{
	struct dma_seg remote = part(&p->remote, s->at, s->size);
	struct dma_seg local = part(p->local, s->from, s->size);
	size_t margin = s->at < 64 ? s->at : 64;
	uint8_t before[64], after[64], see[64];

	pattern_fill(p->mem.data + s->from, s->size, seed, 0);
	pair_peek(p, remote.sva - margin, before, margin);
	pair_peek(p, remote.sva + s->size, after, 64);
	assert_int_equal(dma_write(p->queue, &remote, &local), DMA_STATUS_OK);
	assert_ok(p->queue, s->size);
	pair_assert_pattern(p, remote.sva, s->size, seed);
	pair_peek(p, remote.sva - margin, see, margin);
	assert_memory_equal(see, before, margin);
	pair_peek(p, remote.sva + s->size, see, 64);
	assert_memory_equal(see, after, 64);
}

static void read_one(struct pair *p, const struct spot *s, uint64_t seed)
{
	struct dma_seg remote = part(&p->remote, s->at, s->size);
	struct dma_seg local = part(p->local, s->from, s->size);
	size_t margin = s->from < 64 ? s->from : 64;
	uint8_t *dst = p->mem.data + s->from;

	pair_fill(p, remote.sva, s->size, seed);
	memset(dst - margin, 0xa5, s->size + margin + 64);
	assert_int_equal(dma_read(p->queue, &remote, &local), DMA_STATUS_OK);
	assert_ok(p->queue, s->size);
	assert_int_equal(pattern_check(dst, s->size, seed, 0), -1);
	assert_int_equal(pattern_check_all(dst - margin, margin, 0xa5), -1);
	assert_int_equal(pattern_check_all(dst + s->size, 64, 0xa5), -1);
}

static void every_size_arrives_whole(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, BIG);
	for (size_t i = 0; i < SIZES; i++) {
		struct spot s = { sizes[i], 64 + i % 3, 64 + i % 5 };

		write_one(&p, &s, i + 1);
		read_one(&p, &s, i + 1000);
	}
	pair_assert_guards(&p);
	pair_close(&p);
}

static void every_alignment_arrives_whole(void **state)
{
	static const size_t some[] = { 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 64, 65, 200, 201, 4097 };
	struct pair p;

	(void)state;
	pair_open(&p, 16 * KIB);
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		for (size_t a = 0; a < 16; a++) {
			for (size_t b = 0; b<16; b += some[i]> 64 ? 5 : 1) {
				struct spot s = { some[i], 64 + a, 64 + b };

				write_one(&p, &s, a * 16 + b + 1);
				read_one(&p, &s, a * 16 + b + 7000);
			}
		}
	}
	pair_assert_guards(&p);
	pair_close(&p);
}

static void a_segment_is_filled_to_its_edges(void **state)
{
	struct pair p;

	(void)state;
	for (size_t len = 4093; len <= 4099; len++) {
		pair_open(&p, len);
		pattern_fill(p.mem.data, len, len, 0);
		assert_int_equal(dma_write(p.queue, &p.remote, p.local), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		pair_assert_pattern(&p, p.remote.sva, len, len);
		pair_fill(&p, p.remote.sva, len, len + 50);
		assert_int_equal(dma_read(p.queue, &p.remote, p.local), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		assert_int_equal(pattern_check(p.mem.data, len, len + 50, 0), -1);
		pair_assert_guards(&p); /* the canaries begin at once */
		pair_close(&p);
	}
}

static void the_local_length_counts(void **state)
{
	struct dma_seg remote, local;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 100, 1); /* only checked not to be 0 */
	local = part(p.local, 0, 300);
	pattern_fill(p.mem.data, 300, 5, 0);
	assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 300);
	pair_assert_pattern(&p, remote.sva, 300, 5);
	pair_close(&p);
}

static void segments_are_values(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, 64 * KIB);
	pattern_fill(p.mem.data, 64 * KIB, 9, 0);
	for (size_t at = 0; at < 64 * KIB; at += 4096) {
		struct dma_seg *remote =
			dma_import_seg(&(struct dma_seg_cfg){ .addr = p.remote.sva + at,
							      .len = 4096,
							      .tid = p.remote.tid,
							      .token_value = PAIR_TOKEN,
							      .token_value_valid = true });
		struct dma_seg local = part(p.local, at, 4096);

		assert_non_null(remote);
		assert_int_equal(dma_write(p.queue, remote, &local), DMA_STATUS_OK);
		memset(&local, 0xff, sizeof(local)); /* nobody looks at them any more */
		memset(&remote->sva, 0, sizeof(remote->sva));
		dma_unimport_seg(remote);
	}
	for (size_t at = 0; at < 64 * KIB; at += 4096)
		assert_ok(p.queue, 4096);
	pair_assert_pattern(&p, p.remote.sva, 64 * KIB, 9);
	pair_close(&p);
}

static void every_kind_of_memory_can_be_reached(void **state)
{
	struct pair_attr attr = { .len = 300 * KIB, .any_kind = true };
	struct pair p;

	(void)state;
	for (unsigned kind = 0; kind < MEMORY_KINDS; kind++) {
		struct spot s = { 256 * KIB + 1, 64, 64 };

		if (suite_path == XTAL_PATH_MAP && kind == MEMORY_MALLOC && !suite_adopted)
			continue; /* nothing to map */
		print_message("          %s\n", memory_name((enum memory_kind)kind));
		attr.kind = (enum memory_kind)kind;
		pair_open_attr(&p, &attr);
		write_one(&p, &s, kind + 1);
		read_one(&p, &s, kind + 100);
		s.size = 8;
		write_one(&p, &s, kind + 200);
		pair_assert_guards(&p);
		pair_close(&p);
	}
}

static void long_transfers_arrive_whole(void **state)
{
	size_t len = (size_t)suite_scale(64) * MIB + 13;
	struct pair p;

	(void)state;
	pair_open(&p, len);
	pattern_fill(p.mem.data, len, 3, 0);
	assert_int_equal(dma_write(p.queue, &p.remote, p.local), DMA_STATUS_OK);
	assert_ok(p.queue, len);
	pair_assert_pattern(&p, p.remote.sva, len, 3);
	pair_fill(&p, p.remote.sva, len, 4);
	assert_int_equal(dma_read(p.queue, &p.remote, p.local), DMA_STATUS_OK);
	assert_ok(p.queue, len);
	assert_int_equal(pattern_check(p.mem.data, len, 4, 0), -1);
	pair_assert_guards(&p);
	pair_close(&p);
}

/* Many at once, into places of their own: what was posted first must not be mixed up. */
static void queued_transfers_keep_their_places(void **state)
{
	struct rng rng = { 42 };
	struct pair p;

	(void)state;
	pair_open(&p, 64 * 32 * KIB);
	for (uint64_t round = 0; round < suite_scale(20); round++) {
		size_t len[64];

		for (size_t i = 0; i < 64; i++) {
			struct dma_seg local, remote;

			len[i] = 1 + rng_below(&rng, i % 8 ? 2000 : 32 * KIB - 1);
			local = part(p.local, i * 32 * KIB, len[i]);
			remote = part(&p.remote, i * 32 * KIB, len[i]);
			pattern_fill(p.mem.data + i * 32 * KIB, len[i], round * 64 + i, 0);
			assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		}
		for (size_t i = 0; i < 64; i++)
			assert_ok(p.queue, len[i]);
		for (size_t i = 0; i < 64; i++)
			pair_assert_pattern(&p, p.remote.sva + i * 32 * KIB, len[i],
					    round * 64 + i);
	}
	pair_close(&p);
}

static void the_completion_says_who_and_how(void **state)
{
	struct dma_seg local;
	struct dma_cr cr;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	local = part(p.local, 0, 77);
	p.queue->cfg.user_ctx = 0xfeedfacecafef00d;
	assert_int_equal(dma_write(p.queue, &p.remote, &local), DMA_STATUS_OK);
	cr = take_cr(p.queue);
	assert_int_equal(cr.status, 0);
	assert_int_equal(cr.user_ctx, 0xfeedfacecafef00d);
	assert_int_equal(cr.completion_len, 77);
	assert_int_equal(cr.local_id, p.queue->queue_id);
	assert_int_equal(cr.remote_id, p.remote.tid & 0xffff);
	assert_true(cr.tpn != 0 && cr.tpn < 1u << 24);
	assert_int_equal(cr.opcode, 0);
	assert_int_equal(cr.flag.value, 0);
	assert_int_equal(cr.rsv_bitmap, 0);
	pair_close(&p);
}

/* Within one process the ranges of an operation may overlap, in either direction. */
static void overlapping_ranges_are_moved_as_they_were(void **state)
{
	static const size_t distances[] = { 1, 9, 64, 4097, 200003, MIB };
	struct dma_seg *own;
	struct pair p;

	(void)state;
	if (suite_path != XTAL_PATH_SELF)
		suite_skip("the memory of two processes does not overlap");
	pair_open(&p, 2 * BIG);
	own = dma_register_seg(p.ctx,
			       &(struct dma_seg_cfg){ .addr = p.remote.sva, .len = p.remote.len });
	assert_non_null(own);
	for (size_t i = 0; i < SIZES * 24; i++) {
		size_t size = sizes[i / 24], distance = distances[i / 4 % 6];
		size_t to = i % 2 ? 3 : 3 + distance, from = i % 2 ? 3 + distance : 3;
		struct dma_seg remote = part(&p.remote, i & 2 ? from : to, size);
		struct dma_seg local = part(own, i & 2 ? to : from, size);

		pair_fill(&p, p.remote.sva + from, size, i);
		assert_int_equal(i & 2 ? dma_read(p.queue, &remote, &local)
				       : dma_write(p.queue, &remote, &local),
				 DMA_STATUS_OK);
		assert_ok(p.queue, size);
		pair_assert_pattern(&p, p.remote.sva + to, size, i);
	}
	dma_unregister_seg(p.ctx, own);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_arrives_whole),
		cmocka_unit_test(every_alignment_arrives_whole),
		cmocka_unit_test(a_segment_is_filled_to_its_edges),
		cmocka_unit_test(the_local_length_counts),
		cmocka_unit_test(segments_are_values),
		cmocka_unit_test(every_kind_of_memory_can_be_reached),
		cmocka_unit_test(long_transfers_arrive_whole),
		cmocka_unit_test(queued_transfers_keep_their_places),
		cmocka_unit_test(overlapping_ranges_are_moved_as_they_were),
		cmocka_unit_test(the_completion_says_who_and_how),
	};

	return suite_run(argc, argv, "transfer", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
