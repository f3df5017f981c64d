#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test/model/run.sh [MODEL...]: search every model exhaustively with spin.
#
# A model says in comment lines of its own what is to be tried:
#   /* mutants: A B */    -DMUTANT_A must be refuted by the checker
#   /* variants: X Y,Z */ -DX, and -DY -DZ together, must hold like the plain model
#   /* witnesses: W */    -DWITNESS_W asserts that something cannot happen that can:
#                         it must be refuted, else the model proves nothing
#   /* large */            worth an optimising compiler
#
# Exit: 0 all passed, 1 something failed, 2 usage, 77 spin or a C compiler is missing.

here=$(cd "$(dirname "$0")" && pwd) || exit 2
cc=${HOSTCC:-cc}

for tool in spin "$cc"; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "skipped: $tool is not installed"
		exit 77
	}
done

if [ $# -eq 0 ]; then
	for f in "$here"/*.pml; do
		set -- "$@" "$(basename "$f" .pml)"
	done
fi
for m in "$@"; do
	[ -f "$here/$m.pml" ] || {
		echo "run.sh: no model '$m'; there are: $(cd "$here" && echo *.pml | sed 's/\.pml//g')" >&2
		exit 2
	}
done

tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cp "$here"/*.pml "$here"/*.h "$tmp" && cd "$tmp" || exit 2

passed=0 failed=0

list() {	# list MODEL KIND
	sed -n "s,^/\* $2: \(.*\) \*/\$,\1,p" "$1.pml"
}

ok() {
	passed=$((passed + 1))
	echo "ok $1"
}

fail() {
	failed=$((failed + 1))
	echo "FAIL $1: $2"
	[ -f log ] && tail -n 25 log | sed 's/^/    /'
}

search() {	# search MODEL OPTIMISATION [-D...]; the result is in ./log
	model=$1 opt=$2
	shift 2
	rm -f pan pan.* ./*.trail log
	spin -a "$@" "$model.pml" >log 2>&1 || return 1
	! grep -qi 'error' log || return 1
	$cc "$opt" -w -DSAFETY -DMEMLIM=2048 -o pan pan.c >>log 2>&1 || return 1
	./pan -m20000 -w20 >log 2>&1
	! grep -Eq 'max search depth too small|out of memory|MEMLIM bound|aborting|VECTORSZ|too many' log
}

states() {
	sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' log
}

holds() {	# holds NAME MODEL [-D...]
	name=$1
	shift
	model=$1
	shift
	opt=-O0
	grep -q '^/\* large \*/$' "$model.pml" && opt=-O1
	if ! search "$model" $opt "$@"; then
		fail "$name" "not searched to the end"
	elif grep -q 'errors: 0$' log && ! grep -q 'Search not completed' log; then
		ok "$name ($(states))"
	else
		fail "$name" "$(sed -n 's/^pan:1: //p' log)"
		spin -t -p "$@" "$model.pml" 2>&1 | tail -n 25 | sed 's/^/    /'
	fi
}

refuted() {	# refuted NAME MODEL [-D...]
	name=$1
	shift
	model=$1
	shift
	if ! search "$model" -O0 "$@"; then
		fail "$name" "not searched"
	elif grep -q 'errors: 1$' log && grep -Eq '^pan:1: (assertion violated|invalid end state)' log; then
		ok "$name ($(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' log))"
	else
		fail "$name" "not refuted"
	fi
}

for m in "$@"; do
	holds "$m" "$m"
	for v in $(list "$m" variants); do
		# shellcheck disable=SC2046 # one word per definition
		holds "$m $v" "$m" $(echo ",$v" | sed 's/,/ -D/g')
	done
	for x in $(list "$m" mutants); do
		refuted "$m mutant $x" "$m" "-DMUTANT_$x"
	done
	for w in $(list "$m" witnesses); do
		refuted "$m witness $w" "$m" "-DWITNESS_$w"
	done
	# a definition that no list names would never be tried
	for d in $(grep -o '\(MUTANT\|WITNESS\)_[A-Z0-9_]*' "$m.pml" | sort -u); do
		case " $(list "$m" mutants | sed 's/[^ ]*/MUTANT_&/g') $(list "$m" witnesses | sed 's/[^ ]*/WITNESS_&/g') " in
		*" $d "*) ;;
		*) rm -f log; fail "$m $d" "is in no list" ;;
		esac
	done
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
