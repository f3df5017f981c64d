#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make bench`: measures every row of the speed budget beside what is
# installed, prints the table, and leaves bench/out/{bench.json,latency.svg,bandwidth.svg}.
#
#   BENCH_ROUNDS=5     rounds; every figure is the median over them
#   BENCH_SLICES=15    slices per round and way, measured in turn
#   BENCH_WRAP="chrt -f 1"   put in front of what is measured, on both sides (root, and care: it
#                      takes the machine for the second that each one lasts)
#   BENCH_ONLY="copy rate"   only these measurements; see doc/benchmarks.md
#   BENCH_PLOT=3       rounds of the sweep over sizes; 0: no sweep, no plots
#   BENCH_SIZES="8 ..."      its sizes
#   BENCH_IDLE=10      seconds of the idle measurement
# Exit status: 0 when every bound that was measured is met, 1 otherwise.
set -u
cd "$(dirname "$0")/.."

out=bench/out
lines=$out/lines.jsonl
rounds=${BENCH_ROUNDS:-5}
slices=${BENCH_SLICES:-15}
only=${BENCH_ONLY:-pingpong rate copy post faa cma adopt scale idle memory tcp peers urma}
mkdir -p "$out"
: >"$lines"
unset UCX_TLS UCX_ALLOC_PRIO

wanted() {
	case " $only " in *" $1 "*) return 0 ;; esac
	return 1
}

. bench/functions.sh

[ "$(nproc)" -gt 1 ] || echo "bench: one core only: figures of two processes mean little"
echo "bench: $rounds rounds of $slices slices" >&2

if wanted pingpong; then
	measure pingpong latency raw xtal strict
fi
if wanted rate; then
	for r in $(seq "$rounds"); do # round by round beside UCX
		rounds=1 measure rate stream --size 8 --batch 16 xtal
		UCX_TLS=posix,self ucx rate.ucp "$r" 8 2000000 ucp_put_bw
		ucx rate.uct "$r" 8 5000000 put_bw -x posix -d memory -D short
	done
fi
if wanted copy; then
	measure copy64k stream --memory shared --size 65536 --batch 1 memcpy xtal
	for mib in 4 16 64; do
		measure copy${mib}m stream --memory shared --size $((mib << 20)) --batch 1 memcpy xtal
	done
fi
wanted post && measure post post --size $((16 << 20))
wanted faa && measure faa stream --op faa --size 8 --batch 1 xtal &&
	measure faa16 stream --op faa --size 8 --batch 16 xtal
wanted cma && measure cma stream --memory malloc --size 8 --batch 1 vm xtal
if wanted adopt; then
	measure adopted latency --memory adopted raw xtal
	measure adopted64k stream --memory adopted --size 65536 --batch 1 xtal
	measure ours64k stream --memory shared --size 65536 --batch 1 memcpy xtal
	measure adopt adopt --size $((16 << 20))
fi
if wanted scale; then
	measure scale scale --batch 1
	measure scale16 scale --batch 16
fi
wanted idle && measure idle idle --seconds "${BENCH_IDLE:-10}"
wanted memory && measure memory memory
wanted tcp && { bench/hosts.sh bench/tcp.sh "$lines" "$rounds" "$slices" ||
	echo "bench: no two hosts here, no tcp rows" >&2; }
if wanted peers; then
	XTAL_SECURITY=none measure peers peers
fi

if wanted urma; then
	. bench/urma.sh
fi

# The plots: fewer slices, powers of four.
if [ "${BENCH_PLOT:-3}" != 0 ]; then
	sizes=${BENCH_SIZES:-8 32 128 512 2048 8192 32768 131072 524288 2097152}
	for r in $(seq "${BENCH_PLOT:-3}"); do
		for size in $sizes; do
			rounds=1 slices=5
			measure lat.map latency --size $size xtal memcpy vm
			XTAL_PATHS=cma measure lat.cma latency --memory malloc --size $size xtal
			XTAL_PATHS=ring measure lat.ring latency --memory malloc --size $size xtal
			measure bw.map stream --memory shared --size $size memcpy xtal
			XTAL_PATHS=cma measure bw.cma stream --memory malloc --size $size vm xtal
			XTAL_PATHS=ring measure bw.ring stream --memory malloc --size $size xtal
			count=$((size < 4096 ? 50000 : 200000000 / size))
			UCX_TLS=posix,self ucx lat.ucx_posix $r $size $count ucp_put_lat
			UCX_TLS=posix,self ucx bw.ucx_posix $r $size $count ucp_put_bw
			UCX_TLS=posix,cma,self UCX_ALLOC_PRIO=heap \
				ucx lat.ucx_cma $r $size $((count / 2)) ucp_put_lat
			UCX_TLS=posix,cma,self UCX_ALLOC_PRIO=heap \
				ucx bw.ucx_cma $r $size $((count / 2)) ucp_put_bw
		done
	done 2>"$out/sweep.log"
fi
exec python3 bench/report.py table "$lines" "$out"
