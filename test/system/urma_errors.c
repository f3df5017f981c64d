/* SPDX-License-Identifier: MIT */
/*
 * Errors of URMA that want a special world: no memory, at each place where some is asked for; no
 * descriptors; full queues. What failed leaves nothing behind, and works when it is tried again.
 * ctest: plain
 */
#include "lib/urma_fixture.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "xtal.h"

/* ---- Memory that is refused ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

/* The allocation of this thread that fails: 1 is the next one; 0: none. */
static __thread unsigned refused_in;
static __thread unsigned refused; /* how many were */

static bool is_refused(void)
{
	if (!refused_in || --refused_in)
		return false;
	refused++;
	errno = ENOMEM;
	return true;
}

/* In front of the C library's, for the libraries too: so they must be seen by those. */
#pragma GCC visibility push(default)
void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}
#pragma GCC visibility pop

static urma_jfr_t *jfr;
static urma_jetty_t *jetty;
static urma_jetty_grp_t *group;
static urma_jfce_t *jfce;
static char memory[8192] __attribute__((aligned(4096)));

/* Each makes something, and takes it away: 0; or tells why it could not. */

static int cycle_context(void)
{
	urma_context_t *c = urma_create_context(ctx->dev, 0);

	if (!c)
		return errno;
	assert_int_equal(urma_delete_context(c), URMA_SUCCESS);
	return 0;
}

static int cycle_jfce(void)
{
	urma_jfce_t *j = urma_create_jfce(ctx);

	if (!j)
		return errno;
	assert_int_equal(urma_delete_jfce(j), URMA_SUCCESS);
	return 0;
}

static int cycle_jfc(void)
{
	urma_jfc_cfg_t cfg = { .depth = 64, .jfce = jfce };
	urma_jfc_t *j = urma_create_jfc(ctx, &cfg);

	if (!j)
		return errno;
	assert_int_equal(urma_delete_jfc(j), URMA_SUCCESS);
	return 0;
}

static int cycle_jfr(void)
{
	urma_jfr_t *j = make_jfr(URMA_TM_RM);

	if (!j)
		return errno;
	assert_int_equal(urma_delete_jfr(j), URMA_SUCCESS);
	return 0;
}

static int cycle_jfs(void)
{
	urma_jfs_cfg_t cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_t *j = urma_create_jfs(ctx, &cfg);

	if (!j)
		return errno;
	assert_int_equal(urma_delete_jfs(j), URMA_SUCCESS);
	return 0;
}

static int cycle_jetty(void)
{
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_jetty_t *j;

	cfg.jetty_grp = group;
	j = urma_create_jetty(ctx, &cfg);
	if (!j)
		return errno;
	assert_int_equal(urma_delete_jetty(j), URMA_SUCCESS);
	return 0;
}

static int cycle_two_steps(void)
{
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_status_t status;
	urma_jetty_t *j;

	status = urma_alloc_jetty(ctx, &cfg, &j);
	if (status)
		return status == URMA_ENOMEM ? ENOMEM : EINVAL;
	status = urma_active_jetty(j);
	if (status) {
		assert_int_equal(urma_free_jetty(j), URMA_SUCCESS);
		return status == URMA_ENOMEM ? ENOMEM : EINVAL;
	}
	assert_int_equal(urma_deactive_jetty(j), URMA_SUCCESS);
	assert_int_equal(urma_free_jetty(j), URMA_SUCCESS);
	return 0;
}

static int cycle_group(void)
{
	urma_jetty_grp_cfg_t cfg = { .name = "two", .policy = URMA_JETTY_GRP_POLICY_RR };
	urma_jetty_grp_t *g = urma_create_jetty_grp(ctx, &cfg);

	if (!g)
		return errno;
	assert_int_equal(urma_delete_jetty_grp(g), URMA_SUCCESS);
	return 0;
}

static int cycle_notifier(void)
{
	urma_notifier_t *n = urma_create_notifier(ctx);

	if (!n)
		return errno;
	assert_int_equal(urma_delete_notifier(n), URMA_SUCCESS);
	return 0;
}

static int cycle_token_id(void)
{
	urma_token_id_t *t = urma_alloc_token_id(ctx);

	if (!t)
		return errno;
	assert_int_equal(urma_free_token_id(t), URMA_SUCCESS);
	return 0;
}

static int cycle_segment(void)
{
	urma_seg_cfg_t cfg = { .va = (uintptr_t)memory,
			       .len = sizeof(memory),
			       .flag.bs.access = URMA_ACCESS_READ };
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_READ };
	urma_target_seg_t *s = urma_register_seg(ctx, &cfg), *imported;
	int error;

	if (!s)
		return errno;
	imported = urma_import_seg(ctx, &s->seg, NULL, 0, flag);
	error = imported ? 0 : errno;
	if (imported)
		assert_int_equal(urma_unimport_seg(imported), URMA_SUCCESS);
	assert_int_equal(urma_unregister_seg(s), URMA_SUCCESS);
	return error;
}

