/* SPDX-License-Identifier: MIT */
/*
 * The connections of tcp links, and when the agent looks at them. A link has a connection while
 * it has something to do, and for a while afterwards; a lost one is replaced by the next one of
 * the same session. See carrier_tcp.h.
 */
#include "core/carrier_tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/carrier.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/link.h"
#include "core/log.h"
#include "core/messages.h"
#include "core/security.h"
#include "os/proc.h"
#include "os/thread.h"

#define RETRY_LEAST 2000000u /* ns between attempts to connect */
#define RETRY_MOST  200000000u
#define LOOK_AGAIN  5000000u /* ns: is the program still polling? */
#define BEATEN      4u       /* answers that the agent was woken for in vain */
#define TOGETHER    1048576u /* ns: timers of many links that end in one such span end at once */

static int session_open(struct xtal_tcp_link *t, uint64_t now)
{
	struct xtal_link *link = t->link;
	uint64_t limit = (uint64_t)xtal_config()->timeout_ms * 1000000;
	struct xtal_initiator_config c = {
		.incarnation = link->ctx->incarnation,
		.target_incarnation = link->tid >> 16,
		.eid = xtal_eid_scoped(link->eid, 0),
		.port = link->tid & 0xffff,
		.pipeline = link->pipeline,
		.requester = &link->requester,
		.slots = link->slots,
		.window = XTAL_LINK_WINDOW,
		.piece = XTAL_MSG_PIECE,
		.first_seq = xtal_config()->counter_start + 1,
		.margin = limit / 20,
		.keepalive = limit / 8,
		.silence = limit / 4,
		.retry_least = RETRY_LEAST,
		.retry_most = RETRY_MOST,
	};
	int err = xtal_os_random(&c.id, sizeof(c.id));

	return err ? err : xtal_initiator_init(&t->session, &c, now);
}

int xtal_tcp_link_begin(struct xtal_link *link)
{
	struct xtal_tcp_link *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->link = link;
	xtal_tcp_init(&t->stream, -1);
	err = session_open(t, xtal_os_now());
	if (err) {
		free(t);
		return err;
	}
	xtal_lock(&link->lock);
	link->tcp = t;
	link->carrier = &xtal_carrier_tcp;
	xtal_unlock(&link->lock);
	xtal_tcp_link_drive(link);
	return 0;
}

/* ---- Under the link's lock ---- */

/* Why there is no connection, or no other. */
static void note(struct xtal_tcp_link *t, const char *what, const char *why)
{
	struct xtal_link *link = t->link;
	char eid[XTAL_EID_TEXT];

	snprintf(link->attempt, sizeof(link->attempt), "TCP port %u of %s: %s%s",
		 link->tid & 0xffff, xtal_text_eid(link->eid, eid, sizeof(eid)), what, why);
}

static uint64_t soon(uint64_t now)
{
	return (now + LOOK_AGAIN) | (TOGETHER - 1);
}

static void watch(struct xtal_tcp_link *t, unsigned what)
{
	if (t->stream.fd < 0 || t->hung || t->watched == what)
		return;
	t->watched = what;
	t->beaten = 0;
	xtal_agent_change(&t->link->sock, what);
}

bool xtal_tcp_link_arm(struct xtal_link *link)
{
	struct xtal_tcp_link *t = link->tcp;
	unsigned out = t->unsent || xtal_tcp_wants_write(&t->stream) ? XTAL_OS_WRITABLE : 0;

	/* Once: while a program polls, the agent shall not wake at each answer. */
	if (!t->connecting)
		watch(t, XTAL_OS_READABLE | XTAL_OS_ONCE | out);
	return true;
}

void xtal_tcp_link_disarm(struct xtal_link *link)
{
	(void)link; /* it costs a system call, and the next report disarms it anyway */
}

/*
 * ... unless whoever polls is always quicker: then the kernel wakes the agent's thread at each answer,
 * finds nothing to report, and leaves it armed. The agent is told, so that its timer arms it again once
 * nobody polls any more.
 */
void xtal_tcp_link_beaten(struct xtal_tcp_link *t)
{
	if (!(t->watched & XTAL_OS_READABLE) || ++t->beaten < BEATEN)
		return;
	watch(t, t->watched & XTAL_OS_WRITABLE ? XTAL_OS_WRITABLE | XTAL_OS_ONCE : 0);
	xtal_link_post(t->link);
}

