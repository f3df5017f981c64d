/* SPDX-License-Identifier: MIT */
/*
 * Two rings of frames in shared memory. See ring.h.
 *
 * Positions are 64-bit byte counters that only grow (modulo 2^64); the capacity is a power of
 * two, so a position's place in the ring is its low bits. Frames begin at multiples of 64 and
 * never wrap: where one would, a SKIP frame covers the rest of the ring. A frame takes at most
 * half the capacity, so that together with a skip it always fits into an empty ring.
 */
#include "path/ring.h"

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#define ALIGN   64u
#define LINE    128                          /* two cache lines: processors fetch them in pairs */
#define MAGIC   UINT64_C(0x474e49524c415458) /* "XTALRING" */
#define VERSION 2

/* Frame states: SKIP and POSTED by the producer, then one compare-and-swap decides. */
enum {
	STATE_POSTED = 1,
	STATE_CLAIMED = 2,
	STATE_DONE = 3,
	STATE_CANCELLED = 4,
	STATE_SKIP = 5,
};

struct frame {
	_Atomic uint32_t state;
	uint32_t reserved;
	_Atomic uint64_t length; /* of the payload; LENGTH_SHORT: there is none, nor most of this */
	uint8_t header[XTAL_RING_HEADER];
	uint8_t payload[];
};

#define LENGTH_SHORT (UINT64_C(1) << 62) /* longer than any ring */

struct xtal_ring_words {
	alignas(LINE) _Atomic uint64_t tail;     /* written by the producer */
	alignas(LINE) _Atomic uint64_t head;     /* written by the consumer */
	alignas(LINE) _Atomic uint32_t sleeping; /* set by the consumer, cleared by either */
	alignas(LINE) _Atomic uint32_t starved;  /* set by the producer, cleared by either */
};

struct shared {
	_Atomic uint64_t magic;
	_Atomic uint64_t version;
	_Atomic uint64_t capacity;
	struct xtal_ring_words ring[2]; /* requests, responses */
};

_Static_assert(sizeof(struct shared) % ALIGN == 0, "frames are aligned");
_Static_assert(offsetof(struct frame, payload) % 16 == 0, "payload is aligned for words");
_Static_assert(offsetof(struct frame, header) + XTAL_RING_SHORT == ALIGN, "one cache line");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared atomics");

/* Between a store and the look at the other side's word: a fence of its own, since emulators
 * of aarch64 on x86 were seen to let a seq_cst load pass a seq_cst store. */
