/* SPDX-License-Identifier: MIT */
/*
 * Serving one connection of a session: bytes go to the target's machine, what it
 * says is executed, answers are sent. Payload of some size goes from the socket to the segment,
 * and from the segment to the socket, without a stop. See tcp_session.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/executor.h"
#include "core/inbound.h"
#include "core/log.h"
#include "core/serving.h"
#include "core/tcp_ledger.h"
#include "core/tcp_session.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"
#include "xtal.h"

#define LOOKS        3u /* at a connection that is the only busy one, before all else is looked after */
#define LOOK         (4u * 1024) /* bytes received at once while headers are expected */
#define DIRECT_LEAST 2048u       /* payload that is received straight into the segment */
#define ROUNDS       16u         /* receives of one connection before the others' turn */
#define MAX_HOT      4u          /* connections that are looked at without being reported */

static inline struct xtal_lane *lane_of(const struct xtal_context *ctx)
{
	return ctx->tcp.lane;
}

static void watch(struct xtal_tcp_conn *c, unsigned what)
{
	if (c->watched != what)
		xtal_agent_change(&c->source, what);
	c->watched = what;
}

/* The segment whose bytes are being sent. */
struct pinned {
	struct xtal_tcp_conn *conn;
	uint64_t lo, hi; /* hi 0: none */
	uint32_t token, index;
	bool token_valid;
};

/* A READ's data, as it stands in the segment, which may have gone since it was looked at. */
static int pin(void *arg, const struct xtal_tcp_frame *f, const void **base)
{
	struct pinned *p = arg;
	struct xtal_access access = { .addr = f->tag[0],
				      .len = f->payload,
				      .token = (uint32_t)f->tag[1],
				      .index = (uint32_t)(f->tag[1] >> 32),
				      .token_valid = f->tag[2],
				      .rights = XTAL_RIGHT_READ };
	struct xtal_found found;

	*base = (const void *)(uintptr_t)access.addr;
	if (p->hi) /* one at a time: it may not be waited for a second one */
		return access.addr >= p->lo && access.addr + access.len <= p->hi &&
				       access.token == p->token && access.index == p->index &&
				       access.token_valid == p->token_valid
			       ? 0
			       : -EAGAIN;
	if (xtal_execute_enter_range(p->conn->ctx, lane_of(p->conn->ctx), &access, &found))
		return -EFAULT;
	p->lo = found.lo;
	p->hi = found.hi;
	p->token = access.token;
	p->index = access.index;
	p->token_valid = access.token_valid;
	return 0;
}

static void unpin(void *arg)
{
	struct pinned *p = arg;

	xtal_execute_leave(lane_of(p->conn->ctx));
	p->hi = 0;
}

enum outcome {
	GOES_ON,
	BLOCKED, /* until the socket takes more */
	GONE,    /* so is the connection */
};

static enum outcome flush(struct xtal_tcp_conn *c)
{
	struct pinned pinned = { .conn = c };
	struct xtal_tcp_pins pins = {
		.pin = pin, .get = xtal_os_guarded_get, .unpin = unpin, .arg = &pinned
	};
	int err = xtal_tcp_flush(&c->stream, &pins);

	if (!err)
		return GOES_ON;
	if (err == -EAGAIN)
		return BLOCKED;
	/* The header of the answer is out: only a new connection can take it back. The READ comes
	 * again, and is refused then. */
	if (err == -EFAULT && c->session)
		c->session->careful = true;
	xtal_tcp_hang_up(c, err == -EFAULT ? "memory that is being read has gone"
					   : xtal_tcp_reason(&c->stream, err));
	return GONE;
}

/* Takes the frames that the machine has into the connection. */
static enum outcome push(struct xtal_tcp_conn *c, uint64_t now)
{
	struct xtal_tcp_session *s = c->session;
	struct xtal_session_frame f;
	enum outcome o;

