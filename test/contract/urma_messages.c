/* SPDX-License-Identifier: MIT */
/*
 * Messages of URMA: sends, immediates, invalidation and WRITE_IMM arrive once, in order, in the
 * buffers that were posted for them; a receiver that is not ready is waited for.
 * ctest: timeout=120 hosts adopt
 */
#include "lib/urma_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "xtal.h"

#define KIB 1024ul

/* Where receives of len bytes land at the owner: the second half of its memory. */
static uint64_t inbox(const struct urma_pair *p)
{
	return p->base + p->told.seg.len / 2;
}

/* The owner's record of a message that we sent. */
static urma_cr_t assert_received(struct urma_pair *p, uint64_t user, urma_cr_opcode_t opcode,
				 uint32_t len)
{
	urma_cr_t cr = urma_pair_owner_take(p);

	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.opcode, opcode);
	assert_int_equal(cr.user_ctx, user);
	assert_int_equal(cr.completion_len, len);
	assert_int_equal(cr.flag.bs.s_r, 1);
	assert_int_equal(cr.flag.bs.jetty, 1);
	assert_int_equal(cr.local_id, p->told.jetty.id);
	assert_memory_equal(&cr.remote_id, &p->side.jetty->jetty_id, sizeof(cr.remote_id));
	return cr;
}

static void every_length_arrives_whole(void **state)
{
	static const uint32_t sizes[] = { 1,   2,   3,   7,    8,    9,    63,    64,
					  255, 256, 257, 4095, 4096, 4097, 65537, 300001 };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 640 * KIB);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pattern_fill(p.mem.data, sizes[i], i, 0);
		urma_pair_receive(&p, inbox(&p), sizes[i] + i % 2, 1, 70 + i);
		urma_request_send(&r, &p.peer, p.mem.data, sizes[i]);
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, sizes[i]);
		assert_received(&p, 70 + i, URMA_CR_OPC_SEND, sizes[i]);
		urma_pair_assert_pattern(&p, inbox(&p), sizes[i], i);
	}
	urma_pair_close(&p);
}

static void an_immediate_value_has_64_bits(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_pair_receive(&p, inbox(&p), 64, 2, 10);
	urma_request_send(&r, &p.peer, p.mem.data, 64);
	r.wr.opcode = URMA_OPC_SEND_IMM;
	r.wr.send.imm_data = 0x123456789abcdef0;
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 64);
	assert_true(assert_received(&p, 10, URMA_CR_OPC_SEND_WITH_IMM, 64).imm_data ==
		    0x123456789abcdef0);
	/* Nothing but the value. */
	r.wr.send.src.num_sge = 0;
	r.wr.send.imm_data = 7;
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 2, URMA_CR_SUCCESS, 0);
	assert_int_equal(assert_received(&p, 11, URMA_CR_OPC_SEND_WITH_IMM, 0).imm_data, 7);
	urma_pair_close(&p);
}

static void a_write_with_an_immediate_leaves_the_buffer_alone(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 256 * KIB);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t sizes[] = { 1, 8, 4096, 100000 };

		urma_pair_fill(&p, inbox(&p), 64, 90);
		urma_pair_receive(&p, inbox(&p), 64, 1, 10 + i);
		pattern_fill(p.mem.data, sizes[i], i, 0);
		urma_request_write(&r, &p.peer, p.base, p.mem.data, sizes[i]);
		r.wr.opcode = URMA_OPC_WRITE_IMM;
		r.dst[0].len = sizes[i] + 100; /* does not matter */
		r.wr.rw.notify_data = 0xfedcba9876543210 + i;
		r.wr.flag.bs.inline_flag = i == 1;
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, sizes[i]);
		assert_true(assert_received(&p, 10 + i, URMA_CR_OPC_WRITE_WITH_IMM, sizes[i])
				    .imm_data == 0xfedcba9876543210 + i);
		urma_pair_assert_pattern(&p, p.base, sizes[i], i);
		urma_pair_assert_pattern(&p, inbox(&p), 64, 90);
	}
	urma_pair_close(&p);
}

