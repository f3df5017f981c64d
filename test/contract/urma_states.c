/* SPDX-License-Identifier: MIT */
/*
 * What a failure, and a change of state, do to the queues of URMA: flushed requests in order, the
 * marker after the last of them, what comes back by a flush, asynchronous events.
 * ctest: timeout=120 hosts adopt
 */
#include "lib/urma_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "xtal.h"

#define KIB 1024ul

static void set_state(struct urma_pair *p, urma_jetty_state_t state)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = state };

	assert_int_equal(urma_modify_jetty(p->side.jetty, &attr), URMA_SUCCESS);
}

static urma_jetty_state_t state_of(struct urma_pair *p)
{
	urma_jetty_attr_t attr;
	urma_jetty_cfg_t cfg;

	assert_int_equal(urma_query_jetty(p->side.jetty, &cfg, &attr), URMA_SUCCESS);
	return attr.state;
}

/* The marker: a record of the jetty and of no request. */
static void assert_marker(struct urma_pair *p, urma_cr_status_t status)
{
	urma_cr_t cr = urma_pair_take(p);

	assert_int_equal(cr.status, status);
	assert_int_equal(cr.local_id, p->side.jetty->jetty_id.id);
	assert_ptr_equal((void *)cr.user_data, p->side.jetty);
	assert_int_equal(cr.flag.bs.s_r, 0);
	assert_int_equal(cr.flag.bs.jetty, 1);
	assert_int_equal(cr.flag.bs.flush_err_done, status == URMA_CR_WR_FLUSH_ERR_DONE);
	assert_int_equal(cr.flag.bs.suspend_done, status == URMA_CR_WR_SUSPEND_DONE);
}

static void assert_nothing_comes(struct urma_pair *p)
{
	urma_cr_t cr;

	suite_sleep_us(2000);
	assert_int_equal(urma_poll_jfc(p->side.jfc, 1, &cr), 0);
}

static void write_good(struct urma_pair *p, struct urma_request *r)
{
	urma_request_write(r, &p->peer, p->base, p->mem.data, 64);
}

/* Leaves its segment. */
static void write_bad(struct urma_pair *p, struct urma_request *r)
{
	urma_request_write(r, &p->peer, p->base + 4 * KIB - 8, p->mem.data, 16);
}

static void a_failure_breaks_the_queue(void **state)
{
	struct urma_request r;
	struct urma_pair p;
	urma_cr_t cr[4];

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	write_good(&p, &r);
	urma_pair_post(&p, &r, 1);
	write_bad(&p, &r);
	urma_pair_post(&p, &r, 2);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 64);
	urma_pair_assert_cr(&p, 2, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	assert_marker(&p, URMA_CR_WR_FLUSH_ERR_DONE);
	assert_int_equal(state_of(&p), URMA_JETTY_STATE_ERROR);
	/* Accepted, and handed back. */
	write_good(&p, &r);
	urma_pair_post(&p, &r, 3);
	urma_pair_post(&p, &r, 4);
	assert_nothing_comes(&p);
	memset(cr, 0xee, sizeof(cr));
	assert_int_equal(urma_flush_jetty(p.side.jetty, 1, cr), 1);
	assert_int_equal(urma_flush_jetty(p.side.jetty, 3, cr + 1), 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(cr[i].status, URMA_CR_WR_UNHANDLED);
		assert_int_equal(cr[i].user_ctx, 3 + i);
		assert_int_equal(cr[i].local_id, p.side.jetty->jetty_id.id);
	}
	assert_int_equal(urma_flush_jetty(p.side.jetty, 3, cr), 0);
	urma_pair_close(&p);
}

/* What was posted behind the failing one is flushed, and where it is executed here does not happen:
 * messages that are under way together are executed. */
