/* SPDX-License-Identifier: MIT */
/*
 * A transfer engine, as programs write it: each process registers a few large segments with token ids
 * of its own; worker threads move slices between them in batches of chained requests over several
 * endpoints, count completions by a pointer in user_ctx, and rebuild an endpoint when its peer has
 * died and come back.
 */
/* ctest: timeout=120 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/pattern.h"
#include "lib/proc.h"
#include "urma_api.h"

#define SEGMENTS  4u
#define LEN       (4ul << 20)
#define SLICE     65536u
#define SLICES    (LEN / SLICE)
#define ENDPOINTS 3u
#define DEPTH     64u
#define TOKEN     0x7ffu

#define MUST(what)                                                        \
	do {                                                              \
		if (!(what))                                              \
			proc_die("%s:%d: %s", __func__, __LINE__, #what); \
	} while (0)

/* What a store that all processes share holds of a host. */
struct published {
	_Atomic uint32_t generation; /* how often it was started */
	urma_jetty_id_t jetty;
	urma_seg_t seg[SEGMENTS];
};

static struct published *store;

struct host {
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jfr_t *jfr;
	urma_token_id_t *id[SEGMENTS];
	urma_target_seg_t *seg[SEGMENTS];
	uint8_t *memory[SEGMENTS];
};

static void open_host(struct host *h)
{
	urma_jfc_cfg_t jfc = { .depth = 4096 };
	urma_jfr_cfg_t jfr = { .depth = 64,
			       .trans_mode = URMA_TM_RM,
			       .max_sge = 1,
			       .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
			       .token_value = { TOKEN },
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	urma_device_t **list;
	int count;

	MUST(urma_init(NULL) == URMA_SUCCESS);
	list = urma_get_device_list(&count);
	MUST(list);
	h->ctx = urma_create_context(list[0], 0);
	urma_free_device_list(list);
	MUST(h->ctx);
	h->jfc = urma_create_jfc(h->ctx, &jfc);
	jfr.jfc = h->jfc;
	h->jfr = urma_create_jfr(h->ctx, &jfr);
	MUST(h->jfc && h->jfr);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		urma_seg_cfg_t cfg = { .len = LEN,
				       .token_value = { TOKEN + i },
				       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
						    .token_id_valid = 1,
						    .access = URMA_ACCESS_READ |
							      URMA_ACCESS_WRITE } };

		h->memory[i] =
			mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(h->memory[i] != MAP_FAILED);
		h->id[i] = urma_alloc_token_id(h->ctx);
		cfg.token_id = h->id[i];
		cfg.va = (uintptr_t)h->memory[i];
		h->seg[i] = urma_register_seg(h->ctx, &cfg);
		MUST(h->seg[i]);
	}
}

static urma_jetty_t *open_jetty(struct host *h, urma_jfc_t *jfc)
{
	urma_jetty_cfg_t cfg = { .flag.bs.share_jfr = 1,
				 .shared.jfr = h->jfr,
				 .jfs_cfg = { .depth = DEPTH,
					      .trans_mode = URMA_TM_RM,
					      .max_sge = 1,
					      .max_rsge = 1,
					      .rnr_retry = URMA_TYPICAL_RNR_RETRY,
					      .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
					      .jfc = jfc } };
	urma_jetty_t *jetty = urma_create_jetty(h->ctx, &cfg);

	MUST(jetty);
	return jetty;
}

/* ---- The passive host: publishes, and sleeps ---- */

static int target(void *arg)
{
	struct host h;

	(void)arg;
	open_host(&h);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		pattern_fill(h.memory[i], LEN, i, 0);
		store->seg[i] = h.seg[i]->seg;
	}
	store->jetty = open_jetty(&h, h.jfc)->jetty_id;
	atomic_fetch_add(&store->generation, 1);
	for (;;)
		pause();
	return 0;
}

/* ---- The engine ---- */

struct batch {
	atomic_uint done, failed;
};

struct endpoint {
	pthread_mutex_t lock;
	urma_jfc_t *jfc;
	urma_jetty_t *jetty;
	urma_target_jetty_t *to;
	urma_target_seg_t *seg[SEGMENTS];
	uint32_t posted; /* not completed yet */
	bool stopped;    /* the marker that ends a broken queue was there */
};

struct engine {
	struct host h;
	struct endpoint ep[ENDPOINTS];
};

static void connect_endpoint(struct engine *e, struct endpoint *ep)
{
	urma_rjetty_t told = { .jetty_id = store->jetty,
			       .trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			       .tp_type = URMA_CTP };
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE };
	urma_token_t token = { TOKEN };
	urma_jfc_cfg_t jfc = { .depth = 256 };

	ep->stopped = false;
	ep->jfc = urma_create_jfc(e->h.ctx, &jfc);
	MUST(ep->jfc);
	ep->jetty = open_jetty(&e->h, ep->jfc);
	ep->to = urma_import_jetty(e->h.ctx, &told, &token);
	MUST(ep->to);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		token.token = TOKEN + i;
		ep->seg[i] = urma_import_seg(e->h.ctx, &store->seg[i], &token, 0, flag);
		MUST(ep->seg[i]);
	}
}

