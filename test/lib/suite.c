/* SPDX-License-Identifier: MIT */
/* Main function, scale, clocks and leak oracle of the contract tests; see suite.h. */
#include "lib/suite.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "cdma_u_lib.h"
#include "lib/actor.h"
#include "lib/netns.h"

bool suite_messages;
enum xtal_path_kind suite_path = XTAL_PATH_SELF;
bool suite_adopted;
uint32_t suite_owner_eid = 0x7f000001;

static struct netns hosts;
static char key_file[] = "/tmp/xtal-XXXXXX", ini_file[] = "/tmp/xtal-XXXXXX";
static bool ipv6, link_local;

struct dma_device *suite_device(struct dma_device *list, uint32_t count)
{
	/* IPv4 addresses are large numbers, the site's for IPv6 small ones. */
	for (uint32_t i = 1; i < count && suite_owner_eid != 0x7f000001; i++)
		if ((list[i].attr.eid.dw0 < 1000) == ipv6)
			return &list[i];
	return &list[0];
}

bool suite_uses_ipv6(void)
{
	return ipv6;
}

bool suite_between_hosts(void)
{
	return hosts.hosts != 0;
}

bool suite_sanitized(void)
{
	const char *s = getenv("XTAL_TEST_SANITIZE");

	return s && *s;
}

