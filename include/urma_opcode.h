/* SPDX-License-Identifier: MIT */
/*
 * urma_opcode.h - the numbers of the URMA API: operations, statuses, states, flags, options.
 * Programs include urma_api.h.
 */
#ifndef URMA_OPCODE_H
#define URMA_OPCODE_H

#include <errno.h>

/* Token policies. Only the first two are supported. */
#define URMA_TOKEN_NONE          0
#define URMA_TOKEN_PLAIN_TEXT    1 /* a 32-bit value, compared */
#define URMA_TOKEN_SIGNED        2
#define URMA_TOKEN_ALL_ENCRYPTED 3
#define URMA_TOKEN_RESERVED      4

/* urma_reg_seg_flag_t.bs.token_id_valid */
#define URMA_TOKEN_ID_INVALID 0
#define URMA_TOKEN_ID_VALID   1

/* urma_reg_seg_flag_t.bs.dsva */
#define URMA_DSVA_DISABLE 0
#define URMA_DSVA_ENABLE  1

/* Flag cacheable of segments; makes no difference here. */
#define URMA_NON_CACHEABLE 0
#define URMA_CACHEABLE     1

/* Rights of a segment: LOCAL_ONLY alone, or READ, READ with WRITE, or all three others. What the
 * owner itself does with its memory is always allowed. */
#define URMA_ACCESS_LOCAL_ONLY 0x1
#define URMA_ACCESS_READ       0x2
#define URMA_ACCESS_WRITE      0x4
#define URMA_ACCESS_ATOMIC     0x8

/* Where memory lies; used by no function. */
#define URMA_LOCAL_MEMORY  0
#define URMA_REMOTE_MEMORY 1

/* urma_import_seg_flag_t.bs.mapping; makes no difference here. */
#define URMA_SEG_NOMAP  0
#define URMA_SEG_MAPPED 1

/* Kinds of addresses; used by no function. */
#define URMA_ADDR_TYPE_MVA  0
#define URMA_ADDR_TYPE_UBVA 1

/* urma_jfs_wr_flag_t.bs.complete_enable: a record on success too, or only on failure. */
#define URMA_COMPLETE_ENABLE  1
#define URMA_COMPLETE_DISABLE 0

/* urma_jfr_wr_flag_t.bs.complete_type; used by no function. */
#define URMA_COMPLETE_TYPE_JFC 0
#define URMA_COMPLETE_TYPE_CF  1

/* Names from older versions of the API, used by no function. */
#define URMA_DEPENDENCY_NONE  0
#define URMA_DEPENDENCY_FIRST 1
#define URMA_DEPENDENCY_DELAY 2
#define URMA_NOTIFY_DISABLE   0
#define URMA_NOTIFY_ENABLE    1
#define URMA_NOTIFY_TYPE_JFC  0
#define URMA_NOTIFY_TYPE_RVA  1

/* urma_jfs_wr_flag_t.bs.inline_flag: the payload is copied when it is posted. */
#define URMA_INLINE_DISABLE 0
#define URMA_INLINE_ENABLE  1

/* urma_jfs_wr_flag_t.bs.solicited_enable: the receiver's record counts as solicited. */
#define URMA_SOLICITED_DISABLE 0
#define URMA_SOLICITED_ENABLE  1

/* urma_jfs_wr_flag_t.bs.fence: begins when earlier reads and atomics have returned. */
#define URMA_FENCE_DISABLE 0
#define URMA_FENCE_ENABLE  1

/* Names from older versions of the API, used by no function. */
#define URMA_REGULAR   1
#define URMA_IRREGULAR 0

/* urma_jfr_flag_t.bs.tag_matching; tags are not supported. */
#define URMA_NO_TAG_MATCHING   0
#define URMA_WITH_TAG_MATCHING 1

/* Names from older versions of the API, used by no function. */
#define URMA_NONPOST_LS 0
#define URMA_POST_LS    1

/* urma_jetty_flag_t.bs.share_jfr */
#define URMA_NO_SHARE_JFR 0
#define URMA_SHARE_JFR    1

/* What programs usually put into their queues. */
#define URMA_TYPICAL_RNR_RETRY     7  /* retries for ever */
#define URMA_TYPICAL_ERR_TIMEOUT   17 /* 4.096 us * 2^17: 0.54 s */
#define URMA_TYPICAL_MIN_RNR_TIMER 12 /* about 0.64 ms */
#define URMA_MAX_PRIORITY          15 /* priorities are 0..15 */

/* Values of urma_status_t. */
#define URMA_SUCCESS     0      /* done */
#define URMA_EAGAIN      11     /* in use, or nothing there: later */
#define URMA_ENOMEM      12     /* no memory, or the queue is full */
#define URMA_ENOPERM     1      /* not permitted in this state */
#define URMA_ETIMEOUT    110    /* the time ran out */
#define URMA_EINVAL      22     /* an argument is wrong */
#define URMA_EEXIST      17     /* exists already */
#define URMA_EINPROGRESS 115    /* under way */
#define URMA_FAIL        0x1000 /* any other failure */

