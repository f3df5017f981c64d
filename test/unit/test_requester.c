/* SPDX-License-Identifier: MIT */
/* The initiator's machine alone: framing, matching, deadlines, leases, and a target that lies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "wire/requester.h"

#define WINDOW 4
#define PIECE  100

struct fixture {
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_requester r;
	uint64_t first_seq;
};

static void start(struct fixture *f, uint64_t first_seq)
{
	f->first_seq = first_seq;
	assert_int_equal(xtal_requester_init(&f->r,
					     &(struct xtal_requester_config){
						     .slots = f->slots,
						     .window = WINDOW,
						     .piece = PIECE,
						     .incarnation = 77,
						     .first_seq = first_seq,
						     .margin = 10,
					     }),
			 0);
}

static struct xtal_request request(enum xtal_msg_type type, uint64_t cookie, uint64_t len)
{
	return (struct xtal_request){
		.cookie = cookie,
		.type = type,
		.addr = 0x1000,
		.len = len,
		.deadline = XTAL_NO_DEADLINE,
	};
}

static struct xtal_request faa(uint64_t cookie, uint8_t size, uint64_t operand)
{
	struct xtal_request q = request(XTAL_MSG_ATOMIC, cookie, 0);

	q.atomic = XTAL_MSG_FAA;
	q.operand_size = size;
	q.operand[0] = operand;
	return q;
}

static void submit(struct fixture *f, struct xtal_request q)
{
	assert_true(xtal_requester_can_submit(&f->r));
	assert_int_equal(xtal_requester_submit(&f->r, &q), 0);
}

static struct xtal_requester_frame send_one(struct fixture *f)
{
	struct xtal_requester_frame frame, same;

	assert_true(xtal_requester_next_frame(&f->r, 5, &frame));
	assert_true(xtal_requester_next_frame(&f->r, 5, &same));
	assert_true(same.msg.seq == frame.msg.seq && same.msg.offset == frame.msg.offset);
	assert_null(xtal_msg_check(&frame.msg));
	xtal_requester_sent(&f->r);
	return frame;
}

/* What is submitted and sent in one step leaves the machine as the three steps do. */
static void test_submit_sent(void **state)
{
	struct fixture a, b;
	struct xtal_request q = request(XTAL_MSG_SEND, 0, 8);

	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	q.addr = 0;
	q.operand_size = XTAL_MSG_SEND_PLAIN;
	q.deadline = 1000;
	start(&a, UINT64_MAX - 1);
	start(&b, UINT64_MAX - 1);
	for (uint64_t i = 1; i <= WINDOW; i++) {
		struct xtal_requester_frame frame;
		struct xtal_msg m;

		q.cookie = i;
		submit(&a, q);
		frame = send_one(&a);
		assert_true(xtal_requester_submit_sent(&b.r, &q, 5, &m));
		assert_memory_equal(&frame.msg, &m, sizeof(m));
		for (unsigned k = 0; k < WINDOW; k++)
			assert_memory_equal(&a.slots[k], &b.slots[k], sizeof(a.slots[k]));
		b.r.config.slots = a.slots;
		assert_memory_equal(&a.r, &b.r, sizeof(a.r));
		b.r.config.slots = b.slots;
	}
	assert_false(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
	start(&b, 7);
	q.len = PIECE + 1; /* of two frames */
	assert_false(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
	q.len = 8;
	submit(&b, request(XTAL_MSG_WRITE, 50, 8)); /* waits in front */
	assert_false(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
	send_one(&b);
	q.operand_size = 9; /* not valid */
	assert_false(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
	q.operand_size = XTAL_MSG_SEND_PLAIN;
	assert_true(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
	start(&b, 7);
	b.r.config.resumable = true;
	assert_false(xtal_requester_submit_sent(&b.r, &q, 5, &(struct xtal_msg){ 0 }));
}

static void expect_no_frame(struct fixture *f)
{
	struct xtal_requester_frame frame;

	assert_false(xtal_requester_next_frame(&f->r, 5, &frame));
}

/* A good answer to the frame, as a target would make it. */
static struct xtal_msg answer(struct fixture *f, const struct xtal_msg *m)
{
	struct xtal_msg a = {
		.type = XTAL_MSG_RESPONSE,
		.flags = m->offset + m->piece == m->total ? XTAL_MSG_LAST : 0,
		.seq = f->r.response_seq,
		.ack = m->seq,
		.id = m->id,
		.total = m->total,
	};

	if (m->type == XTAL_MSG_READ) {
		a.offset = m->offset;
		a.piece = a.payload = m->piece;
	} else if (m->type == XTAL_MSG_ATOMIC) {
		a.atomic = m->atomic;
		a.operand_size = m->operand_size;
		a.operand[0] = 41;
	}
	return a;
}

static struct xtal_msg failure(struct fixture *f, const struct xtal_msg *m, enum xtal_status s)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_RESPONSE,
		.flags = XTAL_MSG_LAST,
		.status = s,
		.seq = f->r.response_seq,
		.ack = m->seq,
		.id = m->id,
		.total = m->total,
	};
}

static struct xtal_requester_effect receive(struct fixture *f, struct xtal_msg m)
{
	struct xtal_requester_effect e;
	const char *why = "";

	assert_null(xtal_msg_check(&m));
	if (xtal_requester_receive(&f->r, &m, 50, &e, &why))
		fail_msg("refused: %s", why);
	return e;
}

static void refuse(struct fixture *f, struct xtal_msg m, const char *part)
{
	struct xtal_requester before = f->r;
	struct xtal_requester_effect e;
	const char *why = NULL;

	assert_int_equal(xtal_requester_receive(&f->r, &m, 50, &e, &why), -EPROTO);
	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
	assert_int_equal(xtal_requester_receive(&f->r, &m, 50, &e, NULL), -EPROTO);
	assert_memory_equal(&before, &f->r, sizeof(before)); /* an error changes nothing */
}

static void test_init(void **state)
{
	struct fixture f;
	struct xtal_requester_config c = { .slots = f.slots, .window = WINDOW, .piece = PIECE };

	(void)state;
	c.window = 3;
	assert_int_equal(xtal_requester_init(&f.r, &c), -EINVAL);
	c.window = 0;
	assert_int_equal(xtal_requester_init(&f.r, &c), -EINVAL);
	c.window = WINDOW;
	c.piece = 0;
	assert_int_equal(xtal_requester_init(&f.r, &c), -EINVAL);
	c.piece = XTAL_MSG_PIECE + 1;
	assert_int_equal(xtal_requester_init(&f.r, &c), -EINVAL);
	c.piece = XTAL_MSG_PIECE;
	c.slots = NULL;
	assert_int_equal(xtal_requester_init(&f.r, &c), -EINVAL);
}

static void test_submit_refuses(void **state)
{
	struct fixture f;
	struct xtal_request q;

	(void)state;
	start(&f, 1);
	q = request(XTAL_MSG_RESPONSE, 1, 8);
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EINVAL);
	q = request(XTAL_MSG_WRITE, 1, 8);
	q.addr = UINT64_MAX - 7;
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EINVAL);
	q = request(XTAL_MSG_READ, 1, 8);
	q.flags = XTAL_MSG_NOTIFY;
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EINVAL);
	q = faa(1, 16, 1);
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EINVAL);
	q = faa(1, 3, 1);
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EINVAL);
	for (unsigned i = 0; i < WINDOW; i++)
		submit(&f, request(XTAL_MSG_WRITE, i, 8));
	assert_false(xtal_requester_can_submit(&f.r));
	q = request(XTAL_MSG_WRITE, 9, 8);
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EAGAIN);
}

