/* SPDX-License-Identifier: MIT */
/*
 * What a connected process costs that does nothing, and how queues and segments go away while
 * their peer is stopped or their operations are in flight.
 */
/* ctest: timeout=120 serial plain */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/hostile.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)4 << 20)
#define PATIENCE 60000u

struct scene {
	struct peer_owner owner;
	_Atomic uint32_t ready, go;
	uint64_t took, worst, events;
	uint32_t endings;
};

/* Connected over all paths, nothing in flight; waits in epoll on an armed queue (F70, F130). */
static int idle(void *arg)
{
	struct scene *s = arg;
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), n;
	struct dma_queue *q;
	struct dma_seg *local;
	struct dma_cr cr;
	struct peer p;

	setenv("XTAL_PATHS", peer_path_name(s->owner.path), 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	peer_expect(peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT), *local), "write");
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, xtal_queue_fd(q), &event))
		proc_die("epoll: %m");
	while (dma_poll_queue(q, 1, &cr) > 0)
		;
	proc_sleep_us(100000);
	atomic_store(&s->ready, 1);
	n = epoll_wait(epoll, &event, 1, 6000);
	s->events = (uint64_t)n;
	return 0;
}

static int sleeping_owner(void *arg)
{
	struct scene *s = arg;
	struct peer p;

	peer_owner_for(s->owner.path);
	peer_open(&p);
	peer_register(&p, peer_memory(s->owner.path, SEGMENT), SEGMENT, &s->owner.export);
	atomic_store(&s->owner.ready, 1);
	for (;;)
		pause();
	return 0;
}

static void an_idle_connection_costs_nothing(void **state)
{
	(void)state;
	for (unsigned path = PEER_MAP; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		uint64_t switches, cpu;
		pid_t owner, other;

		if (path == PEER_USER)
			continue;
		s->owner.path = (enum peer_path)path;
		owner = proc_start(sleeping_owner, s);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		other = proc_start(idle, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		proc_sleep_us(300000);
		switches = proc_switches(owner) + proc_switches(other);
		cpu = proc_cpu_ns(owner) + proc_cpu_ns(other);
		proc_sleep_us(5000000);
		switches = proc_switches(owner) + proc_switches(other) - switches;
		cpu = proc_cpu_ns(owner) + proc_cpu_ns(other) - cpu;
		print_message("%s: %llu switches and %.3f ms in 5 s\n",
			      peer_path_name(s->owner.path), (unsigned long long)switches,
			      (double)cpu / 1e6);
		/* ThreadSanitizer has a thread of its own that wakes. */
		assert_true(switches == 0 || proc_sanitized("thread"));
		assert_true(proc_sanitized("thread") || cpu < proc_slack(2000000));
		assert_int_equal(proc_join(other, PATIENCE), 0);
		assert_int_equal(s->events, 0);
		proc_kill(owner);
	}
}

#define WAKINGS 300

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Both sides sleep before each operation: the owner's agent is woken, then the waiter. */
static int sleeps_between(void *arg)
{
	static uint64_t took[WAKINGS];
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local, remote, mine;
	struct dma_cr cr;
	struct peer p;

	peer_only(s->owner.path);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	mine = peer_part(local, 0, 8);
	q = peer_queue(&p, 8);
	remote = peer_remote(&s->owner.export, 0, 8);
	peer_expect(peer_write(q, remote, mine), "write");
	for (unsigned i = 0; i < WAKINGS; i++) {
		uint64_t began;

		proc_sleep_us(5000);
		began = proc_now();
		if (dma_write(q, &remote, &mine) != DMA_STATUS_OK)
			proc_die("post: %s", xtal_last_error());
		while (dma_poll_queue(q, 1, &cr) == 0)
			if (dma_wait_queue(q, 5000, 1, &cr) == 1)
				break;
		took[i] = proc_now() - began;
	}
	qsort(took, WAKINGS, sizeof(took[0]), by_value);
	s->took = took[WAKINGS / 2];
	s->worst = took[WAKINGS - 1];
	return 0;
}

/* No wake-up waits for a timer's next tick (F57, F72). */
static void sleeping_sides_wake_at_once(void **state)
{
	(void)state;
	for (unsigned path = PEER_RING; path <= PEER_TCP; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner;

		s->owner.path = (enum peer_path)path;
		owner = proc_start(sleeping_owner, s);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		assert_int_equal(proc_run(sleeps_between, s, PATIENCE), 0);
		print_message("%s: an operation between sleepers takes %.3f ms, %.3f at most\n",
			      peer_path_name(s->owner.path), (double)s->took / 1e6,
			      (double)s->worst / 1e6);
		assert_true(s->took < proc_slack(5000000));
		assert_true(s->worst < proc_slack(2000000000));
		proc_kill(owner);
		munmap(s, sizeof(*s));
	}
}

/* Frees a full queue while the owner is stopped: bounded, by the time limit (1 s here). */
static int frees_against_a_stopped_owner(void *arg)
{
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local, remote;
	struct peer p;

	setenv("XTAL_TIMEOUT_MS", "1000", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->owner.path);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 16);
	remote = peer_remote(&s->owner.export, 0, SEGMENT);
	peer_expect(peer_write(q, remote, *local), "write");
	atomic_store(&s->ready, 1);
	if (!proc_await(&s->go, 1, PATIENCE))
		return 1;
	for (unsigned i = 0; i < 16; i++)
		if (dma_write(q, &remote, local) != DMA_STATUS_OK)
			proc_die("post refused: %s", xtal_last_error());
	s->took = proc_now();
	dma_free_queue(q);
	s->took = proc_now() - s->took;
	s->took += 1;
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void a_queue_of_a_stopped_owner_can_be_freed(void **state)
{
	(void)state;
	for (unsigned path = 0; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner, other;

		s->owner.path = (enum peer_path)path;
		owner = proc_start(sleeping_owner, s);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		other = proc_start(frees_against_a_stopped_owner, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		proc_stop(owner);
		atomic_store(&s->go, 1);
		assert_int_equal(proc_join(other, PATIENCE), 0);
		print_message("%s: %.1f ms\n", peer_path_name(s->owner.path),
			      (double)s->took / 1e6);
		assert_true(s->took < proc_slack(4000000000));
		proc_kill(owner);
	}
}

/* F09: unregisters the local segment of reads in flight, fills the memory: it stays filled. */
static int unregisters_in_flight(void *arg)
{
	struct scene *s = arg;
	unsigned rounds = proc_rounds(40, 2000);
	uint8_t *memory;
	struct dma_queue *q;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->owner.path);
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SEGMENT);
	q = peer_queue(&p, 32);
	for (unsigned round = 0; round < rounds; round++) {
		struct dma_seg *local = peer_register(&p, memory, SEGMENT, NULL), part = *local;
		struct dma_seg remote = peer_remote(&s->owner.export, 0, SEGMENT);

		for (unsigned i = 0; i < 8; i++)
			if (dma_read(q, &remote, &part) != DMA_STATUS_OK)
				proc_die("post refused: %s", xtal_last_error());
		proc_sleep_us(round % 10 * 100);
		dma_unregister_seg(p.ctx, local);
		memset(memory, 0xa5, SEGMENT);
		for (unsigned i = 0; i < 8; i++) {
			struct dma_cr cr = peer_complete(q, 20000);

			s->endings |= 1u << cr.status;
			if (cr.status && cr.status != DMA_CR_LOC_ACCESS_ERR)
				proc_die("status %d", cr.status);
		}
		proc_sleep_us(500);
		for (size_t i = 0; i < SEGMENT; i++)
			if (memory[i] != 0xa5)
				proc_die("round %u: byte %zu became 0x%02x", round, i, memory[i]);
	}
	dma_free_queue(q);
	peer_close(&p);
	return 0;
}

