/* SPDX-License-Identifier: MIT */
/* See urma_side.h. */
#include "lib/urma_side.h"

#include <string.h>
#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static urma_token_t token = { URMA_SIDE_TOKEN };

static int open_queues(struct urma_side *s, const struct urma_side_attr *attr)
{
	uint32_t depth = attr->depth ? attr->depth : 64;
	uint8_t sge = attr->max_sge ? (uint8_t)attr->max_sge : 4;
	urma_transport_mode_t mode = attr->mode ? attr->mode : URMA_TM_RM;
	uint32_t policy = attr->no_token ? URMA_TOKEN_NONE : URMA_TOKEN_PLAIN_TEXT;
	urma_jfc_cfg_t jfc = { .depth = 4 * depth, .jfce = s->jfce };
	urma_jfr_cfg_t jfr = { .depth = depth,
			       .flag.bs.token_policy = policy,
			       .trans_mode = mode,
			       .max_sge = sge,
			       .min_rnr_timer = attr->min_rnr_timer ? attr->min_rnr_timer
								    : URMA_TYPICAL_MIN_RNR_TIMER,
			       .token_value = token };
	urma_jetty_cfg_t jetty = {
		.flag.bs.share_jfr = 1,
		.jfs_cfg = { .depth = depth,
			     .flag.bs.error_suspend = attr->error_suspend,
			     .trans_mode = mode,
			     .max_sge = sge,
			     .max_rsge = 2,
			     .rnr_retry = attr->rnr_retry,
			     .err_timeout = attr->err_timeout ? attr->err_timeout
							      : URMA_TYPICAL_ERR_TIMEOUT }
	};

	s->jfc = urma_create_jfc(s->ctx, &jfc);
	if (attr->two_jfcs)
		s->rjfc = urma_create_jfc(s->ctx, &jfc);
	if (!s->jfc || (attr->two_jfcs && !s->rjfc))
		return 5;
	jfr.jfc = s->rjfc ? s->rjfc : s->jfc;
	s->jfr = urma_create_jfr(s->ctx, &jfr);
	if (!s->jfr)
		return 6;
	jetty.jfs_cfg.jfc = s->jfc;
	jetty.shared.jfr = s->jfr;
	s->jetty = urma_create_jetty(s->ctx, &jetty);
	return s->jetty ? 0 : 7;
}

int urma_side_open(struct urma_side *s, const struct urma_side_attr *attr)
{
	urma_seg_cfg_t seg = { .va = (uintptr_t)attr->memory,
			       .len = attr->len,
			       .token_value = token,
			       .flag.bs = { .token_policy = attr->no_token ? URMA_TOKEN_NONE
									   : URMA_TOKEN_PLAIN_TEXT,
					    .access = attr->access ? attr->access
								   : URMA_ACCESS_READ |
									     URMA_ACCESS_WRITE |
									     URMA_ACCESS_ATOMIC } };
	urma_status_t status = urma_init(NULL);
	int count, step;

	memset(s, 0, sizeof(*s));
	if (status && status != URMA_EEXIST)
		return 1;
	s->list = urma_get_device_list(&count);
	if (!s->list || !count)
		return 2;
	s->ctx = urma_create_context(attr->choose ? attr->choose(s->list, count) : s->list[0], 0);
	if (!s->ctx)
		return 3;
	s->jfce = urma_create_jfce(s->ctx);
	if (!s->jfce)
		return 4;
	step = open_queues(s, attr);
	if (step || !attr->memory)
		return step;
	s->seg = urma_register_seg(s->ctx, &seg);
	return s->seg ? 0 : 8;
}

int urma_side_close(struct urma_side *s)
{
	if (s->jetty && urma_delete_jetty(s->jetty))
		return 1;
	if (s->jfr && urma_delete_jfr(s->jfr))
		return 2;
	if (s->jfc && urma_delete_jfc(s->jfc))
		return 3;
	if (s->rjfc && urma_delete_jfc(s->rjfc))
		return 4;
	if (s->seg && urma_unregister_seg(s->seg))
		return 5;
	if (s->jfce && urma_delete_jfce(s->jfce))
		return 6;
	if (s->ctx && urma_delete_context(s->ctx))
		return 7;
	urma_free_device_list(s->list);
	memset(s, 0, sizeof(*s));
	return 0;
}

void urma_side_tell(const struct urma_side *s, struct urma_told *out)
{
	memset(out, 0, sizeof(*out));
	out->jetty = s->jetty->jetty_id;
	out->jfr = s->jfr->jfr_id;
	if (s->seg)
		out->seg = s->seg->seg;
	out->mode = s->jfr->jfr_cfg.trans_mode;
	out->token = s->jfr->jfr_cfg.flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
}

