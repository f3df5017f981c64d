/* SPDX-License-Identifier: MIT */
/*
 * How operations and links over tcp end, and that nothing else does: refused in the middle of what is
 * sent, by time when the owner or we ourselves are stopped, because of somebody else at the port, with
 * owners that die. And that the log says why.
 */
/* ctest: timeout=120 label=soak */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define LEN      ((size_t)256 << 10)
#define PATIENCE 60000u

struct scene {
	struct peer_owner owner;
	_Atomic uint32_t step, stepped; /* what the test shall do, and has done */
	unsigned rounds;
	const char *timeout_ms;
};

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

/* Asks the test for a step, and waits until it is done. */
static void ask(struct scene *s, uint32_t step)
{
	atomic_store(&s->step, step);
	if (!proc_await(&s->stepped, step, PATIENCE))
		proc_die("step %u was not done", step);
}

/* The initiator's things. */
struct user {
	struct peer p;
	struct dma_queue *q;
	struct dma_seg *local;
	uint8_t *memory;
};

static void user_open(struct user *u, const struct scene *s)
{
	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", s->timeout_ms, 1);
	peer_only(PEER_TCP);
	peer_open(&u->p);
	u->memory = peer_memory(PEER_TCP, LEN);
	u->local = peer_register(&u->p, u->memory, LEN, NULL);
	u->q = peer_queue(&u->p, 32);
}

static void user_close(struct user *u)
{
	dma_free_queue(u->q);
	dma_unregister_seg(u->p.ctx, u->local);
	peer_close(&u->p);
}

/* ---- Writes that are refused before all of them is sent ---- */

#define MUCH   ((size_t)48 << 20) /* more than sockets hold */
#define AROUND ((size_t)256 << 20)

/* What is left of one goes out without its memory: that, and the place of the operation in the queue, may
 * be another's by then. Here another one's memory ends after a page. */
static int is_refused_and_goes_on(void *arg)
{
	struct scene *s = arg;
	struct dma_seg far = peer_remote(&s->owner.export, 0, 8), wide = far, *big, *small;
	uint8_t *space, *page, *much;
	struct user u;

	user_open(&u, s);
	space = mmap(NULL, AROUND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED || mprotect(space + AROUND / 2, 4096, PROT_READ | PROT_WRITE))
		proc_die("mmap: %m");
	page = space + AROUND / 2;
	much = peer_memory(PEER_TCP, MUCH);
	small = peer_register(&u.p, page, 4096, NULL);
	big = peer_register(&u.p, much, MUCH, NULL);
	wide.len = MUCH; /* the owner's segment has less */
	for (uint64_t i = 1; i <= 20; i++) {
		struct dma_seg word = peer_part(small, 0, 8), back = peer_part(u.local, 0, 8);
		int status = peer_write(u.q, wide, *big);

		if (status != DMA_CR_REM_ACCESS_ABORT_ERR)
			proc_die("a write that is too long: status %d", status);
		memcpy(page, &i, 8);
		peer_expect(peer_write(u.q, far, word), "the write after it");
		peer_expect(peer_read(u.q, far, back), "read");
		if (memcmp(u.memory, &i, 8) != 0)
			proc_die("wrong data");
	}
	/* Also when the queue is gone before the rest of it is. */
	for (unsigned i = 0; i < 5; i++) {
		struct dma_queue *q = peer_queue(&u.p, 4);

		if (peer_write(q, wide, *big) != DMA_CR_REM_ACCESS_ABORT_ERR)
			proc_die("a write that is too long: another status");
		dma_free_queue(q);
		peer_expect(peer_write(u.q, far, peer_part(u.local, 0, 8)), "write");
	}
	dma_unregister_seg(u.p.ctx, small);
	dma_unregister_seg(u.p.ctx, big);
	user_close(&u);
	return 0;
}

static void refused_writes_take_nothing_else_along(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t own = start_owner(s);

	(void)state;
	assert_int_equal(proc_run(is_refused_and_goes_on, s, PATIENCE), 0);
	proc_kill(own);
}

/* ---- An initiator that stops ---- */

/* Polls for an answer, and is stopped meanwhile; then meets a stopped owner. */
static int is_stopped_itself(void *arg)
{
	struct scene *s = arg;
	struct dma_seg word = peer_remote(&s->owner.export, 0, 8), old, far, near;
	unsigned rounds = s->rounds;
	struct user u;

	user_open(&u, s);
	old = peer_part(u.local, LEN - 8, 8);
	far = peer_remote(&s->owner.export, 0, 4096);
	near = peer_part(u.local, 0, 4096);
	peer_fill(u.memory, LEN, 1);
	peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, LEN), *u.local), "write");
	for (uint32_t i = 0; i < rounds; i++) {
		ask(s, 3 * i + 1); /* to stop the owner */
		if (dma_faa(u.q, &word, &old, 0))
			proc_die("a post is refused");
		atomic_store(&s->step, 3 * i + 2); /* stop us */
		peer_expect((int)peer_complete(u.q, PATIENCE).status, "faa");
		peer_fill(u.memory, 4096, 2);
		if (peer_write(u.q, far, near) != DMA_CR_ACK_TIMEOUT_ERR)
			proc_die("a stopped owner has answered");
		atomic_store(&s->step, 3 * i + 3); /* continue the owner */
		for (unsigned k = 0; k < 2; k++) {
			proc_sleep_us(200000 * k);
			peer_expect(peer_read(u.q, peer_remote(&s->owner.export, 0, LEN), *u.local),
				    "read");
			if (!peer_holds(u.memory, LEN, 1))
				proc_die("round %u: what was reported failed has landed", i);
		}
	}
	user_close(&u);
	return 0;
}

