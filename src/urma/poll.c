/* SPDX-License-Identifier: MIT */
/* Completion records: taken from the core, turned into foreign ones. */
#include <stddef.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "perf.h"
#include "queue.h"

_Static_assert(XTAL_OK == (int)URMA_CR_SUCCESS, "statuses need no table");
_Static_assert(XTAL_UNSUPPORTED == (int)URMA_CR_UNSUPPORTED_OPCODE_ERR, "statuses need no table");
_Static_assert(XTAL_LOCAL_LENGTH == (int)URMA_CR_LOC_LEN_ERR, "statuses need no table");
_Static_assert(XTAL_LOCAL_ACCESS == (int)URMA_CR_LOC_ACCESS_ERR, "statuses need no table");
_Static_assert(XTAL_REMOTE_LENGTH == (int)URMA_CR_REM_RESP_LEN_ERR, "statuses need no table");
_Static_assert(XTAL_REMOTE_UNSUPPORTED == (int)URMA_CR_REM_UNSUPPORTED_REQ_ERR,
	       "statuses need no table");
_Static_assert(XTAL_REMOTE_ACCESS == (int)URMA_CR_REM_ACCESS_ABORT_ERR, "statuses need no table");
_Static_assert(XTAL_UNREACHABLE == (int)URMA_CR_ACK_TIMEOUT_ERR, "statuses need no table");
_Static_assert(XTAL_NOT_READY == (int)URMA_CR_RNR_RETRY_CNT_EXC_ERR, "statuses need no table");
_Static_assert(XTAL_FLUSHED == (int)URMA_CR_WR_FLUSH_ERR, "statuses need no table");
_Static_assert(XTAL_SUSPEND_DONE == (int)URMA_CR_WR_SUSPEND_DONE, "statuses need no table");
_Static_assert(XTAL_FLUSH_DONE == (int)URMA_CR_WR_FLUSH_ERR_DONE, "statuses need no table");
_Static_assert(XTAL_UNHANDLED == (int)URMA_CR_WR_UNHANDLED, "statuses need no table");
_Static_assert(XTAL_REMOTE_POISON == (int)URMA_CR_REM_DATA_POISON, "statuses need no table");

static urma_cr_opcode_t received_as(uint8_t opcode)
{
	switch (opcode) {
	case XTAL_OP_SEND:
		return URMA_CR_OPC_SEND;
	case XTAL_OP_SEND_IMM:
		return URMA_CR_OPC_SEND_WITH_IMM;
	case XTAL_OP_SEND_INVALIDATE:
		return URMA_CR_OPC_SEND_WITH_INV;
	case XTAL_OP_WRITE_IMM:
		return URMA_CR_OPC_WRITE_WITH_IMM;
	}
	return (urma_cr_opcode_t)UB_NO_OPCODE;
}

/* A receive: who sent what. */
static void fill_received(const struct ub_jfc *j, urma_cr_t *cr, const struct xtal_record *r)
{
	cr->opcode = received_as(r->opcode);
	cr->flag.bs.s_r = 1;
	cr->remote_id.eid = ub_eid_out(r->remote_eid);
	cr->remote_id.uasid = r->remote_tid;
	cr->remote_id.id = r->remote_id;
	if (cr->opcode == URMA_CR_OPC_SEND_WITH_INV) {
		cr->invalid_token.token_id = (uint32_t)r->imm;
		if (!r->status)
			ub_segment_withdraw(j->ctx, (uint32_t)r->imm);
	} else {
		cr->imm_data = r->imm;
	}
}

static inline void fill(const struct ub_jfc *j, urma_cr_t *cr, const struct xtal_record *r)
{
	*cr = (urma_cr_t){
		.status = (urma_cr_status_t)r->status,
		.user_ctx = r->user,
		.opcode = (urma_cr_opcode_t)UB_NO_OPCODE,
		.flag.bs.jetty = !!(r->flags & XTAL_RECORD_JETTY),
		.completion_len = r->len,
		.local_id = r->local_id,
		.tpn = r->peer.link_id,
		.user_data = (uintptr_t)r->owner,
	};
	if (r->flags & XTAL_RECORD_RECEIVED) {
		fill_received(j, cr, r);
		return;
	}
	if (xtal_likely(r->target != 0))
		ub_target_id(r->target, &cr->remote_id);
	if (xtal_unlikely(r->status)) {
		cr->flag.bs.suspend_done = r->status == XTAL_SUSPEND_DONE;
		cr->flag.bs.flush_err_done = r->status == XTAL_FLUSH_DONE;
	}
}

uint64_t ub_stamp(bool jetty)
{
	struct stamp {
		urma_cr_opcode_t opcode;
		urma_cr_flag_t flag;
	} stamp;
	uint64_t word;

	_Static_assert(sizeof(stamp) == sizeof(word) &&
			       offsetof(struct stamp, flag) ==
				       offsetof(urma_cr_t, flag) - offsetof(urma_cr_t, opcode),
		       "a stamp is two fields of the record");
	memset(&stamp, 0, sizeof(stamp));
	stamp.opcode = (urma_cr_opcode_t)UB_NO_OPCODE;
	stamp.flag.bs.jetty = jetty;
	memcpy(&word, &stamp, sizeof(word));
	return word;
}

