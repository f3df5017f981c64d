/* SPDX-License-Identifier: MIT */
/*
 * userfaultfd by raw system calls: what memory of this process that other threads use is replaced
 * with. Nothing here allocates, locks, logs or touches memory but its arguments, so that it may run
 * while a thread with whatever locks sits in a page fault.
 */
#ifndef XTAL_OS_UFFD_H
#define XTAL_OS_UFFD_H

#include <stdbool.h>
#include <stdint.h>

enum {                           /* what an fd is opened for */
	XTAL_OS_UFFD_EVENTS = 1, /* munmap, mremap and madvise wait until they were read */
	XTAL_OS_UFFD_SHMEM = 2,  /* write protection and minor faults of shared memory */
	XTAL_OS_UFFD_MOVE = 4,   /* UFFDIO_MOVE */
};

/* An fd, non-blocking, CLOEXEC, for this process's memory, or -errno. *kernel_faults: system calls
 * that touch what is missing wait, too; else they get EFAULT. */
int xtal_os_uffd_open(unsigned what, bool *kernel_faults);

enum {
	XTAL_OS_TRAP_MISSING = 1, /* no page there */
	XTAL_OS_TRAP_WRITE = 2,   /* stores, when write protected */
	XTAL_OS_TRAP_MINOR = 4,   /* shared memory: a page there, but no entry in the page table */
};

/* All: 0 or -errno; -EAGAIN while an event of this fd has not been read. Ranges are whole pages. */
int xtal_os_uffd_register(int fd, uint64_t at, uint64_t len, unsigned traps);
/* Wakes those who wait in the range, too. */
int xtal_os_uffd_unregister(int fd, uint64_t at, uint64_t len);
int xtal_os_uffd_wake(int fd, uint64_t at, uint64_t len);

/*
 * Moves the private pages of [from, from+len) to the range at to, which is registered with fd and
 * has none; what has no page is passed over. *moved: so many bytes are done, also on failure.
 * Errors: -EBUSY (a page is pinned, or shared with a forked process).
 */
int xtal_os_uffd_move(int fd, uint64_t to, uint64_t from, uint64_t len, uint64_t *moved);
/* The same, but for a page that is not there: -ENOENT. */
int xtal_os_uffd_move_all(int fd, uint64_t to, uint64_t from, uint64_t len, uint64_t *moved);
/* Fills missing pages with a copy, in the object where the range maps one, and wakes who waits there.
 * *copied: as above. Errors: -EEXIST, -ENOMEM. */
int xtal_os_uffd_copy(int fd, uint64_t to, const void *from, uint64_t len, uint64_t *copied);
/* Enters the pages that the object has into the page table (of a range that traps minor faults)
 * and wakes who waits there. Errors: -EFAULT (the object has none at the first), -EEXIST. */
int xtal_os_uffd_carry_on(int fd, uint64_t at, uint64_t len);

/* The same with a new page of zeros, where the object has none. */
int xtal_os_uffd_zero(int fd, uint64_t at, uint64_t len);

/* True while somebody has unmapped, moved or dropped memory that fd watches, and it was not read. */
bool xtal_os_uffd_changing(int fd);

enum xtal_os_uffd_kind {
	XTAL_OS_UFFD_FAULT,  /* somebody waits at from */
	XTAL_OS_UFFD_UNMAP,  /* [from, from+len) is no longer mapped */
	XTAL_OS_UFFD_REMAP,  /* it is now at to */
	XTAL_OS_UFFD_REMOVE, /* its content is about to be dropped */
	XTAL_OS_UFFD_OTHER,
};

struct xtal_os_uffd_event {
	enum xtal_os_uffd_kind kind;
	uint64_t from, to, len;
};

/* The next message, if there is one; whoever waits for its being read goes on. 1, 0, -errno. */
int xtal_os_uffd_read(int fd, struct xtal_os_uffd_event *out);

#endif
