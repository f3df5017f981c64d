/* SPDX-License-Identifier: MIT */
/*
 * What processes share for the direct paths: the table of segment slots that an owner
 * publishes read-only, and the board of activity words of one link. Offsets and fixed-width
 * integers only; a value written by the other side is read once, then checked, then used.
 */
#ifndef XTAL_CORE_SHARED_H
#define XTAL_CORE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "core/device.h"
#include "path/iov.h"

/* A slot's word: generation << 2 | state. Any change of the word ends what was granted. */
enum xtal_segment_state {
	XTAL_SEG_FREE = 0,
	XTAL_SEG_LIVE = 1,
	XTAL_SEG_MOVING = 2, /* its pages are being replaced: ask again */
};

struct xtal_slot_table {
	uint64_t life[2]; /* a struct xtal_os_life, of the owner's agent */
	_Alignas(XTAL_CACHE_LINE) _Atomic uint64_t word[XTAL_MAX_SEGMENTS];
};

/* One executor's announcement: "I am using this slot". */
struct xtal_activity {
	_Alignas(XTAL_CACHE_LINE) _Atomic uint64_t word; /* slot + 1; 0: idle */
	/* Set by the owner when it found the executor stopped in mid-copy and did not wait: what
	 * it stores may go to pages that are no more. */
	_Atomic uint64_t cut;
	struct xtal_shared_iov iov[2]; /* cma: the remote pieces, which the owner may zero */
};

/*
 * By the executor, after a copy during which the slot's word changed. False: the copy came before
 * the change, since the owner waits for those it does not cut off. Partner: the owner sets cut,
 * fences, and only then exchanges pages.
 */
static inline bool xtal_activity_was_cut(struct xtal_activity *a)
{
	atomic_thread_fence(memory_order_seq_cst); /* the copy's stores, then the look */
	return atomic_exchange(&a->cut, 0) != 0;
}

#define XTAL_BOARD_WORDS (64u * 64) /* executors per link */

struct xtal_board {
	_Atomic uint32_t used; /* words at and above this were never used (written by the peer) */
	_Alignas(XTAL_CACHE_LINE) struct xtal_activity activity[XTAL_BOARD_WORDS];
};

/* The link's memory object: the board, then the message rings. */
static inline size_t xtal_board_bytes(void)
{
	return (sizeof(struct xtal_board) + 255) & ~(size_t)255; /* the rings are aligned */
}

static inline uint64_t xtal_slot_next(uint64_t word, enum xtal_segment_state state)
{
	return ((word >> 2) + 1) << 2 | state;
}

#endif
