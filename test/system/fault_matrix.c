/* SPDX-License-Identifier: MIT */
/*
 * Every kind of operation over every kind of line that a middle man spoils: delayed, cut, lost
 * without a word, byte by byte; IPv4 and IPv6, with TLS and without; one or two hosts work on the
 * memory of another, and send it messages. All of it succeeds, once: counters are exact, data
 * and notify words are whole, messages arrive once and in order. One world of hosts for each
 * combination, several worlds at a time.
 */
/* ctest: timeout=240 label=soak */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/pattern.h"
#include "lib/proc.h"
#include "lib/proxy.h"
#include "lib/rng.h"
#include "lib/urma_side.h"
#include "xtal.h"

#define OWNER     1u
#define MEMORY    ((size_t)256 << 10)
#define AREA(w)   (4096 + (w) * (size_t)(64 << 10))
#define BLOCK     40000u
#define WORD_CAS  64 /* of the first; the second's is 8 further */
#define WORD_TOLD 128
#define MESSAGE   3000u
#define ADDITIONS 4u
#define BUFFERS   3u /* that the owner has out */
#define PATIENCE  60000u

struct fault {
	const char *name;
	const char *timeout_ms; /* a quarter of it is how long silence is borne */
	unsigned entries;
	struct proxy_fault script[4];
};

