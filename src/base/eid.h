/* SPDX-License-Identifier: MIT */
/*
 * An endpoint identifier: the 16 bytes of a device's network address, IPv4 as IPv4-mapped
 * IPv6, kept as two words so that comparing costs two instructions.
 *
 * A link-local address means something on one link only. Within this process it carries that
 * link's interface number (its scope) in bytes that are 0 in every such address; the scope is
 * taken off before the address leaves the process.
 */
#ifndef XTAL_BASE_EID_H
#define XTAL_BASE_EID_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_eid {
	uint64_t hi; /* the first 8 address bytes, most significant first */
	uint64_t lo;
};

static inline struct xtal_eid xtal_eid_from_ipv4(uint32_t host_order)
{
	return (struct xtal_eid){ .hi = 0, .lo = 0x0000ffff00000000u | host_order };
}

static inline bool xtal_eid_is_ipv4(struct xtal_eid eid)
{
	return eid.hi == 0 && (eid.lo >> 32) == 0xffffu;
}

static inline uint32_t xtal_eid_ipv4(struct xtal_eid eid)
{
	return (uint32_t)eid.lo;
}

/* 1..15: the part of a context's incarnation that a 20-bit tid carries. */
static inline uint32_t xtal_incarnation_bits(uint64_t incarnation)
{
	return (uint32_t)(incarnation % 15 + 1);
}

/* In place of the bits: whoever holds the port now. For descriptors that do not tell. */
#define XTAL_INCARNATION_ANY 16u

/* A context of this incarnation is meant by the bits. */
static inline bool xtal_incarnation_fits(uint64_t incarnation, uint64_t bits)
{
	return bits == XTAL_INCARNATION_ANY || bits == xtal_incarnation_bits(incarnation);
}

/* 127.0.0.0/8 and ::1: addresses that reach this host only. */
static inline bool xtal_eid_is_loopback(struct xtal_eid eid)
{
	return (xtal_eid_is_ipv4(eid) && xtal_eid_ipv4(eid) >> 24 == 127) ||
	       (eid.hi == 0 && eid.lo == 1);
}

/* fe80::/10 */
static inline bool xtal_eid_is_link_local(struct xtal_eid eid)
{
	return eid.hi >> 54 == 0xfe80u >> 6;
}

/* The interface number of a link-local address; 0: none known, or another kind of address. */
static inline uint32_t xtal_eid_scope(struct xtal_eid eid)
{
	return xtal_eid_is_link_local(eid) ? (uint32_t)eid.hi : 0;
}

/* The address with this scope (0: without); other kinds of addresses stay as they are. */
static inline struct xtal_eid xtal_eid_scoped(struct xtal_eid eid, uint32_t scope)
{
	if (xtal_eid_is_link_local(eid))
		eid.hi = (eid.hi & ~(uint64_t)UINT32_MAX) | scope;
	return eid;
}

static inline bool xtal_eid_equal(struct xtal_eid a, struct xtal_eid b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#endif
