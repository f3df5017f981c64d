/* SPDX-License-Identifier: MIT */
/*
 * Memory with explicit store buffers, for the Promela models of this folder.
 *
 * A model defines NCPU, NMEM (addresses are small numbers), DEPTH (1..4) and
 * the inline landed(CPU_), then includes this file. Every CPU owns a FIFO of
 * pending stores; the process Drain moves entries to memory at any moment it
 * likes. A load sees the CPU's own newest pending store, else memory.
 *
 * Default: TSO (x86-64). Stores leave in order, so a release is a plain store.
 *
 * PSO: the store side of aarch64. A plain store may overtake older stores to
 * other addresses; a release leaves only once everything older has left; taking
 * a lock or a relaxed read-modify-write does not drain the buffer.
 *
 * Not modelled, therefore assumed of the C code on aarch64: loads execute in
 * program order. Every load that a decision hangs on must be an acquire (ldar /
 * ldapr) or be followed by an acquire fence; a control dependency is enough
 * only for later stores, never for later loads.
 *
 * landed() runs at the very step at which a store becomes visible, with
 * t_a = address and t_v = value. Ghost variables belong there.
 */

typedef Buf {
	byte n;
	byte a[DEPTH];
	byte v[DEPTH];
#ifdef PSO
	bool r[DEPTH]
#endif
};

byte mem[NMEM];
Buf sb[NCPU];
hidden byte t_i, t_a, t_v;

#ifdef PSO
#define SET_REL(CPU_, I_, R_)	sb[CPU_].r[I_] = R_
#define COPY_REL(CPU_, I_)	sb[CPU_].r[I_] = sb[CPU_].r[I_ + 1]
#else
#define SET_REL(CPU_, I_, R_)	skip
#define COPY_REL(CPU_, I_)	skip
#endif

inline put(CPU_, AD_, VA_, REL_)
{
	d_step {
		sb[CPU_].n < DEPTH;
		t_v = VA_;
		t_a = AD_;
		SET_REL(CPU_, sb[CPU_].n, REL_);
		sb[CPU_].a[sb[CPU_].n] = t_a;
		sb[CPU_].v[sb[CPU_].n] = t_v;
		sb[CPU_].n++;
		t_a = 0;
		t_v = 0
	}
}

#define store(CPU_, AD_, VA_)		put(CPU_, AD_, VA_, 0)
#define store_rel(CPU_, AD_, VA_)	put(CPU_, AD_, VA_, 1)

inline load(CPU_, AD_, OUT_)
{
	d_step {
		t_a = AD_;
		t_v = mem[t_a];
		t_i = 0;
		do
		:: t_i < sb[CPU_].n ->
			if
			:: sb[CPU_].a[t_i] == t_a -> t_v = sb[CPU_].v[t_i]
			:: else
			fi;
			t_i++
		:: else -> break
		od;
		OUT_ = t_v;
		t_a = 0;
		t_v = 0;
		t_i = 0
	}
}

/* full fence; also what an acq_rel read-modify-write waits for */
#define drained(CPU_)	(sb[CPU_].n == 0)

#ifdef PSO
#define relaxed(CPU_)	true
#else
#define relaxed(CPU_)	drained(CPU_)	/* x86: every locked instruction is a full fence */
#endif

/* one test-and-set lock: xchg.acq to take it, a release store to drop it */
inline lock(CPU_, AD_)
{
	d_step { relaxed(CPU_) && mem[AD_] == 0; mem[AD_] = 1 }
}
#define unlock(CPU_, AD_)	store_rel(CPU_, AD_, 0)

/* the entry K_ of a buffer becomes visible */
#define FLUSH(CPU_, K_, MAY_) \
	:: d_step { \
		sb[CPU_].n > K_ && (MAY_); \
		t_a = sb[CPU_].a[K_]; \
		t_v = sb[CPU_].v[K_]; \
		t_i = K_; \
		do \
		:: t_i + 1 < sb[CPU_].n -> \
			sb[CPU_].a[t_i] = sb[CPU_].a[t_i + 1]; \
			sb[CPU_].v[t_i] = sb[CPU_].v[t_i + 1]; \
			COPY_REL(CPU_, t_i); \
			t_i++ \
		:: else -> break \
		od; \
		sb[CPU_].n--; \
		sb[CPU_].a[t_i] = 0; \
		sb[CPU_].v[t_i] = 0; \
		SET_REL(CPU_, t_i, 0); \
		mem[t_a] = t_v; \
		landed(CPU_); \
		t_a = 0; t_v = 0; t_i = 0 \
	}

#ifdef PSO
#define OTHER_(C_, K_, J_)	(sb[C_].a[K_] != sb[C_].a[J_])
#define MAY1_(C_)	(!sb[C_].r[1] && OTHER_(C_, 1, 0))
#define MAY2_(C_)	(!sb[C_].r[2] && OTHER_(C_, 2, 0) && OTHER_(C_, 2, 1))
#define MAY3_(C_)	(!sb[C_].r[3] && OTHER_(C_, 3, 0) && OTHER_(C_, 3, 1) && OTHER_(C_, 3, 2))
#if DEPTH == 1
#define DRAIN(C_)	FLUSH(C_, 0, true)
#elif DEPTH == 2
#define DRAIN(C_)	FLUSH(C_, 0, true) FLUSH(C_, 1, MAY1_(C_))
#elif DEPTH == 3
#define DRAIN(C_)	FLUSH(C_, 0, true) FLUSH(C_, 1, MAY1_(C_)) FLUSH(C_, 2, MAY2_(C_))
#else
#define DRAIN(C_)	FLUSH(C_, 0, true) FLUSH(C_, 1, MAY1_(C_)) FLUSH(C_, 2, MAY2_(C_)) FLUSH(C_, 3, MAY3_(C_))
#endif
#else
#define DRAIN(C_)	FLUSH(C_, 0, true)
#endif
