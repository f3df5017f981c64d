/* SPDX-License-Identifier: MIT */
/*
 * Two hosts and a middle man who does to their connections what networks do: every operation
 * ends in time, what is reported is true, and counters are exact however often the line is cut.
 * Then a host's own addresses: peers on one host share memory whichever they use.
 */
/* ctest: timeout=400 label=soak plain */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cdma_u_lib.h"
#include "lib/capture.h"
#include "lib/late.h"
#include "lib/netns.h"
#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/proxy.h"
#include "xtal.h"

#define SEGMENT    ((size_t)1 << 20)
#define BLOCK      ((size_t)100000)
#define TIMEOUT_MS 3000u
#define PATIENCE   120000u

static char key_file[64];

struct scene {
	struct netns n;
	struct peer_export export;
	_Atomic uint32_t ready, quit, go;
	bool tls;
	unsigned rounds;
	/* what the initiator saw */
	uint64_t counter, ok, failed, longest_ns;
	int last_status;
	char path[16], reason[160];
};

static struct scene *s;

/* ---- The two sides ---- */

static void settle(unsigned host)
{
	netns_enter(s->n.host[host]);
	setenv("XTAL_SECURITY", s->tls ? "tls" : "none", 1);
	setenv("XTAL_KEY_FILE", key_file, 1);
	setenv("XTAL_TIMEOUT_MS", "3000", 1);
	setenv("XTAL_LOG", "/dev/null", 0);
}

/* A context on the device that has the host's IPv4 address. */
static void open_on(struct peer *p, unsigned host)
{
	struct dev_eid eid = { .dw0 = netns_eid(host) };

	p->list = dma_get_device_by_eid(&eid);
	p->devices = 1;
	p->ctx = p->list ? dma_create_context(p->list) : NULL;
	if (!p->ctx)
		proc_die("host %u: %s", host, xtal_last_error());
}

static struct dma_queue *queue_to(struct peer *p, unsigned host)
{
	struct queue_cfg cfg = { .queue_depth = 64, .rmt_eid.dw0 = netns_eid(host) };
	struct dma_queue *q = dma_alloc_queue(p->ctx, &cfg);

	if (!q)
		proc_die("no queue: %s", xtal_last_error());
	return q;
}

static int owner(void *arg)
{
	struct peer p;
	unsigned host = *(unsigned *)arg;

	settle(host);
	open_on(&p, host);
	peer_register(&p, peer_memory(PEER_CMA, SEGMENT), SEGMENT, &s->export);
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->quit))
		proc_sleep_us(1000);
	return 0;
}

/* Time without what the machine did not let us run in. */
static uint64_t own_time(void)
{
	return proc_now() - late_ns();
}

/* Notes how an operation ended, and how long that took. */
static bool note(int status, uint64_t began)
{
	uint64_t now = own_time(), took = now > began ? now - began : 0;

	s->longest_ns = took > s->longest_ns ? took : s->longest_ns;
	s->last_status = status;
	return status == DMA_CR_SUCCESS;
}

/* Counts on the owner's first word, and moves blocks there and back, which must be whole. */
static int initiator(void *arg)
{
	unsigned to = *(unsigned *)arg;
	uint8_t *memory;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	settle(to == 0 ? 1 : 0);
	late_watch();
	open_on(&p, to == 0 ? 1 : 0);
	q = queue_to(&p, to);
	memory = peer_memory(PEER_CMA, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	for (unsigned i = 0; i < s->rounds && !atomic_load(&s->quit); i++) {
		uint64_t began = own_time();

		if (note(peer_faa(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8), 1),
			 began))
			s->ok++;
		else
			s->failed++;
		if (i % 4)
			continue;
		peer_fill(memory, BLOCK, i + 1);
		began = own_time();
		if (!note(peer_write(q, peer_remote(&s->export, 4096, BLOCK),
				     peer_part(local, 0, BLOCK)),
			  began))
			continue;
		memset(memory, 0, BLOCK);
		began = own_time();
		if (note(peer_read(q, peer_remote(&s->export, 4096, BLOCK),
				   peer_part(local, 0, BLOCK)),
			 began) &&
		    !peer_holds(memory, BLOCK, i + 1))
			proc_die("round %u: the block came back different", i);
	}
	atomic_store(&s->go, 1); /* the faults may end now */
	while (atomic_load(&s->go) != 2)
		proc_sleep_us(1000);
	/* In peace again: what the counter really is. */
	for (unsigned i = 0; i < 20; i++) {
		int status = peer_read(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8));

		if (status == DMA_CR_SUCCESS) {
			memcpy(&s->counter, memory, 8);
			return 0;
		}
		peer_path_taken(q, &s->export, s->reason, sizeof(s->reason));
		fprintf(stderr, "reading the counter: status %d, %s\n", status, s->reason);
	}
	proc_die("the counter cannot be read");
}

