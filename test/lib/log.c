/* SPDX-License-Identifier: MIT */
/* The log in memory: a file without a name, which is opened through /proc for each line. */
#include "lib/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int file = -1;

const char *log_setting(void)
{
	static char text[64];

	file = memfd_create("log", 0);
	snprintf(text, sizeof(text), "XTAL_LOG=/proc/%d/fd/%d", (int)getpid(), file);
	return text;
}

void log_empty(void)
{
	assert_int_equal(ftruncate(file, 0), 0);
}

unsigned log_lines(const char *one, const char *two)
{
	struct stat s;
	unsigned n = 0;
	ssize_t got;
	char *text, *rest, *line;

	assert_int_equal(fstat(file, &s), 0);
	text = calloc(1, (size_t)s.st_size + 1);
	assert_non_null(text);
	got = pread(file, text, (size_t)s.st_size, 0);
	assert_true(got >= 0);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		n += (!one || strstr(line, one)) && (!two || strstr(line, two));
	free(text);
	return n;
}

void assert_logged(const char *one, const char *two)
{
	char all[4096];
	ssize_t got;

	if (log_lines(one, two))
		return;
	got = pread(file, all, sizeof(all) - 1, 0);
	all[got > 0 ? got : 0] = 0;
	print_error("no line with '%s' and '%s' in:\n%s", one, two ? two : "", all);
	fail();
}
