/* SPDX-License-Identifier: MIT */
/* Showing measurements: a table for people, one JSON object for programs. */
#include "cli/perf.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* More than so many times per second, and in all: others want the cores that we spin on. */
#define LOST_CORES 20

struct perf_report {
	const struct perf_options *opt;
	struct perf_pair pair;
	unsigned rows;
	bool disturbed;                  /* by other programs, in some row */
	json_t *list;                    /* --json: the rows */
	char why[CLI_MEMORY_COUNT][400]; /* the path to each kind of memory, and the reason */
};

struct perf_report *perf_report_new(const struct perf_options *opt)
{
	struct perf_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->opt = opt;
	if (opt->json)
		report->list = json_array();
	return report;
}

/* ---- Figures ---- */

/* Messages and payload per second: in a ping-pong both sides send one per round. */
static double messages(const struct perf_row *row)
{
	uint64_t n = row->mine.ops;

	if (cli_ping_pong(&row->plan))
		n *= 2;
	if (row->plan.both)
		n += row->theirs.ops;
	return (double)n;
}

static double payload(const struct perf_row *row)
{
	uint64_t n = row->mine.bytes;

	if (cli_ping_pong(&row->plan))
		n *= 2;
	if (row->plan.both)
		n += row->theirs.bytes;
	return (double)n;
}

static double seconds(const struct perf_row *row)
{
	uint64_t ns = row->mine.ns;

	if (row->plan.both && row->theirs.ns > ns)
		ns = row->theirs.ns;
	return (double)(ns ? ns : 1) / 1e9;
}

static double microseconds(const struct perf_row *row, uint64_t ns)
{
	return (double)ns / (cli_ping_pong(&row->plan) ? 2e3 : 1e3);
}

/* The path that the engine executed most of the operations on. */
static const char *executed_on(const struct cli_result *r)
{
	unsigned best = 0;

	for (unsigned i = 1; i < XTAL_PATH_COUNT; i++)
		if (r->path_ops[i] > r->path_ops[best])
			best = i;
	return r->path_ops[best] ? xtal_path_name(best) : r->path;
}

/* ---- Table ---- */

static const char *direction(const struct perf_options *opt)
{
	if (opt->latency && cli_opcode_sends(opt->op))
		return "ping-pong, half a round trip is given";
	if (opt->both)
		return "in both directions, the sum is given";
	return opt->op == CLI_READ ? "owner to initiator" : "initiator to owner";
}

static void print_heading(struct perf_report *report, const struct perf_row *row)
{
	const struct perf_options *opt = report->opt;

	printf("%s_%s of %s between process %d (initiator) and %d (owner): %s.\n",
	       cli_opcode_name(opt->op), opt->latency ? "lat" : "bw", cli_api(opt->api)->name,
	       report->pair.initiator, report->pair.owner, direction(opt));
	if (opt->latency)
		printf("Times in microseconds%s; ", cli_ping_pong(&row->plan)
							    ? ", of one way"
							    : ", from the post to the completion");
	else
		printf("%u queue%s, %u operations in flight on each; MB is 10^6 bytes, MiB 2^20; ",
		       opt->queues, opt->queues > 1 ? "s" : "", opt->depth);
	printf("warm-up not counted, %s.\n\n", opt->verify ? "data verified" : "data NOT verified");
	if (opt->latency)
		printf("%-10s %-4s %7s %8s %7s %7s %7s %7s %7s %7s %9s %8s\n", "memory", "path",
		       "size", "count", "min", "median", "avg", "p99", "p99.9", "max", "msg/s",
		       "MB/s");
	else
		printf("%-10s %-4s %7s %10s %10s %10s %12s\n", "memory", "path", "size", "count",
		       "MB/s", "MiB/s", "msg/s");
}

