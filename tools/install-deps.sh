#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing to build or test Xtal, through apt, and says what and why.
#   install-deps.sh [build] [test] [bench]      groups; default: build
# Silent when nothing is missing. Needs root or sudo only then. XTAL_NO_AARCH64=1 leaves the
# aarch64 cross build out (it enables the arm64 architecture in dpkg).
set -eu

# package | group | how to see that it is there | what for
packages='
gcc               | build | command -v gcc                       | C compiler
libc6-dev         | build | have_header stdio.h                  | C library headers
make              | build | command -v make                      | make demo, make test
cmake             | build | command -v cmake                     | build system
ninja-build       | build | command -v ninja                     | build system
pkg-config        | build | command -v pkg-config                | finds libraries
python3           | build | command -v python3                   | export lists, manual pages, checks
libinih-dev       | build | pkg-config --exists inih             | configuration files
libssl-dev        | build | pkg-config --exists "libssl >= 3.0"    | TLS between hosts
libjansson-dev    | build | pkg-config --exists jansson          | JSON output of the xtal command
g++               | test  | command -v g++                       | headers must compile as C++
clang             | test  | command -v clang                     | second compiler
libclang-rt-dev   | test  | have_libfuzzer                       | runtime of the fuzzers
clang-format      | test  | command -v clang-format              | format check
libcmocka-dev     | test  | pkg-config --exists cmocka           | unit test library
libjemalloc2      | test  | have_library libjemalloc.so.2         | the races of adoption over another allocator
mandoc            | test  | command -v mandoc                    | manual page check
spin              | test  | command -v spin                      | memory order models
procps            | test  | command -v ps                        | system tests look at processes
ucx-utils         | bench | command -v ucx_perftest             | the comparison with UCX
libucx-dev        | bench | have_header ucp/api/ucp.h            | the UCX libraries it runs on
iperf3            | bench | command -v iperf3                    | the comparison of TCP streams
iproute2          | bench | command -v ip                        | two hosts for the measurements
gnuplot-nox       | bench | command -v gnuplot                   | the plots
tshark            | test  | command -v tshark                | the Wireshark dissector is tried on captures
util-linux        | test  | command -v unshare                   | system tests use namespaces
'
arm64='
gcc-aarch64-linux-gnu | command -v aarch64-linux-gnu-gcc | cross compiler
libc6-dev-arm64-cross | test -e /usr/aarch64-linux-gnu/include/stdio.h | its C library
libc6:arm64           | test -e /lib/ld-linux-aarch64.so.1 | C library under qemu
qemu-user             | command -v qemu-aarch64 | runs aarch64 programs
libinih-dev:arm64     | test -e /usr/lib/aarch64-linux-gnu/libinih.so | configuration files
libssl-dev:arm64      | test -e /usr/lib/aarch64-linux-gnu/libssl.so | TLS between hosts
libjansson-dev:arm64  | test -e /usr/lib/aarch64-linux-gnu/libjansson.so | JSON output
libcmocka-dev:arm64   | test -e /usr/lib/aarch64-linux-gnu/libcmocka.so | unit test library
'

have_header() {
	command -v gcc >/dev/null && echo "#include <$1>" | gcc -E - >/dev/null
}

have_library() {
	PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q "$1"
}

have_libfuzzer() {
	command -v clang >/dev/null && clang -fsanitize=fuzzer -x c -o /dev/null - \
		<<<'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && !n; }'
}

trim() {
	local text=$1
	text=${text#"${text%%[![:space:]]*}"}
	echo "${text%"${text##*[![:space:]]}"}"
}

# Finds how to become root; complains with the list of packages when it cannot.
find_root() {
	if [ "$(id -u)" -eq 0 ]; then
		root=
	elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		root=sudo
	else
		echo "install-deps: neither root nor a usable sudo. Ask an administrator for:" \
			"apt-get install $*" >&2
		exit 1
	fi
	if ! command -v apt-get >/dev/null; then
		echo "install-deps: no apt-get on this machine; please install what these Debian" \
			"packages hold: $*" >&2
		exit 1
	fi
}

apt() {
	$root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1
}

groups=" ${*:-build} "
log=$(mktemp)
trap 'rm -f "$log"' EXIT

missing=()
while IFS='|' read -r package group probe reason; do
	package=$(trim "$package")
	[ -n "$package" ] || continue
	case $groups in *" $(trim "$group") "*) ;; *) continue ;; esac
	if ! eval "$probe" >/dev/null 2>&1; then
		[ ${#missing[@]} -gt 0 ] || echo "install-deps: missing on this machine:"
		printf '  %-22s %s\n' "$package" "$(trim "$reason")"
		missing+=("$package")
	fi
done <<<"$packages"
if [ ${#missing[@]} -gt 0 ]; then
	find_root "${missing[@]}"
	echo "install-deps: installing them with apt-get"
	apt update || echo "install-deps: apt-get update failed, trying with the lists at hand"
	if ! apt install -y --no-install-recommends "${missing[@]}"; then
		cat "$log" >&2
		echo "install-deps: apt-get could not install: ${missing[*]}" >&2
		exit 1
	fi
fi

# The cross build is worth having, not worth failing for: the tests report what is skipped.
case $groups in *" test "*) ;; *) exit 0 ;; esac
[ -z "${XTAL_NO_AARCH64:-}" ] || exit 0
[ "$(uname -m)" = x86_64 ] || exit 0
missing=()
while IFS='|' read -r package probe reason; do
	package=$(trim "$package")
	[ -n "$package" ] || continue
	if ! eval "$probe" >/dev/null 2>&1; then
		[ ${#missing[@]} -gt 0 ] || echo "install-deps: missing for the aarch64 build:"
		printf '  %-22s %s\n' "$package" "$(trim "$reason")"
		missing+=("$package")
	fi
done <<<"$arm64"
[ ${#missing[@]} -gt 0 ] || exit 0
find_root "${missing[@]}"
added=
if ! dpkg --print-foreign-architectures | grep -qx arm64; then
	echo "install-deps: enabling the arm64 architecture in dpkg (undo: dpkg --remove-architecture arm64)"
	$root dpkg --add-architecture arm64
	added=1
fi
echo "install-deps: installing them with apt-get"
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; }; then
	tail -n 5 "$log" >&2
	echo "install-deps: no arm64 packages to be had here; the aarch64 build will be skipped" >&2
	if [ -n "$added" ]; then
		$root dpkg --remove-architecture arm64 || true
		apt update || true
	fi
fi
