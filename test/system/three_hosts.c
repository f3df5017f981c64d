/* SPDX-License-Identifier: MIT */
/*
 * Three hosts, TLS between them: two count on the third's word at the same time. A cable is
 * pulled and put back, one of them dies, the owner dies and another takes its place: counters
 * stay exact, everything ends in time, and who has no part in it does not notice.
 */
/* ctest: timeout=120 plain */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cdma_u_lib.h"
#include "lib/netns.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define LIMIT_MS "3000"
#define LIMIT_NS UINT64_C(3000000000)
#define PATIENCE 60000u

static char key_file[64], log_file[80];

struct counter {
	unsigned host;
	_Atomic uint32_t ok, failed, last_status;
	_Atomic uint64_t longest_ns;
};

struct scene {
	struct netns n;
	struct peer_export export;
	_Atomic uint32_t ready, quit, stop;
	_Atomic uint64_t *word; /* the owner's, in shared memory so that the test sees it */
	struct counter counter[2];
};

static struct scene *s;

static void settle(unsigned host)
{
	netns_enter(s->n.host[host]);
	setenv("XTAL_KEY_FILE", key_file, 1);
	setenv("XTAL_TIMEOUT_MS", LIMIT_MS, 1);
	setenv("XTAL_LOG", "/dev/null", 0);
}

static void open_on(struct peer *p, unsigned host)
{
	struct dev_eid eid = { .dw0 = netns_eid(host) };

	p->list = dma_get_device_by_eid(&eid);
	p->devices = 1;
	p->ctx = p->list ? dma_create_context(p->list) : NULL;
	if (!p->ctx)
		proc_die("host %u: %s", host, xtal_last_error());
}

static int owner(void *arg)
{
	struct peer p;

	(void)arg;
	settle(0);
	open_on(&p, 0);
	peer_register(&p, (void *)(uintptr_t)s->word, 4096, &s->export);
	atomic_fetch_add(&s->ready, 1);
	while (!atomic_load(&s->quit))
		proc_sleep_us(1000);
	return 0;
}

/* Adds 1 until it has done so often enough, or is told to stop. */
static int counts(void *arg)
{
	struct counter *c = arg;
	struct queue_cfg cfg = { .queue_depth = 16, .rmt_eid.dw0 = netns_eid(0) };
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	if (c->host == 2) { /* the one whose cable is pulled */
		setenv("XTAL_LOG", log_file, 1);
		setenv("XTAL_LOG_LEVEL", "info", 1);
	}
	settle(c->host);
	open_on(&p, c->host);
	local = peer_register(&p, peer_memory(PEER_TCP, 4096), 4096, NULL);
	q = dma_alloc_queue(p.ctx, &cfg);
	if (!q)
		proc_die("no queue: %s", xtal_last_error());
	while (!atomic_load(&s->stop)) {
		uint64_t began = proc_now(), took;
		int status = peer_faa(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8), 1);

		took = proc_now() - began;
		if (took > atomic_load(&c->longest_ns))
			atomic_store(&c->longest_ns, took);
		atomic_store(&c->last_status, (uint32_t)status);
		atomic_fetch_add(status ? &c->failed : &c->ok, 1);
		proc_sleep_us(500);
	}
	return 0;
}

static void await_more(struct counter *c, uint32_t more)
{
	uint32_t before = atomic_load(&c->ok);

	for (unsigned ms = 0; atomic_load(&c->ok) - before < more; ms++) {
		assert_true(ms < PATIENCE);
		proc_sleep_us(1000);
	}
}

static unsigned lines_with(const char *words)
{
	char line[512];
	unsigned n = 0;
	FILE *f = fopen(log_file, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, words) != NULL;
	fclose(f);
	return n;
}

static int begin(void **state)
{
	const char *why;

	(void)state;
	memset(s, 0, sizeof(*s));
	s->word = proc_shared(4096);
	why = netns_create(&s->n, 3);
	if (why)
		proc_skip("%s", why);
	s->counter[0].host = 1;
	s->counter[1].host = 2;
	return 0;
}

static int end(void **state)
{
	int failed = proc_end_all(state);

	netns_destroy(&s->n);
	return failed;
}

