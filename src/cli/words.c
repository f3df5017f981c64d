/* SPDX-License-Identifier: MIT */
/* Names and classes of operations. */
#include "cli/words.h"

const char *cli_opcode_name(uint32_t op)
{
	static const char *const name[] = {
		[CLI_WRITE] = "write",   [CLI_READ] = "read",
		[CLI_NOTIFY] = "notify", [CLI_CAS] = "cas",
		[CLI_FAA] = "faa",       [CLI_SWAP] = "swap",
		[CLI_SEND] = "send",     [CLI_WRITE_IMM] = "write_imm",
	};

	return op < CLI_OPCODE_COUNT ? name[op] : "?";
}

bool cli_opcode_is_atomic(uint32_t op)
{
	return op == CLI_CAS || op == CLI_FAA || op == CLI_SWAP;
}

bool cli_opcode_sends(uint32_t op)
{
	return op == CLI_WRITE || op == CLI_NOTIFY || cli_opcode_receives(op);
}

bool cli_opcode_receives(uint32_t op)
{
	return op == CLI_SEND || op == CLI_WRITE_IMM;
}
