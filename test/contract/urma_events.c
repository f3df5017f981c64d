/* SPDX-License-Identifier: MIT */
/*
 * Completion events of URMA: every order of wait, poll, acknowledge and rearm that programs use
 * works; none is lost; acknowledgements gate deletion only.
 * ctest: timeout=120 label=soak hosts adopt paths=self,ring,tcp
 */
#include "lib/urma_pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "xtal.h"

#define KIB 1024ul

static void post_write(struct urma_pair *p, uint64_t user)
{
	struct urma_request r;

	urma_request_write(&r, &p->peer, p->base, p->mem.data, 64);
	urma_pair_post(p, &r, user);
}

static void rearm(struct urma_pair *p)
{
	assert_int_equal(urma_rearm_jfc(p->side.jfc, false), URMA_SUCCESS);
}

static void ack(struct urma_pair *p, uint32_t events)
{
	urma_ack_jfc(&p->side.jfc, &events, 1);
}

/* One event of the one queue comes. */
static void await(struct urma_pair *p)
{
	urma_jfc_t *fired = NULL;

	assert_int_equal(urma_wait_jfc(p->side.jfce, 1, 20000, &fired), 1);
	assert_ptr_equal(fired, p->side.jfc);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void assert_no_event(struct urma_pair *p)
{
	urma_jfc_t *fired;

	assert_false(readable(p->side.jfce->fd));
	assert_int_equal(urma_wait_jfc(p->side.jfce, 1, 0, &fired), 0);
}

/* Polls until so many have come. */
static void take(struct urma_pair *p, unsigned count)
{
	while (count--)
		assert_int_equal(urma_pair_take(p).status, URMA_CR_SUCCESS);
}

static void one_arm_makes_one_event(void **state)
{
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	post_write(&p, 1);
	take(&p, 1);
	assert_no_event(&p); /* not armed */
	rearm(&p);
	assert_no_event(&p); /* nothing has come */
	post_write(&p, 2);
	await(&p);
	post_write(&p, 3);
	take(&p, 2);
	assert_no_event(&p); /* it fired once */
	ack(&p, 1);
	urma_pair_close(&p);
}

/* The sample: waits, takes one record although there may be two, acknowledges, rearms, waits. */
static void rearming_with_records_waiting_fires_at_once(void **state)
{
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	rearm(&p);
	for (unsigned i = 0; i < 3; i++)
		post_write(&p, i);
	for (unsigned i = 0; i < 3; i++) {
		await(&p);
		take(&p, 1);
		ack(&p, 1);
		rearm(&p);
	}
	assert_no_event(&p);
	post_write(&p, 3);
	await(&p);
	ack(&p, 1);
	take(&p, 1);
	urma_pair_close(&p);
}

/* perftest: waits, acknowledges, rearms, then polls until it is empty. */
static void rearming_before_polling_works_too(void **state)
{
	struct urma_pair p;
	urma_cr_t cr[4];
	unsigned done = 0;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	rearm(&p);
	for (unsigned i = 0; i < 20; i++)
		post_write(&p, i);
	while (done < 20) {
		int n;

		await(&p);
		ack(&p, 1);
		rearm(&p);
		while ((n = urma_poll_jfc(p.side.jfc, 4, cr)) > 0)
			done += (unsigned)n;
		assert_int_equal(n, 0);
	}
	urma_pair_close(&p);
}

/* A message queue: edge-triggered epoll on the descriptor, then a wait that does not block. */
static void edges_tell_of_every_event(void **state)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);
	urma_jfc_t *fired[4];
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, p.side.jfce->fd, &e), 0);
	for (unsigned i = 0; i < 20; i++) {
		rearm(&p);
		post_write(&p, i);
		assert_int_equal(epoll_wait(epoll, &e, 1, 20000), 1);
		assert_int_equal(urma_wait_jfc(p.side.jfce, 4, 0, fired), 1);
		assert_int_equal(urma_wait_jfc(p.side.jfce, 4, 0, fired), 0);
		take(&p, 1);
	}
	ack(&p, 20);
	close(epoll);
	urma_pair_close(&p);
}

