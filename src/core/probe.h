/* SPDX-License-Identifier: MIT */
/* Trying out a link's message path, for those who ask which paths there are. */
#ifndef XTAL_CORE_PROBE_H
#define XTAL_CORE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/op.h"

struct xtal_link;
struct xtal_queue;

/*
 * Reads the first bytes of the range (at most 8, len not 0) as messages over the link, which was
 * up, in the name of the queue. Waits for the answer until the deadline, holding no lock. True
 * when the bytes came; text says what was seen in any case.
 */
bool xtal_probe_messages(struct xtal_link *link, struct xtal_queue *queue,
			 const struct xtal_remote *remote, uint64_t len, uint64_t deadline,
			 char *text, size_t size);

#endif
