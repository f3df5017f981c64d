/* SPDX-License-Identifier: MIT */
/*
 * Memory of our own and of other processes: shareable objects (memfd), guarded copies that
 * answer -EFAULT instead of crashing, and what the kernel knows about a mapping.
 */
#ifndef XTAL_OS_VM_H
#define XTAL_OS_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes of a page of this machine (never assumed to be 4 KiB). */
size_t xtal_os_page_size(void);

/*
 * An unnamed shared memory object of len bytes (rounded up to pages), zero filled, size
 * sealed against growing and shrinking, CLOEXEC. *fd is the caller's. With map != NULL it
 * is also mapped read-write, MADV_DONTFORK when dontfork. Errors: -errno (memfd_create, ...).
 */
int xtal_os_object_create(const char *name, size_t len, bool dontfork, int *fd, void **map);

/* Seals the object so that fds opened from now on cannot be mapped writable, and returns a
 * new read-only fd of it (through /proc/self/fd; without /proc a duplicate, which the seal
 * makes as good as read-only). Our existing mapping stays writable. Without
 * F_SEAL_FUTURE_WRITE: -errno. */
int xtal_os_object_publish_readonly(int fd, int *ro_fd);

/* A new fd on the same object opened with the given access (O_RDONLY, O_RDWR). -errno. */
int xtal_os_reopen(int fd, int flags, int *out);

/* True when fd carries F_SEAL_SHRINK: its pages cannot vanish under a mapping. */
bool xtal_os_sealed_shrink(int fd);

/* Size of the object in bytes. Errors: -errno. */
int xtal_os_object_size(int fd, uint64_t *size);

/* Maps [off, off+len) of fd shared, MADV_DONTFORK; off page aligned. Errors: -errno. */
int xtal_os_map(int fd, uint64_t off, size_t len, bool writable, void **out);
/* Anonymous private zeroed memory, MADV_DONTFORK. Errors: -errno. */
int xtal_os_map_private(size_t len, void **out);
void xtal_os_unmap(void *addr, size_t len);
/* Maps fd (shared, read-write) over an existing range, atomically replacing it. */
int xtal_os_map_over(void *addr, size_t len, int fd, uint64_t off);

/*
 * Guarded copy inside this process: like memcpy, but an unmapped or protected byte on either
 * side gives -EFAULT (a prefix may have been copied). Uses process_vm_* on ourselves, else a
 * pipe. Any length, cut into kernel-sized pieces. Thread safe.
 */
int xtal_os_guarded_copy(void *dst, const void *src, size_t len);

/*
 * The same when one side is memory of our own that is sure to be there: src of put, dst of get.
 * Twice as fast for up to 16 KiB between open and close, when no other thread is doing it; and several
 * times for any length between places as in xtal_copy_crawls().
 */
int xtal_os_guarded_put(void *dst, const void *src, size_t len);
int xtal_os_guarded_get(void *dst, const void *src, size_t len);
/*
 * The same as get in a call of the program's own thread that names src: a few bytes are read at once
 * after the kernel was asked whether they can be, in a third of the time. Another thread that unmaps
 * them between the two ends the program, as it would if the program read them. Threads of the engine
 * get a guarded copy.
 */
int xtal_os_checked_get(void *dst, const void *src, size_t len);
/* Once per process. *fd is the caller's, to be closed after close. Errors: -errno; nothing but
 * speed is lost. */
int xtal_os_bounce_open(int *fd);
void xtal_os_bounce_close(void);
/* In a forked child: not open. Its fd is the caller's to close. */
void xtal_os_bounce_fork_child(void);

/* 0 when the 4-byte-aligned word at addr can be written right now, else -EFAULT. Does not
 * change it (a futex operation that adds 0). Thread safe. */
int xtal_os_probe_write(void *addr);
/* The same; the answer is not old when it comes back. */
int xtal_os_probe_write_now(void *addr);
/* 0 when each page of [addr, addr+len) can be read (or written) right now, else -EFAULT.
 * A look at every page: for telling why a copy failed, not for the hot path. */
int xtal_os_probe_access(const void *addr, size_t len, bool write);

/* One remote or local piece of memory, the layout of struct iovec. */
struct xtal_os_iov {
	void *base;
	size_t len;
};

/*
 * process_vm_writev / process_vm_readv: one system call, at most 8 pieces each. The remote
 * vector may lie in shared memory that somebody else shortens meanwhile. Returns bytes moved
 * or -errno (-EFAULT, -EPERM, -ESRCH, -ENOSYS ...). Thread safe.
 */
int64_t xtal_os_peer_write(int pid, const struct xtal_os_iov *local, unsigned nlocal,
			   const struct xtal_os_iov *remote, unsigned nremote);
int64_t xtal_os_peer_read(int pid, const struct xtal_os_iov *local, unsigned nlocal,
			  const struct xtal_os_iov *remote, unsigned nremote);

/* The first of these with one piece each, in no function of its own: whoever comes from the kernel
 * finds little of our code in the caches. Returns bytes moved or -1. */
static inline int64_t xtal_os_peer_write1(int pid, const struct xtal_os_iov *local,
					  const void *remote)
{
	return syscall(SYS_process_vm_writev, (long)pid, local, 1ul, remote, 1ul, 0ul);
}

/* What backs an address range of this process. */
struct xtal_os_backing {
	uint64_t start, end; /* of the mapping that holds the first byte */
	bool shared;         /* MAP_SHARED of an object */
	bool readable, writable, executable;
	uint64_t offset; /* of start in the object */
	uint64_t dev_major, dev_minor, inode;
	char path[256]; /* "" when anonymous; may end in " (deleted)" */
};

/*
 * Looks up the mapping that holds addr (PROCMAP_QUERY where the kernel has it, else the text
 * of /proc/self/maps). Errors: -ENOENT (nothing mapped there), -errno.
 */
int xtal_os_backing_find(const void *addr, struct xtal_os_backing *out);
/* The same, or the first mapping behind addr. */
int xtal_os_backing_next(const void *addr, struct xtal_os_backing *out);

/* Its PROT_* bits. */
int xtal_os_backing_prot(const struct xtal_os_backing *b);

/*
 * An fd (new, CLOEXEC, caller's) for the object that backs b, found among this process's own
 * fds or through its path, with dev and inode compared; O_RDWR when that can be had, else
 * O_RDONLY (*writable tells). Errors: -ENOENT when neither fd nor name exists.
 */
int xtal_os_backing_open(const struct xtal_os_backing *b, int *fd, bool *writable);

#endif
