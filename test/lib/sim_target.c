/* SPDX-License-Identifier: MIT */
/* The carrier of simulated targets: accepts connections, finds sessions, executes. See sim.h. */
#include <errno.h>
#include <string.h>

#include "sim.h"

static void arm(struct sim *w, uint32_t session)
{
	struct sim_session *s = &w->session[session];
	uint64_t at = xtal_target_next_time(&s->target);

	s->timer++;
	if (at != XTAL_NEVER)
		sim_schedule(w, sim_when(w, s->node, at), SIM_EXPIRE, session, s->timer);
}

static void forget(struct sim *w, uint32_t session)
{
	struct sim_session *s = &w->session[session];

	if (s->conn != 0)
		w->conn[s->conn - 1].session = 0;
	sim_receive_abandon(w, s);
	s->used = false;
	s->conn = 0;
	s->timer++;
}

void sim_session_expire(struct sim *w, uint32_t session)
{
	struct sim_session *s = &w->session[session];

	if (s->used && s->conn == 0)
		forget(w, session);
}

void sim_target_closed(struct sim *w, uint32_t conn)
{
	struct sim_conn *c = &w->conn[conn];
	uint32_t session = c->session;

	sim_conn_close(w, conn, SIM_TARGET);
	c->session = 0;
	if (session == 0)
		return;
	w->session[session - 1].conn = 0;
	xtal_target_disconnected(&w->session[session - 1].target,
				 sim_clock(w, w->session[session - 1].node));
	arm(w, session - 1);
}

static struct sim_session *find(struct sim *w, uint32_t node, struct xtal_session_id id)
{
	for (uint32_t k = 0; k < SIM_SESSIONS; k++) {
		struct sim_session *s = &w->session[k];

		if (s->used && s->node == node && xtal_session_id_equal(s->id, id))
			return s;
	}
	return NULL;
}

static struct sim_session *make(struct sim *w, uint32_t node, struct xtal_session_id id)
{
	for (uint32_t k = 0; k < SIM_SESSIONS; k++) {
		struct sim_session *s = &w->session[k];

		if (s->used)
			continue;
		memset(s, 0, sizeof(*s));
		s->used = true;
		s->node = node;
		s->life = w->node[node].life;
		s->id = id;
		return s;
	}
	sim_fail(w, "more sessions than anybody needs");
	return &w->session[0];
}

static void refuse(struct sim *w, uint32_t conn, enum xtal_status status, const char *why)
{
	struct sim_conn *c = &w->conn[conn];
	struct xtal_handshake h;

	xtal_target_refuse(status, why, &h);
	xtal_handshake_encode(&h, c->to[SIM_INITIATOR].out);
	c->to[SIM_INITIATOR].out_len = XTAL_MSG_HEADER;
	c->to[SIM_INITIATOR].out_at = 0;
	sim_conn_push(w, conn, SIM_TARGET);
	sim_note(w, "refuse", conn, status, 0);
	sim_conn_close(w, conn, SIM_TARGET);
}

/* The connection goes on, from another one when there was one, under the session. */
static void adopt(struct sim *w, uint32_t conn, struct sim_session *s)
{
	s->conn = conn + 1;
	s->timer++;
	w->conn[conn].session = (uint32_t)(s - w->session) + 1;
}

static void resume(struct sim *w, uint32_t conn, struct sim_session *s,
		   const struct xtal_handshake *hello)
{
	uint64_t now = sim_clock(w, s->node);
	const char *why = "";
	int err;

	if (xtal_target_is_stale(&s->target, hello)) {
		sim_note(w, "stale", conn, hello->attempt, 0);
		sim_conn_close(w, conn, SIM_TARGET);
		return;
	}
	if (s->conn != 0) {
		uint32_t old = s->conn - 1;

		/* its unread bytes are never read */
		w->conn[old].session = 0;
		sim_conn_close(w, old, SIM_TARGET);
		s->conn = 0;
	}
	err = xtal_target_resume(&s->target, hello, now, &why);
	if (err == 0) {
		adopt(w, conn, s);
		return;
	}
	/* replayed greetings of a session that is over make one of which nobody knows anything */
	if (!s->ghost)
		sim_fail(w, "session of link %u cannot resume: %s", (uint32_t)s->id.word[1] - 1,
			 why);
	refuse(w, conn, XTAL_UNREACHABLE, why);
	forget(w, (uint32_t)(s - w->session));
}

