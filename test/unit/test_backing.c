/* SPDX-License-Identifier: MIT */
/* What backs a mapping, with the kernel's query and with the text of maps; opening it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/proc.h"
#include "os/vm.h"

static size_t page;
static char dir[64];

static void *map_fd(int fd, int prot, int flags, size_t pages, size_t first)
{
	return mmap(NULL, pages * page, prot, flags, fd, (off_t)(first * page));
}

static int object_of_pages(size_t pages)
{
	int fd = memfd_create("xtal-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	EXPECT(fd >= 0 && ftruncate(fd, (off_t)(pages * page)) == 0);
	return fd;
}

static bool names_object(const struct xtal_os_backing *b, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && b->inode == st.st_ino && b->dev_major == major(st.st_dev) &&
	       b->dev_minor == minor(st.st_dev);
}

/* Whether what backing_open gave is the object mapped at p, by looking at its bytes. */
static bool same_bytes(int fd, const volatile char *p, off_t off)
{
	char c = 0;

	return pread(fd, &c, 1, off) == 1 && c == *p;
}

static void anonymous_memory(void)
{
	struct xtal_os_backing b;
	char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool writable;
	int fd;

	mprotect(p + page, page, PROT_READ);
	munmap(p + 2 * page, page);
	memset(&b, 0x55, sizeof(b));
	EXPECT(xtal_os_backing_find(p + 17, &b) == 0);
	EXPECT(b.start <= (uintptr_t)p && b.end == (uintptr_t)p + page);
	EXPECT(!b.shared && b.readable && b.writable);
	EXPECT(b.inode == 0 && b.path[0] == '\0');
	EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	EXPECT(xtal_os_backing_find(p + page, &b) == 0);
	EXPECT(b.readable && !b.writable);
	EXPECT(xtal_os_backing_find(p + 2 * page, &b) == -ENOENT);
	EXPECT(xtal_os_backing_find(NULL, &b) == -ENOENT);
	EXPECT(xtal_os_backing_find((void *)(UINTPTR_MAX - 7), &b) == -ENOENT);
	munmap(p, 2 * page);
	munmap(p + 3 * page, page);
	EXPECT(xtal_os_backing_find(&b, &b) == 0); /* the stack has a name but no object */
	EXPECT(b.path[0] == '\0');
}

static void shared_object(void)
{
	int fd = object_of_pages(8), found = -1;
	volatile char *p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 2);
	struct xtal_os_backing b;
	bool writable = false;
	void *view;

	p[page] = 'o';
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)(p + page + 5), &b) == 0);
	EXPECT(b.start == (uintptr_t)p && b.end == (uintptr_t)p + 3 * page);
	EXPECT(b.shared && b.readable && b.writable);
	EXPECT(b.offset == 2 * page);
	EXPECT(names_object(&b, fd));
	EXPECT(strstr(b.path, "xtal-test"));
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == 0);
	EXPECT(found != fd && writable);
	EXPECT(fcntl(found, F_GETFD) & FD_CLOEXEC);
	EXPECT(same_bytes(found, p + page, (off_t)(3 * page)));
	EXPECT(xtal_os_map(found, 3 * page, page, true, &view) == 0);
	*(volatile char *)view = 'v';
	EXPECT(p[page] == 'v');
	close(found);
	munmap(view, page);
	/* Private mappings of the same object. */
	view = map_fd(fd, PROT_READ, MAP_PRIVATE, 1, 0);
	EXPECT(xtal_os_backing_find(view, &b) == 0);
	EXPECT(!b.shared && b.readable && !b.writable && names_object(&b, fd));
	munmap(view, page);
	/* The same inode number of another file system is another object. */
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)p, &b) == 0);
	b.dev_minor++;
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == -ENOENT);
	/* Without fd or name there is no way back. */
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)p, &b) == 0);
	close(fd);
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == -ENOENT);
	munmap((void *)(uintptr_t)p, 3 * page);
}

static void sealed_object(void)
{
	int fd = object_of_pages(1), ro, found = -1;
	void *p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 1, 0), *view;
	struct xtal_os_backing b;
	bool writable = true;

	EXPECT(xtal_os_object_publish_readonly(fd, &ro) == 0);
	EXPECT(xtal_os_backing_find(p, &b) == 0);
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == 0);
	EXPECT(!writable);
	EXPECT(xtal_os_map(found, 0, page, false, &view) == 0);
	munmap(view, page);
	munmap(p, page);
	close(found);
	close(ro);
	close(fd);
}

