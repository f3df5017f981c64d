/* SPDX-License-Identifier: MIT */
/* Sentences for operations that end with an error; see tell.h. */
#include "core/tell.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/text.h"
#include "core/bulk.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/link.h"
#include "core/log.h"
#include "core/queue_impl.h"
#include "os/proc.h"
#include "os/vm.h"

#define PAUSE_NS 1000000000u

/* When a sentence of a kind was last logged. Two kinds that meet in one place cost lines more, never
 * lines less. */
static struct kind {
	_Atomic uint32_t hash;
	_Atomic uint32_t held; /* not logged since */
	_Atomic uint64_t at;
} kinds[64];

static uint32_t hash_of(uint32_t status, const char *why)
{
	uint32_t h = 2166136261u ^ status;

	for (; *why; why++)
		if (*why < '0' || *why > '9')
			h = (h ^ (uint8_t)*why) * 16777619u;
	return h ? h : 1;
}

/* May it be logged now? *held: how many like it were not. */
static bool is_due(uint32_t hash, uint32_t *held)
{
	struct kind *k = &kinds[hash % XTAL_ARRAY_SIZE(kinds)];
	uint64_t now = xtal_os_now(), at = atomic_load(&k->at);

	*held = 0;
	if (atomic_exchange(&k->hash, hash) != hash) {
		atomic_store(&k->at, now);
		atomic_store(&k->held, 0);
		return true;
	}
	/* Of threads that come at once, one goes on. */
	if (now - at < PAUSE_NS || !atomic_compare_exchange_strong(&k->at, &at, now)) {
		atomic_fetch_add(&k->held, 1);
		return false;
	}
	*held = atomic_exchange(&k->held, 0);
	return true;
}

static void tell(const struct xtal_queue *q, const struct xtal_remote *r, uint64_t len,
		 uint32_t status, const char *why, const char *detail)
{
	char text[480], more[48] = "";
	uint32_t held;

	snprintf(text, sizeof(text),
		 "queue %u: %llu bytes at 0x%llx of tid 0x%x end with status %u: %s%s", q->id,
		 (unsigned long long)len, (unsigned long long)r->addr, r->tid, status, why, detail);
	if (!xtal_config()->check) /* what that says of the same mistake is told to more purpose */
		xtal_set_last_error(text);
	if (!is_due(hash_of(status, why), &held))
		return;
	if (held)
		snprintf(more, sizeof(more), " (and %u more of the kind before)", held);
	xtal_log(XTAL_LOG_WARNING, "xtal", "%s%s", text, more);
}

void xtal_tell(const struct xtal_queue *q, const struct xtal_remote *r, uint64_t len,
	       uint32_t status, const char *why)
{
	tell(q, r, len, status, why, "");
}

/* Why op's local range could not be used. */
static const char *local_reason(const struct xtal_queue *q, const struct xtal_op *op, char *detail,
				size_t size)
{
	struct xtal_found found;

	if (op->flags & XTAL_OP_OWN_PAYLOAD)
		return "a local piece is not registered any more, or was unmapped";
	if (!op->local)
		return "the front-end refuses the local range";
	if (!xtal_registry_near(&q->ctx->registry, op->local, op->len, &found)) {
		snprintf(detail, size, " (local 0x%llx)", (unsigned long long)op->local);
		return "no segment of this context covers the local range";
	}
	snprintf(detail, size, " (local 0x%llx, segment 0x%llx to 0x%llx)",
		 (unsigned long long)op->local, (unsigned long long)found.lo,
		 (unsigned long long)found.hi);
	if (op->local < found.lo || op->len > found.hi - op->local)
		return "the local range leaves its segment";
	return "the program has unmapped or protected the local range";
}

void xtal_tell_op(const struct xtal_queue *q, const struct xtal_op *op, uint32_t status)
{
	char detail[128] = "";
	const char *why = xtal_status_sentence((enum xtal_status)status);

	switch (status) {
	case XTAL_LOCAL_ACCESS:
		why = local_reason(q, op, detail, sizeof(detail));
		break;
	case XTAL_REMOTE_UNSUPPORTED:
		if (!xtal_op_is_atomic(op->opcode) || !(op->remote.addr & (op->len - 1)))
			break;
		snprintf(detail, sizeof(detail), "%llu", (unsigned long long)op->len);
		why = "the address of an atomic must be a multiple of its length, ";
		break;
	case XTAL_REMOTE_ACCESS:
		why = "the owner refuses: token, range or right is wrong, or its memory there was "
		      "withdrawn, unmapped or protected";
		break;
	default:
		break;
	}
	tell(q, &op->remote, op->len, status, why, detail);
}

/* Its time is over, but the link goes on. */
static void tell_overdue(const struct xtal_queue *q, const struct xtal_pending *p)
{
	struct xtal_link *link = p->link;
	char eid[XTAL_EID_TEXT], why[320];
	size_t used = 0;

	xtal_text_add(why, sizeof(why), &used, "nothing moved for %llu ms; ",
		      (unsigned long long)(q->timeout_ns / 1000000));
	xtal_lock(&link->lock);
	if (link->attempt[0])
		xtal_text_add(why, sizeof(why), &used, "%s", link->attempt);
	else
		xtal_text_add(why, sizeof(why), &used, "TCP port %u of %s is connected",
			      link->tid & 0xffff, xtal_text_eid(link->eid, eid, sizeof(eid)));
	xtal_unlock(&link->lock);
	xtal_tell(q, &p->op.remote, p->op.len, XTAL_UNREACHABLE, why);
}

void xtal_tell_pending(const struct xtal_queue *q, const struct xtal_pending *p, uint32_t status)
{
	const struct xtal_link *link = p->bulk ? xtal_bulk_link(p->bulk) : p->link;

	/* What becomes of messages is told elsewhere, where it is an error. */
	if (p->told || p->opcode >= XTAL_OP_SEND)
		return;
	if (status == XTAL_UNREACHABLE && link && atomic_load(&link->state) == XTAL_LINK_DEAD)
		xtal_tell(q, &p->op.remote, p->op.len, status, link->text);
	else if (status == XTAL_UNREACHABLE && p->link && p->link->tcp)
		tell_overdue(q, p);
	else
		xtal_tell_op(q, &p->op, status);
}