static void greet(struct sim *w, uint32_t conn)
{
	struct sim_conn *c = &w->conn[conn];
	struct sim_node *n = &w->node[c->node];
	struct xtal_handshake hello;
	struct sim_session *s;
	enum xtal_status status;
	const char *why = "";

	if (xtal_handshake_decode(c->hello, &hello, &why) || hello.type != XTAL_HELLO) {
		sim_fail(w, "bad greeting: %s", why);
		return;
	}
	status = xtal_target_check_hello(&hello, (uint16_t)(c->node + 1), n->incarnation, &why);
	if (status != XTAL_OK) {
		refuse(w, conn, status, why);
		return;
	}
	s = find(w, c->node, hello.id);
	if (s) {
		resume(w, conn, s, &hello);
	} else if (hello.resume) {
		refuse(w, conn, XTAL_UNREACHABLE, "the session is not known");
	} else {
		struct xtal_target_config tc = {
			.incarnation = n->incarnation,
			.cache_size = SIM_WINDOW,
			.linger = 3 * w->limit,
		};

		s = make(w, c->node, hello.id);
		/*
		 * Also a greeting of the link's own that was stalled until its session was over and
		 * forgotten (seed 48875). The target cannot tell it from a new one, so it makes an
		 * empty session, in which nothing is ever executed: the link that knows the id is
		 * gone, and its requests with it. If a later greeting of it is replayed, the empty
		 * session has none of the answers that are asked for, and refuses. That harms nobody,
		 * so to fail for it was the oracle's mistake. A link that is not over must never meet
		 * such a session: what it has executed before would be executed again. It does not,
		 * as long as sessions are kept (linger) for longer than an operation may take.
		 */
		s->ghost = c->rogue || w->link[hello.id.word[1] - 1].over;
		tc.responder = &s->responder;
		tc.cache = s->cache;
		if (xtal_target_init(&s->target, &tc, &hello, sim_clock(w, c->node)))
			sim_fail(w, "a session could not be made");
		adopt(w, conn, s);
	}
}

static void send(struct sim *w, uint32_t conn, struct sim_session *s)
{
	struct sim_stream *out = &w->conn[conn].to[SIM_INITIATOR];
	uint64_t now = sim_clock(w, s->node);
	struct xtal_session_frame f;

	while (sim_conn_room(&w->conn[conn], SIM_TARGET) &&
	       xtal_target_next_frame(&s->target, now, &f)) {
		w->replays += s->target.replaying;
		memcpy(out->out, f.header, sizeof(f.header));
		if (f.payload != 0)
			sim_model_read(w, s, f.addr, out->out + sizeof(f.header), f.payload);
		out->out_len = (uint32_t)(sizeof(f.header) + f.payload);
		out->out_at = 0;
		xtal_target_sent(&s->target, now);
		sim_conn_push(w, conn, SIM_TARGET);
	}
}

static void execute(struct sim *w, struct sim_session *s)
{
	const struct xtal_responder_effect *e = &s->target.effect;
	enum xtal_status status = sim_model_begin(w, s, e);
	uint64_t old[2] = { 0, 0 };

	if (status == XTAL_OK && e->kind == XTAL_RESPONDER_SEND)
		status = e->last ? sim_receive_end(w, s, e) : XTAL_OK;
	else if (status == XTAL_OK)
		sim_model_execute(w, s, e, old);
	xtal_target_result(&s->target, status, old, sim_clock(w, s->node));
}

/* The header of a request has arrived. */
static void begin(struct sim *w, struct sim_session *s, const struct xtal_responder_effect *e)
{
	uint64_t pause[2] = { 0, 0 }, addr;
	enum xtal_status status = XTAL_OK;

	if (e->first && e->kind == XTAL_RESPONDER_SEND)
		status = sim_receive_begin(w, s, e, pause);
	else if (e->first)
		sim_receive_abandon(w, s); /* the rest of it does not come */
	if (status != XTAL_OK)
		xtal_target_result(&s->target, status, pause, sim_clock(w, s->node));
	else if (xtal_target_payload(&s->target, &addr) == 0)
		execute(w, s);
}

