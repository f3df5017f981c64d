/* SPDX-License-Identifier: MIT */
/*
 * Unregister races: peers are stopped at any instruction of a copy, the owner takes its memory
 * back, and from then on no byte of it may change, also when the peers go on. The soak form
 * runs for an hour.
 */
/* ctest: timeout=300 label=soak */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define SEGMENT  ((size_t)1 << 20)
#define PEERS    2u
#define THREADS  2u
#define PATIENCE 20000u /* ms, for anything at all */
#define SOAK_S   3600u  /* for all paths together */

enum {
	FILL = 0xa5
};

/* Who does what in a round: parent stops peers, asks; owner unregisters and fills; parent lets
 * the peers go on and asks again; owner compares and registers anew. */
struct world {
	enum peer_path path;
	bool adopted; /* private memory that is adopted while it is registered */
	struct peer_export export;
	_Atomic uint32_t generation; /* of the export, from 1 */
	_Atomic uint32_t asked, filled, compare, compared, quit, end;
	_Atomic uint32_t busy[PEERS];
	uint64_t worst_ns, fenced;
	char log[64];
};

struct worker {
	struct world *w;
	struct peer *p;
	unsigned number;
	int result;
};

static void one_of_many(struct dma_queue *q, const struct peer_export *e,
			const struct dma_seg *local, struct rng *rng)
{
	static const uint32_t sizes[] = { 8, 512, 16384, 131072, 131072, 524288 };
	uint32_t len = sizes[rng_below(rng, 6)];
	struct dma_seg remote = peer_remote(e, rng_below(rng, (e->len - len) / 8 + 1) * 8, len);
	struct dma_seg mine = peer_part(local, 0, len);
	int status;

	if (rng_below(rng, 16) == 0)
		status = peer_faa(q, peer_remote(e, 64, 8), peer_part(local, SEGMENT - 8, 8), 1);
	else
		status = peer_write(q, remote, mine);
	if (status && status != DMA_CR_REM_ACCESS_ABORT_ERR)
		proc_die("status %d (%s)", status, xtal_status_name(status));
	if (status)
		proc_sleep_us(100); /* withdrawn: the owner needs the processor */
}

static void *writer(void *arg)
{
	struct worker *me = arg;
	struct world *w = me->w;
	struct rng rng = { .state = me->number + 1 };
	struct dma_queue *q = peer_queue(me->p, 8);
	void *memory = peer_memory(PEER_MAP, SEGMENT);
	struct dma_seg *local = peer_register(me->p, memory, SEGMENT, NULL);

	memset(memory, 0x11 * (int)(me->number + 1), SEGMENT);
	while (!atomic_load(&w->quit)) {
		uint32_t generation = atomic_load(&w->generation);
		struct peer_export e = w->export;

		if (atomic_load(&w->generation) != generation || generation % 2)
			continue; /* being written */
		one_of_many(q, &e, local, &rng);
		atomic_fetch_add(&w->busy[me->number / THREADS], 1);
	}
	dma_free_queue(q);
	dma_unregister_seg(me->p->ctx, local);
	return NULL;
}

static int peer_run(struct world *w, unsigned number)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct peer p;

	if (!w->adopted)
		peer_only(w->path);
	setenv("XTAL_INLINE_BYTES", number ? "1m" : "128k", 1); /* one copy, or fragments */
	peer_open(&p);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .w = w, .p = &p, .number = number * THREADS + i };
		if (pthread_create(&threads[i], NULL, writer, &workers[i]))
			proc_die("no thread");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	peer_close(&p);
	return 0;
}

static int first_peer(void *arg)
{
	return peer_run(arg, 0);
}

static int second_peer(void *arg)
{
	return peer_run(arg, 1);
}

static void publish(struct world *w, struct peer *p, uint8_t *memory, struct dma_seg **seg)
{
	struct peer_export e;

	*seg = peer_register(p, memory, SEGMENT, &e);
	if (w->adopted && xtal_share(memory, SEGMENT))
		proc_die("adoption: %s", xtal_last_error());
	atomic_fetch_add(&w->generation, 1);
	w->export = e;
	atomic_fetch_add(&w->generation, 1);
}

