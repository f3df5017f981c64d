/* SPDX-License-Identifier: MIT */
/* Key files as the command reads them, with the words of refusals. No Xtal calls here. */
#ifndef CLI_KEY_H
#define CLI_KEY_H

struct xtal_key;

/* Reads a key file, which must be a regular file of this user or root that nobody else may
 * read or write, like the library. The caller wipes out->secret. 0, or -1 with the reason, in
 * which the file is named. */
int cli_key_read(const char *path, struct xtal_key *out);

#endif
