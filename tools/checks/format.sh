#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks the layout of all C files against .clang-format, or with --apply brings them into it:
#   format.sh [--apply] ROOT
set -eu

apply=
if [ "$1" = --apply ]; then
	apply=1
	shift
fi
cd "$1"
if ! command -v clang-format >/dev/null; then
	echo "SKIP: clang-format is not installed"
	exit 77
fi

folders=()
for folder in include src test examples bench; do
	[ ! -d "$folder" ] || folders+=("$folder")
done
files=()
if [ ${#folders[@]} -gt 0 ]; then
	mapfile -d '' files < <(find "${folders[@]}" -path test/model -prune -o -name "*.[ch]" -print0 | sort -z)
fi
if [ ${#files[@]} -eq 0 ]; then
	echo "format: ok, 0 files"
elif [ -n "$apply" ]; then
	clang-format -i --style=file "${files[@]}"
elif clang-format -n -Werror --ferror-limit=3 --style=file "${files[@]}"; then
	echo "format: ok, ${#files[@]} files"
else
	echo "format: run 'make format'"
	exit 1
fi
