/* SPDX-License-Identifier: MIT */
/* Memory of both kinds, as far as the system has it to give. */
#include "cli/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "xtal.h"

const char *cli_memory_name(enum cli_memory memory)
{
	return memory == CLI_MEMORY_XTAL ? "xtal_alloc" : "malloc";
}

/* Bytes that the system has to give without killing somebody for them; UINT64_MAX: not told. */
static uint64_t available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = kib * 1024;
	if (f)
		fclose(f);
	return bytes;
}

void *cli_memory_get(enum cli_memory memory, uint64_t *size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), room = available();
	uint64_t len = (*size + page - 1) / page * page;
	void *base;

	/* Both kinds would be promised, and the process killed when it touches them. */
	if (len > room) {
		cli_fail("this side needs %llu MiB of %s memory, and %llu MiB are available",
			 (unsigned long long)(len >> 20), cli_memory_name(memory),
			 (unsigned long long)(room >> 20));
		return NULL;
	}
	if (memory == CLI_MEMORY_XTAL) {
		base = xtal_alloc(len);
		if (!base)
			cli_fail("xtal_alloc: %s", xtal_last_error());
	} else {
		base = aligned_alloc(page, len);
		if (!base)
			cli_fail("no memory for %llu bytes", (unsigned long long)len);
	}
	if (!base)
		return NULL;
	memset(base, 0, len);
	*size = len;
	return base;
}

void cli_memory_put(enum cli_memory memory, void *base)
{
	if (memory == CLI_MEMORY_XTAL)
		xtal_free(base);
	else
		free(base);
}
