/* SPDX-License-Identifier: MIT */
/* Two contexts of one process, and what tests of messages do with them; each path has its own process. */
#ifndef TEST_UNIT_SEND_WORLD_H
#define TEST_UNIT_SEND_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/channel.h"
#include "core/context.h"
#include "core/queue.h"
#include "core/receive.h"
#include "core/segment.h"
#include "core/shared_cq.h"
#include "lib/proc.h"

#define BYTES (512u * 1024)

/* Two registered pieces of memory, and the objects of both sides. */
static uint8_t source[BYTES], sink[BYTES];
static int owner_a, owner_b;

struct world {
	struct xtal_context *a, *b;
	struct xtal_channel *channel; /* of b */
	struct xtal_shared_cq *acq, *bcq;
	struct xtal_segment *aseg, *bseg;
	struct xtal_queue *q; /* of a */
	struct xtal_receive_queue *rq;
	struct xtal_endpoint *ep;
};

#define JETTY_ID  0x70001u
#define SENDER_ID 0x50002u
#define TOKEN     0xabcdu

static inline struct xtal_queue_attr queue_attr(struct world *w)
{
	return (struct xtal_queue_attr){ .depth = 64,
					 .cq = w->acq,
					 .owner = &owner_a,
					 .id = SENDER_ID,
					 .jetty = true,
					 .rnr_retry = XTAL_RNR_FOREVER };
}

static inline void new_queue(struct world *w, struct xtal_queue_attr attr)
{
	if (w->q)
		xtal_queue_destroy(&w->q);
	assert_int_equal(xtal_queue_create(w->a, &attr, &w->q), 0);
}

static inline void new_endpoint(struct world *w, uint32_t depth)
{
	struct xtal_receive_queue_attr ra = { .depth = depth, .max_sges = 4, .id = 77 };
	struct xtal_endpoint_attr ea = { .id = JETTY_ID,
					 .jetty = true,
					 .token = TOKEN,
					 .token_valid = true,
					 .cq = w->bcq,
					 .owner = &owner_b };

	assert_int_equal(xtal_receive_queue_create(w->b, &ra, &w->rq), 0);
	ea.rq = w->rq;
	assert_int_equal(xtal_endpoint_create(w->b, &ea, &w->ep), 0);
}

static inline int setup(void **state)
{
	static struct world w;
	const uint32_t all = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC;
	struct xtal_segment_attr sa = { (uintptr_t)source, BYTES, .rights = all };
	struct xtal_segment_attr sb = { (uintptr_t)sink, BYTES, .rights = all };
	struct xtal_shared_cq_attr ca = { .owner = &w };

	memset(&w, 0, sizeof(w));
	if (xtal_context_open(xtal_device_at(0), &w.a) ||
	    xtal_context_open(xtal_device_at(0), &w.b) || xtal_channel_create(w.b, &w.channel) ||
	    xtal_shared_cq_create(w.a, &ca, &w.acq))
		return -1;
	ca.channel = w.channel;
	if (xtal_shared_cq_create(w.b, &ca, &w.bcq) || xtal_segment_register(w.a, &sa, &w.aseg) ||
	    xtal_segment_register(w.b, &sb, &w.bseg))
		return -1;
	for (uint32_t i = 0; i < BYTES; i++)
		source[i] = (uint8_t)(i * 31 + i / 251);
	memset(sink, 0, BYTES);
	new_endpoint(&w, 32);
	new_queue(&w, queue_attr(&w));
	*state = &w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	xtal_queue_destroy(&w->q);
	if (w->ep)
		xtal_endpoint_destroy(&w->ep);
	xtal_segment_unregister(&w->aseg);
	xtal_segment_unregister(&w->bseg);
	return xtal_receive_queue_destroy(&w->rq) || xtal_shared_cq_destroy(&w->acq, false) ||
	       xtal_shared_cq_destroy(&w->bcq, false) || xtal_channel_destroy(&w->channel) ||
	       xtal_context_close(&w->a) || xtal_context_close(&w->b);
}

