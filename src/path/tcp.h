/* SPDX-License-Identifier: MIT */
/*
 * The stream carrier: one end of a TCP connection. Out go frames, each a header and a payload
 * that is sent from where it lies; in come bytes, put where the caller wants them. TLS may sit
 * between frames and socket (payload is then copied). Nothing blocks. One thread at a time; the caller locks.
 */
#ifndef XTAL_PATH_TCP_H
#define XTAL_PATH_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/eid.h"
#include "os/vm.h"

struct xtal_os_tls;
struct xtal_os_tls_context;

#define XTAL_TCP_HEADER 192 /* XTAL_MSG_HEADER */
#define XTAL_TCP_FRAMES 16u /* that wait to be sent, at most */
#define XTAL_TCP_SMALL  64u /* payloads up to this many bytes are copied into the frame */

/* A frame that waits. The tags are the caller's: they tell it whose payload it is. */
struct xtal_tcp_frame {
	uint8_t header[XTAL_TCP_HEADER]; /* small payloads follow at once */
	uint8_t small[XTAL_TCP_SMALL];
	bool copied;      /* the payload stands in small */
	bool ownerless;   /* the payload is nobody's any more: zeros */
	uint64_t payload; /* bytes */
	uint64_t sent;    /* of header and payload together */
	uint64_t tag[4];
};

/* Makes payloads readable while they are sent. */
struct xtal_tcp_pins {
	/* *base: where the frame's payload begins; stays there until unpin. Errors: -EAGAIN: not
	 * together with those pinned already; -EFAULT: it is gone, or may not be read. */
	int (*pin)(void *arg, const struct xtal_tcp_frame *f, const void **base);
	/* Copies pinned memory: xtal_os_guarded_get(), or what may be used in its place. */
	int (*get)(void *dst, const void *src, size_t len);
	/* All that were pinned since. */
	void (*unpin)(void *arg);
	void *arg;
};

struct xtal_tcp {
	int fd;                        /* -1: none */
	struct xtal_tcp_frame *frames; /* made when first needed */
	uint32_t head, tail;
	bool full;               /* the socket takes no more now */
	struct xtal_os_tls *tls; /* NULL: the bytes go as they are */
	uint8_t *stage;          /* with tls: bytes on their way to it */
	size_t stage_at, stage_len;
	uint8_t *inbox; /* with tls: see xtal_tcp_inbox() */
};

/* fd is the caller's; -1 for an end that gets one later. */
void xtal_tcp_init(struct xtal_tcp *t, int fd);
/* Forgets the frames and the keys; fd is -1 afterwards (the caller closes it). */
void xtal_tcp_reset(struct xtal_tcp *t);
void xtal_tcp_fini(struct xtal_tcp *t);
/* Begins to connect, from a source address (or NULL), and sets fd. When the socket has become
 * writable: xtal_tcp_connected(), as xtal_os_tcp_connected(). Errors: -errno. */
int xtal_tcp_connect(struct xtal_tcp *t, struct xtal_eid to, uint16_t port,
		     const struct xtal_eid *from);
int xtal_tcp_connected(const struct xtal_tcp *t);
/* Nothing more is sent or received; the peer hears of it. */
void xtal_tcp_shutdown(const struct xtal_tcp *t);
/* Before the first byte: everything is encrypted. Errors: -ENOMEM. */
int xtal_tcp_secure(struct xtal_tcp *t, struct xtal_os_tls_context *context, bool server);
/* Before the first frame: 0 (at once without tls): the peers know each other; -EAGAIN: once more
 * when the socket is ready; -errno: no. */
int xtal_tcp_handshake(struct xtal_tcp *t);
/* Words for an error of the connection, the newest. */
const char *xtal_tcp_reason(const struct xtal_tcp *t, int err);

/* A place for the next frame: header, payload (copied or not), tags are to be filled in. NULL:
 * too many wait, or no memory. It counts with commit. */
struct xtal_tcp_frame *xtal_tcp_reserve(struct xtal_tcp *t);
void xtal_tcp_commit(struct xtal_tcp *t);
static inline bool xtal_tcp_room(const struct xtal_tcp *t)
{
	return t->tail - t->head < XTAL_TCP_FRAMES;
}

/*
 * Sends what waits. 0: everything; -EAGAIN: the socket is full; -EFAULT: the payload of the
 * oldest frame (xtal_tcp_oldest()) is not there, which the stream does not survive; -errno: the
 * connection is gone.
 */
int xtal_tcp_flush(struct xtal_tcp *t, const struct xtal_tcp_pins *pins);
const struct xtal_tcp_frame *xtal_tcp_oldest(const struct xtal_tcp *t);
/* Nothing waits. */
static inline bool xtal_tcp_idle(const struct xtal_tcp *t)
{
	return t->head == t->tail && t->stage_at == t->stage_len;
}
/* Nothing is expected soon: gives back memory that the next frame takes again. */
void xtal_tcp_rest(struct xtal_tcp *t);
/* True when a payload that is not copied waits, whose first tag is this. */
bool xtal_tcp_holds(const struct xtal_tcp *t, uint64_t tag);
/* Such payloads are nobody's any more, and what their bytes are does not matter: zeros go out. They have at
 * most XTAL_TCP_VOID bytes. */
#define XTAL_TCP_VOID 65536u
void xtal_tcp_disown(struct xtal_tcp *t, uint64_t tag);

/*
 * Receives into the pieces, in order. The number of bytes, 0 at the end of the stream, -EAGAIN,
 * -EFAULT (the memory at the front is not there; nothing is lost), -errno. With tls the memory
 * must be sure to be there (ask xtal_tcp_direct()), and fewer bytes than asked for do not mean
 * that no more are there: go on while xtal_tcp_buffered().
 */
int64_t xtal_tcp_receive(struct xtal_tcp *t, const struct xtal_os_iov *iov, unsigned count);
/* With tls: XTAL_TCP_INBOX bytes of the connection's own to receive into, where more than that may come
 * (or came before): as much as is decrypted at once. They are given back by a rest. NULL: receive
 * into something smaller. */
#define XTAL_TCP_INBOX 16384u
uint8_t *xtal_tcp_inbox(struct xtal_tcp *t, bool much);
/* With tls: bytes have left the socket that nobody has received. */
bool xtal_tcp_buffered(const struct xtal_tcp *t);
/* True when bytes may be received into memory that may not be there. */
static inline bool xtal_tcp_direct(const struct xtal_tcp *t)
{
	return !t->tls;
}

/* The socket must become writable before anything goes on (else: readable). */
bool xtal_tcp_wants_write(const struct xtal_tcp *t);

#endif
