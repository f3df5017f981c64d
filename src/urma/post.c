/* SPDX-License-Identifier: MIT */
/*
 * Requests: each becomes the core's form of itself on the stack, setting only what the core reads
 * for it. No lock, no allocation.
 */
#include <errno.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "perf.h"
#include "queue.h"

/* A request in the core's form. */
struct draft {
	struct xtal_op op;
	struct xtal_sge sges[UB_MAX_SGE];
	const struct ub_target *target; /* NULL: a NOP needs none */
};

static __attribute__((cold, noinline)) urma_status_t refuse_target(const struct ub_sender *s,
								   const urma_jfs_wr_t *wr)
{
	if (s->rc)
		ub_refuse("urma_post_jetty_send_wr: jetty 0x%x is RC and not bound", s->id);
	else if (!wr->tjetty)
		ub_refuse("opcode 0x%x on queue 0x%x: tjetty is NULL", (unsigned)wr->opcode, s->id);
	else
		ub_refuse(
			"opcode 0x%x on queue 0x%x: tjetty %p is no imported jetty or receive queue",
			(unsigned)wr->opcode, s->id, (void *)wr->tjetty);
	return URMA_EINVAL;
}

/* Whom the request is for. */
static inline bool find_target(const struct ub_sender *s, const urma_jfs_wr_t *wr,
			       const struct ub_target **out)
{
	const struct ub_target *t = s->rc ? s->bound : ub_target_of(wr->tjetty);

	*out = t;
	return xtal_likely(t && t->magic == UB_TARGET_MAGIC);
}

static __attribute__((cold, noinline)) urma_status_t refuse_local(const struct ub_sender *s,
								  const urma_sg_t *sg)
{
	if (sg->num_sge > s->max_sge)
		ub_refuse("queue 0x%x: num_sge is %u, max_sge of the queue %u", s->id, sg->num_sge,
			  s->max_sge);
	else if (!sg->sge)
		ub_refuse("queue 0x%x: num_sge is %u and sge NULL", s->id, sg->num_sge);
	else
		ub_refuse("queue 0x%x: the pieces have more than %u bytes together", s->id,
			  XTAL_MAX_MESSAGE);
	return URMA_EINVAL;
}

/* Local memory: one piece, several, or none. */
static inline urma_status_t set_local(struct draft *d, const struct ub_sender *s,
				      const urma_sg_t *sg)
{
	uint64_t sum = 0;
	uint32_t used = 0;

	if (xtal_unlikely(sg->num_sge > s->max_sge || (sg->num_sge && !sg->sge)))
		return refuse_local(s, sg);
	for (uint32_t i = 0; i < sg->num_sge; i++) {
		if (!sg->sge[i].len)
			continue;
		d->sges[used++] = (struct xtal_sge){ sg->sge[i].addr, sg->sge[i].len };
		sum += sg->sge[i].len;
	}
	if (xtal_unlikely(sum > XTAL_MAX_MESSAGE))
		return refuse_local(s, sg);
	d->op.len = sum;
	if (xtal_likely(used <= 1)) {
		d->op.local = used ? d->sges[0].addr : 0;
		return URMA_SUCCESS;
	}
	d->op.local = (uintptr_t)d->sges;
	d->op.sges = (uint8_t)used;
	d->op.flags |= XTAL_OP_SGES;
	return URMA_SUCCESS;
}

/* The payload is read now; the memory may be anywhere. */
static urma_status_t set_inline(struct draft *d, const struct ub_sender *s)
{
	if (d->op.len > s->max_inline) {
		ub_refuse("queue 0x%x: %llu bytes inline, the limit of the queue is %u", s->id,
			  (unsigned long long)d->op.len, s->max_inline);
		return URMA_EINVAL;
	}
	d->op.flags |= XTAL_OP_INLINE;
	return URMA_SUCCESS;
}