/* ---- The middle man ---- */

static struct proxy *stand_between(struct proxy_config config)
{
	struct sockaddr_in to = netns_ipv4(1, (uint16_t)s->export.tid), from = netns_ipv4(0, 0);
	struct proxy *proxy;

	memcpy(&config.listen, &to, sizeof(to));
	memcpy(&config.target, &to, sizeof(to));
	memcpy(&config.source, &from, sizeof(from));
	config.listen_ns = s->n.middle;
	config.connect_ns = s->n.back;
	proxy = proxy_start(&config);
	assert_non_null(proxy);
	return proxy;
}

static void need(const char *why)
{
	if (why)
		proc_skip("%s", why);
}

static void begin(bool tls)
{
	memset(s, 0, sizeof(*s));
	s->tls = tls;
	need(netns_create_middle(&s->n, 2));
}

static void end(void)
{
	netns_destroy(&s->n);
}

/* Owner, middle man, initiator; then the end of the faults. */
static struct proxy_counts play(const struct proxy_config *config, unsigned rounds)
{
	static unsigned one = 1;
	struct proxy_counts counts;
	struct proxy *proxy;
	pid_t owner_pid, initiator_pid;

	s->rounds = rounds;
	owner_pid = proc_start(owner, &one);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	proxy = stand_between(*config);
	initiator_pid = proc_start(initiator, &one);
	assert_true(proc_await(&s->go, 1, PATIENCE));
	proxy_read(proxy, &counts);
	proxy_stop(&proxy);
	proxy = stand_between((struct proxy_config){ .entries = 0 });
	atomic_store(&s->go, 2);
	assert_int_equal(proc_join(initiator_pid, PATIENCE), 0);
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(owner_pid, PATIENCE), 0);
	proxy_stop(&proxy);
	return counts;
}

static void judge(const char *name, const struct proxy_counts *c, bool all_must_succeed)
{
	print_message("          %-28s %3llu ok %2llu failed, counter %3llu, %2llu connections, "
		      "longest %llu ms\n",
		      name, (unsigned long long)s->ok, (unsigned long long)s->failed,
		      (unsigned long long)s->counter, (unsigned long long)c->connections,
		      (unsigned long long)(s->longest_ns / 1000000));
	/* What succeeded was counted once; what failed at most once. */
	assert_true(s->counter >= s->ok);
	assert_true(s->counter <= s->ok + s->failed);
	assert_true(s->longest_ns < proc_slack(3ull * TIMEOUT_MS * 1000000));
	if (all_must_succeed) {
		assert_int_equal(s->failed, 0);
		assert_int_equal(s->counter, s->ok);
	}
}

struct row {
	const char *name;
	struct proxy_fault fault;
	bool harmless; /* every operation succeeds all the same */
};

static void matrix(bool tls)
{
	static const struct row rows[] = {
		{ "nothing", { .end = PROXY_NEVER }, true },
		{ "reset at once", { .end = PROXY_RESET, .after = 1 }, true },
		{ "reset in a block", { .end = PROXY_RESET, .after = 50000 }, true },
		{ "reset on the way back", { .end = PROXY_RESET, .after = 150000 }, true },
		{ "closed early", { .end = PROXY_CLOSE, .after = 700 }, true },
		{ "closed in a block", { .end = PROXY_CLOSE, .after = 60000 }, true },
		{ "stalled", { .end = PROXY_STALL, .after = 30000, .stall_ms = 700 }, true },
		{ "delayed", { .delay_us = 3000 }, true },
		{ "single bytes", { .grain = 1, .grained = 1500 }, true },
		{ "half open", { .end = PROXY_LOSE, .after = 20000 }, true },
		{ "half open at once", { .end = PROXY_LOSE, .after = 100 }, true },
		{ "half open in the handshake", { .end = PROXY_LOSE, .after = 600 }, true },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_config config = { .entries = 2 };
		struct proxy_counts c;

		begin(tls);
		config.script[0] = rows[i].fault;
		c = play(&config, 40);
		judge(rows[i].name, &c, rows[i].harmless);
		end();
	}
}

