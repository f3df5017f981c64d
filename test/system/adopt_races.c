/* SPDX-License-Identifier: MIT */
/*
 * Memory that is adopted and made private again, over and over, while the program does to it
 * whatever programs do: nothing is lost, nothing comes back, nothing hangs.
 */
/* ctest: timeout=240 label=soak */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "xtal.h"

#define RANGE    ((size_t)128 << 10)
#define BLOCK    ((size_t)4096)
#define PATIENCE 120000u

/* One way to use memory: bodies run on threads of their own until stop. */
struct race {
	const char *name;
	void (*body)(struct race *r, unsigned thread);
	unsigned threads;
	unsigned few; /* rounds */
	uint8_t *p;
	size_t len;
	_Atomic bool stop;
	_Atomic uint64_t turns;
	unsigned next;            /* thread number to give */
	pthread_rwlock_t no_undo; /* held by those during whose work nothing may become private */
};

static bool go_on(struct race *r)
{
	atomic_fetch_add_explicit(&r->turns, 1, memory_order_relaxed);
	return !atomic_load_explicit(&r->stop, memory_order_relaxed);
}

static void *thread_main(void *arg)
{
	struct race *r = arg;

	r->body(r, __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED));
	return NULL;
}

static bool may_fail(int err)
{
	return !err || err == -EBUSY || err == -EAGAIN || err == -ENOENT || err == -EINVAL ||
	       err == -EEXIST;
}

/* In a process of its own. */
static int run_race(void *arg)
{
	struct race *r = arg;
	unsigned rounds = proc_rounds(r->few, 1000000), adopted = 0;
	uint64_t end = proc_now() + (proc_soak() ? 400 * UINT64_C(1000000000) : UINT64_MAX / 2);
	pthread_t t[4];
	int err;

	setenv("XTAL_ADOPT", "auto", 1);
	setenv("XTAL_LOG", "/dev/null", 1);
	pthread_rwlock_init(&r->no_undo, NULL);
	if (!r->p)
		r->p = peer_memory(PEER_CMA, RANGE);
	r->len = r->len ? r->len : RANGE;
	for (unsigned i = 0; i < r->threads; i++)
		if (pthread_create(&t[i], NULL, thread_main, r))
			proc_die("no thread");
	for (unsigned i = 0; i < rounds && proc_now() < end; i++) {
		uint64_t turns = atomic_load(&r->turns);

		err = xtal_share(r->p, r->len);
		if (!may_fail(err))
			proc_die("%s: share: %s", r->name, xtal_last_error());
		adopted += !err;
		for (unsigned k = 0; atomic_load(&r->turns) == turns && k < 1000; k++)
			proc_sleep_us(20);
		pthread_rwlock_wrlock(&r->no_undo);
		err = xtal_unshare(r->p, r->len);
		pthread_rwlock_unlock(&r->no_undo);
		if (!may_fail(err))
			proc_die("%s: unshare: %s", r->name, xtal_last_error());
	}
	atomic_store(&r->stop, true);
	for (unsigned i = 0; i < r->threads; i++)
		pthread_join(t[i], NULL);
	fprintf(stderr, "%s: adopted %u times in %u rounds, %llu turns\n", r->name, adopted, rounds,
		(unsigned long long)r->turns);
	if (rounds > 10 && !adopted)
		proc_die("%s: never adopted: %s", r->name, xtal_last_error());
	return 0;
}

static void race(struct race r)
{
	char text[200];

	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	assert_int_equal(proc_run(run_race, &r, proc_soak() ? 4000000 : PATIENCE), 0);
}

/* ---- two threads of atomics ---- */

static _Atomic uint64_t added;

static void atomics_body(struct race *r, unsigned thread)
{
	uint64_t n = 0;

	(void)thread;
	while (go_on(r))
		for (size_t at = 0; at < RANGE; at += BLOCK, n++)
			atomic_fetch_add((_Atomic uint64_t *)(r->p + at), 1);
	atomic_fetch_add(&added, n);
	if (atomic_load(&added) > n) { /* the last one */
		uint64_t sum = 0;

		for (size_t at = 0; at < RANGE; at += BLOCK)
			sum += *(uint64_t *)(r->p + at);
		if (sum != atomic_load(&added))
			proc_die("%llu additions, the sum is %llu", (unsigned long long)added,
				 (unsigned long long)sum);
	}
}

