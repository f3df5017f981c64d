/* SPDX-License-Identifier: MIT */
/*
 * Programs that unmap, move, discard, protect or truncate what they registered, while traffic
 * runs: an error or the new content for whoever asks, never a crash on either side. A process
 * that unmaps its own local memory while the library reads it by plain loads (paths self and
 * map) crashes by its own hand, as with memcpy: not tested. Nor are atomics by message on what the
 * owner takes away in that very moment (doc/rationale.md); on what is gone, system/cdma_misuse does.
 */
/* ctest: timeout=240 label=soak */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define SEGMENT  ((size_t)1 << 20)
#define PATIENCE 30000u

enum trick {
	UNMAP,
	MOVE,
	DISCARD,
	READ_ONLY,
	NO_ACCESS,
	TRUNCATE,
	TRICKS
};

static const char *const trick_names[TRICKS] = { "munmap",           "mremap",
						 "madvise DONTNEED", "mprotect READ",
						 "mprotect NONE",    "ftruncate" };

struct scene {
	enum peer_path path;
	enum trick trick;
	bool at_owner;
	struct peer_export export;
	_Atomic uint32_t ready, quit, calm, calmed;
	uint32_t statuses;
	uint64_t good, bad;
};

#define LEFT_ALONE (SEGMENT / 4 * 3) /* what lies behind it */

/* Additions may go to what the trick is played on: it does not take the memory from the owner's agent, or
 * nobody but the kernel would notice. */
static bool bears_atomics(const struct scene *s)
{
	return !s->at_owner || s->path < PEER_CMA || s->trick == DISCARD || s->trick == TRUNCATE;
}

/* Plays the trick on a part of the range, and undoes it. */
static void play(enum trick trick, uint8_t *base, int fd, struct rng *rng)
{
	size_t at = rng_below(rng, SEGMENT / 2) & ~(size_t)4095, len = SEGMENT / 4;
	int shared = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *p = base + at, *away;

	switch (trick) {
	case UNMAP: /* without a hole: another thread's mmap would take it */
		if (mmap(p, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p)
			proc_die("mmap: %m");
		break;
	case MOVE:
		away = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		away = mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, away);
		if (away == MAP_FAILED)
			return;
		mprotect(p, len, PROT_NONE);
		munmap(away, len);
		break;
	case DISCARD:
		madvise(p, len, MADV_DONTNEED);
		return;
	case READ_ONLY:
		mprotect(p, len, PROT_READ);
		break;
	case NO_ACCESS:
		mprotect(p, len, PROT_NONE);
		break;
	case TRUNCATE:
		if (fd < 0 || ftruncate(fd, (off_t)at))
			return;
		proc_sleep_us(300);
		if (ftruncate(fd, (off_t)SEGMENT))
			proc_die("ftruncate: %m");
		return;
	case TRICKS:
		return;
	}
	proc_sleep_us(300);
	if (trick == UNMAP || trick == MOVE) {
		if (mmap(p, len, PROT_READ | PROT_WRITE, shared | MAP_FIXED, fd,
			 fd >= 0 ? (off_t)at : 0) != p)
			proc_die("mmap: %m");
	} else {
		mprotect(p, len, PROT_READ | PROT_WRITE);
	}
}

/* The user's object, so that it can be truncated: its own memfd, or private memory. */
static uint8_t *make(enum peer_path path, int *fd)
{
	uint8_t *p;

	*fd = -1;
	if (path == PEER_MAP)
		return peer_memory(path, SEGMENT);
	if (path == PEER_USER) {
		*fd = memfd_create("users", MFD_CLOEXEC);
		if (*fd < 0 || ftruncate(*fd, (off_t)SEGMENT))
			proc_die("memfd: %m");
	}
	p = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE,
		 *fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, *fd, 0);
	if (p == MAP_FAILED)
		proc_die("mmap: %m");
	return p;
}

static int owner(void *arg)
{
	struct scene *s = arg;
	struct rng rng = { .state = 3 };
	struct dma_seg *seg;
	struct peer p;
	uint8_t *memory;
	int fd;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_owner_for(s->path);
	peer_open(&p);
	memory = make(s->path, &fd);
	seg = peer_register(&p, memory, SEGMENT, &s->export);
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->quit)) {
		if (s->at_owner && !atomic_load(&s->calm))
			play(s->trick, memory, fd, &rng);
		else
			atomic_store(&s->calmed, 1);
		proc_sleep_us(200);
	}
	/* All is whole again: it must work once more, and let go. */
	dma_unregister_seg(p.ctx, seg);
	peer_close(&p);
	return 0;
}

struct player {
	struct scene *s;
	uint8_t *memory;
	_Atomic uint32_t stop;
};

static void *player(void *arg)
{
	struct player *pl = arg;
	struct rng rng = { .state = 5 };

	while (!atomic_load(&pl->stop)) {
		play(pl->s->trick, pl->memory, -1, &rng);
		proc_sleep_us(200);
	}
	return NULL;
}

