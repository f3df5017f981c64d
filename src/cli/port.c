/* SPDX-License-Identifier: MIT */
/* The few CDMA calls that every use of the engine begins with. */
#include "cli/port.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/net.h"

/* The entry of the list for the conversation, or NULL with cli_reason. */
static struct dma_device *choose_device(struct cli_port *port, int fd)
{
	struct xtal_device_info info;
	uint8_t eid[16];

	if (!cli_net_own_eid(fd, eid))
		return &port->devices[0];
	for (unsigned i = 0; xtal_device_query(i, &info) == 0; i++) {
		if (!info.name[0] || memcmp(info.eid, eid, 16) != 0)
			continue;
		for (uint32_t k = 0; k < port->count; k++)
			if (strcmp(port->devices[k].name, info.name) == 0)
				return &port->devices[k];
		cli_fail("%s (%s) has no number in [eids] of the ini file, which a CDMA program "
			 "needs for an IPv6 address",
			 info.name, info.address);
		return NULL;
	}
	cli_fail("this side of the connection is no device (XTAL_DEVICES; see 'xtal info')");
	return NULL;
}

int cli_port_open(struct cli_port *port, int fd)
{
	struct dma_device *dev;

	*port = (struct cli_port){ 0 };
	port->devices = dma_get_device_list(&port->count);
	if (!port->devices || port->count == 0) {
		cli_port_close(port);
		return cli_fail("no device: %s", xtal_last_error());
	}
	dev = choose_device(port, fd);
	port->ctx = dev ? dma_create_context(dev) : NULL;
	if (dev && !port->ctx)
		cli_fail("no context on %s: %s", dev->name, xtal_last_error());
	if (!port->ctx) {
		cli_port_close(port);
		return -1;
	}
	return 0;
}

void cli_port_close(struct cli_port *port)
{
	dma_delete_context(port->ctx);
	dma_free_device_list(port->devices, port->count);
	*port = (struct cli_port){ 0 };
}

int cli_region_make(struct cli_port *port, enum cli_memory memory, uint64_t len,
		    struct cli_region *out)
{
	struct dma_seg_cfg cfg = { .token_value = xtal_token(), .token_value_valid = true };
	struct cli_region r = { .memory = memory, .len = len };

	if (!cfg.token_value)
		return cli_fail("no token: %s", xtal_last_error());
	r.base = cli_memory_get(memory, &r.len);
	if (!r.base)
		return -1;
	cfg.addr = (uint64_t)(uintptr_t)r.base;
	cfg.len = r.len;
	r.seg = dma_register_seg(port->ctx, &cfg);
	if (!r.seg || xtal_describe(r.seg, &r.desc)) {
		cli_fail("cannot register %s memory: %s", cli_memory_name(memory),
			 xtal_last_error());
		cli_region_drop(port, &r);
		return -1;
	}
	*out = r;
	return 0;
}

void cli_region_drop(struct cli_port *port, struct cli_region *region)
{
	if (region->seg)
		dma_unregister_seg(port->ctx, region->seg);
	cli_memory_put(region->memory, region->base);
	*region = (struct cli_region){ 0 };
}

struct dma_seg cli_remote(const struct xtal_descriptor *desc)
{
	return (struct dma_seg){
		.sva = desc->va,
		.len = desc->len,
		.tid = desc->tid,
		.token_value = desc->token,
		.token_value_valid = desc->token_valid != 0,
	};
}

struct dma_queue *cli_queue_make(struct cli_port *port, const struct xtal_descriptor *peer,
				 uint32_t depth)
{
	struct queue_cfg cfg = { .queue_depth = depth, .trans_mode = 1 };
	struct dma_queue *queue;

	if (xtal_cdma_eid(peer->eid, &cfg.rmt_eid.dw0)) {
		cli_fail("the other side's address: %s", xtal_last_error());
		return NULL;
	}
	queue = dma_alloc_queue(port->ctx, &cfg);
	if (!queue)
		cli_fail("no queue of depth %u: %s", depth, xtal_last_error());
	return queue;
}

int cli_post_failed(uint32_t op)
{
	return cli_fail("%s was refused: %s", cli_opcode_name(op), xtal_last_error());
}

int cli_completion_failed(uint32_t op, const struct dma_cr *cr)
{
	return cli_fail("%s ended with %s: %s", cli_opcode_name(op), xtal_status_name(cr->status),
			xtal_status_text(cr->status));
}

int cli_run_status(struct dma_queue *queue, struct cli_op *op, struct dma_cr *cr)
{
	int n;

	if (cli_post(queue, op) != DMA_STATUS_OK)
		return cli_post_failed(op->code);
	/* Every operation ends within the engine's time limit: no clock here. */
	do {
		n = dma_poll_queue(queue, 1, cr);
	} while (n == 0);
	if (n < 0)
		return cli_fail("polling for the %s failed: %s", cli_opcode_name(op->code),
				xtal_last_error());
	return 0;
}

int cli_run(struct dma_queue *queue, struct cli_op *op)
{
	struct dma_cr cr = { 0 };

	if (cli_run_status(queue, op, &cr))
		return -1;
	return cr.status == DMA_CR_SUCCESS ? 0 : cli_completion_failed(op->code, &cr);
}
