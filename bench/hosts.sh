#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a command on one of two hosts: network namespaces joined by a veth pair, which go with the
# command. Needs root, or a user namespace (made when there is none).
#
#   bench/hosts.sh COMMAND...   on 10.77.0.1; BENCH_HOST=FILE is the namespace of 10.77.0.2, for
#                               nsenter --net=FILE or setns()
# Exit status: the command's; 125 when the hosts cannot be made.
set -eu
if [ -z "${BENCH_UNSHARED:-}" ]; then
	user=--map-root-user
	[ "$(id -u)" != 0 ] || user=
	BENCH_UNSHARED=1 exec unshare $user --net "$0" "$@"
fi

unshare --net sleep infinity &
other=$!
trap 'kill $other' EXIT
here=$(readlink /proc/self/ns/net)
for _ in $(seq 100); do # until it has left this namespace
	[ "$(readlink /proc/$other/ns/net)" = "$here" ] || break
	sleep 0.02
done
{
	ip link set lo up
	ip link add eth0 type veth peer name eth0 netns $other
	ip address add 10.77.0.1/24 dev eth0
	ip link set eth0 up
	nsenter --net=/proc/$other/ns/net sh -c 'ip link set lo up
		ip address add 10.77.0.2/24 dev eth0 && ip link set eth0 up'
} || exit 125
for _ in $(seq 100); do # until the cable carries
	ip link show eth0 | grep -q 'state UP' && break
	sleep 0.02
done
BENCH_HOST=/proc/$other/ns/net "$@"
