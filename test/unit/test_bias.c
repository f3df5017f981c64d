/* SPDX-License-Identifier: MIT */
/* The biased lock: who owns it, who comes in when, and that nobody is ever in together. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "core/bias.h"
#include "core/lane.h"
#include "core/revoke.h"
#include "lib/child.h"
#include "os/proc.h"

static struct xtal_bias bias;
static uint64_t inside; /* changed by plain loads and stores */
static uint64_t scale;

static int set_up(void **state)
{
	(void)state;
	memset(&bias, 0, sizeof(bias));
	inside = 0;
	scale = getenv("XTAL_TEST_SCALE") ? strtoull(getenv("XTAL_TEST_SCALE"), NULL, 10) : 100;
	xtal_revoke_setup();
	return 0;
}

/* Without a membarrier nobody ever becomes the owner. */
static bool can_own(void)
{
	return !xtal_lane_full_fence();
}

static void become_owner(void)
{
	for (unsigned i = 0; i < XTAL_BIAS_STREAK; i++) {
		assert_int_equal(atomic_load(&bias.owner), 0);
		xtal_bias_lock_own(&bias);
		xtal_bias_unlock(&bias);
	}
	assert_int_equal(atomic_load(&bias.owner), can_own() ? xtal_bias_self() : 0);
}

static void *run(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static void *lock_once(void *arg)
{
	xtal_bias_lock(arg);
	inside++;
	xtal_bias_unlock(arg);
	return NULL;
}

/* As if it had come soon after the one before: threads take their time to start. */
static void *lock_soon(void *arg)
{
	((struct xtal_bias *)arg)->disturbed_at = xtal_os_now();
	return lock_once(arg);
}

static void *try_once(void *arg)
{
	if (!xtal_bias_trylock(arg, 10))
		return NULL;
	xtal_bias_unlock(arg);
	return arg;
}

static void who_comes_again_and_again_becomes_the_owner(void **state)
{
	(void)state;
	xtal_bias_lock(&bias); /* these do not count */
	xtal_bias_unlock(&bias);
	become_owner();
	if (!can_own())
		return;
	assert_true(xtal_bias_enter(&bias));
	assert_false(bias.locked);
	assert_int_equal(atomic_load(&bias.lock.held), 0);
	xtal_bias_unlock(&bias);
	assert_false(atomic_load(&bias.busy));
}

static void *lock_own_once(void *arg)
{
	xtal_bias_lock_own(arg);
	xtal_bias_unlock(arg);
	return NULL;
}

static void two_who_take_turns_own_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * XTAL_BIAS_STREAK; i++) {
		lock_own_once(&bias);
		run(lock_own_once, &bias);
	}
	assert_int_equal(atomic_load(&bias.owner), 0);
}

static void another_waits_until_the_owner_is_out(void **state)
{
	pthread_t thread;

	(void)state;
	become_owner();
	xtal_bias_lock_own(&bias);
	assert_null(run(try_once, &bias));
	assert_int_equal(pthread_create(&thread, NULL, lock_once, &bias), 0);
	for (unsigned i = 0; i < 20; i++) {
		xtal_os_sleep_ns(1000000);
		assert_int_equal(inside, 0);
	}
	xtal_bias_unlock(&bias);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(inside, 1);
	assert_ptr_equal(run(try_once, &bias), &bias);
	assert_int_equal(xtal_bias_enter(&bias), can_own()); /* still the owner */
	if (can_own())
		xtal_bias_unlock(&bias);
}

static void the_owner_waits_for_another(void **state)
{
	(void)state;
	become_owner();
	if (!can_own())
		return;
	atomic_store(&bias.wanted, true); /* another is inside */
	assert_false(xtal_bias_enter(&bias));
	assert_false(atomic_load(&bias.busy));
	atomic_store(&bias.wanted, false);
	atomic_store(&bias.lock.held, 1);
	assert_true(xtal_bias_enter(&bias)); /* has the lock, but has not said so yet */
	xtal_bias_unlock(&bias);
	atomic_store(&bias.lock.held, 0);
}

