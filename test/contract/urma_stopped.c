/* SPDX-License-Identifier: MIT */
/*
 * Messages of URMA and peers that are stopped or killed: each request ends once and in time, what was
 * reported as failed never arrives, and others go on (F10, F76, F85, F87).
 * ctest: timeout=120 paths=ring,tcp hosts
 */
#include "lib/urma_pair.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define KIB     1024ul
#define LEN     (1024 * KIB)
#define MANY    48u
#define TIMEOUT (suite_between_hosts() ? 1500u : 400u) /* XTAL_TIMEOUT_MS */

/* Where the receives of a side land: the second half of its memory. */
static uint64_t inbox(const struct urma_pair *p)
{
	return p->base + LEN / 2;
}

/* Of which the initiator gives up soon; others have the usual 4.3 s, which busy machines need. */
static void open_impatient(struct urma_pair *p)
{
	struct urma_pair_attr attr = {
		.side = { .rnr_retry = URMA_TYPICAL_RNR_RETRY, .err_timeout = 1 }, .len = LEN
	};

	urma_pair_open_attr(p, &attr);
}

/* The records of MANY requests, in order, then the marker; nothing after it. How many succeeded. */
static uint32_t take_all_and_marker(struct urma_pair *p)
{
	uint32_t good = 0;
	urma_cr_t cr;

	for (uint32_t i = 0; i < MANY; i++) {
		cr = urma_pair_take(p);
		assert_int_equal(cr.user_ctx, i);
		if (cr.status == URMA_CR_SUCCESS) {
			assert_int_equal(good, i); /* none after a failure */
			good++;
		} else if (i == good) {
			assert_int_equal(cr.status, URMA_CR_ACK_TIMEOUT_ERR);
		} else {
			assert_true(cr.status == URMA_CR_ACK_TIMEOUT_ERR ||
				    cr.status == URMA_CR_WR_FLUSH_ERR);
		}
	}
	if (good < MANY) {
		cr = urma_pair_take(p);
		assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR_DONE);
		assert_int_equal(cr.local_id, p->side.jetty->jetty_id.id);
	}
	suite_sleep_us(20000);
	assert_int_equal(urma_poll_jfc(p->side.jfc, 1, &cr), 0);
	return good;
}

static int64_t owner_records(void *args)
{
	struct urma_ask *a = args;
	urma_cr_t cr;

	return urma_poll_jfc(a->owner->side.jfc, 1, &cr);
}

static void exchange_one(struct urma_pair *p, uint64_t user)
{
	struct urma_request r;

	urma_pair_receive(p, inbox(p), 100, 1, user);
	urma_request_send(&r, &p->peer, p->mem.data, 100);
	urma_pair_post(p, &r, user);
	urma_pair_assert_cr(p, user, URMA_CR_SUCCESS, 100);
	assert_int_equal(urma_pair_owner_take(p).user_ctx, user);
}

/* Of one length, more of them than the ring and the socket hold. */
static void send_to_a_stopped_one(uint32_t len, urma_opcode_t opcode)
{
	struct urma_request r;
	struct urma_ask a = { 0 };
	struct urma_pair p, other;
	urma_jetty_t *patient;
	urma_jetty_cfg_t cfg;
	urma_jfs_wr_t *bad;
	uint64_t begin;
	urma_cr_t cr;

	open_impatient(&p);
	urma_pair_open(&other, LEN);
	urma_pair_fill(&p, p.base, LEN, 7);
	urma_pair_receive(&p, inbox(&p), (uint32_t)(LEN / 2 / MANY), MANY, 500);
	actor_stop(p.actor);
	memset(p.mem.data, 0x5a, LEN);
	if (opcode == URMA_OPC_WRITE_IMM)
		urma_request_write(&r, &p.peer, p.base, p.mem.data, len);
	else
		urma_request_send(&r, &p.peer, p.mem.data, len);
	r.wr.opcode = opcode;
	begin = suite_now_ms();
	for (uint32_t i = 0; i < MANY; i++)
		urma_pair_post(&p, &r, i);
	exchange_one(&other, 900); /* nobody else waits */
	assert_int_equal(take_all_and_marker(&p), 0);
	assert_in_range(suite_now_ms() - begin, TIMEOUT - 50, TIMEOUT * 3 + 4000);
	kill(p.actor->pid, SIGCONT);
	suite_sleep_us(200000);
	assert_int_equal(urma_pair_ask(&p, owner_records, &a), 0);
	urma_pair_assert_pattern(&p, p.base, LEN, 7);
	/* The receives are all there yet, for a queue with more patience. */
	cfg = p.side.jetty->jetty_cfg;
	cfg.id = 0;
	cfg.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
	patient = urma_create_jetty(p.side.ctx, &cfg);
	assert_non_null(patient);
	urma_request_send(&r, &p.peer, p.mem.data, 64);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(urma_post_jetty_send_wr(patient, &r.wr, &bad), URMA_SUCCESS);
		assert_int_equal(urma_pair_take(&p).status, URMA_CR_SUCCESS);
		cr = urma_pair_owner_take(&p);
		assert_int_equal(cr.status, URMA_CR_SUCCESS);
		assert_int_equal(cr.user_ctx, 500 + i);
		assert_int_equal(cr.completion_len, 64);
	}
	assert_int_equal(urma_delete_jetty(patient), URMA_SUCCESS);
	urma_pair_close(&p);
	urma_pair_close(&other);
}

