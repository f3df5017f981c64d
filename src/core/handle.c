/* SPDX-License-Identifier: MIT */
/* The table of foreign handles; see handle.h. */
#include "core/handle.h"

#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "core/handle_impl.h"

#define BUCKETS 1024u

static struct xtal_lock handles_lock;
static struct xtal_handle *buckets[BUCKETS];

static unsigned bucket(const void *foreign)
{
	return (unsigned)(((uintptr_t)foreign >> 4) * 0x9e3779b97f4a7c15u >> 50) % BUCKETS;
}

static int bind(const void *foreign, const struct xtal_handle *what)
{
	struct xtal_handle *h = malloc(sizeof(*h)), **at = &buckets[bucket(foreign)];
	struct xtal_handle *same;

	if (!h)
		return -ENOMEM;
	*h = *what;
	h->foreign = foreign;
	xtal_lock(&handles_lock);
	for (same = *at; same && same->foreign != foreign; same = same->next)
		;
	if (!same) {
		h->next = *at;
		*at = h;
	}
	xtal_unlock(&handles_lock);
	if (same)
		free(h);
	return same ? -EEXIST : 0;
}

int xtal_handle_bind_queue(const void *foreign, const struct xtal_queue_handle *handle)
{
	return bind(foreign, &(struct xtal_handle){ .queue = *handle });
}

int xtal_handle_bind_segment(const void *foreign, struct xtal_segment *seg)
{
	return bind(foreign, &(struct xtal_handle){ .segment = seg });
}

void xtal_handle_unbind(const void *foreign)
{
	struct xtal_handle **at, *h = NULL;

	xtal_lock(&handles_lock);
	for (at = &buckets[bucket(foreign)]; *at; at = &(*at)->next) {
		if ((*at)->foreign == foreign) {
			h = *at;
			*at = h->next;
			break;
		}
	}
	xtal_unlock(&handles_lock);
	free(h);
}

bool xtal_handle_find(const void *foreign, struct xtal_handle *out)
{
	struct xtal_handle *h;

	xtal_lock(&handles_lock);
	for (h = buckets[bucket(foreign)]; h && h->foreign != foreign; h = h->next)
		;
	if (h)
		*out = *h;
	xtal_unlock(&handles_lock);
	return h != NULL;
}

void xtal_handles_fork_lock(void)
{
	xtal_lock(&handles_lock);
}

void xtal_handles_fork_unlock(void)
{
	xtal_unlock(&handles_lock);
}
