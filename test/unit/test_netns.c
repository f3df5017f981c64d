/* SPDX-License-Identifier: MIT */
/* The hosts that other tests run on are what they should be, and leave nothing behind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/netns.h"

static struct netns n;

static int listen_on(int ns, const void *address, socklen_t len)
{
	int fd, on = 1;

	netns_enter(ns);
	fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, address, len), 0);
	assert_int_equal(listen(fd, 5), 0);
	netns_enter(n.home);
	return fd;
}

static int connect_from(int ns, const void *address, socklen_t len)
{
	int fd, err;

	netns_enter(ns);
	fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);
	err = connect(fd, address, len) ? -errno : 0;
	netns_enter(n.home);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Bytes go from one host to the other; they arrive from the address that is expected. */
static void meet(int from, int to, const void *address, socklen_t len)
{
	int l = listen_on(to, address, len), c = connect_from(from, address, len), a;
	char byte = 0;

	if (c < 0)
		print_error("host %d to %d: %s\n", from, to, strerror(-c));
	assert_true(c >= 0);
	a = accept(l, NULL, NULL);
	assert_true(a >= 0);
	assert_int_equal(write(c, "x", 1), 1);
	assert_int_equal(read(a, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(a);
	close(c);
	close(l);
}

static void need(const char *why)
{
	if (!why)
		return;
	print_message("SKIP: %s\n", why);
	skip();
}

static void hosts_reach_one_another(void **state)
{
	(void)state;
	need(netns_create(&n, 3));
	for (unsigned from = 0; from < 3; from++) {
		for (unsigned to = 0; to < 3; to++) {
			struct sockaddr_in v4 = netns_ipv4(to, 5000);
			struct sockaddr_in6 v6 = netns_ipv6(to, 5000);
			struct sockaddr_in6 local = netns_link_local(to, 5000);

			meet(n.host[from], n.host[to], &v4, sizeof(v4));
			meet(n.host[from], n.host[to], &v6, sizeof(v6));
			netns_enter(n.host[from]);
			local.sin6_scope_id = if_nametoindex("eth0");
			meet(n.host[from], n.host[to], &local, sizeof(local));
		}
	}
	netns_destroy(&n);
}

static void cables_can_be_pulled(void **state)
{
	struct sockaddr_in v4 = netns_ipv4(1, 5000);
	int l, c, a;
	char byte;

	(void)state;
	need(netns_create(&n, 2));
	l = listen_on(n.host[1], &v4, sizeof(v4));
	c = connect_from(n.host[0], &v4, sizeof(v4));
	a = accept(l, NULL, NULL);
	netns_unplug(&n, 1, true);
	assert_int_equal(write(c, "x", 1), 1);
	assert_int_equal(poll(&(struct pollfd){ .fd = a, .events = POLLIN }, 1, 300), 0);
	netns_unplug(&n, 1, false);
	assert_int_equal(poll(&(struct pollfd){ .fd = a, .events = POLLIN }, 1, 20000), 1);
	assert_int_equal(read(a, &byte, 1), 1);
	close(a);
	close(c);
	close(l);
	netns_destroy(&n);
}

static void addresses_come_and_go(void **state)
{
	struct sockaddr_in v4 = netns_ipv4(99, 5000);

	(void)state;
	need(netns_create(&n, 2));
	assert_int_equal(netns_address(&n, 1, "10.77.0.100/24", true), 0);
	meet(n.host[0], n.host[1], &v4, sizeof(v4));
	assert_int_equal(netns_address(&n, 1, "10.77.0.100/24", false), 0);
	assert_int_equal(netns_address(&n, 1, "10.77.0.100/24", false), -EADDRNOTAVAIL);
	netns_destroy(&n);
}

/* Neither host is the other; both talk to the middle man, who has their addresses. */
static void the_middle_man_poses_as_both(void **state)
{
	struct sockaddr_in to = netns_ipv4(1, 5000), from = netns_ipv4(0, 5000);
	struct sockaddr_in6 to6 = netns_ipv6(1, 5000), from6 = netns_ipv6(0, 5000);

	(void)state;
	need(netns_create_middle(&n, 2));
	assert_int_equal(connect_from(n.host[0], &to, sizeof(to)), -ECONNREFUSED);
	meet(n.host[0], n.middle, &to, sizeof(to));
	meet(n.host[1], n.back, &from, sizeof(from));
	meet(n.back, n.host[1], &to, sizeof(to));
	meet(n.host[0], n.middle, &to6, sizeof(to6));
	meet(n.host[1], n.back, &from6, sizeof(from6));
	netns_destroy(&n);
}

/* Two hosts in front: each is met from its own address. */
static void the_middle_man_poses_as_several(void **state)
{
	struct sockaddr_in6 to6 = netns_ipv6(1, 5000), from6 = netns_ipv6(2, 5000);
	struct sockaddr_in to = netns_ipv4(1, 5000), from = netns_ipv4(2, 5000);

	(void)state;
	need(netns_create_middle(&n, 3));
	meet(n.host[0], n.middle, &to, sizeof(to));
	meet(n.host[2], n.middle, &to, sizeof(to));
	meet(n.host[1], n.back, &from, sizeof(from));
	meet(n.host[2], n.middle, &to6, sizeof(to6));
	meet(n.host[1], n.back, &from6, sizeof(from6));
	netns_destroy(&n);
}

/* True while some process uses the namespace with this number. */
static bool used(ino_t number)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	bool found = false;

	while (!found && (e = readdir(proc))) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		found = stat(path, &st) == 0 && st.st_ino == number;
	}
	closedir(proc);
	return found;
}

/* A process that is killed takes its hosts with it: no name, no interface remains. */
static void nothing_is_left_after_a_kill(void **state)
{
	struct if_nameindex *all;
	int fds[2], status;
	ino_t number = 0;
	pid_t pid;

	(void)state;
	need(netns_create(&n, 2));
	netns_destroy(&n);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct stat st;

		if (netns_create(&n, 3))
			_exit(1);
		netns_enter(n.host[0]);
		fstat(n.host[0], &st);
		if (write(fds[1], &st.st_ino, sizeof(st.st_ino)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &number, sizeof(number)), sizeof(number));
	assert_true(used(number));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(used(number));
	all = if_nameindex();
	for (struct if_nameindex *i = all; i->if_index; i++) {
		assert_true(strncmp(i->if_name, "port", 4) != 0);
		assert_string_not_equal(i->if_name, "switch");
	}
	if_freenameindex(all);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_reach_one_another),
		cmocka_unit_test(cables_can_be_pulled),
		cmocka_unit_test(addresses_come_and_go),
		cmocka_unit_test(the_middle_man_poses_as_both),
		cmocka_unit_test(the_middle_man_poses_as_several),
		cmocka_unit_test(nothing_is_left_after_a_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
