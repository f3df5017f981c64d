/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: event channels and completion queues. */
#ifndef URMA_TYPES_JFC_H
#define URMA_TYPES_JFC_H

#include "urma_types/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of an event channel; urma_create_jfce() takes none. */
typedef struct urma_jfce_cfg {
	uint32_t depth;
	uint64_t user_ctx;
} urma_jfce_cfg_t;

/* An event channel: a descriptor that tells of completions. */
typedef struct urma_jfce {
	urma_context_t *urma_ctx;
	int fd;              /* readable while events wait */
	struct urma_ref ref; /* 1 and the completion queues that use it */
} urma_jfce_t;

/* Flags of a completion queue. */
typedef union urma_jfc_flag {
	struct {
		uint32_t lock_free : 1; /* one thread at a time, says the program; not relied on */
		uint32_t jfc_inline : 1;
		uint32_t non_blocking : 1; /* deleting answers EAGAIN instead of waiting */
		uint32_t has_drv_ext : 1;
		uint32_t reserved : 28;
	} bs;
	uint32_t value;
} urma_jfc_flag_t;

/* How a completion queue is made. */
typedef struct urma_jfc_cfg {
	uint32_t depth; /* records, 1 to max_jfc_depth */
	urma_jfc_flag_t flag;
	uint32_t ceqn;     /* not looked at */
	urma_jfce_t *jfce; /* event channel, or NULL */
	uint64_t user_ctx;
} urma_jfc_cfg_t;

/* Which fields of urma_jfc_attr_t count. */
typedef enum urma_jfc_attr_mask {
	JFC_MODERATE_COUNT = 1,  /* moderate_count counts */
	JFC_MODERATE_PERIOD = 2, /* moderate_period counts */
} urma_jfc_attr_mask_t;

/* What urma_modify_jfc() can change: when events may wait for more completions. Stored only. */
typedef struct urma_jfc_attr {
	uint32_t mask;
	uint16_t moderate_count;
	uint16_t moderate_period;
} urma_jfc_attr_t;

/* Where a queue is: device, context, number. Peers import queues by it. */
typedef struct urma_jetty_id {
	urma_eid_t eid;
	uint32_t uasid;
	uint32_t id;
} urma_jetty_id_t;
typedef struct urma_jetty_id urma_jfs_id_t;
typedef struct urma_jetty_id urma_jfr_id_t;
typedef struct urma_jetty_id urma_jfc_id_t;

/* Which fields of urma_jfc_opt_t were set. */
union urma_jfc_opt_mask {
	struct {
		uint64_t urma_jfc_cqe_base_addr : 1;
		uint64_t urma_jfc_db_addr : 1;
		uint64_t urma_jfc_id : 1;
		uint64_t urma_jfc_pi : 1;
		uint64_t urma_jfc_pi_type : 1;
		uint64_t urma_jfc_ci : 1;
		uint64_t urma_jfc_db_status : 1;
		uint64_t reserved : 57;
	} bs;
	uint64_t value;
};

/* Options of a completion queue that was made in two steps; the library's own. */
typedef struct urma_jfc_opt {
	union urma_jfc_opt_mask jfc_opt_mask;
	bool is_actived;
	uint64_t urma_jfc_cqe_base_addr;
	uint32_t urma_jfc_id;
	uint64_t urma_jfc_db_addr;
	uint8_t urma_jfc_db_status;
	uint16_t urma_jfc_pi;
	uint16_t urma_jfc_pi_type;
	uint16_t urma_jfc_ci;
	uint64_t reserved[4];
} urma_jfc_opt_t;

/* A completion queue. */
typedef struct urma_jfc {
	urma_context_t *urma_ctx;
	urma_jfc_id_t jfc_id;
	urma_jfc_cfg_t jfc_cfg;
	uint64_t handle; /* the library's */
	pthread_mutex_t event_mutex;
	pthread_cond_t event_cond;
	uint32_t comp_events_acked; /* of urma_ack_jfc() */
	uint32_t async_events_acked;
	urma_jfc_opt_t urma_jfc_opt;
} urma_jfc_t;

#ifdef __cplusplus
}
#endif

#endif
