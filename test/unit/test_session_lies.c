/* SPDX-License-Identifier: MIT */
/* A session whose other end lies, refuses, or has forgotten: each field, each way round. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/duet.h"

static void test_target_lies_in_greeting(void **state)
{
	struct xtal_handshake good = {
		.type = XTAL_WELCOME,
		.id = duet_id,
		.incarnation = 99,
		.peer_incarnation = 11,
		.attempt = 1,
		.seq = UINT64_MAX - 4,
		.stamp = 1,
	};
	struct xtal_handshake h;
	struct xtal_msg pong = { .type = XTAL_MSG_PONG };
	struct duet w;

	(void)state;
	duet_greet(&w);
	duet_target_says(&w, &good, NULL);
	assert_int_equal(w.last.kind, XTAL_INITIATOR_UP);
	duet_greet(&w);
	h = good;
	h.id.word[1]++;
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "somebody else");
	duet_greet(&w);
	h = good;
	h.attempt = 2;
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "somebody else");
	duet_greet(&w);
	h = good;
	h.peer_incarnation = 12;
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "somebody else");
	duet_greet(&w);
	h = good;
	h.incarnation++;
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_REMOTE_ACCESS, "another incarnation");
	duet_greet(&w);
	h = good;
	h.seq++;
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "never sent");
	duet_greet(&w);
	duet_target_says(&w, NULL, &pong);
	duet_ends(&w, XTAL_UNREACHABLE, "before the welcome");
	duet_greet(&w);
	h = (struct xtal_handshake){ .type = XTAL_BYE, .id = duet_id };
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "farewell");
	/* a WELCOME that nobody can have asked for yet */
	duet_start(&w);
	xtal_initiator_connected(&w.i, w.now);
	duet_target_says(&w, &good, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "without a greeting");
}

/* Over a later connection that only means that somebody else has answered: nothing has failed yet. */
static void test_a_stranger_answers(void **state)
{
	static const char banner[] = "SSH-2.0-OpenSSH_9.2\r\n";
	struct xtal_msg pong = { .type = XTAL_MSG_PONG };
	struct xtal_handshake h = { .type = XTAL_BYE, .id = duet_id };
	uint8_t noise[XTAL_MSG_HEADER];
	struct duet w;

	(void)state;
	/* shorter than a header, and no more comes */
	duet_greet(&w);
	duet_put(&w.back, (const uint8_t *)banner, sizeof(banner) - 1);
	duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
	duet_ends(&w, XTAL_UNREACHABLE, "another protocol");
	for (unsigned k = 0; k < 4; k++) {
		duet_start(&w);
		duet_connect(&w);
		duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
		xtal_initiator_disconnected(&w.i, w.now);
		w.there = w.back = (struct duet_pipe){ .from = 0 };
		xtal_initiator_connected(&w.i, w.now);
		assert_int_equal(duet_initiator_sends(&w, 9), 1);
		memset(noise, 0, sizeof(noise));
		if (k == 0) {
			duet_put(&w.back, (const uint8_t *)banner, sizeof(banner) - 1);
		} else if (k == 1) {
			xtal_handshake_encode(&h, noise);
			noise[4]++; /* another version */
			duet_put(&w.back, noise, sizeof(noise));
		} else if (k == 2) {
			xtal_msg_encode(&pong, noise);
			duet_put(&w.back, noise, sizeof(noise));
		} else {
			memset(noise, 'n', sizeof(noise));
			duet_put(&w.back, noise, sizeof(noise));
		}
		duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
		assert_int_equal(w.last.kind, XTAL_INITIATOR_HANG_UP);
		assert_non_null(w.last.why);
		assert_int_not_equal(w.i.state, XTAL_SESSION_ENDED);
		xtal_initiator_disconnected(&w.i, w.now);
		assert_true(xtal_requester_is_busy(w.i.config.requester));
		assert_true(xtal_initiator_next_time(&w.i) != XTAL_NEVER);
	}
}

static void test_target_lies_when_up(void **state)
{
	struct xtal_handshake h = { .type = XTAL_REFUSE, .status = XTAL_UNREACHABLE };
	struct xtal_msg m = { .type = XTAL_MSG_PONG, .ack = 5 };
	uint8_t noise[XTAL_MSG_HEADER];
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "refusal after");
	duet_start(&w);
	duet_connect(&w);
	duet_target_says(&w, NULL, &m);
	duet_ends(&w, XTAL_UNREACHABLE, "never sent");
	duet_start(&w);
	duet_connect(&w);
	h = (struct xtal_handshake){ .type = XTAL_BYE, .id = { { 1, 1 } } };
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_UNREACHABLE, "farewell");
	duet_start(&w);
	duet_connect(&w);
	memset(noise, 'n', sizeof(noise));
	duet_put(&w.back, noise, sizeof(noise));
	duet_initiator_takes(&w, DUET_WIRE, 7);
	duet_ends(&w, XTAL_UNREACHABLE, "magic");
}

