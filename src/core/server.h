/* SPDX-License-Identifier: MIT */
/* The target's side of links: accepts peers, answers their questions, executes messages. */
#ifndef XTAL_CORE_SERVER_H
#define XTAL_CORE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/agent.h"
#include "core/lane.h"
#include "core/shared.h"
#include "os/sock.h"
#include "path/ring.h"
#include "wire/responder.h"

struct xtal_context;
struct xtal_inbound;
struct xtal_short_models;

#define XTAL_SESSION_CACHE 64u

struct xtal_session {
	struct xtal_list node; /* in ctx->sessions */
	struct xtal_context *ctx;
	struct xtal_source sock, death; /* sock: control messages, and doorbells both ways */
	struct xtal_os_cred cred;
	bool welcomed;
	struct xtal_timer greeting; /* until it is welcomed */
	bool same_uid;
	void *memory;
	size_t memory_len;
	struct xtal_board *board;
	struct xtal_ring_end ring;
	struct xtal_short_models *models; /* of SENDs in the ring; with the memory */
	struct xtal_responder responder;
	struct xtal_responder_result cache[XTAL_SESSION_CACHE];
	struct xtal_drain drain;
	bool drains;
	/* The rest under ctx->serving.lock. */
	struct xtal_list serve_node; /* in ctx->serving, once welcomed */
	struct xtal_lane lane;
	struct xtal_inbound *inbound; /* a SEND that comes in; NULL before the first */
	bool stalled;                 /* a reply found no room */
	bool armed;                   /* frames wake the agent */
	bool held;                    /* the oldest frame is executed, and yet to be answered: */
	struct xtal_msg answer;
	const char *broken; /* why the agent is to end it, or NULL */
};

/* On the agent: the session is over, and freed. */
void xtal_session_end(struct xtal_session *s, const char *why);
/* Tells the peer why; -ECONNREFUSED. The caller ends the session. */
int xtal_session_refuse(struct xtal_session *s, uint32_t status, const char *text);
/* Takes what the socket has; may end the session. */
void xtal_session_ready(struct xtal_source *src);

/* On the agent: starts listening / ends all sessions of the context. */
int xtal_server_open(struct xtal_context *ctx);
void xtal_server_close(struct xtal_context *ctx);

/* On the agent: no descriptor was left for a peer. The log hears of it at most once a second: they try
 * again and again. */
void xtal_server_turned_away(struct xtal_context *ctx);

/* The same for peers that come over TCP (tcp_accept.c). */

/* Begins to accept on the listener, when there is one. Errors: -errno. */
int xtal_tcp_server_open(struct xtal_context *ctx);
/* Says farewell to all peers, closes everything. */
void xtal_tcp_server_close(struct xtal_context *ctx);
/* As xtal_server_poll(), answer and hand_over, under the serving lock (tcp_poll.c). */
void xtal_tcp_server_poll(struct xtal_context *ctx);
void xtal_tcp_server_answer(struct xtal_context *ctx);
void xtal_tcp_server_hand_over(struct xtal_context *ctx);

#endif
