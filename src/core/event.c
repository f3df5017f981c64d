/* SPDX-License-Identifier: MIT */
/* Descriptors, sleeping and time, for front-ends. */
#include "core/event.h"

#include <limits.h>

#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"

int xtal_event_open(int *fd)
{
	int err = xtal_os_event_create(fd);

	if (!err)
		xtal_os_event_let_block(*fd);
	return err;
}

void xtal_event_close(int fd)
{
	xtal_os_close(fd);
}

void xtal_event_set(int fd, bool readable)
{
	if (readable)
		xtal_os_event_signal(fd);
	else
		xtal_os_event_clear(fd);
}

int xtal_event_wait(int fd, int timeout_ms, void (*cancelled)(void *arg), void *arg)
{
	uint64_t deadline = 0;

	if (timeout_ms < 0)
		deadline = UINT64_MAX;
	else if (timeout_ms > 0)
		deadline = xtal_os_now() + (uint64_t)timeout_ms * 1000000;
	return xtal_os_wait_readable_or(fd, deadline, cancelled, arg);
}

void xtal_event_let_block(int fd)
{
	xtal_os_event_let_block(fd);
}

bool xtal_event_blocks(int fd)
{
	return xtal_os_event_blocks(fd);
}

void xtal_word_sleep(atomic_uint *word, unsigned seen, unsigned timeout_ms)
{
	xtal_os_futex_wait(word, seen, xtal_os_now() + (uint64_t)timeout_ms * 1000000);
}

void xtal_word_wake(atomic_uint *word)
{
	xtal_os_futex_wake(word, INT_MAX);
}

uint64_t xtal_clock(void)
{
	return xtal_os_now();
}
