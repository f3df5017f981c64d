/* SPDX-License-Identifier: MIT */
/*
 * tcp WAY...: nanoseconds per operation of --size bytes between two processes that share nothing,
 * --batch of them posted before their completions are awaited. Ways, measured in turn, slice by
 * slice:
 *
 *   xtal     dma_write() over the tcp path; the owner's program sleeps
 *   read     dma_read(), the same
 *   raw      a message and an answer of 8 bytes over a bare socket, both sides spinning
 *   ssl      the same through bare OpenSSL, with the same cipher and a key known before
 *
 * BENCH_FROM and BENCH_TO are the addresses of the two (default: loopback), BENCH_HOST the network
 * namespace that the owner enters.
 */
#define _GNU_SOURCE
#include "lib_race.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_WAYS 3
#define MOST     (1u << 30)
#define SLICE_NS 4000000u
#define ANSWER   8

enum {
	GO_ON = 1,
	SLEEP = 2, /* the echo takes no processor until the next message */
};

/* One end of a twin's connection. */
struct stream {
	int fd;
	SSL *ssl; /* NULL: bare */
	char *buf;
};

struct way {
	struct bench_way race;
	void (*run)(struct way *way, uint64_t n);
	struct stream stream;
};

static struct bench_options opt;
static struct bench_side side;
static char *source;
static struct dma_seg *source_seg;

/* ---- The twins' streams ---- */

static const unsigned char secret[32] = "a key that both sides have known";

static SSL_SESSION *session_of(SSL *ssl)
{
	static const unsigned char number[] = { 0x13, 0x01 };
	SSL_SESSION *s = SSL_SESSION_new();

	if (!s || !SSL_SESSION_set1_master_key(s, secret, sizeof(secret)) ||
	    !SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, number)) ||
	    !SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		bench_die("no TLS session");
	return s;
}

static int offer_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len,
		     SSL_SESSION **session)
{
	(void)md;
	*session = session_of(ssl);
	*id = (const unsigned char *)"bench";
	*len = 5;
	return 1;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **session)
{
	(void)id;
	(void)len;
	*session = session_of(ssl);
	return 1;
}

static void secure(struct stream *s, bool server)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	SSL_CTX_set_psk_use_session_callback(ctx, offer_key);
	SSL_CTX_set_psk_find_session_callback(ctx, find_key);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	if (!SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") ||
	    !SSL_CTX_set_num_tickets(ctx, 0))
		bench_die("no cipher");
	s->ssl = SSL_new(ctx);
	SSL_set_fd(s->ssl, s->fd);
	if ((server ? SSL_accept(s->ssl) : SSL_connect(s->ssl)) != 1)
		bench_die("no TLS connection");
}

