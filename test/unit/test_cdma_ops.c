/* SPDX-License-Identifier: MIT */
/* What the CDMA front-end makes of posts, completions, events and the log level. */
#include "cdma_paper_core.inc"

/* ---- Posts ---- */

static void a_write_says_what_the_segments_say(void **state)
{
	(void)state;
	p.queue->cfg.user_ctx = 42;
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(core.op.opcode, XTAL_OP_WRITE);
	assert_int_equal(core.op.flags, 0);
	assert_int_equal(core.op.user, 42);
	assert_int_equal(core.op.local, 0x1000);
	assert_int_equal(core.op.len, 64); /* the local one's */
	assert_int_equal(core.op.remote.addr, 0x2000);
	assert_int_equal(core.op.remote.tid, 0x31234); /* 20 bits */
	assert_int_equal(xtal_eid_ipv4(core.op.remote.eid), OTHER);
	assert_false(core.op.remote.token_valid);
	assert_int_equal(core.op.remote.token, 0); /* kept to ourselves */
	p.remote.token_value_valid = true;
	p.queue->cfg.user_ctx = 43;
	p.queue->cfg.rmt_eid.dw0 = 2;
	assert_int_equal(dma_read(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(core.op.opcode, XTAL_OP_READ);
	assert_int_equal(core.op.user, 43);
	assert_int_equal(xtal_eid_ipv4(core.op.remote.eid), LOOPBACK);
	assert_true(core.op.remote.token_valid);
	assert_int_equal(core.op.remote.token, 9);
}

static void a_notify_sends_its_token_when_the_data_does(void **state)
{
	struct dma_seg notify = {
		.sva = 0, .len = 0, .tid = 0x45678, .token_value = 11, .token_value_valid = true
	};

	(void)state;
	assert_int_equal(dma_write_with_notify(p.queue, &p.remote, &p.local, &notify, 0x1122),
			 DMA_STATUS_OK);
	assert_int_equal(core.op.opcode, XTAL_OP_WRITE);
	assert_int_equal(core.op.flags, XTAL_OP_NOTIFY);
	assert_int_equal(core.op.notify_data, 0x1122);
	assert_int_equal(core.op.notify.addr, 0);
	assert_int_equal(core.op.notify.tid, 0x45678);
	assert_int_equal(xtal_eid_ipv4(core.op.notify.eid), OTHER);
	assert_false(core.op.notify.token_valid);
	p.remote.token_value_valid = true;
	notify.token_value_valid = false;
	assert_int_equal(dma_write_with_notify(p.queue, &p.remote, &p.local, &notify, 0),
			 DMA_STATUS_OK);
	assert_true(core.op.notify.token_valid);
	assert_int_equal(core.op.notify.token, 11);
	assert_int_equal(dma_write_with_notify(p.queue, &p.remote, &p.local, NULL, 0),
			 DMA_STATUS_INVAL);
	assert_refused("notify_seg is NULL");
}

static void operands_have_the_operations_length(void **state)
{
	uint64_t cmp[2] = { 1, 2 }, swap[2] = { 3, 4 };

	(void)state;
	p.local.len = 4;
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, 0xa00000001, 0xb00000002), 0);
	assert_int_equal(core.op.opcode, XTAL_OP_CAS);
	assert_int_equal(core.op.len, 4);
	assert_int_equal(core.op.compare[0], 1);
	assert_int_equal(core.op.operand[0], 2);
	p.local.len = 8;
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, 0xa00000001, 0xb00000002), 0);
	assert_int_equal(core.op.compare[0], 0xa00000001);
	assert_int_equal(core.op.operand[0], 0xb00000002);
	p.local.len = 16;
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, (uintptr_t)cmp, (uintptr_t)swap), 0);
	assert_memory_equal(core.op.compare, cmp, 16);
	assert_memory_equal(core.op.operand, swap, 16);
	p.local.len = 4;
	assert_int_equal(dma_faa(p.queue, &p.remote, &p.local, UINT64_MAX), 0);
	assert_int_equal(core.op.opcode, XTAL_OP_FAA);
	assert_int_equal(core.op.operand[0], 0xffffffff);
	p.local.len = 8;
	assert_int_equal(dma_faa(p.queue, &p.remote, &p.local, UINT64_MAX), 0);
	assert_int_equal(core.op.operand[0], UINT64_MAX);
}

