/* SPDX-License-Identifier: MIT */
/*
 * What the target sees, and in which order: the notify word after the data, the last word of a
 * write after its other bytes. The owner spins on its memory and never calls the library.
 * ctest: timeout=180 adopt hosts deferred
 */
#include "lib/pair.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/rng.h"

#define AREA     (256 * 1024ul)
#define ACK      (&actor_words[0]) /* rounds that the owner has compared */
#define MISMATCH (&actor_words[1]) /* round and place of the first difference */

struct watch {
	uint64_t data, word; /* the owner's addresses */
	uint64_t rounds;
};

static size_t length_of(struct rng *rng)
{
	uint64_t kind = rng_below(rng, 100);

	if (kind < 60)
		return 1 + rng_below(rng, 300);
	if (kind < 97)
		return 1 + rng_below(rng, 8192);
	return 1 + rng_below(rng, 200000);
}

static void pause_a_little(unsigned *n)
{
	if (++*n % 512 == 0)
		sched_yield();
}

/* Owner: word i says that the data of round i is in place. */
static int64_t watch_words(void *args)
{
	struct watch *w = args;
	_Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)w->word;
	struct rng rng = { 7 };
	unsigned n = 0;

	for (uint64_t i = 1; i <= w->rounds; i++) {
		size_t len = length_of(&rng);
		int64_t wrong;

		while (atomic_load_explicit(word, memory_order_acquire) != i)
			pause_a_little(&n);
		wrong = pattern_check((void *)(uintptr_t)w->data, len, i, 0);
		if (wrong >= 0) {
			atomic_store(MISMATCH, i);
			return wrong;
		}
		atomic_store_explicit(ACK, i, memory_order_release);
	}
	return -1;
}

static void await_ack(uint64_t i)
{
	uint64_t deadline = suite_now_ms() + PAIR_PATIENCE_MS;
	unsigned n = 0;

	while (atomic_load_explicit(ACK, memory_order_acquire) < i &&
	       !atomic_load_explicit(MISMATCH, memory_order_relaxed)) {
		pause_a_little(&n);
		if (n % 4096 == 0)
			assert_true(suite_now_ms() < deadline);
	}
	assert_int_equal(atomic_load(MISMATCH), 0);
}

static void run_notifies(struct pair *p, const struct dma_seg *notify, uint64_t rounds)
{
	struct watch w = { p->remote.sva, notify->sva, rounds };
	struct rng rng = { 7 };

	atomic_store(ACK, 0);
	atomic_store(MISMATCH, 0);
	actor_start(p->actor, watch_words, &w, sizeof(w));
	for (uint64_t i = 1; i <= rounds; i++) {
		size_t len = length_of(&rng);
		struct dma_seg local = part(p->local, i % 16, len), word = *notify;

		pattern_fill(p->mem.data + i % 16, len, i, 0);
		assert_int_equal(dma_write_with_notify(p->queue, &p->remote, &local, &word, i),
				 DMA_STATUS_OK);
		assert_ok(p->queue, len); /* the word is not counted */
		await_ack(i);
	}
	assert_int_equal(actor_finish(p->actor, NULL, 0), -1);
}

static void notify_in_the_same_segment(void **state)
{
	struct dma_seg word;
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	word = part(&p.remote, AREA - 8, 8);
	run_notifies(&p, &word, suite_scale(20000));
	pair_close(&p);
}

static void notify_in_another_segment(void **state)
{
	struct dma_seg word;
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	word = pair_register(&p, p.remote.sva + AREA - 4096, 8, 99, true);
	run_notifies(&p, &word, suite_scale(5000));
	pair_close(&p);
}

struct other {
	struct dma_context *ctx;
	struct dma_device *list;
	struct dma_seg *seg;
	uint64_t addr;
	struct dma_seg value;
	uint32_t devices;
};

static int64_t open_other(void *args)
{
	struct other *o = args;
	struct dma_seg_cfg cfg = {
		.addr = o->addr, .len = 8, .token_value = 5, .token_value_valid = true
	};

	o->ctx = open_context(&o->list, &o->devices);
	o->seg = o->ctx ? dma_register_seg(o->ctx, &cfg) : NULL;
	if (!o->seg)
		return -1;
	o->value = *o->seg;
	return 0;
}

static int64_t close_other(void *args)
{
	struct other *o = args;

	dma_unregister_seg(o->ctx, o->seg);
	dma_delete_context(o->ctx);
	dma_free_device_list(o->list, o->devices);
	return 0;
}

static void notify_in_another_context_of_the_owner(void **state)
{
	struct other o = { 0 };
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	o.addr = p.remote.sva + AREA - 4096;
	assert_int_equal(actor_call(p.actor, open_other, &o, sizeof(o)), 0);
	assert_int_not_equal(o.value.tid, p.remote.tid);
	run_notifies(&p, &o.value, suite_scale(5000));
	assert_int_equal(actor_call(p.actor, close_other, &o, sizeof(o)), 0);
	pair_close(&p);
}

