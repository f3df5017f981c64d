/* SPDX-License-Identifier: MIT */
/* Domains: which pipelines queues get; and asynchronous events, which no CDMA error raises. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/config.h"
#include "core/context_impl.h"
#include "core/domain.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/thread.h"

static int setup(void **state)
{
	struct xtal_context *ctx;

	setenv("XTAL_PIPELINES", "2", 1);
	if (xtal_context_open(xtal_device_at(0), &ctx))
		return -1;
	*state = ctx;
	return 0;
}

static int teardown(void **state)
{
	struct xtal_context *ctx = *state;

	return xtal_context_close(&ctx);
}

static struct xtal_queue *queue_in(struct xtal_context *ctx, const struct xtal_domain *domain)
{
	struct xtal_queue_attr attr = { .depth = 4, .domain = domain };
	struct xtal_queue *q = NULL;

	assert_int_equal(xtal_queue_create(ctx, &attr, &q), 0);
	return q;
}

static void a_new_domain_has_all_pipelines(void **state)
{
	struct xtal_domain *d;

	assert_int_equal(xtal_domain_create(*state, &d), 0);
	assert_int_equal(xtal_domain_mask(d), 3);
	xtal_domain_free(&d);
	assert_null(d);
}

static void a_mask_beyond_the_pipelines_is_refused(void **state)
{
	struct xtal_domain *d;

	assert_int_equal(xtal_domain_create(*state, &d), 0);
	assert_int_equal(xtal_domain_set_mask(d, 4), -EINVAL);
	assert_int_equal(xtal_domain_mask(d), 3);
	assert_int_equal(xtal_domain_set_mask(d, 2), 0);
	assert_int_equal(xtal_domain_mask(d), 2);
	xtal_domain_free(&d);
}

static void a_copy_has_the_mask_of_its_moment(void **state)
{
	struct xtal_domain *d, *copy;

	assert_int_equal(xtal_domain_create(*state, &d), 0);
	assert_int_equal(xtal_domain_set_mask(d, 1), 0);
	assert_int_equal(xtal_domain_copy(d, &copy), 0);
	assert_int_equal(xtal_domain_set_mask(d, 2), 0);
	assert_int_equal(xtal_domain_mask(copy), 1);
	xtal_domain_free(&copy);
	xtal_domain_free(&d);
}

static void queues_alternate_within_the_mask(void **state)
{
	struct xtal_queue *q[4];
	struct xtal_domain *d;

	for (int i = 0; i < 4; i++)
		q[i] = queue_in(*state, NULL);
	assert_int_equal(q[0]->pipeline ^ 1, q[1]->pipeline);
	assert_int_equal(q[0]->pipeline, q[2]->pipeline);
	assert_int_equal(q[1]->pipeline, q[3]->pipeline);
	for (int i = 0; i < 4; i++)
		xtal_queue_destroy(&q[i]);
	assert_int_equal(xtal_domain_create(*state, &d), 0);
	assert_int_equal(xtal_domain_set_mask(d, 2), 0);
	for (int i = 0; i < 4; i++) {
		q[i] = queue_in(*state, d);
		assert_int_equal(q[i]->pipeline, 1);
	}
	xtal_domain_free(&d); /* the queues do not mind */
	for (int i = 0; i < 4; i++)
		xtal_queue_destroy(&q[i]);
}

static void an_empty_mask_makes_no_queue(void **state)
{
	struct xtal_queue_attr attr = { .depth = 4 };
	struct xtal_queue *q = NULL;
	struct xtal_domain *d;

	assert_int_equal(xtal_domain_create(*state, &d), 0);
	assert_int_equal(xtal_domain_set_mask(d, 0), 0);
	attr.domain = d;
	assert_int_equal(xtal_queue_create(*state, &attr, &q), -EINVAL);
	assert_null(q);
	xtal_domain_free(&d);
}

