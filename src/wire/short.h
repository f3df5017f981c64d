/* SPDX-License-Identifier: MIT */
/*
 * The short form of two messages, 48 bytes: one cache line for carriers in shared memory, where the
 * long form takes four. It says the same: what is decoded is the message that the long form would
 * have brought, but for the stamp of a SEND, which no target looks at.
 *
 * A SEND of up to 16 bytes is told as what differs from an earlier SEND, its model: the newest one
 * of its place, whatever form it had. Both ends keep the models, and change them with each SEND of
 * one frame, in the order of the frames; a short one names the number that its model has, so that
 * ends which do not agree are found out. Carriers that lose or drop frames have no use for this.
 * An answer is told in full; it has the short form when it is a plain success without data.
 */
#ifndef XTAL_WIRE_SHORT_H
#define XTAL_WIRE_SHORT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

#define XTAL_SHORT_BYTES   48
#define XTAL_SHORT_PAYLOAD 16u /* with an immediate value: 8 less */
#define XTAL_SHORT_MODELS  4u

/* What both ends of a link know. All zero at first. NULL below: nothing. */
struct xtal_short_models {
	struct xtal_msg model[XTAL_SHORT_MODELS]; /* type 0: none */
};

/* A message was sent, or received, in its long form. */
void xtal_short_note(struct xtal_short_models *models, const struct xtal_msg *m);

/*
 * Writes the short form of m, a SEND with payload at payload, or an answer; the models change as
 * the receiver's will. False: it has none, and nothing happened. Assumes that m is valid.
 */
bool xtal_short_encode(struct xtal_short_models *models, const struct xtal_msg *m,
		       const uint8_t *payload, uint8_t out[XTAL_SHORT_BYTES]);

/*
 * Reads and validates one from private memory. SEND: *payload is in in, m->payload bytes of it, and
 * the models have changed. Errors: -EPROTO; *why is then a static sentence.
 */
int xtal_short_decode(struct xtal_short_models *models, const uint8_t in[XTAL_SHORT_BYTES],
		      struct xtal_msg *out, const uint8_t **payload, const char **why);

#endif
