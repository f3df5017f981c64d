/* SPDX-License-Identifier: MIT */
/* Making and checking a side of a performance test; nothing here is timed. */
#include "cli/side.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/inbox.h"
#include "cli/pattern.h"

int cli_plan_check(const struct cli_plan *plan)
{
	const struct cli_api *api = cli_api(plan->api);

	if (!api || plan->op >= CLI_OPCODE_COUNT || !(api->opcodes & 1u << plan->op) ||
	    plan->queues < 1 || plan->queues > CLI_MAX_QUEUES || plan->depth < 1 ||
	    plan->size < 1 || plan->size > plan->cycle ||
	    plan->cycle > (UINT64_C(1) << 40) / (2 * plan->queues) || plan->cycle % 64)
		return cli_fail("the other process asks for a test that makes no sense");
	return 0;
}

int cli_side_open(struct cli_side *side, const struct cli_plan *plan, enum cli_memory memory,
		  int fd)
{
	struct cli_end_attr attr = {
		.memory = memory,
		.len = cli_notify_at(plan, plan->queues),
		.queues = plan->queues,
		.depth = plan->depth,
		.receives = cli_inbox_depth(plan),
		.fd = fd,
	};

	*side = (struct cli_side){ .api = cli_api(plan->api), .queues = plan->queues, .fd = fd };
	side->inbox = calloc(plan->queues, sizeof(*side->inbox));
	if (!side->inbox)
		return cli_fail("no memory");
	side->end = side->api->open(&attr);
	if (side->end)
		return 0;
	cli_side_close(side);
	return -1;
}

int cli_side_connect(struct cli_side *side, const struct xtal_descriptor *peer)
{
	if (peer->len != side->end->len)
		return cli_fail("the two sides do not have the same amount of memory");
	side->peer = *peer;
	return side->api->connect(side->end, peer);
}

void cli_side_close(struct cli_side *side)
{
	if (side->end)
		side->api->close(side->end);
	free(side->inbox);
	side->end = NULL;
	side->inbox = NULL;
}

static uint32_t ids_from(const struct cli_side *side, uint32_t first)
{
	uint32_t n = first < side->queues ? side->queues - first : 0;

	if (!side->api->queue_id)
		return 0;
	return n < CLI_IDS_AT_ONCE ? n : CLI_IDS_AT_ONCE;
}

uint32_t cli_side_ids(struct cli_side *side, uint32_t first, char *text)
{
	uint32_t n = ids_from(side, first);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = side->api->queue_id(side->end, first + i);

		memcpy(text + i * sizeof(id), &id, sizeof(id));
	}
	return n;
}

int cli_side_pair(struct cli_side *side, uint32_t first, const char *text)
{
	uint32_t n = ids_from(side, first);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id;

		memcpy(&id, text + i * sizeof(id), sizeof(id));
		if (side->api->pair(side->end, first + i, id))
			return -1;
	}
	return 0;
}

int cli_side_path(struct cli_side *side, struct cli_result *result)
{
	struct xtal_path_info info;
	int rc = xtal_path_query(side->api->handle(side->end, 0), &side->peer, -1, &info);

	if (rc)
		return cli_fail("the path to the other side is unknown: %s", xtal_last_error());
	if (info.kind == XTAL_PATH_NONE)
		return cli_fail("no path to the other side's: %s", info.reason);
	memcpy(result->path, info.name, sizeof(result->path));
	memcpy(result->why, info.reason, sizeof(result->why));
	return 0;
}

int cli_side_prepare(struct cli_side *side, const struct cli_plan *plan, uint64_t seed)
{
	uint64_t half = plan->queues * plan->cycle;
	char *base = side->end->base;

	memset(base, 0, half);
	cli_pattern_fill(base + half, half, seed, 0);
	/* Peers' atomics go to these through our agent thread: no plain stores beside them. */
	for (uint64_t at = 2 * half; at < cli_notify_at(plan, plan->queues); at += 8)
		atomic_store((_Atomic uint64_t *)(void *)(base + at), 0);
	return cli_inbox_fill(side, plan);
}

