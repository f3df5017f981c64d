/* SPDX-License-Identifier: MIT */
/*
 * Adoption (and undoing it, variant UNDO) as a revocation: while pages are exchanged nobody who was
 * let in before may still be at the old ones.
 *
 * CPU 0: a peer; it was told how to reach the memory before the move
 * CPU 1: an operation of the owner itself
 * CPU 2: the mover
 *
 * By address: the kernel looks the page up, waits when there is none, and stores to it later (a
 * page once looked up stays the one that is stored to). By mapping: a store to the object's page.
 * To adopt is to go from by address to by mapping. UNDO: the peer has the mapping before.
 *
 * Assumed of the kernel: taking a page away flushes the translations of all our threads, so that
 * their older stores have landed, but not those of other processes; membarrier as in revoke.pml.
 */
/* mutants: NO_MEMBARRIER NO_WAIT NOT_MOVING LIVE_FIRST COPY_FIRST LOOK_FIRST EARLY_CLEAR RELAXED_CLEAR */
/* variants: PSO UNDO PSO,UNDO */
/* witnesses: TOLD_MOVING MOVER_WAITED STORED_AFTER */

#ifdef MUTANT_RELAXED_CLEAR
#define PSO
#endif

#define NCPU	3
#define DEPTH	3
#define MOVER	2

#define SLOT	0	/* 0: live, 1: moving, 2: live again */
#define WORD	1	/* two activity words */
#define AT	3	/* the page at the address: OLD, 0 none, NEW */
#define OLD	4	/* two bytes */
#define NEW	6
#define NMEM	8

byte ended;
#ifdef WITNESS_MOVER_WAITED
bool waited;
#endif

inline landed(CPU_)
{
	skip
}

#include "tso.h"

/* to the page that stands at the address now */
inline by_address(e)
{
	atomic { mem[AT] != 0 -> page = mem[AT] };
	atomic { store(e, page + e, 1); page = 0 }
}

/* what it was told in the beginning, and afterwards */
inline copy(e, g)
{
#ifdef UNDO
	if
	:: g == 0 && e == 0 -> store(e, OLD, 1)	/* the object's page */
	:: else -> by_address(e)
	fi
#else
	if
	:: g == 2 && e == 0 -> store(e, NEW, 1)
	:: else -> by_address(e)
	fi
#endif
}

inline withdraw(e)
{
#ifdef MUTANT_RELAXED_CLEAR
	store(e, WORD + e, 0)
#else
	store_rel(e, WORD + e, 0)
#endif
}

proctype Executor(byte e)
{
	byte g, page;

again:
#ifdef MUTANT_LOOK_FIRST
	load(e, SLOT, g);
	store(e, WORD + e, 1);
#else
	store(e, WORD + e, 1);
	load(e, SLOT, g);
#endif
	if
	:: g == 1 ->
#ifdef WITNESS_TOLD_MOVING
		assert(false);
#endif
		withdraw(e);
		atomic { mem[SLOT] != 1 -> g = 0; goto again }
	:: else
	fi;
#ifdef WITNESS_STORED_AFTER
	assert(g != 2);
#endif
#ifdef MUTANT_EARLY_CLEAR
	withdraw(e);
#endif
	copy(e, g);
#ifndef MUTANT_EARLY_CLEAR
	withdraw(e);
#endif
	atomic { drained(e) -> ended++ }
}

inline membarrier()
{
	drained(MOVER);
	if
	:: drained(0) -> drained(1)
	:: drained(1) -> drained(0)
	fi
}

inline scan()
{
#ifdef WITNESS_MOVER_WAITED
	waited = mem[WORD] | mem[WORD + 1];
#endif
	mem[WORD] == 0;
	mem[WORD + 1] == 0
}

/* page by page; each is out of reach meanwhile */
inline exchange()
{
	atomic { drained(1) -> mem[AT] = 0 };
	mem[NEW] = mem[OLD];
	mem[NEW + 1] = mem[OLD + 1];
	mem[AT] = NEW
}

active proctype Mover()
{
	mem[AT] = OLD;
	atomic { run Executor(0); run Executor(1) }
#ifdef MUTANT_COPY_FIRST
	exchange();
#endif
#ifndef MUTANT_NOT_MOVING
	store(MOVER, SLOT, 1);
#endif
#ifndef MUTANT_NO_MEMBARRIER
	membarrier();
#else
	drained(MOVER);
#endif
#ifndef MUTANT_NO_WAIT
	scan();
#endif
#ifdef MUTANT_LIVE_FIRST
	store_rel(MOVER, SLOT, 2);
	drained(MOVER);
#endif
#ifndef MUTANT_COPY_FIRST
	exchange();
#endif
	store_rel(MOVER, SLOT, 2);
	atomic { drained(MOVER) && ended == 2 -> assert(mem[NEW] == 1 && mem[NEW + 1] == 1) }
#ifdef WITNESS_MOVER_WAITED
	assert(!waited)
#endif
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2)
	od
}
