/* SPDX-License-Identifier: MIT */
/*
 * Adoption, the way there: the chunk's pages are moved out of the threads' reach (the kernel refuses
 * those that are pinned), copied into the object, and a mapping of that is moved over the place. So
 * at any time an address has one page that can be reached, or none, and no store is lost.
 *
 * Other threads wait in page faults meanwhile, with whatever locks they have: so nothing here locks
 * (but the gate, which the reader never keeps for long), allocates or logs while a window is open.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/cancel.h"
#include "os/vm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Objects are larger than what is in them: mremap() may grow a mapping of one, and what is behind
 * the run must read as zeros then, not raise SIGBUS. */
#define ROOM ((uint64_t)1 << 40)

/* Everything in [at, at+len) is one mapping of the kind. */
static bool all_private(uint64_t at, uint64_t len)
{
	uint64_t end = at + len;
	struct xtal_os_backing b;

	for (; at < end; at = b.end)
		if (xtal_os_backing_find(xtal_os_place(at), &b) || b.shared || b.inode ||
		    !b.readable || !b.writable)
			return false;
	return true;
}
static bool all_shared(const struct xtal_os_run *run)
{
	struct xtal_os_backing b;
	uint64_t at;

	for (at = run->lo; at < run->hi; at = b.end)
		if (xtal_os_backing_find(xtal_os_place(at), &b) || !xtal_os_run_maps(&b, run) ||
		    b.offset + (at - b.start) != at - run->lo)
			return false;
	return true;
}
/* Forgets the pages in an area of ours. */
static void clean(uint64_t area)
{
	madvise(xtal_os_place(area), XTAL_OS_ADOPT_CHUNK, MADV_DONTNEED);
}

/* Calls each for every stretch of pages that the area has, present or swapped out. 0 or -errno. */
static int each_stretch(struct xtal_os_adopter *a, uint64_t area, uint64_t len,
			int (*each)(void *arg, uint64_t at, uint64_t bytes), void *arg)
{
	uint64_t entry[XTAL_OS_ADOPT_CHUNK >> 12], page = xtal_os_page_size(), n = len / page,
						   begin = 0;
	long got = syscall(SYS_pread64, a->pagemap, entry, n * sizeof(*entry),
			   (long)(area / page * sizeof(*entry)));
	int err = 0;

	if (got != (long)(n * sizeof(*entry)))
		return got < 0 ? -errno : -EIO;
	for (uint64_t i = 0; i <= n && !err; i++) {
		bool there = i < n && entry[i] >> 62; /* bits 62, 63: swapped, present */

		if (there)
			continue;
		if (i > begin)
			err = each(arg, begin * page, (i - begin) * page);
		begin = i + 1;
	}
	return err;
}

struct back {
	struct xtal_os_adopter *a;
	uint64_t from, to;
};

static int copy_back(void *arg, uint64_t at, uint64_t bytes)
{
	const struct back *b = arg;
	uint64_t copied;

	return xtal_os_uffd_copy(b->a->window, b->to + at, xtal_os_place(b->from + at), bytes,
				 &copied);
}

/* Gives the chunk its pages back, wherever the program has moved them; once its own events have been
 * read. Pages whose place is no longer there stay. */
static void give_back(const struct xtal_os_chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t moved, page = xtal_os_page_size();
	int err;

	for (uint64_t i = 0; i < c->len; i += page) {
		struct back b = { .a = a, .from = a->scratch + i };

		do {
			xtal_lock(&a->gate);
			b.to = xtal_os_window_now_at(a, c->at + i);
			err = b.to ? xtal_os_uffd_move(a->window, b.to, b.from, page, &moved) : 0;
			/* Not writable any more: pages are moved between writable mappings only. */
			if (err == -EINVAL)
				err = each_stretch(a, b.from, page, copy_back, &b);
			xtal_unlock(&a->gate);
		} while (xtal_os_window_not_yet(err));
	}
}

/*
 * Into the object, and into the stage's page table, which moves with it: nobody has to fault for
 * these pages. But not while the program changes memory that the keeper watches: the same call may
 * change what is in the window, too, and waits until that is read of, which is when we are done.
 */
