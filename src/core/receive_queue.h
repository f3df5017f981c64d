/* SPDX-License-Identifier: MIT */
/* What endpoints ask of receive queues, and the reverse. */
#ifndef XTAL_CORE_RECEIVE_QUEUE_H
#define XTAL_CORE_RECEIVE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_endpoint;
struct xtal_inbound;
struct xtal_receive_queue;

/* The oldest buffer becomes the message's, until one of the next two. A status. */
uint32_t xtal_receive_queue_take(struct xtal_receive_queue *rq, struct xtal_inbound *in);
/* It was used. */
void xtal_receive_queue_used(struct xtal_receive_queue *rq);
/* It was not, and is the oldest again. False: it is to be flushed instead. */
bool xtal_receive_queue_return(struct xtal_receive_queue *rq, const struct xtal_inbound *in);
void xtal_receive_queue_put(struct xtal_receive_queue *rq);

/* A posted buffer is handed back unused. */
void xtal_endpoint_flushed(struct xtal_endpoint *ep, uint64_t user);

#endif
