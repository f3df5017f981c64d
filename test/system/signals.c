/* SPDX-License-Identifier: MIT */
/*
 * A storm of signals, with and without SA_RESTART, on an alternate stack, during posting,
 * waiting and unregistering; and that the library touches no signal's action and raises none.
 */
/* ctest: timeout=120 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)512 << 10)
#define PATIENCE 60000u

struct scene {
	struct peer_owner owner;
	int flags;
};

static volatile sig_atomic_t caught;

static void count(int signal)
{
	(void)signal;
	caught++;
}

/* 10 kHz, spread over two signals. */
static void storm(int flags)
{
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = count, .sa_flags = flags | SA_ONSTACK };
	struct itimerval every = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { .it_interval.tv_nsec = 200000, .it_value.tv_nsec = 100000 };
	timer_t timer;

	sigaltstack(&alternate, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &spec, NULL))
		proc_die("timer: %m");
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	unsigned rounds = proc_rounds(300, 20000);
	uint8_t *memory;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	peer_only(s->owner.path);
	storm(s->flags);
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SEGMENT);
	q = peer_queue(&p, 8);
	for (unsigned i = 0; i < rounds; i++) {
		size_t len = i % 8 ? 4096 : SEGMENT;
		struct dma_seg remote = peer_remote(&s->owner.export, 0, len), mine;
		struct dma_cr cr;
		uint64_t began;
		int n;

		local = peer_register(&p, memory, SEGMENT, NULL);
		mine = peer_part(local, 0, len);
		peer_fill(memory, len, i);
		if (dma_write(q, &remote, &mine) != DMA_STATUS_OK)
			proc_die("post: %s", xtal_last_error());
		n = dma_wait_queue(q, 1, 10000, &cr);
		if (n != 1 || cr.status)
			proc_die("wait answers %d, status %d", n, n == 1 ? (int)cr.status : -1);
		memset(memory, 0, len);
		if (dma_read(q, &remote, &mine) != DMA_STATUS_OK)
			proc_die("post: %s", xtal_last_error());
		n = dma_wait_queue(q, 1, -1, &cr);
		if (n != 1 || cr.status)
			proc_die("wait answers %d, status %d", n, n == 1 ? (int)cr.status : -1);
		if (!peer_holds(memory, len, i))
			proc_die("the data is wrong");
		if (i % 50 == 0) { /* time limits stay what they are */
			began = proc_now();
			n = dma_wait_queue(q, 1, 30, &cr);
			began = proc_now() - began;
			if (n != -14 || began < 29000000 || began > proc_slack(1000000000))
				proc_die("wait of 30 ms: %d after %.1f ms", n, (double)began / 1e6);
		}
		dma_unregister_seg(p.ctx, local);
	}
	dma_free_queue(q);
	peer_close(&p);
	if (!caught)
		proc_die("no signal came");
	return 0;
}

static void in_a_storm(int flags)
{
	for (unsigned path = 0; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner;

		s->flags = flags;
		s->owner.path = (enum peer_path)path;
		s->owner.len = SEGMENT;
		owner = proc_start(peer_owner_run, &s->owner);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		assert_int_equal(proc_run(initiator, s, PATIENCE), 0);
		atomic_store(&s->owner.quit, 1);
		assert_int_equal(proc_join(owner, PATIENCE), 0);
	}
}

static void calls_that_are_restarted(void **state)
{
	(void)state;
	in_a_storm(SA_RESTART);
}

static void calls_that_are_interrupted(void **state)
{
	(void)state;
	in_a_storm(0);
}

static void read_actions(struct sigaction out[65])
{
	memset(out, 0, 65 * sizeof(*out));
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &out[i]);
}

/* F81: all actions and the mask are as they were; a dead peer raises no SIGPIPE. */
static int actions_stay(void *arg)
{
	static struct sigaction before[65], after[65];
	sigset_t mask_before, mask_after;
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	read_actions(before);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
	peer_only(PEER_RING);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	peer_expect(peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT), *local), "write");
	atomic_store(&s->owner.quit, 1);
	for (unsigned i = 0; i < 2000; i++)
		if (peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT), *local))
			break;
	peer_write(q, peer_remote(&s->owner.export, 0, 8), peer_part(local, 0, 8));
	read_actions(after);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
	for (int i = 1; i < 65; i++)
		if (before[i].sa_handler != after[i].sa_handler ||
		    before[i].sa_flags != after[i].sa_flags)
			proc_die("the action of signal %d has changed", i);
	for (int i = 1; i < 65; i++)
		if (sigismember(&mask_before, i) != sigismember(&mask_after, i))
			proc_die("signal %d is masked or unmasked", i);
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void the_programs_signals_stay_its_own(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner;

	(void)state;
	s->owner.path = PEER_RING;
	s->owner.len = SEGMENT;
	owner = proc_start(peer_owner_run, &s->owner);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	assert_int_equal(proc_run(actions_stay, s, PATIENCE), 0);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(calls_that_are_restarted, proc_end_all),
		cmocka_unit_test_teardown(calls_that_are_interrupted, proc_end_all),
		cmocka_unit_test_teardown(the_programs_signals_stay_its_own, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
