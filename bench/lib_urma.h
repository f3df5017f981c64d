/* SPDX-License-Identifier: MIT */
/* A pair of processes that reach each other through URMA, beside what lib.h gives them. */
#ifndef BENCH_LIB_URMA_H
#define BENCH_LIB_URMA_H

#include <stdint.h>

#include <urma_api.h>

#include "lib.h"

/* One process' part: requests complete on jfc, receives on rjfc. */
struct bench_urma {
	urma_device_t **list;
	urma_context_t *ctx;
	urma_jfc_t *jfc, *rjfc;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg, *remote; /* ours, all of side->base, and the other's */
	urma_target_seg_t *source;       /* NULL, or what bench_urma_source() registered */
	urma_target_jetty_t *target;
	uint64_t there; /* where the other's memory begins */
};

/* After bench_open(), by both: queues of the depth over side->base, and the other's imported. */
void bench_urma_open(struct bench_urma *u, const struct bench_side *side, uint32_t depth);
/* Registers local memory. */
void bench_urma_source(struct bench_urma *u, void *base, uint64_t len);
void bench_urma_close(struct bench_urma *u);

/* One receive of len bytes at addr. */
void bench_urma_receive(struct bench_urma *u, void *addr, uint32_t len);
_Noreturn void bench_urma_bad(urma_cr_status_t status);

/* Up to 16 completions; each must be a success. Returns how many. */
static inline uint32_t bench_urma_poll(urma_jfc_t *jfc, uint32_t count)
{
	urma_cr_t cr[16];
	int got = urma_poll_jfc(jfc, count < 16 ? (int)count : 16, cr);

	if (got < 0)
		bench_die("urma_poll_jfc");
	for (int i = 0; i < got; i++)
		if (cr[i].status)
			bench_urma_bad(cr[i].status);
	return (uint32_t)got;
}

/* A request with one piece on each side. Points into itself: fill it where it stays. */
struct bench_urma_request {
	urma_sge_t here, there;
	urma_jfs_wr_t wr;
};
void bench_urma_request(struct bench_urma_request *r, const struct bench_urma *u, urma_opcode_t op,
			void *local, uint32_t len);

#endif
