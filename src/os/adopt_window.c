/* SPDX-License-Identifier: MIT */
/*
 * Windows: while one is open, a range of pages is on its way into an object or out of it, and what
 * the program does to it is told to the reader (adopt_read.c). Of the mover's thread alone.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/proc.h"
#include "os/vm.h"

/* Under the gate. The program's changes no longer wait. */
static void let_go_on(struct xtal_os_adopter *a)
{
	uint64_t one = 1;

	a->hold = false;
	if (a->skipping)
		syscall(SYS_write, a->kick, &one, sizeof(one));
	a->skipping = false;
}

/* A window opens for the run. src: where the mover's own mappings come from. */
void xtal_os_window_open(struct xtal_os_adopter *a, int object, uint64_t lo, uint64_t hi,
			 uint64_t base)
{
	xtal_lock(&a->gate);
	a->object = object;
	a->lo = lo;
	a->hi = hi;
	a->object_base = base;
	a->own_lo = a->own_hi = a->src_lo = a->src_hi = 0;
	a->own_done = a->disturbed = a->hold = false;
	a->moved_len = a->chunk_len = 0;
	a->open = true;
	xtal_unlock(&a->gate);
}

void xtal_os_window_close(struct xtal_os_adopter *a)
{
	xtal_lock(&a->gate);
	a->own_lo = a->own_hi = a->src_lo = a->src_hi = 0;
	let_go_on(a);
	a->open = false;
	xtal_unlock(&a->gate);
}

/* From here on the program's changes wait. False: one has come since the window opened. */
bool xtal_os_window_begin(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	bool quiet;

	xtal_lock(&a->gate);
	quiet = !a->disturbed;
	a->hold = quiet;
	a->chunk_at = at;
	a->chunk_len = len;
	xtal_unlock(&a->gate);
	return quiet;
}

void xtal_os_window_let_go(struct xtal_os_adopter *a)
{
	xtal_lock(&a->gate);
	let_go_on(a);
	xtal_unlock(&a->gate);
}

/* Since Linux 6.15 a range that another fd watches a part of is refused as a whole. */
static void unwatch_range(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t page = xtal_os_page_size(), end = at + len, n;

	for (; at < end; at += n) {
		n = end - at < XTAL_OS_ADOPT_CHUNK ? end - at : XTAL_OS_ADOPT_CHUNK;
		if (!xtal_os_uffd_unregister(a->window, at, n))
			continue;
		for (uint64_t i = 0; i < n; i += page)
			xtal_os_uffd_unregister(a->window, at + i, page);
	}
	/* The kernel wakes those who wait before it takes the range out: one who comes in between
	 * (a fault under the mapping's own lock) would wait for ever. Seen. */
	xtal_os_uffd_wake(a->window, end - len, len);
}

/* The run is no longer watched by the window's fd, wherever it is now. */
void xtal_os_window_unwatch(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t moved_to, moved_len;

	xtal_lock(&a->gate);
	moved_to = a->moved_to;
	moved_len = a->moved_len;
	xtal_unlock(&a->gate);
	unwatch_range(a, at, len);
	if (moved_len)
		unwatch_range(a, moved_to, moved_len);
}

/* Moves a mapping of len bytes at from over the one at to. The reader must not hold. */
int xtal_os_window_replace(struct xtal_os_adopter *a, uint64_t from, uint64_t to, uint64_t len)
{
	long at;

	xtal_lock(&a->gate);
	a->src_lo = from;
	a->src_hi = from + len;
	a->own_lo = to;
	a->own_hi = to + len;
	a->own_done = false;
	let_go_on(a);
	xtal_unlock(&a->gate);
	at = syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	return at < 0 ? -errno : 0;
}

/* Unmaps what the mover has mapped, and some fd of ours watches. */
void xtal_os_window_drop(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	xtal_lock(&a->gate);
	a->src_lo = at;
	a->src_hi = at + len;
	xtal_unlock(&a->gate);
	munmap(xtal_os_place(at), len);
}

/* Where the program has moved the page to meanwhile. */
uint64_t xtal_os_window_now_at(const struct xtal_os_adopter *a, uint64_t at)
{
	return at - a->moved_from < a->moved_len ? at - a->moved_from + a->moved_to : at;
}

/* True: not yet, try again. Waits a moment. */
bool xtal_os_window_not_yet(int err)
{
	if (err == -ENOMEM) /* for a page table: there is no way back any more */
		xtal_os_sleep_ns(1000000);
	else if (err == -EAGAIN) /* the program has changed something: the reader is at it */
		sched_yield();
	return err == -ENOMEM || err == -EAGAIN;
}
