/* SPDX-License-Identifier: MIT */
/* Frames over a TCP connection; see tcp.h. */
#include "path/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "os/tcp.h"
#include "os/tls.h"

#define STAGE      (64u * 1024) /* bytes that are encrypted at once */
#define STAGE_KEPT (4u * 1024)  /* ... of which an idle connection may have touched so many */

_Static_assert((XTAL_TCP_FRAMES & (XTAL_TCP_FRAMES - 1)) == 0, "numbers wrap");
_Static_assert(2 * XTAL_TCP_FRAMES <= XTAL_OS_TCP_PIECES, "all frames in one system call");
_Static_assert(XTAL_TCP_INBOX == XTAL_OS_TLS_RECORD, "a record at once");
_Static_assert(offsetof(struct xtal_tcp_frame, small) == XTAL_TCP_HEADER, "one piece");

void xtal_tcp_init(struct xtal_tcp *t, int fd)
{
	memset(t, 0, sizeof(*t));
	t->fd = fd;
}

void xtal_tcp_reset(struct xtal_tcp *t)
{
	if (t->tls)
		xtal_os_tls_close(&t->tls);
	t->head = t->tail = 0;
	t->full = false;
	t->stage_at = t->stage_len = 0;
	t->fd = -1;
}

void xtal_tcp_fini(struct xtal_tcp *t)
{
	xtal_tcp_reset(t);
	free(t->frames);
	free(t->stage);
	free(t->inbox);
	t->frames = NULL;
	t->stage = t->inbox = NULL;
}

int xtal_tcp_connect(struct xtal_tcp *t, struct xtal_eid to, uint16_t port,
		     const struct xtal_eid *from)
{
	struct xtal_os_tcp_address there = { .eid = to, .port = port }, here;

	if (from)
		here = (struct xtal_os_tcp_address){ .eid = *from };
	return xtal_os_tcp_connect(&there, from ? &here : NULL, &t->fd);
}

int xtal_tcp_connected(const struct xtal_tcp *t)
{
	return xtal_os_tcp_connected(t->fd);
}

void xtal_tcp_shutdown(const struct xtal_tcp *t)
{
	xtal_os_tcp_shutdown(t->fd);
}

int xtal_tcp_secure(struct xtal_tcp *t, struct xtal_os_tls_context *context, bool server)
{
	struct xtal_os_tls_stream stream = xtal_os_tls_socket(t->fd);

	return xtal_os_tls_open(context, server, &stream, &t->tls);
}

int xtal_tcp_handshake(struct xtal_tcp *t)
{
	return t->tls ? xtal_os_tls_handshake(t->tls) : 0;
}

const char *xtal_tcp_reason(const struct xtal_tcp *t, int err)
{
	const char *words = t->tls ? xtal_os_tls_reason(t->tls) : "";

	return words[0] ? words : strerror(-err);
}

static struct xtal_tcp_frame *frame_at(const struct xtal_tcp *t, uint32_t i)
{
	return &t->frames[i & (XTAL_TCP_FRAMES - 1)];
}

struct xtal_tcp_frame *xtal_tcp_reserve(struct xtal_tcp *t)
{
	struct xtal_tcp_frame *f;

	if (!xtal_tcp_room(t))
		return NULL;
	if (!t->frames)
		t->frames = calloc(XTAL_TCP_FRAMES, sizeof(*t->frames));
	if (!t->frames)
		return NULL;
	f = frame_at(t, t->tail);
	f->sent = 0;
	f->copied = f->ownerless = false;
	return f;
}

void xtal_tcp_commit(struct xtal_tcp *t)
{
	t->tail++;
}

const struct xtal_tcp_frame *xtal_tcp_oldest(const struct xtal_tcp *t)
{
	return t->head == t->tail ? NULL : frame_at(t, t->head);
}

void xtal_tcp_rest(struct xtal_tcp *t)
{
	if (t->tls)
		xtal_os_tls_rest(t->tls);
	free(t->inbox);
	t->inbox = NULL;
	if (t->stage_at == t->stage_len) {
		free(t->stage);
		t->stage = NULL;
		t->stage_at = t->stage_len = 0;
	}
}

bool xtal_tcp_holds(const struct xtal_tcp *t, uint64_t tag)
{
	for (uint32_t i = t->head; i != t->tail; i++) {
		const struct xtal_tcp_frame *f = frame_at(t, i);

		if (f->payload && !f->copied && !f->ownerless && f->tag[0] == tag)
			return true;
	}
	return false;
}

void xtal_tcp_disown(struct xtal_tcp *t, uint64_t tag)
{
	for (uint32_t i = t->head; i != t->tail; i++) {
		struct xtal_tcp_frame *f = frame_at(t, i);

		if (f->payload && !f->copied && f->tag[0] == tag)
			f->ownerless = true;
	}
}

static uint64_t frame_len(const struct xtal_tcp_frame *f)
{
	return XTAL_TCP_HEADER + f->payload;
}

/* n more bytes are gone. */
static void advance(struct xtal_tcp *t, uint64_t n)
{
	while (n) {
		struct xtal_tcp_frame *f = frame_at(t, t->head);
		uint64_t left = frame_len(f) - f->sent;

		if (n < left) {
			f->sent += n;
			return;
		}
		n -= left;
		t->head++;
	}
}

/* What goes out for payloads that are nobody's; never written. */
static uint8_t nothing[XTAL_TCP_VOID];

