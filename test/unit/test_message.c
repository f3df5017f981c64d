/* SPDX-License-Identifier: MIT */
/* The codec: golden bytes, every rule broken in turn, random and mutated headers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "base/status.h"
#include "wire/message.h"

static struct xtal_msg a_write(void)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_WRITE,
		.flags = XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY | XTAL_MSG_NOTIFY_TOKEN,
		.seq = 0x1112131415161718,
		.ack = 0x2122232425262728,
		.id = 0x3132333435363738,
		.incarnation = 0x4142434445464748,
		.addr = 0x5152535455565758,
		.total = 0x00000000000a0b0c,
		.offset = 0x000000000000b0b0,
		.piece = 0x0000000000000c0d,
		.payload = 0x0000000000000c0d,
		.token = 0x61626364,
		.tid = 0x71727374,
		.key = 0x81828384,
		.rights = XTAL_MSG_RIGHT_WRITE,
		.notify = {
			.addr = 0x9192939495969798,
			.data = 0xa1a2a3a4a5a6a7a8,
			.tid = 0xb1b2b3b4,
			.token = 0xc1c2c3c4,
		},
		.expiry = 0xd1d2d3d4d5d6d7d8,
		.stamp = 0xe1e2e3e4e5e6e7e8,
	};
}

static struct xtal_msg a_read(void)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_READ,
		.seq = 5,
		.id = 9,
		.incarnation = 7,
		.addr = 0x1000,
		.total = 100000,
		.offset = 65536,
		.piece = 100000 - 65536,
	};
}

static struct xtal_msg a_cas(unsigned size)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_ATOMIC,
		.atomic = XTAL_MSG_CAS,
		.operand_size = (uint8_t)size,
		.seq = 6,
		.id = 10,
		.addr = 0x2000,
		.total = size,
		.piece = size,
		.operand = { 0x7f, 0 },
		.compare = { 0x7e, 0 },
	};
}

static struct xtal_msg a_response(void)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_RESPONSE,
		.flags = XTAL_MSG_LAST,
		.seq = 1,
		.ack = 5,
		.id = 9,
		.total = 100000,
		.offset = 65536,
		.piece = 100000 - 65536,
		.payload = 100000 - 65536,
		.stamp = 77,
	};
}

static struct xtal_msg an_old_value(void)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_RESPONSE,
		.flags = XTAL_MSG_LAST,
		.atomic = XTAL_MSG_FAA,
		.operand_size = 4,
		.total = 4,
		.operand = { 0xffffffff, 0 },
	};
}

static struct xtal_msg a_ping(enum xtal_msg_type type)
{
	return (struct xtal_msg){ .type = type, .ack = 3, .id = 4, .stamp = 5 };
}

static void expect_round_trip(struct xtal_msg m)
{
	uint8_t bytes[XTAL_MSG_HEADER], again[XTAL_MSG_HEADER];
	struct xtal_msg back;
	const char *why = NULL;

	assert_null(xtal_msg_check(&m));
	memset(bytes, 0xee, sizeof(bytes));
	xtal_msg_encode(&m, bytes);
	assert_int_equal(xtal_msg_decode(bytes, sizeof(bytes), &back, &why), 0);
	assert_null(why);
	xtal_msg_encode(&back, again);
	assert_memory_equal(bytes, again, sizeof(bytes));
}

static void test_round_trip(void **state)
{
	(void)state;
	expect_round_trip(a_write());
	expect_round_trip(a_read());
	expect_round_trip(a_cas(4));
	expect_round_trip(a_cas(16));
	expect_round_trip(a_response());
	expect_round_trip(an_old_value());
	expect_round_trip(a_ping(XTAL_MSG_PING));
	expect_round_trip(a_ping(XTAL_MSG_PONG));
	expect_round_trip((struct xtal_msg){ .type = XTAL_MSG_WRITE });
	expect_round_trip((struct xtal_msg){ .type = XTAL_MSG_READ });
}

/* The layout is fixed: little-endian on every machine, each field at its place. */
static void test_golden_bytes(void **state)
{
	static const uint8_t golden[XTAL_MSG_HEADER] = {
		'X',  'T',  'L',  'M',  1,    0x01, 0x07, 0x00, 0xc0, 0x00, 0,    0,    0,    0,
		0,    0,    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25,
		0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x48, 0x47,
		0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51,
		0x0c, 0x0b, 0x0a, 0,    0,    0,    0,    0,    0xb0, 0xb0, 0,    0,    0,    0,
		0,    0,    0x0d, 0x0c, 0,    0,    0,    0,    0,    0,    0x0d, 0x0c, 0,    0,
		0,    0,    0,    0,    0x64, 0x63, 0x62, 0x61, 0x74, 0x73, 0x72, 0x71, 0x84, 0x83,
		0x82, 0x81, 0x02, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
		0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
		0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x98, 0x97, 0x96, 0x95,
		0x94, 0x93, 0x92, 0x91, 0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1, 0xb4, 0xb3,
		0xb2, 0xb1, 0xc4, 0xc3, 0xc2, 0xc1, 0xd8, 0xd7, 0xd6, 0xd5, 0xd4, 0xd3, 0xd2, 0xd1,
		0xe8, 0xe7, 0xe6, 0xe5, 0xe4, 0xe3, 0xe2, 0xe1, 0,    0,    0,    0,    0,    0,
		0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
	};
	struct xtal_msg m = a_write(), back;
	uint8_t bytes[XTAL_MSG_HEADER];

	(void)state;
	xtal_msg_encode(&m, bytes);
	assert_memory_equal(bytes, golden, sizeof(golden));
	assert_int_equal(xtal_msg_decode(golden, sizeof(golden), &back, NULL), 0);
	assert_int_equal(back.type, m.type);
	assert_int_equal(back.flags, m.flags);
	assert_true(back.seq == m.seq && back.ack == m.ack && back.id == m.id);
	assert_true(back.incarnation == m.incarnation && back.addr == m.addr);
	assert_true(back.total == m.total && back.offset == m.offset);
	assert_true(back.piece == m.piece && back.payload == m.payload);
	assert_true(back.token == m.token && back.tid == m.tid && back.key == m.key);
	assert_true(back.notify.addr == m.notify.addr && back.notify.data == m.notify.data);
	assert_true(back.notify.tid == m.notify.tid && back.notify.token == m.notify.token);
	assert_true(back.expiry == m.expiry && back.stamp == m.stamp);
}

