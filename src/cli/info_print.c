/* SPDX-License-Identifier: MIT */
/* `xtal info` for people and, with --json, for programs. */
#include "cli/info.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Capabilities by their name in struct cdma_device_cap, and in words. */
static unsigned capabilities(const struct cdma_device_cap *cap, const char *name[16],
			     const char *words[16], uint64_t value[16])
{
	unsigned n = 0;

#define CAP(field, text) (name[n] = #field, words[n] = (text), value[n] = cap->field, n++)
	CAP(max_jfs, "queues per context");
	CAP(max_jfs_depth, "operations per queue");
	CAP(max_jfc, "completion queues per context");
	CAP(max_jfc_depth, "completions per queue");
	CAP(max_msg_size, "bytes per operation");
	CAP(max_atomic_size, "bytes per atomic");
	CAP(max_jfs_inline_len, "bytes inline");
	CAP(max_jfs_sge, "local pieces per operation");
	CAP(max_jfs_rsge, "remote pieces per operation");
	CAP(max_eid_cnt, "addresses");
	CAP(ceq_cnt, "event queues");
	CAP(trans_mode, "transport modes (bits)");
	CAP(page_size_cap, "page sizes (bits)");
#undef CAP
	return n;
}

/* The EIDs of 32 bits that CDMA programs use: the address as a number, site numbers. */
static void print_eids(const struct dma_device *dev)
{
	if (!dev)
		printf("no CDMA EID (none in [eids])");
	for (unsigned i = 0; dev && i < dev->attr.eu_num; i++)
		printf(dev->attr.eus[i].eid.dw0 > 0xffffff ? "%s0x%08x" : "%s%u", i ? ", " : "EID ",
		       dev->attr.eus[i].eid.dw0);
}

static void print_devices(const struct info *info)
{
	struct xtal_device_info d;
	char said[sizeof(d.reason)] = "";

	for (unsigned i = 0; xtal_device_query(i, &d) == 0; i++) {
		if (!d.name[0]) {
			printf("  %-8s ", "not here");
			cli_print_wrapped(d.reason, 11);
			continue;
		}
		printf("  %-8s %-16s on %s, ", d.name, d.address, d.interface);
		print_eids(info_cdma(info, d.name));
		printf(", %s\n", d.loopback    ? "this host only"
				 : d.encrypted ? "TLS between hosts"
					       : "NOT encrypted between hosts");
		if (d.usable)
			continue;
		printf("  %-8s cannot be used: ", "");
		cli_print_wrapped(strcmp(said, d.reason) != 0 ? d.reason : "the same", 27);
		memcpy(said, d.reason, sizeof(said));
	}
}

static void print_capabilities(const struct cdma_device_cap *cap)
{
	const char *name[16], *words[16];
	uint64_t value[16];
	unsigned n = capabilities(cap, name, words, value);

	for (unsigned i = 0; i < n; i++)
		printf("    %12llu  %s\n", (unsigned long long)value[i], words[i]);
}

static void print_path(const struct info_path *path)
{
	char time[32] = "";

	if (path->works)
		cli_text_time(time, sizeof(time), path->write_ns);
	printf("  %-5s %-6s %8s ", xtal_path_name(path->kind), path->works ? "works" : "no", time);
	cli_print_wrapped(path->reason, 24);
}

static void print_memory(const struct cli_trial *trial, const char *what)
{
	char time[32] = "";

	if (trial->works)
		cli_text_time(time, sizeof(time), trial->write_ns);
	printf("  %-10s  %-4s %7s ", what, trial->works ? trial->path.name : "none", time);
	cli_print_wrapped(trial->works ? trial->path.reason : trial->problem, 27);
}

/* What this machine permits: in a word, and what that means. */
static const char *adoption(char *reason, size_t size, const char **means)
{
	switch ((enum xtal_adoption)xtal_adoption_query(reason, size)) {
	case XTAL_ADOPTION_NONE:
		*means = "not on this machine";
		return "none";
	case XTAL_ADOPTION_USER:
		*means = "on request only (xtal_share, XTAL_ADOPT=always): system calls into "
			 "the memory fail meanwhile";
		return "user";
	case XTAL_ADOPTION_FULL:
		break;
	}
	*means = "by itself, too (XTAL_ADOPT=auto): system calls into the memory wait meanwhile";
	return "full";
}

static void print_adoption(void)
{
	char reason[256], text[512];
	const char *means, *level = adoption(reason, sizeof(reason), &means);

	snprintf(text, sizeof(text), "%s; %s", means, reason);
	printf("\nAdoption: private memory becomes mappable in place\n  %-5s ", level);
	cli_print_wrapped(text, 8);
}

