/* SPDX-License-Identifier: MIT */
/*
 * XTAL_CHECK=1: each of the common mistakes is told in one sentence, in xtal_last_error() and in the
 * log, that names the call, the object and the way out; a program without mistakes hears nothing.
 * The owner of the remote memory is another process. ctest: timeout=120
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cdma_u_lib.h"
#include "lib/actor.h"
#include "lib/suite.h"
#include "lib/urma_side.h"
#include "xtal.h"

#define LEN     (64ul * 1024)
#define TOKEN   0x777u
#define SOON_MS 20000u

struct ask {
	struct urma_told told;
	struct dma_seg seg;
	uint32_t access;
};

static char log_name[] = "/tmp/check-log-XXXXXX";

/* ---- The owner ---- */

static struct urma_side theirs;
static unsigned char *their_memory;

static int64_t open_owner(void *args)
{
	struct ask *a = args;
	struct urma_side_attr attr = { .rnr_retry = 7, .len = LEN, .access = a->access };
	struct dma_seg_cfg cfg = { .len = LEN, .token_value = TOKEN, .token_value_valid = true };
	struct dma_device *list;
	struct dma_context *ctx;
	uint32_t count;
	struct dma_seg *seg;

	their_memory = xtal_alloc(LEN);
	attr.memory = their_memory;
	if (!their_memory || urma_side_open(&theirs, &attr))
		return __LINE__;
	urma_side_tell(&theirs, &a->told);
	for (unsigned i = 0; i < 4; i++)
		if (urma_side_receive(&theirs, their_memory + LEN / 2 + 64 * i, 64, i))
			return __LINE__;
	list = dma_get_device_list(&count);
	ctx = list ? dma_create_context(list) : NULL;
	cfg.addr = (uintptr_t)their_memory;
	seg = ctx ? dma_register_seg(ctx, &cfg) : NULL;
	if (!seg)
		return __LINE__;
	a->seg = *seg;
	return 0;
}

/* ---- The program that is checked: this one ---- */

static struct actor *owner;
static struct ask told;
static struct urma_side side;
static struct urma_peer peer;
static unsigned char *memory;
static uint64_t base;
static struct dma_device *list;
static uint32_t devices;
static struct dma_context *ctx;
static struct dma_queue *queue;
static struct dma_seg *local;
static long heard; /* bytes of the log that were looked at */

static void open_with(uint32_t access)
{
	struct urma_side_attr attr = { .rnr_retry = 7, .len = LEN };
	struct dma_seg_cfg cfg = { .len = LEN };
	struct queue_cfg qcfg = { .queue_depth = 16,
				  .rmt_eid.dw0 = 0x7f000001,
				  .event_mode = true };
	owner = actor_process(NULL);
	told = (struct ask){ .access = access };
	assert_int_equal(actor_call(owner, open_owner, &told, sizeof(told)), 0);
	memory = aligned_alloc(4096, LEN + 4096); /* what a test names beyond its end is there */
	memset(memory, 0, LEN + 4096);
	attr.memory = memory;
	assert_int_equal(urma_side_open(&side, &attr), 0);
	assert_int_equal(urma_peer_import(&side, &told.told, &peer), 0);
	base = told.told.seg.ubva.va;
	list = dma_get_device_list(&devices);
	ctx = dma_create_context(list);
	cfg.addr = (uintptr_t)memory;
	local = dma_register_seg(ctx, &cfg);
	queue = dma_alloc_queue(ctx, &qcfg);
	assert_true(local && queue);
}

static void close_all(void)
{
	if (queue)
		dma_free_queue(queue);
	if (local)
		dma_unregister_seg(ctx, local);
	dma_delete_context(ctx);
	dma_free_device_list(list, devices);
	assert_int_equal(urma_peer_drop(&side, &peer), 0);
	assert_int_equal(urma_side_close(&side), 0);
	free(memory);
	actor_free(owner);
}

