/* SPDX-License-Identifier: MIT */
/*
 * One-sided requests of URMA move exactly the bytes they name: pieces, inline data, notify words,
 * atomics, chains, requests without a record. ctest: timeout=120 hosts adopt pages
 */
#include "lib/urma_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xtal.h"

#define KIB 1024ul

static const uint32_t sizes[] = { 1,   2,    3,    4,    7,     8,     9,     15,
				  16,  17,   63,   64,   65,    200,   255,   256,
				  257, 4095, 4096, 4097, 65535, 65536, 65537, 300001 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void every_size_arrives_whole(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 320 * KIB);
	for (size_t i = 0; i < SIZES; i++) {
		uint64_t there = p.base + 64 + i % 3, seed = i + 1;
		uint8_t *here = p.mem.data + 64 + i % 5;

		pattern_fill(here, sizes[i], seed, 0);
		urma_request_write(&r, &p.peer, there, here, sizes[i]);
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, sizes[i]);
		urma_pair_assert_pattern(&p, there, sizes[i], seed);
		urma_pair_fill(&p, there, sizes[i], seed + 500);
		urma_request_read(&r, &p.peer, there, here, sizes[i]);
		urma_pair_post(&p, &r, i + 1000);
		urma_pair_assert_cr(&p, i + 1000, URMA_CR_SUCCESS, sizes[i]);
		assert_int_equal(pattern_check(here, sizes[i], seed + 500, 0), -1);
	}
	urma_pair_close(&p);
}

static void a_record_says_who_and_whom(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 3; i++) { /* the short way comes to use */
		urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
		urma_pair_post(&p, &r, 7);
		cr = urma_pair_take(&p);
		assert_int_equal(cr.status, URMA_CR_SUCCESS);
		assert_int_equal(cr.opcode, 0xff);
		assert_int_equal(cr.flag.value, 2); /* a jetty's, sent */
		assert_memory_equal(&cr.remote_id, &p.told.jetty, sizeof(cr.remote_id));
		assert_int_equal(cr.imm_data, 0);
	}
	urma_pair_close(&p);
}

/* READs of 8 bytes in a row, of which some stay silent. */
static void the_shortest_reads_say_it_too(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_fill(&p, p.base, 2 * KIB, 5);
	for (unsigned i = 0; i < 200; i++) {
		const uint64_t at = i * 8 + (i % 9 == 0);
		uint8_t *here = p.mem.data + i % 5;
		const bool silent = i % 4 == 1;

		memset(here, 0, 8);
		urma_request_read(&r, &p.peer, p.base + at, here, 8);
		r.wr.flag.bs.complete_enable = !silent;
		urma_pair_post(&p, &r, i);
		if (silent) { /* until the next one */
			urma_request_read(&r, &p.peer, p.base + at, here + 8, 8);
			urma_pair_post(&p, &r, i);
		}
		cr = urma_pair_take(&p);
		assert_int_equal(cr.status, URMA_CR_SUCCESS);
		assert_int_equal(cr.user_ctx, i);
		assert_int_equal(cr.completion_len, 8);
		assert_int_equal(cr.opcode, 0xff);
		assert_int_equal(cr.flag.value, 2);
		assert_memory_equal(&cr.remote_id, &p.told.jetty, sizeof(cr.remote_id));
		assert_int_equal(pattern_check(here, 8, 5, at), -1);
		assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &cr), 0);
	}
	urma_pair_close(&p);
}

