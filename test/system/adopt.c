/* SPDX-License-Identifier: MIT */
/*
 * Adoption as peers see it: when private memory becomes mappable, and that nothing is lost while
 * it does, and while it becomes private again, under traffic over every path; with peers that are
 * stopped or killed in the middle, forks, and owners that unmap what they registered.
 */
/* ctest: timeout=240 label=soak */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define SHARE    ((size_t)64 << 10) /* what each of the users has */
#define PATIENCE 30000u

static void settings(const char *adopt)
{
	setenv("XTAL_ADOPT", adopt, 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("XTAL_INLINE_BYTES", "32k", 1);
	setenv("XTAL_FRAGMENT_BYTES", "16k", 1);
}

static void need(int least)
{
	char text[200];

	if (xtal_adoption_query(text, sizeof(text)) < least)
		proc_skip("adoption: %s", text);
}

/* ---- when ---- */

struct case_of {
	const char *adopt;
	bool user_mode, ask, before; /* before: asked before it is registered */
	unsigned path;               /* in the end */
	const char *words;           /* of the reason */
	int share;                   /* what xtal_share() answers */
	struct peer_export export;
	_Atomic uint32_t ready, quit;
};

static int case_owner(void *arg)
{
	struct case_of *c = arg;
	uint8_t *memory;
	struct peer p;

	settings(c->adopt);
	if (c->user_mode && !(child_deny(SYS_ioctl, EPERM, 1, 0xaa00) &&
			      child_deny(SYS_userfaultfd, EPERM, 0, O_CLOEXEC | O_NONBLOCK)))
		return 77;
	peer_open(&p);
	memory = (uint8_t *)peer_memory(PEER_CMA, 4 * SHARE) + 100; /* no whole pages at the ends */
	peer_fill(memory + 4, SHARE, 1);
	if (!c->before)
		peer_register(&p, memory, SHARE + 8192, &c->export);
	if (c->ask && xtal_share(memory, SHARE + 8192) != c->share)
		proc_die("xtal_share: not %d; %s", c->share, xtal_last_error());
	if (c->before)
		peer_register(&p, memory, SHARE + 8192, &c->export);
	atomic_store(&c->ready, 1);
	while (!atomic_load(&c->quit))
		proc_sleep_us(500);
	if (!peer_holds(memory + 4 + 4096, SHARE - 4096, 1 + 512))
		proc_die("memory has changed");
	return 0;
}

static int case_peer(void *arg)
{
	struct case_of *c = arg;
	struct dma_queue *q;
	struct peer_export middle = c->export;
	struct dma_seg *local;
	char reason[2000];
	uint64_t *word;
	struct peer p;
	unsigned path = 0;

	settings("off");
	peer_open(&p);
	q = peer_queue(&p, 4);
	word = peer_memory(PEER_CMA, 4096);
	local = peer_register(&p, word, 4096, NULL);
	middle.sva += 8192;
	middle.len = 4096;
	for (unsigned i = 0; i < 100 && path != c->path; i++) {
		for (unsigned k = 0; k < 200; k++) {
			word[0] = i * 1000 + k;
			peer_expect(peer_write(q, peer_remote(&c->export, 3996, 8),
					       peer_part(local, 0, 8)),
				    "write");
		}
		path = peer_path_taken(q, &middle, reason, sizeof(reason));
		if (c->path == XTAL_PATH_CMA && i < 99)
			path = 0; /* for long enough */
	}
	if (path != c->path || !strstr(reason, c->words))
		proc_die("path %s: %s", xtal_path_name(path), reason);
	/* Across the borders of what is adopted: all of it, in both directions. */
	peer_expect(peer_read(q, peer_remote(&c->export, 4, 4096), *local), "read");
	if (c->export.len > 4096 && !peer_holds(word, 3992, 1))
		proc_die("other bytes are read");
	peer_expect(peer_write(q, peer_remote(&c->export, 4, 4096), *local), "write");
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void run_case(const struct case_of *in)
{
	struct case_of *c = proc_shared(sizeof(*c));
	pid_t owner;
	int status;

	memcpy(c, in, sizeof(*c));
	owner = proc_start(case_owner, c);
	if (!proc_await(&c->ready, 1, PATIENCE)) {
		status = proc_join(owner, 1000);
		if (status == 77 << 8)
			proc_skip("seccomp filters are not allowed");
		assert_int_equal(status, 0);
	}
	assert_int_equal(proc_run(case_peer, c, PATIENCE), 0);
	atomic_store(&c->quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

static void what_is_used_much(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_FULL);
	run_case(&(struct case_of){
		.adopt = "auto", .path = XTAL_PATH_MAP, .words = "since peers use it much" });
}

static void never_when_off(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_FULL);
	run_case(&(struct case_of){ .adopt = "off",
				    .path = XTAL_PATH_CMA,
				    .ask = true,
				    .share = -EPERM,
				    .words = "private memory" });
}

static void always(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_USER);
	run_case(&(struct case_of){
		.adopt = "always", .path = XTAL_PATH_MAP, .words = "XTAL_ADOPT=always" });
}

static void on_request(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_USER);
	run_case(&(struct case_of){
		.adopt = "auto", .ask = true, .path = XTAL_PATH_MAP, .words = "xtal_share()" });
	run_case(&(struct case_of){ .adopt = "auto",
				    .ask = true,
				    .before = true,
				    .path = XTAL_PATH_MAP,
				    .words = "xtal_share()" });
}