static void who_is_disturbed_too_often_owns_no_more(void **state)
{
	uint64_t then;

	(void)state;
	become_owner();
	if (!can_own())
		return;
	/* Rarely is not often. */
	for (unsigned i = 0; i < 2 * XTAL_BIAS_DISTURBED; i++) {
		run(lock_once, &bias);
		xtal_os_sleep_ns(2 * XTAL_BIAS_DISTURBED_NS);
	}
	assert_int_equal(atomic_load(&bias.owner), xtal_bias_self());
	then = xtal_os_now();
	while (atomic_load(&bias.owner) == xtal_bias_self() && xtal_os_now() - then < 5000000000u)
		run(lock_soon, &bias);
	assert_true(atomic_load(&bias.owner) == XTAL_BIAS_NOBODY);
	assert_true(atomic_load(&bias.wanted)); /* for whoever has just read his name */
	for (unsigned i = 0; i < 2 * XTAL_BIAS_STREAK; i++)
		lock_own_once(&bias);
	assert_true(atomic_load(&bias.owner) == XTAL_BIAS_NOBODY);
	assert_true(atomic_load(&bias.wanted));
}

/* ---- Races ---- */

static atomic_bool over;

struct racer {
	pthread_t thread;
	uint64_t times;
	uint64_t pause_ns;
	unsigned kind; /* 0: to own, 1: to lock, 2: to try */
};

static void *race(void *arg)
{
	struct racer *r = arg;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (r->kind == 0)
			xtal_bias_lock_own(&bias);
		else if (r->kind == 1)
			xtal_bias_lock(&bias);
		else if (!xtal_bias_trylock(&bias, 50))
			continue;
		inside++;
		xtal_bias_unlock(&bias);
		r->times++;
		if (r->pause_ns)
			xtal_os_sleep_ns(r->pause_ns);
	}
	return NULL;
}

/* Every one of the additions counts. */
static void race_for(uint64_t ns, struct racer *racers, unsigned count)
{
	uint64_t sum = 0;

	atomic_store(&over, false);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	xtal_os_sleep_ns(ns);
	atomic_store(&over, true);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		sum += racers[i].times;
	}
	assert_int_equal(inside, sum);
}

static void nobody_is_in_together_with_a_disturbed_owner(void **state)
{
	struct racer racers[] = { { .kind = 0 },
				  { .kind = 1, .pause_ns = 1500000 },
				  { .kind = 2, .pause_ns = 2500000 } };

	(void)state;
	race_for(30000000 * scale, racers, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_true(racers[i].times > 0);
}

/* Again and again from the start, as queues are made: owners come and go. */
static void nobody_is_in_together_when_all_hurry(void **state)
{
	(void)state;
	for (unsigned i = 0; i < scale; i++) {
		struct racer racers[] = {
			{ .kind = 0 }, { .kind = 0 }, { .kind = 1 }, { .kind = 2 }
		};

		set_up(NULL);
		race_for(10000000, racers, 4);
	}
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

/* A program may install a filter when everything is open: who counts on a fence then waits instead. */
static void fences_in_vain(void *arg)
{
	uint64_t begun;

	(void)arg;
	xtal_revoke_setup();
	if (xtal_lane_full_fence() || !child_deny(SYS_membarrier, EPERM, -1, 0))
		return;
	begun = xtal_os_now();
	xtal_revoke_fence();
	EXPECT(xtal_os_now() - begun >= 500000);
}

static void a_fence_that_is_refused_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(child_run(fences_in_vain, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_comes_again_and_again_becomes_the_owner),
		TEST(two_who_take_turns_own_nothing),
		TEST(another_waits_until_the_owner_is_out),
		TEST(the_owner_waits_for_another),
		TEST(who_is_disturbed_too_often_owns_no_more),
		TEST(nobody_is_in_together_with_a_disturbed_owner),
		TEST(nobody_is_in_together_when_all_hurry),
		TEST(a_fence_that_is_refused_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
