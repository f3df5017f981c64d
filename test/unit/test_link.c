/* SPDX-License-Identifier: MIT */
/*
 * Requester and responder joined, over a delaying queue of bytes and over the ring, with
 * failures, time-outs, cancellation, cuts and corrupted frames. Oracles: every operation ends
 * once; the target's memory is what a plain memory would be after the same operations in the
 * same order; nothing is executed after its operation has ended.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "path/ring.h"
#include "wire/requester.h"
#include "wire/responder.h"

#define WINDOW 8
#define PIECE  100
#define MEMORY 1024
#define BASE   0x7000
#define OPS    60
#define MOST   420 /* longest operation */
#define RING   1024
#define QUEUE  64
#define MARGIN 3

enum end {
	NOT_YET,
	SUCCEEDED,
	FAILED
};

struct op {
	struct xtal_request request;
	uint8_t data[MOST]; /* sent, or received */
	uint64_t applied;   /* bytes executed at the target, from the front */
	uint64_t old;
	bool notified;
	enum end end;
};

struct frame {
	uint64_t due;
	uint8_t header[XTAL_MSG_HEADER];
	uint8_t payload[PIECE];
	uint64_t len;
};

struct queue { /* a carrier like a stream: in order, delayed */
	struct frame frames[QUEUE];
	unsigned head, tail;
};

struct world {
	struct rng rng;
	uint64_t now, skew; /* the target's clock shows now + skew */
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_responder_result cache[WINDOW];
	struct xtal_requester requester;
	struct xtal_responder responder;
	struct queue requests, responses;
	bool ring, corrupt, cut;
	uint8_t *shared;
	struct xtal_ring_end initiator, target;
	uint64_t positions[QUEUE];
	struct op ops[OPS];
	unsigned submitted, modelled;
	unsigned late; /* executed after the end: the violation */
	uint8_t memory[MEMORY], model[MEMORY];
};

static unsigned succeeded, failed, executions, cancelled;

static uint64_t word_at(const uint8_t *memory, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, memory + (addr - BASE), 8);
	return v;
}

static void store_at(uint8_t *memory, uint64_t addr, uint64_t v)
{
	memcpy(memory + (addr - BASE), &v, 8);
}

static bool in_memory(uint64_t addr, uint64_t len)
{
	return addr >= BASE && addr - BASE <= MEMORY && len <= MEMORY - (addr - BASE);
}

static uint64_t combine(const struct xtal_request *q, uint64_t old)
{
	if (q->atomic == XTAL_MSG_CAS)
		return old == q->compare[0] ? q->operand[0] : old;
	return old + q->operand[0];
}

static void start(struct world *w, uint64_t seed, bool ring)
{
	uint64_t first_seq;

	memset(w, 0, sizeof(*w));
	w->rng.state = seed;
	w->ring = ring;
	w->now = 1000;
	w->skew = rng_below(&w->rng, 1000000);
	first_seq = rng_below(&w->rng, 2) ? UINT64_MAX - 20 : rng_next(&w->rng);
	assert_int_equal(xtal_requester_init(&w->requester,
					     &(struct xtal_requester_config){
						     .slots = w->slots,
						     .window = WINDOW,
						     .piece = PIECE,
						     .incarnation = 5,
						     .first_seq = first_seq,
						     .margin = MARGIN,
						     .peer_stamp = w->now + w->skew,
						     .peer_stamp_at = w->now,
					     }),
			 0);
	assert_int_equal(xtal_responder_init(&w->responder,
					     &(struct xtal_responder_config){
						     .cache = w->cache,
						     .cache_size = WINDOW,
						     .piece = PIECE,
						     .incarnation = 5,
						     .first_seq = first_seq,
						     .gaps = ring,
					     }),
			 0);
	if (!ring)
		return;
	w->shared = aligned_alloc(128, (xtal_ring_layout_size(RING) + 127) & ~(size_t)127);
	assert_non_null(w->shared);
	memset(w->shared, 0, xtal_ring_layout_size(RING));
	assert_int_equal(xtal_ring_init_at(w->shared, RING, rng_next(&w->rng)), 0);
	assert_int_equal(xtal_ring_attach(w->shared, xtal_ring_layout_size(RING), &w->initiator,
					  XTAL_RING_INITIATOR),
			 0);
	assert_int_equal(xtal_ring_attach(w->shared, xtal_ring_layout_size(RING), &w->target,
					  XTAL_RING_TARGET),
			 0);
}