static void notify_at_an_odd_address(void **state)
{
	struct dma_seg local, word;
	uint64_t see = 0;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	local = part(p.local, 0, 100);
	for (uint64_t at = 1000; at < 1016; at++) {
		word = part(&p.remote, at, 1); /* its length is not looked at */
		assert_int_equal(dma_write_with_notify(p.queue, &p.remote, &local, &word,
						       0x1122334455667700 + at),
				 DMA_STATUS_OK);
		assert_ok(p.queue, 100);
		pair_peek(&p, word.sva, &see, 8);
		assert_int_equal(see, 0x1122334455667700 + at);
	}
	pair_close(&p);
}

/* When the word's place is refused, the data is not written either; and the reverse. */
static void a_refused_half_writes_nothing(void **state)
{
	struct dma_seg local, good, bad;
	uint64_t see[2] = { 1, 1 };
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	local = part(p.local, 0, 8);
	memset(p.mem.data, 0xff, 8);
	good = part(&p.remote, 512, 8);
	bad = part(&p.remote, 4096 - 7, 8); /* the word's last byte is outside */
	assert_int_equal(dma_write_with_notify(p.queue, &good, &local, &bad, ~0ull), 0);
	assert_status(p.queue, 8);
	bad = good;
	bad.token_value++;
	assert_int_equal(dma_write_with_notify(p.queue, &good, &local, &bad, ~0ull), 0);
	assert_status(p.queue, 8);
	bad = good;
	bad.tid ^= 0xf0000; /* the word's incarnation is another */
	assert_int_equal(dma_write_with_notify(p.queue, &good, &local, &bad, ~0ull), 0);
	assert_status(p.queue, 8);
	bad = part(&p.remote, 4096 - 7, 8);
	assert_int_equal(dma_write_with_notify(p.queue, &bad, &local, &good, ~0ull), 0);
	assert_status(p.queue, 8);
	pair_peek(&p, good.sva, &see[0], 8);
	assert_int_equal(see[0], 0);
	pair_peek(&p, p.remote.sva + 4096 - 8, &see[1], 8);
	assert_int_equal(see[1], 0);
	assert_int_equal(dma_write_with_notify(p.queue, &good, &local, &good, 3), 0);
	assert_ok(p.queue, 8);
	pair_assert_guards(&p);
	pair_close(&p);
}

/* Owner: the last byte says that all others are there. The write ends at a fixed address. */
static int64_t watch_last_byte(void *args)
{
	struct watch *w = args;
	const uint8_t *end = (const uint8_t *)(uintptr_t)w->word;
	struct rng rng = { 7 };
	unsigned n = 0;

	for (uint64_t i = 1; i <= w->rounds; i++) {
		size_t len = length_of(&rng);
		const uint8_t *word = (const uint8_t *)((uintptr_t)(end - 1) & ~(uintptr_t)7);
		int64_t wrong;

		while (__atomic_load_n(end - 1, __ATOMIC_ACQUIRE) != i % 255 + 1)
			pause_a_little(&n);
		/* TSan pairs loads and stores by address: the store began at one of these. */
		for (; word < end; word++)
			__atomic_load_n(word, __ATOMIC_ACQUIRE);
		__atomic_load_n((const uint64_t *)((uintptr_t)(end - 1) & ~(uintptr_t)7),
				__ATOMIC_ACQUIRE);
		wrong = pattern_check(end - len, len - 1, i, 0);
		if (wrong >= 0) {
			atomic_store(MISMATCH, i);
			return wrong;
		}
		atomic_store_explicit(ACK, i, memory_order_release);
	}
	return -1;
}

static void run_last_bytes(struct pair *p, size_t end, uint64_t rounds)
{
	struct watch w = { 0, p->remote.sva + end, rounds };
	struct rng rng = { 7 };

	atomic_store(ACK, 0);
	atomic_store(MISMATCH, 0);
	actor_start(p->actor, watch_last_byte, &w, sizeof(w));
	for (uint64_t i = 1; i <= rounds; i++) {
		size_t len = length_of(&rng), from = i % 11;
		struct dma_seg local = part(p->local, from, len);
		struct dma_seg remote = part(&p->remote, end - len, len);

		pattern_fill(p->mem.data + from, len - 1, i, 0);
		p->mem.data[from + len - 1] = (uint8_t)(i % 255 + 1);
		assert_int_equal(dma_write(p->queue, &remote, &local), DMA_STATUS_OK);
		await_ack(i);
		assert_ok(p->queue, len);
	}
	assert_int_equal(actor_finish(p->actor, NULL, 0), -1);
}

static void the_last_word_lands_last(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	run_last_bytes(&p, AREA - 64, suite_scale(6000));
	pair_close(&p);
}

static void the_last_byte_of_an_odd_end_lands_last(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, AREA);
	for (size_t odd = 1; odd < 8; odd++)
		run_last_bytes(&p, AREA - 64 + odd, suite_scale(1000));
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notify_in_the_same_segment),
		cmocka_unit_test(notify_in_another_segment),
		cmocka_unit_test(notify_in_another_context_of_the_owner),
		cmocka_unit_test(notify_at_an_odd_address),
		cmocka_unit_test(a_refused_half_writes_nothing),
		cmocka_unit_test(the_last_word_lands_last),
		cmocka_unit_test(the_last_byte_of_an_odd_end_lands_last),
	};

	return suite_run(argc, argv, "notify", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
