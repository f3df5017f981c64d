/* SPDX-License-Identifier: MIT */
/*
 * XTAL_FAULT: what it asks for happens, to programs of both APIs and over several paths, where and
 * when it says, and to nothing else. The faulty process is an actor with the setting; the owner of
 * the memory is another. ctest: timeout=120
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cdma_u_lib.h"
#include "lib/actor.h"
#include "lib/suite.h"
#include "lib/urma_side.h"
#include "xtal.h"

#define LEN     (64ul * 1024)
#define TOKEN   0x777u
#define SOON_MS 20000u

/* Actors tell by the number of a line what they did not find. */
#define REQUIRE(what)                    \
	do {                             \
		if (!(what))             \
			return __LINE__; \
	} while (0)

struct ask {
	struct urma_told told; /* of the owner, then of the other side */
	struct dma_seg seg;
	uint32_t mode, rnr, first, value;
	char text[200];
};

static const char *const paths[] = { "map", "ring", "tcp" };

/* ---- In the processes: one side of each API ---- */

static struct urma_side side;
static struct urma_peer peer;
static struct dma_device *list;
static struct dma_context *ctx;
static struct dma_queue *queue;
static struct dma_seg *segment;
static unsigned char *memory;

/* Of the owner the memory can be mapped; over the other paths that is not used. */
static int64_t open_urma(void *args)
{
	struct ask *a = args;
	struct urma_side_attr attr = { .rnr_retry = (uint8_t)a->rnr, .len = LEN };

	memory = xtal_alloc(LEN);
	attr.memory = memory;
	REQUIRE(memory && urma_side_open(&side, &attr) == 0);
	urma_side_tell(&side, &a->told);
	return 0;
}

static int64_t meet_urma(void *args)
{
	struct ask *a = args;

	return urma_peer_import(&side, &a->told, &peer);
}

static int64_t open_cdma(void *args)
{
	struct ask *a = args;
	struct dma_seg_cfg cfg = { .len = LEN, .token_value = TOKEN, .token_value_valid = true };
	uint32_t count;

	memory = xtal_alloc(LEN);
	cfg.addr = (uintptr_t)memory;
	list = dma_get_device_list(&count);
	REQUIRE(memory && list);
	ctx = dma_create_context(list);
	REQUIRE(ctx);
	segment = dma_register_seg(ctx, &cfg);
	REQUIRE(segment);
	a->seg = *segment;
	return 0;
}

static int64_t meet_cdma(void *args)
{
	struct ask *a = args;
	struct queue_cfg cfg = { .queue_depth = 16, .rmt_eid.dw0 = 0x7f000001, .event_mode = true };

	(void)a;
	queue = dma_alloc_queue(ctx, &cfg);
	REQUIRE(queue);
	return 0;
}

static int64_t look(void *args)
{
	struct ask *a = args;

	actor_unseen_begin();
	a->value = memory[a->first];
	actor_unseen_end();
	return 0;
}

/* ---- The test's own process ---- */

static struct actor *owner, *faulty;

static void start(const char *path, const char *fault)
{
	char with_path[64], with_fault[64];
	const char *plain[] = { with_path, NULL }, *env[] = { with_path, with_fault, NULL };

	snprintf(with_path, sizeof(with_path), "XTAL_PATHS=%s", path);
	assert_true(snprintf(with_fault, sizeof(with_fault), "XTAL_FAULT=%s", fault) < 64);
	owner = actor_process(plain);
	faulty = actor_process(env);
}

static void start_urma(const char *path, const char *fault, struct ask *a)
{
	struct ask mine = { .rnr = a->rnr };
	struct ask theirs = mine;

	start(path, fault);
	assert_int_equal(actor_call(owner, open_urma, &theirs, sizeof(theirs)), 0);
	assert_int_equal(actor_call(faulty, open_urma, &mine, sizeof(mine)), 0);
	assert_int_equal(actor_call(owner, meet_urma, &mine, sizeof(mine)), 0);
	assert_int_equal(actor_call(faulty, meet_urma, &theirs, sizeof(theirs)), 0);
	a->told = theirs.told;
}

