/* SPDX-License-Identifier: MIT */
/* The text of key files; see key.h. Reading and writing the file is not done here. */
#include "base/key.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define FORMAT "xtal-key-1"

static void put_hex(char *buf, size_t *used, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		xtal_text_add(buf, XTAL_KEY_TEXT, used, "%02x", bytes[i]);
}

size_t xtal_key_format(const uint8_t random[8 + XTAL_KEY_BYTES], const char *date,
		       char buf[XTAL_KEY_TEXT])
{
	size_t used = 0;

	xtal_text_add(
		buf, XTAL_KEY_TEXT, &used,
		"# Xtal key, made %s. Secret: whoever has it may join. Copy it to every host\n"
		"# (owner only, mode 0600) and name it there in XTAL_KEY_FILE.\n" FORMAT " ",
		date);
	put_hex(buf, &used, random, 8);
	xtal_text_add(buf, XTAL_KEY_TEXT, &used, " ");
	put_hex(buf, &used, random + 8, XTAL_KEY_BYTES);
	xtal_text_add(buf, XTAL_KEY_TEXT, &used, "\n");
	return used;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of a line, which moves behind it; its length, 0 at the end. */
static size_t next_word(const char **line, const char *end, const char **word)
{
	while (*line < end && blank(**line))
		(*line)++;
	*word = *line;
	while (*line < end && !blank(**line))
		(*line)++;
	return (size_t)(*line - *word);
}

static const char *parse_line(const char *line, const char *end, struct xtal_key *out)
{
	const char *word;
	size_t n = next_word(&line, end, &word);

	if (n != strlen(FORMAT) || memcmp(word, FORMAT, n) != 0)
		return "it is no key file: a line begins with another word than " FORMAT;
	n = next_word(&line, end, &word);
	if (n != XTAL_KEY_ID - 1)
		return "the key's id must have 16 hexadecimal digits";
	for (size_t i = 0; i < n; i++) {
		if (hex(word[i]) < 0)
			return "the key's id must have 16 hexadecimal digits";
		out->id[i] = word[i];
	}
	out->id[n] = 0;
	n = next_word(&line, end, &word);
	if (n < 2 * XTAL_KEY_BYTES)
		return "the key is too short: 64 hexadecimal digits are wanted";
	if (n > 2 * XTAL_KEY_BYTES)
		return "the key is too long: 64 hexadecimal digits are wanted";
	for (size_t i = 0; i < XTAL_KEY_BYTES; i++) {
		int high = hex(word[2 * i]), low = hex(word[2 * i + 1]);

		if (high < 0 || low < 0)
			return "the key has a character that is no hexadecimal digit";
		out->secret[i] = (uint8_t)(high << 4 | low);
	}
	if (next_word(&line, end, &word))
		return "something follows the key in its line";
	return NULL;
}

const char *xtal_key_parse(const char *text, size_t len, struct xtal_key *out)
{
	const char *end = text + len, *why;
	struct xtal_key key;
	bool found = false;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text)), *first = text, *word;

		if (!stop)
			stop = end;
		if (next_word(&first, stop, &word) && word[0] != '#') {
			if (found)
				return "it has more than one key";
			why = parse_line(text, stop, &key);
			if (why)
				return why;
			found = true;
		}
		text = stop + 1;
	}
	if (!found)
		return "it has no key";
	*out = key;
	return NULL;
}
