/* SPDX-License-Identifier: MIT */
/*
 * A program that connects to an owner's socket and lies: garbage, wrong versions, descriptors
 * galore, a valid hello followed by nonsense in the rings and on the board. The owner reads and
 * writes nothing for it, stays up, and goes on serving an honest peer.
 */
/* ctest: timeout=240 label=soak */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/hostile.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "core/shared.h"
#include "wire/message.c" /* pure; the library does not export it */
#include "path/ring.c"    /* the same */

#define SEGMENT  ((size_t)256 << 10)
#define SECRET   UINT64_C(0x5ec3e7)
#define PATIENCE 20000u

struct scene {
	struct peer_export honest; /* a segment that the honest peer uses */
	struct peer_export secret; /* one whose token nobody knows */
	_Atomic uint32_t ready, withdraw, withdrawn, check, checked, quit;
	int fds;
};

static int owner(void *arg)
{
	struct scene *s = arg;
	struct dma_seg_cfg cfg = { .len = SEGMENT,
				   .token_value = 0x7a11ed,
				   .token_value_valid = true };
	struct dma_seg *seg, *extra;
	struct peer p;
	uint8_t *memory;

	setenv("XTAL_LOG", "/dev/null", 1);
	signal(SIGPIPE, SIG_DFL); /* a library that raises it ends the program */
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, &s->honest);
	memory = peer_memory(PEER_CMA, SEGMENT);
	peer_fill(memory, SEGMENT, SECRET);
	cfg.addr = (uintptr_t)memory;
	seg = dma_register_seg(p.ctx, &cfg);
	s->secret = (struct peer_export){ .sva = seg->sva, .len = SEGMENT, .tid = seg->tid };
	extra = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->quit)) {
		proc_sleep_us(200);
		if (atomic_load(&s->withdraw) > atomic_load(&s->withdrawn)) {
			dma_unregister_seg(p.ctx, extra);
			extra = peer_register(&p, (void *)(uintptr_t)s->honest.sva, 4096, NULL);
			atomic_fetch_add(&s->withdrawn, 1);
		}
		if (atomic_load(&s->check) > atomic_load(&s->checked)) {
			if (!peer_holds(memory, SEGMENT, SECRET))
				proc_die("the secret was written to");
			s->fds = proc_fd_count(getpid());
			atomic_fetch_add(&s->checked, 1);
		}
	}
	return 0;
}

/* Writes and reads over messages, so that the owner's agent has to be well. */
static int honest(void *arg)
{
	struct scene *s = arg;
	uint8_t *memory;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	peer_only(PEER_RING);
	peer_open(&p);
	memory = peer_memory(PEER_RING, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	q = peer_queue(&p, 8);
	for (uint64_t i = 1; i <= 3; i++) {
		peer_fill(memory, SEGMENT, i);
		peer_expect(peer_write(q, peer_remote(&s->honest, 0, SEGMENT), *local), "write");
		memset(memory, 0, SEGMENT);
		peer_expect(peer_read(q, peer_remote(&s->honest, 0, SEGMENT), *local), "read");
		if (!peer_holds(memory, SEGMENT, i))
			proc_die("what came back is not what was written");
	}
	return 0;
}

static struct scene *scene;
static pid_t owner_pid;

static void all_is_well(void)
{
	assert_int_equal(proc_run(honest, scene, PATIENCE), 0);
	atomic_fetch_add(&scene->check, 1);
	assert_true(proc_await(&scene->checked, atomic_load(&scene->check), PATIENCE));
}

static int start_scene(void **state)
{
	(void)state;
	scene = proc_shared(sizeof(*scene));
	owner_pid = proc_start(owner, scene);
	assert_true(proc_await(&scene->ready, 1, PATIENCE));
	all_is_well();
	return 0;
}

static int end_scene(void **state)
{
	atomic_store(&scene->quit, 1);
	return proc_join(owner_pid, PATIENCE) || proc_end_all(state);
}

static void garbage_on_the_socket(void **state)
{
	unsigned rounds = proc_rounds(300, 100000);
	struct rng rng = { .state = 5 };
	uint8_t junk[4096];

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		int sock = hostile_connect(scene->honest.tid);
		size_t len = rng_below(&rng, 2) ? sizeof(struct xtal_control)
						: rng_below(&rng, sizeof(junk)) + 1;

		assert_true(sock >= 0);
		rng_fill(&rng, junk, sizeof(junk));
		hostile_send(sock, junk, len, NULL, 0);
		if (i % 8 == 0)
			assert_true(hostile_closed(sock, 5000));
		close(sock);
	}
	all_is_well();
}

