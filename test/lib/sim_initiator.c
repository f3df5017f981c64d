/* SPDX-License-Identifier: MIT */
/* The carrier of simulated initiators: what a link's owner does between machine and stream. */
#include <string.h>

#include "sim.h"

static void arm(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	uint64_t at = xtal_initiator_next_time(&l->initiator);
	uint64_t deadline = xtal_requester_next_deadline(&l->requester);

	l->timer++;
	if (deadline < at)
		at = deadline;
	if (at == XTAL_NEVER || l->over)
		return;
	at = sim_when(w, l->from, at);
	sim_schedule(w, at > w->now ? at : w->now, SIM_TIMER, link, l->timer);
}

/* Nobody uses the link any more; its connection is closed. */
static void leave(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];

	if (l->conn != 0)
		sim_conn_close(w, l->conn - 1, SIM_INITIATOR);
	l->conn = 0;
	l->over = true;
}

/* Honest ends never accuse each other. */
static void check_reason(struct sim *w, uint32_t link)
{
	static const char *const fair[] = {
		"closed",
		"nobody holds the port",
		"the session is not known",
		"another incarnation holds the port: that context is gone",
		"the connection went while nothing was open",
	};
	const char *why = w->link[link].initiator.why;

	for (unsigned k = 0; k < sizeof(fair) / sizeof(fair[0]); k++)
		if (strcmp(why, fair[k]) == 0)
			return;
	sim_fail(w, "link %u ends: %s", link, why);
}

/* The requester has done with an operation. */
static void ended(struct sim *w, uint64_t cookie, enum xtal_status status, const uint64_t old[2])
{
	if (w->op[cookie - 1].request.type == XTAL_MSG_SEND)
		sim_queue_answer(w, cookie, status, old[0]);
	else
		sim_model_complete(w, cookie, status, old);
}

/* Messages are not sent without those that they follow. */
static void end_orphans(struct sim *w, uint32_t link)
{
	struct xtal_requester *r = &w->link[link].requester;
	static const uint64_t none[2];
	uint64_t cookie;

	while (xtal_requester_next_orphan(r, &cookie)) {
		xtal_requester_abandon(r, cookie, true);
		ended(w, cookie, XTAL_NOT_READY, none);
	}
}

static void finish_all(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	struct xtal_requester_effect e;
	static const uint64_t none[2];
	bool lay_idle = strcmp(l->initiator.why, "the connection went while nothing was open") == 0;

	sim_note(w, "ended", link, l->initiator.status, 0);
	check_reason(w, link);
	leave(w, link);
	while (xtal_requester_fail_next(&l->requester, l->initiator.status, &e))
		ended(w, e.cookie, e.status, none);
	sim_queues_leave(w, link, l->initiator.status, lay_idle);
}

/* A connection that moves is not hung up on for its silence. */
static void check_hang_up(struct sim *w, uint32_t link)
{
	const struct sim_link *l = &w->link[link];
	const struct sim_conn *c = l->conn ? &w->conn[l->conn - 1] : NULL;

	if (c && !c->broken && c->to[0].stalled_until == 0 && c->to[1].stalled_until == 0 &&
	    w->node[l->from].stopped_until == 0 && w->node[l->to].stopped_until == 0 &&
	    l->initiator.state == XTAL_SESSION_UP && w->now - l->executed_at < w->limit / 20)
		sim_fail(w, "link %u hangs up on a connection that moves", link);
}

static void hang_up(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];

	if (l->conn != 0)
		sim_conn_close(w, l->conn - 1, SIM_INITIATOR);
	l->conn = 0;
	xtal_initiator_disconnected(&l->initiator, sim_clock(w, l->from));
}

static void handle(struct sim *w, uint32_t link, const struct xtal_initiator_event *e)
{
	switch (e->kind) {
	case XTAL_INITIATOR_MORE:
	case XTAL_INITIATOR_PAYLOAD:
		break;
	case XTAL_INITIATOR_UP:
		sim_note(w, "up", link, w->link[link].initiator.attempt, 0);
		w->resumes += w->link[link].initiator.attempt > 1;
		end_orphans(w, link);
		break;
	case XTAL_INITIATOR_ANSWER:
		if (e->effect.finished)
			ended(w, e->effect.cookie, e->effect.status, e->effect.old);
		break;
	case XTAL_INITIATOR_HANG_UP:
		sim_note(w, "hang up", link, 0, 0);
		check_hang_up(w, link);
		hang_up(w, link);
		break;
	case XTAL_INITIATOR_ENDED:
		break; /* seen by its state */
	}
}

static void receive(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	uint8_t bytes[700];

	while (l->conn != 0 && sim_conn_readable(&w->conn[l->conn - 1], SIM_INITIATOR) != 0) {
		uint32_t conn = l->conn - 1;
		uint64_t now = sim_clock(w, l->from);
		struct xtal_initiator_event e;
		uint64_t cookie = 0, offset = 0;
		uint64_t left = xtal_initiator_payload(&l->initiator, &cookie, &offset);
		uint32_t n;

		if (left != 0) {
			n = sim_conn_peek(w, conn, SIM_INITIATOR, bytes,
					  left < sizeof(bytes) ? (uint32_t)left : sizeof(bytes));
			sim_model_place(w, cookie, offset, bytes, n);
			sim_conn_taken(w, conn, SIM_INITIATOR, n);
			xtal_initiator_placed(&l->initiator, n, now, &e);
		} else {
			n = sim_conn_peek(w, conn, SIM_INITIATOR, bytes, sizeof(bytes));
			n = (uint32_t)xtal_initiator_take(&l->initiator, bytes, n, now, &e);
			sim_conn_taken(w, conn, SIM_INITIATOR, n);
		}
		handle(w, link, &e);
	}
}