static void start_cdma(const char *path, const char *fault, struct ask *a)
{
	struct ask mine = { .rnr = 0 };

	start(path, fault);
	assert_int_equal(actor_call(owner, open_cdma, a, sizeof(*a)), 0);
	assert_int_equal(actor_call(faulty, open_cdma, &mine, sizeof(mine)), 0);
	assert_int_equal(actor_call(faulty, meet_cdma, &mine, sizeof(mine)), 0);
}

static void stop(void)
{
	actor_free(faulty);
	actor_free(owner);
}

static void assert_done(actor_fn fn, struct ask *a)
{
	int64_t line = actor_call(faulty, fn, a, sizeof(*a));

	if (line)
		fail_msg("line %d of the faulty process", (int)line);
}

/* The byte at offset of the owner's memory. */
static uint32_t byte_of_owner(uint32_t offset)
{
	struct ask a = { .first = offset };

	assert_int_equal(actor_call(owner, look, &a, sizeof(a)), 0);
	return a.value;
}

/* ---- fail ---- */

static bool write_urma(uint32_t at, uint32_t len, uint64_t user)
{
	struct urma_request r;

	urma_request_write(&r, &peer, peer.seg->seg.ubva.va + at, memory, len);
	r.wr.user_ctx = user;
	return urma_side_post(&side, &r) == URMA_SUCCESS;
}

static bool ends(uint64_t user, int status)
{
	urma_cr_t cr;

	if (!urma_side_take(side.jfc, &cr, SOON_MS))
		return false;
	if (cr.status == (urma_cr_status_t)status && cr.user_ctx == user)
		return true;
	fprintf(stderr, "request %d ended with %d\n", (int)cr.user_ctx, (int)cr.status);
	return false;
}

static bool marker_comes(void)
{
	urma_cr_t cr;

	return urma_side_take(side.jfc, &cr, SOON_MS) && cr.status == URMA_CR_WR_FLUSH_ERR_DONE;
}

/* The third of four, with some of them under way: in its turn, and nothing of it arrives. */
static int64_t third_request_fails(void *args)
{
	(void)args;
	memset(memory, 0xaa, LEN);
	REQUIRE(write_urma(0, 8, 1) && write_urma(8, 32768, 2));
	REQUIRE(write_urma(40000, 8, 3) && write_urma(40008, 8, 4));
	REQUIRE(ends(1, URMA_CR_SUCCESS) && ends(2, URMA_CR_SUCCESS));
	REQUIRE(ends(3, URMA_CR_REM_DATA_POISON));
	/* What was posted behind it has been flushed, or comes back by a flush. */
	for (;;) {
		urma_cr_t cr;

		REQUIRE(urma_side_take(side.jfc, &cr, SOON_MS));
		if (cr.status == URMA_CR_WR_FLUSH_ERR_DONE)
			break;
		REQUIRE(cr.status == URMA_CR_WR_FLUSH_ERR && cr.user_ctx == 4);
	}
	return 0;
}

static void an_operation_fails_urma(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct ask a = { .rnr = 7 };

		start_urma(paths[i], "fail:op=3,status=REMOTE_POISON,queue=1", &a);
		assert_done(third_request_fails, &a);
		assert_int_equal(byte_of_owner(0), 0xaa);
		assert_int_equal(byte_of_owner(32775), 0xaa);
		assert_int_equal(byte_of_owner(40000), 0);
		assert_int_equal(byte_of_owner(40008), 0);
		stop();
	}
}

/* A message fails like everything else, also one that would be tried again for ever. */
static int64_t message_fails(void *args)
{
	struct urma_request r;

	(void)args;
	urma_request_send(&r, &peer, memory, 64);
	r.wr.user_ctx = 9;
	REQUIRE(urma_side_post(&side, &r) == URMA_SUCCESS);
	REQUIRE(ends(9, URMA_CR_RNR_RETRY_CNT_EXC_ERR));
	REQUIRE(marker_comes());
	return 0;
}

static void a_message_fails(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++) {
		struct ask a = { .rnr = 7 };

		start_urma(paths[i], "fail:op=1,status=not_ready", &a);
		assert_done(message_fails, &a);
		stop();
	}
}