static __attribute__((cold, noinline)) urma_status_t refuse_remote(const struct ub_sender *s,
								   const urma_sge_t *sge)
{
	if (!sge)
		ub_refuse("queue 0x%x: there is no remote piece", s->id);
	else if (sge->tseg)
		ub_refuse(
			"queue 0x%x: tseg %p of the remote piece is no segment of this library; the "
			"peer's descriptor must be imported with urma_import_seg",
			s->id, (void *)sge->tseg);
	else
		ub_refuse("queue 0x%x: the remote piece has neither tseg nor user_tseg", s->id);
	return URMA_EINVAL;
}

/* Nothing lies there, at whatever owner: the request fails in its turn. */
#define NOWHERE 0u

/* Remote memory; key may be NULL. */
static inline urma_status_t set_remote(struct xtal_remote *out, struct xtal_key *key,
				       const struct draft *d, const struct ub_sender *s,
				       const urma_sge_t *sge, uint64_t len)
{
	const struct ub_segment *seg;
	bool token;

	if (xtal_unlikely(!sge))
		return refuse_remote(s, sge);
	seg = ub_segment_of(sge->tseg);
	if (xtal_likely(seg != NULL)) {
		if (xtal_unlikely(seg->magic != UB_SEGMENT_MAGIC))
			return refuse_remote(s, sge);
		*out = seg->where;
		out->addr = sge->addr - seg->where.addr <= seg->len &&
					    len <= seg->len - (sge->addr - seg->where.addr)
				    ? sge->addr
				    : NOWHERE;
		if (key)
			*key = (struct xtal_key){ seg->serial, seg->whole ? 0 : d->target->serial };
		if (xtal_likely(seg->whole))
			return URMA_SUCCESS;
		if (!out->tid)
			out->tid = d->target->where.tid;
		if (!out->eid.hi && !out->eid.lo)
			out->eid = d->target->where.eid;
		return URMA_SUCCESS;
	}
	if (!sge->user_tseg)
		return refuse_remote(s, sge);
	token = sge->user_tseg->attr.bs.token_policy != URMA_TOKEN_NONE;
	*out = (struct xtal_remote){
		.addr = sge->addr,
		.eid = d->target->where.eid,
		.tid = d->target->where.tid,
		.token = token ? sge->user_tseg->token_value.token : 0,
		.index = sge->user_tseg->token_id,
		.token_valid = token,
	};
	return URMA_SUCCESS;
}

static inline urma_status_t first_remote(struct draft *d, const struct ub_sender *s,
					 const urma_sg_t *sg)
{
	return set_remote(&d->op.remote, &d->op.key, d, s, sg->num_sge ? sg->sge : NULL, d->op.len);
}

static urma_status_t draft_write(struct draft *d, const struct ub_sender *s,
				 const urma_jfs_wr_t *wr)
{
	urma_status_t status = set_local(d, s, &wr->rw.src);

	d->op.opcode = XTAL_OP_WRITE;
	if (!status && wr->flag.bs.inline_flag)
		status = set_inline(d, s);
	if (!status)
		status = first_remote(d, s, &wr->rw.dst);
	if (!d->op.len)
		d->op.opcode = XTAL_OP_NOP;
	return status;
}

static urma_status_t draft_read(struct draft *d, const struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	urma_status_t status = set_local(d, s, &wr->rw.dst);

	d->op.opcode = XTAL_OP_READ;
	if (!status)
		status = first_remote(d, s, &wr->rw.src);
	if (!d->op.len)
		d->op.opcode = XTAL_OP_NOP;
	return status;
}

