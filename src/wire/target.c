/* SPDX-License-Identifier: MIT */
/* The target's end of a session. See target.h. */
#include "wire/target.h"

#include <errno.h>
#include <stdio.h>

enum xtal_status xtal_target_check_hello(const struct xtal_handshake *hello, uint16_t port,
					 uint64_t incarnation, const char **why)
{
	bool ours = hello->resume ? hello->peer_incarnation == incarnation
				  : xtal_incarnation_fits(incarnation, hello->peer_incarnation);

	if (hello->port != port) {
		*why = "nobody holds this port";
		return XTAL_UNREACHABLE;
	}
	if (!ours) {
		*why = "another incarnation holds the port: that context is gone";
		return XTAL_REMOTE_ACCESS;
	}
	return XTAL_OK;
}

void xtal_target_refuse(enum xtal_status status, const char *why, struct xtal_handshake *out)
{
	if (!xtal_msg_status_allowed(status) || status == XTAL_OK)
		status = XTAL_REMOTE_OPERATION;
	*out = (struct xtal_handshake){ .type = XTAL_REFUSE, .status = status };
	snprintf(out->text, sizeof(out->text), "%s", why);
}

static void greet(struct xtal_target *t)
{
	t->state = XTAL_SESSION_GREETING;
	t->greeting = (struct xtal_handshake){
		.type = XTAL_WELCOME,
		.id = t->id,
		.incarnation = t->config.incarnation,
		.peer_incarnation = t->peer_incarnation,
		.attempt = t->attempt,
		.seq = xtal_responder_consumed(t->config.responder),
	};
	t->greeting_due = true;
}

int xtal_target_init(struct xtal_target *t, const struct xtal_target_config *config,
		     const struct xtal_handshake *hello, uint64_t now)
{
	const struct xtal_responder_config rc = {
		.cache = config->cache,
		.cache_size = config->cache_size,
		.piece = hello->piece,
		.incarnation = config->incarnation,
		.first_seq = hello->first_seq,
	};
	int err;

	if (hello->type != XTAL_HELLO || hello->resume)
		return -EPROTO;
	if (hello->window > config->cache_size)
		return -ENOBUFS;
	err = xtal_responder_init(config->responder, &rc);
	if (err)
		return err;
	*t = (struct xtal_target){
		.config = *config,
		.id = hello->id,
		.peer_incarnation = hello->incarnation,
		.pipeline = hello->pipeline,
		.window = hello->window,
		.attempt = hello->attempt,
		.spoke_at = now,
	};
	greet(t);
	return 0;
}

bool xtal_target_is_stale(const struct xtal_target *t, const struct xtal_handshake *hello)
{
	return hello->attempt <= t->attempt;
}

static void forget_connection(struct xtal_target *t)
{
	xtal_stream_reset(&t->in);
	t->executing = t->replying = t->replaying = t->greeting_due = false;
}

int xtal_target_resume(struct xtal_target *t, const struct xtal_handshake *hello, uint64_t now,
		       const char **why)
{
	const struct xtal_responder_config *rc = &t->config.responder->config;

	if (t->state == XTAL_SESSION_ENDED) {
		*why = "the session is over";
		return -EPROTO;
	}
	if (xtal_target_is_stale(t, hello)) {
		*why = "an older attempt to connect, late";
		return -EALREADY;
	}
	if (!xtal_session_id_equal(hello->id, t->id) || hello->incarnation != t->peer_incarnation ||
	    hello->pipeline != t->pipeline || hello->window != t->window ||
	    hello->piece != rc->piece || hello->first_seq != rc->first_seq) {
		*why = "the session began on other terms";
		return -EPROTO;
	}
	if (xtal_responder_resume(t->config.responder, hello->seq)) {
		*why = "no memory of the answers that are asked for";
		return -EPROTO;
	}
	forget_connection(t);
	t->attempt = hello->attempt;
	t->spoke_at = now;
	t->replaying = true;
	greet(t);
	return 0;
}

