/* SPDX-License-Identifier: MIT */
/*
 * The conversation between the command and its owner process: what programs exchange out of
 * band (descriptors), and orders to fill, check and watch memory. None of the measured bytes
 * go this way. One message of fixed size per order and per answer, over a stream socket.
 */
#ifndef XTAL_CLI_TALK_H
#define XTAL_CLI_TALK_H

#include <stdbool.h>
#include <stdint.h>

#include "xtal.h"

enum cli_talk_type {
	TALK_HELLO = 1, /* owner: value = pid. To a server: text = its XTAL_PATHS, or "" */
	TALK_ALLOC,     /* value = enum cli_memory, len -> region, desc */
	TALK_FILL,      /* region, offset, len, seed: write the pattern */
	TALK_CHECK,     /* region, offset, len, seed -> value = bytes that differ, offset */
	TALK_PEEK,      /* region, offset -> value = the 8 bytes there */
	TALK_POKE,      /* region, offset, value: store 8 bytes */
	TALK_WATCH, /* region, offset, value: spin until it is there -> READY, then value = when */
	TALK_ADD,   /* region, offset, value: so many atomic increments -> READY, then done */
	TALK_TRY,   /* desc, value = path: use it -> value = 1 or 0, result.path, why, ns, text */
	TALK_JOIN,  /* plan, value = enum cli_memory, desc: take part in a test -> desc */
	TALK_PAIR,  /* offset, text: ids of the asker's queues from there on -> text: the owner's */
	TALK_RUN,   /* plan, seed: get ready for one run, then serve it -> READY */
	TALK_STOP,  /* result: the run is over -> result, text = what did not verify */
	TALK_READY,
	TALK_DONE,
};

/* One run of a performance test, as both sides must see it. */
struct cli_plan {
	uint32_t api;     /* of cli_api() */
	uint32_t op;      /* enum cli_opcode */
	uint32_t latency; /* 1: one at a time; 0: bandwidth */
	uint32_t queues, depth;
	uint32_t both; /* bandwidth: the owner sends too */
	uint32_t verify, reserved;
	uint64_t size;       /* bytes per operation */
	uint64_t cycle;      /* bytes of memory that one queue walks through, >= size */
	uint64_t iterations; /* per queue; 0: duration_ns counts */
	uint64_t duration_ns;
};

/* What one side did in a run. */
struct cli_result {
	uint64_t ops;                       /* completed, all queues together */
	uint64_t ops_min;                   /* of the queue with the fewest */
	uint64_t bytes;                     /* as the completions reported them */
	uint64_t ns;                        /* from the first post to the last completion */
	uint64_t path_ops[XTAL_PATH_COUNT]; /* operations that the engine counted on each path */
	char path[16];                      /* the path that the engine chose */
	char why[248];
};

struct cli_talk {
	uint32_t magic;
	uint32_t type; /* enum cli_talk_type */
	int32_t error; /* answers: 0, or -1 and the reason in text */
	uint32_t region;
	uint64_t offset, len, seed, value;
	struct xtal_descriptor desc;
	struct cli_plan plan;
	struct cli_result result;
	char text[512];
};

/* All of these: 0, or -1 with cli_reason. */

int cli_talk_send(int fd, struct cli_talk *msg, enum cli_talk_type type);
/* The next message, of the type wanted; an answer with an error becomes -1 with its text. */
int cli_talk_recv(int fd, struct cli_talk *msg, enum cli_talk_type want, int timeout_ms);
/* Sends an order and takes its answer (TALK_DONE) into the same message. */
int cli_talk_ask(int fd, struct cli_talk *msg, enum cli_talk_type type);

/* The next message of any type. 1: got one; 0: the other side closed. */
int cli_talk_next(int fd, struct cli_talk *msg, int timeout_ms);
/* True when a message, or the end of the other side, waits. */
bool cli_talk_pending(int fd);

#define CLI_TALK_PATIENCE_MS 30000

/*
 * From now on every message of the conversation carries a code made with the key (HMAC-SHA-256
 * over both nonces, the direction, the message's number and its bytes), and one without a right
 * code ends it. One conversation of the process can be protected.
 */
#define CLI_TALK_NONCE 16
#define CLI_TALK_KEY   32
void cli_talk_protect(int fd, const uint8_t key[CLI_TALK_KEY],
		      const uint8_t client_nonce[CLI_TALK_NONCE],
		      const uint8_t server_nonce[CLI_TALK_NONCE], bool client);
/* What another process needs, beside the key, to carry the conversation on; NULL: it is not
 * protected. Static. */
const char *cli_talk_state(int fd);
int cli_talk_adopt(int fd, const uint8_t key[CLI_TALK_KEY], const char *state);

#endif
