/* SPDX-License-Identifier: MIT */
/*
 * Transports and network addresses: what programs ask of hardware's control plane. There is one
 * transport, and an EID is a network address already.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"

#define THE_TP 1u

int urma_get_tpn(urma_jetty_t *jetty)
{
	if (!ub_check("urma_get_tpn", jetty, UB_JETTY))
		return -EINVAL;
	return jetty->remote_jetty ? (int)THE_TP : 0;
}

/* The context is alive and none of two more pointers is NULL; else a refusal. */
static bool arguments_are_bad(const char *function, const urma_context_t *ctx, const void *a,
			      const void *b)
{
	if (!ub_check(function, ctx, UB_CONTEXT))
		return true;
	if (a && b)
		return false;
	ub_refuse("%s: a pointer is NULL", function);
	return true;
}

int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
		   urma_tp_attr_mask_t mask)
{
	(void)tpn;
	(void)mask;
	return arguments_are_bad("urma_modify_tp", ctx, cfg, attr) ? URMA_EINVAL : 0;
}

urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
			       urma_tp_info_t *tp_list)
{
	if (arguments_are_bad("urma_get_tp_list", ctx, cfg, tp_cnt) ||
	    arguments_are_bad("urma_get_tp_list", ctx, tp_list, tp_list))
		return URMA_EINVAL;
	if (!*tp_cnt || (cfg->trans_mode != URMA_TM_RM && cfg->trans_mode != URMA_TM_RC &&
			 cfg->trans_mode != URMA_TM_UM)) {
		ub_refuse(
			"urma_get_tp_list: *tp_cnt is %u and the mode %d; there must be room, and the "
			"mode be RM (1), RC (2) or UM (4)",
			*tp_cnt, (int)cfg->trans_mode);
		return URMA_EINVAL;
	}
	tp_list[0].tp_handle = THE_TP;
	*tp_cnt = 1;
	return URMA_SUCCESS;
}

urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       const uint8_t tp_attr_cnt, const uint32_t tp_attr_bitmap,
			       const urma_tp_attr_value_t *tp_attr)
{
	struct ub_context *c = ub_context_of(ctx);

	(void)tp_handle;
	if (arguments_are_bad("urma_set_tp_attr", ctx, tp_attr, tp_attr))
		return URMA_EINVAL;
	ub_lock();
	c->tp_attr_count = tp_attr_cnt;
	c->tp_attr_bitmap = tp_attr_bitmap;
	c->tp_attr = *tp_attr;
	ub_unlock();
	return URMA_SUCCESS;
}

urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       uint8_t *tp_attr_cnt, uint32_t *tp_attr_bitmap,
			       urma_tp_attr_value_t *tp_attr)
{
	const struct ub_context *c = ub_context_of(ctx);

	(void)tp_handle;
	if (arguments_are_bad("urma_get_tp_attr", ctx, tp_attr_cnt, tp_attr_bitmap) ||
	    arguments_are_bad("urma_get_tp_attr", ctx, tp_attr, tp_attr))
		return URMA_EINVAL;
	ub_lock();
	*tp_attr_cnt = c->tp_attr_count;
	*tp_attr_bitmap = c->tp_attr_bitmap;
	*tp_attr = c->tp_attr;
	ub_unlock();
	return URMA_SUCCESS;
}

/* False: all zeros, which is no address. */
static bool address_of(const urma_eid_t *eid, urma_net_addr_t *out)
{
	struct xtal_eid core = ub_eid_in(eid);

	memset(out, 0, sizeof(*out));
	if (xtal_eid_is_ipv4(core)) {
		out->sin_family = AF_INET;
		out->in4.s_addr = htonl(xtal_eid_ipv4(core));
		out->prefix_len = 32;
	} else {
		out->sin_family = AF_INET6;
		memcpy(&out->in6, eid->raw, sizeof(eid->raw));
		out->prefix_len = 128;
	}
	return core.hi || core.lo;
}

urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt)
{
	urma_net_addr_info_t *list;
	urma_eid_t eid;

	if (arguments_are_bad("urma_get_net_addr_list", ctx, cnt, cnt))
		return ub_null(EINVAL);
	list = calloc(1, sizeof(*list));
	if (!list) {
		ub_refuse("urma_get_net_addr_list: no memory");
		return ub_null(ENOMEM);
	}
	eid = ub_eid_out(ub_context_of(ctx)->device->eid);
	address_of(&eid, &list->netaddr);
	*cnt = 1;
	return list;
}

void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list)
{
	free(net_addr_list);
}

urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
				 urma_eid_t *eid)
{
	if (arguments_are_bad("urma_get_eid_by_ip", ctx, net_addr, eid))
		return URMA_EINVAL;
	if (net_addr->sin_family == AF_INET) {
		urma_u32_to_eid(ntohl(net_addr->in4.s_addr), eid);
	} else if (net_addr->sin_family == AF_INET6) {
		memcpy(eid->raw, &net_addr->in6, sizeof(eid->raw));
	} else {
		ub_refuse("urma_get_eid_by_ip: family %u is neither AF_INET nor AF_INET6",
			  net_addr->sin_family);
		return URMA_FAIL;
	}
	return URMA_SUCCESS;
}

urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid,
				 urma_net_addr_t *net_addr)
{
	if (arguments_are_bad("urma_get_ip_by_eid", ctx, eid, net_addr))
		return URMA_EINVAL;
	if (address_of(eid, net_addr))
		return URMA_SUCCESS;
	ub_refuse("urma_get_ip_by_eid: the EID is all zeros");
	return URMA_FAIL;
}

urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac)
{
	if (arguments_are_bad("urma_get_smac", ctx, mac, mac))
		return URMA_EINVAL;
	memset(mac, 0, URMA_MAC_BYTES);
	return URMA_SUCCESS;
}

urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
			    uint8_t *mac)
{
	if (arguments_are_bad("urma_get_dmac", ctx, net_addr, mac))
		return URMA_EINVAL;
	memset(mac, 0, URMA_MAC_BYTES);
	return URMA_SUCCESS;
}
