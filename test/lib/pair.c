/* SPDX-License-Identifier: MIT */
/* Both sides of pair.h. */
#include "lib/pair.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dma_context *open_context(struct dma_device **list, uint32_t *devices)
{
	*list = dma_get_device_list(devices);
	return *list && *devices ? dma_create_context(suite_device(*list, *devices)) : NULL;
}

/* ---- Run by the owner ---- */

static int64_t owner_open(void *args)
{
	struct ask *a = args;
	struct owner *o = calloc(1, sizeof(*o));
	struct dma_seg_cfg cfg = { .len = a->len,
				   .token_value = a->token,
				   .token_value_valid = a->token_valid };

	a->owner = o;
	o->ctx = open_context(&o->list, &o->devices);
	if (!o->ctx)
		return -1;
	if (memory_get(&o->mem, (enum memory_kind)a->kind, a->len))
		return -2;
	cfg.addr = (uintptr_t)o->mem.data;
	o->segs[0] = dma_register_seg(o->ctx, &cfg);
	if (!o->segs[0])
		return -3;
	a->seg = *o->segs[0];
	return 0;
}

static int64_t owner_close(void *args)
{
	struct ask *a = args;
	struct owner *o = a->owner;

	for (unsigned i = 0; i < PAIR_SEGS; i++)
		if (o->segs[i])
			dma_unregister_seg(o->ctx, o->segs[i]);
	memory_put(&o->mem);
	dma_delete_context(o->ctx);
	dma_free_device_list(o->list, o->devices);
	free(o);
	return 0;
}

static int64_t owner_register(void *args)
{
	struct ask *a = args;
	struct dma_seg_cfg cfg = { .addr = a->addr,
				   .len = a->len,
				   .token_value = a->token,
				   .token_value_valid = a->token_valid };

	for (unsigned i = 0; i < PAIR_SEGS; i++) {
		if (a->owner->segs[i])
			continue;
		a->owner->segs[i] = dma_register_seg(a->owner->ctx, &cfg);
		if (!a->owner->segs[i])
			return -1;
		a->seg = *a->owner->segs[i];
		return 0;
	}
	return -2;
}

static int64_t owner_unregister(void *args)
{
	struct ask *a = args;

	for (unsigned i = 0; i < PAIR_SEGS; i++) {
		struct dma_seg *s = a->owner->segs[i];

		if (!s || s->handle != a->value)
			continue;
		a->owner->segs[i] = NULL;
		dma_unregister_seg(a->owner->ctx, s);
		return 0;
	}
	return -1;
}

int64_t owner_fill(void *args)
{
	struct ask *a = args;

	actor_unseen_begin();
	pattern_fill((void *)(uintptr_t)a->addr, a->len, a->seed, 0);
	actor_unseen_end();
	return 0;
}

int64_t owner_check(void *args)
{
	struct ask *a = args;
	int64_t wrong;

	actor_unseen_begin();
	wrong = pattern_check((void *)(uintptr_t)a->addr, a->len, a->seed, 0);
	actor_unseen_end();
	return wrong;
}

static int64_t owner_guards(void *args)
{
	struct ask *a = args;

	return memory_guards_intact(&a->owner->mem);
}

static int64_t owner_poke(void *args)
{
	struct ask *a = args;

	actor_unseen_begin();
	memcpy((void *)(uintptr_t)a->addr, a->bytes, a->len);
	actor_unseen_end();
	return 0;
}

int64_t owner_peek(void *args)
{
	struct ask *a = args;

	actor_unseen_begin();
	memcpy(a->bytes, (void *)(uintptr_t)a->addr, a->len);
	actor_unseen_end();
	return 0;
}

/* ---- The initiator ---- */

int64_t pair_ask(struct pair *p, actor_fn fn, struct ask *a)
{
	a->owner = p->owner;
	return actor_call(p->actor, fn, a, sizeof(*a));
}

struct dma_queue *pair_queue(struct pair *p, uint32_t depth)
{
	struct queue_cfg cfg = { .queue_depth = depth,
				 .rmt_eid.dw0 = LOOPBACK,
				 .event_mode = true };

	return dma_alloc_queue(p->ctx, &cfg);
}

void pair_open_attr(struct pair *p, const struct pair_attr *attr)
{
	struct dma_seg_cfg cfg = { .len = attr->len, .token_value = 77 };
	struct ask a = { .len = attr->len, .token = PAIR_TOKEN, .token_valid = true };
	struct dma_seg whole_pages;

	memset(p, 0, sizeof(*p));
	a.kind = suite_path == XTAL_PATH_MAP && !suite_adopted ? MEMORY_XTAL : MEMORY_MALLOC;
	if (attr->any_kind)
		a.kind = attr->kind;
	p->actor = suite_path == XTAL_PATH_SELF ? actor_thread() : actor_process(attr->env);
	assert_int_equal(pair_ask(p, owner_open, &a), 0);
	p->owner = a.owner;
	p->remote = a.seg;
	p->remote.handle = 0;
	p->ctx = open_context(&p->list, &p->devices);
	assert_non_null(p->ctx);
	p->queue = pair_queue(p, attr->depth ? attr->depth : 64);
	assert_non_null(p->queue);
	assert_int_equal(memory_get(&p->mem, MEMORY_MALLOC, attr->len), 0);
	cfg.addr = (uintptr_t)p->mem.data;
	p->local = dma_register_seg(p->ctx, &cfg);
	assert_non_null(p->local);
	whole_pages = suite_adopted ? part(&p->remote, 0, attr->len / 4096 * 4096) : p->remote;
	if (whole_pages.len) /* else none can be adopted */
		assert_int_equal(pair_path(p, &whole_pages), suite_path);
}

