/* SPDX-License-Identifier: MIT */
/* A bar on a terminal's stderr for runs that last longer than a second; else nothing. */
#ifndef XTAL_CLI_PROGRESS_H
#define XTAL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
	uint64_t next; /* when to draw again; never, without a terminal */
	bool drawn;
	const char *what;
};

void cli_progress_start(struct cli_progress *p, const char *what, uint64_t now);
void cli_progress_draw(struct cli_progress *p, double share);
/* Wipes the bar. */
void cli_progress_end(struct cli_progress *p);

/* True when it was drawn: the time it took is not the test's. */
static inline bool cli_progress_tick(struct cli_progress *p, uint64_t now, uint64_t done,
				     uint64_t total)
{
	if (__builtin_expect(now < p->next, 1))
		return false;
	cli_progress_draw(p, (double)done / (double)(total ? total : 1));
	return true;
}

#endif
