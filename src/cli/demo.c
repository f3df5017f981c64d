/* SPDX-License-Identifier: MIT */
/* `xtal demo`: what the engine does, shown with real bytes and told in a page. */
#include "cli/cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/demo.h"
#include "cli/histogram.h"
#include "cli/pattern.h"
#include "cli/port.h"
#include "cli/talk.h"

#define BIG    (64u << 20)
#define BLOCK  (4u << 10)
#define ROUNDS 1000u
#define ADDS   1000000u

static const char help[] =
	"Usage: xtal demo [--api=cdma|urma]\n"
	"\n"
	"Starts an owner process with plain malloc memory and shows what this process can do with\n"
	"it: write, read, write with notify, compare and swap, fetch and add, 64 MiB at once. Every\n"
	"byte is compared by the side that did not move it.\n"
	"\n"
	"  --api=urma   instead: the smallest program of URMA, told call by call; a client writes a\n"
	"               sentence into the memory of a server and reads it back\n"
	"  --help       this text\n"
	"\n"
	"Exit status: 0 when everything was as it should be, else 1.\n";

/* The owner's plain memory: data from 0 on, then words. */
enum {
	WORD_NOTIFY = BIG,
	WORD_CAS = BIG + 64,
	WORD_FAA = BIG + 128,
	OWNER_BYTES = BIG + BLOCK,
};

struct demo {
	struct cli_child child;
	struct cli_port port;
	struct cli_region mine;        /* local buffer, as large as the owner's */
	struct cli_talk plain, shared; /* the owner's memory, as it told us */
	struct dma_seg remote;
	struct dma_queue *queue;
	struct cli_histogram *times;
	const char *path; /* to the plain memory */
	int step;
};

/* The number and name of a step; its story follows on the same line. */
static void step(struct demo *d, const char *name)
{
	printf("%2d  %-8s ", ++d->step, name);
	fflush(stdout);
}

static struct cli_op op_of(struct demo *d, enum cli_opcode code, uint64_t offset, uint64_t len)
{
	return (struct cli_op){
		.code = code,
		.local = cli_part(d->mine.seg, offset, len),
		.remote = cli_part(&d->remote, offset, len),
	};
}

/* Does an operation many times; the median of post to completion, in words. */
static int time_op(struct demo *d, struct cli_op *op, char text[32])
{
	cli_histogram_reset(d->times);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t then = cli_now();

		if (cli_run(d->queue, op))
			return -1;
		cli_histogram_add(d->times, cli_now() - then);
	}
	cli_text_time(text, 32, cli_histogram_quantile(d->times, 0.5));
	return 0;
}

/* The owner compares its own memory; nothing of ours takes part. */
static int owner_checks(struct demo *d, uint32_t region, uint64_t len, uint64_t seed)
{
	struct cli_talk msg = { .region = region, .len = len, .seed = seed };

	if (cli_talk_ask(d->child.fd, &msg, TALK_CHECK))
		return -1;
	if (msg.value)
		return cli_fail("%" PRIu64 " of %" PRIu64
				" bytes are wrong in the owner's memory, the "
				"first at offset %" PRIu64,
				msg.value, len, msg.offset);
	return 0;
}

static int owner_word(struct demo *d, uint64_t offset, uint64_t *value)
{
	struct cli_talk msg = { .region = d->plain.region, .offset = offset };

	if (cli_talk_ask(d->child.fd, &msg, TALK_PEEK))
		return -1;
	*value = msg.value;
	return 0;
}

static int meet(struct demo *d)
{
	step(d, "owner");
	d->plain = (struct cli_talk){ .value = CLI_MEMORY_MALLOC, .len = OWNER_BYTES };
	d->shared = (struct cli_talk){ .value = CLI_MEMORY_XTAL, .len = BLOCK };
	if (cli_child_start(&d->child, NULL) || cli_talk_ask(d->child.fd, &d->plain, TALK_ALLOC) ||
	    cli_talk_ask(d->child.fd, &d->shared, TALK_ALLOC))
		return -1;
	printf("process %d registered 64 MiB of its plain malloc memory, and sleeps\n",
	       d->child.pid);
	return 0;
}

