/* SPDX-License-Identifier: MIT */
/* `xtal info`: what there is, and which paths really work here, tried with a second process. */
#include "cli/info.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/port.h"
#include "cli/talk.h"

#define TRIAL_BYTES  65536u
#define TIMED_WRITES 1001u

static const char help[] =
	"Usage: xtal info [--json]\n"
	"\n"
	"Shows the devices with their addresses, and why one cannot be used; capabilities and\n"
	"limits; which paths to another process's memory work here, and why or why not; and every\n"
	"setting with its origin.\n"
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

const struct dma_device *info_cdma(const struct info *info, const char *name)
{
	for (uint32_t i = 0; i < info->count; i++)
		if (strcmp(info->devices[i].name, name) == 0)
			return &info->devices[i];
	return NULL;
}

/* A path is tried by a process that is allowed nothing else. */
static const uint32_t forced[] = { XTAL_PATH_MAP, XTAL_PATH_CMA, XTAL_PATH_RING, XTAL_PATH_TCP };
#define FORCED (sizeof(forced) / sizeof(forced[0]))

static int ask_for_memory(struct cli_child *owner, enum cli_memory memory,
			  struct xtal_descriptor *out)
{
	struct cli_talk msg = { .value = memory, .len = CLI_TRIAL_BYTES };

	if (cli_talk_ask(owner->fd, &msg, TALK_ALLOC))
		return -1;
	*out = msg.desc;
	return 0;
}

/* Lets the helper try the target over its only path. */
static void try_forced(struct cli_child *helper, const struct xtal_descriptor *target,
		       struct info_path *path)
{
	struct cli_talk msg = { .desc = *target, .value = path->kind };

	if (cli_talk_ask(helper->fd, &msg, TALK_TRY)) {
		snprintf(path->reason, sizeof(path->reason), "%s", cli_reason());
		return;
	}
	path->works = msg.value != 0 && strcmp(msg.result.path, xtal_path_name(path->kind)) == 0;
	path->write_ns = msg.result.ns;
	snprintf(path->reason, sizeof(path->reason), "%s", path->works ? msg.result.why : msg.text);
}

/* This process tries everything as a program would, with the settings in force. */
static int try_default(struct info *info, const struct xtal_descriptor target[2])
{
	struct xtal_descriptor own;
	struct cli_region scratch;
	struct cli_port port;
	int rc = -1;

	if (cli_port_open(&port, -1))
		return -1;
	if (cli_region_make(&port, CLI_MEMORY_MALLOC, 3 * CLI_TRIAL_BYTES, &scratch) == 0) {
		own = scratch.desc;
		own.va += 2 * CLI_TRIAL_BYTES;
		own.len = CLI_TRIAL_BYTES;
		cli_try(&port, &scratch, &own, &info->trial[INFO_OWN]);
		cli_try(&port, &scratch, &target[0], &info->trial[INFO_XTAL]);
		cli_try(&port, &scratch, &target[1], &info->trial[INFO_MALLOC]);
		cli_region_drop(&port, &scratch);
		rc = 0;
	}
	cli_port_close(&port);
	return rc;
}

static int try_all(struct info *info, struct cli_child *owner, struct cli_child *listener,
		   struct cli_child helper[FORCED])
{
	const struct cli_trial *own = &info->trial[INFO_OWN];
	struct xtal_descriptor target[3];

	/* Every process is forked off before this one opens a context. */
	if (cli_child_start(owner, NULL))
		return -1;
	/* On the loopback address only those listen for TCP who say so. */
	if (cli_child_start(listener, xtal_path_name(XTAL_PATH_TCP)))
		return -1;
	info->owner_pid = owner->pid;
	for (unsigned i = 0; i < FORCED; i++)
		if (cli_child_start(&helper[i], xtal_path_name(forced[i])))
			return -1;
	if (ask_for_memory(owner, CLI_MEMORY_XTAL, &target[0]) ||
	    ask_for_memory(owner, CLI_MEMORY_MALLOC, &target[1]) ||
	    ask_for_memory(listener, CLI_MEMORY_MALLOC, &target[2]) || try_default(info, target))
		return -1;
	info->path[0] = (struct info_path){ .kind = XTAL_PATH_SELF, .works = own->works };
	info->path[0].write_ns = own->write_ns;
	snprintf(info->path[0].reason, sizeof(info->path[0].reason), "%s",
		 own->works ? own->path.reason : own->problem);
	for (unsigned i = 0; i < FORCED; i++) {
		unsigned t = forced[i] == XTAL_PATH_MAP ? 0 : forced[i] == XTAL_PATH_TCP ? 2 : 1;

		info->path[1 + i].kind = forced[i];
		try_forced(&helper[i], &target[t], &info->path[1 + i]);
	}
	return 0;
}

static int gather(struct info *info)
{
	struct cli_child owner = CLI_NO_CHILD, listener = CLI_NO_CHILD, helper[FORCED];
	int rc;

	for (unsigned i = 0; i < FORCED; i++)
		helper[i] = CLI_NO_CHILD;
	rc = try_all(info, &owner, &listener, helper);
	for (unsigned i = 0; i < FORCED; i++)
		cli_child_stop(&helper[i]);
	cli_child_stop(&owner);
	cli_child_stop(&listener);
	if (rc)
		return -1;
	info->devices = dma_get_device_list(&info->count);
	if (!info->devices || info->count == 0)
		return cli_fail("no device: %s", xtal_last_error());
	return 0;
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
		return cli_die(CLI_FAILED, "%s", cli_reason());
	if (!json)
		info_print_text(&info);
	else if (info_print_json(&info))
		rc = cli_die(CLI_FAILED, "%s", cli_reason());
	reachable = info.trial[INFO_XTAL].works && info.trial[INFO_MALLOC].works;
	dma_free_device_list(info.devices, info.count);
	return rc || !reachable ? CLI_FAILED : CLI_OK;
}
