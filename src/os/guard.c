/* SPDX-License-Identifier: MIT */
/*
 * Copies and probes that answer -EFAULT where a plain access would crash: the kernel does the
 * access for us. Also the same system calls aimed at another process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/cancel.h"
#include "os/proc.h"
#include "os/vm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define MAX_PIECE  ((size_t)1 << 30) /* below the kernel's limit of a call, 2 GiB - 1 page */
#define PIPE_PIECE ((size_t)64 << 10)
#define MAX_IOV    8 /* what the kernel takes without allocating */

_Static_assert(sizeof(struct xtal_os_iov) == sizeof(struct iovec) &&
		       offsetof(struct xtal_os_iov, base) == offsetof(struct iovec, iov_base) &&
		       offsetof(struct xtal_os_iov, len) == offsetof(struct iovec, iov_len),
	       "xtal_os_iov is passed to the kernel");

/* Set once process_vm_writev on ourselves was refused (seccomp, emulators); never cleared. */
static atomic_bool self_refused;

int64_t xtal_os_peer_write(int pid, const struct xtal_os_iov *local, unsigned nlocal,
			   const struct xtal_os_iov *remote, unsigned nremote)
{
	long n;

	if (nlocal > MAX_IOV || nremote > MAX_IOV)
		return -EINVAL;
	n = syscall(SYS_process_vm_writev, (long)pid, local, (unsigned long)nlocal, remote,
		    (unsigned long)nremote, 0ul);
	return n < 0 ? -errno : n;
}

int64_t xtal_os_peer_read(int pid, const struct xtal_os_iov *local, unsigned nlocal,
			  const struct xtal_os_iov *remote, unsigned nremote)
{
	long n;

	if (nlocal > MAX_IOV || nremote > MAX_IOV)
		return -EINVAL;
	n = syscall(SYS_process_vm_readv, (long)pid, local, (unsigned long)nlocal, remote,
		    (unsigned long)nremote, 0ul);
	return n < 0 ? -errno : n;
}

/* Moves a prefix of up to MAX_PIECE bytes. Returns its length (> 0) or -errno. */
static int64_t copy_by_vm(char *dst, const char *src, size_t len)
{
	struct xtal_os_iov from = { .base = (void *)(uintptr_t)src, .len = len };
	struct xtal_os_iov to = { .base = dst, .len = len };
	int64_t n;

	if (len > MAX_PIECE)
		from.len = to.len = MAX_PIECE;
	n = xtal_os_peer_write(xtal_os_pid(), &from, 1, &to, 1);
	return n == 0 ? -EFAULT : n;
}

/* Empties n bytes of the pipe into dst. */
static int drain_pipe(int fd, char *dst, size_t n)
{
	while (n > 0) {
		ssize_t got = read(fd, dst, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EFAULT;
		dst += got;
		n -= (size_t)got;
	}
	return 0;
}

/*
 * The kernel copies into and out of a pipe. One pipe per call: a cached one would be shared
 * with forked children, and threads would have to queue for it.
 */
static int copy_by_pipe(char *dst, const char *src, size_t len)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int fd[2], ret = 0;

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	while (len > 0) {
		ssize_t n = write(fd[1], src, len < PIPE_PIECE ? len : PIPE_PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ret = n < 0 ? -errno : -EFAULT;
			break;
		}
		ret = drain_pipe(fd[0], dst, (size_t)n);
		if (ret)
			break;
		dst += n;
		src += n;
		len -= (size_t)n;
	}
	close(fd[0]);
	close(fd[1]);
	return ret;
}

int xtal_os_guarded_copy(void *dst, const void *src, size_t len)
{
	char *to = dst;
	const char *from = src;

	if ((uintptr_t)to > UINTPTR_MAX - len || (uintptr_t)from > UINTPTR_MAX - len)
		return -EFAULT;
	/* Relaxed: a hint; whoever misses it asks the kernel again. */
	while (len > 0 && !atomic_load_explicit(&self_refused, memory_order_relaxed)) {
		int64_t n = copy_by_vm(to, from, len);

		if (n == -EFAULT)
			return -EFAULT;
		if (n == -ENOSYS || n == -EPERM)
			atomic_store_explicit(&self_refused, true, memory_order_relaxed);
		if (n < 0)
			break;
		to += n;
		from += n;
		len -= (size_t)n;
	}
	return len > 0 ? copy_by_pipe(to, from, len) : 0;
}

static int add_zero_to(void *addr)
{
	static unsigned private_word;
	uintptr_t target = (uintptr_t)addr & ~(uintptr_t)3;
	/* Adds 0; wakes waiters of the word only if it was the unlikely -2048, and that is
	 * allowed (futexes wake spuriously). */
	unsigned add_zero = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, -2048 & 0xfff);
	long ret =
		syscall(SYS_futex, &private_word, FUTEX_WAKE_OP_PRIVATE, 0, 0ul, target, add_zero);

	return ret < 0 ? -errno : 0;
}

int xtal_os_probe_write(void *addr)
{
	uintptr_t page = (uintptr_t)addr & ~(xtal_os_page_size() - 1);
	int err = add_zero_to(addr);

	/* That fault may not wait; where userfaultfd watches (adopted memory) it must. */
	if (err == -EFAULT && !syscall(SYS_madvise, page, xtal_os_page_size(), MADV_POPULATE_WRITE))
		err = add_zero_to(addr);
	return err;
}

/* A look takes less, unless whoever looks loses his processor, as happens on the way out of a system call. */
#define FRESH_NS 2000u

int xtal_os_probe_write_now(void *addr)
{
	int err = 0;

	for (unsigned tries = 0; tries < 16; tries++) {
		uint64_t began = xtal_os_now();

		err = xtal_os_probe_write(addr);
		if (err || xtal_os_now() - began < FRESH_NS)
			break;
	}
	return err;
}

static int probe_mapped(const void *addr, size_t len)
{
	unsigned char resident[1024]; /* one byte per page; the values do not matter */
	size_t page = xtal_os_page_size(), chunk = sizeof(resident) * page;
	uintptr_t at = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + len;

	if (len == 0)
		return 0;
	if (end < (uintptr_t)addr)
		return -EFAULT;
	while (at < end) {
		size_t n = end - at < chunk ? end - at : chunk;
		int ret;

		do {
			ret = mincore((void *)at, n, resident) ? -errno : 0;
		} while (ret == -EAGAIN);
		if (ret)
			return ret == -ENOMEM || ret == -EINVAL ? -EFAULT : ret;
		if (end - at <= chunk)
			break;
		at += n;
	}
	return 0;
}

int xtal_os_probe_access(const void *addr, size_t len, bool write)
{
	size_t page = xtal_os_page_size();
	uintptr_t at = (uintptr_t)addr, end = at + len;
	int err = probe_mapped(addr, len);
	unsigned char byte;

	/* Pages without rights are mapped too: try each. */
	while (!err && at < end) {
		if (write)
			err = xtal_os_probe_write((void *)(at & ~(uintptr_t)3));
		else
			err = xtal_os_guarded_copy(&byte, (const void *)at, 1);
		at = (at & ~(page - 1)) + page;
	}
	return err;
}
