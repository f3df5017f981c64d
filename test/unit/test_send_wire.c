/* SPDX-License-Identifier: MIT */
/* SENDs in the two machines of the message protocol, and the rules of their frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/proc.h"
#include "lib/rng.h"
#include "wire/requester.h"
#include "wire/responder.h"

#define PIECE    64u
#define WINDOW   32u
#define STREAMS  5u
#define DEPTH    6u
#define MESSAGES 60u
#define FRAMES   256u

static struct xtal_msg a_send(void)
{
	return (struct xtal_msg){
		.type = XTAL_MSG_SEND,
		.flags = XTAL_MSG_TOKEN | XTAL_MSG_SOLICITED | XTAL_MSG_TO_JETTY |
			 XTAL_MSG_FROM_JETTY,
		.operand_size = XTAL_MSG_SEND_IMM,
		.seq = 3,
		.id = 4,
		.total = 100,
		.piece = 100,
		.payload = 100,
		.token = 7,
		.tid = 8,
		.key = 9,
		.operand = { 10, 0 },
		.compare = { 11, 12 },
		.notify = { .addr = 13, .tid = 15, .token = 16 },
	};
}

static void frames_of_sends_have_rules(void **state)
{
	uint8_t bytes[XTAL_MSG_HEADER], again[XTAL_MSG_HEADER];
	struct xtal_msg m = a_send(), back;
	const char *why;

	(void)state;
	assert_null(xtal_msg_check(&m));
	xtal_msg_encode(&m, bytes);
	assert_int_equal(xtal_msg_decode(bytes, sizeof(bytes), &back, &why), 0);
	xtal_msg_encode(&back, again);
	assert_memory_equal(bytes, again, sizeof(bytes));
#define BAD(field, value, words)  \
	m = a_send();             \
	m.field = value;          \
	why = xtal_msg_check(&m); \
	assert_non_null(why);     \
	assert_non_null(strstr(why, words))
	BAD(flags, XTAL_MSG_NOTIFY, "flag");
	BAD(flags, XTAL_MSG_LAST, "flag");
	BAD(flags, 0, "token");
	BAD(addr, 1, "address");
	BAD(payload, 99, "payload");
	BAD(piece, 101, "piece");
	BAD(rights, XTAL_MSG_RIGHT_WRITE, "right");
	BAD(atomic, XTAL_MSG_FAA, "atomic");
	BAD(operand_size, 0, "kind");
	BAD(operand_size, 5, "kind");
	BAD(operand_size, XTAL_MSG_SEND_PLAIN, "immediate");
	BAD(operand[1], 256, "hint");
	BAD(notify.data, 1, "length");
	BAD(operand_size, XTAL_MSG_SEND_WRITTEN, "length");
	BAD(status, XTAL_NOT_READY, "status");
	m = a_send();
	m.operand_size = XTAL_MSG_SEND_WRITTEN;
	m.total = m.piece = m.payload = 0;
	m.notify.data = UINT64_MAX;
	assert_null(xtal_msg_check(&m));
}

/* Why a sender must wait comes with for how long. */
static void a_pause_comes_with_not_ready_only(void **state)
{
	struct xtal_msg m = { .type = XTAL_MSG_RESPONSE,
			      .flags = XTAL_MSG_LAST,
			      .seq = 1,
			      .ack = 1,
			      .status = XTAL_NOT_READY,
			      .operand = { 640000, 0 } };

	(void)state;
	assert_null(xtal_msg_check(&m));
	m.operand[0] = XTAL_MSG_MAX_PAUSE + 1u;
	assert_non_null(xtal_msg_check(&m));
	m.operand[0] = 0;
	assert_null(xtal_msg_check(&m));
	m.operand[1] = 1;
	assert_non_null(xtal_msg_check(&m));
	m.operand[1] = 0;
	m.operand[0] = 640000;
	m.status = XTAL_REMOTE_ACCESS;
	assert_non_null(xtal_msg_check(&m));
}

/* One queue of the initiator: its messages are to be received once each, in order. */
struct stream {
	uint32_t next;     /* message to be submitted */
	uint32_t oldest;   /* not known to be received */
	uint32_t inflight; /* submitted, not ended */
	bool came_back;    /* one of them was not received: no more until all have ended */
	uint64_t last;     /* cookie of the newest in flight */
	uint32_t received; /* at the target */
};

