/* SPDX-License-Identifier: MIT */
/*
 * What the files of the CDMA front-end share: the private structs around the public ones, the
 * registry of live lists and contexts, and words for the log. Checks and translation only;
 * whatever moves bytes is the core's.
 */
#ifndef XTAL_CDMA_H
#define XTAL_CDMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The 19 functions are all that leaves the library. */
#pragma GCC visibility push(default)
#include "cdma_u_lib.h"
#pragma GCC visibility pop

#include "base/list.h"
#include "core/context.h"
#include "core/log.h"
#include "core/op.h"

#define CDMA_TAG      "CDMA_LOG_TAG"
#define CDMA_TID_MASK 0xfffffu

/* Refuses in words: function, object, value, limit. */
#define cdma_refuse(...) (cdma_log_start(), xtal_refuse(CDMA_TAG, __VA_ARGS__))

/* Reads CDMA_LOG_LEVEL and logs the version, once. Called before the first word is logged. */
void cdma_log_start(void);

/* Why the core could not make an object: its own words, or what the negative errno value means. */
const char *cdma_reason(int error);

/* A list that the program holds, or that contexts still point into. */
struct cdma_list {
	struct xtal_list link;
	uint32_t count;
	unsigned users; /* contexts made from its entries */
	bool freed;     /* by the program: goes with the last user */
	struct dma_device entries[];
};

/* Who keeps a context alive. */
enum cdma_holder {
	CDMA_BY_CALL,
	CDMA_BY_QUEUE,
	CDMA_BY_SEGMENT,
};
#define CDMA_HOLDERS 3

struct cdma_segment;
struct xtal_queue;
struct xtal_segment;

struct cdma_context {
	struct dma_context pub;
	struct xtal_context *core; /* NULL while it is being opened */
	/* All below: under the registry's lock. */
	struct xtal_list link;
	struct cdma_list *list; /* that pub.dma_dev points into, or NULL */
	int entry_fd;           /* of the device entry; -1: the list was freed */
	bool deleted;           /* by the program: goes with the last holder */
	unsigned held[CDMA_HOLDERS];
	struct cdma_segment **slots; /* by segment id */
	uint32_t slot_count;
	struct cdma_segment *orphans; /* structs whose registration was withdrawn by a copy */
};

struct cdma_queue {
	struct dma_queue pub;
	struct xtal_queue *core;
	uint32_t magic;           /* CDMA_QUEUE_MAGIC, or CDMA_QUEUE_CHECKED, while alive */
	uint32_t made_dw0;        /* the rmt_eid it was made with */
	struct xtal_eid made_eid; /* what that stands for */
	struct xtal_eid own_eid;  /* its device's address */
	uint32_t own_tid;         /* the context's */
	struct cdma_context *ctx;
	bool strict;              /* XTAL_STRICT */
	atomic_bool was_full;     /* said so in the log */
	atomic_bool was_foreign;  /* a local segment of another context: said so */
	struct xtal_check *check; /* XTAL_CHECK, or NULL */
};
#define CDMA_QUEUE_MAGIC 0x43515545u
/* The same where XTAL_CHECK or XTAL_STRICT looks at the calls first (check.h). */
#define CDMA_QUEUE_CHECKED 0x63515545u

static inline bool cdma_queue_lives(const struct cdma_queue *q)
{
	return q->magic == CDMA_QUEUE_MAGIC || q->magic == CDMA_QUEUE_CHECKED;
}

struct cdma_segment {
	struct dma_seg pub; /* the program may change it */
	struct xtal_segment *core;
	uint64_t addr, len, handle; /* as registered */
	struct cdma_segment *next;  /* of the orphans */
};

/* The lock over lists, contexts and what they own; held for a few instructions. */
void cdma_registry_lock(void);
void cdma_registry_unlock(void);

/* The list with an entry at dev, one more user; NULL: dev is a copy. Lock held. */
struct cdma_list *cdma_list_use(const struct dma_device *dev);
/* One user less. Returns the list when it is to be freed by the caller. Lock held. */
struct cdma_list *cdma_list_unuse(struct cdma_list *list);
/* The entries of a list are about to lose their descriptors. Returns how many contexts made
 * from them live on. Lock held. */
unsigned cdma_context_detach(const struct cdma_list *list);

/*
 * The live context behind a pointer from the program, kept alive for the holder. NULL after a
 * refusal in the name of function: it is NULL, unknown, deleted, or the parent's of a fork.
 */
struct cdma_context *cdma_context_get(const struct dma_context *ctx, enum cdma_holder holder,
				      const char *function);
/* The same, for withdrawing: also a deleted context that still has children. */
struct cdma_context *cdma_context_get_any(const struct dma_context *ctx, enum cdma_holder holder,
					  const char *function);
void cdma_context_put(struct cdma_context *c, enum cdma_holder holder);

/* Calls fn for every context, lock held. Stops when fn returns true, and returns that. */
bool cdma_context_any(bool (*fn)(struct cdma_context *c, const void *arg), const void *arg);

static inline struct cdma_queue *cdma_queue_of(struct dma_queue *queue)
{
	return (struct cdma_queue *)(void *)queue; /* pub comes first */
}
/* attr.long_way of the core's queues. */
int cdma_post_long(void *owner, enum xtal_opcode opcode, uint64_t *addr, uint64_t *local);

_Static_assert(offsetof(struct cdma_queue, pub) == 0, "the public struct is the head");
_Static_assert(offsetof(struct cdma_context, pub) == 0, "the public struct is the head");
_Static_assert(offsetof(struct cdma_segment, pub) == 0, "the public struct is the head");

#endif
