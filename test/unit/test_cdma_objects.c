/* SPDX-License-Identifier: MIT */
/* What the CDMA front-end makes of devices, contexts, queues and segments. */
#include "cdma_paper_core.inc"

/* ---- Devices ---- */

static void a_list_describes_the_devices(void **state)
{
	const struct dma_device *first = &p.list[0], *second = &p.list[1];

	(void)state;
	assert_int_equal(p.count, 2); /* the IPv6 device has no EID of 32 bits */
	assert_string_equal(first->name, "xtal0");
	assert_string_equal(second->name, "xtal2");
	assert_true(first->fd >= 0 && second->fd >= 0 && first->fd != second->fd);
	assert_int_equal(first->attr.eu_num, 1);
	assert_int_equal(first->attr.eid.dw0, LOOPBACK);
	assert_int_equal(first->attr.eu.eid.dw0, LOOPBACK);
	assert_int_equal(first->attr.eus[0].eid.dw0, LOOPBACK);
	assert_int_equal(first->attr.eid.dw1 | first->attr.eid.dw2 | first->attr.eid.dw3, 0);
	assert_int_equal(first->attr.dev_cap.max_jfs_depth, 65536);
	assert_int_equal(first->attr.dev_cap.max_msg_size, 0xffffffff);
	assert_int_equal(first->attr.dev_cap.max_atomic_size, 16);
	assert_true(first->attr.dev_cap.ceq_cnt > 0);
}

static void a_list_needs_a_place_for_its_length(void **state)
{
	(void)state;
	assert_null(dma_get_device_list(NULL));
	assert_refused("num is NULL");
}

static void devices_without_a_descriptor_are_left_out(void **state)
{
	struct dma_device *list;
	uint32_t num = 99;

	(void)state;
	core.fds_left = 1;
	list = dma_get_device_list(&num);
	assert_non_null(list);
	assert_int_equal(num, 1);
	assert_refused("xtal2 left out: no file descriptor is left");
	dma_free_device_list(list, num);
	core.fds_left = 0;
	list = dma_get_device_list(&num);
	assert_non_null(list);
	assert_int_equal(num, 0);
	dma_free_device_list(list, num);
}

static void a_list_is_freed_once(void **state)
{
	struct dma_device stranger;
	uint32_t num;
	struct dma_device *list = dma_get_device_list(&num);
	unsigned open = core.fds_open;

	(void)state;
	dma_free_device_list(list, num);
	assert_int_equal(core.fds_open, open - num);
	dma_free_device_list(list, num);
	assert_refused("freed twice");
	dma_free_device_list(&stranger, 1);
	assert_refused("not from this library");
	dma_free_device_list(NULL, 3);
	assert_int_equal(core.refusals, 0);
}

static void an_eid_is_compared_whole(void **state)
{
	struct dev_eid eid = { .dw0 = 0x0a000001 };
	struct dma_device *dev = dma_get_device_by_eid(&eid);

	(void)state;
	assert_non_null(dev);
	assert_string_equal(dev->name, "xtal2");
	assert_int_equal(dev->attr.eu.eid.dw0, 0x0a000001);
	dma_free_device_list(dev, 1);
	eid.dw3 = 1;
	assert_null(dma_get_device_by_eid(&eid));
	assert_refused("none of 3 devices");
	eid = (struct dev_eid){ .dw0 = 2 }; /* a site number, not a device's address */
	assert_null(dma_get_device_by_eid(&eid));
	assert_null(dma_get_device_by_eid(NULL));
	assert_refused("eid is NULL");
}

