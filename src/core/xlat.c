/* SPDX-License-Identifier: MIT */
/* The translation cache of a queue's lane; see xlat.h. */
#include "core/xlat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/queue_impl.h"

/* Covers nothing; never written to. */
static struct xtal_xlat none;

static const _Atomic uint64_t own_word;
struct xtal_local xtal_local_own = { .hi = UINT64_MAX, .slot_word = &own_word };

/* Spreads addresses of any alignment over the table. */
static uint32_t place(const struct xtal_xlats *x, uint64_t addr, uint32_t tid)
{
	uint64_t h = (addr >> 6 ^ (uint64_t)tid << 40) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(h >> 40) & (x->size - 1);
}

static struct xtal_xlat *new_table(uint32_t size)
{
	struct xtal_xlat *table = aligned_alloc(XTAL_CACHE_LINE, size * sizeof(*table));

	if (table)
		memset(table, 0, size * sizeof(*table));
	return table;
}

int xtal_xlats_init(struct xtal_xlats *x)
{
	memset(x, 0, sizeof(*x));
	x->last = &none;
	x->mine = &x->local[0];
	x->size = XTAL_XLAT_MIN;
	x->table = new_table(x->size);
	return x->table ? 0 : -ENOMEM;
}

static void drop_seat(struct xtal_xlats *x, struct xtal_seat *seat)
{
	struct xtal_seat **at = &x->seats;

	if (--seat->uses)
		return;
	while (*at != seat)
		at = &(*at)->next;
	*at = seat->next;
	if (!seat->link->self)
		xtal_link_unseat(seat->link, seat->activity);
	xtal_link_put(seat->link);
	free(seat);
}

static void clear(struct xtal_xlats *x, struct xtal_xlat *t)
{
	struct xtal_grant *grant = t->grant;

	if (!t->hi)
		return;
	if (x->last == t)
		x->last = &none;
	drop_seat(x, t->seat);
	memset(t, 0, sizeof(*t));
	xtal_grant_put(grant);
}

void xtal_xlats_fini(struct xtal_xlats *x)
{
	for (uint32_t i = 0; i < x->size; i++)
		clear(x, &x->table[i]);
	free(x->table);
	x->table = NULL;
}

void xtal_xlat_stale(struct xtal_xlats *x, struct xtal_xlat *t)
{
	xtal_link_forget(t->grant);
	clear(x, t);
}

void xtal_xlats_purge(struct xtal_xlats *x, struct xtal_link *link)
{
	for (uint32_t i = 0; i < x->size; i++)
		if (x->table[i].hi && x->table[i].seat->link == link)
			clear(x, &x->table[i]);
}

static bool stale(const struct xtal_xlat *t)
{
	return atomic_load_explicit(t->slot_word, memory_order_relaxed) != t->word;
}

/* More segments than places: entries keep throwing each other out. */
static void grow(struct xtal_xlats *x)
{
	uint32_t old_size = x->size;
	struct xtal_xlat *old = x->table;
	struct xtal_xlat *table = new_table(old_size * 4);

	if (!table)
		return;
	x->table = table;
	x->size = old_size * 4;
	x->misses = 0;
	x->last = &none;
	for (uint32_t i = 0; i < old_size; i++) {
		struct xtal_xlat *t = &old[i], *to;

		if (!t->hi)
			continue;
		to = &x->table[place(x, t->lo, t->tid)];
		if (to->hi || stale(t))
			clear(x, t);
		else
			*to = *t;
	}
	free(old);
}

struct xtal_xlat *xtal_xlat_lookup(struct xtal_xlats *x, const struct xtal_remote *r, uint64_t len)
{
	/* An entry stands at its segment's start and at other addresses it was used with. */
	struct xtal_xlat *t = &x->table[place(x, r->addr, r->tid)];

	if (t->hi && xtal_xlat_covers(t, r, len)) {
		x->last = t;
		return t;
	}
	return NULL;
}

static struct xtal_seat *seat_on(struct xtal_queue *q, struct xtal_link *link)
{
	struct xtal_xlats *x = &q->xlats;
	struct xtal_seat *seat;

	for (seat = x->seats; seat; seat = seat->next)
		if (seat->link == link) {
			seat->uses++;
			return seat;
		}
	seat = calloc(1, sizeof(*seat));
	if (!seat)
		return NULL;
	seat->activity = link->self ? &q->lane.self : xtal_link_seat(link, false);
	if (!seat->activity) {
		free(seat);
		return NULL;
	}
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	seat->link = link;
	seat->uses = 1;
	seat->next = x->seats;
	x->seats = seat;
	return seat;
}