uint64_t suite_scale(uint64_t n)
{
	const char *scale = getenv("XTAL_TEST_SCALE"), *soak = getenv("XTAL_TEST_SOAK");
	bool slow = suite_sanitized() || getenv("XTAL_TEST_EMULATOR");
	uint64_t percent = scale ? strtoull(scale, NULL, 10) : slow ? 30 : 100;

	if (soak && *soak == '1')
		percent *= 20;
	/* Each operation takes fifty times as long, and between hosts it is the same once more. */
	if (suite_path == XTAL_PATH_TCP)
		percent = (percent + (hosts.hosts ? 19 : 4)) / (hosts.hosts ? 20 : 5);
	n = n * percent / 100;
	return n ? n : 1;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t suite_now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

double suite_cpu_seconds(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

void suite_sleep_us(unsigned us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

uint64_t suite_deadline(unsigned seconds)
{
	const char *soak = getenv("XTAL_TEST_SOAK");

	if (soak && *soak == '1')
		return suite_now_ms() + seconds * 60000ull;
	return suite_now_ms() + seconds * (hosts.hosts ? 200ull : 1000ull);
}

void suite_skip(const char *reason)
{
	print_message("SKIP: %s\n", reason);
	skip();
}

/* NULL, or why process_vm_* between processes is out of the question. */
static const char *cma_missing(void)
{
	static char text[128];
	uint64_t mine = 0, theirs = 0;
	struct iovec l = { &mine, 8 }, r = { &theirs, 8 };

	if (process_vm_readv(actor_init_pid(), &l, 1, &r, 1, 0) == 8)
		return NULL;
	snprintf(text, sizeof(text), "process_vm_readv of another process: %s", strerror(errno));
	return text;
}

/* The numbers must agree with the path that was asked for. */
static int check_counters(void)
{
	struct xtal_counters c;
	int bad = 0;

	xtal_counters_read(&c, sizeof(c));
	for (unsigned k = 0; k < XTAL_PATH_COUNT; k++) {
		/* Atomics travel as messages where memory cannot be reached by stores. */
		bool beside = suite_path == XTAL_PATH_CMA || suite_adopted ||
			      (suite_path == XTAL_PATH_MAP && suite_messages);
		bool expected = k == suite_path || (beside && k == XTAL_PATH_RING) ||
				(suite_adopted && k == XTAL_PATH_CMA) ||
				/* Some of the tests send to themselves. */
				(hosts.hosts && suite_messages && k == XTAL_PATH_SELF);

		if (c.ops[k] && !expected) {
			print_error("%llu operations went over %s\n", (unsigned long long)c.ops[k],
				    xtal_path_name(k));
			bad = 1;
		}
	}
	if (c.completed && c.completed > c.failed && !c.ops[suite_path]) {
		print_error("no operation went over %s\n", xtal_path_name(suite_path));
		bad = 1;
	}
	if (c.posted != c.completed) {
		print_error("%llu operations posted, %llu completed\n",
			    (unsigned long long)c.posted, (unsigned long long)c.completed);
		bad = 1;
	}
	return bad;
}

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path); /* mode 0600 */

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

static void remove_files(void)
{
	unlink(key_file);
	unlink(ini_file);
}

/* Two hosts, the owner on the second. NULL or why not. */
static const char *use_hosts(bool tls)
{
	const char *why = netns_create(&hosts, 3);

	if (why)
		return why;
	write_file(key_file, ""); /* takes a name */
	netns_key(key_file, 1);
	/* CDMA's EIDs have 32 bits: IPv6 addresses get numbers. */
	write_file(ini_file, link_local ? "[eids]\n101 = fe80::77:1%eth0\n102 = fe80::77:2%eth0\n"
					  "103 = fe80::77:3%eth0\n"
					: "[eids]\n101 = fd77::1\n102 = fd77::2\n103 = fd77::3\n");
	atexit(remove_files);
	setenv("XTAL_CONFIG", ini_file, 1);
	setenv("XTAL_KEY_FILE", key_file, 1);
	setenv("XTAL_SECURITY", tls ? "tls" : "none", 1);
	setenv("XTAL_TIMEOUT_MS", "2500", 0); /* nobody answers for a host that is not there */
	unsetenv("XTAL_PATHS");
	suite_owner_eid = ipv6 ? 102 : netns_eid(1);
	actor_ns = hosts.host[1];
	netns_enter(hosts.host[0]);
	return NULL;
}

int suite_run(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n,
	      const char *const *env)
{
	const char *path = argc > 1 ? argv[1] : getenv("XTAL_TEST_PATH"), *missing;
	bool tls = false, apart = false;
	char why[200];
	int failed;

	if (path && strlen(path) == 4 && strchr("46l", path[3])) {
		tls = !strncmp(path, "tls", 3);
		apart = tls || !strncmp(path, "tcp", 3);
		ipv6 = path[3] != '4';
		link_local = path[3] == 'l';
		path = apart ? "tcp" : path;
	}
	if (path && !strcmp(path, "adopt")) {
		path = "map";
		suite_adopted = true;
	}
	if (path) {
		suite_path = XTAL_PATH_NONE;
		for (unsigned k = XTAL_PATH_SELF; k <= XTAL_PATH_TCP; k++)
			if (!strcmp(path, xtal_path_name(k)))
				suite_path = k;
		if (!suite_path) {
			fprintf(stderr,
				"usage: %s self|map|adopt|cma|ring|tcp|tcp4|tcp6|tcpl|tls4|tls6|tlsl\n",
				argv[0]);
			return 2;
		}
	}
	setenv("XTAL_PATHS", xtal_path_name(suite_path), 1);
	if (suite_adopted) {
		setenv("XTAL_PATHS", "map,cma,ring", 1);
		setenv("XTAL_ADOPT", "always", 1);
		if (xtal_adoption_query(why, sizeof(why)) == XTAL_ADOPTION_NONE) {
			printf("SKIP: adoption: %s\n", why);
			return 77;
		}
	}
	setenv("XTAL_LOG", "/dev/null", 0);
	for (; env && *env; env++) {
		char *copy = strdup(*env), *value = strchr(copy, '=');

		*value++ = 0;
		setenv(copy, value, 1);
		free(copy);
	}
	missing = apart ? use_hosts(tls) : NULL;
	if (missing) {
		printf("SKIP: %s\n", missing);
		return 77;
	}
	actor_init();
	missing = suite_path == XTAL_PATH_CMA ? cma_missing() : NULL;
	if (missing) {
		printf("SKIP: %s\n", missing);
		return 77;
	}
	cmocka_set_test_filter(getenv("XTAL_TEST_FILTER")); /* a pattern, for working on one */
	failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	return failed ? failed : check_counters();
}

static long entries(const char *dir)
{
	DIR *d = opendir(dir);
	long n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct held suite_held(void)
{
	struct held h = { .fds = entries("/proc/self/fd"), .threads = entries("/proc/self/task") };
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	long pages = 0;

	while (f && fgets(line, sizeof(line), f))
		h.maps++;
	if (f)
		fclose(f);
	f = fopen("/proc/self/statm", "r");
	if (f) {
		if (fscanf(f, "%*d %ld", &pages) == 1)
			h.rss_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
		fclose(f);
	}
	return h;
}

/* The resident memory is then mostly the emulator's own translations. */
static bool emulated(void)
{
	const char *emulator = getenv("XTAL_TEST_EMULATOR");

	return emulator && *emulator;
}

void suite_assert_flat(const struct held *before, long slack, long slack_kib)
{
	uint64_t deadline = suite_now_ms() + 2000;
	struct held now;

	do {
		now = suite_held();
		/* A pipeline's worker starts when it is first needed, which may be late. */
		if (now.fds <= before->fds && now.threads <= before->threads + 8 &&
		    (suite_sanitized() || emulated() ||
		     (now.maps <= before->maps + slack + 8 &&
		      now.rss_kib <= before->rss_kib + slack_kib)))
			return;
		suite_sleep_us(20000);
	} while (suite_now_ms() < deadline);
	print_error("fds %ld -> %ld, threads %ld -> %ld, maps %ld -> %ld, RSS %ld -> %ld KiB\n",
		    before->fds, now.fds, before->threads, now.threads, before->maps, now.maps,
		    before->rss_kib, now.rss_kib);
	fail();
}
