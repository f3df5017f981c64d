/* SPDX-License-Identifier: MIT */
/*
 * Path cma: one process_vm_writev or _readv per copy. The remote vector lies in the link's
 * board, where the owner can shorten it (revocation). Two remote pieces, body and last word,
 * since a single one sometimes lands backwards.
 */
#include <errno.h>

#include "base/copy.h"
#include "os/vm.h"
#include "path/iov.h"
#include "path/path.h"

/* The kernel moves at most this much per call (0x7ffff000); stay below, page aligned. */
#define CALL_LIMIT (1ull << 30)

static void set_iov(struct xtal_shared_iov *iov, uint64_t base, uint64_t len)
{
	atomic_store_explicit(&iov->base, base, memory_order_relaxed);
	/* Partner: the owner's zeroing store, in revoke.c; the kernel reads after both. */
	atomic_store_explicit(&iov->len, len, memory_order_release);
}

/* Moves [addr, addr+len) with one or two remote pieces, in as many calls as it takes. */
static int transfer(const struct xtal_reach *reach, struct xtal_shared_iov *iov, bool put,
		    uint64_t addr, uint8_t *local, size_t len, size_t tail)
{
	while (len) {
		size_t now = len > CALL_LIMIT ? CALL_LIMIT : len;
		size_t last = now == len && now > tail ? tail : 0;
		struct xtal_os_iov mine = { .base = local, .len = now };
		const struct xtal_os_iov *theirs = (const struct xtal_os_iov *)(const void *)iov;
		int64_t n;

		set_iov(&iov[0], addr, now - last);
		set_iov(&iov[1], addr + now - last, last);
		if (put)
			n = xtal_os_peer_write(reach->pid, &mine, 1, theirs, last ? 2 : 1);
		else
			n = xtal_os_peer_read(reach->pid, &mine, 1, theirs, last ? 2 : 1);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return -ESTALE;
		if ((size_t)n < now) {
			/* Shortened by the owner, or a page is missing behind the prefix: the
			 * next call tells which. */
			if (!atomic_load_explicit(&iov[0].len, memory_order_relaxed))
				return -ESTALE;
		}
		addr += (uint64_t)n;
		local += n;
		len -= (size_t)n;
	}
	return 0;
}

static size_t tail_of(uint64_t addr, size_t len)
{
	return xtal_copy_tail_len((const void *)(uintptr_t)addr, len);
}

static int cma_put_body(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len)
{
	return transfer(reach, iov, true, addr, (uint8_t *)(uintptr_t)src,
			len - tail_of(addr, len), 0);
}

static int cma_put_tail(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
			const void *src, size_t len)
{
	size_t tail = tail_of(addr, len), body = len - tail;

	return transfer(reach, iov, true, addr + body, (uint8_t *)(uintptr_t)src + body, tail, 0);
}

static int cma_put(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   const void *src, size_t len)
{
#if defined(__x86_64__)
	return transfer(reach, iov, true, addr, (uint8_t *)(uintptr_t)src, len, tail_of(addr, len));
#else
	int err = cma_put_body(reach, iov, addr, src, len);

	/* Weakly ordered machines: the two copies need a barrier between them. */
	atomic_thread_fence(memory_order_seq_cst);
	return err ? err : cma_put_tail(reach, iov, addr, src, len);
#endif
}

static int cma_get(const struct xtal_reach *reach, struct xtal_shared_iov *iov, uint64_t addr,
		   void *dst, size_t len)
{
	return transfer(reach, iov, false, addr, dst, len, 0);
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
	.put_body = cma_put_body,
	.put_tail = cma_put_tail,
	.put = cma_put,
	.get = cma_get,
	.atomic = cma_atomic,
};
