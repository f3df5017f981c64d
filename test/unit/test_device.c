/* SPDX-License-Identifier: MIT */
/*
 * The devices of a host, the settings that choose them, small site EIDs, and what a device
 * says without a key. Each case is a process of its own on a host of its own, since settings
 * and devices are read once.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/key.h"
#include "base/text.h"
#include "core/config.h"
#include "core/context.h"
#include "core/device.h"
#include "core/security.h"
#include "lib/child.h"
#include "lib/netns.h"
#include "os/netif.h"
#include "xtal.h"

static struct netns n;
static const char *no_hosts; /* why */
static char dir[64], path[128];

/* Runs body on host 0. */
static void on_host(void (*body)(void *arg), void *arg)
{
	if (no_hosts) {
		print_message("SKIP: %s\n", no_hosts);
		skip();
	}
	netns_enter(n.host[0]);
	if (child_run(body, arg)) {
		netns_enter(n.home);
		fail();
	}
	netns_enter(n.home);
}

/* All device addresses, "127.0.0.1 10.77.0.1 ..."; scopes as interface names. */
static const char *list(void)
{
	static char text[512];
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < xtal_device_count(); i++) {
		const struct xtal_device *dev = xtal_device_at(i);
		char eid[XTAL_EID_TEXT], name[32];

		snprintf(name, sizeof(name), "xtal%u", i);
		EXPECT(strcmp(dev->name, name) == 0);
		EXPECT(xtal_eid_scope(dev->eid) ==
		       (xtal_eid_is_link_local(dev->eid) ? if_nametoindex(dev->interface) : 0));
		xtal_text_add(text, sizeof(text), &used, "%s%s", i ? " " : "",
			      xtal_text_eid(xtal_eid_scoped(dev->eid, 0), eid, sizeof(eid)));
	}
	EXPECT(xtal_device_at(xtal_device_count()) == NULL);
	return text;
}

static void expect_list(const char *want)
{
	const char *got = list();

	if (strcmp(got, want) != 0)
		printf("devices: %s\nwanted:  %s\n", got, want);
	EXPECT(strcmp(got, want) == 0);
}

struct choice {
	const char *devices, *want, *missing;
};

static void choose(void *arg)
{
	const struct choice *c = arg;
	const char *missing;

	if (c->devices)
		setenv("XTAL_DEVICES", c->devices, 1);
	else
		unsetenv("XTAL_DEVICES");
	expect_list(c->want);
	missing = xtal_device_missing(0);
	EXPECT(!missing == !c->missing);
	if (missing && c->missing && !strstr(missing, c->missing)) {
		printf("said: %s\nwanted: %s\n", missing, c->missing);
		EXPECT(false);
	}
	EXPECT(xtal_device_at(0)->loopback);
	if (xtal_device_count() > 1)
		EXPECT(xtal_device_at(1)->loopback == xtal_eid_is_loopback(xtal_device_at(1)->eid));
}

#define ALL "127.0.0.1 10.77.0.1 fd77::1 fe80::77:1"

