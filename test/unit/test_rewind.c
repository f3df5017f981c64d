/* SPDX-License-Identifier: MIT */
/* The requester of a resumable link: what is framed again after the carrier was replaced, what
 * waits for a READ, and leases that move with the deadlines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/requester.h"

#define WINDOW 8
#define PIECE  100
#define FIRST  UINT64_C(1)

struct fixture {
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_requester r;
};

static void start_with(struct fixture *f, uint64_t first, bool resumable, uint64_t piece)
{
	assert_int_equal(xtal_requester_init(&f->r,
					     &(struct xtal_requester_config){
						     .slots = f->slots,
						     .window = WINDOW,
						     .piece = piece,
						     .incarnation = 77,
						     .first_seq = first,
						     .margin = 10,
						     .resumable = resumable,
					     }),
			 0);
}

static void start_at(struct fixture *f, uint64_t first, bool resumable)
{
	start_with(f, first, resumable, PIECE);
}

static void submit(struct fixture *f, enum xtal_msg_type type, uint64_t cookie, uint64_t len)
{
	struct xtal_request q = {
		.cookie = cookie,
		.type = type,
		.addr = 0x1000,
		.len = len,
		.deadline = XTAL_NO_DEADLINE,
	};

	if (type == XTAL_MSG_ATOMIC) {
		q.atomic = XTAL_MSG_FAA;
		q.operand_size = 8;
	}
	assert_int_equal(xtal_requester_submit(&f->r, &q), 0);
}

/* Sends the next frame, which must be this one. */
static void sends(struct fixture *f, uint64_t seq, uint64_t cookie, uint64_t offset)
{
	struct xtal_requester_frame frame;

	assert_true(xtal_requester_next_frame(&f->r, 5, &frame));
	assert_null(xtal_msg_check(&frame.msg));
	assert_true(frame.msg.seq == seq && frame.cookie == cookie);
	assert_true(frame.msg.offset == offset && frame.local_offset == offset);
	xtal_requester_sent(&f->r);
}

static void sends_nothing(struct fixture *f)
{
	struct xtal_requester_frame frame;

	assert_false(xtal_requester_next_frame(&f->r, 5, &frame));
}

/* The answer to frame ack; with data when piece != 0. */
static struct xtal_msg answer_to(struct fixture *f, uint64_t ack, uint64_t cookie, uint64_t total,
				 uint64_t offset, uint64_t piece)
{
	struct xtal_msg m = {
		.type = XTAL_MSG_RESPONSE,
		.seq = f->r.response_seq,
		.ack = ack,
		.id = cookie,
		.total = total,
		.offset = offset,
		.piece = piece,
		.payload = piece,
		.stamp = 1000,
	};

	m.flags = offset + piece == total || piece == 0 ? XTAL_MSG_LAST : 0;
	return m;
}

static struct xtal_requester_effect take(struct fixture *f, struct xtal_msg m, int err)
{
	struct xtal_requester_effect checked = { 0 }, e = { 0 };
	struct xtal_requester saved = f->r;
	const char *why = NULL;

	assert_null(xtal_msg_check(&m));
	assert_int_equal(xtal_requester_check(&f->r, &m, &checked, &why), err);
	assert_memory_equal(&saved, &f->r, sizeof(saved)); /* a check changes nothing */
	assert_int_equal(xtal_requester_receive(&f->r, &m, 50, &e, &why), err);
	assert_true(err ? why != NULL : e.cookie == checked.cookie);
	assert_true(e.ignored == checked.ignored && e.finished == checked.finished);
	return e;
}

