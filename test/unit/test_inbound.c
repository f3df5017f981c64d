/* SPDX-License-Identifier: MIT */
/* ctest: timeout=60 */
/*
 * Messages that are half received: what a reset of the receive queue, buffers that go away, many at
 * a time, and a source that is withdrawn do to them. Within one context.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/channel.h"
#include "core/context_impl.h"
#include "core/inbound.h"
#include "core/queue.h"
#include "core/receive_impl.h"
#include "core/registry.h"
#include "core/segment.h"
#include "core/shared_cq.h"
#include "lib/child.h"
#include "lib/proc.h"
#include "core/log.h"
#include "xtal.h"

#define ID    0x30001u
#define DEPTH 64u
#define KIB   1024u

static uint8_t source[512 * KIB], sink[512 * KIB];

struct world {
	struct xtal_context *ctx;
	struct xtal_shared_cq *cq;
	struct xtal_receive_queue *rq;
	struct xtal_endpoint *ep;
};

static int setup(void **state)
{
	static struct world w;
	struct xtal_shared_cq_attr ca = { .owner = &w };
	struct xtal_receive_queue_attr ra = { .depth = DEPTH, .max_sges = 4, .id = 1 };
	struct xtal_endpoint_attr ea = { .id = ID, .owner = &w };

	memset(&w, 0, sizeof(w));
	if (xtal_context_open(xtal_device_at(0), &w.ctx) ||
	    xtal_shared_cq_create(w.ctx, &ca, &w.cq) ||
	    xtal_receive_queue_create(w.ctx, &ra, &w.rq))
		return -1;
	ea.rq = w.rq;
	ea.cq = w.cq;
	*state = &w;
	memset(sink, 0, sizeof(sink));
	return xtal_endpoint_create(w.ctx, &ea, &w.ep);
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->ep)
		xtal_endpoint_destroy(&w->ep);
	return xtal_receive_queue_destroy(&w->rq) || xtal_shared_cq_destroy(&w->cq, false) ||
	       xtal_context_close(&w->ctx);
}

static void post(struct world *w, void *at, uint64_t len, uint64_t user)
{
	struct xtal_sge sge = { (uintptr_t)at, len };

	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, user), 0);
}

static uint32_t begin(struct world *w, struct xtal_inbound *in, uint64_t len)
{
	struct xtal_envelope m = { .to = xtal_endpoint_address(ID, false),
				   .opcode = XTAL_OP_SEND,
				   .len = len };

	return xtal_inbound_begin(in, w->ctx, &m);
}

static uint32_t put(struct xtal_inbound *in, uint64_t offset, const char *text)
{
	static _Atomic uint64_t word;

	return xtal_inbound_put(in, &word, offset, (const uint8_t *)text, strlen(text));
}

static void set_state(struct world *w, enum xtal_receive_state state)
{
	assert_int_equal(xtal_receive_queue_set_state(w->rq, state, w->ep), 0);
}

static void assert_record(struct world *w, uint64_t user, uint32_t status)
{
	struct xtal_record r;

	assert_int_equal(xtal_shared_cq_poll(w->cq, 1, &r), 1);
	assert_int_equal(r.user, user);
	assert_int_equal(r.status, status);
}

static void assert_no_record(struct world *w)
{
	struct xtal_record r;

	assert_int_equal(xtal_shared_cq_poll(w->cq, 1, &r), 0);
}

/* The buffer was matched before the error: it is received. */
static void an_error_lets_what_has_begun_come_in(void **state)
{
	struct world *w = *state;
	struct xtal_inbound in = { 0 }, late = { 0 };

	post(w, sink, 8, 1);
	post(w, sink + 8, 8, 2);
	assert_int_equal(begin(w, &in, 8), XTAL_OK);
	set_state(w, XTAL_RECEIVE_ERROR);
	assert_record(w, 2, XTAL_FLUSHED);
	assert_int_equal(begin(w, &late, 8), XTAL_REMOTE_OPERATION);
	assert_int_equal(put(&in, 0, "received"), XTAL_OK);
	assert_int_equal(xtal_inbound_end(&in), XTAL_OK);
	assert_record(w, 1, XTAL_OK);
	assert_memory_equal(sink, "received", 8);
}

