/* SPDX-License-Identifier: MIT */
/*
 * Peers that reach a context over TCP: accepting their connections, finding the session that a
 * connection carries on, forgetting sessions. See tcp_session.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/security.h"
#include "core/server.h"
#include "core/tcp_ledger.h"
#include "core/tcp_session.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"
#include "xtal.h"

#define GREETING_NS  5000000000u  /* until a connection has said what it wants */
#define MAX_GREETING 256u         /* connections that have not */
#define LINGER_NS    60000000000u /* how long a session without connection is kept, at least */
#define MAX_PARTED   4000u        /* such sessions; their peers may open as many as they like */

static const char *who(const struct xtal_tcp_conn *c, char *buf, size_t size)
{
	char eid[XTAL_EID_TEXT];

	snprintf(buf, size, "%s port %u", xtal_text_eid(c->peer.eid, eid, sizeof(eid)),
		 c->peer.port);
	return buf;
}

void xtal_tcp_cool(struct xtal_tcp_conn *c)
{
	if (!c->hot)
		return;
	xtal_agent_remove_drain(&c->drain);
	c->hot = false;
	c->ctx->tcp.hot_count--;
}

static void conn_close(struct xtal_tcp_conn *c)
{
	int fd = c->source.fd;

	if (!c->session)
		c->ctx->tcp.greeting_count--;
	xtal_list_remove(&c->node);
	xtal_tcp_cool(c);
	xtal_tcp_take_back(c);
	xtal_agent_stop_timer(&c->timer);
	xtal_agent_unwatch(&c->source);
	xtal_tcp_fini(&c->stream);
	xtal_engine_close_fd(fd);
	free(c->rest);
	free(c);
}

static void linger_over(struct xtal_timer *timer);

static void unpart(struct xtal_tcp_session *s)
{
	if (xtal_list_empty(&s->parted))
		return;
	xtal_list_remove(&s->parted);
	s->ctx->tcp.parted_count--;
}

/* Too many have no connection: of them the one for longest goes, of the newcomer's address when most are
 * from there. Soon, since whoever calls may be walking along the sessions. */
static void make_room_for(struct xtal_tcp_session *newcomer)
{
	struct xtal_tcp_server *tcp = &newcomer->ctx->tcp;
	struct xtal_tcp_session *oldest = NULL, *s;
	unsigned own = 0;

	for (struct xtal_list *n = tcp->parted.next; n != &tcp->parted; n = n->next) {
		s = xtal_container_of(n, struct xtal_tcp_session, parted);
		if (!xtal_eid_equal(s->from, newcomer->from))
			continue;
		own++;
		if (!oldest)
			oldest = s;
		if (own > MAX_PARTED / 2)
			break;
	}
	if (own <= MAX_PARTED / 2)
		oldest = xtal_container_of(tcp->parted.next, struct xtal_tcp_session, parted);
	unpart(oldest);
	xtal_agent_set_timer(&oldest->timer, xtal_os_now(), linger_over);
}

static void part(struct xtal_tcp_session *s)
{
	struct xtal_tcp_server *tcp = &s->ctx->tcp;

	if (tcp->parted_count == MAX_PARTED)
		make_room_for(s);
	xtal_list_append(&tcp->parted, &s->parted);
	tcp->parted_count++;
	xtal_agent_set_timer(&s->timer, xtal_target_next_time(&s->target), linger_over);
}

void xtal_tcp_hang_up(struct xtal_tcp_conn *c, const char *why)
{
	struct xtal_tcp_session *s = c->session;
	char text[80];

	if (c->ctx->serving.by_program) {
		xtal_tcp_leave_to_agent(c, why, false);
		return;
	}
	xtal_log(XTAL_LOG_INFO, "xtal", "port %u: connection of %s is closed: %s", c->ctx->port,
		 who(c, text, sizeof(text)), why);
	conn_close(c);
	if (!s)
		return;
	s->conn = NULL;
	xtal_target_disconnected(&s->target, xtal_os_now());
	if (s->target.state != XTAL_SESSION_ENDED) /* or whoever called ends it */
		part(s);
}

void xtal_tcp_session_end(struct xtal_tcp_session *s, const char *why)
{
	if (s->ctx->serving.by_program) { /* which has it from its connection */
		xtal_tcp_leave_to_agent(s->conn, why, true);
		return;
	}
	if (s->conn)
		xtal_tcp_hang_up(s->conn, why);
	xtal_list_remove(&s->node);
	unpart(s);
	xtal_agent_stop_timer(&s->timer);
	xtal_tcp_forget_send(s);
	free(s);
}

