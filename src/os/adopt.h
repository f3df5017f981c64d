/* SPDX-License-Identifier: MIT */
/*
 * Adoption: pages of private memory of this process are replaced by pages of a shared object with
 * the same content, and back, while all threads go on using them. Who gives the order, and how
 * other processes are kept out meanwhile, is not decided here.
 */
#ifndef XTAL_OS_ADOPT_H
#define XTAL_OS_ADOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/uffd.h"

enum xtal_os_adopt_level {
	XTAL_OS_ADOPT_NONE, /* the kernel lacks something, or refuses it */
	XTAL_OS_ADOPT_USER, /* a system call into memory that is being moved gets EFAULT */
	XTAL_OS_ADOPT_FULL, /* it waits, like everybody else */
};

/* What this machine allows: tried out, on pages of our own. why: in words. Any thread. */
enum xtal_os_adopt_level xtal_os_adopt_probe(char *why, size_t size);

/* What the reader tells. Called on its thread, which holds what the program's threads wait for:
 * no lock that anybody may hold while he touches memory, no allocation, no log. */
struct xtal_os_adopt_hooks {
	/* Adopted memory may be about to change; those who caused it wait. True: somebody is to be
	 * told after it, whatever it was. */
	bool (*before)(void);
	/* It has (UNMAP, REMAP), or is about to (REMOVE; its pages are zero now). */
	void (*changed)(const struct xtal_os_uffd_event *e);
	/* All that was there is handled; they go on. Not when nothing had to be told. */
	void (*after)(void);
};

/* Opens what is needed and starts the reader, a thread that sleeps until the program changes
 * adopted memory. Again in a forked child. Errors: -errno, and why. Not thread safe. */
int xtal_os_adopt_start(const struct xtal_os_adopt_hooks *hooks, char *why, size_t size);
/* Since the start: the level is FULL. */
bool xtal_os_adopt_is_full(void);
/* The descriptors that a forked child must close; -1: none. */
#define XTAL_OS_ADOPT_FDS 5u
void xtal_os_adopt_fds(int fds[XTAL_OS_ADOPT_FDS]);
/* In the child: nothing is adopted here, nobody reads. */
void xtal_os_adopt_fork_child(void);

/* Whole pages of this process that lie in an object: [lo, hi) at offset 0. */
struct xtal_os_run {
	uint64_t lo, hi;
	int fd;
	uint64_t inode, dev_major, dev_minor;
};

/* 0, or -EINVAL and why: the pages are not ordinary private memory, or the kernel or a thread of
 * this process uses them in ways that do not survive. */
int xtal_os_adopt_eligible(uint64_t lo, uint64_t hi, char *why, size_t size);

/*
 * Adopts [lo, hi), which is eligible. By one thread at a time, with all signals blocked, started by the engine, whose
 * stack is its own. out->fd is the caller's. Errors, with why; nothing has changed then:
 * -EBUSY (pinned pages), -EAGAIN (the program changed the mapping meanwhile), -EFBIG
 * (RLIMIT_FSIZE), -ENOMEM, -ENOSPC (too many runs), -errno. But -ENOTRECOVERABLE: a part of *out is
 * in the object, and cannot be made private now; as after a failed undo.
 */
int xtal_os_adopt(uint64_t lo, uint64_t hi, struct xtal_os_run *out, char *why, size_t size);

/* Makes all of the run that is still mapped private again, wherever the program has moved it, and
 * leaves the object without pages. By the same thread. Errors: -errno; what remains is shared. */
int xtal_os_adopt_undo(const struct xtal_os_run *run);

/* True when a page of [lo, hi), at the place where it was adopted, may be adopted. Any thread. */
bool xtal_os_adopt_any(uint64_t lo, uint64_t hi);

/* True while pages are registered for direct I/O for a long time (VmPin). Allocates nothing. */
bool xtal_os_pages_pinned(void);

/* Any thread, now and then while a move may be under way. Mover and reader share a processor meanwhile:
 * where a thread of higher priority has taken that, both may use others again. */
void xtal_os_adopt_look_after(void);

/* The lock that the reader holds from before() to after(). */
void xtal_os_adopt_lock(void);
void xtal_os_adopt_unlock(void);

#endif