/* Bytes, or 0: would block. */
static size_t receive_some(struct stream *s, char *to, size_t len)
{
	size_t done;
	ssize_t n;

	if (s->ssl) {
		if (SSL_read_ex(s->ssl, to, len, &done))
			return done;
		if (SSL_get_error(s->ssl, 0) != SSL_ERROR_WANT_READ)
			exit(0); /* the other side has finished */
		return 0;
	}
	n = recv(s->fd, to, len, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		exit(0);
	return n > 0 ? (size_t)n : 0;
}

static size_t send_some(struct stream *s, const char *from, size_t len)
{
	size_t done;
	ssize_t n;

	if (s->ssl)
		return SSL_write_ex(s->ssl, from, len, &done) ? done : 0;
	n = send(s->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n > 0 ? (size_t)n : 0;
}

static void receive_all(struct stream *s, char *to, size_t len)
{
	for (size_t at = 0; at < len;)
		at += receive_some(s, to + at, len - at);
}

static void send_all(struct stream *s, const char *from, size_t len)
{
	for (size_t at = 0; at < len;)
		at += send_some(s, from + at, len - at);
}

/* The owner's end of a twin, on a thread: takes messages, answers each. */
static void *echo(void *arg)
{
	struct stream *s = arg;
	char answer[ANSWER] = "answer!";

	for (;;) {
		char what;

		receive_all(s, s->buf, opt.size);
		what = s->buf[0];
		send_all(s, answer, ANSWER);
		if (what == SLEEP && !(s->ssl && SSL_has_pending(s->ssl)))
			poll(&(struct pollfd){ .fd = s->fd, .events = POLLIN }, 1, -1);
	}
	return NULL;
}

/* Messages go as long as answers are outstanding for less than a batch. */
static void by_stream(struct way *way, uint64_t n)
{
	struct stream *s = &way->stream;
	uint64_t batch = opt.batch, sent = 0, at = 0, got = 0;
	char answers[ANSWER * 64];

	while (got < n * ANSWER) {
		if (sent < n && sent - got / ANSWER < batch) {
			s->buf[0] = GO_ON;
			at += send_some(s, s->buf + at, opt.size - at);
			sent += at == opt.size;
			at = at == opt.size ? 0 : at;
		}
		if (sent == n || sent - got / ANSWER == batch || at)
			got += receive_some(s, answers, sizeof(answers));
	}
}

static void wake_echo(struct way *way, char what)
{
	char answer[ANSWER];

	if (!way->stream.buf)
		return;
	way->stream.buf[0] = what;
	send_all(&way->stream, way->stream.buf, opt.size);
	receive_all(&way->stream, answer, ANSWER);
}

static int open_socket(struct sockaddr_in *a, const char *address)
{
	int on = 1, bytes = 1 << 20, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	if (fd < 0 || inet_pton(AF_INET, address, &a->sin_addr) != 1)
		bench_die("no address %s", address);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes))) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	return fd;
}

static const char *address_of(bool owner)
{
	const char *text = getenv(owner ? "BENCH_TO" : "BENCH_FROM");

	return text ? text : "127.0.0.1";
}

/* Both ends of a twin, made in the same order by both processes. */
static void connect_twin(struct stream *s, bool owner, bool tls)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int on = 1, fd = open_socket(&a, address_of(true));

	s->buf = aligned_alloc(4096, (opt.size + 4095) & ~(uint64_t)4095);
	memset(s->buf, 1, opt.size);
	if (owner) {
		if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, 1) ||
		    getsockname(fd, (struct sockaddr *)&a, &len))
			bench_die("cannot listen");
		bench_tell(&side, &a.sin_port, sizeof(a.sin_port));
		s->fd = accept(fd, NULL, NULL);
		close(fd);
	} else {
		bench_hear(&side, &a.sin_port, sizeof(a.sin_port));
		if (connect(fd, (struct sockaddr *)&a, len))
			bench_die("cannot connect");
		s->fd = fd;
	}
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	s->ssl = NULL;
	if (tls)
		secure(s, owner);
	fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK);
}

/* ---- The engine ---- */

static void engine(bool read, uint64_t n)
{
	struct dma_seg local = *source_seg, remote = side.remote;
	uint64_t posted = 0, taken = 0;

	local.len = remote.len = opt.size;
	while (taken < n) {
		struct dma_cr cr[16];
		int got;

		while (posted < n && posted - taken < opt.batch) {
			if ((read ? dma_read(side.queue, &remote, &local)
				  : dma_write(side.queue, &remote, &local)) != DMA_STATUS_OK)
				bench_die("post");
			posted++;
		}
		got = dma_poll_queue(side.queue, 16, cr);
		for (int i = 0; i < got; i++)
			if (cr[i].status != DMA_CR_SUCCESS)
				bench_bad_completion(&cr[i]);
		taken += got > 0 ? (uint64_t)got : 0;
	}
}

static double slice(struct bench_way *race)
{
	struct way *way = (struct way *)race;
	uint64_t then;

	wake_echo(way, GO_ON);
	way->run(way, opt.batch); /* whoever sleeps wakes */
	then = bench_now();
	way->run(way, race->n);
	then = bench_now() - then;
	wake_echo(way, SLEEP);
	return (double)then / (double)race->n;
}

