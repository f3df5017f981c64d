/* SPDX-License-Identifier: MIT */
/*
 * urma_types.h - the structs of the URMA API. Programs include urma_api.h.
 *
 * All structs are public and their layout never changes. What the library makes (contexts, queues,
 * segments, imported objects) is the head of something larger: use it through the pointers that the
 * library returned, and do not change it.
 */
#ifndef URMA_TYPES_H
#define URMA_TYPES_H

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/socket.h>
#ifdef __cplusplus
#include <atomic>
#else
#include <stdatomic.h>
#endif
#ifdef __cplusplus
}
#endif
#include "urma_opcode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes and limits. */
#define URMA_API_VERSION            9
#define MAX_PORT_CNT                8    /* ports per device */
#define URMA_MAX_JETTY_IN_JETTY_GRP 32   /* members of a group */
#define URMA_MAX_NAME               64   /* with the final 0 */
#define URMA_MAX_PATH               4096 /* with the final 0 */
#define URMA_EID_SIZE               16
#define URMA_MAX_PRIORITY_CNT       16
#define URMA_IPV4_MAP_IPV6_PREFIX   0xffff /* of an IPv4 address in an EID */
#define URMA_MAX_EID_CNT            1024
#define URMA_CC_IDX_TABLE_SIZE      80
#define URMA_OPT_REVERSED_NUM       4
#define URMA_EID_STR_LEN            39         /* characters of an EID as text */
#define URMA_SEG_TOKEN_ID_INVALID   UINT32_MAX /* no token id */
#define URMA_MAX_DEV_NAME           64         /* with the final 0 */
#define URMA_GUID_SIZE              16
#define URMA_IP_ADDR_BYTES          16
#define URMA_MAC_BYTES              6

/* Which fields of an urma_*_opt struct were set. */
#define URMA_JFS_SQE_BASE_ADDR_MASK 1
#define URMA_JFS_ID_MASK            2
#define URMA_JFS_DB_ADDR_MASK       4
#define URMA_JFS_DB_STATUS_MASK     8
#define URMA_JFS_PI_MASK            16
#define URMA_JFS_PI_TYPE_MASK       32
#define URMA_JFS_CI_MASK            64
#define URMA_JFR_RQE_BASE_ADDR_MASK 1
#define URMA_JFR_ID_MASK            2
#define URMA_JFR_DB_ADDR_MASK       4
#define URMA_JFR_DB_STATUS_MASK     8
#define URMA_JFR_PI_MASK            16
#define URMA_JFR_PI_TYPE_MASK       32
#define URMA_JFR_CI_MASK            64
#define URMA_JFC_CQE_BASE_ADDR_MASK 1
#define URMA_JFC_ID_MASK            2
#define URMA_JFC_DB_ADDR_MASK       4
#define URMA_JFC_DB_STATUS_MASK     8
#define URMA_JFC_PI_MASK            16
#define URMA_JFC_PI_TYPE_MASK       32
#define URMA_JFC_CI_MASK            64

/* Of the structs for named regions below. */
#define UR_NAME_MAX_LEN          256
#define JFR_NAME_MAX_LEN         256
#define URMA_MAX_SEGS_PER_UR_OPT 64

/* printf format of an EID, and its arguments. */
#define EID_FMT \
	"%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x"
#define EID_RAW_ARGS(eid)                                                                        \
	eid[0], eid[1], eid[2], eid[3], eid[4], eid[5], eid[6], eid[7], eid[8], eid[9], eid[10], \
		eid[11], eid[12], eid[13], eid[14], eid[15]
#define EID_ARGS(eid) EID_RAW_ARGS((eid).raw)

/* A version from its major and minor number; the latter ends at 65535. */
#define URMA_GET_VERSION(a, b) (((a) << 16) + ((b) > 65535 ? 65535 : (b)))

/* Advice for urma_init(); not looked at. */
typedef struct urma_init_attr {
	uint64_t token; /* not looked at */
	uint32_t uasid; /* not looked at */
} urma_init_attr_t;

/* Largest packet of a port, bytes. */
typedef enum urma_mtu {
	URMA_MTU_256 = 1,
	URMA_MTU_512 = 2,
	URMA_MTU_1024 = 3,
	URMA_MTU_2048 = 4,
	URMA_MTU_4096 = 5,
	URMA_MTU_8192 = 6,
} urma_mtu_t;

