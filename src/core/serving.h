/* SPDX-License-Identifier: MIT */
/* Peers that are served by a program's thread while that polls, in place of the agent. */
#ifndef XTAL_CORE_SERVING_H
#define XTAL_CORE_SERVING_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_context;
struct xtal_serving;

/* How long after a program's own poll the agent leaves the peers to it. */
#define XTAL_POLLER_NS 1000000u

/* By a thread that polls for receives: serves the peers itself; the agent leaves them to it for
 * a while. */
void xtal_server_poll(struct xtal_context *ctx);
/* By a thread that has sent something: answers to what the program has received were held for that. No
 * lock is held but a queue's. */
void xtal_server_answer(struct xtal_context *ctx, uint64_t now);
/* It polls no more: frames wake the agent. */
void xtal_server_hand_over(struct xtal_context *ctx);

/* The rest under the serving lock. */

/* Has a program polled since the last look, or shortly before it? */
bool xtal_server_is_polled(struct xtal_context *ctx, uint64_t now);
/* By whoever serves: what has come need not be answered before the program has seen it. Whoever
 * asks then holds the answer back, until the next poll, xtal_server_answer() or the agent's next look. */
bool xtal_serving_holds(struct xtal_serving *serving);
/* On the agent: what is held waits no longer; a program that is not back by now has gone. */
void xtal_serving_look(struct xtal_serving *serving, uint64_t now);

#endif
