/* SPDX-License-Identifier: MIT */
/*
 * A TCP proxy that does to connections what networks do: delays, cuts after n bytes, loses
 * everything from then on without a word, hands over single bytes, stalls, refuses. A process
 * of its own; what it shall do is a script of one entry per connection, or drawn from a seed.
 *
 * Between hosts (lib/netns.h) it is the middle man: it listens in one namespace and connects in
 * another, with the addresses of the real hosts, so neither can tell.
 */
#ifndef TEST_LIB_PROXY_H
#define TEST_LIB_PROXY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* What happens to a connection once it has carried `after` bytes (both directions together). */
enum proxy_end {
	PROXY_NEVER, /* nothing: it is passed on as it is */
	PROXY_RESET, /* both sides are reset */
	PROXY_CLOSE, /* both sides see the end of the stream after what was passed on */
	PROXY_LOSE,  /* nothing arrives any more, in either direction, and nobody is told */
	PROXY_STALL, /* nothing moves for stall_ms, then all goes on */
	PROXY_ENDS,
};

struct proxy_fault {
	enum proxy_end end;
	uint64_t after;
	unsigned stall_ms;
	unsigned delay_us; /* each piece arrives so much later */
	unsigned grain;    /* at most so many bytes are sent at once (0: any) ... */
	uint64_t grained;  /* ... for so many bytes */
	bool refuse;       /* the connection is reset as soon as it is there */
	bool stranger;     /* a program that speaks something else answers it, and hangs up */
};

#define PROXY_SCRIPT 16

struct proxy_config {
	/* -1: this process's own namespace */
	int listen_ns, connect_ns;
	struct sockaddr_storage listen, target; /* port 0 to listen on any: see proxy_port() */
	struct sockaddr_storage source;         /* the address it connects from; family 0: any */
	bool as_client;                         /* it connects from the client's address */
	/* The n-th connection gets the n-th entry, later ones the last. */
	struct proxy_fault script[PROXY_SCRIPT];
	unsigned entries; /* 0: all are passed on */
	/* Or, with a seed: cuts, losses and stalls at random, after 1 to `after` bytes (mostly few),
	 * with one of the ends whose bit is set; random grains. */
	uint64_t seed;
	uint64_t after;
	unsigned ends; /* 1 << enum proxy_end */
};

struct proxy;

/* Starts it. NULL: it could not listen. The process ends with the one that started it. */
struct proxy *proxy_start(const struct proxy_config *config);
void proxy_stop(struct proxy **p);

uint16_t proxy_port(const struct proxy *p); /* that it listens on */

/* What it did so far. */
struct proxy_counts {
	uint64_t connections, refused, resets, closes, losses, stalls, bytes;
};
void proxy_read(const struct proxy *p, struct proxy_counts *out);

/* Does this to every connection there is now. */
void proxy_strike(struct proxy *p, enum proxy_end end, unsigned stall_ms);
/* From now on new connections are refused, or no longer. */
void proxy_refuse(struct proxy *p, bool refuse);

#endif
