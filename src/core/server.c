/* SPDX-License-Identifier: MIT */
/* Peers that reach a context of ours: greeting, resolving, and their message rings. */
#include "core/server.h"
#include "core/serving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/adopt.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/executor.h"
#include "core/inbound.h"
#include "core/log.h"
#include "core/offer.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"
#include "wire/control.h"
#include "wire/short.h"
#include "xtal.h"

/* Messages of one peer that are taken in one go. */
#define MAX_MESSAGES 64u

/* Frames of one peer that are executed before the others' turn. */
#define MAX_FRAMES 16u

_Static_assert(XTAL_SESSION_CACHE <= XTAL_RESPONDER_REFUSED, "as many as can be under way");

void xtal_session_end(struct xtal_session *s, const char *why)
{
	struct xtal_context *ctx = s->ctx;

	xtal_log(XTAL_LOG_INFO, "xtal", "peer process %d of port %u leaves: %s", s->cred.pid,
		 ctx->port, why);
	xtal_lock(&ctx->sessions_lock);
	xtal_list_remove(&s->node);
	xtal_unlock(&ctx->sessions_lock);
	if (!s->welcomed)
		ctx->silent--;
	xtal_agent_stop_timer(&s->greeting);
	if (s->drains) {
		xtal_agent_remove_drain(&s->drain);
		xtal_lock(&ctx->serving.lock);
		xtal_list_remove(&s->serve_node);
		xtal_unlock(&ctx->serving.lock);
		xtal_inbound_free(s->inbound);
		xtal_lane_fini(&s->lane);
	}
	xtal_agent_unwatch(&s->sock);
	xtal_agent_unwatch(&s->death);
	xtal_engine_close_fd(s->sock.fd);
	xtal_engine_close_fd(s->death.fd);
	if (s->memory)
		xtal_os_unmap(s->memory, s->memory_len);
	free(s->models);
	free(s);
}

static int reply(struct xtal_session *s, struct xtal_control *c, const int *fds, unsigned nfds)
{
	c->fds = nfds;
	return xtal_os_send(s->sock.fd, c, sizeof(*c), fds, nfds);
}

int xtal_session_refuse(struct xtal_session *s, uint32_t status, const char *text)
{
	struct xtal_control c;

	xtal_control_init(&c, XTAL_CONTROL_REFUSE);
	c.status = status;
	snprintf(c.text, sizeof(c.text), "%s", text);
	xtal_count(&xtal_totals.denied, 1);
	reply(s, &c, NULL, 0);
	return -ECONNREFUSED;
}

/* *pause: until it may come again, when it is not ready. */
static uint32_t serve_send(struct xtal_session *s, const struct xtal_responder_effect *e,
			   const uint8_t *payload, uint64_t *pause)
{
	uint32_t status = XTAL_OK;

	if (e->first)
		status = xtal_execute_send_begin(s->ctx, &s->inbound, e, pause);
	return status ? status : xtal_execute_send_piece(&s->lane, s->inbound, e, payload);
}

/* For a good READ this is the same place again, with the data in it. */
static bool send_answer(struct xtal_session *s, const struct xtal_msg *answer, const char **why)
{
	struct xtal_ring_slot slot;
	bool brief = !answer->payload && !xtal_ring_reserve_short(&s->ring, &slot) &&
		     xtal_short_encode(s->models, answer, NULL, slot.header);

	if (!brief) {
		if (xtal_ring_reserve(&s->ring, answer->payload, &slot)) {
			*why = "no room for an answer";
			return false;
		}
		xtal_msg_encode(answer, slot.header);
	}
	if (xtal_ring_publish(&s->ring))
		xtal_os_nudge(s->sock.fd);
	return true;
}

/* The answer that was held, and the frame that it answers. */
static void answer_held(struct xtal_session *s)
{
	const char *why;

	s->held = false;
	if (!send_answer(s, &s->answer, &why))
		s->broken = why;
	else if (xtal_ring_release(&s->ring))
		xtal_os_nudge(s->sock.fd);
}

/* A frame as it came; brief: in its short form. */
static bool decode(struct xtal_session *s, bool brief, const uint8_t *header,
		   const uint8_t **payload, size_t len, struct xtal_msg *m, const char **why)
{
	if (brief)
		return !xtal_short_decode(s->models, header, m, payload, why);
	if (xtal_msg_decode_frame(header, len, m, why))
		return false;
	xtal_short_note(s->models, m);
	return true;
}

/* Under the serving lock. A reply is made in place; the effect's payload is in the ring. The answer may
 * be held. */