/* A message that breaks off in ERROR hands its buffer back. */
static void what_breaks_off_in_error_is_flushed(void **state)
{
	struct world *w = *state;
	struct xtal_inbound in = { 0 };

	post(w, sink, 8, 1);
	assert_int_equal(begin(w, &in, 8), XTAL_OK);
	set_state(w, XTAL_RECEIVE_ERROR);
	xtal_inbound_abandon(&in);
	assert_record(w, 1, XTAL_FLUSHED);
	assert_no_record(w);
}

/* A reset forgets a buffer that a message has taken: no byte lands there, it is not reported, and it
 * does not come back among the buffers of the next life. */
/* A jetty that has told its last record makes no other: the buffer is the receive queue's. */
static void what_a_held_endpoint_gives_back_is_not_its_own(void **state)
{
	struct world *w = *state;
	struct xtal_endpoint_attr ea = { .id = ID + 1, .jetty = true, .rq = w->rq, .cq = w->cq };
	struct xtal_envelope m = { .to = xtal_endpoint_address(ID + 1, true),
				   .opcode = XTAL_OP_SEND,
				   .len = 8 };
	struct xtal_inbound in = { 0 };
	struct xtal_endpoint *jetty;
	struct xtal_record r;

	assert_int_equal(xtal_endpoint_create(w->ctx, &ea, &jetty), 0);
	for (unsigned broken = 0; broken < 2; broken++) {
		post(w, sink, 64, 7);
		assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_OK);
		if (broken)
			set_state(w, XTAL_RECEIVE_ERROR);
		xtal_endpoint_hold(jetty, true);
		assert_int_equal(xtal_inbound_end(&in), XTAL_NOT_READY);
		if (!broken) {
			assert_int_equal(xtal_receive_queue_posted(w->rq), 1);
			xtal_endpoint_hold(jetty, false);
			assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_OK);
			assert_int_equal(xtal_inbound_end(&in), XTAL_OK);
			assert_record(w, 7, XTAL_OK);
			continue;
		}
		assert_int_equal(xtal_shared_cq_poll(w->cq, 1, &r), 1);
		assert_int_equal(r.status, XTAL_FLUSHED);
		assert_int_equal(r.user, 7);
		assert_int_equal(r.local_id, ID);
		assert_int_equal(r.flags & XTAL_RECORD_JETTY, 0);
	}
	assert_no_record(w);
	xtal_endpoint_destroy(&jetty);
}

/* Of a group: whoever is held takes nothing under the group's name either. */
static void a_twin_is_held_with_its_endpoint(void **state)
{
	struct world *w = *state;
	struct xtal_endpoint_attr own = { .jetty = true, .rq = w->rq, .cq = w->cq };
	struct xtal_endpoint_attr shared = { .id = ID + 9,
					     .jetty = true,
					     .sharing = XTAL_ENDPOINT_IN_TURN,
					     .rq = w->rq,
					     .cq = w->cq };
	struct xtal_envelope m = { .to = xtal_endpoint_address(ID + 9, true),
				   .opcode = XTAL_OP_SEND,
				   .len = 8 };
	struct xtal_endpoint *jetty[2], *member[2];
	struct xtal_inbound in = { 0 };
	struct xtal_record r;

	for (unsigned i = 0; i < 2; i++) {
		own.id = ID + 1 + i;
		assert_int_equal(xtal_endpoint_create(w->ctx, &own, &jetty[i]), 0);
		if (i) /* before it has a twin */
			xtal_endpoint_hold(jetty[i], true);
		shared.record_id = own.id;
		shared.twin_of = jetty[i];
		assert_int_equal(xtal_endpoint_create(w->ctx, &shared, &member[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) { /* the other one takes all */
		post(w, sink, 64, i);
		assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_OK);
		assert_int_equal(xtal_inbound_end(&in), XTAL_OK);
		assert_int_equal(xtal_shared_cq_poll(w->cq, 1, &r), 1);
		assert_int_equal(r.local_id, ID + 1);
	}
	post(w, sink, 64, 9);
	assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_OK);
	xtal_endpoint_hold(jetty[0], true);
	assert_int_equal(xtal_inbound_end(&in), XTAL_NOT_READY);
	assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_NOT_READY);
	xtal_endpoint_hold(jetty[1], false);
	assert_int_equal(xtal_inbound_begin(&in, w->ctx, &m), XTAL_OK);
	assert_int_equal(xtal_inbound_end(&in), XTAL_OK);
	assert_record(w, 9, XTAL_OK);
	for (unsigned i = 0; i < 2; i++) {
		xtal_endpoint_destroy(&member[i]);
		xtal_endpoint_destroy(&jetty[i]);
	}
}

