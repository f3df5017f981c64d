/* SPDX-License-Identifier: MIT */
/* The library's beginning and end, and its devices: what the core's devices look like here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "context.h"

#define HARDWARE_PAGE (1u << 12) /* on every machine */

/* Under ub_lock(), which no fork leaves locked in the child. */
static struct {
	bool started;
	unsigned count;
	urma_device_t
		*devices; /* made at the first start, kept: contexts and programs point at them */
} library;

static urma_provider_ops_t provider = {
	.name = "xtal", .attr = { .version = 1, .transport_type = URMA_TRANSPORT_UB }
};

static const urma_device_cap_t capabilities = {
	.feature.bs = { .non_pin = 1, .jetty_grp = 1, .error_suspend = 1 },
	.max_jfc = UB_ID_INDEXES - 1,
	.max_jfs = UB_ID_INDEXES - 1,
	.max_jfr = UB_ID_INDEXES - 1,
	.max_jetty = UB_MAX_JETTY,
	.max_jetty_grp = UB_ID_INDEXES - 1,
	.max_jetty_in_jetty_grp = UB_MAX_GROUP_SIZE,
	.max_jfc_depth = UB_MAX_DEPTH,
	.max_jfs_depth = UB_MAX_DEPTH,
	.max_jfr_depth = UB_MAX_DEPTH,
	.max_jfs_inline_len = UB_MAX_INLINE,
	.max_jfs_sge = UB_MAX_SGE,
	.max_jfs_rsge = UB_MAX_RSGE,
	.max_jfr_sge = UB_MAX_RECV_SGE,
	.max_msg_size = XTAL_MAX_MESSAGE,
	.max_read_size = XTAL_MAX_MESSAGE,
	.max_write_size = XTAL_MAX_MESSAGE,
	.max_cas_size = 16,
	.max_swap_size = 8,
	.max_fetch_and_add_size = 8,
	.max_fetch_and_sub_size = 8,
	.max_fetch_and_and_size = 8,
	.max_fetch_and_or_size = 8,
	.max_fetch_and_xor_size = 8,
	.atomic_feat.bs = { .cas = 1,
			    .swap = 1,
			    .fetch_and_add = 1,
			    .fetch_and_sub = 1,
			    .fetch_and_and = 1,
			    .fetch_and_or = 1,
			    .fetch_and_xor = 1 },
	.trans_mode = URMA_TM_RM | URMA_TM_RC | URMA_TM_UM,
	.congestion_ctrl_alg = URMA_CC_NONE,
	.ceq_cnt = 1,
	.max_tp_in_tpg = 1,
	.max_eid_cnt = URMA_MAX_EID_CNT,
	.page_size_cap = HARDWARE_PAGE,
	.max_netaddr_cnt = 1,
	.rm_order_cap.bs = { .ot = 1, .oi = 1, .ol = 1 },
	.rc_order_cap.bs = { .ot = 1, .oi = 1, .ol = 1 },
	.rm_tp_cap.bs = { .rtp = 1, .ctp = 1 },
	.rc_tp_cap.bs = { .rtp = 1, .ctp = 1 },
	.um_tp_cap.bs = { .utp = 1 },
	/* Programs look for an entry with exactly the transport they want. */
	.priority_info = { { .SL = 0, .tp_type.bs.rtp = 1 },
			   { .SL = 1, .tp_type.bs.ctp = 1 },
			   { .SL = 2, .tp_type.bs.utp = 1 } },
};

/* Under the lock. */
static int make_devices(unsigned count)
{
	if (library.devices)
		return 0;
	library.devices = calloc(count, sizeof(*library.devices));
	if (!library.devices)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		urma_device_t *d = &library.devices[i];

		_Static_assert(sizeof(d->name) == sizeof(((struct xtal_device *)0)->name),
			       "names are never cut");
		memcpy(d->name, xtal_device_at(i)->name, sizeof(d->name));
		d->type = URMA_TRANSPORT_UB;
		d->ops = &provider;
	}
	library.count = count;
	return 0;
}

urma_status_t urma_init(urma_init_attr_t *conf)
{
	unsigned count;
	bool again;
	int error;

	(void)conf; /* advice */
	ub_log_start();
	count = xtal_device_count();
	ub_lock();
	again = library.started;
	error = make_devices(count);
	if (!error)
		library.started = true;
	ub_unlock();
	if (again) {
		ub_refuse("urma_init: it was called before; urma_uninit comes first");
		return URMA_EEXIST;
	}
	if (error) {
		ub_refuse("urma_init: no memory for the devices");
		return URMA_FAIL;
	}
	return URMA_SUCCESS;
}

urma_status_t urma_uninit(void)
{
	ub_lock();
	library.started = false;
	ub_unlock();
	return URMA_SUCCESS;
}

/* How many devices may be seen; 0, with a refusal, before urma_init(). */
static unsigned visible(const char *function)
{
	unsigned count;

	ub_lock();
	count = library.started ? library.count : 0;
	ub_unlock();
	if (!count)
		ub_refuse("%s: urma_init was not called", function);
	return count;
}

