/* SPDX-License-Identifier: MIT */
/* Receive queues: posted buffers, in order. See receive.h. */
#include "core/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/context_impl.h"
#include "core/fault.h"
#include "core/inbound.h"
#include "core/log.h"
#include "core/receive_impl.h"
#include "core/receive_queue.h"
#include "os/proc.h"
#include "xtal.h"

static struct xtal_receive *entry(struct xtal_receive_queue *rq, uint64_t i)
{
	return (struct xtal_receive *)(void *)(rq->entries + (i & rq->mask) * rq->stride);
}

int xtal_receive_queue_create(struct xtal_context *ctx, const struct xtal_receive_queue_attr *attr,
			      struct xtal_receive_queue **out)
{
	struct xtal_receive_queue *rq;
	uint64_t size = 1;

	if (ctx->foreign)
		return -ECHILD;
	if (!attr->depth || attr->depth > XTAL_MAX_QUEUE_DEPTH || !attr->max_sges ||
	    attr->max_sges > XTAL_MAX_RECEIVE_SGES) {
		xtal_explain("receive queue of depth %u with %u pieces: the depth must be 1 to %u, "
			     "the pieces 1 to %u",
			     attr->depth, attr->max_sges, XTAL_MAX_QUEUE_DEPTH,
			     XTAL_MAX_RECEIVE_SGES);
		return -EINVAL;
	}
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return -ENOMEM;
	while (size < attr->depth)
		size *= 2;
	rq->ctx = ctx;
	rq->depth = attr->depth;
	rq->max_sges = attr->max_sges;
	rq->id = attr->id;
	xtal_async_source_init(&rq->own);
	rq->short_of = attr->source ? attr->source : &rq->own;
	rq->mask = size - 1;
	rq->state = XTAL_RECEIVE_READY;
	rq->stride = sizeof(struct xtal_receive) + attr->max_sges * sizeof(struct xtal_sge);
	/* Pages that are never used are never there. */
	rq->entries = calloc(size, rq->stride);
	atomic_store(&rq->refs, 1);
	if (!rq->entries || xtal_fault_of_receive_queue(&rq->fault)) {
		free(rq->entries);
		free(rq);
		return -ENOMEM;
	}
	atomic_fetch_add(&ctx->receive_queue_count, 1);
	*out = rq;
	return 0;
}

