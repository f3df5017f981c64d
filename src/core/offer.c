/* SPDX-License-Identifier: MIT */
/* Offering an object to map; see offer.h. */
#include "core/offer.h"

#include <errno.h>
#include <stdio.h>

#include "core/config.h"
#include "core/object.h"
#include "core/segment.h"
#include "os/sock.h"
#include "os/vm.h"
#include "xtal.h"

#define RIGHTS_TO_CHANGE (XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC)

/* An object, or a part of it, that a peer may map. */
struct offer {
	int fd;
	bool writable, sealed, whole; /* whole: all of it is mapped, whatever the grant's range */
	uint64_t object, offset, len; /* offset: of the grant's range */
};

/* False: there is none, the text says why. */
static bool find_offer(const struct xtal_segment *seg, const struct xtal_adopted_part *part,
		       struct offer *out, struct xtal_control *c)
{
	const struct xtal_object *o = seg->backing.object;

	snprintf(c->text, sizeof(c->text), "%s",
		 o || !seg->adopt_reason[0] ? seg->backing.reason
		 : part && !part->adopted   ? "private memory that does not fill its page"
					    : seg->adopt_reason);
	if (part && part->adopted) {
		*out = (struct offer){ .fd = part->fd,
				       .writable = true,
				       .sealed = true,
				       .whole = true,
				       .object = part->object,
				       .offset = part->offset,
				       .len = part->object_len };
		return true;
	}
	if (!o)
		return false;
	*out = (struct offer){ .fd = o->fd,
			       .writable = o->writable,
			       .sealed = o->sealed,
			       .whole = o->ours,
			       .object = o->id,
			       .offset = seg->backing.offset + (c->addr - seg->addr),
			       .len = o->len };
	return true;
}

/*
 * May the owner itself write at the address? What it has mapped there now says so, as long as that
 * is the object; else what it had when it registered. *end: so far the answer holds.
 */
static bool owner_writes(const struct xtal_segment *seg, bool adopted, uint64_t at, uint64_t *end)
{
	const struct xtal_object *o = seg->backing.object;
	struct xtal_os_backing b;
	bool known;

	if (xtal_os_backing_find((void *)(uintptr_t)at, &b)) {
		known = false;
		*end = xtal_os_backing_next((void *)(uintptr_t)at, &b) ? UINT64_MAX : b.start;
	} else {
		known = b.shared && (adopted || o->ours ||
				     (b.inode == o->inode && b.dev_major == o->dev_major &&
				      b.dev_minor == o->dev_minor));
		*end = b.end;
	}
	return known ? b.writable : !seg->backing.read_only;
}

/* Makes the grant's range as small as what is alike around the range that is asked for. True: the
 * owner itself may write there, everywhere. */
static bool narrow(const struct xtal_segment *seg, bool adopted, const struct xtal_control *asked,
		   struct xtal_control *c)
{
	uint64_t lo = c->addr, hi = c->addr + c->len, from = lo, to = hi, at, end;
	bool writable = true;

	for (at = lo; at < hi; at = end) {
		bool also = owner_writes(seg, adopted, at, &end);

		if (at > lo && also != writable) {
			if (at > asked->addr) {
				to = at;
				break;
			}
			from = at;
		}
		writable = also;
	}
	if (asked->addr + asked->len > to) /* it crosses from one kind into the other */
		return false;
	c->addr = from;
	c->len = to - from;
	return writable;
}

static void say_where(const struct offer *o, struct xtal_control *c)
{
	uint64_t page = xtal_os_page_size(), end;

	c->object = o->object;
	c->offset = o->offset;
	c->map_len = o->len;
	if (!o->whole) {
		c->map_offset = o->offset / page * page;
		end = (o->offset + c->len + page - 1) / page * page;
		c->map_len = end - c->map_offset;
	}
	c->flags |= o->sealed ? XTAL_CONTROL_SEALED : 0;
}

int xtal_offer_mapping(const struct xtal_segment *seg, const struct xtal_adopted_part *part,
		       const struct xtal_control *asked, bool same_uid, struct xtal_control *c,
		       bool *close_it)
{
	uint64_t lo = c->addr;
	struct offer o;
	int fd;

	*close_it = false;
	if (!find_offer(seg, part, &o, c))
		return -1;
	if (!(xtal_config()->paths & 1u << XTAL_PATH_MAP) || !same_uid) {
		snprintf(c->text, sizeof(c->text), "%s",
			 same_uid ? "not in the owner's XTAL_PATHS" : "we are of different users");
		return -1;
	}
	if (c->rights & RIGHTS_TO_CHANGE && !narrow(seg, part && part->adopted, asked, c)) {
		if (asked->rights & RIGHTS_TO_CHANGE)
			return -EACCES;
		c->rights &= ~RIGHTS_TO_CHANGE;
		snprintf(c->text, sizeof(c->text), "%s, read-only", seg->backing.reason);
	}
	o.offset += c->addr - lo;
	if (c->rights & RIGHTS_TO_CHANGE) {
		if (!o.writable) {
			snprintf(c->text, sizeof(c->text),
				 "the owner's object can only be opened for reading");
			return -1;
		}
		say_where(&o, c);
		c->flags |= XTAL_CONTROL_WRITABLE;
		return o.fd;
	}
	if (xtal_os_reopen(o.fd, 0 /* O_RDONLY */, &fd)) {
		snprintf(c->text, sizeof(c->text), "no read-only descriptor could be made");
		return -1;
	}
	say_where(&o, c);
	*close_it = true;
	return fd;
}
