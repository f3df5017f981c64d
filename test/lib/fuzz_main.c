/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzzer over files: those named, or its corpus, test/fuzz/corpus/NAME. Then over
 * changed copies of each, so that an ordinary build tests a little more than what is known.
 */
#include <dirent.h>
#include <libgen.h>
#include <string.h>

#include "fuzz.h"
#include "rng.h"

#define LARGEST (1u << 20)

static uint8_t bytes[LARGEST], copy[LARGEST];

static bool run_file(const char *path, unsigned changes)
{
	FILE *file = fopen(path, "rb");
	struct rng rng = { 1 };
	size_t n;

	if (!file)
		return false;
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, n);
	for (unsigned k = 0; k < changes && n != 0; k++) {
		memcpy(copy, bytes, n);
		for (uint64_t flips = 1 + rng_below(&rng, 4); flips != 0; flips--)
			copy[rng_below(&rng, n)] = (uint8_t)rng_next(&rng);
		LLVMFuzzerTestOneInput(copy, rng_below(&rng, 4) ? n : rng_below(&rng, n));
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *source = getenv("XTAL_TEST_SOURCE_DIR");
	char folder[1024], path[2048];
	struct dirent *entry;
	unsigned files = 0;
	DIR *dir;

	for (int k = 1; k < argc; k++)
		if (!run_file(argv[k], 0)) {
			fprintf(stderr, "cannot read %s\n", argv[k]);
			return 1;
		}
	if (argc > 1)
		return 0;
	snprintf(folder, sizeof(folder), "%s/test/fuzz/corpus/%s", source ? source : ".",
		 basename(argv[0]));
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		files += run_file(path, 200);
	}
	if (dir)
		closedir(dir);
	printf("%u files of %s\n", files, folder);
	return files == 0;
}
