/* SPDX-License-Identifier: MIT */
/*
 * The devices of this host. 127.0.0.1 comes first and always exists; then what XTAL_DEVICES
 * names, in its order, or every address of every interface that is up: IPv4, IPv6, link-local.
 */
#include "core/device.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "core/config.h"
#include "core/config_ini.h"
#include "core/log.h"
#include "os/netif.h"
#include "os/sock.h"
#include "os/thread.h"

#define MAX_DEVICES   64
#define MAX_ADDRESSES 256 /* that are looked at */
#define MAX_MISSING   8

static struct {
	struct xtal_lock lock;
	_Atomic bool ready;
	unsigned count;
	struct xtal_device device[MAX_DEVICES];
	unsigned missing_count;
	char missing[MAX_MISSING][272];
} state;

static void add(struct xtal_eid eid, const char *interface)
{
	struct xtal_device *dev = &state.device[state.count];

	for (unsigned i = 0; i < state.count; i++)
		if (xtal_eid_equal(state.device[i].eid, eid))
			return;
	if (state.count == MAX_DEVICES) {
		xtal_log(XTAL_LOG_WARNING, "xtal", "more than %d addresses: %s has others",
			 MAX_DEVICES, interface);
		return;
	}
	*dev = (struct xtal_device){ .eid = eid, .loopback = xtal_eid_is_loopback(eid) };
	snprintf(dev->name, sizeof(dev->name), "xtal%u", state.count);
	snprintf(dev->interface, sizeof(dev->interface), "%s", interface);
	state.count++;
}

/* In which of three rounds an address comes when all are offered; 3: never. */
static unsigned round_of(const struct xtal_os_address *a)
{
	if (!a->up || xtal_eid_is_loopback(a->eid))
		return 3;
	return xtal_eid_is_ipv4(a->eid) ? 0 : xtal_eid_is_link_local(a->eid) ? 2 : 1;
}

static void add_all(const struct xtal_os_address *have, unsigned count)
{
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < count; i++)
			if (round_of(&have[i]) == round)
				add(have[i].eid, have[i].interface);
}

struct nearest {
	const char *word;
	unsigned distance;
	bool same; /* an interface of exactly that name exists */
	char name[XTAL_OS_INTERFACE];
};

static void compare(const char *name, void *arg)
{
	struct nearest *n = arg;
	unsigned distance = xtal_text_distance(n->word, name);

	n->same = n->same || !distance;
	if (distance < n->distance) {
		n->distance = distance;
		snprintf(n->name, sizeof(n->name), "%s", name);
	}
}

/* Says what this host does not have. */
static void miss(const char *word, const struct xtal_os_address *have, unsigned count,
		 bool is_address)
{
	char list[152] = "", text[XTAL_EID_TEXT], *words = state.missing[0];
	struct nearest n = { .word = word, .distance = 3 };
	size_t used = 0;

	if (state.missing_count < MAX_MISSING)
		words = state.missing[state.missing_count++];
	if (is_address) {
		for (unsigned i = 0; i < count; i++)
			if (round_of(&have[i]) < 3)
				xtal_text_add(list, sizeof(list), &used, "%s%s on %s",
					      used ? ", " : "",
					      xtal_text_eid(have[i].eid, text, sizeof(text)),
					      have[i].interface);
		snprintf(words, sizeof(state.missing[0]),
			 "%.60s is not an address of this host, which has: %.150s", word,
			 used ? list : "none");
	} else {
		xtal_os_each_interface(compare, &n);
		if (n.same)
			snprintf(words, sizeof(state.missing[0]), "interface %.60s %s", word,
				 "has no address, or is down");
		else
			snprintf(words, sizeof(state.missing[0]),
				 "%.60s is neither an address nor an interface of this host%s%s%s",
				 word, n.name[0] ? "; did you mean " : "", n.name,
				 n.name[0] ? "?" : "");
	}
	xtal_log(XTAL_LOG_WARNING, "xtal", "XTAL_DEVICES: %s", words);
}

