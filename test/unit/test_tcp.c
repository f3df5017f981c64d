/* SPDX-License-Identifier: MIT */
/*
 * TCP sockets of src/os, and frames of src/path over them: addresses, refusals, partial sends,
 * payload that is not there, frames that cannot be pinned together, encryption.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/copy.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/tcp.h"
#include "os/thread.h"
#include "os/tls.h"
#include "path/tcp.h"

#define BIG (300u * 1024)

static struct xtal_eid loopback(void)
{
	return xtal_eid_from_ipv4(0x7f000001);
}

static int listen_on(struct xtal_eid eid, uint16_t *port)
{
	struct xtal_os_tcp_address at = { .eid = eid };
	int fd;

	if (xtal_os_tcp_listen(&at, &fd))
		return -1;
	*port = xtal_os_tcp_port(fd);
	assert_int_not_equal(*port, 0);
	return fd;
}

/* Both ends of a connection over the address. */
static void join(struct xtal_eid eid, int ends[2])
{
	struct xtal_os_tcp_address to = { .eid = eid }, peer;
	int listener = listen_on(eid, &to.port), err;

	assert_true(listener >= 0);
	assert_int_equal(xtal_os_tcp_connect(&to, NULL, &ends[0]), 0);
	while ((err = xtal_os_tcp_connected(ends[0])) == -EINPROGRESS)
		;
	assert_int_equal(err, 0);
	while ((err = xtal_os_tcp_accept(listener, &ends[1], &peer)) == -EAGAIN)
		;
	assert_int_equal(err, 0);
	assert_true(xtal_eid_equal(peer.eid, eid));
	assert_int_equal(peer.port, xtal_os_tcp_port(ends[0]));
	xtal_os_close(listener);
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* A peer without a word is gone in a minute, for the side that accepted it. */
static void test_accepted_peers_are_looked_after(void **state)
{
	int ends[2];

	(void)state;
	join(loopback(), ends);
	assert_int_not_equal(option(ends[1], SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_in_range(option(ends[1], IPPROTO_TCP, TCP_KEEPIDLE) +
				option(ends[1], IPPROTO_TCP, TCP_KEEPINTVL) *
					option(ends[1], IPPROTO_TCP, TCP_KEEPCNT),
			1, 60);
	assert_int_equal(option(ends[0], SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_int_not_equal(option(ends[1], IPPROTO_TCP, TCP_NODELAY), 0);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
}

static void pass_a_word(struct xtal_eid eid)
{
	uint64_t out = 0x0123456789abcdef, in = 0;
	struct xtal_os_iov to = { &out, 8 }, from = { &in, 8 };
	int ends[2];
	int64_t n;

	join(eid, ends);
	assert_int_equal(xtal_os_tcp_recv(ends[1], &from, 1), -EAGAIN);
	assert_int_equal(xtal_os_tcp_send(ends[0], &to, 1), 8);
	while ((n = xtal_os_tcp_recv(ends[1], &from, 1)) == -EAGAIN)
		;
	assert_int_equal(n, 8);
	assert_int_equal(in, out);
	xtal_os_tcp_shutdown(ends[0]);
	while ((n = xtal_os_tcp_recv(ends[1], &from, 1)) == -EAGAIN)
		;
	assert_int_equal(n, 0);
	xtal_os_close(ends[0]);
	while ((n = xtal_os_tcp_send(ends[1], &to, 1)) > 0)
		; /* no SIGPIPE */
	assert_true(n == -EPIPE || n == -ECONNRESET);
	xtal_os_close(ends[1]);
}

static void a_word_passes(void **state)
{
	struct xtal_eid v6 = { .hi = 0, .lo = 1 };
	uint16_t port;
	int fd = listen_on(v6, &port);

	(void)state;
	pass_a_word(loopback());
	if (fd < 0)
		return; /* no IPv6 here */
	xtal_os_close(fd);
	pass_a_word(v6);
}

static void a_port_has_one_owner(void **state)
{
	struct xtal_os_tcp_address at = { .eid = loopback() };
	int first = listen_on(at.eid, &at.port), second, peer;
	struct xtal_os_tcp_address unused;

	(void)state;
	assert_int_equal(xtal_os_tcp_listen(&at, &second), -EADDRINUSE);
	assert_int_equal(xtal_os_tcp_accept(first, &peer, &unused), -EAGAIN);
	at.eid = xtal_eid_from_ipv4(0xc6336401); /* nobody's */
	assert_int_equal(xtal_os_tcp_listen(&at, &second), -EADDRNOTAVAIL);
	xtal_os_close(first);
}

static void nobody_is_refused(void **state)
{
	struct xtal_os_tcp_address to = { .eid = loopback() };
	int fd = listen_on(to.eid, &to.port), err;

	(void)state;
	xtal_os_close(fd);
	err = xtal_os_tcp_connect(&to, NULL, &fd);
	if (!err) {
		while ((err = xtal_os_tcp_connected(fd)) == -EINPROGRESS)
			;
		xtal_os_close(fd);
	}
	assert_int_equal(err, -ECONNREFUSED);
}

/* TCP lets a socket connect to itself; that is nobody, too. */
static void ourselves_are_nobody(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(xtal_os_tcp_connected(fd), -ECONNREFUSED);
	xtal_os_close(fd);
}

static void missing_memory_is_an_error(void **state)
{
	uint8_t *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t word = 7;
	struct xtal_os_iov bad = { gone, 65536 }, good = { &word, 8 };
	int ends[2];
	int64_t n;

	(void)state;
	join(loopback(), ends);
	assert_int_equal(xtal_os_tcp_send(ends[0], &bad, 1), -EFAULT);
	assert_int_equal(xtal_os_tcp_send(ends[0], &good, 1), 8);
	while ((n = xtal_os_tcp_recv(ends[1], &bad, 1)) == -EAGAIN)
		;
	assert_int_equal(n, -EFAULT);
	word = 0;
	assert_int_equal(xtal_os_tcp_recv(ends[1], &good, 1), 8); /* nothing was lost */
	assert_int_equal(word, 7);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
	munmap(gone, 65536);
}

/* ---- Frames ---- */

struct pinner {
	uint64_t pinned; /* the tag of what is pinned now */
	unsigned pins, unpins, refused;
	bool together;
	int error;
};

static int pin(void *arg, const struct xtal_tcp_frame *f, const void **base)
{
	struct pinner *p = arg;

	if (p->error)
		return p->error;
	if (!p->together && p->pinned && p->pinned != f->tag[0]) {
		p->refused++;
		return -EAGAIN;
	}
	p->pinned = f->tag[0];
	p->pins++;
	*base = (const void *)(uintptr_t)f->tag[1];
	return 0;
}

static void unpin(void *arg)
{
	struct pinner *p = arg;

	p->pinned = 0;
	p->unpins++;
}

static void put(struct xtal_tcp *t, uint8_t mark, const uint8_t *payload, uint64_t len, bool copy)
{
	struct xtal_tcp_frame *f = xtal_tcp_reserve(t);

	assert_non_null(f);
	memset(f->header, mark, sizeof(f->header));
	f->payload = len;
	f->copied = copy;
	if (copy)
		memcpy(f->small, payload, len);
	f->tag[0] = mark;
	f->tag[1] = (uintptr_t)payload;
	xtal_tcp_commit(t);
}

/* Sends everything, and receives it in pieces of at most step. */
static size_t pass(struct xtal_tcp *from, struct xtal_tcp *to, const struct xtal_tcp_pins *pins,
		   uint8_t *in, size_t expect, size_t step)
{
	size_t got = 0;
	int err;

	do {
		err = xtal_tcp_flush(from, pins);
		assert_true(err == 0 || err == -EAGAIN);
		assert_int_equal(xtal_tcp_idle(from), !err);
		if (from->tls && from->stage)
			assert_false(xtal_copy_crawls(xtal_os_tls_place(from->tls),
						      from->stage + from->stage_at));
		for (;;) {
			struct xtal_os_iov iov[2] = { { in + got, step },
						      { in + got + step, step } };
			int64_t n = xtal_tcp_receive(to, iov, 2);

			if (n == -EAGAIN)
				break;
			assert_true(n > 0);
			got += (size_t)n;
		}
	} while (err || got < expect);
	return got;
}

static void frames_arrive_whole(bool tls)
{
	static const uint8_t key[XTAL_OS_TLS_KEY] = { 1, 2, 3 };
	struct xtal_os_tls_context *context = NULL;
	uint8_t *payload = malloc(BIG), *in = malloc(4 * BIG + 65536), small[64];
	struct pinner p = { 0 };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &p
	};
	const size_t total = 5 * XTAL_TCP_HEADER + 2 * BIG + 64 + 8, at[] = {
		0,
		XTAL_TCP_HEADER + BIG,
		2 * XTAL_TCP_HEADER + BIG + 64,
		3 * XTAL_TCP_HEADER + BIG + 64,
		4 * XTAL_TCP_HEADER + BIG + 64 + 8,
	};
	struct xtal_tcp a, b;
	int ends[2], size = 20000;

	for (size_t i = 0; i < BIG; i++)
		payload[i] = (uint8_t)(i * 7 + i / 251);
	memset(small, 0x5a, sizeof(small));
	join(loopback(), ends);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	xtal_tcp_init(&a, ends[0]);
	xtal_tcp_init(&b, ends[1]);
	if (tls) {
		assert_int_equal(xtal_os_tls_context_create(key, "test", &context), 0);
		assert_int_equal(xtal_tcp_secure(&a, context, false), 0);
		assert_int_equal(xtal_tcp_secure(&b, context, true), 0);
		for (int left = 3; left;) {
			if (left & 1 && !xtal_tcp_handshake(&a))
				left &= ~1;
			if (left & 2 && !xtal_tcp_handshake(&b))
				left &= ~2;
		}
	}
	assert_int_equal(xtal_tcp_direct(&a), !tls);
	assert_null(xtal_tcp_inbox(&b, false));
	assert_int_equal(xtal_tcp_inbox(&b, true) != NULL, tls);
	assert_ptr_equal(xtal_tcp_inbox(&b, false), xtal_tcp_inbox(&b, true));
	xtal_tcp_rest(&b);
	assert_null(xtal_tcp_inbox(&b, false));
	assert_true(xtal_tcp_idle(&a));
	put(&a, 1, payload, BIG, false);
	put(&a, 2, small, 64, true);
	put(&a, 3, NULL, 0, false);
	put(&a, 4, payload + 1, 8, false);
	put(&a, 5, payload, BIG, false);
	assert_true(xtal_tcp_holds(&a, 1));
	assert_false(xtal_tcp_holds(&a, 2)); /* it has its payload */
	assert_false(xtal_tcp_holds(&a, 6));
	assert_int_equal(pass(&a, &b, &pins, in, total, tls ? 1000 : 777), total);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < XTAL_TCP_HEADER; k++)
			assert_int_equal(in[at[i] + k], i + 1);
	assert_memory_equal(in + at[0] + XTAL_TCP_HEADER, payload, BIG);
	assert_memory_equal(in + at[1] + XTAL_TCP_HEADER, small, 64);
	assert_memory_equal(in + at[3] + XTAL_TCP_HEADER, payload + 1, 8);
	assert_memory_equal(in + at[4] + XTAL_TCP_HEADER, payload, BIG);
	assert_int_equal(p.pinned, 0);
	assert_true(p.unpins > 0);
	if (!tls)
		assert_true(p.refused > 0); /* 4 and 5 did not go with 1 */
	assert_false(xtal_tcp_holds(&a, 1));
	xtal_tcp_fini(&a);
	xtal_tcp_fini(&b);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
	if (context)
		xtal_os_tls_context_destroy(&context);
	free(payload);
	free(in);
}

static void frames_arrive_whole_plain(void **state)
{
	(void)state;
	frames_arrive_whole(false);
}

static void frames_arrive_whole_with_tls(void **state)
{
	(void)state;
	frames_arrive_whole(true);
}

/* Their operation has ended: the bytes still come, and are nobody's. */
static void disowned_payload_goes_out_as_zeros(void **state)
{
	struct pinner p = { 0 };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &p
	};
	uint8_t payload[5000], in[4 * (XTAL_TCP_HEADER + sizeof(payload)) + 2000];
	const size_t step = XTAL_TCP_HEADER + sizeof(payload);
	struct xtal_tcp a, b;
	int ends[2];

	(void)state;
	memset(payload, 7, sizeof(payload));
	join(loopback(), ends);
	xtal_tcp_init(&a, ends[0]);
	xtal_tcp_init(&b, ends[1]);
	for (uint8_t i = 0; i < 4; i++)
		put(&a, i % 2 + 1, payload, sizeof(payload), false);
	xtal_tcp_disown(&a, 1);
	assert_false(xtal_tcp_holds(&a, 1));
	assert_true(xtal_tcp_holds(&a, 2));
	assert_int_equal(pass(&a, &b, &pins, in, 4 * step, 777), 4 * step);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(in[i * step], i % 2 + 1);
		for (size_t k = XTAL_TCP_HEADER; k < step; k++)
			assert_int_equal(in[i * step + k], i % 2 ? 7 : 0);
	}
	assert_int_equal(p.pins, 2);
	put(&a, 1, payload, sizeof(payload), false); /* the place is as good as new */
	assert_true(xtal_tcp_holds(&a, 1));
	xtal_tcp_fini(&a);
	xtal_tcp_fini(&b);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
}

static void no_more_frames_than_places(void **state)
{
	struct pinner p = { 0 };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &p
	};
	struct xtal_tcp t;
	int ends[2];

	(void)state;
	join(loopback(), ends);
	xtal_tcp_init(&t, ends[0]);
	for (unsigned i = 0; i < XTAL_TCP_FRAMES; i++) {
		assert_true(xtal_tcp_room(&t));
		put(&t, (uint8_t)i, NULL, 0, false);
	}
	assert_false(xtal_tcp_room(&t));
	assert_null(xtal_tcp_reserve(&t));
	assert_int_equal(xtal_tcp_flush(&t, &pins), 0);
	assert_true(xtal_tcp_room(&t));
	xtal_tcp_fini(&t);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
}

