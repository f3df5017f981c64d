/* SPDX-License-Identifier: MIT */
/*
 * Waiting: exact returns of poll, wait and wait_ae, no completion missed between the last look
 * and the sleep, no wake-up for nothing, timeouts exact under signals. ctest: timeout=180 hosts
 */
#include "lib/pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/rng.h"

static void poll_and_wait_return_what_the_contract_says(void **state)
{
	struct dma_queue *plain;
	struct dma_seg local, remote;
	struct dma_cr cr[70];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	assert_int_equal(dma_poll_queue(p.queue, 1, cr), 0);
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, cr), -14);
	assert_int_equal(dma_wait_queue(p.queue, 1, 20, cr), -14);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	/* F66: one by one, without a new event for each. */
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(dma_wait_queue(p.queue, 1, i % 2 ? 5000 : -1, cr), 1);
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, cr), -14);
	/* More room than completions: what is there, at once. */
	assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	assert_int_equal(dma_wait_queue(p.queue, 16, 5000, cr), 1);
	assert_int_equal(dma_wait_queue(p.queue, 70, 0, cr), -14);
	/* F67: unread ones do not lose the next event. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	for (int left = 3; left > 0;) {
		int n = dma_wait_queue(p.queue, 2, 5000, cr);

		assert_true(n >= 1 && n <= left && n <= 2);
		left -= n;
	}
	plain = dma_alloc_queue(p.ctx,
				&(struct queue_cfg){ .queue_depth = 4, .rmt_eid.dw0 = LOOPBACK });
	assert_int_equal(dma_wait_queue(plain, 1, 0, cr), -22);
	assert_int_equal(dma_write(plain, &remote, &local), DMA_STATUS_OK);
	assert_int_equal(dma_wait_queue(plain, 1, 100, cr), -22);
	assert_ok(plain, 8);
	plain->cfg.event_mode = true; /* read at each wait */
	assert_int_equal(dma_write(plain, &remote, &local), DMA_STATUS_OK);
	assert_int_equal(dma_wait_queue(plain, 1, 1000, cr), 1);
	dma_free_queue(plain);
	pair_close(&p);
}

static void ready_completions_are_returned_with_timeout_0(void **state)
{
	struct dma_seg local, remote;
	struct dma_cr cr;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 100; i++) {
		int n = -14;

		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		for (unsigned k = 0; n == -14 && k < 1000000; k++)
			n = dma_wait_queue(p.queue, 1, 0, &cr);
		assert_int_equal(n, 1);
		assert_int_equal(cr.status, 0);
	}
	pair_close(&p);
}

static void wait_ae_times_out_with_0(void **state)
{
	struct dma_aeqe e, before;
	struct pollfd fd;
	uint64_t begin;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	memset(&e, 0x5a, sizeof(e));
	e.duration = 0;
	before = e;
	assert_int_equal(dma_wait_ae(p.ctx, &e), 0);
	assert_memory_equal(&e, &before, sizeof(e)); /* nothing is written */
	begin = suite_now_ms();
	e.duration = 120;
	assert_int_equal(dma_wait_ae(p.ctx, &e), 0);
	assert_in_range(suite_now_ms() - begin, 119, 8000);
	e.duration = -1;
	assert_int_equal(dma_wait_ae(p.ctx, &e), -22);
	e.duration = 10001;
	assert_int_equal(dma_wait_ae(p.ctx, &e), -22);
	fd = (struct pollfd){ .fd = p.ctx->async_fd, .events = POLLIN };
	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	pair_close(&p);
}

/* ---- F65: a completion between the last look and the sleep ---- */

struct race {
	struct pair *p;
	struct dma_seg remote, local;
	uint64_t rounds;
	_Atomic uint64_t go;
	_Atomic int stop;
};

