/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: sizes, limits, bits of masks, and what all of it includes of the system. */
#ifndef URMA_TYPES_LIMITS_H
#define URMA_TYPES_LIMITS_H

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/socket.h>
#ifdef __cplusplus
#include <atomic>
#else
#include <stdatomic.h>
#endif
#ifdef __cplusplus
}
#endif

/* Sizes and limits. */
#define URMA_API_VERSION            9
#define MAX_PORT_CNT                8    /* ports per device */
#define URMA_MAX_JETTY_IN_JETTY_GRP 32   /* members of a group */
#define URMA_MAX_NAME               64   /* with the final 0 */
#define URMA_MAX_PATH               4096 /* with the final 0 */
#define URMA_EID_SIZE               16
#define URMA_MAX_PRIORITY_CNT       16
#define URMA_IPV4_MAP_IPV6_PREFIX   0xffff /* of an IPv4 address in an EID */
#define URMA_MAX_EID_CNT            1024
#define URMA_CC_IDX_TABLE_SIZE      80
#define URMA_OPT_REVERSED_NUM       4
#define URMA_EID_STR_LEN            39         /* characters of an EID as text */
#define URMA_SEG_TOKEN_ID_INVALID   UINT32_MAX /* no token id */
#define URMA_MAX_DEV_NAME           64         /* with the final 0 */
#define URMA_GUID_SIZE              16
#define URMA_IP_ADDR_BYTES          16
#define URMA_MAC_BYTES              6

/* Which fields of an urma_*_opt struct were set. */
#define URMA_JFS_SQE_BASE_ADDR_MASK 1
#define URMA_JFS_ID_MASK            2
#define URMA_JFS_DB_ADDR_MASK       4
#define URMA_JFS_DB_STATUS_MASK     8
#define URMA_JFS_PI_MASK            16
#define URMA_JFS_PI_TYPE_MASK       32
#define URMA_JFS_CI_MASK            64
#define URMA_JFR_RQE_BASE_ADDR_MASK 1
#define URMA_JFR_ID_MASK            2
#define URMA_JFR_DB_ADDR_MASK       4
#define URMA_JFR_DB_STATUS_MASK     8
#define URMA_JFR_PI_MASK            16
#define URMA_JFR_PI_TYPE_MASK       32
#define URMA_JFR_CI_MASK            64
#define URMA_JFC_CQE_BASE_ADDR_MASK 1
#define URMA_JFC_ID_MASK            2
#define URMA_JFC_DB_ADDR_MASK       4
#define URMA_JFC_DB_STATUS_MASK     8
#define URMA_JFC_PI_MASK            16
#define URMA_JFC_PI_TYPE_MASK       32
#define URMA_JFC_CI_MASK            64

/* Of the structs for named regions below. */
#define UR_NAME_MAX_LEN          256
#define JFR_NAME_MAX_LEN         256
#define URMA_MAX_SEGS_PER_UR_OPT 64

/* printf format of an EID, and its arguments. */
#define EID_FMT \
	"%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x:%2.2x%2.2x"
#define EID_RAW_ARGS(eid)                                                                        \
	eid[0], eid[1], eid[2], eid[3], eid[4], eid[5], eid[6], eid[7], eid[8], eid[9], eid[10], \
		eid[11], eid[12], eid[13], eid[14], eid[15]
#define EID_ARGS(eid) EID_RAW_ARGS((eid).raw)

/* A version from its major and minor number; the latter ends at 65535. */
#define URMA_GET_VERSION(a, b) (((a) << 16) + ((b) > 65535 ? 65535 : (b)))

#endif
