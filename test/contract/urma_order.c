/* SPDX-License-Identifier: MIT */
/*
 * Order and atomics of URMA: nothing overtakes, data is there before what tells of it, and atomics are
 * whole, aligned, and do not wait for the owner (F45, F47, F50, F53, F60, F61, F80, F84).
 * ctest: timeout=120 hosts adopt
 */
#include "lib/urma_pair.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "xtal.h"

#define KIB 1024ul

/* The queue stops after a failure; on with it. */
static void restart(struct urma_pair *p)
{
	static const urma_jetty_state_t states[] = { URMA_JETTY_STATE_RESET,
						     URMA_JETTY_STATE_READY };

	assert_int_equal(urma_pair_take(p).status, URMA_CR_WR_FLUSH_ERR_DONE);
	for (unsigned i = 0; i < 2; i++) {
		urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = states[i] };

		assert_int_equal(urma_modify_jetty(p->side.jetty, &attr), URMA_SUCCESS);
	}
}

static void atomics_are_aligned_or_fail(void **state)
{
	uint64_t want[2] = { 0, 0 }, next[2] = { 7, 7 }, old[2];
	uint8_t before[32], after[32];
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 8 * KIB);
	memset(before, 0, sizeof(before));
	for (uint32_t size = 4; size <= 16; size *= 2) {
		for (uint32_t at = 0; at < 16; at++) {
			/* Across the end of a page, too. */
			uint64_t addr = p.base + 4 * KIB - 16 + at;

			urma_pair_poke(&p, p.base + 4 * KIB - 16, before, sizeof(before));
			urma_request_cas(&r, &p.peer, addr, old, size,
					 size == 16 ? (uintptr_t)want : 0,
					 size == 16 ? (uintptr_t)next : 7);
			urma_pair_post(&p, &r, at);
			if (at % size == 0) {
				urma_pair_assert_cr(&p, at, URMA_CR_SUCCESS, size);
				continue;
			}
			assert_int_not_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
			restart(&p);
			urma_pair_peek(&p, p.base + 4 * KIB - 16, after, sizeof(after));
			assert_memory_equal(before, after, sizeof(after));
		}
	}
	urma_pair_close(&p);
}

/* One chain: what is written is what the atomic, and the read, behind it find. */
static void nothing_overtakes_a_write(void **state)
{
	uint64_t *value, *fetched, *read;
	struct urma_request w, a, r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	value = (void *)p.mem.data;
	fetched = value + 8;
	read = value + 16;
	urma_request_write(&w, &p.peer, p.base, value, 8);
	urma_request_fetch(&a, &p.peer, URMA_OPC_FADD, p.base, fetched, 8, 0);
	urma_request_read(&r, &p.peer, p.base, read, 8);
	w.wr.next = &a.wr;
	a.wr.next = &r.wr;
	w.wr.flag.bs.complete_enable = a.wr.flag.bs.complete_enable = 0;
	w.wr.flag.bs.inline_flag = 1;
	for (uint64_t i = 1; i <= suite_scale(2000); i++) {
		*value = i;
		urma_pair_post(&p, &w, 0);
		assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		assert_true(*fetched == i && *read == i);
	}
	urma_pair_close(&p);
}

/* Data in two pieces, which the read before it brings. */
static void a_fenced_write_takes_what_a_read_brings(void **state)
{
	struct urma_request r, w;
	urma_sge_t pieces[2];
	uint64_t *value, seen[2];
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	value = (void *)p.mem.data;
	pieces[0] = (urma_sge_t){ .addr = (uintptr_t)&value[8], .len = 8 };
	pieces[1] = (urma_sge_t){ .addr = (uintptr_t)value, .len = 8 };
	value[8] = 77;
	urma_request_read(&r, &p.peer, p.base, value, 8);
	urma_request_write(&w, &p.peer, p.base + 64, value, 16);
	w.wr.rw.src = (urma_sg_t){ pieces, 2 };
	w.wr.flag.bs.fence = 1;
	r.wr.next = &w.wr;
	r.wr.flag.bs.complete_enable = 0;
	for (uint64_t i = 1; i <= suite_scale(500); i++) {
		urma_pair_poke(&p, p.base, &i, 8);
		urma_pair_post(&p, &r, i);
		assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		urma_pair_peek(&p, p.base + 64, seen, 16);
		assert_true(seen[0] == 77 && seen[1] == i);
	}
	urma_pair_close(&p);
}

/* The owner watches the word, then looks at all of the data before it says so. */
static int64_t owner_watches(void *args)
{
	struct urma_ask *a = args;
	_Atomic uint64_t *word = (void *)(uintptr_t)(a->addr + a->len);
	int64_t bad = 0;

	actor_unseen_begin();
	for (uint64_t i = 1; i <= a->count && !bad; i++) {
		while (atomic_load_explicit(word, memory_order_acquire) != i)
			sched_yield();
		if (pattern_check((void *)(uintptr_t)a->addr, 1 + i * 977 % a->len, i, 0) != -1)
			bad = (int64_t)i;
		atomic_store(&actor_words[0], i);
	}
	actor_unseen_end();
	return bad;
}