static urma_status_t draft_notify(struct draft *d, const struct ub_sender *s,
				  const urma_jfs_wr_t *wr)
{
	const urma_sg_t *dst = &wr->rw.dst;
	urma_status_t status;

	if (dst->num_sge != 2 || !dst->sge) {
		ub_refuse(
			"queue 0x%x: WRITE_NOTIFY with %u remote pieces; it needs 2, the data's and "
			"the word's",
			s->id, dst->num_sge);
		return URMA_EINVAL;
	}
	status = draft_write(d, s, wr);
	if (status)
		return status;
	if (d->op.opcode == XTAL_OP_NOP) { /* only the word */
		d->op.opcode = XTAL_OP_WRITE;
		d->op.flags |= XTAL_OP_INLINE;
		d->op.local = (uintptr_t)&wr->rw.notify_data;
		d->op.len = sizeof(wr->rw.notify_data);
		return set_remote(&d->op.remote, &d->op.key, d, s, &dst->sge[1], d->op.len);
	}
	d->op.flags |= XTAL_OP_NOTIFY;
	d->op.notify_data = wr->rw.notify_data;
	return set_remote(&d->op.notify, NULL, d, s, &dst->sge[1], sizeof(wr->rw.notify_data));
}

static urma_status_t draft_write_imm(struct draft *d, const struct ub_sender *s,
				     const urma_jfs_wr_t *wr)
{
	urma_status_t status = set_local(d, s, &wr->rw.src);

	if (!status && wr->flag.bs.inline_flag)
		status = set_inline(d, s);
	if (!status && d->op.len)
		status = first_remote(d, s, &wr->rw.dst);
	d->op.opcode = XTAL_OP_WRITE_IMM;
	d->op.notify = d->target->where;
	d->op.hint = wr->rw.target_hint;
	d->op.notify_data = wr->rw.notify_data;
	return status;
}

static urma_status_t draft_send(struct draft *d, const struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	urma_status_t status = set_local(d, s, &wr->send.src);

	if (!status && wr->flag.bs.inline_flag)
		status = set_inline(d, s);
	d->op.notify = d->target->where;
	d->op.hint = wr->send.target_hint;
	d->op.opcode = XTAL_OP_SEND;
	if (wr->opcode == URMA_OPC_SEND_IMM) {
		d->op.opcode = XTAL_OP_SEND_IMM;
		d->op.notify_data = wr->send.imm_data;
	} else if (wr->opcode == URMA_OPC_SEND_INVALIDATE) {
		const struct ub_segment *seg = ub_segment_of(wr->send.tseg);

		if (!seg || seg->magic != UB_SEGMENT_MAGIC) {
			ub_refuse("queue 0x%x: SEND_INVALIDATE with tseg %p, which is no imported "
				  "segment",
				  s->id, (void *)wr->send.tseg);
			return URMA_EINVAL;
		}
		d->op.opcode = XTAL_OP_SEND_INVALIDATE;
		d->op.notify_data = seg->pub.seg.token_id;
	}
	return status;
}

/* What all atomics have: one piece on each side, and its size. */
static urma_status_t draft_atomic(struct draft *d, const struct ub_sender *s,
				  const urma_jfs_wr_t *wr, enum xtal_opcode opcode)
{
	const urma_sge_t *src = wr->cas.src, *dst = wr->cas.dst; /* as in faa */
	bool cas = opcode == XTAL_OP_CAS;

	if (!src || !dst) {
		ub_refuse("opcode 0x%x on queue 0x%x: %s is NULL", (unsigned)wr->opcode, s->id,
			  src ? "dst" : "src");
		return URMA_EINVAL;
	}
	if (src->len != 4 && src->len != 8 && !(cas && src->len == 16)) {
		ub_refuse("opcode 0x%x on queue 0x%x: src has %u bytes; 4%s possible",
			  (unsigned)wr->opcode, s->id, src->len,
			  cas ? ", 8 and 16 are" : " and 8 are");
		return URMA_EINVAL;
	}
	d->op.opcode = (uint8_t)opcode;
	d->op.local = src->addr;
	d->op.len = src->len;
	return set_remote(&d->op.remote, &d->op.key, d, s, dst, src->len);
}

static uint64_t low_bytes(uint64_t value, uint64_t len)
{
	return len == 4 ? (uint32_t)value : value;
}