static void *post_at_any_moment(void *arg)
{
	struct race *r = arg;
	struct rng rng = { 11 };

	for (uint64_t i = 1; i <= r->rounds; i++) {
		for (unsigned n = 1; atomic_load_explicit(&r->go, memory_order_acquire) < i; n++) {
			if (atomic_load_explicit(&r->stop, memory_order_relaxed))
				return NULL;
			if (n % 200 == 0)
				sched_yield(); /* there may be fewer processors than spinners */
		}
		for (uint64_t spin = rng_below(&rng, 3000); spin; spin--)
			__asm__ volatile("");
		if (dma_write(r->p->queue, &r->remote, &r->local) != DMA_STATUS_OK)
			return (void *)1;
	}
	return NULL;
}

static void race_open(struct race *r, struct pair *p, uint64_t rounds, pthread_t *thread)
{
	pair_open(p, 4096);
	*r = (struct race){ .p = p,
			    .remote = part(&p->remote, 0, 8),
			    .local = part(p->local, 0, 8),
			    .rounds = rounds };
	pthread_create(thread, NULL, post_at_any_moment, r);
}

static void race_close(struct race *r, pthread_t thread)
{
	void *bad;

	atomic_store(&r->stop, 1);
	pthread_join(thread, &bad);
	assert_null(bad);
	pair_close(r->p);
}

static void no_completion_slips_past_wait(void **state)
{
	pthread_t thread;
	struct race r;
	struct pair p;

	(void)state;
	race_open(&r, &p, suite_scale(100000), &thread);
	for (uint64_t i = 1, end = suite_deadline(12); i <= r.rounds && suite_now_ms() < end; i++) {
		struct dma_cr cr;

		atomic_store_explicit(&r.go, i, memory_order_release);
		assert_int_equal(dma_wait_queue(p.queue, 4, 10000, &cr), 1);
		assert_int_equal(cr.status, 0);
	}
	race_close(&r, thread);
}

static void race_on_fd(uint32_t mode)
{
	struct epoll_event e = { .events = EPOLLIN | mode };
	pthread_t thread;
	struct race r;
	struct pair p;
	int ep = epoll_create1(EPOLL_CLOEXEC), fd;

	race_open(&r, &p, suite_scale(60000), &thread);
	fd = xtal_queue_fd(p.queue);
	assert_true(fd >= 0);
	assert_int_equal(xtal_queue_fd(p.queue), fd); /* always the same one */
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
	for (uint64_t i = 1, end = suite_deadline(8); i <= r.rounds && suite_now_ms() < end; i++) {
		struct dma_cr cr;
		int n;

		atomic_store_explicit(&r.go, i, memory_order_release);
		while (!(n = dma_poll_queue(p.queue, 1, &cr)))
			assert_int_equal(epoll_wait(ep, &e, 1, 10000), 1);
		assert_int_equal(n, 1);
		assert_int_equal(cr.status, 0);
		/* Edge-triggered users poll until it is empty. */
		assert_int_equal(dma_poll_queue(p.queue, 1, &cr), 0);
	}
	close(ep);
	race_close(&r, thread);
}

static void no_completion_slips_past_epoll_level(void **state)
{
	(void)state;
	race_on_fd(0);
}

static void no_completion_slips_past_epoll_edge(void **state)
{
	(void)state;
	race_on_fd(EPOLLET);
}

/* F70: an armed descriptor is quiet when nothing happens, and waiting costs nothing (O5). */
static void idle_waits_are_quiet(void **state)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct xtal_counters before, after;
	struct dma_seg remote, local;
	struct dma_cr cr;
	struct pair p;
	double cpu;

	(void)state;
	pair_open(&p, 4096);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, xtal_queue_fd(p.queue), &e), 0);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		assert_int_equal(dma_poll_queue(p.queue, 1, &cr), 0);
	}
	suite_sleep_us(200000); /* the agent looks on for a while */
	xtal_counters_read(&before, sizeof(before));
	cpu = suite_cpu_seconds();
	assert_int_equal(epoll_wait(ep, &e, 1, 1500), 0);
	assert_int_equal(dma_wait_queue(p.queue, 1, 1500, &cr), -14);
	xtal_counters_read(&after, sizeof(after));
	assert_true(suite_cpu_seconds() - cpu < (suite_sanitized() ? 0.2 : 0.02));
	assert_in_range(after.agent_wakeups - before.agent_wakeups, 0, 2);
	close(ep);
	pair_close(&p);
}