_Static_assert(offsetof(urma_cr_t, local_id) - offsetof(urma_cr_t, completion_len) ==
			       offsetof(struct xtal_report, queue_id) &&
		       offsetof(struct xtal_report, peer) == 8,
	       "what a report begins with is two fields of the record");

/* A request that succeeded. */
static inline void fill_plain(const struct xtal_signature *by, urma_cr_t *cr,
			      const struct xtal_completion *c)
{
	char *stamp = (char *)cr + offsetof(urma_cr_t, opcode);
	char *report = (char *)cr + offsetof(urma_cr_t, completion_len);

	cr->status = URMA_CR_SUCCESS;
	cr->user_ctx = c->user;
	memcpy(stamp, &by->stamp, sizeof(by->stamp));
	memcpy(report, &c->report, offsetof(struct xtal_report, peer));
	if (xtal_likely(c->target != 0))
		ub_target_id(c->target, &cr->remote_id);
	else
		cr->remote_id = (urma_jetty_id_t){ 0 };
	cr->imm_data = 0;
	cr->tpn = c->report.peer.link_id;
	cr->user_data = (uintptr_t)by->owner;
}

/* Requests that succeeded, from where they are. Anything else is left. */
static inline int poll_plain(struct ub_jfc *j, int count, urma_cr_t *cr)
{
	const struct xtal_signature *by;
	const struct xtal_run run = xtal_shared_cq_peek(j->core, (uint32_t)count, &by);
	uint32_t i = 0;

	if (!run.count)
		return 0;
	for (; i < run.count; i++) {
		if (xtal_unlikely(!xtal_completion_is_plain(&run.first[i])))
			break;
		fill_plain(by, &cr[i], &run.first[i]);
	}
	xtal_shared_cq_polled(j->core, (uint32_t)count, i);
	return (int)i;
}

static __attribute__((cold, noinline)) int refuse_poll(const struct ub_jfc *j, int cr_cnt,
						       const urma_cr_t *cr)
{
	if (!j || !cr)
		ub_refuse("urma_poll_jfc: %s is NULL", j ? "cr" : "jfc");
	else if (cr_cnt < 0)
		ub_refuse("urma_poll_jfc: cr_cnt is %d", cr_cnt);
	else if (j->magic != UB_JFC_MAGIC && j->magic != UB_JFC_CHECKED)
		ub_refuse("urma_poll_jfc: %p is no live and active completion queue",
			  (const void *)j);
	else
		ub_refuse(
			"urma_poll_jfc: completion queue %u belongs to the process that this one was "
			"forked from",
			j->pub.jfc_id.id);
	return -1;
}

#define POLLED_AT_ONCE 16

/* All that there is, after the first done. */
static __attribute__((noinline)) int poll_any(struct ub_jfc *j, int done, int cr_cnt, urma_cr_t *cr)
{
	struct xtal_record records[POLLED_AT_ONCE];

	while (done < cr_cnt) {
		int want = cr_cnt - done < POLLED_AT_ONCE ? cr_cnt - done : POLLED_AT_ONCE;
		int got = xtal_shared_cq_poll(j->core, (uint32_t)want, records);

		if (xtal_unlikely(got < 0))
			return refuse_poll(j, cr_cnt, cr);
		for (int i = 0; i < got; i++)
			fill(j, &cr[done++], &records[i]);
		if (got < want)
			break;
	}
	return done;
}

/* A completion queue that is checked, or none. */
static __attribute__((cold, noinline)) int poll_oddly(struct ub_jfc *j, int cr_cnt, urma_cr_t *cr)
{
	int done;

	if (!j || !cr || cr_cnt < 0 || j->magic != UB_JFC_CHECKED)
		return refuse_poll(j, cr_cnt, cr);
	done = poll_any(j, 0, cr_cnt, cr);
	if (done >= 0)
		ub_check_polled(j, cr, done);
	return done;
}

static inline int poll(struct ub_jfc *j, int cr_cnt, urma_cr_t *cr)
{
	int done = poll_plain(j, cr_cnt, cr);

	return xtal_likely(done == cr_cnt) ? done : poll_any(j, done, cr_cnt, cr);
}

static __attribute__((cold, noinline)) int poll_measured(struct ub_jfc *j, int cr_cnt,
							 urma_cr_t *cr)
{
	uint64_t begin = ub_perf_begin();
	int done = poll(j, cr_cnt, cr);

	ub_perf_end(UB_POLL_JFC, begin);
	return done;
}

int urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr)
{
	struct ub_jfc *j = ub_jfc_of(jfc);

	if (xtal_unlikely(!j || !cr || j->magic != UB_JFC_MAGIC))
		return poll_oddly(j, cr_cnt, cr);
	if (xtal_unlikely(cr_cnt <= 0))
		return cr_cnt ? poll_oddly(j, cr_cnt, cr) : 0;
	return ub_perf_is_on() ? poll_measured(j, cr_cnt, cr) : poll(j, cr_cnt, cr);
}
