/* SPDX-License-Identifier: MIT */
/*
 * The shared-memory ring: room and order against a plain queue, counters that wrap, claims
 * against cancellation, two threads with sleep and doorbells, and a peer that writes rubbish.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/rng.h"
#include "path/ring.h"
#include "wire/message.h"

_Static_assert(XTAL_RING_HEADER == XTAL_MSG_HEADER, "a frame carries one message");

#define SMALL 1024 /* 16 units of 64 bytes */

static const uint64_t starts[] = { 0, 0xfffffff0, UINT64_MAX - SMALL, UINT64_MAX - 640,
				   UINT64_MAX };
#define STARTS (sizeof(starts) / sizeof(starts[0]))

struct pair {
	uint8_t *mem;
	size_t len;
	struct xtal_ring_end initiator, target;
};

static void open_pair(struct pair *p, size_t capacity, uint64_t start)
{
	p->len = xtal_ring_layout_size(capacity);
	assert_true(p->len > 2 * capacity);
	p->mem = aligned_alloc(128, (p->len + 127) & ~(size_t)127);
	assert_non_null(p->mem);
	memset(p->mem, 0, p->len);
	assert_int_equal(xtal_ring_init_at(p->mem, capacity, start), 0);
	assert_int_equal(xtal_ring_attach(p->mem, p->len, &p->initiator, XTAL_RING_INITIATOR), 0);
	assert_int_equal(xtal_ring_attach(p->mem, p->len, &p->target, XTAL_RING_TARGET), 0);
}

static void close_pair(struct pair *p)
{
	free(p->mem);
}

/* Sends one frame with a number and a pattern. 0, -EAGAIN, -EMSGSIZE. */
static int send_frame(struct xtal_ring_end *end, uint64_t number, size_t len, uint64_t *position)
{
	struct xtal_ring_slot slot;
	int err = xtal_ring_reserve(end, len, &slot);

	if (err)
		return err;
	memset(slot.header, (int)(number & 0xff), XTAL_RING_HEADER);
	memcpy(slot.header, &number, sizeof(number));
	memset(slot.payload, (int)(number * 7 & 0xff), len);
	if (position)
		*position = slot.position;
	return 0;
}

static int post(struct xtal_ring_end *end, uint64_t number, size_t len, uint64_t *position)
{
	int err = send_frame(end, number, len, position);

	if (!err)
		xtal_ring_publish(end);
	return err;
}

static int post_short(struct xtal_ring_end *end, uint64_t number)
{
	struct xtal_ring_slot slot;
	int err = xtal_ring_reserve_short(end, &slot);

	if (err)
		return err;
	memset(slot.header, (int)(number & 0xff), XTAL_RING_SHORT);
	memcpy(slot.header, &number, sizeof(number));
	xtal_ring_publish(end);
	return 0;
}

/* The next frame's number, after checking all its bytes; UINT64_MAX when there is none. */
static uint64_t take_frame(struct xtal_ring_end *end, size_t *len)
{
	const uint8_t *header, *payload;
	uint64_t number = UINT64_MAX;
	int n = xtal_ring_peek(end, &header, &payload, len);

	assert_true(n >= 0 && n <= 2);
	if (n == 0)
		return UINT64_MAX;
	if (n == 2)
		assert_true(!payload && !*len);
	memcpy(&number, header, sizeof(number));
	for (size_t i = sizeof(number); i < (n == 2 ? XTAL_RING_SHORT : XTAL_RING_HEADER); i++)
		assert_int_equal(header[i], number & 0xff);
	for (size_t i = 0; i < *len; i++)
		assert_int_equal(payload[i], number * 7 & 0xff);
	return number;
}

static uint64_t take(struct xtal_ring_end *end, size_t *len)
{
	uint64_t number = take_frame(end, len);

	xtal_ring_release(end);
	return number;
}

