/* SPDX-License-Identifier: MIT */
/* Links from the initiator's side: making, resolving, ending; see link.h. */
#include "core/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/connect.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/messages.h"
#include "core/pipeline.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "xtal.h"

static void fail_if_broken(struct xtal_link *link)
{
	const char *text;
	uint32_t status;

	xtal_lock(&link->lock);
	text = link->broken;
	status = link->broken_status;
	xtal_unlock(&link->lock);
	if (text)
		xtal_link_fail(link, status, "%s", text);
}

void xtal_link_fail_later(struct xtal_link *link, uint32_t status, const char *text)
{
	link->broken = text;
	link->broken_status = status;
	xtal_link_post(link);
}

static void link_task(struct xtal_task *task)
{
	struct xtal_link *link = xtal_container_of(task, struct xtal_link, task);

	switch ((enum xtal_link_state)atomic_load(&link->state)) {
	case XTAL_LINK_CONNECTING:
		xtal_connect_run(task);
		break;
	case XTAL_LINK_UP:
		fail_if_broken(link);
		xtal_connect_ask(link);
		break;
	case XTAL_LINK_DEAD:
		if (!link->stopped) {
			link->stopped = true;
			xtal_connect_stop(link);
			xtal_link_put(link); /* the list's reference */
		}
		break;
	}
	xtal_link_put(link); /* post's reference */
}

void xtal_link_post(struct xtal_link *link)
{
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	if (!xtal_agent_post(&link->task))
		xtal_link_put(link);
}

/* A new link to a context of this process is up at once. */
static void find_self(struct xtal_link *link)
{
	struct xtal_context *self;

	if (!(xtal_config()->paths & 1u << XTAL_PATH_SELF))
		return;
	self = xtal_engine_find(link->eid, (uint16_t)link->tid);
	if (!self)
		return;
	if (xtal_incarnation_bits(self->incarnation) != link->tid >> 16) {
		atomic_fetch_sub_explicit(&self->users, 1, memory_order_release);
		return; /* the handshake will say so */
	}
	link->self = self;
	link->full_fence = xtal_lane_full_fence();
	atomic_store(&link->state, XTAL_LINK_UP);
}

static struct xtal_link *link_new(struct xtal_context *ctx, struct xtal_eid eid, uint32_t tid,
				  uint32_t pipeline)
{
	struct xtal_link *link = aligned_alloc(XTAL_CACHE_LINE, sizeof(*link));

	if (!link)
		return NULL;
	memset(link, 0, sizeof(*link));
	link->ctx = ctx;
	link->eid = eid;
	link->tid = tid;
	link->pipeline = pipeline;
	link->id = atomic_fetch_add(&ctx->next_link_id, 1) + 1;
	/* No other link has these: an operation may bring the number of a question to the last. */
	link->next_id = (uint64_t)link->id << 32;
	atomic_store(&link->refs, 2); /* the list's and the caller's */
	link->sock.fd = link->death.fd = link->doorbell = -1;
	link->task.run = link_task;
	link->connect_deadline = xtal_os_now() + (uint64_t)xtal_config()->timeout_ms * 1000000;
	xtal_intervals_init(&link->grants);
	xtal_list_init(&link->windows);
	xtal_list_init(&link->resolves);
	xtal_list_init(&link->waiters);
	xtal_list_init(&link->drain.node);
	xtal_lane_init(&link->lane);
	xtal_count(&xtal_totals.links, 1);
	return link;
}

struct xtal_link *xtal_link_get(struct xtal_context *ctx, struct xtal_eid eid, uint32_t tid,
				uint32_t pipeline)
{
	struct xtal_link *link = NULL;
	bool made = false;

	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links; n = n->next) {
		struct xtal_link *l = xtal_container_of(n, struct xtal_link, node);

		if (l->tid == tid && l->pipeline == pipeline && xtal_eid_equal(l->eid, eid)) {
			link = l;
			atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
			break;
		}
	}
	if (!link) {
		link = link_new(ctx, eid, tid, pipeline);
		if (link) {
			made = true;
			find_self(link);
			xtal_list_append(&ctx->links, &link->node);
		}
	}
	xtal_unlock(&ctx->links_lock);
	if (made && !link->self)
		xtal_link_post(link);
	return link;
}

