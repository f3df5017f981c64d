/* SPDX-License-Identifier: MIT */
/*
 * A lock service as programs write it: the server owns a table of lock words and of counters, and
 * gives clients nothing but a description of it over TCP. Clients lock by compare and swap, change
 * what the lock guards by READ and WRITE, and unlock; the server's own threads take the same locks
 * with instructions. Connected jetties (RC), one completion queue for all clients, and a teardown
 * that waits for FLUSH_ERR_DONE after all else is gone.
 */
/* ctest: timeout=120 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/proc.h"
#include "urma_api.h"

#define CLIENTS 4u
#define LOCKS   3u
#define TOKEN   0x10c4u

/* In the server's memory. */
struct entry {
	_Atomic uint64_t lock;     /* 0: free; else whose it is */
	uint64_t counter, witness; /* guarded by it, always equal */
	_Atomic uint64_t taken;    /* how often, by fetch and add */
};

struct hello {
	urma_rjetty_t jetty;
	urma_seg_t table;
};

struct host {
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
};

static struct entry table[LOCKS] __attribute__((aligned(64)));
static _Atomic uint32_t *port; /* the server's, for the clients */

#define MUST(what)                                                        \
	do {                                                              \
		if (!(what))                                              \
			proc_die("%s:%d: %s", __func__, __LINE__, #what); \
	} while (0)

static void open_host(struct host *h)
{
	urma_init_attr_t attr = { .uasid = 0 };
	urma_jfc_cfg_t jfc = { .depth = 1024 };
	urma_jfr_cfg_t jfr = { .depth = 64,
			       .trans_mode = URMA_TM_RC,
			       .max_sge = 1,
			       .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
			       .token_value = { TOKEN },
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	urma_device_t **list;
	urma_device_attr_t caps;
	urma_eid_info_t *eids;
	uint32_t eid_count;
	int count;

	MUST(urma_init(&attr) == URMA_SUCCESS);
	list = urma_get_device_list(&count);
	MUST(list && count > 0 && list[0]->type == URMA_TRANSPORT_UB);
	MUST(urma_query_device(list[0], &caps) == URMA_SUCCESS);
	MUST(caps.port_cnt >= 1 && caps.port_attr[0].state == URMA_PORT_ACTIVE);
	eids = urma_get_eid_list(list[0], &eid_count);
	MUST(eids && eid_count >= 1);
	h->ctx = urma_create_context(list[0], eids[0].eid_index);
	urma_free_eid_list(eids);
	urma_free_device_list(list);
	MUST(h->ctx);
	MUST(fcntl(h->ctx->async_fd, F_SETFL, fcntl(h->ctx->async_fd, F_GETFL) | O_NONBLOCK) == 0);
	h->jfc = urma_create_jfc(h->ctx, &jfc);
	jfr.jfc = h->jfc;
	h->jfr = urma_create_jfr(h->ctx, &jfr);
	MUST(h->jfc && h->jfr);
}

static urma_jetty_t *open_jetty(struct host *h)
{
	urma_jetty_cfg_t cfg = { .flag.bs.share_jfr = 1,
				 .shared.jfr = h->jfr,
				 .jfs_cfg = { .depth = 128,
					      .trans_mode = URMA_TM_RC,
					      .max_sge = 1,
					      .max_rsge = 1,
					      .rnr_retry = URMA_TYPICAL_RNR_RETRY,
					      .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
					      .jfc = h->jfc } };
	urma_jetty_t *jetty = urma_create_jetty(h->ctx, &cfg);

	MUST(jetty);
	return jetty;
}

static urma_target_jetty_t *meet(struct host *h, urma_jetty_t *jetty, urma_rjetty_t *told)
{
	urma_token_t token = { TOKEN };
	urma_target_jetty_t *to = urma_import_jetty(h->ctx, told, &token);

	MUST(to);
	MUST(urma_bind_jetty(jetty, to) == URMA_SUCCESS);
	return to;
}

/* Until the marker is there; nothing else may come. */
static void quiesce(struct host *h, urma_jetty_t *jetty)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR };
	uint64_t until = proc_now() + 60000000000u;
	urma_cr_t cr;

	MUST(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
	for (;;) {
		int n = urma_poll_jfc(h->jfc, 1, &cr);

		MUST(n >= 0 && proc_now() < until);
		if (!n)
			continue;
		MUST(cr.status == URMA_CR_WR_FLUSH_ERR_DONE);
		MUST(cr.local_id == jetty->jetty_id.id);
		break;
	}
	MUST(urma_flush_jetty(jetty, 1, &cr) == 0);
}

static void close_host(struct host *h)
{
	urma_async_event_t event;

	MUST(urma_get_async_event(h->ctx, &event) == URMA_FAIL); /* nothing has gone wrong */
	MUST(urma_delete_jfr(h->jfr) == URMA_SUCCESS);
	MUST(urma_delete_jfc(h->jfc) == URMA_SUCCESS);
	MUST(urma_delete_context(h->ctx) == URMA_SUCCESS);
	MUST(urma_uninit() == URMA_SUCCESS);
}

/* ---- Server ---- */

static unsigned rounds(void)
{
	return proc_rounds(300, 20000);
}

/* The program's own use of the locks. */
static void *local_user(void *arg)
{
	for (unsigned i = 0; i < rounds(); i++) {
		struct entry *e = &table[i % LOCKS];
		uint64_t none = 0;

		while (!atomic_compare_exchange_strong(&e->lock, &none, UINT64_MAX)) {
			none = 0;
			sched_yield();
		}
		atomic_fetch_add(&e->taken, 1);
		e->counter++;
		e->witness = e->counter;
		atomic_store(&e->lock, 0);
	}
	return arg;
}

static int server(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	urma_seg_cfg_t cfg = { .va = (uintptr_t)table,
			       .len = sizeof(table),
			       .token_value = { TOKEN },
			       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .token_id_valid = 1,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						      URMA_ACCESS_ATOMIC } };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), sock[CLIENTS];
	urma_target_jetty_t *to[CLIENTS];
	urma_jetty_t *jetty[CLIENTS];
	socklen_t len = sizeof(at);
	urma_target_seg_t *seg;
	uint64_t taken = 0, sum = 0;
	struct host h;
	pthread_t thread;

	(void)arg;
	MUST(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 8) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
	open_host(&h);
	cfg.token_id = urma_alloc_token_id(h.ctx);
	seg = urma_register_seg(h.ctx, &cfg);
	MUST(seg && seg->seg.token_id == cfg.token_id->token_id);
	atomic_store(port, at.sin_port);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct hello mine = { .table = seg->seg }, theirs;
		urma_rjetty_t *told;
		uint32_t size;

		sock[i] = accept(listener, NULL, NULL);
		jetty[i] = open_jetty(&h);
		MUST(urma_get_rjetty(jetty[i], &told, &size) == URMA_SUCCESS);
		MUST(size == sizeof(*told));
		mine.jetty = *told;
		urma_put_rjetty(told);
		MUST(send(sock[i], &mine, sizeof(mine), 0) == sizeof(mine));
		/* The client may be at work before this side has bound. */
		MUST(recv(sock[i], &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
		to[i] = meet(&h, jetty[i], &theirs.jetty);
	}
	MUST(pthread_create(&thread, NULL, local_user, NULL) == 0);
	for (unsigned i = 0; i < CLIENTS; i++) {
		char done;

		MUST(recv(sock[i], &done, 1, 0) == 1);
		MUST(urma_unbind_jetty(jetty[i]) == URMA_SUCCESS);
		MUST(urma_unimport_jetty(to[i]) == URMA_SUCCESS);
		quiesce(&h, jetty[i]);
		MUST(urma_delete_jetty(jetty[i]) == URMA_SUCCESS);
		close(sock[i]);
	}
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < LOCKS; i++) {
		MUST(table[i].lock == 0 && table[i].counter == table[i].witness);
		sum += table[i].counter;
		taken += table[i].taken;
	}
	MUST(sum == (uint64_t)(CLIENTS + 1) * rounds() && taken == sum);
	MUST(urma_unregister_seg(seg) == URMA_SUCCESS);
	MUST(urma_free_token_id(cfg.token_id) == URMA_SUCCESS);
	close_host(&h);
	return 0;
}

