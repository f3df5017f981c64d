/* SPDX-License-Identifier: MIT */
/* Conversations with another host: addresses, connecting, proving the key. */
#include "cli/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/key.h"
#include "cli/cli.h"
#include "cli/key.h"
#include "cli/talk.h"

#define PATIENCE_S 10

bool cli_net_is_address(const char *name)
{
	return strpbrk(name, ".:") != NULL;
}

/* Cuts WHERE into host and port. */
static int split(const char *where, char host[256], char port[16])
{
	const char *colon = strrchr(where, ':'), *end;

	snprintf(port, 16, "%s", CLI_NET_PORT);
	if (where[0] == '[') {
		end = strchr(where, ']');
		if (!end || (end[1] && end[1] != ':'))
			return cli_fail("'%s' is not [ADDRESS] or [ADDRESS]:PORT", where);
		colon = end[1] ? end + 1 : NULL;
		where++;
	} else if (!colon || strchr(where, ':') != colon) {
		end = where + strlen(where); /* none, or an IPv6 address without a port */
		colon = NULL;
	} else {
		end = colon;
	}
	if (end == where || (size_t)(end - where) >= 256 || (colon && strlen(colon + 1) >= 16))
		return cli_fail("'%s' is not HOST or HOST:PORT", where);
	if (colon && (strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
		      strtoul(colon + 1, NULL, 10) - 1 > 65534))
		return cli_fail("'%s': the port '%s' is not 1 to 65535", where, colon + 1);
	snprintf(host, 256, "%.*s", (int)(end - where), where);
	if (colon)
		snprintf(port, 16, "%s", colon + 1);
	return 0;
}

static int resolve(const char *where, bool passive, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0) };
	char host[256], port[16];
	int err;

	if (split(where, host, port))
		return -1;
	err = getaddrinfo(host, port, &hints, out);
	return err ? cli_fail("'%s' is no address: %s", where, gai_strerror(err)) : 0;
}

static void set_options(int fd)
{
	int on = 1, seconds = PATIENCE_S;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* A host that vanishes is noticed after a minute or so. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
}

/* ---- The key ---- */

static const char *setting(const char *name)
{
	struct xtal_setting s;

	for (unsigned i = 0; xtal_setting_at(i, &s) == 0; i++)
		if (strcmp(s.name, name) == 0)
			return s.value;
	return "";
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static bool is_any(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static bool secure(void)
{
	return strcmp(setting("XTAL_SECURITY"), "none") != 0;
}

static int read_key(uint8_t secret[XTAL_KEY_BYTES])
{
	const char *path = setting("XTAL_KEY_FILE");
	struct xtal_key key;

	if (!path[0])
		return cli_fail("there is no key: make one with 'xtal key new FILE', copy it to "
				"both hosts and set XTAL_KEY_FILE (or XTAL_SECURITY=none on both)");
	if (cli_key_read(path, &key))
		return -1;
	memcpy(secret, key.secret, XTAL_KEY_BYTES);
	explicit_bzero(&key, sizeof(key));
	return 0;
}

/* Elsewhere than on the loopback address clients are turned away without a key: say it first. */
static int check_key(const struct sockaddr *a)
{
	uint8_t secret[XTAL_KEY_BYTES];
	int rc;

	if (!secure() || is_loopback(a) || is_any(a))
		return 0;
	rc = read_key(secret);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

static int cannot_wait(const char *where, const struct sockaddr *a, int err)
{
	/* The port is at the same place in IPv4 and IPv6 addresses. */
	unsigned port = ntohs(((const struct sockaddr_in *)a)->sin_port);

	if (err == EADDRNOTAVAIL)
		return cli_fail("cannot wait at %s: it is no address of this host ('xtal info' "
				"lists them)",
				where);
	if (err == EADDRINUSE)
		return cli_fail("cannot wait at %s: another program waits at TCP port %u there; "
				"give another, as ADDRESS:PORT",
				where, port);
	return cli_fail("cannot wait at %s, TCP port %u: %s", where, port, strerror(err));
}

int cli_net_listen(const char *where)
{
	struct addrinfo *list;
	int fd, rc, on = 1;

	if (resolve(where, true, &list))
		return -1;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		cli_fail("socket: %s", strerror(errno));
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 4))
			rc = cannot_wait(where, list->ai_addr, errno);
		else
			rc = check_key(list->ai_addr);
		if (rc) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

int cli_net_connect(const char *where)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	struct addrinfo *list;
	int fd = -1, err = 0;

	if (resolve(where, false, &list))
		return -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0) {
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
			if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
				break;
		}
		err = errno == EINPROGRESS ? ETIMEDOUT : errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		return cli_fail("no server answers at %s (%s); start one there with "
				"'xtal perf --server %s'",
				where, strerror(err), where);
	set_options(fd);
	return fd;
}

