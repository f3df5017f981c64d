/* SPDX-License-Identifier: MIT */
/* poll() in spite of RLIMIT_NOFILE; see poll.h. */
#include "os/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORD_BITS (8 * sizeof(unsigned long))
#define MAX_FD    2048u /* of those for which there is room on the stack */

struct set {
	unsigned long word[MAX_FD / WORD_BITS];
};

static void add(struct set *s, int fd)
{
	s->word[(unsigned)fd / WORD_BITS] |= 1ul << (unsigned)fd % WORD_BITS;
}

static bool has(const struct set *s, int fd)
{
	return s->word[(unsigned)fd / WORD_BITS] >> (unsigned)fd % WORD_BITS & 1;
}

static bool is_open(int fd)
{
	return syscall(SYS_fcntl, fd, F_GETFD) >= 0;
}

/* False: select() cannot take one of them. */
static bool fill(const struct pollfd *fds, unsigned n, struct set *in, struct set *out, int *end)
{
	memset(in, 0, sizeof(*in));
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < n; i++) {
		if (fds[i].fd < 0)
			continue;
		if ((unsigned)fds[i].fd >= MAX_FD)
			return false;
		if (fds[i].events & POLLIN)
			add(in, fds[i].fd);
		if (fds[i].events & POLLOUT)
			add(out, fds[i].fd);
		*end = *end > fds[i].fd ? *end : fds[i].fd + 1;
	}
	return true;
}

/* select() has no such limit. */
int xtal_os_poll_without(struct pollfd *fds, unsigned n, const struct timespec *left)
{
	struct timespec rest = left ? *left : (struct timespec){ 0 };
	struct set in, out;
	int end = 0, ready = 0;

	if (!fill(fds, n, &in, &out, &end)) {
		errno = EINVAL;
		return -1;
	}
	if (syscall(SYS_pselect6, end, &in, &out, NULL, left ? &rest : NULL, NULL) < 0) {
		if (errno != EBADF)
			return -1;
		memset(&in, 0, sizeof(in));
		memset(&out, 0, sizeof(out));
	}
	for (unsigned i = 0; i < n; i++) {
		struct pollfd *p = &fds[i];

		p->revents = 0;
		if (p->fd < 0)
			continue;
		if (p->events & POLLIN && has(&in, p->fd))
			p->revents |= POLLIN;
		if (p->events & POLLOUT && has(&out, p->fd))
			p->revents |= POLLOUT;
		if (!p->revents && !is_open(p->fd))
			p->revents = POLLNVAL;
		ready += p->revents != 0;
	}
	return ready;
}

int xtal_os_poll(struct pollfd *fds, unsigned n, const struct timespec *left)
{
	struct timespec rest = left ? *left : (struct timespec){ 0 };
	int ready = (int)syscall(SYS_ppoll, fds, (unsigned long)n, left ? &rest : NULL, NULL, 0ul);

	return ready < 0 && errno == EINVAL ? xtal_os_poll_without(fds, n, left) : ready;
}
