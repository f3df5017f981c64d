/* SPDX-License-Identifier: MIT */
/* The frames of a session: what is written, byte by byte, and each field's rules. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/handshake.h"

static const struct xtal_handshake hello = {
	.type = XTAL_HELLO,
	.resume = true,
	.id = { { 0x1122334455667788, 0x99aabbccddeeff00 } },
	.incarnation = 0x0102030405060708,
	.peer_incarnation = 0x1112131415161718,
	.eid = { .hi = 0x2001000000000000, .lo = 0x1234 },
	.port = 0xfffe,
	.pipeline = 0x31323334,
	.window = 64,
	.piece = XTAL_MSG_PIECE,
	.first_seq = 0x4142434445464748,
	.attempt = 0x5152535455565758,
	.seq = 0x6162636465666768,
	.stamp = 0x7172737475767778,
};

static const struct xtal_handshake welcome = {
	.type = XTAL_WELCOME,
	.id = { { 1, 2 } },
	.incarnation = 3,
	.peer_incarnation = 4,
	.attempt = 5,
	.seq = 6,
	.stamp = 7,
};

static const struct xtal_handshake refuse = {
	.type = XTAL_REFUSE,
	.status = XTAL_REMOTE_ACCESS,
	.text = "no",
};

static const struct xtal_handshake bye = {
	.type = XTAL_BYE,
	.id = { { 1, 0 } },
	.text = "closed",
};

/* What decode says of the frame; NULL: it takes it, and it is the same again. */
static const char *refused(const struct xtal_handshake *h)
{
	uint8_t bytes[XTAL_MSG_HEADER], second[XTAL_MSG_HEADER];
	struct xtal_handshake again;
	const char *why = NULL;

	xtal_handshake_encode(h, bytes);
	if (xtal_handshake_decode(bytes, &again, &why)) {
		assert_non_null(why);
		assert_int_equal(xtal_handshake_decode(bytes, &again, NULL), -EPROTO);
		return why;
	}
	xtal_handshake_encode(&again, second);
	assert_memory_equal(bytes, second, sizeof(bytes));
	return NULL;
}

