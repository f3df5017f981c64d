#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Lets libFuzzer look for bad input to one fuzzer, under ASan and UBSan, for a bounded time:
#
#   hunt.sh NAME [SECONDS]     default 40; 600 with XTAL_TEST_SOAK=1. ctest: timeout=120 label=soak
#
# It begins with the corpus in the tree and what earlier runs in the build folder found. An input
# that fails is kept there, and the command that runs it again is printed.
set -u
name=$1
cd "${XTAL_TEST_SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
seconds=${2:-${XTAL_TEST_SOAK:+600}}
seconds=${seconds:-40}
folder=${XTAL_TEST_BUILD_DIR:-$PWD/build}/fuzz/$name
mkdir -p "$folder/corpus"
flags="-std=gnu11 -O1 -g -fno-omit-frame-pointer -D_GNU_SOURCE= -DXTAL_DEBUG=1 -Isrc -Iinclude -Itest"
flags="$flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"

command -v clang >/dev/null || { echo "SKIP: clang is not installed"; exit 77; }
printf '#include "lib/fuzz.h"\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { (void)d; (void)n; return 0; }\n' \
	>"$folder/probe.c"
if ! clang $flags "$folder/probe.c" -o "$folder/probe" 2>"$folder/log"; then
	echo "SKIP: clang has no libFuzzer runtime here: $(head -n 1 "$folder/log")"
	exit 77
fi
if ! "$folder/probe" -runs=1 >"$folder/log" 2>&1; then
	echo "SKIP: a program with libFuzzer does not start here: $(tail -n 1 "$folder/log")"
	exit 77
fi
clang $flags "test/fuzz/$name.c" src/wire/*.c src/base/*.c -o "$folder/hunt" || exit 1
corpora=("$folder/corpus")
[ ! -d "test/fuzz/corpus/$name" ] || corpora+=("test/fuzz/corpus/$name")
if "$folder/hunt" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -max_len=2048 -use_value_profile=1 \
	-print_final_stats=1 -artifact_prefix="$folder/" "${corpora[@]}" >"$folder/log" 2>&1; then
	grep -E 'stat::number_of_executed_units|cov:' "$folder/log" | tail -n 2
	exit 0
fi
tail -n 60 "$folder/log"
for input in "$folder"/crash-* "$folder"/timeout-* "$folder"/oom-*; do
	[ ! -e "$input" ] || echo "again: $folder/hunt $input"
done
exit 1
