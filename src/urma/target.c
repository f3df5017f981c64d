/* SPDX-License-Identifier: MIT */
/* Imported jetties, groups and receive queues; the table by which records name them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"

struct ub_target_entry *_Atomic ub_target_table;
static uint32_t next_index = 1;

/* 0: none is left; records will not name this target. */
static uint32_t take_index(const struct ub_target *t)
{
	uint64_t words[UB_ID_WORDS];
	uint32_t index = 0;
	struct ub_target_entry *e;

	memcpy(words, &t->pub.id, sizeof(words));
	ub_lock();
	e = atomic_load_explicit(&ub_target_table, memory_order_relaxed);
	if (!e) {
		e = calloc(UB_TARGETS, sizeof(*e));
		atomic_store_explicit(&ub_target_table, e, memory_order_release);
	}
	for (uint32_t i = 0; e && i < UB_TARGETS && !index; i++) {
		uint32_t at = (next_index + i) % UB_TARGETS;

		if (at && !e[at].used)
			index = at;
	}
	if (index) {
		next_index = index + 1;
		e[index].used = true;
		for (size_t i = 0; i < UB_ID_WORDS; i++)
			atomic_store_explicit(&e[index].id[i], words[i], memory_order_relaxed);
	}
	ub_unlock();
	return index;
}

static void give_back_index(uint32_t index)
{
	if (!index)
		return;
	ub_lock();
	atomic_load_explicit(&ub_target_table, memory_order_relaxed)[index].used = false;
	ub_unlock();
}

static const char *import_refused(const struct ub_import *what)
{
	const char *why = ub_order_refused(what->mode, what->flag.bs.order_type);

	if (why)
		return why;
	if ((unsigned)what->tp_type > URMA_UTP)
		return "the transport is none of RTP (0), CTP (1) and UTP (2)";
	if (what->tp_type == URMA_UTP && what->mode != URMA_TM_UM)
		return "transport UTP goes with mode UM only";
	if (what->tp_type == URMA_RTP && what->mode == URMA_TM_UM)
		return "transport RTP does not go with mode UM";
	if (what->type == URMA_JETTY_GROUP && what->mode != URMA_TM_RM)
		return "a group is RM";
	if (what->flag.bs.token_policy != URMA_TOKEN_NONE && !what->token)
		return "its token policy wants a token, and token_value is NULL";
	return NULL;
}

urma_target_jetty_t *ub_import(urma_context_t *ctx, const struct ub_import *what)
{
	struct ub_context *c = ub_context_of(ctx);
	const bool token = what->flag.bs.token_policy != URMA_TOKEN_NONE;
	const char *why = import_refused(what);
	struct ub_target *t;

	if (why) {
		ub_refuse("%s: id 0x%x with mode %d, order %u and transport %d: %s", what->function,
			  what->id.id, (int)what->mode, what->flag.bs.order_type,
			  (int)what->tp_type, why);
		return ub_null(EINVAL);
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		ub_refuse("%s: no memory", what->function);
		return ub_null(ENOMEM);
	}
	t->pub.urma_ctx = ctx;
	t->pub.id = what->id;
	t->pub.trans_mode = what->mode;
	t->pub.tp.tpn = UINT32_MAX;
	t->pub.type = what->type;
	t->pub.flag = what->flag;
	t->pub.policy = what->policy;
	t->pub.tp_type = what->tp_type;
	t->ctx = c;
	t->where = (struct xtal_remote){
		.addr = xtal_endpoint_address(what->id.id, what->type != URMA_JFR),
		.eid = ub_eid_resolve(c, &what->id.eid),
		/* Programs that tell only the id have told the port with it. */
		.tid = what->id.uasid ? what->id.uasid
				      : XTAL_INCARNATION_ANY << 16 | what->id.id >> 16,
		.token = token ? what->token->token : 0,
		.token_valid = token,
	};
	t->index = take_index(t);
	t->mark = xtal_mark(t->index, 0);
	t->serial = ub_serial();
	t->magic = UB_TARGET_MAGIC;
	ub_context_hold(c);
	ub_enlist(&t->node, &t->pub, UB_TARGET);
	return &t->pub;
}