/* The sentences of XTAL_CHECK that the log got since this was asked last; "": none. */
static const char *new_lines(void)
{
	static char text[8192];
	FILE *f = fopen(log_name, "r");
	char line[1024];
	size_t n = 0;

	assert_non_null(f);
	fseek(f, heard, SEEK_SET);
	text[0] = 0;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "XTAL_CHECK: "))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", line);
	heard = ftell(f);
	fclose(f);
	return text;
}

static void assert_nothing_was_said(void)
{
	assert_string_equal(new_lines(), "");
}

static int set_up(void **state)
{
	(void)state;
	open_with(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_nothing_was_said();
	close_all();
	assert_nothing_was_said();
	return 0;
}

/* One sentence, here and in the log, that has the words. */
static void assert_said(const char *call, const char *object, const char *way_out)
{
	const char *lines = new_lines(), *said = xtal_last_error();
	const char *const words[] = { call, object, way_out };

	for (unsigned i = 0; i < 3; i++)
		if (!strstr(said, words[i]) || !strstr(lines, words[i]))
			fail_msg("'%s' is not in '%s', or not in the log: %s", words[i], said,
				 lines);
	if (strchr(lines, '\n') != strrchr(lines, '\n'))
		fail_msg("more than one sentence: %s", lines);
}

static urma_cr_t next_record(void)
{
	urma_cr_t cr;

	assert_true(urma_side_take(side.jfc, &cr, SOON_MS));
	return cr;
}

static void post(struct urma_request *r)
{
	assert_int_equal(urma_side_post(&side, r), URMA_SUCCESS);
}

static void drain_failure(void)
{
	assert_int_equal(next_record().status, URMA_CR_REM_ACCESS_ABORT_ERR);
	assert_int_equal(next_record().status, URMA_CR_WR_FLUSH_ERR_DONE);
	new_lines(); /* the engine's own words about it */
}

/* ---- URMA ---- */

static void a_plain_pointer_as_remote_address(void **state)
{
	struct urma_request r;

	(void)state;
	urma_request_write(&r, &peer, (uintptr_t)memory, memory, 64);
	post(&r);
	assert_said("urma_post_jetty_send_wr", "dst.addr 0x", "ubva.va of the peer's descriptor");
	assert_non_null(strstr(xtal_last_error(), "a pointer of this process"));
	drain_failure();
}

static void a_descriptor_that_was_not_imported(void **state)
{
	struct urma_request r;

	(void)state;
	urma_request_write(&r, &peer, base, memory, 64);
	r.dst[0].tseg = (urma_target_seg_t *)(void *)&told.told.seg;
	assert_int_equal(urma_side_post(&side, &r), URMA_EINVAL);
	assert_said("urma_post_jetty_send_wr", "dst.tseg", "to urma_import_seg");
	urma_request_read(&r, &peer, base, memory, 64);
	r.src.tseg = (urma_target_seg_t *)(void *)memory;
	assert_int_equal(urma_side_post(&side, &r), URMA_EINVAL);
	assert_said("urma_post_jetty_send_wr", "src.tseg", "to urma_import_seg");
	urma_request_write(&r, &peer, base, memory, 64);
	r.wr.tjetty = (urma_target_jetty_t *)(void *)&told.told.jetty;
	assert_int_equal(urma_side_post(&side, &r), URMA_EINVAL);
	assert_said("urma_post_jetty_send_wr", "tjetty", "to urma_import_jetty");
	/* His own segment, where the peer's should be. */
	urma_request_write(&r, &peer, (uintptr_t)memory, memory, 64);
	r.dst[0].tseg = side.seg;
	post(&r);
	assert_said("urma_post_jetty_send_wr", "dst.tseg", "the segment that was imported");
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
}

static void several_remote_pieces(void **state)
{
	struct urma_request r;

	(void)state;
	urma_request_write(&r, &peer, base, memory, 64);
	r.dst[1] = r.dst[0];
	r.wr.rw.dst.num_sge = 2;
	post(&r);
	assert_said("urma_post_jetty_send_wr", "has 2 remote pieces", "one request for each");
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
}

static void a_range_outside_of_its_segment(void **state)
{
	struct urma_request r;

	(void)state;
	urma_request_write(&r, &peer, base, memory, 64);
	r.src.tseg = side.seg;
	r.src.addr = (uintptr_t)memory + LEN - 8;
	r.src.len = r.dst[0].len = 16;
	r.wr.flag.bs.inline_flag = 0;
	urma_side_post(&side, &r);
	assert_said("urma_post_jetty_send_wr", "local piece of 16 bytes", "correct addr and len");
	next_record();
	new_lines();
	urma_request_write(&r, &peer, base, (void *)4096, 16);
	r.wr.flag.bs.inline_flag = 0;
	assert_int_equal(urma_side_post(&side, &r), URMA_EINVAL);
	assert_said("urma_post_jetty_send_wr", "not all mapped and readable",
		    "until the completion");
	new_lines();
	urma_request_write(&r, &peer, base + LEN - 8, memory, 16);
	urma_side_post(&side, &r);
	assert_said("urma_post_jetty_send_wr", "reaches 8 bytes beyond", "make it shorter");
	drain_failure();
}

static void a_right_that_was_not_registered(void **state)
{
	struct urma_request r;

	(void)state;
	close_all();
	open_with(URMA_ACCESS_READ);
	urma_request_write(&r, &peer, base, memory, 64);
	post(&r);
	assert_said("urma_post_jetty_send_wr", "needs URMA_ACCESS_WRITE",
		    "in the flag of urma_register_seg");
	drain_failure();
}

static void a_right_that_was_not_imported(void **state)
{
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_WRITE };
	urma_target_seg_t *old = peer.seg;
	urma_token_t token = { .token = URMA_SIDE_TOKEN };
	urma_seg_t seg = told.told.seg;
	struct urma_request r;

	(void)state;
	peer.seg = urma_import_seg(side.ctx, &seg, &token, 0, flag);
	assert_non_null(peer.seg);
	urma_request_write(&r, &peer, base, memory, 64);
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	assert_nothing_was_said();
	urma_request_read(&r, &peer, base, memory, 64);
	post(&r);
	assert_said("urma_post_jetty_send_wr", "needs URMA_ACCESS_READ",
		    "in the flag of urma_import_seg");
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	assert_int_equal(urma_unimport_seg(peer.seg), URMA_SUCCESS);
	peer.seg = old;
}

