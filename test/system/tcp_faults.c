/* SPDX-License-Identifier: MIT */
/*
 * What networks and peers do to tcp links: connections that are cut, lost, stalled, refused or
 * handed over byte by byte, owners that stop, die and come back. Each operation is executed
 * once, or is reported failed and never lands; each ends in time.
 */
/* ctest: timeout=300 label=soak */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/proxy.h"
#include "lib/rng.h"
#include "xtal.h"

#define LEN      ((size_t)256 << 10)
#define PATIENCE 60000u
#define MIDDLE   0x7f000002u /* where the proxy listens, on the owner's port */

struct scene {
	struct peer_owner owner;
	struct proxy_config config;
	_Atomic uint32_t done, quit, step, stepped;
	unsigned cuts;
	const char *timeout_ms;
};

static struct sockaddr_storage address(uint32_t host, uint32_t tid)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&s;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(host);
	in->sin_port = htons((uint16_t)tid);
	return s;
}

static struct scene *new_scene(const char *timeout_ms)
{
	struct scene *s = proc_shared(sizeof(*s));

	s->owner.path = PEER_TCP;
	s->owner.len = LEN;
	s->timeout_ms = timeout_ms;
	return s;
}

static int owner_run(void *arg)
{
	struct scene *s = arg;

	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", s->timeout_ms, 1);
	return peer_owner_run(&s->owner);
}

static pid_t start_owner(struct scene *s)
{
	pid_t pid = proc_start(owner_run, s);

	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	return pid;
}

static struct proxy *start_proxy(struct scene *s)
{
	struct proxy *p;

	s->config.listen_ns = s->config.connect_ns = -1;
	s->config.listen = address(MIDDLE, s->owner.export.tid);
	s->config.target = address(PEER_LOOPBACK, s->owner.export.tid);
	p = proxy_start(&s->config);
	if (!p)
		proc_skip("nobody can listen on 127.0.0.2");
	return p;
}

/* The initiator's things. via: through the proxy. */
struct user {
	struct peer p;
	struct dma_queue *q;
	struct dma_seg *local;
	uint8_t *memory;
};

static void user_open(struct user *u, const struct scene *s, bool via)
{
	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", s->timeout_ms, 1);
	peer_only(PEER_TCP);
	peer_open(&u->p);
	u->memory = peer_memory(PEER_TCP, LEN);
	u->local = peer_register(&u->p, u->memory, LEN, NULL);
	u->q = peer_queue(&u->p, 32);
	if (via)
		u->q->cfg.rmt_eid.dw0 = MIDDLE;
}

static void user_close(struct user *u)
{
	dma_free_queue(u->q);
	dma_unregister_seg(u->p.ctx, u->local);
	peer_close(&u->p);
}

/* ---- A connection that is cut all the time ---- */

/* Counters are exact, data is whole, whatever happens to the connections. */
static int works_through_cuts(void *arg)
{
	struct scene *s = arg;
	struct rng rng = { .state = s->config.seed };
	uint64_t sum = 0, added = 0;
	struct user u;

	user_open(&u, s, true);
	while (!atomic_load(&s->quit)) {
		struct dma_seg word = peer_remote(&s->owner.export, 0, 8);
		struct dma_seg old = peer_part(u.local, 0, 8);
		size_t len = 1 + rng_below(&rng, LEN - 8192);
		uint64_t add = rng_below(&rng, 1000), seen;

		for (unsigned i = 0; i < 8; i++) {
			if (dma_faa(u.q, &word, &old, add))
				proc_die("faa is refused");
			sum += add;
		}
		for (unsigned i = 0; i < 8; i++)
			peer_expect((int)peer_complete(u.q, PATIENCE).status, "faa");
		memcpy(&seen, u.memory, 8);
		if (seen + add != sum)
			proc_die("the counter was %llu, not %llu", (unsigned long long)(seen + add),
				 (unsigned long long)sum);
		peer_fill(u.memory + 4096, len, ++added);
		peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 4096, len),
				       peer_part(u.local, 4096, len)),
			    "write");
		memset(u.memory + 4096, 0, len);
		peer_expect(peer_read(u.q, peer_remote(&s->owner.export, 4096, len),
				      peer_part(u.local, 4096, len)),
			    "read");
		if (!peer_holds(u.memory + 4096, len, added))
			proc_die("what was written is not what is read");
		atomic_fetch_add(&s->done, 1);
	}
	user_close(&u);
	return 0;
}

static uint64_t faults_of(struct proxy *p)
{
	struct proxy_counts c;

	proxy_read(p, &c);
	return c.resets + c.closes + c.losses;
}

