/* SPDX-License-Identifier: MIT */
/*
 * `xtal demo --api urma`: the smallest program of URMA, told line by line. A server registers memory
 * and does nothing more; a client, another process, writes a sentence there and reads it back.
 * Descriptors travel over a TCP connection of the program's own, the sentence does not.
 */
#include "cli/demo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "urma_api.h"
#include "xtal.h"

#define BYTES      8000u
#define SENTENCE   "hello urma"
#define PATIENCE_S 20

/* What one side tells the other: plain values. */
struct told {
	urma_jetty_id_t jetty;
	urma_seg_t seg;
	urma_token_t token;
};

struct side {
	const char *name;
	int sock;
	char *memory;
	urma_device_t **list;
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
	urma_target_jetty_t *their_jetty;
	urma_target_seg_t *their_seg;
	urma_token_t token;
};

static unsigned line; /* shared by both sides through the conversation */

static void say(const struct side *s, const char *call, const char *text)
{
	printf("%2u  %s  %-24s %s\n", ++line, s->name, call, text);
	fflush(stdout);
}

/* The conversation: a value, and how many lines were told so far. */
static int tell(struct side *s, const void *value, size_t len)
{
	if (send(s->sock, &line, sizeof(line), MSG_NOSIGNAL) != sizeof(line) ||
	    send(s->sock, value, len, MSG_NOSIGNAL) != (ssize_t)len)
		return cli_fail("the other process is gone");
	return 0;
}

static int hear(struct side *s, void *value, size_t len)
{
	if (recv(s->sock, &line, sizeof(line), MSG_WAITALL) != sizeof(line) ||
	    recv(s->sock, value, len, MSG_WAITALL) != (ssize_t)len)
		return cli_fail("the other process is gone, or silent for %d s", PATIENCE_S);
	return 0;
}

static int refused(const char *call)
{
	return cli_fail("%s: %s", call, xtal_last_error());
}

static int open_device(struct side *s)
{
	int count = 0;

	if (urma_init(NULL))
		return refused("urma_init");
	s->list = urma_get_device_list(&count);
	s->ctx = s->list && count ? urma_create_context(s->list[0], 0) : NULL;
	return s->ctx ? 0 : refused("urma_create_context");
}

static int open_queues(struct side *s)
{
	urma_jfc_cfg_t jfc = { .depth = 16 };
	urma_jfr_cfg_t jfr = { .depth = 16,
			       .trans_mode = URMA_TM_RM,
			       .max_sge = 1,
			       .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			       .token_value = s->token };
	urma_jetty_cfg_t cfg = { .flag.bs.share_jfr = 1,
				 .jfs_cfg = { .depth = 16,
					      .trans_mode = URMA_TM_RM,
					      .max_sge = 1,
					      .max_rsge = 1,
					      .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
					      .rnr_retry = URMA_TYPICAL_RNR_RETRY } };

	s->jfc = urma_create_jfc(s->ctx, &jfc);
	if (!s->jfc)
		return refused("urma_create_jfc");
	jfr.jfc = cfg.jfs_cfg.jfc = s->jfc;
	s->jfr = urma_create_jfr(s->ctx, &jfr);
	if (!s->jfr)
		return refused("urma_create_jfr");
	cfg.shared.jfr = s->jfr;
	s->jetty = urma_create_jetty(s->ctx, &cfg);
	return s->jetty ? 0 : refused("urma_create_jetty");
}

static int open_memory(struct side *s)
{
	urma_seg_cfg_t cfg = { .len = BYTES,
			       .token_value = s->token,
			       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE } };

	s->memory = calloc(1, BYTES);
	cfg.va = (uintptr_t)s->memory;
	s->seg = s->memory ? urma_register_seg(s->ctx, &cfg) : NULL;
	return s->seg ? 0 : refused("urma_register_seg");
}

static int open_side(struct side *s)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };

	setsockopt(s->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	s->token.token = xtal_token();
	if (open_device(s) || open_queues(s))
		return -1;
	say(s, "urma_create_jetty", "a context, a completion queue, a receive queue, a jetty");
	if (open_memory(s))
		return -1;
	say(s, "urma_register_seg", "8000 bytes of its plain memory, with a secret token");
	return 0;
}

static int close_side(struct side *s)
{
	if ((s->their_seg && urma_unimport_seg(s->their_seg)) ||
	    (s->their_jetty && urma_unimport_jetty(s->their_jetty)) ||
	    urma_delete_jetty(s->jetty) || urma_delete_jfr(s->jfr) || urma_delete_jfc(s->jfc) ||
	    urma_unregister_seg(s->seg) || urma_delete_context(s->ctx))
		return refused("closing");
	urma_free_device_list(s->list);
	urma_uninit();
	free(s->memory);
	return 0;
}

/* The whole server: what it does while the client works is nothing. */
static int serve(struct side *s)
{
	struct told mine;
	char done;

	if (open_side(s))
		return -1;
	mine = (struct told){ s->jetty->jetty_id, s->seg->seg, s->token };
	say(s, "(TCP)", "tells its jetty, its segment and the token; then it sleeps");
	if (tell(s, &mine, sizeof(mine)) || hear(s, &done, 1))
		return -1;
	if (strcmp(s->memory, SENTENCE) != 0)
		return cli_fail("the server's memory does not say '%s'", SENTENCE);
	say(s, "(its memory)", "wakes up, and finds '" SENTENCE "'");
	if (tell(s, &done, 1) || hear(s, &done, 1))
		return -1;
	return close_side(s);
}