static void user_mode_only_on_request(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_USER);
	run_case(&(struct case_of){ .adopt = "auto",
				    .user_mode = true,
				    .path = XTAL_PATH_CMA,
				    .words = "private memory" });
	run_case(&(struct case_of){ .adopt = "auto",
				    .user_mode = true,
				    .ask = true,
				    .path = XTAL_PATH_MAP,
				    .words = "xtal_share()" });
}

/* An ordinary user, and root of a user namespace: what they may do is named, and works. */
enum who {
	ORDINARY,
	NAMESPACE_ROOT
};

static int as_somebody(void *arg)
{
	enum who who = *(const enum who *)arg;
	char text[200];
	uint8_t *memory;
	int level;

	settings("auto");
	if (who == ORDINARY ? setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)
			    : unshare(CLONE_NEWUSER))
		return 77;
	prctl(PR_SET_DUMPABLE, 1); /* /proc/self is ours again */
	level = xtal_adoption_query(text, sizeof(text));
	if (level == XTAL_ADOPTION_NONE)
		return strstr(text, "userfaultfd") ? 0 : 1;
	if (level == XTAL_ADOPTION_USER && !strstr(text, "user mode only"))
		proc_die("level %d: %s", level, text);
	memory = peer_memory(PEER_CMA, SHARE);
	peer_fill(memory, SHARE, 3);
	if (xtal_share(memory, SHARE) || !peer_holds(memory, SHARE, 3) ||
	    xtal_unshare(memory, SHARE) || !peer_holds(memory, SHARE, 3))
		proc_die("level %d, yet: %s", level, xtal_last_error());
	return 0;
}

static void without_privileges(void **state)
{
	(void)state;
	need(XTAL_ADOPTION_USER);
	for (enum who who = ORDINARY; who <= NAMESPACE_ROOT; who++) {
		int status = proc_run(as_somebody, &who, PATIENCE);

		if (status == 77 << 8)
			proc_skip("neither another user nor a user namespace can be had");
		assert_int_equal(status, 0);
	}
}

/* ---- under traffic ---- */

enum user {
	BY_RING,
	BY_CMA,
	BEST,   /* by map while it is adopted */
	ADDING, /* the same; the owner adds to the same words */
	USERS
};

static const char *const names[USERS] = { "ring", "cma", "the best path", "adding" };

struct scene {
	struct peer_export rest;
	_Atomic uint32_t ready, enough, end, rounds[USERS], adopted, asked, changed;
	_Atomic uint64_t added[2];
	_Atomic uint64_t mapped; /* operations of BEST by map */
};

