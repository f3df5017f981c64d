/* SPDX-License-Identifier: MIT */
/*
 * What the program does to adopted memory afterwards: nobody is let in to what was unmapped, once
 * munmap() has returned; and after a harmless change all goes on.
 *
 * CPU 0: a peer that begins operations at any time
 * CPU 1: the program; it drops pages (harmless), then unmaps
 * CPU 2: the reader, which the program's call waits for
 * CPU 3: the mover, which lets peers in again
 */
/* mutants: READ_FIRST NO_GATE GONE_LATE BLIND */
/* variants: PSO */
/* witnesses: LIVE_AGAIN REFUSED UNMAPPED */

#define NCPU	4
#define DEPTH	2
#define PEER	0
#define READER	2
#define MOVER	3

#define SLOT	0	/* the word: even: live, odd: moving */
#define GATE	1
#define GONE	2
#define DISTURBED 3
#define NMEM	4

byte event, seen;	/* the kernel's: the newest, the newest that was read */
bool returned;		/* munmap() has */

inline landed(CPU_)
{
	skip
}

#include "tso.h"

/* a compare-and-swap that finds the word so; seq_cst */
inline step_if(cpu, odd)
{
	d_step {
		drained(cpu);
		if
		:: mem[SLOT] % 2 == odd -> mem[SLOT] = mem[SLOT] + 1
		:: else
		fi
	}
}

active proctype Program()
{
	event = 1;
	seen == 1;
	event = 2;
	atomic { seen == 2 -> returned = true }
}

inline read_event()
{
	atomic { gone = (event == 2); seen = event }
}

active proctype Reader()
{
	bool gone;

	do
	:: seen < 2 ->
		event > seen;
		lock(READER, GATE);
#ifdef MUTANT_READ_FIRST
		read_event();
		step_if(READER, 0);
#else
		step_if(READER, 0);
		read_event();
#endif
#ifdef MUTANT_GONE_LATE
		unlock(READER, GATE);
#endif
		if
		:: gone -> store(READER, GONE, 1)
		:: else
		fi;
#ifndef MUTANT_GONE_LATE
		unlock(READER, GATE);
#endif
		d_step { drained(READER); mem[DISTURBED] = 1 }
	:: else -> break
	od
}

active proctype Mover()
{
	byte gone;

	do
	:: gone == 0 ->
		d_step { drained(MOVER) && mem[DISTURBED] == 1; mem[DISTURBED] = 0 };
#ifndef MUTANT_NO_GATE
		lock(MOVER, GATE);
#endif
		load(MOVER, GONE, gone);
#ifdef MUTANT_BLIND
		step_if(MOVER, 1);
#else
		if
		:: gone == 0 -> step_if(MOVER, 1)
		:: else
		fi;
#endif
#ifdef WITNESS_LIVE_AGAIN
		assert(mem[SLOT] != 2);
#endif
#ifndef MUTANT_NO_GATE
		unlock(MOVER, GATE)
#endif
	:: else -> break
	od;
#ifdef WITNESS_UNMAPPED
	assert(!returned)
#endif
}

active proctype Peer()
{
	byte ops, word;
	bool late;

	do
	:: ops < 3 ->
		late = returned;
		load(PEER, SLOT, word);
		if
		:: word % 2 == 0 -> assert(!late)
		:: else ->
#ifdef WITNESS_REFUSED
			assert(false);
#endif
			skip
		fi;
		ops++
	:: else -> break
	od
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2) DRAIN(3)
	od
}
