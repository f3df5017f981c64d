/* SPDX-License-Identifier: MIT */
/*
 * An owner that lies to those who connect to it: unusable welcomes, short and unsealed objects,
 * grants outside what was asked, denials that are none. The initiator never crashes; each
 * operation ends, in error unless the bytes really moved.
 */
/* ctest: timeout=240 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/hostile.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "core/shared.h"
#include "path/ring.c" /* pure; the library does not export it */
#include "xtal.h"

#define PORT     4711u
#define TID      (1u << 16 | PORT)
#define SEGMENT  ((size_t)64 << 10)
#define CAPACITY ((size_t)256 << 10)
#define BASE     UINT64_C(0x10000000) /* where the segment pretends to be */
#define PATIENCE 20000u

/* What is wrong; before WELCOME, in WELCOME, in the answer to RESOLVE. */
enum lie {
	NONE, /* the control: an honest grant of mapped memory, which must work */
	CLOSE,
	SILENCE,
	GARBAGE,
	REFUSE_OK,
	REFUSE_ODD,
	GRANT_FIRST,
	W_NO_FDS,
	W_ONE_FD,
	W_TABLE_UNSEALED,
	W_MEMORY_UNSEALED,
	W_TABLE_SHORT,
	W_MEMORY_SHORT,
	W_CAPACITY_0,
	W_CAPACITY_ODD,
	W_CAPACITY_HUGE,
	W_INCARNATION,
	W_TWICE,
	W_RING_MAGIC,
	W_RING_COUNTERS,
	W_FDS_SWAPPED,
	W_CMA_PROBE,
	A_SLOT,
	A_RANGE,
	A_WRAP,
	A_OFFSET,
	A_UNALIGNED,
	A_SHORT_OBJECT,
	A_TRUNCATED,
	A_PIPE,
	A_READ_ONLY,
	A_ID,
	A_DENY_OK,
	A_DENY_ODD,
	A_DENY_NEGATIVE,
	A_RETRY,
	A_TWICE,
	A_HELLO,
	R_JUNK,
	R_COUNTERS,
	LIES,
};

static const char *const names[LIES] = {
	"none",
	"close",
	"silence",
	"garbage",
	"refuse ok",
	"refuse odd",
	"grant first",
	"no fds",
	"one fd",
	"table unsealed",
	"memory unsealed",
	"table short",
	"memory short",
	"capacity 0",
	"capacity odd",
	"capacity huge",
	"incarnation",
	"welcome twice",
	"ring magic",
	"ring counters",
	"fds swapped",
	"cma probe",
	"slot",
	"range",
	"wrap",
	"offset",
	"unaligned",
	"short object",
	"truncated object",
	"object is a pipe",
	"object read only",
	"wrong id",
	"deny ok",
	"deny odd",
	"deny negative",
	"retry for ever",
	"answer twice",
	"hello as answer",
	"junk answers",
	"wild counters",
};

struct scene {
	enum lie lie;
	_Atomic uint32_t ready;
	uint32_t statuses;
};

