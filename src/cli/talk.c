/* SPDX-License-Identifier: MIT */
/* Fixed-size messages over a stream socket, with time limits and words for every failure. */
#include "cli/talk.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/cli.h"

#define TALK_MAGIC 0x314b4c54u /* "TLK1"; changes with the layout */

int cli_talk_send(int fd, struct cli_talk *msg, enum cli_talk_type type)
{
	const char *p = (const char *)msg;
	size_t left = sizeof(*msg);

	msg->magic = TALK_MAGIC;
	msg->type = type;
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

int cli_talk_next(int fd, struct cli_talk *msg, int timeout_ms)
{
	uint64_t deadline = cli_now() + (uint64_t)timeout_ms * 1000000u;
	char *p = (char *)msg;
	size_t got = 0;

	while (got < sizeof(*msg)) {
		ssize_t n;

		if (!wait_readable(fd, deadline))
			return -1;
		n = recv(fd, p + got, sizeof(*msg) - got, 0);
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