static void test_refused(void **state)
{
	struct duet w;
	struct xtal_handshake h;

	(void)state;
	duet_greet(&w);
	xtal_target_refuse(XTAL_REMOTE_ACCESS, "no such context", &h);
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_REMOTE_ACCESS, "no such context");
	duet_greet(&w);
	xtal_target_refuse(XTAL_OK, "nonsense", &h);
	assert_int_equal(h.status, XTAL_REMOTE_OPERATION);
	duet_target_says(&w, &h, NULL);
	duet_ends(&w, XTAL_REMOTE_OPERATION, "nonsense");
	/* try again later, at growing intervals */
	duet_greet(&w);
	for (unsigned k = 0; k < 5; k++) {
		static const uint64_t pause[5] = { 0, 10, 20, 40, 40 };

		xtal_target_refuse(XTAL_NOT_READY, "busy", &h);
		duet_target_says(&w, &h, NULL);
		assert_int_equal(w.last.kind, XTAL_INITIATOR_HANG_UP);
		xtal_initiator_disconnected(&w.i, w.now);
		assert_true(xtal_initiator_next_time(&w.i) == w.now + pause[k] * DUET_MS);
		w.now += pause[k] * DUET_MS;
		assert_true(xtal_initiator_wants_connection(&w.i, w.now));
		assert_false(pause[k] && xtal_initiator_wants_connection(&w.i, w.now - 1));
		w.there = w.back = (struct duet_pipe){ .from = 0 };
		xtal_initiator_connected(&w.i, w.now);
		assert_int_equal(duet_initiator_sends(&w, 9), 1);
	}
	/* an answer makes the next attempt immediate again */
	duet_accept(&w);
	duet_target_sends(&w);
	duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
	duet_submit(&w, XTAL_MSG_WRITE, 1, 500, 8);
	duet_settle(&w);
	duet_submit(&w, XTAL_MSG_WRITE, 2, 500, 8);
	xtal_initiator_disconnected(&w.i, w.now);
	assert_true(xtal_initiator_wants_connection(&w.i, w.now));
}

static void test_check_hello(void **state)
{
	struct xtal_handshake h = { .port = 7, .peer_incarnation = xtal_incarnation_bits(99) };
	const char *why = NULL;

	(void)state;
	assert_int_equal(xtal_target_check_hello(&h, 7, 99, &why), XTAL_OK);
	assert_int_equal(xtal_target_check_hello(&h, 8, 99, &why), XTAL_UNREACHABLE);
	assert_int_equal(xtal_target_check_hello(&h, 7, 100, &why), XTAL_REMOTE_ACCESS);
	h.peer_incarnation = XTAL_INCARNATION_ANY;
	assert_int_equal(xtal_target_check_hello(&h, 7, 100, &why), XTAL_OK);
	h.peer_incarnation = xtal_incarnation_bits(99);
	h.resume = true; /* now all the bits count */
	assert_int_equal(xtal_target_check_hello(&h, 7, 99, &why), XTAL_REMOTE_ACCESS);
	h.peer_incarnation = 99;
	assert_int_equal(xtal_target_check_hello(&h, 7, 99, &why), XTAL_OK);
	assert_int_equal(xtal_target_check_hello(&h, 7, 99 + 15, &why), XTAL_REMOTE_ACCESS);
	assert_non_null(strstr(why, "incarnation"));
}

