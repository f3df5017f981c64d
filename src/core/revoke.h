/* SPDX-License-Identifier: MIT */
/*
 * Revocation: after the slot's word was bumped, waits until nobody touches the memory any
 * more (DESIGN 4; model: test/model/revoke.pml).
 */
#ifndef XTAL_CORE_REVOKE_H
#define XTAL_CORE_REVOKE_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_context;
struct xtal_moving;
struct xtal_segment;

/* Reads and checks whether the process can run global fences; once. */
void xtal_revoke_setup(void);

/* Every thread of every process of ours that runs has passed a full fence. Partner:
 * xtal_lane_fence() of every executor, xtal_bias_enter(). */
void xtal_revoke_fence(void);

/* True while pages of the segment are being moved. Under a registry's lock. */
bool xtal_revoke_moves(const struct xtal_segment *seg);
/*
 * Calls move(arg) while nobody uses a segment that m concerns: no running peer, no operation of
 * ours; those who come wait, or ask again. Then each (or NULL) for those segments, under their
 * registry's lock. One at a time; holds no lock that anybody takes who was announced. Errors:
 * -EBUSY (a peer does not leave), or move's.
 */
int xtal_revoke_move(const struct xtal_moving *m, int (*move)(void *arg), void *arg,
		     void (*each)(struct xtal_segment *seg));
void xtal_revoke_fork_child(void);

/* Assumes the slot's word of seg changed already. Blocks. */
void xtal_revoke_wait(struct xtal_segment *seg);

#endif