static void one_channel_tells_of_many_queues(void **state)
{
	enum {
		QUEUES = 8
	};
	urma_jfc_t *jfc[QUEUES], *fired[QUEUES];
	urma_jfs_t *jfs[QUEUES];
	urma_jfs_wr_flag_t flag = { .bs.complete_enable = 1 };
	uint32_t one = 1;
	struct urma_pair p;
	unsigned seen = 0;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < QUEUES; i++) {
		urma_jfc_cfg_t c = { .depth = 64, .jfce = p.side.jfce };
		urma_jfs_cfg_t s = p.side.jetty->jetty_cfg.jfs_cfg;

		jfc[i] = urma_create_jfc(p.side.ctx, &c);
		s.jfc = jfc[i];
		jfs[i] = urma_create_jfs(p.side.ctx, &s);
		assert_true(jfc[i] && jfs[i]);
		assert_int_equal(urma_rearm_jfc(jfc[i], false), URMA_SUCCESS);
	}
	for (unsigned i = 0; i < QUEUES; i += 2)
		assert_int_equal(urma_write(jfs[i], p.peer.jfr, p.peer.seg, p.side.seg,
					    p.base + i * 64ul, (uintptr_t)p.mem.data, 64, flag, i),
				 URMA_SUCCESS);
	for (unsigned got = 0; got < QUEUES / 2;) {
		int n = urma_wait_jfc(p.side.jfce, QUEUES, 20000, fired);

		assert_true(n > 0);
		for (int k = 0; k < n; k++, got++) {
			urma_cr_t cr;

			assert_true(urma_side_take(fired[k], &cr, 0));
			assert_ptr_equal(fired[k], jfc[cr.user_ctx]);
			seen |= 1u << cr.user_ctx;
			urma_ack_jfc(&fired[k], &one, 1);
		}
	}
	assert_int_equal(seen, 0x55);
	assert_no_event(&p);
	for (unsigned i = 0; i < QUEUES; i++) {
		assert_int_equal(urma_delete_jfs(jfs[i]), URMA_SUCCESS);
		assert_int_equal(urma_delete_jfc(jfc[i]), URMA_SUCCESS);
	}
	urma_pair_close(&p);
}

static void missing_acknowledgements_stop_no_events(void **state)
{
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 10; i++) {
		rearm(&p);
		post_write(&p, i);
		await(&p);
		take(&p, 1);
	}
	ack(&p, 4); /* in batches */
	ack(&p, 6);
	urma_pair_close(&p);
}

/* ---- Deletion ---- */

struct late_ack {
	urma_jfc_t *jfc;
	atomic_bool acked;
};

static void *acknowledge_later(void *arg)
{
	struct late_ack *l = arg;
	uint32_t one = 1;

	suite_sleep_us(50000);
	atomic_store(&l->acked, true);
	urma_ack_jfc(&l->jfc, &one, 1);
	return NULL;
}

static void deletion_waits_for_acknowledgements(void **state)
{
	urma_jfc_cfg_t cfg = { .depth = 8 };
	urma_jfs_wr_flag_t flag = { .bs.complete_enable = 1 };
	urma_jfs_cfg_t s_cfg;
	struct urma_pair p;
	urma_jfs_t *jfs;
	uint32_t one = 1;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	cfg.jfce = p.side.jfce;
	s_cfg = p.side.jetty->jetty_cfg.jfs_cfg;
	for (unsigned non_blocking = 0; non_blocking < 2; non_blocking++) {
		struct late_ack late = { 0 };
		urma_jfc_t *fired = NULL;
		pthread_t thread;

		cfg.flag.bs.non_blocking = non_blocking & 1;
		late.jfc = s_cfg.jfc = urma_create_jfc(p.side.ctx, &cfg);
		jfs = urma_create_jfs(p.side.ctx, &s_cfg);
		assert_true(late.jfc && jfs);
		assert_int_equal(urma_rearm_jfc(late.jfc, false), URMA_SUCCESS);
		assert_int_equal(urma_write(jfs, p.peer.jfr, p.peer.seg, p.side.seg, p.base,
					    (uintptr_t)p.mem.data, 64, flag, 1),
				 URMA_SUCCESS);
		assert_int_equal(urma_wait_jfc(p.side.jfce, 1, 20000, &fired), 1);
		assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
		if (non_blocking) {
			assert_int_equal(urma_delete_jfc(late.jfc), URMA_EAGAIN);
			urma_assert_refused("not acknowledged");
			urma_ack_jfc(&late.jfc, &one, 1);
			assert_int_equal(urma_delete_jfc(late.jfc), URMA_SUCCESS);
			break;
		}
		assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, &late), 0);
		assert_int_equal(urma_delete_jfc(late.jfc), URMA_SUCCESS);
		assert_true(atomic_load(&late.acked));
		pthread_join(thread, NULL);
	}
	urma_pair_close(&p);
}