static void print_row(const struct perf_row *row)
{
	double s = seconds(row);
	char size[32];

	printf("%-10s %-4s %7s ", cli_memory_name(row->memory), executed_on(&row->mine),
	       cli_text_size(size, sizeof(size), row->plan.size));
	if (!row->plan.latency) {
		printf("%10.0f %10.2f %10.2f %12.0f\n", messages(row), payload(row) / s / 1e6,
		       payload(row) / s / 1048576, messages(row) / s);
		return;
	}
	printf("%8llu ", (unsigned long long)row->samples);
	for (unsigned i = 0; i < 6; i++) {
		const uint64_t t[] = { row->min, row->median, row->average,
				       row->p99, row->p999,   row->max };
		double us = microseconds(row, t[i]);

		printf("%7.*f ", us < 100 ? 3 : us < 10000 ? 1 : 0, us);
	}
	printf("%9.0f %8.2f\n", messages(row) / s, payload(row) / s / 1e6);
}

static void print_why(enum cli_memory memory, const char *why)
{
	cli_print_wrapped(why, printf("%-10s ", cli_memory_name(memory)));
}

/* ---- JSON ---- */

static json_t *json_row(const struct perf_row *row)
{
	double s = seconds(row);
	json_t *j = json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b}",
		"memory", cli_memory_name(row->memory), "path", executed_on(&row->mine),
		"path_chosen", row->mine.path, "reason", row->mine.why, "size",
		(json_int_t)row->plan.size, "iterations", (json_int_t)row->mine.ops,
		"warmup_per_queue", (json_int_t)row->warmup, "operations",
		(json_int_t)messages(row), "bytes", (json_int_t)payload(row), "preempted",
		(json_int_t)row->preempted, "seconds", s, "messages_per_second", messages(row) / s,
		"MB_per_second", payload(row) / s / 1e6, "MiB_per_second",
		payload(row) / s / 1048576, "verified", row->verified);

	if (j && row->plan.latency)
		json_object_set_new(j, "latency_us",
				    json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "min",
					      microseconds(row, row->min), "median",
					      microseconds(row, row->median), "avg",
					      microseconds(row, row->average), "p99",
					      microseconds(row, row->p99), "p99.9",
					      microseconds(row, row->p999), "max",
					      microseconds(row, row->max)));
	return j;
}

static int print_json(struct perf_report *report, int status)
{
	const struct perf_options *opt = report->opt;
	char test[32];
	json_t *root;

	snprintf(test, sizeof(test), "%s_%s", cli_opcode_name(opt->op),
		 opt->latency ? "lat" : "bw");
	root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:O, s:s?}", "test", test,
			 "api", cli_api(opt->api)->name, "version", xtal_version(), "direction",
			 direction(opt), "initiator_pid", report->pair.initiator, "owner_pid",
			 report->pair.owner, "queues", (int)opt->queues, "tx_depth",
			 (int)opt->depth, "status", status, "rows", report->list, "error",
			 status ? cli_reason() : NULL);
	if (!root || json_dumpf(root, stdout, CLI_JSON_FLAGS))
		status = cli_die(CLI_FAILED, "the report could not be written");
	putchar('\n');
	json_decref(root);
	return status;
}

/* ---- Both ---- */

void perf_report_pair(struct perf_report *report, const struct perf_pair *pair)
{
	report->pair = *pair;
}

void perf_report_row(struct perf_report *report, const struct perf_row *row)
{
	if (row->preempted > LOST_CORES && (double)row->preempted > LOST_CORES * seconds(row))
		report->disturbed = true;
	if (report->opt->json) {
		json_array_append_new(report->list, json_row(row));
		return;
	}
	if (report->rows++ == 0)
		print_heading(report, row);
	print_row(row);
	snprintf(report->why[row->memory], sizeof(report->why[0]), "%s: %s%s", row->mine.path,
		 row->mine.why,
		 strcmp(executed_on(&row->mine), row->mine.path) == 0
			 ? ""
			 : "; these operations are left to the owner's agent, by messages");
	fflush(stdout);
}

int perf_report_end(struct perf_report *report, int status)
{
	if (report->opt->json)
		status = print_json(report, status);
	else if (report->rows)
		putchar('\n');
	for (unsigned m = 0; m < CLI_MEMORY_COUNT; m++)
		if (report->why[m][0])
			print_why((enum cli_memory)m, report->why[m]);
	if (report->disturbed && !report->opt->json)
		cli_print_wrapped("note: other programs wanted the cores that these processes spin "
				  "on; the figures are theirs, too",
				  0);
	json_decref(report->list);
	free(report);
	return status;
}
