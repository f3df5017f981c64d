/* SPDX-License-Identifier: MIT */
/* TLS through OpenSSL: the only file that knows it. */
#define _GNU_SOURCE
#include "os/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/secret.h"
#include "os/tcp.h"
#include "os/vm.h"

#define ID_SIZE    64
#define CIPHER     "TLS_AES_128_GCM_SHA256"
#define READ_AHEAD 32768 /* so that one read of the stream may bring more than one record */
#define AHEAD      256   /* a look costs as much as without TLS, for records that fit */
#define HEADER     5     /* bytes of a record before its data */

struct xtal_os_tls_context {
	OSSL_LIB_CTX *library; /* our own: the program's configuration of OpenSSL is not ours */
	SSL_CTX *ssl;
	BIO_METHOD *method;
	uint8_t key[XTAL_OS_TLS_KEY];
	char id[ID_SIZE];
};

struct xtal_os_tls {
	struct xtal_os_tls_context *context;
	struct xtal_os_tls_stream stream;
	SSL *ssl;
	bool server, up, ended, wants_write;
	bool saw_id, same_id; /* the server: what the peer named */
	int error;            /* the stream's */
	bool stuck;           /* the stream took or gave nothing when it was asked last */
	bool dry;             /* so it ended with the last read */
	size_t came;          /* bytes from the stream since it was dry before */
	uint8_t ahead[AHEAD]; /* received by us before OpenSSL was asked; it takes them next */
	size_t ahead_at, ahead_len;
	bool gone; /* the stream, as it told us before OpenSSL asked: its end, or an error */
	int64_t gone_with;
	char *stash; /* pieces joined into one record, until it is accepted */
	size_t stash_len;
	const char *place; /* of a record's data, in OpenSSL's buffer */
	bool begins;       /* the next bytes for the stream begin a record */
	char reason[200];
};

static int fail(struct xtal_os_tls *tls, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct xtal_os_tls *tls, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(tls->reason, sizeof(tls->reason), format, args);
	va_end(args);
	return err;
}

/* ---- The stream, as OpenSSL sees it ---- */

static int64_t take(struct xtal_os_tls *tls, char *buf, size_t len)
{
	size_t left = tls->ahead_len - tls->ahead_at, n = len < left ? len : left;

	if (tls->gone)
		return tls->gone_with;
	if (!left)
		return tls->stream.read(tls->stream.arg, buf, len);
	memcpy(buf, tls->ahead + tls->ahead_at, n);
	tls->ahead_at += n;
	return (int64_t)n;
}

static int stream_read(BIO *bio, char *buf, size_t len, size_t *moved)
{
	struct xtal_os_tls *tls = BIO_get_data(bio);
	int64_t n = take(tls, buf, len);

	if (n > 0)
		tls->came += (size_t)n;
	tls->stuck = n == -EAGAIN;
	BIO_clear_retry_flags(bio);
	if (n > 0) {
		*moved = (size_t)n;
		return 1;
	}
	if (n == 0)
		tls->ended = true;
	else if (n == -EAGAIN)
		BIO_set_retry_read(bio);
	else
		tls->error = (int)n;
	return 0;
}

static int stream_write(BIO *bio, const char *buf, size_t len, size_t *moved)
{
	struct xtal_os_tls *tls = BIO_get_data(bio);
	int64_t n = tls->stream.write(tls->stream.arg, buf, len);

	if (tls->begins)
		tls->place = buf + HEADER;
	tls->begins = false;
	tls->stuck = n == -EAGAIN || n == 0;
	BIO_clear_retry_flags(bio);
	if (n > 0) {
		*moved = (size_t)n;
		return 1;
	}
	if (tls->stuck)
		BIO_set_retry_write(bio);
	else
		tls->error = (int)n;
	return 0;
}

static long stream_control(BIO *bio, int command, long num, void *ptr)
{
	struct xtal_os_tls *tls = BIO_get_data(bio);

	(void)num;
	(void)ptr;
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return tls->ended;
	default:
		return 0;
	}
}