static void two_threads_of_atomics(void **state)
{
	(void)state;
	race((struct race){ .name = "atomics", .body = atomics_body, .threads = 2, .few = 150 });
}

/* ---- direct I/O ---- */

static int direct_file(void)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "direct-%d.tmp", getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600);
	unlink(name);
	return fd;
}

static void direct_body(struct race *r, unsigned thread)
{
	uint8_t *out = r->p + thread * 8 * BLOCK, *in = out + 4 * BLOCK;
	uint64_t seed = thread + 1;
	int fd = direct_file();

	if (fd < 0)
		proc_die("no file for direct I/O: %m");
	while (go_on(r)) {
		peer_fill(out, 4 * BLOCK, ++seed);
		if (pwrite(fd, out, 4 * BLOCK, 0) != (ssize_t)(4 * BLOCK))
			proc_die("direct write: %m");
		memset(in, 0, 4 * BLOCK);
		/* What a device writes while memory becomes private goes astray (cdma(7)). */
		pthread_rwlock_rdlock(&r->no_undo);
		if (pread(fd, in, 4 * BLOCK, 0) != (ssize_t)(4 * BLOCK))
			proc_die("direct read: %m");
		pthread_rwlock_unlock(&r->no_undo);
		if (!peer_holds(in, 4 * BLOCK, seed) || !peer_holds(out, 4 * BLOCK, seed))
			proc_die("direct I/O brought other bytes");
	}
	close(fd);
}

static void direct_io(void **state)
{
	int fd = direct_file();

	(void)state;
	if (fd < 0)
		proc_skip("no direct I/O in this folder: %s", strerror(errno));
	close(fd);
	race((struct race){ .name = "direct I/O", .body = direct_body, .threads = 2, .few = 150 });
}

/* ---- io_uring with fixed buffers ---- */

struct ring {
	int fd;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
};

