/* SPDX-License-Identifier: MIT */
/*
 * Mover and reader share a processor while they adopt memory. A thread of higher priority takes it
 * from them: they go on elsewhere, and do not wait until that one sleeps.
 */
/* ctest: timeout=60 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/proc.h"
#include "xtal.h"

#define LEN      ((size_t)64 << 20)
#define PATIENCE 30000u
#define MS       1000000u

static atomic_bool ready, done;
static atomic_uint caught, freed;

/* The thread of the library with that name. */
static pid_t thread_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	pid_t found = 0;

	while (dir && !found && (e = readdir(dir))) {
		char path[300], text[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(text, sizeof(text), f) && !strncmp(text, name, strlen(name)))
			found = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* It may run on one processor only. */
static bool bound(pid_t tid, cpu_set_t *where)
{
	return !sched_getaffinity(tid, sizeof(*where), where) && CPU_COUNT(where) == 1;
}

/* Takes the processor that they share, until they may leave it, or all is over. */
static void *hog(void *arg)
{
	pid_t mover = thread_named("xtal-mover");
	const struct sched_param high = { .sched_priority = 1 };
	cpu_set_t where, others;
	uint64_t then;

	(void)arg;
	if (!mover || sched_setscheduler(0, SCHED_FIFO, &high))
		exit(77);
	atomic_store(&ready, true);
	while (!atomic_load(&done) && !bound(mover, &where))
		proc_sleep_us(100);
	if (atomic_load(&done))
		return NULL;
	/* Who waits for the mover is not to starve beside it. */
	sched_getaffinity(0, sizeof(others), &others);
	CPU_XOR(&others, &others, &where);
	if (sched_setaffinity(getpid(), sizeof(others), &others) ||
	    sched_setaffinity(0, sizeof(where), &where))
		proc_die("sched_setaffinity: %m");
	atomic_fetch_add(&caught, 1);
	then = proc_now();
	/* The kernel leaves others a twentieth of a second, after the first one. */
	while (!atomic_load(&done) && bound(mover, &where))
		if (proc_now() - then > (uint64_t)700 * MS)
			proc_die("the mover is bound to a processor that it is not given");
	atomic_fetch_add(&freed, !atomic_load(&done));
	return NULL;
}

static int starve(void *arg)
{
	cpu_set_t all;
	uint8_t *p;

	(void)arg;
	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		proc_die("mmap: %m");
	memset(p, 1, LEN);
	sched_getaffinity(0, sizeof(all), &all);
	for (unsigned i = 0; i < 8; i++) {
		pthread_t t;

		if (xtal_share(p, 4096) || xtal_unshare(p, 4096))
			proc_die("adoption: %s", xtal_last_error());
		atomic_store(&ready, false);
		atomic_store(&done, false);
		if (pthread_create(&t, NULL, hog, NULL))
			proc_die("a thread");
		while (!atomic_load(&ready))
			proc_sleep_us(100);
		if (xtal_share(p, LEN))
			proc_die("xtal_share: %s", xtal_last_error());
		atomic_store(&done, true);
		pthread_join(t, NULL);
		sched_setaffinity(0, sizeof(all), &all);
		if (xtal_unshare(p, LEN))
			proc_die("xtal_unshare: %s", xtal_last_error());
	}
	fprintf(stderr, "caught %u times, freed %u times\n", atomic_load(&caught),
		atomic_load(&freed));
	return 0;
}

static void others_may_need_the_processor(void **state)
{
	char text[200];
	int status;

	(void)state;
	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		proc_skip("there is one processor");
	status = proc_run(starve, NULL, PATIENCE);
	if (status == 77 << 8)
		proc_skip("SCHED_FIFO is not allowed");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_may_need_the_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
