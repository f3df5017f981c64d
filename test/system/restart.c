/* SPDX-License-Identifier: MIT */
/*
 * Owners that come and go: restarts under the same address, descriptors of former lives, many
 * short connections, owners that are not there yet. What was taken is given back.
 */
/* ctest: timeout=240 label=soak */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/hostile.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)64 << 10)
#define PATIENCE 60000u

struct scene {
	struct peer_export export;
	_Atomic uint32_t life, done, quit;
	int fds_after_10, fds_at_end;
	enum peer_path path;
};

static int short_lived(void *arg)
{
	struct scene *s = arg;
	struct peer p;

	peer_owner_for(s->path);
	peer_open(&p);
	peer_register(&p, peer_memory(s->path, SEGMENT), SEGMENT, &s->export);
	atomic_fetch_add(&s->life, 1);
	for (;;)
		pause();
	return 0;
}

/* F89, F94: reaches each new life; the descriptors of all former ones give 8 or 9, soon. */
static int follower(void *arg)
{
	struct scene *s = arg;
	struct peer_export former[256];
	struct dma_queue *q;
	struct dma_seg *local;
	uint8_t *memory;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->path);
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	q = peer_queue(&p, 8);
	for (uint32_t life = 1;; life++) {
		uint64_t began;

		while (atomic_load(&s->life) < life && !atomic_load(&s->quit))
			proc_sleep_us(50);
		if (atomic_load(&s->quit))
			break;
		former[life % 256] = s->export;
		peer_fill(memory, SEGMENT, life);
		peer_expect(peer_write(q, peer_remote(&s->export, 0, SEGMENT), *local), "write");
		memset(memory, 0, SEGMENT);
		peer_expect(peer_read(q, peer_remote(&s->export, 0, SEGMENT), *local), "read");
		if (!peer_holds(memory, SEGMENT, life))
			proc_die("life %u: wrong data", life);
		began = proc_now();
		for (uint32_t old = life > 20 ? life - 20 : 1; old < life; old++) {
			struct peer_export *e = &former[old % 256];
			int status = peer_write(q, peer_remote(e, 0, 8), peer_part(local, 0, 8));

			if (status != DMA_CR_REM_ACCESS_ABORT_ERR &&
			    status != DMA_CR_ACK_TIMEOUT_ERR)
				proc_die("a descriptor of life %u in life %u: status %d", old, life,
					 status);
		}
		if (proc_now() - began > proc_slack(4000000000))
			proc_die("former lives take too long to refuse");
		if (life == 10)
			s->fds_after_10 = proc_fd_count(getpid());
		s->fds_at_end = proc_fd_count(getpid());
		atomic_store(&s->done, life);
	}
	return 0;
}

static void restarts(enum peer_path path)
{
	unsigned lives = proc_rounds(100, 2000);
	struct scene *s = proc_shared(sizeof(*s));
	pid_t other;

	s->path = path;
	other = proc_start(follower, s);
	for (uint32_t life = 1; life <= lives; life++) {
		pid_t owner = proc_start(short_lived, s);

		assert_true(proc_await(&s->done, life, PATIENCE));
		proc_kill(owner);
	}
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(other, PATIENCE), 0);
	if (lives > 10)
		assert_true(s->fds_at_end <= s->fds_after_10 + 8);
}

static void an_owner_restarts_over_map(void **state)
{
	(void)state;
	restarts(PEER_MAP);
}

static void an_owner_restarts_over_cma(void **state)
{
	(void)state;
	restarts(PEER_CMA);
}

static void an_owner_restarts_over_ring(void **state)
{
	(void)state;
	restarts(PEER_RING);
}

static void an_owner_restarts_over_tcp(void **state)
{
	(void)state;
	restarts(PEER_TCP);
}

/* The port is taken by somebody who is another incarnation: status 8, by words. */
static int stale(void *arg)
{
	struct scene *s = arg;
	struct peer_export e = s->export;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	for (uint32_t bits = 1; bits <= 15; bits++) {
		int status;

		e.tid = bits << 16 | (s->export.tid & 0xffff);
		status = peer_write(q, peer_remote(&e, 0, 8), peer_part(local, 0, 8));
		if (status != (e.tid == s->export.tid ? 0 : DMA_CR_REM_ACCESS_ABORT_ERR))
			proc_die("tid 0x%x: status %d", e.tid, status);
	}
	return 0;
}