static int owner(void *arg)
{
	struct world *w = arg;
	struct xtal_counters counters;
	struct dma_seg *seg;
	uint8_t *memory, *filled = malloc(SEGMENT);
	struct peer p;

	setenv("XTAL_REVOKE_MS", "3", 1);
	setenv("XTAL_LOG", w->log, 1);
	if (w->adopted)
		setenv("XTAL_ADOPT", "auto", 1);
	peer_owner_for(w->path);
	peer_open(&p);
	memory = peer_memory(w->path, SEGMENT);
	memset(filled, FILL, SEGMENT);
	publish(w, &p, memory, &seg);
	for (uint32_t round = 1;; round++) {
		uint64_t began;

		while (atomic_load(&w->asked) < round && !atomic_load(&w->end))
			proc_sleep_us(50);
		if (atomic_load(&w->end))
			break;
		began = proc_now();
		dma_unregister_seg(p.ctx, seg);
		began = proc_now() - began;
		w->worst_ns = began > w->worst_ns ? began : w->worst_ns;
		memset(memory, FILL, SEGMENT);
		atomic_store(&w->filled, round);
		while (atomic_load(&w->compare) < round)
			proc_sleep_us(50);
		for (size_t i = 0; i < SEGMENT; i++)
			if (memory[i] != FILL)
				proc_die("round %u: byte %zu became 0x%02x after unregister", round,
					 i, memory[i]);
		publish(w, &p, memory, &seg);
		xtal_counters_read(&counters, sizeof(counters));
		w->fenced = counters.fenced;
		atomic_store(&w->compared, round);
	}
	free(filled);
	return 0;
}

/* Both peers have moved something since. */
static void await_traffic(struct world *w)
{
	for (unsigned i = 0; i < PEERS; i++)
		assert_true(proc_await(&w->busy[i], atomic_load(&w->busy[i]) + 1, PATIENCE));
}

/* True: the owner was waiting for the stopped peers until they went on. */
static bool one_round(struct world *w, uint32_t round, pid_t peers[PEERS], struct rng *rng)
{
	bool stop[PEERS] = { true, rng_below(rng, 2) == 0 }, waited;

	await_traffic(w);
	proc_sleep_us(rng_below(rng, 2000));
	for (unsigned i = 0; i < PEERS; i++)
		if (stop[i])
			proc_stop(peers[i]);
	atomic_store(&w->asked, round);
	waited = !proc_await(&w->filled, round, w->path == PEER_USER ? 30 : PATIENCE);
	for (unsigned i = 0; i < PEERS; i++)
		if (stop[i])
			proc_continue(peers[i]);
	assert_true(proc_await(&w->filled, round, PATIENCE));
	await_traffic(w);
	proc_sleep_us(rng_below(rng, 500));
	atomic_store(&w->compare, round);
	assert_true(proc_await(&w->compared, round, PATIENCE));
	return waited;
}