/* A lease counts from when an answer came, not from when the clock was read before it. */
static void a_stopped_initiator_lengthens_no_lease(void **state)
{
	struct scene *s = new_scene("1500");
	pid_t own = start_owner(s), user;

	(void)state;
	s->rounds = proc_rounds(6, 20);
	user = proc_start(is_stopped_itself, s);
	for (uint32_t i = 0; i < s->rounds; i++) {
		assert_true(proc_await(&s->step, 3 * i + 1, PATIENCE));
		proc_stop(own);
		atomic_store(&s->stepped, 3 * i + 1);
		assert_true(proc_await(&s->step, 3 * i + 2, PATIENCE));
		proc_sleep_us(3000);
		proc_stop(user);
		proc_sleep_us(700000);
		proc_continue(own);
		proc_sleep_us(30000); /* it answers */
		proc_stop(own);
		proc_continue(user);
		assert_true(proc_await(&s->step, 3 * i + 3, PATIENCE));
		proc_continue(own);
	}
	assert_int_equal(proc_join(user, PATIENCE), 0);
	proc_kill(own);
}

/* ---- Owners that die, or are stopped for too long ---- */

/* An initiator outlives its owners: of those that died nothing is kept. */
static int outlives_its_owners(void *arg)
{
	struct scene *s = arg;
	struct xtal_counters c = { 0 };
	struct user u;

	user_open(&u, s);
	for (uint32_t i = 1; i <= s->rounds; i++) {
		if (!proc_await(&s->step, i, PATIENCE))
			proc_die("no owner");
		peer_expect(peer_write(u.q, peer_remote(&s->owner.export, 0, 8),
				       peer_part(u.local, 0, 8)),
			    "write");
		atomic_store(&s->stepped, i);
	}
	for (unsigned ms = 0; ms < PATIENCE; ms++) {
		xtal_counters_read(&c, sizeof(c));
		if (!c.links)
			break;
		proc_sleep_us(1000);
	}
	if (c.links)
		proc_die("%llu links are left of %u owners", (unsigned long long)c.links,
			 s->rounds);
	user_close(&u);
	return 0;
}

static void owners_that_died_leave_no_link(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t user;

	(void)state;
	s->rounds = proc_rounds(10, 100);
	user = proc_start(outlives_its_owners, s);
	for (uint32_t i = 1; i <= s->rounds; i++) {
		pid_t own;

		atomic_store(&s->owner.ready, 0);
		own = start_owner(s);
		atomic_store(&s->step, i);
		assert_true(proc_await(&s->stepped, i, PATIENCE));
		proc_kill(own);
	}
	assert_int_equal(proc_join(user, PATIENCE), 0);
}

/* What waits behind operations that end by time ends with them, not each after a time of its own. */
static int fills_its_queue(void *arg)
{
	struct scene *s = arg;
	uint64_t limit = strtoull(s->timeout_ms, NULL, 10) * 1000000, began;
	const unsigned depth = 1000;
	struct dma_seg far, near;
	struct dma_queue *q;
	struct user u;

	user_open(&u, s);
	q = peer_queue(&u.p, depth);
	far = peer_remote(&s->owner.export, 0, 64);
	near = peer_part(u.local, 0, 64);
	peer_expect(peer_write(q, far, near), "write");
	ask(s, 1); /* to stop it */
	began = proc_now();
	for (unsigned i = 0; i < depth; i++)
		if (dma_write(q, &far, &near))
			proc_die("a post is refused");
	for (unsigned i = 0; i < depth; i++)
		if (peer_complete(q, PATIENCE).status != DMA_CR_ACK_TIMEOUT_ERR)
			proc_die("a stopped owner has answered");
	if (proc_now() - began > proc_slack(3 * limit))
		proc_die("took %llu ms", (unsigned long long)(proc_now() - began) / 1000000);
	ask(s, 2); /* to continue it */
	/* Its time limit is short for a busy machine. */
	for (unsigned i = 0; peer_write(q, far, near); i++)
		if (i == 50)
			proc_die("no write comes through afterwards");
	dma_free_queue(q);
	user_close(&u);
	return 0;
}

static void a_long_queue_ends_at_once(void **state)
{
	struct scene *s = new_scene("500");
	pid_t own = start_owner(s), user = proc_start(fills_its_queue, s);

	(void)state;
	assert_true(proc_await(&s->step, 1, PATIENCE));
	proc_stop(own);
	atomic_store(&s->stepped, 1);
	assert_true(proc_await(&s->step, 2, PATIENCE));
	proc_continue(own);
	atomic_store(&s->stepped, 2);
	assert_int_equal(proc_join(user, PATIENCE), 0);
	proc_kill(own);
}