/* As over a ring: a SEND that has a short form takes it. The rest of the world sees what comes out. */
static void take_short_form(struct sim *w, struct sim_link *l, uint8_t *frame)
{
	uint8_t bytes[XTAL_SHORT_BYTES];
	const uint8_t *payload;
	const char *why = "";
	struct xtal_msg m;

	if (xtal_msg_decode(frame, XTAL_MSG_HEADER, &m, NULL)) /* a greeting */
		return;
	if (!xtal_short_encode(&l->sent, &m, frame + XTAL_MSG_HEADER, bytes)) {
		xtal_short_note(&l->sent, &m);
		xtal_short_note(&l->received, &m);
		return;
	}
	w->brief++;
	if (xtal_short_decode(&l->received, bytes, &m, &payload, &why)) {
		sim_fail(w, "short form: %s", why);
		return;
	}
	xtal_msg_encode(&m, frame);
	memcpy(frame + XTAL_MSG_HEADER, payload, m.payload);
}

static void send(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	uint64_t now = sim_clock(w, l->from);
	struct xtal_session_frame f;

	while (l->conn != 0) {
		struct sim_stream *s = &w->conn[l->conn - 1].to[SIM_TARGET];

		if (!sim_conn_room(&w->conn[l->conn - 1], SIM_INITIATOR) ||
		    !xtal_initiator_next_frame(&l->initiator, now, &f))
			break;
		memcpy(s->out, f.header, sizeof(f.header));
		for (uint64_t k = 0; k < f.payload; k++)
			s->out[sizeof(f.header) + k] =
				sim_pattern(w, (uint32_t)f.cookie - 1, f.local_offset + k);
		s->out_len = (uint32_t)(sizeof(f.header) + f.payload);
		s->out_at = 0;
		take_short_form(w, l, s->out);
		xtal_initiator_sent(&l->initiator, now);
		sim_conn_push(w, l->conn - 1, SIM_INITIATOR);
	}
}

/* Overdue operations end, each by itself. */
static void expire(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	struct xtal_requester_expired late;
	static const uint64_t none[2];

	while (xtal_requester_next_expired(&l->requester, sim_clock(w, l->from), &late)) {
		xtal_requester_abandon(&l->requester, late.cookie, false);
		ended(w, late.cookie, XTAL_UNREACHABLE, none);
		end_orphans(w, link);
	}
}

void sim_link_run(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	struct xtal_initiator_event e;

	if (l->over || w->node[l->from].life != l->life)
		return;
	receive(w, link);
	expire(w, link);
	xtal_initiator_tick(&l->initiator, sim_clock(w, l->from), &e);
	handle(w, link, &e);
	sim_queues_run(w, link);
	if (l->leaving && sim_queues_empty(w, link))
		xtal_initiator_close(&l->initiator);
	send(w, link);
	if (l->initiator.state == XTAL_SESSION_ENDED) {
		finish_all(w, link);
		return;
	}
	if (!l->connecting &&
	    xtal_initiator_wants_connection(&l->initiator, sim_clock(w, l->from))) {
		l->connecting = true;
		sim_schedule(w, w->now + 10 * SIM_US + rng_below(&w->rng, SIM_MS), SIM_CONNECT,
			     link, 0);
	}
	if (!l->connecting || l->initiator.state != XTAL_SESSION_DOWN)
		arm(w, link);
	else
		w->link[link].timer++;
}

void sim_link_closed(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];

	l->conn = 0;
	xtal_initiator_disconnected(&l->initiator, sim_clock(w, l->from));
	sim_link_run(w, link);
}

void sim_link_end(struct sim *w, uint32_t link, enum xtal_status status, const char *why)
{
	xtal_initiator_end(&w->link[link].initiator, status, why);
	sim_link_run(w, link);
}

uint32_t sim_link_new(struct sim *w, uint32_t from, uint32_t to)
{
	uint32_t link = w->links++;
	struct sim_link *l = &w->link[link];
	struct xtal_initiator_config c = {
		.id = { { rng_next(&w->rng), link + 1 } },
		.incarnation = w->node[from].incarnation,
		.target_incarnation = xtal_incarnation_bits(w->node[to].incarnation),
		.eid = xtal_eid_from_ipv4(to),
		.port = to + 1,
		.pipeline = 1,
		.requester = &l->requester,
		.slots = l->slots,
		.window = SIM_WINDOW,
		.piece = w->piece,
		.first_seq = sim_chance(w, 300) ? UINT64_MAX - 5 : 1,
		.margin = w->limit / 40,
		.keepalive = w->limit / 20,
		.silence = w->limit / 5,
		.retry_least = w->limit / 200,
		.retry_most = w->limit / 20,
	};

	if (w->links == SIM_LINKS)
		sim_fail(w, "more links than anybody needs");
	memset(l, 0, sizeof(*l));
	l->from = from;
	l->to = to;
	l->life = w->node[from].life;
	l->to_life = w->node[to].life;
	if (xtal_initiator_init(&l->initiator, &c, sim_clock(w, from)))
		sim_fail(w, "a link could not be made");
	return link;
}
