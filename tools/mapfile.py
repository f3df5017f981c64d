#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a linker version script from headers, so that exports cannot drift from them.

  mapfile.py core  OUT xtal.h src/core/*.h   XTAL_1: the functions of xtal.h;
                                             XTAL_PRIVATE: those marked XTAL_INTERNAL_API
  mapfile.py plain OUT header.h              the functions of the header, unversioned
"""
import os
import sys

from cheader import functions


def core_nodes(headers):
    """(public, private): sorted names for the two version nodes of libxtal."""
    public, private = set(), set()
    for path in headers:
        for function in functions(path):
            if os.path.basename(path) == "xtal.h":
                public.add(function.name)
            elif "XTAL_INTERNAL_API" in function.markers:
                private.add(function.name)
    return sorted(public), sorted(private)


def node(name, names, parent="", local=False):
    lines = [name + " {" if name else "{"]
    if names:
        lines.append("global:")
        lines += ["\t%s;" % entry for entry in names]
    if local:
        lines += ["local:", "\t*;"]
    lines.append("}%s;" % (" " + parent if parent else ""))
    return "\n".join(lines) + "\n"


def main():
    kind, out, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
    if kind == "core":
        public, private = core_nodes(headers)
        text = node("XTAL_1", public) + node("XTAL_PRIVATE", private, local=True)
    else:
        text = node("", [f.name for path in headers for f in functions(path)], local=True)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
