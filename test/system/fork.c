/* SPDX-License-Identifier: MIT */
/*
 * fork while traffic runs: the child exits, execs, opens a context of its own, or closes and
 * uses the parent's objects. It never disturbs the parent. (vfork and _Fork run no handlers.)
 */
/* ctest: timeout=240 label=soak */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)256 << 10)
#define PATIENCE 60000u

enum deed {
	EXITS,
	EXECS,
	OPENS,
	CLOSES,
	USES,
	REGISTERS,
	DEEDS
};

struct scene {
	enum peer_path path;
	enum deed deed;
	struct peer_owner owner;
	struct peer_export childs; /* what the child registered */
	_Atomic uint32_t child_ready, child_quit;
};

struct side {
	struct scene *s;
	struct peer p;
	struct dma_queue *q, *own; /* the traffic's; of the thread that forks, and of nobody else */
	struct dma_seg *local;
	uint8_t *memory;
	_Atomic uint32_t stop;
	_Atomic uint64_t rounds;
};

static void one_round(struct side *m, uint64_t seed)
{
	size_t len = seed % 4 ? 4096 : SEGMENT;

	peer_fill(m->memory, len, seed);
	peer_expect(peer_write(m->q, peer_remote(&m->s->owner.export, 0, len),
			       peer_part(m->local, 0, len)),
		    "write");
	memset(m->memory, 0, len);
	peer_expect(peer_read(m->q, peer_remote(&m->s->owner.export, 0, len),
			      peer_part(m->local, 0, len)),
		    "read");
	if (!peer_holds(m->memory, len, seed))
		proc_die("round %llu: data is wrong", (unsigned long long)seed);
}

static void *traffic(void *arg)
{
	struct side *m = arg;

	while (!atomic_load(&m->stop))
		one_round(m, atomic_fetch_add(&m->rounds, 1) + 1);
	return NULL;
}

/* A context of the child's own, reaching the same owner. */
static int child_opens(struct side *m)
{
	struct side mine = { .s = m->s };

	peer_open(&mine.p);
	mine.memory = malloc(SEGMENT);
	mine.local = peer_register(&mine.p, mine.memory, SEGMENT, NULL);
	mine.q = peer_queue(&mine.p, 4);
	for (unsigned i = 0; i < 3;
	     i++) { /* the parent's thread writes the same memory: no compare */
		peer_expect(peer_write(mine.q, peer_remote(&m->s->owner.export, SEGMENT, 4096),
				       peer_part(mine.local, 0, 4096)),
			    "the child's write");
	}
	dma_free_queue(mine.q);
	dma_unregister_seg(mine.p.ctx, mine.local);
	peer_close(&mine.p);
	return 0;
}

static int child_closes(struct side *m)
{
	dma_free_queue(m->q);
	dma_unregister_seg(m->p.ctx, m->local);
	peer_close(&m->p);
	return 0;
}

/* The shortest operations, so often that the thread owns the queue's lock and all is at hand. */
static void warm(struct side *m)
{
	struct dma_seg remote = peer_remote(&m->s->owner.export, SEGMENT + 8192, 8);
	struct dma_seg local = peer_part(m->local, 2 * SEGMENT, 8);

	for (unsigned i = 0; i < 203; i++) /* no multiple of its depth: there is room */
		peer_expect(peer_write(m->own, remote, local), "a short write");
}

static void child_posts(struct side *m, struct dma_queue *q)
{
	struct dma_seg remote = peer_remote(&m->s->owner.export, SEGMENT + 8192, 8);
	struct dma_seg local = peer_part(m->local, 2 * SEGMENT, 8);

	if (dma_write(q, &remote, &local) == DMA_STATUS_OK ||
	    dma_read(q, &remote, &local) == DMA_STATUS_OK ||
	    dma_faa(q, &remote, &local, 1) == DMA_STATUS_OK)
		proc_die("the child may post to the parent's queue");
	if (!*xtal_last_error())
		proc_die("no reason given");
}

/* Each answer is an error; nothing hangs or crashes. */
static int child_uses(struct side *m)
{
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)m->memory, .len = 4096 };
	struct queue_cfg qc = { .queue_depth = 4 };
	struct dma_cr cr;

	child_posts(m, m->q);
	child_posts(m, m->own);
	if (dma_poll_queue(m->q, 1, &cr) > 0 || dma_wait_queue(m->q, 1, 10, &cr) > 0)
		proc_die("the child got a completion");
	if (dma_alloc_queue(m->p.ctx, &qc) || dma_register_seg(m->p.ctx, &cfg))
		proc_die("the child may use the parent's context");
	return 0;
}

/* Memory that the parent got from xtal_alloc, registered by the child, reached by the parent. */
static int child_registers(struct side *m)
{
	struct peer p;

	peer_open(&p);
	peer_register(&p, m->memory + SEGMENT, 4096, &m->s->childs);
	atomic_store(&m->s->child_ready, 1);
	if (!proc_await(&m->s->child_quit, 1, PATIENCE))
		return 1;
	return 0;
}

