/* SPDX-License-Identifier: MIT */
/* The answer of a library without a topology. */
#include <errno.h>

#include "tpsa.h"

int uvs_get_path_set(const void *src_eid, const void *dst_eid, uint32_t tp_type, bool iodie_level,
		     void *path_set)
{
	(void)src_eid;
	(void)dst_eid;
	(void)tp_type;
	(void)iodie_level;
	(void)path_set;
	return -ENOENT;
}