static int status_of(dma_status posted)
{
	struct dma_cr cr;

	if (posted != DMA_STATUS_OK)
		return -1;
	return dma_wait_queue(queue, 1, (int)SOON_MS, &cr) == 1 ? (int)cr.status : -2;
}

static int write_cdma(struct ask *a, uint32_t at, uint32_t len)
{
	struct dma_seg to = a->seg, from = *segment;

	to.sva += at;
	to.len = from.len = len;
	return status_of(dma_write(queue, &to, &from));
}

/* Those of a range, of the shortest kind too; a queue of CDMA goes on. */
static int64_t some_fail_cdma(void *args)
{
	struct ask *a = args;

	memset(memory, 0xbb, LEN);
	for (uint32_t n = 1; n <= 9; n++) {
		int want = n >= 4 && n <= 6 ? DMA_CR_LOC_OPERATION_ERR : DMA_CR_SUCCESS;

		REQUIRE(write_cdma(a, 8 * n, 8) == want);
	}
	return 0;
}

static void operations_fail_cdma(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct ask a = { .rnr = 0 };

		start_cdma(paths[i], "fail:op=4-6,status=LOCAL_OPERATION", &a);
		assert_done(some_fail_cdma, &a);
		for (uint32_t n = 1; n <= 9; n++)
			assert_int_equal(byte_of_owner(8 * n), n >= 4 && n <= 6 ? 0 : 0xbb);
		stop();
	}
}

/* Another queue than the one that is named is left alone, and takes as much as without faults. */
static int64_t second_queue_fails(void *args)
{
	struct ask *a = args;
	struct dma_queue *first = queue;
	struct dma_seg from = *segment, to = a->seg;
	struct dma_cr cr[16];

	from.len = 8;
	REQUIRE(meet_cdma(a) == 0);
	REQUIRE(write_cdma(a, 0, 8) == DMA_CR_ACK_TIMEOUT_ERR);
	/* A queue with faults is as deep as it was asked for. */
	for (unsigned i = 0; i < 16; i++)
		REQUIRE(dma_write(queue, &to, &from) == DMA_STATUS_OK);
	REQUIRE(dma_write(queue, &to, &from) != DMA_STATUS_OK);
	for (unsigned n = 0; n < 16;)
		n += (unsigned)dma_wait_queue(queue, 16, (int)SOON_MS, cr);
	queue = first;
	for (unsigned i = 0; i < 4; i++)
		REQUIRE(write_cdma(a, 8, 8) == DMA_CR_SUCCESS);
	return 0;
}

static void only_the_queue_that_is_named(void **state)
{
	struct ask a = { .rnr = 0 };

	(void)state;
	start_cdma("map", "fail:op=1,queue=2,status=UNREACHABLE", &a);
	assert_done(second_queue_fails, &a);
	stop();
}

/* ---- withhold: the faulty process is the receiver ---- */

static int64_t receive(void *args)
{
	struct ask *a = args;

	(void)a;
	for (uint32_t i = 0; i < 2; i++)
		REQUIRE(urma_side_receive(&side, memory + 64 * i, 64, i) == URMA_SUCCESS);
	return 0;
}

/* In the owner: how long two messages take, ms. */
static int64_t send_two(void *args)
{
	struct ask *a = args;
	struct urma_request r;
	uint64_t begin = suite_now_ms();

	for (uint32_t i = 0; i < 2; i++) {
		urma_request_send(&r, &peer, memory, 64);
		r.wr.user_ctx = i;
		REQUIRE(urma_side_post(&side, &r) == URMA_SUCCESS);
	}
	REQUIRE(ends(0, (int)a->value));
	if (a->value == URMA_CR_SUCCESS)
		REQUIRE(ends(1, URMA_CR_SUCCESS));
	a->first = (uint32_t)(suite_now_ms() - begin);
	return 0;
}

