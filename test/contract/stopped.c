/* SPDX-License-Identifier: MIT */
/*
 * The target's program does nothing: it computes, sleeps, or is stopped. Direct paths go on;
 * a message to a stopped owner ends with status 9 in time, and never lands afterwards
 * (F93, F10). ctest: timeout=120 paths=map,cma,ring,tcp adopt hosts
 */
#include "lib/pair.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN     (512 * 1024ul)
#define TIMEOUT (suite_between_hosts() ? 1500u : 400u) /* XTAL_TIMEOUT_MS */

static char log_name[64];

/* The log names what the owner was found to do. */
static bool log_has(const char *want)
{
	FILE *f = fopen(log_name, "r");
	char line[1024];
	bool has = false;

	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, want);
	if (f)
		fclose(f);
	return has;
}

static bool by_messages(void)
{
	return suite_path == XTAL_PATH_RING || suite_path == XTAL_PATH_TCP;
}

static int64_t compute(void *args)
{
	uint64_t end = suite_now_ms() + *(uint64_t *)args;

	while (suite_now_ms() < end)
		;
	return 0;
}

static int64_t sleep_long(void *args)
{
	suite_sleep_us((unsigned)*(uint64_t *)args * 1000);
	return 0;
}

/* One of each kind, all ending well within the time limit. */
static void do_each(struct pair *p, uint64_t seed)
{
	struct dma_seg local = part(p->local, 0, 5000), word = part(&p->remote, 8192, 8);
	struct dma_seg eight = part(p->local, 0, 8);

	pattern_fill(p->mem.data, 5000, seed, 0);
	assert_int_equal(dma_write(p->queue, &p->remote, &local), DMA_STATUS_OK);
	assert_ok(p->queue, 5000);
	memset(p->mem.data, 0, 5000);
	assert_int_equal(dma_read(p->queue, &p->remote, &local), DMA_STATUS_OK);
	assert_ok(p->queue, 5000);
	assert_int_equal(pattern_check(p->mem.data, 5000, seed, 0), -1);
	assert_int_equal(dma_write_with_notify(p->queue, &p->remote, &local, &word, seed), 0);
	assert_ok(p->queue, 5000);
	assert_int_equal(dma_faa(p->queue, &word, &eight, 1), DMA_STATUS_OK);
	assert_ok(p->queue, 8);
	assert_int_equal(dma_cas(p->queue, &word, &eight, seed + 1, 7), DMA_STATUS_OK);
	assert_ok(p->queue, 8);
	assert_memory_equal(p->mem.data, &(uint64_t){ seed + 1 }, 8);
	assert_int_equal(dma_write(p->queue, &p->remote, p->local), DMA_STATUS_OK);
	assert_ok(p->queue, LEN);
}

static void a_busy_owner_is_not_needed(void **state)
{
	uint64_t ms = 300, end;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	end = suite_now_ms() + ms;
	actor_start(p.actor, compute, &ms, sizeof(ms));
	for (uint64_t i = 0; i < 5 || suite_now_ms() < end; i++)
		do_each(&p, i);
	assert_int_equal(actor_finish(p.actor, NULL, 0), 0);
	pair_close(&p);
}

static void a_sleeping_owner_is_not_needed(void **state)
{
	uint64_t ms = 300, end;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	end = suite_now_ms() + ms;
	actor_start(p.actor, sleep_long, &ms, sizeof(ms));
	for (uint64_t i = 0; i < 5 || suite_now_ms() < end; i++)
		do_each(&p, i);
	assert_int_equal(actor_finish(p.actor, NULL, 0), 0);
	pair_close(&p);
}