static void a_device_has_the_numbers_of_its_site_too(void **state)
{
	struct dev_eid eid = { .dw0 = 8 };
	struct dma_device *dev;
	uint32_t num;

	(void)state;
	core.site_count = 2;
	dev = dma_get_device_by_eid(&eid);
	assert_non_null(dev);
	assert_string_equal(dev->name, "xtal2");
	assert_int_equal(dev->attr.eid.dw0, 0x0a000001); /* its own */
	assert_int_equal(dev->attr.eu.eid.dw0, 8);       /* as it was asked for */
	assert_int_equal(dev->attr.eu.eid_idx, 2);
	assert_int_equal(dev->attr.eu_num, 3);
	assert_int_equal(dev->attr.eus[0].eid.dw0, 0x0a000001);
	assert_int_equal(dev->attr.eus[1].eid.dw0, 7);
	assert_int_equal(dev->attr.eus[2].eid.dw0, 8);
	dma_free_device_list(dev, 1);
	eid.dw0 = 9;
	assert_null(dma_get_device_by_eid(&eid));
	dev = dma_get_device_list(&num);
	assert_int_equal(dev[num - 1].attr.eid.dw0, 0x0a000001);
	dma_free_device_list(dev, num);
	core.site_count = 100; /* more than a device can show */
	dev = dma_get_device_list(&num);
	assert_int_equal(dev[num - 1].attr.eu_num, CDMA_MAX_EU_NUM);
	assert_int_equal(dev[num - 1].attr.eus[CDMA_MAX_EU_NUM - 1].eid.dw0, 7 + 62);
	dma_free_device_list(dev, num);
}

/* ---- Contexts ---- */

static void contexts_of_one_entry_have_their_own_tid(void **state)
{
	struct dma_context *second = dma_create_context(p.list);

	(void)state;
	assert_non_null(second);
	assert_ptr_equal(second->dma_dev, p.list);
	assert_int_not_equal(second->tid, p.ctx->tid);
	assert_int_equal(second->async_fd, 77);
	dma_delete_context(second);
}

static void strict_allows_one_context_per_entry(void **state)
{
	struct dma_context *ctx;

	(void)state;
	core.config.strict = true;
	assert_null(dma_create_context(p.list));
	assert_refused("has a context");
	ctx = dma_create_context(&p.list[1]);
	assert_non_null(ctx);
	dma_delete_context(ctx);
	ctx = dma_create_context(&p.list[1]);
	assert_non_null(ctx);
	dma_delete_context(ctx);
}

static void a_context_needs_a_device(void **state)
{
	struct dma_device dev = { .name = "eth0", .fd = 3 };

	(void)state;
	assert_null(dma_create_context(NULL));
	assert_refused("dev is NULL");
	assert_null(dma_create_context(&dev));
	assert_refused("no device of a list");
	memset(dev.name, 'x', sizeof(dev.name)); /* no end of string */
	assert_null(dma_create_context(&dev));
	core.context_error = -EADDRINUSE;
	assert_null(dma_create_context(p.list));
	assert_refused("xtal0: no port is free");
}

static void a_context_outlives_its_list(void **state)
{
	uint32_t num;
	struct dma_device *list = dma_get_device_list(&num);
	struct dma_context *ctx = dma_create_context(&list[1]);

	(void)state;
	dma_free_device_list(list, num);
	assert_non_null(strstr(core.logged, "1 contexts made from the list live on"));
	assert_string_equal(ctx->dma_dev->name, "xtal2");
	dma_delete_context(ctx);
}

static void a_deleted_context_waits_for_its_children(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 1 };
	struct dma_seg_cfg seg_cfg = { .addr = 0x1000, .len = 1 };
	struct dma_context *ctx = dma_create_context(p.list);
	struct dma_queue *queue = dma_alloc_queue(ctx, &cfg);
	struct dma_seg *seg = dma_register_seg(ctx, &seg_cfg);

	(void)state;
	dma_delete_context(ctx);
	assert_refused("1 queues and 1 segments");
	assert_int_equal(core.contexts, 2);
	assert_null(dma_alloc_queue(ctx, &cfg));
	assert_refused("no live context");
	dma_delete_context(ctx);
	assert_refused("no live context");
	assert_int_equal(dma_write(queue, &p.remote, &p.local), DMA_STATUS_OK);
	dma_free_queue(queue);
	assert_int_equal(core.contexts, 2);
	/* The context takes no calls any more, but this one must still work. */
	dma_unregister_seg(ctx, seg);
	assert_int_equal(core.segments, 0);
	assert_int_equal(core.contexts, 1);
}

