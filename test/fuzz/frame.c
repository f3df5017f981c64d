/* SPDX-License-Identifier: MIT */
/* One header, any bytes: what is accepted is sound, and is what would be written again. */
#include <string.h>

#include "lib/fuzz.h"
#include "wire/handshake.h"
#include "wire/message.h"

static void message(const uint8_t *in)
{
	uint8_t again[XTAL_MSG_HEADER];
	const char *why = NULL;
	struct xtal_msg m;

	if (xtal_msg_decode(in, XTAL_MSG_HEADER, &m, &why)) {
		fuzz_must(why != NULL, "a refusal has a reason");
		return;
	}
	fuzz_must(xtal_msg_check(&m) == NULL, "what was decoded is valid");
	fuzz_must(m.addr <= UINT64_MAX - m.total, "the range does not overflow");
	fuzz_must(m.offset <= m.total && m.piece <= m.total - m.offset, "the piece is inside");
	fuzz_must(m.piece <= XTAL_MSG_PIECE || m.type == XTAL_MSG_ATOMIC, "the piece is short");
	fuzz_must(m.payload == 0 || m.payload == m.piece, "the payload is the piece");
	xtal_msg_encode(&m, again);
	fuzz_must(memcmp(in, again, XTAL_MSG_HEADER) == 0, "one message, one form");
	fuzz_must(!xtal_handshake_is(in), "a message is no handshake");
}

static void handshake(const uint8_t *in)
{
	uint8_t once[XTAL_MSG_HEADER], twice[XTAL_MSG_HEADER];
	const char *why = NULL;
	struct xtal_handshake h, second;

	if (xtal_handshake_decode(in, &h, &why)) {
		fuzz_must(why != NULL, "a refusal has a reason");
		return;
	}
	fuzz_must(xtal_handshake_is(in), "what was decoded is a handshake");
	fuzz_must(memchr(h.text, 0, sizeof(h.text)) != NULL, "the text ends");
	fuzz_must(h.type != XTAL_HELLO || (h.window & (h.window - 1)) == 0, "a power of two");
	fuzz_must(h.type != XTAL_HELLO || (h.piece >= 1 && h.piece <= XTAL_MSG_PIECE), "a piece");
	xtal_handshake_encode(&h, once);
	fuzz_must(xtal_handshake_decode(once, &second, NULL) == 0, "what is written can be read");
	xtal_handshake_encode(&second, twice);
	fuzz_must(memcmp(once, twice, sizeof(once)) == 0, "and is the same");
}

/* The first byte decides how much of a header is made right before the rest is looked at. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t prefix[] = { 'X', 'T', 'L', 'M', XTAL_MSG_VERSION };
	uint8_t in[XTAL_MSG_HEADER] = { 0 };
	struct xtal_msg m;

	if (size == 0)
		return 0;
	if (size - 1 < XTAL_MSG_HEADER)
		fuzz_must(xtal_msg_decode(data + 1, size - 1, &m, NULL) != 0,
			  "a header is complete");
	memcpy(in, data + 1, size - 1 < sizeof(in) ? size - 1 : sizeof(in));
	if (data[0] & 1)
		memcpy(in, prefix, sizeof(prefix));
	if (data[0] & 2)
		memcpy(in + 8, (const uint8_t[]){ XTAL_MSG_HEADER, 0 }, 2);
	if (data[0] & 4)
		memset(in + 104, 0, XTAL_MSG_HEADER - 104); /* mostly unused */
	message(in);
	handshake(in);
	return 0;
}
