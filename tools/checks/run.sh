#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs one check: run.sh NAME ROOT BUILD. Exit status 0 ok, 1 complaints, 77 skipped.
set -eu
name=$1
root=$2
build=$3
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1
case $name in
arrows | headers | sizes | hygiene) exec python3 "$here/$name.py" "$root" ;;
symbols) exec python3 "$here/symbols.py" "$root" "$build" ;;
format) exec "$here/format.sh" "$root" ;;
man | install) exec "$here/$name.sh" "$root" "$build" ;;
tools) exec python3 "$here/test_tools.py" ;;
*)
	echo "no check named $name" >&2
	exit 2
	;;
esac
