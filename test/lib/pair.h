/* SPDX-License-Identifier: MIT */
/*
 * An owner (another process; for the self path a thread of this one) with registered memory,
 * and this process as the initiator with a queue towards it, over the path of the suite.
 */
#ifndef TEST_LIB_PAIR_H
#define TEST_LIB_PAIR_H

#include "cdma_u_lib.h"
#include "lib/actor.h"
#include "lib/memory.h"
#include "lib/pattern.h"
#include "lib/suite.h"

#define LOOPBACK         suite_owner_eid
#define PAIR_TOKEN       0x1234567u
#define PAIR_SEGS        16
#define PAIR_PATIENCE_MS 150000

/* The owner's side; its address is only good for functions that run there. */
struct owner {
	struct dma_device *list;
	uint32_t devices;
	struct dma_context *ctx;
	struct memory mem;
	struct dma_seg *segs[PAIR_SEGS];
};

/* What is asked of the owner. */
struct ask {
	struct owner *owner;
	uint64_t addr, len, seed, value, count;
	uint32_t kind, token;
	bool token_valid;
	struct dma_seg seg; /* answer */
	uint8_t bytes[64];
};

struct pair {
	struct actor *actor;
	struct owner *owner;
	struct dma_seg remote; /* all of the owner's memory */
	struct dma_device *list;
	uint32_t devices;
	struct dma_context *ctx;
	struct dma_queue *queue;
	struct memory mem;
	struct dma_seg *local; /* all of ours */
};

struct pair_attr {
	size_t len;             /* bytes on both sides */
	uint32_t depth;         /* 0: 64 */
	enum memory_kind kind;  /* of the owner's memory */
	bool any_kind;          /* false: the path's own (xtal_alloc for map, else malloc) */
	const char *const *env; /* of the owner */
};

void pair_open_attr(struct pair *p, const struct pair_attr *attr);
void pair_open(struct pair *p, size_t len); /* also asserts the path */
void pair_close(struct pair *p);
enum xtal_path_kind pair_path(struct pair *p, const struct dma_seg *remote);
struct dma_queue *pair_queue(struct pair *p, uint32_t depth);

/* Asks the owner. */
int64_t pair_ask(struct pair *p, actor_fn fn, struct ask *a);
struct dma_seg pair_register(struct pair *p, uint64_t addr, uint64_t len, uint32_t token,
			     bool token_valid);
void pair_unregister(struct pair *p, const struct dma_seg *seg);
void pair_fill(struct pair *p, uint64_t addr, uint64_t len, uint64_t seed);
void pair_assert_pattern(struct pair *p, uint64_t addr, uint64_t len, uint64_t seed);
void pair_assert_guards(struct pair *p);
void pair_poke(struct pair *p, uint64_t addr, const void *bytes, size_t len);
void pair_peek(struct pair *p, uint64_t addr, void *bytes, size_t len);

/* A part of a segment: the copy that programs make. */
struct dma_seg part(const struct dma_seg *seg, uint64_t offset, uint64_t len);
/* The next completion, at most PAIR_PATIENCE_MS away. */
struct dma_cr take_cr(struct dma_queue *q);
void assert_ok(struct dma_queue *q, uint64_t len);
void assert_status(struct dma_queue *q, int status);
void assert_refused_because(const char *words);
struct dma_context *open_context(struct dma_device **list, uint32_t *devices);

/* Run by the owner. */
int64_t owner_peek(void *args);
int64_t owner_fill(void *args);
int64_t owner_check(void *args);

#endif