static void must_say(struct xtal_handshake h, const char *part)
{
	const char *why = refused(&h);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void test_bytes(void **state)
{
	static const uint8_t
		golden[112] = {
			'X',  'T',  'L',  'M',  1,    0x40, 1,    0,    192,  0,    0,    0, 0,
			0,    0,    0,    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* id */
			0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 8,    7,    6,    5, 4,
			3,    2,    1, /* incarnation */
			0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x20, 0x01, 0,    0, 0,
			0,    0,    0,    0,    0,    0,    0,    0,    0,    0x12, 0x34, /* eid */
			0xfe, 0xff, 0,    0,    0x34, 0x33, 0x32, 0x31, /* port, pipeline */
			64,   0,    0,    0,    0,    0,    1,    0,    /* window, piece */
			0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, /* first_seq */
			0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, /* attempt */
			0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, /* seq */
			0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, /* stamp */
		};
	uint8_t bytes[XTAL_MSG_HEADER];

	(void)state;
	xtal_handshake_encode(&hello, bytes);
	assert_memory_equal(bytes, golden, sizeof(golden));
	for (unsigned k = sizeof(golden); k < sizeof(bytes); k++)
		assert_int_equal(bytes[k], 0);
	xtal_handshake_encode(&refuse, bytes);
	assert_int_equal(bytes[12], XTAL_REMOTE_ACCESS);
	assert_string_equal((char *)bytes + 112, "no");
}

static void test_round_trips(void **state)
{
	(void)state;
	assert_null(refused(&hello));
	assert_null(refused(&welcome));
	assert_null(refused(&refuse));
	assert_null(refused(&bye));
}

static void test_hello_rules(void **state)
{
	struct xtal_handshake h = hello;

	(void)state;
#define WITH(field, value, part)             \
	do {                                 \
		struct xtal_handshake w = h; \
		w.field = value;             \
		must_say(w, part);           \
	} while (0)
	WITH(status, XTAL_REMOTE_ACCESS, "status");
	WITH(status, 99, "unknown status");
	WITH(text[0], 'x', "text");
	WITH(incarnation, 0, "incarnation");
	WITH(peer_incarnation, 0, "incarnation");
	WITH(port, 0, "port");
	WITH(port, 0xffff, "port");
	WITH(window, 0, "window");
	WITH(window, 3, "window");
	WITH(piece, 0, "piece");
	WITH(piece, XTAL_MSG_PIECE + 1, "piece");
	WITH(attempt, 0, "number");
	WITH(id, (struct xtal_session_id){ 0 }, "id");
	h.resume = false;
	WITH(peer_incarnation, 17, "incarnation bits");
	h.peer_incarnation = 16;
	WITH(seq, h.first_seq, "received");
	h.seq = h.first_seq - 1;
	assert_null(refused(&h));
	h.first_seq = 0;
	h.seq = UINT64_MAX;
	assert_null(refused(&h));
	h.id.word[0] = 0; /* one word is enough */
	assert_null(refused(&h));
}

static void test_other_rules(void **state)
{
	struct xtal_handshake h = welcome;

	(void)state;
	WITH(resume, true, "flag");
	WITH(eid.hi, 1, "wanted");
	WITH(eid.lo, 1, "wanted");
	WITH(port, 1, "wanted");
	WITH(pipeline, 1, "wanted");
	WITH(window, 1, "terms");
	WITH(piece, 1, "terms");
	WITH(first_seq, 1, "terms");
	WITH(status, XTAL_REMOTE_ACCESS, "status");
	WITH(text[0], 'x', "text");
	WITH(incarnation, 0, "incarnation");
	WITH(peer_incarnation, 0, "incarnation");
	WITH(attempt, 0, "number");
	WITH(id, (struct xtal_session_id){ 0 }, "id");
	h = refuse;
	WITH(status, XTAL_OK, "reason");
	WITH(status, XTAL_LOCAL_ACCESS, "reason");
	WITH(id.word[1], 1, "session");
	WITH(incarnation, 1, "farewell");
	WITH(peer_incarnation, 1, "farewell");
	WITH(attempt, 1, "farewell");
	WITH(seq, 1, "number");
	WITH(stamp, 1, "number");
	WITH(port, 1, "wanted");
	h = bye;
	WITH(id, (struct xtal_session_id){ 0 }, "id");
	WITH(status, XTAL_FLUSHED, "status");
	WITH(incarnation, 1, "farewell");
	WITH(type, 0x44, "unknown type");
#undef WITH
}

static void test_frame_rules(void **state)
{
	static const struct {
		unsigned at;
		const char *part;
	} bad[] = {
		{ 0, "not a frame" }, { 3, "not a frame" }, { 4, "version" }, { 6, "reserved" },
		{ 7, "reserved" },    { 8, "length" },      { 9, "length" },  { 10, "reserved" },
		{ 11, "reserved" },   { 13, "status" },     { 15, "status" },
	};
	uint8_t bytes[XTAL_MSG_HEADER];
	struct xtal_handshake h;
	const char *why;

	(void)state;
	for (unsigned k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		xtal_handshake_encode(&hello, bytes);
		assert_true(xtal_handshake_is(bytes));
		bytes[bad[k].at] ^= 0x80;
		assert_int_equal(xtal_handshake_decode(bytes, &h, &why), -EPROTO);
		if (!strstr(why, bad[k].part))
			fail_msg("byte %u: %s", bad[k].at, why);
	}
	bytes[5] = XTAL_MSG_PING;
	assert_false(xtal_handshake_is(bytes));
	bytes[5] = 0x50;
	assert_false(xtal_handshake_is(bytes));
}

static void test_text(void **state)
{
	uint8_t bytes[XTAL_MSG_HEADER];
	struct xtal_handshake h = refuse;

	(void)state;
	memset(h.text, 'a', sizeof(h.text)); /* not terminated: cut */
	xtal_handshake_encode(&h, bytes);
	assert_int_equal(bytes[XTAL_MSG_HEADER - 1], 0);
	assert_int_equal(xtal_handshake_decode(bytes, &h, NULL), 0);
	assert_int_equal(strlen(h.text), XTAL_HANDSHAKE_TEXT - 1);
	/* what a peer writes goes into logs */
	memcpy(bytes + 112, "a\033[2J\xff\x7f~ \n", 10);
	memset(bytes + 122, 0, XTAL_MSG_HEADER - 122);
	assert_int_equal(xtal_handshake_decode(bytes, &h, NULL), 0);
	assert_string_equal(h.text, "a?[2J??~ ?");
	memset(bytes + 112, 'b', XTAL_HANDSHAKE_TEXT);
	assert_int_equal(xtal_handshake_decode(bytes, &h, NULL), 0);
	assert_int_equal(strlen(h.text), XTAL_HANDSHAKE_TEXT - 1);
}

static void test_ids(void **state)
{
	struct xtal_session_id a = { { 1, 2 } }, b = a;

	(void)state;
	assert_true(xtal_session_id_equal(a, b));
	b.word[0] ^= UINT64_C(1) << 63;
	assert_false(xtal_session_id_equal(a, b));
	b = a;
	b.word[1] ^= 1;
	assert_false(xtal_session_id_equal(a, b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),       cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_hello_rules), cmocka_unit_test(test_other_rules),
		cmocka_unit_test(test_frame_rules), cmocka_unit_test(test_text),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
