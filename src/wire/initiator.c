/* SPDX-License-Identifier: MIT */
/* The initiator's end of a session. See initiator.h. */
#include "wire/initiator.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

int xtal_initiator_init(struct xtal_initiator *i, const struct xtal_initiator_config *config,
			uint64_t now)
{
	const struct xtal_requester_config rc = {
		.slots = config->slots,
		.window = config->window,
		.piece = config->piece,
		.first_seq = config->first_seq,
		.margin = config->margin,
		.resumable = true,
	};
	int err = config->requester ? xtal_requester_init(config->requester, &rc) : -EINVAL;

	if (err || (config->id.word[0] | config->id.word[1]) == 0 || config->incarnation == 0 ||
	    config->target_incarnation == 0 || config->target_incarnation > XTAL_INCARNATION_ANY ||
	    config->port == 0 || config->port > 0xfffe || config->keepalive == 0 ||
	    config->silence == 0)
		return -EINVAL;
	*i = (struct xtal_initiator){
		.config = *config,
		.state = XTAL_SESSION_DOWN,
		.heard_at = now,
		.connect_at = now,
	};
	return 0;
}

static void end(struct xtal_initiator *i, enum xtal_status status, const char *why)
{
	i->state = XTAL_SESSION_ENDED;
	i->status = status;
	snprintf(i->why, sizeof(i->why), "%s", why);
	xtal_stream_reset(&i->in);
}

static void report_end(struct xtal_initiator *i, enum xtal_status status, const char *why,
		       struct xtal_initiator_event *out)
{
	end(i, status, why);
	*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_ENDED,
					      .status = status,
					      .why = i->why };
}

/*
 * What came was said by no target. When it is a later connection of the session, somebody else has
 * answered; what went over the ones before may land yet, so that nothing has failed.
 */
static void report_stranger(struct xtal_initiator *i, const char *why,
			    struct xtal_initiator_event *out)
{
	if (i->state == XTAL_SESSION_GREETING && i->welcomed) {
		xtal_stream_reset(&i->in);
		*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_HANG_UP, .why = why };
	} else {
		report_end(i, XTAL_UNREACHABLE, why, out);
	}
}

/* Operations are open, or answers may still come to some that are not. */
static bool in_use(const struct xtal_initiator *i)
{
	return i->config.requester->head != i->config.requester->tail;
}

/* There is a reason to have a connection. */
static bool has_work(const struct xtal_initiator *i)
{
	return (!i->welcomed && !i->closing) || xtal_requester_is_busy(i->config.requester);
}

uint64_t xtal_initiator_next_time(const struct xtal_initiator *i)
{
	switch (i->state) {
	case XTAL_SESSION_DOWN:
		return has_work(i) ? i->connect_at : XTAL_NEVER;
	case XTAL_SESSION_GREETING:
		return later(i->heard_at, i->config.silence);
	case XTAL_SESSION_UP:
		if (i->asked_at != 0)
			return later(i->asked_at, i->config.silence);
		return in_use(i) || i->bye_sent ? later(i->heard_at, i->config.keepalive)
						: XTAL_NEVER;
	case XTAL_SESSION_ENDED:
		break;
	}
	return XTAL_NEVER;
}

static void tick_up(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out)
{
	if (i->asked_at != 0) {
		if (now < later(i->asked_at, i->config.silence))
			return;
		*out = (struct xtal_initiator_event){
			.kind = XTAL_INITIATOR_HANG_UP,
			.why = "nothing came from the target for too long",
		};
	} else if ((in_use(i) || i->bye_sent) && now >= later(i->heard_at, i->config.keepalive)) {
		i->ping_due = !i->bye_sent;
		i->asked_at = now;
	}
}

void xtal_initiator_tick(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out)
{
	*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_MORE };
	switch (i->state) {
	case XTAL_SESSION_DOWN:
		if (!has_work(i))
			report_end(i, XTAL_FLUSHED, "the connection went while nothing was open",
				   out);
		break;
	case XTAL_SESSION_GREETING:
		if (now >= later(i->heard_at, i->config.silence))
			*out = (struct xtal_initiator_event){
				.kind = XTAL_INITIATOR_HANG_UP,
				.why = "the target does not answer the greeting",
			};
		break;
	case XTAL_SESSION_UP:
		tick_up(i, now, out);
		break;
	case XTAL_SESSION_ENDED:
		*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_ENDED,
						      .status = i->status,
						      .why = i->why };
		break;
	}
}