/* F51: operands are numbers, not bytes in the order of the machine. */
static void test_golden_operands(void **state)
{
	struct xtal_msg m = a_cas(16), back;
	uint8_t bytes[XTAL_MSG_HEADER];
	static const uint8_t golden[32] = {
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16,
		0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23,
		0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
	};

	(void)state;
	m.operand[0] = 0x0102030405060708;
	m.operand[1] = 0x1112131415161718;
	m.compare[0] = 0x2122232425262728;
	m.compare[1] = 0x3132333435363738;
	xtal_msg_encode(&m, bytes);
	assert_int_equal(bytes[10], XTAL_MSG_CAS);
	assert_int_equal(bytes[11], 16);
	assert_memory_equal(bytes + 104, golden, sizeof(golden));
	assert_int_equal(xtal_msg_decode(bytes, sizeof(bytes), &back, NULL), 0);
	assert_true(back.operand[1] == m.operand[1] && back.compare[0] == m.compare[0]);
}

static void expect_bad_bytes(const uint8_t *bytes, size_t avail, const char *part)
{
	struct xtal_msg out;
	const char *why = NULL;

	memset(&out, 0x5a, sizeof(out));
	assert_int_equal(xtal_msg_decode(bytes, avail, &out, &why), -EPROTO);
	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
	for (size_t i = 0; i < sizeof(out); i++)
		assert_int_equal(((uint8_t *)&out)[i], 0x5a); /* untouched on error */
	assert_int_equal(xtal_msg_decode(bytes, avail, &out, NULL), -EPROTO);
}

