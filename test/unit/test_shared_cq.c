/* SPDX-License-Identifier: MIT */
/* Shared completion queues, event channels, and the states of queues that have them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/channel.h"
#include "core/context.h"
#include "core/queue.h"
#include "core/segment.h"
#include "core/shared_cq.h"
#include "lib/proc.h"

static uint64_t memory[64];

struct world {
	struct xtal_context *ctx;
	struct xtal_channel *channel;
	struct xtal_shared_cq *cq;
	struct xtal_segment *segment;
	struct xtal_remote remote;
};

static int setup(void **state)
{
	static struct world w;
	struct xtal_shared_cq_attr attr = { .owner = &w };
	struct xtal_segment_attr seg = { .addr = (uintptr_t)memory,
					 .len = sizeof(memory),
					 .rights = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE |
						   XTAL_RIGHT_ATOMIC };

	memset(&w, 0, sizeof(w));
	if (xtal_context_open(xtal_device_at(0), &w.ctx) || xtal_channel_create(w.ctx, &w.channel))
		return -1;
	attr.channel = w.channel;
	if (xtal_shared_cq_create(w.ctx, &attr, &w.cq) ||
	    xtal_segment_register(w.ctx, &seg, &w.segment))
		return -1;
	w.remote = (struct xtal_remote){ .addr = (uintptr_t)memory,
					 .eid = xtal_context_device(w.ctx)->eid,
					 .tid = xtal_context_tid(w.ctx) };
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	xtal_segment_unregister(&w->segment);
	return xtal_shared_cq_destroy(&w->cq, false) || xtal_channel_destroy(&w->channel) ||
	       xtal_context_close(&w->ctx);
}

#define STAMP 0xaff00d5u

static struct xtal_queue *new_queue(struct world *w, struct xtal_queue_attr attr)
{
	struct xtal_queue *q = NULL;

	attr.cq = w->cq;
	attr.stamp = STAMP;
	attr.depth = attr.depth ? attr.depth : 8;
	assert_int_equal(xtal_queue_create(w->ctx, &attr, &q), 0);
	return q;
}

static struct xtal_op write_op(struct world *w, uint64_t user)
{
	return (struct xtal_op){ .user = user,
				 .opcode = XTAL_OP_WRITE,
				 .local = (uintptr_t)&memory[32],
				 .len = 8,
				 .remote = w->remote };
}

static void post(struct world *w, struct xtal_queue *q, uint64_t user, uint8_t flags)
{
	struct xtal_op op = write_op(w, user);

	op.flags = flags;
	assert_int_equal(xtal_queue_submit(q, &op), 0);
}

/* Nobody has a segment there: it ends with REMOTE_ACCESS. */
static void post_bad(struct world *w, struct xtal_queue *q, uint64_t user)
{
	struct xtal_op op = write_op(w, user);

	op.remote.addr += sizeof(memory);
	assert_int_equal(xtal_queue_submit(q, &op), 0);
}

static struct xtal_record poll_one(struct world *w)
{
	struct xtal_record r = { 0 };
	int n = 0;

	for (unsigned i = 0; i < 1000000 && n == 0; i++)
		n = xtal_shared_cq_poll(w->cq, 1, &r);
	assert_int_equal(n, 1);
	return r;
}

static void assert_empty(struct world *w)
{
	struct xtal_record r;

	assert_int_equal(xtal_shared_cq_poll(w->cq, 1, &r), 0);
}