/* State of a port. */
typedef enum urma_port_state {
	URMA_PORT_NOP = 0,
	URMA_PORT_DOWN = 1,
	URMA_PORT_INIT = 2,
	URMA_PORT_ARMED = 3,
	URMA_PORT_ACTIVE = 4, /* the usual state */
	URMA_PORT_ACTIVE_DEFER = 5,
} urma_port_state_t;

/* Speed of a lane of a port, bits per second. */
typedef enum urma_speed {
	URMA_SP_10M = 0,
	URMA_SP_100M = 1,
	URMA_SP_1G = 2,
	URMA_SP_2_5G = 3,
	URMA_SP_5G = 4,
	URMA_SP_10G = 5,
	URMA_SP_14G = 6,
	URMA_SP_25G = 7,
	URMA_SP_40G = 8,
	URMA_SP_50G = 9,
	URMA_SP_100G = 10,
	URMA_SP_200G = 11,
	URMA_SP_400G = 12,
	URMA_SP_800G = 13,
} urma_speed_t;

/* Lanes of a port. */
typedef enum urma_link_width {
	URMA_LINK_X1 = 1,
	URMA_LINK_X2 = 2,
	URMA_LINK_X4 = 4,
	URMA_LINK_X8 = 8,
	URMA_LINK_X16 = 16,
	URMA_LINK_X32 = 32,
} urma_link_width_t;

/* A device's address: 16 bytes in network order, an IPv4 address as ::ffff:a.b.c.d. */
typedef union urma_eid {
	uint8_t raw[16];
	struct {                   /* fields in network order */
		uint64_t reserved; /* 0 */
		uint32_t prefix;   /* URMA_IPV4_MAP_IPV6_PREFIX */
		uint32_t addr;
	} in4;
	struct { /* fields in network order */
		uint64_t subnet_prefix;
		uint64_t interface_id;
	} in6;
} urma_eid_t;

/* A count of users; the library's own. */
typedef struct urma_ref {
#ifdef __cplusplus
	std::atomic_ulong atomic_cnt;
#else
	atomic_ulong atomic_cnt;
#endif
} urma_ref_t;

/* A port of a device. */
typedef struct urma_port_attr {
	urma_mtu_t max_mtu;
	urma_port_state_t state;
	urma_link_width_t active_width;
	urma_speed_t active_speed;
	urma_mtu_t active_mtu;
} urma_port_attr_t;

/* Which kinds of transport a priority may use. */
union urma_tp_type_en {
	struct {
		uint32_t rtp : 1;
		uint32_t ctp : 1;
		uint32_t utp : 1;
		uint32_t reserved : 29;
	} bs;
	uint32_t value;
};

/* A priority: its service level and transports. */
struct urma_sl_info {
	uint32_t SL;
	union urma_tp_type_en tp_type;
};

/* What a device can do, one bit each. */
typedef union urma_device_feature {
	struct {
		uint32_t oor : 1;
		uint32_t jfc_per_wr : 1;
		uint32_t stride_op : 1;
		uint32_t load_store_op : 1;
		uint32_t non_pin : 1;
		uint32_t pmem : 1;
		uint32_t jfc_inline : 1;
		uint32_t spray_en : 1;
		uint32_t selective_retrans : 1;
		uint32_t live_migrate : 1;
		uint32_t dca : 1;
		uint32_t jetty_grp : 1;
		uint32_t error_suspend : 1;
		uint32_t outorder_comp : 1;
		uint32_t mn : 1;
		uint32_t clan : 1;
		uint32_t muti_seg_per_token_id : 1;
		uint32_t ipourma_en : 1;
		uint32_t ctp_en : 1;
		uint32_t uboe : 1;
		uint32_t reserved : 12;
	} bs;
	uint32_t value;
} urma_device_feature_t;

/* Which atomics a device has. */
typedef union urma_atomic_feature {
	struct {
		uint32_t cas : 1;
		uint32_t swap : 1;
		uint32_t fetch_and_add : 1;
		uint32_t fetch_and_sub : 1;
		uint32_t fetch_and_and : 1;
		uint32_t fetch_and_or : 1;
		uint32_t fetch_and_xor : 1;
		uint32_t reserved : 25;
	} bs;
	uint32_t value;
} urma_atomic_feature_t;

