/* SPDX-License-Identifier: MIT */
/*
 * libtpsa.so: the one function that programs for URMA look up in the original's topology
 * library. There is no topology here.
 */
#ifndef XTAL_TPSA_H
#define XTAL_TPSA_H

#include <stdbool.h>
#include <stdint.h>

/* The paths between two devices (EIDs, 16 bytes): none are known. path_set is not touched.
 * Returns -ENOENT. */
int uvs_get_path_set(const void *src_eid, const void *dst_eid, uint32_t tp_type, bool iodie_level,
		     void *path_set);

#endif
