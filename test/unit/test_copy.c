/* SPDX-License-Identifier: MIT */
/* Copies are complete, touch nothing else, survive overlap, and their last word lands last.
 * ctest: timeout=180 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/copy.h"

#define AREA  8192
#define GUARD 64

static void fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1103515245u + 12345u;
		p[i] = (unsigned char)(seed >> 16);
	}
}

static const size_t long_lengths[] = { 255,  256,  257,  511,  512,  1000, 2047, 2048,
				       2055, 2056, 2057, 2100, 4095, 4096, 4097, 8000 };

/* One copy at given offsets, compared with memcpy, surroundings included. */
static void copy_once(size_t dst_off, size_t src_off, size_t len, bool split)
{
	static unsigned char src[AREA + 256], got[AREA + 256], want[AREA + 256];
	unsigned char *d = got + GUARD + dst_off;
	size_t area = len + 256;

	fill(src, len + 8, (unsigned)(len + 1));
	memset(got, 0xa5, area);
	memset(want, 0xa5, area);
	memcpy(want + GUARD + dst_off, src + src_off, len);
	if (split) {
		size_t tail = xtal_copy_tail_len(d, len);

		xtal_copy_body(d, src + src_off, len);
		for (size_t i = len - tail; i < len; i++)
			assert_int_equal(d[i], 0xa5);
		xtal_copy_tail(d, src + src_off, len);
	} else {
		xtal_copy(d, src + src_off, len);
	}
	assert_memory_equal(got, want, area);
}

/* The same past the caches. */
static void stream_once(size_t dst_off, size_t len)
{
	static unsigned char src[AREA + 256], got[AREA + 256], want[AREA + 256];
	unsigned char *d = got + GUARD + dst_off;
	size_t tail = xtal_copy_tail_len(d, len);

	fill(src, sizeof(src), (unsigned)len);
	memset(got, 0xa5, sizeof(got));
	memset(want, 0xa5, sizeof(want));
	memcpy(want + GUARD + dst_off, src + 3, len);
	xtal_copy_stream_body(d, src + 3, len);
	for (size_t i = len - tail; i < len; i++)
		assert_int_equal(d[i], 0xa5);
	xtal_copy_tail(d, src + 3, len);
	assert_memory_equal(got, want, sizeof(got));
	memset(d, 0xa5, len);
	xtal_copy_stream(d, src + 3, len);
	assert_memory_equal(got, want, sizeof(got));
}

static void streams(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(long_lengths) / sizeof(long_lengths[0]); i++)
		for (size_t dst = 0; dst < 33; dst++)
			stream_once(dst, long_lengths[i]);
	for (size_t len = 0; len < 70; len++)
		stream_once(1, len);
}

static void every_alignment(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 140; len++)
		for (size_t dst = 0; dst < 8; dst++)
			for (size_t src = 0; src < 3; src++) {
				copy_once(dst, src, len, false);
				copy_once(dst, src, len, true);
			}
}

static void long_copies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(long_lengths) / sizeof(long_lengths[0]); i++)
		for (size_t dst = 0; dst < 33; dst++) {
			copy_once(dst, 0, long_lengths[i], false);
			copy_once(dst, 5, long_lengths[i], true);
		}
}

/* Lengths at which other machinery takes over. */
static void huge_copies(void **state)
{
	static const size_t lengths[] = {
		32760,
		32768,
		32783,
		49152,
		65531,
		65536,
		131072,
		131080,
		524288 - 8,
		524288,
		524296,
		(size_t)3 << 20,
		((size_t)1 << 20) + 3,
	};
	unsigned char *src = malloc(4u << 20), *dst = malloc(4u << 20);

	(void)state;
	assert_non_null(src);
	assert_non_null(dst);
	fill(src, 4u << 20, 7);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t off = 0; off < 16; off += 5)
			for (unsigned turn = 0; turn < 2; turn++) {
				memset(dst, 0, lengths[i] + 64);
				xtal_copy(dst + off, src + 3, lengths[i]);
				assert_memory_equal(dst + off, src + 3, lengths[i]);
				assert_int_equal(dst[off + lengths[i]], 0);
			}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned up = 0; up < 2; up++) { /* overlapping in both directions */
			memcpy(dst, src, lengths[i] + 64);
			xtal_copy_loose(dst + (up ? 9 : 0), dst + (up ? 0 : 9), lengths[i]);
			assert_memory_equal(dst + (up ? 9 : 0), src + (up ? 0 : 9), lengths[i]);
		}
	free(src);
	free(dst);
}

static void tail_length(void **state)
{
	_Alignas(8) unsigned char area[64];

	(void)state;
	for (size_t off = 0; off < 8; off++)
		for (size_t len = 0; len < 48; len++) {
			size_t tail = xtal_copy_tail_len(area + off, len), end = (off + len) % 8;

			assert_true(tail <= 15 && tail <= len);
			assert_true((tail == 0) == (len == 0));
			if (len >= 8)
				assert_int_equal(tail, end == 0 ? 8 : end);
		}
}

/* Moving either side by a step is enough, and what lies alike in its page is left alone. */
static void crawling(void **state)
{
	char *src = (char *)0x10000;

	(void)state;
	assert_false(xtal_copy_crawls(src, src));
	for (size_t off = 0; off < 3 * 4096; off++) {
		char *dst = src + off;

		if (off % 4096 >= 1 && off % 4096 < 32)
			assert_true(xtal_copy_crawls(dst, src));
		if (off % 64 == 0)
			assert_false(xtal_copy_crawls(dst, src));
		if (!xtal_copy_crawls(dst, src))
			continue;
		assert_false(xtal_copy_crawls(dst + XTAL_COPY_STEP, src));
		assert_false(xtal_copy_crawls(dst, src + XTAL_COPY_STEP));
	}
}

