/* SPDX-License-Identifier: MIT */
/* One operation as the front-ends hand it to the core, and one completion as they get it. */
#ifndef XTAL_CORE_OP_H
#define XTAL_CORE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/status.h"

enum xtal_opcode {
	XTAL_OP_WRITE = 0,
	XTAL_OP_READ = 1,
	XTAL_OP_CAS = 2, /* operand 4, 8 or 16 bytes */
	XTAL_OP_FAA =
		3, /* operand 4 or 8 bytes, like those that follow; all return the old value */
	XTAL_OP_SWAP = 4,
	XTAL_OP_SUB = 5,
	XTAL_OP_AND = 6,
	XTAL_OP_OR = 7,
	XTAL_OP_XOR = 8,
	/* Names no memory. Completes in its turn among what goes to remote's peer; without one (tid 0)
	 * after all that was posted earlier. */
	XTAL_OP_NOP = 9,
	/* Two-sided: each takes one receive of the endpoint that op.notify names. */
	XTAL_OP_SEND = 10,
	XTAL_OP_SEND_IMM = 11,        /* notify_data: the immediate value */
	XTAL_OP_SEND_INVALIDATE = 12, /* notify_data: the id that the receiver shall withdraw */
	XTAL_OP_WRITE_IMM = 13,       /* a WRITE; then the message, without data, with the value */
};

static inline bool xtal_op_is_atomic(uint8_t opcode)
{
	return opcode >= XTAL_OP_CAS && opcode <= XTAL_OP_XOR;
}

/* Two-sided without data for a segment. */
static inline bool xtal_op_is_send(uint8_t opcode)
{
	return opcode >= XTAL_OP_SEND && opcode <= XTAL_OP_SEND_INVALIDATE;
}

/* A place in a peer's memory. Plain values, read at the post. */
struct xtal_remote {
	uint64_t addr; /* in the owner's process */
	struct xtal_eid eid;
	uint32_t tid; /* owner's context: incarnation bits (1..15, or XTAL_INCARNATION_ANY) << 16
		       * | port; 0: unset */
	uint32_t token;
	uint32_t index;   /* the segment's at its owner (xtal_segment_attr); 0: whichever it is */
	bool token_valid; /* send the token */
};

/* A front-end's short name for eid, tid and token of one queue's operations: equal keys, equal
 * values. All 0: no name. */
struct xtal_key {
	uint64_t a, b;
};

enum {
	XTAL_OP_NOTIFY = 1,      /* a write that stores notify_data at notify after its data */
	XTAL_OP_OWN_PAYLOAD = 2, /* the core's own: local is the core's memory, not a segment */
	/* For queues with a shared completion queue: */
	XTAL_OP_UNSIGNALLED = 4, /* no completion unless it fails; its place in the queue is given
				  * back when one posted later is polled */
	XTAL_OP_SOLICITED = 8,   /* a message: its receive counts as solicited */
	XTAL_OP_SGES = 16,   /* local is the address of `sges` struct xtal_sge, read at the post */
	XTAL_OP_INLINE = 32, /* the data is read at the post, wherever it lies */
	XTAL_OP_ANY_LOCAL = 64, /* local memory need not be registered */
	XTAL_OP_FENCE = 128, /* not begun before all that was posted earlier, to whichever peer */
};

#define XTAL_MAX_RECEIVE_SGES 64u /* pieces of a receive */

/* A piece of local memory. */
struct xtal_sge {
	uint64_t addr, len; /* len may be 0 */
};

struct xtal_op {
	uint64_t user;  /* returned in the completion */
	uint64_t local; /* address in this process: source, or destination of READ/CAS/FAA */
	uint64_t len;   /* bytes, 1 .. 2^32 - 1 (messages and WRITE_IMM also 0); operand size for
			 * atomics; SGES: the sum */
	struct xtal_remote remote;
	struct xtal_key key; /* of remote */
	uint8_t opcode;      /* enum xtal_opcode */
	uint8_t flags;       /* XTAL_OP_NOTIFY ... */
	uint8_t sges;        /* with XTAL_OP_SGES */
	uint8_t hint;        /* two-sided: which of several endpoints with one address */
	uint32_t target;     /* the front-end's; in the record */
	uint64_t operand[2]; /* FAA ... XOR: the value. CAS: the new value, low bytes first */
	uint64_t compare[2]; /* CAS: the expected value */
	/* NOTIFY: where the word goes. Two-sided: whom the message goes to: eid and tid of the
	 * context, addr is xtal_endpoint_address(), token is the endpoint's. */
	struct xtal_remote notify;
	uint64_t notify_data;
};

/* How a message names the endpoint it is for: ids of jetties and of others are apart. */
static inline uint64_t xtal_endpoint_address(uint32_t id, bool jetty)
{
	return (uint64_t)jetty << 32 | id;
}

/* Whom an operation went to. All 0: the peer was never reached. */
struct xtal_peer {
	uint32_t port;
	uint32_t link_id; /* number of the link used */
};

/* What a completion says that is the same for all operations of a kind: copied as a whole. */
struct xtal_report {
	uint32_t len; /* bytes moved; 0 on error */
	uint32_t queue_id;
	struct xtal_peer peer;
};

/* Half a cache line. */
struct xtal_completion {
	uint64_t user;
	uint16_t status; /* enum xtal_status; with the next three a word, xtal_mark() */
	uint8_t opcode;
	uint8_t flags;   /* of the operation */
	uint32_t target; /* of the operation, in a shared completion queue */
	struct xtal_report report;
};
_Static_assert(sizeof(struct xtal_completion) == 32, "two to a cache line");

/* What all records of a queue with a shared completion queue say. */
struct xtal_signature {
	void *owner;
	uint64_t stamp; /* the front-end's word for them */
};

/* Completions in their places in the ring. */
struct xtal_ready {
	const struct xtal_completion *ring;
	uint64_t first, mask;
};

static inline const struct xtal_completion *xtal_ready_at(const struct xtal_ready *r, uint32_t i)
{
	return &r->ring[(r->first + i) & r->mask];
}

#endif
