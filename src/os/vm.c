/* SPDX-License-Identifier: MIT */
/*
 * Shareable objects and mappings. Copies that survive bad addresses are in guard.c, what the
 * kernel knows about a mapping in backing.c.
 */
#define _GNU_SOURCE
#include "os/vm.h"

#include "os/cancel.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/quiet.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* Linux 6.3 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define MAX_OBJECT_NAME 200 /* the kernel takes 249 */

size_t xtal_os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int create_memfd(const char *name)
{
	char cut[MAX_OBJECT_NAME + 1];
	int fd;

	snprintf(cut, sizeof(cut), "%s", name);
	fd = memfd_create(cut, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* older than Linux 6.3 */
		fd = memfd_create(cut, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : xtal_os_aside(fd);
}

static int map_at(void *at, size_t len, int prot, int flags, int fd, uint64_t off, void **out)
{
	void *p;

	if (off > INT64_MAX)
		return -EINVAL;
	p = mmap(at, len, prot, flags, fd, (off_t)off);
	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

static int keep_from_children(void *addr, size_t len)
{
	int ret;

	if (madvise(addr, len, MADV_DONTFORK) == 0)
		return 0;
	ret = -errno;
	munmap(addr, len);
	return ret;
}

static int size_and_seal(int fd, size_t len)
{
	struct xtal_os_quiet quiet;
	int err;

	xtal_os_quiet_begin(&quiet);
	err = ftruncate(fd, (off_t)len) ? -errno : 0;
	xtal_os_quiet_end(&quiet, err);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))
		return -errno;
	return 0;
}

int xtal_os_object_create(const char *name, size_t len, bool dontfork, int *fd, void **map)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	size_t page = xtal_os_page_size();
	int object, ret;

	if (len == 0 || len > (size_t)INT64_MAX - page)
		return -EINVAL;
	len = (len + page - 1) & ~(page - 1);
	object = create_memfd(name);
	if (object < 0)
		return object;
	ret = size_and_seal(object, len);
	if (ret)
		goto close_object;
	if (map && dontfork)
		ret = xtal_os_map(object, 0, len, true, map);
	else if (map)
		ret = map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, object, 0, map);
	if (ret)
		goto close_object;
	*fd = object;
	return 0;

close_object:
	close(object);
	return ret;
}

int xtal_os_reopen(int fd, int flags, int *out)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	char path[40];
	int new_fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	do {
		new_fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	} while (new_fd < 0 && errno == EINTR);
	new_fd = xtal_os_aside(new_fd);
	if (new_fd < 0)
		return -errno;
	*out = new_fd;
	return 0;
}

/* The read-only fd comes first: nothing has changed when that fails. */
int xtal_os_object_publish_readonly(int fd, int *ro_fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int ro, ret = xtal_os_reopen(fd, O_RDONLY, &ro);

	if (ret) { /* no /proc here: the seal alone forbids writes, maps and holes by this fd */
		ro = xtal_os_aside(fcntl(fd, F_DUPFD_CLOEXEC, 3));
		if (ro < 0)
			return -errno;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE)) {
		ret = -errno;
		close(ro);
		return ret;
	}
	*ro_fd = ro;
	return 0;
}

bool xtal_os_sealed_shrink(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int xtal_os_object_size(int fd, uint64_t *size)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*size = (uint64_t)st.st_size;
	return 0;
}

int xtal_os_map(int fd, uint64_t off, size_t len, bool writable, void **out)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *p = NULL;
	int ret = map_at(NULL, len, prot, MAP_SHARED, fd, off, &p);

	if (ret == 0)
		ret = keep_from_children(p, len);
	if (ret == 0)
		*out = p;
	return ret;
}

int xtal_os_map_private(size_t len, void **out)
{
	void *p = NULL;
	int ret = map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &p);

	if (ret == 0)
		ret = keep_from_children(p, len);
	if (ret == 0)
		*out = p;
	return ret;
}

void xtal_os_unmap(void *addr, size_t len)
{
	munmap(addr, len);
}

int xtal_os_map_over(void *addr, size_t len, int fd, uint64_t off)
{
	void *p;

	return map_at(addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, off, &p);
}
