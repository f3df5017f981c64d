/* SPDX-License-Identifier: MIT */
/* Short forms of messages: what comes out is what the long form would have brought. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "path/ring.h"
#include "wire/short.h"

_Static_assert(XTAL_RING_SHORT == XTAL_SHORT_BYTES, "a short frame carries one message");

static struct xtal_msg a_send(uint64_t seq)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_SEND,
		.flags = XTAL_MSG_TOKEN | XTAL_MSG_TO_JETTY | XTAL_MSG_FROM_JETTY,
		.operand_size = XTAL_MSG_SEND_PLAIN,
		.seq = seq,
		.ack = seq - 3,
		.id = 0x7f0011223344 + seq,
		.incarnation = 0x4142434445464748,
		.total = 8,
		.piece = 8,
		.payload = 8,
		.token = 0x61626364,
		.tid = 0x71727374,
		.key = 0x10002,
		.operand = { 0, 3 },
		.compare = { 0x1112131415161718, 0x2122232425262728 },
		.notify = { .tid = 0x31323334, .token = 0x20005 },
		.expiry = 0x5152535455565758,
	};
}

static void same(const struct xtal_msg *a, const struct xtal_msg *b)
{
	uint8_t one[XTAL_MSG_HEADER], two[XTAL_MSG_HEADER];

	assert_null(xtal_msg_check(a));
	xtal_msg_encode(a, one);
	xtal_msg_encode(b, two);
	assert_memory_equal(one, two, sizeof(one));
}

struct ends {
	struct xtal_short_models sender, receiver;
};

/* One message on its way. True: it took its short form. */
static bool travel(struct ends *e, const struct xtal_msg *m)
{
	uint8_t bytes[XTAL_SHORT_BYTES], data[XTAL_SHORT_PAYLOAD];
	const uint8_t *payload;
	struct xtal_msg out, want = *m;
	bool is_short;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(m->seq * 31 + i);
	memset(bytes, 0xee, sizeof(bytes));
	is_short = xtal_short_encode(&e->sender, m, data, bytes);
	if (is_short) {
		assert_int_equal(xtal_short_decode(&e->receiver, bytes, &out, &payload, NULL), 0);
		if (m->type == XTAL_MSG_SEND)
			want.stamp = 0;
		same(&out, &want);
		assert_memory_equal(payload ? payload : data, data, m->payload);
	} else {
		xtal_short_note(&e->sender, m);
		xtal_short_note(&e->receiver, m);
	}
	assert_memory_equal(&e->sender, &e->receiver, sizeof(e->sender));
	return is_short;
}

static void test_after_a_model(void **state)
{
	struct ends e = { 0 };
	struct xtal_msg m = a_send(UINT64_MAX - 1);

	(void)state;
	assert_false(travel(&e, &m));
	for (uint64_t seq = UINT64_MAX; seq != 3; seq++) { /* also past the wrap */
		uint64_t last = m.id;

		m = a_send(seq);
		m.notify.addr = seq % 2 ? last : 0;
		m.flags |= seq % 3 ? XTAL_MSG_SOLICITED : 0;
		m.stamp = 5;
		assert_true(travel(&e, &m));
	}
	m = a_send(4);
	m.operand_size = XTAL_MSG_SEND_IMM;
	m.operand[0] = 0xa1a2a3a4a5a6a7a8;
	assert_true(travel(&e, &m));
	m = a_send(5);
	m.total = m.piece = m.payload = 0;
	assert_true(travel(&e, &m));
	m = a_send(6);
	m.total = m.piece = m.payload = 16;
	assert_true(travel(&e, &m));
}