/* A hello with one field wrong, and each other message where a hello belongs. */
static void wrong_hellos(void **state)
{
	struct rng rng = { .state = 6 };
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		int sock = hostile_connect(scene->honest.tid);
		struct xtal_control c;

		hostile_control(&c, i % 2 ? XTAL_CONTROL_HELLO : (enum xtal_control_type)(i % 9));
		c.port = scene->honest.tid & 0xffff;
		c.incarnation = scene->honest.tid >> 16;
		switch (i % 6) {
		case 0:
			c.magic ^= 1u << rng_below(&rng, 32);
			break;
		case 1:
			c.version = (uint32_t)rng_next(&rng) | 2;
			break;
		case 2:
			c.type = (uint32_t)rng_next(&rng) | 8;
			break;
		case 3:
			c.port ^= 1;
			break;
		case 4:
			c.incarnation ^= 1;
			break;
		case 5:
			c.fds = 1;
			break;
		}
		hostile_send(sock, &c, sizeof(c), &bell, c.fds);
		assert_true(hostile_closed(sock, 5000));
		close(sock);
	}
	close(bell);
	all_is_well();
}

static void descriptors_galore(void **state)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 5, 6, 17, 65, 253 };
	int fds[253], before;

	(void)state;
	if (proc_emulated())
		proc_skip("the emulator passes no more than 16 descriptors");
	before = scene->fds;
	for (unsigned i = 0; i < 253; i++)
		fds[i] = STDERR_FILENO;
	for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		unsigned n = counts[k];
		int sock = hostile_connect(scene->honest.tid);
		struct xtal_control c;

		hostile_control(&c, XTAL_CONTROL_HELLO);
		c.port = scene->honest.tid & 0xffff;
		c.incarnation = scene->honest.tid >> 16;
		c.fds = n;
		hostile_send(sock, &c, sizeof(c), fds, n);
		assert_true(hostile_closed(sock, 5000));
		close(sock);
	}
	all_is_well();
	assert_true(scene->fds <= before + 4);
}

static void ping(struct hostile_link *l, struct xtal_ring_end *ring)
{
	struct xtal_msg m = { .type = XTAL_MSG_PING, .stamp = 1 };
	struct xtal_ring_slot slot;

	if (xtal_ring_reserve(ring, 0, &slot))
		return;
	xtal_msg_encode(&m, slot.header);
	xtal_ring_publish(ring);
	hostile_nudge(l);
}

static bool open_ring(struct hostile_link *l, struct xtal_ring_end *ring)
{
	return xtal_ring_attach(l->memory + xtal_board_bytes(), l->memory_len - xtal_board_bytes(),
				ring, XTAL_RING_INITIATOR) == 0;
}

/* The peer wants every frame to be worth a doorbell, and hears none of them. */
static void doorbells_that_nobody_hears(void **state)
{
	int least = 1;

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		struct hostile_link l;
		struct xtal_ring_end ring;

		assert_true(hostile_hello(&l, scene->honest.tid) && open_ring(&l, &ring));
		setsockopt(l.sock, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
		for (unsigned i = 0; i < 2000; i++) {
			const uint8_t *header, *payload;
			size_t len;

			atomic_store(&ring.in.words->sleeping, 1);
			atomic_store(&ring.out.words->starved, 1);
			ping(&l, &ring);
			if (round) /* makes room for more answers, or leaves them */
				while (xtal_ring_peek(&ring, &header, &payload, &len) == 1)
					xtal_ring_release(&ring);
		}
		all_is_well();
		hostile_drop(&l);
	}
	all_is_well();
}

static int rings_for_ever(void *arg)
{
	struct hostile_link l;

	(void)arg;
	if (!hostile_hello(&l, scene->honest.tid))
		return 1;
	while (hostile_nudge(&l))
		;
	return 0;
}

