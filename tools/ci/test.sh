#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make test`: builds every preset, runs its tests (the checks are tests of the dev build) and
# ends with one line "N passed, N failed, N skipped" over all of them.
#
#   XTAL_TEST_BUILDS="dev asan"   only these (default: dev clang asan tsan aarch64)
#   XTAL_TEST_BUDGET=1200         seconds for everything
#   XTAL_TEST_SCALE=100           per cent of the iterations in the dev build; 15 elsewhere, 8 under tsan, 5 under aarch64
set -u
cd "$(dirname "$0")/../.."

tools/install-deps.sh build test || exit 1

builds=${XTAL_TEST_BUILDS:-dev clang asan tsan aarch64}
deadline=$(($(date +%s) + ${XTAL_TEST_BUDGET:-1200}))
results=build/results
rm -rf "$results"
mkdir -p "$results"

# Why a build cannot run here, or nothing. Sanitizers are tried, not believed.
why_not() {
	local flags=
	case $1 in
	clang) command -v clang >/dev/null || echo "clang is not installed" ;;
	aarch64)
		local what
		[ "$(uname -m)" != aarch64 ] || { echo "this machine is aarch64: see dev"; return; }
		for what in aarch64-linux-gnu-gcc qemu-aarch64; do
			command -v $what >/dev/null || { echo "$what is not installed"; return; }
		done
		[ -e /lib/ld-linux-aarch64.so.1 ] || { echo "libc6:arm64 is not installed"; return; }
		for what in inih ssl jansson cmocka; do
			[ -e /usr/lib/aarch64-linux-gnu/lib$what.so ] ||
				{ echo "the arm64 library $what is not installed"; return; }
		done
		;;
	asan) flags=-fsanitize=address,undefined ;;
	tsan) flags=-fsanitize=thread ;;
	esac
	[ -n "$flags" ] || return
	echo 'int main(void) { return 0; }' >"$results/probe.c"
	if ! gcc $flags "$results/probe.c" -o "$results/probe" 2>/dev/null; then
		echo "gcc cannot link with $flags"
	elif ! ASAN_OPTIONS=detect_leaks=0 "$results/probe" >/dev/null 2>&1; then
		echo "a program built with $flags does not start here"
	elif [ "$1" = asan ] && ! "$results/probe" >/dev/null 2>&1; then
		echo "note: LeakSanitizer cannot run here (no ptrace?): leaks are not looked for" >&2
		touch "$results/no-leaks"
	fi
}

run_build() {
	local build=$1 reason left stop only=()
	reason=$(why_not "$build")
	if [ -n "$reason" ]; then
		echo "SKIP: $build build: $reason"
		echo "$reason" >"$results/$build.skip"
		return
	fi
	if ! { cmake --preset "$build" && cmake --build --preset "$build"; } \
		>"$results/$build.log" 2>&1; then
		grep -E -A5 'error:|Error|FAILED' "$results/$build.log" | head -n 60
		echo "the $build build failed" | tee "$results/$build.broken"
		return
	fi
	[ "$build" != clang ] || only=(-L unit) # gcc's builds run all of it four times
	ctest --preset "$build" "${only[@]}" -N | sed -n 's/^Total Tests: //p' >"$results/$build.expected"
	left=$((deadline - $(date +%s)))
	if [ $left -lt 10 ]; then
		echo "no time left for the $build tests" | tee "$results/$build.broken"
		return
	fi
	stop=$(date -d "@$deadline" +%H:%M:%S)
	(
		case $build in
		dev) ;;
		tsan) export XTAL_TEST_SCALE=${XTAL_TEST_SCALE:-8} ;; # twenty times slower
		aarch64) export XTAL_TEST_SCALE=${XTAL_TEST_SCALE:-5} ;; # emulated
		*) export XTAL_TEST_SCALE=${XTAL_TEST_SCALE:-15} ;;
		esac
		[ ! -e "$results/no-leaks" ] || export ASAN_OPTIONS=detect_leaks=0
		timeout -k 10 $((left + 30)) ctest --preset "$build" "${only[@]}" -j $((2 * $(nproc))) \
			--stop-time "$stop" --test-output-size-passed 4000000 \
			--test-output-size-failed 4000000 --output-junit "$PWD/$results/$build.xml"
	)
}

for build in $builds; do
	echo "== $build"
	began=$(date +%s)
	run_build "$build"
	echo "== $build took $(($(date +%s) - began)) s"
done
exec python3 tools/ci/summary.py "$results"