/* When all is whole again, all works again. */
static void after_all(struct scene *s, struct dma_queue *q, const struct dma_seg *local)
{
	uint8_t *memory = (uint8_t *)(uintptr_t)local->sva;

	atomic_store(&s->calm, 1);
	if (s->at_owner && !proc_await(&s->calmed, 1, PATIENCE))
		proc_die("the owner does not calm down");
	peer_fill(memory, SEGMENT, 99);
	peer_expect(peer_write(q, peer_remote(&s->export, 0, SEGMENT), *local), "the last write");
	memset(memory, 0, SEGMENT);
	peer_expect(peer_read(q, peer_remote(&s->export, 0, SEGMENT), *local), "the last read");
	if (!peer_holds(memory, SEGMENT, 99))
		proc_die("the last read brought something else");
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	unsigned operations = proc_rounds(250, 20000);
	struct rng rng = { .state = 4 };
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;
	struct player pl = { .s = s };
	pthread_t thread;
	uint8_t *memory;
	int fd;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->path);
	peer_open(&p);
	memory = make(PEER_CMA, &fd);
	local = peer_register(&p, memory, SEGMENT, NULL);
	q = peer_queue(&p, 8);
	pl.memory = memory;
	if (!s->at_owner && pthread_create(&thread, NULL, player, &pl))
		proc_die("no thread");
	for (unsigned i = 0; i < operations; i++) {
		uint64_t len = rng_below(&rng, 4) ? 4096 : SEGMENT / 2;
		uint64_t at = rng_below(&rng, SEGMENT - len) & ~UINT64_C(7);
		struct dma_seg remote = peer_remote(&s->export, at, len);
		struct dma_seg mine = peer_part(local, at, len);
		int status;

		if (rng_below(&rng, 16) == 0) {
			at = bears_atomics(s) ? at : LEFT_ALONE + at / 4 / 8 * 8;
			status = peer_faa(q, peer_remote(&s->export, at, 8),
					  peer_part(local, at, 8), 1);
		} else if (rng_below(&rng, 2))
			status = peer_write(q, remote, mine);
		else
			status = peer_read(q, remote, mine);
		s->statuses |= 1u << status;
		if (status)
			s->bad++;
		else
			s->good++;
	}
	if (!s->at_owner) {
		atomic_store(&pl.stop, 1);
		pthread_join(thread, NULL);
	}
	after_all(s, q, local);
	return 0;
}

static void tricks(enum peer_path path, bool at_owner)
{
	unsigned allowed = 1u << 0 | (at_owner ? 1u << 8 : 1u << 4);

	/* The kernel does not say which side was missing, and when we look it is back. */
	if (!at_owner && path == PEER_CMA)
		allowed |= 1u << 8;
	for (unsigned trick = 0; trick < TRICKS; trick++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t own;

		s->path = path;
		s->trick = (enum trick)trick;
		s->at_owner = at_owner;
		own = proc_start(owner, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		if (proc_run(initiator, s, PATIENCE)) {
			print_error("%s: the initiator failed\n", trick_names[trick]);
			fail();
		}
		atomic_store(&s->quit, 1);
		if (proc_join(own, PATIENCE)) {
			print_error("%s: the owner failed\n", trick_names[trick]);
			fail();
		}
		if (s->statuses & ~allowed) {
			print_error("%s: statuses 0x%x\n", trick_names[trick], s->statuses);
			fail();
		}
		print_message("%-18s %llu good, %llu with an error\n", trick_names[trick],
			      (unsigned long long)s->good, (unsigned long long)s->bad);
		assert_true(s->good > 0);
		munmap(s, sizeof(*s));
	}
}

static void at_the_owner_over_map(void **state)
{
	(void)state;
	tricks(PEER_MAP, true);
}

static void at_the_owner_over_its_own_memfd(void **state)
{
	(void)state;
	tricks(PEER_USER, true);
}

static void at_the_owner_over_cma(void **state)
{
	(void)state;
	tricks(PEER_CMA, true);
}

static void at_the_owner_over_ring(void **state)
{
	(void)state;
	tricks(PEER_RING, true);
}

static void at_the_owner_over_tcp(void **state)
{
	(void)state;
	tricks(PEER_TCP, true);
}

static void at_the_initiator_over_cma(void **state)
{
	(void)state;
	tricks(PEER_CMA, false);
}

static void at_the_initiator_over_ring(void **state)
{
	(void)state;
	tricks(PEER_RING, false);
}

static void at_the_initiator_over_tcp(void **state)
{
	(void)state;
	tricks(PEER_TCP, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(at_the_owner_over_map, proc_end_all),
		cmocka_unit_test_teardown(at_the_owner_over_its_own_memfd, proc_end_all),
		cmocka_unit_test_teardown(at_the_owner_over_cma, proc_end_all),
		cmocka_unit_test_teardown(at_the_owner_over_ring, proc_end_all),
		cmocka_unit_test_teardown(at_the_owner_over_tcp, proc_end_all),
		cmocka_unit_test_teardown(at_the_initiator_over_cma, proc_end_all),
		cmocka_unit_test_teardown(at_the_initiator_over_ring, proc_end_all),
		cmocka_unit_test_teardown(at_the_initiator_over_tcp, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
