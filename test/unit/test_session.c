/* SPDX-License-Identifier: MIT */
/* Both ends of a session over a byte stream that the test cuts and replaces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/initiator.h"
#include "wire/target.h"

#define WINDOW 4
#define PIECE  100
#define MEMORY 1024
#define WIRE   65536
#define MS     UINT64_C(1000000)
#define MARGIN (50 * MS)
#define LIMIT  (1000 * MS)

static const struct xtal_session_id id = { { 0x1234, 0x5678 } };

struct pipe {
	uint8_t bytes[WIRE];
	size_t from, to;
};

struct world {
	struct xtal_requester requester;
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_initiator i;
	struct xtal_responder responder;
	struct xtal_responder_result cache[WINDOW];
	struct xtal_target t;
	bool has_target;
	struct pipe there, back;
	uint64_t now; /* the initiator's clock; the target's shows 7 s more */
	uint8_t local[MEMORY], remote[MEMORY];
	unsigned executed;       /* effects */
	enum xtal_status refuse; /* what the target's executor answers */
	unsigned ended;
	uint64_t cookie[32]; /* of the operations that ended, in order */
	enum xtal_status status[32];
	uint64_t old[32];
	struct xtal_initiator_event last; /* of the initiator's, UP, HANG_UP or ENDED */
	struct xtal_target_event told;    /* of the target's, HANG_UP or ENDED */
};

static uint64_t target_now(const struct world *w)
{
	return w->now + 7000 * MS;
}

static struct xtal_initiator_config initiator_config(struct world *w)
{
	return (struct xtal_initiator_config){
		.id = id,
		.incarnation = 11,
		.target_incarnation = xtal_incarnation_bits(99),
		.eid = xtal_eid_from_ipv4(0x7f000001),
		.port = 77,
		.pipeline = 3,
		.requester = &w->requester,
		.slots = w->slots,
		.window = WINDOW,
		.piece = PIECE,
		.first_seq = UINT64_MAX - 3,
		.margin = MARGIN,
		.keepalive = 100 * MS,
		.silence = 300 * MS,
		.retry_least = 10 * MS,
		.retry_most = 40 * MS,
	};
}

static void start(struct world *w)
{
	struct xtal_initiator_config c = initiator_config(w);

	memset(w, 0, sizeof(*w));
	w->now = 5000 * MS;
	for (unsigned k = 0; k < MEMORY; k++) {
		w->local[k] = (uint8_t)k;
		w->remote[k] = (uint8_t)(k * 3 + 1);
	}
	assert_int_equal(xtal_initiator_init(&w->i, &c, w->now), 0);
}

static void submit(struct world *w, enum xtal_msg_type type, uint64_t cookie, uint64_t addr,
		   uint64_t len)
{
	struct xtal_request q = {
		.cookie = cookie,
		.type = type,
		.addr = addr,
		.len = len,
		.deadline = w->now + LIMIT,
		.limit = LIMIT,
	};

	if (type == XTAL_MSG_ATOMIC) {
		q.atomic = XTAL_MSG_FAA;
		q.operand_size = 8;
		q.operand[0] = 1;
	}
	assert_int_equal(xtal_requester_submit(&w->requester, &q), 0);
}

static void put(struct pipe *p, const void *data, size_t len)
{
	assert_true(p->to + len <= WIRE);
	memcpy(p->bytes + p->to, data, len);
	p->to += len;
}

/* The initiator writes what it has; at most `most` frames. */
static unsigned initiator_sends(struct world *w, unsigned most)
{
	struct xtal_session_frame f;
	unsigned n = 0;

	while (n < most && xtal_initiator_next_frame(&w->i, w->now, &f)) {
		put(&w->there, f.header, sizeof(f.header));
		put(&w->there, w->local + f.local_offset, f.payload);
		xtal_initiator_sent(&w->i, w->now);
		n++;
	}
	return n;
}