static void test_layout(void **state)
{
	static const size_t bad[] = { 0, 1, 64, 512, 1000, 3 << 10, SIZE_MAX, (size_t)1 << 31 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t word[16];

		assert_int_equal(xtal_ring_layout_size(bad[i]), 0);
		assert_int_equal(xtal_ring_max_payload(bad[i]), 0);
		assert_int_equal(xtal_ring_init(word, bad[i]), -EINVAL);
	}
	assert_true(xtal_ring_max_payload(XTAL_RING_CAPACITY) >= XTAL_MSG_PIECE);
	assert_true(xtal_ring_max_payload(SMALL) >= 256);
}

static void test_attach_refuses(void **state)
{
	struct xtal_ring_end end;
	struct pair p;
	uint64_t *words;

	(void)state;
	open_pair(&p, SMALL, 0);
	words = (uint64_t *)(void *)p.mem;
	assert_int_equal(xtal_ring_attach(p.mem, 0, &end, XTAL_RING_TARGET), -EPROTO);
	assert_int_equal(xtal_ring_attach(p.mem, p.len - 1, &end, XTAL_RING_TARGET), -EPROTO);
	assert_int_equal(xtal_ring_attach(p.mem + 64, p.len, &end, XTAL_RING_TARGET), -EPROTO);
	for (unsigned i = 0; i < 3; i++) { /* magic, version, capacity */
		static const uint64_t bad[] = { 0, 3, SMALL * 2, UINT64_MAX, UINT64_C(1) << 63 };
		uint64_t good = words[i];

		for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
			words[i] = bad[b];
			assert_int_equal(xtal_ring_attach(p.mem, p.len, &end, XTAL_RING_TARGET),
					 -EPROTO);
		}
		words[i] = good;
	}
	for (unsigned ring = 0; ring < 2; ring++)
		for (unsigned word = 0; word < 2; word++) {
			uint64_t *w = &words[(128 + 512 * ring + 128 * word) / 8];
			uint64_t good = *w;

			*w = word ? (uint64_t)-2048 : 2048; /* more than the capacity in flight */
			for (unsigned role = 0; role < 2; role++)
				assert_int_equal(xtal_ring_attach(p.mem, p.len, &end,
								  (enum xtal_ring_role)role),
						 -EPROTO);
			*w = 8; /* not at a frame */
			assert_int_equal(xtal_ring_attach(p.mem, p.len, &end, XTAL_RING_TARGET),
					 -EPROTO);
			*w = good;
		}
	assert_int_equal(xtal_ring_attach(p.mem, p.len, &end, XTAL_RING_TARGET), 0);
	close_pair(&p);
}

static void test_both_directions(void **state)
{
	struct pair p;
	size_t len;

	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		open_pair(&p, SMALL, starts[s]);
		for (uint64_t i = 0; i < 100; i++) {
			assert_int_equal(post(&p.initiator, i, i % 300, NULL), 0);
			assert_true(take(&p.initiator, &len) == UINT64_MAX);
			assert_int_equal(take(&p.target, &len), i);
			assert_int_equal(len, i % 300);
			assert_int_equal(post(&p.target, i + 1000, i % 200, NULL), 0);
			assert_true(take(&p.target, &len) == UINT64_MAX);
			assert_int_equal(take(&p.initiator, &len), i + 1000);
			assert_int_equal(len, i % 200);
		}
		close_pair(&p);
	}
}

/* An attaching side finds what was posted before it came. */
static void test_attach_late(void **state)
{
	struct pair p;
	struct xtal_ring_end late;
	size_t len;

	(void)state;
	open_pair(&p, SMALL, 0);
	assert_int_equal(post(&p.initiator, 5, 100, NULL), 0);
	assert_int_equal(xtal_ring_attach(p.mem, p.len, &late, XTAL_RING_TARGET), 0);
	assert_int_equal(take(&late, &len), 5);
	close_pair(&p);
}

