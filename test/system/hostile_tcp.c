/* SPDX-License-Identifier: MIT */
/*
 * A program that speaks to an owner's TCP port and lies: garbage, wrong greetings, every type of
 * message with every field wrong, guesses without end, connections without a word. The owner
 * reads and writes nothing for it, logs it without filling the log, and serves an honest peer.
 */
/* ctest: timeout=120 label=soak */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "lib/rng.h"
#include "wire/bytes.h"
#include "wire/message.c" /* pure; the library does not export it */

#define SEGMENT  ((size_t)64 << 10)
#define SECRET   UINT64_C(0x5ec3e7)
#define PATIENCE 20000u

struct scene {
	struct peer_export honest; /* a segment that the honest peer uses */
	struct peer_export secret; /* one whose token nobody knows */
	_Atomic uint32_t ready, check, checked, quit;
};

/* Greetings, written by hand: types, and where fields begin. */
enum {
	HELLO = 0x40,
	WELCOME = 0x41,
	REFUSE = 0x42,
	BYE = 0x43,
	FLAGS = 6,
	STATUS = 12,
	ID = 16,
	INCARNATION = 32,
	WANTED_INCARNATION = 40,
	EID = 48,
	PORT = 64,
	WINDOW = 72,
	PIECE = 76,
	FIRST_SEQ = 80,
	ATTEMPT = 88,
	STAMP = 104,
};

static struct scene *scene;
static pid_t owner_pid;
static char log_file[64];
static bool few_fds; /* the owner has */

/* ---- The owner, and an honest peer ---- */

static int owner(void *arg)
{
	struct scene *s = arg;
	struct dma_seg_cfg cfg = { .len = SEGMENT,
				   .token_value = 0x7a11ed,
				   .token_value_valid = true };
	struct dma_seg *seg;
	struct peer p;
	uint8_t *memory;

	setenv("XTAL_LOG", log_file, 1);
	peer_owner_for(PEER_TCP);
	peer_open(&p);
	peer_register(&p, peer_memory(PEER_TCP, SEGMENT), SEGMENT, &s->honest);
	memory = peer_memory(PEER_TCP, SEGMENT);
	peer_fill(memory, SEGMENT, SECRET);
	cfg.addr = (uintptr_t)memory;
	seg = dma_register_seg(p.ctx, &cfg);
	s->secret = (struct peer_export){ .sva = seg->sva, .len = SEGMENT, .tid = seg->tid };
	if (few_fds) {
		struct rlimit few = { .rlim_cur = 700, .rlim_max = 700 };
		int last = 0;

		if (setrlimit(RLIMIT_NOFILE, &few))
			proc_die("setrlimit: %m");
		for (int fd = 0; fd >= 0; fd = dup(0))
			last = fd;
		for (int i = 0; i < 40; i++)
			close(last - i);
	}
	atomic_store(&s->ready, 1);
	while (!atomic_load(&s->quit)) {
		proc_sleep_us(200);
		if (atomic_load(&s->check) == atomic_load(&s->checked))
			continue;
		if (!peer_holds(memory, SEGMENT, SECRET))
			proc_die("the secret was written to");
		atomic_fetch_add(&s->checked, 1);
	}
	return 0;
}

