/* SPDX-License-Identifier: MIT */
/*
 * The log: levels of syslog, a tag per thread, lines to a function of the program or to where
 * XTAL_LOG says; URMA_LOG_LEVEL, URMA_LOG_SEPARATOR.
 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/export.h"
#include "core/config.h"
#include "private.h"
#include "urma_api.h"
#include "xtal.h"

#define LINE_SIZE 512
#define TAG_SIZE  64

static _Atomic int level_now = URMA_VLOG_LEVEL_INFO;
static _Atomic(urma_log_cb_t) line_function;
static _Atomic(urma_loc_log_cb) place_function;
static char separator[8] = "|";
static _Thread_local char thread_tag[TAG_SIZE];

static const char *const level_names[URMA_VLOG_LEVEL_MAX] = {
	[URMA_VLOG_LEVEL_EMERG] = "emerg",     [URMA_VLOG_LEVEL_ALERT] = "alert",
	[URMA_VLOG_LEVEL_CRIT] = "fatal",      [URMA_VLOG_LEVEL_ERR] = "error",
	[URMA_VLOG_LEVEL_WARNING] = "warning", [URMA_VLOG_LEVEL_NOTICE] = "notice",
	[URMA_VLOG_LEVEL_INFO] = "info",       [URMA_VLOG_LEVEL_DEBUG] = "debug",
};

static enum xtal_log_level core_level(urma_vlog_level_t level)
{
	if (level <= URMA_VLOG_LEVEL_CRIT)
		return XTAL_LOG_FATAL;
	if (level <= URMA_VLOG_LEVEL_WARNING)
		return level == URMA_VLOG_LEVEL_ERR ? XTAL_LOG_ERROR : XTAL_LOG_WARNING;
	return level == URMA_VLOG_LEVEL_DEBUG ? XTAL_LOG_DEBUG : XTAL_LOG_INFO;
}

static bool delivered_to_program(void)
{
	return atomic_load_explicit(&line_function, memory_order_relaxed) ||
	       atomic_load_explicit(&place_function, memory_order_relaxed);
}

/* The core's log gets our lines unless the program does. */
static void set_core_level(void)
{
	xtal_log_set_level(UB_TAG,
			   delivered_to_program()
				   ? XTAL_LOG_FATAL
				   : core_level((urma_vlog_level_t)atomic_load(&level_now)));
}

static void read_environment(void)
{
	const char *text = xtal_config_foreign("URMA_LOG_SEPARATOR");

	if (text && *text)
		snprintf(separator, sizeof(separator), "%s", text);
	text = xtal_config_foreign("URMA_LOG_LEVEL");
	if (!text)
		return;
	for (int i = 0; i < URMA_VLOG_LEVEL_MAX; i++) {
		if (strcasecmp(text, level_names[i]) == 0) {
			atomic_store(&level_now, i);
			return;
		}
	}
	xtal_log(
		XTAL_LOG_WARNING, UB_TAG,
		"URMA_LOG_LEVEL is \"%.31s\", which is none of fatal, error, warning, notice, info "
		"and debug: ignored",
		text);
}

void ub_log_start(void)
{
	static atomic_bool started;

	/* A thread that comes second does not wait: its first line may use the default level. */
	if (atomic_load_explicit(&started, memory_order_relaxed) ||
	    atomic_exchange_explicit(&started, true, memory_order_relaxed))
		return;
	xtal_config(); /* tells where the log goes */
	read_environment();
	set_core_level();
	ub_say(URMA_VLOG_LEVEL_INFO, "liburma on Xtal %s", xtal_version());
}

/* One line, to whom it is for. The core has it already when that is not the program. */
static void deliver(const char *file, const char *function, int line, urma_vlog_level_t level,
		    const char *text)
{
	urma_log_cb_t plain = atomic_load(&line_function);
	urma_loc_log_cb placed = atomic_load(&place_function);
	char out[LINE_SIZE + 2 * TAG_SIZE];

	if (urma_log_drop(level))
		return;
	if (placed) {
		snprintf(out, sizeof(out), "%s%s%s", thread_tag, *thread_tag ? separator : "",
			 text);
		placed((int)level, file, function, line, out);
	} else if (plain) {
		snprintf(out, sizeof(out), "%s%s%s[%d]%s%s", thread_tag,
			 *thread_tag ? separator : "", function, line, separator, text);
		plain((int)level, out);
	}
}

