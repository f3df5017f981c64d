/* SPDX-License-Identifier: MIT */
/*
 * TCP between hosts: listening, connecting, moving bytes. All sockets are non-blocking and
 * CLOEXEC, send small segments at once, and never raise SIGPIPE. Of connections that were
 * accepted the kernel finds out, in a minute, that the peer has gone without a word; of others
 * that is the caller's to find out.
 */
#ifndef XTAL_OS_TCP_H
#define XTAL_OS_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/eid.h"
#include "os/vm.h"

/* A link-local eid carries its interface's number as its scope. */
struct xtal_os_tcp_address {
	struct xtal_eid eid;
	uint16_t port;
};

/* Sockets made from now on get buffers of this size each way (as far as the system lets us); 0: the
 * kernel sizes them as it goes. */
void xtal_os_tcp_buffers(unsigned bytes);

/* Sockets made from now on keep the system's congestion control, whatever the distance; else: only
 * those to peers that are more than 2 ms away. */
void xtal_os_tcp_leave_congestion(bool leave);

/* Listens on the address; port 0: on one that the kernel chooses. Errors: -EADDRINUSE,
 * -EADDRNOTAVAIL (not an address of this host), -EACCES (the port is privileged), -errno. */
int xtal_os_tcp_listen(const struct xtal_os_tcp_address *at, int *fd);
/* The port that fd is bound to; 0: none. */
uint16_t xtal_os_tcp_port(int fd);
/* A connection waiting on a listener, and who made it. Errors: -EAGAIN, -EMFILE, -errno. */
int xtal_os_tcp_accept(int listener, int *fd, struct xtal_os_tcp_address *peer);

/* Begins to connect; from: a source address (its port is ignored), or NULL. The socket becomes
 * writable when it has succeeded or failed: then xtal_os_tcp_connected(). Errors: -errno. */
int xtal_os_tcp_connect(const struct xtal_os_tcp_address *to,
			const struct xtal_os_tcp_address *from, int *fd);
/* 0: connected. -EINPROGRESS: not yet. -ECONNREFUSED: nobody listens there (also when we have
 * reached ourselves, which TCP does for ports that it also gives to clients). -errno. */
int xtal_os_tcp_connected(int fd);

/* One system call each, at most 64 pieces. Bytes moved; -EAGAIN: would block; -EFAULT: the
 * memory at the front is not there; -errno. Receiving: 0 at the end of the stream. */
#define XTAL_OS_TCP_PIECES 64
int64_t xtal_os_tcp_send(int fd, const struct xtal_os_iov *iov, unsigned count);
int64_t xtal_os_tcp_recv(int fd, const struct xtal_os_iov *iov, unsigned count);

/* Nothing more is sent or received; what was sent still arrives. */
void xtal_os_tcp_shutdown(int fd);

#endif
