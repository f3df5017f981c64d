/* SPDX-License-Identifier: MIT */
/* Who may talk to us from other hosts: the key file, and TLS or the user's word against it. */
#ifndef XTAL_CORE_SECURITY_H
#define XTAL_CORE_SECURITY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/device.h"

struct xtal_os_tls_context;

/* True when traffic of a device, or to another host's address, is encrypted: everywhere but on
 * loopback addresses, unless XTAL_SECURITY=none. */
bool xtal_security_wanted(struct xtal_eid eid);

/*
 * Whether contexts can be opened on a device. 0, or -ENOKEY and in why what is missing and what
 * to do. Reads the key file when it was not read yet; after a failure the next call tries again.
 */
int xtal_security_check(const struct xtal_device *dev, char *why, size_t size);

/* The key as a TLS context, shared by all connections of the process; never destroyed.
 * Errors: -ENOKEY, as above. */
int xtal_security_context(struct xtal_os_tls_context **out, char *why, size_t size);

/* Around a fork: nobody is reading the key. The child has not read it, since what the parent's
 * other threads were doing with the context is not finished there. */
void xtal_security_fork_lock(void);
void xtal_security_fork_unlock(void);
void xtal_security_fork_child(void);

#endif