/* Also where dst lies behind src, which the contract does not even promise. */
static void overlap(void **state)
{
	static unsigned char got[AREA + 512], want[AREA + 512];

	(void)state;
	for (size_t i = 0; i < 3000; i++) {
		size_t len = i < 2000 ? i % 130 : (i * 37) % AREA;
		size_t src = 200 + i % 7, dst = src + (i * 13) % 300 - 150, area = len + 500;

		fill(got, area, (unsigned)i);
		memcpy(want, got, area);
		memmove(want + dst, want + src, len);
		xtal_copy(got + dst, got + src, len);
		assert_memory_equal(got, want, area);
	}
}

/* A reader that spins on the last piece, as programs do, and then looks at the rest. */
struct race {
	unsigned char *dst;
	size_t len;
	atomic_uint seen; /* rounds the reader has checked */
	atomic_bool stop;
	unsigned bad;
};

/* Size of the last naturally aligned piece. */
static size_t last_piece(const unsigned char *dst, size_t len)
{
	size_t end = (uintptr_t)(dst + len) & 7, piece = end == 0 ? 8 : end & (~end + 1);

	while (piece > len)
		piece /= 2;
	return piece;
}

static bool last_is(const unsigned char *end, size_t piece, unsigned char want)
{
	unsigned char bytes[8];
	uint64_t v = 0;

	/* Acquire: partner of the release store of the copy's last piece. */
	switch (piece) {
	case 8:
		v = __atomic_load_n((const uint64_t *)(const void *)(end - 8), __ATOMIC_ACQUIRE);
		break;
	case 4:
		v = __atomic_load_n((const uint32_t *)(const void *)(end - 4), __ATOMIC_ACQUIRE);
		break;
	case 2:
		v = __atomic_load_n((const uint16_t *)(const void *)(end - 2), __ATOMIC_ACQUIRE);
		break;
	default:
		v = __atomic_load_n(end - 1, __ATOMIC_ACQUIRE);
		break;
	}
	memcpy(bytes, &v, sizeof(bytes));
	return bytes[0] == want && bytes[piece - 1] == want;
}

static void *race_reader(void *arg)
{
	struct race *r = arg;
	size_t piece = last_piece(r->dst, r->len);

	for (unsigned round = 1;; round++) {
		unsigned char want = (unsigned char)round;
		unsigned spins = 0;

		while (!last_is(r->dst + r->len, piece, want)) {
			if (atomic_load(&r->stop))
				return NULL;
			if (++spins % 200 == 0)
				sched_yield();
		}
		for (size_t i = 0; i < r->len; i++)
			r->bad += r->dst[i] != want;
		/* Release: our reads are over before the next round's stores. */
		atomic_store_explicit(&r->seen, round, memory_order_release);
	}
}

static unsigned ms_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned)((now.tv_sec - begin->tv_sec) * 1000 +
			  (now.tv_nsec - begin->tv_nsec) / 1000000);
}

/* As many rounds as a busy machine manages in a while. */

static void run_race(unsigned char *area, size_t off, size_t len)
{
	struct race r = { .dst = area + off, .len = len };
	unsigned char *src = malloc(len);
	struct timespec begin;
	pthread_t reader;

	assert_non_null(src);
	memset(r.dst, 0, len);
	assert_int_equal(pthread_create(&reader, NULL, race_reader, &r), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned round = 1; round <= 400 && ms_since(&begin) < 40; round++) {
		unsigned spins = 0;

		memset(src, (int)(round & 255), len);
		xtal_copy(r.dst, src, len);
		/* Acquire: partner of the reader's release. */
		while (atomic_load_explicit(&r.seen, memory_order_acquire) != round)
			if (++spins % 200 == 0)
				sched_yield();
	}
	atomic_store(&r.stop, true);
	pthread_join(reader, NULL);
	assert_int_equal(r.bad, 0);
	free(src);
}

static void last_lands_last(void **state)
{
	static const size_t lengths[] = { 1,   2,    3,    4,    7,    8,    9,     12,   13,
					  16,  24,   63,   64,   65,   100,  200,   255,  256,
					  513, 1000, 2048, 2064, 4096, 5001, 65536, 65537 };
	unsigned char *area = aligned_alloc(64, 128 << 10);

	(void)state;
	assert_non_null(area);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		run_race(area, 0, lengths[i]);
		run_race(area, 3, lengths[i]);
		run_race(area, 4, lengths[i]);
	}
	free(area);
}

/* An aligned word is stored whole: nobody sees half of it. */
struct words {
	_Atomic uint64_t word;
	atomic_bool stop;
	uint64_t torn;
};

static void *word_reader(void *arg)
{
	struct words *w = arg;

	while (!atomic_load(&w->stop)) {
		uint64_t v = atomic_load(&w->word);

		if (v != 0 && v != UINT64_MAX)
			w->torn = v;
	}
	return NULL;
}

static void words_are_whole(void **state)
{
	struct words w = { 0 };
	pthread_t reader;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, word_reader, &w), 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t v = i & 1 ? UINT64_MAX : 0;

		xtal_copy((void *)&w.word, &v, sizeof(v));
	}
	atomic_store(&w.stop, true);
	pthread_join(reader, NULL);
	assert_true(w.torn == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_alignment), cmocka_unit_test(long_copies),
		cmocka_unit_test(huge_copies),     cmocka_unit_test(tail_length),
		cmocka_unit_test(overlap),         cmocka_unit_test(last_lands_last),
		cmocka_unit_test(words_are_whole), cmocka_unit_test(streams),
		cmocka_unit_test(crawling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
