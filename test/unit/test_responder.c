/* SPDX-License-Identifier: MIT */
/* The target's machine alone: order, pieces, leases, failures, replay, and a lying initiator. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "wire/responder.h"

#define CACHE 4
#define PIECE 100

struct fixture {
	struct xtal_responder_result cache[CACHE];
	struct xtal_responder r;
	uint64_t seq; /* of the next frame to make */
	bool deaf;    /* no answer arrives after this one: */
	uint64_t heard;
};

static void start(struct fixture *f, uint64_t first_seq, bool gaps)
{
	f->seq = first_seq;
	f->deaf = false;
	assert_int_equal(xtal_responder_init(&f->r,
					     &(struct xtal_responder_config){
						     .cache = f->cache,
						     .cache_size = CACHE,
						     .piece = PIECE,
						     .incarnation = 77,
						     .first_seq = first_seq,
						     .gaps = gaps,
					     }),
			 0);
}

static struct xtal_msg piece(struct fixture *f, enum xtal_msg_type type, uint64_t id,
			     uint64_t total, uint64_t offset)
{
	uint64_t len = total - offset < PIECE ? total - offset : PIECE;

	return (struct xtal_msg){
		.type = type,
		.flags = XTAL_MSG_TOKEN,
		.seq = f->seq++,
		.ack = f->deaf ? f->heard : f->r.reply_seq - 1,
		.id = id,
		.incarnation = 77,
		.addr = 0x1000,
		.total = total,
		.offset = offset,
		.piece = len,
		.payload = type == XTAL_MSG_WRITE ? len : 0,
		.token = 5,
		.tid = 6,
		.key = 8,
	};
}

static struct xtal_msg cas(struct fixture *f, uint64_t id, unsigned size)
{
	struct xtal_msg m = piece(f, XTAL_MSG_ATOMIC, id, size, 0);

	m.atomic = XTAL_MSG_CAS;
	m.operand_size = (uint8_t)size;
	m.operand[0] = 1;
	m.compare[0] = 2;
	return m;
}

static struct xtal_responder_effect feed_at(struct fixture *f, struct xtal_msg m, uint64_t now,
					    enum xtal_responder_kind kind)
{
	struct xtal_responder_effect e;

	assert_null(xtal_msg_check(&m));
	xtal_responder_feed(&f->r, &m, now, &e);
	if (e.kind == XTAL_RESPONDER_DROP && kind != XTAL_RESPONDER_DROP)
		fail_msg("dropped: %s", e.why);
	assert_int_equal(e.kind, kind);
	if (kind == XTAL_RESPONDER_REPLY)
		assert_null(xtal_msg_check(&e.reply));
	return e;
}

static struct xtal_responder_effect feed(struct fixture *f, struct xtal_msg m,
					 enum xtal_responder_kind kind)
{
	return feed_at(f, m, 50, kind);
}

/* The reply to the effect; type 0 when there is none. */
static struct xtal_msg result(struct fixture *f, struct xtal_responder_effect e,
			      enum xtal_status status)
{
	static const uint64_t old[2] = { 0x1122334455667788, 0x99 };
	struct xtal_msg reply = { 0 };

	if (xtal_responder_result(&f->r, &e, status, old, 60, &reply)) {
		assert_null(xtal_msg_check(&reply));
		assert_int_equal(reply.stamp, 60);
		assert_int_equal(reply.ack, e.seq);
		assert_int_equal(reply.id, e.id);
	}
	return reply;
}

static void refuse(struct fixture *f, struct xtal_msg m, const char *part)
{
	struct xtal_responder saved = f->r;
	struct xtal_responder_effect e = feed(f, m, XTAL_RESPONDER_DROP);

	assert_non_null(e.why);
	if (!strstr(e.why, part))
		fail_msg("\"%s\" does not say \"%s\"", e.why, part);
	/* nothing more is executed on a dropped link */
	feed(f, piece(f, XTAL_MSG_WRITE, 1, 8, 0), XTAL_RESPONDER_DROP);
	f->seq = saved.seq;
	f->r = saved;
}

