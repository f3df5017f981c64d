/* SPDX-License-Identifier: MIT */
/* `xtal perf`: what was asked for (perf.c), one measurement each (perf_run.c), and how it is
 * shown (perf_report.c). */
#ifndef XTAL_CLI_PERF_H
#define XTAL_CLI_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/side.h"
#include "cli/talk.h"

struct perf_options {
	uint32_t api; /* of cli_api() */
	uint32_t op;  /* enum cli_opcode */
	bool latency;
	bool sizes; /* -a: 2 bytes to 8 MiB */
	bool both, verify, json;
	uint64_t size;
	uint64_t iterations;  /* per queue; 0: a default for the size */
	uint64_t duration_ns; /* 0: iterations count */
	uint32_t queues, depth;
	unsigned memory;    /* bit per enum cli_memory */
	const char *path;   /* NULL: whatever the engine takes */
	const char *client; /* the server's name; NULL: both processes are ours */
};

/* What one row of the report shows. Times in nanoseconds, as they were taken. */
struct perf_row {
	enum cli_memory memory;
	struct cli_plan plan;
	uint64_t warmup; /* operations per queue before, not counted */
	struct cli_result mine, theirs;
	uint64_t samples, min, median, average, p99, p999, max;
	bool verified;
	uint64_t preempted; /* times that our thread lost its core during the run */
};

/* The two processes, for the report's heading. */
struct perf_pair {
	int initiator, owner;
};

/* Shows what is there so far: text row by row, JSON at the end. */
struct perf_report;
struct perf_report *perf_report_new(const struct perf_options *opt);
void perf_report_pair(struct perf_report *report, const struct perf_pair *pair);
void perf_report_row(struct perf_report *report, const struct perf_row *row);
/* Writes what is still to be written, frees. status: the command's. Returns it, or another. */
int perf_report_end(struct perf_report *report, int status);

/* Measures all that was asked for. Returns the exit status; what failed was said. */
int perf_run(const struct perf_options *opt, struct perf_report *report);
/* `xtal perf --server`: serves one client. Returns the exit status. */
int perf_serve(const char *name);

#endif
