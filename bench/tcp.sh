#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rows of operations over TCP, for run.sh, on a host of hosts.sh: on that host alone (lo), and
# to the other one (veth). Round by round beside iperf3 and UCX.
#   tcp.sh LINES ROUNDS SLICES
set -u
lines=$1 all=$2 slices=$3 rounds=1
. bench/functions.sh

key=bench/out/key
rm -f $key
build/release/bin/xtal key new $key >/dev/null || exit 1
export BENCH_FROM=10.77.0.1 BENCH_TO
other=$BENCH_HOST

# twins NET: the engine beside bare sockets, or bare OpenSSL.
twins() {
	local mib=$((1 << 20))
	export XTAL_SECURITY=none
	measure "tcp_$1.8" tcp --batch 1 xtal read raw
	measure "tcp_$1.1m" tcp --size $mib --batch 16 xtal read raw
	unset XTAL_SECURITY
	export XTAL_KEY_FILE=$key
	measure "tls_$1.8" tcp --batch 1 xtal read ssl
	measure "tls_$1.1m" tcp --size $mib --batch 16 xtal read ssl
	unset XTAL_KEY_FILE
}

unset BENCH_HOST
BENCH_TO=10.77.0.1 XTAL_KEY_FILE=$key measure peers_tls peers
for r in $(seq "$all"); do
	for net in lo veth; do
		unset BENCH_HOST
		there='' BENCH_TO=10.77.0.1
		if [ $net = veth ]; then
			export BENCH_HOST=$other
			there="nsenter --net=$other" BENCH_TO=10.77.0.2
		fi
		address=$BENCH_TO
		twins $net
		iperf "tcp_$net.iperf" "$r"
		UCX_TLS=tcp ucx "tcp_$net.ucx8" "$r" 8 20000 ucp_put_lat
		UCX_TLS=tcp ucx "tcp_$net.ucx1m" "$r" $((1 << 20)) 1000 ucp_put_bw
	done
done
rm -f $key