static void test_write_pieces(void **state)
{
	struct fixture f;
	struct xtal_request q = request(XTAL_MSG_WRITE, 7, 250);
	struct xtal_requester_frame frame = { 0 };
	struct xtal_requester_effect e;

	(void)state;
	start(&f, 1);
	q.flags = XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY;
	q.token = 3;
	q.notify.addr = 0x2000;
	q.notify.data = 99;
	submit(&f, q);
	for (unsigned i = 0; i < 3; i++) {
		frame = send_one(&f);
		assert_int_equal(frame.msg.seq, 1 + i);
		assert_int_equal(frame.msg.offset, 100 * i);
		assert_int_equal(frame.local_offset, 100 * i);
		assert_int_equal(frame.msg.payload, i < 2 ? 100 : 50);
		assert_int_equal(frame.msg.total, 250);
		assert_int_equal(frame.msg.addr, 0x1000);
		assert_int_equal(frame.msg.incarnation, 77);
		assert_int_equal(frame.msg.notify.data, 99);
		assert_int_equal(frame.cookie, 7);
		assert_int_equal(frame.last, i == 2);
	}
	expect_no_frame(&f);
	e = receive(&f, answer(&f, &frame.msg));
	assert_true(e.finished && !e.ignored);
	assert_int_equal(e.cookie, 7);
	assert_int_equal(e.status, XTAL_OK);
	refuse(&f, answer(&f, &frame.msg), "awaits none"); /* the duplicate */
}

