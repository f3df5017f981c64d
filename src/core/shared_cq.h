/* SPDX-License-Identifier: MIT */
/*
 * Completion queues that many queues and endpoints share. Nothing is lost: each queue and endpoint
 * keeps its own completions until they are polled here; records of one queue come in its
 * order. Any threads may poll, arm and post at once.
 */
#ifndef XTAL_CORE_SHARED_CQ_H
#define XTAL_CORE_SHARED_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/export.h"
#include "core/op.h"

struct xtal_async_source;
struct xtal_channel;
struct xtal_context;
struct xtal_shared_cq;

enum {
	XTAL_RECORD_RECEIVED = 1, /* of a receive; else of an operation */
	XTAL_RECORD_JETTY = 2,    /* of a queue or endpoint that was created with jetty */
	XTAL_RECORD_SOLICITED = 4,
};

/* How one operation, or one receive, ended. */
struct xtal_record {
	uint64_t user;
	void *owner;       /* of the queue or endpoint, as created */
	uint32_t local_id; /* its id */
	uint32_t len;      /* bytes moved or received; 0 on error */
	uint16_t status;   /* enum xtal_status; SUSPEND_DONE and FLUSH_DONE: user means nothing */
	uint8_t opcode;    /* enum xtal_opcode; of a receive: that of the message */
	uint8_t flags;     /* XTAL_RECORD_... */
	struct xtal_peer peer; /* of an operation */
	uint32_t target;       /* of an operation: as it was posted */
	/* Of a receive: */
	uint64_t imm; /* the immediate value, or the id to be withdrawn */
	struct xtal_eid remote_eid;
	uint32_t remote_tid, remote_id;
	bool remote_jetty;
};

struct xtal_shared_cq_attr {
	struct xtal_channel *channel;     /* where events go; NULL: none. Outlives the queue */
	void *owner;                      /* what xtal_channel_wait() answers */
	uint32_t id;                      /* of its XTAL_ASYNC_CQ_ERROR */
	struct xtal_async_source *source; /* of that event; NULL: it goes with the queue */
	/* More records that are not polled raise that, and are kept even so; 0: as many as come. */
	uint32_t depth;
};

/* Errors: -ENOMEM, -ECHILD. */
XTAL_INTERNAL_API int xtal_shared_cq_create(struct xtal_context *ctx,
					    const struct xtal_shared_cq_attr *attr,
					    struct xtal_shared_cq **out);
/*
 * Events of it that nobody has taken are dropped; for those that were taken it waits until they
 * are acknowledged, or, when wait is false, answers -EAGAIN. Errors: -EBUSY (a queue or
 * endpoint uses it). NULLs *cq on success.
 */
XTAL_INTERNAL_API int xtal_shared_cq_destroy(struct xtal_shared_cq **cq, bool wait);

/*
 * Takes up to count records, without blocking; finding none, does the engine's work for the
 * queues and endpoints here. Returns how many, or -ECHILD.
 */
XTAL_INTERNAL_API int xtal_shared_cq_poll(struct xtal_shared_cq *cq, uint32_t count,
					  struct xtal_record *out);

/* Completions of one queue in their places, one after the other. In registers when returned. */
struct xtal_run {
	const struct xtal_completion *first;
	uint64_t count;
};

/*
 * The short way of polling: at most count completions of one queue, seen in their places. Only those
 * from the first on that are plain may be taken so; all else is for xtal_shared_cq_poll(). When
 * there are any the consumer's lock is held, and xtal_shared_cq_polled() follows.
 */
XTAL_INTERNAL_API struct xtal_run xtal_shared_cq_peek(struct xtal_shared_cq *cq, uint32_t count,
						      const struct xtal_signature **signature);
/* The first taken are taken, 0 or more; count as before. */
XTAL_INTERNAL_API void xtal_shared_cq_polled(struct xtal_shared_cq *cq, uint32_t count,
					     uint32_t taken);

/* A success, and signalled. */
static inline bool xtal_completion_is_plain(const struct xtal_completion *c)
{
	return c->status == XTAL_OK && !(c->flags & XTAL_OP_UNSIGNALLED);
}

/*
 * Once armed, the next completion leaves one event in the channel; one that waits already does so
 * at once. solicited_only: only solicited receives and errors count. Armed for all stays for all.
 * The caller may sleep now: the engine's work is done by its own threads. Errors: -EINVAL (no
 * channel), -ECHILD.
 */
XTAL_INTERNAL_API int xtal_shared_cq_arm(struct xtal_shared_cq *cq, bool solicited_only);

/* For sentences: is it armed, and is there something to poll? */
XTAL_INTERNAL_API void xtal_shared_cq_look(struct xtal_shared_cq *cq, bool *armed, bool *waiting);

/* count events that were taken are dealt with. More than were taken do not count: returns how many
 * did. */
XTAL_INTERNAL_API uint32_t xtal_shared_cq_ack(struct xtal_shared_cq *cq, uint32_t count);

#endif
