/* SPDX-License-Identifier: MIT */
/*
 * What a performance test asks of an API, as a table: one row for each. An end is one process's
 * objects: a context, a region of registered memory, queues towards one other end.
 *
 * All functions that return int: 0 or a count, or -1 with cli_reason.
 */
#ifndef XTAL_CLI_API_H
#define XTAL_CLI_API_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/memory.h"
#include "cli/words.h"
#include "xtal.h"

#define CLI_POLL_AT_ONCE 64u

struct cli_end_attr {
	enum cli_memory memory;
	uint64_t len; /* bytes of the region */
	uint32_t queues, depth;
	uint32_t receives; /* posted at once on each queue, at most; 0: none ever */
	int fd; /* a conversation with the other side: tells which device; -1: the first */
};

/* The part of an end that all APIs have; each continues it. */
struct cli_end {
	char *base; /* the region */
	uint64_t len;
	struct xtal_descriptor desc; /* what the other side must know */
};

/* One operation: addresses here and there. */
struct cli_request {
	uint32_t code; /* enum cli_opcode */
	uint64_t len;
	uint64_t local, remote, notify;
	/* NOTIFY: a is stored; CAS: a expected, b new; 16 bytes: their addresses; FAA: a is added;
	 * SWAP: a is new; WRITE_IMM: a goes to the receiver. */
	uint64_t a, b;
};

struct cli_api {
	const char *name;
	uint32_t opcodes; /* bit per enum cli_opcode */

	/* The region is zero-filled, page aligned, every page touched. NULL with cli_reason. */
	struct cli_end *(*open)(const struct cli_end_attr *attr);
	/* Queues too. */
	void (*close)(struct cli_end *end);
	/* After this the queues may be used, or paired. */
	int (*connect)(struct cli_end *end, const struct xtal_descriptor *peer);
	/* The object that xtal_path_query() wants. */
	const void *(*handle)(const struct cli_end *end, uint32_t queue);
	int (*post)(struct cli_end *end, uint32_t queue, const struct cli_request *request);
	/* How many operations completed, at most count (no more than CLI_POLL_AT_ONCE); adds up their
	 * bytes. -1 when one of them failed: code is what was posted there. */
	int (*poll)(struct cli_end *end, uint32_t queue, uint32_t code, uint32_t count,
		    uint64_t *bytes);

	/* The rest may be NULL: the API has no messages. */
	/* What the other side must know of a queue. */
	uint32_t (*queue_id)(const struct cli_end *end, uint32_t queue);
	/* The queue goes to the one there that has this id. */
	int (*pair)(struct cli_end *end, uint32_t queue, uint32_t id);
	/* Posts a receive; len 0: for the arrival alone. */
	int (*receive)(struct cli_end *end, uint32_t queue, void *base, uint32_t len);
	/* How many receives were used, at most CLI_POLL_AT_ONCE; adds up their bytes. */
	int (*received)(struct cli_end *end, uint32_t queue, uint64_t *bytes);
	/* Takes back the receives that were not used. */
	int (*withdraw)(struct cli_end *end, uint32_t queue);
};

#define CLI_API_COUNT 2u
/* By number, as a plan has it. NULL: there is none. */
const struct cli_api *cli_api(uint32_t number);

extern const struct cli_api cli_api_cdma, cli_api_urma;

#endif