static void report(const char *what)
{
	print_message("          %s: %u and %u additions, longest %llu and %llu ms\n", what,
		      atomic_load(&s->counter[0].ok), atomic_load(&s->counter[1].ok),
		      (unsigned long long)atomic_load(&s->counter[0].longest_ns) / 1000000,
		      (unsigned long long)atomic_load(&s->counter[1].longest_ns) / 1000000);
}

static void a_cable_is_pulled(void **state)
{
	pid_t own = proc_start(owner, NULL), one, two;
	uint32_t before;

	(void)state;
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	one = proc_start(counts, &s->counter[0]);
	two = proc_start(counts, &s->counter[1]);
	await_more(&s->counter[0], 50);
	await_more(&s->counter[1], 50);
	before = atomic_load(&s->counter[0].ok);
	netns_unplug(&s->n, 2, true);
	proc_sleep_us(1000000);
	assert_true(atomic_load(&s->counter[0].ok) - before > 20); /* as if nothing was */
	netns_unplug(&s->n, 2, false);
	await_more(&s->counter[1], 50);
	atomic_store(&s->stop, 1);
	assert_int_equal(proc_join(one, PATIENCE), 0);
	assert_int_equal(proc_join(two, PATIENCE), 0);
	report("cable");
	assert_int_equal(atomic_load(&s->counter[0].failed), 0);
	assert_int_equal(atomic_load(&s->counter[1].failed), 0);
	assert_true(atomic_load(s->word) ==
		    atomic_load(&s->counter[0].ok) + atomic_load(&s->counter[1].ok));
	/* Attempts to connect have their time, also when the first packet is lost. */
	assert_in_range(lines_with("no connection"), 0,
			atomic_load(&s->counter[1].longest_ns) / (LIMIT_NS / 4) + 1);
	assert_true(atomic_load(&s->counter[0].longest_ns) < proc_slack(LIMIT_NS / 3));
	assert_true(atomic_load(&s->counter[1].longest_ns) < proc_slack(LIMIT_NS));
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
}

static void one_dies_then_the_owner(void **state)
{
	pid_t own = proc_start(owner, NULL), one, two;
	uint64_t before, began;

	(void)state;
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	one = proc_start(counts, &s->counter[0]);
	two = proc_start(counts, &s->counter[1]);
	await_more(&s->counter[0], 20);
	await_more(&s->counter[1], 20);
	proc_kill(two);
	await_more(&s->counter[0], 100);
	/* The dead one's last addition may or may not have been executed. */
	before = atomic_load(&s->counter[1].ok);
	assert_in_range(atomic_load(s->word) - atomic_load(&s->counter[0].ok) - before, 0, 2);
	proc_kill(own);
	began = proc_now();
	while (!atomic_load(&s->counter[0].failed) && proc_now() - began < 2 * LIMIT_NS)
		proc_sleep_us(500);
	/* The owner's kernel says that it is gone: no time limit is waited for. */
	assert_true(proc_now() - began < proc_slack(LIMIT_NS / 2));
	assert_int_equal(atomic_load(&s->counter[0].last_status), DMA_CR_ACK_TIMEOUT_ERR);
	atomic_store(&s->stop, 1);
	assert_int_equal(proc_join(one, PATIENCE), 0);
	report("deaths");
	/* Another owner in its place: new descriptors work at once. */
	before = atomic_load(s->word);
	own = proc_start(owner, NULL);
	assert_true(proc_await(&s->ready, 2, PATIENCE));
	atomic_store(&s->stop, 0);
	memset(&s->counter[0].ok, 0, sizeof(s->counter[0].ok));
	one = proc_start(counts, &s->counter[0]);
	await_more(&s->counter[0], 20);
	atomic_store(&s->stop, 1);
	assert_int_equal(proc_join(one, PATIENCE), 0);
	assert_true(atomic_load(s->word) == before + atomic_load(&s->counter[0].ok));
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cable_is_pulled, begin, end),
		cmocka_unit_test_setup_teardown(one_dies_then_the_owner, begin, end),
	};
	int failed;

	if (proc_emulated())
		return proc_skip_all("the emulator does not know how to make hosts");
	s = proc_shared(sizeof(*s));
	snprintf(key_file, sizeof(key_file), "/tmp/xtal-key3-%d", getpid());
	snprintf(log_file, sizeof(log_file), "%s.log", key_file);
	netns_key(key_file, 3);
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(key_file);
	unlink(log_file);
	return failed;
}
