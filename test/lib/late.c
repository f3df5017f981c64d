/* SPDX-License-Identifier: MIT */
/* See late.h. */
#include "lib/late.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/proc.h"

#define STEP_NS UINT64_C(10000000)

static _Atomic uint64_t sum, due;

static uint64_t late_at(uint64_t now)
{
	uint64_t at = atomic_load(&due);

	return now > at ? now - at : 0;
}

static void *watch(void *arg)
{
	(void)arg;
	for (;;) {
		uint64_t now;

		proc_sleep_us(STEP_NS / 1000);
		now = proc_now();
		/* In this order: a reader in between counts some of it twice, rather than not. */
		atomic_fetch_add(&sum, late_at(now));
		atomic_store(&due, now + STEP_NS);
	}
	return NULL;
}

void late_watch(void)
{
	pthread_t thread;

	atomic_store(&due, proc_now() + STEP_NS);
	if (pthread_create(&thread, NULL, watch, NULL))
		abort();
	pthread_detach(thread);
}

uint64_t late_ns(void)
{
	return atomic_load(&sum) + late_at(proc_now());
}
