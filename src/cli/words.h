/* SPDX-License-Identifier: MIT */
/* The operations that the commands speak of, whatever the API. */
#ifndef XTAL_CLI_WORDS_H
#define XTAL_CLI_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum cli_opcode {
	CLI_WRITE,
	CLI_READ,
	CLI_NOTIFY,
	CLI_CAS,
	CLI_FAA,
	CLI_SWAP,
	CLI_SEND,
	CLI_WRITE_IMM,
};
#define CLI_OPCODE_COUNT 8
const char *cli_opcode_name(uint32_t op); /* "write" ... "write_imm" */

/* Works on a word of the target's, and fetches the old value. */
bool cli_opcode_is_atomic(uint32_t op);
/* Local memory is what is sent: a latency test of it is a ping-pong. */
bool cli_opcode_sends(uint32_t op);
/* Takes a receive that the other side has posted. */
bool cli_opcode_receives(uint32_t op);

#endif
