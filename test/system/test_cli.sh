#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The xtal command as people use it: info, demo, every performance test on every path, server
# and client, wrong command lines, interruption and death. $XTAL_TEST_BIN is the command to test.
# ctest: timeout=600 serial plain
set -u

xtal=${XTAL_TEST_BIN:-${XTAL_TEST_BUILD_DIR:+$XTAL_TEST_BUILD_DIR/bin/xtal}}
if [ -z "$xtal" ]; then
	echo "XTAL_TEST_BIN does not say which xtal to test" >&2
	exit 1
fi
if [ ! -x "$xtal" ]; then
	echo "$xtal is not there" >&2
	exit 1
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0

ok() {
	passed=$((passed + 1))
}

# fail NAME WORDS: with what the last run wrote.
fail() {
	failed=$((failed + 1))
	echo "FAIL: $1: $2"
	sed 's/^/    out: /' "$dir/out" 2>/dev/null | head -20
	sed 's/^/    err: /' "$dir/err" 2>/dev/null | head -20
}

# check NAME CONDITION...: the words are a command.
check() {
	local name=$1

	shift
	if "$@"; then
		ok
	else
		fail "$name" "not true: $*"
	fi
}

# run NAME STATUS ARGUMENTS...: runs xtal, at most 60 s, and checks how it ends.
run() {
	local name=$1 want=$2 got

	shift 2
	timeout -k 5 60 "$xtal" "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	if [ $got -eq "$want" ]; then
		ok
	else
		fail "$name" "exit status $got, not $want"
		return 1
	fi
}

out_has() {
	grep -qE -- "$1" "$dir/out"
}

err_has() {
	grep -qE -- "$1" "$dir/err"
}

