/* SPDX-License-Identifier: MIT */
/* Rendezvous of one host: abstract unix sockets, and messages that carry fds. */
#define _GNU_SOURCE
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/cancel.h"

#define BACKLOG 256 /* connections that wait while their owner is busy or stopped */

/*
 * Room for one fd more than allowed: a message with too many is told from a full fd table,
 * and the kernel drops the rest of a hostile one.
 */
#define RECV_FDS (XTAL_OS_MAX_FDS + 1)

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * RECV_FDS)];
};

static int abstract_address(const char *name, struct sockaddr_un *addr, socklen_t *len)
{
	size_t n = strlen(name);

	if (n == 0) /* would ask the kernel for a name of its choice */
		return -EINVAL;
	if (n > sizeof(addr->sun_path) - 1)
		return -ENAMETOOLONG;
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	memcpy(addr->sun_path + 1, name, n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
	return 0;
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : xtal_os_aside(fd);
}

int xtal_os_listen(const char *name, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct sockaddr_un addr;
	socklen_t len;
	int sock, ret = abstract_address(name, &addr, &len);

	if (ret)
		return ret;
	sock = open_socket();
	if (sock < 0)
		return sock;
	if (bind(sock, (struct sockaddr *)&addr, len) || listen(sock, BACKLOG)) {
		ret = -errno;
		close(sock);
		return ret;
	}
	*fd = sock;
	return 0;
}

int xtal_os_accept(int listener, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int sock;

	do {
		sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (sock < 0 && (errno == EINTR || errno == ECONNABORTED));
	sock = xtal_os_aside(sock);
	if (sock < 0)
		return -errno;
	*fd = sock;
	return 0;
}

int xtal_os_connect(const char *name, int *fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct sockaddr_un addr;
	socklen_t len;
	int sock, ret = abstract_address(name, &addr, &len);

	if (ret)
		return ret;
	sock = open_socket();
	if (sock < 0)
		return sock;
	do {
		ret = connect(sock, (struct sockaddr *)&addr, len) ? -errno : 0;
	} while (ret == -EINTR);
	if (ret) {
		close(sock);
		return ret;
	}
	*fd = sock;
	return 0;
}

int xtal_os_send(int fd, const void *data, size_t len, const int *fds, unsigned nfds)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t n;

	if (len == 0 || nfds > XTAL_OS_MAX_FDS) /* an empty message would look like the end */
		return -EINVAL;
	if (nfds > 0) {
		struct cmsghdr *c;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void xtal_os_nudge(int fd)
{
	xtal_os_send(fd, "", 1, NULL, 0);
}

/* Collects the fds of a message, at most RECV_FDS of them. */
static unsigned take_fds(struct msghdr *msg, int out[RECV_FDS])
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && count < RECV_FDS; i++)
			memcpy(&out[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return count;
}

/* What is wrong with a message, or 0. */
static int message_error(const struct msghdr *msg, unsigned nfds)
{
	if ((msg->msg_flags & MSG_TRUNC) || nfds > XTAL_OS_MAX_FDS)
		return -EMSGSIZE;
	if (msg->msg_flags & MSG_CTRUNC) /* our fd table is full */
		return -EMFILE;
	return 0;
}

int xtal_os_recv(int fd, void *data, size_t size, int fds[XTAL_OS_MAX_FDS], unsigned *nfds)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct iovec iov = { .iov_base = data, .iov_len = size };
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int got[RECV_FDS], ret;
	unsigned count;
	ssize_t n;

	*nfds = 0;
	do {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_LEN(sizeof(int) * RECV_FDS);
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	count = take_fds(&msg, got);
	ret = message_error(&msg, count);
	for (unsigned i = 0; i < count; i++) {
		got[i] = xtal_os_above_stdio(got[i]);
		if (got[i] < 0)
			ret = got[i];
	}
	if (ret || n == 0) {
		for (unsigned i = 0; i < count; i++)
			if (got[i] >= 0)
				close(got[i]);
		return ret;
	}
	for (unsigned i = 0; i < count; i++)
		fds[i] = got[i];
	*nfds = count;
	return (int)n;
}

int xtal_os_peer_cred(int fd, struct xtal_os_cred *out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*out = (struct xtal_os_cred){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
	return 0;
}

void xtal_os_close(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	close(fd);
}

int xtal_os_above_stdio(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int up;

	if (fd > 2 || fd < 0)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (up < 0)
		up = -errno;
	close(fd);
	return up;
}

int xtal_os_aside(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int up;

	if (fd >= XTAL_OS_ASIDE || fd < 0)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, XTAL_OS_ASIDE);
	if (up < 0)
		return xtal_os_above_stdio(fd);
	close(fd);
	return up;
}
