/* SPDX-License-Identifier: MIT */
/* Segments: registered, imported, described. */
#include "segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "check.h"
#include "core/handle.h"

uint64_t ub_serial(void)
{
	static _Atomic uint64_t next = 1;

	return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

/* NULL, or why these rights do not go together. */
static const char *rights_refused(uint32_t access)
{
	if (access & URMA_ACCESS_LOCAL_ONLY)
		return access == URMA_ACCESS_LOCAL_ONLY ? NULL : "LOCAL_ONLY excludes all others";
	if ((access & URMA_ACCESS_WRITE) && !(access & URMA_ACCESS_READ))
		return "WRITE requires READ";
	if ((access & URMA_ACCESS_ATOMIC) && (access & (URMA_ACCESS_READ | URMA_ACCESS_WRITE)) !=
						     (URMA_ACCESS_READ | URMA_ACCESS_WRITE))
		return "ATOMIC requires READ and WRITE";
	return access & ~15u ? "bits above 8 mean nothing" : NULL;
}

static uint32_t core_rights(uint32_t access)
{
	return (access & URMA_ACCESS_READ ? XTAL_RIGHT_READ : 0) |
	       (access & URMA_ACCESS_WRITE ? XTAL_RIGHT_WRITE : 0) |
	       (access & URMA_ACCESS_ATOMIC ? XTAL_RIGHT_ATOMIC : 0);
}

/* Refuses a cfg that cannot be registered in the context. */
static bool cfg_is_bad(const struct ub_context *c, const urma_seg_cfg_t *cfg)
{
	uint32_t policy = cfg->flag.bs.token_policy;
	const char *why = rights_refused(cfg->flag.bs.access);

	if (!cfg->va || !cfg->len || cfg->va + cfg->len < cfg->va) {
		ub_refuse(
			"urma_register_seg: va 0x%llx with %llu bytes; neither may be 0, and the end "
			"must not wrap",
			(unsigned long long)cfg->va, (unsigned long long)cfg->len);
	} else if (cfg->flag.bs.token_id_valid != (cfg->token_id != NULL)) {
		ub_refuse(
			"urma_register_seg: token_id is %s and flag token_id_valid is %u; they must "
			"agree",
			cfg->token_id ? "given" : "NULL", cfg->flag.bs.token_id_valid);
	} else if (policy > URMA_TOKEN_PLAIN_TEXT) {
		ub_refuse("urma_register_seg: token policy %u; NONE (0) and PLAIN_TEXT (1) are "
			  "supported",
			  policy);
	} else if (why) {
		ub_refuse("urma_register_seg: access 0x%x: %s", cfg->flag.bs.access, why);
	} else if (cfg->token_id && !ub_check("urma_register_seg", cfg->token_id, UB_TOKEN_ID)) {
		return true;
	} else if (cfg->token_id && ub_token_id_of(cfg->token_id)->ctx != c) {
		ub_refuse("urma_register_seg: token id %u is of another context",
			  cfg->token_id->token_id);
	} else if (cfg->token_id && atomic_load(&cfg->token_id->ref.atomic_cnt) != 1) {
		ub_refuse("urma_register_seg: token id %u has a segment already",
			  cfg->token_id->token_id);
	} else {
		return false;
	}
	return true;
}

/* Registers with the core and names the segment for xtal.h. 0 or -errno. */
static int open_segment(struct ub_segment *s, const urma_seg_cfg_t *cfg, uint32_t token_id)
{
	const bool token = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	struct xtal_segment_attr attr = {
		.addr = cfg->va,
		.len = cfg->len,
		.token = token ? cfg->token_value.token : 0,
		.token_valid = token,
		.any_token = !token,
		.index = token_id,
		.rights = core_rights(cfg->flag.bs.access),
	};
	int error = xtal_segment_register(s->ctx->core, &attr, &s->core);

	if (error)
		return error;
	error = xtal_handle_bind_segment(&s->pub, s->core);
	if (error)
		xtal_segment_unregister(&s->core);
	return error;
}

static void fill_registered(struct ub_segment *s, const urma_seg_cfg_t *cfg,
			    urma_token_id_t *token_id)
{
	const bool token = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	urma_target_seg_t *t = &s->pub;

	t->urma_ctx = &s->ctx->pub;
	t->token_id = token_id;
	t->user_ctx = cfg->user_ctx;
	t->seg.ubva.eid = s->ctx->pub.eid;
	t->seg.ubva.uasid = s->ctx->pub.uasid;
	t->seg.ubva.va = cfg->va;
	t->seg.len = cfg->len;
	t->seg.token_id = token_id->token_id;
	/* The two words agree up to this bit; the next ones differ. */
	t->seg.attr.value = cfg->flag.value & 0x1fff;
	t->seg.attr.bs.user_token_id = cfg->flag.bs.token_id_valid;
	s->where = (struct xtal_remote){
		.addr = cfg->va,
		.eid = s->ctx->device->eid,
		.tid = s->ctx->pub.uasid,
		.token = token ? cfg->token_value.token : 0,
		.index = token_id->token_id,
		.token_valid = token,
	};
	s->len = cfg->len;
	s->whole = true;
}

static void enlist(struct ub_segment *s, enum ub_kind kind)
{
	s->serial = ub_serial();
	s->any8 = s->whole && s->len >= 8 ? s->len - 7 : 0;
	s->magic = UB_SEGMENT_MAGIC;
	ub_context_hold(s->ctx);
	ub_enlist(&s->node, &s->pub, kind);
}

urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *seg_cfg)
{
	struct ub_context *c = ub_context_of(ctx);
	urma_token_id_t *token_id, *own = NULL;
	struct ub_segment *s;
	int error;

	if (!ub_check("urma_register_seg", ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	if (!seg_cfg) {
		ub_refuse("urma_register_seg: seg_cfg is NULL");
		return ub_null(EINVAL);
	}
	ub_check_bits("urma_register_seg", "urma_seg_cfg_t", "flag", seg_cfg->flag.bs.reserved);
	if (cfg_is_bad(c, seg_cfg))
		return ub_null(EINVAL);
	token_id = seg_cfg->token_id;
	if (!token_id) {
		token_id = own = urma_alloc_token_id(ctx);
		if (!own)
			return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (s)
		s->ctx = c;
	error = s ? open_segment(s, seg_cfg, token_id->token_id) : -ENOMEM;
	if (error) {
		ub_refuse("urma_register_seg: va 0x%llx with %llu bytes: %s",
			  (unsigned long long)seg_cfg->va, (unsigned long long)seg_cfg->len,
			  ub_reason(error));
		free(s);
		if (own)
			urma_free_token_id(own);
		return ub_null(error == -ENOMEM || error == -ENOSPC ? ENOMEM : EINVAL);
	}
	s->own_id = own ? ub_token_id_of(own) : NULL;
	atomic_fetch_add(&token_id->ref.atomic_cnt, 1);
	fill_registered(s, seg_cfg, token_id);
	enlist(s, UB_SEGMENT);
	return &s->pub;
}

/* Whoever takes the core's segment ends it. */
static void close_segment(struct xtal_segment *core)
{
	if (core)
		xtal_segment_unregister(&core);
}

static struct xtal_segment *take_core(struct ub_segment *s)
{
	struct xtal_segment *core = s->core;

	s->core = NULL;
	return core;
}

struct withdrawal {
	const struct ub_context *ctx;
	uint32_t token_id;
	struct xtal_segment *core;
};

static bool withdraw(struct ub_node *node, void *arg)
{
	struct withdrawal *w = arg;
	struct ub_segment *s = ub_segment_of(node->pub);

	if (node->kind != UB_SEGMENT || s->ctx != w->ctx || s->pub.seg.token_id != w->token_id)
		return false;
	xtal_handle_unbind(&s->pub);
	w->core = take_core(s);
	return true;
}

void ub_segment_withdraw(const struct ub_context *c, uint32_t token_id)
{
	struct withdrawal w = { .ctx = c, .token_id = token_id };

	ub_each(withdraw, &w);
	close_segment(w.core);
}

urma_status_t urma_unregister_seg(urma_target_seg_t *target_seg)
{
	struct ub_segment *s = ub_segment_of(target_seg);
	struct xtal_segment *core;
	struct ub_context *c;

	if (!ub_check("urma_unregister_seg", target_seg, UB_SEGMENT) || !ub_delist(&s->node))
		return URMA_EINVAL;
	ub_check_unregister(s);
	c = s->ctx;
	s->magic = 0;
	xtal_handle_unbind(&s->pub);
	ub_lock();
	core = take_core(s);
	ub_unlock();
	close_segment(core);
	atomic_fetch_sub(&s->pub.token_id->ref.atomic_cnt, 1);
	if (s->own_id)
		urma_free_token_id(&s->own_id->pub);
	free(s);
	ub_context_release(c);
	return URMA_SUCCESS;
}

urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value,
				   uint64_t addr, urma_import_seg_flag_t flag)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_segment *s;
	urma_eid_t eid;
	bool token;

	(void)addr;
	if (!ub_check("urma_import_seg", ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	if (!seg) {
		ub_refuse("urma_import_seg: seg is NULL");
		return ub_null(EINVAL);
	}
	ub_check_bits("urma_import_seg", "urma_seg_t", "attr", seg->attr.bs.reserved);
	ub_check_bits("urma_import_seg", "urma_import_seg_flag_t", "flag", flag.bs.reserved);
	token = seg->attr.bs.token_policy != URMA_TOKEN_NONE;
	if (token && !token_value) {
		ub_refuse(
			"urma_import_seg: token_value is NULL, and the segment's token policy is %u; "
			"its owner has to tell the token",
			seg->attr.bs.token_policy);
		return ub_null(EINVAL);
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		ub_refuse("urma_import_seg: no memory");
		return ub_null(ENOMEM);
	}
	eid = seg->ubva.eid;
	s->ctx = c;
	s->pub.urma_ctx = ctx;
	s->pub.seg = *seg;
	s->where = (struct xtal_remote){
		.addr = seg->ubva.va,
		.eid = ub_eid_resolve(c, &eid),
		.tid = seg->ubva.uasid,
		.token = token ? token_value->token : 0,
		.index = seg->token_id,
		.token_valid = token,
	};
	s->len = seg->len;
	s->import_access = flag.bs.access;
	s->whole = seg->ubva.uasid != 0 && (s->where.eid.hi || s->where.eid.lo);
	enlist(s, UB_IMPORTED);
	return &s->pub;
}

urma_status_t urma_unimport_seg(urma_target_seg_t *tseg)
{
	struct ub_segment *s = ub_segment_of(tseg);
	struct ub_context *c;

	if (!ub_check("urma_unimport_seg", tseg, UB_IMPORTED) || !ub_delist(&s->node))
		return URMA_EINVAL;
	c = s->ctx;
	s->magic = 0;
	free(s);
	ub_context_release(c);
	return URMA_SUCCESS;
}

urma_status_t urma_get_seg_ctx(urma_target_seg_t *tseg, urma_seg_t **seg, uint32_t *seg_len)
{
	urma_seg_t *copy;

	if (!tseg || !seg || !seg_len) {
		ub_refuse("urma_get_seg_ctx: %s is NULL", !tseg  ? "tseg"
							  : !seg ? "seg"
								 : "seg_len");
		return URMA_EINVAL;
	}
	if (!ub_live(tseg, UB_IMPORTED) && !ub_check("urma_get_seg_ctx", tseg, UB_SEGMENT))
		return URMA_EINVAL;
	copy = malloc(sizeof(*copy));
	if (!copy) {
		ub_refuse("urma_get_seg_ctx: no memory");
		return URMA_ENOMEM;
	}
	*copy = tseg->seg;
	*seg = copy;
	*seg_len = sizeof(*copy);
	return URMA_SUCCESS;
}

void urma_put_seg_ctx(urma_seg_t *seg)
{
	free(seg);
}
