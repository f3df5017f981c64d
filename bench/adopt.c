/* SPDX-License-Identifier: MIT */
/*
 * adopt: what adopting --size bytes of private memory costs (xtal_share(), us per MiB, and the way
 * back), and what the owner's own accesses cost before and after: dependent loads of one word in
 * each page, in an order that no prefetcher guesses.
 */
#include "lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE   4096u
#define SLICES 15

/* Makes one ring of all pages: each holds the address of the next. */
static void link_pages(char *base, uint64_t pages)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < pages; i++) {
		uint64_t next = (at + pages / 2 + 37) % pages;

		*(void **)(void *)(base + at * PAGE) = base + next * PAGE;
		at = next;
	}
}

static double chase(char *base, uint64_t steps)
{
	uint64_t then = bench_now();
	void *volatile *p = (void *volatile *)(void *)base;

	for (uint64_t i = 0; i < steps; i++)
		p = *p;
	return (double)(bench_now() - then) / (double)steps + (p == NULL);
}

static void measure_chase(const struct bench_options *opt, const char *what, unsigned round,
			  char *base, uint64_t pages)
{
	double slices[SLICES];

	chase(base, pages);
	for (unsigned i = 0; i < SLICES; i++)
		slices[i] = chase(base, pages * 20);
	bench_emit(opt, what, "ns", round, slices, SLICES);
}

int main(int argc, char **argv)
{
	struct bench_options opt;
	uint64_t pages, then;
	double mib;
	char *base;

	setenv("XTAL_ADOPT", "auto", 1);
	bench_options(argc, argv, &opt);
	pages = opt.size / PAGE;
	mib = (double)opt.size / (1 << 20);
	for (unsigned r = 0; r <= opt.rounds; r++) { /* the first one starts the threads */
		base = mmap(NULL, opt.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (base == MAP_FAILED)
			bench_die("mmap");
		for (uint64_t i = 0; i < pages; i++) /* small pages, whatever the system prefers */
			base[i * PAGE] = 1;
		link_pages(base, pages);
		if (r)
			measure_chase(&opt, "before", r - 1, base, pages);
		then = bench_now();
		if (xtal_share(base, opt.size))
			bench_die("xtal_share: %s", xtal_last_error());
		if (r)
			bench_emit_value(&opt, "share", "ns", r - 1,
					 (double)(bench_now() - then) / mib);
		if (r)
			measure_chase(&opt, "after", r - 1, base, pages);
		then = bench_now();
		if (xtal_unshare(base, opt.size))
			bench_die("xtal_unshare: %s", xtal_last_error());
		if (r)
			bench_emit_value(&opt, "unshare", "ns", r - 1,
					 (double)(bench_now() - then) / mib);
		munmap(base, opt.size);
	}
	return 0;
}
