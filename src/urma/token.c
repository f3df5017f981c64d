/* SPDX-License-Identifier: MIT */
/* Token ids: the numbers that segments go by in their context. */
#include <errno.h>
#include <stdlib.h>

#include "segment.h"

static urma_token_id_t *alloc(const char *function, urma_context_t *ctx, urma_token_id_flag_t flag)
{
	struct ub_context *c = ub_context_of(ctx);
	struct ub_token_id *id;
	int error;

	if (!ub_check(function, ctx, UB_CONTEXT))
		return ub_null(EINVAL);
	if (flag.bs.multi_seg) {
		ub_refuse("%s: several segments with one token id are not supported by %s; "
			  "flag.bs.multi_seg must be 0, and each segment has an id of its own",
			  function, ctx->dev->name);
		return ub_null(EINVAL);
	}
	id = calloc(1, sizeof(*id));
	error = id ? ub_ids_take(&c->token_ids, 0, &id->pub.token_id) : -ENOMEM;
	if (error) {
		free(id);
		ub_refuse("%s: no token id in context 0x%x: %s", function, ctx->uasid,
			  ub_reason(error));
		return ub_null(ENOMEM);
	}
	id->pub.urma_ctx = ctx;
	id->pub.flag = flag;
	atomic_init(&id->pub.ref.atomic_cnt, 1);
	id->ctx = c;
	ub_context_hold(c);
	ub_enlist(&id->node, &id->pub, UB_TOKEN_ID);
	return &id->pub;
}

urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx)
{
	return alloc("urma_alloc_token_id", ctx, (urma_token_id_flag_t){ .value = 0 });
}

urma_token_id_t *urma_alloc_token_id_ex(urma_context_t *ctx, urma_token_id_flag_t flag)
{
	return alloc("urma_alloc_token_id_ex", ctx, flag);
}

urma_status_t urma_free_token_id(urma_token_id_t *token_id)
{
	struct ub_token_id *id = ub_token_id_of(token_id);

	if (!ub_check("urma_free_token_id", token_id, UB_TOKEN_ID))
		return URMA_EINVAL;
	if (atomic_load(&token_id->ref.atomic_cnt) != 1) {
		ub_refuse("urma_free_token_id: a segment has token id %u; unregister it first",
			  token_id->token_id);
		return URMA_EINVAL;
	}
	if (!ub_delist(&id->node))
		return URMA_EINVAL;
	ub_ids_give_back(&id->ctx->token_ids, token_id->token_id);
	ub_context_release(id->ctx);
	free(id);
	return URMA_SUCCESS;
}