urma_status_t ub_unimport(const char *function, urma_target_jetty_t *target)
{
	struct ub_target *t = ub_target_of(target);
	const urma_jetty_t *bound;
	struct ub_context *c;

	if (!ub_check(function, target, UB_TARGET))
		return URMA_EINVAL;
	ub_lock();
	bound = t->bound;
	ub_unlock();
	if (bound) {
		ub_refuse("%s: jetty 0x%x is bound to it; unbind that first", function,
			  bound->jetty_id.id);
		return URMA_FAIL;
	}
	if (!ub_delist(&t->node))
		return URMA_EINVAL;
	c = t->ctx;
	t->magic = 0;
	give_back_index(t->index);
	free(t);
	ub_context_release(c);
	return URMA_SUCCESS;
}

/* The checks before a struct from the program is looked into. */
static bool arguments_are_bad(const char *function, const urma_context_t *ctx, const void *remote)
{
	if (!ub_check(function, ctx, UB_CONTEXT))
		return true;
	if (!remote)
		ub_refuse("%s: the remote queue is NULL", function);
	return !remote;
}

static bool extras_are_null(const char *function, const void *token, const void *cfg)
{
	if (token && cfg)
		return false;
	ub_refuse("%s: %s is NULL", function, token ? "cfg" : "token_value");
	return true;
}

static urma_target_jetty_t *import_jfr(const char *function, urma_context_t *ctx, urma_rjfr_t *rjfr,
				       const urma_token_t *token)
{
	struct ub_import what;

	if (arguments_are_bad(function, ctx, rjfr))
		return ub_null(EINVAL);
	rjfr->flag.bs.order_type = ub_order_of(rjfr->trans_mode, rjfr->flag.bs.order_type) & 0xff;
	what = (struct ub_import){
		.function = function,
		.id = rjfr->jfr_id,
		.mode = rjfr->trans_mode,
		.flag = rjfr->flag,
		.tp_type = rjfr->tp_type,
		.type = URMA_JFR,
		.token = token,
	};
	return ub_import(ctx, &what);
}

urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr,
				     urma_token_t *token_value)
{
	return import_jfr("urma_import_jfr", ctx, rjfr, token_value);
}

urma_target_jetty_t *urma_import_jfr_ex(urma_context_t *ctx, urma_rjfr_t *rjfr,
					urma_token_t *token_value, urma_import_jfr_ex_cfg_t *cfg)
{
	if (extras_are_null("urma_import_jfr_ex", token_value, cfg))
		return ub_null(EINVAL);
	return import_jfr("urma_import_jfr_ex", ctx, rjfr, token_value);
}

urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr)
{
	return ub_unimport("urma_unimport_jfr", target_jfr);
}

urma_target_jetty_t *ub_import_rjetty(const char *function, urma_context_t *ctx,
				      urma_rjetty_t *rjetty, const urma_token_t *token)
{
	struct ub_import what;

	if (arguments_are_bad(function, ctx, rjetty))
		return ub_null(EINVAL);
	if (rjetty->type != URMA_JETTY && rjetty->type != URMA_JETTY_GROUP) {
		ub_refuse("%s: type is %d; JETTY (1) and JETTY_GROUP (2) are possible", function,
			  (int)rjetty->type);
		return ub_null(EINVAL);
	}
	rjetty->flag.bs.order_type =
		ub_order_of(rjetty->trans_mode, rjetty->flag.bs.order_type) & 0xff;
	what = (struct ub_import){
		.function = function,
		.id = rjetty->jetty_id,
		.mode = rjetty->trans_mode,
		.flag = rjetty->flag,
		.tp_type = rjetty->tp_type,
		.type = rjetty->type,
		.policy = rjetty->policy,
		.token = token,
	};
	return ub_import(ctx, &what);
}

urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty,
				       urma_token_t *token_value)
{
	return ub_import_rjetty("urma_import_jetty", ctx, rjetty, token_value);
}

urma_target_jetty_t *urma_import_jetty_ex(urma_context_t *ctx, urma_rjetty_t *rjetty,
					  urma_token_t *token_value,
					  urma_import_jetty_ex_cfg_t *cfg)
{
	if (extras_are_null("urma_import_jetty_ex", token_value, cfg))
		return ub_null(EINVAL);
	return ub_import_rjetty("urma_import_jetty_ex", ctx, rjetty, token_value);
}

urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty)
{
	return ub_unimport("urma_unimport_jetty", tjetty);
}