/* Several pieces on our side, some of them empty; the remote length does not matter. */
static void pieces_are_gathered_and_scattered(void **state)
{
	const struct urma_pair_attr attr = { .side = { .rnr_retry = 7, .max_sge = 13 },
					     .len = 64 * KIB };
	urma_sge_t pieces[13];
	struct urma_request r;
	struct urma_pair p;
	uint32_t sum = 0;
	uint8_t whole[13 * 200];

	(void)state;
	urma_pair_open_attr(&p, &attr);
	for (uint32_t i = 0; i < 13; i++) {
		uint8_t *at = p.mem.data + i * 1000;

		pieces[i] = (urma_sge_t){ .addr = (uintptr_t)at, .len = i % 4 ? i * 13 : 0 };
		pattern_fill(at, pieces[i].len, 9, sum);
		sum += pieces[i].len;
	}
	urma_request_write(&r, &p.peer, p.base + 5, p.mem.data, 1);
	r.wr.rw.src = (urma_sg_t){ pieces, 13 };
	r.dst[0].len = 1;
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, sum);
	urma_pair_assert_pattern(&p, p.base + 5, sum, 9);

	urma_pair_fill(&p, p.base + 5, sum, 10);
	memset(p.mem.data, 0, 13000);
	urma_request_read(&r, &p.peer, p.base + 5, p.mem.data, 1);
	r.wr.rw.dst = (urma_sg_t){ pieces, 13 };
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_SUCCESS, sum);
	sum = 0;
	for (uint32_t i = 0; i < 13; i++) {
		memcpy(whole + sum, p.mem.data + i * 1000, pieces[i].len);
		sum += pieces[i].len;
	}
	assert_int_equal(pattern_check(whole, sum, 10, 0), -1);

	r.wr.rw.dst.num_sge = 14;
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("max_sge of the queue 13");
	urma_pair_close(&p);
}

static void nothing_is_written_and_completes(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 0);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 0);
	urma_request_read(&r, &p.peer, p.base, p.mem.data, 0);
	r.wr.rw.dst.num_sge = 0;
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_SUCCESS, 0);
	r.wr.opcode = URMA_OPC_NOP;
	urma_pair_post(&p, &r, 3);
	urma_pair_assert_cr(&p, 3, URMA_CR_SUCCESS, 0);
	r.wr.tjetty = NULL;
	urma_pair_post(&p, &r, 4);
	urma_pair_assert_cr(&p, 4, URMA_CR_SUCCESS, 0);
	urma_pair_close(&p);
}

/* The payload belongs to the program again when the call returns, and may lie anywhere. */
static void inline_data_is_copied_by_the_call(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	uint8_t data[256];

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t len = 1 + i * 8;

		pattern_fill(data, sizeof(data), i, 0);
		urma_request_write(&r, &p.peer, p.base + i * 256, data, len);
		r.wr.flag.bs.inline_flag = 1;
		urma_pair_post(&p, &r, i);
		memset(data, 0xee, sizeof(data));
	}
	for (uint32_t i = 0; i < 32; i++) {
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 1 + i * 8);
		urma_pair_assert_pattern(&p, p.base + i * 256, 1 + i * 8, i);
	}
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 257);
	r.wr.flag.bs.inline_flag = 1;
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("257 bytes inline, the limit of the queue is 256");
	urma_pair_close(&p);
}

static void unregistered_memory_is_good_on_our_side(void **state)
{
	uint8_t *mine = malloc(100000);
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 128 * KIB);
	pattern_fill(mine, 100000, 3, 0);
	urma_request_write(&r, &p.peer, p.base, mine, 100000);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 100000);
	urma_pair_assert_pattern(&p, p.base, 100000, 3);
	urma_pair_fill(&p, p.base, 100000, 4);
	urma_request_read(&r, &p.peer, p.base, mine, 100000);
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_SUCCESS, 100000);
	assert_int_equal(pattern_check(mine, 100000, 4, 0), -1);
	urma_pair_close(&p);
	free(mine);
}

static void a_notify_word_follows_the_data(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	uint64_t word;

	(void)state;
	urma_pair_open(&p, 128 * KIB);
	for (uint32_t i = 0; i < SIZES && sizes[i] <= 65537; i++) {
		pattern_fill(p.mem.data, sizes[i], i, 0);
		urma_request_write(&r, &p.peer, p.base + 64, p.mem.data, sizes[i]);
		r.wr.opcode = URMA_OPC_WRITE_NOTIFY;
		r.dst[1] = (urma_sge_t){ .addr = p.base, .len = 8, .tseg = p.peer.seg };
		r.wr.rw.dst.num_sge = 2;
		r.wr.rw.notify_data = UINT64_C(0x1122334455667700) + i;
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, sizes[i]);
		urma_pair_assert_pattern(&p, p.base + 64, sizes[i], i);
		urma_pair_peek(&p, p.base, &word, sizeof(word));
		assert_true(word == UINT64_C(0x1122334455667700) + i);
	}
	r.wr.rw.dst.num_sge = 1;
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("it needs 2");
	urma_pair_close(&p);
}

