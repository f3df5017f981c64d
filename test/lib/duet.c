/* SPDX-License-Identifier: MIT */
/* See duet.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "duet.h"

const struct xtal_session_id duet_id = { { 0x1234, 0x5678 } };

uint64_t duet_target_now(const struct duet *w)
{
	return w->now + 7000 * DUET_MS;
}

struct xtal_initiator_config duet_initiator_config(struct duet *w)
{
	return (struct xtal_initiator_config){
		.id = duet_id,
		.incarnation = 11,
		.target_incarnation = xtal_incarnation_bits(99),
		.eid = xtal_eid_from_ipv4(0x7f000001),
		.port = 77,
		.pipeline = 3,
		.requester = &w->requester,
		.slots = w->slots,
		.window = DUET_WINDOW,
		.piece = DUET_PIECE,
		.first_seq = UINT64_MAX - 3,
		.margin = DUET_MARGIN,
		.keepalive = 100 * DUET_MS,
		.silence = 300 * DUET_MS,
		.retry_least = 10 * DUET_MS,
		.retry_most = 40 * DUET_MS,
	};
}

void duet_start(struct duet *w)
{
	struct xtal_initiator_config c = duet_initiator_config(w);

	memset(w, 0, sizeof(*w));
	w->now = 5000 * DUET_MS;
	for (unsigned k = 0; k < DUET_MEMORY; k++) {
		w->local[k] = (uint8_t)k;
		w->remote[k] = (uint8_t)(k * 3 + 1);
	}
	assert_int_equal(xtal_initiator_init(&w->i, &c, w->now), 0);
}

void duet_submit_for(struct duet *w, enum xtal_msg_type type, uint64_t cookie, uint64_t addr,
		     uint64_t len, uint64_t limit)
{
	struct xtal_request q = {
		.cookie = cookie,
		.type = type,
		.addr = addr,
		.len = len,
		.deadline = w->now + limit,
		.limit = limit,
	};

	if (type == XTAL_MSG_ATOMIC) {
		q.atomic = XTAL_MSG_FAA;
		q.operand_size = 8;
		q.operand[0] = 1;
	}
	assert_int_equal(xtal_requester_submit(&w->requester, &q), 0);
}

void duet_submit(struct duet *w, enum xtal_msg_type type, uint64_t cookie, uint64_t addr,
		 uint64_t len)
{
	duet_submit_for(w, type, cookie, addr, len, DUET_LIMIT);
}

void duet_put(struct duet_pipe *p, const void *data, size_t len)
{
	assert_true(p->to + len <= DUET_WIRE);
	memcpy(p->bytes + p->to, data, len);
	p->to += len;
}

unsigned duet_initiator_sends(struct duet *w, unsigned most)
{
	struct xtal_session_frame f;
	unsigned n = 0;

	while (n < most && xtal_initiator_next_frame(&w->i, w->now, &f)) {
		duet_put(&w->there, f.header, sizeof(f.header));
		duet_put(&w->there, w->local + f.local_offset, f.payload);
		xtal_initiator_sent(&w->i, w->now);
		n++;
	}
	return n;
}

unsigned duet_target_sends(struct duet *w)
{
	struct xtal_session_frame f;
	unsigned n = 0;

	while (w->has_target && xtal_target_next_frame(&w->t, duet_target_now(w), &f)) {
		duet_put(&w->back, f.header, sizeof(f.header));
		duet_put(&w->back, w->remote + f.addr, f.payload);
		xtal_target_sent(&w->t, duet_target_now(w));
		n++;
	}
	return n;
}

static void execute(struct duet *w, const struct xtal_responder_effect *e)
{
	uint64_t old[2] = { 0, 0 }, value;

	w->executed++;
	if (w->refuse == XTAL_OK && e->kind == XTAL_RESPONDER_ATOMIC) {
		memcpy(&value, w->remote + e->addr, 8);
		old[0] = value;
		value += e->operand[0];
		memcpy(w->remote + e->addr, &value, 8);
	}
	if (w->refuse == XTAL_OK && e->kind == XTAL_RESPONDER_WRITE && e->last && e->notify_valid)
		memcpy(w->remote + e->notify.addr, &e->notify.data, 8);
	xtal_target_result(&w->t, w->refuse, old, duet_target_now(w));
}

void duet_accept(struct duet *w)
{
	struct xtal_target_config c = {
		.incarnation = 99,
		.responder = &w->responder,
		.cache = w->cache,
		.cache_size = DUET_WINDOW,
		.linger = 2000 * DUET_MS,
	};
	struct xtal_handshake hello;
	const char *why = "";

	assert_true(w->there.to - w->there.from >= XTAL_MSG_HEADER);
	assert_int_equal(xtal_handshake_decode(w->there.bytes + w->there.from, &hello, &why), 0);
	w->there.from += XTAL_MSG_HEADER;
	assert_int_equal(xtal_target_check_hello(&hello, 77, 99, &why), XTAL_OK);
	if (w->has_target)
		assert_int_equal(xtal_target_resume(&w->t, &hello, duet_target_now(w), &why), 0);
	else
		assert_int_equal(xtal_target_init(&w->t, &c, &hello, duet_target_now(w)), 0);
	w->has_target = true;
}

void duet_target_takes(struct duet *w, size_t most, size_t step)
{
	struct duet_pipe *p = &w->there;
	size_t end = p->to - p->from < most ? p->to : p->from + most;

	for (;;) {
		struct xtal_target_event e;
		size_t n = end - p->from < step ? end - p->from : step;
		uint64_t addr, left = xtal_target_payload(&w->t, &addr);

		duet_target_sends(w);
		if (left != 0) {
			if (n == 0)
				return;
			n = n < left ? n : left;
			if (!xtal_target_may_land(&w->t, duet_target_now(w))) {
				w->told.kind = XTAL_TARGET_HANG_UP;
				return;
			}
			if (w->refuse == XTAL_OK) {
				memcpy(w->remote + addr, p->bytes + p->from, n);
				p->from += n;
				xtal_target_landed(&w->t, n);
			}
			if (w->refuse != XTAL_OK || n == left)
				execute(w, &w->t.effect);
			continue;
		}
		p->from += xtal_target_take(&w->t, p->bytes + p->from, n, duet_target_now(w), &e);
		if (e.kind == XTAL_TARGET_EXECUTE && xtal_target_payload(&w->t, &addr) == 0)
			execute(w, &e.effect);
		if (e.kind == XTAL_TARGET_HANG_UP || e.kind == XTAL_TARGET_ENDED) {
			w->told = e;
			duet_target_sends(w);
			return;
		}
		if (e.kind == XTAL_TARGET_MORE && p->from == end)
			break;
	}
	duet_target_sends(w);
}

static void note(struct duet *w, const struct xtal_initiator_event *e)
{
	if (e->kind == XTAL_INITIATOR_MORE || e->kind == XTAL_INITIATOR_PAYLOAD)
		return;
	if (e->kind != XTAL_INITIATOR_ANSWER) {
		w->last = *e;
	} else if (e->effect.finished) {
		w->cookie[w->ended] = e->effect.cookie;
		w->status[w->ended] = e->effect.status;
		w->old[w->ended++] = e->effect.old[0];
	}
}

void duet_initiator_takes(struct duet *w, size_t most, size_t step)
{
	struct duet_pipe *p = &w->back;
	size_t end = p->to - p->from < most ? p->to : p->from + most;

	for (;;) {
		struct xtal_initiator_event e;
		size_t n = end - p->from < step ? end - p->from : step;
		uint64_t cookie, offset, left = xtal_initiator_payload(&w->i, &cookie, &offset);

		if (left != 0 && n != 0) {
			n = n < left ? n : left;
			memcpy(w->local + offset, p->bytes + p->from, n);
			p->from += n;
			xtal_initiator_placed(&w->i, n, w->now, &e);
			note(w, &e);
			continue;
		}
		p->from += xtal_initiator_take(&w->i, p->bytes + p->from, n, w->now, &e);
		note(w, &e);
		if (p->from == end && (e.kind == XTAL_INITIATOR_MORE || left != 0))
			return;
	}
}

void duet_connect(struct duet *w)
{
	w->there = w->back = (struct duet_pipe){ .from = 0 };
	assert_true(xtal_initiator_wants_connection(&w->i, w->now));
	xtal_initiator_connected(&w->i, w->now);
	assert_int_equal(duet_initiator_sends(w, 9), 1);
	duet_accept(w);
	duet_target_sends(w);
	duet_initiator_takes(w, DUET_WIRE, DUET_WIRE);
	assert_int_equal(w->last.kind, XTAL_INITIATOR_UP);
}

void duet_cut(struct duet *w)
{
	w->there = w->back = (struct duet_pipe){ .from = 0 };
	xtal_initiator_disconnected(&w->i, w->now);
	if (w->has_target)
		xtal_target_disconnected(&w->t, duet_target_now(w));
	w->now += 100 * DUET_MS;
}

void duet_settle(struct duet *w)
{
	while (duet_initiator_sends(w, 99) + (w->there.to - w->there.from) +
		       (w->back.to - w->back.from) !=
	       0) {
		duet_target_takes(w, DUET_WIRE, DUET_WIRE);
		duet_initiator_takes(w, DUET_WIRE, DUET_WIRE);
	}
}

void duet_target_says(struct duet *w, const struct xtal_handshake *h, const struct xtal_msg *m)
{
	uint8_t header[XTAL_MSG_HEADER];

	if (h)
		xtal_handshake_encode(h, header);
	else
		xtal_msg_encode(m, header);
	duet_put(&w->back, header, sizeof(header));
	duet_initiator_takes(w, DUET_WIRE, DUET_WIRE);
}

void duet_greet(struct duet *w)
{
	duet_start(w);
	xtal_initiator_connected(&w->i, w->now);
	assert_int_equal(duet_initiator_sends(w, 9), 1);
}

void duet_ends(struct duet *w, enum xtal_status status, const char *part)
{
	assert_int_equal(w->last.kind, XTAL_INITIATOR_ENDED);
	assert_int_equal(w->last.status, status);
	if (!strstr(w->last.why, part))
		fail_msg("\"%s\" does not say \"%s\"", w->last.why, part);
	assert_int_equal(w->i.state, XTAL_SESSION_ENDED);
	assert_false(xtal_initiator_wants_connection(&w->i, w->now + DUET_LIMIT));
	assert_true(xtal_initiator_next_time(&w->i) == XTAL_NEVER);
	xtal_initiator_connected(&w->i, w->now); /* for good */
	xtal_initiator_disconnected(&w->i, w->now);
	assert_int_equal(w->i.state, XTAL_SESSION_ENDED);
	assert_int_equal(duet_initiator_sends(w, 9), 0);
}
