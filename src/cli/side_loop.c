/* SPDX-License-Identifier: MIT */
/*
 * The timed loops of a performance test: ping-pong, one at a time, and streams.
 *
 * In a ping-pong of writes each message ends with its own number, and the receiver spins on
 * that: eight bytes, or the last one when the size is no multiple of eight.
 */
#include "cli/side.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/inbox.h"

#define SPINS_ALONE         0x4000u
#define SPINS_BETWEEN_LOOKS 0x10000u     /* at the conversation: a system call */
#define STALLED_NS          20000000000u /* more than the engine's own limit */

/* One queue's sequence of operations. */
struct lane {
	struct cli_side *side;
	const struct cli_plan *plan;
	uint32_t queue;
	struct cli_request op; /* the next one, but for its number */
	uint64_t stride, slots;
	uint64_t posted, done, bytes;
	bool messages;    /* what comes is received */
	uint64_t wide[4]; /* 16-byte operands of CAS: expected, new */
	char *tail;       /* our message's number in the source; NULL: it has none */
	char *awaited;    /* where the peer's number arrives; NULL: nothing comes */
	bool byte;        /* the numbers are one byte */
};

static void lane_start(struct lane *lane, struct cli_side *side, const struct cli_plan *plan,
		       uint32_t q)
{
	bool sends = cli_opcode_sends(plan->op);
	uint64_t dst = cli_dst_at(plan, q), src = cli_src_at(plan, q);
	uint64_t here = (uintptr_t)side->end->base, there = side->peer.va;

	*lane = (struct lane){
		.side = side,
		.plan = plan,
		.queue = q,
		.stride = cli_stride(plan),
		.slots = cli_slots(plan),
		.op = {
			.code = plan->op,
			.len = plan->size,
			.local = here + (sends ? src : dst),
			.remote = there + (sends ? dst : src),
			.notify = there + cli_notify_at(plan, q),
		},
		.byte = plan->op == CLI_WRITE && plan->size % 8 != 0,
	};
	if (cli_opcode_is_atomic(plan->op))
		lane->op.remote = there + cli_word_at(plan, q);
	lane->messages = cli_opcode_receives(plan->op);
	if (!plan->latency || !sends || lane->messages)
		return;
	lane->awaited = side->end->base + cli_notify_at(plan, q);
	if (plan->op == CLI_WRITE) {
		uint64_t at = plan->size - (lane->byte ? 1 : 8);

		lane->tail = side->end->base + src + at;
		lane->awaited = side->end->base + dst + at;
	}
}

/* Posts the next operation; its number is posted + 1. */
static int lane_post(struct lane *lane)
{
	struct cli_request *op = &lane->op;
	uint64_t number = lane->posted + 1, at;

	switch ((enum cli_opcode)op->code) {
	case CLI_WRITE:
		if (lane->tail && lane->byte)
			*lane->tail = (char)number;
		else if (lane->tail)
			memcpy(lane->tail, &number, 8);
		break;
	case CLI_NOTIFY:
		op->a = number;
		break;
	case CLI_CAS:
		op->a = lane->posted;
		op->b = number;
		if (op->len == 16) {
			lane->wide[0] = op->a;
			lane->wide[2] = op->b;
			op->a = (uint64_t)(uintptr_t)&lane->wide[0];
			op->b = (uint64_t)(uintptr_t)&lane->wide[2];
		}
		break;
	case CLI_FAA:
		op->a = 1;
		break;
	case CLI_SWAP:
	case CLI_WRITE_IMM:
		op->a = number;
		break;
	case CLI_READ:
	case CLI_SEND:
		break;
	}
	if (lane->side->api->post(lane->side->end, lane->queue, op))
		return -1;
	lane->posted++;
	if (lane->slots == 1)
		return 0;
	/* On to the next slot; after the last one back to the first. */
	at = lane->posted % lane->slots ? lane->stride : -(lane->slots - 1) * lane->stride;
	op->local += at;
	if (!cli_opcode_is_atomic(op->code))
		op->remote += at;
	return 0;
}