static int import(struct side *s, const struct told *told)
{
	urma_rjetty_t rjetty = { .jetty_id = told->jetty,
				 .trans_mode = URMA_TM_RM,
				 .type = URMA_JETTY,
				 .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				 .tp_type = URMA_CTP };
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE };
	urma_token_t token = told->token;
	urma_seg_t seg = told->seg;

	s->their_jetty = urma_import_jetty(s->ctx, &rjetty, &token);
	if (!s->their_jetty)
		return refused("urma_import_jetty");
	s->their_seg = urma_import_seg(s->ctx, &seg, &token, 0, flag);
	return s->their_seg ? 0 : refused("urma_import_seg");
}

/* Posts one request between local memory and the begin of the server's; waits for its record. */
static int move(struct side *s, urma_opcode_t opcode, char *local, uint64_t id)
{
	urma_sge_t here = { .addr = (uintptr_t)local, .len = sizeof(SENTENCE), .tseg = s->seg };
	urma_sge_t there = { .addr = s->their_seg->seg.ubva.va,
			     .len = sizeof(SENTENCE),
			     .tseg = s->their_seg };
	urma_sg_t mine = { &here, 1 }, theirs = { &there, 1 };
	urma_jfs_wr_t wr = { .opcode = opcode, .tjetty = s->their_jetty, .user_ctx = id }, *bad;
	uint64_t until;
	urma_cr_t cr;
	int got;

	wr.rw.src = opcode == URMA_OPC_WRITE ? mine : theirs;
	wr.rw.dst = opcode == URMA_OPC_WRITE ? theirs : mine;
	wr.flag.bs.complete_enable = 1;
	if (urma_post_jetty_send_wr(s->jetty, &wr, &bad))
		return refused("urma_post_jetty_send_wr");
	until = cli_now() + PATIENCE_S * UINT64_C(1000000000);
	do
		got = urma_poll_jfc(s->jfc, 1, &cr);
	while (!got && cli_now() < until);
	if (got != 1)
		return cli_fail("request %llu has no record", (unsigned long long)id);
	if (cr.status != URMA_CR_SUCCESS || cr.user_ctx != id)
		return cli_fail("request %llu ended with %s", (unsigned long long)cr.user_ctx,
				xtal_status_name((int)cr.status));
	return 0;
}

static int use(struct side *s)
{
	struct told told;
	char done = 1;

	if (hear(s, &told, sizeof(told)) || open_side(s) || import(s, &told))
		return -1;
	say(s, "urma_import_seg", "the server's jetty and segment can be named in requests");
	snprintf(s->memory, BYTES, "%s", SENTENCE);
	if (move(s, URMA_OPC_WRITE, s->memory, 1))
		return -1;
	say(s, "urma_post_jetty_send_wr", "WRITE of '" SENTENCE "' into the server's memory");
	say(s, "urma_poll_jfc", "request 1 ended with SUCCESS: now it is there, not before");
	if (tell(s, &done, 1) || hear(s, &done, 1))
		return -1;
	if (move(s, URMA_OPC_READ, s->memory + BYTES / 2, 2))
		return -1;
	if (strcmp(s->memory + BYTES / 2, SENTENCE) != 0)
		return cli_fail("what was read is not '%s'", SENTENCE);
	say(s, "urma_post_jetty_send_wr", "READ from there, into other memory of its own");
	say(s, "urma_poll_jfc", "request 2 ended with SUCCESS: it says '" SENTENCE "'");
	if (tell(s, &done, 1))
		return -1;
	return close_side(s);
}

/* A connection between this process and a child: 0 in the child, its pid here. */
static pid_t split(int *sock)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t child;

	if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return cli_fail("no TCP port of the loopback address: %m");
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)); /* accept too */
	child = fork();
	if (child == 0) {
		*sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(*sock, (struct sockaddr *)&at, len))
			_exit(1);
	} else if (child > 0) {
		*sock = accept(listener, NULL, NULL);
	}
	close(listener);
	return child;
}

int cli_demo_urma(void)
{
	struct side s = { .sock = -1 };
	int rc, status = 0;
	pid_t child;

	printf("Xtal %s. The smallest program of URMA: two processes, S and C, and liburma.\n\n",
	       xtal_version());
	fflush(stdout);
	child = split(&s.sock); /* before this process uses the library */
	if (child < 0)
		return cli_die(CLI_FAILED, "%s", cli_reason());
	s.name = child ? "S" : "C";
	rc = child ? serve(&s) : use(&s);
	if (rc)
		cli_die(CLI_FAILED, "%s: %s", child ? "the server" : "the client", cli_reason());
	close(s.sock);
	if (!child)
		_exit(rc ? 1 : 0);
	waitpid(child, &status, 0);
	if (rc || status)
		return CLI_FAILED;
	printf("\nThe server made no call while its memory was used. The same in C: man urma.\n");
	return CLI_OK;
}
