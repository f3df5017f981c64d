/* SPDX-License-Identifier: MIT */
/* A session over a byte stream that the test cuts and replaces: what goes on, and how it ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/duet.h"

static void test_opens(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	assert_int_equal(w.i.state, XTAL_SESSION_DOWN);
	assert_true(xtal_initiator_next_time(&w.i) == w.now);
	duet_connect(&w);
	assert_int_equal(w.i.state, XTAL_SESSION_UP);
	assert_int_equal(w.t.state, XTAL_SESSION_UP);
	assert_true(xtal_initiator_next_time(&w.i) == XTAL_NEVER);
	assert_true(xtal_target_next_time(&w.t) == XTAL_NEVER);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 250);
	duet_submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
	duet_submit(&w, XTAL_MSG_READ, 3, 0, 250);
	duet_settle(&w);
	assert_int_equal(w.ended, 3);
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(w.cookie[k], k + 1);
		assert_int_equal(w.status[k], XTAL_OK);
	}
	assert_int_equal(w.executed, 7);
	for (unsigned k = 0; k < 250; k++) {
		assert_int_equal(w.remote[500 + k], (uint8_t)k);
		assert_int_equal(w.local[k], (uint8_t)(k * 3 + 1));
	}
}

/* Every cut at every byte of either direction: nothing is executed twice, all of it ends. */
static void test_cut_anywhere(void **state)
{
	struct duet w;
	bool there_over = false, back_over = false;

	(void)state;
	for (size_t at = 0; !there_over || !back_over; at++) {
		for (unsigned direction = 0; direction < 2; direction++) {
			uint64_t faa;

			duet_start(&w);
			duet_connect(&w);
			duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 150);
			duet_submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
			duet_submit(&w, XTAL_MSG_READ, 3, 200, 250);
			duet_submit(&w, XTAL_MSG_ATOMIC, 4, 800, 8);
			memcpy(&faa, w.remote + 800, 8);
			duet_initiator_sends(&w, 99);
			if (direction == 0)
				there_over = at >= w.there.to - w.there.from;
			duet_target_takes(&w, direction ? DUET_WIRE : at, 37);
			if (direction == 1)
				back_over = at >= w.back.to - w.back.from;
			duet_initiator_takes(&w, direction ? at : DUET_WIRE, 41);
			duet_cut(&w);
			assert_int_equal(xtal_requester_is_busy(&w.requester), w.ended < 4);
			if (w.ended < 4) {
				duet_connect(&w);
				duet_settle(&w);
			}
			assert_int_equal(w.ended, 4);
			for (unsigned k = 0; k < 4; k++) {
				assert_int_equal(w.cookie[k], k + 1);
				assert_int_equal(w.status[k], XTAL_OK);
			}
			assert_true(w.old[1] == faa && w.old[3] == faa + 1);
			memcpy(&faa, w.remote + 800, 8);
			assert_true(faa == w.old[1] + 2);
			for (unsigned k = 0; k < 250; k++)
				assert_int_equal(w.local[k], (uint8_t)((200 + k) * 3 + 1));
		}
	}
}

static void test_silence(void **state)
{
	struct xtal_initiator_event e;
	struct duet w;
	uint64_t began;

	(void)state;
	/* no WELCOME */
	duet_greet(&w);
	began = w.now;
	assert_true(xtal_initiator_next_time(&w.i) == began + 300 * DUET_MS);
	xtal_initiator_tick(&w.i, began + 300 * DUET_MS - 1, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_MORE);
	xtal_initiator_tick(&w.i, began + 300 * DUET_MS, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_HANG_UP);
	/* nothing open: no PING, for ever */
	duet_start(&w);
	duet_connect(&w);
	began = w.now;
	xtal_initiator_tick(&w.i, began + 900 * DUET_MS, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_MORE);
	assert_int_equal(duet_initiator_sends(&w, 9), 0);
	/* a PING after 100 ms, and 300 ms later it is over, whether it could be sent or not */
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
	assert_int_equal(duet_initiator_sends(&w, 9), 1);
	assert_true(xtal_initiator_next_time(&w.i) == began + 100 * DUET_MS);
	xtal_initiator_tick(&w.i, began + 100 * DUET_MS, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_MORE);
	assert_true(xtal_initiator_next_time(&w.i) == began + 400 * DUET_MS);
	assert_int_equal(duet_initiator_sends(&w, 9), 1);
	assert_int_equal(duet_initiator_sends(&w, 9), 0);
	xtal_initiator_tick(&w.i, began + 400 * DUET_MS - 1, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_MORE);
	xtal_initiator_tick(&w.i, began + 400 * DUET_MS, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_HANG_UP);
	/* a single byte shows that it lives */
	w.now = began + 350 * DUET_MS;
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_true(w.back.to > w.back.from);
	duet_initiator_takes(&w, 1, 1);
	assert_true(xtal_initiator_next_time(&w.i) == w.now + 100 * DUET_MS);
	duet_settle(&w);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.executed, 1);
	assert_true(w.requester.acked == UINT64_MAX - 3);
}

