/* SPDX-License-Identifier: MIT */
/* The fault proxy does what it is told, when it is told, and no more. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/proxy.h"

static int listener = -1, client = -1, server = -1;
static struct proxy *proxy;
static struct proxy_config config;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct sockaddr_storage local(uint16_t port)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memcpy(&s, &a, sizeof(a));
	return s;
}

static void start(void)
{
	config.target = local(0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (void *)&config.target, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(listener, 100), 0);
	getsockname(listener, (void *)&config.target, &(socklen_t){ sizeof(config.target) });
	config.listen = local(0);
	config.listen_ns = config.connect_ns = -1;
	proxy = proxy_start(&config);
	assert_non_null(proxy);
}

/* A connection through the proxy: client here, server there. */
static void join(void)
{
	struct sockaddr_storage to = local(proxy_port(proxy));

	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (void *)&to, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 5000), 1);
	server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
}

static void part(void)
{
	close(client);
	close(server);
	client = server = -1;
}

/* Reads until the end, an error, or ms of silence; *why: 0 end, errno, or EAGAIN for silence. */
static size_t drain(int fd, uint8_t *buf, size_t size, int ms, int *why)
{
	size_t got = 0;

	for (;;) {
		ssize_t n;

		if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 0) {
			*why = EAGAIN;
			return got;
		}
		n = recv(fd, buf + got, size - got, 0);
		*why = n < 0 ? errno : 0;
		if (n <= 0)
			return got;
		got += (size_t)n;
	}
}

static struct proxy_counts counts(void)
{
	struct proxy_counts c;

	proxy_read(proxy, &c);
	return c;
}

static uint8_t *pattern(size_t len)
{
	uint8_t *p = malloc(len);

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + (i >> 10));
	return p;
}

/* Both ways at once, more than the proxy holds; compared. */
static void stream(size_t len)
{
	uint8_t *data = pattern(len), *got[2] = { malloc(len), malloc(len) };
	int fd[2] = { client, server };
	size_t out[2] = { 0, 0 }, in[2] = { 0, 0 };

	while (in[0] < len || in[1] < len) {
		for (unsigned i = 0; i < 2; i++) {
			ssize_t n = send(fd[i], data + out[i], len - out[i], MSG_DONTWAIT);

			out[i] += n > 0 ? (size_t)n : 0;
			n = recv(fd[i], got[i] + in[i], len - in[i], MSG_DONTWAIT);
			assert_true(n > 0 || len == in[i] || (n < 0 && errno == EAGAIN));
			in[i] += n > 0 ? (size_t)n : 0;
		}
	}
	assert_memory_equal(data, got[0], len);
	assert_memory_equal(data, got[1], len);
	free(data);
	free(got[0]);
	free(got[1]);
}

static void passes_bytes_on(void **state)
{
	uint8_t buf[8];
	int why;

	(void)state;
	start();
	join();
	stream(3 << 20);
	assert_int_equal(counts().bytes, 6 << 20);
	/* An end of one direction leaves the other. */
	shutdown(client, SHUT_WR);
	assert_int_equal(drain(server, buf, 8, 5000, &why), 0);
	assert_int_equal(why, 0);
	assert_int_equal(write(server, "x", 1), 1);
	assert_int_equal(recv(client, buf, 8, 0), 1);
	part();
	join(); /* and again */
	stream(1000);
}

static void cut(enum proxy_end end, uint64_t after)
{
	uint8_t *data = pattern(4000), got[4000];
	int why;

	config.script[0] = (struct proxy_fault){ .end = end, .after = after };
	config.entries = 1;
	start();
	join();
	assert_int_equal(write(client, data, 4000), 4000);
	assert_int_equal(drain(server, got, sizeof(got), 400, &why), after);
	assert_memory_equal(data, got, after);
	free(data);
	if (end == PROXY_LOSE) {
		assert_int_equal(why, EAGAIN); /* nobody is told */
		assert_int_equal(write(server, "x", 1), 1);
		assert_int_equal(drain(client, got, 1, 200, &why), 0);
		assert_int_equal(why, EAGAIN);
		assert_int_equal(counts().losses, 1);
		close(client);
		client = -1;
		drain(server, got, 1, 200, &why);
		assert_int_equal(why, EAGAIN); /* not even now */
		return;
	}
	assert_int_equal(why, end == PROXY_CLOSE ? 0 : ECONNRESET);
	drain(client, got, 1, 5000, &why);
	assert_true(why == ECONNRESET || (end == PROXY_CLOSE && why == 0));
	assert_int_equal(end == PROXY_CLOSE ? counts().closes : counts().resets, 1);
}

