/* SPDX-License-Identifier: MIT */
/* What can be adopted: on this machine at all, and of this process's memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/export.h"
#include "os/adopt.h"
#include "os/cancel.h"
#include "os/vm.h"

/* What the kernel reaches by itself in a thread's control block (robust list, rseq area, the word
 * of its end) lies so far around the head of its robust list; the block may end a mapping. */
#define IN_FRONT 1024u
#define BEHIND   1536u

/* One page goes there and back. 0 or -errno. */
static int try_move(int fd, uint8_t *from, uint8_t *to, size_t page)
{
	uint64_t moved;
	int err;

	memset(from, 0x5a, page);
	err = xtal_os_uffd_register(fd, (uintptr_t)from, page, XTAL_OS_TRAP_MISSING);
	if (!err)
		err = xtal_os_uffd_register(fd, (uintptr_t)to, page, XTAL_OS_TRAP_MISSING);
	if (!err)
		err = xtal_os_uffd_move(fd, (uintptr_t)to, (uintptr_t)from, page, &moved);
	if (!err && to[page - 1] != 0x5a)
		err = -EIO;
	if (!err)
		err = xtal_os_uffd_move(fd, (uintptr_t)from, (uintptr_t)to, page, &moved);
	if (!err && from[page - 1] != 0x5a)
		err = -EIO;
	return err;
}

static int try_all(bool *kernel_faults, const char **what)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	size_t page = xtal_os_page_size();
	int fd, err, map_fd;
	void *areas;

	*what = "userfaultfd";
	fd = xtal_os_uffd_open(XTAL_OS_UFFD_SHMEM | XTAL_OS_UFFD_EVENTS, kernel_faults);
	if (fd < 0)
		return fd;
	close(fd);
	*what = "UFFDIO_MOVE (Linux 6.8)";
	fd = xtal_os_uffd_open(XTAL_OS_UFFD_MOVE, kernel_faults);
	if (fd < 0)
		return fd;
	err = xtal_os_map_private(2 * page, &areas);
	if (!err) {
		madvise(areas, 2 * page, MADV_NOHUGEPAGE);
		err = try_move(fd, areas, (uint8_t *)areas + page, page);
		close(fd); /* first: whatever is missing reads as zeros again */
		munmap(areas, 2 * page);
	} else {
		close(fd);
	}
	if (err)
		return err;
	*what = "/proc/self/pagemap";
	map_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (map_fd < 0)
		return -errno;
	close(map_fd);
	return 0;
}

enum xtal_os_adopt_level xtal_os_adopt_probe(char *why, size_t size)
{
	bool kernel_faults = false;
	const char *what;
	int err = try_all(&kernel_faults, &what);

	if (err) {
		snprintf(why, size, "%s: %s", what, strerror(-err));
		return XTAL_OS_ADOPT_NONE;
	}
	if (!kernel_faults) {
		snprintf(why, size,
			 "userfaultfd serves user mode only (not privileged, and "
			 "vm.unprivileged_userfaultfd is 0)");
		return XTAL_OS_ADOPT_USER;
	}
	snprintf(why, size, "a page was moved there and back");
	return XTAL_OS_ADOPT_FULL;
}

/* The thread's control block lies in [lo, hi). */
static bool thread_in(pid_t tid, uint64_t lo, uint64_t hi)
{
	void *head = NULL;
	size_t len;
	uint64_t at;

	if (syscall(SYS_get_robust_list, tid, &head, &len) || !head)
		return false;
	at = (uintptr_t)head;
	return at + BEHIND > lo && at - IN_FRONT < hi;
}

static bool threads_in(uint64_t lo, uint64_t hi)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	bool in = !dir;

	while (!in && (e = readdir(dir)))
		in = e->d_name[0] != '.' && thread_in((pid_t)atol(e->d_name), lo, hi);
	if (dir)
		closedir(dir);
	return in;
}

/* A mapping in the making, line by line of smaps. */
struct scan {
	uint64_t lo, hi, start, end; /* [start, end): this mapping */
	uint64_t covered;            /* bytes of [lo, hi) */
	char *why;
	size_t size;
};

/* Flags that ordinary private memory may have: readable, writable, may be made so, accountable, not
 * reserved, soft dirty. All else is somebody's wish that a shared mapping would not fulfil. */
static int check_flags(struct scan *s, char *flags)
{
	static const char *const fine[] = { "rd", "wr", "mr", "mw", "me", "ac", "nr", "sd" };
	char *rest = flags, *word;

	while ((word = strsep(&rest, " \n"))) {
		bool known = !*word;

		for (size_t i = 0; i < XTAL_ARRAY_SIZE(fine); i++)
			known |= strcmp(word, fine[i]) == 0;
		if (known)
			continue;
		snprintf(s->why, s->size, "the mapping at 0x%llx has the flag '%s' (see proc(5))",
			 (unsigned long long)s->start, word);
		return -EINVAL;
	}
	return 0;
}

static bool concerns(const struct scan *s)
{
	return s->start < s->hi && s->end > s->lo;
}

static int take_line(struct scan *s, char *line)
{
	unsigned long long start, end, offset, inode;
	unsigned major_number, minor_number;
	char rights[5];
	int name = 0;

	if (strncmp(line, "VmFlags:", 8) == 0)
		return concerns(s) ? check_flags(s, line + 8) : 0;
	if (*line >= 'A' && *line <= 'Z') /* a figure; of no use here, and there are many */
		return 0;
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset,
		   &major_number, &minor_number, &inode, &name) != 7)
		return 0;
	s->start = start;
	s->end = end;
	if (!concerns(s))
		return 0;
	s->covered += (end < s->hi ? end : s->hi) - (start > s->lo ? start : s->lo);
	if (rights[3] != 'p' || inode || rights[0] != 'r' || rights[1] != 'w') {
		line[strcspn(line, "\n")] = '\0';
		snprintf(s->why, s->size,
			 "the mapping at 0x%llx is not plain memory, private and writable (%s%s%s)",
			 start, rights, line[name] ? ", " : "", line + name);
		return -EINVAL;
	}
	return 0;
}

static int scan(struct scan *s)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	int err = 0;

	if (!f) {
		snprintf(s->why, s->size, "/proc/self/smaps: %s", strerror(errno));
		return -EINVAL;
	}
	while (!err && s->start < s->hi && fgets(line, sizeof(line), f))
		err = take_line(s, line);
	fclose(f);
	if (!err && s->covered < s->hi - s->lo) {
		snprintf(s->why, s->size, "%llu bytes of it are not mapped",
			 (unsigned long long)(s->hi - s->lo - s->covered));
		err = -EINVAL;
	}
	return err;
}

int xtal_os_adopt_eligible(uint64_t lo, uint64_t hi, char *why, size_t size)
{
	struct scan s = { .lo = lo, .hi = hi, .why = why, .size = size };
	int err;

	if (lo >= hi) {
		snprintf(why, size, "no whole page lies in it");
		return -EINVAL;
	}
	err = scan(&s);
	if (err)
		return err;
	if (threads_in(lo, hi)) {
		snprintf(why, size, "a thread's control block lies in it");
		return -EINVAL;
	}
	return 0;
}

bool xtal_os_pages_pinned(void)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	/* No allocation: a thread that forks waits for it, and may hold an allocator's lock. */
	char text[3072], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	text[n] = 0;
	at = strstr(text, "\nVmPin:");
	return at && strtoull(at + 7, NULL, 10) != 0;
}
