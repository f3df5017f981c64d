/* SPDX-License-Identifier: MIT */
/*
 * The receiving half of two-sided messages: receive queues hold buffers, endpoints are what
 * messages are addressed to. Endpoints may share a receive queue; buffers are used in the order of
 * posting. A message that finds none is held back by its sender and tried again.
 */
#ifndef XTAL_CORE_RECEIVE_H
#define XTAL_CORE_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/op.h"

struct xtal_context;
struct xtal_async_source;
struct xtal_endpoint;
struct xtal_receive_queue;
struct xtal_shared_cq;

struct xtal_receive_queue_attr {
	uint32_t depth;    /* buffers posted and not used, 1..XTAL_MAX_QUEUE_DEPTH */
	uint32_t max_sges; /* pieces of one buffer, 1..XTAL_MAX_RECEIVE_SGES */
	/* Buffers fell below the limit (xtal_receive_queue_set_limit): XTAL_ASYNC_RECEIVE_LIMIT is
	 * raised with this id. */
	uint32_t id;
	struct xtal_async_source *source; /* of that event; NULL: it goes with the queue */
};

/* Errors: -EINVAL, -ENOMEM, -ECHILD. */
XTAL_INTERNAL_API int xtal_receive_queue_create(struct xtal_context *ctx,
						const struct xtal_receive_queue_attr *attr,
						struct xtal_receive_queue **out);
/* Errors: -EBUSY while an endpoint uses it. Forgets what is posted. NULLs *rq on success. */
XTAL_INTERNAL_API int xtal_receive_queue_destroy(struct xtal_receive_queue **rq);

/*
 * Posts one buffer, of count pieces in the program's memory (registered or not), which is
 * written by messages until its record is polled. user: for the record. In ERROR it is flushed at
 * once. Errors: -EINVAL (more pieces than max_sges), -EAGAIN (full; in ERROR: depth records are not
 * polled), -ENOMEM (in ERROR), -ENOTCONN (RESET), -ECHILD.
 */
XTAL_INTERNAL_API int xtal_receive_queue_post(struct xtal_receive_queue *rq,
					      const struct xtal_sge *sges, uint32_t count,
					      uint64_t user);
/* Buffers posted and not used. */
XTAL_INTERNAL_API uint32_t xtal_receive_queue_posted(struct xtal_receive_queue *rq);
/* One event when fewer than limit buffers are left; 0: none. */
XTAL_INTERNAL_API void xtal_receive_queue_set_limit(struct xtal_receive_queue *rq, uint32_t limit);

enum xtal_receive_state {
	XTAL_RECEIVE_RESET = 0,
	XTAL_RECEIVE_READY = 1,
	XTAL_RECEIVE_ERROR = 2, /* messages fail at their senders; buffers are flushed */
};
/*
 * flushed: whose records (status FLUSHED) the posted buffers become when the state gets ERROR, and
 * those that are posted while it is; NULL: they are forgotten. A message that is coming in then is
 * received yet. RESET: it fails at its sender, and no byte of a buffer changes after the call.
 * Errors: -EPERM for READY to RESET, RESET to ERROR, ERROR to READY.
 */
XTAL_INTERNAL_API int xtal_receive_queue_set_state(struct xtal_receive_queue *rq,
						   enum xtal_receive_state state,
						   struct xtal_endpoint *flushed);

struct xtal_endpoint_attr {
	uint32_t id;        /* unique among the context's endpoints of its kind, but for sharing */
	uint32_t record_id; /* what its records call it; 0: id */
	bool jetty;
	uint32_t token;
	bool token_valid; /* false: any token, or none, is accepted */
	/* Several endpoints of a kind may share an id: which one gets a message? */
	enum xtal_endpoint_sharing {
		XTAL_ENDPOINT_ALONE = 0,
		XTAL_ENDPOINT_IN_TURN = 1, /* of those that are not held, if there are any */
		XTAL_ENDPOINT_BY_HINT = 2, /* the op's, modulo their number, oldest first */
	} sharing;
	/* It is this one under another id, and held when this one is; destroyed before it. Or NULL. */
	struct xtal_endpoint *twin_of;
	uint32_t rnr_us; /* without a buffer, senders wait at least so long; 0: as they like */
	struct xtal_receive_queue *rq;
	struct xtal_shared_cq *cq; /* where receives are reported */
	void *owner;               /* the front-end's; in each record */
};

/* Errors: -EEXIST (the id; both do not share it), -ENOMEM, -ECHILD. */
XTAL_INTERNAL_API int xtal_endpoint_create(struct xtal_context *ctx,
					   const struct xtal_endpoint_attr *attr,
					   struct xtal_endpoint **out);
/* Messages to it fail from now on; records that were not polled are gone. NULLs *endpoint. */
XTAL_INTERNAL_API void xtal_endpoint_destroy(struct xtal_endpoint **endpoint);
/* True: messages to it are held back by their senders, as without a buffer; nothing is reported from
 * then on. */
XTAL_INTERNAL_API void xtal_endpoint_hold(struct xtal_endpoint *endpoint, bool hold);

#endif