struct helper {
	struct scene *s;
	enum user user;
};

static void open_user(struct helper *h, struct peer *p)
{
	settings("off");
	if (h->user == BY_RING)
		peer_only(PEER_RING);
	else if (h->user == BY_CMA)
		peer_only(PEER_CMA);
	peer_open(p);
}

/* Writes a part, reads it back, compares. */
static int user_run(void *arg)
{
	struct helper *h = arg;
	struct scene *s = h->s;
	struct xtal_counters counters;
	struct dma_seg *local;
	struct dma_queue *q;
	uint8_t *memory;
	struct rng rng = { .state = h->user + 1u };
	uint64_t seed = 1;
	struct peer p;

	open_user(h, &p);
	q = peer_queue(&p, 4);
	memory = peer_memory(PEER_CMA, 2 * SHARE);
	local = peer_register(&p, memory, 2 * SHARE, NULL);
	while (!atomic_load(&s->enough)) {
		size_t len = rng_below(&rng, 2) ? 64 : SHARE;
		uint64_t at = h->user * SHARE + rng_below(&rng, (SHARE - len) / 8 + 1) * 8;

		peer_fill(memory, len, ++seed);
		memset(memory + SHARE, 0, len);
		peer_expect(peer_write(q, peer_remote(&s->rest, at, len), peer_part(local, 0, len)),
			    "write");
		peer_expect(
			peer_read(q, peer_remote(&s->rest, at, len), peer_part(local, SHARE, len)),
			"read");
		if (!peer_holds(memory + SHARE, len, seed))
			proc_die("what was written over %s is not there", names[h->user]);
		atomic_fetch_add(&s->rounds[h->user], 1);
		xtal_counters_read(&counters, sizeof(counters));
		if (h->user == BEST)
			s->mapped = counters.ops[XTAL_PATH_MAP];
	}
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static int adder_run(void *arg)
{
	struct helper *h = arg;
	struct scene *s = h->s;
	struct dma_seg *local, word;
	struct dma_queue *q;
	uint64_t *old;
	struct peer p;

	open_user(h, &p);
	q = peer_queue(&p, 4);
	old = peer_memory(PEER_CMA, 4096);
	local = peer_register(&p, old, 8, NULL);
	word = peer_remote(&s->rest, ADDING * SHARE, 8);
	while (!atomic_load(&s->enough)) {
		peer_expect(peer_faa(q, word, *local, 1), "addition");
		atomic_fetch_add(&s->added[0], 1);
		atomic_fetch_add(&s->rounds[ADDING], 1);
	}
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

struct own {
	struct scene *s;
	uint8_t *memory;
};

static void *owner_adds(void *arg)
{
	struct own *o = arg;

	while (!atomic_load(&o->s->enough)) {
		atomic_fetch_add((_Atomic uint64_t *)(o->memory + ADDING * SHARE), 1);
		atomic_fetch_add(&o->s->added[1], 1);
	}
	return NULL;
}

static bool may_fail(int err)
{
	return !err || err == -EBUSY || err == -EAGAIN;
}

static int scene_owner(void *arg)
{
	struct scene *s = arg;
	struct own o = { .s = s };
	pthread_t thread;
	uint64_t sum;
	struct peer p;
	int err;

	settings("auto");
	peer_open(&p);
	o.memory = peer_memory(PEER_CMA, USERS * SHARE);
	peer_register(&p, o.memory, USERS * SHARE, &s->rest);
	if (pthread_create(&thread, NULL, owner_adds, &o))
		proc_die("no thread");
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->enough)) {
		/* By itself, too: peers use it much. */
		err = xtal_share(o.memory, USERS * SHARE);
		if (!may_fail(err))
			proc_die("share: %s", xtal_last_error());
		proc_sleep_us(atomic_load(&s->asked) ? 200 : 2000);
		atomic_fetch_add(&s->adopted, !err);
		err = xtal_unshare(o.memory, USERS * SHARE);
		if (!may_fail(err) && err != -ENOENT)
			proc_die("unshare: %s", xtal_last_error());
		atomic_fetch_add(&s->changed, 1);
	}
	pthread_join(thread, NULL);
	while (!atomic_load(&s->end))
		proc_sleep_us(200);
	sum = atomic_load((_Atomic uint64_t *)(o.memory + ADDING * SHARE));
	if (sum != s->added[0] + s->added[1])
		proc_die("%llu and %llu additions, the sum is %llu",
			 (unsigned long long)s->added[0], (unsigned long long)s->added[1],
			 (unsigned long long)sum);
	return 0;
}