static void test_writes_go_on(void **state)
{
	struct fixture f;

	(void)state;
	/* cut after each number of executed frames of a WRITE of three and one of two */
	for (uint64_t done = 0; done <= 5; done++) {
		start_at(&f, FIRST, true);
		submit(&f, XTAL_MSG_WRITE, 1, 250);
		submit(&f, XTAL_MSG_WRITE, 2, 150);
		for (uint64_t k = 0; k < 3; k++)
			sends(&f, FIRST + k, 1, 100 * k);
		sends(&f, 4, 2, 0);
		sends(&f, 5, 2, 100);
		assert_int_equal(xtal_requester_rewind(&f.r, done, 7), 0);
		for (uint64_t k = done; k < 5; k++)
			sends(&f, k + 1, k < 3 ? 1 : 2, 100 * (k < 3 ? k : k - 3));
		sends_nothing(&f);
		assert_true(take(&f, answer_to(&f, 3, 1, 250, 0, 0), 0).finished);
		assert_true(take(&f, answer_to(&f, 5, 2, 150, 0, 0), 0).finished);
		assert_false(xtal_requester_is_busy(&f.r));
	}
}

static void test_numbers_wrap(void **state)
{
	struct fixture f;

	(void)state;
	start_at(&f, UINT64_MAX, true);
	submit(&f, XTAL_MSG_WRITE, 1, 300);
	sends(&f, UINT64_MAX, 1, 0);
	sends(&f, 0, 1, 100);
	sends(&f, 1, 1, 200);
	assert_int_equal(xtal_requester_rewind(&f.r, UINT64_MAX, 7), 0);
	sends(&f, 0, 1, 100);
	assert_int_equal(xtal_requester_rewind(&f.r, UINT64_MAX - 1, 7), -EPROTO);
	assert_int_equal(xtal_requester_rewind(&f.r, 0, 7), 0);
	sends(&f, 1, 1, 200);
	assert_true(take(&f, answer_to(&f, 1, 1, 300, 0, 0), 0).finished);
}

/* What is answered partly goes on there, whatever the target had executed. */
static void test_reads_run_again(void **state)
{
	struct fixture f;

	(void)state;
	start_at(&f, FIRST, true);
	submit(&f, XTAL_MSG_READ, 1, 250);
	submit(&f, XTAL_MSG_READ, 2, 8);
	sends(&f, 1, 1, 0);
	sends(&f, 2, 1, 100);
	sends(&f, 3, 1, 200);
	sends(&f, 4, 2, 0);
	assert_false(take(&f, answer_to(&f, 1, 1, 250, 0, 100), 0).finished);
	assert_int_equal(xtal_requester_rewind(&f.r, 4, 7), 0);
	sends(&f, 5, 1, 100);
	sends(&f, 6, 1, 200);
	sends(&f, 7, 2, 0);
	/* the answer to a frame of its first life is a lie */
	take(&f, answer_to(&f, 2, 1, 250, 100, 100), -EPROTO);
	take(&f, answer_to(&f, 6, 1, 250, 200, 50), -EPROTO);
	assert_false(take(&f, answer_to(&f, 5, 1, 250, 100, 100), 0).finished);
	assert_true(take(&f, answer_to(&f, 6, 1, 250, 200, 50), 0).finished);
	assert_true(take(&f, answer_to(&f, 7, 2, 8, 0, 8), 0).finished);
	assert_int_equal(f.r.reads, 0);
}

static void test_refused_rewinds(void **state)
{
	struct fixture f;

	(void)state;
	start_at(&f, FIRST, true);
	submit(&f, XTAL_MSG_WRITE, 1, 250);
	assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), -EPROTO); /* never sent */
	sends(&f, 1, 1, 0);
	sends(&f, 2, 1, 100);
	assert_int_equal(xtal_requester_rewind(&f.r, 3, 7), -EPROTO);
	xtal_requester_progress(&f.r, 2, 6);
	assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), -EPROTO); /* known to be executed */
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 7), 0);
	sends(&f, 3, 1, 200);
}

