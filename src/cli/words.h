/* SPDX-License-Identifier: MIT */
/* The kinds of memory and the operations that the commands speak of, whatever the API. */
#ifndef XTAL_CLI_WORDS_H
#define XTAL_CLI_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum cli_memory {
	CLI_MEMORY_XTAL,   /* xtal_alloc */
	CLI_MEMORY_MALLOC, /* the program's own, from aligned_alloc */
};
#define CLI_MEMORY_COUNT 2
const char *cli_memory_name(enum cli_memory memory); /* "xtal_alloc", "malloc" */

enum cli_opcode {
	CLI_WRITE,
	CLI_READ,
	CLI_NOTIFY,
	CLI_CAS,
	CLI_FAA,
};
#define CLI_OPCODE_COUNT 5
const char *cli_opcode_name(uint32_t op); /* "write" ... "faa" */

/* Works on a word of the target's, and fetches the old value. */
bool cli_opcode_is_atomic(uint32_t op);
/* Local memory is what is sent: a latency test of it is a ping-pong. */
bool cli_opcode_sends(uint32_t op);

#endif
