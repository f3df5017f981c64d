/* SPDX-License-Identifier: MIT */
/*
 * Settings, read once from the environment (XTAL_*) and an ini file; unknown names are
 * warned about with the nearest match.
 */
#ifndef XTAL_CORE_CONFIG_H
#define XTAL_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/eid.h"
#include "base/export.h"

/* When private memory of this process is adopted (adopt.h). */
enum xtal_adopt_when {
	XTAL_ADOPT_OFF,    /* never, not on request either */
	XTAL_ADOPT_AUTO,   /* what peers use much, where system calls into it can wait */
	XTAL_ADOPT_ALWAYS, /* all that is registered */
};

struct xtal_config {
	uint32_t paths;          /* bit (1 << enum xtal_path_kind) set: allowed */
	bool paths_by_hand;      /* somebody wrote down which */
	bool strict;             /* XTAL_STRICT: refuse what the hardware refuses */
	uint32_t pipelines;      /* 1..8 */
	uint32_t timeout_ms;     /* without progress, default 8000 */
	uint64_t inline_bytes;   /* up to this many are moved on the caller's thread at the post */
	uint64_t fragment_bytes; /* pieces that pipelines execute together */
	uint32_t spin_us;        /* how long the agent looks for more after a message, at most */
	uint64_t ring_bytes;     /* capacity of each direction of a message ring */
	uint32_t idle_ms;        /* after so long without use a TCP connection is closed */
	uint32_t revoke_ms;      /* patience with a peer that is in the middle of a copy */
	bool allow_cma;          /* XTAL_ALLOW_CMA: lift Yama's restriction on this process */
	bool any_uid;            /* XTAL_PEERS=any: serve peers of other uids (over ring) */
	const char *devices;     /* XTAL_DEVICES, as it was written; see device.c */
	bool insecure;           /* XTAL_SECURITY=none: plain messages between hosts */
	const char *key_file;    /* XTAL_KEY_FILE; "": none */
	enum xtal_adopt_when adopt;
	bool check;             /* XTAL_CHECK: tell programs what they do wrong */
	const char *fault;      /* XTAL_FAULT, as it was written; see fault_rules.h */
	uint64_t counter_start; /* XTAL_COUNTER_START: debug: ring counters, frame numbers */
};

/* The settings in force; the first call reads them. Never changes afterwards. */
XTAL_INTERNAL_API const struct xtal_config *xtal_config(void);

/* The same as xtal_config()->inline_bytes, without a call: for the hot path. Valid once
 * xtal_config() was called (every context does). */
extern uint64_t xtal_config_inline_bytes;
static inline uint64_t xtal_config_inline(void)
{
	return xtal_config_inline_bytes;
}
/* True when peers may be reached, or come, over TCP at this address: XTAL_PATHS says so, and for a
 * loopback address says it by hand. */
bool xtal_config_tcp(struct xtal_eid eid);
/* A front-end's own environment variable (CDMA_LOG_LEVEL), or NULL; ignored in setuid programs
 * like all others. The string stays the environment's. */
XTAL_INTERNAL_API const char *xtal_config_foreign(const char *name);

#endif