/* Which orders a device offers for a mode. */
typedef union urma_order_type_cap {
	struct {
		uint32_t ot : 1;
		uint32_t oi : 1;
		uint32_t ol : 1;
		uint32_t no : 1;
		uint32_t reserved : 28;
	} bs;
	uint32_t value;
} urma_order_type_cap_t;

/* Which transports a device offers for a mode. */
typedef union urma_tp_type_cap {
	struct {
		uint32_t rtp : 1;
		uint32_t ctp : 1;
		uint32_t utp : 1;
		uint32_t reserved : 29;
	} bs;
	uint32_t value;
} urma_tp_type_cap_t;

/* What the transports of a device can do. */
typedef union urma_tp_feature {
	struct {
		uint32_t rm_multi_path : 1;
		uint32_t rc_multi_path : 1;
		uint32_t reserved : 30;
	} bs;
	uint32_t value;
} urma_tp_feature_t;

/* Limits of a device. */
typedef struct urma_device_cap {
	urma_device_feature_t feature;
	uint32_t max_jfc;
	uint32_t max_jfs;
	uint32_t max_jfr;
	uint32_t max_jetty;
	uint32_t max_jetty_grp;
	uint32_t max_jetty_in_jetty_grp;
	uint32_t max_jfc_depth;      /* completion records */
	uint32_t max_jfs_depth;      /* requests */
	uint32_t max_jfr_depth;      /* receives */
	uint32_t max_jfs_inline_len; /* bytes */
	uint32_t max_jfs_sge;        /* local pieces of a request */
	uint32_t max_jfs_rsge;       /* remote pieces of a request */
	uint32_t max_jfr_sge;        /* pieces of a receive */
	uint64_t max_msg_size;       /* bytes of a request */
	uint32_t max_read_size;      /* bytes */
	uint32_t max_write_size;     /* bytes */
	uint32_t max_cas_size;       /* bytes; likewise below */
	uint32_t max_swap_size;
	uint32_t max_fetch_and_add_size;
	uint32_t max_fetch_and_sub_size;
	uint32_t max_fetch_and_and_size;
	uint32_t max_fetch_and_or_size;
	uint32_t max_fetch_and_xor_size;
	urma_atomic_feature_t atomic_feat;
	uint16_t trans_mode; /* urma_transport_mode_t */
	uint16_t reserved;
	uint16_t congestion_ctrl_alg; /* urma_congestion_ctrl_alg_t */
	uint32_t ceq_cnt;             /* values of urma_jfc_cfg_t.ceqn */
	uint32_t max_tp_in_tpg;
	uint32_t max_eid_cnt;   /* addresses */
	uint64_t page_size_cap; /* bit n: pages of 2^n bytes */
	uint32_t max_oor_cnt;
	uint32_t mn;
	uint32_t max_netaddr_cnt; /* of urma_get_net_addr_list() */
	urma_order_type_cap_t rm_order_cap;
	urma_order_type_cap_t rc_order_cap;
	urma_tp_type_cap_t rm_tp_cap;
	urma_tp_type_cap_t rc_tp_cap;
	urma_tp_type_cap_t um_tp_cap;
	urma_tp_feature_t tp_feature;
	struct urma_sl_info priority_info[16];
} urma_device_cap_t;

/* A name of a device that no other has. */
typedef struct urma_guid {
	uint8_t raw[16];
} urma_guid_t;

/* What urma_query_device() tells. */
typedef struct urma_device_attr {
	urma_guid_t guid;
	urma_device_cap_t dev_cap;
	uint8_t port_cnt; /* entries used of port_attr */
	struct urma_port_attr port_attr[8];
	uint32_t reserved_jetty_id_min; /* ids kept for others; none when both are 0 */
	uint32_t reserved_jetty_id_max;
} urma_device_attr_t;

/* A secret: who wants to reach a segment or queue made with one must present it. */
typedef struct urma_token {
	uint32_t token;
} urma_token_t;

