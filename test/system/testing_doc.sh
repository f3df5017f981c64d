#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The script of doc/testing.md does what its text says: with programs that notice faults, with one
# that does not, and with one that hangs. ctest: timeout=120 plain
set -u
build=${XTAL_TEST_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

sed -n '/^```sh$/,/^```$/p' "${XTAL_TEST_SOURCE_DIR:?}/doc/testing.md" | sed '1d;$d' \
	>"$work/faults.sh"
[ -s "$work/faults.sh" ] || { echo "FAIL: the page has no script"; exit 1; }

# expect STATUS WORDS COMMAND...
expect()
{
	local wanted=$1 words=$2
	shift 2
	output=$(sh "$work/faults.sh" "$@")
	if [ $? -ne "$wanted" ] || ! grep -q "$words" <<<"$output"; then
		echo "FAIL: $*: should end with $wanted and say '$words': $output"
		failures=$((failures + 1))
	fi
}

expect 0 "lose:op=1: ok" "$build/examples/02_api_walk"
expect 0 "kill:op=1: ok" "$build/examples/03_write_read"
# One that does not look at its exit status.
printf '#!/bin/sh\n"%s"\nexit 0\n' "$build/examples/02_api_walk" >"$work/deaf"
# One that waits for what does not come.
printf '#!/bin/sh\n"%s" || exec sleep 15\n' "$build/examples/02_api_walk" >"$work/stuck"
# One that is broken anyway.
printf '#!/bin/sh\nexit 3\n' >"$work/broken"
chmod +x "$work"/*
sed -i 's/timeout 10/timeout 2/; /lose:op=1/d; /status=UNREACHABLE/d' "$work/faults.sh" # quicker
expect 1 "status=REMOTE_ACCESS: it did not notice" "$work/deaf"
expect 1 "status=REMOTE_ACCESS: it hangs" "$work/stuck"
expect 1 "without any fault" "$work/broken"
[ $failures -eq 0 ] && echo "testing_doc: ok"
exit $((failures > 0))
