/* SPDX-License-Identifier: MIT */
/*
 * An endpoint identifier: the 16 bytes of a device's network address, IPv4 as IPv4-mapped
 * IPv6, kept as two words so that comparing costs two instructions.
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

static inline bool xtal_eid_equal(struct xtal_eid a, struct xtal_eid b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#endif
