/* SPDX-License-Identifier: MIT */
/*
 * A link: one context's way to one peer context over one pipeline, from the initiator's side.
 * It is made by the agent on first use; queues that need it wait in its list meanwhile.
 */
#ifndef XTAL_CORE_LINK_H
#define XTAL_CORE_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/interval.h"
#include "base/list.h"
#include "base/lock.h"
#include "core/agent.h"
#include "core/grant.h"
#include "core/lane.h"
#include "core/op.h"
#include "core/shared.h"
#include "path/path.h"
#include "path/ring.h"
#include "wire/requester.h"

#define XTAL_LINK_WINDOW 64u

enum xtal_link_state {
	XTAL_LINK_CONNECTING,
	XTAL_LINK_UP,
	XTAL_LINK_DEAD, /* status tells; never comes back, a new link is made instead */
};

struct xtal_carrier;
struct xtal_short_models;

struct xtal_link {
	_Atomic uint32_t refs;
	struct xtal_context *ctx;
	struct xtal_list node; /* in ctx->links, while not dead */
	struct xtal_eid eid;
	uint32_t tid, pipeline, id;
	_Atomic uint32_t state;
	uint32_t status; /* when dead: what its operations end with */
	char text[160];  /* why */
	bool full_fence;
	struct xtal_context *self; /* the target context when it is in this process */

	struct xtal_lock lock; /* all below */
	struct xtal_intervals grants;
	size_t prune_at; /* grants: when those whose segment is gone are looked for */
	struct xtal_list windows, resolves, waiters;
	struct xtal_denial denials[32];
	uint32_t next_denial;
	uint64_t next_id;
	uint64_t seats[XTAL_BOARD_WORDS / 64]; /* taken activity words */
	uint32_t seats_used;

	const struct xtal_carrier *carrier;
	uint64_t connect_deadline;
	char attempt[160]; /* tcp: why the last attempt to connect failed, or the connection went */
	struct xtal_task task;          /* connect, send questions */
	struct xtal_timer connecting;   /* again, or no longer */
	struct xtal_source sock, death; /* sock: control messages, and doorbells both ways */
	int pid;                        /* the target's, as we see it; 0: unknown */
	unsigned hangups;               /* so often it went away before its welcome */
	bool cma, peer_ring, stopped, draining;
	const char *broken; /* the agent is to end the link for this reason */
	uint32_t broken_status;
	char cma_text[160];
	bool other_user; /* the owner is; it serves messages only */
	struct xtal_slot_table *table;
	void *memory; /* board, then rings */
	size_t memory_len;
	struct xtal_board *board;

	struct xtal_tcp_link *tcp; /* what the tcp carrier has; NULL: another carries it */
	struct xtal_ring_end ring;
	struct xtal_short_models *models; /* of SENDs in the ring; NULL before the first */
	struct xtal_requester requester;
	struct xtal_requester_slot slots[XTAL_LINK_WINDOW];
	struct xtal_lane lane;      /* for data that arrives in messages */
	struct xtal_drain drain;    /* the agent's, while operations are open (draining) */
	_Atomic uint64_t polled_at; /* ns: when a program's thread last drained it itself */
	uint64_t consumed;          /* where the owner was in the ring when we looked */
	uint64_t patience; /* ns: when a claimed frame of an overdue operation is given up */
	bool armed;        /* the owner wakes our agent */
	bool crowded;      /* some waiters wait for room in the window */
	bool ping;         /* ask which frames the owner has seen */
};

/* The link of ctx to (eid, tid) over the pipeline, made when there is none; a reference. The
 * answer may be connecting or just dead. Under the queue's lock. NULL: no memory. */
struct xtal_link *xtal_link_get(struct xtal_context *ctx, struct xtal_eid eid, uint32_t tid,
				uint32_t pipeline);
void xtal_link_put(struct xtal_link *link);
/* 0: up; -EINPROGRESS: it is connecting, and the queue waits for it; or the status it ended with.
 * Under the queue's lock. */
int xtal_link_ready(struct xtal_link *link, struct xtal_queue *queue);
/* Has the agent look at the link: connect, ask, or tidy up. */
void xtal_link_post(struct xtal_link *link);
/* On the agent, connecting without a socket: tries again soon, until the deadline. */
void xtal_link_again(struct xtal_link *link);

/* An activity word for one executor, or NULL when all are taken. brief: for a fragment. */
struct xtal_activity *xtal_link_seat(struct xtal_link *link, bool brief);
void xtal_link_unseat(struct xtal_link *link, struct xtal_activity *seat);

/* Ends the link and everything that waits for it. Any thread, holding no queue's lock. */
void xtal_link_fail(struct xtal_link *link, uint32_t status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Kicks those who wait for this, at most so many, the oldest first. Returns how many. Under the
 * link's lock. */
uint32_t xtal_link_wake(struct xtal_link *link, uint64_t what, uint32_t most);
/* The same soon, on the agent; the text is static. Under the link's lock. */
void xtal_link_fail_later(struct xtal_link *link, uint32_t status, const char *text);

/* What a queue in a link's list of waiters waits for: the answer to a question (its id), or: */
#define XTAL_WAIT_UP   0                /* the link to come up */
#define XTAL_WAIT_ROOM UINT64_MAX       /* room in the window */
#define XTAL_WAIT_OVER (UINT64_MAX - 1) /* nothing any more: it has come, or the link has ended */
/* Puts the queue into the list; it is in no other. Under both locks. */
void xtal_link_wait(struct xtal_link *link, struct xtal_queue *queue, uint64_t what);
/* Takes the queue out of the list of waiters. Under the queue's lock. */
void xtal_link_unwait(struct xtal_link *link, struct xtal_queue *queue);

/* Ends all links of ctx (self NULL), or those that lead to the context self. */
void xtal_links_close(struct xtal_context *ctx, const struct xtal_context *self);

#endif
