/* SPDX-License-Identifier: MIT */
/*
 * latency WAY...: half the round trip of a message between two processes that each spin on
 * their own memory for the other's number, the last word of the message. Ways, measured in
 * turn, slice by slice:
 *
 *   raw      store-release of 8 bytes into a shared page
 *   memcpy   memcpy into shared pages, then store-release of the last word
 *   vm       process_vm_writev() to the other process
 *   xtal     dma_write(); the completion is taken before the next wait (perftest's order)
 *   strict   the same, but the completion is left until the answer is there
 */
#include "lib_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_WAYS 5
#define MOST     (1u << 24)
#define SLICE_NS 2000000u
#define LINE     128 /* two cache lines: neighbours are fetched in pairs */

enum kind {
	RAW,
	MEMCPY,
	VM,
	XTAL,
	STRICT
};
static const char *const names[] = { "raw", "memcpy", "vm", "xtal", "strict" };

/* One process' end of one way. */
struct way {
	struct bench_way race; /* n: round trips in a slice */
	enum kind kind;
	int index;
	char *to, *from; /* the message goes from here to there (there: RAW, MEMCPY, VM) */
	_Atomic uint64_t *awaited, *number; /* last words of what arrives and of what leaves */
	struct dma_seg local, remote;
	uint64_t seq, left; /* completions not yet taken */
};

static struct bench_options opt;
static struct bench_side side;
static uint64_t span; /* distance of two messages */
static char *shared;  /* for each way: control line, A's inbox, B's inbox */
static bool alone;

static _Atomic uint64_t *control(void)
{
	return (_Atomic uint64_t *)(void *)shared; /* index of the way in use, or MAX_WAYS */
}

static inline void send_message(struct way *way)
{
	struct iovec mine = { way->from, opt.size }, theirs = { way->to, opt.size };
	uint64_t number = ++way->seq;

	switch (way->kind) {
	case RAW:
		atomic_store_explicit((_Atomic uint64_t *)(void *)way->to, number,
				      memory_order_release);
		return;
	case MEMCPY:
		memcpy(way->to, way->from, opt.size - 8);
		atomic_store_explicit((_Atomic uint64_t *)(void *)(way->to + opt.size - 8), number,
				      memory_order_release);
		return;
	case VM:
		atomic_store_explicit(way->number, number, memory_order_relaxed);
		if (process_vm_writev(side.pid ? side.pid : getppid(), &mine, 1, &theirs, 1, 0) !=
		    (ssize_t)opt.size)
			bench_die("process_vm_writev");
		return;
	case STRICT:
		bench_take(side.queue, way->left);
		way->left = 0;
		/* fall through */
	case XTAL:
		atomic_store_explicit(way->number, number, memory_order_relaxed);
		if (dma_write(side.queue, &way->remote, &way->local) != DMA_STATUS_OK)
			bench_die("dma_write");
		if (way->kind == XTAL)
			bench_take(side.queue, 1);
		else
			way->left = 1;
		return;
	}
}

/* False: the other side has gone on to another way. */
static inline bool arrived(struct way *way, uint64_t number, uint64_t w)
{
	for (unsigned spins = 1;; spins++) {
		if (atomic_load_explicit(way->awaited, memory_order_acquire) == number)
			return true;
		if (alone)
			sched_yield();
		else
			bench_relax();
		if (spins % 256 == 0 && atomic_load_explicit(control(), memory_order_relaxed) != w)
			return false;
	}
}

static void ping(struct way *way, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		send_message(way);
		arrived(way, way->seq, (uint64_t)way->index);
	}
}

static void pong(struct way *way)
{
	uint64_t w;

	while ((w = atomic_load(control())) != MAX_WAYS)
		while (arrived(&way[w], way[w].seq + 1, w))
			send_message(&way[w]);
}

static double slice(struct bench_way *race)
{
	struct way *way = (struct way *)race;
	uint64_t then;

	atomic_store(control(), (uint64_t)way->index);
	ping(way, 16); /* the other side has found its way */
	then = bench_now();
	ping(way, race->n);
	return (double)(bench_now() - then) / (double)race->n / 2;
}

static void prepare(struct way *way, int w, enum kind kind, bool first)
{
	uint64_t at = (uint64_t)w * 2 * span;
	char *in = side.base + at, *last;

	*way = (struct way){ .race = { names[kind], slice, 0 },
			     .kind = kind,
			     .index = w,
			     .from = in + span,
			     .remote = side.remote,
			     .local = *side.seg };
	way->remote.sva += at;
	way->local.sva += at + span;
	way->remote.len = way->local.len = opt.size;
	way->to = (char *)(uintptr_t)way->remote.sva;
	if (kind == RAW || kind == MEMCPY) {
		in = shared + LINE + at + (first ? 0 : span);
		way->to = shared + LINE + at + (first ? span : 0);
	}
	last = in + opt.size - 8;
	way->awaited = (_Atomic uint64_t *)(void *)last;
	way->number = (_Atomic uint64_t *)(void *)(way->from + opt.size - 8);
	bench_fill(way->from, opt.size - 8, 1);
}

static void check(const struct way *way)
{
	char *body = malloc(opt.size), *in = (char *)way->awaited - (opt.size - 8);

	bench_fill(body, opt.size - 8, 1);
	if (atomic_load(way->awaited) != way->seq || memcmp(in, body, opt.size - 8) != 0)
		if (way->kind != RAW || atomic_load(way->awaited) != way->seq)
			bench_die("%s: what arrived is not what was sent", names[way->kind]);
	free(body);
}

static void measure(struct way *way)
{
	struct bench_way *race[MAX_WAYS];
	char path[16];

	bench_path(&side, path);
	for (int w = 0; w < opt.count; w++) {
		race[w] = &way[w].race;
		bench_calibrate(race[w], 16, MOST, SLICE_NS / 2); /* there and back */
	}
	bench_race(&opt, race);
	atomic_store(control(), MAX_WAYS);
	fprintf(stderr, "  %s: %llu bytes, path %s, %u cores\n", opt.series,
		(unsigned long long)opt.size, path, bench_cores());
}

static enum kind kind_of(const char *name)
{
	for (int i = 0; i <= STRICT; i++)
		if (strcmp(names[i], name) == 0 && (i != RAW || opt.size == 8))
			return (enum kind)i;
	bench_die("no way called %s for %llu bytes", name, (unsigned long long)opt.size);
}

int main(int argc, char **argv)
{
	struct way way[MAX_WAYS];
	bool child;

	bench_options(argc, argv, &opt);
	if (opt.size < 8 || opt.size % 8 || opt.count > MAX_WAYS)
		bench_die("sizes are multiples of 8; up to %d ways", MAX_WAYS);
	alone = bench_cores() == 1;
	span = (opt.size + LINE - 1) / LINE * LINE;
	side.memory = (enum bench_memory)opt.memory;
	side.len = MAX_WAYS * 2 * span;
	shared = bench_shared(LINE + side.len);
	atomic_store(control(), 0);
	child = bench_fork(&side);
	bench_pin(child);
	bench_open(&side, 16);
	for (int w = 0; w < opt.count; w++)
		prepare(&way[w], w, kind_of(opt.words[w]), !child);
	bench_tell(&side, "r", 1); /* ready */
	bench_hear(&side, &(char){ 0 }, 1);
	if (child)
		pong(way);
	else
		measure(way);
	for (int w = 0; w < opt.count; w++) {
		if (way[w].left)
			bench_take(side.queue, way[w].left);
		check(&way[w]);
	}
	bench_close(&side);
	return 0;
}
