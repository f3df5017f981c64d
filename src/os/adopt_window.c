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

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* Linux 5.7; of shared mappings 5.13 */
#endif

/* Under the gate. The program's changes no longer wait. */
static void let_go_on(struct xtal_os_adopter *a)
{
	uint64_t one = 1;

	a->hold = false;
	if (a->skipping)
		syscall(SYS_write, a->kick, &one, sizeof(one));
	a->skipping = false;
}

/* Under the gate. Room for [lo, hi) in the table; kept: pages of it that stay. */
static void watch(struct xtal_os_adopter *a, uint64_t lo, uint64_t hi, unsigned kept)
{
	uint64_t page = xtal_os_page_size();
	unsigned gone = a->watched - kept, fresh = (unsigned)((hi - lo) / page);

	for (unsigned i = 0; i < kept; i++) {
		a->where[i] = a->where[gone + i];
		a->dropped[i] = a->dropped[gone + i];
	}
	for (unsigned i = 0; i < fresh; i++) {
		a->where[kept + i] = lo + i * page;
		a->dropped[kept + i] = 0;
	}
	a->watch_lo = lo - kept * page;
	a->watched = kept + fresh;
}

void xtal_os_window_open(struct xtal_os_adopter *a, int object, uint64_t lo, uint64_t hi,
			 uint64_t base, bool after)
{
	atomic_fetch_add(&a->pair.steps, 1);
	xtal_lock(&a->gate);
	watch(a, lo, hi, after ? a->watched : 0);
	a->object = object;
	a->lo = lo;
	a->hi = hi;
	a->object_base = base;
	a->own_lo = a->own_hi = a->src_lo = a->src_hi = 0;
	a->own_done = a->disturbed = a->hold = a->taken = false;
	a->open = true;
	xtal_unlock(&a->gate);
}

/* Since Linux 6.15 a range that another fd watches a part of is refused as a whole. */
static void unregister(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t page = xtal_os_page_size();

	if (xtal_os_uffd_unregister(a->window, at, len))
		for (uint64_t i = 0; i < len; i += page)
			xtal_os_uffd_unregister(a->window, at + i, page);
	/* The kernel wakes those who wait before it takes the range out: one who comes in between
	 * (a fault under the mapping's own lock) would wait for ever. Seen. */
	xtal_os_uffd_wake(a->window, at, len);
}

/* Bytes that the program has grown what ends at end by; they are watched, too. */
static uint64_t grown(uint64_t end)
{
	struct xtal_os_backing b;

	return xtal_os_backing_find(xtal_os_place(end - 1), &b) || b.shared ? 0 : b.end - end;
}

/* The first n pages of the table; each again when the program has moved it meanwhile. */
static void unwatch(struct xtal_os_adopter *a, unsigned n)
{
	uint64_t page = xtal_os_page_size(), at, len;
	bool moved, last;

	for (unsigned i = 0, k; i < n; i = moved ? i : k) {
		xtal_lock(&a->gate);
		at = a->where[i];
		for (k = i + 1; k < n && a->where[k] == (at ? at + (k - i) * page : 0);)
			k++; /* those that are gone, too, only need to be woken */
		len = (k - i) * page;
		last = k == a->watched || a->where[k] != at + len;
		xtal_unlock(&a->gate);
		if (at)
			unregister(a, at, len + (last ? grown(at + len) : 0));
		/* Those who came before it was moved. */
		xtal_os_uffd_wake(a->window, a->watch_lo + i * page, len);
		xtal_os_window_settle(a);
		moved = false;
		xtal_lock(&a->gate);
		for (unsigned j = i; j < k; j++)
			moved |= a->where[j] && a->where[j] != at + (j - i) * page;
		xtal_unlock(&a->gate);
	}
}