static void a_forked_child_is_told(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 1 };
	struct dma_seg_cfg seg_cfg = { .addr = 0x1000, .len = 1 };
	struct dma_seg *seg = dma_register_seg(p.ctx, &seg_cfg);
	struct xtal_context *parents = ((struct cdma_context *)p.ctx)->core;
	struct dma_context *own;
	struct dma_aeqe ae = { .duration = 0 };
	struct dma_cr cr;

	(void)state;
	parents->foreign = true;
	core.post_answer = core.take_answer = -ECHILD;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused("forked");
	assert_null(dma_register_seg(p.ctx, &seg_cfg));
	assert_refused("forked");
	assert_int_equal(dma_write(p.queue, &p.remote, &p.local), DMA_STATUS_INVAL);
	assert_refused("forked");
	assert_int_equal(dma_poll_queue(p.queue, 1, &cr), -22);
	assert_refused("forked");
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, &cr), -22);
	assert_refused("forked");
	assert_int_equal(dma_wait_ae(p.ctx, &ae), -22);
	assert_refused("forked");
	dma_unregister_seg(p.ctx, seg);
	assert_refused("forked");
	dma_free_queue(p.queue);
	assert_refused("forked");
	dma_delete_context(p.ctx);
	assert_refused("forked");
	assert_int_equal(core.contexts + core.queues + core.segments, 3);
	core.config.strict = true; /* the parent's context is not in the child's way */
	own = dma_create_context(p.list);
	assert_non_null(own);
	dma_delete_context(own);
	parents->foreign = false;
	dma_unregister_seg(p.ctx, seg);
}

/* ---- Queues ---- */

static void a_queue_is_what_was_asked_for(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 100,
				 .priority = 3,
				 .user_ctx = 4,
				 .dcna = 5,
				 .rmt_eid = { 6, 7, 8, 9 },
				 .trans_mode = 17 };
	struct dma_queue *queue = dma_alloc_queue(p.ctx, &cfg);

	(void)state;
	assert_non_null(queue);
	assert_memory_equal(&queue->cfg, &cfg, sizeof(cfg));
	assert_ptr_equal(queue->ctx, p.ctx);
	assert_int_equal(queue->queue_id, 5);
	assert_int_equal(bound.queue->attr.depth, 100);
	queue->cfg.rmt_eid.dw0 = OTHER;
	assert_int_equal(xtal_eid_ipv4(bound.target(queue)), OTHER);
	queue->cfg.rmt_eid.dw0 = 2;
	assert_int_equal(xtal_eid_ipv4(bound.target(queue)), LOOPBACK);
	dma_free_queue(queue);
}

static void a_queue_that_cannot_be_made_leaves_nothing(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 0 };

	(void)state;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused("queue_depth is 0");
	cfg.queue_depth = 65537;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused("queue_depth is 65537, 1 to 65536");
	cfg.queue_depth = 65536;
	assert_null(dma_alloc_queue(NULL, &cfg));
	assert_refused("ctx is NULL");
	assert_null(dma_alloc_queue(p.ctx, NULL));
	assert_refused("cfg is NULL");
	core.queue_error = -ENOSPC;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused("too many");
	core.queue_error = 0;
	core.bind_error = -ENOMEM;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused("no memory");
	assert_int_equal(core.queues, 1);
}

static void a_copied_queue_is_refused(void **state)
{
	struct cdma_queue copy = { .pub = *p.queue };
	struct dma_cr cr;

	(void)state;
	assert_int_equal(dma_write(&copy.pub, &p.remote, &p.local), DMA_STATUS_INVAL);
	assert_refused("no live queue");
	assert_int_equal(dma_poll_queue(&copy.pub, 1, &cr), -22);
	assert_refused("no live queue");
	dma_free_queue(&copy.pub);
	assert_refused("no live queue");
	dma_free_queue(NULL);
	assert_int_equal(core.refusals, 0);
}