bool xtal_initiator_wants_connection(const struct xtal_initiator *i, uint64_t now)
{
	return i->state == XTAL_SESSION_DOWN && has_work(i) && now >= i->connect_at;
}

void xtal_initiator_connected(struct xtal_initiator *i, uint64_t now)
{
	if (i->state == XTAL_SESSION_ENDED)
		return;
	if (i->state != XTAL_SESSION_DOWN)
		xtal_initiator_disconnected(i, now);
	if (i->state == XTAL_SESSION_ENDED)
		return;
	i->state = XTAL_SESSION_GREETING;
	i->attempt++;
	i->hello_due = true;
	i->heard_at = now;
}

void xtal_initiator_disconnected(struct xtal_initiator *i, uint64_t now)
{
	if (i->state == XTAL_SESSION_ENDED)
		return;
	i->state = XTAL_SESSION_DOWN;
	xtal_stream_reset(&i->in);
	i->at = 0;
	i->asked_at = 0;
	i->hello_due = i->ping_due = i->bye_sent = false;
	i->shown = XTAL_INITIATOR_NOTHING;
	if (i->moved_at != i->config.requester->progress_at) /* it works */
		i->pause = 0;
	i->moved_at = i->config.requester->progress_at;
	i->connect_at = later(now, i->pause);
	i->pause = i->pause == 0 ? i->config.retry_least : later(i->pause, i->pause);
	if (i->pause > i->config.retry_most)
		i->pause = i->config.retry_most;
	if (!has_work(i))
		end(i, XTAL_FLUSHED, "the connection went while nothing was open");
}

void xtal_initiator_end(struct xtal_initiator *i, enum xtal_status status, const char *why)
{
	if (i->state != XTAL_SESSION_ENDED)
		end(i, status, why);
}

void xtal_initiator_close(struct xtal_initiator *i)
{
	i->closing = true;
	if (i->state == XTAL_SESSION_DOWN && !xtal_requester_is_busy(i->config.requester))
		end(i, XTAL_FLUSHED, "closed");
}

static void make_hello(const struct xtal_initiator *i, uint64_t now, struct xtal_handshake *out)
{
	const struct xtal_initiator_config *c = &i->config;

	*out = (struct xtal_handshake){
		.type = XTAL_HELLO,
		.resume = i->welcomed,
		.id = c->id,
		.incarnation = c->incarnation,
		.peer_incarnation = i->welcomed ? i->peer_incarnation : c->target_incarnation,
		.eid = c->eid,
		.port = c->port,
		.pipeline = c->pipeline,
		.window = c->window,
		.piece = c->piece,
		.first_seq = c->first_seq,
		.attempt = i->attempt,
		.seq = c->requester->response_seq - 1,
		.stamp = now,
	};
}

static enum xtal_initiator_frame next_when_up(struct xtal_initiator *i, uint64_t now,
					      struct xtal_session_frame *out)
{
	struct xtal_requester *r = i->config.requester;
	struct xtal_requester_frame frame;

	if (i->bye_sent)
		return XTAL_INITIATOR_NOTHING;
	if (i->ping_due) {
		xtal_requester_ping(r, now, &frame.msg);
		xtal_msg_encode(&frame.msg, out->header);
		return XTAL_INITIATOR_PING;
	}
	if (xtal_requester_next_frame(r, now, &frame)) {
		xtal_msg_encode(&frame.msg, out->header);
		out->payload = frame.msg.payload;
		out->cookie = frame.cookie;
		out->local_offset = frame.local_offset;
		return XTAL_INITIATOR_REQUEST;
	}
	/* Open operations that have no frame to send now may have one later. */
	if (i->closing && !xtal_requester_is_busy(r)) {
		const struct xtal_handshake bye = { .type = XTAL_BYE, .id = i->config.id };

		xtal_handshake_encode(&bye, out->header);
		return XTAL_INITIATOR_BYE;
	}
	return XTAL_INITIATOR_NOTHING;
}

