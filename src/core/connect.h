/* SPDX-License-Identifier: MIT */
/* How a link of one host comes up and learns of grants: the initiator's half of the control
 * protocol, and the first half of the ring carrier. */
#ifndef XTAL_CORE_CONNECT_H
#define XTAL_CORE_CONNECT_H

#include "core/link.h"

/* On the agent: opens the connection and says hello. */
void xtal_connect_run(struct xtal_link *link);
/* Sends the questions that were not sent yet. On the agent. Errors end the link. */
void xtal_connect_ask(struct xtal_link *link);
/* Closes descriptors and mappings; nobody uses the link any more. */
void xtal_connect_close(struct xtal_link *link);
/* Begins to watch the connection. On the agent. Errors: -errno. */
int xtal_connect_watch(struct xtal_link *link);
/* Takes a peer's object out of our address space. */
void xtal_connect_unmap(struct xtal_window *w);
/* Stops watching; on the agent. */
void xtal_connect_stop(struct xtal_link *link);

#endif
