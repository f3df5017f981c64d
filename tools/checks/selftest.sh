#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Proves that every check can fail: plants small trees that are right but for one thing, and
# wants the check to name that thing. A check that cannot fail checks nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
cases=0
failed=0

spdx='/* SPDX-License-Identifier: MIT */'

# A tree in which everything is right.
plant() {
	rm -rf "$tree"
	mkdir -p "$tree/include" "$tree"/src/{base,os,wire,path,core,cdma,cli} \
		"$tree"/tools/checks "$tree/build/lib" "$tree/build/man/man3"
	cp "$repo/.clang-format" "$tree"
	printf '%s\n#include <stdint.h>\n#define XTAL_INTERNAL_API __attribute__((visibility("default")))\n' \
		"$spdx" >"$tree/src/base/export.h"
	printf '%s\n#include "base/export.h"\n\nXTAL_INTERNAL_API int xtal_queue_depth(void);\n' \
		"$spdx" >"$tree/src/core/queue.h"
	printf '%s\n#include "core/queue.h"\n#include "xtal.h"\n\nint xtal_queue_depth(void)\n{\n\treturn 1;\n}\n\nint xtal_version(void)\n{\n\treturn 1;\n}\n' \
		"$spdx" >"$tree/src/core/queue.c"
	printf '%s\n#include "core/queue.h"\n\n/* not a call: exit( abort( 4096 */\n' \
		"$spdx" >"$tree/src/cdma/api.c"
	printf '%s\n#include <sys/mman.h>\n#include <unistd.h>\n' "$spdx" >"$tree/src/os/vm.c"
	printf '%s\n#define XTAL_API __attribute__((visibility("default")))\n#ifdef __cplusplus\nextern "C" {\n#endif\nXTAL_API int xtal_version(void);\n#ifdef __cplusplus\n}\n#endif\n' \
		"$spdx" >"$tree/include/xtal.h"
	printf '# none\n' >"$tree/tools/checks/exceptions.txt"
}

# Builds the planted libxtal.so.1, with the map that the tree's headers ask for.
link_planted() { # link_planted [FLAGS...]
	(
		cd "$tree"
		python3 "$repo/tools/mapfile.py" core build/gen/xtal.map include/xtal.h src/core/queue.h
		gcc -shared -fPIC -fvisibility=hidden -Iinclude -Isrc src/core/queue.c \
			-o build/lib/libxtal.so.1 -Wl,-soname,libxtal.so.1 -Wl,-z,nodelete -Wl,-z,now \
			-Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN' \
			-Wl,--version-script=build/gen/xtal.map "$@"
	)
}

# wants WORDS CHECK: the check must fail and say WORDS; "ok" as WORDS: it must pass.
wants() {
	local words=$1 check=$2 output status=0
	output=$("$here/run.sh" "$check" "$tree" "$tree/build" 2>&1) || status=$?
	cases=$((cases + 1))
	if [ "$words" = ok ]; then
		[ $status -eq 0 ] || { echo "$check: complains about a good tree: $output"; failed=1; }
	elif [ $status -ne 1 ]; then
		echo "$check: status $status, should have failed with: $words"
		failed=1
	elif ! grep -qF -- "$words" <<<"$output"; then
		echo "$check: should say: $words"
		echo "$output"
		failed=1
	fi
}

add() { # add FILE LINES...: appends
	local file=$tree/$1
	shift
	printf '%s\n' "$@" >>"$file"
}

fresh() { # fresh FILE LINES...: a new file with the licence line
	printf '%s\n' "$spdx" >"$tree/$1"
	add "$@"
}

plant
for check in arrows headers sizes hygiene format; do
	wants ok $check
done

# arrows
fresh src/base/up.c '#include "core/queue.h"'
wants 'src/base/up.c:2: base must not include core/queue.h' arrows
plant
fresh src/wire/sys.c '#include "os/vm.h"'
wants 'wire must not include os/vm.h' arrows
plant
fresh src/cdma/deep.c '#include "os/vm.h"'
wants 'cdma must not include os/vm.h' arrows
plant
mkdir "$tree/src/urma"
fresh src/urma/side.c '#include "cdma/api.h"'
wants 'urma must not include cdma/api.h' arrows
plant
fresh src/core/sys.c '#  include <sys/epoll.h>'
wants 'core must not include <sys/epoll.h>' arrows
plant
fresh src/core/sys.c '#include <linux/futex.h>'
wants 'core must not include <linux/futex.h>' arrows
plant
fresh src/cli/main.c '#include "core/queue.h"'
wants 'cli must not include core/queue.h' arrows
plant
fresh src/path/x.c '#include "../core/queue.h"'
wants 'not relatively' arrows
plant
fresh src/wire/x.c '#include "xtal.h"'
wants 'wire must not know the public header xtal.h' arrows
plant
add include/xtal.h '#include "core/queue.h"'
wants 'a public header must not include core/queue.h' arrows
plant
mkdir "$tree/src/misc"
fresh src/misc/x.c
wants 'a source file belongs in' arrows
plant
fresh src/core/sys.c '#include <sys/epoll.h>'
add tools/checks/exceptions.txt 'arrows src/core/sys.c sys/epoll.h a reason in words'
wants ok arrows
rm "$tree/src/core/sys.c"
wants 'excuses nothing' arrows
plant
add tools/checks/exceptions.txt 'arrows src/core/sys.c sys/epoll.h'
wants 'check file what reason' arrows

