/* SPDX-License-Identifier: MIT */
/*
 * Endpoints: whom messages are addressed to. They find their context's endpoint by its id, take a
 * buffer from its receive queue, land, and are reported to its completion queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/context_impl.h"
#include "core/inbound.h"
#include "core/log.h"
#include "core/receive_impl.h"
#include "core/receive_queue.h"
#include "core/shared_cq_impl.h"
#include "os/vm.h"
#include "xtal.h"

#define FIRST_RECEIPTS 16u

static struct xtal_list *bucket(struct xtal_context *ctx, uint64_t address)
{
	return &ctx->endpoints[address % XTAL_ARRAY_SIZE(ctx->endpoints)];
}

static uint64_t address_of(const struct xtal_endpoint *ep)
{
	return xtal_endpoint_address(ep->attr.id, ep->attr.jetty);
}

/* Under the table's lock: with this address, the one that skip others precede, or NULL. *count: how many
 * there are. */
static struct xtal_endpoint *lookup(struct xtal_context *ctx, uint64_t address, uint32_t skip,
				    uint32_t *count)
{
	struct xtal_list *head = bucket(ctx, address);
	struct xtal_endpoint *found = NULL;

	*count = 0;
	for (struct xtal_list *n = head->next; n != head; n = n->next) {
		struct xtal_endpoint *ep = xtal_container_of(n, struct xtal_endpoint, node);

		if (address_of(ep) != address)
			continue;
		if ((*count)++ == skip)
			found = ep;
		if (ep->attr.sharing == XTAL_ENDPOINT_ALONE)
			break;
	}
	return found;
}

static struct xtal_endpoint *find(struct xtal_context *ctx, uint64_t address, uint8_t hint)
{
	struct xtal_endpoint *ep;
	uint32_t count;

	xtal_lock(&ctx->endpoints_lock);
	ep = lookup(ctx, address, 0, &count);
	if (count > 1) {
		bool by_hint = ep->attr.sharing == XTAL_ENDPOINT_BY_HINT;
		uint32_t choice = by_hint ? hint : ctx->endpoint_turn++;

		ep = lookup(ctx, address, choice % count, &count);
		for (uint32_t i = 1; i < count && !by_hint && atomic_load(&ep->held); i++)
			ep = lookup(ctx, address, (choice + i) % count, &count);
	}
	if (ep)
		xtal_endpoint_get(ep);
	xtal_unlock(&ctx->endpoints_lock);
	return ep;
}

void xtal_endpoint_get(struct xtal_endpoint *ep)
{
	atomic_fetch_add_explicit(&ep->refs, 1, memory_order_relaxed);
}