static void what_follows_a_failure_is_flushed_in_order(void **state)
{
	struct urma_request r[6];
	struct urma_pair p;
	urma_jfs_wr_t *bad;
	unsigned done = 0;
	urma_cr_t cr;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_fill(&p, p.base, 4 * KIB, 1);
	for (unsigned i = 0; i < 6; i++) {
		if (i == 0)
			write_bad(&p, &r[i]);
		else
			write_good(&p, &r[i]);
		r[i].wr.user_ctx = i;
		r[i].wr.next = i < 5 ? &r[i + 1].wr : NULL;
	}
	assert_int_equal(urma_post_jetty_send_wr(p.side.jetty, &r[0].wr, &bad), URMA_SUCCESS);
	urma_pair_assert_cr(&p, 0, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	for (;; done++) {
		cr = urma_pair_take(&p);
		if (cr.status == URMA_CR_WR_FLUSH_ERR_DONE)
			break;
		assert_int_equal(cr.status, URMA_CR_WR_FLUSH_ERR);
		assert_int_equal(cr.user_ctx, 1 + done);
	}
	/* Those that were posted after it broke come back otherwise. */
	for (; done < 5; done++) {
		assert_int_equal(urma_flush_jetty(p.side.jetty, 1, &cr), 1);
		assert_int_equal(cr.user_ctx, 1 + done);
	}
	if (suite_path <= XTAL_PATH_CMA)
		urma_pair_assert_pattern(&p, p.base, 4 * KIB, 1);
	assert_nothing_comes(&p);
	urma_pair_close(&p);
}

static void error_by_hand_makes_one_marker(void **state)
{
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	set_state(&p, URMA_JETTY_STATE_ERROR);
	assert_marker(&p, URMA_CR_WR_FLUSH_ERR_DONE);
	set_state(&p, URMA_JETTY_STATE_ERROR); /* the same again: nothing */
	assert_nothing_comes(&p);
	urma_pair_close(&p);
}

/* As a lock service tears its clients down: first everything is let go, then it waits. */
static void the_marker_comes_after_unbind_and_unimport(void **state)
{
	struct urma_pair_attr attr = { .side = { .mode = URMA_TM_RC, .rnr_retry = 7 },
				       .len = 4 * KIB };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer none;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	write_good(&p, &r);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 64);
	set_state(&p, URMA_JETTY_STATE_ERROR);
	none = p.peer;
	assert_int_equal(urma_peer_drop(&p.side, &none), 0);
	assert_marker(&p, URMA_CR_WR_FLUSH_ERR_DONE);
	assert_int_equal(urma_peer_import(&p.side, &p.told, &p.peer), 0);
	urma_pair_close(&p);
}