# headers
plant
fresh src/core/alone.h 'uint32_t xtal_depth(void);'
wants 'src/core/alone.h:1: does not compile alone with gcc' headers
plant
add include/xtal.h 'int xtal_bad(int class);'
wants 'does not compile alone with g++ -std=c++11' headers
plant
add include/xtal.h 'static inline int xtal_cpp(void *p) { char *q = p; return *q; }'
wants 'does not compile alone with clang++' headers

# sizes
plant
{ echo "$spdx"; yes '/* line */' | head -n 900; } >"$tree/src/core/big.c"
wants '901 lines, at most 900' sizes
plant
{ echo "$spdx"; yes '/* line */' | head -n 150; } >"$tree/src/core/big.h"
wants '151 lines, at most 150' sizes
plant
fresh src/core/wide.c
for i in $(seq 31); do
	fresh "src/core/h$i.h"
	add src/core/wide.c "#include \"core/h$i.h\""
done
wants 'reaches 31 project headers' sizes
plant
fresh src/core/lost.c '#include "core/nowhere.h"'
wants 'an include is missing' sizes

# hygiene
for code in 'abort();' 'exit(1);' 'assert(1);' '_exit(0);'; do
	plant
	fresh src/core/end.c "void f(void) { $code }"
	wants 'must not end its program' hygiene
done
plant
fresh src/os/sig.c 'void f(void) { sigaction(1, 0, 0); }'
wants 'no signal handlers' hygiene
plant
fresh src/os/sysv.c 'int f(void) { return shmget(1, 2, 3); }'
wants 'outlive a killed process' hygiene
plant
fresh src/path/page.c 'int page = 4096u;'
wants 'ask for the page size' hygiene
plant
printf 'int x;\n' >"$tree/src/core/licence.c"
wants 'no SPDX-License-Identifier' hygiene
plant
fresh src/core/note.c "/* TO""DO: later */"
wants 'finish it or file it' hygiene
plant
fresh src/core/blank.c 'int x; '
wants 'blanks at the end' hygiene
plant
printf '#!/bin/sh\ntrue\n' >"$tree/tools/x.sh"
wants 'tools/x.sh:1: no SPDX' hygiene

# format
if command -v clang-format >/dev/null; then
	plant
	fresh src/core/ugly.c 'int  f(void) {return 1;}'
	wants "run 'make format'" format
	"$here/format.sh" --apply "$tree"
	wants ok format
fi

# symbols
plant
link_planted
wants ok symbols
add include/xtal.h 'int xtal_hidden(void);'
wants 'declares xtal_hidden(), which is not exported' symbols
plant
link_planted
sed -i '/xtal_version/d' "$tree/include/xtal.h"
wants 'exports xtal_version, which xtal.h does not declare' symbols
plant
link_planted
sed -i 's/XTAL_INTERNAL_API int/int/' "$tree/src/core/queue.h"
wants 'exports xtal_queue_depth' symbols
plant
link_planted -Wl,-soname,libother.so
wants 'soname is not libxtal.so.1' symbols
plant
link_planted '-Wl,-rpath,/opt'
wants 'RUNPATH is not $ORIGIN' symbols
plant
link_planted
fresh src/base/mark.h '#include "base/export.h"' 'XTAL_INTERNAL_API int xtal_mark(void);'
wants 'only has an effect in src/core' symbols

# man
if command -v mandoc >/dev/null; then
	plant
	printf '.TH A 3 2026-01-01 "Xtal" "Xtal"\n.SH NAME\na \\- b\n' >"$tree/build/man/man3/a.3"
	wants ok man
	printf '.XX\n' >>"$tree/build/man/man3/a.3"
	wants 'XX' man
fi

echo "selftest: $cases cases"
exit $failed