void xtal_os_window_unwatch(struct xtal_os_adopter *a, uint64_t at)
{
	unsigned n = (unsigned)((at - a->watch_lo) / xtal_os_page_size());
	uint64_t hi;

	unwatch(a, n);
	xtal_lock(&a->gate);
	hi = at + (a->watched - n) * xtal_os_page_size();
	watch(a, hi, hi, a->watched - n);
	xtal_unlock(&a->gate);
}

void xtal_os_window_forget(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t page = xtal_os_page_size();

	xtal_lock(&a->gate);
	for (unsigned i = 0; i < a->watched; i++)
		if (a->where[i] - at < len && a->where[i] == a->watch_lo + i * page)
			a->where[i] = 0;
	xtal_unlock(&a->gate);
}

void xtal_os_window_close(struct xtal_os_adopter *a)
{
	xtal_os_window_let_go(a);
	unwatch(a, a->watched);
	xtal_lock(&a->gate);
	a->own_lo = a->own_hi = a->src_lo = a->src_hi = 0;
	a->watched = 0;
	a->open = false;
	xtal_unlock(&a->gate);
}

bool xtal_os_window_begin(struct xtal_os_adopter *a)
{
	bool quiet;

	xtal_lock(&a->gate);
	quiet = !a->disturbed;
	a->hold = quiet;
	xtal_unlock(&a->gate);
	return quiet;
}

void xtal_os_window_let_go(struct xtal_os_adopter *a)
{
	xtal_lock(&a->gate);
	let_go_on(a);
	xtal_unlock(&a->gate);
}

int xtal_os_window_replace(struct xtal_os_adopter *a, const struct xtal_os_exchange *e)
{
	uint64_t from = e->from, to = e->to, len = e->len;
	unsigned long how = MREMAP_MAYMOVE | MREMAP_FIXED | (e->stays ? MREMAP_DONTUNMAP : 0);
	bool quiet;
	long at;

	xtal_lock(&a->gate);
	a->src_lo = from;
	a->src_hi = from + len;
	a->own_lo = to;
	a->own_hi = to + len;
	a->own_done = false;
	let_go_on(a);
	xtal_unlock(&a->gate);
	/* The last look, as late as can be: what the program did is unread, or in the table. */
	while (xtal_os_uffd_changing(e->watcher))
		sched_yield();
	xtal_lock(&a->gate);
	quiet = e->watcher == a->window ? !a->disturbed : a->changes == e->changes;
	xtal_unlock(&a->gate);
	if (!quiet)
		return -EAGAIN;
	at = syscall(SYS_mremap, from, len, len, how, to);
	return at < 0 ? -errno : 0;
}

bool xtal_os_window_hit(struct xtal_os_adopter *a)
{
	bool hit;

	xtal_lock(&a->gate);
	hit = a->own_done;
	xtal_unlock(&a->gate);
	return hit;
}

void xtal_os_window_settle(struct xtal_os_adopter *a)
{
	while (xtal_os_uffd_changing(a->window))
		sched_yield();
	/* What was read last is in the table when the gate is free. */
	xtal_lock(&a->gate);
	xtal_unlock(&a->gate);
}

void xtal_os_window_drop(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	xtal_lock(&a->gate);
	a->src_lo = at;
	a->src_hi = at + len;
	xtal_unlock(&a->gate);
	munmap(xtal_os_place(at), len);
}

uint64_t xtal_os_window_now_at(const struct xtal_os_adopter *a, uint64_t at)
{
	return a->where[(at - a->watch_lo) / xtal_os_page_size()];
}

bool xtal_os_window_still(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t page = xtal_os_page_size();

	for (uint64_t i = 0; i < len; i += page)
		if (xtal_os_window_now_at(a, at + i) != at + i)
			return false;
	return true;
}

bool xtal_os_window_not_yet(int err)
{
	if (err == -ENOMEM) /* for a page table: there is no way back any more */
		xtal_os_sleep_ns(1000000);
	else if (err == -EAGAIN) /* the program has changed something: the reader is at it */
		sched_yield();
	return err == -ENOMEM || err == -EAGAIN;
}
