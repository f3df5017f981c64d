/* SPDX-License-Identifier: MIT */
/* ctest: timeout=120 */
/*
 * Two-sided messages between two contexts of this process, once over each path: the program starts
 * itself with XTAL_PATHS set.
 */
#include "send_world.h"

static void a_message_arrives(void **state)
{
	struct world *w = *state;

	receive(w, 64, 100, 1000);
	send(w, 0, 40);
	received(w, 1000, 64, 40);
	sent(w, XTAL_OK);
	assert_int_equal(sink[64 + 40], 0);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 0);
}

static void immediate_values_and_ids_arrive(void **state)
{
	struct world *w = *state;
	static const enum xtal_opcode kinds[] = { XTAL_OP_SEND_IMM, XTAL_OP_SEND_INVALIDATE };

	for (unsigned i = 0; i < 2; i++) {
		struct xtal_op op = message(w, kinds[i], 8, 8);
		struct xtal_record r;

		op.flags = XTAL_OP_SOLICITED;
		receive(w, 0, 8, 1);
		assert_int_equal(xtal_queue_submit(w->q, &op), 0);
		r = next(w, w->bcq);
		assert_int_equal(r.opcode, kinds[i]);
		assert_int_equal(r.imm, op.notify_data);
		assert_true(r.flags & XTAL_RECORD_SOLICITED);
		sent(w, XTAL_OK);
	}
}

static void empty_messages_take_a_buffer_too(void **state)
{
	struct world *w = *state;

	assert_int_equal(xtal_receive_queue_post(w->rq, NULL, 0, 1000), 0);
	send(w, 0, 0);
	received(w, 1000, 0, 0);
	sent(w, XTAL_OK);
}

static void long_and_short_ones_come_in_order(void **state)
{
	static const uint32_t len[] = { 1,     8,      64,     4096, 65536, 65537,
					70000, 200000, 400000, 3,    8193,  131072 };
	struct world *w = *state;
	const unsigned count = sizeof(len) / sizeof(len[0]);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < count; i++)
			receive(w, 0, BYTES, 1000 + i);
		for (unsigned i = 0; i < count; i++)
			send(w, i, len[i]);
		for (unsigned i = 0; i < count; i++) {
			struct xtal_record r = next(w, w->bcq);

			assert_int_equal(r.status, XTAL_OK);
			assert_int_equal(r.user, 1000 + i);
			assert_int_equal(r.len, len[i]);
		}
		/* All went to one place; the last one is whole. */
		assert_memory_equal(sink, source + count - 1, len[count - 1]);
		for (unsigned i = 0; i < count; i++)
			sent(w, XTAL_OK);
	}
}

static void pieces_on_both_sides_are_put_together(void **state)
{
	struct world *w = *state;
	struct xtal_sge from[3] = { { (uintptr_t)source, 10 },
				    { (uintptr_t)source + 10, 0 },
				    { (uintptr_t)source + 10, 23 } };
	struct xtal_sge to[4] = { { (uintptr_t)sink, 7 },
				  { (uintptr_t)sink + 100, 0 },
				  { (uintptr_t)sink + 200, 20 },
				  { (uintptr_t)sink + 300, 100 } };
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 33);

	assert_int_equal(xtal_receive_queue_post(w->rq, to, 5, 0), -EINVAL);
	assert_int_equal(xtal_receive_queue_post(w->rq, to, 4, 4), 0);
	op.flags = XTAL_OP_SGES;
	op.local = (uintptr_t)from;
	op.sges = 3;
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	assert_int_equal(next(w, w->bcq).len, 33);
	assert_memory_equal(sink, source, 7);
	assert_memory_equal(sink + 200, source + 7, 20);
	assert_memory_equal(sink + 300, source + 27, 6);
	assert_int_equal(sink[306], 0);
	sent(w, XTAL_OK);
}

static void inline_data_is_the_callers_again(void **state)
{
	struct world *w = *state;
	uint8_t mine[32];
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, sizeof(mine));

	memset(mine, 7, sizeof(mine));
	op.local = (uintptr_t)mine;
	op.flags = XTAL_OP_INLINE;
	assert_int_equal(xtal_queue_submit(w->q, &op), 0); /* held: nothing is posted yet */
	memset(mine, 9, sizeof(mine));
	receive(w, 0, 32, 1);
	assert_int_equal(next(w, w->bcq).len, 32);
	memset(mine, 7, sizeof(mine));
	assert_memory_equal(sink, mine, sizeof(mine));
	sent(w, XTAL_OK);
}

