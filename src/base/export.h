/* SPDX-License-Identifier: MIT */
/*
 * Which symbols leave libxtal.so.1: XTAL_INTERNAL_API marks what the front-ends of the
 * same build may call (version node XTAL_PRIVATE). Everything else stays hidden.
 */
#ifndef XTAL_BASE_EXPORT_H
#define XTAL_BASE_EXPORT_H

#define XTAL_INTERNAL_API __attribute__((visibility("default")))

#define xtal_likely(x)   __builtin_expect(!!(x), 1)
#define xtal_unlikely(x) __builtin_expect(!!(x), 0)

#define xtal_container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define XTAL_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define XTAL_CACHE_LINE 64

#endif
