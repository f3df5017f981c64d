/* SPDX-License-Identifier: MIT */
/*
 * memory: resident bytes and threads that objects cost, as the kernel counts them in
 * smaps_rollup (Rss; pages of shared memfds count whole), and as malloc does.
 */
#include "lib.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES   1000
#define IMPORTS  1000
#define DEPTH    64
#define LONG_LEN (8u << 20)

/* Bytes of a field of smaps_rollup. */
static double rollup(const char *field)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib, found = 0;
	char line[128], name[32];

	if (!f)
		bench_die("no smaps_rollup");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%31[^:]: %lu kB", name, &kib) == 2 && strcmp(name, field) == 0)
			found = kib;
	fclose(f);
	return (double)found * 1024;
}

static unsigned threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(tasks)))
		n += entry->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static void write_n(struct bench_side *side, struct dma_queue *queue, uint64_t len, unsigned n)
{
	struct dma_seg remote = side->remote, local = *side->seg;

	remote.len = local.len = len;
	for (unsigned i = 0; i < n; i++)
		if (dma_write(queue, &remote, &local) != DMA_STATUS_OK)
			bench_die("dma_write");
	bench_take(queue, n);
}

/* Contexts without peers: the first brings the engine to life, the others show what one is. */
static void contexts(const struct bench_options *opt, struct dma_device *device)
{
	struct dma_context *ctx[9];
	double rss = rollup("Rss"), pss = rollup("Pss"), after;

	ctx[0] = dma_create_context(device);
	after = rollup("Rss");
	bench_emit_value(opt, "first_context", "bytes", 0, after - rss);
	bench_emit_value(opt, "first_context_pss", "bytes", 0, rollup("Pss") - pss);
	bench_emit_value(opt, "threads_open", "", 0, threads());
	rss = rollup("Rss");
	for (int i = 1; i < 9; i++)
		ctx[i] = dma_create_context(device);
	bench_emit_value(opt, "context", "bytes", 0, (rollup("Rss") - rss) / 8);
	for (int i = 0; i < 9; i++) {
		if (!ctx[i])
			bench_die("context %d", i);
		dma_delete_context(ctx[i]);
	}
}

static void queues(const struct bench_options *opt, struct bench_side *side)
{
	struct queue_cfg cfg = { .queue_depth = DEPTH, .rmt_eid = side->list[0].attr.eid };
	static struct dma_queue *queue[QUEUES];
	double rss = rollup("Rss");

	for (int i = 0; i < QUEUES; i++) {
		queue[i] = dma_alloc_queue(side->ctx, &cfg);
		if (!queue[i])
			bench_die("queue %d", i);
	}
	bench_emit_value(opt, "queue", "bytes", 0, (rollup("Rss") - rss) / QUEUES);
	for (int i = 0; i < QUEUES; i++)
		write_n(side, queue[i], 8, DEPTH);
	bench_emit_value(opt, "queue_used", "bytes", 0, (rollup("Rss") - rss) / QUEUES);
	for (int i = 0; i < QUEUES; i++)
		dma_free_queue(queue[i]);
}

static void imports(const struct bench_options *opt, const struct bench_side *side)
{
	struct dma_seg_cfg cfg = { .addr = side->remote.sva, .len = 8, .tid = side->remote.tid };
	static struct dma_seg *seg[IMPORTS];
	double before = (double)mallinfo2().uordblks;

	for (int i = 0; i < IMPORTS; i++)
		seg[i] = dma_import_seg(&cfg);
	bench_emit_value(opt, "import", "bytes", 0,
			 ((double)mallinfo2().uordblks - before) / IMPORTS);
	bench_emit_value(opt, "import_struct", "bytes", 0, sizeof(struct dma_seg));
	for (int i = 0; i < IMPORTS; i++)
		dma_unimport_seg(seg[i]);
}

int main(int argc, char **argv)
{
	struct bench_side side = { .memory = BENCH_ALLOC, .len = LONG_LEN };
	struct bench_options opt;
	uint32_t count;
	double rss;

	bench_options(argc, argv, &opt);
	if (bench_fork(&side)) {
		bench_open(&side, 1);
		bench_owner(&side);
	}
	side.list = dma_get_device_list(&count);
	if (!side.list || !count)
		bench_die("no device");
	contexts(&opt, side.list);
	dma_free_device_list(side.list, count);

	bench_open(&side, DEPTH);
	bench_fill(side.base, side.len, 7);
	rss = rollup("Rss");
	write_n(&side, side.queue, 8, 1);
	bench_emit_value(&opt, "link", "bytes", 0, rollup("Rss") - rss);
	bench_emit_value(&opt, "threads_linked", "", 0, threads());
	queues(&opt, &side);
	imports(&opt, &side);
	write_n(&side, side.queue, LONG_LEN, 1);
	bench_emit_value(&opt, "threads_long", "", 0, threads());
	bench_verify(&side, LONG_LEN, 7);
	bench_close(&side);
	return 0;
}
