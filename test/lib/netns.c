/* SPDX-License-Identifier: MIT */
/* Network namespaces by rtnetlink; see netns.h. */
#define _GNU_SOURCE
#include "lib/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/key.h"

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

/* ---- Requests to the kernel ---- */

struct request {
	struct nlmsghdr head;
	char room[1024];
};

static void *put(struct request *r, const void *data, size_t len)
{
	void *at = (char *)r + NLMSG_ALIGN(r->head.nlmsg_len);

	if (data)
		memcpy(at, data, len);
	r->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->head.nlmsg_len) + NLMSG_ALIGN(len));
	return at;
}

static struct rtattr *put_attribute(struct request *r, unsigned short type, const void *data,
				    size_t len)
{
	struct rtattr a = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len) }, *at;

	at = put(r, &a, sizeof(a));
	if (len)
		put(r, data, len);
	return at;
}

static void end_nest(struct request *r, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)((char *)r + r->head.nlmsg_len - (char *)nest);
}

static void begin(struct request *r, unsigned short type, unsigned short flags)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
	r->head.nlmsg_len = NLMSG_HDRLEN;
}

/* In this thread's namespace. 0 or -errno. */
static int ask(struct request *r)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[2048];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, r, r->head.nlmsg_len, 0) < 0) {
		err = -errno;
	} else {
		n = recv(fd, &answer, sizeof(answer), 0);
		if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(answer.error)))
			err = n < 0 ? -errno : -EIO;
		else
			err = answer.error.error;
	}
	close(fd);
	return err;
}

static void put_name(struct request *r, const char *name)
{
	put_attribute(r, IFLA_IFNAME, name, strlen(name) + 1);
}

/* A pair of interfaces: name here, "eth0" (or other) in namespace there. */
static int make_pair(const char *name, const char *peer, int there)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct rtattr *link, *data, *other;
	struct request r;

	begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	put(&r, &info, sizeof(info));
	put_name(&r, name);
	link = put_attribute(&r, IFLA_LINKINFO, NULL, 0);
	put_attribute(&r, IFLA_INFO_KIND, "veth", 4);
	data = put_attribute(&r, IFLA_INFO_DATA, NULL, 0);
	other = put_attribute(&r, VETH_INFO_PEER, NULL, 0);
	put(&r, &info, sizeof(info));
	put_name(&r, peer);
	put_attribute(&r, IFLA_NET_NS_FD, &there, sizeof(there));
	end_nest(&r, other);
	end_nest(&r, data);
	end_nest(&r, link);
	return ask(&r);
}

static int make_switch(const char *name)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct rtattr *link;
	struct request r;

	begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	put(&r, &info, sizeof(info));
	put_name(&r, name);
	link = put_attribute(&r, IFLA_LINKINFO, NULL, 0);
	put_attribute(&r, IFLA_INFO_KIND, "bridge", 6);
	end_nest(&r, link);
	return ask(&r);
}

/* Keeps the kernel from giving it a link-local address of its own. Before it is up: a later
 * request comes too late, and one that does both does this last. */
static int set_quiet(const char *name)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(name) };
	unsigned char none = 1; /* IN6_ADDR_GEN_MODE_NONE */
	struct rtattr *families, *ipv6;
	struct request r;

	begin(&r, RTM_NEWLINK, 0);
	put(&r, &info, sizeof(info));
	families = put_attribute(&r, IFLA_AF_SPEC, NULL, 0);
	ipv6 = put_attribute(&r, AF_INET6, NULL, 0);
	put_attribute(&r, IFLA_INET6_ADDR_GEN_MODE, &none, 1);
	end_nest(&r, ipv6);
	end_nest(&r, families);
	return ask(&r);
}

/* Up or down; master: a part of this switch, or NULL. */
static int set_link(const char *name, bool up, const char *master)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC,
				  .ifi_index = (int)if_nametoindex(name),
				  .ifi_flags = up ? IFF_UP : 0,
				  .ifi_change = IFF_UP };
	int err = set_quiet(name);
	struct request r;

	begin(&r, RTM_NEWLINK, 0);
	put(&r, &info, sizeof(info));
	if (master) {
		unsigned index = if_nametoindex(master);

		put_attribute(&r, IFLA_MASTER, &index, sizeof(index));
	}
	return err ? err : ask(&r);
}

/* "10.77.0.1/24" on an interface of this namespace. */
static int set_address(const char *name, const char *text, bool add)
{
	char address[64];
	const char *slash = strchr(text, '/');
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	size_t len = family == AF_INET ? 4 : 16;
	struct ifaddrmsg info = { .ifa_family = (unsigned char)family,
				  .ifa_prefixlen = (unsigned char)atoi(slash + 1),
				  .ifa_flags = IFA_F_NODAD, /* no second of being tentative */
				  .ifa_index = if_nametoindex(name) };
	struct request r;
	uint8_t raw[16];

	snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
	if (inet_pton(family, address, raw) != 1)
		return -EINVAL;
	begin(&r, add ? RTM_NEWADDR : RTM_DELADDR, add ? NLM_F_CREATE | NLM_F_EXCL : 0);
	put(&r, &info, sizeof(info));
	put_attribute(&r, IFA_LOCAL, raw, len);
	put_attribute(&r, IFA_ADDRESS, raw, len);
	return ask(&r);
}