static void linger_over(struct xtal_timer *timer)
{
	struct xtal_tcp_session *s = xtal_container_of(timer, struct xtal_tcp_session, timer);
	struct xtal_context *ctx = s->ctx;

	xtal_log(XTAL_LOG_INFO, "xtal",
		 "port %u: a session is forgotten, its peer did not come back", ctx->port);
	xtal_lock(&ctx->serving.lock);
	xtal_tcp_session_end(s, "its peer did not come back");
	xtal_unlock(&ctx->serving.lock);
}

static void greeting_over(struct xtal_timer *timer)
{
	struct xtal_tcp_conn *c = xtal_container_of(timer, struct xtal_tcp_conn, timer);
	struct xtal_context *ctx = c->ctx;

	xtal_lock(&ctx->serving.lock);
	xtal_tcp_hang_up(c, "it did not say what it wants");
	xtal_unlock(&ctx->serving.lock);
}

/* Nobody is pinned: the header goes alone. */
static void no_unpin(void *arg)
{
	(void)arg;
}

static bool refuse(struct xtal_tcp_conn *c, enum xtal_status status, const char *why)
{
	static const struct xtal_tcp_pins none = { .unpin = no_unpin };
	struct xtal_tcp_frame *f = xtal_tcp_reserve(&c->stream);
	struct xtal_handshake h;

	xtal_count(&xtal_totals.denied, 1);
	xtal_ledger_refused(&c->peer, c->ctx->port, xtal_os_now(), "a session: %s", why);
	xtal_target_refuse(status, why, &h);
	if (f) {
		xtal_handshake_encode(&h, f->header);
		f->payload = 0;
		xtal_tcp_commit(&c->stream);
		xtal_tcp_flush(&c->stream, &none); /* the first bytes: there is room */
	}
	xtal_tcp_hang_up(c, why);
	return false;
}

static struct xtal_tcp_session *find(struct xtal_context *ctx, struct xtal_session_id id)
{
	for (struct xtal_list *n = ctx->tcp.sessions.next; n != &ctx->tcp.sessions; n = n->next) {
		struct xtal_tcp_session *s = xtal_container_of(n, struct xtal_tcp_session, node);

		if (xtal_session_id_equal(s->target.id, id))
			return s;
	}
	return NULL;
}

static struct xtal_tcp_session *new_session(struct xtal_context *ctx,
					    const struct xtal_handshake *hello, int *err)
{
	uint64_t linger = 2000000ull * xtal_config()->timeout_ms;
	struct xtal_tcp_session *s = calloc(1, sizeof(*s));
	struct xtal_target_config tc = { .incarnation = ctx->incarnation,
					 .cache_size = XTAL_ARRAY_SIZE(s->cache),
					 .linger = linger < LINGER_NS ? LINGER_NS : linger };

	*err = -ENOMEM;
	if (!s)
		return NULL;
	tc.responder = &s->responder;
	tc.cache = s->cache;
	*err = xtal_target_init(&s->target, &tc, hello, xtal_os_now());
	if (*err) {
		free(s);
		return NULL;
	}
	s->ctx = ctx;
	xtal_list_init(&s->parted);
	xtal_list_append(&ctx->tcp.sessions, &s->node);
	return s;
}

/* The connection carries the session from now on. */
static void join(struct xtal_tcp_conn *c, struct xtal_tcp_session *s)
{
	c->session = s;
	s->conn = c;
	s->from = c->peer.eid;
	s->landed = 0;
	c->ctx->tcp.greeting_count--;
	xtal_list_remove(&c->node);
	xtal_agent_stop_timer(&c->timer);
	xtal_agent_stop_timer(&s->timer);
	unpart(s);
}

static bool resume(struct xtal_tcp_conn *c, struct xtal_tcp_session *s,
		   const struct xtal_handshake *hello)
{
	const char *why = "";
	char text[XTAL_HANDSHAKE_TEXT];
	int err;

	if (xtal_target_is_stale(&s->target, hello)) {
		xtal_tcp_hang_up(c, "an older attempt of its session");
		return false;
	}
	if (s->conn) /* what it has sent and nobody has read is gone with it */
		xtal_tcp_hang_up(s->conn, "its session goes on over another one");
	err = xtal_target_resume(&s->target, hello, xtal_os_now(), &why);
	if (err) {
		snprintf(text, sizeof(text), "%s", why); /* it may be the session's */
		xtal_tcp_session_end(s, text);
		return refuse(c, XTAL_UNREACHABLE, text);
	}
	join(c, s);
	return true;
}

