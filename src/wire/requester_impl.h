/* SPDX-License-Identifier: MIT */
/* What the files of the requester share. Nobody else includes this. */
#ifndef XTAL_WIRE_REQUESTER_IMPL_H
#define XTAL_WIRE_REQUESTER_IMPL_H

#include "wire/requester.h"

static inline struct xtal_requester_slot *xtal_requester_slot_at(const struct xtal_requester *r,
								 uint64_t index)
{
	return &r->config.slots[index & (r->config.window - 1)];
}

static inline uint64_t xtal_add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t xtal_requester_deadline(const struct xtal_requester *r,
					       const struct xtal_requester_slot *s)
{
	uint64_t moved;

	if (s->request.limit == 0 || r->progress_at == 0)
		return s->request.deadline;
	moved = xtal_add_saturated(r->progress_at, s->request.limit);
	return moved > s->request.deadline ? moved : s->request.deadline;
}

/* A frame of it is to be sent. */
static inline bool xtal_requester_wants_frame(const struct xtal_requester_slot *s)
{
	return s->state == XTAL_SLOT_OPEN && !s->all_framed && !s->orphan;
}

/* The slot is open no more. */
static inline void xtal_requester_leave(struct xtal_requester *r, struct xtal_requester_slot *s,
					enum xtal_slot_state state)
{
	if (s->state == XTAL_SLOT_OPEN && s->request.type == XTAL_MSG_READ && s->frames != 0) {
		r->reads--;
		r->reading -= s->framed - s->received;
	}
	s->state = state;
}

static inline void xtal_requester_free(struct xtal_requester *r, struct xtal_requester_slot *s)
{
	xtal_requester_leave(r, s, XTAL_SLOT_FREE);
	while (r->head != r->tail && xtal_requester_slot_at(r, r->head)->state == XTAL_SLOT_FREE)
		r->head++;
}

#endif
