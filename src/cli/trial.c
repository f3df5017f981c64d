/* SPDX-License-Identifier: MIT */
/* Trying a peer's memory, for `xtal info`. */
#include "cli/trial.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/histogram.h"
#include "cli/pattern.h"

#define TIMED_WRITES 1001u

static int time_writes(struct dma_queue *queue, struct cli_op *op, uint64_t *ns)
{
	struct cli_histogram *h = cli_histogram_new();
	int rc = 0;

	if (!h)
		return cli_fail("no memory");
	for (unsigned i = 0; i < TIMED_WRITES && rc == 0; i++) {
		uint64_t then = cli_now();

		rc = cli_run(queue, op);
		cli_histogram_add(h, cli_now() - then);
	}
	*ns = cli_histogram_quantile(h, 0.5);
	cli_histogram_free(h);
	return rc;
}

/* Writes a pattern to the target, reads it back into other memory, compares. */
static int move_bytes(struct dma_queue *queue, struct cli_region *scratch,
		      const struct xtal_descriptor *target, struct cli_trial *trial)
{
	struct dma_seg remote = cli_remote(target);
	struct cli_op write = {
		.code = CLI_WRITE,
		.local = cli_part(scratch->seg, 0, CLI_TRIAL_BYTES),
		.remote = cli_part(&remote, 0, CLI_TRIAL_BYTES),
	};
	struct cli_op read = {
		.code = CLI_READ,
		.local = cli_part(scratch->seg, CLI_TRIAL_BYTES, CLI_TRIAL_BYTES),
		.remote = write.remote,
	};
	size_t bad, first = 0;

	cli_pattern_fill(scratch->base, CLI_TRIAL_BYTES, target->va, 0);
	memset(scratch->base + CLI_TRIAL_BYTES, 0, CLI_TRIAL_BYTES);
	if (cli_run(queue, &write) || cli_run(queue, &read))
		return -1;
	bad = cli_pattern_check(scratch->base + CLI_TRIAL_BYTES, CLI_TRIAL_BYTES, target->va, 0,
				&first);
	if (bad)
		return cli_fail("%zu of %u bytes came back wrong, the first at offset %zu", bad,
				CLI_TRIAL_BYTES, first);
	write.local.len = write.remote.len = 8;
	return time_writes(queue, &write, &trial->write_ns);
}

void cli_try(struct cli_port *port, struct cli_region *scratch,
	     const struct xtal_descriptor *target, struct cli_trial *out)
{
	struct dma_queue *queue = cli_queue_make(port, target, 16);

	*out = (struct cli_trial){ 0 };
	if (queue) {
		out->works = move_bytes(queue, scratch, target, out) == 0;
		if (!out->works)
			snprintf(out->problem, sizeof(out->problem), "%s", cli_reason());
		if (xtal_path_query(queue, target, -1, &out->path) && out->works) {
			out->works = false;
			snprintf(out->problem, sizeof(out->problem), "no answer about the path: %s",
				 xtal_last_error());
		}
	} else {
		snprintf(out->problem, sizeof(out->problem), "%s", cli_reason());
	}
	dma_free_queue(queue);
}
