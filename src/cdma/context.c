/* SPDX-License-Identifier: MIT */
/*
 * Contexts, and the registry that knows which are alive. A context that is deleted while
 * queues or segments exist stays until the last of them is gone, so that they stay safe.
 */
#include "cdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "base/lock.h"
#include "core/config.h"

static struct xtal_lock lock;
static struct xtal_list contexts = { &contexts, &contexts };

void cdma_registry_lock(void)
{
	static atomic_bool hooked;

	/* Before the lock is first taken, so that no fork finds it held by a vanished thread. */
	if (xtal_unlikely(!atomic_load_explicit(&hooked, memory_order_relaxed)) &&
	    !atomic_exchange_explicit(&hooked, true, memory_order_relaxed))
		xtal_context_at_fork(cdma_registry_lock, cdma_registry_unlock,
				     cdma_registry_unlock);
	xtal_lock(&lock);
}

void cdma_registry_unlock(void)
{
	xtal_unlock(&lock);
}

static const struct xtal_device *core_device(const struct dma_device *dev)
{
	unsigned count = xtal_device_count();

	for (unsigned i = 0; i < count; i++) {
		const struct xtal_device *core = xtal_device_at(i);

		if (strncmp(core->name, dev->name, sizeof(core->name)) == 0)
			return core;
	}
	return NULL;
}

/* True when a context of this process holds the entry. Lock held. */
static bool entry_busy(int fd)
{
	for (struct xtal_list *l = contexts.next; l != &contexts; l = l->next) {
		struct cdma_context *c = xtal_container_of(l, struct cdma_context, link);

		if (c->entry_fd == fd && !(c->core && xtal_context_is_foreign(c->core)))
			return true;
	}
	return false;
}

/* Takes the context out of the registry. Lock held; returns a list to be freed, or NULL. */
static struct cdma_list *unlink_context(struct cdma_context *c)
{
	xtal_list_remove(&c->link);
	return c->list ? cdma_list_unuse(c->list) : NULL;
}

struct dma_context *dma_create_context(struct dma_device *dev)
{
	const struct xtal_device *core;
	struct cdma_context *c;
	struct cdma_list *list;
	struct xtal_context *opened;
	bool busy;
	int error;

	cdma_log_start();
	if (!dev) {
		cdma_refuse("dma_create_context: dev is NULL");
		return NULL;
	}
	core = core_device(dev);
	if (!core || dev->fd < 0) {
		cdma_refuse("dma_create_context: %.60s with descriptor %d is no device of a list",
			    core ? core->name : "dev", dev->fd);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		cdma_refuse("dma_create_context: no memory for a context on %s", core->name);
		return NULL;
	}
	c->entry_fd = dev->fd;
	cdma_registry_lock();
	busy = xtal_config()->strict && entry_busy(dev->fd);
	if (!busy) {
		c->list = cdma_list_use(dev);
		xtal_list_append(&contexts, &c->link);
	}
	cdma_registry_unlock();
	if (busy) {
		cdma_refuse(
			"dma_create_context: the entry of %s (descriptor %d) has a context, and "
			"XTAL_STRICT=1 allows one",
			core->name, dev->fd);
		free(c);
		return NULL;
	}
	error = xtal_context_open(core, &opened);
	if (error) {
		if (error != -ENOKEY) /* the core has said what to do about a missing key */
			cdma_refuse("dma_create_context: no context on %s: %s", core->name,
				    cdma_reason(error));
		cdma_registry_lock();
		list = unlink_context(c);
		cdma_registry_unlock();
		free(list);
		free(c);
		return NULL;
	}
	c->pub.dma_dev = dev;
	c->pub.tid = xtal_context_tid(opened);
	c->pub.async_fd = xtal_context_async_fd(opened);
	/* Others walk the registry meanwhile: whole from here on. */
	cdma_registry_lock();
	c->core = opened;
	cdma_registry_unlock();
	return &c->pub;
}

static unsigned holders(const struct cdma_context *c)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CDMA_HOLDERS; i++)
		sum += c->held[i];
	return sum;
}

