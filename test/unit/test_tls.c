/* SPDX-License-Identifier: MIT */
/*
 * TLS between two ends in one thread: the streams are two buffers, which a test can starve,
 * shorten, cut and falsify; and strangers that speak TLS, but not ours.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/tls.h"

#define ROOM (1u << 20)

/* One direction. */
struct pipe {
	uint8_t data[ROOM];
	size_t used, taken;
	size_t grain; /* at most so many bytes per call */
	size_t room;  /* that it holds before it blocks */
	size_t cut;   /* ends after so many bytes; 0: never */
	size_t total;
	int error;
	unsigned stutter; /* every n-th read, and every n-th write, blocks */
	unsigned reads, writes;
	const char *last; /* where what was written last lay */
};

struct end {
	struct pipe *in, *out;
	struct xtal_os_tls *tls;
};

static struct {
	struct pipe to_server, to_client;
	struct xtal_os_tls_context *ours, *same, *other_secret, *other_id;
	struct end client, server;
} t;

static int64_t pipe_read(void *arg, void *buf, size_t len)
{
	struct pipe *p = ((struct end *)arg)->in;
	size_t n = p->used - p->taken;

	if (p->error)
		return p->error;
	if (p->stutter && p->reads++ % p->stutter == 0)
		return -EAGAIN;
	if (n == 0)
		return p->cut && p->total >= p->cut ? 0 : -EAGAIN;
	n = n < len ? n : len;
	n = n < p->grain ? n : p->grain;
	memcpy(buf, p->data + p->taken, n);
	p->taken += n;
	if (p->taken == p->used)
		p->taken = p->used = 0;
	return (int64_t)n;
}

static int64_t pipe_write(void *arg, const void *buf, size_t len)
{
	struct pipe *p = ((struct end *)arg)->out;
	size_t n = p->room - p->used;

	p->last = buf;
	if (p->stutter && p->writes++ % p->stutter == 0)
		return -EAGAIN;
	n = n < len ? n : len;
	n = n < p->grain ? n : p->grain;
	if (n == 0)
		return -EAGAIN;
	if (p->cut && p->total + n > p->cut)
		n = p->cut - p->total;
	memcpy(p->data + p->used, buf, n);
	p->used += n;
	p->total += n;
	return p->cut && p->total == p->cut ? (int64_t)len : (int64_t)n; /* the rest is lost */
}

static void pipe_init(struct pipe *p)
{
	p->used = p->taken = p->total = p->cut = 0;
	p->grain = p->room = ROOM;
	p->error = 0;
	p->stutter = p->reads = p->writes = 0;
}

static void open_end(struct end *e, bool server, struct xtal_os_tls_context *context)
{
	struct xtal_os_tls_stream stream = { .read = pipe_read, .write = pipe_write, .arg = e };

	assert_int_equal(xtal_os_tls_open(context, server, &stream, &e->tls), 0);
}

/* Lets both go on until each has succeeded or failed. */
static void shake(int *client, int *server)
{
	*client = *server = -EAGAIN;
	for (unsigned i = 0; i < 200000 && (*client == -EAGAIN || *server == -EAGAIN); i++) {
		if (*client == -EAGAIN)
			*client = xtal_os_tls_handshake(t.client.tls);
		if (*server == -EAGAIN)
			*server = xtal_os_tls_handshake(t.server.tls);
	}
}

static void connect_both(void)
{
	int client, server;

	open_end(&t.client, false, t.ours);
	open_end(&t.server, true, t.same);
	shake(&client, &server);
	assert_int_equal(client, 0);
	assert_int_equal(server, 0);
}

/* Moves len bytes and compares them; returns the number of write calls that moved some. */
static unsigned transfer(struct end *from, struct end *to, size_t len)
{
	uint8_t *sent = malloc(len), *got = calloc(1, len);
	size_t out = 0, in = 0;
	unsigned calls = 0;

	for (size_t i = 0; i < len; i++)
		sent[i] = (uint8_t)(i * 131 + (i >> 8));
	while (in < len) {
		int64_t n =
			out < len ? xtal_os_tls_write(from->tls, sent + out, len - out) : -EAGAIN;

		if (n > 0) {
			out += (size_t)n;
			calls++;
		} else {
			assert_int_equal(n, -EAGAIN);
		}
		n = xtal_os_tls_read(to->tls, got + in, len - in);
		if (n > 0)
			in += (size_t)n;
		else
			assert_int_equal(n, -EAGAIN);
	}
	assert_memory_equal(sent, got, len);
	free(sent);
	free(got);
	return calls;
}

