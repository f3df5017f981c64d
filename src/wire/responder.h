/* SPDX-License-Identifier: MIT */
/*
 * The target's machine of one link: takes the peer's frames in order and says what to execute
 * and what to answer. Pure: time is a parameter, storage is the caller's, and the caller
 * executes. Not thread safe; the owner of the link locks.
 *
 * Per frame: feed, then, for an EXECUTE effect, execute and call result, then feed the next.
 * Each operation gets one RESPONSE with the LAST flag; a READ of several pieces gets one with
 * data for each piece, of which the final one is LAST. An operation that fails is answered
 * once, and its remaining pieces are ignored. One that its initiator abandons (the next frame
 * begins another, or its frames were cancelled in the carrier) is not answered.
 *
 * A SEND may end as NOT_READY. Its initiator sends it again, when all that followed it in its queue
 * have been answered or given up; they are answered NOT_READY too, until one comes that follows
 * none.
 * Behind a SEND that failed or came too late they are answered so as well: a receiver never sees a
 * message without those before it.
 *
 * What the machine does not know, the executor checks: token, range, right, alignment,
 * revocation. Every effect names the whole range: check all of it on `first`, so that a failing
 * operation writes nothing; later pieces are sure to name the same range, token and notify word,
 * but the segment may have gone meanwhile, so resolve it again.
 */
#ifndef XTAL_WIRE_RESPONDER_H
#define XTAL_WIRE_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

enum xtal_responder_kind {
	XTAL_RESPONDER_NONE,   /* nothing to do; drop the payload */
	XTAL_RESPONDER_WRITE,  /* copy the payload to addr+offset; on last: then the notify word */
	XTAL_RESPONDER_READ,   /* addr+offset .. +len goes into the reply's payload */
	XTAL_RESPONDER_ATOMIC, /* atomic on operand_size bytes at addr */
	XTAL_RESPONDER_SEND, /* the payload goes to offset of the buffer that `first` takes from the
				* endpoint's receive queue; on last: the receive is complete */
	XTAL_RESPONDER_REPLY, /* send reply; drop the payload */
	XTAL_RESPONDER_DROP,  /* the peer lies: drop the link, why tells in words */
};

struct xtal_responder_effect {
	enum xtal_responder_kind kind;
	uint64_t seq, id;
	uint64_t addr, total; /* the whole operation; addr + total does not overflow */
	uint64_t offset, len; /* this piece, within total, len <= the configured piece */
	bool first, last;     /* piece of its operation */
	bool token_valid;
	uint16_t flags; /* SEND: SOLICITED, TO_JETTY, FROM_JETTY */
	uint32_t token, tid, key;
	bool notify_valid, notify_token_valid;
	struct xtal_msg_notify notify;
	enum xtal_msg_atomic atomic;
	uint8_t operand_size;
	uint64_t operand[2], compare[2];
	struct xtal_msg reply; /* valid for REPLY */
	const char *why;       /* of a DROP or a refusal, else NULL */
};

/* Queues of which a SEND was answered NOT_READY lately: what follows it is not received either. At
 * least as many as an initiator may have SENDs under way. */
#define XTAL_RESPONDER_REFUSED 64u

/* The outcome of a WRITE, an ATOMIC or a SEND, for replay. A READ has none: it is executed again. */
struct xtal_responder_result {
	uint64_t seq;    /* of the frame that was answered with LAST */
	uint64_t number; /* of the RESPONSE */
	uint64_t id, total;
	enum xtal_status status;
	enum xtal_msg_atomic atomic;
	uint8_t operand_size;
	uint64_t old[2];
};

struct xtal_responder_config {
	struct xtal_responder_result *cache; /* caller's storage, outlives the machine */
	uint32_t cache_size;  /* >= the window granted to the initiator; power of two; 0: none */
	uint64_t piece;       /* most bytes per frame, 1..XTAL_MSG_PIECE (the carrier's room) */
	uint64_t incarnation; /* of this context; another one is answered with REMOTE_ACCESS */
	uint64_t first_seq;   /* number of the first frame of either direction */
	bool gaps;            /* numbers may be missing: the carrier lets frames be cancelled */
};

struct xtal_responder {
	struct xtal_responder_config config;
	uint64_t seq;         /* next request frame's number */
	uint64_t reply_seq;   /* next RESPONSE's number */
	uint64_t acked;       /* the newest RESPONSE known to have been received */
	uint64_t cached;      /* results put into the cache so far */
	uint64_t lost;        /* newest RESPONSE whose result was put out of the cache */
	uint64_t replayed;    /* results that xtal_responder_replay() is through with */
	struct xtal_msg open; /* while is_open: the first frame seen of the operation */
	uint64_t open_next;   /* where its next piece begins */
	bool is_open;         /* pieces are still to come */
	bool is_ended;        /* ... but it was answered, or given up: ignore them */
	bool waiting;         /* an EXECUTE effect has no result yet */
	uint64_t waiting_at;  /* ... and began here in its operation */
	bool resumed;         /* the next frame may be in the middle of a READ */
	bool dropped;
	uint64_t refused[XTAL_RESPONDER_REFUSED]; /* queues; 0: none */
	uint32_t refused_at, refusing;            /* the next one's place; how many there are */
};

/* Errors: -EINVAL. */
int xtal_responder_init(struct xtal_responder *r, const struct xtal_responder_config *config);

/*
 * Takes the next frame (validated by the codec). Assumes that the last EXECUTE effect has got
 * its result. now: the clock that leases are checked against and that stamps the reply. After
 * DROP every further frame is answered with DROP.
 */
void xtal_responder_feed(struct xtal_responder *r, const struct xtal_msg *m, uint64_t now,
			 struct xtal_responder_effect *out);

/*
 * Tells how the effect's execution ended; old: the old value of an atomic, or the pause of a SEND
 * that is not ready (else NULL, or not looked at). Returns
 * true when *reply is to be sent, with reply->payload bytes of data (a READ that succeeded).
 * A status that a target may not answer becomes REMOTE_OPERATION.
 */
bool xtal_responder_result(struct xtal_responder *r, const struct xtal_responder_effect *effect,
			   enum xtal_status status, const uint64_t old[2], uint64_t now,
			   struct xtal_msg *reply);

/* The number of the newest frame consumed (first_seq - 1 before the first). */
uint64_t xtal_responder_consumed(const struct xtal_responder *r);

/*
 * The carrier was replaced, and the initiator has received the RESPONSEs up to `received`; later
 * ones are lost. An EXECUTE effect without result is void: its frame will come again. Call
 * xtal_responder_replay() until it says false before the next frame is fed. Errors: -EPROTO:
 * not possible (never sent, acknowledged before, or no longer in the cache).
 */
int xtal_responder_resume(struct xtal_responder *r, uint64_t received);

/* The next lost answer, numbered anew; false when there are no more. */
bool xtal_responder_replay(struct xtal_responder *r, uint64_t now, struct xtal_msg *reply);

#endif