static void a_completion_that_was_not_requested(void **state)
{
	struct urma_request r;
	urma_cr_t cr;
	uint64_t until = suite_now_ms() + SOON_MS;
	const char *lines;

	(void)state;
	urma_request_write(&r, &peer, base, memory, 64);
	r.wr.flag.bs.complete_enable = 0;
	post(&r);
	post(&r);
	do
		assert_int_equal(urma_poll_jfc(side.jfc, 1, &cr), 0);
	while (!strstr(xtal_last_error(), "urma_poll_jfc") && suite_now_ms() < until);
	assert_said("urma_poll_jfc", "the last 2 requests", "set flag.bs.complete_enable");
	/* Once is enough. */
	until = suite_now_ms() + 50;
	while (suite_now_ms() < until)
		assert_int_equal(urma_poll_jfc(side.jfc, 1, &cr), 0);
	lines = new_lines();
	assert_string_equal(lines, "");
	r.wr.flag.bs.complete_enable = 1;
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	assert_nothing_was_said();
}

/* The same by a program that sleeps until something comes. */
static void an_event_that_cannot_come(void **state)
{
	urma_jfc_cfg_t cfg = { .depth = 8 };
	urma_jfce_t *other = urma_create_jfce(side.ctx);
	urma_jfc_t *fired, *second;
	struct urma_request r;
	uint32_t one = 1;
	const char *lines;

	(void)state;
	assert_non_null(other);
	assert_int_equal(urma_wait_jfc(other, 1, 1050, &fired), 0);
	assert_said("urma_wait_jfc", "no completion queue was made with this event channel",
		    "set jfce of urma_jfc_cfg_t");
	assert_int_equal(urma_delete_jfce(other), URMA_SUCCESS);
	/* Nobody asked for a record, but to another queue of the channel may yet be posted. */
	cfg.jfce = side.jfce;
	second = urma_create_jfc(side.ctx, &cfg);
	urma_request_write(&r, &peer, base, memory, 64);
	r.wr.flag.bs.complete_enable = 0;
	post(&r);
	assert_int_equal(urma_rearm_jfc(side.jfc, false), URMA_SUCCESS);
	assert_int_equal(urma_rearm_jfc(second, false), URMA_SUCCESS);
	assert_int_equal(urma_wait_jfc(side.jfce, 1, 1050, &fired), 0);
	assert_nothing_was_said();
	assert_int_equal(urma_delete_jfc(second), URMA_SUCCESS);
	assert_int_equal(urma_wait_jfc(side.jfce, 1, 10, &fired), 0); /* a second is over */
	assert_said("urma_wait_jfc", "the last 1 requests", "set flag.bs.complete_enable");
	r.wr.flag.bs.complete_enable = 1;
	post(&r);
	assert_int_equal(urma_wait_jfc(side.jfce, 1, -1, &fired), 1);
	urma_ack_jfc(&fired, &one, 1);
	/* It was not armed again. */
	post(&r);
	assert_int_equal(urma_wait_jfc(side.jfce, 1, 1100, &fired), 0);
	assert_said("urma_wait_jfc", "has records and is not armed", "call it before each wait");
	assert_int_equal(urma_wait_jfc(side.jfce, 1, 20, &fired), 0); /* once is enough */
	lines = new_lines();
	assert_string_equal(lines, "");
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
}