static bool ring_open(struct ring *u)
{
	memset(u, 0, sizeof(*u));
	u->fd = (int)syscall(SYS_io_uring_setup, 2, &u->p);
	if (u->fd < 0)
		return false;
	u->sq = mmap(NULL, u->p.sq_off.array + 2 * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		     MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->cq = mmap(NULL, u->p.cq_off.cqes + 4 * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_CQ_RING);
	u->sqes = mmap(NULL, 2 * sizeof(*u->sqes), PROT_READ | PROT_WRITE, MAP_SHARED, u->fd,
		       IORING_OFF_SQES);
	return u->sq != MAP_FAILED && u->cq != MAP_FAILED && (void *)u->sqes != MAP_FAILED;
}

static _Atomic uint32_t *word(uint8_t *ring, uint32_t offset)
{
	return (_Atomic uint32_t *)(ring + offset);
}

/* One operation on the fixed buffer 0; its result. */
static int ring_do(struct ring *u, int opcode, int fd, void *at, size_t len)
{
	uint32_t tail = atomic_load(word(u->sq, u->p.sq_off.tail)), head;
	struct io_uring_cqe *cqe;

	u->sqes[0] = (struct io_uring_sqe){
		.opcode = (uint8_t)opcode, .fd = fd, .addr = (uintptr_t)at, .len = (uint32_t)len
	};
	((uint32_t *)(u->sq + u->p.sq_off.array))[tail & (u->p.sq_entries - 1)] = 0;
	atomic_store(word(u->sq, u->p.sq_off.tail), tail + 1);
	if (syscall(SYS_io_uring_enter, u->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		proc_die("io_uring_enter: %m");
	head = atomic_load(word(u->cq, u->p.cq_off.head));
	cqe = (struct io_uring_cqe *)(u->cq + u->p.cq_off.cqes) + (head & (u->p.cq_entries - 1));
	atomic_store(word(u->cq, u->p.cq_off.head), head + 1);
	return cqe->res;
}

static void uring_body(struct race *r, unsigned thread)
{
	struct iovec buffer = { .iov_base = r->p + 2 * BLOCK, .iov_len = 2 * BLOCK };
	struct ring u;
	int pipes[2];
	uint64_t seed = 1;

	(void)thread;
	if (!ring_open(&u) || pipe(pipes))
		proc_die("io_uring: %m");
	while (go_on(r)) {
		/* Registered it cannot be moved; nor may it become private. */
		pthread_rwlock_rdlock(&r->no_undo);
		if (syscall(SYS_io_uring_register, u.fd, IORING_REGISTER_BUFFERS, &buffer, 1))
			proc_die("io_uring_register: %m");
		for (unsigned i = 0; i < 20; i++) {
			peer_fill(buffer.iov_base, BLOCK, ++seed);
			if (ring_do(&u, IORING_OP_WRITE_FIXED, pipes[1], buffer.iov_base, BLOCK) !=
				    (int)BLOCK ||
			    ring_do(&u, IORING_OP_READ_FIXED, pipes[0], r->p + 3 * BLOCK, BLOCK) !=
				    (int)BLOCK)
				proc_die("io_uring moves nothing");
			if (!peer_holds(r->p + 3 * BLOCK, BLOCK, seed))
				proc_die("io_uring brought other bytes");
		}
		if (syscall(SYS_io_uring_register, u.fd, IORING_UNREGISTER_BUFFERS, NULL, 0))
			proc_die("io_uring_register: %m");
		pthread_rwlock_unlock(&r->no_undo);
		proc_sleep_us(100);
	}
}

static void io_uring_with_fixed_buffers(void **state)
{
	struct ring u;

	(void)state;
	if (!ring_open(&u))
		proc_skip("io_uring: %s", strerror(errno));
	close(u.fd);
	race((struct race){ .name = "io_uring", .body = uring_body, .threads = 1, .few = 150 });
}

/* ---- system calls into the range ---- */

static void list_root(void *buf, long *len)
{
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*len = syscall(SYS_getdents64, fd, buf, 2 * BLOCK);
	close(fd);
}

static void calls_body(struct race *r, unsigned thread)
{
	uint8_t *mine = r->p + thread * 16 * BLOCK, elsewhere[BLOCK];
	int pipes[2], socks[2];
	uint64_t seed = thread * 1000;

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
		proc_die("pipes: %m");
	while (go_on(r)) {
		size_t at = seed % 12 * BLOCK + 104;
		long n;

		peer_fill(elsewhere, 1024, ++seed);
		if (write(pipes[1], elsewhere, 1024) != 1024 ||
		    read(pipes[0], mine + at, 1024) != 1024 || !peer_holds(mine + at, 1024, seed))
			proc_die("read(2) brought other bytes: %m");
		peer_fill(mine + at, 1024, ++seed);
		if (send(socks[0], mine + at, 1024, 0) != 1024 ||
		    recv(socks[1], mine + at + BLOCK / 2, 1024, 0) != 1024 ||
		    !peer_holds(mine + at + BLOCK / 2, 1024, seed))
			proc_die("recv(2) brought other bytes: %m");
		memset(mine + 12 * BLOCK, 0, 2 * BLOCK);
		list_root(mine + 12 * BLOCK, &n);
		if (n <= 0)
			proc_die("getdents: %m");
	}
}

static void system_calls_into_it(void **state)
{
	(void)state;
	race((struct race){ .name = "system calls", .body = calls_body, .threads = 2, .few = 150 });
}

/* ---- futexes ---- */

static long futex(_Atomic uint32_t *at, int op, uint32_t value, const struct timespec *limit)
{
	return syscall(SYS_futex, at, op, value, limit, NULL, 0);
}

/* Two threads hand a number to each other. */
static void ping_pong(struct race *r, unsigned thread, int flag, const struct timespec *limit)
{
	_Atomic uint32_t *at = (_Atomic uint32_t *)(r->p + 5 * BLOCK + 64);

	while (go_on(r)) {
		uint32_t now = atomic_load(at);

		if (now % 2 == thread) {
			atomic_store(at, now + 1);
			futex(at, FUTEX_WAKE | flag, 1, NULL);
		} else if (futex(at, FUTEX_WAIT | flag, now, limit) && errno == ETIMEDOUT &&
			   limit->tv_sec && atomic_load(at) == now && go_on(r)) {
			proc_die("nobody woke a waiter");
		}
	}
	atomic_fetch_add(at, 1);
	futex(at, FUTEX_WAKE | flag, INT_MAX, NULL);
}

static void private_futex_body(struct race *r, unsigned thread)
{
	ping_pong(r, thread, FUTEX_PRIVATE_FLAG, &(struct timespec){ .tv_sec = 20 });
}

/* A waiter is not woken across a move: documented. Nothing else goes wrong. */
static void shared_futex_body(struct race *r, unsigned thread)
{
	ping_pong(r, thread, 0, &(struct timespec){ .tv_nsec = 2000000 });
}

static void futexes(void **state)
{
	(void)state;
	race((struct race){
		.name = "private futex", .body = private_futex_body, .threads = 2, .few = 100 });
	race((struct race){
		.name = "shared futex", .body = shared_futex_body, .threads = 2, .few = 50 });
}

/* ---- signals on an alternate stack in the range ---- */

static _Atomic uint32_t handled;

static void handler(int sig)
{
	volatile uint8_t local[512];

	for (unsigned i = 0; i < sizeof(local); i++)
		local[i] = (uint8_t)(sig + (int)i);
	atomic_fetch_add(&handled, local[1] == (uint8_t)(sig + 1));
}

static void signals_body(struct race *r, unsigned thread)
{
	stack_t stack = { .ss_sp = r->p, .ss_size = RANGE / 2 };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerspec every = { .it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000 };
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	timer_t timer;

	(void)thread;
	to._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &sa, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &to, &timer) || timer_settime(timer, 0, &every, NULL))
		proc_die("signals: %m");
	while (go_on(r)) {
		uint32_t seen = atomic_load(&handled);

		for (unsigned i = 0; atomic_load(&handled) == seen && i < 10000; i++)
			proc_sleep_us(100);
		if (atomic_load(&handled) == seen)
			proc_die("no signal came");
	}
	timer_delete(timer);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

static void signals_with_an_alternate_stack(void **state)
{
	(void)state;
	race((struct race){ .name = "signals", .body = signals_body, .threads = 1, .few = 150 });
}

/* ---- allocators ---- */

#define BLOCKS 64u

/* Blocks of all sizes, each filled with its own number; calloc's are zero. */
static void heap_body(struct race *r, unsigned thread)
{
	static const size_t sizes[] = { 24, 200, 1000, 5000, 20000, 70000 };
	struct rng rng = { .state = thread + 7u };
	uint8_t *block[BLOCKS] = { 0 };
	size_t len[BLOCKS] = { 0 };

	while (go_on(r)) {
		unsigned i = rng_below(&rng, BLOCKS);
		size_t want = sizes[rng_below(&rng, 6)];
		uint8_t *fresh;

		for (size_t k = 0; k < len[i]; k += 97)
			if (block[i][k] != (uint8_t)(i + thread))
				proc_die("a block has changed");
		switch (rng_below(&rng, 4)) {
		case 0:
			free(block[i]);
			block[i] = NULL;
			len[i] = 0;
			continue;
		case 1:
			fresh = realloc(block[i], want);
			for (size_t k = 0; fresh && k < want && k < len[i]; k += 97)
				if (fresh[k] != (uint8_t)(i + thread))
					proc_die("realloc has changed a block");
			break;
		case 2:
			free(block[i]);
			fresh = calloc(1, want);
			for (size_t k = 0; fresh && k < want; k++)
				if (fresh[k])
					proc_die("calloc's block is not zero");
			break;
		default:
			free(block[i]);
			fresh = malloc(want);
			break;
		}
		if (!fresh)
			proc_die("no memory");
		block[i] = memset(fresh, (int)(i + thread), want);
		len[i] = want;
#ifdef __GLIBC__
		if (rng_below(&rng, 200) == 0)
			malloc_trim(0);
#endif
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
}

static void *get_block(void *arg)
{
	*(void **)arg = malloc(40000);
	return NULL;
}

/* A part of the heap: that of the first thread (brk), or of another one. */
static int heap_race(void *arg)
{
	struct race *r = arg;
	void *hold[40], *block = NULL;
	pthread_t t;

	for (unsigned i = 0; i < 40; i++) /* the heap grows, and shrinks to a part of it */
		hold[i] = malloc(40000);
	if (r->few % 2) {
		if (pthread_create(&t, NULL, get_block, &block) || pthread_join(t, NULL))
			proc_die("no thread");
	} else {
		mallopt(M_ARENA_MAX, 1); /* all threads use it */
		block = hold[0];
	}
	r->p = (uint8_t *)((uintptr_t)block & ~(uintptr_t)4095);
	for (unsigned i = 1; i < 40; i++)
		free(hold[i]);
	r->len = (size_t)512 << 10;
	return run_race(r);
}

static void run_heap(struct race *r)
{
	char text[200];

	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	assert_int_equal(proc_run(heap_race, r, proc_soak() ? 4000000 : PATIENCE), 0);
}

static void heaps(void **state)
{
	struct race main_heap = { .name = "brk heap", .body = heap_body, .threads = 3, .few = 100 };
	struct race arena = { .name = "thread arena", .body = heap_body, .threads = 3, .few = 101 };

	(void)state;
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer has an allocator of its own");
	run_heap(&main_heap);
	run_heap(&arena);
}

/* ---- another allocator: in a program that is started with it ---- */

#define OTHER "libjemalloc.so.2"

static int with_other(void *arg)
{
	(void)arg;
	setenv("LD_PRELOAD", OTHER, 1);
	/* What is free is dropped at once, and memory comes back before it is given away. */
	setenv("MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0,narenas:2", 1);
	unsetenv("XTAL_TEST_FILTER");
	execl("/proc/self/exe", "adopt_races", NULL);
	return 1;
}

static int other_heap(void *arg)
{
	struct race *r = arg;
	void *hold[40];

	for (unsigned i = 0; i < 40; i++)
		hold[i] = malloc(40000);
	r->p = (uint8_t *)((uintptr_t)hold[10] & ~(uintptr_t)4095);
	for (unsigned i = 1; i < 40; i++)
		free(hold[i]);
	r->len = (size_t)512 << 10;
	return run_race(r);
}

static void other_allocator(void **state)
{
	struct race r = { .name = "jemalloc", .body = heap_body, .threads = 3, .few = 100 };

	(void)state;
	assert_int_equal(proc_run(other_heap, &r, proc_soak() ? 4000000 : PATIENCE), 0);
}

static void heaps_of_another_allocator(void **state)
{
	char text[200];
	int status;

	(void)state;
	if (xtal_adoption_query(text, sizeof(text)) < XTAL_ADOPTION_FULL)
		proc_skip("adoption: %s", text);
	if (proc_sanitized(NULL))
		proc_skip("a sanitizer has an allocator of its own");
	status = proc_run(with_other, NULL, proc_soak() ? 4000000 : PATIENCE);
	if (status == 77 << 8)
		proc_skip("no " OTHER);
	assert_int_equal(status, 0);
}

/* As the program with the other allocator: only what needs it. */
static int main_with_other(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(other_allocator, proc_end_all),
	};

	return dlsym(RTLD_DEFAULT, "mallctl") ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_threads_of_atomics, proc_end_all),
		cmocka_unit_test_teardown(direct_io, proc_end_all),
		cmocka_unit_test_teardown(io_uring_with_fixed_buffers, proc_end_all),
		cmocka_unit_test_teardown(system_calls_into_it, proc_end_all),
		cmocka_unit_test_teardown(futexes, proc_end_all),
		cmocka_unit_test_teardown(signals_with_an_alternate_stack, proc_end_all),
		cmocka_unit_test_teardown(heaps, proc_end_all),
		cmocka_unit_test_teardown(heaps_of_another_allocator, proc_end_all),
	};

	if (proc_emulated())
		return proc_skip_all("an emulator has no userfaultfd");
	if (getenv("LD_PRELOAD") && strcmp(getenv("LD_PRELOAD"), OTHER) == 0)
		return main_with_other();
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
