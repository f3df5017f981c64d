/* SPDX-License-Identifier: MIT */
/* See lib_urma.h. */
#include "lib_urma.h"

#include <string.h>

#define SECRET 0xbe9c5u

/* What one side tells the other. */
struct told {
	urma_jetty_id_t jetty;
	urma_seg_t seg;
};

static urma_token_t token = { SECRET };

static void make_queues(struct bench_urma *u, uint32_t depth)
{
	urma_jfc_cfg_t jfc = { .depth = depth };
	urma_jfr_cfg_t jfr = { .depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1 };
	urma_jetty_cfg_t jetty = { .flag.bs.share_jfr = 1,
				   .jfs_cfg = { .depth = depth,
						.trans_mode = URMA_TM_RM,
						.max_sge = 1,
						.max_rsge = 1,
						.max_inline_data = 64,
						.rnr_retry = 7,
						.err_timeout = URMA_TYPICAL_ERR_TIMEOUT } };

	u->jfc = urma_create_jfc(u->ctx, &jfc);
	u->rjfc = urma_create_jfc(u->ctx, &jfc);
	jfr.jfc = u->rjfc;
	u->jfr = u->rjfc ? urma_create_jfr(u->ctx, &jfr) : NULL;
	jetty.jfs_cfg.jfc = u->jfc;
	jetty.shared.jfr = u->jfr;
	u->jetty = u->jfr ? urma_create_jetty(u->ctx, &jetty) : NULL;
	if (!u->jetty)
		bench_die("no queues of URMA");
}

static urma_target_seg_t *register_memory(struct bench_urma *u, void *base, uint64_t len)
{
	urma_seg_cfg_t cfg = { .va = (uintptr_t)base,
			       .len = len,
			       .token_value = token,
			       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						      URMA_ACCESS_ATOMIC } };
	urma_target_seg_t *seg = urma_register_seg(u->ctx, &cfg);

	if (!seg)
		bench_die("no segment of URMA");
	return seg;
}

void bench_urma_open(struct bench_urma *u, const struct bench_side *side, uint32_t depth)
{
	urma_import_seg_flag_t none = { .value = 0 };
	urma_rjetty_t rjetty = { .trans_mode = URMA_TM_RM,
				 .type = URMA_JETTY,
				 .tp_type = URMA_CTP };
	struct told told = { 0 };
	int count;

	memset(u, 0, sizeof(*u));
	if (urma_init(NULL))
		bench_die("urma_init");
	u->list = urma_get_device_list(&count);
	if (!u->list || (unsigned)count <= side->device)
		bench_die("no device of URMA");
	u->ctx = urma_create_context(u->list[side->device], 0);
	if (!u->ctx)
		bench_die("no context of URMA");
	make_queues(u, depth);
	u->seg = register_memory(u, side->base, side->len);
	told = (struct told){ .jetty = u->jetty->jetty_id, .seg = u->seg->seg };
	bench_tell(side, &told, sizeof(told));
	bench_hear(side, &told, sizeof(told));
	u->there = told.seg.ubva.va;
	rjetty.jetty_id = told.jetty;
	u->target = urma_import_jetty(u->ctx, &rjetty, &token);
	u->remote = urma_import_seg(u->ctx, &told.seg, &token, 0, none);
	if (!u->target || !u->remote)
		bench_die("cannot import");
}

void bench_urma_source(struct bench_urma *u, void *base, uint64_t len)
{
	u->source = register_memory(u, base, len);
}

void bench_urma_close(struct bench_urma *u)
{
	urma_unimport_jetty(u->target);
	urma_unimport_seg(u->remote);
	urma_delete_jetty(u->jetty);
	urma_delete_jfr(u->jfr);
	urma_delete_jfc(u->jfc);
	urma_delete_jfc(u->rjfc);
	urma_unregister_seg(u->seg);
	if (u->source)
		urma_unregister_seg(u->source);
	if (urma_delete_context(u->ctx))
		bench_die("the context of URMA stays");
	urma_free_device_list(u->list);
	urma_uninit();
}

void bench_urma_receive(struct bench_urma *u, void *addr, uint32_t len)
{
	urma_sge_t sge = { .addr = (uintptr_t)addr, .len = len };
	urma_jfr_wr_t wr = { .src = { &sge, 1 } }, *bad;

	if (urma_post_jfr_wr(u->jfr, &wr, &bad))
		bench_die("urma_post_jfr_wr");
}

void bench_urma_bad(urma_cr_status_t status)
{
	bench_die("a request of URMA ended with %s", xtal_status_name((int)status));
}

void bench_urma_request(struct bench_urma_request *r, const struct bench_urma *u, urma_opcode_t op,
			void *local, uint32_t len)
{
	urma_sg_t here = { &r->here, 1 }, there = { &r->there, 1 };

	memset(r, 0, sizeof(*r));
	r->here = (urma_sge_t){ .addr = (uintptr_t)local, .len = len };
	r->there = (urma_sge_t){ .addr = u->there, .len = len, .tseg = u->remote };
	r->wr.opcode = op;
	r->wr.flag.bs.complete_enable = 1;
	r->wr.tjetty = u->target;
	if (op == URMA_OPC_SEND)
		r->wr.send.src = here;
	else if (op == URMA_OPC_READ)
		r->wr.rw = (urma_rw_wr_t){ .src = there, .dst = here };
	else
		r->wr.rw = (urma_rw_wr_t){ .src = here, .dst = there };
}
