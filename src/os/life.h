/* SPDX-License-Identifier: MIT */
/*
 * Words in shared memory that tell whether a thread lives: the kernel marks them when it ends, with
 * its process or because another thread of it calls execve(2), before anything else runs in its
 * place (robust futexes). So who addresses a process by its pid can see, without a system call, that
 * the pid is no longer the process he knew.
 */
#ifndef XTAL_OS_LIFE_H
#define XTAL_OS_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory that others may only read. */
struct xtal_os_life {
	uint64_t next; /* the kernel's: it follows these in the process that ends */
	_Atomic uint32_t word;
	uint32_t unused;
};

/* Whether the thread has ended, as far as was seen: a process may end right after the look. */
static inline bool xtal_os_life_ended(const _Atomic uint32_t *word)
{
	/* Acquire: what we do afterwards is not done before the look. */
	return atomic_load_explicit(word, memory_order_acquire) >> 30 & 1; /* FUTEX_OWNER_DIED */
}

/* All words are the calling thread's from now on, until it ends. Where the kernel has no robust
 * futexes none is ever marked. */
void xtal_os_life_keep(void);
/* Any thread. The memory must stay until the end of the word. */
void xtal_os_life_begin(struct xtal_os_life *life);
void xtal_os_life_end(struct xtal_os_life *life);
/* In a forked child: the words are the parent's. */
void xtal_os_life_fork_child(void);

#endif