static void the_same_key_on_both_sides(void **state)
{
	char byte;

	(void)state;
	connect_both();
	assert_int_equal(xtal_os_tls_read(t.server.tls, &byte, 1), -EAGAIN);
	assert_false(xtal_os_tls_wants_write(t.server.tls));
	transfer(&t.client, &t.server, 1);
	transfer(&t.server, &t.client, 100000);
	assert_int_equal(transfer(&t.client, &t.server, XTAL_OS_TLS_RECORD), 1);
	assert_int_equal(xtal_os_tls_handshake(t.client.tls), 0); /* again: nothing */
	assert_string_equal(xtal_os_tls_reason(t.client.tls), "");
}

static void what_goes_over_the_wire_is_not_the_data(void **state)
{
	static const char secret[] = "a sentence that nobody else shall read";

	(void)state;
	connect_both();
	assert_int_equal(xtal_os_tls_write(t.client.tls, secret, sizeof(secret)), sizeof(secret));
	assert_true(t.to_server.used > sizeof(secret));
	assert_null(memmem(t.to_server.data, t.to_server.used, secret, 10));
}

static void any_grain_of_the_stream_will_do(void **state)
{
	(void)state;
	t.to_server.grain = t.to_client.grain = 1;
	t.to_server.stutter = 3;
	t.to_client.stutter = 2;
	connect_both();
	transfer(&t.client, &t.server, 40000);
	transfer(&t.server, &t.client, 5000);
}

/* Bytes that malloc has given out. */
/* Also when it goes out in parts. */
static void the_place_of_the_data_is_known(void **state)
{
	const char *place;

	(void)state;
	connect_both();
	transfer(&t.client, &t.server, 3 * XTAL_OS_TLS_RECORD);
	place = xtal_os_tls_place(t.client.tls);
	assert_ptr_equal(place, t.to_server.last + 5);
	t.to_server.grain = 100;
	t.to_server.stutter = 3;
	transfer(&t.client, &t.server, 3 * XTAL_OS_TLS_RECORD);
	assert_ptr_not_equal(place, t.to_server.last + 5);
	assert_ptr_equal(place, xtal_os_tls_place(t.client.tls));
}

static size_t in_use(void)
{
	return mallinfo2().uordblks;
}

static void at_rest_it_costs_little(void **state)
{
	const char *sanitizer = getenv("XTAL_TEST_SANITIZE"); /* has a malloc of its own */
	const bool counted = !sanitizer || !*sanitizer;
	uint8_t sent[600], got[600] = { 0 };
	size_t before;

	(void)state;
	connect_both();
	for (unsigned i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 7);
	transfer(&t.client, &t.server, 3000);
	before = in_use();
	transfer(&t.client, &t.server, 3000);
	if (counted) /* nothing is taken and given back for each message */
		assert_int_equal(in_use(), before);
	xtal_os_tls_rest(t.client.tls);
	xtal_os_tls_rest(t.server.tls);
	if (counted)
		assert_true(in_use() + 48 * 1024 <= before);
	transfer(&t.server, &t.client, 3000);
	transfer(&t.client, &t.server, 3000);

	/* Half a record is here, and half of one has not left: neither is lost. */
	t.to_server.room = 300;
	assert_int_equal(xtal_os_tls_write(t.client.tls, sent, sizeof(sent)), -EAGAIN);
	assert_int_equal(xtal_os_tls_read(t.server.tls, got, sizeof(got)), -EAGAIN);
	xtal_os_tls_rest(t.client.tls);
	xtal_os_tls_rest(t.server.tls);
	t.to_server.room = ROOM;
	assert_int_equal(xtal_os_tls_write(t.client.tls, sent, sizeof(sent)), sizeof(sent));
	assert_int_equal(xtal_os_tls_read(t.server.tls, got, sizeof(got)), sizeof(got));
	assert_memory_equal(sent, got, sizeof(sent));
}

