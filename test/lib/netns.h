/* SPDX-License-Identifier: MIT */
/*
 * Hosts for tests: network namespaces with an interface each, joined by a switch. Nothing has
 * a name outside this process, so all of it goes with the last process that uses it, however
 * that ends. Host i has, on eth0, 10.77.0.<i+1>, fd77::<i+1> and fe80::77:<i+1>.
 *
 *     host 0 ---+              With a middle man what the others take for host 1's address is
 *     host 1 ---+-- switch     his, and what host 1 takes for theirs:
 *     host 2 ---+
 *                              host 0 (and 2) --- front | back --- host 1
 */
#ifndef TEST_LIB_NETNS_H
#define TEST_LIB_NETNS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define NETNS_HOSTS 3
#define NETNS_MTU   1500

struct netns {
	unsigned hosts;
	int home;              /* where this process was before */
	int host[NETNS_HOSTS]; /* descriptors of the namespaces */
	int middle;            /* the switch, or the middle man's front */
	int back;              /* his back; -1: there is a switch */
};

/*
 * Makes them. This process must have one thread; unless it is root it becomes root in a user
 * namespace (and an empty network namespace) of its own. NULL, or why this machine does not permit it (then nothing is left,
 * but the user namespace stays).
 */
const char *netns_create(struct netns *n, unsigned hosts);
const char *netns_create_middle(struct netns *n, unsigned hosts); /* 2 or 3 */
void netns_destroy(struct netns *n);

/* Moves this thread (of a process with one) into a namespace. Fails the process. */
void netns_enter(int ns);

/* Pulls host's cable out of the switch, or puts it back: packets are lost, nobody is told. */
void netns_unplug(const struct netns *n, unsigned host, bool unplugged);

/* Gives host one more address on eth0: "10.77.0.100/24", or takes it away. 0 or -errno. */
int netns_address(const struct netns *n, unsigned host, const char *address, bool add);

/* Addresses as a socket wants them. */
struct sockaddr_in netns_ipv4(unsigned host, uint16_t port);
struct sockaddr_in6 netns_ipv6(unsigned host, uint16_t port);
struct sockaddr_in6 netns_link_local(unsigned host, uint16_t port); /* without a scope */
uint32_t netns_eid(unsigned host); /* CDMA's dw0 of the IPv4 address */

/* Writes a key file for them; other numbers, other keys. Fails the test. */
void netns_key(const char *path, uint8_t number);

#endif