static void another_incarnation_holds_the_port(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner = proc_start(short_lived, s);

	(void)state;
	assert_true(proc_await(&s->life, 1, PATIENCE));
	assert_int_equal(proc_run(stale, s, PATIENCE), 0);
	proc_kill(owner);
}

/* F110: opens everything, writes, closes everything; also from the owner's view. */
static int visitor(void *arg)
{
	struct scene *s = arg;
	unsigned visits = proc_rounds(1000, 10000);
	uint8_t *memory;

	peer_only(s->path);
	memory = peer_memory(PEER_CMA, SEGMENT);
	for (unsigned i = 1; i <= visits; i++) {
		struct dma_queue *q;
		struct dma_seg *local;
		struct peer p;

		peer_open(&p);
		local = peer_register(&p, memory, SEGMENT, NULL);
		q = peer_queue(&p, 4);
		peer_expect(
			peer_write(q, peer_remote(&s->export, 0, 4096), peer_part(local, 0, 4096)),
			"write");
		dma_free_queue(q);
		dma_unregister_seg(p.ctx, local);
		peer_close(&p);
		if (i == 10)
			s->fds_after_10 = proc_fd_count(getpid());
	}
	s->fds_at_end = proc_fd_count(getpid());
	return 0;
}

static void many_connections_leave_no_descriptors(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	int before, after = 0;
	pid_t owner;

	(void)state;
	s->path = PEER_MAP;
	owner = proc_start(short_lived, s);
	assert_true(proc_await(&s->life, 1, PATIENCE));
	before = proc_fd_count(owner);
	assert_int_equal(proc_run(visitor, s, PATIENCE * 4), 0);
	for (unsigned i = 0; i < 100; i++) {
		after = proc_fd_count(owner);
		if (after == before)
			break;
		proc_sleep_us(10000);
	}
	print_message("visitor: %d, then %d descriptors; owner: %d, then %d\n", s->fds_after_10,
		      s->fds_at_end, before, after);
	assert_int_equal(s->fds_at_end, s->fds_after_10);
	assert_int_equal(after, before);
	proc_kill(owner);
}

/* Nobody is there, for now. */
static int early(void *arg)
{
	struct scene *s = arg;
	struct peer_export nobody = { .sva = 4096, .len = 4096, .tid = 5 << 16 | 9 };
	uint64_t began = proc_now();
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	if (peer_write(q, peer_remote(&nobody, 0, 8), peer_part(local, 0, 8)) !=
	    DMA_CR_ACK_TIMEOUT_ERR)
		proc_die("somebody is at port 9");
	if (proc_now() - began > proc_slack(2000000000))
		proc_die("it took too long");
	atomic_store(&s->done, 1);
	while (!atomic_load(&s->life))
		proc_sleep_us(100);
	/* The same queue reaches who has come meanwhile. */
	peer_expect(peer_write(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8)), "write");
	return 0;
}

static void a_queue_outlives_its_failures(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t other = proc_start(early, s), owner;

	(void)state;
	assert_true(proc_await(&s->done, 1, PATIENCE));
	owner = proc_start(short_lived, s);
	assert_int_equal(proc_join(other, PATIENCE), 0);
	proc_kill(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_owner_restarts_over_map, proc_end_all),
		cmocka_unit_test_teardown(an_owner_restarts_over_cma, proc_end_all),
		cmocka_unit_test_teardown(an_owner_restarts_over_ring, proc_end_all),
		cmocka_unit_test_teardown(an_owner_restarts_over_tcp, proc_end_all),
		cmocka_unit_test_teardown(another_incarnation_holds_the_port, proc_end_all),
		cmocka_unit_test_teardown(many_connections_leave_no_descriptors, proc_end_all),
		cmocka_unit_test_teardown(a_queue_outlives_its_failures, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