/* The largest frame fits into an empty ring wherever its end happens to be. */
static void test_largest(void **state)
{
	size_t max = xtal_ring_max_payload(SMALL);
	struct xtal_ring_slot slot;
	struct pair p;
	size_t len;

	(void)state;
	for (uint64_t start = 0; start < SMALL; start += 64) {
		open_pair(&p, SMALL, start);
		assert_int_equal(xtal_ring_reserve(&p.initiator, max + 1, &slot), -EMSGSIZE);
		assert_int_equal(xtal_ring_reserve(&p.initiator, SIZE_MAX, &slot), -EMSGSIZE);
		assert_true(xtal_ring_has_room(&p.initiator, max));
		assert_false(xtal_ring_has_room(&p.initiator, max + 1));
		assert_int_equal(post(&p.initiator, 1, max, NULL), 0);
		assert_int_equal(take(&p.target, &len), 1);
		assert_int_equal(len, max);
		close_pair(&p);
	}
}

static void test_reserve_is_private(void **state)
{
	struct pair p;
	size_t len;

	(void)state;
	open_pair(&p, SMALL, UINT64_MAX - 640);
	assert_false(xtal_ring_publish(&p.initiator)); /* nothing reserved */
	assert_int_equal(send_frame(&p.initiator, 1, 300, NULL), 0);
	assert_true(take(&p.target, &len) == UINT64_MAX);
	assert_int_equal(send_frame(&p.initiator, 2, 10, NULL), 0); /* replaces it */
	xtal_ring_publish(&p.initiator);
	assert_false(xtal_ring_publish(&p.initiator));
	assert_int_equal(take(&p.target, &len), 2);
	assert_int_equal(len, 10);
	assert_true(take(&p.target, &len) == UINT64_MAX);
	close_pair(&p);
}

static void test_peek_repeats(void **state)
{
	struct pair p;
	size_t len;

	(void)state;
	open_pair(&p, SMALL, 0);
	post(&p.initiator, 1, 10, NULL);
	post(&p.initiator, 2, 20, NULL);
	assert_int_equal(take_frame(&p.target, &len), 1);
	assert_int_equal(take_frame(&p.target, &len), 1);
	assert_false(xtal_ring_prepare_sleep(&p.target));
	xtal_ring_release(&p.target);
	xtal_ring_release(&p.target); /* nothing more to give back */
	assert_int_equal(take(&p.target, &len), 2);
	close_pair(&p);
}

/*
 * F34, F36: random traffic against a plain queue of lengths. Room is promised exactly: what is
 * in flight plus the new frame, plus the rest of the ring when it does not fit there.
 */
static void test_against_queue(void **state)
{
	struct rng r = { .state = 11 };

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		size_t capacity = (size_t)SMALL << rng_below(&r, 3);
		struct {
			uint64_t number;
			size_t len, bytes;
		} queue[64];
		uint64_t start = starts[rng_below(&r, STARTS)] - 64 * rng_below(&r, 64);
		uint64_t in = 0, out = 0, tail = start & ~UINT64_C(63), used = 0;
		struct pair p;

		open_pair(&p, capacity, start);
		for (unsigned i = 0; i < 400; i++) {
			bool brief = rng_below(&r, 3) == 0;
			size_t len = brief ? 0 : rng_below(&r, xtal_ring_max_payload(capacity) + 1);
			size_t size = brief ? 64 : (208 + len + 63) / 64 * 64, got;
			uint64_t rest = capacity - (tail & (capacity - 1));
			size_t need = size > rest ? rest + size : size;

			if (rng_below(&r, 2)) {
				bool fits = used + need <= capacity;

				assert_int_equal(brief ? post_short(&p.initiator, in)
						       : post(&p.initiator, in, len, NULL),
						 fits ? 0 : -EAGAIN);
				if (!fits)
					continue;
				queue[in % 64].number = in;
				queue[in % 64].len = len;
				queue[in % 64].bytes = need;
				in++;
				used += need;
				tail += need;
			} else if (in == out) {
				assert_true(take(&p.target, &got) == UINT64_MAX);
			} else {
				assert_int_equal(take(&p.target, &got), queue[out % 64].number);
				assert_int_equal(got, queue[out % 64].len);
				used -= queue[out % 64].bytes;
				out++;
			}
		}
		close_pair(&p);
	}
}

