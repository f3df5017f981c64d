/* SPDX-License-Identifier: MIT */
/* The interval set against a twin that is too simple to be wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/interval.h"

#define MAX_TWIN 400

struct twin {
	struct {
		uint64_t lo, hi;
		void *value;
	} items[MAX_TWIN];
	size_t count;
};

static unsigned random_state = 1;

static unsigned draw(unsigned limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state % limit;
}

/* How often each value was visited; values are small numbers. */
struct visits {
	unsigned count[64];
	unsigned total, stop_at;
};

static bool count_visit(void *value, void *arg)
{
	struct visits *v = arg;

	v->count[(uintptr_t)value]++;
	return ++v->total == v->stop_at;
}

static void twin_visits(const struct twin *t, bool covering, uint64_t lo, uint64_t hi,
			struct visits *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < t->count; i++) {
		bool hit = covering ? t->items[i].lo <= lo && hi <= t->items[i].hi
				    : t->items[i].lo < hi && lo < t->items[i].hi;

		if (hit) {
			out->count[(uintptr_t)t->items[i].value]++;
			out->total++;
		}
	}
}

static void compare(const struct xtal_intervals *set, const struct twin *t, bool covering,
		    uint64_t lo, uint64_t hi)
{
	void *(*find)(const struct xtal_intervals *, uint64_t, uint64_t, bool (*)(void *, void *),
		      void *) = covering ? xtal_intervals_covering : xtal_intervals_touching;
	struct visits want, got = { 0 };

	twin_visits(t, covering, lo, hi, &want);
	assert_null(find(set, lo, hi, count_visit, &got));
	assert_int_equal(got.total, want.total);
	assert_memory_equal(got.count, want.count, sizeof(want.count));
	if (want.total == 0)
		return;
	/* Stopping at some visit returns a value that was a right answer. */
	memset(&got, 0, sizeof(got));
	got.stop_at = 1 + draw(want.total);
	assert_true(want.count[(uintptr_t)find(set, lo, hi, count_visit, &got)] > 0);
	assert_int_equal(got.total, got.stop_at);
}

static void insert_both(struct xtal_intervals *set, struct twin *t, unsigned space)
{
	uint64_t lo = draw(space), hi = lo + 1 + draw(draw(8) ? 8 : space);
	void *value = (void *)(uintptr_t)(1 + draw(60));

	if (t->count == MAX_TWIN)
		return;
	assert_int_equal(xtal_intervals_insert(set, lo, hi, value), 0);
	t->items[t->count].lo = lo;
	t->items[t->count].hi = hi;
	t->items[t->count++].value = value;
}

static void remove_both(struct xtal_intervals *set, struct twin *t)
{
	size_t i;

	if (t->count == 0)
		return;
	i = draw((unsigned)t->count);
	assert_int_equal(
		xtal_intervals_remove(set, t->items[i].lo, t->items[i].hi, t->items[i].value), 0);
	t->items[i] = t->items[--t->count];
}

static void remove_absent(struct xtal_intervals *set, const struct twin *t, unsigned space)
{
	uint64_t lo = draw(space), hi = lo + 1 + draw(8);
	void *value = (void *)(uintptr_t)(1 + draw(60));

	for (size_t i = 0; i < t->count; i++)
		if (t->items[i].lo == lo && t->items[i].hi == hi && t->items[i].value == value)
			return;
	assert_int_equal(xtal_intervals_remove(set, lo, hi, value), -ENOENT);
}

static void check_order(const struct xtal_intervals *set, const struct twin *t)
{
	uint64_t max = 0;

	assert_int_equal(set->count, t->count);
	for (size_t i = 0; i < set->count; i++) {
		if (set->items[i].hi > max)
			max = set->items[i].hi;
		assert_true(set->items[i].max_hi == max);
		assert_true(i == 0 || set->items[i - 1].lo <= set->items[i].lo);
	}
}

static void random_operations(void **state)
{
	static struct twin t;

	(void)state;
	for (unsigned run = 0; run < 24; run++) {
		struct xtal_intervals set;
		unsigned space = run % 2 ? 30 : 3000, growth = 3 + run % 4;

		xtal_intervals_init(&set);
		t.count = 0;
		for (unsigned step = 0; step < 1000; step++) {
			uint64_t lo = draw(space), hi = lo + 1 + draw(10);

			if (draw(8) < growth)
				insert_both(&set, &t, space);
			else
				remove_both(&set, &t);
			remove_absent(&set, &t, space);
			compare(&set, &t, true, lo, hi);
			compare(&set, &t, false, lo, hi);
		}
		check_order(&set, &t);
		while (t.count > 0)
			remove_both(&set, &t);
		assert_int_equal(set.count, 0);
		xtal_intervals_fini(&set);
	}
}

static void empty_set(void **state)
{
	struct xtal_intervals set;
	struct visits v = { 0 };

	(void)state;
	xtal_intervals_init(&set);
	assert_null(xtal_intervals_covering(&set, 0, 1, count_visit, &v));
	assert_null(xtal_intervals_touching(&set, 0, UINT64_MAX, count_visit, &v));
	assert_int_equal(xtal_intervals_remove(&set, 0, 1, NULL), -ENOENT);
	assert_int_equal(v.total, 0);
	xtal_intervals_fini(&set);
	xtal_intervals_fini(&set);
}

/* The ends of the address space, and empty questions. */
static void edges(void **state)
{
	struct xtal_intervals set;
	struct visits v = { 0 };
	void *one = (void *)1, *two = (void *)2;

	(void)state;
	xtal_intervals_init(&set);
	assert_int_equal(xtal_intervals_insert(&set, 0, UINT64_MAX, one), 0);
	assert_int_equal(xtal_intervals_insert(&set, UINT64_MAX - 1, UINT64_MAX, two), 0);
	v.stop_at = 1;
	assert_ptr_equal(xtal_intervals_covering(&set, 0, UINT64_MAX, count_visit, &v), one);
	v = (struct visits){ .stop_at = 1 };
	assert_ptr_equal(xtal_intervals_touching(&set, UINT64_MAX - 1, UINT64_MAX, count_visit, &v),
			 two);
	v = (struct visits){ 0 };
	assert_null(xtal_intervals_touching(&set, 5, 5, count_visit, &v));
	assert_null(xtal_intervals_touching(&set, 6, 5, count_visit, &v));
	assert_null(xtal_intervals_covering(&set, 6, 5, count_visit, &v));
	assert_int_equal(v.total, 0);
	xtal_intervals_fini(&set);
}

static void out_of_memory(void **state)
{
	struct xtal_intervals set = { .count = SIZE_MAX / 2, .capacity = SIZE_MAX / 2 };

	(void)state;
	assert_int_equal(xtal_intervals_insert(&set, 1, 2, NULL), -ENOMEM);
	assert_true(set.count == SIZE_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations),
		cmocka_unit_test(empty_set),
		cmocka_unit_test(edges),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
