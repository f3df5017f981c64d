/* SPDX-License-Identifier: MIT */
/* See lib.h. */
#include "lib.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET  0xbe9c4u
#define LIMIT_S 600 /* a measurement that hangs shall not hang the rest */

static cpu_set_t allowed;
static unsigned cores; /* of them; counting takes longer than a poll */

_Noreturn void bench_die(const char *format, ...)
{
	int err = errno;
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (%s; library: %s)\n", strerror(err), xtal_last_error());
	exit(1);
}

static void remember_cores(void)
{
	if (cores)
		return;
	sched_getaffinity(0, sizeof(allowed), &allowed);
	cores = (unsigned)CPU_COUNT(&allowed);
}

unsigned bench_cores(void)
{
	remember_cores();
	return cores;
}

void bench_pin(unsigned n)
{
	cpu_set_t one;

	n %= bench_cores();
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed) && n-- == 0)
			CPU_SET(i, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		bench_die("cannot pin");
}

void bench_unpin(void)
{
	remember_cores();
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

static int memory_of(const char *name)
{
	static const char *const names[] = { "alloc", "malloc", "shared", "adopted" };

	for (int i = 0; i < 4; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	bench_die("no memory called %s", name);
}

void bench_options(int argc, char **argv, struct bench_options *opt)
{
	static const struct option longs[] = {
		{ "rounds", 1, 0, 'r' }, { "slices", 1, 0, 'l' },  { "size", 1, 0, 's' },
		{ "batch", 1, 0, 'b' },  { "memory", 1, 0, 'm' },  { "series", 1, 0, 'n' },
		{ "op", 1, 0, 'o' },     { "seconds", 1, 0, 't' }, { 0, 0, 0, 0 },
	};
	int c;

	*opt = (struct bench_options){ .rounds = 5,
				       .slices = 15,
				       .size = 8,
				       .batch = 16,
				       .series = "",
				       .op = "write",
				       .seconds = 10 };
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'r':
			opt->rounds = (unsigned)atoi(optarg);
			break;
		case 'l':
			opt->slices = (unsigned)atoi(optarg);
			break;
		case 's':
			opt->size = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			opt->batch = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			opt->memory = memory_of(optarg);
			break;
		case 'n':
			opt->series = optarg;
			break;
		case 'o':
			opt->op = optarg;
			break;
		case 't':
			opt->seconds = atof(optarg);
			break;
		default:
			exit(2);
		}
	}
	opt->words = argv + optind;
	opt->count = argc - optind;
	if (!opt->rounds || !opt->slices || !opt->size || !opt->batch)
		bench_die("counts and sizes must not be 0");
	alarm(LIMIT_S);
	remember_cores();
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_percentile(double *values, unsigned count, double percent)
{
	qsort(values, count, sizeof(*values), compare);
	return values[(unsigned)((double)(count - 1) * percent / 100)];
}

double bench_median(double *values, unsigned count)
{
	return bench_percentile(values, count, 50);
}

static void emit(const struct bench_options *opt, const char *what, const char *unit,
		 unsigned round, double value, double best)
{
	printf("{\"series\": \"%s.%s\", \"unit\": \"%s\", \"size\": %llu, \"round\": %u, "
	       "\"value\": %.6g, \"best\": %.6g}\n",
	       opt->series, what, unit, (unsigned long long)opt->size, round, value, best);
	fflush(stdout);
}

void bench_emit(const struct bench_options *opt, const char *what, const char *unit, unsigned round,
		double *slices, unsigned count)
{
	emit(opt, what, unit, round, bench_median(slices, count),
	     bench_percentile(slices, count, 10));
}

void bench_emit_value(const struct bench_options *opt, const char *what, const char *unit,
		      unsigned round, double value)
{
	emit(opt, what, unit, round, value, value);
}

char *bench_shared(uint64_t len)
{
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *p;

	if (fd < 0 || ftruncate(fd, (off_t)len) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		bench_die("no memfd");
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_die("no shared memory");
	return p; /* the fd stays open: that is how the library finds the object */
}

void bench_tell(const struct bench_side *side, const void *data, size_t len)
{
	if (send(side->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		bench_die("the other process is gone");
}

void bench_hear(const struct bench_side *side, void *data, size_t len)
{
	if (recv(side->fd, data, len, MSG_WAITALL) != (ssize_t)len)
		bench_die("the other process ended");
}

bool bench_fork(struct bench_side *side)
{
	int fd[2], parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		bench_die("no socket pair");
	fflush(stdout);
	side->pid = fork();
	if (side->pid < 0)
		bench_die("no process");
	side->fd = fd[side->pid == 0];
	close(fd[side->pid != 0]);
	if (side->pid)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	alarm(LIMIT_S);
	return true;
}

static void make_memory(struct bench_side *side)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	switch (side->memory) {
	case BENCH_ALLOC:
		side->base = xtal_alloc(side->len);
		break;
	case BENCH_MALLOC:
	case BENCH_ADOPTED:
		side->base = aligned_alloc(page, (side->len + page - 1) & ~(page - 1));
		break;
	case BENCH_SHARED:
		side->base = side->shared;
		break;
	}
	if (!side->base)
		bench_die("no memory");
	memset(side->base, 0, side->len);
	if (side->memory != BENCH_ADOPTED)
		return;
	setenv("XTAL_ADOPT", "auto", 1);
	if (xtal_share(side->base, (side->len + page - 1) & ~(page - 1)))
		bench_die("xtal_share: %s", xtal_last_error());
}

void bench_open(struct bench_side *side, uint32_t depth)
{
	struct dma_seg_cfg cfg = { .token_value = SECRET, .token_value_valid = true };
	struct queue_cfg queue = { .queue_depth = depth, .event_mode = true };

	make_memory(side);
	side->list = dma_get_device_list(&side->devices);
	if (!side->list || side->devices <= side->device)
		bench_die("no device %u", side->device);
	side->ctx = dma_create_context(&side->list[side->device]);
	cfg.addr = (uintptr_t)side->base;
	cfg.len = side->len;
	side->seg = side->ctx ? dma_register_seg(side->ctx, &cfg) : NULL;
	if (!side->seg)
		bench_die("no context or segment");
	bench_tell(side, side->seg, sizeof(*side->seg));
	bench_hear(side, &side->remote, sizeof(side->remote));
	bench_tell(side, &side->list[side->device].attr.eid, sizeof(queue.rmt_eid));
	bench_hear(side, &queue.rmt_eid, sizeof(queue.rmt_eid));
	side->queue = dma_alloc_queue(side->ctx, &queue);
	if (!side->queue)
		bench_die("no queue");
}

void bench_path(const struct bench_side *side, char path[16])
{
	struct xtal_descriptor d = { .va = side->remote.sva,
				     .len = side->remote.len,
				     .tid = side->remote.tid,
				     .token = side->remote.token_value,
				     .token_valid = side->remote.token_value_valid };
	struct xtal_path_info info;

	if (xtal_path_query(side->queue, &d, -1, &info))
		bench_die("no path");
	memcpy(path, info.name, 16);
}

void bench_close(struct bench_side *side)
{
	int status = 0;

	dma_free_queue(side->queue);
	dma_unregister_seg(side->ctx, side->seg);
	dma_delete_context(side->ctx);
	dma_free_device_list(side->list, side->devices);
	if (!side->pid)
		exit(0);
	close(side->fd);
	if (waitpid(side->pid, &status, 0) != side->pid || status)
		bench_die("the other process failed with status 0x%x", (unsigned)status);
}

/* An order to the owner: check the first len bytes. */
struct order {
	uint64_t len, seed;
};

static char pattern(uint64_t i, uint64_t seed)
{
	return (char)((i * 7 + i / 251 + seed) % 253);
}

void bench_fill(char *to, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		to[i] = pattern(i, seed);
}

void bench_serve(struct bench_side *side)
{
	struct order order;

	while (recv(side->fd, &order, sizeof(order), MSG_WAITALL) == sizeof(order)) {
		uint64_t wrong = 0;

		for (uint64_t i = 0; i < order.len && i < side->len; i++)
			wrong += side->base[i] != pattern(i, order.seed);
		bench_tell(side, &wrong, sizeof(wrong));
	}
}

_Noreturn void bench_owner(struct bench_side *side)
{
	bench_serve(side);
	bench_close(side);
	exit(0);
}

void bench_verify(const struct bench_side *side, uint64_t len, uint64_t seed)
{
	struct order order = { .len = len, .seed = seed };
	uint64_t wrong;

	bench_tell(side, &order, sizeof(order));
	bench_hear(side, &wrong, sizeof(wrong));
	if (wrong)
		bench_die("%llu of %llu bytes are wrong at the target", (unsigned long long)wrong,
			  (unsigned long long)len);
}

_Noreturn void bench_bad_completion(const struct dma_cr *cr)
{
	bench_die("an operation ended with %s", xtal_status_name((int)cr->status));
}

void bench_take(struct dma_queue *queue, uint64_t n)
{
	struct dma_cr cr[16];

	while (n) {
		int got = dma_poll_queue(queue, n < 16 ? (uint32_t)n : 16, cr);

		if (got < 0)
			bench_die("polling failed");
		for (int i = 0; i < got; i++)
			if (cr[i].status != DMA_CR_SUCCESS)
				bench_bad_completion(&cr[i]);
		n -= (uint64_t)got;
		if (!got && bench_cores() == 1)
			sched_yield();
	}
}
