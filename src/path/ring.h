/* SPDX-License-Identifier: MIT */
/*
 * The carrier of one host: a piece of shared memory with two rings of frames, requests from
 * the initiator to the target and responses back. No system call here: the caller maps the
 * memory and rings the doorbells. Either side may create it.
 *
 * The peer is not trusted. Each value in the shared memory is read once, checked against the
 * capacity, then used; headers are copied to private memory; only payload is handed out as a
 * pointer into the shared memory, to be read once. A peer that breaks the rules gives -EPROTO.
 *
 * Each frame has a state: POSTED by the producer, CLAIMED by the consumer before it acts, DONE;
 * or CANCELLED by the producer while it is POSTED, which makes a time-out final.
 *
 * Locking is the caller's: per end one thread at a time on the sending half (reserve, publish,
 * cancel, wait for room) and one on the receiving half (peek, release, sleep).
 */
#ifndef XTAL_PATH_RING_H
#define XTAL_PATH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XTAL_RING_HEADER       192           /* bytes of every frame's header: XTAL_MSG_HEADER */
#define XTAL_RING_SHORT        48            /* bytes of a short frame, which is one cache line */
#define XTAL_RING_CAPACITY     (256u * 1024) /* default, of each ring */
#define XTAL_RING_CAPACITY_MIN 1024u
#define XTAL_RING_CAPACITY_MAX (1u << 30)

enum xtal_ring_role {
	XTAL_RING_INITIATOR, /* sends requests, receives responses */
	XTAL_RING_TARGET,
};

struct xtal_ring_words; /* the shared words of one ring */

/* One half of an end: private memory, written by its owner only. */
struct xtal_ring_half {
	struct xtal_ring_words *words;
	uint8_t *data;
	uint64_t position; /* our own counter: tail of the sending, head of the receiving half */
	uint64_t peer;     /* newest checked value of the other's counter */
	uint64_t pending;  /* size of the frame reserved or claimed; 0: none */
	uint64_t skip;     /* sending: bytes skipped in front of it */
	uint64_t payload;  /* its payload length, as checked */
	uint64_t shown;    /* receiving: the counter as published to the producer */
};

struct xtal_ring_end {
	struct xtal_ring_half out, in;
	uint64_t capacity;
	uint8_t header[XTAL_RING_HEADER]; /* private copy of the frame peeked at */
};

struct xtal_ring_slot {
	uint8_t *header;   /* XTAL_RING_HEADER bytes to fill, shared memory */
	uint8_t *payload;  /* as many bytes as were asked for */
	uint64_t position; /* names the frame to xtal_ring_cancel() */
};

/* Bytes of shared memory for a capacity (a power of two, MIN..MAX); 0 when it is none. */
size_t xtal_ring_layout_size(size_t capacity);

/* The largest payload that always fits into an empty ring. Default capacity: > 64 KiB. */
size_t xtal_ring_max_payload(size_t capacity);

/* Creator: writes the empty rings into zeroed, 64-byte aligned memory. Errors: -EINVAL. */
int xtal_ring_init(void *mem, size_t capacity);
/* The same with all counters at start (rounded down to 64), for tests. */
int xtal_ring_init_at(void *mem, size_t capacity, uint64_t start);

/*
 * Both sides: binds an end to len mapped bytes. The memory must be sealed against shrinking.
 * Errors: -EPROTO (not a ring, other version, sizes that do not fit len, bad counters).
 */
int xtal_ring_attach(void *mem, size_t len, struct xtal_ring_end *end, enum xtal_ring_role role);

/*
 * Makes room for a frame; nothing is visible before publish. A second reserve replaces the
 * first. Errors: -EAGAIN (full), -EMSGSIZE (never fits), -EPROTO.
 */
int xtal_ring_reserve(struct xtal_ring_end *end, size_t payload_len, struct xtal_ring_slot *slot);

/* The same for a short frame: slot->header has XTAL_RING_SHORT bytes, there is no payload. */
int xtal_ring_reserve_short(struct xtal_ring_end *end, struct xtal_ring_slot *slot);

/* Makes the reserved frame visible. True: the consumer sleeps, ring its doorbell. */
bool xtal_ring_publish(struct xtal_ring_end *end);

/* True when a frame of payload_len can be reserved now. */
bool xtal_ring_has_room(struct xtal_ring_end *end, size_t payload_len);

/*
 * Before waiting for room: false when payload_len fits now. True: the consumer's next release
 * tells it to ring our doorbell.
 */
bool xtal_ring_prepare_room(struct xtal_ring_end *end, size_t payload_len);

/*
 * Claims the next frame and shows it; repeated calls show the same one. Returns 1, 0 (empty),
 * -EPROTO. *header is a private copy; *payload is shared memory: copy it once. 2: a short frame,
 * XTAL_RING_SHORT bytes at *header; *payload is NULL.
 */
int xtal_ring_peek(struct xtal_ring_end *end, const uint8_t **header, const uint8_t **payload,
		   size_t *payload_len);

/*
 * Gives the room of the claimed frame, and of cancelled ones passed over, back. To be called
 * after every peek, also one that found nothing. True: the producer waits for room, ring its
 * doorbell.
 */
bool xtal_ring_release(struct xtal_ring_end *end);

/*
 * Takes back a published frame of ours. 0: it will never be shown to the peer's consumer.
 * -EALREADY: claimed or consumed. -EINVAL: position was never published. -EPROTO.
 */
int xtal_ring_cancel(struct xtal_ring_end *end, uint64_t position);

/*
 * Takes back all published frames that the peer has not claimed. Returns how many it has
 * claimed and not yet consumed (0 or 1 with an honest peer).
 */
unsigned xtal_ring_cancel_all(struct xtal_ring_end *end);

/* Frames before this position have been consumed (or were cancelled). Errors: -EPROTO. */
int xtal_ring_consumed(struct xtal_ring_end *end, uint64_t *position);

/* True when a peek would show nothing: the cheapest look. (It tells more of a peer that lies.) */
bool xtal_ring_is_empty(const struct xtal_ring_end *end);

/* Before sleeping on the receiving half: false when frames wait, or the peer lies (peek tells). */
bool xtal_ring_prepare_sleep(struct xtal_ring_end *end);
/* After waking, for whatever reason. */
void xtal_ring_cancel_sleep(struct xtal_ring_end *end);

#endif
