#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make soak`: the long forms (hours) of the tests labelled soak, in an optimised build and
# under ASan; they see XTAL_TEST_SOAK=1. XTAL_TEST_SOAK_BUILDS="soak" leaves ASan out.
set -eu
cd "$(dirname "$0")/../.."
tools/install-deps.sh build test
export XTAL_TEST_SOAK=1
# Machines halt processes for seconds now and then; within hours it comes to pass.
export XTAL_TIMEOUT_MS=${XTAL_TIMEOUT_MS:-60000}
status=0
for build in ${XTAL_TEST_SOAK_BUILDS:-soak soak-asan}; do
	echo "== $build"
	cmake --preset "$build" >/dev/null
	cmake --build --preset "$build"
	none=ignore
	[ "$build" = soak-asan ] || none=error
	ctest --test-dir "build/$build" -L soak --output-on-failure --no-tests=$none || status=1
done
exit $status
