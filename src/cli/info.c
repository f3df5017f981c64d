/* SPDX-License-Identifier: MIT */
/* `xtal info`: what there is, and which paths really work here, tried with a second process. */
#include "cli/info.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/histogram.h"
#include "cli/pattern.h"
#include "cli/port.h"
#include "cli/talk.h"

#define TRIAL_BYTES  65536u
#define TIMED_WRITES 1001u

static const char help[] =
	"Usage: xtal info [--json]\n"
	"\n"
	"Shows the devices with their addresses, capabilities and limits; which paths to another\n"
	"process's memory work here, and why or why not; and every setting with its origin.\n"
	"The paths are tried: a second process is started, and bytes go there and back.\n"
	"\n"
	"  --json   the same for programs\n"
	"  --help   this text\n"
	"\n"
	"Exit status: 0, or 1 when there is no device or no way to reach another process.\n";

const char *info_target_name(enum info_target target)
{
	switch (target) {
	case INFO_OWN:
		return "own";
	case INFO_XTAL:
		return "xtal_alloc";
	case INFO_MALLOC:
		return "malloc";
	}
	return "?";
}

const char *info_eid_text(struct dev_eid eid, char *buf, size_t size)
{
	snprintf(buf, size, "%u.%u.%u.%u", eid.dw0 >> 24, eid.dw0 >> 16 & 255, eid.dw0 >> 8 & 255,
		 eid.dw0 & 255);
	return buf;
}

static int time_writes(struct dma_queue *queue, struct cli_op *op, uint64_t *ns)
{
	struct cli_histogram *h = cli_histogram_new();
	int rc = 0;

	if (!h)
		return cli_fail("no memory");
	for (unsigned i = 0; i < TIMED_WRITES && rc == 0; i++) {
		uint64_t then = cli_now();

		rc = cli_run(queue, op);
		cli_histogram_add(h, cli_now() - then);
	}
	*ns = cli_histogram_quantile(h, 0.5);
	cli_histogram_free(h);
	return rc;
}

/* Writes a pattern to the target, reads it back into other memory, compares. */
static int move_bytes(struct dma_queue *queue, struct cli_region *scratch,
		      const struct xtal_descriptor *target, struct info_trial *trial)
{
	struct dma_seg remote = cli_remote(target);
	struct cli_op write = {
		.code = CLI_WRITE,
		.local = cli_part(scratch->seg, 0, TRIAL_BYTES),
		.remote = cli_part(&remote, 0, TRIAL_BYTES),
	};
	struct cli_op read = {
		.code = CLI_READ,
		.local = cli_part(scratch->seg, TRIAL_BYTES, TRIAL_BYTES),
		.remote = write.remote,
	};
	size_t bad, first = 0;

	cli_pattern_fill(scratch->base, TRIAL_BYTES, target->va, 0);
	memset(scratch->base + TRIAL_BYTES, 0, TRIAL_BYTES);
	if (cli_run(queue, &write) || cli_run(queue, &read))
		return -1;
	bad = cli_pattern_check(scratch->base + TRIAL_BYTES, TRIAL_BYTES, target->va, 0, &first);
	if (bad)
		return cli_fail("%zu of %u bytes came back wrong, the first at offset %zu", bad,
				TRIAL_BYTES, first);
	write.local.len = write.remote.len = 8;
	return time_writes(queue, &write, &trial->write_ns);
}

static void try_target(struct cli_port *port, struct cli_region *scratch,
		       const struct xtal_descriptor *target, struct info_trial *trial)
{
	struct dma_queue *queue = cli_queue_make(port, target, 16);

	if (queue) {
		trial->works = move_bytes(queue, scratch, target, trial) == 0;
		if (xtal_path_query(queue, target, -1, &trial->path)) {
			trial->works = false;
			cli_fail("no answer about the path: %s", xtal_last_error());
		}
	}
	if (!trial->works)
		snprintf(trial->problem, sizeof(trial->problem), "%s", cli_reason());
	dma_free_queue(queue);
}

