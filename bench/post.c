/* SPDX-License-Identifier: MIT */
/*
 * post: how long dma_write() of --size bytes takes to return, one sample per post, the queue
 * empty before each. The clock's own cost is part of the figure.
 */
#include "lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POSTS 100

int main(int argc, char **argv)
{
	struct bench_options opt;
	struct bench_side side = { .memory = BENCH_ALLOC };
	struct dma_seg remote, local;
	static double ns[POSTS];
	char path[16];

	bench_options(argc, argv, &opt);
	side.len = opt.size;
	if (bench_fork(&side)) {
		bench_open(&side, 1);
		bench_owner(&side);
	}
	bench_open(&side, 16);
	bench_path(&side, path);
	local = *side.seg;
	remote = side.remote;
	bench_fill(side.base, opt.size, 3);
	for (unsigned r = 0; r <= opt.rounds; r++) { /* the first one warms up */
		for (unsigned i = 0; i < POSTS; i++) {
			uint64_t then = bench_now();
			dma_status status = dma_write(side.queue, &remote, &local);

			ns[i] = (double)(bench_now() - then);
			if (status != DMA_STATUS_OK)
				bench_die("dma_write");
			bench_take(side.queue, 1);
		}
		if (r == 0) {
			bench_pin(0); /* now that the workers run, anywhere they like */
			continue;
		}
		bench_emit(&opt, "median", "ns", r - 1, ns, POSTS);
		bench_emit_value(&opt, "p99", "ns", r - 1, bench_percentile(ns, POSTS, 99));
	}
	bench_verify(&side, opt.size, 3);
	fprintf(stderr, "  %s: %llu bytes, path %s, %u cores\n", opt.series,
		(unsigned long long)opt.size, path, bench_cores());
	bench_close(&side);
	return 0;
}
