/* SPDX-License-Identifier: MIT */
/* Running performance tests from the initiator's side: pair up, warm up, measure, compare. */
#include "cli/perf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/inbox.h"
#include "cli/net.h"
#include "cli/owner.h"
#include "cli/side.h"

#define LARGEST_SIZE   (8u << 20)
#define SMALLEST_CYCLE (4u << 10)

struct pair {
	struct cli_child child; /* the owner process */
	pthread_t thread;       /* --path self: it is a thread of ours instead */
	int thread_fd;
	bool threaded;
	struct cli_side side;
	struct cli_histogram *samples;
};

static void *owner_thread(void *arg)
{
	struct pair *pair = arg;

	cli_owner_serve(pair->thread_fd);
	return NULL;
}

static int start_thread(struct pair *pair)
{
	struct cli_talk msg;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return cli_fail("no socket pair");
	pair->child = CLI_NO_CHILD;
	pair->child.fd = fd[0];
	pair->child.pid = getpid();
	pair->thread_fd = fd[1];
	if (pthread_create(&pair->thread, NULL, owner_thread, pair) != 0) {
		close(fd[0]);
		close(fd[1]);
		return cli_fail("no thread");
	}
	pair->threaded = true;
	return cli_talk_recv(pair->child.fd, &msg, TALK_HELLO, CLI_TALK_PATIENCE_MS);
}

static int start_owner(const struct perf_options *opt, struct pair *pair)
{
	if (opt->path && strcmp(opt->path, "self") == 0)
		return start_thread(pair);
	if (opt->client)
		return cli_child_connect(&pair->child, opt->client);
	return cli_child_start(&pair->child, NULL);
}

static void stop_owner(struct pair *pair)
{
	cli_child_stop(&pair->child);
	if (pair->threaded)
		pthread_join(pair->thread, NULL);
	pair->threaded = false;
}

/* As perftest does it, but not more than so many bytes unless they were asked for. */
static uint64_t default_iterations(const struct perf_options *opt, uint64_t size)
{
	uint64_t n = opt->latency ? 10000 : 5000;
	uint64_t limit = (opt->latency ? UINT64_C(2) : UINT64_C(8)) << 30;

	if (n * size > limit)
		n = limit / size;
	return n < 20 ? 20 : n;
}

static struct cli_plan plan_for(const struct perf_options *opt, uint64_t size, uint64_t largest)
{
	struct cli_plan plan = {
		.api = opt->api,
		.op = opt->op,
		.latency = opt->latency,
		.queues = opt->queues,
		.depth = opt->depth,
		.both = opt->both,
		.verify = opt->verify,
		.size = size,
		.cycle = largest < SMALLEST_CYCLE ? SMALLEST_CYCLE : (largest + 63) / 64 * 64,
		.duration_ns = opt->duration_ns,
	};

	if (!opt->duration_ns)
		plan.iterations = opt->iterations ? opt->iterations : default_iterations(opt, size);
	return plan;
}

/* One run, warm-up or measured: both prepare, the loop, both compare. */
static int run_once(struct pair *pair, const struct cli_plan *plan, const char *what,
		    struct perf_row *row)
{
	struct cli_talk msg = { .plan = *plan, .seed = cli_now() };
	uint64_t seed = msg.seed;
	struct cli_progress bar;
	int rc, patience;