static void records_tell_whose_they_are(void **state)
{
	struct world *w = *state;
	int mine[2];
	struct xtal_queue *a = new_queue(w, (struct xtal_queue_attr){ .owner = &mine[0], .id = 7 });
	struct xtal_queue *b =
		new_queue(w, (struct xtal_queue_attr){ .owner = &mine[1], .id = 9, .jetty = true });
	struct xtal_record r[8];
	unsigned of_a = 0, of_b = 0;

	for (uint64_t i = 0; i < 4; i++) {
		post(w, a, i, 0);
		post(w, b, 10 + i, 0);
	}
	assert_int_equal(xtal_shared_cq_poll(w->cq, 8, r), 8);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(r[i].status, XTAL_OK);
		assert_int_equal(r[i].len, 8);
		assert_int_equal(r[i].opcode, XTAL_OP_WRITE);
		if (r[i].owner == &mine[0]) {
			assert_int_equal(r[i].user, of_a++);
			assert_int_equal(r[i].local_id, 7);
			assert_int_equal(r[i].flags, 0);
		} else {
			assert_ptr_equal(r[i].owner, &mine[1]);
			assert_int_equal(r[i].user, 10 + of_b++);
			assert_int_equal(r[i].local_id, 9);
			assert_int_equal(r[i].flags, XTAL_RECORD_JETTY);
		}
	}
	assert_int_equal(of_a, 4);
	assert_empty(w);
	xtal_queue_destroy(&a);
	xtal_queue_destroy(&b);
}

static void many_queues_take_turns(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q[20];

	for (uint32_t i = 0; i < 20; i++)
		q[i] = new_queue(w, (struct xtal_queue_attr){ .id = i });
	for (unsigned round = 0; round < 50; round++) {
		uint32_t seen = 0;

		for (uint32_t i = 0; i < 20; i++)
			post(w, q[i], round, 0);
		for (uint32_t i = 0; i < 20; i++) {
			struct xtal_record r = poll_one(w);

			assert_int_equal(r.user, round);
			seen |= 1u << r.local_id;
		}
		assert_int_equal(seen, 0xfffff);
		assert_empty(w);
	}
	for (uint32_t i = 0; i < 20; i++)
		xtal_queue_destroy(&q[i]);
}

/* Takes the plain ones that are seen at the front, at most count; their user values. */
static uint32_t take_plain(struct world *w, uint32_t count, uint64_t *users, uint32_t *id)
{
	const struct xtal_signature *by = NULL;
	struct xtal_run run = xtal_shared_cq_peek(w->cq, count, &by);
	uint32_t n = 0;

	if (!run.count)
		return 0;
	assert_true(run.count <= count);
	for (; n < run.count && xtal_completion_is_plain(&run.first[n]); n++)
		users[n] = run.first[n].user;
	*id = run.first->report.queue_id;
	assert_int_equal(by->stamp, STAMP);
	xtal_shared_cq_polled(w->cq, count, n);
	return n;
}

static void the_short_way_takes_plain_ones_in_order(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .id = 5 });
	struct xtal_async_event ev;
	uint64_t users[8], next = 0;
	uint32_t id = 0;

	assert_int_equal(take_plain(w, 8, users, &id), 0);
	for (unsigned round = 0; round < 10; round++) { /* at all places of the ring */
		for (uint64_t i = 0; i < 5; i++)
			post(w, q, 5 * round + i, 0);
		while (next < 5 * (round + 1)) {
			uint32_t n = take_plain(w, 3, users, &id);

			assert_true(n > 0);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(users[i], next++);
		}
	}
	assert_int_equal(id, 5);
	assert_empty(w);
	post(w, q, 1, 0);
	post(w, q, 2, XTAL_OP_UNSIGNALLED);
	post(w, q, 3, 0);
	post_bad(w, q, 4);
	while (take_plain(w, 8, users, &id)) /* up to the ring's end, then the rest */
		assert_int_equal(users[0], 1);
	assert_int_equal(poll_one(w).user, 3);
	assert_int_equal(take_plain(w, 8, users, &id), 0);
	assert_int_equal(poll_one(w).user, 4);
	assert_int_equal(poll_one(w).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_context_wait_async(w->ctx, 0, &ev, NULL, NULL), 1);
	assert_empty(w);
	xtal_queue_destroy(&q);
}

