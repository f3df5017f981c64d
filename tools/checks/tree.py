# SPDX-License-Identifier: MIT
"""What the checks share: walking the tree, lists of exceptions, reporting."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

SKIPPED_FOLDERS = {"build", ".git", "__pycache__"}


def files(root, folders, endings):
    """Paths relative to root, sorted, of the files below folders with one of the endings."""
    found = []
    for folder in folders:
        for where, names, entries in os.walk(os.path.join(root, folder)):
            names[:] = [name for name in names if name not in SKIPPED_FOLDERS]
            found += [os.path.relpath(os.path.join(where, entry), root) for entry in entries
                      if entry.endswith(endings)]
    return sorted(set(found))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


class Report:
    """Collects complaints; exceptions come from tools/checks/exceptions.txt.

    A line there is: check, file, what, reason. One that excuses nothing is a complaint too,
    so the list cannot outlive its reasons.
    """

    def __init__(self, root, check):
        self.check = check
        self.complaints = []
        self.excused = {}
        self.used = set()
        path = os.path.join(root, "tools/checks/exceptions.txt")
        if not os.path.exists(path):
            return
        for number, line in enumerate(read(root, "tools/checks/exceptions.txt").split("\n"), 1):
            words = line.split(None, 3)
            if not words or words[0].startswith("#"):
                continue
            if len(words) < 4:
                self.complaints.append("exceptions.txt:%d: check file what reason" % number)
            elif words[0] == check:
                self.excused[(words[1], words[2])] = number

    def add(self, file, line, what, text):
        """A complaint about file:line; `what` is the word an exception names."""
        if (file, what) in self.excused:
            self.used.add((file, what))
        else:
            self.complaints.append("%s:%d: %s" % (file, line, text))

    def finish(self, summary):
        """Prints and returns the exit status."""
        for key, number in self.excused.items():
            if key not in self.used:
                self.complaints.append("exceptions.txt:%d: excuses nothing: %s %s"
                                       % (number, key[0], key[1]))
        for complaint in self.complaints:
            print(complaint)
        print("%s: %s" % (self.check, "%d complaints" % len(self.complaints)
                          if self.complaints else "ok, " + summary))
        return 1 if self.complaints else 0
