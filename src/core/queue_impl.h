/* SPDX-License-Identifier: MIT */
/* The body of a queue, and of an operation that could not be executed at once. */
#ifndef XTAL_CORE_QUEUE_IMPL_H
#define XTAL_CORE_QUEUE_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/cq.h"
#include "core/lane.h"
#include "core/op.h"
#include "core/queue.h"
#include "core/segment.h"
#include "core/xlat.h"

struct xtal_bulk;
struct xtal_fault;
struct xtal_link;
struct xtal_payload;
struct xtal_request;
struct xtal_sharing;

enum xtal_pending_state {
	XTAL_PENDING_NEW,     /* not begun: no byte moved */
	XTAL_PENDING_MESSAGE, /* in the link's requester */
	XTAL_PENDING_BULK,    /* being moved in fragments */
	XTAL_PENDING_NOTIFY,  /* data is there, the notify word is to follow */
};

/* An accepted operation that waits or is under way. Changed under the queue's lock, but for
 * status, progress and done, which the link's lock or the bulk's last finisher writes. */
struct xtal_pending {
	struct xtal_op op;
	struct xtal_queue *queue;
	struct xtal_pending *next; /* in order of posting, but for those parked (stall.c) */
	uint64_t seq;              /* number of the post */
	enum xtal_pending_state state;
	struct xtal_link *link;    /* MESSAGE: a reference */
	struct xtal_bulk *bulk;    /* BULK: a reference */
	uint64_t ask[2];           /* questions to the target: data, notify word; 0: none */
	_Atomic uint64_t progress; /* ns: when it last moved */
	_Atomic uint32_t status;
	_Atomic bool done; /* release: everything of it is in place */
	bool notify_sent;  /* the notify word travels with the message */
	bool counted;      /* in what moved over its path */
	bool told;         /* why it fails was said */
	bool lands;        /* counted in the queue's landing */
	uint8_t tries;     /* a message's, that found no receiver */
	uint64_t pause_ns; /* so long its receiver wants not to be asked; as status */
	uint8_t opcode;    /* as posted; op's is that of the step under way */
	struct xtal_peer peer;
	struct xtal_payload *payload; /* what op.local points into, or NULL */
	uint32_t len;                 /* for the completion */
	uint8_t bytes[16];            /* what op.local points to when a message is short */
	uint32_t lost;   /* what it ends with when its turn comes: the link ended before, or a fault
			* was asked for; or 0 */
	uint32_t doomed; /* tcp: what it ends with once nothing of it can land any more; or 0 */
};

enum xtal_kick_state {
	XTAL_KICK_IDLE,
	XTAL_KICK_QUEUED,
	XTAL_KICK_RUNNING,
	XTAL_KICK_AGAIN
};

/* What every post reads or writes comes first, line by line. */
struct xtal_queue {
	_Alignas(XTAL_CACHE_LINE) struct xtal_bias lock; /* posting and execution */
	bool foreign;
	_Atomic bool busy;    /* first != NULL: a hint for pollers */
	_Atomic bool ticking; /* in the agent's list */
	uint32_t depth, id;
	uint32_t told_id; /* as completions say */
	_Atomic uint64_t accepted;
	uint64_t limit; /* up to here, operations are accepted without a look at those taken */
	struct xtal_pending *first; /* in flight and waiting, oldest first */
	struct xtal_xlats xlats;
	struct xtal_cq cq;
	struct xtal_lane lane;
	_Alignas(XTAL_CACHE_LINE) struct xtal_moved moved[8]; /* by path */
	_Atomic uint64_t failed;

	struct xtal_pending **last;
	struct xtal_pending *start; /* first one in state NEW; equals parked when there is none */
	struct xtal_pending
		*parked; /* first of those whose peer is not ready, to the end; NULL: none */
	struct xtal_pending *spare;
	uint32_t pipeline;
	uint32_t mask;     /* pipelines that may help with long copies */
	uint32_t inflight; /* begun and not retired */
	uint32_t landing;  /* of these, messages whose answers go into local memory */
	const struct xtal_link *flight_link; /* all of them are messages on it; else NULL */
	struct xtal_context *ctx;
	uint64_t timeout_ns;

	struct xtal_list node; /* in ctx->queues */
	struct xtal_list tick_node;
	struct xtal_list wait_node;  /* in wait_link's waiters, under that link's lock */
	struct xtal_link *wait_link; /* a reference; under the queue's lock */
	struct xtal_queue *run_next; /* pipeline: under its lock */
	_Atomic uint64_t wait_for;   /* what, see xtal_link_wait(); under the link's lock */
	enum xtal_kick_state kick;

