/* SPDX-License-Identifier: MIT */
/*
 * A carrier: how a link comes up, and how its messages travel. The ring serves one host (its
 * handshake also brings the grants of the direct paths), tcp everything else. A link gets its
 * carrier while it is connecting, and keeps it.
 */
#ifndef XTAL_CORE_CARRIER_H
#define XTAL_CORE_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xtal_grant;
struct xtal_link;
struct xtal_queue;
struct xtal_remote;
struct xtal_request;

/* "mine": the queue whose lock the caller holds, or NULL: all other queues whose operations end
 * are kicked. None of the functions blocks. */
struct xtal_carrier {
	uint32_t path; /* enum xtal_path_kind of what travels as messages */
	bool lasts;    /* overdue operations end one by one, the link goes on */

	/* On the agent, while the link is connecting; again whenever it is posted. Ends the link
	 * when it is in vain. */
	void (*connect)(struct xtal_link *link);
	/* On the agent, while the link is up and something was posted: sends what waits for the
	 * agent. Ends the link on errors. */
	void (*ask)(struct xtal_link *link);
	/* On the agent, once, after the link has ended: watches nothing any more. */
	void (*stop)(struct xtal_link *link);
	/* Any thread, at the last reference: frees what the carrier has. */
	void (*close)(struct xtal_link *link);

	/* Under the link's lock, the link is up: a new grant, the caller's (its reference on the
	 * link too), without asking anybody. 0 or a positive status. NULL: the owner is asked. */
	int (*grant)(struct xtal_link *link, const struct xtal_remote *remote, uint64_t len,
		     struct xtal_grant **out);

	/* The rest under the link's lock, while the link is up. */

	/* Sends what the requester has, as much as fits. */
	void (*send)(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine);
	/* Sends a whole SEND of few bytes, when nothing is in front of it. False: it does not, and
	 * nothing happened. NULL: never. */
	bool (*send_short)(struct xtal_link *link, const struct xtal_request *request,
			   const uint8_t *data, uint64_t now);
	/* Takes the answers that have come; true when there was any. A peer that breaks the
	 * protocol: xtal_link_fail_later(). */
	bool (*receive)(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine);
	/* On the agent: nobody polls, so the answers shall wake it. False: some are there. */
	bool (*before_sleep)(struct xtal_link *link);
	/* After a sleep, or when somebody polls. */
	void (*after_sleep)(struct xtal_link *link);
	/* A program's thread that has polled goes to sleep: the answers shall wake the agent. */
	void (*hand_over)(struct xtal_link *link);
	/* Operations may be overdue. True: the link must end; all of its operations may end then,
	 * as none of them lands any more. */
	bool (*overdue)(struct xtal_link *link, uint64_t now);
	/* The link ends: what the owner has not begun it shall never begin. */
	void (*cancel)(struct xtal_link *link);
};

extern const struct xtal_carrier xtal_carrier_ring, xtal_carrier_tcp;

/* On the agent, while it is connecting: the link is carried by TCP. Errors: -ENOMEM, -errno. */
int xtal_tcp_link_begin(struct xtal_link *link);

#endif
