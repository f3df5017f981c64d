/* SPDX-License-Identifier: MIT */
/* Draws the bar ten times a second, from the second second on. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define WIDTH 40

void cli_progress_start(struct cli_progress *p, const char *what, uint64_t now)
{
	p->what = what;
	p->drawn = false;
	p->next = isatty(STDERR_FILENO) ? now + 1000000000u : UINT64_MAX;
}

void cli_progress_draw(struct cli_progress *p, double share)
{
	char bar[WIDTH + 1];
	int filled = (int)((share > 1 ? 1 : share) * WIDTH);

	memset(bar, '.', WIDTH);
	memset(bar, '#', (size_t)filled);
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r%s [%s] %3d %%", p->what, bar, (int)((share > 1 ? 1 : share) * 100));
	p->drawn = true;
	p->next = cli_now() + 100000000u;
}

void cli_progress_end(struct cli_progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
}