static void memory_need_not_be_registered(void **state)
{
	struct world *w = *state;
	uint8_t *from = malloc(100000), *to = calloc(1, 100000);
	struct xtal_sge sge = { (uintptr_t)to, 100000 };
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 100000);

	memcpy(from, source, 100000);
	op.local = (uintptr_t)from;
	op.flags = XTAL_OP_ANY_LOCAL;
	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, 1), 0);
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	assert_int_equal(next(w, w->bcq).len, 100000);
	assert_memory_equal(from, to, 100000);
	sent(w, XTAL_OK);
	free(from);
	free(to);
}

static void what_finds_no_buffer_is_held_back(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 20; i++)
		send(w, i, 16);
	assert_nothing(w, w->bcq);
	assert_nothing(w, w->acq);
	for (unsigned i = 0; i < 20; i++) {
		receive(w, 16 * i, 16, 1000 + i);
		if (i % 3 == 0)
			usleep(300);
	}
	for (unsigned i = 0; i < 20; i++)
		received(w, 1000 + i, 16 * i, 16);
	for (unsigned i = 0; i < 20; i++)
		sent(w, XTAL_OK);
}

static void buffers_that_come_one_by_one_keep_the_order(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 30; i++)
		send(w, i, 1 + i * 5000);
	for (unsigned i = 0; i < 30; i++) {
		receive(w, 0, BYTES, 1000 + i);
		received(w, 1000 + i, 0, 1 + i * 5000);
	}
	for (unsigned i = 0; i < 30; i++)
		sent(w, XTAL_OK);
}

static void what_follows_a_held_one_waits_for_it(void **state)
{
	struct world *w = *state;
	struct xtal_op write = message(w, XTAL_OP_WRITE, 0, 8);

	write.remote = (struct xtal_remote){ .addr = (uintptr_t)sink + 4096,
					     .eid = write.notify.eid,
					     .tid = write.notify.tid };
	send(w, 0, 8);
	assert_int_equal(xtal_queue_submit(w->q, &write), 0);
	assert_nothing(w, w->acq);
	assert_int_equal(sink[4096 + 1], 0);
	receive(w, 0, 8, 1000);
	received(w, 1000, 0, 8);
	sent(w, XTAL_OK);
	sent(w, XTAL_OK);
	assert_memory_equal(sink + 4096, source, 8);
}

static void tries_come_to_an_end(void **state)
{
	struct world *w = *state;
	struct xtal_queue_attr attr = queue_attr(w);
	struct xtal_async_event ev;

	attr.rnr_retry = 2;
	attr.rnr_us = 200;
	new_queue(w, attr);
	send(w, 0, 8);
	send(w, 8, 8);
	assert_int_equal(next(w, w->acq).status, XTAL_NOT_READY);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSHED);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_context_wait_async(w->a, 0, &ev, NULL, NULL), 1);
	assert_int_equal(ev.object_id, SENDER_ID);
	receive(w, 0, 8, 1);
	assert_nothing(w, w->bcq);
}

static void one_that_is_too_long_fails_on_both_sides(void **state)
{
	struct world *w = *state;
	struct xtal_record r;

	receive(w, 0, 100, 5);
	send(w, 0, 100001);
	r = next(w, w->bcq);
	assert_int_equal(r.status, XTAL_LOCAL_LENGTH);
	assert_int_equal(r.user, 5);
	assert_int_equal(r.len, 0);
	assert_int_equal(next(w, w->acq).status, XTAL_REMOTE_UNSUPPORTED);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	assert_int_equal(sink[0], 0);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 0);
}

static void the_endpoint_and_its_token_must_be_right(void **state)
{
	struct world *w = *state;

	receive(w, 0, 8, 1);
	for (unsigned i = 0; i < 4; i++) {
		struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);

		new_queue(w, queue_attr(w));
		switch (i) {
		case 0:
			op.notify.token++;
			break;
		case 1:
			op.notify.token_valid = false;
			break;
		case 2:
			op.notify.addr++;
			break;
		case 3:
			op.notify.addr = xtal_endpoint_address(JETTY_ID, false);
			break;
		}
		assert_int_equal(xtal_queue_submit(w->q, &op), 0);
		sent(w, XTAL_REMOTE_ACCESS);
		assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	}
	assert_int_equal(xtal_receive_queue_posted(w->rq), 1);
	assert_nothing(w, w->bcq);
}

