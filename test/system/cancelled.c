/* SPDX-License-Identifier: MIT */
/*
 * Threads that the program cancels (pthread_cancel) while they are in a call: they end where they
 * wait for an event, and nowhere else, and leave no lock and no object behind.
 */
/* ctest: timeout=240 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)256 << 10)
#define PATIENCE 60000u

struct scene {
	struct peer_owner owner;
	enum peer_path path;
};

struct work {
	struct peer p;
	struct dma_queue *q;
	struct dma_seg *local, remote;
	void *memory;
	unsigned taken, posted;
};

static void cancel(pthread_t thread)
{
	struct timespec until;

	pthread_cancel(thread);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	if (pthread_timedjoin_np(thread, NULL, &until))
		proc_die("a thread that was cancelled does not end");
}

static void *wait_for_events(void *arg)
{
	struct work *w = arg;

	for (;;) {
		struct dma_aeqe event = { .duration = 10000 };

		if (dma_wait_ae(w->p.ctx, &event))
			proc_die("dma_wait_ae");
	}
}

static void *wait_for_completions(void *arg)
{
	struct work *w = arg;
	struct dma_cr cr;

	for (;;)
		if (dma_wait_queue(w->q, 1, -1, &cr) != 1)
			proc_die("dma_wait_queue");
}

/* Every call is tried; between them the thread may end. */
static void *work(void *arg)
{
	static const uint64_t lengths[] = { 8, 8, 3000, 200000 };
	struct work *w = arg;
	struct dma_cr cr[16];
	int n;

	for (unsigned i = 0; w->q; i++) {
		struct dma_seg local = peer_part(w->local, 0, lengths[i % 4]);

		if (dma_write(w->q, &w->remote, &local) == DMA_STATUS_OK)
			w->posted++;
		pthread_testcancel();
		n = dma_poll_queue(w->q, 16, cr);
		if (n > 0)
			w->taken += (unsigned)n;
		pthread_testcancel();
		if (i % 32 == 0) {
			dma_unregister_seg(w->p.ctx, peer_register(&w->p, w->memory, 64, NULL));
			dma_free_queue(peer_queue(&w->p, 4));
		}
	}
	return NULL;
}

static void open_work(struct scene *s, struct work *w)
{
	peer_only(s->path);
	peer_open(&w->p);
	w->q = peer_queue(&w->p, 16);
	w->memory = peer_memory(s->path, SEGMENT);
	w->local = peer_register(&w->p, w->memory, SEGMENT, NULL);
	w->remote = peer_remote(&s->owner.export, 0, SEGMENT);
	if (xtal_queue_fd(w->q) < 0)
		proc_die("no descriptor: %s", xtal_last_error());
}

/* Closes all, and looks whether it is gone. */
static int close_work(struct work *w)
{
	struct xtal_counters c;

	dma_free_queue(w->q);
	dma_unregister_seg(w->p.ctx, w->local);
	peer_close(&w->p);
	xtal_counters_read(&c, sizeof(c));
	return c.contexts || c.queues || c.segments;
}

static int cancels_workers(void *arg)
{
	struct work w = { 0 };
	unsigned seed = 1;
	struct dma_cr cr;

	open_work(arg, &w);
	for (unsigned i = 0; i < proc_rounds(100, 3000); i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &w))
			proc_die("no thread");
		proc_sleep_us((unsigned)rand_r(&seed) % 3000);
		cancel(thread);
		for (; w.taken < w.posted; w.taken++)
			cr = peer_complete(w.q, 20000);
		peer_expect(peer_write(w.q, w.remote, *w.local), "write");
	}
	(void)cr;
	return close_work(&w);
}

static int cancels_waiters(void *arg)
{
	struct work w = { 0 };

	open_work(arg, &w);
	for (unsigned i = 0; i < proc_rounds(20, 200); i++) {
		pthread_t events, completions;

		if (pthread_create(&events, NULL, wait_for_events, &w) ||
		    pthread_create(&completions, NULL, wait_for_completions, &w))
			proc_die("no thread");
		proc_sleep_us(i * 500);
		cancel(events);
		cancel(completions);
		peer_expect(peer_write(w.q, w.remote, *w.local), "write");
	}
	return close_work(&w);
}

static void over(enum peer_path path, int (*fn)(void *arg))
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner;

	s->path = s->owner.path = path;
	s->owner.len = SEGMENT;
	owner = proc_start(peer_owner_run, &s->owner);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	assert_int_equal(proc_run(fn, s, PATIENCE), 0);
	atomic_store(&s->owner.quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

static void a_waiter_may_be_cancelled(void **state)
{
	(void)state;
	over(PEER_RING, cancels_waiters);
}

static void a_worker_ends_between_calls(void **state)
{
	(void)state;
	for (int path = 0; path < PEER_PATHS; path++) {
		if (proc_emulated() && path == PEER_CMA)
			continue;
		print_message("over %s\n", peer_path_name((enum peer_path)path));
		over((enum peer_path)path, cancels_workers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_waiter_may_be_cancelled, proc_end_all),
		cmocka_unit_test_teardown(a_worker_ends_between_calls, proc_end_all),
	};

	if (proc_sanitized("address"))
		return proc_skip_all(
			"AddressSanitizer reports false errors on the stack of a cancelled thread");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