	while (xtal_target_next_frame(&s->target, now, &f)) {
		struct xtal_tcp_frame *out = xtal_tcp_reserve(&c->stream);

		if (!out) {
			o = flush(c);
			if (o == GONE)
				return GONE;
			out = xtal_tcp_reserve(&c->stream);
			if (!out)
				return BLOCKED;
		}
		memcpy(out->header, f.header, sizeof(out->header));
		out->payload = f.payload;
		out->copied = f.payload <= XTAL_TCP_SMALL;
		if (out->copied)
			memcpy(out->small, s->small, f.payload);
		out->tag[0] = f.addr;
		out->tag[1] = (uint64_t)s->effect.key << 32 | s->effect.token;
		out->tag[2] = s->effect.token_valid;
		xtal_tcp_commit(&c->stream);
		xtal_target_sent(&s->target, now);
	}
	return GOES_ON;
}

/* What a request asked for was refused, unless status is OK. Returns status. */
static uint32_t judged(struct xtal_tcp_session *s, const struct xtal_responder_effect *e,
		       uint32_t status)
{
	static const char *const words[] = { [XTAL_RESPONDER_WRITE] = "write",
					     [XTAL_RESPONDER_READ] = "read",
					     [XTAL_RESPONDER_ATOMIC] = "atomic",
					     [XTAL_RESPONDER_SEND] = "send" };
	struct xtal_tcp_conn *c = s->conn;

	if (!status)
		return status;
	c->quiet_until = xtal_ledger_refused(
		&c->peer, s->ctx->port, xtal_os_now(), "%s of %llu bytes at 0x%llx: %s",
		words[e->kind], (unsigned long long)e->total, (unsigned long long)e->addr,
		xtal_status_word((enum xtal_status)status));
	if (c->quiet_until)
		xtal_tcp_stay_quiet(c);
	return status;
}

static uint32_t look_at_read(struct xtal_tcp_session *s, const struct xtal_responder_effect *e)
{
	uint32_t status;

	if (e->len <= XTAL_TCP_SMALL)
		return xtal_execute_read(s->ctx, lane_of(s->ctx), e, s->small);
	status = xtal_execute_enter(s->ctx, lane_of(s->ctx), e);
	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	if (status)
		return status;
	if (s->careful &&
	    xtal_os_probe_access((const void *)(uintptr_t)(e->addr + e->offset), e->len, false))
		status = XTAL_REMOTE_ACCESS;
	xtal_execute_leave(lane_of(s->ctx));
	return status;
}

void xtal_tcp_forget_send(struct xtal_tcp_session *s)
{
	xtal_inbound_free(s->inbound);
	free(s->piece);
}

/* The payload of a SEND's piece is complete. */
static void finish_send(struct xtal_tcp_session *s, const uint8_t *payload, uint64_t now)
{
	uint32_t status = xtal_execute_send_piece(lane_of(s->ctx), s->inbound, &s->effect, payload);

	if (status || !s->effect.last)
		s->ctx->serving.urgent = true;
	else
		s->ctx->serving.reported = true;
	xtal_target_result(&s->target, (enum xtal_status)status, NULL, now);
}

/* The header of a SEND's piece has come. */
static void execute_send(struct xtal_tcp_session *s, const struct xtal_responder_effect *e,
			 uint64_t now)
{
	uint64_t pause[2] = { 0, 0 };
	uint32_t status = XTAL_OK;

	s->effect = *e;
	s->landed = 0;
	if (!s->piece && e->len)
		s->piece = malloc(XTAL_MSG_PIECE);
	if (e->first)
		status = xtal_execute_send_begin(s->ctx, &s->inbound, e, &pause[0]);
	if (status == XTAL_REMOTE_ACCESS) /* no such endpoint, or another token */
		judged(s, e, status);
	if (!status && !s->piece && e->len) {
		xtal_inbound_abandon(s->inbound);
		status = XTAL_NOT_READY;
	}
	if (status)
		xtal_target_result(&s->target, (enum xtal_status)status, pause, now);
	else if (!e->len)
		finish_send(s, NULL, now);
}