static int copy_out(void *arg, uint64_t at, uint64_t bytes)
{
	const struct xtal_os_chunk *c = arg;
	uint64_t end = at + bytes, copied;
	int err = xtal_os_uffd_copy(c->a->keeper, c->stage + at, xtal_os_place(c->a->scratch + at),
				    bytes, &copied);

	if (err != -EAGAIN)
		return err;
	for (at += copied; at < end;) {
		long n = syscall(SYS_pwrite64, c->fd, c->a->scratch + at, end - at,
				 (long)(c->offset + at));

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* The chunk's pages are out of reach, *done bytes of them on failure. Those that were shared with a
 * forked process at some time first become ours alone; nobody drops some meanwhile, so this cannot
 * fault. */
static int take_pages(struct xtal_os_chunk *c, uint64_t *done)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t moved, own_until = 0;
	int err;

	for (*done = 0;;) {
		err = (c->holes ? xtal_os_uffd_move : xtal_os_uffd_move_all)(
			a->store, a->scratch + *done, c->at + *done, c->len - *done, &moved);
		*done += moved;
		if (err == -ENOENT && !c->holes) {
			c->holes = true;
			continue;
		}
		if (err == -EAGAIN)
			continue;
		if (err != -EBUSY || *done < own_until)
			return err;
		own_until = *done + xtal_os_page_size();
		if (syscall(SYS_madvise, c->at + *done, xtal_os_page_size(),
			    (long)MADV_POPULATE_WRITE))
			return err;
	}
}

/*
 * What the program began to drop before we took it is dropped: whoever does it goes on as soon as it
 * was read of, and may come to it only when the memory is adopted already, and hit nothing. Pages
 * from done on have not been taken yet.
 */
static void drop_taken(struct xtal_os_chunk *c, uint64_t done)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t page = xtal_os_page_size(), moved;

	xtal_lock(&a->gate);
	a->taken = true; /* from here on the reader does it; not while we read them */
	for (uint64_t i = 0; i < c->len; i += page) {
		if (!a->dropped[i / page])
			continue;
		if (i >= done)
			xtal_os_uffd_move(a->store, a->scratch + i, c->at + i, page, &moved);
		syscall(SYS_madvise, a->scratch + i, page, (long)MADV_DONTNEED);
		xtal_os_adopt_punch(c->fd, c->offset + i, page);
	}
	xtal_unlock(&a->gate);
}

/* Moves the chunk, which is watched. c->staged: the stage's part is at the place. */
static int move_chunk(struct xtal_os_chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t done;
	bool still;
	int err;

	/* What is registered now is what was looked at. */
	if (!all_private(c->at, c->len) || !xtal_os_window_begin(a))
		return -EAGAIN;
	err = take_pages(c, &done);
	if (!err)
		err = c->holes ? each_stretch(a, a->scratch, c->len, copy_out, c)
			       : copy_out(c, 0, c->len);
	drop_taken(c, done);
	/* Not where somebody has unmapped it, even if somebody else has got the place since. */
	if (!err && !all_private(c->at, c->len))
		err = -EAGAIN;
	if (!err)
		err = xtal_os_window_replace(a, &(struct xtal_os_exchange){ .from = c->stage,
									    .to = c->at,
									    .len = c->len,
									    .watcher = a->window,
									    .stays = c->stays });
	c->staged = !err;
	xtal_os_window_let_go(a);
	xtal_os_window_settle(a);
	xtal_lock(&a->gate);
	still = xtal_os_window_still(a, c->at, c->len);
	xtal_unlock(&a->gate);
	if (!err && (!still || !xtal_os_window_hit(a)))
		err = -EAGAIN;
	if (err)
		give_back(c);
	return err;
}

/* One chunk into the object. On failure it is as it was, or staged and the run must be undone. */
static int adopt_chunk(struct xtal_os_chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	int err;

	/* Whatever were there would be taken for the chunk's when that is given back. */
	clean(a->scratch);
	xtal_os_window_open(a, c->fd, c->at, c->at + c->len, c->offset, false);
	err = xtal_os_uffd_register(a->window, c->at, c->len, XTAL_OS_TRAP_MISSING);
	if (!err)
		err = move_chunk(c);
	if (c->staged)
		xtal_os_window_forget(a, c->at, c->len);
	xtal_os_window_close(a);
	clean(a->scratch);
	return err;
}

/* The room that an object of so many bytes gets. */
static int object_bytes(uint64_t len, uint64_t *bytes)
{
	struct rlimit limit;

	*bytes = len > ROOM ? len : ROOM;
	if (getrlimit(RLIMIT_FSIZE, &limit))
		return -errno;
	if (*bytes > limit.rlim_cur)
		*bytes = limit.rlim_cur & ~(xtal_os_page_size() - 1);
	return *bytes < len ? -EFBIG : 0;
}