/* The oldest frame is named, and stays. */
static void payload_that_has_gone_is_told(void **state)
{
	struct pinner p = { .error = -EFAULT };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &p
	};
	uint8_t byte[100] = { 0 };
	struct xtal_tcp t;
	int ends[2];

	(void)state;
	join(loopback(), ends);
	xtal_tcp_init(&t, ends[0]);
	put(&t, 1, NULL, 0, false);
	put(&t, 2, byte, sizeof(byte), false);
	assert_int_equal(xtal_tcp_flush(&t, &pins), -EFAULT);
	assert_int_equal(xtal_tcp_oldest(&t)->tag[0], 2);
	assert_false(xtal_tcp_wants_write(&t));
	p.error = 0;
	assert_int_equal(xtal_tcp_flush(&t, &pins), 0);
	assert_null(xtal_tcp_oldest(&t));
	xtal_tcp_reset(&t);
	assert_int_equal(t.fd, -1);
	xtal_tcp_fini(&t);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
}

static void a_full_socket_wants_to_write(void **state)
{
	uint8_t *payload = calloc(1, 8u << 20);
	struct pinner p = { .together = true };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &p
	};
	struct xtal_tcp t;
	int ends[2];

	(void)state;
	join(loopback(), ends);
	xtal_tcp_init(&t, ends[0]);
	for (unsigned i = 0; i < 8; i++)
		put(&t, (uint8_t)i, payload, 8u << 20, false);
	assert_int_equal(xtal_tcp_flush(&t, &pins), -EAGAIN);
	assert_true(xtal_tcp_wants_write(&t));
	xtal_tcp_fini(&t);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
	free(payload);
}