static void write_with_immediate_writes_and_tells(void **state)
{
	static const uint32_t len[] = { 0, 8, 300000 };
	struct world *w = *state;

	for (unsigned i = 0; i < 3; i++) {
		struct xtal_op op = message(w, XTAL_OP_WRITE_IMM, 0, len[i]);
		struct xtal_record r;

		op.remote = (struct xtal_remote){ .addr = (uintptr_t)sink + 1024,
						  .eid = op.notify.eid,
						  .tid = op.notify.tid };
		assert_int_equal(xtal_queue_submit(w->q, &op), 0);
		assert_nothing(w, w->acq);
		receive(w, 0, 8, 3);
		r = next(w, w->bcq);
		assert_int_equal(r.status, XTAL_OK);
		assert_int_equal(r.opcode, XTAL_OP_WRITE_IMM);
		assert_int_equal(r.len, len[i]);
		assert_int_equal(r.imm, op.notify_data);
		if (len[i])
			assert_memory_equal(sink + 1024, source, len[i]);
		assert_int_equal(sink[0], 0);
		r = next(w, w->acq);
		assert_int_equal(r.status, XTAL_OK);
		assert_int_equal(r.opcode, XTAL_OP_WRITE_IMM);
		assert_int_equal(r.len, len[i]);
	}
}

static void a_shared_receive_queue_serves_many_endpoints(void **state)
{
	struct world *w = *state;
	struct xtal_endpoint *other;
	struct xtal_endpoint_attr ea = { .id = JETTY_ID, .rq = w->rq, .cq = w->bcq, .owner = w };

	assert_int_equal(xtal_endpoint_create(w->b, &ea, &other), 0); /* not a jetty */
	ea.jetty = true;
	assert_int_equal(xtal_endpoint_create(w->b, &ea, &other), -EEXIST);
	for (unsigned i = 0; i < 10; i++)
		receive(w, i * 8, 8, 1000 + i);
	for (unsigned i = 0; i < 10; i++) {
		struct xtal_op op = message(w, XTAL_OP_SEND, i, 8);

		op.notify.addr = xtal_endpoint_address(JETTY_ID, i & 1);
		op.notify.token_valid = i & 1;
		assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	}
	for (unsigned i = 0; i < 10; i++)
		sent(w, XTAL_OK);
	for (unsigned i = 0, users = 0; i < 10; i++) {
		struct xtal_record r = next(w, w->bcq);

		assert_int_equal(!!(r.flags & XTAL_RECORD_JETTY), r.owner == &owner_b);
		assert_int_equal(r.user & 1, r.owner == &owner_b);
		users |= 1u << (r.user - 1000);
		if (i == 9)
			assert_int_equal(users, 0x3ff);
	}
	assert_int_equal(xtal_receive_queue_destroy(&w->rq), -EBUSY);
	xtal_endpoint_destroy(&other);
}

static void a_full_receive_queue_says_so(void **state)
{
	struct world *w = *state;
	struct xtal_sge sge = { (uintptr_t)sink, 8 };
	struct xtal_async_event ev;

	for (unsigned i = 0; i < 32; i++)
		receive(w, 0, 8, 1000 + i);
	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, 0), -EAGAIN);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 32);
	xtal_receive_queue_set_limit(w->rq, 31);
	send(w, 0, 8);
	received(w, 1000, 0, 8);
	assert_int_equal(xtal_context_wait_async(w->b, 0, &ev, NULL, NULL), 0);
	send(w, 1, 8);
	received(w, 1001, 0, 8);
	assert_int_equal(xtal_context_wait_async(w->b, 1000, &ev, NULL, NULL), 1);
	assert_int_equal(ev.type, XTAL_ASYNC_RECEIVE_LIMIT);
	assert_int_equal(ev.object_id, 77);
	sent(w, XTAL_OK);
	sent(w, XTAL_OK);
}

