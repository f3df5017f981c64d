/* SPDX-License-Identifier: MIT */
/*
 * A program from another world: it includes no header of ours. It knows libcdma.so.1 by name,
 * the functions by their names, and the structs by their published sizes and offsets alone,
 * as a program does that was compiled elsewhere against the original headers.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sizes, and offsets in bytes. */
enum {
	DEVICE = 1976,
	DEVICE_FD = 300,
	DEVICE_EU_NUM = 304,
	DEVICE_EID = 308,
	DEVICE_MAX_JFS_DEPTH = 304 + 1584 + 12,
	CONTEXT_DEV = 0,
	CONTEXT_TID = 8,
	CONTEXT_ASYNC_FD = 12,
	QUEUE_CFG = 64,
	QUEUE_CFG_DEPTH = 0,
	QUEUE_CFG_USER = 8,
	QUEUE_CFG_EID = 20,
	QUEUE_CFG_EVENT_MODE = 36,
	QUEUE_CONTEXT = 0,
	QUEUE_CFG_COPY = 8,
	SEG = 56,
	SEG_SVA = 8,
	SEG_LEN = 16,
	SEG_TID = 24,
	SEG_TOKEN = 28,
	SEG_TOKEN_VALID = 32,
	SEG_CFG = 48,
	SEG_CFG_ADDR = 0,
	SEG_CFG_LEN = 8,
	SEG_CFG_TOKEN = 16,
	SEG_CFG_TID = 20,
	SEG_CFG_TOKEN_VALID = 24,
	CR = 64,
	CR_STATUS = 0,
	CR_USER = 8,
	CR_FLAG = 20,
	CR_LEN = 24,
	AEQE = 40,
	AEQE_DURATION = 16,
};

/* Storage for a foreign struct. */
#define FOREIGN(name, size) _Alignas(8) unsigned char name[size] = { 0 }

static void put(void *object, int offset, uint64_t value, size_t size)
{
	memcpy((char *)object + offset, &value, size); /* both machines are little-endian */
}

static uint64_t get(const void *object, int offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)object + offset, size);
	return value;
}

static void *(*get_device_list)(uint32_t *);
static void (*free_device_list)(void *, uint32_t);
static void *(*get_device_by_eid)(void *);
static void *(*create_context)(void *);
static void (*delete_context)(void *);
static void *(*alloc_queue)(void *, void *);
static void (*free_queue)(void *);
static void *(*register_seg)(void *, void *);
static void (*unregister_seg)(void *, void *);
static void *(*import_seg)(void *);
static void (*unimport_seg)(void *);
static int (*dma_write)(void *, void *, void *);
static int (*dma_read)(void *, void *, void *);
static int (*dma_cas)(void *, void *, void *, uint64_t, uint64_t);
static int (*dma_faa)(void *, void *, void *, uint64_t);
static int (*write_with_notify)(void *, void *, void *, void *, uint64_t);
static int (*poll_queue)(void *, uint32_t, void *);
static int (*wait_queue)(void *, uint32_t, int, void *);
static int (*wait_ae)(void *, void *);

static const struct {
	const char *name;
	void *place; /* a function pointer's */
} symbols[] = {
	{ "dma_get_device_list", &get_device_list },
	{ "dma_free_device_list", &free_device_list },
	{ "dma_get_device_by_eid", &get_device_by_eid },
	{ "dma_create_context", &create_context },
	{ "dma_delete_context", &delete_context },
	{ "dma_alloc_queue", &alloc_queue },
	{ "dma_free_queue", &free_queue },
	{ "dma_register_seg", &register_seg },
	{ "dma_unregister_seg", &unregister_seg },
	{ "dma_import_seg", &import_seg },
	{ "dma_unimport_seg", &unimport_seg },
	{ "dma_write", &dma_write },
	{ "dma_read", &dma_read },
	{ "dma_cas", &dma_cas },
	{ "dma_faa", &dma_faa },
	{ "dma_write_with_notify", &write_with_notify },
	{ "dma_poll_queue", &poll_queue },
	{ "dma_wait_queue", &wait_queue },
	{ "dma_wait_ae", &wait_ae },
};