static void errors_of_others_are_not_ours(void **state)
{
	char byte;

	(void)state;
	connect_both();
	ERR_raise(ERR_LIB_USER, 1); /* the program's own use of OpenSSL */
	assert_int_equal(xtal_os_tls_read(t.server.tls, &byte, 1), -EAGAIN);
	ERR_raise(ERR_LIB_USER, 1);
	transfer(&t.client, &t.server, 10);
	ERR_raise(ERR_LIB_USER, 1);
	assert_int_equal(xtal_os_tls_shutdown(t.client.tls), 0);
	assert_int_equal(xtal_os_tls_read(t.server.tls, &byte, 1), 0);
	assert_int_equal(ERR_GET_LIB(ERR_peek_error()), ERR_LIB_USER); /* and theirs are not lost */
	ERR_clear_error();
}

/* Reads nothing, which is what the next read will begin behind. */
static void look(struct end *e)
{
	char byte;

	assert_int_equal(xtal_os_tls_read(e->tls, &byte, 1), -EAGAIN);
}

static void an_empty_look_changes_nothing(void **state)
{
	static const size_t lengths[] = {
		1, 8, 200, 234, 235, 255, 256, 257, 600, XTAL_OS_TLS_RECORD, 3 * XTAL_OS_TLS_RECORD
	};
	uint8_t block[XTAL_OS_TLS_RECORD] = { 0 };
	unsigned n = sizeof(lengths) / sizeof(lengths[0]);
	char byte;

	(void)state;
	connect_both();
	look(&t.server);
	for (unsigned i = 0; i < 2 * n * n;
	     i++) { /* each behind each, after an empty look or not */
		transfer(&t.client, &t.server, lengths[i / 2 % n]);
		transfer(&t.client, &t.server, lengths[i / 2 / n]);
		for (unsigned looks = 0; looks < 3 * (i % 2); looks++)
			look(&t.server);
	}
	for (size_t grain = 1; grain < 300; grain += 13) {
		t.to_server.grain = grain;
		look(&t.server);
		transfer(&t.client, &t.server, 20);
		transfer(&t.client, &t.server, 500);
	}
	/* A reader that waits for data does not wait for room, though a writer did before. */
	t.to_client.room = 1000;
	assert_int_equal(xtal_os_tls_write(t.server.tls, block, sizeof(block)), -EAGAIN);
	assert_true(xtal_os_tls_wants_write(t.server.tls));
	look(&t.server);
	assert_false(xtal_os_tls_wants_write(t.server.tls));
	/* It is one call of the stream, as without TLS. */
	t.to_server.stutter = 1000;
	t.to_server.reads = 1;
	look(&t.server);
	look(&t.server);
	assert_int_equal(t.to_server.reads, 3);
	t.to_server.error = -EHOSTUNREACH;
	assert_int_equal(xtal_os_tls_read(t.server.tls, &byte, 1), -EHOSTUNREACH);
	t.to_server.error = 0; /* as a socket, which tells once */
	assert_int_equal(xtal_os_tls_read(t.server.tls, &byte, 1), -EHOSTUNREACH);
}

static void the_end_after_an_empty_look(void **state)
{
	char buf[8];

	(void)state;
	connect_both();
	look(&t.server);
	look(&t.client);
	assert_int_equal(xtal_os_tls_write(t.client.tls, "last", 4), 4);
	assert_int_equal(xtal_os_tls_shutdown(t.client.tls), 0);
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), 4);
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), 0);
	t.to_client.cut = t.to_client.total;
	assert_int_equal(xtal_os_tls_read(t.client.tls, buf, 8), -ECONNRESET);
	assert_non_null(strstr(xtal_os_tls_reason(t.client.tls), "without a farewell"));
}