static int cycle_import(void)
{
	urma_rjetty_t *told;
	urma_target_jetty_t *t;
	uint32_t len;
	int error;

	if (urma_get_rjetty(jetty, &told, &len))
		return ENOMEM;
	t = urma_import_jetty(ctx, told, NULL);
	error = t ? 0 : errno;
	urma_put_rjetty(told);
	if (t)
		assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	return error;
}

static int cycle_import_jfr(void)
{
	urma_rjfr_t told = { .jfr_id = jfr->jfr_id, .trans_mode = URMA_TM_RM, .tp_type = URMA_CTP };
	urma_target_jetty_t *t = urma_import_jfr(ctx, &told, NULL);

	if (!t)
		return errno;
	assert_int_equal(urma_unimport_jfr(t), URMA_SUCCESS);
	return 0;
}

static int cycle_lists(void)
{
	urma_device_t **devices;
	urma_eid_info_t *eids;
	uint32_t n;
	int count;

	devices = urma_get_device_list(&count);
	if (!devices)
		return errno;
	eids = urma_get_eid_list(devices[0], &n);
	urma_free_device_list(devices);
	if (!eids)
		return errno;
	urma_free_eid_list(eids);
	return 0;
}

static const struct {
	const char *name;
	int (*cycle)(void);
} cycles[] = {
	{ "context", cycle_context },
	{ "jfce", cycle_jfce },
	{ "jfc", cycle_jfc },
	{ "jfr", cycle_jfr },
	{ "jfs", cycle_jfs },
	{ "jetty", cycle_jetty },
	{ "jetty in two steps", cycle_two_steps },
	{ "group", cycle_group },
	{ "notifier", cycle_notifier },
	{ "token id", cycle_token_id },
	{ "segment", cycle_segment },
	{ "imported jetty", cycle_import },
	{ "imported jfr", cycle_import_jfr },
	{ "lists", cycle_lists },
};
#define CYCLES (sizeof(cycles) / sizeof(*cycles))

static void without_memory_each_fails_cleanly(void **state)
{
	unsigned places = 0;

	(void)state;
	for (unsigned i = 0; i < CYCLES; i++) {
		for (unsigned nth = 1;; nth++) {
			int error;

			assert_true(nth < 200);
			errno = 0;
			refused = 0;
			refused_in = nth;
			error = cycles[i].cycle();
			refused_in = 0;
			if (!refused) { /* it asks for no more than that */
				assert_int_equal(error, 0);
				break;
			}
			places++;
			/* Done without, or told. */
			if (error != 0 && error != ENOMEM && error != EIO)
				fail_msg("%s, allocation %u: errno %d (%s)", cycles[i].name, nth,
					 error, xtal_last_error());
			assert_int_equal(cycles[i].cycle(), 0);
		}
	}
	assert_true(places >= CYCLES);
}

/* ---- Descriptors that are refused ---- */