static void test_init(void **state)
{
	struct fixture f;
	struct xtal_responder_config c = { .cache = f.cache, .cache_size = 3, .piece = 1 };

	(void)state;
	assert_int_equal(xtal_responder_init(&f.r, &c), -EINVAL);
	c.cache_size = 4;
	c.piece = 0;
	assert_int_equal(xtal_responder_init(&f.r, &c), -EINVAL);
	c.piece = XTAL_MSG_PIECE + 1;
	assert_int_equal(xtal_responder_init(&f.r, &c), -EINVAL);
	c.piece = 1;
	c.cache = NULL;
	assert_int_equal(xtal_responder_init(&f.r, &c), -EINVAL);
	c.cache_size = 0;
	assert_int_equal(xtal_responder_init(&f.r, &c), 0);
}

static void test_write(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;
	struct xtal_msg m;

	(void)state;
	start(&f, 1, false);
	assert_int_equal(xtal_responder_consumed(&f.r), 0);
	for (unsigned i = 0; i < 3; i++) {
		m = piece(&f, XTAL_MSG_WRITE, 7, 250, 100 * i);
		m.flags |= XTAL_MSG_NOTIFY;
		m.notify.addr = 0x2000;
		m.notify.data = 3;
		e = feed(&f, m, XTAL_RESPONDER_WRITE);
		assert_true(e.first == (i == 0) && e.last == (i == 2));
		assert_true(e.addr == 0x1000 && e.total == 250);
		assert_true(e.offset == 100 * i && e.len == (i == 2 ? 50 : 100));
		assert_true(e.token_valid && e.token == 5 && e.tid == 6 && e.key == 8);
		assert_true(e.notify_valid && !e.notify_token_valid);
		assert_true(e.notify.addr == 0x2000 && e.notify.data == 3);
		assert_int_equal(xtal_responder_consumed(&f.r), i + 1);
		m = result(&f, e, XTAL_OK);
		assert_int_equal(m.type, i == 2 ? XTAL_MSG_RESPONSE : 0);
	}
	assert_true(m.flags == XTAL_MSG_LAST && m.status == XTAL_OK && m.payload == 0);
	assert_true(m.ack == 3 && m.total == 250 && m.seq == 1);
}

static void test_empty_write_notifies(void **state)
{
	struct fixture f;
	struct xtal_msg m;
	struct xtal_responder_effect e;

	(void)state;
	start(&f, 1, false);
	m = piece(&f, XTAL_MSG_WRITE, 7, 0, 0);
	m.flags |= XTAL_MSG_NOTIFY;
	m.notify.addr = 0x2000;
	e = feed(&f, m, XTAL_RESPONDER_WRITE);
	assert_true(e.first && e.last && e.notify_valid && e.len == 0);
	assert_true(result(&f, e, XTAL_OK).flags == XTAL_MSG_LAST);
}

static void test_read(void **state)
{
	struct fixture f;
	struct xtal_msg reply;

	(void)state;
	start(&f, 1, false);
	for (unsigned i = 0; i < 3; i++) {
		reply = result(
			&f,
			feed(&f, piece(&f, XTAL_MSG_READ, 7, 250, 100 * i), XTAL_RESPONDER_READ),
			XTAL_OK);
		assert_true(reply.offset == 100 * i && reply.payload == (i == 2 ? 50 : 100));
		assert_int_equal(reply.flags, i == 2 ? XTAL_MSG_LAST : 0);
		assert_int_equal(reply.seq, i + 1);
	}
}