/* Each completion belongs to a batch. */
static void take(struct endpoint *ep, const urma_cr_t *cr)
{
	struct batch *b = (struct batch *)(uintptr_t)cr->user_ctx;

	MUST(cr->local_id == ep->jetty->jetty_id.id && ep->posted > 0);
	ep->posted--;
	if (cr->status != URMA_CR_SUCCESS)
		atomic_fetch_add(&b->failed, 1);
	atomic_fetch_add(&b->done, 1);
}

static void poll_endpoint(struct endpoint *ep)
{
	urma_cr_t cr[16];
	int n = urma_poll_jfc(ep->jfc, 16, cr);

	MUST(n >= 0);
	for (int i = 0; i < n; i++) {
		if (cr[i].status == URMA_CR_WR_FLUSH_ERR_DONE)
			ep->stopped = true;
		else
			take(ep, &cr[i]);
	}
}

static void drop_endpoint(struct endpoint *ep)
{
	MUST(urma_delete_jetty(ep->jetty) == URMA_SUCCESS);
	for (unsigned i = 0; i < SEGMENTS; i++)
		MUST(urma_unimport_seg(ep->seg[i]) == URMA_SUCCESS);
	MUST(urma_unimport_jetty(ep->to) == URMA_SUCCESS);
	MUST(urma_delete_jfc(ep->jfc) == URMA_SUCCESS);
}

/* All that is posted comes back, by completions or by a flush; then a fresh one takes its place. */
static void rebuild(struct engine *e, struct endpoint *ep)
{
	urma_jetty_attr_t attr = { .mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR };
	uint64_t until = proc_now() + 60000000000u;
	urma_cr_t cr;

	MUST(urma_modify_jetty(ep->jetty, &attr) == URMA_SUCCESS);
	while (!ep->stopped) {
		MUST(proc_now() < until);
		poll_endpoint(ep);
	}
	while (urma_flush_jetty(ep->jetty, 1, &cr) == 1) {
		MUST(cr.status == URMA_CR_WR_UNHANDLED);
		take(ep, &cr);
	}
	MUST(ep->posted == 0);
	drop_endpoint(ep);
	connect_endpoint(e, ep);
}

/* Slices from first on, at both sides alike: one chain. How many were taken. */
static unsigned post_chain(struct engine *e, struct endpoint *ep, struct batch *b,
			   urma_opcode_t opcode, unsigned seg, unsigned first, unsigned count)
{
	urma_jfs_wr_t wr[16] = { 0 }, *bad = NULL;
	urma_sge_t near[16], far[16];
	urma_sg_t near_sg[16], far_sg[16];
	urma_status_t status;

	if (ep->posted + count > DEPTH)
		count = DEPTH - ep->posted;
	if (!count)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = (uint64_t)(first + i) * SLICE;

		near[i] = (urma_sge_t){ .addr = (uintptr_t)e->h.memory[seg] + at,
					.len = SLICE,
					.tseg = e->h.seg[seg] };
		far[i] = (urma_sge_t){ .addr = ep->seg[seg]->seg.ubva.va + at,
				       .len = SLICE,
				       .tseg = ep->seg[seg] };
		near_sg[i] = (urma_sg_t){ &near[i], 1 };
		far_sg[i] = (urma_sg_t){ &far[i], 1 };
		wr[i].opcode = opcode;
		wr[i].flag.bs.complete_enable = 1;
		wr[i].tjetty = ep->to;
		wr[i].user_ctx = (uintptr_t)b;
		wr[i].rw = opcode == URMA_OPC_READ
				   ? (urma_rw_wr_t){ .src = far_sg[i], .dst = near_sg[i] }
				   : (urma_rw_wr_t){ .src = near_sg[i], .dst = far_sg[i] };
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
	}
	ep->posted += count;
	status = urma_post_jetty_send_wr(ep->jetty, wr, &bad);
	if (status) { /* from bad on none was taken */
		MUST(bad >= wr && bad < wr + count);
		ep->posted -= count - (unsigned)(bad - wr);
		count = (unsigned)(bad - wr);
	}
	return count;
}

