/* SPDX-License-Identifier: MIT */
/* What endpoints ask of receive queues, and the reverse. */
#ifndef XTAL_CORE_RECEIVE_QUEUE_H
#define XTAL_CORE_RECEIVE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_endpoint;
struct xtal_inbound;
struct xtal_receive_queue;

/* The oldest buffer becomes the message's, until used or return. A status. */
uint32_t xtal_receive_queue_take(struct xtal_receive_queue *rq, struct xtal_inbound *in);
/* Is its state ERROR? */
bool xtal_receive_queue_is_broken(struct xtal_receive_queue *rq);
/* Around each store to the buffer. False: the queue was reset meanwhile, nothing may land there. */
bool xtal_receive_queue_land(struct xtal_receive_queue *rq, const struct xtal_inbound *in);
void xtal_receive_queue_landed(struct xtal_receive_queue *rq, const struct xtal_inbound *in);
/* It was used. False: the queue was reset meanwhile, and nobody is told of the buffer. */
bool xtal_receive_queue_used(struct xtal_receive_queue *rq, const struct xtal_inbound *in);
/* It was not, and is the oldest again; or *flushed, to be put, is whose record it becomes instead. */
void xtal_receive_queue_return(struct xtal_receive_queue *rq, const struct xtal_inbound *in,
			       struct xtal_endpoint **flushed);
void xtal_receive_queue_put(struct xtal_receive_queue *rq);
/* The endpoint goes: nothing is flushed to it any more. */
void xtal_receive_queue_unflush(struct xtal_receive_queue *rq, const struct xtal_endpoint *ep);

/* A posted buffer is handed back unused. Errors: -EAGAIN (most records are not polled yet), -ENOMEM. */
int xtal_endpoint_flushed(struct xtal_endpoint *ep, uint64_t user, uint64_t most);
void xtal_endpoint_get(struct xtal_endpoint *ep);
void xtal_endpoint_put(struct xtal_endpoint *ep);

#endif