static void a_peer_that_never_stops_ringing(void **state)
{
	pid_t flood[2] = { proc_start(rings_for_ever, NULL), proc_start(rings_for_ever, NULL) };

	(void)state;
	proc_sleep_us(50000);
	all_is_well();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(waitpid(flood[i], NULL, WNOHANG), 0); /* it was borne */
		proc_kill(flood[i]);
	}
	all_is_well();
}

/* Requests for the secret segment with one thing wrong each time; and with the token guessed. */
static void mutate(struct xtal_msg *m, struct rng *rng)
{
	m->type = (enum xtal_msg_type)(1 + rng_below(rng, 3));
	m->addr = scene->secret.sva + rng_below(rng, 4096) - rng_below(rng, 64);
	m->total = m->piece = rng_below(rng, 2) ? 64 : rng_next(rng) >> rng_below(rng, 64);
	m->token = (uint32_t)rng_next(rng);
	m->flags = rng_below(rng, 2) ? XTAL_MSG_TOKEN : 0;
	m->offset = rng_below(rng, 4) ? 0 : rng_next(rng) >> rng_below(rng, 64);
	m->payload = m->type == XTAL_MSG_WRITE ? 64 : 0;
	if (m->type == XTAL_MSG_ATOMIC) {
		m->atomic = XTAL_MSG_FAA;
		m->operand_size = 8;
		m->operand[0] = 1;
		m->total = m->piece = 8;
	}
}

static void lies_in_the_requests(void **state)
{
	unsigned rounds = proc_rounds(1500, 1000000), links = 0;
	struct rng rng = { .state = 8 };
	struct hostile_link l = { .sock = -1 };
	struct xtal_ring_end ring;
	uint64_t seq = 1, secret;

	(void)state;
	peer_fill(&secret, 8, SECRET);
	for (unsigned i = 0; i < rounds; i++) {
		struct xtal_msg m = {
			.seq = seq++, .id = i + 1, .tid = scene->secret.tid, .stamp = 1
		};
		const uint8_t *header, *payload;
		struct xtal_ring_slot slot;
		size_t len;

		if (l.sock < 0 || hostile_closed(l.sock, 0)) {
			hostile_drop(&l);
			assert_true(hostile_hello(&l, scene->secret.tid));
			assert_true(open_ring(&l, &ring));
			m.seq = 1;
			seq = 2;
			links++;
		}
		m.incarnation = l.welcome.incarnation;
		mutate(&m, &rng);
		if (xtal_ring_reserve(&ring, m.payload, &slot)) {
			proc_sleep_us(100);
			continue;
		}
		memset(slot.payload, 0xee, m.payload);
		if (!xtal_msg_check(&m)) {
			xtal_msg_encode(&m, slot.header);
			if (i % 4 == 0)
				slot.header[rng_below(&rng, XTAL_MSG_HEADER)] ^=
					(uint8_t)(1u << rng_below(&rng, 8));
		} else {
			rng_fill(&rng, slot.header, XTAL_MSG_HEADER);
		}
		xtal_ring_publish(&ring);
		hostile_nudge(&l);
		while (xtal_ring_peek(&ring, &header, &payload, &len) == 1) {
			assert_true(len < 8 || memcmp(payload, &secret, 8) != 0);
			xtal_ring_release(&ring);
		}
	}
	hostile_drop(&l);
	print_message("%u requests, %u links\n", rounds, links);
	all_is_well();
}

/* Wild counters, frame headers and flags all over the link's memory. */
static void lies_in_the_rings(void **state)
{
	unsigned rounds = proc_rounds(150, 50000);
	struct rng rng = { .state = 9 };

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct hostile_link l;
		uint64_t *at;

		assert_true(hostile_hello(&l, scene->secret.tid));
		for (unsigned k = 0; k < 64; k++) {
			size_t span = i % 2 ? 2048 : l.memory_len - xtal_board_bytes();

			at = (uint64_t *)(void *)(l.memory + xtal_board_bytes()) +
			     rng_below(&rng, span / 8);
			*at = rng_next(&rng) >> rng_below(&rng, 64);
			if (k % 8 == 0)
				hostile_nudge(&l); /* it may have been thrown out */
		}
		proc_sleep_us(300);
		hostile_drop(&l);
	}
	all_is_well();
}