static void test_bad_frame(void **state)
{
	uint8_t good[XTAL_MSG_HEADER], bad[XTAL_MSG_HEADER];
	struct xtal_msg m = a_write();

	(void)state;
	xtal_msg_encode(&m, good);
#define BREAK(at, value, part)                              \
	(memcpy(bad, good, sizeof(bad)), bad[at] = (value), \
	 expect_bad_bytes(bad, sizeof(bad), part))
	expect_bad_bytes(good, 0, "shorter");
	expect_bad_bytes(good, XTAL_MSG_HEADER - 1, "shorter");
	BREAK(0, 'Y', "magic");
	BREAK(3, 0, "magic");
	BREAK(4, 0, "version");
	BREAK(4, 2, "version");
	BREAK(5, 0, "type");
	BREAK(5, 4, "type");
	BREAK(5, 0x10, "type");
	BREAK(5, 0x40, "type");
	BREAK(5, 0xff, "type");
	BREAK(6, 0x0f, "flag");
	BREAK(7, 0x80, "flag");
	BREAK(8, 191, "header length");
	BREAK(9, 1, "header length");
	BREAK(10, 1, "atomic");
	BREAK(11, 1, "operand");
	BREAK(12, 17, "status");
	BREAK(15, 1, "status");
	BREAK(12, 8, "status");
	for (unsigned i = 176; i < XTAL_MSG_HEADER; i++)
		BREAK(i, 1, "reserved");
#undef BREAK
}

/* F51, F123: a peer of the other byte order is told apart from noise. */
static void test_other_byte_order(void **state)
{
	uint8_t bytes[XTAL_MSG_HEADER] = { 'M', 'L', 'T', 'X' };

	(void)state;
	expect_bad_bytes(bytes, sizeof(bytes), "byte order");
}

static void expect_bad(struct xtal_msg m, const char *part)
{
	const char *why = xtal_msg_check(&m);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
}

/* Breaks one field of a good message. */
#define BAD(make, field, value, part)      \
	do {                               \
		struct xtal_msg m_ = make; \
		m_.field = (value);        \
		expect_bad(m_, part);      \
	} while (0)

static void test_bad_request(void **state)
{
	(void)state;
	BAD(a_write(), offset, a_write().total + 1, "offset");
	BAD(a_write(), offset, UINT64_MAX, "offset");
	BAD(a_write(), offset, a_write().total - a_write().piece + 1, "reaches");
	BAD(a_write(), piece, UINT64_MAX, "reaches");
	BAD(a_write(), addr, UINT64_MAX - a_write().total + 1, "overflows");
	BAD(a_write(), total, UINT64_MAX, "overflows");
	BAD(a_write(), payload, a_write().piece - 1, "payload");
	BAD(a_write(), payload, UINT64_MAX, "payload");
	BAD(a_write(), payload, 0, "payload");
	BAD(a_write(), rights, 8, "right");
	BAD(a_write(), status, XTAL_REMOTE_ACCESS, "status");
	BAD(a_write(), operand[1], 1, "operand");
	BAD(a_write(), compare[0], 1, "compare");
	BAD(a_write(), flags, XTAL_MSG_NOTIFY | XTAL_MSG_NOTIFY_TOKEN, "token without");
	BAD(a_write(), flags, XTAL_MSG_TOKEN, "notify fields");
	BAD(a_write(), flags, XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY_TOKEN, "notify token");
	BAD(a_write(), flags, XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY, "notify token");
	BAD(a_write(), flags, XTAL_MSG_LAST, "flag");
	BAD(a_write(), notify.addr, UINT64_MAX - 7, "notify address");
	BAD(a_read(), payload, a_read().piece, "payload");
	BAD(a_read(), piece, 0, "empty");
	BAD(a_read(), flags, XTAL_MSG_NOTIFY, "flag");
	BAD(a_read(), token, 1, "token");
	BAD(a_read(), notify.data, 1, "notify");
	BAD(a_read(), atomic, XTAL_MSG_FAA, "atomic");
	BAD(a_read(), operand_size, 8, "operand");
	BAD(a_read(), compare[1], 1, "compare");

	struct xtal_msg big = a_write();

	big.total = 1 << 20;
	big.piece = big.payload = XTAL_MSG_PIECE + 1;
	expect_bad(big, "too long");
	big.piece = big.payload = XTAL_MSG_PIECE;
	assert_null(xtal_msg_check(&big));
}

