/* SPDX-License-Identifier: MIT */
/*
 * Copies whose last word lands last. Every load of the last word's source comes before the
 * body's stores, so xtal_copy() also survives overlap in either direction.
 */
#include "base/copy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/export.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pieces are cut by shifting");

/* User memory of any effective type. */
typedef uint64_t __attribute__((may_alias)) word8;
typedef uint32_t __attribute__((may_alias)) word4;
typedef uint16_t __attribute__((may_alias)) word2;
typedef uint8_t __attribute__((may_alias)) word1;

static inline uint64_t load8(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * The only stores of a tail. Release: after everything of the body (partner: the acquire
 * load of whoever waits for these bytes). Atomic, so the compiler cannot merge or split them.
 */
static inline void store8(void *p, uint64_t v)
{
	__atomic_store_n((word8 *)p, v, __ATOMIC_RELEASE);
}

static inline void store4(void *p, uint32_t v)
{
	__atomic_store_n((word4 *)p, v, __ATOMIC_RELEASE);
}

static inline void store2(void *p, uint16_t v)
{
	__atomic_store_n((word2 *)p, v, __ATOMIC_RELEASE);
}

static inline void store1(void *p, uint8_t v)
{
	__atomic_store_n((word1 *)p, v, __ATOMIC_RELEASE);
}

static inline bool aligned(const void *p, size_t to)
{
	return ((uintptr_t)p & (to - 1)) == 0;
}

static inline size_t tail_len(const void *dst, size_t len)
{
	size_t t = ((uintptr_t)dst + len) & 7;

	if (t == 0)
		t = 8;
	return t < len ? t : len;
}

/* Stores the low n (0..8) bytes of v to d, which is 8-aligned, in address order. */
static inline void store_tail(unsigned char *d, uint64_t v, size_t n)
{
	if (xtal_likely(n == 8)) {
		store8(d, v);
		return;
	}
	if (n & 4) {
		store4(d, (uint32_t)v);
		v >>= 32;
		d += 4;
	}
	if (n & 2) {
		store2(d, (uint16_t)v);
		v >>= 16;
		d += 2;
	}
	if (n & 1)
		store1(d, (uint8_t)v);
}

/* The same for any alignment of d: first the pieces up to the next aligned word. */
static inline void store_pieces(unsigned char *d, uint64_t v, size_t n)
{
	if (!aligned(d, 2) && n >= 1) {
		store1(d, (uint8_t)v);
		v >>= 8;
		d += 1;
		n -= 1;
	}
	if (!aligned(d, 4) && n >= 2) {
		store2(d, (uint16_t)v);
		v >>= 16;
		d += 2;
		n -= 2;
	}
	if (!aligned(d, 8) && n >= 4) {
		store4(d, (uint32_t)v);
		v >>= 32;
		d += 4;
		n -= 4;
	}
	store_tail(d, v, n); /* what is left needs no more alignment than d has */
}

/* The n (0..8) bytes at p in the low end of a word, touching nothing else. */
static inline uint64_t load_few(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	uint32_t lo4, hi4;
	uint16_t lo2, hi2;

	if (n == 8)
		return load8(p);
	if (n >= 4) { /* two loads that may overlap */
		memcpy(&lo4, p, 4);
		memcpy(&hi4, p + n - 4, 4);
		return lo4 | (uint64_t)hi4 << (n - 4) * 8;
	}
	if (n >= 2) {
		memcpy(&lo2, p, 2);
		memcpy(&hi2, p + n - 2, 2);
		return lo2 | (uint64_t)hi2 << (n - 2) * 8;
	}
	if (n == 1)
		v = *p;
	return v;
}

static inline bool apart(const unsigned char *d, const unsigned char *s, size_t n)
{
	return (uintptr_t)d - (uintptr_t)s >= n && (uintptr_t)s - (uintptr_t)d >= n;
}

#if defined(__x86_64__)
/*
 * glibc's memcpy turns to "rep movsb" at 2 KiB, which some processors (measured: Zen 3) run
 * 20 times slower when dst is a little behind src in the page: 31 us instead of 1.5 us for
 * 64 KiB. From half a MiB on it is as fast as this loop, and later faster (stores that bypass
 * the cache).
 */
#define WIDE_MIN 2048
#define WIDE_MAX ((size_t)512 << 10)

typedef uint64_t __attribute__((vector_size(32), may_alias)) wide;
typedef uint64_t __attribute__((vector_size(32), may_alias, aligned(1))) wide_anywhere;

/* At least 128 bytes that do not overlap. */
__attribute__((target("avx2"))) static void move_wide(unsigned char *d, const unsigned char *s,
						      size_t n)
{
	size_t head = 32 - ((uintptr_t)d & 31);
	unsigned char *end = d + n;
	const unsigned char *s_end = s + n;

	*(wide_anywhere *)d = *(const wide_anywhere *)s;
	d += head;
	s += head;
	for (; d + 128 <= end; d += 128, s += 128) {
		wide a = *(const wide_anywhere *)s, b = *(const wide_anywhere *)(s + 32);
		wide c = *(const wide_anywhere *)(s + 64), e = *(const wide_anywhere *)(s + 96);

		*(wide *)d = a;
		*(wide *)(d + 32) = b;
		*(wide *)(d + 64) = c;
		*(wide *)(d + 96) = e;
	}
	for (; d + 32 < end; d += 32, s += 32)
		*(wide *)d = *(const wide_anywhere *)s;
	*(wide_anywhere *)(end - 32) = *(const wide_anywhere *)(s_end - 32);
}

/* The same with stores that bypass the caches. They are ordered by no release store: the
 * fence at the end does that. */
__attribute__((target("avx2"))) static void move_stream(unsigned char *d, const unsigned char *s,
							size_t n)
{
	size_t head = 32 - ((uintptr_t)d & 31);
	unsigned char *end = d + n;
	const unsigned char *s_end = s + n;

	_mm256_storeu_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
	d += head;
	s += head;
	for (; d + 128 <= end; d += 128, s += 128) {
		__m256i a = _mm256_loadu_si256((const __m256i *)s);
		__m256i b = _mm256_loadu_si256((const __m256i *)(s + 32));
		__m256i c = _mm256_loadu_si256((const __m256i *)(s + 64));
		__m256i e = _mm256_loadu_si256((const __m256i *)(s + 96));

		_mm256_stream_si256((__m256i *)d, a);
		_mm256_stream_si256((__m256i *)(d + 32), b);
		_mm256_stream_si256((__m256i *)(d + 64), c);
		_mm256_stream_si256((__m256i *)(d + 96), e);
	}
	for (; d + 32 < end; d += 32, s += 32)
		_mm256_storeu_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
	_mm256_storeu_si256((__m256i *)(end - 32),
			    _mm256_loadu_si256((const __m256i *)(s_end - 32)));
	_mm_sfence();
}

static inline bool use_wide(const unsigned char *d, const unsigned char *s, size_t n)
{
	return n >= WIDE_MIN && n < WIDE_MAX && apart(d, s, n) && __builtin_cpu_supports("avx2");
}
#endif

static inline void move_ahead(unsigned char *d, const unsigned char *s, size_t n)
{
#if defined(__x86_64__)
	if (use_wide(d, s, n)) {
		move_wide(d, s, n);
		return;
	}
#endif
	memmove(d, s, n);
}

/*
 * Copies a little larger than the first cache go to and fro in blocks: one starts at the end,
 * the next at the beginning, where this one stopped, so that a part of it is still in the
 * cache. Who has just written the source has its end there, too. Measured (48 KiB of cache):
 * 64 KiB of the same buffers take 0.87 of memcpy's time, 32 KiB 0.71; just written, 0.99 and
 * 0.74. From 128 KiB on it is worth nothing.
 */
#define TURN_MIN   ((size_t)32 << 10)
#define TURN_MAX   ((size_t)128 << 10)
#define TURN_BLOCK ((size_t)16 << 10)

static void move_turning(unsigned char *d, const unsigned char *s, size_t n)
{
	static atomic_uint turns; /* a hint: threads may take the same turn */
	unsigned turn = atomic_load_explicit(&turns, memory_order_relaxed);
	size_t at, len;

	atomic_store_explicit(&turns, turn + 1, memory_order_relaxed);
	for (size_t done = 0; done < n; done += len) {
		len = n - done < TURN_BLOCK ? n - done : TURN_BLOCK;
		at = turn & 1 ? done : n - done - len;
		move_ahead(d + at, s + at, len);
	}
}

static inline void move_long(unsigned char *d, const unsigned char *s, size_t n)
{
	if (n >= TURN_MIN && n < TURN_MAX && apart(d, s, n))
		move_turning(d, s, n);
	else
		move_ahead(d, s, n);
}

/* 16 bytes of memory at any address; the compiler has a register for them. */
typedef uint64_t __attribute__((vector_size(16), may_alias, aligned(1))) half;

/* 64 bytes and less without a call: load everything (pieces may overlap), then store. */
static inline void move_short(unsigned char *d, const unsigned char *s, size_t n)
{
	if (n >= 32) {
		half a = *(const half *)s, b = *(const half *)(s + 16);
		half c = *(const half *)(s + n - 32), e = *(const half *)(s + n - 16);

		*(half *)d = a;
		*(half *)(d + 16) = b;
		*(half *)(d + n - 32) = c;
		*(half *)(d + n - 16) = e;
	} else if (n >= 16) {
		half a = *(const half *)s, b = *(const half *)(s + n - 16);

		*(half *)d = a;
		*(half *)(d + n - 16) = b;
	} else if (n >= 8) {
		uint64_t a = load8(s), b = load8(s + n - 8);

		memcpy(d, &a, 8);
		memcpy(d + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		memcpy(&a, s, 4);
		memcpy(&b, s + n - 4, 4);
		memcpy(d, &a, 4);
		memcpy(d + n - 4, &b, 4);
	} else if (n > 0) { /* first, middle and last cover 1..3 bytes */
		unsigned char a = s[0], b = s[n / 2], c = s[n - 1];

		d[0] = a;
		d[n / 2] = b;
		d[n - 1] = c;
	}
}

#define SHORT_MAX 64

size_t xtal_copy_tail_len(const void *dst, size_t len)
{
	return tail_len(dst, len);
}

void xtal_copy_loose(void *dst, const void *src, size_t len)
{
	if (len <= SHORT_MAX)
		move_short(dst, src, len);
	else
		move_long(dst, src, len);
}

void xtal_copy_body(void *dst, const void *src, size_t len)
{
	xtal_copy_loose(dst, src, len - tail_len(dst, len));
}

void xtal_copy_tail(void *dst, const void *src, size_t len)
{
	size_t tail = tail_len(dst, len), body = len - tail;

	store_pieces((unsigned char *)dst + body, load_few((const unsigned char *)src + body, tail),
		     tail);
}

void xtal_copy_stream_body(void *dst, const void *src, size_t len)
{
#if defined(__x86_64__)
	size_t body = len - tail_len(dst, len);

	if (body >= WIDE_MIN && apart(dst, src, body) && __builtin_cpu_supports("avx2")) {
		move_stream(dst, src, body);
		return;
	}
#endif
	xtal_copy_body(dst, src, len);
}

void xtal_copy_stream(void *dst, const void *src, size_t len)
{
	xtal_copy_stream_body(dst, src, len);
	xtal_copy_tail(dst, src, len);
}

/*
 * The cases of a copy, each in a function of its own: a call would cost the short ones their
 * registers. The last 8 source bytes hold the tail in their upper end.
 */
static __attribute__((noinline)) void copy_few(unsigned char *d, const unsigned char *s, size_t len)
{
	store_pieces(d, load_few(s, len), len); /* all of it in pieces, the tail's last */
}

static __attribute__((noinline)) void copy_short(unsigned char *d, const unsigned char *s,
						 size_t len)
{
	uint64_t last = load8(s + len - 8);
	size_t tail = tail_len(d, len);

	move_short(d, s, len - tail);
	store_tail(d + len - tail, last >> (8 - tail) * 8, tail);
}

static __attribute__((noinline)) void copy_long(unsigned char *d, const unsigned char *s,
						size_t len)
{
	uint64_t last = load8(s + len - 8);
	size_t tail = tail_len(d, len);

	move_long(d, s, len - tail);
	store_tail(d + len - tail, last >> (8 - tail) * 8, tail);
}

void xtal_copy(void *dst, const void *src, size_t len)
{
	if (len == 8 && aligned(dst, 8))
		store8(dst, load8(src));
	else if (len < 8)
		copy_few(dst, src, len);
	else if (len <= SHORT_MAX)
		copy_short(dst, src, len);
	else
		copy_long(dst, src, len);
}