static int honest(void *arg)
{
	struct scene *s = arg;
	uint8_t *memory;
	struct dma_queue *q;
	struct dma_seg *local;
	struct peer p;

	peer_only(PEER_TCP);
	peer_open(&p);
	memory = peer_memory(PEER_TCP, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	q = peer_queue(&p, 8);
	for (uint64_t i = 1; i <= 3; i++) {
		uint64_t began = proc_now();

		peer_fill(memory, SEGMENT, i);
		peer_expect(peer_write(q, peer_remote(&s->honest, 0, SEGMENT), *local), "write");
		memset(memory, 0, SEGMENT);
		peer_expect(peer_read(q, peer_remote(&s->honest, 0, SEGMENT), *local), "read");
		if (!peer_holds(memory, SEGMENT, i))
			proc_die("what came back is not what was written");
		if (proc_now() - began > proc_slack(1000000000))
			proc_die("an honest peer was served in %llu ms",
				 (unsigned long long)(proc_now() - began) / 1000000);
	}
	return 0;
}

static void all_is_well(void)
{
	assert_int_equal(proc_run(honest, scene, PATIENCE), 0);
	atomic_fetch_add(&scene->check, 1);
	assert_true(proc_await(&scene->checked, atomic_load(&scene->check), PATIENCE));
}

static int start_scene(void **state)
{
	(void)state;
	scene = proc_shared(sizeof(*scene));
	owner_pid = proc_start(owner, scene);
	assert_true(proc_await(&scene->ready, 1, PATIENCE));
	all_is_well();
	return 0;
}

static int end_scene(void **state)
{
	atomic_store(&scene->quit, 1);
	return proc_join(owner_pid, PATIENCE) || proc_end_all(state);
}

/* ---- The liar ---- */

static int dial(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)scene->secret.tid),
				  .sin_addr.s_addr = htonl(PEER_LOOPBACK) };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&to, sizeof(to)), 0);
	return sock;
}

static void say(int sock, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len) {
		ssize_t n = send(sock, at, len, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* it has hung up, as it may */
		at += n;
		len -= (size_t)n;
	}
}

/* One header from the owner; false at the end of the stream. */
static bool hear(int sock, uint8_t header[XTAL_MSG_HEADER])
{
	size_t have = 0;

	while (have < XTAL_MSG_HEADER) {
		struct pollfd p = { .fd = sock, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)PATIENCE) <= 0)
			fail_msg("the owner neither answers nor hangs up");
		n = recv(sock, header + have, XTAL_MSG_HEADER - have, 0);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static void good_greeting(uint8_t type, uint8_t out[XTAL_MSG_HEADER])
{
	static uint64_t number;
	struct xtal_msg m = { .type = XTAL_MSG_PING };

	xtal_msg_encode(&m, out); /* magic, version and length are those of any message */
	out[5] = type;
	xtal_put64(out + ID, ++number);
	xtal_put64(out + ID + 8, 0x1dea);
	if (type == REFUSE) {
		memset(out + ID, 0, 16);
		xtal_put32(out + STATUS, XTAL_UNREACHABLE);
	}
	if (type == HELLO || type == WELCOME) {
		xtal_put64(out + INCARNATION, 0x1234567);
		xtal_put64(out + WANTED_INCARNATION, scene->secret.tid >> 16);
		xtal_put64(out + ATTEMPT, 1);
		xtal_put64(out + STAMP, 1);
	}
	if (type == HELLO) {
		memcpy(out + EID + 10, "\xff\xff\x7f\0\0\x01", 6);
		xtal_put32(out + PORT, scene->secret.tid & 0xffff);
		xtal_put32(out + WINDOW, 64);
		xtal_put32(out + PIECE, XTAL_MSG_PIECE);
		xtal_put64(out + FIRST_SEQ, 1);
	}
}

/* A session; the owner's incarnation. */
static int session(uint64_t *incarnation)
{
	uint8_t header[XTAL_MSG_HEADER];
	int sock = dial();

	good_greeting(HELLO, header);
	say(sock, header, sizeof(header));
	assert_true(hear(sock, header));
	assert_int_equal(header[5], WELCOME);
	*incarnation = xtal_get64(header + INCARNATION);
	return sock;
}

/* Says nothing more, and hears the owner out: nothing of it is data. */
static unsigned hang_up(int sock)
{
	uint8_t header[XTAL_MSG_HEADER];
	unsigned answers = 0;
	struct xtal_msg m;

	shutdown(sock, SHUT_WR);
	while (hear(sock, header)) {
		answers++;
		if (header[5] >= WELCOME && header[5] <= BYE)
			continue;
		assert_int_equal(xtal_msg_decode(header, sizeof(header), &m, NULL), 0);
		assert_true(m.payload == 0 && m.operand[0] == 0 && m.operand[1] == 0);
	}
	close(sock);
	return answers;
}

static void garbage_is_hung_up_on(void **state)
{
	struct rng rng = { .state = 1 };
	uint8_t bytes[4096];

	(void)state;
	for (unsigned i = 0; i < proc_rounds(100, 5000); i++) {
		int sock = dial();

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)rng_next(&rng);
		if (i % 2)
			memcpy(bytes, "XTLM\x01", 5);
		say(sock, bytes, 1 + rng_below(&rng, sizeof(bytes)));
		hang_up(sock);
	}
	all_is_well();
}

