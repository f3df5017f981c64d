/* SPDX-License-Identifier: MIT */
/*
 * How an operation ended: the core's own numbers. Front-ends translate them; calls between
 * our layers return 0 or -errno instead and never one of these.
 */
#ifndef XTAL_BASE_STATUS_H
#define XTAL_BASE_STATUS_H

enum xtal_status {
	XTAL_OK = 0,
	XTAL_UNSUPPORTED = 1,
	XTAL_LOCAL_LENGTH = 2,
	XTAL_LOCAL_OPERATION = 3,
	XTAL_LOCAL_ACCESS = 4,
	XTAL_REMOTE_LENGTH = 5,
	XTAL_REMOTE_UNSUPPORTED = 6,
	XTAL_REMOTE_OPERATION = 7,
	XTAL_REMOTE_ACCESS = 8,
	XTAL_UNREACHABLE = 9,
	XTAL_NOT_READY = 10,
	XTAL_FLUSHED = 11,
	XTAL_SUSPEND_DONE = 12,
	XTAL_FLUSH_DONE = 13,
	XTAL_UNHANDLED = 14,
	XTAL_LOCAL_POISON = 15,
	XTAL_REMOTE_POISON = 16,
};

#define XTAL_STATUS_COUNT 17

/* A sentence for people; never NULL, also for numbers outside the enum. */
const char *xtal_status_sentence(enum xtal_status status);

/* A short name for logs and tables ("remote-access"); never NULL. */
const char *xtal_status_word(enum xtal_status status);

#endif