bool xtal_tcp_greet(struct xtal_tcp_conn *c)
{
	struct xtal_context *ctx = c->ctx;
	struct xtal_tcp_session *s;
	struct xtal_handshake hello;
	enum xtal_status status;
	const char *why = "";
	int err;

	if (!xtal_handshake_is(c->in.header) || xtal_handshake_decode(c->in.header, &hello, &why) ||
	    hello.type != XTAL_HELLO) {
		xtal_ledger_refused(&c->peer, ctx->port, xtal_os_now(),
				    "a session: what arrived is no HELLO: %s", why);
		xtal_count(&xtal_totals.denied, 1);
		xtal_tcp_hang_up(c, "it speaks another protocol");
		return false;
	}
	/* The address is not looked at: somebody may forward, and port and incarnation are ours. */
	status = xtal_target_check_hello(&hello, ctx->port, ctx->incarnation, &why);
	if (status)
		return refuse(c, status, why);
	s = find(ctx, hello.id);
	if (s)
		return resume(c, s, &hello);
	if (hello.resume)
		return refuse(c, XTAL_UNREACHABLE, "the owner does not know this session any more");
	s = new_session(ctx, &hello, &err);
	if (!s)
		return refuse(c, err == -ENOMEM ? XTAL_NOT_READY : XTAL_UNREACHABLE,
			      err == -ENOMEM    ? "the owner has no memory for a session"
			      : err == -ENOBUFS ? "the owner grants a smaller window"
						: "the session cannot be opened so");
	join(c, s);
	xtal_count(&xtal_totals.links_made, 1);
	return true;
}

static void conn_ready(struct xtal_source *src)
{
	struct xtal_tcp_conn *c = xtal_container_of(src, struct xtal_tcp_conn, source);
	struct xtal_context *ctx = c->ctx;

	xtal_lock(&ctx->serving.lock);
	xtal_tcp_leave_to_program(c);
	xtal_tcp_serve(c);
	xtal_unlock(&ctx->serving.lock);
}

static bool conn_drain(struct xtal_drain *d)
{
	struct xtal_tcp_conn *c = xtal_container_of(d, struct xtal_tcp_conn, drain);
	struct xtal_context *ctx = c->ctx;
	bool did;

	if (!xtal_trylock(&ctx->serving.lock))
		return false;
	xtal_tcp_leave_to_program(c);
	did = xtal_tcp_serve(c);
	xtal_unlock(&ctx->serving.lock);
	return did;
}

static bool conn_before_sleep(struct xtal_drain *d)
{
	struct xtal_tcp_conn *c = xtal_container_of(d, struct xtal_tcp_conn, drain);
	struct xtal_context *ctx = c->ctx;

	xtal_lock(&ctx->serving.lock);
	xtal_tcp_cool(c); /* nothing came for a while: from now on epoll tells */
	xtal_tcp_rest(&c->stream);
	xtal_unlock(&ctx->serving.lock);
	return true;
}

static void conn_after_sleep(struct xtal_drain *d)
{
	(void)d;
}

/* Errors: -errno. */
static int secure(struct xtal_tcp_conn *c)
{
	struct xtal_os_tls_context *tls;
	char why[256];
	int err;

	if (!xtal_security_wanted(c->ctx->dev->eid))
		return 0;
	err = xtal_security_context(&tls, why, sizeof(why));
	return err ? err : xtal_tcp_secure(&c->stream, tls, true);
}

static void adopt(struct xtal_context *ctx, int fd, const struct xtal_os_tcp_address *peer)
{
	struct xtal_tcp_conn *c = calloc(1, sizeof(*c));

	xtal_engine_track_fd(fd);
	if (!c) {
		xtal_engine_close_fd(fd);
		return;
	}
	c->ctx = ctx;
	c->peer = *peer;
	c->source = (struct xtal_source){ .fd = fd, .ready = conn_ready };
	c->drain = (struct xtal_drain){ .drain = conn_drain,
					.before_sleep = conn_before_sleep,
					.after_sleep = conn_after_sleep };
	xtal_tcp_init(&c->stream, fd);
	xtal_stream_reset(&c->in);
	xtal_list_append(&ctx->tcp.greeting, &c->node);
	ctx->tcp.greeting_count++;
	c->watched = XTAL_OS_READABLE;
	if (xtal_agent_watch(&c->source) || secure(c)) {
		xtal_tcp_hang_up(c, "no memory");
		return;
	}
	xtal_agent_set_timer(&c->timer, xtal_os_now() + GREETING_NS, greeting_over);
}

static bool same_peer(const struct xtal_tcp_conn *c, const struct xtal_os_tcp_address *peer)
{
	return xtal_eid_equal(c->peer.eid, peer->eid);
}

/* Too many have not said what they want: the oldest goes, of the newcomer's own ones when most
 * are those. */