/* Pieces on both sides, of different lengths. */
static void pieces_are_gathered_and_scattered(void **state)
{
	urma_sge_t pieces[4];
	struct urma_request r;
	struct urma_pair p;
	uint32_t sum = 0;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	for (uint32_t i = 0; i < 4; i++) {
		pieces[i] = (urma_sge_t){ .addr = (uintptr_t)p.mem.data + i * 500,
					  .len = i == 2 ? 0 : 100 + i };
		pattern_fill(p.mem.data + i * 500, pieces[i].len, 4, sum);
		sum += pieces[i].len;
	}
	urma_pair_receive(&p, inbox(&p), 1000, 1, 5);
	urma_request_send(&r, &p.peer, p.mem.data, 1);
	r.wr.send.src = (urma_sg_t){ pieces, 4 };
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, sum);
	assert_received(&p, 5, URMA_CR_OPC_SEND, sum);
	urma_pair_assert_pattern(&p, inbox(&p), sum, 4);
	urma_pair_close(&p);
}

static void inline_messages_are_copied_by_the_call(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	uint8_t data[256];

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	urma_pair_receive(&p, inbox(&p), 256, 32, 100);
	for (uint32_t i = 0; i < 32; i++) {
		pattern_fill(data, sizeof(data), i, 0);
		urma_request_send(&r, &p.peer, data, 8 + i * 8);
		r.wr.flag.bs.inline_flag = 1;
		urma_pair_post(&p, &r, i);
		memset(data, 0xee, sizeof(data));
	}
	for (uint32_t i = 0; i < 32; i++) {
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 8 + i * 8);
		assert_received(&p, 100 + i, URMA_CR_OPC_SEND, 8 + i * 8);
		urma_pair_assert_pattern(&p, inbox(&p) + i * 256, 8 + i * 8, i);
	}
	urma_pair_close(&p);
}

/* Writes and messages of one queue happen in the order of posting. */
static void a_message_follows_the_writes_before_it(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	uint64_t i, seen;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_pair_receive(&p, inbox(&p), 64, 16, 0);
	for (i = 1; i <= 16; i++) {
		urma_request_write(&r, &p.peer, p.base, &i, 8);
		r.wr.flag.bs.inline_flag = 1;
		r.wr.flag.bs.complete_enable = 0;
		urma_pair_post(&p, &r, i);
		urma_request_send(&r, &p.peer, &i, 8);
		r.wr.flag.bs.inline_flag = 1;
		urma_pair_post(&p, &r, i);
		assert_received(&p, i - 1, URMA_CR_OPC_SEND, 8);
		urma_pair_peek(&p, p.base, &seen, 8);
		assert_int_equal(seen, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 8);
	}
	urma_pair_close(&p);
}

static void a_fenced_message_takes_what_a_read_brings(void **state)
{
	static const uint32_t lengths[] = { 8, 16, 17, 300, 20000 };
	struct urma_request r, m;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	urma_pair_receive(&p, inbox(&p), 20000, 1, 0);
	for (uint32_t i = 0; i < suite_scale(100); i++) {
		uint32_t len = lengths[i % 5];

		memset(p.mem.data, 0, len);
		urma_pair_fill(&p, p.base, len, i);
		urma_request_read(&r, &p.peer, p.base, p.mem.data, len);
		urma_request_send(&m, &p.peer, p.mem.data, len);
		r.wr.next = &m.wr;
		m.wr.flag.bs.fence = 1;
		r.wr.flag.bs.complete_enable = 0;
		urma_pair_post(&p, &r, i);
		assert_received(&p, i, URMA_CR_OPC_SEND, len);
		urma_pair_assert_pattern(&p, inbox(&p), len, i);
		assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		urma_pair_receive(&p, inbox(&p), 20000, 1, i + 1);
	}
	urma_pair_close(&p);
}

/* ---- Not ready ---- */

static void a_message_waits_for_its_buffer(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	for (uint32_t i = 0; i < 8; i++) {
		memset(p.mem.data + i * 8, (int)i + 1, 8);
		urma_request_send(&r, &p.peer, p.mem.data + i * 8, 8);
		urma_pair_post(&p, &r, i);
	}
	suite_sleep_us(30000);
	assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &cr), 0);
	urma_pair_receive(&p, inbox(&p), 8, 8, 50);
	for (uint32_t i = 0; i < 8; i++) {
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 8);
		assert_received(&p, 50 + i, URMA_CR_OPC_SEND, 8);
	}
	for (uint32_t i = 0; i < 8; i++) {
		uint8_t got[8], want[8];

		urma_pair_peek(&p, inbox(&p) + i * 8, got, 8);
		memset(want, (int)i + 1, 8);
		assert_memory_equal(got, want, 8);
	}
	urma_pair_close(&p);
}