static void the_short_way_lets_queues_take_turns(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q[3];
	uint64_t users[8];
	uint32_t id, seen = 0;

	for (uint32_t i = 0; i < 3; i++)
		q[i] = new_queue(w, (struct xtal_queue_attr){ .id = i });
	for (uint32_t i = 0; i < 3; i++)
		for (uint64_t k = 0; k < 4; k++)
			post(w, q[i], k, 0);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(take_plain(w, 1, users, &id), 1);
		assert_int_equal(users[0], i / 3);
		seen |= 1u << id;
		if (i % 3 == 2) {
			assert_int_equal(seen, 7);
			seen = 0;
		}
	}
	assert_empty(w);
	for (uint32_t i = 0; i < 3; i++)
		xtal_queue_destroy(&q[i]);
}

static void unsignalled_ones_are_not_reported_and_give_their_place_back(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .depth = 4 });
	struct xtal_op op = write_op(w, 0);

	for (unsigned round = 0; round < 5; round++) {
		struct xtal_record r;

		for (unsigned i = 0; i < 3; i++)
			post(w, q, 99, XTAL_OP_UNSIGNALLED);
		post(w, q, round, 0);
		assert_int_equal(xtal_queue_submit(q, &op), -EAGAIN);
		r = poll_one(w);
		assert_int_equal(r.user, round);
		assert_empty(w);
	}
	xtal_queue_destroy(&q);
}

static void a_failed_one_is_reported_also_unsignalled(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .id = 3 });
	struct xtal_op op = write_op(w, 5);
	struct xtal_async_event ev;
	struct xtal_record r;

	op.flags = XTAL_OP_UNSIGNALLED;
	op.remote.addr += sizeof(memory);
	assert_int_equal(xtal_queue_submit(q, &op), 0);
	r = poll_one(w);
	assert_int_equal(r.status, XTAL_REMOTE_ACCESS);
	assert_int_equal(r.user, 5);
	assert_int_equal(poll_one(w).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_queue_get_state(q), XTAL_QUEUE_ERROR);
	assert_int_equal(xtal_context_wait_async(w->ctx, 0, &ev, NULL, NULL), 1);
	assert_int_equal(ev.type, XTAL_ASYNC_QUEUE_ERROR);
	assert_int_equal(ev.object_id, 3);
	assert_empty(w);
	xtal_queue_destroy(&q);
}

static void what_is_posted_after_an_error_comes_back_by_flush(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .depth = 4 });
	struct xtal_op op = write_op(w, 9);
	struct xtal_async_event ev;
	uint64_t users[4];

	post(w, q, 1, 0);
	post_bad(w, q, 2);
	for (uint64_t i = 0; i < 4; i++)
		post(w, q, 10 + i, 0);
	assert_int_equal(xtal_queue_submit(q, &op), -EAGAIN);
	assert_int_equal(poll_one(w).status, XTAL_OK);
	assert_int_equal(poll_one(w).status, XTAL_REMOTE_ACCESS);
	assert_int_equal(xtal_queue_flush(q, 4, users), 0);
	assert_int_equal(poll_one(w).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_queue_flush(q, 3, users), 3);
	assert_int_equal(users[0], 10);
	assert_int_equal(users[2], 12);
	assert_int_equal(xtal_queue_flush(q, 4, users), 1);
	assert_int_equal(users[0], 13);
	assert_int_equal(xtal_queue_flush(q, 4, users), 0);
	assert_int_equal(xtal_context_wait_async(w->ctx, 0, &ev, NULL, NULL), 1);
	assert_empty(w);
	xtal_queue_destroy(&q);
}

