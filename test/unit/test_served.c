/* SPDX-License-Identifier: MIT */
/*
 * A receiver in another process that polls now and then, and does nothing at
 * all in between: then its agent serves its peers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/context.h"
#include "core/queue.h"
#include "core/receive.h"
#include "core/shared_cq.h"
#include "lib/proc.h"

#define ID 0x70001u

static char answer_of(int fd)
{
	char c = 0;

	return read(fd, &c, 1) == 1 ? c : 0;
}

/* 'p': polls until nothing is left. All else ends it. */
static int receiver(int in, int out)
{
	static uint8_t sink[64];
	struct xtal_shared_cq_attr ca = { 0 };
	struct xtal_receive_queue_attr ra = { .depth = 4, .max_sges = 1 };
	struct xtal_endpoint_attr ea = { .id = ID, .jetty = true };
	struct xtal_sge sge = { (uintptr_t)sink, sizeof(sink) };
	struct xtal_endpoint *ep;
	struct xtal_context *ctx;
	struct xtal_record r;
	uint32_t tid;

	if (xtal_context_open(xtal_device_at(0), &ctx) || xtal_shared_cq_create(ctx, &ca, &ea.cq) ||
	    xtal_receive_queue_create(ctx, &ra, &ea.rq) || xtal_endpoint_create(ctx, &ea, &ep) ||
	    xtal_receive_queue_post(ea.rq, &sge, 1, 1) ||
	    xtal_receive_queue_post(ea.rq, &sge, 1, 2))
		return 1;
	tid = xtal_context_tid(ctx);
	if (write(out, &tid, sizeof(tid)) != sizeof(tid))
		return 1;
	while (answer_of(in) == 'p') {
		int n;

		while ((n = xtal_shared_cq_poll(ea.cq, 1, &r)) > 0)
			;
		if (n || write(out, "d", 1) != 1)
			return 1;
	}
	return 0;
}

static void sends(struct xtal_queue *q, struct xtal_shared_cq *cq, uint32_t tid)
{
	static uint8_t source[8];
	uint64_t until = proc_now() + proc_slack(20000000000);
	struct xtal_record r = { .status = UINT16_MAX };
	struct xtal_op op = { .opcode = XTAL_OP_SEND,
			      .local = (uintptr_t)source,
			      .len = sizeof(source),
			      .flags = XTAL_OP_INLINE,
			      .notify = { .addr = xtal_endpoint_address(ID, true),
					  .eid = xtal_device_at(0)->eid,
					  .tid = tid } };

	assert_int_equal(xtal_queue_submit(q, &op), 0);
	while (xtal_shared_cq_poll(cq, 1, &r) == 0 && proc_now() < until)
		;
	assert_int_equal(r.status, XTAL_OK);
}

static void whoever_stops_polling_is_served_all_the_same(void **state)
{
	struct xtal_shared_cq_attr ca = { 0 };
	struct xtal_queue_attr qa = { .depth = 4, .rnr_retry = XTAL_RNR_FOREVER };
	struct xtal_context *ctx;
	struct xtal_queue *q;
	int to[2], from[2], status;
	uint32_t tid;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid = fork(); /* before this process has called the library */
	if (!pid) {
		close(to[1]);
		_exit(receiver(to[0], from[1]));
	}
	assert_true(pid > 0);
	close(to[0]);
	close(from[1]);
	assert_int_equal(read(from[0], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(xtal_context_open(xtal_device_at(0), &ctx), 0);
	assert_int_equal(xtal_shared_cq_create(ctx, &ca, &qa.cq), 0);
	assert_int_equal(xtal_queue_create(ctx, &qa, &q), 0);
	for (unsigned i = 0; i < 2; i++) {
		sends(q, qa.cq, tid);
		usleep(30000); /* its agent goes to sleep */
		assert_int_equal(write(to[1], "p", 1), 1);
		assert_int_equal(answer_of(from[0]), 'd');
	}
	xtal_queue_destroy(&q);
	assert_int_equal(xtal_shared_cq_destroy(&qa.cq, false), 0);
	assert_int_equal(xtal_context_close(&ctx), 0);
	close(to[1]);
	close(from[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_stops_polling_is_served_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
