/* SPDX-License-Identifier: MIT */
/* Time, scheduling, faults and work of the simulated world. See sim.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define HEAP (sizeof(((struct sim *)0)->heap) / sizeof(struct sim_event))

void sim_fail(struct sim *w, const char *format, ...)
{
	va_list args;

	if (w->failed)
		return; /* the first one counts */
	w->failed = true;
	va_start(args, format);
	vsnprintf(w->why, sizeof(w->why), format, args);
	va_end(args);
	if (w->trace)
		printf("%10llu FAIL %s\n", (unsigned long long)(w->now / 1000), w->why);
}

static void mix(struct sim *w, uint64_t v)
{
	w->hash = (w->hash ^ v) * UINT64_C(0x100000001b3);
	w->hash ^= w->hash >> 29;
}

void sim_note(struct sim *w, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
	mix(w, w->now);
	mix(w, (uint64_t)what[0] << 8 | (uint64_t)what[1]);
	mix(w, a);
	mix(w, b);
	mix(w, c);
	if (w->trace)
		printf("%10llu %s %llu %llu %llu\n", (unsigned long long)(w->now / 1000), what,
		       (unsigned long long)a, (unsigned long long)b, (unsigned long long)c);
}

bool sim_chance(struct sim *w, uint32_t in_thousand)
{
	return rng_below(&w->rng, 1000) < in_thousand;
}

uint64_t sim_clock(const struct sim *w, uint32_t node)
{
	const struct sim_node *n = &w->node[node];

	return n->clock + w->now + (uint64_t)((int64_t)(w->now / 1000) * n->drift / 1000);
}

/* The first moment at which the node's clock shows at least this. */
uint64_t sim_when(const struct sim *w, uint32_t node, uint64_t clock)
{
	const struct sim_node *n = &w->node[node];
	int64_t elapsed = (int64_t)(clock - n->clock);

	if (elapsed < 0)
		return 0;
	/* Exactly: what is early, if only by the square of the drift, is looked at again and again. */
	return (uint64_t)((__int128)elapsed * 1000000 / (1000000 + n->drift)) + SIM_US;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_schedule(struct sim *w, uint64_t at, enum sim_event_kind kind, uint32_t a, uint32_t b)
{
	struct sim_event e = { .at = at, .order = w->order++, .kind = kind, .a = a, .b = b };
	uint32_t k = w->events;

	if (w->events == HEAP) {
		sim_fail(w, "more events than anybody needs");
		return;
	}
	w->events++;
	for (; k != 0 && before(&e, &w->heap[(k - 1) / 2]); k = (k - 1) / 2)
		w->heap[k] = w->heap[(k - 1) / 2];
	w->heap[k] = e;
}

static struct sim_event next(struct sim *w)
{
	struct sim_event first = w->heap[0], last = w->heap[--w->events];
	uint32_t k = 0;

	for (;;) {
		uint32_t child = 2 * k + 1;

		if (child >= w->events)
			break;
		if (child + 1 < w->events && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &last))
			break;
		w->heap[k] = w->heap[child];
		k = child;
	}
	w->heap[k] = last;
	return first;
}

/* --- faults */

static void start_node(struct sim *w, uint32_t node)
{
	struct sim_node *n = &w->node[node];
	uint32_t bit;

	do { /* a tid that reaches a later incarnation by chance is no error of the session */
		n->incarnation = rng_next(&w->rng) | 1;
		bit = 1u << xtal_incarnation_bits(n->incarnation);
	} while (n->bits & bit);
	n->bits |= bit;
	n->life++;
	memset(n->memory, 0, sizeof(n->memory));
	memset(n->model, 0, sizeof(n->model));
	sim_receive_start(w, node);
}

