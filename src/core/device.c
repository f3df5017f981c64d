/* SPDX-License-Identifier: MIT */
/* The devices of this machine: the loopback address, which always exists and reaches one host. */
#include "core/device.h"

#include <stddef.h>

#include "core/config.h"
#include "os/sock.h"
#include "os/thread.h"

static const struct xtal_device loopback = {
	.name = "xtal0",
	.eid = { .hi = 0, .lo = 0x0000ffff00000000u | 0x7f000001u },
};

unsigned xtal_device_count(void)
{
	xtal_config();
	return 1;
}

const struct xtal_device *xtal_device_at(unsigned index)
{
	return index == 0 ? &loopback : NULL;
}

struct xtal_eid xtal_device_resolve_eid(struct xtal_eid eid)
{
	struct xtal_eid site;

	if (xtal_eid_is_ipv4(eid) && !xtal_config_site_eid(xtal_eid_ipv4(eid), &site))
		return site;
	return eid;
}

int xtal_device_open_fd(void)
{
	/* An epoll without members is as inert as a descriptor can be. */
	int fd, err = xtal_os_epoll_create(&fd);

	return err ? err : xtal_os_above_stdio(fd);
}

void xtal_device_close_fd(int fd)
{
	xtal_os_close(fd);
}
