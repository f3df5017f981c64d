/* SPDX-License-Identifier: MIT */
/*
 * The mover of adoption: pages of private memory into an object and back, chunk by chunk. In
 * between other threads wait in page faults, with whatever locks they have: so nothing here locks
 * (but the gate, which the reader never keeps for long), allocates or logs while a window is open.
 *
 * There: the chunk's pages are moved out of the threads' reach (the kernel refuses those that are
 * pinned), copied into the object, and a mapping of that is moved over the place. Back: an empty
 * mapping that traps is moved over the place, and filled with copies of what the object holds. So
 * at any time an address has one page that can be reached, or none, and no store is lost.
 */
#include "os/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Objects are larger than what is in them: mremap() may grow a mapping of one, and what is behind
 * the run must read as zeros then, not raise SIGBUS. */
#define ROOM ((uint64_t)1 << 40)

struct xtal_os_adopter xtal_os_adopter = {
	.store = -1, .window = -1, .keeper = -1, .kick = -1, .pagemap = -1
};

void xtal_os_adopt_lock(void)
{
	xtal_lock(&xtal_os_adopter.gate);
}

void xtal_os_adopt_unlock(void)
{
	xtal_unlock(&xtal_os_adopter.gate);
}

bool xtal_os_adopt_is_full(void)
{
	return xtal_os_adopter.full;
}

void xtal_os_adopt_fds(int fds[XTAL_OS_ADOPT_FDS])
{
	const struct xtal_os_adopter *a = &xtal_os_adopter;

	fds[0] = a->store;
	fds[1] = a->window;
	fds[2] = a->keeper;
	fds[3] = a->kick;
	fds[4] = a->pagemap;
}

void xtal_os_adopt_fork_child(void)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;

	/* The areas stay mapped: they are not ours to look at, and children are rare. */
	*a = (struct xtal_os_adopter){
		.store = -1, .window = -1, .keeper = -1, .kick = -1, .pagemap = -1
	};
}

static void close_all(struct xtal_os_adopter *a)
{
	int fds[XTAL_OS_ADOPT_FDS];

	xtal_os_adopt_fds(fds);
	for (unsigned i = 0; i < XTAL_OS_ADOPT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	a->store = a->window = a->keeper = a->kick = a->pagemap = -1;
	if (a->scratch)
		munmap((void *)(uintptr_t)a->scratch, 2 * XTAL_OS_ADOPT_CHUNK);
	a->scratch = a->spare = 0;
}

static int open_all(struct xtal_os_adopter *a)
{
	bool full = true, keeper_full = true;
	void *areas = NULL;
	int err;

	a->store = xtal_os_uffd_open(XTAL_OS_UFFD_MOVE, &full);
	if (a->store < 0)
		return a->store;
	a->window = xtal_os_uffd_open(XTAL_OS_UFFD_MOVE | XTAL_OS_UFFD_EVENTS, &full);
	if (a->window < 0)
		return a->window;
	a->keeper = xtal_os_uffd_open(XTAL_OS_UFFD_SHMEM | XTAL_OS_UFFD_EVENTS, &keeper_full);
	if (a->keeper < 0)
		return a->keeper;
	a->full = full && keeper_full;
	a->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (a->kick < 0 || a->pagemap < 0)
		return -errno;
	err = xtal_os_map_private(2 * XTAL_OS_ADOPT_CHUNK, &areas);
	if (err)
		return err;
	a->scratch = (uintptr_t)areas;
	a->spare = a->scratch + XTAL_OS_ADOPT_CHUNK;
	/* Huge pages would have to be split to be moved. */
	madvise(areas, 2 * XTAL_OS_ADOPT_CHUNK, MADV_NOHUGEPAGE);
	return xtal_os_uffd_register(a->store, a->scratch, XTAL_OS_ADOPT_CHUNK,
				     XTAL_OS_TRAP_MISSING);
}

int xtal_os_adopt_start(const struct xtal_os_adopt_hooks *hooks, char *why, size_t size)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;
	int err;

	if (atomic_load(&a->serving))
		return 0;
	if (xtal_os_adopt_probe(why, size) == XTAL_OS_ADOPT_NONE)
		return -ENOSYS;
	err = open_all(a);
	if (!err) {
		a->hooks = *hooks;
		err = xtal_os_thread_start("xtal-adopted", xtal_os_adopt_read, a);
	}
	if (err) {
		snprintf(why, size, "starting adoption: %s", strerror(-err));
		close_all(a);
		return err;
	}
	/* A thread that begins takes the lock of malloc: until then nobody may have to wait for it
	 * who holds that. */
	while (!atomic_load(&a->serving))
		xtal_os_futex_wait(&a->serving, 0, UINT64_MAX);
	return err;
}

static uint64_t page_size(void)
{
	return xtal_os_page_size();
}

