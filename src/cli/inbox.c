/* SPDX-License-Identifier: MIT */
/* Receives are posted anew as soon as they were used, so that senders seldom wait. */
#include "cli/inbox.h"

#include <sched.h>
#include <string.h>

#include "cli/cli.h"

#define LEAST_RECEIVES 16u
#define MOST_RECEIVES  65536u
#define LATE_NS        10000000000u /* for what was sent and reported as arrived */

uint32_t cli_inbox_depth(const struct cli_plan *plan)
{
	uint32_t n = plan->depth < MOST_RECEIVES / 2 ? 2 * plan->depth : MOST_RECEIVES;

	if (!cli_opcode_receives(plan->op))
		return 0;
	return n < LEAST_RECEIVES ? LEAST_RECEIVES : n;
}

static int post_next(struct cli_side *side, const struct cli_plan *plan, uint32_t queue)
{
	struct cli_inbox *box = &side->inbox[queue];
	uint64_t slot = box->posted % cli_slots(plan);
	char *base = side->end->base + cli_dst_at(plan, queue) + slot * cli_stride(plan);

	box->posted++;
	return side->api->receive(side->end, queue, base,
				  plan->op == CLI_SEND ? (uint32_t)plan->size : 0);
}

int cli_inbox_fill(struct cli_side *side, const struct cli_plan *plan)
{
	if (!cli_opcode_receives(plan->op))
		return 0;
	for (uint32_t q = 0; q < plan->queues; q++) {
		if (side->inbox[q].posted && side->api->withdraw(side->end, q))
			return -1;
		side->inbox[q] = (struct cli_inbox){ 0 };
		while (side->inbox[q].posted < cli_inbox_depth(plan))
			if (post_next(side, plan, q))
				return -1;
	}
	return 0;
}

int cli_inbox_take(struct cli_side *side, const struct cli_plan *plan, uint32_t queue)
{
	struct cli_inbox *box = &side->inbox[queue];
	int n = side->api->received(side->end, queue, &box->bytes);

	for (int i = 0; i < n; i++)
		if (post_next(side, plan, queue))
			return -1;
	if (n > 0)
		box->taken += (uint64_t)n;
	return n;
}

int cli_inbox_serve(struct cli_side *side, const struct cli_plan *plan)
{
	for (uint32_t vain = 0;; vain++) {
		for (uint32_t q = 0; q < plan->queues; q++) {
			int n = cli_inbox_take(side, plan, q);

			if (n < 0)
				return -1;
			if (n)
				vain = 0;
		}
		if (vain % 256 == 255) {
			sched_yield();
			if (cli_interrupted())
				return cli_fail("interrupted");
			if (cli_talk_pending(side->fd))
				return 0;
		}
	}
}

int cli_inbox_finish(struct cli_side *side, const struct cli_plan *plan, uint64_t sent)
{
	uint64_t end = cli_now() + LATE_NS, taken, bytes;

	if (!cli_opcode_receives(plan->op))
		return 0;
	do {
		taken = bytes = 0;
		for (uint32_t q = 0; q < plan->queues; q++) {
			if (cli_inbox_take(side, plan, q) < 0)
				return -1;
			taken += side->inbox[q].taken;
			bytes += side->inbox[q].bytes;
		}
	} while (taken < sent && cli_now() < end);
	if (taken == sent && bytes == sent * plan->size)
		return 0;
	return cli_fail(
		"verification: %llu messages with %llu bytes arrived, %llu of %llu bytes were sent",
		(unsigned long long)taken, (unsigned long long)bytes, (unsigned long long)sent,
		(unsigned long long)plan->size);
}
