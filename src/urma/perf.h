/* SPDX-License-Identifier: MIT */
/* Measuring how long the calls of the data path take, when a program asks for it. */
#ifndef XTAL_URMA_PERF_H
#define XTAL_URMA_PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/event.h"
#include "urma_perf.h"

/* Hidden here, too: else its address is loaded first. */
extern __attribute__((visibility("hidden"))) atomic_bool ub_perf_on;

static inline bool ub_perf_is_on(void)
{
	return xtal_unlikely(atomic_load_explicit(&ub_perf_on, memory_order_relaxed));
}

/* At the begin of a call: a time, or 0 when nothing is measured. */
static inline uint64_t ub_perf_begin(void)
{
	return ub_perf_is_on() ? xtal_clock() : 0;
}

void ub_perf_record(urma_perf_record_type_t type, uint64_t begin);

/* At its end. */
static inline void ub_perf_end(urma_perf_record_type_t type, uint64_t begin)
{
	if (xtal_unlikely(begin))
		ub_perf_record(type, begin);
}

#endif
