/* SPDX-License-Identifier: MIT */
/* The sentences of XTAL_CHECK for URMA. Each names the call, the object and what to do. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/lock.h"

#define ADVICE "a post that returns is a request accepted, its record says that it is done"

void ub_check_bits(const char *function, const char *type, const char *field, uint32_t reserved)
{
	if (!reserved || !xtal_checks())
		return;
	xtal_diagnose(UB_TAG,
		      "%s: reserved bits 0x%x of %s of %s are set: the program sets no whole "
		      "struct, or was compiled with headers of another version; clear the struct, "
		      "and compile with the urma_types.h of this library",
		      function, reserved, field, type);
}

/* ---- Requests ---- */

/* A request, taken apart. */
struct look {
	const char *function;
	const struct ub_sender *s;
	const char *name;        /* of the operation */
	const urma_sge_t *local; /* pieces here */
	uint32_t local_count;
	const char *remote_name; /* "dst" or "src", as the program knows it */
	const urma_sge_t *remote;
	uint32_t remote_count;
	uint32_t right; /* URMA_ACCESS_... that it needs; 0: it is a message */
	uint64_t len;
	bool source;
};

static const char *right_name(uint32_t right)
{
	return right == URMA_ACCESS_WRITE  ? "URMA_ACCESS_WRITE"
	       : right == URMA_ACCESS_READ ? "URMA_ACCESS_READ"
					   : "URMA_ACCESS_ATOMIC";
}

static void look_rw(struct look *l, const urma_sg_t *local, const urma_sg_t *remote)
{
	l->local = local->sge;
	l->local_count = local->sge ? local->num_sge : 0;
	l->remote = remote && remote->num_sge ? remote->sge : NULL;
	l->remote_count = remote ? remote->num_sge : 0;
}

static bool look_at(struct look *l, const urma_jfs_wr_t *wr)
{
	l->remote_name = "dst";
	l->source = !wr->flag.bs.inline_flag;
	switch ((int)wr->opcode) {
	case URMA_OPC_WRITE:
	case URMA_OPC_WRITE_IMM:
	case URMA_OPC_WRITE_NOTIFY:
		l->name = "WRITE";
		l->right = URMA_ACCESS_WRITE;
		look_rw(l, &wr->rw.src, &wr->rw.dst);
		break;
	case URMA_OPC_READ:
		l->name = "READ";
		l->right = URMA_ACCESS_READ;
		l->remote_name = "src";
		l->source = false;
		look_rw(l, &wr->rw.dst, &wr->rw.src);
		break;
	case URMA_OPC_CAS:
	case URMA_OPC_SWAP:
	case URMA_OPC_FADD:
	case URMA_OPC_FSUB:
	case URMA_OPC_FAND:
	case URMA_OPC_FOR:
	case URMA_OPC_FXOR:
		l->name = "atomic";
		l->right = URMA_ACCESS_ATOMIC;
		l->source = false;
		l->local = wr->cas.src; /* as in faa */
		l->local_count = l->local ? 1 : 0;
		l->remote = wr->cas.dst;
		break;
	case URMA_OPC_SEND:
	case URMA_OPC_SEND_IMM:
	case URMA_OPC_SEND_INVALIDATE:
		l->name = "SEND";
		look_rw(l, &wr->send.src, NULL);
		break;
	default:
		return false;
	}
	if (l->local_count > UB_MAX_SGE) /* refused later */
		l->local_count = 0;
	for (uint32_t i = 0; i < l->local_count; i++)
		l->len += l->local[i].len;
	return true;
}

