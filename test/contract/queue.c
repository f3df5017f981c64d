/* SPDX-License-Identifier: MIT */
/*
 * What a queue promises: exactly its depth, one completion for each accepted operation, in
 * order, with the user_ctx of its post. ctest: timeout=180 hosts
 */
#include "lib/pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rng.h"

#define AREA (512 * 1024ul)

static void a_queue_takes_exactly_its_depth(void **state)
{
	static const uint32_t depths[] = { 1, 2, 3, 4, 5, 63, 64, 65 };
	struct dma_seg local, remote;
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	for (unsigned i = 0; i < 8; i++) {
		struct dma_queue *q = pair_queue(&p, depths[i]);

		assert_non_null(q);
		for (unsigned kind = 0; kind < 3; kind++) {
			uint32_t accepted = 0;

			/* Short ones, atomics, and ones that are cut into pieces. */
			remote = part(&p.remote, 0, kind == 2 ? 200000 : 8);
			local = part(p.local, 0, remote.len);
			for (q->cfg.user_ctx = 0; accepted < 1000; q->cfg.user_ctx++) {
				dma_status s = kind == 1 ? dma_faa(q, &remote, &local, 1)
							 : dma_write(q, &remote, &local);

				if (s != DMA_STATUS_OK)
					break;
				accepted++;
			}
			assert_int_equal(accepted, depths[i]);
			assert_refused_because("full");
			for (uint64_t n = 0; n < depths[i]; n++) {
				struct dma_cr cr = take_cr(q);

				assert_int_equal(cr.status, 0);
				assert_int_equal(cr.user_ctx, n);
			}
			assert_int_equal(dma_poll_queue(q, 1, &(struct dma_cr){ 0 }), 0);
		}
		dma_free_queue(q);
	}
	pair_close(&p);
}

/* F84: full, refused, polled, taken again, for ever. */
static void a_full_queue_recovers(void **state)
{
	struct dma_seg local, remote;
	struct dma_queue *q;
	struct dma_cr cr[9];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	q = pair_queue(&p, 8);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (uint64_t round = 0; round < suite_scale(20000); round++) {
		uint32_t take = 1 + round % 8, taken = 0;

		while (dma_write(q, &remote, &local) == DMA_STATUS_OK)
			taken++;
		assert_int_equal(taken, round ? 1 + (round - 1) % 8 : 8);
		for (taken = 0; taken < take;) {
			int n = dma_poll_queue(q, take - taken, cr);

			assert_true(n >= 0 && (uint32_t)n <= take - taken);
			taken += (uint32_t)n;
		}
	}
	dma_free_queue(q);
	pair_close(&p);
}

/* ---- Mixed operations in order ---- */

struct expected {
	uint64_t user;
	uint32_t len;
	uint32_t status;
};

/* Posts a random operation; false: the queue is full. */
static bool post_any(struct pair *p, struct rng *rng, struct expected *e)
{
	struct dma_seg remote = part(&p->remote, 8 * rng_below(rng, 64), 8), word;
	struct dma_seg local = part(p->local, 0, 8);
	dma_status s = DMA_STATUS_INVAL;
	uint64_t kind = rng_below(rng, 1000);

	e->status = 0;
	if (kind < 400) {
		local.len = 1 + rng_below(rng, 1000);
		s = dma_write(p->queue, &remote, &local);
	} else if (kind < 600) {
		local.len = 1 + rng_below(rng, 1000);
		s = dma_read(p->queue, &remote, &local);
	} else if (kind < 700) {
		s = dma_faa(p->queue, &remote, &local, 1);
	} else if (kind < 800) {
		s = dma_cas(p->queue, &remote, &local, 0, 1);
	} else if (kind < 900) {
		word = part(&p->remote, 4096, 8);
		local.len = 1 + rng_below(rng, 3000);
		s = dma_write_with_notify(p->queue, &remote, &local, &word, kind);
	} else if (kind < 905) {
		local.len = 140000 + rng_below(rng, 200000);
		s = dma_write(p->queue, &remote, &local);
	} else if (kind < 940) {
		remote.token_value ^= 1;
		e->status = 8;
		s = dma_write(p->queue, &remote, &local);
	} else if (kind < 970) {
		remote.sva++;
		e->status = 6;
		s = dma_faa(p->queue, &remote, &local, 1);
	} else {
		local.sva += AREA;
		e->status = 4;
		s = dma_read(p->queue, &remote, &local);
	}
	e->len = e->status ? 0 : (uint32_t)local.len;
	e->user = p->queue->cfg.user_ctx;
	return s == DMA_STATUS_OK;
}

