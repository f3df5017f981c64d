/* SPDX-License-Identifier: MIT */
/*
 * Segments that share an object of xtal_alloc with one whose pages are exchanged under a stopped
 * peer: whoever uses them meanwhile, over any path and on either side, sees nothing of it but a
 * pause. Also where userfaultfd serves user mode only, so that system calls into the range fail.
 */
/* ctest: timeout=240 label=soak */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define BAIT     ((size_t)1 << 20) /* the segment that is withdrawn */
#define SHARE    ((size_t)1 << 20) /* what each of the others uses */
#define LONGEST  ((size_t)512 << 10)
#define PATIENCE 30000u

/* Who uses the memory beside the bait. */
enum user {
	BY_RING,
	BY_MAP, /* in fragments */
	BY_CMA,
	ADDING, /* over map: each addition happens once */
	ITSELF, /* the owner, in fragments, between two parts of it */
	USERS
};

static const char *const names[USERS] = { "ring", "map", "cma", "map (adding)",
					  "the owner itself" };

struct scene {
	bool user_mode;
	struct peer_export bait, rest;
	uint8_t *owners; /* memory of its own in the object */
	_Atomic uint32_t generation, asked, done, quit, enough, end;
	_Atomic uint32_t busy, rounds[USERS];
	_Atomic uint32_t fenced;
};

struct helper {
	struct scene *s;
	enum user user;
};

/* Writes a part, reads it back, compares; each operation must end well. */
static void use(struct scene *s, struct peer *p, enum user user, uint8_t *memory)
{
	struct dma_seg *local = peer_register(p, memory, 2 * LONGEST, NULL);
	struct dma_queue *q = peer_queue(p, 4);
	struct rng rng = { .state = user + 1u };
	uint64_t seed = 1;

	while (!atomic_load(&s->enough)) {
		size_t len = rng_below(&rng, 2) ? 4096 : LONGEST;
		uint64_t at = user * SHARE + rng_below(&rng, (SHARE - len) / 8 + 1) * 8;

		peer_fill(memory, len, ++seed);
		memset(memory + LONGEST, 0, len);
		peer_expect(peer_write(q, peer_remote(&s->rest, at, len), peer_part(local, 0, len)),
			    "write");
		peer_expect(peer_read(q, peer_remote(&s->rest, at, len),
				      peer_part(local, LONGEST, len)),
			    "read");
		if (!peer_holds(memory + LONGEST, len, seed))
			proc_die("what was written over %s is not there", names[user]);
		atomic_fetch_add(&s->rounds[user], 1);
	}
	dma_free_queue(q);
	dma_unregister_seg(p->ctx, local);
}

/* Nobody else adds. */
static void add(struct scene *s, struct peer *p, uint64_t *old)
{
	struct dma_seg *local = peer_register(p, old, 8, NULL);
	struct dma_seg word = peer_remote(&s->rest, ADDING * SHARE, 8);
	struct dma_queue *q = peer_queue(p, 4);

	for (uint64_t n = 0; !atomic_load(&s->enough); n++) {
		peer_expect(peer_faa(q, word, *local, 1), "addition");
		if (*old != n)
			proc_die("addition %llu found %llu", (unsigned long long)n,
				 (unsigned long long)*old);
		atomic_store(&s->rounds[ADDING], (uint32_t)n);
	}
	dma_free_queue(q);
	dma_unregister_seg(p->ctx, local);
}