static int reach(struct demo *d)
{
	struct xtal_path_info info;
	uint64_t then = cli_now();
	char time[32];

	step(d, "reach");
	if (cli_port_open(&d->port, -1) ||
	    cli_region_make(&d->port, CLI_MEMORY_MALLOC, OWNER_BYTES, &d->mine))
		return -1;
	d->remote = cli_remote(&d->plain.desc);
	d->queue = cli_queue_make(&d->port, &d->plain.desc, 16);
	if (!d->queue)
		return -1;
	then = cli_now();
	if (xtal_path_query(d->queue, &d->plain.desc, -1, &info))
		return cli_fail("no path: %s", xtal_last_error());
	if (info.kind == XTAL_PATH_NONE)
		return cli_fail("no path: %s", info.reason);
	d->path = xtal_path_name(info.kind);
	printf("process %d (this one) knows an address and a secret token; first contact took %s\n",
	       getpid(), cli_text_time(time, sizeof(time), cli_now() - then));
	cli_print_wrapped(info.reason, printf("%13spath: %s, ", "", d->path));
	return 0;
}

static int show_write(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_WRITE, 0, 8);
	char time[32];

	step(d, "write");
	cli_pattern_fill(d->mine.base, 8, 1, 0);
	if (time_op(d, &op, time) || owner_checks(d, d->plain.region, 8, 1))
		return -1;
	printf("wrote 8 bytes to process %d over %s in %s; it woke up and found all 8\n",
	       d->child.pid, d->path, time);
	return 0;
}

static int show_read(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_READ, 0, BLOCK);
	struct cli_talk msg = { .region = d->plain.region, .len = BLOCK, .seed = 2 };
	size_t bad, first = 0;
	char time[32];

	step(d, "read");
	memset(d->mine.base, 0, BLOCK);
	if (cli_talk_ask(d->child.fd, &msg, TALK_FILL) || time_op(d, &op, time))
		return -1;
	bad = cli_pattern_check(d->mine.base, BLOCK, 2, 0, &first);
	if (bad)
		return cli_fail("%zu of %u bytes read are wrong", bad, BLOCK);
	printf("read 4096 bytes that process %d had put there, over %s in %s; all equal\n",
	       d->child.pid, d->path, time);
	return 0;
}

static int show_notify(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_NOTIFY, 0, BLOCK);
	struct cli_talk watch = { .region = d->plain.region, .offset = WORD_NOTIFY, .value = 42 };
	uint64_t then;
	char time[32];

	step(d, "notify");
	op.notify = cli_part(&d->remote, WORD_NOTIFY, 8);
	op.a = 42;
	cli_pattern_fill(d->mine.base, BLOCK, 3, 0);
	/* The owner spins on the word, as a program would that waits for data. */
	if (cli_talk_send(d->child.fd, &watch, TALK_WATCH) ||
	    cli_talk_recv(d->child.fd, &watch, TALK_READY, CLI_TALK_PATIENCE_MS))
		return -1;
	usleep(1000);
	then = cli_now();
	if (cli_run(d->queue, &op) ||
	    cli_talk_recv(d->child.fd, &watch, TALK_DONE, CLI_TALK_PATIENCE_MS) ||
	    owner_checks(d, d->plain.region, BLOCK, 3))
		return -1;
	printf("wrote 4096 bytes, then the word 42; process %d, watching its memory,\n"
	       "             saw 42 %s after we posted, and all 4096 bytes were there\n",
	       d->child.pid, cli_text_time(time, sizeof(time), watch.value - then));
	return 0;
}

