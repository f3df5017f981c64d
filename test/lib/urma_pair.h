/* SPDX-License-Identifier: MIT */
/*
 * Two sides of liburma over the path of the suite: the owner in another process (for the self path
 * a thread of this one), the initiator here; each has imported the other.
 */
#ifndef TEST_LIB_URMA_PAIR_H
#define TEST_LIB_URMA_PAIR_H

#include "lib/actor.h"
#include "lib/memory.h"
#include "lib/pattern.h"
#include "lib/suite.h"
#include "lib/urma_side.h"

#define URMA_PAIR_PATIENCE_MS 60000

struct urma_owner {
	struct urma_side side;
	struct urma_peer peer; /* the initiator, once it has told */
	struct memory mem;
};

/* What is asked of the owner. */
struct urma_ask {
	struct urma_owner *owner;
	struct urma_side_attr attr;
	size_t len;
	uint32_t kind;
	struct urma_told told; /* in: the initiator's; out: the owner's */
	uint64_t addr, seed, value, user;
	uint32_t count, text_len;
	urma_cr_t cr;
	uint8_t bytes[64];
};

struct urma_pair {
	struct actor *actor;
	struct urma_owner *owner; /* in its process */
	struct urma_told told;    /* of the owner */
	uint64_t base;            /* of its segment */
	struct urma_side side;
	struct urma_peer peer;
	struct memory mem;
};

struct urma_pair_attr {
	struct urma_side_attr side; /* of both; memory and len are filled in */
	size_t len;                 /* of both segments */
	const char *const *env;     /* of the owner */
};

void urma_pair_open_attr(struct urma_pair *p, const struct urma_pair_attr *attr);
void urma_pair_open(struct urma_pair *p, size_t len);
void urma_pair_close(struct urma_pair *p);

/* Runs fn at the owner. */
int64_t urma_pair_ask(struct urma_pair *p, actor_fn fn, struct urma_ask *a);
void urma_pair_fill(struct urma_pair *p, uint64_t addr, uint64_t len, uint64_t seed);
void urma_pair_assert_pattern(struct urma_pair *p, uint64_t addr, uint64_t len, uint64_t seed);
void urma_pair_peek(struct urma_pair *p, uint64_t addr, void *bytes, size_t len);
void urma_pair_poke(struct urma_pair *p, uint64_t addr, const void *bytes, size_t len);
/* The owner posts count receives of len bytes each, from addr on, users user, user + 1, ... */
void urma_pair_receive(struct urma_pair *p, uint64_t addr, uint32_t len, uint32_t count,
		       uint64_t user);
/* The owner's next record. */
urma_cr_t urma_pair_owner_take(struct urma_pair *p);

/* Here: the next record; a request that was posted; that it ended so. */
urma_cr_t urma_pair_take(struct urma_pair *p);
void urma_pair_post(struct urma_pair *p, struct urma_request *r, uint64_t user);
void urma_pair_assert_cr(struct urma_pair *p, uint64_t user, int status, uint32_t len);
void urma_assert_refused(const char *words);

#endif
