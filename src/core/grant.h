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
	uint32_t token, rights, slot;
	bool token_valid;
	uint64_t word;
	const _Atomic uint64_t *slot_word;
	struct xtal_reach reach;
	uint32_t path; /* enum xtal_path_kind, for counters and queries */
	struct xtal_window *window;
	char map_text[160]; /* why it is (not) mapped */
};

/* A question to the target that is under way. */
struct xtal_resolve {
	struct xtal_list node;
	uint64_t id, addr, len;
	uint32_t token, rights;
	bool token_valid, sent;
};

/* A refusal that the target gave, kept until some more have come: those who asked find it. */
struct xtal_denial {
	uint64_t id; /* of the question */
	uint32_t status;
	bool retry;
	char text[160];
};

#endif
