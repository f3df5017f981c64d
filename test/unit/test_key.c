/* SPDX-License-Identifier: MIT */
/* Key files: their text, and who may read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/key.h"
#include "os/secret.h"

#define ID  "0123456789abcdef"
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aAbBcCdDeEfF"

static char dir[64], path[128];

static const char *parse(const char *text, struct xtal_key *key)
{
	return xtal_key_parse(text, strlen(text), key);
}

static void what_is_written_is_read(void **state)
{
	uint8_t random[8 + XTAL_KEY_BYTES];
	char text[XTAL_KEY_TEXT];
	struct xtal_key key;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)(i * 7 + 1);
	len = xtal_key_format(random, "2026-11-30", text);
	assert_int_equal(len, strlen(text));
	assert_true(len < XTAL_KEY_TEXT - 1);
	assert_int_equal(text[0], '#');
	assert_non_null(strstr(text, "2026-11-30"));
	assert_null(parse(text, &key));
	assert_string_equal(key.id, "01080f161d242b32");
	assert_memory_equal(key.secret, random + 8, XTAL_KEY_BYTES);
}

static void layout_is_free(void **state)
{
	static const char *const good[] = {
		"xtal-key-1 " ID " " HEX,
		"xtal-key-1 " ID " " HEX "\r\n",
		"\n\n# c\n  \t# d\n\t xtal-key-1\t" ID "   " HEX "  \n#xtal-key-1\n",
	};
	struct xtal_key key;

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(&key, 0, sizeof(key));
		assert_null(parse(good[i], &key));
		assert_string_equal(key.id, ID);
		assert_int_equal(key.secret[1], 0x11);
		assert_int_equal(key.secret[31], 0xff);
	}
}

static void bad(const char *text, const char *words)
{
	struct xtal_key key, before;
	const char *why;

	memset(&key, 0x5a, sizeof(key));
	before = key;
	why = parse(text, &key);
	assert_non_null(why);
	if (!strstr(why, words))
		fail_msg("\"%s\" does not say \"%s\"", why, words);
	assert_memory_equal(&key, &before, sizeof(key)); /* written only on success */
}

static void what_is_wrong_is_told(void **state)
{
	char nul[] = "xtal-key-1 " ID " " HEX;

	(void)state;
	bad("", "no key");
	bad("# only words\n", "no key");
	bad("xtal-key-2 " ID " " HEX, "another word");
	bad("xtal-key-1x " ID " " HEX, "another word");
	bad("-----BEGIN PRIVATE KEY-----\n", "another word");
	bad("xtal-key-1", "id");
	bad("xtal-key-1 0123", "id");
	bad("xtal-key-1 0123456789abcdeg " HEX, "id");
	bad("xtal-key-1 " ID, "too short");
	bad("xtal-key-1 " ID " 0011", "too short");
	bad("xtal-key-1 " ID " " HEX "0", "too long");
	bad("xtal-key-1 " ID " x" HEX, "too long");
	bad("xtal-key-1 " ID " " HEX " more", "follows");
	bad("xtal-key-1 " ID " " HEX "\nxtal-key-1 " ID " " HEX "\n", "more than one");
	nul[30] = 'z';
	bad(nul, "no hexadecimal digit");
	nul[30] = 0;
	assert_non_null(xtal_key_parse(nul, sizeof(nul) - 1, &(struct xtal_key){ .id = "" }));
}

static void write_file(const char *text, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void only_the_owner_may_read(void **state)
{
	static const mode_t open_modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0644, 0666 };
	char buf[64], link[160];
	size_t len = 0;

	(void)state;
	write_file("secret", 0600);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 6);
	assert_memory_equal(buf, "secret", 6);
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(xtal_os_read_secret(link, buf, sizeof(buf), &len), 0);
	write_file("secret", 0400);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), 0);
	for (unsigned i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		write_file("secret", open_modes[i]);
		memset(buf, 'x', sizeof(buf));
		assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), -EKEYREJECTED);
		assert_int_equal(xtal_os_read_secret(link, buf, sizeof(buf), &len), -EKEYREJECTED);
		assert_int_not_equal(buf[0], 's');
	}
	unlink(link);
}

static void files_of_the_wrong_kind(void **state)
{
	char buf[8];
	size_t len;

	(void)state;
	write_file("12345678", 0600);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 8);
	write_file("123456789", 0600);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), -EFBIG);
	assert_int_equal(buf[0], 0); /* nothing of the secret stays */
	write_file("", 0600);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(xtal_os_read_secret(dir, buf, sizeof(buf), &len), -EINVAL);
	unlink(path);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), -EINVAL);
}

static void other_owners(void **state)
{
	char buf[8];
	size_t len;

	(void)state;
	write_file("1", 0600);
	if (chown(path, 12345, 0)) {
		print_message("SKIP: only root can give a file away\n");
		skip();
	}
	assert_int_equal(xtal_os_read_secret(path, buf, sizeof(buf), &len), -EPERM);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/xtal-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(layout_is_free),
		cmocka_unit_test(what_is_wrong_is_told),
		cmocka_unit_test(only_the_owner_may_read),
		cmocka_unit_test(files_of_the_wrong_kind),
		cmocka_unit_test(other_owners),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