/* F36: every pair of head and tail of a ring of 16 units, near every kind of wrap. */
static void test_all_fill_levels(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint64_t shift = 0; shift < 16; shift++)
			for (unsigned fill = 0; fill <= 4; fill++) {
				uint64_t next = 0, seen = 0;
				struct pair p;
				size_t len;

				open_pair(&p, SMALL, starts[s] + 64 * shift);
				for (unsigned i = 0; i < 40; i++) {
					while (next - seen < fill &&
					       !post(&p.initiator, next, 48, NULL))
						next++;
					assert_true(next - seen >= (fill < 3 ? fill : 3));
					if (next != seen)
						assert_int_equal(take(&p.target, &len), seen++);
				}
				close_pair(&p);
			}
}

static void test_cancel(void **state)
{
	uint64_t at[3], consumed;
	struct pair p;
	size_t len;

	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		open_pair(&p, SMALL, starts[s]);
		assert_int_equal(xtal_ring_cancel(&p.initiator, p.initiator.out.position), -EINVAL);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(post(&p.initiator, i, 40, &at[i]), 0);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[0] + 1), -EINVAL);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[2] + 6400), -EINVAL);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[1]), 0);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[1]), 0);
		assert_int_equal(take_frame(&p.target, &len), 0);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[0]), -EALREADY); /* claimed */
		xtal_ring_release(&p.target);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[0]), -EALREADY); /* consumed */
		assert_int_equal(xtal_ring_consumed(&p.initiator, &consumed), 0);
		assert_true(consumed - at[0] == 256);
		assert_int_equal(take(&p.target, &len), 2);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[1]), -EALREADY);
		assert_int_equal(xtal_ring_cancel(&p.initiator, at[0] - 64 * SMALL), -EALREADY);
		/* the last frame cancelled: passed over, and its room comes back */
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(post(&p.initiator, i, 40, &at[i]), 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(xtal_ring_cancel(&p.initiator, at[i]), 0);
		assert_int_equal(post(&p.initiator, 9, 300, NULL), -EAGAIN);
		assert_true(xtal_ring_prepare_room(&p.initiator, 300));
		assert_true(take_frame(&p.target, &len) == UINT64_MAX);
		assert_true(xtal_ring_release(&p.target));
		assert_false(xtal_ring_release(&p.target));
		assert_false(xtal_ring_prepare_room(&p.initiator, 300));
		assert_int_equal(post(&p.initiator, 9, 300, NULL), 0);
		assert_int_equal(take(&p.target, &len), 9);
		close_pair(&p);
	}
}

static void test_sleep_flags(void **state)
{
	struct pair p;
	size_t len;

	(void)state;
	open_pair(&p, SMALL, 0);
	assert_int_equal(post(&p.initiator, 1, 8, NULL), 0);
	assert_false(xtal_ring_prepare_sleep(&p.target));
	assert_int_equal(take(&p.target, &len), 1);
	assert_true(xtal_ring_prepare_sleep(&p.target));
	send_frame(&p.initiator, 2, 8, NULL);
	assert_true(xtal_ring_publish(&p.initiator)); /* the doorbell is due, once */
	send_frame(&p.initiator, 3, 8, NULL);
	assert_false(xtal_ring_publish(&p.initiator));
	assert_int_equal(take(&p.target, &len), 2);
	assert_int_equal(take(&p.target, &len), 3);
	assert_true(xtal_ring_prepare_sleep(&p.target));
	xtal_ring_cancel_sleep(&p.target);
	send_frame(&p.initiator, 4, 8, NULL);
	assert_false(xtal_ring_publish(&p.initiator));
	assert_false(xtal_ring_release(&p.target)); /* nobody waits for room */
	close_pair(&p);
}

