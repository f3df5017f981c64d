/* SPDX-License-Identifier: MIT */
/*
 * TLS 1.3 with a pre-shared key over any byte stream, through OpenSSL. No certificates, no
 * older version, no tickets, no early data; each connection agrees on fresh keys (a key file
 * that leaks later does not open what was recorded). A filter: it reads and writes through two
 * functions of the caller, which never block, and so neither does it.
 *
 * A connection is used by one thread at a time; contexts are shared by all.
 */
#ifndef XTAL_OS_TLS_H
#define XTAL_OS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XTAL_OS_TLS_KEY    32
#define XTAL_OS_TLS_RECORD 16384 /* bytes of data in one record, at most */

struct xtal_os_tls_context; /* a key and the rules; for both sides */
struct xtal_os_tls;         /* one connection */

/* id: names the key to the peer, in clear. Errors: -ENOMEM, -ENOTSUP (OpenSSL refuses). */
int xtal_os_tls_context_create(const uint8_t key[XTAL_OS_TLS_KEY], const char *id,
			       struct xtal_os_tls_context **out);
/* After the last connection. NULLs it. */
void xtal_os_tls_context_destroy(struct xtal_os_tls_context **context);

/*
 * The stream below. Both return the number of bytes moved, -EAGAIN when that would block, or
 * -errno; read returns 0 at the end of the stream. They must not raise SIGPIPE.
 */
struct xtal_os_tls_stream {
	int64_t (*read)(void *arg, void *buf, size_t len);
	int64_t (*write)(void *arg, const void *buf, size_t len);
	void *arg;
};
/* A non-blocking socket as a stream. */
struct xtal_os_tls_stream xtal_os_tls_socket(int fd);

/* Sends and receives nothing yet. Errors: -ENOMEM. */
int xtal_os_tls_open(struct xtal_os_tls_context *context, bool server,
		     const struct xtal_os_tls_stream *stream, struct xtal_os_tls **out);
/* Frees it, tells the peer nothing. NULLs it. */
void xtal_os_tls_close(struct xtal_os_tls **tls);

/*
 * All below return what they moved, or 0 for done, or
 *   -EAGAIN      the stream would block; xtal_os_tls_wants() tells for what to wait
 *   -EACCES      the peer does not have our key, or refused ours
 *   -EPROTO      what arrived is no TLS 1.3 of this kind, or was tampered with
 *   -ECONNRESET  the stream ended without a farewell (cut, or truncated by somebody)
 *   -errno       of the stream
 * After any but -EAGAIN the connection is useless; xtal_os_tls_reason() has words.
 */

/* 0: both sides have proved that they know the key. Before that nothing can be read or written. */
int xtal_os_tls_handshake(struct xtal_os_tls *tls);
/* 0: the peer said farewell. Read while data is buffered here before waiting for the stream. */
int64_t xtal_os_tls_read(struct xtal_os_tls *tls, void *buf, size_t len);
/* Bytes of the stream are buffered here, maybe not yet enough of them for a read. */
bool xtal_os_tls_buffered(const struct xtal_os_tls *tls);
/* Writes some bytes. After -EAGAIN the next write must begin with the same bytes and have no
 * fewer of them; they may have moved. */
int64_t xtal_os_tls_write(struct xtal_os_tls *tls, const void *buf, size_t len);
/* The same for pieces. Short ones share a record, and are copied for it. */
struct xtal_os_tls_piece {
	const void *base;
	size_t len;
};
int64_t xtal_os_tls_writev(struct xtal_os_tls *tls, const struct xtal_os_tls_piece *pieces,
			   unsigned count);
/* Where OpenSSL copies the data of a record to, for xtal_copy_crawls(). NULL: not known yet; it may
 * change after a rest. */
const void *xtal_os_tls_place(const struct xtal_os_tls *tls);
/* Nothing is expected soon: gives back the buffers that hold nothing (50 KiB); the next call takes
 * new ones. */
void xtal_os_tls_rest(struct xtal_os_tls *tls);
/* 0: said farewell. */
int xtal_os_tls_shutdown(struct xtal_os_tls *tls);

/* After -EAGAIN: the stream must become writable (else: readable) before it goes on. */
bool xtal_os_tls_wants_write(const struct xtal_os_tls *tls);
/* Why it failed. "" before. */
const char *xtal_os_tls_reason(const struct xtal_os_tls *tls);

#endif
