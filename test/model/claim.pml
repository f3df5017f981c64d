/* SPDX-License-Identifier: MIT */
/*
 * Messages of the shared ring, claimed by compare-and-swap.
 *
 * CPU 0: the initiator; CPU 1: the target, which may die at any step.
 * The initiator sends MESSAGES requests one after another through the same slot
 * and reuses the slot the moment an operation has ended, even a cancelled one
 * that the target has not looked at yet. Hence the sequence number in the state
 * word, and the header is read only after the claim.
 *
 * Between claim and DONE the initiator can only wait: for DONE or for the death
 * of the target (a dead target's stores have all landed). A target *stopped*
 * there is the residual of section 6; it is not modelled.
 *
 * aarch64: POSTED and DONE are release stores, both swaps acq_rel, the wait for
 * DONE loads with acquire.
 */
/* mutants: PLAIN_CANCEL PLAIN_CLAIM REPORT_LOSER STALE_HEADER DONE_EARLY LATE_CANCEL RELAXED_POST RELAXED_DONE */
/* variants: PSO NO_SEQUENCE PSO,NO_SEQUENCE */
/* witnesses: CANCELLED CANCEL_LOST EXECUTED TARGET_DIED */

#if defined(MUTANT_RELAXED_POST) || defined(MUTANT_RELAXED_DONE)
#define PSO
#endif
#ifdef MUTANT_STALE_HEADER
#define NO_SEQUENCE
#endif

#define NCPU	2
#define DEPTH	4
#define MESSAGES	3

#define STATE	0
#define HEADER	1
#define DATA	2			/* two words of the target's segment */
#define NMEM	4

#define POSTED	1
#define CLAIMED	2
#define DONE	3
#define CANCELLED	4
#ifdef NO_SEQUENCE
#define WORD(kind, seq)	(kind)
#else
#define WORD(kind, seq)	(8 * (seq) + kind)
#endif

byte ended;				/* the last operation that has ended */
bool dying;				/* the target executes nothing any more */
bool dead;				/* ... its stores have landed, its pidfd is readable */
byte claims, cancels;			/* of the operation outstanding */
byte landed_words;

/* nothing lands after its operation has ended */
inline landed(CPU_)
{
	if
	:: t_a >= DATA ->
		assert(t_v == ended + 1);
		landed_words++
	:: else
	fi
}

#include "tso.h"

/* acq_rel: everything older is visible first */
inline cas(CPU_, FROM_, TO_, WON_)
{
	d_step {
		drained(CPU_);
		if
		:: mem[STATE] == (FROM_) -> mem[STATE] = TO_; WON_ = true
		:: else -> WON_ = false
		fi
	}
}

inline finish(seq)
{
	assert(ended + 1 == seq);	/* once, and in order */
	assert(claims + cancels <= 1);
	ended = seq;
	claims = 0;
	cancels = 0;
	landed_words = 0
}

active proctype Initiator()
{
	byte s = 1, w;
	bool won;

	do
	:: s <= MESSAGES ->
		store(0, HEADER, s);
#ifdef MUTANT_RELAXED_POST
		store(0, STATE, WORD(POSTED, s));
#else
		store_rel(0, STATE, WORD(POSTED, s));
#endif
		if
		:: mem[STATE] == WORD(DONE, s) && drained(0)
		:: true ->		/* time-out */
#ifdef MUTANT_PLAIN_CANCEL
			load(0, STATE, w);
			won = (w == WORD(POSTED, s));
			w = 0;
			if
			:: won -> store(0, STATE, WORD(CANCELLED, s))
			:: else
			fi;
#else
#ifdef MUTANT_LATE_CANCEL
			cas(0, WORD(CLAIMED, s), WORD(CANCELLED, s), won);
			if
			:: won
			:: else -> cas(0, WORD(POSTED, s), WORD(CANCELLED, s), won)
			fi;
#else
			cas(0, WORD(POSTED, s), WORD(CANCELLED, s), won);
#endif
#endif
#ifdef MUTANT_REPORT_LOSER
			won = true;
#endif
			if
			:: won ->
#ifdef WITNESS_CANCELLED
				assert(false);
#endif
				cancels++;
				atomic { finish(s); s++; won = false };
				goto next
			:: else
			fi;
#ifdef WITNESS_CANCEL_LOST
			assert(false);
#endif
			if
			:: mem[STATE] == WORD(DONE, s)
			:: dead && mem[STATE] != WORD(DONE, s) ->
#ifdef WITNESS_TARGET_DIED
				assert(false);
#endif
				atomic { finish(s); s++ };	/* in error */
				goto next
			fi
		fi;
		atomic {
#ifdef WITNESS_EXECUTED
			assert(false);
#endif
			assert(landed_words == 2);	/* reported when the bytes are in place */
			finish(s);
			s++
		};
next:		skip
	:: else -> break
	od
}

proctype Target()
{
	byte w, s, h;
	bool won;

end_wait:
	do
	:: mem[STATE] % 8 == POSTED ->
		load(1, STATE, w);
		s = w / 8;
		w = w % 8;
#ifdef MUTANT_STALE_HEADER
		load(1, HEADER, h);
#endif
		if
		:: w == POSTED ->
#ifdef MUTANT_PLAIN_CLAIM
			won = true;
			store(1, STATE, WORD(CLAIMED, s));
#else
			cas(1, WORD(POSTED, s), WORD(CLAIMED, s), won);
#endif
		:: else
		fi;
		if
		:: won ->
			claims++;
#ifndef MUTANT_STALE_HEADER
			load(1, HEADER, h);
#endif
#ifndef NO_SEQUENCE
			assert(h == s);
#endif
#ifdef MUTANT_DONE_EARLY
			store_rel(1, STATE, WORD(DONE, s));
#endif
			store(1, DATA, h);
			store(1, DATA + 1, h);
#ifdef MUTANT_RELAXED_DONE
			store(1, STATE, WORD(DONE, s))
#else
#ifndef MUTANT_DONE_EARLY
			store_rel(1, STATE, WORD(DONE, s))
#endif
#endif
		:: else
		fi;
		d_step { w = 0; s = 0; h = 0; won = false }
	od unless { dying }
}

active proctype Death()
{
	run Target();
	if
	:: dying = true;
		atomic { drained(1) -> dead = true }
	:: skip
	fi
}

active proctype Drain()
{
end:	do
	DRAIN(0) DRAIN(1)
	od
}