static void atomics_refuse_other_lengths(void **state)
{
	(void)state;
	for (p.local.len = 1; p.local.len <= 17; p.local.len++) {
		uint64_t value[2] = { 0, 0 };
		bool faa = p.local.len == 4 || p.local.len == 8;
		bool cas = faa || p.local.len == 16;

		assert_int_equal(dma_faa(p.queue, &p.remote, &p.local, 1),
				 faa ? DMA_STATUS_OK : DMA_STATUS_INVAL);
		assert_int_equal(
			dma_cas(p.queue, &p.remote, &p.local, (uintptr_t)value, (uintptr_t)value),
			cas ? DMA_STATUS_OK : DMA_STATUS_INVAL);
	}
	assert_refused("length 17, only 4, 8 and 16");
	p.local.len = 16;
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, 0, 1), DMA_STATUS_INVAL);
	assert_refused("cmp is NULL");
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, (uintptr_t)&p, 0), DMA_STATUS_INVAL);
	assert_refused("swap is NULL");
}

static void without_tid_and_token_the_own_context_is_meant(void **state)
{
	(void)state;
	p.remote.tid = 0x500000; /* 20 zero bits */
	dma_write(p.queue, &p.remote, &p.local);
	assert_int_equal(core.op.remote.tid, 0); /* another device: the core answers 8 */
	p.queue->cfg.rmt_eid.dw0 = LOOPBACK;
	dma_write(p.queue, &p.remote, &p.local);
	assert_int_equal(core.op.remote.tid, p.ctx->tid);
	p.queue->cfg.rmt_eid.dw0 = 2; /* stands for the same */
	dma_write_with_notify(p.queue, &p.remote, &p.local, &p.remote, 1);
	assert_int_equal(core.op.remote.tid, p.ctx->tid);
	assert_int_equal(core.op.notify.tid, p.ctx->tid);
	p.remote.token_value_valid = true;
	dma_write(p.queue, &p.remote, &p.local);
	assert_int_equal(core.op.remote.tid, 0);
}

static void bad_arguments_are_refused_by_every_operation(void **state)
{
	struct {
		struct dma_seg remote, local;
		const char *words;
	} rows[] = {
		{ p.remote, p.local, "remote address 0x0" },
		{ p.remote, p.local, "0x2000 with 0 bytes" },
		{ p.remote, p.local, "local address 0x0" },
		{ p.remote, p.local, "0x1000 with 0 bytes" },
		{ p.remote, p.local, "4294967296 is above the limit of 4294967295" },
		{ p.remote, p.local, "18446744073709551615 is above" },
	};

	(void)state;
	rows[0].remote.sva = 0;
	rows[1].remote.len = 0;
	rows[2].local.sva = 0;
	rows[3].local.len = 0;
	rows[4].local.len = 1ull << 32;
	rows[5].local.len = UINT64_MAX;
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(rows); i++) {
		struct dma_seg *r = &rows[i].remote, *l = &rows[i].local;

		memset(&core.op, 0xee, sizeof(core.op));
		assert_int_equal(dma_write(p.queue, r, l), DMA_STATUS_INVAL);
		assert_refused(rows[i].words);
		assert_int_equal(dma_read(p.queue, r, l), DMA_STATUS_INVAL);
		assert_refused(rows[i].words);
		assert_int_equal(dma_cas(p.queue, r, l, 1, 1), DMA_STATUS_INVAL);
		assert_refused(rows[i].words);
		assert_int_equal(dma_faa(p.queue, r, l, 1), DMA_STATUS_INVAL);
		assert_refused(rows[i].words);
		assert_int_equal(dma_write_with_notify(p.queue, r, l, r, 1), DMA_STATUS_INVAL);
		assert_refused(rows[i].words);
		assert_int_equal(core.op.opcode, 0xee); /* nothing reached the core */
	}
	assert_int_equal(dma_write(NULL, &p.remote, &p.local), DMA_STATUS_INVAL);
	assert_refused("dma_write: queue is NULL");
	assert_int_equal(dma_read(p.queue, NULL, &p.local), DMA_STATUS_INVAL);
	assert_refused("dma_read: rmt_seg is NULL");
	assert_int_equal(dma_faa(p.queue, &p.remote, NULL, 1), DMA_STATUS_INVAL);
	assert_refused("dma_faa: local_seg is NULL");
	p.local.len = XTAL_MAX_MESSAGE;
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(core.op.len, XTAL_MAX_MESSAGE);
}