int urma_peer_import(struct urma_side *s, const struct urma_told *told, struct urma_peer *out)
{
	uint32_t policy = told->token ? URMA_TOKEN_PLAIN_TEXT : URMA_TOKEN_NONE;
	urma_tp_type_t tp = told->mode == URMA_TM_UM ? URMA_UTP : URMA_CTP;
	urma_rjetty_t rjetty = { .jetty_id = told->jetty,
				 .trans_mode = told->mode,
				 .type = URMA_JETTY,
				 .flag.bs.token_policy = policy,
				 .tp_type = tp };
	urma_rjfr_t rjfr = { .jfr_id = told->jfr,
			     .trans_mode = told->mode,
			     .flag.bs.token_policy = policy,
			     .tp_type = tp };
	urma_seg_t seg = told->seg;

	memset(out, 0, sizeof(*out));
	out->jetty = urma_import_jetty(s->ctx, &rjetty, &token);
	if (!out->jetty)
		return 1;
	out->jfr = urma_import_jfr(s->ctx, &rjfr, &token);
	if (!out->jfr)
		return 2;
	if (seg.len) {
		out->seg = urma_import_seg(s->ctx, &seg, &token, 0, (urma_import_seg_flag_t){ 0 });
		if (!out->seg)
			return 3;
	}
	return told->mode == URMA_TM_RC && urma_bind_jetty(s->jetty, out->jetty) ? 4 : 0;
}

int urma_peer_drop(struct urma_side *s, struct urma_peer *peer)
{
	if (s->jetty && s->jetty->remote_jetty == peer->jetty && urma_unbind_jetty(s->jetty))
		return 1;
	if (urma_unimport_jetty(peer->jetty) || urma_unimport_jfr(peer->jfr))
		return 2;
	return peer->seg && urma_unimport_seg(peer->seg) ? 3 : 0;
}

static void begin(struct urma_request *r, const struct urma_peer *to, urma_opcode_t opcode)
{
	memset(r, 0, sizeof(*r));
	r->wr.opcode = opcode;
	r->wr.flag.bs.complete_enable = 1;
	r->wr.tjetty = to->jetty;
}

void urma_request_write(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
			const void *local, uint32_t len)
{
	begin(r, to, URMA_OPC_WRITE);
	r->src = (urma_sge_t){ .addr = (uintptr_t)local, .len = len };
	r->dst[0] = (urma_sge_t){ .addr = remote, .len = len, .tseg = to->seg };
	r->wr.rw.src = (urma_sg_t){ &r->src, 1 };
	r->wr.rw.dst = (urma_sg_t){ r->dst, 1 };
}

void urma_request_read(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
		       void *local, uint32_t len)
{
	begin(r, to, URMA_OPC_READ);
	r->src = (urma_sge_t){ .addr = remote, .len = len, .tseg = to->seg };
	r->dst[0] = (urma_sge_t){ .addr = (uintptr_t)local, .len = len };
	r->wr.rw.src = (urma_sg_t){ &r->src, 1 };
	r->wr.rw.dst = (urma_sg_t){ r->dst, 1 };
}

void urma_request_cas(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
		      void *old, uint32_t len, uint64_t compare, uint64_t swap)
{
	begin(r, to, URMA_OPC_CAS);
	r->src = (urma_sge_t){ .addr = (uintptr_t)old, .len = len };
	r->dst[0] = (urma_sge_t){ .addr = remote, .len = len, .tseg = to->seg };
	r->wr.cas.src = &r->src;
	r->wr.cas.dst = r->dst;
	r->wr.cas.cmp_data = compare;
	r->wr.cas.swap_data = swap;
}

void urma_request_fetch(struct urma_request *r, const struct urma_peer *to, urma_opcode_t opcode,
			uint64_t remote, void *old, uint32_t len, uint64_t operand)
{
	begin(r, to, opcode);
	r->src = (urma_sge_t){ .addr = (uintptr_t)old, .len = len };
	r->dst[0] = (urma_sge_t){ .addr = remote, .len = len, .tseg = to->seg };
	r->wr.faa.src = &r->src;
	r->wr.faa.dst = r->dst;
	r->wr.faa.operand = operand;
}

void urma_request_send(struct urma_request *r, const struct urma_peer *to, const void *local,
		       uint32_t len)
{
	begin(r, to, URMA_OPC_SEND);
	r->src = (urma_sge_t){ .addr = (uintptr_t)local, .len = len };
	r->wr.send.src = (urma_sg_t){ &r->src, 1 };
}

urma_status_t urma_side_post(struct urma_side *s, struct urma_request *r)
{
	urma_jfs_wr_t *bad;

	return urma_post_jetty_send_wr(s->jetty, &r->wr, &bad);
}

urma_status_t urma_side_receive(struct urma_side *s, void *local, uint32_t len, uint64_t user_ctx)
{
	urma_sge_t sge = { .addr = (uintptr_t)local, .len = len };
	urma_jfr_wr_t wr = { .src = { &sge, 1 }, .user_ctx = user_ctx }, *bad;

	return urma_post_jfr_wr(s->jfr, &wr, &bad);
}

bool urma_side_take(urma_jfc_t *jfc, urma_cr_t *cr, unsigned timeout_ms)
{
	uint64_t deadline = now_ms() + timeout_ms;

	memset(cr, 0xee, sizeof(*cr));
	for (unsigned i = 1;; i++) {
		int n = urma_poll_jfc(jfc, 1, cr);

		if (n)
			return n == 1;
		if (i % 256 == 0 && now_ms() >= deadline)
			return false;
	}
}