/* Programs take the record of an empty request for the sign that all before it is over. */
static void what_is_empty_waits_in_its_turn(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_request_send(&r, &p.peer, p.mem.data, 8);
	r.wr.flag.bs.complete_enable = 0;
	urma_pair_post(&p, &r, 0);
	suite_sleep_us(30000); /* it is known that there is no buffer */
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 0);
	urma_pair_post(&p, &r, 1);
	urma_request_read(&r, &p.peer, p.base, p.mem.data, 0);
	urma_pair_post(&p, &r, 2);
	r.wr.opcode = URMA_OPC_NOP;
	urma_pair_post(&p, &r, 3);
	r.wr.tjetty = NULL;
	urma_pair_post(&p, &r, 4);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &cr), 0);
		suite_sleep_us(200);
	}
	urma_pair_receive(&p, inbox(&p), 8, 1, 50);
	for (uint32_t i = 1; i <= 4; i++)
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 0);
	assert_received(&p, 50, URMA_CR_OPC_SEND, 8);
	urma_pair_close(&p);
}

static void patience_may_end(void **state)
{
	struct urma_pair_attr attr = { .side = { .rnr_retry = 3, .min_rnr_timer = 20 },
				       .len = 8 * KIB };
	struct urma_request r;
	struct urma_pair p;
	uint64_t before;
	urma_cr_t cr;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	urma_request_send(&r, &p.peer, p.mem.data, 8);
	before = suite_now_ms();
	urma_pair_post(&p, &r, 1);
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 1, URMA_CR_RNR_RETRY_CNT_EXC_ERR, 0);
	assert_true(suite_now_ms() - before >= 30); /* what the receiver asks for */
	urma_pair_assert_cr(&p, 2, URMA_CR_WR_FLUSH_ERR, 0);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
	urma_pair_close(&p);
}

/* ---- Refusals ---- */

static void too_long_a_message_uses_up_its_buffer(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_pair_receive(&p, inbox(&p), 16, 1, 5);
	urma_request_send(&r, &p.peer, p.mem.data, 17);
	urma_pair_post(&p, &r, 1);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.status, URMA_CR_REM_UNSUPPORTED_REQ_ERR);
	cr = urma_pair_owner_take(&p);
	assert_int_equal(cr.status, URMA_CR_LOC_LEN_ERR);
	assert_int_equal(cr.user_ctx, 5);
	assert_int_equal(cr.flag.bs.s_r, 1);
	urma_pair_close(&p);
}

static void expect_refusal(struct urma_pair *p, const struct urma_peer *to)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE };
	struct urma_request r;
	urma_cr_t cr;

	urma_request_send(&r, to, p->mem.data, 8);
	urma_pair_post(p, &r, 9);
	urma_pair_assert_cr(p, 9, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	cr = urma_pair_take(p);
	assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
	attr.state = URMA_JETTY_STATE_RESET;
	assert_int_equal(urma_modify_jetty(p->side.jetty, &attr), URMA_SUCCESS);
	attr.state = URMA_JETTY_STATE_READY;
	assert_int_equal(urma_modify_jetty(p->side.jetty, &attr), URMA_SUCCESS);
}

static int64_t owner_records(void *args)
{
	struct urma_ask *a = args;

	return urma_poll_jfc(a->owner->side.jfc, 1, &a->cr);
}