static int show_cas(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_CAS, WORD_CAS, 8);
	struct cli_talk msg = { .region = d->plain.region, .offset = WORD_CAS, .value = 7 };
	uint64_t *old = (void *)(d->mine.base + WORD_CAS), first, second, now;

	step(d, "CAS");
	op.a = 7;
	op.b = 9;
	if (cli_talk_ask(d->child.fd, &msg, TALK_POKE) || cli_run(d->queue, &op))
		return -1;
	first = *old;
	op.b = 11; /* still expects 7: must not swap */
	if (cli_run(d->queue, &op) || owner_word(d, WORD_CAS, &now))
		return -1;
	second = *old;
	if (first != 7 || second != 9 || now != 9)
		return cli_fail("CAS found %" PRIu64 ", then %" PRIu64 ", and left %" PRIu64
				" instead of 7, 9 and 9",
				first, second, now);
	printf("compare and swap 7 -> 9 found 7 and swapped; 7 -> 11 found 9 and left it\n");
	return 0;
}

/* Both sides add to one word at the same time. */
static int show_faa(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_FAA, WORD_FAA, 8);
	struct cli_talk add = { .region = d->plain.region, .offset = WORD_FAA, .value = ADDS };
	uint64_t total, mine = 0;

	step(d, "FAA");
	op.a = 1;
	if (cli_run(d->queue, &op) || cli_talk_send(d->child.fd, &add, TALK_ADD) ||
	    cli_talk_recv(d->child.fd, &add, TALK_READY, CLI_TALK_PATIENCE_MS))
		return -1;
	for (mine = 1; mine < ROUNDS || !cli_talk_pending(d->child.fd); mine++)
		if (cli_run(d->queue, &op))
			return -1;
	if (cli_talk_recv(d->child.fd, &add, TALK_DONE, CLI_TALK_PATIENCE_MS) ||
	    owner_word(d, WORD_FAA, &total))
		return -1;
	if (total != mine + ADDS)
		return cli_fail("FAA: %" PRIu64 " + %u additions made %" PRIu64, mine, ADDS, total);
	printf("%" PRIu64 " fetch-and-adds from here while process %d added %u times itself:\n"
	       "             the sum is %" PRIu64 ", none was lost\n",
	       mine, d->child.pid, ADDS, total);
	return 0;
}

static int show_big(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_WRITE, 0, BIG);
	uint64_t then, ns;
	char time[32], rate[32];

	step(d, "64 MiB");
	cli_pattern_fill(d->mine.base, BIG, 4, 0);
	then = cli_now();
	if (cli_run(d->queue, &op))
		return -1;
	ns = cli_now() - then;
	if (owner_checks(d, d->plain.region, BIG, 4))
		return -1;
	printf("wrote 67108864 bytes over %s in %s, %s; process %d compared every one\n", d->path,
	       cli_text_time(time, sizeof(time), ns), cli_text_rate(rate, sizeof(rate), BIG, ns),
	       d->child.pid);
	return 0;
}

static int show_shared(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_WRITE, 0, 8);
	struct dma_seg shared = cli_remote(&d->shared.desc);
	struct xtal_path_info info;
	char time[32];

	step(d, "alloc");
	op.remote = cli_part(&shared, 0, 8);
	cli_pattern_fill(d->mine.base, 8, 5, 0);
	if (time_op(d, &op, time) || owner_checks(d, d->shared.region, 8, 5))
		return -1;
	if (xtal_path_query(d->queue, &d->shared.desc, -1, &info))
		return cli_fail("no path: %s", xtal_last_error());
	printf("the same 8 bytes to memory from xtal_alloc(): over %s in %s\n", info.name, time);
	return 0;
}

