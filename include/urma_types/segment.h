/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: token ids and segments. */
#ifndef URMA_TYPES_SEGMENT_H
#define URMA_TYPES_SEGMENT_H

#include "urma_types/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An address in the memory of a context. */
typedef struct urma_ubva {
	urma_eid_t eid;
	uint32_t uasid; /* the context */
	uint64_t va;
} __attribute__((packed)) urma_ubva_t;

/* Flags of a segment that is registered. */
typedef union urma_reg_seg_flag {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1;
		uint32_t dsva : 1;
		uint32_t access : 6; /* URMA_ACCESS_* */
		uint32_t non_pin : 1;
		uint32_t user_iova : 1;
		uint32_t token_id_valid : 1; /* token_id of the cfg counts */
		uint32_t reserved : 18;
	} bs;
	uint32_t value;
} urma_reg_seg_flag_t;

/* The same, as the owner tells it out of band. */
typedef union urma_seg_attr {
	struct {
		uint32_t token_policy : 3;
		uint32_t cacheable : 1;
		uint32_t dsva : 1;
		uint32_t access : 6; /* URMA_ACCESS_* */
		uint32_t non_pin : 1;
		uint32_t user_iova : 1;
		uint32_t user_token_id : 1;
		uint32_t has_user_info : 1;
		uint32_t reserved : 17;
	} bs;
	uint32_t value;
} urma_seg_attr_t;

/* Flags of a segment that is imported; make no difference here. */
typedef union urma_import_seg_flag {
	struct {
		uint32_t cacheable : 1;
		uint32_t access : 6;
		uint32_t mapping : 1;
		uint32_t reserved : 24;
	} bs;
	uint32_t value;
} urma_import_seg_flag_t;

/* Flags of a token id. */
typedef union urma_token_id_flag {
	struct {
		uint32_t multi_seg : 1;
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_token_id_flag_t;

/* The number of one segment, or of several, in its context. */
typedef struct urma_token_id {
	urma_context_t *urma_ctx;
	uint32_t token_id;
	uint64_t handle;
	urma_ref_t ref;
	urma_token_id_flag_t flag;
} urma_token_id_t;

/* How a segment is registered. */
typedef struct urma_seg_cfg {
	uint64_t va;
	uint64_t len;              /* bytes */
	urma_token_id_t *token_id; /* its number; NULL: the library takes one */
	urma_token_t token_value;
	urma_reg_seg_flag_t flag;
	uint64_t user_ctx;
	uint64_t iova; /* not looked at */
} urma_seg_cfg_t;

/* A segment, as it is told out of band. */
typedef struct urma_seg {
	urma_ubva_t ubva;
	uint64_t len; /* bytes */
	urma_seg_attr_t attr;
	uint32_t token_id;
} urma_seg_t;

/* A segment that was registered or imported. */
typedef struct urma_target_seg {
	urma_seg_t seg;
	uint64_t user_ctx;
	uint64_t mva; /* 0 */
	urma_context_t *urma_ctx;
	urma_token_id_t *token_id; /* NULL when imported */
	uint64_t handle;           /* the library's */
} urma_target_seg_t;

/* Input of urma_user_ctl(). */
typedef struct urma_user_ctl_in {
	uint64_t addr;
	uint32_t len;
	uint32_t opcode;
} urma_user_ctl_in_t;

/* Output of urma_user_ctl(). */
typedef struct urma_user_ctl_out {
	uint64_t addr;
	uint32_t len;
	uint32_t reserved;
} urma_user_ctl_out_t;

/* What a request needs to reach a segment that was not imported. */
typedef struct urma_user_target_seg {
	urma_seg_attr_t attr;
	uint32_t token_id;
	urma_token_t token_value;
} urma_user_tseg_t;

#ifdef __cplusplus
}
#endif

#endif