/* No places of libc's where a thread is cancelled, within OpenSSL. */
static int64_t socket_read(void *arg, void *buf, size_t len)
{
	struct xtal_os_iov iov = { .base = buf, .len = len };

	return xtal_os_tcp_recv((int)(intptr_t)arg, &iov, 1);
}

static int64_t socket_write(void *arg, const void *buf, size_t len)
{
	struct xtal_os_iov iov = { .base = (void *)(uintptr_t)buf, .len = len };

	return xtal_os_tcp_send((int)(intptr_t)arg, &iov, 1);
}

struct xtal_os_tls_stream xtal_os_tls_socket(int fd)
{
	return (struct xtal_os_tls_stream){ .read = socket_read,
					    .write = socket_write,
					    .arg = (void *)(intptr_t)fd };
}

/* ---- The key ---- */

/* Made for each connection: OpenSSL changes it. NULL: no memory. */
static SSL_SESSION *make_session(const struct xtal_os_tls *tls)
{
	static const unsigned char number[] = { 0x13, 0x01 }; /* CIPHER on the wire */
	const SSL_CIPHER *cipher = SSL_CIPHER_find(tls->ssl, number);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher &&
	    SSL_SESSION_set1_master_key(session, tls->context->key, XTAL_OS_TLS_KEY) &&
	    SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int offer_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len,
		     SSL_SESSION **session)
{
	struct xtal_os_tls *tls = SSL_get_app_data(ssl);

	(void)md; /* only one cipher is allowed, and it has one hash */
	*session = make_session(tls);
	*id = (const unsigned char *)tls->context->id;
	*len = strlen(tls->context->id);
	return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **session)
{
	struct xtal_os_tls *tls = SSL_get_app_data(ssl);

	*session = NULL;
	tls->saw_id = true;
	if (len != strlen(tls->context->id) || memcmp(id, tls->context->id, len) != 0)
		return 1;
	tls->same_id = true;
	*session = make_session(tls);
	return *session != NULL;
}

static bool set_rules(SSL_CTX *ssl)
{
	SSL_CTX_set_options(ssl,
			    SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_clear_options(ssl, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	/* Not RELEASE_BUFFERS, which takes memory and gives it back for each record, at a sixth of what
	 * a short message costs: xtal_os_tls_rest() does it when it is worth while. */
	SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ssl, 1);
	SSL_CTX_set_default_read_buffer_len(ssl, READ_AHEAD);
	SSL_CTX_set_psk_use_session_callback(ssl, offer_key);
	SSL_CTX_set_psk_find_session_callback(ssl, find_key);
	return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(ssl, CIPHER) && SSL_CTX_set_num_tickets(ssl, 0) &&
	       SSL_CTX_set_max_early_data(ssl, 0) && SSL_CTX_set1_groups_list(ssl, "X25519:P-256");
}

int xtal_os_tls_context_create(const uint8_t key[XTAL_OS_TLS_KEY], const char *id,
			       struct xtal_os_tls_context **out)
{
	struct xtal_os_tls_context *c;

	/* Its clean-up at exit would take the ground from under our threads. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL))
		return -ENOTSUP;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	memcpy(c->key, key, sizeof(c->key));
	snprintf(c->id, sizeof(c->id), "%s", id);
	ERR_clear_error();
	c->library = OSSL_LIB_CTX_new();
	c->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "xtal stream");
	if (c->library)
		c->ssl = SSL_CTX_new_ex(c->library, NULL, TLS_method());
	if (!c->method || !c->ssl || !BIO_meth_set_read_ex(c->method, stream_read) ||
	    !BIO_meth_set_write_ex(c->method, stream_write) ||
	    !BIO_meth_set_ctrl(c->method, stream_control) || !set_rules(c->ssl)) {
		ERR_clear_error();
		xtal_os_tls_context_destroy(&c);
		return -ENOTSUP;
	}
	*out = c;
	return 0;
}

void xtal_os_tls_context_destroy(struct xtal_os_tls_context **context)
{
	struct xtal_os_tls_context *c = *context;

	*context = NULL;
	if (!c)
		return;
	SSL_CTX_free(c->ssl);
	BIO_meth_free(c->method);
	OSSL_LIB_CTX_free(c->library);
	xtal_os_wipe(c->key, sizeof(c->key));
	free(c);
}

int xtal_os_tls_open(struct xtal_os_tls_context *context, bool server,
		     const struct xtal_os_tls_stream *stream, struct xtal_os_tls **out)
{
	struct xtal_os_tls *tls = calloc(1, sizeof(*tls));
	BIO *bio;

	if (!tls)
		return -ENOMEM;
	tls->context = context;
	tls->stream = *stream;
	tls->server = server;
	ERR_clear_error();
	tls->ssl = SSL_new(context->ssl);
	bio = tls->ssl ? BIO_new(context->method) : NULL;
	if (!bio) {
		ERR_clear_error();
		SSL_free(tls->ssl);
		free(tls);
		return -ENOMEM;
	}
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_app_data(tls->ssl, tls);
	if (server) {
		SSL_set_accept_state(tls->ssl);
	} else {
		SSL_set_connect_state(tls->ssl);
		/* There is nothing to verify a certificate against, so none is accepted. */
		SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL);
	}
	*out = tls;
	return 0;
}

