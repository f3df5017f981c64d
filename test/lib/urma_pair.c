/* SPDX-License-Identifier: MIT */
/* Both sides of urma_pair.h. */
#include "lib/urma_pair.h"

#include <stdlib.h>
#include <string.h>

#include "xtal.h"

/* The device that reaches the other host, or loopback. */
static urma_device_t *choose(urma_device_t **list, int count)
{
	urma_device_t *found = list[0];

	for (int i = 1; i < count && suite_between_hosts() && found == list[0]; i++) {
		uint32_t n;
		urma_eid_info_t *eids = urma_get_eid_list(list[i], &n);
		const uint8_t *raw = eids ? eids[0].eid.raw : NULL;

		if (raw && raw[0] != 0xfe && !(raw[10] == 0xff && !raw[0]) == suite_uses_ipv6())
			found = list[i];
		urma_free_eid_list(eids);
	}
	return found;
}

/* ---- Run by the owner ---- */

static int64_t owner_open(void *args)
{
	struct urma_ask *a = args;
	struct urma_owner *o = calloc(1, sizeof(*o));
	int step;

	if (memory_get(&o->mem, (enum memory_kind)a->kind, a->len))
		return 100;
	a->attr.memory = o->mem.data;
	a->attr.len = a->len;
	step = urma_side_open(&o->side, &a->attr);
	if (step)
		return step;
	urma_side_tell(&o->side, &a->told);
	a->owner = o;
	return 0;
}

static int64_t owner_meet(void *args)
{
	struct urma_ask *a = args;

	return urma_peer_import(&a->owner->side, &a->told, &a->owner->peer);
}

static int64_t owner_close(void *args)
{
	struct urma_ask *a = args;
	struct urma_owner *o = a->owner;
	int step = urma_peer_drop(&o->side, &o->peer);

	if (!step)
		step = urma_side_close(&o->side);
	if (step)
		return step;
	if (!memory_guards_intact(&o->mem))
		return 100;
	memory_put(&o->mem);
	free(o);
	return 0;
}

static int64_t owner_fill(void *args)
{
	struct urma_ask *a = args;

	actor_unseen_begin();
	pattern_fill((void *)(uintptr_t)a->addr, a->len, a->seed, 0);
	actor_unseen_end();
	return 0;
}

static int64_t owner_check(void *args)
{
	struct urma_ask *a = args;
	int64_t wrong;

	actor_unseen_begin();
	wrong = pattern_check((void *)(uintptr_t)a->addr, a->len, a->seed, 0);
	actor_unseen_end();
	return wrong;
}

static int64_t owner_peek(void *args)
{
	struct urma_ask *a = args;

	actor_unseen_begin();
	memcpy(a->bytes, (void *)(uintptr_t)a->addr, a->len);
	actor_unseen_end();
	return 0;
}

static int64_t owner_poke(void *args)
{
	struct urma_ask *a = args;

	actor_unseen_begin();
	memcpy((void *)(uintptr_t)a->addr, a->bytes, a->len);
	actor_unseen_end();
	return 0;
}

static int64_t owner_receive(void *args)
{
	struct urma_ask *a = args;

	for (uint32_t i = 0; i < a->count; i++)
		if (urma_side_receive(&a->owner->side, (void *)(uintptr_t)(a->addr + i * a->len),
				      (uint32_t)a->len, a->user + i))
			return 1;
	return 0;
}

static int64_t owner_take(void *args)
{
	struct urma_ask *a = args;
	struct urma_side *s = &a->owner->side;

	return urma_side_take(s->rjfc ? s->rjfc : s->jfc, &a->cr, URMA_PAIR_PATIENCE_MS) ? 0 : 1;
}

/* ---- The initiator ---- */

int64_t urma_pair_ask(struct urma_pair *p, actor_fn fn, struct urma_ask *a)
{
	a->owner = p->owner;
	_Static_assert(sizeof(*a) <= ACTOR_ARGS, "it fits");
	return actor_call(p->actor, fn, a, sizeof(*a));
}

static enum xtal_path_kind path_of(struct urma_pair *p)
{
	const urma_seg_t *seg = &p->told.seg;
	struct xtal_descriptor d = { .va = seg->ubva.va,
				     .len = seg->len,
				     .tid = seg->ubva.uasid,
				     .token = p->told.token ? URMA_SIDE_TOKEN : 0,
				     .token_valid = p->told.token };
	struct xtal_path_info info;

	memcpy(d.eid, seg->ubva.eid.raw, sizeof(d.eid));
	assert_int_equal(xtal_path_query(p->side.jetty, &d, 5000, &info), 0);
	if (info.kind != suite_path)
		for (unsigned i = 0; i < info.candidates; i++)
			print_message("path %s: %s\n", xtal_path_name(info.candidate[i].kind),
				      info.candidate[i].reason);
	return info.kind;
}

