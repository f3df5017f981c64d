/* SPDX-License-Identifier: MIT */
/*
 * Threads that a program cancels (pthread_cancel) end in no system call of ours but those that
 * wait for an event: they may hold locks. Every function with a call that POSIX lets end a thread
 * begins with
 *
 *	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
 */
#ifndef XTAL_OS_CANCEL_H
#define XTAL_OS_CANCEL_H

/* What was, for xtal_os_cancel_back(). */
int xtal_os_cancel_off(void);
void xtal_os_cancel_back(const int *was);

#endif