static void test_news(void **state)
{
	struct duet w;
	size_t answered;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 300);
	duet_initiator_sends(&w, 99);
	duet_target_takes(&w, 292, DUET_WIRE);
	answered = w.back.to;
	w.now += XTAL_SESSION_NEWS;
	duet_target_takes(&w, 292, DUET_WIRE);
	assert_int_equal(w.back.to - answered, XTAL_MSG_HEADER);
	duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
	/* the second frame is known to be executed, and the deadline has moved */
	assert_true(w.requester.acked == UINT64_MAX - 2);
	assert_true(xtal_requester_next_deadline(&w.requester) == w.now + DUET_LIMIT);
	duet_settle(&w);
	assert_int_equal(w.ended, 1);
}

/* What is late at the target is not executed; who still waits for it sends it again. */
static void test_late_frame(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_ATOMIC, 1, 800, 8);
	duet_initiator_sends(&w, 99);
	w.now += DUET_LIMIT - DUET_MARGIN + 1; /* clocks go alike here: the lease is over by 1 ns */
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.told.kind, XTAL_TARGET_HANG_UP);
	assert_int_equal(w.executed, 0);
	/* on its last tick it is executed */
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_ATOMIC, 1, 800, 8);
	duet_initiator_sends(&w, 99);
	w.now += DUET_LIMIT - DUET_MARGIN;
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.executed, 1);
	/* the deadline has moved since the frame was sent: resumed, it is sent with a new lease */
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 50);
	duet_submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
	duet_initiator_sends(&w, 99);
	w.now += DUET_LIMIT - 2 * DUET_MARGIN;
	duet_target_takes(&w, XTAL_MSG_HEADER + 50, DUET_WIRE);
	duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.ended, 1);
	w.now += 2 * DUET_MARGIN;
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.told.kind, XTAL_TARGET_HANG_UP);
	duet_cut(&w);
	duet_connect(&w);
	duet_settle(&w);
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.status[1], XTAL_OK);
	assert_int_equal(w.executed, 2);
}

/* The payload arrives after its lease: what is there already stays, the rest never lands. */
static void test_late_payload(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 100);
	duet_initiator_sends(&w, 99);
	duet_target_takes(&w, XTAL_MSG_HEADER + 40, DUET_WIRE);
	w.now += DUET_LIMIT - DUET_MARGIN + 1;
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.told.kind, XTAL_TARGET_HANG_UP);
	assert_int_equal(w.executed, 0);
	assert_int_equal(w.remote[539], 39);
	assert_int_equal(w.remote[540], (uint8_t)(540 * 3 + 1));
}

/* An operation that was given up before the connection went is not sent again. */
static void test_given_up(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_ATOMIC, 1, 800, 8);
	duet_submit(&w, XTAL_MSG_READ, 2, 200, 100);
	duet_initiator_sends(&w, 99);
	assert_int_equal(xtal_requester_abandon(&w.requester, 1, false), 0);
	duet_cut(&w);
	duet_connect(&w);
	duet_settle(&w);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.cookie[0], 2);
	assert_int_equal(w.executed, 1);
	/* in the middle of its data: the rest is eaten */
	duet_submit(&w, XTAL_MSG_READ, 3, 300, 100);
	duet_submit(&w, XTAL_MSG_READ, 4, 400, 10);
	duet_initiator_sends(&w, 99);
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	duet_initiator_takes(&w, XTAL_MSG_HEADER + 30, DUET_WIRE);
	memset(w.local, 0xee, sizeof(w.local));
	assert_int_equal(xtal_requester_abandon(&w.requester, 3, false), 0);
	duet_initiator_takes(&w, DUET_WIRE, 13);
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.cookie[1], 4);
	assert_int_equal(w.local[30], 0xee);
	assert_int_equal(w.local[0], (uint8_t)(400 * 3 + 1));
}

static void test_refused_write(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 250);
	duet_submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
	duet_initiator_sends(&w, 99);
	w.refuse = XTAL_REMOTE_ACCESS;
	duet_target_takes(&w, XTAL_MSG_HEADER + 1, DUET_WIRE);
	w.refuse = XTAL_OK;
	duet_settle(&w);
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.status[0], XTAL_REMOTE_ACCESS);
	assert_int_equal(w.status[1], XTAL_OK);
	for (unsigned k = 500; k < 750; k++)
		assert_int_equal(w.remote[k], (uint8_t)(k * 3 + 1));
}

