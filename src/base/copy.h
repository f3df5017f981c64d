/* SPDX-License-Identifier: MIT */
/*
 * Copies whose last word lands last. Programs spin on the last bytes of a buffer, and
 * memcpy writes the tail early for most sizes, so all but the last word is copied first and
 * the last word is published with a release store (partner: the reader's acquire load).
 */
#ifndef XTAL_BASE_COPY_H
#define XTAL_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the tail that xtal_copy_body() leaves for xtal_copy_tail(): 0..15. */
size_t xtal_copy_tail_len(const void *dst, size_t len);

/* Copies everything of [dst, dst+len) but the tail. */
void xtal_copy_body(void *dst, const void *src, size_t len);

/*
 * Copies the tail, ending with a release store of the last naturally aligned piece (or of
 * the very last bytes one by one when the end is unaligned).
 */
void xtal_copy_tail(void *dst, const void *src, size_t len);

/* Copies everything in whatever order is fastest; regions may overlap. */
void xtal_copy_loose(void *dst, const void *src, size_t len);

/* Body, then tail. Any length, also 0; regions must not overlap unless dst <= src. */
void xtal_copy(void *dst, const void *src, size_t len);

/*
 * xtal_copy() and xtal_copy_body() for a part of something larger than the caches: the body
 * goes past them, which spares reading what is overwritten. Ordered before everything that
 * follows, like the others. Measured (Zen 3, 32 MiB L3): 16 MiB at 9.5 instead of 5.6 GB/s,
 * 64 MiB at 6.2 instead of 2.1; but 4 MiB at 22 instead of 27.
 */
#define XTAL_COPY_STREAM_MIN ((size_t)8 << 20)
void xtal_copy_stream(void *dst, const void *src, size_t len);
void xtal_copy_stream_body(void *dst, const void *src, size_t len);

/*
 * True for two places between which "rep movsb", which the kernel and the C library copy more than
 * some KiB with, is up to 30 times slower on some processors: seen from their pages' beginnings dst
 * lies a little ahead of src. Measured (Zen 3): 16 KiB in 5.4 us for distances of 1 to 31, else
 * 0.18. Whoever may choose one of the places moves it by XTAL_COPY_STEP, either way.
 */
#define XTAL_COPY_STEP 64u
static inline bool xtal_copy_crawls(const void *dst, const void *src)
{
	return (((uintptr_t)dst - (uintptr_t)src) & 4095) - 1 < XTAL_COPY_STEP - 1;
}

#endif
