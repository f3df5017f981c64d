/* SPDX-License-Identifier: MIT */
/* Names and classes of operations and memory. */
#include "cli/words.h"

const char *cli_memory_name(enum cli_memory memory)
{
	return memory == CLI_MEMORY_XTAL ? "xtal_alloc" : "malloc";
}

const char *cli_opcode_name(uint32_t op)
{
	static const char *const name[] = {
		[CLI_WRITE] = "write", [CLI_READ] = "read", [CLI_NOTIFY] = "notify",
		[CLI_CAS] = "cas",     [CLI_FAA] = "faa",
	};

	return op < CLI_OPCODE_COUNT ? name[op] : "?";
}

bool cli_opcode_is_atomic(uint32_t op)
{
	return op == CLI_CAS || op == CLI_FAA;
}

bool cli_opcode_sends(uint32_t op)
{
	return op == CLI_WRITE || op == CLI_NOTIFY;
}
