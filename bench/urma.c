/* SPDX-License-Identifier: MIT */
/*
 * urma WAY...: nanoseconds per operation of --size bytes that one process posts to another, --batch
 * of them outstanding. --op write, read (the other sleeps) or send (the other polls, and posts its
 * receives again). Ways, measured in turn, slice by slice:
 *
 *   urma     through a jetty
 *   cdma     dma_write() or dma_read() from and to the same memory
 *
 * The path is chosen by --memory and XTAL_PATHS.
 */
#include "lib_race.h"
#include "lib_urma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAYS 2
#define MOST     (1u << 30)
#define SLICE_NS 2000000u
#define RECEIVES 256u /* fewer when they are long */

static struct bench_options opt;
static struct bench_side side;
static struct bench_urma urma;
static struct bench_urma_request request;
static urma_opcode_t opcode;
static uint32_t receives;
static char *source;
static struct dma_seg *source_seg;

/* Of the receiver, in shared memory: 1 while it shall poll, 2 when it shall end. */
static _Atomic uint64_t *control;

static void by_urma(uint64_t n)
{
	uint64_t posted = 0, taken = 0;
	urma_jfs_wr_t *bad;

	while (taken < n) {
		for (; posted < n && posted - taken < opt.batch; posted++)
			if (urma_post_jetty_send_wr(urma.jetty, &request.wr, &bad))
				bench_die("urma_post_jetty_send_wr");
		taken += bench_urma_poll(urma.jfc, (uint32_t)(posted - taken));
	}
}

static void by_cdma(uint64_t n)
{
	struct dma_seg local = *source_seg, remote = side.remote;
	uint64_t posted = 0, taken = 0;
	struct dma_cr cr[16];

	local.len = remote.len = opt.size;
	while (taken < n) {
		int got;

		for (; posted < n && posted - taken < opt.batch; posted++)
			if ((opcode == URMA_OPC_READ
				     ? dma_read(side.queue, &remote, &local)
				     : dma_write(side.queue, &remote, &local)) != DMA_STATUS_OK)
				bench_die("post");
		got = dma_poll_queue(side.queue,
				     posted - taken < 16 ? (uint32_t)(posted - taken) : 16, cr);
		for (int i = 0; i < got; i++)
			if (cr[i].status != DMA_CR_SUCCESS)
				bench_bad_completion(&cr[i]);
		taken += got > 0 ? (uint64_t)got : 0;
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
	if (strcmp(name, "urma") == 0)
		return (struct way){ { name, slice, 0 }, by_urma };
	if (strcmp(name, "cdma") == 0 && opcode != URMA_OPC_SEND)
		return (struct way){ { name, slice, 0 }, by_cdma };
	bench_die("no way called %s for this operation", name);
}

/* The bytes are there, wherever they belong. */
static void check(const struct way *way)
{
	if (opcode == URMA_OPC_READ) {
		memset(source, 0, opt.size);
		way->run(1);
		bench_fill(side.base, opt.size, 7); /* what the owner's memory holds, too */
		if (memcmp(source, side.base, opt.size) != 0)
			bench_die("what was read is wrong");
		return;
	}
	bench_fill(source, opt.size, way->race.n);
	way->run(opcode == URMA_OPC_SEND ? receives : opt.batch); /* every buffer */
	if (opcode == URMA_OPC_WRITE)
		bench_verify(&side, opt.size, way->race.n);
}

static void measure(void)
{
	struct way way[MAX_WAYS];
	struct bench_way *race[MAX_WAYS];
	char path[16];

	bench_path(&side, path);
	for (int w = 0; w < opt.count; w++) {
		way[w] = way_of(opt.words[w]);
		race[w] = &way[w].race;
		bench_calibrate(race[w], opt.batch, MOST, SLICE_NS);
	}
	bench_pin(0);
	bench_race(&opt, race);
	for (int w = 0; w < opt.count; w++)
		check(&way[w]);
	atomic_store(control, 1);
	if (opcode == URMA_OPC_SEND)
		bench_verify(&side, opt.size, way[0].race.n);
	fprintf(stderr, "  %s: %llu bytes, path %s, %u cores\n", opt.series,
		(unsigned long long)opt.size, path, bench_cores());
}

/* Messages go to the receives in turn, each to its own part of the memory. */
static void receive(void)
{
	uint32_t next = 0, span = (uint32_t)opt.size;

	bench_pin(1);
	for (uint32_t i = 0; i < receives; i++)
		bench_urma_receive(&urma, side.base + (uint64_t)i * span, span);
	bench_tell(&side, "r", 1);
	while (!atomic_load_explicit(control, memory_order_relaxed)) {
		uint32_t got = bench_urma_poll(urma.rjfc, 16);

		for (; got; got--) {
			bench_urma_receive(&urma, side.base + (uint64_t)next * span, span);
			next = (next + 1) % receives;
		}
		if (bench_cores() == 1)
			sched_yield();
	}
}

static void own(void)
{
	bench_fill(side.base, opt.size, 7);
	if (opcode == URMA_OPC_SEND)
		receive();
	bench_serve(&side);
	bench_urma_close(&urma);
	bench_close(&side);
}

static urma_opcode_t opcode_of(const char *name)
{
	if (strcmp(name, "write") == 0)
		return URMA_OPC_WRITE;
	if (strcmp(name, "read") == 0)
		return URMA_OPC_READ;
	if (strcmp(name, "send") == 0)
		return URMA_OPC_SEND;
	bench_die("no operation called %s", name);
}

int main(int argc, char **argv)
{
	struct dma_seg_cfg cfg = { 0 };
	bool owner;

	bench_options(argc, argv, &opt);
	opcode = opcode_of(opt.op);
	receives = opt.size > 16384 ? RECEIVES / 8 : RECEIVES;
	if (opt.count > MAX_WAYS || opt.batch > receives)
		bench_die("too much asked for");
	side.memory = (enum bench_memory)opt.memory;
	side.len = opt.size * (opcode == URMA_OPC_SEND ? receives : 1);
	if (side.memory == BENCH_SHARED)
		side.shared = bench_shared(side.len);
	control = (_Atomic uint64_t *)(void *)bench_shared(4096);
	owner = bench_fork(&side);
	bench_open(&side, RECEIVES);
	bench_urma_open(&urma, &side, RECEIVES);
	if (owner)
		own();
	source = aligned_alloc(256, (opt.size + 4095) & ~(uint64_t)4095);
	memset(source, 1, opt.size);
	cfg.addr = (uintptr_t)source;
	cfg.len = opt.size;
	source_seg = dma_register_seg(side.ctx, &cfg);
	bench_urma_source(&urma, source, opt.size);
	bench_urma_request(&request, &urma, opcode, source, (uint32_t)opt.size);
	if (opcode == URMA_OPC_SEND)
		bench_hear(&side, &(char){ 0 }, 1);
	measure();
	dma_unregister_seg(side.ctx, source_seg);
	bench_urma_close(&urma);
	bench_close(&side);
	return 0;
}