/* Adds the pieces that are left of a frame. Errors: those of pin. */
static int add_frame(const struct xtal_tcp_frame *f, const struct xtal_tcp_pins *pins,
		     struct xtal_os_iov *iov, unsigned *count)
{
	uint64_t whole = f->copied ? XTAL_TCP_HEADER + f->payload : XTAL_TCP_HEADER;
	const void *base = NULL;
	uint64_t at = 0;
	int err;

	if (f->ownerless) {
		base = nothing;
	} else if (f->payload && !f->copied) {
		err = pins->pin(pins->arg, f, &base);
		if (err)
			return err;
	}
	if (f->sent < whole)
		iov[(*count)++] =
			(struct xtal_os_iov){ .base = (void *)(uintptr_t)(f->header + f->sent),
					      .len = whole - f->sent };
	else
		at = f->sent - whole;
	if (base)
		iov[(*count)++] = (struct xtal_os_iov){ .base = (uint8_t *)(uintptr_t)base + at,
							.len = f->payload - at };
	return 0;
}

/* One system call with as many frames as can be pinned together. */
static int64_t send_some(struct xtal_tcp *t, const struct xtal_tcp_pins *pins)
{
	struct xtal_os_iov iov[2 * XTAL_TCP_FRAMES];
	unsigned count = 0;
	int64_t n;
	int err = 0;

	for (uint32_t i = t->head; i != t->tail && !err; i++)
		err = add_frame(frame_at(t, i), pins, iov, &count);
	n = count ? xtal_os_tcp_send(t->fd, iov, count) : err;
	pins->unpin(pins->arg);
	return n;
}

/* Where the bytes in the stage begin, so that OpenSSL's copies of them do not crawl: each record's lies
 * at the same place, and they are of whole pages. */
static size_t stage_start(const struct xtal_tcp *t)
{
	return xtal_copy_crawls(xtal_os_tls_place(t->tls), t->stage) ? XTAL_COPY_STEP : 0;
}

/* Copies what follows of the oldest frame to the stage. Errors: -EFAULT, -ENOMEM. */
static int fill_stage(struct xtal_tcp *t, const struct xtal_tcp_pins *pins)
{
	size_t end;
	int err = 0;

	if (!t->stage)
		t->stage = malloc(STAGE + XTAL_COPY_STEP);
	if (!t->stage)
		return -ENOMEM;
	t->stage_at = t->stage_len = stage_start(t);
	end = t->stage_at + STAGE;
	while (t->head != t->tail && t->stage_len < end) {
		struct xtal_os_iov iov[2];
		unsigned count = 0;

		err = add_frame(frame_at(t, t->head), pins, iov, &count);
		for (unsigned i = 0; i < count && !err && t->stage_len < end; i++) {
			size_t room = end - t->stage_len;
			size_t n = iov[i].len < room ? iov[i].len : room;
			bool ours = i == 0 && frame_at(t, t->head)->sent < XTAL_TCP_HEADER;

			if (ours)
				memcpy(t->stage + t->stage_len, iov[i].base, n);
			else
				err = pins->get(t->stage + t->stage_len, iov[i].base, n);
			if (err)
				break;
			t->stage_len += n;
			advance(t, n);
		}
		pins->unpin(pins->arg);
		if (err)
			break;
	}
	return t->stage_len > t->stage_at ? 0 : err;
}

static int64_t encrypt_some(struct xtal_tcp *t, const struct xtal_tcp_pins *pins)
{
	int64_t n;
	int err;

	if (t->stage_at == t->stage_len) {
		err = fill_stage(t, pins);
		if (err)
			return err;
	}
	n = xtal_os_tls_write(t->tls, t->stage + t->stage_at, t->stage_len - t->stage_at);
	if (n > 0)
		t->stage_at += (size_t)n;
	return n;
}

int xtal_tcp_flush(struct xtal_tcp *t, const struct xtal_tcp_pins *pins)
{
	while (!xtal_tcp_idle(t)) {
		int64_t n = t->tls ? encrypt_some(t, pins) : send_some(t, pins);

		if (n < 0) {
			t->full = n == -EAGAIN;
			return (int)n;
		}
		if (!t->tls)
			advance(t, (uint64_t)n);
	}
	t->full = false;
	if (t->stage_len > STAGE_KEPT) { /* an idle connection shall cost little */
		free(t->stage);
		t->stage = NULL;
		t->stage_at = t->stage_len = 0;
	}
	return 0;
}

int64_t xtal_tcp_receive(struct xtal_tcp *t, const struct xtal_os_iov *iov, unsigned count)
{
	int64_t total = 0;

	if (!t->tls)
		return xtal_os_tcp_recv(t->fd, iov, count);
	for (unsigned i = 0; i < count; i++) {
		int64_t n = xtal_os_tls_read(t->tls, iov[i].base, iov[i].len);

		if (n <= 0)
			return total ? total : n;
		total += n;
		if ((size_t)n < iov[i].len)
			break;
	}
	return total;
}

uint8_t *xtal_tcp_inbox(struct xtal_tcp *t, bool much)
{
	if (!t->inbox && much && t->tls)
		t->inbox = malloc(XTAL_TCP_INBOX);
	return t->inbox;
}

bool xtal_tcp_buffered(const struct xtal_tcp *t)
{
	return t->tls && xtal_os_tls_buffered(t->tls);
}

bool xtal_tcp_wants_write(const struct xtal_tcp *t)
{
	return t->full || (t->tls && xtal_os_tls_wants_write(t->tls));
}
