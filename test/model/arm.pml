/* SPDX-License-Identifier: MIT */
/*
 * Arming a completion queue.
 *
 * CPU 0: the consumer; CPU 1, 2: producers, each pushing 0..PUSHES completions.
 * Pops read the tail without the lock; pushing and arming hold the producer lock.
 * The eventfd is kernel state: a write to it may overtake the buffered stores of
 * its writer. (Seeing it readable therefore promises nothing about the queue;
 * taking the lock in arm does.)
 *
 * After arming, the consumer may either wait or poll again first, as programs do.
 *
 * aarch64: the tail is loaded with acquire and stored with release; the lock is
 * acquire / release.
 */
/* mutants: BLIND_ARM EARLY_CHECK UNLOCKED_ARM KEEP_ARMED RELAXED_TAIL */
/* variants: PSO SIGNAL_AFTER_UNLOCK PSO,SIGNAL_AFTER_UNLOCK ARMED_FIRST */
/* witnesses: WOKEN FIRED_AT_ONCE SPURIOUS */

#ifdef MUTANT_RELAXED_TAIL
#define PSO
#endif
#ifdef MUTANT_EARLY_CHECK
#define SIGNAL_AFTER_UNLOCK
#endif

#define NCPU	3
#define DEPTH	4
#define PUSHES	2

#define LOCK	0
#define TAIL	1
#define ARMED	2
#define ENTRY	3
#define NMEM	7

byte head;				/* the consumer's own */
byte fd;				/* eventfd counter */
bool owed;				/* an arm that has not been answered by a signal */
bool late;				/* a completion was pushed after that arm */

inline landed(CPU_)
{
	skip
}

#include "tso.h"

/* exactly one signal per arm: decided here, written to the eventfd by signal() */
inline answer()
{
	assert(owed);
	owed = false;
	late = false
}

inline signal()
{
	fd++
}

proctype Producer(byte me)
{
	byte n, t;
	bool a;

	do
	:: n < PUSHES ->
		n++;
#ifdef MUTANT_EARLY_CHECK
		load(me, ARMED, a);
#endif
		lock(me, LOCK);
		load(me, TAIL, t);
		store(me, ENTRY + t, t + 1);
#ifdef ARMED_FIRST
		load(me, ARMED, a);
#endif
#ifdef MUTANT_RELAXED_TAIL
		store(me, TAIL, t + 1);
#else
		store_rel(me, TAIL, t + 1);
#endif
#if !defined(MUTANT_EARLY_CHECK) && !defined(ARMED_FIRST)
		load(me, ARMED, a);
#endif
		if
		:: a ->
#ifndef MUTANT_KEEP_ARMED
			store(me, ARMED, 0);
#endif
			answer();
#ifndef SIGNAL_AFTER_UNLOCK
			signal();
#endif
		:: else -> late = owed
		fi;
		unlock(me, LOCK);
#ifdef SIGNAL_AFTER_UNLOCK
		if
		:: a -> signal()
		:: else
		fi;
#endif
		a = 0; t = 0
	:: break
	od
}

inline arm()
{
#ifndef MUTANT_UNLOCKED_ARM
	lock(0, LOCK);
#endif
#ifndef MUTANT_BLIND_ARM
#ifdef MUTANT_UNLOCKED_ARM
	owed = true;
	store(0, ARMED, 1);		/* Dekker without its fence */
	load(0, TAIL, t);
	if
	:: t != head ->
		store(0, ARMED, 0);
		fd++;
		owed = false
	:: else
	fi;
#else
	load(0, TAIL, t);
	owed = true;
	if
	:: t != head ->			/* completions are waiting: fire at once */
#ifdef WITNESS_FIRED_AT_ONCE
		assert(false);
#endif
		answer();
		signal()
	:: else ->
		store(0, ARMED, 1)
	fi;
#endif
#else
	owed = true;
	store(0, ARMED, 1);
#endif
#ifndef MUTANT_UNLOCKED_ARM
	unlock(0, LOCK);
#endif
	t = 0
}

active proctype Consumer()
{
	byte t;

	atomic { run Producer(1); run Producer(2) }
poll:
	load(0, TAIL, t);
	if
	:: t != head ->
		load(0, ENTRY + head, t);
		assert(t == head + 1);
		t = 0;
		head++;
		goto poll
	:: else
	fi;
	t = 0;
	arm();
	if
	:: goto poll			/* look once more before sleeping */
	:: skip
	fi;
end_wait:
	atomic { fd > 0 -> fd = 0 }	/* epoll, then read */
#ifdef WITNESS_WOKEN
	assert(mem[ARMED] || mem[TAIL] == head);
#endif
#ifdef WITNESS_SPURIOUS
	assert(mem[TAIL] != head);
#endif
	goto poll
}

/* nobody can move: nothing may wait, and every armed push has been signalled */
active proctype Monitor()
{
	timeout -> assert(head == mem[TAIL] && !late)
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2)
	od
}
