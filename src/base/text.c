/* SPDX-License-Identifier: MIT */
/* Bounded text building and small parsers. */
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void xtal_text_add(char *buf, size_t size, size_t *used, const char *format, ...)
{
	va_list args;
	int n;

	if (size == 0)
		return;
	if (*used >= size)
		*used = size - 1;
	va_start(args, format);
	n = vsnprintf(buf + *used, size - *used, format, args);
	va_end(args);
	if (n < 0)
		buf[*used] = '\0';
	else if ((size_t)n < size - *used)
		*used += (size_t)n;
	else
		*used = size - 1;
}

static void put_big_endian(unsigned char *out, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get_big_endian(const unsigned char *in)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | in[i];
	return v;
}

const char *xtal_text_eid(struct xtal_eid eid, char *buf, size_t size)
{
	unsigned char raw[16];
	char text[INET6_ADDRSTRLEN] = "";
	size_t used = 0;

	if (xtal_eid_is_ipv4(eid)) {
		uint32_t a = xtal_eid_ipv4(eid);

		xtal_text_add(buf, size, &used, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255,
			      a & 255);
		return buf;
	}
	put_big_endian(raw, xtal_eid_scoped(eid, 0).hi);
	put_big_endian(raw + 8, eid.lo);
	inet_ntop(AF_INET6, raw, text, sizeof(text));
	xtal_text_add(buf, size, &used, "%s", text);
	if (xtal_eid_scope(eid))
		xtal_text_add(buf, size, &used, "%%%u", xtal_eid_scope(eid));
	return buf;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* Decimal or 0x number at *text, which moves behind it. -EINVAL: no digit, -ERANGE. */
static int parse_number(const char **text, uint64_t *out)
{
	const char *p = *text;
	int base = 10;
	uint64_t v = 0;
	bool overflow = false;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	}
	if (digit(*p) >= base)
		return -EINVAL;
	for (; digit(*p) < base; p++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit(*p), &v))
			overflow = true;
	}
	*text = p;
	if (overflow)
		return -ERANGE;
	*out = v;
	return 0;
}

int xtal_parse_eid(const char *text, struct xtal_eid *out)
{
	const char *end = text;
	unsigned char raw[16];
	uint64_t number;

	if (inet_pton(AF_INET, text, raw) == 1) {
		*out = xtal_eid_from_ipv4((uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 |
					  (uint32_t)raw[2] << 8 | raw[3]);
		return 0;
	}
	if (inet_pton(AF_INET6, text, raw) == 1) {
		struct xtal_eid eid = { .hi = get_big_endian(raw), .lo = get_big_endian(raw + 8) };

		*out = xtal_eid_scoped(eid, 0);
		return 0;
	}
	if (parse_number(&end, &number) || *end != '\0' || number > UINT32_MAX)
		return -EINVAL;
	*out = xtal_eid_from_ipv4((uint32_t)number);
	return 0;
}

static unsigned suffix_shift(char c)
{
	switch (c) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	default:
		return 0;
	}
}

int xtal_parse_size(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	int ret = parse_number(&text, &v);
	unsigned shift;

	if (ret == -EINVAL)
		return ret;
	shift = suffix_shift(*text);
	if (shift)
		text++;
	if (*text != '\0')
		return -EINVAL;
	if (ret || v > UINT64_MAX >> shift || v << shift > max)
		return -ERANGE;
	*out = v << shift;
	return 0;
}

#define LONGEST_WORD 63

/*
 * Levenshtein's distance with one row. What two words share at either end costs nothing and
 * is cut first; words that are long even then count as entirely different.
 */
unsigned xtal_text_distance(const char *a, const char *b)
{
	unsigned row[LONGEST_WORD + 1];
	size_t na, nb;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	na = strlen(a);
	nb = strlen(b);
	while (na > 0 && nb > 0 && a[na - 1] == b[nb - 1]) {
		na--;
		nb--;
	}
	if (na > LONGEST_WORD || nb > LONGEST_WORD)
		return (unsigned)(na > nb ? na : nb);
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}