# json NAME EXPRESSION...: python's view of the output, as the variable j; each is a check.
json() {
	local name=$1 wrong

	shift
	wrong=$(python3 - "$dir/out" "$@" <<'PY' 2>&1
import json, sys
try:
    j = json.load(open(sys.argv[1]))
    for expression in sys.argv[2:]:
        if not eval(expression):
            print("not true:", expression)
except Exception as e:
    print("no sense:", repr(e))
PY
	)
	if [ -z "$wrong" ]; then
		passed=$((passed + $#))
	else
		fail "$name" "$wrong"
	fi
}

# Processes that outlived the command that started them: none may. All of ours have the mark
# in their environment.
export CLI_TEST_MARK=$$
leftovers() {
	python3 - "CLI_TEST_MARK=$$" <<'PY'
import os, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if int(pid) != os.getpid() and sys.argv[1] in open("/proc/%s/environ" % pid).read().split("\0"):
            print(pid)
    except OSError:
        pass
PY
}

none_left() {
	local tries=10

	while [ -n "$(leftovers)" ]; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.2
	done
}

usable() {
	grep -qw "$1" "$dir/usable"
}

test_help() {
	run help 0 --help
	check "help names the commands" out_has '^  perf '
	check "help hides the owner" sh -c "! grep -q owner $dir/out"
	run version 0 --version
	check "version" out_has '^xtal [0-9]+\.[0-9]+\.[0-9]+$'
	local c
	for c in info demo perf key; do
		run "$c help" 0 "$c" --help
		check "$c help" out_has "^Usage: xtal $c"
		check "$c help tells exit statuses" out_has '^Exit status'
	done
}

# usage NAME PATTERN ARGUMENTS...: status 2, the message, and where help is.
usage() {
	local name=$1 pattern=$2

	shift 2
	run "$name" 2 "$@"
	check "$name: message" err_has "$pattern"
	check "$name: points to help" err_has "^Try 'xtal.* --help'"
	check "$name: nothing on stdout" test ! -s "$dir/out"
}

test_usage() {
	run "no command" 2
	run "perf of too much memory" 1 perf write_bw -s 4095m -q 1024 -n 1
	check "perf of too much memory: message" err_has 'needs [0-9]+ MiB of xtal_alloc memory, and [0-9]+ MiB are available'
	usage "unknown command" "no command 'inof'; did you mean info" inof
	usage "quite unknown command" "no command 'format'$" format
	usage "unknown option" 'unknown option --nope' --nope
	usage "info option" 'unknown option --jsn; did you mean --json' info --jsn
	usage "info word" "what is 'x'" info x
	usage "demo option" 'unknown option -x' demo -x
	usage "demo api" "there is no api 'ibverbs'; cdma and urma are" demo --api=ibverbs
	usage "demo value" 'option --help takes no value' demo --help=1
	usage "perf without test" 'which test' perf
	usage "perf unknown test" "no test 'write': .*_lat or _bw" perf write
	usage "perf cas size" 'works on 4, 8 or 16 bytes, not 3' perf cas_lat -s 3
	usage "perf server without a name" '--server wants a name' perf --server=
	usage "perf client without a name" '--client wants a name' perf write_lat --client ''
	usage "perf two tests" 'one test at a time' perf write_lat read_lat
	usage "perf size" '-s wants' perf write_lat -s 8x
	usage "perf size 0" '-s wants' perf write_lat -s 0
	usage "perf size large" '-s wants' perf write_lat -s 4g
	usage "perf size missing" 'option -s needs a value' perf write_lat -s
	usage "perf path missing" 'option --path needs a value' perf write_lat --path
	usage "perf iterations" '-n wants 1 to 1099511627776 ' perf write_lat -n -5
	usage "perf duration" '-D wants' perf write_lat -D soon
	usage "perf both counts" 'exclude each other' perf write_lat -n 5 -D 1
	usage "perf a and s" 'exclude each other' perf write_lat -a -s 5
	usage "perf queues for lat" 'for the bw tests' perf write_lat -q 2
	usage "perf queues" '-q wants' perf write_bw -q 0
	usage "perf depth" '-t wants' perf write_bw -t 70000
	usage "perf path" '--path wants' perf write_lat --path tpc
	usage "perf memory" '--memory wants' perf write_lat --memory gpu
	usage "perf atomic size" 'faa works on' perf faa_lat -s 16
	usage "perf atomic sizes" 'not for atomics' perf cas_lat -a
	usage "perf ambiguous" 'ambiguous' perf write_lat --s 8
	usage "perf server and client" 'exclude each other' perf write_lat --server x --client y
	usage "perf api" "there is no api 'verbs'; cdma and urma are" perf write_lat --api verbs
	usage "perf api without a name" 'option --api needs a value' perf write_lat --api
	usage "perf send of cdma" 'send is no operation of cdma: with --api urma' perf send_lat
	usage "perf swap of cdma" 'swap is no operation of cdma' perf swap_bw --api=cdma
	usage "perf send by stores" '--path wants ring, tcp or auto' perf send_lat --api urma --path map
	usage "perf write_imm by stores" '--path wants ring, tcp or auto' \
		perf --api urma --path=self write_imm_bw
	usage "perf half a name" "no test 'write_imm': .*with --api urma also send, write_imm or swap" \
		perf --api urma write_imm
	usage "perf swap size" 'swap works on 4 or 8 bytes, not 16' perf swap_lat --api urma -s 16
	usage "perf swap sizes" 'not for atomics' perf swap_bw --api urma -a
	usage "perf self client" 'no --client' perf write_lat --path self --client y
	usage "owner by hand" 'not by hand' owner
	usage "key without a word" "new FILE" key
	usage "key unknown" "no 'key make'" key make x
	usage "key without a file" 'takes one file' key new
	usage "key with two files" 'takes one file' key id a b
	usage "key option" 'unknown option --force' key --force new x
}

test_info() {
	run info 0 info || return
	check "info names the device" out_has '^  xtal0 '
	check "info lists the settings" out_has 'XTAL_PATHS'
	check "info names the paths" out_has '^  ring '
	check "info tells of adoption" out_has '^  (none|user|full) '
	XTAL_LOG=stderr run "info with a log" 0 info || return
	check "the tests' own variables are no settings" test -z "$(grep 'not a setting' "$dir/err")"
	printf 'spin_us = 7\n[eid]\n1 = 10.0.0.1\n' >"$dir/bad.ini"
	XTAL_LOG=stderr XTAL_CONFIG=$dir/bad.ini XTAL_KEY=x XTAL_1=x XTAL_STRICT=yes \
		run "info with mistakes" 0 info --json || return
	check "the beginning of a name is understood" \
		err_has 'XTAL_KEY from environment .* did you mean XTAL_KEY_FILE\?'
	check "a name that is like none" err_has "XTAL_1 from environment .*; 'xtal info' lists them"
	check "who said it" err_has '^xtal\[[0-9]+\]: warning: '
	XTAL_LOG=$dir/lines XTAL_1=x run "info with a log file" 0 info || return
	check "when, and who" grep -qE \
		'^20[0-9-]{8}T[0-9:]{8}\.[0-9]{6}Z xtal\[[0-9]+\]: warning: XTAL_1' "$dir/lines"
	XTAL_LOG=stdout XTAL_1=x run "info with its log in between" 0 info || return
	check "the log on stdout" out_has '^xtal\[[0-9]+\]: warning: XTAL_1'
	check "no file of that name" test ! -e stdout
	XTAL_LOG=stderr XTAL_CONFIG=$dir/bad.ini XTAL_KEY=x XTAL_1=x XTAL_STRICT=yes \
		run "info with mistakes" 0 info --json || return
	check "a value that is none" err_has 'XTAL_STRICT=yes .* ignored: .*; 0: do not'
	check "a section that is none" err_has 'bad.ini line 3: .* no section \[eid\], only \[eids\]'
	json "info with mistakes" "any(s['name'] == 'XTAL_SPIN_US' and s['value'] == '7' for s in j['settings'])"
	run "info json" 0 info --json || return
	json "info json" "list(j)[0] == 'devices'" \
		"all(d['name'] for d in j['devices']) and j['devices'][0]['name'] == 'xtal0'" \
		"j['devices'][0]['capabilities']['max_msg_size'] == 2**32 - 1" \
		"j['devices'][0]['eid'] == '127.0.0.1' and j['devices'][0]['cdma_eids'] == [0x7f000001]" \
		"j['devices'][0]['usable'] and not j['devices'][0]['encrypted']" \
		"all(d['usable'] or 'xtal key new' in d['reason'] for d in j['devices'])" \
		"j['missing_devices'] == []" \
		"[p['name'] for p in j['paths']] == ['self', 'map', 'cma', 'ring', 'tcp']" \
		"all(p['reason'] for p in j['paths'])" \
		"all(s['name'].startswith('XTAL_') and s['origin'] and 'value' in s for s in j['settings'])" \
		"j['version'].count('.') == 2" \
		"[m['works'] for m in j['memory']] == [True] * 3" \
		"j['memory'][0]['path'] == 'self' and j['memory'][1]['path'] == 'map'"
	python3 -c 'import json, sys
for p in json.load(open(sys.argv[1]))["paths"]:
	if p["usable"]: print(p["name"])' "$dir/out" >"$dir/usable"
	check "self is usable" usable self
	check "map is usable" usable map
	check "ring is usable" usable ring
	check "tcp is usable" usable tcp

	XTAL_PATHS=ring run "info json, ring only" 0 info --json || return
	json "ring only" "[m['path'] for m in j['memory'][1:]] == ['ring'] * 2" \
		"not any(p['usable'] for p in j['paths'] if p['name'] in ('map', 'cma'))" \
		"[s for s in j['settings'] if s['name'] == 'XTAL_PATHS'][0]['origin'] == 'environment'"
}

test_devices() {
	XTAL_DEVICES=127.0.0.5,nosuch0 run "info with devices" 0 info --json || return
	json "info with devices" "[d['eid'] for d in j['devices']] == ['127.0.0.1', '127.0.0.5']" \
		"j['devices'][1]['loopback'] and j['devices'][1]['usable']" \
		"len(j['missing_devices']) == 1 and 'nosuch0' in j['missing_devices'][0]"
	XTAL_DEVICES=127.0.0.5,nosuch0 run "info with devices, for people" 0 info
	check "info tells what is missing" out_has 'not here +nosuch0 is neither'
}

test_key() {
	local key=$dir/key id

	run "key new" 0 key new "$key"
	check "key new tells the id" out_has '^key [0-9a-f]{16} is in '
	id=$(sed 's/^key \([0-9a-f]*\) .*/\1/' "$dir/out")
	check "key file is the owner's" test "$(stat -c %a "$key")" = 600
	check "key file has the key" grep -qE "^xtal-key-1 $id [0-9a-f]{64}\$" "$key"
	cp "$key" "$dir/key2"
	run "key new does not overwrite" 1 key new "$key"
	check "key new does not overwrite: words" err_has 'exists; a key is never overwritten'
	check "key new did not overwrite" cmp -s "$key" "$dir/key2"
	ln -s "$dir/elsewhere" "$dir/link"
	run "key new follows no link" 1 key new "$dir/link"
	check "key new followed no link" test ! -e "$dir/elsewhere"
	(umask 777 && run "key new, whatever the umask" 0 key new "$dir/key3")
	check "keys differ" sh -c "! cmp -s $key $dir/key3"
	run "key new somewhere impossible" 1 key new "$dir/none/key"
	run "key id" 0 key id "$key"
	check "key id is the one" test "$(cat "$dir/out")" = "$id"
	chmod 640 "$key"
	run "key id of a readable file" 1 key id "$key"
	check "key id of a readable file: words" err_has 'chmod 600'
	run "key id of another file" 1 key id "$0"
	run "key id of no file" 1 key id "$dir"
	check "key id of no file: words" err_has 'is no regular file'
	chmod 600 "$key"
	XTAL_KEY_FILE=$key run "info with a key" 0 info --json
	json "info with a key" "all(d['usable'] for d in j['devices'])"
	XTAL_SECURITY=none run "info without security" 0 info --json
	json "info without security" "not any(d['encrypted'] for d in j['devices'])" \
		"all(d['usable'] for d in j['devices'])"
}

test_demo() {
	local word

	run demo 0 demo || return
	for word in owner reach write read notify CAS FAA '64 MiB' alloc guard death; do
		check "demo: $word" out_has "^ *[0-9]+  $word "
	done
	check "demo: says how" out_has 'wrote 8 bytes to process [0-9]+ over (cma|ring) in [0-9.]+ [num]s'
	check "demo: verified" out_has 'compared every one'
	check "demo: what next" out_has "xtal perf write_lat -s 8"
	check "demo: a dozen lines" test "$(wc -l <"$dir/out")" -le 24
	check "demo: nothing on stderr" test ! -s "$dir/err"
	check "demo: nobody left" none_left
	XTAL_PATHS=ring run "demo over ring" 0 demo
	check "demo over ring says so" out_has 'over ring in'
	for path in ring tcp; do
		XTAL_PATHS=$path run "demo of urma over $path" 0 demo --api urma
		check "demo of urma: the server" out_has "S  .its memory. +wakes up, and finds 'hello urma'"
		check "demo of urma: the client" out_has "^11  C  urma_poll_jfc .* says 'hello urma'"
		check "demo of urma: nothing on stderr" test ! -s "$dir/err"
	done
	XTAL_FAULT=fail:op=2,status=REMOTE_ACCESS run "demo of urma that fails" 1 demo --api=urma
	check "demo of urma says why" err_has 'request 2 ended with REMOTE_ACCESS'
	check "demo of urma: nobody left" none_left
	XTAL_PATHS=self run "demo without a path" 1 demo
	check "demo without a path says why" err_has 'step [0-9]+: '
}

# perf PATH EXPRESSION TEST OPTIONS...: JSON, all rows on the path, verified, as the
# expression wants them (of one row r, with its latencies l).
perf() {
	local path=$1 more=$2 name="$3 on $1"

	shift 2
	run "$name: $*" 0 perf "$@" --path "$path" --json || return
	json "$name: $*" "j['rows'] and all(r['path_chosen'] == '$path' for r in j['rows'])" \
		"all(r['verified'] for r in j['rows'])" \
		"all(r['bytes'] == r['size'] * r['operations'] > 0 for r in j['rows'])" \
		"all($more for r in j['rows'] for l in [r.get('latency_us')])"
}

test_perf() {
	local path op

	for path in self map cma ring; do
		if ! usable $path; then
			echo "SKIP: $path does not work here"
			continue
		fi
		for op in write read notify cas faa; do
			perf $path "0 < l['min'] <= l['median'] <= l['p99'] <= l['p99.9'] <= l['max'] and r['iterations'] == 200" \
				${op}_lat -n 200
			perf $path "r['iterations'] == 300" ${op}_bw -n 300
		done
		perf $path "r['operations'] == 300" write_bw -n 50 -q 3 -t 7 -b -s 1000
		perf $path "r['operations'] == 200" read_bw -n 50 -q 2 -b
		perf $path "r['operations'] == 200" faa_bw -n 50 -q 2 -b -s 4
		perf $path True cas_bw -n 50 -s 16
		perf $path True write_lat -n 50 -s 13
		perf $path True write_lat -n 20 -s 1m
		perf $path True write_bw -n 10 -s 8m
		perf $path True read_lat -D 0.1
		perf $path "0.09 < r['seconds'] < 20" write_lat -D 0.1
		perf $path True notify_bw -D 0.1
	done
	check "perf: nobody left" none_left
}

# The same through URMA, and what only that has.
test_perf_urma() {
	local path op

	for op in write read notify cas faa swap; do
		perf ring "j['api'] == 'urma'" ${op}_lat -n 100 --api urma
	done
	for path in self map cma tcp; do
		usable $path || continue
		perf $path "j['api'] == 'urma'" notify_lat -n 100 --api urma
		perf $path "r['operations'] == 300" write_bw --api urma -n 50 -q 3 -t 7 -b -s 1000
	done
	perf map True cas_bw --api urma -n 50 -s 16
	for path in ring tcp; do
		for op in send write_imm; do
			perf $path "0 < l['min'] <= l['median'] and r['iterations'] == 200" \
				${op}_lat --api urma -n 200
			perf $path "r['operations'] == 600" ${op}_bw --api urma -n 100 -q 3 -t 7 -b -s 1000
		done
	done
	perf ring True send_bw --api urma -n 10 -q 70
	run "send of all sizes" 0 perf send_bw --api urma -a -n 2 --json --memory malloc || return
	json "send of all sizes" "[r['size'] for r in j['rows']] == [2 ** i for i in range(1, 24)]" \
		"all(r['verified'] and r['path'] == 'ring' for r in j['rows'])"
	run "send_lat for people" 0 perf send_lat --api urma -n 100 || return
	check "send_lat names the API" out_has '^send_lat of urma between process'
	check "send_lat says how it is measured" out_has 'ping-pong, half a round trip'
	check "perf of urma: nobody left" none_left
}

test_report() {
	run "write_lat" 0 perf write_lat -s 8 -n 1000 || return
	check "row for xtal_alloc memory over map" out_has '^xtal_alloc +map '
	if usable cma; then
		check "row for malloc memory over cma" out_has '^malloc +cma '
	fi
	check "reasons" out_has '^xtal_alloc map: .'
	check "direction" out_has 'ping-pong, half a round trip'
	check "warm-up is told" out_has 'warm-up not counted, data verified'
	run "write_bw" 0 perf write_bw -n 100 --no-verify || return
	check "units" out_has 'MB is 10\^6 bytes, MiB 2\^20'
	check "not verified is told" out_has 'NOT verified'
	run "all sizes" 0 perf write_bw -a -n 5 --json --memory xtal || return
	json "all sizes" "[r['size'] for r in j['rows']] == [2 ** i for i in range(1, 24)]"
	run "no path" 1 perf write_lat --path map --memory malloc
	check "no path: the reason" err_has 'malloc memory: no path'
}

# serve ARGUMENTS...: a server in the background; returns when it waits.
serve() {
	local tries=300

	: >"$dir/server" # else what the one before said is taken for its word
	"$xtal" perf "$@" >>"$dir/server" 2>&1 &
	server=$!
	until grep -q Waiting "$dir/server" || [ $((tries -= 1)) -eq 0 ]; do
		sleep 0.1
	done
}

test_two_shells() {
	local name=test-$$ server

	serve --server "$name"
	run "second server of that name" 1 perf --server "$name"
	check "second server of that name: message" err_has 'waiting already'
	run client 0 perf write_lat -n 100 --client "$name" --json
	json "client: rows" "len(j['rows']) == 2 and all(r['verified'] for r in j['rows'])"
	wait $server
	check "server ends well" test $? -eq 0
	check "server tells" grep -q '^Done' "$dir/server"
	run "client without server" 1 perf write_lat --client "$name"
	check "client without server: message" err_has "no server named"

	serve --server="$name"
	run "client chooses the path" 0 perf write_lat -n 100 --client "$name" --json --path ring
	json "client chooses the path" "all(r['path_chosen'] == 'ring' for r in j['rows'])"
	wait $server

	serve --server="$name"
	run "client chooses the API" 0 perf send_lat --api urma -n 100 --client "$name" --json
	json "client chooses the API" "all(r['verified'] for r in j['rows']) and j['api'] == 'urma'"
	wait $server
	check "nobody left" none_left
}

# Through a network address, here on one host: the conversation goes over TCP, the bytes do not.
test_addresses() {
	local server address port=$((20000 + $$ % 20000)) key=$dir/hosts.key other=$dir/other.key

	serve --server "127.0.0.1:$port"
	run "second server at an address" 1 perf --server "127.0.0.1:$port"
	check "second server at an address: message" err_has "cannot wait at .* TCP port $port"
	run "server at no address of ours" 1 perf --server 203.0.113.77
	check "server at no address of ours: message" err_has 'is no address of this host'
	run "client of no port" 1 perf write_lat --client 127.0.0.1:99999
	check "client of no port: message" err_has "the port '99999' is not 1 to 65535"
	run "client at an address" 0 perf write_lat -n 100 --client "127.0.0.1:$port" --json
	json "client at an address" "len(j['rows']) == 2 and all(r['verified'] for r in j['rows'])"
	wait $server
	check "server at an address ends well" test $? -eq 0
	serve --server "[::1]:$port"
	run "client without a number for IPv6" 1 perf write_lat -n 100 --client "[::1]:$port"
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	XTAL_DEVICES=::1 serve --server "[::1]:$port"
	XTAL_DEVICES=::1 run "client through URMA, which needs no number" 0 \
		perf send_bw --api urma -n 100 --client "[::1]:$port" --json
	json "client through URMA" "all(r['verified'] for r in j['rows'])"
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	run "no server at an address" 1 perf write_lat --client "127.0.0.1:$port"
	check "no server at an address: message" err_has 'no server answers at'
	run "no such address" 1 perf write_lat --client 300.0.0.1
	run "no such brackets" 1 perf write_lat --client '[::1'

	printf '[eids]\n5 = ::1\n' >"$dir/eids.ini"
	export XTAL_CONFIG=$dir/eids.ini XTAL_DEVICES=::1
	serve --server "[::1]:$port"
	run "client over IPv6" 0 perf read_bw -n 100 --client "[::1]:$port" --json
	json "client over IPv6" "all(r['verified'] for r in j['rows'])"
	wait $server
	unset XTAL_CONFIG XTAL_DEVICES

	"$xtal" info --json >"$dir/out"
	address=$(python3 -c 'import json, sys
print(next((d["eid"] for d in json.load(open(sys.argv[1]))["devices"][1:] if "." in d["eid"]), ""))' "$dir/out")
	if [ -z "$address" ]; then
		echo "SKIP: this host has no address that others could reach"
		return
	fi
	run "server without a key" 1 perf --server "$address:$port"
	check "server without a key: message" err_has 'xtal key new FILE'
	"$xtal" key new "$key" >/dev/null
	"$xtal" key new "$other" >/dev/null
	XTAL_KEY_FILE=$key serve --server "$address:$port"
	run "client without a key" 1 perf write_lat --client "$address:$port"
	check "client without a key: message" err_has 'xtal key new FILE'
	XTAL_KEY_FILE=$other run "client with another key" 1 perf write_lat --client "$address:$port"
	check "client with another key: message" err_has 'does the other host have the same key'
	XTAL_SECURITY=none run "client without security" 1 perf write_lat --client "$address:$port"
	check "client without security: message" err_has 'has XTAL_SECURITY=tls, this one none'
	XTAL_KEY_FILE=$key run "client with the key" 0 perf write_bw -b -n 100 --json \
		--client "$address:$port"
	json "client with the key" "all(r['verified'] for r in j['rows'])"
	wait $server
	check "server with a key ends well" test $? -eq 0
	check "server turned the others away" grep -q 'another key' "$dir/server"
	check "nobody left" none_left
}

# owner_of PID: waits until it has an owner process, and prints that one's pid.
owner_of() {
	local tries=100

	until pgrep -P "$1" || [ $((tries -= 1)) -eq 0 ]; do
		sleep 0.1
	done
	sleep 0.5
}

# streams NAME REDIRECTION ARGUMENTS...: xtal without a stream fails, and says why.
streams() {
	local name=$1 how=$2 got

	shift 2
	eval 'timeout -k 5 60 "$xtal" "$@" 2>"$dir/err"' "$how"
	got=$?
	: >"$dir/out"
	check "$name: status 1, not $got" test $got -eq 1
	check "$name: words" err_has '(output|report) could not be written'
}

test_streams() {
	local command

	for command in 'info' 'info --json' 'demo' 'perf write_lat -n 100'; do
		# shellcheck disable=SC2086
		streams "$command without stdout" '>&-' $command
		# shellcheck disable=SC2086
		streams "$command with a full disk" '>/dev/full' $command
	done
	run "demo without stdin" 0 demo <&-
}

# An owner that dies, a parent that dies, Ctrl-C: told in words, nobody left behind.
test_bad_luck() {
	local pid owner signal

	"$xtal" perf write_lat -D 20 --memory xtal >"$dir/out" 2>"$dir/err" &
	pid=$!
	owner=$(owner_of $pid)
	check "the owner is there" test -n "$owner"
	kill -9 "$owner"
	wait $pid
	check "owner killed: status 1" test $? -eq 1
	check "owner killed: words" err_has 'process [0-9]+ was killed by signal 9'

	"$xtal" perf write_bw -D 20 >"$dir/out" 2>"$dir/err" &
	pid=$!
	owner_of $pid >/dev/null
	kill -9 $pid
	wait $pid 2>/dev/null
	check "initiator killed: nobody left" none_left

	for signal in TERM INT; do
		# bash starts background jobs with SIGINT ignored; undo that
		env --default-signal=INT "$xtal" perf read_bw -D 20 >"$dir/out" 2>"$dir/err" &
		pid=$!
		owner_of $pid >/dev/null
		kill -$signal $pid
		wait $pid
		check "SIG$signal: status 130" test $? -eq 130
		check "SIG$signal: words" err_has 'interrupted'
	done
	check "interrupted: nobody left" none_left
}

test_help
test_usage
test_info
test_devices
test_key
test_demo
test_perf
test_perf_urma
test_report
test_two_shells
test_addresses
test_streams
test_bad_luck
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
