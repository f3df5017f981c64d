/* SPDX-License-Identifier: MIT */
/* What the mover (adopt.c) and the reader (adopt_read.c) share. */
#ifndef XTAL_OS_ADOPT_IMPL_H
#define XTAL_OS_ADOPT_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "os/adopt.h"
#include "os/adopt_pair.h"

#define XTAL_OS_ADOPT_CHUNK ((uint64_t)64 << 10)
#define XTAL_OS_WATCHED     (2 * XTAL_OS_ADOPT_CHUNK >> 12) /* pages of two chunks */

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
	uint64_t reserve;        /* address space and mappings that the way back may need; or 0 */
	uint64_t reserve_len;
	struct xtal_os_adopt_hooks hooks;
	atomic_uint serving; /* the reader is in its loop; futex word */
	long reader;         /* its thread's id */
	struct xtal_os_pair pair;

	/* The reader reads, and acts on what it read, under this; so does the mover what must
	 * not come in between. */
	struct xtal_lock gate;
	/* All below: written by the mover under the gate, but for the last five. */
	bool open;     /* a window is */
	bool hold;     /* its events stay unread: whoever caused them waits */
	bool skipping; /* the reader does, and is to be told when it is over; set by it */
	int object;    /* what the chunk [lo, hi) is moved into, or out of */
	uint64_t lo, hi, object_base;
	bool taken;              /* the chunk's pages are in the scratch area */
	uint64_t own_lo, own_hi; /* our own mremap() unmaps just this */
	uint64_t src_lo, src_hi; /* it takes its pages from here */
	bool own_done;           /* that event was read */
	bool disturbed;   /* the program has unmapped or moved some of it; set by the reader */
	uint64_t changes; /* so often of what is adopted; counted by the reader */
	/* What the window's fd watches: the chunk, and on the way back the one before it. Each page's
	 * place by now (0: unmapped), and whether the program has dropped it; the reader's, too. */
	uint64_t watch_lo;
	unsigned watched;
	uint64_t where[XTAL_OS_WATCHED];
	uint8_t dropped[XTAL_OS_WATCHED];
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
/* In a forked child: there are none. */
void xtal_os_adopt_forget(void);
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
	int fd, prot;
	bool staged; /* the stage's part is at the place now */
	bool stays;  /* the stage remains */
	bool holes;  /* some pages were never touched */
};

/* The mapping is of the run's object. */
bool xtal_os_run_maps(const struct xtal_os_backing *b, const struct xtal_os_run *run);

/* Address space and mappings are kept for the way back, or given up for it (false: were not there). */
void xtal_os_reserve_make(struct xtal_os_adopter *a);
bool xtal_os_reserve_drop(struct xtal_os_adopter *a);

/* A window opens for [lo, hi), which is moved into the object, or out of it, at base. after: what
 * was watched before, right in front of it, stays so. */
void xtal_os_window_open(struct xtal_os_adopter *a, int object, uint64_t lo, uint64_t hi,
			 uint64_t base, bool after);
/* Nothing is watched by the window's fd any more, wherever it is now. */
void xtal_os_window_close(struct xtal_os_adopter *a);
/* Pages of [at, at+len) that the program has not moved are not watched: another mapping is there. (An
 * older kernel would take them out of the keeper's hands.) */
void xtal_os_window_forget(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
/* What is in front of at is watched no more. */
void xtal_os_window_unwatch(struct xtal_os_adopter *a, uint64_t at);
/* From here on the program's changes wait. False: it has unmapped or moved some. */
bool xtal_os_window_begin(struct xtal_os_adopter *a);
void xtal_os_window_let_go(struct xtal_os_adopter *a);
/* A mapping of len bytes at from is to be moved over the one at to, which watcher watches. stays: an
 * empty one of the same kind is left behind (which is one event less to wait for). */
struct xtal_os_exchange {
	uint64_t from, to, len;
	int watcher;
	uint64_t changes;
	bool stays;
};

/* Does that; changes no longer wait. 0, -EAGAIN (the program has unmapped or moved some of what is in
 * the window; watched by the keeper: some adopted memory since changes was read), -errno. */
int xtal_os_window_replace(struct xtal_os_adopter *a, const struct xtal_os_exchange *e);
/* After that: what was at to was watched, so it is what we looked at. False: the program had unmapped
 * or moved it in the last moment. */
bool xtal_os_window_hit(struct xtal_os_adopter *a);
/* Waits until all that the program has done to what is watched was read. */
void xtal_os_window_settle(struct xtal_os_adopter *a);
/* Unmaps what the mover has mapped, and some fd of ours watches. */
void xtal_os_window_drop(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
/* Under the gate. Where the program has moved the watched page to; 0: unmapped. */
uint64_t xtal_os_window_now_at(const struct xtal_os_adopter *a, uint64_t at);
/* True: all pages of [at, at+len) are where they were. */
bool xtal_os_window_still(struct xtal_os_adopter *a, uint64_t at, uint64_t len);
/* True: the call that failed so is to be tried again. Waits a moment. */
bool xtal_os_window_not_yet(int err);

#endif