static void a_full_queue_is_said_aloud_once(void **state)
{
	(void)state;
	core.post_answer = -EAGAIN;
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_INVAL);
	assert_refused("queue 5 is full, 8 operations");
	assert_int_equal(core.refused_at, XTAL_LOG_INFO);
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_INVAL);
	assert_refused("is full");
	assert_int_equal(core.refused_at, XTAL_LOG_DEBUG);
}

static bool same_key(struct xtal_key a, struct xtal_key b)
{
	return a.a == b.a && a.b == b.b;
}

/* Eight bytes go the short way when it is open; otherwise the whole operation carries the key. */
static void eight_bytes_may_go_the_short_way(void **state)
{
	struct xtal_key key;

	(void)state;
	p.remote.token_value_valid = true;
	p.queue->cfg.user_ctx = 77;
	p.local.len = 8;
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	key = core.short_key;
	assert_true(key.b != 0);
	assert_true(same_key(core.op.key, key));
	assert_int_equal(core.op.remote.token, p.remote.token_value); /* all of it was posted */
	core.short_way = true;
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(dma_read(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(core.op.opcode, XTAL_OP_READ);
	assert_int_equal(core.op.remote.addr, p.remote.sva);
	assert_int_equal(core.op.local, p.local.sva);
	assert_int_equal(core.op.user, 77);
	assert_int_equal(dma_faa(p.queue, &p.remote, &p.local, 5), DMA_STATUS_OK);
	assert_int_equal(core.short_ops, 3);
	assert_int_equal(core.op.opcode, XTAL_OP_FAA);
	assert_int_equal(core.op.operand[0], 5);
	assert_int_equal(core.op.remote.addr, p.remote.sva);
	assert_int_equal(core.op.local, p.local.sva);
	assert_int_equal(core.op.user, 77);
	p.local.len = 4; /* nothing else does */
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(dma_read(p.queue, &p.remote, &p.local), DMA_STATUS_OK);
	assert_int_equal(dma_faa(p.queue, &p.remote, &p.local, 5), DMA_STATUS_OK);
	p.local.len = 8;
	assert_int_equal(dma_cas(p.queue, &p.remote, &p.local, 1, 2), DMA_STATUS_OK);
	assert_int_equal(core.short_ops, 3);
}

/* Whatever makes the target another one makes the key another one. */
static void a_key_stands_for_one_target(void **state)
{
	struct xtal_key key;

	(void)state;
	p.local.len = 8;
	p.remote.token_value_valid = true;
	core.short_way = true;
	dma_write(p.queue, &p.remote, &p.local);
	key = core.short_key;
	dma_write(p.queue, &p.remote, &p.local);
	assert_true(same_key(key, core.short_key));
	p.remote.token_value++;
	dma_write(p.queue, &p.remote, &p.local);
	assert_false(same_key(key, core.short_key));
	p.remote.token_value--;
	p.remote.tid++;
	dma_write(p.queue, &p.remote, &p.local);
	assert_false(same_key(key, core.short_key));
	p.remote.tid--;
	p.remote.token_value_valid = false;
	dma_write(p.queue, &p.remote, &p.local);
	assert_false(same_key(key, core.short_key));
	p.remote.token_value_valid = true;
	p.queue->cfg.rmt_eid.dw0++;
	dma_write(p.queue, &p.remote, &p.local);
	assert_false(same_key(key, core.short_key));
	/* All 0 is no name: translations begin with it. */
	p.remote.tid = p.remote.token_value = p.queue->cfg.rmt_eid.dw0 = 0;
	p.remote.token_value_valid = false;
	dma_write(p.queue, &p.remote, &p.local);
	assert_false(same_key((struct xtal_key){ 0 }, core.short_key));
}

/* ---- Completions and events ---- */

static void make_ready(unsigned count)
{
	core.ready_first = 110; /* the ring wraps */
	for (unsigned i = 0; i < count; i++)
		core.ready[(110 + i) % XTAL_ARRAY_SIZE(core.ready)] = (struct xtal_completion){
			.user = 1000 + i,
			.status = (uint16_t)(i % 17),
			.report = { .len = i, .queue_id = 5, .peer = { .port = 6, .link_id = 7 } },
		};
	core.ready_count = count;
}

static void records_come_in_order_whatever_the_batch(void **state)
{
	struct dma_cr cr[100];

	(void)state;
	memset(cr, 0xff, sizeof(cr));
	make_ready(40);
	assert_int_equal(dma_poll_queue(p.queue, 37, cr), 37);
	assert_int_equal(dma_poll_queue(p.queue, 100, cr + 37), 3);
	assert_int_equal(dma_poll_queue(p.queue, 100, cr), 0);
	for (unsigned i = 0; i < 40; i++) {
		struct dma_cr expected = { .status = (enum dma_cr_status)(i % 17),
					   .user_ctx = 1000 + i,
					   .completion_len = i,
					   .local_id = 5,
					   .remote_id = 6,
					   .tpn = 7 };

		assert_int_equal(cr[i].status, expected.status);
		assert_int_equal(cr[i].user_ctx, expected.user_ctx);
		assert_memory_equal(&cr[i].opcode, &expected.opcode, sizeof(cr->opcode));
		assert_int_equal(cr[i].flag.value, 0);
		assert_memory_equal(&cr[i].completion_len, &expected.completion_len,
				    offsetof(struct dma_cr, rsvd) + sizeof(cr->rsvd) -
					    offsetof(struct dma_cr, completion_len));
	}
	assert_int_equal(cr[40].flag.value, 0xff); /* not written */
}

static void strict_leaves_alone_what_hardware_does(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 1 };
	struct dma_queue *strict;
	struct dma_cr cr;

	(void)state;
	core.config.strict = true;
	strict = dma_alloc_queue(p.ctx, &cfg);
	memset(&cr, 0xff, sizeof(cr));
	make_ready(1);
	assert_int_equal(dma_poll_queue(strict, 1, &cr), 1);
	dma_free_queue(strict);
	assert_int_equal(cr.status, 0);
	assert_int_equal(cr.flag.value, 0xfc);
	assert_int_equal(cr.rsv_bitmap, 0xffffffff);
	assert_int_equal(cr.rsvd[3], 0xffffffff);
	assert_int_equal((uint32_t)cr.opcode, 0xffffffff);
	assert_int_equal(cr.local_id, 5);
}

static void waiting_returns_records_or_14_or_22(void **state)
{
	struct dma_cr cr[50];

	(void)state;
	assert_int_equal(dma_wait_queue(p.queue, 1, 250, cr), -14);
	assert_int_equal(core.waited_ms, 250);
	assert_int_equal(core.refusals, 0); /* a time-out is no refusal */
	make_ready(40);
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, cr), 1);
	assert_int_equal(cr[0].user_ctx, 1000);
	assert_int_equal(dma_wait_queue(p.queue, 50, -1, cr), 39);
	assert_int_equal(cr[38].user_ctx, 1039);
	p.queue->cfg.event_mode = false; /* read at each call */
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, cr), -22);
	assert_refused("event_mode false");
}