/* A hostile peer writes anything anywhere at any time: errors, never a bad access. */
static void test_rubbish(void **state)
{
	struct rng r = { .state = 5 };
	unsigned refused = 0, shown = 0;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct pair p;
		uint64_t at = 0;

		open_pair(&p, SMALL, starts[rng_below(&r, STARTS)]);
		for (unsigned i = 0; i < 12; i++) {
			struct xtal_ring_end *end = rng_below(&r, 2) ? &p.initiator : &p.target;
			const uint8_t *header, *payload;
			uint64_t words[] = {
				0,
				64,
				1,
				3,
				4,
				5,
				1024,
				2048,
				UINT64_MAX,
				UINT64_MAX - 63,
				p.initiator.out.position,
				p.target.out.position,
				rng_next(&r),
			};
			uint64_t word = words[rng_below(&r, 13)];
			struct xtal_ring_slot slot;
			size_t len = rng_below(&r, 350);
			int n;

			if (rng_below(&r, 2)) /* the counters, or any word */
				memcpy(p.mem + 128 * (1 + rng_below(&r, 8)), &word, 8);
			else
				memcpy(p.mem + 8 * rng_below(&r, p.len / 8), &word, 8);
			n = xtal_ring_reserve(end, len, &slot);
			if (n == 0) {
				assert_true(slot.header >= p.mem + 1152);
				assert_true(slot.payload + len <= p.mem + p.len);
				memset(slot.header, 1, XTAL_RING_HEADER);
				memset(slot.payload, 2, len);
				at = slot.position;
				xtal_ring_publish(end);
			}
			refused += n == -EPROTO;
			xtal_ring_cancel(end, rng_below(&r, 2) ? at : rng_next(&r));
			xtal_ring_prepare_room(end, len);
			xtal_ring_prepare_sleep(end);
			n = xtal_ring_peek(end, &header, &payload, &len);
			if (n == 1) {
				assert_true(payload >= p.mem + 1152 + XTAL_RING_HEADER);
				assert_true(len <= xtal_ring_max_payload(SMALL));
				assert_true(payload + len <= p.mem + p.len);
				shown++;
			}
			refused += n == -EPROTO;
			xtal_ring_release(end);
		}
		close_pair(&p);
	}
	assert_true(refused > 1000 && shown > 1000);
}

/* A frame that does not fit what is published is refused whatever its state says. */
static void test_bad_frames(void **state)
{
	static const uint64_t lengths[] = { 49, 200, 304, 305, 1024, UINT64_MAX, UINT64_MAX - 207 };
	static const uint32_t states[] = { 0, 2, 3, 6, UINT32_MAX };
	const uint8_t *header, *payload;
	struct pair p;
	size_t len;
	uint32_t *frame;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		open_pair(&p, SMALL, 0);
		post(&p.initiator, 1, 48, NULL);
		memcpy(p.target.in.data + 8, &lengths[i], 8);
		assert_int_equal(xtal_ring_peek(&p.target, &header, &payload, &len), -EPROTO);
		assert_int_equal(xtal_ring_peek(&p.target, &header, &payload, &len), -EPROTO);
		assert_false(xtal_ring_prepare_sleep(&p.target));
		close_pair(&p);
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		open_pair(&p, SMALL, 0);
		post(&p.initiator, 1, 48, NULL);
		frame = (uint32_t *)(void *)p.target.in.data;
		*frame = states[i];
		assert_int_equal(xtal_ring_peek(&p.target, &header, &payload, &len), -EPROTO);
		close_pair(&p);
	}
	open_pair(&p, SMALL, 0); /* a skip beyond what is published */
	post(&p.initiator, 1, 48, NULL);
	*(uint32_t *)(void *)p.target.in.data = 5;
	assert_int_equal(xtal_ring_peek(&p.target, &header, &payload, &len), -EPROTO);
	close_pair(&p);
}

/*
 * Two threads, small ring, every kind of waiting: frames arrive complete and in order, what was
 * cancelled never does, what could not be cancelled always does, and nobody sleeps for ever.
 */
#define FRAMES 60000

struct stress {
	struct pair p;
	sem_t frames, room, answers;
	uint8_t *fate; /* by number: 1 cancelled; written by the producer, read after the join */
	uint8_t *seen;
	bool cancels;
};

