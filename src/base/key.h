/* SPDX-License-Identifier: MIT */
/*
 * The text of a key file: lines that begin with # are comments, one line is
 *     xtal-key-1 <id, 16 hexadecimal digits> <secret, 64>
 * The id is public: it tells which key a peer has. The secret is shared by all hosts.
 */
#ifndef XTAL_BASE_KEY_H
#define XTAL_BASE_KEY_H

#include <stddef.h>
#include <stdint.h>

#define XTAL_KEY_BYTES 32
#define XTAL_KEY_ID    17   /* characters, with the end */
#define XTAL_KEY_TEXT  512  /* enough for xtal_key_format() */
#define XTAL_KEY_FILE  4096 /* longer files are no key files */

struct xtal_key {
	char id[XTAL_KEY_ID];
	uint8_t secret[XTAL_KEY_BYTES];
};

/* Writes the file's text; random: 8 bytes for the id, then 32 for the secret; date: for the
 * comment. Returns its length. */
size_t xtal_key_format(const uint8_t random[8 + XTAL_KEY_BYTES], const char *date,
		       char buf[XTAL_KEY_TEXT]);

/* Reads it. NULL and *out filled, or what is wrong, in words. */
const char *xtal_key_parse(const char *text, size_t len, struct xtal_key *out);

#endif
