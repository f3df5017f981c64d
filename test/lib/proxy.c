/* SPDX-License-Identifier: MIT */
/* The fault proxy: one thread, one poll loop, two queues per connection; see proxy.h. */
#define _GNU_SOURCE
#include "lib/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/rng.h"

#define MAX_CONNECTIONS 256
#define QUEUE           (1u << 18) /* bytes of one direction that are under way */
#define PIECES          4096

struct control {
	_Atomic uint64_t connections, refused, resets, closes, losses, stalls, bytes;
	_Atomic uint32_t strikes; /* counts up; the proxy follows */
	_Atomic uint32_t strike_end, strike_ms;
	_Atomic bool refuse;
};

struct proxy {
	struct control *control;
	pid_t pid;
	uint16_t port;
};

/* A piece of the stream and when it is due. */
struct piece {
	uint64_t due;
	size_t len;
};

struct direction {
	int from, to;
	bool ended; /* from has no more */
	bool told;  /* to knows it */
	size_t start, used;
	uint8_t data[QUEUE];
	unsigned first, count;
	struct piece piece[PIECES];
};

struct connection {
	bool live, lost;
	bool connecting;
	int a, b;
	struct proxy_fault fault;
	bool struck;            /* the fault has happened */
	uint64_t stalled_until; /* 0: not */
	uint64_t moved;
	struct direction way[2];
};

static struct {
	struct proxy_config config;
	struct control *control;
	int listener;
	uint32_t strikes;
	struct rng rng;
	struct connection *c[MAX_CONNECTIONS];
} p;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static socklen_t length_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int enter(int ns)
{
	return ns >= 0 && setns(ns, CLONE_NEWNET) ? -errno : 0;
}