/* Requests that fail, with messages behind them that are on their way already. */
static void fail_in_front_of_messages(unsigned kind)
{
	enum {
		BEHIND = 12
	};
	struct urma_request first, r[BEHIND];
	struct urma_ask a = { 0 };
	unsigned flushed = 0;
	urma_jfs_wr_t *bad;
	struct urma_pair p;
	urma_cr_t cr;

	urma_pair_open(&p, 64 * KIB);
	urma_pair_receive(&p, inbox(&p), 64, BEHIND + 2, 40);
	if (kind == 0)
		urma_request_send(&first, &p.peer, p.mem.data, 65); /* too long */
	else if (kind == 1)
		urma_request_write(&first, &p.peer, p.base + 64 * KIB, p.mem.data, 8);
	else if (kind == 2)
		urma_request_read(&first, &p.peer, p.base + 64 * KIB, p.mem.data, 8);
	else if (kind == 3)
		urma_request_cas(&first, &p.peer, p.base + 3, p.mem.data, 8, 0, 1);
	else
		urma_request_write(&first, &p.peer, p.base + 64 * KIB, p.mem.data, 8);
	if (kind == 4)
		first.wr.opcode = URMA_OPC_WRITE_IMM;
	first.wr.user_ctx = 100;
	first.wr.next = &r[0].wr;
	for (unsigned i = 0; i < BEHIND; i++) {
		urma_request_send(&r[i], &p.peer, p.mem.data, 32);
		r[i].wr.user_ctx = i;
		r[i].wr.next = i + 1 < BEHIND ? &r[i + 1].wr : NULL;
	}
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, &first.wr, &bad), URMA_SUCCESS);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.user_ctx, 100);
	assert_int_not_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_not_equal(cr.status, URMA_CR_WR_FLUSH_ERR);
	/* What was posted before the failure is flushed; what came later waits to be flushed. */
	while (cr = urma_pair_take(&p), cr.status != URMA_CR_WR_FLUSH_ERR_DONE) {
		assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR);
		assert_int_equal(cr.user_ctx, flushed++);
	}
	while (flushed < BEHIND) {
		assert_int_equal(urma_flush_jetty(p.side.jetty, 1, &cr), 1);
		assert_int_equal(cr.user_ctx, flushed++);
	}
	suite_sleep_us(20000);
	if (kind == 0) { /* this one used up its buffer */
		cr = urma_pair_owner_take(&p);
		assert_int_equal(cr.user_ctx, 40);
		assert_int_equal(cr.status, URMA_CR_LOC_LEN_ERR);
	}
	assert_int_equal(urma_pair_ask(&p, owner_records, &a), 0);
	urma_pair_close(&p);
}

/* A receiver that saw a later message would think that the earlier ones were there too. */
static void nothing_overtakes_a_failure(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 5; kind++)
		fail_in_front_of_messages(kind);
}

static void token_and_id_must_be_right(void **state)
{
	urma_token_t right = { URMA_SIDE_TOKEN }, wrong = { URMA_SIDE_TOKEN ^ 1 };
	urma_rjetty_t told = { .trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	struct urma_peer other = { 0 };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_pair_receive(&p, inbox(&p), 64, 1, 3);
	told.jetty_id = p.told.jetty;
	other.jetty = urma_import_jetty(p.side.ctx, &told, &wrong);
	expect_refusal(&p, &other);
	assert_int_equal(urma_unimport_jetty(other.jetty), URMA_SUCCESS);
	told.jetty_id.id += 77;
	other.jetty = urma_import_jetty(p.side.ctx, &told, &right);
	expect_refusal(&p, &other);
	assert_int_equal(urma_unimport_jetty(other.jetty), URMA_SUCCESS);
	/* None of them has used up the buffer. */
	urma_request_send(&r, &p.peer, p.mem.data, 8);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 8);
	assert_received(&p, 3, URMA_CR_OPC_SEND, 8);
	urma_pair_close(&p);
}

/* ---- Other receivers ---- */

