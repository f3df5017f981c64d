/* SPDX-License-Identifier: MIT */
/* Segments of one context: registration, lookup by address and token, public slots. */
#include "core/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/adopt.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/revoke.h"
#include "core/strict.h"
#include "os/life.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/vm.h"

static struct xtal_os_life *life_of(struct xtal_slot_table *table)
{
	_Static_assert(sizeof(table->life) == sizeof(struct xtal_os_life), "core/shared.h");
	return (struct xtal_os_life *)(void *)table->life;
}

int xtal_registry_init(struct xtal_registry *r)
{
	void *map = NULL;
	int fd = -1, err;

	err = xtal_os_object_create("xtal-slots", sizeof(struct xtal_slot_table), true, &fd, &map);
	if (err)
		return err;
	r->table = map;
	err = xtal_os_object_publish_readonly(fd, &r->table_fd);
	xtal_os_close(fd);
	if (err) {
		xtal_os_unmap(map, sizeof(struct xtal_slot_table));
		return err;
	}
	xtal_engine_track_fd(r->table_fd);
	xtal_os_life_begin(life_of(r->table));
	xtal_intervals_init(&r->by_addr);
	return 0;
}

void xtal_registry_fini(struct xtal_registry *r)
{
	xtal_engine_close_fd(r->table_fd);
	xtal_os_life_end(life_of(r->table));
	xtal_os_unmap(r->table, sizeof(struct xtal_slot_table));
	xtal_intervals_fini(&r->by_addr);
	free(r->by_slot);
}