/* What differs from its model in a way that cannot be told goes the long way, and is the next model. */
static void test_what_has_none(void **state)
{
	struct xtal_msg m;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct ends e = { 0 };

		m = a_send(10);
		assert_false(travel(&e, &m));
		m = a_send(11);
		switch (i) {
		case 0:
			m.total = m.piece = m.payload = 17;
			break;
		case 1:
			m.operand_size = XTAL_MSG_SEND_IMM;
			m.total = m.piece = m.payload = 9;
			break;
		case 2:
			m.operand_size = XTAL_MSG_SEND_INVALIDATE;
			break;
		case 3:
			m.operand_size = XTAL_MSG_SEND_WRITTEN;
			m.total = m.piece = m.payload = 0;
			m.notify.data = 8;
			break;
		case 4:
			m.token++;
			break;
		case 5:
			m.flags ^= XTAL_MSG_FROM_JETTY;
			break;
		case 6:
			m.key++;
			break;
		case 7:
			m.tid++;
			break;
		case 8:
			m.operand[1]++;
			break;
		case 9:
			m.compare[1]++;
			break;
		case 10:
			m.compare[0]++;
			break;
		case 11:
			m.notify.tid++;
			break;
		case 12:
			m.notify.token++;
			break;
		case 13:
			m.notify.addr = 77; /* not its model */
			break;
		case 14:
			m.seq += UINT64_C(1) << 31;
			break;
		case 15:
			m.incarnation++;
			break;
		}
		assert_false(travel(&e, &m));
		m.seq++;
		m.notify.addr = 0;
		assert_true(i < 4 || travel(&e, &m));
	}
}

static void test_answers(void **state)
{
	struct ends e = { 0 };
	struct xtal_msg m = { .type = XTAL_MSG_RESPONSE,
			      .flags = XTAL_MSG_LAST,
			      .seq = 0x1112131415161718,
			      .ack = 0x2122232425262728,
			      .id = 0x3132333435363738,
			      .total = 0x4142434445464748,
			      .stamp = 0x5152535455565758 };

	(void)state;
	assert_true(travel(&e, &m));
	m.status = XTAL_NOT_READY;
	m.operand[0] = 10;
	assert_false(travel(&e, &m));
	m.status = XTAL_OK;
	m.atomic = XTAL_MSG_FAA;
	m.operand_size = 8;
	m.total = 8;
	assert_false(travel(&e, &m));
	m = (struct xtal_msg){ .type = XTAL_MSG_PONG, .ack = 4 };
	assert_false(travel(&e, &m));
}

static void test_ends_that_disagree(void **state)
{
	uint8_t bytes[XTAL_SHORT_BYTES] = { 0 }, data[XTAL_SHORT_PAYLOAD] = { 0 };
	struct ends e = { 0 }, other;
	struct xtal_msg m = a_send(10), out;
	const uint8_t *payload;
	const char *why = NULL;

	(void)state;
	xtal_short_note(&e.sender, &m);
	m.seq++;
	assert_true(xtal_short_encode(&e.sender, &m, data, bytes));
	assert_int_equal(xtal_short_decode(&e.receiver, bytes, &out, &payload, &why), -EPROTO);
	assert_string_equal(why, "model is another one");
	m.seq = 9;
	xtal_short_note(&e.receiver, &m);
	assert_int_equal(xtal_short_decode(&e.receiver, bytes, &out, &payload, NULL), -EPROTO);
	m.seq = 10;
	xtal_short_note(&e.receiver, &m);
	/* Each byte that has a rule. */
	for (unsigned at = 0; at < 4; at++) {
		uint8_t was = bytes[at];

		other = e;
		bytes[at] = 0xff;
		assert_int_equal(xtal_short_decode(&e.receiver, bytes, &out, &payload, &why),
				 -EPROTO);
		assert_memory_equal(&other, &e, sizeof(e));
		bytes[at] = was;
	}
	assert_int_equal(xtal_short_decode(&e.receiver, bytes, &out, &payload, NULL), 0);
}

/* Many queues over one link, long and short ones in any order. */
static void test_random(void **state)
{
	struct ends e = { 0 };
	uint64_t last[8] = { 0 };
	struct rng r = { .state = 3 };
	unsigned brief = 0;

	(void)state;
	for (uint64_t seq = 1; seq < 20000; seq++) {
		struct xtal_msg m = a_send(seq * 3);
		unsigned queue = (unsigned)rng_below(&r, 8);

		m.notify.token = 0x20000 + queue;
		m.key = 0x10000 + (uint32_t)rng_below(&r, 2);
		m.total = m.piece = m.payload = rng_below(&r, 19);
		m.notify.addr = rng_below(&r, 3) ? last[queue] : 0;
		last[queue] = m.id;
		brief += travel(&e, &m);
	}
	assert_true(brief > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_a_model), cmocka_unit_test(test_what_has_none),
		cmocka_unit_test(test_answers),       cmocka_unit_test(test_ends_that_disagree),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
