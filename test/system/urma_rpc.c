/* SPDX-License-Identifier: MIT */
/*
 * A message queue for remote calls, as programs write it: one event loop of edges over the listening
 * socket, the event channel and the asynchronous events; one receive queue and one completion queue
 * for all clients, who are told apart by the sender's id in the record; requests that come before
 * their receive; replies of which one in some is signalled; empty messages as credit; a WRITE with an
 * immediate value, inline, to a remote piece that is longer. Clients are children of a server that
 * forks, come and go, and some die.
 */
/* ctest: timeout=120 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/pattern.h"
#include "lib/proc.h"
#include "urma_api.h"

#define CLIENTS  6u
#define DEPTH    128u
#define RECEIVES 256u
#define BYTES    512u
#define TOKEN    0x29cu
#define SIGNAL   16u /* one in so many is signalled */
#define GOODBYE  0xffffffffu

#define MUST(what)                                                        \
	do {                                                              \
		if (!(what))                                              \
			proc_die("%s:%d: %s", __func__, __LINE__, #what); \
	} while (0)

static _Atomic uint32_t *port;  /* the server's */
static _Atomic uint32_t *ready; /* clients that were served once */

struct told {
	urma_jetty_id_t jetty;
	urma_seg_t seg;
};

/* Both sides have the same. */
struct side {
	urma_context_t *ctx;
	urma_jfce_t *jfce;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
	uint8_t (*buffer)
		[BYTES]; /* RECEIVES to receive in, DEPTH to send from, one for the credit */
	uint32_t unacked, sent, ended;
};

static void open_side(struct side *s)
{
	urma_seg_cfg_t seg = { .len = (RECEIVES + DEPTH + 1) * BYTES,
			       .token_value = { TOKEN },
			       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE } };
	urma_jfc_cfg_t jfc = { .depth = 65536 };
	urma_jfr_cfg_t jfr = { .depth = RECEIVES,
			       .trans_mode = URMA_TM_RM,
			       .max_sge = 1,
			       .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
			       .token_value = { TOKEN },
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	urma_jetty_cfg_t cfg = { .flag.bs.share_jfr = 1,
				 .jfs_cfg = { .depth = DEPTH,
					      .trans_mode = URMA_TM_RM,
					      .max_sge = 1,
					      .max_rsge = 1,
					      .max_inline_data = 64,
					      .rnr_retry = URMA_TYPICAL_RNR_RETRY,
					      .err_timeout = URMA_TYPICAL_ERR_TIMEOUT } };
	urma_jfc_attr_t moderate = { .mask = JFC_MODERATE_COUNT, .moderate_count = 1 };
	urma_device_t **list;
	int count;

	memset(s, 0, sizeof(*s));
	MUST(urma_init(NULL) == URMA_SUCCESS);
	list = urma_get_device_list(&count);
	MUST(list);
	s->ctx = urma_create_context(list[0], 0);
	urma_free_device_list(list);
	MUST(s->ctx);
	s->jfce = urma_create_jfce(s->ctx);
	MUST(s->jfce);
	jfc.jfce = s->jfce;
	s->jfc = urma_create_jfc(s->ctx, &jfc);
	MUST(s->jfc && urma_modify_jfc(s->jfc, &moderate) == URMA_SUCCESS);
	jfr.jfc = cfg.jfs_cfg.jfc = s->jfc;
	s->jfr = urma_create_jfr(s->ctx, &jfr);
	cfg.shared.jfr = s->jfr;
	s->jetty = urma_create_jetty(s->ctx, &cfg);
	s->buffer = aligned_alloc(4096, (RECEIVES + DEPTH + 8) * BYTES);
	MUST(s->jfr && s->jetty && s->buffer);
	seg.va = (uintptr_t)s->buffer;
	s->seg = urma_register_seg(s->ctx, &seg);
	MUST(s->seg);
	MUST(urma_rearm_jfc(s->jfc, false) == URMA_SUCCESS);
}

static void close_side(struct side *s)
{
	MUST(urma_unregister_seg(s->seg) == URMA_SUCCESS);
	if (s->unacked)
		urma_ack_jfc(&s->jfc, &s->unacked, 1);
	MUST(urma_delete_jetty(s->jetty) == URMA_SUCCESS);
	MUST(urma_delete_jfr(s->jfr) == URMA_SUCCESS);
	MUST(urma_delete_jfc(s->jfc) == URMA_SUCCESS);
	MUST(urma_delete_jfce(s->jfce) == URMA_SUCCESS);
	MUST(urma_delete_context(s->ctx) == URMA_SUCCESS);
	MUST(urma_uninit() == URMA_SUCCESS);
	free(s->buffer);
}

static void post_receive(struct side *s, uint64_t which)
{
	urma_sge_t sge = { .addr = (uintptr_t)s->buffer[which], .len = BYTES, .tseg = s->seg };
	urma_jfr_wr_t wr = { .src = { &sge, 1 }, .user_ctx = which }, *bad = NULL;

	MUST(urma_post_jfr_wr(s->jfr, &wr, &bad) == URMA_SUCCESS);
}

static struct told tell(const struct side *s)
{
	return (struct told){ .jetty = s->jetty->jetty_id, .seg = s->seg->seg };
}

static urma_target_jetty_t *import(struct side *s, const struct told *told)
{
	urma_rjetty_t r = { .jetty_id = told->jetty,
			    .trans_mode = URMA_TM_RM,
			    .type = URMA_JETTY,
			    .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			    .tp_type = URMA_CTP };
	urma_token_t token = { TOKEN };
	urma_target_jetty_t *to = urma_import_jetty(s->ctx, &r, &token);

	MUST(to && to->id.uasid == told->jetty.uasid);
	return to;
}

/* The slots of unsignalled messages come back with the next one that is signalled. */
static bool post(struct side *s, urma_jfs_wr_t *wr)
{
	urma_jfs_wr_t *bad = NULL;
	urma_status_t status;

	wr->flag.bs.complete_enable = ++s->sent % SIGNAL == 0;
	wr->user_ctx = UINT64_C(1) << 32 | s->sent;
	status = urma_post_jetty_send_wr(s->jetty, wr, &bad);
	if (!status)
		return true;
	MUST(status == URMA_ENOMEM && bad == wr); /* full: somebody has to poll */
	s->sent--;
	return false;
}

static bool send_text(struct side *s, urma_target_jetty_t *to, uint32_t len, uint64_t imm)
{
	uint8_t *text = s->buffer[RECEIVES + s->sent % DEPTH];
	urma_sge_t sge = { .addr = (uintptr_t)text, .len = len, .tseg = s->seg };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_SEND_IMM,
			     .tjetty = to,
			     .flag.bs.solicited_enable = 1,
			     .send = { .src = { &sge, len ? 1 : 0 }, .imm_data = imm } };

	if (s->sent - s->ended >= DEPTH) /* it may be on its way from that buffer yet */
		return false;
	pattern_fill(text, len, imm, 0);
	return post(s, &wr);
}