static void test_atomic(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;
	struct xtal_msg reply;

	(void)state;
	start(&f, 1, false);
	e = feed(&f, cas(&f, 7, 4), XTAL_RESPONDER_ATOMIC);
	assert_true(e.atomic == XTAL_MSG_CAS && e.operand_size == 4);
	assert_true(e.operand[0] == 1 && e.compare[0] == 2 && e.first && e.last);
	reply = result(&f, e, XTAL_OK);
	assert_true(reply.operand[0] == 0x55667788 && reply.operand[1] == 0);
	reply = result(&f, feed(&f, cas(&f, 8, 16), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_true(reply.operand[0] == 0x1122334455667788 && reply.operand[1] == 0x99);
}

/* The first failure is the answer; what follows of the operation is not even looked at. */
static void test_fails_once(void **state)
{
	static const enum xtal_msg_type types[] = { XTAL_MSG_WRITE, XTAL_MSG_READ };

	(void)state;
	for (unsigned t = 0; t < 2; t++) {
		enum xtal_responder_kind kind = t ? XTAL_RESPONDER_READ : XTAL_RESPONDER_WRITE;
		struct fixture f;
		struct xtal_msg reply;

		start(&f, 1, false);
		reply = result(&f, feed(&f, piece(&f, types[t], 7, 350, 0), kind),
			       XTAL_REMOTE_ACCESS);
		assert_true(reply.status == XTAL_REMOTE_ACCESS && reply.flags == XTAL_MSG_LAST);
		assert_true(reply.payload == 0 && reply.ack == 1);
		feed(&f, piece(&f, types[t], 7, 350, 100), XTAL_RESPONDER_NONE);
		feed(&f, piece(&f, types[t], 7, 350, 200), XTAL_RESPONDER_NONE);
		feed(&f, piece(&f, types[t], 7, 350, 300), XTAL_RESPONDER_NONE);
		reply = result(&f, feed(&f, piece(&f, types[t], 8, 10, 0), kind), XTAL_OK);
		assert_true(reply.status == XTAL_OK && reply.ack == 5 && reply.seq == 2);
		/* abandoned by its initiator after a failure in the middle */
		result(&f, feed(&f, piece(&f, types[t], 9, 350, 0), kind), XTAL_OK);
		result(&f, feed(&f, piece(&f, types[t], 9, 350, 100), kind), XTAL_LOCAL_ACCESS);
		reply = result(&f, feed(&f, piece(&f, types[t], 10, 350, 0), kind), XTAL_FLUSHED);
		assert_int_equal(reply.status, XTAL_REMOTE_OPERATION);
	}
}

static void test_incarnation(void **state)
{
	struct fixture f;
	struct xtal_msg m;
	struct xtal_responder_effect e;

	(void)state;
	start(&f, 1, false);
	m = piece(&f, XTAL_MSG_WRITE, 7, 150, 0);
	m.incarnation = 78;
	e = feed(&f, m, XTAL_RESPONDER_REPLY);
	assert_true(e.reply.status == XTAL_REMOTE_ACCESS && e.reply.id == 7);
	m = piece(&f, XTAL_MSG_WRITE, 7, 150, 100);
	m.incarnation = 78;
	feed(&f, m, XTAL_RESPONDER_NONE);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 8, 10, 0), XTAL_RESPONDER_WRITE), XTAL_OK);
}

static void test_lease(void **state)
{
	struct fixture f;
	struct xtal_msg m;
	struct xtal_responder_effect e;

	(void)state;
	start(&f, 1, false);
	m = piece(&f, XTAL_MSG_WRITE, 7, 150, 0);
	m.expiry = 1000;
	result(&f, feed_at(&f, m, 1000, XTAL_RESPONDER_WRITE), XTAL_OK);
	m = piece(&f, XTAL_MSG_WRITE, 7, 150, 100);
	m.expiry = 1000;
	e = feed_at(&f, m, 1001, XTAL_RESPONDER_REPLY); /* each piece is checked */
	assert_int_equal(e.reply.status, XTAL_UNREACHABLE);
	m = cas(&f, 8, 8);
	m.expiry = 1;
	e = feed_at(&f, m, UINT64_MAX, XTAL_RESPONDER_REPLY);
	assert_true(e.reply.status == XTAL_UNREACHABLE && e.reply.id == 8);
	m = cas(&f, 9, 8);
	feed_at(&f, m, UINT64_MAX, XTAL_RESPONDER_ATOMIC); /* 0: no limit */
}