/* The process ends; the kernel closes its connections, the network may lose that news. */
static void end_node(struct sim *w, uint32_t node)
{
	for (uint32_t k = 0; k < w->conns; k++) {
		struct sim_conn *c = &w->conn[k];
		bool theirs = c->node == node && c->life == w->node[node].life;
		bool mine = c->link != 0 && w->link[c->link - 1].from == node &&
			    w->link[c->link - 1].life == w->node[node].life;

		if (theirs)
			sim_conn_close(w, k, SIM_TARGET);
		if (mine)
			sim_conn_close(w, k, SIM_INITIATOR);
		if ((theirs || mine) && sim_chance(w, 300))
			c->broken = true;
	}
	for (uint32_t k = 0; k < SIM_SESSIONS; k++)
		if (w->session[k].used && w->session[k].node == node)
			w->session[k].used = false;
	for (uint32_t k = 0; k < w->links; k++)
		if (w->link[k].from == node)
			w->link[k].over = true;
}

static void stall(struct sim *w)
{
	uint32_t k = (uint32_t)rng_below(&w->rng, w->conns);
	uint64_t most = w->gentle            ? w->limit / 12
			: sim_chance(w, 500) ? w->limit / 5
					     : 2 * w->limit;

	w->conn[k].to[rng_below(&w->rng, 2)].stalled_until = w->now + rng_below(&w->rng, most);
	sim_note(w, "stall", k, 0, 0);
}

/* Nothing reaches the node or leaves it for some time; then all of it does. */
static void cut_off(struct sim *w, uint32_t node)
{
	uint64_t until = w->now + rng_below(&w->rng, 3 * w->limit);

	w->node[node].cut_off_until = until;
	for (uint32_t k = 0; k < w->conns; k++) {
		struct sim_conn *c = &w->conn[k];

		if (c->node == node || (c->link != 0 && w->link[c->link - 1].from == node))
			c->to[0].stalled_until = c->to[1].stalled_until = until;
	}
	sim_note(w, "cut off", node, until, 0);
}

/* Somebody on the path sends a greeting again that it has seen. */
static void replay_hello(struct sim *w)
{
	uint32_t k = (uint32_t)rng_below(&w->rng, w->conns), copy;
	struct sim_conn *c = &w->conn[k];

	if (c->hello_len != XTAL_MSG_HEADER || c->link == 0 || w->conns >= SIM_CONNS - 8)
		return;
	copy = sim_conn_open(w, c->link - 1);
	w->conn[copy].open[SIM_INITIATOR] = false;
	w->conn[copy].rogue = true;
	w->conn[copy].node = c->node;
	w->conn[copy].life = w->node[c->node].life;
	memcpy(w->conn[copy].to[SIM_TARGET].out, c->hello, XTAL_MSG_HEADER);
	w->conn[copy].to[SIM_TARGET].out_len = XTAL_MSG_HEADER;
	sim_note(w, "replay", k, copy, 0);
	sim_conn_push(w, copy, SIM_INITIATOR);
}

static void fault(struct sim *w)
{
	uint32_t node = (uint32_t)rng_below(&w->rng, w->nodes);
	uint64_t kind = rng_below(&w->rng, 100);
	struct sim_node *n = &w->node[node];

	if (w->faults-- > 1)
		sim_schedule(w, w->now + rng_below(&w->rng, w->limit), SIM_FAULT, 0, 0);
	if (kind < 15 && !w->gentle) {
		cut_off(w, node);
	} else if (kind < 20 && !w->gentle && w->messages) {
		sim_receive_withdraw(w, node);
	} else if (kind < 35 && w->conns != 0) {
		stall(w);
	} else if (kind < 50 && w->conns != 0) {
		replay_hello(w);
	} else if (kind < 80 || w->gentle) {
		uint64_t most = w->gentle ? w->limit / 12 : 2 * w->limit;
		uint64_t until = w->now + rng_below(&w->rng, most);

		if (until > n->stopped_until)
			n->stopped_until = until;
		sim_note(w, "stop", node, n->stopped_until, 0);
	} else {
		end_node(w, node);
		n->dead = kind >= 93;
		n->stopped_until = 0;
		start_node(w, node);
		sim_note(w, n->dead ? "die" : "restart", node, 0, 0);
	}
}