/* Options of send queues (urma_set_jfs_opt(), urma_get_jfs_opt()), and of the sending side of a
 * jetty. Those of queue memory, doorbells and indexes exist in hardware only. */
#define URMA_JFS_DEPTH           1
#define URMA_JFS_FLAG            2
#define URMA_JFS_TRANS_MODE      3
#define URMA_JFS_PRIORITY        4
#define URMA_JFS_MAX_SGE         5
#define URMA_JFS_MAX_RSGE        6
#define URMA_JFS_MAX_INLINE_DATA 7
#define URMA_JFS_RNR_RETRY       8
#define URMA_JFS_ERR_TIMEOUT     9
#define URMA_JFS_BIND_JFC        10
#define URMA_JFS_USER_CTX        11
#define URMA_JFS_SQE_BASE_ADDR   12
#define URMA_JFS_ID              13
#define URMA_JFS_DB_ADDR         14
#define URMA_JFS_DB_STATUS       15
#define URMA_JFS_PI              16
#define URMA_JFS_PI_TYPE         17
#define URMA_JFS_CI              18
#define URMA_JFS_FULL_CTX        19

/* Options of receive queues (urma_set_jfr_opt(), urma_get_jfr_opt()). */
#define URMA_JFR_DEPTH         0x1001
#define URMA_JFR_FLAG          0x1002
#define URMA_JFR_TRANS_MODE    0x1003
#define URMA_JFR_MAX_SGE       0x1004
#define URMA_JFR_MIN_RNR_TIMER 0x1005
#define URMA_JFR_BIND_JFC      0x1006
#define URMA_JFR_TOKEN_VALUE   0x1007
#define URMA_JFR_USER_CTX      0x1008
#define URMA_JFR_RQE_BASE_ADDR 0x1009
#define URMA_JFR_ID            0x100a
#define URMA_JFR_DB_ADDR       0x100b
#define URMA_JFR_DB_STATUS     0x100c
#define URMA_JFR_PI            0x100d
#define URMA_JFR_PI_TYPE       0x100e
#define URMA_JFR_CI            0x100f
#define URMA_JFR_FULL_CTX      0x1010

/* Options of completion queues (urma_set_jfc_opt(), urma_get_jfc_opt()). */
#define URMA_JFC_DEPTH         0x2001
#define URMA_JFC_CEQN          0x2002
#define URMA_JFC_FLAG          0x2003
#define URMA_JFC_BIND_JFCE     0x2004
#define URMA_JFC_USER_CTX      0x2005
#define URMA_JFC_CQE_BASE_ADDR 0x2006
#define URMA_JFC_ID            0x2007
#define URMA_JFC_DB_ADDR       0x2008
#define URMA_JFC_DB_STATUS     0x2009
#define URMA_JFC_PI            0x200a
#define URMA_JFC_PI_TYPE       0x200b
#define URMA_JFC_CI            0x200c
#define URMA_JFC_FULL_CTX      0x200d

/* Options of jetties (urma_set_jetty_opt(), urma_get_jetty_opt()), beside those of send queues. */
#define URMA_JETTY_ID          0x3001
#define URMA_JETTY_FLAG        0x3002
#define URMA_JETTY_BIND_JFR    0x3003
#define URMA_JETTY_BIND_RX_JFC 0x3004
#define URMA_JETTY_BIND_JTG    0x3005
#define URMA_JETTY_USER_CTX    0x3006
#define URMA_JETTY_FULL_CTX    0x3007

/* In which order the bytes of requests become visible at the target. They always do in the order
 * of posting here. */
typedef enum urma_place_order {
	URMA_NO_ORDER = 0,
	URMA_RELAX_ORDER = 1,
	URMA_STRONG_ORDER = 2,
} urma_place_order_t;

/* What a request does. */
typedef enum urma_opcode {
	URMA_OPC_WRITE = 0,
	URMA_OPC_WRITE_IMM = 1,    /* a write, then a receive at the target */
	URMA_OPC_WRITE_NOTIFY = 2, /* a write, then 8 bytes stored at a second address */
	URMA_OPC_READ = 16,
	URMA_OPC_CAS = 32, /* compare and swap, 4, 8 or 16 bytes */
	URMA_OPC_SWAP = 33,
	URMA_OPC_FADD = 34, /* fetch and add, 4 or 8 bytes */
	URMA_OPC_FSUB = 35,
	URMA_OPC_FAND = 36,
	URMA_OPC_FOR = 37,
	URMA_OPC_FXOR = 38,
	URMA_OPC_SEND = 64,
	URMA_OPC_SEND_IMM = 65,
	URMA_OPC_SEND_INVALIDATE = 66, /* a send that withdraws a segment of the receiver's */
	URMA_OPC_NOP = 81,             /* only completes */
	URMA_OPC_WRITE_ATOMIC = 96,
	URMA_OPC_FLUSH_DMA = 128,
	URMA_OPC_LAST = 129, /* one more than the last */
} urma_opcode_t;

