/* SPDX-License-Identifier: MIT */
/*
 * Operations that fail for reasons of their own, among others that must not, over one link whose
 * connection is cut all the time: whatever ends one (a refusal before all of it is sent, memory that
 * has gone, here or there) does nothing to another, and counters are exact.
 */
/* ctest: timeout=120 label=soak */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/proxy.h"
#include "lib/rng.h"
#include "xtal.h"

#define THREADS  3u
#define ROOM     ((size_t)1 << 20)  /* each thread's, at the owner and here */
#define HOLE     ((size_t)64 << 10) /* memory that is registered, and was unmapped */
#define MUCH     ((size_t)8 << 20)  /* more than the owner has */
#define PATIENCE 60000u
#define MIDDLE   0x7f000002u /* where the proxy listens, on the owner's port */

struct scene {
	struct peer_owner owner;
	struct peer_export hole;
	struct proxy_config config;
	unsigned rounds;
	bool cut;
};

struct user {
	struct scene *s;
	struct peer p;
	unsigned number;
	uint64_t counted;
	unsigned kinds[6];
	uint8_t *room, *much, *hole;
	struct dma_seg *local, *wide, *gone;
	struct dma_queue *q;
};

static int owner(void *arg)
{
	struct scene *s = arg;
	uint8_t *hole;
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", "30000", 1); /* nothing here ends by time */
	peer_owner_for(PEER_TCP);
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_TCP, s->owner.len), s->owner.len, &s->owner.export);
	hole = peer_memory(PEER_TCP, HOLE);
	peer_register(&p, hole, HOLE, &s->hole);
	munmap(hole + HOLE / 2, HOLE / 2);
	atomic_store(&s->owner.ready, 1);
	for (;;)
		proc_sleep_us(1000000);
	return 0;
}

/* This thread's part of the owner's memory. */
static struct dma_seg there(const struct user *u, uint64_t offset, uint64_t len)
{
	return peer_remote(&u->s->owner.export, u->number * ROOM + offset, len);
}

static void expect(const struct user *u, int status, int wanted, const char *what)
{
	if (status != wanted)
		proc_die("thread %u: %s ended with status %d, not %d", u->number, what, status,
			 wanted);
}

static void count(struct user *u)
{
	struct dma_seg word = there(u, 0, 8), old = peer_part(u->local, 0, 8);
	uint64_t seen;

	for (unsigned i = 0; i < 4; i++)
		if (dma_faa(u->q, &word, &old, 1))
			proc_die("a post is refused");
	for (unsigned i = 0; i < 4; i++)
		expect(u, (int)peer_complete(u->q, PATIENCE).status, 0, "an addition");
	memcpy(&seen, u->room, 8);
	u->counted += 4;
	if (seen + 1 != u->counted)
		proc_die("thread %u: the counter was %llu, not %llu", u->number,
			 (unsigned long long)seen, (unsigned long long)u->counted - 1);
}

static void move(struct user *u, struct rng *rng, uint64_t seed)
{
	size_t len = 8 * (1 + rng_below(rng, 32000)), at = 8 * rng_below(rng, 64000);
	struct dma_seg far = there(u, 4096 + at, len), near = peer_part(u->local, 4096, len);

	peer_fill(u->room + 4096, len, seed);
	expect(u, peer_write(u->q, far, near), 0, "a write");
	memset(u->room + 4096, 0, len);
	expect(u, peer_read(u->q, far, near), 0, "a read");
	if (!peer_holds(u->room + 4096, len, seed))
		proc_die("thread %u: what was written is not what is read", u->number);
}

