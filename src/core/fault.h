/* SPDX-License-Identifier: MIT */
/*
 * Faults on request (XTAL_FAULT), for programs that test how they take them. Queues that no rule
 * concerns have none of this; for the others posts are admitted one by one (post.c, submit.c), so
 * that the fast ways stay as they are.
 */
#ifndef XTAL_CORE_FAULT_H
#define XTAL_CORE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_fault;
struct xtal_op;
struct xtal_queue;

/* A context is about to be opened: the rules hold from now on. Errors: -EINVAL, explained: the
 * setting is not understood. */
int xtal_fault_begin(void);

/* What the rules say of the next receive queue of the process: the caller's, to be freed with
 * free(); NULL: nothing. Errors: -ENOMEM. For queues and links see queue_impl.h. */
int xtal_fault_of_receive_queue(struct xtal_fault **out);

/* Under the queue's lock: op, which is accepted now, ends with this status; 0: it is executed. */
uint32_t xtal_fault_posted(struct xtal_queue *q, const struct xtal_op *op);
/* Under the queue's lock: FLUSH_DONE is due, and must not come yet. */
bool xtal_fault_holds_flush(struct xtal_fault *f);
/* Under the queue's lock: the queue is reset. */
void xtal_fault_flush_over(struct xtal_fault *f);
/* Under the receive queue's lock: a message comes for the number'th receive (from 1), and must not
 * find it. */
bool xtal_fault_withholds(struct xtal_fault *f, uint64_t number);

#endif
