/* SPDX-License-Identifier: MIT */
/* ctest: timeout=120 label=soak */
/*
 * A program that polls for receives serves its peers itself: what happens when it stops just then,
 * when two threads poll, when its receive queue ends meanwhile, and when a peer dies.
 */
#include "send_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "core/context_impl.h"
#include "core/server.h"
#include "core/tcp_session.h"
#include "lib/rng.h"

#define WINDOW 16u
#define SLOT   64u

static bool over_tcp;

static uint64_t a_while(void)
{
	return proc_now() + proc_slack(20000000000);
}

static void submit_number(struct world *w, uint64_t number)
{
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);

	memcpy(source, &number, sizeof(number));
	op.flags = XTAL_OP_INLINE;
	op.user = number;
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
}

static void sent_number(struct world *w)
{
	assert_int_equal(next(w, w->acq).status, XTAL_OK);
}

/* Polls for receives in a tight loop until one has come. */
static void takes_one(struct world *w)
{
	const uint64_t until = a_while();
	struct xtal_record r;
	int n = 0;

	while (!n && proc_now() < until)
		n = xtal_shared_cq_poll(w->bcq, 1, &r);
	assert_int_equal(n, 1);
	assert_int_equal(r.status, XTAL_OK);
	receive(w, 0, SLOT, 0);
}

static unsigned polled_connections(struct world *w)
{
	unsigned count;

	xtal_lock(&w->b->serving.lock);
	count = w->b->tcp.polled_count;
	xtal_unlock(&w->b->serving.lock);
	return count;
}

/* The receiver sends something of its own. */
static void replies(struct world *w, struct xtal_queue *q)
{
	struct xtal_op op = { .opcode = XTAL_OP_WRITE,
			      .local = (uintptr_t)sink + BYTES - 8,
			      .len = 8,
			      .remote = { .addr = (uintptr_t)source + BYTES - 8,
					  .eid = xtal_context_device(w->a)->eid,
					  .tid = xtal_context_tid(w->a) } };

	assert_int_equal(xtal_queue_post(q, &op), 0);
}

static void replied(struct xtal_queue *q, unsigned count)
{
	const uint64_t until = a_while();
	struct xtal_ready ready;

	while (count && proc_now() < until)
		if (xtal_queue_poll(q, 1, &ready) == 1) {
			xtal_queue_polled(q, 1);
			count--;
		}
	assert_int_equal(count, 0);
}

static bool holds_answers(struct world *w)
{
	struct xtal_list *conns = &w->b->tcp.polled, *sessions = &w->b->serving.sessions;
	bool held = false;

	xtal_lock(&w->b->serving.lock);
	for (struct xtal_list *n = conns->next; n != conns; n = n->next)
		held |= xtal_container_of(n, struct xtal_tcp_conn, polled_node)->held;
	for (struct xtal_list *n = sessions->next; n != sessions; n = n->next)
		held |= xtal_container_of(n, struct xtal_session, serve_node)->held;
	xtal_unlock(&w->b->serving.lock);
	return held;
}

/* It has looked at a message, and does not come back: the sender hears of it all the same. */
static void whoever_stops_polling_has_answered(void **state)
{
	struct world *w = *state;
	const unsigned rounds = proc_rounds(40, 3000);
	const uint64_t until = a_while();
	const struct xtal_queue_attr qa = { .depth = 64 };
	const bool quick = !proc_sanitized("thread") && !proc_emulated(); /* 20 us */
	struct xtal_queue *q;
	unsigned held = 0;

	assert_int_equal(xtal_queue_create(w->b, &qa, &q), 0);
	replies(w, q); /* the link comes up */
	replied(q, 1);
	for (unsigned i = 0; i < WINDOW; i++)
		receive(w, 0, SLOT, 0);
	for (unsigned i = 0; i < rounds || (!held && quick && proc_now() < until); i++) {
		uint64_t then;

		for (unsigned j = 0; j < 8; j++) {
			submit_number(w, j);
			takes_one(w);
			if (j < 7)
				replies(w, q);
		}
		held += holds_answers(w);
		then = proc_now();
		for (unsigned j = 0; j < 8; j++)
			sent_number(w);
		assert_true(proc_now() - then < proc_slack(2000000000));
		replied(q, 7);
	}
	xtal_queue_destroy(&q);
	assert_true(held > 0 || !quick); /* else this has tried nothing */
}

/* ---- Threads ---- */

struct reader {
	struct world *w;
	pthread_t thread;
	atomic_bool *stop;
	atomic_uint *seen; /* of each number */
	unsigned numbers;
	atomic_uint taken, wrong;
};

/* What a poll has brought: its buffer is posted again. */
static void note(struct reader *me, const struct xtal_record *r)
{
	struct xtal_sge sge = { (uintptr_t)sink + r->user * SLOT, SLOT };
	uint64_t number;

	if (r->status == XTAL_FLUSHED)
		return;
	memcpy(&number, sink + r->user * SLOT, sizeof(number));
	if (r->status || number >= me->numbers)
		me->wrong++;
	else
		me->seen[number]++;
	me->taken++;
	xtal_receive_queue_post(me->w->rq, &sge, 1, r->user);
}

