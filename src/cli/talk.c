/* SPDX-License-Identifier: MIT */
/* Fixed-size messages over a stream socket, with time limits and words for every failure. */
#include "cli/talk.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/cli.h"

#define TALK_MAGIC 0x324b4c54u /* "TLK2"; changes with the layout */

#define CODE 32

/* The protected conversation. */
static struct {
	bool on, client;
	int fd;
	uint8_t key[CLI_TALK_KEY];
	uint8_t nonce[2][CLI_TALK_NONCE];
	uint64_t sent, received;
} guard;

static bool guarded(int fd)
{
	return guard.on && guard.fd == fd;
}

void cli_talk_protect(int fd, const uint8_t key[CLI_TALK_KEY],
		      const uint8_t client_nonce[CLI_TALK_NONCE],
		      const uint8_t server_nonce[CLI_TALK_NONCE], bool client)
{
	guard.on = true;
	guard.client = client;
	guard.fd = fd;
	guard.sent = guard.received = 0;
	memcpy(guard.key, key, sizeof(guard.key));
	memcpy(guard.nonce[0], client_nonce, CLI_TALK_NONCE);
	memcpy(guard.nonce[1], server_nonce, CLI_TALK_NONCE);
}

const char *cli_talk_state(int fd)
{
	static char text[4 * CLI_TALK_NONCE + 64];
	const uint8_t *nonces = &guard.nonce[0][0];

	if (!guarded(fd))
		return NULL;
	for (unsigned i = 0; i < 2 * CLI_TALK_NONCE; i++)
		snprintf(text + 2 * i, 3, "%02x", nonces[i]);
	snprintf(text + 4 * CLI_TALK_NONCE, 64, ",%d,%llu,%llu", guard.client,
		 (unsigned long long)guard.sent, (unsigned long long)guard.received);
	return text;
}

int cli_talk_adopt(int fd, const uint8_t key[CLI_TALK_KEY], const char *state)
{
	unsigned long long sent, received;
	uint8_t nonces[2 * CLI_TALK_NONCE];
	unsigned byte;
	int client;

	for (unsigned i = 0; i < sizeof(nonces); i++) {
		if (sscanf(state + 2 * i, "%2x", &byte) != 1)
			return cli_fail("the conversation's state makes no sense");
		nonces[i] = (uint8_t)byte;
	}
	if (sscanf(state + 2 * sizeof(nonces), ",%d,%llu,%llu", &client, &sent, &received) != 3)
		return cli_fail("the conversation's state makes no sense");
	cli_talk_protect(fd, key, nonces, nonces + CLI_TALK_NONCE, client);
	guard.sent = sent;
	guard.received = received;
	return 0;
}

static int make_code(const struct cli_talk *msg, bool from_client, uint64_t number,
		     uint8_t code[CODE])
{
	struct {
		uint8_t nonce[2][CLI_TALK_NONCE];
		uint64_t from_client, number;
		struct cli_talk msg;
	} all;
	unsigned len = CODE;

	memcpy(all.nonce, guard.nonce, sizeof(all.nonce));
	all.from_client = from_client;
	all.number = number;
	memcpy(&all.msg, msg, sizeof(*msg));
	if (!HMAC(EVP_sha256(), guard.key, sizeof(guard.key), (const uint8_t *)&all, sizeof(all),
		  code, &len))
		return cli_fail("no code could be made");
	return 0;
}

static int send_all(int fd, const void *data, size_t left)
{
	const char *p = data;

	while (left > 0) {
		ssize_t n = send(fd, p, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR && !cli_interrupted())
			continue;
		if (n < 0)
			return cli_fail("the other process does not listen any more: %s",
					strerror(errno));
		p += n;
		left -= (size_t)n;
	}
	return 0;
}

int cli_talk_send(int fd, struct cli_talk *msg, enum cli_talk_type type)
{
	struct {
		struct cli_talk msg;
		uint8_t code[CODE];
	} sealed;

	msg->magic = TALK_MAGIC;
	msg->type = type;
	if (!guarded(fd))
		return send_all(fd, msg, sizeof(*msg));
	memcpy(&sealed.msg, msg, sizeof(*msg));
	if (make_code(&sealed.msg, guard.client, guard.sent++, sealed.code))
		return -1;
	return send_all(fd, &sealed, sizeof(sealed));
}

/* True: readable or closed. False: time is over or the user interrupted; with cli_reason. */
static bool wait_readable(int fd, uint64_t deadline)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = cli_now();
		int ms = now >= deadline ? 0 : (int)((deadline - now) / 1000000 + 1);
		int n = poll(&p, 1, ms);

		if (n > 0)
			return true;
		if (n < 0 && errno == EINTR && !cli_interrupted())
			continue;
		if (cli_interrupted())
			cli_fail("interrupted");
		else if (n == 0)
			cli_fail("the other process does not answer; is it stopped?");
		else
			cli_fail("poll: %s", strerror(errno));
		return false;
	}
}

/* 1: all of it; 0: the other side closed. */
static int recv_all(int fd, void *data, size_t size, uint64_t deadline)
{
	char *p = data;
	size_t got = 0;

	while (got < size) {
		ssize_t n;

		if (!wait_readable(fd, deadline))
			return -1;
		n = recv(fd, p + got, size - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ECONNRESET)
			return cli_fail("recv: %s", strerror(errno));
		if (n <= 0) {
			cli_fail("the other process went away");
			return 0;
		}
		got += (size_t)n;
	}
	return 1;
}

int cli_talk_next(int fd, struct cli_talk *msg, int timeout_ms)
{
	uint64_t deadline = cli_now() + (uint64_t)timeout_ms * 1000000u;
	uint8_t code[CODE], want[CODE];
	int n = recv_all(fd, msg, sizeof(*msg), deadline);

	if (n > 0 && guarded(fd)) {
		n = recv_all(fd, code, sizeof(code), deadline);
		if (n > 0 && make_code(msg, !guard.client, guard.received++, want))
			return -1;
		if (n > 0 && CRYPTO_memcmp(code, want, sizeof(code)) != 0)
			return cli_fail("the other host has another key, or a message was changed "
					"on the way ('xtal key id FILE' names keys)");
	}
	if (n <= 0)
		return n;
	msg->text[sizeof(msg->text) - 1] = '\0';
	msg->result.path[sizeof(msg->result.path) - 1] = '\0';
	msg->result.why[sizeof(msg->result.why) - 1] = '\0';
	if (msg->magic != TALK_MAGIC)
		return cli_fail("the other process speaks another version of this protocol");
	return 1;
}

int cli_talk_recv(int fd, struct cli_talk *msg, enum cli_talk_type want, int timeout_ms)
{
	if (cli_talk_next(fd, msg, timeout_ms) <= 0)
		return -1;
	if (msg->error)
		return cli_fail("%s", msg->text);
	if (msg->type != (uint32_t)want)
		return cli_fail("the other process answered %u where %u was due", msg->type,
				(unsigned)want);
	return 0;
}

int cli_talk_ask(int fd, struct cli_talk *msg, enum cli_talk_type type)
{
	if (cli_talk_send(fd, msg, type))
		return -1;
	return cli_talk_recv(fd, msg, TALK_DONE, CLI_TALK_PATIENCE_MS);
}

bool cli_talk_pending(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}