static const struct fault faults[] = {
	{ "delayed", "20000", 1, { { .delay_us = 2000 } } },
	{ "cut",
	  "20000",
	  4,
	  { { .end = PROXY_RESET, .after = 3000 },
	    { .end = PROXY_CLOSE, .after = 70000 },
	    { .end = PROXY_RESET, .after = 50001 },
	    { .end = PROXY_NEVER } } },
	{ "lost without a word",
	  "5000",
	  3,
	  { { .end = PROXY_LOSE, .after = 30000 },
	    { .end = PROXY_LOSE, .after = 30000 },
	    { .end = PROXY_NEVER } } },
	{ "single bytes", "20000", 1, { { .grain = 1, .grained = 2000 } } },
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* What the processes of one world share. */
struct world {
	const struct fault *fault;
	bool tls, ipv6;
	unsigned hosts, rounds;
	struct netns n;
	struct urma_told told;
	uint8_t *memory; /* the owner's */
	_Atomic uint32_t ready, quit, received;
	char why_not[160];
};

static char key_file[64];

/* ---- Both sides ---- */

static const struct world *here;
static unsigned my_host;

static urma_device_t *by_address(urma_device_t **list, int count)
{
	struct sockaddr_in6 a6 = netns_ipv6(my_host, 0);
	struct sockaddr_in a4 = netns_ipv4(my_host, 0);
	uint8_t raw[16] = { [10] = 0xff, [11] = 0xff };
	urma_device_t *found = NULL;

	memcpy(raw + 12, &a4.sin_addr, 4);
	if (here->ipv6)
		memcpy(raw, &a6.sin6_addr, sizeof(raw));
	for (int i = 0; i < count && !found; i++) {
		uint32_t n;
		urma_eid_info_t *eids = urma_get_eid_list(list[i], &n);

		if (eids && n && !memcmp(eids[0].eid.raw, raw, sizeof(raw)))
			found = list[i];
		urma_free_eid_list(eids);
	}
	return found;
}

static void open_on(struct urma_side *s, const struct world *w, unsigned host, void *memory)
{
	struct urma_side_attr attr = {
		.choose = by_address, .rnr_retry = 7, .memory = memory, .len = MEMORY
	};
	int step;

	here = w;
	my_host = host;
	netns_enter(w->n.host[host]);
	setenv("XTAL_SECURITY", w->tls ? "tls" : "none", 1);
	setenv("XTAL_KEY_FILE", key_file, 1);
	setenv("XTAL_TIMEOUT_MS", w->fault->timeout_ms, 1);
	setenv("XTAL_LOG", "/dev/null", 0);
	step = urma_side_open(s, &attr);
	if (step)
		proc_die("host %u: step %d fails", host, step);
}

static uint64_t seed_of(unsigned who, unsigned round)
{
	return 1000u * (who + 1) + round;
}

/* ---- The owner ---- */

/* From whom it is, and which of his it is, must follow from what came before. */
static void look_at_message(const uint8_t *m, uint32_t len, uint32_t next[2])
{
	uint32_t head[2] = { 9, 9 };

	if (len >= sizeof(head))
		memcpy(head, m, sizeof(head));
	if (head[0] > 1)
		proc_die("a message of %u bytes from nobody", len);
	if (head[1] != next[head[0]])
		proc_die("message %u of %u arrives in place of %u", head[1], head[0],
			 next[head[0]]);
	next[head[0]]++;
	if (pattern_check(m + 8, len - 8, seed_of(head[0], head[1]), 0) >= 0)
		proc_die("message %u of %u is not what was sent", head[1], head[0]);
}

static int owner(void *arg)
{
	static uint8_t buffer[BUFFERS][MESSAGE];
	struct world *w = arg;
	uint32_t next[2] = { 0, 0 };
	struct urma_side s;
	urma_cr_t cr;

	open_on(&s, w, OWNER, w->memory);
	urma_side_tell(&s, &w->told);
	atomic_store(&w->ready, 1);
	for (unsigned n = 0; !atomic_load(&w->quit); n++) {
		/* Now and then nobody is ready for the next one. */
		if (n % 4 == 0)
			proc_sleep_us(3000);
		for (unsigned i = 0; i < BUFFERS; i++)
			if (urma_side_receive(&s, buffer[i], MESSAGE, i))
				proc_die("a receive is refused");
		for (unsigned i = 0; i < BUFFERS; i++) {
			while (!urma_side_take(s.jfc, &cr, 1))
				if (atomic_load(&w->quit))
					return 0;
			if (cr.status || cr.user_ctx != i)
				proc_die("receive %u ends with status %d", i, cr.status);
			look_at_message(buffer[i], cr.completion_len, next);
			atomic_fetch_add(&w->received, 1);
		}
	}
	return 0;
}

/* ---- Those who work on its memory ---- */

struct worker {
	struct world *w;
	unsigned who;
	struct urma_side s;
	struct urma_peer peer;
	uint8_t *memory;
	uint64_t base; /* of the owner's memory */
};

static void post(struct worker *x, struct urma_request *r, uint64_t user)
{
	r->wr.user_ctx = user;
	if (urma_side_post(&x->s, r))
		proc_die("a post is refused");
}

static void ends_well(struct worker *x, uint64_t user)
{
	uint64_t began = proc_now();
	urma_cr_t cr;

	if (!urma_side_take(x->s.jfc, &cr, PATIENCE))
		proc_die("request %u never ends", (unsigned)user);
	if (cr.status || cr.user_ctx != user)
		proc_die("request %u (%u was due) ends after %llu ms with status %d: %s",
			 (unsigned)cr.user_ctx, (unsigned)user,
			 (unsigned long long)(proc_now() - began) / 1000000, cr.status,
			 xtal_last_error());
}

/* All kinds under way at once, then what they made is read. */
static void work(struct worker *x, unsigned round, struct rng *rng)
{
	uint32_t len = 1 + (uint32_t)rng_below(rng, BLOCK), user = 0;
	uint32_t head[2] = { x->who, round };
	uint32_t size = 8 + (uint32_t)rng_below(rng, MESSAGE - 8);
	uint64_t *words = (uint64_t *)x->memory, cas = WORD_CAS + 8 * x->who;
	uint64_t told = WORD_TOLD + 8 * x->who, seed = seed_of(x->who, round);
	uint8_t *block = x->memory + 4096, *message = block + BLOCK, *back = message + MESSAGE;
	struct urma_request r;

	for (unsigned i = 0; i < ADDITIONS; i++) {
		urma_request_fetch(&r, &x->peer, URMA_OPC_FADD, x->base, &words[i], 8, 1);
		post(x, &r, user++);
	}
	urma_request_cas(&r, &x->peer, x->base + cas, &words[8], 8, round, round + 1);
	post(x, &r, user++);
	pattern_fill(block, len, seed, 0);
	urma_request_write(&r, &x->peer, x->base + AREA(x->who), block, len);
	r.wr.opcode = URMA_OPC_WRITE_NOTIFY;
	r.dst[1] = (urma_sge_t){ .addr = x->base + told, .len = 8, .tseg = x->peer.seg };
	r.wr.rw.dst.num_sge = 2;
	r.wr.rw.notify_data = round + 1;
	post(x, &r, user++);
	memcpy(message, head, sizeof(head));
	pattern_fill(message + 8, size - 8, seed, 0);
	urma_request_send(&r, &x->peer, message, size);
	post(x, &r, user++);
	memset(back, 0, BLOCK);
	urma_request_read(&r, &x->peer, x->base + AREA(x->who), back, len);
	post(x, &r, user++);
	urma_request_read(&r, &x->peer, x->base + told, &words[9], 8);
	post(x, &r, user++);
	for (uint32_t i = 0; i < user; i++)
		ends_well(x, i);
	for (unsigned i = 1; i < ADDITIONS; i++)
		if (words[i] <= words[i - 1])
			proc_die("round %u: an addition is lost", round);
	if (words[8] != round)
		proc_die("round %u: the swap finds %llu", round, (unsigned long long)words[8]);
	if (words[9] != round + 1)
		proc_die("round %u: notified of %llu", round, (unsigned long long)words[9]);
	if (pattern_check(back, len, seed, 0) >= 0)
		proc_die("round %u: what was written is not what is read", round);
}

static int works(struct world *w, unsigned who)
{
	struct rng rng = { .state = 77 + who };
	struct worker x = { .w = w, .who = who, .base = (uintptr_t)w->memory };

	x.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	open_on(&x.s, w, 2 * who, x.memory);
	if (urma_peer_import(&x.s, &w->told, &x.peer))
		proc_die("the owner is not imported");
	for (unsigned round = 0; round < w->rounds; round++)
		work(&x, round, &rng);
	return 0;
}

static int first_works(void *arg)
{
	return works(arg, 0);
}

static int second_works(void *arg)
{
	return works(arg, 1);
}

/* ---- A world ---- */

static struct proxy *stand_between(const struct world *w)
{
	uint16_t port = (uint16_t)w->told.jetty.uasid;
	struct sockaddr_in6 a6 = netns_ipv6(OWNER, port);
	struct sockaddr_in a4 = netns_ipv4(OWNER, port);
	struct proxy_config c = { .listen_ns = w->n.middle,
				  .connect_ns = w->n.back,
				  .as_client = true,
				  .entries = w->fault->entries };

	memcpy(&c.listen, w->ipv6 ? (void *)&a6 : (void *)&a4, w->ipv6 ? sizeof(a6) : sizeof(a4));
	c.target = c.listen;
	memcpy(c.script, w->fault->script, sizeof(w->fault->script));
	return proxy_start(&c);
}

static uint64_t word_at(const struct world *w, size_t at)
{
	uint64_t value;

	memcpy(&value, w->memory + at, sizeof(value));
	return value;
}

static void judge(const struct world *w, unsigned workers, const struct proxy_counts *c)
{
	/* A connection that was given up before it carried much takes its fault with it. */
	if (w->fault->script[0].end != PROXY_NEVER && c->resets + c->closes + c->losses == 0 &&
	    c->connections < w->fault->entries)
		proc_die("no fault happened");
	if (word_at(w, 0) != (uint64_t)workers * w->rounds * ADDITIONS)
		proc_die("%llu additions instead of %u", (unsigned long long)word_at(w, 0),
			 workers * w->rounds * ADDITIONS);
	for (unsigned i = 0; i < workers; i++)
		if (word_at(w, WORD_CAS + 8 * i) != w->rounds ||
		    word_at(w, WORD_TOLD + 8 * i) != w->rounds)
			proc_die("the words of %u are not what they should be", i);
	if (atomic_load(&w->received) != workers * w->rounds)
		proc_die("%u messages instead of %u", atomic_load(&w->received),
			 workers * w->rounds);
}

static int world(void *arg)
{
	struct world *w = arg;
	const unsigned workers = w->hosts - 1;
	uint64_t began = proc_now();
	struct proxy_counts counts;
	struct proxy *proxy;
	const char *why = netns_create_middle(&w->n, w->hosts);
	pid_t own, worker[2];

	if (why) {
		snprintf(w->why_not, sizeof(w->why_not), "%s", why);
		return 77;
	}
	own = proc_start(owner, w);
	if (!proc_await(&w->ready, 1, PATIENCE))
		proc_die("the owner is not ready");
	proxy = stand_between(w);
	if (!proxy)
		proc_die("nobody can stand between");
	worker[0] = proc_start(first_works, w);
	worker[1] = workers == 2 ? proc_start(second_works, w) : 0;
	for (unsigned i = 0; i < workers; i++)
		if (proc_join(worker[i], PATIENCE))
			proc_die("host %u fails", 2 * i);
	atomic_store(&w->quit, 1);
	if (proc_join(own, PATIENCE))
		proc_die("the owner fails");
	proxy_read(proxy, &counts);
	proxy_stop(&proxy);
	judge(w, workers, &counts);
	printf("          %-20s %s %-4s %u hosts: %2u connections, %u faults, %4llu ms\n",
	       w->fault->name, w->ipv6 ? "IPv6" : "IPv4", w->tls ? "TLS" : "", w->hosts,
	       (unsigned)counts.connections,
	       (unsigned)(counts.resets + counts.closes + counts.losses),
	       (unsigned long long)(proc_now() - began) / 1000000);
	return 0;
}

static struct world *new_world(unsigned number, unsigned rounds)
{
	struct world *w = proc_shared(sizeof(*w));

	w->fault = &faults[number % FAULTS];
	w->tls = number / FAULTS & 1;
	w->ipv6 = number / FAULTS & 2;
	w->hosts = number / FAULTS & 4 ? 2 : 3;
	w->rounds = rounds;
	w->memory = proc_shared(MEMORY);
	return w;
}

static void matrix(unsigned worlds, unsigned at_once, unsigned rounds)
{
	struct world *w[16];
	pid_t pid[16];

	assert_in_range(at_once, 1, 16);
	for (unsigned first = 0; first < worlds; first += at_once) {
		unsigned n = worlds - first < at_once ? worlds - first : at_once, bad = 0;

		for (unsigned i = 0; i < n; i++) {
			w[i] = new_world(first + i, rounds);
			pid[i] = proc_start(world, w[i]);
		}
		for (unsigned i = 0; i < n; i++) {
			int status = proc_join(pid[i], 3 * PATIENCE);

			if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
				proc_skip("%s", w[i]->why_not);
			if (status)
				print_error("%s, %s, %s, %u hosts: fails\n", w[i]->fault->name,
					    w[i]->ipv6 ? "IPv6" : "IPv4",
					    w[i]->tls ? "TLS" : "no TLS", w[i]->hosts);
			bad += status != 0;
		}
		assert_int_equal(bad, 0);
	}
}

/* The combinations with two hosts only are a part of the long form. */
static void every_operation_over_every_line(void **state)
{
	(void)state;
	matrix(proc_soak() ? 8 * FAULTS : 4 * FAULTS, 8, proc_rounds(5, 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_operation_over_every_line, proc_end_all),
	};
	int failed;

	if (proc_emulated())
		return proc_skip_all("the emulator does not know how to make hosts");
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(key_file, sizeof(key_file), "/tmp/xtal-key4-%d", getpid());
	netns_key(key_file, 5);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(key_file);
	return failed;
}
