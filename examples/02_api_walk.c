/* SPDX-License-Identifier: MIT */
/*
 * 02 - A walk through the API, alone.
 *
 * One process plays both sides: it registers a source and a destination, and writes from the
 * one to the other through the loopback device, as if the destination were somebody else's.
 * Every object is made, used and given back in the order that the API wants.
 *
 *   02_api_walk
 *
 * Exit status: 0 when the bytes arrived.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cdma_u_lib.h>
#include <xtal.h> /* xtal_last_error: why a call was refused */

#define DEPTH       512
#define PAGE        4096
#define POLLS       1000
#define POLL_PAUSE  1000000 /* ns */
#define SECRET      0x600dcafe
#define OPERATION_7 7 /* any number of ours, to recognise the completion by */

/* Whole pages are what the hardware wants; Xtal takes any memory unless XTAL_STRICT=1 is set. */
static _Alignas(PAGE) char source[64] = "one-sided: nobody at the other end has to do anything";
static _Alignas(PAGE) char destination[64];

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, xtal_last_error());
	return 1;
}

/* Waits for the completion of the one operation posted. Returns 0 when it went well. */
static int finish(struct dma_queue *queue)
{
	const struct timespec pause = { .tv_nsec = POLL_PAUSE };
	struct dma_cr cr;

	for (int i = 0; i < POLLS; i++) {
		int got = dma_poll_queue(queue, 1, &cr);

		if (got < 0)
			return failed("cannot poll");
		if (got == 0) { /* not yet */
			nanosleep(&pause, NULL);
			continue;
		}
		printf("operation %llu ended with status %d (%s), %u bytes moved\n",
		       (unsigned long long)cr.user_ctx, (int)cr.status,
		       xtal_status_name((int)cr.status), cr.completion_len);
		if (cr.status != DMA_CR_SUCCESS)
			fprintf(stderr, "%s\n", xtal_status_text((int)cr.status));
		return cr.status == DMA_CR_SUCCESS ? 0 : 1;
	}
	fprintf(stderr, "no completion came\n");
	return 1;
}

/* With a queue and both segments at hand: write, wait, compare. */
static int write_and_check(struct dma_queue *queue, struct dma_seg *remote, struct dma_seg *local)
{
	/* The length is the local segment's; user_ctx comes back in the completion. */
	queue->cfg.user_ctx = OPERATION_7;
	if (dma_write(queue, remote, local) != DMA_STATUS_OK)
		return failed("cannot write");
	if (finish(queue))
		return 1;
	if (memcmp(source, destination, sizeof(source)) != 0) {
		fprintf(stderr, "the destination differs\n");
		return 1;
	}
	printf("destination: \"%s\"\n", destination);
	return 0;
}

/* With a queue at hand: register both ends, and import the one as a peer would. */
static int with_queue(struct dma_context *ctx, struct dma_queue *queue)
{
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)source, .len = sizeof(source) };
	struct dma_seg *local, *owned, *remote;
	int status = 1;

	local = dma_register_seg(ctx, &cfg);
	if (!local)
		return failed("cannot register the source");
	cfg = (struct dma_seg_cfg){ .addr = (uintptr_t)destination,
				    .len = sizeof(destination),
				    .token_value = SECRET,
				    .token_value_valid = true };
	owned = dma_register_seg(ctx, &cfg);
	if (!owned) {
		failed("cannot register the destination");
		goto unregister_local;
	}
	/* What an owner tells its peers, by any way: address, length, tid and token. */
	cfg = (struct dma_seg_cfg){ .addr = owned->sva,
				    .len = owned->len,
				    .tid = owned->tid,
				    .token_value = owned->token_value,
				    .token_value_valid = true };
	remote = dma_import_seg(&cfg);
	if (!remote) {
		failed("cannot import");
		goto unregister_owned;
	}
	status = write_and_check(queue, remote, local);

	dma_unimport_seg(remote);
unregister_owned:
	dma_unregister_seg(ctx, owned);
unregister_local:
	dma_unregister_seg(ctx, local);
	return status;
}

static int with_device(struct dma_device *dev)
{
	struct queue_cfg cfg = { .queue_depth = DEPTH };
	struct dma_context *ctx;
	struct dma_queue *queue;
	int status = 1;

	ctx = dma_create_context(dev);
	if (!ctx)
		return failed("no context");
	printf("context 0x%05x on %s\n", ctx->tid, dev->name);

	cfg.rmt_eid = dev->attr.eid; /* our own device: loopback */
	queue = dma_alloc_queue(ctx, &cfg);
	if (queue) {
		status = with_queue(ctx, queue);
		dma_free_queue(queue);
	} else {
		failed("no queue");
	}
	dma_delete_context(ctx);
	return status;
}

int main(void)
{
	struct dma_device *list;
	uint32_t count = 0;
	int status;

	list = dma_get_device_list(&count);
	if (!list)
		return failed("no list");
	status = count > 0 ? with_device(&list[0]) : failed("no device");
	dma_free_device_list(list, count);
	return status;
}