/* What most functions return; see the values of URMA_SUCCESS and the like. */
typedef int urma_status_t;

/* How a request ended; urma_cr_t.status. */
typedef enum urma_cr_status {
	URMA_CR_SUCCESS = 0,                 /* the bytes are in place */
	URMA_CR_UNSUPPORTED_OPCODE_ERR = 1,  /* the device does not know the operation */
	URMA_CR_LOC_LEN_ERR = 2,             /* the message was longer than the receive */
	URMA_CR_LOC_OPERATION_ERR = 3,       /* never reported */
	URMA_CR_LOC_ACCESS_ERR = 4,          /* local memory is not mapped */
	URMA_CR_REM_RESP_LEN_ERR = 5,        /* answer of the wrong length */
	URMA_CR_REM_UNSUPPORTED_REQ_ERR = 6, /* the target cannot do this */
	URMA_CR_REM_OPERATION_ERR = 7,       /* never reported */
	URMA_CR_REM_ACCESS_ABORT_ERR = 8,    /* wrong token, range or right, or withdrawn */
	URMA_CR_ACK_TIMEOUT_ERR = 9,         /* nobody there, dead, or silent for too long */
	URMA_CR_RNR_RETRY_CNT_EXC_ERR = 10,  /* no receive was posted, too often */
	URMA_CR_WR_FLUSH_ERR = 11,           /* the queue broke before its turn came */
	URMA_CR_WR_SUSPEND_DONE = 12,        /* marker: the queue is suspended */
	URMA_CR_WR_FLUSH_ERR_DONE = 13,      /* marker: the last record of the queue */
	URMA_CR_WR_UNHANDLED = 14,           /* handed back by a flush */
	URMA_CR_LOC_DATA_POISON = 15,        /* broken local memory */
	URMA_CR_REM_DATA_POISON = 16,        /* broken remote memory */
} urma_cr_status_t;

/* What arrived; urma_cr_t.opcode of the receiving side. */
typedef enum urma_cr_opcode {
	URMA_CR_OPC_SEND = 0,
	URMA_CR_OPC_SEND_WITH_IMM = 1,
	URMA_CR_OPC_SEND_WITH_INV = 2,
	URMA_CR_OPC_WRITE_WITH_IMM = 3,
	URMA_CR_OPC_FLUSH_WRITE = 4,
} urma_cr_opcode_t;

/* Kinds of events from urma_get_async_event(). */
typedef enum urma_async_event_type {
	/* More records wait in a completion queue than it is deep: with XTAL_STRICT=1. None is lost. */
	URMA_EVENT_JFC_ERR = 0,
	URMA_EVENT_JFS_ERR = 1, /* a failure broke a send queue */
	URMA_EVENT_JFR_ERR = 2,
	URMA_EVENT_JFR_LIMIT = 3, /* fewer receives are posted than asked for */
	URMA_EVENT_JETTY_ERR = 4, /* a failure broke a jetty */
	URMA_EVENT_JETTY_LIMIT = 5,
	URMA_EVENT_JETTY_GRP_ERR = 6,
	URMA_EVENT_PORT_ACTIVE = 7,
	URMA_EVENT_PORT_DOWN = 8,
	URMA_EVENT_DEV_FATAL = 9,
	URMA_EVENT_EID_CHANGE = 10,
	URMA_EVENT_ELR_ERR = 11,
	URMA_EVENT_ELR_DONE = 12,
} urma_async_event_type_t;

/* States of a completion queue. */
typedef enum urma_jfc_state {
	URMA_JFC_STATE_INVALID = 0,
	URMA_JFC_STATE_VALID = 1,
	URMA_JFC_STATE_ERROR = 2,
} urma_jfc_state_t;

/* States of a jetty or send queue: RESET to READY to SUSPENDED or ERROR, SUSPENDED to ERROR,
 * ERROR to RESET. A queue is READY when it is made. */
typedef enum urma_jetty_state {
	URMA_JETTY_STATE_RESET = 0,
	URMA_JETTY_STATE_READY = 1,
	URMA_JETTY_STATE_SUSPENDED = 2,
	URMA_JETTY_STATE_ERROR = 3,
} urma_jetty_state_t;

/* States of a receive queue, in the same order. */
typedef enum urma_jfr_state {
	URMA_JFR_STATE_RESET = 0,
	URMA_JFR_STATE_READY = 1,
	URMA_JFR_STATE_ERROR = 2,
} urma_jfr_state_t;

#endif
