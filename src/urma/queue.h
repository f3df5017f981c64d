/* SPDX-License-Identifier: MIT */
/* Queues of the URMA front-end: the private structs around the public ones. */
#ifndef XTAL_URMA_QUEUE_H
#define XTAL_URMA_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context.h"
#include "core/channel.h"
#include "core/queue.h"
#include "core/receive.h"
#include "core/shared_cq.h"
#include "segment.h"

/* Where the magic of an active queue is, so that the data path asks no register. */
#define UB_JFC_MAGIC  0x55424643u
#define UB_SEND_MAGIC 0x55425344u
#define UB_JFR_MAGIC  0x55424652u
/* The same where XTAL_CHECK looks at the calls first (check.h). */
#define UB_JFC_CHECKED  0x55624643u
#define UB_SEND_CHECKED 0x55625344u
#define UB_JFR_CHECKED  0x55624652u

/* cr.opcode of what is no receive: none of the numbers that programs compare with. */
#define UB_NO_OPCODE 0xffu

struct ub_jfce {
	urma_jfce_t pub;
	struct ub_node node;
	struct ub_context *ctx;
	struct xtal_channel *core;
	_Atomic uint64_t quiet_since; /* ns, in check_wait.c; UINT64_MAX: told */
};

struct ub_jfc {
	urma_jfc_t pub;
	uint32_t magic; /* UB_JFC_MAGIC, or UB_JFC_CHECKED, while active */
	struct xtal_shared_cq *core;
	struct ub_node node;
	struct ub_context *ctx;
	atomic_uint users; /* active queues that complete here */
	struct ub_acks acks;
	urma_jfc_attr_t moderation;   /* stored */
	_Atomic uint64_t empty_since; /* ns, in check_wait.c; 0: no */
	atomic_bool told;
};

struct ub_jfr {
	urma_jfr_t pub;
	uint32_t magic;
	struct xtal_receive_queue *core;
	struct xtal_endpoint *endpoint;
	struct ub_node node;
	struct ub_context *ctx;
	atomic_uint users;  /* active jetties that share it */
	uint32_t threshold; /* of urma_modify_jfr() */
	urma_jfr_state_t state;
	struct ub_acks acks;
};

/* The sending side of a send queue or jetty. */
struct ub_sender {
	uint32_t magic;
	bool rc, jetty;
	uint8_t max_sge, max_rsge;
	uint32_t max_inline, depth, id;
	struct xtal_queue *core;
	struct ub_target *bound; /* RC: its peer, or NULL */
	bool strict;
	atomic_bool was_full; /* said so in the log */
	const urma_jfs_cfg_t *cfg;
	const void *pub;          /* the urma_jfs_t or urma_jetty_t */
	struct xtal_check *check; /* XTAL_CHECK, or NULL */
	struct ub_context *ctx;
};

struct ub_jfs {
	urma_jfs_t pub;
	struct ub_sender send;
	struct ub_node node;
	struct ub_acks acks;
};

struct ub_group;
struct ub_jetty {
	urma_jetty_t pub;
	struct ub_sender send;
	struct xtal_endpoint *endpoint;
	struct ub_node node;
	struct ub_acks acks;
	struct ub_group *group; /* while active */
};

static inline struct ub_jfce *ub_jfce_of(const urma_jfce_t *jfce)
{
	return (struct ub_jfce *)(uintptr_t)jfce; /* pub comes first, here and below */
}
static inline struct ub_jfc *ub_jfc_of(const urma_jfc_t *jfc)
{
	return (struct ub_jfc *)(uintptr_t)jfc;
}
static inline struct ub_jfr *ub_jfr_of(const urma_jfr_t *jfr)
{
	return (struct ub_jfr *)(uintptr_t)jfr;
}
static inline struct ub_jfs *ub_jfs_of(const urma_jfs_t *jfs)
{
	return (struct ub_jfs *)(uintptr_t)jfs;
}
static inline struct ub_jetty *ub_jetty_of(const urma_jetty_t *jetty)
{
	return (struct ub_jetty *)(uintptr_t)jetty;
}

/* Settings, checked and with their defaults written back: a refusal and false when they cannot be. */
bool ub_jfc_cfg_ok(const char *function, const struct ub_context *c, const urma_jfc_cfg_t *cfg);
bool ub_jfs_cfg_ok(const char *function, const struct ub_context *c, urma_jfs_cfg_t *cfg,
		   bool for_jetty);
bool ub_jfr_cfg_ok(const char *function, const struct ub_context *c, urma_jfr_cfg_t *cfg);
bool ub_jetty_cfg_ok(const char *function, const struct ub_context *c, urma_jetty_cfg_t *cfg);

/* How long senders wait when none is posted (min_rnr_timer). Where the receives of a jetty complete. */
uint32_t ub_rnr_us(const urma_jfr_t *jfr);
urma_jfc_t *ub_jetty_receive_jfc(const urma_jetty_cfg_t *cfg);
/* A number for a queue, jetty or group; wanted 0: any. Errors: as ub_ids_take(). */
int ub_queue_id(struct ub_ids *ids, uint32_t wanted, uint32_t *out);

/* The sending side, made active from its cfg; endpoint: a jetty's, or NULL; acks: its. 0 or -errno. */
int ub_sender_open(struct ub_sender *s, struct xtal_endpoint *endpoint, struct ub_acks *acks);
/* Waits for what is under way; its records are gone. */
void ub_sender_close(struct ub_sender *s);
urma_status_t ub_sender_modify(const char *function, struct ub_sender *s, urma_jetty_state_t state);
urma_jetty_state_t ub_sender_state(const struct ub_sender *s);
int ub_sender_flush(const char *function, struct ub_sender *s, int count, urma_cr_t *cr);
urma_status_t ub_bind(const char *function, urma_jetty_t *jetty, urma_target_jetty_t *tjetty);
urma_status_t ub_unbind(const char *function, urma_jetty_t *jetty);

/* A completion queue that others may name: live, of the context. Else a refusal. */
bool ub_jfc_usable(const char *function, const struct ub_context *c, const urma_jfc_t *jfc,
		   const char *role);
/* It is active too: others may be made active with it. Else a refusal. */
bool ub_jfc_active(const char *function, const urma_jfc_t *jfc);
struct xtal_shared_cq *ub_jfc_use(const urma_jfc_t *jfc);
void ub_jfc_unuse(const urma_jfc_t *jfc);
uint64_t ub_stamp(bool jetty); /* what completions of a sender say */

#endif
