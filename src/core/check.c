/* SPDX-License-Identifier: MIT */
/* Operations that were posted and not seen to end; see check.h. */
#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/config.h"
#include "os/proc.h"
#include "os/vm.h"

#define HASHED 65536u /* bytes of a piece that are compared */
#define PIECE  2048u
#define PIECES 16u
#define NAME   64

struct open_op {
	struct open_op *next;
	uint64_t number;
	struct xtal_checked op;
	uint32_t count;
	struct xtal_sge sge[PIECES];
	uint64_t hash[PIECES]; /* 0: unknown */
};

struct xtal_check {
	struct xtal_list node;
	struct xtal_lock lock;
	char name[NAME];
	uint64_t next;
	struct open_op *first, **last; /* in order of posting */
};

static struct xtal_lock all_lock; /* before a check's */
static struct xtal_list all = { &all, &all };

bool xtal_checks(void)
{
	return xtal_config()->check;
}

uint64_t xtal_check_now(void)
{
	return xtal_os_now();
}

struct xtal_check *xtal_check_new(const char *name)
{
	struct xtal_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->last = &c->first;
	xtal_lock(&all_lock);
	xtal_list_append(&all, &c->node);
	xtal_unlock(&all_lock);
	return c;
}

void xtal_check_free(struct xtal_check *c)
{
	if (!c)
		return;
	xtal_lock(&all_lock);
	xtal_list_remove(&c->node);
	xtal_unlock(&all_lock);
	xtal_check_forget(c);
	free(c);
}

/* 0: it cannot be read. */
static uint64_t hash_of(const struct xtal_sge *sge)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), len = sge->len < HASHED ? sge->len : HASHED;
	uint8_t bytes[PIECE];

	for (uint64_t at = 0; at < len; at += PIECE) {
		size_t n = len - at < PIECE ? (size_t)(len - at) : PIECE;

		if (xtal_os_guarded_copy(bytes, (const void *)(uintptr_t)(sge->addr + at), n))
			return 0;
		for (size_t i = 0; i < n; i++)
			hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	}
	return hash | 1;
}

bool xtal_check_reach(uint64_t addr, uint64_t len, bool write)
{
	return !xtal_os_probe_access((const void *)(uintptr_t)addr, len, write);
}

uint64_t xtal_check_posted(struct xtal_check *c, const struct xtal_checked *op,
			   const struct xtal_sge *sges, uint32_t count)
{
	struct open_op *o = c ? calloc(1, sizeof(*o)) : NULL;
	uint64_t number;

	if (!o)
		return 0;
	o->op = *op;
	o->count = count < PIECES ? count : PIECES;
	for (uint32_t i = 0; i < o->count; i++) {
		o->sge[i] = sges[i];
		o->hash[i] = op->source ? hash_of(&sges[i]) : 0;
	}
	xtal_lock(&c->lock);
	number = o->number = ++c->next;
	*c->last = o;
	c->last = &o->next;
	xtal_unlock(&c->lock);
	return number;
}

/* Under the lock: takes out what *at points to. */
static struct open_op *take(struct xtal_check *c, struct open_op **at)
{
	struct open_op *o = *at;

	*at = o->next;
	if (!o->next)
		c->last = at;
	return o;
}

void xtal_check_refused(struct xtal_check *c, uint64_t number)
{
	struct open_op **at, *o = NULL;

	if (!c)
		return;
	xtal_lock(&c->lock);
	for (at = &c->first; *at && (*at)->number != number;)
		at = &(*at)->next;
	if (*at)
		o = take(c, at);
	xtal_unlock(&c->lock);
	free(o);
}

bool xtal_check_ended(struct xtal_check *c, uint64_t user, bool well, struct xtal_sge *where,
		      uint64_t *suspect)
{
	struct open_op **at, *o, *found = NULL;
	bool changed = false;

	if (suspect)
		*suspect = 0;
	if (!c)
		return false;
	xtal_lock(&c->lock);
	/* What nobody asked to hear of is heard of when it fails. */
	for (o = c->first; o && (o->op.user != user || (well && !o->op.signalled));)
		o = o->next;
	/* Those before it that nobody will hear of are over too. */
	for (at = &c->first; o && !found;) {
		if (*at != o && (*at)->op.signalled)
			at = &(*at)->next;
		else if (*at == o)
			found = take(c, at);
		else
			free(take(c, at));
	}
	xtal_unlock(&c->lock);
	for (uint32_t i = 0; found && i < found->count && !changed; i++) {
		changed = found->hash[i] && found->hash[i] != hash_of(&found->sge[i]);
		*where = found->sge[i];
	}
	if (suspect)
		*suspect = found ? found->op.suspect : 0;
	free(found);
	return changed;
}

void xtal_check_forget(struct xtal_check *c)
{
	struct open_op *o;

	if (!c)
		return;
	xtal_lock(&c->lock);
	o = c->first;
	c->first = NULL;
	c->last = &c->first;
	xtal_unlock(&c->lock);
	while (o) {
		struct open_op *next = o->next;

		free(o);
		o = next;
	}
}

void xtal_check_look(struct xtal_check *c, struct xtal_check_open *out)
{
	*out = (struct xtal_check_open){ .user = 0 };
	if (!c)
		return;
	xtal_lock(&c->lock);
	for (const struct open_op *o = c->first; o; o = o->next) {
		if (o->op.signalled && !out->signalled++)
			out->user = o->op.user;
		out->silent += !o->op.signalled;
	}
	xtal_unlock(&c->lock);
}

static bool overlaps(const struct open_op *o, uint64_t addr, uint64_t len)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (o->sge[i].addr < addr + len && addr < o->sge[i].addr + o->sge[i].len)
			return true;
	return false;
}

bool xtal_check_uses(uint64_t addr, uint64_t len, uint64_t *user, char *name)
{
	bool found = false;

	xtal_lock(&all_lock);
	for (struct xtal_list *n = all.next; n != &all && !found; n = n->next) {
		struct xtal_check *c = xtal_container_of(n, struct xtal_check, node);

		xtal_lock(&c->lock);
		for (const struct open_op *o = c->first; o && !found; o = o->next) {
			if (!o->op.signalled || !overlaps(o, addr, len))
				continue;
			found = true;
			*user = o->op.user;
			snprintf(name, NAME, "%s", c->name);
		}
		xtal_unlock(&c->lock);
	}
	xtal_unlock(&all_lock);
	return found;
}
