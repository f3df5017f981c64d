/* SPDX-License-Identifier: MIT */
/*
 * An owner whose memory process_vm_* reached, and then no longer does: it has become undumpable, or
 * its first thread has ended, and messages take over; or its process is another program now, which
 * nothing may reach.
 */
/* ctest: timeout=120 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)1 << 20)
#define PATIENCE 60000u

struct scene {
	void (*change)(struct scene *s); /* at the owner, when asked */
	struct peer_export export;
	_Atomic uint32_t ready, ask, changed, quit;
	_Atomic uint32_t good; /* the owner has what was written */
	const char *log;
};

/* Root may trace everybody. */
static void be_nobody(void)
{
	if (!proc_be_ordinary())
		proc_die("another user: %m");
	setenv("HOME", "/tmp", 1);
}

static void *look_at_the_end(void *arg)
{
	struct scene *s = arg;

	if (!proc_await(&s->quit, 1, PATIENCE))
		_exit(1);
	/* ThreadSanitizer does not see what orders this after the agent's writes. */
	atomic_store(&s->good,
		     proc_sanitized("thread") ||
			     peer_holds((void *)(uintptr_t)s->export.sva, SEGMENT / 2, 9));
	_exit(0);
}

static int owner(void *arg)
{
	struct scene *s = arg;
	pthread_t thread;
	struct peer p;

	be_nobody();
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, &s->export);
	if (pthread_create(&thread, NULL, look_at_the_end, s))
		proc_die("no thread");
	atomic_store(&s->ready, 1);
	if (!proc_await(&s->ask, 1, PATIENCE))
		proc_die("nobody asks");
	s->change(s);
	atomic_store(&s->changed, 1);
	pthread_join(thread, NULL);
	return 0;
}

static void expect_all(struct dma_queue *q, const struct scene *s, struct dma_seg *local)
{
	static const size_t lens[] = { 8, 65536, SEGMENT / 2 };
	uint8_t *mine = (uint8_t *)(uintptr_t)local->sva;
	struct dma_seg word = peer_remote(&s->export, SEGMENT - 8, 8), data, from;
	struct dma_cr cr;

	for (unsigned i = 0; i < 3; i++) {
		data = peer_remote(&s->export, 0, lens[i]);
		from = peer_part(local, 0, lens[i]);
		peer_fill(mine, lens[i], 9);
		peer_expect(peer_write(q, data, from), "write");
		memset(mine, 0, lens[i]);
		peer_expect(peer_read(q, data, from), "read");
		if (!peer_holds(mine, lens[i], 9))
			proc_die("%zu bytes came back changed", lens[i]);
		if (dma_write_with_notify(q, &data, &from, &word, i) != DMA_STATUS_OK)
			proc_die("notify: %s", xtal_last_error());
		cr = peer_complete(q, 10000);
		peer_expect(cr.status, "notify");
	}
	peer_expect(peer_faa(q, word, peer_part(local, 0, 8), 1), "FAA");
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	struct dma_queue *q, *other;
	struct dma_seg *local;
	char reason[200];
	struct peer p;

	be_nobody();
	setenv("XTAL_LOG", s->log, 1);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	other = peer_queue(&p, 8);
	expect_all(q, s, local);
	expect_all(other, s, local);
	if (peer_path_taken(q, &s->export, reason, sizeof(reason)) != XTAL_PATH_CMA)
		return 77; /* not allowed here */
	atomic_store(&s->ask, 1);
	if (!proc_await(&s->changed, 1, PATIENCE))
		proc_die("the owner has not changed");
	proc_sleep_us(10000); /* its thread may still be ending */
	expect_all(q, s, local);
	peer_expect(peer_write(other, peer_remote(&s->export, 0, SEGMENT / 2),
			       peer_part(local, 0, SEGMENT / 2)),
		    "write of another queue, long first");
	expect_all(other, s, local);
	if (peer_path_taken(q, &s->export, reason, sizeof(reason)) != XTAL_PATH_RING)
		proc_die("the path is still %s", reason);
	return 0;
}