static void cuts(unsigned ends, unsigned count, unsigned after, const char *timeout_ms)
{
	struct scene *s = new_scene(timeout_ms);
	pid_t own = start_owner(s), user;
	struct proxy *p;

	s->config.seed = 4711 + ends;
	s->config.ends = ends;
	s->config.after = after;
	p = start_proxy(s);
	user = proc_start(works_through_cuts, s);
	/* Until a loss is noticed takes a second and more. */
	for (unsigned ms = 0; faults_of(p) < count && ms < PATIENCE + 3000 * count; ms++) {
		proc_sleep_us(1000);
		if (kill(user, 0))
			break;
	}
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(user, PATIENCE), 0);
	print_message("          %u faults, %u rounds\n", (unsigned)faults_of(p),
		      atomic_load(&s->done));
	assert_true(faults_of(p) >= count);
	proxy_stop(&p);
	proc_kill(own);
}

static void resets_execute_nothing_twice(void **state)
{
	(void)state;
	cuts(1u << PROXY_RESET | 1u << PROXY_CLOSE, proc_rounds(100, 1000), 300000, "8000");
}

/* Half-open: only silence tells. */
static void losses_are_noticed(void **state)
{
	(void)state;
	cuts(1u << PROXY_LOSE, proc_rounds(5, 50), 3000000, "4000");
}

/* ---- A line that never carries much ---- */

/* Each ends in time, either way: only bytes that are new keep an operation alive. */
static int works_over_a_short_line(void *arg)
{
	struct scene *s = arg;
	uint64_t limit = strtoull(s->timeout_ms, NULL, 10) * 1000000, began, took, longest = 0;
	bool works = s->config.script[0].after >= 1000;
	size_t len = 100000;
	struct user u;

	user_open(&u, s, true);
	for (unsigned i = 0; i < 3; i++) {
		struct dma_seg far =
			peer_remote(&s->owner.export, i == 2 ? 0 : 8, i == 2 ? 8 : len);
		struct dma_seg near = peer_part(u.local, 0, i == 2 ? 8 : len);
		int status;

		began = proc_now();
		if (i == 0)
			peer_fill(u.memory, len, 1);
		else
			memset(u.memory, 0, len);
		status = i == 0   ? peer_write(u.q, far, near)
			 : i == 1 ? peer_read(u.q, far, near)
				  : peer_faa(u.q, far, near, 1);
		took = proc_now() - began;
		longest = took > longest ? took : longest;
		if (status != (works ? DMA_CR_SUCCESS : DMA_CR_ACK_TIMEOUT_ERR))
			proc_die("operation %u ended with status %d", i, status);
		if (works && i == 1 && !peer_holds(u.memory, len, 1))
			proc_die("wrong data");
	}
	if (longest > proc_slack(works ? 10 * limit : 2 * limit))
		proc_die("one took %llu ms", (unsigned long long)longest / 1000000);
	print_message("          cut after %6llu bytes: %s, longest %llu ms\n",
		      (unsigned long long)s->config.script[0].after, works ? "works" : "fails",
		      (unsigned long long)longest / 1000000);
	user_close(&u);
	return 0;
}

static void a_line_that_is_always_cut_is_slow_or_given_up(void **state)
{
	static const uint64_t after[] = { 1, 300, 500, 1000, 5000, 20000, 59000 };

	(void)state;
	for (unsigned i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		struct scene *s = new_scene(after[i] < 1000 ? "500" : "2000");
		pid_t own = start_owner(s);
		struct proxy *p;

		s->config.entries = 1;
		s->config.script[0] = (struct proxy_fault){ .end = PROXY_RESET, .after = after[i] };
		p = start_proxy(s);
		assert_int_equal(proc_run(works_over_a_short_line, s, PATIENCE), 0);
		proxy_stop(&p);
		proc_kill(own);
	}
}

/* F115: byte by byte, over header and payload. */
static int works_in_grains(void *arg)
{
	struct scene *s = arg;
	struct user u;

	user_open(&u, s, true);
	for (uint64_t i = 1; i <= 4; i++) {
		size_t len = i * 700;

		peer_fill(u.memory, len, i);
		peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 3, len),
				       peer_part(u.local, 0, len)),
			    "write");
		memset(u.memory, 0, len);
		peer_expect(peer_read(u.q, peer_remote(&s->owner.export, 3, len),
				      peer_part(u.local, 0, len)),
			    "read");
		if (!peer_holds(u.memory, len, i))
			proc_die("wrong data");
	}
	user_close(&u);
	return 0;
}

static void single_bytes_are_put_together(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = start_owner(s);
	struct proxy *p;

	(void)state;
	s->config.entries = 1;
	s->config.script[0] = (struct proxy_fault){ .grain = 1, .grained = 1u << 20 };
	p = start_proxy(s);
	assert_int_equal(proc_run(works_in_grains, s, PATIENCE), 0);
	proxy_stop(&p);
	proc_kill(own);
}

/* ---- An owner that stops ---- */