/* --- work */

static uint32_t link_for(struct sim *w, uint32_t from)
{
	uint32_t to = (uint32_t)rng_below(&w->rng, w->nodes - 1);

	to += to >= from;
	for (uint32_t k = 0; k < w->links; k++) {
		const struct sim_link *l = &w->link[k];

		if (!l->over && l->from == from && l->to == to && l->life == w->node[from].life &&
		    l->to_life == w->node[to].life && l->initiator.state != XTAL_SESSION_ENDED &&
		    !l->initiator.closing && !l->leaving)
			return k;
	}
	return sim_link_new(w, from, to);
}

static void post(struct sim *w, uint32_t node, uint32_t many)
{
	uint32_t link;

	if (w->links >= SIM_LINKS - 4 || w->node[node].dead)
		return;
	link = link_for(w, node);
	for (uint32_t k = 0; k < many; k++)
		if (!sim_model_post(w, link))
			break;
	if (!w->gentle && w->link[link].conn != 0 &&
	    sim_chance(w, 100)) /* while work is under way */
		w->conn[w->link[link].conn - 1].to[rng_below(&w->rng, 2)].stalled_until =
			w->now + rng_below(&w->rng, w->limit / 4);
	if (sim_chance(w, 60)) {
		if (w->gentle || sim_chance(w, 500))
			w->link[link].leaving = true;
		else
			xtal_initiator_close(&w->link[link].initiator);
	}
	sim_link_run(w, link);
}

static void connect(struct sim *w, uint32_t link)
{
	struct sim_link *l = &w->link[link];
	struct sim_node *n = &w->node[l->to];

	l->connecting = false;
	if (l->over || l->initiator.state != XTAL_SESSION_DOWN)
		return;
	if (n->dead) { /* its host is there and says that nobody holds the port */
		sim_link_end(w, link, XTAL_UNREACHABLE, "nobody holds the port");
	} else if (sim_chance(w, 50)) { /* no answer, or no route; the next attempt may succeed */
		xtal_initiator_disconnected(&l->initiator, sim_clock(w, l->from));
		sim_link_run(w, link);
	} else {
		l->conn = sim_conn_open(w, link) + 1;
		xtal_initiator_connected(&l->initiator, sim_clock(w, l->from));
		sim_link_run(w, link);
	}
}

static void notice(struct sim *w, uint32_t conn, uint32_t side)
{
	struct sim_conn *c = &w->conn[conn];

	if (side == SIM_TARGET) {
		if (c->open[SIM_TARGET] && c->life == w->node[c->node].life)
			sim_target_closed(w, conn);
	} else if (c->link != 0 && w->link[c->link - 1].conn == conn + 1) {
		sim_conn_close(w, conn, SIM_INITIATOR);
		sim_link_closed(w, c->link - 1);
	}
}

static void read_side(struct sim *w, uint32_t conn, uint32_t side)
{
	struct sim_conn *c = &w->conn[conn];

	c->to[side].reading = false;
	if (side == SIM_TARGET)
		sim_target_run(w, conn);
	else if (c->link != 0 && w->link[c->link - 1].conn == conn + 1)
		sim_link_run(w, c->link - 1);
}

/* Whose process handles the event; SIM_NODES: nobody's. */
static uint32_t who(const struct sim *w, const struct sim_event *e)
{
	switch (e->kind) {
	case SIM_POST:
		return e->a;
	case SIM_READ:
	case SIM_NOTICE:
		if (e->b == SIM_TARGET)
			return w->conn[e->a].node;
		return w->conn[e->a].link ? w->link[w->conn[e->a].link - 1].from : SIM_NODES;
	case SIM_TIMER:
	case SIM_CONNECT:
		return w->link[e->a].from;
	case SIM_AGAIN:
		return w->link[w->queue[e->a].link].from;
	case SIM_RECEIVE:
		return e->a;
	case SIM_EXPIRE:
		return w->session[e->a].node;
	case SIM_DELIVER:
	case SIM_FAULT:
		break;
	}
	return SIM_NODES;
}

