/* SPDX-License-Identifier: MIT */
/* Both ends of a session over a byte stream in memory, for tests that cut and replace it. */
#ifndef TEST_LIB_DUET_H
#define TEST_LIB_DUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/initiator.h"
#include "wire/target.h"

#define DUET_WINDOW 4
#define DUET_PIECE  100
#define DUET_MEMORY 1024
#define DUET_WIRE   65536
#define DUET_MS     UINT64_C(1000000)
#define DUET_MARGIN (50 * DUET_MS)
#define DUET_LIMIT  (1000 * DUET_MS)

extern const struct xtal_session_id duet_id;

struct duet_pipe {
	uint8_t bytes[DUET_WIRE];
	size_t from, to;
};

struct duet {
	struct xtal_requester requester;
	struct xtal_requester_slot slots[DUET_WINDOW];
	struct xtal_initiator i;
	struct xtal_responder responder;
	struct xtal_responder_result cache[DUET_WINDOW];
	struct xtal_target t;
	bool has_target;
	struct duet_pipe there, back;
	uint64_t now; /* the initiator's clock; the target's shows 7 s more */
	uint8_t local[DUET_MEMORY], remote[DUET_MEMORY];
	unsigned executed;       /* effects */
	enum xtal_status refuse; /* what the target's executor answers */
	unsigned ended;
	uint64_t cookie[32]; /* of the operations that ended, in order */
	enum xtal_status status[32];
	uint64_t old[32];
	struct xtal_initiator_event last; /* of the initiator's, UP, HANG_UP or ENDED */
	struct xtal_target_event told;    /* of the target's, HANG_UP or ENDED */
};

void duet_start(struct duet *w);
void duet_submit(struct duet *w, enum xtal_msg_type type, uint64_t cookie, uint64_t addr,
		 uint64_t len);
/* The same, with a time limit of its own. */
void duet_submit_for(struct duet *w, enum xtal_msg_type type, uint64_t cookie, uint64_t addr,
		     uint64_t len, uint64_t limit);
void duet_put(struct duet_pipe *p, const void *data, size_t len);
/* The initiator writes what it has; at most `most` frames. Returns how many. */
unsigned duet_initiator_sends(struct duet *w, unsigned most);
unsigned duet_target_sends(struct duet *w);
/* The target takes at most `most` bytes, in steps of `step`. */
void duet_target_takes(struct duet *w, size_t most, size_t step);
void duet_initiator_takes(struct duet *w, size_t most, size_t step);
/* A new connection, up to UP. */
void duet_connect(struct duet *w);
/* The connection goes, and 100 ms pass. */
void duet_cut(struct duet *w);
/* Everything flows until nothing moves any more. */
void duet_settle(struct duet *w);
uint64_t duet_target_now(const struct duet *w);
struct xtal_initiator_config duet_initiator_config(struct duet *w);
/* One header from the target, as it is. */
void duet_target_says(struct duet *w, const struct xtal_handshake *h, const struct xtal_msg *m);
/* Begins a connection up to where the WELCOME is due. */
void duet_greet(struct duet *w);
/* The session has ended so at the initiator, for good. */
void duet_ends(struct duet *w, enum xtal_status status, const char *part);
/* The HELLO at the front of the stream reaches the target's listener. */
void duet_accept(struct duet *w);

#endif
