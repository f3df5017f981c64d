/* SPDX-License-Identifier: MIT */
/* The xtal command: looks at the first word and hands over. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "xtal.h"

static const struct cli_command commands[] = {
	{ "info", "devices, limits, which paths work here and why, all settings", cli_info },
	{ "demo", "two processes, one reading and writing the other's memory", cli_demo },
	{ "perf", "latency and bandwidth of writes, reads, notifies, atomics and messages",
	  cli_perf },
	{ "key", "make the key that hosts share, or tell which one a file holds", cli_key },
	{ "owner", NULL, cli_owner },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* What was printed has arrived, or the exit status tells. */
static int finish(int status)
{
	if (fflush(stdout) != 0 && status == CLI_OK)
		return cli_die(CLI_FAILED, "the output could not be written");
	return status;
}

static int unknown_command(const char *word)
{
	struct cli_guess guess = { .word = word, .distance = CLI_GUESS_NEAR };

	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].summary)
			cli_guess_try(&guess, commands[i].name);
	if (guess.found)
		return cli_usage(NULL, "there is no command '%s'; did you mean %s?", word,
				 guess.found);
	return cli_usage(NULL, "there is no command '%s'", word);
}

static int print_help(void)
{
	printf("Usage: xtal COMMAND [OPTIONS]\n"
	       "\n"
	       "Xtal %s moves bytes between processes as DMA hardware would: one side reads, writes\n"
	       "and does atomics on the other's memory while that one sleeps. It needs no special\n"
	       "hardware, no root and no kernel module.\n"
	       "\n",
	       xtal_version());
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].summary)
			printf("  %-6s %s\n", commands[i].name, commands[i].summary);
	printf("\n"
	       "  --help      this text; 'xtal COMMAND --help' tells about a command\n"
	       "  --version   the version of the command and of the library\n"
	       "\n"
	       "Start with 'xtal demo'. The manual: man xtal.\n");
	return CLI_OK;
}

static int print_version(void)
{
	printf("xtal %s\n", XTAL_VERSION);
	if (strcmp(XTAL_VERSION, xtal_version()) != 0)
		printf("libxtal %s\n", xtal_version());
	return CLI_OK;
}

/* A stream that the caller has closed stays useless: what is opened later must not get its number,
 * and what is printed. */
static void keep_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	keep_streams();
	if (!word) {
		print_help();
		return CLI_USAGE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
		return finish(print_help());
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return finish(print_version());
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return finish(commands[i].run(argc - 1, argv + 1));
	if (word[0] == '-')
		return cli_usage(NULL, "unknown option %s", word);
	return unknown_command(word);
}
