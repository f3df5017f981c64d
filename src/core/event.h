/* SPDX-License-Identifier: MIT */
/*
 * What front-ends need of the system themselves: a descriptor that tells programs of something, a
 * word to sleep on, the clock.
 */
#ifndef XTAL_CORE_EVENT_H
#define XTAL_CORE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"

/* A pollable, CLOEXEC descriptor, not readable at first. Errors: -errno. */
XTAL_INTERNAL_API int xtal_event_open(int *fd);
XTAL_INTERNAL_API void xtal_event_close(int fd);
/* Makes it readable, or not. The caller orders the calls. */
XTAL_INTERNAL_API void xtal_event_set(int fd, bool readable);
/* Until it is readable, at most timeout_ms (negative: no limit). 1, 0 when the time ran out, -errno.
 * Signals do not end it. When the thread is cancelled meanwhile, cancelled(arg) is called. */
XTAL_INTERNAL_API int xtal_event_wait(int fd, int timeout_ms, void (*cancelled)(void *arg),
				      void *arg);

/* Takes O_NONBLOCK off, for programs that set it to say that they do not want to wait. */
XTAL_INTERNAL_API void xtal_event_let_block(int fd);
XTAL_INTERNAL_API bool xtal_event_blocks(int fd);

/* Sleeps while *word is seen, at most timeout_ms. May return early. */
XTAL_INTERNAL_API void xtal_word_sleep(atomic_uint *word, unsigned seen, unsigned timeout_ms);
XTAL_INTERNAL_API void xtal_word_wake(atomic_uint *word);

/* Monotonic nanoseconds. */
XTAL_INTERNAL_API uint64_t xtal_clock(void);

#endif