static void *reads(void *arg)
{
	struct reader *me = arg;
	struct xtal_record r[3];

	while (!*me->stop) {
		int n = xtal_shared_cq_poll(me->w->bcq, 3, r);

		for (int i = 0; i < n; i++)
			note(me, &r[i]);
	}
	return NULL;
}

/* Polls, sleeps, and waits for events, as it happens. */
static void *reads_now_and_then(void *arg)
{
	struct reader *me = arg;
	struct rng rng = { 7 };
	void *owner;

	while (me->taken < me->numbers && !*me->stop) {
		const uint64_t until = proc_now() + rng_below(&rng, 300000);
		struct xtal_record r;

		while (proc_now() < until)
			while (xtal_shared_cq_poll(me->w->bcq, 1, &r) == 1)
				note(me, &r);
		switch (rng_below(&rng, 3)) {
		case 0:
			usleep((unsigned)rng_below(&rng, 3000));
			break;
		case 1:
			if (xtal_shared_cq_arm(me->w->bcq, false))
				me->wrong++;
			if (polled_connections(me->w)) /* the agent's again, at once */
				me->wrong++;
			if (me->taken < me->numbers &&
			    xtal_channel_wait(me->w->channel, 1, 20000, &owner, NULL, NULL) != 1)
				me->wrong++;
			else if (me->taken < me->numbers)
				xtal_shared_cq_ack(me->w->bcq, 1);
			break;
		default:
			break;
		}
	}
	return NULL;
}

/* Sends the numbers, some at a time, and waits until all have been taken. */
static void numbers_are_read(struct world *w, void *(*how)(void *), unsigned threads,
			     unsigned numbers)
{
	atomic_uint *seen = calloc(numbers, sizeof(*seen));
	atomic_bool stop = false;
	struct reader readers[2];
	const uint64_t until = proc_now() + proc_slack(60000000000);
	unsigned taken = 0, open = 0;
	struct xtal_record r;

	for (unsigned i = 0; i < WINDOW; i++)
		receive(w, i * SLOT, SLOT, i);
	for (unsigned i = 0; i < threads; i++) {
		readers[i] =
			(struct reader){ .w = w, .stop = &stop, .seen = seen, .numbers = numbers };
		assert_int_equal(pthread_create(&readers[i].thread, NULL, how, &readers[i]), 0);
	}
	for (unsigned sent = 0; taken < numbers && proc_now() < until;) {
		if (sent < numbers && open < WINDOW) {
			submit_number(w, sent++);
			open++;
		}
		if (xtal_shared_cq_poll(w->acq, 1, &r) == 1) {
			assert_int_equal(r.status, XTAL_OK);
			open--;
		}
		taken = 0;
		for (unsigned i = 0; i < threads; i++)
			taken += readers[i].taken;
	}
	for (; open; open--)
		sent_number(w);
	stop = true;
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	assert_int_equal(taken, numbers);
	for (unsigned i = 0; i < numbers; i++)
		assert_int_equal(seen[i], 1);
	free(seen);
}

static void two_threads_poll(void **state)
{
	numbers_are_read(*state, reads, 2, proc_rounds(1200, 400000));
}

static void nothing_is_missed_by_who_stops(void **state)
{
	numbers_are_read(*state, reads_now_and_then, 1, proc_rounds(500, 100000));
}

/* Until all of them have ended; how many were received. */
static unsigned ended_well(struct world *w, unsigned open)
{
	const uint64_t until = a_while();
	struct xtal_record r;
	unsigned good = 0;

	while (open && proc_now() < until) {
		if (xtal_shared_cq_poll(w->acq, 1, &r) != 1 || r.status == XTAL_FLUSH_DONE)
			continue;
		good += r.status == XTAL_OK;
		open--;
	}
	assert_int_equal(open, 0);
	return good;
}

/* A message that was sent is received, and the other way round, whatever becomes of the queue. */
static void the_receive_queue_ends_meanwhile(void **state)
{
	struct world *w = *state;
	const unsigned rounds = proc_rounds(40, 4000);
	atomic_uint seen[WINDOW / 2] = { 0 };
	atomic_bool stop = false;
	struct reader reader = { .w = w, .stop = &stop, .seen = seen, .numbers = WINDOW / 2 };
	unsigned good = 0;
	struct xtal_record r;
	struct rng rng = { 3 };

	assert_int_equal(pthread_create(&reader.thread, NULL, reads, &reader), 0);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned open = WINDOW / 2;

		for (unsigned j = 0; j < WINDOW; j++)
			receive(w, j * SLOT, SLOT, j);
		for (unsigned j = 0; j < WINDOW / 2; j++)
			submit_number(w, j);
		if (i % 2) { /* in the midst of them */
			good += ended_well(w, 1);
			open--;
		}
		for (uint64_t end = proc_now() + rng_below(&rng, 60000); proc_now() < end;)
			;
		assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_ERROR, w->ep), 0);
		good += ended_well(w, open);
		assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_RESET, NULL), 0);
		new_queue(w, queue_attr(w));
		assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_READY, NULL), 0);
	}
	stop = true;
	pthread_join(reader.thread, NULL);
	while (xtal_shared_cq_poll(w->bcq, 1, &r) == 1)
		note(&reader, &r);
	assert_int_equal(reader.wrong, 0);
	assert_int_equal(reader.taken, good);
	assert_true(good > 0);
}