static void what_failed_at_a_stopped_peer_never_arrives(void **state)
{
	(void)state;
	send_to_a_stopped_one(8, URMA_OPC_SEND);
	send_to_a_stopped_one(10000, URMA_OPC_SEND_IMM);
	send_to_a_stopped_one(3000, URMA_OPC_WRITE_IMM);
}

/* Before, while and after messages are under way; some find no receive and are held. */
static void requests_to_a_killed_peer_end_once(void **state)
{
	struct urma_request r;
	struct urma_pair p, other;
	uint64_t begin;

	(void)state;
	urma_pair_open(&other, LEN);
	for (unsigned round = 0; round < suite_scale(5); round++) {
		urma_pair_open(&p, LEN);
		urma_pair_receive(&p, inbox(&p), 10000, round % 3 ? 20 : MANY, 0);
		urma_request_send(&r, &p.peer, p.mem.data, round % 2 ? 10000 : 16);
		for (uint32_t i = 0; i < MANY; i++)
			urma_pair_post(&p, &r, i);
		suite_sleep_us(round * 300 % 2000);
		kill(p.actor->pid, SIGKILL);
		begin = suite_now_ms();
		assert_true(take_all_and_marker(&p) <= (round % 3 ? 20 : MANY));
		assert_in_range(suite_now_ms() - begin, 0, 4000);
		exchange_one(&other, round);
		actor_free(p.actor);
		p.actor = NULL;
		urma_pair_close(&p);
	}
	urma_pair_close(&other);
}

/* Sends count messages of len bytes to whom the asker told: the number, then a pattern. */
static int64_t owner_sends(void *args)
{
	struct urma_ask *a = args;
	struct urma_side *s = &a->owner->side;
	uint64_t posted = 0, ended = 0;
	struct urma_request r;
	struct urma_peer to;
	urma_cr_t cr;

	if (urma_peer_import(s, &a->told, &to))
		return -2;
	while (ended < a->count) {
		uint8_t *mem = a->owner->mem.data + posted % 32 * a->len;

		if (posted < a->count && posted - ended < 32) {
			pattern_fill(mem, a->len, posted, 0);
			memcpy(mem, &posted, sizeof(posted));
			urma_request_send(&r, &to, mem, (uint32_t)a->len);
			if (urma_side_post(s, &r))
				return -3;
			posted++;
			continue;
		}
		if (!urma_side_take(s->jfc, &cr, URMA_PAIR_PATIENCE_MS) || cr.status)
			return -4;
		ended++;
	}
	return urma_peer_drop(s, &to) ? -5 : (int64_t)ended;
}

/* Receives that are posted here land one after the other in the second half. */
static void receive(struct urma_pair *p, uint32_t len, uint64_t number)
{
	assert_int_equal(
		urma_side_receive(&p->side, p->mem.data + LEN / 2 + number % 32 * len, len, number),
		URMA_SUCCESS);
}

/* The message is whole, and its sender's next one. */
static void assert_message(struct urma_pair *p, const urma_cr_t *cr, uint32_t len, uint64_t number,
			   uint64_t want)
{
	const uint8_t *at = p->mem.data + LEN / 2 + number % 32 * len;
	uint64_t told;

	assert_int_equal(cr->status, URMA_CR_SUCCESS);
	assert_int_equal(cr->flag.bs.s_r, 1);
	assert_int_equal(cr->user_ctx, number);
	assert_int_equal(cr->completion_len, len);
	actor_unseen_begin();
	memcpy(&told, at, sizeof(told));
	assert_int_equal(told, want);
	assert_int_equal(pattern_check(at + 8, len - 8, want, 8), -1);
	actor_unseen_end();
}

