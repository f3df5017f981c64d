/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: requests, receives, completion records and events. */
#ifndef URMA_TYPES_REQUEST_H
#define URMA_TYPES_REQUEST_H

#include "urma_types/jetty.h"
#include "urma_types/segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of memory. */
typedef struct urma_sge {
	uint64_t addr;               /* in the process that owns the memory */
	uint32_t len;                /* bytes */
	urma_target_seg_t *tseg;     /* segment; may be NULL for local memory */
	urma_user_tseg_t *user_tseg; /* remote memory: in place of tseg */
} urma_sge_t;

/* A list of pieces. */
typedef struct urma_sg {
	urma_sge_t *sge;
	uint32_t num_sge;
} urma_sg_t;

/* Flags of a request. */
typedef union urma_jfs_wr_flag {
	struct {
		uint32_t place_order : 2; /* urma_place_order_t */
		uint32_t comp_order : 1;  /* completes after all posted before; else its peer's */
		uint32_t fence : 1;
		uint32_t solicited_enable : 1;
		uint32_t complete_enable : 1;
		uint32_t inline_flag : 1;
		uint32_t db_bypass : 1; /* makes no difference here */
		uint32_t udf : 1;
		uint32_t has_drv_ext : 1;
		uint32_t reserved : 22;
	} bs;
	uint32_t value;
} urma_jfs_wr_flag_t;

/* Flags of a receive; used by no function. */
typedef union urma_jfr_wr_flag {
	struct {
		uint32_t complete_type : 1;
		uint32_t reserved : 31;
	} bs;
	uint32_t value;
} urma_jfr_wr_flag_t;

/* A read or write. */
typedef struct urma_rw_wr {
	urma_sg_t src;
	urma_sg_t dst;
	uint8_t target_hint;  /* which member of a group */
	uint64_t notify_data; /* immediate data, or the 8 bytes for WRITE_NOTIFY */
} urma_rw_wr_t;

/* A message. */
typedef struct urma_send_wr {
	urma_sg_t src;
	uint8_t target_hint;
	uint64_t imm_data;
	urma_target_seg_t *tseg; /* SEND_INVALIDATE: what to withdraw */
} urma_send_wr_t;

/* A compare and swap, or a swap (cmp_data is not looked at). */
typedef struct urma_cas_wr {
	urma_sge_t *dst; /* in the target's memory */
	urma_sge_t *src; /* where the old value goes; its len counts */
	union {
		uint64_t cmp_data;
		uint64_t cmp_addr; /* 16 bytes: address of the value */
	};
	union {
		uint64_t swap_data;
		uint64_t swap_addr; /* 16 bytes: address of the value */
	};
} urma_cas_wr_t;

/* A fetch and add, or another of the fetching atomics. */
typedef struct urma_faa_wr {
	urma_sge_t *dst; /* in the target's memory */
	urma_sge_t *src; /* where the old value goes; its len counts */
	union {
		uint64_t operand;
		uint64_t operand_addr;
	};
} urma_faa_wr_t;

/* A request. */
typedef struct urma_jfs_wr {
	urma_opcode_t opcode;
	urma_jfs_wr_flag_t flag;
	urma_target_jetty_t *tjetty; /* target; not looked at for RC */
	uint64_t user_ctx;
	union {
		urma_rw_wr_t rw;
		urma_send_wr_t send;
		urma_cas_wr_t cas;
		urma_faa_wr_t faa;
	};
	struct urma_jfs_wr *next; /* NULL: the last of the chain */
} urma_jfs_wr_t;

/* A receive: where a message may land. */
typedef struct urma_jfr_wr {
	urma_sg_t src;
	uint64_t user_ctx;
	struct urma_jfr_wr *next; /* NULL: the last of the chain */
} urma_jfr_wr_t;

/* Flags of a completion record. */
typedef union urma_cr_flag {
	struct {
		uint8_t s_r : 1;            /* 1: a receive */
		uint8_t jetty : 1;          /* 1: local_id is a jetty */
		uint8_t suspend_done : 1;   /* 1: marker, no request */
		uint8_t flush_err_done : 1; /* 1: marker, no request */
		uint8_t reserved : 4;
	} bs;
	uint8_t value;
} urma_cr_flag_t;

/* The segment that a SEND_INVALIDATE withdrew. */
typedef struct urma_cr_token {
	uint32_t token_id;
	urma_token_t token_value;
} urma_cr_token_t;

/* A completion record: how one request or receive ended. */
typedef struct urma_cr {
	urma_cr_status_t status;
	uint64_t user_ctx;       /* of the request or receive */
	urma_cr_opcode_t opcode; /* what arrived; with s_r only */
	urma_cr_flag_t flag;
	uint32_t completion_len;   /* bytes moved */
	uint32_t local_id;         /* of the jetty or queue */
	urma_jetty_id_t remote_id; /* the peer's queue */
	union {
		uint64_t imm_data; /* of a message with immediate data */
		urma_cr_token_t invalid_token;
	};
	uint32_t tpn;        /* number of the link to the peer */
	uintptr_t user_data; /* the urma_jetty_t, urma_jfs_t or urma_jfr_t */
} urma_cr_t;

/* What urma_get_async_event() tells. */
typedef struct urma_async_event {
	const urma_context_t *urma_ctx;
	union { /* by event_type */
		urma_jfc_t *jfc;
		urma_jfs_t *jfs;
		urma_jfr_t *jfr;
		urma_jetty_t *jetty;
		urma_jetty_grp_t *jetty_grp;
		uint32_t port_id;
		uint32_t eid_idx;
	} element;
	urma_async_event_type_t event_type;
	void *priv; /* the library's */
} urma_async_event_t;

#ifdef __cplusplus
}
#endif

#endif