void xtal_target_disconnected(struct xtal_target *t, uint64_t now)
{
	if (t->state != XTAL_SESSION_ENDED)
		t->state = XTAL_SESSION_DOWN;
	forget_connection(t);
	t->gone_at = now;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t xtal_target_next_time(const struct xtal_target *t)
{
	uint64_t kept = t->config.linger;

	if (t->state != XTAL_SESSION_DOWN)
		return XTAL_NEVER;
	/* Who had no answer may ask again until then, and must find his session: a new one would
	 * execute the request a second time. */
	if (t->last_expiry > t->gone_at)
		kept = add_saturated(kept, t->last_expiry - t->gone_at);
	if (kept / XTAL_TARGET_LINGERS > t->config.linger)
		kept = t->config.linger * XTAL_TARGET_LINGERS;
	return add_saturated(t->gone_at, kept); /* XTAL_NEVER is the greatest */
}

/* Nothing is executed from now on; BYE is sent when there is a connection that knows us. */
static void end(struct xtal_target *t, enum xtal_status status, const char *why)
{
	bool up = t->state == XTAL_SESSION_UP || t->state == XTAL_SESSION_GREETING;

	forget_connection(t);
	t->state = XTAL_SESSION_ENDED;
	snprintf(t->why, sizeof(t->why), "%s", why);
	if (!up)
		return;
	t->greeting = (struct xtal_handshake){ .type = XTAL_BYE, .status = status, .id = t->id };
	snprintf(t->greeting.text, sizeof(t->greeting.text), "%s", why);
	t->greeting_due = true;
}

void xtal_target_close(struct xtal_target *t, enum xtal_status status, const char *why)
{
	if (t->state != XTAL_SESSION_ENDED)
		end(t, xtal_msg_status_allowed(status) ? status : XTAL_REMOTE_OPERATION, why);
}

static void report_end(struct xtal_target *t, enum xtal_status status, const char *why,
		       struct xtal_target_event *out)
{
	end(t, status, why);
	out->kind = XTAL_TARGET_ENDED;
	out->why = t->why;
}

static bool waits_to_send(const struct xtal_target *t)
{
	return t->greeting_due || t->replying || t->replaying;
}

/* A sign of progress, when the initiator has not heard of us for some time. */
static void say_news(struct xtal_target *t, uint64_t now)
{
	if (t->replying || now - t->spoke_at < XTAL_SESSION_NEWS)
		return;
	t->reply = (struct xtal_msg){
		.type = XTAL_MSG_PONG,
		.ack = xtal_responder_consumed(t->config.responder),
		.stamp = now,
	};
	t->replying = true;
}

static void take_handshake(struct xtal_target *t, struct xtal_target_event *out)
{
	struct xtal_handshake h;
	const char *why = NULL;

	if (xtal_handshake_decode(t->in.header, &h, &why))
		report_end(t, XTAL_REMOTE_OPERATION, why, out);
	else if (h.type == XTAL_BYE && xtal_session_id_equal(h.id, t->id))
		report_end(t, XTAL_OK, "closed", out);
	else
		report_end(t, XTAL_REMOTE_OPERATION, "handshake in the middle of a session", out);
}

/* True when *out is an event. */
static bool take_message(struct xtal_target *t, uint64_t now, struct xtal_target_event *out)
{
	struct xtal_msg m;
	const char *why = NULL;

	if (xtal_msg_decode(t->in.header, XTAL_MSG_HEADER, &m, &why)) {
		report_end(t, XTAL_REMOTE_OPERATION, why, out);
		return true;
	}
	if (m.expiry != 0 && now > m.expiry) {
		xtal_stream_reset(&t->in);
		out->kind = XTAL_TARGET_HANG_UP;
		out->why = "a request came too late";
		return true;
	}
	xtal_responder_feed(t->config.responder, &m, now, &out->effect);
	xtal_stream_expect(&t->in, m.payload);
	switch (out->effect.kind) {
	case XTAL_RESPONDER_NONE:
		say_news(t, now);
		break;
	case XTAL_RESPONDER_REPLY:
		t->reply = out->effect.reply;
		t->replying = true;
		break;
	case XTAL_RESPONDER_WRITE:
	case XTAL_RESPONDER_READ:
	case XTAL_RESPONDER_ATOMIC:
	case XTAL_RESPONDER_SEND:
		t->effect = out->effect;
		t->expiry = m.expiry;
		if (m.expiry > t->last_expiry)
			t->last_expiry = m.expiry;
		t->executing = true;
		out->kind = XTAL_TARGET_EXECUTE;
		return true;
	case XTAL_RESPONDER_DROP:
		report_end(t, XTAL_REMOTE_OPERATION, out->effect.why, out);
		return true;
	}
	return false;
}

size_t xtal_target_take(struct xtal_target *t, const uint8_t *in, size_t len, uint64_t now,
			struct xtal_target_event *out)
{
	size_t used = 0;

	out->kind = XTAL_TARGET_MORE;
	out->why = NULL;
	if (t->state == XTAL_SESSION_DOWN || t->state == XTAL_SESSION_ENDED)
		return len;
	while (!waits_to_send(t)) {
		if (used == len || t->executing)
			return used;
		if (t->in.left != 0) {
			size_t n = len - used < t->in.left ? len - used : (size_t)t->in.left;

			xtal_stream_taken(&t->in, n);
			used += n;
			continue;
		}
		used += xtal_stream_header(&t->in, in + used, len - used);
		if (t->in.have != XTAL_MSG_HEADER)
			return used;
		if (xtal_handshake_is(t->in.header)) {
			take_handshake(t, out);
			return used;
		}
		if (take_message(t, now, out))
			return used;
	}
	out->kind = XTAL_TARGET_SEND;
	return used;
}

uint64_t xtal_target_payload(const struct xtal_target *t, uint64_t *addr)
{
	const struct xtal_responder_effect *e = &t->effect;

	if (!t->executing || t->in.left == 0)
		return 0;
	*addr = e->addr + e->offset + (e->len - t->in.left);
	return t->in.left;
}

bool xtal_target_may_land(const struct xtal_target *t, uint64_t now)
{
	return t->executing && (t->expiry == 0 || now <= t->expiry);
}

void xtal_target_landed(struct xtal_target *t, uint64_t n)
{
	xtal_stream_taken(&t->in, n);
}

void xtal_target_result(struct xtal_target *t, enum xtal_status status, const uint64_t old[2],
			uint64_t now)
{
	if (!t->executing)
		return;
	if (status == XTAL_OK && t->in.left != 0)
		status = XTAL_REMOTE_OPERATION; /* not all of it has landed */
	t->executing = false;
	t->reply_addr = t->effect.addr + t->effect.offset;
	t->replying =
		xtal_responder_result(t->config.responder, &t->effect, status, old, now, &t->reply);
	say_news(t, now);
}

bool xtal_target_next_frame(struct xtal_target *t, uint64_t now, struct xtal_session_frame *out)
{
	out->payload = out->cookie = out->local_offset = out->addr = 0;
	if (t->greeting_due) {
		if (t->greeting.type == XTAL_WELCOME)
			t->greeting.stamp = now;
		xtal_handshake_encode(&t->greeting, out->header);
		return true;
	}
	if (t->replaying && !t->replying) {
		t->replying = xtal_responder_replay(t->config.responder, now, &t->reply);
		t->replaying = t->replying;
	}
	if (!t->replying)
		return false;
	xtal_msg_encode(&t->reply, out->header);
	out->payload = t->reply.payload;
	out->addr = t->reply.payload != 0 ? t->reply_addr : 0;
	return true;
}

void xtal_target_sent(struct xtal_target *t, uint64_t now)
{
	if (t->greeting_due) {
		t->greeting_due = false;
		if (t->state == XTAL_SESSION_GREETING)
			t->state = XTAL_SESSION_UP;
	} else {
		t->replying = false;
	}
	t->spoke_at = now;
}