static void land_send(struct xtal_tcp_session *s, const uint8_t *in, uint64_t n, uint64_t now)
{
	const uint8_t *payload = in;

	if (n != s->effect.len) {
		memcpy(s->piece + s->landed, in, n);
		payload = s->piece;
	}
	s->landed += n;
	xtal_target_landed(&s->target, n);
	if (s->landed == s->effect.len)
		finish_send(s, payload, now);
}

static void execute(struct xtal_tcp_session *s, const struct xtal_responder_effect *e, uint64_t now)
{
	uint64_t old[2] = { 0, 0 };
	uint32_t status;

	if (e->kind != XTAL_RESPONDER_SEND)
		s->ctx->serving.urgent = true;
	if (e->first && e->kind != XTAL_RESPONDER_SEND &&
	    s->inbound) /* the rest of one does not come */
		xtal_inbound_abandon(s->inbound);
	switch (e->kind) {
	case XTAL_RESPONDER_READ:
		s->effect = *e;
		status = judged(s, e, look_at_read(s, e));
		xtal_target_result(&s->target, (enum xtal_status)status, NULL, now);
		return;
	case XTAL_RESPONDER_ATOMIC:
		status = judged(s, e, xtal_execute_atomic(s->ctx, lane_of(s->ctx), e, old));
		xtal_target_result(&s->target, (enum xtal_status)status, old, now);
		return;
	case XTAL_RESPONDER_WRITE:
		s->effect = *e;
		s->landed = 0;
		if (e->len)
			return; /* its payload comes */
		status = judged(s, e, xtal_execute_write(s->ctx, lane_of(s->ctx), e, NULL));
		xtal_target_result(&s->target, (enum xtal_status)status, NULL, now);
		return;
	case XTAL_RESPONDER_SEND:
		execute_send(s, e, now);
		return;
	case XTAL_RESPONDER_NONE:
	case XTAL_RESPONDER_REPLY:
	case XTAL_RESPONDER_DROP:
		return;
	}
}

/* Where the parts of a WRITE's payload go: all but the last word at once, that at the end. */
struct place {
	uint64_t addr, body, tail; /* body + tail = the whole piece */
};

static struct place place_of(const struct xtal_responder_effect *e)
{
	struct place p = { .addr = e->addr + e->offset };

	p.tail = xtal_copy_tail_len((const void *)(uintptr_t)p.addr, e->len);
	p.body = e->len - p.tail;
	return p;
}

/* n more bytes have come, those of the last word to s->tail. The segment is entered. */
static int landed(struct xtal_tcp_session *s, const struct place *p, uint64_t n)
{
	const struct xtal_responder_effect *e = &s->effect;
	int err;

	s->landed += n;
	if (s->landed != e->len)
		return 0;
	xtal_count(&xtal_totals.served, 1);
	xtal_count(&xtal_totals.served_bytes, e->len);
	err = xtal_execute_put(p->addr + p->body, s->tail, p->tail);
	return err ? err : xtal_execute_notify(e);
}

static int land_part(struct xtal_tcp_session *s, const uint8_t *in, uint64_t n)
{
	struct place p = place_of(&s->effect);
	uint64_t at = s->landed, left = at < p.body ? p.body - at : 0;
	uint64_t body = n < left ? n : left;
	int err = 0;

	if (body)
		err = xtal_os_guarded_put((void *)(uintptr_t)(p.addr + at), in, body);
	if (n > body)
		memcpy(s->tail + (at + body - p.body), in + body, n - body);
	return err ? err : landed(s, &p, n);
}

