/* SPDX-License-Identifier: MIT */
/* Mover and reader of adoption on one processor while memory is moved; see adopt_pair.c. */
#ifndef XTAL_OS_ADOPT_PAIR_H
#define XTAL_OS_ADOPT_PAIR_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"

struct xtal_os_adopter;

/* A set of processors, as the kernel takes it. */
#define XTAL_OS_CPU_BITS  (8 * sizeof(unsigned long))
#define XTAL_OS_CPU_WORDS (8192 / XTAL_OS_CPU_BITS)
struct xtal_os_cpus {
	unsigned long bits[XTAL_OS_CPU_WORDS];
};

/* Mover and reader on one processor, and where they were allowed to run before. */
struct xtal_os_pair {
	struct xtal_lock lock; /* while any of it but the steps changes */
	atomic_bool on;
	atomic_uint steps; /* chunks begun */
	unsigned seen;     /* at the last look after it */
	long mover_tid;
	struct xtal_os_cpus one, mover, reader;
};

/* The mover: the reader is to run on this processor, and so is the mover itself, until unpair. False:
 * they do already, or it is not permitted. */
bool xtal_os_pair(struct xtal_os_adopter *a);
void xtal_os_unpair(struct xtal_os_adopter *a);

#endif