/* The board names all slots but those withdrawn, with absurd vectors and counts. */
static void lies_on_the_board(void **state)
{
	struct hostile_link l;
	struct xtal_board *b;
	struct rng rng = { .state = 10 };

	(void)state;
	assert_true(hostile_hello(&l, scene->secret.tid));
	b = (struct xtal_board *)(void *)l.memory;
	for (unsigned i = 0; i < XTAL_BOARD_WORDS; i++) {
		atomic_store(&b->activity[i].word, UINT64_C(1) << 40 | rng_next(&rng));
		atomic_store(&b->activity[i].iov[0].len, UINT64_MAX);
		atomic_store(&b->activity[i].iov[1].base, rng_next(&rng));
	}
	atomic_store(&b->used, UINT32_MAX);
	atomic_fetch_add(&scene->withdraw, 1);
	assert_true(proc_await(&scene->withdrawn, atomic_load(&scene->withdraw), 2000));
	hostile_drop(&l);
	all_is_well();
}

static int claims_all(void *arg)
{
	struct hostile_link l;
	struct xtal_board *b;

	(void)arg;
	if (!hostile_hello(&l, scene->secret.tid))
		return 1;
	b = (struct xtal_board *)(void *)l.memory;
	for (unsigned i = 0; i < XTAL_BOARD_WORDS; i++)
		atomic_store(&b->activity[i].word, i + 1);
	atomic_store(&b->used, XTAL_BOARD_WORDS);
	proc_sleep_us(100000000);
	return 0;
}

/* Who says for ever that it is in the middle of a copy, is believed until it dies: it may be. */
static void a_peer_that_never_finishes_dies(void **state)
{
	pid_t liar = proc_start(claims_all, NULL);

	(void)state;
	proc_sleep_us(100000);
	atomic_fetch_add(&scene->withdraw, 1);
	proc_sleep_us(50000);
	proc_kill(liar);
	assert_true(proc_await(&scene->withdrawn, atomic_load(&scene->withdraw), 2000));
	all_is_well();
}

/* Connections that never say anything, more than an owner keeps, or only the half of it. */
static void silent_connections(void **state)
{
	int socks[400], before;
	struct xtal_control c;

	(void)state;
	before = scene->fds;
	for (unsigned i = 0; i < 400; i++) {
		socks[i] = hostile_connect(scene->honest.tid);
		assert_true(socks[i] >= 0);
	}
	all_is_well();
	assert_true(scene->fds <= before + 2 * 128 + 8);
	for (unsigned i = 0; i < 400; i++) { /* the owner loses its patience with each */
		assert_true(hostile_closed(socks[i], 10000));
		close(socks[i]);
	}
	all_is_well();
	assert_true(scene->fds <= before + 8);
	hostile_control(&c, XTAL_CONTROL_HELLO);
	socks[0] = hostile_connect(scene->honest.tid);
	hostile_send(socks[0], &c, sizeof(c) / 2, NULL, 0);
	assert_true(hostile_closed(socks[0], 1000));
	close(socks[0]);
}

static int keeps_connecting(void *arg)
{
	int socks[1000];

	(void)arg;
	for (unsigned i = 0;; i++) {
		if (i >= 1000)
			close(socks[i % 1000]);
		socks[i % 1000] = hostile_connect(scene->honest.tid);
	}
	return 0;
}

/* They push out each other, not those who greet. */
static void a_flood_of_silent_connections(void **state)
{
	pid_t flood = proc_start(keeps_connecting, NULL);

	(void)state;
	proc_sleep_us(100000);
	for (unsigned i = 0; i < 3; i++)
		all_is_well();
	assert_true(scene->fds <= 2 * 128 + 64);
	proc_kill(flood);
	all_is_well();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(garbage_on_the_socket, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(wrong_hellos, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(descriptors_galore, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(doorbells_that_nobody_hears, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(a_peer_that_never_stops_ringing, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(lies_in_the_requests, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(lies_in_the_rings, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(lies_on_the_board, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(a_peer_that_never_finishes_dies, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(silent_connections, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(a_flood_of_silent_connections, start_scene,
						end_scene),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