/* A SEND of 8 bytes; after: the one before it in its queue, or 0. */
static struct xtal_msg a_send(struct fixture *f, uint64_t id, uint64_t after)
{
	struct xtal_msg m = piece(f, XTAL_MSG_SEND, id, 8, 0);

	m.addr = 0;
	m.payload = 8;
	m.operand_size = XTAL_MSG_SEND_PLAIN;
	m.notify = (struct xtal_msg_notify){ .addr = after, .token = 33 };
	return m;
}

/* Whatever became of a message: those that were sent behind it are not received without it. */
static void test_send_fails(void **state)
{
	static const enum xtal_status statuses[] = { XTAL_NOT_READY, XTAL_REMOTE_LENGTH,
						     XTAL_REMOTE_ACCESS };
	struct xtal_responder_effect e;
	struct fixture f;
	struct xtal_msg m;

	(void)state;
	start(&f, 1, false);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t id = 10 + 10 * i;

		result(&f, feed_at(&f, a_send(&f, id, 0), 1, XTAL_RESPONDER_SEND), statuses[i]);
		e = feed_at(&f, a_send(&f, id + 1, id), 1, XTAL_RESPONDER_REPLY);
		assert_int_equal(e.reply.status, XTAL_NOT_READY);
		e = feed_at(&f, a_send(&f, id + 2, id + 1), 1, XTAL_RESPONDER_REPLY);
		assert_int_equal(e.reply.status, XTAL_NOT_READY);
		/* It begins anew. */
		result(&f, feed_at(&f, a_send(&f, id + 3, 0), 1, XTAL_RESPONDER_SEND), XTAL_OK);
	}
	m = a_send(&f, 50, 0);
	m.expiry = 1000;
	e = feed_at(&f, m, 1001, XTAL_RESPONDER_REPLY);
	assert_int_equal(e.reply.status, XTAL_UNREACHABLE);
	m = a_send(&f, 51, 50);
	m.expiry = 2000;
	e = feed_at(&f, m, 1001, XTAL_RESPONDER_REPLY);
	assert_int_equal(e.reply.status, XTAL_NOT_READY);
	feed_at(&f, a_send(&f, 52, 0), 1001, XTAL_RESPONDER_SEND);
}

static void test_ping(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;

	(void)state;
	start(&f, 10, false);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 150, 0), XTAL_RESPONDER_WRITE), XTAL_OK);
	e = feed(&f, (struct xtal_msg){ .type = XTAL_MSG_PING, .id = 4, .stamp = 3 },
		 XTAL_RESPONDER_REPLY);
	assert_true(e.reply.type == XTAL_MSG_PONG && e.reply.id == 4);
	assert_true(e.reply.ack == 10 && e.reply.stamp == 50);
	/* between two pieces it changes nothing */
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 150, 100), XTAL_RESPONDER_WRITE), XTAL_OK);
}

static void test_lying_initiator(void **state)
{
	struct fixture f;
	struct xtal_msg m;

	(void)state;
	start(&f, 1, false);
	m = piece(&f, XTAL_MSG_WRITE, 7, 350, 0);
	m.seq++;
	refuse(&f, m, "order");
	m.seq -= 2;
	refuse(&f, m, "order");
	m.seq++;
	m.ack = 1;
	refuse(&f, m, "never sent");
	m = piece(&f, XTAL_MSG_WRITE, 7, 350, 100);
	refuse(&f, m, "not begun");
	m = piece(&f, XTAL_MSG_READ, 7, 350, 0);
	m.piece++;
	refuse(&f, m, "longer");
	m = (struct xtal_msg){ .type = XTAL_MSG_RESPONSE, .flags = XTAL_MSG_LAST };
	refuse(&f, m, "answer");
	m = (struct xtal_msg){ .type = XTAL_MSG_PONG };
	refuse(&f, m, "answer");

	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 0), XTAL_RESPONDER_WRITE), XTAL_OK);
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 200), "follow");
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 50), "follow");
	refuse(&f, piece(&f, XTAL_MSG_READ, 7, 350, 100), "differs");
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 8, 350, 100), "differs");
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 7, 351, 100), "differs");
#define DIFFERS(field, value)                               \
	do {                                                \
		m = piece(&f, XTAL_MSG_WRITE, 7, 350, 100); \
		m.field = (value);                          \
		refuse(&f, m, "differs");                   \
	} while (0)
	DIFFERS(addr, 0x1001);
	DIFFERS(token, 6);
	DIFFERS(tid, 7);
	DIFFERS(key, 9);
	DIFFERS(incarnation, 78);
	DIFFERS(rights, XTAL_MSG_RIGHT_READ);
	DIFFERS(flags, XTAL_MSG_TOKEN | XTAL_MSG_NOTIFY);
