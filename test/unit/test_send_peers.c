/* SPDX-License-Identifier: MIT */
/* ctest: timeout=120 */
/* Messages whose receivers are not ready, or are several, once over each path. */
#include <pthread.h>
#include <stdatomic.h>

#include "send_world.h"

/* The receiver's wish counts, not the sender's. */
static void a_receiver_says_when_to_come_again(void **state)
{
	static const uint32_t wish_us[] = { 15000, 0 };
	struct world *w = *state;
	struct xtal_queue_attr attr = queue_attr(w);
	struct xtal_endpoint_attr ea = {
		.id = JETTY_ID, .jetty = true, .cq = w->bcq, .owner = &owner_b, .rq = w->rq
	};

	attr.rnr_retry = 3;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t before, least = 3u * (wish_us[i] ? wish_us[i] : 5000) * 1000;

		attr.rnr_us = wish_us[i] ? 10 : 5000;
		xtal_endpoint_destroy(&w->ep);
		ea.rnr_us = wish_us[i];
		assert_int_equal(xtal_endpoint_create(w->b, &ea, &w->ep), 0);
		new_queue(w, attr);
		before = proc_now();
		send(w, 0, 8);
		sent(w, XTAL_NOT_READY);
		assert_true(proc_now() - before >= least);
		assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	}
}

/* Which endpoint, of three with one id. */
static uint32_t who_gets(struct world *w, uint8_t hint)
{
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);
	struct xtal_record r;

	op.hint = hint;
	op.notify.addr = xtal_endpoint_address(7, true);
	receive(w, 0, 8, 1);
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	r = next(w, w->bcq);
	assert_int_equal(r.status, XTAL_OK);
	sent(w, XTAL_OK);
	return (uint32_t)((uintptr_t)r.owner - 1000);
}

static void endpoints_may_share_an_id(void **state)
{
	struct world *w = *state;

	for (unsigned by_hint = 0; by_hint < 2; by_hint++) {
		struct xtal_endpoint_attr ea = {
			.id = 7, .jetty = true, .rq = w->rq, .cq = w->bcq, .token_valid = false
		};
		struct xtal_endpoint *ep[3], *none;
		uint32_t first;

		ea.sharing = by_hint ? XTAL_ENDPOINT_BY_HINT : XTAL_ENDPOINT_IN_TURN;
		for (uintptr_t i = 0; i < 3; i++) {
			ea.owner = (void *)(1000 + i);
			assert_int_equal(xtal_endpoint_create(w->b, &ea, &ep[i]), 0);
		}
		ea.sharing = by_hint ? XTAL_ENDPOINT_IN_TURN : XTAL_ENDPOINT_ALONE;
		assert_int_equal(xtal_endpoint_create(w->b, &ea, &none), -EEXIST);
		first = by_hint ? 0 : who_gets(w, 1) + 1;
		for (uint32_t i = 0; i < 9; i++)
			assert_int_equal(who_gets(w, (uint8_t)(by_hint ? i + 9 : 1)),
					 (first + i) % 3);
		xtal_endpoint_destroy(&ep[1]);
		if (by_hint) {
			assert_int_equal(who_gets(w, 0), 0);
			assert_int_equal(who_gets(w, 255), 2);
		}
		xtal_endpoint_destroy(&ep[0]);
		xtal_endpoint_destroy(&ep[2]);
	}
}

/* ---- Peers that are not ready ---- */

/* Posts a message of 8 bytes, or a write, to an endpoint of the context. */
static void post_to(struct world *w, struct xtal_context *to, enum xtal_opcode opcode,
		    uint8_t flags, uint64_t user)
{
	struct xtal_op op = message(w, opcode, 0, 8);

	op.user = user;
	op.flags = flags;
	op.notify.tid = xtal_context_tid(to);
	if (opcode == XTAL_OP_WRITE) {
		op.remote = in_sink(w);
		op.remote.tid = op.notify.tid;
	}
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
}

static void done(struct world *w, uint64_t user, uint32_t status)
{
	struct xtal_record r = next(w, w->acq);

	assert_int_equal(r.user, user);
	assert_int_equal(r.status, status);
}