/* A writable fd is preferred to a read-only one that comes first. */
static void best_of_fds(void)
{
	int fd = object_of_pages(1), ro, found = -1;
	void *p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 1, 0);
	struct xtal_os_backing b;
	bool writable = false;
	unsigned before;

	EXPECT(xtal_os_reopen(fd, O_RDONLY, &ro) == 0);
	EXPECT(xtal_os_backing_find(p, &b) == 0);
	before = open_fds();
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == 0);
	EXPECT(writable);
	EXPECT(open_fds() == before + 1);
	close(found);
	close(fd);
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == 0); /* through the other one */
	EXPECT(writable);
	close(found);
	close(ro);
	munmap(p, page);
}

static void *map_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	void *p;

	EXPECT(fd >= 0);
	if ((flags & O_ACCMODE) == O_RDWR)
		EXPECT(ftruncate(fd, (off_t)page) == 0);
	p = map_fd(fd, PROT_READ | ((flags & O_ACCMODE) == O_RDWR ? PROT_WRITE : 0), MAP_SHARED, 1,
		   0);
	EXPECT(p != MAP_FAILED);
	close(fd);
	return p;
}

static void by_path(const char *name)
{
	char path[512];
	struct xtal_os_backing b;
	volatile char *p;
	bool writable = false;
	int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	p = map_file(path, O_RDWR | O_CREAT);
	*p = 'p';
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)p, &b) == 0);
	EXPECT(b.shared && b.offset == 0);
	EXPECT(strlen(path) >= sizeof(b.path) || strcmp(b.path, path) == 0);
	if (strlen(path) < sizeof(b.path)) {
		EXPECT(xtal_os_backing_open(&b, &fd, &writable) == 0);
		EXPECT(writable && same_bytes(fd, p, 0));
		close(fd);
	} else {
		EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	}
	/* Somebody else's file under the same name is not taken for it. */
	EXPECT(unlink(path) == 0);
	munmap(map_file(path, O_RDWR | O_CREAT), page);
	EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)p, &b) == 0);
	EXPECT(strlen(path) >= sizeof(b.path) || strstr(b.path, " (deleted)"));
	EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	munmap((void *)(uintptr_t)p, page);
	unlink(path);
}

static void paths(void)
{
	char name[251];

	by_path("plain");
	by_path("with space and ) :");
	by_path("with\nnewline");
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	by_path(name);
}

/* A device or a fifo with the right name is not opened. */
static void not_a_file(void)
{
	char path[128];
	struct xtal_os_backing b = { .inode = 1, .shared = true };
	bool writable;
	struct stat st;
	int fd = -1;

	snprintf(path, sizeof(path), "%s/fifo", dir);
	EXPECT(mkfifo(path, 0600) == 0);
	EXPECT(stat(path, &st) == 0);
	b.inode = st.st_ino;
	b.dev_major = major(st.st_dev);
	b.dev_minor = minor(st.st_dev);
	snprintf(b.path, sizeof(b.path), "%s", path);
	EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	unlink(path);
}

static void shared_anonymous(void)
{
	void *p = map_fd(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 1, 0);
	struct xtal_os_backing b;
	bool writable;
	int fd;

	EXPECT(xtal_os_backing_find(p, &b) == 0);
	EXPECT(b.shared && b.writable);
	EXPECT(xtal_os_backing_open(&b, &fd, &writable) == -ENOENT);
	munmap(p, page);
}

static void look_at_own(void *arg)
{
	char *p = map_fd(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 1, 0);
	struct xtal_os_backing b;
	unsigned before = open_fds();

	EXPECT(xtal_os_backing_find(p, &b) == 0);
	munmap(p, page);
	EXPECT(xtal_os_backing_find(p, &b) == -ENOENT); /* though the parent may have it */
	munmap(arg, page);
	EXPECT(xtal_os_backing_find(arg, &b) == -ENOENT);
	EXPECT(open_fds() == before); /* the parent's fd was replaced, not kept */
}

static void forked_child(void)
{
	void *p = map_fd(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 1, 0);
	struct xtal_os_backing b;

	EXPECT(xtal_os_backing_find(p, &b) == 0);
	EXPECT(child_run(look_at_own, p) == 0);
	EXPECT(xtal_os_backing_find(p, &b) == 0);
	munmap(p, page);
}

static void look_at_everything(void *arg)
{
	(void)arg;
	anonymous_memory();
	shared_object();
	sealed_object();
	best_of_fds();
	paths();
	not_a_file();
	shared_anonymous();
	forked_child();
}

