/* SPDX-License-Identifier: MIT */
/* Deleting many objects at once. */
#ifndef XTAL_URMA_BATCH_H
#define XTAL_URMA_BATCH_H

#include "object.h"
#include "urma_types.h"

struct ub_batch {
	const char *function;
	enum ub_kind kind;
	urma_status_t (*delete_one)(void *object);
	const urma_context_t *(*context_of)(const void *object); /* of a live one */
};

/* First all are looked at, then deleted one by one. *bad: the first that was not; NULL: none. */
urma_status_t ub_delete_batch(const struct ub_batch *batch, void **objects, int count, void **bad);

#endif
