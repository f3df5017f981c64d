/* SPDX-License-Identifier: MIT */
/*
 * Connections of tcp peers that a program serves itself while it polls for receives: the agent
 * would have to be woken, and may wait for the very processor that the program polls on. It gives
 * up to four connections that bring something to a program that polls, and takes them back when
 * nobody has polled for a millisecond, or a completion queue is armed. What only the agent may do
 * is left to it. See tcp_session.h.
 */
#include <stdlib.h>

#include "core/context_impl.h"
#include "core/server.h"
#include "core/serving.h"
#include "core/tcp_session.h"
#include "os/proc.h"

#define MAX_POLLED 4u /* each costs an empty poll a system call */

static void look(struct xtal_timer *timer);

void xtal_tcp_leave_to_program(struct xtal_tcp_conn *c)
{
	struct xtal_tcp_server *tcp = &c->ctx->tcp;
	uint64_t now;

	if (c->polled || c->broken || c->quiet_until || !c->session || !c->shaken ||
	    tcp->polled_count == MAX_POLLED || !c->ctx->serving.polls)
		return;
	now = xtal_os_now();
	if (!xtal_server_is_polled(c->ctx, now))
		return;
	xtal_tcp_cool(c);
	c->polled = true;
	xtal_list_append(&tcp->polled, &c->polled_node);
	tcp->polled_count++;
	if (!xtal_agent_timer_is_set(&tcp->timer))
		xtal_agent_set_timer(&tcp->timer, now + XTAL_POLLER_NS, look);
}

void xtal_tcp_take_back(struct xtal_tcp_conn *c)
{
	if (!c->polled)
		return;
	xtal_list_remove(&c->polled_node);
	c->ctx->tcp.polled_count--;
	c->polled = false;
}

static struct xtal_tcp_conn *conn_of(struct xtal_list *n)
{
	return xtal_container_of(n, struct xtal_tcp_conn, polled_node);
}

/* On the agent: does anybody still poll? Answers that were held wait no longer in any case. */
static void look(struct xtal_timer *timer)
{
	struct xtal_tcp_server *tcp = xtal_container_of(timer, struct xtal_tcp_server, timer);
	struct xtal_context *ctx = xtal_container_of(tcp, struct xtal_context, tcp);
	uint64_t now;
	bool polled;

	xtal_lock(&ctx->serving.lock);
	now = xtal_os_now();
	polled = xtal_server_is_polled(ctx, now);
	xtal_serving_look(&ctx->serving, now);
	for (struct xtal_list *n = tcp->polled.next, *next; n != &tcp->polled; n = next) {
		struct xtal_tcp_conn *c = conn_of(n);

		next = n->next;
		if (polled && !c->held)
			continue;
		if (!polled)
			xtal_tcp_take_back(c);
		xtal_tcp_serve(c);
	}
	if (tcp->polled_count)
		xtal_agent_set_timer(timer, now + XTAL_POLLER_NS, look);
	xtal_unlock(&ctx->serving.lock);
}

void xtal_tcp_server_poll(struct xtal_context *ctx)
{
	struct xtal_tcp_server *tcp = &ctx->tcp;

	for (struct xtal_list *n = tcp->polled.next; n != &tcp->polled; n = n->next)
		xtal_tcp_serve(conn_of(n)); /* which leaves it in the list */
}

void xtal_tcp_server_answer(struct xtal_context *ctx)
{
	struct xtal_tcp_server *tcp = &ctx->tcp;

	for (struct xtal_list *n = tcp->polled.next; n != &tcp->polled; n = n->next)
		if (conn_of(n)->held)
			xtal_tcp_answer(conn_of(n));
}

void xtal_tcp_server_hand_over(struct xtal_context *ctx)
{
	struct xtal_tcp_server *tcp = &ctx->tcp;

	while (!xtal_list_empty(&tcp->polled)) {
		struct xtal_tcp_conn *c = conn_of(tcp->polled.next);

		xtal_tcp_take_back(c);
		xtal_tcp_serve(c); /* and have its socket watched again */
		if (xtal_tcp_buffered(&c->stream))
			xtal_tcp_leave_to_agent(c, NULL, false);
	}
}

/* ---- What is left to the agent ---- */

static void quiet_over(struct xtal_timer *timer)
{
	struct xtal_tcp_conn *c = xtal_container_of(timer, struct xtal_tcp_conn, timer);
	struct xtal_context *ctx = c->ctx;

	xtal_lock(&ctx->serving.lock);
	c->quiet_until = 0;
	xtal_tcp_serve(c);
	xtal_unlock(&ctx->serving.lock);
}

void xtal_tcp_stay_quiet(struct xtal_tcp_conn *c)
{
	if (c->ctx->serving.by_program)
		xtal_tcp_leave_to_agent(c, NULL, false);
	else
		xtal_agent_set_timer(&c->timer, c->quiet_until, quiet_over);
}

void xtal_tcp_bury(struct xtal_tcp_conn *c)
{
	if (c->ends)
		xtal_tcp_session_end(c->session, c->broken);
	else
		xtal_tcp_hang_up(c, c->broken);
}

static void attend(struct xtal_task *task)
{
	struct xtal_tcp_server *tcp = xtal_container_of(task, struct xtal_tcp_server, task);
	struct xtal_context *ctx = xtal_container_of(tcp, struct xtal_context, tcp);

	xtal_lock(&ctx->serving.lock);
	for (struct xtal_list *n = tcp->sessions.next, *next; n != &tcp->sessions; n = next) {
		struct xtal_tcp_conn *c = xtal_container_of(n, struct xtal_tcp_session, node)->conn;

		next = n->next;
		if (!c)
			continue;
		if (c->broken)
			xtal_tcp_bury(c);
		else if (c->quiet_until && !xtal_agent_timer_is_set(&c->timer))
			xtal_agent_set_timer(&c->timer, c->quiet_until, quiet_over);
		else if (!c->polled && xtal_tcp_buffered(&c->stream))
			xtal_tcp_serve(c);
	}
	xtal_unlock(&ctx->serving.lock);
}

void xtal_tcp_leave_to_agent(struct xtal_tcp_conn *c, const char *broken, bool ends)
{
	struct xtal_tcp_server *tcp = &c->ctx->tcp;

	if (broken && !c->broken)
		c->broken = broken;
	c->ends |= ends;
	if (!tcp->task.run) /* once: the agent reads it without our lock */
		tcp->task.run = attend;
	xtal_agent_post(&tcp->task);
}