static void a_reset_ends_what_comes_in(void **state)
{
	struct world *w = *state;
	struct xtal_inbound put_on = { 0 }, ended = { 0 }, left = { 0 }, fresh = { 0 };

	for (unsigned i = 0; i < 3; i++)
		post(w, sink + 8 * i, 8, 1 + i);
	assert_int_equal(begin(w, &put_on, 8), XTAL_OK);
	assert_int_equal(begin(w, &ended, 0), XTAL_OK);
	assert_int_equal(begin(w, &left, 8), XTAL_OK);
	assert_int_equal(put(&put_on, 0, "half"), XTAL_OK);
	set_state(w, XTAL_RECEIVE_ERROR);
	set_state(w, XTAL_RECEIVE_RESET);
	set_state(w, XTAL_RECEIVE_READY);
	memset(sink, 0, 64);
	assert_int_equal(put(&put_on, 4, "half"), XTAL_REMOTE_OPERATION);
	assert_int_equal(xtal_inbound_end(&ended), XTAL_REMOTE_OPERATION);
	xtal_inbound_abandon(&left);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(sink[i], 0);
	assert_no_record(w);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 0);
	assert_int_equal(begin(w, &fresh, 8), XTAL_NOT_READY);
	/* All of its depth is there again, and it is used in order. */
	for (unsigned i = 0; i < DEPTH; i++)
		post(w, sink + 8 * i, 8, 100 + i);
	assert_int_equal(begin(w, &fresh, 8), XTAL_OK);
	assert_int_equal(put(&fresh, 0, "newdata!"), XTAL_OK);
	assert_int_equal(xtal_inbound_end(&fresh), XTAL_OK);
	assert_record(w, 100, XTAL_OK);
}

/* Posted in ERROR: flushed like those that were posted before, as many as the depth, unpolled. */
static void what_is_posted_in_error_is_flushed(void **state)
{
	struct world *w = *state;
	struct xtal_sge sge = { (uintptr_t)sink, 8 };

	post(w, sink, 8, 1);
	set_state(w, XTAL_RECEIVE_ERROR);
	post(w, sink, 8, 2);
	assert_record(w, 1, XTAL_FLUSHED);
	assert_record(w, 2, XTAL_FLUSHED);
	for (unsigned i = 0; i < DEPTH; i++)
		post(w, sink, 8, 100 + i);
	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, 0), -EAGAIN);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_record(w, 100 + i, XTAL_FLUSHED);
	assert_no_record(w);
	/* Nobody is there to be told. */
	xtal_endpoint_destroy(&w->ep);
	post(w, sink, 8, 3);
	assert_no_record(w);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_RESET, NULL), 0);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 0);
}

