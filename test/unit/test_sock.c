/* SPDX-License-Identifier: MIT */
/* Abstract sockets: names, messages, fds that travel, and everything a stranger may send. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/sock.h"

static char name[64];

struct pair {
	int listener, server, client;
	unsigned fds_before;
};

static void connect_pair(struct pair *p)
{
	p->fds_before = open_fds();
	assert_int_equal(xtal_os_listen(name, &p->listener), 0);
	assert_int_equal(xtal_os_connect(name, &p->client), 0);
	assert_int_equal(xtal_os_accept(p->listener, &p->server), 0);
}

/* Also checks that the test left no fd behind. */
static void close_pair(struct pair *p)
{
	xtal_os_close(p->listener);
	xtal_os_close(p->client);
	xtal_os_close(p->server);
	assert_int_equal(open_fds(), p->fds_before);
}

static void check_flags(int fd)
{
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void names(void **state)
{
	unsigned before = open_fds();
	int fd = -7, other = -7;
	char longest[109];

	(void)state;
	assert_int_equal(xtal_os_connect(name, &fd), -ECONNREFUSED);
	assert_int_equal(xtal_os_listen(name, &fd), 0);
	check_flags(fd);
	assert_int_equal(xtal_os_listen(name, &other), -EADDRINUSE);
	assert_int_equal(xtal_os_accept(fd, &other), -EAGAIN);
	assert_int_equal(other, -7);
	xtal_os_close(fd);
	assert_int_equal(xtal_os_listen(name, &fd), 0); /* free again at once */
	xtal_os_close(fd);
	assert_int_equal(xtal_os_listen("", &other), -EINVAL);
	assert_int_equal(xtal_os_connect("", &other), -EINVAL);
	memset(longest, 'n', sizeof(longest));
	longest[108] = '\0';
	assert_int_equal(xtal_os_listen(longest, &other), -ENAMETOOLONG);
	assert_int_equal(xtal_os_connect(longest, &other), -ENAMETOOLONG);
	longest[107] = '\0';
	assert_int_equal(xtal_os_listen(longest, &fd), 0);
	assert_int_equal(xtal_os_connect(longest, &other), 0);
	xtal_os_close(other);
	xtal_os_close(fd);
	assert_int_equal(open_fds(), before);
}

static int bind_raw(int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path + 1, name, strlen(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, (socklen_t)len), 0);
	return fd;
}

/*
 * The name is held by something that is not ours. Only a socket of our type can do that: the
 * kernel keeps the names of each type apart.
 */
static void squatted(void **state)
{
	int squatter = bind_raw(SOCK_SEQPACKET), other = bind_raw(SOCK_STREAM), fd = -7;

	(void)state;
	assert_int_equal(xtal_os_listen(name, &fd), -EADDRINUSE);
	assert_int_equal(xtal_os_connect(name, &fd), -ECONNREFUSED);
	assert_int_equal(fd, -7);
	close(squatter);
	assert_int_equal(listen(other, 5), 0);
	assert_int_equal(xtal_os_connect(name, &fd), -ECONNREFUSED);
	assert_int_equal(xtal_os_listen(name, &fd), 0);
	xtal_os_close(fd);
	close(other);
}

/* A listener that does not accept, e.g. because it is stopped, answers -EAGAIN at some point. */
static void full_backlog(void **state)
{
	static int clients[2000];
	unsigned before = open_fds(), n = 0;
	int listener, server, ret;

	(void)state;
	assert_int_equal(xtal_os_listen(name, &listener), 0);
	do {
		ret = xtal_os_connect(name, &clients[n]);
	} while (ret == 0 && ++n < 900);
	assert_int_equal(ret, -EAGAIN);
	assert_true(n >= 100);
	assert_int_equal(xtal_os_accept(listener, &server), 0);
	assert_int_equal(xtal_os_connect(name, &clients[n]), 0); /* try again later */
	n++;
	while (n > 0)
		xtal_os_close(clients[--n]);
	xtal_os_close(server);
	xtal_os_close(listener);
	assert_int_equal(open_fds(), before);
}

