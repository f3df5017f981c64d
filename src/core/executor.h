/* SPDX-License-Identifier: MIT */
/*
 * What peers' messages ask for, executed for a context of ours, in the lane of whoever executes. The
 * statuses are those that the target answers.
 */
#ifndef XTAL_CORE_EXECUTOR_H
#define XTAL_CORE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/responder.h"

struct xtal_access;
struct xtal_context;
struct xtal_found;
struct xtal_inbound;
struct xtal_lane;

/* A piece of a WRITE whose payload is all there, and the notify word behind the last one. */
uint32_t xtal_execute_write(struct xtal_context *ctx, struct xtal_lane *lane,
			    const struct xtal_responder_effect *e, const uint8_t *payload);
/* Old values in old. */
uint32_t xtal_execute_atomic(struct xtal_context *ctx, struct xtal_lane *lane,
			     const struct xtal_responder_effect *e, uint64_t old[2]);
/* Copies the data of a READ into out. */
uint32_t xtal_execute_read(struct xtal_context *ctx, struct xtal_lane *lane,
			   const struct xtal_responder_effect *e, uint8_t *out);

/*
 * The same in steps, for payload that comes and goes in parts: enter checks what the effect asks
 * for, and names the segments in the lane; the memory may be touched until leave.
 */
uint32_t xtal_execute_enter(struct xtal_context *ctx, struct xtal_lane *lane,
			    const struct xtal_responder_effect *e);
void xtal_execute_leave(struct xtal_lane *lane);
/* The same for a range; *found tells the segment. */
uint32_t xtal_execute_enter_range(struct xtal_context *ctx, struct xtal_lane *lane,
				  const struct xtal_access *access, struct xtal_found *found);
/* The last word after all others. Errors: -EFAULT. */
int xtal_execute_put(uint64_t addr, const uint8_t *src, uint64_t len);
/* All of the payload is there: the notify word, if it is its turn. Errors: -EFAULT. */
int xtal_execute_notify(const struct xtal_responder_effect *e);

/* A SEND whose first frame this is: finds its buffer. *in is made when it is NULL, and the caller's
 * (xtal_inbound_free()). NOT_READY: *pause is for how long, in ns. */
uint32_t xtal_execute_send_begin(struct xtal_context *ctx, struct xtal_inbound **in,
				 const struct xtal_responder_effect *e, uint64_t *pause);
/* A piece of a SEND that has begun; the last one reports it. */
uint32_t xtal_execute_send_piece(struct xtal_lane *lane, struct xtal_inbound *in,
				 const struct xtal_responder_effect *e, const uint8_t *payload);

#endif