void xtal_os_tls_close(struct xtal_os_tls **tlsp)
{
	struct xtal_os_tls *tls = *tlsp;

	*tlsp = NULL;
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls->stash);
	free(tls);
	ERR_clear_error();
}

/* ---- Results ---- */

static bool says_no_key(unsigned long error)
{
	switch (ERR_GET_REASON(error)) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
	case SSL_R_BAD_PSK:
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY:
		return true;
	default:
		return false;
	}
}

static int broken(struct xtal_os_tls *tls, unsigned long error)
{
	const char *words = ERR_reason_error_string(error);

	if (tls->up)
		return fail(tls, -EPROTO, "the encrypted stream is not intact: %s",
			    words ? words : "unknown error");
	if (tls->server && tls->saw_id && !tls->same_id)
		return fail(tls, -EACCES, "the peer has another key than ours (id %s)",
			    tls->context->id);
	if (says_no_key(error))
		return fail(tls, -EACCES,
			    tls->server ? "the peer does not have our key (id %s): %s"
					: "the peer does not accept our key (id %s): %s",
			    tls->context->id, words ? words : "unknown error");
	return fail(tls, -EPROTO, "no TLS 1.3 could be agreed on: %s",
		    words ? words : "unknown error");
}

/*
 * What a call that returned no success means. SSL_get_error() would take for ours what others left in
 * this thread's list of errors, and to look at that before each call costs 200 instructions; so the
 * stream tells, and the list is only asked for the reason of a failure: its newest, which is ours.
 */
static int outcome(struct xtal_os_tls *tls)
{
	unsigned long error;
	int result;

	if (tls->stuck && (SSL_want_read(tls->ssl) || SSL_want_write(tls->ssl))) {
		tls->wants_write = SSL_want_write(tls->ssl);
		return -EAGAIN;
	}
	error = ERR_peek_last_error();
	/* A fatal alert shuts down too, but has a reason. */
	if (!tls->error && !tls->ended && ERR_GET_LIB(error) != ERR_LIB_SSL &&
	    SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN)
		return fail(tls, 0, "the peer ended the connection");
	if (tls->error)
		result = fail(tls, tls->error, "%s", strerror(-tls->error));
	else if (tls->ended)
		result = fail(tls, -ECONNRESET, "the stream ended %s",
			      tls->up ? "without a farewell" : "before a key was agreed on");
	else if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
		result = fail(tls, -ENOMEM, "no memory");
	else
		result = broken(tls, error);
	ERR_clear_error();
	return result;
}

int xtal_os_tls_handshake(struct xtal_os_tls *tls)
{
	int ret;

	if (tls->up)
		return 0;
	tls->stuck = false;
	ret = SSL_do_handshake(tls->ssl);
	if (ret != 1) {
		ret = outcome(tls);
		return ret ? ret : -ECONNRESET;
	}
	if (!SSL_session_reused(tls->ssl) || SSL_version(tls->ssl) != TLS1_3_VERSION)
		return fail(tls, -EACCES, "the peer did not prove that it has our key (id %s)",
			    tls->context->id);
	tls->up = tls->begins = true;
	return 0;
}

