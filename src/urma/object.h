/* SPDX-License-Identifier: MIT */
/*
 * The register of live objects: whether a pointer that a program hands in is one of ours, without
 * looking at what it points to. One lock, held for a few instructions, also orders their counts.
 */
#ifndef XTAL_URMA_OBJECT_H
#define XTAL_URMA_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/context.h"

enum ub_kind {
	UB_CONTEXT,
	UB_JFCE,
	UB_JFC,
	UB_JFS,
	UB_JFR,
	UB_JETTY,
	UB_GROUP,
	UB_TOKEN_ID,
	UB_SEGMENT,  /* registered */
	UB_IMPORTED, /* segment */
	UB_TARGET,   /* imported jetty, group or receive queue */
	UB_NOTIFIER,
};

/* Part of each of our structs. */
struct ub_node {
	struct ub_node *next;
	const void *pub; /* as the program knows it */
	enum ub_kind kind;
	atomic_uint inside; /* calls that wait: it is not freed before they have left */
};

void ub_enlist(struct ub_node *node, const void *pub, enum ub_kind kind);
/* False: it is gone already (somebody else was faster). */
bool ub_delist(struct ub_node *node);

/* True when pub is a live object of that kind. */
bool ub_live(const void *pub, enum ub_kind kind);
/* The same, or a refusal in the name of the function: it is NULL, or not live. */
bool ub_check(const char *function, const void *pub, enum ub_kind kind);

/* The same for a call that waits: the node of the object, to be left, or NULL after a refusal. */
struct ub_node *ub_enter(const char *function, const void *pub, enum ub_kind kind);
void ub_leave(struct ub_node *node);
/* The same for a thread that is cancelled while it waits. */
void ub_leave_cancelled(void *node);
/* It is delisted, and who waits was told: until all have left. */
void ub_drain(struct ub_node *node);

/* The name of a kind, for people. */
const char *ub_kind_name(enum ub_kind kind);

/* Calls fn for each object, under the lock, until it returns true; returns that. */
bool ub_each(bool (*fn)(struct ub_node *node, void *arg), void *arg);

void ub_lock(void);
void ub_unlock(void);

/* Asynchronous events of an object: one that waits; how many programs took, and acknowledged. */
struct ub_acks {
	struct xtal_async_source source;
	atomic_uint taken, acked;
};
void ub_acks_init(struct ub_acks *acks);
void ub_acks_ack(struct ub_acks *acks);
/* Waits until all are acknowledged; says so in the log when it takes long. */
void ub_acks_wait(struct ub_acks *acks, const char *function);

#endif
