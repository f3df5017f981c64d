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

#include "base/copy.h"
#include "base/lock.h"
#include "os/sock.h"
#include "os/vm.h"

#define SIZE (16u * 1024) /* bytes at once */
#define ROOM (SIZE + 2 * XTAL_COPY_STEP)

static struct {
	struct xtal_lock lock; /* held by whoever uses the page; nobody waits for it */
	int fd;
	void *page; /* NULL: not open */
} bounce = { .fd = -1 };

int xtal_os_bounce_open(int *fd)
{
	void *page;
	int object, err = xtal_os_object_create("xtal-bounce", ROOM, true, &object, &page);

	if (err)
		return err;
	if (object < XTAL_OS_ASIDE) { /* the program might get our number: not for this */
		xtal_os_close(object);
		xtal_os_unmap(page, ROOM);
		return -EMFILE;
	}
	/* Or each read looks at the clock: 80 ns of 520. Where it is refused, it is only slower. */
	fcntl(object, F_SETFL, O_RDWR | O_NOATIME);
	xtal_lock(&bounce.lock);
	bounce.fd = *fd = object;
	bounce.page = page;
	xtal_unlock(&bounce.lock);
	return 0;
}

void xtal_os_bounce_close(void)
{
	xtal_lock(&bounce.lock);
	if (bounce.page)
		xtal_os_unmap(bounce.page, ROOM);
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

static bool enter(void)
{
	if (!xtal_trylock(&bounce.lock))
		return false;
	if (bounce.page)
		return true;
	xtal_unlock(&bounce.lock);
	return false;
}

/* More than fits at once goes piece by piece only where the kernel's own copy would crawl. */
static bool suits(const void *dst, const void *src, size_t len)
{
	return len - 1 < SIZE || (len && xtal_copy_crawls(dst, src));
}

/* Where in the object the bytes lie on their way, so that neither copy crawls: the user's side has the
 * same place in a cache line, and ours (dst or src) is not close. */
static size_t place(const void *user, const void *dst, const void *src, size_t len)
{
	size_t at = (uintptr_t)user % XTAL_COPY_STEP;
	const char *page = bounce.page;

	if (len < XTAL_COPY_STEP)
		return 0;
	if (dst ? xtal_copy_crawls(dst, page + at) : xtal_copy_crawls(page + at, src))
		at += XTAL_COPY_STEP;
	return at;
}

/* Both without libc's wrappers, into which sanitizers put looks at the memory. */
static bool put_some(void *dst, const void *src, size_t len)
{
	size_t at = place(dst, NULL, src, len);

	memcpy((char *)bounce.page + at, src, len);
	return syscall(SYS_pread64, bounce.fd, dst, len, at) == (long)len;
}

static bool get_some(void *dst, const void *src, size_t len)
{
	size_t at = place(src, dst, NULL, len);

	if (syscall(SYS_pwrite64, bounce.fd, src, len, at) != (long)len)
		return false;
	memcpy(dst, (char *)bounce.page + at, len);
	return true;
}

static int through(bool (*some)(void *dst, const void *src, size_t len), void *dst, const void *src,
		   size_t len)
{
	size_t done = 0, n;

	if (suits(dst, src, len) && enter()) {
		for (; done < len; done += n) {
			n = len - done < SIZE ? len - done : SIZE;
			if (!some((char *)dst + done, (const char *)src + done, n))
				break;
		}
		xtal_unlock(&bounce.lock);
	}
	/* Whatever else went wrong, the other way tells, or does better. */
	return done == len ? 0
			   : xtal_os_guarded_copy((char *)dst + done, (const char *)src + done,
						  len - done);
}

int xtal_os_guarded_put(void *dst, const void *src, size_t len)
{
	return through(put_some, dst, src, len);
}

int xtal_os_guarded_get(void *dst, const void *src, size_t len)
{
	return through(get_some, dst, src, len);
}
