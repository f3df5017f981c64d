/* SPDX-License-Identifier: MIT */
/*
 * kill -9 of either side at random points of its traffic: what the survivors see, and what
 * remains. Every process here is a real one; the machine's own corners are private, so that
 * leftovers can be told exactly.
 */
/* ctest: timeout=300 label=soak */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define SEGMENT  ((size_t)2 << 20)
#define GUARD    ((size_t)4 << 10)
#define DEPTH    32u
#define BOUND_NS UINT64_C(100000000) /* from the death to the last completion */
#define PATIENCE 20000u              /* ms, for anything at all */

enum {
	UNREACHABLE = DMA_CR_ACK_TIMEOUT_ERR,
	REFUSED = DMA_CR_REM_ACCESS_ABORT_ERR
};

/* One round: a fresh owner (or initiator) that is killed. */
struct world {
	enum peer_path path;
	struct peer_export victim, bystander;
	_Atomic uint32_t victim_round, traffic_round, done_round; /* round numbers, from 1 */
	_Atomic uint32_t bystander_ready, quit;
	_Atomic uint64_t dead_at;  /* ns; 0: alive */
	struct proc_delays delays; /* of the survivor, at the death */
	uint64_t worst_ns, raw_ns;
	uint64_t operations;
};

static struct world *world_new(enum peer_path path)
{
	struct world *w = proc_shared(sizeof(*w));

	w->path = path;
	return w;
}

/* Posts one operation of a random kind and size. */
static dma_status post_any(struct dma_queue *q, const struct peer_export *e,
			   const struct dma_seg *local, struct rng *rng)
{
	static const uint32_t sizes[] = { 8, 64, 4096, 65536, 262144, 1048576 };
	uint32_t len = sizes[rng_below(rng, 6)], kind = (uint32_t)rng_below(rng, 8);
	struct dma_seg remote, mine;

	if (kind >= 6)
		len = 8;
	remote = peer_remote(e, rng_below(rng, (e->len - len) / 8 + 1) * 8, len);
	mine = peer_part(local, rng_below(rng, (local->len - len) / 8 + 1) * 8, len);
	switch (kind) {
	case 0:
	case 1:
	case 2:
		return dma_write(q, &remote, &mine);
	case 3:
	case 4:
		return dma_read(q, &remote, &mine);
	case 5: {
		struct dma_seg word = peer_remote(e, 0, 8);

		return dma_write_with_notify(q, &remote, &mine, &word, rng_next(rng));
	}
	case 6:
		return dma_faa(q, &remote, &mine, 1);
	default:
		return dma_cas(q, &remote, &mine, 0, 1);
	}
}

/* Accounts of a queue: each posted operation must come back once, in order. */
struct books {
	struct dma_queue *q;
	uint64_t posted, ended;
	bool failed;
};

static void post(struct books *b, const struct peer_export *e, const struct dma_seg *local,
		 struct rng *rng)
{
	b->q->cfg.user_ctx = b->posted;
	if (post_any(b->q, e, local, rng) != DMA_STATUS_OK)
		proc_die("post refused: %s", xtal_last_error());
	b->posted++;
}

static void collect(struct books *b)
{
	struct dma_cr cr[DEPTH];
	int n = dma_poll_queue(b->q, DEPTH, cr);

	if (n < 0)
		proc_die("poll answers %d", n);
	for (int i = 0; i < n; i++) {
		if (cr[i].user_ctx != b->ended)
			proc_die("completion %llu is for operation %llu",
				 (unsigned long long)b->ended, (unsigned long long)cr[i].user_ctx);
		b->ended++;
		if (cr[i].status && cr[i].status != DMA_CR_ACK_TIMEOUT_ERR)
			proc_die("status %d after a death", cr[i].status);
		if (!cr[i].status && b->failed)
			proc_die("operation %llu succeeded behind a failed one",
				 (unsigned long long)b->ended - 1);
		b->failed |= cr[i].status != 0;
	}
}

