/* SPDX-License-Identifier: MIT */
/* The body of a context, for the core's own files. */
#ifndef XTAL_CORE_CONTEXT_IMPL_H
#define XTAL_CORE_CONTEXT_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/agent.h"
#include "core/context.h"
#include "core/registry.h"

/* Where peers come over TCP (tcp_accept.c). The listener is the agent's, the rest is under the
 * serving lock. */
struct xtal_tcp_server {
	struct xtal_source listener; /* fd -1: none */
	int spare_fd;                /* given up to turn a peer away when no other is left */
	struct xtal_list greeting, sessions;
	struct xtal_list parted; /* sessions without a connection, the longest ones first */
	unsigned greeting_count, hot_count, parted_count;
	struct xtal_list polled; /* connections that the program reads itself (tcp_poll.c) */
	unsigned polled_count;
	struct xtal_lane *lane;  /* of whoever serves */
	struct xtal_timer timer; /* the agent's: does anybody still poll? */
	struct xtal_task task;   /* what a program's thread leaves to the agent */
};

/* The peers of a context, whom the agent serves, or whoever polls for receives (server.c). */
struct xtal_serving {
	struct xtal_lock lock;
	struct xtal_list sessions; /* over rings, welcomed */
	uint64_t polls, seen;      /* how often programs have served them; when last looked at */
	uint64_t polled_at;        /* ns: when that look saw a new one; 0: long ago */
	struct xtal_timer timer;   /* the agent's: does anybody still poll? */
	bool by_program;           /* whoever serves now is no agent */
	bool reported, urgent;     /* now: a message has come; something else has */
	_Atomic bool held;         /* answers are */
	_Atomic uint64_t sent_at;  /* ns: when the program last sent something; 0: not yet */
	uint64_t served_at;   /* ns: when one of the messages that have come now was taken, or 0 */
	uint64_t reported_at; /* ns: when the last poll brought messages; 0: it did not */
	unsigned prompt;      /* so often in a row did the program send something soon after */
};

/* Locks, in the order in which they may be taken:
 *   queues_lock, a queue's lock, links_lock, a link's lock, registry.lock, leaf locks.
 * serving.lock comes before an endpoint's. sessions_lock is taken alone or on the agent. */
struct xtal_context {
	bool foreign; /* we are a forked child of the process that opened it */
	const struct xtal_device *dev;
	uint16_t port;
	uint32_t number; /* unique in the process, 1.. */
	uint64_t incarnation;
	struct xtal_registry registry;
	_Atomic uint32_t users; /* links of this process that lead here, and lookups */
	struct xtal_list node;  /* in the engine */

	struct xtal_source listener;
	int spare_fd;          /* given up to turn a peer away when no other is left; the agent's */
	uint64_t told_full_at; /* ns: when the log said so; 0: never */
	unsigned turned_away;  /* since */
	struct xtal_lock sessions_lock;
	struct xtal_list sessions; /* peers that reach us, the oldest first */
	uint32_t silent;           /* of them, not yet welcomed; the agent's */

	struct xtal_serving serving;
	struct xtal_tcp_server tcp;

	struct xtal_lock links_lock;
	struct xtal_list links; /* peers that we reach */
	_Atomic uint32_t next_link_id;

	struct xtal_lock queues_lock;
	struct xtal_list queues;
	uint32_t queue_count, next_queue_id;
	_Atomic uint32_t next_pipeline;

	struct xtal_lock endpoints_lock;
	struct xtal_list endpoints[64]; /* by address */
	uint32_t endpoint_turn;         /* whose turn it is, of those that share an id */
	/* How many there are of what outlives no context. */
	_Atomic uint32_t endpoint_count, receive_queue_count, cq_count, channel_count;

	struct xtal_event_queue *async; /* of sources (async.c) */

	_Atomic uint64_t probe_word; /* written by peers that try out cma */
};

/* One event of s waits; if one did before, that one. */
void xtal_context_raise(struct xtal_context *ctx, struct xtal_async_source *s,
			enum xtal_async_type type, uint32_t object_id);

/* The abstract name under which (eid, port) is found. buf: 64 bytes. */
const char *xtal_context_name(struct xtal_eid eid, uint16_t port, char *buf, size_t size);

#endif