/* The three addresses of a host. */
static int set_addresses(const char *name, unsigned host)
{
	char text[64];
	int err;

	snprintf(text, sizeof(text), "10.77.0.%u/24", host + 1);
	err = set_address(name, text, true);
	snprintf(text, sizeof(text), "fd77::%u/64", host + 1);
	if (!err)
		err = set_address(name, text, true);
	snprintf(text, sizeof(text), "fe80::77:%u/64", host + 1);
	return err ? err : set_address(name, text, true);
}

/* ---- Namespaces ---- */

static int here(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

void netns_enter(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		die("entering a network namespace: %s", strerror(errno));
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Root somewhere. 0 or -errno. */
static int become_root(void)
{
	char map[32];
	unsigned uid = geteuid(), gid = getegid();
	int err;

	if (uid == 0)
		return 0;
	/* A namespace of our own to come home to: the old one would not let us in again. */
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -errno;
	write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	err = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (!err)
		err = write_text("/proc/self/gid_map", map);
	return err ? err : set_link("lo", true, NULL);
}

/* A new, empty one; this thread is in it afterwards. Errors: -errno. */
static int make_namespace(int *out)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	*out = here();
	if (*out < 0)
		return -errno;
	return set_link("lo", true, NULL);
}

/* host's end of its cable: this thread is in host's namespace. */
static int set_up_end(const char *name, unsigned address_of)
{
	int err = set_link(name, true, NULL);

	return err ? err : set_addresses(name, address_of);
}

static const char *start(struct netns *n, unsigned hosts, const char **step)
{
	int err;

	*n = (struct netns){ .hosts = hosts, .home = -1, .middle = -1, .back = -1 };
	for (unsigned i = 0; i < NETNS_HOSTS; i++)
		n->host[i] = -1;
	*step = "a user namespace";
	err = become_root();
	if (!err) {
		n->home = here();
		*step = "a network namespace";
		err = n->home < 0 ? -errno : make_namespace(&n->middle);
	}
	for (unsigned i = 0; !err && i < hosts; i++)
		err = make_namespace(&n->host[i]);
	return err ? strerror(-err) : NULL;
}

/* The kernel notices a moment later that both ends of a cable are up; before that there are
 * no routes over it. */
static int await_carrier(int ns, const char *name)
{
	struct ifreq request = { 0 };
	struct timespec pause = { .tv_nsec = 5000000 };
	int fd, err = -ETIMEDOUT;

	netns_enter(ns);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	for (unsigned i = 0; i < 1000 && err; i++) {
		if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_RUNNING)
			err = 0;
		else
			nanosleep(&pause, NULL);
	}
	close(fd);
	return err;
}

/* IPv6 addresses work a moment after they were added: until one reaches itself. */
static int await_ipv6(const char *name, unsigned host)
{
	struct sockaddr_in6 a[2] = { netns_ipv6(host, 9), netns_link_local(host, 9) };
	struct timeval limit = { .tv_usec = 5000 };

	for (unsigned i = 0; i < 2; i++) {
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		unsigned tries = 1000;
		char byte;

		a[i].sin6_scope_id = i ? if_nametoindex(name) : 0;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		bind(fd, (const struct sockaddr *)&a[i], sizeof(a[i]));
		do {
			sendto(fd, "x", 1, 0, (const struct sockaddr *)&a[i], sizeof(a[i]));
		} while (recv(fd, &byte, 1, 0) != 1 && --tries);
		close(fd);
		if (!tries)
			return -EHOSTUNREACH;
	}
	return 0;
}

static const char *finish(struct netns *n, const char *step, const char *why)
{
	static char text[160];

	if (n->home >= 0)
		netns_enter(n->home);
	if (!why)
		return NULL;
	snprintf(text, sizeof(text), "%s: %s", step, why);
	netns_destroy(n);
	return text;
}

const char *netns_create(struct netns *n, unsigned hosts)
{
	const char *step, *why = start(n, hosts, &step);
	int err = 0;

	if (why)
		return finish(n, step, why);
	netns_enter(n->middle);
	step = "a switch (bridge)";
	err = make_switch("switch");
	if (!err)
		err = set_link("switch", true, NULL);
	for (unsigned i = 0; !err && i < hosts; i++) {
		char port[16];

		netns_enter(n->middle);
		snprintf(port, sizeof(port), "port%u", i);
		step = "a pair of interfaces (veth)";
		err = make_pair(port, "eth0", n->host[i]);
		if (!err)
			err = set_link(port, true, "switch");
		netns_enter(n->host[i]);
		step = "an address";
		if (!err)
			err = set_up_end("eth0", i);
	}
	for (unsigned i = 0; !err && i < hosts; i++) {
		char port[16];

		snprintf(port, sizeof(port), "port%u", i);
		step = "a cable";
		err = await_carrier(n->host[i], "eth0");
		if (!err)
			err = await_ipv6("eth0", i);
		if (!err)
			err = await_carrier(n->middle, port);
	}
	if (!err)
		err = await_carrier(n->middle, "switch");
	return finish(n, step, err ? strerror(-err) : NULL);
}

