/* SPDX-License-Identifier: MIT */
/*
 * The agent's doorbell: shared-memory rings, a flag `sleeping`, an eventfd.
 *
 * CPU 0: the agent; CPU 1, 2: producers in other processes, each with a ring of
 * its own, that send up to FRAMES frames; CPU 3: a thread of the agent's program that polls
 * and does the agent's message work inline, 0..POLLS times.
 *
 * Both consumers take frames under the consumer lock (private to their process).
 * The agent only tries it: a poller that is at it is no reason to wait. Its
 * re-check before sleeping does not need the lock: a stale head can only make a
 * ring look fuller than it is.
 *
 * aarch64: tail release / acquire; both "full fences" are dmb ish (a seq_cst
 * fence), also where the C code has a seq_cst store or exchange of the flag.
 */
/* large */
/* mutants: NO_RECHECK NO_FENCE_AGENT NO_FENCE_PRODUCER CHECK_BEFORE_FLAG FLAG_BEFORE_PUBLISH POLLER_CLEARS RELAXED_PUBLISH */
/* variants: PSO BLOCKING_LOCK */
/* witnesses: WOKEN RECHECK_HIT LOCK_BUSY */

#ifdef MUTANT_RELAXED_PUBLISH
#define PSO
#endif

#define NCPU	4
#define DEPTH	4
#define FRAMES(p)	(p == 1 -> 2 : 1)
#define POLLS	1
#define POLLER	3

#define SLEEPING	0
#define LOCK	1			/* the consumer lock */
#define HEAD	2			/* of ring 0, 1 */
#define TAIL	4
#define FRAME	6			/* of ring 0: 6, 7; of ring 1: 8, 9 */
#define NMEM	10

bool fd;				/* the eventfd is readable */
byte published[2], handled[2];

inline landed(CPU_)
{
	skip
}

#include "tso.h"

proctype Producer(byte me)
{
	byte n;
	bool s;

	do
	:: n < FRAMES(me) ->
		store(me, FRAME + 2 * (me - 1) + n, n + 1);
#ifdef MUTANT_FLAG_BEFORE_PUBLISH
		load(me, SLEEPING, s);
#endif
		n++;
		atomic {
#ifdef MUTANT_RELAXED_PUBLISH
			store(me, TAIL + me - 1, n);
#else
			store_rel(me, TAIL + me - 1, n);
#endif
			published[me - 1] = n
		};
#ifndef MUTANT_NO_FENCE_PRODUCER
		drained(me);
#endif
#ifndef MUTANT_FLAG_BEFORE_PUBLISH
		load(me, SLEEPING, s);
#endif
		if
		:: s -> fd = true; s = false
		:: else
		fi
	:: break
	od
}

/* under the consumer lock: take every frame of ring R_ */
inline drain_ring(CPU_, R_)
{
	load(CPU_, HEAD + R_, h);
	do
	:: load(CPU_, TAIL + R_, t);
		if
		:: h != t ->
			load(CPU_, FRAME + 2 * R_ + h, t);
			h++;
			assert(t == h && h == handled[R_] + 1);
			handled[R_] = h;
			store(CPU_, HEAD + R_, h)
		:: else -> break
		fi
	od;
	h = 0; t = 0
}

proctype Poller()
{
	byte n, h, t;

	do
	:: n < POLLS ->
		n++;
#ifdef MUTANT_POLLER_CLEARS
		store(POLLER, SLEEPING, 0);	/* "no doorbells while I poll" */
		drained(POLLER);
#endif
		lock(POLLER, LOCK);
		drain_ring(POLLER, 0);
		drain_ring(POLLER, 1);
		unlock(POLLER, LOCK)
	:: break
	od
}

inline recheck(R_)
{
	load(0, TAIL + R_, t);
	load(0, HEAD + R_, h);
	busy = busy || h != t;
	h = 0; t = 0
}

active proctype Agent()
{
	byte h, t;
	bool busy;

	atomic { run Producer(1); run Producer(2); run Poller() }
work:
#ifdef BLOCKING_LOCK
	lock(0, LOCK);
#else
	if
	:: d_step { relaxed(0) && mem[LOCK] == 0; mem[LOCK] = 1 }
	:: mem[LOCK] == 1 ->
#ifdef WITNESS_LOCK_BUSY
		assert(false);
#endif
		goto sleep
	fi;
#endif
	drain_ring(0, 0);
	drain_ring(0, 1);
	unlock(0, LOCK);
sleep:
	busy = false;
#ifdef MUTANT_CHECK_BEFORE_FLAG
	recheck(0);
	recheck(1);
#endif
	store(0, SLEEPING, 1);
#ifndef MUTANT_NO_FENCE_AGENT
	drained(0);
#endif
#if !defined(MUTANT_NO_RECHECK) && !defined(MUTANT_CHECK_BEFORE_FLAG)
	recheck(0);
	recheck(1);
#endif
	if
	:: busy ->
#ifdef WITNESS_RECHECK_HIT
		assert(false);
#endif
		busy = false;
		store(0, SLEEPING, 0);
		goto work
	:: else
	fi;
end_sleep:
	atomic { fd -> fd = false };		/* epoll, then read */
#ifdef WITNESS_WOKEN
	assert(mem[TAIL] == mem[HEAD]);
#endif
	store(0, SLEEPING, 0);
	goto work
}

/* nobody can move: every published frame has been handled */
active proctype Monitor()
{
	timeout -> assert(handled[0] == published[0] && handled[1] == published[1])
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2) DRAIN(3)
	od
}
