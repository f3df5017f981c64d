/* SPDX-License-Identifier: MIT */
/*
 * The engine's protocol of one host, spoken by hand: sockets, control messages and rings for
 * programs that lie. Knows the layouts of src/wire and src/path, uses none of src/core.
 */
#ifndef TEST_LIB_HOSTILE_H
#define TEST_LIB_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

struct hostile_link {
	int sock; /* -1: none */
	struct xtal_control welcome;
	uint8_t *table; /* the owner's slots, read only */
	uint8_t *memory;
	size_t memory_len;
};

/* A socket connected to (or listening as) the context's abstract name; -1. */
int hostile_connect(uint32_t tid);
int hostile_listen(uint16_t port);

/* Sends any bytes with any descriptors. False: the other side has gone. */
bool hostile_send(int sock, const void *data, size_t len, const int *fds, unsigned nfds);

/* Receives within the time; bytes, 0 at the end of the stream, -1 nothing. Takes up to 8 fds. */
int hostile_recv(int sock, struct xtal_control *c, int fds[8], unsigned *nfds, int timeout_ms);

void hostile_control(struct xtal_control *c, enum xtal_control_type type);

/* An honest handshake. False: refused. */
bool hostile_hello(struct hostile_link *l, uint32_t tid);
/* Rings the owner's doorbell; waits for room. False: it has gone. */
bool hostile_nudge(struct hostile_link *l);
void hostile_drop(struct hostile_link *l);

/* A memfd of this size, sealed against shrinking or not. */
int hostile_object(size_t len, bool sealed);

/* True when the other side closes the socket within the time. */
bool hostile_closed(int sock, int timeout_ms);

#endif