static void devices_are_chosen(void **state)
{
	static struct choice choices[] = {
		{ NULL, ALL, NULL },
		{ "all", ALL, NULL },
		{ "none", "127.0.0.1", NULL },
		{ "", "127.0.0.1", NULL },
		{ "eth0", ALL, NULL },
		{ "fd77::1,10.77.0.1", "127.0.0.1 fd77::1 10.77.0.1", NULL },
		{ " fd77::1 , all,", "127.0.0.1 fd77::1 10.77.0.1 fe80::77:1", NULL },
		{ "fe80::77:1", "127.0.0.1 fe80::77:1", NULL },
		{ "fe80::77:1%eth0", "127.0.0.1 fe80::77:1", NULL },
		{ "::ffff:10.77.0.1", "127.0.0.1 10.77.0.1", NULL },
		{ "127.0.0.1", "127.0.0.1", NULL },
		{ "127.0.0.9,::1", "127.0.0.1 127.0.0.9 ::1", NULL },
		{ "lo", "127.0.0.1 ::1", NULL },
		{ "eht0", "127.0.0.1", "did you mean eth0?" },
		{ "wlan7", "127.0.0.1", "neither an address nor an interface" },
		{ "10.77.0.2,eth0", ALL,
		  "10.77.0.2 is not an address of this host, which has: "
		  "10.77.0.1 on eth0, fd77::1 on eth0, fe80::77:1%" },
		{ "fe80::77:1%lo", "127.0.0.1", "fe80::77:1%lo is not an address" },
		{ "fe80::77:1%nowhere", "127.0.0.1", "is not an address" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		on_host(choose, &choices[i]);
}

/* An interface that is down is offered only when it is asked for by address. */
static void down(void *arg)
{
	struct ifreq request = { .ifr_name = "eth0" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	EXPECT(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
	choose(arg);
	request.ifr_flags = IFF_UP;
	EXPECT(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
	close(fd);
}

static void interfaces_may_be_down(void **state)
{
	static struct choice choices[] = {
		{ "all", "127.0.0.1", NULL },
		{ "eth0", "127.0.0.1", "interface eth0 has no address, or is down" },
		{ "10.77.0.1", "127.0.0.1 10.77.0.1", NULL },
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		on_host(down, &choices[i]);
	/* IPv6 addresses do not come back with the interface. */
	if (!no_hosts) {
		netns_address(&n, 0, "fd77::1/64", true);
		netns_address(&n, 0, "fe80::77:1/64", true);
	}
}

static void addresses_of_this_moment(void *arg)
{
	struct xtal_eid later = xtal_eid_from_ipv4(0x0a4d0064), site;

	(void)arg;
	EXPECT(xtal_device_count() == 4);
	EXPECT(xtal_device_is_local(xtal_eid_from_ipv4(0x0a4d0001)));
	EXPECT(!xtal_device_is_local(xtal_eid_from_ipv4(0x0a4d0002)));
	EXPECT(xtal_device_is_local(xtal_eid_from_ipv4(0x7f123456)));
	EXPECT(xtal_device_is_local((struct xtal_eid){ 0, 1 }));
	EXPECT(!xtal_device_is_local((struct xtal_eid){ 0, 0 }));
	EXPECT(xtal_parse_eid("fe80::77:1", &site) == 0);
	EXPECT(xtal_device_is_local(site));
	EXPECT(xtal_device_is_local(xtal_eid_scoped(site, if_nametoindex("eth0"))));
	EXPECT(!xtal_device_is_local(xtal_eid_scoped(site, if_nametoindex("lo"))));
	EXPECT(!xtal_device_is_local(later));
	EXPECT(netns_address(&n, 0, "10.77.0.100/24", true) == 0);
	EXPECT(xtal_device_is_local(later));
	EXPECT(xtal_device_count() == 4); /* a device list does not change any more */
	EXPECT(netns_address(&n, 0, "10.77.0.100/24", false) == 0);
	EXPECT(!xtal_device_is_local(later));
}

static void what_is_local_is_asked_anew(void **state)
{
	(void)state;
	on_host(addresses_of_this_moment, NULL);
}

static void write_file(const char *text, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	fchmod(fd, mode);
	close(fd);
}

static void use_table(void *arg)
{
	const struct xtal_device *lo, *v6 = NULL, *local = NULL;
	struct xtal_eid eid;
	uint32_t small = 0;

	(void)arg;
	setenv("XTAL_CONFIG", path, 1);
	lo = xtal_device_at(0);
	for (unsigned i = 0; i < xtal_device_count(); i++) {
		if (xtal_eid_is_link_local(xtal_device_at(i)->eid))
			local = xtal_device_at(i);
		else if (!xtal_eid_is_ipv4(xtal_device_at(i)->eid))
			v6 = xtal_device_at(i);
	}
	EXPECT(v6 && local && xtal_device_count() == 3); /* the file leaves out IPv4 */
	eid = xtal_device_resolve_eid(lo, xtal_eid_from_ipv4(1));
	EXPECT(xtal_eid_equal(eid, xtal_eid_from_ipv4(0x0a4d0001)));
	eid = xtal_device_resolve_eid(lo, xtal_eid_from_ipv4(2));
	EXPECT(v6 && xtal_eid_equal(eid, v6->eid));
	EXPECT(v6 && xtal_device_site_eid(v6, 0, &small) == 0 && small == 2);
	EXPECT(v6 && xtal_device_site_eid(v6, 1, &small) == 0 && small == 22);
	EXPECT(v6 && xtal_device_site_eid(v6, 2, &small) == -ENOENT);
	EXPECT(xtal_device_site_eid(lo, 0, &small) == -ENOENT);
	/* With a scope in the table it is that link; without, the link of whoever asks. */
	eid = xtal_device_resolve_eid(lo, xtal_eid_from_ipv4(3));
	EXPECT(xtal_eid_scope(eid) == if_nametoindex("eth0"));
	eid = xtal_device_resolve_eid(lo, xtal_eid_from_ipv4(4));
	EXPECT(xtal_eid_is_link_local(eid) && xtal_eid_scope(eid) == 0);
	eid = xtal_device_resolve_eid(local, xtal_eid_from_ipv4(4));
	EXPECT(xtal_eid_scope(eid) == if_nametoindex("eth0"));
	EXPECT(local && xtal_device_site_eid(local, 0, &small) == 0 && small == 5);
	/* What is wrong in the table is left out. */
	for (uint32_t wrong = 6; wrong <= 11; wrong++) {
		eid = xtal_device_resolve_eid(lo, xtal_eid_from_ipv4(wrong));
		EXPECT(xtal_eid_equal(eid, xtal_eid_from_ipv4(wrong)));
	}
	EXPECT(!xtal_security_wanted(v6->eid)); /* security = none in the file */
}

static void the_table_of_small_eids(void **state)
{
	char log[160];
	FILE *f;
	char text[4096] = "";

	(void)state;
	snprintf(log, sizeof(log), "%s.log", path);
	setenv("XTAL_LOG", log, 1);
	write_file("devices = fd77::1, fe80::77:1\n"
		   "security = none\n"
		   "[eids]\n"
		   "1 = 10.77.0.1\n"
		   "2 = fd77::1\n"
		   "0x3 = fe80::77:2%eth0\n"
		   "4 = fe80::77:2\n"
		   "5 = fe80::77:1\n"
		   "6 = 10.77.0\n"
		   "7 = fe80::77:2%nowhere\n"
		   "8 = fd77::1%eth0\n"
		   "nine = 10.77.0.1\n"
		   "0 = 10.77.0.1\n"
		   "16777216 = 10.77.0.1\n"
		   "1 = 10.77.0.9\n"
		   "22 = fd77::1\n",
		   0644);
	on_host(use_table, NULL);
	f = fopen(log, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	unlink(log);
	setenv("XTAL_LOG", "/dev/null", 1);
	assert_non_null(strstr(text, "line 9: '6 = 10.77.0' is not 'small number = address'"));
	assert_non_null(strstr(text, "line 10: there is no interface nowhere"));
	assert_non_null(strstr(text, "line 11: '8 = fd77::1%eth0'"));
	assert_non_null(strstr(text, "line 12: 'nine"));
	assert_non_null(strstr(text, "line 13: '0 ="));
	assert_non_null(strstr(text, "line 14: '16777216"));
	assert_non_null(strstr(text, "line 15: EID 1 has an address already"));
}

struct key_case {
	const char *file; /* XTAL_KEY_FILE, or NULL */
	const char *security;
	const char *words; /* of the refusal; NULL: it opens */
};

static void open_device(void *arg)
{
	const struct key_case *k = arg;
	struct xtal_context *ctx = NULL;
	int err;

	if (k->file)
		setenv("XTAL_KEY_FILE", k->file, 1);
	if (k->security)
		setenv("XTAL_SECURITY", k->security, 1);
	for (unsigned i = 0; i < xtal_device_count(); i++) {
		const struct xtal_device *dev = xtal_device_at(i);

		err = xtal_context_open(dev, &ctx);
		if (dev->loopback || !k->words) {
			EXPECT(err == 0);
			if (!err)
				EXPECT(xtal_context_close(&ctx) == 0);
			continue;
		}
		EXPECT(err == -ENOKEY);
		EXPECT(strstr(xtal_last_error(), dev->name) != NULL);
		if (!strstr(xtal_last_error(), k->words)) {
			printf("said: %s\nwanted: %s\n", xtal_last_error(), k->words);
			EXPECT(false);
		}
	}
}

static void a_device_without_a_key_refuses(void **state)
{
	struct key_case k = { NULL, NULL, "xtal key new FILE" };
	char text[XTAL_KEY_TEXT];
	uint8_t random[40] = { 1 };

	(void)state;
	on_host(open_device, &k);
	k.words = "XTAL_SECURITY=none";
	on_host(open_device, &k);
	k.file = path;
	unlink(path);
	k.words = "No such file";
	on_host(open_device, &k);
	xtal_key_format(random, "today", text);
	write_file(text, 0644);
	k.words = "group or others may read";
	on_host(open_device, &k);
	write_file("xtal-key-1 0011223344556677 0011\n", 0600);
	k.words = "too short";
	on_host(open_device, &k);
	k.file = dir;
	k.words = "no regular file";
	on_host(open_device, &k);
	write_file(text, 0600);
	k.file = path;
	k.words = NULL;
	on_host(open_device, &k);
	k = (struct key_case){ NULL, "none", NULL };
	on_host(open_device, &k);
	k = (struct key_case){ NULL, "off", "there is no key" }; /* no word for it: the default */
	on_host(open_device, &k);
}

static void mend(void *arg)
{
	const struct xtal_device *dev;
	char why[512], text[XTAL_KEY_TEXT];
	uint8_t random[40] = { 1 };

	(void)arg;
	setenv("XTAL_KEY_FILE", path, 1);
	dev = xtal_device_at(1);
	EXPECT(xtal_security_check(dev, why, sizeof(why)) == -ENOKEY);
	xtal_key_format(random, "today", text);
	write_file(text, 0600);
	EXPECT(xtal_security_check(dev, why, sizeof(why)) == 0);
	unlink(path); /* read once */
	EXPECT(xtal_security_check(dev, why, sizeof(why)) == 0);
}

static void a_mended_key_file_is_taken(void **state)
{
	(void)state;
	unlink(path);
	on_host(mend, NULL);
}

/* Without a descriptor the kernel cannot be asked. */
static void no_addresses_at_all(void *arg)
{
	(void)arg;
	if (child_deny(SYS_socket, EMFILE, -1, 0))
		expect_list("127.0.0.1");
}

static void loopback_needs_nothing(void **state)
{
	(void)state;
	on_host(no_addresses_at_all, NULL);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/xtal-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	setenv("XTAL_LOG", "/dev/null", 1);
	setenv("HOME", dir, 1);
	no_hosts =
		emulated() ? "the emulator does not know how to make hosts" : netns_create(&n, 2);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_chosen),
		cmocka_unit_test(interfaces_may_be_down),
		cmocka_unit_test(what_is_local_is_asked_anew),
		cmocka_unit_test(the_table_of_small_eids),
		cmocka_unit_test(a_device_without_a_key_refuses),
		cmocka_unit_test(a_mended_key_file_is_taken),
		cmocka_unit_test(loopback_needs_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
