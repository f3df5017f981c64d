/* SPDX-License-Identifier: MIT */
/* What backs a range of our own memory, and how to get hold of that object. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/cancel.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/vm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* The kernel's struct procmap_query (Linux 6.11), under names of our own: headers vary. */
struct query {
	__u64 size;
	__u64 flags;
	__u64 addr;
	__u64 vma_start, vma_end;
	__u64 vma_flags;
	__u64 vma_page_size;
	__u64 vma_offset;
	__u64 inode;
	__u32 dev_major, dev_minor;
	__u32 name_size, build_id_size;
	__u64 name_addr, build_id_addr;
};

#define QUERY_IOCTL    _IOWR('f', 17, struct query)
#define QUERY_READABLE 0x01u
#define QUERY_WRITABLE 0x02u
#define QUERY_EXEC     0x04u
#define QUERY_SHARED   0x08u
#define QUERY_OR_NEXT  0x10u

/*
 * The fd of /proc/self/maps with the pid it belongs to, pid << 32 | fd; 0: none. It shows the
 * memory of whoever opened it, so a forked child needs its own. No lock: the fork may come
 * from a thread while another holds it.
 */
static _Atomic uint64_t cached_maps;

/* Set when this kernel does not know the question; never cleared. */
static atomic_bool no_query;

static int fd_of(uint64_t maps)
{
	return (int)(uint32_t)maps;
}

static int open_maps(void)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int fd;

	do {
		fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : xtal_os_above_stdio(fd);
}

/* 0, -ENOENT: nothing mapped there, else -errno. */
static int ask(int fd, struct query *q)
{
	return ioctl(fd, QUERY_IOCTL, q) ? -errno : 0;
}

/* Closes an fd inherited from the parent, unless the program made something else of it. */
static void close_inherited(int fd)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	struct query q = { .size = sizeof(q), .addr = (uintptr_t)&no_query };
	int ret = ask(fd, &q);

	if (ret == 0 || ret == -ENOENT || ret == -ESRCH)
		close(fd);
}

/* Puts a new fd into the place of old, or finds what another thread put there. */
static int renew_maps(uint64_t old, uint64_t *out)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int fd = open_maps();
	uint64_t fresh;

	if (fd < 0)
		return fd;
	fresh = (uint64_t)(uint32_t)xtal_os_pid() << 32 | (uint32_t)fd;
	/* Acquire, release: partners are this exchange and the load of other threads. */
	if (atomic_compare_exchange_strong_explicit(&cached_maps, &old, fresh, memory_order_acq_rel,
						    memory_order_acquire)) {
		if (old && old >> 32 != fresh >> 32)
			close_inherited(fd_of(old));
		*out = fresh;
		return 0;
	}
	close(fd);
	*out = old;
	return 0;
}

/*
 * Asks through the cached fd. A program may have closed it as one it does not know, and even
 * have reused the number: any answer but success and -ENOENT is checked with a new fd.
 */
static int ask_cached(struct query *q)
{
	/* Acquire: partner is the exchange in renew_maps. */
	uint64_t maps = atomic_load_explicit(&cached_maps, memory_order_acquire);
	int ret = -EBADF;

	if (maps && (int)(maps >> 32) == xtal_os_pid())
		ret = ask(fd_of(maps), q);
	if (ret == 0 || ret == -ENOENT)
		return ret;
	ret = renew_maps(maps, &maps);
	return ret ? ret : ask(fd_of(maps), q);
}

/* Anonymous memory has no object and no path, whatever name the kernel shows for it. */
static void set_path(struct xtal_os_backing *b, const char *name)
{
	size_t len = b->inode ? strlen(name) : 0;

	if (len >= sizeof(b->path)) /* too long to be used: opening it fails */
		len = sizeof(b->path) - 1;
	memcpy(b->path, name, len);
	b->path[len] = '\0';
}

