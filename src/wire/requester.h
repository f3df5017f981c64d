/* SPDX-License-Identifier: MIT */
/*
 * The initiator's machine of one link: takes operations, cuts them into numbered frames,
 * matches the answers, keeps the deadlines. Pure: time is a parameter, storage is the
 * caller's, bytes are moved by the caller. Not thread safe; the owner of the link locks.
 *
 * Operations are framed in the order of submission, one after the other, and answered in that
 * order: a RESPONSE belongs to the oldest operation that is still open. Everything else is a
 * lie, and the caller drops the link (-EPROTO).
 *
 * An operation ends exactly once: by an effect with `finished`, by xtal_requester_abandon(),
 * or by xtal_requester_fail_next().
 */
#ifndef XTAL_WIRE_REQUESTER_H
#define XTAL_WIRE_REQUESTER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

#define XTAL_REQUESTER_AHEAD (4u * 1024 * 1024) /* bytes that READs of a resumable link ask for */
#define XTAL_REQUESTER_LEAST 128u /* bytes of payload to which frames shrink at most */
#define XTAL_NO_DEADLINE     UINT64_MAX

struct xtal_request {
	uint64_t cookie;             /* the message id; unique among the open ones of this link */
	enum xtal_msg_type type;     /* WRITE, READ, ATOMIC or SEND */
	enum xtal_msg_atomic atomic; /* ATOMIC */
	uint8_t operand_size;        /* ATOMIC; len is then taken from it. SEND: what it is */
	uint16_t flags;              /* of the frames */
	uint64_t addr, len;          /* at the target */
	uint32_t token, tid, key, rights;
	uint64_t operand[2], compare[2];
	struct xtal_msg_notify notify;
	uint64_t deadline; /* own clock, or XTAL_NO_DEADLINE */
	uint64_t limit;    /* progress of the link moves the deadline to this much later; 0: no */
};

enum xtal_slot_state {
	XTAL_SLOT_FREE = 0,
	XTAL_SLOT_OPEN,    /* accepted; frames may be on their way */
	XTAL_SLOT_GIVEN_UP /* has ended for the caller; an answer may still come and is dropped */
};

struct xtal_requester_slot {
	struct xtal_request request;
	enum xtal_slot_state state;
	uint64_t first_seq;         /* of its first frame, valid when frames > 0 */
	uint64_t frames;            /* numbered so far */
	uint64_t base, base_frames; /* where in the operation frame base_frames begins; those from
				     * there on are `piece` bytes long, but for the last */
	uint64_t piece;
	uint64_t framed;   /* bytes of the operation covered by them */
	uint64_t received; /* READ: bytes answered */
	bool all_framed;
	bool orphan; /* a SEND whose predecessor was given up: it is not framed */
};

struct xtal_requester_config {
	struct xtal_requester_slot *slots; /* caller's storage, outlives the machine */
	uint32_t window;      /* number of slots = credit granted by the target; power of two */
	uint64_t piece;       /* most payload per frame, 1..XTAL_MSG_PIECE (the carrier's room) */
	uint64_t incarnation; /* of the target's context */
	uint64_t first_seq;   /* number of the first frame of either direction */
	uint64_t margin;      /* ns by which a lease ends before the deadline */
	uint64_t peer_stamp, peer_stamp_at; /* target's clock, and ours when it arrived; 0, 0: none
					     * (no lease before the first answer) */
	bool resumable; /* frames may be lost with their carrier, see xtal_requester_rewind() */
};

struct xtal_requester {
	struct xtal_requester_config config;
	uint64_t head, next, tail; /* slots: oldest open, first not all framed, first free */
	uint64_t seq;              /* next request frame's number */
	uint64_t response_seq;     /* next RESPONSE's number */
	uint64_t acked;            /* the newest request frame known to be consumed */
	uint64_t progress_at;
	uint64_t piece;   /* of frames to come: less than agreed while no connection carries that */
	uint64_t reading; /* bytes that open READs have asked for and not got */
	uint32_t reads;   /* open READs of which a frame has been sent */
	bool moved;       /* something has been done since the carrier was replaced */
	bool closed;
};

/* A frame to be sent: msg.payload bytes of the operation's local data from local_offset on. */
struct xtal_requester_frame {
	struct xtal_msg msg;
	uint64_t cookie;
	uint64_t local_offset;
	bool last; /* of its operation */
};

struct xtal_requester_effect {
	uint64_t cookie;
	uint64_t offset, len;    /* the payload goes to [offset, offset+len) of the local data */
	uint64_t old[2];         /* ATOMIC that succeeded; NOT_READY: the pause, in ns */
	enum xtal_status status; /* when finished */
	bool finished;           /* the operation has ended */
	bool ignored;            /* late answer, PONG: drop the payload, nothing has happened */
};

struct xtal_requester_expired {
	uint64_t cookie;
	uint64_t first_seq, frames; /* frames numbered so far: what the carrier may cancel */
};