static void send_queues_reach_receive_queues(void **state)
{
	urma_jfs_wr_flag_t flag = { .bs.complete_enable = 1 };
	struct urma_pair p;
	urma_jfs_cfg_t cfg;
	urma_jfs_t *jfs;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	cfg = p.side.jetty->jetty_cfg.jfs_cfg;
	jfs = urma_create_jfs(p.side.ctx, &cfg);
	urma_pair_receive(&p, inbox(&p), 64, 1, 3);
	pattern_fill(p.mem.data, 64, 8, 0);
	assert_int_equal(urma_send(jfs, p.peer.jfr, p.side.seg, (uintptr_t)p.mem.data, 64, flag, 4),
			 URMA_SUCCESS);
	cr = urma_pair_take(&p);
	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.local_id, jfs->jfs_id.id);
	cr = urma_pair_owner_take(&p);
	assert_int_equal(cr.status, URMA_CR_SUCCESS);
	assert_int_equal(cr.flag.bs.s_r, 1);
	assert_int_equal(cr.flag.bs.jetty, 0);
	assert_int_equal(cr.local_id, p.told.jfr.id);
	assert_memory_equal(&cr.remote_id, &jfs->jfs_id, sizeof(cr.remote_id));
	urma_pair_assert_pattern(&p, inbox(&p), 64, 8);
	assert_int_equal(urma_send(jfs, NULL, p.side.seg, 1, 1, flag, 1), URMA_EINVAL);
	assert_int_equal(urma_send(jfs, p.peer.jfr, NULL, 1, 1, flag, 1), URMA_EINVAL);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	urma_pair_close(&p);
}

/* One side only, from here on: a queue sends to queues of its own context. */
static void many_senders_share_one_receive_queue(void **state)
{
	enum {
		SENDERS = 64,
		EACH = 4
	};
	uint8_t seen[SENDERS] = { 0 };
	urma_jetty_t *senders[SENDERS];
	uint32_t got = 0;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	for (unsigned i = 0; i < SENDERS; i++) {
		urma_jetty_cfg_t cfg = p.side.jetty->jetty_cfg;

		senders[i] = urma_create_jetty(p.side.ctx, &cfg);
		assert_non_null(senders[i]);
	}
	for (unsigned k = 0; k < EACH; k++) {
		urma_pair_receive(&p, inbox(&p), 8, SENDERS, 0);
		for (unsigned i = 0; i < SENDERS; i++) {
			struct urma_request r;
			urma_jfs_wr_t *bad;
			uint64_t value = i;

			urma_request_send(&r, &p.peer, &value, 8);
			r.wr.flag.bs.inline_flag = 1;
			r.wr.flag.bs.complete_enable = 0;
			assert_int_equal(urma_post_jetty_send_wr(senders[i], &r.wr, &bad), 0);
		}
		for (unsigned i = 0; i < SENDERS; i++) {
			urma_cr_t cr = urma_pair_owner_take(&p);
			unsigned who = 0;

			assert_int_equal(cr.status, URMA_CR_SUCCESS);
			assert_int_equal(cr.user_ctx, i); /* buffers in the order of posting */
			while (who < SENDERS && senders[who]->jetty_id.id != cr.remote_id.id)
				who++;
			assert_true(who < SENDERS);
			seen[who]++;
			got++;
		}
	}
	assert_int_equal(got, SENDERS * EACH);
	for (unsigned i = 0; i < SENDERS; i++) {
		assert_int_equal(seen[i], EACH);
		assert_int_equal(urma_delete_jetty(senders[i]), URMA_SUCCESS);
	}
	urma_pair_close(&p);
}

static void connected_jetties_exchange_messages(void **state)
{
	struct urma_pair_attr attr = { .side = { .mode = URMA_TM_RC, .rnr_retry = 7 },
				       .len = 8 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	for (uint32_t i = 0; i < 20; i++) {
		urma_pair_receive(&p, inbox(&p), 64, 1, i);
		urma_request_send(&r, &p.peer, p.mem.data, 40);
		r.wr.tjetty = NULL;
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 40);
		assert_received(&p, i, URMA_CR_OPC_SEND, 40);
	}
	urma_pair_close(&p);
}

static void datagrams_carry_messages_only(void **state)
{
	struct urma_pair_attr attr = { .side = { .mode = URMA_TM_UM, .rnr_retry = 7 },
				       .len = 8 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	urma_pair_receive(&p, inbox(&p), 64, 1, 2);
	urma_request_send(&r, &p.peer, p.mem.data, 40);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 40);
	assert_received(&p, 2, URMA_CR_OPC_SEND, 40);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("UM has SEND and SEND_IMM only");
	urma_pair_close(&p);
}

