/* SPDX-License-Identifier: MIT */
/* Performance tests through CDMA. */
#include "cli/api.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/port.h"

struct end {
	struct cli_end pub;
	struct cli_port port;
	struct cli_region region;
	struct dma_seg local, remote; /* the whole regions */
	struct dma_queue **queue;
	uint32_t queues, depth;
};

static struct end *end_of(struct cli_end *pub)
{
	return (struct end *)pub; /* it is the first member */
}

static void end_close(struct cli_end *pub)
{
	struct end *e = end_of(pub);

	for (uint32_t q = 0; e->queue && q < e->queues; q++)
		dma_free_queue(e->queue[q]);
	free(e->queue);
	cli_region_drop(&e->port, &e->region);
	cli_port_close(&e->port);
	free(e);
}

static struct cli_end *end_open(const struct cli_end_attr *attr)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e) {
		cli_fail("no memory");
		return NULL;
	}
	e->queues = attr->queues;
	e->depth = attr->depth;
	e->queue = calloc(attr->queues, sizeof(struct dma_queue *));
	if (!e->queue) {
		cli_fail("no memory");
		free(e);
		return NULL;
	}
	if (cli_port_open(&e->port, attr->fd)) {
		free(e->queue);
		free(e);
		return NULL;
	}
	if (cli_region_make(&e->port, attr->memory, attr->len, &e->region)) {
		end_close(&e->pub);
		return NULL;
	}
	e->local = *e->region.seg;
	e->pub.base = e->region.base;
	e->pub.len = e->region.len;
	e->pub.desc = e->region.desc;
	return &e->pub;
}

static int end_connect(struct cli_end *pub, const struct xtal_descriptor *peer)
{
	struct end *e = end_of(pub);

	e->remote = cli_remote(peer);
	for (uint32_t q = 0; q < e->queues; q++) {
		e->queue[q] = cli_queue_make(&e->port, peer, e->depth);
		if (!e->queue[q])
			return -1;
	}
	return 0;
}

static const void *end_handle(const struct cli_end *pub, uint32_t queue)
{
	return ((const struct end *)pub)->queue[queue];
}

/* Segments are plain values: a part of one is a copy with another address and length. */
static inline struct dma_seg part(const struct dma_seg *whole, uint64_t addr, uint64_t len)
{
	struct dma_seg s = *whole;

	s.sva = addr;
	s.len = len;
	return s;
}

static int end_post(struct cli_end *pub, uint32_t queue, const struct cli_request *r)
{
	struct end *e = end_of(pub);
	struct cli_op op = {
		.code = r->code,
		.local = part(&e->local, r->local, r->len),
		.remote = part(&e->remote, r->remote, r->len),
		.a = r->a,
		.b = r->b,
	};

	if (r->code == CLI_NOTIFY)
		op.notify = part(&e->remote, r->notify, 8);
	return cli_post(e->queue[queue], &op) == DMA_STATUS_OK ? 0 : cli_post_failed(r->code);
}

static int end_poll(struct cli_end *pub, uint32_t queue, uint32_t code, uint32_t count,
		    uint64_t *bytes)
{
	struct dma_cr cr[CLI_POLL_AT_ONCE];
	int n = dma_poll_queue(end_of(pub)->queue[queue], count, cr);

	if (n < 0)
		return cli_fail("polling failed: %s", xtal_last_error());
	for (int i = 0; i < n; i++) {
		if (cr[i].status != DMA_CR_SUCCESS)
			return cli_completion_failed(code, &cr[i]);
		*bytes += cr[i].completion_len;
	}
	return n;
}

const struct cli_api cli_api_cdma = {
	.name = "cdma",
	.opcodes =
		1u << CLI_WRITE | 1u << CLI_READ | 1u << CLI_NOTIFY | 1u << CLI_CAS | 1u << CLI_FAA,
	.open = end_open,
	.close = end_close,
	.connect = end_connect,
	.handle = end_handle,
	.post = end_post,
	.poll = end_poll,
};