static int failures;

static void check(int good, const char *what)
{
	if (good)
		return;
	failures++;
	fprintf(stderr, "abi_only: %s\n", what);
}

/* Waits for one good completion of the operation with this user value and length. */
static void finish(void *queue, int posted, uint64_t user, uint64_t len, const char *what)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	_Alignas(8) unsigned char cr[CR];
	int got = 0;

	memset(cr, 0xff, sizeof(cr));
	check(posted == 0, what);
	for (int i = 0; posted == 0 && got == 0 && i < 10000; i++) {
		got = poll_queue(queue, 1, cr);
		if (got == 0)
			nanosleep(&pause, NULL);
	}
	check(got == 1 && get(cr, CR_STATUS, 4) == 0 && get(cr, CR_USER, 8) == user &&
		      (get(cr, CR_FLAG, 1) & 3) == 0 && get(cr, CR_LEN, 4) == len,
	      what);
}

static void use(void *queue, void *remote, void *local, unsigned char *source,
		unsigned char *destination)
{
	uint64_t user = 100, seen;
	FOREIGN(part, SEG);
	FOREIGN(word, SEG);
	FOREIGN(cr, CR);

	for (unsigned i = 0; i < 4096; i++)
		source[i] = (unsigned char)(i * 5 + 1);
	put(queue, QUEUE_CFG_COPY + QUEUE_CFG_USER, ++user, 8);
	finish(queue, dma_write(queue, remote, local), user, 4096, "write");
	check(memcmp(source, destination, 4096) == 0, "the bytes written differ");

	/* Segments are values: a copy with another address and length is a part. */
	memcpy(part, local, SEG);
	put(part, SEG_LEN, 8, 8);
	memcpy(word, remote, SEG);
	put(word, SEG_SVA, get(remote, SEG_SVA, 8) + 64, 8);
	put(queue, QUEUE_CFG_COPY + QUEUE_CFG_USER, ++user, 8);
	put(destination, 64, 1000, 8);
	finish(queue, dma_cas(queue, word, part, 1000, 2000), user, 8, "cas");
	check(get(destination, 64, 8) == 2000 && get(source, 0, 8) == 1000, "cas went wrong");
	finish(queue, dma_faa(queue, word, part, 5), user, 8, "faa");
	check(get(destination, 64, 8) == 2005 && get(source, 0, 8) == 2000, "faa went wrong");

	finish(queue, write_with_notify(queue, remote, part, word, 0x1122334455667788), user, 8,
	       "write_with_notify");
	seen = get(destination, 64, 8);
	check(seen == 0x1122334455667788 && get(destination, 0, 8) == 2000, "notify went wrong");

	destination[9] = 99;
	check(dma_read(queue, remote, local) == 0, "read");
	check(wait_queue(queue, 1, 10000, cr) == 1 && get(cr, CR_STATUS, 4) == 0, "wait");
	check(memcmp(source, destination, 4096) == 0, "the bytes read differ");
	check(wait_queue(queue, 1, 0, cr) == -14, "an empty wait does not say -14");
	check(poll_queue(queue, 0, cr) == -22, "a poll for nothing does not say -22");

	put(part, SEG_LEN, 3, 8);
	check(dma_faa(queue, word, part, 1) == 1, "3 bytes were added to");
}

