/* SPDX-License-Identifier: MIT */
/*
 * What a machine adds to time limits by not running a process that wants to run: a thread wakes
 * up again and again, and adds up by how much it comes late. Also when the whole machine is
 * halted, which no counter of the kernel tells.
 */
#ifndef TEST_LIB_LATE_H
#define TEST_LIB_LATE_H

#include <stdint.h>

/* Starts the thread. Once in a process. */
void late_watch(void);

/* So much so far, ns. */
uint64_t late_ns(void);

#endif