static bool serve_one(struct xtal_session *s, bool brief, const uint8_t *header,
		      const uint8_t *payload, size_t len, const char **why)
{
	struct xtal_responder_effect e;
	struct xtal_ring_slot slot;
	struct xtal_msg m, answer;
	uint64_t old[2] = { 0, 0 }, now;
	uint32_t status = XTAL_OK;

	if (!decode(s, brief, header, &payload, len, &m, why))
		return false;
	now = xtal_os_now(); /* also the stamp of the answer, which may be early, not late */
	xtal_responder_feed(&s->responder, &m, now, &e);
	if (e.first && e.kind != XTAL_RESPONDER_SEND &&
	    s->inbound) /* the rest of one does not come */
		xtal_inbound_abandon(s->inbound);
	s->ctx->serving.urgent |= e.kind != XTAL_RESPONDER_SEND;
	switch (e.kind) {
	case XTAL_RESPONDER_NONE:
		return true;
	case XTAL_RESPONDER_DROP:
		*why = e.why;
		return false;
	case XTAL_RESPONDER_REPLY:
		answer = e.reply;
		break;
	case XTAL_RESPONDER_READ:
		/* There is room: serve() made sure. */
		if (xtal_ring_reserve(&s->ring, e.len, &slot)) {
			*why = "no room for an answer";
			return false;
		}
		status = xtal_execute_read(s->ctx, &s->lane, &e, slot.payload);
		if (!xtal_responder_result(&s->responder, &e, (enum xtal_status)status, NULL, now,
					   &answer))
			return true;
		break;
	case XTAL_RESPONDER_WRITE:
	case XTAL_RESPONDER_ATOMIC:
	case XTAL_RESPONDER_SEND:
		if (e.kind == XTAL_RESPONDER_WRITE)
			status = xtal_execute_write(s->ctx, &s->lane, &e, payload);
		else if (e.kind == XTAL_RESPONDER_ATOMIC)
			status = xtal_execute_atomic(s->ctx, &s->lane, &e, old);
		else
			status = serve_send(s, &e, payload, &old[0]);
		if (e.kind == XTAL_RESPONDER_SEND && !status && e.last) {
			s->ctx->serving.reported = true;
			s->ctx->serving.served_at = now;
		} else {
			s->ctx->serving.urgent = true;
		}
		if (!xtal_responder_result(&s->responder, &e, (enum xtal_status)status, old, now,
					   &answer))
			return true;
		break;
	}
	if (!e.first || s->ctx->serving.urgent || !xtal_serving_holds(&s->ctx->serving))
		return send_answer(s, &answer, why);
	s->answer = answer;
	s->held = true;
	return true;
}

/* Executes waiting frames, a bounded number at a time so that no peer starves the others. Under the
 * serving lock. */
static bool serve(struct xtal_session *s)
{
	const uint8_t *header, *payload;
	const char *why = "broken ring";
	size_t len;
	bool did = false;

	if (s->held)
		answer_held(s);
	if (!s->stalled && xtal_ring_is_empty(&s->ring))
		return false;
	for (unsigned i = 0; i < MAX_FRAMES && !s->broken; i++) {
		uint64_t unused;
		int n;

		s->stalled = !xtal_ring_has_room(&s->ring, s->responder.config.piece);
		if (!s->stalled)
			n = xtal_ring_peek(&s->ring, &header, &payload, &len);
		else /* full, or the initiator's counter makes no sense */
			n = xtal_ring_consumed(&s->ring, &unused);
		if (n > 0 && !serve_one(s, n == 2, header, payload, len, &why))
			n = -EPROTO;
		if (n < 0)
			s->broken = why;
		if (n <= 0)
			break;
		did = true;
		if (s->held)
			break;
		if (xtal_ring_release(&s->ring))
			xtal_os_nudge(s->sock.fd);
	}
	return did;
}

/* Frames, or room for replies, wake the agent from now on. False: some are there. */
static bool arm(struct xtal_session *s)
{
	s->armed = true;
	if (s->stalled) /* the initiator's release rings our doorbell */
		return xtal_ring_prepare_room(&s->ring, s->responder.config.piece);
	return xtal_ring_prepare_sleep(&s->ring);
}

static void disarm(struct xtal_session *s)
{
	if (s->armed)
		xtal_ring_cancel_sleep(&s->ring);
	s->armed = false;
}

/* Whoever polls only counts, since reading the clock would be most of a poll. */
bool xtal_server_is_polled(struct xtal_context *ctx, uint64_t now)
{
	struct xtal_serving *serving = &ctx->serving;

	if (serving->polls != serving->seen) {
		serving->seen = serving->polls;
		serving->polled_at = now;
	}
	return serving->polled_at && now - serving->polled_at <= XTAL_POLLER_NS;
}

