/* SPDX-License-Identifier: MIT */
/* Deleting many objects at once. */
#include "batch.h"

#include <stdbool.h>

#include "log.h"

static bool element_is_bad(const struct ub_batch *batch, void **objects, int i)
{
	if (!ub_check(batch->function, objects[i], batch->kind))
		return true;
	if (batch->context_of(objects[i])->dev == batch->context_of(objects[0])->dev)
		return false;
	ub_refuse("%s: entry %d is of another device than entry 0", batch->function, i);
	return true;
}

urma_status_t ub_delete_batch(const struct ub_batch *batch, void **objects, int count, void **bad)
{
	if (!objects || count <= 0 || !bad) {
		if (objects && bad)
			ub_refuse("%s: the number of entries is %d, it must be positive",
				  batch->function, count);
		else
			ub_refuse("%s: %s is NULL", batch->function,
				  objects ? "the place for the bad entry" : "the array");
		if (bad && objects)
			*bad = objects[0];
		return URMA_EINVAL;
	}
	for (int i = 0; i < count; i++) {
		if (!element_is_bad(batch, objects, i))
			continue;
		*bad = objects[0]; /* as the original: nothing was deleted */
		return URMA_EINVAL;
	}
	for (int i = 0; i < count; i++) {
		urma_status_t status = batch->delete_one(objects[i]);

		if (!status)
			continue;
		*bad = objects[i];
		return status;
	}
	*bad = NULL;
	return URMA_SUCCESS;
}
