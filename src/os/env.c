/* SPDX-License-Identifier: MIT */
/* Where settings and words go: environment, ini files, the log's destinations. */
#define _GNU_SOURCE
#include "os/env.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "os/cancel.h"
#include "os/quiet.h"

#define MAX_NAME 128

const char *xtal_os_getenv(const char *name)
{
	return secure_getenv(name);
}

void xtal_os_each_env(const char *prefix,
		      void (*each)(const char *name, const char *value, void *arg), void *arg)
{
	size_t len = strlen(prefix);

	if (getauxval(AT_SECURE) || !environ)
		return;
	for (char **e = environ; *e; e++) {
		const char *equals = strchr(*e, '=');
		char name[MAX_NAME];

		if (!equals || strncmp(*e, prefix, len) || (size_t)(equals - *e) < len)
			continue;
		if ((size_t)(equals - *e) >= sizeof(name))
			continue;
		memcpy(name, *e, (size_t)(equals - *e));
		name[equals - *e] = '\0';
		each(name, equals + 1, arg);
	}
}

struct ini_file {
	FILE *stream;
	int line;      /* number of the line being parsed */
	int long_line; /* the first that was longer than the parser takes, or 0 */
	bool multiline;
	void (*each)(const char *section, const char *key, const char *value, int line, void *arg);
	void *arg;
};

/* libinih's fgets: counts lines, and notes those that do not fit instead of cutting them up. */
static char *next_line(char *buf, int size, void *arg)
{
	struct ini_file *f = arg;
	size_t len;
	int c;

	if (!fgets(buf, size, f->stream))
		return NULL;
	f->line++;
	len = strlen(buf);
	if (len > 0 && buf[len - 1] == '\n')
		return buf;
	c = getc(f->stream);
	if (c == EOF)
		return buf;
	while (c != EOF && c != '\n')
		c = getc(f->stream);
	if (!f->long_line)
		f->long_line = f->line;
	buf[0] = '\0';
	return buf;
}

static int take_value(void *arg, const char *section, const char *key, const char *value)
{
	struct ini_file *f = arg;

	if (key) /* some builds of libinih also announce sections */
		f->each(section, key, value ? value : "", f->line, f->arg);
	return 1;
}

int xtal_os_read_ini(const char *path,
		     void (*each)(const char *section, const char *key, const char *value, int line,
				  void *arg),
		     void *arg)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	/* O_NONBLOCK: a fifo must not stop us; regular files do not care. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), ret;
	struct ini_file f = { .each = each, .arg = arg };

	if (fd < 0)
		return -errno;
	f.stream = fdopen(fd, "r");
	if (!f.stream) {
		close(fd);
		return -ENOMEM;
	}
	errno = 0;
	ret = ini_parse_stream(next_line, &f, take_value, &f);
	if (ferror(f.stream))
		ret = errno ? -errno : -EIO;
	else if (ret < 0)
		ret = -ENOMEM;
	else if (f.long_line && (ret == 0 || f.long_line < ret))
		ret = f.long_line;
	fclose(f.stream);
	return ret;
}

static struct xtal_lock syslog_lock; /* yields: a write to the log may take its time */

void xtal_os_syslog_hold(void)
{
	xtal_lock(&syslog_lock);
}

void xtal_os_syslog_release(void)
{
	xtal_unlock(&syslog_lock);
}

void xtal_os_syslog(int priority, const char *tag, const char *line)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	xtal_os_syslog_hold();
	syslog(LOG_USER | (priority & 7), "%s: %s", tag, line);
	xtal_os_syslog_release();
}

static int write_line(int fd, const char *line)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)(size_t)line, .iov_len = strlen(line) },
		{ .iov_base = "\n", .iov_len = 1 },
	};
	struct xtal_os_quiet quiet;
	ssize_t n;
	int err;

	xtal_os_quiet_begin(&quiet);
	do {
		n = writev(fd, iov, 2);
	} while (n < 0 && errno == EINTR);
	err = n < 0 ? -errno : 0;
	xtal_os_quiet_end(&quiet, err);
	return err;
}

int xtal_os_log_file(const char *path, const char *line)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int fd, err;

	if (strcmp(path, "stderr") == 0)
		return write_line(STDERR_FILENO, line);
	if (strcmp(path, "stdout") == 0)
		return write_line(STDOUT_FILENO, line);
	do {
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			  0600);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	err = write_line(fd, line);
	close(fd);
	return err;
}

void xtal_os_time_text(const struct timespec *at, char *out, size_t size)
{
	static const unsigned short before[] = { 0,   31,  59,  90,  120, 151,
						 181, 212, 243, 273, 304, 334 };
	unsigned long days, second, year = 1970, month = 11, leap;
	struct timespec now;

	if (at)
		now = *at;
	else
		clock_gettime(CLOCK_REALTIME, &now);
	days = (unsigned long)now.tv_sec / 86400;
	second = (unsigned long)now.tv_sec % 86400;
	for (;; year++) {
		leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
		if (days < 365 + leap)
			break;
		days -= 365 + leap;
	}
	while (days < before[month] + (month > 1 ? leap : 0))
		month--;
	days -= before[month] + (month > 1 ? leap : 0);
	snprintf(out, size, "%04lu-%02lu-%02luT%02lu:%02lu:%02lu.%06ldZ", year, month + 1, days + 1,
		 second / 3600, second / 60 % 60, second % 60, now.tv_nsec / 1000);
}
