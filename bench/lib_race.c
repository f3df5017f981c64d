/* SPDX-License-Identifier: MIT */
#include "lib_race.h"

#define MAX_SLICES 1000
#define WARM_NS    50000000u

void bench_calibrate(struct bench_way *way, uint64_t first, uint64_t most, uint64_t slice_ns)
{
	uint64_t start = bench_now();

	for (way->n = first; way->n < most; way->n *= 2) {
		double best = way->slice(way);

		/* The best of some runs counts: others may be using the cores. */
		for (int i = 0; i < 4; i++) {
			double again = way->slice(way);

			best = again < best ? again : best;
		}
		if (best * (double)way->n >= (double)slice_ns / 2)
			break;
	}
	while (bench_now() - start < WARM_NS)
		way->slice(way);
}

void bench_race(const struct bench_options *opt, struct bench_way *const *ways)
{
	static double slices[BENCH_MAX_WAYS][MAX_SLICES];

	if (opt->count > BENCH_MAX_WAYS || opt->slices > MAX_SLICES)
		bench_die("%d ways and %u slices, %d and %d are possible", opt->count, opt->slices,
			  BENCH_MAX_WAYS, MAX_SLICES);
	for (unsigned r = 0; r < opt->rounds; r++) {
		for (unsigned s = 0; s < opt->slices; s++)
			for (int w = 0; w < opt->count; w++)
				slices[w][s] = ways[w]->slice(ways[w]);
		for (int w = 0; w < opt->count; w++)
			bench_emit(opt, ways[w]->name, "ns", r, slices[w], opt->slices);
	}
}
