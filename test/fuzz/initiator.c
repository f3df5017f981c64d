/* SPDX-License-Identifier: MIT */
/*
 * A hostile target against the initiator of a session: any bytes, and answers that are almost
 * right. It may end the session; each operation ends exactly once, and nothing is written
 * beyond an operation's own data, nor after it has ended.
 */
#include <string.h>

#include "lib/fuzz.h"
#include "wire/initiator.h"

#define OPS    24u
#define WINDOW 4u
#define LEN    256u
#define PIECE  64u
#define SENT   64u

struct hostile {
	struct fuzz_input in;
	struct xtal_requester requester;
	struct xtal_requester_slot slots[WINDOW];
	struct xtal_initiator i;
	bool open;
	uint64_t now, answers, executed;
	unsigned ops, sent;
	struct xtal_request op[OPS];
	bool ended[OPS];
	uint8_t data[OPS][LEN];
	struct xtal_msg frame[SENT]; /* requests that were sent */
	uint64_t last[2];            /* cookies of the newest SENDs of two queues */
	uint64_t attempt;            /* of the last HELLO */
	uint8_t flip_at, flip;
};

static void complete(struct hostile *h, uint64_t cookie)
{
	fuzz_must(cookie >= 1 && cookie <= h->ops, "it is one of our operations");
	fuzz_must(!h->ended[cookie - 1], "it ends once");
	h->ended[cookie - 1] = true;
}

/* What is not sent without what it follows. */
static void end_orphans(struct hostile *h)
{
	uint64_t cookie;

	while (xtal_requester_next_orphan(&h->requester, &cookie)) {
		fuzz_must(cookie >= 1 && cookie <= h->ops, "it is one of our operations");
		fuzz_must(h->op[cookie - 1].notify.addr != 0 &&
				  h->ended[h->op[cookie - 1].notify.addr - 1],
			  "it follows one that has ended");
		fuzz_must(xtal_requester_abandon(&h->requester, cookie, true) == 0,
			  "it can be given up");
		complete(h, cookie);
	}
}

static void fail_all(struct hostile *h)
{
	struct xtal_requester_effect e;

	while (xtal_requester_fail_next(&h->requester, XTAL_UNREACHABLE, &e))
		complete(h, e.cookie);
	for (unsigned k = 0; k < h->ops; k++)
		fuzz_must(h->ended[k], "every operation ends");
}

static void start(struct hostile *h)
{
	struct xtal_initiator_config c = {
		.id = { { 3, 4 } },
		.incarnation = 77,
		.target_incarnation = xtal_incarnation_bits(99),
		.port = 7,
		.requester = &h->requester,
		.slots = h->slots,
		.window = WINDOW,
		.piece = PIECE,
		.first_seq = 1,
		.margin = 10,
		.keepalive = 20,
		.silence = 50,
		.retry_least = 1,
		.retry_most = 8,
	};

	fuzz_must(xtal_initiator_init(&h->i, &c, h->now) == 0, "a session begins");
	h->open = false;
	h->answers = 1;
	h->executed = 0;
	h->sent = 0;
}

static void hang_up(struct hostile *h)
{
	if (h->open)
		xtal_initiator_disconnected(&h->i, h->now);
	h->open = false;
}

/* A session that is over makes room for the next. */
static void renew(struct hostile *h)
{
	if (h->i.state != XTAL_SESSION_ENDED)
		return;
	fail_all(h);
	start(h);
}

static void handle(struct hostile *h, const struct xtal_initiator_event *ev)
{
	switch (ev->kind) {
	case XTAL_INITIATOR_MORE:
	case XTAL_INITIATOR_PAYLOAD:
		break;
	case XTAL_INITIATOR_UP:
		end_orphans(h);
		break;
	case XTAL_INITIATOR_ANSWER:
		if (ev->effect.finished)
			complete(h, ev->effect.cookie);
		break;
	case XTAL_INITIATOR_HANG_UP:
		fuzz_must(ev->why != NULL, "it says why");
		hang_up(h);
		break;
	case XTAL_INITIATOR_ENDED:
		fuzz_must(ev->why != NULL && ev->status != XTAL_OK, "it says why");
		fuzz_must(h->i.state == XTAL_SESSION_ENDED, "ended is ended");
		h->open = false;
		break;
	}
}