static void test_fence(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned resumable = 0; resumable < 2; resumable++) {
		for (unsigned kind = 0; kind < 2; kind++) {
			start_at(&f, FIRST, resumable);
			submit(&f, XTAL_MSG_READ, 1, 150);
			submit(&f, XTAL_MSG_READ, 2, 8);
			submit(&f, kind ? XTAL_MSG_WRITE : XTAL_MSG_ATOMIC, 3, 8);
			submit(&f, XTAL_MSG_READ, 4, 8);
			sends(&f, 1, 1, 0);
			sends(&f, 2, 1, 100);
			sends(&f, 3, 2, 0);
			if (!resumable) {
				sends(&f, 4, 3, 0);
				continue;
			}
			sends_nothing(&f);
			take(&f, answer_to(&f, 1, 1, 150, 0, 100), 0);
			take(&f, answer_to(&f, 2, 1, 150, 100, 50), 0);
			sends_nothing(&f);
			take(&f, answer_to(&f, 3, 2, 8, 0, 8), 0);
			sends(&f, 4, 3, 0);
			sends(&f, 5, 4, 0);
		}
	}
}

/* A READ that nobody waits for any more holds nothing up, before and after a rewind. */
static void test_abandoned_read(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned rewind = 0; rewind < 2; rewind++) {
		start_at(&f, FIRST, true);
		submit(&f, XTAL_MSG_READ, 1, 150);
		submit(&f, XTAL_MSG_WRITE, 2, 8);
		sends(&f, 1, 1, 0);
		assert_int_equal(xtal_requester_abandon(&f.r, 1, false), 0);
		assert_int_equal(f.r.reads, 0);
		if (rewind) {
			assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0);
			assert_true(f.r.head == 1); /* its place is free at once */
		}
		sends(&f, 2, 2, 0);
		assert_true(take(&f, answer_to(&f, 2, 2, 8, 0, 0), 0).finished);
		assert_true(f.r.head == f.r.tail);
	}
}

static void test_abandoned_write(void **state)
{
	struct fixture f;

	(void)state;
	/* not executed at all: gone */
	start_at(&f, FIRST, true);
	submit(&f, XTAL_MSG_WRITE, 1, 150);
	submit(&f, XTAL_MSG_WRITE, 2, 8);
	sends(&f, 1, 1, 0);
	sends(&f, 2, 1, 100);
	xtal_requester_abandon(&f.r, 1, false);
	assert_int_equal(xtal_requester_rewind(&f.r, 0, 7), 0);
	assert_true(f.r.head == 1);
	sends(&f, 1, 2, 0);
	assert_true(take(&f, answer_to(&f, 1, 2, 8, 0, 0), 0).finished);
	/* in part: no more of it is sent; an answer to that part, or none, may come */
	for (unsigned answered = 0; answered < 2; answered++) {
		struct xtal_msg refusal;

		start_at(&f, FIRST, true);
		submit(&f, XTAL_MSG_WRITE, 1, 250);
		submit(&f, XTAL_MSG_WRITE, 2, 8);
		sends(&f, 1, 1, 0);
		sends(&f, 2, 1, 100);
		xtal_requester_abandon(&f.r, 1, false);
		assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0);
		sends(&f, 2, 2, 0);
		if (answered) {
			refusal = answer_to(&f, 1, 1, 250, 0, 0);
			refusal.status = XTAL_REMOTE_ACCESS;
			assert_true(take(&f, refusal, 0).ignored);
		}
		assert_true(take(&f, answer_to(&f, 2, 2, 8, 0, 0), 0).finished);
		assert_true(f.r.head == f.r.tail);
	}
}

static void test_atomic(void **state)
{
	struct fixture f;
	struct xtal_msg m;

	(void)state;
	start_at(&f, FIRST, true);
	submit(&f, XTAL_MSG_ATOMIC, 1, 8);
	submit(&f, XTAL_MSG_ATOMIC, 2, 8);
	sends(&f, 1, 1, 0);
	sends(&f, 2, 2, 0);
	assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0);
	sends(&f, 2, 2, 0); /* the first was executed: not sent again, its answer comes again */
	sends_nothing(&f);
	m = answer_to(&f, 1, 1, 8, 0, 0);
	m.atomic = XTAL_MSG_FAA;
	m.operand_size = 8;
	m.operand[0] = 9;
	assert_true(take(&f, m, 0).old[0] == 9);
}

