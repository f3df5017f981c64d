/* SPDX-License-Identifier: MIT */
/*
 * The carrier between hosts, the initiator's half. Whoever posts or polls moves the bytes
 * (carrier_tcp.c); the agent makes and closes the connections (tcp_connect.c).
 */
#ifndef XTAL_CORE_CARRIER_TCP_H
#define XTAL_CORE_CARRIER_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/agent.h"
#include "core/carrier.h"
#include "path/tcp.h"
#include "wire/initiator.h"

struct xtal_tcp_link {
	struct xtal_link *link;
	struct xtal_initiator session;
	struct xtal_tcp stream;
	struct xtal_timer timer; /* the agent's, while there is a connection */
	uint64_t incarnation;    /* of the owner, all bits; 0: not known yet */
	unsigned watched;        /* XTAL_OS_READABLE ..., what wakes the agent */
	unsigned beaten;         /* answers that others took while it was to be woken */
	uint64_t full_until;     /* the socket was full: no use to try before */
	bool unsent;             /* there is more to be sent, and room for it */
	uint64_t since;          /* when connecting, or the TLS handshake, began */
	bool connecting;         /* neither the socket nor TLS is ready */
	bool shaking;            /* ... but the socket is */
	bool hung;               /* the connection is over; the agent is to close it */
	bool doomed;             /* operations are (struct xtal_pending) */
	unsigned doubt;          /* the owner hung up: so often it is looked for, all the same */
};

/* So often: its port may be the last that goes of an owner that dies. */
#define XTAL_TCP_DOUBT 4u

/* On the agent: closes a connection that is over, makes one that is needed. */
void xtal_tcp_link_drive(struct xtal_link *link);
void xtal_tcp_link_stop(struct xtal_link *link);
void xtal_tcp_link_close(struct xtal_link *link);

/* The rest under the link's lock. */

/* The connection is of no more use: the agent closes it, and makes another one if need be. */
void xtal_tcp_link_hang_up(struct xtal_tcp_link *t, const char *why, uint64_t now);
/* The session is open (again). False: it is not what it was, and the link ends. */
bool xtal_tcp_link_up(struct xtal_tcp_link *t, uint64_t now);
/* The agent is woken when the socket is ready. Always true. */
bool xtal_tcp_link_arm(struct xtal_link *link);
void xtal_tcp_link_disarm(struct xtal_link *link);
/* Whoever polls has received something. */
void xtal_tcp_link_beaten(struct xtal_tcp_link *t);
void xtal_tcp_link_hand_over(struct xtal_link *link);
/* Operations that are open end now: nothing of them goes out any more. */
void xtal_tcp_link_cancel(struct xtal_link *link);

#endif
