/* SPDX-License-Identifier: MIT */
/* Device lists: what the core's devices look like to a CDMA program. */
#include "cdma.h"

#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "core/device.h"

#define TRANS_MODE_ROI 1u
#define TRANS_MODE_ROL 2u
#define HARDWARE_PAGE  (1u << 12) /* on every machine */

static struct xtal_list lists = { &lists, &lists }; /* registry lock */

static const struct cdma_device_cap capabilities = {
	.max_jfc = XTAL_MAX_QUEUES,
	.max_jfs = XTAL_MAX_QUEUES,
	.max_jfc_depth = XTAL_MAX_QUEUE_DEPTH,
	.max_jfs_depth = XTAL_MAX_QUEUE_DEPTH,
	.max_jfs_inline_len = 0,
	.max_jfs_sge = 1,
	.max_jfs_rsge = 1,
	.max_msg_size = XTAL_MAX_MESSAGE,
	.max_atomic_size = 16,
	.trans_mode = TRANS_MODE_ROI | TRANS_MODE_ROL,
	.ceq_cnt = 1,
	.max_eid_cnt = CDMA_MAX_EU_NUM,
	.page_size_cap = HARDWARE_PAGE,
};

/* The 32-bit EIDs of a device: its IPv4 address, then the numbers that the site gave it. */
static unsigned eids_of(const struct xtal_device *core, struct dev_eid out[CDMA_MAX_EU_NUM])
{
	unsigned count = 0, index = 0;
	uint32_t small;

	if (xtal_eid_is_ipv4(core->eid))
		out[count++] = (struct dev_eid){ .dw0 = xtal_eid_ipv4(core->eid) };
	while (count < CDMA_MAX_EU_NUM && !xtal_device_site_eid(core, index++, &small))
		out[count++] = (struct dev_eid){ .dw0 = small };
	return count;
}

/* Fills one entry of a zeroed list, with the EID in use: the index-th. Errors: the core's for
 * the descriptor. */
static int fill_entry(struct dma_device *entry, const struct xtal_device *core,
		      const struct dev_eid *eids, unsigned count, unsigned index)
{
	int fd = xtal_device_open_fd();

	if (fd < 0)
		return fd;
	_Static_assert(sizeof(core->name) < sizeof(entry->name), "names are never cut");
	memcpy(entry->name, core->name, sizeof(core->name));
	entry->fd = fd;
	entry->attr.eu_num = (__u8)count;
	for (unsigned i = 0; i < count; i++)
		entry->attr.eus[i] = (struct eu_info){ .eid_idx = i, .eid = eids[i] };
	entry->attr.eu = entry->attr.eus[index];
	entry->attr.eid = eids[0]; /* its own, whichever is in use */
	entry->attr.dev_cap = capabilities;
	return 0;
}

static struct cdma_list *make_list(unsigned room)
{
	return calloc(1, sizeof(struct cdma_list) + room * sizeof(struct dma_device));
}

static void publish(struct cdma_list *list)
{
	cdma_registry_lock();
	xtal_list_append(&lists, &list->link);
	cdma_registry_unlock();
}

struct dma_device *dma_get_device_list(uint32_t *num)
{
	struct cdma_list *list;
	unsigned count;

	cdma_log_start();
	if (!num) {
		cdma_refuse("dma_get_device_list: num is NULL");
		return NULL;
	}
	*num = 0;
	count = xtal_device_count();
	list = make_list(count);
	if (!list) {
		cdma_refuse("dma_get_device_list: no memory for %u devices", count);
		return NULL;
	}
	for (unsigned i = 0; i < count; i++) {
		const struct xtal_device *core = xtal_device_at(i);
		struct dev_eid eids[CDMA_MAX_EU_NUM];
		unsigned eid_count = eids_of(core, eids);
		int error;

		if (!eid_count) {
			xtal_log(XTAL_LOG_DEBUG, CDMA_TAG,
				 "dma_get_device_list: %s left out, its IPv6 address does not fit "
				 "an EID of 32 bits; a number in [eids] of the ini file would do",
				 core->name);
			continue;
		}
		error = fill_entry(&list->entries[list->count], core, eids, eid_count, 0);
		if (error) {
			cdma_refuse("dma_get_device_list: %s left out: %s", core->name,
				    cdma_reason(error));
			continue;
		}
		list->count++;
	}
	publish(list);
	*num = list->count;
	return list->entries;
}