static void produce(struct stress *s, struct xtal_ring_end *end, uint64_t number, size_t len,
		    sem_t *doorbell, uint64_t *position)
{
	while (send_frame(end, number, len, position))
		if (xtal_ring_prepare_room(end, len))
			sem_wait(&s->room);
	if (xtal_ring_publish(end))
		sem_post(doorbell);
}

static void *producer(void *arg)
{
	struct stress *s = arg;
	struct rng r = { .state = 21 };
	uint64_t old_at = 0, old = UINT64_MAX;

	for (uint64_t i = 0; i < FRAMES; i++) {
		uint64_t at;

		produce(s, &s->p.initiator, i, rng_below(&r, 300), &s->frames, &at);
		if (s->cancels && rng_below(&r, 2) && i + 1 < FRAMES) {
			bool older = rng_below(&r, 2) && old != UINT64_MAX;
			int err = xtal_ring_cancel(&s->p.initiator, older ? old_at : at);

			if (err == 0)
				s->fate[older ? old : i] = 1;
			else if (err != -EALREADY)
				abort();
		}
		old = i;
		old_at = at;
		if (rng_below(&r, 64) == 0)
			sched_yield();
	}
	return NULL;
}

static void *consumer(void *arg)
{
	struct stress *s = arg;
	struct xtal_ring_end *end = &s->p.target;
	struct rng r = { .state = 22 };
	uint64_t last = UINT64_MAX, number = 0;

	while (number != FRAMES - 1) {
		const uint8_t *header, *payload;
		size_t len;
		int n = xtal_ring_peek(end, &header, &payload, &len);

		if (n < 0)
			abort();
		if (n == 1) {
			memcpy(&number, header, sizeof(number));
			if (last != UINT64_MAX && number <= last)
				abort();
			for (size_t i = 0; i < len; i++)
				if (payload[i] != (number * 7 & 0xff))
					abort();
			last = number;
			s->seen[number]++;
		}
		if (xtal_ring_release(end))
			sem_post(&s->room);
		if (n == 0 && xtal_ring_prepare_sleep(end)) {
			sem_wait(&s->frames);
			xtal_ring_cancel_sleep(end);
		}
		if (rng_below(&r, 64) == 0)
			sched_yield();
	}
	return NULL;
}

static void run_stress(bool cancels)
{
	struct stress s = { .cancels = cancels };
	pthread_t threads[2];

	open_pair(&s.p, SMALL, UINT64_MAX - 100 * SMALL);
	s.fate = calloc(FRAMES, 1);
	s.seen = calloc(FRAMES, 1);
	assert_non_null(s.fate);
	assert_non_null(s.seen);
	sem_init(&s.frames, 0, 0);
	sem_init(&s.room, 0, 0);
	assert_int_equal(pthread_create(&threads[0], NULL, producer, &s), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, consumer, &s), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(s.seen[i] + s.fate[i], 1);
	free(s.fate);
	free(s.seen);
	sem_destroy(&s.frames);
	sem_destroy(&s.room);
	close_pair(&s.p);
}

static void test_stress(void **state)
{
	(void)state;
	run_stress(false);
}

static void test_stress_cancel(void **state)
{
	(void)state;
	run_stress(true);
}

/* Ping-pong in which both sides sleep after every frame: a lost doorbell would hang. */
#define ROUNDS 30000

static void sleep_for(struct xtal_ring_end *end, sem_t *bell, uint64_t expected)
{
	size_t len;
	uint64_t got;

	while ((got = take(end, &len)) == UINT64_MAX)
		if (xtal_ring_prepare_sleep(end)) {
			sem_wait(bell);
			xtal_ring_cancel_sleep(end);
		}
	if (got != expected)
		abort();
}

static void *echo(void *arg)
{
	struct stress *s = arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		sleep_for(&s->p.target, &s->frames, i);
		produce(s, &s->p.target, i, 8, &s->answers, NULL);
	}
	return NULL;
}