#undef DIFFERS
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 100), XTAL_RESPONDER_WRITE), XTAL_OK);

	/* also what is ignored must be of the failed operation */
	start(&f, 1, false);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 0), XTAL_RESPONDER_WRITE),
	       XTAL_REMOTE_ACCESS);
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 200), "follow");
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 8, 350, 100), "differs");

	/* the notify word was checked with the first piece: it cannot change later */
	start(&f, 1, false);
	m = piece(&f, XTAL_MSG_WRITE, 7, 150, 0);
	m.flags |= XTAL_MSG_NOTIFY;
	m.notify.addr = 0x2000;
	result(&f, feed(&f, m, XTAL_RESPONDER_WRITE), XTAL_OK);
	m.seq = f.seq++;
	m.offset = 100;
	m.piece = m.payload = 50;
	m.notify.addr = 0x3000;
	refuse(&f, m, "differs");
	m.notify.addr = 0x2000;
	m.notify.data = 1;
	refuse(&f, m, "differs");
}

/* Without a result the order of execution would be lost. */
static void test_result_is_due(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;
	struct xtal_msg reply;

	(void)state;
	start(&f, 1, false);
	e = feed(&f, cas(&f, 7, 8), XTAL_RESPONDER_ATOMIC);
	refuse(&f, cas(&f, 8, 8), "executed");
	assert_int_equal(result(&f, e, XTAL_OK).type, XTAL_MSG_RESPONSE);
	assert_false(xtal_responder_result(&f.r, &e, XTAL_OK, NULL, 1, &reply)); /* only once */
}

/* Frames that the carrier let be cancelled are missing; the rest of their operation is void. */
static void test_gaps(void **state)
{
	struct fixture f;
	struct xtal_msg m;

	(void)state;
	start(&f, 1, true);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 0), XTAL_RESPONDER_WRITE), XTAL_OK);
	f.seq++; /* 100 was cancelled */
	feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 200), XTAL_RESPONDER_NONE);
	feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 350, 300), XTAL_RESPONDER_NONE);
	f.seq += 2; /* the first of 8 and all of 9 were cancelled */
	feed(&f, piece(&f, XTAL_MSG_READ, 8, 350, 100), XTAL_RESPONDER_NONE);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 9, 350, 0), XTAL_RESPONDER_WRITE), XTAL_OK);
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 9, 350, 100), XTAL_RESPONDER_WRITE), XTAL_OK);
	f.seq++;
	m = result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 10, 10, 0), XTAL_RESPONDER_WRITE),
		   XTAL_OK);
	assert_true(m.id == 10 && m.seq == 1);
	/* never backwards, and without a gap the pieces must match */
	f.seq--;
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 11, 10, 0), "order");
	refuse(&f, piece(&f, XTAL_MSG_WRITE, 11, 350, 100), "not begun");
}

static void test_numbers_wrap(void **state)
{
	static const uint64_t starts[] = { 0xfffffff0, UINT64_MAX - 3, UINT64_MAX, 0 };

	(void)state;
	for (unsigned g = 0; g < 2; g++)
		for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
			struct fixture f;

			start(&f, starts[s], g);
			for (uint64_t i = 0; i < 40; i++) {
				struct xtal_responder_effect e =
					feed(&f, cas(&f, i, 8), XTAL_RESPONDER_ATOMIC);
				struct xtal_msg m = result(&f, e, XTAL_OK);

				assert_true(m.seq == starts[s] + i);
				f.seq += g;
			}
		}
}