static void test_empty_operations(void **state)
{
	struct fixture f;
	struct xtal_requester_frame frame;

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_WRITE, 1, 0));
	submit(&f, request(XTAL_MSG_READ, 2, 0));
	frame = send_one(&f);
	assert_true(frame.last && frame.msg.payload == 0);
	assert_true(receive(&f, answer(&f, &frame.msg)).finished);
	frame = send_one(&f);
	assert_true(receive(&f, answer(&f, &frame.msg)).finished);
	expect_no_frame(&f);
}

static void test_read_pieces(void **state)
{
	struct fixture f;
	struct xtal_requester_frame frame[3];

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_READ, 7, 250));
	for (unsigned i = 0; i < 3; i++)
		frame[i] = send_one(&f);
	assert_int_equal(frame[2].msg.piece, 50);
	assert_int_equal(frame[2].msg.payload, 0);
	for (unsigned i = 0; i < 3; i++) {
		struct xtal_requester_effect e = receive(&f, answer(&f, &frame[i].msg));

		assert_int_equal(e.offset, 100 * i);
		assert_int_equal(e.len, frame[i].msg.piece);
		assert_int_equal(e.finished, i == 2);
		assert_false(e.ignored);
	}
}

static void test_read_fails_midway(void **state)
{
	struct fixture f;
	struct xtal_requester_frame frame[2], next;
	struct xtal_requester_effect e;

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_READ, 7, 350));
	submit(&f, request(XTAL_MSG_WRITE, 8, 10));
	frame[0] = send_one(&f);
	frame[1] = send_one(&f);
	receive(&f, answer(&f, &frame[0].msg));
	e = receive(&f, failure(&f, &frame[1].msg, XTAL_REMOTE_ACCESS));
	assert_true(e.finished);
	assert_int_equal(e.status, XTAL_REMOTE_ACCESS);
	next = send_one(&f); /* the rest of the failed one is not sent */
	assert_int_equal(next.cookie, 8);
	assert_int_equal(next.msg.seq, 3);
	assert_true(receive(&f, answer(&f, &next.msg)).finished);
}

static void test_atomic(void **state)
{
	struct fixture f;
	struct xtal_requester_frame frame;
	struct xtal_requester_effect e;

	(void)state;
	start(&f, 1);
	submit(&f, faa(1, 4, (uint64_t)-1)); /* a negative addend is cut to its size */
	frame = send_one(&f);
	assert_int_equal(frame.msg.operand[0], 0xffffffff);
	assert_int_equal(frame.msg.total, 4);
	e = receive(&f, answer(&f, &frame.msg));
	assert_true(e.finished);
	assert_int_equal(e.old[0], 41);
}