/* The object, and a mapping of what is to be in it, watched by the keeper. */
static int make_object(struct xtal_os_adopter *a, struct xtal_os_run *run, uint64_t *stage)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	uint64_t len = run->hi - run->lo, bytes;
	struct xtal_os_backing b;
	void *map = NULL;
	int err = object_bytes(len, &bytes);

	if (err)
		return err;
	err = xtal_os_object_create("xtal-adopted", bytes, false, &run->fd, NULL);
	if (err)
		return err;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, run->fd, 0);
	err = map == MAP_FAILED ? -errno : 0;
	if (err)
		goto close_object;
	err = xtal_os_backing_find(map, &b);
	if (!err)
		err = xtal_os_uffd_register(a->keeper, (uintptr_t)map, len,
					    a->full ? XTAL_OS_TRAP_MINOR | XTAL_OS_TRAP_MISSING
						    : XTAL_OS_TRAP_WRITE);
	if (err)
		goto unmap;
	run->inode = b.inode;
	run->dev_major = b.dev_major;
	run->dev_minor = b.dev_minor;
	*stage = (uintptr_t)map;
	return 0;
unmap:
	munmap(map, len);
close_object:
	close(run->fd);
	return err;
}

/* Where the chunk that begins at ends: the kernel moves pages of one mapping at a time. *mapped: the
 * end of the mapping when it was looked at, which is enough: what is taken is looked at again. */
static uint64_t chunk_end(uint64_t at, uint64_t hi, uint64_t *mapped)
{
	uint64_t end = at + XTAL_OS_ADOPT_CHUNK;
	struct xtal_os_backing b;

	if (at >= *mapped) {
		if (xtal_os_backing_find(xtal_os_place(at), &b))
			return 0;
		*mapped = b.end;
	}
	end = end < *mapped ? end : *mapped;
	return end < hi ? end : hi;
}

/* A mapping that leaves another one behind may exceed a limit of the address space, which the kernel
 * finds out after it has unmapped the place. */
static bool address_space_is_free(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur == RLIM_INFINITY;
}

static int move_all(struct xtal_os_adopter *a, struct xtal_os_run *run, uint64_t stage)
{
	uint64_t at = run->lo, end, dropped = 0, mapped = 0;
	bool stays = true;
	int err = 0;

	for (; at < run->hi && !err; at = end) {
		struct xtal_os_chunk c = { .a = a,
					   .at = at,
					   .offset = at - run->lo,
					   .stage = stage + (at - run->lo),
					   .fd = run->fd };

		if (stays && !address_space_is_free()) {
			stays = false;
			dropped = at - run->lo;
			if (dropped)
				xtal_os_window_drop(a, stage, dropped);
		}
		end = chunk_end(at, run->hi, &mapped);
		if (!end) {
			err = -EAGAIN;
			break;
		}
		c.len = end - at;
		c.stays = stays;
		err = adopt_chunk(&c);
		if (c.staged && !stays)
			dropped += c.len;
	}
	/* Where the stage has been moved away something of the program's may be by now. */
	if (dropped < run->hi - run->lo)
		xtal_os_window_drop(a, stage + dropped, run->hi - run->lo - dropped);
	/* Mappings were split meanwhile; or, seen once beside a thread that drops pages, the kernel found a
	 * page where none was. Everything has been given back. */
	return err == -EINVAL || err == -EEXIST ? -EAGAIN : err;
}

static const char *words(int err)
{
	switch (err) {
	case -EBUSY:
		return "pages are pinned (direct I/O or io_uring)";
	case -EAGAIN:
		return "the program changed the mapping meanwhile";
	case -EFBIG:
		return "RLIMIT_FSIZE leaves no room for an object";
	case -ENOMEM:
		return "the kernel has no memory or address space for it: see RLIMIT_AS, "
		       "vm.max_map_count and the memory cgroup";
	case -EFAULT:
		return "some of its pages are guard pages (MADV_GUARD_INSTALL) or poisoned";
	case -ENOSPC:
		return "too many ranges are adopted";
	default:
		return strerror(-err);
	}
}

int xtal_os_adopt(uint64_t lo, uint64_t hi, struct xtal_os_run *out, char *why, size_t size)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct xtal_os_adopter *a = &xtal_os_adopter;
	struct xtal_os_run run = { .lo = lo, .hi = hi };
	uint64_t stage = 0;
	int err = make_object(a, &run, &stage);
	bool paired;

	if (err)
		goto tell;
	paired = xtal_os_pair(a);
	xtal_lock(&a->gate);
	err = xtal_os_adopt_enter(&run);
	xtal_unlock(&a->gate);
	if (!err)
		err = move_all(a, &run, stage);
	else
		xtal_os_window_drop(a, stage, hi - lo);
	if (paired)
		xtal_os_unpair(a);
	if (!err && !all_shared(&run))
		err = -EAGAIN;
	if (!err) {
		*out = run;
		return 0;
	}
	/* The chunks that were done. */
	if (xtal_os_adopt_undo(&run)) {
		*out = run;
		snprintf(why, size, "%s; and a part cannot be made private again", words(err));
		return -ENOTRECOVERABLE;
	}
	close(run.fd);
tell:
	snprintf(why, size, "%s", words(err));
	return err;
}
