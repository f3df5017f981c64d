/* SPDX-License-Identifier: MIT */
/*
 * The owner process: `xtal owner FD`, started by the other commands. It owns memory that the
 * initiator reaches, and between orders it sleeps: the engine serves its memory without it.
 */
#include "cli/owner.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/inbox.h"
#include "cli/net.h"
#include "cli/pattern.h"
#include "cli/port.h"
#include "cli/side.h"
#include "cli/trial.h"

#define MAX_REGIONS    8
#define WATCH_LIMIT_NS 20000000000u

struct owner {
	int fd;
	bool open, joined;
	struct cli_port port;
	struct cli_region region[MAX_REGIONS];
	uint32_t regions;
	struct cli_side side;
	struct cli_plan plan; /* what side was made for */
};

/* The bytes that an order is about, or NULL. */
static char *range_of(struct owner *owner, const struct cli_talk *msg, uint64_t len)
{
	struct cli_region *r;

	if (msg->region >= owner->regions) {
		cli_fail("the owner has no region %u", msg->region);
		return NULL;
	}
	r = &owner->region[msg->region];
	if (len > r->len || msg->offset > r->len - len || (len == 8 && msg->offset % 8)) {
		cli_fail("region %u has no %llu bytes at %llu", msg->region,
			 (unsigned long long)len, (unsigned long long)msg->offset);
		return NULL;
	}
	return r->base + msg->offset;
}

static int do_alloc(struct owner *owner, struct cli_talk *msg)
{
	struct cli_region *r = &owner->region[owner->regions];

	if (owner->regions == MAX_REGIONS || msg->value >= CLI_MEMORY_COUNT)
		return cli_fail("the owner takes no more than %d regions", MAX_REGIONS);
	if (!owner->open && cli_port_open(&owner->port, owner->fd))
		return -1;
	owner->open = true;
	if (cli_region_make(&owner->port, (enum cli_memory)msg->value, msg->len, r))
		return -1;
	msg->region = owner->regions++;
	msg->desc = r->desc;
	return 0;
}

static int do_pattern(struct owner *owner, struct cli_talk *msg)
{
	char *p = range_of(owner, msg, msg->len);
	size_t first = 0;

	if (!p)
		return -1;
	if (msg->type == TALK_FILL) {
		cli_pattern_fill(p, msg->len, msg->seed, 0);
		return 0;
	}
	msg->value = cli_pattern_check(p, msg->len, msg->seed, 0, &first);
	msg->offset = first;
	return 0;
}

static int do_word(struct owner *owner, struct cli_talk *msg)
{
	_Atomic uint64_t *word = (void *)range_of(owner, msg, 8);

	if (!word)
		return -1;
	if (msg->type == TALK_POKE)
		atomic_store(word, msg->value);
	else
		msg->value = atomic_load(word);
	return 0;
}

/* The program watches its own memory; it makes no Xtal call meanwhile. */
static int do_watch(struct owner *owner, struct cli_talk *msg)
{
	_Atomic uint64_t *word = (void *)range_of(owner, msg, 8);
	uint64_t value = msg->value, end = cli_now() + WATCH_LIMIT_NS;

	if (!word || cli_talk_send(owner->fd, msg, TALK_READY))
		return -1;
	for (uint32_t spins = 1; atomic_load_explicit(word, memory_order_acquire) != value;
	     spins++) {
		if (spins % 1024)
			continue;
		sched_yield();
		if (cli_now() > end || cli_talk_pending(owner->fd))
			return cli_fail("the owner did not see %llu arrive",
					(unsigned long long)value);
	}
	msg->value = cli_now();
	return 0;
}

static int do_add(struct owner *owner, struct cli_talk *msg)
{
	_Atomic uint64_t *word = (void *)range_of(owner, msg, 8);

	if (!word || cli_talk_send(owner->fd, msg, TALK_READY))
		return -1;
	for (uint64_t i = 0; i < msg->value; i++)
		atomic_fetch_add(word, 1);
	return 0;
}

/* The roles turned round: this process reaches for somebody else's memory. */
static int do_try(struct owner *owner, struct cli_talk *msg)
{
	struct cli_region scratch;
	struct cli_trial trial;

	if (!owner->open && cli_port_open(&owner->port, owner->fd))
		return -1;
	owner->open = true;
	if (cli_region_make(&owner->port, CLI_MEMORY_MALLOC, 2 * CLI_TRIAL_BYTES, &scratch))
		return -1;
	cli_try(&owner->port, &scratch, &msg->desc, &trial);
	cli_region_drop(&owner->port, &scratch);
	memcpy(msg->text, trial.problem, sizeof(msg->text));
	/* The engine's verdict on the path that we were made for says more. */
	for (uint32_t i = 0; !trial.works && i < trial.path.candidates; i++)
		if (trial.path.candidate[i].kind == msg->value)
			snprintf(msg->text, sizeof(msg->text), "%s",
				 trial.path.candidate[i].reason);
	msg->value = trial.works;
	msg->result.ns = trial.write_ns;
	memcpy(msg->result.path, trial.path.name, sizeof(msg->result.path));
	memcpy(msg->result.why, trial.path.reason, sizeof(msg->result.why));
	return 0;
}