static void change_to(void (*change)(struct scene *), const char *words)
{
	struct scene *s = proc_shared(sizeof(*s));
	char log[64];
	pid_t own;
	int status;

	snprintf(log, sizeof(log), "/tmp/xtal-cma-ends-%d.log", (int)getpid());
	s->log = log;
	s->change = change;
	own = proc_start(owner, s);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	status = proc_run(initiator, s, PATIENCE);
	if (status == 77 << 8)
		proc_skip("process_vm_* is not allowed between processes of one user");
	assert_int_equal(status, 0);
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
	assert_int_equal(s->good, 1);
	assert_true(!words || proc_file_has(log, words));
	unlink(log);
	munmap(s, sizeof(*s));
}

static void become_undumpable(struct scene *s)
{
	(void)s;
	prctl(PR_SET_DUMPABLE, 0);
}

static void an_owner_becomes_undumpable(void **state)
{
	(void)state;
	change_to(become_undumpable, "messages take over");
}

static void end_first_thread(struct scene *s)
{
	atomic_store(&s->changed, 1);
	pthread_exit(NULL);
}

static void an_owners_first_thread_ends(void **state)
{
	(void)state;
	change_to(end_first_thread, NULL);
}

#define PLACE ((void *)UINT64_C(0x200000000000)) /* of the memory, before and after */

struct execs {
	struct peer_export export;
	_Atomic uint32_t ready, ask, wrote;
};

static void *memory_at_place(void)
{
	void *p = mmap(PLACE, SEGMENT, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != PLACE)
		proc_die("no memory at %p", PLACE);
	return p;
}

/* The program that the owner has become, under its pid: nobody may touch what it has there. */
static int after_exec(void)
{
	uint8_t *p = memory_at_place();
	uint64_t end;

	memset(p, 0xa5, SEGMENT);
	for (end = proc_now() + 50000000; proc_now() < end;)
		for (size_t i = 0; i < SEGMENT; i += 64)
			if (p[i] != 0xa5)
				return 3;
	return 0;
}

static int owner_that_execs(void *arg)
{
	struct execs *s = arg;
	struct peer p;

	be_nobody();
	peer_open(&p);
	peer_register(&p, memory_at_place(), SEGMENT, &s->export);
	atomic_store(&s->ready, 1);
	if (!proc_await(&s->wrote, 1000, PATIENCE))
		proc_die("nobody writes");
	execl("/proc/self/exe", "cma_ends", "after-exec", NULL);
	proc_die("exec: %m");
}

/* On one processor with its own agent, which so learns late that the owner's socket was closed. */
static int writes_until_refused(void *arg)
{
	struct execs *s = arg;
	struct dma_queue *q;
	struct dma_seg *local;
	cpu_set_t one;
	struct peer p;
	int status;

	be_nobody();
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	peer_open(&p);
	q = peer_queue(&p, 8);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	do {
		struct dma_seg to = peer_remote(&s->export, 0, 4096);

		status = peer_write(q, to, peer_part(local, 0, 4096));
		atomic_fetch_add(&s->wrote, 1);
	} while (!status);
	return status == DMA_CR_ACK_TIMEOUT_ERR ? 0 : 1;
}

static void an_owner_becomes_another_program(void **state)
{
	unsigned rounds = proc_rounds(30, 3000), touched = 0, late = 0;

	(void)state;
	if (proc_sanitized("thread"))
		proc_skip("ThreadSanitizer leaves no room at a place known beforehand");
	for (unsigned i = 0; i < rounds; i++) {
		struct execs *s = proc_shared(sizeof(*s));
		pid_t own, initiator_pid;
		int status;

		own = proc_start(owner_that_execs, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		initiator_pid = proc_start(writes_until_refused, s);
		status = proc_join(own, PATIENCE);
		touched += status == 3 << 8;
		assert_true(status == 0 || status == 3 << 8);
		late += proc_join(initiator_pid, PATIENCE) != 0;
		munmap(s, sizeof(*s));
	}
	print_message("%u rounds: %u writes met the new program, %u its memory\n", rounds, late,
		      touched);
	/* A processor may be taken away between the last look and the system call. */
	assert_true(late <= rounds / 10 && touched <= rounds / 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_owner_becomes_undumpable, proc_end_all),
		cmocka_unit_test_teardown(an_owners_first_thread_ends, proc_end_all),
		cmocka_unit_test_teardown(an_owner_becomes_another_program, proc_end_all),
	};

	if (argc > 1 && strcmp(argv[1], "after-exec") == 0)
		return after_exec();
	if (proc_emulated())
		return proc_skip_all("cma is between real processes");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
