/* SPDX-License-Identifier: MIT */
/* The engine's protocol of one host, spoken by hand; see hostile.h. */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t name_of(uint16_t port, struct sockaddr_un *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1,
		 "xtal/00000000000000000000ffff7f000001/%u", port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(addr->sun_path + 1));
}

int hostile_connect(uint32_t tid)
{
	struct sockaddr_un addr;
	socklen_t len = name_of((uint16_t)tid, &addr);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock >= 0 && connect(sock, (struct sockaddr *)&addr, len)) {
		close(sock);
		sock = -1;
	}
	return sock;
}

int hostile_listen(uint16_t port)
{
	struct sockaddr_un addr;
	socklen_t len = name_of(port, &addr);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock >= 0 && (bind(sock, (struct sockaddr *)&addr, len) || listen(sock, 16))) {
		close(sock);
		sock = -1;
	}
	return sock;
}

bool hostile_send(int sock, const void *data, size_t len, const int *fds, unsigned nfds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * 253)];
	} control = { 0 };

	if (nfds) {
		struct cmsghdr *c;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) >= 0;
}

int hostile_recv(int sock, struct xtal_control *c, int fds[8], unsigned *nfds, int timeout_ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct iovec iov = { .iov_base = c, .iov_len = sizeof(*c) };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * 8)];
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	ssize_t n;

	*nfds = 0;
	if (poll(&p, 1, timeout_ms) <= 0)
		return -1;
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return 0;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&msg); m; m = CMSG_NXTHDR(&msg, m)) {
		*nfds = (unsigned)((m->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(m), *nfds * sizeof(int));
	}
	return (int)n;
}

void hostile_control(struct xtal_control *c, enum xtal_control_type type)
{
	memset(c, 0, sizeof(*c));
	c->magic = XTAL_CONTROL_MAGIC;
	c->version = XTAL_CONTROL_VERSION;
	c->type = type;
}

bool hostile_hello(struct hostile_link *l, uint32_t tid)
{
	struct xtal_control hello;
	unsigned nfds = 0;
	struct stat st;
	int fds[8];

	memset(l, 0, sizeof(*l));
	l->sock = hostile_connect(tid);
	if (l->sock < 0)
		return false;
	hostile_control(&hello, XTAL_CONTROL_HELLO);
	hello.port = tid & 0xffff;
	hello.incarnation = tid >> 16;
	if (!hostile_send(l->sock, &hello, sizeof(hello), NULL, 0) ||
	    hostile_recv(l->sock, &l->welcome, fds, &nfds, 2000) != sizeof(l->welcome) ||
	    l->welcome.type != XTAL_CONTROL_WELCOME || nfds != 2)
		return false;
	l->table = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
	fstat(fds[1], &st);
	l->memory_len = (size_t)st.st_size;
	l->memory = mmap(NULL, l->memory_len, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	close(fds[0]);
	close(fds[1]);
	return l->memory != MAP_FAILED;
}

bool hostile_nudge(struct hostile_link *l)
{
	return hostile_send(l->sock, "", 1, NULL, 0);
}

void hostile_drop(struct hostile_link *l)
{
	if (l->memory)
		munmap(l->memory, l->memory_len);
	if (l->table)
		munmap(l->table, 4096);
	if (l->sock >= 0)
		close(l->sock);
}

int hostile_object(size_t len, bool sealed)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)len) ||
	    (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		return -1;
	return fd;
}

bool hostile_closed(int sock, int timeout_ms)
{
	struct pollfd p = { .fd = sock, .events = 0 };

	return poll(&p, 1, timeout_ms) > 0;
}