static const uint32_t wrong[] = { 0, 1, 0x7fffffff, UINT32_MAX };
#define WRONGS (sizeof(wrong) / sizeof(wrong[0]))

static void wrong_greetings_open_nothing(void **state)
{
	uint8_t header[XTAL_MSG_HEADER];

	(void)state;
	for (unsigned word = 0; word < XTAL_MSG_HEADER / 4; word++) {
		for (unsigned i = 0; i < WRONGS; i++) {
			int sock = dial();

			good_greeting(HELLO, header);
			memcpy(header + 4 * word, &wrong[i], 4);
			say(sock, header, sizeof(header));
			hang_up(sock);
		}
	}
	for (unsigned i = 0; i < 4; i++) {
		int sock = dial();

		good_greeting(HELLO, header);
		if (i == 0)
			header[PORT] ^= 1;
		if (i == 1)
			header[WANTED_INCARNATION] = header[WANTED_INCARNATION] % 15 + 1;
		if (i == 2)
			xtal_put32(header + WINDOW, 1024);
		if (i == 3)
			header[FLAGS] = 1; /* resume */
		say(sock, header, sizeof(header));
		assert_true(hear(sock, header));
		assert_int_equal(header[5], REFUSE);
		assert_int_not_equal(xtal_get32(header + STATUS), XTAL_OK);
		hang_up(sock);
	}
	all_is_well();
}

/* For the secret, with a token that is not its. */
static void good_message(enum xtal_msg_type type, uint64_t incarnation,
			 uint8_t out[XTAL_MSG_HEADER])
{
	bool request = type == XTAL_MSG_WRITE || type == XTAL_MSG_READ || type == XTAL_MSG_ATOMIC;
	struct xtal_msg m = { .type = type, .stamp = 7 };

	if (request) {
		m.seq = 1;
		m.id = 5;
		m.incarnation = incarnation;
		m.addr = scene->secret.sva;
		m.total = m.piece = type == XTAL_MSG_ATOMIC ? 8 : 64;
		m.payload = type == XTAL_MSG_WRITE ? 64 : 0;
		m.token = 0x7a11ec;
		m.flags = XTAL_MSG_TOKEN;
		m.tid = scene->secret.tid;
		m.rights = 7;
	}
	if (type == XTAL_MSG_ATOMIC) {
		m.atomic = XTAL_MSG_FAA;
		m.operand_size = 8;
		m.operand[0] = 1;
	}
	if (type == XTAL_MSG_RESPONSE) {
		m.seq = m.ack = 1;
		m.flags = XTAL_MSG_LAST;
	}
	xtal_msg_encode(&m, out);
}

