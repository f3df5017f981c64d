#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the size of files and the reach of their includes; reports long functions.

  sizes.py ROOT

Hard: .c files 900 lines, internal headers 150, headers outside src/base that one .c of src
reaches 30 (src/base is vocabulary; why 30 and not fewer: doc/rationale.md).
Only reported: .c files over 500 lines, functions over 60.
"""
import re
import subprocess
import sys

from tree import Report, files, read

SOURCE_HARD, SOURCE_SOFT, HEADER_HARD, REACH_HARD, FUNCTION_SOFT = 900, 500, 150, 30, 60


def reach(root, path):
    """Project headers that path pulls in, itself excluded, a public header and its parts as one;
    None when it does not preprocess."""
    result = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-DXTAL_DEBUG=1", "-MM",
                             "-Iinclude", "-Isrc", path], cwd=root, text=True,
                            capture_output=True, check=False)
    if result.returncode:
        return None
    words = result.stdout.replace("\\\n", " ").split()
    return [word for word in words[1:] if word.endswith(".h") and not word.startswith("src/base/")
            and not re.match("include/.*/", word)]


def long_functions(text):
    """(line, length) of functions over the soft limit; bodies start and end in column 0."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > FUNCTION_SOFT:
                yield start, number - start - 1
            start = None


def main():
    root = sys.argv[1]
    report = Report(root, "sizes")
    sources = files(root, ["src", "test", "examples", "bench"], (".c",))
    for path in sources:
        text = read(root, path)
        lines = text.count("\n")
        if lines > SOURCE_HARD:
            report.add(path, 1, "lines", "%d lines, at most %d" % (lines, SOURCE_HARD))
        elif lines > SOURCE_SOFT:
            print("note: %s: %d lines, %d are plenty" % (path, lines, SOURCE_SOFT))
        for line, length in long_functions(text):
            print("note: %s:%d: function of %d lines" % (path, line, length))
        if path.startswith("src/"):
            headers = reach(root, path)
            if headers is None:
                report.add(path, 1, "include", "an include is missing")
            elif len(headers) > REACH_HARD:
                report.add(path, 1, "reach", "reaches %d project headers, at most %d: %s"
                           % (len(headers), REACH_HARD, " ".join(headers)))
    headers = files(root, ["src"], (".h",))
    for path in headers:
        lines = read(root, path).count("\n")
        if lines > HEADER_HARD:
            report.add(path, 1, "lines", "%d lines, at most %d" % (lines, HEADER_HARD))
    return report.finish("%d files" % (len(sources) + len(headers)))


if __name__ == "__main__":
    sys.exit(main())
