# SPDX-License-Identifier: MIT
# What people type. Everything real is in CMakeLists.txt and tools/.
PREFIX ?= /usr/local

.PHONY: build demo test bench soak install check format clean help

build:
	@tools/install-deps.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release

# The status lines of the build go to stderr, so that the demo's own words stand alone.
demo:
	@tools/install-deps.sh build
	@cmake --preset release >/dev/null
	@cmake --build --preset release >&2
	@build/release/bin/xtal demo

test:
	@tools/ci/test.sh

bench: build
	@tools/install-deps.sh build bench
	@bench/run.sh

soak:
	@tools/ci/soak.sh

install: build
	@cmake --install build/release --prefix "$(PREFIX)"

check:
	@tools/install-deps.sh build test
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev
	@ctest --test-dir build/dev -L check --output-on-failure

format:
	@tools/checks/format.sh --apply .

clean:
	@rm -rf build

help:
	@echo "make            build (build/release)"
	@echo "make demo       two processes exchange data through libcdma.so"
	@echo "make test       every build, every test, at most 20 minutes on 2 cores"
	@echo "make check      only the checks of the tree (arrows, headers, symbols, ...)"
	@echo "make soak       the long forms of the tests: hours"
	@echo "make bench      measurements beside what is installed"
	@echo "make install    into PREFIX=$(PREFIX)"
	@echo "make format     bring the C files into the house format"
	@echo "make clean      remove build/"
