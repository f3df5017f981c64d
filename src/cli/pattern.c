/* SPDX-License-Identifier: MIT */
/* Position-dependent test data: one mixed 64-bit word for every 8 bytes. */
#include "cli/pattern.h"

#include <string.h>

/* The finisher of splitmix64: neighbours differ in half of their bits. */
static uint64_t word_at(uint64_t seed, uint64_t position)
{
	uint64_t x = seed + (position / 8 + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void cli_pattern_fill(void *dst, size_t len, uint64_t seed, uint64_t position)
{
	char *p = dst;

	while (len > 0) {
		uint64_t word = word_at(seed, position);
		size_t n = len < 8 ? len : 8;

		memcpy(p, &word, n);
		p += n;
		len -= n;
		position += n;
	}
}

size_t cli_pattern_check(const void *src, size_t len, uint64_t seed, uint64_t position,
			 size_t *first)
{
	const char *p = src;
	size_t bad = 0, at = 0;

	while (at < len) {
		uint64_t word = word_at(seed, position + at);
		size_t n = len - at < 8 ? len - at : 8;

		if (memcmp(p + at, &word, n) != 0) {
			const char *want = (const char *)&word;

			for (size_t i = 0; i < n; i++) {
				if (p[at + i] == want[i])
					continue;
				if (bad++ == 0)
					*first = at + i;
			}
		}
		at += n;
	}
	return bad;
}