void xtal_tcp_link_hand_over(struct xtal_link *link)
{
	xtal_tcp_link_arm(link);
}

void xtal_tcp_link_hang_up(struct xtal_tcp_link *t, const char *why, uint64_t now)
{
	struct xtal_link *link = t->link;

	if (t->hung || t->stream.fd < 0)
		return;
	note(t, "", why);
	xtal_log(XTAL_LOG_INFO, "xtal", "link %u: connection lost: %s", link->id, why);
	xtal_tcp_shutdown(&t->stream);
	t->hung = true;
	t->connecting = false;
	xtal_initiator_disconnected(&t->session, now);
	/* Nothing was open in it. What had been given up needs no answer any more: the next
	 * operation begins a new session. */
	if (t->session.state == XTAL_SESSION_ENDED && !link->broken &&
	    atomic_load(&link->state) != XTAL_LINK_DEAD && session_open(t, now))
		xtal_link_fail_later(link, XTAL_UNREACHABLE, "no session can be opened");
	xtal_link_post(link);
}

void xtal_tcp_link_cancel(struct xtal_link *link)
{
	struct xtal_tcp_link *t = link->tcp;

	if (xtal_requester_is_busy(&link->requester))
		xtal_tcp_link_hang_up(t, "the link ends", xtal_os_now());
}

bool xtal_tcp_link_up(struct xtal_tcp_link *t, uint64_t now)
{
	struct xtal_link *link = t->link;

	if (t->incarnation && t->incarnation != t->session.peer_incarnation) {
		xtal_link_fail_later(link, XTAL_REMOTE_ACCESS,
				     "another incarnation holds the port: that context is gone");
		xtal_tcp_link_hang_up(t, "another incarnation answers", now);
		return false;
	}
	t->incarnation = t->session.peer_incarnation;
	link->attempt[0] = 0;
	t->doubt = 0;
	if (atomic_load(&link->state) == XTAL_LINK_CONNECTING) {
		xtal_messages_open(link);
		atomic_store(&link->state, XTAL_LINK_UP);
		xtal_link_wake(link, XTAL_WAIT_UP, UINT32_MAX);
		xtal_count(&xtal_totals.links_made, 1);
		xtal_log(XTAL_LOG_INFO, "xtal", "link %u to port %u is up over TCP", link->id,
			 link->tid & 0xffff);
	}
	return true;
}

/* ---- The agent's ---- */

static void look(struct xtal_timer *timer);

static void close_connection(struct xtal_tcp_link *t)
{
	xtal_agent_stop_timer(&t->timer);
	xtal_agent_unwatch(&t->link->sock);
	xtal_engine_close_fd(t->link->sock.fd);
	t->link->sock.fd = -1;
	xtal_tcp_reset(&t->stream);
	t->hung = t->connecting = t->shaking = t->unsent = false;
	t->watched = 0;
	t->full_until = 0;
}

/* An attempt has failed. *text: why the link ends; or it is tried again later. */
static void failed(struct xtal_tcp_link *t, int err, uint64_t now, const char **text)
{
	/* It does not speak TLS, or has another key. */
	bool stranger = t->shaking && (err == -EACCES || err == -EPROTO);
	char eid[XTAL_EID_TEXT];

	note(t,
	     stranger                ? "TLS: "
	     : err == -EADDRNOTAVAIL ? "this device's address is gone, or has no port left: "
				     : "",
	     xtal_tcp_reason(&t->stream, err));
	xtal_log(XTAL_LOG_INFO, "xtal", "link %u: no connection: %s", t->link->id,
		 t->link->attempt);
	close_connection(t);
	xtal_initiator_disconnected(&t->session, now);
	/* Whoever held the port is gone, and with him all that might yet have landed. */
	if (err == -ECONNREFUSED) {
		snprintf(t->link->attempt, sizeof(t->link->attempt),
			 "nobody holds TCP port %u of %s", t->link->tid & 0xffff,
			 xtal_text_eid(t->link->eid, eid, sizeof(eid)));
		*text = t->link->attempt;
	} else if (stranger && !t->incarnation) {
		/* Later that only tells that somebody else has answered: what went over the connections
		 * before may land yet, so that nothing has failed. */
		*text = t->link->attempt;
	}
}