static void *place(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

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
static void open_window(struct xtal_os_adopter *a, int object, uint64_t lo, uint64_t hi,
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

static void close_window(struct xtal_os_adopter *a)
{
	xtal_lock(&a->gate);
	a->own_lo = a->own_hi = a->src_lo = a->src_hi = 0;
	let_go_on(a);
	a->open = false;
	xtal_unlock(&a->gate);
}

/* From here on the program's changes wait. False: one has come since the window opened. */
static bool begin_chunk(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
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

static void let_changes_go_on(struct xtal_os_adopter *a)
{
	xtal_lock(&a->gate);
	let_go_on(a);
	xtal_unlock(&a->gate);
}

/* Since Linux 6.15 a range that another fd watches a part of is refused as a whole. */
static void unwatch_range(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	uint64_t page = page_size(), end = at + len, n;

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
static void unwatch(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
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
static int replace(struct xtal_os_adopter *a, uint64_t from, uint64_t to, uint64_t len)
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
static void drop_own(struct xtal_os_adopter *a, uint64_t at, uint64_t len)
{
	xtal_lock(&a->gate);
	a->src_lo = at;
	a->src_hi = at + len;
	xtal_unlock(&a->gate);
	munmap(place(at), len);
}

/* Everything in [at, at+len) is one mapping of the kind. */
static bool all_private(uint64_t at, uint64_t len)
{
	uint64_t end = at + len;
	struct xtal_os_backing b;

	for (; at < end; at = b.end)
		if (xtal_os_backing_find(place(at), &b) || b.shared || b.inode || !b.readable ||
		    !b.writable)
			return false;
	return true;
}

static bool maps_run(const struct xtal_os_backing *b, const struct xtal_os_run *run)
{
	return b->shared && b->inode == run->inode && b->dev_major == run->dev_major &&
	       b->dev_minor == run->dev_minor;
}

static bool all_shared(const struct xtal_os_run *run)
{
	struct xtal_os_backing b;
	uint64_t at;

	for (at = run->lo; at < run->hi; at = b.end)
		if (xtal_os_backing_find(place(at), &b) || !maps_run(&b, run) ||
		    b.offset + (at - b.start) != at - run->lo)
			return false;
	return true;
}

/* Where the program has moved the page to meanwhile. */
static uint64_t now_at(const struct xtal_os_adopter *a, uint64_t at)
{
	return at - a->moved_from < a->moved_len ? at - a->moved_from + a->moved_to : at;
}

/* True: not yet, try again. Waits a moment. */
static bool not_yet(int err)
{
	if (err == -ENOMEM) /* for a page table: there is no way back any more */
		xtal_os_sleep_ns(1000000);
	else if (err == -EAGAIN) /* the program has changed something: the reader is at it */
		sched_yield();
	return err == -ENOMEM || err == -EAGAIN;
}

/* Gives [at, at+len) its pages back, which are at from; once the program's own events have been
 * read. Pages whose place is no longer there stay. */
static void give_back(struct xtal_os_adopter *a, uint64_t at, uint64_t from, uint64_t len)
{
	uint64_t moved, page = page_size();
	int err;

	for (uint64_t i = 0; i < len; i += page) {
		do {
			xtal_lock(&a->gate);
			err = xtal_os_uffd_move(a->window, now_at(a, at + i), from + i, page,
						&moved);
			xtal_unlock(&a->gate);
		} while (not_yet(err));
	}
}

/* Forgets the pages in an area of ours. */
static void clean(uint64_t area)
{
	madvise(place(area), XTAL_OS_ADOPT_CHUNK, MADV_DONTNEED);
}

/* Calls each for every stretch of pages that the area has, present or swapped out. 0 or -errno. */
static int each_stretch(struct xtal_os_adopter *a, uint64_t area, uint64_t len,
			int (*each)(void *arg, uint64_t at, uint64_t bytes), void *arg)
{
	uint64_t entry[XTAL_OS_ADOPT_CHUNK >> 12], page = page_size(), n = len / page, begin = 0;
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

/* A chunk on its way. */
struct chunk {
	struct xtal_os_adopter *a;
	uint64_t at, len, offset, stage; /* stage: where the object's part is mapped */
	const struct xtal_os_run *run;
	int fd;
};

static int write_out(void *arg, uint64_t at, uint64_t bytes)
{
	const struct chunk *c = arg;

	for (uint64_t end = at + bytes; at < end;) {
		long n = syscall(SYS_pwrite64, c->fd, c->a->scratch + at, end - at,
				 (long)(c->offset + at));

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* Enters the pages into the page table, so that nobody has to fault for them. Under the gate: the
 * reader may have dropped some meanwhile. */
static int enter_pages(void *arg, uint64_t at, uint64_t bytes)
{
	const struct chunk *c = arg;
	uint64_t page = page_size();

	xtal_lock(&c->a->gate);
	if (xtal_os_uffd_carry_on(c->a->keeper, c->at + at, bytes))
		for (uint64_t i = at; i < at + bytes; i += page)
			xtal_os_uffd_carry_on(c->a->keeper, c->at + i, page);
	xtal_unlock(&c->a->gate);
	return 0;
}

/* The chunk's pages are out of reach. Those that were shared with a forked process at some time
 * first become ours alone; nobody drops some meanwhile, so this cannot fault. */
static int take_pages(struct chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	uint64_t done = 0, moved, own_until = 0;
	int err;

	for (;;) {
		err = xtal_os_uffd_move(a->store, a->scratch + done, c->at + done, c->len - done,
					&moved);
		done += moved;
		if (err == -EAGAIN)
			continue;
		if (err != -EBUSY || done < own_until)
			return err;
		own_until = done + page_size();
		if (syscall(SYS_madvise, c->at + done, page_size(), (long)MADV_POPULATE_WRITE))
			return err;
	}
}

/* One chunk into the object. On failure it is as it was. */
static int adopt_chunk(struct chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	int err;

	if (!begin_chunk(a, c->at, c->len))
		return -EAGAIN;
	err = take_pages(c);
	if (!err)
		err = each_stretch(a, a->scratch, c->len, write_out, c);
	/* The program has not unmapped it: it would be waiting, but the place would be free. */
	if (!err && !all_private(c->at, c->len))
		err = -EAGAIN;
	if (!err)
		err = replace(a, c->stage, c->at, c->len);
	if (err) {
		let_changes_go_on(a);
		give_back(a, c->at, a->scratch, c->len);
	} else if (a->full) {
		each_stretch(a, a->scratch, c->len, enter_pages, c);
	}
	xtal_os_uffd_wake(a->window, c->at, c->len);
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
		*bytes = limit.rlim_cur & ~(page_size() - 1);
	return *bytes < len ? -EFBIG : 0;
}

/* The object, and a mapping of what is to be in it, watched by the keeper. */
static int make_object(struct xtal_os_adopter *a, struct xtal_os_run *run, uint64_t *stage)
{
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

/* Where the chunk that begins at ends: the kernel moves pages of one mapping at a time. */
static uint64_t chunk_end(uint64_t at, uint64_t hi)
{
	uint64_t end = at + XTAL_OS_ADOPT_CHUNK;
	struct xtal_os_backing b;

	if (xtal_os_backing_find(place(at), &b))
		return 0;
	end = end < b.end ? end : b.end;
	return end < hi ? end : hi;
}

static int move_all(struct xtal_os_adopter *a, struct xtal_os_run *run, uint64_t stage,
		    uint64_t *done)
{
	uint64_t at = run->lo, end;
	int err = 0;

	for (; at < run->hi && !err; at = end) {
		struct chunk c = { .a = a,
				   .at = at,
				   .offset = at - run->lo,
				   .stage = stage + (at - run->lo),
				   .fd = run->fd };

		end = chunk_end(at, run->hi);
		if (!end)
			return -EAGAIN;
		c.len = end - at;
		err = adopt_chunk(&c);
		*done += err ? 0 : c.len;
	}
	return err == -EINVAL ? -EAGAIN : err; /* mappings were split meanwhile */
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
	default:
		return strerror(-err);
	}
}

int xtal_os_adopt(uint64_t lo, uint64_t hi, struct xtal_os_run *out, char *why, size_t size)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;
	struct xtal_os_run run = { .lo = lo, .hi = hi };
	uint64_t stage = 0, done = 0;
	int err = make_object(a, &run, &stage);

	if (err)
		goto tell;
	xtal_lock(&a->gate);
	err = xtal_os_adopt_enter(&run);
	xtal_unlock(&a->gate);
	open_window(a, run.fd, lo, hi, 0);
	if (!err)
		err = xtal_os_uffd_register(a->window, lo, hi - lo, XTAL_OS_TRAP_MISSING);
	if (!err) {
		/* What is registered now is what was looked at. */
		err = all_private(lo, hi - lo) ? move_all(a, &run, stage, &done) : -EAGAIN;
		if (err)
			unwatch(a, lo, hi - lo);
	}
	if (!err && !all_shared(&run))
		err = -EAGAIN;
	/* Where the stage has been moved away something of the program's may be by now. */
	if (err && done < hi - lo)
		drop_own(a, stage + done, hi - lo - done);
	close_window(a);
	if (!err) {
		*out = run;
		return 0;
	}
	xtal_os_adopt_undo(&run); /* the chunks that were done */
	close(run.fd);
tell:
	snprintf(why, size, "%s", words(err));
	return err;
}

/* Under the gate: the reader may drop pages before, or the program after. */
static int fill_part(struct chunk *c, uint64_t at, uint64_t len, uint64_t *moved)
{
	struct xtal_os_adopter *a = c->a;
	long n = syscall(SYS_pread64, c->fd, a->spare + at, len, (long)(c->offset + at));

	*moved = 0;
	if (n != (long)len)
		return n < 0 ? -errno : -EIO;
	return xtal_os_uffd_move(a->window, now_at(a, c->at + at), a->spare + at, len, moved);
}

/* Fills one stretch of the chunk with what the object holds. */
static int fill(struct chunk *c, uint64_t at, uint64_t bytes)
{
	uint64_t end = at + bytes, page = page_size(), moved;
	bool single = false;

	while (at < end) {
		uint64_t n;
		int err;

		xtal_lock(&c->a->gate);
		single |= c->a->moved_len != 0;
		n = single ? page : end - at;
		err = fill_part(c, at, n, &moved);
		xtal_unlock(&c->a->gate);
		at += moved;
		if (!err || not_yet(err))
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

/* The stretches of the chunk in which the object has pages. */
static int fill_all(struct chunk *c)
{
	uint64_t at = c->offset, end = c->offset + c->len;
	int err = 0;

	while (at < end && !err) {
		long begin = syscall(SYS_lseek, c->fd, at, SEEK_DATA), stop;

		if (begin < 0 || (uint64_t)begin >= end)
			return begin < 0 && errno != ENXIO ? -errno : 0;
		stop = syscall(SYS_lseek, c->fd, begin, SEEK_HOLE);
		if (stop < 0)
			return -errno;
		if ((uint64_t)stop > end)
			stop = (long)end;
		err = fill(c, (uint64_t)begin - c->offset, (uint64_t)(stop - begin));
		at = (uint64_t)stop;
	}
	return err;
}

/* One chunk out of the object. On failure before it is empty it is as it was. */
static int undo_chunk(struct chunk *c)
{
	struct xtal_os_adopter *a = c->a;
	struct xtal_os_backing now;
	int err;
	void *empty =
		mmap(NULL, c->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (empty == MAP_FAILED)
		return -errno;
	/* All pages that can be needed, before it is too late to do without. */
	err = madvise(place(a->spare), c->len, MADV_POPULATE_WRITE) ? -errno : 0;
	open_window(a, c->fd, c->at, c->at + c->len, c->offset);
	if (!err)
		err = xtal_os_uffd_register(a->window, (uintptr_t)empty, c->len,
					    XTAL_OS_TRAP_MISSING);
	/* The program may have changed it since. */
	if (!err && (xtal_os_backing_find(place(c->at), &now) || !maps_run(&now, c->run) ||
		     now.end < c->at + c->len || now.offset + (c->at - now.start) != c->offset))
		err = -ESTALE;
	if (!err)
		err = replace(a, (uintptr_t)empty, c->at, c->len);
	if (err) {
		drop_own(a, (uintptr_t)empty, c->len);
		close_window(a);
		return err;
	}
	err = fill_all(c);
	unwatch(a, c->at, c->len);
	xtal_os_uffd_wake(a->keeper, c->at, c->len);
	close_window(a);
	if (!err)
		xtal_os_adopt_punch(c->fd, c->offset, c->len);
	return err;
}

/* The first mapping of the run at or behind at. -ENOENT: none. */
static int next_mapping(const struct xtal_os_run *run, uint64_t at, struct xtal_os_backing *b)
{
	int err;

	while (!(err = xtal_os_backing_next(place(at), b))) {
		if (maps_run(b, run))
			return 0;
		at = b->end;
	}
	return err;
}

static int undo_mapping(const struct xtal_os_run *run, const struct xtal_os_backing *b)
{
	struct xtal_os_backing now;
	int err = 0;

	for (uint64_t at = b->start; at < b->end && !err;) {
		struct chunk c = { .a = &xtal_os_adopter, .at = at, .run = run, .fd = run->fd };

		if (xtal_os_backing_find(place(at), &now) || !maps_run(&now, run))
			return -ESTALE;
		c.offset = now.offset + (at - now.start);
		c.len = now.end - at < XTAL_OS_ADOPT_CHUNK ? now.end - at : XTAL_OS_ADOPT_CHUNK;
		err = undo_chunk(&c);
		at += c.len;
	}
	return err;
}

int xtal_os_adopt_undo(const struct xtal_os_run *run)
{
	struct xtal_os_backing b;
	int err;

	/* From the start after each mapping: the program may move some meanwhile. */
	while (!(err = next_mapping(run, 0, &b))) {
		err = undo_mapping(run, &b);
		if (err && err != -ESTALE)
			return err;
	}
	if (err != -ENOENT)
		return err;
	xtal_lock(&xtal_os_adopter.gate);
	xtal_os_adopt_leave(run);
	xtal_unlock(&xtal_os_adopter.gate);
	return 0;
}
