#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plants bugs in the session's machines, one at a time, and runs the simulation against each: a
# test of the test. A bug that no seed finds, or that can no longer be planted because its
# line is gone, is a failure. ctest: timeout=400 plain
#
#   mutants.sh [NAME]    only this one; XTAL_TEST_BUILD_DIR names a build folder of the gcc preset
set -u
cd "${XTAL_TEST_SOURCE_DIR:-$(dirname "$0")/../..}" || exit 1
build=${XTAL_TEST_BUILD_DIR:-build/dev}
seeds=${XTAL_TEST_SIM_SEEDS:-4000}
only=${1:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags="-std=gnu11 -O1 -D_GNU_SOURCE= -DXTAL_DEBUG=1 -Isrc -Iinclude -Itest"
survivors=0 killed=0

# The command that was kept for the seed fails again.
replays() {
	local line
	line=$(tail -n 1 "$folder/sim-failures.txt") || return 1
	! eval "${line%%#*}" >/dev/null
}

# plant NAME FILE TEXT REPLACEMENT: TEXT stands once in FILE.
plant() {
	local name=$1 file=$2 line=$3 replacement=$4 copy=$folder/$1.c text began
	[ -z "$only" ] || [ "$only" = "$name" ] || return
	if ! python3 -c 'import sys; sys.exit(open(sys.argv[1]).read().count(sys.argv[2]) != 1)' \
		"$file" "$line"; then
		echo "$name: its line is no longer in $file: $line"
		survivors=$((survivors + 1))
		return
	fi
	python3 - "$file" "$copy" "$line" "$replacement" <<'PY'
import sys
source, copy, line, replacement = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
with open(copy, "w", encoding="utf-8") as file:
    file.write(text.replace(line, replacement))
PY
	# an object of our own goes before that of the library
	if ! gcc $flags -w "$copy" test/sim/session.c "$build/obj/libxtal_test_lib.a" \
		"$build/obj/libxtal_testing.a" -o "$folder/$name" 2>"$folder/log"; then
		echo "$name: does not compile"
		cat "$folder/log"
		survivors=$((survivors + 1))
		return
	fi
	began=$(date +%s%N)
	text=$(XTAL_TEST_SIM_SEEDS=$seeds XTAL_TEST_SIM_FAILURES=1 XTAL_TEST_BUILD_DIR=$folder \
		timeout 100 "$folder/$name")
	if [ $? -eq 1 ] && text=$(printf '%s\n' "$text" | grep -m1 '^seed ') && replays; then
		echo "$name: found after $((($(date +%s%N) - began) / 1000000)) ms: $text"
		killed=$((killed + 1))
	else
		echo "$name: NOT FOUND by $seeds seeds"
		survivors=$((survivors + 1))
	fi
}

wire=src/wire

# a resumed target takes back the last frame that it has executed
plant double-execution $wire/responder.c 'if (r->waiting) {' \
	'if (r->waiting || r->seq != r->config.first_seq) {'
# answers that were lost do not come again
plant lost-answers $wire/responder.c 'r->replayed = r->cached - kept;' 'r->replayed = r->cached;'
# the initiator says that it has received one answer more than it has
plant false-ack $wire/initiator.c '.seq = c->requester->response_seq - 1,' \
	'.seq = c->requester->response_seq - !i->welcomed,'
# leases outlast deadlines
plant late-landing $wire/requester.c 'return xtal_add_saturated(c->peer_stamp, deadline - spent);' \
	'return xtal_add_saturated(c->peer_stamp, deadline - spent + 4 * c->margin);'
# a payload lands although its lease ended while it arrived
plant late-payload $wire/target.c 'return t->executing && (t->expiry == 0 || now <= t->expiry);' \
	'return t->executing;'
# a replayed value is not the one that the atomic found
plant wrong-value $wire/responder.c 'reply->operand[0] = c->old[0];' 'reply->operand[0] = 0;'
# a WRITE follows a READ that may have to run again
plant no-fence $wire/requester.c \
	'if (s->request.type != XTAL_MSG_READ && r->reads != 0)' 'if (0)'
# a frame whose payload was cut off counts as executed
plant half-a-frame $wire/responder.c 'r->seq--;' ';'
# what was read of the old connection goes on in the new one
plant old-bytes $wire/target.c $'forget_connection(t);\n\tt->attempt' 't->attempt'
# an old greeting that arrives late takes the session over
plant stale-greeting $wire/target.c 'return hello->attempt <= t->attempt;' 'return false;'
# frames sent again have the lease of their first time
plant old-lease $wire/requester.c 'uint64_t deadline = xtal_requester_deadline(r, s);
	uint64_t spent' 'uint64_t deadline = s->request.deadline; uint64_t spent'
# a READ starts again from its beginning
plant read-from-start $wire/requester_end.c 's->framed = s->received;' 's->framed = 0;'
# frames that are shorter than before are placed as if all had been
plant short-frames $wire/requester_end.c 's->base += (done - s->base_frames) * s->piece;' \
	's->base = done * s->piece;'
# answers are numbered on from the lost ones
plant old-numbers $wire/responder.c 'r->reply_seq = received + 1;' ''
# operations that nobody waits for are freed before their answer
plant early-free $wire/requester.c \
	'!xtal_seq_after(s->first_seq + s->frames - 1, seq))' 'seq != s->first_seq - 100)'
# no sign of progress while a long WRITE is executed
plant no-news $wire/target.c 'if (t->replying || now - t->spoke_at < XTAL_SESSION_NEWS)' 'if (1)'
# a message whose answer was lost is taken for one that was not received, and sent again
plant double-delivery $wire/requester.c '.status = m->status,' \
	'.status = s->request.type == XTAL_MSG_SEND && !xtal_seq_after(m->ack, r->acked) ?
		XTAL_NOT_READY : m->status,'
# ... or comes again by itself
plant message-from-start $wire/requester_end.c $'if (s->request.type == XTAL_MSG_READ) {\n\t\ts->frames' \
	'if (s->request.type == XTAL_MSG_READ || s->request.type == XTAL_MSG_SEND) { s->frames'
# messages have no lease, and arrive after they were reported failed
plant late-delivery $wire/requester.c '.expiry = lease_of(r, s),' \
	'.expiry = q->type == XTAL_MSG_SEND ? 0 : lease_of(r, s),'
# a message is received although one in front of it was not
plant overtaking $wire/responder.c 'if (m->notify.addr != 0)' 'if (0)'
# ... once the connection has been replaced
plant forgotten-refusal $wire/responder.c 'r->resumed = true;' 'r->resumed = true; r->refusing = 0;'
# a queue that was refused once waits for ever
plant refused-for-ever $wire/responder.c 'if (m->notify.addr != 0)' 'if (1)'
# messages are sent without one in front of them that was given up
plant orphans $wire/requester_end.c 's->orphan = true;' ';'
# dead connections are waited for
plant no-silence $wire/initiator.c 'if (now < later(i->asked_at, i->config.silence))' 'if (1)'
# a short form does not tell that it follows another message
plant short-follows $wire/short.c '(m->notify.addr != 0 ? MARK_FOLLOWS : 0)' '0'
# ... has half a lease
plant short-lease $wire/short.c 'xtal_put64(out + AT_EXPIRY, m->expiry);' \
	'xtal_put64(out + AT_EXPIRY, m->expiry / 2);'
# ... or acknowledges what its model did
plant short-ack $wire/short.c 'out->ack = restore(xtal_get32(in + AT_ACK_LOW), model->ack);' \
	'out->ack = model->ack + 8;'
# ... brings the immediate value of its model
plant short-immediate $wire/short.c 'out->operand[0] = imm ? xtal_get64(in + AT_DATA) : 0;' \
	'out->operand[0] = imm ? model->operand[0] : 0;'

echo "$killed planted bugs found, $survivors not"
[ "$survivors" -eq 0 ] && [ "$killed" -gt 0 ]