/* Some of the payload that is awaited, all of it at most. False: its time is over. */
static bool land(struct xtal_tcp_session *s, const uint8_t *in, uint64_t n, uint64_t now)
{
	const struct xtal_responder_effect *e = &s->effect;
	uint32_t status;

	if (!xtal_target_may_land(&s->target, now))
		return false;
	if (e->kind == XTAL_RESPONDER_SEND) {
		land_send(s, in, n, now);
		return true;
	}
	if (n == e->len) {
		status = xtal_execute_write(s->ctx, lane_of(s->ctx), e, in);
		s->landed = n;
	} else {
		status = xtal_execute_enter(s->ctx, lane_of(s->ctx), e);
		if (!status) {
			status = land_part(s, in, n) ? XTAL_REMOTE_ACCESS : XTAL_OK;
			xtal_execute_leave(lane_of(s->ctx));
		}
	}
	xtal_target_landed(&s->target, n);
	if (judged(s, e, status) || s->landed == e->len)
		xtal_target_result(&s->target, (enum xtal_status)status, NULL, now);
	return true;
}

/* Keeps bytes that the machine does not take before answers have gone. */
static enum outcome keep(struct xtal_tcp_conn *c, const uint8_t *in, size_t len)
{
	if (!len) { /* all was taken, only the answer to it has to wait */
		free(c->rest);
		c->rest = NULL;
		return BLOCKED;
	}
	if (c->rest) {
		c->rest_at = c->rest_len - len; /* in points there */
		return BLOCKED;
	}
	c->rest = malloc(len);
	if (!c->rest) {
		xtal_tcp_hang_up(c, "no memory");
		return GONE;
	}
	memcpy(c->rest, in, len);
	c->rest_at = 0;
	c->rest_len = len;
	return BLOCKED;
}

static enum outcome end_session(struct xtal_tcp_session *s, const char *why)
{
	struct xtal_tcp_conn *c = s->conn;

	if (s->target.greeting.status) /* the farewell to one who lies */
		xtal_ledger_refused(&c->peer, s->ctx->port, xtal_os_now(), "its session: %s", why);
	if (push(c, xtal_os_now()) != GONE)
		flush(c);
	xtal_tcp_session_end(s, why);
	return GONE;
}

/* The bytes, as far as they can be taken, and the answers to them. */
static enum outcome take(struct xtal_tcp_conn *c, const uint8_t *in, size_t len)
{
	struct xtal_tcp_session *s = c->session;
	uint64_t now = 0;

	for (size_t at = 0;;) {
		struct xtal_target_event ev;
		uint64_t addr, want;
		enum outcome o;

		/* Anew for each frame: we may be stopped in between, and leases end meanwhile. */
		if (at < len || !now)
			now = xtal_os_now();
		o = push(c, now);
		if (o == BLOCKED)
			return keep(c, in + at, len - at);
		if (o == GONE)
			return GONE;
		if (c->quiet_until)
			return keep(c, in + at, len - at);
		if (at == len)
			return GOES_ON;
		want = xtal_target_payload(&s->target, &addr);
		if (want) {
			size_t n = want < len - at ? (size_t)want : len - at;

			if (!land(s, in + at, n, now)) {
				xtal_tcp_hang_up(c, "a request came too late");
				return GONE;
			}
			at += n;
			continue;
		}
		at += xtal_target_take(&s->target, in + at, len - at, now, &ev);
		switch (ev.kind) {
		case XTAL_TARGET_EXECUTE:
			execute(s, &ev.effect, now);
			break;
		case XTAL_TARGET_HANG_UP:
			xtal_tcp_hang_up(c, ev.why);
			return GONE;
		case XTAL_TARGET_ENDED:
			return end_session(s, ev.why);
		case XTAL_TARGET_MORE:
		case XTAL_TARGET_SEND:
			break;
		}
	}
}

/* Bytes of a connection that has no session yet: its HELLO. */
static enum outcome greet(struct xtal_tcp_conn *c, const uint8_t *in, size_t len)
{
	size_t n = xtal_stream_header(&c->in, in, len);

	if (c->in.have < XTAL_MSG_HEADER && !xtal_stream_is_strange(&c->in))
		return GOES_ON;
	if (!xtal_tcp_greet(c))
		return GONE;
	return take(c, in + n, len - n);
}

