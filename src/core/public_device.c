/* SPDX-License-Identifier: MIT */
/* The functions of xtal.h about devices and secrets. */
#include "xtal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/config_ini.h"
#include "core/device.h"
#include "core/log.h"
#include "core/security.h"
#include "os/proc.h"

static void describe(const struct xtal_device *dev, struct xtal_device_info *out)
{
	struct xtal_eid eid = xtal_eid_scoped(dev->eid, 0);
	char text[XTAL_EID_TEXT], why[512] = "";

	snprintf(out->name, sizeof(out->name), "%s", dev->name);
	snprintf(out->interface, sizeof(out->interface), "%s", dev->interface);
	for (int i = 0; i < 8; i++) {
		out->eid[i] = (uint8_t)(eid.hi >> (56 - 8 * i));
		out->eid[8 + i] = (uint8_t)(eid.lo >> (56 - 8 * i));
	}
	xtal_text_eid(eid, text, sizeof(text));
	snprintf(out->address, sizeof(out->address), "%.46s%s%s", text,
		 xtal_eid_is_link_local(eid) ? "%" : "",
		 xtal_eid_is_link_local(eid) ? dev->interface : "");
	out->loopback = dev->loopback;
	out->encrypted = xtal_security_wanted(dev->eid);
	out->usable = xtal_security_check(dev, why, sizeof(why)) == 0;
	if (!out->usable)
		snprintf(out->reason, sizeof(out->reason), "%.255s", why);
}

int xtal_device_query(unsigned index, struct xtal_device_info *out)
{
	unsigned count = xtal_device_count();
	const char *missing;

	if (!out) {
		xtal_refuse("xtal", "xtal_device_query: out is NULL");
		return -EINVAL;
	}
	if (index < count) {
		memset(out, 0, sizeof(*out));
		describe(xtal_device_at(index), out);
		return 0;
	}
	missing = xtal_device_missing(index - count);
	if (!missing)
		return -ENOENT;
	memset(out, 0, sizeof(*out));
	snprintf(out->reason, sizeof(out->reason), "%.255s", missing);
	return 0;
}

int xtal_cdma_eid(const uint8_t eid[16], uint32_t *dw0)
{
	struct xtal_eid e = { 0, 0 };
	char text[XTAL_EID_TEXT];

	if (!eid || !dw0) {
		xtal_refuse("xtal", "xtal_cdma_eid: a pointer is NULL");
		return -EINVAL;
	}
	for (int i = 0; i < 8; i++) {
		e.hi = e.hi << 8 | eid[i];
		e.lo = e.lo << 8 | eid[8 + i];
	}
	e = xtal_eid_scoped(e, 0);
	if (xtal_eid_is_ipv4(e)) {
		*dw0 = xtal_eid_ipv4(e);
		return 0;
	}
	if (!xtal_config_site_of(e, 0, dw0))
		return 0;
	xtal_refuse("xtal",
		    "xtal_cdma_eid: %s needs more than 32 bits, and [eids] of the ini file gives "
		    "it no number",
		    xtal_text_eid(e, text, sizeof(text)));
	return -ENOENT;
}

uint32_t xtal_token(void)
{
	uint32_t token = 0;
	int err = 0;

	while (!token && !err)
		err = xtal_os_random(&token, sizeof(token));
	if (!err)
		return token;
	xtal_refuse("xtal", "xtal_token: no random numbers: %s", strerror(-err));
	return 0;
}
