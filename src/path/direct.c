/* SPDX-License-Identifier: MIT */
/*
 * Paths self and map: the peer's pages are in our address space. Direct when they cannot
 * vanish (own process, sealed object); guarded when the owner may truncate them under us:
 * then the kernel copies, and a missing page is an error instead of a signal.
 */
#include <errno.h>

#include "base/copy.h"
#include "base/export.h"
#include "os/vm.h"
#include "path/path.h"

#if defined(__x86_64__)
typedef unsigned __int128 xtal_u128;

static void cas16(void *addr, struct xtal_atomic *a)
{
	uint64_t lo = a->compare[0], hi = a->compare[1];

	__asm__ volatile("lock cmpxchg16b %2"
			 : "+a"(lo), "+d"(hi), "+m"(*(xtal_u128 *)addr)
			 : "b"(a->operand[0]), "c"(a->operand[1])
			 : "cc", "memory");
	a->old[0] = lo;
	a->old[1] = hi;
}
#elif defined(__aarch64__)
static void cas16(void *addr, struct xtal_atomic *a)
{
	uint64_t lo, hi;
	uint32_t failed;

	/* The pair is stored back also when it differs: only then was the load single-copy. */
	__asm__ volatile("1:	ldaxp	%0, %1, [%3]\n"
			 "	cmp	%0, %4\n"
			 "	ccmp	%1, %5, #0, eq\n"
			 "	b.ne	2f\n"
			 "	stlxp	%w2, %6, %7, [%3]\n"
			 "	cbnz	%w2, 1b\n"
			 "	b	3f\n"
			 "2:	stlxp	%w2, %0, %1, [%3]\n"
			 "	cbnz	%w2, 1b\n"
			 "3:\n"
			 : "=&r"(lo), "=&r"(hi), "=&r"(failed)
			 : "r"(addr), "r"(a->compare[0]), "r"(a->compare[1]), "r"(a->operand[0]),
			   "r"(a->operand[1])
			 : "cc", "memory");
	a->old[0] = lo;
	a->old[1] = hi;
}
#else
#error "16-byte compare and swap: no code for this machine"
#endif

