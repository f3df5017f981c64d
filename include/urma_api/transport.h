/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: transports and the network below. */
#ifndef URMA_API_TRANSPORT_H
#define URMA_API_TRANSPORT_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_get_tpn - number of the transport of a jetty
 *
 * @jetty: a jetty
 *
 * Returns: 1 for a bound RC jetty, 0 for others, or a negative error.
 * Errors:
 *   -EINVAL: jetty is NULL or none
 * Threads: any.
 * Contract: URMA.
 */
int urma_get_tpn(urma_jetty_t *jetty);

/**
 * urma_modify_tp - change a transport
 *
 * Makes no difference.
 *
 * @ctx: a context of this process
 * @tpn: its number
 * @cfg: its settings
 * @attr: its attributes
 * @mask: which of them count
 *
 * Returns: 0 or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx, cfg or attr is NULL
 * Threads: any.
 * Contract: URMA.
 */
int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
		   urma_tp_attr_mask_t mask);

/**
 * urma_get_tp_list - list the transports to a peer
 *
 * There is one, with the handle 1.
 *
 * @ctx: a context of this process
 * @cfg: which peer and kind
 * @tp_cnt: entries of tp_list; filled with those used
 * @tp_list: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, *tp_cnt is 0, or the mode is unknown
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
			       urma_tp_info_t *tp_list);

/**
 * urma_set_tp_attr - set attributes of a transport
 *
 * They are kept with the context for urma_get_tp_attr() and make no difference.
 *
 * @ctx: a context of this process
 * @tp_handle: from urma_get_tp_list()
 * @tp_attr_cnt: how many
 * @tp_attr_bitmap: which
 * @tp_attr: their values
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx or tp_attr is NULL, or ctx is no live context
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       const uint8_t tp_attr_cnt, const uint32_t tp_attr_bitmap,
			       const urma_tp_attr_value_t *tp_attr);

/**
 * urma_get_tp_attr - attributes of a transport
 *
 * @ctx: a context of this process
 * @tp_handle: from urma_get_tp_list()
 * @tp_attr_cnt: filled
 * @tp_attr_bitmap: filled
 * @tp_attr: filled with what was set, zeros at first
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: a pointer is NULL, or ctx is no live context
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       uint8_t *tp_attr_cnt, uint32_t *tp_attr_bitmap,
			       urma_tp_attr_value_t *tp_attr);

/**
 * urma_get_net_addr_list - list the network addresses of a context
 *
 * @ctx: a context of this process
 * @cnt: filled with the number of entries
 *
 * Returns: an array to be freed with urma_free_net_addr_list(), or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or ctx is no live context
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt);

/**
 * urma_free_net_addr_list - free a list of network addresses
 *
 * @net_addr_list: what urma_get_net_addr_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list);

/**
 * urma_get_eid_by_ip - an EID from a network address
 *
 * @ctx: a context of this process
 * @net_addr: the address
 * @eid: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_FAIL: it is neither IPv4 nor IPv6
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
				 urma_eid_t *eid);

/**
 * urma_get_ip_by_eid - a network address from an EID
 *
 * @ctx: a context of this process
 * @eid: the EID
 * @net_addr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_FAIL: it is no network address: all zeros
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid,
				 urma_net_addr_t *net_addr);

/**
 * urma_get_smac - the hardware address of a context
 *
 * @ctx: a context of this process
 * @mac: filled with zeros, 6 bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac);

/**
 * urma_get_dmac - the hardware address of a peer
 *
 * @ctx: a context of this process
 * @net_addr: the peer
 * @mac: filled with zeros, 6 bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
			    uint8_t *mac);

#ifdef __cplusplus
}
#endif

#endif
