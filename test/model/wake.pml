/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake of a pipeline's worker: a run queue under a lock, a futex word.
 *
 * CPU 0: the worker; CPU 1, 2: wakers, each pushing 0..PUSHES operations; CPU 3:
 * the one who stops and joins the worker in the end (or does not).
 *
 * Kernel, assumed: FUTEX_WAIT orders "I am in the queue" before its load of the
 * word and compares atomically with going to sleep; FUTEX_WAKE has a full
 * barrier before it looks for sleepers. The word never wraps between load and wait.
 *
 * Variant FLAGGED saves the system call: the worker says under the lock that it
 * is about to sleep, and only the waker that takes this flag calls FUTEX_WAKE.
 * Variant LAST_EMPTY: wake only if the list was empty (enough with one worker).
 */
/* mutants: NO_BUMP VALUE_AFTER_UNLOCK BUMP_BEFORE_PUSH NO_COMPARE FLAG_UNLOCKED STOP_SILENT */
/* variants: PSO FLAGGED PSO,FLAGGED LAST_EMPTY PSO,LAST_EMPTY */
/* witnesses: SLEPT_AND_WOKEN EAGAIN */

#ifdef MUTANT_FLAG_UNLOCKED
#define FLAGGED
#endif

#define NCPU	4
#define DEPTH	4
#define PUSHES	2

#define LOCK	0
#define LIST	1			/* operations in the run queue */
#define FUTEX	2
#define STOP	3
#define FLAG	4			/* the worker is about to sleep (FLAGGED) */
#define NMEM	5

bool asleep;				/* in the kernel's wait queue */
bool gone;				/* the worker obeyed STOP */
byte pushed, executed;

inline landed(CPU_)
{
	skip
}

#include "tso.h"

inline futex_wake(CPU_)
{
	atomic { drained(CPU_) -> asleep = false }
}

inline bump(CPU_)
{
	load(CPU_, FUTEX, f);
	store(CPU_, FUTEX, f + 1);
	f = 0
}

/* under the lock; w = whether to call futex_wake after it */
inline must_wake(CPU_, WAS_)
{
#ifdef FLAGGED
	load(CPU_, FLAG, w);
	if
	:: w -> store(CPU_, FLAG, 0)
	:: else
	fi
#else
#ifdef LAST_EMPTY
	w = (WAS_ == 0)
#else
	w = true
#endif
#endif
}

proctype Waker(byte me)
{
	byte k, n, f;
	bool w;

	do
	:: k < PUSHES ->
		k++;
#ifdef MUTANT_BUMP_BEFORE_PUSH
		lock(me, LOCK);
		bump(me);
		unlock(me, LOCK);
		futex_wake(me);
#endif
		lock(me, LOCK);
		load(me, LIST, n);
		store(me, LIST, n + 1);
		pushed++;
#if !defined(MUTANT_BUMP_BEFORE_PUSH) && !defined(MUTANT_NO_BUMP)
		bump(me);
#endif
		must_wake(me, n);
		unlock(me, LOCK);
#ifndef MUTANT_BUMP_BEFORE_PUSH
		if
		:: w -> futex_wake(me)
		:: else
		fi;
#endif
		n = 0; w = false
	:: break
	od
}

proctype Stopper()
{
	byte f;
	bool w;

	if
	:: lock(3, LOCK);
		store(3, STOP, 1);
#ifndef MUTANT_STOP_SILENT
		bump(3);
#endif
		must_wake(3, 0);
		unlock(3, LOCK);
		if
		:: w -> futex_wake(3)
		:: else
		fi;
	:: skip
	fi
}

active proctype Worker()
{
	byte n, v;
	bool s;

	atomic { run Waker(1); run Waker(2); run Stopper() }
	do
	:: lock(0, LOCK);
		load(0, LIST, n);
		load(0, STOP, s);
		if
		:: n > 0 ->
			store(0, LIST, n - 1);
			unlock(0, LOCK);
			executed++;
			n = 0; s = false
		:: n == 0 && s ->
			unlock(0, LOCK);
			break
		:: else ->
#ifndef MUTANT_VALUE_AFTER_UNLOCK
			load(0, FUTEX, v);
#endif
#if defined(FLAGGED) && !defined(MUTANT_FLAG_UNLOCKED)
			store(0, FLAG, 1);
#endif
			unlock(0, LOCK);
#ifdef MUTANT_VALUE_AFTER_UNLOCK
			load(0, FUTEX, v);
#endif
#ifdef MUTANT_FLAG_UNLOCKED
			store(0, FLAG, 1);
#endif
			atomic {	/* FUTEX_WAIT */
				drained(0);
				if
#ifdef MUTANT_NO_COMPARE
				:: true -> asleep = true
#else
				:: mem[FUTEX] == v -> asleep = true
				:: else ->
#ifdef WITNESS_EAGAIN
					assert(false);
#endif
					skip
#endif
				fi
			};
			v = 0;
end_sleep:		!asleep;
#ifdef WITNESS_SLEPT_AND_WOKEN
			assert(mem[LIST] == 0)
#endif
		fi
	od;
	gone = true
}

/* nobody can move: the list is empty or its worker was stopped, and stop is obeyed */
active proctype Monitor()
{
	timeout -> assert(mem[STOP] -> gone : executed == pushed)
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2) DRAIN(3)
	od
}
