/* SPDX-License-Identifier: MIT */
/*
 * Revocation (unregister against direct copies by peers).
 *
 * CPU 0, 1: executors of initiator A, which registered for membarrier
 * CPU 2, 3: executors of initiator B, which could not and uses a full fence
 * CPU 4:    the owner
 *
 * membarrier is weaker here than one atomic moment: the owner's buffer drains,
 * then each registered executor's buffer is empty once, in either order, while
 * everybody else keeps running. That is what the kernel promises.
 *
 * aarch64: the slot is loaded with acquire (a read operation's loads must not
 * move before it), the word is cleared with release, the owner reads the words
 * with acquire. The store of the word may be relaxed.
 */
/* large */
/* mutants: SHARED_WORD NO_MEMBARRIER OWNER_UNFENCED NO_FENCE SLOT_FIRST SCAN_FIRST EARLY_CLEAR RELAXED_CLEAR */
/* variants: PSO */
/* witnesses: COPY_AND_REFUSAL OWNER_WAITED */

#ifdef MUTANT_RELAXED_CLEAR
#define PSO
#endif

#define NCPU	5
#define DEPTH	4
#define OWNER	4
#ifdef PSO
#define OPS(e)	1
#else
#define OPS(e)	(e == 0 -> 2 : 1)	/* the second finds the word used before */
#endif

#define GEN	0			/* the slot: generation and state */
#define WORD	1			/* four activity words, 1 = names the slot */
#define DATA	5			/* two bytes of the segment */
#define NMEM	7

bool returned;				/* unregister has returned */

#ifdef WITNESS_COPY_AND_REFUSAL
bool copied;
#define NOTE_COPIED	copied = true
#define NOTE_REFUSED	assert(!copied)
#else
#define NOTE_COPIED	skip
#define NOTE_REFUSED	skip
#endif
#ifdef WITNESS_OWNER_WAITED
bool waited;
#endif

inline landed(CPU_)
{
	assert(!(t_a >= DATA && returned))
}

#include "tso.h"

#ifdef MUTANT_SHARED_WORD
#define MYWORD(e)	(WORD + (e < 2 -> 0 : e))
#else
#define MYWORD(e)	(WORD + e)
#endif

/* full fence if membarrier does not cover us, else a compiler fence only */
#ifdef MUTANT_NO_FENCE
#define fence(e)	true
#else
#define fence(e)	(e < 2 || drained(e))
#endif

inline announce(e)
{
	store(e, MYWORD(e), 1)
}

inline withdraw(e)
{
#ifdef MUTANT_RELAXED_CLEAR
	store(e, MYWORD(e), 0)
#else
	store_rel(e, MYWORD(e), 0)
#endif
}

proctype Executor(byte e)
{
	byte ops, g;

	do
	:: ops < OPS(e) ->
		ops++;
#ifdef MUTANT_SLOT_FIRST
		load(e, GEN, g);
		announce(e);
		fence(e);
#else
		announce(e);
		atomic { fence(e) -> load(e, GEN, g) }
#endif
		if
		:: g == 0 ->		/* the expected generation: copy */
#ifdef MUTANT_EARLY_CLEAR
			withdraw(e);
#endif
			atomic {
				assert(!returned);	/* touching unmapped memory faults */
				store(e, DATA, 1)
			}
			/* two puts in one step: seen by nobody before they drain */
			atomic {
				assert(!returned);
				store(e, DATA + 1, 1);
				NOTE_COPIED;
#ifndef MUTANT_EARLY_CLEAR
				withdraw(e)
#endif
			}
		:: else ->
			g = 0;
			NOTE_REFUSED;
			withdraw(e)
		fi
	:: else -> break
	od
}

inline bump()
{
	store(OWNER, GEN, 1)
}

inline membarrier()
{
#ifndef MUTANT_OWNER_UNFENCED
	drained(OWNER);
#endif
	if
	:: drained(0) -> drained(1)
	:: drained(1) -> drained(0)
	fi
}

inline scan()
{
#ifdef WITNESS_OWNER_WAITED
	waited = mem[WORD] | mem[WORD + 1] | mem[WORD + 2] | mem[WORD + 3];
#endif
	mem[WORD] == 0;
	mem[WORD + 1] == 0;
	mem[WORD + 2] == 0;
	mem[WORD + 3] == 0
}

active proctype Owner()
{
	atomic { run Executor(0); run Executor(1); run Executor(2); run Executor(3) }
#ifdef MUTANT_SCAN_FIRST
	scan();
	bump();
	membarrier();
#else
	bump();
#ifndef MUTANT_NO_MEMBARRIER
	membarrier();
#endif
	scan();
#endif
	returned = true;
#ifdef WITNESS_OWNER_WAITED
	assert(!waited)
#endif
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1) DRAIN(2) DRAIN(3) DRAIN(4)
	od
}
