/* SPDX-License-Identifier: MIT */
/*
 * Making and dropping everything again and again: nothing grows, nothing gets slow, and
 * threads may do it at the same time (F18, F78, F135). ctest: timeout=180 adopt hosts
 */
#include "lib/pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rng.h"

static void registering_is_flat(void **state)
{
	uint64_t rounds = suite_scale(100000), end = suite_deadline(20);
	struct rng rng = { 3 };
	struct held before = { 0 };
	struct pair p;

	(void)state;
	pair_open(&p, 256 * 1024);
	for (uint64_t i = 0; i < rounds && suite_now_ms() < end; i++) {
		uint64_t at = rng_below(&rng, 200 * 1024), len = 1 + rng_below(&rng, 50 * 1024);
		struct dma_seg *s = dma_register_seg(
			p.ctx, &(struct dma_seg_cfg){ .addr = p.local->sva + at,
						      .len = len,
						      .token_value = (uint32_t)i });

		assert_non_null(s);
		if (i % 64 == 0) { /* used as a source, too */
			assert_int_equal(dma_write(p.queue, &p.remote, s), DMA_STATUS_OK);
			assert_ok(p.queue, len);
		}
		dma_unregister_seg(p.ctx, s);
		if (i == rounds / 10)
			before = suite_held();
	}
	if (before.fds)
		suite_assert_flat(&before, 8, 1024);
	pair_close(&p);
}