static void start_users(struct scene *s, pid_t users[USERS])
{
	struct helper *h = proc_shared(sizeof(*h) * USERS);

	for (unsigned i = 0; i < USERS; i++) {
		h[i] = (struct helper){ .s = s, .user = (enum user)i };
		users[i] = proc_start(i == ADDING ? adder_run : user_run, &h[i]);
	}
	for (unsigned i = 0; i < USERS; i++)
		assert_true(proc_await(&s->rounds[i], 1, PATIENCE));
}

static void finish_scene(struct scene *s, pid_t owner, const pid_t users[USERS])
{
	atomic_store(&s->enough, 1);
	for (unsigned i = 0; i < USERS; i++)
		if (users[i])
			assert_int_equal(proc_join(users[i], PATIENCE), 0);
	atomic_store(&s->end, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
	print_message("adopted %u times in %u rounds; ring %u, cma %u, best %u (by map: %llu), "
		      "additions %u\n",
		      s->adopted, s->changed, s->rounds[BY_RING], s->rounds[BY_CMA],
		      s->rounds[BEST], (unsigned long long)s->mapped, s->rounds[ADDING]);
}

static void under_traffic(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner, users[USERS];

	(void)state;
	need(XTAL_ADOPTION_FULL);
	owner = proc_start(scene_owner, s);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	start_users(s, users);
	assert_true(proc_await(&s->changed, proc_rounds(60, 100000), PATIENCE * 100));
	/* A few rounds may be over before the best path was once the map. */
	for (uint64_t end = proc_now() + PATIENCE * UINT64_C(1000000);
	     !atomic_load(&s->mapped) && proc_now() < end;)
		proc_sleep_us(1000);
	finish_scene(s, owner, users);
	assert_true(s->adopted > 0);
	assert_true(s->mapped > 0);
}

/* Peers that are stopped and killed at any moment: the owner neither waits for ever nor loses. */
static void peers_stopped_and_killed(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	uint32_t rounds = proc_rounds(20, 20000);
	pid_t owner, users[USERS];
	struct rng rng = { .state = 4 };
	struct helper *victim = proc_shared(sizeof(*victim));

	(void)state;
	need(XTAL_ADOPTION_FULL);
	owner = proc_start(scene_owner, s);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	start_users(s, users);
	*victim = (struct helper){ .s = s, .user = BEST };
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t before = atomic_load(&s->changed);

		proc_stop(users[BEST]);
		assert_true(proc_await(&s->changed, before + 2, PATIENCE));
		if (i % 4 == 3) {
			proc_kill(users[BEST]);
			before = atomic_load(&s->rounds[BEST]);
			users[BEST] = proc_start(user_run, victim);
			assert_true(proc_await(&s->rounds[BEST], before + 1, PATIENCE));
		} else {
			proc_continue(users[BEST]);
		}
		proc_sleep_us(rng_below(&rng, 3000));
	}
	finish_scene(s, owner, users);
}

/* ---- the owner's own doing ---- */