static void feed(struct hostile *h, const uint8_t *bytes, size_t len)
{
	size_t step = 1 + fuzz_u8(&h->in) * 3u, at = 0;

	while (h->open && at < len && h->i.state != XTAL_SESSION_ENDED) {
		struct xtal_initiator_event ev;
		size_t n = len - at < step ? len - at : step;
		uint64_t cookie = 0, offset = 0;
		uint64_t want = xtal_initiator_payload(&h->i, &cookie, &offset);

		if (want != 0) {
			const struct xtal_request *q;

			fuzz_must(cookie >= 1 && cookie <= h->ops, "it is one of our operations");
			q = &h->op[cookie - 1];
			n = n < want ? n : (size_t)want;
			fuzz_must(!h->ended[cookie - 1], "no data after the end");
			fuzz_must(q->type == XTAL_MSG_READ && offset <= q->len &&
					  want <= q->len - offset,
				  "data inside what was asked for");
			memcpy(h->data[cookie - 1] + offset, bytes + at, n);
			at += n;
			xtal_initiator_placed(&h->i, n, h->now, &ev);
		} else {
			at += xtal_initiator_take(&h->i, bytes + at, n, h->now, &ev);
		}
		handle(h, &ev);
	}
}

static void feed_header(struct hostile *h, uint8_t header[XTAL_MSG_HEADER])
{
	header[h->flip_at % XTAL_MSG_HEADER] ^= h->flip;
	h->flip = 0;
	feed(h, header, XTAL_MSG_HEADER);
}

static void take_frames(struct hostile *h)
{
	unsigned most = fuzz_u8(&h->in) & 15;
	struct xtal_session_frame f;
	struct xtal_handshake hs;
	struct xtal_msg m;

	while (most-- != 0 && h->open && xtal_initiator_next_frame(&h->i, h->now, &f)) {
		xtal_initiator_sent(&h->i, h->now);
		if (xtal_handshake_is(f.header)) {
			fuzz_must(xtal_handshake_decode(f.header, &hs, NULL) == 0,
				  "a handshake of ours is valid");
			if (hs.type == XTAL_HELLO)
				h->attempt = hs.attempt;
			continue;
		}
		fuzz_must(xtal_msg_decode(f.header, XTAL_MSG_HEADER, &m, NULL) == 0,
			  "a request of ours is valid");
		fuzz_must(m.payload == f.payload, "the payload is the header's");
		if (m.type == XTAL_MSG_PING)
			continue;
		fuzz_must(f.cookie >= 1 && f.cookie <= h->ops && !h->ended[f.cookie - 1],
			  "only what is open is sent");
		fuzz_must(f.local_offset <= h->op[f.cookie - 1].len &&
				  f.payload <= h->op[f.cookie - 1].len - f.local_offset,
			  "data inside the operation");
		h->frame[h->sent++ % SENT] = m;
	}
}

static void post(struct hostile *h)
{
	uint8_t how = fuzz_u8(&h->in);
	struct xtal_request q = {
		.cookie = h->ops + 1,
		.len = fuzz_u8(&h->in),
		.addr = 0x1000,
		.deadline = how & 64 ? XTAL_NO_DEADLINE : h->now + 100,
		.limit = how & 128 ? 100 : 0,
	};

	q.type = how % 3 == 0 ? XTAL_MSG_READ : how % 3 == 1 ? XTAL_MSG_WRITE : XTAL_MSG_ATOMIC;
	if (q.type == XTAL_MSG_ATOMIC) {
		q.atomic = XTAL_MSG_FAA;
		q.operand_size = 8;
		q.len = 8;
	} else if ((how & 24) == 24) {
		q.type = XTAL_MSG_SEND;
		q.operand_size = XTAL_MSG_SEND_PLAIN;
		q.addr = 0;
		q.notify.token = how & 1;
		q.notify.addr = how & 32 ? h->last[how & 1] : 0;
	}
	if (h->ops == OPS || xtal_requester_submit(&h->requester, &q))
		return;
	if (q.type == XTAL_MSG_SEND)
		h->last[q.notify.token] = q.cookie;
	h->op[h->ops++] = q;
}

static void welcome(struct hostile *h)
{
	uint8_t how = fuzz_u8(&h->in), header[XTAL_MSG_HEADER];
	struct xtal_handshake w = {
		.type = XTAL_WELCOME,
		.id = { { 3, 4 } },
		.incarnation = 99,
		.peer_incarnation = 77,
		.attempt = h->attempt,
		.seq = h->executed,
		.stamp = 5000 + h->now,
	};

	if (how & 1)
		w.seq = fuzz_number(&h->in);
	if (how & 2)
		w.attempt = fuzz_number(&h->in);
	if (how & 4)
		w.incarnation = fuzz_number(&h->in);
	if ((how & 24) == 24) {
		w = (struct xtal_handshake){ .type = XTAL_REFUSE, .status = XTAL_REMOTE_ACCESS };
		if (how & 32)
			w.status = XTAL_NOT_READY;
	} else if ((how & 192) == 192) {
		w = (struct xtal_handshake){ .type = XTAL_BYE, .id = { { 3, 4 } } };
	}
	xtal_handshake_encode(&w, header);
	feed_header(h, header);
}

