/* SPDX-License-Identifier: MIT */
/* The simulated network: byte streams with room, delay, stalls and cuts. See sim.h. */
#include <string.h>

#include "sim.h"

static void wake(struct sim *w, uint32_t conn, enum sim_side side, uint64_t after)
{
	struct sim_stream *s = &w->conn[conn].to[side];

	if (s->reading || !w->conn[conn].open[side])
		return;
	s->reading = true;
	sim_schedule(w, w->now + after, SIM_READ, conn, side);
}

static void move(struct sim *w, uint32_t conn, enum sim_side to)
{
	struct sim_conn *c = &w->conn[conn];
	struct sim_stream *s = &c->to[to];
	uint64_t at = w->now + c->delay / 2 + rng_below(&w->rng, c->delay + 1);

	if (s->moving || c->broken)
		return;
	s->moving = true;
	if (at < s->stalled_until)
		at = s->stalled_until;
	sim_schedule(w, at, SIM_DELIVER, conn, to);
}

/* Each connection has its own character, drawn when it is made. */
uint32_t sim_conn_open(struct sim *w, uint32_t link)
{
	uint32_t index = w->conns++;
	struct sim_conn *c = &w->conn[index];

	if (w->conns == SIM_CONNS)
		sim_fail(w, "more connections than anybody needs");
	memset(c, 0, sizeof(*c));
	c->link = link + 1;
	c->node = w->link[link].to;
	c->life = w->node[c->node].life;
	c->open[SIM_INITIATOR] = c->open[SIM_TARGET] = true;
	c->delay = 5 * SIM_US + rng_below(&w->rng, sim_chance(w, 300) ? 20 * SIM_MS : 50 * SIM_US);
	c->room = 64 + rng_below(&w->rng, sim_chance(w, 500) ? 400 : SIM_STREAM - 64);
	c->rate = sim_chance(w, 300) ? 60 + rng_below(&w->rng, 400) : SIM_STREAM;
	for (unsigned k = 0; k < 2; k++) {
		c->to[k].stalled_until = w->node[w->link[link].from].cut_off_until;
		if (c->to[k].stalled_until < w->node[c->node].cut_off_until)
			c->to[k].stalled_until = w->node[c->node].cut_off_until;
		c->to[k].cut_at = UINT64_MAX;
		if (w->cuts != 0 && sim_chance(w, 300)) {
			w->cuts--;
			c->to[k].cut_at = rng_below(&w->rng, sim_chance(w, 500) ? 1000 : 8000);
		}
	}
	return index;
}

/* What the other side has not received comes before it learns. */
void sim_conn_close(struct sim *w, uint32_t conn, enum sim_side side)
{
	struct sim_conn *c = &w->conn[conn];

	if (!c->open[side])
		return;
	c->open[side] = false;
	c->to[!side].fin = true;
	move(w, conn, !side);
}

bool sim_conn_room(const struct sim_conn *c, enum sim_side from)
{
	const struct sim_stream *s = &c->to[!from];

	return s->out_at == s->out_len && s->sent - s->taken < c->room;
}

/* As much of the frame at hand as there is room for. */
void sim_conn_push(struct sim *w, uint32_t conn, enum sim_side from)
{
	struct sim_conn *c = &w->conn[conn];
	struct sim_stream *s = &c->to[!from];

	while (s->out_at != s->out_len && s->sent - s->taken < c->room)
		s->bytes[s->sent++ % SIM_STREAM] = s->out[s->out_at++];
	if (s->sent != s->delivered)
		move(w, conn, !from);
}

static void cut(struct sim *w, uint32_t conn)
{
	struct sim_conn *c = &w->conn[conn];
	bool silent = sim_chance(w, w->gentle ? 200 : 400);

	c->broken = true;
	sim_note(w, "cut", conn, silent, 0);
	for (unsigned k = 0; k < 2; k++) {
		/* who is not told finds out by silence, or never */
		if (silent && sim_chance(w, 700))
			continue;
		sim_schedule(w, w->now + rng_below(&w->rng, 2 * c->delay + 1), SIM_NOTICE, conn, k);
	}
}

void sim_conn_deliver(struct sim *w, uint32_t conn, enum sim_side to)
{
	struct sim_conn *c = &w->conn[conn];
	struct sim_stream *s = &c->to[to];
	uint64_t n = s->sent - s->delivered;

	s->moving = false;
	if (c->broken)
		return;
	if (n > c->rate)
		n = c->rate;
	if (n > 1 && sim_chance(w, 500))
		n = 1 + rng_below(&w->rng, n);
	if (s->delivered + n >= s->cut_at) {
		s->delivered = s->cut_at > s->delivered ? s->cut_at : s->delivered;
		cut(w, conn);
	} else {
		s->delivered += n;
		if (s->delivered != s->sent)
			move(w, conn, to);
		else if (s->fin)
			sim_schedule(w, w->now + c->delay, SIM_NOTICE, conn, to);
	}
	if (s->delivered != s->taken)
		wake(w, conn, to, 0);
}

uint64_t sim_conn_readable(const struct sim_conn *c, enum sim_side side)
{
	return c->to[side].delivered - c->to[side].taken;
}

uint32_t sim_conn_peek(struct sim *w, uint32_t conn, enum sim_side side, uint8_t *out, uint32_t max)
{
	struct sim_stream *s = &w->conn[conn].to[side];
	uint64_t n = s->delivered - s->taken;

	if (n > max)
		n = max;
	if (n > 1 && sim_chance(w, 200))
		n = 1 + rng_below(&w->rng, n);
	for (uint64_t k = 0; k < n; k++)
		out[k] = s->bytes[(s->taken + k) % SIM_STREAM];
	return (uint32_t)n;
}

void sim_conn_taken(struct sim *w, uint32_t conn, enum sim_side side, uint32_t n)
{
	struct sim_stream *s = &w->conn[conn].to[side];

	s->taken += n;
	/* the other side's frame may go on */
	if (n != 0 && s->out_at != s->out_len)
		sim_conn_push(w, conn, !side);
	else if (n != 0)
		wake(w, conn, !side, w->conn[conn].delay);
}