/* Writes a pattern to the bystander, reads it back, compares. */
static void check_bystander(struct dma_queue *q, const struct peer_export *e,
			    const struct dma_seg *local, uint64_t seed)
{
	uint8_t *memory = (uint8_t *)(uintptr_t)local->sva;
	size_t len = 16384;

	peer_fill(memory, len, seed);
	peer_expect(peer_write(q, peer_remote(e, 0, len), peer_part(local, 0, len)),
		    "a write to the bystander");
	memset(memory, 0, len);
	peer_expect(peer_read(q, peer_remote(e, 0, len), peer_part(local, 0, len)),
		    "a read from the bystander");
	if (!peer_holds(memory, len, seed))
		proc_die("the bystander's data is wrong");
}

/* What a busy machine took from us does not count. */
static void note_time(struct world *w, uint64_t took)
{
	uint64_t starved = proc_delayed_since(getpid(), &w->delays);

	w->raw_ns = took > w->raw_ns ? took : w->raw_ns;
	took = took > starved ? took - starved : 0;
	w->worst_ns = took > w->worst_ns ? took : w->worst_ns;
}

/* Streams to one owner after the other, each of which dies. */
static int survivor(void *arg)
{
	struct world *w = arg;
	struct rng rng = { .state = 7 };
	struct dma_queue *other;
	struct dma_seg *local;
	struct peer p;

	peer_only(w->path);
	peer_open(&p);
	local = peer_register(&p, peer_memory(w->path, SEGMENT), SEGMENT, NULL);
	other = peer_queue(&p, DEPTH);
	for (uint32_t round = 1; !atomic_load(&w->quit); round++) {
		struct books b = { .q = peer_queue(&p, DEPTH) };
		uint64_t took;

		while (atomic_load(&w->victim_round) < round && !atomic_load(&w->quit))
			proc_sleep_us(50);
		if (atomic_load(&w->quit))
			break;
		peer_expect(peer_write(b.q, peer_remote(&w->victim, 0, 8), peer_part(local, 0, 8)),
			    "the first write");
		atomic_store(&w->traffic_round, round);
		while (!b.failed) {
			if (b.posted - b.ended < DEPTH)
				post(&b, &w->victim, local, &rng);
			collect(&b);
		}
		while (b.ended < b.posted)
			collect(&b);
		for (int i = 0; i < 3; i++) /* a dead port answers at once, again and again */
			post(&b, &w->victim, local, &rng);
		while (b.ended < b.posted)
			collect(&b);
		took = proc_now();
		while (!atomic_load(&w->dead_at))
			proc_sleep_us(50);
		note_time(w, took > w->dead_at ? took - w->dead_at : 0);
		w->operations += b.posted;
		check_bystander(other, &w->bystander, local, round);
		dma_free_queue(b.q);
		atomic_store(&w->done_round, round);
	}
	return 0;
}

/* An owner that waits for its death. */
static int victim_owner(void *arg)
{
	struct world *w = arg;
	struct peer p;

	peer_owner_for(w->path);
	peer_open(&p);
	peer_register(&p, peer_memory(w->path, SEGMENT), SEGMENT, &w->victim);
	atomic_fetch_add(&w->victim_round, 1);
	proc_sleep_us(3600000000);
	return 1;
}

static int bystander(void *arg)
{
	struct world *w = arg;
	struct peer p;

	peer_owner_for(w->path);
	peer_open(&p);
	peer_register(&p, peer_memory(w->path, SEGMENT), SEGMENT, &w->bystander);
	atomic_store(&w->bystander_ready, 1);
	while (atomic_load(&w->bystander_ready) != 2) /* after those who use it */
		proc_sleep_us(500);
	return 0;
}

static void finish_world(struct world *w, pid_t a, pid_t b)
{
	atomic_store(&w->quit, 1);
	assert_int_equal(proc_join(a, PATIENCE), 0);
	atomic_store(&w->bystander_ready, 2);
	assert_int_equal(proc_join(b, PATIENCE), 0);
	munmap(w, sizeof(*w));
}