void xtal_endpoint_put(struct xtal_endpoint *ep)
{
	if (atomic_fetch_sub_explicit(&ep->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(ep->ring);
	free(ep);
}

/* ---- Reports ---- */

/* Under the ring's lock. */
static bool grow(struct xtal_endpoint *ep)
{
	uint64_t size = ep->size ? ep->size * 2 : FIRST_RECEIPTS;
	struct xtal_receipt *ring = malloc(size * sizeof(*ring));

	if (!ring)
		return false;
	for (uint64_t i = ep->head; i != ep->tail; i++)
		ring[i & (size - 1)] = ep->ring[i & (ep->size - 1)];
	free(ep->ring);
	ep->ring = ring;
	ep->size = size;
	return true;
}

static enum xtal_weight weight(const struct xtal_receipt *r)
{
	return r->status || r->solicited ? XTAL_WEIGHT_HEAVY : XTAL_WEIGHT_PLAIN;
}

/* Under the ring's lock: a place that no message has reserved. */
static bool has_room(struct xtal_endpoint *ep)
{
	return ep->tail - ep->head + ep->reserved < ep->size || grow(ep);
}

/* Each message has its place before it is taken, so that none is lost, however many come in. */
static bool reserve(struct xtal_endpoint *ep)
{
	bool room;

	xtal_lock(&ep->ring_lock);
	room = has_room(ep);
	if (room)
		ep->reserved++;
	xtal_unlock(&ep->ring_lock);
	return room;
}

static void unreserve(struct xtal_endpoint *ep)
{
	xtal_lock(&ep->ring_lock);
	ep->reserved--;
	xtal_unlock(&ep->ring_lock);
}

/* Under the ring's lock. */
static void push(struct xtal_endpoint *ep, const struct xtal_receipt *r)
{
	ep->ring[ep->tail++ & (ep->size - 1)] = *r;
	atomic_store_explicit(&ep->some, true, memory_order_relaxed);
	xtal_feed_pushed(&ep->feed, weight(r));
}

/* In the place that was reserved. */
static void report(struct xtal_endpoint *ep, const struct xtal_receipt *r)
{
	xtal_lock(&ep->ring_lock);
	ep->reserved--;
	push(ep, r);
	xtal_unlock(&ep->ring_lock);
}

int xtal_endpoint_flushed(struct xtal_endpoint *ep, uint64_t user, uint64_t most)
{
	struct xtal_receipt r = { .user = user, .opcode = XTAL_OP_SEND, .status = XTAL_FLUSHED };
	int err = 0;

	xtal_lock(&ep->lock);
	xtal_lock(&ep->ring_lock);
	if (!ep->dead) {
		if (ep->tail - ep->head >= most)
			err = -EAGAIN;
		else if (!has_room(ep))
			err = -ENOMEM;
		else
			push(ep, &r);
	}
	xtal_unlock(&ep->ring_lock);
	xtal_unlock(&ep->lock);
	if (err == -ENOMEM) {
		xtal_log(XTAL_LOG_ERROR, "xtal",
			 "endpoint 0x%x: no memory to report a flushed receive", ep->attr.id);
		xtal_context_raise(ep->ctx, ep->attr.cq->overrun, XTAL_ASYNC_CQ_ERROR,
				   ep->attr.cq->id);
	}
	return err;
}

static inline struct xtal_endpoint *endpoint_of(struct xtal_feed *f)
{
	return xtal_container_of(f, struct xtal_endpoint, feed);
}

static uint32_t take(struct xtal_feed *f, uint32_t count, struct xtal_record *out)
{
	struct xtal_endpoint *ep = endpoint_of(f);
	const uint8_t jetty = ep->attr.jetty ? XTAL_RECORD_JETTY : 0;
	uint32_t n = 0;

	if (!atomic_load_explicit(&ep->some, memory_order_relaxed))
		return 0;
	xtal_lock(&ep->ring_lock);
	for (; n < count && ep->head != ep->tail; n++) {
		const struct xtal_receipt *r = &ep->ring[ep->head++ & (ep->size - 1)];

		out[n] = (struct xtal_record){
			.user = r->user,
			.owner = ep->attr.owner,
			.local_id = ep->attr.record_id,
			.len = r->len,
			.status = r->status,
			.opcode = r->opcode,
			.flags = (uint8_t)(XTAL_RECORD_RECEIVED | jetty |
					   (r->solicited ? XTAL_RECORD_SOLICITED : 0)),
			.imm = r->imm,
			.remote_eid = r->eid,
			.remote_tid = r->tid,
			.remote_id = r->id,
			.remote_jetty = r->jetty,
		};
	}
	atomic_store_explicit(&ep->some, ep->head != ep->tail, memory_order_relaxed);
	xtal_unlock(&ep->ring_lock);
	return n;
}

static void help(struct xtal_feed *f)
{
	(void)f; /* the completion queue serves peers for all of its endpoints */
}

static enum xtal_weight watch(struct xtal_feed *f)
{
	struct xtal_endpoint *ep = endpoint_of(f);
	enum xtal_weight most = XTAL_WEIGHT_NONE;

	xtal_lock(&ep->ring_lock);
	for (uint64_t i = ep->head; i != ep->tail; i++) {
		enum xtal_weight w = weight(&ep->ring[i & (ep->size - 1)]);

		most = w > most ? w : most;
	}
	xtal_unlock(&ep->ring_lock);
	return most;
}

static bool leave(struct xtal_feed *f)
{
	struct xtal_endpoint *ep = endpoint_of(f);
	bool idle;

	xtal_lock(&ep->ring_lock);
	idle = ep->head == ep->tail;
	if (idle)
		f->listed = false;
	xtal_unlock(&ep->ring_lock);
	return idle;
}

static const struct xtal_feed_ops endpoint_feed = {
	.take = take,
	.help = help,
	.watch = watch,
	.leave = leave,
	.hand_over = help,
};

static bool is_polled(struct xtal_endpoint *ep, const struct xtal_shared_cq *cq)
{
	bool polled;

	if (ep->attr.cq != cq)
		return true; /* no order between completion queues */
	xtal_lock(&ep->ring_lock);
	polled = ep->head == ep->tail;
	xtal_unlock(&ep->ring_lock);
	return polled;
}

bool xtal_endpoint_polled(struct xtal_endpoint *ep, const struct xtal_shared_cq *cq)
{
	bool polled;

	xtal_lock(&ep->lock); /* the twin stays */
	polled = is_polled(ep, cq) && (!ep->twin || is_polled(ep->twin, cq));
	xtal_unlock(&ep->lock);
	return polled;
}

/* ---- Creating and destroying ---- */

/* ep is, or is not any more, the twin of another. */
static void set_twin(struct xtal_endpoint *ep, bool is)
{
	struct xtal_endpoint *other = ep->attr.twin_of;

	if (!other)
		return;
	xtal_lock(&other->lock);
	other->twin = is ? ep : NULL;
	atomic_store(&ep->held, atomic_load(&other->held));
	xtal_unlock(&other->lock);
}

int xtal_endpoint_create(struct xtal_context *ctx, const struct xtal_endpoint_attr *attr,
			 struct xtal_endpoint **out)
{
	struct xtal_endpoint *ep, *other;
	uint32_t count;
	bool taken;

	if (ctx->foreign)
		return -ECHILD;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -ENOMEM;
	ep->ctx = ctx;
	ep->attr = *attr;
	if (!ep->attr.record_id)
		ep->attr.record_id = attr->id;
	atomic_store(&ep->refs, 1);
	xtal_feed_attach(&ep->feed, attr->cq, &endpoint_feed);
	set_twin(ep, true); /* nobody finds it yet */
	xtal_lock(&ctx->endpoints_lock);
	other = lookup(ctx, address_of(ep), 0, &count);
	taken = other && (!other->attr.sharing || other->attr.sharing != attr->sharing);
	if (!taken)
		xtal_list_append(bucket(ctx, address_of(ep)), &ep->node);
	xtal_unlock(&ctx->endpoints_lock);
	if (taken) {
		xtal_explain("endpoint 0x%x: the context has another %s with this id", attr->id,
			     attr->jetty ? "jetty" : "receive queue");
		set_twin(ep, false);
		xtal_feed_detach(&ep->feed);
		free(ep);
		return -EEXIST;
	}
	atomic_fetch_add(&attr->rq->users, 1);
	atomic_fetch_add(&attr->cq->receivers, 1);
	atomic_fetch_add(&ctx->endpoint_count, 1);
	*out = ep;
	return 0;
}

void xtal_endpoint_destroy(struct xtal_endpoint **epp)
{
	struct xtal_endpoint *ep = *epp;

	*epp = NULL;
	if (ep->ctx->foreign)
		return;
	xtal_lock(&ep->ctx->endpoints_lock);
	xtal_list_remove(&ep->node);
	xtal_unlock(&ep->ctx->endpoints_lock);
	set_twin(ep, false);
	xtal_receive_queue_unflush(ep->attr.rq, ep);
	xtal_lock(&ep->lock);
	ep->dead = true; /* nothing lands and nothing is reported any more */
	xtal_unlock(&ep->lock);
	atomic_fetch_sub(&ep->attr.cq->receivers, 1);
	xtal_feed_detach(&ep->feed);
	atomic_fetch_sub(&ep->attr.rq->users, 1);
	atomic_fetch_sub(&ep->ctx->endpoint_count, 1);
	xtal_endpoint_put(ep);
}

void xtal_endpoint_hold(struct xtal_endpoint *ep, bool hold)
{
	if (ep->ctx->foreign)
		return;
	xtal_lock(&ep->lock);
	atomic_store(&ep->held, hold);
	if (ep->twin) {
		xtal_lock(&ep->twin->lock);
		atomic_store(&ep->twin->held, hold);
		xtal_unlock(&ep->twin->lock);
	}
	xtal_unlock(&ep->lock);
}

/* ---- Messages ---- */

/* The message has left the endpoint, whose lock was held. */
static void leave_endpoint(struct xtal_inbound *in)
{
	struct xtal_endpoint *ep = in->endpoint;

	in->endpoint = NULL;
	xtal_unlock(&ep->lock);
	xtal_endpoint_put(ep);
}

/* Under the endpoint's lock: the buffer is used, and reported with status. False: its receive queue was
 * reset. */
static bool finish(struct xtal_inbound *in, uint32_t status)
{
	struct xtal_endpoint *ep = in->endpoint;
	const struct xtal_envelope *m = &in->envelope;
	struct xtal_receipt r = {
		.user = in->user,
		.imm = m->imm,
		.eid = m->eid,
		.tid = m->tid,
		.id = m->id,
		.len = status ? 0 : (uint32_t)m->len,
		.status = (uint16_t)status,
		.opcode = m->opcode,
		.jetty = m->from_jetty,
		.solicited = m->solicited,
	};

	if (!xtal_receive_queue_used(ep->attr.rq, in)) {
		unreserve(ep);
		return false;
	}
	report(ep, &r);
	return true;
}

/* Under the endpoint's lock, which is left. Broken receive queues have records of their own: who is held
 * makes none. */
static void give_back(struct xtal_inbound *in)
{
	struct xtal_endpoint *flushed;
	const uint64_t user = in->user;

	xtal_receive_queue_return(in->endpoint->attr.rq, in, &flushed);
	unreserve(in->endpoint);
	leave_endpoint(in);
	if (!flushed)
		return;
	xtal_endpoint_flushed(flushed, user, UINT64_MAX);
	xtal_endpoint_put(flushed);
}

void xtal_inbound_abandon(struct xtal_inbound *in)
{
	if (!in->endpoint)
		return;
	xtal_lock(&in->endpoint->lock);
	give_back(in);
}

void xtal_inbound_free(struct xtal_inbound *in)
{
	if (in)
		xtal_inbound_abandon(in);
	free(in);
}

static uint64_t room(const struct xtal_inbound *in)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < in->count; i++) {
		if (bytes + in->sge[i].len < bytes)
			return UINT64_MAX;
		bytes += in->sge[i].len;
	}
	return bytes;
}

