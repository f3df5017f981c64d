/* SPDX-License-Identifier: MIT */
/* Reading a histogram of durations; filling it is inline in the header. */
#include "cli/histogram.h"

#include <stdlib.h>
#include <string.h>

void cli_histogram_reset(struct cli_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

struct cli_histogram *cli_histogram_new(void)
{
	struct cli_histogram *h = malloc(sizeof(*h));

	if (h)
		cli_histogram_reset(h); /* touches its pages before anything is timed */
	return h;
}

void cli_histogram_free(struct cli_histogram *h)
{
	free(h);
}

/* The largest duration that a bucket stands for. */
static uint64_t upper_end(uint32_t index)
{
	unsigned shift;

	if (index < 2 * CLI_HISTOGRAM_STEPS)
		return index;
	shift = index / CLI_HISTOGRAM_STEPS - 1;
	return ((uint64_t)(index - shift * CLI_HISTOGRAM_STEPS + 1) << shift) - 1;
}

uint64_t cli_histogram_quantile(const struct cli_histogram *h, double share)
{
	uint64_t seen = 0, want = (uint64_t)(share * (double)h->count);

	if (h->count == 0)
		return 0;
	if ((double)want < share * (double)h->count)
		want++;
	for (uint32_t i = 0; i < CLI_HISTOGRAM_SIZE; i++) {
		seen += h->bucket[i];
		if (seen >= want) {
			uint64_t ns = upper_end(i);

			return ns > h->max ? h->max : ns < h->min ? h->min : ns;
		}
	}
	return h->max;
}

uint64_t cli_histogram_average(const struct cli_histogram *h)
{
	return h->count ? (h->sum + h->count / 2) / h->count : 0;
}