static void quick(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void end_connection(struct connection *c, bool hard)
{
	if (hard) {
		reset(c->a);
		reset(c->b);
	} else {
		close(c->a);
		close(c->b);
	}
	c->live = false;
}

/* ---- What happens to a connection ---- */

static struct proxy_fault draw(void)
{
	struct proxy_fault f = { .end = PROXY_NEVER };
	unsigned ends[PROXY_ENDS], n = 0;
	uint64_t after = p.config.after ? p.config.after : 1;

	for (unsigned e = 0; e < PROXY_ENDS; e++)
		if (p.config.ends & 1u << e)
			ends[n++] = e;
	if (n)
		f.end = (enum proxy_end)ends[rng_below(&p.rng, n)];
	/* Few bytes as likely as many: the exponent is drawn. */
	while (after > 1 && rng_below(&p.rng, 4) == 0)
		after /= 8;
	f.after = 1 + rng_below(&p.rng, after ? after : 1);
	f.stall_ms = (unsigned)rng_below(&p.rng, 300);
	if (rng_below(&p.rng, 3) == 0) {
		f.grain = 1 + (unsigned)rng_below(&p.rng, 100);
		f.grained = rng_below(&p.rng, 3000);
	}
	if (rng_below(&p.rng, 4) == 0)
		f.delay_us = (unsigned)rng_below(&p.rng, 3000);
	return f;
}

static struct proxy_fault next_fault(uint64_t number)
{
	if (p.config.seed)
		return draw();
	if (!p.config.entries)
		return (struct proxy_fault){ .end = PROXY_NEVER };
	return p.config.script[number < p.config.entries ? number : p.config.entries - 1];
}

static void strike(struct connection *c, enum proxy_end end, unsigned stall_ms)
{
	switch (end) {
	case PROXY_NEVER:
	case PROXY_ENDS:
		return;
	case PROXY_RESET:
		atomic_fetch_add(&p.control->resets, 1);
		end_connection(c, true);
		return;
	case PROXY_CLOSE:
		atomic_fetch_add(&p.control->closes, 1);
		end_connection(c, false);
		return;
	case PROXY_LOSE:
		atomic_fetch_add(&p.control->losses, 1);
		c->lost = true;
		return;
	case PROXY_STALL:
		atomic_fetch_add(&p.control->stalls, 1);
		c->stalled_until = now_us() + stall_ms * 1000ull;
		return;
	}
}

/* ---- Moving bytes ---- */

static void take(struct connection *c, struct direction *d)
{
	size_t at = (d->start + d->used) % QUEUE, room = QUEUE - d->used;
	ssize_t n;

	if (d->ended || !room || d->count == PIECES)
		return;
	if (room > QUEUE - at)
		room = QUEUE - at;
	n = recv(d->from, d->data + at, room, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && !c->lost) {
		end_connection(c, true); /* one side was reset: so is the other */
		return;
	}
	if (n <= 0) {
		d->ended = true;
		return;
	}
	if (c->lost)
		return;
	d->piece[(d->first + d->count++) % PIECES] =
		(struct piece){ .due = now_us() + c->fault.delay_us, .len = (size_t)n };
	d->used += (size_t)n;
}

/* Single bytes stay single only if none waits for the window: TCP would join them. */
static bool must_wait(const struct connection *c, const struct direction *d)
{
	int unsent = 0;

	return c->fault.grain && c->moved < c->fault.grained &&
	       ioctl(d->to, SIOCOUTQNSD, &unsent) == 0 && unsent > 0;
}

/* Sends what is due. */
static void give(struct connection *c, struct direction *d)
{
	while (c->live && !c->lost && d->count && d->piece[d->first].due <= now_us()) {
		struct piece *piece = &d->piece[d->first];
		struct proxy_fault *f = &c->fault;
		size_t len = piece->len;
		ssize_t n;

		if (c->stalled_until || must_wait(c, d))
			return;
		if (len > QUEUE - d->start)
			len = QUEUE - d->start;
		if (f->grain && c->moved < f->grained && len > f->grain)
			len = f->grain;
		if (f->end != PROXY_NEVER && !c->struck && c->moved + len > f->after)
			len = f->after - c->moved;
		n = len ? send(d->to, d->data + d->start, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			end_connection(c, true);
			return;
		}
		d->start = (d->start + (size_t)n) % QUEUE;
		d->used -= (size_t)n;
		piece->len -= (size_t)n;
		if (!piece->len) {
			d->first = (d->first + 1) % PIECES;
			d->count--;
		}
		c->moved += (uint64_t)n;
		atomic_fetch_add(&p.control->bytes, (uint64_t)n);
		if (f->end != PROXY_NEVER && !c->struck && c->moved >= f->after) {
			c->struck = true;
			strike(c, f->end, f->stall_ms);
		}
	}
	if (c->live && !c->lost && !c->stalled_until && d->ended && !d->used && !d->told) {
		shutdown(d->to, SHUT_WR);
		d->told = true;
	}
}

static int dial(const struct sockaddr_storage *source)
{
	const struct sockaddr_storage *target = &p.config.target;
	int fd = socket(target->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	quick(fd);
	if (source->ss_family && bind(fd, (const void *)source, length_of(source))) {
		close(fd);
		return -errno;
	}
	if (connect(fd, (const void *)target, length_of(target)) && errno != EINPROGRESS) {
		close(fd);
		return -errno;
	}
	return fd;
}

static void answer_as_stranger(int fd)
{
	static const char words[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	char request[512];

	/* Read first: a reset would overtake the words. */
	for (unsigned i = 0; i < 100 && recv(fd, request, sizeof(request), MSG_DONTWAIT) < 0; i++)
		poll(NULL, 0, 1);
	send(fd, words, sizeof(words) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void accept_one(void)
{
	uint64_t number = atomic_load(&p.control->connections);
	struct proxy_fault fault;
	struct connection *c;
	unsigned slot = 0;
	struct sockaddr_storage client;
	socklen_t len = sizeof(client);
	int a = accept4(p.listener, (void *)&client, &len, SOCK_NONBLOCK | SOCK_CLOEXEC), b;

	if (a < 0)
		return;
	((struct sockaddr_in *)&client)->sin_port = 0; /* IPv6 has it there too */
	fault = next_fault(number);
	atomic_fetch_add(&p.control->connections, 1);
	if (fault.stranger) {
		answer_as_stranger(a);
		return;
	}
	while (slot < MAX_CONNECTIONS && p.c[slot])
		slot++;
	b = -1;
	if (slot < MAX_CONNECTIONS && !fault.refuse && !atomic_load(&p.control->refuse))
		b = dial(p.config.as_client ? &client : &p.config.source);
	c = b >= 0 ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		atomic_fetch_add(&p.control->refused, 1);
		reset(a);
		if (b >= 0)
			close(b);
		return;
	}
	quick(a);
	c->live = c->connecting = true;
	c->a = a;
	c->b = b;
	c->fault = fault;
	c->way[0].from = c->way[1].to = a;
	c->way[0].to = c->way[1].from = b;
	p.c[slot] = c;
}

/* The target's answer to dial(). */
static void connected(struct connection *c)
{
	struct pollfd ready = { .fd = c->b, .events = POLLOUT };
	int err = 0;
	socklen_t len = sizeof(err);

	if (poll(&ready, 1, 0) == 0)
		return;
	getsockopt(c->b, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) { /* nobody there: the client is reset */
		atomic_fetch_add(&p.control->refused, 1);
		end_connection(c, true);
	}
	c->connecting = false;
}

static void serve(struct connection *c)
{
	if (c->connecting)
		connected(c);
	if (!c->live || c->connecting)
		return;
	if (c->stalled_until && c->stalled_until <= now_us())
		c->stalled_until = 0;
	for (unsigned i = 0; i < 2 && c->live; i++) {
		if (!c->stalled_until)
			take(c, &c->way[i]);
		if (c->live)
			give(c, &c->way[i]);
	}
	if (c->live && c->way[0].told && c->way[1].told)
		end_connection(c, false);
	if (c->live && c->lost && c->way[0].ended && c->way[1].ended)
		end_connection(c, true);
}

/* What to wait for. Returns how long at most, ms. */
static int plan(struct pollfd *fds, unsigned *count)
{
	int64_t soonest = 1000;

	*count = 1;
	fds[0] = (struct pollfd){ .fd = p.listener, .events = POLLIN };
	for (unsigned i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *c = p.c[i];
		int64_t wait = 1000;

		if (!c)
			continue;
		if (c->stalled_until)
			wait = (int64_t)(c->stalled_until - now_us()) / 1000 + 1;
		if (c->connecting)
			fds[(*count)++] = (struct pollfd){ .fd = c->b, .events = POLLOUT };
		for (unsigned k = 0; k < 2 && !c->connecting && !c->stalled_until; k++) {
			const struct direction *d = &c->way[k];
			int64_t due;

			if (!d->ended && d->used < QUEUE && d->count < PIECES)
				fds[(*count)++] =
					(struct pollfd){ .fd = d->from, .events = POLLIN };
			if (!d->count || c->lost)
				continue;
			due = (int64_t)(d->piece[d->first].due - now_us());
			if (due <= 0 && must_wait(c, d))
				wait = 1;
			else if (due <= 0)
				fds[(*count)++] = (struct pollfd){ .fd = d->to, .events = POLLOUT };
			else if (due / 1000 + 1 < wait)
				wait = due / 1000 + 1;
		}
		if (wait < soonest)
			soonest = wait;
	}
	return soonest < 0 ? 0 : (int)soonest;
}

static void follow_strikes(void)
{
	uint32_t strikes = atomic_load(&p.control->strikes);

	if (strikes == p.strikes)
		return;
	p.strikes = strikes;
	for (unsigned i = 0; i < MAX_CONNECTIONS; i++)
		if (p.c[i] && p.c[i]->live)
			strike(p.c[i], (enum proxy_end)atomic_load(&p.control->strike_end),
			       atomic_load(&p.control->strike_ms));
}

static void on_signal(int signo)
{
	(void)signo; /* ends poll */
}

/* Strikes are announced by a signal that only ppoll lets in. */
static void await_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t usr1;

	sigaction(SIGUSR1, &act, NULL);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
}

static void run(void)
{
	static struct pollfd fds[1 + 4 * MAX_CONNECTIONS];
	sigset_t none;
	unsigned count;

	sigemptyset(&none);
	for (;;) {
		int ms = plan(fds, &count);
		struct timespec limit = { ms / 1000, (long)(ms % 1000) * 1000000 };

		ppoll(fds, count, &limit, &none);
		follow_strikes();
		for (unsigned i = 0; i < MAX_CONNECTIONS; i++) {
			if (p.c[i] && p.c[i]->live)
				serve(p.c[i]);
			if (p.c[i] && !p.c[i]->live) {
				free(p.c[i]);
				p.c[i] = NULL;
			}
		}
		accept_one();
	}
}

/* What the parent has open is not ours: a socket that it closes must be closed. */
static void close_others(const struct proxy_config *config, int tell)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fd != config->listen_ns && fd != config->connect_ns && fd != tell)
			close(fd);
}

/* In the new process. Tells the port over the pipe, 0 when there is none. */
static void child(const struct proxy_config *config, struct control *control, int tell)
{
	struct sockaddr_storage address = config->listen;
	socklen_t len = sizeof(address);
	uint16_t port = 0;
	int on = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	await_signals();
	close_others(config, tell);
	p.config = *config;
	p.control = control;
	p.rng.state = config->seed;
	if (enter(config->listen_ns))
		_exit(1);
	p.listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(p.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(p.listener, (const void *)&config->listen, length_of(&config->listen)) ||
	    listen(p.listener, 128) || getsockname(p.listener, (void *)&address, &len) ||
	    enter(config->connect_ns))
		_exit(1);
	port = ntohs(((const struct sockaddr_in *)&address)->sin_port); /* IPv6 has it there too */
	if (write(tell, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	close(tell);
	run();
}

struct proxy *proxy_start(const struct proxy_config *config)
{
	struct proxy *out = calloc(1, sizeof(*out));
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		abort();
	out->control = mmap(NULL, sizeof(*out->control), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (out->control == MAP_FAILED)
		abort();
	out->pid = fork();
	if (out->pid == 0) {
		child(config, out->control, fds[1]);
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &out->port, sizeof(out->port)) != sizeof(out->port))
		proxy_stop(&out);
	close(fds[0]);
	return out;
}

void proxy_stop(struct proxy **pp)
{
	struct proxy *old = *pp;

	*pp = NULL;
	if (!old)
		return;
	if (old->pid > 0) {
		kill(old->pid, SIGKILL);
		waitpid(old->pid, NULL, 0);
	}
	munmap(old->control, sizeof(*old->control));
	free(old);
}

uint16_t proxy_port(const struct proxy *pp)
{
	return pp->port;
}

void proxy_read(const struct proxy *pp, struct proxy_counts *out)
{
	const struct control *c = pp->control;

	*out = (struct proxy_counts){ .connections = c->connections,
				      .refused = c->refused,
				      .resets = c->resets,
				      .closes = c->closes,
				      .losses = c->losses,
				      .stalls = c->stalls,
				      .bytes = c->bytes };
}

void proxy_strike(struct proxy *pp, enum proxy_end end, unsigned stall_ms)
{
	atomic_store(&pp->control->strike_end, end);
	atomic_store(&pp->control->strike_ms, stall_ms);
	atomic_fetch_add(&pp->control->strikes, 1);
	kill(pp->pid, SIGUSR1);
}

void proxy_refuse(struct proxy *pp, bool refuse)
{
	atomic_store(&pp->control->refuse, refuse);
}
