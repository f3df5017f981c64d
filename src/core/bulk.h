/* SPDX-License-Identifier: MIT */
/*
 * Long copies, cut into fragments that pipeline workers and the polling caller claim and
 * execute together; whoever finishes the last one stores the last word (model:
 * test/model/fragments.pml).
 */
#ifndef XTAL_CORE_BULK_H
#define XTAL_CORE_BULK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/op.h"
#include "core/xlat.h"

struct xtal_bulk;
struct xtal_pending;

/* Begins the copy that p asks for, over a direct path. Errors: -ENOMEM. Under the queue's
 * lock. p->bulk holds a reference. */
int xtal_bulk_start(struct xtal_pending *p, const struct xtal_xlat *t, const struct xtal_local *l);
/* The link over which it goes; valid while the bulk is. */
struct xtal_link *xtal_bulk_link(const struct xtal_bulk *b);
void xtal_bulk_get(struct xtal_bulk *b);
void xtal_bulk_put(struct xtal_bulk *b);

/* In a forked child: the copies of the parent are not ours. */
void xtal_bulks_fork_child(void);

/* Moves at most one fragment. Returns true when it moved one. */
bool xtal_bulk_help(struct xtal_bulk *b, bool poller);
/* The oldest bulk with fragments left that this pipeline may work on, with a reference. */
struct xtal_bulk *xtal_bulk_next(uint32_t pipeline);

#endif