static void faults_without_tls(void **state)
{
	(void)state;
	matrix(false);
}

static void faults_with_tls(void **state)
{
	(void)state;
	matrix(true);
}

/* Once the owner has answered, somebody else in its place only takes time: nothing has failed before the
 * owner can be sure not to execute it any more. */
static void a_stranger_answers_once(void **state)
{
	(void)state;
	for (unsigned tls = 0; tls < 2; tls++) {
		struct proxy_config config = { .entries = 3 };
		struct proxy_counts c;

		begin(tls);
		config.script[0] = (struct proxy_fault){ .end = PROXY_RESET, .after = 50000 };
		config.script[1].stranger = true;
		c = play(&config, 40);
		judge(tls ? "a stranger, TLS" : "a stranger", &c, true);
		assert_true(c.connections >= 3);
		end();
	}
}

/* Cut again and again at random places: every addition is executed exactly once. */
static void random_cuts(void **state)
{
	unsigned rounds = proc_rounds(150, 1500);

	(void)state;
	if (rounds < 75) /* too few would meet no cut */
		rounds = 75;
	for (unsigned tls = 0; tls < 2; tls++) {
		struct proxy_config config = {
			.seed = 7 + tls,
			.after = 300000,
			.ends = 1u << PROXY_RESET | 1u << PROXY_CLOSE,
		};
		struct proxy_counts c;

		begin(tls);
		c = play(&config, rounds);
		judge(tls ? "random cuts, TLS" : "random cuts", &c, true);
		assert_true(c.resets + c.closes > rounds / 8);
		end();
	}
}

/* Nobody lets us through: status 9, soon, and all of them. */
static void a_closed_door(void **state)
{
	struct proxy_config config = { .entries = 1 };
	struct proxy_counts c;

	(void)state;
	begin(true);
	config.script[0].refuse = true;
	c = play(&config, 3);
	judge("refused", &c, false);
	assert_int_equal(s->ok, 0);
	assert_int_equal(s->failed, 3);
	assert_int_equal(s->last_status, DMA_CR_ACK_TIMEOUT_ERR);
	end();
}

/* ---- Keys ---- */

static int with_key(void *arg)
{
	const char *file = arg;
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;

	settle(0);
	setenv("XTAL_KEY_FILE", file, 1);
	open_on(&p, 0);
	q = queue_to(&p, 1);
	local = peer_register(&p, peer_memory(PEER_CMA, 4096), 4096, NULL);
	s->last_status = peer_write(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8));
	peer_path_taken(q, &s->export, s->reason, sizeof(s->reason));
	return 0;
}

static void another_key_gets_nothing(void **state)
{
	static unsigned one = 1;
	char other[80];
	pid_t pid;

	(void)state;
	memset(s, 0, sizeof(*s));
	s->tls = true;
	need(netns_create(&s->n, 2));
	snprintf(other, sizeof(other), "%s.other", key_file);
	netns_key(other, 99);
	pid = proc_start(owner, &one);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	assert_int_equal(proc_run(with_key, other, PATIENCE), 0);
	assert_int_equal(s->last_status, DMA_CR_ACK_TIMEOUT_ERR);
	if (!strstr(s->reason, "key"))
		fail_msg("the reason does not name the key: %s", s->reason);
	/* The target serves those who have it. */
	assert_int_equal(proc_run(with_key, key_file, PATIENCE), 0);
	assert_int_equal(s->last_status, DMA_CR_SUCCESS);
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(pid, PATIENCE), 0);
	unlink(other);
	netns_destroy(&s->n);
}

/* ---- One host, real addresses ---- */

