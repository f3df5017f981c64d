/* SPDX-License-Identifier: MIT */
/*
 * Letting peers in: connections to a context's socket, until they have said whom they look for.
 * Who says nothing holds a descriptor or two, so there is a time limit, and a limit on how many.
 */
#include "core/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"
#include "wire/control.h"
#include "xtal.h"

/* An initiator greets in the same function that connects. */
#define GREETING_NS 3000000000u
#define MAX_SILENT  128u

/* Connections that are accepted in one go. */
#define MAX_ACCEPTED 64u

static void session_death(struct xtal_source *src)
{
	struct xtal_session *s = xtal_container_of(src, struct xtal_session, death);

	if (xtal_os_pidfd_dead(src->fd))
		xtal_session_end(s, "its process died");
}

static void keep_spare(struct xtal_context *ctx)
{
	if (xtal_os_event_create(&ctx->spare_fd))
		ctx->spare_fd = -1;
	ctx->spare_fd = xtal_os_aside(ctx->spare_fd);
	if (ctx->spare_fd >= 0)
		xtal_engine_track_fd(ctx->spare_fd);
}

void xtal_server_turned_away(struct xtal_context *ctx)
{
	uint64_t now = xtal_os_now();

	xtal_count(&xtal_totals.denied, 1);
	ctx->turned_away++;
	if (ctx->told_full_at && now - ctx->told_full_at < 1000000000)
		return;
	xtal_log(XTAL_LOG_ERROR, "xtal",
		 "port %u: no descriptor left for a peer (RLIMIT_NOFILE); turned away: %u",
		 ctx->port, ctx->turned_away);
	ctx->told_full_at = now;
	ctx->turned_away = 0;
}

/* Without descriptors a connection would wait, and wake us, for ever. */
static void turn_away(struct xtal_context *ctx)
{
	struct xtal_control c;
	int fd;

	xtal_engine_close_fd(ctx->spare_fd);
	ctx->spare_fd = -1;
	if (!xtal_os_accept(ctx->listener.fd, &fd)) {
		xtal_control_init(&c, XTAL_CONTROL_REFUSE);
		c.status = XTAL_UNREACHABLE;
		snprintf(c.text, sizeof(c.text),
			 "the owner has no descriptor left (RLIMIT_NOFILE)");
		xtal_os_send(fd, &c, sizeof(c), NULL, 0);
		xtal_os_close(fd);
		xtal_server_turned_away(ctx);
	} else {
		xtal_os_sleep_ns(1000000); /* another thread was faster */
	}
	keep_spare(ctx);
}

/* Ends a connection that says nothing, unless its greeting lies in the socket, unread. */
static void end_if_silent(struct xtal_session *s, const char *why)
{
	struct xtal_context *ctx = s->ctx;
	uint32_t before = ctx->silent;

	xtal_session_ready(&s->sock);
	if (ctx->silent == before)
		xtal_session_end(s, why);
}

static void too_silent(struct xtal_timer *t)
{
	end_if_silent(xtal_container_of(t, struct xtal_session, greeting),
		      "it did not say whom it looks for");
}

/* Too many say nothing: the oldest goes. */
static void make_room(struct xtal_context *ctx)
{
	struct xtal_list *n = ctx->sessions.next;

	while (xtal_container_of(n, struct xtal_session, node)->welcomed)
		n = n->next;
	end_if_silent(xtal_container_of(n, struct xtal_session, node),
		      "too many connections say nothing");
}

static void accept_ready(struct xtal_source *src)
{
	struct xtal_context *ctx = xtal_container_of(src, struct xtal_context, listener);
	int fd, err = 0;

	/* The rest at the next look: a flood of them keeps the agent from nobody. */
	for (unsigned i = 0; i < MAX_ACCEPTED && !(err = xtal_os_accept(src->fd, &fd)); i++) {
		struct xtal_session *s = aligned_alloc(XTAL_CACHE_LINE, (sizeof(*s) + 63) & ~63ull);

		if (!s) {
			xtal_os_close(fd);
			return;
		}
		while (ctx->silent >= MAX_SILENT)
			make_room(ctx);
		memset(s, 0, sizeof(*s));
		s->ctx = ctx;
		ctx->silent++;
		xtal_agent_set_timer(&s->greeting, xtal_os_now() + GREETING_NS, too_silent);
		s->death.fd = -1;
		s->sock = (struct xtal_source){ .fd = fd, .ready = xtal_session_ready };
		xtal_engine_track_fd(fd);
		xtal_lock(&ctx->sessions_lock);
		xtal_list_append(&ctx->sessions, &s->node);
		xtal_unlock(&ctx->sessions_lock);
		if (xtal_os_peer_cred(fd, &s->cred) || xtal_agent_watch(&s->sock)) {
			xtal_session_end(s, "no descriptor");
			continue;
		}
		s->same_uid = s->cred.uid == xtal_os_uid();
		if (!s->same_uid && !xtal_config()->any_uid) {
			xtal_session_refuse(s, XTAL_UNREACHABLE,
					    "the owner serves its own user only "
					    "(XTAL_PEERS=any would allow others, over messages)");
			xtal_session_end(s, "another user");
			continue;
		}
		if (!xtal_os_peer_pidfd(fd, s->cred.pid, &s->death.fd)) {
			xtal_engine_track_fd(s->death.fd);
			s->death.ready = session_death;
			xtal_agent_watch(&s->death);
		} else {
			s->death.fd = -1;
		}
	}
	if (err == -EMFILE || err == -ENFILE)
		turn_away(ctx);
}

int xtal_server_open(struct xtal_context *ctx)
{
	int err;

	ctx->listener.ready = accept_ready;
	err = xtal_agent_watch(&ctx->listener);
	if (!err)
		keep_spare(ctx);
	return err;
}

void xtal_server_close(struct xtal_context *ctx)
{
	xtal_agent_unwatch(&ctx->listener);
	xtal_agent_stop_timer(&ctx->serving.timer);
	xtal_engine_close_fd(ctx->listener.fd);
	xtal_engine_close_fd(ctx->spare_fd);
	while (!xtal_list_empty(&ctx->sessions))
		xtal_session_end(xtal_container_of(ctx->sessions.next, struct xtal_session, node),
				 "the context is closed");
}