/* Every type, also those that a target sends, with each word of its header wrong. */
static void every_field_of_every_message(void **state)
{
	static const uint8_t types[] = { XTAL_MSG_WRITE,  XTAL_MSG_READ,
					 XTAL_MSG_ATOMIC, XTAL_MSG_RESPONSE,
					 XTAL_MSG_PING,   XTAL_MSG_PONG,
					 HELLO,           WELCOME,
					 REFUSE,          BYE };
	unsigned values = proc_rounds(2, 4), answers = 0, talks = 0;
	uint8_t payload[256];

	(void)state;
	memset(payload, 0xee, sizeof(payload));
	for (unsigned t = 0; t < sizeof(types); t++) {
		for (unsigned word = 0; word < XTAL_MSG_HEADER / 4; word++) {
			for (unsigned i = 0; i < (values < WRONGS ? values : WRONGS); i++) {
				uint8_t header[XTAL_MSG_HEADER];
				uint64_t incarnation;
				int sock = session(&incarnation);

				if (types[t] < HELLO)
					good_message((enum xtal_msg_type)types[t], incarnation,
						     header);
				else
					good_greeting(types[t], header);
				memcpy(header + 4 * word, &wrong[(i + word) % WRONGS], 4);
				say(sock, header, sizeof(header));
				say(sock, payload, sizeof(payload));
				answers += hang_up(sock);
				talks++;
			}
		}
		all_is_well();
	}
	print_message("          %u talks, %u answers\n", talks, answers);
	assert_true(answers > talks / 4);
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

/* Tokens are guessed as fast as the owner lets it be; meanwhile others are served. */
static void who_guesses_is_slowed_down(void **state)
{
	const uint64_t asked = 2000000000;
	uint64_t incarnation, began, guesses = 0;
	unsigned lines = lines_with("refused to"), more;
	uint8_t header[XTAL_MSG_HEADER];
	struct xtal_msg m;
	int sock = session(&incarnation);
	pid_t other;

	(void)state;
	good_message(XTAL_MSG_READ, incarnation, header);
	assert_int_equal(xtal_msg_decode(header, sizeof(header), &m, NULL), 0);
	other = proc_start(honest, scene);
	for (began = proc_now(); proc_now() - began < asked; guesses++) {
		m.seq = guesses + 1;
		m.ack = guesses;
		m.token++;
		xtal_msg_encode(&m, header);
		say(sock, header, sizeof(header));
		assert_true(hear(sock, header));
	}
	more = lines_with("refused to") - lines;
	print_message("          %llu guesses in 2 s, %u lines in the log\n",
		      (unsigned long long)guesses, more);
	assert_in_range(guesses, 1, 4000); /* 1,000 in advance, and 1,000 a second */
	assert_in_range(more, 1, 4);
	close(sock);
	assert_int_equal(proc_join(other, PATIENCE), 0);
	all_is_well();
}

static void silent_connections_make_room(void **state)
{
	int socks[600];

	(void)state;
	for (unsigned i = 0; i < 600; i++)
		socks[i] = dial();
	all_is_well();
	for (unsigned i = 0; i < 600; i++)
		close(socks[i]);
	all_is_well();
}

static uint64_t resident_bytes(pid_t pid)
{
	char path[64];
	unsigned long long all, resident = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu %llu", &all, &resident), 2);
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void open_and_drop(unsigned count)
{
	const struct linger at_once = { .l_onoff = 1 };
	uint64_t incarnation;

	for (unsigned i = 0; i < count; i++) {
		int sock = session(&incarnation);

		setsockopt(sock, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(sock);
	}
}

/* A session outlives its connection, but not all of them do. */
static void dropped_sessions_do_not_pile_up(void **state)
{
	int fds = proc_fd_count(owner_pid);
	uint64_t before;

	(void)state;
	open_and_drop(5000);
	before = resident_bytes(owner_pid);
	open_and_drop(proc_rounds(6000, 60000));
	/* A sanitizer keeps what is freed. */
	if (!proc_sanitized(NULL))
		assert_in_range(resident_bytes(owner_pid), 0, before + (8u << 20));
	all_is_well();
	assert_in_range(proc_fd_count(owner_pid), 1, fds + 8);
}

static int start_poor_scene(void **state)
{
	few_fds = true;
	return start_scene(state);
}

/* Everybody tries again and again: the log says it once a second. */
static void who_is_turned_away_fills_no_log(void **state)
{
	unsigned lines = lines_with("no descriptor");
	uint8_t header[XTAL_MSG_HEADER];
	int socks[300];

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		socks[i] = dial();
	for (unsigned i = 200; i < 300; i++)
		assert_false(hear(socks[i], header));
	assert_in_range(lines_with("no descriptor") - lines, 1, 10);
	for (unsigned i = 0; i < 300; i++)
		close(socks[i]);
	all_is_well();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(garbage_is_hung_up_on, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(wrong_greetings_open_nothing, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(every_field_of_every_message, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(who_guesses_is_slowed_down, start_scene, end_scene),
		cmocka_unit_test_setup_teardown(silent_connections_make_room, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(dropped_sessions_do_not_pile_up, start_scene,
						end_scene),
		cmocka_unit_test_setup_teardown(who_is_turned_away_fills_no_log, start_poor_scene,
						end_scene),
	};
	int failed;

	snprintf(log_file, sizeof(log_file), "/tmp/xtal-hostile-%d.log", getpid());
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(log_file);
	return failed;
}
