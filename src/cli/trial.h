/* SPDX-License-Identifier: MIT */
/* Does a peer's memory work? Bytes go there and come back, and a small write is timed. */
#ifndef XTAL_CLI_TRIAL_H
#define XTAL_CLI_TRIAL_H

#include <stdbool.h>

#include "cli/port.h"

#define CLI_TRIAL_BYTES 65536u /* of the target's memory; it must have as many */

struct cli_trial {
	bool works;
	char problem[512];          /* why not */
	struct xtal_path_info path; /* as the engine tells it */
	uint64_t write_ns;          /* an 8-byte write, posted to completed; median */
};

/* scratch: at least two times CLI_TRIAL_BYTES of ours that are not the target. */
void cli_try(struct cli_port *port, struct cli_region *scratch,
	     const struct xtal_descriptor *target, struct cli_trial *out);

#endif