static void answer(struct hostile *h)
{
	uint8_t how = fuzz_u8(&h->in), header[XTAL_MSG_HEADER], payload[LEN];
	const struct xtal_msg *q = &h->frame[fuzz_u8(&h->in) % SENT];
	struct xtal_msg m = {
		.type = how & 1 ? XTAL_MSG_PONG : XTAL_MSG_RESPONSE,
		.stamp = 5000 + h->now,
		.ack = q->seq,
	};

	if (!(how & 1)) {
		m.seq = h->i.welcomed ? h->requester.response_seq : 1;
		m.id = q->id;
		m.total = q->total;
		m.flags = q->offset + q->piece == q->total ? XTAL_MSG_LAST : 0;
		m.atomic = q->atomic;
		m.operand_size = q->operand_size;
		if (q->type == XTAL_MSG_READ) {
			m.offset = q->offset;
			m.piece = m.payload = q->piece;
		}
		if (how & 2) {
			m.status = XTAL_REMOTE_ACCESS;
			m.flags = XTAL_MSG_LAST;
			m.atomic = XTAL_MSG_NO_ATOMIC;
			m.operand_size = 0;
			m.offset = m.piece = m.payload = 0;
		}
	}
	if (how & 4)
		m.seq = fuzz_number(&h->in);
	if (how & 8)
		m.ack = fuzz_number(&h->in);
	if (how & 16)
		m.piece = m.payload = fuzz_number(&h->in);
	if (how & 32)
		m.total = fuzz_number(&h->in);
	if (xtal_seq_after(m.ack, h->executed))
		h->executed = m.ack;
	xtal_msg_encode(&m, header);
	feed_header(h, header);
	memset(payload, how, sizeof(payload));
	if (m.payload != 0)
		feed(h, payload, m.payload < LEN ? (size_t)m.payload : LEN);
}

static void raw(struct hostile *h)
{
	size_t n = fuzz_u8(&h->in);

	n = n < h->in.left ? n : h->in.left;
	h->in.data += n;
	h->in.left -= n;
	feed(h, h->in.data - n, n);
}

static void pass_time(struct hostile *h)
{
	struct xtal_requester_expired late;
	struct xtal_initiator_event ev;

	h->now += fuzz_u8(&h->in);
	while (xtal_requester_next_expired(&h->requester, h->now, &late)) {
		fuzz_must(xtal_requester_abandon(&h->requester, late.cookie, false) == 0,
			  "what is overdue can be given up");
		complete(h, late.cookie);
		end_orphans(h);
	}
	xtal_initiator_tick(&h->i, h->now, &ev);
	handle(h, &ev);
}

static void step(struct hostile *h)
{
	uint8_t what = fuzz_u8(&h->in);

	switch (what & 15) {
	case 0:
		if (xtal_initiator_wants_connection(&h->i, h->now) || (what & 16)) {
			xtal_initiator_connected(&h->i, h->now);
			h->open = h->i.state == XTAL_SESSION_GREETING;
		}
		break;
	case 1:
		hang_up(h);
		break;
	case 2:
		raw(h);
		break;
	case 3:
		pass_time(h);
		break;
	case 4:
		h->flip_at = fuzz_u8(&h->in);
		h->flip = fuzz_u8(&h->in);
		break;
	case 5:
	case 6:
		welcome(h);
		break;
	case 7:
	case 8:
		post(h);
		break;
	case 9:
	case 10:
	case 11:
		take_frames(h);
		break;
	case 12:
		if (what > 200)
			xtal_initiator_close(&h->i);
		break;
	default:
		answer(h);
		break;
	}
	renew(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hostile h;

	memset(&h, 0, sizeof(h));
	h.in = (struct fuzz_input){ data, size };
	h.now = 1000;
	start(&h);
	while (h.in.left != 0)
		step(&h);
	xtal_initiator_end(&h.i, XTAL_UNREACHABLE, "the input ends");
	fail_all(&h);
	return 0;
}