/* Both would be read where nothing of the library is. False: refused. */
static bool handles_are_live(const struct look *l, const urma_jfs_wr_t *wr)
{
	const urma_target_seg_t *tseg = l->remote ? l->remote->tseg : NULL;

	if (!l->s->rc && wr->tjetty && !ub_live(wr->tjetty, UB_TARGET)) {
		xtal_diagnose(UB_TAG,
			      "%s: tjetty %p of the %s on queue 0x%x was never imported, or is no "
			      "more: give the peer's ids to urma_import_jetty and use what that "
			      "returns",
			      l->function, (void *)wr->tjetty, l->name, l->s->id);
		return false;
	}
	if (tseg && !ub_live(tseg, UB_IMPORTED) && !ub_live(tseg, UB_SEGMENT)) {
		xtal_diagnose(UB_TAG,
			      "%s: %s.tseg %p of the %s on queue 0x%x was never imported, or is no "
			      "more: give the descriptor that the peer has sent to urma_import_seg "
			      "and use what that returns",
			      l->function, l->remote_name, (const void *)tseg, l->name, l->s->id);
		return false;
	}
	return true;
}

struct finding {
	uint64_t addr;
	bool found;
};

static bool has_address(struct ub_node *node, void *arg)
{
	struct finding *f = arg;
	const struct ub_segment *s;

	if (node->kind != UB_SEGMENT)
		return false;
	s = ub_segment_of(node->pub);
	f->found = f->addr - s->where.addr < s->len;
	return f->found;
}

/* In memory that this process registered. */
static bool is_ours(uint64_t addr)
{
	struct finding f = { .addr = addr };

	ub_each(has_address, &f);
	return f.found;
}

static void look_at_range(const struct look *l, const struct ub_segment *seg)
{
	uint64_t addr = l->remote->addr, begin = seg->where.addr, offset = addr - begin;

	if (offset < seg->len && l->len <= seg->len - offset)
		return;
	if (offset >= seg->len)
		xtal_diagnose(
			UB_TAG,
			"%s: %s.addr 0x%llx of the %s on queue 0x%x is %s, not in the imported "
			"segment of %llu bytes at 0x%llx: a remote address is the ubva.va of "
			"the peer's descriptor plus an offset",
			l->function, l->remote_name, (unsigned long long)addr, l->name, l->s->id,
			is_ours(addr) ? "a pointer of this process" : "no address of the peer",
			(unsigned long long)seg->len, (unsigned long long)begin);
	else
		xtal_diagnose(UB_TAG,
			      "%s: the %s of %llu bytes at offset %llu on queue 0x%x reaches %llu "
			      "bytes beyond the end of its segment of %llu bytes: make it shorter, "
			      "or have the peer register more",
			      l->function, l->name, (unsigned long long)l->len,
			      (unsigned long long)offset, l->s->id,
			      (unsigned long long)(l->len - (seg->len - offset)),
			      (unsigned long long)seg->len);
}

static void look_at_right(const struct look *l, const struct ub_segment *seg)
{
	uint32_t registered = seg->pub.seg.attr.bs.access;

	if (registered && !(registered & l->right))
		xtal_diagnose(UB_TAG,
			      "%s: the %s on queue 0x%x needs %s, and the segment at 0x%llx was "
			      "registered with access 0x%x: its owner must add the right in the "
			      "flag of urma_register_seg",
			      l->function, l->name, l->s->id, right_name(l->right),
			      (unsigned long long)seg->where.addr, registered);
	else if (seg->import_access && !(seg->import_access & l->right))
		xtal_diagnose(UB_TAG,
			      "%s: the %s on queue 0x%x needs %s, and the segment at 0x%llx was "
			      "imported with access 0x%x: add the right in the flag of "
			      "urma_import_seg",
			      l->function, l->name, l->s->id, right_name(l->right),
			      (unsigned long long)seg->where.addr, seg->import_access);
}

static void look_at_remote(const struct look *l, const urma_jfs_wr_t *wr)
{
	const struct ub_target *t = l->s->rc ? l->s->bound : ub_target_of(wr->tjetty);
	const struct ub_segment *seg;

	if (l->remote_count > 1 && wr->opcode != URMA_OPC_WRITE_NOTIFY)
		xtal_diagnose(UB_TAG,
			      "%s: the %s on queue 0x%x has %u remote pieces in %s, and only the "
			      "first counts: post one request for each",
			      l->function, l->name, l->s->id, l->remote_count, l->remote_name);
	if (!l->remote || !l->remote->tseg)
		return; /* refused later, or it names a user_tseg */
	seg = ub_segment_of(l->remote->tseg);
	if (ub_live(l->remote->tseg, UB_SEGMENT) && t &&
	    (t->where.tid & 0xffff) != (seg->where.tid & 0xffff))
		xtal_diagnose(UB_TAG,
			      "%s: %s.tseg of the %s on queue 0x%x is a segment that this process "
			      "registered, while the target is queue 0x%x of another: use the "
			      "segment that was imported from there",
			      l->function, l->remote_name, l->name, l->s->id, t->pub.id.id);
	look_at_range(l, seg);
	look_at_right(l, seg);
}