static void messages(void **state)
{
	struct pair p;
	char buf[32];
	int fds[XTAL_OS_MAX_FDS];
	unsigned nfds = 9;

	(void)state;
	connect_pair(&p);
	check_flags(p.client);
	check_flags(p.server);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), -EAGAIN);
	assert_int_equal(nfds, 0);
	assert_int_equal(xtal_os_send(p.client, "one", 3, NULL, 0), 0);
	assert_int_equal(xtal_os_send(p.client, "three", 5, NULL, 0), 0);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 3);
	assert_memory_equal(buf, "one", 3);
	assert_int_equal(xtal_os_recv(p.server, buf, 5, fds, &nfds), 5); /* just fits */
	assert_memory_equal(buf, "three", 5);
	assert_int_equal(xtal_os_send(p.server, "too long", 8, NULL, 0), 0);
	assert_int_equal(xtal_os_send(p.server, "ok", 2, NULL, 0), 0);
	assert_int_equal(xtal_os_recv(p.client, buf, 7, fds, &nfds), -EMSGSIZE);
	assert_int_equal(xtal_os_recv(p.client, buf, 7, fds, &nfds), 2);
	assert_int_equal(xtal_os_send(p.client, "", 0, NULL, 0), -EINVAL);
	assert_int_equal(xtal_os_send(-1, "x", 1, NULL, 0), -EBADF);
	assert_int_equal(xtal_os_recv(-1, buf, 1, fds, &nfds), -EBADF);
	close_pair(&p);
}

/* The end of the stream, in both directions; SIGPIPE would kill the test. */
static void peer_gone(void **state)
{
	struct pair p;
	char buf[8];
	int fds[XTAL_OS_MAX_FDS], ret;
	unsigned nfds;

	(void)state;
	connect_pair(&p);
	assert_int_equal(xtal_os_send(p.client, "last", 4, NULL, 0), 0);
	xtal_os_close(p.client);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 4);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 0);
	ret = xtal_os_send(p.server, "x", 1, NULL, 0);
	assert_true(ret == -EPIPE || ret == -ECONNRESET);
	p.client = dup(p.server);
	close_pair(&p);
}

static void full_socket(void **state)
{
	static char big[4096];
	struct pair p;
	int fds[XTAL_OS_MAX_FDS], ret, sent = 0;
	unsigned nfds;

	(void)state;
	connect_pair(&p);
	while ((ret = xtal_os_send(p.client, big, sizeof(big), NULL, 0)) == 0)
		sent++;
	assert_int_equal(ret, -EAGAIN);
	assert_true(sent > 0);
	for (int i = 0; i < sent; i++)
		assert_int_equal(xtal_os_recv(p.server, big, sizeof(big), fds, &nfds), sizeof(big));
	assert_int_equal(xtal_os_send(p.client, big, sizeof(big), NULL, 0), 0);
	close_pair(&p);
}

static void travelling_fds(void **state)
{
	struct pair p;
	int pipe_fds[2], fds[XTAL_OS_MAX_FDS], many[XTAL_OS_MAX_FDS + 1];
	unsigned nfds;
	char buf[8];

	(void)state;
	connect_pair(&p);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(xtal_os_send(p.client, "w", 1, &pipe_fds[1], 1), 0);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 1);
	assert_int_equal(nfds, 1);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fds[0], "through", 7), 7);
	assert_int_equal(read(pipe_fds[0], buf, sizeof(buf)), 7);
	close(fds[0]);
	for (int i = 0; i <= XTAL_OS_MAX_FDS; i++)
		many[i] = pipe_fds[0];
	assert_int_equal(xtal_os_send(p.client, "4", 1, many, XTAL_OS_MAX_FDS), 0);
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 1);
	assert_int_equal(nfds, XTAL_OS_MAX_FDS);
	for (unsigned i = 0; i < nfds; i++)
		close(fds[i]);
	assert_int_equal(xtal_os_send(p.client, "5", 1, many, XTAL_OS_MAX_FDS + 1), -EINVAL);
	assert_int_equal(xtal_os_send(p.client, "b", 1, (int[]){ -1 }, 1), -EBADF);
	/* Too long: the fds that came with it are closed. */
	assert_int_equal(xtal_os_send(p.client, "too long", 8, many, 2), 0);
	assert_int_equal(xtal_os_recv(p.server, buf, 4, fds, &nfds), -EMSGSIZE);
	assert_int_equal(nfds, 0);
	/* Never received: the kernel closes them. */
	assert_int_equal(xtal_os_send(p.client, "x", 1, many, 2), 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close_pair(&p);
}

/* What xtal_os_send would not send: count fds, or none but an empty message. */
static void send_raw(int fd, size_t len, const int *fds, size_t count)
{
	static char room[CMSG_SPACE(sizeof(int) * 253)];
	struct iovec iov = { .iov_base = "raw", .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room };
	struct cmsghdr *c;

	msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), (ssize_t)len);
}