static void store_then_look(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static bool capacity_valid(uint64_t capacity)
{
	return capacity >= XTAL_RING_CAPACITY_MIN && capacity <= XTAL_RING_CAPACITY_MAX &&
	       (capacity & (capacity - 1)) == 0;
}

/* Assumes a valid length, so that nothing overflows. */
static uint64_t frame_size(uint64_t payload)
{
	if (payload == LENGTH_SHORT)
		return ALIGN;
	return (sizeof(struct frame) + payload + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static struct frame *frame_at(const struct xtal_ring_half *half, uint64_t capacity,
			      uint64_t position)
{
	return (struct frame *)(void *)(half->data + (position & (capacity - 1)));
}

static bool length_valid(uint64_t length, uint64_t capacity)
{
	return length == LENGTH_SHORT || length <= xtal_ring_max_payload(capacity);
}

size_t xtal_ring_layout_size(size_t capacity)
{
	return capacity_valid(capacity) ? sizeof(struct shared) + 2 * capacity : 0;
}

size_t xtal_ring_max_payload(size_t capacity)
{
	return capacity_valid(capacity) ? capacity / 2 - sizeof(struct frame) : 0;
}

int xtal_ring_init_at(void *mem, size_t capacity, uint64_t start)
{
	struct shared *sh = mem;

	if (!capacity_valid(capacity) || (uintptr_t)mem % LINE != 0)
		return -EINVAL;
	start &= ~(uint64_t)(ALIGN - 1);
	for (unsigned i = 0; i < 2; i++) {
		atomic_store_explicit(&sh->ring[i].tail, start, memory_order_relaxed);
		atomic_store_explicit(&sh->ring[i].head, start, memory_order_relaxed);
	}
	atomic_store_explicit(&sh->capacity, capacity, memory_order_relaxed);
	atomic_store_explicit(&sh->version, VERSION, memory_order_relaxed);
	/* partner: attach */
	atomic_store_explicit(&sh->magic, MAGIC, memory_order_release);
	return 0;
}

int xtal_ring_init(void *mem, size_t capacity)
{
	return xtal_ring_init_at(mem, capacity, 0);
}

static bool counters_valid(uint64_t head, uint64_t tail, uint64_t capacity)
{
	return ((head | tail) & (ALIGN - 1)) == 0 && tail - head <= capacity;
}

int xtal_ring_attach(void *mem, size_t len, struct xtal_ring_end *end, enum xtal_ring_role role)
{
	struct shared *sh = mem;
	unsigned out = role == XTAL_RING_INITIATOR ? 0 : 1;
	struct xtal_ring_end e = { 0 };
	uint64_t tail;

	if (len < sizeof(*sh) || (uintptr_t)mem % LINE != 0)
		return -EPROTO;
	/* partner: init */
	if (atomic_load_explicit(&sh->magic, memory_order_acquire) != MAGIC ||
	    atomic_load_explicit(&sh->version, memory_order_relaxed) != VERSION)
		return -EPROTO;
	e.capacity = atomic_load_explicit(&sh->capacity, memory_order_relaxed);
	if (!capacity_valid(e.capacity) || xtal_ring_layout_size(e.capacity) > len)
		return -EPROTO;

	e.out.words = &sh->ring[out];
	e.out.data = (uint8_t *)mem + sizeof(*sh) + out * e.capacity;
	e.out.position = atomic_load_explicit(&e.out.words->tail, memory_order_relaxed);
	e.out.peer = atomic_load_explicit(&e.out.words->head, memory_order_acquire);
	if (!counters_valid(e.out.peer, e.out.position, e.capacity))
		return -EPROTO;

	e.in.words = &sh->ring[1 - out];
	e.in.data = (uint8_t *)mem + sizeof(*sh) + (1 - out) * e.capacity;
	e.in.position = atomic_load_explicit(&e.in.words->head, memory_order_relaxed);
	e.in.peer = e.in.shown = e.in.position;
	tail = atomic_load_explicit(&e.in.words->tail, memory_order_relaxed);
	if (!counters_valid(e.in.position, tail, e.capacity))
		return -EPROTO;
	*end = e;
	return 0;
}

/* Takes over the consumer's counter. seq_cst: partner of the release that is told by starved;
 * as an acquire it orders our reuse of the room after the consumer's last look at it. */
static int refresh_head(struct xtal_ring_end *end)
{
	struct xtal_ring_half *out = &end->out;
	uint64_t head = atomic_load_explicit(&out->words->head, memory_order_seq_cst);

	if (!counters_valid(head, out->position, end->capacity))
		return -EPROTO;
	out->peer = head;
	return 0;
}

/* Bytes to skip so that size bytes are in one piece. */
static uint64_t skip_for(const struct xtal_ring_end *end, uint64_t size)
{
	uint64_t rest = end->capacity - (end->out.position & (end->capacity - 1));

	return size > rest ? rest : 0;
}

static bool fits(const struct xtal_ring_end *end, uint64_t size)
{
	uint64_t used = end->out.position - end->out.peer;

	return skip_for(end, size) + size <= end->capacity - used;
}

/* 0, -EAGAIN, -EMSGSIZE, -EPROTO. */
static int find_room(struct xtal_ring_end *end, uint64_t payload_len)
{
	int err;

	if (!length_valid(payload_len, end->capacity))
		return -EMSGSIZE;
	if (fits(end, frame_size(payload_len)))
		return 0;
	err = refresh_head(end);
	if (err)
		return err;
	return fits(end, frame_size(payload_len)) ? 0 : -EAGAIN;
}

static int reserve(struct xtal_ring_end *end, uint64_t payload_len, struct xtal_ring_slot *slot)
{
	struct xtal_ring_half *out = &end->out;
	struct frame *f;
	int err = find_room(end, payload_len);

	if (err)
		return err;
	out->pending = frame_size(payload_len);
	out->payload = payload_len;
	out->skip = skip_for(end, out->pending);
	f = frame_at(out, end->capacity, out->position + out->skip);
	*slot = (struct xtal_ring_slot){
		.header = f->header,
		.payload = f->payload,
		.position = out->position + out->skip,
	};
	return 0;
}

int xtal_ring_reserve(struct xtal_ring_end *end, size_t payload_len, struct xtal_ring_slot *slot)
{
	return payload_len == LENGTH_SHORT ? -EMSGSIZE : reserve(end, payload_len, slot);
}

int xtal_ring_reserve_short(struct xtal_ring_end *end, struct xtal_ring_slot *slot)
{
	return reserve(end, LENGTH_SHORT, slot);
}

bool xtal_ring_publish(struct xtal_ring_end *end)
{
	struct xtal_ring_half *out = &end->out;
	struct frame *f;

	if (out->pending == 0)
		return false;
	if (out->skip != 0) {
		f = frame_at(out, end->capacity, out->position);
		atomic_store_explicit(&f->length, 0, memory_order_relaxed);
		atomic_store_explicit(&f->state, STATE_SKIP, memory_order_relaxed);
	}
	f = frame_at(out, end->capacity, out->position + out->skip);
	atomic_store_explicit(&f->length, out->payload, memory_order_relaxed);
	atomic_store_explicit(&f->state, STATE_POSTED, memory_order_relaxed);
	out->position += out->skip + out->pending;
	out->pending = 0;
	/*
	 * Publishes the frame (partner: refresh_tail) and orders it before the look at sleeping
	 * (partner: prepare_sleep, which stores sleeping and then looks at tail). All four are
	 * seq_cst, so at least one side sees the other.
	 */
	atomic_store_explicit(&out->words->tail, out->position, memory_order_release);
	store_then_look();
	return atomic_load_explicit(&out->words->sleeping, memory_order_seq_cst) != 0 &&
	       atomic_exchange_explicit(&out->words->sleeping, 0, memory_order_seq_cst) != 0;
}

bool xtal_ring_has_room(struct xtal_ring_end *end, size_t payload_len)
{
	return find_room(end, payload_len) == 0;
}

bool xtal_ring_prepare_room(struct xtal_ring_end *end, size_t payload_len)
{
	struct xtal_ring_words *words = end->out.words;

	/* partner: release, which stores head and then looks at starved */
	atomic_store_explicit(&words->starved, 1, memory_order_release);
	store_then_look();
	if (find_room(end, payload_len) == -EAGAIN)
		return true;
	atomic_store_explicit(&words->starved, 0, memory_order_relaxed);
	return false;
}

/* Takes over the producer's counter: an acquire of what publish made visible. */
static int refresh_tail(struct xtal_ring_end *end)
{
	struct xtal_ring_half *in = &end->in;
	uint64_t tail = atomic_load_explicit(&in->words->tail, memory_order_seq_cst);

	if (!counters_valid(in->position, tail, end->capacity))
		return -EPROTO;
	in->peer = tail;
	return 0;
}

/*
 * Looks at the frame at our position. 1: claimed; 0: skipped, look again; -EPROTO. Every
 * step passes over at least 64 of the bytes known to be published, so a peer that cancels
 * as fast as we look cannot hold us.
 */
static int claim(struct xtal_ring_end *end)
{
	struct xtal_ring_half *in = &end->in;
	uint64_t known = in->peer - in->position;
	uint64_t rest = end->capacity - (in->position & (end->capacity - 1));
	struct frame *f = frame_at(in, end->capacity, in->position);
	uint32_t state = STATE_POSTED;
	uint64_t length, size;

	/* Decides against cancel. Before any look at the frame, whose line comes from the producer's
	 * core: it comes once, as ours to write. */
	atomic_compare_exchange_strong_explicit(&f->state, &state, STATE_CLAIMED,
						memory_order_acq_rel, memory_order_acquire);
	if (state == STATE_SKIP) {
		if (rest > known)
			return -EPROTO;
		in->position += rest;
		return 0;
	}
	length = atomic_load_explicit(&f->length, memory_order_relaxed);
	if (!length_valid(length, end->capacity))
		return -EPROTO;
	size = frame_size(length);
	if (size > rest || size > known)
		return -EPROTO;
	if (state == STATE_POSTED) {
		in->pending = size;
		in->payload = length;
		if (length == LENGTH_SHORT)
			memcpy(end->header, f->header, XTAL_RING_SHORT);
		else
			memcpy(end->header, f->header, sizeof(end->header));
		return 1;
	}
	if (state != STATE_CANCELLED)
		return -EPROTO;
	in->position += size;
	return 0;
}

int xtal_ring_peek(struct xtal_ring_end *end, const uint8_t **header, const uint8_t **payload,
		   size_t *payload_len)
{
	struct xtal_ring_half *in = &end->in;
	int ret = in->pending != 0;

	if (!ret && in->position == in->peer) {
		ret = refresh_tail(end);
		if (ret)
			return ret;
	}
	while (ret == 0 && in->position != in->peer)
		ret = claim(end);
	if (ret != 1)
		return ret;
	*header = end->header;
	if (in->payload == LENGTH_SHORT) {
		*payload = NULL;
		*payload_len = 0;
		return 2;
	}
	*payload = frame_at(in, end->capacity, in->position)->payload;
	*payload_len = in->payload;
	return 1;
}

bool xtal_ring_release(struct xtal_ring_end *end)
{
	struct xtal_ring_half *in = &end->in;

	if (in->pending != 0) {
		struct frame *f = frame_at(in, end->capacity, in->position);

		atomic_store_explicit(&f->state, STATE_DONE, memory_order_release);
		in->position += in->pending;
		in->pending = 0;
	}
	if (in->position == in->shown)
		return false;
	in->shown = in->position;
	/* partners: refresh_head, and prepare_room, which stores starved and then looks at head */
	atomic_store_explicit(&in->words->head, in->position, memory_order_release);
	store_then_look();
	return atomic_load_explicit(&in->words->starved, memory_order_seq_cst) != 0 &&
	       atomic_exchange_explicit(&in->words->starved, 0, memory_order_seq_cst) != 0;
}

int xtal_ring_cancel(struct xtal_ring_end *end, uint64_t position)
{
	struct xtal_ring_half *out = &end->out;
	uint64_t age = out->position - position;
	uint32_t state = STATE_POSTED;
	struct frame *f;
	int err;

	if (position % ALIGN != 0 || (int64_t)age <= 0)
		return -EINVAL;
	err = refresh_head(end);
	if (err)
		return err;
	if (age > out->position - out->peer)
		return -EALREADY;
	f = frame_at(out, end->capacity, position);
	/* decides against claim */
	if (atomic_compare_exchange_strong_explicit(&f->state, &state, STATE_CANCELLED,
						    memory_order_acq_rel, memory_order_acquire))
		return 0;
	if (state == STATE_CANCELLED)
		return 0;
	return state == STATE_CLAIMED || state == STATE_DONE ? -EALREADY : -EPROTO;
}

unsigned xtal_ring_cancel_all(struct xtal_ring_end *end)
{
	struct xtal_ring_half *out = &end->out;
	uint64_t position;
	unsigned claimed = 0;

	if (refresh_head(end))
		return 0;
	position = out->peer;
	while (position != out->position) {
		struct frame *f = frame_at(out, end->capacity, position);
		uint64_t length = atomic_load_explicit(&f->length, memory_order_relaxed);
		uint64_t size = end->capacity - (position & (end->capacity - 1));

		if (atomic_load_explicit(&f->state, memory_order_acquire) != STATE_SKIP) {
			/* The peer may have overwritten what we wrote: then only it is harmed. */
			if (!length_valid(length, end->capacity))
				return claimed;
			size = frame_size(length);
			if (xtal_ring_cancel(end, position) == -EALREADY)
				claimed += atomic_load_explicit(&f->state, memory_order_acquire) ==
					   STATE_CLAIMED;
		}
		if (size > out->position - position)
			return claimed;
		position += size;
	}
	return claimed;
}

int xtal_ring_consumed(struct xtal_ring_end *end, uint64_t *position)
{
	int err = refresh_head(end);

	if (err)
		return err;
	*position = end->out.peer;
	return 0;
}

bool xtal_ring_is_empty(const struct xtal_ring_end *end)
{
	const struct xtal_ring_half *in = &end->in;

	return in->pending == 0 && in->position == in->peer &&
	       atomic_load_explicit(&in->words->tail, memory_order_relaxed) == in->position;
}

bool xtal_ring_prepare_sleep(struct xtal_ring_end *end)
{
	struct xtal_ring_half *in = &end->in;

	if (in->pending != 0 || in->position != in->peer)
		return false;
	/* partner: publish, which stores tail and then looks at sleeping */
	atomic_store_explicit(&in->words->sleeping, 1, memory_order_release);
	store_then_look();
	if (refresh_tail(end) == 0 && in->position == in->peer)
		return true;
	atomic_store_explicit(&in->words->sleeping, 0, memory_order_relaxed);
	return false;
}

void xtal_ring_cancel_sleep(struct xtal_ring_end *end)
{
	atomic_store_explicit(&end->in.words->sleeping, 0, memory_order_relaxed);
}
