/* SPDX-License-Identifier: MIT */
/* Operations that travel as messages: the initiator's half of the message paths. */
#ifndef XTAL_CORE_MESSAGES_H
#define XTAL_CORE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_link;
struct xtal_pending;
struct xtal_queue;

/* On the agent, under the link's lock: the link is about to come up. */
void xtal_messages_open(struct xtal_link *link);
/* On the agent, after the link has ended. */
void xtal_messages_close(struct xtal_link *link);

/*
 * Hands the operation to the link. Under the queue's lock. 0: under way (p->link holds a
 * reference); -EAGAIN: the window is full, the queue now waits for the link and is kicked when
 * there is room; or a positive status.
 */
int xtal_messages_submit(struct xtal_link *link, struct xtal_pending *p);

/* The same for a SEND of few bytes, which lie at data, if it can be sent at this moment. False:
 * nothing happened. Then xtal_server_answer(). */
bool xtal_messages_submit_short(struct xtal_link *link, struct xtal_pending *p, const uint8_t *data,
				uint64_t now);

/* Sends what fits and takes the answers that came. Queues other than mine whose operations
 * ended are kicked. user: called by a program's polling thread. */
void xtal_messages_poll(struct xtal_link *link, const struct xtal_queue *mine, bool user);

/* Before a done operation is freed: waits until its finisher has left it. */
void xtal_messages_retire(struct xtal_link *link);

/* Nobody polls now: the agent is to be woken by answers. */
void xtal_messages_sleep(struct xtal_link *link);

/* Ends all operations of the link with status. Under the link's lock. */
void xtal_messages_fail(struct xtal_link *link, uint32_t status);

/* ns: when the owner last answered or took something; 0: never. */
uint64_t xtal_messages_moved(struct xtal_link *link);

/* True when overdue operations end one by one, and the link goes on. */
bool xtal_messages_lasts(const struct xtal_link *link);

/* On the agent: true when the link must end, because an operation is overdue. */
bool xtal_messages_overdue(struct xtal_link *link, uint64_t now);

/* For carriers, under the link's lock. */

/* Operations are under way, or answers are to come to some that have ended. */
bool xtal_messages_in_use(const struct xtal_link *link);
/* Copies between a place of the carrier's and the operation's local memory. A status. */
uint32_t xtal_messages_copy(struct xtal_link *link, struct xtal_pending *p, uint64_t offset,
			    void *place, uint64_t len, bool to_local);
/* The operation has ended with status; its queue is kicked unless it is mine. */
void xtal_messages_finish(struct xtal_pending *p, uint32_t status, const struct xtal_queue *mine);
/* After an operation was abandoned or the carrier replaced: ends the messages that are not sent without it. */
void xtal_messages_end_orphans(struct xtal_link *link, const struct xtal_queue *mine);
/* Takes the answers, sends what fits, wakes those who wait for room. True: there were any. */
bool xtal_messages_go_on(struct xtal_link *link, uint64_t now, const struct xtal_queue *mine);

/* True when a program's thread polls the link now and then. */
bool xtal_messages_polled(const struct xtal_link *link, uint64_t now);

#endif
