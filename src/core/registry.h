/* SPDX-License-Identifier: MIT */
/* The segments of a context: body, lookup by address, and their public slots. */
#ifndef XTAL_CORE_REGISTRY_H
#define XTAL_CORE_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/interval.h"
#include "base/lock.h"
#include "core/lane.h"
#include "core/object.h"
#include "core/segment.h"
#include "core/shared.h"

struct xtal_segment {
	struct xtal_context *ctx;
	uint64_t addr, len;
	uint32_t token, index;
	bool token_valid, any_token;
	uint32_t rights;
	uint32_t slot;
	bool withdrawn;           /* under the registry's lock */
	_Atomic uint32_t granted; /* some peer or lane was told of this slot */
	struct xtal_backing backing;
	struct xtal_adopted *_Atomic adopted; /* a part of it lies in this run */
	char adopt_reason[120];               /* why (not); as backing.reason */
};

struct xtal_registry {
	struct xtal_lock lock;
	struct xtal_intervals by_addr;
	struct xtal_segment **by_slot; /* grows; NULL: free */
	uint32_t slots, next_hint, count;
	struct xtal_slot_table *table; /* our writable mapping */
	int table_fd;                  /* read-only, for peers */
};

/* Errors: -errno. */
int xtal_registry_init(struct xtal_registry *r);
void xtal_registry_fini(struct xtal_registry *r);

/* What an access asks for. */
struct xtal_access {
	uint64_t addr, len;
	uint32_t token;
	uint32_t index; /* the segment's; 0: any */
	bool token_valid;
	uint32_t rights;
};

/*
 * Finds the segment that covers the access with a matching token and the rights. With lane
 * != NULL the lane's word (lane->local, or the given one) names it before the lock is
 * dropped. Returns 0 and the segment's slot and word, or a status: XTAL_REMOTE_ACCESS.
 */
struct xtal_found {
	uint64_t lo, hi;
	uint32_t slot, rights;
	uint64_t word;
	struct xtal_segment *segment; /* valid while it is announced */
	const char *why;              /* on refusal: static text */
};
int xtal_registry_resolve(struct xtal_registry *r, const struct xtal_access *access,
			  struct xtal_found *out);
/* The same, and announces use in *word until the caller stores 0 there. -EAGAIN: the segment's
 * pages are being exchanged, ask again (in microseconds to a second); nothing is announced. */
int xtal_registry_enter(struct xtal_registry *r, uint32_t context_number,
			const struct xtal_access *access, _Atomic uint64_t *word,
			struct xtal_found *out);

/* Any segment that covers the range, for local use; announced in *word. NULL: there is none. Token
 * and rights are not looked at. Waits while its pages are being exchanged; so the caller announces
 * no other segment. */
struct xtal_segment *xtal_registry_announce(struct xtal_registry *r, uint32_t context_number,
					    uint64_t addr, uint64_t len, _Atomic uint64_t *word);
/* The same as a status: 0 or XTAL_LOCAL_ACCESS. */
int xtal_registry_enter_local(struct xtal_registry *r, uint32_t context_number, uint64_t addr,
			      uint64_t len, _Atomic uint64_t *word);
/* The same without announcing: the user looks at the slot's word himself. */
int xtal_registry_local(struct xtal_registry *r, uint64_t addr, uint64_t len,
			struct xtal_found *out);
/* For sentences: where the segment is (lo, hi) that covers the range, or else has a part of it. False:
 * there is none. */
bool xtal_registry_near(struct xtal_registry *r, uint64_t addr, uint64_t len,
			struct xtal_found *out);

/* What is being moved: an object's pages, or (object NULL) those of [lo, hi) of our memory. */
struct xtal_moving {
	const struct xtal_object *object;
	uint64_t lo, hi;
	const struct xtal_segment *skip;
};
bool xtal_moving_concerns(const struct xtal_moving *m, const struct xtal_segment *seg);

/* Sets all live segments of the context that are concerned, but skip, to moving (or back to live,
 * after each was called for them), each with a new generation. Returns how many. */
uint32_t xtal_registry_move(struct xtal_registry *r, const struct xtal_moving *m, bool moving,
			    void (*each)(struct xtal_segment *seg));

#endif