/* ---- Server ---- */

struct peer {
	int sock;
	urma_target_jetty_t *to;
	urma_target_seg_t *seg;
	uint64_t served;
	bool gone;
};

struct server {
	struct side s;
	struct peer peer[CLIENTS];
	unsigned peers, gone;
	int epoll, listener;
	uint64_t waiting[65536]; /* replies that found the queue full: peer and number */
	uint32_t first, last;
};

static void watch(struct server *v, int fd, uint64_t tag)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.u64 = tag };

	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
	MUST(epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void accept_all(struct server *v)
{
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_WRITE };
	urma_token_t token = { TOKEN };
	int sock;

	while ((sock = accept(v->listener, NULL, NULL)) >= 0) {
		struct peer *p = &v->peer[v->peers];
		struct told mine = tell(&v->s), theirs;

		MUST(v->peers < CLIENTS);
		MUST(recv(sock, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
		MUST(send(sock, &mine, sizeof(mine), MSG_NOSIGNAL) == sizeof(mine));
		*p = (struct peer){ .sock = sock, .to = import(&v->s, &theirs) };
		p->seg = urma_import_seg(v->s.ctx, &theirs.seg, &token, 0, flag);
		MUST(p->seg);
		watch(v, sock, 100 + v->peers++);
	}
}

/* Behind all replies to a client: when this has ended, they have. */
static bool post_goodbye(struct server *v, unsigned who)
{
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_NOP,
			     .flag.bs.complete_enable = 1,
			     .tjetty = v->peer[who].to,
			     .user_ctx = (uint64_t)GOODBYE << 32 | who },
		      *bad = NULL;

	return urma_post_jetty_send_wr(v->s.jetty, &wr, &bad) == URMA_SUCCESS;
}

/* The reply to request number: its length back, in a message, or by WRITE_IMM into the client. */
static bool reply(struct server *v, struct peer *p, uint64_t number)
{
	uint64_t answer = number * 3;
	urma_sge_t near = { .addr = (uintptr_t)&answer, .len = 8 }; /* on the stack, inline */
	urma_sge_t far = { .addr = p->seg->seg.ubva.va + (RECEIVES + DEPTH) * BYTES,
			   .len = BYTES,
			   .tseg = p->seg };
	urma_sg_t near_sg = { &near, 1 }, far_sg = { &far, 1 };
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_WRITE_IMM, .tjetty = p->to };

	if (number % 4 == 0)
		return send_text(&v->s, p->to, 0, number); /* credit: nothing but the value */
	if (number % 4 != 1)
		return send_text(&v->s, p->to, (uint32_t)(number % BYTES) + 1, number);
	wr.flag.bs.inline_flag = 1;
	wr.rw = (urma_rw_wr_t){ .src = near_sg, .dst = far_sg, .notify_data = number };
	return post(&v->s, &wr);
}