/*
 * To answer takes about as long as to send the program's own next message. So while the program
 * sends one this soon after each message, it sees a message before that is answered: which is done
 * behind its own next message, by the next poll, or by the agent.
 */
#define PROMPT_NS 20000u
#define PROMPT    4u /* so many times in a row */

bool xtal_serving_holds(struct xtal_serving *serving)
{
	if (!serving->by_program || !serving->reported || serving->urgent ||
	    serving->prompt < PROMPT)
		return false;
	atomic_store_explicit(&serving->held, true, memory_order_relaxed);
	return true;
}

void xtal_serving_look(struct xtal_serving *serving, uint64_t now)
{
	if (serving->reported_at && now - serving->reported_at > PROMPT_NS)
		serving->prompt = 0;
}

/* A poll, the first one after messages. */
static void note_return(struct xtal_serving *serving)
{
	uint64_t sent_at = atomic_load_explicit(&serving->sent_at, memory_order_relaxed);

	if (sent_at < serving->reported_at || sent_at - serving->reported_at > PROMPT_NS)
		serving->prompt = 0;
	else if (serving->prompt < PROMPT)
		serving->prompt++;
	serving->reported_at = 0;
}

static bool drain(struct xtal_drain *d)
{
	struct xtal_session *s = xtal_container_of(d, struct xtal_session, drain);
	struct xtal_context *ctx = s->ctx;
	const char *broken;
	bool did = false;

	if (!xtal_trylock(&ctx->serving.lock))
		return false;
	if (s->held) {
		xtal_serving_look(&ctx->serving, xtal_os_now());
		answer_held(s);
	}
	if (!s->broken && !(ctx->serving.polls && xtal_server_is_polled(ctx, xtal_os_now())))
		did = serve(s);
	broken = s->broken;
	xtal_unlock(&ctx->serving.lock);
	if (!broken)
		return did;
	xtal_session_end(s, broken);
	return true;
}

static void look_again(struct xtal_timer *timer)
{
	(void)timer; /* the agent has woken, and looks at all rings before it sleeps */
}

static bool before_sleep(struct xtal_drain *d)
{
	struct xtal_session *s = xtal_container_of(d, struct xtal_session, drain);
	struct xtal_serving *serving = &s->ctx->serving;
	uint64_t now = xtal_os_now();
	bool may = true;

	xtal_lock(&serving->lock);
	if (s->broken)
		may = false;
	else if (xtal_server_is_polled(s->ctx, now))
		xtal_agent_set_timer(&serving->timer, now + XTAL_POLLER_NS, look_again);
	else
		may = arm(s);
	xtal_unlock(&serving->lock);
	return may;
}

static void after_sleep(struct xtal_drain *d)
{
	struct xtal_session *s = xtal_container_of(d, struct xtal_session, drain);

	xtal_lock(&s->ctx->serving.lock);
	disarm(s);
	xtal_unlock(&s->ctx->serving.lock);
}

/* Under the serving lock, on a program's thread. What is armed stays so: the next frame wakes the
 * agent, which from then on looks whether somebody still polls. */
static void serve_myself(struct xtal_session *s)
{
	serve(s);
	if (s->broken)
		xtal_os_event_signal(xtal_agent_doorbell());
}

void xtal_server_poll(struct xtal_context *ctx)
{
	struct xtal_serving *serving = &ctx->serving;

	if (!xtal_trylock(&serving->lock))
		return;
	serving->polls++;
	if (serving->reported_at)
		note_return(serving);
	serving->by_program = true;
	serving->reported = serving->urgent = false;
	serving->served_at = 0;
	for (struct xtal_list *n = serving->sessions.next; n != &serving->sessions; n = n->next)
		serve_myself(xtal_container_of(n, struct xtal_session, serve_node));
	xtal_tcp_server_poll(ctx);
	serving->by_program = false;
	if (serving->reported)
		serving->reported_at = serving->served_at ? serving->served_at : xtal_os_now();
	xtal_unlock_fair(&serving->lock);
}

