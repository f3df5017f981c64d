/* SPDX-License-Identifier: MIT */
/*
 * Rendezvous of one host: abstract unix sockets of type SOCK_SEQPACKET (they die with their
 * owner and are arbitrated by the kernel per network namespace), messages that carry fds.
 * All sockets are non-blocking and CLOEXEC; nothing raises SIGPIPE.
 */
#ifndef XTAL_OS_SOCK_H
#define XTAL_OS_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XTAL_OS_MAX_FDS 4

/* Listens on the abstract name. Errors: -EADDRINUSE when somebody holds it, -errno. */
int xtal_os_listen(const char *name, int *fd);
/* A connection waiting on a listener. Errors: -EAGAIN when there is none, -errno. */
int xtal_os_accept(int listener, int *fd);
/* Connects; never blocks. Errors: -ECONNREFUSED (nobody holds the name), -EAGAIN (the
 * owner's backlog is full, e.g. it is stopped; try again later), -errno. */
int xtal_os_connect(const char *name, int *fd);

/* Sends one message with up to XTAL_OS_MAX_FDS fds (not consumed). Errors: -EAGAIN (would
 * block), -EPIPE/-ECONNRESET (peer gone), -errno. */
int xtal_os_send(int fd, const void *data, size_t len, const int *fds, unsigned nfds);
/*
 * Wakes the peer: a message of one byte, which says nothing. Never blocks, whatever the peer did
 * to its end: the flags of ours are our own. Lost when the buffer is full of unread ones, or the
 * peer is gone.
 */
void xtal_os_nudge(int fd);
/* True for what xtal_os_nudge() sent, by what xtal_os_recv() returned. */
static inline bool xtal_os_nudged(int received, unsigned nfds)
{
	return received == 1 && nfds == 0;
}
/*
 * Receives one message. Returns its length, 0 at end of stream, -EAGAIN when there is none,
 * -EMSGSIZE when it was longer than size or carried too many fds (all fds closed), -errno.
 * Received fds are CLOEXEC and the caller's; *nfds tells how many.
 */
int xtal_os_recv(int fd, void *data, size_t size, int fds[XTAL_OS_MAX_FDS], unsigned *nfds);

/* Who is at the other end, as seen from our namespaces (SO_PEERCRED). pid 0: not visible. */
struct xtal_os_cred {
	int pid;
	uint32_t uid, gid;
};
int xtal_os_peer_cred(int fd, struct xtal_os_cred *out);

void xtal_os_close(int fd);
/* Moves fd (consumed) above 2, where no standard stream can be; the new one or -errno. */
int xtal_os_above_stdio(int fd);
/*
 * The same for what no program is given: to XTAL_OS_ASIDE or above, if the limit allows. A program
 * that closes what it does not know, and opens files then, shall not get the number of what we write
 * to, hand to peers and close.
 */
#define XTAL_OS_ASIDE 512
int xtal_os_aside(int fd);

#endif
