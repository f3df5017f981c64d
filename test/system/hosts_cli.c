/* SPDX-License-Identifier: MIT */
/*
 * The commands that README.md shows for two hosts, and the example for two hosts, each run on a
 * host of its own: what is printed there is what a newcomer types first.
 */
/* ctest: timeout=120 plain */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/peer.h"
#include "lib/proc.h"

#define PATIENCE 60000u

static struct netns n;
static char folder[] = "/tmp/xtal-hosts-XXXXXX";

struct command {
	unsigned host;
	const char *text;
};

/* On its host, in the folder, with the xtal command and the examples at hand. */
static int run(void *arg)
{
	const struct command *c = arg;
	const char *build = getenv("XTAL_TEST_BUILD_DIR");
	char path[4096];

	if (!build)
		build = "build/dev";
	netns_enter(n.host[c->host]);
	snprintf(path, sizeof(path), "%s/bin:%s/examples:%s", build, build, getenv("PATH"));
	setenv("PATH", path, 1);
	if (chdir(folder))
		proc_die("chdir: %m");
	execl("/bin/sh", "sh", "-ec", c->text, NULL);
	proc_die("exec: %m");
}

static int on(unsigned host, const char *text)
{
	struct command c = { .host = host, .text = text };

	return proc_run(run, &c, PATIENCE);
}

static pid_t start_on(unsigned host, const char *text)
{
	static struct command c; /* the child has its own copy at once */

	c = (struct command){ .host = host, .text = text };
	return proc_start(run, &c);
}

static int begin(void **state)
{
	const char *why = netns_create(&n, 2);

	(void)state;
	if (why)
		proc_skip("%s", why);
	return 0;
}

static int end(void **state)
{
	int failed = proc_end_all(state);

	netns_destroy(&n);
	return failed;
}

static void readme_commands(void **state)
{
	pid_t server;

	(void)state;
	assert_int_equal(on(0, "xtal key new fabric.key"), 0);
	assert_int_equal(on(0, "xtal info | grep -q 10.77.0.1"), 0);
	server = start_on(0, "XTAL_KEY_FILE=fabric.key xtal perf write_lat --server 10.77.0.1");
	assert_int_equal(on(1, "export XTAL_KEY_FILE=fabric.key; for i in 1 2 3 4 5 6 7 8 9; do "
			       "xtal perf write_lat -s 8 -n 200 --client 10.77.0.1 > out 2>&1 && "
			       "grep -qw tcp out && exit 0; sleep 0.2; done; cat out; exit 1"),
			 0);
	proc_kill(server);
}

static void example_with_a_key(void **state)
{
	pid_t server;

	(void)state;
	assert_int_equal(on(0, "xtal key new other.key"), 0);
	server = start_on(0, "XTAL_KEY_FILE=other.key 05_two_hosts server 10.77.0.1");
	assert_int_equal(on(1, "XTAL_KEY_FILE=other.key 05_two_hosts client 10.77.0.1"), 0);
	assert_int_equal(proc_join(server, PATIENCE), 0);
}

static void messages_between_hosts(void **state)
{
	pid_t server;

	(void)state;
	assert_int_equal(on(0, "xtal key new urma.key"), 0);
	server = start_on(0, "export XTAL_KEY_FILE=urma.key; xtal perf --server 10.77.0.1");
	assert_int_equal(on(1,
			    "export XTAL_KEY_FILE=urma.key; for i in 1 2 3 4 5 6 7 8 9; do "
			    "xtal perf send_lat --api urma -n 200 --client 10.77.0.1 > out 2>&1 && "
			    "grep -qw tcp out && exit 0; sleep 0.2; done; cat out; exit 1"),
			 0);
	assert_int_equal(proc_join(server, PATIENCE), 0);
}

/* Without a key the device does not open, and the example says what to do. */
static void example_without_a_key(void **state)
{
	(void)state;
	assert_int_equal(on(0, "if 05_two_hosts server 10.77.0.1 2> out; then exit 1; fi; "
			       "grep -q 'xtal key new' out"),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(readme_commands, begin, end),
		cmocka_unit_test_setup_teardown(messages_between_hosts, begin, end),
		cmocka_unit_test_setup_teardown(example_with_a_key, begin, end),
		cmocka_unit_test_setup_teardown(example_without_a_key, begin, end),
	};
	char command[128];
	int failed;

	if (proc_emulated())
		return proc_skip_all("the emulator does not know how to make hosts");
	if (!mkdtemp(folder))
		return 1;
	unsetenv("XTAL_KEY_FILE");
	unsetenv("XTAL_SECURITY");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command) ? 1 : failed;
}
