/* SPDX-License-Identifier: MIT */
/* Reading the ini files; what they say about settings goes to config.c. */
#include "core/config_ini.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/config.h"
#include "core/log.h"
#include "os/env.h"
#include "os/netif.h"

#define MAX_SITE_EIDS   64
#define MAX_SITE_NUMBER 0xffffffu /* 0.x.y.z is no host's address, so nothing is hidden */

static struct {
	struct site_eid {
		uint32_t small;
		struct xtal_eid eid;
	} site[MAX_SITE_EIDS];
	unsigned count;
} table;

/* ADDRESS or ADDRESS%INTERFACE. Errors: -EINVAL, -ENODEV. */
static int parse_address(const char *text, struct xtal_eid *out)
{
	size_t len = strcspn(text, "%");
	char address[64];
	uint64_t scope = 0;
	int err;

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = 0;
	err = xtal_parse_eid(address, out);
	if (err || !text[len])
		return err;
	if (!xtal_eid_is_link_local(*out))
		return -EINVAL;
	if (xtal_parse_size(text + len + 1, UINT32_MAX, &scope))
		scope = xtal_os_interface_index(text + len + 1);
	if (!scope)
		return -ENODEV;
	*out = xtal_eid_scoped(*out, (uint32_t)scope);
	return 0;
}

/* [eids] 2 = 127.0.0.1 */
static void add_site(const char *key, const char *value, const char *path, int line)
{
	struct site_eid *s = &table.site[table.count];
	uint64_t small;
	int err;

	if (table.count == MAX_SITE_EIDS) {
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s line %d: more than %d small EIDs", path,
			 line, MAX_SITE_EIDS);
		return;
	}
	err = parse_address(value, &s->eid);
	if (err == -ENODEV) {
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s line %d: there is no interface %s", path,
			 line, strchr(value, '%') + 1);
		return;
	}
	if (err || xtal_parse_size(key, MAX_SITE_NUMBER, &small) || !small) {
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "%s line %d: '%s = %s' is not 'small number = address', number 1 to %u",
			 path, line, key, value, MAX_SITE_NUMBER);
		return;
	}
	for (unsigned i = 0; i < table.count; i++) {
		if (table.site[i].small == small) {
			xtal_log(XTAL_LOG_WARNING, "xtal",
				 "%s line %d: EID %s has an address already; the first holds", path,
				 line, key);
			return;
		}
	}
	s->small = (uint32_t)small;
	table.count++;
}

static void from_ini(const char *section, const char *key, const char *value, int line, void *arg)
{
	const char *path = arg;
	char name[64];
	size_t i;

	if (strcmp(section, "eids") == 0) {
		add_site(key, value, path, line);
		return;
	}
	if (*section) {
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "%s line %d: '%s' is ignored: there is no section [%s], only [eids]; "
			 "settings stand before it",
			 path, line, key, section);
		return;
	}
	snprintf(name, sizeof(name), "XTAL_%s", key);
	for (i = 5; name[i]; i++)
		if (name[i] >= 'a' && name[i] <= 'z')
			name[i] = (char)(name[i] - 'a' + 'A');
	xtal_config_set(name, value, path);
}

static void read_file(const char *path, bool must)
{
	int err = xtal_os_read_ini(path, from_ini, (void *)(uintptr_t)path);

	if (err > 0)
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s line %d cannot be understood", path, err);
	else if (err && (must || err != -ENOENT))
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s cannot be read: %s", path, strerror(-err));
}

void xtal_config_read_files(const char *path)
{
	static char home_file[512];
	const char *home = xtal_os_getenv("HOME");

	if (path[0]) {
		read_file(path, true);
		return;
	}
	if (home) {
		snprintf(home_file, sizeof(home_file), "%s/.config/xtal.ini", home);
		read_file(home_file, false);
	}
	read_file("/etc/xtal.ini", false);
}

int xtal_config_site_eid(uint32_t small, struct xtal_eid *out)
{
	xtal_config();
	for (unsigned i = 0; i < table.count; i++) {
		if (table.site[i].small == small) {
			*out = table.site[i].eid;
			return 0;
		}
	}
	return -ENOENT;
}

int xtal_config_site_of(struct xtal_eid eid, unsigned index, uint32_t *small)
{
	xtal_config();
	for (unsigned i = 0; i < table.count; i++) {
		struct xtal_eid site = table.site[i].eid, asked = eid;

		if (!xtal_eid_scope(site) || !xtal_eid_scope(asked))
			site = xtal_eid_scoped(site, xtal_eid_scope(asked));
		if (!xtal_eid_equal(site, asked) || index--)
			continue;
		*small = table.site[i].small;
		return 0;
	}
	return -ENOENT;
}