void info_print_text(const struct info *info)
{
	struct xtal_setting s;

	printf("Xtal %s: reads, writes and atomics on other processes' memory, in user space.\n",
	       xtal_version());
	printf("\nDevices\n");
	print_devices(info);
	printf("  Each has\n");
	print_capabilities(&info->devices[0].attr.dev_cap);

	printf("\nPaths, each tried just now by a process that may use no other\n");
	for (unsigned i = 0; i < INFO_PATHS; i++)
		print_path(&info->path[i]);

	printf("\nMemory, and the path that is taken to it\n");
	print_memory(&info->trial[INFO_OWN], "own");
	print_memory(&info->trial[INFO_XTAL], "xtal_alloc");
	print_memory(&info->trial[INFO_MALLOC], "malloc");

	print_adoption();

	printf("\nSettings\n");
	for (unsigned i = 0; xtal_setting_at(i, &s) == 0; i++) {
		printf("  %-20s %-14s from %s\n  %20s ", s.name, s.value[0] ? s.value : "\"\"",
		       s.origin, "");
		cli_print_wrapped(s.description, 23);
	}
}

static json_t *json_device(const struct info *info, const struct xtal_device_info *d)
{
	const struct dma_device *dev = info_cdma(info, d->name);
	const char *name[16], *words[16];
	uint64_t value[16];
	json_t *caps = json_object(), *eids = json_array(), *device;
	unsigned n = dev ? capabilities(&dev->attr.dev_cap, name, words, value) : 0;

	for (unsigned i = 0; i < n; i++)
		json_object_set_new(caps, name[i], json_integer((json_int_t)value[i]));
	for (unsigned i = 0; dev && i < dev->attr.eu_num; i++)
		json_array_append_new(eids, json_integer(dev->attr.eus[i].eid.dw0));
	device = json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:b, s:s, s:o}", "name", d->name, "eid",
			   d->address, "interface", d->interface, "cdma_eids", eids, "loopback",
			   d->loopback, "encrypted", d->encrypted, "usable", d->usable, "reason",
			   d->reason, "capabilities", caps);
	if (device && dev)
		json_object_set_new(device, "eid_dw0", json_integer(dev->attr.eid.dw0));
	return device;
}

static json_t *json_trial(const struct cli_trial *trial, const char *what)
{
	json_t *candidates = json_array();

	for (uint32_t i = 0; i < trial->path.candidates && i < XTAL_PATH_COUNT; i++) {
		const struct xtal_path_verdict *v = &trial->path.candidate[i];

		json_array_append_new(candidates,
				      json_pack("{s:s, s:b, s:s}", "name", xtal_path_name(v->kind),
						"usable", v->usable != 0, "reason", v->reason));
	}
	return json_pack("{s:s, s:b, s:s, s:s, s:I, s:o}", "name", what, "works", trial->works,
			 "path", trial->works ? trial->path.name : "none", "reason",
			 trial->works ? trial->path.reason : trial->problem, "write_8_bytes_ns",
			 (json_int_t)trial->write_ns, "candidates", candidates);
}

static json_t *json_path(const struct info_path *path)
{
	return json_pack("{s:s, s:b, s:s, s:I}", "name", xtal_path_name(path->kind), "usable",
			 path->works, "reason", path->reason, "write_8_bytes_ns",
			 (json_int_t)path->write_ns);
}

static json_t *json_adoption(void)
{
	char reason[256];
	const char *means, *level = adoption(reason, sizeof(reason), &means);

	return json_pack("{s:s, s:s, s:s}", "level", level, "means", means, "reason", reason);
}

int info_print_json(const struct info *info)
{
	json_t *devices = json_array(), *paths = json_array(), *settings = json_array();
	json_t *memory = json_array(), *missing = json_array(), *root;
	struct xtal_device_info d;
	struct xtal_setting s;
	int rc;

	for (unsigned i = 0; xtal_device_query(i, &d) == 0; i++)
		json_array_append_new(d.name[0] ? devices : missing,
				      d.name[0] ? json_device(info, &d) : json_string(d.reason));
	for (unsigned i = 0; i < INFO_PATHS; i++)
		json_array_append_new(paths, json_path(&info->path[i]));
	for (unsigned i = 0; i < INFO_TARGETS; i++)
		json_array_append_new(
			memory, json_trial(&info->trial[i], info_target_name((enum info_target)i)));
	for (unsigned i = 0; xtal_setting_at(i, &s) == 0; i++)
		json_array_append_new(settings, json_pack("{s:s, s:s, s:s, s:s}", "name", s.name,
							  "value", s.value, "origin", s.origin,
							  "description", s.description));
	root = json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "devices", devices, "paths", paths,
			 "settings", settings, "version", xtal_version(), "memory", memory,
			 "missing_devices", missing, "adoption", json_adoption());
	if (!root)
		return cli_fail("the report could not be put into JSON");
	rc = json_dumpf(root, stdout, CLI_JSON_FLAGS);
	putchar('\n');
	json_decref(root);
	return rc ? cli_fail("the report could not be written") : 0;
}