/* ---- Segments ---- */

static void a_segment_tells_what_peers_need(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 0x1234,
				   .len = 1ull << 40,
				   .token_value = 7,
				   .tid = 99,
				   .token_value_valid = true };
	struct dma_seg *seg = dma_register_seg(p.ctx, &cfg);
	const struct xtal_segment_attr *attr = &((struct cdma_segment *)seg)->core->attr;

	(void)state;
	assert_int_equal(seg->sva, 0x1234);
	assert_int_equal(seg->len, 1ull << 40);
	assert_int_equal(seg->tid, p.ctx->tid);
	assert_int_equal(seg->token_value, 7);
	assert_true(seg->token_value_valid);
	assert_int_equal(attr->addr, 0x1234);
	assert_int_equal(attr->token, 7);
	assert_true(attr->token_valid);
	assert_int_equal(attr->rights, XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC);
	dma_unregister_seg(p.ctx, seg);
}

static void a_token_is_insisted_on_when_marked_and_not_zero(void **state)
{
	static const struct {
		uint32_t token;
		bool valid, insist;
	} rows[] = {
		{ 0, false, false }, { 7, false, false }, { 0, true, false }, { 7, true, true }
	};

	(void)state;
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(rows); i++) {
		struct dma_seg_cfg cfg = { .addr = 4096,
					   .len = 1,
					   .token_value = rows[i].token,
					   .token_value_valid = rows[i].valid };
		struct dma_seg *seg = dma_register_seg(p.ctx, &cfg);

		assert_int_equal(((struct cdma_segment *)seg)->core->attr.token_valid,
				 rows[i].insist);
		assert_int_equal(seg->token_value_valid, rows[i].valid);
		dma_unregister_seg(p.ctx, seg);
	}
}

static void a_segment_that_cannot_be_leaves_nothing(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 0, .len = 1 };

	(void)state;
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused("neither may be 0");
	cfg = (struct dma_seg_cfg){ .addr = 1, .len = 0 };
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused("neither may be 0");
	cfg = (struct dma_seg_cfg){ .addr = UINT64_MAX, .len = 2 };
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused("ends above 2^64");
	cfg = (struct dma_seg_cfg){ .addr = 1, .len = 1 };
	assert_null(dma_register_seg(NULL, &cfg));
	assert_refused("ctx is NULL");
	assert_null(dma_register_seg(p.ctx, NULL));
	assert_refused("cfg is NULL");
	core.segment_error = -EEXIST;
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused("overlap");
	core.segment_error = 0;
	core.bind_error = -ENOMEM;
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused("no memory");
	assert_int_equal(core.segments, 0);
}

static void many_segments_are_all_found_again(void **state)
{
	struct dma_seg *segs[150];
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 10 };

	(void)state;
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(segs); i++)
		segs[i] = dma_register_seg(p.ctx, &cfg);
	assert_int_equal(core.segments, 150);
	for (unsigned i = XTAL_ARRAY_SIZE(segs); i-- > 0;)
		dma_unregister_seg(p.ctx, segs[i]);
	assert_int_equal(core.segments, 0);
}

static void a_changed_struct_still_withdraws_the_whole(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 100 };
	struct dma_seg *seg = dma_register_seg(p.ctx, &cfg);

	(void)state;
	seg->sva += 10;
	seg->len = 5;
	dma_unregister_seg(p.ctx, seg);
	assert_int_equal(core.segments, 0);
}