/* ---- A port that another program has ---- */

static _Atomic uint32_t *alien_port;
static char log_file[64];

/* Any thread may find out: the log has it. */
static void log_anew(void)
{
	unlink(log_file);
	setenv("XTAL_LOG", log_file, 1);
}

static void must_tell(const char *words)
{
	if (!proc_file_has(log_file, words))
		proc_die("%s does not say \"%s\"", log_file, words);
}

/* Says what such servers say, or nothing, and waits. */
static int is_an_alien(void *arg)
{
	bool silent = arg;
	static const char banner[] = "SSH-2.0-OpenSSH_9.2p1\r\n";
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(PEER_LOOPBACK) };
	socklen_t len = sizeof(at);
	int sock = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(sock, (struct sockaddr *)&at, len) || listen(sock, 8) ||
	    getsockname(sock, (struct sockaddr *)&at, &len))
		proc_die("no alien: %m");
	atomic_store(alien_port, ntohs(at.sin_port));
	for (;;) {
		int fd = accept(sock, NULL, NULL);

		if (!silent && send(fd, banner, sizeof(banner) - 1, MSG_NOSIGNAL) < 0)
			close(fd);
	}
}

/* Known at once, and told: who, where, what. */
static int meets_an_alien(void *arg)
{
	struct scene *s = arg;
	uint64_t began = proc_now();
	struct dma_seg far;
	char port[16];
	struct user u;
	int status;

	log_anew();
	user_open(&u, s);
	s->owner.export = (struct peer_export){ .sva = 4096, .tid = 1u << 16 | *alien_port };
	far = peer_remote(&s->owner.export, 0, 8);
	status = peer_write(u.q, far, peer_part(u.local, 0, 8));
	if (status != DMA_CR_ACK_TIMEOUT_ERR)
		proc_die("status %d", status);
	if (proc_now() - began > proc_slack(2000000000))
		proc_die("took %llu ms", (unsigned long long)(proc_now() - began) / 1000000);
	snprintf(port, sizeof(port), "port %u ", *alien_port);
	must_tell(port);
	must_tell("127.0.0.1");
	must_tell(strcmp(s->timeout_ms, "8000") == 0 ? "another protocol" : "the greeting");
	user_close(&u);
	return 0;
}

static void another_program_at_the_port_is_named(void **state)
{
	struct scene *s = new_scene("8000");
	pid_t alien;

	(void)state;
	alien_port = proc_shared(sizeof(*alien_port));
	alien = proc_start(is_an_alien, NULL);
	assert_true(proc_await(alien_port, 1, PATIENCE));
	assert_int_equal(proc_run(meets_an_alien, s, PATIENCE), 0);
	proc_kill(alien);
}

static void a_silent_program_at_the_port_is_named(void **state)
{
	struct scene *s = new_scene("500");
	pid_t alien;

	(void)state;
	alien_port = proc_shared(sizeof(*alien_port));
	alien = proc_start(is_an_alien, s);
	assert_true(proc_await(alien_port, 1, PATIENCE));
	assert_int_equal(proc_run(meets_an_alien, s, PATIENCE), 0);
	proc_kill(alien);
}

/* What ends by time says what kept it. */
static int is_told_why(void *arg)
{
	struct scene *s = arg;
	struct dma_seg far, near;
	struct user u;

	log_anew();
	user_open(&u, s);
	far = peer_remote(&s->owner.export, 0, 8);
	near = peer_part(u.local, 0, 8);
	peer_expect(peer_write(u.q, far, near), "write");
	ask(s, 1); /* to stop it */
	if (peer_write(u.q, far, near) != DMA_CR_ACK_TIMEOUT_ERR)
		proc_die("a stopped owner has answered");
	must_tell("400 ms");
	must_tell("127.0.0.1");
	user_close(&u);
	return 0;
}

static void overdue_operations_say_why(void **state)
{
	struct scene *s = new_scene("400");
	pid_t own = start_owner(s), user = proc_start(is_told_why, s);

	(void)state;
	assert_true(proc_await(&s->step, 1, PATIENCE));
	proc_stop(own);
	atomic_store(&s->stepped, 1);
	assert_int_equal(proc_join(user, PATIENCE), 0);
	proc_kill(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(refused_writes_take_nothing_else_along, proc_end_all),
		cmocka_unit_test_teardown(a_stopped_initiator_lengthens_no_lease, proc_end_all),
		cmocka_unit_test_teardown(owners_that_died_leave_no_link, proc_end_all),
		cmocka_unit_test_teardown(a_long_queue_ends_at_once, proc_end_all),
		cmocka_unit_test_teardown(another_program_at_the_port_is_named, proc_end_all),
		cmocka_unit_test_teardown(a_silent_program_at_the_port_is_named, proc_end_all),
		cmocka_unit_test_teardown(overdue_operations_say_why, proc_end_all),
	};
	int failed;

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	snprintf(log_file, sizeof(log_file), "/tmp/xtal-ends-%d.log", getpid());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(log_file);
	return failed;
}