static void submission_taken_for_completion(void **state)
{
	struct urma_request r;
	urma_seg_cfg_t cfg = { .va = (uintptr_t)memory,
			       .len = 4096,
			       .flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE };
	urma_target_seg_t *seg = urma_register_seg(side.ctx, &cfg);

	(void)state;
	assert_non_null(seg);
	urma_request_write(&r, &peer, base, memory, 64);
	r.wr.user_ctx = 77;
	post(&r);
	memory[5]++; /* it may not have been read yet */
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	assert_said("urma_poll_jfc", "data of request 77", "leave them alone until");
	post(&r);
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	assert_said("urma_unregister_seg", "request 77 on jetty 0x", "poll it before");
	assert_int_equal(urma_delete_jetty(side.jetty), URMA_SUCCESS);
	side.jetty = NULL;
	assert_said("urma_delete_jetty", "1 requests, 77 the first", "poll them before");
}

static void structs_of_another_version(void **state)
{
	urma_seg_cfg_t cfg = { .va = (uintptr_t)memory,
			       .len = 4096,
			       .flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE };
	urma_jfs_cfg_t jfs = { .depth = 8, .trans_mode = URMA_TM_RM, .jfc = side.jfc };
	urma_import_seg_flag_t flag = { .value = 1u << 31 };
	urma_token_t token = { .token = URMA_SIDE_TOKEN };
	urma_target_seg_t *seg;
	urma_seg_t described = told.told.seg;
	urma_jfs_t *made;
	struct urma_request r;

	(void)state;
	cfg.flag.value |= 1u << 20;
	seg = urma_register_seg(side.ctx, &cfg);
	assert_said("urma_register_seg", "flag of urma_seg_cfg_t",
		    "the urma_types.h of this library");
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	jfs.flag.value |= 1u << 31;
	made = urma_create_jfs(side.ctx, &jfs);
	assert_said("urma_create_jfs", "flag of urma_jfs_cfg_t",
		    "the urma_types.h of this library");
	assert_int_equal(urma_delete_jfs(made), URMA_SUCCESS);
	described.attr.bs.reserved = 5;
	seg = urma_import_seg(side.ctx, &described, &token, 0, (urma_import_seg_flag_t){ 0 });
	assert_said("urma_import_seg", "attr of urma_seg_t", "the urma_types.h of this library");
	assert_int_equal(urma_unimport_seg(seg), URMA_SUCCESS);
	seg = urma_import_seg(side.ctx, &told.told.seg, &token, 0, flag);
	assert_said("urma_import_seg", "urma_import_seg_flag_t",
		    "the urma_types.h of this library");
	assert_int_equal(urma_unimport_seg(seg), URMA_SUCCESS);
	urma_request_write(&r, &peer, base, memory, 64);
	r.wr.flag.value |= 1u << 30;
	post(&r);
	assert_said("urma_post_jetty_send_wr", "flag of urma_jfs_wr_t", "compile with");
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
}