static void a_receive_is_withheld(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++) {
		struct ask a = { .rnr = 7 };

		start_urma(paths[i], "withhold:op=2,ms=250", &a);
		assert_int_equal(actor_call(faulty, receive, &a, sizeof(a)), 0);
		a.value = URMA_CR_SUCCESS;
		assert_int_equal(actor_call(owner, send_two, &a, sizeof(a)), 0);
		assert_in_range(a.first, 250, SOON_MS);
		stop();
		a = (struct ask){ .rnr = 2 }; /* two times, and that is it */
		start_urma(paths[i], "withhold:op=1", &a);
		assert_int_equal(actor_call(faulty, receive, &a, sizeof(a)), 0);
		a.value = URMA_CR_RNR_RETRY_CNT_EXC_ERR;
		assert_int_equal(actor_call(owner, send_two, &a, sizeof(a)), 0);
		stop();
	}
}

/* ---- flush ---- */

static int64_t marker_is_late(void *args)
{
	struct ask *a = args;
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR };
	uint64_t begin;

	REQUIRE(write_urma(0, 8, 1) && ends(1, URMA_CR_SUCCESS));
	begin = suite_now_ms();
	if (a->value)
		REQUIRE(urma_modify_jetty(side.jetty, &attr) == URMA_SUCCESS);
	else
		REQUIRE(write_urma(LEN, 8, 2) && ends(2, URMA_CR_REM_ACCESS_ABORT_ERR));
	REQUIRE(marker_comes());
	a->first = (uint32_t)(suite_now_ms() - begin);
	return 0;
}

/* Nobody polls meanwhile: the event comes by itself. */
static int64_t event_of_marker(void *args)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR };
	urma_jfc_t *jfc = NULL;
	uint32_t one = 1;

	(void)args;
	REQUIRE(urma_rearm_jfc(side.jfc, false) == URMA_SUCCESS);
	REQUIRE(urma_modify_jetty(side.jetty, &attr) == URMA_SUCCESS);
	REQUIRE(urma_wait_jfc(side.jfce, 1, (int)SOON_MS, &jfc) == 1);
	urma_ack_jfc(&jfc, &one, 1);
	REQUIRE(marker_comes());
	/* Deleting does not wait for one that has not come. */
	attr.state = URMA_JETTY_STATE_RESET;
	REQUIRE(urma_modify_jetty(side.jetty, &attr) == URMA_SUCCESS);
	attr.state = URMA_JETTY_STATE_READY;
	REQUIRE(urma_modify_jetty(side.jetty, &attr) == URMA_SUCCESS);
	attr.state = URMA_JETTY_STATE_ERROR;
	REQUIRE(urma_modify_jetty(side.jetty, &attr) == URMA_SUCCESS);
	REQUIRE(urma_peer_drop(&side, &peer) == 0 && urma_side_close(&side) == 0);
	return 0;
}

static void the_marker_is_late(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct ask a = { .rnr = 7, .value = i % 2 };

		start_urma(paths[i], "flush:ms=200", &a);
		a.value = i % 2;
		assert_done(marker_is_late, &a);
		assert_in_range(a.first, 200, SOON_MS);
		stop();
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ask a = { .rnr = 7 };

		start_urma(paths[i], "flush:ms=60", &a);
		assert_done(event_of_marker, &a);
		stop();
	}
}

/* ---- lose ---- */

static int64_t loses_its_peer_cdma(void *args)
{
	struct ask *a = args;

	memset(memory, 0xcc, LEN);
	REQUIRE(write_cdma(a, 0, 8) == DMA_CR_SUCCESS && write_cdma(a, 8, 64) == DMA_CR_SUCCESS);
	REQUIRE(write_cdma(a, 128, 8) == DMA_CR_ACK_TIMEOUT_ERR);
	REQUIRE(write_cdma(a, 128, 8) == DMA_CR_ACK_TIMEOUT_ERR);
	/* Dead is dead, for others too. */
	REQUIRE(meet_cdma(a) == 0);
	REQUIRE(write_cdma(a, 128, 8) == DMA_CR_ACK_TIMEOUT_ERR);
	return 0;
}

/* A message that waits for its receiver is under way when the peer is lost. */
static int64_t loses_its_peer_urma(void *args)
{
	struct urma_request r;

	(void)args;
	urma_request_send(&r, &peer, memory, 64);
	r.wr.user_ctx = 1;
	REQUIRE(urma_side_post(&side, &r) == URMA_SUCCESS);
	REQUIRE(write_urma(128, 8, 2));
	REQUIRE(ends(1, URMA_CR_ACK_TIMEOUT_ERR));
	REQUIRE(ends(2, URMA_CR_WR_FLUSH_ERR));
	REQUIRE(marker_comes());
	return 0;
}