static bool has_room(struct world *w, bool to_target, uint64_t len)
{
	struct queue *q = to_target ? &w->requests : &w->responses;

	if (w->ring)
		return xtal_ring_has_room(to_target ? &w->initiator : &w->target, len);
	return q->tail - q->head < QUEUE;
}

static void put(struct world *w, bool to_target, const struct xtal_msg *m, const uint8_t *payload)
{
	struct queue *q = to_target ? &w->requests : &w->responses;
	struct xtal_ring_end *end = to_target ? &w->initiator : &w->target;
	struct frame f = { .due = w->now + rng_below(&w->rng, 12), .len = m->payload };

	assert_true(m->payload <= PIECE);
	xtal_msg_encode(m, f.header);
	if (m->payload)
		memcpy(f.payload, payload, m->payload);
	if (w->corrupt && rng_below(&w->rng, 20) == 0)
		f.header[rng_below(&w->rng, XTAL_MSG_HEADER)] ^=
			(uint8_t)(1u << rng_below(&w->rng, 8));
	if (w->ring) {
		struct xtal_ring_slot slot;

		assert_int_equal(xtal_ring_reserve(end, m->payload, &slot), 0);
		memcpy(slot.header, f.header, XTAL_MSG_HEADER);
		memcpy(slot.payload, f.payload, m->payload);
		if (to_target && m->type != XTAL_MSG_PING)
			w->positions[m->seq % QUEUE] = slot.position;
		xtal_ring_publish(end);
		return;
	}
	q->frames[q->tail++ % QUEUE] = f;
}

/* 1: a frame; 0: none yet; -EPROTO. */
static int get(struct world *w, bool at_target, struct xtal_msg *m, uint8_t payload[PIECE])
{
	struct queue *q = at_target ? &w->requests : &w->responses;
	struct xtal_ring_end *end = at_target ? &w->target : &w->initiator;
	const uint8_t *header, *data;
	size_t len;
	int err;

	if (w->ring) {
		int n = xtal_ring_peek(end, &header, &data, &len);

		assert_true(n >= 0);
		err = n == 1 ? xtal_msg_decode_frame(header, len, m, NULL) : 0;
		if (n == 1)
			memcpy(payload, data, len);
		xtal_ring_release(end);
		return err ? err : n;
	}
	if (q->head == q->tail || q->frames[q->head % QUEUE].due > w->now)
		return 0;
	header = q->frames[q->head % QUEUE].header;
	len = q->frames[q->head % QUEUE].len;
	err = xtal_msg_decode_frame(header, len, m, NULL);
	memcpy(payload, q->frames[q->head++ % QUEUE].payload, len);
	return err ? err : 1;
}

/* The plain memory takes the operations that have ended, in the order of submission. */
static void advance_model(struct world *w)
{
	for (; w->modelled < w->submitted && w->ops[w->modelled].end != NOT_YET; w->modelled++) {
		struct op *o = &w->ops[w->modelled];
		const struct xtal_request *q = &o->request;
		uint64_t old;

		switch (q->type) {
		case XTAL_MSG_WRITE:
			if (o->end == SUCCEEDED)
				assert_int_equal(o->applied, q->len);
			memcpy(w->model + (q->addr - BASE), o->data, o->applied);
			if (o->end == SUCCEEDED)
				assert_int_equal(o->notified, !!(q->flags & XTAL_MSG_NOTIFY));
			if (o->notified)
				store_at(w->model, q->notify.addr, q->notify.data);
			break;
		case XTAL_MSG_READ:
			if (o->end == SUCCEEDED)
				assert_memory_equal(o->data, w->model + (q->addr - BASE), q->len);
			break;
		case XTAL_MSG_ATOMIC:
			old = word_at(w->model, q->addr);
			if (o->end == SUCCEEDED) {
				assert_int_equal(o->applied, 8);
				assert_true(o->old == old);
			}
			if (o->applied)
				store_at(w->model, q->addr, combine(q, old));
			break;
		case XTAL_MSG_SEND:
		case XTAL_MSG_RESPONSE:
		case XTAL_MSG_PING:
		case XTAL_MSG_PONG:
			fail();
		}
	}
}

static void finish(struct world *w, uint64_t cookie, enum end end)
{
	assert_true(cookie < w->submitted);
	assert_int_equal(w->ops[cookie].end, NOT_YET);
	w->ops[cookie].end = end;
	*(end == SUCCEEDED ? &succeeded : &failed) += 1;
	if (!w->corrupt)
		advance_model(w);
}

