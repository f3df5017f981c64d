/* SPDX-License-Identifier: MIT */
/* What a target has answered to a link's questions: grants, the mappings behind them, denials. */
#ifndef XTAL_CORE_GRANT_H
#define XTAL_CORE_GRANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "path/path.h"

struct xtal_link;
struct xtal_queue;
struct xtal_remote;

/* A mapping of (a part of) a peer's object. */
struct xtal_window {
	struct xtal_list node;
	uint32_t refs;
	uint64_t object, offset, len;
	bool writable;
	bool sealed; /* what was mapped cannot shrink */
	void *addr;
};

/* What the target has allowed: a whole segment. */
struct xtal_grant {
	_Atomic uint32_t refs;
	struct xtal_link *link;
	uint64_t lo, hi;
	uint32_t token, index, rights, slot;
	bool token_valid;
	uint64_t word;
	const _Atomic uint64_t *slot_word;
	struct xtal_reach reach;
	uint32_t path; /* enum xtal_path_kind, for counters and queries */
	struct xtal_window *window;
	char map_text[160];     /* why it is (not) mapped */
	_Atomic uint32_t small; /* short operations by cma or ring so far */
};

/* A question to the target that is under way. */
struct xtal_resolve {
	struct xtal_list node;
	uint64_t id, addr, len;
	uint32_t token, index, rights;
	bool token_valid, sent;
	bool hot; /* a hint only: the answer is not used */
};

/* A refusal that the target gave, kept until some more have come: those who asked find it. */
struct xtal_denial {
	uint64_t id; /* of the question */
	uint32_t status;
	bool retry;
	char text[160];
};

/*
 * A grant for the access, with a reference. *ask: 0, or what an earlier call left there for
 * the same operation. Returns 0; -EINPROGRESS: asked, the queue is now in the link's list of
 * waiters and is kicked later (waiter NULL: ask again yourself); or a positive status (text
 * tells why). Under the waiter's lock.
 */
int xtal_link_resolve(struct xtal_link *link, const struct xtal_remote *remote, uint64_t len,
		      uint32_t rights, struct xtal_queue *waiter, uint64_t *ask,
		      struct xtal_grant **out, char *text, size_t text_size);
void xtal_grant_put(struct xtal_grant *grant);
/* Puts a new grant into the link's set (which holds a reference to it). Errors: -ENOMEM. Under
 * the link's lock. */
int xtal_link_keep(struct xtal_link *link, struct xtal_grant *grant);
/* The slot's word changed: the grant is not handed out again. */
void xtal_link_forget(struct xtal_grant *grant);
/* The kernel has refused with err what it did before by this grant. True: cma was the way, which this
 * link no longer goes; forget the grant and ask again. By anybody who holds the grant. */
bool xtal_grant_cma_ended(struct xtal_grant *grant, int err);

/* A short operation more over a path that adoption would spare: now and then the owner is told.
 * By anybody who holds the grant. */
#define XTAL_GRANT_SMALL (4u * 1024) /* bytes that are short */
void xtal_grant_used(struct xtal_grant *grant);

/* Keeps the refusal for those who asked. Under the link's lock. */
void xtal_link_deny(struct xtal_link *link, uint64_t id, uint32_t status, bool retry,
		    const char *text);
/* At the link's last reference: frees its grants and questions. */
void xtal_grants_free(struct xtal_link *link);

#endif