	row->mine = row->theirs = (struct cli_result){ 0 };
	cli_histogram_reset(pair->samples);
	if (cli_side_prepare(&pair->side, plan, seed))
		return -1;
	if (cli_side_path(&pair->side, &row->mine) ||
	    cli_talk_send(pair->child.fd, &msg, TALK_RUN) ||
	    cli_talk_recv(pair->child.fd, &msg, TALK_READY, CLI_TALK_PATIENCE_MS))
		return -1;
	cli_progress_start(&bar, what, cli_now());
	rc = plan->latency ? cli_side_ping(&pair->side, plan, &bar, pair->samples, &row->mine)
			   : cli_side_stream(&pair->side, plan, &bar, &row->mine);
	cli_progress_end(&bar);
	if (rc)
		return -1;
	if (cli_interrupted())
		return cli_fail("interrupted");
	msg = (struct cli_talk){ .result = row->mine };
	/* In both directions the owner may still be at work for as long again. */
	patience = CLI_TALK_PATIENCE_MS +
		   (int)(row->mine.ns / 1000000u < 80000000u ? row->mine.ns / 1000000u : 80000000u);
	if (cli_talk_send(pair->child.fd, &msg, TALK_STOP))
		return -1;
	if (plan->both && cli_opcode_receives(plan->op) && cli_inbox_serve(&pair->side, plan))
		return -1;
	if (cli_talk_recv(pair->child.fd, &msg, TALK_DONE, patience))
		return -1;
	row->theirs = msg.result;
	if (plan->both && cli_inbox_finish(&pair->side, plan, row->theirs.ops))
		return -1;
	if (!plan->verify)
		return 0;
	if (cli_side_check_fetched(&pair->side, plan, ~seed, &row->mine))
		return -1;
	if (plan->both || cli_ping_pong(plan))
		return cli_side_check_target(&pair->side, plan, ~seed, &row->theirs);
	return 0;
}

static void summarize(const struct cli_histogram *h, struct perf_row *row)
{
	row->samples = h->count;
	row->min = h->count ? h->min : 0;
	row->max = h->max;
	row->average = cli_histogram_average(h);
	row->median = cli_histogram_quantile(h, 0.5);
	row->p99 = cli_histogram_quantile(h, 0.99);
	row->p999 = cli_histogram_quantile(h, 0.999);
}