/* Kinds of devices. */
typedef enum urma_transport_type {
	URMA_TRANSPORT_INVALID = -1,
	URMA_TRANSPORT_UB = 0, /* the devices of this library */
	URMA_TRANSPORT_IB = 1,
	URMA_TRANSPORT_IP = 2,
	URMA_TRANSPORT_SOFTUB = 3,
	URMA_TRANSPORT_HNS_UB = 5,
	URMA_TRANSPORT_MAX = 6,
} urma_transport_type_t;

/* Kinds of queues; bits. */
typedef enum urma_transport_mode {
	URMA_TM_RM = 1, /* reliable, each request names its target */
	URMA_TM_RC = 2, /* reliable, one bound target */
	URMA_TM_UM = 4, /* unreliable messages */
} urma_transport_mode_t;

/* Congestion control of a transport; of hardware only. */
typedef enum urma_tp_cc_alg {
	URMA_TP_CC_NONE = 0,
	URMA_TP_CC_DCQCN = 1,
	URMA_TP_CC_CAQM = 2,
	URMA_TP_CC_LDCP = 3,
	URMA_TP_CC_LDCP_L2_HEADER = 4,
	URMA_TP_CC_LDCP_TP_HEADER = 5,
	URMA_TP_CC_DIP = 6,
	URMA_TP_CC_ACC = 7,
	URMA_TP_CC_CUSTOM_1 = 8,
	URMA_TP_CC_CUSTOM_2 = 9,
	URMA_TP_CC_NUM = 10,
} urma_tp_cc_alg_t;

/* The same as bits. */
typedef enum urma_congestion_ctrl_alg {
	URMA_CC_NONE = 1,
	URMA_CC_DCQCN = 2,
	URMA_CC_CAQM = 4,
	URMA_CC_LDCP = 8,
	URMA_CC_LDCP_L2_HEADER = 16,
	URMA_CC_LDCP_TP_HEADER = 32,
	URMA_CC_DIP = 64,
	URMA_CC_ACC = 128,
	URMA_CC_CUSTOM_1 = 256,
	URMA_CC_CUSTOM_2 = 512,
} urma_congestion_ctrl_alg_t;

/* One entry of a table of congestion controls; of hardware only. */
typedef struct urma_cc_entry {
	urma_tp_cc_alg_t alg;
	uint8_t cc_pattern_idx;
	uint8_t cc_priority;
} __attribute__((packed)) urma_cc_entry_t;

/* A device: a local network address. Made by the library, valid until urma_uninit(). */
typedef struct urma_device {
	char name[64];                    /* "xtal0" */
	char path[4096];                  /* where the system shows the device; "" */
	urma_transport_type_t type;       /* URMA_TRANSPORT_UB */
	struct urma_provider_ops *ops;    /* its name only */
	struct urma_sysfs_dev *sysfs_dev; /* NULL */
} urma_device_t;

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
	uint8_t max_rsge;         /* remote pieces of a request */
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

/* An address in the memory of a context. */
typedef struct urma_ubva {
	urma_eid_t eid;
	uint32_t uasid; /* the context */
	uint64_t va;
} __attribute__((packed)) urma_ubva_t;

/* Flags of a segment that is registered. */
typedef union urma_reg_seg_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1;
		uint32_t dsva : 1;
		uint32_t access : 6; /* URMA_ACCESS_* */
		uint32_t non_pin : 1;
		uint32_t user_iova : 1;
		uint32_t token_id_valid : 1; /* token_id of the cfg counts */
		uint32_t reserved : 18;
	} bs;
	uint32_t value;
} urma_reg_seg_flag_t;

/* The same, as the owner tells it out of band. */
typedef union urma_seg_attr {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1;
		uint32_t dsva : 1;
		uint32_t access : 6; /* URMA_ACCESS_* */
		uint32_t non_pin : 1;
		uint32_t user_iova : 1;
		uint32_t user_token_id : 1;
		uint32_t has_user_info : 1;
		uint32_t reserved : 17;
	} bs;
	uint32_t value;
} urma_seg_attr_t;

/* Flags of a segment that is imported; make no difference here. */
typedef union urma_import_seg_flag {
	struct {
		uint32_t cacheable : 1;
		uint32_t access : 6;
		uint32_t mapping : 1;
		uint32_t reserved : 24;
	} bs;
	uint32_t value;
} urma_import_seg_flag_t;