static int do_join(struct owner *owner, struct cli_talk *msg)
{
	if (owner->joined)
		cli_side_close(&owner->side);
	owner->joined = false;
	if (cli_plan_check(&msg->plan) || msg->value >= CLI_MEMORY_COUNT ||
	    cli_side_open(&owner->side, &msg->plan, (enum cli_memory)msg->value, owner->fd))
		return -1;
	owner->joined = true;
	owner->plan = msg->plan;
	if (cli_side_connect(&owner->side, &msg->desc))
		return -1;
	msg->desc = owner->side.end->desc;
	return 0;
}

static int do_pair(struct owner *owner, struct cli_talk *msg)
{
	uint32_t first = (uint32_t)msg->offset;

	if (!owner->joined || msg->offset >= owner->side.queues)
		return cli_fail("there is no queue %llu to pair", (unsigned long long)msg->offset);
	if (cli_side_pair(&owner->side, first, msg->text))
		return -1;
	cli_side_ids(&owner->side, first, msg->text);
	return 0;
}

/* One run: get ready, take part, and when the initiator says it is over, check and report. */
static int do_run(struct owner *owner, struct cli_talk *msg)
{
	struct cli_plan plan = msg->plan;
	struct cli_result mine = { 0 }, theirs;
	struct cli_progress silent = { .next = UINT64_MAX };
	uint64_t seed = msg->seed;
	bool ping_pong = cli_ping_pong(&plan);
	bool sends = ping_pong || plan.both, receives = cli_opcode_receives(plan.op);

	if (!owner->joined || cli_plan_check(&plan) || plan.queues != owner->plan.queues ||
	    plan.api != owner->plan.api ||
	    cli_inbox_depth(&plan) != cli_inbox_depth(&owner->plan) ||
	    plan.cycle != owner->plan.cycle || plan.depth != owner->plan.depth)
		return cli_fail("the run does not fit what was prepared for it");
	if (cli_side_prepare(&owner->side, &plan, ~seed))
		return -1;
	if (sends && cli_side_path(&owner->side, &mine))
		return -1;
	if (cli_talk_send(owner->fd, msg, TALK_READY))
		return -1;
	if (ping_pong && cli_side_pong(&owner->side, &plan, &mine))
		return -1;
	if (!ping_pong && sends && cli_side_stream(&owner->side, &plan, &silent, &mine))
		return -1;
	if (!ping_pong && receives && cli_inbox_serve(&owner->side, &plan))
		return -1;
	if (cli_talk_recv(owner->fd, msg, TALK_STOP, 24 * 3600 * 1000))
		return -1;
	theirs = msg->result;
	msg->result = mine;
	if (cli_inbox_finish(&owner->side, &plan, theirs.ops))
		return -1;
	if (!plan.verify)
		return 0;
	if (cli_side_check_target(&owner->side, &plan, seed, &theirs))
		return -1;
	return plan.both ? cli_side_check_fetched(&owner->side, &plan, seed, &mine) : 0;
}

static int obey(struct owner *owner, struct cli_talk *msg)
{
	switch ((enum cli_talk_type)msg->type) {
	case TALK_ALLOC:
		return do_alloc(owner, msg);
	case TALK_FILL:
	case TALK_CHECK:
		return do_pattern(owner, msg);
	case TALK_PEEK:
	case TALK_POKE:
		return do_word(owner, msg);
	case TALK_WATCH:
		return do_watch(owner, msg);
	case TALK_ADD:
		return do_add(owner, msg);
	case TALK_TRY:
		return do_try(owner, msg);
	case TALK_JOIN:
		return do_join(owner, msg);
	case TALK_PAIR:
		return do_pair(owner, msg);
	case TALK_RUN:
		return do_run(owner, msg);
	case TALK_HELLO:
	case TALK_STOP:
	case TALK_READY:
	case TALK_DONE:
		break;
	}
	return cli_fail("the owner does not understand order %u", msg->type);
}

int cli_owner_serve(int fd)
{
	struct owner *owner = calloc(1, sizeof(*owner));
	struct cli_talk msg = { .value = (uint64_t)getpid() };
	int rc = -1;

	if (!owner)
		return -1;
	owner->fd = fd;
	if (cli_talk_send(fd, &msg, TALK_HELLO) == 0) {
		/* Until the initiator closes its end; an order that failed ends it too. */
		while ((rc = cli_talk_next(fd, &msg, 24 * 3600 * 1000)) > 0) {
			msg.error = obey(owner, &msg);
			if (msg.error)
				snprintf(msg.text, sizeof(msg.text), "%s", cli_reason());
			if (cli_talk_send(fd, &msg, TALK_DONE) || msg.error) {
				rc = -1;
				break;
			}
		}
	}
	if (owner->joined)
		cli_side_close(&owner->side);
	for (uint32_t i = 0; i < owner->regions; i++)
		cli_region_drop(&owner->port, &owner->region[i]);
	if (owner->open)
		cli_port_close(&owner->port);
	close(fd);
	free(owner);
	return rc;
}

int cli_owner(int argc, char **argv)
{
	uint64_t fd;

	if ((argc != 2 && argc != 3) || !cli_parse_size(argv[1], 1 << 20, &fd) ||
	    (argc == 3 && strlen(argv[2]) < 4 * CLI_TALK_NONCE))
		return cli_usage(NULL, "'owner' is started by other commands, not by hand");
	if (argc == 3 && cli_net_resume((int)fd, argv[2]))
		return cli_die(CLI_FAILED, "%s", cli_reason());
	return cli_owner_serve((int)fd) ? CLI_FAILED : CLI_OK;
}
