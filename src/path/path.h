/* SPDX-License-Identifier: MIT */
/*
 * The path interface: how bytes get to and from one granted range of a peer's memory. Direct
 * paths (self, map, cma) are executed by the caller through the table below; the message paths
 * (ring, tcp) have carriers of their own.
 */
#ifndef XTAL_PATH_PATH_H
#define XTAL_PATH_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "path/iov.h"

enum xtal_reach_kind {
	XTAL_REACH_NONE = 0,
	XTAL_REACH_DIRECT,  /* plain loads and stores (self, sealed map) */
	XTAL_REACH_GUARDED, /* mapped here, but pages may vanish: copies go through the kernel */
	XTAL_REACH_CMA,     /* process_vm_* */
	XTAL_REACH_MESSAGE, /* only the owner's agent reaches it */
	XTAL_REACH_KINDS,
};

/* How one executor reaches a range, for one operation. */
struct xtal_reach {
	enum xtal_reach_kind kind;
	uint8_t *base;                /* DIRECT, GUARDED: where lo is mapped here */
	uint64_t lo;                  /* owner's address that base stands for */
	int pid;                      /* CMA */
	const _Atomic uint32_t *life; /* CMA: whether that is still the owner, see os/life.h */
};

/* DIRECT, GUARDED: where the owner's address is mapped here. */
static inline uint8_t *xtal_reach_place(const struct xtal_reach *reach, uint64_t addr)
{
	return reach->base + (addr - reach->lo);
}

enum xtal_atomic_op {
	XTAL_ATOMIC_CAS,
	XTAL_ATOMIC_FAA,
	XTAL_ATOMIC_SWAP,
	XTAL_ATOMIC_SUB,
	XTAL_ATOMIC_AND,
	XTAL_ATOMIC_OR,
	XTAL_ATOMIC_XOR,
};

struct xtal_atomic {
	enum xtal_atomic_op op;
	unsigned size;       /* 4, 8; CAS also 16 */
	uint64_t operand[2]; /* new value of CAS and SWAP, else what is added ... xored */
	uint64_t compare[2];
	uint64_t old[2]; /* out */
};

/*
 * Common to put and get: [addr, addr+len) lies in the granted range; the local memory is
 * ours to touch; iov belongs to this executor alone and was prepared for the same range. Thread safe. They do not block, but for
 * page faults. Errors:
 *   -EFAULT  the local or the remote memory is not (all) there; a prefix may have moved
 *   -ESRCH   the owner's process is gone
 *   -ESTALE  the owner shortened the vector: look at the slot, then try again
 *   -EPERM, -ENOSYS  the kernel refuses
 */
struct xtal_path_ops {
	/* Writes down what put or get (or, with tail, put_tail) of this range will touch, for the
	 * owner to see. Before the announcement: the owner may then shorten it. */
	void (*prepare)(struct xtal_shared_iov *iov, uint64_t addr, size_t len, bool tail);
	/* Local bytes to the peer; all but the last word. */
	int (*put_body)(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len);
	/* The last word of the same range, after everything before it. */
	int (*put_tail)(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len);
	/* Body and tail. */
	int (*put)(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   const void *src, size_t len);
	int (*get)(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   void *dst, size_t len);
	/* A CPU atomic on naturally aligned memory. -EOPNOTSUPP: only the owner's agent can. */
	int (*atomic)(const struct xtal_reach *reach, uint64_t addr, struct xtal_atomic *a);
};

/* Indexed by kind; NONE and MESSAGE have no entry (NULL). */
extern const struct xtal_path_ops *const xtal_path_table[XTAL_REACH_KINDS];

/* Executes a on memory of this process; addr is aligned. Used by DIRECT and by the agent. */
void xtal_atomic_execute(void *addr, struct xtal_atomic *a);

#endif