static void owners_die(enum peer_path path)
{
	unsigned rounds = proc_rounds(25, 400);
	struct world *w = world_new(path);
	struct rng rng = { .state = 11 + (uint64_t)path };
	pid_t other = proc_start(bystander, w), initiator;

	assert_true(proc_await(&w->bystander_ready, 1, PATIENCE));
	initiator = proc_start(survivor, w);
	for (uint32_t round = 1; round <= rounds; round++) {
		pid_t victim;

		atomic_store(&w->dead_at, 0);
		victim = proc_start(victim_owner, w);
		assert_true(proc_await(&w->traffic_round, round, PATIENCE));
		proc_sleep_us(rng_below(&rng, 8000));
		proc_delays_read(initiator, &w->delays);
		atomic_store(&w->dead_at, proc_kill(victim));
		assert_true(proc_await(&w->done_round, round, PATIENCE));
	}
	print_message("%u owners killed, %llu operations ended, the last %.1f ms after the death "
		      "(%.1f ms with what other programs took)\n",
		      rounds, (unsigned long long)w->operations, (double)w->worst_ns / 1e6,
		      (double)w->raw_ns / 1e6);
	assert_true(w->worst_ns < proc_slack(BOUND_NS));
	finish_world(w, initiator, other);
}

/* Keeps everything busy until it is killed. */
static int victim_initiator(void *arg)
{
	struct world *w = arg;
	struct rng rng = { .state = (uint64_t)getpid() };
	struct dma_seg *local;
	struct books b = { 0 };
	struct peer p;

	peer_only(w->path);
	peer_open(&p);
	local = peer_register(&p, peer_memory(w->path, SEGMENT), SEGMENT, NULL);
	b.q = peer_queue(&p, DEPTH);
	while (!atomic_load(&w->quit)) {
		if (b.posted - b.ended < DEPTH)
			post(&b, &w->victim, local, &rng);
		collect(&b);
		if (b.ended > 2)
			atomic_store(&w->traffic_round, atomic_load(&w->victim_round));
	}
	return 1;
}

/* Owner whose initiators die: its descriptors must not grow, its guards must hold, and it must
 * be able to take its memory back at any time. */
static int hardy_owner(void *arg)
{
	struct world *w = arg;
	size_t len = SEGMENT + 2 * GUARD;
	struct dma_seg *seg;
	uint8_t *memory;
	struct peer p;
	int fds = -1;

	peer_owner_for(w->path);
	peer_open(&p);
	memory = peer_memory(w->path, len);
	memset(memory, 0xc3, len);
	seg = peer_register(&p, memory + GUARD, SEGMENT, &w->victim);
	atomic_store(&w->bystander_ready, 1);
	for (uint32_t round = 1; !atomic_load(&w->quit); round++) {
		uint64_t began;

		if (!proc_await(&w->victim_round, round, PATIENCE))
			break;
		if (atomic_load(&w->quit))
			break;
		while (!atomic_load(&w->dead_at))
			proc_sleep_us(50);
		proc_delays_read(getpid(), &w->delays);
		began = proc_now();
		dma_unregister_seg(p.ctx, seg);
		note_time(w, proc_now() - began);
		for (size_t i = 0; i < GUARD; i++)
			if (memory[i] != 0xc3 || memory[GUARD + SEGMENT + i] != 0xc3)
				proc_die("bytes outside the segment changed");
		seg = peer_register(&p, memory + GUARD, SEGMENT, &w->victim);
		proc_sleep_us(3000); /* the agent notices and cleans up */
		if (round == 2)
			fds = proc_fd_count(getpid());
		if (round > 2 && proc_fd_count(getpid()) > fds + 8)
			proc_die("descriptors grow: %d, then %d", fds, proc_fd_count(getpid()));
		atomic_store(&w->done_round, round);
	}
	return 0;
}

