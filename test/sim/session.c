/* SPDX-License-Identifier: MIT */
/*
 * Sessions in the simulated world, seed by seed, each one twice: the same seed must make the
 * same history. ctest: timeout=120 label=soak
 *
 * XTAL_TEST_SIM_SEED=n      runs one seed and prints what happens in it
 * XTAL_TEST_SIM_FIRST=n     begins there
 * XTAL_TEST_SIM_SEEDS=n     runs so many (2500; 400000 in the soak build)
 * XTAL_TEST_SIM_FAILURES=n  ends after so many that failed (10)
 *
 * Seeds that fail are printed, and kept in sim-failures.txt of the build folder.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/sim.h"

#define MANY 2500u
#define SOAK 400000u

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void record(const char *program, uint64_t seed, const char *why)
{
	const char *folder = getenv("XTAL_TEST_BUILD_DIR");
	char path[1024];
	FILE *file;

	printf("seed %llu: %s\n    XTAL_TEST_SIM_SEED=%llu %s\n", (unsigned long long)seed, why,
	       (unsigned long long)seed, program);
	snprintf(path, sizeof(path), "%s/sim-failures.txt", folder ? folder : ".");
	file = fopen(path, "a");
	if (!file)
		return;
	fprintf(file, "XTAL_TEST_SIM_SEED=%llu %s # %s\n", (unsigned long long)seed, program, why);
	fclose(file);
}

int main(int argc, char **argv)
{
	struct sim *w = calloc(1, sizeof(*w));
	uint64_t seeds = number("XTAL_TEST_SIM_SEEDS", getenv("XTAL_TEST_SOAK") ? SOAK : MANY);
	uint64_t scale = number("XTAL_TEST_SCALE", 100), first = number("XTAL_TEST_SIM_FIRST", 1);
	uint64_t ok = 0, errors = 0, resumes = 0, replays = 0, sent = 0, again = 0, brief = 0;
	uint64_t most = number("XTAL_TEST_SIM_FAILURES", 10);
	unsigned failed = 0;

	(void)argc;
	if (!w)
		return 1;
	if (getenv("XTAL_TEST_SIM_SEED")) {
		bool good = sim_run(w, number("XTAL_TEST_SIM_SEED", 1), true);

		printf("%s\n", good ? "all is well" : w->why);
		free(w);
		return good ? 0 : 1;
	}
	seeds = seeds * scale / 100;
	for (uint64_t seed = first; seed < first + seeds && failed < most; seed++) {
		bool good = sim_run(w, seed, false);
		uint64_t hash = w->hash;

		ok += w->done_ok;
		errors += w->done_error;
		resumes += w->resumes;
		replays += w->replays;
		sent += w->sent;
		again += w->again;
		brief += w->brief;
		if (good && (!sim_run(w, seed, false) || w->hash != hash)) {
			good = false;
			sim_fail(w, "the second run is another one");
		}
		if (!good) {
			record(argv[0], seed, w->why);
			failed++;
		}
	}
	printf("%llu seeds, %u failed; %llu operations ended well, %llu with an error; %llu "
	       "resumptions, %llu answers replayed; %llu messages received, %llu times some came "
	       "again, %llu short forms\n",
	       (unsigned long long)seeds, failed, (unsigned long long)ok,
	       (unsigned long long)errors, (unsigned long long)resumes, (unsigned long long)replays,
	       (unsigned long long)sent, (unsigned long long)again, (unsigned long long)brief);
	/* a world in which nothing is ever resumed tests nothing */
	if (seeds >= 100 && (resumes < seeds / 10 || replays < seeds / 100 || ok < seeds ||
			     sent < seeds || again < seeds / 4 || brief < seeds / 4)) {
		printf("too little happened\n");
		failed++;
	}
	free(w);
	return failed ? 1 : 0;
}
