/* SPDX-License-Identifier: MIT */
/* Shareable objects: xtal_alloc's own, and the user's memfd, shm and file mappings. */
#include "core/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/log.h"
#include "os/fence.h"
#include "os/sock.h"
#include "os/vm.h"
#include "xtal.h"

static struct xtal_lock objects_lock;
static struct xtal_list objects = { &objects, &objects };
static uint64_t next_id;

void xtal_object_fork_lock(void)
{
	xtal_lock(&objects_lock);
}

void xtal_object_fork_unlock(void)
{
	xtal_unlock(&objects_lock);
}

void xtal_object_fork_child(void)
{
	for (struct xtal_list *n = objects.next; n != &objects; n = n->next) {
		struct xtal_object *o = xtal_container_of(n, struct xtal_object, node);

		o->second = NULL;
		atomic_store_explicit(&o->alias, NULL, memory_order_relaxed);
	}
}

uint64_t xtal_object_number(void)
{
	uint64_t number;

	xtal_lock(&objects_lock);
	number = ++next_id;
	xtal_unlock(&objects_lock);
	return number;
}

/* Under the lock. */
static struct xtal_object *ours_at(uint64_t addr, uint64_t len)
{
	for (struct xtal_list *n = objects.next; n != &objects; n = n->next) {
		struct xtal_object *o = xtal_container_of(n, struct xtal_object, node);
		uint64_t at = (uintptr_t)o->addr;

		if (o->ours && o->addr && addr >= at && addr - at < o->len &&
		    len <= o->len - (addr - at))
			return o;
	}
	return NULL;
}

/* Under the lock. */
static struct xtal_object *users_object(const struct xtal_os_backing *b)
{
	for (struct xtal_list *n = objects.next; n != &objects; n = n->next) {
		struct xtal_object *o = xtal_container_of(n, struct xtal_object, node);

		if (!o->ours && o->inode == b->inode && o->dev_major == b->dev_major &&
		    o->dev_minor == b->dev_minor)
			return o;
	}
	return NULL;
}

/* The whole range must lie in one shared mapping (or several of the same object in step). */
static bool one_object(uint64_t addr, uint64_t len, struct xtal_os_backing *first, bool *read_only,
		       char *reason, size_t size)
{
	struct xtal_os_backing next;
	uint64_t at;

	if (xtal_os_backing_find((void *)(uintptr_t)addr, first)) {
		snprintf(reason, size, "nothing is mapped at the start of the segment");
		return false;
	}
	if (!first->shared) {
		snprintf(reason, size,
			 "private memory (malloc, stack, MAP_PRIVATE): only the owner "
			 "has these pages; xtal_alloc memory would be mapped");
		return false;
	}
	if (strncmp(first->path, "/memfd:xtal-adopted", 19) == 0) {
		snprintf(reason, size,
			 "private memory, adopted, but not as a part of this segment");
		return false;
	}
	*read_only = !first->writable;
	for (at = first->end; at < addr + len; at = next.end) {
		if (xtal_os_backing_find((void *)(uintptr_t)at, &next) || !next.shared ||
		    next.inode != first->inode || next.dev_major != first->dev_major ||
		    next.dev_minor != first->dev_minor ||
		    next.offset != first->offset + (at - first->start)) {
			snprintf(reason, size, "the segment crosses from one mapping into another");
			return false;
		}
		*read_only |= !next.writable;
	}
	return true;
}

/* Under the lock. */
static struct xtal_object *add_users(const struct xtal_os_backing *b, char *reason, size_t size)
{
	struct xtal_object *o = users_object(b);
	bool writable;
	int fd, err;

	if (o)
		return o;
	err = xtal_os_backing_open(b, &fd, &writable);
	if (err) {
		snprintf(reason, size,
			 "shared memory of which neither a descriptor nor a name "
			 "exists any more");
		return NULL;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		xtal_os_close(fd);
		snprintf(reason, size, "no memory");
		return NULL;
	}
	*o = (struct xtal_object){ .fd = fd,
				   .id = ++next_id,
				   .writable = writable,
				   .sealed = xtal_os_sealed_shrink(fd),
				   .inode = b->inode,
				   .dev_major = b->dev_major,
				   .dev_minor = b->dev_minor };
	xtal_list_append(&objects, &o->node);
	return o;
}

void xtal_object_find(uint64_t addr, uint64_t len, struct xtal_backing *out)
{
	struct xtal_os_backing b;
	struct xtal_object *o;

	memset(out, 0, sizeof(*out));
	xtal_lock(&objects_lock);
	o = ours_at(addr, len);
	if (o) {
		o->refs++;
		out->offset = addr - (uintptr_t)o->addr;
		snprintf(out->reason, sizeof(out->reason), "memory of xtal_alloc");
	}
	xtal_unlock(&objects_lock);
	if (!o && one_object(addr, len, &b, &out->read_only, out->reason, sizeof(out->reason))) {
		xtal_lock(&objects_lock);
		o = add_users(&b, out->reason, sizeof(out->reason));
		if (o) {
			o->refs++;
			out->offset = b.offset + (addr - b.start);
			snprintf(out->reason, sizeof(out->reason),
				 "the owner's shared mapping "
				 "(memfd, shm or file)");
		}
		xtal_unlock(&objects_lock);
	}
	out->object = o;
}

