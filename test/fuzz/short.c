/* SPDX-License-Identifier: MIT */
/*
 * Short forms, any bytes, to a receiver that knows models: what is accepted is sound, and a sender with
 * the same models would have written it.
 */
#include <string.h>

#include "lib/fuzz.h"
#include "wire/short.h"

/* A SEND that may be a model: everything about it that the codec lets be. */
static struct xtal_msg a_send(struct fuzz_input *in)
{
	struct xtal_msg m = {
		.type = XTAL_MSG_SEND,
		.flags = (uint16_t)(fuzz_u8(in) &
				    (XTAL_MSG_SOLICITED | XTAL_MSG_TO_JETTY | XTAL_MSG_FROM_JETTY)),
		.operand_size = (uint8_t)(XTAL_MSG_SEND_PLAIN + fuzz_u8(in) % 4),
		.seq = fuzz_number(in),
		.ack = fuzz_number(in),
		.id = fuzz_number(in),
		.incarnation = 7,
		.key = fuzz_u8(in) % 4,
		.notify = { .tid = 9, .token = fuzz_u8(in) % 4 },
	};

	if (m.operand_size != XTAL_MSG_SEND_PLAIN)
		m.operand[0] = fuzz_number(in);
	if (m.operand_size == XTAL_MSG_SEND_WRITTEN)
		m.notify.data = fuzz_number(in);
	else
		m.total = m.piece = m.payload = fuzz_u8(in);
	fuzz_must(xtal_msg_check(&m) == NULL, "a model is valid");
	return m;
}

static void check(struct xtal_short_models *models, const uint8_t *bytes)
{
	struct xtal_short_models sender = *models;
	uint8_t again[XTAL_SHORT_BYTES];
	const uint8_t *payload;
	const char *why = NULL;
	struct xtal_msg m;

	if (xtal_short_decode(models, bytes, &m, &payload, &why)) {
		fuzz_must(why != NULL, "a refusal has a reason");
		fuzz_must(memcmp(&sender, models, sizeof(sender)) == 0, "and changes nothing");
		return;
	}
	fuzz_must(xtal_msg_check(&m) == NULL, "what was decoded is valid");
	fuzz_must(m.type == XTAL_MSG_SEND || m.type == XTAL_MSG_RESPONSE, "SEND or answer");
	fuzz_must(m.payload == 0 ||
			  (payload >= bytes && payload + m.payload <= bytes + XTAL_SHORT_BYTES),
		  "the payload is inside");
	memcpy(again, bytes, sizeof(again));
	fuzz_must(xtal_short_encode(&sender, &m, payload, again), "it has this form");
	fuzz_must(memcmp(again, bytes, sizeof(again)) == 0, "one message, one form");
	fuzz_must(memcmp(&sender, models, sizeof(sender)) == 0, "both ends know the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { .data = data, .left = size };
	struct xtal_short_models models = { 0 };

	while (in.left != 0) {
		uint8_t what = fuzz_u8(&in), bytes[XTAL_SHORT_BYTES];
		struct xtal_msg m;

		if (what & 1) {
			m = a_send(&in);
			xtal_short_note(&models, &m);
			continue;
		}
		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = fuzz_u8(&in);
		if (what & 2) { /* nearly right */
			const struct xtal_msg *model = &models.model[bytes[3] %= XTAL_SHORT_MODELS];

			bytes[0] = (uint8_t)(1 + bytes[0] % 3);
			if (bytes[0] == 3)
				memset(bytes + 1, 0, 7);
			bytes[1] %= 4;
			bytes[2] %= 17;
			for (unsigned i = 0; bytes[0] != 3 && i < 4; i++)
				bytes[12 + i] = (uint8_t)(model->seq >> 8 * i);
		}
		check(&models, bytes);
	}
	return 0;
}