static void data_is_there_before_its_word(void **state)
{
	struct urma_ask a = { .count = (uint32_t)suite_scale(400), .len = 32 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	atomic_store(&actor_words[0], 0);
	a.owner = p.owner;
	a.addr = p.base;
	actor_start(p.actor, owner_watches, &a, sizeof(a));
	for (uint64_t i = 1; i <= a.count; i++) {
		uint32_t len = (uint32_t)(1 + i * 977 % a.len);

		pattern_fill(p.mem.data, len, i, 0);
		urma_request_write(&r, &p.peer, p.base, p.mem.data, len);
		r.dst[1] = (urma_sge_t){ .addr = p.base + a.len, .len = 8, .tseg = p.peer.seg };
		r.wr.opcode = URMA_OPC_WRITE_NOTIFY;
		r.wr.rw.dst.num_sge = 2;
		r.wr.rw.notify_data = i;
		urma_pair_post(&p, &r, i);
		assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		while (atomic_load(&actor_words[0]) < i)
			sched_yield();
	}
	assert_int_equal(actor_finish(p.actor, NULL, 0), 0);
	urma_pair_close(&p);
}

/* Two processes swap {n, ~n} for {n + 1, ~(n + 1)}: no half is ever seen. */
static int64_t owner_swaps(void *args)
{
	struct urma_ask *a = args;
	uint64_t want[2] = { 0, UINT64_MAX }, next[2], old[2];
	struct urma_side *s = &a->owner->side;
	struct urma_request r;
	struct urma_told told;
	struct urma_peer to;
	int64_t won = 0;
	urma_cr_t cr;

	urma_side_tell(s, &told);
	if (urma_peer_import(s, &told, &to))
		return -1;
	for (uint32_t i = 0; i < a->count; i++) {
		next[0] = want[0] + 1;
		next[1] = ~next[0];
		urma_request_cas(&r, &to, a->addr, old, 16, (uintptr_t)want, (uintptr_t)next);
		if (urma_side_post(s, &r) || !urma_side_take(s->jfc, &cr, URMA_PAIR_PATIENCE_MS) ||
		    cr.status || old[1] != ~old[0])
			return -2;
		won += old[0] == want[0];
		want[0] = old[0] == want[0] ? next[0] : old[0];
		want[1] = ~want[0];
	}
	return urma_peer_drop(s, &to) ? -3 : won;
}

static void swaps_of_16_bytes_are_whole(void **state)
{
	struct urma_ask a = { .count = (uint32_t)suite_scale(500) };
	uint64_t want[2] = { 0, UINT64_MAX }, next[2], old[2];
	struct urma_request r;
	struct urma_pair p;
	int64_t won = 0, theirs;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_poke(&p, p.base, want, 16);
	a.owner = p.owner;
	a.addr = p.base;
	actor_start(p.actor, owner_swaps, &a, sizeof(a));
	for (uint32_t i = 0; i < a.count; i++) {
		next[0] = want[0] + 1;
		next[1] = ~next[0];
		urma_request_cas(&r, &p.peer, p.base, old, 16, (uintptr_t)want, (uintptr_t)next);
		urma_pair_post(&p, &r, i);
		urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 16);
		assert_true(old[1] == ~old[0]);
		won += old[0] == want[0];
		want[0] = old[0] == want[0] ? next[0] : old[0];
		want[1] = ~want[0];
	}
	theirs = actor_finish(p.actor, NULL, 0);
	assert_true(theirs >= 0);
	urma_pair_peek(&p, p.base, old, 16);
	assert_true(old[0] == (uint64_t)(won + theirs) && old[1] == ~old[0]);
	urma_pair_close(&p);
}

static atomic_uint alarms;

static void on_alarm(int number)
{
	(void)number;
	atomic_fetch_add(&alarms, 1);
}

/* Ten thousand a second, which restart system calls or do not. */
static void signals_do_not_matter(void **state)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 40000);
	for (unsigned restarts = 0; restarts < 2; restarts++) {
		struct sigaction act = { .sa_handler = on_alarm,
					 .sa_flags = restarts ? SA_RESTART : 0 };
		urma_jfc_t *fired;
		uint64_t begin;

		atomic_store(&alarms, 0);
		sigaction(SIGALRM, &act, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		begin = suite_now_ms();
		assert_int_equal(urma_wait_jfc(p.side.jfce, 1, 200, &fired), 0);
		assert_in_range(suite_now_ms() - begin, 199, 5000);
		for (uint64_t i = 0; i < suite_scale(100); i++) {
			uint32_t one = 1;

			assert_int_equal(urma_rearm_jfc(p.side.jfc, false), URMA_SUCCESS);
			urma_pair_post(&p, &r, i);
			assert_int_equal(urma_wait_jfc(p.side.jfce, 1, -1, &fired), 1);
			urma_ack_jfc(&fired, &one, 1);
			assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		}
		setitimer(ITIMER_REAL, &never, NULL);
		assert_true(atomic_load(&alarms) > 0);
	}
	signal(SIGALRM, SIG_DFL);
	urma_pair_close(&p);
}

/* Filled to the brim, again and again, before anything is polled. */
static void a_full_queue_recovers(void **state)
{
	struct urma_pair_attr attr = { .side = { .rnr_retry = 7, .depth = 8 }, .len = 4 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 64);
	for (uint64_t round = 0; round < suite_scale(500); round++) {
		for (uint64_t i = 0; i < 8; i++)
			urma_pair_post(&p, &r, 8 * round + i);
		assert_int_equal(urma_side_post(&p.side, &r), URMA_ENOMEM);
		for (uint64_t i = 0; i < 8; i++)
			urma_pair_assert_cr(&p, 8 * round + i, URMA_CR_SUCCESS, 64);
	}
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomics_are_aligned_or_fail),
		cmocka_unit_test(nothing_overtakes_a_write),
		cmocka_unit_test(a_fenced_write_takes_what_a_read_brings),
		cmocka_unit_test(data_is_there_before_its_word),
		cmocka_unit_test(swaps_of_16_bytes_are_whole),
		cmocka_unit_test(signals_do_not_matter),
		cmocka_unit_test(a_full_queue_recovers),
	};

	return suite_run(argc, argv, "urma_order", tests, sizeof(tests) / sizeof(*tests), NULL);
}