void ub_refuse_from(const char *file, const char *function, int line, const char *format, ...)
{
	char text[LINE_SIZE];
	va_list args;

	ub_log_start();
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	xtal_refuse(UB_TAG, "%s", text);
	if (delivered_to_program())
		deliver(file, function, line, URMA_VLOG_LEVEL_ERR, text);
}

static void say(const char *file, const char *function, int line, urma_vlog_level_t level,
		const char *format, va_list args)
{
	char text[LINE_SIZE];

	ub_log_start();
	if (urma_log_drop(level))
		return;
	vsnprintf(text, sizeof(text), format, args);
	if (delivered_to_program())
		deliver(file, function, line, level, text);
	else
		xtal_log(core_level(level), UB_TAG, "%s%s%s", thread_tag,
			 *thread_tag ? separator : "", text);
}

void ub_say_from(const char *file, const char *function, int line, urma_vlog_level_t level,
		 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(file, function, line, level, format, args);
	va_end(args);
}

void urma_log(const char *function, int line, urma_vlog_level_t level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", function, line, level, format, args);
	va_end(args);
}

void urma_log_loc(const char *file, const char *function, int line, urma_vlog_level_t level,
		  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(file, function, line, level, format, args);
	va_end(args);
}

bool urma_log_drop(urma_vlog_level_t level)
{
	return (int)level > atomic_load_explicit(&level_now, memory_order_relaxed);
}

urma_vlog_level_t urma_log_get_level(void)
{
	ub_log_start();
	return (urma_vlog_level_t)atomic_load(&level_now);
}

void urma_log_set_level(urma_vlog_level_t level)
{
	ub_log_start();
	if ((unsigned)level >= URMA_VLOG_LEVEL_MAX)
		return;
	atomic_store(&level_now, (int)level);
	set_core_level();
}

const char *urma_log_get_thread_tag(void)
{
	return thread_tag;
}

void urma_log_set_thread_tag(const char *tag)
{
	if (tag && strlen(tag) < sizeof(thread_tag))
		memcpy(thread_tag, tag, strlen(tag) + 1);
}

urma_status_t urma_register_log_func(urma_log_cb_t func)
{
	if (!func) {
		ub_refuse("urma_register_log_func: func is NULL");
		return URMA_EINVAL;
	}
	ub_log_start();
	atomic_store(&place_function, (urma_loc_log_cb)NULL);
	atomic_store(&line_function, func);
	set_core_level();
	return URMA_SUCCESS;
}

urma_status_t urma_register_loc_log_func(urma_loc_log_cb func)
{
	if (!func) {
		ub_refuse("urma_register_loc_log_func: func is NULL");
		return URMA_EINVAL;
	}
	ub_log_start();
	atomic_store(&line_function, (urma_log_cb_t)NULL);
	atomic_store(&place_function, func);
	set_core_level();
	return URMA_SUCCESS;
}

urma_status_t urma_unregister_log_func(void)
{
	ub_log_start();
	atomic_store(&line_function, (urma_log_cb_t)NULL);
	atomic_store(&place_function, (urma_loc_log_cb)NULL);
	set_core_level();
	return URMA_SUCCESS;
}

const char *ub_reason(int error)
{
	const char *words = xtal_explanation();

	if (words)
		return words;
	switch (-error) {
	case ENOMEM:
		return "no memory is left";
	case EMFILE:
	case ENFILE:
		return "no file descriptor is left";
	case EFBIG:
		return "RLIMIT_FSIZE allows no memory objects of that size";
	case EADDRINUSE:
		return "no port is free on the device";
	case EAGAIN:
		return "no thread can be started";
	case ENOSPC:
		return "too many exist";
	case EINVAL:
		return "a value is out of range";
	case ECHILD:
		return "it belongs to the process that this one was forked from";
	case EEXIST:
		return "the id is in use";
	case EPERM:
	case EACCES:
		return "the system does not permit it";
	}
	return strerror(-error);
}
