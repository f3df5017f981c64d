/* SPDX-License-Identifier: MIT */
/*
 * One side's use of the engine, as any CDMA program would write it: a context on a device, regions of memory registered as segments, queues, and operations.
 *
 * All functions that return int: 0, or -1 with cli_reason.
 */
#ifndef XTAL_CLI_PORT_H
#define XTAL_CLI_PORT_H

#include <stdint.h>

#include "cdma_u_lib.h"
#include "cli/memory.h"
#include "cli/words.h"
#include "xtal.h"

struct cli_port {
	struct dma_device *devices;
	uint32_t count;
	struct dma_context *ctx;
};

/* On the first device (fd -1, or a conversation on this host), or on the one whose address a
 * conversation with another host has on this side. */
int cli_port_open(struct cli_port *port, int fd);
void cli_port_close(struct cli_port *port);

/* Memory that is registered with a port, under a random token. */
struct cli_region {
	enum cli_memory memory;
	char *base;
	uint64_t len;
	struct dma_seg *seg;
	struct xtal_descriptor desc; /* what the other side must know */
};

/* Zero-filled, page aligned, every page touched. */
int cli_region_make(struct cli_port *port, enum cli_memory memory, uint64_t len,
		    struct cli_region *out);
void cli_region_drop(struct cli_port *port, struct cli_region *region);

/* The peer's whole segment as an operation needs it. */
struct dma_seg cli_remote(const struct xtal_descriptor *desc);

/* A part of a segment: segments are plain values. */
static inline struct dma_seg cli_part(const struct dma_seg *whole, uint64_t offset, uint64_t len)
{
	struct dma_seg part = *whole;

	part.sva += offset;
	part.len = len;
	return part;
}

/* A queue towards the device that a descriptor names. NULL with cli_reason. */
struct dma_queue *cli_queue_make(struct cli_port *port, const struct xtal_descriptor *peer,
				 uint32_t depth);

/* One operation. */
struct cli_op {
	uint32_t code; /* enum cli_opcode */
	struct dma_seg local, remote, notify;
	uint64_t a, b; /* NOTIFY: a is stored; CAS: a expected, b new; FAA: a is added */
};

static inline dma_status cli_post(struct dma_queue *queue, struct cli_op *op)
{
	switch ((enum cli_opcode)op->code) {
	case CLI_WRITE:
		return dma_write(queue, &op->remote, &op->local);
	case CLI_READ:
		return dma_read(queue, &op->remote, &op->local);
	case CLI_NOTIFY:
		return dma_write_with_notify(queue, &op->remote, &op->local, &op->notify, op->a);
	case CLI_CAS:
		return dma_cas(queue, &op->remote, &op->local, op->a, op->b);
	case CLI_FAA:
		return dma_faa(queue, &op->remote, &op->local, op->a);
	case CLI_SWAP:
	case CLI_SEND:
	case CLI_WRITE_IMM:
		break; /* not in CDMA */
	}
	return DMA_STATUS_INVAL;
}

/* Says why a post was refused, or what a completion's status means. Return -1. */
int cli_post_failed(uint32_t op);
int cli_completion_failed(uint32_t op, const struct dma_cr *cr);

/* Posts one operation and polls until it has ended well. */
int cli_run(struct dma_queue *queue, struct cli_op *op);
/* The same, and tells how it ended; -1 only when it could not be posted. */
int cli_run_status(struct dma_queue *queue, struct cli_op *op, struct dma_cr *cr);

#endif