static void completions_keep_the_order(void **state)
{
	struct pair_attr attr = { .len = AREA, .depth = 61 };
	uint64_t ops = suite_scale(100000), head = 0, tail = 0;
	struct expected ring[64];
	struct rng rng = { 1 };
	struct pair p;

	(void)state;
	pair_open_attr(&p, &attr);
	while (head < ops) {
		uint64_t burst = rng_below(&rng, 70);
		struct dma_cr cr[64];
		int n;

		while (burst-- && tail < ops) {
			p.queue->cfg.user_ctx = tail * 3 + 1;
			if (!post_any(&p, &rng, &ring[tail % 64]))
				break;
			tail++;
		}
		assert_true(tail - head <= 61);
		n = dma_poll_queue(p.queue, 1 + (uint32_t)rng_below(&rng, 64), cr);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++, head++) {
			struct expected *e = &ring[head % 64];

			assert_true(head < tail);
			assert_int_equal(cr[i].user_ctx, e->user);
			assert_int_equal(cr[i].status, e->status);
			assert_int_equal(cr[i].completion_len, e->len);
		}
	}
	assert_int_equal(dma_poll_queue(p.queue, 1, &(struct dma_cr){ 0 }), 0);
	pair_assert_guards(&p);
	pair_close(&p);
}

/* The whole of a chain is posted at once: each link takes its data from where the one before it
 * leaves its own. */
static void a_write_takes_what_came_before_it(void **state)
{
	uint64_t rounds = suite_scale(2000), *l, seen;
	struct dma_seg counter, there, word, second, copy, old;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	l = (uint64_t *)(void *)p.mem.data;
	counter = part(&p.remote, 0, 8);
	there = part(&p.remote, 8, 8);
	copy = part(&p.remote, 16, 8);
	word = part(p.local, 0, 8);
	second = part(p.local, 64, 8);
	old = part(p.local, 128, 8);
	memset(l, 0, 4096);
	pair_poke(&p, p.remote.sva, l, 24);
	for (uint64_t i = 0; i < rounds; i++) {
		assert_int_equal(dma_faa(p.queue, &counter, &word, 1), DMA_STATUS_OK);
		assert_int_equal(dma_write(p.queue, &there, &word), DMA_STATUS_OK);
		assert_int_equal(dma_read(p.queue, &there, &second), DMA_STATUS_OK);
		assert_int_equal(dma_write_with_notify(p.queue, &copy, &second, &there, i + 1),
				 DMA_STATUS_OK);
		assert_int_equal(dma_cas(p.queue, &there, &old, i + 1, i), DMA_STATUS_OK);
		assert_int_equal(dma_write(p.queue, &there, &old), DMA_STATUS_OK);
		for (unsigned n = 0; n < 6; n++)
			assert_ok(p.queue, 8);
		pair_peek(&p, p.remote.sva + 16, &seen, 8);
		assert_int_equal(seen, i);
		pair_peek(&p, p.remote.sva + 8, &seen, 8);
		assert_int_equal(seen, i + 1);
	}
	pair_close(&p);
}

/* The same with data of any length, of which the second operation takes a part. */
static void a_write_takes_what_a_read_brought(void **state)
{
	static const uint64_t lengths[] = { 2, 9, 64, 300, 4096, 20000, 70000, 200000 };
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	for (uint64_t round = 0; round < suite_scale(160); round++) {
		uint64_t len = lengths[round % 8], from = round / 8 % 2 ? len / 2 : 0;
		uint64_t seed = round + 1;
		struct dma_seg source = part(&p.remote, 0, len), brought = part(p.local, 8, len);
		struct dma_seg there = part(&p.remote, AREA / 2, len - from);
		struct dma_seg half = part(p.local, 8 + from, len - from);
		struct dma_seg back = part(p.local, AREA / 2, len - from);

		memset(p.mem.data, 0, AREA);
		pair_fill(&p, p.remote.sva, len, seed);
		assert_int_equal(dma_read(p.queue, &source, &brought), DMA_STATUS_OK);
		assert_int_equal(dma_write(p.queue, &there, &half), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		assert_ok(p.queue, len - from);
		assert_int_equal(pattern_check(p.mem.data + 8, len, seed, 0), -1);
		assert_int_equal(dma_read(p.queue, &there, &back), DMA_STATUS_OK);
		assert_ok(p.queue, len - from);
		assert_int_equal(pattern_check(p.mem.data + AREA / 2, len - from, seed, from), -1);
	}
	pair_close(&p);
}

static void the_target_is_read_at_each_post(void **state)
{
	struct dma_seg local, remote;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 20; i++) {
		p.queue->cfg.user_ctx = i;
		p.queue->cfg.rmt_eid.dw0 = i % 2 ? LOOPBACK : LOOPBACK + 77;
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	}
	for (unsigned i = 0; i < 20; i++) {
		struct dma_cr cr = take_cr(p.queue);

		assert_int_equal(cr.user_ctx, i);
		assert_int_equal(cr.status, i % 2 ? 0 : 9);
	}
	pair_close(&p);
}

