/* SPDX-License-Identifier: MIT */
/*
 * Position dependent bytes: byte i of a pattern depends on the seed and on i, so data that
 * lands late, twice, shifted or from an earlier round is seen.
 */
#ifndef TEST_LIB_PATTERN_H
#define TEST_LIB_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Writes bytes pos .. pos+len-1 of the pattern to buf. */
void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t pos);

/* -1 when buf holds these bytes, else the index of the first wrong one. */
int64_t pattern_check(const void *buf, size_t len, uint64_t seed, uint64_t pos);

/* -1 when every byte of buf is value, else the index of the first that is not. */
int64_t pattern_check_all(const void *buf, size_t len, uint8_t value);

#endif