void urma_pair_open_attr(struct urma_pair *p, const struct urma_pair_attr *attr)
{
	struct urma_ask a = { .attr = attr->side, .len = attr->len };
	struct urma_side_attr mine = attr->side;

	memset(p, 0, sizeof(*p));
	a.attr.choose = mine.choose = choose;
	a.kind = suite_path == XTAL_PATH_MAP && !suite_adopted ? MEMORY_XTAL : MEMORY_MALLOC;
	p->actor = suite_path == XTAL_PATH_SELF ? actor_thread() : actor_process(attr->env);
	assert_int_equal(urma_pair_ask(p, owner_open, &a), 0);
	p->owner = a.owner;
	p->told = a.told;
	p->base = a.told.seg.ubva.va;
	assert_int_equal(memory_get(&p->mem, MEMORY_MALLOC, attr->len), 0);
	mine.memory = p->mem.data;
	mine.len = attr->len;
	assert_int_equal(urma_side_open(&p->side, &mine), 0);
	assert_int_equal(urma_peer_import(&p->side, &p->told, &p->peer), 0);
	urma_side_tell(&p->side, &a.told);
	assert_int_equal(urma_pair_ask(p, owner_meet, &a), 0);
	if (attr->side.access == 0)
		assert_int_equal(path_of(p), suite_path);
}

void urma_pair_open(struct urma_pair *p, size_t len)
{
	struct urma_pair_attr attr = { .side.rnr_retry = URMA_TYPICAL_RNR_RETRY, .len = len };

	urma_pair_open_attr(p, &attr);
}

void urma_pair_close(struct urma_pair *p)
{
	struct urma_ask a = { 0 };

	assert_true(memory_guards_intact(&p->mem));
	assert_int_equal(urma_peer_drop(&p->side, &p->peer), 0);
	assert_int_equal(urma_side_close(&p->side), 0);
	memory_put(&p->mem);
	if (!p->actor)
		return;
	assert_int_equal(urma_pair_ask(p, owner_close, &a), 0);
	actor_free(p->actor);
}

void urma_pair_fill(struct urma_pair *p, uint64_t addr, uint64_t len, uint64_t seed)
{
	struct urma_ask a = { .addr = addr, .len = len, .seed = seed };

	assert_int_equal(urma_pair_ask(p, owner_fill, &a), 0);
}

void urma_pair_assert_pattern(struct urma_pair *p, uint64_t addr, uint64_t len, uint64_t seed)
{
	struct urma_ask a = { .addr = addr, .len = len, .seed = seed };

	assert_int_equal(urma_pair_ask(p, owner_check, &a), -1);
}

void urma_pair_peek(struct urma_pair *p, uint64_t addr, void *bytes, size_t len)
{
	struct urma_ask a = { .addr = addr, .len = len };

	assert_int_equal(urma_pair_ask(p, owner_peek, &a), 0);
	memcpy(bytes, a.bytes, len);
}

void urma_pair_poke(struct urma_pair *p, uint64_t addr, const void *bytes, size_t len)
{
	struct urma_ask a = { .addr = addr, .len = len };

	memcpy(a.bytes, bytes, len);
	assert_int_equal(urma_pair_ask(p, owner_poke, &a), 0);
}

void urma_pair_receive(struct urma_pair *p, uint64_t addr, uint32_t len, uint32_t count,
		       uint64_t user)
{
	struct urma_ask a = { .addr = addr, .len = len, .count = count, .user = user };

	assert_int_equal(urma_pair_ask(p, owner_receive, &a), 0);
}

urma_cr_t urma_pair_owner_take(struct urma_pair *p)
{
	struct urma_ask a = { 0 };

	assert_int_equal(urma_pair_ask(p, owner_take, &a), 0);
	return a.cr;
}

urma_cr_t urma_pair_take(struct urma_pair *p)
{
	urma_cr_t cr;

	assert_true(urma_side_take(p->side.jfc, &cr, URMA_PAIR_PATIENCE_MS));
	return cr;
}

void urma_pair_post(struct urma_pair *p, struct urma_request *r, uint64_t user)
{
	urma_status_t status;

	r->wr.user_ctx = user;
	status = urma_side_post(&p->side, r);
	if (status)
		print_error("%s\n", xtal_last_error());
	assert_int_equal(status, URMA_SUCCESS);
}

void urma_pair_assert_cr(struct urma_pair *p, uint64_t user, int status, uint32_t len)
{
	urma_cr_t cr = urma_pair_take(p);

	assert_int_equal(cr.status, status);
	assert_int_equal(cr.user_ctx, user);
	assert_int_equal(cr.completion_len, status ? 0 : len);
	assert_int_equal(cr.flag.bs.s_r, 0);
	assert_int_equal(cr.flag.bs.jetty, 1);
	assert_int_equal(cr.local_id, p->side.jetty->jetty_id.id);
	assert_ptr_equal((void *)cr.user_data, p->side.jetty);
}

void urma_assert_refused(const char *words)
{
	if (strstr(xtal_last_error(), words))
		return;
	print_error("'%s' does not say '%s'\n", xtal_last_error(), words);
	fail();
}