static void compare_and_swap_compares_and_swaps(void **state)
{
	static const uint32_t widths[] = { 4, 8 };
	uint64_t seen, old[2], want[2] = { 5, 6 }, swap[2] = { 50, 60 };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t len = widths[i];
		uint64_t start = 0xaaaaaaaa00000005 + (len == 8),
			 mask = len == 4 ? UINT32_MAX : UINT64_MAX;

		urma_pair_poke(&p, p.base + 64, &start, 8);
		old[0] = 0;
		urma_request_cas(&r, &p.peer, p.base + 64, old, len, start & mask, 7777);
		urma_pair_post(&p, &r, 1);
		urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, len);
		assert_true(old[0] == (start & mask));
		urma_pair_peek(&p, p.base + 64, &seen, 8);
		assert_true(seen == ((start & ~mask) | 7777));
		/* It has another value now: nothing happens, but for the old value. */
		urma_request_cas(&r, &p.peer, p.base + 64, old, len, start & mask, 8888);
		urma_pair_post(&p, &r, 2);
		urma_pair_assert_cr(&p, 2, URMA_CR_SUCCESS, len);
		assert_int_equal(old[0], 7777);
		urma_pair_peek(&p, p.base + 64, &seen, 8);
		assert_true(seen == ((start & ~mask) | 7777));
	}
	urma_pair_poke(&p, p.base + 64, want, 16);
	urma_request_cas(&r, &p.peer, p.base + 64, old, 16, (uintptr_t)want, (uintptr_t)swap);
	urma_pair_post(&p, &r, 3);
	urma_pair_assert_cr(&p, 3, URMA_CR_SUCCESS, 16);
	assert_memory_equal(old, want, 16);
	urma_pair_peek(&p, p.base + 64, old, 16);
	assert_memory_equal(old, swap, 16);
	urma_pair_close(&p);
}

static uint64_t combine(urma_opcode_t opcode, uint64_t a, uint64_t b)
{
	switch ((int)opcode) {
	case URMA_OPC_FADD:
		return a + b;
	case URMA_OPC_FSUB:
		return a - b;
	case URMA_OPC_FAND:
		return a & b;
	case URMA_OPC_FOR:
		return a | b;
	case URMA_OPC_FXOR:
		return a ^ b;
	}
	return b; /* SWAP */
}

static void fetching_atomics_return_the_old_value(void **state)
{
	static const urma_opcode_t opcodes[] = { URMA_OPC_FADD, URMA_OPC_FSUB, URMA_OPC_FAND,
						 URMA_OPC_FOR,  URMA_OPC_FXOR, URMA_OPC_SWAP };
	const uint64_t operand = 0x0f0f0f0f12345678;
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 12; i++) {
		urma_opcode_t opcode = opcodes[i / 2];
		uint32_t len = i % 2 ? 8 : 4;
		uint64_t mask = len == 4 ? UINT32_MAX : UINT64_MAX;
		uint64_t start = 0xfedcba9876543210, *old = (uint64_t *)(void *)p.mem.data, seen;

		urma_pair_poke(&p, p.base + 128, &start, 8);
		*old = 0;
		urma_request_fetch(&r, &p.peer, opcode, p.base + 128, old, len, operand);
		if (opcode == URMA_OPC_SWAP) {
			r.wr.cas.cmp_data = 1; /* not looked at */
			r.wr.cas.swap_data = operand;
		}
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, len);
		assert_true(*old == (start & mask));
		urma_pair_peek(&p, p.base + 128, &seen, 8);
		assert_true(seen == ((start & ~mask) | (combine(opcode, start, operand) & mask)));
	}
	urma_pair_close(&p);
}

static void many_additions_add_up(void **state)
{
	const uint64_t rounds = suite_scale(2000);
	uint64_t seen, zero = 0, done = 0;
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_poke(&p, p.base, &zero, 8);
	for (uint64_t i = 0; i < rounds; i++) {
		urma_request_fetch(&r, &p.peer, URMA_OPC_FADD, p.base, p.mem.data, 8, 3);
		while (urma_side_post(&p.side, &r) == URMA_ENOMEM) {
			cr = urma_pair_take(&p);
			assert_int_equal(cr.status, URMA_CR_SUCCESS);
			done++;
		}
	}
	for (; done < rounds; done++)
		urma_pair_assert_cr(&p, 0, URMA_CR_SUCCESS, 8);
	urma_pair_peek(&p, p.base, &seen, 8);
	assert_int_equal(seen, 3 * rounds);
	urma_pair_close(&p);
}

