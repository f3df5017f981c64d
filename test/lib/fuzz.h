/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzers share. A fuzzer is a function of bytes; test/fuzz/hunt.sh builds it with
 * libFuzzer and lets it look for bad ones, every other build runs it over its corpus
 * (fuzz_main.c).
 */
#ifndef TEST_LIB_FUZZ_H
#define TEST_LIB_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a source of numbers; zeros when it is used up. */
struct fuzz_input {
	const uint8_t *data;
	size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->data++;
}

static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v |= (uint64_t)fuzz_u8(in) << 8 * i;
	return v;
}

/* Mostly small or near a power of two: numbers at which code changes its mind. */
static inline uint64_t fuzz_number(struct fuzz_input *in)
{
	uint8_t kind = fuzz_u8(in);

	if (kind < 200)
		return kind;
	if (kind < 240)
		return (UINT64_C(1) << (kind & 63)) - 2 + (fuzz_u8(in) & 3);
	return fuzz_u64(in);
}

static inline void fuzz_must(bool true_thing, const char *what)
{
	if (true_thing)
		return;
	fprintf(stderr, "violated: %s\n", what);
	abort();
}

#endif