static void an_error_flushes_the_buffers(void **state)
{
	struct world *w = *state;
	struct xtal_sge sge = { (uintptr_t)sink, 8 };

	receive(w, 0, 8, 1);
	receive(w, 0, 8, 2);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_RESET, NULL), -EPERM);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_ERROR, w->ep), 0);
	for (uint64_t i = 1; i < 3; i++) {
		struct xtal_record r = next(w, w->bcq);

		assert_int_equal(r.status, XTAL_FLUSHED);
		assert_int_equal(r.user, i);
	}
	send(w, 0, 8);
	sent(w, XTAL_REMOTE_OPERATION);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_READY, NULL), -EPERM);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_RESET, NULL), 0);
	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, 0), -ENOTCONN);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_READY, NULL), 0);
	new_queue(w, queue_attr(w));
	receive(w, 0, 8, 1000);
	send(w, 0, 8);
	received(w, 1000, 0, 8);
	sent(w, XTAL_OK);
}

static void flush_done_follows_what_was_received(void **state)
{
	struct world *w = *state;
	struct xtal_queue_attr attr = {
		.depth = 4, .cq = w->bcq, .owner = &owner_b, .id = JETTY_ID, .endpoint = w->ep
	};
	struct xtal_queue *mine;

	assert_int_equal(xtal_queue_create(w->b, &attr, &mine), 0);
	for (unsigned i = 0; i < 5; i++) {
		receive(w, 8 * i, 8, 1000 + i);
		send(w, i, 8);
	}
	for (unsigned i = 0; i < 5; i++)
		sent(w, XTAL_OK);
	assert_int_equal(xtal_queue_set_state(mine, XTAL_QUEUE_ERROR), 0);
	for (unsigned i = 0; i < 5; i++)
		received(w, 1000 + i, 8 * i, 8);
	assert_int_equal(next(w, w->bcq).status, XTAL_FLUSH_DONE);
	xtal_queue_destroy(&mine);
}

static void an_event_tells_of_a_receive(void **state)
{
	struct world *w = *state;
	void *owner;

	for (unsigned i = 0; i < 10; i++) {
		bool solicited = i & 1;
		struct xtal_op op = message(w, XTAL_OP_SEND, i, 8);

		receive(w, 0, 8, 1000 + i);
		assert_int_equal(xtal_shared_cq_arm(w->bcq, solicited), 0);
		if (solicited) { /* one that is not does not count */
			receive(w, 0, 8, 1000 + i);
			send(w, i, 8);
			sent(w, XTAL_OK);
			assert_int_equal(xtal_channel_wait(w->channel, 1, 0, &owner, NULL, NULL),
					 0);
			op.flags = XTAL_OP_SOLICITED;
		}
		assert_int_equal(xtal_queue_submit(w->q, &op), 0);
		assert_int_equal(xtal_channel_wait(w->channel, 1, 5000, &owner, NULL, NULL), 1);
		assert_ptr_equal(owner, w);
		xtal_shared_cq_ack(w->bcq, 1);
		received(w, 1000 + i, 0, 8);
		if (solicited)
			received(w, 1000 + i, 0, 8);
		sent(w, XTAL_OK);
	}
}

static void datagrams_are_dropped(void **state)
{
	struct world *w = *state;
	struct xtal_queue_attr attr = queue_attr(w);
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);

	attr.datagram = true;
	new_queue(w, attr);
	send(w, 0, 8);
	sent(w, XTAL_OK);
	op.notify.addr++;
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	sent(w, XTAL_OK);
	receive(w, 0, 8, 1001);
	send(w, 1, 8);
	received(w, 1001, 0, 8);
	sent(w, XTAL_OK);
}

/* Nobody sends the first one again, for which the others would have to wait. */
static void a_dropped_datagram_drops_no_other(void **state)
{
	struct world *w = *state;
	struct xtal_receive_queue_attr ra = { .depth = 4, .max_sges = 1, .id = 78 };
	struct xtal_endpoint_attr ea = { .id = 7, .jetty = true, .cq = w->bcq, .owner = &owner_b };
	struct xtal_queue_attr attr = queue_attr(w);
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);
	struct xtal_receive_queue *empty;
	struct xtal_endpoint *ep;

	assert_int_equal(xtal_receive_queue_create(w->b, &ra, &empty), 0);
	ea.rq = empty;
	assert_int_equal(xtal_endpoint_create(w->b, &ea, &ep), 0);
	attr.datagram = true;
	new_queue(w, attr);
	op.notify.addr = xtal_endpoint_address(7, true);
	for (unsigned i = 0; i < 20; i++)
		receive(w, i * 8, 8, 1000 + i);
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	for (unsigned i = 0; i < 20; i++)
		send(w, i, 8);
	for (unsigned i = 0; i < 21; i++)
		sent(w, XTAL_OK);
	for (unsigned i = 0; i < 20; i++)
		received(w, 1000 + i, i * 8, 8);
	xtal_endpoint_destroy(&ep);
	assert_int_equal(xtal_receive_queue_destroy(&empty), 0);
}

