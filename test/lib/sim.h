/* SPDX-License-Identifier: MIT */
/*
 * A simulated world for sessions: nodes with clocks and memory of their own, byte streams that
 * are delayed, stalled, cut and replayed, processes that stop, restart and die. The machines of
 * src/wire are the real ones. Everything follows from one seed. sim_world.c schedules and makes
 * faults, sim_net.c moves bytes, sim_initiator.c and sim_target.c are the two carriers,
 * sim_queue.c sends messages, sim_receive.c receives them, sim_model.c judges.
 */
#ifndef TEST_LIB_SIM_H
#define TEST_LIB_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"
#include "wire/initiator.h"
#include "wire/short.h"
#include "wire/target.h"

#define SIM_NODES    4
#define SIM_LINKS    64
#define SIM_SESSIONS 96
#define SIM_CONNS    768
#define SIM_OPS      160
#define SIM_WINDOW   8
#define SIM_LEN      1536 /* most bytes of one operation */
#define SIM_MEMORY   4096
#define SIM_COUNTERS 8   /* words at the start of a node's memory that only atomics touch */
#define SIM_DATA     128 /* where memory for WRITE and READ begins; notify words lie before it */
#define SIM_STREAM   8192
#define SIM_QUEUES   128 /* senders of messages */
#define SIM_DEPTH    16  /* messages that one may have open */
#define SIM_POINTS   2   /* a node's receive queues */
#define SIM_US       UINT64_C(1000)
#define SIM_MS       UINT64_C(1000000)

enum sim_side {
	SIM_INITIATOR,
	SIM_TARGET
};

enum sim_event_kind {
	SIM_POST,    /* a: node, b: how many */
	SIM_DELIVER, /* a: connection, b: direction (side that receives) */
	SIM_READ,    /* a: connection, b: side */
	SIM_NOTICE,  /* a: connection, b: side that learns that it is closed */
	SIM_TIMER,   /* a: link, b: generation */
	SIM_EXPIRE,  /* a: session, b: generation */
	SIM_CONNECT, /* a: link */
	SIM_AGAIN,   /* a: queue */
	SIM_RECEIVE, /* a: node, b: endpoint */
	SIM_FAULT,
};

struct sim_event {
	uint64_t at, order;
	enum sim_event_kind kind;
	uint32_t a, b;
};

struct sim_point { /* an endpoint's receive queue */
	uint32_t buffers, era;
	bool gone, coming; /* coming: an event brings buffers */
};

struct sim_node {
	uint32_t life; /* restarts so far */
	uint64_t incarnation;
	uint32_t bits;  /* incarnation bits of all its lives */
	uint64_t clock; /* what it showed when the world began */
	int64_t drift;  /* parts per million */
	uint64_t stopped_until, cut_off_until;
	bool dead;
	uint8_t memory[SIM_MEMORY], model[SIM_MEMORY];
	struct sim_point point[SIM_POINTS];
};

struct sim_op {
	uint32_t link, order; /* order: of submission on its link */
	struct xtal_request request;
	uint64_t posted_at; /* world's time; SEND: when it was last submitted */
	uint64_t landed;    /* WRITE, SEND: bytes in place at the target so far */
	uint32_t executed;  /* how often its last piece was */
	uint64_t old[2];    /* what the atomic found */
	uint64_t refuse_at; /* the target refuses the piece that holds this byte */
	enum xtal_status status;
	bool ended, refused;
	uint32_t queue, number, tries;           /* SEND: of its queue; number: its place there */
	uint64_t pause;                          /* ... NOT_READY: until it may come again */
	bool under_way;                          /* ... submitted, and not answered */
	uint8_t local[SIM_LEN], expect[SIM_LEN]; /* READ: what came, what was there. SEND: local:
						  * what the receiver has got */
};