static void a_group_is_one_of_its_jetties(void **state)
{
	urma_jetty_grp_cfg_t cfg = { .name = "group", .policy = URMA_JETTY_GRP_POLICY_HASH_HINT };
	urma_jetty_cfg_t member;
	urma_jetty_grp_t *group;
	urma_jetty_t *jetty[2];
	urma_rjetty_t told = { .trans_mode = URMA_TM_RM, .type = URMA_JETTY_GROUP };
	struct urma_peer peer = { 0 };
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	member = p.side.jetty->jetty_cfg;
	cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	cfg.token_value.token = URMA_SIDE_TOKEN;
	group = urma_create_jetty_grp(p.side.ctx, &cfg);
	member.jetty_grp = group;
	jetty[0] = urma_create_jetty(p.side.ctx, &member);
	jetty[1] = urma_create_jetty(p.side.ctx, &member);
	assert_true(group && jetty[0] && jetty[1]);
	told.jetty_id = group->jetty_grp_id;
	told.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	peer.jetty = urma_import_jetty(p.side.ctx, &told, &cfg.token_value);
	for (uint8_t i = 0; i < 4; i++) {
		const urma_jetty_t *due = jetty[i < 3 ? i % 2 : 1]; /* then there is one only */

		if (i == 3)
			assert_int_equal(urma_delete_jetty(jetty[0]), URMA_SUCCESS);
		assert_int_equal(urma_side_receive(&p.side, p.mem.data + 100, 64, 5), URMA_SUCCESS);
		urma_request_send(&r, &peer, p.mem.data, 40);
		r.wr.send.target_hint = i < 3 ? i : 0;
		urma_pair_post(&p, &r, 1);
		for (unsigned k = 0; k < 2; k++) {
			cr = urma_pair_take(&p);
			assert_int_equal(cr.status, URMA_CR_SUCCESS);
			if (cr.flag.bs.s_r)
				assert_int_equal(cr.local_id, due->jetty_id.id);
		}
	}
	assert_int_equal(urma_delete_jetty(jetty[1]), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(peer.jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty_grp(group), URMA_SUCCESS);
	urma_pair_close(&p);
}

/* ---- Posting receives ---- */

static void receives_are_checked(void **state)
{
	struct urma_pair_attr attr = { .side = { .rnr_retry = 7, .depth = 4, .max_sge = 2 },
				       .len = 8 * KIB };
	urma_sge_t sges[3] = { { 0 } };
	urma_jfr_wr_t wr[6], *bad = NULL;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	memset(wr, 0, sizeof(wr));
	for (unsigned i = 0; i < 6; i++) {
		wr[i].src = (urma_sg_t){ sges, 2 };
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(urma_post_jfr_wr(p.side.jfr, wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr[4]);
	assert_int_equal(urma_post_jfr_wr(NULL, wr, &bad), URMA_EINVAL);
	assert_int_equal(urma_post_jfr_wr(p.side.jfr, NULL, &bad), URMA_EINVAL);
	assert_int_equal(urma_post_jfr_wr(p.side.jfr, wr, NULL), URMA_EINVAL);
	assert_int_equal(urma_post_jetty_recv_wr(NULL, wr, &bad), URMA_EINVAL);
	wr[0].src.num_sge = 3;
	assert_int_equal(urma_post_jetty_recv_wr(p.side.jetty, wr, &bad), URMA_EINVAL);
	assert_ptr_equal(bad, &wr[0]);
	urma_assert_refused("num_sge is 3, max_sge of the queue 2");
	wr[0].src = (urma_sg_t){ NULL, 1 };
	assert_int_equal(urma_post_jetty_recv_wr(p.side.jetty, wr, &bad), URMA_EINVAL);
	assert_int_equal(urma_recv(p.side.jfr, p.side.seg, 0, 8, 1), URMA_FAIL);
	assert_int_equal(urma_recv(p.side.jfr, NULL, 8, 8, 1), URMA_EINVAL);
	assert_int_equal(urma_recv(NULL, p.side.seg, 8, 8, 1), URMA_EINVAL);
	assert_int_equal(urma_recv(p.side.jfr, p.side.seg, (uintptr_t)p.mem.data, 8, 1),
			 URMA_ENOMEM); /* it is full */
	urma_pair_close(&p);
}

/* ---- Events and states ---- */

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Sends to ourselves, with or without the mark. */
static void send_home(struct urma_pair *p, const struct urma_peer *home, bool solicited)
{
	struct urma_request r;

	assert_int_equal(urma_side_receive(&p->side, p->mem.data + 100, 64, 5), URMA_SUCCESS);
	urma_request_send(&r, home, p->mem.data, 40);
	r.wr.flag.bs.complete_enable = 0;
	r.wr.flag.bs.solicited_enable = solicited;
	urma_pair_post(p, &r, 1);
}

static void marked_messages_alone_wake_who_asked_for_them(void **state)
{
	struct urma_told told;
	struct urma_peer home;
	urma_jfc_t *fired;
	uint32_t one = 1;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_side_tell(&p.side, &told);
	assert_int_equal(urma_peer_import(&p.side, &told, &home), 0);
	assert_int_equal(urma_rearm_jfc(p.side.jfc, true), URMA_SUCCESS);
	send_home(&p, &home, false);
	assert_int_equal(urma_pair_take(&p).flag.bs.s_r, 1);
	assert_false(readable(p.side.jfce->fd));
	send_home(&p, &home, true);
	assert_int_equal(urma_wait_jfc(p.side.jfce, 1, 20000, &fired), 1);
	urma_ack_jfc(&fired, &one, 1);
	assert_int_equal(urma_pair_take(&p).flag.bs.s_r, 1);
	/* A failure counts too. */
	assert_int_equal(urma_rearm_jfc(p.side.jfc, true), URMA_SUCCESS);
	assert_int_equal(urma_side_receive(&p.side, p.mem.data + 100, 1, 5), URMA_SUCCESS);
	{
		struct urma_request r;

		urma_request_send(&r, &home, p.mem.data, 40);
		urma_pair_post(&p, &r, 1);
	}
	assert_int_equal(urma_wait_jfc(p.side.jfce, 1, 20000, &fired), 1);
	urma_ack_jfc(&fired, &one, 1);
	assert_int_equal(urma_peer_drop(&p.side, &home), 0);
	urma_pair_close(&p);
}

static void few_buffers_left_make_an_event(void **state)
{
	urma_jfr_attr_t attr = { .mask = JFR_RX_THRESHOLD, .rx_threshold = 2 };
	urma_async_event_t event;
	struct urma_told told;
	struct urma_peer home;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_side_tell(&p.side, &told);
	assert_int_equal(urma_peer_import(&p.side, &told, &home), 0);
	fcntl(p.side.ctx->async_fd, F_SETFL, fcntl(p.side.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(urma_side_receive(&p.side, p.mem.data + 100, 64, 5), 0);
	assert_int_equal(urma_modify_jfr(p.side.jfr, &attr), URMA_SUCCESS);
	send_home(&p, &home, false); /* posts one, uses one */
	assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_FAIL);
	{
		struct urma_request r;

		urma_request_send(&r, &home, p.mem.data, 40);
		r.wr.flag.bs.complete_enable = 0;
		urma_pair_post(&p, &r, 1);
	}
	assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_SUCCESS);
	assert_int_equal(event.event_type, URMA_EVENT_JFR_LIMIT);
	assert_ptr_equal(event.element.jfr, p.side.jfr);
	urma_ack_async_event(&event);
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_FAIL);
	assert_int_equal(urma_peer_drop(&p.side, &home), 0);
	urma_pair_close(&p);
}

static void a_broken_receive_queue_gives_its_buffers_back(void **state)
{
	urma_jfr_attr_t attr = { .mask = JFR_STATE, .state = URMA_JFR_STATE_ERROR };
	struct urma_told told;
	struct urma_peer home;
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_side_tell(&p.side, &told);
	assert_int_equal(urma_peer_import(&p.side, &told, &home), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(urma_side_receive(&p.side, p.mem.data + 100, 64, 20 + i), 0);
	assert_int_equal(urma_modify_jfr(p.side.jfr, &attr), URMA_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		cr = urma_pair_take(&p);
		assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR);
		assert_int_equal(cr.user_ctx, 20 + i);
		assert_int_equal(cr.flag.bs.s_r, 1);
	}
	urma_request_send(&r, &home, p.mem.data, 40);
	urma_pair_post(&p, &r, 1);
	cr = urma_pair_take(&p);
	assert_int_not_equal(cr.status, URMA_CR_SUCCESS); /* messages fail at their senders */
	assert_int_equal(urma_peer_drop(&p.side, &home), 0);
	urma_pair_close(&p);
}

/* Fifty generations of jetties on one completion queue: no record of a former one shows up. */
static void no_record_outlives_its_queue(void **state)
{
	struct urma_told told;
	struct urma_peer home;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_side_tell(&p.side, &told);
	assert_int_equal(urma_peer_import(&p.side, &told, &home), 0);
	for (unsigned i = 0; i < 50; i++) {
		urma_jetty_cfg_t cfg = p.side.jetty->jetty_cfg;
		urma_jetty_t *jetty = urma_create_jetty(p.side.ctx, &cfg);
		struct urma_request r;
		urma_jfs_wr_t *bad;
		urma_cr_t cr;

		assert_non_null(jetty);
		for (unsigned k = 0; k < 3; k++) {
			urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
			r.wr.user_ctx = i * 10 + k;
			assert_int_equal(urma_post_jetty_send_wr(jetty, &r.wr, &bad), 0);
		}
		assert_true(urma_side_take(p.side.jfc, &cr, URMA_PAIR_PATIENCE_MS));
		assert_int_equal(cr.user_ctx, i * 10);
		assert_int_equal(cr.local_id, jetty->jetty_id.id);
		assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
		assert_int_equal(urma_poll_jfc(p.side.jfc, 1, &cr), 0);
	}
	assert_int_equal(urma_peer_drop(&p.side, &home), 0);
	urma_pair_close(&p);
}

/* SEND_INVALIDATE: the receiver's segment is withdrawn when its record is polled. */
static void an_invalidated_segment_is_withdrawn(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	urma_pair_receive(&p, inbox(&p), 64, 1, 2);
	urma_request_send(&r, &p.peer, p.mem.data, 8);
	r.wr.opcode = URMA_OPC_SEND_INVALIDATE;
	assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
	urma_assert_refused("SEND_INVALIDATE with tseg");
	r.wr.send.tseg = p.peer.seg;
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 8);
	cr = assert_received(&p, 2, URMA_CR_OPC_SEND_WITH_INV, 8);
	assert_int_equal(cr.invalid_token.token_id, p.told.seg.token_id);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	urma_pair_post(&p, &r, 3);
	urma_pair_assert_cr(&p, 3, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_arrives_whole),
		cmocka_unit_test(an_immediate_value_has_64_bits),
		cmocka_unit_test(a_write_with_an_immediate_leaves_the_buffer_alone),
		cmocka_unit_test(pieces_are_gathered_and_scattered),
		cmocka_unit_test(inline_messages_are_copied_by_the_call),
		cmocka_unit_test(a_message_follows_the_writes_before_it),
		cmocka_unit_test(a_fenced_message_takes_what_a_read_brings),
		cmocka_unit_test(a_message_waits_for_its_buffer),
		cmocka_unit_test(what_is_empty_waits_in_its_turn),
		cmocka_unit_test(patience_may_end),
		cmocka_unit_test(too_long_a_message_uses_up_its_buffer),
		cmocka_unit_test(nothing_overtakes_a_failure),
		cmocka_unit_test(token_and_id_must_be_right),
		cmocka_unit_test(send_queues_reach_receive_queues),
		cmocka_unit_test(many_senders_share_one_receive_queue),
		cmocka_unit_test(connected_jetties_exchange_messages),
		cmocka_unit_test(datagrams_carry_messages_only),
		cmocka_unit_test(a_group_is_one_of_its_jetties),
		cmocka_unit_test(receives_are_checked),
		cmocka_unit_test(marked_messages_alone_wake_who_asked_for_them),
		cmocka_unit_test(few_buffers_left_make_an_event),
		cmocka_unit_test(a_broken_receive_queue_gives_its_buffers_back),
		cmocka_unit_test(no_record_outlives_its_queue),
		cmocka_unit_test(an_invalidated_segment_is_withdrawn),
	};

	suite_messages = true;
	return suite_run(argc, argv, "urma_messages", tests, sizeof(tests) / sizeof(*tests), NULL);
}