/* ---- CDMA ---- */

static void a_cdma_struct_of_another_version(void **state)
{
	struct queue_cfg q_cfg = { .queue_depth = 16, .rmt_eid.dw0 = 0x7f000001, .rsv_bitmap = 1 };
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)memory, .len = 64, .rsvd = { 0, 0, 0, 9 } };
	struct dma_queue *made = dma_alloc_queue(ctx, &q_cfg);
	struct dma_seg *seg;

	(void)state;
	assert_non_null(made);
	assert_said("dma_alloc_queue", "reserved fields of queue_cfg",
		    "the cdma_u_lib.h of this library");
	dma_free_queue(made);
	seg = dma_register_seg(ctx, &cfg);
	assert_non_null(seg);
	assert_said("dma_register_seg", "reserved fields of dma_seg_cfg", "clear the struct");
	dma_unregister_seg(ctx, seg);
	cfg.tid = local->tid;
	seg = dma_import_seg(&cfg);
	assert_non_null(seg);
	assert_said("dma_import_seg", "reserved fields of dma_seg_cfg", "clear the struct");
	dma_unimport_seg(seg);
}

static int status_of(dma_status posted)
{
	struct dma_cr cr;

	assert_int_equal(posted, DMA_STATUS_OK);
	assert_int_equal(dma_wait_queue(queue, 1, (int)SOON_MS, &cr), 1);
	return (int)cr.status;
}

static struct dma_seg slice(const struct dma_seg *seg, uint64_t offset, uint64_t len)
{
	struct dma_seg s = *seg;

	s.sva += offset;
	s.len = len;
	return s;
}

static void addresses_of_cdma(void **state)
{
	struct dma_seg to = slice(&told.seg, 0, 8), from = slice(local, 0, 8);
	struct dma_seg bad = to;
	static uint64_t elsewhere;
	void *gone = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)gone, .len = LEN };
	struct dma_seg *gone_seg = dma_register_seg(ctx, &cfg);

	(void)state;
	assert_non_null(gone_seg);
	assert_int_equal(mprotect(gone, LEN, PROT_NONE), 0);
	bad.sva = (uintptr_t)memory;
	assert_int_equal(status_of(dma_write(queue, &bad, &from)), DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_non_null(strstr(xtal_last_error(), "a pointer of this process"));
	assert_non_null(strstr(new_lines(), "sva of the owner's segment"));
	bad = to;
	bad.tid = 0;
	assert_int_equal(dma_read(queue, &bad, &from), DMA_STATUS_OK);
	assert_said("dma_read", "has tid 0", "dma_import_seg");
	assert_int_equal(dma_wait_queue(queue, 1, (int)SOON_MS, &(struct dma_cr){ 0 }), 1);
	new_lines();
	bad = from;
	bad.sva = (uintptr_t)&elsewhere;
	assert_int_equal(dma_write(queue, &to, &bad), DMA_STATUS_OK);
	assert_said("dma_write", "local range of 8 bytes", "register it with dma_register_seg");
	assert_int_equal(dma_wait_queue(queue, 1, (int)SOON_MS, &(struct dma_cr){ 0 }), 1);
	new_lines();
	bad = slice(gone_seg, 0, 8);
	assert_int_equal(status_of(dma_write(queue, &to, &bad)), DMA_CR_LOC_ACCESS_ERR);
	assert_said("dma_write", "not all mapped and readable", "until the completion");
	new_lines();
	assert_int_equal(status_of(dma_read(queue, &to, &bad)), DMA_CR_LOC_ACCESS_ERR);
	assert_said("dma_read", "not all mapped and writable", "until the completion");
	new_lines();
	dma_unregister_seg(ctx, gone_seg);
	munmap(gone, LEN);
	bad = slice(&told.seg, LEN - 4, 8);
	assert_int_equal(status_of(dma_write(queue, &bad, &from)), DMA_CR_REM_ACCESS_ABORT_ERR);
	assert_non_null(strstr(new_lines(), "its range leaves the owner's segment"));
}