static void make_room(struct xtal_tcp_server *server, const struct xtal_os_tcp_address *peer)
{
	struct xtal_tcp_conn *oldest = NULL, *c;
	unsigned own = 0;

	for (struct xtal_list *n = server->greeting.next; n != &server->greeting; n = n->next) {
		c = xtal_container_of(n, struct xtal_tcp_conn, node);
		own += same_peer(c, peer);
		if (!oldest && same_peer(c, peer))
			oldest = c;
	}
	if (own <= MAX_GREETING / 2)
		oldest = xtal_container_of(server->greeting.next, struct xtal_tcp_conn, node);
	xtal_tcp_hang_up(oldest, "too many connections do not say what they want");
}

static void keep_spare(struct xtal_context *ctx)
{
	if (xtal_os_event_create(&ctx->tcp.spare_fd))
		ctx->tcp.spare_fd = -1;
	ctx->tcp.spare_fd = xtal_os_aside(ctx->tcp.spare_fd);
	if (ctx->tcp.spare_fd >= 0)
		xtal_engine_track_fd(ctx->tcp.spare_fd);
}

/* Without descriptors a connection would wait, and wake us, for ever. */
static void turn_away(struct xtal_context *ctx)
{
	struct xtal_os_tcp_address peer;
	int fd;

	xtal_engine_close_fd(ctx->tcp.spare_fd);
	ctx->tcp.spare_fd = -1;
	if (!xtal_os_tcp_accept(ctx->tcp.listener.fd, &fd, &peer)) {
		xtal_os_close(fd);
		xtal_server_turned_away(ctx);
	} else {
		xtal_os_sleep_ns(1000000); /* another thread was faster */
	}
	keep_spare(ctx);
}

static void accept_ready(struct xtal_source *src)
{
	struct xtal_tcp_server *server = xtal_container_of(src, struct xtal_tcp_server, listener);
	struct xtal_context *ctx = xtal_container_of(server, struct xtal_context, tcp);
	struct xtal_os_tcp_address peer;
	int fd, err = 0;

	/* The rest at the next look: a flood of them keeps the agent from nobody. */
	for (unsigned i = 0; i < 64 && !err; i++) {
		err = xtal_os_tcp_accept(src->fd, &fd, &peer);
		if (err)
			break;
		xtal_lock(&ctx->serving.lock);
		if (server->greeting_count >= MAX_GREETING)
			make_room(server, &peer);
		adopt(ctx, fd, &peer);
		xtal_unlock(&ctx->serving.lock);
	}
	if (err == -EMFILE || err == -ENFILE)
		turn_away(ctx);
}

int xtal_tcp_server_open(struct xtal_context *ctx)
{
	struct xtal_tcp_server *server = &ctx->tcp;
	int err;

	xtal_list_init(&server->greeting);
	xtal_list_init(&server->sessions);
	xtal_list_init(&server->parted);
	server->listener.ready = accept_ready;
	if (server->listener.fd < 0)
		return 0;
	server->lane = aligned_alloc(XTAL_CACHE_LINE, sizeof(*server->lane));
	if (!server->lane)
		return -ENOMEM;
	xtal_lane_init(server->lane);
	err = xtal_agent_watch(&server->listener);
	if (!err)
		keep_spare(ctx);
	return err;
}

/* Best effort: the peer hears that we go, rather than find out. */
static void say_farewell(struct xtal_tcp_session *s)
{
	if (s->conn && !s->conn->broken) {
		xtal_target_close(&s->target, XTAL_UNREACHABLE, "the owner closed its context");
		if (!xtal_tcp_serve_bytes(s->conn, NULL, 0))
			return; /* gone with it */
	}
	xtal_tcp_session_end(s, "the context is closed");
}

void xtal_tcp_server_close(struct xtal_context *ctx)
{
	struct xtal_tcp_server *server = &ctx->tcp;

	if (!server->sessions.next)
		return; /* never opened */
	xtal_agent_unwatch(&server->listener);
	xtal_engine_close_fd(server->listener.fd);
	xtal_engine_close_fd(server->spare_fd);
	server->listener.fd = server->spare_fd = -1;
	xtal_agent_stop_timer(&server->timer);
	xtal_lock(&ctx->serving.lock);
	while (!xtal_list_empty(&server->greeting))
		xtal_tcp_hang_up(
			xtal_container_of(server->greeting.next, struct xtal_tcp_conn, node),
			"the context is closed");
	while (!xtal_list_empty(&server->sessions))
		say_farewell(
			xtal_container_of(server->sessions.next, struct xtal_tcp_session, node));
	xtal_unlock(&ctx->serving.lock);
	if (server->lane)
		xtal_lane_fini(server->lane);
	free(server->lane);
	server->lane = NULL;
}
