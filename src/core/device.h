/* SPDX-License-Identifier: MIT */
/* Devices: local network addresses that contexts live on. Immutable for the process's life. */
#ifndef XTAL_CORE_DEVICE_H
#define XTAL_CORE_DEVICE_H

#include <stdbool.h>

#include "base/eid.h"
#include "base/export.h"

#define XTAL_MAX_QUEUE_DEPTH 65536u
#define XTAL_MAX_MESSAGE     0xffffffffu
#define XTAL_MAX_SEGMENTS    65536u
#define XTAL_MAX_QUEUES      65536u

struct xtal_device {
	char name[64]; /* "xtal0" */
	struct xtal_eid eid;
	char interface[16];
	bool loopback; /* reaches this host only */
};

/* Number of devices, at least 1; also the first call that starts the engine's settings. */
XTAL_INTERNAL_API unsigned xtal_device_count(void);
/* index < count. Never freed. The first is the loopback device 127.0.0.1. */
XTAL_INTERNAL_API const struct xtal_device *xtal_device_at(unsigned index);
/* What XTAL_DEVICES names and this host does not have: the index-th, in words; NULL: no more. */
const char *xtal_device_missing(unsigned index);

/* The address that an EID from a program stands for, as seen from its device: small site EIDs
 * are looked up in the configuration; a link-local address is on the device's link unless the
 * table says otherwise. Others are returned as they are. */
XTAL_INTERNAL_API struct xtal_eid xtal_device_resolve_eid(const struct xtal_device *dev,
							  struct xtal_eid eid);
/* The small site EIDs of a device: the index-th. Errors: -ENOENT. */
XTAL_INTERNAL_API int xtal_device_site_eid(const struct xtal_device *dev, unsigned index,
					   uint32_t *small);

/* True when the address is one of this host's at this moment, offered as a device or not: who
 * holds a port there is found through an abstract socket. A link-local address without a scope
 * is looked for on every interface. Asks the kernel. */
bool xtal_device_is_local(struct xtal_eid eid);

/* A descriptor that stands for one use of a device in a foreign API: CLOEXEC, above 2, never
 * readable or writable, inert. Errors: -EMFILE and the like. */
XTAL_INTERNAL_API int xtal_device_open_fd(void);
/* Closes a descriptor of xtal_device_open_fd(); negative ones are ignored. */
XTAL_INTERNAL_API void xtal_device_close_fd(int fd);

#endif
