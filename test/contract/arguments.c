/* SPDX-License-Identifier: MIT */
/*
 * NULL, zero and absurd arguments of all functions: the value that the contract names, a
 * sentence that names the reason, and nothing else happens (F15, F22, F43). ctest: paths=self
 */
#include "lib/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void devices(void **state)
{
	struct dev_eid eid = { .dw0 = 0x01020304 };
	struct dma_device *list, *one;
	uint32_t n = 0;

	(void)state;
	assert_null(dma_get_device_list(NULL));
	assert_null(dma_get_device_by_eid(NULL));
	assert_null(dma_get_device_by_eid(&eid));
	assert_refused_because("0x1020304");
	dma_free_device_list(NULL, 7);
	list = dma_get_device_list(&n);
	assert_true(list && n >= 1);
	assert_string_equal(list[0].name, "xtal0");
	assert_true(list[0].fd >= 0);
	assert_int_equal(list[0].attr.eid.dw0, LOOPBACK);
	assert_in_range(list[0].attr.eu_num, 1, 64);
	eid.dw0 = LOOPBACK;
	one = dma_get_device_by_eid(&eid);
	assert_non_null(one);
	assert_int_equal(one->attr.eu.eid.dw0, LOOPBACK);
	eid.dw3 = 1; /* all 16 bytes count */
	assert_null(dma_get_device_by_eid(&eid));
	dma_free_device_list(one, 1);
	dma_free_device_list(list, n);
}

static void contexts(void **state)
{
	struct dma_device strange = { .fd = 0, .name = "nowhere" };
	struct dma_aeqe e = { .duration = 0 };
	struct pair p;

	(void)state;
	assert_null(dma_create_context(NULL));
	assert_refused_because("NULL");
	assert_null(dma_create_context(&strange));
	dma_delete_context(NULL);
	assert_int_equal(dma_wait_ae(NULL, &e), -22);
	pair_open(&p, 4096);
	assert_int_equal(dma_wait_ae(p.ctx, NULL), -22);
	e.duration = 10001;
	assert_int_equal(dma_wait_ae(p.ctx, &e), -22);
	assert_refused_because("10001");
	e.duration = -5;
	assert_int_equal(dma_wait_ae(p.ctx, &e), -22);
	assert_refused_because("-5");
	pair_close(&p);
}

/* F15: the limits that are reported are the true ones. */
static void limits(void **state)
{
	const struct cdma_device_cap *cap;
	struct queue_cfg cfg = { .rmt_eid.dw0 = LOOPBACK };
	struct dma_queue *q;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	cap = &p.list[0].attr.dev_cap;
	assert_int_equal(cap->max_jfs_depth, 65536);
	assert_int_equal(cap->max_jfc_depth, 65536);
	assert_int_equal(cap->max_msg_size, UINT32_MAX);
	cfg.queue_depth = cap->max_jfs_depth;
	q = dma_alloc_queue(p.ctx, &cfg);
	assert_non_null(q);
	for (uint32_t i = 0; i < cfg.queue_depth; i++)
		if (dma_faa(q, &p.remote, &(struct dma_seg){ .sva = p.local->sva, .len = 8 }, 1))
			fail();
	assert_int_equal(
		dma_faa(q, &p.remote, &(struct dma_seg){ .sva = p.local->sva, .len = 8 }, 1), 1);
	assert_refused_because("65536");
	dma_free_queue(q);
	cfg.queue_depth++;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused_because("65537");
	assert_refused_because("65536");
	cfg.queue_depth = 0;
	assert_null(dma_alloc_queue(p.ctx, &cfg));
	assert_refused_because("0");
	pair_close(&p);
}

