/* SPDX-License-Identifier: MIT */
/*
 * A long operation cut into fragments that several executors claim.
 *
 * CPU 0: the poster, which helps while it polls; CPU 1, 2: pipeline workers.
 * Two operations use the same descriptor one after the other: it is recycled only
 * when the completion has been taken and no executor holds a reference to it.
 * Taking a reference and withdrawing the operation happen under the list lock
 * (one atomic step here).
 *
 * aarch64: `next` may be claimed relaxed; `done` is counted acq_rel (release for
 * the own bytes, acquire so that the last word is ordered behind everybody's);
 * the completion is a release store. The last word is a plain store here: the
 * count has ordered it already.
 */
/* mutants: DONE_FIRST LAST_BY_INDEX SPLIT_CLAIM SPLIT_COUNT RECYCLE_EARLY COMPLETE_FIRST RELAXED_DONE RELAXED_COMPLETION */
/* variants: PSO */
/* witnesses: SHARED STRAGGLER */

#if defined(MUTANT_RELAXED_DONE) || defined(MUTANT_RELAXED_COMPLETION)
#define PSO
#endif

#define NCPU	3
#define DEPTH	3
#define FRAGMENTS	3
#define OPS	2

#define NEXT	0
#define COUNT	1			/* fragments done */
#define COMPLETION	2		/* number of the operation completed */
#define DATA	3			/* one word per fragment */
#define LAST	6			/* the last word of the operation */
#define NMEM	7

byte op;				/* the operation the descriptor holds */
bool listed;				/* workers can find it */
byte refs;				/* executors holding it */
byte bytes;				/* ghost: fragments landed */
bool last, completed;			/* ghost: last word landed, completion seen */

inline landed(CPU_)
{
	if
	:: t_a >= DATA && t_a < LAST ->
		assert(t_v == op && !last && !completed);
		bytes++
	:: t_a == LAST ->
		assert(t_v == op && bytes == FRAGMENTS && !last && !completed);
		last = true
	:: t_a == COMPLETION ->
		assert(t_v == op && last && !completed);
		completed = true
	:: else
	fi
}

#include "tso.h"

#ifdef MUTANT_RELAXED_DONE
#define ordered(CPU_)	true
#else
#define ordered(CPU_)	drained(CPU_)
#endif

inline claim(CPU_)
{
#ifdef MUTANT_SPLIT_CLAIM
	load(CPU_, NEXT, i);
	store(CPU_, NEXT, i + 1)
#else
	d_step { relaxed(CPU_); i = mem[NEXT]; mem[NEXT] = i + 1 }
#endif
}

inline count(CPU_)
{
#ifdef MUTANT_SPLIT_COUNT
	load(CPU_, COUNT, d);
	d++;
	store_rel(CPU_, COUNT, d)
#else
	d_step { ordered(CPU_); d = mem[COUNT] + 1; mem[COUNT] = d }
#endif
}

inline complete(CPU_, ME_)
{
#ifdef MUTANT_RELAXED_COMPLETION
	store(CPU_, COMPLETION, ME_)
#else
	store_rel(CPU_, COMPLETION, ME_)
#endif
}

/* claim and copy until nothing is left; my = the operation as first read */
inline help(CPU_)
{
	do
	:: claim(CPU_);
		if
		:: i >= FRAGMENTS -> i = 0; break
		:: else
		fi;
#ifdef MUTANT_DONE_FIRST
		count(CPU_);
		store(CPU_, DATA + i, my);
#else
		store(CPU_, DATA + i, my);
#ifdef MUTANT_LAST_BY_INDEX
		if
		:: i == FRAGMENTS - 1 -> store(CPU_, LAST, my)
		:: else
		fi;
#endif
		count(CPU_);
#endif
		if
		:: d == FRAGMENTS ->
#ifdef MUTANT_COMPLETE_FIRST
			complete(CPU_, my);
			store(CPU_, LAST, my)
#else
#ifndef MUTANT_LAST_BY_INDEX
			store(CPU_, LAST, my);
#endif
			complete(CPU_, my)
#endif
		:: else
		fi;
		d_step { i = 0; d = 0 }
	od
}

proctype Worker(byte me)
{
	byte my, i, d;

end_idle:
	do
	:: atomic {		/* under the list lock */
			listed && mem[NEXT] < FRAGMENTS ->
			refs++;
			my = op
		};
#ifdef WITNESS_SHARED
		assert(!(me == 2 && mem[NEXT] == 1 && refs == 2 && op == 2));
#endif
		help(me);
		my = 0;
		atomic { drained(me) -> refs-- }	/* atomic decrement, release */
	od
}

active proctype Poster()
{
	byte my, i, d;

	atomic { run Worker(1); run Worker(2) }
	do
	:: my < OPS ->
		my++;
		d_step {		/* the lock is a full fence on both sides */
			op = my;
			mem[NEXT] = 0;
			mem[COUNT] = 0;
			bytes = 0;
			last = false;
			completed = false;
			listed = true
		};
		help(0);
		mem[COMPLETION] == my;
		listed = false;
#ifdef WITNESS_STRAGGLER
		assert(refs == 0);
#endif
#ifndef MUTANT_RECYCLE_EARLY
		refs == 0;
#endif
		assert(completed && mem[LAST] == my)
	:: else -> break
	od
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2)
	od
}
