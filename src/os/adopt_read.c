/* SPDX-License-Identifier: MIT */
/*
 * The reader of adoption: takes what userfaultfd tells of adopted memory. A thread of the program
 * that unmaps, moves or drops some waits until the reader has read of it, and may hold any lock of
 * the program or the C library. So nothing here locks (but the gate), allocates or logs, and no
 * memory is touched but the reader's own stack and static data.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/poll.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"

/* So many runs can be adopted at a time. */
#define MAX_OBJECTS 1024u

static struct xtal_os_run objects[MAX_OBJECTS]; /* hi 0: free */

int xtal_os_adopt_enter(const struct xtal_os_run *run)
{
	for (unsigned i = 0; i < MAX_OBJECTS; i++)
		if (!objects[i].hi) {
			objects[i] = *run;
			return 0;
		}
	return -ENOSPC;
}

void xtal_os_adopt_leave(const struct xtal_os_run *run)
{
	for (unsigned i = 0; i < MAX_OBJECTS; i++)
		if (objects[i].hi && objects[i].fd == run->fd)
			objects[i].hi = 0;
}

void xtal_os_adopt_forget(void)
{
	for (unsigned i = 0; i < MAX_OBJECTS; i++)
		objects[i].hi = 0;
}

bool xtal_os_adopt_any(uint64_t lo, uint64_t hi)
{
	bool any = false;

	if (!atomic_load(&xtal_os_adopter.serving))
		return false;
	xtal_lock(&xtal_os_adopter.gate);
	for (unsigned i = 0; i < MAX_OBJECTS && !any; i++)
		any = objects[i].hi && lo < objects[i].hi && hi > objects[i].lo;
	xtal_unlock(&xtal_os_adopter.gate);
	return any;
}

int xtal_os_adopt_object(const struct xtal_os_backing *b)
{
	for (unsigned i = 0; i < MAX_OBJECTS; i++) {
		const struct xtal_os_run *o = &objects[i];

		if (o->hi && b->shared && o->inode == b->inode && o->dev_major == b->dev_major &&
		    o->dev_minor == b->dev_minor)
			return o->fd;
	}
	return -1;
}

int xtal_os_adopt_punch(int fd, uint64_t offset, uint64_t len)
{
	long n = syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (long)offset, (long)len);

	return n < 0 ? -errno : 0;
}

/* True: the mover's own mremap() causes it. */
static bool own(struct xtal_os_adopter *a, const struct xtal_os_uffd_event *e)
{
	if (e->kind != XTAL_OS_UFFD_UNMAP && e->kind != XTAL_OS_UFFD_REMAP)
		return false;
	if (e->from >= a->src_lo && e->from < a->src_hi)
		return true;
	if (e->kind == XTAL_OS_UFFD_UNMAP && !a->own_done && e->from == a->own_lo &&
	    e->from + e->len == a->own_hi) {
		a->own_done = true;
		return true;
	}
	return false;
}

/* The part of [from, from+len) that lies in [at, at+size): false: none. */
static bool clip(uint64_t *from, uint64_t *len, uint64_t at, uint64_t size)
{
	uint64_t to = *from + *len < at + size ? *from + *len : at + size;

	*from = *from > at ? *from : at;
	*len = to - *from;
	return *from < to;
}

/* Pages of the chunk in the window are dropped: also where they are now. */
static void drop_in_window(struct xtal_os_adopter *a, const struct xtal_os_uffd_event *e)
{
	uint64_t at = e->from, len = e->len;

	if (clip(&at, &len, a->lo, a->hi - a->lo))
		xtal_os_adopt_punch(a->object, a->object_base + (at - a->lo), len);
	at = e->from;
	len = e->len;
	if (a->taken && clip(&at, &len, a->lo, a->hi - a->lo))
		syscall(SYS_madvise, a->scratch + (at - a->lo), len, (long)MADV_DONTNEED);
}

/* The table of what is watched follows what the program does. */
static void follow(struct xtal_os_adopter *a, const struct xtal_os_uffd_event *e)
{
	for (unsigned i = 0; i < a->watched; i++) {
		uint64_t *at = &a->where[i];

		if (!*at || *at - e->from >= e->len)
			continue;
		if (e->kind == XTAL_OS_UFFD_UNMAP)
			*at = 0;
		else if (e->kind == XTAL_OS_UFFD_REMAP)
			*at += e->to - e->from;
		else
			a->dropped[i] = 1;
	}
}