static void by_xtal(struct way *way, uint64_t n)
{
	(void)way;
	engine(false, n);
}

static void by_read(struct way *way, uint64_t n)
{
	(void)way;
	engine(true, n);
}

static void open_way(struct way *way, const char *name, bool owner)
{
	*way = (struct way){ .race = { name, slice, 0 }, .run = by_stream };
	if (strcmp(name, "xtal") == 0)
		way->run = by_xtal;
	else if (strcmp(name, "read") == 0)
		way->run = by_read;
	else if (strcmp(name, "raw") == 0 || strcmp(name, "ssl") == 0)
		connect_twin(&way->stream, owner, name[0] == 's');
	else
		bench_die("no way called %s", name);
}

static void check(struct way *way)
{
	if (way->run == by_stream)
		return;
	bench_fill(source, opt.size, way->race.n);
	engine(false, 1);
	bench_verify(&side, opt.size, way->race.n);
	if (way->run != by_read)
		return;
	memset(source, 0, opt.size);
	engine(true, 1);
	bench_fill(side.base, opt.size, way->race.n);
	if (memcmp(source, side.base, opt.size) != 0)
		bench_die("what was read is wrong");
}

static void initiate(struct way *way)
{
	struct bench_way *race[MAX_WAYS];
	struct dma_seg_cfg cfg = { .len = opt.size };
	char path[16];

	source = aligned_alloc(4096, (opt.size + 4095) & ~(uint64_t)4095);
	cfg.addr = (uintptr_t)source;
	memset(source, 1, opt.size);
	source_seg = dma_register_seg(side.ctx, &cfg);
	if (!source_seg)
		bench_die("no segment");
	bench_path(&side, path);
	bench_pin(0);
	for (int w = 0; w < opt.count; w++) {
		race[w] = &way[w].race;
		bench_calibrate(race[w], opt.batch, MOST, SLICE_NS);
	}
	bench_race(&opt, race);
	for (int w = 0; w < opt.count; w++)
		check(&way[w]);
	fprintf(stderr, "  %s: %llu bytes, path %s, %u cores\n", opt.series,
		(unsigned long long)opt.size, path, bench_cores());
	if (strcmp(path, "tcp") != 0)
		bench_die("the path is %s", path);
	dma_unregister_seg(side.ctx, source_seg);
}

int main(int argc, char **argv)
{
	static struct way way[MAX_WAYS];
	const char *host = getenv("BENCH_HOST");
	pthread_t thread;
	bool owner;

	bench_options(argc, argv, &opt);
	if (opt.count > MAX_WAYS || opt.batch > 64)
		bench_die("too much asked for");
	side.memory = BENCH_MALLOC;
	side.len = opt.size;
	owner = bench_fork(&side);
	if (owner && host) {
		int ns = open(host, O_RDONLY | O_CLOEXEC);

		if (ns < 0 || setns(ns, CLONE_NEWNET))
			bench_die("no namespace %s", host);
		close(ns);
	}
	if (getenv("BENCH_TO")) {
		setenv("XTAL_DEVICES", address_of(owner), 1);
		side.device = 1;
	}
	setenv("XTAL_PATHS", "tcp", 1);
	if (owner)
		bench_pin(1); /* its threads inherit it */
	for (int w = 0; w < opt.count; w++) {
		open_way(&way[w], opt.words[w], owner);
		if (owner && way[w].stream.buf &&
		    pthread_create(&thread, NULL, echo, &way[w].stream))
			bench_die("no thread");
	}
	for (int w = 0; w < opt.count && !owner; w++)
		wake_echo(&way[w], SLEEP);
	bench_open(&side, 64);
	if (owner)
		bench_owner(&side);
	initiate(way);
	bench_close(&side);
	return 0;
}
