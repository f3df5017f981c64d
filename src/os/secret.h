/* SPDX-License-Identifier: MIT */
/* Files that nobody else may read. */
#ifndef XTAL_OS_SECRET_H
#define XTAL_OS_SECRET_H

#include <stddef.h>

/*
 * Reads a whole secret file of at most size bytes into buf; *len tells how many. Errors:
 *   -EKEYREJECTED  group or others have some permission on it (symbolic links are followed)
 *   -EPERM   it belongs to neither our effective user nor root
 *   -EINVAL  it is no regular file
 *   -EFBIG   it is longer than size
 *   -errno   it cannot be opened or read
 */
int xtal_os_read_secret(const char *path, char *buf, size_t size, size_t *len);

/* Overwrites memory that held a secret; not optimised away. */
void xtal_os_wipe(void *buf, size_t len);

#endif