void xtal_receive_queue_put(struct xtal_receive_queue *rq)
{
	if (atomic_fetch_sub_explicit(&rq->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(rq->entries);
	free(rq->fault);
	free(rq);
}

int xtal_receive_queue_destroy(struct xtal_receive_queue **rqp)
{
	struct xtal_receive_queue *rq = *rqp;

	if (atomic_load(&rq->users) && !rq->ctx->foreign)
		return -EBUSY;
	*rqp = NULL;
	if (!rq->ctx->foreign) {
		xtal_context_forget(rq->ctx, &rq->own);
		atomic_fetch_sub(&rq->ctx->receive_queue_count, 1);
	}
	xtal_receive_queue_put(rq);
	return 0;
}

int xtal_receive_queue_post(struct xtal_receive_queue *rq, const struct xtal_sge *sges,
			    uint32_t count, uint64_t user)
{
	struct xtal_endpoint *flushed = NULL;
	int err = 0;

	if (rq->ctx->foreign)
		return -ECHILD;
	if (count > rq->max_sges)
		return -EINVAL;
	xtal_lock(&rq->lock);
	if (rq->state == XTAL_RECEIVE_RESET) {
		err = -ENOTCONN;
	} else if (rq->state == XTAL_RECEIVE_ERROR) {
		flushed = rq->flushed;
		if (flushed)
			xtal_endpoint_get(flushed);
	} else if (rq->tail - rq->head + rq->borrowed == rq->depth) {
		err = -EAGAIN;
	} else {
		struct xtal_receive *r = entry(rq, rq->tail++);

		r->user = user;
		r->count = count;
		for (uint32_t i = 0; i < count; i++)
			r->sge[i] = sges[i];
	}
	xtal_unlock(&rq->lock);
	if (flushed) { /* whose lock comes before ours */
		err = xtal_endpoint_flushed(flushed, user, rq->depth);
		xtal_endpoint_put(flushed);
	}
	return err;
}

uint32_t xtal_receive_queue_posted(struct xtal_receive_queue *rq)
{
	uint32_t n;

	if (rq->ctx->foreign)
		return 0;
	xtal_lock(&rq->lock);
	n = (uint32_t)(rq->tail - rq->head);
	xtal_unlock(&rq->lock);
	return n;
}

/* Under the lock. True: the event is due. */
static bool below_limit(struct xtal_receive_queue *rq)
{
	if (!rq->limit || rq->tail - rq->head >= rq->limit)
		return false;
	rq->limit = 0;
	return true;
}

void xtal_receive_queue_set_limit(struct xtal_receive_queue *rq, uint32_t limit)
{
	bool tell;

	if (rq->ctx->foreign)
		return;
	xtal_lock(&rq->lock);
	rq->limit = limit;
	tell = below_limit(rq);
	xtal_unlock(&rq->lock);
	if (tell)
		xtal_context_raise(rq->ctx, rq->short_of, XTAL_ASYNC_RECEIVE_LIMIT, rq->id);
}

uint32_t xtal_receive_queue_take(struct xtal_receive_queue *rq, struct xtal_inbound *in)
{
	uint32_t status = XTAL_OK;
	bool tell = false;

	xtal_lock(&rq->lock);
	if (rq->state == XTAL_RECEIVE_ERROR) {
		status = XTAL_REMOTE_OPERATION;
	} else if (rq->head == rq->tail ||
		   (rq->fault && xtal_fault_withholds(rq->fault, rq->head + 1))) {
		status = XTAL_NOT_READY;
	} else {
		const struct xtal_receive *r = entry(rq, rq->head++);

		in->user = r->user;
		in->era = rq->era;
		in->count = r->count;
		memcpy(in->sge, r->sge, r->count * sizeof(r->sge[0]));
		rq->borrowed++;
		atomic_fetch_add_explicit(&rq->refs, 1, memory_order_relaxed);
		tell = below_limit(rq);
	}
	xtal_unlock(&rq->lock);
	if (tell)
		xtal_context_raise(rq->ctx, rq->short_of, XTAL_ASYNC_RECEIVE_LIMIT, rq->id);
	return status;
}

bool xtal_receive_queue_is_broken(struct xtal_receive_queue *rq)
{
	bool broken;

	xtal_lock(&rq->lock);
	broken = rq->state == XTAL_RECEIVE_ERROR;
	xtal_unlock(&rq->lock);
	return broken;
}

bool xtal_receive_queue_land(struct xtal_receive_queue *rq, const struct xtal_inbound *in)
{
	bool may;

	xtal_lock(&rq->lock);
	may = rq->era == in->era;
	if (may)
		rq->landing[in->era & 1]++;
	xtal_unlock(&rq->lock);
	return may;
}

void xtal_receive_queue_landed(struct xtal_receive_queue *rq, const struct xtal_inbound *in)
{
	xtal_lock(&rq->lock);
	rq->landing[in->era & 1]--;
	xtal_unlock(&rq->lock);
}

bool xtal_receive_queue_used(struct xtal_receive_queue *rq, const struct xtal_inbound *in)
{
	bool mine;

	xtal_lock(&rq->lock);
	mine = rq->era == in->era;
	if (mine)
		rq->borrowed--;
	xtal_unlock(&rq->lock);
	xtal_receive_queue_put(rq);
	return mine;
}

void xtal_receive_queue_return(struct xtal_receive_queue *rq, const struct xtal_inbound *in,
			       struct xtal_endpoint **flushed)
{
	bool mine;

	xtal_lock(&rq->lock);
	mine = rq->era == in->era; /* else a reset has forgotten it */
	if (mine)
		rq->borrowed--;
	*flushed = mine && rq->state == XTAL_RECEIVE_ERROR ? rq->flushed : NULL;
	if (*flushed)
		xtal_endpoint_get(*flushed);
	if (mine && rq->state == XTAL_RECEIVE_READY) {
		struct xtal_receive *r = entry(rq, --rq->head);

		r->user = in->user;
		r->count = in->count;
		memcpy(r->sge, in->sge, in->count * sizeof(in->sge[0]));
	}
	xtal_unlock(&rq->lock);
	xtal_receive_queue_put(rq);
}

void xtal_receive_queue_unflush(struct xtal_receive_queue *rq, const struct xtal_endpoint *ep)
{
	xtal_lock(&rq->lock);
	if (rq->flushed == ep)
		rq->flushed = NULL;
	xtal_unlock(&rq->lock);
}

/* Under the lock: an era is over. Until nothing lands in its buffers any more; the state is RESET. */
static void end_era(struct xtal_receive_queue *rq)
{
	const unsigned old = rq->era++ & 1;

	rq->borrowed = 0;
	while (rq->landing[old]) {
		xtal_unlock(&rq->lock);
		xtal_os_sleep_ns(10000);
		xtal_lock(&rq->lock);
	}
}

static bool may_become(enum xtal_receive_state from, enum xtal_receive_state to)
{
	switch (to) {
	case XTAL_RECEIVE_RESET:
		return from == XTAL_RECEIVE_ERROR;
	case XTAL_RECEIVE_READY:
		return from == XTAL_RECEIVE_RESET;
	case XTAL_RECEIVE_ERROR:
		return from == XTAL_RECEIVE_READY;
	}
	return false;
}

int xtal_receive_queue_set_state(struct xtal_receive_queue *rq, enum xtal_receive_state state,
				 struct xtal_endpoint *flushed)
{
	if (rq->ctx->foreign)
		return -ECHILD;
	xtal_lock(&rq->lock);
	if (rq->state == state || !may_become(rq->state, state)) {
		int err = rq->state == state ? 0 : -EPERM;

		xtal_unlock(&rq->lock);
		return err;
	}
	rq->state = state;
	rq->flushed = state == XTAL_RECEIVE_ERROR ? flushed : NULL;
	/* In ERROR nothing is taken any more: the rest is ours. */
	while (state != XTAL_RECEIVE_READY && rq->head != rq->tail) {
		uint64_t user = entry(rq, rq->head++)->user;

		if (!flushed || state != XTAL_RECEIVE_ERROR)
			continue;
		xtal_unlock(&rq->lock);
		xtal_endpoint_flushed(flushed, user, UINT64_MAX);
		xtal_lock(&rq->lock);
	}
	if (state == XTAL_RECEIVE_RESET)
		end_era(rq);
	xtal_unlock(&rq->lock);
	return 0;
}