/* The usual answer after the last frame. */
static bool has_nothing(const struct xtal_initiator *i)
{
	const struct xtal_requester *r = i->config.requester;

	return i->state == XTAL_SESSION_UP && !i->ping_due && !i->closing && r->next == r->tail;
}

bool xtal_initiator_next_frame(struct xtal_initiator *i, uint64_t now,
			       struct xtal_session_frame *out)
{
	struct xtal_handshake hello;

	if (has_nothing(i)) {
		i->shown = XTAL_INITIATOR_NOTHING;
		return false;
	}
	out->payload = out->cookie = out->local_offset = out->addr = 0;
	i->shown = XTAL_INITIATOR_NOTHING;
	switch (i->state) {
	case XTAL_SESSION_GREETING:
		if (!i->hello_due)
			break;
		make_hello(i, now, &hello);
		xtal_handshake_encode(&hello, out->header);
		i->shown = XTAL_INITIATOR_HELLO;
		break;
	case XTAL_SESSION_UP:
		i->shown = next_when_up(i, now, out);
		break;
	case XTAL_SESSION_DOWN:
	case XTAL_SESSION_ENDED:
		break;
	}
	return i->shown != XTAL_INITIATOR_NOTHING;
}

void xtal_initiator_sent(struct xtal_initiator *i, uint64_t now)
{
	(void)now;
	switch (i->shown) {
	case XTAL_INITIATOR_NOTHING:
		break;
	case XTAL_INITIATOR_HELLO:
		i->hello_due = false;
		break;
	case XTAL_INITIATOR_PING:
		i->ping_due = false;
		break;
	case XTAL_INITIATOR_REQUEST:
		xtal_requester_sent(i->config.requester);
		break;
	case XTAL_INITIATOR_BYE:
		i->bye_sent = true;
		break;
	}
	i->shown = XTAL_INITIATOR_NOTHING;
}

/* The answer to our HELLO. */
static void welcome(struct xtal_initiator *i, const struct xtal_handshake *h, uint64_t now,
		    struct xtal_initiator_event *out)
{
	struct xtal_requester *r = i->config.requester;

	if (!xtal_session_id_equal(h->id, i->config.id) || h->attempt != i->attempt ||
	    h->peer_incarnation != i->config.incarnation) {
		report_end(i, XTAL_UNREACHABLE, "the target welcomes somebody else", out);
		return;
	}
	if (i->welcomed ? h->incarnation != i->peer_incarnation
			: !xtal_incarnation_fits(h->incarnation, i->config.target_incarnation)) {
		report_end(i, XTAL_REMOTE_ACCESS, "the target is another incarnation", out);
		return;
	}
	if (xtal_requester_rewind(r, h->seq, now)) {
		report_end(i, XTAL_UNREACHABLE, "the target has executed what was never sent", out);
		return;
	}
	i->welcomed = true;
	i->peer_incarnation = h->incarnation;
	r->config.incarnation = h->incarnation;
	r->config.peer_stamp = h->stamp;
	r->config.peer_stamp_at = now;
	i->state = XTAL_SESSION_UP;
	*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_UP };
}

static void take_handshake(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out)
{
	struct xtal_handshake h;
	const char *why = NULL;

	if (xtal_handshake_decode(i->in.header, &h, &why)) {
		report_stranger(i, why, out);
		return;
	}
	xtal_stream_expect(&i->in, 0);
	switch (h.type) {
	case XTAL_WELCOME:
		if (i->state == XTAL_SESSION_GREETING && !i->hello_due)
			welcome(i, &h, now, out);
		else
			report_end(i, XTAL_UNREACHABLE, "welcome without a greeting", out);
		return;
	case XTAL_REFUSE:
		if (i->state != XTAL_SESSION_GREETING)
			report_end(i, XTAL_UNREACHABLE, "refusal after the welcome", out);
		else if (h.status != XTAL_NOT_READY)
			report_end(i, h.status, h.text[0] ? h.text : "refused", out);
		else
			*out = (struct xtal_initiator_event){
				.kind = XTAL_INITIATOR_HANG_UP,
				.why = "the target asks to try again later",
			};
		return;
	case XTAL_BYE:
		if (i->state == XTAL_SESSION_UP && xtal_session_id_equal(h.id, i->config.id))
			report_end(i, h.status == XTAL_OK ? XTAL_FLUSHED : h.status,
				   h.text[0] ? h.text : "closed", out);
		else
			report_end(i, XTAL_UNREACHABLE, "farewell without a session", out);
		return;
	case XTAL_HELLO:
		break;
	}
	report_end(i, XTAL_UNREACHABLE, "greeting from a target", out);
}

