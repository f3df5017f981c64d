/* SPDX-License-Identifier: MIT */
/* What targets have granted: looking it up, asking for it, letting go of it; see grant.h. */
#include "core/grant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/carrier.h"
#include "core/connect.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/link.h"
#include "core/log.h"
#include "core/queue_impl.h"
#include "xtal.h"

void xtal_grants_free(struct xtal_link *link)
{
	/* The references that the set held; executors have none any more. */
	while (link->grants.count) {
		struct xtal_interval *i = &link->grants.items[link->grants.count - 1];
		struct xtal_grant *g = i->value;

		xtal_intervals_remove(&link->grants, i->lo, i->hi, g);
		free(g);
	}
	xtal_intervals_fini(&link->grants);
	while (!xtal_list_empty(&link->resolves)) {
		struct xtal_list *n = link->resolves.next;

		xtal_list_remove(n);
		free(xtal_container_of(n, struct xtal_resolve, node));
	}
}

/* Under the link's lock: the grant's last reference is gone. */
static void grant_free(struct xtal_grant *g)
{
	struct xtal_window *w = g->window;

	if (w && !--w->refs) {
		xtal_list_remove(&w->node);
		xtal_connect_unmap(w);
		free(w);
	}
	free(g);
}

void xtal_grant_put(struct xtal_grant *g)
{
	struct xtal_link *link = g->link;

	if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1) {
		xtal_lock(&link->lock);
		grant_free(g);
		xtal_unlock(&link->lock);
	}
	xtal_link_put(link);
}

/* False: the slot's word has changed. Takes the set's reference away then. */
static bool keep_grant(void *value, void *arg)
{
	struct xtal_grant *g = value;

	(void)arg;
	if (atomic_load_explicit(g->slot_word, memory_order_relaxed) == g->word)
		return true;
	if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1)
		grant_free(g);
	return false;
}

int xtal_link_keep(struct xtal_link *link, struct xtal_grant *g)
{
	/* Each time the set has doubled, so that it costs nothing in the long run. */
	if (link->grants.count >= link->prune_at) {
		xtal_intervals_filter(&link->grants, keep_grant, NULL);
		link->prune_at = link->grants.count * 2 + 16;
	}
	return xtal_intervals_insert(&link->grants, g->lo, g->hi, g);
}

/* Under the link's lock: takes the set's reference away (it held none on the link). */
static bool unlist(struct xtal_link *link, struct xtal_grant *g)
{
	return xtal_intervals_remove(&link->grants, g->lo, g->hi, g) == 0;
}

void xtal_link_forget(struct xtal_grant *g)
{
	struct xtal_link *link = g->link;
	bool last;

	xtal_lock(&link->lock);
	last = unlist(link, g);
	xtal_unlock(&link->lock);
	/* The set's reference; the caller still has its own, so this is never the last. */
	if (last)
		atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel);
}

/* -ESRCH: a process that dies has no memory shortly before it is seen to be dead, and one whose first
 * thread has ended is reached by its other ones only. */
bool xtal_grant_cma_ended(struct xtal_grant *g, int err)
{
	struct xtal_link *link = g->link;
	bool first;

	if (g->reach.kind != XTAL_REACH_CMA || (err != -EPERM && err != -ESRCH && err != -ENOSYS))
		return false;
	xtal_lock(&link->lock);
	first = link->cma;
	link->cma = false;
	if (first)
		snprintf(link->cma_text, sizeof(link->cma_text),
			 "process_vm_writev of process %d has ended: %s%s", link->pid,
			 strerror(-err),
			 err == -EPERM ? " (it has become another user or not dumpable)" : "");
	xtal_unlock(&link->lock);
	if (first)
		xtal_log(err == -ESRCH ? XTAL_LOG_INFO : XTAL_LOG_WARNING, "xtal",
			 "link %u to process %d: %s; messages take over", link->id, link->pid,
			 link->cma_text);
	return true;
}

/* So often; then twice as often, and so on. Of 8-byte writes by cma, which take a way of their own,
 * only one per depth of the queue comes along here. */
#define HOT 256u

void xtal_grant_used(struct xtal_grant *g)
{
	uint32_t n = atomic_fetch_add_explicit(&g->small, 1, memory_order_relaxed) + 1;
	struct xtal_link *link = g->link;
	struct xtal_resolve *r;

	if (n < HOT || n & (n - 1))
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		return;
	xtal_lock(&link->lock);
	*r = (struct xtal_resolve){ .id = ++link->next_id,
				    .addr = g->lo,
				    .len = g->hi - g->lo,
				    .token = g->token,
				    .index = g->index,
				    .token_valid = g->token_valid,
				    .rights = g->rights,
				    .hot = true };
	xtal_list_append(&link->resolves, &r->node);
	xtal_unlock(&link->lock);
	xtal_link_post(link);
}

struct grant_match {
	const struct xtal_remote *remote;
	uint32_t rights;
};

static bool grant_matches(void *value, void *arg)
{
	const struct xtal_grant *g = value;
	const struct grant_match *m = arg;

	return g->token == m->remote->token && g->index == m->remote->index &&
	       g->token_valid == m->remote->token_valid && (g->rights & m->rights) == m->rights &&
	       atomic_load_explicit(g->slot_word, memory_order_relaxed) == g->word;
}

