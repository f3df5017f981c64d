#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the manual pages, generated and hand-written, with mandoc: man.sh ROOT BUILD
set -eu
root=$1
build=$2
if ! command -v mandoc >/dev/null; then
	echo "SKIP: mandoc is not installed"
	exit 77
fi
status=0
count=0
for page in "$build"/man/man3/*.3 "$root"/man/*.[137]; do
	[ -e "$page" ] || continue
	count=$((count + 1))
	mandoc -T lint -W warning "$page" || status=1
done
# Every block of a public header has become a page.
if [ -d "$build/man/man3" ]; then
	for name in $(grep -rhoE '^ \* (dma|urma|xtal)_[a-z0-9_]+ - ' "$root/include" | cut -d' ' -f3); do
		[ -e "$build/man/man3/$name.3" ] || { echo "man: no page of $name()"; status=1; }
	done
fi
[ $status -ne 0 ] || echo "man: ok, $count pages"
exit $status