/* In a ping-pong the last bytes of each message are its number; see side_loop.c. */
static int check_ping_tail(const char *msg, const struct cli_plan *plan, uint64_t ops)
{
	uint64_t tail = 0;
	size_t width = plan->size % 8 ? 1 : 8;

	memcpy(&tail, msg + plan->size - width, width);
	if (tail == (width == 1 ? (ops & 0xff) : ops))
		return 0;
	return cli_fail("verification: the last message is number %llu, not %llu",
			(unsigned long long)tail, (unsigned long long)ops);
}

/* Every slot that was surely used must hold the peer's source bytes of the same slot. */
static int check_lanes(struct cli_side *side, const struct cli_plan *plan, uint64_t seed,
		       const struct cli_result *done)
{
	uint64_t slots = cli_slots(plan), len = plan->size, first = 0;
	bool ping = plan->latency && plan->op == CLI_WRITE;

	if (done->ops_min < slots)
		slots = done->ops_min;
	if (ping)
		len -= plan->size % 8 ? 1 : 8;
	for (uint32_t q = 0; q < plan->queues; q++) {
		for (uint64_t s = 0; s < slots; s++) {
			uint64_t at = s * cli_stride(plan);
			size_t bad =
				cli_pattern_check(side->end->base + cli_dst_at(plan, q) + at, len,
						  seed, q * plan->cycle + at, (size_t *)&first);

			if (bad)
				return cli_fail(
					"verification: %zu of %llu bytes are wrong, the first "
					"at offset %llu of slot %llu, queue %u",
					bad, (unsigned long long)len, (unsigned long long)first,
					(unsigned long long)s, q);
		}
		if (ping && slots &&
		    check_ping_tail(side->end->base + cli_dst_at(plan, q), plan, done->ops))
			return -1;
	}
	return 0;
}

/* Notify words hold the number of the queue's last operation, atomic words the sum of all
 * that succeeded: together they must be as many as there were completions. */
static int check_words(struct cli_side *side, const struct cli_plan *plan, bool notify,
		       const struct cli_result *done)
{
	uint64_t sum = 0, mask = !notify && plan->size == 4 ? 0xffffffffu : UINT64_MAX;

	for (uint32_t q = 0; q < plan->queues; q++) {
		uint64_t at = notify ? cli_notify_at(plan, q) : cli_word_at(plan, q);

		sum += atomic_load((_Atomic uint64_t *)(void *)(side->end->base + at)) & mask;
	}
	if (((sum ^ done->ops) & mask) == 0)
		return 0;
	return cli_fail("verification: %s add up to %llu, not to the %llu completed operations",
			notify ? "the notify words" : "the words", (unsigned long long)sum,
			(unsigned long long)done->ops);
}

int cli_side_check_target(struct cli_side *side, const struct cli_plan *plan, uint64_t seed,
			  const struct cli_result *done)
{
	switch ((enum cli_opcode)plan->op) {
	case CLI_WRITE:
	case CLI_SEND:
	case CLI_WRITE_IMM:
		return check_lanes(side, plan, seed, done);
	case CLI_NOTIFY:
		if (check_lanes(side, plan, seed, done))
			return -1;
		return check_words(side, plan, true, done);
	case CLI_CAS:
	case CLI_FAA:
	case CLI_SWAP:
		return check_words(side, plan, false, done);
	case CLI_READ:
		return 0;
	}
	return 0;
}

int cli_side_check_fetched(struct cli_side *side, const struct cli_plan *plan, uint64_t seed,
			   const struct cli_result *done)
{
	uint64_t old = 0, mask = plan->size == 4 ? 0xffffffffu : UINT64_MAX;

	if (plan->op == CLI_READ)
		return check_lanes(side, plan, seed, done);
	if (!cli_opcode_is_atomic(plan->op) || !plan->latency || done->ops == 0)
		return 0;
	memcpy(&old, side->end->base + cli_dst_at(plan, 0), plan->size == 4 ? 4 : 8);
	if (((old ^ (done->ops - 1)) & mask) == 0)
		return 0;
	return cli_fail("verification: the last %s found %llu, not %llu", cli_opcode_name(plan->op),
			(unsigned long long)old, (unsigned long long)done->ops - 1);
}
