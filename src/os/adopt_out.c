/* SPDX-License-Identifier: MIT */
/*
 * Adoption, the way back: an empty mapping that traps is moved over the place, and filled with what
 * the object holds. The same rules as there (adopt_in.c) while a window is open.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/vm.h"

bool xtal_os_run_maps(const struct xtal_os_backing *b, const struct xtal_os_run *run)
{
	return b->shared && b->inode == run->inode && b->dev_major == run->dev_major &&
	       b->dev_minor == run->dev_minor;
}

/* Empty mappings are made for so many bytes at a time. */
#define AHEAD (4 * XTAL_OS_ADOPT_CHUNK)

/* A run on its way out. */
struct way_out {
	const struct xtal_os_run *run;
	uint64_t empty, empty_end; /* what is to be moved over the next places; watched */
	int prot;                  /* of that */
	uint64_t data, data_end; /* a stretch of the object that had pages when it was looked at */
	uint64_t changes;        /* when the chunk was looked at */
};

/* Under the gate: the reader may drop pages before, or the program after. */
static int fill_part(struct xtal_os_chunk *c, uint64_t at, uint64_t len, uint64_t *moved)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t to = xtal_os_window_now_at(a, c->at + at);
	long n;

	*moved = 0;
	if (!to)
		return -ENOENT;
	n = syscall(SYS_pread64, c->fd, a->spare + at, len, (long)(c->offset + at));
	if (n != (long)len)
		return n < 0 ? -errno : -EIO;
	if (c->prot == (PROT_READ | PROT_WRITE)) {
		int err = xtal_os_uffd_move(a->window, to, a->spare + at, len, moved);

		if (err != -EINVAL || *moved)
			return err;
	}
	/* Pages are moved between writable mappings only; and it may be one no more. */
	return xtal_os_uffd_copy(a->window, to, xtal_os_place(a->spare + at), len, moved);
}

/* Fills one stretch of the chunk with what the object holds. */
static int fill(struct xtal_os_chunk *c, uint64_t at, uint64_t bytes)
{
	uint64_t end = at + bytes, page = xtal_os_page_size(), moved;
	bool single = c->prot != (PROT_READ | PROT_WRITE);

	while (at < end) {
		uint64_t n;
		int err;

		xtal_lock(&c->a->gate);
		single |= !xtal_os_window_still(c->a, c->at + at, end - at);
		n = single ? page : end - at;
		err = fill_part(c, at, n, &moved);
		xtal_unlock(&c->a->gate);
		at += moved;
		if (!err || xtal_os_window_not_yet(err))
			continue;
		if (err != -ENOENT && err != -EEXIST && err != -EINVAL)
			return err;
		/* The program has changed a part: page by page. That page is gone, or filled. */
		if (single)
			at += page;
		single = true;
	}
	return 0;
}

/* The stretch of pages that the object has at offset or behind it. Before a window opens: the kernel
 * looks at each page of it. */
static void look_ahead(struct way_out *w, uint64_t offset)
{
	long begin, end;

	if (offset < w->data_end)
		return;
	begin = syscall(SYS_lseek, w->run->fd, offset, SEEK_DATA);
	end = begin < 0 ? -1 : syscall(SYS_lseek, w->run->fd, begin, SEEK_HOLE);
	if (end < 0)
		return;
	w->data = (uint64_t)begin;
	w->data_end = (uint64_t)end;
}

/* Fills what the object has pages of. Where it had some before the window opened it may have none by
 * now, which reads as zeros, too. */
static int fill_all(const struct way_out *w, struct xtal_os_chunk *c)
{
	uint64_t at = c->offset, end = c->offset + c->len, page = xtal_os_page_size(), stop;
	int err = 0;

	for (; at < end && !err; at = stop) {
		if (at < w->data || at >= w->data_end) {
			long begin = syscall(SYS_lseek, c->fd, at, SEEK_DATA);

			if (begin < 0 || (uint64_t)begin >= end)
				return begin < 0 && errno != ENXIO ? -errno : 0;
			at = (uint64_t)begin;
		}
		stop = at < w->data || at >= w->data_end ? at + page : w->data_end;
		stop = stop < end ? stop : end;
		err = fill(c, at - c->offset, stop - at);
	}
	return err;
}

/* The place is still the object's, as it was when it was first looked at. */
static bool still_there(const struct xtal_os_chunk *c)
{
	struct xtal_os_backing now;

	return !xtal_os_backing_find(xtal_os_place(c->at), &now) &&
	       xtal_os_run_maps(&now, c->run) && now.end >= c->at + c->len &&
	       now.offset + (c->at - now.start) == c->offset &&
	       xtal_os_backing_prot(&now) == c->prot;
}

static void drop_empty(struct way_out *w)
{
	if (w->empty < w->empty_end)
		xtal_os_window_drop(&xtal_os_adopter, w->empty, w->empty_end - w->empty);
	w->empty = w->empty_end = 0;
}

static int make_empty(struct way_out *w, uint64_t len, int prot)
{
	/* Without access at first: so that it does not become one with some memory beside it, whose
	 * pages would make it another kind of mapping than the chunk before. */
	void *map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (map == MAP_FAILED)
		return -errno;
	w->empty = (uintptr_t)map;
	w->empty_end = w->empty + len;
	w->prot = prot;
	err = xtal_os_uffd_register(xtal_os_adopter.window, w->empty, len, XTAL_OS_TRAP_MISSING);
	if (!err && mprotect(map, len, prot))
		err = -errno;
	if (err)
		drop_empty(w);
	return err;
}

