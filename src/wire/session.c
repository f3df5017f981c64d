/* SPDX-License-Identifier: MIT */
/* Cutting a byte stream into headers and payloads. See session.h. */
#include "wire/session.h"

#include <string.h>

#include "wire/bytes.h"

void xtal_stream_reset(struct xtal_stream *s)
{
	s->have = 0;
	s->left = 0;
}

size_t xtal_stream_header(struct xtal_stream *s, const uint8_t *in, size_t len)
{
	size_t n = XTAL_MSG_HEADER - s->have;

	if (n > len)
		n = len;
	if (n == 0)
		return 0;
	memcpy(s->header + s->have, in, n);
	s->have += (uint32_t)n;
	return n;
}

bool xtal_stream_is_strange(const struct xtal_stream *s)
{
	uint32_t magic;

	if (s->have < sizeof(magic))
		return false;
	magic = xtal_get32(s->header);
	/* The other byte order is told in words of its own, once the header is complete. */
	return magic != XTAL_MSG_MAGIC && magic != __builtin_bswap32(XTAL_MSG_MAGIC);
}

void xtal_stream_expect(struct xtal_stream *s, uint64_t payload)
{
	s->left = payload;
	if (payload == 0)
		s->have = 0;
}

void xtal_stream_taken(struct xtal_stream *s, uint64_t n)
{
	s->left = n < s->left ? s->left - n : 0;
	if (s->left == 0)
		s->have = 0;
}