static void test_result_needs_all(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 100);
	duet_initiator_sends(&w, 99);
	duet_target_takes(&w, XTAL_MSG_HEADER + 40, DUET_WIRE);
	xtal_target_result(&w.t, XTAL_OK, NULL, duet_target_now(&w)); /* a slip of the owner */
	duet_settle(&w);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.status[0], XTAL_REMOTE_OPERATION);
}

static void test_close(void **state)
{
	struct duet w;

	(void)state;
	/* the initiator: what is open ends first */
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
	duet_initiator_sends(&w, 99);
	xtal_initiator_close(&w.i);
	assert_int_equal(duet_initiator_sends(&w, 99), 0);
	duet_settle(&w);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.status[0], XTAL_OK);
	duet_ends(&w, XTAL_FLUSHED, "closed");
	assert_int_equal(w.told.kind, XTAL_TARGET_ENDED);
	assert_int_equal(w.t.state, XTAL_SESSION_ENDED);
	/* without a connection it is over at once */
	duet_start(&w);
	xtal_initiator_close(&w.i);
	assert_int_equal(w.i.state, XTAL_SESSION_ENDED);
	/* ... also when the first one fails while we wait */
	duet_greet(&w);
	xtal_initiator_close(&w.i);
	xtal_initiator_disconnected(&w.i, w.now);
	assert_int_equal(w.i.state, XTAL_SESSION_ENDED);
	/* a target that does not answer the BYE */
	duet_start(&w);
	duet_connect(&w);
	xtal_initiator_close(&w.i);
	assert_int_equal(duet_initiator_sends(&w, 99), 1);
	assert_true(xtal_initiator_next_time(&w.i) == w.now + 100 * DUET_MS);
	xtal_initiator_disconnected(&w.i, w.now);
	assert_int_equal(w.i.state, XTAL_SESSION_ENDED);
	/* the target: everything ends with its status, and nothing more is executed */
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
	duet_initiator_sends(&w, 99);
	xtal_target_close(&w.t, XTAL_UNREACHABLE, "its context is closed");
	duet_target_takes(&w, DUET_WIRE, DUET_WIRE);
	duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w.executed, 0);
	duet_ends(&w, XTAL_UNREACHABLE, "its context is closed");
}

static void test_idle_end(void **state)
{
	struct duet w;
	struct xtal_initiator_event e;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	xtal_initiator_disconnected(&w.i, w.now);
	assert_int_equal(w.i.state, XTAL_SESSION_ENDED); /* a new session costs no more */
	assert_int_equal(w.i.status, XTAL_FLUSHED);
	/* the last operation is given up while there is no connection */
	duet_start(&w);
	duet_connect(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
	xtal_initiator_disconnected(&w.i, w.now);
	assert_int_equal(w.i.state, XTAL_SESSION_DOWN);
	xtal_requester_abandon(&w.requester, 1, false);
	assert_true(xtal_initiator_next_time(&w.i) == XTAL_NEVER);
	xtal_initiator_tick(&w.i, w.now, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_ENDED);
	/* the owner knows better */
	duet_start(&w);
	duet_connect(&w);
	xtal_initiator_end(&w.i, XTAL_UNREACHABLE, "nobody holds the port");
	xtal_initiator_tick(&w.i, w.now, &e);
	assert_int_equal(e.kind, XTAL_INITIATOR_ENDED);
	assert_int_equal(e.status, XTAL_UNREACHABLE);
	assert_string_equal(e.why, "nobody holds the port");
}

static void test_linger(void **state)
{
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	xtal_target_disconnected(&w.t, duet_target_now(&w));
	assert_true(xtal_target_next_time(&w.t) == duet_target_now(&w) + 2000 * DUET_MS);
	w.t.config.linger = UINT64_MAX;
	assert_true(xtal_target_next_time(&w.t) == XTAL_NEVER);
	w.t.config.linger = 2000 * DUET_MS;
	/* A request that may be asked for again for longer keeps its session; up to a point. */
	duet_start(&w);
	duet_connect(&w);
	duet_submit_for(&w, XTAL_MSG_ATOMIC, 2, 800, 8, 50000 * DUET_MS);
	duet_settle(&w);
	assert_int_equal(w.executed, 1);
	xtal_target_disconnected(&w.t, duet_target_now(&w));
	assert_in_range(xtal_target_next_time(&w.t) - duet_target_now(&w), 49000 * DUET_MS,
			52000 * DUET_MS);
	w.t.last_expiry = UINT64_MAX;
	assert_true(xtal_target_next_time(&w.t) ==
		    duet_target_now(&w) + XTAL_TARGET_LINGERS * 2000 * DUET_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_late_frame),
		cmocka_unit_test(test_late_payload),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_refused_write),
		cmocka_unit_test(test_result_needs_all),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_idle_end),
		cmocka_unit_test(test_linger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
