# SPDX-License-Identifier: MIT
# What run.sh and tcp.sh share. Set before: lines, rounds, slices.
bin=build/release/bench

# measure SERIES PROGRAM ARGUMENTS...: a failure costs its rows, not the others.
measure() {
	local series=$1 program=$2
	shift 2
	${BENCH_WRAP:-} "$bin/$program" --series "$series" --rounds "$rounds" --slices "$slices" "$@" >>"$lines" ||
		echo "bench: $series failed" >&2
}

# ucx SERIES ROUND SIZE COUNT TEST ARGUMENTS...: one run of ucx_perftest with both processes
# pinned; its typical (50th percentile) latency or its average rate, in ns per operation.
# $there runs a command on the server's host, whose address is $address.
there=
address=localhost
port=$((20000 + $$ % 20000))
ucx() {
	local series=$1 round=$2 size=$3 count=$4 test=$5 text pid cores
	shift 5
	command -v ucx_perftest >/dev/null || return 0
	cores=$(nproc)
	port=$((port + 1))
	UCX_WARN_UNUSED_ENV_VARS=n timeout 60 $there ${BENCH_WRAP:-} ucx_perftest -c $((1 % cores)) -p $port "$@" \
		>/dev/null 2>&1 &
	pid=$!
	await_listener
	text=$(UCX_WARN_UNUSED_ENV_VARS=n timeout 60 ${BENCH_WRAP:-} ucx_perftest -c 0 -p $port $address -t "$test" \
		-s "$size" -n "$count" -f -v "$@" 2>/dev/null | tail -n 1)
	wait $pid
	python3 bench/report.py ucx "$series" "$round" "$size" "$test" "$text" >>"$lines" ||
		echo "bench: ucx_perftest $test of $size bytes failed" >&2
}

# Until somebody listens on $port.
await_listener() {
	for _ in $(seq 100); do
		$there grep -qi ":$(printf %04x $port) " /proc/net/tcp && return
		sleep 0.02
	done
}

# iperf SERIES ROUND: one stream of one second, both processes pinned; ns per MiB.
iperf() {
	local series=$1 round=$2 pid
	command -v iperf3 >/dev/null || return 0
	port=$((port + 1))
	timeout 20 $there ${BENCH_WRAP:-} iperf3 -s -1 -p $port -A $((1 % $(nproc))) >/dev/null 2>&1 &
	pid=$!
	await_listener
	timeout 20 ${BENCH_WRAP:-} iperf3 -c "$address" -p $port -t 1 -A 0 -J 2>/dev/null |
		python3 bench/report.py iperf "$series" "$round" >>"$lines" ||
		echo "bench: iperf3 failed" >&2
	wait $pid
}