/* Reporting never needs memory that might not be there: each message has its place from its begin. */
static void messages_that_come_in_together_all_have_room(void **state)
{
	static struct xtal_inbound in[DEPTH];
	struct world *w = *state;

	memset(in, 0, sizeof(in));
	for (unsigned i = 0; i < DEPTH; i++) {
		post(w, sink + 8 * i, 8, i);
		assert_int_equal(begin(w, &in[i], 8), XTAL_OK);
		assert_true(w->ep->size - (w->ep->tail - w->ep->head) > i);
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		uint64_t size = w->ep->size;

		if (i % 3 == 0) {
			xtal_inbound_abandon(&in[i]);
			continue;
		}
		assert_int_equal(xtal_inbound_end(&in[i]), XTAL_OK);
		assert_int_equal(w->ep->size, size);
		assert_record(w, i, XTAL_OK);
	}
	assert_int_equal(w->ep->reserved, 0);
}

/* The program has unmapped a registered buffer, and polls: an error, not a signal. */
static void a_registered_buffer_may_be_gone(void **state)
{
	struct world *w = *state;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *gone =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xtal_segment_attr sa = { (uintptr_t)gone, page, .rights = XTAL_RIGHT_READ };
	struct xtal_segment *seg;
	struct xtal_inbound in = { 0 };

	assert_true(gone != MAP_FAILED);
	assert_int_equal(xtal_segment_register(w->ctx, &sa, &seg), 0);
	post(w, gone, page, 1);
	assert_int_equal(begin(w, &in, 8), XTAL_OK);
	munmap(gone, page);
	assert_int_equal(put(&in, 0, "received"), XTAL_REMOTE_OPERATION);
	assert_record(w, 1, XTAL_LOCAL_ACCESS);
	xtal_segment_unregister(&seg);
}

/* A message to there ends so, and lies there when that is well. */
static bool receives(struct world *w, void *at, const char *text, uint32_t status)
{
	struct xtal_sge sge = { (uintptr_t)at, strlen(text) };
	struct xtal_inbound in = { 0 };
	struct xtal_record r;

	if (xtal_receive_queue_post(w->rq, &sge, 1, 1) || begin(w, &in, sge.len) ||
	    put(&in, 0, text) != (status ? XTAL_REMOTE_OPERATION : XTAL_OK) ||
	    (!status && xtal_inbound_end(&in)))
		return false;
	return xtal_shared_cq_poll(w->cq, 1, &r) == 1 && r.status == status &&
	       (status || memcmp(at, text, sge.len) == 0);
}

/* In a context of its own the child may use what it has inherited. */
static void receive_in_child(void *arg)
{
	void *state;
	int err = setup(&state);

	EXPECT(!err && receives(state, arg, "in a child", XTAL_OK));
}

/* It is stored to without a system call, where it is mapped once more: that follows what happens to it. */
static void a_buffer_of_ours_may_be_gone(void **state)
{
	struct world *w = *state;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = xtal_alloc(4 * page);
	struct xtal_segment_attr sa = { (uintptr_t)memory + page, 2 * page,
					.rights = XTAL_RIGHT_READ };
	struct xtal_moving moving = { 0 };
	struct xtal_segment *seg;

	assert_non_null(memory);
	assert_int_equal(xtal_segment_register(w->ctx, &sa, &seg), 0);
	assert_true(receives(w, memory + page + 17, "received", XTAL_OK));
	assert_non_null(atomic_load(&seg->backing.object->alias));
	moving.object = seg->backing.object;
	assert_int_equal(xtal_registry_move(&w->ctx->registry, &moving, true, NULL), 1);
	if (!xtal_object_replace(seg->backing.object)) {
		assert_memory_equal(memory + page + 17, "received", 8);
		assert_non_null(atomic_load(&seg->backing.object->alias));
	}
	assert_int_equal(xtal_registry_move(&w->ctx->registry, &moving, false, NULL), 1);
	assert_true(receives(w, memory + 2 * page, "replaced", XTAL_OK));
	if (!emulated()) /* qemu-user starts no thread in a child of several */
		assert_int_equal(child_run(receive_in_child, memory + page), 0);
	xtal_free(memory);
	assert_true(receives(w, memory + page, "is gone", XTAL_LOCAL_ACCESS));
	xtal_segment_unregister(&seg);
}