struct world {
	struct rng rng;
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_requester out;
	struct xtal_responder_result cache[WINDOW];
	struct xtal_responder in;
	struct xtal_msg there[FRAMES], back[FRAMES];
	uint32_t there_first, there_count, back_first, back_count;
	struct stream stream[STREAMS];
	uint64_t landed; /* bytes of the message that is coming in */
};

static uint32_t draw(struct world *w, uint32_t below)
{
	return (uint32_t)rng_below(&w->rng, below);
}

/* Cookies come again, as addresses of operations do. */
static uint64_t cookie_of(uint32_t s, uint32_t message)
{
	return 0x1000u * (s + 1) + message % (DEPTH + 1);
}

static void submit(struct world *w)
{
	uint32_t i = draw(w, STREAMS);
	struct stream *s = &w->stream[i];
	struct xtal_request q = {
		.type = XTAL_MSG_SEND,
		.operand_size = XTAL_MSG_SEND_IMM,
		.len = draw(w, 4) ? draw(w, PIECE) : draw(w, 4 * PIECE),
		.key = i,
		.deadline = XTAL_NO_DEADLINE,
	};

	if (s->came_back || s->inflight == DEPTH || s->next == MESSAGES ||
	    !xtal_requester_can_submit(&w->out))
		return;
	q.cookie = cookie_of(i, s->next);
	q.operand[0] = s->next;
	q.notify.addr = s->inflight ? s->last : 0;
	q.notify.token = i;
	assert_int_equal(xtal_requester_submit(&w->out, &q), 0);
	s->last = q.cookie;
	s->next++;
	s->inflight++;
}

static void send_frame(struct world *w)
{
	struct xtal_requester_frame f;

	if (w->there_count == FRAMES || !xtal_requester_next_frame(&w->out, 1, &f))
		return;
	assert_null(xtal_msg_check(&f.msg));
	w->there[(w->there_first + w->there_count++) % FRAMES] = f.msg;
	xtal_requester_sent(&w->out);
}

static void reply(struct world *w, const struct xtal_msg *m)
{
	assert_null(xtal_msg_check(m));
	assert_true(w->back_count < FRAMES);
	w->back[(w->back_first + w->back_count++) % FRAMES] = *m;
}

static void execute(struct world *w, const struct xtal_responder_effect *e)
{
	struct stream *s = &w->stream[e->key];
	enum xtal_status status = XTAL_OK;
	struct xtal_msg answer;

	assert_int_equal(e->kind, XTAL_RESPONDER_SEND);
	assert_int_equal(e->operand_size, XTAL_MSG_SEND_IMM);
	if (e->first) {
		w->landed = 0;
		if (draw(w, 4) == 0)
			status = XTAL_NOT_READY;
	}
	if (!status) {
		assert_int_equal(e->operand[0], s->received); /* in order, and once */
		assert_int_equal(e->offset, w->landed);
		w->landed += e->len;
		if (e->last)
			s->received++;
	}
	if (xtal_responder_result(&w->in, e, status, NULL, 1, &answer))
		reply(w, &answer);
}

static void arrive(struct world *w)
{
	struct xtal_responder_effect e;

	if (!w->there_count || w->back_count == FRAMES)
		return;
	xtal_responder_feed(&w->in, &w->there[w->there_first], 1, &e);
	w->there_first = (w->there_first + 1) % FRAMES;
	w->there_count--;
	if (e.kind == XTAL_RESPONDER_REPLY)
		reply(w, &e.reply);
	else if (e.kind != XTAL_RESPONDER_NONE)
		execute(w, &e);
}

static void answer(struct world *w)
{
	struct xtal_requester_effect e;
	struct stream *s;
	const char *why = "";

	if (!w->back_count)
		return;
	if (xtal_requester_receive(&w->out, &w->back[w->back_first], 1, &e, &why))
		fail_msg("%s", why);
	w->back_first = (w->back_first + 1) % FRAMES;
	w->back_count--;
	assert_true(e.finished);
	s = &w->stream[e.cookie / 0x1000 - 1];
	assert_int_equal(e.cookie % 0x1000, (s->next - s->inflight) % (DEPTH + 1));
	s->inflight--;
	if (e.status == XTAL_NOT_READY) {
		s->came_back = true;
	} else {
		assert_int_equal(e.status, XTAL_OK);
		assert_false(s->came_back); /* none is received behind one that was not */
		s->oldest++;
	}
	if (!s->inflight && s->came_back) {
		s->came_back = false;
		s->next = s->oldest;
	}
}

