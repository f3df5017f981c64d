/* SPDX-License-Identifier: MIT */
/* Devices: local network addresses that contexts live on. Immutable for the process's life. */
#ifndef XTAL_CORE_DEVICE_H
#define XTAL_CORE_DEVICE_H

#include "base/eid.h"
#include "base/export.h"

#define XTAL_MAX_QUEUE_DEPTH 65536u
#define XTAL_MAX_MESSAGE     0xffffffffu
#define XTAL_MAX_SEGMENTS    65536u
#define XTAL_MAX_QUEUES      65536u

struct xtal_device {
	char name[64]; /* "xtal0" */
	struct xtal_eid eid;
};

/* Number of devices, at least 1; also the first call that starts the engine's settings. */
XTAL_INTERNAL_API unsigned xtal_device_count(void);
/* index < count. Never freed. */
XTAL_INTERNAL_API const struct xtal_device *xtal_device_at(unsigned index);
/* The address that an EID from a program stands for: small site EIDs are looked up in the
 * configuration, others are returned as they are. */
XTAL_INTERNAL_API struct xtal_eid xtal_device_resolve_eid(struct xtal_eid eid);

/* A descriptor that stands for one use of a device in a foreign API: CLOEXEC, above 2, never
 * readable or writable, inert. Errors: -EMFILE and the like. */
XTAL_INTERNAL_API int xtal_device_open_fd(void);
/* Closes a descriptor of xtal_device_open_fd(); negative ones are ignored. */
XTAL_INTERNAL_API void xtal_device_close_fd(int fd);

#endif