static enum xtal_status land(struct sim *w, struct sim_session *s, uint64_t offset,
			     const uint8_t *bytes, uint32_t n)
{
	const struct xtal_responder_effect *e = &s->target.effect;
	enum xtal_status status = sim_model_begin(w, s, e);

	if (status != XTAL_OK)
		return status;
	if (e->kind == XTAL_RESPONDER_SEND)
		return sim_receive_land(w, s, e, offset, bytes, n);
	sim_model_land(w, s, e, offset, bytes, n);
	return XTAL_OK;
}

/* One step. False: nothing more can be done now. */
static bool step(struct sim *w, uint32_t conn, struct sim_session *s)
{
	struct xtal_target *t = &s->target;
	uint64_t now = sim_clock(w, s->node), addr = 0, left = xtal_target_payload(t, &addr);
	struct xtal_target_event e;
	enum xtal_status status;
	uint8_t bytes[700];
	uint32_t n;

	if (left != 0) {
		n = sim_conn_peek(w, conn, SIM_TARGET, bytes,
				  left < sizeof(bytes) ? (uint32_t)left : sizeof(bytes));
		if (n == 0)
			return false;
		if (!xtal_target_may_land(t, now)) {
			sim_note(w, "late", conn, 0, 0);
			sim_target_closed(w, conn);
			return false;
		}
		status = land(w, s, t->effect.len - left, bytes, n);
		if (status != XTAL_OK) { /* the rest of the payload is eaten */
			xtal_target_result(t, status, NULL, now);
			return true;
		}
		sim_conn_taken(w, conn, SIM_TARGET, n);
		xtal_target_landed(t, n);
		if (n == left)
			execute(w, s);
		return true;
	}
	n = sim_conn_peek(w, conn, SIM_TARGET, bytes, sizeof(bytes));
	n = (uint32_t)xtal_target_take(t, bytes, n, now, &e);
	sim_conn_taken(w, conn, SIM_TARGET, n);
	switch (e.kind) {
	case XTAL_TARGET_MORE:
		return n != 0;
	case XTAL_TARGET_EXECUTE:
		begin(w, s, &e.effect);
		return true;
	case XTAL_TARGET_SEND:
		send(w, conn, s);
		return !t->greeting_due && !t->replying && !t->replaying;
	case XTAL_TARGET_HANG_UP:
		sim_note(w, "too late", conn, 0, 0);
		sim_target_closed(w, conn);
		return false;
	case XTAL_TARGET_ENDED:
		if (strcmp(e.why, "closed") != 0)
			sim_fail(w, "target ends the session of link %u: %s",
				 (uint32_t)s->id.word[1] - 1, e.why);
		send(w, conn, s);
		sim_conn_close(w, conn, SIM_TARGET);
		forget(w, (uint32_t)(s - w->session));
		return false;
	}
	return false;
}

void sim_target_run(struct sim *w, uint32_t conn)
{
	struct sim_conn *c = &w->conn[conn];

	if (!c->open[SIM_TARGET] || c->life != w->node[c->node].life)
		return;
	while (c->session == 0 && c->hello_len < XTAL_MSG_HEADER) {
		uint32_t n = sim_conn_peek(w, conn, SIM_TARGET, c->hello + c->hello_len,
					   XTAL_MSG_HEADER - c->hello_len);

		if (n == 0)
			return;
		c->hello_len += n;
		sim_conn_taken(w, conn, SIM_TARGET, n);
		if (c->hello_len == XTAL_MSG_HEADER)
			greet(w, conn);
	}
	if (c->session == 0)
		return;
	send(w, conn, &w->session[c->session - 1]);
	while (c->session != 0 && !w->failed && step(w, conn, &w->session[c->session - 1]))
		;
	if (c->session != 0)
		send(w, conn, &w->session[c->session - 1]);
}
