/* SPDX-License-Identifier: MIT */
/*
 * A hostile initiator against the target of a session: any bytes, and frames that are almost
 * right, over connections that come and go. It may lose its session; it reaches nothing but
 * what it was granted, and nothing is executed twice.
 */
#include <string.h>

#include "lib/fuzz.h"
#include "wire/target.h"

#define BASE   UINT64_C(0x10000)
#define MEMORY 4096u
#define CACHE  4u
#define TOKEN  5u

struct hostile {
	struct fuzz_input in;
	struct xtal_target t;
	struct xtal_responder responder;
	struct xtal_responder_result cache[CACHE];
	bool session, open;
	uint64_t now, seq, attempt, received; /* as an honest initiator would count */
	uint64_t executed;                    /* the newest frame that changed something */
	bool any_executed;
	bool holds; /* a SEND was answered NOT_READY, and none of its queue that follows none has
		     * come since */
	uint32_t held_token;
	uint16_t held_flags;
	uint64_t answers; /* numbers of this connection */
	uint8_t memory[MEMORY];
	uint8_t flip_at, flip;
};

static void hang_up(struct hostile *h)
{
	if (h->open)
		xtal_target_disconnected(&h->t, h->now);
	h->open = false;
}

static void send(struct hostile *h)
{
	struct xtal_session_frame f;
	struct xtal_handshake hs;
	struct xtal_msg m;

	while (h->open && xtal_target_next_frame(&h->t, h->now, &f)) {
		xtal_target_sent(&h->t, h->now);
		if (xtal_handshake_is(f.header)) {
			fuzz_must(xtal_handshake_decode(f.header, &hs, NULL) == 0,
				  "a handshake of ours is valid");
			fuzz_must(f.payload == 0, "a handshake has no payload");
			continue;
		}
		fuzz_must(xtal_msg_decode(f.header, XTAL_MSG_HEADER, &m, NULL) == 0,
			  "an answer of ours is valid");
		fuzz_must(m.payload == f.payload, "the payload is the header's");
		if (m.type == XTAL_MSG_PONG)
			continue;
		fuzz_must(m.type == XTAL_MSG_RESPONSE && m.seq == h->answers++,
			  "answers are numbered on");
		h->received = m.seq;
		if (f.payload != 0)
			fuzz_must(f.addr >= BASE && f.addr - BASE <= MEMORY &&
					  f.payload <= MEMORY - (f.addr - BASE),
				  "data come from what may be read");
	}
}

static bool granted(const struct xtal_responder_effect *e)
{
	if (e->kind == XTAL_RESPONDER_SEND)
		return e->token_valid && e->token == TOKEN && e->total <= MEMORY;
	return e->token_valid && e->token == TOKEN && e->addr >= BASE && e->addr - BASE <= MEMORY &&
	       e->total <= MEMORY - (e->addr - BASE);
}

/* However it ends, nothing of its queue waits any more for one that was not received. */
static void begin_message(struct hostile *h)
{
	const struct xtal_responder_effect *e = &h->t.effect;

	if (!h->holds || e->notify.token != h->held_token ||
	    (e->flags & XTAL_MSG_FROM_JETTY) != h->held_flags)
		return;
	fuzz_must(e->notify.addr == 0, "nothing overtakes a message that was not received");
	h->holds = false;
}

static void execute(struct hostile *h)
{
	const struct xtal_responder_effect *e = &h->t.effect;
	static const uint64_t old[2] = { 1, 2 };

	fuzz_must(e->addr <= UINT64_MAX - e->total, "the range does not overflow");
	fuzz_must(e->offset <= e->total && e->len <= e->total - e->offset, "the piece is inside");
	fuzz_must(e->len <= h->responder.config.piece || e->kind == XTAL_RESPONDER_ATOMIC,
		  "the piece is as agreed");
	fuzz_must(e->kind != XTAL_RESPONDER_ATOMIC || e->len <= 16, "atomics are short");
	if (e->kind != XTAL_RESPONDER_READ) {
		fuzz_must(!h->any_executed || xtal_seq_after(e->seq, h->executed),
			  "nothing is executed twice");
		h->executed = e->seq;
		h->any_executed = true;
	}
	if (e->kind == XTAL_RESPONDER_SEND && e->first) {
		if (granted(e) && e->id & 1) {
			h->holds = true;
			h->held_token = e->notify.token;
			h->held_flags = e->flags & XTAL_MSG_FROM_JETTY;
			xtal_target_result(&h->t, XTAL_NOT_READY, NULL, h->now);
			return;
		}
	}
	xtal_target_result(&h->t, granted(e) ? XTAL_OK : XTAL_REMOTE_ACCESS, old, h->now);
}