static void completions_of_cdma(void **state)
{
	struct dma_seg to = slice(&told.seg, 0, 8), from = slice(local, 0, 8);
	struct dma_cr cr;

	(void)state;
	assert_int_equal(dma_write(queue, &to, &from), DMA_STATUS_OK);
	memory[3]++;
	assert_int_equal(dma_wait_queue(queue, 1, (int)SOON_MS, &cr), 1);
	assert_said("dma_wait_queue", "data of an operation on queue", "leave them alone until");
	assert_int_equal(dma_wait_queue(queue, 1, 20, &cr), -EFAULT);
	assert_said("dma_wait_queue", "20 ms on queue", "post before");
	assert_int_equal(dma_write(queue, &to, &from), DMA_STATUS_OK);
	dma_unregister_seg(ctx, local);
	local = NULL;
	assert_said("dma_unregister_seg", "uses memory of the segment", "poll it before");
	dma_free_queue(queue);
	queue = NULL;
	assert_said("dma_free_queue", "completions of 1 operations", "poll them before");
}

/* ---- No mistake ---- */

static void a_correct_program_hears_nothing(void **state)
{
	struct dma_seg to = slice(&told.seg, 0, 8), from = slice(local, 0, 8);
	struct urma_request r;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		if (i % 4 == 0) /* all that read it are done */
			memset(memory, (int)i, 8192);
		urma_request_write(&r, &peer, base + 8 * i, memory + 8, i % 3 ? 8 : 4096);
		r.wr.user_ctx = i;
		r.wr.flag.bs.complete_enable = i % 4 == 3;
		post(&r);
		if (i % 4 != 3)
			continue;
		assert_int_equal(next_record().user_ctx, i);
	}
	urma_request_read(&r, &peer, base, memory + 8192, 4096);
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	urma_request_cas(&r, &peer, base + 4096, memory, 8, 0, 9);
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	urma_request_fetch(&r, &peer, URMA_OPC_FADD, base + 4096, memory, 8, 1);
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	urma_request_send(&r, &peer, memory, 64);
	post(&r);
	assert_int_equal(next_record().status, URMA_CR_SUCCESS);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(status_of(dma_write(queue, &to, &from)), DMA_CR_SUCCESS);
		assert_int_equal(status_of(dma_read(queue, &to, &from)), DMA_CR_SUCCESS);
		assert_int_equal(status_of(dma_faa(queue, &to, &from, 1)), DMA_CR_SUCCESS);
		assert_int_equal(status_of(dma_cas(queue, &to, &from, 1, 2)), DMA_CR_SUCCESS);
		memory[0]++;
	}
	assert_nothing_was_said();
	close_all();
	assert_nothing_was_said();
	open_with(0);
	assert_nothing_was_said();
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_plain_pointer_as_remote_address),
		CASE(a_descriptor_that_was_not_imported),
		CASE(several_remote_pieces),
		CASE(a_range_outside_of_its_segment),
		CASE(a_right_that_was_not_registered),
		CASE(a_right_that_was_not_imported),
		CASE(a_completion_that_was_not_requested),
		CASE(an_event_that_cannot_come),
		CASE(a_cdma_struct_of_another_version),
		CASE(submission_taken_for_completion),
		CASE(structs_of_another_version),
		CASE(addresses_of_cdma),
		CASE(completions_of_cdma),
		CASE(a_correct_program_hears_nothing),
	};
	int fd = mkstemp(log_name), failed;

	setenv("XTAL_LOG", log_name, 1);
	setenv("XTAL_CHECK", "1", 1);
	setenv("XTAL_ADOPT", "off", 1);
	actor_init();
	failed = cmocka_run_group_tests_name("check", tests, NULL, NULL);
	close(fd);
	unlink(log_name);
	return failed;
}
