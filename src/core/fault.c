/* SPDX-License-Identifier: MIT */
/* The rules of XTAL_FAULT, applied; see fault.h. */
#include "core/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/fault_rules.h"
#include "core/link.h"
#include "core/log.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/thread.h"
#include "xtal.h"

#define MAX_LOST 64u

struct xtal_fault {
	uint32_t number;  /* of the queue in the process, from 1 */
	uint64_t posted;  /* operations so far */
	uint64_t flush;   /* ns: when FLUSH_DONE may come; 0: it is not due */
	uint64_t receive; /* the number of the receive that is withheld; 0: none */
	uint64_t until;   /* ns: how long */
};

/* A context that counts as dead. */
struct lost {
	struct xtal_eid eid;
	uint16_t port;
};

static struct {
	struct xtal_lock lock; /* a leaf */
	bool read;
	int err;
	struct xtal_fault_rules rules; /* never changes once read */
	_Atomic uint32_t lost_count;
	struct lost lost[MAX_LOST];
	_Atomic uint32_t queues, receive_queues;
} faults;

static void die(const char *why)
{
	xtal_log(XTAL_LOG_WARNING, "xtal", "XTAL_FAULT: %s: this process is killed", why);
	xtal_os_kill_self();
}

static void die_later(void *arg)
{
	const struct xtal_fault_rule *r = arg;

	xtal_os_sleep_ns((uint64_t)r->ms * 1000000);
	die("its time is over");
}

int xtal_fault_begin(void)
{
	const char *text = xtal_config()->fault;
	char why[400] = "";
	int err;

	xtal_lock(&faults.lock);
	if (!faults.read || faults.err) { /* again: each refusal has its words */
		faults.err = xtal_fault_parse(text, &faults.rules, why, sizeof(why));
		for (uint32_t i = 0; !faults.err && i < faults.rules.count; i++) {
			struct xtal_fault_rule *r = &faults.rules.rule[i];

			if (r->kind == XTAL_FAULT_KILL && r->ms)
				faults.err = xtal_os_thread_start("xtal-fault", die_later, r);
		}
		faults.read = true;
	}
	err = faults.err;
	xtal_unlock(&faults.lock);
	if (err == -EINVAL)
		xtal_explain("XTAL_FAULT=%s: %s", text, why);
	return err;
}

void xtal_fault_fork_child(void)
{
	atomic_store(&faults.lock.held, 0);
	faults.read = false;
	atomic_store(&faults.lost_count, 0);
	atomic_store(&faults.queues, 0);
	atomic_store(&faults.receive_queues, 0);
}

static bool is_of_receives(enum xtal_fault_kind kind)
{
	return kind == XTAL_FAULT_WITHHOLD;
}

/* A peer that is lost is lost for all. */
static bool concerns(const struct xtal_fault_rule *r, uint32_t queue)
{
	return !r->queue || r->queue == queue || r->kind == XTAL_FAULT_LOSE;
}

static int make(_Atomic uint32_t *counter, bool of_receives, struct xtal_fault **out)
{
	bool any = false;
	uint32_t number;

	*out = NULL;
	if (!faults.rules.count)
		return 0;
	number = atomic_fetch_add(counter, 1) + 1;
	for (uint32_t i = 0; i < faults.rules.count; i++)
		any |= is_of_receives(faults.rules.rule[i].kind) == of_receives &&
		       concerns(&faults.rules.rule[i], number);
	if (!any)
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->number = number;
	return 0;
}

int xtal_fault_of_queue(struct xtal_fault **out)
{
	return make(&faults.queues, false, out);
}

int xtal_fault_of_receive_queue(struct xtal_fault **out)
{
	return make(&faults.receive_queues, true, out);
}

/* Whom the operation is for; NULL: nobody. */
static const struct xtal_remote *peer_of(const struct xtal_op *op)
{
	if (op->opcode == XTAL_OP_NOP)
		return NULL;
	return op->opcode >= XTAL_OP_SEND ? &op->notify : &op->remote;
}

bool xtal_fault_lost(struct xtal_eid eid, uint32_t tid)
{
	bool found = false;

	if (!atomic_load_explicit(&faults.lost_count, memory_order_relaxed))
		return false;
	xtal_lock(&faults.lock);
	for (uint32_t i = 0; i < faults.lost_count && !found; i++)
		found = faults.lost[i].port == (uint16_t)tid &&
			xtal_eid_equal(faults.lost[i].eid, eid);
	xtal_unlock(&faults.lock);
	return found;
}

