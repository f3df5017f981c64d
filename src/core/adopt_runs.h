/* SPDX-License-Identifier: MIT */
/* The runs of adopted memory: what the mover (adopt.c) and the reader's hooks share. */
#ifndef XTAL_CORE_ADOPT_RUNS_H
#define XTAL_CORE_ADOPT_RUNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/adopt.h"
#include "os/adopt.h"

#define XTAL_MAX_RUNS  512u
#define XTAL_RUN_WORDS 16u /* segments of one run that can be reached by mapping */

enum xtal_run_state {
	XTAL_RUN_FREE,
	XTAL_RUN_MAKING, /* the mover is at it; it may be gone before it is done */
	XTAL_RUN_ADOPTED,
	XTAL_RUN_STUCK, /* could not be undone, but for fork nobody uses it any more */
};

/* The mover's, but for what is said. In static memory, which is never adopted: the reader looks at
 * it at any time. Gate: xtal_os_adopt_lock(). */
struct xtal_adopted {
	enum xtal_run_state state; /* changes under the gate */
	bool gone;                 /* under the gate: the program unmapped or moved some */
	struct xtal_os_run run;
	uint64_t object;
	enum xtal_adopt_cause cause;
	_Atomic uint64_t *words[XTAL_RUN_WORDS]; /* of the slots, under the gate */
};

extern struct xtal_adopted xtal_runs[XTAL_MAX_RUNS];

/* The reader's hooks. Before it reads: what is being done may concern any run. */
bool xtal_runs_before_change(void);
void xtal_runs_change(const struct xtal_os_uffd_event *e);

/* The mover's. */
struct xtal_adopted *xtal_runs_free(void);
/* A run that has a page of [lo, hi). */
struct xtal_adopted *xtal_runs_at(uint64_t lo, uint64_t hi);
void xtal_run_set_state(struct xtal_adopted *a, enum xtal_run_state state);
bool xtal_run_is_gone(const struct xtal_adopted *a);
/* Sets back to live what the reader set to moving, but for runs that are gone. */
void xtal_runs_let_in(void);
const char *xtal_adopt_cause_text(enum xtal_adopt_cause cause);

/* What the two below are about: the run that is being moved, and why it was not, if so. */
void xtal_run_moves(struct xtal_adopted *a, const char *why);
/* The segment, which is moving, is in the run now, or no more. Under its registry's lock. */
void xtal_run_attach(struct xtal_segment *seg);
void xtal_run_detach(struct xtal_segment *seg);

#endif