static void test_bad_atomic(void **state)
{
	static const unsigned good_sizes[] = { 1, 2, 4, 8, 16 };

	(void)state;
	BAD(a_cas(8), atomic, XTAL_MSG_NO_ATOMIC, "missing");
	BAD(a_cas(8), atomic, (enum xtal_msg_atomic)8, "kind");
	BAD(a_cas(16), atomic, XTAL_MSG_FAA, "kind");
	BAD(a_cas(8), operand_size, 0, "size");
	BAD(a_cas(8), operand_size, 4, "size");
	BAD(a_cas(8), total, 16, "size");
	BAD(a_cas(8), payload, 8, "payload");
	BAD(a_cas(8), flags, XTAL_MSG_NOTIFY, "flag");
	BAD(a_cas(8), operand[1], 1, "wider");
	BAD(a_cas(8), compare[1], 1, "wider");
	BAD(a_cas(4), operand[0], UINT64_C(1) << 32, "wider");
	BAD(a_cas(1), compare[0], 256, "wider");
	BAD(a_cas(8), atomic, XTAL_MSG_FAA, "compare");
	BAD(a_cas(8), addr, UINT64_MAX - 7, "overflows");
	for (unsigned size = 0; size < 256; size++) {
		bool good = false;

		for (size_t i = 0; i < sizeof(good_sizes) / sizeof(good_sizes[0]); i++)
			good |= good_sizes[i] == size;
		struct xtal_msg m = a_cas(size);

		assert_int_equal(xtal_msg_check(&m) == NULL, good);
		m.atomic = XTAL_MSG_XOR;
		m.compare[0] = 0;
		assert_int_equal(xtal_msg_check(&m) == NULL, good && size <= 8);
	}
}

static void test_bad_answer(void **state)
{
	(void)state;
	BAD(a_response(), flags, XTAL_MSG_LAST | XTAL_MSG_TOKEN, "flag");
	BAD(a_response(), flags, 0, "flag");
	BAD(a_response(), status, XTAL_FLUSHED, "status");
	BAD(a_response(), status, XTAL_REMOTE_ACCESS, "data");
	BAD(a_response(), offset, 0, "end");
	BAD(a_response(), offset, 70000, "reaches");
	BAD(a_response(), payload, 1, "payload");
	BAD(a_response(), incarnation, 1, "incarnation");
	BAD(a_response(), addr, 1, "address");
	BAD(a_response(), token, 1, "segment");
	BAD(a_response(), tid, 1, "segment");
	BAD(a_response(), key, 1, "segment");
	BAD(a_response(), rights, 1, "rights");
	BAD(a_response(), expiry, 1, "expiry");
	BAD(a_response(), compare[0], 1, "compare");
	BAD(a_response(), notify.addr, 1, "notify");
	BAD(a_response(), operand[0], 1, "operand");
	BAD(a_response(), operand_size, 4, "operand");
	BAD(a_response(), atomic, XTAL_MSG_FAA, "size");
	BAD(an_old_value(), status, XTAL_REMOTE_OPERATION, "value");
	BAD(an_old_value(), operand[0], UINT64_C(1) << 32, "wider");
	BAD(an_old_value(), total, 8, "size");
	BAD(an_old_value(), flags, 0, "flag");
	BAD(an_old_value(), offset, 4, "offset");
	BAD(a_ping(XTAL_MSG_PING), seq, 1, "number");
	BAD(a_ping(XTAL_MSG_PING), flags, 1, "flag");
	BAD(a_ping(XTAL_MSG_PING), status, XTAL_UNREACHABLE, "status");
	BAD(a_ping(XTAL_MSG_PING), total, 1, "length");
	BAD(a_ping(XTAL_MSG_PONG), payload, 1, "length");
	BAD(a_ping(XTAL_MSG_PONG), incarnation, 1, "incarnation");
	BAD(a_ping(XTAL_MSG_PONG), operand[0], 1, "operand");
}

