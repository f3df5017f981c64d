/* SPDX-License-Identifier: MIT */
/*
 * The runs of memory that are adopted, and which segments lie in them. The reader looks at them, on
 * a thread that must not lock (but the gate), allocate or log.
 */
#include "core/adopt_runs.h"

#include <stdio.h>

#include "core/context_impl.h"
#include "core/registry.h"
#include "xtal.h"

struct xtal_adopted xtal_runs[XTAL_MAX_RUNS];
static atomic_uint runs_end; /* those behind were never used: the reader need not look at them */

/* The reader: before it reads. What is being done may concern any run. */
bool xtal_runs_before_change(void)
{
	unsigned end = atomic_load_explicit(&runs_end, memory_order_relaxed);
	bool any = false;

	for (unsigned i = 0; i < end; i++) {
		for (unsigned k = 0; xtal_runs[i].state != XTAL_RUN_FREE && k < XTAL_RUN_WORDS;
		     k++) {
			_Atomic uint64_t *word = xtal_runs[i].words[k];
			uint64_t now = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

			/* seq_cst: whoever caused it goes on only after this. Partner: the look
			 * at the word by executors. */
			while ((now & 3) == XTAL_SEG_LIVE &&
			       !atomic_compare_exchange_weak(word, &now,
							     xtal_slot_next(now, XTAL_SEG_MOVING)))
				;
			any |= (now & 3) == XTAL_SEG_LIVE;
		}
	}
	return any;
}

void xtal_runs_change(const struct xtal_os_uffd_event *e)
{
	if (e->kind != XTAL_OS_UFFD_UNMAP && e->kind != XTAL_OS_UFFD_REMAP)
		return;
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++)
		if (xtal_runs[i].state != XTAL_RUN_FREE && e->from < xtal_runs[i].run.hi &&
		    e->from + e->len > xtal_runs[i].run.lo)
			xtal_runs[i].gone = true;
}

struct xtal_adopted *xtal_runs_free(void)
{
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++)
		if (xtal_runs[i].state == XTAL_RUN_FREE) {
			/* Seen by whoever sees that the run is in use, which is said under the gate. */
			if (i >= atomic_load_explicit(&runs_end, memory_order_relaxed))
				atomic_store_explicit(&runs_end, i + 1, memory_order_relaxed);
			return &xtal_runs[i];
		}
	return NULL;
}

/* A run that has a page of [lo, hi). */
struct xtal_adopted *xtal_runs_at(uint64_t lo, uint64_t hi)
{
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++)
		if (xtal_runs[i].state != XTAL_RUN_FREE && lo < xtal_runs[i].run.hi &&
		    hi > xtal_runs[i].run.lo)
			return &xtal_runs[i];
	return NULL;
}

void xtal_run_set_state(struct xtal_adopted *a, enum xtal_run_state state)
{
	xtal_os_adopt_lock();
	a->state = state;
	xtal_os_adopt_unlock();
}

bool xtal_run_is_gone(const struct xtal_adopted *a)
{
	bool gone;

	xtal_os_adopt_lock();
	gone = a->gone;
	xtal_os_adopt_unlock();
	return gone;
}

const char *xtal_adopt_cause_text(enum xtal_adopt_cause cause)
{
	switch (cause) {
	case XTAL_ADOPT_HOT:
		return "since peers use it much";
	case XTAL_ADOPT_REQUEST:
		return "by xtal_share()";
	case XTAL_ADOPT_EVERYTHING:
		return "by XTAL_ADOPT=always";
	}
	return "";
}

/* Under the gate. */
static bool take_word(struct xtal_adopted *a, _Atomic uint64_t *word)
{
	for (unsigned k = 0; k < XTAL_RUN_WORDS; k++)
		if (!a->words[k] || a->words[k] == word) {
			a->words[k] = word;
			return true;
		}
	return false;
}

/* What each segment in the run that is being moved becomes; the mover's. */
static struct xtal_adopted *attaching;
static const char *refusal;