void xtal_object_put(struct xtal_object *o)
{
	if (!o)
		return;
	xtal_lock(&objects_lock);
	if (--o->refs)
		o = NULL;
	else
		xtal_list_remove(&o->node);
	xtal_unlock(&objects_lock);
	if (o) {
		if (o->second)
			xtal_os_unmap(o->second, o->len);
		xtal_os_close(o->fd);
		free(o);
	}
}

static __attribute__((noinline)) uint8_t *make_alias(struct xtal_object *o)
{
	void *map;

	xtal_lock(&objects_lock);
	if (o->addr && !o->second && !xtal_os_map(o->fd, 0, o->len, true, &map)) {
		o->second = map;
		/* Release, as below. Partner: xtal_object_alias(). */
		atomic_store_explicit(&o->alias, map, memory_order_release);
	}
	if (!o->second)
		atomic_store_explicit(&o->without_alias, true, memory_order_relaxed);
	map = atomic_load_explicit(&o->alias, memory_order_relaxed);
	xtal_unlock(&objects_lock);
	return map;
}

uint8_t *xtal_object_alias(struct xtal_object *o)
{
	uint8_t *alias = atomic_load_explicit(&o->alias, memory_order_acquire);

	if (alias || !o->ours || atomic_load_explicit(&o->without_alias, memory_order_relaxed))
		return alias;
	return make_alias(o);
}

/* Under the lock. */
static void forget_alias(struct xtal_object *o)
{
	atomic_store_explicit(&o->without_alias, true, memory_order_relaxed);
	atomic_store_explicit(&o->alias, NULL, memory_order_relaxed);
}

void *xtal_alloc(size_t len)
{
	size_t page = xtal_os_page_size();
	struct xtal_object *o;
	void *addr = NULL;
	int fd = -1, err;

	if (!len || len > 1ull << 47) {
		xtal_refuse("xtal", "xtal_alloc of %zu bytes: the length must be 1 to 2^47", len);
		return NULL;
	}
	len = (len + page - 1) / page * page;
	o = calloc(1, sizeof(*o));
	err = o ? xtal_os_object_create("xtal-alloc", len, false, &fd, &addr) : -ENOMEM;
	if (err) {
		xtal_refuse("xtal", "xtal_alloc of %zu bytes: %s", len,
			    err == -EFBIG ? "RLIMIT_FSIZE allows no such object" : strerror(-err));
		free(o);
		return NULL;
	}
	*o = (struct xtal_object){ .refs = 1,
				   .fd = fd,
				   .writable = true,
				   .sealed = true,
				   .ours = true,
				   .len = len,
				   .addr = addr };
	xtal_lock(&objects_lock);
	o->id = ++next_id;
	xtal_list_append(&objects, &o->node);
	xtal_unlock(&objects_lock);
	return addr;
}

void xtal_free(void *ptr)
{
	struct xtal_object *o;

	if (!ptr)
		return;
	xtal_lock(&objects_lock);
	o = ours_at((uintptr_t)ptr, 1);
	if (o && o->addr == ptr) {
		o->addr = NULL;
		forget_alias(o);
	} else {
		o = NULL;
	}
	xtal_unlock(&objects_lock);
	if (!o) {
		xtal_refuse("xtal",
			    "xtal_free(%p): not the start of memory that xtal_alloc "
			    "returned",
			    ptr);
		return;
	}
	xtal_os_unmap(ptr, o->len);
	xtal_object_put(o);
}

int xtal_object_replace(struct xtal_object *o)
{
	int fd = -1, err;

	xtal_lock(&objects_lock);
	err = o->addr ? xtal_os_object_create("xtal-alloc", o->len, false, &fd, NULL) : 0;
	if (!err && o->addr)
		err = xtal_os_fence_replace(o->addr, o->len, o->fd, fd);
	/* Its segments are moving: nobody is there. */
	if (!err && o->second && xtal_os_map_over(o->second, o->len, fd, 0))
		forget_alias(o);
	if (!err && o->addr) {
		int old = o->fd;

		o->fd = fd;
		o->id = ++next_id; /* peers map the new one beside the old */
		xtal_unlock(&objects_lock);
		xtal_os_close(old);
		return 0;
	}
	xtal_unlock(&objects_lock);
	if (fd >= 0)
		xtal_os_close(fd);
	return err;
}