static unsigned target_sends(struct world *w)
{
	struct xtal_session_frame f;
	unsigned n = 0;

	while (w->has_target && xtal_target_next_frame(&w->t, target_now(w), &f)) {
		put(&w->back, f.header, sizeof(f.header));
		put(&w->back, w->remote + f.addr, f.payload);
		xtal_target_sent(&w->t, target_now(w));
		n++;
	}
	return n;
}

static void execute(struct world *w, const struct xtal_responder_effect *e)
{
	uint64_t old[2] = { 0, 0 }, value;

	w->executed++;
	if (w->refuse == XTAL_OK && e->kind == XTAL_RESPONDER_ATOMIC) {
		memcpy(&value, w->remote + e->addr, 8);
		old[0] = value;
		value += e->operand[0];
		memcpy(w->remote + e->addr, &value, 8);
	}
	if (w->refuse == XTAL_OK && e->kind == XTAL_RESPONDER_WRITE && e->last && e->notify_valid)
		memcpy(w->remote + e->notify.addr, &e->notify.data, 8);
	xtal_target_result(&w->t, w->refuse, old, target_now(w));
}

/* The HELLO at the front of the stream reaches the target's listener. */
static void accept_hello(struct world *w)
{
	struct xtal_target_config c = {
		.incarnation = 99,
		.responder = &w->responder,
		.cache = w->cache,
		.cache_size = WINDOW,
		.linger = 2000 * MS,
	};
	struct xtal_handshake hello;
	const char *why = "";

	assert_true(w->there.to - w->there.from >= XTAL_MSG_HEADER);
	assert_int_equal(xtal_handshake_decode(w->there.bytes + w->there.from, &hello, &why), 0);
	w->there.from += XTAL_MSG_HEADER;
	assert_int_equal(xtal_target_check_hello(&hello, 77, 99, &why), XTAL_OK);
	if (w->has_target)
		assert_int_equal(xtal_target_resume(&w->t, &hello, target_now(w), &why), 0);
	else
		assert_int_equal(xtal_target_init(&w->t, &c, &hello, target_now(w)), 0);
	w->has_target = true;
}

/* The target takes at most `most` bytes, in steps of `step`. */
static void target_takes(struct world *w, size_t most, size_t step)
{
	struct pipe *p = &w->there;
	size_t end = p->to - p->from < most ? p->to : p->from + most;

	for (;;) {
		struct xtal_target_event e;
		size_t n = end - p->from < step ? end - p->from : step;
		uint64_t addr, left = xtal_target_payload(&w->t, &addr);

		target_sends(w);
		if (left != 0) {
			if (n == 0)
				return;
			n = n < left ? n : left;
			if (!xtal_target_may_land(&w->t, target_now(w))) {
				w->told.kind = XTAL_TARGET_HANG_UP;
				return;
			}
			if (w->refuse == XTAL_OK) {
				memcpy(w->remote + addr, p->bytes + p->from, n);
				p->from += n;
				xtal_target_landed(&w->t, n);
			}
			if (w->refuse != XTAL_OK || n == left)
				execute(w, &w->t.effect);
			continue;
		}
		p->from += xtal_target_take(&w->t, p->bytes + p->from, n, target_now(w), &e);
		if (e.kind == XTAL_TARGET_EXECUTE && xtal_target_payload(&w->t, &addr) == 0)
			execute(w, &e.effect);
		if (e.kind == XTAL_TARGET_HANG_UP || e.kind == XTAL_TARGET_ENDED) {
			w->told = e;
			target_sends(w);
			return;
		}
		if (e.kind == XTAL_TARGET_MORE && p->from == end)
			break;
	}
	target_sends(w);
}

static void note(struct world *w, const struct xtal_initiator_event *e)
{
	if (e->kind == XTAL_INITIATOR_MORE || e->kind == XTAL_INITIATOR_PAYLOAD)
		return;
	if (e->kind != XTAL_INITIATOR_ANSWER) {
		w->last = *e;
	} else if (e->effect.finished) {
		w->cookie[w->ended] = e->effect.cookie;
		w->status[w->ended] = e->effect.status;
		w->old[w->ended++] = e->effect.old[0];
	}
}