void xtal_run_moves(struct xtal_adopted *a, const char *why)
{
	attaching = a;
	refusal = why;
}

/* Under the registry's lock; the segment is moving. */
void xtal_run_attach(struct xtal_segment *seg)
{
	struct xtal_adopted *a = attaching;
	bool in = false, gone;

	if (atomic_load(&seg->adopted))
		return; /* in another run, too */
	xtal_os_adopt_lock();
	gone = a->gone;
	if (a->state == XTAL_RUN_ADOPTED && !gone)
		in = take_word(a, &seg->ctx->registry.table->word[seg->slot]);
	xtal_os_adopt_unlock();
	if (in)
		atomic_store(&seg->adopted, a);
	snprintf(seg->adopt_reason, sizeof(seg->adopt_reason), "%s%.90s",
		 in ? "private memory, adopted " : "private memory, not adopted: ",
		 in           ? xtal_adopt_cause_text(a->cause)
		 : gone       ? "the program has changed its mapping"
		 : refusal[0] ? refusal
			      : "too many segments lie in it");
}

void xtal_adopted_detach(struct xtal_segment *seg)
{
	struct xtal_adopted *a = atomic_load(&seg->adopted);
	_Atomic uint64_t *word = &seg->ctx->registry.table->word[seg->slot];

	if (!a)
		return;
	xtal_os_adopt_lock();
	for (unsigned k = 0; k < XTAL_RUN_WORDS; k++)
		if (a->words[k] == word)
			a->words[k] = NULL;
	xtal_os_adopt_unlock();
	atomic_store(&seg->adopted, NULL);
}

/* Under the registry's lock. */
void xtal_run_detach(struct xtal_segment *seg)
{
	if (atomic_load(&seg->adopted) != attaching)
		return;
	xtal_adopted_detach(seg);
	snprintf(seg->adopt_reason, sizeof(seg->adopt_reason), "private memory, adopted no more");
}

bool xtal_adopted_has(const struct xtal_segment *seg)
{
	return atomic_load(&seg->adopted) != NULL;
}

bool xtal_adopted_find(struct xtal_segment *seg, uint64_t addr, uint64_t len,
		       struct xtal_adopted_part *out)
{
	const struct xtal_adopted *a = atomic_load(&seg->adopted);
	uint64_t lo = seg->addr, hi = seg->addr + seg->len, end = addr + len;

	if (!a)
		return false;
	*out = (struct xtal_adopted_part){ .lo = lo, .hi = hi, .fd = -1 };
	if (end <= a->run.lo) {
		out->hi = a->run.lo;
	} else if (addr >= a->run.hi) {
		out->lo = a->run.hi;
	} else if (addr >= a->run.lo && end <= a->run.hi) {
		out->lo = lo > a->run.lo ? lo : a->run.lo;
		out->hi = hi < a->run.hi ? hi : a->run.hi;
		out->adopted = true;
		out->fd = a->run.fd;
		out->object = a->object;
		out->offset = out->lo - a->run.lo;
		out->object_len = a->run.hi - a->run.lo;
	} else {
		return false;
	}
	return true;
}

void xtal_runs_let_in(void)
{
	xtal_os_adopt_lock();
	/* Not while the reader is between setting them and telling us. */
	for (unsigned i = 0; i < XTAL_MAX_RUNS; i++) {
		for (unsigned k = 0; xtal_runs[i].state == XTAL_RUN_ADOPTED && k < XTAL_RUN_WORDS;
		     k++) {
			_Atomic uint64_t *word = xtal_runs[i].words[k];
			uint64_t now = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

			while (!xtal_runs[i].gone && (now & 3) == XTAL_SEG_MOVING &&
			       !atomic_compare_exchange_weak(word, &now,
							     xtal_slot_next(now, XTAL_SEG_LIVE)))
				;
		}
	}
	xtal_os_adopt_unlock();
}
