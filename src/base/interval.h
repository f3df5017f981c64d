/* SPDX-License-Identifier: MIT */
/*
 * A set of half-open address ranges [lo, hi) with a pointer each; ranges may overlap and
 * repeat. Lookup of the ranges that cover a given range is logarithmic plus the overlaps.
 * Not thread safe; the owner locks.
 */
#ifndef XTAL_BASE_INTERVAL_H
#define XTAL_BASE_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xtal_interval {
	uint64_t lo, hi;
	uint64_t max_hi; /* largest hi of all entries up to and including this one */
	void *value;
};

struct xtal_intervals {
	struct xtal_interval *items; /* sorted by lo, then by insertion */
	size_t count, capacity;
};

/* Have ranges of so many bytes from a and b a byte in common? Neither ends above 2^64 - 1. */
static inline bool xtal_ranges_meet(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b ? b - a < a_len && b_len : a - b < b_len && a_len;
}

void xtal_intervals_init(struct xtal_intervals *set);
void xtal_intervals_fini(struct xtal_intervals *set);

/* Assumes lo < hi. Errors: -ENOMEM. */
int xtal_intervals_insert(struct xtal_intervals *set, uint64_t lo, uint64_t hi, void *value);

/* Removes the entry with exactly this range and value. Errors: -ENOENT. */
int xtal_intervals_remove(struct xtal_intervals *set, uint64_t lo, uint64_t hi, void *value);

/* Calls keep once for every entry and takes out those for which it returns false. */
void xtal_intervals_filter(struct xtal_intervals *set, bool (*keep)(void *value, void *arg),
			   void *arg);

/*
 * Calls visit for each entry that covers all of [lo, hi) until visit returns true; the value
 * of that entry is returned, else NULL. visit may not change the set.
 */
void *xtal_intervals_covering(const struct xtal_intervals *set, uint64_t lo, uint64_t hi,
			      bool (*visit)(void *value, void *arg), void *arg);

/* The same for each entry that has at least one byte in common with [lo, hi). */
void *xtal_intervals_touching(const struct xtal_intervals *set, uint64_t lo, uint64_t hi,
			      bool (*visit)(void *value, void *arg), void *arg);

#endif