static uint64_t lost_cores(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

static int measure(struct pair *pair, const struct cli_plan *plan, struct perf_row *row)
{
	struct cli_plan warm = *plan;
	char what[64], size[32];
	uint64_t lost;

	row->plan = *plan;
	snprintf(what, sizeof(what), "%s, %s memory", cli_text_size(size, sizeof(size), plan->size),
		 cli_memory_name(row->memory));
	/* A tenth, and not for ever. */
	warm.iterations =
		plan->iterations / 10 > 1000 || !plan->iterations ? 1000 : plan->iterations / 10;
	if (warm.iterations * plan->size > 1u << 30)
		warm.iterations = (1u << 30) / plan->size;
	if (warm.iterations < 10)
		warm.iterations = 10;
	warm.duration_ns = 0;
	row->warmup = warm.iterations;
	if (run_once(pair, &warm, "warming up", row))
		return -1;
	lost = lost_cores();
	if (run_once(pair, plan, what, row))
		return -1;
	row->preempted = lost_cores() - lost;
	row->verified = plan->verify;
	summarize(pair->samples, row);
	return 0;
}

/* Each queue learns which one of the other side's it sends to. */
static int pair_queues(struct pair *pair)
{
	struct cli_talk msg = { 0 };
	uint32_t n;

	for (uint32_t first = 0; first < pair->side.queues; first += n) {
		msg.offset = first;
		n = cli_side_ids(&pair->side, first, msg.text);
		if (!n)
			return 0;
		if (cli_talk_ask(pair->child.fd, &msg, TALK_PAIR) ||
		    cli_side_pair(&pair->side, first, msg.text))
			return -1;
	}
	return 0;
}

/* All sizes with one kind of memory. */
static int run_memory(const struct perf_options *opt, struct pair *pair, enum cli_memory memory,
		      struct perf_report *report)
{
	uint64_t size = opt->sizes ? 2 : opt->size, last = opt->sizes ? LARGEST_SIZE : opt->size;
	struct cli_talk msg = { .plan = plan_for(opt, last, last), .value = memory };
	struct perf_row row = { .memory = memory };

	if (cli_side_open(&pair->side, &msg.plan, memory, pair->child.fd))
		return -1;
	msg.desc = pair->side.end->desc;
	if (cli_talk_ask(pair->child.fd, &msg, TALK_JOIN) ||
	    cli_side_connect(&pair->side, &msg.desc) || pair_queues(pair))
		goto fail;
	for (; size <= last; size *= 2) {
		struct cli_plan plan = plan_for(opt, size, last);

		if (measure(pair, &plan, &row))
			goto fail;
		perf_report_row(report, &row);
	}
	cli_side_close(&pair->side);
	return 0;
fail:
	cli_side_close(&pair->side);
	return -1;
}

static int say_failure(struct pair *pair, enum cli_memory memory)
{
	const char *fate;

	if (cli_interrupted())
		return cli_die(CLI_INTERRUPTED, "interrupted");
	cli_die(CLI_FAILED, "%s memory: %s", cli_memory_name(memory), cli_reason());
	fate = cli_child_fate(&pair->child, 100);
	if (fate)
		cli_die(CLI_FAILED, "the owner is gone: %s", fate);
	return CLI_FAILED;
}

int perf_run(const struct perf_options *opt, struct perf_report *report)
{
	struct pair pair = { .child = CLI_NO_CHILD, .samples = cli_histogram_new() };
	int status = CLI_OK;

	if (!pair.samples)
		return cli_die(CLI_FAILED, "no memory");
	if (start_owner(opt, &pair)) {
		status = cli_interrupted() ? CLI_INTERRUPTED : CLI_FAILED;
		cli_die(status, "%s", cli_reason());
	}
	perf_report_pair(report, &(struct perf_pair){ getpid(), pair.child.pid });
	for (unsigned m = 0; m < CLI_MEMORY_COUNT && status == CLI_OK; m++)
		if (opt->memory & 1u << m && run_memory(opt, &pair, (enum cli_memory)m, report))
			status = say_failure(&pair, (enum cli_memory)m);
	stop_owner(&pair);
	cli_histogram_free(pair.samples);
	return status;
}

/* The first client that makes sense. Its connection, or -1 with cli_reason. */
static int take_client(int listener, struct cli_talk *hello)
{
	for (;;) {
		int fd = cli_child_accept(listener);

		if (fd < 0 || cli_talk_recv(fd, hello, TALK_HELLO, CLI_TALK_PATIENCE_MS) == 0)
			return fd;
		close(fd);
		if (cli_interrupted())
			return -1;
		fprintf(stderr, "xtal: the client did not say what it wants: %s\n", cli_reason());
	}
}

int perf_serve(const char *name)
{
	struct cli_child child = CLI_NO_CHILD;
	struct cli_talk hello;
	int listener = cli_child_listen(name), fd;
	const char *fate = NULL;

	if (listener < 0)
		return cli_die(CLI_FAILED, "%s", cli_reason());
	if (cli_net_is_address(name))
		printf("Waiting at %s. On another host: xtal perf write_lat --client %s\n", name,
		       name);
	else
		printf("Waiting as '%s'. In another shell: xtal perf write_lat --client %s\n", name,
		       name);
	fflush(stdout);
	fd = take_client(listener, &hello);
	close(listener);
	if (fd < 0)
		return cli_interrupted() ? CLI_INTERRUPTED
					 : cli_die(CLI_FAILED, "%s", cli_reason());
	/* The client chose the paths for both; "" means that it did not restrict them. */
	if (cli_child_spawn(&child, fd, hello.text))
		return cli_die(CLI_FAILED, "%s", cli_reason());
	printf("Serving a client with process %d.\n", child.pid);
	fflush(stdout);
	while (!fate && !cli_interrupted())
		fate = cli_child_fate(&child, 60000);
	if (child.fate == 0) {
		printf("Done.\n");
		return CLI_OK;
	}
	if (fate)
		return cli_die(CLI_FAILED, "the owner is gone: %s", fate);
	cli_child_stop(&child);
	return CLI_INTERRUPTED;
}