static void taking_needs_a_queue_and_room(void **state)
{
	struct dma_cr cr;

	(void)state;
	assert_int_equal(dma_poll_queue(NULL, 1, &cr), -22);
	assert_refused("dma_poll_queue: queue is NULL");
	assert_int_equal(dma_poll_queue(p.queue, 0, &cr), -22);
	assert_refused("cr_cnt is 0");
	assert_int_equal(dma_poll_queue(p.queue, 1, NULL), -22);
	assert_refused("cr is NULL");
	assert_int_equal(dma_wait_queue(NULL, 1, 0, &cr), -22);
	assert_refused("dma_wait_queue: queue is NULL");
	assert_int_equal(dma_wait_queue(p.queue, 0, 0, &cr), -22);
	assert_refused("cr_cnt is 0");
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, NULL), -22);
	assert_refused("cr is NULL");
}

static void an_event_fills_three_fields(void **state)
{
	struct dma_aeqe ae = { .duration = 10000, .event_type = 9, .queue_id = 9 };

	(void)state;
	assert_int_equal(dma_wait_ae(p.ctx, &ae), 0);
	assert_int_equal(core.waited_ms, 10000);
	assert_null(ae.ctx);
	assert_int_equal(ae.event_type, 9);
	core.async_answer = 1;
	core.async = (struct xtal_async_event){ XTAL_ASYNC_QUEUE_ERROR, 5 };
	assert_int_equal(dma_wait_ae(p.ctx, &ae), 1);
	assert_ptr_equal(ae.ctx, p.ctx);
	assert_int_equal(ae.event_type, DMA_AEQE_TYPE_JFS);
	assert_int_equal(ae.queue_id, 5);
	assert_int_equal(ae.duration, 10000);
	core.async = (struct xtal_async_event){ XTAL_ASYNC_DEVICE_GONE, 5 };
	assert_int_equal(dma_wait_ae(p.ctx, &ae), 1);
	assert_int_equal(ae.event_type, DMA_AEQE_TYPE_INVALID);
	assert_int_equal(ae.queue_id, 0);
}

