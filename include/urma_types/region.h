/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: named regions; layouts that programs may name, and no function uses. */
#ifndef URMA_TYPES_REGION_H
#define URMA_TYPES_REGION_H

#include "urma_types/jetty.h"
#include "urma_types/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Named regions: layouts that programs may name; no function uses them. */
typedef union urma_ur_attr {
	struct {
		uint32_t reserved : 32;
	} bs;
	uint32_t value;
} urma_ur_attr_t;

typedef union urma_import_ur_flag {
	struct {
		uint32_t mapping : 2;
		uint32_t reserved : 30;
	} bs;
	uint32_t value;
} urma_import_ur_flag_t;

typedef struct urma_ur {
	char name[256];
	uint64_t size;
	urma_ur_attr_t attr;
	uint64_t token;
	uint64_t user_ctx;
} urma_ur_t;

typedef struct urma_target_ur {
	char name[256];
	uint64_t size;
	urma_import_ur_flag_t flag;
	urma_target_seg_t **tseg_list;
	uint32_t cnt;
} urma_target_ur_t;

typedef struct urma_seg_info {
	urma_seg_t seg;
	uint32_t idx_in_ur;
} urma_seg_info_t;

typedef struct urma_ur_info {
	char name[256];
	uint64_t size;
	urma_ur_attr_t attr;
	uint32_t cnt;
	urma_seg_info_t seg_list[0];
} urma_ur_info_t;

typedef struct urma_jfr_info {
	char name[256];
	urma_eid_t eid;
	uint32_t uasid;
	uint32_t id;
} urma_jfr_info_t;

#ifdef __cplusplus
}
#endif

#endif