/* ---- Client ---- */

struct client {
	struct host h;
	urma_jetty_t *jetty;
	urma_target_jetty_t *to;
	urma_target_seg_t *far, *near;
	uint64_t word[8]; /* its registered memory */
	uint64_t number;
};

static void end_one(struct client *c)
{
	urma_cr_t cr;
	int n;

	do
		n = urma_poll_jfc(c->h.jfc, 1, &cr);
	while (n == 0);
	MUST(n == 1 && cr.status == URMA_CR_SUCCESS && cr.user_ctx == c->number);
	MUST(cr.user_data == (uintptr_t)c->jetty && cr.remote_id.id == c->to->id.id);
	c->number++;
}

/* The word of the table to which lock, or what it guards, is at. */
static urma_sge_t far_word(struct client *c, unsigned lock, size_t at)
{
	return (urma_sge_t){ .addr = c->far->seg.ubva.va + lock * sizeof(struct entry) + at,
			     .len = 8,
			     .tseg = c->far };
}

static uint64_t swap(struct client *c, unsigned lock, uint64_t from, uint64_t to)
{
	urma_sge_t far = far_word(c, lock, offsetof(struct entry, lock));
	urma_sge_t near = { .addr = (uintptr_t)&c->word[0], .len = 8, .tseg = c->near };
	urma_jfs_wr_t wr = {
		.opcode = URMA_OPC_CAS,
		.flag.bs.complete_enable = 1,
		.tjetty = c->to,
		.user_ctx = c->number,
		.cas = { .dst = &far, .src = &near, .cmp_data = from, .swap_data = to }
	};
	urma_jfs_wr_t *bad = NULL;

	MUST(urma_post_jetty_send_wr(c->jetty, &wr, &bad) == URMA_SUCCESS);
	end_one(c);
	return c->word[0];
}

