/* SPDX-License-Identifier: MIT */
/* One process's use of libcdma in the system tests; see peer.h. */
#define _GNU_SOURCE
#include "lib/peer.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/proc.h"
#include "xtal.h"

const char *peer_path_name(enum peer_path path)
{
	static const char *const names[] = { [PEER_MAP] = "map",
					     [PEER_USER] = "map",
					     [PEER_CMA] = "cma",
					     [PEER_RING] = "ring",
					     [PEER_TCP] = "tcp" };

	return names[path];
}

void peer_only(enum peer_path path)
{
	/* Atomics over cma need messages. */
	setenv("XTAL_PATHS", path == PEER_CMA ? "cma,ring" : peer_path_name(path), 1);
}

void peer_owner_for(enum peer_path path)
{
	if (path == PEER_TCP)
		peer_only(path);
}

void peer_open(struct peer *p)
{
	p->list = dma_get_device_list(&p->devices);
	if (!p->list || !p->devices)
		proc_die("no device: %s", xtal_last_error());
	p->ctx = dma_create_context(&p->list[0]);
	if (!p->ctx)
		proc_die("no context: %s", xtal_last_error());
}

void peer_close(struct peer *p)
{
	dma_delete_context(p->ctx);
	dma_free_device_list(p->list, p->devices);
}

struct dma_queue *peer_queue(struct peer *p, uint32_t depth)
{
	struct queue_cfg cfg = { .queue_depth = depth,
				 .rmt_eid.dw0 = PEER_LOOPBACK,
				 .event_mode = true };
	struct dma_queue *q = dma_alloc_queue(p->ctx, &cfg);

	if (!q)
		proc_die("no queue: %s", xtal_last_error());
	return q;
}

void *peer_memory(enum peer_path path, size_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	void *p;

	if (path == PEER_MAP) {
		p = xtal_alloc(len);
		if (!p)
			proc_die("xtal_alloc: %s", xtal_last_error());
		return p;
	}
	if (path == PEER_USER) {
		fd = memfd_create("users", MFD_CLOEXEC);
		flags = MAP_SHARED;
		if (fd < 0 || ftruncate(fd, (off_t)len))
			proc_die("memfd: %m");
	}
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		proc_die("mmap of %zu bytes: %m", len);
	return p;
}

struct dma_seg *peer_register(struct peer *p, void *addr, size_t len, struct peer_export *out)
{
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)addr,
				   .len = len,
				   .token_value = PEER_TOKEN,
				   .token_value_valid = true };
	struct dma_seg *seg = dma_register_seg(p->ctx, &cfg);

	if (!seg)
		proc_die("no segment: %s", xtal_last_error());
	if (out)
		*out = (struct peer_export){ .sva = seg->sva, .len = seg->len, .tid = seg->tid };
	return seg;
}

struct dma_seg peer_remote(const struct peer_export *e, uint64_t offset, uint64_t len)
{
	return (struct dma_seg){ .sva = e->sva + offset,
				 .len = len,
				 .tid = e->tid,
				 .token_value = PEER_TOKEN,
				 .token_value_valid = true };
}

struct dma_seg peer_part(const struct dma_seg *seg, uint64_t offset, uint64_t len)
{
	struct dma_seg part = *seg;

	part.sva += offset;
	part.len = len;
	return part;
}

struct dma_cr peer_complete(struct dma_queue *q, unsigned timeout_ms)
{
	uint64_t end = proc_now() + (uint64_t)timeout_ms * 1000000;
	struct dma_cr cr = { 0 };

	for (unsigned i = 0;; i++) {
		int n = dma_poll_queue(q, 1, &cr);

		if (n == 1)
			return cr;
		if (n < 0)
			proc_die("poll answers %d", n);
		if (i % 200 != 199)
			continue;
		sched_yield();
		if (proc_now() > end)
			proc_die("no completion within %u ms", timeout_ms);
	}
}

static int finish(struct dma_queue *q, dma_status status)
{
	if (status != DMA_STATUS_OK)
		proc_die("post refused: %s", xtal_last_error());
	/* `make soak` gives an operation a minute, since machines halt processes for seconds. */
	return (int)peer_complete(q, proc_soak() ? 180000 : 20000).status;
}

int peer_write(struct dma_queue *q, struct dma_seg remote, struct dma_seg local)
{
	return finish(q, dma_write(q, &remote, &local));
}

int peer_read(struct dma_queue *q, struct dma_seg remote, struct dma_seg local)
{
	return finish(q, dma_read(q, &remote, &local));
}

int peer_faa(struct dma_queue *q, struct dma_seg remote, struct dma_seg local, uint64_t add)
{
	return finish(q, dma_faa(q, &remote, &local, add));
}

void peer_expect(int status, const char *what)
{
	if (status)
		proc_die("%s ended with status %d (%s)", what, status, xtal_status_name(status));
}

unsigned peer_path_taken(struct dma_queue *q, const struct peer_export *e, char *reason,
			 size_t size)
{
	struct xtal_descriptor d = {
		.tid = e->tid, .token = PEER_TOKEN, .token_valid = 1, .va = e->sva, .len = e->len
	};
	struct xtal_path_info info;
	int err = xtal_path_query(q, &d, 5000, &info);

	if (err)
		proc_die("path query: %s", strerror(-err));
	if (reason) {
		snprintf(reason, size, "%s;", info.reason);
		for (uint32_t i = 0; i < info.candidates; i++) {
			size_t at = strlen(reason);

			snprintf(reason + at, size - at, " %s: %s;",
				 xtal_path_name(info.candidate[i].kind), info.candidate[i].reason);
		}
	}
	return info.kind;
}

void peer_fill(void *addr, size_t len, uint64_t seed)
{
	uint64_t *p = addr;

	for (size_t i = 0; i < len / 8; i++)
		p[i] = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
}

bool peer_holds(const void *addr, size_t len, uint64_t seed)
{
	const uint64_t *p = addr;

	for (size_t i = 0; i < len / 8; i++)
		if (p[i] != (seed + i) * UINT64_C(0x9e3779b97f4a7c15))
			return false;
	return true;
}

int peer_owner_run(void *arg)
{
	struct peer_owner *o = arg;
	struct peer p;
	void *memory;

	peer_owner_for(o->path);
	peer_open(&p);
	memory = peer_memory(o->path, o->len);
	if (o->seed)
		peer_fill(memory, o->len, o->seed);
	peer_register(&p, memory, o->len, &o->export);
	atomic_store(&o->ready, 1);
	while (!atomic_load(&o->quit))
		proc_sleep_us(200);
	return 0;
}
