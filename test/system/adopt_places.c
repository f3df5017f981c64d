/* SPDX-License-Identifier: MIT */
/*
 * Adoption, over and over, of memory that the program moves twice in a row and grows, and whose
 * content is dropped by threads that hardly ever get to run. No bytes are lost or come back.
 */
/* ctest: timeout=120 label=soak */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define LEN      ((size_t)128 << 10)
#define BLOCK    ((size_t)4096)
#define PATIENCE 60000u
#define SECOND   UINT64_C(1000000000)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct scene {
	uint8_t *_Atomic p;
	_Atomic bool stop;
	_Atomic uint32_t first, turns;
};

static void *map(void *at, int prot, int flags)
{
	return mmap(at, LEN, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Shares and unshares for a while; answers how often it was adopted. */
static int go(struct scene *s, void *(*const *bodies)(void *), unsigned n, uint64_t least)
{
	uint64_t end = proc_now() + (proc_soak() ? 400 * SECOND : least);
	unsigned rounds = 0, adopted = 0;
	pthread_t t[4];

	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	s->p = map(NULL, PROT_READ | PROT_WRITE, 0);
	peer_fill(s->p, LEN, 1);
	xtal_share(s->p, LEN);
	xtal_unshare(s->p, LEN);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, bodies[i], s))
			proc_die("no thread");
	/* Once at least, however long the hog keeps us from it. */
	for (; proc_now() < end || (!adopted && rounds < 100000); rounds++) {
		/* Refused when there is nothing, or it changes. */
		adopted += !xtal_share(s->p, LEN);
		xtal_unshare(s->p, LEN);
	}
	s->stop = true;
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	fprintf(stderr, "adopted %u times in %u rounds, %u turns\n", adopted, rounds, s->turns);
	return adopted ? 0 : 1;
}

/* ---- moved twice ---- */

/* As realloc() does it: to where there is room for more. (With MREMAP_FIXED newer kernels move some of
 * several mappings and fail then: no program can go on after that.) */
