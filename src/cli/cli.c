/* SPDX-License-Identifier: MIT */
/* The words and numbers that every part of the xtal command shares. No Xtal calls here. */
#include "cli/cli.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __thread char reason[512];
static volatile sig_atomic_t interrupted;

int cli_fail(const char *format, ...)
{
	char text[sizeof(reason)]; /* an argument may be the old reason */
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(reason, text, sizeof(reason));
	return -1;
}

const char *cli_reason(void)
{
	return reason;
}

static void complain(const char *format, va_list args)
{
	fflush(stdout);
	fputs("xtal: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int cli_die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return status;
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	fprintf(stderr, "Try 'xtal%s%s --help'.\n", command ? " " : "", command ? command : "");
	return CLI_USAGE;
}

void cli_guess_try(struct cli_guess *guess, const char *known)
{
	unsigned distance = xtal_text_distance(guess->word, known);

	if (distance < guess->distance) {
		guess->distance = distance;
		guess->found = known;
	}
}

int cli_bad_option(const char *command, int code, char **argv, const struct option *known)
{
	char word[64];
	const char *given = argv[optind - 1];
	struct cli_guess guess = { .word = word, .distance = CLI_GUESS_NEAR };

	/* optopt is the letter of a short option, 0 or the value of a long one. */
	if (strncmp(given, "--", 2) != 0) {
		if (code == ':')
			return cli_usage(command, "option -%c needs a value", optopt);
		return cli_usage(command, "unknown option -%c", optopt);
	}
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + 2, "="), given + 2);
	if (code == ':')
		return cli_usage(command, "option --%s needs a value", word);
	if (optopt != 0)
		return cli_usage(command, "option --%s takes no value", word);
	for (const struct option *o = known; o->name; o++)
		if (strncmp(o->name, word, strlen(word)) == 0)
			return cli_usage(command, "option --%s is ambiguous", word);
	for (const struct option *o = known; o->name; o++)
		cli_guess_try(&guess, o->name);
	if (guess.found)
		return cli_usage(command, "unknown option --%s; did you mean --%s?", word,
				 guess.found);
	return cli_usage(command, "unknown option --%s", word);
}

static void on_interrupt(int signo)
{
	(void)signo;
	interrupted = 1;
}

void cli_catch_interrupts(void)
{
	/* No SA_RESTART: a blocked read shall end too. */
	struct sigaction act = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

bool cli_interrupted(void)
{
	return interrupted != 0;
}

bool cli_parse_size(const char *text, uint64_t max, uint64_t *out)
{
	static const char suffixes[] = "kmg";
	const char *suffix;
	unsigned long long value;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	suffix = *end ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;
	if (suffix) {
		shift = 10 * (unsigned)(suffix - suffixes + 1);
		end++;
	}
	if (*end || value > (max >> shift))
		return false;
	*out = value << shift;
	return true;
}

const char *cli_text_size(char *buf, size_t size, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned u = 0;

	while (u < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, size, "%llu %s", (unsigned long long)bytes, unit[u]);
	return buf;
}

const char *cli_text_time(char *buf, size_t size, uint64_t ns)
{
	double t = (double)ns;

	if (ns < 1000)
		snprintf(buf, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 1000000)
		snprintf(buf, size, "%.*f us", ns < 100000 ? 2 : 0, t / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, size, "%.2f ms", t / 1e6);
	else
		snprintf(buf, size, "%.2f s", t / 1e9);
	return buf;
}

const char *cli_text_rate(char *buf, size_t size, uint64_t bytes, uint64_t ns)
{
	double rate = (double)bytes * 1e9 / (double)(ns ? ns : 1);

	if (rate >= 1e9)
		snprintf(buf, size, "%.2f GB/s", rate / 1e9);
	else
		snprintf(buf, size, "%.1f MB/s", rate / 1e6);
	return buf;
}

void cli_print_wrapped(const char *text, int column)
{
	int at = column;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at > column && at + 1 + len > 96) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

uint64_t cli_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
