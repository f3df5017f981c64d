/* SPDX-License-Identifier: MIT */
/*
 * Domains (protection domains): which pipelines the queues made in them may use. Plain values
 * once a queue is made: changing or freeing a domain later touches no queue.
 */
#ifndef XTAL_CORE_DOMAIN_H
#define XTAL_CORE_DOMAIN_H

#include <stdint.h>

#include "base/export.h"
#include "core/context.h"

struct xtal_domain;

/* The mask with all pipelines of this process: the low xtal_config()->pipelines bits. */
XTAL_INTERNAL_API uint32_t xtal_domain_all(void);

/* A domain of ctx with all pipelines. Errors: -ENOMEM. */
XTAL_INTERNAL_API int xtal_domain_create(struct xtal_context *ctx, struct xtal_domain **out);
/* A new domain with the mask that the other has at this moment. Errors: -ENOMEM. */
XTAL_INTERNAL_API int xtal_domain_copy(const struct xtal_domain *from, struct xtal_domain **out);
/* NULLs *domain. */
XTAL_INTERNAL_API void xtal_domain_free(struct xtal_domain **domain);

XTAL_INTERNAL_API uint32_t xtal_domain_mask(const struct xtal_domain *domain);
/* Errors: -EINVAL: a bit beyond xtal_domain_all(). 0 is accepted; no queue can be made then. */
XTAL_INTERNAL_API int xtal_domain_set_mask(struct xtal_domain *domain, uint32_t mask);

/* The next pipeline for a queue of ctx within mask: strict alternation over the context's
 * queues, skipping pipelines outside the mask. Errors: -EINVAL (mask has no pipeline). */
int xtal_domain_choose(struct xtal_context *ctx, uint32_t mask, uint32_t *pipeline);

#endif