urma_device_t **urma_get_device_list(int *num_devices)
{
	urma_device_t **list;
	unsigned count;

	if (!num_devices) {
		ub_refuse("urma_get_device_list: num_devices is NULL");
		return ub_null(EINVAL);
	}
	*num_devices = 0;
	count = visible("urma_get_device_list");
	if (!count)
		return ub_null(ENODEV);
	list = calloc(count + 1, sizeof(*list));
	if (!list) {
		ub_refuse("urma_get_device_list: no memory for %u devices", count);
		return ub_null(ENOMEM);
	}
	for (unsigned i = 0; i < count; i++)
		list[i] = &library.devices[i];
	*num_devices = (int)count;
	return list;
}

void urma_free_device_list(urma_device_t **device_list)
{
	free(device_list);
}

urma_device_t *urma_get_device_by_name(char *dev_name)
{
	unsigned count;

	if (!dev_name || !*dev_name || strnlen(dev_name, URMA_MAX_NAME) == URMA_MAX_NAME) {
		ub_refuse("urma_get_device_by_name: dev_name is %s",
			  !dev_name    ? "NULL"
			  : !*dev_name ? "empty"
				       : "longer than 63 characters");
		return ub_null(EINVAL);
	}
	count = visible("urma_get_device_by_name");
	for (unsigned i = 0; i < count; i++)
		if (strcmp(library.devices[i].name, dev_name) == 0)
			return &library.devices[i];
	if (count)
		ub_refuse(
			"urma_get_device_by_name: none of %u devices is called \"%s\"; 'xtal info' "
			"lists them",
			count, dev_name);
	return ub_null(ENODEV);
}

bool ub_device_eid(const struct xtal_device *device, unsigned index, urma_eid_t *out)
{
	uint32_t number;

	if (index == 0) {
		*out = ub_eid_out(device->eid);
		return true;
	}
	if (xtal_device_site_eid(device, index - 1, &number))
		return false;
	urma_u32_to_eid(number, out);
	return true;
}

urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type)
{
	unsigned count;
	urma_eid_t have;

	count = visible("urma_get_device_by_eid");
	for (unsigned i = 0; i < count && type == URMA_TRANSPORT_UB; i++)
		for (unsigned k = 0; ub_device_eid(xtal_device_at(i), k, &have); k++)
			if (memcmp(&have, &eid, sizeof(eid)) == 0)
				return &library.devices[i];
	if (count)
		ub_refuse(
			"urma_get_device_by_eid: none of %u devices of type %d has the EID " EID_FMT
			"; 'xtal info' lists them",
			count, (int)type, EID_ARGS(eid));
	return ub_null(ENODEV);
}

const struct xtal_device *ub_device_check(const char *function, const urma_device_t *dev)
{
	if (!dev) {
		ub_refuse("%s: dev is NULL", function);
		return NULL;
	}
	for (unsigned i = 0; i < library.count; i++)
		if (dev == &library.devices[i])
			return xtal_device_at(i);
	ub_refuse("%s: %p is no device of this library", function, (const void *)dev);
	return NULL;
}

urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt)
{
	const struct xtal_device *device = ub_device_check("urma_get_eid_list", dev);
	urma_eid_info_t *list;
	urma_eid_t eid;
	uint32_t count = 0;

	if (!device || !cnt) {
		if (device)
			ub_refuse("urma_get_eid_list: cnt is NULL");
		return ub_null(EINVAL);
	}
	while (count < URMA_MAX_EID_CNT && ub_device_eid(device, count, &eid))
		count++;
	list = calloc(count, sizeof(*list));
	if (!list) {
		ub_refuse("urma_get_eid_list: no memory for %u addresses", count);
		return ub_null(ENOMEM);
	}
	for (uint32_t i = 0; i < count; i++) {
		ub_device_eid(device, i, &list[i].eid);
		list[i].eid_index = i;
	}
	*cnt = count;
	return list;
}

void urma_free_eid_list(urma_eid_info_t *eid_list)
{
	free(eid_list);
}

urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr)
{
	const struct xtal_device *device = ub_device_check("urma_query_device", dev);
	urma_eid_t eid;

	if (!device || !dev_attr) {
		if (device)
			ub_refuse("urma_query_device: dev_attr is NULL");
		return URMA_EINVAL;
	}
	memset(dev_attr, 0, sizeof(*dev_attr));
	eid = ub_eid_out(device->eid);
	memcpy(dev_attr->guid.raw, eid.raw, sizeof(dev_attr->guid.raw));
	dev_attr->dev_cap = capabilities;
	dev_attr->port_cnt = 1;
	dev_attr->port_attr[0] = (struct urma_port_attr){
		.max_mtu = URMA_MTU_4096,
		.state = URMA_PORT_ACTIVE,
		.active_width = URMA_LINK_X1,
		.active_speed = URMA_SP_100G,
		.active_mtu = URMA_MTU_4096,
	};
	return URMA_SUCCESS;
}