static urma_status_t draft_cas(struct draft *d, const struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	urma_status_t status = draft_atomic(d, s, wr, XTAL_OP_CAS);

	if (status)
		return status;
	if (d->op.len < 16) {
		d->op.compare[0] = low_bytes(wr->cas.cmp_data, d->op.len);
		d->op.operand[0] = low_bytes(wr->cas.swap_data, d->op.len);
		return URMA_SUCCESS;
	}
	if (!wr->cas.cmp_addr || !wr->cas.swap_addr) {
		ub_refuse("queue 0x%x: %s is NULL; for 16 bytes the values have addresses", s->id,
			  wr->cas.cmp_addr ? "swap_addr" : "cmp_addr");
		return URMA_EINVAL;
	}
	memcpy(d->op.compare, (const void *)(uintptr_t)wr->cas.cmp_addr, 16);
	memcpy(d->op.operand, (const void *)(uintptr_t)wr->cas.swap_addr, 16);
	return URMA_SUCCESS;
}

static urma_status_t draft_fetch(struct draft *d, const struct ub_sender *s,
				 const urma_jfs_wr_t *wr, enum xtal_opcode opcode)
{
	urma_status_t status = draft_atomic(d, s, wr, opcode);

	d->op.operand[0] =
		low_bytes(opcode == XTAL_OP_SWAP ? wr->cas.swap_data : wr->faa.operand, d->op.len);
	return status;
}

static urma_status_t draft_by_opcode(struct draft *d, const struct ub_sender *s,
				     const urma_jfs_wr_t *wr)
{
	switch ((int)wr->opcode) {
	case URMA_OPC_WRITE:
		return draft_write(d, s, wr);
	case URMA_OPC_WRITE_IMM:
		return draft_write_imm(d, s, wr);
	case URMA_OPC_WRITE_NOTIFY:
		return draft_notify(d, s, wr);
	case URMA_OPC_READ:
		return draft_read(d, s, wr);
	case URMA_OPC_CAS:
		return draft_cas(d, s, wr);
	case URMA_OPC_SWAP:
		return draft_fetch(d, s, wr, XTAL_OP_SWAP);
	case URMA_OPC_FADD:
		return draft_fetch(d, s, wr, XTAL_OP_FAA);
	case URMA_OPC_FSUB:
		return draft_fetch(d, s, wr, XTAL_OP_SUB);
	case URMA_OPC_FAND:
		return draft_fetch(d, s, wr, XTAL_OP_AND);
	case URMA_OPC_FOR:
		return draft_fetch(d, s, wr, XTAL_OP_OR);
	case URMA_OPC_FXOR:
		return draft_fetch(d, s, wr, XTAL_OP_XOR);
	case URMA_OPC_SEND:
	case URMA_OPC_SEND_IMM:
	case URMA_OPC_SEND_INVALIDATE:
		return draft_send(d, s, wr);
	case URMA_OPC_NOP:
		d->op.opcode = XTAL_OP_NOP;
		if (d->op.target)
			d->op.remote = d->target->where;
		return URMA_SUCCESS;
	}
	ub_refuse("queue 0x%x: opcode 0x%x is not supported", s->id, (unsigned)wr->opcode);
	return URMA_EINVAL;
}

static bool is_message(const urma_jfs_wr_t *wr)
{
	return wr->opcode == URMA_OPC_SEND || wr->opcode == URMA_OPC_SEND_IMM;
}

