/* SPDX-License-Identifier: MIT */
/* Processes and this machine: life and death of peers, ids, fences, randomness, time. */
#ifndef XTAL_OS_PROC_H
#define XTAL_OS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pollable fd that becomes readable when the process at the other end of a unix socket
 * exits: SO_PEERPIDFD, else pidfd_open(pid). Errors: -errno (fall back to socket EOF). */
int xtal_os_peer_pidfd(int sock, int pid, int *fd);
/* True when the process behind pidfd has exited. */
bool xtal_os_pidfd_dead(int pidfd);

enum xtal_os_run_state {
	XTAL_OS_RUNNING, /* or unknown */
	XTAL_OS_STOPPED, /* every thread is in state T or t */
	XTAL_OS_DEAD,    /* gone, or a zombie */
};
enum xtal_os_run_state xtal_os_process_state(int pid);

/* Where the Yama security module restricts process_vm_*: permits it to every process of our
 * user, as long as we run. Errors: -EINVAL (no Yama: nothing to permit). */
int xtal_os_allow_cma(void);

int xtal_os_pid(void);
/* Ends this process at once, as a crash or the kernel would: SIGKILL. */
void xtal_os_kill_self(void);
uint32_t xtal_os_uid(void);
unsigned xtal_os_cpus(void); /* usable by this process (affinity), at least 1 */

/* Registers this process for global expedited membarriers. 0 or -errno. */
int xtal_os_membarrier_register(void);
/* Runs a full fence on every running thread of every registered process. 0 or -errno. */
int xtal_os_membarrier_global(void);

/* Cryptographic random bytes. Never fails for len <= 256 after boot; -errno otherwise. */
int xtal_os_random(void *buf, size_t len);

/* Monotonic nanoseconds. */
uint64_t xtal_os_now(void);
void xtal_os_sleep_ns(uint64_t ns);

/* pthread_atfork; 0 or -errno. */
int xtal_os_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif
