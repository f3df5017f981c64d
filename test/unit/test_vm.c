/* SPDX-License-Identifier: MIT */
/* Shareable objects, seals and mappings. Guarded copies and probes are in test_guard.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/child.h"
#include "os/proc.h"
#include "os/vm.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static size_t page;

static int set_up(void **state)
{
	(void)state;
	page = xtal_os_page_size();
	xtal_os_pid(); /* maps a page when first called, maybe where a test wants a hole */
	return page >= 4096 && (page & (page - 1)) == 0 ? 0 : -1;
}

static void object(void **state)
{
	uint64_t size = 0;
	char *p, *q;
	void *map;
	int fd;

	(void)state;
	assert_int_equal(xtal_os_object_create("xtal-test", page + 1, true, &fd, &map), 0);
	p = map;
	assert_int_equal(xtal_os_object_size(fd, &size), 0);
	assert_true(size == 2 * page);
	for (size_t i = 0; i < 2 * page; i++)
		assert_int_equal(p[i], 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(xtal_os_sealed_shrink(fd));
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, (off_t)(4 * page)), -1);
	assert_int_equal(xtal_os_map(fd, page, page, false, &map), 0);
	q = map;
	p[page + 5] = 'x';
	assert_int_equal(q[5], 'x');
	assert_int_equal(mprotect(q, page, PROT_READ | PROT_WRITE), 0);
	xtal_os_unmap(p, 2 * page);
	xtal_os_unmap(q, page);
	close(fd);
}

static void object_without_map(void **state)
{
	char name[400];
	int fd;

	(void)state;
	memset(name, 'n', sizeof(name)); /* longer than the kernel takes */
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(xtal_os_object_create(name, 1, true, &fd, NULL), 0);
	close(fd);
}

static void object_errors(void **state)
{
	unsigned before = open_fds();
	uint64_t size = 1;
	void *map = NULL;
	int fd = -7;

	(void)state;
	assert_int_equal(xtal_os_object_create("x", 0, true, &fd, &map), -EINVAL);
	assert_int_equal(xtal_os_object_create("x", SIZE_MAX, true, &fd, &map), -EINVAL);
	assert_true(xtal_os_object_create("x", (size_t)INT64_MAX - 2 * page, true, &fd, &map) < 0);
	assert_int_equal(fd, -7);
	assert_null(map);
	assert_int_equal(open_fds(), before);
	assert_int_equal(xtal_os_object_size(-1, &size), -EBADF);
	assert_int_equal(xtal_os_reopen(-1, O_RDONLY, &fd), -ENOENT);
	assert_false(xtal_os_sealed_shrink(-1));
	assert_false(xtal_os_sealed_shrink(0));
	assert_true(xtal_os_object_publish_readonly(-1, &fd) < 0);
	assert_int_equal(xtal_os_map(-1, 0, page, true, &map), -EBADF);
	assert_true(xtal_os_map_private((size_t)1 << 62, &map) < 0);
	assert_null(map);
}

static void map_errors(void **state)
{
	void *map = NULL;
	int fd;

	(void)state;
	assert_int_equal(xtal_os_object_create("x", page, true, &fd, NULL), 0);
	assert_int_equal(xtal_os_map(fd, 1, page, true, &map), -EINVAL);
	assert_int_equal(xtal_os_map(fd, UINT64_MAX & ~(page - 1), page, true, &map), -EINVAL);
	assert_int_equal(xtal_os_map(fd, 0, 0, true, &map), -EINVAL);
	assert_int_equal(xtal_os_map_over((void *)page, 0, fd, 0), -EINVAL);
	assert_null(map);
	close(fd);
}

static void refuse_noexec_seal(void *arg)
{
	void *map = NULL;
	int fd;

	(void)arg;
	/* MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL */
	if (!child_deny(SYS_memfd_create, EINVAL, 1, 0x000b))
		return;
	EXPECT(xtal_os_object_create("x", page, true, &fd, &map) == 0);
	EXPECT(xtal_os_sealed_shrink(fd));
	*(char *)map = 1;
}

static void object_on_old_kernel(void **state)
{
	(void)state;
	assert_int_equal(child_run(refuse_noexec_seal, NULL), 0);
}