static enum outcome feed(struct xtal_tcp_conn *c, const uint8_t *in, size_t len)
{
	return c->session ? take(c, in, len) : greet(c, in, len);
}

/* What was kept, now that answers may go. */
static enum outcome feed_rest(struct xtal_tcp_conn *c)
{
	enum outcome o = take(c, c->rest + c->rest_at, c->rest_len - c->rest_at);

	if (o == GOES_ON) {
		free(c->rest);
		c->rest = NULL;
	}
	return o;
}

/* Receives payload straight into the segment, and what comes behind it to look. n: as
 * xtal_tcp_receive(); *spill: bytes there. */
static int64_t receive_direct(struct xtal_tcp_conn *c, uint64_t want, uint8_t *look, size_t *spill,
			      bool *full)
{
	struct xtal_tcp_session *s = c->session;
	struct place p = place_of(&s->effect);
	uint64_t at = s->landed, body = at < p.body ? p.body - at : 0, tail = want - body;
	struct xtal_os_iov iov[3] = {
		{ (void *)(uintptr_t)(p.addr + at), body },
		{ s->tail + (p.tail - tail), tail },
		{ look, XTAL_MSG_HEADER },
	};
	uint32_t status = xtal_execute_enter(s->ctx, lane_of(s->ctx), &s->effect);
	uint64_t got;
	int64_t n = -EFAULT;

	*spill = 0;
	if (!status)
		n = xtal_tcp_receive(&c->stream, body ? iov : iov + 1, body ? 3 : 2);
	*full = n == (int64_t)(want + XTAL_MSG_HEADER);
	got = n > 0 ? (uint64_t)n : 0;
	if (got > want) {
		*spill = (size_t)(got - want);
		got = want;
	}
	if (n == -EFAULT && !status)
		status = XTAL_REMOTE_ACCESS;
	else if (got && landed(s, &p, got))
		status = XTAL_REMOTE_ACCESS;
	xtal_execute_leave(lane_of(s->ctx));
	xtal_target_landed(&s->target, got);
	if (judged(s, &s->effect, status) || (got && s->landed == s->effect.len)) {
		xtal_target_result(&s->target, (enum xtal_status)status, NULL, xtal_os_now());
		return n == -EFAULT ? 1 : n; /* the rest is taken as bytes that nobody wants */
	}
	return n;
}

/* One receive. *more: there may be more at once. */
static enum outcome receive(struct xtal_tcp_conn *c, bool *more, bool *did)
{
	uint8_t look[LOOK], *in = look;
	uint64_t addr, want = c->session ? xtal_target_payload(&c->session->target, &addr) : 0;
	size_t spill;
	int64_t n;

	if (want >= DIRECT_LEAST && xtal_tcp_direct(&c->stream) &&
	    c->session->effect.kind == XTAL_RESPONDER_WRITE) {
		if (!xtal_target_may_land(&c->session->target, xtal_os_now())) {
			xtal_tcp_hang_up(c, "a request came too late");
			return GONE;
		}
		n = receive_direct(c, want, look, &spill, more);
	} else {
		uint8_t *inbox = xtal_tcp_inbox(&c->stream, want >= DIRECT_LEAST);
		struct xtal_os_iov iov = { inbox ? inbox : look, inbox ? XTAL_TCP_INBOX : LOOK };

		in = iov.base;
		n = xtal_tcp_receive(&c->stream, &iov, 1);
		*more = n == (int64_t)iov.len || (n > 0 && xtal_tcp_buffered(&c->stream));
		spill = n > 0 ? (size_t)n : 0;
	}
	if (n == -EAGAIN) {
		*more = false;
		return GOES_ON;
	}
	if (n <= 0) {
		xtal_tcp_hang_up(c, n ? xtal_tcp_reason(&c->stream, (int)n) : "its peer closed it");
		return GONE;
	}
	*did = true;
	return feed(c, in, spill);
}

