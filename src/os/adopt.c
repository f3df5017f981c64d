/* SPDX-License-Identifier: MIT */
/*
 * The life of adoption in this process: its descriptors, the areas of the mover, the reader's start.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/adopt_impl.h"
#include "os/cancel.h"
#include "os/thread.h"
#include "os/vm.h"
#include "os/sock.h"

struct xtal_os_adopter xtal_os_adopter = {
	.store = -1, .window = -1, .keeper = -1, .kick = -1, .pagemap = -1
};

void xtal_os_adopt_lock(void)
{
	xtal_lock(&xtal_os_adopter.gate);
}

void xtal_os_adopt_unlock(void)
{
	xtal_unlock(&xtal_os_adopter.gate);
}

bool xtal_os_adopt_is_full(void)
{
	return xtal_os_adopter.full;
}

void xtal_os_adopt_fds(int fds[XTAL_OS_ADOPT_FDS])
{
	const struct xtal_os_adopter *a = &xtal_os_adopter;

	fds[0] = a->store;
	fds[1] = a->window;
	fds[2] = a->keeper;
	fds[3] = a->kick;
	fds[4] = a->pagemap;
}

void xtal_os_adopt_fork_child(void)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;

	xtal_os_adopt_forget();
	/* The areas stay mapped: they are not ours to look at, and children are rare. */
	*a = (struct xtal_os_adopter){
		.store = -1, .window = -1, .keeper = -1, .kick = -1, .pagemap = -1
	};
}

static void close_all(struct xtal_os_adopter *a)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int fds[XTAL_OS_ADOPT_FDS];

	xtal_os_adopt_fds(fds);
	for (unsigned i = 0; i < XTAL_OS_ADOPT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	a->store = a->window = a->keeper = a->kick = a->pagemap = -1;
	if (a->scratch)
		munmap((void *)(uintptr_t)a->scratch, 2 * XTAL_OS_ADOPT_CHUNK);
	a->scratch = a->spare = 0;
	xtal_os_reserve_drop(a);
}

/* Pages of the reserve are mappings of their own. */
#define RESERVE_PAGES 32u

void xtal_os_reserve_make(struct xtal_os_adopter *a)
{
	size_t page = xtal_os_page_size(), len = RESERVE_PAGES * page;
	uint8_t *at;

	if (a->reserve)
		return;
	if (len < XTAL_OS_ADOPT_CHUNK)
		len = XTAL_OS_ADOPT_CHUNK;
	at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return;
	for (unsigned i = 0; i < RESERVE_PAGES; i += 2)
		mprotect(at + i * page, page, PROT_READ);
	a->reserve = (uintptr_t)at;
	a->reserve_len = len;
}

bool xtal_os_reserve_drop(struct xtal_os_adopter *a)
{
	if (!a->reserve)
		return false;
	munmap(xtal_os_place(a->reserve), a->reserve_len);
	a->reserve = 0;
	return true;
}

static int open_all(struct xtal_os_adopter *a)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	bool full = true, keeper_full = true;
	void *areas = NULL;
	int err;

	a->store = xtal_os_uffd_open(XTAL_OS_UFFD_MOVE, &full);
	if (a->store < 0)
		return a->store;
	a->window = xtal_os_uffd_open(XTAL_OS_UFFD_MOVE | XTAL_OS_UFFD_EVENTS, &full);
	if (a->window < 0)
		return a->window;
	a->keeper = xtal_os_uffd_open(XTAL_OS_UFFD_SHMEM | XTAL_OS_UFFD_EVENTS, &keeper_full);
	if (a->keeper < 0)
		return a->keeper;
	a->full = full && keeper_full;
	a->kick = xtal_os_aside(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	a->pagemap = xtal_os_aside(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	if (a->kick < 0 || a->pagemap < 0)
		return -errno;
	err = xtal_os_map_private(2 * XTAL_OS_ADOPT_CHUNK, &areas);
	if (err)
		return err;
	a->scratch = (uintptr_t)areas;
	a->spare = a->scratch + XTAL_OS_ADOPT_CHUNK;
	/* Huge pages would have to be split to be moved. */
	madvise(areas, 2 * XTAL_OS_ADOPT_CHUNK, MADV_NOHUGEPAGE);
	xtal_os_reserve_make(a);
	return xtal_os_uffd_register(a->store, a->scratch, 2 * XTAL_OS_ADOPT_CHUNK,
				     XTAL_OS_TRAP_MISSING);
}

int xtal_os_adopt_start(const struct xtal_os_adopt_hooks *hooks, char *why, size_t size)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;
	int err;

	if (atomic_load(&a->serving))
		return 0;
	if (xtal_os_adopt_probe(why, size) == XTAL_OS_ADOPT_NONE)
		return -ENOSYS;
	err = open_all(a);
	if (!err) {
		a->hooks = *hooks;
		err = xtal_os_thread_start("xtal-adopted", xtal_os_adopt_read, a);
	}
	if (err) {
		snprintf(why, size, "starting adoption: %s", strerror(-err));
		close_all(a);
		return err;
	}
	/* A thread that begins takes the lock of malloc: until then nobody may have to wait for it
	 * who holds that. */
	while (!atomic_load(&a->serving))
		xtal_os_futex_wait(&a->serving, 0, UINT64_MAX);
	return err;
}