static void states_change_as_the_table_says(void **state)
{
	static const bool allowed[4][4] = {
		/* to:           RESET READY SUSPENDED ERROR */
		[XTAL_QUEUE_RESET] = { 1, 1, 0, 0 },
		[XTAL_QUEUE_READY] = { 0, 1, 1, 1 },
		[XTAL_QUEUE_SUSPENDED] = { 0, 0, 1, 1 },
		[XTAL_QUEUE_ERROR] = { 1, 0, 0, 1 },
	};
	struct world *w = *state;

	for (int from = 0; from < 4; from++)
		for (int to = 0; to < 4; to++) {
			struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ 0 });
			int want = allowed[from][to] ? 0 : -EPERM;

			if (from == XTAL_QUEUE_RESET)
				assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_ERROR), 0);
			assert_int_equal(xtal_queue_set_state(q, (enum xtal_queue_state)from), 0);
			assert_int_equal(xtal_queue_get_state(q), from);
			assert_int_equal(xtal_queue_set_state(q, (enum xtal_queue_state)to), want);
			assert_int_equal(xtal_queue_get_state(q), want ? from : to);
			xtal_queue_destroy(&q);
		}
	assert_empty(w);
}

static void error_tells_when_it_is_flushed_also_with_nothing_outstanding(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .id = 4 });
	struct xtal_record r;

	assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_ERROR), 0);
	r = poll_one(w);
	assert_int_equal(r.status, XTAL_FLUSH_DONE);
	assert_int_equal(r.local_id, 4);
	assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_ERROR), 0);
	assert_empty(w);
	xtal_queue_destroy(&q);
}

static void suspended_keeps_what_is_posted_and_error_flushes_it(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .depth = 4 });
	struct xtal_op op = write_op(w, 9);

	post(w, q, 1, 0);
	assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_SUSPENDED), 0);
	assert_int_equal(poll_one(w).user, 1);
	assert_int_equal(poll_one(w).status, XTAL_SUSPEND_DONE);
	memory[0] = 0;
	memory[32] = 5;
	for (uint64_t i = 0; i < 4; i++)
		post(w, q, 10 + i, 0);
	assert_int_equal(xtal_queue_submit(q, &op), -EAGAIN);
	assert_empty(w);
	assert_int_equal(memory[0], 0);
	assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_ERROR), 0);
	for (uint64_t i = 0; i < 4; i++) {
		struct xtal_record r = poll_one(w);

		assert_int_equal(r.status, XTAL_FLUSHED);
		assert_int_equal(r.user, 10 + i);
	}
	assert_int_equal(poll_one(w).status, XTAL_FLUSH_DONE);
	assert_int_equal(memory[0], 0);
	assert_empty(w);
	xtal_queue_destroy(&q);
}

static void an_error_suspends_when_asked_to(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .error_suspend = true });
	struct xtal_async_event ev;

	post_bad(w, q, 1);
	assert_int_equal(poll_one(w).status, XTAL_REMOTE_ACCESS);
	assert_int_equal(poll_one(w).status, XTAL_SUSPEND_DONE);
	assert_int_equal(xtal_queue_get_state(q), XTAL_QUEUE_SUSPENDED);
	assert_int_equal(xtal_context_wait_async(w->ctx, 0, &ev, NULL, NULL), 1);
	xtal_queue_destroy(&q);
	assert_empty(w);
}

static void reset_forgets_and_ready_begins_anew(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .depth = 4 });
	struct xtal_op op = write_op(w, 9);

	for (unsigned round = 0; round < 10; round++) {
		post(w, q, 1, 0);
		assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_ERROR), 0);
		post(w, q, 2, 0);
		assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_RESET), 0);
		assert_int_equal(xtal_queue_submit(q, &op), -ENOTCONN);
		assert_empty(w);
		assert_int_equal(xtal_queue_set_state(q, XTAL_QUEUE_READY), 0);
		for (uint64_t i = 0; i < 4; i++)
			post(w, q, 20 + i, 0);
		assert_int_equal(xtal_queue_submit(q, &op), -EAGAIN);
		for (uint64_t i = 0; i < 4; i++)
			assert_int_equal(poll_one(w).user, 20 + i);
	}
	xtal_queue_destroy(&q);
}

