/* SPDX-License-Identifier: MIT */
/* The ini files: settings in any section, and the table of small site EIDs in [eids]. */
#ifndef XTAL_CORE_CONFIG_INI_H
#define XTAL_CORE_CONFIG_INI_H

#include <stdint.h>

#include "base/eid.h"

/* While the settings are read: the one file that was asked for, or (path "") the usual ones. */
void xtal_config_read_files(const char *path);
/* Sets one by its environment name, unless something stronger did already (config.c). */
void xtal_config_set(const char *name, const char *value, const char *origin);

/* The address that the table gives a small site EID. Errors: -ENOENT. */
int xtal_config_site_eid(uint32_t small, struct xtal_eid *out);
/* The small EIDs that the table gives an address: the index-th. Errors: -ENOENT. Of
 * link-local addresses the scope counts only if both have one. */
int xtal_config_site_of(struct xtal_eid eid, unsigned index, uint32_t *small);

#endif
