/* SPDX-License-Identifier: MIT */
/* userfaultfd by raw system calls; see uffd.h. */
#include "os/uffd.h"
#include "os/cancel.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

/* The kernel's struct uffdio_move (Linux 6.8), under a name of our own: headers vary. */
struct move {
	uint64_t dst, src, len, mode;
	int64_t moved;
};
#define MOVE_IOCTL      _IOWR(UFFDIO, 0x05, struct move)
#define MOVE_DONT_WAKE  1u
#define MOVE_PASS_HOLES 2u

static long raw_ioctl(int fd, unsigned long what, void *arg)
{
	return syscall(SYS_ioctl, fd, what, arg) < 0 ? -errno : 0;
}

/* By the system call, or where only the device is permitted to us, by that. */
static int open_any(bool *kernel_faults)
{
	int flags = O_CLOEXEC | O_NONBLOCK, device;
	long fd = syscall(SYS_userfaultfd, flags);

	*kernel_faults = true;
	if (fd >= 0)
		return xtal_os_aside((int)fd);
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (device >= 0) {
		fd = syscall(SYS_ioctl, device, USERFAULTFD_IOC_NEW, (unsigned long)flags);
		close(device);
		if (fd >= 0)
			return xtal_os_aside((int)fd);
	}
	*kernel_faults = false;
	fd = syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	return fd < 0 ? -errno : xtal_os_aside((int)fd);
}

int xtal_os_uffd_open(unsigned what, bool *kernel_faults)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct uffdio_api api = { .api = UFFD_API };
	bool kernel;
	int fd = open_any(&kernel), err;

	if (fd < 0)
		return fd;
	if (what & XTAL_OS_UFFD_EVENTS)
		api.features |= UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
				UFFD_FEATURE_EVENT_REMOVE;
	if (what & XTAL_OS_UFFD_SHMEM)
		api.features |= UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_MINOR_SHMEM;
	if (what & XTAL_OS_UFFD_MOVE)
		api.features |= UFFD_FEATURE_MOVE;
	err = (int)raw_ioctl(fd, UFFDIO_API, &api);
	if (err) {
		close(fd);
		return err;
	}
	*kernel_faults = kernel;
	return fd;
}

int xtal_os_uffd_register(int fd, uint64_t at, uint64_t len, unsigned traps)
{
	struct uffdio_register r = { .range = { at, len } };

	r.mode = (traps & XTAL_OS_TRAP_MISSING ? UFFDIO_REGISTER_MODE_MISSING : 0) |
		 (traps & XTAL_OS_TRAP_WRITE ? UFFDIO_REGISTER_MODE_WP : 0) |
		 (traps & XTAL_OS_TRAP_MINOR ? UFFDIO_REGISTER_MODE_MINOR : 0);
	return (int)raw_ioctl(fd, UFFDIO_REGISTER, &r);
}

int xtal_os_uffd_unregister(int fd, uint64_t at, uint64_t len)
{
	struct uffdio_range r = { at, len };

	return (int)raw_ioctl(fd, UFFDIO_UNREGISTER, &r);
}

int xtal_os_uffd_wake(int fd, uint64_t at, uint64_t len)
{
	struct uffdio_range r = { at, len };

	return (int)raw_ioctl(fd, UFFDIO_WAKE, &r);
}

static int move(int fd, uint64_t to, uint64_t from, uint64_t len, uint64_t mode, uint64_t *moved)
{
	int err = 0;

	*moved = 0;
	while (*moved < len && !err) {
		struct move m = {
			.dst = to + *moved, .src = from + *moved, .len = len - *moved, .mode = mode
		};

		err = (int)raw_ioctl(fd, MOVE_IOCTL, &m);
		if (!err)
			m.moved = (int64_t)m.len;
		if (m.moved > 0)
			*moved += (uint64_t)m.moved;
		/* A part is done: the rest tells why. */
		if (err == -EAGAIN && m.moved > 0)
			err = 0;
	}
	return err;
}

int xtal_os_uffd_move(int fd, uint64_t to, uint64_t from, uint64_t len, uint64_t *moved)
{
	return move(fd, to, from, len, MOVE_DONT_WAKE | MOVE_PASS_HOLES, moved);
}

int xtal_os_uffd_move_all(int fd, uint64_t to, uint64_t from, uint64_t len, uint64_t *moved)
{
	return move(fd, to, from, len, MOVE_DONT_WAKE, moved);
}

int xtal_os_uffd_copy(int fd, uint64_t to, const void *from, uint64_t len, uint64_t *copied)
{
	*copied = 0;
	while (*copied < len) {
		struct uffdio_copy c = { .dst = to + *copied,
					 .src = (uintptr_t)from + *copied,
					 .len = len - *copied };
		int err = (int)raw_ioctl(fd, UFFDIO_COPY, &c);

		if (!err)
			c.copy = (int64_t)c.len;
		if (c.copy > 0)
			*copied += (uint64_t)c.copy;
		if (err && (err != -EAGAIN || c.copy <= 0))
			return err;
	}
	return 0;
}

int xtal_os_uffd_carry_on(int fd, uint64_t at, uint64_t len)
{
	uint64_t done = 0;

	while (done < len) {
		struct uffdio_continue c = { .range = { at + done, len - done } };
		int err = (int)raw_ioctl(fd, UFFDIO_CONTINUE, &c);

		if (!err)
			return 0;
		if (err != -EAGAIN || c.mapped <= 0)
			return err;
		done += (uint64_t)c.mapped;
	}
	return 0;
}

int xtal_os_uffd_zero(int fd, uint64_t at, uint64_t len)
{
	struct uffdio_zeropage z = { .range = { at, len } };

	return (int)raw_ioctl(fd, UFFDIO_ZEROPAGE, &z);
}

bool xtal_os_uffd_changing(int fd)
{
	/* No range of pages: but that is looked at later. */
	return xtal_os_uffd_zero(fd, 1, 1) == -EAGAIN;
}

int xtal_os_uffd_read(int fd, struct xtal_os_uffd_event *out)
{
	struct uffd_msg m;
	long n = syscall(SYS_read, fd, &m, sizeof(m));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n != (long)sizeof(m))
		return -EPROTO;
	*out = (struct xtal_os_uffd_event){ .kind = XTAL_OS_UFFD_OTHER };
	switch (m.event) {
	case UFFD_EVENT_PAGEFAULT:
		out->kind = XTAL_OS_UFFD_FAULT;
		out->from = m.arg.pagefault.address;
		break;
	case UFFD_EVENT_REMAP:
		out->kind = XTAL_OS_UFFD_REMAP;
		out->from = m.arg.remap.from;
		out->to = m.arg.remap.to;
		out->len = m.arg.remap.len;
		break;
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		out->kind = m.event == UFFD_EVENT_UNMAP ? XTAL_OS_UFFD_UNMAP : XTAL_OS_UFFD_REMOVE;
		out->from = m.arg.remove.start;
		out->len = m.arg.remove.end - m.arg.remove.start;
		break;
	default:
		break;
	}
	return 1;
}
