/* SPDX-License-Identifier: MIT */
/*
 * message WAY...: half the round trip of a message of --size bytes between two processes that both
 * poll. Ways, measured in turn, slice by slice:
 *
 *   raw      store-release of 8 bytes into a shared page; each spins on its own word
 *   socket   a bare TCP socket of the loopback, both sides spinning
 *   urma     SEND of a jetty; a new receive is posted before the answer goes; the completions of
 *            the SENDs are taken eight at a time
 *
 * XTAL_PATHS chooses what carries the messages.
 */
#include "lib_race.h"
#include "lib_urma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_WAYS 3
#define MOST     (1u << 24)
#define SLICE_NS 100000u /* short: both processes must have a core of their own all the time */
#define LINE     128     /* two cache lines: neighbours are fetched in pairs */
#define RECEIVES 64u
#define LEFT     8u /* completions of SENDs that are left until so many are there */

enum kind {
	RAW,
	SOCKET,
	URMA,
};
static const char *const names[] = { "raw", "socket", "urma" };

/* One process' end of one way. */
struct way {
	struct bench_way race; /* n: round trips in a slice */
	enum kind kind;
	int index;
	uint64_t seq; /* messages sent */
	_Atomic uint64_t *in, *out;
	int fd;
	char *buf;
};

static struct bench_options opt;
static struct bench_side side;
static struct bench_urma urma;
static struct bench_urma_request request;
static uint64_t span; /* of a receive's memory */
static uint32_t next_receive, left;
static char *shared; /* a control line, then two words */

static _Atomic uint64_t *line(unsigned n)
{
	return (_Atomic uint64_t *)(void *)(shared + (size_t)n * LINE);
}

static _Atomic uint64_t *control(void)
{
	return line(0); /* index of the way in use, or MAX_WAYS */
}

static char *memory_of(uint32_t receive)
{
	return side.base + span * (receive + 1); /* the first is what is sent */
}

static void send_socket(struct way *way)
{
	for (size_t at = 0; at < opt.size;) {
		ssize_t n = send(way->fd, way->buf + at, opt.size - at, MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			bench_die("send");
		at += n > 0 ? (size_t)n : 0;
	}
}

static void send_urma(struct way *way)
{
	urma_jfs_wr_t *bad;

	memcpy(side.base + opt.size - 8, &way->seq, 8);
	if (urma_post_jetty_send_wr(urma.jetty, &request.wr, &bad))
		bench_die("urma_post_jetty_send_wr");
	for (left++; left >= LEFT;)
		left -= bench_urma_poll(urma.jfc, left);
}

static inline void send_message(struct way *way)
{
	way->seq++;
	switch (way->kind) {
	case RAW:
		atomic_store_explicit(way->out, way->seq, memory_order_release);
		return;
	case SOCKET:
		send_socket(way);
		return;
	case URMA:
		send_urma(way);
		return;
	}
}

/* Takes the message with this number if it is there. */
static inline bool take(struct way *way, uint64_t number)
{
	uint64_t word;
	ssize_t n;

	switch (way->kind) {
	case RAW:
		return atomic_load_explicit(way->in, memory_order_acquire) == number;
	case SOCKET:
		n = recv(way->fd, way->buf, opt.size, MSG_DONTWAIT | MSG_PEEK);
		return n == (ssize_t)opt.size && recv(way->fd, way->buf, opt.size, 0) == n;
	case URMA:
		if (!bench_urma_poll(urma.rjfc, 1))
			return false;
		memcpy(&word, memory_of(next_receive) + opt.size - 8, 8);
		if (word != number)
			bench_die("message %llu instead of %llu", (unsigned long long)word,
				  (unsigned long long)number);
		bench_urma_receive(&urma, memory_of(next_receive), (uint32_t)opt.size);
		next_receive = (next_receive + 1) % RECEIVES;
		return true;
	}
	return false;
}

/* False: the other side has gone on to another way. */
static inline bool arrived(struct way *way, uint64_t number, uint64_t w)
{
	for (unsigned spins = 1;; spins++) {
		if (take(way, number))
			return true;
		if (bench_cores() == 1)
			sched_yield();
		else if (way->kind == RAW)
			bench_relax();
		if (spins % 256 == 0 && atomic_load_explicit(control(), memory_order_relaxed) != w)
			return false;
	}
}

static void ping(struct way *way, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		send_message(way);
		if (!arrived(way, way->seq, (uint64_t)way->index))
			bench_die("no answer");
	}
}

