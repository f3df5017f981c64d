/* SPDX-License-Identifier: MIT */
/* Making and checking the control messages of one host. */
#include "wire/control.h"

#include <errno.h>
#include <string.h>

#include "base/status.h"

void xtal_control_init(struct xtal_control *c, enum xtal_control_type type)
{
	memset(c, 0, sizeof(*c));
	c->magic = XTAL_CONTROL_MAGIC;
	c->version = XTAL_CONTROL_VERSION;
	c->type = type;
}

int xtal_control_check(struct xtal_control *c, size_t len, unsigned nfds)
{
	if (len != sizeof(*c) || c->magic != XTAL_CONTROL_MAGIC ||
	    c->version != XTAL_CONTROL_VERSION)
		return -EPROTO;
	if (!c->type || c->type >= XTAL_CONTROL_TYPES || c->fds != nfds)
		return -EPROTO;
	if (memchr(c->text, 0, sizeof(c->text)) == NULL)
		return -EPROTO;
	/* A refusal with status 0 would pass for success. */
	if ((c->type == XTAL_CONTROL_REFUSE ||
	     (c->type == XTAL_CONTROL_DENY && !(c->flags & XTAL_CONTROL_RETRY))) &&
	    (c->status == XTAL_OK || c->status >= XTAL_STATUS_COUNT))
		return -EPROTO;
	return 0;
}