static int show_refusal(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_WRITE, 0, BLOCK);
	struct dma_cr cr = { 0 };

	step(d, "guard");
	op.remote.token_value ^= 1;
	cli_pattern_fill(d->mine.base, BLOCK, 6, 0);
	if (cli_run_status(d->queue, &op, &cr))
		return -1;
	if (cr.status == DMA_CR_SUCCESS)
		return cli_fail("a write with a wrong token was let through");
	if (owner_checks(d, d->plain.region, BLOCK, 4))
		return -1;
	printf("a write with a wrong token: %s, and not one byte changed\n",
	       xtal_status_name(cr.status));
	return 0;
}

static int show_death(struct demo *d)
{
	struct cli_op op = op_of(d, CLI_WRITE, 0, BLOCK);
	int pid = d->child.pid;
	struct dma_cr cr = { 0 };
	uint64_t then;
	char time[32];

	step(d, "death");
	kill(pid, SIGKILL);
	if (!cli_child_fate(&d->child, 5000))
		return cli_fail("process %d does not die", pid);
	then = cli_now();
	if (cli_run_status(d->queue, &op, &cr))
		return -1;
	if (cr.status == DMA_CR_SUCCESS)
		return cli_fail("a write to a dead process succeeded");
	printf("killed process %d; the next write ends after %s with %s: no hang, no crash\n", pid,
	       cli_text_time(time, sizeof(time), cli_now() - then), xtal_status_name(cr.status));
	return 0;
}

static int run_demo(struct demo *d)
{
	static int (*const steps[])(struct demo *) = {
		meet,     reach,    show_write,  show_read,    show_notify, show_cas,
		show_faa, show_big, show_shared, show_refusal, show_death,
	};

	d->times = cli_histogram_new();
	if (!d->times)
		return cli_fail("no memory");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (cli_interrupted() || steps[i](d))
			return -1;
	return 0;
}

static void end_demo(struct demo *d)
{
	if (d->queue)
		dma_free_queue(d->queue);
	if (d->mine.seg)
		cli_region_drop(&d->port, &d->mine);
	if (d->port.ctx)
		cli_port_close(&d->port);
	cli_child_stop(&d->child);
	cli_histogram_free(d->times);
}

int cli_demo(int argc, char **argv)
{
	static const struct option options[] = {
		{ "api", required_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool urma = false;
	struct demo d = { .child = CLI_NO_CHILD };
	const char *fate;
	int c, rc;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'a' && (strcmp(optarg, "urma") == 0 || strcmp(optarg, "cdma") == 0)) {
			urma = strcmp(optarg, "urma") == 0;
			continue;
		}
		if (c == 'a')
			return cli_usage("demo", "there is no api '%s'; cdma and urma are", optarg);
		if (c != 'h')
			return cli_bad_option("demo", c, argv, options);
		fputs(help, stdout);
		return CLI_OK;
	}
	if (optind < argc)
		return cli_usage("demo", "what is '%s'? demo takes no arguments", argv[optind]);
	if (urma)
		return cli_demo_urma();
	cli_catch_interrupts();
	printf("Xtal %s. Two ordinary processes; one reads and writes the other's memory as DMA\n"
	       "hardware would, without that hardware, without root, without a kernel module.\n\n",
	       xtal_version());
	rc = run_demo(&d);
	if (rc && !cli_interrupted()) {
		printf("FAILED\n");
		cli_die(CLI_FAILED, "step %d: %s", d.step, cli_reason());
		fate = cli_child_fate(&d.child, 100);
		if (fate)
			cli_die(CLI_FAILED, "the owner is gone: %s", fate);
	}
	end_demo(&d);
	if (cli_interrupted()) {
		printf("interrupted\n");
		return CLI_INTERRUPTED;
	}
	if (rc)
		return CLI_FAILED;
	printf("\nAll was as it should be. Times of small operations are medians of %u.\n"
	       "Next: 'xtal perf write_lat -s 8' measures, 'xtal info' tells what works here and\n"
	       "why, 'man xtal' explains, and examples/ has programs to start from.\n",
	       ROUNDS);
	return CLI_OK;
}
