/* SPDX-License-Identifier: MIT */
/*
 * 03 - Two processes.
 *
 * The server registers plain heap memory, tells the client where it is, and sleeps: it
 * makes no call while the client reads and writes there. The library exchanges nothing for
 * its users, so the descriptor travels over a socket of the program's own.
 *
 *   03_write_read server PATH    listens on the unix socket PATH, serves one client
 *   03_write_read client PATH
 *   03_write_read                both: starts itself twice
 *
 * Exit status: 0 when every byte was where it should be, seen from both sides.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cdma_u_lib.h>
#include <xtal.h>

#define SIZE   (1u << 20)
#define SECRET 0x5ec4e700u

/* All that a peer must know. A segment is a plain value: it can travel, and be used, as it is. */
struct descriptor {
	struct dev_eid eid;
	struct dma_seg seg;
};

static const char *role; /* "server" or "client"; what follows, both need */
static unsigned char *memory;
static struct dma_device *list;
static uint32_t count;
static struct dma_context *ctx;
static struct dma_seg *own;

/* Says what went wrong, and ends: the kernel and the library clean up behind us. */
static _Noreturn void die(const char *what)
{
	const char *why = xtal_last_error();

	fprintf(stderr, "%s: %s%s%s\n", role, what, *why ? ": " : "", why);
	exit(1);
}

/* What the system, not the library, refused. */
static _Noreturn void die_at(const char *what, const char *path)
{
	fprintf(stderr, "%s: %s %s: %s\n", role, what, path, strerror(errno));
	exit(1);
}

static void open_side(void)
{
	struct dma_seg_cfg cfg = { .len = SIZE, .token_value = SECRET, .token_value_valid = true };

	memory = aligned_alloc(4096, SIZE); /* any heap memory, but hardware wants pages */
	list = dma_get_device_list(&count);
	if (!memory || !list || count == 0)
		die("no memory or no device");
	ctx = dma_create_context(&list[0]);
	cfg.addr = (uintptr_t)memory;
	own = ctx ? dma_register_seg(ctx, &cfg) : NULL;
	if (!own)
		die("no context or no segment");
}

/* Two patterns, and how many bytes of the memory do not follow one. */
static unsigned char pattern(size_t i, unsigned char which)
{
	return (unsigned char)(i * which + i / 251);
}

static size_t differing(unsigned char which)
{
	size_t wrong = 0;

	for (size_t i = 0; i < SIZE; i++)
		wrong += memory[i] != pattern(i, which);
	printf("%s: %zu bytes differ from pattern %d\n", role, wrong, which);
	return wrong;
}

/* A unix socket at PATH: the server waits there for one client, the client tries for a while. */
static int meet(const char *path, int serving)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), conn = fd;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	if (serving) {
		if (bind(fd, (struct sockaddr *)&name, sizeof(name)) || listen(fd, 1))
			die_at("cannot listen at", path);
		conn = accept(fd, NULL, NULL);
		close(fd);
		unlink(path);
	} else {
		for (int i = 0; connect(fd, (struct sockaddr *)&name, sizeof(name)); i++) {
			if (i == 100)
				die_at("no server at", path);
			usleep(50000); /* it may not be there yet */
		}
	}
	return conn;
}

static int serve(const char *path)
{
	struct descriptor told = { .eid = list[0].attr.eid, .seg = *own };
	int conn = meet(path, 1);
	char word;

	for (size_t i = 0; i < SIZE; i++)
		memory[i] = pattern(i, 7);
	if (write(conn, &told, sizeof(told)) != sizeof(told))
		die("cannot tell the client");
	/* From here on the client works on our memory, while we sleep in read(). */
	if (read(conn, &word, 1) != 1)
		die("the client did not finish");
	dma_unregister_seg(ctx, own); /* after this nobody can change it any more */
	return differing(13) == 0 ? 0 : 1;
}

/* Waits for the operation just posted. */
static void finish(struct dma_queue *queue, dma_status posted, const char *what)
{
	struct dma_cr cr;

	if (posted != DMA_STATUS_OK)
		die(what);
	if (dma_wait_queue(queue, 1, 10000, &cr) != 1)
		die("no completion within ten seconds");
	printf("%s: %s: %s, %u bytes\n", role, what, xtal_status_name((int)cr.status),
	       cr.completion_len);
	if (cr.status != DMA_CR_SUCCESS)
		die(xtal_status_text((int)cr.status));
}

static int work(const char *path)
{
	struct queue_cfg cfg = { .queue_depth = 16, .event_mode = true };
	int conn = meet(path, 0);
	struct dma_queue *queue;
	struct descriptor told;
	size_t wrong;

	if (recv(conn, &told, sizeof(told), MSG_WAITALL) != sizeof(told))
		die("the server told nothing");
	cfg.rmt_eid = told.eid;
	queue = dma_alloc_queue(ctx, &cfg);
	if (!queue)
		die("no queue");

	finish(queue, dma_read(queue, &told.seg, own), "read");
	wrong = differing(7);
	for (size_t i = 0; i < SIZE; i++)
		memory[i] = pattern(i, 13);
	finish(queue, dma_write(queue, &told.seg, own), "write");
	if (write(conn, "d", 1) != 1) /* done */
		die("the server is gone");

	dma_free_queue(queue);
	dma_unregister_seg(ctx, own);
	return wrong == 0 ? 0 : 1;
}

/* Starts this program as each of the sides, and waits for both. */
static int both(void)
{
	const char *const sides[] = { "server", "client" };
	int status, failures = 0;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/03_write_read.%d", getpid());
	for (int i = 0; i < 2; i++) {
		if (fork() == 0)
			_exit(execl("/proc/self/exe", "03_write_read", sides[i], path, NULL));
	}
	for (int i = 0; i < 2; i++)
		failures += wait(&status) < 0 || status != 0;
	unlink(path); /* still there only when the server failed */
	return failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	int status, serving = argc == 3 && strcmp(argv[1], "server") == 0;

	if (argc == 1)
		return both();
	if (argc != 3 || (!serving && strcmp(argv[1], "client") != 0)) {
		fprintf(stderr, "usage: %s [server PATH | client PATH]\n", argv[0]);
		return 2;
	}
	role = argv[1];
	alarm(60); /* a side whose partner died shall not wait for ever */
	open_side();
	status = serving ? serve(argv[2]) : work(argv[2]);
	dma_delete_context(ctx);
	dma_free_device_list(list, count);
	free(memory);
	return status;
}