void xtal_server_answer(struct xtal_context *ctx, uint64_t now)
{
	struct xtal_serving *serving = &ctx->serving;

	/* Hints: whoever misses the second one leaves the answers to the next poll. */
	atomic_store_explicit(&serving->sent_at, now, memory_order_relaxed);
	if (xtal_likely(!atomic_load_explicit(&serving->held, memory_order_relaxed)) ||
	    !xtal_trylock(&serving->lock))
		return;
	atomic_store_explicit(&serving->held, false, memory_order_relaxed);
	serving->by_program = true;
	for (struct xtal_list *n = serving->sessions.next; n != &serving->sessions; n = n->next) {
		struct xtal_session *s = xtal_container_of(n, struct xtal_session, serve_node);

		if (s->held)
			answer_held(s);
		if (s->broken)
			xtal_os_event_signal(xtal_agent_doorbell());
	}
	xtal_tcp_server_answer(ctx);
	serving->by_program = false;
	xtal_unlock(&serving->lock);
}

void xtal_server_hand_over(struct xtal_context *ctx)
{
	struct xtal_serving *serving = &ctx->serving;
	bool left = false;

	xtal_lock(&serving->lock);
	serving->by_program = true;
	serving->prompt = 0;
	serving->reported_at = 0;
	if (serving->polls != serving->seen || serving->polled_at) {
		serving->seen = serving->polls;
		serving->polled_at = 0;
		for (struct xtal_list *n = serving->sessions.next; n != &serving->sessions;
		     n = n->next) {
			struct xtal_session *s =
				xtal_container_of(n, struct xtal_session, serve_node);

			if (s->held)
				answer_held(s);
			if (arm(s))
				continue;
			serve_myself(s);
			left |= !arm(s);
		}
	}
	xtal_tcp_server_hand_over(ctx);
	serving->by_program = false;
	xtal_unlock(&serving->lock);
	if (left)
		xtal_os_event_signal(xtal_agent_doorbell());
}

/* The link's memory: board and rings. Errors: -errno. */
static int make_memory(struct xtal_session *s, uint64_t capacity, int *fd)
{
	size_t len = xtal_board_bytes() + xtal_ring_layout_size(capacity);
	struct xtal_responder_config rc = {
		.cache = s->cache,
		.cache_size = XTAL_SESSION_CACHE,
		.piece = XTAL_MSG_PIECE,
		.incarnation = s->ctx->incarnation,
		.first_seq = xtal_config()->counter_start + 1,
		.gaps = true,
	};
	void *rings;
	int err;

	if (xtal_ring_max_payload(capacity) < rc.piece)
		rc.piece = xtal_ring_max_payload(capacity);
	s->models = calloc(1, sizeof(*s->models));
	if (!s->models)
		return -ENOMEM;
	err = xtal_os_object_create("xtal-link", len, true, fd, &s->memory);
	if (err)
		return err;
	s->memory_len = len;
	/* Partner: look() of revoke.c, on the thread that unregisters. */
	xtal_lock(&s->ctx->sessions_lock);
	s->board = s->memory;
	xtal_unlock(&s->ctx->sessions_lock);
	rings = (uint8_t *)s->memory + xtal_board_bytes();
	err = xtal_ring_init_at(rings, capacity, xtal_config()->counter_start);
	if (!err)
		err = xtal_ring_attach(rings, xtal_ring_layout_size(capacity), &s->ring,
				       XTAL_RING_TARGET);
	if (!err)
		err = xtal_responder_init(&s->responder, &rc);
	if (err)
		xtal_os_close(*fd);
	return err;
}

static int hello(struct xtal_session *s, const struct xtal_control *c)
{
	struct xtal_context *ctx = s->ctx;
	uint64_t capacity = xtal_config()->ring_bytes;
	uint32_t paths = xtal_config()->paths;
	struct xtal_control w;
	int out[2], err;

	if (s->welcomed || c->fds)
		return -EPROTO;
	if (c->port != ctx->port || !xtal_incarnation_fits(ctx->incarnation, c->incarnation))
		return xtal_session_refuse(
			s, XTAL_REMOTE_ACCESS,
			"the port is held by another incarnation: the context that this "
			"descriptor belongs to is gone");
	err = make_memory(s, capacity, &out[1]);
	if (err)
		return err;
	xtal_control_init(&w, XTAL_CONTROL_WELCOME);
	w.incarnation = ctx->incarnation;
	w.ring_bytes = (uint32_t)capacity;
	w.flags = (c->flags & XTAL_CONTROL_FENCED && !xtal_lane_full_fence() ? XTAL_CONTROL_FENCED
									     : 0) |
		  (paths & 1u << XTAL_PATH_CMA && s->same_uid ? XTAL_CONTROL_CMA : 0) |
		  (paths & 1u << XTAL_PATH_RING ? XTAL_CONTROL_RING : 0);
	w.probe_addr = (uintptr_t)&ctx->probe_word;
	w.probe_value = atomic_load(&ctx->probe_word);
	w.clock = xtal_os_now();
	out[0] = ctx->registry.table_fd;
	s->welcomed = true;
	ctx->silent--;
	xtal_agent_stop_timer(&s->greeting);
	s->drain = (struct xtal_drain){ .drain = drain,
					.before_sleep = before_sleep,
					.after_sleep = after_sleep };
	xtal_agent_add_drain(&s->drain);
	s->drains = true;
	xtal_lane_init(&s->lane);
	xtal_lock(&ctx->serving.lock);
	xtal_list_append(&ctx->serving.sessions, &s->serve_node);
	xtal_unlock(&ctx->serving.lock);
	err = reply(s, &w, out, 2);
	xtal_os_close(out[1]);
	return err;
}

