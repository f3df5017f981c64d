/* SPDX-License-Identifier: MIT */
/* Segments: ranges of this process's memory that peers, or our own operations, may touch. */
#ifndef XTAL_CORE_SEGMENT_H
#define XTAL_CORE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/context.h"

struct xtal_segment;

enum {
	XTAL_RIGHT_READ = 1,
	XTAL_RIGHT_WRITE = 2,
	XTAL_RIGHT_ATOMIC = 4,
};

struct xtal_segment_attr {
	uint64_t addr, len; /* len >= 1, addr + len must not wrap */
	uint32_t token;
	bool token_valid;    /* false: also requests without a token are accepted */
	bool any_token;      /* tokens are not looked at */
	uint32_t index;      /* requests that name another one are refused; 0: it has none */
	uint32_t rights;     /* for peers; local use is always allowed */
	bool hardware_rules; /* the log says once that hardware would refuse such memory */
};

/*
 * Errors: -EINVAL (addr, len), -ENOSPC (XTAL_MAX_SEGMENTS reached), -ENOMEM; with XTAL_STRICT
 * also -EINVAL (addr not page aligned, beyond 2^48), -EFAULT (not mapped or not writable),
 * -EEXIST (overlaps another segment; the identical range may be registered twice).
 */
XTAL_INTERNAL_API int xtal_segment_register(struct xtal_context *ctx,
					    const struct xtal_segment_attr *attr,
					    struct xtal_segment **out);
/*
 * Withdraws the segment: blocks until no peer and no operation of ours can touch its memory
 * any more (DESIGN 4), then frees it. NULLs *seg.
 */
XTAL_INTERNAL_API void xtal_segment_unregister(struct xtal_segment **seg);
/* Withdraws it only: it is to be unregistered later. Not at the same time as that. */
XTAL_INTERNAL_API void xtal_segment_withdraw(struct xtal_segment *seg);

/* A number unique in the context (the slot), >= 0. */
XTAL_INTERNAL_API uint32_t xtal_segment_id(const struct xtal_segment *seg);
/* The live segment of ctx with this id that has exactly this address and length, or NULL. */
XTAL_INTERNAL_API struct xtal_segment *xtal_segment_by_id(struct xtal_context *ctx, uint32_t id,
							  uint64_t addr, uint64_t len);

#endif