/* ---- Chains, and requests without a record ---- */

static void the_first_bad_request_of_a_chain_is_named(void **state)
{
	struct urma_request r[4];
	urma_jfs_wr_t *bad = NULL;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 4; i++) {
		urma_request_write(&r[i], &p.peer, p.base + i * 64, p.mem.data, 16);
		r[i].wr.user_ctx = 100 + i;
		r[i].wr.next = i < 3 ? &r[i + 1].wr : NULL;
	}
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, &r[0].wr, &bad), URMA_SUCCESS);
	assert_null(bad); /* not touched */
	for (unsigned i = 0; i < 4; i++)
		urma_pair_assert_cr(&p, 100 + i, URMA_CR_SUCCESS, 16);
	r[2].wr.opcode = URMA_OPC_LAST;
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, &r[0].wr, &bad), URMA_EINVAL);
	assert_ptr_equal(bad, &r[2].wr);
	urma_assert_refused("opcode 0x81 is not supported");
	urma_pair_assert_cr(&p, 100, URMA_CR_SUCCESS, 16);
	urma_pair_assert_cr(&p, 101, URMA_CR_SUCCESS, 16);
	suite_sleep_us(2000);
	assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &(urma_cr_t){ 0 }), 0);
	urma_pair_close(&p);
}

static void refuse(struct urma_pair *p, struct urma_request *r, const char *words)
{
	urma_jfs_wr_t *bad = NULL;

	assert_int_equal(urma_post_jetty_send_wr(p->side.jetty, &r->wr, &bad), URMA_EINVAL);
	assert_ptr_equal(bad, &r->wr);
	urma_assert_refused(words);
}

static void malformed_requests_are_refused_in_words(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_jfs_wr_t *bad;
	char junk[256] = { 0 };

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	assert_int_equal(urma_post_jetty_send_wr(NULL, &r.wr, &bad), URMA_EINVAL);
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, NULL, &bad), URMA_EINVAL);
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, &r.wr, NULL), URMA_EINVAL);
	r.wr.tjetty = NULL;
	refuse(&p, &r, "tjetty is NULL");
	r.wr.tjetty = (urma_target_jetty_t *)junk;
	refuse(&p, &r, "is no imported jetty");
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	r.dst[0].tseg = NULL;
	refuse(&p, &r, "neither tseg nor user_tseg");
	r.dst[0].tseg = (urma_target_seg_t *)junk;
	refuse(&p, &r, "must be imported with urma_import_seg");
	r.wr.rw.dst.num_sge = 0;
	refuse(&p, &r, "there is no remote piece");
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	r.wr.rw.src.sge = NULL;
	refuse(&p, &r, "sge NULL");
	urma_request_fetch(&r, &p.peer, URMA_OPC_FADD, p.base, p.mem.data, 16, 1);
	refuse(&p, &r, "src has 16 bytes; 4 and 8 are possible");
	urma_request_cas(&r, &p.peer, p.base, p.mem.data, 2, 1, 1);
	refuse(&p, &r, "src has 2 bytes; 4, 8 and 16 are possible");
	urma_request_cas(&r, &p.peer, p.base, p.mem.data, 16, 0, (uintptr_t)junk);
	refuse(&p, &r, "cmp_addr is NULL");
	urma_request_cas(&r, &p.peer, p.base, p.mem.data, 8, 1, 1);
	r.wr.cas.src = NULL;
	refuse(&p, &r, "src is NULL");
	r.wr.opcode = URMA_OPC_FLUSH_DMA;
	refuse(&p, &r, "opcode 0x80 is not supported");
	urma_pair_close(&p);
}

