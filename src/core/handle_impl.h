/* SPDX-License-Identifier: MIT */
/* What the core finds behind a foreign handle. */
#ifndef XTAL_CORE_HANDLE_IMPL_H
#define XTAL_CORE_HANDLE_IMPL_H

#include <stdbool.h>

#include "core/handle.h"

struct xtal_handle {
	const void *foreign;
	struct xtal_queue_handle queue; /* queue.queue NULL: a segment */
	struct xtal_segment *segment;
	struct xtal_handle *next;
};

/* False: not a live handle. */
bool xtal_handle_find(const void *foreign, struct xtal_handle *out);

/* Keep the table consistent in a forked child. */
void xtal_handles_fork_lock(void);
void xtal_handles_fork_unlock(void);

#endif