/* One word of XTAL_DEVICES. */
static void add_named(const char *word, const struct xtal_os_address *have, unsigned count)
{
	unsigned before = state.count, scope = 0;
	char address[64];
	struct xtal_eid eid;
	const char *percent = strchr(word, '%');
	bool is_address, found = false;

	if (strcmp(word, "all") == 0) {
		add_all(have, count);
		return;
	}
	snprintf(address, sizeof(address), "%.*s", (int)(percent ? percent - word : 63), word);
	/* A plain number is an address for CDMA only; here it is an interface's name. */
	is_address = strpbrk(address, ".:") && !xtal_parse_eid(address, &eid);
	if (percent)
		scope = xtal_os_interface_index(percent + 1);
	if (is_address && xtal_eid_is_loopback(eid) && xtal_eid_is_ipv4(eid)) {
		add(eid, "lo"); /* all of 127.0.0.0/8 is ours */
		return;
	}
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < count; i++) {
			const struct xtal_os_address *a = &have[i];
			bool match =
				is_address
					? xtal_eid_equal(xtal_eid_scoped(eid, scope), a->eid) ||
						  (!percent &&
						   xtal_eid_equal(eid, xtal_eid_scoped(a->eid, 0)))
					: strcmp(word, a->interface) == 0 && a->up;

			if (!match || round_of(a) != round)
				continue;
			found = true;
			add(a->eid, a->interface);
		}
	}
	if (!found && before == state.count)
		miss(word, have, count, is_address);
}

static void find_devices(const char *named)
{
	struct xtal_os_address *have = calloc(MAX_ADDRESSES, sizeof(*have));
	char *copy = strdup(named), *rest = copy, *word;
	unsigned count = 0;
	int err = have ? xtal_os_addresses(have, MAX_ADDRESSES, &count) : -1;

	if (err || !copy)
		xtal_log(XTAL_LOG_ERROR, "xtal",
			 "the addresses of this host cannot be read: there is only %s",
			 state.device[0].name);
	if (count > MAX_ADDRESSES)
		count = MAX_ADDRESSES;
	while (!err && (word = strsep(&rest, ", \t")))
		if (*word && strcmp(word, "none") != 0)
			add_named(word, have, count);
	free(copy);
	free(have);
}

static void start(void)
{
	const char *named = xtal_config()->devices;

	if (atomic_load_explicit(&state.ready, memory_order_acquire))
		return;
	xtal_lock(&state.lock);
	if (!atomic_load_explicit(&state.ready, memory_order_relaxed)) {
		add(xtal_eid_from_ipv4(0x7f000001), "lo");
		find_devices(named);
		atomic_store_explicit(&state.ready, true, memory_order_release);
	}
	xtal_unlock(&state.lock);
}

unsigned xtal_device_count(void)
{
	start();
	return state.count;
}

const struct xtal_device *xtal_device_at(unsigned index)
{
	return index < xtal_device_count() ? &state.device[index] : NULL;
}

const char *xtal_device_missing(unsigned index)
{
	start();
	return index < state.missing_count ? state.missing[index] : NULL;
}

struct xtal_eid xtal_device_resolve_eid(const struct xtal_device *dev, struct xtal_eid eid)
{
	struct xtal_eid site;

	if (xtal_eid_is_ipv4(eid) && !xtal_config_site_eid(xtal_eid_ipv4(eid), &site))
		eid = site;
	return xtal_eid_scope(eid) ? eid : xtal_eid_scoped(eid, xtal_eid_scope(dev->eid));
}

int xtal_device_site_eid(const struct xtal_device *dev, unsigned index, uint32_t *small)
{
	return xtal_config_site_of(dev->eid, index, small);
}

bool xtal_device_is_local(struct xtal_eid eid)
{
	struct xtal_os_address *have;
	unsigned count = 0;
	bool found = false;

	if (xtal_eid_is_loopback(eid))
		return true;
	have = calloc(MAX_ADDRESSES, sizeof(*have));
	if (!have || xtal_os_addresses(have, MAX_ADDRESSES, &count))
		count = 0;
	for (unsigned i = 0; i < count && i < MAX_ADDRESSES && !found; i++)
		found = xtal_eid_equal(eid, have[i].eid) ||
			(!xtal_eid_scope(eid) &&
			 xtal_eid_equal(eid, xtal_eid_scoped(have[i].eid, 0)));
	free(have);
	return found;
}

int xtal_device_open_fd(void)
{
	/* An epoll without members is as inert as a descriptor can be. */
	int fd, err = xtal_os_epoll_create(&fd);

	return err ? err : xtal_os_above_stdio(fd);
}

void xtal_device_close_fd(int fd)
{
	xtal_os_close(fd);
}
