/* SPDX-License-Identifier: MIT */
/* Exchange of a mapping's object under userfaultfd write protection. */
#include "os/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cancel.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif

/* Kernel-mode faults handled too when we may; else system calls that write into the range
 * during the exchange get EFAULT. */
static int open_uffd(void)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM };
	long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	if (ioctl((int)fd, UFFDIO_API, &api)) {
		int err = -errno;

		close((int)fd);
		return err;
	}
	return (int)fd;
}

static int protect(int uffd, void *addr, size_t len)
{
	struct uffdio_register reg = { .range = { (uintptr_t)addr, len },
				       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .range = reg.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	if (ioctl(uffd, UFFDIO_REGISTER, &reg) || ioctl(uffd, UFFDIO_WRITEPROTECT, &wp))
		return -errno;
	return 0;
}

/* Only what was ever written is copied; holes stay holes. Raw calls from here to the new mapping:
 * another thread may sit in a fault with whatever locks the C library, or a sanitizer, has. */
static int copy_data(const uint8_t *from, size_t len, int old_fd, int new_fd)
{
	off_t at = 0;

	while ((size_t)at < len) {
		off_t begin = lseek(old_fd, at, SEEK_DATA), end;

		if (begin < 0 && errno == ENXIO)
			return 0;
		if (begin < 0)
			return -errno;
		end = lseek(old_fd, begin, SEEK_HOLE);
		if (end < 0)
			return -errno;
		for (at = begin; at < end;) {
			long n = syscall(SYS_pwrite64, new_fd, from + at, (size_t)(end - at), at);

			if (n < 0 && errno != EINTR)
				return -errno;
			if (n > 0)
				at += n;
		}
	}
	return 0;
}

int xtal_os_fence_replace(void *addr, size_t len, int old_fd, int new_fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int uffd = open_uffd(), err;

	if (uffd < 0)
		return uffd;
	err = protect(uffd, addr, len);
	if (!err)
		err = copy_data(addr, len, old_fd, new_fd);
	/* Replacing the mapping ends its registration, and wakes those who wait in a fault. */
	if (!err && syscall(SYS_mmap, addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			    new_fd, 0l) == -1)
		err = -errno;
	close(uffd); /* on failure: unregisters, which lifts the protection */
	return err;
}