static void cas(void *addr, struct xtal_atomic *a)
{
	if (a->size == 16) {
		cas16(addr, a);
	} else if (a->size == 8) {
		uint64_t expected = a->compare[0];

		__atomic_compare_exchange_n((uint64_t *)addr, &expected, a->operand[0], false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		a->old[0] = expected;
	} else {
		uint32_t expected = (uint32_t)a->compare[0];

		__atomic_compare_exchange_n((uint32_t *)addr, &expected, (uint32_t)a->operand[0],
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		a->old[0] = expected;
	}
}

static uint64_t fetch8(uint64_t *addr, enum xtal_atomic_op op, uint64_t v)
{
	switch (op) {
	case XTAL_ATOMIC_CAS:
	case XTAL_ATOMIC_FAA:
		break;
	case XTAL_ATOMIC_SWAP:
		return __atomic_exchange_n(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_SUB:
		return __atomic_fetch_sub(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_AND:
		return __atomic_fetch_and(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_OR:
		return __atomic_fetch_or(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_XOR:
		return __atomic_fetch_xor(addr, v, __ATOMIC_SEQ_CST);
	}
	return __atomic_fetch_add(addr, v, __ATOMIC_SEQ_CST);
}

static uint32_t fetch4(uint32_t *addr, enum xtal_atomic_op op, uint32_t v)
{
	switch (op) {
	case XTAL_ATOMIC_CAS:
	case XTAL_ATOMIC_FAA:
		break;
	case XTAL_ATOMIC_SWAP:
		return __atomic_exchange_n(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_SUB:
		return __atomic_fetch_sub(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_AND:
		return __atomic_fetch_and(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_OR:
		return __atomic_fetch_or(addr, v, __ATOMIC_SEQ_CST);
	case XTAL_ATOMIC_XOR:
		return __atomic_fetch_xor(addr, v, __ATOMIC_SEQ_CST);
	}
	return __atomic_fetch_add(addr, v, __ATOMIC_SEQ_CST);
}

void xtal_atomic_execute(void *addr, struct xtal_atomic *a)
{
	a->old[1] = 0;
	if (a->op == XTAL_ATOMIC_CAS)
		cas(addr, a);
	else if (a->size == 8)
		a->old[0] = fetch8(addr, a->op, a->operand[0]);
	else
		a->old[0] = fetch4(addr, a->op, (uint32_t)a->operand[0]);
}

static void no_prepare(struct xtal_shared_iov *iov, uint64_t addr, size_t len, bool tail)
{
	(void)iov;
	(void)addr;
	(void)len;
	(void)tail;
}

static int direct_put_body(const struct xtal_reach *reach, struct xtal_shared_iov *iov,
			   uint64_t addr, const void *src, size_t len)
{
	(void)iov;
	xtal_copy_body(xtal_reach_place(reach, addr), src, len);
	return 0;
}

static int direct_put_tail(const struct xtal_reach *reach, struct xtal_shared_iov *iov,
			   uint64_t addr, const void *src, size_t len)
{
	(void)iov;
	xtal_copy_tail(xtal_reach_place(reach, addr), src, len);
	return 0;
}

static int direct_put(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		      const void *src, size_t len)
{
	(void)iov;
	xtal_copy(xtal_reach_place(reach, addr), src, len);
	return 0;
}

static int direct_get(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		      void *dst, size_t len)
{
	(void)iov;
	xtal_copy_loose(dst, xtal_reach_place(reach, addr), len);
	return 0;
}

static int direct_atomic(const struct xtal_reach *reach, uint64_t addr, struct xtal_atomic *a)
{
	xtal_atomic_execute(xtal_reach_place(reach, addr), a);
	return 0;
}

static const struct xtal_path_ops direct_ops = {
	.prepare = no_prepare,
	.put_body = direct_put_body,
	.put_tail = direct_put_tail,
	.put = direct_put,
	.get = direct_get,
	.atomic = direct_atomic,
};

static int guarded_put_body(const struct xtal_reach *reach, struct xtal_shared_iov *iov,
			    uint64_t addr, const void *src, size_t len)
{
	uint8_t *dst = xtal_reach_place(reach, addr);

	(void)iov;
	return xtal_os_guarded_copy(dst, src, len - xtal_copy_tail_len(dst, len));
}

static int guarded_put_tail(const struct xtal_reach *reach, struct xtal_shared_iov *iov,
			    uint64_t addr, const void *src, size_t len)
{
	uint8_t *dst = xtal_reach_place(reach, addr);
	size_t tail = xtal_copy_tail_len(dst, len);

	(void)iov;
	return xtal_os_guarded_copy(dst + len - tail, (const uint8_t *)src + len - tail, tail);
}

static int guarded_put(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		       const void *src, size_t len)
{
	int err = guarded_put_body(reach, iov, addr, src, len);

	atomic_thread_fence(memory_order_release);
	return err ? err : guarded_put_tail(reach, iov, addr, src, len);
}

static int guarded_get(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		       void *dst, size_t len)
{
	(void)iov;
	return xtal_os_guarded_copy(dst, xtal_reach_place(reach, addr), len);
}

/* The page is looked at first; a truncation between look and access is the residual. */
static int guarded_atomic(const struct xtal_reach *reach, uint64_t addr, struct xtal_atomic *a)
{
	uint8_t *dst = xtal_reach_place(reach, addr);
	int err = xtal_os_probe_write_now(dst);

	if (!err)
		xtal_atomic_execute(dst, a);
	return err;
}

static const struct xtal_path_ops guarded_ops = {
	.prepare = no_prepare,
	.put_body = guarded_put_body,
	.put_tail = guarded_put_tail,
	.put = guarded_put,
	.get = guarded_get,
	.atomic = guarded_atomic,
};

extern const struct xtal_path_ops xtal_path_cma;

const struct xtal_path_ops *const xtal_path_table[XTAL_REACH_KINDS] = {
	[XTAL_REACH_DIRECT] = &direct_ops,
	[XTAL_REACH_GUARDED] = &guarded_ops,
	[XTAL_REACH_CMA] = &xtal_path_cma,
};