static void handle(struct sim *w, const struct sim_event *e)
{
	switch (e->kind) {
	case SIM_POST:
		post(w, e->a, e->b);
		break;
	case SIM_DELIVER:
		sim_conn_deliver(w, e->a, e->b);
		break;
	case SIM_READ:
		read_side(w, e->a, e->b);
		break;
	case SIM_NOTICE:
		notice(w, e->a, e->b);
		break;
	case SIM_TIMER:
		if (w->link[e->a].timer == e->b)
			sim_link_run(w, e->a);
		break;
	case SIM_EXPIRE:
		if (w->session[e->a].timer == e->b)
			sim_session_expire(w, e->a);
		break;
	case SIM_CONNECT:
		connect(w, e->a);
		break;
	case SIM_AGAIN:
		sim_queue_again(w, e->a);
		break;
	case SIM_RECEIVE:
		sim_receive_more(w, e->a, e->b);
		break;
	case SIM_FAULT:
		fault(w);
		break;
	}
}

static void begin(struct sim *w, uint64_t seed, bool trace)
{
	uint32_t bursts;

	memset(w, 0, offsetof(struct sim, heap));
	memset(w->session, 0, sizeof(w->session));
	memset(w->node, 0, sizeof(w->node));
	w->seed = seed;
	w->trace = trace;
	w->hash = UINT64_C(0xcbf29ce484222325);
	w->rng.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	w->gentle = sim_chance(w, 400);
	w->messages = sim_chance(w, 500);
	w->limit = 4000 * SIM_MS;
	w->piece = 32u << rng_below(&w->rng, 6);
	w->nodes = 2 + (uint32_t)rng_below(&w->rng, SIM_NODES - 1);
	w->cuts = (uint32_t)rng_below(&w->rng, w->gentle ? 4 : 30);
	w->faults = (uint32_t)rng_below(&w->rng, w->gentle ? 3 : 12);
	for (uint32_t k = 0; k < w->nodes; k++) {
		w->node[k].clock = sim_chance(w, 300) ? 1 : rng_next(&w->rng) >> 2;
		w->node[k].drift = (int64_t)rng_below(&w->rng, 401) - 200;
		start_node(w, k);
	}
	bursts = 3 + (uint32_t)rng_below(&w->rng, 25);
	for (uint32_t k = 0; k < bursts; k++)
		sim_schedule(w, rng_below(&w->rng, sim_chance(w, 700) ? 30 * SIM_MS : 2 * w->limit),
			     SIM_POST, (uint32_t)rng_below(&w->rng, w->nodes),
			     1 + (uint32_t)rng_below(&w->rng, 8));
	if (w->faults != 0)
		sim_schedule(w, rng_below(&w->rng, w->limit), SIM_FAULT, 0, 0);
}

bool sim_run(struct sim *w, uint64_t seed, bool trace)
{
	uint64_t handled = 0;

	begin(w, seed, trace);
	while (w->events != 0 && !w->failed) {
		struct sim_event e = next(w);
		uint32_t node = who(w, &e);

		w->now = e.at;
		if (node != SIM_NODES && w->node[node].stopped_until > w->now) {
			/* a stopped process does it later, in some order */
			sim_schedule(w, w->node[node].stopped_until + rng_below(&w->rng, SIM_MS),
				     e.kind, e.a, e.b);
			continue;
		}
		handle(w, &e);
		if (++handled > 200000 || w->now > 100 * w->limit)
			sim_fail(w, "it never ends");
	}
	if (!w->failed)
		sim_model_finish(w);
	return !w->failed;
}
