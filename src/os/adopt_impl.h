/* SPDX-License-Identifier: MIT */
/* What the mover (adopt.c) and the reader (adopt_read.c) share. */
#ifndef XTAL_OS_ADOPT_IMPL_H
#define XTAL_OS_ADOPT_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "os/adopt.h"

#define XTAL_OS_ADOPT_CHUNK ((uint64_t)64 << 10)

/*
 * Three userfaultfds: what is being moved is registered with the window's, what is adopted with
 * the keeper's. Both tell events, also those that the mover itself causes: each of its mremap()
 * returns only when the reader has read them. The store's tells none; the scratch area, where
 * pages are while they are in nobody's reach, is registered with it.
 */
struct xtal_os_adopter {
	int store, window, keeper, kick, pagemap;
	bool full;               /* the level */
	uint64_t scratch, spare; /* CHUNK bytes each; spare: pages to give away */
	struct xtal_os_adopt_hooks hooks;
	atomic_uint serving; /* the reader is in its loop; futex word */

	/* The reader reads, and acts on what it read, under this; so does the mover what must
	 * not come in between. */
	struct xtal_lock gate;
	/* All below: written by the mover under the gate, but for the last four. */
	bool open;     /* a window is */
	bool hold;     /* its events stay unread: whoever caused them waits */
	bool skipping; /* the reader does, and is to be told when it is over; set by it */
	int object;    /* what run [lo, hi) is moved into, or out of */
	uint64_t lo, hi, object_base;
	uint64_t chunk_at, chunk_len; /* its pages are in the scratch area */
	uint64_t own_lo, own_hi;      /* our own mremap() unmaps just this */
	uint64_t src_lo, src_hi;      /* it takes its pages from here */
	bool own_done;                /* that event was read */
	bool disturbed;               /* the program has changed the run; set by the reader */
	uint64_t moved_from, moved_to, moved_len; /* the program's mremap() of it */
};

extern struct xtal_os_adopter xtal_os_adopter;

/* The reader's thread. */
void xtal_os_adopt_read(void *arg);
/* Drops the content of a range of an object. */
int xtal_os_adopt_punch(int fd, uint64_t offset, uint64_t len);

struct xtal_os_backing;

/* The objects that there are. All under the gate. Errors of enter: -ENOSPC. */
int xtal_os_adopt_enter(const struct xtal_os_run *run);
void xtal_os_adopt_leave(const struct xtal_os_run *run);
/* The object that is mapped so, or -1. */
int xtal_os_adopt_object(const struct xtal_os_backing *b);

static inline void *xtal_os_place(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

/* A chunk on its way. */
struct xtal_os_chunk {
	struct xtal_os_adopter *a;
	uint64_t at, len, offset, stage; /* stage: where the object's part is mapped */
	const struct xtal_os_run *run;
	int fd;
};

/* The mapping is of the run's object. */
bool xtal_os_run_maps(const struct xtal_os_backing *b, const struct xtal_os_run *run);

/* A window opens for [lo, hi), which is moved into the object, or out of it, at base. */
void xtal_os_window_open(struct xtal_os_adopter *a, int object, uint64_t lo, uint64_t hi,
			 uint64_t base);
void xtal_os_window_close(struct xtal_os_adopter *a);
/* From here on the program's changes wait. False: one has come since the window opened. */
bool xtal_os_window_begin(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
void xtal_os_window_let_go(struct xtal_os_adopter *a);
/* The range is no longer watched by the window's fd, wherever it is now. */
void xtal_os_window_unwatch(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
/* Moves a mapping of len bytes at from over the one at to; changes no longer wait. 0 or -errno. */
int xtal_os_window_replace(struct xtal_os_adopter *a, uint64_t from, uint64_t to, uint64_t len);
/* Unmaps what the mover has mapped, and some fd of ours watches. */
void xtal_os_window_drop(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
/* Where the program has moved the page to meanwhile. */
uint64_t xtal_os_window_now_at(const struct xtal_os_adopter *a, uint64_t at);
/* True: the call that failed so is to be tried again. Waits a moment. */
bool xtal_os_window_not_yet(int err);

#endif