static void submit(struct world *w)
{
	struct op *o = &w->ops[w->submitted];
	struct xtal_request *q = &o->request;

	if (w->submitted == OPS || !xtal_requester_can_submit(&w->requester))
		return;
	*q = (struct xtal_request){
		.cookie = w->submitted,
		.type = (enum xtal_msg_type)(XTAL_MSG_WRITE + rng_below(&w->rng, 3)),
		.deadline = XTAL_NO_DEADLINE,
	};
	if (rng_below(&w->rng, 3) == 0) {
		q->deadline = w->now + MARGIN + rng_below(&w->rng, 60);
		q->limit = rng_below(&w->rng, 2) * rng_below(&w->rng, 30);
	}
	if (q->type == XTAL_MSG_ATOMIC) {
		q->atomic = rng_below(&w->rng, 2) ? XTAL_MSG_CAS : XTAL_MSG_FAA;
		q->operand_size = 8;
		q->operand[0] = rng_below(&w->rng, 4);
		q->compare[0] = q->atomic == XTAL_MSG_CAS ? rng_below(&w->rng, 4) : 0;
		q->addr = BASE + 8 * rng_below(&w->rng, 4);
	} else {
		q->len = rng_below(&w->rng, 4) ? rng_below(&w->rng, MOST) : 0;
		q->addr = BASE + rng_below(&w->rng, MEMORY - q->len);
	}
	if (q->type == XTAL_MSG_WRITE) {
		rng_fill(&w->rng, o->data, q->len);
		if (rng_below(&w->rng, 2)) {
			q->flags = XTAL_MSG_NOTIFY;
			q->notify.addr = BASE + 8 * rng_below(&w->rng, MEMORY / 8);
			q->notify.data = rng_next(&w->rng);
		}
	}
	assert_int_equal(xtal_requester_submit(&w->requester, q), 0);
	w->submitted++;
}

static void send_frames(struct world *w)
{
	struct xtal_requester_frame f;
	struct xtal_msg ping;

	while (xtal_requester_next_frame(&w->requester, w->now, &f) &&
	       has_room(w, true, f.msg.payload) && rng_below(&w->rng, 4)) {
		put(w, true, &f.msg, w->ops[f.cookie].data + f.local_offset);
		xtal_requester_sent(&w->requester);
	}
	if (rng_below(&w->rng, 8) == 0 && has_room(w, true, 0)) {
		xtal_requester_ping(&w->requester, w->now, &ping);
		put(w, true, &ping, NULL);
	}
}

static void expire(struct world *w)
{
	struct xtal_requester_expired x;

	while (xtal_requester_next_expired(&w->requester, w->now, &x)) {
		bool silent = w->ring;

		for (uint64_t i = 0; w->ring && i < x.frames; i++) {
			uint64_t position = w->positions[(x.first_seq + i) % QUEUE];

			if (xtal_ring_cancel(&w->initiator, position) != 0)
				silent = false;
			else
				cancelled++;
		}
		assert_int_equal(xtal_requester_abandon(&w->requester, x.cookie, silent), 0);
		finish(w, x.cookie, FAILED);
	}
}

static void lose_link(struct world *w)
{
	struct xtal_requester_effect e;

	w->cut = true;
	while (xtal_requester_fail_next(&w->requester, XTAL_UNREACHABLE, &e))
		finish(w, e.cookie, FAILED);
}

static void receive(struct world *w)
{
	struct xtal_requester_effect e;
	uint8_t payload[PIECE];
	struct xtal_msg m;
	int n = get(w, false, &m, payload);
	struct op *o;

	if (n == 0)
		return;
	if (n < 0 || xtal_requester_receive(&w->requester, &m, w->now, &e, NULL)) {
		assert_true(w->corrupt);
		lose_link(w);
		return;
	}
	if (e.ignored)
		return;
	o = &w->ops[e.cookie];
	assert_int_equal(o->end, NOT_YET);
	assert_true(e.offset <= o->request.len && e.len <= o->request.len - e.offset);
	memcpy(o->data + e.offset, payload, e.len);
	o->old = e.old[0];
	if (e.finished)
		finish(w, e.cookie, e.status == XTAL_OK ? SUCCEEDED : FAILED);
}