static void a_destroyed_queue_leaves_nothing(void **state)
{
	struct world *w = *state;
	struct xtal_queue *stays = new_queue(w, (struct xtal_queue_attr){ .id = 1 });

	for (unsigned generation = 0; generation < 50; generation++) {
		struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ .id = 2 });

		post(w, q, 1, 0);
		post(w, stays, generation, 0);
		xtal_queue_destroy(&q);
		assert_int_equal(poll_one(w).user, generation);
		assert_empty(w);
	}
	xtal_queue_destroy(&stays);
}

static bool readable(struct world *w)
{
	struct pollfd p = { .fd = xtal_channel_fd(w->channel), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int events(struct world *w)
{
	void *owners[4] = { 0 };
	int n = xtal_channel_wait(w->channel, 4, 0, owners, NULL, NULL);

	for (int i = 0; i < n; i++)
		assert_ptr_equal(owners[i], w);
	xtal_shared_cq_ack(w->cq, (uint32_t)n);
	return n;
}

static void an_armed_queue_fires_once(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ 0 });

	post(w, q, 1, 0);
	assert_false(readable(w));
	assert_int_equal(events(w), 0);
	poll_one(w);
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	assert_false(readable(w));
	post(w, q, 2, XTAL_OP_UNSIGNALLED);
	assert_false(readable(w));
	post(w, q, 3, 0);
	assert_true(readable(w));
	post(w, q, 4, 0);
	assert_int_equal(events(w), 1);
	assert_false(readable(w));
	/* One is polled, the other waits: arming fires at once. */
	assert_int_equal(poll_one(w).user, 3);
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	assert_int_equal(events(w), 1);
	assert_int_equal(poll_one(w).user, 4);
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	assert_int_equal(events(w), 0);
	post(w, q, 5, 0);
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	assert_int_equal(events(w), 2);
	xtal_queue_destroy(&q);
}

static void armed_for_solicited_it_fires_for_errors(void **state)
{
	struct world *w = *state;
	struct xtal_queue *q = new_queue(w, (struct xtal_queue_attr){ 0 });
	struct xtal_async_event ev;

	post(w, q, 1, 0);
	assert_int_equal(xtal_shared_cq_arm(w->cq, true), 0);
	post(w, q, 2, 0);
	assert_int_equal(events(w), 0);
	post_bad(w, q, 3);
	assert_int_equal(events(w), 1);
	assert_int_equal(xtal_shared_cq_arm(w->cq, true), 0);
	assert_int_equal(events(w), 1);
	assert_int_equal(xtal_context_wait_async(w->ctx, 0, &ev, NULL, NULL), 1);
	xtal_queue_destroy(&q);
	/* Armed for all is more than armed for some. */
	q = new_queue(w, (struct xtal_queue_attr){ 0 });
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	assert_int_equal(xtal_shared_cq_arm(w->cq, true), 0);
	post(w, q, 1, 0);
	assert_int_equal(events(w), 1);
	xtal_queue_destroy(&q);
}

static void *ack_later(void *arg)
{
	struct world *w = arg;

	usleep(20000);
	xtal_shared_cq_ack(w->cq, 1);
	return NULL;
}

static void destroying_waits_for_acknowledgements(void **state)
{
	struct world *w = *state;
	struct xtal_shared_cq_attr attr = { .channel = w->channel, .owner = w };
	struct xtal_shared_cq *kept = w->cq;
	struct xtal_queue *q;
	pthread_t thread;
	void *owner;

	assert_int_equal(xtal_shared_cq_create(w->ctx, &attr, &w->cq), 0);
	q = new_queue(w, (struct xtal_queue_attr){ 0 });
	assert_int_equal(xtal_shared_cq_destroy(&w->cq, true), -EBUSY);
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	post(w, q, 1, 0);
	assert_int_equal(xtal_channel_wait(w->channel, 1, -1, &owner, NULL, NULL), 1);
	/* One more that nobody takes. */
	assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
	xtal_queue_destroy(&q);
	assert_int_equal(xtal_shared_cq_destroy(&w->cq, false), -EAGAIN);
	assert_int_equal(xtal_channel_destroy(&w->channel), -EBUSY);
	assert_int_equal(pthread_create(&thread, NULL, ack_later, w), 0);
	assert_int_equal(xtal_shared_cq_destroy(&w->cq, true), 0);
	assert_null(w->cq);
	pthread_join(thread, NULL);
	w->cq = kept;
	assert_false(readable(w));
}