static void a_full_queue_says_so(void **state)
{
	struct urma_pair_attr attr = { .side = { .rnr_retry = 7, .depth = 4 }, .len = 4 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 16);
	for (unsigned i = 0; i < 4; i++)
		urma_pair_post(&p, &r, i);
	assert_int_equal(urma_side_post(&p.side, &r), URMA_ENOMEM);
	urma_assert_refused("is full, 4 requests");
	urma_pair_assert_cr(&p, 0, URMA_CR_SUCCESS, 16);
	urma_pair_post(&p, &r, 4);
	for (unsigned i = 1; i < 5; i++)
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 16);
	urma_pair_close(&p);
}

/* As perftest does it: one record in a hundred requests, on a queue of 128. */
static void one_record_in_a_hundred_frees_them_all(void **state)
{
	struct urma_pair_attr attr = { .side = { .rnr_retry = 7, .depth = 128 }, .len = 64 * KIB };
	const unsigned rounds = (unsigned)suite_scale(20);
	struct urma_request r;
	struct urma_pair p;
	unsigned i = 0;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned k = 1; k <= 100; k++, i++) {
			uint32_t len = i % 3 ? 8 : 100;

			memset(p.mem.data + i % 100 * 128, (int)i, len);
			urma_request_write(&r, &p.peer, p.base + i % 100 * 128,
					   p.mem.data + i % 100 * 128, len);
			r.wr.flag.bs.complete_enable = k == 100;
			urma_pair_post(&p, &r, i);
		}
		urma_pair_assert_cr(&p, i - 1, URMA_CR_SUCCESS, (i - 1) % 3 ? 8 : 100);
		assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &(urma_cr_t){ 0 }), 0);
	}
	urma_pair_close(&p);
}

static void a_failure_makes_a_record_in_any_case(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 16);
	r.wr.flag.bs.complete_enable = 0;
	urma_pair_post(&p, &r, 1);
	urma_request_write(&r, &p.peer, p.base + 4 * KIB - 8, p.mem.data, 16); /* beyond the end */
	r.wr.flag.bs.complete_enable = 0;
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	urma_pair_close(&p);
}

/* ---- Naming segments ---- */

static void a_segment_without_an_owner_is_the_targets(void **state)
{
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t token = { URMA_SIDE_TOKEN };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer vague;
	urma_seg_t seg;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	vague = p.peer;
	seg = p.told.seg;
	seg.ubva.uasid = 0;
	memset(&seg.ubva.eid, 0, sizeof(seg.ubva.eid));
	vague.seg = urma_import_seg(p.side.ctx, &seg, &token, 0, flag);
	pattern_fill(p.mem.data, 16, 1, 0);
	urma_request_write(&r, &vague, p.base, p.mem.data, 16);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 16);
	urma_pair_assert_pattern(&p, p.base, 16, 1);
	assert_int_equal(urma_unimport_seg(vague.seg), URMA_SUCCESS);
	urma_pair_close(&p);
}

/* Programs that exchange ids alone have told the port with them. */
static void an_id_alone_finds_its_owner(void **state)
{
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t token = { URMA_SIDE_TOKEN };
	urma_rjetty_t told = { .trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer vague;
	urma_seg_t seg;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	told.jetty_id.eid = p.told.jetty.eid;
	told.jetty_id.id = p.told.jetty.id;
	vague.jetty = urma_import_jetty(p.side.ctx, &told, &token);
	seg = p.told.seg;
	seg.ubva.uasid = 0;
	vague.seg = urma_import_seg(p.side.ctx, &seg, &token, 0, flag);
	pattern_fill(p.mem.data, 16, 2, 0);
	urma_request_write(&r, &vague, p.base, p.mem.data, 16);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 16);
	urma_pair_assert_pattern(&p, p.base, 16, 2);
	assert_int_equal(urma_unimport_seg(vague.seg), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(vague.jetty), URMA_SUCCESS);
	urma_pair_close(&p);
}

static void a_segment_need_not_be_imported(void **state)
{
	urma_user_tseg_t plain;
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	plain = (urma_user_tseg_t){ .attr = p.told.seg.attr,
				    .token_id = p.told.seg.token_id,
				    .token_value = { URMA_SIDE_TOKEN } };
	pattern_fill(p.mem.data, 16, 3, 0);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 16);
	r.dst[0].tseg = NULL;
	r.dst[0].user_tseg = &plain;
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 16);
	urma_pair_assert_pattern(&p, p.base, 16, 3);
	plain.token_value.token++;
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	urma_pair_close(&p);
}