/* What was on its way is lost; the session goes on. */
static void cut(struct world *w)
{
	struct xtal_msg m;

	w->there_count = w->back_count = 0;
	assert_int_equal(xtal_responder_resume(&w->in, w->out.response_seq - 1), 0);
	assert_int_equal(xtal_requester_rewind(&w->out, xtal_responder_consumed(&w->in), 1), 0);
	while (xtal_responder_replay(&w->in, 1, &m))
		reply(w, &m);
}

static void each_is_received_once_and_in_order(void **state)
{
	const unsigned seeds = proc_rounds(300, 20000);
	static struct world w;

	(void)state;
	for (unsigned seed = 1; seed <= seeds; seed++) {
		const struct xtal_requester_config oc = { .slots = w.slots,
							  .window = WINDOW,
							  .piece = PIECE,
							  .incarnation = 7,
							  .first_seq = 1,
							  .resumable = true };
		const struct xtal_responder_config ic = { .cache = w.cache,
							  .cache_size = WINDOW,
							  .piece = PIECE,
							  .incarnation = 7,
							  .first_seq = 1 };
		uint32_t done = 0, steps = 0;

		memset(&w, 0, sizeof(w));
		w.rng.state = seed;
		assert_int_equal(xtal_requester_init(&w.out, &oc), 0);
		assert_int_equal(xtal_responder_init(&w.in, &ic), 0);
		while (done < STREAMS) {
			switch (draw(&w, 8)) {
			case 0:
			case 1:
				submit(&w);
				break;
			case 2:
			case 3:
				send_frame(&w);
				break;
			case 4:
			case 5:
				arrive(&w);
				break;
			case 6:
				answer(&w);
				break;
			case 7:
				if (draw(&w, 40) == 0)
					cut(&w);
				break;
			}
			done = 0;
			for (unsigned i = 0; i < STREAMS; i++)
				done += w.stream[i].oldest == MESSAGES;
			assert_true(++steps < 1000000); /* it ends */
		}
		for (unsigned i = 0; i < STREAMS; i++)
			assert_int_equal(w.stream[i].received, MESSAGES);
	}
}

/* How the target answers one more message. */
static enum xtal_status meets(struct xtal_responder *in, struct xtal_msg *m, bool ready)
{
	struct xtal_responder_effect e;
	struct xtal_msg answer;

	m->seq = xtal_responder_consumed(in) + 1;
	assert_null(xtal_msg_check(m));
	xtal_responder_feed(in, m, 1, &e);
	if (e.kind == XTAL_RESPONDER_REPLY)
		return e.reply.status;
	assert_int_equal(e.kind, XTAL_RESPONDER_SEND);
	assert_true(
		xtal_responder_result(in, &e, ready ? XTAL_OK : XTAL_NOT_READY, NULL, 1, &answer));
	return answer.status;
}

/* One that never came, because its initiator gave it up, hides nothing from those behind it. */
static void a_gap_does_not_let_others_overtake(void **state)
{
	static struct xtal_responder_result cache[8];
	const struct xtal_responder_config c = {
		.cache = cache, .cache_size = 8, .piece = PIECE, .incarnation = 7, .first_seq = 1
	};
	struct xtal_msg first = { .type = XTAL_MSG_SEND,
				  .operand_size = XTAL_MSG_SEND_PLAIN,
				  .id = 101,
				  .incarnation = 7,
				  .notify.token = 5 };
	struct xtal_msg third = first, jetty = first, other = first;
	struct xtal_responder in;

	(void)state;
	assert_int_equal(xtal_responder_init(&in, &c), 0);
	third.id = 103;
	third.notify.addr = 102; /* the one that did not come */
	jetty.id = 104;          /* another queue, of the same number */
	jetty.notify.addr = 99;
	jetty.flags = XTAL_MSG_FROM_JETTY;
	other.id = 105;
	other.notify = (struct xtal_msg_notify){ .addr = 98, .token = 6 };
	assert_int_equal(meets(&in, &first, false), XTAL_NOT_READY);
	assert_int_equal(meets(&in, &third, true), XTAL_NOT_READY);
	assert_int_equal(meets(&in, &jetty, true), XTAL_OK);
	assert_int_equal(meets(&in, &other, true), XTAL_OK);
	assert_int_equal(meets(&in, &third, true), XTAL_NOT_READY);
	assert_int_equal(meets(&in, &first, true), XTAL_OK); /* it has come again */
	third.notify.addr = first.id;
	assert_int_equal(meets(&in, &third, true), XTAL_OK);
}