static int find_by_query(const void *addr, bool or_next, struct xtal_os_backing *out)
{
	char name[PATH_MAX] = "";
	struct query q = { .size = sizeof(q),
			   .flags = or_next ? QUERY_OR_NEXT : 0,
			   .addr = (uintptr_t)addr,
			   .name_size = sizeof(name),
			   .name_addr = (uintptr_t)name };
	int ret = ask_cached(&q);

	if (ret)
		return ret;
	*out = (struct xtal_os_backing){
		.start = q.vma_start,
		.end = q.vma_end,
		.shared = q.vma_flags & QUERY_SHARED,
		.readable = q.vma_flags & QUERY_READABLE,
		.writable = q.vma_flags & QUERY_WRITABLE,
		.executable = q.vma_flags & QUERY_EXEC,
		.offset = q.vma_offset,
		.dev_major = q.dev_major,
		.dev_minor = q.dev_minor,
		.inode = q.inode,
	};
	set_path(out, q.name_size ? name : "");
	return 0;
}

/* /proc/self/maps writes a newline in a name as \012. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		bool newline = strncmp(from, "\\012", 4) == 0;

		*to = newline ? '\n' : *from;
		from += newline ? 4 : 1;
	}
	*to = '\0';
}

/* Parses one line when it holds addr (or lies behind it). */
static bool parse_line(char *line, uint64_t addr, bool or_next, struct xtal_os_backing *out)
{
	unsigned long long start, end, offset, inode;
	unsigned major_number, minor_number;
	char rights[5];
	int name = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset,
		   &major_number, &minor_number, &inode, &name) < 7 ||
	    (addr < start && !or_next) || addr >= end)
		return false;
	*out = (struct xtal_os_backing){
		.start = start,
		.end = end,
		.shared = rights[3] == 's',
		.readable = rights[0] == 'r',
		.writable = rights[1] == 'w',
		.executable = rights[2] == 'x',
		.offset = offset,
		.dev_major = major_number,
		.dev_minor = minor_number,
		.inode = inode,
	};
	unescape(line + name);
	set_path(out, line + name);
	return true;
}

static int find_in_text(const void *addr, bool or_next, struct xtal_os_backing *out)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	char buf[PATH_MAX * 4 + 128]; /* a path of newlines */
	size_t used = 0;
	int fd = open_maps(), ret = -ENOENT;

	if (fd < 0)
		return fd;
	while (ret == -ENOENT) {
		ssize_t n = read(fd, buf + used, sizeof(buf) - 1 - used);
		char *line = buf, *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ret = n < 0 ? -errno : -ENOENT;
			break;
		}
		used += (size_t)n;
		buf[used] = '\0';
		for (; ret == -ENOENT && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (parse_line(line, (uintptr_t)addr, or_next, out))
				ret = 0;
		}
		used -= (size_t)(line - buf);
		memmove(buf, line, used);
	}
	close(fd);
	return ret;
}

static int find(const void *addr, bool or_next, struct xtal_os_backing *out)
{
	int ret;

	/* Relaxed: a hint; whoever misses it asks the kernel again. */
	if (!atomic_load_explicit(&no_query, memory_order_relaxed)) {
		ret = find_by_query(addr, or_next, out);
		if (ret == 0 || ret == -ENOENT)
			return ret;
		if (ret == -ENOTTY || ret == -ENOSYS || ret == -EPERM || ret == -EINVAL)
			atomic_store_explicit(&no_query, true, memory_order_relaxed);
	}
	return find_in_text(addr, or_next, out);
}

int xtal_os_backing_find(const void *addr, struct xtal_os_backing *out)
{
	return find(addr, false, out);
}

int xtal_os_backing_next(const void *addr, struct xtal_os_backing *out)
{
	return find(addr, true, out);
}

/* btrfs and overlayfs show one device in maps and another in stat: map it to compare. */
int xtal_os_backing_prot(const struct xtal_os_backing *b)
{
	return (b->readable ? PROT_READ : 0) | (b->writable ? PROT_WRITE : 0) |
	       (b->executable ? PROT_EXEC : 0);
}

