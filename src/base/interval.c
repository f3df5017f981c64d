/* SPDX-License-Identifier: MIT */
/*
 * The set of address ranges as a sorted array. Each entry carries the largest end seen so
 * far, which tells a backward scan when nothing further left can reach the wanted range.
 */
#include "base/interval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void xtal_intervals_init(struct xtal_intervals *set)
{
	*set = (struct xtal_intervals){ 0 };
}

void xtal_intervals_fini(struct xtal_intervals *set)
{
	free(set->items);
	xtal_intervals_init(set);
}

/* Number of entries whose lo is below the limit (or equal to it, with equal_too). */
static size_t count_before(const struct xtal_intervals *set, uint64_t limit, bool equal_too)
{
	size_t first = 0, last = set->count;

	while (first < last) {
		size_t mid = first + (last - first) / 2;
		uint64_t lo = set->items[mid].lo;

		if (lo < limit || (equal_too && lo == limit))
			first = mid + 1;
		else
			last = mid;
	}
	return first;
}

static int make_room(struct xtal_intervals *set)
{
	size_t capacity = set->capacity ? set->capacity * 2 : 16;
	struct xtal_interval *items;

	if (set->count < set->capacity)
		return 0;
	if (capacity > SIZE_MAX / sizeof(*items))
		return -ENOMEM;
	items = realloc(set->items, capacity * sizeof(*items));
	if (!items)
		return -ENOMEM;
	set->items = items;
	set->capacity = capacity;
	return 0;
}

/* Recomputes max_hi from position i on, after an entry there came or went. */
static void update_max(struct xtal_intervals *set, size_t i)
{
	uint64_t max = i > 0 ? set->items[i - 1].max_hi : 0;

	for (; i < set->count; i++) {
		if (set->items[i].hi > max)
			max = set->items[i].hi;
		set->items[i].max_hi = max;
	}
}

int xtal_intervals_insert(struct xtal_intervals *set, uint64_t lo, uint64_t hi, void *value)
{
	int ret = make_room(set);
	size_t i;

	if (ret)
		return ret;
	i = count_before(set, lo, true);
	memmove(set->items + i + 1, set->items + i, (set->count - i) * sizeof(*set->items));
	set->items[i] = (struct xtal_interval){ .lo = lo, .hi = hi, .value = value };
	set->count++;
	update_max(set, i);
	return 0;
}

int xtal_intervals_remove(struct xtal_intervals *set, uint64_t lo, uint64_t hi, void *value)
{
	size_t i = count_before(set, lo, false);

	for (; i < set->count && set->items[i].lo == lo; i++) {
		if (set->items[i].hi != hi || set->items[i].value != value)
			continue;
		set->count--;
		memmove(set->items + i, set->items + i + 1, (set->count - i) * sizeof(*set->items));
		update_max(set, i);
		return 0;
	}
	return -ENOENT;
}

void xtal_intervals_filter(struct xtal_intervals *set, bool (*keep)(void *value, void *arg),
			   void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++)
		if (keep(set->items[i].value, arg))
			set->items[kept++] = set->items[i];
	set->count = kept;
	update_max(set, 0);
}

/* Visits, right to left from entry n-1, every entry that ends at or after min_hi. */
static void *visit_back(const struct xtal_intervals *set, size_t n, uint64_t min_hi,
			bool (*visit)(void *value, void *arg), void *arg)
{
	while (n-- > 0) {
		const struct xtal_interval *e = &set->items[n];

		if (e->max_hi < min_hi)
			break;
		if (e->hi >= min_hi && visit(e->value, arg))
			return e->value;
	}
	return NULL;
}

void *xtal_intervals_covering(const struct xtal_intervals *set, uint64_t lo, uint64_t hi,
			      bool (*visit)(void *value, void *arg), void *arg)
{
	if (lo > hi)
		return NULL;
	return visit_back(set, count_before(set, lo, true), hi, visit, arg);
}

void *xtal_intervals_touching(const struct xtal_intervals *set, uint64_t lo, uint64_t hi,
			      bool (*visit)(void *value, void *arg), void *arg)
{
	if (lo >= hi)
		return NULL;
	return visit_back(set, count_before(set, hi, false), lo + 1, visit, arg);
}
