/* SPDX-License-Identifier: MIT */
/*
 * What links without open operations cost the agent: it does not look at them. Once over each
 * carrier: the program starts itself with XTAL_PATHS set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/agent.h"
#include "core/context.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/queue.h"
#include "core/segment.h"
#include "core/shared_cq.h"
#include "lib/proc.h"

static uint64_t source = 5, word;

static unsigned visits;
static bool leaves;

static bool visit(struct xtal_drain *d)
{
	(void)d;
	visits++;
	return false;
}

static bool leave(struct xtal_drain *d)
{
	if (leaves)
		xtal_agent_remove_drain(d);
	leaves = false;
	return true;
}

static void after(struct xtal_drain *d)
{
	(void)d;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void remove_it(void *arg)
{
	xtal_agent_remove_drain(arg);
}

static void read_visits(void *arg)
{
	*(unsigned *)arg = visits;
}

/* On the agent, between two looks. */
static unsigned visits_now(void)
{
	unsigned n;

	xtal_agent_call(read_visits, &n);
	return n;
}

static void drains_come_from_any_thread_and_leave(void **state)
{
	static struct xtal_drain d = { .drain = visit,
				       .before_sleep = leave,
				       .after_sleep = after };
	uint64_t until = proc_now() + proc_slack(10000000000);
	struct xtal_context *ctx;
	unsigned n;

	(void)state;
	assert_int_equal(xtal_context_open(xtal_device_at(0), &ctx), 0);
	/* It never runs, yet can be taken back. */
	xtal_agent_join_drain(&d);
	xtal_agent_call(remove_it, &d);
	n = visits_now();
	for (unsigned i = 0; i < 20; i++)
		xtal_agent_call(nothing, NULL);
	assert_int_equal(visits_now(), n);
	leaves = true;
	xtal_agent_join_drain(&d);
	while (visits_now() == n && proc_now() < until)
		;
	assert_true(visits_now() > n);
	usleep(50000); /* the agent goes to sleep */
	while (__atomic_load_n(&leaves, __ATOMIC_SEQ_CST) && proc_now() < until)
		usleep(1000);
	n = visits_now();
	for (unsigned i = 0; i < 20; i++)
		xtal_agent_call(nothing, NULL);
	assert_int_equal(visits_now(), n);
	assert_int_equal(xtal_context_close(&ctx), 0);
}

/* Links of ctx, and how many of them the agent looks at. */
static void count_links(struct xtal_context *ctx, unsigned *all, unsigned *drained)
{
	*all = *drained = 0;
	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links; n = n->next) {
		struct xtal_link *link = xtal_container_of(n, struct xtal_link, node);

		xtal_lock(&link->lock);
		++*all;
		*drained += link->draining;
		xtal_unlock(&link->lock);
	}
	xtal_unlock(&ctx->links_lock);
}

static void write_once(struct xtal_queue *q, struct xtal_shared_cq *cq, struct xtal_context *to)
{
	uint64_t until = proc_now() + proc_slack(20000000000);
	struct xtal_record r = { .status = UINT16_MAX };
	struct xtal_op op = { .opcode = XTAL_OP_WRITE,
			      .local = (uintptr_t)&source,
			      .len = sizeof(source),
			      .remote = { .addr = (uintptr_t)&word,
					  .eid = xtal_context_device(to)->eid,
					  .tid = xtal_context_tid(to) } };

	source++;
	assert_int_equal(xtal_queue_submit(q, &op), 0);
	while (xtal_shared_cq_poll(cq, 1, &r) == 0 && proc_now() < until)
		;
	assert_int_equal(r.status, XTAL_OK);
	assert_int_equal(word, source);
}

static void a_link_at_rest_is_not_looked_at(void **state)
{
	const uint32_t all_rights = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC;
	struct xtal_segment_attr sa = { (uintptr_t)&source, sizeof(source), .rights = all_rights };
	struct xtal_segment_attr sb = { (uintptr_t)&word, sizeof(word), .rights = all_rights };
	struct xtal_queue_attr qa = { .depth = 4 };
	struct xtal_shared_cq_attr ca = { 0 };
	struct xtal_context *a, *b;
	struct xtal_segment *aseg, *bseg;
	struct xtal_queue *q;

	(void)state;
	assert_int_equal(xtal_context_open(xtal_device_at(0), &a), 0);
	assert_int_equal(xtal_context_open(xtal_device_at(0), &b), 0);
	assert_int_equal(xtal_segment_register(a, &sa, &aseg), 0);
	assert_int_equal(xtal_segment_register(b, &sb, &bseg), 0);
	assert_int_equal(xtal_shared_cq_create(a, &ca, &qa.cq), 0);
	assert_int_equal(xtal_queue_create(a, &qa, &q), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t until = proc_now() + proc_slack(10000000000);
		unsigned all, drained;

		write_once(q, qa.cq, b);
		do { /* whatever wakes the agent lets it see that there is nothing to do */
			usleep(2000);
			xtal_agent_call(nothing, NULL);
			count_links(a, &all, &drained);
		} while (drained && proc_now() < until);
		assert_int_equal(all, 1);
		assert_int_equal(drained, 0);
	}
	xtal_queue_destroy(&q);
	xtal_segment_unregister(&aseg);
	xtal_segment_unregister(&bseg);
	assert_int_equal(xtal_shared_cq_destroy(&qa.cq, false), 0);
	assert_int_equal(xtal_context_close(&a), 0);
	assert_int_equal(xtal_context_close(&b), 0);
}

static int run(const char *path)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drains_come_from_any_thread_and_leave),
		cmocka_unit_test(a_link_at_rest_is_not_looked_at),
	};

	printf("over %s\n", path);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	static const char *const paths[] = { "ring", "tcp" };
	int failed = 0;

	for (unsigned i = 0; i < 2; i++) {
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
