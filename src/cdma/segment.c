/* SPDX-License-Identifier: MIT */
/*
 * Segments. A struct dma_seg is a plain value, so everything that must survive a program's
 * changes to it lies behind it, found by the handle: a serial number, never used twice, above
 * the core's segment id.
 */
#include "cdma.h"

#include <errno.h>
#include <stdlib.h>

#include "base/export.h"
#include "check.h"
#include "core/config.h"
#include "core/handle.h"
#include "core/segment.h"

#define ID_BITS 32

/* An imported segment; the mark tells it from copies and from freed ones. */
struct cdma_import {
	struct dma_seg pub;
	uint64_t magic;
};
#define IMPORT_MAGIC 0x43494d504f525421ull

/* Makes room for a segment id in the context's table. Errors: -ENOMEM. */
static int reserve_slot(struct cdma_context *c, uint32_t id)
{
	struct cdma_segment **bigger, **old = NULL;
	uint32_t count = 64;
	bool enough;

	cdma_registry_lock();
	enough = id < c->slot_count;
	cdma_registry_unlock();
	if (enough)
		return 0;
	while (count <= id)
		count *= 2;
	bigger = calloc(count, sizeof(struct cdma_segment *));
	if (!bigger)
		return -ENOMEM;
	cdma_registry_lock();
	if (c->slot_count < count) { /* no other thread was faster */
		for (uint32_t i = 0; i < c->slot_count; i++)
			bigger[i] = c->slots[i];
		old = c->slots;
		c->slots = bigger;
		c->slot_count = count;
		bigger = NULL;
	}
	cdma_registry_unlock();
	free(old);
	free(bigger);
	return 0;
}

/* Registers with the core and enters the names the segment goes by. 0, or -errno. */
static int open_segment(struct cdma_context *c, struct cdma_segment *s,
			const struct xtal_segment_attr *attr)
{
	static atomic_uint serial;
	uint32_t id;
	int error;

	error = xtal_segment_register(c->core, attr, &s->core);
	if (error)
		return error;
	id = xtal_segment_id(s->core);
	error = reserve_slot(c, id);
	if (error)
		goto unregister;
	error = xtal_handle_bind_segment(&s->pub, s->core);
	if (error)
		goto unregister;
	s->handle = (uint64_t)(atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed) + 1)
			    << ID_BITS |
		    id;
	cdma_registry_lock();
	c->slots[id] = s;
	cdma_registry_unlock();
	return 0;

unregister:
	xtal_segment_unregister(&s->core);
	return error;
}

static const char *segment_reason(int error)
{
	switch (-error) {
	case EINVAL:
		return "XTAL_STRICT=1 wants a multiple of 4096, ending at most at 2^48";
	case EFAULT:
		return "XTAL_STRICT=1 wants all of it mapped and writable";
	case EEXIST:
		return "XTAL_STRICT=1 wants no overlap with another segment of the context";
	case ENOSPC:
		return "65536 segments exist";
	}
	return cdma_reason(error);
}

static bool shape_is_bad(const char *function, const struct dma_seg_cfg *cfg)
{
	if (!cfg) {
		cdma_refuse("%s: cfg is NULL", function);
		return true;
	}
	if (cfg->addr == 0 || cfg->len == 0) {
		cdma_refuse("%s: address 0x%llx with %llu bytes; neither may be 0", function,
			    (unsigned long long)cfg->addr, (unsigned long long)cfg->len);
		return true;
	}
	return false;
}

struct dma_seg *dma_register_seg(struct dma_context *ctx, struct dma_seg_cfg *cfg)
{
	struct xtal_segment_attr attr;
	struct cdma_context *c;
	struct cdma_segment *s;
	int error;

	if (shape_is_bad("dma_register_seg", cfg))
		return NULL;
	if (cfg->addr + cfg->len < cfg->addr) {
		cdma_refuse("dma_register_seg: address 0x%llx + %llu bytes ends above 2^64 - 1",
			    (unsigned long long)cfg->addr, (unsigned long long)cfg->len);
		return NULL;
	}
	cdma_check_reserved("dma_register_seg", "dma_seg_cfg", cfg->rsv_bitmap, cfg->rsvd);
	c = cdma_context_get(ctx, CDMA_BY_SEGMENT, "dma_register_seg");
	if (!c)
		return NULL;
	attr = (struct xtal_segment_attr){
		.addr = cfg->addr,
		.len = cfg->len,
		.token = cfg->token_value,
		.token_valid = cfg->token_value_valid && cfg->token_value != 0,
		.rights = XTAL_RIGHT_READ | XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC,
		.hardware_rules = true,
	};
	s = calloc(1, sizeof(*s));
	error = s ? open_segment(c, s, &attr) : -ENOMEM;
	if (error) {
		free(s);
		cdma_context_put(c, CDMA_BY_SEGMENT);
		cdma_refuse("dma_register_seg: address 0x%llx with %llu bytes: %s",
			    (unsigned long long)attr.addr, (unsigned long long)attr.len,
			    segment_reason(error));
		return NULL;
	}
	s->addr = attr.addr;
	s->len = attr.len;
	s->pub = (struct dma_seg){
		.handle = s->handle,
		.sva = attr.addr,
		.len = attr.len,
		.tid = c->pub.tid,
		.token_value = attr.token,
		.token_value_valid = cfg->token_value_valid,
	};
	return &s->pub;
}