/* How many addresses of [lo, hi) have 8 bytes behind them. */
static uint64_t any8(uint64_t lo, uint64_t hi)
{
	return hi - lo >= 8 ? hi - lo - 7 : 0;
}

/* The opcodes that may be executed at once. */
static uint16_t inline_ops(const struct xtal_grant *grant)
{
	uint16_t ops = 0;

	if (!xtal_path_table[grant->reach.kind])
		return 0;
	for (unsigned op = XTAL_OP_WRITE; op <= XTAL_OP_XOR; op++)
		if ((grant->rights & xtal_op_rights((uint8_t)op)) == xtal_op_rights((uint8_t)op))
			ops |= (uint16_t)(1u << op);
	return ops;
}

int xtal_xlat_add(struct xtal_queue *q, const struct xtal_remote *r, struct xtal_grant *grant,
		  struct xtal_xlat **out)
{
	struct xtal_xlats *x = &q->xlats;
	struct xtal_link *link = grant->link;
	struct xtal_seat *seat = seat_on(q, link);
	bool quick = !link->full_fence && xtal_config_inline() >= 8;
	bool direct = quick && grant->reach.kind == XTAL_REACH_DIRECT;
	uint64_t first8 = any8(grant->lo, grant->hi);
	struct xtal_xlat *t;

	if (!seat) {
		xtal_grant_put(grant);
		return -EBUSY;
	}
	t = &x->table[place(x, r->addr, r->tid)];
	if (t->hi && !stale(t) && ++x->misses > x->size && x->size < XTAL_XLAT_MAX) {
		grow(x);
		t = &x->table[place(x, r->addr, r->tid)];
	}
	clear(x, t);
	*t = (struct xtal_xlat){
		.lo = grant->lo,
		.hi = grant->hi,
		.eid = r->eid,
		.tid = r->tid,
		.token = r->token,
		.index = r->index,
		.token_valid = r->token_valid,
		.full_fence = link->full_fence,
		.path = (uint8_t)grant->path,
		.rights = (uint8_t)grant->rights,
		.put8 = direct && grant->rights & XTAL_RIGHT_WRITE ? first8 : 0,
		.add8 = direct && grant->rights & XTAL_RIGHT_ATOMIC ? first8 : 0,
		.get8 = direct && grant->rights & XTAL_RIGHT_READ ? first8 : 0,
		.put8_by_cma = quick && grant->reach.kind == XTAL_REACH_CMA &&
					       grant->rights & XTAL_RIGHT_WRITE
				       ? first8
				       : 0,
		.shift = direct ? (uint64_t)(uintptr_t)grant->reach.base - grant->reach.lo : 0,
		.moved = &q->moved[grant->path],
		.inline_ops = inline_ops(grant),
		.ops = xtal_path_table[grant->reach.kind],
		.slot_word = grant->slot_word,
		.word = grant->word,
		.activity = seat->activity,
		.reach = grant->reach,
		.announce = link->self ? xtal_lane_id(link->self->number, grant->slot)
				       : (uint64_t)grant->slot + 1,
		.of8 = { .len = 8,
			 .queue_id = q->told_id,
			 .peer = { .port = r->tid & 0xffff, .link_id = link->id } },
		.grant = grant,
		.seat = seat,
	};
	x->last = t;
	*out = t;
	return 0;
}

struct xtal_local *xtal_local_lookup(struct xtal_queue *q, uint64_t addr, uint64_t len)
{
	struct xtal_xlats *x = &q->xlats;
	struct xtal_registry *reg = &q->ctx->registry;
	struct xtal_found found;
	struct xtal_local *l;

	for (uint32_t i = 0; i < XTAL_LOCALS; i++) {
		l = &x->local[i];
		if (addr >= l->lo && addr < l->hi && len <= l->hi - addr &&
		    atomic_load_explicit(l->slot_word, memory_order_relaxed) == l->word) {
			x->mine = l;
			return l;
		}
	}
	if (xtal_registry_local(reg, addr, len, &found))
		return NULL;
	l = &x->local[(x->mine - x->local + 1) % XTAL_LOCALS];
	x->mine = l;
	*l = (struct xtal_local){ .lo = found.lo,
				  .hi = found.hi,
				  .any8 = any8(found.lo, found.hi),
				  .word = found.word,
				  .slot_word = &reg->table->word[found.slot],
				  .announce = xtal_lane_id(q->ctx->number, found.slot) };
	return l;
}
