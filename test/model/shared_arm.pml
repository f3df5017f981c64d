/* SPDX-License-Identifier: MIT */
/*
 * Arming a completion queue that many feeds share (shared_cq.c).
 *
 * CPU 0: the consumer; CPU 1, 2: the producers of one feed each, each pushing 0..PUSHES completions
 * under its feed's lock. A feed that has something enters a stack without the consumer's lock; the
 * consumer moves the stack to its list, and drops feeds that are empty. A producer looks at `armed`
 * only when it was told to (notify). Whoever takes `armed` away leaves one event.
 *
 * aarch64: CAS and exchange are acquire and release, the store of `armed` is followed by an exchange.
 */
/* mutants: LOOK_FIRST ARM_LAST DEAF_WATCH SILENT_LEAVE UNLOCKED_WATCH */
/* variants: PSO */
/* witnesses: WOKEN FIRED_AT_ONCE */

#define NCPU	3
#define DEPTH	3
#define PUSHES	2

#define LOCK	0			/* two of them */
#define TAIL	2			/* two */
#define ARMED	4
#define NMEM	5

byte incoming;				/* bits: feeds on the stack; changed by locked instructions only */
byte listed;				/* bits: under each feed's lock */
bool notify[2] = true;			/* under its feed's lock */
byte head[2];				/* the consumer's own, like mine */
byte mine;				/* bits: feeds in the consumer's list */
byte fd;

inline landed(CPU_)
{
	skip
}

#include "tso.h"

/* exchange: takes armed away; at most one gets it */
inline fire(CPU_, OLD_)
{
	d_step { drained(CPU_); OLD_ = mem[ARMED]; mem[ARMED] = 0; fd = fd + OLD_ }
}

proctype Producer(byte me)
{
	byte n, t, a;

	do
	:: n < PUSHES ->
		n++;
		lock(me, LOCK + me - 1);
		load(me, TAIL + me - 1, t);
		store_rel(me, TAIL + me - 1, t + 1);
		if
		:: notify[me - 1] ->
#ifdef MUTANT_LOOK_FIRST
			load(me, ARMED, a);
#endif
			if
			:: listed & me -> skip
			:: else ->
				d_step { drained(me); listed = listed | me; incoming = incoming | me }
			fi;
#ifndef MUTANT_LOOK_FIRST
			load(me, ARMED, a);
#endif
			if
			:: a -> fire(me, a)
			:: else
			fi;
			notify[me - 1] = false
		:: else
		fi;
		unlock(me, LOCK + me - 1);
		a = 0; t = 0
	:: break
	od
}

inline collect()
{
	d_step { drained(0); mine = mine | incoming; incoming = 0 }
}

/* by way of arming: from now on its producer looks; what waits already counts */
inline watch(F_)
{
#ifndef MUTANT_UNLOCKED_WATCH
	lock(0, LOCK + F_ - 1);
#endif
	load(0, TAIL + F_ - 1, t);
	some = some | (t != head[F_ - 1]);
#ifndef MUTANT_DEAF_WATCH
	notify[F_ - 1] = true;
#endif
#ifndef MUTANT_UNLOCKED_WATCH
	unlock(0, LOCK + F_ - 1);
#endif
	t = 0
}

/* takes what there is; an empty one may leave */
inline take(F_)
{
	load(0, TAIL + F_ - 1, t);
	if
	:: t != head[F_ - 1] -> head[F_ - 1] = t
	:: else ->
		if
		:: skip
		:: lock(0, LOCK + F_ - 1);
			load(0, TAIL + F_ - 1, t);
			if
			:: t == head[F_ - 1] ->
				d_step { listed = listed & (3 - F_); mine = mine & (3 - F_) }
#ifndef MUTANT_SILENT_LEAVE
				notify[F_ - 1] = true
#endif
			:: else
			fi;
			unlock(0, LOCK + F_ - 1)
		fi
	fi;
	t = 0
}

active proctype Consumer()
{
	byte t;
	bool some;

	atomic { run Producer(1); run Producer(2) }
poll:
	collect();
	if :: mine & 1 -> take(1) :: else fi;
	if :: mine & 2 -> take(2) :: else fi;
	if
	:: goto poll			/* without arming */
	:: skip
	fi;
	some = false;
#ifndef MUTANT_ARM_LAST
	store(0, ARMED, 1);
#endif
	collect();
	if :: mine & 1 -> watch(1) :: else fi;
	if :: mine & 2 -> watch(2) :: else fi;
#ifdef MUTANT_ARM_LAST
	store(0, ARMED, 1);
#endif
	if
	:: some ->
#ifdef WITNESS_FIRED_AT_ONCE
		assert(false);
#endif
		fire(0, t)
	:: else
	fi;
	t = 0;
	some = false;
	if
	:: goto poll			/* look once more before sleeping */
	:: skip
	fi;
end_wait:
	atomic { fd > 0 -> fd = 0 }
#ifdef WITNESS_WOKEN
	assert(false);
#endif
	goto poll
}

/* nobody can move: nothing may wait */
active proctype Monitor()
{
	timeout -> assert(head[0] == mem[TAIL] && head[1] == mem[TAIL + 1])
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2)
	od
}