/* A receive that a message has begun to fill when its sender dies serves a later one: so from the
 * kill on each completes once, but another sender's message may be whole before it. Posts the buffer
 * again. */
static void take_in_any_order(struct urma_pair *p, uint64_t outstanding[32], const urma_cr_t *cr,
			      uint32_t len, uint64_t want)
{
	uint64_t *mine = &outstanding[cr->user_ctx % 32];

	assert_int_equal(cr->user_ctx, *mine);
	assert_message(p, cr, len, *mine, want);
	*mine += 32;
	receive(p, len, *mine);
}

/* A sender dies in the middle: what has arrived is whole, and the receives serve the next sender. */
static void a_killed_sender_leaves_whole_messages(void **state)
{
	const uint32_t len = 4000;
	struct urma_ask a = { .count = 1u << 30, .len = len };
	struct urma_pair p, next;
	uint64_t number, of_first, of_next, outstanding[32];
	urma_cr_t cr;

	(void)state;
	for (unsigned round = 0; round < suite_scale(3); round++) {
		number = of_first = of_next = 0;
		urma_pair_open(&p, LEN);
		urma_pair_open(&next, LEN);
		urma_side_tell(&p.side, &a.told);
		for (unsigned i = 0; i < 32; i++)
			receive(&p, len, i);
		a.count = 1u << 30;
		a.owner = p.owner;
		actor_start(p.actor, owner_sends, &a, sizeof(a));
		while (number < 100 + round * 37) {
			assert_true(urma_side_take(p.side.jfc, &cr, URMA_PAIR_PATIENCE_MS));
			assert_message(&p, &cr, len, number, of_first++);
			receive(&p, len, 32 + number++);
		}
		for (uint64_t i = number; i < number + 32; i++)
			outstanding[i % 32] = i;
		kill(p.actor->pid, SIGKILL);
		/* What was under way: whole, or not at all. */
		a.count = 200;
		a.owner = next.owner;
		actor_start(next.actor, owner_sends, &a, sizeof(a));
		while (of_next < a.count) {
			bool first;

			assert_true(urma_side_take(p.side.jfc, &cr, URMA_PAIR_PATIENCE_MS));
			first = cr.remote_id.uasid == p.told.jetty.uasid;
			assert_true(first || cr.remote_id.uasid == next.told.jetty.uasid);
			take_in_any_order(&p, outstanding, &cr, len,
					  first ? of_first++ : of_next++);
		}
		assert_int_equal(actor_finish(next.actor, NULL, 0), 200);
		while (urma_side_take(p.side.jfc, &cr, 20))
			take_in_any_order(&p, outstanding, &cr, len, of_first++);
		actor_free(p.actor);
		p.actor = NULL;
		urma_pair_close(&p);
		urma_pair_close(&next);
	}
}

/* A sender that is stopped, and goes on after its receiver's limit: nothing is lost, nothing twice. */
static void a_stopped_sender_goes_on(void **state)
{
	const uint32_t len = 4000;
	struct urma_ask a = { .count = 300, .len = len };
	uint64_t number = 0;
	struct urma_pair p;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, LEN);
	urma_side_tell(&p.side, &a.told);
	a.owner = p.owner;
	for (unsigned i = 0; i < 32; i++)
		receive(&p, len, i);
	actor_start(p.actor, owner_sends, &a, sizeof(a));
	while (number < a.count) {
		if (number == 100) {
			actor_stop(p.actor);
			suite_sleep_us(TIMEOUT * 1500);
			kill(p.actor->pid, SIGCONT);
		}
		assert_true(urma_side_take(p.side.jfc, &cr, URMA_PAIR_PATIENCE_MS));
		assert_message(&p, &cr, len, number, number);
		receive(&p, len, 32 + number++);
	}
	assert_int_equal(actor_finish(p.actor, NULL, 0), 300);
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_failed_at_a_stopped_peer_never_arrives),
		cmocka_unit_test(requests_to_a_killed_peer_end_once),
		cmocka_unit_test(a_killed_sender_leaves_whole_messages),
		cmocka_unit_test(a_stopped_sender_goes_on),
	};
	static const char *const env[] = { "XTAL_TIMEOUT_MS=400", NULL };
	static const char *const env_hosts[] = { "XTAL_TIMEOUT_MS=1500", NULL };
	bool hosts = argc > 1 && strpbrk(argv[1], "46");

	suite_messages = true;
	return suite_run(argc, argv, "urma_stopped", tests, sizeof(tests) / sizeof(*tests),
			 hosts ? env_hosts : env);
}
