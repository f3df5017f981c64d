/* SPDX-License-Identifier: MIT */
/*
 * Conversations with another host, over TCP. Nothing that is measured goes this way. Both
 * sides must show that they have the key of XTAL_KEY_FILE, and every message carries a code
 * that only they can make (talk.h); descriptors can be read on the way, but are of no use
 * without the key. With XTAL_SECURITY=none, and on loopback addresses, none of this is done.
 *
 * WHERE is HOST or HOST:PORT, an IPv6 address with a port in brackets.
 */
#ifndef XTAL_CLI_NET_H
#define XTAL_CLI_NET_H

#include <stdbool.h>
#include <stdint.h>

#define CLI_NET_PORT "18515" /* unless WHERE says */

/* A name with a dot or a colon is WHERE; others are names on this host. */
bool cli_net_is_address(const char *name);

/* These return a descriptor, or -1 with cli_reason. */
int cli_net_listen(const char *where);
int cli_net_connect(const char *where);

/* The first bytes in both directions: who speaks, and with a key or not. 0, or -1 with
 * cli_reason; the conversation is protected from then on. */
int cli_net_greet(int fd, bool client);
/* The key of a conversation that another process has greeted; state: cli_talk_state(). */
int cli_net_resume(int fd, const char *state);

/* The 16 bytes of our own address in a conversation. False: it is none with another host. */
bool cli_net_own_eid(int fd, uint8_t eid[16]);

#endif