/* The context is out of the registry and nobody holds it. */
static void release(struct cdma_context *c, struct cdma_list *list)
{
	int error = xtal_context_close(&c->core);

	if (error)
		xtal_log(XTAL_LOG_ERROR, CDMA_TAG, "context 0x%x cannot be closed: %s", c->pub.tid,
			 cdma_reason(error));
	while (c->orphans) {
		struct cdma_segment *next = c->orphans->next;

		free(c->orphans);
		c->orphans = next;
	}
	free(c->slots);
	free(list);
	free(c);
}

static struct cdma_context *find_context(const struct dma_context *ctx)
{
	for (struct xtal_list *l = contexts.next; l != &contexts; l = l->next) {
		struct cdma_context *c = xtal_container_of(l, struct cdma_context, link);

		if (&c->pub == ctx && c->core)
			return c;
	}
	return NULL;
}

static struct cdma_context *get_context(const struct dma_context *ctx, enum cdma_holder holder,
					const char *function, bool deleted_too)
{
	struct cdma_context *c;
	bool deleted, foreign;

	if (!ctx) {
		cdma_refuse("%s: ctx is NULL", function);
		return NULL;
	}
	cdma_registry_lock();
	c = find_context(ctx);
	deleted = c && c->deleted && !deleted_too;
	foreign = c && xtal_context_is_foreign(c->core);
	if (c && !deleted && !foreign)
		c->held[holder]++;
	cdma_registry_unlock();
	if (!c || deleted) {
		cdma_refuse("%s: ctx %p is no live context: deleted before, or not from this "
			    "library",
			    function, (const void *)ctx);
		return NULL;
	}
	if (foreign) {
		cdma_refuse("%s: context 0x%x belongs to the process that this one was forked "
			    "from; make a context here",
			    function, ctx->tid);
		return NULL;
	}
	return c;
}

struct cdma_context *cdma_context_get(const struct dma_context *ctx, enum cdma_holder holder,
				      const char *function)
{
	return get_context(ctx, holder, function, false);
}

struct cdma_context *cdma_context_get_any(const struct dma_context *ctx, enum cdma_holder holder,
					  const char *function)
{
	return get_context(ctx, holder, function, true);
}

void cdma_context_put(struct cdma_context *c, enum cdma_holder holder)
{
	struct cdma_list *list = NULL;
	bool last;

	cdma_registry_lock();
	c->held[holder]--;
	last = c->deleted && holders(c) == 0;
	if (last)
		list = unlink_context(c);
	cdma_registry_unlock();
	if (last)
		release(c, list);
}

void dma_delete_context(struct dma_context *ctx)
{
	struct cdma_context *c;
	unsigned queues, segments;

	if (!ctx)
		return;
	c = cdma_context_get(ctx, CDMA_BY_CALL, "dma_delete_context");
	if (!c)
		return;
	cdma_registry_lock();
	c->deleted = true;
	queues = c->held[CDMA_BY_QUEUE];
	segments = c->held[CDMA_BY_SEGMENT];
	cdma_registry_unlock();
	if (queues || segments)
		cdma_refuse("dma_delete_context: context 0x%x still has %u queues and %u segments; "
			    "it stays open until they are gone",
			    c->pub.tid, queues, segments);
	cdma_context_put(c, CDMA_BY_CALL);
}

unsigned cdma_context_detach(const struct cdma_list *list)
{
	unsigned users = 0;

	for (struct xtal_list *l = contexts.next; l != &contexts; l = l->next) {
		struct cdma_context *c = xtal_container_of(l, struct cdma_context, link);

		if (c->list != list)
			continue;
		c->entry_fd = -1;
		if (c->core && !xtal_context_is_foreign(c->core))
			users++;
	}
	return users;
}

bool cdma_context_any(bool (*fn)(struct cdma_context *c, const void *arg), const void *arg)
{
	bool found = false;

	cdma_registry_lock();
	for (struct xtal_list *l = contexts.next; l != &contexts && !found; l = l->next)
		found = fn(xtal_container_of(l, struct cdma_context, link), arg);
	cdma_registry_unlock();
	return found;
}
