/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: transports; layouts for urma_modify_tp() and the functions after it. */
#ifndef URMA_TYPES_TRANSPORT_H
#define URMA_TYPES_TRANSPORT_H

#include "urma_types/jetty.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