static void race_over(enum peer_path path, bool adopted)
{
	struct world *w = proc_shared(sizeof(*w));
	struct rng rng = { .state = (uint64_t)path + 41 };
	uint64_t end = proc_now() + (uint64_t)SOAK_S / PEER_PATHS * 1000000000u;
	unsigned rounds = proc_rounds(adopted ? 50 : 300, UINT32_MAX), waits = 0;
	pid_t own, peers[PEERS];
	uint32_t round;
	char text[40];

	w->path = path;
	w->adopted = adopted;
	snprintf(w->log, sizeof(w->log), "revoke-%d.log", (int)getpid());
	own = proc_start(owner, w);
	assert_true(proc_await(&w->generation, 2, PATIENCE));
	peers[0] = proc_start(first_peer, w);
	peers[1] = proc_start(second_peer, w);
	for (round = 1; round <= rounds && (!proc_soak() || proc_now() < end); round++)
		waits += one_round(w, round, peers, &rng);
	atomic_store(&w->quit, 1);
	assert_int_equal(proc_join(peers[0], PATIENCE), 0);
	assert_int_equal(proc_join(peers[1], PATIENCE), 0);
	atomic_store(&w->end, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
	print_message(
		"%u rounds: %llu times a stopped peer was cut off, %u times unregister waited "
		"for it; unregister took %.1f ms at most\n",
		round - 1, (unsigned long long)w->fenced, waits, (double)w->worst_ns / 1e6);
	if (path != PEER_USER) /* nobody can hold up the owner */
		assert_true(w->worst_ns < proc_slack(UINT64_C(2000000000)));
	if (path == PEER_USER && waits) { /* the log must name who is waited for */
		snprintf(text, sizeof(text), "process %d", (int)peers[0]);
		if (!proc_file_has(w->log, text)) {
			snprintf(text, sizeof(text), "process %d", (int)peers[1]);
			assert_true(proc_file_has(w->log, text));
		}
	}
	unlink(w->log);
	munmap(w, sizeof(*w));
}

static void race(enum peer_path path)
{
	race_over(path, false);
}

static void memory_of_xtal_alloc(void **state)
{
	(void)state;
	race(PEER_MAP);
}

static void the_users_own_memfd(void **state)
{
	(void)state;
	race(PEER_USER);
}

static void private_memory_over_cma(void **state)
{
	(void)state;
	race(PEER_CMA);
}

/* Peers have it mapped; the fence makes it private again under the feet of the stopped one. */
static void private_memory_that_is_adopted(void **state)
{
	char text[200];

	(void)state;
	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	race_over(PEER_CMA, true);
}

static void private_memory_over_ring(void **state)
{
	(void)state;
	race(PEER_RING);
}

static void private_memory_over_tcp(void **state)
{
	(void)state;
	race(PEER_TCP);
}

/* Unregister of the user's own mapping blocks while a peer is stopped in a copy; then it dies. */
static void the_users_own_memfd_until_the_peer_dies(void **state)
{
	struct world *w = proc_shared(sizeof(*w));
	struct rng rng = { .state = 77 };
	unsigned rounds = proc_rounds(10, 200), waits = 0;
	pid_t own;

	(void)state;
	w->path = PEER_USER;
	snprintf(w->log, sizeof(w->log), "revoke-%d.log", (int)getpid());
	own = proc_start(owner, w);
	assert_true(proc_await(&w->generation, 2, PATIENCE));
	for (uint32_t round = 1; round <= rounds; round++) {
		pid_t peer = proc_start(first_peer, w);

		assert_true(proc_await(&w->busy[0], atomic_load(&w->busy[0]) + 1, PATIENCE));
		proc_sleep_us(rng_below(&rng, 2000));
		proc_stop(peer);
		atomic_store(&w->asked, round);
		if (!proc_await(&w->filled, round, 30))
			waits++;
		proc_kill(peer);
		assert_true(proc_await(&w->filled, round, PATIENCE));
		atomic_store(&w->compare, round);
		assert_true(proc_await(&w->compared, round, PATIENCE));
	}
	atomic_store(&w->end, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
	print_message("%u peers killed, %u of them while unregister waited\n", rounds, waits);
	unlink(w->log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(memory_of_xtal_alloc, proc_end_all),
		cmocka_unit_test_teardown(the_users_own_memfd, proc_end_all),
		cmocka_unit_test_teardown(the_users_own_memfd_until_the_peer_dies, proc_end_all),
		cmocka_unit_test_teardown(private_memory_over_cma, proc_end_all),
		cmocka_unit_test_teardown(private_memory_that_is_adopted, proc_end_all),
		cmocka_unit_test_teardown(private_memory_over_ring, proc_end_all),
		cmocka_unit_test_teardown(private_memory_over_tcp, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("stopping an emulator stops it between its own instructions");
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