/* Moves a whole segment. False: some of it failed. */
static bool move_segment(struct engine *e, unsigned who, urma_opcode_t opcode, unsigned seg)
{
	struct endpoint *ep = &e->ep[(who + seg) % ENDPOINTS];
	struct batch b = { 0 };
	unsigned posted = 0;

	while (atomic_load(&b.done) < SLICES) {
		pthread_mutex_lock(&ep->lock);
		if (posted < SLICES)
			posted +=
				post_chain(e, ep, &b, opcode, seg, posted,
					   SLICES - posted < 16 ? (unsigned)(SLICES - posted) : 16);
		poll_endpoint(ep);
		/* Its peer is a new one, or its queue has stopped. */
		if (atomic_load(&b.failed) || ep->stopped)
			rebuild(e, ep);
		pthread_mutex_unlock(&ep->lock);
		if (atomic_load(&b.failed) && posted < SLICES) { /* the rest is not worth a try */
			atomic_fetch_add(&b.done, SLICES - posted);
			posted = SLICES;
		}
		sched_yield();
	}
	return atomic_load(&b.failed) == 0;
}

struct worker {
	struct engine *e;
	unsigned who;
	_Atomic uint64_t good;
	uint64_t bad;
	_Atomic bool *stop;
};

/* Reads its segment, looks at all of it, writes it back. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct host *h = &w->e->h;

	for (unsigned round = 0; !atomic_load(w->stop); round++) {
		unsigned seg = w->who;

		memset(h->memory[seg], 0, LEN);
		if (!move_segment(w->e, w->who + round, URMA_OPC_READ, seg)) {
			w->bad++;
			usleep(1000);
			continue;
		}
		MUST(pattern_check(h->memory[seg], LEN, seg, 0) == -1);
		if (move_segment(w->e, w->who + round, URMA_OPC_WRITE, seg))
			atomic_fetch_add(&w->good, 1);
		else
			w->bad++;
	}
	return NULL;
}

static void wait_until_good(struct worker *w, uint64_t more)
{
	uint64_t until = proc_now() + 60000000000u, had[SEGMENTS];

	for (unsigned i = 0; i < SEGMENTS; i++)
		had[i] = atomic_load(&w[i].good);
	for (unsigned i = 0; i < SEGMENTS; i++)
		while (atomic_load(&w[i].good) < had[i] + more) {
			MUST(proc_now() < until);
			usleep(1000);
		}
}

static int engine(void *arg)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct worker w[SEGMENTS];
	pthread_t thread[SEGMENTS];
	_Atomic bool stop = false;
	_Atomic uint32_t *told = arg;

	MUST(e);
	open_host(&e->h);
	for (unsigned i = 0; i < ENDPOINTS; i++) {
		pthread_mutex_init(&e->ep[i].lock, NULL);
		connect_endpoint(e, &e->ep[i]);
	}
	for (unsigned i = 0; i < SEGMENTS; i++) {
		w[i] = (struct worker){ e, i, 0, 0, &stop };
		MUST(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
	}
	for (unsigned life = 1; life <= 3; life++) { /* of the target */
		wait_until_good(w, proc_rounds(3, 300));
		atomic_store(told, life);
		if (life < 3)
			MUST(proc_await(&store->generation, life + 1, 60000));
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < SEGMENTS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < ENDPOINTS; i++) {
		MUST(e->ep[i].posted == 0);
		drop_endpoint(&e->ep[i]);
	}
	for (unsigned i = 0; i < SEGMENTS; i++) {
		MUST(urma_unregister_seg(e->h.seg[i]) == URMA_SUCCESS);
		MUST(urma_free_token_id(e->h.id[i]) == URMA_SUCCESS);
		MUST(munmap(e->h.memory[i], LEN) == 0);
	}
	MUST(urma_delete_jfr(e->h.jfr) == URMA_SUCCESS);
	MUST(urma_delete_jfc(e->h.jfc) == URMA_SUCCESS);
	MUST(urma_delete_context(e->h.ctx) == URMA_SUCCESS);
	MUST(urma_uninit() == URMA_SUCCESS);
	free(e);
	return 0;
}

static void move_over(const char *paths)
{
	_Atomic uint32_t *told = proc_shared(sizeof(*told));
	pid_t passive, active;

	atomic_store(&store->generation, 0);
	setenv("XTAL_PATHS", paths, 1);
	passive = proc_start(target, NULL);
	assert_true(proc_await(&store->generation, 1, 20000));
	active = proc_start(engine, (void *)told);
	for (unsigned life = 1; life < 3;
	     life++) { /* it dies in the middle of things, and comes back */
		assert_true(proc_await(told, life, 60000));
		proc_kill(passive);
		passive = proc_start(target, NULL);
	}
	assert_int_equal(proc_join(active, 100000), 0);
	proc_kill(passive);
	unsetenv("XTAL_PATHS");
}

static void segments_move_by_direct_access(void **state)
{
	(void)state;
	move_over("cma,ring");
}

static void segments_move_by_messages(void **state)
{
	(void)state;
	move_over("tcp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(segments_move_by_direct_access, proc_end_all),
		cmocka_unit_test_teardown(segments_move_by_messages, proc_end_all),
	};

	store = proc_shared(sizeof(*store));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
