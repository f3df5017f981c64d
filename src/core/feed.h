/* SPDX-License-Identifier: MIT */
/*
 * What a shared completion queue takes from: a queue or an endpoint, which keeps its completions
 * until they are polled. One that has some, or work to do, stands in the completion queue's list;
 * it enters by itself, and leaves when the consumer finds it empty. Its producers' lock
 * is the queue's or the endpoint's own.
 */
#ifndef XTAL_CORE_FEED_H
#define XTAL_CORE_FEED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct xtal_cq;
struct xtal_record;
struct xtal_shared_cq;
struct xtal_signature;
struct xtal_feed;

/* What a completion means to an armed queue: it fires when the weight reaches what it waits for. */
enum xtal_weight {
	XTAL_WEIGHT_NONE = 0,  /* nobody hears of it */
	XTAL_WEIGHT_PLAIN = 1, /* armed for all */
	XTAL_WEIGHT_HEAVY = 2, /* an error, or solicited */
};

/* All under the consumer's lock; those that say so take the producers'. */
struct xtal_feed_ops {
	/* Takes up to count. */
	uint32_t (*take)(struct xtal_feed *s, uint32_t count, struct xtal_record *out);
	/* The polling caller's share of its work; producers' lock. */
	void (*help)(struct xtal_feed *s);
	/* From now on its producers call xtal_feed_pushed(). The heaviest that waits; producers' lock. */
	enum xtal_weight (*watch)(struct xtal_feed *s);
	/* Sets s->listed to false if it has nothing and does nothing; producers' lock. */
	bool (*leave)(struct xtal_feed *s);
	/* Nobody polls now; producers' lock. */
	void (*hand_over)(struct xtal_feed *s);
};

struct xtal_feed {
	struct xtal_shared_cq *cq; /* NULL: it has none */
	struct xtal_cq *places;    /* where its completions can be seen without a copy, or NULL */
	const struct xtal_signature *signature; /* what all of those say */
	const struct xtal_feed_ops *ops;
	_Atomic uint32_t waiting;   /* records that are not polled, where they are counted */
	bool listed;                /* producers' lock */
	struct xtal_feed *incoming; /* the next one that has entered */
	struct xtal_list node;      /* consumer's lock */
};

void xtal_feed_attach(struct xtal_feed *s, struct xtal_shared_cq *cq,
		      const struct xtal_feed_ops *ops);
/* Nothing is pushed any more: forgets what was not polled. */
void xtal_feed_detach(struct xtal_feed *s);

/* Under the producers' lock: enters the list. */
void xtal_feed_enter(struct xtal_feed *s);
/* Under the producers' lock: a completion of this weight was pushed. True: the next one is to be
 * told of too. */
bool xtal_feed_pushed(struct xtal_feed *s, enum xtal_weight weight);

/* Under the consumer's lock: what waits was thrown away. */
void xtal_feed_dropped(struct xtal_feed *s);

/* The lock of whoever takes. Before the producers' lock. */
void xtal_feed_lock(struct xtal_feed *s);
void xtal_feed_unlock(struct xtal_feed *s);

#endif