static void test_numbers_wrap(void **state)
{
	static const uint64_t starts[] = { 0xfffffff0, UINT64_MAX - 7, UINT64_MAX, 0 };

	(void)state;
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		struct fixture f;

		start(&f, starts[s]);
		for (uint64_t i = 0; i < 40; i++) {
			struct xtal_requester_frame last = { 0 };

			submit(&f, request(XTAL_MSG_WRITE, i, 250));
			for (unsigned n = 0; n < 3; n++)
				last = send_one(&f);
			assert_true(last.msg.seq == starts[s] + 3 * i + 2);
			assert_true(last.msg.ack == starts[s] + i - 1);
			assert_true(receive(&f, answer(&f, &last.msg)).finished);
		}
	}
}

/* Every way to answer a READ, a WRITE and an atomic wrongly. */
static void test_lying_target(void **state)
{
	struct fixture f;
	struct xtal_requester_frame read, write, atomic;
	struct xtal_msg a;

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_READ, 7, 250));
	read = send_one(&f);
	refuse(&f, read.msg, "request");
	a = answer(&f, &read.msg);
	a.seq++;
	refuse(&f, a, "out of order");
	a.seq -= 2;
	refuse(&f, a, "out of order");
	a = answer(&f, &read.msg);
	a.ack++;
	refuse(&f, a, "never sent");
	a.ack -= 2;
	refuse(&f, a, "awaits none");
	a = answer(&f, &read.msg);
	a.id++;
	refuse(&f, a, "id");
	a = answer(&f, &read.msg);
	a.total++;
	refuse(&f, a, "length");
	a = answer(&f, &read.msg);
	a.payload = a.piece = 99;
	refuse(&f, a, "more or less");
	a.payload = a.piece = 101;
	refuse(&f, a, "more or less");
	a = answer(&f, &read.msg);
	a.offset = 1;
	refuse(&f, a, "place");
	a = failure(&f, &read.msg, XTAL_OK); /* success without the data */
	refuse(&f, a, "more or less");
	a = answer(&f, &read.msg);
	a.atomic = XTAL_MSG_FAA;
	a.operand_size = 8;
	refuse(&f, a, "kind");
	receive(&f, answer(&f, &read.msg));
	refuse(&f, answer(&f, &read.msg), "not the next");
	read = send_one(&f);
	read = send_one(&f);
	refuse(&f, answer(&f, &read.msg), "not the next"); /* one left out */

	start(&f, 1);
	submit(&f, request(XTAL_MSG_WRITE, 8, 150));
	write = send_one(&f);
	a = failure(&f, &write.msg, XTAL_OK);
	refuse(&f, a, "before the operation was sent");
	write = send_one(&f);
	a = answer(&f, &write.msg);
	a.ack--;
	refuse(&f, a, "before the operation was sent");
	a = answer(&f, &write.msg);
	a.piece = a.payload = 50;
	a.offset = 100;
	refuse(&f, a, "nobody asked");
	submit(&f, faa(9, 8, 1));
	atomic = send_one(&f);
	refuse(&f, answer(&f, &atomic.msg), "passes over");
	receive(&f, answer(&f, &write.msg));
	a = answer(&f, &atomic.msg);
	a.atomic = XTAL_MSG_CAS;
	refuse(&f, a, "kind");
	a = answer(&f, &atomic.msg);
	a.operand_size = 4;
	refuse(&f, a, "kind");
	a = failure(&f, &atomic.msg, XTAL_OK);
	refuse(&f, a, "kind");
	a = (struct xtal_msg){ .type = XTAL_MSG_PONG, .ack = atomic.msg.seq + 1 };
	refuse(&f, a, "never sent");
	a.type = XTAL_MSG_PING;
	refuse(&f, a, "request");
	a.type = (enum xtal_msg_type)0x1f;
	refuse(&f, a, "unknown");
	assert_true(receive(&f, answer(&f, &atomic.msg)).finished);
}

