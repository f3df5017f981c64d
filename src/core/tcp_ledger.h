/* SPDX-License-Identifier: MIT */
/*
 * What was refused to whom over TCP. Somebody who guesses tokens is slowed down, and the log
 * stays readable: one line a second per address. One ledger per process; on the agent only.
 */
#ifndef XTAL_CORE_TCP_LEDGER_H
#define XTAL_CORE_TCP_LEDGER_H

#include <stdint.h>

#include "os/tcp.h"

#define XTAL_LEDGER_BURST 1000u /* refusals that an address may have at once */
#define XTAL_LEDGER_RATE  1000u /* ... and from then on, a second */

/*
 * Something was refused to this peer by the context that holds port; the words say what. Returns
 * the time until which nothing more of it is to be read; 0: it may go on.
 */
uint64_t xtal_ledger_refused(const struct xtal_os_tcp_address *peer, uint16_t port, uint64_t now,
			     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
