/* SPDX-License-Identifier: MIT */
/*
 * The Wireshark dissector shows every field of every frame as the codec wrote it, wherever the
 * stream is cut into segments.
 * ctest: timeout=120 plain
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/capture.h"
#include "wire/handshake.h"
#include "wire/message.h"

static char path[] = "/tmp/xtal-XXXXXX";

static const struct xtal_msg write_msg = {
	.type = XTAL_MSG_WRITE,
	.flags = XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY | XTAL_MSG_NOTIFY_TOKEN,
	.seq = 1001,
	.ack = 1002,
	.id = 1003,
	.incarnation = 0x1122334455667788,
	.addr = 0x7f0000001000,
	.total = 5000,
	.offset = 1000,
	.piece = 2000,
	.payload = 2000,
	.token = 0xaabbccdd,
	.tid = 0x51234,
	.key = 7,
	.rights = 2,
	.notify = { .addr = 0x7f0000009000, .data = 0x99, .tid = 0x51235, .token = 0x11 },
	.expiry = 123456789,
	.stamp = 987654321,
};
static const struct xtal_msg cas_msg = {
	.type = XTAL_MSG_ATOMIC,
	.atomic = XTAL_MSG_CAS,
	.operand_size = 8,
	.seq = 1,
	.addr = 0x1000,
	.total = 8,
	.piece = 8,
	.operand = { 0x0807060504030201 },
	.compare = { 0x1817161514131211 },
};
static const struct xtal_msg read_msg = { .type = XTAL_MSG_READ, .id = 8, .total = 9, .piece = 9 };
static const struct xtal_msg denied = { .type = XTAL_MSG_RESPONSE,
					.flags = XTAL_MSG_LAST,
					.id = 8,
					.total = 9,
					.status = XTAL_REMOTE_ACCESS };
static const struct xtal_msg ping = { .type = XTAL_MSG_PING };
static const struct xtal_msg pong = { .type = XTAL_MSG_PONG, .ack = 44 };
static const struct xtal_handshake hello = {
	.type = XTAL_HELLO,
	.resume = true,
	.id = { { 0x0807060504030201, 0x100f0e0d0c0b0a09 } },
	.incarnation = 0x55,
	.peer_incarnation = 0x66,
	.eid = { .hi = 0xfd77000000000000, .lo = 2 },
	.port = 4321,
	.pipeline = 3,
	.window = 64,
	.piece = 65536,
	.first_seq = 1,
	.attempt = 12,
	.seq = 34,
	.stamp = 56,
};
static const struct xtal_handshake refuse = { .type = XTAL_REFUSE,
					      .status = XTAL_UNREACHABLE,
					      .text = "nobody is here" };

static struct {
	uint8_t data[16384];
	size_t len;
} stream;

static void add_message(const struct xtal_msg *m)
{
	assert_null(xtal_msg_check(m));
	xtal_msg_encode(m, stream.data + stream.len);
	stream.len += XTAL_MSG_HEADER;
	for (uint64_t i = 0; i < m->payload; i++)
		stream.data[stream.len++] = (uint8_t)i;
}

static void add_handshake(const struct xtal_handshake *h)
{
	xtal_handshake_encode(h, stream.data + stream.len);
	stream.len += XTAL_MSG_HEADER;
}

/* The stream in segments of so many bytes, as a capture; what tshark prints of it. */
static void dissect(size_t segment, const char *args, char *out, size_t size)
{
	FILE *f = capture_create(path);
	const char *why;

	assert_non_null(f);
	for (size_t at = 0; at < stream.len; at += segment)
		capture_segment(f, true, (uint32_t)at, stream.data + at,
				stream.len - at < segment ? stream.len - at : segment);
	fclose(f);
	stream.len = 0;
	why = capture_dissect(path, args, out, size);
	if (why && strcmp(why, "tshark failed") != 0) {
		print_message("SKIP: %s\n", why);
		skip();
	}
	if (why)
		fail_msg("%s", why);
}