static void a_peer_is_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct ask a = { .rnr = 0 };

		start_cdma(paths[i], "lose:op=3", &a);
		assert_done(loses_its_peer_cdma, &a);
		assert_int_equal(byte_of_owner(0), 0xcc);
		assert_int_equal(byte_of_owner(128), 0);
		stop();
	}
	for (unsigned i = 1; i < 3; i++) {
		struct ask a = { .rnr = 7 };

		start_urma(paths[i], "lose:op=2", &a);
		assert_done(loses_its_peer_urma, &a);
		assert_int_equal(byte_of_owner(128), 0);
		stop();
	}
}

/* ---- kill ---- */

static int64_t write_three(void *args)
{
	struct ask *a = args;

	memset(memory, 0xdd, LEN);
	for (uint32_t i = 0; i < 3; i++)
		REQUIRE(write_cdma(a, 8 * i, 8) == DMA_CR_SUCCESS);
	return 0;
}

/* In the owner, who writes to the faulty one until that is gone. */
static int64_t write_until_it_fails(void *args)
{
	uint64_t deadline = suite_now_ms() + SOON_MS;

	(void)args;
	while (suite_now_ms() < deadline) {
		urma_cr_t cr;

		REQUIRE(write_urma(0, 8, 1) && urma_side_take(side.jfc, &cr, SOON_MS));
		if (cr.status == URMA_CR_ACK_TIMEOUT_ERR)
			return 0;
		REQUIRE(cr.status == URMA_CR_SUCCESS);
		suite_sleep_us(5000);
	}
	return __LINE__;
}

static void a_process_dies(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct ask a = { .rnr = 0 };

		start_cdma(paths[i], "kill:op=2", &a);
		assert_int_equal(actor_call(faulty, write_three, &a, sizeof(a)), ACTOR_DIED);
		assert_int_equal(byte_of_owner(0), 0xdd);
		assert_int_equal(byte_of_owner(8), 0);
		stop();
	}
}

static void a_process_dies_when_its_time_is_over(void **state)
{
	struct ask a = { .rnr = 7 };

	(void)state;
	start_urma("map,ring", "kill:ms=1500", &a);
	assert_int_equal(actor_call(owner, write_until_it_fails, &a, sizeof(a)), 0);
	stop();
}

/* ---- Nonsense ---- */

static int64_t contexts_are_refused(void *args)
{
	struct ask *a = args;
	uint32_t count;

	list = dma_get_device_list(&count);
	for (unsigned i = 0; i < 2; i++) {
		REQUIRE(!dma_create_context(list));
		snprintf(a->text, sizeof(a->text), "%s", xtal_last_error());
	}
	REQUIRE(urma_init(NULL) == URMA_SUCCESS);
	side.list = urma_get_device_list((int *)&count);
	REQUIRE(side.list && !urma_create_context(side.list[0], 0));
	REQUIRE(strstr(xtal_last_error(), "XTAL_FAULT=fail:op=3"));
	return 0;
}

static void nonsense_is_refused_with_a_sentence(void **state)
{
	struct ask a = { .rnr = 0 };

	(void)state;
	start("map", "fail:op=3");
	assert_done(contexts_are_refused, &a);
	assert_non_null(strstr(a.text, "XTAL_FAULT=fail:op=3: fail is incomplete"));
	assert_non_null(strstr(a.text, "fail:op=N,status=NAME"));
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operation_fails_urma),
		cmocka_unit_test(a_message_fails),
		cmocka_unit_test(operations_fail_cdma),
		cmocka_unit_test(only_the_queue_that_is_named),
		cmocka_unit_test(a_receive_is_withheld),
		cmocka_unit_test(the_marker_is_late),
		cmocka_unit_test(a_peer_is_lost),
		cmocka_unit_test(a_process_dies),
		cmocka_unit_test(a_process_dies_when_its_time_is_over),
		cmocka_unit_test(nonsense_is_refused_with_a_sentence),
	};

	setenv("XTAL_LOG", "/dev/null", 1);
	actor_init();
	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
