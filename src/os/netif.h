/* SPDX-License-Identifier: MIT */
/* The network interfaces of this host (of our network namespace) and their addresses. */
#ifndef XTAL_OS_NETIF_H
#define XTAL_OS_NETIF_H

#include <stdbool.h>

#include "base/eid.h"

#define XTAL_OS_INTERFACE 16 /* longest name and its end */

struct xtal_os_address {
	struct xtal_eid eid; /* link-local ones with the interface's number as their scope */
	char interface[XTAL_OS_INTERFACE];
	bool up;
};

/*
 * Fills out with at most room addresses, IPv4 and IPv6, in the kernel's order, and *count with
 * how many there are. An address that two interfaces have comes twice. Allocates.
 * Errors: -ENOMEM, -errno.
 */
int xtal_os_addresses(struct xtal_os_address *out, unsigned room, unsigned *count);

/* The number of an interface, or 0 when there is none of that name. */
unsigned xtal_os_interface_index(const char *name);

/* Calls each for every interface, also those without an address. Errors: -errno. */
int xtal_os_each_interface(void (*each)(const char *name, void *arg), void *arg);

#endif