static int meets_a_stopped_owner(void *arg)
{
	struct scene *s = arg;
	uint64_t limit = strtoull(s->timeout_ms, NULL, 10) * 1000000, began;
	struct dma_seg far, near, word, old;
	struct user u;

	user_open(&u, s, false);
	far = peer_remote(&s->owner.export, 0, 4096);
	near = peer_part(u.local, 0, 4096);
	word = peer_remote(&s->owner.export, 0, 8);
	old = peer_part(u.local, 4096,
			8); /* not where writes would wait for it: all are under way */
	peer_fill(u.memory, LEN, 1);
	peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, LEN), *u.local), "write");
	atomic_store(&s->step, 1); /* stop it */
	if (!proc_await(&s->stepped, 1, PATIENCE))
		proc_die("nobody stopped it");
	peer_fill(u.memory, LEN, 2);
	began = proc_now();
	for (unsigned i = 0; i < 16; i++)
		if (i % 4 == 3 ? dma_faa(u.q, &word, &old, 1) : dma_write(u.q, &far, &near))
			proc_die("a post is refused");
	for (unsigned i = 0; i < 16; i++) {
		struct dma_cr cr = peer_complete(u.q, PATIENCE);

		if (cr.status != DMA_CR_ACK_TIMEOUT_ERR)
			proc_die("status %d of a stopped owner", cr.status);
	}
	if (proc_now() - began < limit / 2)
		proc_die("gave up too early");
	if (proc_now() - began > proc_slack(3 * limit))
		proc_die("took %llu ms", (unsigned long long)(proc_now() - began) / 1000000);
	atomic_store(&s->step, 2); /* continue it */
	if (!proc_await(&s->stepped, 2, PATIENCE))
		proc_die("nobody continued it");
	/* All of it is served before what comes now; nothing of it was executed. */
	peer_expect(peer_read(u.q, peer_remote(&s->owner.export, 0, LEN), *u.local), "read");
	if (!peer_holds(u.memory, LEN, 1))
		proc_die("what was reported failed has landed");
	proc_sleep_us(limit / 1000);
	peer_expect(peer_read(u.q, peer_remote(&s->owner.export, 0, LEN), *u.local), "read");
	if (!peer_holds(u.memory, LEN, 1))
		proc_die("what was reported failed has landed later");
	user_close(&u);
	return 0;
}

static void a_stopped_owner_applies_nothing_late(void **state)
{
	(void)state;
	for (unsigned round = 0; round < proc_rounds(2, 20); round++) {
		struct scene *s = new_scene("400");
		pid_t own = start_owner(s), user = proc_start(meets_a_stopped_owner, s);

		assert_true(proc_await(&s->step, 1, PATIENCE));
		proc_stop(own);
		atomic_store(&s->stepped, 1);
		assert_true(proc_await(&s->step, 2, PATIENCE));
		proc_continue(own);
		atomic_store(&s->stepped, 2);
		assert_int_equal(proc_join(user, PATIENCE), 0);
		proc_kill(own);
	}
}

/* ---- An owner that dies ---- */

static int loses_its_owner(void *arg)
{
	struct scene *s = arg;
	struct dma_seg far = peer_remote(&s->owner.export, 0, LEN);
	uint64_t began;
	struct user u;

	user_open(&u, s, false);
	peer_expect(peer_write(u.q, far, *u.local), "write");
	for (unsigned i = 0; i < 32; i++)
		if (dma_write(u.q, &far, u.local))
			proc_die("a post is refused");
	atomic_store(&s->step, 1); /* kill it */
	if (!proc_await(&s->stepped, 1, PATIENCE))
		proc_die("nobody killed it");
	began = proc_now();
	for (unsigned i = 0; i < 32; i++) {
		struct dma_cr cr = peer_complete(u.q, PATIENCE);

		if (cr.status && cr.status != DMA_CR_ACK_TIMEOUT_ERR)
			proc_die("status %d of a dead owner", cr.status);
	}
	/* All at once, long before the time limit. */
	if (proc_now() - began > proc_slack(1000000000))
		proc_die("took %llu ms", (unsigned long long)(proc_now() - began) / 1000000);
	user_close(&u);
	return 0;
}

static void the_end_of_the_owner_ends_all_at_once(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = start_owner(s), user = proc_start(loses_its_owner, s);

	(void)state;
	assert_true(proc_await(&s->step, 1, PATIENCE));
	proc_kill(own);
	atomic_store(&s->stepped, 1);
	assert_int_equal(proc_join(user, PATIENCE), 0);
}

/* ---- Memory that goes ---- */