/* ---- Races ---- */

/* How often the races arm. The long form is a million, where records come from this process. */
static uint64_t arms(uint64_t short_form)
{
	if (!getenv("XTAL_TEST_SOAK"))
		return suite_scale(short_form);
	return suite_path == XTAL_PATH_SELF ? 1000000 : 50000;
}

struct poster {
	struct urma_pair *pair;
	_Atomic uint64_t polled;
	atomic_bool enough;
};

/* Keeps a few requests under way. */
static void *post_many(void *arg)
{
	struct poster *q = arg;
	struct urma_request r;

	urma_request_write(&r, &q->pair->peer, q->pair->base, q->pair->mem.data, 8);
	for (uint64_t i = 0; !atomic_load(&q->enough); i++) {
		r.wr.user_ctx = i;
		while (i - atomic_load(&q->polled) >= 1 + i % 7 ||
		       urma_side_post(&q->pair->side, &r) != URMA_SUCCESS) {
			if (atomic_load(&q->enough))
				return (void *)(uintptr_t)i;
			sched_yield();
		}
	}
	return NULL;
}

/*
 * Sleeps until the queue that was armed fires, without a limit worth the name: a lost event shows.
 * One way in two is that of programs with an event loop of their own.
 */
static void sleep_for_event(struct urma_pair *p, uint64_t number)
{
	urma_jfc_t *fired = NULL;
	struct pollfd fd = { .fd = p->side.jfce->fd, .events = POLLIN };

	if (number % 2)
		assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(urma_wait_jfc(p->side.jfce, 1, number % 2 ? 0 : 60000, &fired), 1);
	assert_ptr_equal(fired, p->side.jfc);
}

/* Polls before it arms, or after it, or both. Returns how many records there were. */
static int poll_and_arm(struct urma_pair *p, uint64_t *events, urma_cr_t cr[4])
{
	int n = urma_poll_jfc(p->side.jfc, 4, cr);

	assert_true(n >= 0);
	if (n)
		return n;
	rearm(p);
	if (*events % 3) { /* what came in between fires, and need not be waited for */
		n = urma_poll_jfc(p->side.jfc, 4, cr);
		if (*events % 3 == 1 && n)
			return n;
	}
	sleep_for_event(p, ++*events);
	return n;
}

static void no_event_is_lost(void **state)
{
	const uint64_t want = arms(suite_path == XTAL_PATH_SELF ? 20000 : 300);
	uint64_t events = 0, done = 0;
	struct urma_pair p;
	struct poster q = { .pair = &p };
	pthread_t thread;
	urma_cr_t cr[4];

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	assert_int_equal(pthread_create(&thread, NULL, post_many, &q), 0);
	while (events < want) {
		int n = poll_and_arm(&p, &events, cr);

		for (int i = 0; i < n; i++) {
			assert_int_equal(cr[i].status, URMA_CR_SUCCESS);
			assert_int_equal(cr[i].user_ctx, done + (uint64_t)i);
		}
		done += (uint64_t)n;
		atomic_store(&q.polled, done);
	}
	atomic_store(&q.enough, true);
	pthread_join(thread, NULL);
	ack(&p, (uint32_t)events);
	while (urma_side_take(p.side.jfc, cr, 50))
		assert_int_equal(cr[0].user_ctx, done++);
	urma_pair_close(&p);
}

