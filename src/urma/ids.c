/* SPDX-License-Identifier: MIT */
/* Numbers that are unique in a context. */
#include "ids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "object.h"

void ub_ids_init(struct ub_ids *ids, uint32_t base)
{
	*ids = (struct ub_ids){ .base = base, .next = 1 };
}

void ub_ids_fini(struct ub_ids *ids)
{
	free(ids->used);
	free(ids->others);
}

static bool is_used(const struct ub_ids *ids, uint32_t index)
{
	return ids->used[index / 64] >> index % 64 & 1;
}

static int take_any(struct ub_ids *ids, uint32_t *out)
{
	for (uint32_t i = 0; i < UB_ID_INDEXES; i++) {
		uint32_t index = (ids->next + i) % UB_ID_INDEXES;

		if (!index || is_used(ids, index))
			continue;
		ids->used[index / 64] |= UINT64_C(1) << index % 64;
		ids->next = index + 1;
		*out = ids->base | index;
		return 0;
	}
	return -ENOSPC;
}

static int take_other(struct ub_ids *ids, uint32_t wanted)
{
	uint32_t *grown;

	for (uint32_t i = 0; i < ids->other_count; i++)
		if (ids->others[i] == wanted)
			return -EEXIST;
	grown = realloc(ids->others, (ids->other_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[ids->other_count++] = wanted;
	ids->others = grown;
	return 0;
}

static int take(struct ub_ids *ids, uint32_t wanted, uint32_t *out)
{
	uint32_t index = wanted % UB_ID_INDEXES;
	int err = 0;

	if (!ids->used)
		ids->used = calloc(UB_ID_INDEXES / 64, sizeof(*ids->used));
	if (!ids->used)
		return -ENOMEM;
	if (!wanted)
		return take_any(ids, out);
	if (wanted - index != ids->base || !index)
		err = take_other(ids, wanted);
	else if (is_used(ids, index))
		err = -EEXIST;
	else
		ids->used[index / 64] |= UINT64_C(1) << index % 64;
	if (!err)
		*out = wanted;
	return err;
}

int ub_ids_take(struct ub_ids *ids, uint32_t wanted, uint32_t *out)
{
	int err;

	ub_lock();
	err = take(ids, wanted, out);
	ub_unlock();
	return err;
}

void ub_ids_give_back(struct ub_ids *ids, uint32_t id)
{
	uint32_t index = id % UB_ID_INDEXES;

	ub_lock();
	if (id - index == ids->base && index) {
		ids->used[index / 64] &= ~(UINT64_C(1) << index % 64);
	} else {
		for (uint32_t i = 0; i < ids->other_count; i++)
			if (ids->others[i] == id)
				ids->others[i] = ids->others[--ids->other_count];
	}
	ub_unlock();
}
