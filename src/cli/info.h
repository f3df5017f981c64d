/* SPDX-License-Identifier: MIT */
/* What `xtal info` finds out, and the two ways to show it. */
#ifndef XTAL_CLI_INFO_H
#define XTAL_CLI_INFO_H

#include <stdint.h>

#include "cli/trial.h"

/* Kinds of memory that are tried, in this order. */
enum info_target {
	INFO_OWN,    /* this process's own */
	INFO_XTAL,   /* another process's, from xtal_alloc */
	INFO_MALLOC, /* another process's, from malloc */
};
#define INFO_TARGETS 3

/* One way to reach memory, tried by a process that is allowed no other. */
struct info_path {
	uint32_t kind; /* enum xtal_path_kind */
	bool works;
	char reason[512];
	uint64_t write_ns; /* as in struct cli_trial */
};
#define INFO_PATHS 5

struct info {
	struct dma_device *devices;
	uint32_t count;
	int owner_pid;
	struct cli_trial trial[INFO_TARGETS];
	struct info_path path[INFO_PATHS];
};

const char *info_target_name(enum info_target target);
/* What CDMA knows of a device, or NULL: it has no EID of 32 bits. */
const struct dma_device *info_cdma(const struct info *info, const char *name);

void info_print_text(const struct info *info);
int info_print_json(const struct info *info); /* 0, or -1 with cli_reason */

#endif