static uint8_t *move(struct scene *s, uint8_t *from)
{
	void *stop = mmap(from + LEN, BLOCK, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint8_t *to;

	to = mremap(from, LEN, 2 * LEN, MREMAP_MAYMOVE);
	if (to == MAP_FAILED) { /* a part of it is adopted just now */
		if (stop != MAP_FAILED)
			munmap(stop, BLOCK);
		return from;
	}
	if (to[LEN] || to[2 * LEN - 1])
		proc_die("new memory is not zero");
	munmap(to + LEN, LEN);
	if (stop != MAP_FAILED)
		munmap(stop, BLOCK);
	s->p = to;
	s->turns++;
	return to;
}

static void *mover(void *arg)
{
	struct rng rng = { .state = 9 };
	struct scene *s = arg;
	uint8_t *p = s->p;

	for (uint64_t i = 1; !s->stop; i++) {
		peer_fill(p, LEN, i);
		proc_sleep_us(rng_below(&rng, 300));
		p = move(s, p);
		p = move(s, p);
		if (!peer_holds(p, LEN, i))
			proc_die("what was moved has other content in turn %u", s->turns);
	}
	return NULL;
}

static int moved(void *arg)
{
	void *(*const bodies[])(void *) = { mover };

	return go(arg, bodies, 1, SECOND);
}

/* ---- dropped late ---- */

static void *hog(void *arg)
{
	struct scene *s = arg;
	uint64_t end = proc_now();

	while (!s->stop) { /* most of the time, in pieces */
		end += 3000000;
		while (proc_now() < end && !s->stop)
			;
		proc_sleep_us(300);
		end = proc_now();
	}
	return NULL;
}

/* Woken when its call was read of, it comes to drop the pages much later. */
static void *dropper(void *arg)
{
	struct sched_param param = { 0 };
	struct scene *s = arg;
	size_t at;

	sched_setscheduler(0, SCHED_IDLE, &param);
	at = atomic_fetch_add(&s->first, BLOCK); /* each has its own pages */
	for (; !s->stop; at = (at + 3 * BLOCK) % (LEN - LEN % (3 * BLOCK))) {
		volatile uint64_t *word = (volatile uint64_t *)(s->p + at);

		*word = 0x1111;
		madvise(s->p + at, BLOCK, MADV_DONTNEED);
		if (*word)
			proc_die("turn %u: what was dropped is back", s->turns);
		s->turns++;
	}
	return NULL;
}

static int dropped(void *arg)
{
	void *(*const bodies[])(void *) = { dropper, dropper, dropper, hog };

	return go(arg, bodies, 4, SECOND);
}

/* ---- unmapped with other adopted memory behind it ---- */

static void *unmapper(void *arg)
{
	struct rng rng = { .state = 5 };
	struct scene *s = arg;
	uint8_t *p;

	while (!s->stop) {
		p = atomic_exchange(&s->p, NULL);
		if (!p)
			continue;
		proc_sleep_us(rng_below(&rng, 400));
		munmap(p, 2 * LEN);
		s->turns++;
	}
	return NULL;
}

/* One call unmaps what is on its way and what is adopted: the former is not read of before the chunk
 * is done, and the chunk must not wait for the latter. */
static int across(void *arg)
{
	unsigned rounds = proc_rounds(300, 100000), adopted = 0;
	struct scene *s = arg;
	pthread_t t;

	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	if (pthread_create(&t, NULL, unmapper, s))
		proc_die("no thread");
	for (unsigned i = 0; i < rounds; i++) {
		uint8_t *p = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			proc_die("mmap: %m");
		peer_fill(p, 2 * LEN, i);
		/* The one before it, at the same place, may not be forgotten yet. */
		for (unsigned k = 0; xtal_share(p + LEN, LEN); k++) {
			if (k == 1000)
				proc_die("share: %s", xtal_last_error());
			proc_sleep_us(1000);
		}
		s->p = p;
		adopted += !xtal_share(p, LEN);
		while (s->turns <= i)
			proc_sleep_us(10);
	}
	s->stop = true;
	pthread_join(t, NULL);
	fprintf(stderr, "adopted %u times in %u rounds\n", adopted, rounds);
	return 0;
}

/* ---- made read-only on its way ---- */

static void *protector(void *arg)
{
	struct rng rng = { .state = 6 };
	struct scene *s = arg;
	uint8_t *p;

	while (!s->stop) {
		p = atomic_exchange(&s->p, NULL);
		if (!p)
			continue;
		proc_sleep_us(rng_below(&rng, 400));
		mprotect(p, LEN / 2, PROT_READ);
		if (!peer_holds(p, LEN, s->turns))
			proc_die("turn %u: what was made read-only has other content", s->turns);
		s->turns++;
	}
	return NULL;
}

static int kept(void *arg)
{
	unsigned rounds = proc_rounds(600, 100000);
	struct scene *s = arg;
	pthread_t t;

	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	if (pthread_create(&t, NULL, protector, s))
		proc_die("no thread");
	for (unsigned i = 0; i < rounds; i++) {
		uint8_t *p = map(NULL, PROT_READ | PROT_WRITE, 0);
		bool back = i % 2;

		peer_fill(p, LEN, i);
		if (back && xtal_share(p, LEN))
			proc_die("share: %s", xtal_last_error());
		s->p = p;
		if (!back)
			xtal_share(p, LEN); /* refused when it is read-only already */
		xtal_unshare(p, LEN);
		while (s->turns <= i)
			proc_sleep_us(10);
		if (!peer_holds(p, LEN, i))
			proc_die("round %u: the content has changed", i);
		munmap(p, LEN);
	}
	s->stop = true;
	pthread_join(t, NULL);
	return 0;
}

static void run(int (*body)(void *))
{
	struct scene *s = proc_shared(sizeof(*s));
	char text[200];

	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	assert_int_equal(proc_run(body, s, proc_soak() ? 500000 : PATIENCE), 0);
}

static void moved_twice(void **state)
{
	(void)state;
	if (proc_sanitized("thread"))
		proc_skip(
			"ThreadSanitizer takes what mremap moved for what was mapped there before");
	run(moved);
}

static void dropped_late(void **state)
{
	(void)state;
	run(dropped);
}

static void unmapped_across(void **state)
{
	(void)state;
	run(across);
}

static void read_only_meanwhile(void **state)
{
	(void)state;
	run(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(moved_twice, proc_end_all),
		cmocka_unit_test_teardown(dropped_late, proc_end_all),
		cmocka_unit_test_teardown(unmapped_across, proc_end_all),
		cmocka_unit_test_teardown(read_only_meanwhile, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("an emulator has no userfaultfd");
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