/* The owner sends to whom the asker told until that one has its event number "count". */
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
	while (!atomic_load(&actor_words[1]) || ended < posted) {
		if (!atomic_load(&actor_words[1]) && posted - ended < 1 + posted % 5 &&
		    posted - atomic_load(&actor_words[0]) < 16) {
			urma_request_send(&r, &to, &posted, sizeof(posted));
			r.wr.flag.bs.inline_flag = 1;
			if (urma_side_post(s, &r))
				return -3;
			posted++;
		}
		if (urma_poll_jfc(s->jfc, 1, &cr) == 1) {
			if (cr.status)
				return -4;
			ended++;
		} else {
			sched_yield();
		}
	}
	return urma_peer_drop(s, &to) ? -5 : (int64_t)posted;
}

/* The same at the receiver, whose records another process makes. */
static void no_event_of_a_message_is_lost(void **state)
{
	const uint64_t want = arms(suite_path == XTAL_PATH_SELF ? 5000 : 300);
	struct urma_ask a = { 0 };
	uint64_t events = 0, done = 0;
	struct urma_pair p;
	urma_cr_t cr[4];

	(void)state;
	atomic_store(&actor_words[0], 0);
	atomic_store(&actor_words[1], 0);
	urma_pair_open(&p, 4 * KIB);
	urma_side_tell(&p.side, &a.told);
	a.owner = p.owner;
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(urma_side_receive(&p.side, p.mem.data + i * 8, 8, i), 0);
	actor_start(p.actor, owner_sends, &a, sizeof(a));
	while (events < want) {
		int n = poll_and_arm(&p, &events, cr);

		for (int i = 0; i < n; i++, done++) {
			assert_int_equal(cr[i].status, URMA_CR_SUCCESS);
			assert_int_equal(cr[i].user_ctx, done);
			assert_int_equal(urma_side_receive(&p.side, p.mem.data + done % 32 * 8, 8,
							   done + 32),
					 0);
		}
		atomic_store(&actor_words[0], done);
	}
	atomic_store(&actor_words[1], 1);
	a.count = (uint32_t)actor_finish(p.actor, NULL, 0);
	ack(&p, (uint32_t)events);
	while (done < a.count) {
		assert_true(urma_side_take(p.side.jfc, cr, 20000));
		assert_int_equal(cr[0].user_ctx, done++);
	}
	urma_pair_close(&p);
}

static void *wait_for_one(void *arg)
{
	struct urma_pair *p = arg;
	urma_jfc_t *fired;

	return (void *)(intptr_t)urma_wait_jfc(p->side.jfce, 1, 20000, &fired);
}

static void several_threads_may_wait(void **state)
{
	pthread_t thread[3];
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, wait_for_one, &p), 0);
	for (unsigned i = 0; i < 3; i++) {
		rearm(&p);
		post_write(&p, i);
		take(&p, 1);
	}
	for (unsigned i = 0; i < 3; i++) {
		void *got;

		pthread_join(thread[i], &got);
		assert_int_equal((intptr_t)got, 1);
	}
	ack(&p, 3);
	assert_no_event(&p);
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_arm_makes_one_event),
		cmocka_unit_test(rearming_with_records_waiting_fires_at_once),
		cmocka_unit_test(rearming_before_polling_works_too),
		cmocka_unit_test(edges_tell_of_every_event),
		cmocka_unit_test(one_channel_tells_of_many_queues),
		cmocka_unit_test(missing_acknowledgements_stop_no_events),
		cmocka_unit_test(deletion_waits_for_acknowledgements),
		cmocka_unit_test(no_event_is_lost),
		cmocka_unit_test(no_event_of_a_message_is_lost),
		cmocka_unit_test(several_threads_may_wait),
	};

	suite_messages = true;
	return suite_run(argc, argv, "urma_events", tests, sizeof(tests) / sizeof(*tests), NULL);
}
