/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: send queues. */
#ifndef URMA_TYPES_JFS_H
#define URMA_TYPES_JFS_H

#include "urma_types/jfc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which order of requests a queue keeps. In the order of posting, whatever is asked for. */
typedef enum urma_order_type {
	URMA_DEF_ORDER = 0, /* that of the mode: OI for RM, OL for RC, NO for UM */
	URMA_OT = 1,        /* ordered by the target */
	URMA_OI = 2,        /* ordered by the initiator */
	URMA_OL = 3,        /* ordered by the link */
	URMA_NO = 4,        /* not ordered */
} urma_order_type_t;

/* Flags of a send queue. */
typedef union urma_jfs_flag {
	struct {
		uint32_t lock_free : 1; /* as in urma_jfc_flag_t */
		uint32_t
			error_suspend : 1; /* a failure suspends the queue instead of breaking it */
		uint32_t outorder_comp : 1;
		uint32_t order_type : 8; /* urma_order_type_t */
		uint32_t multi_path : 1;
		uint32_t ctp_rc_mul_path_mode : 1;
		uint32_t non_blocking : 1;
		uint32_t has_drv_ext : 1;
		uint32_t reserved : 17;
	} bs;
	uint32_t value;
} urma_jfs_flag_t;

/* Which fields of urma_jfs_opt_t were set. */
union urma_jfs_opt_mask {
	struct {
		uint64_t urma_jfs_cqe_base_addr : 1;
		uint64_t urma_jfs_db_addr : 1;
		uint64_t urma_jfs_id : 1;
		uint64_t urma_jfs_pi : 1;
		uint64_t urma_jfs_pi_type : 1;
		uint64_t urma_jfs_ci : 1;
		uint64_t urma_jfs_db_status : 1;
		uint64_t reserved : 57;
	} bs;
	uint64_t value;
};

/* Options of a send queue that was made in two steps; the library's own. */
typedef struct urma_jfs_opt {
	union urma_jfs_opt_mask jfs_opt_mask;
	bool is_actived;
	uint64_t urma_jfs_sqe_base_addr;
	uint32_t urma_jfs_id;
	uint64_t urma_jfs_db_addr;
	uint8_t urma_jfs_db_status;
	uint16_t urma_jfs_pi;
	uint16_t urma_jfs_pi_type;
	uint16_t urma_jfs_ci;
	uint64_t reserved[4];
} urma_jfs_opt_t;

/* How a send queue, or the sending side of a jetty, is made. */
typedef struct urma_jfs_cfg {
	uint32_t depth; /* requests, 1 to max_jfs_depth */
	urma_jfs_flag_t flag;
	urma_transport_mode_t trans_mode;
	uint8_t priority;         /* 0 to 15; makes no difference here */
	uint8_t max_sge;          /* local pieces of a request */
	uint8_t max_rsge;         /* remote pieces of a request; posts do not look at it */
	uint32_t max_inline_data; /* bytes; 0: the device's limit */
	uint8_t rnr_retry;        /* 0 to 7; 7: without end */
	uint8_t err_timeout;      /* 4.096 us * 2^n, 0 to 31; stretched */
	urma_jfc_t *jfc;          /* where requests complete */
	uint64_t user_ctx;
} urma_jfs_cfg_t;

/* A send queue. */
typedef struct urma_jfs {
	urma_context_t *urma_ctx;
	urma_jfs_id_t jfs_id;
	urma_jfs_cfg_t jfs_cfg;
	uint64_t handle; /* the library's */
	pthread_mutex_t event_mutex;
	pthread_cond_t event_cond;
	uint32_t async_events_acked;
	urma_jfs_opt_t urma_jfs_opt;
} urma_jfs_t;

/* Which fields of urma_jfs_attr_t count. */
typedef enum urma_jfs_attr_mask {
	JFS_STATE = 1,
} urma_jfs_attr_mask_t;

typedef urma_jetty_state_t urma_jfs_state_t;

/* What urma_modify_jfs() can change. */
typedef struct urma_jfs_attr {
	uint32_t mask;
	urma_jfs_state_t state;
} urma_jfs_attr_t;

#ifdef __cplusplus
}
#endif

#endif