static void fields_of_messages(void **state)
{
	char out[4096];

	(void)state;
	add_message(&write_msg);
	dissect(1400,
		"-T fields -e xtal.magic -e xtal.version -e xtal.type -e xtal.flags "
		"-e xtal.header_length -e xtal.status -e xtal.seq -e xtal.ack -e xtal.id "
		"-e xtal.incarnation -e xtal.addr -e xtal.total -e xtal.offset -e xtal.piece "
		"-e xtal.payload_length -e xtal.token -e xtal.tid -e xtal.key -e xtal.rights "
		"-e xtal.notify.addr -e xtal.notify.data -e xtal.notify.tid -e xtal.notify.token "
		"-e xtal.expiry -e xtal.stamp -E separator=, -Y xtal.type",
		out, sizeof(out));
	assert_string_equal(out, "XTLM,1,0x01,0x0007,192,0,1001,1002,1003,0x1122334455667788,"
				 "0x00007f0000001000,5000,1000,2000,2000,0xaabbccdd,0x00051234,7,"
				 "0x00000002,0x00007f0000009000,0x0000000000000099,0x00051235,"
				 "0x00000011,123456789,987654321\n");
	add_message(&cas_msg);
	dissect(1400,
		"-T fields -e xtal.type -e xtal.atomic -e xtal.operand_size -e xtal.operand "
		"-e xtal.compare -E separator=, -Y xtal.type",
		out, sizeof(out));
	assert_string_equal(out, "0x03,1,8,01020304050607080000000000000000,"
				 "11121314151617180000000000000000\n");
	add_message(&denied);
	dissect(1400,
		"-T fields -e xtal.type -e xtal.status -e xtal.flags.last -e _ws.expert.message "
		"-E separator=, -Y xtal.type",
		out, sizeof(out));
	assert_string_equal(out, "0x20,8,1,The target refused or failed\n");
}

static void fields_of_handshakes(void **state)
{
	char out[4096];

	(void)state;
	add_handshake(&hello);
	dissect(1400,
		"-T fields -e xtal.type -e xtal.flags.resume -e xtal.session -e xtal.incarnation "
		"-e xtal.peer_incarnation -e xtal.eid -e xtal.port -e xtal.pipeline -e xtal.window "
		"-e xtal.max_piece -e xtal.first_seq -e xtal.attempt -e xtal.last_seq "
		"-e xtal.stamp -E separator=, -Y xtal.type",
		out, sizeof(out));
	assert_string_equal(out, "0x40,1,0102030405060708090a0b0c0d0e0f10,0x0000000000000055,"
				 "0x0000000000000066,fd77::2,4321,3,64,65536,1,12,34,56\n");
	add_handshake(&refuse);
	dissect(1400,
		"-T fields -e xtal.type -e xtal.status -e xtal.text -E separator=, -Y xtal.type",
		out, sizeof(out));
	assert_string_equal(out, "0x42,9,nobody is here\n");
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* All frames are found, however the stream is cut. */
static void any_segments(void **state)
{
	static const size_t sizes[] = { 1400, 192, 191, 193, 100, 7 };
	static char out[1 << 20];

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		add_handshake(&hello);
		add_message(&write_msg);
		add_message(&read_msg);
		add_message(&write_msg);
		add_message(&ping);
		add_message(&cas_msg);
		add_message(&denied);
		add_message(&pong);
		dissect(sizes[i], "-O xtal", out, sizeof(out));
		assert_int_equal(count(out, "Xtal messages, HELLO (resume) port 4321"), 1);
		assert_int_equal(count(out, "Xtal messages, WRITE 1003 2000+1000 of 5000 at 0x"),
				 2);
		assert_int_equal(count(out, "Xtal messages, READ 8 9+0 of 9 at 0x"), 1);
		assert_int_equal(count(out, "Xtal messages, ATOMIC 0 CAS 8+0 of 8 at 0x"), 1);
		assert_int_equal(count(out, "Xtal messages, RESPONSE 8 REMOTE_ACCESS"), 1);
		assert_int_equal(count(out, "Xtal messages, PING"), 1);
		assert_int_equal(count(out, "Xtal messages, PONG"), 1);
		assert_int_equal(count(out, "Xtal messages"), 8);
		assert_int_equal(count(out, "No Xtal frame"), 0);
	}
}

/* Other protocols are left alone; what breaks off is said to. */
static void other_streams(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	char out[16384];

	(void)state;
	memcpy(stream.data, http, sizeof(http));
	stream.len = sizeof(http) - 1;
	dissect(1400, "-O xtal", out, sizeof(out));
	assert_int_equal(count(out, "Xtal"), 0);
	add_message(&ping);
	memset(stream.data + stream.len, 'z', 300);
	stream.len += 300;
	dissect(1400, "-O xtal", out, sizeof(out));
	assert_int_equal(count(out, "Xtal messages, PING"), 1);
	assert_true(count(out, "No Xtal frame begins here") > 0);
	/* A length that no frame has. */
	add_message(&ping);
	memset(stream.data + 80, 0xff, 8);
	dissect(1400, "-O xtal", out, sizeof(out));
	assert_true(count(out, "Xtal messages") >= 1);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static int tear_down(void **state)
{
	char err[64];

	(void)state;
	snprintf(err, sizeof(err), "%s.err", path);
	unlink(err);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_messages),
		cmocka_unit_test(fields_of_handshakes),
		cmocka_unit_test(any_segments),
		cmocka_unit_test(other_streams),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