static void a_full_stream_is_waited_for(void **state)
{
	uint8_t block[XTAL_OS_TLS_RECORD], back[XTAL_OS_TLS_RECORD];
	size_t in = 0;
	int64_t n;

	(void)state;
	connect_both();
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i ^ i >> 8);
	t.to_server.room = 1000;
	assert_int_equal(xtal_os_tls_write(t.client.tls, block, sizeof(block)), -EAGAIN);
	assert_true(xtal_os_tls_wants_write(t.client.tls));
	while (in < sizeof(back)) {
		n = xtal_os_tls_read(t.server.tls, back + in, sizeof(back) - in);
		if (n > 0)
			in += (size_t)n;
		else
			assert_int_equal(n, -EAGAIN);
		if (in == sizeof(back))
			break;
		n = xtal_os_tls_write(t.client.tls, block, sizeof(block));
		assert_true(n == -EAGAIN || n == sizeof(block));
	}
	assert_memory_equal(block, back, sizeof(block));
	/* The blocked record went out once, as one. */
	assert_int_equal(xtal_os_tls_read(t.server.tls, back, 1), -EAGAIN);
}

static void pieces_share_a_record(void **state)
{
	uint8_t header[64], payload[8], got[80], *big = malloc(3 * XTAL_OS_TLS_RECORD);
	struct xtal_os_tls_piece pieces[2] = { { header, sizeof(header) },
					       { payload, sizeof(payload) } };
	size_t before;

	(void)state;
	connect_both();
	memset(header, 'h', sizeof(header));
	memset(payload, 'p', sizeof(payload));
	before = t.to_server.total;
	assert_int_equal(xtal_os_tls_writev(t.client.tls, pieces, 2), 72);
	assert_true(t.to_server.total - before < 72 + 40); /* one record's frame, not two */
	assert_int_equal(xtal_os_tls_read(t.server.tls, got, sizeof(got)), 72);
	assert_memory_equal(got, header, 64);
	assert_memory_equal(got + 64, payload, 8);
	/* The first record takes what fits of the second piece, the rest follows. */
	memset(big, 'b', 3 * XTAL_OS_TLS_RECORD);
	pieces[1] = (struct xtal_os_tls_piece){ big, 3 * XTAL_OS_TLS_RECORD };
	assert_int_equal(xtal_os_tls_writev(t.client.tls, pieces, 2), XTAL_OS_TLS_RECORD);
	pieces[0] = pieces[1];
	assert_int_equal(xtal_os_tls_writev(t.client.tls, pieces, 1), XTAL_OS_TLS_RECORD);
	free(big);
}

static void blocked_pieces_go_out_once(void **state)
{
	uint8_t a[3000], b[3000], got[12000];
	struct xtal_os_tls_piece pieces[3] = { { a, sizeof(a) }, { b, sizeof(b) }, { a, 100 } };
	size_t in = 0;
	int64_t n, moved = -EAGAIN;

	(void)state;
	connect_both();
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	t.to_server.room = 500;
	assert_int_equal(xtal_os_tls_writev(t.client.tls, pieces, 2), -EAGAIN);
	for (unsigned i = 0; i < 1000 && (moved == -EAGAIN || in < 6000); i++) {
		n = xtal_os_tls_read(t.server.tls, got + in, sizeof(got) - in);
		if (n > 0)
			in += (size_t)n;
		/* The caller has more by now: it still counts what was joined at first. */
		if (moved == -EAGAIN)
			moved = xtal_os_tls_writev(t.client.tls, pieces, 3);
	}
	assert_int_equal(moved, 6000);
	assert_int_equal(in, 6000);
	assert_int_equal(got[2999], 'a');
	assert_int_equal(got[3000], 'b');
	assert_int_equal(got[5999], 'b');
}

