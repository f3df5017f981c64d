/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: the library, devices, ports and their capabilities. */
#ifndef URMA_TYPES_DEVICE_H
#define URMA_TYPES_DEVICE_H

#include "urma_opcode.h"
#include "urma_types/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
