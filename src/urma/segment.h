/* SPDX-License-Identifier: MIT */
/* Segments, token ids and imported targets: what requests name. */
#ifndef XTAL_URMA_SEGMENT_H
#define XTAL_URMA_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "context.h"
#include "core/op.h"
#include "core/segment.h"

#define UB_SEGMENT_MAGIC 0x55425347u
#define UB_TARGET_MAGIC  0x55425447u

struct ub_token_id {
	urma_token_id_t pub;
	struct ub_node node;
	struct ub_context *ctx;
};

/* Registered or imported. */
struct ub_segment {
	urma_target_seg_t pub;
	uint32_t magic;
	bool whole;               /* it names its owner: where is complete without a target */
	struct xtal_remote where; /* addr: where it begins */
	uint64_t len;
	uint64_t any8;   /* so many addresses from its begin on have 8 bytes behind them; 0 unless
			  * whole */
	uint64_t serial; /* of this struct: never the same twice in a process */
	struct ub_node node;
	struct ub_context *ctx;
	struct xtal_segment *core;  /* NULL: imported, or withdrawn; under ub_lock() */
	struct ub_token_id *own_id; /* made for it, goes with it */
	uint32_t import_access;     /* as it was imported: nothing depends on it but check.c */
};

/* An imported jetty, group or receive queue. */
struct ub_target {
	urma_target_jetty_t pub;
	uint32_t magic;
	uint32_t index;           /* in the table of targets: records name it so */
	uint64_t mark;            /* what of it a completion shows */
	struct xtal_remote where; /* addr: the endpoint's address */
	uint64_t serial;
	struct ub_node node;
	struct ub_context *ctx;
	const urma_jetty_t *bound; /* RC: by this jetty, or NULL; under ub_lock() */
};

static inline struct ub_segment *ub_segment_of(const urma_target_seg_t *seg)
{
	return (struct ub_segment *)(uintptr_t)seg; /* pub comes first */
}
static inline struct ub_target *ub_target_of(const urma_target_jetty_t *target)
{
	return (struct ub_target *)(uintptr_t)target; /* pub comes first */
}
static inline struct ub_token_id *ub_token_id_of(const urma_token_id_t *id)
{
	return (struct ub_token_id *)(uintptr_t)id; /* pub comes first */
}
_Static_assert(offsetof(struct ub_segment, pub) == 0, "the public struct is the head");
_Static_assert(offsetof(struct ub_target, pub) == 0, "the public struct is the head");
_Static_assert(offsetof(struct ub_token_id, pub) == 0, "the public struct is the head");

/* A peer has asked for it: nobody reaches the segment with this token id of the context any more.
 * The program still unregisters it. */
void ub_segment_withdraw(const struct ub_context *c, uint32_t token_id);

/* A number that no other struct had. */
uint64_t ub_serial(void);

/*
 * The ids of targets by index. Read while records are polled, without a lock: a record may come
 * after its target was given back, or the index went to another one, and then names that. Indexes
 * come back as late as possible.
 */
#define UB_TARGETS  65536u
#define UB_ID_WORDS (sizeof(urma_jetty_id_t) / sizeof(uint64_t))
struct ub_target_entry {
	_Atomic uint64_t id[UB_ID_WORDS];
	bool used; /* under ub_lock() */
};
/* NULL: none was imported yet. Hidden here, too: else its address is loaded first. */
extern __attribute__((visibility("hidden"))) struct ub_target_entry *_Atomic ub_target_table;

/* The id of the target with this index, which was imported once. */
static inline void ub_target_id(uint32_t index, urma_jetty_id_t *out)
{
	/* Acquire: partner is whoever made the table. */
	struct ub_target_entry *e =
		&atomic_load_explicit(&ub_target_table, memory_order_acquire)[index];
	/* Word by word to its place: by way of the stack they would wait for the stores, 8 ns. */
#pragma GCC unroll 3
	for (unsigned i = 0; i < UB_ID_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&e->id[i], memory_order_relaxed);

		memcpy((char *)out + i * sizeof(word), &word, sizeof(word));
	}
}

/* The checks that importing shares between its functions. */
struct ub_import {
	const char *function;
	urma_jetty_id_t id;
	urma_transport_mode_t mode;
	urma_import_jetty_flag_t flag; /* with its order already that of the mode */
	urma_tp_type_t tp_type;
	urma_target_type_t type;
	urma_jetty_grp_policy_t policy;
	const urma_token_t *token;
};
urma_target_jetty_t *ub_import(urma_context_t *ctx, const struct ub_import *what);
urma_target_jetty_t *ub_import_rjetty(const char *function, urma_context_t *ctx,
				      urma_rjetty_t *rjetty, const urma_token_t *token);
/* Takes back what ub_import() made. */
urma_status_t ub_unimport(const char *function, urma_target_jetty_t *target);

/* The order that stands for URMA_DEF_ORDER in a mode; others as they are. */
uint32_t ub_order_of(urma_transport_mode_t mode, uint32_t order);
/* NULL, or why the mode cannot have this order (which is none by default any more). */
const char *ub_order_refused(urma_transport_mode_t mode, uint32_t order);

#endif
