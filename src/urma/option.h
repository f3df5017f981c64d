/* SPDX-License-Identifier: MIT */
/* Options of queues that are made in two steps: which field of which settings each one is. */
#ifndef XTAL_URMA_OPTION_H
#define XTAL_URMA_OPTION_H

#include <stddef.h>
#include <stdint.h>

#include "ids.h"
#include "urma_types.h"

struct ub_option {
	uint64_t opt;
	uint32_t offset, size; /* of the settings' field */
};
struct ub_options {
	const struct ub_option *list;
	size_t count;
};

extern const struct ub_options ub_jfc_options, ub_jfs_options, ub_jfr_options, ub_jetty_options;

/* Copy a value into, or out of, settings. URMA_EINVAL after a refusal: unknown, of hardware only,
 * another size, buf is NULL. */
urma_status_t ub_option_set(const char *function, const struct ub_options *options, void *settings,
			    uint64_t opt, const void *buf, uint32_t len);
urma_status_t ub_option_get(const char *function, const struct ub_options *options,
			    const void *settings, uint64_t opt, void *buf, uint32_t len);
/* For values that are no settings. */
urma_status_t ub_option_copy(const char *function, const void *value, uint32_t size, void *buf,
			     uint32_t len);

/* Exchanges an object's id for the one in buf. id and shown are where it is kept. */
urma_status_t ub_option_id(const char *function, struct ub_ids *ids, const void *buf, uint32_t len,
			   uint32_t *id, uint32_t *shown);

#endif
