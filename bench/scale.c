/* SPDX-License-Identifier: MIT */
/*
 * scale: nanoseconds per 8-byte write, posted and polled, with 1,000 queues and 1,000 segments
 * (on both sides) against one queue and one segment, slice by slice. Both touch the same
 * memory in the same order, one page after the other; what differs is the engine's work.
 *
 *   many    queue i writes segment i; --batch writes are posted and polled, then comes i + 1
 *   one     the same addresses through one queue and one segment that covers them all
 */
#include "lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT      1000u
#define MAX_SLICES 1000
#define VISITS     (4 * COUNT) /* queues visited per slice */

static struct bench_options opt;
static struct bench_side side;
static struct dma_seg part[COUNT], local_part[COUNT]; /* the many */
static struct dma_queue *queue[COUNT];
static uint64_t stride;

static void write_many(uint32_t batch)
{
	for (unsigned v = 0; v < VISITS; v++) {
		unsigned i = v % COUNT;
		struct dma_seg remote = part[i], local = local_part[i];

		remote.len = local.len = 8;
		for (uint32_t k = 0; k < batch; k++)
			if (dma_write(queue[i], &remote, &local) != DMA_STATUS_OK)
				bench_die("dma_write");
		bench_take(queue[i], batch);
	}
}

static void write_one(uint32_t batch)
{
	struct dma_seg remote = side.remote, local = *side.seg;

	remote.len = local.len = 8;
	for (unsigned v = 0; v < VISITS; v++) {
		remote.sva = side.remote.sva + v % COUNT * stride;
		local.sva = side.seg->sva + v % COUNT * stride;
		for (uint32_t k = 0; k < batch; k++)
			if (dma_write(side.queue, &remote, &local) != DMA_STATUS_OK)
				bench_die("dma_write");
		bench_take(side.queue, batch);
	}
}

/* Both processes: 1,000 segments beside the one that covers them. */
static void make_parts(void)
{
	static struct dma_seg mine[COUNT];

	for (unsigned i = 0; i < COUNT; i++) {
		struct dma_seg_cfg cfg = { .addr = side.seg->sva + i * stride,
					   .len = stride,
					   .token_value = 1000 + i,
					   .token_value_valid = true };
		struct dma_seg *seg = dma_register_seg(side.ctx, &cfg);

		if (!seg)
			bench_die("segment %u", i);
		mine[i] = local_part[i] = *seg;
	}
	bench_tell(&side, mine, sizeof(mine));
	bench_hear(&side, part, sizeof(part));
}

static double slice(void (*run)(uint32_t batch))
{
	uint64_t then = bench_now();

	run((uint32_t)opt.batch);
	return (double)(bench_now() - then) / (double)(VISITS * opt.batch);
}

static void check(void (*run)(uint32_t batch), uint64_t seed)
{
	bench_fill(side.base, side.len, seed);
	run(1);
	/* Everything but the first 8 bytes of each page is the former pattern of the target. */
	bench_verify(&side, 8, seed);
}

static void initiate(void)
{
	struct queue_cfg cfg = { .queue_depth = 64, .rmt_eid = side.list[0].attr.eid };
	static double many[MAX_SLICES], one[MAX_SLICES];

	for (unsigned i = 0; i < COUNT; i++) {
		queue[i] = dma_alloc_queue(side.ctx, &cfg);
		if (!queue[i])
			bench_die("queue %u", i);
	}
	bench_pin(0);
	for (unsigned i = 0; i < 3; i++) { /* warm up */
		slice(write_many);
		slice(write_one);
	}
	for (unsigned r = 0; r < opt.rounds; r++) {
		for (unsigned s = 0; s < opt.slices; s++) {
			many[s] = slice(write_many);
			one[s] = slice(write_one);
		}
		bench_emit(&opt, "many", "ns", r, many, opt.slices);
		bench_emit(&opt, "one", "ns", r, one, opt.slices);
	}
	check(write_many, 5);
	check(write_one, 6);
	for (unsigned i = 0; i < COUNT; i++)
		dma_free_queue(queue[i]);
	fprintf(stderr, "  %s: %u queues and segments, batches of %llu, %u cores\n", opt.series,
		COUNT, (unsigned long long)opt.batch, bench_cores());
}

int main(int argc, char **argv)
{
	bench_options(argc, argv, &opt);
	stride = (uint64_t)sysconf(_SC_PAGESIZE);
	if (opt.slices > MAX_SLICES || opt.batch > 64)
		bench_die("at most %d slices, batches of 64", MAX_SLICES);
	side.len = COUNT * stride;
	if (bench_fork(&side)) {
		bench_open(&side, 1);
		make_parts();
		bench_owner(&side);
	}
	bench_open(&side, 64);
	make_parts();
	initiate();
	bench_close(&side);
	return 0;
}