static void test_carrier_length(void **state)
{
	uint8_t bytes[XTAL_MSG_HEADER];
	struct xtal_msg m = a_write(), out;
	const char *why = NULL;

	(void)state;
	xtal_msg_encode(&m, bytes);
	assert_int_equal(xtal_msg_decode_frame(bytes, m.payload, &out, &why), 0);
	assert_int_equal(xtal_msg_decode_frame(bytes, m.payload - 1, &out, &why), -EPROTO);
	assert_non_null(strstr(why, "carrier"));
	assert_int_equal(xtal_msg_decode_frame(bytes, 0, &out, NULL), -EPROTO);
}

/* Whatever decodes is canonical: it encodes to the same bytes and keeps every rule. */
static bool decodes(const uint8_t *bytes)
{
	uint8_t again[XTAL_MSG_HEADER];
	const char *why = NULL;
	struct xtal_msg m;
	int err = xtal_msg_decode(bytes, XTAL_MSG_HEADER, &m, &why);

	if (err) {
		assert_int_equal(err, -EPROTO);
		assert_non_null(why);
		return false;
	}
	xtal_msg_encode(&m, again);
	assert_memory_equal(bytes, again, sizeof(again));
	assert_true(m.piece <= XTAL_MSG_PIECE && m.payload <= XTAL_MSG_PIECE);
	assert_true(m.offset <= m.total && m.piece <= m.total - m.offset);
	assert_true(m.addr + m.total >= m.addr);
	return true;
}

static void test_noise(void **state)
{
	struct rng r = { .state = 1 };
	uint8_t bytes[XTAL_MSG_HEADER];
	unsigned good = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		rng_fill(&r, bytes, sizeof(bytes));
		assert_false(decodes(bytes));
	}
	for (unsigned i = 0; i < 200000; i++) {
		struct xtal_msg seeds[] = { a_write(),    a_read(),       a_cas(8),
					    a_response(), an_old_value(), a_ping(XTAL_MSG_PONG) };

		xtal_msg_encode(&seeds[rng_below(&r, 6)], bytes);
		for (uint64_t n = 1 + rng_below(&r, 3); n > 0; n--) {
			uint8_t *p = &bytes[rng_below(&r, sizeof(bytes))];

			if (rng_below(&r, 2))
				*p = (uint8_t)rng_next(&r);
			else
				*p = (uint8_t)(*p ^ (1u << rng_below(&r, 8)));
		}
		good += decodes(bytes);
	}
	assert_true(good > 1000); /* the mutations reach beyond the first check */
}

static void test_numbers_wrap(void **state)
{
	(void)state;
	assert_true(xtal_seq_after(1, 0));
	assert_false(xtal_seq_after(0, 0));
	assert_true(xtal_seq_after(0, UINT64_MAX));
	assert_false(xtal_seq_after(UINT64_MAX, 0));
	assert_true(xtal_seq_after(UINT64_C(0x100000000), 0xfffffff0));
}

static void test_status(void **state)
{
	(void)state;
	for (unsigned i = 0; i < XTAL_STATUS_COUNT; i++) {
		enum xtal_status s = (enum xtal_status)i;

		assert_string_not_equal(xtal_status_word(s), "unknown");
		assert_string_not_equal(xtal_status_sentence(s), "The status is unknown.");
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(xtal_status_word(s),
						xtal_status_word((enum xtal_status)j));
	}
	assert_string_equal(xtal_status_word((enum xtal_status)17), "unknown");
	assert_string_equal(xtal_status_sentence((enum xtal_status) - 1), "The status is unknown.");
	assert_false(xtal_msg_status_allowed((enum xtal_status)17));
	assert_false(xtal_msg_status_allowed(XTAL_LOCAL_ACCESS));
	assert_true(xtal_msg_status_allowed(XTAL_REMOTE_POISON));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),       cmocka_unit_test(test_golden_bytes),
		cmocka_unit_test(test_golden_operands),  cmocka_unit_test(test_bad_frame),
		cmocka_unit_test(test_other_byte_order), cmocka_unit_test(test_bad_request),
		cmocka_unit_test(test_bad_atomic),       cmocka_unit_test(test_bad_answer),
		cmocka_unit_test(test_carrier_length),   cmocka_unit_test(test_noise),
		cmocka_unit_test(test_numbers_wrap),     cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