static void serve(struct server *v, const urma_cr_t *cr)
{
	uint64_t number = cr->imm_data;
	unsigned who = 0;

	MUST(cr->status == URMA_CR_SUCCESS && cr->opcode == URMA_CR_OPC_SEND_WITH_IMM);
	MUST(cr->local_id == v->s.jetty->jetty_id.id && cr->flag.bs.jetty);
	while (who < v->peers &&
	       (memcmp(&v->peer[who].to->id.eid, &cr->remote_id.eid, sizeof(urma_eid_t)) != 0 ||
		v->peer[who].to->id.uasid != cr->remote_id.uasid ||
		v->peer[who].to->id.id != cr->remote_id.id))
		who++;
	MUST(who < v->peers);
	MUST(pattern_check(v->s.buffer[cr->user_ctx], cr->completion_len, number, 0) == -1);
	MUST(number == v->peer[who].served++);
	post_receive(&v->s, cr->user_ctx);
	v->waiting[v->last++ % 65536] = (uint64_t)who << 32 | number;
}

static void send_replies(struct server *v)
{
	while (v->first != v->last) {
		uint64_t next = v->waiting[v->first % 65536];
		struct peer *p = &v->peer[next >> 32];

		if ((next & GOODBYE) == GOODBYE ? !post_goodbye(v, (unsigned)(next >> 32))
						: !reply(v, p, next & GOODBYE))
			return;
		v->first++;
	}
}