static bool may_enter(const struct xtal_endpoint *ep, const struct xtal_envelope *m)
{
	return !ep->dead &&
	       (!ep->attr.token_valid || (m->token_valid && m->token == ep->attr.token));
}

uint32_t xtal_inbound_begin(struct xtal_inbound *in, struct xtal_context *ctx,
			    const struct xtal_envelope *m)
{
	struct xtal_endpoint *ep;
	uint32_t status = XTAL_OK;
	bool reserved = false;

	xtal_inbound_abandon(in);
	in->pause_ns = 0;
	ep = find(ctx, m->to, m->hint);
	if (!ep)
		return XTAL_REMOTE_ACCESS;
	in->endpoint = ep;
	in->envelope = *m;
	xtal_lock(&ep->lock);
	if (!may_enter(ep, m))
		status = XTAL_REMOTE_ACCESS;
	else if (!ep->held)
		reserved = reserve(ep);
	else if (xtal_receive_queue_is_broken(ep->attr.rq))
		status = XTAL_REMOTE_OPERATION;
	if (!status)
		status = reserved ? xtal_receive_queue_take(ep->attr.rq, in) : XTAL_NOT_READY;
	if (status && reserved)
		unreserve(ep);
	if (status == XTAL_NOT_READY)
		in->pause_ns = ep->attr.rnr_us * 1000ull;
	if (!status && m->opcode != XTAL_OP_WRITE_IMM && m->len > room(in)) {
		finish(in, XTAL_LOCAL_LENGTH);
		status = XTAL_REMOTE_UNSUPPORTED;
	}
	if (status)
		leave_endpoint(in);
	else
		xtal_unlock(&ep->lock);
	return status;
}

