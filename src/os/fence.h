/* SPDX-License-Identifier: MIT */
/*
 * Exchanging the object behind a shared mapping of ours without losing a store: our threads
 * that write meanwhile wait in a page fault (userfaultfd write protection) until it is done.
 */
#ifndef XTAL_OS_FENCE_H
#define XTAL_OS_FENCE_H

#include <stddef.h>

/*
 * Copies what [addr, addr+len), a mapping of old_fd from offset 0, holds into new_fd and maps
 * that over it. Errors: -errno when the kernel lacks userfaultfd or refuses it (nothing
 * changed), -ENOMEM.
 */
int xtal_os_fence_replace(void *addr, size_t len, int old_fd, int new_fd);

#endif