static int child(struct side *m)
{
	switch (m->s->deed) {
	case EXITS:
		exit(0); /* with handlers, destructors and all */
	case EXECS:
		execl("/bin/true", "true", (char *)NULL);
		return 1;
	case OPENS:
		return child_opens(m);
	case CLOSES:
		return child_closes(m);
	case USES:
		return child_uses(m);
	case REGISTERS:
		return child_registers(m);
	case DEEDS:
		break;
	}
	return 1;
}

static void reach_the_child(struct side *m)
{
	struct dma_queue *q = peer_queue(&m->p, 4);
	uint8_t *theirs = m->memory + SEGMENT; /* shared with the child */

	if (!proc_await(&m->s->child_ready, 1, PATIENCE))
		proc_die("the child has not registered");
	memset(theirs, 0, 4096);
	memset(m->memory + 2 * SEGMENT, 0x77, 64);
	peer_expect(peer_write(q, peer_remote(&m->s->childs, 0, 64),
			       peer_part(m->local, 2 * SEGMENT, 64)),
		    "a write to the child's segment");
	for (unsigned i = 0; i < 64; i++)
		if (theirs[i] != 0x77)
			proc_die("the child's segment was not written");
	dma_free_queue(q);
	atomic_store(&m->s->child_quit, 1);
}

static int parent(void *arg)
{
	struct scene *s = arg;
	struct side m = { .s = s };
	unsigned forks = s->deed == REGISTERS ? 1 : proc_rounds(15, 1000);
	uint64_t before;
	pthread_t thread;

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->path);
	peer_open(&m.p);
	m.memory = peer_memory(PEER_MAP, 3 * SEGMENT);
	m.local = peer_register(&m.p, m.memory, 3 * SEGMENT, NULL);
	m.q = peer_queue(&m.p, 8);
	m.own = peer_queue(&m.p, 8);
	one_round(&m, 1);
	/* The sanitizers' allocators do not survive a fork while another thread is in them. */
	if (!proc_sanitized(NULL) && pthread_create(&thread, NULL, traffic, &m))
		proc_die("no thread");
	for (unsigned i = 0; i < forks; i++) {
		pid_t pid;
		int status;

		warm(&m);
		before = atomic_load(&m.rounds);
		pid = fork();
		if (!pid)
			_exit(child(&m));
		if (s->deed == REGISTERS)
			reach_the_child(&m);
		status = proc_join(pid, PATIENCE);
		if (status)
			proc_die("the child's wait status is 0x%x", status);
		while (atomic_load(&m.rounds) < before + 2) { /* the traffic goes on */
			if (proc_sanitized(NULL))
				one_round(&m, atomic_fetch_add(&m.rounds, 1) + 1);
			proc_sleep_us(50);
		}
	}
	atomic_store(&m.stop, 1);
	if (!proc_sanitized(NULL))
		pthread_join(thread, NULL);
	dma_free_queue(m.own);
	dma_free_queue(m.q);
	dma_unregister_seg(m.p.ctx, m.local);
	peer_close(&m.p);
	return 0;
}

static void a_child(enum deed deed)
{
	for (unsigned path = 0; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner;

		s->path = (enum peer_path)path;
		s->deed = deed;
		s->owner.path = s->path;
		s->owner.len = 2 * SEGMENT;
		owner = proc_start(peer_owner_run, &s->owner);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		assert_int_equal(proc_run(parent, s, PATIENCE), 0);
		atomic_store(&s->owner.quit, 1);
		assert_int_equal(proc_join(owner, PATIENCE), 0);
	}
}

static void a_child_exits(void **state)
{
	(void)state;
	a_child(EXITS);
}

static void a_child_execs(void **state)
{
	(void)state;
	a_child(EXECS);
}

static void a_child_opens_its_own_context(void **state)
{
	(void)state;
	a_child(OPENS);
}

static void a_child_closes_the_parents_objects(void **state)
{
	(void)state;
	a_child(CLOSES);
}

static void a_child_is_refused_the_parents_objects(void **state)
{
	(void)state;
	a_child(USES);
}

static void a_child_registers_inherited_memory(void **state)
{
	(void)state;
	a_child(REGISTERS);
}

/* F07: the child keeps all of its memory, also the rest of a page that the parent registered. */
static int half_page(void *arg)
{
	struct side m = { .s = arg };
	uint8_t *page;
	pid_t pid;

	peer_only(PEER_CMA);
	peer_open(&m.p);
	page = peer_memory(PEER_CMA, 4096);
	memset(page, 1, 4096);
	m.local = peer_register(&m.p, page, 2048, NULL);
	m.q = peer_queue(&m.p, 4);
	pid = fork();
	if (!pid) {
		memset(page + 2048, 2, 2048);
		for (unsigned i = 0; i < 2048; i++)
			if (page[i] != 1)
				_exit(1);
		_exit(0);
	}
	if (proc_join(pid, PATIENCE))
		proc_die("the child lost a part of the page");
	peer_expect(peer_write(m.q, peer_remote(&m.s->owner.export, 0, 2048), *m.local), "write");
	memset(page, 0, 2048);
	peer_expect(peer_read(m.q, peer_remote(&m.s->owner.export, 0, 2048), *m.local), "read");
	return page[0] != 1 || page[2047] != 1 || page[2048] != 1;
}