static void transfer(struct client *c, urma_opcode_t opcode, unsigned lock, size_t at,
		     uint64_t *word)
{
	urma_sge_t far = far_word(c, lock, at),
		   near = { .addr = (uintptr_t)word, .len = 8, .tseg = c->near };
	urma_sg_t far_sg = { &far, 1 }, near_sg = { &near, 1 };
	urma_jfs_wr_t wr = { .opcode = opcode,
			     .flag.bs.complete_enable = 1,
			     .tjetty = c->to,
			     .user_ctx = c->number },
		      *bad = NULL;

	if (opcode == URMA_OPC_FADD)
		wr.faa = (urma_faa_wr_t){ .dst = &far, .src = &near, .operand = 1 };
	else
		wr.rw = opcode == URMA_OPC_READ ? (urma_rw_wr_t){ .src = far_sg, .dst = near_sg }
						: (urma_rw_wr_t){ .src = near_sg, .dst = far_sg };
	MUST(urma_post_jetty_send_wr(c->jetty, &wr, &bad) == URMA_SUCCESS);
	end_one(c);
}

static void use_locks(struct client *c, uint64_t me)
{
	for (unsigned i = 0; i < rounds(); i++) {
		unsigned lock = (i + (unsigned)me) % LOCKS;

		while (swap(c, lock, 0, me) != 0)
			sched_yield();
		transfer(c, URMA_OPC_FADD, lock, offsetof(struct entry, taken), &c->word[3]);
		transfer(c, URMA_OPC_READ, lock, offsetof(struct entry, counter), &c->word[1]);
		transfer(c, URMA_OPC_READ, lock, offsetof(struct entry, witness), &c->word[2]);
		MUST(c->word[1] == c->word[2]);
		c->word[1]++;
		transfer(c, URMA_OPC_WRITE, lock, offsetof(struct entry, counter), &c->word[1]);
		transfer(c, URMA_OPC_WRITE, lock, offsetof(struct entry, witness), &c->word[1]);
		MUST(swap(c, lock, me, 0) == me);
	}
}

static int client(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						     URMA_ACCESS_ATOMIC };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct hello mine = { 0 }, theirs;
	urma_token_t token = { TOKEN };
	struct client c = { 0 };
	urma_seg_cfg_t cfg = { .va = (uintptr_t)c.word,
			       .len = sizeof(c.word),
			       .flag.bs.access = URMA_ACCESS_LOCAL_ONLY };
	urma_rjetty_t *told;
	uint32_t size;

	at.sin_port = (in_port_t)atomic_load(port);
	MUST(connect(sock, (struct sockaddr *)&at, sizeof(at)) == 0);
	open_host(&c.h);
	c.jetty = open_jetty(&c.h);
	c.near = urma_register_seg(c.h.ctx, &cfg); /* on its stack */
	MUST(c.near);
	MUST(recv(sock, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	c.far = urma_import_seg(c.h.ctx, &theirs.table, &token, 0, flag);
	MUST(c.far);
	c.to = meet(&c.h, c.jetty, &theirs.jetty);
	MUST(urma_get_rjetty(c.jetty, &told, &size) == URMA_SUCCESS);
	mine.jetty = *told;
	urma_put_rjetty(told);
	if ((uintptr_t)arg % 2) /* some do not wait for the server to bind */
		MUST(swap(&c, 0, 77, 78) != 77);
	MUST(send(sock, &mine, sizeof(mine), 0) == sizeof(mine));
	use_locks(&c, (uintptr_t)arg);
	MUST(send(sock, &mine, 1, 0) == 1);
	MUST(urma_unbind_jetty(c.jetty) == URMA_SUCCESS);
	MUST(urma_unimport_jetty(c.to) == URMA_SUCCESS);
	MUST(urma_unregister_seg(c.near) == URMA_SUCCESS); /* before the jetty */
	MUST(urma_delete_jetty(c.jetty) == URMA_SUCCESS);
	MUST(urma_unimport_seg(c.far) == URMA_SUCCESS);
	close_host(&c.h);
	return 0;
}

static void serve_over(const char *paths)
{
	pid_t pid[CLIENTS + 1];

	atomic_store(port, 0);
	setenv("XTAL_PATHS", paths, 1);
	pid[0] = proc_start(server, NULL);
	assert_true(proc_await(port, 1, 20000));
	for (uintptr_t i = 1; i <= CLIENTS; i++)
		pid[i] = proc_start(client, (void *)i);
	for (unsigned i = 0; i <= CLIENTS; i++)
		assert_int_equal(proc_join(pid[CLIENTS - i], 100000), 0);
	unsetenv("XTAL_PATHS");
}

static void locks_exclude_by_direct_access(void **state)
{
	(void)state;
	serve_over("map,cma,ring");
}

static void locks_exclude_by_messages(void **state)
{
	(void)state;
	serve_over("tcp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(locks_exclude_by_direct_access, proc_end_all),
		cmocka_unit_test_teardown(locks_exclude_by_messages, proc_end_all),
	};

	port = proc_shared(sizeof(*port));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
