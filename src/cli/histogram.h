/* SPDX-License-Identifier: MIT */
/*
 * Durations, counted: exact to the nanosecond below 4096 ns and to 1/2048 above, in constant
 * memory however long a test runs.
 */
#ifndef XTAL_CLI_HISTOGRAM_H
#define XTAL_CLI_HISTOGRAM_H

#include <stdint.h>

#define CLI_HISTOGRAM_STEPS 2048u                       /* buckets per power of two */
#define CLI_HISTOGRAM_SIZE  (30u * CLI_HISTOGRAM_STEPS) /* up to 2^40 ns, 18 minutes */

struct cli_histogram {
	uint64_t count, sum, min, max;
	uint32_t bucket[CLI_HISTOGRAM_SIZE];
};

struct cli_histogram *cli_histogram_new(void);
void cli_histogram_free(struct cli_histogram *h);
void cli_histogram_reset(struct cli_histogram *h);

/* The smallest duration that at least this share (0 < share <= 1) of all lie at or below. */
uint64_t cli_histogram_quantile(const struct cli_histogram *h, double share);
uint64_t cli_histogram_average(const struct cli_histogram *h);

static inline uint32_t cli_histogram_index(uint64_t ns)
{
	unsigned shift;

	if (ns < 2 * CLI_HISTOGRAM_STEPS)
		return (uint32_t)ns;
	if (ns >> 40)
		return CLI_HISTOGRAM_SIZE - 1;
	shift = 52 - (unsigned)__builtin_clzll(ns); /* leaves STEPS <= ns >> shift < 2 STEPS */
	return shift * CLI_HISTOGRAM_STEPS + (uint32_t)(ns >> shift);
}

static inline void cli_histogram_add(struct cli_histogram *h, uint64_t ns)
{
	h->count++;
	h->sum += ns;
	if (ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->bucket[cli_histogram_index(ns)]++;
}

#endif