/* The program's own loads and stores would end it. */
static bool local_is_mapped(const struct look *l)
{
	for (uint32_t i = 0; i < l->local_count; i++) {
		const urma_sge_t *sge = &l->local[i];

		if (xtal_check_reach(sge->addr, sge->len, !l->source))
			continue;
		xtal_diagnose(
			UB_TAG,
			"%s: the local piece of %u bytes at 0x%llx of the %s on queue 0x%x is "
			"not all mapped and %s: keep local memory mapped until the completion",
			l->function, sge->len, (unsigned long long)sge->addr, l->name, l->s->id,
			l->source ? "readable" : "writable");
		return false;
	}
	return true;
}

static void look_at_local(const struct look *l)
{
	for (uint32_t i = 0; i < l->local_count; i++) {
		const urma_sge_t *sge = &l->local[i];
		const struct ub_segment *seg;
		uint64_t offset;

		if (!sge->tseg || !sge->len)
			continue;
		if (!ub_live(sge->tseg, UB_SEGMENT)) {
			xtal_diagnose(UB_TAG,
				      "%s: tseg %p of the local piece at 0x%llx of the %s on queue "
				      "0x%x is no registered segment: use what urma_register_seg "
				      "returned for that memory",
				      l->function, (void *)sge->tseg, (unsigned long long)sge->addr,
				      l->name, l->s->id);
			continue;
		}
		seg = ub_segment_of(sge->tseg);
		offset = sge->addr - seg->where.addr;
		if (offset > seg->len || sge->len > seg->len - offset)
			xtal_diagnose(
				UB_TAG,
				"%s: the local piece of %u bytes at 0x%llx of the %s on queue "
				"0x%x is not in its segment of %llu bytes at 0x%llx: correct "
				"addr and len, or register more",
				l->function, sge->len, (unsigned long long)sge->addr, l->name,
				l->s->id, (unsigned long long)seg->len,
				(unsigned long long)seg->where.addr);
	}
}

static uint64_t note(const struct look *l, const urma_jfs_wr_t *wr)
{
	struct xtal_checked op = { .user = wr->user_ctx,
				   .signalled = wr->flag.bs.complete_enable,
				   .source = l->source };
	struct xtal_sge sges[UB_MAX_SGE];
	uint32_t count = wr->flag.bs.inline_flag ? 0 : l->local_count;

	for (uint32_t i = 0; i < count; i++)
		sges[i] = (struct xtal_sge){ l->local[i].addr, l->local[i].len };
	return xtal_check_posted(l->s->check, &op, sges, count);
}

urma_status_t ub_check_post(const char *function, struct ub_sender *s, urma_jfs_wr_t *wr,
			    urma_jfs_wr_t **bad_wr)
{
	for (; wr; wr = wr->next) {
		struct look l = { .function = function, .s = s, .name = "request" };
		urma_status_t status = URMA_EINVAL;
		uint64_t number = 0;
		bool go = true;

		ub_check_bits(function, "urma_jfs_wr_t", "flag", wr->flag.bs.reserved);
		if (look_at(&l, wr)) {
			go = handles_are_live(&l, wr);
			if (go) {
				look_at_remote(&l, wr);
				look_at_local(&l);
				go = local_is_mapped(&l);
			}
		}
		if (go) {
			number = note(&l, wr);
			status = ub_post_any(s, wr);
		}
		if (!status)
			continue;
		xtal_check_refused(s->check, number);
		*bad_wr = wr;
		return status;
	}
	return URMA_SUCCESS;
}