static bool maps_as(int fd, const struct xtal_os_backing *b)
{
	size_t page = xtal_os_page_size();
	void *p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE, fd, 0);
	struct xtal_os_backing other;
	bool same;

	if (p == MAP_FAILED)
		return false;
	same = xtal_os_backing_find(p, &other) == 0 && other.inode == b->inode &&
	       other.dev_major == b->dev_major && other.dev_minor == b->dev_minor;
	munmap(p, page);
	return same;
}

/* Regular files only: a device opened anew may be a different object. */
static bool may_be_object(int fd, const struct xtal_os_backing *b)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == b->inode;
}

static bool is_object(int fd, const struct xtal_os_backing *b)
{
	struct stat st;

	if (!may_be_object(fd, b) || fstat(fd, &st))
		return false;
	if (major(st.st_dev) == b->dev_major && minor(st.st_dev) == b->dev_minor)
		return true;
	return maps_as(fd, b);
}

/* Whether a mapping made through fd can be writable. */
static bool can_write(int fd)
{
	int flags = fcntl(fd, F_GETFL), seals = fcntl(fd, F_GET_SEALS);

	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) != O_RDWR)
		return false;
	return seals < 0 || !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

/*
 * A new fd for the object of fd: an open file of our own, writable if that can be had. When
 * the file's mode forbids to open it again, the program's open file has to be shared.
 */
static int duplicate(int fd, int *out, bool *writable)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int ret;

	if (xtal_os_reopen(fd, O_RDWR, out) == 0) {
		*writable = can_write(*out);
		if (*writable)
			return 0;
		close(*out);
	} else if (can_write(fd)) {
		*out = xtal_os_aside(fcntl(fd, F_DUPFD_CLOEXEC, 3));
		*writable = true;
		return *out < 0 ? -errno : 0;
	}
	*writable = false;
	ret = xtal_os_reopen(fd, O_RDONLY, out);
	if (ret == 0 || (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDONLY)
		return ret;
	*out = xtal_os_aside(fcntl(fd, F_DUPFD_CLOEXEC, 3));
	return *out < 0 ? -errno : 0;
}

/* The same for an fd that may be the object; a thread may reuse its number meanwhile. */
static int duplicate_object(int fd, const struct xtal_os_backing *b, int *out, bool *writable)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int ret;

	if (!may_be_object(fd, b))
		return -ENOENT;
	ret = duplicate(fd, out, writable);
	if (ret)
		return ret;
	if (is_object(*out, b))
		return 0;
	close(*out);
	return -ENOENT;
}

/* Among our own fds: the first that gives a writable one, else the first. */
static int open_from_fds(const struct xtal_os_backing *b, int *fd, bool *writable)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int best = -1;

	if (!dir)
		return -errno;
	*writable = false;
	while (!*writable && (e = readdir(dir))) {
		int candidate = atoi(e->d_name), fresh;
		bool fresh_writable;

		if (e->d_name[0] == '.' || candidate == dirfd(dir) || candidate == best ||
		    duplicate_object(candidate, b, &fresh, &fresh_writable))
			continue;
		if (best >= 0 && !fresh_writable) {
			close(fresh);
			continue;
		}
		if (best >= 0)
			close(best);
		best = fresh;
		*writable = fresh_writable;
	}
	closedir(dir);
	if (best < 0)
		return -ENOENT;
	*fd = best;
	return 0;
}

static int open_from_path(const struct xtal_os_backing *b, int *fd, bool *writable)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	/* O_PATH first: opening an unknown device or fifo could have effects. */
	int probe = open(b->path, O_PATH | O_CLOEXEC), ret;

	if (probe < 0)
		return -ENOENT;
	ret = duplicate_object(probe, b, fd, writable);
	close(probe);
	return ret;
}

int xtal_os_backing_open(const struct xtal_os_backing *b, int *fd, bool *writable)
{
	int found, ret;
	bool found_writable;

	if (b->inode == 0)
		return -ENOENT;
	ret = open_from_fds(b, &found, &found_writable);
	if (ret && b->path[0] == '/')
		ret = open_from_path(b, &found, &found_writable);
	if (ret)
		return ret;
	*fd = found;
	*writable = found_writable;
	return 0;
}
