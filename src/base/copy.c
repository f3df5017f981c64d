/* SPDX-License-Identifier: MIT */
/*
 * Copies whose last word lands last. Every load of the last word's source comes before the
 * body's stores, so xtal_copy() also survives overlap in either direction.
 */
#include "base/copy.h"

#include <stdbool.h>
#include <string.h>

#include "base/export.h"

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

/* Stores the low n (1..8) bytes of v to d, which is 8-aligned, in address order. */
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

/* The same for any alignment: the largest aligned piece that fits, until nothing is left. */
static void store_pieces(unsigned char *d, uint64_t v, size_t n)
{
	while (n > 0) {
		size_t piece = 1;

		while (piece * 2 <= n && aligned(d, piece * 2))
			piece *= 2;
		switch (piece) {
		case 8:
			store8(d, v);
			return;
		case 4:
			store4(d, (uint32_t)v);
			break;
		case 2:
			store2(d, (uint16_t)v);
			break;
		default:
			store1(d, (uint8_t)v);
			break;
		}
		v >>= piece * 8;
		d += piece;
		n -= piece;
	}
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

/* Short bodies without a call: load everything (two loads that may overlap), then store. */
static inline void move_body(unsigned char *d, const unsigned char *s, size_t n)
{
	struct half {
		uint64_t w[2];
	} first, last;
	uint64_t a, b;
	uint32_t c, e;

	if (n > 32) {
		memmove(d, s, n);
	} else if (n >= 16) {
		memcpy(&first, s, 16);
		memcpy(&last, s + n - 16, 16);
		memcpy(d, &first, 16);
		memcpy(d + n - 16, &last, 16);
	} else if (n >= 8) {
		a = load8(s);
		b = load8(s + n - 8);
		memcpy(d, &a, 8);
		memcpy(d + n - 8, &b, 8);
	} else if (n >= 4) {
		memcpy(&c, s, 4);
		memcpy(&e, s + n - 4, 4);
		memcpy(d, &c, 4);
		memcpy(d + n - 4, &e, 4);
	} else if (n > 0) { /* first, middle and last cover 1..3 bytes */
		unsigned char x = s[0], y = s[n / 2], z = s[n - 1];

		d[0] = x;
		d[n / 2] = y;
		d[n - 1] = z;
	}
}

size_t xtal_copy_tail_len(const void *dst, size_t len)
{
	return tail_len(dst, len);
}

void xtal_copy_body(void *dst, const void *src, size_t len)
{
	move_body(dst, src, len - tail_len(dst, len));
}

void xtal_copy_tail(void *dst, const void *src, size_t len)
{
	size_t tail = tail_len(dst, len), body = len - tail;

	store_pieces((unsigned char *)dst + body, load_few((const unsigned char *)src + body, tail),
		     tail);
}

/* Fewer than 8 bytes: one store when it is a word, else pieces; no body to speak of. */
static void copy_few(unsigned char *d, const unsigned char *s, size_t len)
{
	uint64_t v = load_few(s, len);
	size_t tail = tail_len(d, len), body = len - tail;

	if (body == 0) {
		store_pieces(d, v, len);
		return;
	}
	store_pieces(d, v, body);
	store_pieces(d + body, v >> body * 8, tail);
}

void xtal_copy(void *dst, const void *src, size_t len)
{
	unsigned char *d = dst;
	const unsigned char *s = src;
	size_t tail;
	uint64_t last;

	if (len == 8 && aligned(d, 8)) {
		store8(d, load8(s));
		return;
	}
	if (len < 8) {
		copy_few(d, s, len);
		return;
	}
	/* The last 8 source bytes hold the tail in their upper end. */
	last = load8(s + len - 8);
	tail = tail_len(d, len);
	move_body(d, s, len - tail);
	store_tail(d + len - tail, last >> (8 - tail) * 8, tail);
}
