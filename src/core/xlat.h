/* SPDX-License-Identifier: MIT */
/*
 * The translation cache of a lane: segments arrive as plain values, so what was once resolved
 * is found again by (address, context, token), and checked by the slot's word at each use.
 */
#ifndef XTAL_CORE_XLAT_H
#define XTAL_CORE_XLAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/op.h"
#include "core/shared.h"
#include "path/path.h"

struct xtal_grant;
struct xtal_link;
struct xtal_queue;

/* This executor's activity word on one link. */
struct xtal_seat {
	struct xtal_link *link;         /* a reference */
	struct xtal_activity *activity; /* on the board, or the lane's own for self */
	uint32_t uses;
	struct xtal_seat *next;
};

/* A remote segment. What the shortest operations need comes first. */
struct xtal_xlat {
	_Alignas(XTAL_CACHE_LINE) struct xtal_key key; /* it was used with last */
	uint64_t lo;
	uint64_t put8, add8; /* so many addresses from lo on may be written, or added, 8 bytes
			      * to by plain instructions */
	uint64_t shift;      /* DIRECT: the owner's address + shift is where it is mapped here */
	const _Atomic uint64_t *slot_word;
	uint64_t word; /* what *slot_word must be */

	uint64_t announce; /* what to write into the activity word */
	struct xtal_activity *activity;
	struct xtal_moved *moved;
	struct xtal_report of8; /* of an operation with 8 bytes */
	uint64_t get8;          /* as put8, read */
	uint64_t put8_by_cma;   /* as put8, by process_vm_writev */
	uint64_t hi;            /* 0: empty */
	struct xtal_eid eid;
	uint32_t tid, token, index;
	bool token_valid, full_fence;
	uint8_t path;
	uint8_t rights;
	uint16_t inline_ops; /* bit (1 << opcode): allowed, and executed on the caller's thread */
	const struct xtal_path_ops *ops; /* of reach.kind */
	struct xtal_grant *grant;        /* a reference */
	struct xtal_seat *seat;
	struct xtal_reach reach;
};

/* A local segment. */
struct xtal_local {
	_Alignas(XTAL_CACHE_LINE) uint64_t lo;
	uint64_t any8; /* so many addresses from lo on have 8 bytes behind them */
	uint64_t hi;
	const _Atomic uint64_t *slot_word;
	uint64_t word;
	uint64_t announce;
};

#define XTAL_XLAT_MIN 4u
#define XTAL_XLAT_MAX (4u * 1024)
#define XTAL_LOCALS   8u

struct xtal_xlats {
	struct xtal_xlat *last;  /* the one used last, or one that covers nothing */
	struct xtal_local *mine; /* the local one used last; covers nothing at first */
	struct xtal_xlat *table; /* size entries, chosen by address */
	uint32_t size, misses;
	struct xtal_seat *seats;
	struct xtal_local local[XTAL_LOCALS];
};

/* Errors: -ENOMEM. */
int xtal_xlats_init(struct xtal_xlats *x);
/* Under the queue's lock, like all below. */
void xtal_xlats_fini(struct xtal_xlats *x);

/* [addr, addr+len), len not 0, lies in [lo, hi). Nothing does when lo equals hi. */
static inline bool xtal_covers(uint64_t lo, uint64_t hi, uint64_t addr, uint64_t len)
{
	uint64_t offset = addr - lo, size = hi - lo;

	return offset < size && len <= size - offset;
}

static inline bool xtal_xlat_covers(const struct xtal_xlat *t, const struct xtal_remote *r,
				    uint64_t len)
{
	uint64_t differ = (r->eid.lo ^ t->eid.lo) | (r->eid.hi ^ t->eid.hi) | (r->tid ^ t->tid) |
			  (r->token ^ t->token) | (r->index ^ t->index) |
			  (uint64_t)(r->token_valid ^ t->token_valid);

	/* One branch instead of five: they nearly always agree. */
	return xtal_covers(t->lo, t->hi, r->addr, len) && !differ;
}

/* The cached translation or NULL. */
struct xtal_xlat *xtal_xlat_lookup(struct xtal_xlats *x, const struct xtal_remote *r, uint64_t len);
static inline struct xtal_xlat *xtal_xlat_find(struct xtal_xlats *x, const struct xtal_remote *r,
					       uint64_t len)
{
	if (xtal_likely(xtal_xlat_covers(x->last, r, len)))
		return x->last;
	return xtal_xlat_lookup(x, r, len);
}

/* Enters a grant (its reference is taken over). Errors: -ENOMEM, -EBUSY (no activity word). */
int xtal_xlat_add(struct xtal_queue *q, const struct xtal_remote *r, struct xtal_grant *grant,
		  struct xtal_xlat **out);
/* The slot's word no longer fits: never find it again. */
void xtal_xlat_stale(struct xtal_xlats *x, struct xtal_xlat *t);
/* Drops everything of a link. */
void xtal_xlats_purge(struct xtal_xlats *x, struct xtal_link *link);

/* For memory of our own: covers all, and never goes. */
extern struct xtal_local xtal_local_own;

/* The local segment of the queue's context that covers the range, or NULL. */
struct xtal_local *xtal_local_lookup(struct xtal_queue *q, uint64_t addr, uint64_t len);
static inline struct xtal_local *xtal_local_find(struct xtal_queue *q, struct xtal_xlats *x,
						 uint64_t addr, uint64_t len)
{
	struct xtal_local *l = x->mine;

	if (xtal_likely(xtal_covers(l->lo, l->hi, addr, len) &&
			atomic_load_explicit(l->slot_word, memory_order_relaxed) == l->word))
		return l;
	return xtal_local_lookup(q, addr, len);
}

#endif