/* ---- A peer that dies ---- */

static const char *program, *path_name;

/* Sends for ever, in pieces. */
static int sender(const char *tid)
{
	struct xtal_shared_cq_attr ca = { 0 };
	struct xtal_queue_attr qa = { .depth = 8, .rnr_retry = XTAL_RNR_FOREVER };
	struct xtal_op op = { .opcode = XTAL_OP_SEND,
			      .local = (uintptr_t)source,
			      .len = 200000,
			      .flags = XTAL_OP_ANY_LOCAL,
			      .notify = { .addr = xtal_endpoint_address(JETTY_ID, true),
					  .eid = xtal_device_at(0)->eid,
					  .tid = (uint32_t)strtoul(tid, NULL, 10),
					  .token = TOKEN,
					  .token_valid = true } };
	struct xtal_context *ctx;
	struct xtal_queue *q;
	struct xtal_record r;

	if (xtal_context_open(xtal_device_at(0), &ctx) || xtal_shared_cq_create(ctx, &ca, &qa.cq) ||
	    xtal_queue_create(ctx, &qa, &q))
		return 1;
	for (;;) {
		xtal_queue_submit(q, &op);
		xtal_shared_cq_poll(qa.cq, 1, &r);
	}
}

static unsigned connections(struct world *w)
{
	struct xtal_list *all = &w->b->tcp.sessions;
	unsigned count = 0;

	if (!over_tcp)
		return 0;
	xtal_lock(&w->b->serving.lock);
	for (struct xtal_list *n = all->next; n != all; n = n->next)
		count += xtal_container_of(n, struct xtal_tcp_session, node)->conn != NULL;
	xtal_unlock(&w->b->serving.lock);
	return count;
}

static void take_big_ones(struct world *w, unsigned most, uint64_t until)
{
	struct xtal_record r;

	for (unsigned taken = 0; taken < most && proc_now() < until;) {
		if (xtal_shared_cq_poll(w->bcq, 1, &r) != 1)
			continue;
		assert_int_equal(r.status, XTAL_OK);
		receive(w, r.user * (BYTES / 2), BYTES / 2, r.user);
		taken++;
	}
}

/* What it was sending is never reported; others are received as before. */
static void a_peer_dies_while_it_sends(void **state)
{
	struct world *w = *state;
	char tid[16];

	if (proc_emulated())
		proc_skip("a program cannot start itself under the emulator");
	snprintf(tid, sizeof(tid), "%u", xtal_context_tid(w->b));
	for (unsigned j = 0; j < 2; j++)
		receive(w, j * (BYTES / 2), BYTES / 2, j);
	for (unsigned i = 0; i < proc_rounds(3, 100); i++) {
		const uint64_t until = a_while();
		struct xtal_record r;
		pid_t pid = fork();

		if (!pid) {
			execl(program, program, path_name, tid, (char *)NULL);
			_exit(127);
		}
		assert_true(pid > 0);
		take_big_ones(w, 3 + i, until);
		assert_true(proc_now() < until);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		take_big_ones(w, 1000, proc_now() + 20000000); /* what was under way */
		while (connections(w) > (i > 0) && proc_now() < until)
			xtal_shared_cq_poll(w->bcq, 0, &r);
		assert_true(connections(w) <= (i > 0)); /* our own queue's */
		submit_number(w, i);
		do {
			r = next(w, w->bcq);
			assert_int_equal(r.status, XTAL_OK);
			receive(w, r.user * (BYTES / 2), BYTES / 2, r.user);
		} while (r.len != 8);
		sent_number(w);
	}
}

static int run(const char *path)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(whoever_stops_polling_has_answered), TEST(two_threads_poll),
		TEST(nothing_is_missed_by_who_stops),     TEST(the_receive_queue_ends_meanwhile),
		TEST(a_peer_dies_while_it_sends),
	};

	if (!strcmp(path, "self")) /* nobody is polled there */
		return 0;
	printf("over %s\n", path);
	path_name = path;
	over_tcp = !strcmp(path, "tcp");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	program = "/proc/self/exe";
	if (argc > 2)
		return sender(argv[2]);
	return over_each_path(argc, argv, run);
}
