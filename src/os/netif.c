/* SPDX-License-Identifier: MIT */
/* Interfaces and addresses, by getifaddrs(3). */
#define _GNU_SOURCE
#include "os/netif.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "os/cancel.h"

static uint64_t big_endian(const uint8_t *in)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | in[i];
	return v;
}

/* False: no address of the internet protocols. */
static bool take_address(const struct ifaddrs *a, struct xtal_os_address *out)
{
	if (!a->ifa_addr)
		return false;
	if (a->ifa_addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)a->ifa_addr;

		out->eid = xtal_eid_from_ipv4(ntohl(in->sin_addr.s_addr));
	} else if (a->ifa_addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)a->ifa_addr;
		struct xtal_eid eid = { .hi = big_endian(in->sin6_addr.s6_addr),
					.lo = big_endian(in->sin6_addr.s6_addr + 8) };

		out->eid = xtal_eid_scoped(eid, in->sin6_scope_id);
	} else {
		return false;
	}
	snprintf(out->interface, sizeof(out->interface), "%s", a->ifa_name);
	out->up = a->ifa_flags & IFF_UP;
	return true;
}

int xtal_os_addresses(struct xtal_os_address *out, unsigned room, unsigned *count)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct ifaddrs *all;
	unsigned n = 0;

	if (getifaddrs(&all))
		return -errno;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		struct xtal_os_address one;

		if (!take_address(a, &one))
			continue;
		if (n < room)
			out[n] = one;
		n++;
	}
	freeifaddrs(all);
	*count = n;
	return 0;
}

unsigned xtal_os_interface_index(const char *name)
{
	return if_nametoindex(name);
}

int xtal_os_each_interface(void (*each)(const char *name, void *arg), void *arg)
{
	struct if_nameindex *all = if_nameindex();

	if (!all)
		return -errno;
	for (const struct if_nameindex *i = all; i->if_index; i++)
		each(i->if_name, arg);
	if_freenameindex(all);
	return 0;
}
