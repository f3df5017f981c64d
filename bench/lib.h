/* SPDX-License-Identifier: MIT */
/*
 * What the measurements share: placing processes on cores, time, medians, output, and a pair
 * of processes with a CDMA segment and queue each. Nothing here runs inside a timed section,
 * but for the small inline functions at the end.
 */
#ifndef BENCH_LIB_H
#define BENCH_LIB_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cdma_u_lib.h>
#include <xtal.h>

/* Command line of every measurement: --rounds N --slices N --size N --batch N --memory KIND
 * --series NAME --op write|faa --seconds N, then words. */
struct bench_options {
	unsigned rounds, slices; /* a figure per round: the median of its slices */
	uint64_t size, batch;
	int memory; /* enum bench_memory */
	const char *series, *op;
	double seconds;
	char **words;
	int count;
};

enum bench_memory {
	BENCH_ALLOC,   /* xtal_alloc(): path map */
	BENCH_MALLOC,  /* private memory: path cma or ring */
	BENCH_SHARED,  /* a sealed memfd mapped by both processes: path map */
	BENCH_ADOPTED, /* malloc memory, adopted by xtal_share(): path map */
};

/* One process' part of a pair. */
struct bench_side {
	enum bench_memory memory;
	unsigned device; /* which of the list; 0: loopback */
	uint64_t len;
	char *base;   /* registered, len bytes */
	char *shared; /* BENCH_SHARED: the same pages, made before the fork */
	struct dma_device *list;
	uint32_t devices; /* in the list */
	struct dma_context *ctx;
	struct dma_queue *queue;
	struct dma_seg *seg, remote;
	int fd; /* to the other process */
	int pid;
};

/* Dies with the text, errno and the library's last words. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void bench_options(int argc, char **argv, struct bench_options *opt);

unsigned bench_cores(void);
/* Pins the calling thread to the n-th core we may use (modulo their number). */
void bench_pin(unsigned n);
/* Lets it run on all of them again: workers inherit the mask of whoever starts them. */
void bench_unpin(void);

double bench_median(double *values, unsigned count); /* sorts them */
double bench_percentile(double *values, unsigned count, double percent);
/* One line of JSON on stdout: a figure of a series. Of slices: their median, and the best
 * (10th percentile) beside it, which tells something on a busy machine too. */
void bench_emit(const struct bench_options *opt, const char *what, const char *unit, unsigned round,
		double *slices, unsigned count);
void bench_emit_value(const struct bench_options *opt, const char *what, const char *unit,
		      unsigned round, double value);

/* len bytes that both processes of a later fork share and that cannot shrink. */
char *bench_shared(uint64_t len);

/* Forks the owner; both return, with fd and pid set. The child dies with its parent. True in
 * the child. Before any call of the library. */
bool bench_fork(struct bench_side *side);
/* Context, memory of side->memory, segment; then tells the other side and hears of it; then a
 * queue of the depth. What the path is, is left in path (16 bytes) when that is not NULL. */
void bench_open(struct bench_side *side, uint32_t depth);
void bench_path(const struct bench_side *side, char path[16]);
void bench_close(struct bench_side *side);
void bench_tell(const struct bench_side *side, const void *data, size_t len);
void bench_hear(const struct bench_side *side, void *data, size_t len);

/* The owner's program: sleeps, and checks its memory when asked, until the other side is gone. */
void bench_serve(struct bench_side *side);
/* The same; then closes, and never returns. */
_Noreturn void bench_owner(struct bench_side *side);
/* Initiator: dies unless the first len bytes of the owner's memory are the pattern of seed. */
void bench_verify(const struct bench_side *side, uint64_t len, uint64_t seed);
void bench_fill(char *to, uint64_t len, uint64_t seed);

/* Takes completions until n of them succeeded. */
void bench_take(struct dma_queue *queue, uint64_t n);
_Noreturn void bench_bad_completion(const struct dma_cr *cr);

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void bench_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

#endif
