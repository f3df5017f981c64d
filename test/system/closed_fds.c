/* SPDX-License-Identifier: MIT */
/*
 * Programs that close all descriptors they do not know, and open files and sockets of their own
 * then: the library goes on, and writes nothing into those, reads nothing from them, and closes none.
 */
/* ctest: timeout=120 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)256 << 10)
#define PATIENCE 30000u
#define OWN      60 /* files, and pairs of sockets */

struct scene {
	enum peer_path path;
	struct peer_export export;
	_Atomic uint32_t ready, quit;
};

struct own {
	int file[OWN], pair[OWN][2];
};

/* All below 512 but the standard streams, and what the library has told the program of. */
static void close_unknown(const struct peer *p)
{
	for (int fd = 3; fd < 512; fd++) {
		bool known = fd == p->ctx->async_fd;

		for (uint32_t i = 0; i < p->devices; i++)
			known |= fd == p->list[i].fd;
		if (!known)
			close(fd);
	}
}

static void open_own(struct own *o)
{
	for (unsigned i = 0; i < OWN; i++) {
		o->file[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
		if (o->file[i] < 0)
			o->file[i] = memfd_create("own", 0);
		if (o->file[i] < 0 || ftruncate(o->file[i], 8192) ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, o->pair[i]))
			proc_die("no file of our own: %m");
	}
}

static void must_be_untouched(const struct own *o)
{
	static const char zeros[8192];
	char bytes[8193];

	for (unsigned i = 0; i < OWN; i++) {
		struct pollfd p[2] = { { .fd = o->pair[i][0], .events = POLLIN },
				       { .fd = o->pair[i][1], .events = POLLIN } };

		if (pread(o->file[i], bytes, sizeof(bytes), 0) != sizeof(zeros) ||
		    memcmp(bytes, zeros, sizeof(zeros)) != 0)
			proc_die("file %d is not as it was", o->file[i]);
		if (poll(p, 2, 0))
			proc_die("sockets %d and %d are not as they were", p[0].fd, p[1].fd);
	}
}

static bool have_room(void)
{
	struct rlimit r;

	return !getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur >= 1024;
}

static int owner(void *arg)
{
	struct scene *s = arg;
	struct dma_seg *seg;
	struct own own;
	struct peer p;

	peer_owner_for(s->path);
	peer_open(&p);
	seg = peer_register(&p, peer_memory(s->path, SEGMENT), SEGMENT, &s->export);
	close_unknown(&p);
	open_own(&own);
	atomic_store(&s->ready, 1);
	if (!proc_await(&s->quit, 1, PATIENCE))
		return 1;
	dma_unregister_seg(p.ctx, seg);
	must_be_untouched(&own);
	peer_close(&p);
	must_be_untouched(&own);
	return 0;
}

static void all(struct peer *p, const struct scene *s, struct dma_seg *local, uint8_t *memory)
{
	struct dma_queue *q = peer_queue(p, 8);

	peer_fill(memory, SEGMENT, 3);
	peer_expect(peer_write(q, peer_remote(&s->export, 0, SEGMENT), *local), "write");
	memset(memory, 0, SEGMENT);
	peer_expect(peer_read(q, peer_remote(&s->export, 0, SEGMENT), *local), "read");
	if (!peer_holds(memory, SEGMENT, 3))
		proc_die("what was read is wrong");
	peer_expect(peer_faa(q, peer_remote(&s->export, 8, 8), peer_part(local, 8, 8), 1), "faa");
	dma_free_queue(q);
}

static int initiator(void *arg)
{
	struct scene *s = arg;
	struct dma_seg *local, *late;
	uint8_t *memory;
	struct own own;
	struct peer p;

	peer_only(s->path);
	peer_open(&p);
	memory = peer_memory(s->path, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	all(&p, s, local, memory);
	close_unknown(&p);
	open_own(&own);
	all(&p, s, local, memory);
	late = peer_register(&p, memory, SEGMENT / 2, NULL);
	all(&p, s, local, memory);
	dma_unregister_seg(p.ctx, late);
	dma_unregister_seg(p.ctx, local);
	must_be_untouched(&own);
	peer_close(&p);
	must_be_untouched(&own);
	return 0;
}

static void what_is_opened_then_is_the_programs(void **state)
{
	(void)state;
	if (proc_emulated())
		proc_skip("the emulator needs descriptors itself");
	if (!have_room())
		proc_skip("RLIMIT_NOFILE is below 1024");
	for (unsigned path = 0; path < PEER_PATHS; path++) {
		struct scene *s = proc_shared(sizeof(*s));
		pid_t pid;

		s->path = (enum peer_path)path;
		pid = proc_start(owner, s);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		for (unsigned i = 0; i < 2; i++) /* the second one comes to a crowded table */
			assert_int_equal(proc_run(initiator, s, PATIENCE), 0);
		atomic_store(&s->quit, 1);
		assert_int_equal(proc_join(pid, PATIENCE), 0);
		munmap(s, sizeof(*s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_opened_then_is_the_programs, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