static void direct_paths_reach_a_stopped_owner(void **state)
{
	struct dma_seg local;
	struct pair p;

	(void)state;
	if (by_messages())
		suite_skip("messages need the owner's agent");
	pair_open(&p, LEN);
	local = part(p.local, 0, 3000);
	assert_int_equal(dma_write(p.queue, &p.remote, &local), DMA_STATUS_OK);
	assert_ok(p.queue, 3000);
	actor_stop(p.actor);
	for (unsigned i = 1; i <= 50; i++) {
		pattern_fill(p.mem.data, LEN, i, 0);
		assert_int_equal(dma_write(p.queue, &p.remote, p.local), DMA_STATUS_OK);
		assert_ok(p.queue, LEN);
		memset(p.mem.data, 0, 3000);
		assert_int_equal(dma_read(p.queue, &p.remote, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 3000);
		assert_int_equal(pattern_check(p.mem.data, 3000, i, 0), -1);
	}
	kill(p.actor->pid, SIGCONT);
	pair_assert_pattern(&p, p.remote.sva, LEN, 50);
	pair_close(&p);
}

/* Every operation ends in time with 9; none of them lands when the owner runs again. */
static void a_stopped_owner_ends_messages_with_9(void **state)
{
	struct dma_seg local, remote;
	struct ask a = { 0 };
	uint64_t begin;
	struct pair p;

	(void)state;
	if (!by_messages())
		suite_skip("direct paths do not need the owner");
	for (unsigned round = 0; round < 4; round += suite_between_hosts() ? 2 : 1) {
		pair_open(&p, LEN);
		pair_fill(&p, p.remote.sva, LEN, 77);
		actor_stop(p.actor);
		memset(p.mem.data, 0x5a, LEN);
		begin = suite_now_ms();
		for (unsigned i = 0; i < 32; i++) { /* more bytes than the ring holds */
			p.queue->cfg.user_ctx = i;
			remote = part(&p.remote, 16 * 1024 * i, 8);
			local = part(p.local, 0, round == 0 ? 8 : round == 1 ? 16384 : 1000);
			if (round == 2)
				assert_int_equal(dma_read(p.queue, &remote, &local), 0);
			else if (round == 3)
				assert_int_equal(dma_write_with_notify(p.queue, &remote, &local,
								       &p.remote, 1),
						 0);
			else
				assert_int_equal(dma_write(p.queue, &remote, &local), 0);
		}
		for (unsigned i = 0; i < 32; i++) {
			struct dma_cr cr = take_cr(p.queue);

			assert_int_equal(cr.user_ctx, i);
			assert_int_equal(cr.status, 9);
		}
		/* At once, not one after the other; and not before the time. */
		assert_in_range(suite_now_ms() - begin, TIMEOUT - 50, TIMEOUT * 3 + 4000);
		assert_int_equal(pattern_check_all(p.mem.data, LEN, 0x5a), -1);
		if (suite_path == XTAL_PATH_RING)
			assert_true(
				log_has("made no progress for 400 ms (its process is stopped)"));
		kill(p.actor->pid, SIGCONT);
		suite_sleep_us(200000);
		pair_assert_pattern(&p, p.remote.sva, LEN, 77);
		/* The queue, and the owner, are as good as new. */
		p.queue->cfg.user_ctx = 99;
		remote = part(&p.remote, 0, 8);
		local = part(p.local, 0, 8);
		assert_int_equal(dma_write(p.queue, &remote, &local), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		pair_peek(&p, p.remote.sva, a.bytes, 8);
		assert_int_equal(pattern_check_all(a.bytes, 8, 0x5a), -1);
		pair_close(&p);
	}
}

/* Contact with an owner that is stopped from the beginning. */
static void first_contact_with_a_stopped_owner_ends_with_9(void **state)
{
	struct dma_seg local, remote;
	struct dma_queue *q;
	struct pair p, other;
	uint64_t begin;

	(void)state;
	pair_open(&p, LEN);
	pair_open(&other, LEN); /* a fresh link: from another context */
	remote = p.remote;
	dma_free_queue(p.queue);
	dma_unregister_seg(p.ctx, p.local);
	dma_delete_context(p.ctx);
	p.ctx = dma_create_context(&p.list[0]);
	p.queue = q = pair_queue(&p, 64);
	p.local = dma_register_seg(
		p.ctx, &(struct dma_seg_cfg){ .addr = (uintptr_t)p.mem.data, .len = LEN });
	actor_stop(p.actor);
	local = part(p.local, 0, 8);
	begin = suite_now_ms();
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(dma_write(q, &remote, &local), DMA_STATUS_OK);
		assert_in_range(suite_now_ms() - begin, 0, TIMEOUT - 100); /* a post never blocks */
	}
	for (unsigned i = 0; i < 40; i++)
		assert_status(q, 9);
	assert_in_range(suite_now_ms() - begin, TIMEOUT - 50, TIMEOUT * 3 + 4000);
	assert_int_equal(dma_write(other.queue, &other.remote, other.local), DMA_STATUS_OK);
	assert_ok(other.queue, LEN); /* nobody else is affected */
	kill(p.actor->pid, SIGCONT);
	assert_int_equal(dma_write(q, &remote, &local), DMA_STATUS_OK);
	assert_ok(q, 8);
	pair_close(&p);
	pair_close(&other);
}

static void a_dead_owner_ends_everything_with_9(void **state)
{
	struct dma_seg local;
	struct dma_aeqe event;
	uint64_t begin;
	struct pair p;

	(void)state;
	for (unsigned round = 0; round < suite_scale(20); round++) {
		pair_open(&p, LEN);
		local = part(p.local, 0, round % 2 ? LEN : 100);
		for (unsigned i = 0; i < 40; i++)
			assert_int_equal(dma_write(p.queue, &p.remote, &local), DMA_STATUS_OK);
		kill(p.actor->pid, SIGKILL);
		begin = suite_now_ms();
		for (unsigned i = 0; i < 40; i++) {
			struct dma_cr cr = take_cr(p.queue);

			assert_true(cr.status == 0 || cr.status == 9);
		}
		assert_in_range(suite_now_ms() - begin, 0, 2000);
		/* Over map the last bytes may still go into memory that nobody has. */
		for (unsigned i = 0; i < 1000; i++) {
			assert_int_equal(dma_write(p.queue, &p.remote, &local), DMA_STATUS_OK);
			if (take_cr(p.queue).status == 9)
				break;
			assert_true(i < 999);
			suite_sleep_us(1000);
		}
		/* No queue broke: each operation has told it, and no event does. */
		memset(&event, 0, sizeof(event));
		assert_int_equal(dma_wait_ae(p.ctx, &event), 0);
		assert_int_equal(dma_write(p.queue, &p.remote, &local), DMA_STATUS_OK);
		assert_status(p.queue, 9);
		actor_free(p.actor);
		p.actor = NULL;
		pair_close(&p);
	}
}

static struct xtal_path_verdict ring_verdict(struct pair *p)
{
	struct xtal_descriptor d = { .va = p->remote.sva,
				     .len = p->remote.len,
				     .tid = p->remote.tid,
				     .token = p->remote.token_value,
				     .token_valid = p->remote.token_value_valid };
	struct xtal_path_info info;

	assert_int_equal(xtal_path_query(p->queue, &d, -1, &info), 0);
	for (uint32_t i = 0; i < info.candidates; i++)
		if (info.candidate[i].kind == XTAL_PATH_RING)
			return info.candidate[i];
	fail_msg("no verdict on the ring");
	return info.candidate[0];
}

/* A path that is named usable was tried. */
static void the_ring_is_usable_while_the_owner_answers(void **state)
{
	struct xtal_path_verdict v;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	v = ring_verdict(&p);
	if (suite_path != XTAL_PATH_RING && !suite_adopted) { /* one path only is allowed */
		assert_false(v.usable);
		if (!suite_between_hosts())
			assert_non_null(strstr(v.reason, "XTAL_PATHS"));
		pair_close(&p);
		return;
	}
	assert_true(v.usable);
	assert_non_null(strstr(v.reason, "8 bytes read"));
	actor_stop(p.actor);
	v = ring_verdict(&p);
	assert_false(v.usable);
	assert_non_null(strstr(v.reason, "did not answer"));
	kill(p.actor->pid, SIGCONT);
	v = ring_verdict(&p);
	assert_true(v.usable);
	do_each(&p, 3); /* the question without an answer is in nobody's way */
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_owner_is_not_needed),
		cmocka_unit_test(a_sleeping_owner_is_not_needed),
		cmocka_unit_test(direct_paths_reach_a_stopped_owner),
		cmocka_unit_test(the_ring_is_usable_while_the_owner_answers),
		cmocka_unit_test(a_stopped_owner_ends_messages_with_9),
		cmocka_unit_test(first_contact_with_a_stopped_owner_ends_with_9),
		cmocka_unit_test(a_dead_owner_ends_everything_with_9),
	};

	static const char *const env[] = { "XTAL_TIMEOUT_MS=400", NULL };
	static const char *const env_hosts[] = { "XTAL_TIMEOUT_MS=1500", NULL };
	bool hosts = argc > 1 && strpbrk(argv[1], "46");
	int failed;

	snprintf(log_name, sizeof(log_name), "/tmp/xtal-stopped-%d.log", (int)getpid());
	setenv("XTAL_LOG", log_name, 1);
	setenv("XTAL_LOG_LEVEL", "info", 1);
	failed = suite_run(argc, argv, "stopped", tests, sizeof(tests) / sizeof(tests[0]),
			   hosts ? env_hosts : env);
	unlink(log_name);
	return failed;
}