/* Takes completions. Returns how many, or -1 when one is bad. */
static int lane_poll(struct lane *lane, uint32_t count)
{
	const struct cli_side *side = lane->side;
	int n = side->api->poll(side->end, lane->queue, lane->op.code,
				count < CLI_POLL_AT_ONCE ? count : CLI_POLL_AT_ONCE, &lane->bytes);

	if (n > 0)
		lane->done += (uint64_t)n;
	return n;
}

/* 1 when the peer's message with that number is there; 0, or -1. */
static int lane_arrived(const struct lane *lane, uint64_t number)
{
	if (lane->messages) {
		const struct cli_inbox *box = &lane->side->inbox[lane->queue];

		if (box->taken < number && cli_inbox_take(lane->side, lane->plan, lane->queue) < 0)
			return -1;
		return box->taken >= number;
	}
	if (!lane->awaited)
		return 1;
	if (lane->byte)
		return atomic_load_explicit((_Atomic uint8_t *)lane->awaited,
					    memory_order_acquire) == (uint8_t)number;
	return atomic_load_explicit((_Atomic uint64_t *)(void *)lane->awaited,
				    memory_order_acquire) == number;
}

/* How a side waits for bytes to arrive in its memory. */
struct spin {
	uint32_t count;
	bool drive; /* polling meanwhile lets this thread do the engine's message work */
	bool share; /* one core: the other process runs only when we let it */
};

static struct spin spin_for(const struct cli_plan *plan, const struct cli_result *result)
{
	cpu_set_t set;

	return (struct spin){
		.drive = (strcmp(result->path, "self") != 0 && strcmp(result->path, "map") != 0 &&
			  strcmp(result->path, "cma") != 0) ||
			 cli_opcode_receives(plan->op),
		.share = sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2,
	};
}

/* Once per vain look. True when it is time to look at the conversation too. A long wait may
 * mean that others want this core: then let them have it. */
static bool spin_on(struct spin *spin)
{
	spin->count++;
	if (spin->share || (spin->count > SPINS_ALONE && spin->count % 256 == 0))
		sched_yield();
	return spin->count % SPINS_BETWEEN_LOOKS == 0;
}

/* Once in a while during a spin: 0 to go on, -1 with the reason why not. */
static int look_around(struct cli_side *side, bool both, uint64_t since)
{
	struct cli_talk msg;

	if (cli_interrupted())
		return cli_fail("interrupted");
	/* When both send, the other side may have ended before us and said so. */
	if (!both && cli_talk_pending(side->fd)) {
		cli_talk_recv(side->fd, &msg, TALK_DONE, 1000);
		return -1;
	}
	if (cli_now() - since > STALLED_NS)
		return cli_fail("no progress for %u seconds; is the other process stopped?",
				(unsigned)(STALLED_NS / 1000000000u));
	return 0;
}

static void count_paths(struct cli_result *result, bool end)
{
	struct xtal_counters now;

	if (xtal_counters_read(&now, sizeof(now)))
		return;
	for (unsigned i = 0; i < XTAL_PATH_COUNT; i++)
		result->path_ops[i] = end ? now.ops[i] - result->path_ops[i] : now.ops[i];
}

/* Waits for the completion of the last post and, in a ping-pong, for the answer to it. */
static int ping_wait(struct cli_side *side, struct lane *lane, uint64_t since, struct spin *spin)
{
	spin->count = 0;
	for (;;) {
		if ((lane->done < lane->posted || spin->drive) && lane_poll(lane, 1) < 0)
			return -1;
		if (lane->done == lane->posted) {
			int arrived = lane_arrived(lane, lane->posted);

			if (arrived)
				return arrived < 0 ? -1 : 0;
		}
		if (spin_on(spin) && look_around(side, false, since))
			return -1;
	}
}

int cli_side_ping(struct cli_side *side, const struct cli_plan *plan, struct cli_progress *bar,
		  struct cli_histogram *samples, struct cli_result *result)
{
	uint64_t total = plan->iterations ? plan->iterations : UINT64_MAX, start, end, then;
	struct spin spin = spin_for(plan, result);
	struct lane lane;
	int rc = 0;