/* ---- Greeting ---- */

struct preface {
	char magic[8];
	uint8_t keyed;
	uint8_t reserved[7];
	uint8_t nonce[CLI_TALK_NONCE];
};

static bool to_loopback(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	return getpeername(fd, (struct sockaddr *)&a, &len) == 0 &&
	       is_loopback((struct sockaddr *)&a);
}

static int exchange(int fd, const struct preface *mine, struct preface *theirs)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	size_t got = 0;

	if (send(fd, mine, sizeof(*mine), MSG_NOSIGNAL) != (ssize_t)sizeof(*mine))
		return cli_fail("the other host does not listen: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (got < sizeof(*theirs)) {
		ssize_t n = recv(fd, (char *)theirs + got, sizeof(*theirs) - got, 0);

		if (n < 0 && errno == EINTR && !cli_interrupted())
			continue;
		if (n <= 0)
			return cli_fail("the other host did not greet: %s",
					n ? strerror(errno) : "it closed the connection");
		got += (size_t)n;
	}
	patience.tv_sec = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return memcmp(theirs->magic, mine->magic, sizeof(mine->magic))
		       ? cli_fail("the other side is no xtal perf of this version")
		       : 0;
}

int cli_net_greet(int fd, bool client)
{
	struct preface mine = { .magic = "XTLPERF1" }, theirs;
	uint8_t secret[XTAL_KEY_BYTES];
	int rc;

	set_options(fd);
	mine.keyed = secure() && !to_loopback(fd);
	if (mine.keyed && read_key(secret))
		return -1;
	if (getrandom(mine.nonce, sizeof(mine.nonce), 0) != (ssize_t)sizeof(mine.nonce))
		return cli_fail("getrandom: %s", strerror(errno));
	rc = exchange(fd, &mine, &theirs);
	if (rc == 0 && mine.keyed != theirs.keyed)
		rc = cli_fail("the other host has XTAL_SECURITY=%s, this one %s",
			      theirs.keyed ? "tls" : "none", mine.keyed ? "tls" : "none");
	if (rc == 0 && mine.keyed)
		cli_talk_protect(fd, secret, client ? mine.nonce : theirs.nonce,
				 client ? theirs.nonce : mine.nonce, client);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

int cli_net_resume(int fd, const char *state)
{
	uint8_t secret[XTAL_KEY_BYTES];
	int rc = read_key(secret);

	if (rc == 0)
		rc = cli_talk_adopt(fd, secret, state);
	explicit_bzero(secret, sizeof(secret));
	return rc;
}

bool cli_net_own_eid(int fd, uint8_t eid[16])
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&a, &len))
		return false;
	if (a.ss_family == AF_INET6) {
		memcpy(eid, &((struct sockaddr_in6 *)&a)->sin6_addr, 16);
		return true;
	}
	if (a.ss_family != AF_INET)
		return false;
	memset(eid, 0, 10);
	memset(eid + 10, 0xff, 2);
	memcpy(eid + 12, &((struct sockaddr_in *)&a)->sin_addr, 4);
	return true;
}
