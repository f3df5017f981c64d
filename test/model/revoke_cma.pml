/* SPDX-License-Identifier: MIT */
/*
 * Revocation over cma (process_vm_writev), with a peer that may be stopped for
 * ever in the middle of an operation.
 *
 * CPU 0: the executor thread of the initiator; CPU 1: the owner.
 * The initiator runs two operations in one lane: one on the segment that the
 * owner revokes, then one on another segment that nobody revokes.
 *
 * Kernel, assumed: the remote iovec array is copied once, at system call entry,
 * element by element; a stop takes effect only in user mode, thread by thread;
 * /proc shows a *thread* as stopped only once that has happened.
 *
 * aarch64: the lengths and the word may be relaxed stores (membarrier or the
 * fallback's fence orders them), the slot is loaded with acquire.
 *
 * Two remote elements (body, last word). Variant TWO_CALLS: one call each, with
 * a barrier between them, as on aarch64.
 */
/* mutants: NO_ZERO NO_WAIT STOPPED_LEADER UNFENCED_ZERO LENGTH_LATE SHORT_IS_DONE NO_MEMBARRIER */
/* variants: PSO TWO_CALLS PSO,TWO_CALLS */
/* witnesses: RETURN_WHILE_STOPPED RETURN_BY_CLEAR SHORT */

#define NCPU	2
#define DEPTH	4
#define OWNER	1

#define GEN	0			/* generation of the owner's slot */
#define WORD	1			/* 0 idle, 1 this slot, 2 the other segment */
#define LEN0	2			/* remote iovec in the shared board */
#define LEN1	3
#define NMEM	4

bool returned;
bool inkernel;				/* the executor is inside the system call */
bool stopped;				/* ... and reached the executor thread */
bool leader_stopped;			/* ... and reached the group leader */
byte other;				/* bytes landed in the other segment */

inline landed(CPU_)
{
	skip
}

#include "tso.h"

#define awake	(!stopped)

/* kernel context: stores of the copy are visible at once, the worst case */
inline copy(op, bytes)
{
	d_step {
		if
		:: bytes > 0 && op == 1 -> assert(!returned)
		:: bytes > 0 && op == 2 -> other++
		:: else
		fi
	}
}

#define ENTER	atomic { awake -> inkernel = true }
#define LEAVE	inkernel = false

inline put_lengths()
{
	atomic { awake -> store(0, LEN0, 1) };
	atomic { awake -> store(0, LEN1, 1) }
}

active proctype Initiator()
{
	byte op = 1, g, l0, l1;

again:	do
	:: op <= 2 ->
#ifndef MUTANT_LENGTH_LATE
		put_lengths();
#endif
		atomic { awake -> store(0, WORD, op) };
		if		/* compiler fence only; the other segment has a generation of its own */
		:: op == 1 -> atomic { awake -> load(0, GEN, g) }
		:: else -> g = 0
		fi;
		if
		:: g == 0 ->
#ifdef MUTANT_LENGTH_LATE
			put_lengths();
#endif
			other = 0;
			ENTER;
			load(0, LEN0, l0);
#ifdef TWO_CALLS
			copy(op, l0);
			LEAVE;
			ENTER;
			load(0, LEN1, l1);
			copy(op, l1);
			LEAVE;
#else
			load(0, LEN1, l1);
			copy(op, l0);
			copy(op, l1);
			LEAVE;
#endif
#ifdef WITNESS_SHORT
			assert(!(op == 2 && l0 + l1 < 2));
#endif
#ifndef MUTANT_SHORT_IS_DONE
			if
			:: l0 + l1 < 2 ->	/* short: from the top, the generation decides */
				atomic { awake -> store_rel(0, WORD, 0) };
				goto again
			:: else
			fi;
#endif
			assert(op != 2 || other == 2)	/* reported as done: all of it is there */
		:: else
		fi;
		atomic { awake -> store_rel(0, WORD, 0) };
		op++;
		g = 0; l0 = 0; l1 = 0
	:: else -> break
	od
}

#ifdef MUTANT_STOPPED_LEADER
#define seen_stopped	leader_stopped
#else
#define seen_stopped	stopped
#endif

active proctype Owner()
{
	store(OWNER, GEN, 1);
	drained(OWNER);
#ifndef MUTANT_NO_MEMBARRIER
	drained(0);			/* membarrier */
#endif
	if
	:: mem[WORD] != 1		/* idle or elsewhere */
	:: mem[WORD] == 1 ->
#ifndef MUTANT_NO_ZERO
		store(OWNER, LEN0, 0);
		store(OWNER, LEN1, 0);
#ifndef MUTANT_UNFENCED_ZERO
		drained(OWNER);
#endif
#endif
#ifndef MUTANT_NO_WAIT
		if
		:: mem[WORD] != 1
#ifdef WITNESS_RETURN_BY_CLEAR
			; assert(false)
#endif
		:: seen_stopped
#ifdef WITNESS_RETURN_WHILE_STOPPED
			; assert(false)
#endif
		fi
#endif
	fi;
	returned = true
}

/* at most one SIGSTOP; SIGCONT comes at any moment or when nothing else can move */
active proctype Signals()
{
	bool forever;

	if
	:: skip
	:: forever = true
	:: goto done
	fi;
	do
	:: atomic { !stopped && !inkernel -> stopped = true }
	:: atomic { !leader_stopped -> leader_stopped = true }
	:: !forever -> break
	:: timeout -> break
	od;
	atomic {
		stopped = false;
		leader_stopped = false
	};
done:	skip
}

/* the owner never depends on a stopped peer */
active proctype Monitor()
{
	timeout -> assert(returned)
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1)
	od
}
