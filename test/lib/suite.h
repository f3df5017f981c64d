/* SPDX-License-Identifier: MIT */
/*
 * What every contract test program shares: the path it is run over (argument or
 * XTAL_TEST_PATH), the scale of its loops, and its main function.
 *
 * Beside the paths there are tcp4, tcp6, tls4 and tls6: the path is tcp, and the owner lives on
 * another host than the initiator (lib/netns.h), reached by IPv4 or IPv6, with TLS or without.
 */
#ifndef TEST_LIB_SUITE_H
#define TEST_LIB_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "xtal.h"

extern enum xtal_path_kind suite_path;
/* The path is map, to private memory that is adopted (argument "adopt"). What does not fill its
 * page, or crosses from one into the other, goes by cma and ring. */
extern bool suite_adopted;
/* The owner's EID: 127.0.0.1, or its address on another host. */
extern uint32_t suite_owner_eid;
/* Set before suite_run(): messages are exchanged too, which go over the ring where memory is mapped. */
extern bool suite_messages;
/* The entry of a list to use: the first, or the one that other hosts can reach. */
struct dma_device *suite_device(struct dma_device *list, uint32_t count);
bool suite_uses_ipv6(void);

/* Per cent of n, by XTAL_TEST_SCALE; at least 1. XTAL_TEST_SOAK=1: twenty times as many; over tcp a
 * fifth, between hosts a twentieth. */
uint64_t suite_scale(uint64_t n);
bool suite_sanitized(void);
bool suite_between_hosts(void);
/* For loops that a busy machine makes slow: the time (suite_now_ms) at which to be content
 * with fewer rounds; a minute hence with XTAL_TEST_SOAK=1 for each second given, between hosts a
 * fifth of one. */
uint64_t suite_deadline(unsigned seconds);
/* Milliseconds since the system started; seconds of processor time this process used (O5). */
uint64_t suite_now_ms(void);
double suite_cpu_seconds(void);
void suite_sleep_us(unsigned us);

/*
 * Sets XTAL_PATHS and env ("NAME=value", ends with NULL, may be NULL), starts the actors'
 * parent, runs the tests, and checks that operations really used the path. Exit status.
 */
int suite_run(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n,
	      const char *const *env);

/* Says why, and skips the running test. */
void suite_skip(const char *reason);

/* Oracle O3: what a process holds. */
struct held {
	long fds, threads, maps, rss_kib;
};
struct held suite_held(void);
/* Waits up to two seconds for now <= before + slack in everything, then asserts it. */
void suite_assert_flat(const struct held *before, long slack, long slack_kib);

#endif