/* A program that closes too early hears what is left, and may go on. */
static void a_context_in_use_is_not_closed(void **state)
{
	struct world *w = *state;
	struct xtal_channel *channel;

	assert_int_equal(xtal_channel_create(w->ctx, &channel), 0);
	assert_int_equal(xtal_context_close(&w->ctx), -EBUSY);
	assert_non_null(strstr(xtal_explanation(), "1 endpoints, 1 receive queues, 1 completion "
						   "queues, 1 event channels still exist"));
	xtal_endpoint_destroy(&w->ep);
	assert_int_equal(xtal_context_close(&w->ctx), -EBUSY);
	assert_int_equal(xtal_receive_queue_destroy(&w->rq), 0);
	assert_int_equal(xtal_context_close(&w->ctx), -EBUSY);
	assert_int_equal(xtal_shared_cq_destroy(&w->cq, false), 0);
	assert_int_equal(xtal_context_close(&w->ctx), -EBUSY);
	assert_non_null(strstr(xtal_explanation(), ": 1 event channels still exist"));
	assert_int_equal(xtal_channel_destroy(&channel), 0);
	assert_int_equal(xtal_context_close(&w->ctx), 0);
	assert_int_equal(setup(state), 0);
}

/* ---- A message to oneself reads its source only while that is registered ---- */

struct scribbler {
	struct world *w;
	struct xtal_queue *q;
	atomic_bool stop;
};

static void *send_on(void *arg)
{
	struct scribbler *s = arg;
	struct xtal_op op = { .opcode = XTAL_OP_SEND,
			      .local = (uintptr_t)source,
			      .len = sizeof(source),
			      .notify = { .addr = xtal_endpoint_address(ID, false),
					  .eid = xtal_context_device(s->w->ctx)->eid,
					  .tid = xtal_context_tid(s->w->ctx) } };
	struct xtal_record r;

	while (!atomic_load(&s->stop)) {
		xtal_queue_submit(s->q, &op);
		xtal_shared_cq_poll(s->w->cq, 1, &r);
	}
	return NULL;
}

static void one_withdrawal(struct world *w)
{
	struct xtal_segment_attr sa = { (uintptr_t)source, sizeof(source),
					.rights = XTAL_RIGHT_READ };
	struct xtal_queue_attr qa = { .depth = 4, .cq = w->cq, .id = 9 };
	struct scribbler s = { .w = w };
	struct xtal_segment *seg;
	pthread_t thread;

	memset(source, 1, sizeof(source));
	memset(sink, 0, sizeof(sink));
	assert_int_equal(xtal_segment_register(w->ctx, &sa, &seg), 0);
	while (xtal_receive_queue_posted(w->rq) < 8)
		post(w, sink, sizeof(sink), 0);
	assert_int_equal(xtal_queue_create(w->ctx, &qa, &s.q), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_on, &s), 0);
	while (*(volatile uint8_t *)sink == 0)
		;
	usleep((unsigned)random() % 200);
	xtal_segment_unregister(&seg);
	memset(source, 0xff, sizeof(source)); /* the program's again */
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	xtal_queue_destroy(&s.q);
	assert_null(memchr(sink, 0xff, sizeof(sink)));
}

static void a_source_that_was_withdrawn_is_not_read(void **state)
{
	for (unsigned i = 0; i < proc_rounds(40, 2000); i++)
		one_withdrawal(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(an_error_lets_what_has_begun_come_in),
		TEST(what_breaks_off_in_error_is_flushed),
		TEST(what_a_held_endpoint_gives_back_is_not_its_own),
		TEST(a_twin_is_held_with_its_endpoint),
		TEST(a_reset_ends_what_comes_in),
		TEST(what_is_posted_in_error_is_flushed),
		TEST(messages_that_come_in_together_all_have_room),
		TEST(a_registered_buffer_may_be_gone),
		TEST(a_buffer_of_ours_may_be_gone),
		TEST(a_context_in_use_is_not_closed),
		TEST(a_source_that_was_withdrawn_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