static void initiator_takes(struct world *w, size_t most, size_t step)
{
	struct pipe *p = &w->back;
	size_t end = p->to - p->from < most ? p->to : p->from + most;

	for (;;) {
		struct xtal_initiator_event e;
		size_t n = end - p->from < step ? end - p->from : step;
		uint64_t cookie, offset, left = xtal_initiator_payload(&w->i, &cookie, &offset);

		if (left != 0 && n != 0) {
			n = n < left ? n : left;
			memcpy(w->local + offset, p->bytes + p->from, n);
			p->from += n;
			xtal_initiator_placed(&w->i, n, w->now, &e);
			note(w, &e);
			continue;
		}
		p->from += xtal_initiator_take(&w->i, p->bytes + p->from, n, w->now, &e);
		note(w, &e);
		if (p->from == end && (e.kind == XTAL_INITIATOR_MORE || left != 0))
			return;
	}
}

static void connect(struct world *w)
{
	w->there = w->back = (struct pipe){ .from = 0 };
	assert_true(xtal_initiator_wants_connection(&w->i, w->now));
	xtal_initiator_connected(&w->i, w->now);
	assert_int_equal(initiator_sends(w, 9), 1);
	accept_hello(w);
	target_sends(w);
	initiator_takes(w, WIRE, WIRE);
	assert_int_equal(w->last.kind, XTAL_INITIATOR_UP);
}

static void cut(struct world *w)
{
	w->there = w->back = (struct pipe){ .from = 0 };
	xtal_initiator_disconnected(&w->i, w->now);
	if (w->has_target)
		xtal_target_disconnected(&w->t, target_now(w));
	w->now += 100 * MS;
}

/* Everything flows until nothing moves any more. */
static void settle(struct world *w)
{
	while (initiator_sends(w, 99) + (w->there.to - w->there.from) +
		       (w->back.to - w->back.from) !=
	       0) {
		target_takes(w, WIRE, WIRE);
		initiator_takes(w, WIRE, WIRE);
	}
}

static void test_opens(void **state)
{
	struct world w;

	(void)state;
	start(&w);
	assert_int_equal(w.i.state, XTAL_SESSION_DOWN);
	assert_true(xtal_initiator_next_time(&w.i) == w.now);
	connect(&w);
	assert_int_equal(w.i.state, XTAL_SESSION_UP);
	assert_int_equal(w.t.state, XTAL_SESSION_UP);
	assert_true(xtal_initiator_next_time(&w.i) == XTAL_NEVER);
	assert_true(xtal_target_next_time(&w.t) == XTAL_NEVER);
	submit(&w, XTAL_MSG_WRITE, 1, 500, 250);
	submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
	submit(&w, XTAL_MSG_READ, 3, 0, 250);
	settle(&w);
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
	struct world w;
	bool there_over = false, back_over = false;

	(void)state;
	for (size_t at = 0; !there_over || !back_over; at++) {
		for (unsigned direction = 0; direction < 2; direction++) {
			uint64_t faa;

			start(&w);
			connect(&w);
			submit(&w, XTAL_MSG_WRITE, 1, 500, 150);
			submit(&w, XTAL_MSG_ATOMIC, 2, 800, 8);
			submit(&w, XTAL_MSG_READ, 3, 200, 250);
			submit(&w, XTAL_MSG_ATOMIC, 4, 800, 8);
			memcpy(&faa, w.remote + 800, 8);
			initiator_sends(&w, 99);
			if (direction == 0)
				there_over = at >= w.there.to - w.there.from;
			target_takes(&w, direction ? WIRE : at, 37);
			if (direction == 1)
				back_over = at >= w.back.to - w.back.from;
			initiator_takes(&w, direction ? at : WIRE, 41);
			cut(&w);
			assert_int_equal(xtal_requester_is_busy(&w.requester), w.ended < 4);
			if (w.ended < 4) {
				connect(&w);
				settle(&w);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