static urma_status_t draft(struct draft *d, const struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	memset(&d->op, 0, sizeof(d->op));
	d->op.user = wr->user_ctx;
	d->op.flags = s->strict ? 0 : XTAL_OP_ANY_LOCAL;
	if (!wr->flag.bs.complete_enable)
		d->op.flags |= XTAL_OP_UNSIGNALLED;
	if (wr->flag.bs.fence || wr->flag.bs.comp_order)
		d->op.flags |= XTAL_OP_FENCE;
	if (wr->flag.bs.solicited_enable)
		d->op.flags |= XTAL_OP_SOLICITED;
	if (!find_target(s, wr, &d->target) && (s->rc || wr->opcode != URMA_OPC_NOP))
		return refuse_target(s, wr);
	d->op.target = d->target && d->target->magic == UB_TARGET_MAGIC ? d->target->index : 0;
	if (xtal_unlikely(s->cfg->trans_mode == URMA_TM_UM && !is_message(wr))) {
		ub_refuse("opcode 0x%x on queue 0x%x: UM has SEND and SEND_IMM only",
			  (unsigned)wr->opcode, s->id);
		return URMA_EINVAL;
	}
	return draft_by_opcode(d, s, wr);
}

static __attribute__((cold, noinline)) urma_status_t refuse_post(struct ub_sender *s, int error)
{
	enum xtal_log_level level = XTAL_LOG_DEBUG;

	ub_log_start();
	if (error != -EAGAIN) {
		ub_refuse("queue 0x%x: %s", s->id,
			  error == -EFAULT     ? "memory of the request cannot be read"
			  : error == -ENOTCONN ? "its state is RESET"
					       : ub_reason(error));
		return error == -ENOMEM ? URMA_ENOMEM : URMA_EINVAL;
	}
	/* Programs fill a queue to the brim on purpose: in the log once, at the usual level. */
	if (!atomic_exchange_explicit(&s->was_full, true, memory_order_relaxed))
		level = XTAL_LOG_INFO;
	xtal_refuse_at(level, UB_TAG,
		       "queue 0x%x is full, %u requests are accepted and not yet polled", s->id,
		       s->depth);
	return URMA_ENOMEM;
}

/* A request for 8 bytes, in the shortest way. */
struct brief {
	uint64_t segment, addr, local, mark;
};

/* False: it is none that may go this way. */
static inline __attribute__((always_inline)) bool make_brief(struct brief *b,
							     const struct ub_sender *s,
							     const urma_jfs_wr_t *wr,
							     const urma_sge_t *here,
							     const urma_sge_t *there)
{
	const struct ub_segment *seg;
	const struct ub_target *target;

	if (!here || !there || here->len != 8)
		return false;
	seg = ub_segment_of(there->tseg);
	if (!seg || seg->magic != UB_SEGMENT_MAGIC || there->addr - seg->where.addr >= seg->any8 ||
	    !find_target(s, wr, &target))
		return false;
	b->segment = seg->serial;
	b->addr = there->addr;
	b->local = here->addr;
	b->mark = target->mark;
	if (xtal_unlikely(!wr->flag.bs.complete_enable)) /* a branch costs less than the sum */
		b->mark |= xtal_mark(0, XTAL_OP_UNSIGNALLED);
	return true;
}

static __attribute__((noinline)) bool read_short(struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	struct brief b;

	return wr->rw.src.num_sge == 1 && wr->rw.dst.num_sge == 1 &&
	       make_brief(&b, s, wr, wr->rw.dst.sge, wr->rw.src.sge) &&
	       xtal_queue_get8_marked(s->core, b.addr, b.local, wr->user_ctx, b.mark, b.segment) ==
		       0;
}

static __attribute__((noinline)) bool add_short(struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	struct brief b;

	return make_brief(&b, s, wr, wr->faa.src, wr->faa.dst) &&
	       xtal_queue_add8_marked(s->core, b.addr, b.local, wr->user_ctx, b.mark, b.segment,
				      wr->faa.operand) == 0;
}

/*
 * The shortest requests, in the shortest way: 8 bytes written, read, or added to. False: not here, for
 * whatever reason.
 */
