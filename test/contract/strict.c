/* SPDX-License-Identifier: MIT */
/*
 * XTAL_STRICT=1: what the hardware refuses is refused, and what it leaves unwritten is left
 * unwritten. ctest: paths=self,ring
 */
#include "lib/pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const env[] = { "XTAL_STRICT=1", NULL };

static struct dma_seg *reg(struct pair *p, uint64_t addr, uint64_t len)
{
	return dma_register_seg(p->ctx, &(struct dma_seg_cfg){ .addr = addr, .len = len });
}

static void registrations_are_as_hardware_wants_them(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE); /* the machine's; hardware's has 4096 */
	uint8_t *mem =
		mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uintptr_t)mem;
	struct dma_seg *a, *b;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	assert_null(reg(&p, at + 8, 100));
	assert_refused_because("multiple of 4096");
	assert_null(reg(&p, 0xfffffffff000, 4097));
	assert_refused_because("2^48");
	mprotect(mem + 8 * page, page, PROT_READ);
	munmap(mem + 12 * page, page);
	assert_null(reg(&p, at + 8 * page, 10));
	assert_refused_because("writable");
	assert_null(reg(&p, at + 7 * page, page + 1));
	assert_null(reg(&p, at + 12 * page, 1));
	a = reg(&p, at, 5000); /* the length need not be a multiple */
	assert_non_null(a);
	assert_null(reg(&p, at + 4096, 4096)); /* overlaps */
	assert_refused_because("overlap");
	assert_null(reg(&p, at, 4999));
	b = reg(&p, at, 5000); /* the identical range, a second time */
	assert_non_null(b);
	assert_null(reg(&p, at, 5000)); /* but not a third */
	dma_unregister_seg(p.ctx, b);
	dma_unregister_seg(p.ctx, a);
	a = reg(&p, at + 4096, 4096);
	assert_non_null(a);
	dma_unregister_seg(p.ctx, a);
	pair_close(&p);
	munmap(mem, 16 * page);
}

static uint64_t refusals(void)
{
	struct xtal_counters c;

	assert_int_equal(xtal_counters_read(&c, sizeof(c)), 0);
	return c.refused;
}

/* The function's name and the core's reason, in one sentence. */
static void a_refusal_counts_once(void **state)
{
	uint64_t before;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	before = refusals();
	assert_null(reg(&p, (uintptr_t)p.mem.data + 8, 100));
	assert_refused_because("dma_register_seg");
	assert_refused_because("multiple of 4096");
	assert_int_equal(refusals(), before + 1);
	pair_close(&p);
}

/* Hardware looks local memory up by the segment's tid. */
static void a_local_segment_of_another_tid_ends_with_4(void **state)
{
	struct dma_seg local, remote;
	uint64_t two[2] = { 0, 0 };
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	remote = part(&p.remote, 0, 8);
	local = part(p.local, 64, 8);
	for (unsigned i = 0; i < 3; i++) {
		local.tid = i == 0 ? p.local->tid ^ 0x10000 : i == 1 ? 0 : p.local->tid ^ 1;
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_refused_because("dma_write");
		assert_refused_because("has tid 0x");
		assert_int_equal(dma_read(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_write_with_notify(p.queue, &remote, &local, &remote, 1), 0);
		assert_status(p.queue, 4);
		assert_int_equal(dma_faa(p.queue, &remote, &local, 1), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		assert_int_equal(dma_cas(p.queue, &remote, &local, 0, 1), DMA_STATUS_OK);
		assert_status(p.queue, 4);
		local.len = 16;
		assert_int_equal(dma_cas(p.queue, &remote, &local, (uintptr_t)two, (uintptr_t)two),
				 0);
		assert_status(p.queue, 4);
		local.len = 8;
	}
	local.tid = p.local->tid | 0xfff00000; /* 20 bits count */
	assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 8);
	pair_close(&p);
}

static void one_context_per_device_entry(void **state)
{
	struct dma_context *second;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	assert_null(dma_create_context(&p.list[0]));
	dma_free_queue(p.queue);
	dma_unregister_seg(p.ctx, p.local);
	dma_delete_context(p.ctx);
	second = dma_create_context(&p.list[0]);
	assert_non_null(second);
	p.ctx = second;
	p.queue = pair_queue(&p, 4);
	p.local = reg(&p, (uintptr_t)p.mem.data, 4096);
	pair_close(&p);
}

static void unwritten_fields_stay_unwritten(void **state)
{
	struct dma_cr cr, before;
	struct pair p;

	(void)state;
	pair_open(&p, 4096);
	assert_int_equal(dma_write(p.queue, &p.remote, p.local), DMA_STATUS_OK);
	memset(&cr, 0xff, sizeof(cr));
	before = cr;
	while (!dma_poll_queue(p.queue, 1, &cr))
		;
	assert_int_equal(cr.status, 0);
	assert_int_equal(cr.completion_len, 4096);
	assert_int_equal(cr.opcode, before.opcode);
	assert_int_equal(cr.flag.value, 0xfc); /* two bits are written */
	assert_int_equal(cr.rsv_bitmap, before.rsv_bitmap);
	assert_memory_equal(cr.rsvd, before.rsvd, sizeof(cr.rsvd));
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registrations_are_as_hardware_wants_them),
		cmocka_unit_test(a_refusal_counts_once),
		cmocka_unit_test(a_local_segment_of_another_tid_ends_with_4),
		cmocka_unit_test(one_context_per_device_entry),
		cmocka_unit_test(unwritten_fields_stay_unwritten),
	};

	return suite_run(argc, argv, "strict", tests, sizeof(tests) / sizeof(tests[0]), env);
}