static void a_copy_withdraws_and_is_not_freed(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 100 };
	struct dma_seg *seg = dma_register_seg(p.ctx, &cfg), *again;
	struct dma_seg copy = *seg, part = *seg;

	(void)state;
	part.len = 5;
	dma_unregister_seg(p.ctx, &part);
	assert_refused("a part");
	assert_int_equal(core.segments, 1);
	dma_unregister_seg(p.ctx, &copy);
	assert_int_equal(core.segments, 0);
	assert_int_equal(seg->len, 100); /* readable still */
	dma_unregister_seg(p.ctx, seg);
	assert_refused("withdrawn before");
	/* The same range, at the same place of the table: the old copy does not stand for it. */
	again = dma_register_seg(p.ctx, &cfg);
	assert_int_equal((uint32_t)again->handle, (uint32_t)copy.handle);
	dma_unregister_seg(p.ctx, &copy);
	assert_refused("withdrawn before");
	assert_int_equal(core.segments, 1);
	dma_unregister_seg(p.ctx, again);
}

static void a_segment_belongs_to_one_context(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 100 };
	struct dma_context *other = dma_create_context(p.list);
	struct dma_seg *seg = dma_register_seg(p.ctx, &cfg),
		       *theirs = dma_register_seg(other, &cfg);

	(void)state;
	dma_unregister_seg(other, seg);
	assert_refused("not registered with context");
	dma_unregister_seg(NULL, seg);
	dma_unregister_seg(p.ctx, NULL);
	assert_int_equal(core.segments, 2);
	dma_unregister_seg(p.ctx, seg);
	dma_unregister_seg(other, theirs);
	dma_delete_context(other);
}

static void importing_is_copying(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 0xffff000000001234,
				   .len = 1ull << 50,
				   .token_value = 7,
				   .tid = 0xfedcba98,
				   .token_value_valid = true };
	struct dma_seg *seg = dma_import_seg(&cfg);

	(void)state;
	assert_int_equal(seg->handle, 0);
	assert_int_equal(seg->sva, cfg.addr);
	assert_int_equal(seg->len, cfg.len);
	assert_int_equal(seg->tid, 0xfedcba98);
	assert_int_equal(seg->token_value, 7);
	assert_true(seg->token_value_valid);
	dma_unregister_seg(p.ctx, seg);
	assert_refused("imported");
	dma_unimport_seg(seg);
	dma_unimport_seg(NULL);
	cfg.len = 0;
	assert_null(dma_import_seg(&cfg));
	assert_refused("neither may be 0");
	assert_null(dma_import_seg(NULL));
	assert_refused("cfg is NULL");
}

static void a_registered_segment_cannot_be_unimported(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 100 };
	struct dma_seg *seg = dma_register_seg(p.ctx, &cfg);

	(void)state;
	dma_unimport_seg(seg);
	assert_refused("use dma_unregister_seg");
	dma_unregister_seg(p.ctx, seg);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_list_describes_the_devices),
		TEST(a_list_needs_a_place_for_its_length),
		TEST(devices_without_a_descriptor_are_left_out),
		TEST(a_list_is_freed_once),
		TEST(an_eid_is_compared_whole),
		TEST(a_device_has_the_numbers_of_its_site_too),
		TEST(contexts_of_one_entry_have_their_own_tid),
		TEST(strict_allows_one_context_per_entry),
		TEST(a_context_needs_a_device),
		TEST(a_context_outlives_its_list),
		TEST(a_deleted_context_waits_for_its_children),
		TEST(a_forked_child_is_told),
		TEST(a_queue_is_what_was_asked_for),
		TEST(a_queue_that_cannot_be_made_leaves_nothing),
		TEST(a_copied_queue_is_refused),
		TEST(a_segment_tells_what_peers_need),
		TEST(a_token_is_insisted_on_when_marked_and_not_zero),
		TEST(a_segment_that_cannot_be_leaves_nothing),
		TEST(many_segments_are_all_found_again),
		TEST(a_changed_struct_still_withdraws_the_whole),
		TEST(a_copy_withdraws_and_is_not_freed),
		TEST(a_segment_belongs_to_one_context),
		TEST(importing_is_copying),
		TEST(a_registered_segment_cannot_be_unimported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