/* ---- Records ---- */

/* Held while a record's queue is looked at: whoever deletes that waits (ub_check_gone()). */
static struct xtal_lock looking;

void ub_check_lock(void)
{
	xtal_lock(&looking);
}

void ub_check_unlock(void)
{
	xtal_unlock(&looking);
}

static struct ub_sender *sender_of(const urma_cr_t *cr)
{
	const void *pub = (const void *)(uintptr_t)cr->user_data;

	if (cr->flag.bs.jetty)
		return ub_live(pub, UB_JETTY) ? &ub_jetty_of(pub)->send : NULL;
	return ub_live(pub, UB_JFS) ? &ub_jfs_of(pub)->send : NULL;
}

static void look_at_record(const urma_cr_t *cr)
{
	struct ub_sender *s;
	struct xtal_sge where;
	bool changed;
	uint32_t id = 0;

	if (cr->flag.bs.s_r || cr->status == URMA_CR_WR_FLUSH_ERR_DONE ||
	    cr->status == URMA_CR_WR_SUSPEND_DONE)
		return;
	ub_check_lock();
	s = sender_of(cr);
	changed = s && s->check &&
		  xtal_check_ended(s->check, cr->user_ctx, !cr->status, &where, NULL) &&
		  !cr->status;
	if (changed)
		id = s->id;
	ub_check_unlock();
	if (changed) /* the program's own function may be told, and call us */
		xtal_diagnose(
			UB_TAG,
			"urma_poll_jfc: %llu bytes at 0x%llx, data of request %llu on queue "
			"0x%x, changed between its post and its record: leave them alone until "
			"then; " ADVICE,
			(unsigned long long)where.len, (unsigned long long)where.addr,
			(unsigned long long)cr->user_ctx, id);
}

void ub_check_polled(struct ub_jfc *j, const urma_cr_t *cr, int count)
{
	if (!count) {
		ub_check_nothing(j);
		return;
	}
	atomic_store(&j->empty_since, 0);
	atomic_store(&j->told, false);
	for (int i = 0; i < count; i++)
		look_at_record(&cr[i]);
}

void ub_check_flushed(struct ub_sender *s, uint64_t user)
{
	struct xtal_sge where;

	xtal_check_ended(s->check, user, false, &where, NULL);
}

/* ---- Objects ---- */

void ub_check_sender_opened(struct ub_sender *s)
{
	struct xtal_check *check;
	char name[64];

	snprintf(name, sizeof(name), "%s 0x%x", s->jetty ? "jetty" : "send queue", s->id);
	check = xtal_checks() ? xtal_check_new(name) : NULL;
	/* A record of a queue that lay here before may be looked at. */
	ub_check_lock();
	s->check = check;
	ub_check_unlock();
}

void ub_check_sender_closes(struct ub_sender *s)
{
	struct xtal_check_open open;

	xtal_check_look(s->check, &open);
	if (open.signalled)
		xtal_diagnose(
			UB_TAG,
			"%s: %s 0x%x goes while %u requests, %llu the first, have records that "
			"nobody polled: poll them before; " ADVICE,
			s->jetty ? "urma_delete_jetty" : "urma_delete_jfs",
			s->jetty ? "jetty" : "send queue", s->id, open.signalled,
			(unsigned long long)open.user);
	ub_check_lock();
	xtal_check_free(s->check);
	s->check = NULL;
	ub_check_unlock();
}

void ub_check_gone(void)
{
	if (!xtal_checks())
		return;
	ub_check_lock();
	ub_check_unlock();
}

void ub_check_unregister(const struct ub_segment *s)
{
	char name[64];
	uint64_t user;

	if (xtal_checks() && xtal_check_uses(s->where.addr, s->len, &user, name))
		xtal_diagnose(
			UB_TAG,
			"urma_unregister_seg: request %llu on %s uses memory of the segment at "
			"0x%llx, and its record was not polled: poll it before; " ADVICE,
			(unsigned long long)user, name, (unsigned long long)s->where.addr);
}