static int put_piece(struct xtal_context *ctx, _Atomic uint64_t *word, uint64_t addr,
		     const uint8_t *src, uint64_t len)
{
	/* It need not be registered. In any case it may be gone since it was posted. */
	const struct xtal_segment *seg =
		xtal_registry_announce(&ctx->registry, ctx->number, addr, len, word);
	struct xtal_object *object = seg ? seg->backing.object : NULL;
	uint8_t *alias = object ? xtal_object_alias(object) : NULL;
	int err = 0;

	if (alias)
		memcpy(alias + seg->backing.offset + (addr - seg->addr), src, len);
	else
		err = xtal_os_guarded_put((void *)(uintptr_t)addr, src, len);
	/* Release: the memory was touched before. Partner: xtal_lanes_busy(). */
	atomic_store_explicit(word, 0, memory_order_release);
	return err;
}

uint32_t xtal_inbound_put(struct xtal_inbound *in, _Atomic uint64_t *word, uint64_t offset,
			  const uint8_t *src, uint64_t len)
{
	struct xtal_endpoint *ep = in->endpoint;
	int err = 0;

	if (!ep) /* refused before */
		return XTAL_REMOTE_OPERATION;
	xtal_lock(&ep->lock);
	if (ep->dead || ep->held || !xtal_receive_queue_land(ep->attr.rq, in)) {
		uint32_t status = ep->dead   ? XTAL_REMOTE_ACCESS
				  : ep->held ? XTAL_NOT_READY
					     : XTAL_REMOTE_OPERATION;

		give_back(in);
		return status;
	}
	for (uint32_t i = 0; i < in->count && len && !err; i++) {
		const struct xtal_sge *s = &in->sge[i];
		uint64_t n;

		if (offset >= s->len) {
			offset -= s->len;
			continue;
		}
		n = s->len - offset < len ? s->len - offset : len;
		err = put_piece(ep->ctx, word, s->addr + offset, src, n);
		offset = 0;
		src += n;
		len -= n;
	}
	xtal_receive_queue_landed(ep->attr.rq, in);
	if (err) {
		finish(in, XTAL_LOCAL_ACCESS);
		leave_endpoint(in);
		return XTAL_REMOTE_OPERATION;
	}
	xtal_unlock(&ep->lock);
	return XTAL_OK;
}

uint32_t xtal_inbound_end(struct xtal_inbound *in)
{
	struct xtal_endpoint *ep = in->endpoint;
	uint32_t status = XTAL_OK;

	if (!ep)
		return XTAL_REMOTE_OPERATION;
	xtal_lock(&ep->lock);
	if (ep->dead || ep->held) {
		status = ep->dead ? XTAL_REMOTE_ACCESS : XTAL_NOT_READY;
		give_back(in);
		return status;
	}
	if (!finish(in, XTAL_OK))
		status = XTAL_REMOTE_OPERATION;
	leave_endpoint(in);
	return status;
}