static void a_gone_endpoint_receives_nothing(void **state)
{
	struct world *w = *state;

	receive(w, 0, 8, 1);
	send(w, 0, 8);
	sent(w, XTAL_OK);
	xtal_endpoint_destroy(&w->ep); /* with what was not polled */
	assert_nothing(w, w->bcq);
	receive(w, 0, 8, 1);
	send(w, 0, 8);
	sent(w, XTAL_REMOTE_ACCESS);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
}

static void an_endpoint_that_is_held_keeps_messages_at_their_sender(void **state)
{
	struct world *w = *state;

	receive(w, 0, 8, 1000);
	xtal_endpoint_hold(w->ep, true);
	send(w, 0, 8);
	assert_nothing(w, w->acq);
	assert_nothing(w, w->bcq);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 1);
	xtal_endpoint_hold(w->ep, false);
	sent(w, XTAL_OK);
	received(w, 1000, 0, 8);
	/* Unless its receive queue takes no more. */
	xtal_endpoint_hold(w->ep, true);
	assert_int_equal(xtal_receive_queue_set_state(w->rq, XTAL_RECEIVE_ERROR, NULL), 0);
	send(w, 0, 8);
	sent(w, XTAL_REMOTE_OPERATION);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
}

static void memory_that_is_not_there_is_an_error_of_the_receiver(void **state)
{
	struct world *w = *state;
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xtal_sge sge = { (uintptr_t)gone, 4096 };

	assert_int_equal(xtal_receive_queue_post(w->rq, &sge, 1, 6), 0);
	send(w, 0, 8);
	assert_int_equal(next(w, w->bcq).status, XTAL_LOCAL_ACCESS);
	sent(w, XTAL_REMOTE_OPERATION);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	munmap(gone, 4096);
}

static void memory_that_is_not_there_is_an_error_of_the_sender(void **state)
{
	struct world *w = *state;
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xtal_op op = message(w, XTAL_OP_SEND, 0, 8);

	op.local = (uintptr_t)gone;
	op.flags = XTAL_OP_ANY_LOCAL;
	receive(w, 0, 8, 1);
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	sent(w, XTAL_LOCAL_ACCESS);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	assert_int_equal(xtal_receive_queue_posted(w->rq), 1);
	munmap(gone, 4096);
}

static void destroying_ends_what_is_held(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 5; i++)
		send(w, i, 8);
	assert_nothing(w, w->acq);
	new_queue(w, queue_attr(w));
	receive(w, 0, 8, 1000);
	assert_nothing(w, w->bcq);
	send(w, 0, 8);
	received(w, 1000, 0, 8);
	sent(w, XTAL_OK);
}

static void a_bad_receive_queue_is_refused(void **state)
{
	struct world *w = *state;
	struct xtal_receive_queue_attr attr = { .depth = 0, .max_sges = 1 };
	struct xtal_receive_queue *rq;

	assert_int_equal(xtal_receive_queue_create(w->b, &attr, &rq), -EINVAL);
	attr.depth = 1;
	attr.max_sges = XTAL_MAX_RECEIVE_SGES + 1;
	assert_int_equal(xtal_receive_queue_create(w->b, &attr, &rq), -EINVAL);
}

static void a_withdrawn_segment_is_out_of_reach(void **state)
{
	struct world *w = *state;
	struct xtal_op write = message(w, XTAL_OP_WRITE, 0, 8);

	write.remote = (struct xtal_remote){ .addr = (uintptr_t)sink,
					     .eid = write.notify.eid,
					     .tid = write.notify.tid };
	assert_int_equal(xtal_queue_submit(w->q, &write), 0);
	sent(w, XTAL_OK);
	memset(sink, 0, 8);
	xtal_segment_withdraw(w->bseg);
	xtal_segment_withdraw(w->bseg);
	assert_int_equal(xtal_queue_submit(w->q, &write), 0);
	sent(w, XTAL_REMOTE_ACCESS);
	assert_int_equal(next(w, w->acq).status, XTAL_FLUSH_DONE);
	assert_int_equal(sink[1], 0);
}