static void hostile_fds(void **state)
{
	static const size_t counts[] = { 5, 6, 7, 100, 253 };
	struct pair p;
	int fds[XTAL_OS_MAX_FDS], many[253];
	unsigned nfds;
	char buf[8];

	(void)state;
	if (emulated())
		skip(); /* qemu-user leaks the fds that did not fit */
	connect_pair(&p);
	for (int i = 0; i < 253; i++)
		many[i] = 2;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned before = open_fds();

		send_raw(p.client, 3, many, counts[i]);
		nfds = 9;
		assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), -EMSGSIZE);
		assert_int_equal(nfds, 0);
		assert_int_equal(open_fds(), before);
	}
	send_raw(p.client, 3, many, 4); /* the link still works */
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 3);
	assert_int_equal(nfds, 4);
	for (unsigned i = 0; i < nfds; i++)
		close(fds[i]);
	send_raw(p.client, 0, many, 2); /* an empty message counts as the end */
	assert_int_equal(xtal_os_recv(p.server, buf, sizeof(buf), fds, &nfds), 0);
	assert_int_equal(nfds, 0);
	close_pair(&p);
}

static void with_few_fds(void *arg)
{
	struct pair *p = arg;
	struct rlimit limit;
	int fds[XTAL_OS_MAX_FDS], two[2] = { 0, 1 }, last;
	unsigned nfds;
	char buf[8];

	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = 64;
	EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	EXPECT(xtal_os_send(p->client, "two", 3, two, 2) == 0);
	EXPECT(xtal_os_send(p->client, "two", 3, two, 2) == 0);
	last = dup(2);
	while (last >= 0 && last < 62)
		last = dup(2);
	EXPECT(xtal_os_recv(p->server, buf, sizeof(buf), fds, &nfds) == -EMFILE); /* one fits */
	EXPECT(nfds == 0);
	EXPECT(dup(2) == 63); /* it was closed again */
	EXPECT(xtal_os_recv(p->server, buf, sizeof(buf), fds, &nfds) == -EMFILE);
	EXPECT(xtal_os_listen("xtal-none", fds) == -EMFILE);
	EXPECT(xtal_os_connect(name, fds) == -EMFILE);
}

static void no_fds_left(void **state)
{
	struct pair p;

	(void)state;
	connect_pair(&p);
	if (!emulated()) /* qemu-user keeps fds of its own */
		assert_int_equal(child_run(with_few_fds, &p), 0);
	close_pair(&p);
}

static void credentials(void **state)
{
	struct xtal_os_cred cred = { 0 };
	struct pair p;

	(void)state;
	connect_pair(&p);
	assert_int_equal(xtal_os_peer_cred(p.server, &cred), 0);
	assert_int_equal(cred.pid, getpid());
	assert_int_equal(cred.uid, geteuid());
	assert_int_equal(cred.gid, getegid());
	assert_int_equal(xtal_os_peer_cred(p.client, &cred), 0);
	assert_int_equal(cred.pid, getpid());
	assert_int_equal(xtal_os_peer_cred(-1, &cred), -EBADF);
	close_pair(&p);
}

static void send_from_child(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < 2000; i++) {
		int ret;

		do {
			ret = xtal_os_send(p->client, &i, sizeof(i), &p->listener, 1);
		} while (ret == -EAGAIN || ret == -ETOOMANYREFS);
		EXPECT(ret == 0);
	}
}

static void receive_in_storm(void *arg)
{
	struct pair *p = arg;
	int fds[XTAL_OS_MAX_FDS], got, next = 0;
	unsigned nfds;

	while (next < 2000) {
		int ret = xtal_os_recv(p->server, &got, sizeof(got), fds, &nfds);

		if (ret == -EAGAIN)
			continue;
		EXPECT(ret == sizeof(got) && got == next && nfds == 1);
		if (ret < 0)
			return;
		close(fds[0]);
		next++;
	}
}

static void storm(void **state)
{
	struct pair p;
	pid_t pid;

	(void)state;
	connect_pair(&p);
	pid = fork();
	if (pid == 0)
		_exit(child_run(send_from_child, &p));
	storm_start();
	receive_in_storm(&p);
	storm_stop();
	close_pair(&p);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(name, sizeof(name), "xtal-test-%d", getpid());
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),          cmocka_unit_test(squatted),
		cmocka_unit_test(full_backlog),   cmocka_unit_test(messages),
		cmocka_unit_test(peer_gone),      cmocka_unit_test(full_socket),
		cmocka_unit_test(travelling_fds), cmocka_unit_test(hostile_fds),
		cmocka_unit_test(no_fds_left),    cmocka_unit_test(credentials),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
