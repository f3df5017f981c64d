#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every header compiles alone: all as C11 (gcc and clang), the public ones also
as C99 and C++11, as programs of others include them.

  headers.py ROOT
"""
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tree import Report, files

INTERNAL = [["gcc", "-std=gnu11", "-x", "c"], ["clang", "-std=gnu11", "-x", "c"]]
PUBLIC = INTERNAL + [["gcc", "-std=c99", "-x", "c"], ["clang", "-std=c99", "-x", "c"],
                     ["g++", "-std=c++11", "-x", "c++"], ["clang++", "-std=c++11", "-x", "c++"]]


def compile_alone(root, path, command):
    """The compiler's words when the header does not compile alone, else None."""
    text = '#include "%s"\n#include "%s"\nint xtal_unused;\n' % ((os.path.abspath(
        os.path.join(root, path)),) * 2)
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wundef", "-I", "include"]
    if path.startswith("src/"):
        flags += ["-I", "src", "-D_GNU_SOURCE=", "-DXTAL_DEBUG=1"]
    result = subprocess.run(command + flags + ["-"], input=text, cwd=root, text=True,
                            capture_output=True, check=False)
    return result.stderr.strip() if result.returncode else None


def main():
    root = sys.argv[1]
    report = Report(root, "headers")
    jobs = []
    for path in files(root, ["include", "src"], (".h",)):
        for command in PUBLIC if path.startswith("include/") else INTERNAL:
            if shutil.which(command[0]):
                jobs.append((path, command))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda job: compile_alone(root, *job), jobs)
    for (path, command), answer in zip(jobs, answers):
        if answer:
            report.add(path, 1, command[0], "does not compile alone with %s %s:\n%s"
                       % (command[0], command[1], answer))
    return report.finish("%d compilations" % len(jobs))


if __name__ == "__main__":
    sys.exit(main())
