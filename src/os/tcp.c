/* SPDX-License-Identifier: MIT */
/* TCP between hosts; see tcp.h. */
#define _GNU_SOURCE
#include "os/tcp.h"
#include "os/cancel.h"
#include "os/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BACKLOG 1024

/* Seconds after which a peer is asked whether it is still there, between the questions, and how
 * many; ms after which what it does not acknowledge ends the connection. */
#define ASK_AFTER   30
#define ASK_EVERY   10
#define ASK_TIMES   3
#define ACKED_IN_MS 60000

_Static_assert(sizeof(struct xtal_os_iov) == sizeof(struct iovec), "passed to the kernel as it is");

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t to_kernel(const struct xtal_os_tcp_address *a, union address *out)
{
	struct xtal_eid eid;

	memset(out, 0, sizeof(*out));
	if (xtal_eid_is_ipv4(a->eid)) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(a->port);
		out->v4.sin_addr.s_addr = htonl(xtal_eid_ipv4(a->eid));
		return sizeof(out->v4);
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(a->port);
	out->v6.sin6_scope_id = xtal_eid_scope(a->eid);
	eid = xtal_eid_scoped(a->eid, 0);
	for (unsigned i = 0; i < 8; i++) {
		out->v6.sin6_addr.s6_addr[i] = (uint8_t)(eid.hi >> (56 - 8 * i));
		out->v6.sin6_addr.s6_addr[8 + i] = (uint8_t)(eid.lo >> (56 - 8 * i));
	}
	return sizeof(out->v6);
}

static void from_kernel(const union address *a, struct xtal_os_tcp_address *out)
{
	*out = (struct xtal_os_tcp_address){ .port = 0 };
	if (a->any.sa_family == AF_INET) {
		out->eid = xtal_eid_from_ipv4(ntohl(a->v4.sin_addr.s_addr));
		out->port = ntohs(a->v4.sin_port);
		return;
	}
	for (unsigned i = 0; i < 8; i++) {
		out->eid.hi = out->eid.hi << 8 | a->v6.sin6_addr.s6_addr[i];
		out->eid.lo = out->eid.lo << 8 | a->v6.sin6_addr.s6_addr[8 + i];
	}
	out->eid = xtal_eid_scoped(out->eid, a->v6.sin6_scope_id);
	out->port = ntohs(a->v6.sin6_port);
}

static _Atomic int buffer_bytes;

void xtal_os_tcp_buffers(unsigned bytes)
{
	buffer_bytes = (int)bytes;
}

/*
 * Between near hosts a connection is bound by the processor. What paces the stream there (bbr, a
 * common default) costs half as much again for each byte sent, by its timers and small bursts.
 */
#define NEAR_US      2000 /* round trips up to this many microseconds */
#define NEAR_CONTROL "reno"

static atomic_bool leave_congestion;

void xtal_os_tcp_leave_congestion(bool leave)
{
	leave_congestion = leave;
}

static void set_congestion(int fd, const char *name)
{
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

/* Before it connects or listens every socket is taken for near: pacing cannot be taken back. */
static void suit_distance(int fd, const struct tcp_info *info)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	char systems[16] = "";
	socklen_t len = sizeof(systems) - 1;
	int fresh;

	if (leave_congestion || info->tcpi_rtt <= NEAR_US)
		return;
	fresh = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fresh < 0)
		return;
	if (!getsockopt(fresh, IPPROTO_TCP, TCP_CONGESTION, systems, &len))
		set_congestion(fd, systems);
	close(fresh);
}