static void reset_and_ready_start_afresh(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	for (unsigned i = 0; i < 3; i++) {
		write_bad(&p, &r);
		urma_pair_post(&p, &r, 1);
		urma_pair_assert_cr(&p, 1, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
		assert_marker(&p, URMA_CR_WR_FLUSH_ERR_DONE);
		write_good(&p, &r);
		urma_pair_post(&p, &r, 2); /* forgotten by the reset */
		set_state(&p, URMA_JETTY_STATE_RESET);
		assert_int_equal(urma_side_post(&p.side, &r), URMA_EINVAL);
		urma_assert_refused("its state is RESET");
		set_state(&p, URMA_JETTY_STATE_READY);
		for (unsigned k = 0; k < 100; k++) {
			urma_pair_post(&p, &r, k);
			urma_pair_assert_cr(&p, k, URMA_CR_SUCCESS, 64);
		}
	}
	urma_pair_close(&p);
}

static void a_suspended_queue_keeps_what_is_posted(void **state)
{
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_fill(&p, p.base, 64, 1);
	set_state(&p, URMA_JETTY_STATE_SUSPENDED);
	assert_marker(&p, URMA_CR_WR_SUSPEND_DONE);
	write_good(&p, &r);
	urma_pair_post(&p, &r, 1);
	urma_pair_post(&p, &r, 2);
	assert_nothing_comes(&p);
	urma_pair_assert_pattern(&p, p.base, 64, 1);
	set_state(&p, URMA_JETTY_STATE_ERROR);
	urma_pair_assert_cr(&p, 1, URMA_CR_WR_FLUSH_ERR, 0);
	urma_pair_assert_cr(&p, 2, URMA_CR_WR_FLUSH_ERR, 0);
	assert_marker(&p, URMA_CR_WR_FLUSH_ERR_DONE);
	urma_pair_close(&p);
}

static void a_failure_may_suspend_instead(void **state)
{
	struct urma_pair_attr attr = { .side = { .error_suspend = true, .rnr_retry = 7 },
				       .len = 4 * KIB };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	write_bad(&p, &r);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	assert_marker(&p, URMA_CR_WR_SUSPEND_DONE);
	assert_int_equal(state_of(&p), URMA_JETTY_STATE_SUSPENDED);
	urma_pair_close(&p);
}

/* ---- Rights and tokens ---- */

static void right_is_checked(struct urma_pair *p, struct urma_request *r, bool allowed)
{
	urma_pair_post(p, r, 5);
	if (allowed) {
		urma_pair_assert_cr(p, 5, URMA_CR_SUCCESS, 8);
		return;
	}
	urma_pair_assert_cr(p, 5, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	assert_marker(p, URMA_CR_WR_FLUSH_ERR_DONE);
	set_state(p, URMA_JETTY_STATE_RESET);
	set_state(p, URMA_JETTY_STATE_READY);
}

static void rights_are_granted_as_registered(void **state)
{
	static const uint32_t grants[] = { URMA_ACCESS_LOCAL_ONLY, URMA_ACCESS_READ,
					   URMA_ACCESS_READ | URMA_ACCESS_WRITE };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct urma_pair_attr attr = { .side = { .access = grants[i], .rnr_retry = 7 },
					       .len = 4 * KIB };
		struct urma_request r;
		struct urma_pair p;

		urma_pair_open_attr(&p, &attr);
		for (unsigned round = 0; round < 2; round++) {
			urma_request_read(&r, &p.peer, p.base, p.mem.data, 8);
			right_is_checked(&p, &r, grants[i] & URMA_ACCESS_READ);
			urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
			right_is_checked(&p, &r, grants[i] & URMA_ACCESS_WRITE);
			urma_request_fetch(&r, &p.peer, URMA_OPC_FADD, p.base, p.mem.data, 8, 1);
			right_is_checked(&p, &r, false);
		}
		urma_pair_close(&p);
	}
}

static void a_wrong_token_shows_at_the_access(void **state)
{
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t wrong = { URMA_SIDE_TOKEN + 1 };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer peer;
	urma_seg_t seg;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	peer = p.peer;
	seg = p.told.seg;
	peer.seg = urma_import_seg(p.side.ctx, &seg, &wrong, 0, flag);
	assert_non_null(peer.seg);
	urma_request_write(&r, &peer, p.base, p.mem.data, 8);
	right_is_checked(&p, &r, false);
	assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
	seg.attr.bs.token_policy = URMA_TOKEN_NONE; /* and none is no better */
	peer.seg = urma_import_seg(p.side.ctx, &seg, NULL, 0, flag);
	urma_request_write(&r, &peer, p.base, p.mem.data, 8);
	right_is_checked(&p, &r, false);
	assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	right_is_checked(&p, &r, true);
	urma_pair_close(&p);
}

/* The right token and range with another segment's id: not this one. 0 names none. */
static void a_wrong_token_id_shows_at_the_access(void **state)
{
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t token = { URMA_SIDE_TOKEN };
	urma_user_tseg_t user = { .attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				  .token_value = token };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer peer;
	urma_seg_t seg;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	peer = p.peer;
	for (int32_t i = 0; i < 3; i++) {
		static const uint32_t wrong[] = { 0, 6, 0x80000 };
		bool good = i == 0;

		seg = p.told.seg;
		seg.token_id ^= wrong[i];
		peer.seg = urma_import_seg(p.side.ctx, &seg, &token, 0, flag);
		assert_non_null(peer.seg);
		urma_request_write(&r, &peer, p.base, p.mem.data, 8);
		right_is_checked(&p, &r, good);
		urma_request_read(&r, &peer, p.base, p.mem.data, 8);
		right_is_checked(&p, &r, good);
		urma_request_fetch(&r, &peer, URMA_OPC_FADD, p.base, p.mem.data, 8, 1);
		right_is_checked(&p, &r, good);
		/* The word of a notify alone. */
		urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
		r.wr.opcode = URMA_OPC_WRITE_NOTIFY;
		r.dst[1] = (urma_sge_t){ .addr = p.base + 64, .len = 8, .tseg = peer.seg };
		r.wr.rw.dst.num_sge = 2;
		right_is_checked(&p, &r, good);
		assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
		urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
		user.token_id = seg.token_id;
		r.dst[0].tseg = NULL;
		r.dst[0].user_tseg = &user;
		right_is_checked(&p, &r, good);
	}
	seg.token_id = 0;
	peer.seg = urma_import_seg(p.side.ctx, &seg, &token, 0, flag);
	urma_request_write(&r, &peer, p.base, p.mem.data, 8);
	right_is_checked(&p, &r, true);
	assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
	urma_pair_close(&p);
}

static void without_a_policy_any_token_will_do(void **state)
{
	struct urma_pair_attr attr = { .side = { .no_token = true, .rnr_retry = 7 },
				       .len = 4 * KIB };
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t any = { 4711 };
	struct urma_request r;
	struct urma_pair p;
	struct urma_peer peer;
	urma_seg_t seg;

	(void)state;
	urma_pair_open_attr(&p, &attr);
	urma_request_write(&r, &p.peer, p.base, p.mem.data, 8);
	right_is_checked(&p, &r, true);
	peer = p.peer;
	seg = p.told.seg;
	for (unsigned policy = URMA_TOKEN_NONE; policy <= URMA_TOKEN_PLAIN_TEXT; policy++) {
		seg.attr.bs.token_policy = policy & 7;
		peer.seg = urma_import_seg(p.side.ctx, &seg, &any, 0, flag);
		urma_request_write(&r, &peer, p.base, p.mem.data, 8);
		right_is_checked(&p, &r, true);
		assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
	}
	urma_pair_close(&p);
}

/* ---- Messages to a queue that is not ready ---- */

static int64_t owner_sets_state(void *args)
{
	struct urma_ask *a = args;
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = (urma_jetty_state_t)a->kind };

	return urma_modify_jetty(a->owner->side.jetty, &attr);
}

