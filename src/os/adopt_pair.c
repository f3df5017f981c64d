/* SPDX-License-Identifier: MIT */
/*
 * Mover and reader on one processor. The mover's mremap() sleeps until the reader has read of it: as
 * a switch between two threads of one processor that takes 5 us; from one to another and back, 10 to
 * 30, and on a busy machine milliseconds. And while no second processor runs threads of this process,
 * taking a page away costs no interrupts.
 */
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/adopt_impl.h"

static long get_cpus(long tid, struct xtal_os_cpus *out)
{
	memset(out, 0, sizeof(*out));
	return syscall(SYS_sched_getaffinity, tid, sizeof(out->bits), out->bits);
}

static bool set_cpus(long tid, const struct xtal_os_cpus *cpus)
{
	return syscall(SYS_sched_setaffinity, tid, sizeof(cpus->bits), cpus->bits) == 0;
}

/* Unless somebody else has decided where the thread runs meanwhile. */
static void put_back(long tid, const struct xtal_os_cpus *one, const struct xtal_os_cpus *before)
{
	struct xtal_os_cpus now;

	if (get_cpus(tid, &now) > 0 && memcmp(&now, one, sizeof(now)) == 0)
		set_cpus(tid, before);
}

/* Neither can keep the other from running. */
static bool equals(long tid)
{
	struct sched_param mine = { 0 }, other = { 0 };

	return syscall(SYS_sched_getscheduler, 0l) == syscall(SYS_sched_getscheduler, tid) &&
	       !syscall(SYS_sched_getparam, 0l, &mine) &&
	       !syscall(SYS_sched_getparam, tid, &other) &&
	       mine.sched_priority == other.sched_priority;
}

/* Before any of it takes effect it is known what it was, for look_after(). */
static bool prepare(struct xtal_os_pair *p, long reader)
{
	unsigned cpu = 0, word;

	if (atomic_load(&p->on) || !equals(reader) || syscall(SYS_getcpu, &cpu, NULL, NULL))
		return false;
	word = cpu / XTAL_OS_CPU_BITS;
	if (word >= XTAL_OS_CPU_WORDS || get_cpus(0, &p->mover) <= 0 ||
	    get_cpus(reader, &p->reader) <= 0)
		return false;
	memset(&p->one, 0, sizeof(p->one));
	p->one.bits[word] = 1ul << cpu % XTAL_OS_CPU_BITS;
	p->mover_tid = syscall(SYS_gettid);
	atomic_store(&p->on, true);
	return true;
}

bool xtal_os_pair(struct xtal_os_adopter *a)
{
	struct xtal_os_pair *p = &a->pair;
	bool fresh;

	xtal_lock(&p->lock);
	fresh = prepare(p, a->reader);
	xtal_unlock(&p->lock);
	if (!fresh)
		return false;
	if (set_cpus(a->reader, &p->one) && set_cpus(0, &p->one))
		return true;
	xtal_os_unpair(a);
	return false;
}

void xtal_os_unpair(struct xtal_os_adopter *a)
{
	struct xtal_os_pair *p = &a->pair;

	/* Not under the lock: whoever cannot go on here must not keep look_after() from helping. */
	put_back(a->reader, &p->one, &p->reader);
	put_back(p->mover_tid, &p->one, &p->mover);
	xtal_lock(&p->lock);
	atomic_store(&p->on, false);
	xtal_unlock(&p->lock);
}

void xtal_os_adopt_look_after(void)
{
	struct xtal_os_adopter *a = &xtal_os_adopter;
	struct xtal_os_pair *p = &a->pair;
	unsigned steps = atomic_load(&p->steps);

	if (!xtal_trylock(&p->lock))
		return;
	if (atomic_load(&p->on) && steps == p->seen) {
		put_back(a->reader, &p->one, &p->reader);
		put_back(p->mover_tid, &p->one, &p->mover);
	}
	p->seen = steps;
	xtal_unlock(&p->lock);
}
