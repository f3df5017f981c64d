/* SPDX-License-Identifier: MIT */
/* Numbers that are unique in a context: a base plus an index, or exactly the one asked for. */
#ifndef XTAL_URMA_IDS_H
#define XTAL_URMA_IDS_H

#include <stdint.h>

#define UB_ID_INDEXES 65536u

/* Its functions lock it, by ub_lock(). */
struct ub_ids {
	uint32_t base;    /* its low 16 bits are 0 */
	uint32_t next;    /* index tried first: a number comes back as late as possible */
	uint64_t *used;   /* by index; index 0 is never given */
	uint32_t *others; /* numbers of another base */
	uint32_t other_count;
};

void ub_ids_init(struct ub_ids *ids, uint32_t base);
void ub_ids_fini(struct ub_ids *ids);
/* wanted 0: any. Errors: -EEXIST (somebody has it), -ENOSPC, -ENOMEM. */
int ub_ids_take(struct ub_ids *ids, uint32_t wanted, uint32_t *out);
void ub_ids_give_back(struct ub_ids *ids, uint32_t id);

#endif