/* Executes as a target would: the whole range first, then one piece. */
static enum xtal_status execute(struct world *w, const struct xtal_responder_effect *e,
				const uint8_t *payload, uint64_t *old)
{
	struct op *o = &w->ops[e->id % OPS];
	uint8_t *at;

	executions++;
	if (!in_memory(e->addr, e->total) || (e->notify_valid && !in_memory(e->notify.addr, 8)))
		return XTAL_REMOTE_ACCESS;
	if (rng_below(&w->rng, 24) == 0)
		return XTAL_REMOTE_ACCESS;
	at = w->memory + (e->addr - BASE) + e->offset;
	w->late += e->kind != XTAL_RESPONDER_READ && o->end != NOT_YET;
	if (e->kind == XTAL_RESPONDER_WRITE) {
		memcpy(at, payload, e->len);
		o->applied = e->offset + e->len;
		if (e->last && e->notify_valid) {
			store_at(w->memory, e->notify.addr, e->notify.data);
			o->notified = true;
		}
	} else if (e->kind == XTAL_RESPONDER_ATOMIC) {
		struct xtal_request q = { .atomic = e->atomic,
					  .operand = { e->operand[0] },
					  .compare = { e->compare[0] } };

		if (e->operand_size != 8)
			return XTAL_REMOTE_UNSUPPORTED;
		*old = word_at(w->memory, e->addr);
		store_at(w->memory, e->addr, combine(&q, *old));
		o->applied = 8;
	}
	return XTAL_OK;
}

static void serve(struct world *w)
{
	uint8_t payload[PIECE];
	struct xtal_responder_effect e;
	struct xtal_msg m, reply;
	uint64_t old[2] = { 0 }, clock = w->now + w->skew;
	enum xtal_status status;
	int n;

	if (!has_room(w, false, PIECE))
		return; /* the answer must find room, so nothing is executed before */
	n = get(w, true, &m, payload);
	if (n == 0)
		return;
	if (n > 0)
		xtal_responder_feed(&w->responder, &m, clock, &e);
	if (n < 0 || e.kind == XTAL_RESPONDER_DROP) {
		assert_true(w->corrupt);
		lose_link(w);
		return;
	}
	if (e.kind == XTAL_RESPONDER_REPLY)
		put(w, false, &e.reply, NULL);
	if (e.kind == XTAL_RESPONDER_REPLY || e.kind == XTAL_RESPONDER_NONE)
		return;
	status = execute(w, &e, payload, old);
	if (xtal_responder_result(&w->responder, &e, status, old, clock, &reply)) {
		const uint8_t *data = reply.payload ? w->memory + (e.addr - BASE) + e.offset : NULL;

		put(w, false, &reply, data);
	}
}

static bool all_ended(const struct world *w)
{
	for (unsigned i = 0; i < w->submitted; i++)
		if (w->ops[i].end == NOT_YET)
			return false;
	return w->submitted == OPS;
}

static void run(uint64_t seed, bool ring, bool cuts, bool corrupt)
{
	static struct world w;
	uint64_t cut_at = UINT64_MAX;

	start(&w, seed, ring);
	w.corrupt = corrupt;
	if (cuts)
		cut_at = w.now + rng_below(&w.rng, 600);
	for (unsigned steps = 0; !w.cut && !all_ended(&w); steps++) {
		if (steps > 100000)
			fail_msg("seed %llu hangs", (unsigned long long)seed);
		w.now += rng_below(&w.rng, 3);
		switch (rng_below(&w.rng, 6)) {
		case 0:
			submit(&w);
			break;
		case 1:
			send_frames(&w);
			break;
		case 2:
			expire(&w);
			break;
		case 3:
			receive(&w);
			break;
		case 4:
			serve(&w);
			break;
		default:
			if (rng_below(&w.rng, 200) == 0)
				w.now += 100; /* a stop */
			break;
		}
		if (w.now >= cut_at)
			lose_link(&w);
	}
	for (unsigned i = 0; i < w.submitted; i++)
		assert_int_not_equal(w.ops[i].end, NOT_YET);
	if (!corrupt) {
		if (w.late != 0)
			fail_msg("seed %llu: landed late", (unsigned long long)seed);
		assert_int_equal(w.modelled, w.submitted);
		assert_memory_equal(w.memory, w.model, MEMORY);
	}
	free(w.shared);
}

static void test_stream(void **state)
{
	(void)state;
	succeeded = failed = executions = 0;
	for (uint64_t seed = 1; seed <= 600; seed++)
		run(seed, false, false, false);
	assert_true(succeeded > 10000 && failed > 1000 && executions > 10000);
}

static void test_stream_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 600; seed++)
		run(seed, false, true, false);
}

static void test_ring(void **state)
{
	(void)state;
	succeeded = failed = cancelled = 0;
	for (uint64_t seed = 1; seed <= 600; seed++)
		run(seed, true, seed % 2, false);
	assert_true(succeeded > 10000 && failed > 1000 && cancelled > 500);
}

/* Both sides lie now and then: operations still end once, and no access is out of bounds. */
static void test_corrupted(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++)
		run(seed, seed % 2, false, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_cut),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_corrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