static void cuts_after_a_byte(void **state)
{
	(void)state;
	cut(PROXY_RESET, 1);
}

static void cuts_after_many(void **state)
{
	(void)state;
	cut(PROXY_RESET, 3999);
}

static void closes(void **state)
{
	(void)state;
	cut(PROXY_CLOSE, 1234);
}

static void loses(void **state)
{
	(void)state;
	cut(PROXY_LOSE, 100);
}

static void counts_both_directions(void **state)
{
	uint8_t got[100];
	int why;

	(void)state;
	config.script[0] = (struct proxy_fault){ .end = PROXY_CLOSE, .after = 15 };
	config.entries = 1;
	start();
	join();
	assert_int_equal(write(client, "0123456789", 10), 10);
	assert_int_equal(drain(server, got, 100, 200, &why), 10);
	assert_int_equal(why, EAGAIN);
	assert_int_equal(write(server, "0123456789", 10), 10);
	assert_int_equal(drain(client, got, 100, 5000, &why), 5);
	assert_int_equal(why, 0);
}

static void stalls_and_goes_on(void **state)
{
	uint8_t got[100];
	uint64_t began;
	int why;

	(void)state;
	config.script[0] = (struct proxy_fault){ .end = PROXY_STALL, .after = 4, .stall_ms = 400 };
	config.entries = 1;
	start();
	join();
	began = now_ms();
	assert_int_equal(write(client, "0123456789", 10), 10);
	assert_int_equal(drain(server, got, 100, 150, &why), 4);
	assert_int_equal(drain(server, got, 100, 1000, &why), 6);
	assert_true(now_ms() - began >= 400);
	assert_int_equal(counts().stalls, 1);
}

static void delays(void **state)
{
	uint8_t got[100];
	uint64_t began;

	(void)state;
	config.script[0] = (struct proxy_fault){ .delay_us = 150000 };
	config.entries = 1;
	start();
	join();
	began = now_ms();
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(write(client, "x", 1), 1);
		usleep(2000);
	}
	for (unsigned n = 0; n < 5; n += (unsigned)recv(server, got, 100, 0))
		;
	assert_true(now_ms() - began >= 150);
	assert_true(now_ms() - began < 700); /* a pipe: not one delay after the other */
}

static void hands_over_single_bytes(void **state)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	uint8_t got[5000];
	int why;

	(void)state;
	config.script[0] = (struct proxy_fault){ .grain = 1, .grained = 200 };
	config.entries = 1;
	start();
	join();
	memset(got, 'g', sizeof(got));
	assert_int_equal(write(client, got, 4200), 4200);
	assert_int_equal(drain(server, got, sizeof(got), 1000, &why), 4200);
	assert_int_equal(getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	if (len < sizeof(info))
		skip(); /* qemu-user hands over 4 bytes of it */
	assert_true(info.tcpi_data_segs_in >= 200);
	assert_true(info.tcpi_data_segs_in < 260);
}

static void follows_its_script(void **state)
{
	struct sockaddr_storage to;
	uint8_t got[10];
	int why;

	(void)state;
	config.script[0] = (struct proxy_fault){ .end = PROXY_CLOSE, .after = 3 };
	config.script[1] = (struct proxy_fault){ .refuse = true };
	config.script[2] = (struct proxy_fault){ .end = PROXY_NEVER };
	config.entries = 3;
	start();
	join();
	assert_int_equal(write(client, "12345", 5), 5);
	assert_int_equal(drain(server, got, 10, 5000, &why), 3);
	part();
	to = local(proxy_port(proxy));
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (void *)&to, sizeof(struct sockaddr_in)), 0);
	drain(client, got, 10, 5000, &why);
	assert_int_equal(why, ECONNRESET);
	close(client);
	for (unsigned i = 0; i < 3; i++) {
		join();
		stream(100);
		part();
	}
	assert_int_equal(counts().connections, 5);
	assert_int_equal(counts().refused, 1);
	/* Nobody behind it: the client is reset too. */
	close(listener);
	client = socket(AF_INET, SOCK_STREAM, 0);
	connect(client, (void *)&to, sizeof(struct sockaddr_in));
	drain(client, got, 10, 5000, &why);
	assert_int_equal(why, ECONNRESET);
}

