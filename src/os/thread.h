/* SPDX-License-Identifier: MIT */
/*
 * Threads of the engine, and the ways in which they sleep: futex, eventfd, epoll. Waits take
 * absolute monotonic deadlines in ns (0 = do not wait, UINT64_MAX = no limit) and are
 * resumed after signals, so a storm of signals neither ends nor prolongs them.
 */
#ifndef XTAL_OS_THREAD_H
#define XTAL_OS_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a detached thread, all signals blocked, small stack (256 KiB), named (15 chars).
 * Errors: -EAGAIN, -ENOMEM. */
int xtal_os_thread_start(const char *name, void (*run)(void *arg), void *arg);

/* Whether the calling thread was started so, and is not the program's. */
bool xtal_os_thread_is_ours(void);

/* The calling thread no longer runs at once in place of whoever wakes it: for work that its waker
 * does not wait for. Ignored where it is not allowed. */
void xtal_os_thread_yields_to_waker(void);

/* How often a thread that looks for work without a pause offers its processor, ns: a yield that nobody
 * used has returned by then. */
#define XTAL_OS_YIELD_NS 5000u
/* Lets another thread that wants this processor run. True: one did. */
bool xtal_os_yield(void);
/* ns that a thread which looks for work may look on before it yields: none where the last yield of
 * this process was used. */
uint64_t xtal_os_yield_after(void);
/* Whoever polls without a pause may hold the processor that his answer needs: offers it after every
 * 64 calls in which nothing was found, after each one where that helps. */
void xtal_os_polled_in_vain(void);
/* Before that: the poll has done part of the work itself. A thread that it works with and that was
 * just woken is to get another processor, not this one. */
void xtal_os_polled_with_work(void);

/* Sleeps while *word == expected. 0 when woken or changed, -ETIMEDOUT. May wake spuriously. */
int xtal_os_futex_wait(atomic_uint *word, unsigned expected, uint64_t deadline);
/* The same for a thread of the program's, which it may cancel meanwhile: then cancelled(arg) is called,
 * and the thread ends. */
int xtal_os_futex_sleep(atomic_uint *word, unsigned expected, uint64_t deadline,
			void (*cancelled)(void *arg), void *arg);
void xtal_os_futex_wake(atomic_uint *word, int count);

/* An eventfd, non-blocking, CLOEXEC. Errors: -errno. */
int xtal_os_event_create(int *fd);
void xtal_os_event_signal(int fd);
/* Resets; true when it was signalled. */
bool xtal_os_event_clear(int fd);
/* Whether reading it would block: a mark that programs leave on descriptors (none of the functions
 * here ever blocks for it). */
bool xtal_os_event_blocks(int fd);
void xtal_os_event_let_block(int fd);

/* epoll, level triggered, one 64-bit tag per fd. Errors: -errno. */
int xtal_os_epoll_create(int *fd);
int xtal_os_epoll_add(int epfd, int fd, uint64_t tag);
/* Changes what fd, already added with this tag, is watched for; with 0 nothing is reported, not
 * even its end. Any thread. */
enum {
	XTAL_OS_READABLE = 1,
	XTAL_OS_WRITABLE = 2,
	XTAL_OS_ONCE = 4, /* until the next report, then 0 */
};
int xtal_os_epoll_change(int epfd, int fd, uint64_t tag, unsigned what);
void xtal_os_epoll_remove(int epfd, int fd);
/* Up to max tags of ready (or hung-up) fds; 0 at the deadline; -errno. */
int xtal_os_epoll_wait(int epfd, uint64_t *tags, int max, uint64_t deadline);

/* Waits until fd is readable. 1, 0 at the deadline, -errno. A thread that the program cancels
 * meanwhile ends; with the second one cancelled(arg) is called before, unless it is NULL. */
int xtal_os_wait_readable(int fd, uint64_t deadline);
int xtal_os_wait_readable_or(int fd, uint64_t deadline, void (*cancelled)(void *arg), void *arg);

#endif
