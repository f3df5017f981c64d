/* SPDX-License-Identifier: MIT */
/*
 * cdma_abi.h - fixed layouts and numbers below the CDMA API: the parts of a device's
 * description, the completion statuses, and the records of the kernel protocol.
 *
 * Xtal has no kernel part. It uses only the first section; the records of the second are here
 * because programs compiled against this header may name them. CDMA_SYNC,
 * CDMA_CMD_GET_ASYNC_EVENT and CDMA_CMD_WAIT_JFC need <sys/ioctl.h> where they are used.
 */
#ifndef _UAPI_UB_CDMA_CDMA_ABI_H_
#define _UAPI_UB_CDMA_CDMA_ABI_H_

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <linux/types.h>
#ifdef __cplusplus
}
extern "C" {
#endif

/* ---- What a program sees ---- */

#define CDMA_MAX_EU_NUM 64

/* How an operation ended; dma_cr.status. */
enum dma_cr_status {
	DMA_CR_SUCCESS = 0,                 /* the bytes are in place */
	DMA_CR_UNSUPPORTED_OPCODE_ERR = 1,  /* the device does not know the operation */
	DMA_CR_LOC_LEN_ERR = 2,             /* local length too large */
	DMA_CR_LOC_OPERATION_ERR = 3,       /* no memory to carry it out */
	DMA_CR_LOC_ACCESS_ERR = 4,          /* local range not registered, or unmapped */
	DMA_CR_REM_RESP_LEN_ERR = 5,        /* answer of the wrong length */
	DMA_CR_REM_UNSUPPORTED_REQ_ERR = 6, /* target cannot do this (misaligned atomic) */
	DMA_CR_REM_OPERATION_ERR = 7,       /* never reported */
	DMA_CR_REM_ACCESS_ABORT_ERR = 8,    /* wrong tid, token or range, or withdrawn */
	DMA_CR_ACK_TIMEOUT_ERR = 9,         /* nobody there, dead, or silent for too long */
	DMA_CR_RNR_RETRY_CNT_EXC_ERR = 10,  /* target was not ready, too often */
	DMA_CR_WR_FLUSH_ERR = 11,           /* the queue broke before this operation's turn */
	DMA_CR_WR_SUSPEND_DONE = 12,        /* never reported */
	DMA_CR_WR_FLUSH_ERR_DONE = 13,      /* end of a flush; never reported */
	DMA_CR_WR_UNHANDLED = 14,           /* never reported */
	DMA_CR_LOC_DATA_POISON = 15,        /* broken local memory */
	DMA_CR_REM_DATA_POISON = 16,        /* broken remote memory */
};

/* The address of a device. dw0 holds it: an IPv4 address as a number in the processor's byte
 * order, or a small number that the configuration maps to an address. The rest is 0. */
struct dev_eid {
	__u32 dw0;
	__u32 dw1;
	__u32 dw2;
	__u32 dw3;
};

/* One entity unit: an address that a device answers to. */
struct eu_info {
	__u32 eid_idx; /* place in the device's table */
	struct dev_eid eid;
	__u32 upi; /* partition, 15 bits; 0 here */
};

struct cdma_device_cap {
	__u32 max_jfc;            /* completion queues per context */
	__u32 max_jfs;            /* send queues per context */
	__u32 max_jfc_depth;      /* records */
	__u32 max_jfs_depth;      /* operations: the limit of queue_cfg.queue_depth */
	__u32 max_jfs_inline_len; /* bytes; 0: no inline data */
	__u32 max_jfs_sge;        /* local pieces per operation */
	__u32 max_jfs_rsge;       /* remote pieces per operation */
	__u64 max_msg_size;       /* bytes per operation */
	__u32 max_atomic_size;    /* bytes */
	__u16 trans_mode;         /* bits: the values that queue_cfg.trans_mode may have */
	__u32 ceq_cnt;            /* completion event queues, at least 1 */
	__u32 max_eid_cnt;        /* addresses per device */
	__u64 page_size_cap;      /* bit n: pages of 2^n bytes */
};

struct cdma_device_attr {
	__u8 eu_num;        /* entries used of eus[], 1..64 */
	struct dev_eid eid; /* the device's own address */
	struct eu_info eu;  /* the one in use as source */
	struct eu_info eus[CDMA_MAX_EU_NUM];
	struct cdma_device_cap dev_cap;
};

/* ---- Kernel protocol: for completeness only ---- */

#define CDMA_IOC_MAGIC           'C'
#define CDMA_EVENT_CMD_MAGIC     'F'
#define CDMA_SYNC                _IOWR(CDMA_IOC_MAGIC, 0, struct cdma_ioctl_hdr)
#define JFAE_CMD_GET_ASYNC_EVENT 0
#define JFCE_CMD_WAIT_EVENT      0
#define CDMA_CMD_GET_ASYNC_EVENT \
	_IOWR(CDMA_EVENT_CMD_MAGIC, JFAE_CMD_GET_ASYNC_EVENT, struct cdma_cmd_async_event)
#define CDMA_CMD_WAIT_JFC \
	_IOWR(CDMA_EVENT_CMD_MAGIC, JFCE_CMD_WAIT_EVENT, struct cdma_cmd_jfce_wait_args)

#define MAP_COMMAND_MASK          0xff
#define MAP_INDEX_MASK            0xffffff
#define MAP_INDEX_SHIFT           8
#define CDMA_ADDR_SHIFT           32
#define CDMA_SRC_IDX_SHIFT        16
#define CDMA_DOORBELL_OFFSET      0x80
#define CDMA_CQE_STATUS_NUM       7
#define CDMA_CQE_SUB_STATUS_NUM   5
#define CDMA_INTER_ERR            1
#define CDMA_JFC_DB_CI_IDX_M      0x3fffff
#define CDMA_JFC_DB_VALID_OWNER_M 1
#define CDMA_CTX_RSP_ST64B_EN     1
#define CDMA_MAX_JFCE_EVENT_CNT   72
#define CDMA_TYPICAL_ERR_TIMEOUT  2
#define CDMA_TYPICAL_RNR_RETRY    7

enum db_mmap_type {
	CDMA_MMAP_JFC_PAGE = 0,
	CDMA_MMAP_JETTY_DSQE = 1,
};

enum cdma_cmd {
	CDMA_CMD_QUERY_DEV_INFO = 0,
	CDMA_CMD_CREATE_CTX = 1,
	CDMA_CMD_DELETE_CTX = 2,
	CDMA_CMD_CREATE_CTP = 3,
	CDMA_CMD_DELETE_CTP = 4,
	CDMA_CMD_CREATE_JFS = 5,
	CDMA_CMD_DELETE_JFS = 6,
	CDMA_CMD_REGISTER_SEG = 7,
	CDMA_CMD_UNREGISTER_SEG = 8,
	CDMA_CMD_CREATE_QUEUE = 9,
	CDMA_CMD_DELETE_QUEUE = 10,
	CDMA_CMD_CREATE_JFC = 11,
	CDMA_CMD_DELETE_JFC = 12,
	CDMA_CMD_CREATE_JFCE = 13,
	CDMA_CMD_MAX = 14,
};

enum {
	CQE_FOR_SEND = 0,
	CQE_FOR_RECEIVE = 1,
};

enum hw_cqe_opcode {
	HW_CQE_OPC_SEND = 0,
	HW_CQE_OPC_SEND_WITH_IMM = 1,
	HW_CQE_OPC_SEND_WITH_INV = 2,
	HW_CQE_OPC_WRITE_WITH_IMM = 3,
	HW_CQE_OPC_ERR = 0xff,
};

enum jfc_poll_state {
	JFC_OK = 0,
	JFC_EMPTY = 1,
	JFC_POLL_ERR = 2,
};

struct cdma_ioctl_hdr {
	__u32 command, args_len;
	__u64 args_addr;
};

struct cdma_cmd_udrv_priv {
	__u64 in_addr;
	__u32 in_len;
	__u64 out_addr;
	__u32 out_len;
};

struct cdma_jfc_db {
	__u32 ci : 24, notify : 1, arm_sn : 2, type : 1, rsv1 : 4;
	__u32 jfcn : 20, rsv2 : 12;
};

struct cdma_create_jfs_ucmd {
	__u64 buf_addr;
	__u32 buf_len;
	__u64 db_addr, idx_addr;
	__u32 idx_len;
	__u64 jetty_addr;
	__u32 sqe_bb_cnt, jetty_type, non_pin, jfs_id, queue_id, tid;
};

struct cdma_create_jfc_ucmd {
	__u64 buf_addr;
	__u32 buf_len;
	__u64 db_addr;
	__u32 mode, tid;
};

struct cdma_cmd_async_event {
	__u64 event_data;
	__u32 event_type;
};

struct cdma_cmd_query_device_attr_args {
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		struct cdma_device_attr attr;
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_create_context_args {
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u8 cqe_size, dwqe_enable;
		int async_fd;
		__u32 rsv_bitmap;
		__u8 st64b_en, pad[3];
		__u32 rsvd[3];
	} out;
};

struct cdma_cmd_create_ctp_args {
	struct {
		__u32 scna, dcna, eid_idx, upi;
		__u64 dma_tp;
		__u32 seid, deid, queue_id, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 tpn;
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_delete_ctp_args {
	struct {
		__u32 tpn;
		__u64 handle;
		__u32 queue_id, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_create_jfs_args {
	struct {
		__u32 depth, flag, eid_idx;
		__u8 priority, max_sge, max_rsge, retry_cnt, rnr_retry, err_timeout;
		__u32 jfc_id, queue_id, rmt_eid, pld_token_id, tpn;
		__u64 dma_jfs;
		__u32 trans_mode, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 id, depth;
		__u8 max_sge, max_rsge;
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} out;
	struct cdma_cmd_udrv_priv udata;
};

struct cdma_cmd_delete_jfs_args {
	struct {
		__u32 jfs_id;
		__u64 handle;
		__u32 queue_id, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_create_jfce_args {
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		int fd, id;
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_create_jfc_args {
	struct {
		__u32 depth;
		int jfce_fd, jfce_id;
		__u32 ceqn, queue_id, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 id, depth;
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} out;
	struct cdma_cmd_udrv_priv udata;
};

struct cdma_cmd_delete_jfc_args {
	struct {
		__u32 jfcn;
		__u64 handle;
		__u32 queue_id, rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 comp_events_reported, async_events_reported, rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_jfce_wait_args {
	struct {
		__u32 max_event_cnt;
		int time_out;
	} in;
	struct {
		__u32 event_cnt;
		__u64 event_data[CDMA_MAX_JFCE_EVENT_CNT];
	} out;
};

struct cdma_cmd_register_seg_args {
	struct {
		__u64 addr, len;
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_unregister_seg_args {
	struct {
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_create_queue_args {
	struct {
		__u32 queue_depth, dcna, rmt_eid;
		__u8 priority;
		__u64 user_ctx;
		__u32 trans_mode, rsv_bitmap, rsvd[4];
	} in;
	struct {
		int queue_id;
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

struct cdma_cmd_delete_queue_args {
	struct {
		__u32 queue_id;
		__u64 handle;
		__u32 rsv_bitmap, rsvd[4];
	} in;
	struct {
		__u32 rsv_bitmap, rsvd[4];
	} out;
};

#ifdef __cplusplus
}
#endif

#endif