/* Makes a the answer that refuses c. */
static void deny(const struct xtal_session *s, const struct xtal_control *c, uint32_t status,
		 const char *why, struct xtal_control *a)
{
	xtal_control_init(a, XTAL_CONTROL_DENY);
	a->id = c->id;
	a->status = status;
	snprintf(a->text, sizeof(a->text), "%s", why);
	xtal_count(&xtal_totals.denied, 1);
	xtal_log(XTAL_LOG_WARNING, "xtal",
		 "process %d may not touch %llu bytes at "
		 "0x%llx: %s",
		 s->cred.pid, (unsigned long long)c->len, (unsigned long long)c->addr, why);
}

static int resolve(struct xtal_session *s, const struct xtal_control *c)
{
	struct xtal_registry *r = &s->ctx->registry;
	struct xtal_access access = { .addr = c->addr,
				      .len = c->len,
				      .token = c->token,
				      .index = c->index,
				      .token_valid = c->flags & XTAL_CONTROL_TOKEN,
				      .rights = c->rights };
	struct xtal_found found;
	struct xtal_control a;
	bool close_it = false;
	int fd = -1, err;
	int status =
		xtal_registry_enter(r, s->ctx->number, &access, &xtal_agent_lane()->local, &found);

	xtal_control_init(&a, status ? XTAL_CONTROL_DENY : XTAL_CONTROL_GRANT);
	a.id = c->id;
	if (status == -EAGAIN) {
		a.flags = XTAL_CONTROL_RETRY;
		xtal_adopt_look_after();
	} else if (!status) {
		/* The agent's lane keeps the segment until the answer is built. */
		struct xtal_segment *seg = found.segment;
		struct xtal_adopted_part part;
		bool parted = xtal_adopted_find(seg, c->addr, c->len, &part);

		if (c->flags & XTAL_CONTROL_HOT)
			xtal_adopt_wish(seg);
		a.slot = found.slot;
		a.word = found.word;
		a.addr = parted ? part.lo : found.lo;
		a.len = (parted ? part.hi : found.hi) - a.addr;
		a.rights = seg->rights;
		fd = xtal_offer_mapping(seg, parted ? &part : NULL, c, s->same_uid, &a, &close_it);
		if (fd == -EACCES) {
			status = XTAL_REMOTE_ACCESS;
			found.why = "the owner itself has mapped the memory read-only";
		}
	}
	if (status > 0)
		deny(s, c, (uint32_t)status, found.why, &a);
	err = reply(s, &a, &fd, fd >= 0 ? 1 : 0);
	atomic_store_explicit(&xtal_agent_lane()->local, 0, memory_order_release);
	if (close_it)
		xtal_os_close(fd);
	return err;
}

void xtal_session_ready(struct xtal_source *src)
{
	struct xtal_session *s = xtal_container_of(src, struct xtal_session, sock);

	/* The rest at the next look: no peer keeps the agent from the others. */
	for (unsigned i = 0; i < MAX_MESSAGES; i++) {
		int fds[XTAL_OS_MAX_FDS], err;
		struct xtal_control c;
		unsigned nfds = 0;
		int n = xtal_os_recv(src->fd, &c, sizeof(c), fds, &nfds);

		if (n == -EAGAIN)
			return;
		if (xtal_os_nudged(n, nfds) && s->welcomed)
			continue;
		if (n <= 0) {
			xtal_session_end(s, n ? strerror(-n) : "closed");
			return;
		}
		err = xtal_control_check(&c, (size_t)n, nfds);
		if (!err && c.type == XTAL_CONTROL_HELLO)
			err = hello(s, &c);
		else if (!err && c.type == XTAL_CONTROL_RESOLVE && s->welcomed)
			err = resolve(s, &c);
		else
			err = -EPROTO;
		for (unsigned k = 0; k < nfds; k++)
			xtal_os_close(fds[k]);
		if (err) {
			xtal_session_end(s, strerror(-err));
			return;
		}
	}
}