/* Looks at the connection itself from now on, for a while: a receive is cheaper than epoll, as long
 * as few are hot. */
static void make_hot(struct xtal_tcp_conn *c, bool more)
{
	if (c->polled || c->ctx->serving.by_program)
		return;
	/* What more there is may have left the socket, so that epoll does not see it. */
	if (!c->hot && (more || c->ctx->tcp.hot_count < MAX_HOT)) {
		xtal_agent_add_drain(&c->drain);
		c->hot = true;
		c->ctx->tcp.hot_count++;
	}
	xtal_agent_stay(!c->hot);
}

/* Sends what waits; all_taken: it is in the connection already. Says what is to be watched for. False:
 * the connection is gone. */
static bool settle(struct xtal_tcp_conn *c, bool all_taken)
{
	enum outcome pushed = GOES_ON, o;

	do {
		if (c->session && !all_taken)
			pushed = push(c, xtal_os_now());
		if (pushed == GONE)
			return false;
		o = flush(c);
		if (o == GONE)
			return false;
	} while (pushed == BLOCKED && o == GOES_ON);
	watch(c, (c->rest || c->quiet_until || c->polled ? 0 : XTAL_OS_READABLE) |
			 (o == BLOCKED ? XTAL_OS_WRITABLE : 0));
	return true;
}

/* False: not yet, or the connection is gone. */
static bool shake_hands(struct xtal_tcp_conn *c)
{
	int err = xtal_tcp_handshake(&c->stream);

	c->shaken = !err;
	if (err == -EAGAIN)
		watch(c, xtal_tcp_wants_write(&c->stream) ? XTAL_OS_WRITABLE : XTAL_OS_READABLE);
	if (err == -EACCES || err == -EPROTO)
		xtal_ledger_refused(&c->peer, c->ctx->port, xtal_os_now(), "a session: TLS: %s",
				    xtal_tcp_reason(&c->stream, err));
	if (err && err != -EAGAIN)
		xtal_tcp_hang_up(c, xtal_tcp_reason(&c->stream, err));
	return !err;
}

bool xtal_tcp_serve_bytes(struct xtal_tcp_conn *c, const uint8_t *in, size_t len)
{
	return feed(c, in, len) != GONE && settle(c, false);
}

void xtal_tcp_answer(struct xtal_tcp_conn *c)
{
	c->held = false;
	if (!c->broken)
		settle(c, false);
}

bool xtal_tcp_serve(struct xtal_tcp_conn *c)
{
	struct xtal_serving *serving = &c->ctx->serving;
	enum outcome o = GOES_ON;
	bool more = true, did = false, held = c->held;

	if (xtal_unlikely(c->broken)) {
		if (!serving->by_program)
			xtal_tcp_bury(c);
		return true;
	}
	if (!c->shaken && !shake_hands(c))
		return true;
	if (c->quiet_until) {
		settle(c, false);
		return false;
	}
	if (c->rest) {
		o = flush(c);
		if (o == GOES_ON)
			o = feed_rest(c);
		did = o == GOES_ON;
	}
	for (unsigned i = 0; i < ROUNDS && o == GOES_ON && more; i++)
		o = receive(c, &more, &did);
	if (o == GOES_ON && c->hot && c->ctx->tcp.hot_count == 1)
		for (unsigned i = 1; i < LOOKS && o == GOES_ON && !did; i++)
			o = receive(c, &more, &did);
	if (o == GONE)
		return true;
	c->held = did && !held && c->polled && xtal_serving_holds(serving);
	if (c->held)
		return true;
	if (c->polled && !did && !c->rest && xtal_tcp_idle(&c->stream))
		return false;
	if (!settle(c, did && o == GOES_ON))
		return true;
	if (did)
		make_hot(c, more);
	if (!c->hot && !c->polled)
		xtal_tcp_rest(&c->stream);
	return did;
}
