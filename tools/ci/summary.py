#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums up the results of all builds and prints the reason of every skip.

  summary.py DIR

DIR holds per build: NAME.xml (JUnit, by ctest), NAME.expected (number of tests), NAME.skip (why
the build was not run) or NAME.broken (what failed before the tests). Cases inside a cmocka
program count one by one; any other test counts as one. Exit status 1 when anything failed.
"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

CASE = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\S+)\s*$", re.M)
SKIP = re.compile(r"^\W*skip(?:ped)?: *(.+)$", re.M | re.I)


class Totals:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []


def parse(path):
    """Root of the JUnit file; bytes that XML forbids are dropped."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8", "replace")
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
    return ElementTree.fromstring(text)


def cases(output):
    """({OK: n, ...}, names of failed cases) from cmocka's lines.

    cmocka repeats the names of failed and skipped cases at the end, so names are counted once.
    """
    names = {"OK": [], "FAILED": [], "SKIPPED": []}
    for word, name in CASE.findall(output):
        if name not in names[word]:
            names[word].append(name)
    return names


def add_test(totals, build, case):
    """Counts one <testcase>."""
    name = "%s %s" % (build, case.get("name"))
    output = case.findtext("system-out") or ""
    found = cases(output)
    reasons = list(dict.fromkeys(SKIP.findall(output)))
    status = case.get("status", "")
    if status == "fail" or case.find("failure") is not None or case.find("error") is not None:
        failure = case.find("failure")
        words = failure.get("message", "") if failure is not None else "failed"
        totals.passed += len(found["OK"])
        for which in found["FAILED"] or [""]:
            totals.failures.append("%s: %s %s" % (name, words or "failed", which))
        return
    if status == "notrun" or case.find("skipped") is not None:
        skipped = case.find("skipped")
        words = skipped.get("message", "") if skipped is not None else ""
        if "SKIP_RETURN_CODE" in words or not words:
            last = [line for line in output.strip().split("\n") if line.strip()]
            words = reasons[0] if reasons else last[-1] if last else "gave no reason"
            totals.skips.append("%s: %s" % (name, words))
        else:  # disabled, or its program is missing
            totals.failures.append("%s: not run: %s" % (name, words))
        return
    if found["FAILED"]:
        totals.failures.append("%s: exit status 0, but failed: %s"
                               % (name, " ".join(found["FAILED"])))
    totals.passed += len(found["OK"]) or (0 if found["SKIPPED"] or found["FAILED"] else 1)
    for i, which in enumerate(found["SKIPPED"]):
        reason = reasons[i] if len(reasons) == len(found["SKIPPED"]) else "; ".join(reasons)
        totals.skips.append("%s %s: %s" % (name, which, reason or "gave no reason"))
    if not found["SKIPPED"]:  # a part left out of a test that passed
        totals.skips += ["%s (in part): %s" % (name, reason) for reason in reasons]


def add_build(totals, folder, build):
    """Counts everything known about one build."""
    path = os.path.join(folder, build)
    if os.path.exists(path + ".skip"):
        with open(path + ".skip", encoding="utf-8") as file:
            totals.skips.append("%s build: %s" % (build, file.read().strip()))
        return
    if os.path.exists(path + ".broken"):
        with open(path + ".broken", encoding="utf-8") as file:
            totals.failures.append("%s: %s" % (build, file.read().strip()))
        return
    try:
        tests = list(parse(path + ".xml").iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        totals.failures.append("%s: no readable results (%s)" % (build, error))
        return
    for case in tests:
        add_test(totals, build, case)
    with open(path + ".expected", encoding="utf-8") as file:
        missing = int(file.read().strip() or 0) - len(tests)
    for _ in range(missing):
        totals.failures.append("%s: a test was not run (out of time?)" % build)


def main():
    folder = sys.argv[1]
    builds = sorted({entry.rsplit(".", 1)[0] for entry in os.listdir(folder)
                     if entry.endswith((".xml", ".skip", ".broken", ".expected"))})
    totals = Totals()
    for build in builds:
        add_build(totals, folder, build)
    if not builds:
        totals.failures.append("nothing was run")
    if totals.skips:
        print("Skipped:")
        print("\n".join("  " + line for line in totals.skips))
    if totals.failures:
        print("Failed:")
        print("\n".join("  " + line.rstrip() for line in totals.failures))
    print("%d passed, %d failed, %d skipped"
          % (totals.passed, len(totals.failures), len(totals.skips)))
    return 1 if totals.failures else 0


if __name__ == "__main__":
    sys.exit(main())
