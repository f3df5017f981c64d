/* SPDX-License-Identifier: MIT */
/* The log's destinations and levels, and each thread's last refusal. */
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/export.h"
#include "core/check.h"
#include "core/engine.h"
#include "os/env.h"
#include "os/proc.h"
#include "xtal.h"

#define LINE_SIZE 512
#define MAX_TAGS  4

static char destination[256] = "syslog";
static _Atomic int default_level = XTAL_LOG_WARNING;
static struct {
	const char *tag; /* static text of a front-end */
	_Atomic int level;
} tags[MAX_TAGS];
static _Atomic unsigned tag_count;
static _Thread_local char last_error[LINE_SIZE], explanation[LINE_SIZE];
static _Thread_local bool explained;

static const char *const words[] = { "fatal", "error", "warning", "info", "debug" };

int xtal_log_parse_level(const char *text)
{
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(words); i++)
		if (text && strcasecmp(text, words[i]) == 0)
			return (int)i;
	return -1;
}

void xtal_log_start(const char *where, enum xtal_log_level level)
{
	if (where && *where)
		snprintf(destination, sizeof(destination), "%s", where);
	atomic_store(&default_level, (int)level);
}

void xtal_log_set_level(const char *tag, enum xtal_log_level level)
{
	unsigned n = atomic_load(&tag_count);

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(tags[i].tag, tag) == 0) {
			atomic_store(&tags[i].level, (int)level);
			return;
		}
	}
	if (n == MAX_TAGS)
		return;
	tags[n].tag = tag;
	atomic_store(&tags[n].level, (int)level);
	atomic_store(&tag_count, n + 1);
}

static int level_of(const char *tag)
{
	unsigned n = atomic_load_explicit(&tag_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(tags[i].tag, tag) == 0)
			return atomic_load_explicit(&tags[i].level, memory_order_relaxed);
	return atomic_load_explicit(&default_level, memory_order_relaxed);
}

static void emit(enum xtal_log_level level, const char *tag, const char *text)
{
	static const int priorities[] = { 2, 3, 4, 6, 7 }; /* crit, err, warning, info, debug */
	char line[LINE_SIZE + sizeof(destination) + 128], when[32] = "";
	bool terminal = strcmp(destination, "stderr") == 0 || strcmp(destination, "stdout") == 0;
	int err;

	if (strcmp(destination, "syslog") == 0) {
		xtal_os_syslog(priorities[level], tag, text);
		return;
	}
	/* Processes may share a file, and it is read later. */
	if (!terminal)
		xtal_os_time_text(NULL, when, sizeof(when));
	snprintf(line, sizeof(line), "%s%s%s[%d]: %s: %s", when, *when ? " " : "", tag,
		 xtal_os_pid(), words[level], text);
	err = xtal_os_log_file(destination, line);
	if (!err || terminal)
		return;
	/* Not lost: where it goes when nobody says otherwise. */
	snprintf(line, sizeof(line), "%s (not in XTAL_LOG=%s: %s)", text, destination,
		 strerror(-err));
	xtal_os_syslog(priorities[level], tag, line);
}

void xtal_log(enum xtal_log_level level, const char *tag, const char *format, ...)
{
	char text[LINE_SIZE];
	va_list args;

	if ((int)level > level_of(tag))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit(level, tag, text);
}

static void refuse(enum xtal_log_level level, const char *tag, const char *format, va_list args)
{
	vsnprintf(last_error, sizeof(last_error), format, args);
	xtal_count(&xtal_totals.refused, 1);
	if (level_of(tag) >= (int)level)
		emit(level, tag, last_error);
}

void xtal_refuse(const char *tag, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	refuse(XTAL_LOG_ERROR, tag, format, args);
	va_end(args);
}

void xtal_refuse_at(enum xtal_log_level level, const char *tag, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	refuse(level, tag, format, args);
	va_end(args);
}

void xtal_diagnose(const char *tag, const char *format, ...)
{
	char line[LINE_SIZE + 16];
	va_list args;

	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "XTAL_CHECK: %s", last_error);
	if (level_of(tag) >= XTAL_LOG_WARNING)
		emit(XTAL_LOG_WARNING, tag, line);
}

void xtal_explain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(explanation, sizeof(explanation), format, args);
	va_end(args);
	explained = true;
}

const char *xtal_explanation(void)
{
	bool there = explained;

	explained = false;
	return there ? explanation : NULL;
}

void xtal_set_last_error(const char *text)
{
	snprintf(last_error, sizeof(last_error), "%s", text);
}

const char *xtal_last_error(void)
{
	return last_error;
}
