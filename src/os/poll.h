/* SPDX-License-Identifier: MIT */
/*
 * poll() that also works where the program may have no descriptors any more: it refuses more of
 * them than RLIMIT_NOFILE, which a program may have set to 0 when it has opened all it needs.
 */
#ifndef XTAL_OS_POLL_H
#define XTAL_OS_POLL_H

struct pollfd;
struct timespec;

/* As ppoll() without a mask; left NULL: no limit. Raw system calls only: no thread of the program is
 * cancelled in it. Without descriptors only POLLIN, POLLOUT and POLLNVAL are told. */
int xtal_os_poll(struct pollfd *fds, unsigned n, const struct timespec *left);
/* The second half of it, after poll() or ppoll() has answered EINVAL. */
int xtal_os_poll_without(struct pollfd *fds, unsigned n, const struct timespec *left);

#endif
