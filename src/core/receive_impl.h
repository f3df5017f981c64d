/* SPDX-License-Identifier: MIT */
/* The bodies of receive queues and endpoints. */
#ifndef XTAL_CORE_RECEIVE_IMPL_H
#define XTAL_CORE_RECEIVE_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/context.h"
#include "core/feed.h"
#include "core/receive.h"

struct xtal_fault;

/* A posted buffer. */
struct xtal_receive {
	uint64_t user;
	uint32_t count;
	struct xtal_sge sge[];
};

struct xtal_receive_queue {
	struct xtal_context *ctx;
	_Atomic uint32_t refs, users; /* users: endpoints */
	uint32_t depth, max_sges, id;
	size_t stride; /* bytes of an entry */
	uint8_t *entries;
	uint64_t mask;
	struct xtal_lock lock; /* all below */
	enum xtal_receive_state state;
	uint64_t head, tail;
	uint64_t era;        /* so often it was RESET: what was taken before goes nowhere */
	uint32_t borrowed;   /* taken in this era by messages that are coming in */
	uint32_t landing[2]; /* pieces that are being put in place, by era's last bit */
	uint32_t limit;      /* fewer: an event; 0: none */
	struct xtal_async_source own, *short_of; /* own, or the front-end's */
	struct xtal_endpoint *flushed; /* ERROR: whose records posted buffers become, or NULL */
	struct xtal_fault *fault;      /* XTAL_FAULT concerns it, or NULL */
};

/* How a message ended, until it is polled. */
struct xtal_receipt {
	uint64_t user, imm;
	struct xtal_eid eid;
	uint32_t tid, id, len;
	uint16_t status;
	uint8_t opcode;
	bool jetty, solicited;
};

/* Locks: lock, then the receive queue's or ring_lock. */
struct xtal_endpoint {
	struct xtal_context *ctx;
	struct xtal_endpoint_attr attr;
	struct xtal_list node; /* in the context's table */
	_Atomic uint32_t refs;
	struct xtal_lock lock; /* held while a message lands */
	bool dead;
	_Atomic bool held;          /* stored under the lock */
	struct xtal_endpoint *twin; /* held when it is, or NULL */
	struct xtal_feed feed;
	struct xtal_lock ring_lock; /* the producers' */
	struct xtal_receipt *ring;
	uint64_t size, head, tail; /* size: a power of two */
	uint64_t reserved;         /* places for messages that are coming in */
	_Atomic bool some;         /* there are receipts: a hint, for a look without the lock */
};

/* All reports of it and its twin were polled, or are another completion queue's. It is held: there
 * will be no more. */
bool xtal_endpoint_polled(struct xtal_endpoint *ep, const struct xtal_shared_cq *cq);

#endif
