/* SPDX-License-Identifier: MIT */
/*
 * A remote vector in shared memory, in the layout of struct iovec: the kernel reads it in
 * place when a cma copy begins, and the owner of the memory may zero its lengths before.
 */
#ifndef XTAL_PATH_IOV_H
#define XTAL_PATH_IOV_H

#include <stdatomic.h>
#include <stdint.h>

struct xtal_shared_iov {
	_Atomic uint64_t base, len;
};

#endif