/* Under the lock. Errors: -ENOSPC, -ENOMEM. */
static int take_slot(struct xtal_registry *r, struct xtal_segment *seg)
{
	if (r->count == r->slots) {
		uint32_t more = r->slots ? r->slots * 2 : 16;
		struct xtal_segment **grown;

		if (r->slots == XTAL_MAX_SEGMENTS)
			return -ENOSPC;
		grown = realloc(r->by_slot, more * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		for (uint32_t i = r->slots; i < more; i++)
			grown[i] = NULL;
		r->by_slot = grown;
		r->next_hint = r->slots;
		r->slots = more;
	}
	while (r->by_slot[r->next_hint])
		r->next_hint = (r->next_hint + 1) % r->slots;
	seg->slot = r->next_hint;
	r->by_slot[seg->slot] = seg;
	r->count++;
	return 0;
}

static bool any(void *value, void *arg)
{
	(void)value;
	(void)arg;
	return true;
}

/* Under the lock. */
static int insert(struct xtal_registry *r, struct xtal_segment *seg)
{
	int err;

	if (xtal_config()->strict) {
		err = xtal_strict_refuses(r, seg);
		if (err)
			return err;
	} else {
		xtal_strict_warns_of_overlap(r, seg);
	}
	err = take_slot(r, seg);
	if (err)
		return err;
	err = xtal_intervals_insert(&r->by_addr, seg->addr, seg->addr + seg->len, seg);
	if (err) {
		r->by_slot[seg->slot] = NULL;
		r->count--;
		return err;
	}
	/* Release: whoever is granted this word sees the segment's memory as it is now. */
	atomic_store_explicit(
		&r->table->word[seg->slot],
		xtal_slot_next(
			atomic_load_explicit(&r->table->word[seg->slot], memory_order_relaxed),
			xtal_revoke_moves(seg) ? XTAL_SEG_MOVING : XTAL_SEG_LIVE),
		memory_order_release);
	return 0;
}

int xtal_segment_register(struct xtal_context *ctx, const struct xtal_segment_attr *attr,
			  struct xtal_segment **out)
{
	struct xtal_segment *seg;
	int err;

	if (ctx->foreign)
		return -ECHILD;
	if (!attr->len || attr->addr + attr->len < attr->addr) {
		xtal_explain("segment at 0x%llx, %llu bytes: the length is 0 or the end "
			     "wraps past 2^64",
			     (unsigned long long)attr->addr, (unsigned long long)attr->len);
		return -EINVAL;
	}
	seg = calloc(1, sizeof(*seg));
	if (!seg)
		return -ENOMEM;
	*seg = (struct xtal_segment){ .ctx = ctx,
				      .addr = attr->addr,
				      .len = attr->len,
				      .token = attr->token,
				      .token_valid = attr->token_valid,
				      .any_token = attr->any_token,
				      .index = attr->index,
				      .rights = attr->rights };
	if (attr->hardware_rules && !xtal_config()->strict)
		xtal_strict_warns(seg);
	xtal_object_find(seg->addr, seg->len, &seg->backing);
	xtal_lock(&ctx->registry.lock);
	err = insert(&ctx->registry, seg);
	xtal_unlock(&ctx->registry.lock);
	if (err) {
		if (err == -ENOSPC)
			xtal_explain("segment at 0x%llx: the context has %u segments, the "
				     "most there can be",
				     (unsigned long long)attr->addr, XTAL_MAX_SEGMENTS);
		xtal_object_put(seg->backing.object);
		free(seg);
		return err;
	}
	xtal_count(&xtal_totals.segments, 1);
	xtal_adopt_registered(seg);
	*out = seg;
	return 0;
}

void xtal_segment_withdraw(struct xtal_segment *seg)
{
	struct xtal_registry *r = &seg->ctx->registry;
	bool first;

	if (seg->ctx->foreign)
		return;
	xtal_lock(&r->lock);
	first = !seg->withdrawn;
	seg->withdrawn = true;
	if (first) {
		xtal_intervals_remove(&r->by_addr, seg->addr, seg->addr + seg->len, seg);
		/* Partner: the look at the word by every executor after its announcement. */
		atomic_store_explicit(
			&r->table->word[seg->slot],
			xtal_slot_next(atomic_load_explicit(&r->table->word[seg->slot],
							    memory_order_relaxed),
				       XTAL_SEG_FREE),
			memory_order_seq_cst);
	}
	xtal_unlock(&r->lock);
	/* Nobody was ever told of the slot: nobody can be using it. */
	if (first && atomic_load_explicit(&seg->granted, memory_order_acquire))
		xtal_revoke_wait(seg);
}

void xtal_segment_unregister(struct xtal_segment **segp)
{
	struct xtal_segment *seg = *segp;
	struct xtal_registry *r = &seg->ctx->registry;

	*segp = NULL;
	if (seg->ctx->foreign)
		return;
	xtal_segment_withdraw(seg);
	xtal_lock(&r->lock);
	xtal_adopted_detach(seg);
	r->by_slot[seg->slot] = NULL;
	r->count--;
	xtal_unlock(&r->lock);
	xtal_object_put(seg->backing.object);
	atomic_fetch_sub_explicit(&xtal_totals.segments, 1, memory_order_relaxed);
	free(seg);
}

uint32_t xtal_segment_id(const struct xtal_segment *seg)
{
	return seg->slot;
}

struct xtal_segment *xtal_segment_by_id(struct xtal_context *ctx, uint32_t id, uint64_t addr,
					uint64_t len)
{
	struct xtal_registry *r = &ctx->registry;
	struct xtal_segment *seg = NULL;

	if (ctx->foreign)
		return NULL;
	xtal_lock(&r->lock);
	if (id < r->slots)
		seg = r->by_slot[id];
	if (seg && (seg->addr != addr || seg->len != len))
		seg = NULL;
	xtal_unlock(&r->lock);
	return seg;
}

static bool is_moving(uint64_t word)
{
	return (word & 3) == XTAL_SEG_MOVING;
}

struct match {
	const struct xtal_access *access;
	bool index_wrong, token_wrong, right_missing;
};

static bool matches(void *value, void *arg)
{
	const struct xtal_segment *seg = value;
	struct match *m = arg;
	bool token = m->access->token_valid ? m->access->token == seg->token
					    : !seg->token || !seg->token_valid;

	if (m->access->index && seg->index && m->access->index != seg->index) {
		m->index_wrong = true;
		return false;
	}
	if (!token && !seg->any_token) {
		m->token_wrong = true;
		return false;
	}
	if ((m->access->rights & seg->rights) != m->access->rights) {
		m->right_missing = true;
		return false;
	}
	return true;
}

/* Under the lock. */
static int find(struct xtal_registry *r, const struct xtal_access *access, struct xtal_found *out,
		struct xtal_segment **segp)
{
	struct match m = { .access = access };
	struct xtal_segment *seg = NULL;

	if (access->len && access->addr + access->len > access->addr)
		seg = xtal_intervals_covering(&r->by_addr, access->addr, access->addr + access->len,
					      matches, &m);
	if (!seg) {
		out->why = m.right_missing ? "the segment does not grant this kind of access"
			   : m.token_wrong ? "the token does not match"
			   : m.index_wrong ? "the segment there has another id"
					   : "no registered segment covers the range";
		return XTAL_REMOTE_ACCESS;
	}
	out->lo = seg->addr;
	out->hi = seg->addr + seg->len;
	out->slot = seg->slot;
	out->rights = seg->rights;
	out->word = atomic_load_explicit(&r->table->word[seg->slot], memory_order_relaxed);
	out->why = "";
	out->segment = *segp = seg;
	return 0;
}

int xtal_registry_resolve(struct xtal_registry *r, const struct xtal_access *access,
			  struct xtal_found *out)
{
	struct xtal_segment *seg;
	int status;

	xtal_lock(&r->lock);
	status = find(r, access, out, &seg);
	if (!status)
		atomic_store_explicit(&seg->granted, 1, memory_order_relaxed);
	xtal_unlock(&r->lock);
	return status;
}

int xtal_registry_enter(struct xtal_registry *r, uint32_t context_number,
			const struct xtal_access *access, _Atomic uint64_t *word,
			struct xtal_found *out)
{
	struct xtal_segment *seg;
	int status;

	xtal_lock(&r->lock);
	status = find(r, access, out, &seg);
	if (!status && is_moving(out->word)) {
		status = -EAGAIN;
	} else if (!status) {
		atomic_store_explicit(&seg->granted, 1, memory_order_relaxed);
		/* Under the lock that unregister takes first: no look at the word is needed. */
		atomic_store_explicit(word, xtal_lane_id(context_number, seg->slot),
				      memory_order_relaxed);
	}
	xtal_unlock(&r->lock);
	return status;
}

static uint64_t word_of(const struct xtal_registry *r, const struct xtal_segment *seg)
{
	return atomic_load_explicit(&r->table->word[seg->slot], memory_order_relaxed);
}

/*
 * Takes the lock and finds a segment of ours that covers the range, or NULL. While its pages are
 * being exchanged the program's own stores to it wait in a page fault; so do we, outside of the
 * lock, since a system call on our behalf might get EFAULT instead.
 */
static struct xtal_segment *lock_local(struct xtal_registry *r, uint64_t addr, uint64_t len)
{
	for (;;) {
		struct xtal_segment *seg = NULL;

		xtal_lock(&r->lock);
		if (len && addr + len > addr)
			seg = xtal_intervals_covering(&r->by_addr, addr, addr + len, any, NULL);
		if (!seg || !is_moving(word_of(r, seg)))
			return seg;
		xtal_unlock(&r->lock);
		xtal_os_sleep_ns(50000);
	}
}

struct xtal_segment *xtal_registry_announce(struct xtal_registry *r, uint32_t context_number,
					    uint64_t addr, uint64_t len, _Atomic uint64_t *word)
{
	struct xtal_segment *seg = lock_local(r, addr, len);

	if (seg) {
		atomic_store_explicit(&seg->granted, 1, memory_order_relaxed);
		atomic_store_explicit(word, xtal_lane_id(context_number, seg->slot),
				      memory_order_relaxed);
	}
	xtal_unlock(&r->lock);
	return seg;
}

int xtal_registry_enter_local(struct xtal_registry *r, uint32_t context_number, uint64_t addr,
			      uint64_t len, _Atomic uint64_t *word)
{
	return xtal_registry_announce(r, context_number, addr, len, word) ? 0 : XTAL_LOCAL_ACCESS;
}

int xtal_registry_local(struct xtal_registry *r, uint64_t addr, uint64_t len,
			struct xtal_found *out)
{
	struct xtal_segment *seg = lock_local(r, addr, len);

	if (seg) {
		atomic_store_explicit(&seg->granted, 1, memory_order_relaxed);
		out->lo = seg->addr;
		out->hi = seg->addr + seg->len;
		out->slot = seg->slot;
		out->word = word_of(r, seg);
	}
	xtal_unlock(&r->lock);
	return seg ? 0 : XTAL_LOCAL_ACCESS;
}

bool xtal_registry_near(struct xtal_registry *r, uint64_t addr, uint64_t len,
			struct xtal_found *out)
{
	uint64_t end = addr + len > addr ? addr + len : UINT64_MAX;
	const struct xtal_segment *seg;

	if (addr == end)
		return false;
	xtal_lock(&r->lock);
	seg = xtal_intervals_covering(&r->by_addr, addr, end, any, NULL);
	if (!seg)
		seg = xtal_intervals_touching(&r->by_addr, addr, end, any, NULL);
	if (seg) {
		out->lo = seg->addr;
		out->hi = seg->addr + seg->len;
	}
	xtal_unlock(&r->lock);
	return seg;
}

bool xtal_moving_concerns(const struct xtal_moving *m, const struct xtal_segment *seg)
{
	if (seg == m->skip)
		return false;
	if (m->object)
		return seg->backing.object == m->object;
	return seg->addr < m->hi && seg->addr + seg->len > m->lo;
}

uint32_t xtal_registry_move(struct xtal_registry *r, const struct xtal_moving *m, bool moving,
			    void (*each)(struct xtal_segment *seg))
{
	uint64_t from = moving ? XTAL_SEG_LIVE : XTAL_SEG_MOVING;
	uint32_t n = 0;

	xtal_lock(&r->lock);
	for (uint32_t i = 0; i < r->slots; i++) {
		struct xtal_segment *seg = r->by_slot[i];
		_Atomic uint64_t *word = &r->table->word[i];
		uint64_t now = atomic_load_explicit(word, memory_order_relaxed);

		if (!seg || !xtal_moving_concerns(m, seg))
			continue;
		if (each)
			each(seg);
		/* The reader of adoption may set it to moving at any time, without the lock. */
		while ((now & 3) == from &&
		       !atomic_compare_exchange_weak_explicit(
			       word, &now,
			       xtal_slot_next(now, moving ? XTAL_SEG_MOVING : XTAL_SEG_LIVE),
			       memory_order_seq_cst, memory_order_relaxed))
			;
		n++;
	}
	xtal_unlock(&r->lock);
	return n;
}