static inline struct xtal_op message(struct world *w, enum xtal_opcode opcode, uint64_t at,
				     uint64_t len)
{
	return (struct xtal_op){
		.user = 1000 + at,
		.opcode = (uint8_t)opcode,
		.local = (uintptr_t)source + at,
		.len = len,
		.target = 5,
		.notify = { .addr = xtal_endpoint_address(JETTY_ID, true),
			    .eid = xtal_context_device(w->b)->eid,
			    .tid = xtal_context_tid(w->b),
			    .token = TOKEN,
			    .token_valid = true },
		.notify_data = 0x1122334455667788,
	};
}

static inline void send(struct world *w, uint64_t at, uint64_t len)
{
	struct xtal_op op = message(w, XTAL_OP_SEND, at, len);

	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
}

static inline void receive(struct world *w, uint64_t at, uint64_t len, uint64_t user)
{
	struct xtal_sge sge = { (uintptr_t)sink + at, len };

	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, user), 0);
}

/* The next record of either side; polls both. */
static inline struct xtal_record next(struct world *w, struct xtal_shared_cq *of)
{
	uint64_t until = proc_now() + proc_slack(20000000000);
	struct xtal_shared_cq *other = of == w->acq ? w->bcq : w->acq;
	struct xtal_record r, none;

	do {
		int n = xtal_shared_cq_poll(of, 1, &r);

		assert_true(n >= 0);
		if (n)
			return r;
		/* Whoever sends needs the receiver's polls, or its agent. */
		if (of == w->acq)
			assert_int_equal(xtal_shared_cq_poll(other, 0, &none), 0);
	} while (proc_now() < until);
	fail_msg("no completion");
	return r;
}

static inline void assert_nothing(struct world *w, struct xtal_shared_cq *of)
{
	struct xtal_record r;

	(void)w;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(xtal_shared_cq_poll(of, 1, &r), 0);
		usleep(200);
	}
}

static inline void sent(struct world *w, uint32_t status)
{
	struct xtal_record r = next(w, w->acq);

	assert_int_equal(r.status, status);
	assert_ptr_equal(r.owner, &owner_a);
	assert_int_equal(r.local_id, SENDER_ID);
	assert_int_equal(r.target, 5);
	assert_int_equal(r.flags, XTAL_RECORD_JETTY);
}

static inline void received(struct world *w, uint64_t user, uint64_t at, uint64_t len)
{
	struct xtal_record r = next(w, w->bcq);

	assert_int_equal(r.status, XTAL_OK);
	assert_int_equal(r.user, user);
	assert_int_equal(r.len, len);
	assert_ptr_equal(r.owner, &owner_b);
	assert_int_equal(r.local_id, JETTY_ID);
	assert_true(r.flags & XTAL_RECORD_RECEIVED && r.flags & XTAL_RECORD_JETTY);
	assert_int_equal(r.remote_id, SENDER_ID);
	assert_int_equal(r.remote_tid, xtal_context_tid(w->a));
	assert_true(xtal_eid_equal(r.remote_eid, xtal_context_device(w->a)->eid));
	assert_true(r.remote_jetty);
	if (len)
		assert_memory_equal(sink + at, source + (user - 1000), len);
}

static inline struct xtal_remote in_sink(const struct world *w)
{
	return (struct xtal_remote){ .addr = (uintptr_t)sink,
				     .eid = xtal_context_device(w->b)->eid,
				     .tid = xtal_context_tid(w->b) };
}

/* The program starts itself with XTAL_PATHS set. */
static inline int over_each_path(int argc, char **argv, int (*run)(const char *path))
{
	static const char *const paths[] = { "self", "ring", "tcp" };
	int failed = 0;

	if (argc > 1)
		return run(argv[1]);
	for (unsigned i = 0; i < 3; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			setenv("XTAL_PATHS", paths[i], 1); /* read once, by the first context */
			exit(run(paths[i]));
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			failed = 1;
	}
	return failed;
}

#endif