static int user_run(void *arg)
{
	struct helper *h = arg;
	struct peer p;

	setenv("XTAL_INLINE_BYTES", "64k", 1);
	setenv("XTAL_FRAGMENT_BYTES", "64k", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(h->user == BY_RING ? PEER_RING : h->user == BY_CMA ? PEER_CMA : PEER_MAP);
	peer_open(&p);
	if (h->user == ADDING)
		add(h->s, &p, peer_memory(PEER_CMA, 4096));
	else
		use(h->s, &p, h->user, peer_memory(PEER_CMA, 2 * LONGEST));
	peer_close(&p);
	return 0;
}

/* Copies into the bait at all times, to be stopped in the middle of it. */
static int bait_run(void *arg)
{
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	setenv("XTAL_INLINE_BYTES", "1m", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(PEER_MAP);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_MAP, BAIT), BAIT, NULL);
	q = peer_queue(&p, 4);
	while (!atomic_load(&s->quit)) {
		uint32_t generation = atomic_load(&s->generation);
		struct peer_export e = s->bait;
		int status;

		if (generation % 2 || atomic_load(&s->generation) != generation)
			continue; /* being written */
		status = peer_write(q, peer_remote(&e, 0, BAIT), *local);
		if (status && status != DMA_CR_REM_ACCESS_ABORT_ERR)
			proc_die("status %d", status);
		if (status)
			proc_sleep_us(100);
		atomic_fetch_add(&s->busy, 1);
	}
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void *owners_own(void *arg)
{
	struct scene *s = arg;
	struct peer p;

	peer_open(&p);
	use(s, &p, ITSELF, s->owners);
	peer_close(&p);
	return NULL;
}

static int owner(void *arg)
{
	struct scene *s = arg;
	struct xtal_counters counters;
	struct dma_seg *bait, *rest;
	pthread_t thread;
	uint8_t *memory;
	struct peer p;

	setenv("XTAL_REVOKE_MS", "3", 1);
	setenv("XTAL_INLINE_BYTES", "64k", 1);
	setenv("XTAL_FRAGMENT_BYTES", "64k", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	if (s->user_mode && !child_deny(SYS_userfaultfd, EPERM, 0, O_CLOEXEC | O_NONBLOCK))
		return 77;
	peer_open(&p);
	memory = peer_memory(PEER_MAP, BAIT + USERS * SHARE + 2 * LONGEST);
	rest = peer_register(&p, memory + BAIT, USERS * SHARE, &s->rest);
	bait = peer_register(&p, memory, BAIT, &s->bait);
	s->owners = memory + BAIT + USERS * SHARE;
	atomic_store(&s->generation, 2);
	if (pthread_create(&thread, NULL, owners_own, s))
		proc_die("no thread");
	for (uint32_t round = 1;; round++) {
		struct peer_export e;

		while (atomic_load(&s->asked) < round && !atomic_load(&s->end))
			proc_sleep_us(50);
		if (atomic_load(&s->end))
			break;
		dma_unregister_seg(p.ctx, bait);
		bait = peer_register(&p, memory, BAIT, &e);
		atomic_fetch_add(&s->generation, 1);
		s->bait = e;
		atomic_fetch_add(&s->generation, 1);
		xtal_counters_read(&counters, sizeof(counters));
		atomic_store(&s->fenced, (uint32_t)counters.fenced);
		atomic_store(&s->done, round);
	}
	pthread_join(thread, NULL);
	dma_unregister_seg(p.ctx, bait);
	dma_unregister_seg(p.ctx, rest);
	peer_close(&p);
	return 0;
}

static void exchange(bool user_mode)
{
	struct scene *s = proc_shared(sizeof(*s));
	struct helper *h = proc_shared(sizeof(*h) * USERS);
	uint32_t round, rounds = proc_rounds(150, 20000);
	struct rng rng = { .state = 12 };
	pid_t own, bait, users[ITSELF];
	int status;

	s->user_mode = user_mode;
	own = proc_start(owner, s);
	if (!proc_await(&s->generation, 2, PATIENCE)) {
		status = proc_join(own, 1000);
		if (status == 77 << 8)
			proc_skip("seccomp filters are not allowed");
		assert_int_equal(status, 0);
	}
	bait = proc_start(bait_run, s);
	for (unsigned i = 0; i < ITSELF; i++) {
		h[i] = (struct helper){ .s = s, .user = (enum user)i };
		users[i] = proc_start(user_run, &h[i]);
	}
	for (unsigned i = 0; i < USERS; i++)
		assert_true(proc_await(&s->rounds[i], 1, PATIENCE));
	for (round = 1; round <= rounds; round++) {
		assert_true(proc_await(&s->busy, atomic_load(&s->busy) + 1, PATIENCE));
		proc_sleep_us(rng_below(&rng, 500));
		proc_stop(bait);
		atomic_store(&s->asked, round);
		assert_true(proc_await(&s->done, round, PATIENCE));
		proc_continue(bait);
	}
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(bait, PATIENCE), 0);
	atomic_store(&s->enough, 1);
	for (unsigned i = 0; i < ITSELF; i++)
		assert_int_equal(proc_join(users[i], PATIENCE), 0);
	atomic_store(&s->end, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
	print_message(
		"%u withdrawals, pages exchanged %u times; rounds meanwhile: ring %u, map %u, "
		"cma %u, additions %u, itself %u\n",
		rounds, s->fenced, s->rounds[BY_RING], s->rounds[BY_MAP], s->rounds[BY_CMA],
		s->rounds[ADDING], s->rounds[ITSELF]);
}

static void with_kernel_faults(void **state)
{
	(void)state;
	exchange(false);
}

static void with_user_faults_only(void **state)
{
	(void)state;
	exchange(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(with_kernel_faults, proc_end_all),
		cmocka_unit_test_teardown(with_user_faults_only, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("stopping an emulator stops it between its own instructions");
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