/* Under the link's lock: the target is in this process, so the answer is had at once. */
static int resolve_self(struct xtal_link *link, const struct xtal_remote *remote, uint64_t len,
			uint32_t rights, struct xtal_grant **out, char *text, size_t text_size)
{
	struct xtal_registry *reg = &link->self->registry;
	struct xtal_access access = { .addr = remote->addr,
				      .len = len,
				      .token = remote->token,
				      .index = remote->index,
				      .token_valid = remote->token_valid,
				      .rights = rights };
	struct xtal_found found;
	struct xtal_grant *g;
	int status = xtal_registry_resolve(reg, &access, &found);

	if (status) {
		snprintf(text, text_size, "%s", found.why);
		xtal_count(&xtal_totals.denied, 1);
		return status;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return XTAL_LOCAL_OPERATION;
	*g = (struct xtal_grant){
		.refs = 2,
		.link = link,
		.lo = found.lo,
		.hi = found.hi,
		.token = remote->token,
		.index = remote->index,
		.token_valid = remote->token_valid,
		.rights = found.rights,
		.slot = found.slot,
		.word = found.word,
		.slot_word = &reg->table->word[found.slot],
		.reach = { .kind = XTAL_REACH_DIRECT,
			   .lo = found.lo,
			   .base = (uint8_t *)(uintptr_t)found.lo },
		.path = XTAL_PATH_SELF,
	};
	if (xtal_link_keep(link, g)) {
		free(g);
		return XTAL_LOCAL_OPERATION;
	}
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	*out = g;
	return 0;
}

void xtal_link_deny(struct xtal_link *link, uint64_t id, uint32_t status, bool retry,
		    const char *text)
{
	struct xtal_denial *d =
		&link->denials[link->next_denial++ % XTAL_ARRAY_SIZE(link->denials)];

	d->id = id;
	d->status = status;
	d->retry = retry;
	snprintf(d->text, sizeof(d->text), "%s", text);
}

/* Under the link's lock: is the answer to this question a refusal? */
static struct xtal_denial *denial_of(struct xtal_link *link, uint64_t ask)
{
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(link->denials); i++)
		if (ask && link->denials[i].id == ask)
			return &link->denials[i];
	return NULL;
}

/* Under the link's lock: the open question for the same thing, or a new one. */
static struct xtal_resolve *question(struct xtal_link *link, const struct xtal_remote *remote,
				     uint64_t len, uint32_t rights)
{
	struct xtal_resolve *r;

	for (struct xtal_list *n = link->resolves.next; n != &link->resolves; n = n->next) {
		r = xtal_container_of(n, struct xtal_resolve, node);
		if (r->addr == remote->addr && r->len == len && r->token == remote->token &&
		    r->index == remote->index && r->token_valid == remote->token_valid &&
		    r->rights == rights && !r->sent && !r->hot)
			return r;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct xtal_resolve){ .id = ++link->next_id,
				    .addr = remote->addr,
				    .len = len,
				    .token = remote->token,
				    .index = remote->index,
				    .token_valid = remote->token_valid,
				    .rights = rights };
	xtal_list_append(&link->resolves, &r->node);
	return r;
}

static bool question_open(struct xtal_link *link, uint64_t ask)
{
	for (struct xtal_list *n = link->resolves.next; n != &link->resolves; n = n->next)
		if (xtal_container_of(n, struct xtal_resolve, node)->id == ask)
			return true;
	return false;
}

int xtal_link_resolve(struct xtal_link *link, const struct xtal_remote *remote, uint64_t len,
		      uint32_t rights, struct xtal_queue *waiter, uint64_t *ask,
		      struct xtal_grant **out, char *text, size_t text_size)
{
	struct grant_match match = { .remote = remote, .rights = rights };
	struct xtal_grant *g = NULL;
	struct xtal_denial *d;
	struct xtal_resolve *r;
	int result = -EINPROGRESS;
	bool tell_agent = false;

	xtal_lock(&link->lock);
	switch ((enum xtal_link_state)atomic_load(&link->state)) {
	case XTAL_LINK_DEAD:
		snprintf(text, text_size, "%s", link->text);
		result = (int)link->status;
		goto unlock;
	case XTAL_LINK_CONNECTING:
		if (waiter)
			xtal_link_wait(link, waiter, XTAL_WAIT_UP);
		goto unlock;
	case XTAL_LINK_UP:
		break;
	}
	if (len && remote->addr + len > remote->addr)
		g = xtal_intervals_covering(&link->grants, remote->addr, remote->addr + len,
					    grant_matches, &match);
	if (g) {
		atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
		*out = g;
		result = 0;
		goto unlock;
	}
	if (link->self) {
		result = resolve_self(link, remote, len, rights, out, text, text_size);
		goto unlock;
	}
	if (link->carrier->grant) {
		result = link->carrier->grant(link, remote, len, out);
		goto unlock;
	}
	d = denial_of(link, *ask);
	if (d && !d->retry) {
		snprintf(text, text_size, "%s", d->text);
		result = (int)d->status;
		goto unlock;
	}
	if (!*ask || !question_open(link, *ask)) {
		r = question(link, remote, len, rights);
		if (!r) {
			result = XTAL_LOCAL_OPERATION;
			goto unlock;
		}
		*ask = r->id;
		tell_agent = true;
	}
	if (waiter)
		xtal_link_wait(link, waiter, *ask);
unlock:
	xtal_unlock(&link->lock);
	if (tell_agent)
		xtal_link_post(link);
	return result;
}