/* The program unmaps what it has registered: an error of this operation, and of no other. */
static int unmaps_its_own(void *arg)
{
	struct scene *s = arg;
	struct dma_seg far = peer_remote(&s->owner.export, 0, LEN);
	struct user u;

	user_open(&u, s, false);
	for (unsigned i = 0; i < 3; i++) {
		int status;

		peer_fill(u.memory, LEN, i + 1);
		peer_expect(peer_write(u.q, far, *u.local), "write");
		/* Without a hole: another thread's mmap would take it, and lose it below. */
		if (mmap(u.memory + LEN / 2, LEN / 2, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			proc_die("mmap: %m");
		status = peer_write(u.q, far, *u.local);
		if (status != DMA_CR_LOC_ACCESS_ERR)
			proc_die("a write from unmapped memory: status %d", status);
		status = peer_read(u.q, far, *u.local);
		if (status != DMA_CR_LOC_ACCESS_ERR)
			proc_die("a read into unmapped memory: status %d", status);
		if (mmap(u.memory + LEN / 2, LEN / 2, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			proc_die("mmap: %m");
		peer_expect(peer_read(u.q, far, *u.local), "read");
		if (!peer_holds(u.memory, LEN, i + 1))
			proc_die("wrong data");
	}
	user_close(&u);
	return 0;
}

static void unmapped_local_memory_ends_one_operation(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = start_owner(s);

	(void)state;
	assert_int_equal(proc_run(unmaps_its_own, s, PATIENCE), 0);
	proc_kill(own);
}

static int owner_unmaps(void *arg)
{
	struct scene *s = arg;
	uint8_t *memory;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", s->timeout_ms, 1);
	peer_only(PEER_TCP);
	peer_open(&p);
	memory = peer_memory(PEER_TCP, LEN);
	peer_register(&p, memory, LEN, &s->owner.export);
	if (mmap(memory + LEN / 2, LEN / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		proc_die("mmap: %m");
	atomic_store(&s->owner.ready, 1);
	for (;;)
		proc_sleep_us(1000000);
	return 0;
}

static int meets_holes(void *arg)
{
	struct scene *s = arg;
	struct dma_seg far = peer_remote(&s->owner.export, 0, LEN);
	struct user u;

	user_open(&u, s, false);
	for (unsigned i = 0; i < 3; i++) {
		int status = peer_read(u.q, far, *u.local);

		if (status != DMA_CR_REM_ACCESS_ABORT_ERR)
			proc_die("a read of unmapped memory: status %d", status);
		status = peer_write(u.q, far, *u.local);
		if (status != DMA_CR_REM_ACCESS_ABORT_ERR)
			proc_die("a write to unmapped memory: status %d", status);
		peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, LEN / 2),
				       peer_part(u.local, 0, LEN / 2)),
			    "write");
	}
	user_close(&u);
	return 0;
}

static void unmapped_remote_memory_ends_one_operation(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = proc_start(owner_unmaps, s);

	(void)state;
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	assert_int_equal(proc_run(meets_holes, s, PATIENCE), 0);
	proc_kill(own);
}

/* ---- Links that lie idle ---- */

static int lies_idle(void *arg)
{
	struct scene *s = arg;
	struct user u;
	int busy, idle = 0;

	setenv("XTAL_IDLE_MS", "100", 1);
	user_open(&u, s, false);
	peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, 8), peer_part(u.local, 0, 8)),
		    "write");
	busy = proc_fd_count(getpid());
	for (unsigned i = 0; i < 5000; i++) {
		proc_sleep_us(1000);
		idle = proc_fd_count(getpid());
		if (idle < busy)
			break;
	}
	if (idle != busy - 1)
		proc_die("%d descriptors while busy, %d when idle", busy, idle);
	/* The link comes back without anybody's help. */
	peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, 8), peer_part(u.local, 0, 8)),
		    "write after the pause");
	user_close(&u);
	return 0;
}

static void an_idle_connection_is_closed_and_comes_back(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = start_owner(s);

	(void)state;
	assert_int_equal(proc_run(lies_idle, s, PATIENCE), 0);
	proc_kill(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(resets_execute_nothing_twice, proc_end_all),
		cmocka_unit_test_teardown(losses_are_noticed, proc_end_all),
		cmocka_unit_test_teardown(a_line_that_is_always_cut_is_slow_or_given_up,
					  proc_end_all),
		cmocka_unit_test_teardown(single_bytes_are_put_together, proc_end_all),
		cmocka_unit_test_teardown(a_stopped_owner_applies_nothing_late, proc_end_all),
		cmocka_unit_test_teardown(the_end_of_the_owner_ends_all_at_once, proc_end_all),
		cmocka_unit_test_teardown(unmapped_local_memory_ends_one_operation, proc_end_all),
		cmocka_unit_test_teardown(unmapped_remote_memory_ends_one_operation, proc_end_all),
		cmocka_unit_test_teardown(an_idle_connection_is_closed_and_comes_back,
					  proc_end_all),
	};

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