/* Its records up to the marker; negative: another one came behind. */
static int64_t owner_breaks(void *args)
{
	struct urma_ask *a = args;
	int64_t records = 0;

	a->kind = URMA_JETTY_STATE_ERROR;
	if (owner_sets_state(a))
		return -100;
	for (;; records++) {
		if (!urma_side_take(a->owner->side.jfc, &a->cr, URMA_PAIR_PATIENCE_MS))
			return -200;
		if (a->cr.status == URMA_CR_WR_FLUSH_ERR_DONE)
			break;
	}
	suite_sleep_us(1000);
	return urma_poll_jfc(a->owner->side.jfc, 1, &a->cr) ? -1 - records : records;
}

static void owner_becomes(struct urma_pair *p, urma_jetty_state_t state)
{
	struct urma_ask a = { .kind = state };

	assert_int_equal(urma_pair_ask(p, owner_sets_state, &a), URMA_SUCCESS);
}

/* The marker is the last record, however many messages come in; they wait, and none is lost. */
static void nothing_is_received_after_the_marker(void **state)
{
	enum {
		MESSAGES = 8
	};
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 64 * KIB);
	for (uint64_t round = 0; round < suite_scale(20); round++) {
		struct urma_ask a = { 0 };
		int64_t records;

		urma_pair_receive(&p, p.base, 8, MESSAGES, 50);
		for (unsigned i = 0; i < MESSAGES; i++) {
			urma_request_send(&r, &p.peer, p.mem.data, 8);
			urma_pair_post(&p, &r, i);
		}
		records = urma_pair_ask(&p, owner_breaks, &a);
		assert_in_range(records, 0, MESSAGES);
		owner_becomes(&p, URMA_JETTY_STATE_RESET);
		owner_becomes(&p, URMA_JETTY_STATE_READY);
		for (unsigned i = 0; i < MESSAGES; i++)
			urma_pair_assert_cr(&p, i, URMA_CR_SUCCESS, 8);
		for (int64_t i = records; i < MESSAGES; i++) {
			urma_cr_t cr = urma_pair_owner_take(&p);

			assert_int_equal(cr.status, URMA_CR_SUCCESS);
			assert_int_equal(cr.user_ctx, 50 + i);
		}
	}
	urma_pair_close(&p);
}