static void with_context(void *ctx, void *device)
{
	static _Alignas(4096) unsigned char source[4096], destination[4096];
	void *queue, *local, *owned, *remote;
	FOREIGN(queue_cfg, QUEUE_CFG);
	FOREIGN(cfg, SEG_CFG);
	FOREIGN(event, AEQE);

	check((void *)(uintptr_t)get(ctx, CONTEXT_DEV, 8) == device, "another device");
	check((get(ctx, CONTEXT_TID, 4) & 0xffff) != 0 && get(ctx, CONTEXT_TID, 4) >> 20 == 0,
	      "the tid is not of 20 bits");
	check((int)get(ctx, CONTEXT_ASYNC_FD, 4) >= 0, "no async_fd");
	check(wait_ae(ctx, event) == 0, "an event out of nowhere");
	put(event, AEQE_DURATION, 10001, 4);
	check(wait_ae(ctx, event) == -22, "too long a wait is not refused");

	put(queue_cfg, QUEUE_CFG_DEPTH, 16, 4);
	put(queue_cfg, QUEUE_CFG_EID, get(device, DEVICE_EID, 4), 4);
	put(queue_cfg, QUEUE_CFG_EVENT_MODE, 1, 1);
	queue = alloc_queue(ctx, queue_cfg);
	put(cfg, SEG_CFG_ADDR, (uintptr_t)source, 8);
	put(cfg, SEG_CFG_LEN, sizeof(source), 8);
	local = register_seg(ctx, cfg);
	put(cfg, SEG_CFG_ADDR, (uintptr_t)destination, 8);
	put(cfg, SEG_CFG_TOKEN, 77, 4);
	put(cfg, SEG_CFG_TOKEN_VALID, 1, 1);
	owned = register_seg(ctx, cfg);
	check(queue && local && owned, "no queue or no segments");
	if (!queue || !local || !owned)
		return;
	check((void *)(uintptr_t)get(queue, QUEUE_CONTEXT, 8) == ctx, "another context");
	check(memcmp((char *)queue + QUEUE_CFG_COPY, queue_cfg, QUEUE_CFG) == 0, "another cfg");
	check(get(owned, SEG_SVA, 8) == (uintptr_t)destination && get(owned, SEG_TOKEN, 4) == 77 &&
		      get(owned, SEG_TOKEN_VALID, 1) == 1,
	      "another segment");
	put(cfg, SEG_CFG_TID, get(owned, SEG_TID, 4), 4);
	remote = import_seg(cfg);
	check(remote != NULL, "no import");
	if (remote)
		use(queue, remote, local, source, destination);
	unimport_seg(remote);
	unregister_seg(ctx, owned);
	unregister_seg(ctx, local);
	free_queue(queue);
}

int main(void)
{
	void *library = dlopen("libcdma.so.1", RTLD_NOW), *list, *ctx, *same;
	FOREIGN(eid, 16);
	uint32_t count = 0;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	for (unsigned i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *function = dlsym(library, symbols[i].name);

		check(function != NULL, symbols[i].name);
		memcpy(symbols[i].place, &function, sizeof(function));
	}
	if (failures)
		return 1;
	list = get_device_list(&count);
	check(list && count > 0, "no device");
	if (failures)
		return 1;
	for (uint32_t i = 0; i < count; i++) {
		const char *device = (const char *)list + (size_t)i * DEVICE;

		check(strncmp(device, "xtal", 4) == 0, "a device without a name");
		check((int)get(device, DEVICE_FD, 4) >= 0, "a device without a descriptor");
		check(get(device, DEVICE_EU_NUM, 1) == 1, "a device without an address");
		check(get(device, DEVICE_MAX_JFS_DEPTH, 4) == 65536, "another depth");
	}
	memcpy(eid, (char *)list + DEVICE_EID, 16);
	same = get_device_by_eid(eid);
	check(same && strcmp(same, list) == 0, "the first device's EID is not found");
	free_device_list(same, 1);
	ctx = create_context(list);
	check(ctx != NULL, "no context");
	if (ctx)
		with_context(ctx, list);
	delete_context(ctx);
	free_device_list(list, count);
	printf("abi_only: %s\n", failures ? "failed" : "ok");
	return failures != 0;
}