static void waiting_for_events_has_limits(void **state)
{
	struct dma_aeqe ae = { .duration = -1 };

	(void)state;
	assert_int_equal(dma_wait_ae(p.ctx, &ae), -22);
	assert_refused("duration is -1, 0 to 10000");
	ae.duration = 10001;
	assert_int_equal(dma_wait_ae(p.ctx, &ae), -22);
	ae.duration = 0;
	assert_int_equal(dma_wait_ae(NULL, &ae), -22);
	assert_refused("ctx is NULL");
	assert_int_equal(dma_wait_ae(p.ctx, NULL), -22);
	assert_refused("aeqe is NULL");
}

/* ---- The log ---- */

static void log_levels_are_words_in_any_case(void **state)
{
	(void)state;
	core.level_text = "WaRNiNG";
	read_level();
	assert_true(core.level_set);
	assert_int_equal(core.level, XTAL_LOG_WARNING);
	core.level_set = false;
	core.level_text = "loud";
	read_level();
	assert_false(core.level_set);
	assert_non_null(strstr(core.logged, "\"loud\""));
	core.level_text = NULL; /* the original's default */
	read_level();
	assert_true(core.level_set);
	assert_int_equal(core.level, XTAL_LOG_INFO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_says_what_the_segments_say),
		TEST(a_notify_sends_its_token_when_the_data_does),
		TEST(operands_have_the_operations_length),
		TEST(atomics_refuse_other_lengths),
		TEST(without_tid_and_token_the_own_context_is_meant),
		TEST(bad_arguments_are_refused_by_every_operation),
		TEST(a_full_queue_is_said_aloud_once),
		TEST(eight_bytes_may_go_the_short_way),
		TEST(a_key_stands_for_one_target),
		TEST(records_come_in_order_whatever_the_batch),
		TEST(strict_leaves_alone_what_hardware_does),
		TEST(waiting_returns_records_or_14_or_22),
		TEST(taking_needs_a_queue_and_room),
		TEST(an_event_fills_three_fields),
		TEST(waiting_for_events_has_limits),
		TEST(log_levels_are_words_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
