/* SPDX-License-Identifier: MIT */
/* What the library exports beside the public headers, because some programs look it up by name. */
#ifndef XTAL_URMA_PRIVATE_H
#define XTAL_URMA_PRIVATE_H

#include "urma_types.h"

/* Log a line as if it were the library's own. */
void urma_log(const char *function, int line, urma_vlog_level_t level, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void urma_log_loc(const char *file, const char *function, int line, urma_vlog_level_t level,
		  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* True when a line of this level would not be logged. */
bool urma_log_drop(urma_vlog_level_t level);

#endif