static void refused(struct xtal_os_tls_context *client_key, const char *client_words,
		    const char *server_words)
{
	int client, server;
	char byte;

	open_end(&t.client, false, client_key);
	open_end(&t.server, true, t.ours);
	shake(&client, &server);
	assert_int_equal(client, -EACCES);
	assert_int_equal(server, -EACCES);
	assert_non_null(strstr(xtal_os_tls_reason(t.client.tls), client_words));
	assert_non_null(strstr(xtal_os_tls_reason(t.server.tls), server_words));
	assert_true(xtal_os_tls_read(t.server.tls, &byte, 1) < 0);
	assert_true(xtal_os_tls_write(t.server.tls, "x", 1) < 0);
	assert_true(xtal_os_tls_write(t.client.tls, "x", 1) < 0);
}

static void another_secret_is_refused(void **state)
{
	(void)state;
	refused(t.other_secret, "does not accept our key", "does not have our key");
}

static void another_id_is_refused(void **state)
{
	(void)state;
	refused(t.other_id, "does not accept our key", "another key than ours");
}

static void data_before_the_handshake_is_refused(void **state)
{
	char byte;

	(void)state;
	open_end(&t.client, false, t.ours);
	assert_int_equal(xtal_os_tls_write(t.client.tls, "x", 1), -EPROTO);
	assert_int_equal(xtal_os_tls_read(t.client.tls, &byte, 1), -EPROTO);
	assert_int_equal(t.to_server.total, 0);
	assert_int_equal(xtal_os_tls_handshake(t.client.tls), -EAGAIN);
	assert_int_equal(xtal_os_tls_write(t.client.tls, "x", 1), -EPROTO);
}

static void farewell_and_truncation(void **state)
{
	char buf[8];

	(void)state;
	connect_both();
	assert_int_equal(xtal_os_tls_write(t.client.tls, "last", 4), 4);
	assert_int_equal(xtal_os_tls_shutdown(t.client.tls), 0);
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), 4);
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), 0);
	/* The other way somebody cut the line. */
	t.to_client.cut = t.to_client.total + 10;
	xtal_os_tls_write(t.server.tls, "lost", 4);
	assert_int_equal(xtal_os_tls_read(t.client.tls, buf, 8), -ECONNRESET);
	assert_non_null(strstr(xtal_os_tls_reason(t.client.tls), "without a farewell"));
}

/* Cut at every byte of a handshake and a message: never success, never data. */
static void cut_anywhere(void **state)
{
	size_t whole;
	char buf[8];

	(void)state;
	connect_both();
	assert_int_equal(xtal_os_tls_write(t.client.tls, "data", 4), 4);
	whole = t.to_server.total;
	assert_true(whole > 200);
	for (size_t cut = 1; cut < whole; cut++) {
		int server = -EAGAIN, client = -EAGAIN;

		xtal_os_tls_close(&t.client.tls);
		xtal_os_tls_close(&t.server.tls);
		pipe_init(&t.to_server);
		pipe_init(&t.to_client);
		t.to_server.cut = cut;
		open_end(&t.client, false, t.ours);
		open_end(&t.server, true, t.same);
		for (unsigned i = 0; i < 20 && server == -EAGAIN; i++) {
			if (client)
				client = xtal_os_tls_handshake(t.client.tls);
			if (!client)
				xtal_os_tls_write(t.client.tls, "data", 4);
			server = xtal_os_tls_handshake(t.server.tls);
		}
		if (!server)
			server = (int)xtal_os_tls_read(t.server.tls, buf, 8);
		assert_int_equal(server, -ECONNRESET);
	}
}

/* One bit wrong anywhere in a record: an error, and no data. */
static void falsified(void **state)
{
	char buf[8];

	(void)state;
	for (size_t i = 0; i < 26; i++) {
		int64_t n;

		pipe_init(&t.to_server);
		pipe_init(&t.to_client);
		connect_both();
		t.to_server.used = t.to_server.taken = 0;
		assert_int_equal(xtal_os_tls_write(t.client.tls, "data", 4), 4);
		assert_int_equal(t.to_server.used, 26);
		t.to_server.data[i] ^= 0x10;
		n = xtal_os_tls_read(t.server.tls, buf, 8);
		if (i == 3 || i == 4) /* the length: too long is waited for */
			assert_true(n == -EAGAIN || n == -EPROTO);
		else
			assert_int_equal(n, -EPROTO);
		if (n == -EPROTO)
			assert_non_null(strstr(xtal_os_tls_reason(t.server.tls), "not intact"));
		xtal_os_tls_close(&t.client.tls);
		xtal_os_tls_close(&t.server.tls);
	}
}

