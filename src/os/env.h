/* SPDX-License-Identifier: MIT */
/* Where settings and words go: environment, ini files, the log's destinations. */
#ifndef XTAL_OS_ENV_H
#define XTAL_OS_ENV_H

#include <stddef.h>
#include <time.h>

/* A variable's value or NULL. Ignored (NULL) in setuid programs (secure_getenv). */
const char *xtal_os_getenv(const char *name);
/* Calls each for every "NAME=value" of the environment whose name begins with prefix. */
void xtal_os_each_env(const char *prefix,
		      void (*each)(const char *name, const char *value, void *arg), void *arg);

/* Parses an ini file (libinih): each(section, key, value, line). Errors: -ENOENT, -errno,
 * or the positive number of the first line that could not be parsed. */
int xtal_os_read_ini(const char *path,
		     void (*each)(const char *section, const char *key, const char *value, int line,
				  void *arg),
		     void *arg);

/* Writes one line to syslog under the tag; priority as in <syslog.h> 0..7. Never blocks for
 * long, never writes to stdout or stderr. */
void xtal_os_syslog(int priority, const char *tag, const char *line);
/* Around a fork: the C library has a lock of its own in there, which nobody would release in the
 * child of another thread. */
void xtal_os_syslog_hold(void);
void xtal_os_syslog_release(void);
/* Appends one line to a file (opened O_APPEND|O_CREAT, 0600) or, for "stdout" and "stderr", to
 * fd 1 or 2. Errors: what open or write says; the line is lost then. */
int xtal_os_log_file(const char *path, const char *line);
/* A time of day (NULL: now), UTC, as 2026-11-30T21:15:02.123456Z; from 1970 on. Takes no lock of the
 * C library's, which a fork beside other threads might leave held. */
void xtal_os_time_text(const struct timespec *at, char *out, size_t size);

#endif