static void by_query(void **state)
{
	(void)state;
	assert_int_equal(child_run(look_at_everything, NULL), 0);
}

/* _IOWR('f', 17, 104 bytes) */
#define QUERY 0xc0686611u

static void without_query(void *arg)
{
	if (child_deny(SYS_ioctl, *(int *)arg, 1, QUERY))
		look_at_everything(NULL);
}

static void by_text(void **state)
{
	int refusals[] = { ENOTTY, EPERM, ENOSYS };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(child_run(without_query, &refusals[i]), 0);
}

/* Programs close fds they do not know, and get the numbers for their own files. */
static void close_and_reuse(void *arg)
{
	struct xtal_os_backing b;
	struct stat st;
	int null;

	(void)arg;
	EXPECT(xtal_os_backing_find(&page, &b) == 0);
	for (int fd = 3; fd < 40; fd++)
		close(fd);
	EXPECT(xtal_os_backing_find(&page, &b) == 0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 3; fd < 40; fd++)
		dup2(null, fd);
	EXPECT(xtal_os_backing_find(&page, &b) == 0);
	EXPECT(b.start <= (uintptr_t)&page && (uintptr_t)&page < b.end);
	for (int fd = 3; fd < 40; fd++)
		EXPECT(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
}

static void closed_by_program(void **state)
{
	(void)state;
	assert_int_equal(child_run(close_and_reuse, NULL), 0);
}

/* Standard streams that are closed stay free. */
static void without_stdio(void *arg)
{
	struct xtal_os_backing b;

	(void)arg;
	close(0);
	EXPECT(xtal_os_backing_find(&page, &b) == 0);
	EXPECT(fcntl(0, F_GETFD) < 0);
}

static void stdio_stays_free(void **state)
{
	(void)state;
	assert_int_equal(child_run(without_stdio, NULL), 0);
}

/* A file that its owner may not open again for writing: the open one has to serve. */
static void cannot_reopen(void *arg)
{
	char path[128];
	struct xtal_os_backing b;
	bool writable = false;
	volatile char *p;
	int fd, found;

	(void)arg;
	EXPECT(chmod(dir, 0777) == 0);
	if (geteuid() == 0)
		EXPECT(setgid(65534) == 0 && setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
	snprintf(path, sizeof(path), "%s/once", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0);
	EXPECT(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED, 1, 0);
	*p = '1';
	EXPECT(xtal_os_backing_find((void *)(uintptr_t)p, &b) == 0);
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == 0);
	EXPECT(writable && found != fd && same_bytes(found, p, 0));
	close(fd);
	close(found);
	EXPECT(xtal_os_backing_open(&b, &found, &writable) == -ENOENT ||
	       xtal_os_backing_open(&b, &found, &writable) == -EACCES);
	unlink(path);
}

static void file_mode_forbids(void **state)
{
	(void)state;
	assert_int_equal(child_run(cannot_reopen, NULL), 0);
}

static void no_fds_left(void *arg)
{
	struct xtal_os_backing b;

	(void)arg;
	EXPECT(xtal_os_backing_find(&page, &b) == 0);
	while (dup(2) >= 0)
		;
	EXPECT(xtal_os_backing_find(&page, &b) == 0 || emulated());
}

static void works_without_fds(void **state)
{
	(void)state;
	assert_int_equal(child_run(no_fds_left, NULL), 0);
}

static atomic_bool threads_stop;

static void *find_forever(void *arg)
{
	uintptr_t failures = 0;
	struct xtal_os_backing b;

	while (!atomic_load(&threads_stop))
		failures += xtal_os_backing_find(arg, &b) != 0;
	return (void *)failures;
}

static void many_threads(void **state)
{
	pthread_t threads[4];
	void *failures;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_forever, &page), 0);
	for (int i = 0; i < 200; i++) {
		void *p = map_fd(-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 1, 0);
		struct xtal_os_backing b;

		assert_int_equal(xtal_os_backing_find(p, &b), 0);
		munmap(p, page);
	}
	atomic_store(&threads_stop, true);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failures);
		assert_null(failures);
	}
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	page = xtal_os_page_size();
	xtal_os_pid(); /* maps a page when first called, maybe where a test wants a hole */
	snprintf(dir, sizeof(dir), "%s/xtal-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_query),          cmocka_unit_test(by_text),
		cmocka_unit_test(closed_by_program), cmocka_unit_test(stdio_stays_free),
		cmocka_unit_test(file_mode_forbids), cmocka_unit_test(works_without_fds),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
