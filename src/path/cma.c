/* SPDX-License-Identifier: MIT */
/*
 * Path cma: one process_vm_writev or _readv per copy. The remote vector lies in the link's
 * board, where the owner can shorten it (revocation). Two remote pieces, body and last word,
 * since a single one sometimes lands backwards.
 */
#include <errno.h>

#include "base/copy.h"
#include "os/life.h"
#include "os/vm.h"
#include "path/path.h"

static size_t tail_of(uint64_t addr, size_t len)
{
	return xtal_copy_tail_len((const void *)(uintptr_t)addr, len);
}

static void set_iov(struct xtal_shared_iov *iov, uint64_t base, uint64_t len)
{
	atomic_store_explicit(&iov->base, base, memory_order_relaxed);
	atomic_store_explicit(&iov->len, len, memory_order_relaxed);
}

/* The two pieces stand there before the announcement, and are not written again: whatever the
 * owner zeroes afterwards stays zero (model: test/model/revoke_cma.pml). */
static void cma_prepare(struct xtal_shared_iov *iov, uint64_t addr, size_t len, bool tail)
{
	size_t last = tail_of(addr, len);

	set_iov(&iov[0], addr, tail ? 0 : len - last);
	set_iov(&iov[1], addr + len - last, last);
}

/* One system call over the prepared pieces [first, first + n). */
static int transfer(const struct xtal_reach *reach, struct xtal_shared_iov *iov, unsigned first,
		    unsigned n, bool put, void *local, size_t len)
{
	struct xtal_os_iov mine = { .base = local, .len = len };
	const struct xtal_os_iov *theirs = (const struct xtal_os_iov *)(const void *)&iov[first];
	int64_t moved;

	if (!len)
		return 0;
	if (xtal_os_life_ended(reach->life))
		return -ESRCH;
	moved = put ? xtal_os_peer_write(reach->pid, &mine, 1, theirs, n)
		    : xtal_os_peer_read(reach->pid, &mine, 1, theirs, n);
	if (moved < 0)
		return (int)moved;
	if ((size_t)moved == len)
		return 0;
	/* Shortened by the owner? If not, a page is missing behind what moved. */
	for (unsigned i = first; i < first + n; i++)
		if (!atomic_load_explicit(&iov[i].len, memory_order_relaxed))
			return -ESTALE;
	return -EFAULT;
}

static int cma_put_body(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len)
{
	return transfer(reach, iov, 0, 1, true, (void *)(uintptr_t)src, len - tail_of(addr, len));
}

static int cma_put_tail(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len)
{
	size_t tail = tail_of(addr, len);

	return transfer(reach, iov, 1, 1, true, (uint8_t *)(uintptr_t)src + len - tail, tail);
}

static int cma_put(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   const void *src, size_t len)
{
	int err;

	if (tail_of(addr, len) == len)
		return cma_put_tail(reach, iov, addr, src, len);
#if defined(__x86_64__)
	if (tail_of(addr, len))
		return transfer(reach, iov, 0, 2, true, (void *)(uintptr_t)src, len);
#endif
	err = cma_put_body(reach, iov, addr, src, len);
	/* Weakly ordered machines: the two copies need a barrier between them. */
	atomic_thread_fence(memory_order_seq_cst);
	return err ? err : cma_put_tail(reach, iov, addr, src, len);
}

static int cma_get(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   void *dst, size_t len)
{
	size_t tail = tail_of(addr, len);

	if (tail == len)
		return transfer(reach, iov, 1, 1, false, dst, len);
	return transfer(reach, iov, 0, tail ? 2 : 1, false, dst, len);
}

static int cma_atomic(const struct xtal_reach *reach, uint64_t addr, struct xtal_atomic *a)
{
	(void)reach;
	(void)addr;
	(void)a;
	return -EOPNOTSUPP;
}

extern const struct xtal_path_ops xtal_path_cma;
const struct xtal_path_ops xtal_path_cma = {
	.prepare = cma_prepare,
	.put_body = cma_put_body,
	.put_tail = cma_put_tail,
	.put = cma_put,
	.get = cma_get,
	.atomic = cma_atomic,
};