static void replayed(void **state)
{
	uint8_t record[26];
	char buf[8];

	(void)state;
	connect_both();
	assert_int_equal(xtal_os_tls_write(t.client.tls, "data", 4), 4);
	memcpy(record, t.to_server.data, sizeof(record));
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), 4);
	memcpy(t.to_server.data, record, sizeof(record));
	t.to_server.used = sizeof(record);
	t.to_server.taken = 0;
	assert_int_equal(xtal_os_tls_read(t.server.tls, buf, 8), -EPROTO);
}

static void garbage(void **state)
{
	static const char *const openings[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n",
		"\x16\x03\x01\xff\xff\x01",
		"\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x17\x03\x03\x00\x05hello",
	};
	uint32_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		struct pipe *in = &t.to_server;
		bool server = i % 2 == 0;
		int ret;

		pipe_init(&t.to_server);
		pipe_init(&t.to_client);
		open_end(server ? &t.server : &t.client, server, t.ours);
		in = server ? &t.to_server : &t.to_client;
		if (i / 2 < 5) {
			in->used = strlen(openings[i / 2]);
			memcpy(in->data, openings[i / 2], in->used);
		}
		while (in->used < 4000) {
			random = random * 1664525 + 1013904223;
			in->data[in->used++] = (uint8_t)(random >> 24);
		}
		in->cut = in->total = in->used;
		ret = xtal_os_tls_handshake(server ? t.server.tls : t.client.tls);
		assert_true(ret == -EPROTO || ret == -ECONNRESET || ret == -EACCES);
		xtal_os_tls_close(&t.client.tls);
		xtal_os_tls_close(&t.server.tls);
	}
}

static void errors_of_the_stream_are_passed_on(void **state)
{
	char byte;

	(void)state;
	connect_both();
	t.to_client.error = -EHOSTUNREACH;
	assert_int_equal(xtal_os_tls_read(t.client.tls, &byte, 1), -EHOSTUNREACH);
	assert_non_null(strstr(xtal_os_tls_reason(t.client.tls), "host"));
}

/* ---- Strangers ---- */

/* Takes what a stranger's OpenSSL wrote into memory and gives it what we wrote. */
static void swap_bytes(SSL *stranger, struct pipe *from, struct pipe *to)
{
	int n = BIO_read(SSL_get_wbio(stranger), to->data + to->used, (int)(ROOM - to->used));

	if (n > 0) {
		to->used += (size_t)n;
		to->total += (size_t)n;
	}
	if (from->used > from->taken)
		BIO_write(SSL_get_rbio(stranger), from->data + from->taken,
			  (int)(from->used - from->taken));
	from->used = from->taken = 0;
}

static int against(SSL_CTX *ctx, bool we_serve)
{
	struct end *us = we_serve ? &t.server : &t.client;
	SSL *stranger = SSL_new(ctx);
	int ours = -EAGAIN;

	SSL_set_bio(stranger, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	if (we_serve)
		SSL_set_connect_state(stranger);
	else
		SSL_set_accept_state(stranger);
	xtal_os_tls_close(&us->tls);
	open_end(us, we_serve, t.ours);
	for (unsigned i = 0; i < 20 && ours == -EAGAIN; i++) {
		SSL_do_handshake(stranger);
		swap_bytes(stranger, us->out, us->in);
		ours = xtal_os_tls_handshake(us->tls);
		swap_bytes(stranger, us->out, us->in);
	}
	SSL_free(stranger);
	return ours;
}

static void older_versions_are_refused(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	(void)state;
	SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
	assert_int_equal(against(ctx, true), -EPROTO);
	assert_non_null(strstr(xtal_os_tls_reason(t.server.tls), "TLS 1.3"));
	assert_true(against(ctx, false) < 0 && against(ctx, false) != -EAGAIN);
	SSL_CTX_free(ctx);
}

static void a_stranger_without_a_key_is_refused(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	(void)state;
	assert_int_equal(against(ctx, true), -EACCES);
	SSL_CTX_free(ctx);
}

/* A server that has a certificate, but not our key. */
static void a_certificate_is_no_key(void **state)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	int ret;

	(void)state;
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)"x", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	ret = against(ctx, false);
	assert_int_equal(ret, -EACCES);
	assert_non_null(strstr(xtal_os_tls_reason(t.client.tls), "does not accept our key"));
	X509_free(cert);
	EVP_PKEY_free(key);
	SSL_CTX_free(ctx);
}