/* The link that a write by this queue, whose owner is owner_b, has taken. */
static uint32_t link_of_a_write(struct world *w, struct xtal_queue *q)
{
	struct xtal_op op = message(w, XTAL_OP_WRITE, 0, 8);
	struct xtal_record r;

	op.remote = in_sink(w);
	assert_int_equal(xtal_queue_submit(q, &op), 0);
	do {
		r = next(w, w->acq);
	} while (r.owner != &owner_b);
	assert_int_equal(r.status, XTAL_OK);
	return r.peer.link_id;
}

static void a_suspended_queue_is_not_late(void **state)
{
	struct world *w = *state;
	struct xtal_queue_attr attr = queue_attr(w);
	struct xtal_queue *other[8]; /* one of them is on the same pipeline */
	uint32_t link[8];

	attr.owner = &owner_b;
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(xtal_queue_create(w->a, &attr, &other[i]), 0);
	attr.owner = &owner_a;
	attr.timeout_ms = 50;
	new_queue(w, attr);
	send(w, 0, 8); /* waits for the link */
	assert_int_equal(xtal_queue_set_state(w->q, XTAL_QUEUE_SUSPENDED), 0);
	for (unsigned i = 0; i < 8; i++)
		link[i] = link_of_a_write(w, other[i]);
	usleep(150000);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(link_of_a_write(w, other[i]), link[i]);
		xtal_queue_destroy(&other[i]);
	}
}

static void an_unsignalled_write_stays_silent_wherever_its_word_goes(void **state)
{
	struct world *w = *state;
	struct xtal_op op = message(w, XTAL_OP_WRITE, 0, 8);
	uint64_t word;

	op.flags = XTAL_OP_UNSIGNALLED | XTAL_OP_NOTIFY;
	op.remote = in_sink(w);
	op.notify = op.remote;
	op.notify.addr = (uintptr_t)source + BYTES - 8;
	op.notify.tid = xtal_context_tid(w->a);
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	op.flags = 0;
	op.user = 7;
	assert_int_equal(xtal_queue_submit(w->q, &op), 0);
	assert_int_equal(next(w, w->acq).user, 7);
	memcpy(&word, source + BYTES - 8, sizeof(word));
	assert_int_equal(word, op.notify_data);
}

static int run(const char *path)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(a_message_arrives),
		TEST(immediate_values_and_ids_arrive),
		TEST(empty_messages_take_a_buffer_too),
		TEST(long_and_short_ones_come_in_order),
		TEST(pieces_on_both_sides_are_put_together),
		TEST(inline_data_is_the_callers_again),
		TEST(memory_need_not_be_registered),
		TEST(what_finds_no_buffer_is_held_back),
		TEST(buffers_that_come_one_by_one_keep_the_order),
		TEST(what_follows_a_held_one_waits_for_it),
		TEST(tries_come_to_an_end),
		TEST(one_that_is_too_long_fails_on_both_sides),
		TEST(the_endpoint_and_its_token_must_be_right),
		TEST(write_with_immediate_writes_and_tells),
		TEST(a_shared_receive_queue_serves_many_endpoints),
		TEST(a_full_receive_queue_says_so),
		TEST(an_error_flushes_the_buffers),
		TEST(flush_done_follows_what_was_received),
		TEST(an_event_tells_of_a_receive),
		TEST(datagrams_are_dropped),
		TEST(a_dropped_datagram_drops_no_other),
		TEST(a_gone_endpoint_receives_nothing),
		TEST(an_endpoint_that_is_held_keeps_messages_at_their_sender),
		TEST(memory_that_is_not_there_is_an_error_of_the_receiver),
		TEST(memory_that_is_not_there_is_an_error_of_the_sender),
		TEST(destroying_ends_what_is_held),
		TEST(a_bad_receive_queue_is_refused),
		TEST(a_withdrawn_segment_is_out_of_reach),
		TEST(a_suspended_queue_is_not_late),
		TEST(an_unsignalled_write_stays_silent_wherever_its_word_goes),
	};

	printf("over %s\n", path);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return over_each_path(argc, argv, run);
}