struct dma_device *dma_get_device_by_eid(struct dev_eid *eid)
{
	unsigned count;

	cdma_log_start();
	if (!eid) {
		cdma_refuse("dma_get_device_by_eid: eid is NULL");
		return NULL;
	}
	count = xtal_device_count();
	for (unsigned i = 0; i < count; i++) {
		const struct xtal_device *core = xtal_device_at(i);
		struct dev_eid eids[CDMA_MAX_EU_NUM];
		unsigned eid_count = eids_of(core, eids), k = 0;
		struct cdma_list *list;
		int error;

		while (k < eid_count && memcmp(&eids[k], eid, sizeof(*eid)) != 0)
			k++;
		if (k == eid_count)
			continue;
		list = make_list(1);
		if (!list) {
			cdma_refuse("dma_get_device_by_eid: no memory for a device");
			return NULL;
		}
		error = fill_entry(&list->entries[0], core, eids, eid_count, k);
		if (error) {
			cdma_refuse("dma_get_device_by_eid: %s cannot be opened: %s", core->name,
				    cdma_reason(error));
			free(list);
			return NULL;
		}
		list->count = 1;
		publish(list);
		return list->entries;
	}
	cdma_refuse("dma_get_device_by_eid: none of %u devices has the EID 0x%x 0x%x 0x%x 0x%x "
		    "(%u.%u.%u.%u); 'xtal info' lists them",
		    count, eid->dw0, eid->dw1, eid->dw2, eid->dw3, eid->dw0 >> 24,
		    eid->dw0 >> 16 & 255, eid->dw0 >> 8 & 255, eid->dw0 & 255);
	return NULL;
}

static struct cdma_list *find_list(const struct dma_device *first)
{
	for (struct xtal_list *l = lists.next; l != &lists; l = l->next) {
		struct cdma_list *list = xtal_container_of(l, struct cdma_list, link);

		if (list->entries == first && !list->freed)
			return list;
	}
	return NULL;
}

void dma_free_device_list(struct dma_device *list, uint32_t num)
{
	struct cdma_list *own;
	unsigned users = 0;

	if (!list)
		return;
	cdma_registry_lock();
	own = find_list(list);
	if (own) {
		own->freed = true;
		users = cdma_context_detach(own);
		own->users++; /* ours, until the descriptors are closed */
	}
	cdma_registry_unlock();
	if (!own) {
		cdma_refuse("dma_free_device_list: %p is no list that is still to be freed: freed "
			    "twice, or not from this library",
			    (void *)list);
		return;
	}
	if (users)
		xtal_log(
			XTAL_LOG_WARNING, CDMA_TAG,
			"dma_free_device_list: %u contexts made from the list live on; on hardware "
			"they would use freed memory",
			users);
	if (num != own->count)
		xtal_log(XTAL_LOG_WARNING, CDMA_TAG,
			 "dma_free_device_list: num is %u for a list of %u", num, own->count);
	for (uint32_t i = 0; i < num && i < own->count; i++) {
		xtal_device_close_fd(own->entries[i].fd);
		own->entries[i].fd = -1;
	}
	cdma_registry_lock();
	own = cdma_list_unuse(own);
	cdma_registry_unlock();
	free(own);
}

struct cdma_list *cdma_list_use(const struct dma_device *dev)
{
	for (struct xtal_list *l = lists.next; l != &lists; l = l->next) {
		struct cdma_list *list = xtal_container_of(l, struct cdma_list, link);

		if (dev >= list->entries && dev < list->entries + list->count) {
			list->users++;
			return list;
		}
	}
	return NULL;
}

struct cdma_list *cdma_list_unuse(struct cdma_list *list)
{
	list->users--;
	if (!list->freed || list->users > 0)
		return NULL;
	xtal_list_remove(&list->link);
	return list;
}
