/* SPDX-License-Identifier: MIT */
/*
 * Data that shows where it belongs: each byte depends on a seed and on its own position, so
 * that bytes which are lost, stale, shifted or from the wrong transfer are all seen.
 */
#ifndef XTAL_CLI_PATTERN_H
#define XTAL_CLI_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Fills len bytes as the ones at position (a multiple of 8) of the seed's endless pattern. */
void cli_pattern_fill(void *dst, size_t len, uint64_t seed, uint64_t position);

/* Compares. Returns how many bytes differ; *first is the index of the first one, if any. */
size_t cli_pattern_check(const void *src, size_t len, uint64_t seed, uint64_t position,
			 size_t *first);

#endif