/* The socket is connected, and the peers know each other. */
static void greet(struct xtal_tcp_link *t, uint64_t now)
{
	t->connecting = false;
	xtal_initiator_connected(&t->session, now);
	t->link->carrier->send(t->link, now, NULL);
	xtal_tcp_link_arm(t->link);
	xtal_agent_set_timer(&t->timer, soon(now), look);
}

/* Goes on with an attempt. One that takes long is given up for another: the line may have been lost
 * silently, and there is time for several before operations end. */
static void go_on_connecting(struct xtal_tcp_link *t, uint64_t now, const char **text)
{
	uint64_t patience = t->session.config.silence;
	int err = xtal_tcp_connected(&t->stream);

	if (err == -EINPROGRESS) {
		if (now - t->since >= patience) {
			failed(t, -ETIMEDOUT, now, text);
			return;
		}
		watch(t, XTAL_OS_WRITABLE | XTAL_OS_ONCE);
		xtal_agent_set_timer(&t->timer, t->since + patience, look);
		return;
	}
	if (!err && !t->shaking) {
		t->shaking = true;
		t->since = now;
	}
	if (!err)
		err = xtal_tcp_handshake(&t->stream);
	if (err == -EAGAIN && now - t->since >= 2 * patience) /* it takes several round trips */
		err = -ETIMEDOUT;
	if (!err) {
		greet(t, now);
	} else if (err == -EAGAIN) {
		t->watched = 0;
		xtal_agent_set_timer(&t->timer, t->since + 2 * patience, look);
		watch(t, XTAL_OS_ONCE | (xtal_tcp_wants_write(&t->stream) ? XTAL_OS_WRITABLE
									  : XTAL_OS_READABLE));
	} else {
		failed(t, err, now, text);
	}
}

static void ready(struct xtal_source *src)
{
	struct xtal_link *link = xtal_container_of(src, struct xtal_link, sock);
	struct xtal_tcp_link *t = link->tcp;
	const char *text = NULL;
	uint64_t now = xtal_os_now();

	if (!xtal_trylock(&link->lock)) {
		/* A program's thread is at it; level triggered, the report would only come again. */
		xtal_agent_change(src, 0);
		xtal_agent_set_timer(&t->timer, soon(now), look);
		return;
	}
	t->watched = 0;
	if (t->hung || atomic_load(&link->state) == XTAL_LINK_DEAD) {
		/* its task closes it */
	} else if (t->connecting) {
		go_on_connecting(t, now, &text);
	} else if (xtal_messages_polled(link, now)) {
		xtal_agent_set_timer(&t->timer, soon(now), look);
	} else {
		xtal_messages_go_on(link, now, NULL);
		xtal_tcp_link_arm(link);
		if (!xtal_messages_in_use(link))
			xtal_tcp_rest(&t->stream);
	}
	xtal_unlock(&link->lock);
	if (text)
		xtal_link_fail(link, XTAL_UNREACHABLE, "%s", text);
}

/* Has the socket wake the agent once no program polls, goes on with an attempt whose report was
 * not followed, and closes a connection that lies idle. */
static void look(struct xtal_timer *timer)
{
	struct xtal_tcp_link *t = xtal_container_of(timer, struct xtal_tcp_link, timer);
	struct xtal_link *link = t->link;
	uint64_t now = xtal_os_now(), idle_at;
	const char *text = NULL;

	if (!xtal_trylock(&link->lock)) {
		xtal_agent_set_timer(timer, soon(now), look);
		return;
	}
	idle_at = t->session.heard_at + (uint64_t)xtal_config()->idle_ms * 1000000;
	if (t->hung || t->stream.fd < 0 || atomic_load(&link->state) == XTAL_LINK_DEAD) {
		/* its task closes it */
	} else if (t->connecting) {
		t->watched = 0;
		go_on_connecting(t, now, &text);
	} else if (xtal_messages_polled(link, now)) {
		xtal_agent_set_timer(timer, soon(now), look);
	} else if (atomic_load(&link->state) == XTAL_LINK_UP && now >= idle_at &&
		   !xtal_messages_in_use(link)) {
		xtal_initiator_close(&t->session);
		link->carrier->send(link, now, NULL);
		xtal_tcp_link_hang_up(t, "it was idle for long", now);
	} else {
		t->watched = 0;
		xtal_tcp_link_arm(link);
		if (!xtal_messages_in_use(link))
			xtal_tcp_rest(&t->stream);
		xtal_agent_set_timer(timer, xtal_messages_in_use(link) ? soon(now) : idle_at, look);
	}
	xtal_unlock(&link->lock);
	if (text)
		xtal_link_fail(link, XTAL_UNREACHABLE, "%s", text);
}