static uint64_t lease(struct fixture *f, uint64_t now)
{
	struct xtal_requester_frame frame;

	if (!xtal_requester_next_frame(&f->r, now, &frame))
		return 1;
	return frame.msg.expiry;
}

static void test_leases(void **state)
{
	struct fixture f;
	struct xtal_request q = {
		.cookie = 1, .type = XTAL_MSG_WRITE, .len = 300, .deadline = 200, .limit = 150
	};

	(void)state;
	start_at(&f, FIRST, true);
	f.r.config.peer_stamp = 7000;
	f.r.config.peer_stamp_at = 50;
	assert_int_equal(xtal_requester_submit(&f.r, &q), 0);
	assert_true(lease(&f, 60) == 7000 + (200 - 10 - 50));
	/* it ends a margin before the deadline; then nothing is sent */
	assert_true(lease(&f, 189) == 7140);
	assert_true(lease(&f, 190) == 1);
	xtal_requester_sent(&f.r);
	xtal_requester_sent(&f.r);
	/* progress moves the deadline, and the lease of what is framed from then on */
	xtal_requester_progress(&f.r, 1, 100);
	assert_true(lease(&f, 190) == 7000 + (250 - 10 - 50));
	/* what is executed of it counts as progress, and frames sent again have the new lease */
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 300), 0);
	assert_true(lease(&f, 310) == 7000 + (450 - 10 - 50));
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 400), 0); /* none */
	assert_true(lease(&f, 410) == 7000 + (450 - 10 - 50));
	assert_true(xtal_requester_next_deadline(&f.r) == 450);
}

/* A carrier that gets nothing done is followed by shorter frames. */
static void test_shorter_frames(void **state)
{
	struct fixture f;

	(void)state;
	start_with(&f, FIRST, true, 800);
	submit(&f, XTAL_MSG_WRITE, 1, 2000);
	submit(&f, XTAL_MSG_WRITE, 2, 900);
	assert_int_equal(xtal_requester_rewind(&f.r, 0, 7), 0); /* nothing was lost */
	sends(&f, 1, 1, 0);
	sends(&f, 2, 1, 800);
	assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0); /* one got through */
	sends(&f, 2, 1, 800);
	assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0); /* none: 400 from here on */
	sends(&f, 2, 1, 800);
	sends(&f, 3, 1, 1200);
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 7), 0);
	sends(&f, 3, 1, 1200);
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 7), 0); /* 200 */
	for (uint64_t k = 0; k < 4; k++)
		sends(&f, 3 + k, 1, 1200 + 200 * k);
	/* those that are executed were of all lengths */
	assert_int_equal(xtal_requester_rewind(&f.r, 5, 7), 0);
	sends(&f, 6, 1, 1800);
	sends(&f, 7, 2, 0);
	sends(&f, 8, 2, 200);
	assert_true(take(&f, answer_to(&f, 6, 1, 2000, 0, 0), 0).finished);
	assert_true(f.r.piece == 400); /* for what begins from now on */
	sends(&f, 9, 2, 400);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(xtal_requester_rewind(&f.r, 6, 7), 0);
	assert_true(f.r.piece == 400); /* no frame was lost meanwhile, but for the first time */
	sends(&f, 7, 2, 0);
	sends(&f, 8, 2, 400);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(xtal_requester_rewind(&f.r, 6, 7), 0);
		sends(&f, 7, 2, 0);
	}
	assert_true(f.r.piece >= XTAL_REQUESTER_LEAST && f.r.piece < 2 * XTAL_REQUESTER_LEAST);
}