static void a_bound_jetty_needs_no_target(void **state)
{
	struct urma_pair_attr attr = { .side = { .mode = URMA_TM_RC, .rnr_retry = 7 },
				       .len = 4 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	pattern_fill(p.mem.data, 16, 4, 0);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 16);
	r.wr.tjetty = NULL;
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 16);
	urma_pair_assert_pattern(&p, p.base, 16, 4);
	assert_int_equal(urma_unbind_jetty(p.side.jetty), URMA_SUCCESS);
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("is RC and not bound");
	urma_pair_close(&p);
}

static void send_queues_do_what_jetties_do(void **state)
{
	urma_jfs_wr_flag_t flag = { .bs.complete_enable = 1 };
	struct urma_pair p;
	urma_jfs_cfg_t cfg;
	urma_jfs_t *jfs;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	cfg = p.side.jetty->jetty_cfg.jfs_cfg;
	jfs = urma_create_jfs(p.side.ctx, &cfg);
	assert_non_null(jfs);
	pattern_fill(p.mem.data, 100, 5, 0);
	assert_int_equal(urma_write(jfs, p.peer.jfr, p.peer.seg, p.side.seg, p.base,
				    (uintptr_t)p.mem.data, 100, flag, 61),
			 URMA_SUCCESS);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.user_ctx, 61);
	assert_int_equal(cr.flag.value, 0); /* neither a jetty's nor received */
	assert_int_equal(cr.local_id, jfs->jfs_id.id);
	assert_ptr_equal((void *)cr.user_data, jfs);
	assert_memory_equal(&cr.remote_id, &p.told.jfr, sizeof(cr.remote_id));
	urma_pair_assert_pattern(&p, p.base, 100, 5);
	assert_int_equal(urma_read(jfs, p.peer.jfr, p.side.seg, p.peer.seg,
				   (uintptr_t)p.mem.data + 200, p.base, 100, flag, 62),
			 URMA_SUCCESS);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(pattern_check(p.mem.data + 200, 100, 5, 0), -1);
	assert_int_equal(urma_write(NULL, p.peer.jfr, p.peer.seg, p.side.seg, 1, 1, 1, flag, 1),
			 URMA_EINVAL);
	assert_int_equal(urma_write(jfs, p.peer.jfr, p.peer.seg, NULL, 1, 1, 1, flag, 1),
			 URMA_EINVAL);
	assert_int_equal(urma_read(jfs, p.peer.jfr, p.side.seg, NULL, 1, 1, 1, flag, 1),
			 URMA_EINVAL);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_arrives_whole),
		cmocka_unit_test(a_record_says_who_and_whom),
		cmocka_unit_test(the_shortest_reads_say_it_too),
		cmocka_unit_test(pieces_are_gathered_and_scattered),
		cmocka_unit_test(nothing_is_written_and_completes),
		cmocka_unit_test(inline_data_is_copied_by_the_call),
		cmocka_unit_test(unregistered_memory_is_good_on_our_side),
		cmocka_unit_test(a_notify_word_follows_the_data),
		cmocka_unit_test(compare_and_swap_compares_and_swaps),
		cmocka_unit_test(fetching_atomics_return_the_old_value),
		cmocka_unit_test(many_additions_add_up),
		cmocka_unit_test(the_first_bad_request_of_a_chain_is_named),
		cmocka_unit_test(malformed_requests_are_refused_in_words),
		cmocka_unit_test(a_full_queue_says_so),
		cmocka_unit_test(one_record_in_a_hundred_frees_them_all),
		cmocka_unit_test(a_failure_makes_a_record_in_any_case),
		cmocka_unit_test(a_segment_without_an_owner_is_the_targets),
		cmocka_unit_test(an_id_alone_finds_its_owner),
		cmocka_unit_test(a_segment_need_not_be_imported),
		cmocka_unit_test(a_bound_jetty_needs_no_target),
		cmocka_unit_test(send_queues_do_what_jetties_do),
	};

	return suite_run(argc, argv, "urma_onesided", tests, sizeof(tests) / sizeof(*tests), NULL);
}