/* A queue that sends messages to one endpoint, in order. */
struct sim_queue {
	uint32_t link, key;
	uint32_t list[SIM_DEPTH];   /* operations, by number */
	uint32_t head, start, tail; /* numbers: oldest open, first that is not begun, next */
	uint32_t received;          /* number + 1 of the last that was received */
	uint32_t retries;           /* so often may one come again */
	uint64_t last;              /* id of the last that was begun, while some are under way */
	uint64_t again_at;
	bool failed; /* no more begin; until it is empty */
};

struct sim_link {
	uint32_t from, to, life, to_life; /* nodes, and the lives it was made in */
	struct xtal_requester requester;
	struct xtal_requester_slot slots[SIM_WINDOW];
	struct xtal_initiator initiator;
	struct xtal_short_models sent, received; /* in step: nothing is lost between these two */
	uint32_t conn;                           /* + 1; 0: none */
	uint32_t ops;                            /* submitted */
	uint32_t begun, changed, answered; /* order + 1 of the last that was begun to be executed,
					    * of the last such WRITE or ATOMIC, and of the last
					    * that ended well */
	uint32_t timer;
	uint64_t executed_at;           /* the target last did something for it */
	bool connecting, over, leaving; /* leaving: closed when its queues are empty */
};

struct sim_session {
	uint32_t node, life, conn;
	struct xtal_session_id id;
	struct xtal_responder responder;
	struct xtal_responder_result cache[SIM_WINDOW];
	struct xtal_target target;
	uint32_t timer;
	bool used, ghost; /* ghost: made by a greeting that was replayed */
	uint32_t inbound, inbound_key, inbound_era; /* operation + 1 of the message that is coming
						     * in, and whose buffer it has */
};

struct sim_stream { /* to one side */
	uint8_t bytes[SIM_STREAM];
	uint64_t sent, delivered, taken;
	uint64_t cut_at, stalled_until;
	uint8_t out[XTAL_MSG_HEADER + SIM_LEN]; /* a frame on its way into the stream */
	uint32_t out_len, out_at;
	bool moving, reading; /* an event is scheduled */
	bool fin;
};

struct sim_conn {
	uint32_t link, session;     /* + 1 */
	uint32_t node, life;        /* of the target */
	uint64_t delay, room, rate; /* rate: most bytes per delivery */
	bool open[2], broken, rogue;
	uint8_t hello[XTAL_MSG_HEADER];
	uint32_t hello_len;
	bool refused;
	struct sim_stream to[2];
};

struct sim {
	uint64_t seed, now, order, hash;
	struct rng rng;
	bool gentle;   /* only faults that every operation must survive */
	bool messages; /* half of the operations are */
	bool trace;
	uint64_t limit;
	uint32_t nodes, links, sessions, conns, ops, queues, events, faults, cuts;
	uint32_t piece;
	bool failed;
	char why[200];
	uint64_t done_ok, done_error, replays, resumes, sent, again,
		brief; /* what the run has seen */
	struct sim_event heap[8192];
	struct sim_node node[SIM_NODES];
	struct sim_link link[SIM_LINKS];
	struct sim_session session[SIM_SESSIONS];
	struct sim_op op[SIM_OPS];
	struct sim_queue queue[SIM_QUEUES];
	struct sim_conn conn[SIM_CONNS];
};

/* Runs the world of a seed. False: an oracle was violated, w->why tells. */
bool sim_run(struct sim *w, uint64_t seed, bool trace);

