/* SPDX-License-Identifier: MIT */
/*
 * stream WAY...: nanoseconds per operation of one process that moves bytes into the memory of
 * another, which sleeps. Ways, measured in turn, slice by slice:
 *
 *   xtal     dma_write() (or --op faa) in batches, all completions taken before the next batch
 *   memcpy   into the same pages through the process' own mapping (--memory shared)
 *   vm       process_vm_writev() of the same bytes to the same process
 */
#include "lib_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define MAX_WAYS 4
#define MOST     (1u << 30)
#define SLICE_NS 2000000u /* below a scheduler's tick: most slices are left alone */

static struct bench_options opt;
static struct bench_side side;
static char *source;
static struct dma_seg *source_seg;

static void by_memcpy(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		memcpy(side.shared, source, opt.size);
		__asm__ volatile("" ::: "memory"); /* all of them, please */
	}
}

static void by_vm(uint64_t n)
{
	struct iovec from = { source, opt.size },
		     to = { (void *)(uintptr_t)side.remote.sva, opt.size };

	for (uint64_t i = 0; i < n; i++)
		if (process_vm_writev(side.pid, &from, 1, &to, 1, 0) != (ssize_t)opt.size)
			bench_die("process_vm_writev");
}

static void by_xtal(uint64_t n)
{
	struct dma_seg local = *source_seg, remote = side.remote;
	uint32_t batch = (uint32_t)opt.batch;

	local.len = remote.len = opt.size;
	for (uint64_t i = 0; i < n; i += batch) {
		for (uint32_t k = 0; k < batch; k++)
			if (dma_write(side.queue, &remote, &local) != DMA_STATUS_OK)
				bench_die("dma_write");
		bench_take(side.queue, batch);
	}
}

static void by_faa(uint64_t n)
{
	struct dma_seg local = *source_seg, remote = side.remote;
	uint32_t batch = (uint32_t)opt.batch;

	local.len = remote.len = 8;
	for (uint64_t i = 0; i < n; i += batch) {
		for (uint32_t k = 0; k < batch; k++)
			if (dma_faa(side.queue, &remote, &local, 1) != DMA_STATUS_OK)
				bench_die("dma_faa");
		bench_take(side.queue, batch);
	}
}

struct way {
	struct bench_way race;
	void (*run)(uint64_t n);
};

static double slice(struct bench_way *race)
{
	uint64_t then = bench_now();

	((struct way *)race)->run(race->n);
	return (double)(bench_now() - then) / (double)race->n;
}

static struct way way_of(const char *name)
{
	if (strcmp(name, "memcpy") == 0 && opt.memory == BENCH_SHARED)
		return (struct way){ { name, slice, 0 }, by_memcpy };
	if (strcmp(name, "vm") == 0)
		return (struct way){ { name, slice, 0 }, by_vm };
	if (strcmp(name, "xtal") == 0)
		return (struct way){ { name, slice, 0 }, strcmp(opt.op, "faa") ? by_xtal : by_faa };
	bench_die("no way called %s with this memory", name);
}

static void check(const struct way *way)
{
	uint64_t old = 0;

	if (way->run == by_faa) {
		memcpy(&old, source, 8);
		by_faa(opt.batch);
		if (*(uint64_t *)(void *)source != old + opt.batch)
			bench_die("additions were lost");
		return;
	}
	bench_fill(source, opt.size, way->race.n);
	way->run(opt.batch);
	bench_verify(&side, opt.size, way->race.n);
}

static void initiate(void)
{
	struct way way[MAX_WAYS];
	struct bench_way *race[MAX_WAYS];
	struct dma_seg_cfg cfg = { .len = opt.size };
	char path[16];

	source = aligned_alloc(256, (opt.size + 4095) & ~(uint64_t)4095);
	cfg.addr = (uintptr_t)source;
	memset(source, 1, opt.size);
	source_seg = dma_register_seg(side.ctx, &cfg);
	if (!source_seg || opt.count > MAX_WAYS)
		bench_die("no segment, or too much asked for");
	bench_path(&side, path);
	for (int w = 0; w < opt.count; w++) {
		way[w] = way_of(opt.words[w]);
		race[w] = &way[w].race;
		/* Also starts the workers, which may run anywhere. */
		bench_calibrate(race[w],
				way[w].run == by_xtal || way[w].run == by_faa ? opt.batch : 1, MOST,
				SLICE_NS);
	}
	bench_pin(0);
	bench_race(&opt, race);
	for (int w = 0; w < opt.count; w++)
		check(&way[w]);
	fprintf(stderr, "  %s: %llu bytes, path %s, %u cores\n", opt.series,
		(unsigned long long)opt.size, path, bench_cores());
	dma_unregister_seg(side.ctx, source_seg);
}

int main(int argc, char **argv)
{
	bench_options(argc, argv, &opt);
	side.memory = (enum bench_memory)opt.memory;
	side.len = opt.size;
	if (side.memory == BENCH_SHARED)
		side.shared = bench_shared(side.len);
	if (bench_fork(&side)) {
		bench_open(&side, 1);
		bench_owner(&side);
	}
	bench_open(&side, opt.batch < 64 ? 64 : (uint32_t)opt.batch);
	initiate();
	bench_close(&side);
	return 0;
}
