/* SPDX-License-Identifier: MIT */
/*
 * The library as a guest: two copies in one process, loading and unloading in a loop with
 * traffic between, and programs that end in every way there is while transfers run.
 */
/* ctest: timeout=240 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"

#define SEGMENT  ((size_t)1 << 20)
#define PATIENCE 30000u

/* One loaded copy, by its functions; this program is linked with a copy of its own as well. */
struct copy {
	void *handle;
	__typeof__(&dma_get_device_list) list;
	__typeof__(&dma_free_device_list) free_list;
	__typeof__(&dma_create_context) create;
	__typeof__(&dma_delete_context) delete;
	__typeof__(&dma_alloc_queue) queue;
	__typeof__(&dma_free_queue) free_queue;
	__typeof__(&dma_register_seg) reg;
	__typeof__(&dma_unregister_seg) unreg;
	__typeof__(&dma_write) write;
	__typeof__(&dma_read) read;
	__typeof__(&dma_poll_queue) poll;
};

static void load(struct copy *c, const char *path, bool space)
{
	c->handle = space ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL)
			  : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!c->handle)
		proc_die("%s", dlerror());
	c->list = (__typeof__(c->list))dlsym(c->handle, "dma_get_device_list");
	c->free_list = (__typeof__(c->free_list))dlsym(c->handle, "dma_free_device_list");
	c->create = (__typeof__(c->create))dlsym(c->handle, "dma_create_context");
	c->delete = (__typeof__(c->delete))dlsym(c->handle, "dma_delete_context");
	c->queue = (__typeof__(c->queue))dlsym(c->handle, "dma_alloc_queue");
	c->free_queue = (__typeof__(c->free_queue))dlsym(c->handle, "dma_free_queue");
	c->reg = (__typeof__(c->reg))dlsym(c->handle, "dma_register_seg");
	c->unreg = (__typeof__(c->unreg))dlsym(c->handle, "dma_unregister_seg");
	c->write = (__typeof__(c->write))dlsym(c->handle, "dma_write");
	c->read = (__typeof__(c->read))dlsym(c->handle, "dma_read");
	c->poll = (__typeof__(c->poll))dlsym(c->handle, "dma_poll_queue");
	if (!c->poll || !c->list)
		proc_die("functions are missing");
}

static void complete(struct copy *c, struct dma_queue *q)
{
	uint64_t end = proc_now() + 20000000000u;
	struct dma_cr cr = { 0 };

	while (c->poll(q, 1, &cr) != 1)
		if (proc_now() > end)
			proc_die("no completion");
	peer_expect((int)cr.status, "an operation");
}

/* Opens everything, writes and reads, closes everything. */
static void use(struct copy *c, const struct peer_export *target, uint64_t seed)
{
	struct queue_cfg qc = { .queue_depth = 4, .rmt_eid.dw0 = PEER_LOOPBACK };
	struct dma_seg_cfg sc = { .len = SEGMENT };
	struct dma_seg remote = peer_remote(target, 0, SEGMENT), *local;
	uint8_t *memory = malloc(SEGMENT);
	struct dma_device *list;
	struct dma_context *ctx;
	struct dma_queue *q;
	uint32_t n;

	sc.addr = (uintptr_t)memory;
	list = c->list(&n);
	ctx = list ? c->create(&list[0]) : NULL;
	q = ctx ? c->queue(ctx, &qc) : NULL;
	local = q ? c->reg(ctx, &sc) : NULL;
	if (!local)
		proc_die("the copy does not open");
	peer_fill(memory, SEGMENT, seed);
	if (c->write(q, &remote, local) != DMA_STATUS_OK)
		proc_die("post refused");
	complete(c, q);
	memset(memory, 0, SEGMENT);
	if (c->read(q, &remote, local) != DMA_STATUS_OK)
		proc_die("post refused");
	complete(c, q);
	if (!peer_holds(memory, SEGMENT, seed))
		proc_die("the data is wrong");
	c->unreg(ctx, local);
	c->free_queue(q);
	c->delete (ctx);
	c->free_list(list, n);
	free(memory);
}

struct scene {
	struct peer_owner owner;
	unsigned way;
};

static const char *library(char *buf, size_t size, const char *name)
{
	snprintf(buf, size, "%s/lib/%s", getenv("XTAL_TEST_BUILD_DIR"), name);
	return buf;
}

/* The linked copy serves, the loaded one reaches it, in one process. */
static int two_copies(void *arg)
{
	struct peer_export e;
	struct copy other;
	char path[512];
	struct peer p;

	(void)arg;
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_MAP, SEGMENT), SEGMENT, &e);
	load(&other, library(path, sizeof(path), "libcdma.so.1"), true);
	/* Once: glibc frees a reused thread's memory in the wrong one of its own two copies. */
	use(&other, &e, 1);
	return 0;
}