/* Errors: -EINVAL (window not a power of two, piece out of range). */
int xtal_requester_init(struct xtal_requester *r, const struct xtal_requester_config *config);

/* True when submit would not answer -EAGAIN or -EPIPE. */
bool xtal_requester_can_submit(const struct xtal_requester *r);

/* Accepts an operation (copied). Errors: -EAGAIN (window full), -EINVAL (not a valid
 * operation), -EPIPE (closed by fail_next). */
int xtal_requester_submit(struct xtal_requester *r, const struct xtal_request *request);

/*
 * Accepts an operation of one frame that is sent at once: as submit, next_frame and sent, when no
 * other frame waits and the link is not resumable. The caller has made room in the carrier, and
 * nothing is to fail any more. False: it is not so, or not accepted, and nothing happened.
 */
bool xtal_requester_submit_sent(struct xtal_requester *r, const struct xtal_request *request,
				uint64_t now, struct xtal_msg *out);

/*
 * Shows the next frame to send without taking it; false when there is none. The caller makes
 * room in the carrier, copies header and payload, and then calls xtal_requester_sent(). When
 * resumable: none while a WRITE or ATOMIC is next and READs before it are not answered, nor
 * while XTAL_REQUESTER_AHEAD bytes have been asked for by READs (what comes last is to come
 * within its lease), nor when the lease of the next is over (its deadline comes a margin later).
 */
bool xtal_requester_next_frame(const struct xtal_requester *r, uint64_t now,
			       struct xtal_requester_frame *out);
void xtal_requester_sent(struct xtal_requester *r);

/*
 * Takes a decoded frame from the target. 0: *out tells what to do; a READ's payload is to be
 * copied before the operation is completed. Errors: -EPROTO, *why a static sentence: drop the
 * link; the operations are still open and end by xtal_requester_fail_next().
 */
int xtal_requester_receive(struct xtal_requester *r, const struct xtal_msg *m, uint64_t now,
			   struct xtal_requester_effect *out, const char **why);

/* Whether receive would take m, and the effect it would have. Changes nothing. */
int xtal_requester_check(const struct xtal_requester *r, const struct xtal_msg *m,
			 struct xtal_requester_effect *out, const char **why);

/*
 * The carrier was replaced: the target has executed the frames up to `executed`, and those after
 * it are lost. They are numbered and framed anew, as are READs whose answer is lost; answers of
 * other operations that are lost come once more. When the last carrier has got nothing done,
 * frames are shorter from now on, until an operation has ended. Errors: -EPROTO: not possible
 * (executed frames that were never sent, or fewer than it said before).
 */
int xtal_requester_rewind(struct xtal_requester *r, uint64_t executed, uint64_t now);

/* True while an operation has not ended for the caller. */
bool xtal_requester_is_busy(const struct xtal_requester *r);

/*
 * The carrier knows that the target has consumed the request frames up to seq (the ring's head
 * has moved). Renews the deadlines of operations with a limit; on a resumable link a READ's
 * frames do not, since they are sent again until their answers arrive. Never retires one.
 */
void xtal_requester_progress(struct xtal_requester *r, uint64_t seq, uint64_t now);

/* Fills in a PING; it may be sent at any frame boundary. */
void xtal_requester_ping(const struct xtal_requester *r, uint64_t now, struct xtal_msg *out);

/* The earliest deadline of the open operations, or XTAL_NO_DEADLINE. */
uint64_t xtal_requester_next_deadline(const struct xtal_requester *r);

/*
 * Shows the oldest open operation whose deadline has passed; false when there is none. The
 * caller cancels its frames where the carrier can, then abandons it (or waits a little more
 * when the target has begun to execute it).
 */
bool xtal_requester_next_expired(const struct xtal_requester *r, uint64_t now,
				 struct xtal_requester_expired *out);

/*
 * The operation has ended for the caller; no further frame of it is sent. silent: no answer
 * can come any more (every frame was cancelled, unsent ones need no cancelling); otherwise its
 * slot stays taken until the answer, one for a later operation, or the PONG to a later PING.
 * Then abandon the orphans. Errors: -ENOENT (no such open operation).
 */
int xtal_requester_abandon(struct xtal_requester *r, uint64_t cookie, bool silent);

/*
 * After an operation was abandoned, or a carrier replaced, and before a frame is sent: shows an open
 * SEND that follows one which was given up and is never executed; false when there is none. It is
 * not to be received without that, and nothing of it is under way: abandon it, silent.
 */
bool xtal_requester_next_orphan(const struct xtal_requester *r, uint64_t *cookie);

/*
 * Closes the machine and ends its oldest open operation with status; false when none is left.
 * Call it until then when the link is lost.
 */
bool xtal_requester_fail_next(struct xtal_requester *r, enum xtal_status status,
			      struct xtal_requester_effect *out);

#endif