static void a_message_waits_until_its_target_is_ready(void **state)
{
	struct urma_ask a = { 0 };
	struct urma_request r;
	struct urma_pair p;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	urma_pair_receive(&p, p.base, 8, 1, 50);
	assert_int_equal(urma_pair_ask(&p, owner_breaks, &a), 0);
	urma_request_send(&r, &p.peer, p.mem.data, 8);
	urma_pair_post(&p, &r, 1);
	assert_nothing_comes(&p);
	owner_becomes(&p, URMA_JETTY_STATE_RESET);
	assert_nothing_comes(&p);
	owner_becomes(&p, URMA_JETTY_STATE_READY);
	urma_pair_assert_cr(&p, 1, URMA_CR_SUCCESS, 8);
	assert_int_equal(urma_pair_owner_take(&p).user_ctx, 50);
	urma_pair_close(&p);
}

/* ---- Asynchronous events ---- */

static void a_failure_makes_an_asynchronous_event(void **state)
{
	urma_async_event_t event;
	struct urma_request r;
	struct urma_pair p;
	struct pollfd fd;

	(void)state;
	urma_pair_open(&p, 4 * KIB);
	fcntl(p.side.ctx->async_fd, F_SETFL, fcntl(p.side.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	fd = (struct pollfd){ .fd = p.side.ctx->async_fd, .events = POLLIN };
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_FAIL);
	assert_int_equal(poll(&fd, 1, 0), 0);
	write_bad(&p, &r);
	urma_pair_post(&p, &r, 1);
	urma_pair_assert_cr(&p, 1, URMA_CR_REM_ACCESS_ABORT_ERR, 0);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_SUCCESS);
	assert_int_equal(event.event_type, URMA_EVENT_JETTY_ERR);
	assert_ptr_equal(event.element.jetty, p.side.jetty);
	assert_ptr_equal(event.urma_ctx, p.side.ctx);
	assert_int_equal(urma_get_async_event(p.side.ctx, &event), URMA_FAIL);
	assert_int_equal(poll(&fd, 1, 0), 0);
	event.event_type = URMA_EVENT_JETTY_ERR;
	event.element.jetty = p.side.jetty;
	urma_ack_async_event(&event); /* else the jetty could not be deleted */
	urma_pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_breaks_the_queue),
		cmocka_unit_test(what_follows_a_failure_is_flushed_in_order),
		cmocka_unit_test(error_by_hand_makes_one_marker),
		cmocka_unit_test(the_marker_comes_after_unbind_and_unimport),
		cmocka_unit_test(reset_and_ready_start_afresh),
		cmocka_unit_test(a_suspended_queue_keeps_what_is_posted),
		cmocka_unit_test(a_failure_may_suspend_instead),
		cmocka_unit_test(rights_are_granted_as_registered),
		cmocka_unit_test(a_wrong_token_shows_at_the_access),
		cmocka_unit_test(a_wrong_token_id_shows_at_the_access),
		cmocka_unit_test(without_a_policy_any_token_will_do),
		cmocka_unit_test(nothing_is_received_after_the_marker),
		cmocka_unit_test(a_message_waits_until_its_target_is_ready),
		cmocka_unit_test(a_failure_makes_an_asynchronous_event),
	};

	suite_messages = true;
	return suite_run(argc, argv, "urma_states", tests, sizeof(tests) / sizeof(*tests), NULL);
}
