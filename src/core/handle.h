/* SPDX-License-Identifier: MIT */
/*
 * Foreign handles: xtal.h takes the front-ends' own pointers (a struct dma_queue *), so the
 * front-ends tell the core which core object stands behind each.
 */
#ifndef XTAL_CORE_HANDLE_H
#define XTAL_CORE_HANDLE_H

#include "base/export.h"
#include "core/op.h"
#include "core/queue.h"
#include "core/segment.h"

/* What a front-end registers for one of its queues. */
struct xtal_queue_handle {
	struct xtal_queue *queue;
	/* The remote EID that the foreign queue points at now; called under no lock. */
	struct xtal_eid (*target)(const void *foreign);
};

/* Errors: -ENOMEM, -EEXIST. */
XTAL_INTERNAL_API int xtal_handle_bind_queue(const void *foreign,
					     const struct xtal_queue_handle *handle);
XTAL_INTERNAL_API int xtal_handle_bind_segment(const void *foreign, struct xtal_segment *seg);
/* Forgets a handle of either kind; unknown ones are ignored. */
XTAL_INTERNAL_API void xtal_handle_unbind(const void *foreign);

#endif