static void without_descriptors_what_needs_them_fails(void **state)
{
	struct rlimit before, none;
	int fd[64], n = 0;

	(void)state;
	for (unsigned i = 0; i < CYCLES; i++)
		assert_int_equal(cycles[i].cycle(), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	none.rlim_cur = (rlim_t)fd[n] + 1; /* there may be holes below */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	do
		fd[++n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (n < 63 && fd[n] >= 0);
	errno = 0;
	assert_null_with(urma_create_jfce(ctx), EIO, "no file descriptor is left");
	assert_null_with(urma_create_notifier(ctx), EIO, "no file descriptor is left");
	assert_null_with(urma_create_context(ctx->dev, 0), EIO, "no file descriptor is left");
	assert_int_equal(cycle_jetty(), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	while (n--)
		close(fd[n]);
	for (unsigned i = 0; i < CYCLES; i++)
		assert_int_equal(cycles[i].cycle(), 0);
}

/* ---- Queues that are full ---- */

/* Nobody lives at that port: requests wait until they are given up. */
static urma_target_jetty_t *import_nobody(void)
{
	urma_rjetty_t nobody = { .jetty_id = jetty->jetty_id,
				 .trans_mode = URMA_TM_RM,
				 .type = URMA_JETTY,
				 .tp_type = URMA_CTP };

	return urma_import_jetty(ctx, &nobody, NULL);
}

static void a_full_queue_takes_no_more(void **state)
{
	enum {
		DEPTH = 8
	};
	urma_jfs_wr_flag_t flag = { .bs.complete_enable = 1 };
	urma_target_jetty_t *to = import_nobody();
	urma_sge_t sge = { .addr = (uintptr_t)memory, .len = 8 };
	urma_jfs_wr_t wr[DEPTH + 2] = { 0 }, *bad = NULL;
	urma_jfr_wr_t rwr[DEPTH + 2] = { 0 }, *bad_r = NULL;
	urma_seg_cfg_t cfg = { .va = (uintptr_t)memory,
			       .len = sizeof(memory),
			       .flag.bs.access = 7 };
	urma_jfs_cfg_t s_cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_t *jfs = urma_create_jfs(ctx, &s_cfg);
	urma_target_seg_t *seg;
	urma_cr_t cr[DEPTH];
	int got = 0;

	(void)state;
	cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
	seg = urma_register_seg(ctx, &cfg);
	assert_true(to && jfs && seg);
	for (unsigned i = 0; i < DEPTH + 2; i++) {
		/* No receive is posted: they wait. */
		wr[i] = (urma_jfs_wr_t){ .opcode = URMA_OPC_SEND,
					 .tjetty = to,
					 .flag = flag,
					 .user_ctx = i,
					 .send.src = { &sge, 1 },
					 .next = i < DEPTH + 1 ? &wr[i + 1] : NULL };
		rwr[i] = (urma_jfr_wr_t){ .src = { &sge, 1 },
					  .user_ctx = i,
					  .next = i < DEPTH + 1 ? &rwr[i + 1] : NULL };
	}
	assert_int_equal(urma_post_jfs_wr(jfs, wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr[DEPTH]); /* those before it are posted */
	assert_refused("full");
	assert_int_equal(urma_post_jfs_wr(jfs, &wr[DEPTH + 1], &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr[DEPTH + 1]);
	assert_int_equal(urma_send(jfs, to, seg, (uintptr_t)memory, 8, flag, 9), URMA_ENOMEM);
	assert_int_equal(
		urma_write(jfs, to, seg, seg, (uintptr_t)memory, (uintptr_t)memory, 8, flag, 9),
		URMA_ENOMEM);
	assert_int_equal(
		urma_read(jfs, to, seg, seg, (uintptr_t)memory, (uintptr_t)memory, 8, flag, 9),
		URMA_ENOMEM);
	assert_int_equal(urma_post_jetty_send_wr(jetty, wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr[DEPTH]);
	/* The receives, by which they end. */
	assert_int_equal(urma_post_jetty_recv_wr(jetty, rwr, &bad_r), URMA_ENOMEM);
	assert_ptr_equal(bad_r, &rwr[DEPTH]);
	assert_int_equal(urma_post_jfr_wr(jfr, &rwr[DEPTH + 1], &bad_r), URMA_ENOMEM);
	assert_ptr_equal(bad_r, &rwr[DEPTH + 1]);
	assert_int_equal(urma_recv(jfr, seg, (uintptr_t)memory, 8, 9), URMA_ENOMEM);
	for (unsigned i = 0; got < 16 && i < 100000; i++) { /* 8 sent, 8 received */
		int n = urma_poll_jfc(jfc, DEPTH, cr);

		for (int k = 0; k < n; k++)
			assert_int_equal(cr[k].status, URMA_CR_SUCCESS);
		got += n;
		usleep(n ? 0 : 1000);
	}
	assert_int_equal(got, 16);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(to), URMA_SUCCESS);
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
}

/* ---- The rest ---- */

static void states_of_a_jetty_follow_the_table(void **state)
{
	static const bool may[4][4] = { /* from RESET, READY, SUSPENDED, ERROR */
					{ true, true, false, false },
					{ false, true, true, true },
					{ false, false, true, true },
					{ true, false, false, true }
	};

	(void)state;
	for (unsigned from = 0; from < 4; from++) {
		for (unsigned to = 0; to < 5; to++) {
			urma_jetty_attr_t attr = { .mask = JETTY_STATE };
			urma_jetty_t *j = make_jetty(jfr);

			assert_non_null(j);
			if (from == 0) {
				attr.state = URMA_JETTY_STATE_ERROR;
				assert_int_equal(urma_modify_jetty(j, &attr), URMA_SUCCESS);
			}
			attr.state = (urma_jetty_state_t)from;
			assert_int_equal(urma_modify_jetty(j, &attr), URMA_SUCCESS);
			attr.state = (urma_jetty_state_t)to;
			assert_int_equal(urma_modify_jetty(j, &attr),
					 to < 4 && may[from][to] ? URMA_SUCCESS : URMA_FAIL);
			assert_int_equal(urma_delete_jetty(j), URMA_SUCCESS);
		}
	}
}

static void two_steps_end_like_one(void **state)
{
	urma_jetty_grp_cfg_t g_cfg = { .name = "full", .policy = URMA_JETTY_GRP_POLICY_RR };
	urma_jetty_t *members[URMA_MAX_JETTY_IN_JETTY_GRP], *one_more, *rc;
	urma_jetty_grp_t *full = urma_create_jetty_grp(ctx, &g_cfg);
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);
	urma_jfr_t *rc_jfr = make_jfr(URMA_TM_RC);
	urma_target_jetty_t *to;
	urma_rjetty_t told;

	(void)state;
	assert_true(full && rc_jfr);
	cfg.jetty_grp = full;
	for (unsigned i = 0; i < URMA_MAX_JETTY_IN_JETTY_GRP; i++) {
		members[i] = urma_create_jetty(ctx, &cfg);
		assert_non_null(members[i]);
	}
	assert_int_equal(urma_alloc_jetty(ctx, &cfg, &one_more), URMA_SUCCESS);
	assert_int_equal(urma_active_jetty(one_more), URMA_ENOPERM);
	assert_refused("members");
	assert_int_equal(urma_delete_jetty(members[0]), URMA_SUCCESS);
	assert_int_equal(urma_active_jetty(one_more), URMA_SUCCESS);
	members[0] = one_more;
	for (unsigned i = 0; i < URMA_MAX_JETTY_IN_JETTY_GRP; i++)
		assert_int_equal(urma_delete_jetty(members[i]), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty_grp(full), URMA_SUCCESS);

	rc = make_jetty(rc_jfr);
	assert_non_null(rc);
	told = (urma_rjetty_t){ .jetty_id = rc->jetty_id,
				.trans_mode = URMA_TM_RC,
				.type = URMA_JETTY,
				.tp_type = URMA_CTP };
	to = urma_import_jetty(ctx, &told, NULL);
	assert_non_null(to);
	assert_int_equal(urma_bind_jetty(rc, to), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jetty(rc), URMA_ENOPERM);
	assert_refused("unbind");
	assert_int_equal(urma_unbind_jetty(rc), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jetty(rc), URMA_SUCCESS);
	assert_int_equal(urma_free_jetty(rc), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(to), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(rc_jfr), URMA_SUCCESS);
}

/* A non-blocking completion queue with an event that nobody acknowledged. */
static void deactivation_does_not_wait_either(void **state)
{
	urma_jfc_cfg_t cfg = { .depth = 8, .jfce = jfce, .flag.bs.non_blocking = 1 };
	urma_jfc_t *j = urma_create_jfc(ctx, &cfg), *fired;
	urma_jfs_cfg_t s_cfg = jfs_cfg(URMA_TM_RM);
	urma_jfs_wr_t wr = { .opcode = URMA_OPC_NOP, .flag.bs.complete_enable = 1 }, *bad;
	urma_target_jetty_t *to = import_nobody();
	uint32_t one = 1;
	urma_jfs_t *jfs;

	(void)state;
	s_cfg.jfc = j;
	jfs = urma_create_jfs(ctx, &s_cfg);
	assert_true(j && to && jfs);
	wr.tjetty = to;
	assert_int_equal(urma_rearm_jfc(j, false), URMA_SUCCESS);
	assert_int_equal(urma_post_jfs_wr(jfs, &wr, &bad), URMA_SUCCESS);
	assert_int_equal(urma_wait_jfc(jfce, 1, 20000, &fired), 1);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
	assert_int_equal(urma_deactive_jfc(j), URMA_EAGAIN);
	urma_ack_jfc(&j, &one, 1);
	assert_int_equal(urma_deactive_jfc(j), URMA_SUCCESS);
	assert_int_equal(urma_free_jfc(j), URMA_SUCCESS);
	assert_int_equal(urma_unimport_jetty(to), URMA_SUCCESS);
}

static int open_all(void **state)
{
	urma_jetty_grp_cfg_t cfg = { .name = "one", .policy = URMA_JETTY_GRP_POLICY_RR };

	if (fixture_open(state))
		return -1;
	jfce = urma_create_jfce(ctx);
	jfr = make_jfr(URMA_TM_RM);
	group = urma_create_jetty_grp(ctx, &cfg);
	jetty = jfr ? make_jetty(jfr) : NULL;
	return jfce && jetty && group ? 0 : -1;
}

/* Everything can be given back: nothing that failed has left anything. */
static int close_all(void **state)
{
	return urma_delete_jetty(jetty) || urma_delete_jetty_grp(group) || urma_delete_jfr(jfr) ||
	       urma_delete_jfce(jfce) || fixture_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_each_fails_cleanly),
		cmocka_unit_test(without_descriptors_what_needs_them_fails),
		cmocka_unit_test(a_full_queue_takes_no_more),
		cmocka_unit_test(states_of_a_jetty_follow_the_table),
		cmocka_unit_test(two_steps_end_like_one),
		cmocka_unit_test(deactivation_does_not_wait_either),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