	void *owner; /* these two as in xtal_queue_attr */
	int (*long_way)(void *owner, enum xtal_opcode opcode, uint64_t *addr, uint64_t *local);

	enum xtal_queue_state state; /* under the lock */
	struct xtal_sharing *share;  /* NULL: it has a completion queue of its own */
	struct xtal_fault *fault;    /* XTAL_FAULT concerns it: posts are admitted one by one */
};

/* What the target must grant for an operation. */
static inline uint32_t xtal_op_rights(uint8_t opcode)
{
	if (opcode == XTAL_OP_WRITE || opcode == XTAL_OP_WRITE_IMM)
		return XTAL_RIGHT_WRITE;
	return opcode == XTAL_OP_READ ? XTAL_RIGHT_READ : XTAL_RIGHT_ATOMIC;
}

/* Single writer (the queue's lock), read by anybody. */
static inline void xtal_bump(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Under the lock. */
static inline void xtal_queue_moved(struct xtal_queue *q, unsigned path, uint64_t len)
{
	xtal_bump(&q->moved[path].ops, 1);
	xtal_bump(&q->moved[path].bytes, len);
}

/* Executes a short operation now. Returns true with *done filled; false: it must wait or be
 * cut; then nothing happened. Under the lock. */
bool xtal_exec_now(struct xtal_queue *q, const struct xtal_op *op, struct xtal_completion *done);
/* Under the lock: the operation that follows those pushed ended so. c is its place in the
 * completion queue, filled but for the queue's own. */
void xtal_queue_complete(struct xtal_queue *q, struct xtal_completion *c);
/* Accepts an operation that is not executed at once; payload becomes its own, or NULL. lost: not
 * 0: it is never executed, and ends so in its turn. Under the lock. Errors: -ENOMEM. */
int xtal_queue_enqueue(struct xtal_queue *q, const struct xtal_op *op, struct xtal_payload *payload,
		       uint32_t lost);
/* Room for one more, and no fault to look for? Under the lock. */
bool xtal_queue_has_room(struct xtal_queue *q);
/* The same for a queue with faults, which never has the room above. */
bool xtal_queue_admits(struct xtal_queue *q);
/* There is no room from now on: posting takes a closer look, and the shortest way is closed. Under
 * the lock. */
static inline void xtal_queue_close_post(struct xtal_queue *q)
{
	q->limit = atomic_load_explicit(&q->accepted, memory_order_relaxed);
}
/* The polling caller's share of the work. */
void xtal_queue_help(struct xtal_queue *q);
/* Begins, continues and retires what can be. Under the lock. */
void xtal_queue_progress(struct xtal_queue *q);
/* Before sleeping: answers must wake the agent now, since nobody polls. */
void xtal_queue_hand_over(struct xtal_queue *q);

/* Queues with a shared completion queue (queue_shared.c); under the lock, but for share, unshare. */
/* Errors: -ENOMEM. */
int xtal_queue_share(struct xtal_queue *q, const struct xtal_queue_attr *attr);
/* Nothing is under way any more. */
void xtal_queue_stop_sharing(struct xtal_queue *q);
/* Forgets what was not polled. Before it is freed, after all that may push. */
void xtal_queue_unshare(struct xtal_queue *q);
/* Whoever polls helps. */
void xtal_queue_enter(struct xtal_queue *q);
/* An operation failed. */
void xtal_queue_stop(struct xtal_queue *q);
/* The queue is stopping: tells when it has. True: that is held back (XTAL_FAULT), ask again. */
bool xtal_queue_settle(struct xtal_queue *q);
/* The agent looks at the queue until it is idle again. */
void xtal_queue_tick_me(struct xtal_queue *q);
/* After p ended well: its data goes to where it was to go. A status. */
uint32_t xtal_payload_deliver(struct xtal_queue *q, const struct xtal_payload *payload);
/* That goes into some byte of the range. */
bool xtal_payload_meets(const struct xtal_payload *payload, uint64_t addr, uint64_t len);
/* Before p begins: its data is taken now, if that had to wait for what came before. False: it still
 * has to. Under the lock. */
bool xtal_payload_is_there(struct xtal_queue *q, struct xtal_pending *p);
/* Something under way will still leave bytes in this range. Under the lock. */
bool xtal_queue_awaits(const struct xtal_queue *q, uint64_t addr, uint64_t len);

/* Begins p. True: it is under way or done; false: it waits, state NEW. Under the lock. */
bool xtal_pending_start(struct xtal_queue *q, struct xtal_pending *p);
/* What has not begun and goes to the link's peer ends with status when its turn comes: not one after
 * another, each after a time limit of its own. Under the lock. */
void xtal_pending_lose(struct xtal_queue *q, const struct xtal_link *link, uint32_t status);
/* The queue waits for a link in vain: what has not begun and would go there ends with status. */
void xtal_pending_give_up(struct xtal_queue *q, uint32_t status);
/* p, which is alone under way and is moved in fragments, goes back to NEW: it is begun once more.
 * Returns its bulk, with p's reference. Under the lock. */
struct xtal_bulk *xtal_pending_again(struct xtal_queue *q, struct xtal_pending *p);
/* p ends with this error: says why, unless that was said (tell.c). */
void xtal_tell_pending(const struct xtal_queue *q, const struct xtal_pending *p, uint32_t status);
/* After p is done: starts its notify word when it has one left. True: retire it. */
bool xtal_pending_finish(struct xtal_queue *q, struct xtal_pending *p);

/* Two-sided operations (send.c), under the lock. */

/* Begins p, as xtal_pending_start(). */
bool xtal_send_start(struct xtal_queue *q, struct xtal_pending *p);
/* Posts and begins one whose data, XTAL_SEND_SHORT bytes or less, lies at data: in a
 * shorter way, if nothing hinders it. False: nothing happened. Under the lock, there is room. */
#define XTAL_SEND_SHORT 16u
bool xtal_send_post_short(struct xtal_queue *q, const struct xtal_op *op, const uint8_t *data);

/* Messages of the queue are under way / nothing is. */
bool xtal_send_is_under_way(const struct xtal_queue *q);
void xtal_send_none_under_way(struct xtal_queue *q);

/* The oldest operation is over and may be a message that was not received. */
enum xtal_send_verdict {
	XTAL_SEND_OVER,  /* it is to be retired */
	XTAL_SEND_WAIT,  /* those that followed it are not back yet */
	XTAL_SEND_AGAIN, /* it and they have not begun any more */
};
enum xtal_send_verdict xtal_send_judge(struct xtal_queue *q, struct xtal_pending *p);

/* The data of a WRITE_IMM is in place. True: p, which is alone, has become the message. */
bool xtal_send_follows_write(struct xtal_queue *q, struct xtal_pending *p);
/* What of it goes into its frames. */
void xtal_send_request(const struct xtal_pending *p, struct xtal_request *out);

/* Faults on request (fault.c). */

/* What XTAL_FAULT says of the next queue of the process: the caller's, to be freed with free();
 * NULL: nothing. Errors: -ENOMEM. */
int xtal_fault_of_queue(struct xtal_fault **out);
/* The context at (eid, port in tid) counts as dead: links that lead there are cut. */
bool xtal_fault_lost(struct xtal_eid eid, uint32_t tid);
/* Under the context's links_lock: the link ends soon, as when its peer died. */
void xtal_fault_cut(struct xtal_link *link);
/* In a forked child: it is a process of its own, from the first queue on. */
void xtal_fault_fork_child(void);

/*
 * Peers that are not ready (stall.c): what is for them is parked behind all else, so that the other
 * peers go on. Under the lock; completions come in the order of posting for each peer.
 */

/* Takes what is due back among what has not begun; all of it in ERROR. */
void xtal_stall_take_back(struct xtal_queue *q);
enum xtal_stall_verdict {
	XTAL_STALL_NONE,   /* begin it */
	XTAL_STALL_PARKED, /* it is out of the way: look at the next */
	XTAL_STALL_WAIT,   /* it may not overtake what is parked */
};
/* p is the oldest that has not begun. */
enum xtal_stall_verdict xtal_stall_look(struct xtal_queue *q, struct xtal_pending *p);

/* A link ended: nothing of this queue may refer to it. */
void xtal_queue_link_lost(struct xtal_queue *q, struct xtal_link *link);

/* The agent's look at all queues with operations in flight. True while there are any. */
bool xtal_queues_tick(uint64_t now);
void xtal_queues_fork_child(struct xtal_context *ctx);
/* On the agent: the queue is no longer looked at. */
void xtal_queue_untick(struct xtal_queue *q);

#endif
