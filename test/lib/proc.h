/* SPDX-License-Identifier: MIT */
/*
 * Processes of the system tests: starting, stopping and ending them, time, scale, private
 * corners of the machine. Knows nothing of the library under test; the program that starts
 * the processes must not have called it either, so that each process is a fresh one.
 */
#ifndef TEST_LIB_PROC_H
#define TEST_LIB_PROC_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

/* Prints the reason and leaves the cmocka case. */
void proc_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Monotonic, ns. */
uint64_t proc_now(void);
void proc_sleep_us(uint64_t us);

/* XTAL_TEST_SOAK=1: the long form. */
bool proc_soak(void);

/* Rounds to do: of the short form, by XTAL_TEST_SCALE (at least 1), or of the long one. */
unsigned proc_rounds(unsigned few, unsigned many);

/* Time limits are for plain builds on an idle machine; this stretches them for others, and for
 * long forms. */
uint64_t proc_slack(uint64_t ns);

/* Built with a sanitizer (any, or this one: "address", "thread"). */
bool proc_sanitized(const char *which);

/* Runs under an emulator. */
bool proc_emulated(void);

/* For main(): prints the reason; the exit status that says so. */
int proc_skip_all(const char *reason);

/* Memory that all processes started later share; zero. */
void *proc_shared(size_t len);

/* Runs fn in a new process, which dies with this one. fn's value is its exit status. */
pid_t proc_start(int (*fn)(void *arg), void *arg);

/* The same, then waits; the wait status. Killed (and told) after timeout_ms. */
int proc_run(int (*fn)(void *arg), void *arg, unsigned timeout_ms);

/* Waits; the wait status. A process that takes longer than timeout_ms is killed: SIGALRM. */
int proc_join(pid_t pid, unsigned timeout_ms);

/* SIGKILL, then waits. Returns the time at which it was surely dead. */
uint64_t proc_kill(pid_t pid);

/* SIGSTOP, and waits until all threads have stopped. */
void proc_stop(pid_t pid);
void proc_continue(pid_t pid);

/* As a cmocka teardown: kills what a failed test left running. */
int proc_end_all(void **state);

/* Root becomes an ordinary user, as a program that such a one starts; others stay what they are.
 * False: it is not permitted. */
bool proc_be_ordinary(void);

/* In a child: ends it with a message. */
void proc_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Waits until *word is at least value. False: timeout. */
bool proc_await(_Atomic uint32_t *word, uint32_t value, unsigned timeout_ms);

/* Open descriptors of a process. -1: cannot be told. */
int proc_fd_count(pid_t pid);

/*
 * Time that each thread of a process was ready to run and had no processor: what a busy
 * machine adds to a time limit. All 0 when the kernel does not tell.
 */
struct proc_delays {
	unsigned count;
	struct {
		pid_t tid;
		uint64_t ns;
	} thread[32];
};
void proc_delays_read(pid_t pid, struct proc_delays *out);

/* The most that two threads were delayed since (one may wait for another that has to wait). */
uint64_t proc_delayed_since(pid_t pid, const struct proc_delays *then);

/* CPU time of a process, ns, and its voluntary switches over all threads. */
uint64_t proc_cpu_ns(pid_t pid);
uint64_t proc_switches(pid_t pid);

/*
 * Moves this process into namespaces of its own with an empty /dev/shm and /tmp and no other
 * sockets (and root inside a user namespace unless it is root). 0 or -errno.
 */
int proc_private(void);

/* What is in /dev/shm, /tmp and among the abstract sockets: names, one a line, into buf. */
void proc_leftovers(char *buf, size_t size);

/* True when file contains text. */
bool proc_file_has(const char *path, const char *text);

#endif