static void a_child_keeps_the_other_half_of_a_page(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner;

	(void)state;
	s->owner.path = PEER_CMA;
	s->owner.len = SEGMENT;
	owner = proc_start(peer_owner_run, &s->owner);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	assert_int_equal(proc_run(half_page, s, PATIENCE), 0);
	atomic_store(&s->owner.quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

/* Queues, segments and contexts come and go in other threads while this one forks. */
static void *comes_and_goes(void *arg)
{
	struct side *m = arg;
	struct queue_cfg qc = { .queue_depth = 4 };
	struct dma_seg_cfg sc = { .addr = (uintptr_t)m->memory, .len = 4096 };

	while (!atomic_load(&m->stop)) {
		struct dma_queue *q[8];
		struct dma_seg *seg = dma_register_seg(m->p.ctx, &sc);

		for (unsigned i = 0; i < 8; i++)
			q[i] = dma_alloc_queue(m->p.ctx, &qc);
		for (unsigned i = 0; i < 8; i++)
			dma_free_queue(q[i]);
		dma_unregister_seg(m->p.ctx, seg);
		dma_alloc_queue(m->p.ctx, NULL); /* is refused, in words */
		atomic_fetch_add(&m->rounds, 1);
	}
	return NULL;
}

static void *opens_and_closes(void *arg)
{
	struct side *m = arg;

	while (!atomic_load(&m->stop)) {
		struct dma_context *ctx = dma_create_context(&m->p.list[0]);

		if (!ctx)
			proc_die("no context: %s", xtal_last_error());
		dma_delete_context(ctx);
	}
	return NULL;
}

/* The engine is as new in the child: nothing is counted, and everything can be done again. */
static int fresh_child(struct side *m)
{
	struct xtal_counters c;

	alarm(20); /* a lock that nobody will release */
	if (xtal_counters_read(&c, sizeof(c)) || c.contexts || c.queues || c.segments || c.links)
		proc_die("the child counts the parent's objects");
	child_uses(m);
	child_opens(m);
	if (xtal_counters_read(&c, sizeof(c)) || c.contexts || c.queues || c.segments)
		proc_die("the child has left something behind");
	return child_closes(m);
}

static int busy_parent(void *arg)
{
	struct scene *s = arg;
	struct side m = { .s = s };
	unsigned forks = proc_rounds(100, 3000);
	pthread_t threads[3];

	setenv("XTAL_LOG", "/dev/null", 1);
	peer_only(s->path);
	peer_open(&m.p);
	m.memory = peer_memory(PEER_MAP, 3 * SEGMENT);
	m.local = peer_register(&m.p, m.memory, 3 * SEGMENT, NULL);
	m.q = peer_queue(&m.p, 8);
	one_round(&m, 1);
	for (unsigned i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, i ? comes_and_goes : opens_and_closes, &m))
			proc_die("no thread");
	for (unsigned i = 0; i < forks; i++) {
		uint64_t before = atomic_load(&m.rounds);
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(fresh_child(&m));
		status = proc_join(pid, PATIENCE);
		if (status)
			proc_die("fork %u: the child's wait status is 0x%x", i, status);
		while (atomic_load(&m.rounds) < before + 1) /* nobody waits in the parent either */
			proc_sleep_us(50);
		one_round(&m, i);
	}
	atomic_store(&m.stop, 1);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	dma_free_queue(m.q);
	dma_unregister_seg(m.p.ctx, m.local);
	peer_close(&m.p);
	return 0;
}

static void a_child_is_forked_while_objects_come_and_go(void **state)
{
	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("the sanitizers' allocators do not survive a fork beside other threads");
	for (unsigned path = PEER_MAP; path < PEER_PATHS; path += PEER_RING - PEER_MAP) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t owner;

		s->path = (enum peer_path)path;
		s->owner.path = s->path;
		s->owner.len = 2 * SEGMENT;
		owner = proc_start(peer_owner_run, &s->owner);
		assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
		assert_int_equal(proc_run(busy_parent, s, PATIENCE), 0);
		atomic_store(&s->owner.quit, 1);
		assert_int_equal(proc_join(owner, PATIENCE), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_child_exits, proc_end_all),
		cmocka_unit_test_teardown(a_child_execs, proc_end_all),
		cmocka_unit_test_teardown(a_child_opens_its_own_context, proc_end_all),
		cmocka_unit_test_teardown(a_child_closes_the_parents_objects, proc_end_all),
		cmocka_unit_test_teardown(a_child_is_refused_the_parents_objects, proc_end_all),
		cmocka_unit_test_teardown(a_child_registers_inherited_memory, proc_end_all),
		cmocka_unit_test_teardown(a_child_keeps_the_other_half_of_a_page, proc_end_all),
		cmocka_unit_test_teardown(a_child_is_forked_while_objects_come_and_go,
					  proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("the emulator's own threads do not survive a fork");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
