/* SPDX-License-Identifier: MIT */
/* The log and the per-thread text of the last refusal. */
#ifndef XTAL_CORE_LOG_H
#define XTAL_CORE_LOG_H

#include "base/export.h"

enum xtal_log_level {
	XTAL_LOG_FATAL = 0,
	XTAL_LOG_ERROR = 1,
	XTAL_LOG_WARNING = 2,
	XTAL_LOG_INFO = 3,
	XTAL_LOG_DEBUG = 4,
};

/* One line to the log's destination (XTAL_LOG: syslog, stderr, stdout or a file), when level is
 * within XTAL_LOG_LEVEL. tag: "xtal", or the front-end's own. */
XTAL_INTERNAL_API void xtal_log(enum xtal_log_level level, const char *tag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the calling thread's xtal_last_error() text and logs it as an error. */
XTAL_INTERNAL_API void xtal_refuse(const char *tag, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, logged at a level of its own: for refusals that are part of normal work, such as a
 * full queue that the program polls next. */
XTAL_INTERNAL_API void xtal_refuse_at(enum xtal_log_level level, const char *tag,
				      const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the calling thread's xtal_last_error() text only: no call was refused. */
void xtal_set_last_error(const char *text);

/*
 * Why a call of the core is about to fail, in words, for the front-end to refuse with: neither
 * logged nor counted here, since the front-end does both, once. Kept for the calling thread.
 */
XTAL_INTERNAL_API void xtal_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes the words away: NULL when there are none. Valid until the thread's next xtal_explain(). */
XTAL_INTERNAL_API const char *xtal_explanation(void);

/* For the settings: where the log goes (NULL: as before), and the level of tags that have none
 * of their own. */
void xtal_log_start(const char *where, enum xtal_log_level level);
/* The level's number, or -1. Any case. */
XTAL_INTERNAL_API int xtal_log_parse_level(const char *text);

/* Lowers or raises the level for one front-end's tag (CDMA_LOG_LEVEL). */
XTAL_INTERNAL_API void xtal_log_set_level(const char *tag, enum xtal_log_level level);

#endif