static void strikes_at_a_word(void **state)
{
	uint8_t got[10];
	int why;

	(void)state;
	start();
	join();
	stream(100);
	proxy_strike(proxy, PROXY_STALL, 300);
	usleep(20000);
	assert_int_equal(write(client, "x", 1), 1);
	assert_int_equal(drain(server, got, 10, 100, &why), 0);
	assert_int_equal(drain(server, got, 10, 1000, &why), 1);
	proxy_strike(proxy, PROXY_RESET, 0);
	drain(client, got, 10, 5000, &why);
	assert_int_equal(why, ECONNRESET);
	part();
	proxy_refuse(proxy, true);
	client = socket(AF_INET, SOCK_STREAM, 0);
	config.listen = local(proxy_port(proxy));
	connect(client, (void *)&config.listen, sizeof(struct sockaddr_in));
	drain(client, got, 10, 5000, &why);
	assert_int_equal(why, ECONNRESET);
	close(client);
	proxy_refuse(proxy, false);
	join();
	stream(100);
}

/* What 60 connections of a seed come to. */
static struct proxy_counts play(uint64_t seed)
{
	struct proxy_counts c;

	config.seed = seed;
	config.after = 5000;
	config.ends = 1u << PROXY_RESET | 1u << PROXY_CLOSE;
	start();
	for (unsigned i = 0; i < 60; i++) {
		uint8_t *data = pattern(6000), got[6000];
		int why;

		join();
		assert_int_equal(write(client, data, 6000), 6000);
		drain(server, got, sizeof(got), 5000, &why);
		assert_true(why == 0 || why == ECONNRESET);
		part();
		free(data);
	}
	c = counts();
	proxy_stop(&proxy);
	close(listener);
	return c;
}

static void a_seed_repeats_itself(void **state)
{
	struct proxy_counts a = play(1), b = play(1), c = play(2);

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(a.resets + a.closes, 60);
	assert_true(a.resets > 10 && a.closes > 10);
	assert_int_not_equal(a.bytes, c.bytes);
}

/* Each host sees the other's address, and yet they talk to the proxy. */
static void stands_between_two_hosts(void **state)
{
	struct netns n;
	const char *why = netns_create_middle(&n, 2);
	struct sockaddr_in to = netns_ipv4(1, 7000), from = netns_ipv4(0, 0), peer;
	socklen_t len = sizeof(peer);

	(void)state;
	if (why) {
		print_message("SKIP: %s\n", why);
		skip();
	}
	netns_enter(n.host[1]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (void *)&to, sizeof(to)), 0);
	listen(listener, 5);
	memcpy(&config.listen, &to, sizeof(to));
	memcpy(&config.target, &to, sizeof(to));
	config.as_client = true;
	config.listen_ns = n.middle;
	config.connect_ns = n.back;
	proxy = proxy_start(&config);
	assert_non_null(proxy);
	netns_enter(n.host[0]);
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (void *)&to, sizeof(to)), 0);
	server = accept(listener, NULL, NULL);
	netns_enter(n.home);
	getpeername(client, (void *)&peer, &len);
	assert_memory_equal(&peer.sin_addr, &to.sin_addr, 4);
	getpeername(server, (void *)&peer, &len);
	assert_memory_equal(&peer.sin_addr, &from.sin_addr, 4);
	stream(100000);
	netns_destroy(&n);
}

static int before(void **state)
{
	(void)state;
	memset(&config, 0, sizeof(config));
	return 0;
}

static int after(void **state)
{
	(void)state;
	part();
	if (listener >= 0)
		close(listener);
	listener = -1;
	proxy_stop(&proxy);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, before, after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(passes_bytes_on),
		TEST(cuts_after_a_byte),
		TEST(cuts_after_many),
		TEST(closes),
		TEST(loses),
		TEST(counts_both_directions),
		TEST(stalls_and_goes_on),
		TEST(delays),
		TEST(hands_over_single_bytes),
		TEST(follows_its_script),
		TEST(strikes_at_a_word),
		TEST(a_seed_repeats_itself),
		TEST(stands_between_two_hosts),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
