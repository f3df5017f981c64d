/* SPDX-License-Identifier: MIT */
/*
 * The biased lock: its owner enters by plain stores and loads, others by a lock and a membarrier.
 *
 * CPU 0: the owner; CPU 1, 2: others, who may also end the ownership
 *
 * Everybody adds to DATA by a load and a store; none may get lost. membarrier as in revoke.pml:
 * the caller's buffer drains, then the owner's is empty once.
 *
 * aarch64: wanted and busy are loaded with acquire, and cleared with release.
 */
/* mutants: NO_MEMBARRIER LOOK_FIRST UNANNOUNCED CALL_NOBODY_BACK LATE_CALL_BACK RELAXED_CLEAR */
/* variants: PSO */
/* witnesses: SENT_AWAY OTHER_WAITED NOBODY */

#ifdef MUTANT_RELAXED_CLEAR
#define PSO
#endif

#define NCPU	3
#define DEPTH	4
#define OPS	3			/* of the owner */

#define LOCK	0
#define OWNER	1			/* 1: CPU 0, 2: nobody any more */
#define BUSY	2
#define WANTED	3
#define LOCKED	4
#define DATA	5
#define NMEM	6

byte added;				/* additions begun */
byte done;				/* processes that have ended */

inline landed(CPU_)
{
	skip
}

#include "tso.h"

inline add(me)
{
	load(me, DATA, v);
	store(me, DATA, v + 1);
	added++;
	v = 0
}

#ifdef MUTANT_RELAXED_CLEAR
#define clear(CPU_, AD_)	store(CPU_, AD_, 0)
#else
#define clear(CPU_, AD_)	store_rel(CPU_, AD_, 0)
#endif

/* by way of the lock, which is held */
inline locked_add(me)
{
	store(me, LOCKED, 1);
	add(me);
	store(me, LOCKED, 0)
}

inline call_back(me)
{
	load(me, OWNER, v);
	if
#ifdef MUTANT_CALL_NOBODY_BACK
	:: v != 0 -> clear(me, WANTED)
#else
	:: v != 2 -> clear(me, WANTED)
#endif
	:: else
	fi;
	v = 0
}

inline leave(me)
{
#ifdef MUTANT_LATE_CALL_BACK
	unlock(me, LOCK);
	call_back(me)
#else
	call_back(me);
	unlock(me, LOCK)
#endif
}

active proctype Owner()
{
	byte v, n;

	do
	:: n < OPS ->
		n++;
		load(0, OWNER, v);
		if
		:: v == 1 ->
#ifndef MUTANT_UNANNOUNCED
			store(0, BUSY, 1);
#endif
			load(0, WANTED, v);
			if
			:: v == 0 ->
				add(0);
				load(0, LOCKED, v);
				assert(v == 0);
				clear(0, BUSY);
				goto next
			:: else ->
#ifdef WITNESS_SENT_AWAY
				assert(false);
#endif
				clear(0, BUSY)
			fi
		:: else
		fi;
		lock(0, LOCK);
		locked_add(0);
		leave(0);
next:		v = 0
	:: else -> break
	od;
	drained(0);
	done++
}

proctype Other(byte me)
{
	byte v;

	lock(me, LOCK);
	load(me, OWNER, v);
	if
	:: v == 1 ->
#ifdef MUTANT_LOOK_FIRST
		do
		:: load(me, BUSY, v);
			if
			:: v == 0 -> break
			:: else -> mem[BUSY] == 0
			fi
		od;
#endif
		store(me, WANTED, 1);
#ifndef MUTANT_NO_MEMBARRIER
		drained(me);
		drained(0);
#endif
#ifndef MUTANT_LOOK_FIRST
		do
		:: load(me, BUSY, v);
			if
			:: v == 0 -> break
			:: else ->
#ifdef WITNESS_OTHER_WAITED
				assert(false);
#endif
				mem[BUSY] == 0
			fi
		od;
#endif
		if
		:: skip
		:: store(me, OWNER, 2)
		fi
	:: else ->
#ifdef WITNESS_NOBODY
		assert(false);
#endif
		skip
	fi;
	locked_add(me);
	leave(me);
	drained(me);
	done++
}

init {
	atomic {
		mem[OWNER] = 1;
		run Other(1);
		run Other(2)
	}
}

active proctype Monitor()
{
	timeout -> assert(done == 3 && mem[DATA] == added)
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2)
	od
}