static void test_deadlines(void **state)
{
	struct fixture f;
	struct xtal_request q;
	struct xtal_requester_expired x;

	(void)state;
	start(&f, 1);
	assert_true(xtal_requester_next_deadline(&f.r) == XTAL_NO_DEADLINE);
	submit(&f, request(XTAL_MSG_WRITE, 1, 8));
	assert_true(xtal_requester_next_deadline(&f.r) == XTAL_NO_DEADLINE);
	assert_false(xtal_requester_next_expired(&f.r, UINT64_MAX, &x));
	q = request(XTAL_MSG_WRITE, 2, 150);
	q.deadline = 1000;
	submit(&f, q);
	q.cookie = 3;
	q.deadline = 900;
	submit(&f, q);
	send_one(&f);
	send_one(&f);
	send_one(&f);
	assert_int_equal(xtal_requester_next_deadline(&f.r), 900);
	assert_false(xtal_requester_next_expired(&f.r, 899, &x));
	assert_true(xtal_requester_next_expired(&f.r, 900, &x));
	assert_true(x.cookie == 3 && x.frames == 0);
	assert_int_equal(xtal_requester_abandon(&f.r, 3, false), 0);
	assert_int_equal(xtal_requester_abandon(&f.r, 3, false), -ENOENT);
	assert_false(xtal_requester_next_expired(&f.r, 999, &x));
	assert_true(xtal_requester_next_expired(&f.r, 1000, &x));
	assert_true(x.cookie == 2 && x.first_seq == 2 && x.frames == 2);
	assert_int_equal(xtal_requester_abandon(&f.r, 2, false), 0);
	assert_int_equal(xtal_requester_abandon(&f.r, 17, true), -ENOENT);
	assert_true(xtal_requester_next_deadline(&f.r) == XTAL_NO_DEADLINE);
}

/* Answers to what has been given up are swallowed, and checked all the same. */
static void test_late_answers(void **state)
{
	struct fixture f;
	struct xtal_requester_frame a, b, c;
	struct xtal_requester_effect e;
	struct xtal_msg lie;

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_READ, 1, 150));
	submit(&f, request(XTAL_MSG_WRITE, 2, 150));
	submit(&f, request(XTAL_MSG_WRITE, 3, 10));
	a = send_one(&f);
	b = send_one(&f);
	assert_int_equal(xtal_requester_abandon(&f.r, 1, false), 0);
	lie = answer(&f, &a.msg);
	lie.payload = lie.piece = 99;
	refuse(&f, lie, "more or less");
	e = receive(&f, answer(&f, &a.msg));
	assert_true(e.ignored && !e.finished);
	e = receive(&f, answer(&f, &b.msg));
	assert_true(e.ignored && !e.finished);
	refuse(&f, answer(&f, &b.msg), "awaits none");

	/* the first piece of 2 is on its way; no more of it is sent; passing it over is right */
	send_one(&f);
	assert_int_equal(xtal_requester_abandon(&f.r, 2, false), 0);
	c = send_one(&f);
	assert_int_equal(c.cookie, 3);
	e = receive(&f, answer(&f, &c.msg));
	assert_true(e.finished && e.cookie == 3);
	for (unsigned i = 0; i < WINDOW; i++) /* no slot is lost */
		submit(&f, request(XTAL_MSG_WRITE, 10 + i, 8));
}

/* Without a later operation, a PONG tells that no answer will come. */
static void test_pong_frees(void **state)
{
	struct fixture f;
	struct xtal_msg ping;

	(void)state;
	start(&f, 1);
	for (unsigned i = 0; i < WINDOW; i++) {
		submit(&f, request(XTAL_MSG_WRITE, i, 150));
		send_one(&f);
		assert_int_equal(xtal_requester_abandon(&f.r, i, false), 0);
	}
	assert_false(xtal_requester_can_submit(&f.r));
	xtal_requester_ping(&f.r, 9, &ping);
	assert_null(xtal_msg_check(&ping));
	assert_true(receive(&f, (struct xtal_msg){ .type = XTAL_MSG_PONG, .ack = 3 }).ignored);
	for (unsigned i = 0; i < WINDOW - 1; i++)
		submit(&f, request(XTAL_MSG_WRITE, 10 + i, 8));
	assert_false(xtal_requester_can_submit(&f.r));
	assert_true(receive(&f, (struct xtal_msg){ .type = XTAL_MSG_PONG, .ack = 4 }).ignored);
	submit(&f, request(XTAL_MSG_WRITE, 20, 8));
}