static uint8_t *map(int fd, size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void welcome(int sock, enum lie lie, uint8_t **memory)
{
	size_t ring = xtal_ring_layout_size(CAPACITY), len = xtal_board_bytes() + ring;
	int fds[2], n = 2;
	struct xtal_control c;
	uint8_t *p;

	hostile_control(&c, XTAL_CONTROL_WELCOME);
	c.incarnation = 15; /* bits 1, as in the tid */
	c.ring_bytes = (uint32_t)CAPACITY;
	c.flags = XTAL_CONTROL_RING;
	fds[0] = hostile_object(lie == W_TABLE_SHORT ? 4096 : sizeof(struct xtal_slot_table),
				lie != W_TABLE_UNSEALED);
	fds[1] = hostile_object(lie == W_MEMORY_SHORT ? len - 4096 : len, lie != W_MEMORY_UNSEALED);
	p = map(fds[0], 4096);
	((struct xtal_slot_table *)(void *)p)->word[3] = 1 << 2 | XTAL_SEG_LIVE;
	*memory = map(fds[1], len);
	xtal_ring_init_at(*memory + xtal_board_bytes(), CAPACITY, 0);
	if (lie == W_RING_MAGIC)
		(*memory)[xtal_board_bytes()] ^= 1;
	if (lie == W_RING_COUNTERS)
		memset(*memory + xtal_board_bytes() + 128, 0x55, 512);
	if (lie == W_CAPACITY_0)
		c.ring_bytes = 0;
	if (lie == W_CAPACITY_ODD)
		c.ring_bytes = 12345;
	if (lie == W_CAPACITY_HUGE)
		c.ring_bytes = 1u << 31;
	if (lie == W_INCARNATION)
		c.incarnation = 16;
	if (lie == W_CMA_PROBE) {
		c.flags |= XTAL_CONTROL_CMA;
		c.probe_addr = 8;
	}
	if (lie == W_FDS_SWAPPED) {
		int t = fds[0];

		fds[0] = fds[1];
		fds[1] = t;
	}
	if (lie == W_NO_FDS)
		n = 0;
	if (lie == W_ONE_FD)
		n = 1;
	c.fds = (uint32_t)n;
	hostile_send(sock, &c, sizeof(c), fds, (unsigned)n);
	if (lie == W_TWICE)
		hostile_send(sock, &c, sizeof(c), fds, (unsigned)n);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}

static void answer(int sock, enum lie lie, const struct xtal_control *ask)
{
	int fd = hostile_object(lie == A_SHORT_OBJECT ? 4096 : SEGMENT, lie != A_TRUNCATED), bad[2];
	bool odd =
		lie == A_DENY_OK || lie == A_DENY_ODD || lie == A_DENY_NEGATIVE || lie == A_RETRY;
	struct xtal_control c;

	hostile_control(&c, odd              ? XTAL_CONTROL_DENY
			    : lie == A_HELLO ? XTAL_CONTROL_HELLO
					     : XTAL_CONTROL_GRANT);
	c.id = ask->id + (lie == A_ID);
	c.slot = lie == A_SLOT ? 0xffffff : 3;
	c.word = 1 << 2 | XTAL_SEG_LIVE;
	c.addr = BASE + (lie == A_RANGE ? 4096 : 0);
	c.len = lie == A_WRAP ? UINT64_MAX - 4096 : SEGMENT;
	c.rights = 7;
	c.flags = XTAL_CONTROL_WRITABLE | XTAL_CONTROL_SEALED;
	c.object = 1;
	c.map_len = SEGMENT;
	c.fds = 1;
	if (lie == A_OFFSET)
		c.offset = UINT64_MAX - 4095;
	if (lie == A_UNALIGNED)
		c.map_offset = c.offset = 100;
	if (odd) {
		c.fds = 0;
		c.flags = lie == A_RETRY ? XTAL_CONTROL_RETRY : 0;
		c.status = lie == A_DENY_ODD ? 77 : lie == A_DENY_NEGATIVE ? (uint32_t)-115 : 0;
	}
	if (lie == A_PIPE && !pipe(bad))
		fd = bad[0];
	if (lie == A_READ_ONLY)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (lie == R_JUNK || lie == R_COUNTERS) /* no object: messages */
		c.fds = 0;
	hostile_send(sock, &c, sizeof(c), &fd, c.fds);
	if (lie == A_TWICE)
		hostile_send(sock, &c, sizeof(c), &fd, c.fds);
	if (lie == A_TRUNCATED) {
		proc_sleep_us(2000);
		if (ftruncate(fd, 0))
			proc_die("ftruncate");
	}
	close(fd);
}

/* Serves one connection after another until it is killed. */
static int liar(void *arg)
{
	struct scene *s = arg;
	int listener = hostile_listen(PORT);
	struct rng rng = { .state = s->lie };

	if (listener < 0)
		proc_die("port %u is taken", PORT);
	atomic_store(&s->ready, 1);
	for (;;) {
		int sock = accept(listener, NULL, NULL), fds[8];
		struct xtal_control c;
		uint8_t *memory = NULL;
		unsigned nfds;
		int n;

		while ((n = hostile_recv(sock, &c, fds, &nfds, memory ? 5 : 1000)) != 0) {
			for (unsigned i = 0; i < nfds; i++)
				close(fds[i]);
			if (n < 0 && memory && s->lie >= R_JUNK) {
				uint8_t *at = memory + xtal_board_bytes();

				rng_fill(&rng, at + (s->lie == R_COUNTERS ? 128 : 1200), 2048);
			}
			if (n < 0 || s->lie == SILENCE)
				continue;
			if (s->lie == CLOSE)
				break;
			if (s->lie == GARBAGE) {
				rng_fill(&rng, &c, sizeof(c));
				hostile_send(sock, &c, sizeof(c), NULL, 0);
			} else if (s->lie == REFUSE_OK || s->lie == REFUSE_ODD) {
				hostile_control(&c, XTAL_CONTROL_REFUSE);
				c.status = s->lie == REFUSE_OK ? 0 : 0x80000001;
				memset(c.text, 'x', sizeof(c.text));
				hostile_send(sock, &c, sizeof(c), NULL, 0);
			} else if (c.type == XTAL_CONTROL_HELLO && s->lie != GRANT_FIRST) {
				welcome(sock, s->lie, &memory);
			} else {
				answer(sock, s->lie, &c);
			}
		}
		close(sock);
	}
}

static int victim(void *arg)
{
	struct scene *s = arg;
	struct dma_queue *q;
	struct dma_seg *local, remote = { .sva = BASE, .tid = TID };
	struct peer p;

	setenv("XTAL_TIMEOUT_MS", "200", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	signal(SIGPIPE, SIG_DFL);
	peer_open(&p);
	local = peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, NULL);
	q = peer_queue(&p, 8);
	for (unsigned i = 0; i < 6; i++) {
		remote.len = i % 3 == 2 ? SEGMENT : 64;
		if (i % 4 == 3)
			proc_sleep_us(5000);
		s->statuses |=
			1u << (i % 2 ? peer_read(q, remote, peer_part(local, 0, remote.len))
				     : peer_write(q, remote, peer_part(local, 0, remote.len)));
		if (s->statuses >> 17)
			proc_die("no such status");
	}
	if (s->lie == NONE) { /* it says that it serves messages, and never looks at them */
		char reason[1024];
		struct peer_export e = { .sva = BASE, .len = SEGMENT, .tid = TID };

		if (peer_path_taken(q, &e, reason, sizeof(reason)) != XTAL_PATH_MAP ||
		    !strstr(reason, "did not answer"))
			proc_die("the ring is believed in: %s", reason);
	}
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static void an_owner_that_lies(void **state)
{
	struct scene *s = proc_shared(sizeof(*s));
	unsigned bad = 0;

	(void)state;
	if (proc_private())
		print_message("no network of our own: the port is taken from the machine's\n");
	for (unsigned lie = 0; lie < LIES; lie++) {
		pid_t owner;
		int status;

		s->lie = (enum lie)lie;
		s->statuses = 0;
		atomic_store(&s->ready, 0);
		owner = proc_start(liar, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		status = proc_run(victim, s, PATIENCE);
		proc_kill(owner);
		if (status || (lie == NONE && s->statuses != 1)) {
			print_error("%s: wait status 0x%x, statuses 0x%x\n", names[lie], status,
				    s->statuses);
			bad++;
		}
		/* Success only where bytes can have moved. */
		if (s->statuses & 1 && lie != NONE && lie != W_CMA_PROBE && lie != A_TRUNCATED &&
		    lie != A_SHORT_OBJECT && lie != A_READ_ONLY && lie != A_TWICE &&
		    lie != W_TWICE && lie < R_JUNK) {
			print_error("%s: success\n", names[lie]);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_owner_that_lies, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