static void test_doorbells(void **state)
{
	struct stress s = { 0 };
	pthread_t thread;

	(void)state;
	open_pair(&s.p, SMALL, 0);
	sem_init(&s.frames, 0, 0);
	sem_init(&s.answers, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, echo, &s), 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		produce(&s, &s.p.initiator, i, 8, &s.frames, NULL);
		sleep_for(&s.p.initiator, &s.answers, i);
	}
	pthread_join(thread, NULL);
	sem_destroy(&s.frames);
	sem_destroy(&s.answers);
	close_pair(&s.p);
}

/*
 * The two races that lose a wake-up, met head on: both sides act at the same moment, and at
 * least one must see the other. With any of the four orders weakened, most runs lose some.
 */
#if defined(__SANITIZE_THREAD__)
#define MEETINGS 3000 /* slow there, and the order is the processor's anyway */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEETINGS 3000
#endif
#endif
#ifndef MEETINGS
#define MEETINGS 100000
#endif

struct meeting {
	struct pair p;
	atomic_uint turn;            /* both have arrived when it is 2 * round */
	bool bell_frames, bell_room; /* what the thread was told */
};

static void meet(struct meeting *m, unsigned round)
{
	unsigned spins = 0;

	atomic_fetch_add(&m->turn, 1);
	while (atomic_load(&m->turn) < 2 * round)
		if (++spins % 200 == 0)
			sched_yield();
}

/* Shifts the two sides against each other, so that their stores and loads meet in all ways. */
static void shift(unsigned round, unsigned side)
{
	volatile unsigned n = (round & 1) == side ? round / 2 % 64 : 0;

	while (n > 0)
		n = n - 1;
}

static void *other_side(void *arg)
{
	struct meeting *m = arg;

	for (unsigned i = 0; i < MEETINGS; i++) {
		send_frame(&m->p.initiator, i, 8, NULL);
		meet(m, 4 * i + 1);
		shift(i, 0);
		m->bell_frames = xtal_ring_publish(&m->p.initiator);
		meet(m, 4 * i + 2);
		meet(m, 4 * i + 3);
		shift(i, 0);
		m->bell_room = xtal_ring_release(&m->p.initiator);
		meet(m, 4 * i + 4);
	}
	return NULL;
}

static void test_meetings(void **state)
{
	size_t half = xtal_ring_max_payload(SMALL), len; /* two of these fill the ring */
	struct meeting m = { 0 };
	unsigned lost_frames = 0, lost_room = 0;
	pthread_t thread;

	(void)state;
	open_pair(&m.p, SMALL, 0);
	assert_int_equal(post(&m.p.target, 0, half, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, other_side, &m), 0);
	for (unsigned i = 0; i < MEETINGS; i++) {
		const uint8_t *header, *payload;
		bool sleeps, waits;

		meet(&m, 4 * i + 1);
		shift(i, 1);
		sleeps = xtal_ring_prepare_sleep(&m.p.target);
		meet(&m, 4 * i + 2);
		lost_frames += sleeps && !m.bell_frames;
		xtal_ring_cancel_sleep(&m.p.target);
		assert_int_equal(take(&m.p.target, &len), i);
		assert_int_equal(post(&m.p.target, 0, half, NULL), 0);
		assert_int_equal(xtal_ring_peek(&m.p.initiator, &header, &payload, &len), 1);
		meet(&m, 4 * i + 3);
		shift(i, 1);
		waits = xtal_ring_prepare_room(&m.p.target, half);
		meet(&m, 4 * i + 4);
		lost_room += waits && !m.bell_room;
	}
	pthread_join(thread, NULL);
	assert_int_equal(lost_frames, 0);
	assert_int_equal(lost_room, 0);
	close_pair(&m.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),          cmocka_unit_test(test_attach_refuses),
		cmocka_unit_test(test_both_directions), cmocka_unit_test(test_attach_late),
		cmocka_unit_test(test_largest),         cmocka_unit_test(test_reserve_is_private),
		cmocka_unit_test(test_peek_repeats),    cmocka_unit_test(test_against_queue),
		cmocka_unit_test(test_all_fill_levels), cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_sleep_flags),     cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_bad_frames),      cmocka_unit_test(test_stress),
		cmocka_unit_test(test_stress_cancel),   cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_meetings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
