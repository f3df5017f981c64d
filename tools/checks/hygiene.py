#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks small rules that a library inside other people's programs has to keep.

  hygiene.py ROOT

No abort, exit, assert or signal handler in the libraries; the page size is asked for, not
4096; no notes to self; an SPDX line on top of every file; no blanks at line ends.
"""
import re
import sys

from tree import Report, files, read
from cheader import without_comments

LIBRARY = tuple("src/%s/" % name for name in
                ("base", "os", "wire", "path", "core", "cdma", "urma", "tpsa", "verbs"))
FORBIDDEN = [
    (re.compile(r"\b(abort|exit|_exit|_Exit|quick_exit|assert)\s*\("),
     "a library must not end its program: %s"),
    (re.compile(r"\b(signal|sigaction|sigset|bsd_signal|sysv_signal)\s*\("),
     "a library installs no signal handlers: %s"),
    (re.compile(r"\b(shmget|semget|msgget|shm_open|sem_open)\s*\("),
     "objects with names outlive a killed process (use memfd_create): %s"),
]
PAGE_SIZE = re.compile(r"\b(4096|0x1000)[uUlL]*\b")
NOTE = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
SPDX = "SPDX-License-Identifier: MIT"
OURS = (".c", ".h", ".sh", ".py", ".cmake", ".pml", "CMakeLists.txt", "Makefile")
FOLDERS = ["include", "src", "test", "examples", "bench", "tools", "man", ".ci"]


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def check_code(path, text, report):
    code = without_comments(text)
    if path.startswith(LIBRARY):
        for pattern, words in FORBIDDEN:
            for match in pattern.finditer(code):
                report.add(path, line_of(code, match), match.group(1), words % match.group(1))
    if not path.startswith("src/base/"):
        for match in PAGE_SIZE.finditer(code):
            report.add(path, line_of(code, match), "page-size",
                       "ask for the page size instead of writing " + match.group(0))


def check_text(path, text, report):
    if SPDX not in "\n".join(text.split("\n")[:2]):
        report.add(path, 1, "spdx", "no %s on top" % SPDX)
    for match in NOTE.finditer(text):
        report.add(path, line_of(text, match), "note", "finish it or file it: " + match.group(0))
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            report.add(path, number, "blanks", "blanks at the end of the line")
    if text and not text.endswith("\n"):
        report.add(path, text.count("\n") + 1, "newline", "no newline at the end of the file")


def main():
    root = sys.argv[1]
    report = Report(root, "hygiene")
    for path in files(root, ["src"], (".c", ".h")):
        check_code(path, read(root, path), report)
    every = files(root, FOLDERS, OURS)
    for path in every + ["CMakeLists.txt", "Makefile"]:
        try:
            check_text(path, read(root, path), report)
        except FileNotFoundError:
            pass
    return report.finish("%d files" % len(every))


if __name__ == "__main__":
    sys.exit(main())
