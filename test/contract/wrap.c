/* SPDX-License-Identifier: MIT */
/*
 * F34: the counters of rings and the numbers of frames begin just below 2^64, in both processes, and
 * wrap while operations of all kinds go on. ctest: paths=ring,tcp
 */
#include "lib/pair.h"

#include <string.h>

#define LEN    20000ul
#define ROUNDS 700u
#define BATCH  16u

/* 8 KiB and so many frames before the end: rings wrap in the first rounds, numbers in later ones. */
static const char *const env[] = { "XTAL_COUNTER_START=18446744073709543424", NULL };

static void everything_goes_on_over_the_wrap(void **state)
{
	uint64_t sum = 0;
	struct pair p;

	(void)state;
	pair_open(&p, LEN);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t len = 8 + i * 7 % (LEN - 72);
		struct dma_seg from = part(p.local, 0, len), to = part(&p.remote, 64, len);
		struct dma_seg word = part(&p.remote, 8, 8), counter = part(&p.remote, 0, 8);
		struct dma_seg old = part(p.local, 0, 8);

		/* Many under way, so that some are on either side of the wrap. */
		for (unsigned k = 0; k < BATCH; k++) {
			struct dma_seg place = part(&p.remote, 64 + 8 * k, 8);
			struct dma_seg piece = part(p.local, 64 + 8 * k, 8);

			assert_int_equal(dma_write(p.queue, &place, &piece), DMA_STATUS_OK);
		}
		for (unsigned k = 0; k < BATCH; k++)
			assert_ok(p.queue, 8);
		pattern_fill(p.mem.data, len, i, 0);
		assert_int_equal(dma_write_with_notify(p.queue, &to, &from, &word, i), 0);
		assert_ok(p.queue, len);
		memset(p.mem.data, 0, len);
		assert_int_equal(dma_read(p.queue, &to, &from), DMA_STATUS_OK);
		assert_ok(p.queue, len);
		assert_int_equal(pattern_check(p.mem.data, len, i, 0), -1);
		assert_int_equal(dma_faa(p.queue, &counter, &old, i), DMA_STATUS_OK);
		assert_ok(p.queue, 8);
		assert_int_equal(*(uint64_t *)(void *)p.mem.data, sum);
		sum += i;
	}
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_goes_on_over_the_wrap),
	};

	return suite_run(argc, argv, "wrap", tests, sizeof(tests) / sizeof(tests[0]), env);
}
