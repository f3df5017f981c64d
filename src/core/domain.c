/* SPDX-License-Identifier: MIT */
/* Domains and the choice of a pipeline; see domain.h. */
#include "core/domain.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/config.h"
#include "core/context_impl.h"
#include "core/log.h"

struct xtal_domain {
	struct xtal_context *ctx;
	_Atomic uint32_t mask;
};

uint32_t xtal_domain_all(void)
{
	return (1u << xtal_config()->pipelines) - 1;
}

static int make(struct xtal_context *ctx, uint32_t mask, struct xtal_domain **out)
{
	struct xtal_domain *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ctx = ctx;
	atomic_init(&d->mask, mask);
	*out = d;
	return 0;
}

int xtal_domain_create(struct xtal_context *ctx, struct xtal_domain **out)
{
	return make(ctx, xtal_domain_all(), out);
}

int xtal_domain_copy(const struct xtal_domain *from, struct xtal_domain **out)
{
	return make(from->ctx, xtal_domain_mask(from), out);
}

void xtal_domain_free(struct xtal_domain **domain)
{
	free(*domain);
	*domain = NULL;
}

uint32_t xtal_domain_mask(const struct xtal_domain *domain)
{
	return atomic_load_explicit(&domain->mask, memory_order_relaxed);
}

int xtal_domain_set_mask(struct xtal_domain *domain, uint32_t mask)
{
	if (mask & ~xtal_domain_all()) {
		xtal_explain("pipeline mask 0x%x: this process has the pipelines 0x%x", mask,
			     xtal_domain_all());
		return -EINVAL;
	}
	atomic_store_explicit(&domain->mask, mask, memory_order_relaxed);
	return 0;
}

int xtal_domain_choose(struct xtal_context *ctx, uint32_t mask, uint32_t *pipeline)
{
	uint32_t count = xtal_config()->pipelines;
	uint32_t start = atomic_fetch_add_explicit(&ctx->next_pipeline, 1, memory_order_relaxed);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t candidate = (start + i) % count;

		if (mask & 1u << candidate) {
			*pipeline = candidate;
			return 0;
		}
	}
	xtal_explain("pipeline mask 0x%x leaves none of the pipelines 0x%x", mask,
		     xtal_domain_all());
	return -EINVAL;
}