static void pong(struct way *way)
{
	uint64_t w;

	while ((w = atomic_load(control())) != MAX_WAYS)
		while (arrived(&way[w], way[w].seq + 1, w))
			send_message(&way[w]);
}

static double slice(struct bench_way *race)
{
	struct way *way = (struct way *)race;
	uint64_t then;

	atomic_store(control(), (uint64_t)way->index);
	ping(way, 16); /* the other side has found its way */
	then = bench_now();
	ping(way, race->n);
	return (double)(bench_now() - then) / (double)race->n / 2;
}

static void measure(struct way *way)
{
	struct bench_way *race[MAX_WAYS];

	for (int w = 0; w < opt.count; w++) {
		race[w] = &way[w].race;
		bench_calibrate(race[w], 16, MOST, SLICE_NS / 2); /* there and back */
	}
	bench_race(&opt, race);
	atomic_store(control(), MAX_WAYS);
}

static void connect_twin(struct way *way, bool first)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	way->buf = calloc(1, opt.size);
	way->fd = fd;
	if (first) {
		bench_hear(&side, &a.sin_port, sizeof(a.sin_port));
		if (connect(fd, (struct sockaddr *)&a, len))
			bench_die("cannot connect");
	} else {
		if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, 1) ||
		    getsockname(fd, (struct sockaddr *)&a, &len))
			bench_die("cannot listen");
		bench_tell(&side, &a.sin_port, sizeof(a.sin_port));
		way->fd = accept(fd, NULL, NULL);
		close(fd);
	}
	setsockopt(way->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void prepare(struct way *way, int w, const char *name, bool first)
{
	*way = (struct way){ .race = { name, slice, 0 }, .index = w, .fd = -1 };
	while (strcmp(names[way->kind], name) != 0)
		if (++way->kind > URMA)
			bench_die("no way called %s", name);
	way->in = line(first ? 1 : 2);
	way->out = line(first ? 2 : 1);
	if (way->kind == SOCKET)
		connect_twin(way, first);
}

int main(int argc, char **argv)
{
	struct way way[MAX_WAYS];
	bool child;

	bench_options(argc, argv, &opt);
	if (opt.size < 8 || opt.count > MAX_WAYS)
		bench_die("messages have at least 8 bytes; up to %d ways", MAX_WAYS);
	span = (opt.size + LINE - 1) / LINE * LINE;
	side.memory = (enum bench_memory)opt.memory;
	side.len = (RECEIVES + 1) * span;
	shared = bench_shared(3 * LINE);
	atomic_store(control(), 0);
	child = bench_fork(&side);
	for (int w = 0; w < opt.count; w++)
		prepare(&way[w], w, opt.words[w], !child);
	bench_open(&side, 16);
	bench_urma_open(&urma, &side, RECEIVES);
	bench_pin(child); /* the library's threads run anywhere */
	bench_urma_request(&request, &urma, URMA_OPC_SEND, side.base, (uint32_t)opt.size);
	for (uint32_t i = 0; i < RECEIVES; i++)
		bench_urma_receive(&urma, memory_of(i), (uint32_t)opt.size);
	bench_tell(&side, "r", 1); /* ready */
	bench_hear(&side, &(char){ 0 }, 1);
	if (child)
		pong(way);
	else
		measure(way);
	while (left)
		left -= bench_urma_poll(urma.jfc, left);
	bench_tell(&side, "d", 1); /* done: nobody closes before */
	bench_hear(&side, &(char){ 0 }, 1);
	fprintf(stderr, "  %s: %llu bytes, XTAL_PATHS=%s, %u cores\n", opt.series,
		(unsigned long long)opt.size, getenv("XTAL_PATHS") ? getenv("XTAL_PATHS") : "",
		bench_cores());
	bench_urma_close(&urma);
	bench_close(&side);
	return 0;
}
