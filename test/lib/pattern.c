/* SPDX-License-Identifier: MIT */
/* The bytes of pattern.h, eight at a time. */
#include "lib/pattern.h"

#include <string.h>

static uint64_t word(uint64_t seed, uint64_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ seed * UINT64_C(0xbf58476d1ce4e5b9);

	x = (x ^ x >> 29) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 32;
}

static size_t chunk(size_t left, uint64_t pos)
{
	size_t n = 8 - pos % 8;

	return n < left ? n : left;
}

void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t pos)
{
	uint8_t *p = buf;

	for (size_t done = 0, n; done < len; done += n) {
		uint64_t w = word(seed, (pos + done) / 8);

		n = chunk(len - done, pos + done);
		memcpy(p + done, (uint8_t *)&w + (pos + done) % 8, n);
	}
}

int64_t pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t pos)
{
	const uint8_t *p = buf;

	for (size_t done = 0, n; done < len; done += n) {
		uint64_t w = word(seed, (pos + done) / 8);
		const uint8_t *want = (uint8_t *)&w + (pos + done) % 8;

		n = chunk(len - done, pos + done);
		if (!memcmp(p + done, want, n))
			continue;
		for (size_t i = 0; i < n; i++)
			if (p[done + i] != want[i])
				return (int64_t)(done + i);
	}
	return -1;
}

int64_t pattern_check_all(const void *buf, size_t len, uint8_t value)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return (int64_t)i;
	return -1;
}
