/* SPDX-License-Identifier: MIT */
/* The words of the URMA front-end. */
#ifndef XTAL_URMA_LOG_H
#define XTAL_URMA_LOG_H

#include <stdbool.h>

#include "core/log.h"
#include "urma_types.h"

#define UB_TAG "URMA"

/* Reads URMA_LOG_LEVEL and logs the version, once. Called before the first word is logged. */
void ub_log_start(void);

/* Refuses in words: function, object, value, limit. */
#define ub_refuse(...) ub_refuse_from(__FILE_NAME__, __func__, __LINE__, __VA_ARGS__)
void ub_refuse_from(const char *file, const char *function, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5), cold));

/* Says something that is no refusal. */
#define ub_say(level, ...) ub_say_from(__FILE_NAME__, __func__, __LINE__, level, __VA_ARGS__)
void ub_say_from(const char *file, const char *function, int line, urma_vlog_level_t level,
		 const char *format, ...) __attribute__((format(printf, 5, 6), cold));

/* Why the core could not make an object: its own words, or what the negative errno value means. */
const char *ub_reason(int error);

#endif
