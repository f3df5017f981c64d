/* SPDX-License-Identifier: MIT */
/*
 * What every part of the xtal command shares: exit statuses, words for errors, reading
 * numbers from the command line and writing them for people.
 *
 * The command is a program like any other: it knows the public headers and nothing else of
 * the engine.
 */
#ifndef XTAL_CLI_CLI_H
#define XTAL_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option;

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,        /* the engine refused, a check failed, a process died */
	CLI_USAGE = 2,         /* the command line makes no sense */
	CLI_INTERRUPTED = 130, /* Ctrl-C */
};

/* One command of `xtal`; argv[0] is its name. Returns the exit status. */
struct cli_command {
	const char *name;
	const char *summary; /* NULL: internal, not in the list */
	int (*run)(int argc, char **argv);
};

int cli_info(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_perf(int argc, char **argv);
int cli_key(int argc, char **argv);
int cli_owner(int argc, char **argv);

/* Remembers a sentence for this thread (see cli_reason) and returns -1. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The sentence of this thread's last cli_fail, "" before. */
const char *cli_reason(void);
/* Writes "xtal: sentence" to stderr and returns status. */
int cli_die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A mistake on the command line of a command: the sentence, then where help is. CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says which option getopt_long (opterr 0, optstring with leading ':') objected to, with the
 * nearest known name. CLI_USAGE. */
int cli_bad_option(const char *command, int code, char **argv, const struct option *known);

/* The word tried that is nearest to a mistyped one: set word and .distance = CLI_GUESS_NEAR,
 * try all; found stays NULL when none is near. */
struct cli_guess {
	const char *word, *found;
	unsigned distance;
};
#define CLI_GUESS_NEAR 3
void cli_guess_try(struct cli_guess *guess, const char *known);

/* Ctrl-C and SIGTERM set a flag instead of killing, so that loops end tidily. */
void cli_catch_interrupts(void);
/* True once the user asked to stop. */
bool cli_interrupted(void);

/* Whole-string number with optional suffix k, m, g (1024). False: not one, or > max. */
bool cli_parse_size(const char *text, uint64_t max, uint64_t *out);

/* These write into buf (32 bytes are enough) and return it. */
const char *cli_text_size(char *buf, size_t size, uint64_t bytes); /* "8 B", "64 KiB" */
const char *cli_text_time(char *buf, size_t size, uint64_t ns);    /* "142 ns", "8.31 ms" */
const char *cli_text_rate(char *buf, size_t size, uint64_t bytes, uint64_t ns); /* "7.4 GB/s" */

/* Prints text that begins at this column, wrapped at 96, and ends the line. */
void cli_print_wrapped(const char *text, int column);

/* How all JSON of the command is written: in order, microseconds to the nanosecond. */
#define CLI_JSON_FLAGS (JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12))

uint64_t cli_now(void); /* monotonic nanoseconds, the same clock in every process */

#endif
