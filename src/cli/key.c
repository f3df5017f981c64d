/* SPDX-License-Identifier: MIT */
/* `xtal key`: makes the file with the key that all hosts share, and tells which one it is. */
#include "cli/key.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/key.h"
#include "cli/cli.h"

static const char help[] =
	"Usage: xtal key new FILE\n"
	"       xtal key id FILE\n"
	"\n"
	"Hosts that share a key may reach one another's segments (a segment's token is needed as\n"
	"well); their traffic is encrypted with TLS 1.3. 'new' draws a key of 256 bits and writes\n"
	"it into FILE, which only its owner may read; a file that exists is never touched. Copy\n"
	"FILE to every host, over a channel that you trust, and set XTAL_KEY_FILE there.\n"
	"\n"
	"'id' prints the key's public name: equal names on two hosts mean the same key. Logs name\n"
	"keys by it.\n"
	"\n"
	"  --help   this text\n"
	"\n"
	"Exit status: 0, or 1 when FILE exists, cannot be written, or is no usable key file.\n";

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

static int make(const char *path)
{
	uint8_t random[8 + XTAL_KEY_BYTES];
	char text[XTAL_KEY_TEXT], date[32];
	struct xtal_key key;
	time_t now = time(NULL);
	struct tm tm;
	size_t len;
	int fd, rc;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return cli_die(CLI_FAILED, "no random numbers: %s", strerror(errno));
	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	len = xtal_key_format(random, date, text);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EEXIST)
		return cli_die(CLI_FAILED, "%s exists; a key is never overwritten", path);
	if (fd < 0)
		return cli_die(CLI_FAILED, "%s cannot be made: %s", path, strerror(errno));
	rc = fchmod(fd, 0600) || write_all(fd, text, len) ? errno : 0;
	if (close(fd) && !rc)
		rc = errno;
	xtal_key_parse(text, len, &key);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(text, sizeof(text));
	explicit_bzero(key.secret, sizeof(key.secret));
	if (rc) {
		unlink(path);
		return cli_die(CLI_FAILED, "%s cannot be written: %s", path, strerror(rc));
	}
	printf("key %s is in %s\n", key.id, path);
	return CLI_OK;
}

/* Why the file is not to be trusted; NULL: it is. */
static const char *distrust(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is no regular file";
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "belongs to another user: it must be ours or root's";
	if (st->st_mode & (S_IRWXG | S_IRWXO))
		return "group or others may read or write it, so it is no secret: chmod 600";
	return NULL;
}

int cli_key_read(const char *path, struct xtal_key *out)
{
	char text[XTAL_KEY_FILE];
	const char *wrong;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err = 0;
	ssize_t n = -1;

	if (fd < 0)
		return cli_fail("key file %s: %s", path, strerror(errno));
	wrong = fstat(fd, &st) ? strerror(errno) : distrust(&st);
	if (!wrong) {
		n = read(fd, text, sizeof(text));
		err = errno;
	}
	close(fd);
	if (!wrong)
		wrong = n < 0 ? strerror(err) : xtal_key_parse(text, (size_t)n, out);
	explicit_bzero(text, sizeof(text));
	return wrong ? cli_fail("key file %s: %s", path, wrong) : 0;
}

static int show_id(const char *path)
{
	struct xtal_key key;

	if (cli_key_read(path, &key))
		return cli_die(CLI_FAILED, "%s", cli_reason());
	explicit_bzero(key.secret, sizeof(key.secret));
	printf("%s\n", key.id);
	return CLI_OK;
}

int cli_key(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c != 'h')
			return cli_bad_option("key", c, argv, options);
		fputs(help, stdout);
		return CLI_OK;
	}
	if (optind == argc)
		return cli_usage("key", "'new FILE' or 'id FILE'?");
	if (strcmp(argv[optind], "new") != 0 && strcmp(argv[optind], "id") != 0)
		return cli_usage("key", "there is no 'key %s', only new and id", argv[optind]);
	if (optind + 2 != argc)
		return cli_usage("key", "'key %s' takes one file", argv[optind]);
	return argv[optind][0] == 'n' ? make(argv[optind + 1]) : show_id(argv[optind + 1]);
}
