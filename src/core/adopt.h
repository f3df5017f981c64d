/* SPDX-License-Identifier: MIT */
/*
 * Adoption: private memory of this process that peers use becomes mappable for them (DESIGN 3;
 * how pages are moved: os/adopt.h). One thread does it, the mover; to peers and to our own
 * operations each move is a revocation. doc/adoption.md tells programs what they can notice.
 */
#ifndef XTAL_CORE_ADOPT_H
#define XTAL_CORE_ADOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

struct xtal_segment;

/* Why memory is to be adopted; for the reason that peers are told. */
enum xtal_adopt_cause {
	XTAL_ADOPT_HOT,        /* a peer uses it much */
	XTAL_ADOPT_REQUEST,    /* xtal_share() */
	XTAL_ADOPT_EVERYTHING, /* XTAL_ADOPT=always */
};

/* Adopts the whole pages of [addr, addr+len), and waits for it. Errors, with a sentence in why:
 * -EPERM (XTAL_ADOPT=off), -ENOSYS (not on this machine), -EINVAL (no ordinary private memory),
 * -EBUSY (pinned pages, or a peer does not leave), -EEXIST (a part is adopted), -EAGAIN (the
 * program changed the mapping, or forks), -errno. Not on the agent. */
int xtal_adopt(uint64_t addr, uint64_t len, enum xtal_adopt_cause cause, char *why, size_t size);
/* Makes adopted memory that lies in the range private again. Errors: -ENOENT (there is none),
 * -EBUSY (pages are pinned, a peer does not leave), -errno. Not on the agent. */
int xtal_adopt_undo(uint64_t addr, uint64_t len, char *why, size_t size);
/* A peer uses the segment much: adopts it soon, if settings and machine allow. While it is
 * announced. */
void xtal_adopt_wish(struct xtal_segment *seg);
/* Somebody waits for memory that is being moved: sees to it that this goes on (os/adopt.h). Any
 * thread, any number of times. */
void xtal_adopt_look_after(void);
/* A segment was registered: maybe over memory that is adopted, or XTAL_ADOPT=always. */
void xtal_adopt_registered(const struct xtal_segment *seg);

/* Part of a segment that can be reached in one way. */
struct xtal_adopted_part {
	uint64_t lo, hi;
	bool adopted; /* else it is private memory still */
	/* adopted: */
	int fd;
	uint64_t object, offset, object_len; /* the number; of lo in it; what can be mapped */
};
/* The part of the segment that holds all of [addr, addr+len), as small as can be: false: it is not
 * adopted, or the range crosses from one part into another. While it is announced. */
bool xtal_adopted_find(struct xtal_segment *seg, uint64_t addr, uint64_t len,
		       struct xtal_adopted_part *out);

bool xtal_adopted_has(const struct xtal_segment *seg);
/* A stopped peer is in the segment, which is being withdrawn: its pages become private, so that
 * late bytes go astray. Errors: -errno. */
int xtal_adopted_end(const struct xtal_segment *seg);
/* The segment ends. Under its registry's lock. */
void xtal_adopted_detach(struct xtal_segment *seg);

/* Around a fork. Before: nothing is adopted when it returns, and nothing is until after. */
void xtal_adopt_before_fork(void);
void xtal_adopt_after_fork(void);
void xtal_adopt_fork_child(void);

#endif