/* Bytes that arrive; lens: how they are cut. */
static void feed(struct hostile *h, const uint8_t *bytes, size_t len)
{
	size_t step = 1 + fuzz_u8(&h->in) * 3u, at = 0;

	while (h->open && at < len) {
		struct xtal_target_event ev;
		size_t n = len - at < step ? len - at : step;
		uint64_t addr, want = xtal_target_payload(&h->t, &addr);

		if (want != 0) {
			const struct xtal_responder_effect *e = &h->t.effect;

			n = n < want ? n : (size_t)want;
			fuzz_must(want <= e->len && addr - e->addr - e->offset == e->len - want,
				  "payload goes where it belongs");
			if (!xtal_target_may_land(&h->t, h->now)) {
				hang_up(h);
				return;
			}
			if (!granted(e)) {
				xtal_target_result(&h->t, XTAL_REMOTE_ACCESS, NULL, h->now);
				send(h);
				continue;
			}
			memcpy(h->memory + (e->kind == XTAL_RESPONDER_SEND ? addr : addr - BASE),
			       bytes + at, n);
			xtal_target_landed(&h->t, n);
			at += n;
			if (n == want)
				execute(h);
			send(h);
			continue;
		}
		at += xtal_target_take(&h->t, bytes + at, n, h->now, &ev);
		switch (ev.kind) {
		case XTAL_TARGET_MORE:
			break;
		case XTAL_TARGET_EXECUTE:
			if (h->t.effect.kind == XTAL_RESPONDER_SEND && h->t.effect.first)
				begin_message(h);
			if (xtal_target_payload(&h->t, &addr) == 0)
				execute(h);
			break;
		case XTAL_TARGET_SEND:
			send(h);
			break;
		case XTAL_TARGET_HANG_UP:
			fuzz_must(ev.why != NULL, "it says why");
			hang_up(h);
			break;
		case XTAL_TARGET_ENDED:
			fuzz_must(ev.why != NULL, "it says why");
			send(h);
			hang_up(h);
			h->session = false;
			h->any_executed = false;
			h->holds = false;
			break;
		}
	}
	if (fuzz_u8(&h->in) & 1)
		send(h);
}

/* Bytes of a header, one of them changed when the input asked for it. */
static void feed_header(struct hostile *h, uint8_t header[XTAL_MSG_HEADER])
{
	header[h->flip_at % XTAL_MSG_HEADER] ^= h->flip;
	h->flip = 0;
	feed(h, header, XTAL_MSG_HEADER);
}

static void say_hello(struct hostile *h)
{
	uint8_t how = fuzz_u8(&h->in), header[XTAL_MSG_HEADER];
	struct xtal_handshake hello = {
		.type = XTAL_HELLO,
		.resume = h->session,
		.id = { { 3, 4 } },
		.incarnation = 77,
		.peer_incarnation = h->session ? 99 : xtal_incarnation_bits(99),
		.port = 7,
		.window = CACHE,
		.piece = 64,
		.first_seq = 1,
		.attempt = ++h->attempt,
		.seq = h->session ? h->received : 0,
		.stamp = h->now,
	};
	struct xtal_target_config c = {
		.incarnation = 99,
		.responder = &h->responder,
		.cache = h->cache,
		.cache_size = CACHE,
		.linger = 1000,
	};
	const char *why = NULL;
	int err;

	if (how & 1)
		hello.seq = fuzz_number(&h->in);
	if (how & 2)
		hello.attempt = fuzz_number(&h->in);
	if (how & 4)
		hello.resume = !hello.resume;
	if (how & 8)
		hello.window = (uint32_t)fuzz_number(&h->in);
	if (how & 16)
		hello.piece = (uint32_t)fuzz_number(&h->in);
	if (how & 32)
		hello.first_seq = fuzz_number(&h->in);
	if (how & 64)
		hello.incarnation = fuzz_number(&h->in);
	xtal_handshake_encode(&hello, header);
	header[h->flip_at % XTAL_MSG_HEADER] ^= h->flip;
	h->flip = 0;
	if (xtal_handshake_decode(header, &hello, &why) || hello.type != XTAL_HELLO ||
	    xtal_target_check_hello(&hello, 7, 99, &why) != XTAL_OK)
		return;
	if (h->session && xtal_target_is_stale(&h->t, &hello))
		return;
	hang_up(h);
	if (h->session) {
		err = xtal_target_resume(&h->t, &hello, h->now, &why);
		fuzz_must(err == 0 || why != NULL, "it says why");
	} else {
		err = xtal_target_init(&h->t, &c, &hello, h->now);
		h->any_executed = false;
		h->holds = false; /* a session of its own, which knows of no message before */
	}
	h->session = h->open = err == 0;
	if (err)
		return;
	h->attempt = hello.attempt;
	h->answers = hello.seq + 1;
	h->received = hello.seq;
	h->seq = h->responder.seq;
}

