/* SPDX-License-Identifier: MIT */
/*
 * Tests in a forked child, where cmocka's assertions would run the rest of the suite: a child
 * counts what was not as expected and ends with it. Also what such children are for: system
 * calls that the kernel refuses, and storms of signals.
 */
#ifndef TEST_LIB_CHILD_H
#define TEST_LIB_CHILD_H

#include <stdbool.h>
#include <stdint.h>

/* Runs body in a forked child. Its exit status: unmet expectations; 200 + signal if killed. */
int child_run(void (*body)(void *arg), void *arg);

/* In a child (or anywhere): counts and prints when ok is false. */
void child_expect(bool ok, const char *what, const char *file, int line);
#define EXPECT(cond) child_expect((cond), #cond, __FILE__, __LINE__)

/* From now on system call nr fails with error in this process; with arg >= 0 only when
 * argument number arg has the given low 32 bits. False: no seccomp here (emulators). */
bool child_deny(int nr, int error, int arg, uint32_t value);

/* A signal with an empty handler that ends system calls, 10,000 times per second. */
void storm_start(void);
/* Stops it and returns how many signals there were. */
unsigned storm_stop(void);

/* Whether this thread blocks the same signals as when it called mask_remember(). */
void mask_remember(void);
bool mask_unchanged(void);

/* True under an emulator of user programs (qemu-user), which lacks some of the kernel. */
bool emulated(void);

/* Number of open fds of this process. */
unsigned open_fds(void);

#endif