static int new_socket(int family)
{
	int bytes = buffer_bytes;
	int on = 1,
	    fd = xtal_os_aside(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* Before listen and connect, where the window's scale is agreed upon; accepted sockets
	 * inherit it. */
	if (bytes && (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
		      setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	if (!leave_congestion)
		set_congestion(fd, NEAR_CONTROL);
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	return fd;
}

/* A peer that has gone without a word would keep its connection for ever. What is set for a listener
 * holds for the connections that it accepts. */
static void look_after(int sock)
{
	int on = 1, after = ASK_AFTER, every = ASK_EVERY, times = ASK_TIMES, acked = ACKED_IN_MS;

	setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
	setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &acked, sizeof(acked));
}

int xtal_os_tcp_listen(const struct xtal_os_tcp_address *at, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	union address addr;
	socklen_t len = to_kernel(at, &addr);
	int err, sock = new_socket(addr.any.sa_family);

	if (sock < 0)
		return sock;
	look_after(sock);
	if (bind(sock, &addr.any, len) || listen(sock, BACKLOG)) {
		err = -errno;
		close(sock);
		return err;
	}
	*fd = sock;
	return 0;
}

uint16_t xtal_os_tcp_port(int fd)
{
	struct xtal_os_tcp_address a;
	union address addr = { .any.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.any, &len))
		return 0;
	from_kernel(&addr, &a);
	return a.port;
}

int xtal_os_tcp_accept(int listener, int *fd, struct xtal_os_tcp_address *peer)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	union address addr = { .any.sa_family = AF_UNSPEC };
	socklen_t len;
	struct tcp_info info = { 0 };
	int on = 1, sock;

	do {
		len = sizeof(addr);
		sock = accept4(listener, &addr.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (sock < 0 && (errno == EINTR || errno == ECONNABORTED));
	sock = xtal_os_aside(sock);
	if (sock < 0)
		return -errno;
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	len = sizeof(info);
	if (!getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		suit_distance(sock, &info);
	from_kernel(&addr, peer);
	*fd = sock;
	return 0;
}

int xtal_os_tcp_connect(const struct xtal_os_tcp_address *to,
			const struct xtal_os_tcp_address *from, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	union address addr, source;
	socklen_t len = to_kernel(to, &addr), source_len;
	int err, on = 1, sock = new_socket(addr.any.sa_family);

	if (sock < 0)
		return sock;
	if (from) {
		struct xtal_os_tcp_address any_port = *from;

		any_port.port = 0;
		source_len = to_kernel(&any_port, &source);
		/* The port is chosen when the destination is known: there are more of them. */
		setsockopt(sock, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		if (bind(sock, &source.any, source_len)) {
			err = -errno;
			goto close_sock;
		}
	}
	if (connect(sock, &addr.any, len) && errno != EINPROGRESS && errno != EINTR) {
		err = -errno;
		goto close_sock;
	}
	*fd = sock;
	return 0;
close_sock:
	close(sock);
	return err;
}

/* A client's port was the one it looked for, so that it has met itself. */
static int met_itself(int fd)
{
	union address mine, theirs;
	socklen_t mine_len = sizeof(mine), theirs_len = sizeof(theirs);

	memset(&mine, 0, sizeof(mine));
	memset(&theirs, 0, sizeof(theirs));
	if (getsockname(fd, &mine.any, &mine_len) || getpeername(fd, &theirs.any, &theirs_len))
		return 0;
	return mine_len == theirs_len && memcmp(&mine, &theirs, sizeof(mine)) == 0;
}

int xtal_os_tcp_connected(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);
	struct tcp_info info = { 0 };

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err)
		return -err;
	len = sizeof(info);
	if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	    (info.tcpi_state == TCP_SYN_SENT || info.tcpi_state == TCP_SYN_RECV))
		return -EINPROGRESS;
	if (met_itself(fd))
		return -ECONNREFUSED;
	suit_distance(fd, &info);
	return 0;
}

/* Both without libc's wrappers, into which sanitizers put looks at the memory: it is the program's,
 * which may use it, or unmap it, as it likes. */
int64_t xtal_os_tcp_send(int fd, const struct xtal_os_iov *iov, unsigned count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count };
	long n;

	do { /* one piece costs less than a list */
		n = count == 1 ? syscall(SYS_sendto, fd, iov->base, iov->len,
					 MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0ul)
			       : syscall(SYS_sendmsg, fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int64_t xtal_os_tcp_recv(int fd, const struct xtal_os_iov *iov, unsigned count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count };
	long n;

	do {
		n = count == 1 ? syscall(SYS_recvfrom, fd, iov->base, iov->len, MSG_DONTWAIT, NULL,
					 NULL)
			       : syscall(SYS_recvmsg, fd, &msg, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void xtal_os_tcp_shutdown(int fd)
{
	shutdown(fd, SHUT_RDWR);
}