/* The answer is complete. False: nothing that the owner has to know. */
static bool finish_answer(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out)
{
	const char *why = "";

	if (xtal_requester_receive(i->config.requester, &i->answer, now, &out->effect, &why)) {
		report_end(i, XTAL_UNREACHABLE, why, out);
		return true;
	}
	if (out->effect.ignored)
		return false;
	out->kind = XTAL_INITIATOR_ANSWER;
	return true;
}

static bool take_message(struct xtal_initiator *i, uint64_t now, struct xtal_initiator_event *out)
{
	const char *why = "";

	if (i->state != XTAL_SESSION_UP) {
		report_stranger(i, "message before the welcome", out);
		return true;
	}
	if (xtal_msg_decode(i->in.header, XTAL_MSG_HEADER, &i->answer, &why) ||
	    xtal_requester_check(i->config.requester, &i->answer, &out->effect, &why)) {
		report_end(i, XTAL_UNREACHABLE, why, out);
		return true;
	}
	xtal_stream_expect(&i->in, i->answer.payload);
	i->at = 0;
	return i->answer.payload == 0 && finish_answer(i, now, out);
}

/* The payload that is being read has a place to go to. */
static bool wants_payload(const struct xtal_initiator *i, struct xtal_requester_effect *e)
{
	return i->in.left != 0 && !xtal_requester_check(i->config.requester, &i->answer, e, NULL) &&
	       !e->ignored;
}

size_t xtal_initiator_take(struct xtal_initiator *i, const uint8_t *in, size_t len, uint64_t now,
			   struct xtal_initiator_event *out)
{
	size_t used = 0;

	*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_MORE };
	if (i->state == XTAL_SESSION_DOWN || i->state == XTAL_SESSION_ENDED)
		return len;
	if (len != 0) {
		i->heard_at = now;
		i->asked_at = 0;
	}
	for (;;) {
		if (wants_payload(i, &out->effect)) {
			out->effect.finished = false;
			out->kind = XTAL_INITIATOR_PAYLOAD;
			return used;
		}
		if (i->in.left != 0) {
			size_t n = len - used < i->in.left ? len - used : (size_t)i->in.left;

			xtal_stream_taken(&i->in, n);
			used += n;
			if (i->in.left == 0 && finish_answer(i, now, out))
				return used;
			if (used == len)
				return used;
			continue;
		}
		used += xtal_stream_header(&i->in, in + used, len - used);
		if (xtal_stream_is_strange(&i->in)) {
			report_stranger(
				i,
				"what answers speaks another protocol: its magic number is wrong",
				out);
			return used;
		}
		if (i->in.have != XTAL_MSG_HEADER)
			return used;
		if (xtal_handshake_is(i->in.header)) {
			take_handshake(i, now, out);
			return used;
		}
		if (take_message(i, now, out))
			return used;
	}
}

uint64_t xtal_initiator_payload(const struct xtal_initiator *i, uint64_t *cookie, uint64_t *offset)
{
	struct xtal_requester_effect e;

	if (i->state != XTAL_SESSION_UP || !wants_payload(i, &e))
		return 0;
	*cookie = e.cookie;
	*offset = e.offset + i->at;
	return i->in.left;
}

void xtal_initiator_placed(struct xtal_initiator *i, uint64_t n, uint64_t now,
			   struct xtal_initiator_event *out)
{
	*out = (struct xtal_initiator_event){ .kind = XTAL_INITIATOR_MORE };
	if (i->state != XTAL_SESSION_UP || i->in.left == 0)
		return;
	i->heard_at = now;
	i->asked_at = 0;
	i->at += n;
	xtal_stream_taken(&i->in, n);
	if (i->in.left == 0)
		finish_answer(i, now, out);
}