/* Takes the registration that seg, or a copy of it, stands for out of the table. */
static struct cdma_segment *take_slot(struct cdma_context *c, const struct dma_seg *seg)
{
	uint32_t id = (uint32_t)seg->handle;
	struct cdma_segment *s = NULL;

	cdma_registry_lock();
	if (id < c->slot_count)
		s = c->slots[id];
	/* The struct itself may have been changed; a copy must still say the whole range. */
	if (s && &s->pub != seg &&
	    (s->handle != seg->handle || s->addr != seg->sva || s->len != seg->len))
		s = NULL;
	if (s)
		c->slots[id] = NULL;
	cdma_registry_unlock();
	return s;
}

void dma_unregister_seg(struct dma_context *ctx, struct dma_seg *seg)
{
	struct cdma_context *c;
	struct cdma_segment *s;

	if (!ctx || !seg)
		return;
	c = cdma_context_get_any(ctx, CDMA_BY_CALL, "dma_unregister_seg");
	if (!c)
		return;
	s = take_slot(c, seg);
	if (!s) {
		cdma_refuse("dma_unregister_seg: handle 0x%llx, address 0x%llx, %llu bytes is not "
			    "registered with context 0x%x: withdrawn before, imported, or a part",
			    (unsigned long long)seg->handle, (unsigned long long)seg->sva,
			    (unsigned long long)seg->len, ctx->tid);
		cdma_context_put(c, CDMA_BY_CALL);
		return;
	}
	cdma_check_unregister(s);
	xtal_handle_unbind(&s->pub);
	xtal_segment_unregister(&s->core);
	if (&s->pub == seg) {
		free(s);
	} else {
		xtal_log(
			XTAL_LOG_WARNING, CDMA_TAG,
			"dma_unregister_seg: %p is a copy of the segment %p; the copy is not freed",
			(void *)seg, (void *)s);
		cdma_registry_lock();
		s->next = c->orphans;
		c->orphans = s;
		cdma_registry_unlock();
	}
	cdma_context_put(c, CDMA_BY_SEGMENT);
	cdma_context_put(c, CDMA_BY_CALL);
}

struct dma_seg *dma_import_seg(struct dma_seg_cfg *cfg)
{
	struct cdma_import *import;

	if (shape_is_bad("dma_import_seg", cfg))
		return NULL;
	cdma_check_reserved("dma_import_seg", "dma_seg_cfg", cfg->rsv_bitmap, cfg->rsvd);
	import = malloc(sizeof(*import));
	if (!import) {
		cdma_refuse("dma_import_seg: no memory");
		return NULL;
	}
	import->pub = (struct dma_seg){
		.sva = cfg->addr,
		.len = cfg->len,
		.tid = cfg->tid,
		.token_value = cfg->token_value,
		.token_value_valid = cfg->token_value_valid,
	};
	import->magic = IMPORT_MAGIC;
	return &import->pub;
}

static bool owns_struct(struct cdma_context *c, const void *seg)
{
	for (uint32_t i = 0; i < c->slot_count; i++) {
		if (c->slots[i] == seg)
			return true;
	}
	return false;
}

void dma_unimport_seg(struct dma_seg *seg)
{
	struct cdma_import *import = (struct cdma_import *)(void *)seg;

	if (!seg)
		return;
	if (seg->handle != 0 && cdma_context_any(owns_struct, seg)) {
		cdma_refuse("dma_unimport_seg: %p is registered here, with handle 0x%llx: use "
			    "dma_unregister_seg",
			    (void *)seg, (unsigned long long)seg->handle);
		return;
	}
	if (import->magic != IMPORT_MAGIC) {
		cdma_refuse("dma_unimport_seg: %p is no imported segment: freed before, a copy, or "
			    "not from this library",
			    (void *)seg);
		return;
	}
	import->magic = 0;
	free(import);
}