/* ---- Two posters and two pollers on one queue ---- */

struct crowd {
	struct pair *p;
	uint64_t ops; /* of each poster */
	_Atomic uint64_t taken, wrong;
};

struct poster {
	struct crowd *crowd;
	uint64_t base;
};

static void *post_many(void *arg)
{
	struct poster *me = arg;
	struct pair *p = me->crowd->p;
	struct dma_seg remote = part(&p->remote, 64 * (1 + me->base % 7), 8);
	struct dma_seg local = part(p->local, 64 * (1 + me->base % 7), 8);

	for (uint64_t i = 0; i < me->crowd->ops;) {
		if (dma_faa(p->queue, &remote, &local, 1) == DMA_STATUS_OK)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static void *poll_many(void *arg)
{
	struct crowd *c = arg;
	struct dma_cr cr[16];

	while (atomic_load(&c->taken) < 2 * c->ops) {
		int n = dma_poll_queue(c->p->queue, 16, cr);

		for (int i = 0; i < n; i++)
			if (cr[i].status || cr[i].completion_len != 8)
				atomic_fetch_add(&c->wrong, 1);
		if (n > 0)
			atomic_fetch_add(&c->taken, (uint64_t)n);
		else
			sched_yield();
	}
	return NULL;
}

static void two_may_post_while_two_poll(void **state)
{
	struct crowd c = { .ops = suite_scale(30000) };
	struct poster posters[2] = { { &c, 0 }, { &c, 1 } };
	pthread_t threads[4];
	uint64_t sum;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	c.p = &p;
	for (unsigned i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, post_many, &posters[i]);
		pthread_create(&threads[2 + i], NULL, poll_many, &c);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(c.taken, 2 * c.ops);
	assert_int_equal(c.wrong, 0);
	for (unsigned i = 0; i < 2; i++) {
		pair_peek(&p, p.remote.sva + 64 * (1 + i), &sum, 8);
		assert_int_equal(sum, c.ops);
	}
	assert_int_equal(dma_poll_queue(p.queue, 1, &(struct dma_cr){ 0 }), 0);
	pair_close(&p);
}

static void freeing_a_queue_drains_it(void **state)
{
	struct dma_seg local;
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	local = part(p.local, 0, 200000);
	for (unsigned i = 0; i < 30; i++) {
		struct dma_queue *q = pair_queue(&p, 16);

		for (unsigned k = 0; k < 16; k++) {
			pattern_fill(p.mem.data, 200000, i, 0);
			assert_int_equal(dma_write(q, &p.remote, &local), DMA_STATUS_OK);
		}
		dma_free_queue(q); /* nobody polled */
		pair_assert_pattern(&p, p.remote.sva, 200000, i);
	}
	pair_close(&p);
}

static void queues_are_independent(void **state)
{
	struct dma_seg local, remote;
	struct dma_queue *q[5];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 0, 8);
	for (unsigned i = 0; i < 5; i++) {
		q[i] = pair_queue(&p, 4);
		assert_non_null(q[i]);
		q[i]->cfg.user_ctx = 100 + i;
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(q[i]->queue_id, q[k]->queue_id);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(dma_write(q[i % 5], &remote, &local), DMA_STATUS_OK);
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned k = 0; k < 4; k++)
			assert_ok(q[i], 8);
		assert_int_equal(dma_poll_queue(q[i], 1, &(struct dma_cr){ 0 }), 0);
		dma_free_queue(q[i]);
	}
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_takes_exactly_its_depth),
		cmocka_unit_test(a_full_queue_recovers),
		cmocka_unit_test(completions_keep_the_order),
		cmocka_unit_test(a_write_takes_what_came_before_it),
		cmocka_unit_test(a_write_takes_what_a_read_brought),
		cmocka_unit_test(the_target_is_read_at_each_post),
		cmocka_unit_test(two_may_post_while_two_poll),
		cmocka_unit_test(freeing_a_queue_drains_it),
		cmocka_unit_test(queues_are_independent),
	};

	return suite_run(argc, argv, "queue", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