static void queues(void **state)
{
	struct queue_cfg cfg = { .queue_depth = 4, .rmt_eid.dw0 = LOOPBACK };
	struct dma_queue *q;
	struct dma_cr cr;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	assert_null(dma_alloc_queue(NULL, &cfg));
	assert_null(dma_alloc_queue(p.ctx, NULL));
	assert_refused_because("NULL");
	dma_free_queue(NULL);
	cfg.trans_mode = 99; /* odd values mean 1 */
	cfg.priority = 255;
	cfg.dcna = 12345;
	q = dma_alloc_queue(p.ctx, &cfg);
	assert_non_null(q);
	assert_memory_equal(&q->cfg, &cfg, sizeof(cfg));
	assert_ptr_equal(q->ctx, p.ctx);
	assert_int_equal(dma_poll_queue(NULL, 1, &cr), -22);
	assert_int_equal(dma_poll_queue(q, 0, &cr), -22);
	assert_int_equal(dma_poll_queue(q, 1, NULL), -22);
	assert_int_equal(dma_wait_queue(NULL, 1, 0, &cr), -22);
	assert_int_equal(dma_wait_queue(p.queue, 0, 0, &cr), -22);
	assert_int_equal(dma_wait_queue(p.queue, 1, 0, NULL), -22);
	assert_int_equal(dma_wait_queue(q, 1, 0, &cr), -22);
	assert_refused_because("event_mode");
	dma_free_queue(q);
	pair_close(&p);
}

static void segments(void **state)
{
	struct dma_seg_cfg cfg = { .addr = 4096, .len = 1 };
	struct dma_seg *s;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	assert_null(dma_register_seg(NULL, &cfg));
	assert_null(dma_register_seg(p.ctx, NULL));
	assert_null(dma_import_seg(NULL));
	cfg.len = 0;
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_null(dma_import_seg(&cfg));
	assert_refused_because("0 bytes");
	cfg = (struct dma_seg_cfg){ .addr = 0, .len = 77 };
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_null(dma_import_seg(&cfg));
	assert_refused_because("77 bytes");
	cfg = (struct dma_seg_cfg){ .addr = UINT64_MAX - 9, .len = 11 };
	assert_null(dma_register_seg(p.ctx, &cfg));
	assert_refused_because("11 bytes");
	dma_unregister_seg(NULL, p.local);
	dma_unregister_seg(p.ctx, NULL);
	dma_unimport_seg(NULL);
	cfg = (struct dma_seg_cfg){ .addr = 1,
				    .len = UINT64_MAX,
				    .tid = UINT32_MAX,
				    .token_value = 6,
				    .token_value_valid = true };
	s = dma_import_seg(&cfg); /* pure memory work */
	assert_non_null(s);
	assert_int_equal(s->sva, 1);
	assert_int_equal(s->len, UINT64_MAX);
	assert_int_equal(s->tid, UINT32_MAX);
	assert_int_equal(s->token_value, 6);
	assert_true(s->token_value_valid);
	dma_unregister_seg(p.ctx, s); /* not registered: refused, not freed */
	assert_int_equal(s->token_value, 6);
	dma_unimport_seg(s);
	assert_int_equal(p.local->tid, p.ctx->tid);
	pair_close(&p);
}

typedef dma_status (*post_fn)(struct dma_queue *q, struct dma_seg *r, struct dma_seg *l);

static dma_status notify(struct dma_queue *q, struct dma_seg *r, struct dma_seg *l)
{
	struct dma_seg word = { .sva = 1, .len = 8 };

	return dma_write_with_notify(q, r, l, &word, 1);
}

static dma_status cas(struct dma_queue *q, struct dma_seg *r, struct dma_seg *l)
{
	return dma_cas(q, r, l, 1, 1);
}

static dma_status faa(struct dma_queue *q, struct dma_seg *r, struct dma_seg *l)
{
	return dma_faa(q, r, l, 1);
}

static void posts(void **state)
{
	static const post_fn all[] = { dma_write, dma_read, notify, cas, faa };
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	for (unsigned i = 0; i < 5; i++) {
		struct dma_seg r = part(&p.remote, 0, 8), l = part(p.local, 0, 8);

		assert_int_equal(all[i](NULL, &r, &l), DMA_STATUS_INVAL);
		assert_refused_because("NULL");
		assert_int_equal(all[i](p.queue, NULL, &l), DMA_STATUS_INVAL);
		assert_int_equal(all[i](p.queue, &r, NULL), DMA_STATUS_INVAL);
		l.len = 0;
		assert_int_equal(all[i](p.queue, &r, &l), DMA_STATUS_INVAL);
		l = part(p.local, 0, 8);
		l.sva = 0;
		assert_int_equal(all[i](p.queue, &r, &l), DMA_STATUS_INVAL);
		assert_refused_because("local");
		l = part(p.local, 0, 8);
		r.len = 0;
		assert_int_equal(all[i](p.queue, &r, &l), DMA_STATUS_INVAL);
		r = part(&p.remote, 0, 8);
		r.sva = 0;
		assert_int_equal(all[i](p.queue, &r, &l), DMA_STATUS_INVAL);
		assert_refused_because("remote");
	}
	for (uint64_t len = 1; len <= 33; len++) {
		struct dma_seg r = part(&p.remote, 0, 8), l = part(p.local, 0, len);

		if (len != 4 && len != 8) {
			assert_int_equal(dma_faa(p.queue, &r, &l, 1), DMA_STATUS_INVAL);
			if (len != 16)
				assert_int_equal(dma_cas(p.queue, &r, &l, 1, 1), DMA_STATUS_INVAL);
			else
				assert_int_equal(dma_cas(p.queue, &r, &l, 0, 0), DMA_STATUS_INVAL);
		}
	}
	assert_int_equal(dma_write_with_notify(p.queue, &p.remote, p.local, NULL, 1),
			 DMA_STATUS_INVAL);
	assert_refused_because("notify_seg");
	assert_int_equal(dma_poll_queue(p.queue, 1, &(struct dma_cr){ 0 }), 0);
	pair_close(&p);
}