	lane_start(&lane, side, plan, 0);
	count_paths(result, false);
	start = then = cli_now();
	end = plan->iterations ? UINT64_MAX : start + plan->duration_ns;
	while (lane.posted < total) {
		uint64_t now;

		rc = lane_post(&lane);
		if (rc == 0)
			rc = ping_wait(side, &lane, then, &spin);
		if (rc)
			break;
		now = cli_now();
		cli_histogram_add(samples, now - then);
		then = now;
		if (now >= end || cli_interrupted())
			break;
		if (cli_progress_tick(bar, now, plan->iterations ? lane.posted : now - start,
				      plan->iterations ? total : end - start)) {
			uint64_t drawn = cli_now();

			start += drawn - now;
			then = drawn;
		}
	}
	result->ns = then - start;
	count_paths(result, true);
	result->ops = result->ops_min = lane.done;
	result->bytes = lane.bytes;
	return rc;
}

int cli_side_pong(struct cli_side *side, const struct cli_plan *plan, struct cli_result *result)
{
	struct spin spin = spin_for(plan, result);
	struct lane lane;
	int arrived;

	lane_start(&lane, side, plan, 0);
	count_paths(result, false);
	for (;;) {
		/* The source may change only when nothing is in flight. */
		if ((lane.done < lane.posted || spin.drive) && lane_poll(&lane, 1) < 0)
			return -1;
		arrived = lane.done == lane.posted ? lane_arrived(&lane, lane.posted + 1) : 0;
		if (arrived) {
			if (arrived < 0 || lane_post(&lane))
				return -1;
			spin.count = 0;
		} else if (spin_on(&spin) && cli_talk_pending(side->fd)) {
			break;
		}
	}
	count_paths(result, true);
	result->ops = result->ops_min = lane.done;
	result->bytes = lane.bytes;
	return 0;
}

/* One round over all queues: fill them up, take what is done. Returns how many completed. */
static int64_t stream_round(struct lane *lane, const struct cli_plan *plan, uint64_t target,
			    bool *busy)
{
	int64_t taken = 0;

	*busy = false;
	for (uint32_t q = 0; q < plan->queues; q++, lane++) {
		int n;

		while (lane->posted - lane->done < plan->depth && lane->posted < target)
			if (lane_post(lane))
				return -1;
		n = lane_poll(lane, plan->depth);
		if (n < 0)
			return -1;
		taken += n;
		if (plan->both && lane->messages && cli_inbox_take(lane->side, plan, q) < 0)
			return -1;
		if (lane->done < lane->posted || lane->posted < target)
			*busy = true;
	}
	return taken;
}

static void stream_sum(const struct lane *lane, const struct cli_plan *plan,
		       struct cli_result *result)
{
	result->ops_min = UINT64_MAX;
	for (uint32_t q = 0; q < plan->queues; q++) {
		result->ops += lane[q].done;
		result->bytes += lane[q].bytes;
		if (lane[q].done < result->ops_min)
			result->ops_min = lane[q].done;
	}
}

int cli_side_stream(struct cli_side *side, const struct cli_plan *plan, struct cli_progress *bar,
		    struct cli_result *result)
{
	uint64_t target = plan->iterations ? plan->iterations : UINT64_MAX, start, end, then, now;
	struct lane *lane = calloc(plan->queues, sizeof(*lane));
	struct spin spin = spin_for(plan, result);
	uint64_t done = 0;
	bool busy = true;
	int rc = 0;

	if (!lane)
		return cli_fail("no memory");
	for (uint32_t q = 0; q < plan->queues; q++)
		lane_start(&lane[q], side, plan, q);
	count_paths(result, false);
	start = then = now = cli_now();
	end = plan->iterations ? UINT64_MAX : start + plan->duration_ns;
	while (busy && rc == 0) {
		int64_t n = stream_round(lane, plan, target, &busy);

		now = cli_now();
		if (n > 0) {
			done += (uint64_t)n;
			then = now;
			spin.count = 0;
		} else if (n < 0 || (spin_on(&spin) && look_around(side, plan->both, then))) {
			rc = -1;
		}
		if (now >= end || cli_interrupted())
			target = 0; /* only what is posted is waited for */
		cli_progress_tick(bar, now, plan->iterations ? done : now - start,
				  plan->iterations ? plan->iterations * plan->queues : end - start);
	}
	result->ns = now - start;
	count_paths(result, true);
	stream_sum(lane, plan, result);
	free(lane);
	return rc;
}
