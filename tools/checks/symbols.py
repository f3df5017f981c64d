#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the libraries export exactly what the headers declare.

  symbols.py ROOT BUILD

libxtal.so.1: node XTAL_1 = functions of xtal.h, XTAL_PRIVATE = functions of src/core marked
XTAL_INTERNAL_API. Front-ends: the functions of their public header. Also checks the soname,
RUNPATH and the flags that rule 8 of the design asks for.
"""
import glob
import os
import re
import subprocess
import sys

from tree import Report, files
from cheader import functions
from mapfile import core_nodes

# library, headers (patterns), how many functions they declare
FRONTENDS = [("libcdma.so.1", ["include/cdma_u_lib.h"], 19),
             ("liburma.so.0", ["include/urma_api/*.h", "include/urma_types/*.h",
                               "include/urma_perf.h", "src/urma/private.h"], 133 + 3),
             ("libtpsa.so.0", ["src/tpsa/tpsa.h"], 1)]


def exported(path):
    """{name: node} of the defined dynamic symbols; node "" when unversioned."""
    text = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path],
                          text=True, capture_output=True, check=True).stdout
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) == 3 and words[1] != "A":
            name, _, node = words[2].partition("@")
            found[name] = node.lstrip("@")
    return found


def dynamic(path):
    return subprocess.run(["readelf", "-dW", path], text=True, capture_output=True,
                          check=True).stdout


def compare(report, library, what, wanted, got):
    for name in sorted(set(wanted) - set(got)):
        report.add(library, 0, name, "%s declares %s(), which is not exported: no definition, or "
                   "not of default visibility" % (what, name))
    for name in sorted(set(got) - set(wanted)):
        report.add(library, 0, name, "exports %s, which %s does not declare" % (name, what))


def check_flags(report, library, path):
    text = dynamic(path)
    if "soname: [%s]" % library not in text:
        report.add(library, 0, "soname", "soname is not " + library)
    for flag in ("NODELETE", "NOW"):
        if not re.search(r"FLAGS.*\b%s\b" % flag, text):
            report.add(library, 0, flag, "not linked with -z " + flag.lower())
    if not re.search(r"RUNPATH.*\[\$ORIGIN\]", text):
        report.add(library, 0, "RUNPATH", "RUNPATH is not $ORIGIN")


def main():
    root, build = sys.argv[1], sys.argv[2]
    report = Report(root, "symbols")
    lib = os.path.join(build, "lib", "libxtal.so.1")
    if not os.path.exists(lib):
        print("SKIP: %s is not built" % lib)
        return 77
    headers = files(root, ["src/core"], (".h",))
    if os.path.exists(os.path.join(root, "include/xtal.h")):
        headers.append("include/xtal.h")
    public, private = core_nodes([os.path.join(root, path) for path in headers])
    got = exported(lib)
    compare(report, "libxtal.so.1", "xtal.h", public,
            [name for name, node in got.items() if node == "XTAL_1"])
    compare(report, "libxtal.so.1", "src/core (XTAL_INTERNAL_API)", private,
            [name for name, node in got.items() if node == "XTAL_PRIVATE"])
    for name, node in got.items():
        if node not in ("XTAL_1", "XTAL_PRIVATE"):
            report.add("libxtal.so.1", 0, name, "%s has version node '%s'" % (name, node))
    check_flags(report, "libxtal.so.1", lib)
    for path in files(root, ["src"], (".h",)):
        for function in functions(os.path.join(root, path)):
            if "XTAL_INTERNAL_API" in function.markers and not path.startswith("src/core/"):
                report.add(path, function.line, function.name,
                           "XTAL_INTERNAL_API only has an effect in src/core")

    total = len(got)
    for library, headers, count in FRONTENDS:
        path = os.path.join(build, "lib", library)
        if not os.path.exists(path):
            continue
        wanted = [f.name for header in headers
                  for path in sorted(glob.glob(os.path.join(root, header)))
                  for f in functions(path)]
        if len(wanted) != count:
            report.add(headers[0], 1, "count", "%d functions declared, %d expected"
                       % (len(wanted), count))
        got = exported(path)
        compare(report, library, os.path.basename(headers[0]), wanted, got)
        check_flags(report, library, path)
        total += len(got)
    return report.finish("%d exported symbols" % total)


if __name__ == "__main__":
    sys.exit(main())