/* An edge: everything that is there, then armed again. */
static void take_all(struct server *v)
{
	urma_jfc_t *fired;
	urma_cr_t cr[7];
	int n;

	if (urma_wait_jfc(v->s.jfce, 1, 0, &fired) == 1) {
		MUST(fired == v->s.jfc);
		if (++v->s.unacked == 10) { /* acknowledged by the dozen, nearly */
			urma_ack_jfc(&fired, &v->s.unacked, 1);
			v->s.unacked = 0;
		}
		/* What is there already makes another edge: no more is lost than an idle turn. */
		MUST(urma_rearm_jfc(v->s.jfc, false) == URMA_SUCCESS);
	}
	while ((n = urma_poll_jfc(v->s.jfc, 7, cr)) > 0) {
		for (int i = 0; i < n; i++) {
			if (cr[i].flag.bs.s_r)
				serve(v, &cr[i]);
			else if (cr[i].status != URMA_CR_SUCCESS)
				proc_die("a reply ended with %d", (int)cr[i].status);
			else if (cr[i].user_ctx >> 32 == GOODBYE)
				MUST(send(v->peer[cr[i].user_ctx & 0xff].sock, "!", 1,
					  MSG_NOSIGNAL) == 1);
			else
				v->s.ended = (uint32_t)cr[i].user_ctx;
		}
		send_replies(v);
	}
	send_replies(v);
}

static void hear(struct server *v, unsigned who)
{
	struct peer *p = &v->peer[who];
	ssize_t n;
	char bye;

	while (!p->gone && (n = recv(p->sock, &bye, 1, 0)) >= 0) {
		if (n) { /* it wants to go */
			v->waiting[v->last++ % 65536] = (uint64_t)who << 32 | GOODBYE;
			send_replies(v);
			continue;
		}
		p->gone = true;
		v->gone++;
		close(p->sock);
	}
}

static int server(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct server *v = calloc(1, sizeof(*v));
	socklen_t len = sizeof(at);

	(void)arg;
	MUST(v);
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	v->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(bind(v->listener, (struct sockaddr *)&at, len) == 0 && listen(v->listener, 8) == 0);
	MUST(getsockname(v->listener, (struct sockaddr *)&at, &len) == 0);
	open_side(&v->s);
	watch(v, v->listener, 1);
	watch(v, v->s.jfce->fd, 2);
	watch(v, v->s.ctx->async_fd, 3);
	atomic_store(port, at.sin_port);
	for (bool posted = false; v->gone < CLIENTS;) {
		struct epoll_event e[4];
		int n = epoll_wait(v->epoll, e, 4, 20000);

		MUST(n > 0);
		for (int i = 0; i < n; i++) {
			urma_async_event_t event;

			if (e[i].data.u64 == 1)
				accept_all(v);
			else if (e[i].data.u64 == 2)
				take_all(v);
			else if (e[i].data.u64 == 3)
				MUST(urma_get_async_event(v->s.ctx, &event) == URMA_FAIL);
			else
				hear(v, (unsigned)e[i].data.u64 - 100);
		}
		if (!posted &&
		    v->peers) { /* the first requests are there before the first receive */
			usleep(20000);
			for (unsigned i = 0; i < RECEIVES; i++)
				post_receive(&v->s, i);
			posted = true;
		}
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		MUST(urma_unimport_seg(v->peer[i].seg) == URMA_SUCCESS);
		MUST(urma_unimport_jetty(v->peer[i].to) == URMA_SUCCESS);
	}
	close_side(&v->s);
	free(v);
	return 0;
}

/* ---- Client ---- */

static unsigned requests(void)
{
	return proc_rounds(400, 40000);
}

/* The answer to request number. */
static void check(struct side *s, const urma_cr_t *cr, uint64_t number)
{
	uint64_t there;

	MUST(cr->status == URMA_CR_SUCCESS && cr->imm_data == number);
	if (number % 4 == 1) {
		MUST(cr->opcode == URMA_CR_OPC_WRITE_WITH_IMM && cr->completion_len == 8);
		memcpy(&there, s->buffer[RECEIVES + DEPTH], 8);
		MUST(there >= number * 3 && there % 3 == 0); /* a later one may be there */
	} else {
		uint32_t len = number % 4 == 0 ? 0 : (uint32_t)(number % BYTES) + 1;

		MUST(cr->opcode == URMA_CR_OPC_SEND_WITH_IMM && cr->completion_len == len);
		MUST(pattern_check(s->buffer[cr->user_ctx], len, number, 0) == -1);
	}
}