static bool is_lost(const struct xtal_remote *peer)
{
	return xtal_fault_lost(peer->eid, peer->tid);
}

void xtal_fault_cut(struct xtal_link *link)
{
	xtal_lock(&link->lock);
	xtal_link_fail_later(link, XTAL_UNREACHABLE, "XTAL_FAULT: its peer is lost");
	xtal_unlock(&link->lock);
}

/* Under a queue's lock: what is under way to the peer ends, and nothing follows. */
static void lose(struct xtal_context *ctx, const struct xtal_remote *peer)
{
	xtal_lock(&faults.lock);
	if (faults.lost_count < MAX_LOST)
		faults.lost[faults.lost_count++] =
			(struct lost){ .eid = peer->eid, .port = (uint16_t)peer->tid };
	xtal_unlock(&faults.lock);
	xtal_lock(&ctx->links_lock);
	for (struct xtal_list *n = ctx->links.next; n != &ctx->links; n = n->next) {
		struct xtal_link *link = xtal_container_of(n, struct xtal_link, node);

		if ((uint16_t)link->tid == (uint16_t)peer->tid &&
		    xtal_eid_equal(link->eid, peer->eid))
			xtal_fault_cut(link);
	}
	xtal_unlock(&ctx->links_lock);
}

static void tell(const struct xtal_fault *f, const struct xtal_fault_rule *r, const char *what)
{
	xtal_log(f->posted == r->first ? XTAL_LOG_WARNING : XTAL_LOG_DEBUG, "xtal",
		 "XTAL_FAULT: operation %llu of queue %u %s", (unsigned long long)f->posted,
		 f->number, what);
}

uint32_t xtal_fault_posted(struct xtal_queue *q, const struct xtal_op *op)
{
	const struct xtal_remote *peer = peer_of(op);
	struct xtal_fault *f = q->fault;
	uint32_t status = XTAL_OK;

	f->posted++;
	for (uint32_t i = 0; i < faults.rules.count; i++) {
		const struct xtal_fault_rule *r = &faults.rules.rule[i];

		if ((r->queue && r->queue != f->number) || f->posted < r->first ||
		    f->posted > r->last)
			continue;
		switch (r->kind) {
		case XTAL_FAULT_FAIL:
			tell(f, r, xtal_status_name((int)r->status));
			status = status ? status : r->status;
			break;
		case XTAL_FAULT_LOSE:
			if (!peer || is_lost(peer))
				break;
			tell(f, r, "loses its peer");
			lose(q->ctx, peer);
			break;
		case XTAL_FAULT_KILL:
			tell(f, r, "is the last one");
			die("its operation has come");
			break;
		case XTAL_FAULT_WITHHOLD:
		case XTAL_FAULT_FLUSH:
			break;
		}
	}
	if (!status && peer && is_lost(peer))
		status = XTAL_UNREACHABLE;
	return status;
}

bool xtal_fault_holds_flush(struct xtal_fault *f)
{
	uint64_t now = xtal_os_now(), ms = 0;

	for (uint32_t i = 0; i < faults.rules.count && !f->flush; i++) {
		const struct xtal_fault_rule *r = &faults.rules.rule[i];

		if (r->kind == XTAL_FAULT_FLUSH && concerns(r, f->number))
			ms = r->ms;
	}
	if (!f->flush && ms)
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "XTAL_FAULT: FLUSH_DONE of queue %u comes %llu ms later", f->number,
			 (unsigned long long)ms);
	if (!f->flush)
		f->flush = now + ms * 1000000;
	return now < f->flush;
}

void xtal_fault_flush_over(struct xtal_fault *f)
{
	f->flush = 0;
}

bool xtal_fault_withholds(struct xtal_fault *f, uint64_t number)
{
	uint64_t now;

	for (uint32_t i = 0; i < faults.rules.count && f->receive != number; i++) {
		const struct xtal_fault_rule *r = &faults.rules.rule[i];

		if (r->kind != XTAL_FAULT_WITHHOLD || !concerns(r, f->number) ||
		    number < r->first || number > r->last)
			continue;
		f->receive = number;
		f->until = r->ms ? xtal_os_now() + (uint64_t)r->ms * 1000000 : UINT64_MAX;
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "XTAL_FAULT: receive %llu of receive queue %u is withheld",
			 (unsigned long long)number, f->number);
	}
	if (f->receive != number)
		return false;
	now = xtal_os_now();
	return now < f->until;
}