static inline __attribute__((always_inline)) bool post_short(struct ub_sender *s,
							     const urma_jfs_wr_t *wr)
{
	struct brief b;

	if (xtal_unlikely(wr->opcode != URMA_OPC_WRITE)) {
		if (wr->opcode == URMA_OPC_READ)
			return read_short(s, wr);
		return wr->opcode == URMA_OPC_FADD && add_short(s, wr);
	}
	return wr->rw.src.num_sge == 1 && wr->rw.dst.num_sge == 1 &&
	       make_brief(&b, s, wr, wr->rw.src.sge, wr->rw.dst.sge) &&
	       xtal_queue_put8_marked(s->core, b.addr, b.local, wr->user_ctx, b.mark, b.segment) ==
		       0;
}

__attribute__((noinline)) urma_status_t ub_post_any(struct ub_sender *s, const urma_jfs_wr_t *wr)
{
	struct draft d;
	urma_status_t status = draft(&d, s, wr);
	int error;

	if (xtal_unlikely(status))
		return status;
	error = xtal_queue_submit(s->core, &d.op);
	return xtal_likely(!error) ? URMA_SUCCESS : refuse_post(s, error);
}

/* In each caller: a call costs a nanosecond. */
static inline __attribute__((always_inline)) urma_status_t post_chain(struct ub_sender *s,
								      urma_jfs_wr_t *wr,
								      urma_jfs_wr_t **bad_wr)
{
	do {
		if (xtal_unlikely(!post_short(s, wr))) {
			urma_status_t status = ub_post_any(s, wr);

			if (xtal_unlikely(status)) {
				*bad_wr = wr;
				return status;
			}
		}
		wr = wr->next;
	} while (xtal_unlikely(wr != NULL));
	return URMA_SUCCESS;
}

static __attribute__((cold, noinline)) urma_status_t refuse_arguments(const char *function,
								      const void *queue,
								      const void *wr,
								      const void *bad_wr)
{
	if (queue && wr && bad_wr)
		ub_refuse("%s: %p is no live and active queue", function, queue);
	else
		ub_refuse("%s: %s is NULL", function, !queue ? "the queue" : wr ? "bad_wr" : "wr");
	return URMA_EINVAL;
}

/* To a queue that is checked, or to none. */
static __attribute__((cold, noinline)) urma_status_t post_oddly(const char *function,
								const void *queue,
								struct ub_sender *s,
								urma_jfs_wr_t *wr,
								urma_jfs_wr_t **bad_wr)
{
	if (s && wr && bad_wr && s->magic == UB_SEND_CHECKED)
		return ub_check_post(function, s, wr, bad_wr);
	return refuse_arguments(function, queue, wr, bad_wr);
}

static __attribute__((cold, noinline)) urma_status_t post_measured(urma_perf_record_type_t type,
								   struct ub_sender *s,
								   urma_jfs_wr_t *wr,
								   urma_jfs_wr_t **bad_wr)
{
	uint64_t begin = ub_perf_begin();
	urma_status_t status = post_chain(s, wr, bad_wr);

	ub_perf_end(type, begin);
	return status;
}

urma_status_t urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr)
{
	struct ub_sender *s = jfs ? &ub_jfs_of(jfs)->send : NULL;

	if (xtal_unlikely(!s || !wr || !bad_wr || s->magic != UB_SEND_MAGIC))
		return post_oddly("urma_post_jfs_wr", jfs, s, wr, bad_wr);
	if (ub_perf_is_on())
		return post_measured(UB_JFS_POST_SEND, s, wr, bad_wr);
	return post_chain(s, wr, bad_wr);
}

urma_status_t urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr,
				      urma_jfs_wr_t **bad_wr)
{
	struct ub_sender *s = jetty ? &ub_jetty_of(jetty)->send : NULL;

	if (xtal_unlikely(!s || !wr || !bad_wr || s->magic != UB_SEND_MAGIC))
		return post_oddly("urma_post_jetty_send_wr", jetty, s, wr, bad_wr);
	if (ub_perf_is_on())
		return post_measured(UB_JETTY_POST_SEND, s, wr, bad_wr);
	return post_chain(s, wr, bad_wr);
}
