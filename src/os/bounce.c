/* SPDX-License-Identifier: MIT */
/*
 * Guarded copies of short pieces, with one end in memory of our own: the kernel reads or writes
 * an object whose page we have mapped, which takes half as long as process_vm_writev() on
 * ourselves. See vm.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "os/sock.h"
#include "os/vm.h"

#define SIZE     (4u * 1024)
#define LEAST_FD 512 /* a program that closes what it does not know shall not get our number */

static struct {
	struct xtal_lock lock; /* held by whoever uses the page; nobody waits for it */
	int fd;
	void *page; /* NULL: not open */
} bounce = { .fd = -1 };

int xtal_os_bounce_open(int *fd)
{
	void *page;
	int low, high, err = xtal_os_object_create("xtal-bounce", SIZE, true, &low, &page);

	if (err)
		return err;
	high = fcntl(low, F_DUPFD_CLOEXEC, LEAST_FD);
	err = high < 0 ? -errno : 0;
	/* Or each read looks at the clock: 80 ns of 520. Where it is refused, it is only slower. */
	if (!err)
		fcntl(high, F_SETFL, O_RDWR | O_NOATIME);
	xtal_os_close(low);
	if (err) {
		xtal_os_unmap(page, SIZE);
		return err;
	}
	xtal_lock(&bounce.lock);
	bounce.fd = *fd = high;
	bounce.page = page;
	xtal_unlock(&bounce.lock);
	return 0;
}

void xtal_os_bounce_close(void)
{
	xtal_lock(&bounce.lock);
	if (bounce.page)
		xtal_os_unmap(bounce.page, SIZE);
	bounce.page = NULL;
	bounce.fd = -1;
	xtal_unlock(&bounce.lock);
}

void xtal_os_bounce_fork_child(void)
{
	bounce.page = NULL; /* was not inherited */
	bounce.fd = -1;
	atomic_store(&bounce.lock.held, 0);
}

static bool enter(size_t len)
{
	if (len - 1 >= SIZE || !xtal_trylock(&bounce.lock))
		return false;
	if (bounce.page)
		return true;
	xtal_unlock(&bounce.lock);
	return false;
}

/* Without libc's wrappers, into which sanitizers put looks at the memory. */
int xtal_os_guarded_put(void *dst, const void *src, size_t len)
{
	long n;

	if (!enter(len))
		return xtal_os_guarded_copy(dst, src, len);
	memcpy(bounce.page, src, len);
	n = syscall(SYS_pread64, bounce.fd, dst, len, 0l);
	xtal_unlock(&bounce.lock);
	/* Whatever else went wrong, the other way tells, or does better. */
	return n == (long)len ? 0 : xtal_os_guarded_copy(dst, src, len);
}

int xtal_os_guarded_get(void *dst, const void *src, size_t len)
{
	long n;

	if (!enter(len))
		return xtal_os_guarded_copy(dst, src, len);
	n = syscall(SYS_pwrite64, bounce.fd, src, len, 0l);
	if (n == (long)len)
		memcpy(dst, bounce.page, len);
	xtal_unlock(&bounce.lock);
	return n == (long)len ? 0 : xtal_os_guarded_copy(dst, src, len);
}
