/* SPDX-License-Identifier: MIT */
/* How operations of a requester end without an answer, and how they begin again on a new
 * carrier. See requester.h. */
#include <errno.h>

#include "wire/requester_impl.h"

/* The slot's operation was given up and is never executed. If it is a SEND, nothing of those that
 * follow it has been executed, nor shall be: nothing of them is under way either. */
static void orphan_followers(struct xtal_requester *r, uint64_t index)
{
	const struct xtal_request *first = &xtal_requester_slot_at(r, index)->request;

	for (uint64_t i = index + 1; first->type == XTAL_MSG_SEND && i != r->tail; i++) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);
		const struct xtal_request *q = &s->request;

		if (s->state != XTAL_SLOT_OPEN || q->type != XTAL_MSG_SEND ||
		    q->notify.token != first->notify.token ||
		    ((q->flags ^ first->flags) & XTAL_MSG_FROM_JETTY) != 0)
			continue;
		if (q->notify.addr == 0)
			return;
		s->orphan = true;
	}
}

/* What of the slot's operation the target has not executed, or has to execute again. False:
 * nothing. */
static bool rewind_slot(struct xtal_requester *r, struct xtal_requester_slot *s, uint64_t executed)
{
	uint64_t done = xtal_seq_after(s->first_seq, executed) ? 0 : executed - s->first_seq + 1;

	if (s->request.type == XTAL_MSG_READ) {
		s->frames = s->base_frames = 0;
		s->framed = s->received;
	} else if (done < s->frames) {
		/* never less than the last time, so that base_frames <= done */
		s->base += (done - s->base_frames) * s->piece;
		s->frames = s->base_frames = done;
		s->framed = s->base;
	} else {
		return false;
	}
	s->all_framed = false;
	if (s->frames == 0 && s->state == XTAL_SLOT_GIVEN_UP)
		xtal_requester_free(r, s);
	return true;
}

int xtal_requester_rewind(struct xtal_requester *r, uint64_t executed, uint64_t now)
{
	bool lost = false;

	if (xtal_seq_after(executed, r->seq - 1) || xtal_seq_after(r->acked, executed))
		return -EPROTO;
	xtal_requester_progress(r, executed, now);
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (s->state == XTAL_SLOT_FREE || s->frames == 0)
			continue;
		if (s->state == XTAL_SLOT_GIVEN_UP &&
		    xtal_seq_after(s->first_seq + s->frames - 1, executed))
			orphan_followers(r, i);
		lost |= rewind_slot(r, s, executed);
	}
	/* The carrier went before it got anything done, maybe because it carries no more bytes. */
	if (lost && !r->moved && r->piece >= 2ull * XTAL_REQUESTER_LEAST)
		r->piece /= 2;
	r->moved = false;
	r->reads = 0;
	r->reading = 0;
	r->seq = executed + 1;
	r->next = r->head;
	return 0;
}

bool xtal_requester_is_busy(const struct xtal_requester *r)
{
	for (uint64_t i = r->head; i != r->tail; i++)
		if (xtal_requester_slot_at(r, i)->state == XTAL_SLOT_OPEN)
			return true;
	return false;
}

uint64_t xtal_requester_next_deadline(const struct xtal_requester *r)
{
	uint64_t least = XTAL_NO_DEADLINE;

	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);
		uint64_t deadline = xtal_requester_deadline(r, s);

		if (s->state == XTAL_SLOT_OPEN && deadline < least)
			least = deadline;
	}
	return least;
}

bool xtal_requester_next_expired(const struct xtal_requester *r, uint64_t now,
				 struct xtal_requester_expired *out)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);
		uint64_t deadline = xtal_requester_deadline(r, s);

		if (s->state != XTAL_SLOT_OPEN || deadline == XTAL_NO_DEADLINE || now < deadline)
			continue;
		*out = (struct xtal_requester_expired){
			.cookie = s->request.cookie,
			.first_seq = s->first_seq,
			.frames = s->frames,
		};
		return true;
	}
	return false;
}

bool xtal_requester_next_orphan(const struct xtal_requester *r, uint64_t *cookie)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		const struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (s->state == XTAL_SLOT_OPEN && s->orphan) {
			*cookie = s->request.cookie;
			return true;
		}
	}
	return false;
}

int xtal_requester_abandon(struct xtal_requester *r, uint64_t cookie, bool silent)
{
	for (uint64_t i = r->head; i != r->tail; i++) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, i);

		if (s->state != XTAL_SLOT_OPEN || s->request.cookie != cookie)
			continue;
		if (!s->all_framed)
			orphan_followers(r, i);
		if (silent || s->frames == 0)
			xtal_requester_free(r, s);
		else
			xtal_requester_leave(r, s, XTAL_SLOT_GIVEN_UP);
		return 0;
	}
	return -ENOENT;
}

bool xtal_requester_fail_next(struct xtal_requester *r, enum xtal_status status,
			      struct xtal_requester_effect *out)
{
	r->closed = true;
	while (r->head != r->tail) {
		struct xtal_requester_slot *s = xtal_requester_slot_at(r, r->head++);
		bool open = s->state == XTAL_SLOT_OPEN;

		s->state = XTAL_SLOT_FREE;
		if (!open)
			continue;
		*out = (struct xtal_requester_effect){
			.cookie = s->request.cookie,
			.status = status,
			.finished = true,
		};
		return true;
	}
	return false;
}