/* A child sees the memory as it was, whatever the parent does next; the parent's stays usable. */
static int forks(void *arg)
{
	uint32_t rounds = *(const uint32_t *)arg;
	struct peer_export e;
	uint8_t *memory;
	struct peer p;
	int status;

	settings("auto");
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SHARE);
	peer_register(&p, memory, SHARE, &e);
	for (uint32_t i = 1; i <= rounds; i++) {
		pid_t child;

		peer_fill(memory, SHARE, i);
		if (xtal_share(memory, SHARE))
			proc_die("share: %s", xtal_last_error());
		child = fork();
		if (!child) {
			proc_sleep_us(500);
			_exit(!peer_holds(memory, SHARE, i));
		}
		peer_fill(memory, SHARE, 7);
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			proc_die("the child of round %u: status %x", i, status);
		if (!peer_holds(memory, SHARE, 7))
			proc_die("the parent's memory has changed");
	}
	return 0;
}

static void snapshot_of_a_fork(void **state)
{
	uint32_t rounds = proc_rounds(100, 20000);

	(void)state;
	need(XTAL_ADOPTION_USER);
	assert_int_equal(proc_run(forks, &rounds, 120000), 0);
}

/* Unmaps and maps again at the same place what is registered and adopted: peers get the new content
 * or an error, never the old. */
struct remap {
	struct peer_export export;
	_Atomic uint32_t asked, done, quit;
};

static int remapper(void *arg)
{
	struct remap *r = arg;
	uint8_t *memory;
	struct peer p;

	settings("auto");
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SHARE);
	peer_register(&p, memory, SHARE, &r->export);
	for (uint32_t round = 1; !atomic_load(&r->quit); round++) {
		if (round > 1) {
			munmap(memory, SHARE);
			if (mmap(memory, SHARE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory)
				proc_die("mmap: %m");
		}
		peer_fill(memory, SHARE, round);
		if (round % 2 && !may_fail(xtal_share(memory, SHARE)))
			proc_die("share: %s", xtal_last_error());
		atomic_store(&r->done, round);
		while (atomic_load(&r->asked) < round && !atomic_load(&r->quit))
			proc_sleep_us(20);
	}
	return 0;
}

static int remap_peer(void *arg)
{
	struct remap *r = arg;
	uint32_t rounds = proc_rounds(200, 50000);
	struct dma_seg *local;
	struct dma_queue *q;
	uint8_t *memory;
	struct peer p;

	settings("off");
	peer_open(&p);
	q = peer_queue(&p, 4);
	memory = peer_memory(PEER_CMA, SHARE);
	local = peer_register(&p, memory, SHARE, NULL);
	for (uint32_t round = 1; round <= rounds; round++) {
		if (!proc_await(&r->done, round, PATIENCE))
			proc_die("the owner does not go on");
		if (!peer_read(q, peer_remote(&r->export, 0, SHARE), *local) &&
		    !peer_holds(memory, SHARE, round))
			proc_die("round %u: other content than the owner's", round);
		atomic_store(&r->asked, round);
	}
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void mapped_again_at_the_same_place(void **state)
{
	struct remap *r = proc_shared(sizeof(*r));
	pid_t owner;

	(void)state;
	need(XTAL_ADOPTION_FULL);
	owner = proc_start(remapper, r);
	assert_true(proc_await(&r->done, 1, PATIENCE));
	assert_int_equal(proc_run(remap_peer, r, 120000), 0);
	atomic_store(&r->quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_used_much, proc_end_all),
		cmocka_unit_test_teardown(never_when_off, proc_end_all),
		cmocka_unit_test_teardown(always, proc_end_all),
		cmocka_unit_test_teardown(on_request, proc_end_all),
		cmocka_unit_test_teardown(user_mode_only_on_request, proc_end_all),
		cmocka_unit_test_teardown(without_privileges, proc_end_all),
		cmocka_unit_test_teardown(under_traffic, proc_end_all),
		cmocka_unit_test_teardown(peers_stopped_and_killed, proc_end_all),
		cmocka_unit_test_teardown(snapshot_of_a_fork, proc_end_all),
		cmocka_unit_test_teardown(mapped_again_at_the_same_place, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("an emulator has no userfaultfd");
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
