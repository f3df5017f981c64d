/* SPDX-License-Identifier: MIT */
/* The owner's side of the conversation. */
#ifndef XTAL_CLI_OWNER_H
#define XTAL_CLI_OWNER_H

/* Obeys the orders that come over fd until its other end is closed; then closes fd.
 * 0, or -1 when an order failed (its sender was told why). */
int cli_owner_serve(int fd);

#endif
