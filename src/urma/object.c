/* SPDX-License-Identifier: MIT */
/* The register of live objects. */
#include "object.h"

#include "base/export.h"
#include "base/lock.h"
#include "check.h"
#include "core/context.h"
#include "core/event.h"
#include "log.h"

#define BUCKETS 1024u

static struct xtal_lock lock;
static struct ub_node *buckets[BUCKETS];

static void before_fork(void)
{
	ub_check_lock();
	xtal_lock(&lock);
}

static void after_fork(void)
{
	xtal_unlock(&lock);
	ub_check_unlock();
}

void ub_lock(void)
{
	static atomic_bool hooked;

	/* Before the lock is first taken, so that no fork finds it held by a vanished thread. */
	if (xtal_unlikely(!atomic_load_explicit(&hooked, memory_order_relaxed)) &&
	    !atomic_exchange_explicit(&hooked, true, memory_order_relaxed))
		xtal_context_at_fork(before_fork, after_fork, after_fork);
	xtal_lock(&lock);
}

void ub_unlock(void)
{
	xtal_unlock(&lock);
}

static struct ub_node **bucket_of(const void *pub)
{
	uint64_t hash = (uint64_t)(uintptr_t)pub / 16 * 0x9e3779b97f4a7c15u;

	return &buckets[hash >> 54];
}

void ub_enlist(struct ub_node *node, const void *pub, enum ub_kind kind)
{
	struct ub_node **bucket = bucket_of(pub);

	node->pub = pub;
	node->kind = kind;
	atomic_store(&node->inside, 0);
	ub_lock();
	node->next = *bucket;
	*bucket = node;
	ub_unlock();
}

bool ub_delist(struct ub_node *node)
{
	bool found = false;

	ub_lock();
	for (struct ub_node **at = bucket_of(node->pub); *at; at = &(*at)->next) {
		if (*at != node)
			continue;
		*at = node->next;
		found = true;
		break;
	}
	ub_unlock();
	return found;
}

bool ub_live(const void *pub, enum ub_kind kind)
{
	bool found = false;

	ub_lock();
	for (const struct ub_node *n = *bucket_of(pub); n && !found; n = n->next)
		found = n->pub == pub && n->kind == kind;
	ub_unlock();
	return found;
}

const char *ub_kind_name(enum ub_kind kind)
{
	static const char *const names[] = {
		[UB_CONTEXT] = "context",
		[UB_JFCE] = "event channel",
		[UB_JFC] = "completion queue",
		[UB_JFS] = "send queue",
		[UB_JFR] = "receive queue",
		[UB_JETTY] = "jetty",
		[UB_GROUP] = "jetty group",
		[UB_TOKEN_ID] = "token id",
		[UB_SEGMENT] = "registered segment",
		[UB_IMPORTED] = "imported segment",
		[UB_TARGET] = "imported jetty or receive queue",
		[UB_NOTIFIER] = "notifier",
	};

	return names[kind];
}

bool ub_check(const char *function, const void *pub, enum ub_kind kind)
{
	if (pub && ub_live(pub, kind))
		return true;
	if (!pub)
		ub_refuse("%s: the %s is NULL", function, ub_kind_name(kind));
	else
		ub_refuse("%s: %p is no live %s: deleted before, a copy, or not from this library",
			  function, pub, ub_kind_name(kind));
	return false;
}

struct ub_node *ub_enter(const char *function, const void *pub, enum ub_kind kind)
{
	struct ub_node *n;

	ub_lock();
	for (n = *bucket_of(pub); n; n = n->next)
		if (n->pub == pub && n->kind == kind)
			break;
	if (n)
		atomic_fetch_add(&n->inside, 1);
	ub_unlock();
	if (!n)
		ub_check(function, pub, kind); /* the refusal */
	return n;
}

void ub_leave(struct ub_node *node)
{
	atomic_fetch_sub(&node->inside, 1); /* the last look: it may be freed now */
}

void ub_leave_cancelled(void *node)
{
	ub_leave(node);
}

void ub_drain(struct ub_node *node)
{
	unsigned inside;

	while ((inside = atomic_load(&node->inside)) != 0)
		xtal_word_sleep(&node->inside, inside, 1); /* nobody wakes us */
}

bool ub_each(bool (*fn)(struct ub_node *node, void *arg), void *arg)
{
	bool found = false;

	ub_lock();
	for (unsigned i = 0; i < BUCKETS && !found; i++)
		for (struct ub_node *n = buckets[i]; n && !found; n = n->next)
			found = fn(n, arg);
	ub_unlock();
	return found;
}

void ub_acks_init(struct ub_acks *acks)
{
	xtal_async_source_init(&acks->source);
}

void ub_acks_ack(struct ub_acks *acks)
{
	atomic_fetch_add(&acks->acked, 1);
	xtal_word_wake(&acks->acked);
}

void ub_acks_wait(struct ub_acks *acks, const char *function)
{
	bool said = false;
	unsigned acked;

	while ((acked = atomic_load(&acks->acked)) < atomic_load(&acks->taken)) {
		uint64_t before = xtal_clock();

		xtal_word_sleep(&acks->acked, acked, 1000);
		if (said || xtal_clock() - before < 900000000)
			continue;
		said = true;
		ub_say(URMA_VLOG_LEVEL_WARNING,
		       "%s: waits for %u asynchronous events that were taken to be acknowledged",
		       function, atomic_load(&acks->taken) - acked);
	}
}