static void wait_for_event(struct side *s)
{
	struct pollfd fd = { .fd = s->jfce->fd, .events = POLLIN };
	urma_jfc_t *fired;
	uint32_t one = 1;

	MUST(poll(&fd, 1, 20000) == 1);
	if (urma_wait_jfc(s->jfce, 1, 0, &fired) != 1)
		return;
	urma_ack_jfc(&fired, &one, 1);
	MUST(urma_rearm_jfc(fired, false) == URMA_SUCCESS);
}

static void call_many(struct side *s, urma_target_jetty_t *to, unsigned count)
{
	uint64_t asked = 0, answered = 0;

	while (answered < count) {
		urma_cr_t cr[3];
		int n;

		while (asked < count && asked - answered < 32 &&
		       send_text(s, to, (uint32_t)(asked * 7 % BYTES), asked))
			asked++;
		n = urma_poll_jfc(s->jfc, 3, cr);
		MUST(n >= 0);
		for (int i = 0; i < n; i++) {
			if (cr[i].flag.bs.s_r) {
				check(s, &cr[i], answered++);
				post_receive(s, cr[i].user_ctx);
				continue;
			}
			MUST(cr[i].status == URMA_CR_SUCCESS);
			s->ended = (uint32_t)cr[i].user_ctx;
		}
		if (!n)
			wait_for_event(s);
	}
}

/* arg: its number; the last two die in the middle. */
static int client(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	urma_jetty_attr_t error = { .mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR };
	urma_target_jetty_t *to;
	struct told mine, theirs;
	struct side s;
	urma_cr_t cr;
	char bye;

	at.sin_port = (in_port_t)atomic_load(port);
	open_side(&s);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(&s, i);
	mine = tell(&s);
	MUST(connect(sock, (struct sockaddr *)&at, sizeof(at)) == 0);
	MUST(send(sock, &mine, sizeof(mine), 0) == sizeof(mine));
	MUST(recv(sock, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	to = import(&s, &theirs);
	call_many(&s, to, requests());
	atomic_fetch_add(ready, 1);
	/* A message that its receiver has, and that is not yet known to have arrived, would fail. */
	MUST(send(sock, "?", 1, 0) == 1 && recv(sock, &bye, 1, 0) == 1);
	if ((uintptr_t)arg + 2 >= CLIENTS)
		raise(SIGKILL); /* with everything open */
	/* What is unsignalled comes back by a flush. */
	MUST(urma_modify_jetty(s.jetty, &error) == URMA_SUCCESS);
	do
		while (urma_poll_jfc(s.jfc, 1, &cr) == 0)
			sched_yield();
	while (cr.status != URMA_CR_WR_FLUSH_ERR_DONE);
	MUST(urma_flush_jetty(s.jetty, 1, &cr) == 0);
	close(sock);
	MUST(urma_unimport_jetty(to) == URMA_SUCCESS);
	close_side(&s);
	return 0;
}

static void serve_over(const char *paths)
{
	pid_t pid[CLIENTS], first;

	atomic_store(port, 0);
	atomic_store(ready, 0);
	setenv("XTAL_PATHS", paths, 1);
	first = proc_start(server, NULL);
	assert_true(proc_await(port, 1, 20000));
	for (uintptr_t i = 0; i < CLIENTS; i++)
		pid[i] = proc_start(client, (void *)i);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(proc_join(pid[i], 100000), i + 2 < CLIENTS ? 0 : SIGKILL);
	assert_int_equal(proc_join(first, 20000), 0);
	unsetenv("XTAL_PATHS");
}

static void calls_on_one_host(void **state)
{
	(void)state;
	serve_over("map,cma,ring");
}

static void calls_by_tcp(void **state)
{
	(void)state;
	serve_over("tcp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(calls_on_one_host, proc_end_all),
		cmocka_unit_test_teardown(calls_by_tcp, proc_end_all),
	};

	port = proc_shared(4096);
	ready = port + 16;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