static void grants_free(struct xtal_link *link)
{
	/* The references that the set held; executors have none any more. */
	while (link->grants.count) {
		struct xtal_interval *i = &link->grants.items[link->grants.count - 1];
		struct xtal_grant *g = i->value;

		xtal_intervals_remove(&link->grants, i->lo, i->hi, g);
		free(g);
	}
	xtal_intervals_fini(&link->grants);
}

void xtal_link_put(struct xtal_link *link)
{
	if (atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) != 1)
		return;
	xtal_lane_fini(&link->lane);
	grants_free(link);
	xtal_connect_close(link);
	while (!xtal_list_empty(&link->resolves)) {
		struct xtal_list *n = link->resolves.next;

		xtal_list_remove(n);
		free(xtal_container_of(n, struct xtal_resolve, node));
	}
	atomic_fetch_sub_explicit(&xtal_totals.links, 1, memory_order_relaxed);
	/* Not before: fragments of a long copy look at its slot table until they are done. */
	if (link->self)
		atomic_fetch_sub_explicit(&link->self->users, 1, memory_order_release);
	free(link);
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

struct grant_match {
	const struct xtal_remote *remote;
	uint32_t rights;
};

static bool grant_matches(void *value, void *arg)
{
	const struct xtal_grant *g = value;
	const struct grant_match *m = arg;

	return g->token == m->remote->token && g->token_valid == m->remote->token_valid &&
	       (g->rights & m->rights) == m->rights &&
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

void xtal_link_wait(struct xtal_link *link, struct xtal_queue *q, uint64_t what)
{
	atomic_store_explicit(&q->wait_for, what, memory_order_relaxed);
	if (q->wait_link == link)
		return;
	/* One place at a time: the caller has left the other list (xtal_link_unwait). */
	atomic_fetch_add_explicit(&link->refs, 1, memory_order_relaxed);
	q->wait_link = link;
	xtal_list_append(&link->waiters, &q->wait_node);
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
		    r->token_valid == remote->token_valid && r->rights == rights && !r->sent)
			return r;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	*r = (struct xtal_resolve){ .id = ++link->next_id,
				    .addr = remote->addr,
				    .len = len,
				    .token = remote->token,
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

void xtal_link_unwait(struct xtal_link *link, struct xtal_queue *q)
{
	xtal_lock(&link->lock);
	xtal_list_remove(&q->wait_node);
	xtal_unlock(&link->lock);
	q->wait_link = NULL;
	xtal_link_put(link);
}

uint32_t xtal_link_wake(struct xtal_link *link, uint64_t what, uint32_t most)
{
	uint32_t kicked = 0;

	for (struct xtal_list *n = link->waiters.next; n != &link->waiters && kicked < most;
	     n = n->next) {
		struct xtal_queue *q = xtal_container_of(n, struct xtal_queue, wait_node);

		if (atomic_load_explicit(&q->wait_for, memory_order_relaxed) != what)
			continue;
		atomic_store_explicit(&q->wait_for, XTAL_WAIT_OVER, memory_order_relaxed);
		xtal_pipeline_kick(q);
		kicked++;
	}
	return kicked;
}

struct xtal_activity *xtal_link_seat(struct xtal_link *link, bool brief)
{
	/* The last group is for fragments, which give theirs back: queues cannot starve them. */
	const uint32_t groups = XTAL_BOARD_WORDS / 64 - (brief ? 0 : 1);
	struct xtal_activity *seat = NULL;

	if (!link->board)
		return NULL;
	xtal_lock(&link->lock);
	for (uint32_t w = 0; w < groups && !seat; w++) {
		uint32_t i;

		if (link->seats[w] == UINT64_MAX)
			continue;
		i = (uint32_t)__builtin_ctzll(~link->seats[w]);
		link->seats[w] |= 1ull << i;
		i += w * 64;
		seat = &link->board->activity[i];
		if (i >= link->seats_used) {
			link->seats_used = i + 1;
			/* Before any announcement in it. Partner: the owner's scan. */
			atomic_store_explicit(&link->board->used, i + 1, memory_order_seq_cst);
		}
	}
	xtal_unlock(&link->lock);
	return seat;
}

void xtal_link_unseat(struct xtal_link *link, struct xtal_activity *seat)
{
	uint32_t i = (uint32_t)(seat - link->board->activity);

	xtal_lock(&link->lock);
	link->seats[i / 64] &= ~(1ull << i % 64);
	xtal_unlock(&link->lock);
}

void xtal_link_fail(struct xtal_link *link, uint32_t status, const char *format, ...)
{
	struct xtal_context *ctx = link->ctx;
	bool first;
	va_list args;

	xtal_lock(&link->lock);
	first = atomic_load(&link->state) != XTAL_LINK_DEAD;
	if (first) {
		va_start(args, format);
		vsnprintf(link->text, sizeof(link->text), format, args);
		va_end(args);
		link->status = status;
		atomic_store(&link->state, XTAL_LINK_DEAD);
		xtal_messages_fail(link, status);
	}
	xtal_unlock(&link->lock);
	if (!first)
		return;
	xtal_log(XTAL_LOG_INFO, "xtal", "link %u ends: %s", link->id, link->text);
	xtal_count(&xtal_totals.peers_lost, 1);
	xtal_lock(&ctx->links_lock);
	xtal_list_remove(&link->node);
	xtal_unlock(&ctx->links_lock);
	xtal_lock(&ctx->queues_lock);
	for (struct xtal_list *n = ctx->queues.next; n != &ctx->queues; n = n->next)
		xtal_queue_link_lost(xtal_container_of(n, struct xtal_queue, node), link);
	xtal_unlock(&ctx->queues_lock);
	xtal_link_post(link);
}

/* Some link of ctx that fits, with a reference. */
static struct xtal_link *some_link(struct xtal_context *ctx, const struct xtal_context *self)
{
	struct xtal_link *found = NULL;

	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links && !found; n = n->next) {
		struct xtal_link *link = xtal_container_of(n, struct xtal_link, node);

		if (!self || link->self == self)
			found = link;
	}
	if (found)
		atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
	xtal_unlock(&ctx->links_lock);
	return found;
}

void xtal_links_close(struct xtal_context *ctx, const struct xtal_context *self)
{
	struct xtal_link *link;

	while ((link = some_link(ctx, self))) {
		xtal_link_fail(link, XTAL_UNREACHABLE, "the context was closed");
		xtal_link_put(link);
	}
}

void xtal_links_tick(struct xtal_context *ctx, uint64_t now)
{
	struct xtal_link *late = NULL;

	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links && !late; n = n->next) {
		struct xtal_link *link = xtal_container_of(n, struct xtal_link, node);

		if (atomic_load(&link->state) == XTAL_LINK_CONNECTING) {
			if (now > link->connect_deadline)
				late = link;
			else if (link->sock.fd < 0)
				xtal_link_post(link); /* its backlog was full: again */
		}
	}
	if (late)
		atomic_fetch_add_explicit(&late->refs, 1, memory_order_relaxed);
	xtal_unlock(&ctx->links_lock);
	if (late) {
		xtal_link_fail(late, XTAL_UNREACHABLE,
			       "the owner holds port %u but did not answer within %u ms",
			       late->tid & 0xffff, xtal_config()->timeout_ms);
		xtal_link_put(late);
	}
}