static int neighbour(void *arg)
{
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;
	unsigned kind;

	(void)arg;
	settle(1);
	open_on(&p, 1);
	q = queue_to(&p, 1);
	local = peer_register(&p, peer_memory(PEER_CMA, 4096), 4096, NULL);
	s->last_status = peer_write(q, peer_remote(&s->export, 0, 8), peer_part(local, 0, 8));
	kind = peer_path_taken(q, &s->export, s->reason, sizeof(s->reason));
	snprintf(s->path, sizeof(s->path), "%s", xtal_path_name(kind));
	return 0;
}

static void neighbours_share_memory(void **state)
{
	static unsigned one = 1;
	pid_t pid;

	(void)state;
	memset(s, 0, sizeof(*s));
	s->tls = true;
	need(netns_create(&s->n, 2));
	pid = proc_start(owner, &one);
	assert_true(proc_await(&s->ready, 1, PATIENCE));
	assert_int_equal(proc_run(neighbour, NULL, PATIENCE), 0);
	assert_int_equal(s->last_status, DMA_CR_SUCCESS);
	if (strcmp(s->path, "cma") != 0 && strcmp(s->path, "ring") != 0)
		fail_msg("neighbours use %s: %s", s->path, s->reason);
	atomic_store(&s->quit, 1);
	assert_int_equal(proc_join(pid, PATIENCE), 0);
	netns_destroy(&s->n);
}

/* ---- What goes over the wire ---- */

/* The dissector understands a real conversation; with TLS there is nothing to understand. */
static void captured(void **state)
{
	static unsigned one = 1;
	static char out[1 << 20];
	char path[80];

	(void)state;
	snprintf(path, sizeof(path), "%s.pcap", key_file);
	for (unsigned tls = 0; tls < 2; tls++) {
		struct capture capture;
		pid_t owner_pid, pid;
		const char *why;

		memset(s, 0, sizeof(*s));
		s->tls = tls;
		s->rounds = 8;
		need(netns_create(&s->n, 2));
		need(capture_start(&capture, s->n.host[1], path));
		owner_pid = proc_start(owner, &one);
		assert_true(proc_await(&s->ready, 1, PATIENCE));
		pid = proc_start(initiator, &one);
		assert_true(proc_await(&s->go, 1, PATIENCE));
		atomic_store(&s->go, 2);
		assert_int_equal(proc_join(pid, PATIENCE), 0);
		atomic_store(&s->quit, 1);
		assert_int_equal(proc_join(owner_pid, PATIENCE), 0);
		capture_stop(&capture);
		netns_destroy(&s->n);
		why = capture_dissect(path, "-Y xtal.type -T fields -e xtal.type", out,
				      sizeof(out));
		unlink(path);
		need(why);
		if (tls) {
			assert_string_equal(out, "");
			continue;
		}
		assert_non_null(strstr(out, "0x40")); /* HELLO */
		assert_non_null(strstr(out, "0x41")); /* WELCOME */
		assert_non_null(strstr(out, "0x01")); /* WRITE */
		assert_non_null(strstr(out, "0x02")); /* READ */
		assert_non_null(strstr(out, "0x03")); /* ATOMIC */
		assert_non_null(strstr(out, "0x20")); /* RESPONSE */
	}
}

static int remove_key(void **state)
{
	char err[80];

	(void)state;
	snprintf(err, sizeof(err), "%s.pcap.err", key_file);
	unlink(err);
	return unlink(key_file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(faults_without_tls, proc_end_all),
		cmocka_unit_test_teardown(faults_with_tls, proc_end_all),
		cmocka_unit_test_teardown(a_stranger_answers_once, proc_end_all),
		cmocka_unit_test_teardown(random_cuts, proc_end_all),
		cmocka_unit_test_teardown(a_closed_door, proc_end_all),
		cmocka_unit_test_teardown(another_key_gets_nothing, proc_end_all),
		cmocka_unit_test_teardown(neighbours_share_memory, proc_end_all),
		cmocka_unit_test_teardown(captured, proc_end_all),
	};
	const char *filter = getenv("XTAL_TEST_FILTER");

	if (proc_emulated())
		return proc_skip_all("the emulator does not know how to make hosts");
	if (filter)
		cmocka_set_test_filter(filter);
	s = proc_shared(sizeof(*s));
	snprintf(key_file, sizeof(key_file), "/tmp/xtal-key-%d", getpid());
	netns_key(key_file, 1);
	return cmocka_run_group_tests(tests, NULL, remove_key);
}