/* Flags of a token id. */
typedef union urma_token_id_flag {
	struct {
		uint32_t multi_seg : 1;
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_token_id_flag_t;

/* The number of one segment, or of several, in its context. */
typedef struct urma_token_id {
	urma_context_t *urma_ctx;
	uint32_t token_id;
	uint64_t handle;
	urma_ref_t ref;
	urma_token_id_flag_t flag;
} urma_token_id_t;

/* How a segment is registered. */
typedef struct urma_seg_cfg {
	uint64_t va;
	uint64_t len;              /* bytes */
	urma_token_id_t *token_id; /* its number; NULL: the library takes one */
	urma_token_t token_value;
	urma_reg_seg_flag_t flag;
	uint64_t user_ctx;
	uint64_t iova; /* not looked at */
} urma_seg_cfg_t;

/* A segment, as it is told out of band. */
typedef struct urma_seg {
	urma_ubva_t ubva;
	uint64_t len; /* bytes */
	urma_seg_attr_t attr;
	uint32_t token_id;
} urma_seg_t;

/* A segment that was registered or imported. */
typedef struct urma_target_seg {
	urma_seg_t seg;
	uint64_t user_ctx;
	uint64_t mva; /* 0 */
	urma_context_t *urma_ctx;
	urma_token_id_t *token_id; /* NULL when imported */
	uint64_t handle;           /* the library's */
} urma_target_seg_t;

/* Input of urma_user_ctl(). */
typedef struct urma_user_ctl_in {
	uint64_t addr;
	uint32_t len;
	uint32_t opcode;
} urma_user_ctl_in_t;

/* Output of urma_user_ctl(). */
typedef struct urma_user_ctl_out {
	uint64_t addr;
	uint32_t len;
	uint32_t reserved;
} urma_user_ctl_out_t;

/* What a request needs to reach a segment that was not imported. */
typedef struct urma_user_target_seg {
	urma_seg_attr_t attr;
	uint32_t token_id;
	urma_token_t token_value;
} urma_user_tseg_t;

/* A piece of memory. */
typedef struct urma_sge {
	uint64_t addr;               /* in the process that owns the memory */
	uint32_t len;                /* bytes */
	urma_target_seg_t *tseg;     /* segment; may be NULL for local memory */
	urma_user_tseg_t *user_tseg; /* remote memory: in place of tseg */
} urma_sge_t;

/* A list of pieces. */
typedef struct urma_sg {
	urma_sge_t *sge;
	uint32_t num_sge;
} urma_sg_t;

/* Flags of a request. */
typedef union urma_jfs_wr_flag {
	struct {
		uint32_t place_order : 2; /* urma_place_order_t */
		uint32_t comp_order : 1;  /* completes after all posted before; else its peer's */
		uint32_t fence : 1;
		uint32_t solicited_enable : 1;
		uint32_t complete_enable : 1;
		uint32_t inline_flag : 1;
		uint32_t db_bypass : 1; /* makes no difference here */
		uint32_t udf : 1;
		uint32_t has_drv_ext : 1;
		uint32_t reserved : 22;
	} bs;
	uint32_t value;
} urma_jfs_wr_flag_t;

/* Flags of a receive; used by no function. */
typedef union urma_jfr_wr_flag {
	struct {
		uint32_t complete_type : 1;
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_jfr_wr_flag_t;

/* A read or write. */
typedef struct urma_rw_wr {
	urma_sg_t src;
	urma_sg_t dst;
	uint8_t target_hint;  /* which member of a group */
	uint64_t notify_data; /* immediate data, or the 8 bytes for WRITE_NOTIFY */
} urma_rw_wr_t;

/* A message. */
typedef struct urma_send_wr {
	urma_sg_t src;
	uint8_t target_hint;
	uint64_t imm_data;
	urma_target_seg_t *tseg; /* SEND_INVALIDATE: what to withdraw */
} urma_send_wr_t;

/* A compare and swap, or a swap (cmp_data is not looked at). */
typedef struct urma_cas_wr {
	urma_sge_t *dst; /* in the target's memory */
	urma_sge_t *src; /* where the old value goes; its len counts */
	union {
		uint64_t cmp_data;
		uint64_t cmp_addr; /* 16 bytes: address of the value */
	};
	union {
		uint64_t swap_data;
		uint64_t swap_addr; /* 16 bytes: address of the value */
	};
} urma_cas_wr_t;

/* A fetch and add, or another of the fetching atomics. */
typedef struct urma_faa_wr {
	urma_sge_t *dst; /* in the target's memory */
	urma_sge_t *src; /* where the old value goes; its len counts */
	union {
		uint64_t operand;
		uint64_t operand_addr;
	};
} urma_faa_wr_t;

/* A request. */
typedef struct urma_jfs_wr {
	urma_opcode_t opcode;
	urma_jfs_wr_flag_t flag;
	urma_target_jetty_t *tjetty; /* target; not looked at for RC */
	uint64_t user_ctx;
	union {
		urma_rw_wr_t rw;
		urma_send_wr_t send;
		urma_cas_wr_t cas;
		urma_faa_wr_t faa;
	};
	struct urma_jfs_wr *next; /* NULL: the last of the chain */
} urma_jfs_wr_t;

/* A receive: where a message may land. */
typedef struct urma_jfr_wr {
	urma_sg_t src;
	uint64_t user_ctx;
	struct urma_jfr_wr *next; /* NULL: the last of the chain */
} urma_jfr_wr_t;

/* Flags of a completion record. */
typedef union urma_cr_flag {
	struct {
		uint8_t s_r : 1;            /* 1: a receive */
		uint8_t jetty : 1;          /* 1: local_id is a jetty */
		uint8_t suspend_done : 1;   /* 1: marker, no request */
		uint8_t flush_err_done : 1; /* 1: marker, no request */
		uint8_t reserved : 4;
	} bs;
	uint8_t value;
} urma_cr_flag_t;

/* The segment that a SEND_INVALIDATE withdrew. */
typedef struct urma_cr_token {
	uint32_t token_id;
	urma_token_t token_value;
} urma_cr_token_t;

/* A completion record: how one request or receive ended. */
typedef struct urma_cr {
	urma_cr_status_t status;
	uint64_t user_ctx;       /* of the request or receive */
	urma_cr_opcode_t opcode; /* what arrived; with s_r only */
	urma_cr_flag_t flag;
	uint32_t completion_len;   /* bytes moved */
	uint32_t local_id;         /* of the jetty or queue */
	urma_jetty_id_t remote_id; /* the peer's queue */
	union {
		uint64_t imm_data; /* of a message with immediate data */
		urma_cr_token_t invalid_token;
	};
	uint32_t tpn;        /* number of the link to the peer */
	uintptr_t user_data; /* the urma_jetty_t, urma_jfs_t or urma_jfr_t */
} urma_cr_t;

/* What urma_get_async_event() tells. */
typedef struct urma_async_event {
	const urma_context_t *urma_ctx;
	union { /* by event_type */
		urma_jfc_t *jfc;
		urma_jfs_t *jfs;
		urma_jfr_t *jfr;
		urma_jetty_t *jetty;
		urma_jetty_grp_t *jetty_grp;
		uint32_t port_id;
		uint32_t eid_idx;
	} element;
	urma_async_event_type_t event_type;
	void *priv; /* the library's */
} urma_async_event_t;

/* Named regions: layouts that programs may name; no function uses them. */
typedef union urma_ur_attr {
	struct {
		uint32_t reserved : 32;
	} bs;
	uint32_t value;
} urma_ur_attr_t;

typedef union urma_import_ur_flag {
	struct {
		uint32_t mapping : 2;
		uint32_t reserved : 30;
	} bs;
	uint32_t value;
} urma_import_ur_flag_t;

typedef struct urma_ur {
	char name[256];
	uint64_t size;
	urma_ur_attr_t attr;
	uint64_t token;
	uint64_t user_ctx;
} urma_ur_t;

typedef struct urma_target_ur {
	char name[256];
	uint64_t size;
	urma_import_ur_flag_t flag;
	urma_target_seg_t **tseg_list;
	uint32_t cnt;
} urma_target_ur_t;

typedef struct urma_seg_info {
	urma_seg_t seg;
	uint32_t idx_in_ur;
} urma_seg_info_t;

typedef struct urma_ur_info {
	char name[256];
	uint64_t size;
	urma_ur_attr_t attr;
	uint32_t cnt;
	urma_seg_info_t seg_list[0];
} urma_ur_info_t;

typedef struct urma_jfr_info {
	char name[256];
	urma_eid_t eid;
	uint32_t uasid;
	uint32_t id;
} urma_jfr_info_t;

/* Transports: layouts for urma_modify_tp() and the functions after it. */
typedef union urma_tp_cfg_flag {
	struct {
		uint32_t target : 1;
		uint32_t loopback : 1;
		uint32_t dca_enable : 1;
		uint32_t bonding : 1;
		uint32_t reserved : 28;
	} bs;
	uint32_t value;
} urma_tp_cfg_flag_t;

typedef struct urma_tp_cfg {
	urma_tp_cfg_flag_t flag;
	urma_transport_mode_t trans_mode;
	uint8_t retry_num;
	uint8_t retry_factor;
	uint8_t ack_timeout;
	uint8_t dscp;
	uint32_t oor_cnt;
} urma_tp_cfg_t;

typedef union urma_tp_attr_mask {
	struct {
		uint32_t flag : 1;
		uint32_t peer_tpn : 1;
		uint32_t state : 1;
		uint32_t tx_psn : 1;
		uint32_t rx_psn : 1;
		uint32_t mtu : 1;
		uint32_t cc_pattern_idx : 1;
		uint32_t oos_cnt : 1;
		uint32_t local_net_addr_idx : 1;
		uint32_t peer_net_addr : 1;
		uint32_t data_udp_start : 1;
		uint32_t ack_udp_start : 1;
		uint32_t udp_range : 1;
		uint32_t hop_limit : 1;
		uint32_t flow_label : 1;
		uint32_t port_id : 1;
		uint32_t mn : 1;
		uint32_t peer_trans_type : 1;
		uint32_t reserved : 14;
	} bs;
	uint32_t value;
} urma_tp_attr_mask_t;

typedef union urma_tp_mod_flag {
	struct {
		uint32_t oor_en : 1;
		uint32_t sr_en : 1;
		uint32_t cc_en : 1;
		uint32_t cc_alg : 4;
		uint32_t spray_en : 1;
		uint32_t clan : 1;
		uint32_t reserved : 23;
	} bs;
	uint32_t value;
} urma_tp_mod_flag_t;

typedef enum urma_tp_state {
	URMA_TP_STATE_RESET = 0,
	URMA_TP_STATE_PASSIVE = 1,
	URMA_TP_STATE_ACTIVE = 2,
	URMA_TP_STATE_BRAKE = 3,
	URMA_TP_STATE_ERROR = 4,
} urma_tp_state_t;

/* A network address. */
typedef struct urma_net_addr {
	sa_family_t sin_family; /* AF_INET or AF_INET6 */
	union {
		struct in_addr in4;
		struct in6_addr in6;
	};
	uint64_t vlan; /* 0: none */
	uint8_t mac[6];
	uint32_t prefix_len;
} urma_net_addr_t;

/* An entry of urma_get_net_addr_list(). */
typedef struct urma_net_addr_info {
	urma_net_addr_t netaddr;
	uint32_t index;
} urma_net_addr_info_t;

typedef struct urma_tp_attr {
	urma_tp_mod_flag_t flag;
	uint32_t peer_tpn;
	urma_tp_state_t state;
	uint32_t tx_psn;
	uint32_t rx_psn;
	urma_mtu_t mtu;
	uint8_t cc_pattern_idx;
	uint32_t oos_cnt;
	uint32_t local_net_addr_idx;
	urma_net_addr_t peer_net_addr;
	uint16_t data_udp_start;
	uint16_t ack_udp_start;
	uint8_t udp_range;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint8_t port_id;
	uint8_t mn;
	urma_transport_type_t peer_trans_type;
} urma_tp_attr_t;

typedef union urma_get_tp_cfg_flag {
	struct {
		uint32_t ctp : 1;
		uint32_t rtp : 1;
		uint32_t utp : 1;
		uint32_t uboe : 1;
		uint32_t pre_defined : 1;
		uint32_t dynamic_defined : 1;
		uint32_t udp : 5;
		uint32_t group_id : 15;
		uint32_t reserved : 6;
	} bs;
	uint32_t value;
} urma_get_tp_cfg_flag_t;

/* What urma_get_tp_list() looks for. */
typedef struct urma_get_tp_cfg {
	urma_get_tp_cfg_flag_t flag;
	urma_transport_mode_t trans_mode;
	urma_eid_t local_eid;
	urma_eid_t peer_eid;
} urma_get_tp_cfg_t;

/* A transport. */
typedef struct urma_tp_info {
	uint64_t tp_handle;
} urma_tp_info_t;

typedef struct urma_active_tp_attr {
	uint32_t tx_psn;
	uint32_t rx_psn;
	uint64_t reserved;
} urma_active_tp_attr_t;

/* The transport to use for an import or a bind; not looked at. */
typedef struct urma_active_tp_cfg {
	uint64_t tp_handle;
	uint64_t peer_tp_handle;
	uint64_t tag;
	urma_active_tp_attr_t tp_attr;
} urma_active_tp_cfg_t;
typedef struct urma_active_tp_cfg urma_import_jetty_ex_cfg_t;
typedef struct urma_active_tp_cfg urma_import_jfr_ex_cfg_t;
typedef struct urma_active_tp_cfg urma_bind_jetty_ex_cfg_t;

/* Attributes of a transport. */
typedef struct urma_tp_attr_value {
	uint8_t retry_times_init : 3;
	uint8_t at : 5;
	uint8_t sip[16];
	uint8_t dip[16];
	uint8_t sma[6];
	uint8_t dma[6];
	uint16_t vlan_id : 12;
	uint8_t vlan_en : 1;
	uint16_t dscp : 6; /* as uint8_t it would make gcc talk about gcc 4.3 */
	uint8_t at_times : 5;
	uint8_t sl : 4;
	uint8_t ttl;
	uint16_t ack_udp_srcport;
	uint16_t data_udp_srcport;
	uint8_t udp_srcport_range : 4;
	uint8_t spray_en : 1;
	uint8_t udp_global_en : 1;
	uint8_t reserve_0 : 2;
	uint16_t sl_bitmap;
	uint8_t dscp_config_mode : 1;
	uint8_t reserve_1 : 7;
	uint8_t reserved[70];
} __attribute__((packed)) urma_tp_attr_value_t;

/* Called with an event; used by no function. */
typedef void (*urma_async_event_cb)(urma_async_event_t *, void *);

/* For urma_advise_jfr_async(); never called. */
typedef void (*urma_advise_async_cb_func)(urma_status_t, void *);

/* Levels of the log. */
typedef enum urma_vlog_level {
	URMA_VLOG_LEVEL_EMERG = 0,
	URMA_VLOG_LEVEL_ALERT = 1,
	URMA_VLOG_LEVEL_CRIT = 2,
	URMA_VLOG_LEVEL_ERR = 3,
	URMA_VLOG_LEVEL_WARNING = 4,
	URMA_VLOG_LEVEL_NOTICE = 5,
	URMA_VLOG_LEVEL_INFO = 6,
	URMA_VLOG_LEVEL_DEBUG = 7,
	URMA_VLOG_LEVEL_MAX = 8,
} urma_vlog_level_t;

/* Gets finished lines: level, text. */
typedef void (*urma_log_cb_t)(int, char *);

/* Gets finished lines with where they come from: level, file, function, line, text. */
typedef void (*urma_loc_log_cb)(int, const char *, const char *, int, char *);

/**
 * urma_str_to_eid - an address from text
 *
 * @buf: an IPv6 address, an IPv4 address, or a number that stands for an IPv4 address
 * @eid: filled
 *
 * Returns: 0 or one of the errors.
 * Errors:
 *   -EINVAL: an argument is NULL, or buf is nothing of this kind
 * Threads: any.
 * Contract: URMA.
 */
int urma_str_to_eid(const char *buf, urma_eid_t *eid);

/**
 * urma_u32_to_eid - an address from an IPv4 address
 *
 * @ipv4: the address as a number: 0x7f000001 for 127.0.0.1
 * @eid: filled
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_u32_to_eid(uint32_t ipv4, urma_eid_t *eid);

#ifdef __cplusplus
}
#endif

#endif
