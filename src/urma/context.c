/* SPDX-License-Identifier: MIT */
/* Contexts: made, counted, deleted; their options and extensions, of which there are none. */
#include "context.h"

#include <errno.h>
#include <stdlib.h>

#include "core/event.h"

/* Calls go through urma_api.h; programs only look whether a slot is NULL. */
static struct urma_ops no_ops;

static atomic_uint next_number;

void *ub_null(int error)
{
	errno = error;
	return NULL;
}

/* Opens the core's context and fills in what depends on it. 0 or -errno. */
static int open_core(struct ub_context *c)
{
	int error = xtal_context_open(c->device, &c->core);

	if (error)
		return error;
	c->pub.uasid = xtal_context_tid(c->core);
	c->pub.async_fd = xtal_context_async_fd(c->core);
	xtal_event_let_block(c->pub.async_fd);
	ub_ids_init(&c->jetty_ids, c->pub.uasid << 16);
	ub_ids_init(&c->jfr_ids, c->pub.uasid << 16);
	ub_ids_init(&c->jfc_ids, 0);
	ub_ids_init(&c->token_ids, 0);
	return 0;
}

urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index)
{
	const struct xtal_device *device = ub_device_check("urma_create_context", dev);
	struct ub_context *c;
	urma_eid_t eid;
	int error;

	if (!device)
		return ub_null(EINVAL);
	if (!ub_device_eid(device, eid_index, &eid)) {
		ub_refuse("urma_create_context: %s has no EID with index %u", device->name,
			  eid_index);
		return ub_null(EIO);
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		ub_refuse("urma_create_context: no memory for a context on %s", device->name);
		return ub_null(EIO);
	}
	c->device = device;
	error = open_core(c);
	if (error) {
		if (error != -ENOKEY) /* the core has said what to do about a missing key */
			ub_refuse("urma_create_context: no context on %s: %s", device->name,
				  ub_reason(error));
		free(c);
		return ub_null(EIO);
	}
	c->number = atomic_fetch_add(&next_number, 1);
	c->pub.dev = dev;
	c->pub.ops = &no_ops;
	c->pub.dev_fd = -1;
	c->pub.eid = eid;
	c->pub.eid_index = eid_index;
	c->pub.aggr_mode = URMA_AGGR_MODE_STANDALONE;
	atomic_init(&c->pub.ref.atomic_cnt, 1);
	ub_enlist(&c->node, &c->pub, UB_CONTEXT);
	return &c->pub;
}

urma_status_t urma_delete_context(urma_context_t *ctx)
{
	struct ub_context *c = ub_context_of(ctx);
	unsigned long children;
	int error;

	if (!ub_check("urma_delete_context", ctx, UB_CONTEXT))
		return URMA_EINVAL;
	children = atomic_load(&c->pub.ref.atomic_cnt) - 1;
	if (children && !xtal_context_is_foreign(c->core)) {
		ub_refuse("urma_delete_context: %lu queues, segments or other objects live in "
			  "context 0x%x; delete them first",
			  children, c->pub.uasid);
		return URMA_EAGAIN;
	}
	if (!ub_delist(&c->node))
		return URMA_EINVAL;
	xtal_context_end_waits(c->core, true);
	ub_drain(&c->node);
	error = xtal_context_close(&c->core);
	if (error) {
		xtal_context_end_waits(c->core, false);
		ub_refuse("urma_delete_context: context 0x%x cannot be closed: %s", c->pub.uasid,
			  ub_reason(error));
		ub_enlist(&c->node, &c->pub, UB_CONTEXT);
		return URMA_EAGAIN;
	}
	ub_ids_fini(&c->jetty_ids);
	ub_ids_fini(&c->jfr_ids);
	ub_ids_fini(&c->jfc_ids);
	ub_ids_fini(&c->token_ids);
	free(c);
	return URMA_SUCCESS;
}

urma_status_t urma_set_context_opt(urma_context_t *ctx, urma_opt_name_t opt_name,
				   const void *opt_value, size_t opt_len)
{
	if (!ub_check("urma_set_context_opt", ctx, UB_CONTEXT))
		return URMA_EINVAL;
	(void)opt_value;
	ub_refuse(
		"urma_set_context_opt: option %d with %zu bytes: only bonded devices have options, "
		"and %s is none",
		(int)opt_name, opt_len, ctx->dev->name);
	return URMA_EINVAL;
}

struct oldest {
	bool found;
	uint32_t number, uasid;
};

static bool older(struct ub_node *node, void *arg)
{
	const struct ub_context *c = ub_context_of(node->pub);
	struct oldest *o = arg;

	if (node->kind == UB_CONTEXT && (!o->found || c->number < o->number))
		*o = (struct oldest){ true, c->number, c->pub.uasid };
	return false;
}

urma_status_t urma_get_uasid(uint32_t *uasid)
{
	struct oldest o = { 0 };

	if (!uasid) {
		ub_refuse("urma_get_uasid: uasid is NULL");
		return URMA_EINVAL;
	}
	ub_each(older, &o);
	if (!o.found) {
		ub_refuse("urma_get_uasid: there is no context; each has a uasid of its own");
		return URMA_FAIL;
	}
	*uasid = o.uasid;
	return URMA_SUCCESS;
}

urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out)
{
	if (!ub_check("urma_user_ctl", ctx, UB_CONTEXT))
		return URMA_EINVAL;
	if (!in || !out) {
		ub_refuse("urma_user_ctl: %s is NULL", in ? "out" : "in");
		return URMA_EINVAL;
	}
	ub_refuse("urma_user_ctl: %s has no extension %u", ctx->dev->name, in->opcode);
	return URMA_FAIL;
}
