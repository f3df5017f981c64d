/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: receive queues. */
#ifndef URMA_TYPES_JFR_H
#define URMA_TYPES_JFR_H

#include "urma_types/jfc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of a receive queue. */
typedef union urma_jfr_flag {
	struct {
		uint32_t token_policy : 3; /* URMA_TOKEN_NONE or URMA_TOKEN_PLAIN_TEXT */
		uint32_t tag_matching : 1;
		uint32_t lock_free : 1;  /* as in urma_jfc_flag_t */
		uint32_t order_type : 8; /* urma_order_type_t */
		uint32_t has_drv_ext : 1;
		uint32_t non_blocking : 1;
		uint32_t reserved : 17;
	} bs;
	uint32_t value;
} urma_jfr_flag_t;

/* Which fields of urma_jfr_opt_t were set. */
union urma_jfr_opt_mask {
	struct {
		uint64_t urma_jfr_cqe_base_addr : 1;
		uint64_t urma_jfr_db_addr : 1;
		uint64_t urma_jfr_id : 1;
		uint64_t urma_jfr_pi : 1;
		uint64_t urma_jfr_pi_type : 1;
		uint64_t urma_jfr_ci : 1;
		uint64_t urma_jfr_db_status : 1;
		uint64_t reserved : 57;
	} bs;
	uint64_t value;
};

/* Options of a receive queue that was made in two steps; the library's own. */
typedef struct urma_jfr_opt {
	union urma_jfr_opt_mask jfr_opt_mask;
	bool is_actived;
	uint64_t urma_jfr_rqe_base_addr;
	uint32_t urma_jfr_id;
	uint64_t urma_jfr_db_addr;
	uint8_t urma_jfr_db_status;
	uint16_t urma_jfr_pi;
	uint16_t urma_jfr_pi_type;
	uint16_t urma_jfr_ci;
	uint64_t reserved[4];
} urma_jfr_opt_t;

/* How a receive queue is made. */
typedef struct urma_jfr_cfg {
	uint32_t id;    /* wanted number; 0: any */
	uint32_t depth; /* receives, 1 to max_jfr_depth */
	urma_jfr_flag_t flag;
	urma_transport_mode_t trans_mode;
	uint8_t max_sge;          /* pieces of a receive */
	uint8_t min_rnr_timer;    /* code; 12 is about 0.64 ms */
	urma_jfc_t *jfc;          /* where receives complete */
	urma_token_t token_value; /* what senders must present */
	uint64_t user_ctx;
} urma_jfr_cfg_t;

/* Which fields of urma_jfr_attr_t count. */
typedef enum urma_jfr_attr_mask {
	JFR_RX_THRESHOLD = 1,
	JFR_STATE = 2,
} urma_jfr_attr_mask_t;

/* What urma_modify_jfr() can change. */
typedef struct urma_jfr_attr {
	uint32_t mask;
	uint32_t rx_threshold; /* fewer posted receives raise URMA_EVENT_JFR_LIMIT */
	urma_jfr_state_t state;
} urma_jfr_attr_t;

/* A receive queue; jetties may share it. */
typedef struct urma_jfr {
	urma_context_t *urma_ctx;
	urma_jfr_id_t jfr_id;
	urma_jfr_cfg_t jfr_cfg;
	uint64_t handle; /* the library's */
	pthread_mutex_t event_mutex;
	pthread_cond_t event_cond;
	uint32_t async_events_acked;
	urma_jfr_opt_t urma_jfr_opt;
} urma_jfr_t;

/* Flags of an imported queue; what its owner tells out of band. */
typedef union urma_import_jetty_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t order_type : 8;
		uint32_t share_tp : 1;
		uint32_t has_drv_ext : 1;
		uint32_t has_user_info : 1;
		uint32_t reserved : 18;
	} bs;
	uint32_t value;
} urma_import_jetty_flag_t;

/* Kinds of transports. */
typedef enum urma_tp_type {
	URMA_RTP = 0,
	URMA_CTP = 1,
	URMA_UTP = 2,
} urma_tp_type_t;

/* A receive queue of a peer, as it is told out of band. */
typedef struct urma_rjfr {
	urma_jfr_id_t jfr_id;
	urma_transport_mode_t trans_mode;
	urma_import_jetty_flag_t flag;
	urma_tp_type_t tp_type;
} urma_rjfr_t;

/* The number of a transport. */
typedef struct urma_tp {
	uint32_t tpn;
} urma_tp_t;

#ifdef __cplusplus
}
#endif

#endif