/* Answers up to `received` have arrived. Returns how many were lost and come again. */
static unsigned resume(struct fixture *f, uint64_t received, struct xtal_msg again[CACHE])
{
	unsigned n = 0;

	assert_int_equal(xtal_responder_resume(&f->r, received), 0);
	while (xtal_responder_replay(&f->r, 70, &again[n])) {
		assert_null(xtal_msg_check(&again[n]));
		assert_true(again[n].flags == XTAL_MSG_LAST && again[n].stamp == 70);
		assert_true(again[n].seq == received + 1 + n);
		assert_true(++n <= CACHE);
	}
	return n;
}

static void test_replay(void **state)
{
	static const unsigned lost[4] = { 0, 1, 2, 4 };
	struct fixture f;
	struct xtal_msg first[6], again[CACHE + 1];
	uint64_t start_seq = UINT64_MAX - 2;

	(void)state;
	start(&f, start_seq, false);
	f.deaf = true;
	f.heard = start_seq - 1;
	assert_int_equal(resume(&f, start_seq - 1, again), 0);
	first[0] = result(&f, feed(&f, cas(&f, 0, 8), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	first[1] = result(&f, feed(&f, cas(&f, 1, 16), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	first[2] = result(&f, feed(&f, cas(&f, 2, 8), XTAL_RESPONDER_ATOMIC), XTAL_REMOTE_ACCESS);
	first[3] = result(&f, feed(&f, piece(&f, XTAL_MSG_READ, 3, 10, 0), XTAL_RESPONDER_READ),
			  XTAL_OK);
	first[4] = result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 4, 10, 0), XTAL_RESPONDER_WRITE),
			  XTAL_OK);
	/* the READ is executed again instead: the others close up, twice over */
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(resume(&f, start_seq - 1, again), 4);
		for (unsigned i = 0; i < 4; i++) {
			const struct xtal_msg *m = &first[lost[i]];

			assert_true(again[i].id == m->id && again[i].status == m->status);
			assert_true(again[i].ack == m->ack && again[i].total == m->total);
			assert_true(again[i].operand[0] == m->operand[0]);
			assert_true(again[i].operand[1] == m->operand[1]);
			assert_true(again[i].atomic == m->atomic);
			assert_true(again[i].operand_size == m->operand_size);
		}
	}
	/* two of the four arrived this time */
	assert_int_equal(resume(&f, start_seq + 1, again), 2);
	assert_true(again[0].id == 2 && again[1].id == 4);
	/* broken off after one, which did not arrive */
	assert_int_equal(xtal_responder_resume(&f.r, start_seq + 1), 0);
	assert_true(xtal_responder_replay(&f.r, 70, &again[0]));
	assert_int_equal(resume(&f, start_seq + 1, again), 2);
	assert_true(again[0].id == 2 && again[1].id == 4);
	/* the next one takes up the numbers */
	first[5] = result(&f, feed(&f, cas(&f, 5, 8), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_true(first[5].seq == start_seq + 4);
	assert_false(xtal_responder_replay(&f.r, 70, &again[0]));
	assert_int_equal(resume(&f, start_seq + 4, again), 0);
}

static void test_replay_refused(void **state)
{
	struct fixture f;
	struct xtal_msg again[CACHE + 1], m;

	(void)state;
	start(&f, 1, false);
	f.deaf = true;
	f.heard = 0;
	for (uint64_t i = 0; i < CACHE; i++)
		result(&f, feed(&f, cas(&f, i, 8), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_int_equal(resume(&f, 0, again), CACHE);
	/* never sent */
	assert_int_equal(xtal_responder_resume(&f.r, CACHE + 1), -EPROTO);
	/* a fifth displaces the oldest, whose answer can then be had no more */
	m = cas(&f, 9, 8);
	result(&f, feed(&f, m, XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_int_equal(xtal_responder_resume(&f.r, 0), -EPROTO);
	assert_int_equal(resume(&f, 1, again), CACHE);
	/* a request has said that the third arrived */
	m = cas(&f, 10, 8);
	m.ack = 3;
	result(&f, feed(&f, m, XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_int_equal(xtal_responder_resume(&f.r, 2), -EPROTO);
	assert_int_equal(resume(&f, 3, again), 3);
	m.seq += 5;
	feed(&f, m, XTAL_RESPONDER_DROP);
	assert_int_equal(xtal_responder_resume(&f.r, 3), -EPROTO);
	/* without a cache only READs can be lost */
	start(&f, 1, false);
	f.r.config.cache_size = 0;
	result(&f, feed(&f, piece(&f, XTAL_MSG_READ, 1, 8, 0), XTAL_RESPONDER_READ), XTAL_OK);
	assert_int_equal(resume(&f, 0, again), 0);
	result(&f, feed(&f, cas(&f, 2, 8), XTAL_RESPONDER_ATOMIC), XTAL_OK);
	assert_int_equal(xtal_responder_resume(&f.r, 0), -EPROTO);
	assert_int_equal(resume(&f, 1, again), 0);
}

/* The connection goes while an effect is executed: its frame comes again. */
static void test_void_effect(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;
	struct xtal_msg again[CACHE + 1], m[3], stranger;

	(void)state;
	start(&f, 1, false);
	f.deaf = true;
	f.heard = 0;
	for (unsigned i = 0; i < 3; i++)
		m[i] = piece(&f, XTAL_MSG_WRITE, 7, 250, 100 * i);
	for (unsigned i = 0; i < 3; i++) {
		e = feed(&f, m[i], XTAL_RESPONDER_WRITE);
		assert_int_equal(resume(&f, 0, again), 0);
		assert_int_equal(xtal_responder_consumed(&f.r), i);
		stranger = m[i];
		stranger.id++;
		if (i)
			refuse(&f, stranger, "differs");
		e = feed(&f, m[i], XTAL_RESPONDER_WRITE);
		assert_true(e.first == (i == 0) && e.last == (i == 2) && e.offset == 100 * i);
		result(&f, e, XTAL_OK);
		assert_int_equal(xtal_responder_consumed(&f.r), i + 1);
	}
	assert_int_equal(resume(&f, 0, again), 1);
	assert_true(again[0].id == 7 && again[0].ack == 3);
}

/* After a resumption a READ goes on where its answers ended, and nothing else does. */
static void test_read_resumes(void **state)
{
	struct fixture f;
	struct xtal_responder_effect e;
	struct xtal_msg again[CACHE + 1], m, reply;

	(void)state;
	start(&f, 1, false);
	f.deaf = true;
	f.heard = 0;
	for (unsigned i = 0; i < 3; i++)
		result(&f, feed(&f, piece(&f, XTAL_MSG_READ, 7, 250, 100 * i), XTAL_RESPONDER_READ),
		       XTAL_OK);
	assert_int_equal(resume(&f, 1, again), 0);
	f.heard = 1;
	m = piece(&f, XTAL_MSG_WRITE, 7, 250, 100);
	refuse(&f, m, "has not begun");
	m = piece(&f, XTAL_MSG_READ, 7, 250, 100);
	e = feed(&f, m, XTAL_RESPONDER_READ);
	assert_true(e.first && !e.last && e.offset == 100);
	reply = result(&f, e, XTAL_OK);
	assert_true(reply.seq == 2 && reply.offset == 100 && reply.payload == 100);
	/* only the first frame may */
	refuse(&f, piece(&f, XTAL_MSG_READ, 7, 250, 100), "does not follow");
	e = feed(&f, piece(&f, XTAL_MSG_READ, 7, 250, 200), XTAL_RESPONDER_READ);
	assert_true(!e.first && e.last);
	assert_true(result(&f, e, XTAL_OK).flags == XTAL_MSG_LAST);
	/* one that failed in the middle is tried again from there */
	e = feed(&f, piece(&f, XTAL_MSG_READ, 8, 250, 0), XTAL_RESPONDER_READ);
	result(&f, e, XTAL_REMOTE_ACCESS);
	feed(&f, piece(&f, XTAL_MSG_READ, 8, 250, 100), XTAL_RESPONDER_NONE);
	assert_int_equal(resume(&f, 3, again), 0);
	e = feed(&f, piece(&f, XTAL_MSG_READ, 8, 250, 0), XTAL_RESPONDER_READ);
	assert_true(e.first);
	assert_true(result(&f, e, XTAL_OK).seq == 4);
}

/* A WRITE that was refused in its first piece: the rest is still ignored, the refusal kept. */
static void test_refused_resumes(void **state)
{
	struct fixture f;
	struct xtal_msg again[CACHE + 1];

	(void)state;
	start(&f, 1, false);
	f.deaf = true;
	f.heard = 0;
	result(&f, feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 250, 0), XTAL_RESPONDER_WRITE),
	       XTAL_REMOTE_ACCESS);
	assert_int_equal(resume(&f, 0, again), 1);
	assert_true(again[0].status == XTAL_REMOTE_ACCESS && again[0].id == 7);
	feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 250, 100), XTAL_RESPONDER_NONE);
	feed(&f, piece(&f, XTAL_MSG_WRITE, 7, 250, 200), XTAL_RESPONDER_NONE);
	feed(&f, piece(&f, XTAL_MSG_WRITE, 8, 10, 0), XTAL_RESPONDER_WRITE);
}

/* Any sequence of frames that decode: what is executed lies within what was checked first. */
static void test_noise(void **state)
{
	struct rng r = { .state = 3 };
	uint64_t executed = 0;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct fixture f;
		struct xtal_responder_effect first = { 0 };
		uint64_t next = 0;
		bool answered = false;

		start(&f, rng_next(&r), rng_below(&r, 2));
		for (unsigned i = 0; i < 60; i++) {
			static const enum xtal_msg_type types[] = { XTAL_MSG_WRITE, XTAL_MSG_READ };
			bool goes_on = next != 0 && rng_below(&r, 3) != 0;
			struct xtal_msg m =
				goes_on ? piece(&f, types[first.kind == XTAL_RESPONDER_READ],
						first.id, first.total, next)
					: piece(&f, types[rng_below(&r, 2)], i, rng_below(&r, 500),
						0);
			uint64_t *field[] = { &m.seq, &m.id, &m.addr, &m.offset, &m.total };
			struct xtal_responder_effect e;
			struct xtal_msg reply;
			bool ok = rng_below(&r, 8) != 0;

			if (rng_below(&r, 16) == 0)
				*field[rng_below(&r, 5)] += rng_below(&r, 3) - 1;
			if (xtal_msg_check(&m))
				continue;
			xtal_responder_feed(&f.r, &m, 1, &e);
			if (e.kind == XTAL_RESPONDER_DROP)
				break;
			f.seq = m.seq + 1;
			next = e.last ? 0 : e.offset + e.len;
			if (e.kind == XTAL_RESPONDER_NONE)
				continue;
			if (e.first) {
				first = e;
				answered = false;
			}
			assert_true(e.id == first.id && e.addr == first.addr);
			assert_true(e.total == first.total && e.kind == first.kind);
			assert_true(e.offset + e.len <= e.total && !answered);
			executed++;
			if (xtal_responder_result(&f.r, &e, ok ? XTAL_OK : XTAL_REMOTE_ACCESS, NULL,
						  1, &reply)) {
				assert_null(xtal_msg_check(&reply));
				answered = reply.flags & XTAL_MSG_LAST;
			}
		}
	}
	assert_true(executed > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_empty_write_notifies),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_fails_once),
		cmocka_unit_test(test_incarnation),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_send_fails),
		cmocka_unit_test(test_ping),
		cmocka_unit_test(test_lying_initiator),
		cmocka_unit_test(test_result_is_due),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_numbers_wrap),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_replay_refused),
		cmocka_unit_test(test_void_effect),
		cmocka_unit_test(test_read_resumes),
		cmocka_unit_test(test_refused_resumes),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