/* A requester with messages of two queues under way: 1, 3 and 4 of one, 2 of another. */
static void begin_two_queues(struct xtal_requester *r, struct xtal_requester_slot *slots)
{
	const struct xtal_requester_config c = { .slots = slots,
						 .window = WINDOW,
						 .piece = PIECE,
						 .incarnation = 7,
						 .first_seq = 1,
						 .resumable = true };
	struct xtal_request q = { .type = XTAL_MSG_SEND,
				  .operand_size = XTAL_MSG_SEND_PLAIN,
				  .len = 2 * PIECE,
				  .deadline = XTAL_NO_DEADLINE };

	assert_int_equal(xtal_requester_init(r, &c), 0);
	for (q.cookie = 1; q.cookie <= 4; q.cookie++) {
		q.notify.token = q.cookie == 2 ? 6 : 5;
		q.notify.addr = q.cookie >= 3 ? (q.cookie == 3 ? 1 : 3) : 0;
		assert_int_equal(xtal_requester_submit(r, &q), 0);
	}
}

static void frame(struct xtal_requester *r, unsigned count)
{
	struct xtal_requester_frame f;

	while (count-- && xtal_requester_next_frame(r, 1, &f))
		xtal_requester_sent(r);
}

static void assert_orphans(struct xtal_requester *r, unsigned count)
{
	uint64_t cookie;

	for (unsigned i = 0; i < count; i++) {
		assert_true(xtal_requester_next_orphan(r, &cookie));
		assert_int_equal(cookie, 3 + i);
		assert_int_equal(xtal_requester_abandon(r, cookie, true), 0);
	}
	assert_false(xtal_requester_next_orphan(r, &cookie));
}

/* What follows one that was given up and is never executed is not sent; the other queue's is. */
static void none_is_sent_without_those_before(void **state)
{
	static struct xtal_requester_slot slots[WINDOW];
	struct xtal_requester_frame f;
	struct xtal_requester r;

	(void)state;
	begin_two_queues(&r, slots);
	frame(&r, 1); /* half of it */
	assert_int_equal(xtal_requester_abandon(&r, 1, false), 0);
	assert_orphans(&r, 2);
	assert_true(xtal_requester_next_frame(&r, 1, &f));
	assert_int_equal(f.cookie, 2);
	frame(&r, 2);
	assert_false(xtal_requester_next_frame(&r, 1, &f));

	begin_two_queues(&r, slots);
	frame(&r, 8);
	assert_int_equal(xtal_requester_abandon(&r, 1, false), 0);
	assert_orphans(&r, 0); /* it may have been executed */
	assert_int_equal(xtal_requester_rewind(&r, 2, 1), 0);
	assert_orphans(&r, 0); /* it has */
	assert_true(xtal_requester_next_frame(&r, 1, &f));

	begin_two_queues(&r, slots);
	frame(&r, 8);
	assert_int_equal(xtal_requester_abandon(&r, 1, false), 0);
	assert_int_equal(xtal_requester_rewind(&r, 1, 1), 0);
	assert_orphans(&r, 2); /* half of it has, and the rest is lost */
	assert_true(xtal_requester_next_frame(&r, 1, &f));
	assert_int_equal(f.cookie, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_comes_with_not_ready_only),
		cmocka_unit_test(frames_of_sends_have_rules),
		cmocka_unit_test(each_is_received_once_and_in_order),
		cmocka_unit_test(a_gap_does_not_let_others_overtake),
		cmocka_unit_test(none_is_sent_without_those_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