static void test_silent_abandon(void **state)
{
	struct fixture f;
	struct xtal_requester_frame frame;

	(void)state;
	start(&f, 1);
	submit(&f, request(XTAL_MSG_WRITE, 1, 8));
	frame = send_one(&f);
	assert_int_equal(xtal_requester_abandon(&f.r, 1, true), 0);
	refuse(&f, answer(&f, &frame.msg), "awaits none");
	for (unsigned i = 0; i < WINDOW; i++)
		submit(&f, request(XTAL_MSG_WRITE, 10 + i, 8));
}

static void test_progress(void **state)
{
	struct fixture f;
	struct xtal_request q = request(XTAL_MSG_WRITE, 1, 1000);
	struct xtal_requester_expired x;

	(void)state;
	start(&f, 1);
	q.deadline = 1000;
	q.limit = 500;
	submit(&f, q);
	send_one(&f);
	send_one(&f);
	xtal_requester_progress(&f.r, 1, 800);
	assert_int_equal(xtal_requester_next_deadline(&f.r), 1300);
	xtal_requester_progress(&f.r, 1, 900); /* no news */
	xtal_requester_progress(&f.r, 3, 900); /* not sent */
	assert_int_equal(xtal_requester_next_deadline(&f.r), 1300);
	assert_false(xtal_requester_next_expired(&f.r, 1299, &x));
	assert_true(xtal_requester_next_expired(&f.r, 1300, &x));
	xtal_requester_progress(&f.r, 2, 1000);
	assert_int_equal(xtal_requester_next_deadline(&f.r), 1500);
	xtal_requester_progress(&f.r, 1, 1200); /* backwards */
	assert_int_equal(xtal_requester_next_deadline(&f.r), 1500);
}

/* The lease ends a margin before the deadline, counted on the target's clock. */
static void test_lease(void **state)
{
	struct fixture f;
	struct xtal_request q = request(XTAL_MSG_WRITE, 1, 8);
	struct xtal_requester_frame frame;
	struct xtal_msg a;

	(void)state;
	start(&f, 1);
	q.deadline = 10000;
	submit(&f, q);
	frame = send_one(&f);
	assert_int_equal(frame.msg.expiry, 0); /* nothing known of its clock yet */
	a = answer(&f, &frame.msg);
	a.stamp = 5000000;
	receive(&f, a); /* at 50 */
	submit(&f, q);
	frame = send_one(&f);
	assert_int_equal(frame.msg.expiry, 5000000 + (10000 - 50 - 10));
	receive(&f, answer(&f, &frame.msg)); /* no stamp: the old one stays */
	q.deadline = 55;
	submit(&f, q);
	frame = send_one(&f);
	assert_int_equal(frame.msg.expiry, 5000000); /* too late already */
	receive(&f, answer(&f, &frame.msg));
	submit(&f, request(XTAL_MSG_WRITE, 1, 8));
	frame = send_one(&f);
	assert_int_equal(frame.msg.expiry, 0); /* no deadline */
	a = answer(&f, &frame.msg);
	a.stamp = UINT64_MAX - 3;
	receive(&f, a);
	q.deadline = 10000;
	submit(&f, q);
	frame = send_one(&f);
	assert_true(frame.msg.expiry == UINT64_MAX);
}