/* What the files of the simulation share. */
void sim_fail(struct sim *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_note(struct sim *w, const char *what, uint64_t a, uint64_t b, uint64_t c);
void sim_schedule(struct sim *w, uint64_t at, enum sim_event_kind kind, uint32_t a, uint32_t b);
bool sim_chance(struct sim *w, uint32_t in_thousand);
uint64_t sim_clock(const struct sim *w, uint32_t node);
uint64_t sim_when(const struct sim *w, uint32_t node, uint64_t clock);

uint32_t sim_conn_open(struct sim *w, uint32_t link);
void sim_conn_close(struct sim *w, uint32_t conn, enum sim_side side);
bool sim_conn_room(const struct sim_conn *c, enum sim_side from);
void sim_conn_push(struct sim *w, uint32_t conn, enum sim_side from);
void sim_conn_deliver(struct sim *w, uint32_t conn, enum sim_side to);
uint64_t sim_conn_readable(const struct sim_conn *c, enum sim_side side);
/* Copies at most max bytes out of the stream; a random part of what is there. */
uint32_t sim_conn_peek(struct sim *w, uint32_t conn, enum sim_side side, uint8_t *out,
		       uint32_t max);
void sim_conn_taken(struct sim *w, uint32_t conn, enum sim_side side, uint32_t n);

uint32_t sim_link_new(struct sim *w, uint32_t from, uint32_t to);
void sim_link_run(struct sim *w, uint32_t link);
void sim_link_closed(struct sim *w, uint32_t link);
void sim_link_end(struct sim *w, uint32_t link, enum xtal_status status, const char *why);

/* The first of the operation's queue; false: the queue has no room. */
bool sim_queue_post(struct sim *w, uint32_t link, uint32_t op);
/* The message's frames were answered, or nobody waits for them any more. */
void sim_queue_answer(struct sim *w, uint64_t cookie, enum xtal_status status, uint64_t pause);
void sim_queue_again(struct sim *w, uint32_t queue);
void sim_queues_run(struct sim *w, uint32_t link);
bool sim_queues_empty(const struct sim *w, uint32_t link);
/* The link has ended: its messages end with status, or, if they may, go to a new one. */
void sim_queues_leave(struct sim *w, uint32_t link, enum xtal_status status, bool stay);

/* A message begins: takes a buffer. */
enum xtal_status sim_receive_begin(struct sim *w, struct sim_session *s,
				   const struct xtal_responder_effect *e, uint64_t pause[2]);
enum xtal_status sim_receive_land(struct sim *w, struct sim_session *s,
				  const struct xtal_responder_effect *e, uint64_t offset,
				  const uint8_t *bytes, uint32_t n);
enum xtal_status sim_receive_end(struct sim *w, struct sim_session *s,
				 const struct xtal_responder_effect *e);
void sim_receive_abandon(struct sim *w, struct sim_session *s);
void sim_receive_more(struct sim *w, uint32_t node, uint32_t point);
void sim_receive_start(struct sim *w, uint32_t node);
void sim_receive_withdraw(struct sim *w, uint32_t node);

void sim_target_run(struct sim *w, uint32_t conn);
void sim_target_closed(struct sim *w, uint32_t conn);
void sim_session_expire(struct sim *w, uint32_t session);

uint8_t sim_pattern(const struct sim *w, uint32_t op, uint64_t offset);
bool sim_model_post(struct sim *w, uint32_t link);
/* The operation that an effect belongs to, as it was posted. */
struct sim_op *sim_model_find(struct sim *w, struct sim_session *s,
			      const struct xtal_responder_effect *e);
/* What is to hold when the requester has done with it. */
void sim_model_answered(struct sim *w, struct sim_op *op, enum xtal_status status);
enum xtal_status sim_model_begin(struct sim *w, struct sim_session *s,
				 const struct xtal_responder_effect *e);
void sim_model_land(struct sim *w, struct sim_session *s, const struct xtal_responder_effect *e,
		    uint64_t offset, const uint8_t *bytes, uint32_t n);
void sim_model_execute(struct sim *w, struct sim_session *s, const struct xtal_responder_effect *e,
		       uint64_t old[2]);
void sim_model_read(struct sim *w, struct sim_session *s, uint64_t addr, uint8_t *out, uint64_t n);
void sim_model_place(struct sim *w, uint64_t cookie, uint64_t offset, const uint8_t *bytes,
		     uint32_t n);
void sim_model_complete(struct sim *w, uint64_t cookie, enum xtal_status status,
			const uint64_t old[2]);
void sim_model_finish(struct sim *w);

#endif
