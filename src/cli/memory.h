/* SPDX-License-Identifier: MIT */
/* The kinds of memory that the commands move bytes in. */
#ifndef XTAL_CLI_MEMORY_H
#define XTAL_CLI_MEMORY_H

#include <stdint.h>

enum cli_memory {
	CLI_MEMORY_XTAL,   /* xtal_alloc */
	CLI_MEMORY_MALLOC, /* the program's own, from aligned_alloc */
};
#define CLI_MEMORY_COUNT 2
const char *cli_memory_name(enum cli_memory memory); /* "xtal_alloc", "malloc" */

/* Rounds *len up to whole pages. Zero-filled, page aligned, every page touched; NULL with
 * cli_reason. */
void *cli_memory_get(enum cli_memory memory, uint64_t *len);
void cli_memory_put(enum cli_memory memory, void *base);

#endif