void pair_open(struct pair *p, size_t len)
{
	struct pair_attr attr = { .len = len };

	pair_open_attr(p, &attr);
}

void pair_close(struct pair *p)
{
	struct ask a = { 0 };

	assert_true(memory_guards_intact(&p->mem));
	dma_free_queue(p->queue);
	dma_unregister_seg(p->ctx, p->local);
	memory_put(&p->mem);
	dma_delete_context(p->ctx);
	dma_free_device_list(p->list, p->devices);
	if (!p->actor)
		return;
	if (!p->actor->pid)
		pair_ask(p, owner_close, &a);
	actor_free(p->actor);
}

enum xtal_path_kind pair_path(struct pair *p, const struct dma_seg *remote)
{
	struct xtal_descriptor d = { .va = remote->sva,
				     .len = remote->len,
				     .tid = remote->tid,
				     .token = remote->token_value,
				     .token_valid = remote->token_value_valid };
	struct xtal_path_info info;

	assert_int_equal(xtal_path_query(p->queue, &d, 5000, &info), 0);
	if (info.kind != suite_path)
		print_message("path %s: %s\n", info.name, info.reason);
	return info.kind;
}

struct dma_seg pair_register(struct pair *p, uint64_t addr, uint64_t len, uint32_t token,
			     bool token_valid)
{
	struct ask a = { .addr = addr, .len = len, .token = token, .token_valid = token_valid };

	assert_int_equal(pair_ask(p, owner_register, &a), 0);
	return a.seg;
}

void pair_unregister(struct pair *p, const struct dma_seg *seg)
{
	struct ask a = { .value = seg->handle };

	assert_int_equal(pair_ask(p, owner_unregister, &a), 0);
}

void pair_fill(struct pair *p, uint64_t addr, uint64_t len, uint64_t seed)
{
	struct ask a = { .addr = addr, .len = len, .seed = seed };

	assert_int_equal(pair_ask(p, owner_fill, &a), 0);
}

void pair_assert_pattern(struct pair *p, uint64_t addr, uint64_t len, uint64_t seed)
{
	struct ask a = { .addr = addr, .len = len, .seed = seed };

	assert_int_equal(pair_ask(p, owner_check, &a), -1);
}

void pair_assert_guards(struct pair *p)
{
	struct ask a = { 0 };

	assert_int_equal(pair_ask(p, owner_guards, &a), 1);
	assert_true(memory_guards_intact(&p->mem));
}

void pair_poke(struct pair *p, uint64_t addr, const void *bytes, size_t len)
{
	struct ask a = { .addr = addr, .len = len };

	memcpy(a.bytes, bytes, len);
	assert_int_equal(pair_ask(p, owner_poke, &a), 0);
}

void pair_peek(struct pair *p, uint64_t addr, void *bytes, size_t len)
{
	struct ask a = { .addr = addr, .len = len };

	assert_int_equal(pair_ask(p, owner_peek, &a), 0);
	memcpy(bytes, a.bytes, len);
}

struct dma_seg part(const struct dma_seg *seg, uint64_t offset, uint64_t len)
{
	struct dma_seg s = *seg;

	s.sva += offset;
	s.len = len;
	return s;
}

struct dma_cr take_cr(struct dma_queue *q)
{
	uint64_t deadline = suite_now_ms() + PAIR_PATIENCE_MS;
	struct dma_cr cr;

	memset(&cr, 0xee, sizeof(cr));
	for (unsigned i = 1;; i++) {
		int n = dma_poll_queue(q, 1, &cr);

		assert_true(n == 0 || n == 1);
		if (n)
			return cr;
		if (i % 1024 == 0)
			assert_true(suite_now_ms() < deadline);
	}
}

void assert_status(struct dma_queue *q, int status)
{
	struct dma_cr cr = take_cr(q);

	assert_int_equal(cr.status, status);
	if (status)
		assert_int_equal(cr.completion_len, 0);
	assert_int_equal(cr.user_ctx, q->cfg.user_ctx);
	assert_int_equal(cr.local_id, q->queue_id);
}

void assert_ok(struct dma_queue *q, uint64_t len)
{
	struct dma_cr cr = take_cr(q);

	assert_int_equal(cr.status, 0);
	assert_int_equal(cr.completion_len, len);
	assert_int_equal(cr.user_ctx, q->cfg.user_ctx);
}

void assert_refused_because(const char *words)
{
	if (strstr(xtal_last_error(), words))
		return;
	print_error("'%s' does not say '%s'\n", xtal_last_error(), words);
	fail();
}