/* ---- F80: signals ---- */

static atomic_uint signals; /* any thread may get them */

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
}

static void start_signals(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct itimerval every = { { 0, 100 }, { 0, 100 } };

	signals = 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void stop_signals(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
}

static void run_under_signals(int flags)
{
	struct dma_aeqe e = { .duration = 150 };
	struct dma_seg remote, local;
	struct dma_cr cr;
	uint64_t begin;
	struct pair p;

	pair_open(&p, 300000);
	remote = part(&p.remote, 0, 200000);
	start_signals(flags);
	begin = suite_now_ms();
	assert_int_equal(dma_wait_queue(p.queue, 1, 150, &cr), -14);
	assert_in_range(suite_now_ms() - begin, 149, 8000);
	begin = suite_now_ms();
	assert_int_equal(dma_wait_ae(p.ctx, &e), 0);
	assert_in_range(suite_now_ms() - begin, 149, 8000);
	for (unsigned i = 0; i < suite_scale(300); i++) {
		local = part(p.local, 0, i % 3 ? 8 : 200000);
		pattern_fill(p.mem.data, local.len, i, 0);
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_int_equal(dma_wait_queue(p.queue, 1, -1, &cr), 1);
		assert_int_equal(cr.status, 0);
		memset(p.mem.data, 0, local.len);
		assert_int_equal(dma_read(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_int_equal(dma_wait_queue(p.queue, 1, 10000, &cr), 1);
		assert_int_equal(cr.status, 0);
		assert_int_equal(pattern_check(p.mem.data, local.len, i, 0), -1);
	}
	stop_signals();
	assert_true(signals > 100);
	pair_close(&p);
}

static void signals_do_not_matter(void **state)
{
	(void)state;
	run_under_signals(0);
}

static void restarting_signals_do_not_matter(void **state)
{
	(void)state;
	run_under_signals(SA_RESTART);
}

static void timeouts_are_exact(void **state)
{
	static const int times[] = { 1, 10, 60, 250 };
	struct dma_cr cr;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t best = UINT64_MAX;

		/* Never too early; too late only when the machine has no time for us. */
		for (unsigned tries = 0; tries < 10 && best > (uint64_t)times[i] + 20; tries++) {
			uint64_t begin = suite_now_ms(), took;

			assert_int_equal(dma_wait_queue(p.queue, 1, times[i], &cr), -14);
			took = suite_now_ms() - begin;
			assert_true(took + 1 >= (uint64_t)times[i]);
			best = took < best ? took : best;
		}
		assert_in_range(best, 0, (uint64_t)times[i] + 20);
	}
	pair_close(&p);
}

static void *wait_for_ever(void *arg)
{
	struct dma_cr cr;

	return (void *)(intptr_t)dma_wait_queue(arg, 1, -1, &cr);
}

static void several_may_wait(void **state)
{
	struct dma_seg remote, local;
	pthread_t threads[4];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned round = 0; round < suite_scale(50); round++) {
		for (unsigned i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, wait_for_ever, p.queue);
		if (round % 2)
			suite_sleep_us(500);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		for (unsigned i = 0; i < 4; i++) {
			void *n;

			pthread_join(threads[i], &n);
			assert_int_equal((intptr_t)n, 1);
		}
	}
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll_and_wait_return_what_the_contract_says),
		cmocka_unit_test(ready_completions_are_returned_with_timeout_0),
		cmocka_unit_test(wait_ae_times_out_with_0),
		cmocka_unit_test(no_completion_slips_past_wait),
		cmocka_unit_test(no_completion_slips_past_epoll_level),
		cmocka_unit_test(no_completion_slips_past_epoll_edge),
		cmocka_unit_test(idle_waits_are_quiet),
		cmocka_unit_test(signals_do_not_matter),
		cmocka_unit_test(restarting_signals_do_not_matter),
		cmocka_unit_test(timeouts_are_exact),
		cmocka_unit_test(several_may_wait),
	};

	return suite_run(argc, argv, "wait", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