static void publish(void **state)
{
	int fd, ro, again;
	void *map, *view;

	(void)state;
	assert_int_equal(xtal_os_object_create("xtal-test", page, false, &fd, &map), 0);
	assert_int_equal(xtal_os_object_publish_readonly(fd, &ro), 0);
	assert_true(fcntl(ro, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(ro, F_GETFL) & O_ACCMODE, O_RDONLY);
	/* Ours stays writable, and what we write is seen. */
	assert_int_equal(xtal_os_map(ro, 0, page, false, &view), 0);
	*(volatile char *)map = 'a';
	assert_int_equal(*(volatile char *)view, 'a');
	assert_int_equal(mprotect(view, page, PROT_READ | PROT_WRITE), -1);
	/* Nobody gets a writable mapping any more, however he opens it. */
	assert_true(xtal_os_map(fd, 0, page, true, &view) < 0);
	assert_true(xtal_os_map(ro, 0, page, true, &view) < 0);
	if (xtal_os_reopen(ro, O_RDWR, &again) == 0) {
		assert_true(xtal_os_map(again, 0, page, true, &view) < 0);
		assert_true(pwrite(again, "b", 1, 0) < 0);
		close(again);
	}
	close(ro);
	close(fd);
}

static void refuse_future_write(void *arg)
{
	int fd, ro = -1;
	void *map, *view;

	(void)arg;
	if (!child_deny(SYS_fcntl, EINVAL, 2, F_SEAL_FUTURE_WRITE))
		return;
	EXPECT(xtal_os_object_create("x", page, true, &fd, &map) == 0);
	EXPECT(xtal_os_object_publish_readonly(fd, &ro) == -EINVAL);
	EXPECT(ro == -1);
	EXPECT(xtal_os_map(fd, 0, page, true, &view) == 0);
}

static void publish_on_old_kernel(void **state)
{
	(void)state;
	assert_int_equal(child_run(refuse_future_write, NULL), 0);
}

static void reopen_is_independent(void **state)
{
	int fd, again;

	(void)state;
	assert_int_equal(xtal_os_object_create("xtal-test", page, false, &fd, NULL), 0);
	assert_int_equal(xtal_os_reopen(fd, O_RDWR, &again), 0);
	assert_int_equal(lseek(again, 10, SEEK_SET), 10);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(again);
	close(fd);
}

struct inherited {
	void *kept, *gone1, *gone2;
};

static void look_at_inherited(void *arg)
{
	struct inherited *m = arg;

	EXPECT(xtal_os_probe_access(m->kept, page, false) == 0);
	EXPECT(xtal_os_probe_access(m->gone1, page, false) == -EFAULT);
	EXPECT(xtal_os_probe_access(m->gone2, page, false) == -EFAULT);
}

static void children_do_not_inherit(void **state)
{
	struct inherited m;
	int fd, fd2;

	(void)state;
	if (emulated())
		skip(); /* qemu-user ignores MADV_DONTFORK */
	assert_int_equal(xtal_os_object_create("a", page, false, &fd, &m.kept), 0);
	assert_int_equal(xtal_os_object_create("b", page, true, &fd2, &m.gone1), 0);
	assert_int_equal(xtal_os_map_private(page, &m.gone2), 0);
	memset(m.gone2, 1, page);
	assert_int_equal(child_run(look_at_inherited, &m), 0);
	xtal_os_unmap(m.kept, page);
	xtal_os_unmap(m.gone1, page);
	xtal_os_unmap(m.gone2, page);
	close(fd);
	close(fd2);
}

static void map_over(void **state)
{
	char *area, *view;
	void *map;
	int fd;

	(void)state;
	assert_int_equal(xtal_os_map_private(3 * page, &map), 0);
	area = map;
	memset(area, 'o', 3 * page);
	assert_int_equal(xtal_os_object_create("n", 2 * page, false, &fd, &map), 0);
	view = map;
	view[page] = 'n';
	assert_int_equal(xtal_os_map_over(area + page, page, fd, page), 0);
	assert_int_equal(area[page - 1], 'o');
	assert_int_equal(area[page], 'n');
	assert_int_equal(area[2 * page], 'o');
	area[page + 1] = 'w';
	assert_int_equal(view[page + 1], 'w');
	xtal_os_unmap(area, 3 * page);
	xtal_os_unmap(view, 2 * page);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object),
		cmocka_unit_test(object_without_map),
		cmocka_unit_test(object_errors),
		cmocka_unit_test(map_errors),
		cmocka_unit_test(object_on_old_kernel),
		cmocka_unit_test(publish),
		cmocka_unit_test(publish_on_old_kernel),
		cmocka_unit_test(reopen_is_independent),
		cmocka_unit_test(children_do_not_inherit),
		cmocka_unit_test(map_over),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