/* The side towards all hosts but 1. This thread is in its namespace. */
static int make_front(struct netns *n)
{
	int err = make_switch("end0");

	for (unsigned i = 0; !err && i < n->hosts; i += 2) {
		char port[16];

		netns_enter(n->middle);
		snprintf(port, sizeof(port), "port%u", i);
		err = make_pair(port, "eth0", n->host[i]);
		if (!err)
			err = set_link(port, true, "end0");
		netns_enter(n->host[i]);
		if (!err)
			err = set_up_end("eth0", i);
	}
	netns_enter(n->middle);
	return err ? err : set_up_end("end0", 1);
}

static int make_back(struct netns *n)
{
	int err;

	netns_enter(n->back);
	err = make_pair("end0", "eth0", n->host[1]);
	if (!err)
		err = set_up_end("end0", 0);
	if (!err && n->hosts == 3)
		err = set_addresses("end0", 2);
	netns_enter(n->host[1]);
	return err ? err : set_up_end("eth0", 1);
}

const char *netns_create_middle(struct netns *n, unsigned hosts)
{
	const char *step, *why = start(n, hosts, &step);
	int err = 0;

	if (!why) {
		err = make_namespace(&n->back);
		why = err ? strerror(-err) : NULL;
	}
	if (why)
		return finish(n, step, why);
	netns_enter(n->middle);
	step = "interfaces (veth, bridge)";
	err = make_front(n);
	if (!err)
		err = make_back(n);
	for (unsigned i = 0; !err && i < hosts; i++) {
		step = "a cable";
		err = await_carrier(n->host[i], "eth0");
		if (!err)
			err = await_ipv6("eth0", i);
		if (!err)
			err = await_carrier(i == 1 ? n->back : n->middle, "end0");
		if (!err)
			err = await_ipv6("end0", i == 1 ? 0 : 1);
	}
	return finish(n, step, err ? strerror(-err) : NULL);
}

void netns_destroy(struct netns *n)
{
	int *all[] = { &n->home, &n->middle, &n->back };

	for (unsigned i = 0; i < 3; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
	for (unsigned i = 0; i < NETNS_HOSTS; i++) {
		if (n->host[i] >= 0)
			close(n->host[i]);
		n->host[i] = -1;
	}
}

/* A switch's port forwards, or drops everything. Its interface stays up: whoever is behind it is told
 * of a carrier that went, and seconds later of one that came back. */
static int set_port(const char *name, bool forwards)
{
	struct ifinfomsg info = { .ifi_family = AF_BRIDGE, .ifi_index = (int)if_nametoindex(name) };
	unsigned char state = forwards ? BR_STATE_FORWARDING : BR_STATE_DISABLED;
	struct rtattr *port;
	struct request r;

	begin(&r, RTM_SETLINK, 0);
	put(&r, &info, sizeof(info));
	port = put_attribute(&r, IFLA_PROTINFO | NLA_F_NESTED, NULL, 0);
	put_attribute(&r, IFLA_BRPORT_STATE, &state, sizeof(state));
	end_nest(&r, port);
	return ask(&r);
}

void netns_unplug(const struct netns *n, unsigned host, bool unplugged)
{
	char port[16];
	int before = here(), err;

	snprintf(port, sizeof(port), "port%u", host);
	netns_enter(n->middle);
	err = set_port(port, !unplugged);
	if (err)
		die("cable of host %u: %s", host, strerror(-err));
	netns_enter(before);
	close(before);
}

int netns_address(const struct netns *n, unsigned host, const char *address, bool add)
{
	int before = here(), err;

	netns_enter(n->host[host]);
	err = set_address("eth0", address, add);
	netns_enter(before);
	close(before);
	return err;
}

struct sockaddr_in netns_ipv4(unsigned host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(netns_eid(host)) };
}

struct sockaddr_in6 netns_ipv6(unsigned host, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	a.sin6_addr.s6_addr[0] = 0xfd;
	a.sin6_addr.s6_addr[1] = 0x77;
	a.sin6_addr.s6_addr[15] = (uint8_t)(host + 1);
	return a;
}

struct sockaddr_in6 netns_link_local(unsigned host, uint16_t port)
{
	struct sockaddr_in6 a = netns_ipv6(host, port);

	a.sin6_addr.s6_addr[0] = 0xfe;
	a.sin6_addr.s6_addr[1] = 0x80;
	a.sin6_addr.s6_addr[13] = 0x77;
	return a;
}

uint32_t netns_eid(unsigned host)
{
	return 10u << 24 | 77u << 16 | (host + 1);
}

void netns_key(const char *path, uint8_t number)
{
	uint8_t random[8 + XTAL_KEY_BYTES] = { number, [20] = number };
	char text[XTAL_KEY_TEXT];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	xtal_key_format(random, "for a test", text);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("key file %s: %m", path);
	close(fd);
}
