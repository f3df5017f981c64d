/* SPDX-License-Identifier: MIT */
/* A message on its way into an endpoint's buffer. */
#ifndef XTAL_CORE_INBOUND_H
#define XTAL_CORE_INBOUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "core/op.h"

struct xtal_context;
struct xtal_endpoint;

/* What a message says of itself. */
struct xtal_envelope {
	uint64_t to; /* xtal_endpoint_address() */
	uint32_t token;
	bool token_valid, solicited;
	uint8_t opcode;  /* XTAL_OP_SEND ... XTAL_OP_WRITE_IMM */
	uint8_t hint;    /* which endpoint, when several have the address */
	bool from_jetty; /* and whom it comes from */
	uint32_t tid, id;
	struct xtal_eid eid;
	uint64_t imm;
	uint64_t len; /* of its data; WRITE_IMM: of what was written before */
};

/* A message that comes in, in pieces. All zero: none. */
struct xtal_inbound {
	struct xtal_endpoint *endpoint; /* a reference */
	struct xtal_envelope envelope;
	uint64_t user, era; /* of its buffer */
	uint64_t pause_ns;  /* NOT_READY: until it may come again; 0: as the sender likes */
	uint32_t count;
	struct xtal_sge sge[XTAL_MAX_RECEIVE_SGES];
};

/* A message begins: takes a buffer. A status: NOT_READY when there is none; any but OK ends it. */
uint32_t xtal_inbound_begin(struct xtal_inbound *in, struct xtal_context *ctx,
			    const struct xtal_envelope *envelope);
/* Puts a piece in place; the segments it goes to are announced in *word. src is memory of
 * our own. A status; any but OK ends the message. */
uint32_t xtal_inbound_put(struct xtal_inbound *in, _Atomic uint64_t *word, uint64_t offset,
			  const uint8_t *src, uint64_t len);
/* All of it is there: reports it. A status. */
uint32_t xtal_inbound_end(struct xtal_inbound *in);
/* The rest does not come: the buffer goes back to where it was. Nothing if there is none. */
void xtal_inbound_abandon(struct xtal_inbound *in);
/* The same, and frees it. NULL is ignored. */
void xtal_inbound_free(struct xtal_inbound *in);

#endif
