/* SPDX-License-Identifier: MIT */
/* The bodies of shared completion queues and event channels. */
#ifndef XTAL_CORE_SHARED_CQ_IMPL_H
#define XTAL_CORE_SHARED_CQ_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/bias.h"
#include "core/context.h"
#include "core/feed.h"
#include "core/shared_cq.h"

struct xtal_channel {
	struct xtal_context *ctx;
	_Atomic uint32_t users;         /* completion queues */
	struct xtal_event_queue *fired; /* completion queues with events */
};

/* Locks: consumer, a producers' lock, channel->fired->lock. */
struct xtal_shared_cq {
	struct xtal_context *ctx;
	void *owner;
	struct xtal_channel *channel;
	uint32_t depth;             /* more records that wait: an event; 0: nothing is counted */
	_Atomic uint32_t users;     /* feeds */
	_Atomic uint32_t receivers; /* of them, endpoints */
	_Atomic uint32_t armed;     /* the weight that fires; 0: not armed */
	/* consumer */
	_Alignas(XTAL_CACHE_LINE) struct xtal_bias consumer;
	struct xtal_list listed;
	uint32_t listed_count;
	/* producers push, the consumer takes all */
	_Alignas(XTAL_CACHE_LINE) _Atomic(struct xtal_feed *) incoming;
	/* under the channel's lock */
	struct xtal_list node;
	uint32_t events; /* not taken yet */
	_Atomic uint32_t taken;
	atomic_uint acked;                      /* futex word */
	struct xtal_async_source own, *overrun; /* own, or the front-end's */
	uint32_t id;
	_Atomic uint32_t waiting; /* of all feeds */
};

/* One event of cq in its channel. Under a producers' lock or the consumer's. */
void xtal_channel_fire(struct xtal_shared_cq *cq);
/* Drops the events of cq that were not taken. */
void xtal_channel_forget(struct xtal_shared_cq *cq);

#endif