/* What an epoll watches a descriptor for can be changed; once is once. */
static void interests_change(void **state)
{
	uint64_t tags[4], word = 1;
	struct xtal_os_iov one = { &word, 8 };
	int ends[2], epoll;

	(void)state;
	join(loopback(), ends);
	assert_int_equal(xtal_os_epoll_create(&epoll), 0);
	assert_int_equal(xtal_os_epoll_add(epoll, ends[0], 5), 0);
	assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, 0), 0);
	assert_int_equal(xtal_os_epoll_change(epoll, ends[0], 6, XTAL_OS_WRITABLE), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, UINT64_MAX), 1);
		assert_int_equal(tags[0], 6);
	}
	assert_int_equal(xtal_os_epoll_change(epoll, ends[0], 7, XTAL_OS_WRITABLE | XTAL_OS_ONCE),
			 0);
	assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, UINT64_MAX), 1);
	assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, 0), 0);
	assert_int_equal(xtal_os_tcp_send(ends[1], &one, 1), 8);
	assert_int_equal(xtal_os_epoll_change(epoll, ends[0], 8, 0), 0);
	assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, xtal_os_now() + 20000000), 0);
	assert_int_equal(xtal_os_epoll_change(epoll, ends[0], 9, XTAL_OS_READABLE), 0);
	assert_int_equal(xtal_os_epoll_wait(epoll, tags, 4, UINT64_MAX), 1);
	assert_int_equal(tags[0], 9);
	xtal_os_close(epoll);
	xtal_os_close(ends[0]);
	xtal_os_close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted_peers_are_looked_after),
		cmocka_unit_test(a_word_passes),
		cmocka_unit_test(a_port_has_one_owner),
		cmocka_unit_test(nobody_is_refused),
		cmocka_unit_test(ourselves_are_nobody),
		cmocka_unit_test(missing_memory_is_an_error),
		cmocka_unit_test(frames_arrive_whole_plain),
		cmocka_unit_test(frames_arrive_whole_with_tls),
		cmocka_unit_test(disowned_payload_goes_out_as_zeros),
		cmocka_unit_test(no_more_frames_than_places),
		cmocka_unit_test(payload_that_has_gone_is_told),
		cmocka_unit_test(a_full_socket_wants_to_write),
		cmocka_unit_test(interests_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
