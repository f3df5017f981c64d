/* SPDX-License-Identifier: MIT */
/*
 * The sessions of tcp peers, and their connections: accepted, told apart and forgotten by
 * tcp_accept.c, served by tcp_serve.c; all of it under the context's serving lock. That is the
 * agent's work, but while a program polls for receives it serves the connections that are in use
 * itself (tcp_poll.c).
 */
#ifndef XTAL_CORE_TCP_SESSION_H
#define XTAL_CORE_TCP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/agent.h"
#include "os/tcp.h"
#include "path/tcp.h"
#include "wire/target.h"

struct xtal_context;
struct xtal_inbound;
struct xtal_tcp_session;

/* One connection. */
struct xtal_tcp_conn {
	struct xtal_list node; /* in the server's greeting ones, until it has a session */
	struct xtal_context *ctx;
	struct xtal_tcp_session *session;
	struct xtal_source source;
	struct xtal_drain drain; /* while it is hot: looked at without being reported */
	struct xtal_timer
		timer; /* how long it may take to say what it wants; how long it is quiet */
	struct xtal_tcp stream;
	struct xtal_stream in; /* its HELLO */
	struct xtal_os_tcp_address peer;
	uint8_t *rest; /* bytes that were received, and wait until answers have gone */
	size_t rest_at, rest_len;
	uint64_t quiet_until; /* not read before, since too much was refused to it; 0: read */
	unsigned watched;     /* XTAL_OS_READABLE ... */
	bool hot, shaken;     /* shaken: the filter's handshake is over */
	/* A program's thread serves it, and the agent does not watch for what it brings. */
	bool polled;
	struct xtal_list polled_node; /* in the server */
	bool held;                    /* answers wait until the program has seen what they answer */
	const char *broken; /* a program's thread has found that it is over, for this reason */
	bool ends;          /* ... and so is its session */
};

/* What one initiator's link is to us. */
struct xtal_tcp_session {
	struct xtal_list node; /* in the server */
	struct xtal_context *ctx;
	struct xtal_tcp_conn *conn; /* NULL: none now */
	struct xtal_timer timer;    /* how long it is kept without one */
	struct xtal_list parted;    /* in the server, meanwhile */
	struct xtal_eid from;       /* where its last connection came from */
	struct xtal_target target;
	struct xtal_responder responder;
	struct xtal_responder_result cache[64];
	struct xtal_responder_effect effect; /* a WRITE whose payload comes, or the last READ */
	uint64_t landed;                     /* bytes of it that are there */
	uint8_t tail[16];                    /* its last word, which lands last */
	uint8_t small[XTAL_TCP_SMALL];       /* what a short READ found */
	struct xtal_inbound *inbound;        /* a SEND that comes in; NULL before the first */
	uint8_t *piece; /* of it, until it is complete; XTAL_MSG_PIECE bytes, or NULL */
	bool careful;   /* a READ met memory that is not there: look at it first from now on */
};

/* Something may be done for the connection: receives, executes, answers. True when anything was.
 * The connection may be gone afterwards, if the agent called. */
bool xtal_tcp_serve(struct xtal_tcp_conn *c);
/* The same with bytes that were received, and no more; also none. False: the connection is gone. */
bool xtal_tcp_serve_bytes(struct xtal_tcp_conn *c, const uint8_t *in, size_t len);
/* Sends the answers that were held. The connection may be gone afterwards, if the agent called. */
void xtal_tcp_answer(struct xtal_tcp_conn *c);
/* The HELLO of a greeting connection is complete. True: the connection has a session now; false:
 * it is gone. */
bool xtal_tcp_greet(struct xtal_tcp_conn *c);
/* Closes the connection; its session waits for another one. On a program's thread both this and
 * the session's end are left to the agent. */
void xtal_tcp_hang_up(struct xtal_tcp_conn *c, const char *why);
/* At the session's end: a SEND that is coming in does not come. */
void xtal_tcp_forget_send(struct xtal_tcp_session *s);
/* Ends the session, and its connection. */
void xtal_tcp_session_end(struct xtal_tcp_session *s, const char *why);
/* On the agent: it need not look at the connection unasked any more. */
void xtal_tcp_cool(struct xtal_tcp_conn *c);

/* tcp_poll.c: */

/* On the agent: leaves the connection to the program, if that polls. */
void xtal_tcp_leave_to_program(struct xtal_tcp_conn *c);
/* It is the agent's again; who calls has it served, or closes it. */
void xtal_tcp_take_back(struct xtal_tcp_conn *c);
/* On the agent: does what a program's thread has left, for a connection that is broken. */
void xtal_tcp_bury(struct xtal_tcp_conn *c);
/* Has the agent look at what a program's thread has left. */
void xtal_tcp_leave_to_agent(struct xtal_tcp_conn *c, const char *broken, bool ends);
/* Has a timer end the silence, quiet_until. */
void xtal_tcp_stay_quiet(struct xtal_tcp_conn *c);

#endif
