#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The numbered examples end well, also where the hardware's restrictions hold and over each
# path that two processes may have; and the log says what CDMA_LOG_LEVEL asks for.
# ctest: timeout=300
set -u
build=${XTAL_TEST_BUILD_DIR:?}
export LD_LIBRARY_PATH=$build/lib # a sanitizer's dlopen does not see the program's RUNPATH
read -ra emulator <<<"${XTAL_TEST_EMULATOR:-}"
failures=0

run()
{
	local name=$1
	shift
	if ! output=$(env "$@" "${emulator[@]}" "$build/examples/$name" 2>&1); then
		echo "FAIL: $* $name"
		echo "$output"
		failures=$((failures + 1))
	fi
}

# The two processes of 03_write_read; an emulated program cannot start itself again.
pair()
{
	local socket server
	if [ ${#emulator[@]} -eq 0 ]; then
		run 03_write_read "$@"
		return
	fi
	socket=$(mktemp -u)
	env "$@" "${emulator[@]}" "$build/examples/03_write_read" server "$socket" &
	server=$!
	if ! env "$@" "${emulator[@]}" "$build/examples/03_write_read" client "$socket" ||
		! wait $server; then
		echo "FAIL: $* 03_write_read"
		failures=$((failures + 1))
	fi
}

# expect WORDS|- NAME=value...: the front-end's log of an example has the words, or is empty
expect()
{
	local words=$1
	shift
	output=$(env "$@" XTAL_LOG=stderr "${emulator[@]}" "$build/examples/02_api_walk" 2>&1 |
		grep "^CDMA_LOG_TAG")
	case $words:$output in
	-:) ;;
	-:*) false ;;
	*) grep -q "$words" <<<"$output" ;;
	esac || {
		echo "FAIL: $*: the log should have '$words', and is '$output'"
		failures=$((failures + 1))
	}
}

for strict in 0 1; do
	for name in 01_list_devices 02_api_walk 04_epoll; do
		run $name XTAL_STRICT=$strict
	done
	pair XTAL_STRICT=$strict
	pair XTAL_STRICT=$strict XTAL_PATHS=ring
done

run 06_two_apis

expect - CDMA_LOG_LEVEL=warning
expect "info: libcdma 1.0.2" CDMA_LOG_LEVEL=Info
expect '"loud", which is none of' CDMA_LOG_LEVEL=loud

[ $failures -eq 0 ] && echo "examples: ok"
exit $failures
