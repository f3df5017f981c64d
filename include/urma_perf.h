/* SPDX-License-Identifier: MIT */
/*
 * urma_perf.h - how long the calls of the data path take: asks the library to measure them.
 */
#ifndef URMA_PERF_H
#define URMA_PERF_H

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <stdint.h>
#ifdef __cplusplus
}
#endif

#include "urma_opcode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* So many threads at most are measured. */
#define URMA_PERF_THREAD_MAX_NUM 128

/* What is measured. The BOND ones never occur here. */
typedef enum urma_perf_type {
	UB_JETTY_POST_SEND = 0,
	BOND_JETTY_POST_SEND = 1,
	UB_JFS_POST_SEND = 2,
	BOND_JFS_POST_SEND = 3,
	UB_JETTY_POST_RECV = 4,
	BOND_JETTY_POST_RECV = 5,
	UB_POST_JFR_RECV = 6,
	BOND_POST_JFR_RECV = 7,
	UB_POLL_JFC = 8,
	BOND_POLL_JFC = 9,
	UB_WAIT_JFC = 10,
	BOND_WAIT_JFC = 11,
	UB_ACK_JFC = 12,
	UB_REARM_JFC = 13,
	BOND_REARM_JFC = 14,
	URMA_PERF_RECORD_TYPE_MAX = 15,
} urma_perf_record_type_t;

/* What urma_start_perf() and urma_stop_perf() have measured, in nanoseconds. */
typedef struct urma_perf_stats {
	uint64_t retry_count; /* messages sent again */
	struct {
		urma_perf_record_type_t type;
		uint64_t sample_num;
		uint64_t average;
		uint64_t mininum;
		uint64_t maxinum;
		uint64_t p90;
		uint64_t p99;
		uint64_t p9999;
	} type_record[15];
} urma_perf_stats_t;

/**
 * urma_start_perf - begin to measure the calls of the data path
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EEXIST: it was begun before
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_start_perf(void);

/**
 * urma_stop_perf - stop measuring the calls of the data path
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_FAIL: it was not begun
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_stop_perf(void);

/**
 * urma_get_perf_info - a report of what was measured
 *
 * @perf_buf: filled with text that ends with 0
 * @length: room, bytes; filled with the length of the text
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_ENOMEM: there is not enough room; *length says how much is needed
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_perf_info(char *perf_buf, uint32_t *length);

#ifdef __cplusplus
}
#endif

#endif
