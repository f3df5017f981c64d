/* SPDX-License-Identifier: MIT */
/*
 * 05 - Two hosts.
 *
 * The same calls as between two processes; only the device is another one: it has the address by
 * which the other host reaches this one. Both hosts need the same key (xtal key new FILE,
 * XTAL_KEY_FILE=FILE), or XTAL_SECURITY=none on a network that is trusted. The descriptor
 * travels over a TCP connection of the program's own.
 *
 *   05_two_hosts server ADDRESS    an IPv4 address of this host; serves one client
 *   05_two_hosts client ADDRESS    of the server
 *
 * Exit status: 0 when the client's counter and bytes were where they should be.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cdma_u_lib.h>
#include <xtal.h>

#define PORT  18516 /* where server and client meet */
#define SIZE  65536u
#define TIMES 100u

/* What a peer must know. Both hosts are of one byte order and ABI: a real program writes fields. */
struct descriptor {
	struct dev_eid eid;
	struct dma_seg seg;
};

static struct dma_device *device;
static struct dma_context *ctx;
static unsigned char *memory; /* its first 8 bytes are a counter */
static struct dma_seg *own;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s (%s)\n", what, xtal_last_error());
	exit(1);
}

/* A device's EID is its address; CDMA's has 32 bits, so IPv4 addresses are EIDs as they are. */
static void open_device(struct in_addr address)
{
	struct dev_eid eid = { .dw0 = ntohl(address.s_addr) };
	struct dma_seg_cfg cfg = { .len = SIZE,
				   .token_value = xtal_token(),
				   .token_value_valid = true };

	device = dma_get_device_by_eid(&eid);
	if (!device)
		die("no device has this address");
	ctx = dma_create_context(device);
	if (!ctx)
		die("no context");
	memory = aligned_alloc(4096, SIZE);
	if (!memory || !cfg.token_value)
		die("no memory, or no token that nobody can guess");
	memset(memory, 0, SIZE);
	cfg.addr = (uintptr_t)memory;
	own = dma_register_seg(ctx, &cfg);
	if (!own)
		die("no segment");
}

static int serve(struct sockaddr_in at)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, conn;
	struct descriptor told;
	uint64_t counter;
	char word;

	open_device(at.sin_addr);
	told = (struct descriptor){ .eid = device->attr.eid, .seg = *own };
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1))
		die("cannot listen");
	conn = accept(listener, NULL, NULL);
	if (write(conn, &told, sizeof(told)) != sizeof(told))
		die("cannot tell the client");
	/* From here on the client works on our memory, while we sleep in read(). */
	if (read(conn, &word, 1) != 1)
		die("the client did not finish");
	memcpy(&counter, memory, sizeof(counter));
	printf("server: the counter is %llu, the text \"%s\"\n", (unsigned long long)counter,
	       (char *)memory + 4096);
	return counter == TIMES && strcmp((char *)memory + 4096, "from another host") == 0 ? 0 : 1;
}

static void finish(struct dma_queue *queue, dma_status posted)
{
	struct dma_cr cr;

	if (posted != DMA_STATUS_OK)
		die("refused");
	if (dma_wait_queue(queue, 1, 30000, &cr) != 1)
		die("no completion within thirty seconds");
	if (cr.status != DMA_CR_SUCCESS)
		die(xtal_status_text((int)cr.status));
}

static int work(struct sockaddr_in to)
{
	struct queue_cfg cfg = { .queue_depth = 16, .event_mode = true };
	struct sockaddr_in here;
	socklen_t len = sizeof(here);
	struct dma_queue *queue;
	struct descriptor told;
	struct dma_seg local, remote;
	int conn = -1;

	for (int i = 0; i < 100 && conn < 0; i++) {
		conn = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(conn, (struct sockaddr *)&to, sizeof(to)) == 0)
			break;
		close(conn); /* the server may not be there yet */
		conn = -1;
		usleep(50000);
	}
	if (conn < 0 || recv(conn, &told, sizeof(told), MSG_WAITALL) != sizeof(told))
		die("the server told nothing");
	/* The device whose address leads to the server. */
	if (getsockname(conn, (struct sockaddr *)&here, &len))
		die("no address");
	open_device(here.sin_addr);
	cfg.rmt_eid = told.eid;
	queue = dma_alloc_queue(ctx, &cfg);
	if (!queue)
		die("no queue");

	strcpy((char *)memory + 4096, "from another host");
	local = *own;
	local.sva += 4096;
	local.len = 64;
	remote = told.seg;
	remote.sva += 4096;
	finish(queue, dma_write(queue, &remote, &local));
	/* Executed once each, however often the connection breaks meanwhile. */
	local = *own;
	local.len = 8; /* what was there before */
	remote = told.seg;
	remote.len = 8;
	for (unsigned i = 0; i < TIMES; i++)
		finish(queue, dma_faa(queue, &remote, &local, 1));
	if (write(conn, "d", 1) != 1) /* done */
		die("the server is gone");
	printf("client: added 1 %u times\n", TIMES);
	dma_free_queue(queue);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int status, serving = argc == 3 && strcmp(argv[1], "server") == 0;

	if (argc != 3 || (!serving && strcmp(argv[1], "client") != 0) ||
	    inet_pton(AF_INET, argv[2], &peer.sin_addr) != 1) {
		fprintf(stderr, "usage: %s server ADDRESS | client ADDRESS (IPv4)\n", argv[0]);
		return 2;
	}
	alarm(60); /* a side whose partner died shall not wait for ever */
	status = serving ? serve(peer) : work(peer);
	dma_unregister_seg(ctx, own);
	dma_delete_context(ctx);
	dma_free_device_list(device, 1);
	free(memory);
	return status;
}
