/* SPDX-License-Identifier: MIT */
/*
 * One of the two sides of a performance test. Both are made alike: a region of memory in two
 * halves, source and destination, with one lane in each for every queue, and behind them one
 * pair of words per queue (notify, atomic). The plan says how large; side_loop.c runs it.
 *
 * All functions that return int: 0, or -1 with cli_reason.
 */
#ifndef XTAL_CLI_SIDE_H
#define XTAL_CLI_SIDE_H

#include "cli/api.h"
#include "cli/histogram.h"
#include "cli/progress.h"
#include "cli/talk.h"

#define CLI_MAX_QUEUES 1024u

/* Receives of a queue in a run (inbox.h). */
struct cli_inbox {
	uint64_t posted, taken, bytes;
};

struct cli_side {
	const struct cli_api *api;
	struct cli_end *end;
	struct xtal_descriptor peer; /* the other side's region */
	struct cli_inbox *inbox;     /* of each queue */
	uint32_t queues;
	int fd; /* the conversation, watched for its end while memory is watched */
};

/* True when a latency test is a ping-pong: a sample is two operations. */
static inline bool cli_ping_pong(const struct cli_plan *plan)
{
	return plan->latency && cli_opcode_sends(plan->op);
}

/* Where things lie in a region. */
static inline uint64_t cli_dst_at(const struct cli_plan *plan, uint32_t queue)
{
	return queue * plan->cycle;
}
static inline uint64_t cli_src_at(const struct cli_plan *plan, uint32_t queue)
{
	return (plan->queues + (uint64_t)queue) * plan->cycle;
}
static inline uint64_t cli_notify_at(const struct cli_plan *plan, uint32_t queue)
{
	return 2 * plan->queues * plan->cycle + queue * 128u;
}
static inline uint64_t cli_word_at(const struct cli_plan *plan, uint32_t queue)
{
	return cli_notify_at(plan, queue) + 64;
}
/* Successive operations of a queue walk through its lane, a cache line apart at least. */
static inline uint64_t cli_stride(const struct cli_plan *plan)
{
	return (plan->size + 63) & ~(uint64_t)63;
}
static inline uint64_t cli_slots(const struct cli_plan *plan)
{
	uint64_t n = plan->latency ? 1 : plan->cycle / cli_stride(plan);

	return n ? n : 1;
}

/* 0 when a plan from another process is one that we can follow. */
int cli_plan_check(const struct cli_plan *plan);

int cli_side_open(struct cli_side *side, const struct cli_plan *plan, enum cli_memory memory,
		  int fd);
int cli_side_connect(struct cli_side *side, const struct xtal_descriptor *peer);
void cli_side_close(struct cli_side *side);
/*
 * Queues that exchange messages must know each other's ids: so many from the first on are told to
 * text, and so many of the other side's are taken from there. 0: the API has none of this.
 */
#define CLI_IDS_AT_ONCE 64u
uint32_t cli_side_ids(struct cli_side *side, uint32_t first, char *text);
int cli_side_pair(struct cli_side *side, uint32_t first, const char *text);
/* Which path our operations take, into result->path and why. */
int cli_side_path(struct cli_side *side, struct cli_result *result);

/* Before a run: fresh patterns in the source half, zeros elsewhere, receives posted. */
int cli_side_prepare(struct cli_side *side, const struct cli_plan *plan, uint64_t seed);
/* After a run in which the peer (whose seed it was) did ops of the plan to us. */
int cli_side_check_target(struct cli_side *side, const struct cli_plan *plan, uint64_t seed,
			  const struct cli_result *done);
/* After a run in which we read from, or did atomics on, the peer (whose seed it was). */
int cli_side_check_fetched(struct cli_side *side, const struct cli_plan *plan, uint64_t seed,
			   const struct cli_result *done);

/* One operation after the other, each time into samples: round trips for write and notify,
 * else from the post to the completion. */
int cli_side_ping(struct cli_side *side, const struct cli_plan *plan, struct cli_progress *bar,
		  struct cli_histogram *samples, struct cli_result *result);
/* The other half of a ping-pong: answers until a message waits in the conversation. */
int cli_side_pong(struct cli_side *side, const struct cli_plan *plan, struct cli_result *result);
/* As many operations as the depth allows, on all queues. */
int cli_side_stream(struct cli_side *side, const struct cli_plan *plan, struct cli_progress *bar,
		    struct cli_result *result);

#endif