/*
 * Whoever spins looks at the stream far more often than it has something, and OpenSSL takes longer for
 * an empty look than the kernel: so we look, and hand it what there is. Not where more is to be
 * expected: that it receives by itself. False: there is nothing.
 */
static bool look_ahead(struct xtal_os_tls *tls)
{
	int64_t n = tls->stream.read(tls->stream.arg, tls->ahead, AHEAD);

	if (n == -EAGAIN)
		return false;
	tls->ahead_at = 0;
	tls->ahead_len = n > 0 ? (size_t)n : 0;
	tls->gone = n <= 0;
	tls->gone_with = n;
	return true;
}

int64_t xtal_os_tls_read(struct xtal_os_tls *tls, void *buf, size_t len)
{
	size_t n;
	int ret;

	if (!tls->up)
		return fail(tls, -EPROTO, "no handshake was done");
	if (tls->dry && tls->came <= AHEAD && !look_ahead(tls)) {
		tls->wants_write = false;
		return -EAGAIN;
	}
	if (tls->dry)
		tls->came = 0;
	tls->dry = tls->stuck = false;
	if (SSL_read_ex(tls->ssl, buf, len, &n) == 1)
		return (int64_t)n;
	ret = outcome(tls);
	tls->dry = ret == -EAGAIN && !tls->wants_write;
	return ret;
}

bool xtal_os_tls_buffered(const struct xtal_os_tls *tls)
{
	return SSL_has_pending(tls->ssl);
}

static int64_t write_some(struct xtal_os_tls *tls, const void *buf, size_t len)
{
	size_t n;
	int ret;

	if (!tls->up)
		return fail(tls, -EPROTO, "no handshake was done");
	if (tls->stash_len) {
		buf = tls->stash;
		len = tls->stash_len;
	}
	tls->stuck = false;
	ret = SSL_write_ex(tls->ssl, buf, len, &n);
	if (ret != 1) {
		ret = outcome(tls);
		return ret ? ret : -EPIPE;
	}
	tls->stash_len = 0;
	tls->begins = true;
	return (int64_t)n;
}

int64_t xtal_os_tls_write(struct xtal_os_tls *tls, const void *buf, size_t len)
{
	return write_some(tls, buf, len);
}

int64_t xtal_os_tls_writev(struct xtal_os_tls *tls, const struct xtal_os_tls_piece *pieces,
			   unsigned count)
{
	size_t used = 0;

	if (count == 1 || pieces[0].len >= XTAL_OS_TLS_RECORD || tls->stash_len)
		return write_some(tls, pieces[0].base, pieces[0].len);
	if (!tls->stash) {
		tls->stash = malloc(XTAL_OS_TLS_RECORD);
		if (!tls->stash)
			return fail(tls, -ENOMEM, "no memory");
	}
	for (unsigned i = 0; i < count && used < XTAL_OS_TLS_RECORD; i++) {
		size_t n = pieces[i].len;

		if (n > XTAL_OS_TLS_RECORD - used)
			n = XTAL_OS_TLS_RECORD - used;
		memcpy(tls->stash + used, pieces[i].base, n);
		used += n;
	}
	tls->stash_len = used;
	return write_some(tls, NULL, 0);
}

const void *xtal_os_tls_place(const struct xtal_os_tls *tls)
{
	return tls->place;
}

int xtal_os_tls_shutdown(struct xtal_os_tls *tls)
{
	int ret;

	if (!tls->up)
		return 0;
	tls->stuck = false;
	ret = SSL_shutdown(tls->ssl); /* 0: said, and the peer has not answered */
	return ret >= 0 ? 0 : outcome(tls);
}

void xtal_os_tls_rest(struct xtal_os_tls *tls)
{
	SSL_free_buffers(tls->ssl); /* refuses while bytes are in them */
	if (!tls->stash_len) {
		free(tls->stash);
		tls->stash = NULL;
	}
}

bool xtal_os_tls_wants_write(const struct xtal_os_tls *tls)
{
	return tls->wants_write;
}

const char *xtal_os_tls_reason(const struct xtal_os_tls *tls)
{
	return tls->reason;
}