/* The owner registers and withdraws; each is reached once. */
static void peers_of_short_lived_segments_stay_flat(void **state)
{
	uint64_t rounds = suite_scale(5000), end = suite_deadline(15);
	struct held before = { 0 };
	struct dma_seg local;
	struct pair p;

	(void)state;
	pair_open(&p, 64 * 1024);
	local = part(p.local, 0, 8);
	for (uint64_t i = 0; i < rounds && suite_now_ms() < end; i++) {
		struct dma_seg s =
			pair_register(&p, p.remote.sva + i % 1000 * 8, 64, (uint32_t)i + 1, true);

		assert_int_equal(dma_write(p.queue, &s, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		pair_unregister(&p, &s);
		if (i == rounds / 10)
			before = suite_held();
	}
	if (before.fds)
		suite_assert_flat(&before, 8, 2048);
	pair_close(&p);
}

static void importing_is_flat(void **state)
{
	struct held before = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		struct dma_seg *s = dma_import_seg(&(struct dma_seg_cfg){
			.addr = i + 1, .len = i + 1, .tid = (uint32_t)i, .token_value = 5 });

		assert_non_null(s);
		assert_int_equal(s->sva, i + 1);
		assert_int_equal(s->handle, 0);
		dma_unimport_seg(s);
		if (i == 1000)
			before = suite_held();
	}
	suite_assert_flat(&before, 2, 512);
}

static void queues_come_and_go(void **state)
{
	uint64_t rounds = suite_scale(2000);
	struct held before = { 0 };
	struct dma_seg local;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	local = part(p.local, 0, 8);
	for (uint64_t i = 0; i < rounds; i++) {
		struct dma_queue *q = pair_queue(&p, 1 + (uint32_t)(i % 100));

		assert_non_null(q);
		if (i % 3 == 0)
			assert_true(xtal_queue_fd(q) >= 0);
		assert_int_equal(dma_write(q, &p.remote, &local), DMA_STATUS_OK);
		if (i % 2)
			assert_ok(q, 8);
		dma_free_queue(q);
		if (i == rounds / 10)
			before = suite_held();
	}
	suite_assert_flat(&before, 8, 1024);
	pair_close(&p);
}

/* F78: a thousand contexts, one after the other. */
static void contexts_come_and_go_quickly(void **state)
{
	uint64_t begin, rounds = suite_scale(1000);
	struct held before = { 0 };
	struct dma_seg local;
	struct dma_cr cr;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	local = part(p.local, 0, 8);
	begin = suite_now_ms();
	for (uint64_t i = 0; i < rounds; i++) {
		struct dma_context *ctx = dma_create_context(&p.list[0]);
		struct dma_queue *q;
		struct dma_seg *s;

		assert_non_null(ctx);
		assert_int_not_equal(ctx->tid, p.ctx->tid);
		if (i % 10 == 0) { /* used */
			q = dma_alloc_queue(ctx, &(struct queue_cfg){ .queue_depth = 4,
								      .rmt_eid.dw0 = LOOPBACK });
			s = dma_register_seg(ctx,
					     &(struct dma_seg_cfg){ .addr = local.sva, .len = 8 });
			assert_int_equal(dma_write(q, &p.remote, &local), DMA_STATUS_OK);
			cr = take_cr(q);
			assert_int_equal(cr.status, 0);
			dma_free_queue(q);
			dma_unregister_seg(ctx, s);
		}
		dma_delete_context(ctx);
		if (i == rounds / 10)
			before = suite_held();
	}
	assert_in_range(suite_now_ms() - begin, 0, suite_sanitized() ? 60000 : 10000);
	suite_assert_flat(&before, 16, 2048);
	pair_close(&p);
}

static void several_contexts_work_side_by_side(void **state)
{
	struct dma_context *ctx[8];
	struct dma_queue *q[8];
	struct dma_seg *s[8];
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	for (unsigned i = 0; i < 8; i++) {
		ctx[i] = dma_create_context(&p.list[0]);
		assert_non_null(ctx[i]);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(ctx[i]->tid, ctx[k]->tid);
		q[i] = dma_alloc_queue(
			ctx[i], &(struct queue_cfg){ .queue_depth = 4, .rmt_eid.dw0 = LOOPBACK });
		s[i] = dma_register_seg(ctx[i],
					&(struct dma_seg_cfg){ .addr = p.local->sva, .len = 8 });
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(dma_write(q[i], &p.remote, s[i]), DMA_STATUS_OK);
	for (unsigned i = 0; i < 8; i++)
		assert_ok(q[i], 8);
	for (unsigned i = 0; i < 8; i++) {
		dma_free_queue(q[i]);
		dma_unregister_seg(ctx[i], s[i]);
		dma_delete_context(ctx[i]);
	}
	pair_close(&p);
}

/* ---- F135: sixteen threads do everything at once ---- */

#define THREADS 16

struct worker {
	struct pair *p;
	unsigned number;
	uint64_t rounds, end;
	int bad;
};

static int wait_one(struct dma_queue *q)
{
	struct dma_cr cr;

	while (!dma_poll_queue(q, 1, &cr))
		sched_yield();
	return (int)cr.status;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct pair *p = w->p;
	struct dma_queue *q = pair_queue(p, 8);
	uint8_t *mine = p->mem.data + w->number * 4096;

	for (uint64_t i = 0; q && i < w->rounds && suite_now_ms() < w->end && !w->bad; i++) {
		struct dma_seg *local =
			dma_register_seg(p->ctx, &(struct dma_seg_cfg){ .addr = (uintptr_t)mine,
									.len = 256 + i % 512 });
		struct dma_seg *remote = dma_import_seg(
			&(struct dma_seg_cfg){ .addr = p->remote.sva + w->number * 4096,
					       .len = 4096,
					       .tid = p->remote.tid,
					       .token_value = PAIR_TOKEN + (i % 16 == 0),
					       .token_value_valid = true });
		int want = i % 16 == 0 ? 8 : 0;

		if (!local || !remote) {
			w->bad = 1;
			break;
		}
		pattern_fill(mine, local->len, i, 0);
		if (dma_write(q, remote, local) || wait_one(q) != want)
			w->bad = 2;
		memset(mine, 0, local->len);
		if (dma_read(q, remote, local) || wait_one(q) != want)
			w->bad = 3;
		if (!w->bad && !want && pattern_check(mine, local->len, i, 0) >= 0)
			w->bad = 4;
		dma_unimport_seg(remote);
		dma_unregister_seg(p->ctx, local);
		if (i % 8 == 0) {
			dma_free_queue(q);
			q = pair_queue(p, 1 + i % 8);
		}
	}
	if (!q)
		w->bad = 5;
	dma_free_queue(q);
	return NULL;
}

static void sixteen_threads_do_everything(void **state)
{
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct pair p;
	int bad = 0;

	(void)state;
	pair_open(&p, THREADS * 4096);
	dma_unregister_seg(p.ctx, p.local);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ &p, i, suite_scale(1000), suite_deadline(15), 0 };
		pthread_create(&threads[i], NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bad |= workers[i].bad;
	}
	assert_int_equal(bad, 0);
	p.local = dma_register_seg(
		p.ctx, &(struct dma_seg_cfg){ .addr = (uintptr_t)p.mem.data, .len = 8 });
	pair_close(&p);
}

/* F04: the source is withdrawn while operations use it: 0 or 4, and no byte moves later. */
struct withdrawer {
	struct pair *p;
	_Atomic int stop;
	int bad, late;
};

static void *withdraw_and_register(void *arg)
{
	struct withdrawer *w = arg;

	for (unsigned round = 0; !atomic_load(&w->stop); round++) {
		dma_unregister_seg(w->p->ctx, w->p->local);
		/* The owner has what earlier rounds left here, so that a late read shows. */
		memset(w->p->mem.data, (int)(round & 0xff), 300000);
		suite_sleep_us(50);
		if (pattern_check_all(w->p->mem.data, 300000, (uint8_t)round) != -1)
			w->late++;
		w->p->local = dma_register_seg(
			w->p->ctx,
			&(struct dma_seg_cfg){ .addr = (uintptr_t)w->p->mem.data, .len = 300000 });
		if (!w->p->local)
			w->bad = 1;
		suite_sleep_us(50);
	}
	return NULL;
}

static void the_source_may_be_withdrawn_at_any_time(void **state)
{
	uint64_t end = suite_deadline(8);
	struct withdrawer w = { 0 };
	struct dma_seg local;
	pthread_t thread;
	struct pair p;

	(void)state;
	pair_open(&p, 300000);
	w.p = &p;
	local = *p.local;
	pthread_create(&thread, NULL, withdraw_and_register, &w);
	for (uint64_t i = 0; i < suite_scale(10000) && suite_now_ms() < end; i++) {
		struct dma_cr cr;

		local.len = i % 4 ? 1000 : 300000;
		assert_int_equal(i % 2 ? dma_write(p.queue, &p.remote, &local)
				       : dma_read(p.queue, &p.remote, &local),
				 DMA_STATUS_OK);
		cr = take_cr(p.queue);
		assert_true(cr.status == 0 || cr.status == 4);
	}
	atomic_store(&w.stop, 1);
	pthread_join(thread, NULL);
	assert_int_equal(w.bad, 0);
	assert_int_equal(w.late, 0);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registering_is_flat),
		cmocka_unit_test(peers_of_short_lived_segments_stay_flat),
		cmocka_unit_test(importing_is_flat),
		cmocka_unit_test(queues_come_and_go),
		cmocka_unit_test(contexts_come_and_go_quickly),
		cmocka_unit_test(several_contexts_work_side_by_side),
		cmocka_unit_test(sixteen_threads_do_everything),
		cmocka_unit_test(the_source_may_be_withdrawn_at_any_time),
	};

	return suite_run(argc, argv, "churn", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
