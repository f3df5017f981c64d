/* SPDX-License-Identifier: MIT */
/* The words of the CDMA front-end: CDMA_LOG_LEVEL, the version line, reasons. */
#include "cdma.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/export.h"
#include "core/config.h"
#include "xtal.h"

static void read_level(void)
{
	static const char *const names[] = {
		[XTAL_LOG_FATAL] = "fatal",     [XTAL_LOG_ERROR] = "error",
		[XTAL_LOG_WARNING] = "warning", [XTAL_LOG_INFO] = "info",
		[XTAL_LOG_DEBUG] = "debug",
	};
	const char *text = xtal_config_foreign("CDMA_LOG_LEVEL");

	if (!text) {
		xtal_log_set_level(CDMA_TAG, XTAL_LOG_INFO); /* as the original */
		return;
	}
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(names); i++) {
		if (strcasecmp(text, names[i]) == 0) {
			xtal_log_set_level(CDMA_TAG, (enum xtal_log_level)i);
			return;
		}
	}
	xtal_log(XTAL_LOG_WARNING, CDMA_TAG,
		 "CDMA_LOG_LEVEL is \"%.31s\", which is none of fatal, error, warning, info and "
		 "debug: ignored",
		 text);
}

void cdma_log_start(void)
{
	static atomic_bool started;

	/* A thread that comes second does not wait: its first line may use the default level. */
	if (atomic_load_explicit(&started, memory_order_relaxed) ||
	    atomic_exchange_explicit(&started, true, memory_order_relaxed))
		return;
	xtal_config(); /* tells where the log goes */
	read_level();
	xtal_log(XTAL_LOG_INFO, CDMA_TAG, "libcdma %s, on Xtal %s", CDMA_VERSION, xtal_version());
}

const char *cdma_reason(int error)
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
	case EPERM:
	case EACCES:
		return "the system does not permit it";
	}
	return strerror(-error);
}