static void without_a_channel_there_is_no_arming(void **state)
{
	struct world *w = *state;
	struct xtal_shared_cq_attr attr = { 0 };
	struct xtal_shared_cq *cq;

	assert_int_equal(xtal_shared_cq_create(w->ctx, &attr, &cq), 0);
	assert_int_equal(xtal_shared_cq_arm(cq, false), -EINVAL);
	assert_int_equal(xtal_shared_cq_poll(cq, 0, NULL), 0);
	assert_int_equal(xtal_shared_cq_destroy(&cq, false), 0);
}

struct race {
	struct world *w;
	struct xtal_queue *q;
	unsigned rounds;
	_Atomic unsigned turn;
};

static void *post_in_turn(void *arg)
{
	struct race *r = arg;

	for (unsigned i = 0; i < r->rounds; i++) {
		while (atomic_load(&r->turn) != i)
			sched_yield();
		for (volatile unsigned spin = 0; spin < i % 257; spin++)
			;
		post(r->w, r->q, i, 0);
	}
	return NULL;
}

/* Between an empty poll and the wait a completion comes: the event never fails to. */
static void no_event_is_lost_between_poll_and_arm(void **state)
{
	struct world *w = *state;
	struct race r = { .w = w, .rounds = proc_rounds(3000, 1000000) };
	pthread_t thread;

	r.q = new_queue(w, (struct xtal_queue_attr){ 0 });
	assert_int_equal(pthread_create(&thread, NULL, post_in_turn, &r), 0);
	for (unsigned i = 0; i < r.rounds; i++) {
		struct xtal_record rec;
		void *owner;
		int n;

		atomic_store(&r.turn, i);
		n = xtal_shared_cq_poll(w->cq, 1, &rec);
		if (!n) {
			assert_int_equal(xtal_shared_cq_arm(w->cq, false), 0);
			n = xtal_channel_wait(w->channel, 1, 2000, &owner, NULL, NULL);
			assert_int_equal(n, 1);
			xtal_shared_cq_ack(w->cq, 1);
			n = xtal_shared_cq_poll(w->cq, 1, &rec);
		}
		assert_int_equal(n, 1);
		assert_int_equal(rec.user, i);
	}
	pthread_join(thread, NULL);
	while (events(w) > 0)
		;
	xtal_queue_destroy(&r.q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_tell_whose_they_are),
		cmocka_unit_test(many_queues_take_turns),
		cmocka_unit_test(the_short_way_takes_plain_ones_in_order),
		cmocka_unit_test(the_short_way_lets_queues_take_turns),
		cmocka_unit_test(unsignalled_ones_are_not_reported_and_give_their_place_back),
		cmocka_unit_test(a_failed_one_is_reported_also_unsignalled),
		cmocka_unit_test(what_is_posted_after_an_error_comes_back_by_flush),
		cmocka_unit_test(states_change_as_the_table_says),
		cmocka_unit_test(error_tells_when_it_is_flushed_also_with_nothing_outstanding),
		cmocka_unit_test(suspended_keeps_what_is_posted_and_error_flushes_it),
		cmocka_unit_test(an_error_suspends_when_asked_to),
		cmocka_unit_test(reset_forgets_and_ready_begins_anew),
		cmocka_unit_test(a_destroyed_queue_leaves_nothing),
		cmocka_unit_test(an_armed_queue_fires_once),
		cmocka_unit_test(armed_for_solicited_it_fires_for_errors),
		cmocka_unit_test(destroying_waits_for_acknowledgements),
		cmocka_unit_test(without_a_channel_there_is_no_arming),
		cmocka_unit_test(no_event_is_lost_between_poll_and_arm),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
