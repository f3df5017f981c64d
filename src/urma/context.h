/* SPDX-License-Identifier: MIT */
/* Devices and contexts of the URMA front-end, and what belongs to a context. */
#ifndef XTAL_URMA_CONTEXT_H
#define XTAL_URMA_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/eid.h"
#include "core/context.h"
#include "ids.h"
#include "log.h"
#include "object.h"
#include "urma_api.h"
#include "urma_provider.h"

#define UB_MAX_SGE        16u    /* pieces of local memory in a request */
#define UB_MAX_RSGE       2u     /* pieces of remote memory: WRITE_NOTIFY has two */
#define UB_MAX_RECV_SGE   16u    /* pieces of a receive */
#define UB_MAX_INLINE     256u   /* bytes */
#define UB_MAX_DEPTH      65536u /* of every queue */
#define UB_MAX_JETTY      0xffff0000u
#define UB_MAX_RETRY      7u
#define UB_MAX_GROUP_SIZE URMA_MAX_JETTY_IN_JETTY_GRP

struct ub_context {
	urma_context_t pub;
	struct ub_node node;
	struct xtal_context *core;
	const struct xtal_device *device;
	uint32_t number;         /* of contexts, in the order they were made */
	struct ub_ids jetty_ids; /* of jetties, send queues and groups */
	struct ub_ids jfr_ids, jfc_ids, token_ids;
	/* what urma_set_tp_attr() was told; under ub_lock() */
	uint8_t tp_attr_count;
	uint32_t tp_attr_bitmap;
	urma_tp_attr_value_t tp_attr;
};

static inline struct ub_context *ub_context_of(const urma_context_t *ctx)
{
	return (struct ub_context *)(uintptr_t)ctx; /* pub comes first */
}
_Static_assert(offsetof(struct ub_context, pub) == 0, "the public struct is the head");

/* One more, or one less, object lives in the context. */
static inline void ub_context_hold(struct ub_context *c)
{
	atomic_fetch_add(&c->pub.ref.atomic_cnt, 1);
}
static inline void ub_context_release(struct ub_context *c)
{
	atomic_fetch_sub(&c->pub.ref.atomic_cnt, 1);
}

/* The device behind a pointer from the program, or NULL after a refusal. */
const struct xtal_device *ub_device_check(const char *function, const urma_device_t *dev);
/* The index-th address of a device: its own, then the numbers that the site gave it. False: there
 * are not so many. */
bool ub_device_eid(const struct xtal_device *device, unsigned index, urma_eid_t *out);

/* Addresses, ours and foreign. */
urma_eid_t ub_eid_out(struct xtal_eid eid);
struct xtal_eid ub_eid_in(const urma_eid_t *eid);
/* What a program's EID stands for, seen from the context. */
struct xtal_eid ub_eid_resolve(const struct ub_context *c, const urma_eid_t *eid);

/* A constructor of the API failed: errno gets error, the caller returns what this returns. */
void *ub_null(int error);

#endif
