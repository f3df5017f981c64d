/* SPDX-License-Identifier: MIT */
/* Addresses: 16 bytes in the API, two words in the core. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/export.h"
#include "context.h"

urma_eid_t ub_eid_out(struct xtal_eid eid)
{
	urma_eid_t out;

	eid = xtal_eid_scoped(eid, 0); /* our interface numbers mean nothing elsewhere */
	for (int i = 0; i < 8; i++) {
		out.raw[i] = (uint8_t)(eid.hi >> (56 - 8 * i));
		out.raw[8 + i] = (uint8_t)(eid.lo >> (56 - 8 * i));
	}
	return out;
}

struct xtal_eid ub_eid_in(const urma_eid_t *eid)
{
	struct xtal_eid out = { 0, 0 };

	for (int i = 0; i < 8; i++) {
		out.hi = out.hi << 8 | eid->raw[i];
		out.lo = out.lo << 8 | eid->raw[8 + i];
	}
	return xtal_eid_scoped(out, 0);
}

struct xtal_eid ub_eid_resolve(const struct ub_context *c, const urma_eid_t *eid)
{
	return xtal_device_resolve_eid(c->device, ub_eid_in(eid));
}

void urma_u32_to_eid(uint32_t ipv4, urma_eid_t *eid)
{
	if (eid)
		*eid = ub_eid_out(xtal_eid_from_ipv4(ipv4));
}

int urma_str_to_eid(const char *buf, urma_eid_t *eid)
{
	struct xtal_eid found;
	char *end;

	if (!buf || !eid) {
		ub_refuse("urma_str_to_eid: %s is NULL", buf ? "eid" : "buf");
		return -EINVAL;
	}
	if (strchr(buf, ':')) {
		uint8_t raw[16];

		if (inet_pton(AF_INET6, buf, raw) == 1) {
			memcpy(eid->raw, raw, sizeof(raw));
			return 0;
		}
	} else if (strchr(buf, '.')) {
		struct in_addr in4;

		if (inet_pton(AF_INET, buf, &in4) == 1) {
			found = xtal_eid_from_ipv4(ntohl(in4.s_addr));
			*eid = ub_eid_out(found);
			return 0;
		}
	} else if (*buf >= '0' && *buf <= '9') {
		unsigned long number;

		errno = 0;
		number = strtoul(buf, &end, 0);
		if (!errno && !*end && number <= UINT32_MAX) {
			urma_u32_to_eid((uint32_t)number, eid);
			return 0;
		}
	}
	ub_refuse("urma_str_to_eid: \"%.60s\" is neither an IPv6 address, an IPv4 address, nor a "
		  "number of 32 bits",
		  buf);
	return -EINVAL;
}
