/* SPDX-License-Identifier: MIT */
/* Measuring: a histogram per kind of call, and the report of them. */
#include "perf.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "log.h"

/* Eight steps to each power of two: a percentile is off by an eighth at most. */
#define STEPS   8u
#define BUCKETS (64 * STEPS)

atomic_bool ub_perf_on;

static struct {
	_Atomic uint64_t count, sum, min, max, bucket[BUCKETS];
} records[URMA_PERF_RECORD_TYPE_MAX];

static unsigned bucket_of(uint64_t ns)
{
	unsigned power;

	if (ns < STEPS)
		return (unsigned)ns;
	power = 63 - (unsigned)__builtin_clzll(ns);
	return (power - 2) * STEPS + (unsigned)(ns >> (power - 3) & (STEPS - 1));
}

/* The longest time in a bucket. */
static uint64_t top_of(unsigned bucket)
{
	unsigned power = bucket / STEPS + 2;

	if (bucket < STEPS)
		return bucket;
	return ((uint64_t)(STEPS + bucket % STEPS + 1) << (power - 3)) - 1;
}

static void raise_to(_Atomic uint64_t *at, uint64_t value)
{
	uint64_t seen = atomic_load(at);

	while (seen < value && !atomic_compare_exchange_weak(at, &seen, value))
		;
}

static void lower_to(_Atomic uint64_t *at, uint64_t value)
{
	uint64_t seen = atomic_load(at);

	while (seen > value && !atomic_compare_exchange_weak(at, &seen, value))
		;
}

void ub_perf_record(urma_perf_record_type_t type, uint64_t begin)
{
	uint64_t ns = xtal_clock() - begin;

	atomic_fetch_add(&records[type].count, 1);
	atomic_fetch_add(&records[type].sum, ns);
	atomic_fetch_add(&records[type].bucket[bucket_of(ns)], 1);
	lower_to(&records[type].min, ns);
	raise_to(&records[type].max, ns);
}

urma_status_t urma_start_perf(void)
{
	if (atomic_load(&ub_perf_on)) {
		ub_refuse("urma_start_perf: it was begun before");
		return URMA_EEXIST;
	}
	for (unsigned i = 0; i < URMA_PERF_RECORD_TYPE_MAX; i++) {
		memset(&records[i], 0, sizeof(records[i]));
		atomic_store(&records[i].min, UINT64_MAX);
	}
	atomic_store(&ub_perf_on, true);
	return URMA_SUCCESS;
}

urma_status_t urma_stop_perf(void)
{
	if (atomic_exchange(&ub_perf_on, false))
		return URMA_SUCCESS;
	ub_refuse("urma_stop_perf: it was not begun");
	return URMA_FAIL;
}

/* So many of 10000 calls took no longer than the answer. */
static uint64_t percentile(unsigned type, uint64_t of_10000)
{
	uint64_t count = atomic_load(&records[type].count), seen = 0;
	uint64_t max = atomic_load(&records[type].max);

	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += atomic_load(&records[type].bucket[i]);
		if (seen * 10000 >= count * of_10000)
			return top_of(i) < max ? top_of(i) : max;
	}
	return max;
}

static void add_line(char *text, size_t size, size_t *used, unsigned type)
{
	static const char *const names[URMA_PERF_RECORD_TYPE_MAX] = {
		[UB_JETTY_POST_SEND] = "post_jetty_send_wr",
		[UB_JFS_POST_SEND] = "post_jfs_wr",
		[UB_JETTY_POST_RECV] = "post_jetty_recv_wr",
		[UB_POST_JFR_RECV] = "post_jfr_wr",
		[UB_POLL_JFC] = "poll_jfc",
		[UB_WAIT_JFC] = "wait_jfc",
		[UB_ACK_JFC] = "ack_jfc",
		[UB_REARM_JFC] = "rearm_jfc",
	};
	uint64_t count = atomic_load(&records[type].count);

	if (!count || !names[type])
		return;
	xtal_text_add(text, size, used, "%-20s %12llu %10llu %10llu %10llu %10llu %10llu %10llu\n",
		      names[type], (unsigned long long)count,
		      (unsigned long long)(atomic_load(&records[type].sum) / count),
		      (unsigned long long)atomic_load(&records[type].min),
		      (unsigned long long)atomic_load(&records[type].max),
		      (unsigned long long)percentile(type, 9000),
		      (unsigned long long)percentile(type, 9900),
		      (unsigned long long)percentile(type, 9999));
}

urma_status_t urma_get_perf_info(char *perf_buf, uint32_t *length)
{
	char text[2048];
	size_t used = 0;

	if (!perf_buf || !length) {
		ub_refuse("urma_get_perf_info: %s is NULL", perf_buf ? "length" : "perf_buf");
		return URMA_EINVAL;
	}
	xtal_text_add(text, sizeof(text), &used, "%-20s %12s %10s %10s %10s %10s %10s %10s\n",
		      "call (ns)", "number", "average", "min", "max", "p90", "p99", "p99.99");
	for (unsigned i = 0; i < URMA_PERF_RECORD_TYPE_MAX; i++)
		add_line(text, sizeof(text), &used, i);
	if (*length <= used) {
		ub_refuse("urma_get_perf_info: length is %u bytes, the report needs %zu", *length,
			  used + 1);
		*length = (uint32_t)used + 1;
		return URMA_ENOMEM;
	}
	memcpy(perf_buf, text, used + 1);
	*length = (uint32_t)used;
	return URMA_SUCCESS;
}
