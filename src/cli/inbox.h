/* SPDX-License-Identifier: MIT */
/* The receives of a side: kept posted while the other side sends, each into the place in the queue's
 * lane that a write with its number would go to. */
#ifndef XTAL_CLI_INBOX_H
#define XTAL_CLI_INBOX_H

#include "cli/side.h"

/* How many receives a queue has posted at once in a test. 0: the test has no messages. */
uint32_t cli_inbox_depth(const struct cli_plan *plan);

/* Before a run: withdraws what is left of an earlier one, and posts the first ones. */
int cli_inbox_fill(struct cli_side *side, const struct cli_plan *plan);
/* Takes what has arrived on a queue, and posts as many receives again. How many, or -1. */
int cli_inbox_take(struct cli_side *side, const struct cli_plan *plan, uint32_t queue);
/* Does so on all queues until a message waits in the conversation. */
int cli_inbox_serve(struct cli_side *side, const struct cli_plan *plan);
/* After the other side has told that it sent so many: until all have arrived, with all bytes. */
int cli_inbox_finish(struct cli_side *side, const struct cli_plan *plan, uint64_t sent);

#endif