static void async_events_come_in_order_and_make_the_fd_readable(void **state)
{
	struct xtal_context *ctx = *state;
	struct xtal_async_event e;
	struct xtal_async_source seven, eight;
	int fd = xtal_context_async_fd(ctx);

	xtal_async_source_init(&seven);
	xtal_async_source_init(&eight);
	assert_int_equal(xtal_os_wait_readable(fd, 0), 0);
	xtal_context_raise(ctx, &seven, XTAL_ASYNC_QUEUE_ERROR, 7);
	xtal_context_raise(ctx, &eight, XTAL_ASYNC_CQ_ERROR, 8);
	xtal_context_raise(ctx, &seven, XTAL_ASYNC_QUEUE_ERROR, 7); /* waits already */
	assert_int_equal(xtal_os_wait_readable(fd, 0), 1);
	assert_int_equal(xtal_context_wait_async(ctx, 0, &e, NULL, NULL), 1);
	assert_int_equal(e.type, XTAL_ASYNC_QUEUE_ERROR);
	assert_int_equal(e.object_id, 7);
	assert_int_equal(xtal_os_wait_readable(fd, 0), 1);
	assert_int_equal(xtal_context_wait_async(ctx, 1000, &e, NULL, NULL), 1);
	assert_int_equal(e.object_id, 8);
	assert_int_equal(xtal_os_wait_readable(fd, 0), 0);
	assert_int_equal(xtal_context_wait_async(ctx, 0, &e, NULL, NULL), 0);
}

static void waiting_for_an_async_event_ends_in_time(void **state)
{
	struct xtal_async_event e;
	uint64_t begun = xtal_os_now(), took;

	assert_int_equal(xtal_context_wait_async(*state, 30, &e, NULL, NULL), 0);
	took = xtal_os_now() - begun;
	assert_true(took >= 30000000 && took < 1000000000);
}

static void any_number_of_events_may_wait(void **state)
{
	static struct xtal_async_source sources[1000];
	struct xtal_context *ctx = *state;
	struct xtal_async_event e;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		xtal_async_source_init(&sources[i]);
		xtal_context_raise(ctx, &sources[i], XTAL_ASYNC_CQ_ERROR, i);
	}
	while (xtal_context_wait_async(ctx, 0, &e, NULL, NULL) == 1)
		assert_int_equal(e.object_id, n++);
	assert_int_equal(n, 1000);
}

static void what_goes_takes_its_event_with_it(void **state)
{
	struct xtal_context *ctx = *state;
	struct xtal_async_source gone, stays;
	struct xtal_async_event e;

	xtal_async_source_init(&gone);
	xtal_async_source_init(&stays);
	xtal_context_raise(ctx, &gone, XTAL_ASYNC_QUEUE_ERROR, 1);
	xtal_context_raise(ctx, &stays, XTAL_ASYNC_QUEUE_ERROR, 2);
	xtal_context_forget(ctx, &gone);
	assert_int_equal(xtal_context_wait_async(ctx, 0, &e, NULL, NULL), 1);
	assert_int_equal(e.object_id, 2);
	xtal_context_raise(ctx, &stays, XTAL_ASYNC_QUEUE_ERROR, 2);
	xtal_context_forget(ctx, &stays);
	xtal_context_forget(ctx, &gone);
	assert_int_equal(xtal_os_wait_readable(xtal_context_async_fd(ctx), 0), 0);
	assert_int_equal(xtal_context_wait_async(ctx, 0, &e, NULL, NULL), 0);
}

static void waits_are_ended(void **state)
{
	struct xtal_context *ctx = *state;
	struct xtal_async_event e;

	xtal_context_end_waits(ctx, true);
	assert_int_equal(xtal_context_wait_async(ctx, -1, &e, NULL, NULL), -ESHUTDOWN);
	assert_int_equal(xtal_context_wait_async(ctx, -1, &e, NULL, NULL), -ESHUTDOWN);
	xtal_context_end_waits(ctx, false);
	assert_int_equal(xtal_context_wait_async(ctx, 10, &e, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_domain_has_all_pipelines),
		cmocka_unit_test(a_mask_beyond_the_pipelines_is_refused),
		cmocka_unit_test(a_copy_has_the_mask_of_its_moment),
		cmocka_unit_test(queues_alternate_within_the_mask),
		cmocka_unit_test(an_empty_mask_makes_no_queue),
		cmocka_unit_test(async_events_come_in_order_and_make_the_fd_readable),
		cmocka_unit_test(waiting_for_an_async_event_ends_in_time),
		cmocka_unit_test(any_number_of_events_may_wait),
		cmocka_unit_test(what_goes_takes_its_event_with_it),
		cmocka_unit_test(waits_are_ended),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
