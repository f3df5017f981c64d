/* SPDX-License-Identifier: MIT */
/*
 * peers: 1,000 peers against one owner over TCP. Nanoseconds of an 8-byte write, posted and polled,
 *
 *   one      to an owner that nobody else is connected to
 *   many     to an owner that 1,000 are connected to, by one of them
 *   round    to the same, by each of them in turn
 *
 * slice by slice; and the resident bytes that an idle peer costs the owner (memory).
 */
#include "lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define COUNT      1000u
#define MAX_SLICES 1000
#define VISITS     400u /* writes in a slice */

/* One of the peers. */
struct peer {
	struct dma_context *ctx;
	struct dma_queue *queue;
	struct dma_seg *seg;
	uint64_t word;
};

static struct bench_options opt;
static struct bench_side alone, crowd; /* the owners that have one peer, and many */
static struct peer peers[COUNT];

static void write_once(struct peer *p, const struct bench_side *to)
{
	struct dma_seg remote = to->remote;

	remote.len = 8;
	if (dma_write(p->queue, &remote, p->seg) != DMA_STATUS_OK)
		bench_die("dma_write");
	bench_take(p->queue, 1);
}

/* A peer of `to`, with a context of its own. */
static void open_peer(struct peer *p, struct bench_side *to)
{
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)&p->word, .len = 8 };
	struct queue_cfg queue = { .queue_depth = 16, .rmt_eid = to->list[to->device].attr.eid };

	p->ctx = dma_create_context(&to->list[to->device]);
	p->seg = p->ctx ? dma_register_seg(p->ctx, &cfg) : NULL;
	p->queue = p->seg ? dma_alloc_queue(p->ctx, &queue) : NULL;
	if (!p->queue)
		bench_die("no peer");
	write_once(p, to);
}

static void close_peer(struct peer *p)
{
	dma_free_queue(p->queue);
	dma_unregister_seg(p->ctx, p->seg);
	dma_delete_context(p->ctx);
}

static double resident(int pid)
{
	char path[64], line[256];
	double kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %lf kB", &kib) == 1)
			break;
	if (!f || kib < 0)
		bench_die("no %s", path);
	fclose(f);
	return kib * 1024;
}

static double slice(struct peer *first, unsigned step, const struct bench_side *to)
{
	static unsigned next;
	uint64_t then = bench_now();

	for (unsigned i = 0; i < VISITS; i++) {
		write_once(&first[next % COUNT * step], to);
		next += step;
	}
	return (double)(bench_now() - then) / VISITS;
}

/* As many as we may have; the owners inherit it. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void measure(void)
{
	static double one[MAX_SLICES], many[MAX_SLICES], round[MAX_SLICES];
	struct peer single;
	double before;

	open_peer(&single, &alone);
	open_peer(&peers[0], &crowd);
	before = resident(crowd.pid);
	for (unsigned i = 1; i < COUNT; i++)
		open_peer(&peers[i], &crowd);
	bench_emit_value(&opt, "memory", "bytes", 0, (resident(crowd.pid) - before) / (COUNT - 1));
	bench_pin(0);
	for (unsigned i = 0; i < 3; i++) { /* warm up */
		slice(&single, 0, &alone);
		slice(peers, 0, &crowd);
		slice(peers, 1, &crowd);
	}
	for (unsigned r = 0; r < opt.rounds; r++) {
		for (unsigned s = 0; s < opt.slices; s++) {
			one[s] = slice(&single, 0, &alone);
			many[s] = slice(peers, 0, &crowd);
			round[s] = slice(peers, 1, &crowd);
		}
		bench_emit(&opt, "one", "ns", r, one, opt.slices);
		bench_emit(&opt, "many", "ns", r, many, opt.slices);
		bench_emit(&opt, "round", "ns", r, round, opt.slices);
	}
	fprintf(stderr, "  %s: %u peers, %u cores\n", opt.series, COUNT, bench_cores());
	close_peer(&single);
	for (unsigned i = 0; i < COUNT; i++)
		close_peer(&peers[i]);
}

static void start_owner(struct bench_side *side)
{
	side->memory = BENCH_MALLOC;
	side->len = 8;
	if (bench_fork(side)) {
		bench_pin(1); /* its agent inherits it */
		bench_open(side, 1);
		bench_owner(side);
	}
}

int main(int argc, char **argv)
{
	bench_options(argc, argv, &opt);
	if (opt.slices > MAX_SLICES)
		bench_die("at most %d slices", MAX_SLICES);
	allow_descriptors();
	setenv("XTAL_PATHS", "tcp", 1);
	if (getenv("BENCH_TO")) { /* an address of this host, but for which there is TLS */
		setenv("XTAL_DEVICES", getenv("BENCH_TO"), 1);
		alone.device = crowd.device = 1;
	}
	start_owner(&alone);
	start_owner(&crowd);
	bench_open(&alone, 1);
	bench_open(&crowd, 1);
	measure();
	bench_close(&crowd);
	bench_close(&alone);
	return 0;
}
