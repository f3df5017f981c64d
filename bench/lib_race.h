/* SPDX-License-Identifier: MIT */
/*
 * Ways of doing the same thing, measured in turn, slice by slice: what disturbs one of them
 * disturbs the others as much.
 */
#ifndef BENCH_LIB_RACE_H
#define BENCH_LIB_RACE_H

#include <stdint.h>

#include "lib.h"

#define BENCH_MAX_WAYS 5

/* The head of a program's own struct. */
struct bench_way {
	const char *name;
	double (*slice)(struct bench_way *way); /* does it n times: nanoseconds for one */
	uint64_t n;
};

/* Warms up, and finds the n (from first on, times two, at most most) with which a slice takes about
 * slice_ns. */
void bench_calibrate(struct bench_way *way, uint64_t first, uint64_t most, uint64_t slice_ns);

/* All rounds of all ways; a line each for the medians of a round. Dies when there are too many ways
 * or slices. */
void bench_race(const struct bench_options *opt, struct bench_way *const *ways);

#endif
