/* SPDX-License-Identifier: MIT */
/* Of urma_types.h: what programs lend to be called, levels of the log, addresses as text. */
#ifndef URMA_TYPES_TEXT_H
#define URMA_TYPES_TEXT_H

#include "urma_types/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with an event; used by no function. */
typedef void (*urma_async_event_cb)(urma_async_event_t *, void *);

/* For urma_advise_jfr_async(); never called. */
typedef void (*urma_advise_async_cb_func)(urma_status_t, void *);

/* Levels of the log. */
typedef enum urma_vlog_level {
	URMA_VLOG_LEVEL_EMERG = 0,
	URMA_VLOG_LEVEL_ALERT = 1,
	URMA_VLOG_LEVEL_CRIT = 2,
	URMA_VLOG_LEVEL_ERR = 3,
	URMA_VLOG_LEVEL_WARNING = 4,
	URMA_VLOG_LEVEL_NOTICE = 5,
	URMA_VLOG_LEVEL_INFO = 6,
	URMA_VLOG_LEVEL_DEBUG = 7,
	URMA_VLOG_LEVEL_MAX = 8,
} urma_vlog_level_t;

/* Gets finished lines: level, text. */
typedef void (*urma_log_cb_t)(int, char *);

/* Gets finished lines with where they come from: level, file, function, line, text. */
typedef void (*urma_loc_log_cb)(int, const char *, const char *, int, char *);

/**
 * urma_str_to_eid - an address from text
 *
 * @buf: an IPv6 address, an IPv4 address, or a number that stands for an IPv4 address
 * @eid: filled
 *
 * Returns: 0 or one of the errors.
 * Errors:
 *   -EINVAL: an argument is NULL, or buf is nothing of this kind
 * Threads: any.
 * Contract: URMA.
 */
int urma_str_to_eid(const char *buf, urma_eid_t *eid);

/**
 * urma_u32_to_eid - an address from an IPv4 address
 *
 * @ipv4: the address as a number: 0x7f000001 for 127.0.0.1
 * @eid: filled
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_u32_to_eid(uint32_t ipv4, urma_eid_t *eid);

#ifdef __cplusplus
}
#endif

#endif