/* There is an empty mapping for the chunk; for several, if the limits allow. */
static int need_empty(struct way_out *w, const struct xtal_os_chunk *c, uint64_t ahead)
{
	int err = -ENOMEM;

	if (w->empty_end - w->empty >= c->len && w->prot == c->prot)
		return 0;
	drop_empty(w);
	if (ahead > AHEAD)
		ahead = AHEAD;
	if (ahead > c->len)
		err = make_empty(w, ahead, c->prot);
	return err == -ENOMEM ? make_empty(w, c->len, c->prot) : err;
}

/* All pages that can be needed, before it is too late to do without. Copied, for that is faster than
 * to be given pages of zeros. */
static int make_spare(struct xtal_os_adopter *a, uint64_t len)
{
	static uint8_t blank[XTAL_OS_ADOPT_CHUNK];
	uint64_t at = 0, copied;
	int err = 0;

	while (at < len) {
		err = xtal_os_uffd_copy(a->store, a->spare + at, blank + at, len - at, &copied);
		at += copied;
		if (err == -EEXIST)
			at += xtal_os_page_size(); /* not needed the last time */
		else if (err && err != -EAGAIN)
			return err;
	}
	return 0;
}

/* One chunk out of the object; it stays watched. On failure before it is empty it is as it was. */
static int undo_chunk(struct way_out *w, struct xtal_os_chunk *c, uint64_t ahead, bool after)
{
	struct xtal_os_adopter *a = c->a;
	int err = need_empty(w, c, ahead);

	if (err) {
		xtal_os_window_close(a);
		return err;
	}
	look_ahead(w, c->offset);
	err = make_spare(a, c->len);
	xtal_os_window_open(a, c->fd, c->at, c->at + c->len, c->offset, after);
	if (!err && !still_there(c))
		err = -ESTALE;
	/* Somebody may have unmapped it, and somebody else got the place. */
	if (!err)
		err = xtal_os_window_replace(a,
					     &(struct xtal_os_exchange){ .from = w->empty,
									 .to = c->at,
									 .len = c->len,
									 .watcher = a->keeper,
									 .changes = w->changes });
	err = err == -EAGAIN ? -ESTALE : err;
	if (err) {
		drop_empty(w);
		xtal_os_window_forget(a, c->at, c->len);
		xtal_os_window_close(a);
		return err;
	}
	w->empty += c->len;
	/* Moved away in the last moment: its content is where it is now. The empty mapping stays: if
	 * somebody else had got the place it is what he expects, if he did not look yet. */
	if (!xtal_os_window_hit(a)) {
		xtal_os_window_close(a);
		return -ESTALE;
	}
	/* It has become one mapping with what is watched in front of it, while both were watched: so
	 * all of the run can become one again. */
	xtal_os_window_unwatch(a, c->at);
	err = fill_all(w, c);
	xtal_os_uffd_wake(a->keeper, c->at, c->len);
	if (!err)
		xtal_os_adopt_punch(c->fd, c->offset, c->len);
	return err;
}

/* The first mapping of the run at or behind at. -ENOENT: none. */
static int next_mapping(const struct xtal_os_run *run, uint64_t at, struct xtal_os_backing *b)
{
	int err;

	while (!(err = xtal_os_backing_next(xtal_os_place(at), b))) {
		if (xtal_os_run_maps(b, run))
			return 0;
		at = b->end;
	}
	return err;
}

static int undo_mapping(const struct xtal_os_run *run, const struct xtal_os_backing *b)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;
	struct way_out w = { .run = run };
	struct xtal_os_backing now;
	uint64_t at = b->start;
	int err = 0;

	for (; at < b->end && !err;) {
		struct xtal_os_chunk c = { .a = a, .at = at, .run = run, .fd = run->fd };

		xtal_lock(&a->gate);
		w.changes = a->changes;
		xtal_unlock(&a->gate);
		if (xtal_os_backing_find(xtal_os_place(at), &now) || !xtal_os_run_maps(&now, run)) {
			err = -ESTALE;
			break;
		}
		c.prot = xtal_os_backing_prot(&now);
		c.offset = now.offset + (at - now.start);
		c.len = now.end - at < XTAL_OS_ADOPT_CHUNK ? now.end - at : XTAL_OS_ADOPT_CHUNK;
		err = undo_chunk(&w, &c, now.end - at, at != b->start);
		if (err == -ENOMEM && xtal_os_reserve_drop(a))
			err = undo_chunk(&w, &c, c.len, false);
		at += c.len;
	}
	drop_empty(&w);
	xtal_os_window_close(a);
	return err;
}

int xtal_os_adopt_undo(const struct xtal_os_run *run)
{
	bool paired = xtal_os_pair(&xtal_os_adopter);
	struct xtal_os_backing b;
	int err;

	/* From the start after each mapping: the program may move some meanwhile. */
	while (!(err = next_mapping(run, 0, &b))) {
		err = undo_mapping(run, &b);
		if (err && err != -ESTALE)
			break;
	}
	if (paired)
		xtal_os_unpair(&xtal_os_adopter);
	xtal_os_reserve_make(&xtal_os_adopter);
	if (err != -ENOENT)
		return err;
	xtal_lock(&xtal_os_adopter.gate);
	xtal_os_adopt_leave(run);
	xtal_unlock(&xtal_os_adopter.gate);
	return 0;
}