/* The same for READs, whose requests arrive each time. */
static void test_shorter_reads(void **state)
{
	struct fixture f;

	(void)state;
	start_with(&f, FIRST, true, 800);
	submit(&f, XTAL_MSG_READ, 1, 1000);
	sends(&f, 1, 1, 0);
	sends(&f, 2, 1, 800);
	assert_int_equal(xtal_requester_rewind(&f.r, 2, 7), 0);
	sends(&f, 3, 1, 0);
	sends(&f, 4, 1, 400);
	take(&f, answer_to(&f, 3, 1, 1000, 0, 400), 0);
	assert_int_equal(xtal_requester_rewind(&f.r, 4, 7), 0);
	sends(&f, 5, 1, 400);
	sends(&f, 6, 1, 800);
	take(&f, answer_to(&f, 6, 1, 1000, 400, 400), -EPROTO);
	take(&f, answer_to(&f, 5, 1, 1000, 400, 400), 0);
	assert_true(take(&f, answer_to(&f, 6, 1, 1000, 800, 200), 0).finished);
	assert_true(f.r.piece == 800 && f.r.reading == 0);
}

/* A READ that is asked for again and again does not live for ever. */
static void test_reads_move_by_their_answers(void **state)
{
	struct fixture f;
	struct xtal_request q = {
		.cookie = 1, .type = XTAL_MSG_READ, .len = 300, .deadline = 200, .limit = 150
	};

	(void)state;
	start_at(&f, FIRST, true);
	assert_int_equal(xtal_requester_submit(&f.r, &q), 0);
	for (uint64_t i = 0; i < 3; i++) {
		for (uint64_t k = 1; k <= 3; k++)
			sends(&f, 3 * i + k, 1, 100 * (k - 1));
		xtal_requester_progress(&f.r, 3 * i + 2, 100);
		assert_int_equal(xtal_requester_rewind(&f.r, 3 * i + 3, 110), 0);
		assert_true(xtal_requester_next_deadline(&f.r) == 200);
	}
	sends(&f, 10, 1, 0);
	take(&f, answer_to(&f, 10, 1, 300, 0, 100), 0); /* at 50 */
	assert_true(xtal_requester_next_deadline(&f.r) == 200);
	f.slots[0].request.deadline = 100;
	assert_true(xtal_requester_next_deadline(&f.r) == 50 + 150);
}

/* What READs ask for is bounded: the last answer comes within the lease of its request. */
static void test_reads_do_not_ask_for_all_at_once(void **state)
{
	const uint64_t len = XTAL_REQUESTER_AHEAD, most = len / XTAL_MSG_PIECE;
	struct fixture f;

	(void)state;
	for (unsigned resumable = 0; resumable < 2; resumable++) {
		start_with(&f, FIRST, resumable, XTAL_MSG_PIECE);
		submit(&f, XTAL_MSG_READ, 1, len);
		submit(&f, XTAL_MSG_READ, 2, len);
		for (uint64_t k = 0; k < most; k++)
			sends(&f, 1 + k, 1, k * XTAL_MSG_PIECE);
		if (!resumable) {
			sends(&f, 1 + most, 2, 0);
			continue;
		}
		sends_nothing(&f);
		take(&f, answer_to(&f, 1, 1, len, 0, XTAL_MSG_PIECE), 0);
		sends(&f, 1 + most, 2, 0);
		sends_nothing(&f);
		xtal_requester_abandon(&f.r, 1, false);
		assert_true(f.r.reading == XTAL_MSG_PIECE);
		sends(&f, 2 + most, 2, XTAL_MSG_PIECE);
		assert_int_equal(xtal_requester_rewind(&f.r, 1, 7), 0);
		assert_true(f.r.reading == 0);
		sends(&f, 2, 2, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes_go_on),
		cmocka_unit_test(test_numbers_wrap),
		cmocka_unit_test(test_reads_run_again),
		cmocka_unit_test(test_refused_rewinds),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_abandoned_read),
		cmocka_unit_test(test_abandoned_write),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_shorter_frames),
		cmocka_unit_test(test_shorter_reads),
		cmocka_unit_test(test_reads_move_by_their_answers),
		cmocka_unit_test(test_reads_do_not_ask_for_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