/* A second initiator, whose traffic must not notice. */
static int other_initiator(void *arg)
{
	struct world *w = arg;
	uint64_t seed = 1000;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	peer_only(w->path);
	peer_open(&p);
	local = peer_register(&p, peer_memory(w->path, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, DEPTH);
	while (!atomic_load(&w->quit)) {
		check_bystander(q, &w->bystander, local, seed++);
		proc_sleep_us(500);
	}
	return 0;
}

/* The hardy owner has a context for the bystander's traffic in another process; both matter. */
static void initiators_die(enum peer_path path)
{
	unsigned rounds = proc_rounds(25, 400);
	struct world *w = world_new(path), *calm = world_new(path);
	struct rng rng = { .state = 13 + (uint64_t)path };
	pid_t owner = proc_start(hardy_owner, w), peaceful, other;

	assert_true(proc_await(&w->bystander_ready, 1, PATIENCE));
	peaceful = proc_start(bystander, calm);
	assert_true(proc_await(&calm->bystander_ready, 1, PATIENCE));
	other = proc_start(other_initiator, calm);
	for (uint32_t round = 1; round <= rounds; round++) {
		pid_t victim;

		atomic_store(&w->dead_at, 0);
		atomic_store(&w->traffic_round, 0);
		atomic_store(&w->victim_round, round);
		victim = proc_start(victim_initiator, w);
		assert_true(proc_await(&w->traffic_round, round, PATIENCE));
		proc_sleep_us(rng_below(&rng, 8000));
		atomic_store(&w->dead_at, proc_kill(victim));
		assert_true(proc_await(&w->done_round, round, PATIENCE));
	}
	print_message("%u initiators killed, unregister took %.1f ms at most\n", rounds,
		      (double)w->worst_ns / 1e6);
	assert_true(w->worst_ns < proc_slack(BOUND_NS));
	atomic_store(&calm->quit, 1);
	assert_int_equal(proc_join(other, PATIENCE), 0);
	atomic_store(&calm->bystander_ready, 2);
	assert_int_equal(proc_join(peaceful, PATIENCE), 0);
	atomic_store(&w->quit, 1);
	atomic_store(&w->victim_round, UINT32_MAX);
	atomic_store(&w->dead_at, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

static void an_owner_dies_over_map(void **state)
{
	(void)state;
	owners_die(PEER_MAP);
}

static void an_owner_dies_over_its_own_memfd(void **state)
{
	(void)state;
	owners_die(PEER_USER);
}

static void an_owner_dies_over_cma(void **state)
{
	(void)state;
	owners_die(PEER_CMA);
}

static void an_owner_dies_over_ring(void **state)
{
	(void)state;
	owners_die(PEER_RING);
}

static void an_owner_dies_over_tcp(void **state)
{
	(void)state;
	owners_die(PEER_TCP);
}

static void an_initiator_dies_over_map(void **state)
{
	(void)state;
	initiators_die(PEER_MAP);
}

static void an_initiator_dies_over_cma(void **state)
{
	(void)state;
	initiators_die(PEER_CMA);
}

static void an_initiator_dies_over_ring(void **state)
{
	(void)state;
	initiators_die(PEER_RING);
}

static void an_initiator_dies_over_tcp(void **state)
{
	(void)state;
	initiators_die(PEER_TCP);
}

static char before[65536];

/* After all of the above: nothing in /dev/shm, /tmp, or among the abstract names. */
static void nothing_is_left_behind(void **state)
{
	static char after[65536];

	(void)state;
	if (!before[0])
		proc_skip("no private /dev/shm, /tmp and network here: leftovers cannot be told");
	proc_leftovers(after, sizeof(after));
	assert_string_equal(after, before + 1);
}

static int setup(void **state)
{
	int err = proc_private();

	(void)state;
	if (err)
		print_message("no namespaces of our own: %s\n", strerror(-err));
	else
		proc_leftovers(before + 1, sizeof(before) - 1);
	before[0] = !err;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_owner_dies_over_map, proc_end_all),
		cmocka_unit_test_teardown(an_owner_dies_over_its_own_memfd, proc_end_all),
		cmocka_unit_test_teardown(an_owner_dies_over_cma, proc_end_all),
		cmocka_unit_test_teardown(an_owner_dies_over_ring, proc_end_all),
		cmocka_unit_test_teardown(an_owner_dies_over_tcp, proc_end_all),
		cmocka_unit_test_teardown(an_initiator_dies_over_map, proc_end_all),
		cmocka_unit_test_teardown(an_initiator_dies_over_cma, proc_end_all),
		cmocka_unit_test_teardown(an_initiator_dies_over_ring, proc_end_all),
		cmocka_unit_test_teardown(an_initiator_dies_over_tcp, proc_end_all),
		cmocka_unit_test(nothing_is_left_behind),
	};

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	return cmocka_run_group_tests(tests, setup, NULL);
}