static void request(struct hostile *h)
{
	uint8_t how = fuzz_u8(&h->in), header[XTAL_MSG_HEADER], payload[256];
	struct xtal_msg m = {
		.flags = XTAL_MSG_TOKEN,
		.seq = h->seq++,
		.ack = h->received,
		.id = fuzz_u8(&h->in),
		.incarnation = 99,
		.addr = BASE + fuzz_u8(&h->in) * 17u,
		.token = TOKEN,
	};

	switch (how & 3) {
	case 0:
		m.type = XTAL_MSG_ATOMIC;
		m.atomic = XTAL_MSG_FAA;
		m.operand_size = 8;
		m.total = m.piece = 8;
		break;
	case 1:
	case 2:
		m.type = how & 1 ? XTAL_MSG_WRITE : XTAL_MSG_READ;
		m.total = fuzz_u8(&h->in);
		m.offset = m.total < 64 ? 0 : fuzz_u8(&h->in) / 64 * 64;
		m.piece = m.total - m.offset < 64 ? m.total - m.offset : 64;
		m.payload = how & 1 ? m.piece : 0;
		break;
	case 3:
		m = (struct xtal_msg){ .type = XTAL_MSG_PING, .ack = h->received };
		h->seq--;
		break;
	}
	if ((how & 3) == 1 && h->now & 1) {
		m.type = XTAL_MSG_SEND;
		m.operand_size = XTAL_MSG_SEND_PLAIN;
		m.addr = 0;
		m.notify.addr = fuzz_u8(&h->in);
	}
	if (how & 4)
		m.expiry = h->now + fuzz_u8(&h->in);
	if (how & 8)
		m.seq += fuzz_number(&h->in);
	if (how & 16)
		m.ack = fuzz_number(&h->in);
	if (how & 32)
		m.addr = fuzz_number(&h->in);
	if (how & 64)
		m.total = fuzz_number(&h->in);
	if (how & 128)
		m.piece = m.payload = fuzz_number(&h->in);
	xtal_msg_encode(&m, header);
	feed_header(h, header);
	memset(payload, how, sizeof(payload));
	if (m.payload != 0)
		feed(h, payload, m.payload < sizeof(payload) ? (size_t)m.payload : sizeof(payload));
}

static void raw(struct hostile *h)
{
	size_t n = fuzz_u8(&h->in);

	n = n < h->in.left ? n : h->in.left;
	h->in.data += n;
	h->in.left -= n;
	feed(h, h->in.data - n, n);
}

static void step(struct hostile *h)
{
	struct xtal_handshake bye = { .type = XTAL_BYE, .id = { { 3, 4 } } };
	uint8_t header[XTAL_MSG_HEADER], what = fuzz_u8(&h->in);

	switch (what & 15) {
	case 0:
	case 1:
		say_hello(h);
		break;
	case 2:
		raw(h);
		break;
	case 3:
		h->now += fuzz_number(&h->in) & 0xffffffff;
		break;
	case 4:
		hang_up(h);
		break;
	case 5:
		h->flip_at = fuzz_u8(&h->in);
		h->flip = fuzz_u8(&h->in);
		break;
	case 6:
		xtal_handshake_encode(&bye, header);
		feed_header(h, header);
		break;
	case 7:
		if (!h->session || what < 200)
			break;
		xtal_target_close(&h->t, XTAL_UNREACHABLE, "closed by the fuzzer");
		send(h);
		hang_up(h);
		h->session = h->any_executed = false;
		h->holds = false;
		break;
	default:
		request(h);
		break;
	}
	if (h->session && !h->open)
		fuzz_must(xtal_target_next_time(&h->t) != XTAL_NEVER, "it is not kept for ever");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hostile h;

	memset(&h, 0, sizeof(h));
	h.in = (struct fuzz_input){ data, size };
	h.now = 1000;
	while (h.in.left != 0)
		step(&h);
	return 0;
}