static void extensions(void **state)
{
	struct xtal_descriptor d = { .len = 1 };
	struct xtal_path_info info;
	struct xtal_counters c;
	struct xtal_setting s;
	struct dma_seg copy;
	struct pair p;
	int x;

	(void)state;
	assert_string_equal(xtal_version(), XTAL_VERSION);
	assert_null(xtal_alloc(0));
	assert_null(xtal_alloc((size_t)1 << 60));
	xtal_free(NULL);
	xtal_free(&x);
	assert_string_equal(xtal_status_name(99), "UNKNOWN");
	assert_string_equal(xtal_status_name(-1), "UNKNOWN");
	assert_non_null(xtal_status_text(1000));
	assert_string_equal(xtal_path_name(77), "unknown");
	assert_int_equal(xtal_counters_read(NULL, 8), -EINVAL);
	assert_int_equal(xtal_counters_read(&c, 0), -EINVAL);
	memset(&c, 0xee, sizeof(c));
	assert_int_equal(xtal_counters_read(&c, 8), 0); /* an older caller */
	assert_int_equal(c.completed, 0xeeeeeeeeeeeeeeee);
	assert_int_equal(xtal_setting_at(0, NULL), -EINVAL);
	assert_int_equal(xtal_setting_at(100000, &s), -ENOENT);
	for (unsigned i = 0; !xtal_setting_at(i, &s); i++)
		assert_true(s.name && s.value && s.origin && s.description);
	pair_open(&p, 4096);
	copy = *p.local;
	assert_int_equal(xtal_describe(NULL, &d), -EINVAL);
	assert_int_equal(xtal_describe(p.local, NULL), -EINVAL);
	assert_int_equal(xtal_describe(&copy, &d), -EINVAL);
	assert_int_equal(xtal_describe(&x, &d), -EINVAL);
	assert_int_equal(xtal_describe(p.local, &d), 0);
	assert_int_equal(d.va, p.local->sva);
	assert_int_equal(d.tid, p.local->tid);
	assert_int_equal(xtal_queue_fd(NULL), -EINVAL);
	assert_int_equal(xtal_queue_fd(&x), -EINVAL);
	assert_int_equal(xtal_path_query(NULL, &d, 1, &info), -EINVAL);
	assert_int_equal(xtal_path_query(&x, &d, 1, &info), -EINVAL);
	assert_int_equal(xtal_path_query(p.queue, NULL, 1, &info), -EINVAL);
	assert_int_equal(xtal_path_query(p.queue, &d, 1, NULL), -EINVAL);
	d.len = 0;
	assert_int_equal(xtal_path_query(p.queue, &d, 1, &info), -EINVAL);
	d.len = 8192; /* more than was registered: the owner refuses, in words */
	assert_int_equal(xtal_path_query(p.queue, &d, 1000, &info), 0);
	assert_int_equal(info.kind, XTAL_PATH_NONE);
	assert_true(strlen(info.reason) > 10);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices),    cmocka_unit_test(contexts), cmocka_unit_test(limits),
		cmocka_unit_test(queues),     cmocka_unit_test(segments), cmocka_unit_test(posts),
		cmocka_unit_test(extensions),
	};

	return suite_run(argc, argv, "arguments", tests, sizeof(tests) / sizeof(tests[0]), NULL);
}
