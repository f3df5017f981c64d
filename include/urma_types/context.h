/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: contexts and a device's addresses. */
#ifndef URMA_TYPES_CONTEXT_H
#define URMA_TYPES_CONTEXT_H

#include "urma_types/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options for urma_set_context_opt(). */
typedef enum urma_context_opt_name {
	URMA_OPT_AGGR_MODE = 0,
} urma_opt_name_t;

/* How a bonded device spreads its work; only STANDALONE exists here. */
typedef enum urma_context_aggr_mode {
	URMA_AGGR_MODE_STANDALONE = 0,
	URMA_AGGR_MODE_ACTIVE_BACKUP = 1,
	URMA_AGGR_MODE_BALANCE = 2,
} urma_context_aggr_mode_t;

/* One user of a device; everything else is made in a context. */
typedef struct urma_context {
	struct urma_device *dev; /* where it was made */
	struct urma_ops *ops;    /* a table of NULLs */
	int dev_fd;              /* -1 */
	int async_fd;            /* readable while events wait */
	pthread_mutex_t mutex;   /* the library's */
	urma_eid_t eid;          /* its device's address */
	uint32_t eid_index;      /* as it was made */
	uint32_t uasid;          /* this context among those of the device; never 0 */
	struct urma_ref ref;     /* 1 and the objects in it */
	urma_context_aggr_mode_t aggr_mode;
} urma_context_t;

/* One address of a device. */
typedef struct urma_eid_info {
	urma_eid_t eid;
	uint32_t eid_index;
} urma_eid_info_t;

#ifdef __cplusplus
}
#endif

#endif
