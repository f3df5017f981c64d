/* SPDX-License-Identifier: MIT */
/*
 * One process's use of libcdma in the system tests: a context with queues, memory of the kind
 * that leads to a given path, operations that are awaited. A failure ends the process with a
 * message (proc_die): call these in processes of proc_start() only.
 */
#ifndef TEST_LIB_PEER_H
#define TEST_LIB_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cdma_u_lib.h"

/* How the initiator shall reach the owner's memory. */
enum peer_path {
	PEER_MAP,  /* memory of xtal_alloc */
	PEER_USER, /* the owner's own memfd, mapped shared */
	PEER_CMA,  /* private memory, process_vm_* */
	PEER_RING, /* private memory, messages */
	PEER_TCP,  /* the same over a socket */
	PEER_PATHS,
};

#define PEER_LOOPBACK 0x7f000001u
#define PEER_TOKEN    0x5ec4e7u

const char *peer_path_name(enum peer_path path);

/* What an owner tells its initiators; lies in shared memory. */
struct peer_export {
	uint64_t sva, len;
	uint32_t tid;
};

struct peer {
	struct dma_device *list;
	uint32_t devices;
	struct dma_context *ctx;
};

/* Only this path may be used by this process (called before the first use of the library). */
void peer_only(enum peer_path path);

/* An owner of memory for this path may be reached over all paths; but on loopback only those listen
 * for TCP who say so. Before the first use of the library. */
void peer_owner_for(enum peer_path path);

/* Opens device 0 and a context. */
void peer_open(struct peer *p);
void peer_close(struct peer *p);

struct dma_queue *peer_queue(struct peer *p, uint32_t depth);

/* Page aligned, zero. */
void *peer_memory(enum peer_path path, size_t len);

struct dma_seg *peer_register(struct peer *p, void *addr, size_t len, struct peer_export *out);

/* The segment (or a part of it) as a value. */
struct dma_seg peer_remote(const struct peer_export *e, uint64_t offset, uint64_t len);
struct dma_seg peer_part(const struct dma_seg *seg, uint64_t offset, uint64_t len);

/* Polls until one completion is there; dies after the time. */
struct dma_cr peer_complete(struct dma_queue *q, unsigned timeout_ms);

/* Posts one operation and waits for it; its status. */
int peer_write(struct dma_queue *q, struct dma_seg remote, struct dma_seg local);
int peer_read(struct dma_queue *q, struct dma_seg remote, struct dma_seg local);
int peer_faa(struct dma_queue *q, struct dma_seg remote, struct dma_seg local, uint64_t add);

/* Dies unless the operation ended well. */
void peer_expect(int status, const char *what);

/* The path that the queue takes to the export; XTAL_PATH_*. reason may be NULL. */
unsigned peer_path_taken(struct dma_queue *q, const struct peer_export *e, char *reason,
			 size_t size);

/* Position-dependent contents. */
void peer_fill(void *addr, size_t len, uint64_t seed);
bool peer_holds(const void *addr, size_t len, uint64_t seed);

/* An owner that only lives: registers memory, tells, sleeps. arg: struct peer_owner. */
struct peer_owner {
	enum peer_path path;
	size_t len;
	uint64_t seed; /* the memory's first contents, by peer_fill(); 0: zeroes */
	struct peer_export export;
	_Atomic uint32_t ready, quit;
};
int peer_owner_run(void *arg);

#endif