static void local_segments_may_go_with_reads_in_flight(void **state)
{
	(void)state;
	for (unsigned path = 0; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner;

		s->owner.path = (enum peer_path)path;
		s->owner.len = SEGMENT;
		owner = proc_start(peer_owner_run, &s->owner);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		assert_int_equal(proc_run(unregisters_in_flight, s, PATIENCE), 0);
		print_message("%s: statuses 0x%x\n", peer_path_name(s->owner.path), s->endings);
		atomic_store(&s->owner.quit, 1);
		assert_int_equal(proc_join(owner, PATIENCE), 0);
	}
}

/* Many operations that wait for owners that never answer: each costs its own time, not that of
 * all links. 500 of both took a third of a processor when each looked at all links. */
#define MANY 500

static int waits_for_many(void *arg)
{
	struct scene *s = arg;
	static struct dma_queue *q[MANY];
	struct rlimit files;
	struct dma_seg *local;
	struct peer p;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < 4 * MANY || setrlimit(RLIMIT_NOFILE, &files))
		return 77;
	setenv("XTAL_TIMEOUT_MS", "60000", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, 4096), 4096, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		struct dma_seg remote = { .sva = 4096, .len = 4096, .tid = 1u << 16 | (20000 + i) };

		q[i] = peer_queue(&p, 1);
		if (dma_write(q[i], &remote, local))
			proc_die("the post failed");
	}
	proc_sleep_us(300000);
	s->took = proc_cpu_ns(getpid());
	proc_sleep_us(1000000);
	s->took = proc_cpu_ns(getpid()) - s->took;
	return 0; /* without freeing: that would wait */
}

static void waiting_operations_cost_their_own_time(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	int listeners[MANY], status;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		listeners[i] = hostile_listen((uint16_t)(20000 + i)); /* -1: somebody has it */
	status = proc_run(waits_for_many, s, PATIENCE);
	for (unsigned i = 0; i < MANY; i++)
		close(listeners[i]);
	if (status == 77 << 8)
		proc_skip("too few descriptors are allowed");
	assert_int_equal(status, 0);
	print_message("%u operations waiting: %.1f ms of processor in a second\n", MANY,
		      (double)s->took / 1e6);
	assert_true(s->took < 150000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_idle_connection_costs_nothing, proc_end_all),
		cmocka_unit_test_teardown(sleeping_sides_wake_at_once, proc_end_all),
		cmocka_unit_test_teardown(waiting_operations_cost_their_own_time, proc_end_all),
		cmocka_unit_test_teardown(a_queue_of_a_stopped_owner_can_be_freed, proc_end_all),
		cmocka_unit_test_teardown(local_segments_may_go_with_reads_in_flight, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("the emulator's own threads wake");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