static void test_fail_all(void **state)
{
	struct fixture f;
	struct xtal_requester_effect e;
	struct xtal_request q = request(XTAL_MSG_WRITE, 9, 8);

	(void)state;
	start(&f, 1);
	for (unsigned i = 0; i < WINDOW; i++)
		submit(&f, request(XTAL_MSG_WRITE, i, 150));
	send_one(&f);
	send_one(&f);
	send_one(&f);
	assert_int_equal(xtal_requester_abandon(&f.r, 1, false), 0);
	for (unsigned i = 0; i < WINDOW; i++) {
		if (i == 1)
			continue;
		assert_true(xtal_requester_fail_next(&f.r, XTAL_UNREACHABLE, &e));
		assert_true(e.finished && e.cookie == i && e.status == XTAL_UNREACHABLE);
	}
	assert_false(xtal_requester_fail_next(&f.r, XTAL_UNREACHABLE, &e));
	assert_false(xtal_requester_can_submit(&f.r));
	assert_int_equal(xtal_requester_submit(&f.r, &q), -EPIPE);
	expect_no_frame(&f);
}

/* Random valid-looking answers never make it end an operation twice or place data outside. */
static void test_noise(void **state)
{
	struct rng r = { .state = 7 };

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct fixture f;
		unsigned ended[WINDOW] = { 0 };
		struct xtal_requester_frame frames[64];
		unsigned count = 0;

		start(&f, rng_next(&r));
		for (unsigned i = 0; i < WINDOW; i++) {
			uint64_t kind = rng_below(&r, 3);

			submit(&f, kind == 0   ? faa(i, 8, 1)
				   : kind == 1 ? request(XTAL_MSG_READ, i, rng_below(&r, 400))
					       : request(XTAL_MSG_WRITE, i, rng_below(&r, 400)));
		}
		while (xtal_requester_next_frame(&f.r, 0, &frames[count])) {
			xtal_requester_sent(&f.r);
			count++;
		}
		for (unsigned i = 0; i < 100; i++) {
			const struct xtal_msg *m = &frames[rng_below(&r, count)].msg;
			struct xtal_msg a = rng_below(&r, 4) ? answer(&f, m)
							     : failure(&f, m, XTAL_REMOTE_ACCESS);
			struct xtal_requester_effect e;
			const struct xtal_request *q;
			uint64_t *field[] = {
				&a.seq, &a.ack, &a.id, &a.total, &a.offset, &a.piece
			};

			if (rng_below(&r, 4) == 0)
				*field[rng_below(&r, 6)] += rng_below(&r, 3) - 1;
			a.payload = a.piece;
			if (xtal_msg_check(&a) || xtal_requester_receive(&f.r, &a, 1, &e, NULL))
				continue;
			assert_true(e.cookie < WINDOW);
			assert_int_equal(ended[e.cookie], 0);
			q = &f.slots[e.cookie].request;
			if (e.len != 0) {
				assert_int_equal(q->type, XTAL_MSG_READ);
				assert_true(e.offset <= q->len && e.len <= q->len - e.offset);
			}
			ended[e.cookie] += e.finished;
		}
		for (unsigned i = 0; i < WINDOW; i++) {
			struct xtal_requester_effect e;

			if (!xtal_requester_fail_next(&f.r, XTAL_UNREACHABLE, &e))
				break;
			ended[e.cookie]++;
		}
		for (unsigned i = 0; i < WINDOW; i++)
			assert_int_equal(ended[i], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_submit_sent),       cmocka_unit_test(test_init),
		cmocka_unit_test(test_submit_refuses),    cmocka_unit_test(test_write_pieces),
		cmocka_unit_test(test_empty_operations),  cmocka_unit_test(test_read_pieces),
		cmocka_unit_test(test_read_fails_midway), cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_numbers_wrap),      cmocka_unit_test(test_lying_target),
		cmocka_unit_test(test_deadlines),         cmocka_unit_test(test_late_answers),
		cmocka_unit_test(test_pong_frees),        cmocka_unit_test(test_silent_abandon),
		cmocka_unit_test(test_progress),          cmocka_unit_test(test_lease),
		cmocka_unit_test(test_fail_all),          cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
