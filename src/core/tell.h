/* SPDX-License-Identifier: MIT */
/*
 * The sentence that an operation leaves when it ends with an error: in the log, at most one a
 * second of each kind, and as the thread's xtal_last_error().
 */
#ifndef XTAL_CORE_TELL_H
#define XTAL_CORE_TELL_H

#include <stdint.h>

struct xtal_op;
struct xtal_queue;
struct xtal_remote;

/* An operation of q on len bytes at r ends with status, for the reason given. Equal reasons, but for
 * their digits, are of one kind. */
void xtal_tell(const struct xtal_queue *q, const struct xtal_remote *r, uint64_t len,
	       uint32_t status, const char *why);
/* The same where only op and its status are known; finds the reason. Takes the registry's lock. */
void xtal_tell_op(const struct xtal_queue *q, const struct xtal_op *op, uint32_t status);

#endif