/* A front-end loaded twice, by another file name, on the one core. */
static int two_front_ends(void *arg)
{
	char from[512], to[64], command[640];
	struct peer_export e;
	struct copy other;
	struct peer p;

	(void)arg;
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_MAP, SEGMENT), SEGMENT, &e);
	snprintf(to, sizeof(to), "./libcopy-%d.so", (int)getpid());
	snprintf(command, sizeof(command), "cp %s %s", library(from, sizeof(from), "libcdma.so.1"),
		 to);
	if (system(command))
		proc_die("%s", command);
	load(&other, to, false);
	unlink(to);
	if (other.create == dma_create_context)
		proc_die("the copy is not one");
	for (uint64_t i = 1; i < 20; i++)
		use(&other, &e, i);
	return 0;
}

static void a_front_end_loaded_twice(void **state)
{
	(void)state;
	if (!getenv("XTAL_TEST_BUILD_DIR"))
		proc_skip("XTAL_TEST_BUILD_DIR is not set");
	assert_int_equal(proc_run(two_front_ends, NULL, PATIENCE), 0);
}

static void two_copies_in_one_process(void **state)
{
	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("sanitizers do not survive dlmopen");
	if (!getenv("XTAL_TEST_BUILD_DIR"))
		proc_skip("XTAL_TEST_BUILD_DIR is not set");
	assert_int_equal(proc_run(two_copies, NULL, PATIENCE), 0);
}

static int load_and_unload(void *arg)
{
	struct scene *s = arg;
	unsigned rounds = 2 + proc_rounds(28, 2000); /* what stays open is counted after two */
	struct copy c;
	char path[512];
	int fds = -1;

	library(path, sizeof(path), "libcdma.so.1");
	for (unsigned i = 1; i <= rounds; i++) {
		load(&c, path, false);
		use(&c, &s->owner.export, i);
		dlclose(c.handle);
		if (i == 2)
			fds = proc_fd_count(getpid());
	}
	if (proc_fd_count(getpid()) > fds)
		proc_die("descriptors grow from %d to %d", fds, proc_fd_count(getpid()));
	return 0;
}

static void run_with_owner(int (*fn)(void *arg), int expected)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t owner;

	s->owner.path = PEER_MAP;
	s->owner.len = SEGMENT;
	owner = proc_start(peer_owner_run, &s->owner);
	assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
	assert_int_equal(proc_run(fn, s, PATIENCE), expected);
	atomic_store(&s->owner.quit, 1);
	assert_int_equal(proc_join(owner, PATIENCE), 0);
}

static void loading_and_unloading(void **state)
{
	(void)state;
	if (!getenv("XTAL_TEST_BUILD_DIR"))
		proc_skip("XTAL_TEST_BUILD_DIR is not set");
	run_with_owner(load_and_unload, 0);
}

/* ---- Ways to end ---- */

static struct dma_queue *busy_queue;
static struct dma_seg busy_remote, busy_local;

static void *keep_busy(void *arg)
{
	struct dma_cr cr[16];

	(void)arg;
	for (;;) {
		dma_write(busy_queue, &busy_remote, &busy_local);
		dma_poll_queue(busy_queue, 16, cr);
	}
	return NULL;
}

static void *end_later(void *arg)
{
	(void)arg;
	proc_sleep_us(20000);
	exit(7);
}

static int ends(void *arg)
{
	struct scene *s = arg;
	pthread_t thread;
	struct peer p;

	setenv("XTAL_PATHS", s->way % 2 ? "map" : "ring", 1);
	peer_open(&p);
	busy_local = *peer_register(&p, peer_memory(PEER_MAP, SEGMENT), SEGMENT, NULL);
	busy_remote = peer_remote(&s->owner.export, 0, SEGMENT);
	busy_queue = peer_queue(&p, 16);
	if (pthread_create(&thread, NULL, keep_busy, NULL))
		proc_die("no thread");
	proc_sleep_us(5000);
	switch (s->way / 2) {
	case 0:
		exit(7);
	case 1:
		_exit(7);
	case 2:
		quick_exit(7);
	case 3:
		if (pthread_create(&thread, NULL, end_later, NULL))
			proc_die("no thread");
		pthread_exit(NULL); /* main ends, the others go on */
	case 4:                     /* closes the queue while a thread posts to another */
		dma_free_queue(peer_queue(&p, 4));
		exit(7);
	}
	return 1;
}

static void ending_with_transfers_running(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 10; way++) {
		for (unsigned i = 0; i < proc_rounds(5, 200); i++) {
			struct scene *s = proc_shared(sizeof(*s));
			pid_t owner;
			int status;

			s->way = way;
			s->owner.path = PEER_MAP;
			s->owner.len = SEGMENT;
			owner = proc_start(peer_owner_run, &s->owner);
			assert_true(proc_await(&s->owner.ready, 1, PATIENCE));
			status = proc_run(ends, s, PATIENCE);
			if (status != 7 << 8)
				print_error("way %u: wait status 0x%x\n", way, status);
			assert_int_equal(status, 7 << 8);
			atomic_store(&s->owner.quit, 1);
			assert_int_equal(proc_join(owner, PATIENCE), 0);
			munmap(s, sizeof(*s));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_copies_in_one_process, proc_end_all),
		cmocka_unit_test_teardown(a_front_end_loaded_twice, proc_end_all),
		cmocka_unit_test_teardown(loading_and_unloading, proc_end_all),
		cmocka_unit_test_teardown(ending_with_transfers_running, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