static int try_all(struct info *info, struct cli_child *child)
{
	struct cli_talk msg[2] = {
		{ .value = CLI_MEMORY_XTAL, .len = TRIAL_BYTES },
		{ .value = CLI_MEMORY_MALLOC, .len = TRIAL_BYTES },
	};
	struct cli_region scratch;
	struct cli_port port;
	int rc = -1;

	if (cli_port_open(&port))
		return -1;
	if (cli_region_make(&port, CLI_MEMORY_MALLOC, 3 * TRIAL_BYTES, &scratch) == 0) {
		struct xtal_descriptor own = scratch.desc;

		own.va += 2 * TRIAL_BYTES;
		own.len = TRIAL_BYTES;
		try_target(&port, &scratch, &own, &info->trial[INFO_OWN]);
		rc = 0;
		for (unsigned i = 0; i < 2 && rc == 0; i++) {
			rc = child->fd < 0 ? -1 : cli_talk_ask(child->fd, &msg[i], TALK_ALLOC);
			if (rc == 0)
				try_target(&port, &scratch, &msg[i].desc,
					   &info->trial[INFO_XTAL + i]);
		}
		cli_region_drop(&port, &scratch);
	}
	cli_port_close(&port);
	return rc;
}

/* What a trial's verdicts say about a path. */
static struct info_path verdict(const struct info_trial *trial, uint32_t kind)
{
	struct info_path p = { .kind = kind, .reason = trial->problem };

	for (uint32_t i = 0; i < trial->path.candidates && i < XTAL_PATH_COUNT; i++) {
		const struct xtal_path_verdict *v = &trial->path.candidate[i];

		if (v->kind != kind)
			continue;
		p.works = v->usable != 0;
		p.reason = v->reason;
	}
	if (!p.reason[0])
		p.reason = "not considered here";
	return p;
}

static int gather(struct info *info)
{
	struct cli_child child;
	int rc;

	/* The second process first: it is forked off, and this one is still plain. */
	rc = cli_child_start(&child);
	info->owner_pid = child.pid;
	for (unsigned i = INFO_XTAL; i <= INFO_MALLOC; i++)
		snprintf(info->trial[i].problem, sizeof(info->trial[i].problem), "%s",
			 rc ? cli_reason() : "not tried");
	info->devices = dma_get_device_list(&info->count);
	if (!info->devices || info->count == 0) {
		cli_child_stop(&child);
		return cli_fail("no device: %s", xtal_last_error());
	}
	rc |= try_all(info, &child);
	cli_child_stop(&child);
	info->path[0] = verdict(&info->trial[INFO_OWN], XTAL_PATH_SELF);
	info->path[1] = verdict(&info->trial[INFO_XTAL], XTAL_PATH_MAP);
	info->path[2] = verdict(&info->trial[INFO_MALLOC], XTAL_PATH_CMA);
	info->path[3] = verdict(&info->trial[INFO_MALLOC], XTAL_PATH_RING);
	return rc;
}

int cli_info(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct info info = { .owner_pid = -1 };
	bool json = false, reachable;
	int c, rc;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return CLI_OK;
		default:
			return cli_bad_option("info", c, argv, options);
		}
	}
	if (optind < argc)
		return cli_usage("info", "what is '%s'? info takes no arguments", argv[optind]);
	cli_catch_interrupts();
	rc = gather(&info);
	if (cli_interrupted())
		return CLI_INTERRUPTED;
	if (rc)
		cli_die(CLI_FAILED, "%s", cli_reason());
	if (!json)
		info_print_text(&info);
	else if (info_print_json(&info))
		rc = cli_die(CLI_FAILED, "%s", cli_reason());
	reachable = info.trial[INFO_XTAL].works && info.trial[INFO_MALLOC].works;
	dma_free_device_list(info.devices, info.count);
	return rc || !reachable ? CLI_FAILED : CLI_OK;
}