static void a_peer_that_is_not_ready_stalls_no_other(void **state)
{
	struct world *w = *state;
	struct world other = { 0 };
	const uint32_t all = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC;
	struct xtal_segment_attr sa = { (uintptr_t)sink, BYTES, .rights = all };
	struct xtal_shared_cq_attr ca = { .owner = &other };

	assert_int_equal(xtal_context_open(xtal_device_at(0), &other.b), 0);
	assert_int_equal(xtal_shared_cq_create(other.b, &ca, &other.bcq), 0);
	assert_int_equal(xtal_segment_register(other.b, &sa, &other.bseg), 0);
	new_endpoint(&other, 64);
	for (unsigned i = 0; i < 20; i++)
		receive(&other, 0, 8, i);
	for (unsigned round = 0; round < 3; round++) {
		const uint64_t n = round * 100;

		post_to(w, w->b, XTAL_OP_SEND, 0, n + 1); /* finds no buffer */
		post_to(w, other.b, XTAL_OP_SEND, 0, n + 2);
		post_to(w, w->b, XTAL_OP_WRITE, 0, n + 3); /* follows the first one */
		post_to(w, other.b, XTAL_OP_WRITE, 0, n + 4);
		post_to(w, w->b, XTAL_OP_SEND, 0, n + 5);
		done(w, n + 2, XTAL_OK);
		done(w, n + 4, XTAL_OK);
		post_to(w, other.b, XTAL_OP_SEND, 0, n + 6);
		done(w, n + 6, XTAL_OK);
		post_to(w, other.b, XTAL_OP_SEND, XTAL_OP_FENCE, n + 7); /* overtakes nothing */
		post_to(w, other.b, XTAL_OP_SEND, 0, n + 8);
		assert_nothing(w, w->acq);
		if (round == 2)
			break;
		receive(w, 0, 8, 1);
		done(w, n + 1, XTAL_OK);
		done(w, n + 3, XTAL_OK);
		assert_nothing(w, w->acq);
		receive(w, 0, 8, 1);
		done(w, n + 5, XTAL_OK);
		done(w, n + 7, XTAL_OK);
		done(w, n + 8, XTAL_OK);
	}
	/* What was parked comes back in the order of posting. */
	post_to(w, w->b, XTAL_OP_WRITE, 0, 209);
	assert_int_equal(xtal_queue_set_state(w->q, XTAL_QUEUE_ERROR), 0);
	done(w, 201, XTAL_FLUSHED);
	done(w, 203, XTAL_FLUSHED);
	done(w, 205, XTAL_FLUSHED);
	for (unsigned i = 207; i < 210; i++)
		done(w, i, XTAL_FLUSHED);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	xtal_endpoint_destroy(&other.ep);
	xtal_segment_unregister(&other.bseg);
	assert_int_equal(xtal_receive_queue_destroy(&other.rq), 0);
	assert_int_equal(xtal_shared_cq_destroy(&other.bcq, false), 0);
	new_queue(w, queue_attr(w));
	assert_int_equal(xtal_context_close(&other.b), 0);
}

/* ---- A program that polls in a loop ---- */

struct poller {
	struct xtal_shared_cq *cq;
	atomic_bool stop;
	atomic_ullong polls;
};

static void *poll_on(void *arg)
{
	struct poller *p = arg;
	struct xtal_record r;

	while (!atomic_load(&p->stop)) {
		assert_int_equal(xtal_shared_cq_poll(p->cq, 1, &r), 0);
		atomic_fetch_add(&p->polls, 1);
	}
	return NULL;
}

/* It finds nothing, and helps each time: whoever else needs the queue gets it in between. */
static void a_poller_lets_others_have_the_queue(void **state)
{
	struct world *w = *state;
	struct poller p = { .cq = w->acq };
	uint64_t waited = 0;
	pthread_t thread[2];

	send(w, 0, 8); /* finds no buffer */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poll_on, &p), 0);
	for (unsigned i = 0; i < 300; i++) {
		unsigned long long before = atomic_load(&p.polls);

		assert_int_equal(xtal_queue_get_state(w->q), XTAL_QUEUE_READY);
		waited += atomic_load(&p.polls) - before;
		usleep(100);
	}
	atomic_store(&p.stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	/* A few; without it, thousands. */
	assert_true(waited / 300 < 1000);
	receive(w, 0, 8, 1);
	sent(w, XTAL_OK);
}

static int run(const char *path)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(a_receiver_says_when_to_come_again),
		TEST(endpoints_may_share_an_id),
		TEST(a_peer_that_is_not_ready_stalls_no_other),
		TEST(a_poller_lets_others_have_the_queue),
	};

	printf("over %s\n", path);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return over_each_path(argc, argv, run);
}