/*
 * The content of adopted memory is dropped: so it is zero when whoever drops it looks again. He
 * waits in a fault if he does so before we are done, also where there was no page before: else what
 * he stores there would be dropped, too. The event may come late: the memory may have been
 * adopted, or given back, since. Where system calls cannot wait in such faults nobody does, and
 * nothing can be dropped.
 */
static void drop(struct xtal_os_adopter *a, const struct xtal_os_uffd_event *e)
{
	uint64_t at = e->from, end = at + e->len, to;
	struct xtal_os_backing b;
	int fd;

	if (a->open) {
		follow(a, e);
		drop_in_window(a, e);
	}
	if (!a->full)
		return;
	for (; at < end; at = to) {
		if (xtal_os_backing_find((void *)(uintptr_t)at, &b))
			return;
		to = b.end < end ? b.end : end;
		fd = xtal_os_adopt_object(&b);
		if (fd >= 0)
			xtal_os_adopt_punch(fd, b.offset + (at - b.start), to - at);
	}
}

/* Under the gate. What the program does to what is in the window. */
static void read_window(struct xtal_os_adopter *a)
{
	struct xtal_os_uffd_event e;

	while (xtal_os_uffd_read(a->window, &e) > 0) {
		if (own(a, &e))
			break;
		if (e.kind == XTAL_OS_UFFD_FAULT)
			continue; /* those who wait are woken when the chunk is done */
		if (e.kind == XTAL_OS_UFFD_REMOVE) {
			drop(a, &e);
			continue;
		}
		follow(a, &e);
		a->disturbed = true;
	}
}

/* Somebody waits for a page: that of the object, or a new one. */
static void carry_on(struct xtal_os_adopter *a, uint64_t at)
{
	uint64_t page = xtal_os_page_size();
	int err;

	at &= ~(page - 1);
	err = xtal_os_uffd_carry_on(a->keeper, at, page);
	if (err == -EFAULT)
		err = xtal_os_uffd_zero(a->keeper, at, page);
	if (err) /* somebody else did it, or the mapping has changed: look again */
		xtal_os_uffd_wake(a->keeper, at, page);
}

/* Under the gate. */
static void read_keeper(struct xtal_os_adopter *a)
{
	struct xtal_os_uffd_event e;
	bool tell = a->hooks.before();

	while (xtal_os_uffd_read(a->keeper, &e) > 0) {
		if (e.kind == XTAL_OS_UFFD_FAULT) {
			carry_on(a, e.from);
			continue;
		}
		if (own(a, &e)) /* the mover goes on: if there is more, that is seen next time */
			break;
		tell = true;
		if (e.kind == XTAL_OS_UFFD_REMOVE)
			drop(a, &e);
		else
			a->changes++;
		a->hooks.changed(&e);
	}
	if (tell)
		a->hooks.after();
}

#define LOOK_NS 50000u /* how long it looks for the next event before it sleeps */

/* Whoever moves, unmaps or drops what is watched waits until it was read of: the next event of an
 * adoption under way is read sooner than a sleeper wakes. Raw system calls only. */
static bool await_events(const struct xtal_os_adopter *a, struct pollfd *fds, uint64_t *looked)
{
	static const struct timespec at_once;
	int n;

	if (atomic_load_explicit(&a->pair.on, memory_order_relaxed))
		*looked = 0;

	n = xtal_os_poll(fds, 3, *looked ? &at_once : NULL);
	if (n > 0) {
		*looked = xtal_os_now();
		return true;
	}
	if (n == 0 && xtal_os_now() - *looked < LOOK_NS)
		syscall(SYS_sched_yield);
	else
		*looked = 0;
	return false;
}

void xtal_os_adopt_read(void *arg)
{
	struct xtal_os_adopter *a = arg;
	uint64_t looked = 0;
	struct pollfd fds[3] = { { .fd = a->keeper, .events = POLLIN },
				 { .fd = a->kick, .events = POLLIN },
				 { .fd = a->window, .events = POLLIN } };
	uint64_t count;

	a->reader = syscall(SYS_gettid);
	atomic_store(&a->serving, 1);
	xtal_os_futex_wake(&a->serving, 1);
	for (;;) {
		if (!await_events(a, fds, &looked))
			continue;
		if (fds[1].revents)
			syscall(SYS_read, a->kick, &count, sizeof(count));
		xtal_lock(&a->gate);
		if (!a->hold && (fds[2].revents || fds[1].revents))
			read_window(a);
		/* While it holds, nothing of the window is read: the mover kicks when it is over. */
		fds[2].fd = a->hold ? -1 : a->window;
		a->skipping = a->hold;
		if (fds[0].revents)
			read_keeper(a);
		xtal_unlock(&a->gate);
	}
}