static void over_a_socket(void **state)
{
	int fds[2], small = 4096, client = -EAGAIN, server = -EAGAIN;
	struct xtal_os_tls_stream stream;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	stream = xtal_os_tls_socket(fds[0]);
	assert_int_equal(xtal_os_tls_open(t.ours, false, &stream, &t.client.tls), 0);
	stream = xtal_os_tls_socket(fds[1]);
	assert_int_equal(xtal_os_tls_open(t.ours, true, &stream, &t.server.tls), 0);
	for (unsigned i = 0; i < 20 && (client || server); i++) {
		client = xtal_os_tls_handshake(t.client.tls);
		server = xtal_os_tls_handshake(t.server.tls);
	}
	assert_int_equal(client, 0);
	assert_int_equal(server, 0);
	transfer(&t.client, &t.server, 300000);
	transfer(&t.server, &t.client, 300000);
	close(fds[1]); /* no SIGPIPE */
	assert_int_equal(xtal_os_tls_write(t.client.tls, "x", 1), -EPIPE);
	close(fds[0]);
}

static int set_up(void **state)
{
	uint8_t key[XTAL_OS_TLS_KEY], other[XTAL_OS_TLS_KEY];

	(void)state;
	memset(key, 7, sizeof(key));
	memset(other, 7, sizeof(other));
	other[31] ^= 1;
	return xtal_os_tls_context_create(key, "0123456789abcdef", &t.ours) ||
	       xtal_os_tls_context_create(key, "0123456789abcdef", &t.same) ||
	       xtal_os_tls_context_create(other, "0123456789abcdef", &t.other_secret) ||
	       xtal_os_tls_context_create(key, "0123456789abcde0", &t.other_id);
}

static int tear_down(void **state)
{
	(void)state;
	xtal_os_tls_context_destroy(&t.ours);
	xtal_os_tls_context_destroy(&t.same);
	xtal_os_tls_context_destroy(&t.other_secret);
	xtal_os_tls_context_destroy(&t.other_id);
	return t.ours != NULL;
}

static int before(void **state)
{
	(void)state;
	pipe_init(&t.to_server);
	pipe_init(&t.to_client);
	t.client = (struct end){ .in = &t.to_client, .out = &t.to_server };
	t.server = (struct end){ .in = &t.to_server, .out = &t.to_client };
	return 0;
}

static int after(void **state)
{
	(void)state;
	xtal_os_tls_close(&t.client.tls);
	xtal_os_tls_close(&t.server.tls);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_key_on_both_sides),
		TEST(what_goes_over_the_wire_is_not_the_data),
		TEST(any_grain_of_the_stream_will_do),
		TEST(the_place_of_the_data_is_known),
		TEST(at_rest_it_costs_little),
		TEST(errors_of_others_are_not_ours),
		TEST(an_empty_look_changes_nothing),
		TEST(the_end_after_an_empty_look),
		TEST(a_full_stream_is_waited_for),
		TEST(pieces_share_a_record),
		TEST(blocked_pieces_go_out_once),
		TEST(another_secret_is_refused),
		TEST(another_id_is_refused),
		TEST(data_before_the_handshake_is_refused),
		TEST(farewell_and_truncation),
		TEST(cut_anywhere),
		TEST(falsified),
		TEST(replayed),
		TEST(garbage),
		TEST(errors_of_the_stream_are_passed_on),
		TEST(older_versions_are_refused),
		TEST(a_stranger_without_a_key_is_refused),
		TEST(a_certificate_is_no_key),
		TEST(over_a_socket),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