/* Opens a socket and begins. Errors: -errno. */
static int begin(struct xtal_tcp_link *t, uint64_t now)
{
	struct xtal_link *link = t->link;
	struct xtal_eid from = link->ctx->dev->eid, to = link->eid;
	bool bound = !xtal_eid_is_loopback(from) && !xtal_eid_is_loopback(to) &&
		     xtal_eid_is_ipv4(from) == xtal_eid_is_ipv4(to);
	struct xtal_os_tls_context *tls = NULL;
	int err;

	if (xtal_security_wanted(link->eid)) {
		err = xtal_security_context(&tls, t->link->attempt, sizeof(t->link->attempt));
		if (err == -ENOKEY && xtal_eid_is_loopback(from) && !*xtal_config()->key_file)
			snprintf(t->link->attempt, sizeof(t->link->attempt),
				 "nobody on this host has that address, and other hosts are not "
				 "reached without XTAL_KEY_FILE");
		if (err)
			return err;
	}
	err = xtal_tcp_connect(&t->stream, to, (uint16_t)link->tid, bound ? &from : NULL);
	if (err)
		return err;
	xtal_engine_track_fd(t->stream.fd);
	link->sock = (struct xtal_source){ .fd = t->stream.fd, .ready = ready };
	t->connecting = true;
	t->since = now;
	err = xtal_agent_watch(&link->sock);
	if (!err && tls)
		err = xtal_tcp_secure(&t->stream, tls, false);
	return err;
}

static void drive_again(struct xtal_timer *timer)
{
	xtal_tcp_link_drive(xtal_container_of(timer, struct xtal_tcp_link, timer)->link);
}

void xtal_tcp_link_drive(struct xtal_link *link)
{
	struct xtal_tcp_link *t = link->tcp;
	struct xtal_initiator_event ev;
	const char *text = NULL;
	uint64_t now = xtal_os_now();
	int err;

	xtal_lock(&link->lock);
	if (atomic_load(&link->state) == XTAL_LINK_DEAD || link->broken) {
		xtal_unlock(&link->lock);
		return;
	}
	if (t->hung)
		close_connection(t);
	/* A new session wants a connection too, but nothing may be there to be done in it. An owner that went
	 * without a farewell is looked for: one that has died shall leave no link behind. */
	if (t->stream.fd < 0 && xtal_initiator_wants_connection(&t->session, now) &&
	    (t->doubt || atomic_load(&link->state) == XTAL_LINK_CONNECTING ||
	     xtal_requester_is_busy(&link->requester))) {
		t->doubt -= t->doubt != 0;
		err = begin(t, now);
		if (err == -ENOKEY)
			text = t->link->attempt;
		else if (err)
			failed(t, err, now, &text);
		else
			go_on_connecting(t, now, &text);
	} else if (atomic_load(&link->state) == XTAL_LINK_CONNECTING && t->stream.fd >= 0 &&
		   !t->connecting && now >= xtal_initiator_next_time(&t->session)) {
		xtal_initiator_tick(&t->session, now, &ev);
		if (ev.kind == XTAL_INITIATOR_HANG_UP)
			xtal_tcp_link_hang_up(t, ev.why, now);
	} else if (t->stream.fd >= 0 && !t->connecting && !(t->watched & XTAL_OS_READABLE)) {
		xtal_agent_set_timer(&t->timer, soon(now), look);
	} else if (t->stream.fd < 0 && t->doubt && t->session.connect_at > now) {
		xtal_agent_set_timer(&t->timer, t->session.connect_at, drive_again);
	}
	xtal_unlock(&link->lock);
	if (text)
		xtal_link_fail(link, XTAL_UNREACHABLE, "%s", text);
}

void xtal_tcp_link_stop(struct xtal_link *link)
{
	struct xtal_tcp_link *t = link->tcp;

	xtal_lock(&link->lock);
	if (!t->hung && !t->connecting) {
		/* The owner need not wait for us to come back. */
		xtal_initiator_close(&t->session);
		link->carrier->send(link, xtal_os_now(), NULL);
	}
	close_connection(t);
	xtal_unlock(&link->lock);
}

void xtal_tcp_link_close(struct xtal_link *link)
{
	xtal_tcp_fini(&link->tcp->stream);
	free(link->tcp);
}