static void test_resume_refused(void **state)
{
	struct xtal_handshake good = {
		.type = XTAL_HELLO,
		.resume = true,
		.id = duet_id,
		.incarnation = 11,
		.peer_incarnation = 99,
		.port = 77,
		.pipeline = 3,
		.window = DUET_WINDOW,
		.piece = DUET_PIECE,
		.first_seq = UINT64_MAX - 3,
		.attempt = 2,
		.seq = UINT64_MAX - 4,
	};
	struct xtal_target_config tc = { .incarnation = 99, .cache_size = DUET_WINDOW };
	struct xtal_handshake h;
	const char *why = NULL;
	struct duet w;

	(void)state;
	duet_start(&w);
	duet_connect(&w);
#define REFUSED(field, value, err)                                                              \
	do {                                                                                    \
		h = good;                                                                       \
		h.field = value;                                                                \
		assert_int_equal(xtal_target_resume(&w.t, &h, duet_target_now(&w), &why), err); \
		assert_int_equal(w.t.state, XTAL_SESSION_UP);                                   \
	} while (0)
	REFUSED(attempt, 1, -EALREADY);
	assert_true(xtal_target_is_stale(&w.t, &h));
	REFUSED(id.word[0], 1, -EPROTO);
	REFUSED(incarnation, 12, -EPROTO);
	REFUSED(pipeline, 4, -EPROTO);
	REFUSED(window, DUET_WINDOW * 2, -EPROTO);
	REFUSED(piece, DUET_PIECE + 1, -EPROTO);
	REFUSED(first_seq, 1, -EPROTO);
	REFUSED(seq, UINT64_MAX - 3, -EPROTO); /* an answer that was never sent */
#undef REFUSED
	assert_false(xtal_target_is_stale(&w.t, &good));
	assert_int_equal(xtal_target_resume(&w.t, &good, duet_target_now(&w), &why), 0);
	assert_int_equal(w.t.state, XTAL_SESSION_GREETING);
	xtal_target_close(&w.t, XTAL_UNREACHABLE, "over");
	good.attempt = 3;
	assert_int_equal(xtal_target_resume(&w.t, &good, duet_target_now(&w), &why), -EPROTO);
	/* a session cannot begin in its middle, nor with a window that its cache cannot hold */
	tc.responder = &w.responder;
	tc.cache = w.cache;
	assert_int_equal(xtal_target_init(&w.t, &tc, &good, 1), -EPROTO);
	good.resume = false;
	good.window = DUET_WINDOW * 2;
	assert_int_equal(xtal_target_init(&w.t, &tc, &good, 1), -ENOBUFS);
	good.window = DUET_WINDOW;
	tc.cache_size = DUET_WINDOW + 1;
	assert_int_equal(xtal_target_init(&w.t, &tc, &good, 1), -EINVAL);
}

static void test_initiator_lies(void **state)
{
	struct xtal_msg m = { .type = XTAL_MSG_RESPONSE, .flags = XTAL_MSG_LAST };
	struct xtal_handshake h = { .type = XTAL_BYE, .id = { { 9, 9 } } };
	uint8_t header[XTAL_MSG_HEADER];
	struct duet w;

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		duet_start(&w);
		duet_connect(&w);
		if (k == 0)
			xtal_msg_encode(&m, header);
		else
			xtal_handshake_encode(&h, header);
		if (k == 2)
			header[0] = 'Y';
		duet_put(&w.there, header, sizeof(header));
		duet_target_takes(&w, DUET_WIRE, 50);
		assert_int_equal(w.told.kind, XTAL_TARGET_ENDED);
		/* it is told why */
		duet_initiator_takes(&w, DUET_WIRE, DUET_WIRE);
		duet_ends(&w, XTAL_REMOTE_OPERATION, w.told.why);
	}
}

static void test_init(void **state)
{
	struct duet w;
	struct xtal_initiator_config c;

	(void)state;
#define BAD(field, value)                                                    \
	do {                                                                 \
		c = duet_initiator_config(&w);                               \
		c.field = value;                                             \
		assert_int_equal(xtal_initiator_init(&w.i, &c, 1), -EINVAL); \
	} while (0)
	BAD(requester, NULL);
	BAD(slots, NULL);
	BAD(window, 3);
	BAD(piece, 0);
	BAD(id, (struct xtal_session_id){ 0 });
	BAD(incarnation, 0);
	BAD(target_incarnation, 0);
	BAD(target_incarnation, 17);
	BAD(port, 0);
	BAD(port, 0xffff);
	BAD(keepalive, 0);
	BAD(silence, 0);
#undef BAD
	c = duet_initiator_config(&w);
	assert_int_equal(xtal_initiator_init(&w.i, &c, 1), 0);
}

static void test_stream(void **state)
{
	struct xtal_stream s = { .have = 5, .left = 5 };
	uint8_t bytes[500] = { 1, 2, 3 };

	(void)state;
	xtal_stream_reset(&s);
	assert_int_equal(xtal_stream_header(&s, bytes, 100), 100);
	assert_int_equal(xtal_stream_header(&s, bytes, 0), 0);
	assert_int_equal(xtal_stream_header(&s, bytes, 500), 92);
	assert_int_equal(s.have, XTAL_MSG_HEADER);
	assert_int_equal(xtal_stream_header(&s, bytes, 500), 0);
	assert_int_equal(s.header[100], 1);
	xtal_stream_expect(&s, 10);
	xtal_stream_taken(&s, 4);
	assert_int_equal(s.left, 6);
	assert_int_equal(s.have, XTAL_MSG_HEADER);
	xtal_stream_taken(&s, 6);
	assert_int_equal(s.have, 0);
	assert_int_equal(xtal_stream_header(&s, bytes, 500), XTAL_MSG_HEADER);
	xtal_stream_expect(&s, 0);
	assert_int_equal(s.have, 0);
	s.left = 3;
	xtal_stream_taken(&s, 7);
	assert_int_equal(s.left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_lies_in_greeting),
		cmocka_unit_test(test_a_stranger_answers),
		cmocka_unit_test(test_target_lies_when_up),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_check_hello),
		cmocka_unit_test(test_resume_refused),
		cmocka_unit_test(test_initiator_lies),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
