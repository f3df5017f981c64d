/* SPDX-License-Identifier: MIT */
/* What an owner offers a peer to map: the object behind a segment, or a part of it. */
#ifndef XTAL_CORE_OFFER_H
#define XTAL_CORE_OFFER_H

#include <stdbool.h>

#include "core/adopt.h"
#include "core/registry.h"
#include "wire/control.h"

/*
 * Completes grant, the answer to asked, in which addr, len and rights are those of the segment, or
 * of its part (NULL: it has none): what can be mapped, or in its text why nothing can. Where the
 * owner itself may only read, so may the peer: the range and the rights become fewer. An fd to
 * send (*close_it: and to close then) or -1. Errors: -EACCES: asked wants to write there. By the
 * agent, while the segment is announced.
 */
int xtal_offer_mapping(const struct xtal_segment *seg, const struct xtal_adopted_part *part,
		       const struct xtal_control *asked, bool same_uid, struct xtal_control *grant,
		       bool *close_it);

#endif
