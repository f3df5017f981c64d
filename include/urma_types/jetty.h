/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: jetties, groups, what is imported of them, and notifiers. */
#ifndef URMA_TYPES_JETTY_H
#define URMA_TYPES_JETTY_H

#include "urma_types/jfr.h"
#include "urma_types/jfs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of a jetty. */
typedef union urma_jetty_flag {
	struct {
		uint32_t share_jfr : 1; /* 1: shared.jfr is used, the only way here */
		uint32_t non_blocking : 1;
		uint32_t has_drv_ext : 1;
		uint32_t has_user_info : 1;
		uint32_t reserved : 28;
	} bs;
	uint32_t value;
} urma_jetty_flag_t;

typedef struct urma_jetty_grp urma_jetty_grp_t;

/* How a jetty is made. */
typedef struct urma_jetty_cfg {
	uint32_t id; /* wanted number; 0: any */
	urma_jetty_flag_t flag;
	urma_jfs_cfg_t jfs_cfg;
	union {
		struct {                 /* with share_jfr */
			urma_jfr_t *jfr; /* where it receives */
			urma_jfc_t *jfc; /* where its receives complete; NULL: the jfr's jfc */
		} shared;
		urma_jfr_cfg_t *jfr_cfg; /* without share_jfr */
	};
	urma_jetty_grp_t *jetty_grp; /* to be a member of, or NULL */
	uint64_t user_ctx;
} urma_jetty_cfg_t;

/* How a group spreads messages over its members. */
typedef enum urma_jetty_grp_policy {
	URMA_JETTY_GRP_POLICY_RR = 0,
	URMA_JETTY_GRP_POLICY_HASH_HINT = 1,
} urma_jetty_grp_policy_t;

/* What an imported id stands for. */
typedef enum urma_target_type {
	URMA_JFR = 0, /* a receive queue */
	URMA_JETTY = 1,
	URMA_JETTY_GROUP = 2,
} urma_target_type_t;

/* Flags of urma_ext_t. */
typedef union urma_ext_flag {
	struct {
		uint32_t enable : 1;
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_ext_flag_t;

/* An extension of a struct; used by no function. */
typedef struct urma_ext {
	urma_ext_flag_t flag;
	uint32_t length;
	char buf[0];
} urma_ext_t;

/* A jetty or group of a peer, as it is told out of band. */
typedef struct urma_rjetty {
	urma_jetty_id_t jetty_id;
	urma_transport_mode_t trans_mode;
	urma_jetty_grp_policy_t policy; /* of a group */
	urma_target_type_t type;
	urma_import_jetty_flag_t flag;
	urma_tp_type_t tp_type;
} urma_rjetty_t;

/* An imported jetty, group or receive queue. */
typedef struct urma_target_jetty {
	urma_context_t *urma_ctx;
	urma_jetty_id_t id;
	uint64_t handle;
	urma_transport_mode_t trans_mode;
	urma_tp_t tp; /* 0xffffffff: none */
	urma_target_type_t type;
	urma_import_jetty_flag_t flag;
	urma_jetty_grp_policy_t policy;
	urma_tp_type_t tp_type;
} urma_target_jetty_t;

/* Which fields of urma_jetty_attr_t count. */
typedef enum urma_jetty_attr_mask {
	JETTY_RX_THRESHOLD = 1,
	JETTY_STATE = 2,
} urma_jetty_attr_mask_t;

/* What urma_modify_jetty() can change. */
typedef struct urma_jetty_attr {
	uint32_t mask;
	uint32_t rx_threshold; /* refused: it is the jfr's, see urma_modify_jfr() */
	urma_jetty_state_t state;
} urma_jetty_attr_t;

/* Options of a jetty that was made in two steps; the library's own. */
typedef struct urma_jetty_opt {
	bool is_actived;
	urma_jfs_opt_t jfs_opt;
	uint64_t reserved[4];
} urma_jetty_opt_t;

/* A jetty: a send queue and a receive queue with one number. */
typedef struct urma_jetty {
	urma_context_t *urma_ctx;
	urma_jetty_id_t jetty_id;
	urma_target_jetty_t *remote_jetty; /* the bound peer, or NULL */
	urma_jetty_cfg_t jetty_cfg;
	uint64_t handle; /* the library's */
	pthread_mutex_t event_mutex;
	pthread_cond_t event_cond;
	uint32_t async_events_acked;
	urma_jetty_opt_t urma_jetty_opt;
} urma_jetty_t;

/* Where the ends of asynchronous imports and binds are told. */
typedef struct urma_notifier {
	urma_context_t *urma_ctx;
	int fd;                       /* readable while notices wait */
	void *incomplete_tjetty_list; /* the library's */
} urma_notifier_t;

/* What has ended. */
typedef enum urma_notify_type {
	URMA_IMPORT_JETTY_NOTIFY = 0,
	URMA_BIND_JETTY_NOTIFY = 1,
} urma_notify_type_t;

/* The end of an asynchronous import or bind. */
typedef struct urma_notify {
	urma_notify_type_t type;
	urma_status_t status; /* how it ended */
	uint64_t user_ctx;    /* as it was given */
	union {
		urma_target_jetty_t *tjetty; /* of an import */
		urma_jetty_t *jetty;         /* of a bind */
	};
} urma_notify_t;

/* Flags of a group. */
typedef union urma_jetty_grp_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t reserved : 29;
	} bs;
	uint32_t value;
} urma_jetty_grp_flag_t;

/* How a group of jetties is made. */
typedef struct urma_jetty_grp_cfg {
	char name[64]; /* with a final 0 */
	urma_jetty_grp_flag_t flag;
	urma_token_t token_value;
	uint32_t id;
	urma_jetty_grp_policy_t policy;
	uint64_t user_ctx;
} urma_jetty_grp_cfg_t;

/* A group: messages to it go to one of its jetties. */
struct urma_jetty_grp {
	urma_context_t *urma_ctx;
	urma_jetty_id_t jetty_grp_id;
	urma_jetty_grp_cfg_t cfg;
	uint32_t jetty_cnt; /* members */
	urma_jetty_t **jetty_list;
	pthread_mutex_t list_mutex;
	uint64_t handle;
	pthread_mutex_t event_mutex;
	pthread_cond_t event_cond;
	uint32_t async_events_acked;
};

#ifdef __cplusplus
}
#endif

#endif
