/* SPDX-License-Identifier: MIT */
/*
 * Reads of a few bytes of the program's memory, in its own thread: the kernel is asked whether they
 * can be read, by a call that reads a set of signals there and then refuses what is to be done with
 * it. See vm.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/proc.h"
#include "os/thread.h"
#include "os/vm.h"

#define MOST   256u /* bytes: two words tell of at most two pages */
#define SET    8u   /* bytes of the kernel's set of signals */
#define NO_HOW (-1l)

/* The word in which the byte at addr lies: 0 it can be read, else -errno. */
static int ask(uintptr_t addr)
{
	uintptr_t word = addr & ~(uintptr_t)(SET - 1);

	if (!syscall(SYS_rt_sigprocmask, NO_HOW, word, NULL, (size_t)SET))
		return -ENOSYS;
	return errno == EINVAL ? 0 : -errno;
}

/* Emulators and filters of system calls may refuse before they look. */
static bool try_to_ask(void)
{
	size_t page = xtal_os_page_size();
	void *shut = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool told;

	if (shut == MAP_FAILED)
		return false;
	told = ask((uintptr_t)shut) == -EFAULT && ask((uintptr_t)&page) == 0;
	munmap(shut, page);
	return told;
}

static bool can_ask(void)
{
	enum {
		UNKNOWN,
		YES,
		NO
	};
	static atomic_int known;
	int can = atomic_load_explicit(&known, memory_order_relaxed);

	if (can == UNKNOWN) {
		can = try_to_ask() ? YES : NO;
		atomic_store_explicit(&known, can, memory_order_relaxed);
	}
	return can == YES;
}

int xtal_os_checked_get(void *dst, const void *src, size_t len)
{
	uintptr_t first = (uintptr_t)src, last = first + len - 1;

	if (len - 1 >= MOST || xtal_os_thread_is_ours() || !can_ask() || ask(first) ||
	    (last / MOST != first / MOST && ask(last)))
		return xtal_os_guarded_get(dst, src, len);
	memcpy(dst, src, len);
	return 0;
}