static void work(struct user *u)
{
	struct rng rng = { .state = 77 + u->number };
	struct dma_seg wide = there(u, 0, MUCH);

	for (unsigned i = 0; i < u->s->rounds; i++) {
		unsigned kind = (unsigned)rng_below(&rng, 6);

		u->kinds[kind]++;
		switch (kind) {
		case 0:
			count(u);
			break;
		case 1:
			move(u, &rng, u->number * 1000000 + i);
			break;
		case 2:
			expect(u, peer_write(u->q, wide, *u->wide), DMA_CR_REM_ACCESS_ABORT_ERR,
			       "a write that is too long");
			break;
		case 3:
			expect(u, peer_write(u->q, there(u, ROOM / 2, HOLE), *u->gone),
			       DMA_CR_LOC_ACCESS_ERR, "a write from a hole");
			break;
		case 4:
			expect(u, peer_read(u->q, there(u, ROOM / 2, HOLE), *u->gone),
			       DMA_CR_LOC_ACCESS_ERR, "a read into a hole");
			break;
		default:
			expect(u,
			       peer_write(u->q, peer_remote(&u->s->hole, 0, HOLE),
					  peer_part(u->local, 4096, HOLE)),
			       DMA_CR_REM_ACCESS_ABORT_ERR, "a write to a hole");
			break;
		}
	}
}

static void *run(void *arg)
{
	struct user *u = arg;

	work(u);
	return NULL;
}

static void prepare(struct user *u)
{
	u->room = peer_memory(PEER_TCP, ROOM);
	u->much = peer_memory(PEER_TCP, MUCH);
	u->hole = peer_memory(PEER_TCP, HOLE);
	u->local = peer_register(&u->p, u->room, ROOM, NULL);
	u->wide = peer_register(&u->p, u->much, MUCH, NULL);
	u->gone = peer_register(&u->p, u->hole, HOLE, NULL);
	if (mprotect(u->hole + HOLE / 2, HOLE / 2, PROT_NONE)) /* nobody else gets it */
		proc_die("mprotect: %m");
	u->q = peer_queue(&u->p, 32);
	if (u->s->cut)
		u->q->cfg.rmt_eid.dw0 = MIDDLE;
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	static struct user users[THREADS];
	pthread_t threads[THREADS];
	struct peer p;

	setenv("XTAL_LOG", "/dev/null", 0);
	setenv("XTAL_TIMEOUT_MS", "30000", 1); /* nothing here ends by time */
	peer_only(PEER_TCP);
	peer_open(&p);
	for (unsigned i = 0; i < THREADS; i++) {
		users[i] = (struct user){ .s = s, .p = p, .number = i };
		prepare(&users[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, &users[i]))
			proc_die("no thread");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		count(&users[i]);
	return 0;
}

static void play(bool cut)
{
	struct scene *s = proc_shared(sizeof(*s));
	struct sockaddr_in *in = (struct sockaddr_in *)&s->config.listen;
	struct proxy_counts c = { 0 };
	struct proxy *proxy = NULL;
	pid_t own;

	s->owner.len = THREADS * ROOM;
	s->rounds = proc_rounds(300, 5000);
	s->cut = cut;
	own = proc_start(owner, s);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	if (cut) {
		*in = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_port = htons((uint16_t)s->owner.export.tid),
					    .sin_addr.s_addr = htonl(MIDDLE) };
		s->config.target = s->config.listen;
		((struct sockaddr_in *)&s->config.target)->sin_addr.s_addr = htonl(PEER_LOOPBACK);
		s->config.listen_ns = s->config.connect_ns = -1;
		s->config.seed = 5;
		s->config.ends = 1u << PROXY_RESET | 1u << PROXY_CLOSE;
		s->config.after = 20000000;
		proxy = proxy_start(&s->config);
		if (!proxy)
			proc_skip("nobody can listen on 127.0.0.2");
	}
	assert_int_equal(proc_run(initiator, s, 100000), 0);
	if (proxy)
		proxy_read(proxy, &c);
	print_message("          %u rounds, %u cuts\n", THREADS * s->rounds,
		      (unsigned)(c.resets + c.closes));
	proxy_stop(&proxy);
	proc_kill(own);
}

static void over_a_good_line(void **state)
{
	(void)state;
	play(false);
}

static void over_a_line_that_is_cut(void **state)
{
	(void)state;
	play(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(over_a_good_line, proc_end_all),
		cmocka_unit_test_teardown(over_a_line_that_is_cut, proc_end_all),
	};

	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
